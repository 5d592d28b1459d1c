"""Tables of other libraries as sheets: Arrow, pandas, and what gives itself as a stream of Arrow."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from augury.errors import DataError
from augury.knowledge.sheets import ArrowSheet, Sheet


def table_sheet(given: Any, place: str) -> Sheet:
    """A table, record batch, reader or dataset of Arrow, a DataFrame of pandas, or a stream of Arrow."""
    if isinstance(given, pa.Table):
        return ArrowSheet(given, place)
    if isinstance(given, pa.RecordBatch):
        return ArrowSheet(pa.Table.from_batches([given]), place)
    if hasattr(given, "to_table"):  # a dataset, or a scanner of one
        return ArrowSheet(given.to_table(), place)
    if isinstance(given, pa.RecordBatchReader):
        return ArrowSheet(given.read_all(), place)
    if type(given).__name__ == "DataFrame" and hasattr(given, "itertuples"):
        return _pandas_sheet(given, place)
    if hasattr(given, "__arrow_c_stream__") and not hasattr(given, "to_frame"):
        return ArrowSheet(pa.RecordBatchReader.from_stream(given).read_all(), place)
    raise DataError(f"a {type(given).__name__} is not a table", place, "give a table, or a list of rows")


def _pandas_sheet(frame: Any, place: str) -> Sheet:
    """The columns of a DataFrame, without its index; one of mixed objects is read object by object."""
    names = [str(c) for c in frame.columns]
    twice = next((n for n in names if names.count(n) > 1), None)
    if twice is not None:
        raise DataError(f"the column `{twice}` stands twice", place)
    try:
        return ArrowSheet(pa.Table.from_pandas(frame, preserve_index=False).rename_columns(names), place)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
        plain = frame.astype(object).where(frame.notna(), None)
        return Sheet(names, [plain[c].tolist() for c in frame.columns], len(frame), place)
