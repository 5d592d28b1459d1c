"""Operators that look at what lies in a window of each row, which are absences and collections, and what they keep."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np

from augury.core.arrays import Array, Flags, Mask, RowIds
from augury.core.bounds import FAR
from augury.engine.operators.pairing import Pairing
from augury.planner.specs import WindowedSpec
from augury.storage.frame import Frame, View
from augury.storage.kernels.pairs import probe
from augury.storage.table import END, LEFT, RANK, START, Index, Table

if TYPE_CHECKING:
    from augury.engine.horizon import Horizon
    from augury.engine.runtime import Runtime


class Windowed(Pairing):
    """Looks at what lies in a window of each row: the first input has the rows, the second what is looked for.

    `window` is the label of the window; both sides bind the `keys` for sure, and may bind the `open` variables.
    """

    linked = (LEFT,)

    def __init__(self, runtime: Runtime, spec: WindowedSpec) -> None:
        super().__init__(runtime, spec)
        self.window, self.keys, self.open = spec.window, spec.keys, spec.open
        self.back_for, self.back = spec.look_back, spec.back

    def within(
        self, rows: RowIds, mine: View, fields: Array, index: Index, low: int, high: int, slack: int, limit: int,
        bounds: Array, most: int = -1, alive: Flags | None = None,
    ) -> Iterator[Array]:  # fmt: skip
        """Pairs of rows and rows of an index that lie between two fields of the rows, or up to `slack` after the second.

        Without the first field they begin anywhere. Just rows of the index before `limit` count.
        """
        span = np.array([START, START, high, high] if low < 0 else [low, low, high, high], np.int64)
        reach = np.array([-FAR, -FAR, slack, slack] if low < 0 else [0, 0, slack, slack], np.int64)
        alive = mine.table.alive if alive is None else alive
        limits = span, reach, -1, limit, bounds, most
        for _, pairs in self.portions(probe, rows, mine.table, fields, alive, index, *limits):
            yield pairs.copy()

    def paired(self, rows: RowIds, partners: Array, names: Container[str]) -> tuple[Frame, Array]:
        """Pairs of a row and what was found in its window, at the times of this; and which agree on what both may bind.

        Just the variables and labels with these names are there.
        """
        (mine, its), mask = self.inputs, np.ones(len(rows), bool)
        data, other = mine.table.data, its.table.data
        both = {v: other[f, partners] for v, f in its.vars.items() if v in names}
        for name, f in mine.vars.items():
            if name in names:
                x = data[f, rows]
                if name in self.open and name in both:
                    agreed, x = self.runtime.tables.dictionary.agree(x, both[name])
                    mask &= agreed
                both[name] = x
        named = {n: (data[s, rows], data[e, rows]) for n, (s, e) in mine.labels.items() if n in names}
        return Frame(
            other[START, partners], other[END, partners], rows, partners, other[RANK, partners], both, named
        ), mask

    def parents(self) -> list[tuple[int, Table]]:
        return [(LEFT, self.inputs[0].table)]

    def asks_again(self) -> tuple[View, ...]:
        return self.inputs[1:]  # each new row looks back at what is held

    def wants(self, port: int, horizon: Horizon) -> Array | None:
        return in_windows(self, port, horizon)

    def remembers(self, horizon: Horizon) -> bool:
        return horizon.learned(self.back, self.back_for) >= FAR


def still_open(operator: Windowed, since: Mapping[int, int]) -> Array:
    """The rows in whose window something may still appear or vanish."""
    rows, collected = operator.inputs
    data, n = rows.table.data, rows.table.n
    recent: Array = (data[rows.labels[operator.window][1], :n] >= since[id(collected.table)]) & rows.table.alive[
        :n
    ].astype(bool)
    return recent


def least_open(operator: Windowed, since: Mapping[int, int]) -> int:
    """The least end of rows whose window is still open."""
    table = operator.inputs[0].table
    return _least(table.data[END, : table.n], still_open(operator, since), FAR)


def in_windows(operator: Windowed, port: int, horizon: Horizon) -> Array:
    """Rows whose window is still open; and what lies in such a window, or in one that may still come."""
    rows, collected = operator.inputs
    if port == 0 and rows.table is not collected.table:
        return still_open(operator, horizon.since)
    back = horizon.learned(operator.back, operator.back_for)
    if back >= FAR:
        return np.ones(collected.table.n, bool)
    waiting = _waiting(operator, horizon.since)
    starts = rows.table.data[rows.labels[operator.window][0], : rows.table.n]
    least = _least(starts, waiting, horizon.since[id(rows.table)] - back)
    return _with_own(collected.table.data[END, : collected.table.n] >= least, waiting, rows.table, collected.table)


def in_last(operator: Windowed, count: int, fields: list[int], port: int, horizon: Horizon) -> Array:
    """The same for `last n`: what is not settled, and of the rest the last n of each group."""
    rows, collected = operator.inputs
    if port == 0 and rows.table is not collected.table:
        return still_open(operator, horizon.since)
    waiting = _waiting(operator, horizon.since)
    least = min(horizon.since[id(rows.table)], horizon.since[id(collected.table)])
    least = _least(rows.table.data[END, : rows.table.n], waiting, least)
    ends = collected.table.data[END, : collected.table.n]
    mask = (ends >= least) | last_of(collected.table, ends < least, count, fields)
    return _with_own(mask, waiting, rows.table, collected.table)


def last_of(table: Table, settled: Array, count: int, fields: list[int]) -> Array:
    """Of settled rows those among the last n of their group, and what ends together with the first of these."""
    rows = np.flatnonzero(settled & table.stands())
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


def _with_own(mask: Mask, waiting: Array, rows: Table, collected: Table) -> Array:
    return mask | waiting if rows is collected else mask


def _least(values: Array, some: Array, otherwise: int) -> int:
    return min(otherwise, int(values[some].min())) if some.any() else otherwise
