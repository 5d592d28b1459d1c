"""Values of literals: numbers, booleans and times, parsed from their lexical form and printed in it.

Numbers are Python's: an integer is an `int`, a decimal a `Decimal`, a float or double a `float`. A float has the precision of
a double, as everywhere in Augury. A time without a zone is UTC.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Literal as OneOf
from typing import TypeAlias

from augury.algebra.sparql_algebra import BOOLEAN, DECIMAL, DOUBLE, FLOAT, INTEGER, LANG_STRING, STRING, XSD, Literal

DATE_TIME, DATE, TIME = XSD + "dateTime", XSD + "date", XSD + "time"
DAY_TIME_DURATION, YEAR_MONTH_DURATION = XSD + "dayTimeDuration", XSD + "yearMonthDuration"
Number: TypeAlias = int | Decimal | float
Family: TypeAlias = OneOf[
    "number", "string", "lang", "boolean", "dateTime", "date", "time", "duration", "months", "other"
]

_LIMITS: dict[str, tuple[int | None, int | None]] = {
    "integer": (None, None),
    "nonPositiveInteger": (None, 0),
    "negativeInteger": (None, -1),
    "nonNegativeInteger": (0, None),
    "positiveInteger": (1, None),
    **{
        name: (-(2 ** (n - 1)), 2 ** (n - 1) - 1) for name, n in (("long", 64), ("int", 32), ("short", 16), ("byte", 8))
    },
    **{
        name: (0, 2**n - 1)
        for name, n in (("unsignedLong", 64), ("unsignedInt", 32), ("unsignedShort", 16), ("unsignedByte", 8))
    },
}
INTEGERS = {XSD + name: limits for name, limits in _LIMITS.items()}
RANKS = {
    **dict.fromkeys(INTEGERS, 0),
    DECIMAL: 1,
    FLOAT: 2,
    DOUBLE: 3,
}  # of two numbers the higher one is the type of a sum
RANKED = (INTEGER, DECIMAL, FLOAT, DOUBLE)

_INTEGER = re.compile(r"[+-]?[0-9]+")
_DECIMAL = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)")
_DOUBLE = re.compile(_DECIMAL.pattern + r"([eE][+-]?[0-9]+)?")
_SPECIAL = {"INF": float("inf"), "+INF": float("inf"), "-INF": float("-inf"), "NaN": float("nan")}
_ZONE = r"(?P<zone>Z|[+-]\d\d:[0-5]\d)?"
_DATE_TIME = re.compile(
    r"(?P<year>-?(?:[1-9]\d{4,}|\d{4}))-(?P<month>\d\d)-(?P<day>\d\d)T(?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d)(?P<fraction>\.\d+)?"
    + _ZONE,
    re.ASCII,
)
_DATE = re.compile(r"(?P<year>-?(?:[1-9]\d{4,}|\d{4}))-(?P<month>\d\d)-(?P<day>\d\d)" + _ZONE, re.ASCII)
_TIME = re.compile(r"(?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d)(?P<fraction>\.\d+)?" + _ZONE, re.ASCII)
_DURATION = re.compile(
    r"(?P<minus>-)?P(?:(?P<years>\d+)Y)?(?:(?P<months>\d+)M)?(?:(?P<days>\d+)D)?"
    r"(?:T(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?(?:(?P<seconds>\d+(?:\.\d+)?)S)?)?",
    re.ASCII,
)
_LONGEST = 4000  # digits: Python refuses to read more
_EPOCH = datetime(1970, 1, 1)
_MIDNIGHT_OF_THE_EPOCH = {
    "year": "1970",
    "month": "1",
    "day": "1",
    "hour": "0",
    "minute": "0",
    "second": "0",
    "fraction": "",
}


@dataclass(frozen=True)
class LexicalTime:
    """A time: what its parts are, and where it lies, in seconds since the epoch (of a time of day: since midnight)."""

    seconds: int | Fraction
    local: datetime | None  # without its zone and the fraction of a second
    second: Decimal  # of its minute
    zone: str  # as it is written, "" where there is none

    @property
    def offset(self) -> timedelta:
        return _offset(self.zone)


def number_of(literal: Literal) -> Number | None:
    """The number that a literal stands for; None where it is none, or ill-typed."""
    limits = INTEGERS.get(literal.datatype)
    text = literal.text
    if limits is not None:
        if not _INTEGER.fullmatch(text) or len(text) > _LONGEST:
            return None
        number, (low, high) = int(text), limits
        return number if (low is None or low <= number) and (high is None or number <= high) else None
    if literal.datatype == DECIMAL:
        return Decimal(text) if _DECIMAL.fullmatch(text) and len(text) <= _LONGEST else None
    if literal.datatype in (DOUBLE, FLOAT):
        return float(text) if _DOUBLE.fullmatch(text) else _SPECIAL.get(text)
    return None


def boolean_of(literal: Literal) -> bool | None:
    return (
        {"true": True, "1": True, "false": False, "0": False}.get(literal.text) if literal.datatype == BOOLEAN else None
    )


@lru_cache(4096)
def moment_of(literal: Literal) -> LexicalTime | None:
    """The time that a literal of xsd:dateTime, xsd:date or xsd:time stands for."""
    shape = {DATE_TIME: _DATE_TIME, DATE: _DATE, TIME: _TIME}.get(literal.datatype)
    match = shape.fullmatch(literal.text) if shape is not None else None
    if match is None:
        return None
    parts = {**_MIDNIGHT_OF_THE_EPOCH, **match.groupdict()}
    zone, fraction = parts["zone"] or "", parts["fraction"] or ""
    if zone[1:] > "14:00":
        return None
    whole = [int(parts[name] or 0) for name in ("year", "month", "day", "hour", "minute", "second")]
    midnight = whole[3:] == [24, 0, 0] and not fraction.strip(".0")
    if midnight:
        whole[3] = 0
    try:
        local = datetime(*whole) + timedelta(days=int(midnight))  # type: ignore[arg-type]
        seconds: int | Fraction = (local - _EPOCH) // timedelta(seconds=1)
    except (ValueError, OverflowError):  # no such day, or a year that Python does not have
        return None
    if fraction:
        seconds += Fraction("0" + fraction)
    if literal.datatype == TIME:
        seconds %= 86400
    second = Decimal(f"{local.second}{fraction}")
    return LexicalTime(seconds - _offset(zone) // timedelta(seconds=1), local, second, zone)


def duration_of(literal: Literal) -> tuple[int, Fraction] | None:
    """Months and seconds of a duration."""
    result = _DURATION.fullmatch(literal.text) if literal.datatype.endswith("uration") else None
    if result is None or literal.text.endswith(("P", "T")) or len(literal.text) > _LONGEST:
        return None
    if literal.datatype == DAY_TIME_DURATION and (result["years"] or result["months"]):
        return None
    n = {name: Fraction(text or 0) for name, text in result.groupdict().items() if name != "minus"}
    months = int(n["years"] * 12 + n["months"])
    seconds = ((n["days"] * 24 + n["hours"]) * 60 + n["minutes"]) * 60 + n["seconds"]
    return (-months, -seconds) if result["minus"] else (months, seconds)


def _offset(zone: str) -> timedelta:
    if zone in ("", "Z"):
        return timedelta()
    length = timedelta(hours=int(zone[1:3]), minutes=int(zone[4:6]))
    return -length if zone[0] == "-" else length


def family(literal: Literal) -> tuple[Family, object]:
    """With which literals one can be compared, and its value among them; ill-typed ones and those of other datatypes with none."""
    datatype = literal.datatype
    if datatype == STRING:
        return "string", literal.text
    if datatype == LANG_STRING:
        return "lang", (literal.language, literal.text)
    if datatype in RANKS:
        number = number_of(literal)
        return ("other", None) if number is None else ("number", number)
    if datatype == BOOLEAN:
        truth = boolean_of(literal)
        return ("other", None) if truth is None else ("boolean", truth)
    if datatype in (DATE_TIME, DATE, TIME):
        moment = moment_of(literal)
        kind: Family = "dateTime" if datatype == DATE_TIME else "date" if datatype == DATE else "time"
        return ("other", None) if moment is None else (kind, moment.seconds)
    if datatype in (DAY_TIME_DURATION, YEAR_MONTH_DURATION):
        length = duration_of(literal)
        if length is not None and not length[0]:
            return "duration", length[1]
        if length is not None and not length[1]:
            return "months", length[0]
    return "other", None


# Writing


def literal_of(value: Number | bool | str) -> Literal:
    """The literal that a value of Python is written as."""
    match value:
        case bool():
            return TRUE if value else FALSE
        case int():
            return Literal(str(value), INTEGER)
        case Decimal():
            return Literal(f"{value:f}", DECIMAL)
        case float():
            return Literal(show_double(value), DOUBLE)
        case str():
            return Literal(value)


def of_rank(value: Number, rank: int) -> Literal:
    """A number as a literal of the type of a rank."""
    if rank == 0:
        return Literal(str(int(value)), INTEGER)
    if rank == 1:
        return Literal(f"{Decimal(value):f}", DECIMAL)
    return Literal(show_double(float(value)), RANKED[rank])


def show_double(value: float) -> str:
    text = repr(value)
    return text if text[-1].isdigit() else {"inf": "INF", "-inf": "-INF"}.get(text, "NaN")


TRUE, FALSE = Literal("true", BOOLEAN), Literal("false", BOOLEAN)


def day_time(length: timedelta) -> str:
    """A duration as xsd:dayTimeDuration writes it."""
    sign, seconds = ("-", -length) if length < timedelta() else ("", length)
    whole = seconds // timedelta(seconds=1)
    days, hours, minutes, rest = whole // 86400, whole // 3600 % 24, whole // 60 % 60, whole % 60
    clock = "".join(f"{n}{unit}" for n, unit in ((hours, "H"), (minutes, "M"), (rest, "S")) if n)
    text = (f"{days}D" if days else "") + (f"T{clock}" if clock else "")
    return f"{sign}P{text or 'T0S'}"
