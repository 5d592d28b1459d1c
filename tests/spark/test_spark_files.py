"""Files on Spark: the same events, and the same words for what is wrong, as the embedded engine has for them."""

from __future__ import annotations

import bz2
import gzip
import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow.parquet import write_table
from pyspark.sql import SparkSession

from augury import compile
from augury.core.errors import AuguryError
from augury.core.model import Event, order_key, show_value
from augury.job import Job
from augury.settings import Settings, Task
from augury.sources import SourceFile
from augury.spark.job import SparkJob
from augury.spark.pipeline import Execution
from tests.support.spark_session import SPARK
from tests.support.spark_session import spark_fixture as spark_fixture

pytestmark = SPARK

TYPED = """
prefix wt: <http://w.org/>.
event e(i: int, f: float, s: string, b: bool, t: timestamp, d: duration, r: iri).
out(I, F, S, B, T, D, R) <- e(I, F, S, B, T, D, R).
"""
SMOKE = "event smoke(place: string, level: int).\nevent heat(place: string).\nout(P, L) <- smoke(P, L).\nhot(P) <- heat(P).\n"
BARE = "out(X, Y) <- a(X, Y).\nsingle(X) <- b(X).\n"
NESTED = "event m(a: number, b: any, c: term, l: list).\nout(A, B, C, L) <- m(A, B, C, L).\nloose(X, Y) <- n(X, Y).\n"
OWN = "event order(id: int, op: string, time: int).\nout(I, O, T) <- order(I, O, T).\nother(X) <- n(X).\n"


@dataclass(frozen=True)
class Case:
    """A program and its files; `events` are as the command line has them."""

    name: str
    program: str
    files: dict[str, str | bytes]
    events: tuple[str, ...]
    nulls: tuple[str, ...] = ()
    strict: bool = False


def parquet(columns: dict[str, list[Any]]) -> bytes:
    """A Parquet file."""
    data = BytesIO()
    write_table(pa.table(columns), data)
    return data.getvalue()


