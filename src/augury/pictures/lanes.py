"""The lanes of a timeline: events as columns, so that a million of them fit, and the parts of each event."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from augury.core.arrays import Array, RowIds, Times
from augury.core.clock import Clock
from augury.core.errors import RunError, nearest
from augury.core.model import Event

Kind = Literal["event", "derived", "detected"]
Selection = Event | str | Iterable[Event | str] | None
_FEW = 8  # detections whose derivations are drawn where nothing is selected


@dataclass(frozen=True, eq=False)
class Lane:
    """Events of one type, or of one rule. `gone` are those that were revoked or retracted; `event` makes the event
    of a row.
    """

    name: str
    kind: Kind
    start: Times
    end: Times
    gone: Array
    event: Callable[[int], Event]

    def __len__(self) -> int:
        return len(self.start)

    def some(self, rows: RowIds) -> Lane:
        event = self.event
        return Lane(
            self.name,
            self.kind,
            self.start[rows],
            self.end[rows],
            self.gone[rows],
            lambda row: event(int(rows[row])),
        )

    def find(self, event: Event) -> int | None:
        """The row of an event: the one of its id, else an equal one."""
        rows = np.flatnonzero((self.start == event.start) & (self.end == event.end)).tolist()
        alike = [row for row in rows if self.event(row).content == event.content]
        return next((row for row in alike if self.event(row).id == event.id), alike[0] if alike else None)


def lane_of(name: str, kind: Kind, events: Sequence[Event], gone: bool = False) -> Lane:
    """A lane of events that are there as such."""
    times = np.array([(e.start, e.end) for e in events], np.int64).reshape(-1, 2)
    return Lane(name, kind, times[:, 0], times[:, 1], np.full(len(events), gone), events.__getitem__)


def lanes_of(kind: Kind, events: Iterable[Event], gone: bool = False) -> list[Lane]:
    """A lane of each type."""
    by_type: dict[str, list[Event]] = {}
    for event in events:
        by_type.setdefault(event.type, []).append(event)
    return [lane_of(type, kind, type_events, gone) for type, type_events in by_type.items()]


def joined(lanes: Sequence[Lane]) -> Lane:
    """One lane of several."""
    if len(lanes) == 1:
        return lanes[0]
    firsts = np.cumsum([0, *map(len, lanes)])

    def event(row: int) -> Event:
        which = int(np.searchsorted(firsts, row, side="right")) - 1
        return lanes[which].event(row - int(firsts[which]))

    start, end, gone = (np.concatenate([getattr(lane, name) for lane in lanes]) for name in ("start", "end", "gone"))
    return Lane(lanes[0].name, lanes[0].kind, start, end, gone, event)


@dataclass(frozen=True, eq=False)
class Scene:
    """Lanes from top to bottom, what times mean, and how to find what an event was made of, and by which rule."""

    lanes: tuple[Lane, ...]
    clock: Clock
    parts: Callable[[Event], Sequence[Event]] = field(default=lambda event: ())
    rule: Callable[[Event], str] = field(default=lambda event: event.type)

    def __post_init__(self) -> None:
        by_name: dict[tuple[str, str], list[Lane]] = {}
        for lane in self.lanes:
            if len(lane):
                by_name.setdefault((lane.kind, lane.name), []).append(lane)
        order = ("event", "derived", "detected")
        merged = sorted((joined(named) for named in by_name.values()), key=lambda lane: order.index(lane.kind))
        object.__setattr__(self, "lanes", tuple(merged))

    def only(self, types: Iterable[str] | None, since: int | None, until: int | None) -> Scene:
        """The lanes of some types, and of them what lies at least in part between two times."""
        lanes = self.lanes
        if types is not None:
            wanted, names = list(types), [lane.name for lane in lanes]
            for name in wanted:
                if name not in names:
                    close = nearest(name, names)
                    hint = f"did you mean `{close}`?" if close else f"there is {', '.join(names) or 'nothing'}"
                    raise RunError(f"there is no event of type `{name}`", hint)
            lanes = tuple(lane for lane in lanes if lane.name in wanted)
        if since is not None or until is not None:
            lanes = tuple(lane.some(_between(lane, since, until)) for lane in lanes)
        return replace(self, lanes=lanes)

    def by_rule(self) -> Scene:
        """One lane a rule, where several derive one type."""
        lanes: list[Lane] = []
        for lane in self.lanes:
            if lane.kind == "event":
                lanes.append(lane)
                continue
            rows: dict[str, list[int]] = {}
            for row in range(len(lane)):
                rows.setdefault(self.rule(lane.event(row)), []).append(row)
            lanes += [replace(lane.some(np.array(rule_rows, np.int64)), name=name) for name, rule_rows in rows.items()]
        return replace(self, lanes=tuple(lanes))

    def selected(self, select: Selection) -> list[Event]:
        """The events whose derivations are drawn: those named, all of a type, or the detections where they are few."""
        if select is None:
            detected = [lane for lane in self.lanes if lane.kind == "detected"]
            few = sum(map(len, detected)) <= _FEW
            return [lane.event(row) for lane in detected for row in range(len(lane))] if few else []
        events: list[Event] = []
        for item in [select] if isinstance(select, Event | str) else select:
            if isinstance(item, Event):
                events.append(item)
                continue
            lanes = [lane for lane in self.lanes if lane.name == item]
            if not lanes:
                names = [lane.name for lane in self.lanes]
                raise RunError(f"there is no event of type `{item}`", f"there is {', '.join(names) or 'nothing'}")
            events += [lane.event(row) for lane in lanes for row in range(len(lane))]
        return events


def _between(lane: Lane, since: int | None, until: int | None) -> Array:
    inside = np.ones(len(lane), bool)
    if since is not None:
        inside &= lane.end >= since
    if until is not None:
        inside &= lane.start <= until
    return np.flatnonzero(inside)
