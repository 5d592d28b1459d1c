"""Aggregates over a window of each row, from running totals: a window costs the same however much lies in it.

A sum over a window is the difference of two running totals, which are exact. Distinct values and percentiles follow from
ranks in a range of positions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from augury.algebra.aggregates import arguments, is_ranked, of_nothing, percentage
from augury.algebra.nodes import Collect
from augury.algebra.terms import Aggregate, Expr
from augury.core.arrays import Array, Integers, Mask, RowIds, Times
from augury.core.bounds import FAR
from augury.engine.operators.group_aggregates import Percentile
from augury.engine.operators.group_totals import Totals
from augury.engine.operators.members import in_order_of_events
from augury.storage.accumulator import HARD, Accumulator
from augury.storage.dictionary import NULL
from augury.storage.exact_sums import MANY, numbers_of_keys
from augury.storage.frame import Frame, View, frame_of
from augury.storage.member_values import MemberValues
from augury.storage.range_ranks import DISTINCT, DISTINCT_NULLS, ORDERED
from augury.storage.running_totals import RangeSummary, RunningTotals
from augury.storage.table import RANK
from augury.storage.unique import unique_inverse

if TYPE_CHECKING:
    from augury.engine.runtime import Runtime


@dataclass(frozen=True)
class WindowGroups:
    """Totals of windows: for each group its window, the number of rows inside, the totals as codes, the first and the last row."""

    window: Integers
    counts: Integers
    sure: Mask
    codes: dict[str, Array]
    edges: Array
    first: Array  # in the order of events

    def where(self, mask: Mask) -> WindowGroups:
        codes = {name: column[mask] for name, column in self.codes.items()}
        return WindowGroups(
            self.window[mask], self.counts[mask], self.sure[mask], codes, self.edges[:, mask], self.first[mask]
        )


class RangeTotals:
    """The aggregates of a collect over windows, kept up to date with what is collected.

    Occurrences stand by key, and by key and group where a collect makes groups: those by key say which groups a window has.
    """

    def __init__(self, circuit: Runtime, collect: Collect, view: View, keys: tuple[int, ...], totals: Totals) -> None:
        self.circuit, self.collect, self.view, self.totals = circuit, collect, view, totals
        self.usable = True  # in a recursion ranks count, which running totals do not have
        self.parts = [(total.name, total.aggregate) for total in collect.totals]
        functions = circuit.context.scalars.functions
        ranked = [part for _, part in self.parts if is_ranked(part, functions)]
        self.distinct = list(dict.fromkeys(part.args[0] for part in ranked if part.distinct))
        self.ordered = list(dict.fromkeys(arguments(part)[0] for part in ranked if not part.distinct))
        self.adding = [part for _, part in self.parts if part not in ranked]
        self.by = tuple(view.vars[v] for v in collect.by)
        self.index = view.table.index(keys + self.by)
        self._lay_out(fraction=False)
        self.keyed = RunningTotals(view.table.index(keys), 0, 0, [DISTINCT_NULLS]) if self.by else self.running

    def _lay_out(self, fraction: bool) -> None:
        self.states = Accumulator(self.circuit.context, self.adding, fraction, self.ordered)
        kinds = [*(ORDERED for _ in self.ordered), *(DISTINCT for _ in self.distinct)]
        self.running = RunningTotals(self.index, self.states.width, self.states.picks, kinds)

    @property
    def touched(self) -> int:
        return self.running.touched + (self.keyed.touched if self.by else 0)

    def reset(self) -> None:
        self.running.reset()
        self.keyed.reset()
        self.usable = True

    def add(self, rows: Array, all_rows: Callable[[], Array]) -> None:
        """Takes in occurrences; `all_rows` lists those that there are with these."""
        if not len(rows) or not self.usable:
            return
        if self.view.table.data[RANK, rows].any():
            self.usable = False
            return
        if self.by:
            self.keyed.add(rows, self.running.groups(rows, self.view.table, self.index.fields)[None])
        columns = self._columns(rows)
        if columns is None:  # the first values with a fraction
            looked = self.running.touched
            self._lay_out(fraction=True)
            self.running.looked, rows = looked, all_rows()
            self.keyed = self.keyed if self.by else self.running
            columns = self._columns(rows)
        assert columns is not None
        self.running.add(rows, columns)

    def remove(self, rows: RowIds) -> None:
        if self.usable:
            self.running.remove(rows)
            if self.by:
                self.keyed.remove(rows)

    def _frame(self, rows: Array) -> Frame:
        frame = frame_of(self.view, rows)
        if self.collect.label is not None:
            frame.labels[self.collect.label] = (frame.start, frame.end)
        return frame

    def _columns(self, rows: Array) -> Array | None:
        frame = self._frame(rows)
        columns = self.states.enter(len(rows), lambda expr: self.totals.values(expr, frame))
        if columns is None or not self.distinct:
            return columns
        canonical, codes = self.circuit.tables.dictionary.canonical, list[Array]()
        for expr in self.distinct:
            column, there = self._codes(self.totals.values(expr, frame), len(rows))
            self.usable &= bool(there.all())
            codes.append(canonical(column))
        return np.concatenate([columns, codes])

    def _codes(self, values: MemberValues | None, count: int) -> tuple[Array, Array]:
        """Values as codes, and which of them there are: none where they are not computed by columns."""
        if values is None:
            return np.full(count, NULL, np.int64), np.zeros(count, bool)
        return values.codes(np.arange(count)), np.ones(count, bool)

    # Windows

    def of(self, key: Integers, lows: Times, highs: Times) -> WindowGroups:
        """The totals of windows, each of the rows of a key, group by group; without groups, of all that lies inside."""
        most = self.collect.last or 0
        window, group = self._groups(key, lows, highs)
        lows, highs = lows[window], highs[window]
        within = self.running.within(group, lows, highs, most)
        sure = ~within.cut
        if most and self.running.longest > 0:
            sure[:] = False  # which one starts first is not known
        codes: dict[str, Array] = {}
        picks = _WindowPicks(self, within)
        for name, part in self.parts:
            if part in self.adding:
                codes[name], fine = self.states.read(part, within.counts, within.sums, picks)
            elif part.distinct:
                codes[name], fine = self._distinct(part, within)
            else:
                codes[name], fine = self._percentile(part, within)
            sure &= fine
        nothing = within.counts == 0
        for name, part in self.parts if nothing.any() else ():
            codes[name][nothing] = self.circuit.context.encode(of_nothing(part.function))
        sure = (sure | nothing) & ((group >= 0) | (not self.by))  # a group of null is in no index
        first = self.edge(within.edges[0], within.shared[0], last=False) if self.by else within.edges[0]
        return WindowGroups(window, within.counts, sure, codes, within.edges, first)

    def _groups(self, key: Integers, lows: Times, highs: Times) -> tuple[Integers, Integers]:
        """The groups that windows may have: the window of each, and its number, -1 of a group of null."""
        if not self.by:
            return np.arange(len(key)), key
        if self.collect.last is not None:
            lows = np.full(len(key), -FAR)
        inside = self.keyed.within(key, lows, highs)
        some = np.flatnonzero(inside.reach[1] > inside.reach[0])
        owner, position = self.keyed.ranks.occurring(0, inside.begin[some], inside.reach[:, some])
        return some[owner], self.keyed.values[0, self.keyed.slots[position]]

    def _distinct(self, part: Aggregate, within: RangeSummary) -> tuple[Array, Array]:
        """How many values windows have."""
        column = len(self.ordered) + self.distinct.index(part.args[0])
        numbers, some = np.zeros(len(within.counts), np.int64), np.flatnonzero(within.counts)
        ranks = self.running.ranks
        numbers[some] = ranks.distinct(column, within.begin[some], within.reach[:, some])
        return self.circuit.context.dictionary.encode_column(numbers), within.whole

    def _percentile(self, part: Aggregate, within: RangeSummary) -> tuple[Array, Array]:
        """The values at a percentage of windows."""
        expr, percent, states = arguments(part)[0], percentage(part), self.states
        assert percent is not None
        column = self.ordered.index(expr)
        there, _ = states.numbers_of(expr, within.counts, within.sums)
        units = {unit for unit, _ in states.kinds[expr]}
        sure = within.whole & (within.sums[states.flags[expr]] < HARD) & (len(units) <= 1) & (within.counts < MANY)
        codes, some = np.full(len(there), NULL, np.int64), np.flatnonzero(sure & (there > 0))
        if len(some):
            percentile, reach = Percentile.of(there[some], percent), within.reach[:, some]
            nulls, ranks = (within.counts - there)[some], self.running.ranks
            keys = ranks.values_at(column, reach, nulls + percentile.low)
            more = np.flatnonzero(percentile.high != percentile.low)
            next_keys = keys.copy()
            next_keys[more] = ranks.values_at(column, reach[:, more], (nulls + percentile.high)[more])
            (unit,) = units
            low, high = (numbers_of_keys(k).astype(np.int64 if unit else np.float64) for k in (keys, next_keys))
            results, fits = percentile.between(low, high, bool(unit))
            context = self.circuit.context
            codes[some] = context.encode_times(results, unit) if unit else context.dictionary.encode_column(results)
            sure[some] &= fits
        return codes, sure

    # Members

    def inside(self, key: Integers, lows: Times, highs: Times) -> RowIds:
        """The rows that end in one of some windows, in any order; of `last n` the last n of each group."""
        window, group = self._groups(key, lows, highs)
        return self.running.inside(group, lows[window], highs[window], self.collect.last or 0)

    def values(self, expr: Expr, rows: Array) -> tuple[Array, Array]:
        """The codes of an argument in some rows, and which of them there are."""
        return self._codes(self.totals.values(expr, self._frame(rows)) if len(rows) else None, len(rows))

    def edge(self, rows: Array, shared: Array, last: bool) -> Array:
        """The first or last in the order of events of those that have the times of rows, where several do."""
        tied = np.flatnonzero(shared)
        if not len(tied):
            return rows
        rows = rows.copy()
        different, group = unique_inverse(rows[tied])
        members, counts = self.running.tied(different)
        owner = np.repeat(np.arange(len(different)), counts)
        frame = self._frame(members)
        order = in_order_of_events(self.circuit, self.view.table, members, frame, owner, self.totals.seen)
        members = members if order is None else members[order]
        ends = np.cumsum(counts)
        rows[tied] = members[ends - 1 if last else ends - counts][group]
        return rows


class _WindowPicks:
    """The members that windows have picked: rows of the table."""

    def __init__(self, totals: RangeTotals, within: RangeSummary) -> None:
        self.totals, self.within = totals, within

    def __call__(self, pick: str, value: Expr, by: Expr, states: Array) -> tuple[Array, Array]:
        within, totals = self.within, self.totals
        if pick in ("first", "last"):
            last = int(pick == "last")
            rows = totals.edge(within.edges[last, states], within.shared[last, states], pick == "last")
            return totals.values(value, rows)
        number = totals.states.orders[by, pick]
        codes, sure = totals.values(value, within.best[number, states])
        if len(totals.states.kinds[by]) > 1 or value != by:  # equal values may be written, or stand beside, differently
            sure &= ~within.alike[number, states]
        return codes, sure
