"""Columns of Arrow tables, of CSV files and of Python objects as columns of values: the same as cell by cell, but faster.

What is wrong with a cell is a DataError without a place; whoever asked then reads row by row to find it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from augury.algebra.program import Attribute, Plan
from augury.clock import Clock, Duration, Timestamp
from augury.errors import DataError
from augury.knowledge.table import Column, Distinct, column_of, distinct_of, spread, values_of
from augury.model import MAX_INT, MIN_INT, Value, from_json
from augury.sources import CELLS, convert, fits, from_text, read_as

_FLOAT = r"^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$"
_PLAIN = {int, float, str, bool, type(None)}

# Arrow


def check_type(name: str, kind: Any, place: str) -> None:
    """Refuses a column whose values are none of the language."""
    t = pa.types
    if t.is_dictionary(kind) or _is_list(kind):
        check_type(name, kind.value_type, place)
        return
    known = (t.is_null, t.is_boolean, t.is_integer, t.is_floating, _is_text, t.is_timestamp, t.is_date, t.is_duration)
    if any(is_kind(kind) for is_kind in known):
        return
    nested, number = t.is_struct(kind) or t.is_map(kind), t.is_decimal(kind)
    hint = "make it a double" if number else "select its fields" if nested else "make it text"
    raise DataError(f"the column `{name}` is {kind}, which no fact can hold", place, hint)


def _is_text(kind: Any) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _is_list(kind: Any) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def arrow_column(array: Any) -> Column:
    """A column of an Arrow table; a date is its midnight, what has no zone is UTC."""
    t, kind = pa.types, array.type
    if t.is_dictionary(kind):
        return _words(array) if _is_text(kind.value_type) else arrow_column(array.cast(kind.value_type))
    if _is_text(kind):
        codes, words = _encoded(array.cast(pa.large_string()) if t.is_string_view(kind) else array)
        return Distinct(codes, words)
    if t.is_integer(kind):
        try:
            return _integers(array.cast(pa.int64()))
        except pa.ArrowInvalid:
            raise DataError("an integer beyond 64 bits") from None
    if t.is_floating(kind):
        return _floats(array)
    if t.is_boolean(kind) and not array.null_count:
        return array.to_numpy().astype(bool)
    if t.is_timestamp(kind) or t.is_date(kind):
        zone = kind.tz if t.is_timestamp(kind) else None
        return _moments(array.cast(pa.timestamp("us", zone), safe=False), Timestamp)
    if t.is_duration(kind):
        return _moments(array.cast(pa.duration("us"), safe=False), Duration)
    if t.is_null(kind):
        return spread(np.zeros(len(array), np.int64), [None])
    return column_of([from_json(v) for v in array.to_pylist()])


def arrow_cells(array: Any) -> list[Any]:
    """The cells of an Arrow column one by one, those included that are no values."""
    try:
        return list(values_of(arrow_column(array)))
    except DataError:
        return array.to_pylist()  # type: ignore[no-any-return]


def _encoded(array: Any) -> tuple[Any, list[Any]]:
    """The numbers of the different values of a column, null included, and those values."""
    found = array.dictionary_encode(null_encoding="encode").combine_chunks()
    if isinstance(found, pa.ChunkedArray):
        found = found.chunk(0) if found.num_chunks else pa.DictionaryArray.from_arrays(pa.array([], pa.int32()), pa.array([], array.type))  # fmt: skip
    return found.indices.to_numpy().astype(np.int64), found.dictionary.to_pylist()


def _words(array: Any) -> Column:
    """A column that is encoded already."""
    found = array.combine_chunks()
    if isinstance(found, pa.ChunkedArray):
        return arrow_column(array.cast(array.type.value_type))
    values = found.dictionary.to_pylist()
    codes = pc.fill_null(found.indices.cast(pa.int64()), len(values))
    return spread(codes.to_numpy(), [*values, None] if found.indices.null_count else values)


def _integers(array: Any) -> Column:
    if not array.null_count:
        return np.array(array.to_numpy(), np.int64)
    return spread(*_encoded(array))


def _floats(array: Any) -> Column:
    found = np.array(array.cast(pa.float64()).to_numpy(), np.float64) + 0.0
    if np.isinf(found).any():
        raise DataError("an infinite number")
    return found


def _moments(array: Any, make: type[Timestamp] | type[Duration]) -> Column:
    codes, values = _encoded(array.cast(pa.int64()))
    return spread(codes, [None if v is None else make(v) for v in values])


# Text


def text_column(cells: Any, attribute: Attribute | None, plan: Plan) -> Column:
    """A column of a CSV file: by its declared type, else as `infer_column` reads it."""
    numbers = _numbers(cells, attribute.type if attribute is not None else "")
    if numbers is not None:
        return numbers
    codes, texts = _encoded(cells)
    if attribute is not None and attribute.type not in ("string", "any"):
        return spread(codes, [from_text(text, attribute, plan) for text in texts])
    present = [text for text in texts if text != ""]
    kind = "string" if attribute is not None else next(k for k in CELLS if all(fits(cell, k) for cell in present))
    if kind == "string":
        return Distinct(codes, [text or None for text in texts])
    return spread(codes, list(map(read_as(kind), texts)))


def _numbers(cells: Any, type: str) -> Column | None:
    """A column of plain numbers; None where it has anything else, be it a number too."""
    if type not in ("", "int", "float", "number"):
        return None
    blank = pc.equal(cells, "")
    if pc.any(blank).as_py():
        cells = pc.if_else(blank, None, cells)
    first = next((c.as_py() for c in cells.drop_null()[:1]), "")
    if not first[:2].strip("-")[:1].isdigit():
        return None
    try:
        whole = cells.cast(pa.int64())
        if pc.all(pc.equal(whole.cast(pa.string()), cells)).as_py():
            return _integers(whole) if type != "float" else _floats(whole)
    except pa.ArrowInvalid:
        pass
    if type == "int" or not pc.all(pc.match_substring_regex(cells, _FLOAT)).as_py():
        return None
    # `number` has integers and floats side by side; a column of nothing but long integers has no floats at all.
    marked = pc.match_substring_regex(cells, "[.eE]")
    if type != "float" and not (pc.all(marked) if type == "number" else pc.any(marked)).as_py():
        return None
    return _floats(cells.cast(pa.float64()))


def moment_texts(cells: Any) -> Column:
    """A column of a CSV file that says times: numbers where all are, else the texts."""
    numbers = _numbers(cells, "int")
    return Distinct(*_encoded(cells)) if numbers is None else numbers


# Python


def python_column(values: Sequence[Any]) -> Column:
    """A column of Python objects."""
    kinds = set(map(type, values))
    if not kinds <= _PLAIN:
        return column_of([from_json(v) for v in values])
    if int in kinds and any(not MIN_INT <= v <= MAX_INT for v in values if type(v) is int):
        raise DataError("an integer beyond 64 bits")
    if float in kinds:
        return column_of([from_json(v) if type(v) is float else v for v in values])
    return column_of(values)


# Declared types and times


def declared_column(column: Column, attribute: Attribute, plan: Plan) -> Column:
    """A column with its values converted to the declared type."""
    kind = "words" if isinstance(column, Distinct) else column.dtype.kind
    match attribute.type, kind:
        case ("any", _) | ("int" | "number", "i") | ("float" | "number", "f") | ("bool", "b"):
            return column
        case "float", "i":
            return column.astype(np.float64)
    found = distinct_of(column)
    if attribute.type == "string" and set(map(type, found.values)) <= {str, type(None)}:
        return column
    return spread(found.codes, [convert(v, attribute, plan) for v in found.values])


def read_time(value: Any, clock: Clock) -> int | None:
    """The time that a cell says; None where it is empty."""
    if value is None or value == "":
        return None
    if isinstance(value, Timestamp):  # a calendar time, even where the clock takes no numbers for one
        return value.us if clock.kind == "timestamp" else clock.read(str(value))
    return clock.read(value)


def time_column(column: Column, clock: Clock, unbounded: int) -> Any:
    """A column of times as integers, `unbounded` where there is none; None where no row has one."""
    plain = not isinstance(column, Distinct) and column.dtype.kind == "i"
    if plain and len(column) and not (clock.kind == "timestamp" and clock.guessed):
        return column
    found = distinct_of(column)
    read = [read_time(v, clock) for v in found.values]
    if all(t is None for t in read):
        return None
    return np.array([unbounded if t is None else t for t in read], np.int64)[found.codes]


def retract_column(column: Column) -> Any:
    """Whether a row retracts, by its `op`."""
    found = distinct_of(column)
    unknown: list[Value] = [v for v in found.values if v not in (None, "", "assert", "retract")]
    if unknown:
        raise DataError(f"unknown op {unknown[0]!r}", hint="it is assert or retract")
    return np.array([v == "retract" for v in found.values], bool)[found.codes]