HEAD = "type,i,f,s,b,t,d,r,time\n"
ROW = "e,1,2.5,x,true,2026-01-01 10:00,1h 30min,wt:a,2026-01-01T00:00:00Z\n"
GOOD = [
    Case("empty files", SMOKE, {"a.parquet": b"", "b.arrow": b"", "c.csv": "", "d.jsonl": ""}, ("smoke=a.parquet", "b.arrow", "smoke=c.csv", "d.jsonl")),
    Case("typed", TYPED, {"e.csv": HEAD + ROW + "e,+7,.5,\" y,\"\"z\"\"\",FALSE,20260131T1000,1.5h,http://x,2026-01-02\ne,,nan,,,,,,2026-01-03\n"}, ("e.csv",)),
    Case("separators", SMOKE, {"a.csv": "type;place;level;time\nsmoke;a,b;3;1\n", "b.tsv": "type\tplace\tlevel\ttime\nsmoke\t\"q\"\t4\t2\n"}, ("a.csv", "b.tsv")),
    Case("newlines in quotes", SMOKE, {"a.csv": 'type,place,level,time\r\nsmoke,"one\ntwo",3,1\r\nsmoke,"5,""x""",4,2\r\n'}, ("a.csv",)),
    Case("columns in other orders", SMOKE, {"in/1.csv": "place,level,time\na,1,1\n", "in/2.csv": "time,level,place\n2,2,b\n", "in/3.csv": ""}, ("smoke=in",)),
    Case("no header", SMOKE, {"a.csv": "a,1,1\nb,2,2\n"}, ("smoke=a.csv",)),
    Case("mark of byte order", SMOKE, {"a.csv": b"\xef\xbb\xbfplace,level,time\na,1,1\n", "b.jsonl": b'\xef\xbb\xbf{"place": "b", "level": 2, "time": 2}\n'}, ("smoke=a.csv", "smoke=b.jsonl")),
    Case("packed", SMOKE, {"a.csv.gz": gzip.compress(b"place,level,time\na,1,1\n"), "b.jsonl.bz2": bz2.compress(b'{"place": "b", "level": 2, "time": 2}\n')}, ("smoke=a.csv.gz", "smoke=b.jsonl.bz2")),
    Case("patterns", SMOKE, {"in/a1.csv": "place,level,time\na,1,1\n", "in/a2.csv": "place,level,time\nb,2,2\n", "in/x.csv": "place,level,time\nc,3,3\n"}, ("smoke=in/a*.csv",)),
    Case("nulls", SMOKE, {"a.csv": "place,level,time\nNA,-,1\nb,NA,2\n"}, ("smoke=a.csv",), ("NA", "-")),
    Case("undeclared columns", BARE, {"a.csv": "type,x,y,time\na,007,1.5,1\na,12,2,2\nb,3,,3\n"}, ("a.csv",)),
    Case("undeclared numbers", BARE, {"a.csv": "x,y,time\n1,true,1\n-5,FALSE,2\n,,3\n"}, ("a=a.csv",)),
    Case("undeclared text", BARE, {"a.csv": "x,y,time\n1,1e5,1\n1.0,-,2\n"}, ("a=a.csv",)),
    Case("intervals", SMOKE, {"a.csv": "type,place,level,start,end,time\nsmoke,a,1,1,5,\nsmoke,b,2,,,3\nsmoke,c,3,2,,4\n"}, ("a.csv",)),
    Case("revoked", SMOKE, {"a.csv": "type,place,level,time,id,op\nsmoke,a,1,1,x,\nsmoke,b,2,2,y,insert\n,,,,x,revoke\n"}, ("a.csv",)),
    Case("unknown types", SMOKE, {"a.csv": "type,place,level,time\nsmoke,a,1,1\nweather,b,2,9\nweather,b,2,9\n", "b.jsonl": '{"type": "weather", "args": [1], "time": 30}\n'}, ("a.csv", "b.jsonl")),
    Case("unknown types by name", SMOKE, {"b.jsonl": '{"type": "weather", "sky": [1], "time": 30}\n{"type": "smoke", "place": "a", "level": 1, "time": 1}\n'}, ("b.jsonl",)),
    Case("another number of arguments", BARE, {"b.jsonl": '{"type": "a", "args": [1], "time": 30}\n{"type": "a", "args": [1, 2], "time": 30}\n'}, ("b.jsonl",)),
    Case("nothing but unknown types", SMOKE, {"a.csv": "type,place,level,time\nweather,a,1,1\n"}, ("a.csv",)),
    Case("empty", SMOKE, {"a.csv": "", "b.jsonl": "\n \n", "c.csv": "place,level,time\n"}, ("smoke=a.csv", "b.jsonl", "smoke=c.csv")),
    Case("derived types", BARE + "event out(x: int, y: int).\n", {"a.csv": "type,x,y,time\na,1,2,1\nout,5,6,2\n"}, ("a.csv",)),
    Case("by name", TYPED, {"e.jsonl": "".join(json.dumps(one) + "\n" for one in [
        {"type": "e", "i": 1, "f": 2.5, "s": "x", "b": True, "t": "2026-01-01 10:00", "d": "1h 30min", "r": "wt:a", "time": "2026-01-01"},
        {"type": "e", "i": 1.0, "f": 2, "s": "12", "b": False, "t": 5, "d": "90s", "r": "http://x", "time": "2026-01-02T10:00+02:00"},
        {"type": "e", "i": None, "f": float("nan"), "s": None, "b": None, "t": None, "d": None, "r": None, "time": "2026-01-03", "extra": [1]},
        {"type": "e", "args": [7, 1, "\u00e4\n\"", True, "2026-W05", "2 days", "wt:b"], "time": "2026-01-04"},
    ])}, ("e.jsonl",)),
    Case("lists", BARE, {"a.jsonl": '{"type": "a", "args": [1, "x"], "time": 1}\n{"type": "a", "args": [2, "2"], "time": 2.0}\n{"type": "b", "args": [1.0], "time": 3}\n{"type": "b", "args": [2.5], "time": "4"}\n'}, ("a.jsonl",)),
    Case("values of several types", BARE, {"a.jsonl": '{"type": "a", "args": [1, 1.0], "time": 1}\n{"type": "a", "args": ["1", 1], "time": 2}\n{"type": "a", "args": [null, true], "time": 3}\n{"type": "b", "args": [{"functor": "loc", "args": ["N", 4042, 1.0]}], "time": 4}\n'}, ("a.jsonl",)),
    Case("nested", NESTED, {"m.jsonl": '{"type": "m", "a": 1, "b": "5", "c": {"functor": "p", "args": [1, 1.0, [2]]}, "l": [1, "x", null], "time": 1}\n{"type": "m", "a": 1.50, "b": 5, "c": null, "l": [], "time": 2}\n{"type": "n", "args": [[1], 2], "time": 3}\n'}, ("m.jsonl",)),
    Case("attributes that are called like roles", OWN, {"o.jsonl": '{"type": "order", "id": 5, "op": "revoke", "time": 3}\n{"type": "n", "args": ["a"], "time": 4, "id": "n1"}\n{"op": "revoke", "id": "n1"}\n{"type": "n", "args": ["b"], "time": 5, "id": 7}\n'}, ("o.jsonl",)),
    Case("a column that is an attribute", OWN, {"o.csv": "id,op,time\n5,revoke,3\n"}, ("order=o.csv",)),
    Case("attributes that are called like roles, beside lists", OWN, {"o.jsonl": '{"type": "order", "args": [5, "x", 30], "id": "o1", "time": 3}\n{"type": "order", "id": 6, "op": "revoke", "time": 4}\n{"type": "order", "args": [7, "y", 50], "id": "o2", "op": "insert", "time": 5}\n{"op": "revoke", "id": "o1"}\n'}, ("o.jsonl",)),
    Case("intervals in JSON", BARE, {"a.jsonl": '{"type": "a", "args": [1, 2], "start": 1, "end": 4}\n{"type": "a", "args": [1, 2], "time": 3}\n{"type": "a", "args": [1, 2], "start": 2, "time": 3}\n'}, ("a.jsonl",)),
    Case("an attribute that is called like the type", "event order(type: string). out(T) <- order(T).", {"o.jsonl": '{"type": "x", "time": 3}\n'}, ("order=o.jsonl",)),
    Case("other kinds in another file", BARE, {"a.jsonl": '{"type": "a", "args": [1, 2], "time": 1}\n', "b.jsonl": '{"type": "a", "args": ["1", 2.5], "time": 2}\n', "c.csv": "x,y,time\ntrue,,3\n"}, ("a.jsonl", "b.jsonl", "a=c.csv")),
    Case("big numbers", "event a(x: int, y: float). out(X, Y) <- a(X, Y).", {"a.jsonl": '{"type": "a", "x": 9223372036854775807, "y": 0.1, "time": 1}\n{"type": "a", "x": -9223372036854775808, "y": 1e300, "time": 2}\n', "a.csv": "x,y,time\n9223372036854775807,0.30000000000000004,3\n"}, ("a.jsonl", "a=a.csv")),
]  # fmt: skip
WRONG = [
    Case("width", SMOKE, {"a.csv": "place,level,time\na,1,1\nb,2\nc,3,3,3\n"}, ("smoke=a.csv",)),
    Case("value", SMOKE, {"a.csv": "place,level,time\na,1,1\nb,high,2\n"}, ("smoke=a.csv",)),
    Case("value after a field of several lines", SMOKE, {"a.csv": 'place,level,time\n"a\nb",1,1\nb,high,2\n'}, ("smoke=a.csv",)),
    Case("no time", SMOKE, {"a.csv": "place,level,time\na,1,\n"}, ("smoke=a.csv",)),
    Case("a number among times", SMOKE, {"a.csv": "place,level,time\na,1,2026-01-01\nb,1,5\n"}, ("smoke=a.csv",)),
    Case("start after end", SMOKE, {"a.csv": "place,level,start,end\na,1,5,2\n"}, ("smoke=a.csv",)),
    Case("duration without a unit", "event a(d: duration). out(D) <- a(D).", {"a.csv": "d,time\n90,1\n"}, ("a=a.csv",)),
    Case("op", SMOKE, {"a.csv": "place,level,time,id,op\na,1,1,x,drop\n"}, ("smoke=a.csv",)),
    Case("no id to revoke", SMOKE, {"a.csv": "place,level,time,id,op\na,1,1,,revoke\n"}, ("smoke=a.csv",)),
    Case("no type", SMOKE, {"a.csv": "type,place,level,time\n,a,1,1\n"}, ("a.csv",)),
    Case("misspelt", SMOKE, {"a.csv": "type,place,level,time\nsmoke,a,1,1\nsmok,a,1,1\n"}, ("a.csv",)),
    Case("strict", SMOKE, {"a.csv": "type,place,level,time\nsmoke,a,1,1\nweather,a,1,1\n"}, ("a.csv",), strict=True),
    Case("no column", SMOKE, {"a.csv": "place,lvl,time\na,1,1\n"}, ("smoke=a.csv",)),
    Case("a column of one of two types", SMOKE, {"a.csv": "type,place,time\nheat,a,1\nsmoke,a,1\n"}, ("a.csv",)),
    Case("another number of arguments, strict", BARE, {"b.jsonl": '{"type": "a", "args": [1], "time": 30}\n'}, ("b.jsonl",), strict=True),
    Case("bytes", SMOKE, {"a.csv": b"place,level,time\na,1,1\n\xff,1,2\n"}, ("smoke=a.csv",)),
    Case("broken", SMOKE, {"a.jsonl": '{"type": "smoke", "place": "a", "level": 1, "time": 1}\n{"type": "smoke"\n'}, ("a.jsonl",)),
    Case("two on a line", SMOKE, {"a.jsonl": '{"type": "smoke", "place": "a", "level": 1, "time": 1}{"type": "heat", "place": "a", "time": 2}\n'}, ("a.jsonl",)),
    Case("closed twice", SMOKE, {"a.jsonl": '{"type": "smoke", "place": "a", "level": 1, "time": 1}}\n'}, ("a.jsonl",)),
    Case("single quotes", SMOKE, {"a.jsonl": "{'type': 'smoke', 'place': 'a', 'level': 1, 'time': 1}\n"}, ("a.jsonl",)),
    Case("a number for text", SMOKE, {"a.jsonl": '{"type": "smoke", "place": 5, "level": 1, "time": 1}\n'}, ("a.jsonl",)),
    Case("text for a number", SMOKE, {"a.jsonl": '{"type": "smoke", "place": "a", "level": "1", "time": 1}\n'}, ("a.jsonl",)),
    Case("a fraction for an integer", SMOKE, {"a.jsonl": '{"type": "smoke", "place": "a", "level": 1.5, "time": 1}\n'}, ("a.jsonl",)),
    Case("too big an integer", SMOKE, {"a.jsonl": '{"type": "smoke", "place": "a", "level": 9223372036854775808, "time": 1}\n'}, ("a.jsonl",)),
    Case("missing", SMOKE, {"a.jsonl": '{"type": "smoke", "place": "a", "time": 1}\n'}, ("a.jsonl",)),
    Case("too many arguments", SMOKE, {"a.jsonl": '{"type": "smoke", "args": ["a", 1, 2], "time": 1}\n'}, ("a.jsonl",)),
    Case("arguments that are no list", BARE, {"a.jsonl": '{"type": "a", "args": 5, "time": 1}\n'}, ("a.jsonl",)),
    Case("attributes by name, and arguments that are no list", SMOKE, {"a.jsonl": '{"type": "smoke", "place": "a", "level": 1, "args": 5, "time": 1}\n'}, ("a.jsonl",)),
    Case("by name, undeclared", BARE, {"a.jsonl": '{"type": "a", "x": 5, "y": 1, "time": 1}\n'}, ("a.jsonl",)),
    Case("not a value", BARE, {"a.jsonl": '{"type": "a", "args": [1, {"x": 1}], "time": 1}\n'}, ("a.jsonl",)),
    Case("no time in JSON", BARE, {"a.jsonl": '{"type": "a", "args": [1, 2]}\n'}, ("a.jsonl",)),
    Case("nested, declared", NESTED, {"m.jsonl": '{"type": "m", "a": 1, "b": 1, "c": 5, "l": [], "time": 1}\n'}, ("m.jsonl",)),
    Case("of the second of two files", SMOKE, {"in/1.jsonl": '{"place": "a", "level": 1, "time": 1}\n', "in/2.jsonl": '\n{"place": "a", "level": 1}\n'}, ("smoke=in",)),
]  # fmt: skip
WHOLE = [  # what is wrong with a file as a whole stops the run in any case
    Case("another number of columns", BARE, {"a.csv": "x,time\n1,1\n"}, ("a=a.csv",)),
    Case("a column twice", SMOKE, {"a.csv": "place,place,time\na,b,1\n"}, ("smoke=a.csv",)),
    Case("no time at all", SMOKE, {"a.csv": "place,level,when\na,1,1\n"}, ("smoke=a.csv",)),
    Case("no type at all", SMOKE, {"a.csv": "place,level,time\na,1,1\n"}, ("a.csv",)),
    Case("rows that name types", SMOKE, {"a.csv": "type,place,level,time\nheat,a,1,1\n"}, ("smoke=a.csv",)),
    Case("rows of Parquet that name types", SMOKE, {"a.parquet": parquet({"type": ["heat"], "place": ["a"], "level": [1], "time": [1]})}, ("smoke=a.parquet",)),
    Case("no file", SMOKE, {}, ("smoke=a.csv",)),
    Case("no such type", SMOKE, {"a.csv": "place,level,time\na,1,1\n"}, ("smok=a.csv",)),
]  # fmt: skip


