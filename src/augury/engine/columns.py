"""The answers of a step as columns, for a host that takes millions of them: ids, traces and values without a loop.

Columns hold codes of the circuit's dictionary and ids as numbers; `decoded`, `hex_ids` and `as_lists` make Arrow arrays of
them. Both are to be called before the session goes on: it may then forget the rows and the codes.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from augury.clock import Duration, Timestamp
from augury.engine.answers import Answers, Changes
from augury.engine.kernels import Array
from augury.engine.table import END, START
from augury.engine.trace import Again, Traces, traces_of
from augury.engine.values import Dictionary, content_hashes
from augury.errors import RunError
from augury.model import MAX_INT, MIN_INT, Change, Iri, Term, Value, show_value
from augury.sources.columns import distinct

if TYPE_CHECKING:
    from augury.engine.circuit import Circuit

Kind: TypeAlias = Literal["long", "double", "string", "json"]


@dataclass(frozen=True)
class Columns:
    """Changes of the answers of one type: those that are taken back first."""

    type: str
    arity: int
    op: Array  # int8: 1 is given, -1 is taken back
    start: Array  # int64
    end: Array  # int64
    codes: list[Array]  # int64, for each argument
    ids: Array  # uint64
    trace: Traces | None

    def __len__(self) -> int:
        return len(self.op)


def columns_of(changes: Changes, circuit: Circuit, trace: bool = True) -> list[Columns]:
    """The changes of a step as columns, for each type of answers that has some; in no order but that of `op`."""
    if changes.found is None:
        return _from_events(changes.materialise(), circuit, trace)
    hashes, traces = Again[Array](), Again[Traces]()
    return [_columns(*one, circuit, trace, hashes, traces) for one in changes.found if len(one[1]) or len(one[2])]


def _columns(
    answers: Answers,
    dead: Array,
    new: Array,
    circuit: Circuit,
    trace: bool,
    hashes: Again[Array],
    traces: Again[Traces],
) -> Columns:
    events = answers.events
    table, rows = events.out.table, np.concatenate([dead, new])
    start, end = table.data[START, rows], table.data[END, rows]
    codes = [table.data[field, rows] for field in table.codes]
    told = codes[: events.arity - circuit.plan.hidden]
    return Columns(
        events.type,
        events.arity,
        np.repeat(np.array([-1, 1], np.int8), [len(dead), len(new)]),
        start,
        end,
        codes,
        content_hashes(
            events.type, [hashes.of((column,), partial(table.dictionary.hashes, column)) for column in told], start, end
        ),
        traces_of(circuit, events, rows, traces) if trace else None,
    )


def _from_events(changes: list[Change], circuit: Circuit, trace: bool) -> list[Columns]:
    """Changes that somebody has looked at already: their rows may be gone."""
    types: dict[tuple[str, int], list[Change]] = {}
    for change in changes:
        types.setdefault((change.event.type, len(change.event.args)), []).append(change)
    result = []
    for (type, arity), some in types.items():
        some = sorted(some, key=lambda change: change.op == "insert")
        events = [change.event for change in some]
        pool: dict[str, int] = {}
        items = [pool.setdefault(id, len(pool)) for event in events for id in event.trace]
        offsets = np.r_[0, np.cumsum([len(event.trace) for event in events])]
        result.append(
            Columns(
                type,
                arity,
                np.array([1 if change.op == "insert" else -1 for change in some], np.int8),
                np.array([event.start for event in events], np.int64),
                np.array([event.end for event in events], np.int64),
                [circuit.words.dictionary.encode_all(event.args[i] for event in events) for i in range(arity)],
                np.array([int(event.id, 16) for event in events], np.uint64),
                Traces(offsets.astype(np.int32), np.array(items, np.int64), list(pool)) if trace else None,
            )
        )
    return result


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


def decoded(dictionary: Dictionary, codes: Array, kind: Kind) -> Any:
    """Codes as an Arrow array of int64, float64 or text; null is null, and a value that is of another kind is refused."""
    pa = _arrow()
    if kind in ("string", "json"):
        odd = (codes & 1).astype(bool)
        if odd.all():
            numbers, place = distinct(codes >> 1, dictionary.n)
            few = numbers * 2 + 1
        else:
            few, place = np.unique(codes, return_inverse=True)
        values = [dictionary.decode(code) for code in few.tolist()]
        texts = [None if v is None else _text(v) if kind == "string" else tagged(v) for v in values]
        return pa.array(texts, pa.string()).take(pa.array(place))
    result = (codes >> 2).astype(np.int64 if kind == "long" else np.float64)
    odd = np.flatnonzero(codes & 1)
    if not len(odd):
        return pa.array(result)
    numbers, place = distinct(codes[odd] >> 1, dictionary.n)
    found = np.zeros(len(numbers), result.dtype)
    null = np.zeros(len(numbers), bool)
    floats = dictionary.is_float(numbers)
    if kind == "double":
        found[floats] = dictionary.numbers[numbers[floats]]
    elif floats.any():
        raise _misfit(dictionary.decode(int(numbers[floats][0]) * 2 + 1), kind)
    for i in np.flatnonzero(~floats).tolist():
        value = dictionary.decode(int(numbers[i]) * 2 + 1)
        null[i] = value is None
        if value is not None:
            found[i] = _long(value) if kind == "long" else _double(value)
    result[odd] = found[place]
    mask = np.zeros(len(codes), bool)
    mask[odd] = null[place]
    return pa.array(result, mask=mask)


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

_compact = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode


def tagged(value: Value) -> str:
    """A value as JSON from which `from_tagged` reads it back: a timestamp is `{"@timestamp":0}`."""
    return _compact(_tagged(value))


def _tagged(value: Value) -> Any:
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


def _untagged(value: Any) -> Value:
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
