"""The ticks of a time axis: positions and labels.

12:00   12:30   13:00                    two lines: the finer one at every mark, the coarser one where it changes
1 Jul 2026
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from augury.core.clock import SECOND, Clock

MINUTE, HOUR, DAY = 60 * SECOND, 3600 * SECOND, 86400 * SECOND
_STEPS = (
    *(m * 10**k for k in range(5) for m in (1, 2, 5)), 100_000, 200_000, 500_000,
    *(n * SECOND for n in (1, 2, 5, 10, 15, 30)), *(n * MINUTE for n in (1, 2, 5, 10, 15, 30)),
    *(n * HOUR for n in (1, 2, 3, 6, 12)), *(n * DAY for n in (1, 2, 7)),
)  # fmt: skip
_MONTHS = (1, 3, 6, 12, 24, 60, 120, 240, 600, 1200)
_NAMES = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST, _LAST = -62_135_596_800 * SECOND, 253_402_300_799 * SECOND  # of the calendar that Python has


@dataclass(frozen=True)
class AxisTick:
    """A tick at a time, with its label; `below` is a second label where it changes."""

    time: int
    text: str
    below: str = ""


def ticks(lo: int, hi: int, clock: Clock, most: int) -> list[AxisTick]:
    """At most so many marks between two times, at round ones."""
    if clock.kind == "logical" or lo < _FIRST or hi > _LAST:
        step = _round_step((hi - lo) / most)
        return [AxisTick(t, f"{t:,}") for t in range(-(-lo // step) * step, hi + 1, step)]
    step = next((s for s in _STEPS if (hi - lo) / s <= most), 0)
    if not step:
        return _by_months(lo, hi, most)
    origin = -3 * DAY if step == 7 * DAY else 0  # weeks begin on Monday
    axis_ticks: list[AxisTick] = []
    before = ""
    for time in range(-(-(lo - origin) // step) * step + origin, hi + 1, step):
        text, below = _said(time, step)
        axis_ticks.append(AxisTick(time, text, below if below != before else ""))
        before = below
    return axis_ticks


def _round_step(least: float) -> int:
    """1, 2 or 5 times a power of ten, at least as much."""
    if least <= 1:
        return 1
    power: int = 10 ** math.floor(math.log10(least))
    return next(m * power for m in (1, 2, 5, 10) if m * power >= least)


def _said(time: int, step: int) -> tuple[str, str]:
    moment = moment_of(time)
    if step >= DAY:
        return f"{moment.day} {_NAMES[moment.month - 1]}", str(moment.year)
    day = f"{moment.day} {_NAMES[moment.month - 1]} {moment.year}"
    if step >= MINUTE:
        return moment.strftime("%H:%M"), day
    if step >= SECOND:
        return moment.strftime("%H:%M:%S"), day
    digits = 3 if step % 1000 == 0 else 6
    return moment.strftime("%S.%f")[: 3 + digits], f"{moment.strftime('%H:%M')}, {day}"


def _by_months(lo: int, hi: int, most: int) -> list[AxisTick]:
    first, last = moment_of(lo), moment_of(hi)
    months = (last.year - first.year) * 12 + last.month - first.month
    step = next((s for s in _MONTHS if months / s <= most), _MONTHS[-1])
    axis_ticks: list[AxisTick] = []
    before = ""
    for month in range(-(-(first.year * 12 + first.month - 1) // step) * step, last.year * 12 + last.month, step):
        year, number = divmod(month, 12)
        month_start = (datetime(year, number + 1, 1, tzinfo=UTC) - _EPOCH) // timedelta(microseconds=1)
        if month_start < lo:
            continue
        if step >= 12:
            axis_ticks.append(AxisTick(month_start, str(year)))
        else:
            axis_ticks.append(AxisTick(month_start, _NAMES[number], str(year) if str(year) != before else ""))
            before = str(year)
    return axis_ticks


def about_length(length: float, clock: Clock) -> str:
    """A length of time in a unit that suits it: `4.2 h`."""
    if clock.kind == "logical":
        return f"{max(length, 1):.3g} ticks" if length > 1 else "a tick"
    for unit, size in (("days", DAY), ("h", HOUR), ("min", MINUTE), ("s", SECOND), ("ms", 1000)):
        if length >= (2 * size if unit == "days" else size):
            return f"{length / size:.2g} {unit}"
    return f"{length:.2g} µs"


def moment_of(time: int) -> datetime:
    return _EPOCH + timedelta(microseconds=time)