@pytest.fixture(name="plain")
def plain_fixture(spark: SparkSession) -> Iterable[SparkSession]:
    """Without code generation, which costs most of the time of many small jobs."""
    settings = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
    for name, value in settings.items():
        spark.conf.set(name, value)
    yield spark
    for name in settings:
        spark.conf.unset(name)


def written(case: Case, folder: Path) -> list[SourceFile]:
    for name, content in case.files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return [SourceFile.parse(text, nulls=case.nulls) for text in case.events]


def shown(events: Iterable[Event]) -> list[Any]:
    """Events with their values as they are written: 1 and 1.0 differ."""
    rows = [(e.type, e.args, e.start, e.end, e.id, e.trace) for e in events]
    rows.sort(key=lambda row: (row[0], row[2], row[3], [order_key(a) for a in row[1]]))
    return [(type, [show_value(a) for a in args], *rest) for type, args, *rest in rows]


def embedded(case: Case, sources: list[SourceFile], on_error: str) -> tuple[Any, ...]:
    program = compile(case.program)
    try:
        job = Job(Task(program, tuple(sources), settings=Settings.of(program, on_error=on_error, strict=case.strict)))
        found = job.evaluate(engine="embedded")
    except AuguryError as error:
        return ("error", str(error))
    return (shown(found.events), job.skipped.problems, job.history.unknown)


