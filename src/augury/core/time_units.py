"""Epoch times: numbers that count seconds, milliseconds, microseconds or nanoseconds since 1970.

    1700000000  s  →  1700000000000000 microseconds, 2023-11-14T22:13:20Z

A unit is guessed only where a number is a time between 1980 and 2100 in it. No number is that in two units.
"""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Literal, get_args

from augury.core.errors import DataError, brief

TimeUnit = Literal["s", "ms", "us", "ns"]
TIME_UNITS: tuple[TimeUnit, ...] = get_args(TimeUnit)
NAMES: dict[TimeUnit, str] = {"s": "seconds", "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}
PER_SECOND: dict[TimeUnit, int] = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
EARLIEST, LATEST = (
    int(datetime(year, 1, 1, tzinfo=UTC).timestamp()) for year in (1980, 2100)
)  # of a guess, in seconds
_MICROSECONDS = 10**6
UNCLEAR = "D101"  # the code of a time whose unit is not clear


def likely_unit(number: float) -> TimeUnit | None:
    """The unit in which a number is a time between 1980 and 2100.

    >>> likely_unit(1_700_000_000), likely_unit(1_700_000_000_000), likely_unit(5)
    ('s', 'ms', None)
    """
    return next((unit for unit in TIME_UNITS if EARLIEST <= number / PER_SECOND[unit] < LATEST), None)


def likely_range(unit: TimeUnit) -> tuple[int, int]:
    """The least number that is a likely time in a unit, and the first one beyond."""
    return EARLIEST * PER_SECOND[unit], LATEST * PER_SECOND[unit]


def to_microseconds(number: int | float | Decimal, unit: TimeUnit) -> int:
    """An epoch time in microseconds. A whole number is rounded down, as times are; a fraction to the nearest microsecond.

    >>> to_microseconds(1_700_000_000.25, "s"), to_microseconds(1_999, "ns")
    (1700000000250000, 1)
    """
    per_second = PER_SECOND[unit]
    if isinstance(number, int):
        return number * _MICROSECONDS // per_second
    exact = Decimal(number) * _MICROSECONDS / per_second
    return int(exact.to_integral_value(ROUND_HALF_EVEN))


def unclear_unit(number: float) -> DataError:
    """Refuses a number as a calendar time: in no unit is it a time that is likely, so that each is possible."""
    return DataError(
        f"{brief(number)} may be a time in seconds, milliseconds, microseconds or nanoseconds since 1970",
        hint='choose one: --time-unit s, ms, us or ns (time_unit="s")',
        code=UNCLEAR,
    )


def other_unit(number: float, unit: TimeUnit | None, likely: TimeUnit) -> DataError:
    """Refuses a number that looks like an epoch time of another unit than the times before it; `unit` None is a tick."""
    before = "ticks" if unit is None else NAMES[unit]
    hint = (
        f'say --time-unit {unit or likely} (time_unit="{unit or likely}") if all times are in {NAMES[unit or likely]}'
    )
    if unit is None:
        hint += ', --clock logical (clock="logical") if they are ticks'
    return DataError(
        f"{brief(number)} looks like {NAMES[likely]} since 1970, among times in {before}", hint=hint, code=UNCLEAR
    )
