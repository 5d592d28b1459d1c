"""The totals of a collect, group by group: of rows and windows, and of windows by the clock, many at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from augury.algebra.aggregates import accumulates
from augury.algebra.nodes import SEEN, Collect, condition_labels
from augury.algebra.terms import Aggregate, Build, Expr, is_pair, labels, variables
from augury.core.arrays import Array, RowIds
from augury.engine.operators.group_aggregates import code_of, group_aggregates
from augury.engine.operators.members import each_once, in_order_of_events, occurrences
from augury.storage.conditions import named
from augury.storage.frame import Frame, View
from augury.storage.grouping import Slices, in_groups
from augury.storage.member_values import MemberValues
from augury.storage.table import END, NONE, RANK, START, Table

if TYPE_CHECKING:
    from augury.engine.runtime import Runtime

Bounds = Callable[[Array], tuple[Array, Array]]  # when windows begin and end, by their numbers
Given = Mapping[Expr, MemberValues | None]  # what aggregates are given; None where that is not said column by column


class Totals:
    """The aggregates of a collect over groups of members."""

    def __init__(self, circuit: Runtime, collect: Collect, rule: str) -> None:
        self.circuit, self.collect, self.rule = circuit, collect, rule
        self.seen = sorted({v for total in collect.totals for v in variables(total.aggregate)})
        self.labels = {label for total in collect.totals for a in total.aggregate.args for label in labels(a)}
        self.labels |= {label for c in collect.where for label in condition_labels(c)}
        # What is collected is put in the order of events only where that can be seen.
        functions = circuit.context.scalars.aggregates
        self.order_free = all(functions[total.aggregate.function].order_free for total in collect.totals)
        # Arguments that are just counted or compared: no value of theirs fails.
        self.compared = set.difference(*(
            {arg for total in collect.totals for arg in total.aggregate.args if self._compares(total.aggregate) == some}
            for some in (True, False)
        ))  # fmt: skip
        self._argument_values: tuple[Frame | None, Given] = (None, {})  # of the frame that is looked at

    def grouped(self, frame: Frame, keys: list[Array], same: Array, several: bool) -> tuple[Frame, Slices, Array]:
        """Members in groups of equal keys; where `several` rows may be the same occurrence, each once for what is seen."""
        if several:
            once = each_once(self.circuit, frame, [*keys, same], self.seen)
            frame, keys, same = frame.take(once), [key[once] for key in keys], same[once]
        if len(keys) == 1 and bool((keys[0][1:] >= keys[0][:-1]).all()):
            first = np.flatnonzero(np.r_[True, keys[0][1:] != keys[0][:-1]])
        else:
            order, first = in_groups(keys)
            frame, same = frame.take(order), same[order]
        return frame, Slices.beginning(first, len(frame)), same

    def order(self, frame: Frame, groups: Slices, table: Table, rows: RowIds) -> Array | None:
        """The order of events in each group; None where members stand in it."""
        return in_order_of_events(self.circuit, table, rows, frame, groups.owner, self.seen)

    def _compares(self, part: Aggregate) -> bool:
        form = self.circuit.context.scalars.aggregates[part.function].form
        return form is not None and form.result is None and not form.adds

    def in_any_order(self, frame: Frame, groups: Slices) -> bool:
        """Whether the order of members cannot be seen: not in the totals, nor in how equal values are written.

        Of values that are no numbers a sum reports the first, so they are put in order, too.
        """
        if not self.order_free:
            return False
        for expr, values in self.argument_values(frame).items():
            if values is None or (values.plain is None and not (expr in self.compared and values.alike)):
                return False
        columns = (frame.vars[v] for v in self.collect.by)  # whichever member says what the group is called
        return all(bool((column == column[groups.starts][groups.owner]).all()) for column in columns)

    def of(self, frame: Frame, groups: Slices) -> tuple[Frame, Slices, dict[str, Array]]:
        """For each total the codes of groups, without groups that have none: of these it is reported why not."""
        values, self._argument_values = self.argument_values(frame), (None, {})
        columns: dict[str, Array] = {}
        hard = np.zeros(len(groups), bool)
        for total in self.collect.totals:
            columns[total.name], unsure = group_aggregates(self.circuit.context, total.aggregate, groups, values)
            if unsure is not None:
                hard |= unsure
        ok = np.ones(len(groups), bool)
        for g in np.flatnonzero(hard).tolist():
            start = int(groups.starts[g])
            single = self._one_by_one(frame, range(start, start + int(groups.counts[g])))
            ok[g] = single is not None
            for name, code in (single or {}).items():
                columns[name][g] = code
        if ok.all():
            return frame, groups, columns
        some = np.flatnonzero(ok)
        columns = {name: codes[some] for name, codes in columns.items()}
        return frame.take(groups.members(some)), Slices(groups.counts[some]), columns

    def argument_values(self, frame: Frame) -> Given:
        """The values that aggregates receive, by their arguments."""
        if self._argument_values[0] is frame:
            return self._argument_values[1]
        values: dict[Expr, MemberValues | None] = {}
        for total in self.collect.totals:
            for arg in total.aggregate.args:
                for expr in arg.args if isinstance(arg, Build) and is_pair(arg) else (arg,):
                    if expr not in values:
                        values[expr] = self.values(expr, frame)
        self._argument_values = (frame, values)
        return values

    def values(self, expr: Expr, frame: Frame) -> MemberValues | None:
        """The value of an argument for each row; None where it cannot be computed by columns."""
        context = self.circuit.context
        context.scalars.rule, context.name_events = self.rule, None
        return MemberValues.compute(context, expr, frame)

    def _one_by_one(self, frame: Frame, members: range) -> dict[str, int] | None:
        """The totals of one group as codes; None where there are none, which is reported."""
        context = self.circuit.context
        context.scalars.rule = self.rule
        bindings = [context.binding(frame, i) for i in members]
        times = [named(frame, i) for i in members]
        codes: dict[str, int] = {}
        for total in self.collect.totals:
            args = total.aggregate.args
            each = zip(bindings, times, strict=True)
            values = (context.scalars.evaluate(args[0], b, n) if args else True for b, n in each)
            code = code_of(context, total.aggregate, values, self.rule)
            if code is None:
                return None
            codes[total.name] = code
        return codes


def with_held_times(frame: Frame, view: View, rows: RowIds, label: str | None) -> None:
    """Rows for the parts of intervals in a window: their times are those of their label."""
    for name, ends in view.labels.items():
        start, end = (view.table.data[field, rows] for field in ends)
        frame.labels[name] = start, end
        if name == label:
            frame.start, frame.end = start, end


def asked_of(view: View) -> tuple[int, ...]:
    """The fields that have the times at which facts are seen for what is collected."""
    return (view.labels[SEEN][1] if SEEN in view.labels else END,)


class RowGroups:
    """Groups of rows: the window of each, its values, and where its members begin among all, if they are listed."""

    def __init__(
        self, window: Array, columns: dict[str, Array], rank: Array, offsets: Array | None, members: Array
    ) -> None:
        self.window, self.columns, self.rank, self.offsets, self.members = window, columns, rank, offsets, members

    def __len__(self) -> int:
        return len(self.window)

    def members_of(self, i: int) -> Array:
        assert self.offsets is not None
        return self.members[self.offsets[i] : self.offsets[i + 1]]


class WindowTotals(Totals):
    """Computes what a collect over windows by the clock gives."""

    def __init__(self, circuit: Runtime, view: View, collect: Collect, rule: str, several: bool) -> None:
        super().__init__(circuit, collect, rule)
        self.view, self.window = view, collect.window or ""
        self.several = several
        uses = [(a, labels(*a.args) | variables(*a.args)) for a in (total.aggregate for total in collect.totals)]
        scalars = circuit.context.scalars
        self.simple = not self.several and all(
            accumulates(part, scalars.functions, scalars.aggregates, ordered=False)
            and names <= {*view.vars, collect.label}
            for part, names in uses
        )

    @property
    def names(self) -> tuple[str, ...]:
        return (*self.collect.by, *(total.name for total in self.collect.totals))

    def of_rows(self, rows: RowIds, window: Array, bounds: Bounds) -> RowGroups:
        """The groups of rows in windows: a row stands once for each window that it lies in."""
        frame, groups = self.in_windows(rows, window, bounds) if len(rows) else (None, Slices(NONE))
        if frame is None or not len(frame):
            return RowGroups(NONE, dict.fromkeys(self.names, NONE), NONE, np.zeros(1, np.int64), NONE)
        if not self.in_any_order(frame, groups):
            order = self.order(frame, groups, self.view.table, frame.left)
            frame = frame if order is None else frame.take(order)
        frame, groups, codes = self.of(frame, groups)
        first = groups.starts
        columns = {**{v: frame.vars[v][first] for v in self.collect.by}, **codes}
        rank = np.maximum.reduceat(frame.rank, first) if len(first) else NONE
        return RowGroups(window[frame.right[first]], columns, rank, np.r_[first, len(frame)], frame.left)

    def in_windows(self, rows: RowIds, window: Array, bounds: Bounds) -> tuple[Frame, Slices]:
        """Rows that are collected, in groups by window and key; on the right the places that they were given in."""
        canonical, by = self.circuit.tables.dictionary.canonical, self.collect.by
        every = np.arange(len(rows), dtype=np.int64)
        if not self.collect.where and not self.several:
            data, fields = self.view.table.data, self.view.vars
            order, first = in_groups([window, *(canonical(data[fields[v], rows]) for v in by)])
            frame = self._frame(rows[order], every[order], window[order], bounds)
            return frame, Slices.beginning(first, len(frame))
        self.circuit.context.name_events = None
        frame = self._frame(rows, every, window, bounds)
        frame = self.circuit.context.select(self.collect.where, frame, self.rule)
        if not len(frame):
            return frame, Slices(NONE)
        keys = [window[frame.right], *(canonical(frame.vars[v]) for v in by)]
        same = occurrences(self.circuit, self.view.table, frame.left) if self.several else frame.left
        frame, groups, _ = self.grouped(frame, keys, same, self.several)
        return frame, groups

    def _frame(self, rows: RowIds, places: Array, window: Array, bounds: Bounds) -> Frame:
        """The totals of rows, each in its window."""
        data, view = self.view.table.data, self.view
        start, end = data[START, rows], data[END, rows]
        named = {self.window: bounds(window)} if self.window in self.labels else {}
        if self.collect.label in self.labels:
            named[self.collect.label] = (start, end)
        vars = {v: data[f, rows] for v, f in view.vars.items()}
        frame = Frame(start, end, rows, places, data[RANK, rows], vars, named)
        if self.collect.label in view.labels:
            with_held_times(frame, view, rows, self.collect.label)
        return frame
