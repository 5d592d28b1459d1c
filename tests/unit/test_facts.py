"""Facts come alike from everywhere, by columns as by rows, and hold when what is said of them says so."""

from __future__ import annotations

import json
import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, nullcontext
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset
import pyarrow.feather
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

import augury
from augury.algebra.plan import Plan
from augury.core.clock import SECOND, Clock, Duration, Timestamp
from augury.core.errors import AuguryError, DataError
from augury.core.model import Fact, Value
from augury.knowledge import sheets
from augury.knowledge.fact_table import ALWAYS, EVER
from augury.knowledge.facts import Facts, check_facts, facts_from, read_fact_file, without_facts
from augury.knowledge.sheets import read_rows, read_sheet
from augury.knowledge.timeline import Statement, Statements, timeline
from augury.sources import Skipped, csv
from augury.sources import sheet as sheets_of_sources
from augury.sources.parquet import sheet_of
from augury.sources.types import kind_of

ASKED = "e(X) <- a(X) WHERE store(X, R)."
DECLARED = "static store(id: int, region: string).\n" + ASKED
LOGICAL, CALENDAR = Clock(), Clock("timestamp")


def plan_of(program: str = ASKED) -> Plan:
    return augury.compile(program, facts=["store"]).plan


def read(path: Path, plan: Plan | None = None, clock: Clock = LOGICAL, skipped: Skipped | None = None) -> Facts:
    return read_fact_file("store", str(path), plan or plan_of(), clock, skipped or Skipped())


def written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def args_of(facts: Facts) -> list[tuple[Value, ...]]:
    return [f.args for f in facts]


def shown(facts: Facts) -> list[str]:
    """Facts with the types of their values: 1 is not shown as 1.0 is."""
    return sorted(map(repr, facts))


# The same facts from everywhere

ROWS = [(1, "north"), (2, "south"), (3, "north"), (4, None)]
NAMES = ("id", "region")


def _table() -> pa.Table:
    return pa.table({name: list(cells) for name, cells in zip(NAMES, zip(*ROWS, strict=True), strict=True)})


def _sqlite(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE store (id INTEGER, region TEXT)")
    connection.executemany("INSERT INTO store VALUES (?, ?)", ROWS)
    connection.commit()
    return connection


def _duckdb(path: Path) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(path)
    connection.execute("CREATE TABLE store (id BIGINT, region VARCHAR)")
    connection.executemany("INSERT INTO store VALUES (?, ?)", ROWS)
    return connection


def _closed(connection: Any, path: Path) -> Path:
    connection.close()
    return path


def _csv(folder: Path) -> Path:
    lines = [",".join("" if cell is None else str(cell) for cell in row) for row in ROWS]
    return written(folder / "store.csv", "\n".join([",".join(NAMES), *lines]))


def _jsonl(folder: Path, form: Callable[[tuple[Any, ...]], Any]) -> Path:
    return written(folder / "store.jsonl", "\n".join(json.dumps(form(row)) for row in ROWS))


def _arrow(folder: Path, name: str) -> Path:
    path = folder / name
    if path.suffix == ".parquet":
        pyarrow.parquet.write_table(_table(), path)
    elif path.suffix == ".feather":
        pyarrow.feather.write_feather(_table(), str(path))
    else:
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, _table().schema) as writer:
            writer.write_table(_table())
    return path


def _folder(folder: Path) -> Path:
    (folder / "store.parquet").mkdir()
    for i in range(2):
        pyarrow.parquet.write_table(_table().slice(2 * i, 2), folder / "store.parquet" / f"part-{i}.parquet")
    return folder / "store.parquet"


