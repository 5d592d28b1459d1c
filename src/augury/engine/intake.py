"""Reads what is pushed into a session."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from augury.algebra.plan import Plan, Predicate
from augury.core.clock import Clock
from augury.core.limits import NO_LIMITS, Limits
from augury.core.model import Event, Revocation
from augury.engine.admission import history_of
from augury.sources import History, Reader, Skipped, first_time, item_from, read_history
from augury.sources.graph_events import is_stream

_FEW = 64  # events that are read one by one
_NULL = type(None)
_ANY: frozenset[type] = frozenset({int, float, str, bool, _NULL})
# By declared type, the types of Python whose values need no conversion.
_PLAIN: Mapping[str, frozenset[type]] = {
    "int": frozenset({int, _NULL}),
    "float": frozenset({float, _NULL}),
    "number": frozenset({int, float, _NULL}),
    "string": frozenset({str, _NULL}),
    "bool": frozenset({bool, _NULL}),
    "any": _ANY,
}


class Intake:
    """Reads events for a session. `clock_of` takes the first time of the inputs and returns the clock."""

    def __init__(self, clock_of: Callable[[object], Clock], strict: bool, limits: Limits = NO_LIMITS) -> None:
        self.clock_of, self.strict, self.limits = clock_of, strict, limits
        self.unknown: dict[str, int] = {}  # how many events came of types that the program does not know
        self.reader: Reader | None = None
        self.plain_plan: Plan | None = None
        # Of the types of this plan, for each argument the types of Python whose values need no conversion.
        self.plain: dict[Predicate, list[frozenset[type]]] = {}

    def read(self, events: object, plan: Plan) -> History:
        """An event, a list of them, tables by type, or what `augury.read` returns."""
        reader = self._reader_of(plan)
        single = isinstance(events, Mapping) and (
            "type" in events or "op" in events or isinstance(events.get("stream"), str)
        )
        if single or isinstance(events, Event | Revocation):
            return self._few([events], reader)
        if isinstance(events, list | tuple) and len(events) <= _FEW:
            return self._few(events, reader)
        history = read_history(reader, events)
        for name, count in history.unknown.items():
            self._count(name, count)
        return history

    def _few(self, events: Sequence[object], reader: Reader) -> History:
        """Events that are not worth reading as tables."""
        if not events:
            return History()
        clock = self.clock_of(first_time(events))
        plan = reader.plan.in_zone(clock.zone)
        items = [item_from(event, plan, clock) for event in events]
        types = [(item.type, len(item.args)) for item in items if isinstance(item, Event)]
        unknown = [type for type in types if type not in plan.event_types]
        for type in unknown:
            problem = reader.known_types.problem(type)
            if problem is not None:
                raise problem
        for type in unknown:
            self._count(reader.known_types.passed_over(type))
        return history_of(items)

    def expect(self, plan: Plan) -> None:
        """Prepares for single events of a plan: see `single_event`."""
        self.plain_plan, self.plain = plan, {type: _kinds(type, plan) for type in plan.event_types}

    def _count(self, name: str, count: int = 1) -> None:
        self.unknown = {**self.unknown, name: self.unknown.get(name, 0) + count}

    def _reader_of(self, plan: Plan) -> Reader:
        """The reader for the program as it is now."""
        if self.reader is None or self.reader.written_plan is not plan:
            self.reader = Reader(plan, self.clock_of, Skipped(limits=self.limits), self.strict)
        return self.reader


def _kinds(type: Predicate, plan: Plan) -> list[frozenset[Any]]:
    """For each argument of a type, the types of Python whose values need no conversion."""
    name, arity = type
    declared = plan.declared.get(name)
    if is_stream(name):
        return [frozenset()] * arity  # a graph is checked
    if declared is None:
        return [_ANY] * arity
    return [_PLAIN.get(attribute.type, frozenset()) for attribute in declared]
