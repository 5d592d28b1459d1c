"""Reads what is pushed: single events as they are, many as columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from augury.algebra.plan import Plan
from augury.core.clock import Clock
from augury.core.limits import NO_LIMITS, Limits
from augury.core.model import Event, HistoryItem, Revocation
from augury.sources import History, Reader, Skipped, first_time, item_from, read_history

_FEW = 64  # events that are taken one by one


class Intake:
    """`clock_of` is given the first time that comes, and says the clock."""

    def __init__(self, clock_of: Callable[[object], Clock], strict: bool, limits: Limits = NO_LIMITS) -> None:
        self.clock_of, self.strict, self.limits = clock_of, strict, limits
        self.unknown: dict[str, int] = {}  # how many events came of types that the program does not know
        self.reader: Reader | None = None

    def read(self, events: Any, plan: Plan) -> list[HistoryItem] | History:
        """An event, a list of them, tables by type, or what `augury.read` has found."""
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

    def _few(self, events: Sequence[Any], reader: Reader) -> list[HistoryItem]:
        """Events that are not worth making columns of."""
        if not events:
            return []
        plan, clock = reader.plan, self.clock_of(first_time(events))
        items = [item_from(event, plan, clock) for event in events]
        types = [(item.type, len(item.args)) for item in items if isinstance(item, Event)]
        strangers = [type for type in types if type not in plan.event_types]
        for type in strangers:
            problem = reader.known.problem(type)
            if problem is not None:
                raise problem
        for type in strangers:
            self._count(reader.known.passed_over(type))
        return items

    def _count(self, name: str, count: int = 1) -> None:
        self.unknown[name] = self.unknown.get(name, 0) + count

    def _reader_of(self, plan: Plan) -> Reader:
        """What reads events for the program as it is now."""
        if self.reader is None or self.reader.plan is not plan:
            self.reader = Reader(plan, self.clock_of, Skipped(limits=self.limits), self.strict)
        return self.reader
