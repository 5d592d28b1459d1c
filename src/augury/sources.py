"""Events and facts from files, standard input and Python objects: CSV and JSON lines, one reader each.

A wrong line is named with its file and number; `on_error` says whether it stops the run or is skipped and counted.
"""

from __future__ import annotations

import csv
import heapq
import io
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from augury.algebra.program import Attribute, Plan
from augury.clock import Clock, Duration, Timestamp, read_duration, read_timestamp
from augury.errors import DataError, nearest
from augury.model import Event, HistoryItem, Iri, Revocation, Term, Value, from_json, show_value
from augury.program import read_text

_RESERVED = ("type", "args", "time", "start", "end", "id", "op", "known")
_TABLE_RESERVED = ("type", "time", "start", "end", "id", "op", "known")
OnError = Literal["stop", "skip"]


@dataclass
class Skipped:
    """What was left out, and why."""

    on_error: OnError = "stop"
    problems: list[str] = field(default_factory=list)

    def handle(self, error: DataError) -> None:
        if self.on_error == "stop":
            raise error
        self.problems.append(str(error).splitlines()[0])


# Values


def convert(value: Any, attribute: Attribute, plan: Plan) -> Value:
    """A value of a declared type, from JSON or from text."""
    name, type = attribute.name, attribute.type
    plain = from_json(value)
    if plain is None or type == "any":
        return plain
    try:
        converted = _convert(plain, type, plan)
    except ValueError as error:
        raise DataError(f"`{name}` is declared as {type}: {error}") from None
    if converted is None:
        raise DataError(f"`{name}` is declared as {type}, but is {show_value(plain)}")
    return converted


def _convert(value: Value, type: str, plan: Plan) -> Value:
    match type, value:
        case ("int" | "float" | "number" | "string" | "timestamp", bool()):
            return None
        case ("int" | "number", int()) | ("float" | "number", float()) | ("string", str()) | ("bool", bool()):
            return value
        case "float", int():
            return float(value)
        case "int", float():
            return int(value) if value.is_integer() else None
        case "timestamp", Timestamp():
            return value
        case "timestamp", str():
            return Timestamp(read_timestamp(value))
        case "timestamp", int():
            return Timestamp(value)
        case "duration", Duration():
            return value
        case "duration", str():
            return Duration(read_duration(value))
        case "iri", Iri():
            return value
        case "iri", str():
            prefix, colon, local = value.partition(":")
            return Iri(plan.prefixes[prefix] + local if colon and prefix in plan.prefixes else value)
        case ("term", Term()) | ("list", tuple()):
            return value
    return None


def from_text(text: str, attribute: Attribute, plan: Plan) -> Value:
    """A cell of a CSV file, by its declared type; an empty cell is null."""
    if text == "":
        return None
    try:
        match attribute.type:
            case "int":
                return from_json(int(text))
            case "float":
                return from_json(float(text))
            case "number":
                return from_json(float(text) if any(c in text for c in ".eE") else int(text))
            case "bool":
                if text.lower() in ("true", "false"):
                    return text.lower() == "true"
                raise ValueError
            case "string" | "any":
                return text
    except ValueError:
        raise DataError(f"`{attribute.name}` is declared as {attribute.type}, but is {text!r}") from None
    return convert(text, attribute, plan)


def infer_column(cells: Iterable[str]) -> Callable[[str], Value]:
    """How to read an undeclared column: as integers, floats or booleans where every cell is one, else as text."""
    present = [c for c in cells if c != ""]
    for read in (_read_int, _read_float, _read_bool):
        try:
            for cell in present:
                read(cell)
        except ValueError:
            continue
        return lambda cell, read=read: None if cell == "" else from_json(read(cell))  # type: ignore[misc]
    return lambda cell: None if cell == "" else cell


def _read_int(text: str) -> int:
    """A plain integer; what has leading zeros is a code, not a number."""
    if not re.fullmatch(r"-?(0|[1-9]\d*)", text):
        raise ValueError(text)
    return int(text)


