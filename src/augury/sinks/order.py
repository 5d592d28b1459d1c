"""The order of answers, found on columns: (end, start, type, arguments in the order of terms)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow.compute as pc

from augury.core.arrays import Array, RowIds, Times
from augury.sinks.values import ValueColumn
from augury.storage.ranks import Ordering, value_ranks
from augury.storage.unique import unique, unique_inverse

if TYPE_CHECKING:
    from augury.sinks.answers import AnswerPart


def in_order(parts: Sequence[AnswerPart]) -> tuple[Array, list[Array | None]]:
    """Of each answer, in order, the part that it is in; and of each part the order of its rows, where it is another."""
    sizes = np.array([len(part) for part in parts], np.int64)
    owner = np.repeat(np.arange(len(parts)), sizes)
    local = np.arange(len(owner)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    order = _order(parts, owner, local)
    which = owner[order]
    result: list[Array | None] = []
    for number in range(len(parts)):
        rows = local[order[which == number]] if len(parts) > 1 else order
        result.append(None if bool((rows[1:] > rows[:-1]).all()) else rows)
    return which, result


def _order(parts: Sequence[AnswerPart], owner: RowIds, local: Array) -> Array:
    """The order of all rows: by their ends; those with equal ends by one key after the other."""
    names = sorted({part.type for part in parts})
    ranks = np.array([names.index(part.type) for part in parts], np.int64)

    def starts(rows: RowIds) -> Times:
        return np.concatenate([part.start for part in parts])[rows]

    keys: list[Callable[[Array], Array]] = []
    if any(part.start is not part.end and not np.array_equal(part.start, part.end) for part in parts):
        keys.append(starts)
    if len(names) > 1:
        keys.append(lambda rows: ranks[owner[rows]])
    keys += [partial(_argument, parts, owner, local, i) for i in range(max(part.arity for part in parts))]
    return Ordering(np.concatenate([part.end for part in parts])).refine(keys).rows


def _argument(parts: Sequence[AnswerPart], owner: RowIds, local: Array, position: int, rows: RowIds) -> Array:
    """A number for an argument of each row, in the order of terms; the least where a row has no such argument."""
    result = np.full(len(rows), -1, np.int64)
    columns: list[tuple[Array, ValueColumn]] = []
    for number in unique(owner[rows]).tolist():
        if position < parts[number].arity:
            mine = np.flatnonzero(owner[rows] == number)
            columns.append((mine, parts[number].values(position, local[rows[mine]])))
    if len(columns) == 1:
        mine, column = columns[0]
        if column.numeric and column.null is None:
            if len(mine) == len(rows):
                return column.values  # type: ignore[no-any-return]
        elif column.index is not None and column.textual:
            used, inverse = unique_inverse(column.index)
            texts = column.values.take(used)  # UTF-8 orders as its characters do
            ranks = pc.rank(texts, "ascending", tiebreaker="dense").to_numpy().astype(np.int64)
            result[mine] = np.where(texts.is_null().to_numpy(zero_copy_only=False), 0, ranks)[inverse]
            return result
    few = [(mine, column.listed()) for mine, column in columns]
    ranks, first = value_ranks([value for _, column in few for value in column.values]), 0
    for mine, column in few:
        result[mine] = ranks[first : first + len(column.values)][column.index]
        first += len(column.values)
    return result
