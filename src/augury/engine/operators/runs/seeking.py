"""THEN with conditions: from each event to the soonest one that meets them, looked for until it is found and no further.

A moment that has found nothing waits: what comes behind it in its chain is asked next. So a search costs the events that it
passes, whatever the window, and a found one is asked no more. Candidates are asked in portions that double.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from augury.core.arrays import Array
from augury.engine.operators.runs import kernels as k
from augury.engine.operators.runs import number_tests
from augury.engine.operators.runs.kernels.records import MomentTests, ThenSearch
from augury.engine.operators.runs.kernels.then_searches import (
    NOT_WAITING,
    S_AT,
    S_FOUND,
    S_NEXT,
    candidates,
    find_numbers,
    seekers,
    step_back,
    wait,
    waiting,
)
from augury.engine.operators.runs.moments import Moments
from augury.engine.operators.runs.number_tests import NumberTests
from augury.planner.run_moves import Move
from augury.storage.table import END, NONE, START, grown
from augury.storage.unique import difference, unique

Meets = Callable[[Move, Array, Array], Array]  # which pairs of moments meet the conditions of a move


class Seeking:
    """The searches of one move, or of several that ask the same. `bits` are theirs among those of an edge."""

    def __init__(
        self, move: Move, bits: int, moments: Moments, longest: int, meets: Meets, tests: NumberTests | None
    ) -> None:
        self.move, self.bits, self.moments, self.longest, self.meets = move, bits, moments, longest, meets
        self.tests = tests
        self.source, self.target = moments.row_fields[move.source], moments.row_fields[move.target]
        self.touched = 0
        self.clear()

    def clear(self) -> None:
        # Of each moment: how far it has looked, the least end of what it has found, and the next one that waits in its chain.
        self.state = np.empty((3, 16), np.int64)
        self.filled = 0
        self.heads = np.full(16, -1, np.int64)  # by chain: the latest moment that waits

    def room(self, chains: int) -> None:
        """Room for all moments and chains that there are."""
        n = self.moments.out.table.n
        if self.state.shape[1] < n:
            self.state = grown(self.state, len(self.moments.out.table.alive), self.filled)
        self.state[S_AT, self.filled : n] = -1
        self.state[S_FOUND, self.filled : n] = k.FOREVER
        self.state[S_NEXT, self.filled : n] = NOT_WAITING
        self.filled = n
        if len(self.heads) < chains:
            self.heads = grown(self.heads, 2 * chains, len(self.heads), -1)

    def search(self, new: Array, changed: Array, chain_of: Array, lasts: int) -> tuple[Array, Array]:
        """Takes in new moments, some of which, and others, have changed what is before them. Who has looked from its
        beginning, and the pairs that were found, by these and by those who waited."""
        if len(changed) and self.tests is not None:
            self.tests.of.break_up(changed)
        again = self._again(changed)
        waiting = self._waiting(np.concatenate([new, changed]) if len(changed) else new, chain_of)
        table = self.moments.out.table
        begin = new[table.data[self.source, new] >= 0]
        fresh = np.concatenate([begin, again]) if len(again) else begin
        if len(again):
            fresh = unique(fresh)
            fresh = fresh[table.alive[fresh].astype(bool)]
            waiting = difference(waiting, fresh)
        self.touched += step_back(waiting, table.data, table.alive, self.moments.index.prev, self.state)
        self.state[S_AT, fresh] = -1
        self.state[S_FOUND, fresh] = k.FOREVER
        sources = np.concatenate([fresh, waiting])
        pairs = self._looked(sources, lasts)
        wait(sources, self.state, chain_of, self.heads)
        return fresh, pairs

    def _again(self, changed: Array) -> Array:
        """The moments that what has changed may concern: those before it that wait, or have found nothing before it."""
        if not len(changed):
            return NONE
        table, index = self.moments.out.table, self.moments.index
        sources, marks = np.empty(table.n, np.int64), np.zeros(table.n, np.uint8)
        count, touched = seekers(
            changed, table.data, table.alive, index.prev, self.source, self.state, self.longest, sources, marks
        )
        self.touched += touched
        return sources[:count].copy()

    def _waiting(self, new: Array, chain_of: Array) -> Array:
        """The moments that wait in the chains of others; they wait no more until they have looked."""
        chains = unique(chain_of[new])
        sources = np.empty(self.filled, np.int64)
        count = waiting(chains, self.state, self.heads, self.moments.out.table.alive, sources)
        self.touched += count
        return sources[:count].copy()

    def _looked(self, sources: Array, lasts: int) -> Array:
        """Looks on from where each one is until it knows, or there is no more; the pairs that were found."""
        table = self.moments.out.table
        pairs = self._found_by_numbers(sources, lasts)
        pairs = self._found_by_asking(sources, lasts) if pairs is None else pairs
        return np.ascontiguousarray(pairs[:, table.data[START, pairs[1]] <= self.state[S_FOUND, pairs[0]]])

    def _then_search(self, lasts: int) -> ThenSearch:
        table, index = self.moments.out.table, self.moments.index
        return ThenSearch(table.data, table.alive, index.after, self.target, self.state, self.longest, lasts)

    def _found_by_numbers(self, sources: Array, lasts: int) -> Array | None:
        """The same where numbers decide: by a kernel. None where they do not."""
        if self.tests is None or not self.tests.follow():
            return None
        tests, numbers = self.tests, self.tests.of
        numbers.summarise()
        asked = MomentTests(
            tests.tests, numbers.numbers, tests.agree, numbers.codes, numbers.low, numbers.high,
            numbers.whole[: numbers.blocks], number_tests.BLOCK,
        )  # fmt: skip
        position, portions = 0, [np.empty((2, 0), np.int64)]
        room = np.empty((2, 2 * len(sources) + 64), np.int64)
        while position < len(sources):
            came, count, touched = find_numbers(sources, position, self._then_search(lasts), asked, room)
            self.touched += touched
            portions.append(room[:, :count].copy())
            if came < len(sources) and count == 0:
                room = np.empty((2, 2 * room.shape[1]), np.int64)
            position = came
        return np.concatenate(portions, axis=1)

    def _found_by_asking(self, sources: Array, lasts: int) -> Array:
        table, portions = self.moments.out.table, [np.empty((2, 0), np.int64)]
        portion, open_ones = 1, sources
        while len(open_ones):
            pairs = np.empty((2, len(open_ones) * portion), np.int64)
            state = np.zeros(len(open_ones), np.uint8)
            count, touched = candidates(open_ones, portion, self._then_search(lasts), pairs, state)
            self.touched += touched
            pairs = pairs[:, :count]
            if count:
                met = np.ascontiguousarray(pairs[:, self.meets(self.move, pairs[0], pairs[1])])
                np.minimum.at(self.state[S_FOUND], met[0], table.data[END, met[1]])
                portions.append(met)
            open_ones = open_ones[state == 0]
            portion = min(2 * portion, max(1, (1 << 20) // max(1, len(open_ones))))
        return np.concatenate(portions, axis=1)