def _read_float(text: str) -> float:
    if not re.fullmatch(r"-?(0|[1-9]\d*)?(\.\d+)?([eE][+-]?\d+)?", text) or not any(c.isdigit() for c in text):
        raise ValueError(text)
    return float(text)


def _read_bool(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError(text)
    return text.lower() == "true"


# Events


def item_from(
    item: Event | Revocation | Mapping[str, Any], plan: Plan, clock: Clock, type: str | None = None
) -> HistoryItem:
    """An event or a revocation from a Python object or the JSON form."""
    if isinstance(item, Event):
        return replace(item, args=_converted(item.type, item.args, plan))
    if isinstance(item, Revocation):
        return item
    if not isinstance(item, Mapping):
        raise DataError(f"not an event: {item!r}", hint='an event is {"type": "wind", "args": ["l1", 12.5], "time": 3}')
    name = item.get("type", type)
    # A declared attribute of that name is an attribute: `event order(id: int)` has no event ids in its `id`.
    own = {a.name for a in plan.declared.get(str(name), ())} if "args" not in item else set()
    said = {key: item.get(key) for key in ("op", "id", "known") if key not in own}
    known = clock.read(said["known"]) if said.get("known") is not None else None
    id = "" if said.get("id") is None else str(said["id"])
    op = said.get("op") or "insert"
    if op == "revoke":
        if not id:
            raise DataError("a revocation names the id of an event", hint='{"op": "revoke", "id": "e7"}')
        return Revocation(id, known)
    if op != "insert":
        raise DataError(f"unknown op {op!r}", hint="it is insert or revoke")
    if not isinstance(name, str):
        raise DataError("an event has a type", hint='{"type": "wind", "args": ["l1", 12.5], "time": 3}')
    args = _args(item, name, plan)
    start, end = _interval(item, clock)
    return Event(name, args, start, end, id, known=known)


def _args(item: Mapping[str, Any], name: str, plan: Plan) -> tuple[Value, ...]:
    declared = plan.declared.get(name)
    if "args" in item:
        if not isinstance(item["args"], list | tuple):
            raise DataError(f"the args of `{name}` are not a list")
        return _converted(name, item["args"], plan)
    if declared is None:
        if any(key not in _RESERVED for key in item):
            raise DataError(f"`{name}` has attributes by name, but the program does not declare it",
                            hint=f"declare `event {name}(…).`, or give `args` as a list")  # fmt: skip
        return ()
    missing = [a.name for a in declared if a.name not in item]
    if missing:
        extra = [k for k in item if k not in _RESERVED and k not in {a.name for a in declared}]
        close = nearest(missing[0], extra)
        raise DataError(f"`{name}` has no `{missing[0]}`", hint=f"there is `{close}`" if close else "")
    return tuple(convert(item[a.name], a, plan) for a in declared)


def _converted(name: str, given: Sequence[Any], plan: Plan) -> tuple[Value, ...]:
    """Arguments in order, of the declared types where there are any."""
    declared = plan.declared.get(name)
    if declared is None:
        return tuple(from_json(a) for a in given)
    if len(given) != len(declared):
        raise DataError(f"`{name}` is declared with {len(declared)} arguments, not {len(given)}")
    return tuple(convert(v, a, plan) for v, a in zip(given, declared, strict=True))


def _interval(item: Mapping[str, Any], clock: Clock) -> tuple[int, int]:
    time, start, end = (item.get(k) for k in ("time", "start", "end"))
    if time is None and start is None and end is None:
        raise DataError("an event has a time", hint='give "time", or "start" and "end"')
    first = clock.read(start if start is not None else time if time is not None else end)
    last = clock.read(end if end is not None else time if time is not None else start)
    if first > last:
        raise DataError(f"the event starts at {clock.show(first)}, after its end {clock.show(last)}")
    return first, last


@dataclass(frozen=True)
class SourceFile:
    """`path` or `type=path`; `-` is standard input, whose form is guessed from its first character.

    `time` names the column, or the key, that holds the time of an event.
    """

    path: str
    type: str | None = None
    time: str = "time"

    @staticmethod
    def parse(text: str, time: str = "time") -> SourceFile:
        name, equals, path = text.partition("=")
        if equals and name.replace("_", "a").isalnum() and not Path(text).exists():
            return SourceFile(path, name, time)
        return SourceFile(text, None, time)

    @property
    def place(self) -> str:
        return "standard input" if self.path == "-" else self.path

    def read(self) -> str:
        text = (sys.stdin.read() if self.path == "-" else read_text(Path(self.path))).removeprefix("\ufeff")
        if not text.strip():
            raise DataError("is empty", self.place, "it needs at least one line of data")
        return text

    def form(self, text: str) -> Literal["csv", "jsonl"]:
        if self.path.endswith(".csv"):
            return "csv"
        if self.path.endswith((".jsonl", ".ndjson", ".json")):
            return "jsonl"
        if self.path == "-":
            return "jsonl" if text.lstrip().startswith(("{", "[")) else "csv"
        raise DataError("is neither CSV nor JSON lines by its name", self.place, "name it .csv or .jsonl")


@dataclass(frozen=True)
class Raw:
    """A line that was read, but not understood yet."""

    place: str
    item: Mapping[str, Any]


def read_raw(source: SourceFile, plan: Plan, skipped: Skipped) -> list[Raw]:
    """The lines of an event file as objects in the JSON form."""
    text = source.read()
    if source.form(text) == "csv":
        return list(_csv_events(source, text, plan, skipped))
    return list(_jsonl(source, text, skipped))


def _jsonl(source: SourceFile, text: str, skipped: Skipped) -> Iterator[Raw]:
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        place = f"{source.place}:{number}"
        try:
            item = json.loads(line)
        except json.JSONDecodeError as error:
            skipped.handle(
                DataError(f"malformed JSON: {error.msg} at column {error.colno}", place, "one JSON object a line")
            )
            continue
        if not isinstance(item, dict):
            skipped.handle(DataError(f"not an object: {line.strip()[:40]}", place, "one JSON object a line"))
            continue
        if source.time != "time" and source.time in item:
            item["time"] = item[source.time]
        yield Raw(place, {"type": source.type, **item} if source.type else item)


def table_rows(source: SourceFile, text: str, skipped: Skipped) -> tuple[list[str], list[tuple[int, list[str]]]]:
    reader = csv.reader(io.StringIO(text, newline=""))
    header = [h.strip() for h in next(reader)]
    twice = [h for h in header if header.count(h) > 1]
    if twice:
        raise DataError(f"the column `{twice[0]}` stands twice", f"{source.place}:1")
    rows: list[tuple[int, list[str]]] = []
    for row in reader:
        if not row:
            continue
        if len(row) != len(header):
            skipped.handle(
                DataError(f"{len(row)} fields where the header has {len(header)}", f"{source.place}:{reader.line_num}")
            )
            continue
        rows.append((reader.line_num, row))
    return header, rows


def _csv_events(source: SourceFile, text: str, plan: Plan, skipped: Skipped) -> Iterator[Raw]:
    header, rows = table_rows(source, text, skipped)
    if source.type is None and "type" not in header:
        raise DataError(
            "has no column `type`", f"{source.place}:1", f"name the type of its events: --events TYPE={source.path}"
        )
    if source.time not in header and not {"start", "end"} & set(header):
        close = next(
            (h for h in header if h.lower() in ("date", "datetime", "timestamp", "ts")), nearest(source.time, header)
        )
        raise DataError(f"has no column `{source.time}` (or `start` and `end`)", f"{source.place}:1",
                        f"is it `{close}`? Say --time {close}" if close else "name the column that holds the time with --time")  # fmt: skip
    if not rows:
        skipped.handle(DataError("has a header, but no events", source.place))
    aside = {*_TABLE_RESERVED, source.time} - ({"type"} if source.type is not None else set())
    data = [h for h in header if h not in aside]
    reads = {h: infer_column(row[header.index(h)] for _, row in rows) for h in data}
    for number, row in rows:
        cells = dict(zip(header, row, strict=True))
        place = f"{source.place}:{number}"
        item: dict[str, Any] = {k: cells[k] for k in _TABLE_RESERVED if cells.get(k) and k not in data}
        if cells.get(source.time):
            item["time"] = cells[source.time]
        type = source.type or cells["type"]
        item["type"] = type
        try:
            if item.get("op", "insert") == "insert":
                item.update(_csv_args(type, cells, data, reads, plan))
        except DataError as error:
            skipped.handle(DataError(error.message, place, error.hint))
            continue
        yield Raw(place, item)


def _csv_args(
    type: str, cells: dict[str, str], data: list[str], reads: Mapping[str, Callable[[str], Value]], plan: Plan
) -> dict[str, Any]:
    """Attributes by name where the type is declared; else the columns in order, as many as the program uses."""
    declared = plan.declared.get(type)
    if declared is None:
        used = [arity for name, arity in plan.event_types if name == type]
        return {"args": [reads[h](cells[h]) for h in data[: used[0] if len(used) == 1 else None]]}
    missing = [a.name for a in declared if a.name not in cells]
    if missing:
        close = nearest(missing[0], data)
        raise DataError(
            f"`{type}` has no column `{missing[0]}`",
            hint=f"there is `{close}`" if close else f"the columns are {', '.join(data)}",
        )
    return {a.name: from_text(cells[a.name], a, plan) for a in declared}


def merged(streams: list[list[Raw]]) -> list[Raw]:
    """Several sources as one stream: each keeps its order, and of their next lines the earliest comes first."""
    if len(streams) == 1:
        return streams[0]
    heads = [(_arrival(stream[0]), n, 0) for n, stream in enumerate(streams) if stream]
    heapq.heapify(heads)
    found: list[Raw] = []
    while heads:
        _, n, at = heapq.heappop(heads)
        found.append(streams[n][at])
        if at + 1 < len(streams[n]):
            heapq.heappush(heads, (_arrival(streams[n][at + 1]), n, at + 1))
    return found


def _arrival(line: Raw) -> tuple[int, str]:
    """When a line was said, as far as its text tells: times in one run are written alike. What has no time goes ahead."""
    time = next((line.item[k] for k in ("known", "time", "end", "start") if line.item.get(k) is not None), "")
    text = str(time)
    sign = text.lstrip("-").isdigit()
    return (int(text) if sign else 0, "" if sign else text)


def read_events(raw: Iterable[Raw], plan: Plan, clock: Clock, skipped: Skipped) -> list[HistoryItem]:
    """Events from raw lines; a type that the program does not know is an error: it is probably misspelt."""
    known = {name for name, _ in plan.event_types}
    arities: dict[str, set[int]] = {}
    for name, arity in plan.event_types:
        arities.setdefault(name, set()).add(arity)
    items: list[HistoryItem] = []
    for line in raw:
        try:
            item = item_from(line.item, plan, clock)
            if isinstance(item, Event):
                if item.type not in known:
                    close = nearest(item.type, known)
                    raise DataError(f"unknown event type `{item.type}`",
                                    hint=f"did you mean `{close}`?" if close else f"the program knows {', '.join(sorted(known))}")  # fmt: skip
                if len(item.args) not in arities[item.type]:
                    expected = " or ".join(str(n) for n in sorted(arities[item.type]))
                    raise DataError(
                        f"`{item.type}` has {len(item.args)} arguments; the program uses it with {expected}"
                    )
            items.append(item)
        except DataError as error:
            skipped.handle(DataError(error.message, error.place or line.place, error.hint))
    return items
