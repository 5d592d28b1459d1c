"""Partial matches of a run: rows with their parents, which go on from an event to those that may follow it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from augury.algebra.nodes import Condition, RunResult
from augury.algebra.terms import Aggregate, Expr, Prev, Var, show, variables
from augury.core.arrays import Array, RowIds, Times
from augury.core.limits import ALTERNATIVES
from augury.engine.operators.base import NOT_THERE, Operator, Part, PartialMatch, Ways
from augury.engine.operators.runs import kernels as k
from augury.engine.operators.runs.following import PORTION, MomentEdges
from augury.engine.operators.runs.kernels.growth import (
    begin,
    chains,
    fall_along,
    fall_at,
    fall_from,
    firsts_at,
    grow,
    may_move,
    plant,
    thread,
)
from augury.engine.operators.runs.kernels.records import MoveTests, PartialRows, RunMoves
from augury.engine.operators.runs.number_tests import LaterTests
from augury.engine.operators.runs.ongoing import GoingOn, OngoingMatches
from augury.engine.operators.runs.sight import Members, once, without_open
from augury.engine.saved import check_numbers, is_array, require
from augury.planner.run_moves import Move, left_out
from augury.planner.run_questions import Question, outermost_prevs, with_terms
from augury.planner.specs import PartialRunSpec
from augury.storage.dictionary import NULL, OPEN
from augury.storage.frame import Frame
from augury.storage.grouping import Slices, in_groups
from augury.storage.table import END, LEFT, NONE, RIGHT, START, Table, grown
from augury.storage.unique import difference, is_in, unique

if TYPE_CHECKING:
    from augury.engine.horizon import Horizon
    from augury.engine.runtime import Runtime


class Partials(MomentEdges):
    """ΔP = P ⋈ ΔE + ΔP ⋈ E: partial matches go on along new edges, and new ones along all edges.

    An edge leads from a moment to one that may follow it by some moves: to neighbours by NEXT, to the soonest of a part by
    THEN, to all later ones by SEQ. When a moment comes or goes, the edges of those behind it are looked at again; what
    went along an edge that is no more falls with all that was made of it.
    """

    def __init__(self, runtime: Runtime, spec: PartialRunSpec) -> None:
        super().__init__(runtime, spec)
        self.run_moves = RunMoves(self.ends, self.least, self.most, self.longest)
        self.later = LaterTests(self.moves, self.numbers)
        self.numbers.clear()
        self.ongoing = OngoingMatches(self)
        self._ongoing: GoingOn | None = None  # what may go on, as it was when it was last asked what is needed
        self._open: Array | None = None  # the moments that something may follow, as of then

    def _clear(self) -> None:
        super()._clear()
        self.heads, self.chain = np.full(16, -1, np.int64), np.full(16, -1, np.int64)
        self.kids = np.full((2, 16), -1, np.int64)

    def partial_rows(self) -> PartialRows:
        table, moments = self.out.table, self.moments.out.table
        return PartialRows(
            table.data, table.alive, moments.data, self.heads, self.chain, self.kids, len(self.run.parts)
        )

    def step(self) -> None:
        lost, stale, new = self.losses(0), self.stale(0), self.gains(0)
        gone = [self._fall_at(lost)] if len(lost) else []
        again = self._parents_of(gone)
        queue, cut, _ = self.relink(lost, stale, new)
        self._make_room()
        if cut.shape[1]:
            gone.append(self._fall_along(cut))
            again = np.concatenate([again, self._parents_of(gone[-1:])])
        firsts = self._begun(np.concatenate([new, stale]))
        if len(stale):
            firsts, ended = self._without_standing(stale, firsts)
            gone.append(ended)
        if gone:
            self.out.table.gone(np.concatenate(gone))
        self._grow(queue, firsts, again)

    def _without_standing(self, stale: Array, firsts: tuple[Array, Array]) -> tuple[tuple[Array, Array], Array]:
        """The first events, as parts, that no partial match begins with so far; and what falls because it may no longer
        begin with an event for which facts have changed."""
        table, moments, parts = self.out.table, *firsts
        count, rows = len(self.run.parts), np.empty(len(stale) * len(self.run.parts), np.int64)
        rows = rows[: firsts_at(stale, self.partial_rows(), rows)]
        standing, wanted = table.data[RIGHT, rows] * count + table.data[k.PART, rows], moments * count + parts
        new, gone = ~is_in(wanted, standing), np.empty(table.n, np.int64)
        fallen = fall_from(rows[~is_in(standing, wanted)], self.partial_rows(), gone)
        self.touched += len(rows) + fallen
        return (moments[new], parts[new]), gone[:fallen].copy()

    def _make_room(self) -> None:
        """Room for lists by moment and by partial match."""
        moments, table = self.moments.out.table, self.out.table
        if len(self.heads) < moments.n:
            self.heads = grown(self.heads, len(moments.alive), len(self.heads), -1)
        if len(self.chain) < len(table.alive):
            size = len(table.alive)
            self.chain, self.kids = grown(self.chain, size, len(self.chain)), grown(self.kids, size, len(self.chain))

    def _fall_at(self, dead: Array) -> Array:
        """Drops the partial matches that go through moments that are gone."""
        gone = np.empty(self.out.table.n, np.int64)
        count = fall_at(dead, self.edge_lists(), self.partial_rows(), gone)
        self.touched += count + len(dead)
        return gone[:count].copy()

    def _fall_along(self, cut: Array) -> Array:
        """Drops the partial matches that went along edges by moves that are no more."""
        gone = np.empty(self.out.table.n, np.int64)
        count = fall_along(cut, self.edges, self.partial_rows(), self.ends, gone)
        self.touched += count + cut.shape[1]
        return gone[:count].copy()

    def _parents_of(self, gone: list[Array]) -> Array:
        """Of partial matches that fell those that they were made of, where these may choose again."""
        if not gone or not self.choosy:
            return NONE
        table = self.out.table
        parents = unique(table.data[LEFT, np.concatenate(gone)])
        parents = parents[parents >= 0]
        alive: RowIds = parents[table.alive[parents].astype(bool)]
        return alive

    # Growing

    def _grow(self, queue: Array, firsts: tuple[Array, Array], again: Array) -> None:
        table = self.out.table
        old, (starts, parts_of) = table.n, firsts
        self.step_began, self.checked = old, 0  # the first partial match of the step, and how many were looked at
        if len(starts):
            self._more_room(len(starts))
            self._added(begin(starts, parts_of, table.n, self.partial_rows()))
        cursor = np.array([0, -1, old, -1, old], np.int64)
        later = self.later
        fits = later.follow()
        chosen, rows = (self.chosen & ~later.moves, later.tests) if fits else (self.chosen, later.none)
        tests = MoveTests(chosen, rows, self.numbers.numbers)
        asked = np.empty((3, 1024 if chosen else len(self.moves) + 1), np.int64)
        waiting = [self._chances(again)] if len(again) else []
        while True:
            partials = self.partial_rows()
            n, questions = grow(queue, cursor, table.n, partials, self.edge_lists(), self.run_moves, tests, asked)
            self._added(n)
            if questions:
                waiting.append(asked[:, :questions].copy())
            if cursor[0] < queue.shape[1] or cursor[2] < table.n:
                self._more_room(max(64, table.n - old))
                if questions and asked.shape[1] < PORTION:
                    asked = np.empty((3, 4 * asked.shape[1]), np.int64)
                continue
            if not waiting:
                break
            columns = np.concatenate(waiting, axis=1)
            waiting = []
            self._plant(self._answered(columns))
        self.touched += table.n - old

    def _more_room(self, count: int) -> None:
        self.out.table.room(count + len(self.moves))
        self._make_room()

    def _added(self, n: int) -> None:
        table = self.out.table
        lo, table.n = table.n, n
        if n > lo:
            table.grew(lo)
            self.runtime.tables.guard.paired(n - lo)  # a partial match is a pair of a shorter one and an event
            self._check_alternatives(n)

    def _check_alternatives(self, n: int) -> None:
        """Stops a step whose matches multiply. It looks at them each time that twice as many have come."""
        guard, first = self.runtime.tables.guard, self.step_began
        if n - first > max(guard.most_matches, 2 * self.checked):
            self.checked = n - first
            times = range(k.STATE + len(self.run.parts), k.STATE + 2 * len(self.run.parts))
            _, begins = in_groups([self.out.table.data[field, first:n] for field in (k.FIRST, RIGHT, *times)])
            if n - first > ALTERNATIVES * len(begins):
                raise guard.too_many_matches()

    def _chances(self, partials: Array) -> Array:
        """The choices that partial matches make again: all continuations by moves that choose."""
        chances, data, parts = [], self.out.table.data, len(self.run.parts)
        for p in partials.tolist():
            e = int(self.out_of[data[RIGHT, p]])
            while e >= 0:
                bits, x = int(self.edges[k.BITS, e]) & self.choosy, int(self.edges[k.TO, e])
                if self.moments.out.table.data[END, x] - data[START, p] <= self.longest:
                    moves = [m for m in range(len(self.moves)) if bits & (1 << m)]
                    chances += [(p, e, m) for m in moves if may_move(data, p, m, self.run_moves, parts)]
                e = int(self.edges[k.OUT, e])
        return np.array(chances, np.int64).reshape(-1, 3).T

    def _answered(self, chances: Array) -> Array:
        """Of questions (partial match, edge, move) those that are answered with yes, in the order of time."""
        held = [NONE]
        for number, move in enumerate(self.moves):
            rows = np.flatnonzero(chances[2] == number)
            if len(rows) and move.asks_later:
                targets = self.edges[k.TO, chances[1, rows]]
                rows = rows[self._answer(move, chances[0, rows], targets)]
            held.append(rows)
        rows = np.concatenate(held)
        ends = self.moments.out.table.data[END, self.edges[k.TO, chances[1, rows]]]
        return np.ascontiguousarray(chances[:, rows[np.argsort(ends, kind="stable")]])

    def _answer(self, move: Move, partials: Array, targets: Array) -> Array:
        """Which partial matches may go on by a move with a moment."""
        frame, kept = self._asked(move.later, move.agree_later, move.target, partials, targets)
        for part in move.deferred:
            names = set(self.sight.views[move.target].vars) - set(self.run.parts[move.target].own)
            held = self.met_by_all(self.turns.deferred(part, names), part, partials[kept], frame)
            frame, kept = frame.take(held), kept[held]
        return once(kept)

    def _asked(
        self, asked: Sequence[Question], agree: tuple[str, ...], part: int, partials: Array, targets: Array,
        seen_before: Frame | None = None,
    ) -> tuple[Frame, Array]:  # fmt: skip
        """Asks whether partial matches may go on with moments as iterations of a part: rows that may, and their numbers.

        `seen_before` are variables that have got a value since.
        """
        sight, end = self.sight, self.moments.out.table.data[END, targets]
        moments_of = {m: self._at(m, partials) for m in range(part)}
        earlier, _ = sight.frame(moments_of, end)
        frame, has = sight.frame({**moments_of, part: targets}, end, part)
        has |= {left_out(m): moments >= 0 for m, moments in moments_of.items()}
        words, mask = self.runtime.tables.dictionary, np.ones(len(targets), bool)
        for v in agree:
            if v in earlier.vars:
                now, _ = sight.frame({part: targets}, end, part, {v})
                mask &= words.agree(earlier.vars[v], now.vars[v])[0]
        for v, column in {} if seen_before is None else seen_before.vars.items():
            if v not in frame.vars or (frame.vars[v] == OPEN).any():
                frame.vars[v] = np.where(frame.vars[v] == OPEN, column, frame.vars[v]) if v in frame.vars else column
        bound = set(self.bound)
        for question in asked:
            for name, term in question.hidden:
                bound.add(name)
                mask &= self._hide(name, term, part, partials, targets, frame)
        turns = [*self.turns.bound_before(part), *((q.condition, q.present) for q in asked)]
        kept = np.flatnonzero(mask)
        there = {name: column[kept] for name, column in has.items()}

        def compute(result: RunResult, rows: Frame, numbers: Array) -> tuple[Array, Array]:
            return self.aggregate(result.aggregate, result.part, partials[numbers], rows)

        frame, _, kept = sight.in_turn(turns, frame.take(kept), there, kept, bound, compute)
        return frame, kept

    def _hide(
        self, name: str, term: Prev | Aggregate, part: int, partials: Array, targets: Array, frame: Frame
    ) -> Array:
        """Adds an earlier value, or a running aggregate, to a frame; for which rows it could be computed.

        It is open where a variable in it has no value so far, so that what asks for it is not asked there.
        """
        needs = variables(term.of if isinstance(term, Prev) else term) - set(self.run.parts[part].own)
        if not needs <= frame.vars.keys():
            return np.ones(len(frame), bool)
        is_open = np.zeros(len(frame), bool)
        for v in needs:
            is_open |= frame.vars[v] == OPEN
        seen = without_open(frame, needs)
        if isinstance(term, Prev):
            codes, ok = self._earlier_value(term.of, part, partials, seen)
        else:
            codes, ok = self.aggregate(term, part, partials, seen, targets)
        frame.vars[name] = np.where(is_open, OPEN, codes)
        return ok | is_open

    def _earlier_value(self, expr: Expr, part: int, partials: Array, seen: Frame) -> tuple[Array, Array]:
        """The values of an expression in the last iterations of partial matches, which are in a part."""
        ok, hidden, data = np.ones(len(partials), bool), dict[str, Array](), self.out.table.data
        parents = data[LEFT, partials]
        first = (parents < 0) | (data[k.PART, parents] != part)
        later, begins = np.flatnonzero(~first), np.flatnonzero(first)
        for term in outermost_prevs(expr):
            codes = np.full(len(partials), NULL, np.int64)
            codes[later], ok[later] = self._earlier_value(term.of, part, parents[later], seen.take(later))
            if term.default is not None:
                moments = data[RIGHT, partials[begins]]
                codes[begins], ok[begins] = self.sight.values(term.default, part, moments, seen.take(begins))
            hidden[f"#{show(term)}"] = codes
        plain = with_terms(expr, lambda e: Var(f"#{show(e)}") if isinstance(e, Prev) else None)
        part_vars = set(self.run.parts[part].own)
        others = replace(seen, vars={**{v: c for v, c in seen.vars.items() if v not in part_vars}, **hidden})
        codes, fine = self.sight.values(plain, part, data[RIGHT, partials], others)
        return codes, ok & fine

    def met_by_all(self, conditions: Sequence[Condition], part: int, partials: Array, bound: Frame) -> Array:
        """Of rows of partial matches those all of whose iterations of a part meet conditions, with variables known by now."""
        chains, groups = self.chains(partials)
        data = self.out.table.data
        mine = data[k.PART, chains] == part
        rows, owner = chains[mine], groups.owner[mine]
        parents = data[LEFT, rows]
        begins = (parents < 0) | (data[k.PART, parents] != part)
        holds = np.ones(len(partials), bool)
        for first in (True, False):
            some = np.flatnonzero(begins == first)
            asked = [q for c in conditions if (q := self.turns.question(c, first)).of_first or not first]
            moments, names = data[RIGHT, rows[some]], set(self.run.parts[part].own)
            seen = bound.take(owner[some])
            seen.vars = {v: c for v, c in seen.vars.items() if v not in names}
            _, kept = self._asked(asked, (), part, parents[some], moments, seen)
            met = np.zeros(len(some), bool)
            met[kept] = True
            holds[owner[some[~met]]] = False
        return np.flatnonzero(holds)

    def _at(self, part: int, partials: Array) -> Array:
        """The last moment of a part in partial matches; -1 where there is none, and where there is no match yet."""
        return np.where(partials >= 0, self.out.table.data[k.STATE + part, np.maximum(partials, 0)], -1)

    def times(self, part: int, partials: Array) -> Times:
        """How often a part was repeated in partial matches."""
        counts = self.out.table.data[k.STATE + len(self.run.parts) + part]
        return np.where(partials >= 0, counts[partials], 0)

    def members(self, partials: Array, part: int, more: Array | None = None) -> Members:
        """The iterations of a part in partial matches, and one more each."""
        rows, groups = self.chains(partials)
        data = self.out.table.data
        mine = data[k.PART, rows] == part
        moments, groups = data[RIGHT, rows[mine]], groups.where(mine)
        if more is not None:
            moments = np.insert(moments, groups.starts + groups.counts, more)
            groups = Slices(groups.counts + 1)
        return Members(moments, groups)

    def chains(self, partials: Array) -> tuple[Array, Slices]:
        """The partial matches on the way to each, the first one first, a group for each."""
        lengths, members = np.zeros(len(partials), np.int64), np.empty(max(64, 4 * len(partials)), np.int64)
        count = chains(partials, self.out.table.data, members, lengths)
        if count > len(members):
            members = np.empty(count, np.int64)
            chains(partials, self.out.table.data, members, lengths)
        return members[:count], Slices(lengths)

    def follow(self) -> None:
        self.aggregates.follow(self.out.table.data, self.out.table.n)

    def _plant(self, columns: Array) -> None:
        table, position = self.out.table, 0
        while position < columns.shape[1]:
            self._more_room(columns.shape[1] - position)
            gone = np.empty(table.n + columns.shape[1], np.int64)
            rows = self.partial_rows()
            position, n, fallen = plant(columns, position, table.n, rows, self.edges, self.ends, self.choosy, gone)
            self._added(n)
            if fallen:
                table.gone(gone[:fallen].copy())

    def rebuild(self) -> None:
        super().rebuild()
        thread(self.out.table.n, self.partial_rows())

    # What a row is made of

    def parents(self) -> list[tuple[int, Table]]:
        return [(RIGHT, self.moments.out.table), (LEFT, self.out.table)]

    def parts(self, row: int) -> tuple[Part, ...]:
        rows, _ = self.chains(np.array([row]))
        return tuple(p for m in self.out.table.data[RIGHT, rows].tolist() for p in self.moments.parts(m))

    def sources(self, rows: RowIds) -> Ways:
        chains, groups = self.chains(rows)
        moments = self.out.table.data[RIGHT, chains]
        return [(np.arange(len(rows)), [(self.moments.out.table, moments, groups.owner)])]

    def keep_parents(self, keep: dict[int, Array]) -> None:
        table, kept = self.out.table, keep[id(self.out.table)]
        rows = np.flatnonzero(kept)
        while len(rows):
            rows = unique(table.data[LEFT, rows])
            rows = rows[rows >= 0]
            rows = rows[~kept[rows]]
            kept[rows] = True
        moments = keep[id(self.moments.out.table)]
        for field in (RIGHT, k.FIRST, *range(k.STATE, k.STATE + len(self.run.parts))):
            named = table.data[field, : table.n][kept]
            moments[named[named >= 0]] = True

    def moved(self, places: Mapping[int, Array]) -> None:
        table = self.out.table
        new_rows, moments = places[id(table)], places[id(self.moments.out.table)]
        closed = np.zeros(len(moments) - 1, bool) if self._open is None else ~self._open
        closed[self.closed] = True
        closed = moments[:-1][closed]
        self.closed, self._open = closed[closed >= 0], None
        table.data[LEFT, : table.n] = new_rows[table.data[LEFT, : table.n]]
        for field in (RIGHT, k.FIRST, *range(k.STATE, k.STATE + len(self.run.parts))):
            table.data[field, : table.n] = moments[table.data[field, : table.n]]

    def state(self, number: Mapping[int, int]) -> Any:
        return {"closed": self.closed}

    def fill(self, state: Any, operators: Sequence[Operator]) -> None:
        require(isinstance(state, dict) and "closed" in state, "the closed moments are missing")
        closed = state["closed"]
        require(is_array(closed, np.int64, len(closed)), "invalid rows")
        check_numbers(closed, 0, self.moments.out.table.n, NOT_THERE)
        self.closed = closed

    def check(self) -> None:
        table, count = self.out.table, len(self.run.parts)
        data, n, moments = table.data, table.n, self.moments.out.table.n
        check_numbers(data[LEFT, :n], -1, n, NOT_THERE)
        require(bool((data[LEFT, :n] < np.arange(n)).all()), "a row made of itself")
        check_numbers(data[RIGHT, :n], 0, moments, NOT_THERE)
        check_numbers(data[k.FIRST, :n], 0, moments, NOT_THERE)
        check_numbers(data[k.PART, :n], 0, count, "a part that is not there")
        for part in range(count):
            check_numbers(data[k.STATE + part, :n], -1, moments, NOT_THERE)
            check_numbers(data[k.STATE + count + part, :n], 0, n + 1, "an impossible count")

    def waiting(self, now: int | None, new: bool) -> Iterator[PartialMatch]:
        """How far runs have come: of each the last events so far, and what may follow."""
        table = self.out.table
        rows = np.flatnonzero(self.ongoing.of(now, now).open)
        parents = table.data[LEFT, rows[table.data[LEFT, rows] >= 0]] if not self.choosy else NONE
        rows = difference(rows[rows >= table.mark] if new else rows, parents)
        for row in rows.tolist():
            part, start, moment = (int(table.data[field, row]) for field in (k.PART, START, RIGHT))
            yield from self.awaited(self.parts(row), part, start, moment, now)

    # How long it keeps what

    def wants(self, port: int, horizon: Horizon) -> Array | None:
        """The last moments of partial matches that may go on, and of those that restrict their successors."""
        table = self.moments.out.table
        since = horizon.since[id(table)]
        self._ongoing = self.ongoing.of(since, self.begins_from(since, horizon))
        self._open = self._ongoing.moments | (table.data[END, : table.n] >= since)
        return self._open | self._ongoing.shutting

    def retain(self, keep: dict[int, Array], frontier: int | None, since: Mapping[int, int]) -> None:
        if frontier is not None and self._ongoing is not None:
            keep[id(self.out.table)] |= self._ongoing.kept
        self._ongoing = None
