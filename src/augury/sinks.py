"""Answers and changes as a table, JSON lines, CSV or Parquet."""

from __future__ import annotations

import csv
import errno
import io
import json
import os
import re
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal, TextIO

from rich.console import Console
from rich.table import Table

from augury.algebra.program import Plan, Predicate
from augury.algebra.terms import Var
from augury.clock import Clock
from augury.errors import DataError, RunError
from augury.model import Change, Event, Value, show_value, to_json, type_name

Format = Literal["table", "jsonl", "csv"]
FORMATS: tuple[Format | Literal["parquet"], ...] = ("table", "jsonl", "csv", "parquet")


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


# Parquet: a folder, as Spark writes it


def check_folder(destination: str, types: Iterable[str] = ()) -> None:
    """Refuses a folder that holds anything but what an earlier run has written: it is written anew."""
    path = Path(destination)
    if "://" in destination or not path.exists():
        return
    if not path.is_dir():
        raise DataError("is a file; Parquet is written to a folder", destination, "name another, or remove it")
    inside = set(types)
    for entry in sorted(path.iterdir()):
        if entry.is_dir() and entry.name in inside:
            check_folder(str(entry))
        elif not _WRITTEN.fullmatch(entry.name):
            raise DataError(f"has other files, such as {entry.name}, and would be written anew", destination, "name a new folder")  # fmt: skip


_WRITTEN = re.compile(r"\.?_SUCCESS(\.crc)?|\.?part-.*|\.?_(committed|started)_.*|_temporary")


def make_folder(destination: str) -> str:
    """A folder to write to, by its whole path: a JVM may stand elsewhere."""
    if "://" in destination:
        return destination
    try:
        Path(destination).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"cannot be written: {error.strerror}", destination) from None
    return str(Path(destination).absolute())


def write_parquet(events: Sequence[Event], destination: str, clock: Clock, plan: Plan) -> None:
    """Answers as Parquet files with their attributes by name; a folder for each type where there are several outputs."""
    try:
        import pyarrow.parquet as pq
    except ImportError:
        raise RunError("Parquet is written with PyArrow, which is not installed", "pip install pyarrow") from None
    for type in plan.outputs:
        folder = Path(destination) if len(plan.outputs) == 1 else Path(destination) / type
        table = _arrow([e for e in events if e.type == type], type, clock, plan)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for old in folder.glob("*part-*"):
                old.unlink()
            pq.write_table(table, folder / "part-00000.parquet")
        except OSError as error:
            raise DataError(f"cannot be written: {error.strerror}", destination) from None


def _arrow(events: list[Event], type: str, clock: Clock, plan: Plan) -> Any:
    import pyarrow as pa

    arities = sorted({arity for name, arity in plan.derived if name == type})
    names = attribute_names(plan, (type, arities[0])) if len(arities) == 1 else [f"arg{i + 1}" for i in range(arities[-1])]  # fmt: skip
    columns: dict[str, Any] = {}
    for at, name in enumerate(names):
        columns[name] = _arrow_column([e.args[at] if at < len(e.args) else None for e in events])
    for name, times in (("start", [e.start for e in events]), ("end", [e.end for e in events])):
        columns[name] = pa.array(times, pa.timestamp("us", "UTC") if clock.kind == "timestamp" else pa.int64())
    columns["id"] = pa.array([e.id for e in events], pa.string())
    columns["trace"] = pa.array([list(e.trace) for e in events], pa.list_(pa.string()))
    return pa.table(columns)


def _arrow_column(values: list[Value]) -> Any:
    """A column of the type that its values share; of several or of nested ones, JSON text."""
    import pyarrow as pa

    match sorted({type_name(v) for v in values if v is not None}):
        case ["timestamp"]:
            return pa.array([getattr(v, "us", None) for v in values], pa.timestamp("us", "UTC"))
        case ["duration"]:
            return pa.array([getattr(v, "us", None) for v in values], pa.duration("us"))
        case ["int"]:
            return pa.array(values, pa.int64())
        case ["float"] | ["float", "int"]:
            return pa.array([None if v is None else float(v) for v in values], pa.float64())  # type: ignore[arg-type]
        case ["bool"]:
            return pa.array(values, pa.bool_())
        case [] | ["string"] | ["iri"]:
            return pa.array([None if v is None else to_json(v) for v in values], pa.string())
    return pa.array([None if v is None else json.dumps(to_json(v), ensure_ascii=False) for v in values], pa.string())


def attribute_names(plan: Plan, type: Predicate) -> list[str]:
    """The names of the attributes of a derived type: as declared; else the variable that all its rules have there."""
    declared = plan.declared.get(type[0])
    if declared is not None and len(declared) == type[1]:
        return [a.name for a in declared]
    found: list[str] = []
    for i in range(type[1]):
        args = [rule.args[i] for rule in plan.derived[type]]
        names = {a.name.lower() if isinstance(a, Var) else "" for a in args}
        name = names.pop() if len(names) == 1 else ""
        found.append(name if name and name not in RESERVED and name not in found else f"arg{i + 1}")
    return found


RESERVED = ("start", "end", "id", "op", "trace", "type")
