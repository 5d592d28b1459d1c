"""`while w: collect q` and `last n: collect q` with aggregates that add up: they cost the same however much is collected."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from augury.core.arrays import Array, Integers, RowIds, Times
from augury.engine.operators.base import Operator
from augury.engine.operators.collect import CollectOperator
from augury.engine.operators.range_totals import RangeTotals
from augury.planner.specs import RangedCollectSpec
from augury.storage.frame import View
from augury.storage.grouping import expand_ranges
from augury.storage.table import END, LEFT, NONE, START
from augury.storage.unique import unique_inverse

if TYPE_CHECKING:
    from augury.engine.runtime import Runtime


class RangedCollect(CollectOperator):
    """Each row with the groups and totals of its window, which follow from running totals and from ranks.

    `m(K, sum(V)) <- o: a(K), w: extend_backward(o, 1h), while w: collect b(K, V).`

    Members are not listed: who asks for them, for a trace, looks into the window. A window that has values whose sum is not
    exact is computed from its members.
    """

    def __init__(self, runtime: Runtime, spec: RangedCollectSpec) -> None:
        super().__init__(runtime, spec)
        keys = tuple(self.fields[1].tolist())
        self.ranges = RangeTotals(self.runtime, self.collect, self.inputs[1], keys, self.totals)
        self.behind = True  # whether running totals are to be made from the table

    def follow(self, lost: Array, gained: Array) -> None:
        before = self.ranges.touched
        if self.behind:
            self.catch_up()
        else:
            if len(lost):
                self.ranges.remove(lost)
            self.ranges.add(gained, self.inputs[1].table.standing)
        self.touched += self.ranges.touched - before

    def catch_up(self) -> None:
        self.behind = False
        self.ranges.reset()
        self.ranges.add(self.inputs[1].table.standing(), self.inputs[1].table.standing)

    def windows(self, rows: RowIds, view: View) -> tuple[Integers, Times, Times]:
        """The key and the window of rows: the group of the key among what is collected, and two times."""
        low, high = view.labels[self.window]
        key = self.ranges.keyed.groups(rows, view.table, self.fields[0])
        return key, view.table.data[low, rows], view.table.data[high, rows]

    def compute(self, rows: RowIds, before: int) -> None:
        if not self.ranges.usable:
            super().compute(rows, before)
            return
        touched, view = self.ranges.touched, self.inputs[0]
        totals = self.ranges.of(*self.windows(rows, view))
        self.touched += self.ranges.touched - touched
        if not totals.sure.all():
            unsure = np.zeros(len(rows), bool)
            unsure[totals.window[~totals.sure]] = True
            super().compute(rows[unsure], before)
            totals = totals.where(~unsure[totals.window])
            old = rows[~unsure]
        else:
            old = rows
        least = self.collect.last if self.collect.exactly and self.collect.last else 0 if self.collect.none else 1
        totals = totals.where(totals.counts >= least)
        columns = self.with_nothing(rows[totals.window])
        for name, field in self.out.vars.items():
            if name in totals.codes:
                columns[field] = totals.codes[name]
            elif name in self.collect.by:
                columns[field] = self.inputs[1].table.data[self.inputs[1].vars[name], totals.first]
        if self.collect.last is not None:  # the interval covers what is collected
            data, there = self.inputs[1].table.data, totals.counts > 0
            first, last = totals.edges[:, there]
            columns[START, there] = np.minimum(columns[START, there], data[START, first])
            columns[END, there] = np.maximum(columns[END, there], data[END, last])
        self.replace(old[old < before], columns, np.zeros(columns.shape[1], np.int64), NONE, listed=False)

    def members(self, rows: RowIds) -> tuple[Array, Array]:
        """The members of output rows, one row after the other, and how many each has."""
        listed = self.contents.knows(rows)
        if listed.all():
            return self.contents.of(rows)
        some = self._in_windows(rows[~listed])
        if not listed.any():
            return some
        counts = np.empty(len(rows), np.int64)
        parts = (listed, self.contents.of(rows[listed])), (~listed, some)
        for mine, (_, sizes) in parts:
            counts[mine] = sizes
        result, begins = np.empty(int(counts.sum()), np.int64), np.cumsum(counts) - counts
        for mine, (members, sizes) in parts:
            result[expand_ranges(begins[mine], sizes)] = members
        return result, counts

    def _in_windows(self, rows: RowIds) -> tuple[Array, Array]:
        """The members of rows whose totals were running ones: what has their group in their windows."""
        sources, source_of = unique_inverse(self.out.table.data[LEFT, rows])
        if self.collect.last is None:
            owner, members = self.in_window(sources, alive=np.ones(self.inputs[0].table.n, np.uint8))
        else:
            frame, _ = self.grouped(sources)
            owner, members = frame.left, frame.right
        begins = np.searchsorted(owner, sources)
        sizes = np.diff(np.r_[begins, len(owner)])[source_of]
        owners, members = np.repeat(np.arange(len(rows)), sizes), members[expand_ranges(begins[source_of], sizes)]
        canonical, view, same = self.runtime.tables.dictionary.canonical, self.inputs[1], np.ones(len(members), bool)
        for name in self.collect.by:
            codes = canonical(self.out.table.data[self.out.vars[name], rows])
            same &= canonical(view.table.data[view.vars[name], members]) == codes[owners]
        return members[same], np.bincount(owners[same], minlength=len(rows))

    def keep_parents(self, keep: dict[int, Array]) -> None:
        super().keep_parents(keep)
        rows = np.flatnonzero(keep[id(self.out.table)])
        sources = self.out.table.data[LEFT, rows[~self.contents.knows(rows)]]
        if not len(sources):
            return
        if self.behind:
            self.catch_up()
        view, mine = self.inputs[0], keep[id(self.inputs[1].table)]
        if self.ranges.usable:
            mine[self.ranges.inside(*self.windows(sources, view))] = True
        else:
            mine[self.members(rows)[0]] = True

    def rebuild(self) -> None:
        super().rebuild()
        self.behind = True

    def check(self) -> None:
        Operator.check(self)
