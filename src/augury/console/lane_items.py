"""What a lane of the timeline shows: events of one type as columns, with the steps at which each came and went."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from augury.core.arrays import Array
from augury.core.model import Event, show_value
from augury.pictures.drawing import label_of
from augury.pictures.lanes import Kind

STANDING, LATE, REFUSED = 0, 1, 2  # what came of an input: late ones arrived after later events
NEVER = 2**62
MARKS = 300  # items of a lane that are sent one by one
_LONGEST = 40  # letters of a label


@dataclass
class LaneItems:
    """The events of a type and arity. `appeared` and `gone` are steps; `arrived` is the clock when an item came."""

    name: str
    kind: Kind
    arity: int
    start: array[int] = field(default_factory=lambda: array("q"))
    end: array[int] = field(default_factory=lambda: array("q"))
    appeared: array[int] = field(default_factory=lambda: array("q"))
    gone: array[int] = field(default_factory=lambda: array("q"))
    arrived: array[int] = field(default_factory=lambda: array("q"))
    state: array[int] = field(default_factory=lambda: array("b"))
    events: list[Event] = field(default_factory=list)
    rows: dict[str, int] = field(default_factory=dict)  # the latest row of each id
    _matching: dict[str, tuple[int, Array]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.start)

    def add(self, event: Event, step: int, arrived: int, state: int = STANDING) -> None:
        self.rows[event.id] = len(self.start)
        self.start.append(event.start)
        self.end.append(event.end)
        self.appeared.append(step)
        self.gone.append(NEVER)
        self.arrived.append(arrived)
        self.state.append(state)
        self.events.append(event)

    def remove(self, id: str, step: int) -> bool:
        """Marks the item of an id as gone; whether there is one."""
        row = self.rows.get(id)
        if row is None:
            return False
        self.gone[row] = min(self.gone[row], step)
        return True

    def forget(self, count: int) -> None:
        """Forgets the oldest items."""
        for column in (self.start, self.end, self.appeared, self.gone, self.arrived, self.state):
            del column[:count]
        del self.events[:count]
        self.rows = {event.id: row for row, event in enumerate(self.events)}
        self._matching.clear()

    def matching(self, text: str) -> Array:
        """Which items have an argument that is written like this, or whose text it is part of. More items may come."""
        before, mask = self._matching.get(text, (0, np.zeros(0, bool)))
        events = self.events[before:]
        if events:
            wanted = text.casefold()
            more = [any(wanted in show_value(arg).casefold() for arg in event.args) for event in events]
            mask = np.concatenate([mask, np.array(more, bool)])
            if len(self._matching) >= 8:
                self._matching.clear()
            self._matching[text] = (len(self.events), mask)
        return mask

    def columns(self, step: int, text: str = "") -> LaneColumns:
        """The items that there were after a step; `text` is part of an argument of each."""
        appeared = np.array(self.appeared, np.int64)
        rows = np.flatnonzero((appeared <= step) & self.matching(text) if text else appeared <= step)
        start, end, gone, arrived = (
            np.array(column, np.int64)[rows] for column in (self.start, self.end, self.gone, self.arrived)
        )
        return LaneColumns(self, rows, start, end, gone <= step, arrived, np.array(self.state, np.int8)[rows])


@dataclass(frozen=True, eq=False)
class LaneColumns:
    """Items of a lane as of a step."""

    lane: LaneItems
    rows: Array
    start: Array
    end: Array
    gone: Array
    arrived: Array
    state: Array

    def __len__(self) -> int:
        return len(self.rows)

    def shown(self, edges: Array) -> dict[str, Any]:
        """The lane between the first and the last edge: its items where they are few, else how many touch each bin."""
        lane = self.lane
        inside = np.flatnonzero((self.end >= edges[0]) & (self.start <= edges[-1]))
        shown: dict[str, Any] = {
            "name": lane.name, "kind": lane.kind, "arity": lane.arity, "total": len(self), "count": len(inside),
            "gone": int(self.gone.sum()),
        }  # fmt: skip
        if len(inside) <= MARKS:
            return shown | {"marks": self._marks(inside[np.argsort(self.start[inside], kind="stable")])}
        return shown | {"bins": self._bins(inside, edges)}

    def _marks(self, chosen: Array) -> dict[str, list[object]]:
        events = [self.lane.events[row] for row in self.rows[chosen].tolist()]
        state = np.where(self.gone[chosen], -1, self.state[chosen])
        return {
            "start": self.start[chosen].tolist(),
            "end": self.end[chosen].tolist(),
            "arrived": self.arrived[chosen].tolist(),
            "state": state.tolist(),
            "id": [event.id for event in events],
            "label": [label_of(event, _LONGEST) for event in events],
        }

    def _bins(self, inside: Array, edges: Array) -> dict[str, list[int]]:
        stands = inside[~self.gone[inside]]
        late = stands[self.state[stands] != STANDING]
        counts = {"standing": stands, "gone": inside[self.gone[inside]], "late": late}
        return {name: touching(self.start[rows], self.end[rows], edges).tolist() for name, rows in counts.items()}


def touching(start: Array, end: Array, edges: Array) -> Array:
    """How many intervals touch each bin between two edges."""
    bins = len(edges) - 1
    first = np.clip(np.searchsorted(edges, start, side="right") - 1, 0, bins - 1)
    last = np.clip(np.searchsorted(edges, end, side="right") - 1, 0, bins - 1)
    steps = np.bincount(first, minlength=bins + 1) - np.bincount(last + 1, minlength=bins + 1)
    return np.cumsum(steps)[:bins]
