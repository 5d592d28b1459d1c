"""What is written of answers, in every format, for every kind of value."""

from __future__ import annotations

import csv
import io
import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import augury
from augury import Event, Iri, Term
from augury.algebra.plan import Plan
from augury.core.clock import Clock, Duration, Timestamp
from augury.core.errors import DataError
from augury.core.model import Change, Value, to_json
from augury.sinks import (
    FORMATS,
    Answers,
    answers_of,
    attribute_names,
    column_names,
    event_as_json,
    format_of,
    show_table,
    write,
    write_text,
)
from augury.sinks import csv as csv_sink
from augury.sinks import jsonl as jsonl_sink
from tests.unit.test_columns import values as any_values

CLOCKS = (Clock(), Clock("timestamp"))
PLAN = augury.compile("e(X, Y) <- a(X, Y).\nf(Place) <- b(Place).\nf(X, Y) <- c(X, Y).\nn(1) <- b(_).").plan
ODD: list[Value] = [
    None, True, False, 0, -1, 2**63 - 1, -(2**63), 0.0, -0.0, 1.0, 0.1, -2.5, 1e15, 1e16, 1e22, 1e-4, 1e-5, 5e-324, 1.7e308,
    9999999999.5, 12345678901.25, 2.0**53, "", "x", "é", "日本", "😀", 'a "quote"', "back\\slash", "tab\t", "line\nbreak\r", "\x00\x1f\x7f",
    "a,b", ";", "null", "\u2028", Iri("http://x/é#1"), Timestamp(0), Timestamp(-1), Timestamp(10**15 + 5), Timestamp(-(10**17)),
    Duration(0), Duration(-5), Duration(5_400_000_000), (), (1, 2), (1, 2.5, None), ("x", 'q"', ()), (("a",), ("b", None)),
    Term("loc", ("N", 4042)), Term("f", ()), Term("g", (Term("h", (1, None)), (True,), Iri("i"), Timestamp(5))),
]  # fmt: skip
TIMES = [
    0,
    -1,
    1,
    1_767_225_600_000_000,
    1_767_225_600_000_001,
    -62_135_596_800_000_000,
    -30_610_224_000_000_001,
    2**59,
]
times = st.one_of(st.integers(-5, 5), st.sampled_from(TIMES), st.integers(-(2**59), 2**59))
texts = st.text(max_size=5)


@st.composite
def events(draw: st.DrawFn) -> list[Event]:
    found = []
    for _ in range(draw(st.integers(0, 8))):
        type, arity = draw(st.sampled_from([("e", 2), ("f", 1), ("f", 2), ("n", 1)]))
        args = tuple(draw(st.one_of(any_values, st.sampled_from(ODD), texts)) for _ in range(arity))
        start, end = sorted((draw(times), draw(times)))
        trace = tuple(draw(st.lists(st.one_of(st.sampled_from(["i1", "é,", 'q"']), texts), max_size=3)))
        found.append(Event(type, args, start, end, draw(st.one_of(st.just("0123456789abcdef"), texts)), trace))
    return found


def jsonl(answers: Answers[Any], **options: Any) -> list[str]:
    text = b"".join(jsonl_sink.lines(answers, **options)).decode()
    assert not text or text.endswith("\n")
    return text[:-1].split("\n") if text else []


def told(items: list[Event], changes: bool) -> list[Any]:
    return [Change("retract" if i % 3 else "insert", e) for i, e in enumerate(items)] if changes else items


# JSON lines


@given(events(), st.sampled_from(CLOCKS), st.booleans(), st.booleans())
def test_json_lines_are_what_python_writes(items: list[Event], clock: Clock, changes: bool, trace: bool) -> None:
    given_items = told(items, changes)
    expected = []
    for item in given_items:
        event, op = (item.event, item.op) if changes else (item, None)
        expected.append(json.dumps(event_as_json(event, clock, op, PLAN, trace), ensure_ascii=False))
    assert jsonl(answers_of(given_items, PLAN, clock, changes), trace=trace) == expected


