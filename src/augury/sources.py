"""Events and facts from files, standard input and Python objects: CSV, JSON lines and Parquet, one reader each.

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
from augury.errors import DataError, RunError, nearest
from augury.model import Event, HistoryItem, Iri, Revocation, Term, Value, from_json, show_value
from augury.program import read_text

_RESERVED = ("type", "args", "time", "start", "end", "id", "op", "known")
_TABLE_RESERVED = ("type", "time", "start", "end", "id", "op", "known")
OnError = Literal["stop", "skip"]
Form = Literal["csv", "jsonl", "parquet"]


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
    return read_as(next(kind for kind in CELLS if all(fits(cell, kind) for cell in present)))


def fits(cell: str, kind: str) -> bool:
    """Whether a cell of an undeclared column can be read as of a kind."""
    try:
        CELLS[kind](cell)
    except ValueError:
        return False
    return True


def read_as(kind: str) -> Callable[[str], Value]:
    """How the cells of a column of a kind are read; an empty one is null."""
    read = CELLS[kind]
    return lambda cell: None if cell == "" else from_json(read(cell))


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


CELLS: dict[str, Callable[[str], Any]] = {"int": _read_int, "float": _read_float, "bool": _read_bool, "string": str}


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


ENDINGS: dict[str, Form] = {
    ".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl", ".parquet": "parquet",
}  # fmt: skip


@dataclass(frozen=True)
class SourceFile:
    """`path` or `type=path`; `-` is standard input, whose form is guessed from its first character.

    A folder is all files of one form in it. `time` names the column, or the key, that holds the time of an event; `shown`
    is what the source is called where it is not its path.
    """

    path: str
    type: str | None = None
    time: str = "time"
    shown: str = ""

    @staticmethod
    def parse(text: str, time: str = "time") -> SourceFile:
        name, equals, path = text.partition("=")
        if equals and name.replace("_", "a").isalnum() and not Path(text).exists():
            return SourceFile(path, name, time)
        return SourceFile(text, None, time)

    @property
    def place(self) -> str:
        return self.shown or ("standard input" if self.path == "-" else self.path)

    def read(self) -> str:
        text = (sys.stdin.read() if self.path == "-" else read_text(Path(self.path))).removeprefix("\ufeff")
        if not text.strip():
            raise DataError("is empty", self.place, "it needs at least one line of data")
        return text

    def check(self) -> None:
        """Refuses a path where nothing is."""
        if self.path != "-" and "://" not in self.path and not Path(self.path).exists():
            raise DataError("no such file", self.place)
        self.files()[0].form()

    def form(self, text: str = "") -> Form:
        for ending, form in ENDINGS.items():
            if self.path.endswith(ending):
                return form
        if self.path == "-":
            return "jsonl" if text.lstrip().startswith(("{", "[")) else "csv"
        raise DataError(
            "is neither CSV, JSON lines nor Parquet by its name", self.place, "name it .csv, .jsonl or .parquet"
        )

    def files(self) -> list[SourceFile]:
        """The files of a source: itself, or those of a folder in the order of their names."""
        if self.path == "-" or not Path(self.path).is_dir():
            return [self]
        found = [p for p in sorted(Path(self.path).rglob("*")) if p.suffix in ENDINGS and p.is_file() and not _hidden(p, Path(self.path))]  # fmt: skip
        if not found:
            raise DataError(
                "is a directory without events", self.place, "it needs files named .csv, .jsonl or .parquet"
            )
        forms = {ENDINGS[p.suffix] for p in found}
        if len(forms) > 1:
            raise DataError(f"is a directory with files of several kinds: {', '.join(sorted(forms))}", self.place,
                            f"name those that you mean: --events '{self.path}/{found[0].name}'")  # fmt: skip
        return [replace(self, path=str(p), shown=f"{self.place.rstrip('/')}/{p.relative_to(self.path)}") for p in found]


def _hidden(path: Path, root: Path) -> bool:
    """Whether Spark would not see a file either: `_SUCCESS`, `.part-0.crc` and the like."""
    return any(part.startswith(("_", ".")) for part in path.relative_to(root).parts)


@dataclass(frozen=True)
class Raw:
    """A line that was read, but not understood yet."""

    place: str
    item: Mapping[str, Any]


def read_raw(source: SourceFile, plan: Plan, skipped: Skipped) -> list[Raw]:
    """The lines of an event file as objects in the JSON form."""
    files = source.files()
    tables: list[tuple[Header, str, list[tuple[int, list[str]]]]] = []
    found: list[Raw] = []
    for file in files:
        if file.path != "-" and file.form() == "parquet":
            found += parquet_rows(file, plan, skipped)
            continue
        text = file.read()
        if file.form(text) == "jsonl":
            found += _jsonl(file, text, skipped)
            continue
        header, rows = table_rows(file, text, skipped)
        tables.append((Header(file, tuple(header)), file.place, rows))
        tables[-1][0].check()
        if not rows and len(files) == 1:
            skipped.handle(DataError("has a header, but no events", file.place))
    return found + list(_csv_events(tables, plan, skipped))


def _jsonl(source: SourceFile, text: str, skipped: Skipped) -> Iterator[Raw]:
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        place = f"{source.place}:{number}"
        try:
            yield Raw(place, json_item(line, source.type, source.time))
        except DataError as error:
            skipped.handle(DataError(error.message, place, error.hint))


def json_item(line: str, type: str | None, time: str) -> dict[str, Any]:
    """A line as an object in the JSON form; `type` is that of a line that names none."""
    try:
        item = json.loads(line)
    except json.JSONDecodeError as error:
        raise DataError(f"malformed JSON: {error.msg} at column {error.colno}", hint="one JSON object a line") from None
    if not isinstance(item, dict):
        raise DataError(f"not an object: {line.strip()[:40]}", hint="one JSON object a line")
    if time != "time" and time in item:
        item["time"] = item[time]
    return {"type": type, **item} if type else item


def table_rows(source: SourceFile, text: str, skipped: Skipped) -> tuple[list[str], list[tuple[int, list[str]]]]:
    """The header of a CSV file, and its rows with their lines."""
    reader = csv.reader(io.StringIO(text, newline=""))
    rows: list[tuple[int, list[str]]] = []
    try:
        header = read_header(next(reader), source.place)
        for row in reader:
            if len(row) not in (0, len(header)):
                skipped.handle(DataError(wrong_width(row, header), f"{source.place}:{reader.line_num}"))
            elif row:
                rows.append((reader.line_num, row))
    except csv.Error as error:
        raise DataError(f"malformed CSV: {error}", f"{source.place}:{reader.line_num}") from None
    return header, rows


def read_header(cells: Sequence[str], place: str) -> list[str]:
    """The names of the columns, none of them twice."""
    header = [h.strip() for h in cells]
    twice = [h for h in header if header.count(h) > 1]
    if twice:
        raise DataError(f"the column `{twice[0]}` stands twice", f"{place}:1")
    return header


def wrong_width(row: Sequence[str], header: Sequence[str]) -> str:
    return f"{len(row)} fields where the header has {len(header)}"


Reads = Mapping[str, Callable[[Any], Value]]


@dataclass(frozen=True)
class Header:
    """The columns of a table of events, and what they mean."""

    source: SourceFile
    names: tuple[str, ...]

    def check(self) -> None:
        """Refuses a table that names neither type nor time."""
        source, names = self.source, self.names
        if source.type is None and "type" not in names:
            raise DataError(
                "has no column `type`", f"{source.place}:1", f"name the type of its events: --events TYPE={source.path}"
            )
        if source.time not in names and not {"start", "end"} & set(names):
            close = next(
                (h for h in names if h.lower() in ("date", "datetime", "timestamp", "ts")), nearest(source.time, names)
            )
            raise DataError(f"has no column `{source.time}` (or `start` and `end`)", f"{source.place}:1",
                            f"is it `{close}`? Say --time {close}" if close else "name the column that holds the time with --time")  # fmt: skip

    @property
    def aside(self) -> set[str]:
        """The names that are no data of an undeclared type."""
        return {*_TABLE_RESERVED, self.source.time} - ({"type"} if self.source.type is not None else set())

    @property
    def data(self) -> list[str]:
        return [h for h in self.names if h not in self.aside]

    def args(self, type: str, plan: Plan) -> list[str]:
        """The columns of the arguments of a type: as declared, else those of data in order, as many as the program uses."""
        declared = plan.declared.get(type)
        if declared is None:
            used = [arity for name, arity in plan.event_types if name == type]
            return self.data[: used[0] if len(used) == 1 else None]
        missing = [a.name for a in declared if a.name not in self.names]
        if missing:
            close = nearest(missing[0], self.data)
            raise DataError(
                f"`{type}` has no column `{missing[0]}`",
                hint=f"there is `{close}`" if close else f"the columns are {', '.join(self.data)}",
            )
        return [a.name for a in declared]

    def item(
        self, row: Sequence[Any], reads: Reads, plan: Plan, cell: Callable[[Any, Attribute, Plan], Value] | None = None
    ) -> dict[str, Any]:
        """A row in the JSON form; `cell` reads one by its declared type."""
        cells = dict(zip(self.names, row, strict=True))
        item: dict[str, Any] = {
            k: cells[k] for k in _TABLE_RESERVED if cells.get(k) not in (None, "") and k in self.aside
        }
        if cells.get(self.source.time) not in (None, ""):
            item["time"] = cells[self.source.time]
        type = item["type"] = self.source.type or cells["type"]
        if item.get("op", "insert") == "insert":
            names, declared = self.args(type, plan), plan.declared.get(type)
            if declared is None:
                item["args"] = [reads[h](cells[h]) for h in names]
            else:
                item.update((a.name, (cell or from_text)(cells[a.name], a, plan)) for a in declared)
        return item


def _csv_events(
    tables: list[tuple[Header, str, list[tuple[int, list[str]]]]], plan: Plan, skipped: Skipped
) -> Iterator[Raw]:
    cells: dict[str, list[str]] = {}
    for header, _, rows in tables:
        for name in header.data:
            at = header.names.index(name)
            cells.setdefault(name, []).extend(row[at] for _, row in rows)
    reads = {name: infer_column(column) for name, column in cells.items()}
    for header, place, rows in tables:
        for number, row in rows:
            try:
                yield Raw(f"{place}:{number}", header.item(row, reads, plan))
            except DataError as error:
                skipped.handle(DataError(error.message, f"{place}:{number}", error.hint))


def parquet_rows(source: SourceFile, plan: Plan, skipped: Skipped) -> Iterator[Raw]:
    """The rows of a Parquet file as objects in the JSON form."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise RunError("Parquet is read with PyArrow, which is not installed", "pip install pyarrow") from None
    if not Path(source.path).is_file():
        raise DataError("no such file", source.place)
    try:
        table = pq.read_table(source.path)
    except (pa.ArrowInvalid, OSError) as error:
        raise DataError(f"is not a Parquet file: {str(error).splitlines()[0]}", source.place) from None
    header = Header(source, tuple(table.column_names))
    header.check()
    if not table.num_rows:
        skipped.handle(DataError("has no events", source.place))
    columns = [_plain_column(table.column(name), name, source) for name in table.column_names]
    reads = dict.fromkeys(table.column_names, from_json)
    for number, row in enumerate(zip(*columns, strict=True), 1):
        place = f"{source.place}:{number}"
        try:
            yield Raw(place, header.item(row, reads, plan, convert))
        except DataError as error:
            skipped.handle(DataError(error.message, place, error.hint))