SOURCES: dict[str, Callable[[Path], Any]] = {
    "tuples": lambda _: ROWS,
    "dicts": lambda _: [dict(zip(NAMES, row, strict=True)) for row in ROWS],
    "a generator": lambda _: iter(ROWS),
    "many tuples": lambda _: ROWS * 500,
    "CSV": _csv,
    "CSV by name": lambda folder: str(_csv(folder)),
    "JSON lists": lambda folder: _jsonl(folder, list),
    "JSON objects": lambda folder: _jsonl(folder, lambda row: dict(zip(NAMES, row, strict=True))),
    "JSON args": lambda folder: _jsonl(folder, lambda row: {"args": row}),
    "Parquet": lambda folder: _arrow(folder, "store.parquet"),
    "a folder of Parquet": _folder,
    "Feather": lambda folder: _arrow(folder, "store.feather"),
    "a stream of Arrow": lambda folder: _arrow(folder, "store.arrow"),
    "an Arrow table": lambda _: _table(),
    "a chunked table": lambda _: pa.concat_tables([_table().slice(0, 2), _table().slice(2)]),
    "a record batch": lambda _: _table().to_batches()[0],
    "a reader": lambda _: _table().to_reader(),
    "a dataset": lambda folder: pyarrow.dataset.dataset(_arrow(folder, "store.parquet")),
    "words of a dictionary": lambda _: _table().set_column(1, "region", _table().column(1).dictionary_encode()),
    "a view of text": lambda _: _table().set_column(1, "region", _table().column(1).cast(pa.string_view())),
    "pandas": lambda _: pd.DataFrame(ROWS, columns=list(NAMES)),
    "pandas categories": lambda _: pd.DataFrame(ROWS, columns=list(NAMES)).astype({"region": "category"}),
    "pandas objects": lambda _: pd.DataFrame(ROWS, columns=list(NAMES), dtype=object),
    "a DuckDB relation": lambda folder: _duckdb(folder / "s.duckdb").table("store"),
    "a DuckDB query": lambda folder: (_duckdb(folder / "s.duckdb"), "SELECT id, region FROM store"),
    "a SQLite query": lambda folder: (_sqlite(folder / "s.sqlite"), "SELECT id, region FROM store"),
    "a DuckDB file": lambda folder: _closed(_duckdb(folder / "s.duckdb"), folder / "s.duckdb"),
    "a SQLite file": lambda folder: _closed(_sqlite(folder / "s.sqlite"), folder / "s.sqlite"),
    "a database by another name": lambda folder: _closed(_duckdb(folder / "s.db"), folder / "s.db"),
    "a query of a file": lambda folder: (
        f"{_closed(_sqlite(folder / 's.db'), folder / 's.db')}:SELECT id, region FROM store WHERE id < 9"
    ),
}  # fmt: skip


@pytest.mark.parametrize("program", [ASKED, DECLARED], ids=["asked", "declared"])
@pytest.mark.parametrize("source", SOURCES)
def test_facts_are_the_same_from_everywhere(source: str, program: str, tmp_path: Path) -> None:
    facts = facts_from({"store": SOURCES[source](tmp_path)}, plan_of(program), Clock())
    times = len(facts) // len(ROWS)
    assert shown(facts) == sorted(repr(Fact("store", row)) for row in ROWS * times)
    assert facts.predicates == {("store", 2)} and facts.timed == set() and facts.statements == []
    assert [facts[i] for i in range(len(facts))] == list(facts) and isinstance(facts.tables[0].length, int)
    check_facts(facts, plan_of(program))
    assert without_facts(facts, plan_of(program)) == []


def test_a_run_takes_them(tmp_path: Path) -> None:
    source: Any = _csv(tmp_path)
    found = augury.run(DECLARED, [augury.Event("a", (i,), i) for i in range(6)], facts={"store": source})
    assert [e.args for e in found] == [(1,), (2,), (3,), (4,)]


def test_columns_by_name_and_in_order(tmp_path: Path) -> None:
    path = written(tmp_path / "s.csv", "region,more,id\nnorth,x,1\n")
    assert args_of(read(path, plan_of(DECLARED))) == [(1, "north")]
    table = pa.table({"region": ["north"], "more": [{"a": 1}], "id": [1]})
    assert args_of(facts_from({"store": table}, plan_of(DECLARED), Clock())) == [(1, "north")]


# Columns are read as rows are

CELLS = st.one_of(
    st.sampled_from(["", "0", "1", "-1", "-0", "007", "1.5", "1.", ".5", "-.5", "1e3", "1E400", "e5", "+1", " 1", "1_000", "nan", "inf", "0x1",
                     "true", "FALSE", "9223372036854775807", "9223372036854775808", "-9223372036854775808", "٣", "1٣", "2026-01-31", "30 min"]),
    st.integers(-(2**65), 2**65).map(str), st.floats().map(repr), st.text(max_size=4).filter(lambda t: "\x00" not in t),
)  # fmt: skip
TYPES = ("any", "int", "float", "number", "string", "bool", "timestamp", "duration", "iri")


@contextmanager
def line_by_line() -> Iterator[None]:
    """Within it, CSV is read line by line and cell by cell."""

    def fails(*_: object) -> None:
        raise DataError("not by columns")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv, "_sheet", csv._one_by_one)
        patch.setattr(sheets, "read_sheet", fails)
        patch.setattr(
            sheets_of_sources,
            "kind_of_text",
            lambda parts: kind_of(c or "" for part in parts for c in part.to_pylist()),
        )
        yield


def both(name: str, text: str, plan: Plan, clock: Clock, path: Path) -> None:
    """Compares the facts of a CSV file, and what is wrong with it, with what reading line by line gives."""
    written(path, text)
    outcomes: list[Any] = []
    for on_error in ("stop", "skip"):
        for lines in (False, True):
            skipped = Skipped(on_error)
            try:
                with line_by_line() if lines else nullcontext():
                    facts = read_fact_file(name, str(path), plan, clock, skipped)
                outcomes.append(
                    ([repr(f) for f in facts], [repr(s) for t in facts.statement_tables for s in t], skipped.problems)
                )
            except AuguryError as error:
                outcomes.append(str(error))
        assert outcomes[-2] == outcomes[-1]


