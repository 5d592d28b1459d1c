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


def is_table(data: object) -> bool:
    """Whether something is a table: of Arrow, of pandas, or a stream of Arrow."""
    if isinstance(data, type) or (hasattr(data, "to_frame") and not hasattr(data, "columns")):
        return False
    return (
        hasattr(data, "__arrow_c_stream__")
        or isinstance(data, pa.RecordBatch)
        or hasattr(data, "to_table")
        or _is_pandas(data)
        or type(data).__module__.split(".")[0] in ("duckdb", "_duckdb")
    )


def _is_pandas(data: object) -> bool:
    return hasattr(data, "iloc") and hasattr(data, "columns")


def sheets(data: object, location: str) -> Iterator[Sheet]:
    """The rows of a table, in parts where it comes in parts. One without rows is a sheet without rows."""
    if _is_pandas(data):
        yield _pandas(data, location)
        return
    reader = _reader(data, location)
    yield from sheets_of(reader, reader.schema, location)


def _reader(data: object, location: str) -> Any:
    """A table as record batches."""
    if isinstance(data, pa.Table):
        return data.combine_chunks().to_reader()
    if isinstance(data, pa.RecordBatch):
        return pa.RecordBatchReader.from_batches(data.schema, [data])
    if isinstance(data, pa.RecordBatchReader):
        return data
    if hasattr(data, "__arrow_c_stream__"):
        return pa.RecordBatchReader.from_stream(data)
    if hasattr(data, "to_arrow_table"):
        return data.to_arrow_table().to_reader()
    if hasattr(data, "to_table"):  # a dataset, or a scanner of one; what DuckDB calls so makes a table in the database
        return data.to_table().to_reader()
    raise DataError(f"a {type(data).__name__} is not a table", location, "give a table, or a list of rows")


def _pandas(frame: Any, location: str) -> Sheet:
    """The columns of a DataFrame, without its index; one of mixed objects is read object by object."""
    names = [str(c) for c in frame.columns]
    no_columns_twice(names, location)
    # Of what is nested without end Arrow would make an end of the process.
    if not any(_has_nested(frame[c]) for c in frame.columns):
        try:
            return sheet_of(pa.Table.from_pandas(frame, preserve_index=False).rename_columns(names), location)
        except (pa.ArrowException, UnicodeEncodeError, OverflowError):
            pass
    plain = frame.astype(object).where(frame.notna(), None)
    cells: list[Cells] = [PlainCells(plain[c].tolist()) for c in frame.columns]
    return Sheet(tuple(names), cells, len(frame), location, top=location)


def _has_nested(column: Any) -> bool:
    """Whether a column of objects has lists, or anything else in which there is something."""
    return column.dtype == object and any(
        issubclass(kind, list | tuple | dict | np.ndarray) for kind in set(map(type, column.tolist()))
    )
