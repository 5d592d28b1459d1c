"""A table for people to read, as wide as the terminal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from rich.cells import cell_len, chop_cells

from augury.core.errors import visible
from augury.core.model import show_value
from augury.sinks.answers import AnswerColumns, Answers
from augury.sinks.texts import column_texts, joined, times
from augury.sinks.values import text_array

_GAP = "  "
_IDS = 12  # how many ids of a trace are shown where the room for them has no bound
_LEAST = 12  # the room without which traces are left out
_SIGNS = {"insert": "+", "retract": "-", None: ""}


def lines(answers: Answers[Any], width: int | None = None, trace: bool = True) -> Iterator[str]:
    """The lines of a table, a header first. Long traces are cut: `e1, e2 … 2 of 1,261`."""
    rows: list[tuple[str, str, str, str]] = []
    traces: list[tuple[list[str], int]] = []
    for chunk in answers.chunks(trace=trace):
        columns = [_cells(piece, answers) for piece in chunk.pieces]
        signs, *texts = (chunk.interleaved([c[k] for c in columns]).to_pylist() for k in range(4))
        rows += zip(signs, *texts[:2], map(_cell, texts[2]), strict=True)
        if trace:
            ids, counts = (chunk.interleaved([c[k] for c in columns]).to_pylist() for k in (4, 5))
            traces += zip([[_cell(id) for id in some] for some in ids], counts, strict=True)
    header = ("", "start", "end", "event")
    first = 0 if answers.changes else 1
    widths = [max((cell_len(row[k]) for row in (header, *rows)), default=0) for k in range(4)]
    used = sum(w + len(_GAP) for w in widths[first:])
    room = None if width is None else width - used
    if width is not None and used - len(_GAP) > width:  # what is left of a line goes to the event
        widths[3] = max(_LEAST, width - (used - widths[3] - len(_GAP)))
    with_trace = trace and (room is None or room >= _LEAST)
    yield _line(header, widths, first, "trace" if with_trace else "")
    for i, row in enumerate(rows):
        event, *more = chop_cells(row[3], widths[3]) if cell_len(row[3]) > widths[3] else [row[3]]
        yield _line((*row[:3], event), widths, first, _cut(*traces[i], room) if with_trace else "")
        for rest in more:
            yield _line(("", "", "", rest), widths, first, "")


def _cell(text: str) -> str:
    """A text on one line, as a terminal shows it."""
    return text if text.isprintable() else visible(text).replace("\n", "\\n").replace("\t", "\\t")


def _line(row: tuple[str, ...], widths: list[int], first: int, trace: str) -> str:
    sign, start, end, event = row
    cells = [sign.ljust(widths[0]), start.rjust(widths[1]), end.rjust(widths[2])]
    cells += [event + " " * (widths[3] - cell_len(event)), trace]
    return _GAP.join(cells[first:]).rstrip() + "\n"


def _cells(piece: AnswerColumns, answers: Answers[Any]) -> list[Any]:
    """Sign, start, end and event as texts; then the first ids of each trace, and how many it has."""
    args: list[Any] = []
    for column in piece.columns:
        shown = column_texts(column, show_value, show_value(None), _shown)  # which writes controls as text
        args += [", ", shown] if args else [shown]
    count = len(piece)
    event = joined(f"{piece.type}(", *args, ")") if args else pa.repeat(f"{piece.type}()", count)
    signs = pa.repeat(_SIGNS[piece.op], count)
    result = [signs, times(piece.start, answers.clock), times(piece.end, answers.clock), event]
    if piece.trace is not None:
        result += [pc.list_slice(piece.trace, 0, 10 * _IDS), pc.list_value_length(piece.trace)]
    return result


def _shown(texts: Any) -> Any:
    return text_array([None if text is None else show_value(text) for text in texts.to_pylist()])


def _cut(ids: list[str], count: int, room: int | None) -> str:
    """As much of a trace as there is room for, and how many ids it has; `ids` are the first ones."""
    whole = ", ".join(ids)
    if len(ids) == count and (count <= _IDS if room is None else cell_len(whole) <= room):
        return whole
    result = f"… {count:,}" if count > 1 or room is None else f"{chop_cells(ids[0], room - 1)[0]}…"
    for shown in range(1, len(ids)):
        text = f"{', '.join(ids[:shown])} … {shown} of {count:,}"
        if shown > _IDS if room is None else cell_len(text) > room:
            break
        result = text
    return result
