"""Facts that events make, as lanes of a timeline: a bar for as long as a fact holds."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from augury.algebra.nodes import HOLDING, held_by
from augury.core.arrays import RowIds
from augury.core.bounds import MAX_TIME, MIN_TIME
from augury.core.model import Event, Value, content_id, order_key
from augury.engine.runtime import Runtime
from augury.knowledge.solving.held_answers import fact_intervals
from augury.knowledge.solving.relation import FactRelation
from augury.pictures.lanes import Lane
from augury.storage.table import END, START


def held_lanes(circuit: Runtime, now: int | None) -> Iterator[Lane]:
    """A lane for each predicate of which events make facts. A fact that has not ended holds to the end of the picture."""
    first, last = _times(circuit, now)
    for predicate in circuit.plan.made:
        relation = circuit.knowledge.relations.get(predicate)
        if relation is None or first > last:
            continue
        which, start, end = fact_intervals(relation, np.arange(relation.rows.n))
        start, end = np.maximum(start, first), np.minimum(end, last)
        shown = start <= end
        yield _lane(circuit, relation, predicate[0], which[shown], np.stack([start[shown], end[shown]]))


def made_by(circuit: Runtime, event: Event) -> Event | None:
    """The event that made the fact of a bar."""
    held = held_by((event.type, len(event.args)))
    makes = circuit.plan.made.get(held) if held is not None else None
    makers = circuit.derived.get(makes[0]) if makes is not None else None
    if makers is None:
        return None
    for row in makers.out.table.ending(event.start, event.start + 1).tolist():
        made = makers.event(row)
        if list(map(order_key, made.args)) == list(map(order_key, event.args)):
            return made
    return None


def _times(circuit: Runtime, now: int | None) -> tuple[int, int]:
    """The first time of an event, and the last, or that of the clock."""
    first, last = MAX_TIME, MIN_TIME
    for events in circuit.inputs.values():
        data, n = events.out.table.data, events.out.table.n
        if n:
            first, last = min(first, int(data[START, :n].min())), max(last, int(data[END, :n].max()))
    clock = circuit.now if now is None else now
    return first, last if clock is None else max(last, clock)


def _lane(circuit: Runtime, relation: FactRelation, name: str, which: RowIds, times: RowIds) -> Lane:
    decode = circuit.knowledge.words.decode

    def event(row: int) -> Event:
        fact, (start, end) = int(which[row]), times[:, row].tolist()
        args: tuple[Value, ...] = tuple(decode(int(column[fact])) for column in relation.rows.data)
        type = HOLDING + name
        return Event(type, args, start, end, content_id(type, args, start, end))

    return Lane(name, "derived", times[0], times[1], np.zeros(len(which), bool), event)
