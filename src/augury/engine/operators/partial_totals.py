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
from augury.columns.frame import View
from augury.columns.grouping import in_groups
from augury.columns.table import RANK
from augury.jit import Array

if TYPE_CHECKING:
    from augury.engine.circuit import Circuit

_HIGH, _LOW = 20, 42  # bits after the point, of the two parts of a float
_MOST = 2**61


@dataclass(frozen=True)
class Partial:
    """What some panes come to: for each group its values as codes, how many there are, and the parts of each total."""

    by: list[Array]
    counts: Array
    rank: Array
    parts: list[tuple[Array, ...]]
    whole: tuple[bool, ...]


Share = tuple[Partial, int, int]  # what a pane comes to: the groups from here up to there


class PartialTotals:
    """Adds up panes, and windows from panes."""

    def __init__(self, circuit: Circuit, view: View, collect: Collect) -> None:
        self.circuit, self.view, self.collect = circuit, view, collect

    def panes(self, rows: Array, pane: Array) -> dict[int, Share] | None:
        """What each pane comes to; None where something in them is not a number that can be added exactly."""
        dictionary, data, view = self.circuit.tables.dictionary, self.view.table.data, self.view
        by = [data[view.vars[v], rows] for v in self.collect.by]
        order, first = in_groups([pane, *map(dictionary.canonical, by)])
        rows, pane = rows[order], pane[order]
        counts = np.diff(np.r_[first, len(rows)])
        parts, whole = list[tuple[Array, ...]](), list[bool]()
        for total in self.collect.totals:
            numbers = self.numbers(total, rows)
            found = _parts(total.aggregate.function, numbers)
            if found is None:
                return None
            whole.append(numbers is None or numbers.dtype.kind == "i")
            parts.append(tuple(_reduce(total.aggregate.function).reduceat(column, first) for column in found))
        at = [column[order][first] for column in by]
        found_panes = Partial(at, counts, np.maximum.reduceat(data[RANK, rows], first), parts, tuple(whole))
        owner = pane[first]
        cuts = np.flatnonzero(np.r_[True, owner[1:] != owner[:-1]])
        ends = [*cuts[1:].tolist(), len(first)]
        return {n: (found_panes, lo, hi) for n, lo, hi in zip(owner[cuts].tolist(), cuts.tolist(), ends, strict=True)}

    def numbers(self, total: Total, rows: Array) -> Array | None:
        match total.aggregate.args:
            case (Var(name=name),) if total.aggregate.function != "count":
                codes = self.view.table.data[self.view.vars[name], rows]
                return self.circuit.tables.dictionary.numeric(codes)
        return None

    def windows(
        self, shares: Sequence[Share], pane: Array, numbers: Array, first: Array, last: Array
    ) -> tuple[Array, dict[str, Array], Array] | None:
        """Windows from panes, which are in order: the window of each group, its columns as codes, and its rank."""
        dictionary, names = self.circuit.tables.dictionary, [total.name for total in self.collect.totals]
        partials, sizes = _side_by_side(shares), np.r_[0, np.cumsum([hi - lo for _, lo, hi in shares])]
        if len({p.whole for p in partials}) != 1:
            return None
        lo, hi = sizes[np.searchsorted(pane, first)], sizes[np.searchsorted(pane, last)]
        counts = hi - lo
        window = np.repeat(numbers, counts)
        at = np.repeat(lo - np.r_[0, np.cumsum(counts)[:-1]], counts) + np.arange(len(window))
        by = [np.concatenate([p.by[i] for p in partials])[at] for i in range(len(self.collect.by))]
        order, begins = in_groups([window, *map(dictionary.canonical, by)])
        at = at[order]
        many = np.add.reduceat(np.concatenate([p.counts for p in partials])[at], begins)
        columns = {v: column[order][begins] for v, column in zip(self.collect.by, by, strict=True)}
        for i, total in enumerate(self.collect.totals):
            reduce = _reduce(total.aggregate.function)
            width = range(len(partials[0].parts[i]))
            parts = [reduce.reduceat(np.concatenate([p.parts[i][j] for p in partials])[at], begins) for j in width]
            values = _value(total.aggregate.function, parts, many, partials[0].whole[i])
            if values is None:
                return None
            columns[names[i]] = dictionary.encode_column(values)
        rank = np.maximum.reduceat(np.concatenate([p.rank for p in partials])[at], begins)
        return window[order][begins], columns, rank


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


def _reduce(function: str) -> np.ufunc:
    return np.minimum if function == "min" else np.maximum if function == "max" else np.add


def _parts(function: str, numbers: Array | None) -> tuple[Array, ...] | None:
    """The columns of which a total is made; None where it cannot be made so."""
    if function == "count":
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


def _value(function: str, parts: list[Array], counts: Array, whole: bool) -> Array | None:
    match function:
        case "count":
            return counts
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
