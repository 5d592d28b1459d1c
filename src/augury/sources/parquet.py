"""Parquet, and Arrow in the forms of files (Feather) and of streams."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyarrow as pa

from augury.core.errors import DataError
from augury.core.limits import memory_left
from augury.sources.arrow_cells import ArrowCells
from augury.sources.packed_cells import ROWS, is_index, packed_sheets, repeated_texts
from augury.sources.sheet import Sheet


def sheet_of(table: Any, location: str, before: int = 0) -> Sheet:
    """A table, or a part of one after some rows."""
    columns = [
        (name, column) for name, column in zip(table.column_names, table.columns, strict=True) if not is_index(name)
    ]
    cells = [ArrowCells(column) for _, column in columns]
    names = tuple(name for name, _ in columns)
    return Sheet(names, list(cells), table.num_rows, location, lambda row: before + row + 1, location)


def sheets_of(batches: Iterable[Any], schema: object, location: str) -> Iterator[Sheet]:
    """The parts of a table; where it has no rows at all, one part that has its columns."""
    rows = 0
    for batch in batches:
        if batch.num_rows:
            yield sheet_of(batch, location, rows)
            rows += batch.num_rows
    if not rows:
        yield sheet_of(pa.Table.from_batches([], schema), location)


def read(stream: Any, location: str) -> Iterator[Sheet]:
    """The row groups of a Parquet file, some hundred thousand rows at a time.

    What fits well into memory is kept as it is packed: a column is unpacked when somebody looks at it.
    """
    import pyarrow.parquet as pq

    def opened() -> Iterator[Sheet]:
        left = memory_left()
        file = pq.ParquetFile(stream)
        names = file.schema_arrow.names
        if left is None or stream.size() > left // 4 or len(set(names)) < len(names):
            return sheets_of(file.iter_batches(ROWS, use_threads=False), file.schema_arrow, location)
        stream.seek(0)
        packed, repeated = pa.BufferReader(stream.read_buffer()), repeated_texts(file)
        return packed_sheets(pq.ParquetFile(packed, read_dictionary=repeated), location)

    return _checked(opened, "a Parquet", location)


def read_arrow(stream: Any, location: str) -> Iterator[Sheet]:
    """The record batches of a file of Arrow, in either of its forms."""
    import pyarrow.ipc

    def opened() -> Iterator[Sheet]:
        try:
            file = pyarrow.ipc.open_file(stream)
        except pa.ArrowInvalid:
            stream.seek(0)
            reader = pyarrow.ipc.open_stream(stream)
            return sheets_of(reader, reader.schema, location)
        return sheets_of(map(file.get_batch, range(file.num_record_batches)), file.schema, location)

    return _checked(opened, "an Arrow", location)


def _checked(opened: Callable[[], Iterator[Sheet]], form: str, location: str) -> Iterator[Sheet]:
    try:
        yield from opened()
    except (pa.ArrowException, OSError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"is not {form} file: {str(error).splitlines()[0]}", location) from None
