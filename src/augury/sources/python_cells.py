"""Cells that are Python objects, and those that are a column already."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from augury.algebra.plan import Attribute
from augury.core.arrays import RowIds, Times
from augury.core.clock import Clock
from augury.core.errors import DataError
from augury.core.model import MAX_INT, MIN_INT, from_json
from augury.sources.arrow_cells import text_times
from augury.sources.cells import MISSING, Cells, read_time, time_points
from augury.sources.types import Prefixes, characters, convert, value_of
from augury.storage.column import Coded, Column, column_of, values_of

_PLAIN = {int, float, str, bool, type(None)}


class PlainCells(Cells):
    """Python objects."""

    def __init__(self, values: Sequence[object]) -> None:
        self.values = values

    def __len__(self) -> int:
        return len(self.values)

    def some(self, rows: RowIds) -> Cells:
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

    def column(self, attribute: Attribute | None, prefixes: Prefixes) -> Column:
        if attribute is not None and attribute.zone and not set(map(type, self.values)) <= _PLAIN:
            return column_of([convert(v, attribute, prefixes) for v in self.values])
        return super().column(attribute, prefixes)

    def times(self, clock: Clock) -> Times:
        kinds = set(map(type, self.values))
        if kinds == {str}:
            try:
                result = text_times(pa.array(self.values, pa.string()), clock)
            except UnicodeEncodeError:  # invalid characters, which the error of a row names
                result = None
            if result is not None:
                return result
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

    def some(self, rows: RowIds) -> ColumnCells:
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
            result = np.array(values, np.float64) + 0.0
            if not np.isinf(result).any():
                return result
        return _of_characters(column_of([from_json(v) if type(v) is float else v for v in values]))
    return _of_characters(column_of(values))


def _of_characters(column: Column) -> Column:
    """A column, none of whose texts has half of a character."""
    if isinstance(column, Coded):
        characters("".join([v for v in column.values if type(v) is str]))
    return column
