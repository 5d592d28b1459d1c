"""Policies: which candidate pairs of a binary operator are taken (SEMANTICS 5).

A policy chooses occurrences: rows made of the same events are taken or left together.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from augury.algebra.nodes import Policy
from augury.columns.dictionary import OPEN
from augury.columns.frame import View, frame_of, store
from augury.columns.table import END, LEFT, START, Links
from augury.engine.operators.base import Operator, Part
from augury.engine.operators.join import Join
from augury.jit import Array
from augury.model import OrderKey, order_key
from augury.optimiser.implied_bounds import FAR

if TYPE_CHECKING:
    from augury.engine.circuit import Circuit
    from augury.engine.horizon import Horizon

Key = tuple[Any, ...]


def tie(policy: Policy, longest: int, by: Callable[[], OrderKey]) -> OrderKey:
    """What breaks a tie: the greatest wins."""
    match policy.ties:
        case "longest":
            return (longest,)
        case "shortest":
            return (-longest,)
        case "by":
            return by()


class Occurrence:
    """A part of a pair: the events it is made of. Compared by the order of events, computed only where times tie."""

    __slots__ = ("_order", "circuit", "end", "parts", "start")

    def __init__(self, circuit: Circuit, start: int, end: int, parts: tuple[Part, ...]) -> None:
        self.circuit, self.start, self.end, self.parts = circuit, start, end, parts
        self._order: OrderKey | None = None

    @property
    def order(self) -> OrderKey:
        if self._order is None:
            self._order = tuple(self.circuit.event(part).order for part in self.parts)
        return self._order

    def before(self, other: Occurrence) -> bool:
        """Whether it is no later than another."""
        mine, its = (self.end, self.start), (other.end, other.start)
        return mine < its or (mine == its and self.order <= other.order)

    def __lt__(self, other: Occurrence) -> bool:
        return (self.end, self.start) < (other.end, other.start) or (
            (self.end, self.start) == (other.end, other.start) and self.order < other.order
        )


@dataclass(frozen=True, eq=False)
class Candidate:
    """A row of the input: its two occurrences, which of them is the later one, and what `per` looks at."""

    row: int
    later: Occurrence
    earlier: Occurrence
    side: int  # of the later one
    per: OrderKey


class Choose(Operator):
    """The rows of the candidates that a policy takes.

    recent: each later part takes the one most recent candidate, for each value of `per`. chronological: later parts in
    the order of events, each takes the first candidate that is not used up; a change in the past decides anew all that
    comes after it, which the lateness bounds.
    """

    kind = "policy"

    def __init__(self, circuit: Circuit, rows: View, out: View, rule: str, *, policy: Policy, join: Join) -> None:
        self.policy, self.join = policy, join
        super().__init__(circuit, (rows,), out, rule)
        self.clear()

    def make_links(self) -> list[Links | None]:
        return [Links(self.inputs[0].table, self.out.table, LEFT)]

    def clear(self) -> None:
        self.occurrences: list[dict[Key, Occurrence]] = [{}, {}]
        self.candidates: dict[int, Candidate | None] = {}
        self.groups: dict[Key, dict[Key, list[Candidate]]] = {}
        self.chosen: dict[Key, Key] = {}
        self.queue: list[_Later] = []
        self.by_later: dict[Key, _Later] = {}
        self.used: set[tuple[int, Occurrence]] = set()

    # Candidates

    def step(self) -> None:
        lost = [self.candidates.pop(row, None) for row in self.losses(0).tolist()]
        new = [self.candidate(row) for row in self.gains(0).tolist()]
        gone, come = [c for c in lost if c is not None], [c for c in new if c is not None]
        self.touched += len(gone) + len(come)
        taken, left = self.recent(gone, come) if self.policy.name == "recent" else self.chronological(gone, come)
        self.show(taken, left)
        self.drop_dead(gone)

    def drop_dead(self, gone: list[Candidate]) -> None:
        links = self.links[0]
        if gone and links is not None:
            links.take(np.array([c.row for c in gone], np.int64))

    def show(self, taken: set[int], left: set[int]) -> None:
        """Rows that are taken from now on, and rows that no longer are."""
        links, table = self.links[0], self.inputs[0].table
        assert links is not None
        both = taken & left
        rows = np.array(sorted(left - both), np.int64)
        if len(rows):
            links.take(rows)
        rows = np.array(sorted(r for r in taken - both if table.alive[r]), np.int64)
        if len(rows):
            store(frame_of(self.inputs[0], rows), self.out)

    def candidate(self, row: int) -> Candidate | None:
        """What a policy needs of a row; None where it pairs an occurrence with itself."""
        table, at = self.inputs[0].table, row
        while table is not self.join.out.table:
            at = int(table.data[LEFT, at])
            table = self.circuit.maker(table).inputs[0].table
        sides = [self.occurrence(side, int(table.data[LEFT + side, at])) for side in (0, 1)]
        found: Candidate | None = None
        if not sides[0].parts or sides[0].parts != sides[1].parts:
            later = 1 if sides[0].before(sides[1]) else 0
            per = self.values(1 - later, int(table.data[LEFT + 1 - later, at]), self.policy.per)
            found = Candidate(row, sides[later], sides[1 - later], later, per)
        self.candidates[row] = found
        return found

    def occurrence(self, side: int, row: int) -> Occurrence:
        table = self.join.inputs[side].table
        parts = self.circuit.parts(table, row)
        start, end = int(table.data[START, row]), int(table.data[END, row])
        key = (start, end, parts)
        found = self.occurrences[side].get(key)
        if found is None:
            found = self.occurrences[side][key] = Occurrence(self.circuit, start, end, parts)
        return found

    def values(self, side: int, row: int, names: tuple[str, ...]) -> OrderKey:
        view, decode = self.join.inputs[side], self.circuit.words.dictionary.decode
        codes = [int(view.table.data[view.vars[v], row]) if v in view.vars else OPEN for v in names]
        return tuple(() if c == OPEN else order_key(decode(c)) for c in codes)

    def tie(self, candidates: list[Candidate], longest: int) -> OrderKey:
        return tie(self.policy, longest, lambda: max(self.by(c) for c in candidates))

    def by(self, candidate: Candidate) -> OrderKey:
        """The greatest value of the attribute among the rows of the earlier occurrence."""
        side = 1 - candidate.side
        view, name = self.join.inputs[side], self.policy.by or ""
        rows = [
            int(r)
            for r in np.flatnonzero(
                (view.table.data[START, : view.table.n] == candidate.earlier.start)
                & (view.table.data[END, : view.table.n] == candidate.earlier.end)
                & view.table.alive[: view.table.n].astype(bool)
            )
            if self.circuit.parts(view.table, int(r)) == candidate.earlier.parts
        ]
        found = [self.values(side, r, (name,))[0] for r in rows]
        return max((v if v != () else order_key(None)) for v in found) if found else order_key(None)

    # Recent

    def recent(self, gone: list[Candidate], come: list[Candidate]) -> tuple[set[int], set[int]]:
        taken: set[int] = set()
        left: set[int] = set()
        touched: dict[Key, None] = {}
        before: dict[Key, set[int]] = {}
        for candidate in (*gone, *come):
            group = (candidate.side, candidate.later, candidate.per)
            if group not in before:
                before[group] = self._rows(group)
                touched[group] = None
        for candidate in gone:
            group = (candidate.side, candidate.later, candidate.per)
            pairs = self.groups.get(group, {})
            rest = [c for c in pairs.get((candidate.earlier,), ()) if c is not candidate]
            if rest:
                pairs[candidate.earlier,] = rest
            else:
                pairs.pop((candidate.earlier,), None)
        for candidate in come:
            group = (candidate.side, candidate.later, candidate.per)
            self.groups.setdefault(group, {}).setdefault((candidate.earlier,), []).append(candidate)
        for group in touched:
            pairs = self.groups.get(group, {})
            if not pairs:
                self.groups.pop(group, None)
                self.chosen.pop(group, None)
            else:
                self.chosen[group] = self._most_recent(pairs)
            now = self._rows(group)
            taken |= now - before[group]
            left |= before[group] - now
        return taken, left

    def _rows(self, group: Key) -> set[int]:
        chosen = self.chosen.get(group)
        if chosen is None:
            return set()
        return {c.row for c in self.groups.get(group, {}).get(chosen, ())}

    def _most_recent(self, pairs: dict[Key, list[Candidate]]) -> Key:
        latest = max(key[0].end for key in pairs)
        level = [key for key in pairs if key[0].end == latest]
        if len(level) > 1:
            ties = {key: self.tie(pairs[key], -key[0].start) for key in level}
            best = max(ties.values())
            level = [key for key in level if ties[key] == best]
        return level[0] if len(level) == 1 else max(level, key=lambda key: (key[0].start, key[0].order))

    # Chronological

    def chronological(self, gone: list[Candidate], come: list[Candidate]) -> tuple[set[int], set[int]]:
        touched: list[_Later] = []
        for candidate in gone:
            later = self.by_later[candidate.side, candidate.later]
            later.candidates.remove(candidate)
            touched.append(later)
        for candidate in come:
            key = (candidate.side, candidate.later)
            if key not in self.by_later:
                self.by_later[key] = _Later(candidate.later, candidate.side)
                insort(self.queue, self.by_later[key])
            later = self.by_later[key]
            later.candidates.append(candidate)
            touched.append(later)
        if not touched:
            return set(), set()
        at = bisect_left(self.queue, min(touched))
        before = {c.row: None for later in self.queue[at:] for c in later.taken}
        before.update({c.row: None for c in gone})
        for later in self.queue[at:]:
            self.used -= later.uses
            later.uses, later.taken = set(), []
        for later in self.queue[at:]:
            self.touched += len(later.candidates)
            later.decide(self)
        for later in touched:
            if not later.candidates and self.by_later.get((later.side, later.occurrence)) is later:
                del self.by_later[later.side, later.occurrence]
                self.queue.remove(later)
        now = {c.row for later in self.queue[at:] for c in later.taken}
        return now - before.keys(), before.keys() - now

    def rebuild(self) -> None:
        super().rebuild()
        self.clear()
        self.seen = [0]
        come = [c for row in self.gains(0).tolist() if (c := self.candidate(row)) is not None]
        self.recent([], come) if self.policy.name == "recent" else self.chronological([], come)

    def wants(self, port: int, horizon: Horizon) -> Array | None:
        """What was used up stays so while it could be taken again."""
        if self.policy.name != "chronological":
            return None
        table = self.inputs[0].table
        least = FAR
        for view in self.join.inputs:
            ends = view.table.data[END, : view.table.n][horizon.wanted(view.table)]
            least = min(least, int(ends.min(initial=FAR)))
        return table.data[END, : table.n] >= least


class _Later:
    """A later part with its candidates, and the pair that it has taken."""

    def __init__(self, occurrence: Occurrence, side: int) -> None:
        self.occurrence, self.side = occurrence, side
        self.candidates: list[Candidate] = []
        self.taken: list[Candidate] = []
        self.uses: set[tuple[int, Occurrence]] = set()

    def __lt__(self, other: _Later) -> bool:
        if self.occurrence.parts == other.occurrence.parts:
            return self.side < other.side
        return self.occurrence < other.occurrence

    def decide(self, choose: Choose) -> None:
        """The first candidate that is not used up, by its start; both are used up then, each in its role."""
        if (self.side, self.occurrence) in choose.used:
            return
        free = [c for c in self.candidates if (1 - self.side, c.earlier) not in choose.used]
        if not free:
            return
        first = min(c.earlier.start for c in free)
        level: dict[Occurrence, list[Candidate]] = {}
        for c in free:
            if c.earlier.start == first:
                level.setdefault(c.earlier, []).append(c)
        if len(level) > 1:
            ties = {o: choose.tie(cs, o.end) for o, cs in level.items()}
            best = max(ties.values())
            level = {o: cs for o, cs in level.items() if ties[o] == best}
        chosen = min(level, key=lambda o: (o.end, o.order)) if len(level) > 1 else next(iter(level))
        self.taken = level[chosen]
        self.uses = {(self.side, self.occurrence), (1 - self.side, chosen)}
        choose.used |= self.uses
