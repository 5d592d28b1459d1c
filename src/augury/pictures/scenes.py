"""The events that a circuit holds, as lanes of a timeline."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property

import numpy as np

from augury.algebra.plan import Plan
from augury.core.arrays import RowIds
from augury.core.clock import Clock
from augury.core.model import Event
from augury.engine.events import Events
from augury.engine.operators.derive import Derived
from augury.engine.runtime import Runtime
from augury.entailment import Derivation
from augury.explain.derivations import CircuitDerivations
from augury.pictures import Lane, Scene, lanes_of
from augury.pictures.held_lanes import held_lanes, made_by
from augury.sinks import AnswerPart, Answers
from augury.storage.table import END, START, Table


def scene_of(
    circuit: Runtime,
    plan: Plan,
    clock: Clock,
    answers: Answers[Event],
    gone: Answers[Event] | Sequence[Event] = (),
    now: int | None = None,
) -> Scene:
    """The inputs that the session holds, the events derived from them, and the answers, including retracted ones."""
    lanes = [*_inputs(circuit), *held_lanes(circuit, now)]
    makers = {type for types in plan.made.values() for type in types}
    for (name, arity), derived in circuit.derived.items():
        if name not in plan.outputs and (name, arity) in plan.derived and (name, arity) not in makers:
            table = derived.out.table
            rows = table.standing()
            lanes.append(_lane(circuit, name, table, rows if now is None else rows[table.data[END, rows] <= now]))
    lanes += [_answers(rows, gone=False) for rows in answers.parts]
    if isinstance(gone, Answers):
        lanes += [_answers(rows, gone=True) for rows in gone.parts]
    else:
        lanes += lanes_of("detected", gone, gone=True)
    held = _SceneDerivations(circuit)
    return Scene(tuple(lanes), clock, held.parts, held.rule)


def _inputs(circuit: Runtime) -> Iterator[Lane]:
    """Revoked events are rows that are dead."""
    for type, events in circuit.inputs.items():
        if type not in circuit.derived:
            table = events.out.table
            data, n = table.data, table.n
            gone = table.alive[:n] == 0
            yield Lane(type[0], "event", data[START, :n].copy(), data[END, :n].copy(), gone, _maker(circuit, table))


def _lane(circuit: Runtime, name: str, table: Table, rows: RowIds) -> Lane:
    start, end = table.data[START, : table.n], table.data[END, : table.n]
    make = _maker(circuit, table)
    return Lane(name, "derived", start, end, np.zeros(table.n, bool), make).some(rows)


def _maker(circuit: Runtime, table: Table) -> Callable[[int], Event]:
    return lambda row: circuit.event((table, row))


def _answers(rows: AnswerPart, gone: bool) -> Lane:
    return Lane(rows.type, "detected", rows.start, rows.end, np.full(len(rows), gone), rows.event)


class _SceneDerivations:
    """How events were derived, as far as a circuit holds it."""

    def __init__(self, circuit: Runtime) -> None:
        self.circuit, self.derivations = circuit, CircuitDerivations(circuit, None)

    def parts(self, event: Event) -> Sequence[Event]:
        """What an event was made of: by its first derivation; where that is gone, the inputs of its trace."""
        ways = self._ways(made_by(self.circuit, event) or event)
        if ways is None:
            return [source for id in event.trace if (source := self._input(id)) is not None]
        return [part for part in ways[0].parts if part.id != event.id] if ways else []

    def rule(self, event: Event) -> str:
        ways = self._ways(event)
        return ways[0].rule or event.type if ways else event.type

    def _ways(self, event: Event) -> list[Derivation] | None:
        """The derivations of an event that stands; None of another."""
        derived = self.circuit.derived.get((event.type, len(event.args)))
        row = None if derived is None else _row(self.circuit, derived, event)
        return None if derived is None or row is None else self.derivations.of(derived, row)

    def _input(self, id: str) -> Event | None:
        events, row = self._by_id.get(id, (None, 0))
        return None if events is None else events.event(row)

    @cached_property
    def _by_id(self) -> dict[str, tuple[Events, int]]:
        return {
            id: (events, row)
            for events in self.circuit.inputs.values()
            for row, id in enumerate(events.ids(np.arange(events.out.table.n)))
        }


def _row(circuit: Runtime, derived: Derived, event: Event) -> int | None:
    table = derived.out.table
    n = table.n
    alike = (table.data[START, :n] == event.start) & (table.data[END, :n] == event.end) & (table.alive[:n] == 1)
    rows = np.flatnonzero(alike).tolist()
    return next((row for row in rows if circuit.event((table, row)).content == event.content), None)
