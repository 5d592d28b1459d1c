"""Answers as a notebook shows them: a table of the first ones."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, repeat
from typing import TYPE_CHECKING, Any

from augury.core.errors import counted
from augury.core.model import Value, show_value
from augury.sinks.markup import readable, table
from augury.sinks.names import column_names

if TYPE_CHECKING:
    from augury.sinks.answers import AnswerColumns, Answers

_MOST = 20
_SIGNS = {"insert": "+", "retract": "−", None: ""}


def shown_table(answers: Answers[Any], nothing: str) -> str:
    """The first answers, with a column for each attribute where they are of one type, else with events as they are written."""
    if not len(answers):
        return table([nothing], [])
    zone = " (UTC)" if answers.clock.kind == "timestamp" else ""
    single = answers.plan.outputs[0] if len(answers.plan.outputs) == 1 else None
    names = ["event"] if single is None else list(column_names(answers.plan, single))
    rows: list[list[str]] = []
    for op, type, args, *times in islice(_rows(answers), _MOST):
        written = f"{type}({', '.join(show_value(arg) for arg in args)})"
        cells = [written] if single is None else [_plain(arg) for arg in args]
        rows.append([*([_SIGNS[op]] if answers.changes else []), *cells, *(readable(t, answers.clock) for t in times)])
    header = [*([""] if answers.changes else []), *names, f"start{zone}", f"end{zone}"]
    shown = f"the first {len(rows)} of {len(answers):,}" if len(rows) < len(answers) else counted(len(answers), "event")
    return table(header, rows, right=(len(header) - 2, len(header) - 1), faint=shown)


def _rows(answers: Answers[Any]) -> Iterator[tuple[Any, ...]]:
    """What is said of each answer, its type, arguments, start and end."""
    for chunk in answers.chunks(trace=False):
        rows = [row for piece in chunk.pieces for row in _of_piece(piece)]
        yield from rows if chunk.mixing is None else (rows[i] for i in chunk.mixing.tolist())


def _of_piece(piece: AnswerColumns) -> Iterator[tuple[Any, ...]]:
    columns = [column.list() for column in piece.columns]
    args: Any = zip(*columns, strict=True) if columns else repeat((), len(piece))
    said, type = repeat(piece.op, len(piece)), repeat(piece.type, len(piece))
    return zip(said, type, args, piece.start.tolist(), piece.end.tolist(), strict=True)


def _plain(value: Value) -> str:
    return value if isinstance(value, str) else show_value(value)
