"""What an event led to: the derived events that stand and whose derivations rest on it, level by level."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from augury.core.model import Event
from augury.engine.operators.base import Part
from augury.engine.operators.derive import Derive
from augury.engine.runtime import Runtime
from augury.storage.table import END

MOST = 20_000  # derived events that are looked at


@dataclass(frozen=True)
class ForwardTrace:
    """Events that rest on another, the nearest first, and which is directly made of which; `capped` where some were not looked at."""

    events: tuple[Event, ...]
    edges: tuple[tuple[Event, Event], ...]  # a part, and what it is a part of
    capped: bool


def leads_to(circuit: Runtime, event: Event, most: int = MOST) -> ForwardTrace:
    """The derived events that rest on an event, by any of their derivations.

    Every event that rests on another ends no earlier, so only these are looked at, the earliest first.
    """
    wholes, capped = _wholes(circuit, event.end, most)
    keys = {(part_event.type, part_event.id): part for part, part_event in _parts(circuit, wholes, event)}
    start = keys.get((event.type, event.id))
    edges: dict[tuple[Part, Part], None] = {}
    open_parts, seen = [start] if start is not None else [], {_key(start)} if start is not None else set()
    order: list[Part] = []
    while open_parts:
        part = open_parts.pop(0)
        for whole in wholes.get(_key(part), ()):
            if _key(whole) == _key(part):
                continue
            edges[part, whole] = None
            if _key(whole) not in seen:
                seen.add(_key(whole))
                order.append(whole)
                open_parts.append(whole)
    named = {_key(part): circuit.event(part) for part in ([start] if start is not None else []) + order}
    pairs = tuple((named[_key(part)], named[_key(whole)]) for part, whole in edges)
    return ForwardTrace(tuple(named[_key(part)] for part in order), pairs, capped)


def _key(part: Part) -> tuple[int, int]:
    return id(part[0]), part[1]


def _wholes(circuit: Runtime, since: int, most: int) -> tuple[dict[tuple[int, int], list[Part]], bool]:
    """What each event is directly a part of, of the derived events that end at a time or later."""
    rows: list[tuple[int, int, int]] = []
    derived = list(circuit.derived.values())
    for number, events in enumerate(derived):
        table = events.out.table
        standing = table.standing()
        ends = table.data[END, standing]
        rows += [(end, number, row) for end, row in zip(ends.tolist(), standing.tolist(), strict=True) if end >= since]
    rows.sort()
    result: dict[tuple[int, int], list[Part]] = {}
    for _, number, row in rows[:most]:
        events = derived[number]
        whole: Part = (events.out.table, row)
        for links in events.supports:
            maker = circuit.maker(links.child)
            for child in np.asarray(links.of(row)).tolist():
                assert isinstance(maker, Derive)
                for part in maker.parts(child):
                    result.setdefault(_key(part), []).append(whole)
    return result, len(rows) > most


def _parts(circuit: Runtime, wholes: dict[tuple[int, int], list[Part]], event: Event) -> list[tuple[Part, Event]]:
    """The parts that may be the event: those of its type and its times."""
    tables = [
        events.out.table
        for type, events in (*circuit.inputs.items(), *circuit.derived.items())
        if type[0] == event.type
    ]
    result = []
    for table in tables:
        for row in table.standing()[table.data[END, table.standing()] == event.end].tolist():
            if (id(table), row) in wholes:
                result.append(((table, row), circuit.event((table, row))))
    return result
