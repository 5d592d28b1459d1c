"""Selection and consumption: which candidate pairs of a binary operator are taken (SEMANTICS 5).

A policy chooses occurrences: rows made of the same events are taken or left together. Each has a file of its own, and a
row in `planner/policies.py`: a `ChoosingJoin` where the pair alone says whether it is a candidate, and a `Choose` for the rest.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, assert_never

import numpy as np

from augury.algebra.nodes import Policy
from augury.core.arrays import Array
from augury.core.bounds import FAR
from augury.core.model import OrderKey, order_key
from augury.engine.operators.base import Operator, Part
from augury.engine.operators.join import JoinOperator, joined
from augury.engine.operators.map import EachRow
from augury.planner.specs import AgreeSpec, ChoiceSpec, ChoosingJoinSpec
from augury.storage.dictionary import OPEN
from augury.storage.frame import Frame, View, frame_of, store
from augury.storage.table import END, LEFT, RIGHT, START, Table

if TYPE_CHECKING:
    from augury.engine.horizon import Horizon
    from augury.engine.runtime import Runtime

Key = tuple[Any, ...]


def tie(policy: Policy, longest: int, by: Callable[[], OrderKey]) -> OrderKey:
    """The key that breaks a tie: the greatest wins."""
    match policy.ties:
        case "longest":
            return (longest,)
        case "shortest":
            return (-longest,)
        case "by":
            return by()
        case _:
            assert_never(policy.ties)


class Occurrence:
    """A part of a pair: the events it is made of. Compared by the order of events, computed only where times tie."""

    __slots__ = ("_order", "end", "parts", "runtime", "start")

    def __init__(self, runtime: Runtime, start: int, end: int, parts: tuple[Part, ...]) -> None:
        self.runtime, self.start, self.end, self.parts = runtime, start, end, parts
        self._order: OrderKey | None = None

    @property
    def order(self) -> OrderKey:
        if self._order is None:
            self._order = tuple(self.runtime.event(part).order for part in self.parts)
        return self._order

    def before(self, other: Occurrence) -> bool:
        """Whether it is no later than another."""
        return not other < self

    def __lt__(self, other: Occurrence) -> bool:
        mine, its = (self.end, self.start), (other.end, other.start)
        return mine < its or (mine == its and self.order < other.order)


@dataclass(frozen=True, eq=False)
class Candidate:
    """A row of the input: its two occurrences, which of them is the later one, and what `per` looks at."""

    row: int
    later: Occurrence
    earlier: Occurrence
    side: int  # of the later one
    per: OrderKey


def group_of(candidate: Candidate) -> Key:
    """The group that a candidate competes in: a later part and, with `per`, one of its values."""
    return (candidate.side, candidate.later, candidate.per)


class ChoosingJoin(JoinOperator):
    """A join that chooses while it looks, so that candidates need not be listed.

    For operators whose candidacy is decided by the pair alone (no absence, no `per`), and whose parts are one row each.
    """

    def __init__(self, runtime: Runtime, spec: ChoosingJoinSpec) -> None:
        super().__init__(runtime, spec)
        self.policy = spec.policy

    def wants(self, port: int, horizon: Horizon) -> Array | None:
        """A part chooses again as long as its choice may vanish or a better one may appear, however long ago it came itself:
        until then its candidates are needed, and what is used up of them."""
        table, back = self.inputs[port].table, self.reach(port, horizon)
        if back <= -FAR:
            return np.ones(table.n, bool)
        return table.data[END, : table.n] >= horizon.since[id(self.out.table)] + back

    def occurrence(self, side: int, row: int) -> Occurrence:
        table = self.inputs[side].table
        start, end = int(table.data[START, row]), int(table.data[END, row])
        return Occurrence(self.runtime, start, end, self.runtime.parts(table, row))

    def by(self, side: int, row: int) -> OrderKey:
        """The attribute that the policy names."""
        view = self.inputs[side]
        field = view.vars.get(self.policy.by or "")
        code = OPEN if field is None else int(view.table.data[field, row])
        return order_key(None if code == OPEN else self.runtime.tables.dictionary.decode(code))


class Chooser(Operator):
    """Shows some of the rows of its input, and may show others later."""

    def show(self, taken: set[int], left: set[int]) -> None:
        """Rows that are taken from now on, and rows that no longer are."""
        table, both = self.inputs[0].table, taken & left
        rows = np.array(sorted(left - both), np.int64)
        if len(rows):
            self.links[0].kill(rows)
        rows = np.array(sorted(r for r in taken - both if table.alive[r]), np.int64)
        if len(rows):
            store(frame_of(self.inputs[0], rows), self.out)

    def origin(self, row: int, of: Table) -> int:
        """The row of a table from which a row of the input was made by filters alone."""
        table = self.inputs[0].table
        while table is not of:
            row = int(table.data[LEFT, row])
            table = self.runtime.maker(table).inputs[0].table
        return row


class Choose(Chooser):
    """The rows of the candidates that a policy takes; a subclass says which (`decide`)."""

    def __init__(self, runtime: Runtime, spec: ChoiceSpec) -> None:
        super().__init__(runtime, spec)
        self.policy, self.join = spec.policy, runtime.operator(spec.join, JoinOperator)
        self.clear()

    def clear(self) -> None:
        self.occurrences: list[dict[Key, Occurrence]] = [{}, {}]
        self.candidates: dict[int, Candidate | None] = {}

    @abstractmethod
    def decide(self, gone: list[Candidate], come: list[Candidate]) -> tuple[set[int], set[int]]:
        """Candidates go and come: the rows that are taken from now on, and those that no longer are."""

    def step(self) -> None:
        lost = [self.candidates.pop(row, None) for row in self.losses(0).tolist()]
        new = [self.candidate(row) for row in self.gains(0).tolist()]
        gone, come = [c for c in lost if c is not None], [c for c in new if c is not None]
        self.touched += len(gone) + len(come)
        taken, left = self.decide(gone, come)
        self.show(taken, left)
        if gone:
            self.links[0].kill(np.array([c.row for c in gone], np.int64))

    def candidate(self, row: int) -> Candidate | None:
        """A row as a candidate; None where it pairs an occurrence with itself."""
        table = self.join.out.table
        pair = self.origin(row, table)
        sides = [self.occurrence(side, int(table.data[LEFT + side, pair])) for side in (0, 1)]
        result: Candidate | None = None
        if not sides[0].parts or sides[0].parts != sides[1].parts:
            later = 1 if sides[0].before(sides[1]) else 0
            result = Candidate(row, sides[later], sides[1 - later], later, self.per(row, 1 - later, pair))
        self.candidates[row] = result
        return result

    def per(self, row: int, earlier: int, pair: int) -> OrderKey:
        """The values of `per (…)` in a row; `pair` is the pair it was made of, and `earlier` the side of its earlier part."""
        return self.values(
            self.join.inputs[earlier], int(self.join.out.table.data[LEFT + earlier, pair]), self.policy.per
        )

    def occurrence(self, side: int, row: int) -> Occurrence:
        table = self.join.inputs[side].table
        parts = self.runtime.parts(table, row)
        start, end = int(table.data[START, row]), int(table.data[END, row])
        key = (start, end, parts)
        made = self.occurrences[side].get(key)
        if made is None:
            made = self.occurrences[side][key] = Occurrence(self.runtime, start, end, parts)
        return made

    def values(self, view: View, row: int, names: tuple[str, ...]) -> OrderKey:
        decode = self.runtime.tables.dictionary.decode
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
                & view.table.stands()
            )
            if self.runtime.parts(view.table, int(r)) == candidate.earlier.parts
        ]
        values = [self.values(view, r, (name,))[0] for r in rows]
        return max((v if v != () else order_key(None)) for v in values) if values else order_key(None)

    def rebuild(self) -> None:
        super().rebuild()
        self.clear()
        self.seen = [0]
        self.resume([c for row in self.gains(0).tolist() if (c := self.candidate(row)) is not None])

    def resume(self, candidates: list[Candidate]) -> None:
        """Goes on from the candidates that are held, and from the choices among them in its table."""
        self.decide([], candidates)


class AgreeingPairs(EachRow):
    """Of the pairs that `recent per` has chosen, those that agree and meet the other conditions."""

    def __init__(self, runtime: Runtime, spec: AgreeSpec) -> None:
        super().__init__(runtime, spec)
        self.join = runtime.operator(spec.join, JoinOperator)
        self.shared, self.where, self.gap = spec.shared, spec.where, spec.gap
        runtime.asks(self, spec.where)

    def mapped(self, frame: Frame) -> Frame:
        base, pairs = self.join.out.table, self.inputs[0].table.data[LEFT, frame.left]
        left, right = self.join.inputs
        frame = joined(left, right, base.data[LEFT, pairs], base.data[RIGHT, pairs], self.shared, self.gap, frame.left)
        return self.runtime.context.select(self.where, frame, self.rule)
