"""Columns of values of the language, and their conversion to Arrow.

A column of answers has one *shape*: the Arrow type that all its values fit in. Integers and floats fit in doubles, strings
and IRIs in strings; lists and nested terms have the shapes of what is inside. Values that fit in nothing are JSON text.

    loc('N', 4042)         struct<functor: string, args: struct<_1: string, _2: int64>>
    point(1, 2.5)          struct<functor: string, args: list<double>>
    [1, 2], []             list<int64>
    1, 'x'                 string: the JSON texts `1` and `"x"`
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import reduce
from types import NoneType
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from augury.core.arrays import Array
from augury.core.clock import Duration, Timestamp
from augury.core.model import Iri, Term, Value, to_json

STAMP, SPAN = pa.timestamp("us", "UTC"), pa.duration("us")


@dataclass(frozen=True)
class ValueColumn:
    """The values of an attribute, in one of three forms.

    - `values` is an array of int64 or float64, and `null` marks the rows that are null; with `unit`, its integers are
      microseconds of timestamps or durations;
    - `values` is an Arrow array of texts, and `place` says which of them a row has;
    - `values` is a list of any values, each once, and `place` says which of them a row has.
    """

    values: Any
    index: Array | None = None
    null: Array | None = None
    unit: type[Timestamp | Duration] | None = None
    made: dict[Any, Any] = field(default_factory=dict, compare=False)  # what was made of a list of values

    def __len__(self) -> int:
        return len(self.values if self.index is None else self.index)

    @property
    def numeric(self) -> bool:
        return self.index is None

    @property
    def textual(self) -> bool:
        return isinstance(self.values, pa.Array)

    def some(self, rows: Any) -> ValueColumn:
        """Some rows: a slice, or their numbers."""
        if self.index is not None:
            return replace(self, index=self.index[rows])
        return replace(self, values=self.values[rows], null=None if self.null is None else self.null[rows])

    def taken(self, array: Any) -> Any:
        """An Arrow array that has an element for each of the values, row by row."""
        taken = array.take(pa.array(self.index))
        return taken.cast(pa.string()) if taken.type == pa.large_string() else taken

    def list(self) -> list[Value]:
        if self.textual:
            texts: list[Value] = self.taken(self.values).to_pylist()
            return texts
        values = self.values
        if self.index is not None:
            return [values[i] for i in self.index.tolist()]
        values_list: list[Value] = values.tolist() if self.unit is None else [self.unit(us) for us in values.tolist()]
        if self.null is not None:
            for i in np.flatnonzero(self.null).tolist():
                values_list[i] = None
        return values_list

    def listed(self) -> ValueColumn:
        """The same values as a list."""
        if self.index is None or self.textual:  # these rows alone, so that nothing that was made of others fits
            return ValueColumn(self.list(), np.arange(len(self)))
        return self

    def once(self, kind: object, make: Callable[[], object]) -> Any:
        """What is made of a list of values: once, however many pieces a column is written in."""
        if kind not in self.made:
            self.made[kind] = make()
        return self.made[kind]


def column_of(values: Iterable[Value]) -> ValueColumn:
    """A column of values that come one by one."""
    listed = list(values)
    kinds = set(map(type, listed))
    if kinds == {int} or kinds == {float}:
        return ValueColumn(np.array(listed, np.int64 if int in kinds else np.float64))
    if kinds and kinds <= {Timestamp, Duration} and len(kinds) == 1:
        return ValueColumn(np.array([value.us for value in listed], np.int64), unit=kinds.pop())  # type: ignore[union-attr]
    return coded_column(listed, np.arange(len(listed)))


def coded_column(values: list[Value], inverse: Array) -> ValueColumn:
    """A column of values that are there once, and of which of them each row has."""
    if set(map(type, values)) <= {str, NoneType}:
        with suppress(UnicodeEncodeError, pa.ArrowInvalid):  # halves of characters
            texts = pa.array(values, pa.string())
            if isinstance(texts, pa.Array):  # not several, as gigabytes of text are
                return ValueColumn(texts, inverse)
    return ValueColumn(values, inverse)


# Shapes


@dataclass(frozen=True)
class ListColumn:
    """Lists whose elements have one shape."""

    of: Shape


@dataclass(frozen=True)
class Nested:
    """Nested terms: the shape that all arguments fit in, and that of each argument where all terms have as many."""

    every: Shape
    each: tuple[Shape, ...] | None


Shape: TypeAlias = "str | ListColumn | Nested"
_SCALARS: dict[str, Any] = {
    "null": pa.string(), "int": pa.int64(), "float": pa.float64(), "bool": pa.bool_(), "string": pa.string(),
    "timestamp": STAMP, "duration": SPAN, "json": pa.string(),
    "term": pa.struct([("functor", pa.string()), ("args", pa.list_(pa.string()))]),  # declared, and none is there
}  # fmt: skip
_DECLARED: dict[str, Shape] = {
    **{name: name for name in ("int", "float", "bool", "string", "timestamp", "duration")},
    "number": "float", "iri": "string", "list": ListColumn("null"), "term": "term",
}  # fmt: skip


def declared_shape(type: str) -> Shape:
    """The shape that a declaration names."""
    return _DECLARED.get(type, "null")


def shape_of(column: ValueColumn) -> Shape:
    """The shape of all values of a column."""
    values = column.values
    if not len(column):
        return "null"
    if column.textual:
        return "null" if values.null_count == len(values) else "string"
    if column.numeric:
        if column.null is not None and bool(column.null.all()):
            return "null"
        if column.unit is not None:
            return "timestamp" if column.unit is Timestamp else "duration"
        return "float" if values.dtype.kind == "f" else "int"
    return fitting(map(_shape, values))


def fitting(shapes: Iterable[Shape]) -> Shape:
    """The shape that values of all these shapes fit in."""
    nothing: Shape = "null"
    return reduce(_fit, set(shapes), nothing)


def _shape(value: Value) -> Shape:
    match value:
        case None:
            return "null"
        case bool():
            return "bool"
        case int():
            return "int"
        case float():
            return "float"
        case str() | Iri():
            return "string"
        case Timestamp():
            return "timestamp"
        case Duration():
            return "duration"
        case Term():
            each = tuple(_shape(a) for a in value.args)
            return Nested(fitting(each), each)
        case tuple():
            return ListColumn(fitting(_shape(a) for a in value))


def _fit(shape: Shape, other: Shape) -> Shape:
    if shape == other or other == "null":
        return shape
    match shape, other:
        case ("null", _) | ("term", Nested()):
            return other
        case Nested(), "term":
            return shape
        case (("int" | "float"), ("int" | "float")):
            return "float"
        case ListColumn(), ListColumn():
            return ListColumn(_fit(shape.of, other.of))
        case Nested(), Nested():
            each = None
            if shape.each is not None and other.each is not None and len(shape.each) == len(other.each):
                each = tuple(_fit(x, y) for x, y in zip(shape.each, other.each, strict=True))
            return Nested(_fit(shape.every, other.every), each)
    return "json"


def regular(shape: Shape) -> Shape:
    """The shape itself; `json` where something inside it fits in nothing."""
    match shape:
        case ListColumn():
            inner = regular(shape.of)
            return "json" if inner == "json" else ListColumn(inner)
        case Nested():
            every = regular(shape.every)
            if every != "json":
                return Nested(every, None)
            each = None if shape.each is None else tuple(regular(s) for s in shape.each)
            return "json" if each is None or "json" in each else Nested("json", each)
    return shape


# Arrow


def arrow_type(shape: Shape) -> Any:
    """The Arrow type of a regular shape."""
    match shape:
        case str():
            return _SCALARS[shape]
        case ListColumn():
            return pa.list_(arrow_type(shape.of))
        case Nested(every, None):
            args = pa.list_(arrow_type(every))
        case Nested(_, each):
            assert each is not None
            args = pa.struct([(f"_{i + 1}", arrow_type(s)) for i, s in enumerate(each)])
    return pa.struct([("functor", pa.string()), ("args", args)])


def as_arrow(column: ValueColumn, shape: Shape) -> Any:
    """A column as an Arrow array of a regular shape that its values fit in."""
    values = column.values
    if column.numeric and shape in ("int", "float", "timestamp", "duration"):
        values = values.astype(np.float64 if shape == "float" else np.int64, copy=False)
        return pa.array(values, arrow_type(shape), mask=column.null)
    if column.textual and shape == "string":
        return column.taken(values)
    column = column.listed()

    def make() -> Any:
        plain = [_plain(v, shape) for v in column.values]
        return text_array(plain) if shape in ("string", "json") else pa.array(plain, arrow_type(shape))

    return column.taken(column.once(shape, make))


def _plain(value: Value, shape: Shape) -> Any:
    """A value as Arrow takes it."""
    if value is None:
        return None
    match shape, value:
        case "json", _:
            return json.dumps(to_json(value), ensure_ascii=False)
        case "float", int() | float():
            return float(value)
        case _, Timestamp() | Duration():
            return value.us
        case _, Iri():
            return value.text
        case ListColumn(of), tuple():
            return [_plain(v, of) for v in value]
        case Nested(every, None), Term():
            return {"functor": value.functor, "args": [_plain(v, every) for v in value.args]}
        case Nested(_, each), Term():
            assert each is not None
            args = {f"_{i + 1}": _plain(v, s) for i, (v, s) in enumerate(zip(value.args, each, strict=True))}
            return {"functor": value.functor, "args": args}
    return value


def text_array(texts: Sequence[str | None]) -> Any:
    """Texts as an Arrow array; halves of characters, which UTF-8 cannot have, are replaced."""
    try:
        return pa.array(texts, pa.string())
    except (UnicodeEncodeError, pa.ArrowInvalid):
        whole = [None if t is None else t.encode("utf-16", "surrogatepass").decode("utf-16", "replace") for t in texts]
        return pa.array(whole, pa.string())
