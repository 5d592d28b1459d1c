"""Windows by the clock: `every(1h)`, `every(1h, 5min)`, `every(month, zone = 'Europe/Berlin')` (SEMANTICS 11).

Windows are numbered by the integers. As closed intervals they end one time point before the next one begins, so that
nothing counts twice. On a logical clock lengths are ticks.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Literal

from augury.algebra.wall_time import DAY, MONTHS, add_months, instant, local_time
from augury.core.clock import Clock, Timestamp, show_duration
from augury.core.errors import RunError

WEEK = 7 * DAY
MONDAY = -3 * DAY  # of the epoch's week
_EPOCH_DAY = datetime(1970, 1, 1)


@dataclass(frozen=True)
class Windows:
    """How windows lie on the time line. `size` and `hop` are in microseconds; of months and longer, in months.

    unit      "us": by elapsed time; "day": whole days of the calendar in `zone`; "month": months of the calendar.
    origin    where number 0 begins; None is the epoch, and of multiples of a week the Monday of its week.
    """

    unit: Literal["us", "day", "month"]
    size: int
    hop: int
    origin: Timestamp | int | None = None
    zone: str | None = None

    @property
    def longest(self) -> int:
        """The greatest length, in microseconds."""
        if self.unit == "month":
            return (self.size * 31 + 2) * DAY
        return self.size + (2 * DAY if self.unit == "day" else 0)

    @property
    def farthest(self) -> int:
        """The greatest distance of one beginning from the next, in microseconds."""
        return (self.hop * 31 + 2) * DAY if self.unit == "month" else self.hop + (2 * DAY if self.unit == "day" else 0)

    @property
    def text(self) -> str:
        """As it is written."""
        names = {1: "month", 3: "quarter", 12: "year"}
        size = names[self.size] if self.unit == "month" else show_duration(self.size)
        hop = "" if self.hop == self.size else f", {show_duration(self.hop)}"
        begins = f"@'{self.origin}'" if isinstance(self.origin, Timestamp) else self.origin
        origin = "" if self.origin is None else f", from = {begins}"
        return f"every({size}{hop}{origin}{f', zone = {self.zone!r}' if self.zone else ''})"

    @property
    def on_calendar(self) -> bool:
        """Whether they have no meaning on a logical clock."""
        return self.unit != "us" or self.zone is not None or self.size % WEEK == 0 or isinstance(self.origin, Timestamp)


def refuse_clock(windows: Windows, kind: str, rule: str) -> None:
    """Raises where windows have no meaning on a clock."""
    if kind == "logical" and windows.on_calendar:
        message = f"rule `{rule}` has windows of the calendar, `{windows.text}`, but the run is on the logical clock"
        hint = "use --clock timestamp, or windows of seconds, minutes, hours or days"
        raise RunError(message, hint=hint)
    if kind == "timestamp" and isinstance(windows.origin, int):
        message = f"rule `{rule}` counts windows from the tick {windows.origin}, but the run is on timestamps"
        hint = "write the time as @'2026-01-31 10:00'"
        raise RunError(message, hint=hint)


class Line:
    """The windows on the time line of a clock: when each begins and ends, and which ones hold an interval."""

    def __init__(self, windows: Windows, clock: Clock) -> None:
        self.windows, self.clock = windows, clock
        self.fixed = windows.unit == "us"
        if self.fixed:
            self.size, self.hop = clock.exact_length(windows.size), clock.exact_length(windows.hop)
            origin = windows.origin
            default = clock.exact_length(MONDAY) if windows.size % WEEK == 0 or windows.hop % WEEK == 0 else 0
            self.origin = default if origin is None else origin.us if isinstance(origin, Timestamp) else origin
        elif windows.origin is None:
            self.wall = _EPOCH_DAY
            if windows.unit == "day" and (windows.size % WEEK == 0 or windows.hop % WEEK == 0):
                self.wall = _EPOCH_DAY + timedelta(microseconds=MONDAY)
        else:
            assert isinstance(windows.origin, Timestamp)
            self.wall = local_time(windows.origin.us, windows.zone)

    def begin(self, number: int) -> int:
        if self.fixed:
            return self.origin + number * self.hop
        return _calendar(self.windows.unit, self.wall, number * self.windows.hop, self.windows.zone)

    def end(self, number: int) -> int:
        """The last time point; before the beginning, where a change of the clocks leaves nothing of the window."""
        if self.fixed:
            return self.origin + number * self.hop + self.size - 1
        reach = number * self.windows.hop + self.windows.size
        return _calendar(self.windows.unit, self.wall, reach, self.windows.zone) - 1

    def first_from(self, time: int) -> int:
        """The number of the first window that ends at or after a time."""
        if self.fixed:
            return -((self.origin + self.size - 1 - time) // self.hop)
        number = self._guess(time - self.windows.longest) - 2
        while self.end(number) < time:
            number += 1
        return number

    def last_by(self, time: int) -> int:
        """The number of the last window that ends at or before a time."""
        return self.first_from(time + 1) - 1

    def last_begun(self, time: int) -> int:
        """The number of the last window that begins at or before a time."""
        if self.fixed:
            return (time - self.origin) // self.hop
        number = self._guess(time) + 2
        while self.begin(number) > time:
            number -= 1
        return number

    def holding(self, start: int, end: int) -> range:
        """The numbers of the windows that an interval lies in."""
        return range(self.first_from(end), self.last_begun(start) + 1)

    def _guess(self, time: int) -> int:
        """The number of a window that begins about then."""
        wall = local_time(time, self.windows.zone)
        if self.windows.unit == "day":
            return int((wall - self.wall) // timedelta(microseconds=self.windows.hop))
        months = (wall.year - self.wall.year) * 12 + wall.month - self.wall.month
        return months // self.windows.hop


@lru_cache(maxsize=65536)
def _calendar(unit: str, wall: datetime, reach: int, zone: str | None) -> int:
    """A wall time so much later, as an instant."""
    if unit == "day":
        return instant(wall + timedelta(microseconds=reach), zone)
    return instant(add_months(wall.replace(day=1), reach, wall.day), zone)


def unit_windows(name: str, zone: str | None) -> tuple[Literal["us", "day", "month"], int] | None:
    """The unit and the size of `day`, `week`, `month`, `quarter` and `year`."""
    if name in ("day", "week"):
        return ("us" if zone is None else "day"), (DAY if name == "day" else WEEK)
    return ("month", MONTHS[name]) if name in MONTHS else None
