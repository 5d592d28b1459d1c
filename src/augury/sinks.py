"""Answers and changes as a table, JSON lines or CSV."""

from __future__ import annotations

import csv
import errno
import io
import json
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, TextIO

from rich.console import Console
from rich.table import Table

from augury.algebra.program import Plan
from augury.clock import Clock
from augury.errors import DataError
from augury.model import Change, Event, show_value, to_json

Format = Literal["table", "jsonl", "csv"]
FORMATS: tuple[Format, ...] = ("table", "jsonl", "csv")


def event_as_json(event: Event, clock: Clock, op: str | None = None) -> dict[str, Any]:
    """The JSON form of a derived event, with `op` first where changes are asked for."""
    return {
        **({"op": op} if op else {}),
        "type": event.type,
        "args": [to_json(a) for a in event.args],
        "start": clock.show(event.start),
        "end": clock.show(event.end),
        "id": event.id,
        "trace": list(event.trace),
    }


def render(
    items: Sequence[Event | Change],
    format: Format,
    clock: Clock,
    plan: Plan,
    width: int | None = None,
    changes: bool = False,
) -> str:
    """Answers or, with `changes`, changes as text."""
    rows: list[tuple[Event, str | None]] = [(i.event, i.op) if isinstance(i, Change) else (i, None) for i in items]
    match format:
        case "jsonl":
            return "".join(json.dumps(event_as_json(e, clock, op), ensure_ascii=False) + "\n" for e, op in rows)
        case "csv":
            return _csv(rows, clock, plan, changes)
        case "table":
            return _table(rows, clock, width, changes)


def _csv(rows: list[tuple[Event, str | None]], clock: Clock, plan: Plan, changes: bool) -> str:
    """Attributes by name where all answers are of one declared type; numbered otherwise."""
    types = {e.type for e, _ in rows}
    most = max((len(e.args) for e, _ in rows), default=0)
    declared = plan.declared.get(next(iter(types))) if len(types) == 1 else None
    names = [a.name for a in declared] if declared else [f"arg{i + 1}" for i in range(most)]
    ops = ["op"] if changes else []
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*ops, "type", *names, "start", "end", "id", "trace"])
    for event, op in rows:
        cells = [_cell(a) for a in event.args] + [""] * (len(names) - len(event.args))
        writer.writerow(
            [
                *([op] if ops else []),
                event.type,
                *cells,
                clock.show(event.start),
                clock.show(event.end),
                event.id,
                " ".join(event.trace),
            ]
        )
    return text.getvalue()


def _cell(value: Any) -> Any:
    plain = to_json(value)
    if plain is None:
        return ""
    return json.dumps(plain, ensure_ascii=False) if isinstance(plain, dict | list | bool) else plain


def _table(rows: list[tuple[Event, str | None]], clock: Clock, width: int | None, changes: bool) -> str:
    lines = [
        (
            {"insert": "+", "retract": "-"}[op or "insert"],
            str(clock.show(event.start)),
            str(clock.show(event.end)),
            f"{event.type}({', '.join(show_value(a) for a in event.args)})",
            ", ".join(event.trace),
        )
        for event, op in rows
    ]
    # What is left of a terminal's line goes to the trace; where that is little, the trace is left out.
    used = sum(max((len(line[k]) for line in lines), default=0) + 2 for k in range(0 if changes else 1, 4))
    room = None if width is None else width - used
    table = Table(box=None, pad_edge=False, header_style="bold")
    if changes:
        table.add_column("")
    for name in ("start", "end"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("event", overflow="fold")
    if room is None or room >= 12:
        table.add_column("trace", style="dim", no_wrap=True, overflow="ellipsis", max_width=room)
    for line in lines:
        table.add_row(*(_plain(cell) for cell in line[0 if changes else 1 :][: len(table.columns)]))
    text = io.StringIO()
    # Drawn for a terminal's width; for a file or a pipe nothing is cut.
    Console(file=text, width=width or 10_000, force_terminal=False, highlight=False).print(table)
    return "\n".join(line.rstrip() for line in text.getvalue().splitlines()) + "\n"


def _plain(text: str) -> str:
    return text.replace("[", "\\[")


def write(text: str, destination: str, out: TextIO) -> None:
    """Writes to a stream or a file. A plain file is replaced only once the new one is whole; a device is written to."""
    if destination == "-":
        out.write(text)
        out.flush()
        return
    path = Path(destination).resolve()
    if path.is_dir():
        raise DataError("is a directory", destination)
    try:
        if path.exists() and not path.is_file():
            path.write_text(text, encoding="utf-8")
        else:
            _replace(path, text)
    except OSError as error:
        raise DataError(f"cannot be written: {error.strerror}", destination) from None


def _replace(path: Path, text: str) -> None:
    mode = path.stat().st_mode & 0o777 if path.exists() else 0o666 & ~_umask()
    if path.exists() and not os.access(path, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".part")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(temporary, mode)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
