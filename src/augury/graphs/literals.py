"""The values that terms of RDF stand for: a literal of XSD is a number, a time or a text; an IRI is an IRI."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from augury.clock import SECOND, Duration, Timestamp, read_timestamp
from augury.model import MAX_INT, MIN_INT, Iri, Term, Value

XSD = "http://www.w3.org/2001/XMLSchema#"
LANG_STRING = "http://www.w3.org/1999/02/22-rdf-syntax-ns#langString"


def literal_value(text: str, datatype: str, tag: str | None = None) -> Value:
    """The value of a literal. An ill-typed one, or one out of range, stays text and datatype."""
    if tag:
        return Term("lang", (text, tag.lower()))
    read = LITERALS.get(datatype)
    value = read(text) if read else None
    return Term("literal", (text, Iri(datatype))) if value is None else value


def _between(low: int, high: int) -> Callable[[str], Value]:
    """Reads the integers of a type."""

    def read(text: str) -> Value:
        if not _INTEGER.fullmatch(text) or len(text) > 4000:
            return None
        number = int(text)
        return number if low <= number <= high else None

    return read


def _float(shape: re.Pattern[str]) -> Callable[[str], Value]:
    def read(text: str) -> Value:
        number = float(text) if shape.fullmatch(text) else np.inf
        return number + 0.0 if abs(number) != np.inf else None

    return read


def _moment(text: str) -> Value:
    """A point of time; without a zone it is UTC, and what is beyond microseconds is cut off."""
    found = _DATE_TIME.fullmatch(text)
    if found is None or (found["zone"] or "Z")[1:] > "14:00":
        return None
    midnight = found["clock"] == "24:00:00" and not (found["fraction"] or "").strip(".0")
    clock = "00:00:00" if midnight else found["clock"] + (found["fraction"] or "")
    if clock.startswith("24"):
        return None
    try:
        us = read_timestamp(f"{found['day']}T{clock}{found['zone'] or ''}")
    except (ValueError, OverflowError):
        return None
    return Timestamp(us + 86400 * SECOND if midnight else us)


def _zoned_moment(text: str) -> Value:
    return _moment(text) if text[10:].endswith("Z") or re.search(r"[+-]..:..$", text[10:]) else None


def _date(text: str) -> Value:
    """A day is its midnight."""
    return None if "." in text else _moment(f"{text[:10]}T00:00:00{text[10:]}")


def _day_time(text: str) -> Value:
    found = _DAY_TIME.fullmatch(text)
    if found is None or text.endswith(("P", "T")):
        return None
    days, hours, minutes, seconds, fraction = (found[i] or "0" for i in range(2, 7))
    if len(text) > 4000 or fraction[6:].strip("0"):
        return None
    whole = ((int(days) * 24 + int(hours)) * 60 + int(minutes)) * 60 + int(seconds)
    us = whole * SECOND + int(fraction[:6].ljust(6, "0"))
    us = -us if found[1] else us
    return Duration(us) if MIN_INT <= us <= MAX_INT else None


_INTEGER = re.compile(r"[+-]?[0-9]+")
_DECIMAL = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)")
_DOUBLE = re.compile(_DECIMAL.pattern + r"([eE][+-]?[0-9]+)?")
_DATE_TIME = re.compile(
    r"(?P<day>\d{4}-\d\d-\d\d)T(?P<clock>\d\d:\d\d:\d\d)(?P<fraction>\.\d+)?(?P<zone>Z|[+-]\d\d:[0-5]\d)?", re.ASCII
)
_DAY_TIME = re.compile(r"(-)?P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)(?:\.(\d+))?S)?)?", re.ASCII)

_XSD_TYPES: dict[str, Callable[[str], Value]] = {
    "string": str,
    "boolean": {"true": True, "1": True, "false": False, "0": False}.get,
    "decimal": _float(_DECIMAL),
    "double": _float(_DOUBLE),
    "float": _float(_DOUBLE),
    "dateTime": _moment,
    "dateTimeStamp": _zoned_moment,
    "date": _date,
    "dayTimeDuration": _day_time,
    "integer": _between(MIN_INT, MAX_INT),
    "nonPositiveInteger": _between(MIN_INT, 0),
    "negativeInteger": _between(MIN_INT, -1),
    "nonNegativeInteger": _between(0, MAX_INT),
    "positiveInteger": _between(1, MAX_INT),
    **{
        name: _between(-(2 ** (n - 1)), 2 ** (n - 1) - 1)
        for name, n in (("long", 64), ("int", 32), ("short", 16), ("byte", 8))
    },
    "unsignedLong": _between(0, MAX_INT),
    **{name: _between(0, 2**n - 1) for name, n in (("unsignedInt", 32), ("unsignedShort", 16), ("unsignedByte", 8))},
}
LITERALS = {XSD + name: read for name, read in _XSD_TYPES.items()}


def is_resource(value: Value) -> bool:
    """Whether a value can be the subject of a triple."""
    return type(value) is Iri


def term_key(value: Value) -> Any:
    """Tells terms apart: `1`, `1.0` and `true` are three."""
    kind = type(value)
    return kind, value.text if kind is Iri else repr(value) if kind is Term else value  # type: ignore[union-attr]
