"""SPARQL results as JSON: a binding for each answer, of the arguments by name, and of its start and end."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from augury.algebra.sparql_algebra import LANG_STRING, STRING, Blank, Literal, Triple
from augury.core.model import Iri, Value
from augury.graphs.rdf_terms import term_of
from augury.sinks.answers import AnswerColumns, Answers
from augury.sinks.table_columns import ColumnLayout
from augury.sinks.texts import column_texts, times
from augury.sinks.values import text_array

TIMES = ("start", "end")


def lines(answers: Answers[Any]) -> Iterator[bytes]:
    """The answers as bytes, some at a time. What is unbound has no binding."""
    layout = answers.layout
    head = json.dumps({"vars": [*(column.name for column in layout), *(name for name in TIMES)]}, ensure_ascii=False)
    yield f'{{"head": {head}, "results": {{"bindings": [\n'.encode()
    first = True
    for chunk in answers.chunks(trace=False):
        rows = chunk.interleaved([_rows(piece, layout, answers) for piece in chunk.pieces]).to_pylist()
        text = ",\n".join(rows)
        yield (text if first else f",\n{text}").encode() if text else b""
        first = first and not rows
    yield b"\n]}}\n"


def _rows(piece: AnswerColumns, layout: list[ColumnLayout], answers: Answers[Any]) -> object:
    cells: list[tuple[str, list[str]]] = []
    for layout_column in layout:
        values = layout_column.of(piece)
        if values is not None:
            texts = column_texts(values, _binding, "", _bindings).to_pylist()
            cells.append((json.dumps(layout_column.name), [_plain(text) for text in texts]))
    for name, column in zip(TIMES, (piece.start, piece.end), strict=True):
        said = times(column, answers.clock).to_pylist()
        kind = "dateTime" if answers.clock.kind == "timestamp" else "integer"
        datatype = f"http://www.w3.org/2001/XMLSchema#{kind}"
        cells.append((json.dumps(name), [_literal(str(t).replace(" ", "T"), datatype) for t in said]))
    return text_array(
        [
            "{" + ", ".join(f"{name}: {column[i]}" for name, column in cells if column[i]) + "}"
            for i in range(len(piece))
        ]
    )


def _binding(value: Value) -> str:
    """A value as a term of SPARQL results; the empty text for null."""
    if value is None:
        return ""
    term = term_of(value)
    match term:
        case Iri():
            return json.dumps({"type": "uri", "value": term.text}, ensure_ascii=False)
        case Blank():
            return json.dumps({"type": "bnode", "value": term.label}, ensure_ascii=False)
        case Literal():
            return _literal(term.text, term.datatype, term.language)
        case Triple():
            raise AssertionError("no value is a triple")


def _bindings(texts: Any) -> Any:
    return text_array([_binding(text) for text in texts.to_pylist()])


def _plain(text: str) -> str:
    """A number, or a truth, of a column that has no others is written as it is; it becomes a term as well."""
    return _binding(json.loads(text)) if text and not text.startswith("{") else text


def _literal(text: str, datatype: str, language: str = "") -> str:
    result = {"type": "literal", "value": text}
    if language:
        result["xml:lang"] = language
    elif datatype not in (STRING, LANG_STRING):
        result["datatype"] = datatype
    return json.dumps(result, ensure_ascii=False)
