"""The types of the language, one row each: how a value of a type is read, by itself and in columns.

    "2h"  duration  →  Duration(7200000000)          "wt:Diablo"  iri  →  the IRI, where `wt` is a prefix of the program

A row has the form for values of Python and JSON (`value`) and the one for cells of text (`text`); `arrays` are the kinds
of arrays whose elements are values of the type as they stand.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

import numpy as np

from augury.algebra.plan import Attribute
from augury.core.clock import Duration, Timestamp, read_duration, read_timestamp, time_zone
from augury.core.errors import DataError, brief
from augury.core.model import MAX_INT, MIN_INT, Iri, Term, Value, from_json, show_value

Prefixes = Mapping[str, str]
Read = Callable[[Any, Prefixes], Value]
_SHOWN = 100  # characters of a value in a message
_DEEPEST = 100  # so that everything that goes through a value to its end gets there
_DIGITS = 400
_INT = re.compile(r"[+-]?[0-9]+")
_MANY = re.compile(r"[0-9]{1000}")  # digits of a number that no duration has
_FLOAT = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


@dataclass(frozen=True)
class Type:
    """A row of the table. What is no such value is None, or a ValueError that says why."""

    name: str
    value: Read
    text: Read
    arrays: str = ""


def _kept(*kinds: type) -> Read:
    """Values that are of the type as they stand."""

    def read(value: Value, prefixes: Prefixes) -> Value:
        return value if type(value) in kinds else None

    return read


def _float(value: Value, prefixes: Prefixes) -> Value:
    return float(value) if type(value) in (int, float) else None  # type: ignore[arg-type]


def _int(value: Value, prefixes: Prefixes) -> Value:
    if type(value) is float:
        return int(value) if value.is_integer() else None
    return value if type(value) is int else None


def _timestamp(value: Value, prefixes: Prefixes) -> Value:
    if type(value) is str:
        return Timestamp(read_timestamp(value))
    if type(value) is int:
        return Timestamp(value)
    return value if type(value) is Timestamp else None


def _duration(value: Value, prefixes: Prefixes) -> Value:
    if type(value) is str:
        if _MANY.search(value) or not MIN_INT <= (length := read_duration(value)) <= MAX_INT:
            raise ValueError(f"a duration beyond 64 bits: {brief(value)}")
        return Duration(length)
    return value if type(value) is Duration else None


def _iri(value: Value, prefixes: Prefixes) -> Value:
    if type(value) is str:
        prefix, colon, local = value.partition(":")
        return Iri(prefixes[prefix] + local if colon and prefix in prefixes else value)
    return value if type(value) is Iri else None


def _any(value: Value, prefixes: Prefixes) -> Value:
    return value


def int_text(text: str, prefixes: Prefixes) -> Value:
    return from_json(_whole(text)) if _INT.fullmatch(text.strip()) else None


def _whole(text: str) -> int:
    """An integer; of one with more digits than any has, Python would not make a number."""
    if len(text) <= _DIGITS:
        return int(text)
    digits = text.strip().lstrip("+-0")
    if len(digits) > _DIGITS:
        raise DataError(f"an integer beyond 64 bits: {text.strip()[:40]}…")
    return int(digits or "0") * (-1 if "-" in text else 1)


def float_text(text: str, prefixes: Prefixes) -> Value:
    """A number; `nan` is null, and an infinite one is refused with its own message."""
    stripped = text.strip()
    if _FLOAT.fullmatch(stripped) or stripped.lower().lstrip("+-") in ("nan", "inf", "infinity"):
        return from_json(float(stripped))
    raise ValueError


def _number_text(text: str, prefixes: Prefixes) -> Value:
    return int_text(text, prefixes) if _INT.fullmatch(text.strip()) else float_text(text, prefixes)


def _bool_text(text: str, prefixes: Prefixes) -> Value:
    return {"true": True, "false": False}.get(text.strip().lower())


TYPES: dict[str, Type] = {
    row.name: row
    for row in (
        Type("int", _int, int_text, "i"),
        Type("float", _float, float_text, "f"),
        Type("number", _kept(int, float), _number_text, "if"),
        Type("string", _kept(str), _any),
        Type("bool", _kept(bool), _bool_text, "b"),
        Type("timestamp", _timestamp, _timestamp),
        Type("duration", _duration, _duration),
        Type("iri", _iri, _iri),
        Type("term", _kept(Term), _kept(Term)),
        Type("list", _kept(tuple), _kept(tuple)),
        Type("any", _any, _any, "ifb"),
    )
}


def is_null(value: object) -> bool:
    """Whether a Python value means null: None, NaN, and the nulls of pandas."""
    if value is None or (isinstance(value, float | datetime) and value != value):
        return True
    return type(value).__name__ == "NAType"


def from_numpy(value: Any) -> object:
    """A number, text or time of NumPy as one of Python."""
    if isinstance(value, np.datetime64 | np.timedelta64):
        value = value.astype(f"{'datetime' if isinstance(value, np.datetime64) else 'timedelta'}64[us]")
    return value.item()


def value_of(value: object, depth: int = 0) -> Value:
    """A value of Python or JSON: as `from_json` has it, and what NumPy and pandas have for numbers, times and null."""
    match value:
        case str():
            return characters(value)
        case bool() | None:
            return value
        case np.generic():
            return value_of(from_numpy(value), depth)
        case float() | datetime() if is_null(value):
            return None
        case int() if not MIN_INT <= value <= MAX_INT:
            raise DataError(f"an integer beyond 64 bits: {brief(value)}")
        case Decimal():
            raise DataError(f"a decimal number, which is not supported: {value}", hint="make it a float, or text")
        case Term(functor, args) | {"functor": str(functor), "args": [*args]}:
            return Term(functor, _values(args, depth))
        case list() | tuple():
            return _values(value, depth)
        case np.ndarray():
            return _values(value.tolist(), depth)
    return None if is_null(value) else from_json(value)


def characters(text: str) -> str:
    """A text, all of whose characters are some: half of a surrogate pair, as Python and JSON may have it, is none."""
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise DataError("half of a surrogate pair, which is no character") from None
    return text


def _values(items: Iterable[object], depth: int) -> tuple[Value, ...]:
    if depth == _DEEPEST:
        raise DataError("nested too deeply", hint=f"lists and terms are nested up to {_DEEPEST} times")
    return tuple(value_of(item, depth + 1) for item in items)


def text_of(value: object) -> str | None:
    """An id or an op as text; None where it is missing."""
    if isinstance(value, str):
        return characters(value) or None
    result = value_of(value) if type(value) is not int or value.bit_length() > 1000 else value
    return None if result is None else str(result)


def convert(value: object, attribute: Attribute, prefixes: Prefixes) -> Value:
    """A value of Python or JSON as one of the declared type."""
    try:
        plain = value_of(_in_zone(value, attribute.zone) if attribute.zone else value)
    except DataError as error:
        raise _no_value(attribute, error) from None
    if plain is None:
        return None
    return _checked(TYPES[attribute.type].value, plain, attribute, prefixes)


def from_text(text: str, attribute: Attribute, prefixes: Prefixes) -> Value:
    """A cell of a table of text, by its declared type; an empty cell is null."""
    value = _in_zone(text, attribute.zone) if attribute.zone else text
    return None if text == "" else _checked(TYPES[attribute.type].text, value, attribute, prefixes)


def _in_zone(value: object, zone: str) -> object:
    """A calendar time that names no zone as one of `zone`; what is none as it is, for the type to refuse."""
    if isinstance(value, np.datetime64):
        value = from_numpy(value)
    if isinstance(value, datetime) and value.tzinfo is None and not is_null(value):
        return value.replace(tzinfo=time_zone(zone))
    try:
        return Timestamp(read_timestamp(value, zone)) if isinstance(value, str) else value
    except (ValueError, DataError):
        return value


def _checked(read: Read, cell: object, attribute: Attribute, prefixes: Prefixes) -> Value:
    try:
        result = read(cell, prefixes)
    except DataError as error:
        raise _no_value(attribute, error) from None
    except ValueError as error:
        if str(error):
            raise DataError(f"`{attribute.name}` is declared as {attribute.type}: {error}") from None
        result = None
    if result is None and not (read in (float_text, _number_text) and _is_nan(cell)):
        raise DataError(f"`{attribute.name}` is declared as {attribute.type}, but is {_shown(cell)}")
    return result


def _no_value(attribute: Attribute, error: DataError) -> DataError:
    return DataError(f"`{attribute.name}` is declared as {attribute.type}: {error.message}", hint=error.hint)


def _shown(cell: Any) -> str:
    shown = show_value(cell)
    return shown if len(shown) <= _SHOWN else shown[:_SHOWN] + "…"


def _is_nan(cell: object) -> bool:
    return isinstance(cell, str) and cell.strip().lower().lstrip("+-") == "nan"


# Undeclared columns of text


def _plain_int(text: str) -> int:
    """A plain integer; what has leading zeros is a code, not a number."""
    if not re.fullmatch(r"-?(0|[1-9][0-9]*)", text):
        raise ValueError(text)
    return _whole(text)


def _plain_float(text: str) -> float:
    if not re.fullmatch(PLAIN_FLOAT, text) or not any(c in "0123456789" for c in text):
        raise ValueError(text)
    return float(text)


def _plain_bool(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError(text)
    return text.lower() == "true"


PLAIN_FLOAT = r"-?(0|[1-9][0-9]*)?(\.[0-9]+)?([eE][+-]?[0-9]+)?"
# The kinds that an undeclared column may have: the first one that all its cells are of.
KINDS: dict[str, Callable[[str], object]] = {
    "int": _plain_int,
    "float": _plain_float,
    "bool": _plain_bool,
    "string": str,
}


def fits(cell: str, kind: str) -> bool:
    """Whether a cell of an undeclared column can be read as of a kind."""
    try:
        KINDS[kind](cell)
    except DataError:  # of the kind, though there is no such value
        return True
    except ValueError:
        return False
    return True


def kind_of(cells: Iterable[str]) -> str:
    """The kind of an undeclared column of text: integers, floats or booleans where every cell is one, else text."""
    present = [c for c in cells if c != ""]
    return next(kind for kind in KINDS if all(fits(cell, kind) for cell in present))


def read_as(kind: str) -> Callable[[str], Value]:
    """How the cells of a column of a kind are read; an empty one is null."""
    read = KINDS[kind]
    return lambda cell: None if cell == "" else from_json(read(cell))
