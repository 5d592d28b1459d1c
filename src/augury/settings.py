"""What a run is given: its program, where events and facts come from, and how it runs.

`Settings` and `Task` are frozen values that runs, sessions, Spark and the command line share. Lengths are in microseconds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from augury.algebra.plan import Plan
from augury.compiled import Compiled
from augury.core.clock import SECOND, Clock, Kind, TimePoint, number_of, read_duration, time_zone
from augury.core.errors import DataError, RunError, brief
from augury.core.limits import NO_LIMITS, Limits
from augury.core.model import MAX_INT
from augury.core.time_units import NAMES, TIME_UNITS, UNCLEAR, TimeUnit, likely_unit
from augury.knowledge.graphs import RdfGraph
from augury.sources import OnError, SourceFile

_LONGEST_TEXT = 1000  # characters of a duration
Emit = Literal["early", "final"]


@dataclass(frozen=True)
class Settings:
    """How a program runs. A length is in microseconds, None where there is no bound.

    `time_unit` is that of numbers that are times, `zone` that of calendar times without one. `revisable` is whether events
    may be revoked, or how old one may be that is. `changing` are the predicates whose facts may change while a session runs.
    `threads` is how many a run may use.
    """

    clock: Kind | None = None
    time_unit: TimeUnit | None = None
    zone: str | None = None
    emit: Emit = "early"
    lateness: int | None = None
    retention: int | None = None
    longest: int | None = None
    revisable: bool | int = True
    changing: frozenset[str] = field(default=frozenset())
    on_error: OnError = "stop"
    strict: bool = False
    limits: Limits = NO_LIMITS
    threads: int = 1

    @staticmethod
    def of(program: Compiled, **written: Any) -> Settings:
        """Settings as a user writes them: durations as text, such as `10 min`, and limits as a mapping."""
        tick = program.plan.tick
        read = {name: _READ[name](value, tick) if name in _READ else value for name, value in written.items()}
        result = Settings(**read)
        _one_of("clock", result.clock, (None, *get_args(Kind)))
        _one_of("time unit", result.time_unit, (None, *TIME_UNITS))
        if result.zone is not None:
            time_zone(result.zone)
        _one_of("emission", result.emit, get_args(Emit))
        _one_of("on_error", result.on_error, get_args(OnError))
        if type(result.threads) is not int or result.threads < 1:
            raise RunError(f"not a number of threads: {result.threads!r}", hint="it is 1 or more")
        return result

    def clock_of(self, program: Compiled, first_time: object) -> Clock:
        """The clock of a run, whose first time is `first_time`."""
        return choose_clock(program, self, first_time)


@dataclass(frozen=True)
class Task:
    """A program, where its events, facts and graphs come from, and how it runs."""

    program: Compiled
    events: tuple[SourceFile, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()  # names of predicates, and where their facts are
    graphs: tuple[RdfGraph, ...] = ()
    settings: Settings = field(default=Settings())

    @property
    def plan(self) -> Plan:
        return self.program.plan


def _one_of(what: str, value: object, choices: tuple[object, ...]) -> None:
    if value not in choices:
        raise RunError(f"unknown {what} `{value}`", hint=f"it is {' or '.join(str(k) for k in choices if k)}")


def choose_clock(program: Compiled, settings: Settings, first_time: object) -> Clock:
    """The clock of a run: as asked; else by the first time.

    Numbers are ticks where the program declares its tick, or where they are no likely times since 1970. A time unit or a
    zone asks for the timestamp clock. Raises DataError where a number may be of several units.
    """
    tick, kind = program.plan.tick, settings.clock
    calendar = "--time-unit" if settings.time_unit else "--zone" if settings.zone else ""
    if kind == "logical" and calendar:
        raise RunError(f"{calendar} is for calendar times", hint="leave it out, or use --clock timestamp")
    if kind is None and calendar:
        kind = "timestamp"
    if kind == "timestamp" and tick is not None:
        raise RunError(
            "the program declares its tick, so it runs on the logical clock",
            hint=f"{'leave out ' + calendar if calendar else 'use --clock logical'}, or remove `tick`",
        )
    if kind is not None or tick is not None:
        clock = Clock(kind or "logical", tick or SECOND, unit=settings.time_unit, zone=settings.zone or "")
        return clock.reading(first_time)
    number = number_of(first_time)
    if number is None:
        return Clock("logical" if first_time is None else "timestamp", guessed=True)
    unit = likely_unit(float(number))
    if unit is None:
        return Clock("logical", guessed=True)
    if isinstance(first_time, TimePoint) and unit != "us":
        raise _unclear_event(first_time, unit)
    return Clock("timestamp", unit=unit, unit_guessed=True, guessed=True)


def _unclear_event(time: TimePoint, unit: TimeUnit) -> DataError:
    """Refuses `Event` objects whose times look like another unit than microseconds."""
    return DataError(
        f"the event ends at {int(time)}, which looks like {NAMES[unit]} since 1970",
        hint='times of `Event` are microseconds with clock="timestamp", or ticks with clock="logical"; dicts and tables '
        f'take time_unit="{unit}"',
        code=UNCLEAR,
    )


def length(duration: str | None, tick: int | None = None) -> int | None:
    """A duration in microseconds; a bare number is seconds, or ticks where the program declares its tick."""
    if duration is None:
        return None
    if not isinstance(duration, str):
        raise RunError(f"not a duration: {brief(duration)}", hint='write it as text, such as "1h"')
    if len(duration) > _LONGEST_TEXT:
        raise RunError(f"not a duration: {brief(duration)}", hint="write a number and a unit, such as 90s")
    try:
        us = int(duration) * (tick or SECOND) if duration.strip().isdigit() else read_duration(duration)
    except ValueError as error:
        raise RunError(str(error)) from None
    if us > MAX_INT:
        raise RunError(f"a duration beyond 64 bits of microseconds: {brief(duration)}")
    return us


def _age(revisable: Any, tick: int | None) -> bool | int:
    age = revisable if isinstance(revisable, bool) else length(revisable, tick)
    return True if age is None else age


def _names(names: Any, tick: int | None) -> frozenset[str]:
    return frozenset([names] if isinstance(names, str) else names)


# How a setting is read that a user writes in another form.
_READ: dict[str, Callable[[Any, int | None], Any]] = {
    "lateness": length,
    "retention": length,
    "longest": length,
    "revisable": _age,
    "changing": _names,
    "limits": lambda limits, tick: Limits.of(limits),
}
