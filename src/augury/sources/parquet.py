"""Parquet, and Arrow in the forms of files (Feather) and of streams."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyarrow as pa

from augury.core.errors import DataError
from augury.sources.arrow_cells import ArrowCells
from augury.sources.sheet import Sheet

_ROWS = 1 << 18
_INDEX = re.compile(r"__index_level_\d+__")


def sheet_of(table: Any, location: str, before: int = 0) -> Sheet:
    """A table, or a part of one after some rows."""
    columns = [
        (name, column) for name, column in zip(table.column_names, table.columns, strict=True) if not is_index(name)
    ]
    cells = [ArrowCells(column) for _, column in columns]
    names = tuple(name for name, _ in columns)
    return Sheet(names, list(cells), table.num_rows, location, lambda row: before + row + 1, location)


def is_index(column: str) -> bool:
    """Whether a column is the index of a DataFrame without a name, which pandas writes beside the columns."""
    return _INDEX.fullmatch(column) is not None


def sheets_of(batches: Iterable[Any], schema: object, location: str) -> Iterator[Sheet]:
    """The parts of a table; where it has no rows at all, one part that has its columns."""
    rows = 0
    for batch in batches:
        if batch.num_rows:
            yield sheet_of(batch, location, rows)
            rows += batch.num_rows
    if not rows:
        yield sheet_of(pa.Table.from_batches([], schema), location)


def read(stream: object, location: str) -> Iterator[Sheet]:
    """The row groups of a Parquet file, some hundred thousand rows at a time."""
    import pyarrow.parquet as pq

    def opened() -> tuple[Iterable[Any], Any]:
        file = pq.ParquetFile(stream)
        return file.iter_batches(_ROWS, use_threads=False), file.schema_arrow

    return _checked(opened, "a Parquet", location)


def read_arrow(stream: Any, location: str) -> Iterator[Sheet]:
    """The record batches of a file of Arrow, in either of its forms."""
    import pyarrow.ipc

    def opened() -> tuple[Iterable[Any], Any]:
        try:
            file = pyarrow.ipc.open_file(stream)
        except pa.ArrowInvalid:
            stream.seek(0)
            reader = pyarrow.ipc.open_stream(stream)
            return reader, reader.schema
        return map(file.get_batch, range(file.num_record_batches)), file.schema

    return _checked(opened, "an Arrow", location)


def _checked(opened: Callable[[], tuple[Iterable[Any], Any]], form: str, location: str) -> Iterator[Sheet]:
    try:
        yield from sheets_of(*opened(), location)
    except (pa.ArrowException, OSError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"is not {form} file: {str(error).splitlines()[0]}", location) from None
