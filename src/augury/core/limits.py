"""Limits of a session, of a run and of reading its input; and how much memory is available."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from augury.core.clock import read_duration
from augury.core.errors import RunError, nearest

_UNITS = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "kib": 2**10, "mib": 2**20, "gib": 2**30}
_SIZE = re.compile(r"\s*(\d[\d_]*(?:\.\d+)?)\s*([kmg]i?b|b|)\s*", re.IGNORECASE)
_CONTROL = Path("/sys/fs/cgroup")


@dataclass(frozen=True)
class Limits:
    """What a session may hold, and what one step may do; None is without a limit."""

    rows: int | None = None  # of state
    bytes: int | None = None  # of state
    pairs: int | None = None  # of events that a step looks at together
    answers: int | None = None  # of a step
    matches: int | None = None  # partial matches of a run in one step, where ties multiply them; `MATCHES` where None
    time: int | None = None  # of a step, of reading a source, of a query, in microseconds
    line: int | None = None  # bytes of a line of text that is read
    unpacked: int | None = None  # bytes that a packed file is unpacked to

    @staticmethod
    def of(limits: Limits | Mapping[str, object] | None) -> Limits:
        """Limits as a user writes them: `{"rows": 1_000_000, "bytes": "2 GB", "time": "10s"}`."""
        if isinstance(limits, Limits):
            return limits
        names = [field.name for field in fields(Limits)]
        result: dict[str, int] = {}
        for name, value in (limits or {}).items():
            if name not in names:
                close = nearest(name, names)
                hint = f"did you mean `{close}`?" if close else f"there is {', '.join(names)}"
                raise RunError(f"unknown limit `{name}`", hint=hint)
            result[name] = _time(value) if name == "time" else _size(name, value)
        return Limits(**result)


NO_LIMITS = Limits()
# Ties multiply the matches of a run: n pairs of simultaneous events have 2^n. A step stops where there are so many partial
# matches, and so many for each first and last event and number of iterations.
MATCHES, ALTERNATIVES = 1_000_000, 64
# What reading may use where no limit is set.
LINE = 64 << 20
UNPACKED, UNPACKED_TIMES = 1 << 30, 200  # bytes, or so many times its own size, whichever is more
QUERY_TIME = 300_000_000  # microseconds of a query of a database file


def _size(name: str, value: object) -> int:
    read = _SIZE.fullmatch(str(value)) if not isinstance(value, bool) else None
    bytes_of = name in ("bytes", "line", "unpacked")
    if read is None or (read[2] and not bytes_of):
        example = '"2 GB"' if bytes_of else "1000000"
        raise RunError(f"the limit `{name}` is not a number: {value!r}", hint=f"write it as {example}")
    return int(float(read[1].replace("_", "")) * _UNITS[read[2].lower()])


def _time(value: Any) -> int:
    try:
        return read_duration(value) if isinstance(value, str) else int(value * 1_000_000)
    except (ValueError, TypeError):
        raise RunError(f"the limit `time` is not a duration: {value!r}", hint='write it as "10s"') from None


def memory_left() -> int | None:
    """How many bytes of memory a process may still take; None where the system does not say."""
    result = []
    try:
        said = Path("/proc/meminfo").read_text()
        result.append(int(said.split("MemAvailable:")[1].split()[0]) * 1024)
        most, used = ((_CONTROL / name).read_text().strip() for name in ("memory.max", "memory.current"))
        if most != "max":
            result.append(max(0, int(most) - int(used)))
    except (OSError, IndexError, ValueError):
        if not result and hasattr(os, "sysconf") and "SC_AVPHYS_PAGES" in os.sysconf_names:
            result.append(os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    return min(result) if result else None
