"""The cells of a column as they were read: of Arrow, of text or of Python; and the column of values that they are.

Each kind of cells has a way for the whole column, and one for a single cell (`value`), which also says what is wrong with
it. The way for columns gives the same values, or raises a DataError without a place: then the rows are read one by one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from datetime import date, datetime, time
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from augury.algebra.plan import Attribute
from augury.clock import Clock, Duration, Timestamp
from augury.columns.column import Array, Coded, Column, coded, column_of, spread, values_of
from augury.errors import DataError, brief
from augury.model import MAX_INT, MIN_INT, Value, from_json
from augury.sources.types import (
    KINDS,
    PLAIN_FLOAT,
    TYPES,
    Prefixes,
    characters,
    convert,
    fits,
    from_numpy,
    from_text,
    is_null,
    read_as,
    text_of,
    value_of,
)

MISSING = MIN_INT  # the time of a row that says none
_PLAIN = {int, float, str, bool, type(None)}


class Cells(ABC):
    """A column of a table."""

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def some(self, rows: Array) -> Cells:
        """Some of the cells."""

    @abstractmethod
    def plain(self) -> Column:
        """The values, where no type is declared."""

    @abstractmethod
    def cell(self, row: int) -> Any:
        """A cell as it was read; None where it is empty."""

    def first(self, read: Callable[[Any], object]) -> tuple[int, object] | None:
        """What is read of the first cell of which something is, after its row."""
        for row in self._rows():
            try:
                found = read(self.cell(row))
            except DataError:  # a cell that cannot be read
                continue
            if found is not None:
                return row, found
        return None

    def _rows(self) -> Iterable[int]:
        """The rows that may have something."""
        return range(len(self))

    def refused(self) -> tuple[str, str] | None:
        """Why no value of the language can be in such a column, and what to do about it."""
        return None

    def arrow(self) -> Any:
        """The cells as an array of Arrow."""
        return pa.array([self.cell(row) for row in range(len(self))])

    def column(self, attribute: Attribute | None, prefixes: Prefixes) -> Column:
        """The values, of the declared type if there is one."""
        return self.plain() if attribute is None else declared(self.plain(), attribute, prefixes)

    def value(self, row: int, attribute: Attribute | None, prefixes: Prefixes) -> Value:
        """The value of one cell."""
        return value_of(self.cell(row)) if attribute is None else convert(self.cell(row), attribute, prefixes)

    def times(self, clock: Clock) -> Array:
        """The cells as time points, MISSING where one is empty."""
        return time_points(self.plain(), clock)

    def texts(self) -> list[str | None]:
        """The cells as text: ids, names of types, what is done."""
        return [(v or None) if type(v) is str else text_of(v) for v in values_of(self.plain())]

    def written(self) -> Column:
        """The cells as they stand there, where they are text of some kind."""
        return self.plain()


def read_time(value: Any, clock: Clock) -> int | None:
    """The time that a cell says; None where it is empty."""
    if isinstance(value, np.generic):
        value = from_numpy(value)
    if is_null(value) or (isinstance(value, str) and not value):
        return None
    if type(value) is int and not MIN_INT <= value <= MAX_INT:
        raise DataError(f"a time beyond 64 bits: {brief(value)}")
    if isinstance(value, Timestamp):  # a calendar time, even where the clock takes no numbers for one
        return value.us if clock.kind == "timestamp" else clock.read(str(value))
    if type(value) is date:
        value = datetime.combine(value, time())
    return clock.read(value)


def time_of(value: Any, column: str, clock: Clock) -> int | None:
    """The time that a cell of a column says; what is wrong with it names the column."""
    try:
        return read_time(value, clock)
    except DataError as error:
        raise error.of(column) from None


def time_points(column: Column, clock: Clock) -> Array:
    """A column as time points."""
    if (
        isinstance(column, np.ndarray)
        and column.dtype.kind == "i"
        and not (clock.kind == "timestamp" and clock.guessed)
    ):
        return column
    if len(column) == 0:
        return np.empty(0, np.int64)
    found = coded(column)
    read = [read_time(v, clock) for v in found.values]
    return np.array([*(MISSING if t is None else t for t in read), MISSING], np.int64)[found.index]


def declared(column: Column, attribute: Attribute, prefixes: Prefixes) -> Column:
    """A column with its values converted to the declared type."""
    if isinstance(column, np.ndarray):
        if column.dtype.kind in TYPES[attribute.type].arrays:
            return column
        if (attribute.type, column.dtype.kind) == ("float", "i"):
            return column.astype(np.float64)
    elif attribute.type == "any":
        return column
    found = coded(column)
    if attribute.type == "string" and set(map(type, found.values)) <= {str, type(None)}:
        return column
    return spread(found.index, [convert(v, attribute, prefixes) for v in found.values])


# Arrow


def is_text(kind: Any) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def is_list(kind: Any) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


class ArrayCells(Cells):
    """Cells that are an array of Arrow."""

    array: Any

    def __len__(self) -> int:
        return len(self.array)

    def _rows(self) -> Iterable[int]:
        if not self.array.null_count:
            return range(len(self.array))
        return np.flatnonzero(_array(self.array.is_valid(), bool)).tolist()


class ArrowCells(ArrayCells):
    """A column of an Arrow table; a date is its midnight, what has no zone is UTC."""

    def __init__(self, array: Any) -> None:
        self.array = _without_views(array)

    def some(self, rows: Array) -> ArrowCells:
        return ArrowCells(self.array.take(pa.array(rows)))

    def cell(self, row: int) -> Any:
        found = self.array[row]
        try:
            return next(values_of(arrow_column(self.array[row : row + 1])))
        except DataError as error:
            try:
                return found.as_py()
            except (ValueError, OverflowError):  # a time that Python does not have
                raise error from None

    def plain(self) -> Column:
        return arrow_column(self.array)

    def arrow(self) -> Any:
        return self.array

    def refused(self) -> tuple[str, str] | None:
        kind, t = self.array.type, pa.types
        while t.is_dictionary(kind) or is_list(kind):
            kind = kind.value_type
        known = (
            t.is_null,
            t.is_boolean,
            t.is_integer,
            t.is_floating,
            is_text,
            t.is_timestamp,
            t.is_date,
            t.is_duration,
        )
        if any(is_kind(kind) for is_kind in known) or _is_term(kind):
            return None
        nested, number = t.is_struct(kind) or t.is_map(kind), t.is_decimal(kind)
        return str(self.array.type), "make it a double" if number else "select its fields" if nested else "make it text"

    def times(self, clock: Clock) -> Array:
        kind = self.array.type
        if is_text(kind):
            found = text_times(self.array, clock)
            if found is not None:
                return found
        elif clock.kind == "timestamp" and (pa.types.is_timestamp(kind) or pa.types.is_date(kind)):
            return _numbers_of(_microseconds(self.array).cast(pa.int64()), MISSING)
        elif pa.types.is_integer(kind) and not (clock.kind == "timestamp" and clock.guessed):
            try:
                return _numbers_of(self.array.cast(pa.int64()), MISSING)
            except pa.ArrowInvalid:
                raise DataError("a time beyond 64 bits") from None
        return super().times(clock)

    def texts(self) -> list[str | None]:
        if is_text(self.array.type):
            return [t or None for t in _listed(self.array)]
        return super().texts()


def _is_term(kind: Any) -> bool:
    """Whether a struct is a nested term: its functor and its arguments."""
    if not pa.types.is_struct(kind) or sorted(f.name for f in kind) != ["args", "functor"]:
        return False
    return is_text(kind.field("functor").type)


def _without_views(array: Any) -> Any:
    """Text that is a view, as Polars has it, as plain text: most functions of Arrow do not know views."""
    kind = _viewless(array.type)
    return array if kind == array.type else array.cast(kind)


def _viewless(kind: Any) -> Any:
    """A type of Arrow with plain text in place of views, at any depth."""
    t = pa.types
    if t.is_string_view(kind):
        return pa.large_string()
    if t.is_dictionary(kind) and t.is_string_view(kind.value_type):
        return pa.large_string()
    if t.is_struct(kind):
        return pa.struct([field.with_type(_viewless(field.type)) for field in kind])
    if is_list(kind):
        item = kind.value_field.with_type(_viewless(kind.value_type))
        if t.is_fixed_size_list(kind):
            return pa.list_(item, kind.list_size)
        return pa.large_list(item) if t.is_large_list(kind) else pa.list_(item)
    return kind


def arrow_column(array: Any) -> Column:
    """A column of an Arrow table as values."""
    t, kind = pa.types, array.type
    if t.is_dictionary(kind):
        return _dictionary(array)
    if is_text(kind):
        return Coded(*_encoded(_without_views(array)))
    if t.is_integer(kind):
        try:
            whole = array.cast(pa.int64())
        except pa.ArrowInvalid:
            raise DataError("an integer beyond 64 bits") from None
        return _array(whole, np.int64) if not whole.null_count else _spread(whole)
    if t.is_floating(kind):
        return _floats(array)
    if t.is_boolean(kind) and not array.null_count:
        return _array(array, bool)
    if t.is_timestamp(kind) or t.is_date(kind):
        return _moments(_microseconds(array), Timestamp)
    if t.is_duration(kind):
        return _moments(_in_microseconds(array, pa.duration("us")), Duration)
    if t.is_null(kind):
        return Coded([], np.full(len(array), -1, np.int64))
    return column_of([value_of(_as_json(v)) for v in _listed(array)])


def _listed(array: Any) -> list[Any]:
    """An array as values of Python. Not every one that Arrow has can be one."""
    try:
        return array.to_pylist()  # type: ignore[no-any-return]
    except UnicodeDecodeError:
        raise DataError("is not UTF-8 text") from None
    except (ValueError, OverflowError):
        raise DataError("a time beyond those of the calendar") from None


def _as_json(value: Any) -> Any:
    """What Arrow has inside lists and structs, in the JSON form: a struct `args` is the arguments in order."""
    match value:
        case {"functor": functor, "args": args}:
            return {
                "functor": functor,
                "args": _as_json(list(args.values()) if isinstance(args, dict) else list(args or ())),
            }
        case list():
            return [_as_json(v) for v in value]
    return value


def _array(array: Any, kind: Any) -> Array:
    return np.array(array.to_numpy(zero_copy_only=False) if isinstance(array, pa.Array) else array.to_numpy(), kind)


def _microseconds(array: Any) -> Any:
    kind = array.type
    return _in_microseconds(array, pa.timestamp("us", kind.tz if pa.types.is_timestamp(kind) else None))


def _in_microseconds(array: Any, kind: Any) -> Any:
    """Times or lengths in microseconds; what is finer is rounded down."""
    if getattr(array.type, "unit", "") == "ns":
        found = array.cast(kind, safe=False)  # rounds to zero
        if not len(array) or not (least := pc.min(array.cast(pa.int64())).as_py()) or least >= 0:
            return found
        whole = found.cast(pa.int64())
        over = pc.greater(pc.multiply(whole, 1000), array.cast(pa.int64()))
        return pc.subtract(whole, over.cast(pa.int64())).cast(kind)
    try:
        return array.cast(kind)
    except pa.ArrowInvalid:
        raise DataError("a time beyond 64 bits") from None


def _numbers_of(array: Any, null: int) -> Array:
    return _array(pc.fill_null(array, null) if array.null_count else array, np.int64)


def _encoded(array: Any) -> tuple[list[Any], Array]:
    """The different values of a column, and their numbers; null is -1."""
    found = array.dictionary_encode()
    if isinstance(found, pa.ChunkedArray):
        found = (
            found.unify_dictionaries().combine_chunks()
            if found.num_chunks
            else pa.array([], array.type).dictionary_encode()
        )
        if isinstance(found, pa.ChunkedArray):
            found = found.chunk(0) if found.num_chunks else pa.array([], array.type).dictionary_encode()
    return _listed(found.dictionary), _numbers_of(found.indices.cast(pa.int64()), -1)


def _spread(array: Any) -> Column:
    values, index = _encoded(array)
    return spread(index, values)


def _dictionary(array: Any) -> Column:
    """A column that is encoded already."""
    if not is_text(array.type.value_type):
        return arrow_column(array.cast(array.type.value_type))
    found = array.unify_dictionaries().combine_chunks() if isinstance(array, pa.ChunkedArray) else array
    if isinstance(found, pa.ChunkedArray):
        return arrow_column(array.cast(array.type.value_type))
    return spread(_numbers_of(found.indices.cast(pa.int64()), -1), _listed(found.dictionary))


def _floats(array: Any) -> Column:
    found = _array(array.cast(pa.float64()), np.float64) + 0.0
    if np.isinf(found).any():
        raise DataError("an infinite number")
    return found


def _moments(array: Any, make: type[Timestamp] | type[Duration]) -> Column:
    values, index = _encoded(array.cast(pa.int64()))
    return Coded([make(v) for v in values], index)


def text_times(texts: Any, clock: Clock) -> Array | None:
    """Times as text, where all are plain: numbers on a logical clock, else ISO times, with a zone or without."""
    try:
        if clock.kind == "logical":
            whole = _round_trip(texts)
            if whole is None and _all_plain(texts, r"^-?[0-9]{1,18}$"):
                whole = texts.cast(pa.int64())
            return None if whole is None else _numbers_of(whole, MISSING)
        if _all_plain(
            texts, r"^[1-9][0-9]{3}-[0-9]{2}-[0-9]{2}([T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{3}([0-9]{3})?)?)?)?$"
        ):
            return _numbers_of(texts.cast(pa.timestamp("us")).cast(pa.int64()), MISSING)
        if _all_plain(
            texts,
            r"^[1-9][0-9]{3}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{3}([0-9]{3})?)?)?(Z|[+-][0-9]{2}:[0-9]{2})$",
        ):
            return _numbers_of(texts.cast(pa.timestamp("us", "UTC")).cast(pa.int64()), MISSING)
    except pa.ArrowInvalid:
        pass
    return None


def _all_plain(texts: Any, pattern: str) -> bool:
    return pc.all(pc.match_substring_regex(texts, pattern)).as_py() is not False


# Text


class TextCells(ArrayCells):
    """A column of a table of text, such as CSV; the `nulls` are what an empty cell is written as. `kind` is that of the
    column where no type is declared, found by all of its cells, also those in other parts of the table."""

    def __init__(self, array: Any, kind: str | None = None) -> None:
        self.array, self.kind = array, kind

    def some(self, rows: Array) -> TextCells:
        return TextCells(self.array.take(pa.array(rows)), self.kind)

    def cell(self, row: int) -> Any:
        return self.array[row].as_py()

    def value(self, row: int, attribute: Attribute | None, prefixes: Prefixes) -> Value:
        text = self.cell(row) or ""
        return read_as(self.kind or "string")(text) if attribute is None else from_text(text, attribute, prefixes)

    def plain(self) -> Column:
        return text_column(self.array, self.kind or "string")

    def column(self, attribute: Attribute | None, prefixes: Prefixes) -> Column:
        if attribute is None:
            return self.plain()
        if attribute.type in ("string", "any"):
            return self.written()
        found = _as_numbers(self.array, attribute.type)
        if found is not None:
            return found
        texts, index = _encoded(self.array)
        return spread(index, [from_text(text, attribute, prefixes) for text in texts])

    def times(self, clock: Clock) -> Array:
        found = text_times(self.array, clock)
        return time_points(self.written(), clock) if found is None else found

    def texts(self) -> list[str | None]:
        return self.array.to_pylist()  # type: ignore[no-any-return]

    def written(self) -> Column:
        return Coded(*_encoded(self.array))

    def arrow(self) -> Any:
        types = {"int": pa.int64(), "float": pa.float64(), "bool": pa.bool_()}
        return pa.array(list(values_of(self.plain())), types[self.kind]) if self.kind in types else self.array


def text_column(cells: Any, kind: str) -> Column:
    """A column of text of a kind that all cells are of; null where a cell is."""
    if kind in ("int", "float"):
        found = _as_numbers(cells, kind)
        if found is not None:
            return found
    texts, index = _encoded(cells)
    return Coded(texts, index) if kind == "string" else spread(index, list(map(read_as(kind), texts)))


def kind_of_text(arrays: Sequence[Any]) -> str:
    """The kind of a column of text, given in parts: the first one that all its cells are of."""
    return kinds_of_text(arrays)[0]


def kinds_of_text(arrays: Sequence[Any], among: Iterable[str] = KINDS) -> list[str]:
    """Of some kinds, those that all cells of a column of text are of, given in parts."""
    left = list(among)
    for array in arrays:
        if left == ["string"]:
            break
        if array.null_count == len(array):
            continue
        if left[0] == "int" and _round_trip(array) is not None:
            left = [kind for kind in left if kind != "bool"]
            continue
        if (
            left[0] in ("int", "float")
            and _all_plain(array, f"^{PLAIN_FLOAT}$")
            and not pc.any(pc.equal(array, "-")).as_py()
            and not _has_bare(array)
        ):
            whole = _all_plain(array, r"^-?(0|[1-9][0-9]*)$")
            left = [kind for kind in left if kind != "bool" and (kind != "int" or whole)]
            continue
        distinct = (
            pc.unique(array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array).drop_null().to_pylist()
        )
        left = [kind for kind in left if all(fits(cell, kind) for cell in distinct)]
    return left


def _has_bare(array: Any) -> bool:
    """Whether a cell has no digit before its exponent, which the pattern of floats lets through."""
    return bool(pc.any(pc.match_substring_regex(array, r"^-?([eE]|$)")).as_py())


def _round_trip(cells: Any) -> Any:
    """Text as integers, where writing these gives the text again; else None.

    Whatever else Arrow takes for an integer, such as 007, is longer than that integer is written.
    """
    try:
        whole = cells.cast(pa.int64())
    except pa.ArrowInvalid:
        return None
    characters = pc.sum(pc.binary_length(cells)).as_py() or 0
    return whole if characters == _digits(_array(whole.drop_null(), np.int64)) else None


def _digits(numbers: Array) -> int:
    """How many characters it takes to write integers."""
    if not len(numbers):
        return 0
    least, greatest = int(numbers.min()), int(numbers.max())
    found, ten = len(numbers), 10
    while ten <= greatest or ten <= -least:
        found += int(np.count_nonzero(numbers >= ten)) if ten <= greatest else 0
        found += int(np.count_nonzero(numbers <= -ten)) if ten <= -least else 0
        ten *= 10
    return found + (int(np.count_nonzero(numbers < 0)) if least < 0 else 0)


def _as_numbers(cells: Any, type: str) -> Column | None:
    """A column of plain numbers; None where it has anything else, be it a number too."""
    if type not in ("int", "float", "number") or cells.null_count == len(cells):
        return None
    if type != "float":
        whole = _round_trip(cells)
        if whole is not None:
            return arrow_column(whole)
    if type == "int" or (type == "number" and not _all_plain(cells, "[.eE]")):
        return None
    try:
        found = _array(cells.cast(pa.float64()), np.float64) + 0.0
    except pa.ArrowInvalid:
        return None
    usual = np.isfinite(found)
    return found if usual.all() or int((~usual).sum()) == cells.null_count else None


# Python


class PlainCells(Cells):
    """Python objects."""

    def __init__(self, values: Sequence[Any]) -> None:
        self.values = values

    def __len__(self) -> int:
        return len(self.values)

    def some(self, rows: Array) -> Cells:
        column = self._column
        if isinstance(column, np.ndarray) or set(map(type, column.values)) <= {str, type(None)}:
            return ColumnCells(column[rows])
        return PlainCells([self.values[i] for i in rows.tolist()])  # they may be of fewer kinds than all are

    def cell(self, row: int) -> Any:
        return self.values[row]

    @cached_property
    def _column(self) -> Column:
        return python_column(self.values)

    def plain(self) -> Column:
        return self._column

    def times(self, clock: Clock) -> Array:
        kinds = set(map(type, self.values))
        if kinds == {str}:
            try:
                found = text_times(pa.array(self.values, pa.string()), clock)
            except UnicodeEncodeError:  # characters that are none, which a row is to name
                found = None
            if found is not None:
                return found
        if kinds <= _PLAIN:
            return time_points(self._column, clock)
        read = [read_time(v, clock) for v in self.values]
        return np.array([MISSING if t is None else t for t in read], np.int64)


class ColumnCells(Cells):
    """Values that are a column already."""

    def __init__(self, values: Column) -> None:
        self.values = values

    def __len__(self) -> int:
        return len(self.values)

    def some(self, rows: Array) -> ColumnCells:
        return ColumnCells(self.values[rows])

    def cell(self, row: int) -> Any:
        return next(values_of(self.values[row : row + 1]))

    def plain(self) -> Column:
        return self.values


def python_column(values: Sequence[Any]) -> Column:
    """A column of Python objects."""
    kinds = set(map(type, values))
    if not kinds <= _PLAIN:
        return column_of([value_of(v) for v in values])
    if kinds == {int}:
        try:
            return np.array(values, np.int64)
        except OverflowError:
            raise DataError("an integer beyond 64 bits") from None
    if int in kinds and any(not MIN_INT <= v <= MAX_INT for v in values if type(v) is int):
        raise DataError("an integer beyond 64 bits")
    if float in kinds:
        if kinds <= {float, type(None)}:
            found = np.array(values, np.float64) + 0.0
            if not np.isinf(found).any():
                return found
        return _of_characters(column_of([from_json(v) if type(v) is float else v for v in values]))
    return _of_characters(column_of(values))


def _of_characters(column: Column) -> Column:
    """A column, none of whose texts has half of a character."""
    if isinstance(column, Coded):
        characters("".join([v for v in column.values if type(v) is str]))
    return column
