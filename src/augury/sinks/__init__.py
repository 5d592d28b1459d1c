"""Answers as tables, JSON lines, CSV, Parquet, Arrow and SPARQL results: one file a format, all written from columns.

`Answers` is what runs, sessions and steps return, and what formats are written from. `answers_of` makes it of events.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Literal, TextIO

import pyarrow as pa

from augury.core.errors import RunError, visible
from augury.sinks import arrow, csv, jsonl, parquet, pretty, sparql_json
from augury.sinks.answers import AnswerPart, Answers, ColumnPart, Op, answers_of
from augury.sinks.destination import opened, write_text
from augury.sinks.jsonl import event_as_json
from augury.sinks.names import RESERVED, attribute_names, column_names
from augury.sinks.parquet import check_folder, make_folder
from augury.sinks.table_columns import known_output
from augury.sinks.values import ValueColumn, coded_column, column_of

Format = Literal["table", "jsonl", "csv", "parquet", "arrow", "sparql-json"]
FORMATS: tuple[Format, ...] = ("table", "jsonl", "csv", "parquet", "arrow", "sparql-json")
ENDINGS: dict[str, Format] = {
    ".jsonl": "jsonl", ".ndjson": "jsonl", ".csv": "csv", ".parquet": "parquet", ".arrow": "arrow", ".feather": "arrow",
    ".table": "table", ".txt": "table", ".srj": "sparql-json",
}  # fmt: skip

__all__ = [
    "ENDINGS",
    "FORMATS",
    "RESERVED",
    "AnswerPart",
    "Answers",
    "ColumnPart",
    "Format",
    "Op",
    "ValueColumn",
    "answers_of",
    "attribute_names",
    "check_folder",
    "coded_column",
    "column_names",
    "column_of",
    "event_as_json",
    "format_of",
    "known_output",
    "make_folder",
    "opened",
    "show_table",
    "write",
    "write_text",
]  # fmt: skip


def format_of(destination: str) -> Format | None:
    """The format that the name of an output asks for."""
    return next((format for ending, format in ENDINGS.items() if destination.endswith(ending)), None)


def write(
    answers: Answers[Any],
    format: Format,
    destination: str,
    out: TextIO,
    *,
    trace: bool = True,
    width: int | None = None,
) -> None:
    """Writes answers to a file, a folder of Parquet, or with `-` to a stream. `width` is that of a terminal."""
    if format == "parquet":
        parquet.write(answers, destination, trace)
        return
    with opened(destination, out) as file:
        if format == "arrow":
            arrow.write(answers, file, trace)
            return
        lines: Iterable[bytes]
        match format:
            case "jsonl":
                lines = jsonl.lines(answers, trace)
            case "csv":
                lines = csv.lines(answers, trace)
            case "sparql-json":
                lines = sparql_json.lines(answers)
            case "table":
                lines = (line.encode(errors="replace") for line in pretty.lines(answers, width, trace))
        screen = destination == "-" and out.isatty()  # a terminal would obey controls; JSON means the same by name
        for data in _written(lines):
            file.write(visible(bytes(data).decode(errors="replace")).encode() if screen else data)


def _written(lines: Iterable[bytes]) -> Iterator[bytes]:
    """The lines, unless they are longer than Arrow can hold."""
    try:
        yield from lines
    except pa.ArrowException as error:
        hint = "values of gigabytes cannot be written; give a limit: --limit line=64MB"
        raise RunError(f"the answers cannot be written: {str(error).splitlines()[0]}", hint) from None


def show_table(answers: Answers[Any], width: int | None = None, trace: bool = True) -> str:
    """Answers as a table to read."""
    return "".join(pretty.lines(answers, width, trace))
