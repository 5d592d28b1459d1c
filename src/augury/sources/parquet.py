"""Parquet, and Arrow in the forms of files (Feather) and of streams."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from augury.errors import DataError
from augury.sources.cells import ArrowCells
from augury.sources.sheet import Sheet

_ROWS = 1 << 18


def sheet_of(table: Any, place: str, before: int = 0) -> Sheet:
    """A table, or a part of one after some rows."""
    cells = [ArrowCells(column) for column in table.columns]
    return Sheet(tuple(table.column_names), list(cells), table.num_rows, place, lambda row: before + row + 1, place)


def read(stream: Any, place: str) -> Iterator[Sheet]:
    """The row groups of a Parquet file, some hundred thousand rows at a time."""
    import pyarrow.parquet as pq

    yield from _checked(
        lambda: pq.ParquetFile(stream).iter_batches(_ROWS, use_threads=False),
        lambda: pq.ParquetFile(stream).schema_arrow,
        "a Parquet",
        place,
    )


def read_arrow(stream: Any, place: str) -> Iterator[Sheet]:
    """The record batches of a file of Arrow, in either of its forms."""
    import pyarrow.ipc

    def batches() -> Iterator[Any]:
        try:
            file = pyarrow.ipc.open_file(stream)
        except pa.ArrowInvalid:
            stream.seek(0)
            yield from pyarrow.ipc.open_stream(stream)
        else:
            for i in range(file.num_record_batches):
                yield file.get_batch(i)

    def schema() -> Any:
        try:
            return pyarrow.ipc.open_file(stream).schema
        except pa.ArrowInvalid:
            stream.seek(0)
            return pyarrow.ipc.open_stream(stream).schema

    yield from _checked(batches, schema, "an Arrow", place)


def _checked(batches: Any, schema: Any, form: str, place: str) -> Iterator[Sheet]:
    """The parts of a table; where it has no rows at all, one part that has its columns."""
    rows = 0
    try:
        for batch in batches():
            if batch.num_rows:
                yield sheet_of(batch, place, rows)
                rows += batch.num_rows
        if not rows:
            yield sheet_of(pa.Table.from_batches([], schema()), place)
    except (pa.ArrowException, OSError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"is not {form} file: {str(error).splitlines()[0]}", place) from None
