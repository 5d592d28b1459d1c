"""Answers as a table: what runs, sessions and steps return, and what all formats are written from.

A table has parts, one for each type and arity, and for what is inserted and what is retracted. Each part is in the order of
events on access, and `which` says of each answer which part it is in.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from itertools import repeat
from typing import Any, Generic, Literal, TypeVar, overload

import numpy as np
import pyarrow as pa

from augury.algebra.plan import Plan
from augury.core.arrays import Array, RowIds, Times
from augury.core.clock import Clock
from augury.core.errors import RunError
from augury.core.model import Change, Event
from augury.sinks.notebook import shown_table
from augury.sinks.order import in_order
from augury.sinks.table_columns import ColumnLayout, TypeColumns, known_output, layout_of, layout_of_type, type_columns
from augury.sinks.values import STAMP, Shape, ValueColumn, arrow_type, as_arrow, column_of, shape_of, text_array
from augury.storage.unique import is_in

Op = Literal["insert", "retract"]
Item = TypeVar("Item", Event, Change, Event | Change)
_FIRST, _MOST = 1 << 10, 1 << 16  # rows that are written at a time: at first, and at most
_LONG = 1 << 22  # ids of traces that are written at a time
_EVENTS = 4096  # events that are made at a time
TRACE = pa.list_(pa.string())
_NO_PLAN, _NO_CLOCK = Plan(), Clock()


@dataclass(frozen=True)
class AnswerColumns:
    """Some answers of one type, inserted or retracted, as columns. `trace` is None where it is not wanted."""

    type: str
    op: Op | None
    columns: list[ValueColumn]
    start: Times
    end: Times
    ids: Any
    trace: Any

    def __len__(self) -> int:
        return len(self.start)


class AnswerPart(ABC):
    """The answers of one type and arity that stand, or that a step has inserted or retracted."""

    __slots__ = ()
    op: Op | None
    lock: AbstractContextManager[Any] = nullcontext()

    @property
    @abstractmethod
    def type(self) -> str: ...
    @property
    @abstractmethod
    def start(self) -> Times: ...
    @property
    @abstractmethod
    def end(self) -> Times: ...
    @property
    @abstractmethod
    def columns(self) -> list[ValueColumn]: ...
    @abstractmethod
    def texts_of_ids(self, lo: int, hi: int) -> Any:
        """The ids of rows from one up to another, as an Arrow array of texts."""

    @abstractmethod
    def lists_of_traces(self, lo: int, hi: int) -> Any:
        """The traces of rows from one up to another, as an Arrow array of lists of ids."""

    @abstractmethod
    def arrange(self, order: Array) -> None:
        """Puts the rows into another order."""

    @abstractmethod
    def __len__(self) -> int: ...

    @property
    def arity(self) -> int:
        return len(self.columns)

    @property
    def shapes(self) -> list[Shape]:
        return [shape_of(column) for column in self.columns]

    def values(self, position: int, rows: RowIds) -> ValueColumn:
        """One argument of some rows."""
        return self.columns[position].some(rows)

    def piece(self, lo: int, hi: int, op: Op | None = None, trace: bool = True) -> AnswerColumns:
        """The rows from one up to another."""
        columns, lists = [c.some(slice(lo, hi)) for c in self.columns], self.lists_of_traces(lo, hi) if trace else None
        start, end = self.start[lo:hi], self.end[lo:hi]
        return AnswerColumns(self.type, op, columns, start, end, self.texts_of_ids(lo, hi), lists)

    def events(self, lo: int, hi: int) -> list[Event]:
        """The events of rows from one up to another."""
        piece = self.piece(lo, hi)
        columns = [column.list() for column in piece.columns]
        args: Any = zip(*columns, strict=True) if columns else repeat((), hi - lo)
        rest = (piece.start.tolist(), piece.end.tolist(), piece.ids.to_pylist(), piece.trace.to_pylist())
        return [Event(self.type, a, s, e, i, tuple(t)) for a, s, e, i, t in zip(args, *rest, strict=True)]

    def event(self, row: int) -> Event:
        return self.events(row, row + 1)[0]

    def share(self, parts: Sequence[AnswerPart]) -> None:
        """Called before parts are written together: what several need is made once."""
        return


class ColumnPart(AnswerPart):
    """Answers that are there as columns, or as a list of events."""

    def __init__(
        self, type: str, op: Op | None, columns: list[ValueColumn], start: Times, end: Times, ids: Any, traces: Any
    ) -> None:
        self.own_type, self.op, self.ids, self.traces = type, op, ids, traces
        self.own_columns, self.times = columns, (start, end)
        self.listed: list[Event] | None = None

    @staticmethod
    def of(type: str, arity: int, op: Op | None, events: list[Event]) -> ColumnPart:
        """A part of events of one type and arity."""
        times = np.array([(event.start, event.end) for event in events], np.int64).reshape(-1, 2)
        offsets = np.r_[0, np.cumsum([len(event.trace) for event in events])].astype(np.int32)
        trace = text_array([id for event in events for id in event.trace])
        columns = [column_of(event.args[i] for event in events) for i in range(arity)]
        ids = text_array([event.id for event in events])
        lists = pa.ListArray.from_arrays(pa.array(offsets), trace)
        part = ColumnPart(type, op, columns, times[:, 0].copy(), times[:, 1].copy(), ids, lists)
        part.listed = events
        return part

    @property
    def type(self) -> str:
        return self.own_type

    @property
    def start(self) -> Times:
        return self.times[0]

    @property
    def end(self) -> Times:
        return self.times[1]

    @property
    def columns(self) -> list[ValueColumn]:
        return self.own_columns

    def texts_of_ids(self, lo: int, hi: int) -> Any:
        return self.ids[lo:hi]

    def lists_of_traces(self, lo: int, hi: int) -> Any:
        return self.traces[lo:hi]

    def arrange(self, order: Array) -> None:
        self.own_columns = [column.some(order) for column in self.columns]
        self.times = (self.start[order], self.end[order])
        self.ids, self.traces = (array.take(pa.array(order)) for array in (self.ids, self.traces))
        self.listed = None if self.listed is None else [self.listed[row] for row in order.tolist()]

    def __len__(self) -> int:
        return len(self.start)

    def events(self, lo: int, hi: int) -> list[Event]:
        return super().events(lo, hi) if self.listed is None else self.listed[lo:hi]


@dataclass(frozen=True)
class AnswerChunk:
    """Answers that are written at once: pieces of parts, and where each row of them comes, if not one after the other."""

    pieces: list[AnswerColumns]
    mixing: Array | None

    def interleaved(self, arrays: list[Any]) -> Any:
        """An array for each piece as one, in the order of answers."""
        whole = arrays[0] if len(arrays) == 1 else pa.concat_arrays(arrays)
        return whole if self.mixing is None else whole.take(pa.array(self.mixing))


class Answers(Generic[Item]):
    """The answers of a program in the order of events: a sequence of `Event`s, or with `changes` of `Change`s.

    Events, ids and traces are made on access. `answers["alarm"]` are those of one type. Answers are an Arrow
    stream, so whatever reads tables from Python takes them as they are. They are like sequences, but not of that class:
    PyArrow and Polars would take sequences for columns.
    """

    nothing = "nothing was detected"
    changes = False  # whether they are changes, each with an `op`

    def __init__(
        self,
        plan: Plan = _NO_PLAN,
        clock: Clock = _NO_CLOCK,
        parts: Sequence[AnswerPart] = (),
        which: Array | None = None,
    ) -> None:
        """`which` is the part of each answer, where parts are in order already."""
        self.plan, self.clock, self.parts, self._which = plan, clock, parts, which
        self.traced = 0  # how many ids the traces have that were written

    @cached_property
    def which(self) -> Array:
        """The part of each answer; from then on each part is in order."""
        if self._which is not None or not self.parts:
            return np.empty(0, np.int64) if self._which is None else self._which
        with self.parts[0].lock:
            which, orders = in_order(self.parts)
            for part, order in zip(self.parts, orders, strict=True):
                if order is not None:
                    part.arrange(order)
        return which

    @cached_property
    def rows(self) -> Array:
        """The row of each answer in its part."""
        order = np.arange(len(self.which))
        for number in range(len(self.parts) if len(self.parts) > 1 else 0):
            mine = np.flatnonzero(self.which == number)
            order[mine] = np.arange(len(mine))
        return order

    # A sequence

    def __len__(self) -> int:
        return sum(map(len, self.parts))

    @overload
    def __getitem__(self, index: int) -> Item: ...
    @overload
    def __getitem__(self, index: slice) -> list[Item]: ...
    @overload
    def __getitem__(self, index: str) -> Answers[Item]: ...
    def __getitem__(self, index: int | slice | str) -> Item | list[Item] | Answers[Item]:
        if isinstance(index, str):
            return self.of(index)
        if isinstance(index, slice):
            return [self[i] for i in range(len(self))[index]]
        row = range(len(self))[index]
        part = self.parts[int(self.which[row])]
        item: Item = self._item(part, part.event(int(self.rows[row])))
        return item

    def __iter__(self) -> Iterator[Item]:
        done = [0] * len(self.parts)
        for lo in range(0, len(self), _EVENTS):
            which = self.which[lo : lo + _EVENTS]
            counts = _counted(which)
            made = {i: iter(self.parts[i].events(done[i], done[i] + n)) for i, n in counts.items()}
            yield from (self._item(self.parts[i], next(made[i])) for i in which.tolist())
            for i, n in counts.items():
                done[i] += n

    def _item(self, part: AnswerPart, event: Event) -> Any:
        return Change(part.op, event) if self.changes and part.op is not None else event

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Answers | list | tuple):
            return NotImplemented
        return len(self) == len(other) and all(x == y for x, y in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {len(self)}>"

    def of(self, type: str) -> Answers[Item]:
        """The answers of one type."""
        plan = replace(self.plan, outputs=(known_output(type, self.plan.outputs),))
        chosen = [i for i, part in enumerate(self.parts) if part.type == type]
        number = np.full(len(self.parts), -1, np.int64)
        number[chosen] = np.arange(len(chosen))
        which = number[self.which]
        result: Answers[Item] = Answers(plan, self.clock, [self.parts[i] for i in chosen], which[which >= 0])
        result.changes = self.changes
        return result

    # A table

    def to_arrow(self, type: str | None = None, trace: bool = True) -> Any:
        """An Arrow table of the answers of one type, or of all.

        Where several types are outputs, all are one table with a column `type` and one for each attribute. Without `trace`
        the column of the traces is left out.
        """
        schema, batches = self.batches(type, trace)
        return pa.Table.from_batches(list(batches), schema)

    def to_pandas(self, type: str | None = None, trace: bool = True) -> Any:
        """A pandas DataFrame of the answers of one type, or of all."""
        return self.to_arrow(type, trace).to_pandas()

    def to_polars(self, type: str | None = None, trace: bool = True) -> Any:
        """A Polars DataFrame of the answers of one type, or of all."""
        try:
            polars = import_module("polars")
        except ImportError:
            raise RunError("Polars is not installed", "pip install polars") from None
        return polars.from_arrow(self.to_arrow(type, trace))

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def _repr_html_(self) -> str:
        return shown_table(self, self.nothing)

    # Columns, some rows at a time

    def chunks(self, type: str | None = None, trace: bool = True) -> Iterator[AnswerChunk]:
        """The answers in order, of one type or of all, some at a time: as many as have traces that fit."""
        which, parts = self.which, self.parts
        chosen = [i for i, part in enumerate(parts) if len(part) and (type is None or part.type == type)]
        if len(chosen) < len(parts):
            which = which[is_in(which, chosen)]
        if parts:
            parts[0].share(parts)
        lo, size, done = 0, _FIRST, dict.fromkeys(chosen, 0)
        while lo < len(which):
            hi = min(lo + size, len(which))
            counts = _counted(which[lo:hi])
            pieces = [self._piece(parts[i], done[i], n, trace) for i, n in counts.items()]
            ids = sum(len(items_of(piece.trace)) for piece in pieces) if trace else 0
            if ids > 4 * _LONG and hi - lo > 1:
                size = (hi - lo) // 2
                continue
            self.traced += ids
            yield AnswerChunk(pieces, None if len(pieces) == 1 else _mixing(which[lo:hi]))
            for i, n in counts.items():
                done[i] += n
            size = max(1, min(_MOST, _LONG * (hi - lo) // max(1, ids)))
            lo = hi

    def _piece(self, part: AnswerPart, lo: int, count: int, trace: bool) -> AnswerColumns:
        return part.piece(lo, lo + count, part.op if self.changes else None, trace)

    def batches(self, type: str | None = None, trace: bool = True) -> tuple[Any, Iterator[Any]]:
        """The schema of a table, and its record batches. `layout` says which columns a table of all types has."""
        if type is None and len(self.plan.outputs) == 1:
            type = self.plan.outputs[0]
        layout = self.layout
        if type is not None:
            layout = layout_of_type(type, self._type_columns[known_output(type, self.plan.outputs)])
        fields = [("op", pa.string())] if self.changes else []
        fields += [("type", pa.string())] if type is None else []
        fields += [(column.name, arrow_type(column.shape)) for column in layout]
        time = STAMP if self.clock.kind == "timestamp" else pa.int64()
        fields += [("start", time), ("end", time), ("id", pa.string()), *([("trace", TRACE)] if trace else [])]
        schema = pa.schema(fields)
        columns = {column.name: column for column in layout}

        def batch(chunk: AnswerChunk) -> Any:
            arrays = (chunk.interleaved([_array(piece, f, columns) for piece in chunk.pieces]) for f in schema)
            return pa.RecordBatch.from_arrays(list(arrays), schema=schema)

        return schema, map(batch, self.chunks(type, trace))

    @cached_property
    def layout(self) -> list[ColumnLayout]:
        """The columns of the attributes of all types."""
        return layout_of(self._type_columns)

    @cached_property
    def _type_columns(self) -> dict[str, TypeColumns]:
        shapes: dict[str, list[list[Shape]]] = {}
        len(self.which)  # puts the parts in order
        for part in self.parts:
            shapes.setdefault(part.type, []).append(part.shapes)
        return {type: type_columns(self.plan, type, shapes.get(type, ())) for type in self.plan.outputs}


def items_of(lists: Any) -> Any:
    """The items of lists, none of which is null, one after the other; nothing is copied."""
    offsets = lists.offsets
    first = offsets[0].as_py()
    return lists.values[first : offsets[len(lists)].as_py()]


def _counted(which: Array) -> dict[int, int]:
    """How many rows each part has, those aside that have none."""
    return {i: n for i, n in enumerate(np.bincount(which).tolist()) if n}


def _mixing(which: Array) -> Array:
    """Of rows that stand part by part, the place of each one that comes next."""
    order = np.argsort(which, kind="stable")
    positions = np.empty(len(which), np.int64)
    positions[order] = np.arange(len(which))
    return positions


def _array(piece: AnswerColumns, column: Any, layout: dict[str, ColumnLayout]) -> Any:
    """The rows of a piece in one column of a table."""
    if column.name in layout:
        values = layout[column.name].of(piece)
        return pa.nulls(len(piece), column.type) if values is None else as_arrow(values, layout[column.name].shape)
    match column.name:
        case "op" | "type":
            return pa.repeat(pa.scalar(getattr(piece, column.name)), len(piece))
        case "start" | "end":
            return pa.array(getattr(piece, column.name), column.type)
        case "id":
            return piece.ids
    return piece.trace


def answers_of(items: Iterable[Event | Change], plan: Plan, clock: Clock, changes: bool = False) -> Answers[Any]:
    """Answers of events, or of changes, in this order."""
    groups: dict[tuple[str, int, Op | None], list[Event]] = {}
    numbers: dict[tuple[str, int, Op | None], int] = {}
    which: list[int] = []
    for item in items:
        event, op = (item.event, item.op) if isinstance(item, Change) else (item, None)
        key = (event.type, len(event.args), op)
        groups.setdefault(key, []).append(event)
        which.append(numbers.setdefault(key, len(numbers)))
    parts = [ColumnPart.of(*key, events) for key, events in groups.items()]
    result: Answers[Any] = Answers(plan, clock, parts, np.array(which, np.int64))
    result.changes = changes
    return result
