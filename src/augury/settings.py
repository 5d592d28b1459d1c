"""What a run is given: its program, where events and facts come from, and how it runs.

`Settings` and `Task` are frozen values that runs, sessions, Spark and the command line share. Lengths are in microseconds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from augury.algebra.plan import Plan
from augury.clock import SECOND, Clock, Kind, read_duration
from augury.compiled import Compiled
from augury.errors import RunError, brief
from augury.knowledge.graphs import Graph
from augury.limits import NO_LIMITS, Limits
from augury.model import MAX_INT
from augury.sources import OnError, SourceFile

_LONGEST_TEXT = 1000  # characters of a duration
Emit = Literal["early", "final"]


@dataclass(frozen=True)
class Settings:
    """How a program runs. A length is in microseconds, None where there is no bound.

    `revisable` is whether events may be revoked, or how old one may be that is. `changing` are the predicates whose facts
    may change while a session runs.
    """

    clock: Kind | None = None
    emit: Emit = "early"
    lateness: int | None = None
    retention: int | None = None
    longest: int | None = None
    revisable: bool | int = True
    changing: frozenset[str] = field(default=frozenset())
    on_error: OnError = "stop"
    strict: bool = False
    limits: Limits = NO_LIMITS

    @staticmethod
    def of(program: Compiled, **written: Any) -> Settings:
        """Settings as a user writes them: durations as text, such as `10 min`, and limits as a mapping."""
        tick = program.plan.tick
        read = {name: _READ[name](value, tick) if name in _READ else value for name, value in written.items()}
        found = Settings(**read)
        _one_of("clock", found.clock, (None, *get_args(Kind)))
        _one_of("emission", found.emit, get_args(Emit))
        _one_of("way with wrong rows", found.on_error, get_args(OnError))
        return found

    def clock_of(self, program: Compiled, first_time: object) -> Clock:
        """The clock of a run: as asked; else logical where the program declares its tick or times are whole numbers."""
        return choose_clock(program, self.clock, first_time)


@dataclass(frozen=True)
class Task:
    """A program, where its events, facts and graphs come from, and how it runs."""

    program: Compiled
    events: tuple[SourceFile, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()  # names of predicates, and where their facts are
    graphs: tuple[Graph, ...] = ()
    settings: Settings = field(default=Settings())

    @property
    def plan(self) -> Plan:
        return self.program.plan


def _one_of(what: str, given: object, known: tuple[object, ...]) -> None:
    if given not in known:
        raise RunError(f"unknown {what} `{given}`", hint=f"it is {' or '.join(str(k) for k in known if k)}")


def choose_clock(program: Compiled, kind: Kind | None, first_time: object) -> Clock:
    """The clock of a run: as asked; else logical where the program declares its tick or times are whole numbers."""
    tick = program.plan.tick
    _one_of("clock", kind, (None, *get_args(Kind)))
    if kind == "timestamp" and tick is not None:
        raise RunError(
            "the program declares its tick, so it runs on the logical clock",
            hint="use --clock logical, or remove `tick`",
        )
    guessed = kind is None
    if kind is None:
        whole = isinstance(first_time, int) or (
            isinstance(first_time, str) and first_time.strip().lstrip("-").isdigit()
        )
        kind = "logical" if tick is not None or first_time is None or whole else "timestamp"
    return Clock(kind, tick or SECOND, guessed)


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


def _names(given: Any, tick: int | None) -> frozenset[str]:
    return frozenset([given] if isinstance(given, str) else given)


# How a setting is read that a user writes in another form.
_READ: dict[str, Callable[[Any, int | None], Any]] = {
    "lateness": length,
    "retention": length,
    "longest": length,
    "revisable": _age,
    "changing": _names,
    "limits": lambda given, tick: Limits.of(given),
}