def _plain_column(column: Any, name: str, source: SourceFile) -> list[Any]:
    """A column of a Parquet file as values that an event can hold; a date is its midnight, what has no zone is UTC."""
    import pyarrow as pa

    kind = column.type
    if pa.types.is_decimal(kind) or pa.types.is_struct(kind) or pa.types.is_map(kind):
        raise DataError(f"the column `{name}` is {kind}, which no event can hold", source.place,
                        "make it a double" if pa.types.is_decimal(kind) else "select its fields")  # fmt: skip
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        column = column.cast(pa.timestamp("us", kind.tz if pa.types.is_timestamp(kind) else None), safe=False)
    return column.to_pylist()  # type: ignore[no-any-return]


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


class Known:
    """The event types of a program, and whether an event is of one of them."""

    def __init__(self, plan: Plan) -> None:
        self.arities: dict[str, set[int]] = {}
        for name, arity in plan.event_types:
            self.arities.setdefault(name, set()).add(arity)

    def check_name(self, name: str) -> None:
        """A type that the program does not know is an error: it is probably misspelt."""
        if name not in self.arities:
            close = nearest(name, self.arities)
            raise DataError(f"unknown event type `{name}`",
                            hint=f"did you mean `{close}`?" if close else f"the program knows {', '.join(sorted(self.arities))}")  # fmt: skip

    def check(self, event: Event) -> None:
        self.check_name(event.type)
        if len(event.args) not in self.arities[event.type]:
            expected = " or ".join(str(n) for n in sorted(self.arities[event.type]))
            raise DataError(f"`{event.type}` has {len(event.args)} arguments; the program uses it with {expected}")


def read_events(raw: Iterable[Raw], plan: Plan, clock: Clock, skipped: Skipped) -> list[HistoryItem]:
    """Events from raw lines."""
    known = Known(plan)
    items: list[HistoryItem] = []
    for line in raw:
        try:
            item = item_from(line.item, plan, clock)
            if isinstance(item, Event):
                known.check(item)
            items.append(item)
        except DataError as error:
            skipped.handle(DataError(error.message, error.place or line.place, error.hint))
    return items
