"""Codes, ids and traces of a circuit as Arrow arrays and as columns of values, without a loop over rows."""

from __future__ import annotations

import json
from importlib import import_module
from typing import Any, Literal, TypeAlias

import numpy as np

from augury.core.arrays import Array, Codes
from augury.core.clock import Duration, Timestamp
from augury.core.errors import RunError
from augury.core.model import MAX_INT, MIN_INT, Iri, Term, Value, show_value
from augury.engine.trace import Traces
from augury.sinks import ValueColumn, coded_column
from augury.storage.column import distinct
from augury.storage.dictionary import NULL, TEXT, Dictionary
from augury.storage.unique import unique_inverse

Kind: TypeAlias = Literal["long", "double", "string", "json"]


# Arrow

_PAIRS = np.frombuffer("".join(f"{i:02x}" for i in range(256)).encode(), np.uint16)


def _arrow() -> Any:
    return import_module("pyarrow")  # which has no types to check, and need not be there


def hex_ids(ids: Array) -> Any:
    """Ids as text: an Arrow array of 16 hexadecimal digits each."""
    pa = _arrow()
    text = _PAIRS[ids.astype(">u8").view(np.uint8)]
    offsets = np.arange(0, 16 * len(ids) + 1, 16, dtype=np.int32)
    return pa.StringArray.from_buffers(len(ids), pa.py_buffer(offsets), pa.py_buffer(text))


def as_lists(traces: Traces) -> Any:
    """Traces as an Arrow array of lists of ids."""
    pa = _arrow()
    if traces.pool is None:
        ids = hex_ids(traces.items)
    else:
        ids = pa.array(traces.pool, pa.string()).take(pa.array(traces.items))
    return pa.ListArray.from_arrays(pa.array(traces.offsets, pa.int32()), ids)


def values_of(dictionary: Dictionary, codes: Codes) -> ValueColumn:
    """Codes as a column of values."""
    null = codes == NULL
    some_null = bool(null.any()) and not bool(null.all())
    present = codes[~null] if some_null else codes
    unit, values = None, dictionary.numeric(present)
    if values is None and (times := dictionary.times(present)) is not None:
        unit, values = _UNITS[times[0]], times[1]
    if values is not None:
        if not some_null:
            return ValueColumn(values, unit=unit)
        filled = np.zeros(len(codes), values.dtype)
        filled[~null] = values
        return ValueColumn(filled, null=null, unit=unit)
    if (codes & 1).all():
        few, number = distinct(codes >> 1, dictionary.n)
        few = few * 2 + 1
    else:
        few, number = unique_inverse(codes)
    if (dictionary.kinds(few) == TEXT).all():
        return ValueColumn(dictionary.texts(few), number)
    return coded_column(dictionary.decode_all(few), number)


_UNITS: dict[str, type[Timestamp | Duration]] = {"t": Timestamp, "d": Duration}


def decoded(dictionary: Dictionary, codes: Codes, kind: Kind) -> Any:
    """Codes as an Arrow array of int64, float64 or text; null is null, and a value that is of another kind is refused."""
    pa = _arrow()
    column = values_of(dictionary, codes)
    if column.textual and kind == "string":
        return column.taken(column.values)
    if column.numeric and (
        (kind == "double" and column.unit is None) or (kind == "long" and column.values.dtype.kind == "i")
    ):
        return pa.array(column.values.astype(np.int64 if kind == "long" else np.float64), mask=column.null)
    make, type = {
        "long": (_long, pa.int64()),
        "double": (_double, pa.float64()),
        "string": (_text, pa.string()),
        "json": (tagged, pa.string()),
    }[kind]
    few, number = unique_inverse(codes)
    values = [dictionary.decode(code) for code in few.tolist()]
    return pa.array([None if v is None else make(v) for v in values], type).take(pa.array(number))


def _long(value: Value) -> int:
    match value:
        case Timestamp() | Duration():
            return value.us
        case bool() | int():
            return int(value)
        case float() if value.is_integer() and MIN_INT <= value <= MAX_INT and int(value) <= MAX_INT:
            return int(value)
    raise _misfit(value, "long")


def _double(value: Value) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    raise _misfit(value, "double")


def _text(value: Value) -> str:
    match value:
        case str():
            return value
        case Iri():
            return value.text
    raise _misfit(value, "string")


def _misfit(value: Value, kind: Kind) -> RunError:
    return RunError(f"{show_value(value)} is not a value of a column of type {kind}", hint="`json` holds any value")


# Values as text that keeps their types

compact = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode


def tagged(value: Value) -> str:
    """A value as JSON from which `from_tagged` reads it back: a timestamp is `{"@timestamp":0}`."""
    return compact(_tagged(value))


def _tagged(value: Value) -> object:
    match value:
        case Timestamp():
            return {"@timestamp": value.us}
        case Duration():
            return {"@duration": value.us}
        case Iri():
            return {"@iri": value.text}
        case Term():
            return {"@term": [value.functor, [_tagged(a) for a in value.args]]}
        case tuple():
            return [_tagged(a) for a in value]
    return value


def from_tagged(text: str) -> Value:
    """The value that `tagged` has written."""
    return _untagged(json.loads(text))


def _untagged(value: object) -> Value:
    match value:
        case {"@timestamp": int(us)}:
            return Timestamp(us)
        case {"@duration": int(us)}:
            return Duration(us)
        case {"@iri": str(name)}:
            return Iri(name)
        case {"@term": [str(functor), [*args]]}:
            return Term(functor, tuple(_untagged(a) for a in args))
        case [*args]:
            return tuple(_untagged(a) for a in args)
        case None | bool() | int() | float() | str():
            return value
    raise RunError(f"not a value of a column of type json: {json.dumps(value)[:60]}")
