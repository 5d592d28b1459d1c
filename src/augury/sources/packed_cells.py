"""Columns of a Parquet file that are unpacked on access."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from threading import RLock
from typing import Any

import numpy as np
import pyarrow as pa

from augury.algebra.plan import Attribute
from augury.core.errors import DataError
from augury.sources.arrow_cells import ArrowCells, is_text, text_column_of, viewless
from augury.sources.sheet import Sheet
from augury.sources.types import Prefixes
from augury.storage.column import Column, DeferredColumn, PackedColumn, TextColumn

ROWS = 1 << 18
_INDEX = re.compile(r"__index_level_\d+__")
_CODED = 6  # bytes of a text on the average, where most are numbers of a dictionary
_WHOLE, _NUMBERS = ("int", "number", "float"), ("number", "float")


class PackedGroups:
    """A column of some row groups, one after the other."""

    def __init__(
        self, file: Any, groups: list[int], name: str, location: str, lock: AbstractContextManager[object]
    ) -> None:
        """`lock` is that of the file, which one thread at a time reads."""
        self.file, self.groups, self.name, self.location, self.lock = file, groups, name, location, lock
        kind = file.schema_arrow.field(name).type
        self.coded = pa.types.is_dictionary(kind) and is_text(kind.value_type)
        self.kind = viewless(kind.value_type if self.coded else kind)
        self._array: Any = None
        self._packed: dict[Attribute | None, PackedColumn] = {}

    def _read(self) -> Any:
        try:
            return self.file.read_row_groups(self.groups, columns=[self.name], use_threads=False).column(self.name)
        except (pa.ArrowException, OSError) as error:
            raise DataError(f"is not a Parquet file: {str(error).splitlines()[0]}", self.location) from None

    @property
    def array(self) -> Any:
        if self._array is None:
            column = self._read()
            self._array = ArrowCells(column.cast(self.kind) if self.coded else column).array
        return self._array

    def packed(self, attribute: Attribute | None, prefixes: Prefixes) -> PackedColumn:
        """The values of the declared type, if there is one."""
        if attribute not in self._packed:
            self._packed[attribute] = PackedColumn(lambda: self._column(attribute, prefixes), self.lock)
        return self._packed[attribute]

    def _column(self, attribute: Attribute | None, prefixes: Prefixes) -> Column:
        array, self._array = self._array, None
        try:
            if self.coded:
                parts = self._read().unify_dictionaries().combine_chunks()
                if isinstance(parts, pa.DictionaryArray):
                    text_column_of(parts.dictionary)
                    return TextColumn(parts)
            return ArrowCells(self._read() if array is None else array).column(attribute, prefixes)
        except DataError:
            self._check_texts()
            raise

    def _check_texts(self) -> None:
        """Names the row of a text that is not UTF-8: it is read after its rows were accepted."""
        if is_text(self.kind):
            before = sum(self.file.metadata.row_group(group).num_rows for group in range(self.groups[0]))
            for row, cell in enumerate(self._read().cast(self.kind).cast(pa.large_binary())):
                try:
                    (cell.as_py() or b"").decode()
                except UnicodeDecodeError:
                    cell_location = f"{self.location}:{before + row + 1}"
                    raise DataError(f"`{self.name}`: is not UTF-8 text", cell_location) from None

    def sound(self, attribute: Attribute | None) -> bool:
        """Whether each of its cells is sure to be a value of the declared type, if there is one."""
        t, kind, type = pa.types, self.kind, "any" if attribute is None else attribute.type
        if is_text(kind):
            return type in ("any", "string")
        if t.is_integer(kind):
            return kind != pa.uint64() and type in ("any", *_WHOLE)
        if t.is_floating(kind):
            return type in ("any", *_NUMBERS) and self._finite()
        if t.is_boolean(kind):
            return type in ("any", "bool")
        if t.is_timestamp(kind):
            local = attribute is not None and attribute.zone and kind.tz is None
            return type in ("any", "timestamp") and kind.unit in ("us", "ns") and not local
        return False

    def _finite(self) -> bool:
        """Whether the file says that no number is infinite."""
        metadata = self.file.metadata
        column = [metadata.schema.column(i).path for i in range(metadata.num_columns)].index(self.name)
        statistics = [metadata.row_group(group).column(column).statistics for group in self.groups]
        return all(s is not None and s.has_min_max and np.isfinite([s.min, s.max]).all() for s in statistics)


class PackedCells(ArrowCells):
    """Some rows of a column of row groups."""

    def __init__(self, groups: PackedGroups, first: int, count: int) -> None:
        self.groups, self._lo, self._count = groups, first, count

    @property
    def array(self) -> Any:
        return self.groups.array.slice(self._lo, self._count)

    @property
    def kind(self) -> Any:
        return self.groups.kind

    def __len__(self) -> int:
        return self._count

    def deferred(self, attribute: Attribute | None, prefixes: Prefixes) -> Column:
        if not self.groups.sound(attribute):
            return self.column(attribute, prefixes)
        return DeferredColumn(self.groups.packed(attribute, prefixes), self._lo, self._count)


def is_index(column: str) -> bool:
    """Whether a column is the index of a DataFrame without a name, which pandas writes beside the columns."""
    return _INDEX.fullmatch(column) is not None


def _row_numbers(before: int) -> Callable[[int], int]:
    return lambda row: before + row + 1


def repeated_texts(file: Any) -> list[str]:
    """The columns of texts that the file has by a dictionary."""
    metadata, schema = file.metadata, file.schema_arrow
    result: list[str] = []
    for index in range(metadata.num_columns):
        name = metadata.schema.column(index).path
        if name in schema.names and is_text(schema.field(name).type):
            chunks = [metadata.row_group(group).column(index) for group in range(metadata.num_row_groups)]
            size = sum(chunk.total_uncompressed_size for chunk in chunks)
            if all(chunk.has_dictionary_page for chunk in chunks) and size < _CODED * sum(c.num_values for c in chunks):
                result.append(name)
    return result


def packed_sheets(file: Any, location: str) -> Iterator[Sheet]:
    """The rows of a file, some at a time: of small row groups several, and large ones in parts."""
    names = tuple(name for name in file.schema_arrow.names if not is_index(name))
    last, row, size, groups, lock = file.metadata.num_row_groups - 1, 0, 0, list[int](), RLock()
    for group in range(max(last + 1, 1)):
        if group <= last:
            groups.append(group)
            size += file.metadata.row_group(group).num_rows
        if size >= ROWS or (group >= last and (size or not row)):
            columns = [PackedGroups(file, groups, name, location, lock) for name in names]
            for first in range(0, max(size, 1), ROWS):
                rows = min(ROWS, size - first)
                cells = [PackedCells(column, first, rows) for column in columns]
                yield Sheet(names, list(cells), rows, location, _row_numbers(row + first), location)
            row, size, groups = row + size, 0, []
