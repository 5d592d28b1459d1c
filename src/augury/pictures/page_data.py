"""A scene as the data of the timeline that pages and notebooks show: lanes of marks or of bins, and what events were made of."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from augury.core.model import Event
from augury.pictures.drawing import label_of
from augury.pictures.lanes import Lane, Scene
from augury.storage.unique import unique

_MARKS = 5000  # events of a lane that are shown one by one
_EDGES = 2000  # of bins, where there are more
_ROOTS = 2000  # derived events that say what they were made of


def page_data(scene: Scene, selected: Iterable[Event], title: str = "") -> dict[str, object]:
    """What the timeline shows; each event that is shown by itself has a number."""
    places: dict[tuple[str, str], int] = {}  # the numbers of events, by type and id
    count = 0
    lanes: list[dict[str, Any]] = []
    derived: list[Event] = []
    lows = [int(lane.start.min()) for lane in scene.lanes]
    highs = [int(lane.end.max()) for lane in scene.lanes]
    low, high = min(lows, default=0), max(highs, default=1)
    for lane in scene.lanes:
        data: dict[str, Any] = {"name": lane.name, "kind": lane.kind, "total": len(lane), "first": count}
        if len(lane) > _MARKS:
            lanes.append(data | {"bins": _bins(lane, low, high)})
            continue
        events = [lane.event(row) for row in range(len(lane))]
        places |= {(event.type, event.id): number for number, event in enumerate(events, count)}
        count += len(events)
        lanes.append(data | {"marks": _marks(lane, events)})
        derived += events if lane.kind != "event" else []
    made = {}
    for event in derived[:_ROOTS]:
        parts = [places[part.type, part.id] for part in scene.parts(event) if (part.type, part.id) in places]
        if parts:
            made[places[event.type, event.id]] = parts
    chosen = [places[event.type, event.id] for event in selected if (event.type, event.id) in places]
    return {
        "title": title, "clock": scene.clock.kind, "low": low, "high": high, "lanes": lanes, "made": made, "selected": chosen,
    }  # fmt: skip


def _marks(lane: Lane, events: list[Event]) -> dict[str, list[object]]:
    return {
        "start": lane.start.tolist(),
        "end": lane.end.tolist(),
        "arrived": lane.end.tolist(),
        "state": [-1 if gone else 0 for gone in lane.gone.tolist()],
        "id": [event.id for event in events],
        "label": [label_of(event) for event in events],
    }


def _bins(lane: Lane, low: int, high: int) -> dict[str, list[int]]:
    """How many events end in each bin."""
    edges = unique(np.linspace(low, high + 1, min(_EDGES, high + 2 - low)).astype(np.int64))
    gone = lane.gone.astype(bool)
    counts = {"standing": lane.end[~gone], "gone": lane.end[gone], "late": lane.end[:0]}
    return {"edges": edges.tolist(), **{name: np.histogram(ends, edges)[0].tolist() for name, ends in counts.items()}}
