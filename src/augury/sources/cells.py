"""Cells of a column before conversion (Arrow, text or Python), and their conversion to a column of values.

Each kind of cells has a way for the whole column, and one for a single cell (`value`), which also says what is wrong with
it. The way for columns gives the same values, or raises a DataError without a place: then the rows are read one by one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from datetime import date, datetime, time
from typing import Any

import numpy as np
import pyarrow as pa

from augury.algebra.plan import Attribute
from augury.core.arrays import Array, RowIds, Times
from augury.core.bounds import MAX_TIME, MIN_TIME
from augury.core.clock import TIME_RANGE, Clock, Timestamp, check_time
from augury.core.errors import DataError
from augury.core.model import MAX_INT, MIN_INT, Value
from augury.core.time_units import PER_SECOND, TIME_UNITS, likely_range, to_microseconds
from augury.sources.types import (
    TYPES,
    Prefixes,
    convert,
    from_numpy,
    is_null,
    text_of,
    value_of,
)
from augury.storage.column import Column, TextColumn, TimeColumn, coded, column_by_index, values_of

MISSING = MIN_INT  # the time of a row that says none


class Cells(ABC):
    """A column of a table."""

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def some(self, rows: RowIds) -> Cells:
        """Some of the cells."""

    @abstractmethod
    def plain(self) -> Column:
        """The values, where no type is declared."""

    @abstractmethod
    def cell(self, row: int) -> Any:
        """A cell as it was read; None where it is empty."""

    def first(self, read: Callable[[Any], object]) -> tuple[int, object] | None:
        """The first cell that has a value, after its row."""
        for row in self._rows():
            try:
                result = read(self.cell(row))
            except DataError:  # a cell that cannot be read
                continue
            if result is not None:
                return row, result
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

    def deferred(self, attribute: Attribute | None, prefixes: Prefixes) -> Column:
        """The same column, which may be unpacked later where nothing can be wrong with it."""
        return self.column(attribute, prefixes)

    def value(self, row: int, attribute: Attribute | None, prefixes: Prefixes) -> Value:
        """The value of one cell."""
        return value_of(self.cell(row)) if attribute is None else convert(self.cell(row), attribute, prefixes)

    def times(self, clock: Clock) -> Times:
        """The cells as time points, MISSING where one is empty."""
        return time_points(self.plain(), clock)

    def time_cell(self, row: int, clock: Clock) -> Any:
        """A cell that says a time, for the clock to read."""
        return self.cell(row)

    def texts(self) -> list[str | None]:
        """The cells as text: ids, names of types, what is done."""
        return [(v or None) if type(v) is str else text_of(v) for v in values_of(self.plain())]

    def written(self) -> Column:
        """The cells as they stand there, where they are text of some kind."""
        return self.plain()


def read_time(value: object, clock: Clock) -> int | None:
    """The time that a cell says; None where it is empty."""
    if isinstance(value, np.generic):
        value = from_numpy(value)
    if is_null(value) or (isinstance(value, str) and not value):
        return None
    if type(value) is int and not MIN_INT <= value <= MAX_INT:
        check_time(value)  # before the clock shows it: a number may have more digits than Python writes
    if isinstance(value, Timestamp):  # a calendar time, even where the clock takes no numbers for one
        return check_time(value.us) if clock.kind == "timestamp" else clock.read(str(value))
    if type(value) is date:
        value = datetime.combine(value, time())
    return clock.read(value)


def time_of(value: object, column: str, clock: Clock) -> int | None:
    """The time that a cell of a column says; what is wrong with it names the column."""
    try:
        return read_time(value, clock)
    except DataError as error:
        raise error.of(column) from None


def time_points(column: Column, clock: Clock) -> Times:
    """A column as time points."""
    if isinstance(column, np.ndarray) and column.dtype.kind == "i" and not clock.takes_no_numbers:
        return times_of_numbers(column, clock)
    if len(column) == 0:
        return np.empty(0, np.int64)
    if isinstance(column, TimeColumn) and column.kind is Timestamp and clock.kind == "timestamp":
        check_times(column.us if column.null is None else column.us[~column.null])
        return column.us if column.null is None else np.where(column.null, MISSING, column.us)
    result = coded(column)
    read = [read_time(v, clock) for v in result.values]
    return np.array([*(MISSING if t is None else t for t in read), MISSING], np.int64)[result.index]


def check_times(times: Times) -> Array:
    """Time points of which none is missing; refuses those that are too far from the origin."""
    if len(times) and not (int(times.min()) >= MIN_TIME and int(times.max()) <= MAX_TIME):
        raise DataError("a time too far from the origin", hint=TIME_RANGE)
    return times


def times_of_numbers(numbers: Array, clock: Clock) -> Times:
    """Integers, none of which is missing, as time points. Where one may be of another unit, rows are read one by one."""
    if not len(numbers):
        return numbers
    least, greatest = int(numbers.min()), int(numbers.max())
    if clock.guessed or clock.unit_guessed:
        for unit in TIME_UNITS:
            first, beyond = likely_range(unit)
            apart = unit == clock.unit or least >= beyond or greatest < first
            if not apart and ((numbers >= first) & (numbers < beyond)).any():
                raise DataError("a time that may be in another unit")
    if clock.unit is None or clock.unit == "us":
        return check_times(numbers)
    check_time(to_microseconds(least, clock.unit))
    check_time(to_microseconds(greatest, clock.unit))
    whole, parts = max(10**6 // PER_SECOND[clock.unit], 1), max(PER_SECOND[clock.unit] // 10**6, 1)
    return numbers // parts * whole


def declared(column: Column, attribute: Attribute, prefixes: Prefixes) -> Column:
    """A column with its values converted to the declared type."""
    if isinstance(column, np.ndarray):
        if column.dtype.kind in TYPES[attribute.type].arrays:
            return column
        if (attribute.type, column.dtype.kind) == ("float", "i"):
            return column.astype(np.float64)
    elif (
        attribute.type == "any"
        or (isinstance(column, TextColumn) and attribute.type == "string")
        or (isinstance(column, TimeColumn) and attribute.type == column.kind.__name__.lower())
    ):
        return column
    result = coded(column)
    if attribute.type == "string" and set(map(type, result.values)) <= {str, type(None)}:
        return column
    return column_by_index(result.index, [convert(v, attribute, prefixes) for v in result.values])
