"""Wall time: what clocks show in a time zone, and when days, weeks, months, quarters and years begin there.

A calendar window begins at the first instant whose local time is at or past its wall time. Where clocks go forward over
it, that is the moment of the change; where they go back over it, its first pass.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from augury.core.clock import SECOND

UNITS = ("second", "minute", "hour", "day", "week", "month", "quarter", "year")
MONTHS = {"month": 1, "quarter": 3, "year": 12}
DAY = 86_400 * SECOND
SHORT = {"second": SECOND, "minute": 60 * SECOND, "hour": 3600 * SECOND}
_EPOCH = datetime(1970, 1, 1)
_MICROSECOND = timedelta(microseconds=1)


class UnknownZone(ValueError):
    """No time zone has this name."""


@lru_cache(maxsize=64)
def zone_of(name: str) -> ZoneInfo:
    """The time zone of a name such as Europe/Berlin."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise UnknownZone(f"there is no time zone {name!r}; write, for instance, 'Europe/Berlin'") from error


def local_time(us: int, zone: str | None = None) -> datetime:
    """Wall time in a zone at an instant, in microseconds since the epoch; without a zone UTC."""
    try:
        moment = _EPOCH.replace(tzinfo=UTC) + timedelta(microseconds=us)
        return (moment if zone is None else moment.astimezone(zone_of(zone))).replace(tzinfo=None)
    except OverflowError:
        raise ValueError("a time beyond the years 1 to 9999") from None


def instant(wall: datetime, zone: str | None = None) -> int:
    """The first instant at which a clock in a zone shows a wall time, or one past it."""
    if zone is None:
        return (wall - _EPOCH) // _MICROSECOND
    return _instant(wall, zone)


@lru_cache(maxsize=65536)
def _instant(wall: datetime, zone: str) -> int:
    def under(fold: int) -> int:
        offset = wall.replace(tzinfo=zone_of(zone), fold=fold).utcoffset()
        assert offset is not None
        return (wall - _EPOCH - offset) // _MICROSECOND

    first = under(0)
    if local_time(first, zone) == wall:
        return first
    low, high = under(1), first  # no clock shows it: the change lies between
    while low < high:
        middle = (low + high) // 2
        if local_time(middle, zone) >= wall:
            high = middle
        else:
            low = middle + 1
    return low


def truncated(us: int, unit: str, zone: str | None = None) -> int:
    """When the second, minute, hour, day, week, month, quarter or year of an instant begins, in a zone."""
    if unit in SHORT:
        # The parts of an hour are those of the local clock, which may be half an hour off; an hour lasts an hour.
        offset = (local_time(us, zone) - _EPOCH) // _MICROSECOND - us
        return (us + offset) // SHORT[unit] * SHORT[unit] - offset
    wall = local_time(us, zone)
    begins = instant(_floor(wall, unit), zone)
    while begins > us:  # clocks have gone back over a beginning, and it has come already
        wall -= timedelta(days=1)
        begins = instant(_floor(wall, unit), zone)
    while (later := instant(next_unit(_floor(wall, unit), unit), zone)) <= us:
        wall, begins = next_unit(_floor(wall, unit), unit), later
    return begins


def _floor(wall: datetime, unit: str) -> datetime:
    midnight = wall.replace(hour=0, minute=0, second=0, microsecond=0)
    match unit:
        case "day":
            return midnight
        case "week":
            return midnight - timedelta(days=midnight.weekday())
    months = MONTHS[unit]
    return midnight.replace(day=1, month=(midnight.month - 1) // months * months + 1)


def next_unit(wall: datetime, unit: str) -> datetime:
    if unit in MONTHS:
        return add_months(wall, MONTHS[unit], wall.day)
    return wall + timedelta(days=7 if unit == "week" else 1)


def add_months(wall: datetime, months: int, day: int) -> datetime:
    """A wall time some months later, on a day of the month that is clamped to its last."""
    count = wall.year * 12 + wall.month - 1 + months
    year, month = divmod(count, 12)
    if not 1 <= year <= 9999:
        raise ValueError("a time beyond the years 1 to 9999")
    return wall.replace(year=year, month=month + 1, day=min(day, monthrange(year, month + 1)[1]))


_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTH_NAMES = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
DIRECTIVES: dict[str, Callable[[datetime, int], str]] = {  # of a wall time, and its offset from UTC in minutes
    "%Y": lambda wall, _: f"{wall.year:04}",
    "%m": lambda wall, _: f"{wall.month:02}",
    "%d": lambda wall, _: f"{wall.day:02}",
    "%H": lambda wall, _: f"{wall.hour:02}",
    "%M": lambda wall, _: f"{wall.minute:02}",
    "%S": lambda wall, _: f"{wall.second:02}",
    "%f": lambda wall, _: f"{wall.microsecond:06}",
    "%j": lambda wall, _: f"{wall.timetuple().tm_yday:03}",
    "%a": lambda wall, _: _DAYS[wall.weekday()],
    "%b": lambda wall, _: _MONTH_NAMES[wall.month - 1],
    "%z": lambda _, offset: f"{'-' if offset < 0 else '+'}{abs(offset) // 60:02}{abs(offset) % 60:02}",
    "%%": lambda *_: "%",
}


def directives(text: str) -> list[str]:
    """The directives of a time format, such as `%Y`."""
    return re.findall(r"%.?", text, re.DOTALL)


def check_time_format(text: str) -> None:
    """Raises where a format has a directive that is not one of `DIRECTIVES`."""
    for directive in directives(text):
        if directive not in DIRECTIVES:
            raise ValueError(f"{directive!r} is not a directive of a time format: {' '.join(DIRECTIVES)}")


def format_time(us: int, text: str, zone: str | None = None) -> str:
    """An instant as text, by a format such as `%Y-%m-%d %H:%M`; names are English in every locale."""
    check_time_format(text)
    wall = local_time(us, zone)
    offset = ((wall - _EPOCH) // _MICROSECOND - us) // (60 * SECOND)
    return re.sub(r"%.", lambda piece: DIRECTIVES[piece.group()](wall, offset), text)