def quoted(cell: str) -> str:
    return '"' + cell.replace('"', '""') + '"'


@given(st.lists(st.tuples(CELLS, CELLS), min_size=1, max_size=6), st.sampled_from(["", *TYPES]), st.booleans())
def test_cells_by_columns_as_by_rows(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str]], type: str, quotes: bool
) -> None:
    program = f"static store(x: {type}, y: {type}).\n{ASKED}" if type else ASKED
    lines = ["x,y", *(",".join(quoted(c) if quotes or set(c) & set('",\r\n') else c for c in row) for row in rows)]
    both("store", "\n".join(lines), plan_of(program), Clock(), tmp_path_factory.getbasetemp() / "cells.csv")


@given(
    st.lists(st.tuples(CELLS, CELLS, st.sampled_from(["", "assert", "retract", "x"])), min_size=1, max_size=5),
    st.sampled_from([Clock(), CALENDAR, Clock("timestamp", guessed=True)]),
)
def test_times_by_columns_as_by_rows(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str, str]], clock: Clock
) -> None:
    lines = ["id,valid_from,valid_to,op,region", *(f"1,{quoted(a)},{quoted(b)},{op},n" for a, b, op in rows)]
    both("store", "\n".join(lines), plan_of(), clock, tmp_path_factory.getbasetemp() / "times.csv")


@given(st.sampled_from(["id,region\n", "id\n", '"id","region"\n', "\n", " id , region\n", "id,id\n"]),
       st.text('a1", \n\r.\x00é', max_size=20))  # fmt: skip
def test_any_text_by_columns_as_by_rows(tmp_path_factory: pytest.TempPathFactory, header: str, text: str) -> None:
    path = tmp_path_factory.getbasetemp() / "text.csv"
    both("store", header + text, augury.compile(ASKED.replace("X, R", "X"), facts=["store"]).plan, Clock(), path)
    both("store", header + text, plan_of(), Clock(), path)


TIMES = st.datetimes(datetime(1900, 1, 1), datetime(2100, 1, 1))
SPANS = st.timedeltas(timedelta(days=-99), timedelta(days=99))
ARROWS = st.one_of(
    st.lists(st.one_of(st.none(), st.integers(0, 2**64 - 1)), max_size=5).map(lambda v: pa.array(v, pa.uint64())),
    st.lists(st.one_of(st.none(), st.integers(-(2**31), 2**31 - 1)), max_size=5).map(lambda v: pa.array(v, pa.int32())),
    st.lists(st.one_of(st.none(), st.floats()), max_size=5).map(lambda v: pa.array(v, pa.float64())),
    st.lists(st.one_of(st.none(), st.floats(width=32)), max_size=5).map(lambda v: pa.array(v, pa.float32())),
    st.lists(st.one_of(st.none(), st.booleans()), max_size=5).map(lambda v: pa.array(v, pa.bool_())),
    st.lists(st.one_of(st.none(), st.text(max_size=3)), max_size=5).map(lambda v: pa.array(v, pa.string())),
    st.lists(st.one_of(st.none(), st.text(max_size=3)), max_size=5).map(lambda v: pa.array(v, pa.large_string()).dictionary_encode()),
    st.lists(st.one_of(st.none(), TIMES), max_size=5).map(lambda v: pa.array(v, pa.timestamp("us"))),
    st.lists(st.one_of(st.none(), TIMES), max_size=5).map(lambda v: pa.array(v, pa.timestamp("us", "Europe/Berlin"))),
    st.lists(st.one_of(st.none(), SPANS), max_size=5).map(lambda v: pa.array(v, pa.duration("us"))),
    st.lists(st.none(), max_size=5).map(lambda v: pa.array(v, pa.null())),
    st.lists(st.one_of(st.none(), st.lists(st.integers(0, 3), max_size=2)), max_size=5).map(lambda v: pa.array(v, pa.list_(pa.int64()))),
)  # fmt: skip


@given(ARROWS, st.sampled_from(["", *TYPES, "list", "term"]))
def test_arrow_by_columns_as_by_rows(column: Any, type: str) -> None:
    program = (f"static store(x: {type}).\n" if type else "") + ASKED.replace("X, R", "X")
    plan = augury.compile(program, facts=["store"]).plan
    sheet = sheet_of(pa.table({"x": column}), "t")
    expected, wrong = [], []
    for number, value in enumerate(column.to_pylist(), 1):
        try:
            expected += [repr(f) for f in facts_from({"store": [(value,)]}, plan, Clock())]
        except DataError as error:
            wrong.append(f"t:{number}: {error.message}".splitlines()[0])
    skipped = Skipped("skip")
    assert [repr(f) for f in Facts(read_rows("store", sheet, plan, Clock(), skipped))] == expected
    assert skipped.problems == wrong
    try:
        assert [repr(f) for f in Facts([read_sheet("store", sheet, plan, Clock())])] == expected
        assert not wrong
    except DataError:
        assert wrong


# Types of Arrow


