"""Hashes of columns of values: the same as `value_hash` and `spelling` give for each of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from augury.core.arrays import Hashes, Mask
from augury.core.clock import Duration, Timestamp
from augury.core.jit import Kernel
from augury.core.model import Value, spelling, value_hash
from augury.storage.kernels.blake2b import INITIAL, ORDER, hash_texts

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
        block.view(np.uint8), INITIAL, ORDER, hashes, plain,
    )  # fmt: skip
    return hashes.byteswap(), plain
