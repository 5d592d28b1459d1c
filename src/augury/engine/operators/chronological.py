"""`SEQ[chronological]`: first in, first out; both parts are consumed (SEMANTICS 5)."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Mapping
from functools import total_ordering
from typing import TYPE_CHECKING, Any, assert_never

import numpy as np

from augury.core.arrays import Array, RowIds
from augury.core.bounds import FAR
from augury.core.model import OrderKey
from augury.engine.operators.base import check_either
from augury.engine.operators.choose import Candidate, Choose, ChoosingJoin, Key, Occurrence, group_of
from augury.planner.specs import ChronologicalSpec
from augury.storage.frame import Frame, store
from augury.storage.table import END, LEFT, RIGHT, START

if TYPE_CHECKING:
    from augury.engine.horizon import Horizon
    from augury.engine.runtime import Runtime

_Use = tuple[int, Occurrence, OrderKey]  # a part that is used up: its side, and the value of `per`
_AT_ONCE = 16  # candidates whose conditions are computed together


@total_ordering
class _Place:
    """A row in a queue: by numbers first, by the order of events where they tie."""

    __slots__ = ("_order", "numbers", "operator", "row", "side")

    def __init__(self, numbers: tuple[Any, ...], operator: Chronological, side: int, row: int) -> None:
        self.numbers, self.operator, self.side, self.row = numbers, operator, side, row
        self._order: OrderKey | None = None

    @property
    def order(self) -> OrderKey:
        """The order of the events of the row, computed once, where numbers tie."""
        if self._order is None:
            self._order = self.operator.occurrence(self.side, self.row).order
        return self._order

    def __lt__(self, other: _Place) -> bool:
        if self.numbers != other.numbers:
            return self.numbers < other.numbers
        if self.row == other.row:
            return False
        return self.order < other.order

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Place) and self.row == other.row and self.numbers == other.numbers


@total_ordering
class _Greatest:
    """A value that comes first where it is greatest."""

    __slots__ = ("value",)

    def __init__(self, value: OrderKey) -> None:
        self.value = value

    def __lt__(self, other: _Greatest) -> bool:
        return self.value > other.value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Greatest) and self.value == other.value


class _KeyGroup:
    """The parts with one key: left ones that are free, by start, and right ones in the order of events."""

    def __init__(self) -> None:
        self.free: list[_Place] = []
        self.rights: list[_Place] = []
        self.taken: dict[int, int] = {}  # right part to left part
        self.undecided: _Place | None = None  # from here on it is to be decided anew


class Chronological(ChoosingJoin):
    """Pairs first in, first out.

    Right parts decide in the order of events, each takes the first left part that is still free. A change in the past
    decides anew all that comes after it, which the lateness bounds.
    """

    def __init__(self, runtime: Runtime, spec: ChronologicalSpec) -> None:
        super().__init__(runtime, spec)
        self.clear()
        # How long a pair may be at most, so that what is too old need not be looked at.
        lengths = [b[4] for b in self.relation.bounds[0].tolist() if b[:4] == [1, END, 0, START]]
        self.longest = min(lengths, default=None)
        self.limits = [tuple(bound) for bound in self.relation.bounds[0].tolist()]

    def clear(self) -> None:
        self.groups: dict[tuple[int, ...], _KeyGroup] = {}
        self.pair_of: dict[int, int] = {}  # left part to right part

    def key(self, side: int, row: int) -> tuple[int, ...] | None:
        """The key of a row; None where a part of it is null, which pairs with nothing."""
        dictionary, table = self.runtime.tables.dictionary, self.inputs[side].table
        codes = table.data[self.key_fields[side], row]
        return None if dictionary.is_null(codes).any() else tuple(dictionary.canonical(codes).tolist())

    def keys_of(self, side: int, rows: RowIds) -> list[tuple[int, ...] | None]:
        """The keys of rows."""
        dictionary, table = self.runtime.tables.dictionary, self.inputs[side].table
        columns = [table.data[field, rows] for field in self.key_fields[side].tolist()]
        if not columns:
            return [()] * len(rows)
        keys: list[tuple[int, ...] | None] = list(
            zip(*(dictionary.canonical(c).tolist() for c in columns), strict=True)
        )
        for column in columns:
            for i in np.flatnonzero(dictionary.is_null(column)).tolist():
                keys[i] = None
        return keys

    def open_to_partners(self, rows: RowIds, side: int) -> Array:
        """Which rows are not used up."""
        used = self.pair_of.keys() if side == 0 else set(self.pair_of.values())
        return np.array([row not in used for row in rows.tolist()], bool)

    def placement(self, side: int, row: int) -> _Place:
        table = self.inputs[side].table
        return self.placed(side, row, int(table.data[START, row]), int(table.data[END, row]))

    def placed(self, side: int, row: int, start: int, end: int) -> _Place:
        if side == 1:
            return _Place((end, start), self, 1, row)
        match self.policy.ties:
            case "longest":
                return _Place((start, -end), self, 0, row)
            case "shortest":
                return _Place((start, end), self, 0, row)
            case "by":
                return _Place((start, _Greatest(self.by(0, row)), end), self, 0, row)
            case _:
                assert_never(self.policy.ties)

    # Steps

    def step(self) -> None:
        touched: dict[tuple[int, ...], _KeyGroup] = {}
        for side in (0, 1):
            for row in self.losses(side).tolist():
                self.leave(side, row, touched)
        for side in (0, 1):
            rows = self.gains(side)
            if len(rows):
                self.come(side, rows, touched)
        pairs, frames = list[tuple[int, int]](), list[Frame]()
        for group in touched.values():
            if group.undecided is not None:
                self.decide(group, pairs, frames)
        if pairs:
            lefts, rights = np.array(pairs, np.int64).T
            frames.append(self.frame(lefts, rights))
        for frame in frames:
            store(frame, self.out)

    def _touch(
        self, group: _KeyGroup, spot: _Place, key: tuple[int, ...], touched: dict[tuple[int, ...], _KeyGroup]
    ) -> None:
        if group.undecided is None or spot < group.undecided:
            group.undecided = spot
        touched[key] = group

    def leave(self, side: int, row: int, touched: dict[tuple[int, ...], _KeyGroup]) -> None:
        key = self.key(side, row)
        if key is None or key not in self.groups:
            return
        group, spot = self.groups[key], self.placement(side, row)
        if side == 1:
            del group.rights[_at(group.rights, spot)]
            left = group.taken.pop(row, None)
            if left is not None:
                self._drop(left, row)
                insort(group.free, self.placement(0, left))
                self._touch(group, spot, key, touched)
            return
        right = self.pair_of.get(row)
        if right is None:
            del group.free[_at(group.free, spot)]
            return
        group.taken.pop(right)
        self._drop(row, right)
        self._touch(group, self.placement(1, right), key, touched)

    def come(self, side: int, rows: RowIds, touched: dict[tuple[int, ...], _KeyGroup]) -> None:
        data = self.inputs[side].table.data
        times = zip(rows.tolist(), data[START, rows].tolist(), data[END, rows].tolist(), strict=True)
        for key, (row, start, end) in zip(self.keys_of(side, rows), times, strict=True):
            if key is None:
                continue
            group = self.groups.get(key)
            if group is None:
                group = self.groups[key] = _KeyGroup()
            spot = self.placed(side, row, start, end)
            _insert(group.rights if side == 1 else group.free, spot)
            if side == 1:
                self._touch(group, spot, key, touched)
            elif group.rights and group.rights[-1].numbers[0] > end:
                later = bisect_right(group.rights, end, key=lambda p: p.numbers[0])
                self._touch(group, group.rights[later], key, touched)

    def decide(self, group: _KeyGroup, pairs: list[tuple[int, int]], frames: list[Frame]) -> None:
        """Decides again from a right part on; pairs that stay as they are are left alone, new ones are added to the lists."""
        assert group.undecided is not None
        rights = group.rights[bisect_left(group.rights, group.undecided) :]
        group.undecided = None
        before: dict[int, int] = {}
        for spot in rights if group.taken else ():
            left = group.taken.pop(spot.row, None)
            if left is not None:
                before[spot.row] = left
                insort(group.free, self.placement(0, left))
        for spot in rights:
            right = spot.row
            index, frame = self.first(group, spot)
            old, taken = before.get(right), -1 if index < 0 else group.free[index].row
            if old is not None and old != taken:
                self._drop(old, right)
            if index < 0:
                continue
            del group.free[index]
            group.taken[right] = taken
            if old != taken:
                self.pair_of[taken] = right
                if frame is None:
                    pairs.append((taken, right))
                else:
                    frames.append(frame)

    def first(self, group: _KeyGroup, right: _Place) -> tuple[int, Frame | None]:
        """Where the first free left part stands that is a candidate, -1 without any; and the rows of the pair, where more
        than times decides."""
        (end, start), free = right.numbers, group.free
        start_index = 0 if self.longest is None else bisect_left(free, end - self.longest, key=lambda p: p.numbers[0])
        if self.simple:  # times alone decide
            for index in range(start_index, len(free)):
                if free[index].numbers[0] >= start:
                    break
                self.touched += 1
                if self.meets(free[index].row, right.row):
                    return index, None
            return -1, None
        while start_index < len(free):
            some = [p for p in free[start_index : start_index + _AT_ONCE] if p.numbers[0] < start]
            if not some:
                break
            self.touched += len(some)
            frame = self.candidates(np.array([p.row for p in some], np.int64), right.row)
            if len(frame):
                partners = set(frame.left.tolist())
                index, chosen = next((i, p.row) for i, p in enumerate(some, start_index) if p.row in partners)
                return index, frame.where(frame.left == chosen)
            start_index += _AT_ONCE
        return -1, None

    def meets(self, left: int, right: int) -> bool:
        """Whether a pair meets the bounds on its times."""
        rows = (self.inputs[0].table.data, left), (self.inputs[1].table.data, right)
        for x_side, x, y_side, y, limit in self.limits:
            (left_data, i), (other, j) = rows[x_side], rows[y_side]
            if left_data[x, i] - other[y, j] > limit:
                return False
        return True

    def candidates(self, lefts: Array, right: int) -> Frame:
        """The pairs with a right part that meet all conditions."""
        data, other = self.inputs[0].table.data, self.inputs[1].table.data
        mask = np.ones(len(lefts), bool)
        for x_side, x, y_side, y, limit in self.relation.bounds[0].tolist():
            left_times = data[x, lefts] if x_side == 0 else other[x, right]
            two = data[y, lefts] if y_side == 0 else other[y, right]
            mask &= left_times - two <= limit
        lefts = lefts[mask]
        frame = self.frame(lefts, np.full(len(lefts), right, np.int64))
        self.runtime.context.name_events = self.name_events
        return self.runtime.context.select(self.where, frame, self.rule)

    def _drop(self, left: int, right: int) -> None:
        """Takes a pair back."""
        if self.pair_of.get(left) == right:
            del self.pair_of[left]
        links, out = self.links[1], self.out.table
        rows = [r for r in links.of(right) if out.data[LEFT, r] == left]
        if rows:
            out.kill(np.array(rows, np.int64))

    def retain(self, keep: dict[int, Array], frontier: int | None, since: Mapping[int, int]) -> None:
        """Consumed parts stay so while they could be taken again."""
        table = self.out.table
        alive = table.stands()
        for field, parent in self.parents():
            rows = table.data[field, : table.n]
            keep[id(table)] |= alive & (rows >= 0) & keep[id(parent)][rows]

    def check(self) -> None:
        check_either(self)

    def rebuild(self) -> None:
        super().rebuild()
        self.clear()
        out = self.out.table
        for row in out.standing().tolist():
            self.pair_of[int(out.data[LEFT, row])] = int(out.data[RIGHT, row])
        self.pair_of.pop(-1, None)
        for side in (0, 1):
            table = self.inputs[side].table
            for row in table.standing().tolist():
                key = self.key(side, row)
                if key is None:
                    continue
                group = self.groups.setdefault(key, _KeyGroup())
                if side == 1:
                    group.rights.append(self.placement(1, row))
                elif row not in self.pair_of:
                    group.free.append(self.placement(0, row))
                elif self.pair_of[row] >= 0:
                    group.taken[self.pair_of[row]] = row
        for group in self.groups.values():
            group.free.sort()
            group.rights.sort()


def _insert(queue: list[_Place], spot: _Place) -> None:
    """Puts a row into a queue; rows mostly come in order."""
    if not queue or queue[-1].numbers < spot.numbers:
        queue.append(spot)
    else:
        insort(queue, spot)


def _at(queue: list[_Place], spot: _Place) -> int:
    """Where a row stands in a queue."""
    index = bisect_left(queue, spot)
    while queue[index].row != spot.row:
        index += 1
    return index


class ChooseChronological(Choose):
    """Later parts in the order of events, each takes the first candidate that is not used up.

    With `per`, a part is used up for one value only: candidates with other values are other queues in one list. A change in the past decides anew all that comes after it, which the lateness bounds.
    """

    def clear(self) -> None:
        super().clear()
        self.queue: list[_Later] = []
        self.by_later: dict[Key, _Later] = {}
        self.used: set[_Use] = set()

    def per(self, row: int, earlier: int, pair: int) -> OrderKey:
        return self.values(self.inputs[0], row, self.policy.per)

    def decide(self, gone: list[Candidate], come: list[Candidate]) -> tuple[set[int], set[int]]:
        touched: list[_Later] = []
        for candidate in gone:
            later = self.by_later[group_of(candidate)]
            later.candidates.remove(candidate)
            touched.append(later)
        touched.extend(self.enter(candidate) for candidate in come)
        if not touched:
            return set(), set()
        index = bisect_left(self.queue, min(touched))
        before = {c.row: None for later in self.queue[index:] for c in later.taken}
        before.update({c.row: None for c in gone})
        for later in self.queue[index:]:
            self.used -= later.uses
            later.uses, later.taken = set(), []
        for later in self.queue[index:]:
            self.touched += len(later.candidates)
            later.decide(self)
        for later in touched:
            if not later.candidates and self.by_later.get(later.group) is later:
                del self.by_later[later.group]
                self.queue.remove(later)
        now = {c.row for later in self.queue[index:] for c in later.taken}
        return now - before.keys(), before.keys() - now

    def enter(self, candidate: Candidate) -> _Later:
        """Adds a candidate to those of its later part."""
        key = group_of(candidate)
        if key not in self.by_later:
            self.by_later[key] = _Later(candidate.later, candidate.side, candidate.per)
            insort(self.queue, self.by_later[key])
        self.by_later[key].candidates.append(candidate)
        return self.by_later[key]

    def resume(self, candidates: list[Candidate]) -> None:
        """Reads the choices from its table: deciding again needs pairs that may be forgotten, and those before them."""
        for candidate in candidates:
            self.enter(candidate)
        out = self.out.table
        for row in out.data[LEFT, out.standing()].tolist():
            chosen = self.candidates[row]
            if chosen is not None:
                self.used |= self.by_later[group_of(chosen)].take(chosen)

    def wants(self, port: int, horizon: Horizon) -> Array | None:
        """Consumed parts stay so while they could be taken again: by a part that comes, or by one that decides anew."""
        table, pairs = self.inputs[0].table, self.join.out.table
        undecided = pairs.stands() & (pairs.data[END, : pairs.n] >= horizon.since[id(table)])
        least = FAR
        for field, view in zip((LEFT, RIGHT), self.join.inputs, strict=False):
            wanted = horizon.wanted(view.table)
            wanted[pairs.data[field, : pairs.n][undecided]] = True
            least = min(least, int(view.table.data[END, : view.table.n][wanted].min(initial=FAR)))
        return table.data[END, : table.n] >= least

    def retain(self, keep: dict[int, Array], frontier: int | None, since: Mapping[int, int]) -> None:
        """A candidate that is kept keeps the choice of it."""
        table = self.out.table
        keep[id(table)] |= table.stands() & keep[id(self.inputs[0].table)][table.data[LEFT, : table.n]]


class _Later:
    """A later part with its candidates, of one value of `per`, and the pair that it has taken."""

    def __init__(self, occurrence: Occurrence, side: int, per: OrderKey) -> None:
        self.occurrence, self.side, self.per = occurrence, side, per
        self.group = (side, occurrence, per)
        self.candidates: list[Candidate] = []
        self.taken: list[Candidate] = []
        self.uses: set[_Use] = set()

    def __lt__(self, other: _Later) -> bool:
        if self.occurrence.parts == other.occurrence.parts:
            return self.side < other.side
        return self.occurrence < other.occurrence

    def take(self, candidate: Candidate) -> set[_Use]:
        """Adds a row of the pair that is taken; what it uses up."""
        self.taken.append(candidate)
        self.uses = {(self.side, self.occurrence, self.per), (1 - self.side, candidate.earlier, self.per)}
        return self.uses

    def decide(self, choose: ChooseChronological) -> None:
        """The first candidate that is not used up, by its start; both are used up then, each in its role."""
        if self.group in choose.used:
            return
        free = [c for c in self.candidates if (1 - self.side, c.earlier, self.per) not in choose.used]
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
        for candidate in level[chosen]:
            choose.used |= self.take(candidate)
