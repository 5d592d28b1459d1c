"""Time points are 64-bit integers; a clock defines what they mean.

On the *timestamp* clock a time point is a microsecond since the epoch, UTC. On a *logical* clock it is the integer
that was given, and a tick lasts one second unless the program says otherwise, so that durations have a meaning on both.

Inputs may write calendar times as text, with a zone or in the zone of the clock, or as numbers in its time unit.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import lru_cache
from math import isfinite
from typing import Literal
from zoneinfo import ZoneInfo

from augury.core.bounds import MAX_TIME, MIN_TIME, TIME_LIMIT
from augury.core.errors import DataError, RunError, brief
from augury.core.time_units import NAMES, TimeUnit, likely_unit, other_unit, to_microseconds, unclear_unit

Kind = Literal["timestamp", "logical"]

SECOND = 1_000_000
TIME_RANGE = "times lie between -2**60 and 2**60"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
UNITS = {
    **dict.fromkeys(("us", "microsecond", "microseconds"), 1),
    **dict.fromkeys(("ms", "millisecond", "milliseconds"), 1_000),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), SECOND),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), 60 * SECOND),
    **dict.fromkeys(("h", "hour", "hours"), 3600 * SECOND),
    **dict.fromkeys(("d", "day", "days"), 86400 * SECOND),
    **dict.fromkeys(("w", "week", "weeks"), 7 * 86400 * SECOND),
}
_PART = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]+)")
_LONGEST = 1000  # characters of a time that anybody means
_DIGITS = re.compile(r"\s*-?[0-9]+\s*")
_DECIMAL = re.compile(r"\s*-?[0-9]+(\.[0-9]*)?\s*")
_SHOWN = (("d", 86400 * SECOND), ("h", 3600 * SECOND), ("min", 60 * SECOND), ("s", SECOND), ("ms", 1_000), ("us", 1))


@dataclass(frozen=True, slots=True)
class Timestamp:
    """A point of calendar time, in microseconds since the epoch."""

    us: int

    def __str__(self) -> str:
        return show_timestamp(self.us)


@dataclass(frozen=True, slots=True)
class Duration:
    """A length of time, in microseconds."""

    us: int

    def __str__(self) -> str:
        return show_duration(self.us)


def read_duration(text: str) -> int:
    """Microseconds of a written duration.

    >>> read_duration("1h 30min")
    5400000000
    """
    total, offset = 0, 0
    while offset < len(text.rstrip()):
        part = _PART.match(text, offset)
        if part is None or part[2].lower() not in UNITS:
            raise ValueError(f"not a duration: {text!r}; write a number and a unit, such as 90s, 30 min, 2 days")
        unit = UNITS[part[2].lower()]
        whole, _, fraction = part[1].partition(".")
        scaled = int(fraction or 0) * unit
        if scaled % 10 ** len(fraction):
            raise ValueError(f"not a whole number of microseconds: {text!r}")
        total += int(whole) * unit + scaled // 10 ** len(fraction)
        offset = part.end()
    if offset == 0:
        raise ValueError("an empty duration; write a number and a unit, such as 90s")
    return total


def show_duration(us: int) -> str:
    """The shortest exact way to write a duration: the largest unit that divides it, else a sum of units.

    >>> show_duration(5400_000_000), show_duration(3600_000_000)
    ('90min', '1h')
    """
    if us < 0:
        return "-" + show_duration(-us)
    for unit, size in _SHOWN:
        if us % size == 0 and us >= (3 * size if unit == "d" else size):
            return f"{us // size}{unit}"
    return "0s"


def read_timestamp(text: str, zone: str = "") -> int:
    """Microseconds since the epoch of an ISO 8601 time; a time without a zone is one of `zone`, or UTC.

    A local time that comes twice is the first one; one that the clocks skip is as much later as they skip.

    >>> read_timestamp("1970-01-01 00:00:01"), read_timestamp("1970-01-01 01:00:01", "Europe/Berlin")
    (1000000, 1000000)
    """
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError as error:
        raise ValueError(f"not a time: {text!r}; write it as 2026-01-31 10:00 or 2026-01-31T10:00:00Z") from error
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=time_zone(zone) if zone else UTC)
    return (moment - _EPOCH) // timedelta(microseconds=1)


@lru_cache(64)
def time_zone(name: str) -> ZoneInfo:
    """A time zone by its name."""
    try:
        return ZoneInfo(name)
    except (KeyError, OSError, ValueError):
        raise RunError(f"unknown time zone {brief(name)}", hint="name it as Europe/Berlin, or UTC") from None


def show_timestamp(us: int) -> str:
    try:
        moment = _EPOCH + timedelta(microseconds=us)
    except OverflowError:
        return f"{us}us"
    return moment.isoformat().replace("+00:00", "Z")


def check_time(time: int) -> int:
    """A time point; one that is too far from the origin is refused."""
    if MIN_TIME <= time <= MAX_TIME:
        return time
    if not -(2**63) <= time < 2**63:
        raise DataError(f"a time beyond 64 bits: {brief(time)}", hint=TIME_RANGE)
    raise DataError(f"a time too far from the origin: {time}", hint=TIME_RANGE)


class TimePoint(int):
    """The time of an `Event` of Python: a point of the clock already, and no number to be read in some unit."""


@dataclass(frozen=True, slots=True)
class Clock:
    """What a time point means, and how it is read and shown.

    `unit` is that of numbers on the timestamp clock, `zone` that of calendar times that name none. A clock, or a unit, that
    was `guessed` from the first time takes no numbers that look like those of another.
    """

    kind: Kind = "logical"
    tick: int = SECOND
    guessed: bool = False
    unit: TimeUnit | None = None
    unit_guessed: bool = False
    zone: str = ""

    def read(self, value: object) -> int:
        """A time point from what an input says."""
        if isinstance(value, bool) or value is None:
            raise DataError(f"not a time: {value!r}")
        if isinstance(value, str) and len(value) > _LONGEST:
            long = _DIGITS.fullmatch(value)
            raise DataError(f"a time beyond 64 bits: {value[:40]}…" if long else f"not a time: {brief(value)}")
        if isinstance(value, Timestamp):
            return check_time(value.us)
        if isinstance(value, datetime):
            value = value.isoformat()
        number = number_of(value)
        if number is not None:
            return self._read_number(number)
        if self.kind == "timestamp" and isinstance(value, str):
            try:
                return read_timestamp(value, self.zone)
            except ValueError as error:
                raise DataError(str(error)) from error
        if isinstance(value, str):
            raise _no_tick(value)
        raise DataError(f"not a time: {brief(value)}")

    def _read_number(self, number: int | float | Decimal) -> int:
        """A number as a time point: one of the unit on the timestamp clock, else a tick."""
        if self.takes_no_numbers:
            raise DataError(
                f"the number {number} among calendar times",
                hint='say --time-unit s, ms, us or ns (time_unit="s") to read numbers as times since 1970',
            )
        if self.unit is not None:
            if self.unit_guessed and (likely := likely_unit(float(number))) not in (None, self.unit):
                assert likely is not None
                raise other_unit(float(number) if isinstance(number, Decimal) else number, self.unit, likely)
            return check_time(to_microseconds(number, self.unit))
        if isinstance(number, Decimal) and self.kind == "logical":
            raise _no_tick(str(number))
        if isinstance(number, Decimal) or number != int(number):
            raise DataError(f"not a time: {number}")
        if self.kind == "logical" and self.guessed and (likely := likely_unit(float(number))) is not None:
            raise other_unit(int(number), None, likely)
        return check_time(int(number))

    @property
    def takes_no_numbers(self) -> bool:
        """Whether times are calendar times as text, so that a number says nothing without a unit."""
        return self.kind == "timestamp" and self.guessed and self.unit is None

    @property
    def decided(self) -> bool:
        """Whether it is known what a number means as a time of an input."""
        return self.kind == "logical" or self.guessed or self.unit is not None

    def reading(self, first: object) -> Clock:
        """The clock for inputs of which `first` is the first time: a number there determines the unit, unless one
        is set.

        Without a first time nothing is decided. Raises DataError where several units are possible.
        """
        if self.decided or first is None or isinstance(first, TimePoint):
            return self
        number = number_of(first)
        if number is None:
            return replace(self, guessed=True)
        unit = likely_unit(float(number))
        if unit is None:
            raise unclear_unit(float(number) if isinstance(number, Decimal) else number)
        return replace(self, unit=unit, unit_guessed=True)

    @property
    def plain(self) -> Clock:
        """The clock without what matters to inputs only."""
        return Clock(self.kind, self.tick)

    @property
    def guess(self) -> str:
        """What to report of a unit that was guessed; empty where it was not."""
        if not self.unit_guessed or self.unit is None:
            return ""
        return (
            f"times are read as {NAMES[self.unit]} since 1970, as their size suggests; --time-unit {self.unit} "
            f'(time_unit="{self.unit}") says so, --clock logical (clock="logical") takes them as ticks'
        )

    def show(self, time: int) -> int | str:
        return show_timestamp(time) if self.kind == "timestamp" else time

    def length(self, us: int) -> int:
        """A duration in this clock's time points, rounded down: no interval of whole points is between.

        No two times are 2**61 apart, so that a longer duration is as good as that, and sums stay within 64 bits.
        """
        return min(us if self.kind == "timestamp" else us // self.tick, 2 * TIME_LIMIT)

    def exact_length(self, us: int) -> int:
        """A duration in this clock's time points; one that is not whole is refused."""
        if self.kind == "logical" and us % self.tick:
            raise DataError(
                f"{show_duration(us)} is not a whole number of ticks of {show_duration(self.tick)}",
                hint="declare a finer tick, such as `tick 1ms.`",
            )
        return self.length(us)

    def moment(self, time: int) -> Timestamp | int:
        """A time point as a value that a condition can use."""
        return Timestamp(time) if self.kind == "timestamp" else time

    def span(self, length: int) -> Duration | int:
        """A length of time as a value that a condition can use."""
        return Duration(length) if self.kind == "timestamp" else length


def number_of(value: object) -> int | float | Decimal | None:
    """A number that is a time, as a number or as text; None where the value is none."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        return (int(value) if value.is_integer() else value) if isfinite(value) else None
    if not isinstance(value, str) or len(value) > _LONGEST or not _DECIMAL.fullmatch(value):
        return None
    return int(value) if _DIGITS.fullmatch(value) else Decimal(value.strip())


def _no_tick(text: str) -> DataError:
    hint = 'use --clock timestamp (clock="timestamp") for calendar times'
    if number_of(text) is not None:
        hint = (
            "for seconds with fractions use --clock timestamp --time-unit s; or count in a finer tick: "
            "with `tick 1ms.` the time of 1.5 s is 1500"
        )
    return DataError(f"not a tick: {text!r}; on the logical clock a time is a whole number", hint=hint)
