"""The totals of groups of rows, many windows at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from augury.algebra.nodes import Collect, Holds, Rule, Total, condition_labels
from augury.algebra.terms import Aggregate, Var, labels, variables
from augury.columns.frame import Frame, View
from augury.columns.grouping import Slices, in_groups
from augury.columns.table import END, RANK, START
from augury.engine.operators.column_totals import ColumnTotals
from augury.engine.operators.members import each_once, in_order_of_events, occurrences
from augury.jit import Array

if TYPE_CHECKING:
    from augury.engine.circuit import Circuit

Bounds = Callable[[Array], tuple[Array, Array]]  # when windows begin and end, by their numbers
_SIMPLE = ("count", "sum", "avg", "min", "max")
_NONE = np.zeros(0, np.int64)


class Groups:
    """Groups of rows: the window of each, its values, and where its members begin among all, if they are listed."""

    def __init__(
        self, window: Array, columns: dict[str, Array], rank: Array, offsets: Array | None, members: Array
    ) -> None:
        self.window, self.columns, self.rank, self.offsets, self.members = window, columns, rank, offsets, members

    def __len__(self) -> int:
        return len(self.window)

    def held(self, i: int) -> Array:
        assert self.offsets is not None
        return self.members[self.offsets[i] : self.offsets[i + 1]]


class GroupTotals:
    """Computes what a collect over windows by the clock gives."""

    def __init__(self, circuit: Circuit, collected: View, collect: Collect, rule: Rule, several: bool) -> None:
        self.circuit, self.view, self.collect, self.rule = circuit, collected, collect, rule.label
        self.window = collect.window or ""
        self.seen = sorted({v for total in collect.totals for v in variables(total.aggregate)})
        self.several = several or any(isinstance(c, Holds) for c in collect.where)
        self.simple = not self.several and all(map(self._is_simple, collect.totals))
        self.labels = {label for total in collect.totals for a in total.aggregate.args for label in labels(a)}
        self.labels |= {label for c in collect.where for label in condition_labels(c)}
        self.totals = ColumnTotals(circuit, collect.totals, rule.label)

    def _is_simple(self, total: Total) -> bool:
        match total.aggregate:
            case Aggregate(function="count", args=(), distinct=False):
                return True
            case Aggregate(function=function, args=(Var(),), distinct=False) if function in _SIMPLE:
                return True
        return False

    @property
    def names(self) -> tuple[str, ...]:
        return (*self.collect.by, *(total.name for total in self.collect.totals))

    def of(self, rows: Array, window: Array, bounds: Bounds) -> Groups:
        """The groups of rows in windows: a row stands once for each window that it lies in."""
        frame, first = self.grouped(rows, window, bounds) if len(rows) else (None, _NONE)
        if frame is None or not len(frame):
            return Groups(_NONE, dict.fromkeys(self.names, _NONE), _NONE, np.zeros(1, np.int64), _NONE)
        groups = Slices.beginning(first, len(frame))
        given = self.totals.given(frame)
        if not self.totals.in_any_order(given) or not self.spelt_alike(frame, groups):
            order = in_order_of_events(self.circuit, self.view.table, frame.left, frame, groups.owner, self.seen)
            if order is not None:
                frame = frame.take(order)
                given = self.totals.given(frame)
        found, ok = self.totals.of(frame, groups, given)
        columns = {**{v: frame.vars[v][first] for v in self.collect.by}, **found}
        rank, window = np.maximum.reduceat(frame.rank, first), window[frame.right[first]]
        if not ok.all():
            some = np.flatnonzero(ok)
            columns, rank, window = {v: c[some] for v, c in columns.items()}, rank[some], window[some]
            frame, groups = frame.take(groups.members(some)), Slices(groups.counts[some])
        return Groups(window, columns, rank, np.r_[groups.starts, len(frame)], frame.left)

    def grouped(self, rows: Array, window: Array, bounds: Bounds) -> tuple[Frame, Array]:
        """Rows that are collected, in groups, and where each begins; on the right the places that they were given in."""
        canonical, by = self.circuit.tables.dictionary.canonical, self.collect.by
        every = np.arange(len(rows), dtype=np.int64)
        if not self.collect.where and not self.several:
            data, fields = self.view.table.data, self.view.vars
            order, first = in_groups([window, *(canonical(data[fields[v], rows]) for v in by)])
            return self.frame(rows[order], every[order], window[order], bounds), first
        self.circuit.context.name_events = None
        frame = self.frame(rows, every, window, bounds)
        frame = self.circuit.context.select(self.collect.where, frame, self.rule)
        if not len(frame):
            return frame, _NONE
        keys = [window[frame.right], *(canonical(frame.vars[v]) for v in by)]
        if self.several:
            same = occurrences(self.circuit, self.view.table, frame.left)
            once = each_once(self.circuit, frame, [*keys, same], self.seen)
            frame, keys = frame.take(once), [key[once] for key in keys]
        order, first = in_groups(keys)
        return frame.take(order), first

    def frame(self, rows: Array, places: Array, window: Array, bounds: Bounds) -> Frame:
        """What is asked for of rows, each in its window."""
        data, view = self.view.table.data, self.view
        start, end = data[START, rows], data[END, rows]
        named = {self.window: bounds(window)} if self.window in self.labels else {}
        if self.collect.label in self.labels:
            named[self.collect.label] = (start, end)
        vars = {v: data[f, rows] for v, f in view.vars.items()}
        return Frame(start, end, rows, places, data[RANK, rows], vars, named)

    def spelt_alike(self, frame: Frame, groups: Slices) -> bool:
        """Whether the values of each group are written alike, so that it is one which of them stands for all."""
        columns = (frame.vars[v] for v in self.collect.by)
        return all(bool((column == column[groups.starts][groups.owner]).all()) for column in columns)
