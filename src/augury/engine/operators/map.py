"""Scan, Select, Union: the rows of an input that match and meet conditions, with what the conditions bind."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from augury.algebra.nodes import Condition, Holds, Unless, walk_condition
from augury.algebra.terms import Var
from augury.core.arrays import Array, RowIds
from augury.engine.operators.base import Operator, check_either
from augury.engine.saved import require
from augury.planner.specs import UNTIL, PointSpec, ScanSpec, SelectSpec, UnfoldSpec, UntilSpec
from augury.storage.dictionary import OPEN
from augury.storage.frame import Frame, View, frame_of, store
from augury.storage.table import END, FIELDS, LEFT, START
from augury.storage.unique import unique_first_inverse

if TYPE_CHECKING:
    from augury.engine.runtime import FactKey, Runtime


class EachRow(Operator):
    """Rows of one input, each of which gives rows of its own (`mapped`)."""

    where: tuple[Condition, ...] = ()

    @property
    def asked_fields(self) -> tuple[int, ...]:
        labels = self.inputs[0].labels
        asked = (part for c in self.where for part in walk_condition(c) if isinstance(part, Holds | Unless))
        return tuple({END if part.at is None else labels[part.at][1] for part in asked}) or (END,)

    def asks_again(self) -> tuple[View, ...]:
        """Facts that are seen at the end of the events of a row, before a window beside them ends: as long as there are events."""
        if self.asked_fields == (END,):
            return ()
        runtime = self.runtime
        return tuple(events.out for events in (*runtime.inputs.values(), *runtime.derived.values()))

    @property
    def columns(self) -> Mapping[str, int]:
        """The fields of its input that have the variables of its conditions."""
        return self.inputs[0].vars

    def asks_for(self, rows: RowIds, keys: Sequence[FactKey]) -> Array:
        asked, data, columns = np.zeros(len(rows), bool), self.inputs[0].table.data, self.columns
        for args, facts in keys:
            fits = np.ones(len(rows), bool)
            for expr, codes in zip(args, facts, strict=True):
                if isinstance(expr, Var) and expr.name in columns:
                    bound = data[columns[expr.name], rows]
                    fits &= (bound == OPEN) | self.runtime.bridge.among(bound, codes)
            asked |= fits
        return asked

    def step(self) -> None:
        if self.lost[0]:
            self.drop_children(0)
        if self.revised:
            self.reselect(self.stale(0))
        rows = self.gains(0)
        if len(rows):
            self.runtime.context.name_events = self.name_events
            store(self.mapped(frame_of(self.inputs[0], rows)), self.out)

    def reselect(self, rows: RowIds) -> None:
        """Rows for which facts have changed: what they gave and no longer give is taken back, what is new is given."""
        if not len(rows):
            return
        out, links = self.out.table, self.links[0]
        self.touched += len(rows)
        self.runtime.context.name_events = self.name_events
        frame = self.mapped(frame_of(self.inputs[0], rows))
        before = links.standing(rows)
        fields = [START, END, LEFT, *range(FIELDS, out.width)]
        after = np.stack([frame.start, frame.end, frame.left, *self._given(frame)])
        both = np.ascontiguousarray(np.concatenate([out.data[np.ix_(fields, before)], after], axis=1).T)
        whole = both.view([("", both.dtype)] * both.shape[1]).ravel()
        _, first, alike = unique_first_inverse(whole)
        wanted = np.zeros(len(first), bool)
        wanted[alike[len(before) :]] = True
        gone = np.sort(before[~wanted[alike[: len(before)]]])
        if len(gone):
            out.kill(gone)
        store(frame.where(first[alike[len(before) :]] == np.arange(len(before), len(both))), self.out)

    def _given(self, frame: Frame) -> list[Array]:
        """The columns of a frame, in the order of the fields."""
        columns = {field: frame.vars.get(name, np.full(len(frame), OPEN)) for name, field in self.out.vars.items()}
        for name, (s, e) in self.out.labels.items():
            columns[s], columns[e] = frame.labels.get(name, (np.zeros(len(frame), np.int64),) * 2)
        blank = np.zeros(len(frame), np.int64)
        return [columns.get(field, blank) for field in range(FIELDS, self.out.table.width)]

    @abstractmethod
    def mapped(self, frame: Frame) -> Frame:
        """The output rows of some input rows."""


class MapOperator(EachRow):
    """`P WHERE c`: the rows of P for which c holds, no longer than `longest`, with labels for the rows themselves."""

    spec: SelectSpec

    def __init__(self, runtime: Runtime, spec: SelectSpec) -> None:
        super().__init__(runtime, spec)
        self.labels, self.longest, self.where = spec.labels, spec.longest, spec.where
        runtime.asks(self, spec.where)

    def mapped(self, frame: Frame) -> Frame:
        if self.longest is not None:
            frame = frame.where(frame.end - frame.start <= self.longest)
        for label in self.labels:
            frame.labels[label] = (frame.start, frame.end)
        return self.runtime.context.select(self.where, frame, self.rule)


class ScanOperator(MapOperator):
    """`p(t1, …, tn)`: events of p that start after `after` and whose arguments match, for which conditions hold."""

    def __init__(self, runtime: Runtime, spec: ScanSpec) -> None:
        super().__init__(runtime, spec)
        source = spec.inputs[0].source
        self.fields = [runtime.field(source, position) for position, _ in spec.args]
        self.args, self.after = tuple(expr for _, expr in spec.args), spec.after

    @property
    def columns(self) -> Mapping[str, int]:
        pairs = zip(self.args, self.fields, strict=True)
        return {**self.inputs[0].vars, **{expr.name: field for expr, field in pairs if isinstance(expr, Var)}}

    def mapped(self, frame: Frame) -> Frame:
        if self.after is not None:
            frame = frame.where(frame.start > self.after)
        if self.args:
            data = self.inputs[0].table.data
            frame = self.runtime.context.matched(self.args, [data[field, frame.left] for field in self.fields], frame)
        return super().mapped(frame)


class Unfolded(EachRow):
    """A row for each item of a list of lists."""

    def __init__(self, runtime: Runtime, spec: UnfoldSpec) -> None:
        super().__init__(runtime, spec)
        self.of, self.binds = spec.of, spec.binds

    def mapped(self, frame: Frame) -> Frame:
        context = self.runtime.context
        codes, ok = context.values(self.of, frame, self.rule)
        lists = [context.dictionary.decode(code) if fine else () for code, fine in zip(codes.tolist(), ok, strict=True)]
        items = [(row, item) for row, listed in enumerate(lists) if isinstance(listed, tuple) for item in listed]
        kept = frame.take(np.array([row for row, _ in items], np.int64))
        for position, name in enumerate(self.binds):
            kept.vars[name] = context.dictionary.encode_all([item[position] for _, item in items])  # type: ignore[index]
        return kept


class UnionOperator(Operator):
    """`P1 OR P2`: the rows of both."""

    def step(self) -> None:
        for port in (0, 1):
            self.drop_children(port)
        for port in (0, 1):
            rows = self.gains(port)
            if len(rows):
                frame = frame_of(self.inputs[port], rows)
                if port == 1:
                    frame.left, frame.right = frame.right, frame.left
                store(frame, self.out)

    def check(self) -> None:
        check_either(self)


class Point(Operator):
    """`q`: the time point [q, q]."""

    def __init__(self, runtime: Runtime, spec: PointSpec) -> None:
        super().__init__(runtime, spec)
        self.out.table.append(np.array([[spec.time], [spec.time], [-1], [-1], [0]], np.int64))

    def step(self) -> None:
        pass

    def check(self) -> None:
        require(self.out.table.n <= 1, "more than one row")


class Until(EachRow):
    """Adds the time up to which `last n` collects: the end of the labelled events and windows."""

    def __init__(self, runtime: Runtime, spec: UntilSpec) -> None:
        super().__init__(runtime, spec)
        self.covers = spec.covers

    def mapped(self, frame: Frame) -> Frame:
        _, end = frame.cover(self.covers)
        frame.labels[UNTIL] = (end, end)
        return frame