def test_every_value_as_json() -> None:
    items = [Event("e", (v, ODD[-i]), t) for i, v in enumerate(ODD) for t in TIMES]
    for clock in CLOCKS:
        lines = jsonl(answers_of(items, PLAN, clock))
        for line, event in zip(lines, items, strict=True):
            args = [to_json(a) for a in event.args]
            at = clock.show(event.start)
            assert line == json.dumps(
                {"type": "e", "args": args, "x": args[0], "y": args[1], "start": at, "end": at, "id": "", "trace": []},
                ensure_ascii=False,
            )
    for value in ODD:  # a column of one kind, and one with null in it
        for column in ([value], [value, None], [value] * 3):
            lines = jsonl(answers_of([Event("n", (v,), 1) for v in column], PLAN, Clock()))
            assert [json.loads(line)["args"] for line in lines] == [[to_json(v)] for v in column]


def test_json_lines_name_attributes() -> None:
    plan = augury.compile("""
        event d(place: string, id: int, arg1: int).
        d(P, I, A) <- a(P, I, A).
        e(Args, P) <- b(Args, P).
        e(X, Y, Z) <- a(X, Y, Z).
        g(Args, Start, P, P, 1) <- b(Args, Start), c(P).
        z <- b(_, _).
    """).plan
    assert attribute_names(plan, ("d", 3)) == ["place", "arg2", "arg1"]
    assert column_names(plan, "e") == ["arg1", "arg2", "arg3"]
    assert attribute_names(plan, ("g", 5)) == ["args", "arg2", "p", "arg4", "arg5"]
    assert column_names(plan, "z") == [] == column_names(Plan(), "nothing")
    (line,) = jsonl(answers_of([Event("g", (1, 2, 3, 3, 5), 1)], plan, Clock()))
    assert list(json.loads(line)) == ["type", "args", "p", "start", "end", "id", "trace"]
    (line,) = jsonl(answers_of([Event("d", ("x", 2, 3), 1)], plan, Clock()))
    assert list(json.loads(line)) == ["type", "args", "place", "arg1", "start", "end", "id", "trace"]
    assert jsonl(answers_of([Event("z", (), 1, id="i")], plan, Clock()), trace=False) == ['{"type": "z", "args": [], "start": 1, "end": 1, "id": "i"}']  # fmt: skip


def test_halves_of_characters_are_replaced() -> None:
    (line,) = jsonl(answers_of([Event("n", ("a\ud800b",), 1)], PLAN, Clock()))
    assert json.loads(line)["args"] == ["a\ufffdb"]


# CSV


@given(events(), st.sampled_from(CLOCKS), st.booleans(), st.booleans())
def test_written_csv_reads_back(items: list[Event], clock: Clock, changes: bool, trace: bool) -> None:
    given_items = told(items, changes)
    answers = answers_of(given_items, PLAN, clock, changes)
    text = b"".join(csv_sink.lines(answers, trace)).decode()
    header, *rows = csv.reader(io.StringIO(text, newline=""))
    shape = [column.name for column in answers.layout]
    ops = ["op"] if changes else []
    assert header == [*ops, "type", *shape, "start", "end", "id", *(["trace"] if trace else [])]
    assert len(rows) == len(items)
    for row, item in zip(rows, given_items, strict=True):
        event = item.event if changes else item
        cells = dict(zip(header, row, strict=True))
        assert (cells["type"], cells["start"], cells["end"], cells["id"]) == (
            event.type, str(clock.show(event.start)), str(clock.show(event.end)), event.id,
        )  # fmt: skip
        names = {c.attributes[event.type]: c.name for c in answers.layout if event.type in c.attributes}
        assert [cells[names[i]] for i in range(len(event.args))] == [cell(a) for a in event.args]
        assert not trace or cells["trace"] == " ".join(event.trace)
        assert not changes or cells["op"] == item.op


def cell(value: Value) -> str:
    plain = to_json(value)
    if plain is None:
        return ""
    return json.dumps(plain, ensure_ascii=False) if isinstance(plain, dict | list | bool) else str(plain)


def test_csv_is_named_by_attributes() -> None:
    one = augury.compile("output f. e(X) <- a(X). f(Place, 1) <- e(Place).").plan
    text = b"".join(csv_sink.lines(answers_of([Event("f", ("l1", 1), 2, 2, "i", ("a", "b"))], one, Clock()))).decode()
    assert text == "type,place,arg2,start,end,id,trace\nf,l1,1,2,2,i,a b\n"
    assert b"".join(csv_sink.lines(answers_of([], one, Clock()), trace=False)) == b"type,place,arg2,start,end,id\n"


# Arrow and Parquet


