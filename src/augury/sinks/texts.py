"""Converts columns to text; each text is byte for byte what Python prints for the value."""

from __future__ import annotations

import json
from collections.abc import Callable
from json.encoder import encode_basestring
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from augury.core.arrays import Array
from augury.core.clock import SECOND, Clock
from augury.core.model import Value, to_json
from augury.sinks.values import ValueColumn, text_array

_FIRST, _LAST = -30_610_224_000, 253_402_300_799  # the seconds of the years 1000 to 9999, all as long when written
_EXACT = 2**53


def joined(*pieces: object) -> Any:
    """Texts put together row by row; a piece is an array of texts, or one text for all rows."""
    return pc.binary_join_element_wise(*(pa.scalar(p) if isinstance(p, str) else p for p in pieces), "")


def data_of(texts: Any) -> Any:
    """The bytes of all texts of an array, one after the other."""
    offsets = np.frombuffer(texts.buffers()[1], np.int32)
    lo, hi = int(offsets[texts.offset]), int(offsets[texts.offset + len(texts)])
    data = texts.buffers()[2]
    return memoryview(b"") if data is None else memoryview(data)[lo:hi]


def has_any(texts: object, *characters: int, below: int = 0) -> bool:
    """Whether some byte is one of these, or below another."""
    data = np.frombuffer(data_of(texts), np.uint8)
    return bool((data < below).any()) or any(bool((data == c).any()) for c in characters)


def quoted(texts: Any) -> Any:
    """Texts as JSON strings."""
    if has_any(texts, 34, 92, below=32):
        return text_array([None if t is None else encode_basestring(t) for t in texts.to_pylist()])
    return joined('"', texts, '"')


def numbers(values: Array) -> Any:
    """Integers and floats as Python writes them."""
    if values.dtype.kind != "f":
        return pc.cast(pa.array(values), pa.string())
    size = np.abs(values)
    whole = (values == np.floor(values)) & (size < _EXACT) & ~((size == 0) & np.signbit(values))
    short = ~whole & (size >= 1e-4) & (size < 1e10)  # where Arrow writes no exponent
    if short.all():
        return pc.cast(pa.array(values), pa.string())
    if whole.all():
        return joined(pc.cast(pa.array(values.astype(np.int64)), pa.string()), ".0")
    ways = [
        (np.flatnonzero(short), numbers),
        (np.flatnonzero(whole), numbers),
        (np.flatnonzero(~short & ~whole), _one_by_one),
    ]
    position = np.empty(len(values), np.int64)
    position[np.concatenate([rows for rows, _ in ways])] = np.arange(len(values))
    return pa.concat_arrays([write(values[rows]) for rows, write in ways if len(rows)]).take(pa.array(position))


def _one_by_one(values: Array) -> Any:
    return pa.array([repr(v) for v in values.tolist()], pa.string())


def times(values: Array, clock: Clock) -> Any:
    """Time points as the clock shows them."""
    if clock.kind == "logical":
        return numbers(values)
    return stamps(values, clock)


def stamps(values: Array, clock: Clock) -> Any:
    """Time points of calendar time: `2026-01-31T10:00:00Z`, with microseconds where there are some."""
    seconds, rest = np.divmod(values, SECOND)
    if not len(values) or seconds.min() < _FIRST or seconds.max() > _LAST:
        return pa.array([str(clock.show(t)) for t in values.tolist()], pa.string())
    written = pc.cast(pc.cast(pa.array(seconds), pa.timestamp("s")), pa.string())
    letters = np.frombuffer(data_of(written), np.uint8).reshape(len(values), -1).copy()
    letters[:, 10] = ord("T")
    offsets = np.arange(0, letters.size + 1, letters.shape[1], dtype=np.int32)
    day = pa.StringArray.from_buffers(len(values), pa.py_buffer(offsets), pa.py_buffer(letters))
    if not rest.any():
        return joined(day, "Z")
    digits = pc.utf8_lpad(pc.cast(pa.array(rest), pa.string()), 6, "0")
    fraction = pc.if_else(pa.array(rest != 0), joined(".", digits), "")
    return joined(day, fraction, "Z")


def column_texts(
    column: ValueColumn, write: Callable[[Value], str], null: str, texts: Callable[[object], object]
) -> Any:
    """The values of a column as texts: numbers as they are, null as `null`, and texts as `texts` has it for many.

    Each of the other values is written once.
    """
    if column.textual:
        return pc.fill_null(texts(column.taken(column.values)), null)
    if column.numeric and column.unit is None:
        result = numbers(column.values)
        return result if column.null is None else pc.if_else(pa.array(column.null), null, result)
    if column.numeric:
        column = column.listed()
    return column.taken(column.once(write, lambda: text_array([write(v) for v in column.values])))


def json_texts(column: ValueColumn) -> Any:
    """The values of a column as JSON."""
    return column_texts(column, json_text, "null", quoted)


def json_text(value: Value) -> str:
    return encode_basestring(value) if type(value) is str else json.dumps(to_json(value), ensure_ascii=False)
