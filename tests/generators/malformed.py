"""Malformed inputs, in order: a good table × what is wrong with a row × the form that it comes in × where it stands.

A `Fault` is one mistake in one row, as text, JSON, Arrow or Python would have it, and a pattern of what is said of it.
A `Form` writes rows, and knows the line at which each of them is found.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import polars
import pyarrow as pa
import pyarrow.parquet

import augury
from augury.core.clock import Clock

ROWS = 8
TYPES = {"n": "int", "f": "float", "q": "number", "s": "string", "b": "bool", "t": "timestamp", "d": "duration", "i": "iri", "o": "term", "l": "list", "a": "any"}  # fmt: skip
DATA = tuple(TYPES)
SAID = {"events": ("type", "time", "start", "end", "id", "op", "known"), "facts": ("op", "valid_from", "valid_to")}
_DECLARED = ", ".join(f"{name}: {type}" for name, type in TYPES.items())
_ARGS = ", ".join("_" for _ in TYPES)
PROGRAM = augury.compile(
    f"event reading({_DECLARED}).\nstatic setting({_DECLARED}).\n"
    f"found(N) <- reading(N, {_ARGS[3:]}).\nfitting(N) <- reading(N, {_ARGS[3:]}) WHERE setting(N, {_ARGS[3:]})."
)

Row = dict[str, Any]


def good_row(k: int, about: str, family: str) -> Row:
    """A row that is as it should be, in the words of a family of forms."""
    data: Row = {
        "n": k, "f": k + 0.5, "q": k * 1.25, "s": f"word {k}", "b": k % 2 == 0, "t": "2026-01-31T10:00:00Z", "d": "1h 30min",
        "i": "urn:x", "o": None, "l": None, "a": f"any {k}",
    }  # fmt: skip
    said: Row = {"op": "assert", "valid_from": 10 * k, "valid_to": 10 * k + 5}
    if about == "events":
        said = {"type": "reading", "time": 10 * k, "start": 10 * k - 1, "end": None, "id": f"e{k}", "op": "insert"}
        said["known"] = 10 * k + 1
    row = {**data, **said}
    if family == "text":
        return {name: "" if v is None else str(v).lower() if isinstance(v, bool) else str(v) for name, v in row.items()}
    if family in ("json", "python"):
        row["o"], row["l"] = {"functor": "loc", "args": ["N", k]}, [k, None, "x"]
    return row


@dataclass(frozen=True)
class Raw:
    """A line of a file that is no row as the others are; `{row}` in it is the good row."""

    line: Callable[[bytes], bytes]


@dataclass(frozen=True)
class Fault:
    """What is wrong with a row: cells that are replaced, by family. `said` is a pattern of the message after its place.

    `kinds` are the kinds of Arrow columns that can hold the cells; `clock` is the clock that they are wrong on.
    """

    name: str
    said: str
    cells: Mapping[str, Any] | Raw | None = None
    about: tuple[str, ...] = ("events", "facts")
    families: tuple[str, ...] = ("text", "json", "python")
    kinds: Mapping[str, Any] = field(default_factory=dict)
    forms: tuple[str, ...] | None = None
    without: tuple[str, ...] = ()  # forms that cannot hold it, or take it for something else
    clock: Clock = Clock()  # noqa: RUF009
    more: bool = False  # one of several of a kind: one form of each family has it
    alone: bool = False  # whether two of them in a file are another mistake

    def wrong(self, row: Row) -> Row | Raw:
        assert self.cells is not None
        return self.cells if isinstance(self.cells, Raw) else {**row, **self.cells}


# Forms


@dataclass(frozen=True)
class Written:
    """What is handed to the reader; its place, and the lines of its rows."""

    given: Any
    place: str
    line: Callable[[int], int]


@dataclass(frozen=True)
class Form:
    name: str
    family: str
    write: Callable[[list[Row | Raw], str, Path, Mapping[str, Any]], Written]
    lists: bool = False  # whether arguments come in a list


def columns_of(about: str) -> list[str]:
    return [*DATA, *SAID[about]]


def _in_memory(given: Any, about: str) -> Written:
    return Written(given, "the events" if about == "events" else "facts `setting`", lambda row: row + 1)


def _cells(rows: Sequence[Row | Raw], about: str) -> list[Row]:
    assert not any(isinstance(row, Raw) for row in rows)
    return rows  # type: ignore[return-value]


def _lines_of_csv(rows: list[Row | Raw], about: str, separator: str) -> list[bytes]:
    names = columns_of(about)
    found: list[bytes] = []
    for k, row in enumerate([dict(zip(names, names, strict=True)), *rows]):
        cells = good_row(k, about, "text") if isinstance(row, Raw) else row
        out = io.StringIO()
        csv.writer(out, delimiter=separator, lineterminator="").writerow([cells.get(n) for n in names])
        line = out.getvalue().encode("utf-8", "surrogatepass")
        found.append(row.line(line) if isinstance(row, Raw) else line)
    return found


def write_csv(rows: list[Row | Raw], about: str, folder: Path, kinds: Mapping[str, Any]) -> Written:
    path = folder / f"{about}.csv"
    path.write_bytes(b"\n".join(_lines_of_csv(rows, about, ",")) + b"\n")
    return Written(augury.read(path), str(path), lambda row: row + 2)


def write_odd_csv(rows: list[Row | Raw], about: str, folder: Path, kinds: Mapping[str, Any]) -> Written:
    """With `;`, a mark of its encoding, two kinds of line ends, empty lines, and a text of two lines in the second row."""
    path = folder / f"odd-{about}.csv"
    head, *lines = _lines_of_csv(rows, about, ";")
    lines = [line.replace(b";word 1;", b';"word\r\n1";') for line in lines]
    ends = [b"\r\n\r\n" if i % 3 == 1 else b"\n" if i % 3 else b"\r\n" for i in range(len(lines))]
    data = b"\xef\xbb\xbf" + head + b"\r\n\n" + b"".join(map(bytes.__add__, lines, ends))
    path.write_bytes(data)
    numbers, at = [], 3
    for line, end in zip(lines, ends, strict=True):
        numbers.append(at)
        at += line.count(b"\r\n") + end.count(b"\n")
    return Written(augury.read(path), str(path), numbers.__getitem__)


def _object(row: Row, about: str, lists: bool) -> Row:
    said = {n: v for n, v in row.items() if n not in DATA and v is not None}
    if lists:
        return {**said, "args": [row[n] for n in DATA if n in row]} | ({"args": row["args"]} if "args" in row else {})
    return said | {n: v for n, v in row.items() if n in DATA}


def _lines_of_json(rows: list[Row | Raw], about: str, lists: bool) -> list[bytes]:
    found: list[bytes] = []
    for k, row in enumerate(rows):
        cells = good_row(k, about, "json") if isinstance(row, Raw) else row
        line = json.dumps(_object(cells, about, lists)).encode()
        found.append(row.line(line) if isinstance(row, Raw) else line)
    return found


def write_jsonl(rows: list[Row | Raw], about: str, folder: Path, kinds: Mapping[str, Any], lists: bool) -> Written:
    path = folder / f"{about}{'-args' if lists else ''}.jsonl"
    path.write_bytes(b"\n".join(_lines_of_json(rows, about, lists)) + b"\n")
    return Written(augury.read(path), str(path), lambda row: row + 1)


def write_odd_jsonl(rows: list[Row | Raw], about: str, folder: Path, kinds: Mapping[str, Any]) -> Written:
    """With a mark of its encoding, two kinds of line ends, empty lines, keys in two orders, and no end of the last line."""
    path = folder / f"odd-{about}.ndjson"
    turned = [dict(reversed(r.items())) if k % 2 and isinstance(r, dict) else r for k, r in enumerate(rows)]
    lines = _lines_of_json(turned, about, False)
    path.write_bytes(b"\xef\xbb\xbf\n" + b"\n\r\n".join(lines))
    return Written(augury.read(path), str(path), lambda row: 2 * row + 2)


ARROW = {
    "n": pa.int64(), "f": pa.float64(), "q": pa.float64(), "s": pa.string(), "b": pa.bool_(), "t": pa.string(), "d": pa.string(), "i": pa.string(),
    "o": pa.null(), "l": pa.null(), "a": pa.string(), "type": pa.string(), "time": pa.int64(), "start": pa.int64(), "end": pa.int64(), "id": pa.string(),
    "op": pa.string(), "known": pa.int64(), "valid_from": pa.int64(), "valid_to": pa.int64(),
}  # fmt: skip


def arrow_table(rows: list[Row | Raw], about: str, kinds: Mapping[str, Any]) -> Any:
    columns = {}
    for name in columns_of(about):
        kind = kinds.get(name, ARROW[name])
        values = [row[name] for row in _cells(rows, about)]
        if pa.types.is_string(kind):
            raw = [None if v is None else v if isinstance(v, bytes) else str(v).encode() for v in values]
            columns[name] = pa.array(raw, pa.binary()).view(pa.string())
        else:
            columns[name] = pa.array(values, kind)
    return pa.table(columns)


def write_parquet(rows: list[Row | Raw], about: str, folder: Path, kinds: Mapping[str, Any]) -> Written:
    path = folder / f"{about}.parquet"
    pyarrow.parquet.write_table(arrow_table(rows, about, kinds), path, row_group_size=3)
    return Written(augury.read(path), str(path), lambda row: row + 1)


def write_arrow(rows: list[Row | Raw], about: str, folder: Path, kinds: Mapping[str, Any]) -> Written:
    path = folder / f"{about}.arrow"
    table = arrow_table(rows, about, kinds)
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=3)
    return Written(augury.read(path), str(path), lambda row: row + 1)


def write_pyarrow(rows: list[Row | Raw], about: str, folder: Path, kinds: Mapping[str, Any]) -> Written:
    return _in_memory(arrow_table(rows, about, kinds), about)


def write_polars(rows: list[Row | Raw], about: str, folder: Path, kinds: Mapping[str, Any]) -> Written:
    return _in_memory(polars.from_arrow(arrow_table(rows, about, kinds)), about)


def write_frame(rows: list[Row | Raw], about: str, folder: Path, kinds: Mapping[str, Any]) -> Written:
    """A frame of pandas whose columns are objects, of several types where one is wrong."""
    given = _cells(rows, about)
    names = columns_of(about)
    return _in_memory(pd.DataFrame({n: pd.Series([r.get(n) for r in given], dtype=object) for n in names}), about)


def write_dicts(rows: list[Row | Raw], about: str, folder: Path, kinds: Mapping[str, Any], lists: bool) -> Written:
    return _in_memory([_object(row, about, lists) if isinstance(row, dict) else row for row in rows], about)


FORMS = {
    form.name: form
    for form in (
        Form("csv", "text", write_csv),
        Form("odd csv", "text", write_odd_csv),
        Form("jsonl", "json", partial(write_jsonl, lists=False)),
        Form("jsonl args", "json", partial(write_jsonl, lists=True), True),
        Form("odd jsonl", "json", write_odd_jsonl),
        Form("parquet", "arrow", write_parquet),
        Form("arrow", "arrow", write_arrow),
        Form("pyarrow", "arrow", write_pyarrow),
        Form("polars", "arrow", write_polars),
        Form("frame", "python", write_frame),
        Form("dicts", "python", partial(write_dicts, lists=False)),
        Form("dicts args", "python", partial(write_dicts, lists=True), True),
    )
}


# What is wrong with a row

BIG = 2**70
LONG = "7" * 5000
DEEP = 900
CALENDAR = Clock("timestamp")
_TICK = "not a tick: '{}'; on the logical clock a time is a whole number"
_LENGTH = "not a duration: '{}'; write a number and a unit, such as 90s, 30 min, 2 days"
_MOMENT = "not a time: '{}'; write it as 2026-01-31 10:00 or 2026-01-31T10:00:00Z"


def nested(levels: int) -> list[Any]:
    found: list[Any] = []
    for _ in range(levels):
        found = [found]
    return found


def nested_dict(levels: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for _ in range(levels):
        found = {"x": found}
    return found


def circle() -> dict[str, Any]:
    found: dict[str, Any] = {}
    found["x"] = found
    return found


def _declared(column: str, but: str) -> str:
    return f"`{column}` is declared as {TYPES[column]}, but is {but}"


def _broken(column: str, why: str) -> str:
    return f"`{column}` is declared as {TYPES[column]}: {why}"


def texts(column: str, *values: str) -> list[Fault]:
    """Text that is no value of the type, wherever text may stand."""
    kinds = {column: pa.string()}
    arrow = ("arrow",) if TYPES[column] in ("timestamp", "duration") else ()
    said = {"timestamp": _broken(column, _MOMENT), "duration": _broken(column, _LENGTH)}.get(
        TYPES[column], _declared(column, "'{}'")
    )
    return [
        Fault(f"{TYPES[column]}: {v!r}", plain(said.format(v)), {column: v}, families=("text", "json", "python", *arrow), kinds=kinds, more=v != values[0]) for v in values
    ]  # fmt: skip


def objects(column: str, *values: tuple[Any, str], families: tuple[str, ...] = ("json", "python")) -> list[Fault]:
    """What is no text, and no value of the type."""
    return [
        Fault(f"{TYPES[column]}: {shown}", plain(_declared(column, shown)), {column: v}, families=families, more=i > 0)
        for i, (v, shown) in enumerate(values)
    ]


def arrow(name: str, column: str, value: Any, kind: Any, said: str, **more: Any) -> Fault:
    return Fault(name, plain(said), {column: value}, families=("arrow",), kinds={column: kind}, **more)


def plain(said: str) -> str:
    """A pattern of a text; `…` is anything."""
    return ".*".join(map(re.escape, said.split("…")))


def times(name: str, value: Any, said: str, columns: Sequence[str] = ("time", "valid_to"), **more: Any) -> list[Fault]:
    """A time that is none, of an event and of a fact."""
    return [
        Fault(f"{c}: {name}", f"`{c}`: {plain(said)}", {c: value}, ("facts" if "valid" in c else "events",), more=name != "not readable", **more)
        for c in columns
    ]  # fmt: skip


def raw(name: str, said: str, line: Callable[[bytes], bytes], *forms: str, **more: Any) -> Fault:
    return Fault(name, plain(said), Raw(line), forms=forms, **more)


def _replaced(old: str, new: str) -> Callable[[bytes], bytes]:
    return lambda line: line.replace(old.encode(), new.encode())


def _with_deep(line: bytes) -> bytes:
    """A line of JSON with a value that is nested much."""
    return line[:-1] + b', "zz": ' + b"[" * DEEP * 10 + b"]" * DEEP * 10 + b"}"


JSONL = ("jsonl", "jsonl args", "odd jsonl")
CSV = ("csv", "odd csv")
NAMED = ("jsonl", "odd jsonl", "dicts")
LISTED = ("jsonl args", "dicts args")
UTF8 = "is not UTF-8 text"
NO_PAIR = "half of a surrogate pair, which is no character"

FAULTS: list[Fault] = [
    # Cells of each type
    *texts("n", "abc", "1.5.2", "0x10", "12 "[:2] + "a"),
    Fault("int: 1.5", "`n` is declared as int, but is '?1.5'?", {"n": 1.5}, families=("text", "json", "python", "arrow"), kinds={"n": pa.float64()}),
    *objects("n", (True, "true"), ([1], "[1]"), ({"functor": "f", "args": [1]}, "f(1)")),
    Fault("int: beyond 64 bits", plain(_broken("n", f"an integer beyond 64 bits: {BIG}")), {"n": BIG}),
    Fault("int: infinite", plain(_broken("n", "an infinite number")), {"n": float("inf")}, families=("json", "python")),
    arrow("int: infinite in a table", "n", float("inf"), pa.float64(), _broken("n", "an infinite number")),
    arrow("int: beyond 64 bits in a table", "n", 2**63 + 1, pa.uint64(), _broken("n", f"an integer beyond 64 bits: {2**63 + 1}")),
    *texts("f", "abc", "1,5", "--1"),
    *objects("f", (True, "true"), ([1.5], "[1.5]")),
    Fault("float: infinite", plain(_broken("f", "an infinite number")), {"f": float("inf")}, families=("text", "json", "python", "arrow")),
    Fault("float: too great", plain(_broken("f", "an infinite number")), {"f": "1e400"}, families=("text",)),
    raw("float: too great for JSON", _broken("f", "an infinite number"), lambda line: line.replace(b'"f": ', b'"f": 1e400, "_": '), "jsonl", "odd jsonl"),
    *texts("q", "abc", "1e", "½"),
    *objects("q", (False, "false")),
    Fault("number: beyond 64 bits", plain(_broken("q", f"an integer beyond 64 bits: {-BIG}")), {"q": -BIG}),
    Fault("number: infinite", plain(_broken("q", "an infinite number")), {"q": float("-inf")}, families=("text", "json", "python", "arrow")),
    *objects("s", (5, "5"), (True, "true"), (["x"], "['x']")),
    arrow("string: not UTF-8 in a table", "s", b"caf\xe9", pa.string(), f"`s`: {UTF8}", without=("polars",)),
    arrow("any: not UTF-8 in a table", "a", b"caf\xe9", pa.string(), f"`a`: {UTF8}", without=("polars",)),
    *texts("b", "maybe", "1", "yes"),
    *objects("b", (1, "1"), (0.0, "0.0")),
    *texts("t", "yesterday", "2026-13-01", "2026-01-01T25:00", "2026-01-01T10:00+99:00", "2026-02-30 10:00", "12/31/2026"),
    *objects("t", (True, "true"), (1.5, "1.5"), ([], "[]")),
    *texts("d", "long", "5 parsecs", "-1h", "90"),
    Fault("duration: beyond 64 bits", plain(_broken("d", "a duration beyond 64 bits: '999999999999 weeks'")), {"d": "999999999999 weeks"}, families=("text", "json", "python", "arrow")),
    Fault("duration: of 5,000 digits", plain(_broken("d", "a duration beyond 64 bits: '777…")), {"d": LONG + "d"}, families=("text", "json", "python", "arrow")),
    *objects("d", (90, "90"), (True, "true")),
    *objects("i", (5, "5"), (["urn:x"], "['urn:x']")),
    *texts("o", "loc(1)", "x"),
    *objects("o", (5, "5"), ([1], "[1]")),
    *texts("l", "[1]", "x"),
    *objects("l", (5, "5"), ({"functor": "f", "args": []}, "f()")),
    Fault("any: beyond 64 bits", plain(_broken("a", f"an integer beyond 64 bits: {BIG}")), {"a": BIG}, families=("json", "python")),
    Fault("any: an object", plain(_broken("a", 'not a value: {"x": 1}')), {"a": {"x": 1}}, families=("json", "python")),
    # What is too much
    *[Fault(f"{TYPES[c]}: of 5,000 digits", plain(_broken(c, "an integer beyond 64 bits: 777…")), {c: LONG}, families=("text",)) for c in ("n", "q")],
    Fault("float: of 5,000 digits", plain(_broken("f", "an infinite number")), {"f": LONG}, families=("text",)),
    *[Fault(f"{TYPES[c]}: of 5,000 digits in Python", plain(_broken(c, "an integer beyond 64 bits")), {c: 10**4999}, families=("python",)) for c in ("n", "f", "q", "a", "s", "t")],
    *[raw(f"{TYPES[c]}: of 5,000 digits in JSON", "malformed JSON: a number of more than 4300 digits", _replaced(f'"{c}": ', f'"{c}": {LONG}, "_": '), "jsonl", "odd jsonl") for c in ("n", "a", "s")],
    raw("5,000 digits in a list", "malformed JSON: a number of more than 4300 digits", lambda line: line.replace(b'"args": [', f'"args": [{LONG}, '.encode()), "jsonl args"),
    *[Fault(f"{TYPES[c]}: nested {n} times", plain(_broken(c, "nested too deeply")), {c: nested(n)}, families=("json", "python")) for c, n in (("l", 101), ("l", DEEP), ("a", DEEP), ("n", DEEP))],
    *[Fault(f"{TYPES[c]}: nested 50,000 times", plain(_broken(c, "nested too deeply")), {c: nested(50_000)}, families=("python",)) for c in ("l", "a", "n")],
    Fault("any: objects nested 900 times", plain(_broken("a", "not a value: {…")), {"a": nested_dict(DEEP)}, families=("json", "python")),
    Fault("any: objects nested 50,000 times", plain(_broken("a", "not a value: {…")), {"a": nested_dict(50_000)}, families=("python",)),
    Fault("any: an object in itself", plain(_broken("a", "not a value: {…")), {"a": circle()}, families=("python",)),
    Fault("any: an object of Python", plain(_broken("a", "not a value: …object…")), {"a": object()}, families=("python",)),
    Fault("any: a key of Python", plain(_broken("a", "not a value: {(1, 2): 3}")), {"a": {(1, 2): 3}}, families=("python",)),
    raw("JSON nested 9,500 times", "malformed JSON: nested too deeply", _with_deep, *JSONL),
    *[raw(f"a lone surrogate: {name}", f"malformed JSON: {NO_PAIR}", _replaced(*how), *JSONL) for name, how in {
        "the first half": ('"any', '"\\ud800any'), "the second half": ('"any', '"\\uDC00any'), "in a key": ('"op"', '"x\\ud800": 1, "op"'),
        "in a term": ('"functor": "loc"', '"functor": "\\ud83dloc"'), "turned": ('"word', '"\\ude00\\ud83dword')}.items()],
    *[Fault(f"{TYPES[c]}: a lone surrogate in Python", plain(_broken(c, NO_PAIR)), {c: "x\ud800"}, families=("python",)) for c in ("s", "a", "i", "n", "t", "d", "b")],
    Fault("list: a lone surrogate inside", plain(_broken("l", NO_PAIR)), {"l": [1, ["\udfff"]]}, families=("python",)),
    Fault("id: a lone surrogate", plain(f"`id`: {NO_PAIR}"), {"id": "x\ud800"}, ("events",), families=("python",)),
    Fault("time: a lone surrogate", plain(f"`time`: {_TICK.format(chr(92) + 'ud800')}"), {"time": "\ud800"}, ("events",), families=("python",)),
    Fault("valid_from: a lone surrogate", plain(f"`valid_from`: {_TICK.format(chr(92) + 'ud800')}"), {"valid_from": "\ud800"}, ("facts",), families=("python",)),
    Fault("type: a lone surrogate", plain(f"`type`: {NO_PAIR}"), {"type": "\ud800"}, ("events",), families=("python",)),
    Fault("op: a lone surrogate", plain(f"`op`: {NO_PAIR}"), {"op": "\ud800"}, ("events",), families=("python",)),
    raw("a surrogate as bytes", UTF8, lambda line: line.replace(b"word", b"\xed\xa0\x80"), *CSV, *JSONL),
    # Times
    *times("not readable", "noon", _TICK.format("noon"), ("time", "start", "end", "known", "valid_from", "valid_to")),
    *times("a calendar time on a logical clock", "2026-01-31", _TICK.format("2026-01-31")),
    *times("not whole", 1.5, "not a time: 1.5", families=("json", "python")),
    *times("beyond 64 bits", BIG, f"a time beyond 64 bits: {BIG}"),
    *[f for t in (2**60, -(2**60), 2**63 - 1, -(2**63)) for f in times(f"of {t}", t, f"a time too far from the origin: {t}", ("time", "start", "known", "valid_from", "valid_to"), families=("text", "json", "python", "arrow"))],
    *[f for t in (2**60, -(2**63)) for f in times(f"of {t} on the calendar", t, f"a time too far from the origin: {t}", ("time", "known", "valid_to"), families=("text", "json", "python"), clock=CALENDAR)],
    *times("a moment too far", 2**61, f"a time too far from the origin: {2**61}", families=("arrow",), kinds={"time": pa.timestamp("us"), "valid_to": pa.timestamp("us")}, clock=CALENDAR),
    *times("a truth", True, "not a time: True", families=("json", "python")),
    *times("a list", [1], "not a time: [1]", families=("json", "python")),
    *times("nested", nested(DEEP), "not a time: [[…", families=("json", "python")),
    *times("an object", {"x": 1}, "not a time: {'x': 1}", families=("json", "python")),
    *times("of 5,000 digits", LONG, "a time beyond 64 bits: 777…", families=("text", "json", "python")),
    *times("of 5,000 digits in Python", 10**4999, "a time beyond 64 bits", families=("python",)),
    *times("infinite", float("inf"), "not a time: inf", families=("json", "python")),
    *times("not a calendar time", "noon", _MOMENT.format("noon"), clock=CALENDAR),
    *times("in no zone", "2026-01-31T10:00+25:00", _MOMENT.format("2026-01-31T10:00+25:00"), clock=CALENDAR),
    *times("in no zone by its name", "2026-01-31T10:00 Europe/Nowhere", _MOMENT.format("2026-01-31T10:00 Europe/Nowhere"), clock=CALENDAR),
    *times("on no day", "2026-02-30", _MOMENT.format("2026-02-30"), clock=CALENDAR),
    *[Fault(f"{c}: text in a table", plain(f"`{c}`: {_TICK.format('noon')}"), {c: "noon"}, (about,), ("arrow",), {c: pa.string()}) for about, c in (("events", "time"), ("events", "known"), ("facts", "valid_from"), ("facts", "valid_to"))],
    *[Fault(f"{c}: not whole in a table", plain(f"`{c}`: not a time: 1.5"), {c: 1.5}, (about,), ("arrow",), {c: pa.float64()}) for about, c in (("events", "time"), ("events", "end"), ("facts", "valid_from"))],
    *[Fault(f"{c}: beyond 64 bits in a table", plain(f"`{c}`: a time beyond 64 bits: {2**63 + 1}"), {c: 2**63 + 1}, (about,), ("arrow",), {c: pa.uint64()}) for about, c in (("events", "time"), ("facts", "valid_to"))],
    *[Fault(f"{c}: not UTF-8 in a table", f"`{c}`: {UTF8}", {c: b"\xff"}, (about,), ("arrow",), {c: pa.string()}, without=("polars",)) for about, c in (("events", "time"), ("events", "type"), ("events", "id"), ("facts", "valid_to"), ("facts", "op"))],
    Fault("no time", "an event has a time", {"time": None, "start": None}, ("events",), ("text", "json", "python", "arrow")),
    Fault("starts after its end", r"the event starts at 99, after its end \d+", {"start": 99, "end": 3}, ("events",), ("text", "json", "python", "arrow")),
    Fault("starts after its end on a calendar", r"the event starts at 2026-01-31T10:00:00Z, after its end 2026-01-31T09:00:00Z", {"start": "2026-01-31T10:00", "end": "2026-01-31T10:00+01:00"}, ("events",), clock=CALENDAR),
    Fault("holds at no time", "a fact with an empty interval: it ends before it begins", {"valid_from": 5, "valid_to": 5}, ("facts",), ("text", "json", "python", "arrow")),
    # What is done, and to what
    Fault("an unknown op", "unknown op 'drop'", {"op": "drop"}, families=("text", "json", "python", "arrow")),
    Fault("a revocation of nothing", "a revocation names the id of an event", {"op": "revoke", "id": None}, ("events",), ("text", "json", "python", "arrow")),
    Fault("a revocation with a wrong time", plain(f"`known`: {_TICK.format('noon')}"), {"op": "revoke", "known": "noon"}, ("events",)),
    Fault("an op that is none", "unknown op '5'", {"op": 5}, ("events",), ("json", "python")),
    Fault("an op that is no text", "unknown op 5", {"op": 5}, ("facts",), ("json", "python")),
    Fault("a nested op", plain("`op`: nested too deeply"), {"op": nested(DEEP)}, ("events",), families=("json", "python")),
    Fault("a nested op of a fact", plain("unknown op [[…"), {"op": nested(DEEP)}, ("facts",), families=("json", "python")),
    Fault("a nested id", plain("`id`: nested too deeply"), {"id": nested(DEEP)}, ("events",), families=("json", "python")),
    Fault("an id that is an object", plain('`id`: not a value: {"x": 1}'), {"id": {"x": 1}}, ("events",), families=("json", "python")),
    Fault("an id of 5,000 digits", plain("`id`: an integer beyond 64 bits"), {"id": 10**4999}, ("events",), families=("python",)),
    Fault("a retraction without a time", "a retract needs a time", {"op": "retract", "valid_from": None, "valid_to": None}, ("facts",), ("text", "json", "python", "arrow")),
    Fault("a retraction with an end", "a retract has no `valid_to`", {"op": "retract"}, ("facts",), ("text", "json", "python", "arrow")),
    # Types
    Fault("no type", "an event has a type", {"type": None}, ("events",), ("text", "json", "python", "arrow")),
    Fault("a type that is a number", "an event has a type", {"type": 5}, ("events",), ("json", "python")),
    Fault("a nested type", "an event has a type", {"type": nested(DEEP)}, ("events",), ("json", "python")),
    Fault("a misspelt type", "unknown event type `raeding`", {"type": "raeding"}, ("events",), ("text", "json", "python", "arrow")),
    # Lines that are no rows
    raw("too few cells", "3 fields where the header has …", lambda line: b"a,b,c" if b"," in line else b"a;b;c", *CSV),
    raw("one cell too few", "… fields where the header has …", lambda line: line.rpartition(b";" if b";" in line else b",")[0], *CSV),
    raw("one cell too many", "… fields where the header has …", lambda line: line + (b";" if b";" in line else b","), *CSV),
    raw("many cells too many", "… fields where the header has …", lambda line: line + (b";x" if b";" in line else b",x") * 50, *CSV),
    raw("a quote that does not end", "malformed CSV: a quoted field does not end", lambda line: b'"' + line, "csv", alone=True),
    raw("not UTF-8", UTF8, lambda line: line.replace(b"word", b"caf\xe9"), *CSV, *JSONL),
    raw("UTF-16", UTF8, lambda line: b"\xff\xfe" + line, *CSV, *JSONL),
    raw("cut off", "malformed JSON: …", lambda line: line[: len(line) // 2], *JSONL),
    raw("a comma too many", "malformed JSON: …", lambda line: line[:-1] + b",}", *JSONL),
    raw("two objects", "malformed JSON: Extra data…", lambda line: line + b" " + line, *JSONL),
    raw("two objects and a comma", "malformed JSON: Extra data…", lambda line: line + b", " + line, *JSONL),
    raw("an array around", "malformed JSON: …", lambda line: b"[" + line, *JSONL),
    raw("a comma behind", "malformed JSON: Extra data…", lambda line: line + b",", *JSONL),
    raw("single quotes", "malformed JSON: Expecting property name enclosed in double quotes…", lambda line: line.replace(b'"', b"'"), *JSONL),
    raw("a bare word", "malformed JSON: Expecting value…", lambda line: b"reading", *JSONL),
    raw("a control character", "malformed JSON: Invalid control character…", lambda line: line.replace(b"word", b"wo\x01rd"), *JSONL),
    raw("a wrong escape", "malformed JSON: Invalid \\…escape…", lambda line: line.replace(b"word", b"\\xrd"), *JSONL),
    raw("a list", "not an event: [1, 2]", lambda line: b"[1, 2]", *JSONL, about=("events",)),
    raw("a text", "not an event: 'reading'", lambda line: b'"reading"', *JSONL, about=("events",)),
    raw("a number", "not an event: 5", lambda line: b"5", *JSONL, about=("events",)),
    raw("null", "not an event: None", lambda line: b"null", *JSONL, about=("events",)),
    raw("a deep list", "not an event: [[…", lambda line: b"[" * DEEP + b"]" * DEEP, *JSONL, about=("events",)),
    raw("a short list", "`setting` is declared with 11 arguments, not 2", lambda line: b"[1, 2]", *JSONL, about=("facts",)),
    raw("one value", "`setting` is declared with 11 arguments, not 1", lambda line: b'"reading"', *JSONL, about=("facts",)),
    raw("a deep list as a fact", "`setting` is declared with 11 arguments, not 1", lambda line: b"[" * DEEP + b"]" * DEEP, *JSONL, about=("facts",)),
    raw("no attribute", "…`reading` has no `n`", lambda line: line.replace(b'"n"', b'"m"'), "jsonl", "odd jsonl", about=("events",)),
    raw("no argument", "a fact of `setting` has no `n`", lambda line: line.replace(b'"n"', b'"m"'), "jsonl", "odd jsonl", about=("facts",)),
    raw("an empty object", "an event has a type", lambda line: b"{}", *JSONL, about=("events",)),
    raw("an empty fact", "a fact of `setting` has no `n`", lambda line: b"{}", *JSONL, about=("facts",)),
    Fault("args: too few", "`(reading|setting)` is declared with 11 arguments, not 2", {"args": [1, 2]}, forms=LISTED),
    Fault("args: too many", "`(reading|setting)` is declared with 11 arguments, not 12", {"args": list(range(12))}, forms=LISTED),
    Fault("args: no list", "the args of `(reading|setting)` are not a list", {"args": {"n": 1}}, forms=LISTED),
    Fault("args: null", "the args of `(reading|setting)` are not a list", {"args": None}, forms=LISTED),
]  # fmt: skip


def holds(form: Form, fault: Fault) -> bool:
    """Whether a form can have a mistake."""
    if form.name in fault.without:
        return False
    if fault.forms is not None:
        return form.name in fault.forms
    family = [one.name for one in FORMS.values() if one.family == form.family]
    chosen = not fault.more or family[FAULTS.index(fault) % len(family)] == form.name
    return form.family in fault.families and chosen
