"""Lines in a worker: what the reader makes of a cell, or of a value of JSON, is what its type makes of it by itself.

Lines come as Spark gives them, in parts of files; nothing here needs Spark.
"""

from __future__ import annotations

import csv
import io
import json
import os
import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("pyspark", reason="the Spark executor is an extra")

from augury import compile
from augury.algebra.plan import Attribute
from augury.core.clock import Clock, Duration, Timestamp
from augury.core.errors import DataError
from augury.core.model import Iri, Value
from augury.engine.decoding import tagged
from augury.sources import SourceFile
from augury.sources.text_cells import kinds_of_text
from augury.sources.types import KINDS, TYPES, convert, fits, from_text
from augury.spark.inputs import PATH, PROBLEM, ROW
from augury.spark.layout import Layout
from augury.spark.line_reader import LINE, START, EventColumns, Header, LineReader, Summary, summarise
from augury.spark.text_files import head_of, header_of

PREFIXES = {"wt": "http://weather.org/", "": "http://none.org/"}
MANY = 20_000 if os.environ.get("AUGURY_FUZZ") else 600

TEXTS: dict[str, list[str]] = {
    "int": ["0", "-0", "7", "+7", "007", "-12", "9223372036854775807", "9223372036854775808", "-9223372036854775808",
            "-9223372036854775809", " 5", "5\t", "\u00a05", "5\u3000", "\x005", "5\x00", "1_000", "1.0", "1e3", "", " ", "-", "+", "--5", "٣", "0x10", "5\n", "1 2"],
    "float": ["0", "1.5", "-1.5", "+1.5", "1.", ".5", ".", "-.5e3", "1e5", "1E+05", "1e-400", "1e400", "-1e400", "nan", "NaN", "-nan", "inf",
              "Infinity", "1d", "1f", "1D", "0x1p3", "1_0.5", " 2.5 ", "\x012.5", "2.5\x85", "-0.0", "0.1", "123456789.123456789", "1e", "e5", "5e5.5",
              "0.30000000000000004", "17976931348623157" + "0" * 292, "4.9e-324", "2.2250738585072011e-308", "9007199254740993", "1,5"],
    "bool": ["true", "false", "True", "FALSE", " true", "true\n", "yes", "1", "t", "tru", "truE"],
    "string": ["", "a", " a ", "'", '"', "ä\U0001f600", "null", "5"],
    "timestamp": ["2026-01-31", "2026-01-31T10:00", "2026-01-31 10:00:05", "2026-01-31 10:00:05.1", "2026-01-31T10:00:05.123456Z", "2026-01-31T10:00:05.1234567",
                  "2026-01-31T10:00:05,5", "20260131", "20260131T1000", "20260131T100005Z", "2026-W05", "2026-W05-3", "2026W053", "2026W05T10", "2026-W53-7",
                  "2025-W53-1", "2026-W00-1", "2026-W54-1", "2026-W05-8", "2026-01-31T10:00+02", "2026-01-31T10:00-0530", "2026-01-31T10:00:00+02:00:30",
                  "2026-01-31T10:00:00+02:00:30.5", "2026-01-31T10:00+23:59", "2026-01-31T10:00+24:00", "2026-01-31T10:00+00:99", "2026-01-31T10:00 +02:00",
                  "2026-01-31x10:00", "2026-01-31\U0001f60010:00", "2026-01-31T", "2026-01-31T24:00", "2026-01-31T23:60", "2026-01-31T23:59:60", "2026-02-29",
                  "2024-02-29", "2026-13-01", "0000-01-01", "0001-01-01", "9999-12-31T23:59:59.999999Z", "0001-01-01T00:00+01:00", "1969-12-31T23:59:59.999999",
                  "1582-10-10", "2026-01-31T10:00z", " 2026-01-31 10:00 ", "2026-01", "2026", "yesterday", "2026-01-3110:00", "2026-01-31T1000:05", "2026-01-31T10:0005",
                  "2026-01-31T10:00:05+0200:30", "26-01-31", "2026-1-31", "2026-01-31T1:00", "1700000000000000", "-5", "2026-01-31-05:00",
                  "2026-0131", "202601-31", "2026-W0531"],
    "duration": ["90s", "90", "1h 30min", "1.5h", "2 days", "1h30min", " 1h ", "250ms", "1.5us", "0.000001s", "0.0000001s", "1 h 2", "h", "-1h", "1H", "1 Weeks 2d",
                 "1.5.5h", "1.h", ".5h", "1year", "", " ", "1e3s", "9223372036854775807us", "9223372036854775808us", "99999999999999999999d", "0.1234567890123w",
                 "0.00000000000001w", "1.50000000000000000000000000s", "1\u00a0h", "3mins,2s"],
    "iri": ["wt:Diablo", "http://x.org/a", ":a", "wt", "wt:", "other:b", "a:b:c", "wt:a:b", "WT:x"],
    "number": ["1", "1.0", "+5", "007", "1e3", "9223372036854775808", "nan", "inf", "a", " 5 "],
    "term": ["loc(1)", '{"functor": "a", "args": []}', ""],
    "list": ["[1]", ""],
    "any": ["5", "a", ""],
}  # fmt: skip
JSON = [
    "0", "1", "-1", "1.0", "-0.0", "1.5", "1.50", "1e3", "1E400", "-1e400", "1e-400", "0.1", "9223372036854775807", "9223372036854775808", "-9223372036854775809",
    "9007199254740993", "0.30000000000000004", "123456789012345678901234567890", '"a"', '"1"', '"1.5"', '""', '"true"', "true", "false", "null", "NaN", "Infinity",
    '"2026-01-31T10:00Z"', '"1h 30min"', '"wt:Diablo"', '"\\u00e9\\n\\"\\\\"', "[1]", "{}", '{"functor": "a", "args": [1]}',
]  # fmt: skip


