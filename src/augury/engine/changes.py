"""Output changes of a step: inserted and retracted answers."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, overload

import numpy as np

from augury import sinks
from augury.algebra.plan import Plan
from augury.core.arrays import Array, RowIds
from augury.core.clock import Clock
from augury.core.model import Change, Event
from augury.engine.found import FoundAnswers
from augury.engine.trace import StepCache, Traces
from augury.sinks.markup import table
from augury.storage.table import END, NONE, START, grown
from augury.storage.unique import is_in

if TYPE_CHECKING:
    from augury.engine.operators.derive import Derived

NOTHING = FoundAnswers([])
_NO_PLAN, _NO_CLOCK = Plan(), Clock()


class Changes(sinks.Tabular):
    """The changes of a step: answers taken back, then new ones, each in the order of events. Made when looked at.

    `retracted` and `inserted` are the answers; `changes["alarm"]` are those of one type. As a table they have a column `op`.
    """

    __slots__ = ("_clock", "_plan", "_type", "inserted", "retracted")

    def __init__(
        self,
        retracted: FoundAnswers = NOTHING,
        inserted: FoundAnswers = NOTHING,
        plan: Plan = _NO_PLAN,
        clock: Clock = _NO_CLOCK,
        type: str | None = None,
    ) -> None:
        self.retracted, self.inserted = retracted, inserted
        self._plan, self._clock, self._type = plan, clock, type

    def __len__(self) -> int:
        return len(self.retracted) + len(self.inserted)

    @overload
    def __getitem__(self, index: int) -> Change: ...
    @overload
    def __getitem__(self, index: slice) -> list[Change]: ...
    @overload
    def __getitem__(self, index: str) -> Changes: ...
    def __getitem__(self, index: int | slice | str) -> Change | list[Change] | Changes:
        if isinstance(index, str):
            name = self.as_answers().known(index)
            return type(self)(self.retracted.of(name), self.inserted.of(name), self._plan, self._clock, name)
        if isinstance(index, slice):
            return [self[i] for i in range(len(self))[index]]
        place = range(len(self))[index]
        if place < len(self.retracted):
            return Change("retract", self.retracted.event(place))
        return Change("insert", self.inserted.event(place - len(self.retracted)))

    def __iter__(self) -> Iterator[Change]:
        for event in self.retracted.events():
            yield Change("retract", event)
        for event in self.inserted.events():
            yield Change("insert", event)

    def __repr__(self) -> str:
        return f"<Changes: {len(self)}>"

    def as_answers(self) -> sinks.Answers:
        return _answers(self._plan, self._clock, {"retract": self.retracted, "insert": self.inserted}, self._type)

    def _repr_html_(self) -> str:
        return super()._repr_html_() if len(self) else table(["nothing has changed"], [])


class Detected(sinks.Tabular):
    """Answers in the order of events, which are made when looked at; `detected["alarm"]` are those of one type."""

    __slots__ = ("_clock", "_plan", "_type", "found")

    def __init__(self, found: FoundAnswers, plan: Plan, clock: Clock, type: str | None = None) -> None:
        self.found, self._plan, self._clock, self._type = found, plan, clock, type

    def __len__(self) -> int:
        return len(self.found)

    @overload
    def __getitem__(self, index: int) -> Event: ...
    @overload
    def __getitem__(self, index: slice) -> list[Event]: ...
    @overload
    def __getitem__(self, index: str) -> Detected: ...
    def __getitem__(self, index: int | slice | str) -> Event | list[Event] | Detected:
        if isinstance(index, str):
            type = self.as_answers().known(index)
            return Detected(self.found.of(type), self._plan, self._clock, type)
        if isinstance(index, slice):
            return [self.found.event(i) for i in range(len(self))[index]]
        return self.found.event(range(len(self))[index])

    def __iter__(self) -> Iterator[Event]:
        return self.found.events()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Detected | list | tuple):
            return NotImplemented
        return len(self) == len(other) and all(x == y for x, y in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<Detected: {len(self)}>"

    def as_answers(self) -> sinks.Answers:
        return _answers(self._plan, self._clock, {None: self.found}, self._type)


def _answers(plan: Plan, clock: Clock, groups: Mapping[str | None, FoundAnswers], type: str | None) -> sinks.Answers:
    """Answers as they are written, group by group; of one type or of all."""
    if type is not None:
        plan = replace(plan, outputs=(type,))
    hashes, traces = StepCache[Array](), StepCache[Traces]()
    order = [found.which for found in groups.values()]
    firsts = np.cumsum([0, *(len(found.parts) for found in groups.values())])
    which = np.concatenate([own + first for own, first in zip(order, firsts[:-1], strict=True)])
    parts = [rows.part(op, hashes, traces) for op, found in groups.items() for rows in found.parts]
    return sinks.Answers(plan, clock, parts, which if len(parts) > 1 else None, None not in groups)


class TypeAnswers:
    """The answers of one type: which have been given, and which wait for the clock to reach their end."""

    def __init__(self, events: Derived) -> None:
        self.events = events
        self.shown = np.zeros(16, np.uint8)
        self.waiting: list[tuple[int, int]] = []
        self._shows = self._hides = NONE  # what the step gives, and what it takes back
        self.rebuild()

    def step(self, until: int | None, held: Array | None = None) -> tuple[Array, Array]:
        """The rows that are taken back, and the rows that are given, with ends up to `until`, but for those held back.

        They are not yet taken for given: `show` does that, once the step counts.
        """
        table = self.events.out.table
        if len(self.shown) < table.n:
            self.shown = grown(self.shown, 2 * table.n, len(self.shown), 0)
        if self.events.late:
            return self._late_step(until, held)
        lo, hi = table.mark, table.n
        dead = NONE
        if table.killed:
            dead = np.concatenate(table.killed)
            dead = dead[self.shown[dead].astype(bool)]
        new = np.flatnonzero(table.alive[lo:hi]) + lo if hi > lo else NONE
        if len(new):
            ends = table.data[END, new]
            ready = ends <= until if until is not None else np.zeros(len(new), bool)
            ready = ready if held is None else ready & ~held[new]
            if not ready.all():
                for end, row in zip(ends[~ready].tolist(), new[~ready].tolist(), strict=True):
                    heapq.heappush(self.waiting, (end, row))
                new = new[ready]
        due: dict[int, None] = {}  # one may wait twice, where rules were added
        not_yet: list[tuple[int, int]] = []
        while self.waiting and until is not None and self.waiting[0][0] <= until:
            end, row = heapq.heappop(self.waiting)
            if held is not None and held[row]:
                not_yet.append((end, row))
            elif table.alive[row] and not self.shown[row]:
                due[row] = None
        for waits in not_yet:
            heapq.heappush(self.waiting, waits)
        if due:
            more = np.fromiter(due, np.int64, len(due))
            new = np.concatenate([new, more[~is_in(more, new)]]) if len(new) else more
        self._shows, self._hides = new, NONE
        if len(dead) and len(new):
            dead, new = self._net(dead, new)
        self._hides = dead
        return dead, new

    def _late_step(self, until: int | None, held: Array | None) -> tuple[Array, Array]:
        """The same, where events are given after their ends: all that stand are looked at."""
        table = self.events.out.table
        ready, due = np.zeros(table.n, bool), self.events.given_at()
        if until is not None:
            ready = table.stands() & (due <= until)
            ready &= True if held is None else ~held[: table.n]
        shown = self.shown[: table.n].astype(bool)
        dead, new = np.flatnonzero(shown & ~ready), np.flatnonzero(ready & ~shown)
        self._wait(np.flatnonzero(table.stands() & ~ready), due)
        self._shows, self._hides = new, dead
        if len(dead) and len(new):
            dead, new = self._net(dead, new)
        return dead, new

    def show(self) -> None:
        """The step counts: what it gives is given. It may be broken off and called again."""
        self.shown[self._hides] = 0
        self.shown[self._shows] = 1
        self._shows = self._hides = NONE

    def _net(self, dead: Array, new: Array) -> tuple[Array, Array]:
        """An answer that was taken back and given again has not changed."""
        table = self.events.out.table

        def contents(rows: RowIds) -> list[bytes]:
            fields = [table.data[START, rows], table.data[END, rows]]
            fields += [table.dictionary.canonical(table.data[f, rows]) for f in table.codes]
            return [row.tobytes() for row in np.stack(fields, axis=1)]

        before = dict(zip(contents(dead), dead.tolist(), strict=True))
        ends = np.sort(table.data[END, dead])
        found = np.searchsorted(ends, table.data[END, new])
        alike = np.flatnonzero(ends[np.minimum(found, len(ends) - 1)] == table.data[END, new])  # few end as they did
        same = [before.pop(content, None) is not None for content in contents(new[alike])]
        kept = np.ones(len(new), bool)
        kept[alike[same]] = False
        return np.array(sorted(before.values()), np.int64), new[kept]

    def standing(self) -> RowIds:
        """The rows that have been given and stand."""
        table = self.events.out.table
        n = min(table.n, len(self.shown))
        return np.flatnonzero(self.shown[:n] & table.alive[:n])

    def unshown(self) -> Array:
        """The rows that stand and have not been given yet."""
        table = self.events.out.table
        stands = table.stands()
        n = min(table.n, len(self.shown))
        stands[:n] &= self.shown[:n] == 0
        return np.flatnonzero(stands)

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
        """After an undo or a restore; `shown` is state and has been put right. It may be broken off and called again."""
        self._shows = self._hides = NONE
        table = self.events.out.table
        if len(self.shown) < table.n:
            self.shown = grown(self.shown, 2 * table.n, len(self.shown), 0)
        self.shown[table.n :] = 0
        self._wait(self.unshown(), table.data[END])

    def _wait(self, rows: RowIds, due: Array) -> None:
        """Just these wait, each for its time."""
        self.waiting = [(int(due[row]), row) for row in rows.tolist()]
        heapq.heapify(self.waiting)
