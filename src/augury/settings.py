"""What a run is given beside its program and its events: the clock, lengths of time, and what to do with what is wrong.

`Settings` is one frozen value that runs, sessions, Spark and the command line share. Lengths are in microseconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from augury.clock import SECOND, Clock, Kind, read_duration
from augury.compiled import Compiled
from augury.errors import RunError
from augury.limits import NO_LIMITS, Limits

Emit = Literal["early", "final"]
OnError = Literal["stop", "skip"]


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
    def of(
        program: Compiled, *, clock: Kind | None = None, emit: str = "early", lateness: Any = None, retention: Any = None,
        longest: Any = None, revisable: Any = True, changing: str | Iterable[str] = (), on_error: str = "stop",
        strict: bool = False, limits: Limits | Mapping[str, Any] | None = None,
    ) -> Settings:  # fmt: skip
        """Settings as a user writes them: durations as text, such as `10 min`."""
        _one_of("clock", clock, (None, *get_args(Kind)))
        _one_of("emission", emit, get_args(Emit))
        _one_of("way with wrong rows", on_error, get_args(OnError))
        tick = program.plan.tick
        age = revisable if isinstance(revisable, bool) else length(revisable, tick)
        return Settings(
            clock, emit, length(lateness, tick), length(retention, tick), length(longest, tick),  # type: ignore[arg-type]
            True if age is None else age, frozenset([changing] if isinstance(changing, str) else changing),
            on_error, strict, Limits.of(limits),  # type: ignore[arg-type]
        )  # fmt: skip

    def clock_of(self, program: Compiled, first_time: object) -> Clock:
        """The clock of a run: as asked; else logical where the program declares its tick or times are whole numbers."""
        return choose_clock(program, self.clock, first_time)


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
        raise RunError(f"not a duration: {duration!r}", hint='write it as text, such as "1h"')
    if duration.strip().isdigit():
        return int(duration) * (tick or SECOND)
    try:
        return read_duration(duration)
    except ValueError as error:
        raise RunError(str(error)) from None