def of_arrow(array: Any, type: str = "") -> list[Value]:
    program = (f"static store(x: {type}).\n" if type else "") + ASKED.replace("X, R", "X")
    plan = augury.compile(program, facts=["store"]).plan
    return [f.args[0] for f in facts_from({"store": pa.table({"x": array})}, plan, Clock())]


NOON = datetime(2026, 1, 31, 12)
HELD: list[tuple[Any, list[Value]]] = [
    (pa.array([1, None, 3], pa.int8()), [1, None, 3]),
    (pa.array([2**63 - 1], pa.uint64()), [2**63 - 1]),
    (pa.array([1.5, None, float("nan"), -0.0]), [1.5, None, None, 0.0]),
    (pa.array([1.5, None], pa.float16()) if hasattr(pa, "float16") else pa.array([1.5, None]), [1.5, None]),
    (pa.array([True, None, False]), [True, None, False]),
    (pa.array([True, False]), [True, False]),
    (pa.array(["x", None, ""]), ["x", None, ""]),
    (pa.array(["x", None, "x"]).dictionary_encode(), ["x", None, "x"]),
    (pa.array([5, None, 5]).dictionary_encode(), [5, None, 5]),
    (pa.array([None, None]), [None, None]),
    (pa.array([NOON], pa.timestamp("s")), [Timestamp(1769860800 * SECOND)]),
    (pa.array([NOON.replace(tzinfo=UTC), None], pa.timestamp("ns", "America/New_York")), [Timestamp(1769860800 * SECOND), None]),
    (pa.array([date(1970, 1, 2)]), [Timestamp(86400 * SECOND)]),
    (pa.array([timedelta(minutes=1), None], pa.duration("ns")), [Duration(60 * SECOND), None]),
    (pa.array([[1, 2], [], None]), [(1, 2), (), None]),
]  # fmt: skip


@pytest.mark.parametrize(("array", "values"), HELD, ids=[str(a.type) for a, _ in HELD])
def test_arrow_columns_become_fact_values(array: Any, values: list[Value]) -> None:
    assert list(map(repr, of_arrow(array))) == list(map(repr, values))
    parts = pa.chunked_array([array.slice(0, 1), array.slice(1)])
    assert list(map(repr, of_arrow(parts))) == list(map(repr, values))


@pytest.mark.parametrize("type", ["", *TYPES])
def test_empty_tables_have_no_facts(type: str) -> None:
    for kind in (pa.int64(), pa.float64(), pa.bool_(), pa.string(), pa.timestamp("us"), pa.null(), pa.dictionary(pa.int8(), pa.string()), pa.list_(pa.int8())):  # fmt: skip
        assert of_arrow(pa.chunked_array([], kind), type) == of_arrow(pa.array([], kind), type) == []


def test_declared_types_convert_facts() -> None:
    assert list(map(repr, of_arrow(pa.array([1, 2]), "float"))) == ["1.0", "2.0"]
    assert list(map(repr, of_arrow(pa.array([1.0, None]), "int"))) == ["1", "None"]
    assert of_arrow(pa.array(["2026-01-31 12:00"]), "timestamp") == [Timestamp(1769860800 * SECOND)]
    assert of_arrow(pa.array([7]), "timestamp") == [Timestamp(7)]
    assert of_arrow(pa.array(["30 min"]), "duration") == [Duration(1800 * SECOND)]


# Validity and changes


def test_validity_by_the_clock(tmp_path: Path) -> None:
    path = written(tmp_path / "s.csv", "id,region,valid_from,valid_to\n1,n,2,\n2,n,,5\n3,n,,\n")
    facts = read(path)
    assert [(f.since, f.until) for f in facts] == [(2, None), (None, 5), (None, None)]
    assert facts.timed == {"store"} and facts.tables[0].since.tolist() == [2, ALWAYS, ALWAYS]
    path = written(tmp_path / "s.csv", "id,region,time\n1,n,1970-01-01 00:00:01\n")
    assert [f.since for f in read(path, clock=Clock("timestamp", guessed=True))] == [SECOND]
    table = pa.table({"id": [1], "region": ["n"], "valid_from": [datetime(1970, 1, 1, 0, 0, 1)], "valid_to": [date(1970, 1, 2)]})  # fmt: skip
    found = facts_from({"store": table}, plan_of(), Clock("timestamp", guessed=True))
    assert [(f.since, f.until) for f in found] == [(SECOND, 86400 * SECOND)]
    empty = written(tmp_path / "s.csv", "id,region,valid_from,valid_to\n1,n,,\n")
    assert read(empty).timed == set() and read(empty).tables[0].since is None


