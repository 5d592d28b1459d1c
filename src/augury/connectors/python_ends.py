"""Python's own ends of a service: an iterable of events, and a function that gets each change."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Any, ClassVar

import orjson

from augury.connectors.delivery import Delivery
from augury.connectors.rendering import RenderedChanges
from augury.connectors.sink import AnswerSink
from augury.connectors.source import EventSource, Position


class IterableSource(EventSource):
    """Events as dicts. Behind a restart, an iterable that begins again is skipped up to where it was."""

    blocking: ClassVar[bool] = True  # as long as the iterable takes for its next event

    def __init__(self, events: Iterable[object]) -> None:
        self.events = events
        self._number = 0
        self._ended = False

    def open(self, position: Position | None) -> None:
        self._number = (position or {}).get("events", 0)
        self._rest = iter(self.events)
        for _ in islice(self._rest, self._number):
            pass

    @property
    def finished(self) -> bool:
        return self._ended

    def fetch(self, most: int, seconds: float) -> list[Delivery]:
        lines = [orjson.dumps(event, default=str) + b"\n" for event in islice(self._rest, min(most, 1000))]
        self._ended = not lines
        self._number += len(lines)
        return [Delivery(b"".join(lines), {"events": self._number})] if lines else []


class CallbackSink(AnswerSink):
    """Calls a function with each change, as a dict with `op`, `type`, `args`, `start`, `end`, `id` and `trace`."""

    def __init__(self, function: Callable[[dict[str, Any]], object]) -> None:
        self.function = function

    def write(self, steps: Sequence[RenderedChanges]) -> list[tuple[str, bytes]]:
        for step in steps:
            for line in step.lines:
                self.function(orjson.loads(line))
        return []
