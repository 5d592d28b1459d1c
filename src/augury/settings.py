"""What a run is given beside its program and its events: the clock, and lengths of time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from augury.clock import SECOND, Clock, Kind, read_duration
from augury.errors import RunError
from augury.model import Event
from augury.program import Program


def choose_clock(program: Program, kind: Kind | None, first_time: object) -> Clock:
    """The clock of a run: as asked; else logical where the program declares its tick or times are whole numbers."""
    tick = program.plan.tick
    if kind not in (None, "timestamp", "logical"):
        raise RunError(f"unknown clock `{kind}`", hint="there is timestamp and logical")
    if kind == "timestamp" and tick is not None:
        raise RunError(
            "the program declares its tick, so it runs on the logical clock",
            hint="use --clock logical, or remove `tick`",
        )
    guessed = kind is None
    if kind is None:
        whole = isinstance(first_time, int) or (isinstance(first_time, str) and first_time.lstrip("-").isdigit())
        kind = "logical" if tick is not None or first_time is None or whole else "timestamp"
    return Clock(kind, tick or SECOND, guessed)


def length(duration: str | None, tick: int | None = None) -> int | None:
    """A duration in microseconds; a bare number is seconds, or ticks where the program declares its tick."""
    if duration is None:
        return None
    if not isinstance(duration, str):
        raise RunError(f"not a duration: {duration!r}", hint='write it as text, such as "1h"')
    if duration.strip().isdigit():
        return int(duration) * (tick or SECOND)
    try:
        return read_duration(duration)
    except ValueError as error:
        raise RunError(str(error)) from None


def first_time(items: Iterable[Any]) -> object:
    """The first time that an input names."""
    for item in items:
        if isinstance(item, Event):
            return item.end
        if isinstance(item, Mapping):
            for key in ("time", "end", "start"):
                if item.get(key) is not None:
                    return item[key]
    return None
