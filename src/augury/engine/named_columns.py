"""Admission of events with ids by columns: those whose ids are new and name one event, or one in each version."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from augury.algebra.plan import Predicate
from augury.core.arrays import Mask
from augury.engine.input_ids import InputIds, is_content_id
from augury.engine.version_book import VersionColumns, columns_of
from augury.sources import Batch

FEW = 64  # events that are looked at one by one


@dataclass(frozen=True)
class NamedColumns:
    """What became of the events with an id of one step, by type. The `others` are for a look at each of them."""

    stand: Mapping[Predicate, Mask]
    replaced: Mapping[Predicate, Mask]
    others: Mapping[Predicate, Mask]
    versions: VersionColumns | None


def by_columns(batches: Mapping[Predicate, Batch], ids: InputIds, named: Collection[str]) -> NamedColumns | None:
    """Decides about the events of batches of which none is late; `named` are ids that the step says something else of.

    None where there is little to decide.
    """
    if ids.copied or sum(map(len, batches.values())) < FEW:
        return None
    cuts = np.cumsum([len(batch) for batch in batches.values()])[:-1]
    texts = pa.chunked_array([pa.array(batch.ids, pa.string()) for batch in batches.values()])
    encoded = texts.combine_chunks().dictionary_encode()
    codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    names: list[str] = encoded.dictionary.to_pylist()
    versions = np.concatenate(
        [np.zeros(len(b), np.int64) if b.versions is None else b.versions for b in batches.values()]
    )
    rows = np.concatenate([np.arange(len(b)) for b in batches.values()])
    type_of = np.repeat(np.arange(len(batches)), [len(b) for b in batches.values()])
    apart = _apart(names, ids, named)
    has_id = codes >= 0
    order = np.lexsort((versions, codes))
    ordered, numbers = codes[order], versions[order]
    same_id = ordered[1:] == ordered[:-1]
    repeated = same_id & (numbers[1:] == numbers[:-1])
    apart[ordered[1:][repeated & (ordered[1:] >= 0)]] = True
    last = np.empty(len(codes), bool)
    last[order] = np.r_[~same_id, True]
    simple = ~apart[codes]  # where there is no id, any code does
    stand = ~has_id | (simple & last)
    replaced, others = has_id & simple & ~last, has_id & ~simple
    columns = None
    if versions.any():
        numbered = np.zeros(len(names), bool)
        numbered[codes[has_id & (versions != 0)]] = True
        mine = np.flatnonzero(has_id & simple & numbered[codes])
        if len(mine):
            columns = columns_of(names, codes[mine], type_of[mine], rows[mine], versions[mine], dict(batches))

    def by_type(mask: Mask) -> dict[Predicate, Mask]:
        return dict(zip(batches, np.split(mask, cuts), strict=True))

    return NamedColumns(by_type(stand), by_type(replaced), by_type(others), columns)


def _apart(names: list[str], ids: InputIds, named: Collection[str]) -> Mask:
    """By code, whether an id is known already, or the step says something else of it; the last item is that of no id."""
    apart = np.zeros(len(names) + 1, bool)
    apart[:-1] = ids.held(names)
    for names_of in (ids.tombstones, named, ids.versions):
        if names_of:
            apart[:-1] |= np.fromiter(map(names_of.__contains__, names), bool, len(names))
    if ids.unnamed:
        apart[:-1] |= np.fromiter(map(is_content_id, names), bool, len(names))
    return apart
