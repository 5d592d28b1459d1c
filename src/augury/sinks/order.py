"""The order of events, found on columns: (end, start, type, arguments in the order of terms)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

import numpy as np

from augury.core.arrays import Array, RowIds, Times
from augury.core.model import Value, order_key
from augury.sinks.values import ValueColumn
from augury.storage.unique import unique


class Sortable(Protocol):
    """Answers of one type, row by row."""

    @property
    def type(self) -> str: ...
    @property
    def arity(self) -> int: ...
    @property
    def start(self) -> Times: ...
    @property
    def end(self) -> Times: ...
    def __len__(self) -> int: ...
    def values(self, position: int, rows: RowIds) -> ValueColumn:
        """One argument of some rows."""


def in_order(parts: Sequence[Sortable]) -> tuple[Array, list[Array | None]]:
    """Of each answer, in order, the part that it is in; and of each part the order of its rows, where it is another."""
    sizes = np.array([len(part) for part in parts], np.int64)
    owner = np.repeat(np.arange(len(parts)), sizes)
    local = np.arange(len(owner)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    order = _order(parts, owner, local)
    which = owner[order]
    found: list[Array | None] = []
    for number in range(len(parts)):
        rows = local[order[which == number]] if len(parts) > 1 else order
        found.append(None if bool((rows[1:] > rows[:-1]).all()) else rows)
    return which, found


def _order(parts: Sequence[Sortable], owner: RowIds, local: Array) -> Array:
    """The order of all rows: by their ends; those with equal ends by one key after the other."""
    end = np.concatenate([part.end for part in parts]) if parts else np.empty(0, np.int64)
    order: Array = np.argsort(end, kind="stable")
    new = np.r_[True, np.diff(end[order]) != 0][: len(order)]  # where an answer differs from the one before
    names = sorted({part.type for part in parts})
    ranks = np.array([names.index(part.type) for part in parts], np.int64)

    def starts(rows: RowIds) -> Times:
        return np.concatenate([part.start for part in parts])[rows]

    keys: list[Callable[[Array], Array]] = [starts, lambda rows: ranks[owner[rows]]]
    keys += [partial(_argument, parts, owner, local, i) for i in range(max((part.arity for part in parts), default=0))]
    for key in keys:
        places = np.flatnonzero(~(new & np.r_[new[1:], True][: len(new)]))
        if not len(places):
            break
        groups, rows = np.cumsum(new)[places], order[places]
        values = key(rows)
        inside = np.lexsort((values, groups))
        order[places] = rows[inside]
        values, groups = values[inside], groups[inside]
        new[places] = np.r_[True, (values[1:] != values[:-1]) | (groups[1:] != groups[:-1])]
    return order


def _argument(parts: Sequence[Sortable], owner: RowIds, local: Array, position: int, rows: RowIds) -> Array:
    """A number for an argument of each row, in the order of terms; the least where a row has no such argument."""
    found = np.full(len(rows), -1, np.int64)
    columns: list[tuple[Array, ValueColumn]] = []
    for number in unique(owner[rows]).tolist():
        if position < parts[number].arity:
            mine = np.flatnonzero(owner[rows] == number)
            columns.append((mine, parts[number].values(position, local[rows[mine]])))
    if len(columns) == 1 and len(columns[0][0]) == len(rows):
        numbers = columns[0][1].values
        if isinstance(numbers, np.ndarray) and columns[0][1].null is None:
            return numbers
    few = [(mine, *_distinct(column)) for mine, column in columns]
    keys = sorted({order_key(v) for _, values, _ in few for v in values})
    place_of = {key: place for place, key in enumerate(keys)}
    for mine, values, place in few:
        found[mine] = np.array([place_of[order_key(v)] for v in values], np.int64)[place]
    return found


def _distinct(column: ValueColumn) -> tuple[Sequence[Value], Array]:
    if column.place is not None:
        return column.values, column.place  # type: ignore[return-value]
    return column.list(), np.arange(len(column))