def kept(value: Value, type: str) -> Any:
    """A value as the layout keeps it."""
    if value is not None and KIND.get(type) == "json":
        return tagged(value)
    match value:
        case Timestamp() | Duration():
            return value.us
        case Iri():
            return value.text
        case bool():
            return int(value)
    return value


def expected(read: Any, type: str, given: Any) -> tuple[Any, bool]:
    """What the row of a type makes of something, and whether that is wrong."""
    try:
        return kept(read(given, Attribute("x", type), PREFIXES), type), False
    except DataError:
        return None, True


def mutated(chance: random.Random, text: str) -> str:
    """A text with a slip or two."""
    for _ in range(chance.choice([1, 1, 2, 3])):
        at = chance.randrange(len(text) + 1)
        letter = chance.choice(
            [*"0123456789.,:+- eETZWnhsmd\t_x", text[chance.randrange(len(text))]] if text else ["1"]
        )
        text = chance.choice(
            [text[:at] + letter + text[at:], text[:at] + text[at + 1 :], text[:at] + letter + text[at + 1 :]]
        )
    return text


# As Spark gives lines


def batches(lines: list[bytes], size: int = 3, parts: int = 1) -> Iterator[pa.RecordBatch]:
    """Lines of one file, cut into some parts, a few in each batch."""
    cut = -(-len(lines) // parts)
    for at in range(0, len(lines), size):
        some = lines[at : at + size]
        starts = [n // cut * 1000 for n in range(at, at + len(some))]
        path = pa.array(["file:/in/a"] * len(some))
        yield pa.record_batch({LINE: pa.array(some, pa.binary()), PATH: path, START: pa.array(starts, pa.int64())})


def reader_of(program: str, form: str, data: bytes, type: str | None = None) -> LineReader:
    plan = compile(program).plan
    source = SourceFile(f"a.{form}", type)
    header = header_of(source, data, plan) if form == "csv" else None
    return LineReader(plan, source, form, Clock(), header=header)


def summary_of(reader: LineReader, data: bytes, parts: int = 1) -> Summary:
    (found,) = summarise(reader, batches(data.split(b"\n"), parts=parts))
    return Summary(**json.loads(found.column("summary")[0].as_py()))


def rows_of(reader: LineReader, kinds: dict[Any, tuple[str, ...]], data: bytes, parts: int = 1) -> list[dict[str, Any]]:
    rows = EventColumns(reader, Layout(kinds), True, False, False)
    return [row for batch in rows(batches(data.split(b"\n"), parts=parts)) for row in batch.to_pylist()]


KIND = {"number": "json", "term": "json", "list": "json", "any": "json"}


def compared(type: str, form: str, texts: list[str], lines: list[str], theirs: list[tuple[Any, bool]]) -> None:
    """Compares the values of the only argument of events, one a line, with those that its type gives."""
    reader = reader_of(f"event e(x: {type}). out(X) <- e(X).", form, lines[0].encode(), "e")
    reader = replace(reader, plan=replace(reader.plan, prefixes=PREFIXES))
    kind = KIND.get(type, type)
    rows = rows_of(reader, {("e", 1): (kind,)}, "".join(lines).encode())
    slot = Layout({("e", 1): (kind,)}).columns[0]
    values = {row["time"]: row[slot] for row in rows if row[PROBLEM] is None}
    assert sum(row[PROBLEM] is not None for row in rows) == sum(wrong for _, wrong in theirs)
    for at, (text, (value, wrong)) in enumerate(zip(texts, theirs, strict=True)):
        assert (at not in values) == wrong, (type, text, value)
        assert wrong or (values[at] == value and str(values[at]) == str(value)), (type, text, values.get(at), value)


@pytest.mark.parametrize("type", list(TYPES))
def test_parts_of_csv_join_to_the_whole(type: str) -> None:
    chance = random.Random(f"text {type}")
    pool = [*TEXTS[type], *(t for texts in TEXTS.values() for t in texts)]
    texts = list(dict.fromkeys([*pool, *(mutated(chance, chance.choice(TEXTS[type])) for _ in range(MANY))]))
    for some in (texts, [t for t in texts if not expected(from_text, type, t)[1]]):
        lines = io.StringIO()
        rows = [("x", "time"), *((text, at) for at, text in enumerate(some))]
        csv.writer(lines, lineterminator="\n", quoting=csv.QUOTE_ALL).writerows(rows)
        compared(
            type, "csv", some, lines.getvalue().splitlines(keepends=True), [expected(from_text, type, t) for t in some]
        )


@pytest.mark.parametrize("type", list(TYPES))
def test_parts_of_json_lines_join_to_the_whole(type: str) -> None:
    for some in (JSON, [t for t in JSON if not expected(convert, type, json.loads(t))[1]]):
        lines = [f'{{"x": {text}, "time": {at}}}\n' for at, text in enumerate(some)]
        compared(type, "jsonl", some, lines, [expected(convert, type, json.loads(t)) for t in some])


def test_kind_of_undeclared_cells_does_not_depend_on_parts() -> None:
    """The kinds of a column, found in any parts, are those that each of its cells is of."""
    chance = random.Random("plain")
    pool = [t for texts in TEXTS.values() for t in texts if t]
    pool += [
        "-e5",
        "e5",
        ".e5",
        "1.",
        "01",
        "-",
        "-.5",
        "1e5",
        *(mutated(chance, chance.choice(pool)) for _ in range(MANY)),
    ]
    plain = [t for t in pool if t and any(fits(t, kind) for kind in list(KINDS)[:-1])]
    for _ in range(MANY):
        cells = chance.choices(chance.choice([pool, plain, ["1", "-5", "0"], ["true", "False"], ["1.5", "2"]]), k=4)
        cells = [c for c in cells if c]
        parts = [pa.array([*cells[at : at + 2], None], pa.string()) for at in range(0, len(cells), 2)]
        one, other = Summary(columns={"x": kinds_of_text(parts[:1])}), Summary(columns={"x": kinds_of_text(parts[1:])})
        one.merge(other)
        assert (
            one.columns["x"]
            == kinds_of_text(parts)
            == [kind for kind in KINDS if all(fits(cell, kind) for cell in cells)]
        ), cells


# Parts of files

SMOKE = "event smoke(place: string, level: int). out(P, L) <- smoke(P, L). other(X) <- n(X)."
KINDS_OF = {("smoke", 2): ("string", "int"), ("n", 1): ("json",)}
TABLE = b'\ntype;place;level;time\r\nsmoke;a,b;1;1\r\n\r\nsmoke;"q;""";2;2\nsmoke;c;high;3\nrain;d;1;4\n;;;5'
OBJECTS = b"""\xef\xbb\xbf{"type": "smoke", "place": "a", "level": 1, "time": 1}

{"type": "n", "args": [[1, "x"]], "time": 2}
{"type": "smoke", "place": "a", "level": 1.5, "time": 3}\r
{"type": "smoke", "args": ["\xff", 1], "time": 4}
{"type": "smoke"
{"type": "n", "args": ["x"], "time": 6}"""


@pytest.mark.parametrize("parts", [1, 2, 3, 7])
@pytest.mark.parametrize(("form", "data"), [("csv", TABLE), ("jsonl", OBJECTS)], ids=["csv", "jsonl"])
def test_parts_are_read_as_the_whole(form: str, data: bytes, parts: int) -> None:
    reader = reader_of(SMOKE, form, data)

    def found(parts: int) -> tuple[Any, ...]:
        return sorted(rows_of(reader, KINDS_OF, data, parts), key=str), summary_of(reader, data, parts)

    assert found(parts) == found(1)
    wrong = [(row[PROBLEM], row[ROW]) for row in found(parts)[0] if row[PROBLEM] is not None]
    if form == "csv":
        assert ("`level` is declared as int, but is 'high'", "smoke;c;high;3") in wrong and len(wrong) == 2
        assert found(parts)[1].counts == {"smoke/2": 2, "rain/2": 1}
    else:
        assert '{"type": "smoke"' in [row for _, row in wrong] and len(wrong) == 3
        assert found(parts)[1].arguments["n/1"] == [["json", "string"]]


def test_files_without_a_header() -> None:
    """The first line is one of data in every part."""
    data = b"a,1,1\nb,2,2\nc,3,3\nd,4,4"
    reader = reader_of(SMOKE, "csv", data, "smoke")
    assert reader.header == Header(("place", "level", "time"), ",", written=False)
    for parts in (1, 2, 4):
        assert [row["s0"] for row in rows_of(reader, KINDS_OF, data, parts)] == ["a", "b", "c", "d"]


def test_line_breaks_inside_quotes() -> None:
    """They are no matter inside of a part; where a file is cut there, it cannot be read by its parts."""
    data = b'place,level,time\n"a\r\n\nb",1,1\n"c\nd",2,2'
    reader = reader_of(SMOKE, "csv", data, "smoke")
    assert not summary_of(reader, data).broken
    assert [row["s0"] for row in rows_of(reader, KINDS_OF, data)] == ["a\r\n\nb", "c\nd"]
    assert summary_of(reader, data, 2).broken
    with pytest.raises(DataError, match="a line break inside quotes"):
        rows_of(reader, KINDS_OF, data, 2)


def test_files_with_other_columns() -> None:
    """Of a folder that grows, all files have the columns of the first."""
    reader = reader_of(SMOKE, "csv", b"place,level,time\n", "smoke")
    with pytest.raises(
        DataError, match="file:/in/a:1: has the columns level, place, time, and others have place, level, time"
    ):
        rows_of(reader, KINDS_OF, b"level,place,time\n1,a,1")


def test_long_first_line_is_read_whole(tmp_path: Any) -> None:
    """The first line of a file is looked at as a whole."""
    (tmp_path / "a.jsonl").write_bytes(b"x" * 200_000 + b"\nmore")
    assert head_of(SourceFile(str(tmp_path / "a.jsonl"))).startswith(b"x" * 200_000 + b"\n")


def test_lines_beyond_the_limit_are_malformed_rows() -> None:
    """A worker refuses what Java has read: `--limit line` is the same on Spark."""
    data = b'{"type": "a", "x": 1, "time": 1}\n{"type": "a", "x": ' + b"1" * 60 + b', "time": 2}\n'
    reader = replace(reader_of("event a(x: int).\nr(X) <- a(X).", "jsonl", data), longest_line=50)
    rows = rows_of(reader, {("a", 1): ("int",)}, data)
    assert [row[PROBLEM] is None for row in rows] == [True, False]
    assert "a line of more than 50 bytes" in rows[1][PROBLEM]