CHANGES = [("assert", 2), ("retract", 5), ("", 7), ("retract", 9), ("assert", 9)]


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet", "sqlite", "dicts"])
def test_fact_changes_are_read_from_op_column(form: str, tmp_path: Path) -> None:
    rows = [{"op": op, "time": time, "id": 1, "region": "n"} for op, time in CHANGES]
    path = tmp_path / f"s.{form}"
    source: Any = path
    match form:
        case "csv":
            written(path, "op,time,id,region\n" + "\n".join(f"{op},{time},1,n" for op, time in CHANGES))
        case "jsonl":
            written(path, "\n".join(map(json.dumps, rows)))
        case "parquet":
            pyarrow.parquet.write_table(pa.Table.from_pylist(rows), path)
        case "sqlite":
            connection = sqlite3.connect(path)
            connection.execute("CREATE TABLE store (op TEXT, time INTEGER, id INTEGER, region TEXT)")
            connection.executemany("INSERT INTO store VALUES (:op, :time, :id, :region)", rows)
            connection.commit()
            connection.close()
        case _:
            source = rows
    facts = facts_from({"store": source}, plan_of(), Clock())
    assert list(facts) == [Fact("store", (1, "n"), 2, 5), Fact("store", (1, "n"), 7)]
    assert facts.tables == [] and facts.changing == {("store", 2)} and facts.timed == {"store"} and len(facts) == 2
    assert [(s.retract, s.fact.since) for s in facts.statements[0]] == [(op == "retract", t) for op, t in CHANGES]
    check_facts(facts, plan_of())


def test_what_another_source_says_is_retracted_too(tmp_path: Path) -> None:
    rows = [(1, "n"), (True, "n"), (2, "n")]
    changes = [{"op": "retract", "time": 5, "args": [1.0, "n"]}]
    facts = facts_from([("store", rows), ("store", changes)], plan_of(), Clock())
    assert [(f.args[0], f.until) for f in facts] == [(1, 5), (True, None), (2, None)]
    together = facts_from({"store": rows}, plan_of(), Clock()) + facts_from({"store": changes}, plan_of(), Clock())
    assert list(together) == list(facts)


def test_a_declared_attribute_is_one(tmp_path: Path) -> None:
    plan = plan_of("static store(op: string, time: int).\n" + ASKED)
    rows = [{"op": "retract", "time": 4, "valid_from": 3}]
    path = written(tmp_path / "s.csv", "op,time,valid_from\nretract,4,3\n")
    for source in (rows, path, pd.DataFrame(rows)):
        assert list(facts_from({"store": source}, plan, Clock())) == [Fact("store", ("retract", 4), 3)]


def said(statements: list[tuple[bool, int, int]], x: int) -> bool:
    """The definition: whether a fact holds at a time."""
    asserts = [(i, a, b) for i, (retract, a, b) in enumerate(statements) if not retract]
    retracts = [(i, t) for i, (retract, t, _) in enumerate(statements) if retract]
    standing = [(a, b) for i, a, b in asserts if not any(t == a and j > i for j, t in retracts)]
    taken = [t for j, t in retracts if not any(a == t and i > j for i, a, _ in asserts)]
    return any(a <= x < b and not any(a < t <= x for t in taken) for a, b in standing)


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 8), st.integers(0, 9)), max_size=8), st.sets(st.integers(0, 8)))
def test_timelines_are_what_they_are_defined_to_be(statements: list[tuple[bool, int, int]], open: set[int]) -> None:
    """Some assertions have no end, or no beginning."""
    bounded = [(r, ALWAYS if not r and a in open and b % 2 else a, EVER if a in open else b) for r, a, b in statements]
    about = Statements()
    for retract, since, until in bounded:
        if retract:
            about.add_retract(since)
        else:
            about.add_assert(since, until)
    found = about.intervals()
    for x in (ALWAYS, *range(-1, 11), EVER - 1):
        assert any(a <= x < b for a, b in found) == said(bounded, x), x
    assert all(a < b for a, b in found)
    assert all(one[1] < next[0] for one, next in pairwise(found))


def test_a_timeline_is_one_of_equal_facts() -> None:
    statements = [
        Statement(Fact("f", (1, "x"))),
        Statement(Fact("f", (1.0, "x"), 5), True),
        Statement(Fact("f", (True, "x"))),
    ]
    assert list(timeline(statements)) == [Fact("f", (1, "x"), None, 5), Fact("f", (True, "x"))]


# What is wrong is said once

SHOP = "CREATE TABLE stores (id INTEGER, region TEXT)"


def _shop(path: Path) -> Path:
    connection: Any = duckdb.connect(path) if path.suffix == ".duckdb" else sqlite3.connect(path)
    connection.execute(SHOP)
    if path.suffix != ".duckdb":
        connection.commit()
    connection.close()
    return path


