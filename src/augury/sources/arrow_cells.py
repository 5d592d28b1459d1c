"""Cells of Arrow, by their types."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from augury.algebra.plan import Attribute
from augury.core.arrays import Array, Integers, RowIds, Times
from augury.core.clock import Clock, Duration, Timestamp, time_zone
from augury.core.errors import DataError
from augury.core.model import Value
from augury.sources.cells import MISSING, Cells, check_times, times_of_numbers
from augury.sources.types import Prefixes, value_of
from augury.storage.column import Coded, Column, TextColumn, TimeColumn, column_by_index, column_of, values_of


def is_text(kind: object) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def is_list(kind: object) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


class ArrayCells(Cells):
    """Cells that are an array of Arrow."""

    array: Any

    def __len__(self) -> int:
        return len(self.array)

    def _rows(self) -> Iterable[int]:
        if not self.array.null_count:
            return range(len(self.array))
        return np.flatnonzero(as_array(self.array.is_valid(), bool)).tolist()


class ArrowCells(ArrayCells):
    """A column of an Arrow table; a date is its midnight, what has no zone is UTC."""

    def __init__(self, array: object) -> None:
        self.array = _without_views(array)

    def some(self, rows: RowIds) -> ArrowCells:
        return ArrowCells(self.array.take(pa.array(rows)))

    def cell(self, row: int) -> Any:
        result = self.array[row]
        try:
            return next(values_of(arrow_column(self.array[row : row + 1])))
        except DataError as error:
            try:
                return result.as_py()
            except (ValueError, OverflowError):  # a time that Python does not have
                raise error from None

    def plain(self) -> Column:
        return arrow_column(self.array)

    def column(self, attribute: Attribute | None, prefixes: Prefixes) -> Column:
        cells = self._local(attribute)
        return super().column(attribute, prefixes) if cells is self else cells.column(attribute, prefixes)

    def value(self, row: int, attribute: Attribute | None, prefixes: Prefixes) -> Value:
        cells = self._local(attribute)
        return super(ArrowCells, cells).value(row, attribute, prefixes)

    def _local(self, attribute: Attribute | None) -> ArrowCells:
        """The cells of an attribute; where timestamps and dates name no zone, in that of the attribute."""
        kind, zone = self.array.type, attribute.zone if attribute is not None else ""
        if not zone or not (pa.types.is_date(kind) or (pa.types.is_timestamp(kind) and kind.tz is None)):
            return self
        return ArrowCells(in_zone(_microseconds(self.array), zone))

    def arrow(self) -> Any:
        return self.array

    @property
    def kind(self) -> Any:
        return self.array.type

    def refused(self) -> tuple[str, str] | None:
        return refused_type(self.kind)

    def times(self, clock: Clock) -> Times:
        kind = self.array.type
        if is_text(kind):
            result = text_times(self.array, clock)
            if result is not None:
                return result
        elif clock.kind == "timestamp" and (pa.types.is_timestamp(kind) or pa.types.is_date(kind)):
            return _time_points(in_zone(_microseconds(self.array), clock.zone).cast(pa.int64()))
        elif pa.types.is_integer(kind) and not clock.takes_no_numbers:
            try:
                return _times_of(self.array.cast(pa.int64()), clock)
            except pa.ArrowInvalid:
                raise DataError("a time beyond 64 bits") from None
        return super().times(clock)

    def time_cell(self, row: int, clock: Clock) -> Any:
        moment = self.cell(row)
        kind = self.array.type
        if not clock.zone or not isinstance(moment, Timestamp) or getattr(kind, "tz", None) is not None:
            return moment
        return Timestamp(int(self.some(np.array([row])).times(clock)[0]))

    def texts(self) -> list[str | None]:
        if is_text(self.array.type):
            return [t or None for t in _listed(self.array)]
        return super().texts()


@lru_cache(256)  # a push asks for each of its columns
def refused_type(kind: Any) -> tuple[str, str] | None:
    """Why no value of the language can be in a column of a type of Arrow, and what to do about it."""
    t, inner = pa.types, kind
    while t.is_dictionary(inner) or is_list(inner):
        inner = inner.value_type
    readable = (
        t.is_null,
        t.is_boolean,
        t.is_integer,
        t.is_floating,
        is_text,
        t.is_timestamp,
        t.is_date,
        t.is_duration,
    )
    if any(is_kind(inner) for is_kind in readable) or _is_term(inner):
        return None
    nested, number = t.is_struct(inner) or t.is_map(inner), t.is_decimal(inner)
    return str(kind), "make it a double" if number else "select its fields" if nested else "make it text"


def _is_term(kind: Any) -> bool:
    """Whether a struct is a nested term: its functor and its arguments."""
    if not pa.types.is_struct(kind) or sorted(f.name for f in kind) != ["args", "functor"]:
        return False
    return is_text(kind.field("functor").type)


def _without_views(array: Any) -> Any:
    """Text that is a view, as Polars has it, as plain text: most functions of Arrow do not know views."""
    kind = viewless(array.type)
    return array if kind == array.type else array.cast(kind)


@lru_cache(256)
def viewless(kind: Any) -> Any:
    """A type of Arrow with plain text in place of views, at any depth."""
    t = pa.types
    if t.is_string_view(kind):
        return pa.large_string()
    if t.is_dictionary(kind) and t.is_string_view(kind.value_type):
        return pa.large_string()
    if t.is_struct(kind):
        return pa.struct([field.with_type(viewless(field.type)) for field in kind])
    if is_list(kind):
        item = kind.value_field.with_type(viewless(kind.value_type))
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
        return text_column_of(_without_views(array))
    if t.is_integer(kind):
        try:
            whole = array.cast(pa.int64())
        except pa.ArrowInvalid:
            raise DataError("an integer beyond 64 bits") from None
        return as_array(whole, np.int64) if not whole.null_count else _spread(whole)
    if t.is_floating(kind):
        return _floats(array)
    if t.is_boolean(kind) and not array.null_count:
        return as_array(array, bool)
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


def _as_json(value: object) -> Any:
    """Elements of Arrow lists and structs in the JSON form: a struct `args` is the arguments in order."""
    match value:
        case {"functor": functor, "args": args}:
            return {
                "functor": functor,
                "args": _as_json(list(args.values()) if isinstance(args, dict) else list(args or ())),
            }
        case list():
            return [_as_json(v) for v in value]
    return value


def as_array(array: Any, kind: Any) -> Array:
    return np.array(array.to_numpy(zero_copy_only=False) if isinstance(array, pa.Array) else array.to_numpy(), kind)


def _microseconds(array: Any) -> Any:
    kind = array.type
    return _in_microseconds(array, pa.timestamp("us", kind.tz if pa.types.is_timestamp(kind) else None))


def in_zone(moments: Any, zone: str) -> Any:
    """Timestamps without a zone as UTC, where they are local times of `zone`; others as they are."""
    if not zone or moments.type.tz is not None:
        return moments
    try:
        return pc.assume_timezone(moments, zone, ambiguous="earliest")
    except pa.ArrowInvalid:  # a time that the clocks skip, or a zone that Arrow does not know
        local = [None if m is None else m.replace(tzinfo=time_zone(zone)) for m in _listed(moments)]
        return pa.array(local, pa.timestamp("us", "UTC"))


def _in_microseconds(array: Any, kind: Any) -> Any:
    """Times or lengths in microseconds; what is finer is rounded down."""
    if getattr(array.type, "unit", "") == "ns":
        result = array.cast(kind, safe=False)  # rounds to zero
        if not len(array) or not (least := pc.min(array.cast(pa.int64())).as_py()) or least >= 0:
            return result
        whole = result.cast(pa.int64())
        over = pc.greater(pc.multiply(whole, 1000), array.cast(pa.int64()))
        return pc.subtract(whole, over.cast(pa.int64())).cast(kind)
    try:
        return array.cast(kind)
    except pa.ArrowInvalid:
        raise DataError("a time beyond 64 bits") from None


def _numbers_of(array: Any, null: int) -> Array:
    return as_array(pc.fill_null(array, null) if array.null_count else array, np.int64)


def _time_points(array: Any) -> Array:
    """Integers as time points, MISSING where one is null; refuses those that are too far from the origin."""
    if array.null_count:
        check_times(as_array(array.drop_null(), np.int64))
        return _numbers_of(array, MISSING)
    return check_times(as_array(array, np.int64))


def _times_of(array: Any, clock: Clock) -> Times:
    """Integers as times that the clock reads, MISSING where one is null."""
    if not array.null_count:
        return times_of_numbers(as_array(array, np.int64), clock)
    times = np.full(len(array), MISSING, np.int64)
    times[as_array(array.is_valid(), bool)] = times_of_numbers(as_array(array.drop_null(), np.int64), clock)
    return times


def encoded(array: Any) -> tuple[list[Any], Array]:
    """The different values of a column, and their numbers; null is -1."""
    result = array.dictionary_encode()
    if isinstance(result, pa.ChunkedArray):
        result = (
            result.unify_dictionaries().combine_chunks()
            if result.num_chunks
            else pa.array([], array.type).dictionary_encode()
        )
        if isinstance(result, pa.ChunkedArray):
            result = result.chunk(0) if result.num_chunks else pa.array([], array.type).dictionary_encode()
    return _listed(result.dictionary), _numbers_of(result.indices.cast(pa.int64()), -1)


def text_column_of(array: Any) -> TextColumn:
    """A column of texts, which are checked to be some."""
    texts = array.cast(pa.large_string())
    if isinstance(texts, pa.ChunkedArray):
        texts = pa.concat_arrays(texts.chunks) if texts.num_chunks else pa.array([], pa.large_string())
    try:
        texts.validate(full=True)
    except pa.ArrowInvalid:
        raise DataError("is not UTF-8 text") from None
    return TextColumn(texts)


def _spread(array: object) -> Column:
    values, index = encoded(array)
    return column_by_index(index, values)


def _dictionary(array: Any) -> Column:
    """A column that is encoded already."""
    if not is_text(array.type.value_type):
        return arrow_column(array.cast(array.type.value_type))
    result = array.unify_dictionaries().combine_chunks() if isinstance(array, pa.ChunkedArray) else array
    if isinstance(result, pa.ChunkedArray):
        return arrow_column(array.cast(array.type.value_type))
    return column_by_index(_numbers_of(result.indices.cast(pa.int64()), -1), _listed(result.dictionary))


def _floats(array: Any) -> Column:
    result = as_array(array.cast(pa.float64()), np.float64) + 0.0
    if np.isinf(result).any():
        raise DataError("an infinite number")
    return result


def _moments(array: Any, make: type[Timestamp] | type[Duration]) -> Column:
    null = as_array(array.is_null(), bool) if array.null_count else None
    return TimeColumn(_numbers_of(array.cast(pa.int64()), 0), make, null)


def text_times(texts: Any, clock: Clock) -> Array | None:
    """Times as text, where all are plain: numbers on a logical clock, else ISO times, with a zone or without."""
    try:
        if clock.kind == "logical":
            whole = whole_numbers(texts)
            if whole is None and all_match(texts, r"^-?[0-9]{1,18}$"):
                whole = texts.cast(pa.int64())
            return None if whole is None else _times_of(whole, clock)
        if clock.unit is not None and (whole := whole_numbers(texts)) is not None:
            return _times_of(whole, clock)
        if all_match(
            texts, r"^[1-9][0-9]{3}-[0-9]{2}-[0-9]{2}([T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{3}([0-9]{3})?)?)?)?$"
        ):
            local = in_zone(texts.cast(pa.timestamp("us")), clock.zone)
            return _numbers_of(local.cast(pa.int64()), MISSING)
        if all_match(
            texts,
            r"^[1-9][0-9]{3}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{3}([0-9]{3})?)?)?(Z|[+-][0-9]{2}:[0-9]{2})$",
        ):
            return _numbers_of(texts.cast(pa.timestamp("us", "UTC")).cast(pa.int64()), MISSING)
    except (pa.ArrowInvalid, DataError):  # the caller reads them one by one, and names the wrong one
        pass
    return None


def all_match(texts: object, pattern: str) -> bool:
    return pc.all(pc.match_substring_regex(texts, pattern)).as_py() is not False


def whole_numbers(cells: Any) -> Any:
    """Text as integers, where writing these gives the text again; else None.

    Whatever else Arrow takes for an integer, such as 007, is longer than that integer is written.
    """
    try:
        whole = cells.cast(pa.int64())
    except pa.ArrowInvalid:
        return None
    characters = pc.sum(pc.binary_length(cells)).as_py() or 0
    return whole if characters == _digits(as_array(whole.drop_null(), np.int64)) else None


def _digits(numbers: Integers) -> int:
    """How many characters it takes to write integers."""
    if not len(numbers):
        return 0
    least, greatest = int(numbers.min()), int(numbers.max())
    count, ten = len(numbers), 10
    while ten <= greatest or ten <= -least:
        count += int(np.count_nonzero(numbers >= ten)) if ten <= greatest else 0
        count += int(np.count_nonzero(numbers <= -ten)) if ten <= -least else 0
        ten *= 10
    return count + (int(np.count_nonzero(numbers < 0)) if least < 0 else 0)
