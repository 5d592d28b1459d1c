"""CSV: a row for each answer, with a column for each attribute. Null is an empty cell."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pyarrow.compute as pc

from augury.core.model import Value, to_json
from augury.sinks.answers import AnswerColumns, Answers
from augury.sinks.table_columns import ColumnLayout
from augury.sinks.texts import column_texts, data_of, has_any, joined, times
from augury.sinks.values import text_array


def lines(answers: Answers[Any], trace: bool = True) -> Iterator[Any]:
    """The answers as bytes, some lines at a time, a header first."""
    layout = answers.layout
    header = [*(["op"] if answers.changes else []), "type", *(column.name for column in layout), "start", "end", "id"]
    yield (",".join(_cell(name) for name in [*header, *(["trace"] if trace else [])]) + "\n").encode()
    for chunk in answers.chunks(trace=trace):
        yield data_of(chunk.interleaved([_lines(piece, layout, answers) for piece in chunk.pieces]))


def _lines(piece: AnswerColumns, layout: list[ColumnLayout], answers: Answers[Any]) -> Any:
    cells: list[Any] = [piece.op] if piece.op else []
    cells.append(_cell(piece.type))
    for column in layout:
        values = column.of(piece)
        cells.append("" if values is None else column_texts(values, _cell, "", _quoted))
    cells += [times(piece.start, answers.clock), times(piece.end, answers.clock), _quoted(piece.ids)]
    if piece.trace is not None:
        cells.append(_quoted(pc.binary_join(piece.trace, " ")))
    return joined(*(text for cell in cells[:-1] for text in (cell, ",")), cells[-1], "\n")


def _cell(value: Value) -> str:
    plain = to_json(value)
    if plain is None:
        return ""
    text = json.dumps(plain, ensure_ascii=False) if isinstance(plain, dict | list | bool) else str(plain)
    return '"' + text.replace('"', '""') + '"' if any(c in text for c in _SPECIAL) else text


_SPECIAL = ',"\n\r'


def _quoted(texts: Any) -> Any:
    return (
        text_array([None if t is None else _cell(t) for t in texts.to_pylist()])
        if has_any(texts, *map(ord, _SPECIAL))
        else texts
    )
