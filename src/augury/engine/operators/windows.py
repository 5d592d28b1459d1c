"""What operators keep that look at what lies in a window of each row: absences and collections."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

import numpy as np

from augury.columns.frame import View
from augury.columns.table import END, Table
from augury.jit import Array
from augury.optimiser.implied_bounds import FAR, Back

if TYPE_CHECKING:
    from augury.engine.horizon import Horizon


class Windowed(Protocol):
    """The first input has rows with a window, the second what is looked for in it."""

    inputs: tuple[View, ...]
    back: int  # how far before the end of a row its window begins
    back_for: Back | None  # the same, where inputs last so long

    @property
    def window(self) -> str: ...


def still_open(operator: Windowed, since: Mapping[int, int]) -> Array:
    """The rows in whose window something may still appear or vanish."""
    rows, found = operator.inputs
    data, n = rows.table.data, rows.table.n
    return (data[rows.labels[operator.window][1], :n] >= since[id(found.table)]) & rows.table.alive[:n].astype(bool)


def least_open(operator: Windowed, since: Mapping[int, int]) -> int:
    """The least end of rows whose window is still open."""
    table = operator.inputs[0].table
    return _least(table.data[END, : table.n], still_open(operator, since), FAR)


def in_windows(operator: Windowed, port: int, horizon: Horizon) -> Array:
    """Rows whose window is still open; and what lies in such a window, or in one that may still come."""
    rows, found = operator.inputs
    if port == 0 and rows.table is not found.table:
        return still_open(operator, horizon.since)
    back = horizon.learned(operator.back, operator.back_for)
    if back >= FAR:
        return np.ones(found.table.n, bool)
    waiting = _waiting(operator, horizon.since)
    starts = rows.table.data[rows.labels[operator.window][0], : rows.table.n]
    least = _least(starts, waiting, horizon.since[id(rows.table)] - back)
    return _with_own(found.table.data[END, : found.table.n] >= least, waiting, rows.table, found.table)


def in_last(operator: Windowed, count: int, fields: list[int], port: int, horizon: Horizon) -> Array:
    """The same for `last n`: what is not settled, and of the rest the last n of each group."""
    rows, found = operator.inputs
    if port == 0 and rows.table is not found.table:
        return still_open(operator, horizon.since)
    waiting = _waiting(operator, horizon.since)
    least = min(horizon.since[id(rows.table)], horizon.since[id(found.table)])
    least = _least(rows.table.data[END, : rows.table.n], waiting, least)
    ends = found.table.data[END, : found.table.n]
    mask = (ends >= least) | last_of(found.table, ends < least, count, fields)
    return _with_own(mask, waiting, rows.table, found.table)


def last_of(table: Table, settled: Array, count: int, fields: list[int]) -> Array:
    """Of settled rows those among the last n of their group, and what ends together with the first of these."""
    rows = np.flatnonzero(settled & table.alive[: table.n].astype(bool))
    mask = np.zeros(table.n, bool)
    if not len(rows):
        return mask
    keys = [table.dictionary.canonical(table.data[field, rows]) for field in fields]
    ends = table.data[END, rows]
    order = np.lexsort((-ends, *keys))
    first = np.zeros(len(rows), bool)
    first[0] = True
    for key in keys:
        first[1:] |= key[order][1:] != key[order][:-1]
    begins = np.flatnonzero(first)
    group = np.cumsum(first) - 1
    sizes = np.diff(np.append(begins, len(rows)))
    least = ends[order][begins + np.minimum(sizes, count) - 1]  # the end of the n-th from the last
    mask[rows[order[ends[order] >= least[group]]]] = True
    return mask


def _waiting(operator: Windowed, since: Mapping[int, int]) -> Array:
    """Rows whose window is open, or that may still vanish."""
    table = operator.inputs[0].table
    return still_open(operator, since) | (table.data[END, : table.n] >= since[id(table)])


def _with_own(mask: Array, waiting: Array, rows: Table, found: Table) -> Array:
    return mask | waiting if rows is found else mask


def _least(values: Array, some: Array, otherwise: int) -> int:
    return min(otherwise, int(values[some].min())) if some.any() else otherwise