WRONG: dict[str, tuple[Callable[[Path], Any], str, str]] = {
    "no file": (lambda d: d / "none.csv", ASKED, "none.csv: no such file"),
    "no Parquet file": (lambda d: d / "none.parquet", ASKED, "none.parquet: no such file"),
    "no database": (lambda d: d / "none.sqlite", ASKED, "none.sqlite: no such file"),
    "unknown ending": (lambda d: written(d / "s.xlsx", "x"), ASKED, "s.xlsx: is neither CSV, JSON lines, Parquet, Arrow nor a database by its name\n"
                       "  hint: name it .csv, .jsonl, .parquet, .arrow, .duckdb or .sqlite"),
    "a table that changes": (lambda _: "postgres://me:hidden@localhost/shop?table=store", ASKED, "postgres://: is followed while it changes, which `augury live --facts` does\n"
                             "  hint: for a run or a stream on Spark write the table to a file, or give it in Python: facts={name: frame}"),
    "twice": (lambda d: written(d / "s.csv", "id,id\n1,2\n"), ASKED, "s.csv:1: the column `id` occurs twice"),
    "twice in a query": (lambda d: f"{_shop(d / 's.db')}:SELECT id, id FROM stores", ASKED, "s.db: the column `id` occurs twice"),
    "twice in a table": (lambda _: pa.Table.from_arrays([pa.array([1])] * 2, ["id", "id"]), ASKED, "facts `store`: the column `id` occurs twice"),
    "twice in pandas": (lambda _: pd.DataFrame([(1, 2)], columns=["id", "id"]), ASKED, "facts `store`: the column `id` occurs twice"),
    "missing": (lambda d: written(d / "s.csv", "id,regoin\n1,2\n"), DECLARED, "s.csv:1: `store` has no column `region`\n  hint: there is `regoin`"),
    "missing in a query": (lambda d: f"{_shop(d / 's.duckdb')}:SELECT id FROM stores", DECLARED, "s.duckdb: `store` has no column `region`\n  hint: the columns are id"),
    "missing in a dict": (lambda _: [{"id": 1, "regoin": 2}], DECLARED, "facts `store`:1: a fact of `store` has no `regoin`\n  hint: did you mean `region`?"),
    "a tuple too short": (lambda _: [(1,)], DECLARED, "facts `store`:1: `store` is declared with 2 arguments, not 1"),
    "too many columns": (lambda d: written(d / "s.csv", "id,region,name\n1,2,3\n"), ASKED,
                         "s.csv:1: `store` has 3 columns (id, region, name); the program asks with 2\n  hint: declare those that are meant: `static store(id, region).`"),
    "time is aside": (lambda d: written(d / "s.csv", "id,time\n1,2\n"), ASKED, "s.csv:1: `store` has 1 column (id); the program asks with 2\n"
                      "  hint: `time` says something of the fact, unless declared: `static store(id, time).`"),
    "time and valid_from": (lambda d: written(d / "s.csv", "id,region,time,valid_from\n1,2,3,4\n"), ASKED,
                            "s.csv:1: has both `time` and `valid_from`\n  hint: they mean the same: keep one of them"),
    "a wrong cell": (lambda d: written(d / "s.csv", "id,region\n1,n\nx,n\n"), DECLARED, "s.csv:3: `id` is declared as int, but is 'x'"),
    "a short row": (lambda d: written(d / "s.csv", "id,region\n1,n\n2\n"), ASKED, "s.csv:3: 1 fields where the header has 2"),
    "wrong JSON": (lambda d: written(d / "s.jsonl", '[1, "n"]\n{'), ASKED, "s.jsonl:2: malformed JSON: Expecting property name enclosed in double quotes at column 2\n  hint: one JSON object a line"),
    "a wrong value": (lambda _: pa.table({"id": [1.5], "region": ["n"]}), DECLARED, "facts `store`:1: `id` is declared as int, but is 1.5"),
    "beyond 64 bits": (lambda _: pa.table({"id": pa.array([1, 2**63], pa.uint64()), "region": ["n", "n"]}), ASKED, "facts `store`:2: `id`: an integer beyond 64 bits: 9223372036854775808"),
    "beyond 64 bits in Python": (lambda _: [(2**64, "n")] * 2000, ASKED, "facts `store`:1: argument 1 of `store`: an integer beyond 64 bits: 18446744073709551616"),
    "infinite": (lambda _: pa.table({"id": [float("inf")], "region": ["n"]}), ASKED, "facts `store`:1: `id`: an infinite number"),
    "not Parquet": (lambda d: written(d / "s.parquet", "id,region"), ASKED, "s.parquet: is not a Parquet file: "),
    "not Arrow": (lambda d: written(d / "s.arrow", "id,region"), ASKED, "s.arrow: is not an Arrow file: "),
    "not a database": (lambda d: written(d / "s.sqlite", "id,region"), ASKED, "s.sqlite: is neither a DuckDB nor a SQLite database"),
    "decimal": (lambda _: pa.table({"id": [Decimal("1.5")], "region": ["n"]}), ASKED, "facts `store`: the column `id` is decimal128(2, 1), which no fact can hold\n  hint: make it a double"),
    "struct": (lambda _: pa.table({"id": [{"a": 1}], "region": ["n"]}), ASKED, "facts `store`: the column `id` is struct<a: int64>, which no fact can hold\n  hint: select its fields"),
    "bytes": (lambda _: pa.table({"id": [b"x"], "region": ["n"]}), ASKED, "facts `store`: the column `id` is binary, which no fact can hold\n  hint: make it text"),
    "a missing table": (lambda d: f"{_shop(d / 's.db')}:SELECT * FROM storse", ASKED, "s.db: the query fails: no such table: storse\n  hint: there is `stores`"),
    "a missing table of DuckDB": (lambda d: f"{_shop(d / 's.duckdb')}:SELECT * FROM shops", ASKED,
                                  "s.duckdb: the query fails: Catalog Error: Table with name shops does not exist!\n  hint: the tables are stores"),
    "no table of that name": (lambda d: _shop(d / "s.db"), ASKED, "s.db: the query fails: no such table: store\n  hint: there is `stores`"),
    "wrong SQL": (lambda d: f"{_shop(d / 's.db')}:SELEC id", ASKED, 's.db: the query fails: near "SELEC": syntax error\n  hint: it is SELEC id'),
    "wrong SQL of DuckDB": (lambda d: f"{_shop(d / 's.duckdb')}:SELEC id", ASKED, 's.duckdb: the query fails: Parser Error: syntax error at or near "SELEC"\n  hint: it is SELEC id'),
    "no query": (lambda _: (sqlite3.connect(":memory:"), SHOP), ASKED, f"facts `store`: the query gives no rows\n  hint: it must be a SELECT statement, not '{SHOP}'"),
    "an unknown op": (lambda _: [{"op": "delete", "args": [1, "n"]}], ASKED, "facts `store`:1: unknown op 'delete'\n  hint: it must be assert or retract"),
    "an unknown op in a file": (lambda d: written(d / "s.csv", "id,region,op\n1,n,assert\n1,n,drop\n"), ASKED, "s.csv:3: unknown op 'drop'\n  hint: it must be assert or retract"),
    "a retract without a time": (lambda d: written(d / "s.csv", "id,region,op,time\n1,n,retract,\n"), ASKED,
                                 "s.csv:2: a retract needs a time\n  hint: give it as `time`, or as `valid_from`"),
    "a retract with an end": (lambda d: written(d / "s.jsonl", '{"op": "retract", "args": [1, "n"], "time": 1, "valid_to": 3}'), ASKED,
                              "s.jsonl:1: a retract has no `valid_to`\n  hint: the fact no longer holds from its time on, until it is asserted again"),
    "not rows": (lambda _: 5, ASKED, "the facts of `store` are int, not rows\n  hint: give a list, a table or a path"),
    "a series": (lambda _: pd.Series([1]), ASKED, "facts `store`: a Series is not a table\n  hint: give a table, or a list of rows"),
    "a calendar time on a logical clock": (lambda _: pa.table({"id": [1], "region": ["n"], "time": [NOON]}), ASKED,
                                           "facts `store`:1: `time`: not a tick: '2026-01-31T12:00:00Z'; on the logical clock a time is a whole number\n"
                                           '  hint: use --clock timestamp (clock="timestamp") for calendar times'),
}  # fmt: skip


