"""Hashes of columns of values, and of contents: the same as `model` gives for each of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from augury.core.arrays import Array, Hashes, Mask, Times
from augury.core.clock import Duration, Timestamp
from augury.core.jit import Kernel
from augury.core.model import (
    FLOAT_SEED,
    GOLDEN,
    INT_SEED,
    MIX_1,
    MIX_2,
    Value,
    content_seed,
    spelling,
    value_hash,
)
from augury.storage.column import Coded, TextColumn, TimeColumn, resolved
from augury.storage.kernels.blake2b import INITIAL, LANES, ORDER, hash_texts
from augury.storage.kernels.hashing import mix

_MANY = 64  # values that are worth columns


def hashes_of(values: Sequence[Value]) -> tuple[Hashes, Hashes]:
    """The hashes and the spellings of values: those of texts and of times as columns."""
    hashes, spellings = np.empty(len(values), np.uint64), np.zeros(len(values), np.uint64)
    rest = np.ones(len(values), bool)
    if Kernel.compiled and len(values) > _MANY:
        kinds = np.fromiter(map(id, map(type, values)), np.int64, len(values))
        for kind, hashed in ((str, _texts), (Timestamp, _times), (Duration, _times)):
            rows = np.flatnonzero(kinds == id(kind))
            if len(rows):
                hashes[rows] = hashed([values[row] for row in rows.tolist()])
                rest[rows] = False
    for row in np.flatnonzero(rest).tolist():
        hashes[row], spellings[row] = value_hash(values[row]), spelling(values[row])
    return hashes, spellings


def _texts(values: Sequence[Any]) -> Hashes | list[int]:
    import pyarrow as pa

    try:
        return text_hashes(pa.array(values, pa.large_string()))
    except (UnicodeEncodeError, pa.ArrowInvalid):  # halves of characters
        return [value_hash(value) for value in values]


def text_hashes(texts: Any) -> Hashes:
    """`value_hash` of the texts of an Arrow array without nulls, once kernels are compiled."""
    hashes, plain = _hashed(texts, 1)
    others = np.flatnonzero(~plain)
    if len(others):  # JSON writes them in another way
        hashes[others] = [value_hash(text) for text in texts.take(others).to_pylist()]
    return hashes


def _times(values: Sequence[Any]) -> Hashes:
    import pyarrow as pa

    return time_hashes(pa.array([value.us for value in values], pa.int64()), type(values[0]))


def time_hashes(times: object, kind: type[Timestamp | Duration]) -> Hashes:
    """`value_hash` of times or durations: an Arrow array of microseconds without nulls, once kernels are compiled."""
    import pyarrow as pa
    import pyarrow.compute as pc

    written = pc.binary_join_element_wise(f'{{"{kind.__name__}":', pc.cast(times, pa.string()), "}", "")
    return _hashed(written, 0)[0]


def _hashed(texts: Any, quote: int) -> tuple[Hashes, Mask]:
    """The hashes of texts; and which of them JSON writes as they are."""
    hashes, plain = np.empty(len(texts), np.uint64), np.empty(len(texts), bool)
    _, places, data = texts.buffers()
    offsets = np.frombuffer(places, np.int64 if str(texts.type).startswith("large") else np.int32)
    letters = np.zeros(1, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    block = np.zeros(16, np.uint64)
    hash_texts.call(
        letters, offsets[texts.offset : texts.offset + len(texts) + 1], quote, np.empty(8, np.uint64), block,
        block.view(np.uint8), np.zeros((16, LANES), np.uint64), np.empty((16, LANES), np.uint64),
        np.zeros((2, LANES), np.int64), INITIAL, ORDER, hashes, plain,
    )  # fmt: skip
    return hashes.byteswap(), plain


_CONSTANTS = np.array([GOLDEN, MIX_1, MIX_2, 30, 27, 31], np.uint64)


def mix_hashes(h: Array | np.uint64, more: Array) -> Array:
    """`model.mix` of columns."""
    if Kernel.compiled:
        result: Array = np.full(len(more), h) if h.ndim == 0 else np.copy(h)
        mix(result, more, _CONSTANTS)
        return result
    hashes: Hashes = (h ^ more) + np.uint64(GOLDEN)
    hashes ^= hashes >> np.uint64(30)
    hashes *= np.uint64(MIX_1)
    hashes ^= hashes >> np.uint64(27)
    hashes *= np.uint64(MIX_2)
    hashes ^= hashes >> np.uint64(31)
    return hashes


def content_hashes(type: str, args: Sequence[Array], start: Times, end: Times) -> Hashes:
    """The ids of events as numbers: of contents whose arguments have these hashes."""
    h = np.full(len(start), content_seed(type, len(args)), np.uint64)
    for item in (*args, start.astype(np.int64).view(np.uint64), end.astype(np.int64).view(np.uint64)):
        h = mix_hashes(h, item)
    return h


def spellings_of(masks: Sequence[Array], count: int) -> Array:
    """`spelling_of` of rows whose arguments have these spellings."""
    h, plain = np.zeros(count, np.uint64), np.ones(count, bool)
    if not any(item.any() for item in masks):
        return h
    for item in masks:
        h = mix_hashes(h, item)
        plain &= item == 0
    h[plain] = 0
    return h


def hashes_of_columns(columns: Sequence[Any]) -> tuple[Hashes, Array]:
    """The hashes and the spellings of the values of columns, one after the other: those of one kind at once."""
    columns = [resolved(column) for column in columns]
    kinds = {type(column) for column in columns}
    count = sum(map(len, columns))
    if Kernel.compiled and count > _MANY:
        if kinds == {TextColumn}:
            return _hashes_of_texts([column.array for column in columns])
        if kinds == {TimeColumn} and len({column.kind for column in columns}) == 1:
            hashes = _times_hashed(np.concatenate([column.us for column in columns]), columns[0].kind)
            missing = [np.zeros(len(column), bool) if column.null is None else column.null for column in columns]
            hashes[np.concatenate(missing)] = value_hash(None)
            return hashes, np.zeros(count, np.uint64)
    if kinds == {np.ndarray} and len({column.dtype for column in columns}) == 1:
        return numbers_hashed(columns[0] if len(columns) == 1 else np.concatenate(columns))
    parts = [_hashed_column(column) for column in columns]
    return np.concatenate([h for h, _ in parts]), np.concatenate([s for _, s in parts])


def _hashes_of_texts(arrays: Sequence[Any]) -> tuple[Hashes, Array]:
    """The same of arrays of texts, some of which may be null or have a dictionary."""
    import pyarrow as pa

    texts = pa.concat_arrays([array.cast(pa.large_string()) for array in arrays])
    hashes = np.full(len(texts), value_hash(None), np.uint64)
    valid = slice(None) if not texts.null_count else texts.is_valid().to_numpy(zero_copy_only=False)
    hashes[valid] = text_hashes(texts.drop_null() if texts.null_count else texts)
    return hashes, np.zeros(len(texts), np.uint64)


def _times_hashed(us: Times, kind: type[Timestamp | Duration]) -> Hashes:
    import pyarrow as pa

    return time_hashes(pa.array(us), kind)


def _hashed_column(column: Any) -> tuple[Hashes, Array]:
    if isinstance(column, np.ndarray):
        return numbers_hashed(column)
    if isinstance(column, Coded):
        values, number = column.distinct()
        hashes, spellings = hashes_of(values)
        return hashes[number], spellings[number]
    return hashes_of(column)


def numbers_hashed(column: Array) -> tuple[Array, Array]:
    """Hashes and spellings of an array of integers, floats (NaN is null) or booleans."""
    spelt = np.zeros(len(column), np.uint64)
    if column.dtype.kind in "iu":
        return mix_hashes(np.uint64(INT_SEED), column.astype(np.int64).view(np.uint64)), spelt
    if column.dtype.kind == "b":
        return np.array([value_hash(False), value_hash(True)], np.uint64)[column.astype(np.int64)], spelt
    column = column.astype(np.float64)
    hashes = mix_hashes(np.uint64(FLOAT_SEED), column.view(np.uint64))
    whole = (column == np.floor(column)) & np.isfinite(column)
    spelt[whole] = 1
    small = whole & (np.abs(column) < 2.0**63)
    hashes[small] = mix_hashes(np.uint64(INT_SEED), column[small].astype(np.int64).view(np.uint64))
    hashes[np.isnan(column)] = value_hash(None)
    for i in np.flatnonzero(whole & ~small).tolist():
        hashes[i] = value_hash(float(column[i]))
    return hashes, spelt