@given(events(), st.sampled_from(CLOCKS), st.booleans())
def test_arrow_and_parquet_hold_the_tables(items: list[Event], clock: Clock, trace: bool) -> None:
    from tempfile import TemporaryDirectory

    items = [Event(e.type, e.args, e.start // 2**10, e.end // 2**10, e.id, e.trace) for e in items]
    answers = answers_of(items, PLAN, clock)
    with TemporaryDirectory() as folder:
        file = f"{folder}/all.arrow"
        write(answers, "arrow", file, io.StringIO(), trace=trace)
        with pa.ipc.open_file(file) as reader:
            assert reader.read_all().equals(answers.to_arrow(trace=trace))
        write(answers, "parquet", f"{folder}/p", io.StringIO(), trace=trace)
        for type in PLAN.outputs:
            found = pq.read_table(f"{folder}/p/{type}", partitioning=None)
            assert found.num_rows == sum(e.type == type for e in items)
            assert found.column_names == answers.to_arrow(type, trace).column_names
            assert found.column("id").to_pylist() == [e.id for e in items if e.type == type]


def test_one_output_is_its_own_table(tmp_path: Path) -> None:
    plan = augury.compile("output f. e(X) <- a(X). f(Place) <- e(Place).").plan
    answers = answers_of([Event("f", ("l1",), 2, 2, "i", ("a",))], plan, Clock("timestamp"))
    write(answers, "arrow", str(tmp_path / "f.feather"), io.StringIO())
    assert pa.ipc.open_file(str(tmp_path / "f.feather")).read_all().column_names == [
        "place",
        "start",
        "end",
        "id",
        "trace",
    ]
    write(answers, "parquet", str(tmp_path / "f.parquet"), io.StringIO(), trace=False)
    assert pq.read_table(tmp_path / "f.parquet").column_names == ["place", "start", "end", "id"]


# Tables to read


def table(items: list[Any], width: int | None = None, changes: bool = False, **options: Any) -> list[str]:
    return show_table(answers_of(items, PLAN, Clock(), changes), width, **options).splitlines()


def test_table_on_a_terminal() -> None:
    items = [
        Event("e", ("x", 1), 1, 12, "i", ("a", "b")),
        Event("f", (None,), 3, 4, "j", ("c",)),
        Event("f", ("日本",), 5),
    ]
    assert table(items) == [
        "start  end  event      trace",
        "    1   12  e('x', 1)  a, b",
        "    3    4  f(null)    c",
        "    5    5  f('日本')",
    ]
    assert table(items, trace=False)[1] == "    1   12  e('x', 1)"
    changes = [Change("insert", items[0]), Change("retract", items[1])]
    assert table(changes, changes=True) == [
        "   start  end  event      trace",
        "+      1   12  e('x', 1)  a, b",
        "-      3    4  f(null)    c",
    ]
    assert table([]) == ["start  end  event  trace"]
    assert table([Event("n", ("[bold]",), 1)])[1] == "    1    1  n('[bold]')"


def test_long_traces_are_cut() -> None:
    many = Event("f", (1,), 1, 2, "i", tuple(f"e{i}" for i in range(1261)))
    few = Event("f", (1,), 1, 2, "i", ("e1", "e2"))
    assert table([many])[1] == f"    1    2  f(1)   {', '.join(f'e{i}' for i in range(12))} … 12 of 1,261"
    assert table([many, few], width=50)[1:] == [
        "    1    2  f(1)   e0, e1, e2, e3, e4 … 5 of 1,261",
        "    1    2  f(1)   e1, e2",
    ]
    assert table([many], width=31)[1] == "    1    2  f(1)   … 1,261"
    assert table([many], width=30) == ["start  end  event", "    1    2  f(1)"], "too narrow for traces"
    assert table([Event("f", (1,), 1, 2, "i", ("0123456789abcdef",))], width=31)[1] == "    1    2  f(1)   0123456789a…"
    assert all(len(line) <= 40 for line in table([Event("f", ("x" * 99,), 1)], width=40))
    assert "".join(line.strip() for line in table([Event("f", ("x" * 99,), 1)], width=40)[1:]).count("x") == 99


@given(events(), st.sampled_from([None, 20, 40, 80, 120]))
def test_a_table_has_a_line_for_each_answer(items: list[Event], width: int | None) -> None:
    items = [
        e for e in items if not any(ord(c) < 32 or c in "\x7f\x85\u2028\u2029" for c in repr(e.args) + "".join(e.trace))
    ]
    lines = show_table(answers_of(items, PLAN, Clock()), width).split("\n")
    assert width is not None or len(lines) == len(items) + 2


# Many answers, in pieces


@pytest.mark.parametrize("form", [int, Timestamp, str, lambda i: (None, i)[i % 2], lambda i: (i, f"{i}")[i % 2]])
def test_chunks_are_in_order(form: Callable[[int], Value], monkeypatch: pytest.MonkeyPatch) -> None:
    items = [
        Event("e" if i % 3 else "f", (i, form(i))[: 2 if i % 3 else 1], i, i, f"{i}", (f"t{i}",) * (i % 7))
        for i in range(100)
    ]
    whole = jsonl(answers_of(items, PLAN, Clock()))
    rows = answers_of(items, PLAN, Clock()).to_arrow()
    for first, most, long in ((1, 1, 1), (7, 9, 10**6), (3, 50, 8), (64, 64, 1)):
        for name, value in (("_FIRST", first), ("_MOST", most), ("_LONG", long)):
            monkeypatch.setattr(f"augury.sinks.answers.{name}", value)
        answers = answers_of(items, PLAN, Clock())
        assert jsonl(answers) == whole
        assert answers.to_arrow().equals(rows)
        assert list(answers) == items
        assert [row["arg1"] for row in answers.to_arrow("f").to_pylist()] == [e.args[0] for e in items if e.type == "f"]


# Where it goes


def test_the_ending_says_the_format() -> None:
    names = ["o.jsonl", "o.csv", "o.parquet", "o.arrow", "o.feather", "o.txt", "o.ndjson", "o.srj", "-", "o"]
    assert [format_of(name) for name in names] == [
        "jsonl",
        "csv",
        "parquet",
        "arrow",
        "arrow",
        "table",
        "jsonl",
        "sparql-json",
        None,
        None,
    ]
    assert set(FORMATS) == {"table", "jsonl", "csv", "parquet", "arrow", "sparql-json"}


class Broken(Answers[Event]):
    """Answers that cannot be told to the end."""

    def chunks(self, type: str | None = None, trace: bool = True) -> Any:
        yield from super().chunks(type, trace)
        raise RuntimeError("broken")


def test_a_file_is_replaced_once_the_new_one_is_whole(tmp_path: Path) -> None:
    target = tmp_path / "out.jsonl"
    target.write_text("before")
    target.chmod(0o640)
    whole = answers_of([Event("n", (1,), 1)], PLAN, Clock())
    for format in ("jsonl", "csv", "arrow", "table"):
        with pytest.raises(RuntimeError, match="broken"):
            write(Broken(PLAN, Clock(), whole.parts, whole.which), format, str(target), io.StringIO())
        assert target.read_text() == "before" and os.listdir(tmp_path) == ["out.jsonl"]
    write(whole, "jsonl", str(target), io.StringIO())
    assert json.loads(target.read_text())["args"] == [1] and stat.S_IMODE(target.stat().st_mode) == 0o640
    (tmp_path / "link").symlink_to("out.jsonl")
    write_text("text é", str(tmp_path / "link"), io.StringIO())
    assert (tmp_path / "link").is_symlink() and target.read_text() == "text é"


def test_a_stream_is_written_to(tmp_path: Path) -> None:
    answers = answers_of([Event("n", ("é",), 1)], PLAN, Clock())
    out = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    out.write("first\n")
    write(answers, "csv", "-", out)
    assert out.buffer.getvalue().decode().startswith("first\ntype,")
    text = io.StringIO()
    write(answers, "jsonl", "-", text)
    assert json.loads(text.getvalue())["args"] == ["é"]
    write(answers, "jsonl", os.devnull, text)
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)


def test_what_cannot_be_written(tmp_path: Path) -> None:
    answers = answers_of([], PLAN, Clock())
    with pytest.raises(DataError, match="is a directory"):
        write(answers, "jsonl", str(tmp_path), io.StringIO())
    with pytest.raises(DataError, match=r"no/such/out\.csv: cannot be written: No such file"):
        write(answers, "csv", "no/such/out.csv", io.StringIO())
    (tmp_path / "file").write_text("x")
    with pytest.raises(DataError, match="cannot be written"):
        write(answers, "parquet", str(tmp_path / "file"), io.StringIO())