@pytest.mark.parametrize("name", ["s.csv", "s.jsonl", "s.parquet", "s.arrow"])
def test_an_empty_file_has_no_facts(name: str, tmp_path: Path) -> None:
    assert list(read(written(tmp_path / name, ""))) == []


@pytest.mark.parametrize("case", WRONG)
def test_malformed_fact_tables_are_refused(case: str, tmp_path: Path) -> None:
    make, program, expected = WRONG[case]
    with pytest.raises(DataError) as caught:
        facts_from({"store": make(tmp_path)}, plan_of(program), Clock())
    said = str(caught.value).replace(f"{tmp_path}/", "")
    assert said.startswith(expected) if expected.endswith(": ") else said == expected


def test_wrong_rows_are_skipped(tmp_path: Path) -> None:
    skipped = Skipped("skip")
    path = written(tmp_path / "s.csv", "id,region\n1,n\nx,n\n2\n3,s\n")
    assert args_of(read(path, plan_of(DECLARED), skipped=skipped)) == [(1, "n"), (3, "s")]
    assert skipped.problems == [
        f"{path}:3: `id` is declared as int, but is 'x'",
        f"{path}:4: 1 fields where the header has 2",
    ]
    skipped = Skipped("skip")
    pyarrow.parquet.write_table(pa.table({"id": [1.0, 1.5], "region": ["n", "n"]}), tmp_path / "s.parquet")
    assert args_of(read(tmp_path / "s.parquet", plan_of(DECLARED), skipped=skipped)) == [(1, "n")]
    assert skipped.problems == [f"{tmp_path}/s.parquet:2: `id` is declared as int, but is 1.5"]


def test_a_database_is_not_written(tmp_path: Path) -> None:
    for name in ("s.db", "s.duckdb"):
        with pytest.raises(DataError, match=r"read.?only"):
            read_fact_file("store", f"{_shop(tmp_path / name)}:DROP TABLE stores", plan_of(), Clock(), Skipped())


