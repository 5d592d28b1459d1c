"""The part of held intervals that lies in windows: `while w: collect x: holding p(X)`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from augury.algebra.nodes import SEEN
from augury.core.arrays import Array, RowIds
from augury.core.bounds import FAR
from augury.engine.operators.base import Operator, Part, Ways
from augury.engine.operators.row_chains import RowChains
from augury.knowledge.solving.held_answers import bisect
from augury.planner.specs import ClipSpec, DistinctWindowsSpec
from augury.storage.grouping import expand_ranges
from augury.storage.table import END, FIELDS, LEFT, NONE, START, Table

if TYPE_CHECKING:
    from augury.engine.horizon import Horizon
    from augury.engine.runtime import Runtime

_FEW = 8  # one window for so many intervals looks at the facts of its key, more windows at all intervals
Overlaps = tuple[Array, Array]  # rows of windows, and of intervals that overlap them


class DistinctWindows(Operator):
    """The windows of rows, each once for each value of the key."""

    linked = ()
    spec: DistinctWindowsSpec

    def __init__(self, runtime: Runtime, spec: DistinctWindowsSpec) -> None:
        super().__init__(runtime, spec)
        (rows,) = self.inputs
        self.fields = [*rows.labels[spec.window], *(rows.vars[name] for name in self.out.vars)]
        self.back, self.back_for = spec.back, spec.look_back
        self.row_of: dict[tuple[int, ...], int] = {}
        self.counts: dict[int, int] = {}

    def _windows(self, table: Table, rows: RowIds, fields: list[int]) -> list[tuple[int, ...]]:
        """The windows of rows: start, end, and the values of the key."""
        canonical = self.runtime.tables.dictionary.canonical
        columns = [table.data[field, rows] for field in fields]
        return list(zip(*(c.tolist() for c in (*columns[:2], *map(canonical, columns[2:]))), strict=True))

    def step(self) -> None:
        (rows,), table = self.inputs, self.out.table
        lost, gained = self.losses(0), self.gains(0)
        new: list[tuple[int, ...]] = []
        for window in self._windows(rows.table, gained, self.fields):
            row = self.row_of.setdefault(window, table.n + len(new))
            if row == table.n + len(new):
                new.append(window)
            self.counts[row] = self.counts.get(row, 0) + 1
        if new:
            columns_new = np.array(new, np.int64).T
            columns = np.zeros((table.width, len(new)), np.int64)
            columns[START], columns[END], columns[2:4] = columns_new[0], columns_new[1], -1
            columns[FIELDS : FIELDS + len(self.out.vars)] = columns_new[2:]
            table.append(columns)
        gone = []
        for window in self._windows(rows.table, lost, self.fields):
            row = self.row_of[window]
            self.counts[row] -= 1
            if not self.counts[row]:
                gone.append(row)
                del self.row_of[window], self.counts[row]
        if gone:
            table.kill(np.array(sorted(gone), np.int64))

    def rebuild(self) -> None:
        super().rebuild()
        (rows,), table = self.inputs, self.out.table
        fields, standing = [START, END, *self.out.vars.values()], table.standing()
        self.row_of = dict(zip(self._windows(table, standing, fields), standing.tolist(), strict=True))
        self.counts = dict.fromkeys(standing.tolist(), 0)
        for window in self._windows(rows.table, rows.table.standing(), self.fields):
            if (row := self.row_of.get(window)) is not None:  # a row may be kept for others once its window is over
                self.counts[row] += 1

    def parents(self) -> list[tuple[int, Table]]:
        return []

    def unsettled(self, since: Mapping[int, int], frontier: int) -> int:
        """Windows end no farther than that before their rows do."""
        back = self.back
        if back >= FAR and self.back_for is not None and self.runtime.lengths is None and self.runtime.learns:
            return -FAR
        return max(super().unsettled(since, frontier) - max(back, 0), -FAR)

    def wants(self, port: int, horizon: Horizon) -> Array:
        """A row whose window may still change: it may be the one that has it."""
        rows, table = self.inputs[0], self.inputs[0].table
        mask: Array = table.data[rows.labels[self.spec.window][1], : table.n] >= horizon.since[id(self.out.table)]
        return mask


class Clipped(Operator):
    """For each window (the first input) and each interval in which a fact holds (the second) with which it has time in
    common: a row over the window, with that time as `label`.

    An interval that becomes another one touches just the windows with which it has other times in common: of one that goes
    on, or ends, all windows that it had left behind stay as they are.
    """

    linked = (LEFT,)
    alone = True
    spec: ClipSpec

    def __init__(self, runtime: Runtime, spec: ClipSpec) -> None:
        super().__init__(runtime, spec)
        windows, held = self.inputs
        self.past = int(spec.past)
        self.back, self.back_for = spec.back, spec.look_back
        names = list(self.out.vars)
        self.fact_fields = [held.vars[name] for name in names]
        self.key = tuple(names.index(name) for name in windows.vars)
        self._chain()

    def _chain(self) -> None:
        (windows, held), words = self.inputs, self.runtime.tables.dictionary
        self.windows = RowChains(windows.table, len(windows.vars), words, END)
        self.facts = RowChains(held.table, len(self.fact_fields), words)
        self.clipped_rows = RowChains(self.out.table, len(self.fact_fields), words, END)
        self._enter(self.windows, windows.table.standing(), list(windows.vars.values()))
        self._enter(self.facts, held.table.standing(), self.fact_fields)
        self._enter(self.clipped_rows, self.out.table.standing(), list(self.out.vars.values()))

    @staticmethod
    def _enter(chains: RowChains, rows: RowIds, fields: list[int]) -> None:
        chains.add(rows, chains.group([chains.table.data[field, rows] for field in fields], len(rows)))

    def step(self) -> None:
        self.drop_children(0)
        ended, begun = self.losses(1), self.gains(1)
        before = self._of_intervals(ended)
        self._enter(self.facts, begun, self.fact_fields)
        self._change(before, self._of_intervals(begun))
        windows = self.gains(0)
        self._enter(self.windows, windows, list(self.inputs[0].vars.values()))
        self._give(self._of_windows(windows))

    # Which windows and intervals overlap

    def _of_intervals(self, rows: RowIds) -> Overlaps:
        """The windows that intervals overlap."""
        if not len(rows) or not self.inputs[0].table.live:
            return NONE, NONE
        data = self.inputs[1].table.data
        groups = self.windows.group([data[self.fact_fields[position], rows] for position in self.key], len(rows))
        which, windows = self.windows.touching(groups, data[START, rows] + 1 - self.past, data[END, rows] - 1)
        return windows, rows[which]

    def _of_windows(self, rows: RowIds) -> Overlaps:
        """The intervals that windows overlap."""
        windows, held = self.inputs
        if not len(rows) or not held.table.live:
            return NONE, NONE
        if len(rows) * _FEW >= held.table.live:
            return self._of_many(rows)
        data = windows.table.data
        keys = [data[field, rows] for field in windows.vars.values()]
        which, facts = self.facts.groups.find(self.key, keys, len(rows))
        start, end = data[START, rows][which], data[END, rows][which]
        pairs, intervals = self.facts.touching(facts, start + 1, end - 1 + self.past)
        return rows[which[pairs]], intervals

    def _of_many(self, rows: RowIds) -> Overlaps:
        """The same, from the intervals: where windows stand in order, those that one overlaps stand side by side."""
        windows, held = self.inputs
        data, intervals = windows.table.data, held.table.standing()
        group = self.windows.group([data[field, rows] for field in windows.vars.values()], len(rows))
        order = np.lexsort((data[START, rows], data[END, rows], group))
        rows, group = rows[order], group[order]
        start, end = data[START, rows], data[END, rows]
        columns = [held.table.data[self.fact_fields[position], intervals] for position in self.key]
        mine = self.windows.group(columns, len(intervals))
        first, last = np.searchsorted(group, mine), np.searchsorted(group, mine, side="right")
        low = bisect(end, first, last, held.table.data[START, intervals] + 1 - self.past)
        ascending = (start[1:] >= start[:-1]) | (group[1:] != group[:-1])
        high = bisect(start, first, last, held.table.data[END, intervals]) if ascending.all() else last
        sizes = np.maximum(high - low, 0)
        windows_of = rows[expand_ranges(low, sizes)]
        return windows_of, np.repeat(intervals, sizes)

    # Rows of the output

    def _common(self, pairs: Overlaps) -> Array:
        """Windows, intervals, and from when to when they have time in common: in this order, a column for each pair."""
        windows, intervals = pairs
        mine, its = self.inputs[0].table.data, self.inputs[1].table.data
        start = np.maximum(mine[START, windows], its[START, intervals])
        end = np.minimum(mine[END, windows] + self.past, its[END, intervals])
        parts = np.stack([windows, intervals, start, end])
        self.touched += parts.shape[1]
        return parts[:, start < end]

    def _change(self, before: Overlaps, after: Overlaps) -> None:
        """Some overlaps are there no longer, others are new; a fact may have the same time in a window as before."""
        gone, come = self._common(before), self._common(after)
        if gone.shape[1]:
            data = self.inputs[1].table.data
            gone_keys, come_keys = (
                [(w, f, s, e) for w, f, s, e in zip(
                    some[0].tolist(),
                    self.facts.group([data[field, some[1]] for field in self.fact_fields], some.shape[1]).tolist(),
                    some[2].tolist(), some[3].tolist(), strict=True,
                )] for some in (gone, come)
            )  # fmt: skip
            same = set(gone_keys) & set(come_keys)
            gone = gone[:, [key not in same for key in gone_keys]]
            come = come[:, [key not in same for key in come_keys]]
            self._remove(gone)
        self._append(come)

    def _remove(self, gone: Array) -> None:
        if not gone.shape[1]:
            return
        windows, held = (view.table.data for view in self.inputs)
        columns = [held[field, gone[1]] for field in self.fact_fields]
        groups = self.clipped_rows.group(columns, gone.shape[1])
        start, end = windows[START, gone[0]], windows[END, gone[0]]
        which, rows = self.clipped_rows.touching(groups, end, start)
        out, (x, _) = self.out.table, self.out.labels[self.spec.label]
        self.touched += len(rows)
        same = (out.data[LEFT, rows] == gone[0, which]) & (out.data[x, rows] == gone[2, which])
        out.kill(np.sort(rows[same]))

    def _give(self, pairs: Overlaps) -> None:
        self._append(self._common(pairs))

    def _append(self, come: Array) -> None:
        if not come.shape[1]:
            return
        windows, held, table = self.inputs[0].table.data, self.inputs[1].table.data, self.out.table
        columns = np.zeros((table.width, come.shape[1]), np.int64)
        columns[START], columns[END] = windows[START, come[0]], windows[END, come[0]]
        columns[LEFT], columns[LEFT + 1] = come[0], -1
        for field, source in zip(self.out.vars.values(), self.fact_fields, strict=True):
            columns[field] = held[source, come[1]]
        for name, (start, end) in self.out.labels.items():
            columns[start] = come[2]
            columns[end] = np.minimum(come[3], columns[END]) if name == SEEN else come[3]
        first = table.n
        table.append(columns)
        self._enter(self.clipped_rows, np.arange(first, table.n), list(self.out.vars.values()))

    def rebuild(self) -> None:
        super().rebuild()
        self._chain()

    def parents(self) -> list[tuple[int, Table]]:
        return [(LEFT, self.inputs[0].table)]

    def parts(self, row: int) -> tuple[Part, ...]:
        return ()

    def sources(self, rows: RowIds) -> Ways:
        return [(np.arange(len(rows)), [])]

    def wants(self, port: int, horizon: Horizon) -> Array:
        """Windows in which facts may still change; and what lies in those, and in windows that may still come."""
        windows, held = (view.table for view in self.inputs)
        open_: Array = windows.data[END, : windows.n] >= min(horizon.since[id(held)] - 1, horizon.since[id(windows)])
        if port == 0:
            return open_
        back = horizon.learned(self.back, self.back_for)
        if back >= FAR:
            return np.ones(held.n, bool)
        starts = windows.data[START, : windows.n][open_ & windows.stands()]
        least = min([horizon.since[id(windows)] - back, *starts.tolist()])
        mask: Array = held.data[END, : held.n] >= least
        return mask

    @property
    def bytes(self) -> int:
        return super().bytes + sum(chains.bytes for chains in (self.windows, self.facts, self.clipped_rows))
