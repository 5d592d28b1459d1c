"""Simple aggregates of panes, and of windows that are made of panes: each event is looked at once, however often it counts.

Sums of floats are exact, because they are sums of whole numbers: x is hi / 2**20 + lo / 2**62. A float for which that is not
so, being too large or having bits too small, is left to who adds up windows event by event.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from augury.algebra.nodes import Collect, Total
from augury.algebra.terms import Var
from augury.core.arrays import Array, Integers, RowIds, Times
from augury.storage.dictionary import NULL, OPEN
from augury.storage.frame import View
from augury.storage.grouping import ascending, in_groups, spread
from augury.storage.table import RANK

if TYPE_CHECKING:
    from augury.engine.runtime import Runtime

_HIGH, _LOW = 20, 42  # bits after the point, of the two parts of a float
_MOST = 2**61


@dataclass(frozen=True)
class Partial:
    """What some panes come to: for each group its values as codes, how many there are, and the parts of each total."""

    by: list[Array]
    counts: Integers
    rank: Array
    parts: list[tuple[Array, ...]]
    whole: tuple[bool, ...]


Share = tuple[Partial, int, int]  # what a pane comes to: the groups from here up to there


class PartialTotals:
    """Adds up panes, and windows from panes."""

    def __init__(self, circuit: Runtime, view: View, collect: Collect) -> None:
        self.circuit, self.view, self.collect = circuit, view, collect
        self.touched = 0  # panes and windows that were looked at

    def panes(self, rows: RowIds, pane: Array) -> dict[int, Share] | None:
        """What each pane comes to; None where something in them is not a number that can be added exactly."""
        dictionary, data, view = self.circuit.tables.dictionary, self.view.table.data, self.view
        by = [data[view.vars[v], rows] for v in self.collect.by]
        order, first = in_groups([pane, *map(dictionary.canonical, by)])
        rows, pane = rows[order], pane[order]
        counts = np.diff(np.r_[first, len(rows)])
        parts, whole = list[tuple[Array, ...]](), list[bool]()
        for total in self.collect.totals:
            numbers = self.numbers(total, rows)
            found = _parts(total.aggregate.function, numbers, bool(total.aggregate.args))
            if found is None:
                return None
            whole.append(numbers is None or numbers.dtype.kind == "i")
            reduce = {"min": np.minimum, "max": np.maximum}.get(total.aggregate.function, np.add)
            parts.append(tuple(reduce.reduceat(column, first) for column in found))
        at = [column[order][first] for column in by]
        found_panes = Partial(at, counts, np.maximum.reduceat(data[RANK, rows], first), parts, tuple(whole))
        owner = pane[first]
        cuts = np.flatnonzero(np.r_[True, owner[1:] != owner[:-1]])
        ends = [*cuts[1:].tolist(), len(first)]
        return {n: (found_panes, lo, hi) for n, lo, hi in zip(owner[cuts].tolist(), cuts.tolist(), ends, strict=True)}

    def numbers(self, total: Total, rows: RowIds) -> Array | None:
        """What a total is made of: numbers, or where things are counted, whether each is one."""
        match total.aggregate.args:
            case (Var(name=name),):
                codes, dictionary = self.view.table.data[self.view.vars[name], rows], self.circuit.tables.dictionary
                if total.aggregate.function == "count":
                    return None if (codes == OPEN).any() else (codes != NULL).astype(np.int64)
                return dictionary.numeric(codes)
        return None

    def windows(
        self, shares: Sequence[Share], pane: Array, numbers: Array, first: Array, last: Array
    ) -> tuple[Array, dict[str, Array], Array] | None:
        """Windows from panes, which are in order: the window of each group, its columns as codes, and its rank.

        Each pane is looked at once, in however many windows it lies: sums are differences of sums from the beginning.
        """
        dictionary, partials = self.circuit.tables.dictionary, _side_by_side(shares)
        if len({p.whole for p in partials}) != 1:
            return None
        pane = np.repeat(pane, [hi - lo for _, lo, hi in shares])
        by = [np.concatenate([p.by[i] for p in partials]) for i in range(len(self.collect.by))]
        group = np.zeros(len(pane), np.int64)
        order = np.arange(len(pane))
        if by:
            order, begins = in_groups([*map(dictionary.canonical, by)])
            pane, group = pane[order], np.repeat(np.arange(len(begins)), np.diff(np.r_[begins, len(order)]))
        at, begin, end = _spans(pane, group, first, last)
        self.touched += len(pane) + len(at)
        ranges = _Ranges(begin, end)

        def total(columns: Sequence[Array], function: str) -> Array:
            return ranges.of(np.concatenate(columns)[order], function)

        many = total([p.counts for p in partials], "sum")
        columns = {v: column[order[begin]] for v, column in zip(self.collect.by, by, strict=True)}
        for i, one in enumerate(self.collect.totals):
            function, width = one.aggregate.function, range(len(partials[0].parts[i]))
            parts = [total([p.parts[i][j] for p in partials], function) for j in width]
            values = _value(function, parts, many, partials[0].whole[i])
            if values is None:
                return None
            columns[one.name] = dictionary.encode_column(values)
        return numbers[at], columns, total([p.rank for p in partials], "max")


def _spans(pane: Array, group: Array, first: Array, last: Array) -> tuple[Array, Array, Array]:
    """Which groups have something in which windows, window by window: the window, and which panes of the group lie in it.

    Panes stand group by group, in order; a window has those from `first` up to, not including, `last`.
    """
    opened: Array = np.searchsorted(last, pane, side="right")
    closed: Array = np.searchsorted(first, pane, side="right")
    # A pane is the first of its group in the windows that the pane before does not lie in.
    opened[1:] = np.where(group[1:] == group[:-1], np.maximum(opened[1:], closed[:-1]), opened[1:])
    counts = np.maximum(closed - opened, 0)
    begin, at = np.repeat(np.arange(len(pane)), counts), spread(opened, counts)
    low = int(pane.min())
    width = int(pane.max()) - low + 2
    key, until = group * width + (pane - low), np.minimum(last[at] - low, width - 1)
    end = np.searchsorted(key, group[begin] * width + until)
    order = ascending(at) if len(at) else at
    return at[order], begin[order], end[order]


class _Ranges:
    """Totals of ranges of a column, however they overlap."""

    def __init__(self, begin: Array, end: Times) -> None:
        self.begin, self.end = begin, end
        self.level = np.frexp((end - begin).astype(np.float64))[1] - 1  # of two ranges of 2^level that cover one

    def of(self, column: Array, function: str) -> Array:
        if function not in ("min", "max"):
            sums = np.r_[0, np.cumsum(column)]
            differences: Array = sums[self.end] - sums[self.begin]
            return differences
        reduce, found = np.minimum if function == "min" else np.maximum, np.empty(len(self.begin), column.dtype)
        for level in range(int(self.level.max(initial=0)) + 1):
            mine = np.flatnonzero(self.level == level)
            found[mine] = reduce(column[self.begin[mine]], column[self.end[mine] - (1 << level)])
            column = reduce(column[: -(1 << level)], column[1 << level :])
        return found


def _side_by_side(shares: Sequence[Share]) -> list[Partial]:
    """What panes come to, those together that were computed together."""
    runs: list[list[Any]] = []
    for partial, lo, hi in shares:
        if runs and runs[-1][0] is partial and runs[-1][2] == lo:
            runs[-1][2] = hi
        else:
            runs.append([partial, lo, hi])
    return [_part(partial, slice(lo, hi)) for partial, lo, hi in runs]


def _part(partial: Partial, some: slice) -> Partial:
    parts = [tuple(column[some] for column in columns) for columns in partial.parts]
    return Partial([c[some] for c in partial.by], partial.counts[some], partial.rank[some], parts, partial.whole)


def _parts(function: str, numbers: Array | None, asked: bool) -> tuple[Array, ...] | None:
    """The columns of which a total is made; None where it cannot be made so. A bare count is made of none."""
    if not asked:
        return ()
    if numbers is None:
        return None
    if function in ("min", "max"):
        return (numbers,)
    if numbers.dtype.kind == "i":
        return (numbers,) if float(np.abs(numbers).max()) < 2**31 else None
    if function == "avg" or not float(np.abs(numbers).max()) < 2.0**20:
        return None
    scaled = numbers * 2.0**_HIGH
    high = np.floor(scaled)
    low = (scaled - high) * 2.0**_LOW
    if (low != np.floor(low)).any():
        return None
    return high.astype(np.int64), low.astype(np.int64)


def _value(function: str, parts: list[Array], counts: Integers, whole: bool) -> Array | None:
    match function:
        case "count":
            return parts[0] if parts else counts
        case "min" | "max":
            return parts[0]
    if int(counts.max()) >= 2**19:
        return None  # sums of parts might not fit
    if whole:
        largest = float(np.abs(parts[0]).max())
        if largest >= 2**53:
            return None
        return parts[0] if function == "sum" else parts[0] / counts + 0.0
    exact = zip(parts[0].tolist(), parts[1].tolist(), strict=True)
    return np.array([((high << _LOW) + low) / (1 << (_HIGH + _LOW)) for high, low in exact]) + 0.0
