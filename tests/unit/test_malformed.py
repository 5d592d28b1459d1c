"""Malformed input: what is said of each mistake, of its line and of no other, and that the rest is read as without it."""

from __future__ import annotations

import bz2
import gzip
import json
import os
import re
from collections.abc import Callable
from datetime import time
from decimal import Decimal
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

import augury
from augury.core.clock import Clock
from augury.core.errors import AuguryError
from augury.job import Job
from augury.knowledge.facts import facts_from
from augury.settings import Settings, Task
from augury.sources import Reader, Skipped, SourceFile, csv, jsonl, packed_cells, parquet, read_history, reader
from augury.sources.blocks import blocks
from tests.generators.malformed import (
    FAULTS,
    FORMS,
    PROGRAM,
    ROWS,
    SAID,
    TYPES,
    Fault,
    Form,
    arrow_table,
    good_row,
    holds,
)

PLACES = [(0,), (ROWS // 2,), (ROWS - 1,), (1, ROWS - 2)]
ALL = bool(os.environ.get("AUGURY_FUZZ"))
TIMES = 4 if ALL else 1


def outcome(given: Any, about: str, clock: Any, on_error: Any, program: Any = PROGRAM) -> tuple[list[str], list[str]]:
    """What is read, one a row, and what is said of the rest."""
    skipped = Skipped(on_error)
    if about == "events":
        found: Any = read_history(Reader(program.plan, clock, skipped), given).items()
    else:
        found = facts_from({"setting": given}, program.plan, clock, skipped)
    return [repr(one) for one in found], skipped.problems


@cache
def good(form: str, about: str, clock: Clock) -> list[str]:
    """What all rows of a form are read as, where nothing is wrong."""
    with TemporaryDirectory() as folder:
        rows: list[Any] = [good_row(k, about, FORMS[form].family) for k in range(ROWS)]
        return outcome(FORMS[form].write(rows, about, Path(folder), {}).given, about, clock, "stop")[0]


def check(fault: Fault, form: Form, about: str, wrong: tuple[int, ...], folder: Path) -> None:
    rows: list[Any] = [good_row(k, about, form.family) for k in range(ROWS)]
    for row in wrong:
        rows[row] = fault.wrong(rows[row])
    written = form.write(rows, about, folder, fault.kinds)
    with pytest.raises(AuguryError) as caught:
        outcome(written.given, about, fault.clock, "stop")
    first, said = str(caught.value).split("\n")[0], [f"{written.place}:{written.line(row)}: " for row in wrong]
    assert first.startswith(said[0]), (first, said[0])
    assert re.match(fault.said, first[len(said[0]) :]), (first, fault.said)
    assert len(first) < 300 + len(said[0]), "nobody reads so much"
    found, problems = outcome(written.given, about, fault.clock, "skip")
    assert [p[: len(s)] for p, s in zip(problems, said, strict=True)] == said
    assert problems[0] == first
    assert all(re.match(fault.said, p[len(s) :]) for p, s in zip(problems, said, strict=True))
    assert found == [one for row, one in enumerate(good(form.name, about, fault.clock)) if row not in wrong]


HELD = [(fault, form) for fault in FAULTS for form in FORMS.values() if holds(form, fault)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("malformed")


@pytest.mark.parametrize(("fault", "form"), HELD, ids=[f"{fault.name}-{form.name}" for fault, form in HELD])
def test_malformed_row_is_named(fault: Fault, form: Form, folder: Path) -> None:
    for about in fault.about:
        for wrong in places(fault, form, about):
            check(fault, form, about, wrong, folder)


def places(fault: Fault, form: Form, about: str) -> list[tuple[int, ...]]:
    """Where the mistake stands: one place after the other as one goes through forms and faults, which is all of them."""
    at = FAULTS.index(fault) + list(FORMS).index(form.name) + len(about)
    return [PLACES[(at + i) % (3 if fault.alone else 4)] for i in range(TIMES)]


# Several mistakes in one file


@pytest.mark.parametrize("form", FORMS.values(), ids=list(FORMS))
@pytest.mark.parametrize("about", ["events", "facts"])
def test_mistakes_come_in_the_order_of_lines(form: Form, about: str, folder: Path, monkeypatch: Any) -> None:
    """All that a form can have, each in a row of its own between good ones, in one part of a file and in many."""
    wrong = [
        f for f in FAULTS if holds(form, f) and about in f.about and not f.alone and not f.kinds and f.clock == Clock()
    ]
    rows: list[Any] = [good_row(k, about, form.family) for k in range(2 * len(wrong) + 1)]
    for i, fault in enumerate(wrong):
        rows[2 * i + 1] = fault.wrong(rows[2 * i + 1])
    written = form.write(rows, about, folder, {})
    for size in (None, 700):
        if size is not None:
            monkeypatch.setattr(csv, "blocks", partial(blocks, size=size))
            monkeypatch.setattr(jsonl, "_SIZE", size)
            monkeypatch.setattr(parquet, "ROWS", 3)
            monkeypatch.setattr(packed_cells, "ROWS", 3)
            monkeypatch.setattr(reader, "_CHUNK", 3)
        found, problems = outcome(written.given, about, Clock(), "skip")
        assert len(found) == len(wrong) + 1
        for fault, problem, row in zip(wrong, problems, range(1, 2 * len(wrong), 2), strict=True):
            place = f"{written.place}:{written.line(row)}: "
            assert problem.startswith(place), (fault.name, problem, place)
            pattern = rf"{fault.said}|malformed JSON: nested too deeply"  # how deep a parser goes is its own matter
            assert re.match(pattern, problem[len(place) :]), (fault.name, problem)
        with pytest.raises(AuguryError) as caught:
            outcome(written.given, about, Clock(), "stop")
        assert str(caught.value).split("\n")[0] == problems[0]


# What is wrong with a file as a whole


def table_of(about: str, **columns: Any) -> Any:
    rows: list[Any] = [good_row(k, about, "arrow") for k in range(ROWS)]
    found = arrow_table(rows, about, {})
    for name, column in columns.items():
        at = found.column_names.index(name)
        found = found.remove_column(at) if column is None else found.set_column(at, name, pa.array(column))
    return found


def parquet_of(table: Any) -> bytes:
    sink = pa.BufferOutputStream()
    pyarrow.parquet.write_table(table, sink)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


def arrow_of(table: Any) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


def csv_of(about: str, names: list[str] | None = None) -> bytes:
    rows: list[Any] = [good_row(k, about, "text") for k in range(ROWS)]
    wanted = names or [*TYPES, *SAID[about]]
    return "\n".join([",".join(wanted), *(",".join(row.get(n, "") for n in wanted) for row in rows), ""]).encode()


def json_of(about: str) -> bytes:
    return b"".join(json.dumps(good_row(k, about, "json")).encode() + b"\n" for k in range(ROWS))


def without(about: str, *names: str) -> bytes:
    return csv_of(about, [n for n in (*TYPES, *SAID[about]) if n not in names])


def zst(data: bytes) -> bytes:
    return pa.compress(data, codec="zstd", asbytes=True)  # type: ignore[no-any-return]


NO_TYPE: dict[str, dict[str, None]] = {"events": {"type": None}, "facts": {}}
TIMELESS = dict.fromkeys(("time", "start", "end"))
# What a file is called → what it holds, for events or facts → what is said of it.
WHOLE: dict[str, tuple[str, Callable[[str], bytes], str]] = {
    "a column missing in CSV": ("x.csv", lambda a: without(a, "type", "d"), r"x.csv:\d: `\w+` has no column `d`"),
    "a column missing in Parquet": ("x.parquet", lambda a: parquet_of(table_of(a, **NO_TYPE[a], d=None)), r"x.parquet(:1)?: `\w+` has no column `d`"),
    "a column missing in Arrow": ("x.arrow", lambda a: arrow_of(table_of(a, **NO_TYPE[a], d=None)), r"x.arrow(:1)?: `\w+` has no column `d`"),
    "a column twice in CSV": ("x.csv", lambda a: csv_of(a, [*TYPES, "n", *SAID[a]]), "x.csv:1: the column `n` occurs twice"),
    "a column twice in Parquet": ("x.parquet", lambda a: parquet_of(pa.table([[1], [2]], ["n", "n"])), "x.parquet: the column `n` occurs twice"),
    "no time in CSV": ("x.csv", lambda a: without(a, *TIMELESS), r"x.csv:1: has no column `time` \(or `start` and `end`\)"),
    "no time in Parquet": ("x.parquet", lambda a: parquet_of(table_of(a, **TIMELESS)), r"x.parquet: has no column `time` \(or `start` and `end`\)"),
    "no type in CSV": ("x.csv", lambda a: without(a, "type"), "x.csv:1: has no column `type`"),
    "no type in Parquet": ("x.parquet", lambda a: parquet_of(table_of(a, type=None)), "x.parquet: has no column `type`"),
    "time and valid_from": ("x.csv", lambda a: csv_of(a, [*TYPES, "time", *SAID[a]]), "x.csv:1: has both `time` and `valid_from`"),
    "bytes": ("x.parquet", lambda a: parquet_of(table_of(a, s=[b"x"] * ROWS)), "x.parquet: the column `s` is binary, which no (event|fact) can hold"),
    "decimals": ("x.parquet", lambda a: parquet_of(table_of(a, q=[Decimal("1.5")] * ROWS)), r"x.parquet: the column `q` is decimal128\(2, 1\), which no (event|fact) can hold"),
    "a struct": ("x.arrow", lambda a: arrow_of(table_of(a, o=[{"x": 1}] * ROWS)), "x.arrow: the column `o` is struct<x: int64>, which no (event|fact) can hold"),
    "times of day": ("x.arrow", lambda a: arrow_of(table_of(a, t=[time(1)] * ROWS)), r"x.arrow: the column `t` is time64\[us\], which no (event|fact) can hold"),
    "a cut Parquet file": ("x.parquet", lambda a: parquet_of(table_of(a))[:-9], "x.parquet: is not a Parquet file: "),
    "a Parquet file without its middle": ("x.parquet", lambda a: (p := parquet_of(table_of(a)))[:200] + bytes(2000) + p[2200:], "x.parquet: is not a Parquet file: "),
    "a cut Arrow file": ("x.arrow", lambda a: arrow_of(table_of(a))[:1000], "x.arrow: is not an Arrow file: "),
    "a cut Feather file": ("x.feather", lambda a: arrow_of(table_of(a))[:-50], "x.feather: is not an Arrow file: "),
    "CSV called Parquet": ("x.parquet", csv_of, "x.parquet: is not a Parquet file: "),
    "JSON called Parquet": ("x.parquet", json_of, "x.parquet: is not a Parquet file: "),
    "CSV called Arrow": ("x.arrow", csv_of, "x.arrow: is not an Arrow file: "),
    "Parquet called Arrow": ("x.arrow", lambda a: parquet_of(table_of(a)), "x.arrow: is not an Arrow file: "),
    "Arrow called Parquet": ("x.parquet", lambda a: arrow_of(table_of(a)), "x.parquet: is not a Parquet file: "),
    "Parquet called CSV": ("x.csv", lambda a: parquet_of(table_of(a)), "x.csv:.*: "),
    "Arrow called CSV": ("x.csv", lambda a: arrow_of(table_of(a)), "x.csv:.*: "),
    "gzip called CSV": ("x.csv", lambda a: gzip.compress(csv_of(a)), "x.csv:.*: "),
    "JSON called CSV": ("x.csv", json_of, "x.csv:1: "),
    "CSV called gzip": ("x.csv.gz", csv_of, r"x.csv.gz: cannot be read: .*(?s:.*)is it gzip, and whole\?"),
    "cut gzip": ("x.csv.gz", lambda a: gzip.compress(csv_of(a))[:-40], r"x.csv.gz: cannot be read: .*(?s:.*)is it gzip, and whole\?"),
    "cut gzip of JSON": ("x.jsonl.gz", lambda a: gzip.compress(json_of(a))[:-40], r"x.jsonl.gz: cannot be read: .*(?s:.*)is it gzip, and whole\?"),
    "cut gzip of Parquet": ("x.parquet.gz", lambda a: gzip.compress(parquet_of(table_of(a)))[:-40], r"x.parquet.gz: cannot be read: .*(?s:.*)is it gzip, and whole\?"),
    "broken bz2": ("x.jsonl.bz2", lambda a: bz2.compress(json_of(a))[:60] + b"?" * 60, r"x.jsonl.bz2: cannot be read: .*(?s:.*)is it bz2, and whole\?"),
    "broken zstd": ("x.csv.zst", lambda a: zst(csv_of(a))[:60] + b"?" * 60, r"x.csv.zst: cannot be read: .*(?s:.*)is it zstd, and whole\?"),
    "a header that is not UTF-8": ("x.csv", lambda a: b"caf\xe9," + csv_of(a), "x.csv:1: is not UTF-8 text"),
    "no known name": ("x.txt", csv_of, "x.txt: is neither CSV, JSON lines, Parquet.* by its name"),
}  # fmt: skip
OF_EVENTS = {"no time in CSV", "no time in Parquet", "no type in CSV", "no type in Parquet"}
OF_FACTS = {"time and valid_from"}


@pytest.mark.parametrize("case", WHOLE)
def test_malformed_file_stops_the_run(case: str, tmp_path: Path) -> None:
    """It stops the run, whatever is done about wrong rows."""
    name, write, pattern = WHOLE[case]
    for about in ("events", "facts"):
        if (about == "facts" and case in OF_EVENTS) or (about == "events" and case in OF_FACTS):
            continue
        path = tmp_path / name
        path.write_bytes(write(about))
        source = SourceFile(str(path), "reading" if about == "events" and "column missing" in case else None)
        for on_error in ("stop", "skip"):
            with pytest.raises(AuguryError) as caught:
                outcome(source, about, Clock(), on_error)
            assert re.match(f"{re.escape(str(tmp_path))}/{pattern}", str(caught.value)), (about, str(caught.value))


def test_a_column_that_one_type_misses_is_a_mistake_of_its_rows(tmp_path: Path) -> None:
    """Rows of other types may do without it."""
    (tmp_path / "x.csv").write_bytes(without("events", "d") + b"," * (len(TYPES) - 1) + b"other,1,,,,,\n")
    found, problems = outcome(SourceFile(str(tmp_path / "x.csv")), "events", Clock(), "skip")
    assert len(found) == 1 and [p.split(": ")[0] for p in problems] == [
        f"{tmp_path}/x.csv:{i + 2}" for i in range(ROWS)
    ]
    assert all("`reading` has no column `d`" in p for p in problems)


@pytest.mark.parametrize("name", ["x.jsonl", "x.ndjson"])
def test_another_format_called_json_is_wrong_in_every_line(name: str, tmp_path: Path) -> None:
    for data in (csv_of("events"), b"\n".join(csv_of("events").splitlines()[1:])):
        (tmp_path / name).write_bytes(data)
        found, problems = outcome(SourceFile(str(tmp_path / name)), "events", Clock(), "skip")
        assert not found and len(problems) == len(data.splitlines())
        assert all(p.startswith(f"{tmp_path / name}:{i}: malformed JSON") for i, p in enumerate(problems, 1))


# Without declarations, and with a clock that is found

LOOSE = augury.compile("found(X, Y) <- a(X, Y).")
UNDECLARED = {
    "csv": ("x.csv", "type,x,y,time\na,1,u,1\na,{x},u,{time}\na,3,u,3\na,4,u,4\n", 3),
    "jsonl": ("x.jsonl", '{{"type": "a", "args": [1, "u"], "time": 1}}\n{{"type": "a", "args": [{x}, "u"], "time": "{time}"}}\n'
              '{{"type": "a", "args": [3, "u"], "time": 3}}\n{{"type": "a", "args": [4, "u"], "time": 4}}\n', 2),
}  # fmt: skip


@pytest.mark.parametrize("form", UNDECLARED)
@pytest.mark.parametrize(
    ("x", "time", "said"),
    [
        (2**70, 2, rf"(`x`|argument 1 of `a`): an integer beyond 64 bits: {2**70}"),
        ("7" * 5000, 2, "`x`: an integer beyond 64 bits: 777|malformed JSON: a number of more than"),
        (2, "noon", "`time`: not a tick: 'noon'"),
        (2, "2026-01-01", "`time`: not a tick: '2026-01-01'"),
    ],
    ids=["a great integer", "5,000 digits", "no time", "another time"],
)
def test_malformed_cells_of_undeclared_columns_are_named(
    form: str, x: Any, time: Any, said: str, tmp_path: Path
) -> None:
    name, text, line = UNDECLARED[form]
    path = tmp_path / name
    path.write_text(text.format(x=x, time=time))
    find = partial(Settings().clock_of, LOOSE)
    found, problems = outcome(SourceFile(str(path)), "events", find, "skip", LOOSE)
    assert len(problems) == 1 and re.match(rf"{re.escape(str(path))}:{line}: ({said})", problems[0]), problems
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[: line - 1] + lines[line:]))
    assert found == outcome(SourceFile(str(path)), "events", find, "stop", LOOSE)[0]


@pytest.mark.parametrize("form", [f for f in FORMS if FORMS[f].family != "arrow"])
def test_a_wrong_time_tells_no_clock(form: str, folder: Path) -> None:
    rows: list[Any] = [good_row(k, "events", FORMS[form].family) for k in range(ROWS)]
    rows[0] |= {"time": "noon", "start": "" if FORMS[form].family == "text" else None}
    given = FORMS[form].write(rows, "events", folder, {}).given
    found, problems = outcome(given, "events", partial(Settings().clock_of, PROGRAM), "skip")
    assert found == good(form, "events", Clock())[1:] and len(problems) == 1
    assert "`time`: not a tick: 'noon'" in problems[0]


# Through a whole run


@pytest.mark.parametrize("form", FORMS)
def test_a_run_stops_at_the_first_mistake(form: str, folder: Path) -> None:
    rows: list[Any] = [good_row(k, "events", FORMS[form].family) for k in range(ROWS)]
    rows[3] |= {"op": "drop"}
    rows[5] |= {"op": "revoke", "id": ""}
    written = FORMS[form].write(rows, "events", folder, {})
    with pytest.raises(AuguryError, match=re.escape(f"{written.place}:{written.line(3)}: unknown op 'drop'")):
        augury.run(PROGRAM, written.given, facts={"setting": []})


@pytest.mark.parametrize("form", ["csv", "odd csv", "jsonl", "jsonl args", "odd jsonl", "parquet", "arrow"])
def test_a_job_goes_on_without_the_wrong_rows(form: str, folder: Path) -> None:
    rows: list[Any] = [good_row(k, "events", FORMS[form].family) for k in range(ROWS)]
    rows[3] |= {"op": "drop"}
    rows[5] |= {"op": "revoke", "id": ""}
    written = FORMS[form].write(rows, "events", folder, {})
    job = Job(Task(PROGRAM, (written.given,), settings=Settings(on_error="skip")))
    assert [e.args[0] for e in job.evaluate(engine="embedded").events] == [0, 1, 2, 4, 6, 7]
    assert [p.split(": ")[0] for p in job.skipped.problems] == [f"{written.place}:{written.line(r)}" for r in (3, 5)]


def test_an_id_that_names_two_events(folder: Path) -> None:
    """It is no mistake of a row: the second one is put aside, with its reason."""
    rows: list[Any] = [good_row(k, "events", "json") for k in range(3)]
    rows[2]["id"] = "e0"
    found = augury.run(PROGRAM, FORMS["jsonl"].write(rows, "events", folder, {}).given)
    assert [e.args[0] for e in found] == [0, 1] and [e.args[0] for e, _ in found.rejected] == [2]


def test_how_many_there_are() -> None:
    assert sum(len(fault.about) * TIMES for fault, _ in HELD) + 2 * len(WHOLE) > 1000
