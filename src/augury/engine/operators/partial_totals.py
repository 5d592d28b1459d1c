"""Aggregates of panes, and of windows that consist of panes: each event is looked at once, however often it counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from augury.algebra.nodes import Collect
from augury.algebra.terms import Expr
from augury.core.arrays import Array, Integers, Times
from augury.engine.operators.group_totals import Totals
from augury.storage.accumulator import Accumulator, Picks
from augury.storage.frame import View, frame_of
from augury.storage.grouping import ascending, expand_ranges, in_groups
from augury.storage.table import RANK

if TYPE_CHECKING:
    from augury.engine.runtime import Runtime


@dataclass(frozen=True)
class Partial:
    """The states of some panes: for each group its values as codes, how many members it has, their sums and keys."""

    by: list[Array]
    counts: Integers
    rank: Array
    sums: Array
    keys: Array

    def part(self, lo: int, hi: int) -> Partial:
        by = [column[lo:hi] for column in self.by]
        return Partial(by, self.counts[lo:hi], self.rank[lo:hi], self.sums[:, lo:hi], self.keys[:, lo:hi])


Share = tuple[Partial, int, int]  # the state of a pane: the groups from here up to there


class PartialTotals:
    """Adds up panes, and windows from panes."""

    def __init__(self, circuit: Runtime, view: View, collect: Collect, totals: Totals) -> None:
        self.circuit, self.view, self.collect, self.totals = circuit, view, collect, totals
        self.states = Accumulator(circuit.context, [total.aggregate for total in collect.totals], fraction=True)
        self.touched = 0  # panes and windows that were looked at

    def panes(self, rows: Array, pane: Array) -> dict[int, Share]:
        """The state of each pane."""
        dictionary, data, view = self.circuit.tables.dictionary, self.view.table.data, self.view
        by = [data[view.vars[v], rows] for v in self.collect.by]
        order, first = in_groups([pane, *map(dictionary.canonical, by)])
        rows, pane = rows[order], pane[order]
        frame = frame_of(view, rows)
        if self.collect.label is not None:
            frame.labels[self.collect.label] = (frame.start, frame.end)
        columns = self.states.enter(len(rows), lambda expr: self.totals.values(expr, frame))
        assert columns is not None
        sums, keys = columns[: self.states.width], columns[self.states.width :]
        partial = Partial(
            [column[order][first] for column in by],
            np.diff(np.r_[first, len(rows)]),
            np.maximum.reduceat(data[RANK, rows], first),
            np.add.reduceat(sums, first, axis=1),
            np.maximum.reduceat(keys, first, axis=1),
        )
        owner = pane[first]
        cuts = np.flatnonzero(np.r_[True, owner[1:] != owner[:-1]])
        ends = [*cuts[1:].tolist(), len(first)]
        return {n: (partial, lo, hi) for n, lo, hi in zip(owner[cuts].tolist(), cuts.tolist(), ends, strict=True)}

    def windows(
        self, shares: Sequence[Share], pane: Array, numbers: Array, first: Array, last: Array
    ) -> tuple[Array, dict[str, Array], Array] | None:
        """Windows from panes, which are in order: the window of each group, its columns as codes, and its rank.

        Each pane is looked at once, in however many windows it lies: sums are differences of sums from the beginning.
        None where a window has values that do not add up exactly.
        """
        dictionary, partials = self.circuit.tables.dictionary, _side_by_side(shares)
        pane = np.repeat(pane, [hi - lo for _, lo, hi in shares])
        by = [np.concatenate([p.by[i] for p in partials]) for i in range(len(self.collect.by))]
        group = np.zeros(len(pane), np.int64)
        order = np.arange(len(pane))
        if by:
            order, begins = in_groups([*map(dictionary.canonical, by)])
            pane, group = pane[order], np.repeat(np.arange(len(begins)), np.diff(np.r_[begins, len(order)]))
        window, begin, end = _spans(pane, group, first, last)
        self.touched += len(pane) + len(window)
        ranges = _Ranges(begin, end)
        counts = ranges.sum(np.concatenate([p.counts for p in partials])[order])
        sums = [ranges.sum(column[order]) for column in np.concatenate([p.sums for p in partials], axis=1)]
        keys = [ranges.greatest(column[order]) for column in np.concatenate([p.keys for p in partials], axis=1)]
        columns = {v: column[order[begin]] for v, column in zip(self.collect.by, by, strict=True)}
        state = np.array(sums, np.int64).reshape(-1, len(window))
        picks = self._picks(counts, state, keys)
        for total in self.collect.totals:
            codes, sure = self.states.read(total.aggregate, counts, state, picks)
            if not sure.all():
                return None
            columns[total.name] = codes
        return numbers[window], columns, ranges.greatest(np.concatenate([p.rank for p in partials])[order])

    def _picks(self, counts: Array, sums: Array, keys: list[Array]) -> Picks:
        """The values of keys; not sure where integers and floats are mixed."""

        def picked(pick: str, value: Expr, by: Expr, states: Array) -> tuple[Array, Array]:
            there, floats = (column[states] for column in self.states.numbers_of(by, counts, sums))
            best = keys[self.states.orders[by, pick]][states]
            return self.states.of_keys(pick, by, best, floats > 0), (floats == 0) | (floats == there)

        return picked


def _spans(pane: Array, group: Array, first: Array, last: Array) -> tuple[Array, Array, Array]:
    """Which groups have something in which windows, window by window: the window, and which panes of the group lie in it.

    Panes stand group by group, in order; a window has those from `first` up to, not including, `last`.
    """
    opened: Array = np.searchsorted(last, pane, side="right")
    closed: Array = np.searchsorted(first, pane, side="right")
    # A pane is the first of its group in the windows that the pane before does not lie in.
    opened[1:] = np.where(group[1:] == group[:-1], np.maximum(opened[1:], closed[:-1]), opened[1:])
    counts = np.maximum(closed - opened, 0)
    begin, window = np.repeat(np.arange(len(pane)), counts), expand_ranges(opened, counts)
    low = int(pane.min())
    width = int(pane.max()) - low + 2
    key, until = group * width + (pane - low), np.minimum(last[window] - low, width - 1)
    end = np.searchsorted(key, group[begin] * width + until)
    order = ascending(window) if len(window) else window
    return window[order], begin[order], end[order]


class _Ranges:
    """Totals of ranges of a column, however they overlap."""

    def __init__(self, begin: Array, end: Times) -> None:
        self.begin, self.end = begin, end
        self.level = np.frexp((end - begin).astype(np.float64))[1] - 1  # of two ranges of 2^level that cover one

    def sum(self, column: Array) -> Array:
        sums = np.r_[0, np.cumsum(column)]
        differences: Array = sums[self.end] - sums[self.begin]
        return differences

    def greatest(self, column: Array) -> Array:
        result = np.empty(len(self.begin), column.dtype)
        for level in range(int(self.level.max(initial=0)) + 1):
            mine = np.flatnonzero(self.level == level)
            result[mine] = np.maximum(column[self.begin[mine]], column[self.end[mine] - (1 << level)])
            column = np.maximum(column[: -(1 << level)], column[1 << level :])
        return result


def _side_by_side(shares: Sequence[Share]) -> list[Partial]:
    """The states of panes, those together that were computed together."""
    runs: list[list[Any]] = []
    for partial, lo, hi in shares:
        if runs and runs[-1][0] is partial and runs[-1][2] == lo:
            runs[-1][2] = hi
        else:
            runs.append([partial, lo, hi])
    return [partial.part(lo, hi) for partial, lo, hi in runs]
