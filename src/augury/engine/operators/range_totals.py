"""Aggregates over a window of each row, from running totals: a window costs the same however much lies in it.

A sum over a window is the difference of two running totals, which are exact.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from augury.algebra.aggregates import of_nothing
from augury.algebra.nodes import Collect
from augury.algebra.terms import Expr
from augury.core.arrays import Array, Integers, Mask, RowIds
from augury.engine.operators.group_totals import Totals
from augury.engine.operators.members import in_order_of_events
from augury.storage.accumulator import Accumulator
from augury.storage.dictionary import NULL
from augury.storage.frame import Frame, View, frame_of
from augury.storage.running_totals import RangeSummary, RunningTotals
from augury.storage.table import RANK, Index, Table
from augury.storage.unique import unique_inverse

if TYPE_CHECKING:
    from augury.engine.runtime import Runtime


@dataclass(frozen=True)
class Ranged:
    """What windows come to: how much lies inside, which totals are sure, and these as codes; the first and the last inside."""

    counts: Integers
    sure: Array
    codes: dict[str, Array]
    edges: Array

    def where(self, mask: Mask) -> Ranged:
        codes = {name: column[mask] for name, column in self.codes.items()}
        return Ranged(self.counts[mask], self.sure[mask], codes, self.edges[:, mask])


class RangeTotals:
    """The aggregates of a collect over windows, kept up to date with what is collected."""

    def __init__(self, circuit: Runtime, collect: Collect, view: View, index: Index, totals: Totals) -> None:
        self.circuit, self.collect, self.view, self.index, self.totals = circuit, collect, view, index, totals
        self.usable = True  # in a recursion ranks count, which running totals do not have
        self._lay_out(fraction=False)

    def _lay_out(self, fraction: bool) -> None:
        parts = [total.aggregate for total in self.collect.totals]
        self.states = Accumulator(self.circuit.context, parts, fraction)
        self.running = RunningTotals(self.index, self.states.width, len(self.states.orders))

    @property
    def touched(self) -> int:
        return self.running.touched

    def reset(self) -> None:
        self.running.reset()
        self.usable = True

    def add(self, rows: Array, all_rows: Callable[[], Array]) -> None:
        """Takes in occurrences; `all_rows` lists those that there are with these."""
        if not len(rows) or not self.usable:
            return
        if self.view.table.data[RANK, rows].any():
            self.usable = False
            return
        columns = self._columns(rows)
        if columns is None:  # the first values with a fraction
            touched = self.running.touched
            self._lay_out(fraction=True)
            self.running.touched, rows = touched, all_rows()
            columns = self._columns(rows)
        assert columns is not None
        self.running.add(rows, columns)

    def remove(self, rows: RowIds) -> None:
        if self.usable:
            self.running.remove(rows)

    def _frame(self, rows: Array) -> Frame:
        frame = frame_of(self.view, rows)
        if self.collect.label is not None:
            frame.labels[self.collect.label] = (frame.start, frame.end)
        return frame

    def _columns(self, rows: Array) -> Array | None:
        frame = self._frame(rows)
        return self.states.enter(len(rows), lambda expr: self.totals.values(expr, frame))

    def of(self, rows: RowIds, table: Table, keys: Array, low: int, high: int) -> Ranged:
        """The totals of windows of rows of a table."""
        within = self.running.within(rows, table, keys, low, high, self.collect.last or 0)
        sure = ~within.cut
        if self.collect.last is not None and self.running.longest > 0:
            sure[:] = False  # which one starts first is not known
        found: dict[str, Array] = {}
        picks = _WindowPicks(self, within)
        for total in self.collect.totals:
            found[total.name], fine = self.states.read(total.aggregate, within.counts, within.sums, picks)
            sure &= fine
        nothing = within.counts == 0
        for total in self.collect.totals if nothing.any() else ():
            found[total.name][nothing] = self.circuit.context.encode(of_nothing(total.aggregate.function))
        return Ranged(within.counts, sure | nothing, found, within.edges)

    def values(self, expr: Expr, rows: Array) -> tuple[Array, Array]:
        """The codes of an argument in some rows, and which of them there are."""
        values = self.totals.values(expr, self._frame(rows)) if len(rows) else None
        if values is None:
            return np.full(len(rows), NULL, np.int64), np.zeros(len(rows), bool)
        return values.codes(np.arange(len(rows))), np.ones(len(rows), bool)

    def edge(self, rows: Array, shared: Array, last: bool) -> Array:
        """The first or last in the order of events of those that have the times of rows, where several do."""
        tied = np.flatnonzero(shared)
        if not len(tied):
            return rows
        rows = rows.copy()
        different, place = unique_inverse(rows[tied])
        members, counts = self.running.tied(different)
        owner = np.repeat(np.arange(len(different)), counts)
        frame = self._frame(members)
        order = in_order_of_events(self.circuit, self.view.table, members, frame, owner, self.totals.seen)
        members = members if order is None else members[order]
        ends = np.cumsum(counts)
        rows[tied] = members[ends - 1 if last else ends - counts][place]
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
