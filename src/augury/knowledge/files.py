"""Files of facts as sheets: CSV, Parquet and Arrow."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.ipc
import pyarrow.parquet

from augury.errors import DataError
from augury.knowledge.sheets import ArrowSheet, TextSheet
from augury.sources import SourceFile, read_header


def csv_sheet(source: SourceFile, text: str) -> TextSheet | None:
    """A CSV file as columns of text; None where it has to be read line by line, to find what is wrong with it."""
    try:
        header = next(csv.reader(io.StringIO(text, newline="")))
    except csv.Error:
        return None
    names = read_header(header, source.place)
    options = pyarrow.csv.ConvertOptions(column_types=dict.fromkeys(header, pa.string()))
    quoted = pyarrow.csv.ParseOptions(newlines_in_values='"' in text)
    try:
        data = pa.BufferReader(text.encode())
        table = pyarrow.csv.read_csv(data, parse_options=quoted, convert_options=options)
    except (pa.ArrowException, UnicodeEncodeError):
        return None
    if table.column_names != header:
        return None
    return TextSheet(names, table.columns, table.num_rows, source.place)


def arrow_sheet(path: str, form: str) -> ArrowSheet:
    """A Parquet file, or a folder of them, or a file of Arrow."""
    file = Path(path)
    if not file.exists():
        raise DataError("no such file", path)
    if file.is_file() and not file.stat().st_size:
        raise DataError("is empty", path, "it needs at least a header")
    try:
        return ArrowSheet(pyarrow.parquet.read_table(path) if form == "Parquet" else _arrow(path), path)
    except (pa.ArrowException, OSError, ValueError) as error:
        article = "an" if form == "Arrow" else "a"
        raise DataError(f"is not {article} {form} file: {str(error).splitlines()[0]}", path) from None


def _arrow(path: str) -> Any:
    """A file of Arrow in either of its forms: the one that Feather is too, or the one of streams."""
    try:
        return pyarrow.feather.read_table(path)
    except pa.ArrowInvalid:
        with pa.OSFile(path) as file:
            return pyarrow.ipc.open_stream(file).read_all()
