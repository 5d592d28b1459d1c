"""Throttles: `AT MOST n PER (V) EVERY d` (SEMANTICS 12)."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Mapping
from functools import total_ordering
from typing import TYPE_CHECKING

import numpy as np

from augury.core.arrays import Mask, RowIds
from augury.core.model import OrderKey, order_key
from augury.engine.operators.base import Operator
from augury.engine.operators.choose import Chooser
from augury.engine.operators.derive import events_of
from augury.engine.operators.throttle_tails import ThrottleTails
from augury.planner.specs import EventRowsSpec, ThrottleSpec
from augury.storage.frame import frame_of, store
from augury.storage.table import END, LEFT, START

if TYPE_CHECKING:
    from augury.engine.horizon import Horizon
    from augury.engine.runtime import Runtime

_Codes = tuple[int, ...]
_Entry = tuple[int, _Codes, _Codes]  # a row, the event that it makes, equal ones alike, and its key
_BATCH = 64  # so many rows are worth columns
_MANY = 8  # so many new events of a key are sorted in; fewer are inserted


class EventRows(Operator):
    """For each row of a rule the event that it makes, with its key; rows for which it cannot be computed are left out."""

    kind = "events"

    spec: EventRowsSpec

    def step(self) -> None:
        self.drop_children(0)
        rows = self.gains(0)
        if not len(rows):
            return
        context, frame, spec = self.runtime.context, frame_of(self.inputs[0], rows), self.spec
        context.name_events = self.name_events
        events, ok = events_of(context, frame, self.rule, spec.args, spec.covers, spec.since)
        frame.start, frame.end = events[0], events[1]
        frame.vars |= {name: events[3 + i] for i, name in enumerate(spec.names)}
        store(frame.where(ok), self.out)


@total_ordering
class _ThrottledEvent:
    """An event, with the rows that make it. Ordered by its times; by its arguments only where they tie."""

    __slots__ = ("_order", "accepted", "content", "end", "group", "operator", "rows", "shown", "start")

    def __init__(self, operator: Throttle, content: _Codes, row: int) -> None:
        self.operator, self.content = operator, content
        self.start, self.end = content[:2]
        self.rows: dict[int, _Codes] = {}  # with the key of each
        self.group: _KeyedEvents | None = None
        self.accepted = self.shown = False  # whether it is accepted now, and whether its rows are in the table
        self._order: int | OrderKey = row

    @property
    def order(self) -> OrderKey:
        """The arguments in term order, computed where times tie."""
        if isinstance(self._order, int):
            self._order = self.operator.values(self.operator.args, self._order)
        return self._order

    def __lt__(self, other: _ThrottledEvent) -> bool:
        mine, its = (self.end, self.start), (other.end, other.start)
        return mine < its or (mine == its and self is not other and self.order < other.order)

    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = object.__hash__


class _KeyedEvents:
    """The events with one key, and those of them that are accepted; both in the order of events."""

    __slots__ = ("accepted", "events", "gone", "new")

    def __init__(self) -> None:
        self.events: list[_ThrottledEvent] = []
        self.accepted: list[_ThrottledEvent] = []
        self.new: list[_ThrottledEvent] = []
        self.gone: list[_ThrottledEvent] = []

    def settle(self) -> list[_ThrottledEvent]:
        """Takes in the events that come and go in a step; where decisions may change, in order."""
        changed = sorted([*self.new, *self.gone])
        for event in self.gone:
            del self.events[bisect_left(self.events, event)]
        if len(self.new) > _MANY:
            self.events.extend(self.new)
            self.events.sort()
        else:
            for event in self.new:
                insort(self.events, event)
        self.new, self.gone = [], []
        return changed

    def ending(self, end: int, first: int) -> int:
        """The place of the first event from `first` on that ends at `end` or later."""
        return bisect_left(self.events, end, lo=first, key=_end)


def _end(event: _ThrottledEvent) -> int:
    return event.end


class Throttle(Chooser):
    """Of the events with one key, in their order, those before which fewer than n within `every` are accepted.

    An event looks at the n-th last one that was accepted before it. Many events that come in order are decided by columns
    (`ThrottleTails`). A change in the past decides anew from its place on, from one accepted event to the next, until
    the last n of them are those of before.
    """

    kind = "at most"

    def __init__(self, runtime: Runtime, spec: ThrottleSpec) -> None:
        self.count, self.every, self.owned = spec.count, spec.every, spec.owned
        fields = spec.inputs[0].vars
        self.args = [fields[name] for name in spec.args]
        self.per = [fields[name] for name in spec.per]
        super().__init__(runtime, spec)
        self.tails = ThrottleTails(self.inputs[0].table, self.args, self.per, self.count, self.every)
        self.clear()

    def clear(self) -> None:
        self.events: dict[_Codes, _ThrottledEvent] = {}  # by content
        self.groups: dict[_Codes, _KeyedEvents] = {}
        self.tails.clear()

    def step(self) -> None:
        lost, gained = self.losses(0), self.gains(0)
        gone = self.held(lost)
        if len(gained) >= _BATCH:
            gained = self.step_in_order(gained)
        if len(gained) or gone:
            self.step_singly(gone, self.held(gained))
        if len(lost):
            self.links[0].kill(lost)

    def step_in_order(self, rows: RowIds) -> RowIds:
        """Decides about rows that come after all others of their key; the rest of them."""
        numbers = self.tails.numbers(rows)
        fits = self.tails.fitting(rows, numbers)
        if not fits.any() or (not self.owned and (not fits.all() or self.tails.meets_several(rows, numbers))):
            return rows
        shown = self.tails.take(rows[fits], numbers[fits])
        store(frame_of(self.inputs[0], shown), self.out)
        return rows[~fits]

    def step_singly(self, gone: list[_Entry], come: list[_Entry]) -> None:
        """Decides again where rows come and go in the past."""
        touched = dict[_ThrottledEvent, list[int]]()  # with the new rows of each
        for row, content, _ in gone:
            event = self.events[content]
            del event.rows[row]
            touched.setdefault(event, [])
        for entry in come:
            event = self.enter(*entry)
            touched.setdefault(event, []).append(entry[0])
            self.tails.latest = max(self.tails.latest, event.end)
        flipped = self.decide(touched)
        taken, left = set[int](), set[int]()
        for event in dict.fromkeys((*touched, *flipped)):
            fresh = touched.get(event, [])
            if event.accepted:
                taken.update(fresh if event.shown else event.rows)
            elif event.shown:
                left.update(event.rows.keys() - fresh)
            event.shown = event.accepted
        self.show(taken, left)

    def entries(self, rows: RowIds) -> list[_Entry]:
        """Rows with the events that they make, and their keys."""
        data, canonical = self.inputs[0].table.data, self.runtime.tables.dictionary.canonical

        def codes(fields: list[int]) -> Iterable[_Codes]:
            columns = [canonical(data[field, rows]).tolist() for field in fields]
            return zip(*columns, strict=True) if fields else [()] * len(rows)

        times = zip(data[START, rows].tolist(), data[END, rows].tolist(), strict=True)
        zipped = zip(rows.tolist(), times, codes(self.args), codes(self.per), strict=True)
        return [(row, (*interval, *args), key) for row, interval, args, key in zipped]

    def held(self, rows: RowIds) -> list[_Entry]:
        """The same, once all events are held that a change of them may concern."""
        entries = self.entries(rows)
        missing = {key: row for row, _, key in entries if key not in self.groups}
        if missing:
            numbers = self.tails.numbers(np.array(list(missing.values()), np.int64))
            if not self.owned:  # equal events may have any key
                numbers = np.arange(self.tails.keys.n)
            for number in numbers.tolist():
                if not self.tails.is_handed(number):
                    self.hold(*self.tails.hand_over(number))
            for key in missing:
                self.groups.setdefault(key, _KeyedEvents())
        return entries

    def hold(self, rows: RowIds, shown_mask: Mask) -> None:
        """Holds the events of some rows from now on, as they were decided."""
        events = {self.enter(*entry): None for entry in self.entries(rows)}
        for group in self.regroup(events):
            group.settle()
        shown = set(rows[shown_mask].tolist())
        for event in sorted(events):
            if event.group is not None and not shown.isdisjoint(event.rows):
                event.accepted = event.shown = True
                event.group.accepted.append(event)

    def enter(self, row: int, content: _Codes, key: _Codes) -> _ThrottledEvent:
        """Notes a row of an event."""
        event = self.events.get(content)
        if event is None:
            event = self.events[content] = _ThrottledEvent(self, content, row)
        event.rows[row] = key
        return event

    # Keys

    def values(self, fields: list[int], row: int) -> OrderKey:
        """Values of a row, in term order."""
        decode, data = self.runtime.tables.dictionary.decode, self.inputs[0].table.data
        return tuple(order_key(decode(int(data[field, row]))) for field in fields)

    def group_of(self, event: _ThrottledEvent) -> _KeyedEvents | None:
        """The group of the least key that a row of the event has; None where no row is left."""
        keys = {key: row for row, key in event.rows.items()}
        if not keys:
            return None
        least = next(iter(keys)) if len(keys) == 1 else min(keys, key=lambda key: self.values(self.per, keys[key]))
        group = self.groups.get(least)
        if group is None:
            group = self.groups[least] = _KeyedEvents()
        return group

    def regroup(self, events: Iterable[_ThrottledEvent]) -> dict[_KeyedEvents, None]:
        """Moves events to the groups that their rows say now; the groups in which something has changed."""
        changed: dict[_KeyedEvents, None] = {}
        for event in events:
            before, after = event.group, self.group_of(event)
            if before is after:
                continue
            event.group, event.accepted = after, False
            if before is not None:
                before.gone.append(event)
                changed[before] = None
            if after is not None:
                after.new.append(event)
                changed[after] = None
            else:
                del self.events[event.content]
        return changed

    # Decisions

    def decide(self, touched: Iterable[_ThrottledEvent]) -> list[_ThrottledEvent]:
        """Decides again where events have come or gone: those whose decision may differ."""
        flipped: list[_ThrottledEvent] = []
        for group in self.regroup(touched):
            done: _ThrottledEvent | None = None
            for event in group.settle():
                if done is None or done < event:
                    done = self.redecide(group, event, flipped)
        return flipped

    def redecide(self, group: _KeyedEvents, first: _ThrottledEvent, flipped: list[_ThrottledEvent]) -> _ThrottledEvent:
        """Decides from an event on, until all is as it was: the last event that it has looked at."""
        events, shown = group.events, group.accepted
        low = high = bisect_left(shown, first)  # those accepted from `low` to `high` are decided anew
        position, chosen, same = bisect_left(events, first), list[_ThrottledEvent](), self.count - 1
        event = first
        while same < self.count:
            position = self.next_place(group, position, low, chosen)
            if position == len(events):
                event, high = max([first, *events[-1:]]), len(shown)
                break
            event, position = events[position], position + 1
            while high < len(shown) and shown[high] < event:
                high, same = high + 1, 0
            if high < len(shown) and shown[high] is event:
                high, same = high + 1, same + 1
            else:
                same = 0
            chosen.append(event)
            self.touched += 1
        for other in shown[low:high]:
            if other.group is group:
                other.accepted = False
        for other in chosen:
            other.accepted = True
        flipped += [*shown[low:high], *chosen]
        shown[low:high] = chosen
        return event

    def next_place(self, group: _KeyedEvents, position: int, low: int, chosen: list[_ThrottledEvent]) -> int:
        """The place of the next event that is accepted, after the first `low` of those before and the ones chosen."""
        if low + len(chosen) < self.count:
            return position
        if self.every is None:
            return len(group.events)
        back = self.count - len(chosen)
        last = group.accepted[low - back] if back > 0 else chosen[-self.count]
        return group.ending(last.end + self.every, position)

    # What it keeps

    def rebuild(self) -> None:
        super().rebuild()
        self.clear()
        out, rows = self.out.table, self.inputs[0].table.standing()
        if not len(rows):
            return
        shown = np.zeros(self.inputs[0].table.n, bool)
        shown[out.data[LEFT, out.standing()]] = True
        numbers = self.tails.numbers(rows)
        if self.owned or not self.tails.meets_several(rows, numbers):
            self.tails.take(rows, numbers, shown[rows])
            return
        for number in range(self.tails.keys.n):
            self.tails.hand_over(number)
        self.hold(rows, shown[rows])
        self.tails.latest = int(self.inputs[0].table.data[END, rows].max())

    def wants(self, port: int, horizon: Horizon) -> Mask:
        """Accepted events, as long as they count: without `every`, for ever."""
        table, out = self.inputs[0].table, self.out.table
        wanted = np.zeros(table.n, bool)
        rows = out.data[LEFT, out.standing()]
        if self.every is not None:
            rows = rows[table.data[END, rows] > horizon.since[id(table)] - self.every]
        wanted[rows] = True
        return wanted

    def remembers(self, horizon: Horizon) -> bool:
        return self.every is None

    @property
    def bytes(self) -> int:
        return super().bytes + self.tails.bytes

    def retain(self, keep: dict[int, Mask], frontier: int | None, since: Mapping[int, int]) -> None:
        """A row that is kept stays as it was decided."""
        table = self.out.table
        keep[id(table)] |= table.stands() & keep[id(self.inputs[0].table)][table.data[LEFT, : table.n]]