def on_spark(spark: SparkSession, case: Case, sources: list[SourceFile], on_error: Any) -> tuple[Any, ...]:
    try:
        settings = Settings(on_error=on_error, strict=case.strict)
        task = Task(compile(case.program), tuple(sources), settings=settings)
        job = SparkJob(spark, task, execution=Execution(partitions=1))
        found = job.evaluate()
    except AuguryError as error:
        return ("error", str(error))
    return (shown(found.events), job.skipped.problems, job.unknown)


@pytest.mark.parametrize("case", GOOD, ids=lambda case: case.name)
def test_files_give_the_events_of_the_embedded_reader(
    plain: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: Case
) -> None:
    monkeypatch.chdir(tmp_path)
    sources = written(case, tmp_path)
    here = embedded(case, sources, "stop")
    assert here[0] != "error", here
    assert on_spark(plain, case, sources, "stop") == here


@pytest.mark.parametrize("case", WHOLE, ids=lambda case: case.name)
def test_files_that_are_wrong_as_a_whole(
    plain: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: Case
) -> None:
    monkeypatch.chdir(tmp_path)
    sources = written(case, tmp_path)
    here = embedded(case, sources, "stop")
    assert here[0] == "error", here
    assert on_spark(plain, case, sources, "stop") == here


@pytest.mark.parametrize("case", WRONG, ids=lambda case: case.name)
def test_files_give_the_errors_of_the_embedded_reader(
    plain: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: Case
) -> None:
    monkeypatch.chdir(tmp_path)
    sources = written(case, tmp_path)
    here = embedded(case, sources, "stop")
    assert here[0] == "error", here
    assert on_spark(plain, case, sources, "stop") == here
    assert on_spark(plain, case, sources, "skip") == embedded(case, sources, "skip")


