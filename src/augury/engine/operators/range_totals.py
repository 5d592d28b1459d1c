"""Aggregates over a window of each row, from running totals: a window costs the same however much lies in it.

A sum over a window is the difference of two running totals, which are whole numbers and therefore exact: a float is a sum of
multiples of 1, 2^-40 and 2^-80. Values for which that does not hold are *hard*, and a window that contains one is left to
whoever lists its members.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from augury.algebra.aggregates import of_nothing
from augury.algebra.nodes import Collect, Total
from augury.algebra.scalar import Function
from augury.algebra.terms import Apply, Build, Expr, is_pair, labels, variables, walk
from augury.core.arrays import Array, Codes, Integers, Mask, RowIds
from augury.engine.operators.column_totals import MemberValues, to_even
from augury.engine.operators.group_totals import Totals
from augury.engine.operators.limbs import (
    in_limbs,
    ordered,
    squares_in_limbs,
    sum_of_limbs,
    sum_of_square_limbs,
)
from augury.engine.operators.members import in_order_of_events
from augury.storage.dictionary import NULL
from augury.storage.frame import Frame, View, frame_of
from augury.storage.running_totals import RangeSummary, RunningTotals
from augury.storage.table import RANK, Index, Table
from augury.storage.unique import unique, unique_inverse

if TYPE_CHECKING:
    from augury.engine.runtime import Runtime

_SUMS = {"sum", "avg", "variance", "stddev"}
_ORDERS = {"min": False, "max": True, "arg_min": False, "arg_max": True}
_FUNCTIONS = _SUMS | {"count", "first", "last", "any", "all"} | _ORDERS.keys()
_BITS = 21  # of each of three counts in one number: nulls, floats and hard values
_MANY = 1 << 20  # rows of a window beyond which a sum of limbs might not fit
_WHOLE = 2**53


def adds_up(collect: Collect, rows: View, functions: Mapping[str, Function]) -> bool:
    """Whether all aggregates of a collect can be had from running totals of what the collected rows alone say."""
    own = {collect.label} if collect.label is not None else set()
    for total in collect.totals:
        part = total.aggregate
        if part.function not in _FUNCTIONS or part.distinct:
            return False
        for arg in part.args:
            if variables(arg) & rows.vars.keys() or not labels(arg) <= own:
                return False
            calls = (inner.function for inner in walk(arg) if isinstance(inner, Apply))
            if any(name in functions and functions[name].registered for name in calls):
                return False
    return True


@dataclass(frozen=True)
class _Layout:
    """Where the columns of each argument stand: counts of flags, sums, sums of squares and truths; then what is ordered."""

    flags: dict[Expr, int]
    limbs: dict[Expr, slice]
    squares: dict[Expr, slice]
    truths: dict[Expr, int]
    orders: dict[tuple[Expr, bool], int]
    sums: int

    @staticmethod
    def of(totals: Sequence[Total], fraction: bool) -> _Layout:
        """Values with a fraction need more columns."""
        used = [(total.aggregate.function, *_arguments(total)) for total in totals if total.aggregate.args]
        width = 0

        def columns(some: Iterable[Expr], count: int) -> dict[Expr, slice]:
            nonlocal width
            found = {}
            for expr in dict.fromkeys(some):
                found[expr] = slice(width, width + count)
                width += count
            return found

        flags = columns((expr for _, *both in used for expr in both), 1)
        limbs = columns((by for f, _, by in used if f in _SUMS), 3 if fraction else 1)
        squares = columns((by for f, _, by in used if f in ("variance", "stddev")), 5 if fraction else 2)
        truths = columns((by for f, _, by in used if f in ("any", "all")), 1)
        orders = dict.fromkeys((by, _ORDERS[f]) for f, _, by in used if f in _ORDERS)
        return _Layout(
            {expr: at.start for expr, at in flags.items()},
            limbs,
            squares,
            {expr: at.start for expr, at in truths.items()},
            {key: number for number, key in enumerate(orders)},
            width,
        )


def _arguments(total: Total) -> tuple[Expr, Expr]:
    """What an aggregate gives a value of, and what it goes by."""
    arg = total.aggregate.args[0]
    if isinstance(arg, Build) and is_pair(arg):
        return arg.args[0], arg.args[1]
    return arg, arg


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
        self.units: dict[Expr, str] = {}
        self.fraction, self.mixed, self.whole = False, False, set[bool]()
        self._lay_out()

    def _lay_out(self) -> None:
        self.layout = _Layout.of(self.collect.totals, self.fraction)
        self.running = RunningTotals(self.index, self.layout.sums, len(self.layout.orders))

    @property
    def touched(self) -> int:
        return self.running.touched

    def reset(self) -> None:
        self.running.reset()
        self.usable = True

    def add(self, rows: RowIds, all_rows: Callable[[], Array]) -> None:
        """Takes in occurrences; `all_rows` says which there are with these."""
        if not len(rows) or not self.usable:
            return
        if self.view.table.data[RANK, rows].any():
            self.usable = False
            return
        values = self._columns(rows)
        if values is None:  # the first values with a fraction
            self.fraction, touched = True, self.running.touched
            self._lay_out()
            self.running.touched, rows = touched, all_rows()
            values = self._columns(rows)
        assert values is not None
        self.running.add(rows, values)

    def remove(self, rows: RowIds) -> None:
        if self.usable:
            self.running.remove(rows)

    # Values of occurrences

    def _frame(self, rows: RowIds) -> Frame:
        frame = frame_of(self.view, rows)
        if self.collect.label is not None:
            frame.labels[self.collect.label] = (frame.start, frame.end)
        return frame

    def _columns(self, rows: RowIds) -> Array | None:
        """The columns of rows; None where values have a fraction, for which there are no columns."""
        layout, frame = self.layout, self._frame(rows)
        found = np.zeros((layout.sums + len(layout.orders), len(rows)), np.int64)
        for expr, at in layout.flags.items():
            values = self.totals.values(expr, frame)
            if values is None:
                found[at] = 1 << 2 * _BITS
                continue
            self.units[expr] = values.unit
            null, floats, hard = values.null, np.zeros(len(rows), bool), np.zeros(len(rows), bool)
            x = None
            if expr in layout.limbs or any(expr == by for by, _ in layout.orders):
                x, floats, hard = _numbers(values)
            if expr in layout.limbs:
                assert x is not None
                if not self.fraction and _has_fraction(x, hard):
                    return None
                limbs, fits = in_limbs(x, self.fraction)
                hard |= ~fits
                found[layout.limbs[expr]] = limbs
            if expr in layout.squares:
                assert x is not None
                squares, fits = squares_in_limbs(x, self.fraction)
                hard |= ~fits
                found[layout.squares[expr]] = squares
            if expr in layout.truths:
                no, yes = values.dictionary.encode_all((False, True)).tolist()
                codes = values.codes(np.arange(len(rows)))
                found[layout.truths[expr]] = codes == yes
                hard |= (codes != yes) & (codes != no)
            for (by, greatest), number in layout.orders.items():
                if by == expr:
                    assert x is not None
                    keys, fits = ordered(x)
                    hard |= ~fits
                    found[layout.sums + number] = np.where(null, -(2**63), keys if greatest else ~keys)
                    self.whole |= set(unique(floats[~null]).tolist())
                    self.mixed = len(self.whole) > 1
            found[at] = null + (floats.astype(np.int64) << _BITS) + ((hard & ~null).astype(np.int64) << 2 * _BITS)
            for some in (layout.limbs.get(expr), layout.squares.get(expr)):
                if some is not None:
                    found[some, null | hard] = 0
        return found

    # Totals of windows

    def of(self, rows: RowIds, table: Table, keys: Array, low: int, high: int) -> Ranged:
        """The totals of windows of rows of a table."""
        within = self.running.within(rows, table, keys, low, high, self.collect.last or 0)
        sure = (within.counts < _MANY) & ~within.cut
        if self.collect.last is not None and self.running.longest > 0:
            sure[:] = False  # which one starts first is not known
        found: dict[str, Array] = {}
        for total in self.collect.totals:
            if not total.aggregate.args:
                found[total.name] = self.circuit.tables.dictionary.encode_column(within.counts)
                continue
            codes, fine = self._total(total, within)
            found[total.name] = codes
            sure &= fine
        nothing = within.counts == 0
        for total in self.collect.totals if nothing.any() else ():
            found[total.name][nothing] = self.circuit.context.encode(of_nothing(total.aggregate.function))
        return Ranged(within.counts, sure | nothing, found, within.edges)

    def _total(self, total: Total, within: RangeSummary) -> tuple[Array, Array]:
        function, (value, by) = total.aggregate.function, _arguments(total)
        flags, mask = within.sums[self.layout.flags[by]], (1 << _BITS) - 1
        there, floats = within.counts - (flags & mask), (flags >> _BITS) & mask
        codes = np.full(len(within.counts), NULL, np.int64)
        sure = (flags >> 2 * _BITS) + (within.sums[self.layout.flags[value]] >> 2 * _BITS) == 0
        some = np.flatnonzero(sure & (there > 0))
        if function == "count":
            return self.circuit.tables.dictionary.encode_column(there), sure
        if function in ("first", "last"):
            rows = within.edges[int(function == "last")]
            return self._edge(value, rows, within.shared[int(function == "last")], function == "last", sure)
        if not len(some):
            return codes, sure
        if function in _ORDERS:
            number = self.layout.orders[by, _ORDERS[function]]
            if self.mixed or value is not by:  # equal values may be written, or stand beside, differently
                sure &= ~within.alike[number]
                some = some[sure[some]]
            self._look_up(value, within.best[number], some, codes, sure)
        elif function in ("any", "all"):
            true = within.sums[self.layout.truths[by], some]
            no, yes = self.circuit.tables.dictionary.encode_all((False, True)).tolist()
            codes[some] = np.where(true > 0 if function == "any" else true == there[some], yes, no)
        else:
            codes[some] = self._sums(function, by, within.sums[:, some], there[some], floats[some] > 0)
        return codes, sure

    def _sums(self, function: str, by: Expr, sums: Array, counts: Integers, floats: Array) -> Array:
        """Sums, means and variances, rounded once."""
        dictionary, limbs = self.circuit.tables.dictionary, sums[self.layout.limbs[by]]
        unit = self.units.get(by, "")
        codes = np.full(len(counts), NULL, np.int64)
        if unit:
            result = limbs[0] if function == "sum" else to_even(limbs[0], counts)
            return self.circuit.context.encode_times(result, unit)
        if function == "sum":
            codes[~floats] = dictionary.encode_column(limbs[0, ~floats])
            codes[floats] = dictionary.encode_column(sum_of_limbs(limbs[:, floats], None))
        elif function == "avg":
            codes[:] = dictionary.encode_column(sum_of_limbs(limbs, counts))
        else:
            some = np.flatnonzero(counts > 1)
            squares = sums[self.layout.squares[by]][:, some]
            result = sum_of_square_limbs(limbs[:, some], squares, counts[some])
            codes[some] = dictionary.encode_column(np.sqrt(result) if function == "stddev" else result)
        return codes

    def _look_up(self, expr: Expr, rows: RowIds, some: Array, codes: Codes, sure: Array) -> None:
        """The values that some windows have from one row each."""
        values = self.totals.values(expr, self._frame(rows[some])) if len(some) else None
        if values is None:
            sure[some] = False
        else:
            codes[some] = values.codes(np.arange(len(some)))

    def _edge(self, expr: Expr, rows: RowIds, shared: Array, last: bool, sure: Array) -> tuple[Array, Array]:
        """Of the first or last in the order of events."""
        rows, codes = rows.copy(), np.full(len(rows), NULL, np.int64)
        tied = np.flatnonzero(shared & (rows >= 0))
        if len(tied):
            different, place = unique_inverse(rows[tied])
            members, counts = self.running.tied(different)
            owner = np.repeat(np.arange(len(different)), counts)
            order = in_order_of_events(
                self.circuit, self.view.table, members, self._frame(members), owner, self.totals.seen
            )
            members = members if order is None else members[order]
            ends = np.cumsum(counts)
            rows[tied] = members[ends - 1 if last else ends - counts][place]
        self._look_up(expr, rows, np.flatnonzero(sure & (rows >= 0)), codes, sure)
        return codes, sure


def _numbers(values: MemberValues) -> tuple[Array, Array, Array]:
    """Values as numbers, which are floats, and which are no numbers; times count as integers."""
    if values.unit:
        none = np.zeros(len(values), bool)
        return values.column, none, none.copy()
    x, floats, hard = values.numbers
    return np.where(hard | values.null, 0, x), floats, hard.copy()


def _has_fraction(x: Array, hard: Array) -> bool:
    return x.dtype.kind == "f" and bool((x[~hard] != np.trunc(x[~hard])).any())