def test_what_nothing_asks_for() -> None:
    facts = facts_from({"shop": _table()}, plan_of(), Clock())
    with pytest.raises(DataError, match="nothing in the program asks for facts of `shop`"):
        check_facts(facts, plan_of())
    assert without_facts(facts, plan_of()) == ["store"]
    with pytest.raises(DataError, match="a fact of `store` has 1 argument; the program asks with 2"):
        check_facts(facts_from({"store": [(1,)]}, plan_of(), Clock()), plan_of())


@pytest.mark.parametrize(("ending", "calls_per_row"), [("parquet", 0.1), ("csv", 3)])
def test_many_facts_are_read_by_columns(tmp_path: Path, ending: str, calls_per_row: float) -> None:
    """Ten thousand more rows take few more Python calls; what a text of CSV may stand for is asked of each text."""
    plan = plan_of()

    def calls_of_reading(n: int) -> int:
        path = tmp_path / f"{n}.{ending}"
        table = pa.table({"id": np.arange(n), "region": [f"region {i % 50} of {i}" for i in range(n)]})
        (pyarrow.parquet.write_table if ending == "parquet" else pyarrow.csv.write_csv)(table, path)
        calls = 0

        def count(_frame: object, event: str, _arg: object) -> None:
            nonlocal calls
            calls += event == "call"

        read(path)  # what is imported at the first time does not count
        sys.setprofile(count)
        try:
            facts = read(path)
            check_facts(facts, plan)
            assert len(facts) == n and without_facts(facts, plan) == []
        finally:
            sys.setprofile(None)
        return calls

    assert calls_of_reading(20_000) - calls_of_reading(10_000) <= 10_000 * calls_per_row


FORBIDDEN = {
    "duckdb": [
        "COPY t TO '{out}'",
        "COPY (SELECT 1) TO '{out}' (FORMAT csv)",
        "SELECT 1; COPY t TO '{out}'",
        "SELECT * FROM read_csv('{secret}')",
        "SELECT * FROM read_text('{secret}')",
        "SELECT * FROM '{secret}'",
        "SELECT * FROM read_parquet('http://127.0.0.1:9/x.parquet')",
        "SELECT * FROM glob('{secret}')",
        "ATTACH '{out}' AS other",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET enable_external_access = true",
        "PRAGMA enable_profiling",
        "EXPORT DATABASE '{out}'",
        "DROP TABLE t",
        "INSERT INTO t VALUES (2)",
        "CREATE TABLE u AS SELECT 1",
    ],
    "sqlite": [
        "ATTACH '{out}' AS other",
        "VACUUM INTO '{out}'",
        "SELECT 1; DROP TABLE t",
        "SELECT load_extension('{secret}')",
        "PRAGMA journal_mode = DELETE",
        "PRAGMA table_info(t)",
        "DROP TABLE t",
        "INSERT INTO t VALUES (2)",
        "INSERT INTO t VALUES (2) RETURNING x",
        "CREATE TEMP TABLE u AS SELECT 1",
    ],
}


def small_database(kind: str, folder: Path) -> Path:
    """A database with one table of one row."""
    path = folder / f"shop.{kind}"
    connect = duckdb.connect if kind == "duckdb" else sqlite3.connect
    with closing(connect(str(path))) as connection:
        connection.execute("CREATE TABLE t (x INTEGER)")
        connection.execute("INSERT INTO t VALUES (1)")
        connection.commit()
    return path


@pytest.mark.parametrize(("kind", "query"), [(kind, query) for kind, all in FORBIDDEN.items() for query in all])
def test_a_query_of_a_database_only_reads_it(kind: str, query: str, tmp_path: Path) -> None:
    path, out, secret = small_database(kind, tmp_path), tmp_path / "out", tmp_path / "secret.csv"
    secret.write_text("a\nhunter2\n", encoding="utf-8")
    before = path.read_bytes()
    with pytest.raises(augury.DataError) as error:
        augury.run("e(X) <- a(X) WHERE t(X).", [{"type": "a", "args": [1], "time": 1}],
                   facts={"t": f"{path}:{query.format(out=out, secret=secret)}"})  # fmt: skip
    assert "hunter2" not in str(error.value)
    assert not out.exists() and path.read_bytes() == before


@pytest.mark.parametrize("kind", FORBIDDEN)
@pytest.mark.parametrize(
    "query", ["", ":SELECT x FROM t", ":WITH u AS (SELECT x FROM t) SELECT max(x) FROM u", ":select abs(x) from t;"]
)
def test_a_query_of_a_database_reads_it(kind: str, query: str, tmp_path: Path) -> None:
    facts = {"t": f"{small_database(kind, tmp_path)}{query}"}
    assert len(augury.run("e(X) <- a(X) WHERE t(X).", [{"type": "a", "args": [1], "time": 1}], facts=facts)) == 1
