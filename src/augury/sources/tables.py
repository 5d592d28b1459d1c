"""Python tables: everything with the Arrow C stream interface, such as Polars, DuckDB, pyarrow and pandas."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from augury.core.errors import DataError
from augury.sources.cells import Cells
from augury.sources.heading import no_columns_twice
from augury.sources.parquet import sheet_of, sheets_of
from augury.sources.python_cells import PlainCells
from augury.sources.sheet import Sheet


def is_table(given: object) -> bool:
    """Whether something is a table: of Arrow, of pandas, or a stream of Arrow."""
    if isinstance(given, type) or (hasattr(given, "to_frame") and not hasattr(given, "columns")):
        return False
    return (
        hasattr(given, "__arrow_c_stream__")
        or isinstance(given, pa.RecordBatch)
        or hasattr(given, "to_table")
        or _is_pandas(given)
        or type(given).__module__.split(".")[0] in ("duckdb", "_duckdb")
    )


def _is_pandas(given: object) -> bool:
    return hasattr(given, "iloc") and hasattr(given, "columns")


def sheets(given: object, place: str) -> Iterator[Sheet]:
    """The rows of a table, in parts where it comes in parts. One without rows is a sheet without rows."""
    if _is_pandas(given):
        yield _pandas(given, place)
        return
    reader = _reader(given, place)
    yield from sheets_of(reader, reader.schema, place)


def _reader(given: object, place: str) -> Any:
    """A table as record batches."""
    if isinstance(given, pa.Table):
        return given.combine_chunks().to_reader()
    if isinstance(given, pa.RecordBatch):
        return pa.RecordBatchReader.from_batches(given.schema, [given])
    if isinstance(given, pa.RecordBatchReader):
        return given
    if hasattr(given, "__arrow_c_stream__"):
        return pa.RecordBatchReader.from_stream(given)
    if hasattr(given, "to_arrow_table"):
        return given.to_arrow_table().to_reader()
    if hasattr(given, "to_table"):  # a dataset, or a scanner of one; what DuckDB calls so makes a table in the database
        return given.to_table().to_reader()
    raise DataError(f"a {type(given).__name__} is not a table", place, "give a table, or a list of rows")


def _pandas(frame: Any, place: str) -> Sheet:
    """The columns of a DataFrame, without its index; one of mixed objects is read object by object."""
    names = [str(c) for c in frame.columns]
    no_columns_twice(names, place)
    # Of what is nested without end Arrow would make an end of the process.
    if not any(_has_nested(frame[c]) for c in frame.columns):
        try:
            return sheet_of(pa.Table.from_pandas(frame, preserve_index=False).rename_columns(names), place)
        except (pa.ArrowException, UnicodeEncodeError, OverflowError):
            pass
    plain = frame.astype(object).where(frame.notna(), None)
    cells: list[Cells] = [PlainCells(plain[c].tolist()) for c in frame.columns]
    return Sheet(tuple(names), cells, len(frame), place, top=place)


def _has_nested(column: Any) -> bool:
    """Whether a column of objects has lists, or anything else in which there is something."""
    return column.dtype == object and any(
        issubclass(kind, list | tuple | dict | np.ndarray) for kind in set(map(type, column.tolist()))
    )
