"""What a step says: the answers that have appeared and those that are taken back."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Literal, TypeAlias, overload

import numpy as np

from augury.engine.kernels import Array
from augury.engine.table import END, NONE, START, grown
from augury.model import Change, Event

if TYPE_CHECKING:
    from augury.engine.circuit import Circuit
    from augury.engine.operators.derive import Derived

Op = Literal["insert", "retract"]


class Changes(Sequence[Change]):
    """The changes of a step: answers taken back, then new ones, each in the order of events. Made when looked at.

    `found` says which rows they are, for those who want them as columns: the answers of a type, the rows that are taken
    back and those that are given. It holds until they are made, so that no row has moved since.
    """

    def __init__(self, make: Callable[[], list[Change]], count: int, found: Found | None = None) -> None:
        self._make: Callable[[], list[Change]] | None = make
        self._count = count
        self.found = found
        self._list: list[Change] | None = None if count else []

    def __len__(self) -> int:
        return self._count

    def materialise(self) -> list[Change]:
        if self._list is None:
            assert self._make is not None
            self._list, self._make, self.found = self._make(), None, None
        return self._list

    @overload
    def __getitem__(self, index: int) -> Change: ...
    @overload
    def __getitem__(self, index: slice) -> list[Change]: ...
    def __getitem__(self, index: int | slice) -> Change | list[Change]:
        return self.materialise()[index]

    def __iter__(self) -> Iterator[Change]:
        return iter(self.materialise())

    def __repr__(self) -> str:
        return f"<Changes: {len(self)}>"


class Answers:
    """The answers of one type: which have been given, and which wait for the clock to reach their end."""

    def __init__(self, events: Derived) -> None:
        self.events = events
        self.shown = np.zeros(16, np.uint8)
        self.waiting: list[tuple[int, int]] = []
        self.rebuild()

    def step(self, until: int | None) -> tuple[Array, Array]:
        """The rows that are taken back, and the rows that are given, with ends up to `until`."""
        table = self.events.out.table
        if len(self.shown) < table.n:
            self.shown = grown(self.shown, 2 * table.n, len(self.shown), 0)
        lo, hi = table.mark, table.n
        dead = NONE
        if table.killed:
            dead = np.concatenate(table.killed)
            dead = dead[self.shown[dead].astype(bool)]
        new = np.flatnonzero(table.alive[lo:hi]) + lo if hi > lo else NONE
        if len(new):
            ends = table.data[END, new]
            ready = ends <= until if until is not None else np.zeros(len(new), bool)
            if not ready.all():
                for end, row in zip(ends[~ready].tolist(), new[~ready].tolist(), strict=True):
                    heapq.heappush(self.waiting, (end, row))
                new = new[ready]
            self.shown[new] = 1
        due: list[int] = []
        while self.waiting and until is not None and self.waiting[0][0] <= until:
            row = heapq.heappop(self.waiting)[1]
            if table.alive[row] and not self.shown[row]:
                self.shown[row] = 1  # it may wait twice, where rules were added
                due.append(row)
        if due:
            new = np.concatenate([new, np.array(due, np.int64)])
        if len(dead) and len(new):
            dead, new = self._net(dead, new)
        self.shown[dead] = 0
        self.shown[new] = 1
        return dead, new

    def _net(self, dead: Array, new: Array) -> tuple[Array, Array]:
        """An answer that was taken back and given again has not changed."""
        table = self.events.out.table

        def contents(rows: Array) -> list[bytes]:
            fields = [table.data[START, rows], table.data[END, rows]]
            fields += [table.dictionary.canonical(table.data[f, rows]) for f in table.codes]
            return [row.tobytes() for row in np.stack(fields, axis=1)]

        before = dict(zip(contents(dead), dead.tolist(), strict=True))
        kept = []
        for content, row in zip(contents(new), new.tolist(), strict=True):
            if before.pop(content, None) is None:
                kept.append(row)
            else:
                self.shown[row] = 1
        return np.array(sorted(before.values()), np.int64), np.array(kept, np.int64)

    def standing(self) -> Array:
        """The rows that have been given and stand."""
        table = self.events.out.table
        n = min(table.n, len(self.shown))
        return np.flatnonzero(self.shown[:n] & table.alive[:n])

    def moved(self, place: Array) -> None:
        """After a compaction."""
        table = self.events.out.table
        shown = np.zeros(len(table.alive), np.uint8)
        n = min(len(self.shown), len(place) - 1)
        old = np.flatnonzero(self.shown[:n].astype(bool) & (place[:n] >= 0))
        shown[place[old]] = 1
        self.shown = shown
        self.rebuild()

    def rebuild(self) -> None:
        """After an undo or a restore; `shown` is state and has been put right."""
        table = self.events.out.table
        if len(self.shown) < table.n:
            self.shown = grown(self.shown, 2 * table.n, len(self.shown), 0)
        self.shown[table.n :] = 0
        rows = np.flatnonzero(table.alive[: table.n].astype(bool) & (self.shown[: table.n] == 0)).tolist()
        self.waiting = [(int(table.data[END, row]), row) for row in rows]
        heapq.heapify(self.waiting)


Found: TypeAlias = list[tuple[Answers, Array, Array]]


def make_changes(circuit: Circuit, found: Found, trace: Callable[[Derived, int], tuple[str, ...]]) -> Changes:
    """The changes of a step, made into events when somebody looks."""
    count = sum(len(dead) + len(new) for _, dead, new in found)

    def event(answers: Answers, row: int) -> Event:
        one = circuit.event((answers.events.out.table, row))
        return Event(one.type, one.args, one.start, one.end, one.id, trace(answers.events, row))

    def make() -> list[Change]:
        result: list[Change] = []
        for retracted in (True, False):
            rows = [(answers, row) for answers, dead, new in found for row in (dead if retracted else new).tolist()]
            events = sorted((event(answers, row) for answers, row in rows), key=lambda e: e.order)
            result += [Change("retract" if retracted else "insert", e) for e in events]
        return result

    return Changes(make, count, found)