@pytest.mark.parametrize(
    "case",
    [c for c in (*GOOD, *WRONG) if c.name in ("typed", "by name", "value", "a number for text")],
    ids=lambda case: case.name,
)
def test_files_by_url_are_read_by_spark(plain: SparkSession, tmp_path: Path, case: Case) -> None:
    """Spark alone reads a file by its URL. What is wrong with a row is said with the row."""
    here = written(case, tmp_path)
    there = [replace(source, path=(tmp_path / source.path).as_uri()) for source in here]
    found = on_spark(plain, case, there, "stop")
    if found[0] != "error":
        assert found == embedded(case, [replace(source, path=str(tmp_path / source.path)) for source in here], "stop")
    elif case.name == "value":
        assert found[1] == f"{there[0].path.replace('///', '/')}: `level` is declared as int, but is 'high' in b,high,2"
    else:
        assert found[1].endswith(
            """is declared as string, but is 5 in {"type": "smoke", "place": 5, "level": 1, "time": 1}"""
        )


PARTS = [
    Case("table", SMOKE, {"in/a.csv": "type,place,level,time\r\n" + "".join(f"smoke,p{i},{i},{i}\r\n" for i in range(50)), "in/b.csv": "time,type,place,level\n60,smoke,b,1\n"}, ("in",)),
    Case("line breaks", SMOKE, {"in/a.csv": "place,level,time\n" + "".join(f'"p\n{i},\r\n",{i},{i}\n' for i in range(50)), "in/b.csv": "place,level,time\nb,2,60\n"}, ("smoke=in",)),
    Case("objects", BARE, {"a.jsonl": "".join(f'{{"type": "a", "args": [{i}, "{i}"], "time": {i}}}\n' for i in range(50))}, ("a.jsonl",)),
    Case("undeclared", BARE, {"a.csv": "x,y,time\n" + "".join(f"{i},{'true' if i > 40 else i},{i}\n" for i in range(50))}, ("a=a.csv",)),
]  # fmt: skip


@pytest.mark.parametrize("case", PARTS, ids=lambda case: case.name)
def test_files_that_are_read_in_parts(
    plain: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: Case
) -> None:
    """A task has the lines of some bytes of a file; where these may be inside quotes, one has all lines of a file."""
    monkeypatch.chdir(tmp_path)
    sources = written(case, tmp_path)
    plain.conf.set("spark.sql.files.maxPartitionBytes", "100")
    try:
        assert on_spark(plain, case, sources, "stop") == embedded(case, sources, "stop")
    finally:
        plain.conf.unset("spark.sql.files.maxPartitionBytes")
