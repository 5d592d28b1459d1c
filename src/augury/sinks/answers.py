"""Answers as columns, wherever they were found: what all formats are written from.

Answers come in parts, one for each type and arity, and for what is given and what is taken back. Each part is in the order
of answers, and `which` says of each answer which part it is in, so that nothing has to be sorted again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from itertools import repeat
from typing import Any

import numpy as np
import pyarrow as pa

from augury.algebra.plan import Plan
from augury.core.arrays import Array, RowIds, Times
from augury.core.clock import Clock
from augury.core.errors import RunError, nearest
from augury.core.model import Change, Event
from augury.sinks.names import column_names, declared_types
from augury.sinks.order import in_order
from augury.sinks.values import (
    STAMP,
    Shape,
    ValueColumn,
    arrow_type,
    as_arrow,
    column_of,
    declared_shape,
    fitting,
    regular,
    shape_of,
    text_array,
)
from augury.storage.unique import is_in

_FIRST, _MOST = 1 << 10, 1 << 16  # rows that are written at a time: at first, and at most
_LONG = 1 << 22  # ids of traces that are written at a time
TRACE = pa.list_(pa.string())


@dataclass(frozen=True)
class AnswerPart:
    """Answers of one type and arity. `traces` gives the traces of rows from one up to another, as Arrow lists."""

    type: str
    columns: Sequence[ValueColumn]
    start: Times
    end: Times
    ids: Any
    traces: Callable[[int, int], Any]
    op: str | None = None

    def __len__(self) -> int:
        return len(self.start)

    @property
    def arity(self) -> int:
        return len(self.columns)

    def values(self, position: int, rows: RowIds) -> ValueColumn:
        return self.columns[position].some(rows)

    @cached_property
    def shapes(self) -> list[Shape]:
        return [shape_of(column) for column in self.columns]

    def arranged(self, order: Array) -> AnswerPart:
        """The same answers in another order."""
        trace = cache(lambda: self.traces(0, len(self)).take(pa.array(order)))
        return replace(
            self,
            columns=[column.some(order) for column in self.columns],
            start=self.start[order],
            end=self.end[order],
            ids=self.ids.take(pa.array(order)),
            traces=lambda lo, hi: trace()[lo:hi],
        )


@dataclass(frozen=True)
class AnswerPiece:
    """Some rows of a part, one after the other."""

    part: AnswerPart
    lo: int
    hi: int
    trace: Any  # their traces; None where nobody wants them

    def __len__(self) -> int:
        return self.hi - self.lo

    @property
    def columns(self) -> list[ValueColumn]:
        return [column.some(slice(self.lo, self.hi)) for column in self.part.columns]

    @property
    def start(self) -> Times:
        return self.part.start[self.lo : self.hi]

    @property
    def end(self) -> Times:
        return self.part.end[self.lo : self.hi]

    @property
    def ids(self) -> Any:
        return self.part.ids[self.lo : self.hi]


@dataclass(frozen=True)
class AnswerChunk:
    """Answers that are written at once: pieces of parts, and where each row of them comes, if not one after the other."""

    pieces: list[AnswerPiece]
    mixing: Array | None

    def interleaved(self, arrays: list[Any]) -> Any:
        """An array for each piece as one, in the order of answers."""
        whole = arrays[0] if len(arrays) == 1 else pa.concat_arrays(arrays)
        return whole if self.mixing is None else whole.take(pa.array(self.mixing))


@dataclass
class TraceCount:
    """How many ids the traces have that were made so far."""

    ids: int = 0


@dataclass(frozen=True)
class Answers:
    """Answers of a program, or with `changes` those that were given and taken back, in the order in which they are told."""

    plan: Plan
    clock: Clock
    parts: list[AnswerPart] = field(default_factory=list)
    which: Array | None = None  # the part of each answer; None where there is one part at most
    changes: bool = False
    traced: TraceCount = field(default_factory=TraceCount, compare=False)

    def __len__(self) -> int:
        return sum(len(part) for part in self.parts)

    def known(self, type: str) -> str:
        return known_output(type, self.plan.outputs)

    def chunks(self, type: str | None = None, trace: bool = True) -> Iterator[AnswerChunk]:
        """The answers in order, of one type or of all, some at a time: as many as have traces that fit."""
        chosen = [i for i, part in enumerate(self.parts) if len(part) and (type is None or part.type == type)]
        which = None
        if len(chosen) > 1:
            assert self.which is not None
            which = self.which if len(chosen) == len(self.parts) else self.which[is_in(self.which, chosen)]
        lo, total, size = 0, sum(len(self.parts[i]) for i in chosen), _FIRST
        done = dict.fromkeys(chosen, 0)
        while lo < total:
            hi = min(lo + size, total)
            counts = {chosen[0]: hi - lo} if which is None else _counted(which[lo:hi])
            pieces = [self._piece(self.parts[i], done[i], done[i] + n, trace) for i, n in counts.items()]
            ids = sum(len(items_of(piece.trace)) for piece in pieces if piece.trace is not None)
            if ids > 4 * _LONG and hi - lo > 1:
                size = (hi - lo) // 2
                continue
            self.traced.ids += ids
            yield AnswerChunk(pieces, None if len(pieces) == 1 else _mixing(which[lo:hi]))  # type: ignore[index]
            for i, n in counts.items():
                done[i] += n
            size = max(1, min(_MOST, _LONG * (hi - lo) // max(1, ids)))
            lo = hi

    def _piece(self, part: AnswerPart, lo: int, hi: int, trace: bool) -> AnswerPiece:
        return AnswerPiece(part, lo, hi, part.traces(lo, hi) if trace else None)

    def events(self) -> Iterator[Event]:
        """The answers as events."""
        for chunk in self.chunks():
            made = [_events(piece) for piece in chunk.pieces]
            if chunk.mixing is None:
                yield from made[0]
            else:
                flat = [event for some in made for event in some]
                yield from (flat[i] for i in chunk.mixing.tolist())

    # Tables

    def table(self, type: str | None = None, trace: bool = True) -> Any:
        """The answers of one type as an Arrow table; without one, those of all types."""
        schema, batches = self.batches(type, trace)
        return pa.Table.from_batches(list(batches), schema)

    def batches(self, type: str | None = None, trace: bool = True) -> tuple[Any, Iterator[Any]]:
        """The schema of a table, and its record batches.

        Where several types are outputs, all of them are one table with the type and a column for each attribute, null where
        a type has none. Attributes of one name share a column, unless their values fit in nothing but JSON: then each type
        has its own, with the type in its name.
        """
        if type is None and len(self.plan.outputs) == 1:
            type = self.plan.outputs[0]
        layout = self.layout if type is None else _narrow(self.known(type), self._shapes[type])
        fields = [("op", pa.string())] if self.changes else []
        fields += [("type", pa.string())] if type is None else []
        fields += [(name, arrow_type(shape)) for name, shape, _ in layout]
        time = STAMP if self.clock.kind == "timestamp" else pa.int64()
        fields += [("start", time), ("end", time), ("id", pa.string()), *([("trace", TRACE)] if trace else [])]
        schema = pa.schema(fields)
        return schema, (_batch(chunk, schema, layout) for chunk in self.chunks(type, trace))

    @cached_property
    def _shapes(self) -> dict[str, list[tuple[str, Shape]]]:
        """The columns of each type: what they are called, and what their values fit in."""
        found = {}
        for type in self.plan.outputs:
            shapes: list[list[Shape]] = [[declared_shape(name)] for name in declared_types(self.plan, type)]
            for part in self.parts:
                for i, shape in enumerate(part.shapes if part.type == type else ()):
                    shapes[i].append(shape)
            found[type] = list(zip(column_names(self.plan, type), map(fitting, shapes), strict=True))
        return found

    @cached_property
    def layout(self) -> list[_Place]:
        """The columns of the attributes of all types, see `batches`."""
        places: dict[str, dict[tuple[str, int], Shape]] = {}
        for type, columns in self._shapes.items():
            for i, (name, shape) in enumerate(columns):
                places.setdefault(name, {})[type, i] = shape
        found: list[_Place] = []
        for name, makers in places.items():
            shape = regular(fitting(makers.values()))
            if shape == "json" and any(regular(own) != "json" for own in makers.values()):
                for (type, i), own in makers.items():
                    found.append((_free(f"{name}_{type}", places), regular(own), {type: i}))
            else:
                found.append((name, shape, dict(makers.keys())))
        return found


def known_output(type: str, outputs: Sequence[str]) -> str:
    """The name of an output; another one is an error."""
    if type not in outputs:
        close = nearest(type, outputs)
        there = f"did you mean `{close}`?" if close else f"there is {', '.join(outputs) or 'none'}"
        raise RunError(f"`{type}` is not an output of the program", hint=there)
    return type


_Place = tuple[str, Shape, dict[str, int]]  # the name and the shape of a column, and the attribute of each type in it


def _narrow(type: str, columns: list[tuple[str, Shape]]) -> list[_Place]:
    return [(name, regular(shape), {type: i}) for i, (name, shape) in enumerate(columns)]


def _free(name: str, taken: Iterable[str]) -> str:
    while name in taken:
        name += "_"
    return name


def items_of(lists: Any) -> Any:
    """What is in lists, none of which is null, one after the other; nothing is copied."""
    offsets = lists.offsets
    first = offsets[0].as_py()
    return lists.values[first : offsets[len(lists)].as_py()]


def _counted(which: Array) -> dict[int, int]:
    """How many rows each part has, those aside that have none."""
    return {i: n for i, n in enumerate(np.bincount(which).tolist()) if n}


def _mixing(which: Array) -> Array:
    """Of rows that stand part by part, the place of each one that comes next."""
    order = np.argsort(which, kind="stable")
    place = np.empty(len(which), np.int64)
    place[order] = np.arange(len(which))
    return place


def _batch(chunk: AnswerChunk, schema: Any, layout: list[_Place]) -> Any:
    attributes = {name: (shape, places) for name, shape, places in layout}
    arrays = [chunk.interleaved([_array(piece, f, attributes) for piece in chunk.pieces]) for f in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _array(piece: AnswerPiece, column: Any, attributes: dict[str, tuple[Shape, dict[str, int]]]) -> Any:
    """The rows of a piece in one column of a table."""
    part = piece.part
    if column.name in attributes:
        shape, places = attributes[column.name]
        at = places.get(part.type)
        if at is None or at >= len(part.columns):
            return pa.nulls(len(piece), column.type)
        return as_arrow(part.columns[at].some(slice(piece.lo, piece.hi)), shape)
    match column.name:
        case "op":
            return pa.repeat(pa.scalar(part.op), len(piece))
        case "type":
            return pa.repeat(pa.scalar(part.type), len(piece))
        case "start" | "end":
            return pa.array(piece.start if column.name == "start" else piece.end, column.type)
        case "id":
            return piece.ids
    return piece.trace


def ordered(plan: Plan, clock: Clock, parts: Sequence[AnswerPart]) -> Answers:
    """Answers whose parts are in no order, in the order of events."""
    which, orders = in_order(parts)
    sorted_parts = [part if o is None else part.arranged(o) for part, o in zip(parts, orders, strict=True)]
    return Answers(plan, clock, sorted_parts, which if len(parts) > 1 else None)


# From events, and back


def _events(piece: AnswerPiece) -> list[Event]:
    columns = [column.list() for column in piece.columns]
    args: Any = zip(*columns, strict=True) if columns else repeat((), len(piece))
    rest = (piece.start.tolist(), piece.end.tolist(), piece.ids.to_pylist(), piece.trace.to_pylist())
    return [Event(piece.part.type, a, s, e, i, tuple(t)) for a, s, e, i, t in zip(args, *rest, strict=True)]


def answers_of(items: Iterable[Event | Change], plan: Plan, clock: Clock, changes: bool = False) -> Answers:
    """Answers that are there as events, or as changes, in this order."""
    groups: dict[tuple[str, int, str | None], list[Event]] = {}
    numbers: dict[tuple[str, int, str | None], int] = {}
    which: list[int] = []
    for item in items:
        event, op = (item.event, item.op) if isinstance(item, Change) else (item, None)
        key = (event.type, len(event.args), op)
        groups.setdefault(key, []).append(event)
        which.append(numbers.setdefault(key, len(numbers)))
    parts = [_part(type, arity, op, events) for (type, arity, op), events in groups.items()]
    return Answers(plan, clock, parts, np.array(which, np.int64) if len(parts) > 1 else None, changes)


def _part(type: str, arity: int, op: str | None, events: list[Event]) -> AnswerPart:
    def traces(lo: int, hi: int) -> Any:
        some = [event.trace for event in events[lo:hi]]
        offsets = np.r_[0, np.cumsum([len(trace) for trace in some])].astype(np.int32)
        return pa.ListArray.from_arrays(pa.array(offsets), text_array([id for trace in some for id in trace]))

    times = np.array([(event.start, event.end) for event in events], np.int64).reshape(-1, 2)
    columns = [column_of(event.args[i] for event in events) for i in range(arity)]
    return AnswerPart(
        type, columns, times[:, 0].copy(), times[:, 1].copy(), text_array([e.id for e in events]), traces, op
    )
