"""One history, in every form in which it can come: one answer. By columns as row by row; at once as one by one."""

from __future__ import annotations

import bz2
import gzip
import heapq
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import augury
from augury.core.clock import Clock, Duration, Timestamp
from augury.core.errors import AuguryError, DataError
from augury.core.jit import Kernel
from augury.core.model import Event, HistoryItem, Iri, Revocation, Term
from augury.program import Program
from augury.sources import Reader, SourceFile, csv, jsonl, read_history
from augury.sources import sheet as sheets_of_sources
from augury.sources.objects import IrregularObjects
from augury.sources.text_cells import kind_of_text
from augury.sources.types import kind_of
from augury.testing import Case, compare_answers
from tests.generators.forms import FORMS, ROLES, Cannot, Written
from tests.support.functions import FUNCTIONS
from tests.support.spec_cases import all_cases

ALL = bool(os.environ.get("AUGURY_FUZZ"))
BY_TYPE = ("tables by type", "frames by type")  # they are told in the order of time


@contextmanager
def row_by_row() -> Iterator[None]:
    """Within it, nothing is read by columns: neither the lines of a file, nor cells, nor objects."""

    def fails(*_: object) -> None:
        raise IrregularObjects

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv, "_sheet", csv._one_by_one)
        patch.setattr(jsonl, "_of_one_shape", lambda *_: None)
        patch.setattr(jsonl, "_at_once", lambda *_: None)
        patch.setattr(Reader, "_by_columns", fails)
        patch.setattr(Reader, "_objects", fails)
        patch.setattr(
            sheets_of_sources,
            "kind_of_text",
            lambda parts: kind_of(c or "" for part in parts for c in part.to_pylist()),
        )
        yield


@contextmanager
def by_columns() -> Iterator[None]:
    """Within it, lines of one shape are read without objects, as they are once kernels are compiled."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Kernel, "compiled", True)
        yield


WAYS: list[Callable[[], AbstractContextManager[None]]] = [nullcontext, by_columns, row_by_row]


@contextmanager
def folder() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp())
    try:
        yield path
    finally:
        shutil.rmtree(path)


# The spec cases


def plain_cases() -> list[Case]:
    """Cases with an answer, whose facts are no graph."""
    found = all_cases()
    return [case for case in found if case.expected is not None and "rdf" not in case.settings and case.events]


CASES = plain_cases()


@cache
def compiled(number: int) -> tuple[Program, Clock, Written]:
    case = CASES[number]
    program = case.compiled(FUNCTIONS)
    clock = case.clock(program)
    items = [case.read(line, program, clock) for line in case.events]
    return program, clock, as_table(items, program, clock)


def as_table(items: list[HistoryItem], program: Program, clock: Clock) -> Written:
    """A history as a table, where it is one: the arguments of a type that is not declared are as many as the program reads."""
    plan = program.plan
    named = {name: tuple(a.name for a in attributes) for name, attributes in plan.declared.items()}
    types = {a.name: a.type for attributes in plan.declared.values() for a in attributes}
    events = [item for item in items if isinstance(item, Event)]
    free = {e.type for e in events if e.type not in named}
    whole = Written(tuple(items), types=types, named=named)
    arities = {name: {n for known, n in plan.event_types if known == name} for name in free}
    told = any(len(arities[e.type]) != 1 or len(e.args) not in arities[e.type] for e in events if e.type in free)
    if told or set(types) & set(ROLES) or any(t == "any" for t in types.values()):
        return whole
    loose = tuple(f"x{i}" for i in range(max((len(e.args) for e in events if e.type in free), default=0)))
    points = all(e.start == e.end for e in events)
    roles = ["time"] if points else ["start", "end"]
    roles += ["id"] if any(i.id for i in items) else []
    roles += ["op"] if len(events) < len(items) else []
    roles += ["known"] if any(i.known is not None for i in items) else []
    roles += ["version"] if any(i.version for i in items) else []
    names = ("type", *loose, *types, *roles)
    rows = []
    for item in items:
        said: dict[str, Any] = {"id": item.id or None, "version": item.version}
        if item.known is not None:
            said["known"] = clock.moment(item.known)
        if isinstance(item, Revocation):
            said["op"] = "revoke"
        else:
            said |= {"type": item.type, "start": clock.moment(item.start), "end": clock.moment(item.end)}
            said["time"] = said["end"]
            said |= dict(zip(named.get(item.type, loose), item.args, strict=False))
        rows.append(tuple(said.get(n) for n in names))
    return Written(tuple(items), names, tuple(rows), types, named, frozenset(loose))


def answer(case: Case, program: Program, clock: Clock, events: Any, engine: str) -> list[Event]:
    """The answer of a run, or of a session that is told all at once."""
    given = {k: case.settings[k] for k in ("facts", "until", "as_of", "retention") if k in case.settings}
    if clock.kind == "timestamp":
        given["time_unit"] = "us"
    if engine != "session":
        return augury.run(program, events, clock=clock.kind, engine=engine, **given).events
    until = given.pop("until", None)
    session = program.session(clock=clock.kind, **given)
    session.push(events)
    if until is not None:
        session.advance(until)
        return list(session.events(clock.read(until)))
    return list(session.events(session.now))


@pytest.mark.filterwarnings("ignore:events of types")
@pytest.mark.parametrize("form", FORMS)
def test_spec_cases_in_every_form(form: str) -> None:
    """Some of the cases, each form others; all of them where there is time."""
    first, step = (0, 1) if ALL else (list(FORMS).index(form), len(FORMS) // 2)
    held = 0
    for number in range(first % step, len(CASES), step):
        program, clock, written = compiled(number)
        case = CASES[number]
        if any(
            Reader(program.plan, clock).known_types.problem((e.type, len(e.args)))
            for e in written.items
            if isinstance(e, Event)
        ):
            continue  # what is read from a file has as many arguments as the program uses
        engines = ["embedded", "reference", *(["session"] if "as_of" not in case.settings else [])]
        for engine in engines if ALL else [engines[number % len(engines)]]:
            with folder() as path:
                try:
                    events = FORMS[form](written, path)
                except Cannot:
                    break
                held += 1
                try:
                    found = answer(case, program, clock, events, engine)
                    compare_answers(case.expected or (), found, clock, case.prefixes(program))
                except (AssertionError, AuguryError) as error:
                    raise AssertionError(f"{case.path}: {case.name} on {engine}: {error}") from error
    assert held or not ALL  # a form that holds few cases may have none in a sample


# Random tables

IRIS = st.sampled_from(["http://e/x", "urn:y", "ex:z", "é"])
TEXT = st.one_of(st.text(max_size=5), st.sampled_from(["", "a", "a,b", 'q"q', "x\ny", "x\r\ny", "x\ry", "1", "true", "NULL", " s ", "ü€𝄞", ";", "\t", "type", "-", "1e5", "e5"]))  # fmt: skip
WHOLE = st.one_of(st.integers(-3, 3), st.integers(-(2**63), 2**63 - 1), st.sampled_from([2**53 + 1, 2**63 - 1, -(2**63)]))  # fmt: skip
FLOATS = st.floats(allow_nan=False, allow_infinity=False).map(lambda f: f + 0.0)
MOMENTS = st.one_of(
    st.integers(-30610224000000000, 253402300799999999),  # the years 1000 to 9999
    st.integers(-(10**9), 2 * 10**9).map(lambda s: s * 1_000_000),
    st.integers(0, 10**6).map(lambda h: h * 3_600_000_000),
).map(Timestamp)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "int": WHOLE,
    "float": FLOATS,
    "number": st.one_of(WHOLE, FLOATS),
    "whole number": WHOLE,
    "string": TEXT,
    "bool": st.booleans(),
    "timestamp": MOMENTS,
    "duration": st.integers(-(10**6), 10**12).map(Duration),
    "iri": IRIS.map(Iri),
    "any": TEXT,
    "list": st.lists(st.integers(0, 3), max_size=3).map(tuple),
    "term": st.lists(st.text(max_size=2), max_size=2).map(lambda a: Term("f", tuple(a))),
}
SIMPLE = ("int", "float", "string", "bool", "list", "term", "timestamp", "duration")
PREFIXES = "prefix ex: <http://example.org/>.\n"


@st.composite
def tables(draw: st.DrawFn) -> tuple[str, Clock, Written]:
    """Events of one or two types, declared or not, with what can be said of them; and the program that reads them."""
    count = draw(st.integers(0, 3))
    declared = draw(st.booleans())
    kinds = [draw(st.sampled_from(sorted(VALUES) if declared else SIMPLE)) for _ in range(count)]
    columns = [f"c{i}" for i in range(count)]
    other = draw(st.sampled_from(["none", "declared", "loose"]))
    width = draw(st.integers(0, count))  # of the other type
    clock = Clock(draw(st.sampled_from(["logical", "timestamp"])))
    # A type is declared in an order of its own.
    order = draw(st.permutations(range(count))) if declared else list(range(count))
    named: dict[str, tuple[str, ...]] = {"a": tuple(columns[i] for i in order)} if declared else {}
    types = {columns[i]: kinds[i].split()[-1] for i in range(count)} if declared else {}
    text = PREFIXES
    if declared:
        text += f"event a({', '.join(f'{columns[i]}: {types[columns[i]]}' for i in order)}).\n"
    if other == "declared" and declared:
        named["b"] = tuple(columns[:width])
        text += f"event b({', '.join(f'{c}: {types[c]}' for c in columns[:width])}).\n"
    variables = [f"V{i}" for i in range(count)]
    text += f"e <- a({', '.join(variables)}).\n" + (
        f"f <- b({', '.join(variables[:width])}).\n" if other != "none" else ""
    )
    loose = frozenset(columns if not declared else columns[:width] if other == "loose" else ())
    said = draw(st.sampled_from([("time",), ("start", "end"), ("time", "start", "end"), ("end",)]))
    more = [n for n in ("id", "known") if draw(st.booleans())]
    revoking = "id" in more and draw(st.booleans())
    names = ("type", *columns, *said, *more, *(["op"] if revoking else []))
    nullable = [draw(st.booleans()) for _ in columns]
    rows: list[tuple[Any, ...]] = []
    items: list[HistoryItem] = []
    instants = MOMENTS if clock.kind == "timestamp" else st.integers(-(2**59), 2**59)
    for number in range(draw(st.integers(0, 7))):
        cells: dict[str, Any] = {}
        known = draw(st.none() | instants) if "known" in more else None
        if revoking and draw(st.integers(0, 4)) == 0:
            cells = {"op": "revoke", "id": f"e{draw(st.integers(0, 9))}", "known": known}
            items.append(Revocation(cells["id"], point(known)))
        else:
            type = "b" if other != "none" and draw(st.booleans()) else "a"
            own = named.get(type) or tuple(columns[: width if type == "b" else count])
            for name in own:
                at = columns.index(name)
                cells[name] = None if nullable[at] and draw(st.integers(0, 3)) == 0 else draw(VALUES[kinds[at]])
            low, high = sorted((draw(instants), draw(instants)), key=lambda t: point(t) or 0)
            cells |= {"type": type, "known": known, "id": f"e{number}" if draw(st.booleans()) else None}
            cells |= {"op": draw(st.sampled_from([None, "insert"]))}
            match said:
                case ("time",) | ("end",):
                    cells[said[0]] = low = high
                case ("start", "end"):
                    cells |= {"start": low, "end": high}
                case _:  # the time stands for the start, or the end, that is missing
                    cells |= draw(st.sampled_from([{"time": low, "end": high}, {"time": high, "start": low},
                                                   {"start": low, "end": high}, {"time": low, "start": low, "end": high}]))  # fmt: skip
            args = tuple(expanded(cells[n]) for n in own)
            id = (cells["id"] or "") if "id" in more else ""
            items.append(Event(type, args, point(low) or 0, point(high) or 0, id, known=point(known)))
        rows.append(tuple(cells.get(n) for n in names))
    written = Written(tuple(items), names, tuple(rows), types, named, loose, draw(st.integers(0, 19)))
    return text, clock, written


def point(time: Any) -> int | None:
    return time.us if isinstance(time, Timestamp) else time


def expanded(value: Any) -> Any:
    """What an IRI is, where it is written with a prefix."""
    if isinstance(value, Iri) and value.text.startswith("ex:"):
        return Iri("http://example.org/" + value.text[3:])
    return value


def arrived(program: Program, clock: Clock, events: Any) -> list[str]:
    return list(map(repr, read_history(Reader(program.plan, clock), events).items()))


held: dict[str, int] = dict.fromkeys(FORMS, 0)


@given(tables())
@settings(max_examples=2000 if ALL else 20)
def test_random_tables_in_every_form(given_table: tuple[str, Clock, Written]) -> None:
    text, clock, written = given_table
    program = augury.compile(text)
    expected = list(map(repr, written.items))
    for form, write in FORMS.items():
        for way in WAYS:
            with folder() as path:
                try:
                    events = write(written, path)
                except Cannot:
                    break
                held[form] += 1
                with way():
                    found = arrived(program, clock, events)
            if form in BY_TYPE:
                assert sorted(found) == sorted(expected), (form, way)
            else:
                assert found == expected, (form, way)


@pytest.mark.skipif(not ALL, reason="few tables are drawn, and some forms can hold few of them")
def test_every_form_was_tried() -> None:
    """A form that could hold none of the random tables was not tested."""
    if any(held.values()):
        assert not [form for form, count in held.items() if count < 5]


# Odd cells: whatever a table has, by columns as row by row

ODD: list[Any] = [None, "", "a", "b", 0, 1, 1.0, 2.5, -0.0, float("nan"), float("inf"), True, 2**63, 2**70, [], [1], ["a", None], {"functor": "f", "args": [1]},
                  {"x": 1}, "2026-01-01", "2026-01-01T10:00:00+01:00", "2026-01-01 10:00:60", "2026-01-01T10:00+01:75", "20260101", "7", " 7", "+7", "-7", "0x7", "1_0", "٣", "²",
                  "3.0", "1h", "-1h", "1h 30min", "nan", "inf", "1e400", "revoke", "insert", "drop", Timestamp(5), Duration(5), Iri("urn:x"), Term("f", (1, None)),
                  np.int64(4), np.float64(4.5), np.float64("nan"), np.bool_(True), np.datetime64("2026-01-01T10:00:00"), pd.NaT, pd.NA, pd.Timestamp("2026-01-01", tz="Asia/Tokyo")]  # fmt: skip
PROGRAMS = [
    "e <- a(X, Y).",
    "e <- a(X, Y). f <- b(X).",
    "event a(x: int, y: string). event b(y: any). e <- a(X, Y). f <- b(X).",
    "event a(x: float, y: timestamp). e <- a(X, Y). f <- b(X).",
    "event a(x: number, y: duration). event b(x: bool, id: any). e <- a(X, Y). f <- b(X, Y).",
    "event a(time: any, op: any). event b(known: iri, start: any). e <- a(X, Y). f <- b(X, Y).",
    "event a(x: term, y: list). e <- a(X, Y).",
]
CLOCKS = [Clock(), Clock("timestamp"), Clock("timestamp", guessed=True)]
KEYS = ["type", "x", "y", "time", "start", "end", "id", "op", "known", "args"]


def outcome(read: Any) -> Any:
    """What arrives, and what is said of the rest; or what stops it."""
    from augury.sources import Skipped

    found: list[Any] = []
    for on_error in ("stop", "skip"):
        skipped = Skipped(on_error)
        try:
            history = read(skipped)
            found.append(([repr(i) for i in history.items()], len(history), history.unknown, skipped.problems))
        except AuguryError as error:
            found.append((str(error), skipped.problems))
    return found


def both_ways(program: str, clock: Any, make: Any) -> None:
    plan = augury.compile(program).plan
    columns = outcome(lambda skipped: read_history(Reader(plan, clock, skipped), make()))
    with row_by_row():
        rows = outcome(lambda skipped: read_history(Reader(plan, clock, skipped), make()))
    assert columns == rows
    stopped, skipped = columns
    if len(stopped) == 2 and len(skipped) == 4:  # what stops a run is the first thing that is wrong
        assert stopped[0].split("\n")[0] == skipped[3][0]
    elif len(skipped) == 4:
        assert not skipped[3]


objects_of = st.lists(
    st.fixed_dictionaries({}, optional={k: st.sampled_from(["a", "b", "c"]) if k == "type" else st.sampled_from(ODD) for k in KEYS}),
    max_size=6,
)  # fmt: skip
usual = st.builds(
    lambda type, x, y, time, more: {"type": type, "x": x, "y": y, "time": time} | more,
    st.sampled_from(["a", "b"]), st.sampled_from(ODD), st.sampled_from(ODD), st.sampled_from([1, 2, "3", 4.0, "2026-01-01"]),
    st.fixed_dictionaries({}, optional={"id": st.sampled_from([None, "", "i", 5, True, 2**70]), "op": st.sampled_from([None, "revoke", ""]),
                                        "known": st.sampled_from([None, "", 3, "4", float("nan"), Timestamp(5)])}),
)  # fmt: skip


@given(
    st.sampled_from(PROGRAMS),
    st.sampled_from(CLOCKS),
    st.lists(objects_of, max_size=1) | st.lists(usual, max_size=5).map(lambda o: [o]),
)
@settings(max_examples=3000 if ALL else 250)
def test_odd_objects_by_columns_as_one_by_one(program: str, clock: Clock, given_objects: list[list[Any]]) -> None:
    both_ways(program, clock, lambda: [dict(o) for some in given_objects for o in some])


CELLS = st.sampled_from([str(o) for o in ODD if isinstance(o, str | int | float)]) | st.text(max_size=3)


@given(st.sampled_from(PROGRAMS), st.sampled_from(CLOCKS), st.permutations(KEYS[:-1]), st.integers(1, 9), st.data())
@settings(max_examples=3000 if ALL else 200)
def test_odd_cells_by_columns_as_row_by_row(
    program: str, clock: Clock, order: list[str], width: int, data: Any
) -> None:
    import csv as plain_csv
    import io

    names = order[:width]
    names += [n for n in ("type", "time") if n not in names]
    out = io.StringIO()
    writer = plain_csv.writer(out, lineterminator=data.draw(st.sampled_from(["\n", "\r\n", "\r"])))
    writer.writerow(names)
    for _ in range(data.draw(st.integers(0, 5))):
        plain = {
            "type": data.draw(st.sampled_from(["a", "b", "a", "7"])),
            "time": data.draw(st.sampled_from(["1", "2026-01-01", ""])),
        }
        row = [plain[n] if n in plain and data.draw(st.integers(0, 5)) else data.draw(CELLS) for n in names]
        writer.writerow(row[: len(row) - (data.draw(st.integers(0, 9)) == 0)])
    with folder() as path:
        (path / "odd.csv").write_bytes(out.getvalue().encode())
        both_ways(program, clock, lambda: SourceFile(str(path / "odd.csv")))


ARRAYS = st.sampled_from([
    pa.array(["a", "b", None, ""]), pa.array(["a", "b", "a", "a"], pa.string_view()), pa.array(["a", "b", None, "a"]).dictionary_encode(),
    pa.array([1, 2, 3, None]), pa.array([1, 2**63, 3, None], pa.uint64()), pa.array([1.0, 2.0, float("nan"), None]), pa.array([1.5, float("inf"), -0.0, 3.0]),
    pa.array([True, False, None, True]), pa.nulls(4), pa.array([1, 2, 3, None], pa.timestamp("us", "Asia/Tokyo")), pa.array([-1, -1001, 999, None], pa.timestamp("ns")),
    pa.array([2**62, 0, 1, 2], pa.timestamp("s")), pa.array([1, None, 3, 4], pa.date32()), pa.array([-1, 1001, None, 5], pa.duration("ns")), pa.array([2**62, 1, 2, 3], pa.duration("s")),
    pa.array(["2026-01-01", "2026-01-01T10:00Z", None, "x"], pa.large_string()), pa.array(["revoke", None, "insert", ""]), pa.array([[1], None, [], [2, None]]),
    pa.array([{"args": [1], "functor": "f"}, None, {"args": None, "functor": "g"}, {"args": [], "functor": None}]),
    pa.array(["7", " 7", "-7", "2026-01-01 10:00:00.5"], pa.string_view()),
])  # fmt: skip


@given(
    st.sampled_from(PROGRAMS),
    st.sampled_from(CLOCKS),
    st.dictionaries(st.sampled_from(KEYS[:-1]), ARRAYS, max_size=7),
    st.booleans(),
)
@settings(max_examples=3000 if ALL else 250)
def test_odd_columns_as_row_by_row(program: str, clock: Clock, columns: dict[str, Any], usual_times: bool) -> None:
    columns = {"type": pa.array(["a", "b", "a", "c"]), **columns}
    if usual_times or not {"time", "start", "end"} & set(columns):
        columns["time"] = pa.array([5, 6, 7, 8], pa.timestamp("us") if clock.guessed else pa.int64())
    both_ways(program, clock, lambda: pa.table(columns))


# Several sources


def merged(sources: list[list[HistoryItem]]) -> list[HistoryItem]:
    """The law: of what comes next in the sources, the earliest is said first; a revocation that names no time at once."""

    def time(item: HistoryItem) -> float:
        return item.known if item.known is not None else item.end if isinstance(item, Event) else float("-inf")

    found: list[HistoryItem] = []
    waiting = [(time(source[0]), number, 0) for number, source in enumerate(sources) if source]
    heapq.heapify(waiting)
    while waiting:
        _, number, at = heapq.heappop(waiting)
        found.append(sources[number][at])
        if at + 1 < len(sources[number]):
            heapq.heappush(waiting, (time(sources[number][at + 1]), number, at + 1))
    return found


told = st.one_of(
    st.builds(lambda type, t, d, k: Event(type, (1,), t, t + d, known=k), st.sampled_from("abc"), st.integers(0, 9), st.integers(0, 3), st.none() | st.integers(0, 9)),
    st.builds(lambda n, k: Revocation(f"e{n}", k), st.integers(0, 5), st.none() | st.integers(0, 9)),
)  # fmt: skip


@given(
    st.lists(st.lists(told, max_size=6), min_size=1, max_size=4),
    st.booleans(),
    st.sampled_from(["csv", "jsonl", "parquet"]),
)
def test_several_sources_are_merged(given_sources: list[list[HistoryItem]], in_order: bool, form: str) -> None:
    program = augury.compile("e(X) <- a(X). f(X) <- b(X) SEQ c(X).")
    number = iter(range(99))
    sources = [
        [i if isinstance(i, Revocation) else Event(i.type, i.args, i.start, i.end, f"e{next(number)}", known=i.known) for i in items]
        for items in given_sources
    ]  # fmt: skip
    with folder() as path:
        files = []
        for i, items in enumerate(sources):
            written = as_table(list(items), program, Clock())
            name = {"csv": "CSV", "jsonl": "JSON lines", "parquet": "Parquet"}[form]
            (path / str(i)).mkdir()
            files.append(FORMS[name](written, path / str(i)))
        found = Reader(program.plan, Clock()).sources(files, in_order)
    assert [repr(i) for i in found.items()] == [repr(i) for i in merged(sources)]
    assert len(found) == sum(map(len, sources))


def test_sources_without_ids_keep_their_order_where_it_does_not_matter(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("type,x,time\na,1,5\na,2,9\n")
    (tmp_path / "b.csv").write_text("type,x,time\na,3,1\na,4,6\n")
    plan = augury.compile("e(X) <- a(X).").plan
    files = [SourceFile(str(tmp_path / name)) for name in ("a.csv", "b.csv")]
    assert [e.args for e in Reader(plan, Clock()).sources(files).items()] == [(1,), (2,), (3,), (4,)]  # type: ignore[union-attr]
    assert [e.args for e in Reader(plan, Clock()).sources(files, True).items()] == [(3,), (1,), (4,), (2,)]  # type: ignore[union-attr]


# At once as one by one

PAIRS = augury.compile(
    "pair(X, Y) <- (a(X) SEQ b(Y)).6.\nalone(X) <- i: a(X), w: extend(i, 3s), while w: not b(_).\nsum_of(sum(X)) <- i: b(_), w: extend_backward(i, 4s), while w: collect a(X)."
)
pushed = st.one_of(
    st.builds(lambda type, x, t, d, id: Event(type, (x,), t, t + d, id), st.sampled_from("aabbc"), st.integers(0, 2), st.integers(0, 30), st.sampled_from([0, 0, 0, 1, 5]),
              st.one_of(st.just(""), st.just(""), st.integers(0, 12).map(lambda n: f"e{n}"))),
    st.builds(lambda n: Revocation(f"e{n}"), st.integers(0, 12)),
)  # fmt: skip


def state(session: Any) -> Any:
    """What a session answers, and what it has put aside."""
    answers = sorted((e.type, e.args, e.start, e.end) for e in session.events())
    return (
        answers,
        list(map(repr, session.late)),
        [(repr(e), why) for e, why in session.rejected],
        session.greatest,
        session.frontier,
    )


def sorted_state(session: Any) -> Any:
    answers, late, rejected, *rest = state(session)
    return answers, sorted(late), sorted(rejected), rest


@st.composite
def pushes(draw: st.DrawFn) -> list[HistoryItem]:
    """More items than are taken one by one, with a drift of the time that makes some of them late."""
    some = draw(st.lists(pushed, min_size=4, max_size=24))
    drift = draw(st.integers(0, 2))
    times = -(-70 // len(some))
    return [
        item if isinstance(item, Revocation) else Event(item.type, item.args, item.start + drift * k, item.end + drift * k, item.id and f"{item.id}{'x' * (k % 2)}")
        for k in range(times) for item in some
    ]  # fmt: skip


@given(pushes(), st.lists(pushed, max_size=4), st.sampled_from([None, "3s", "12s"]), st.sampled_from([None, "2s"]), st.sampled_from([True, "1s", "20s"]),
       st.none() | st.integers(0, 12))  # fmt: skip
@settings(max_examples=2000 if ALL else 80)
def test_a_long_list_as_one_by_one(
    items: list[HistoryItem],
    before: list[HistoryItem],
    lateness: str | None,
    longest: str | None,
    revisable: Any,
    promised: int | None,
) -> None:
    sessions = [
        PAIRS.session(clock="logical", lateness=lateness, longest=longest, revisable=revisable) for _ in range(3)
    ]
    for session in sessions:
        session.push(before)
        if promised is not None:
            session.advance(promised)
    whole, single, dicts = sessions
    assert len(items) > 64
    whole.push(items)
    for item in items:
        single.push(item)
    dicts.push([
        {"op": "revoke", "id": i.id} if isinstance(i, Revocation) else {"type": i.type, "args": list(i.args), "start": i.start, "end": i.end, "id": i.id}
        for i in items
    ])  # fmt: skip
    assert state(whole) == state(dicts)
    assert sorted_state(whole) == sorted_state(single)


@pytest.mark.filterwarnings("ignore:events of types")
@given(pushes())
def test_a_long_list_is_what_the_reference_says(items: list[HistoryItem]) -> None:
    found, expected = (augury.run(PAIRS, items, clock="logical", engine=e) for e in ("embedded", "reference"))
    assert [(e.type, e.args, e.start, e.end) for e in found] == [(e.type, e.args, e.start, e.end) for e in expected]
    assert sorted(repr(e) for e, _ in found.rejected) == sorted(repr(e) for e, _ in expected.rejected)


@given(pushes(), st.sampled_from([None, "3s"]), st.sampled_from([None, "2s"]), st.booleans())
def test_tables_give_the_answers_of_lists(
    items: list[HistoryItem], lateness: str | None, longest: str | None, named: bool
) -> None:
    """Tables by type are told in the order of time, so that nothing in them makes anything else late."""
    events = [i if named else Event(i.type, i.args, i.start, i.end) for i in items if isinstance(i, Event)]
    ids: dict[str, Event] = {}
    events = [e for e in events if not e.id or ids.setdefault(e.id, e) is e]  # each id once
    tables = {
        type: pa.table({"x": [e.args[0] for e in events if e.type == type], "start": [e.start for e in events if e.type == type],
                        "end": [e.end for e in events if e.type == type], "id": pa.array([e.id or None for e in events if e.type == type], pa.string())})
        for type in {e.type for e in events} - {"c"}
    }  # fmt: skip
    events = [e for e in events if e.type != "c"]
    if not tables:
        return
    by_table, by_list = (PAIRS.session(clock="logical", lateness=lateness, longest=longest) for _ in range(2))
    by_table.push(tables)
    for event in sorted(events, key=lambda e: e.end):
        by_list.push(event)
    assert sorted_state(by_table) == sorted_state(by_list)


# What was found, one by one


def read_text(
    name: str, text: str | bytes, program: str, path: Path, clock: Any = None, **given_names: Any
) -> list[HistoryItem]:
    (path / name).write_bytes(text.encode() if isinstance(text, str) else text)
    return read_history(
        Reader(augury.compile(program).plan, clock or Clock()), augury.read(path / name, **given_names)
    ).items()


def args_of(items: Iterable[HistoryItem]) -> list[Any]:
    return [item.args for item in items if isinstance(item, Event)]


# A table of one type whose rows name types

TYPED = [{"type": "payment", "amount": 5, "time": 1}, {"type": "login", "amount": 7, "time": 2}]


def typed_file(form: str, folder: Path) -> Path:
    """Rows of two types in a file."""
    path = folder / f"tx.{form}"
    table = pa.Table.from_pylist(TYPED)
    match form:
        case "csv":
            pyarrow.csv.write_csv(table, path)
        case "parquet":
            pyarrow.parquet.write_table(table, path)
        case "arrow":
            pyarrow.feather.write_feather(table, path)
    return path


@pytest.mark.parametrize("form", ["csv", "parquet", "arrow"])
def test_a_table_of_one_type_does_not_name_types(form: str, tmp_path: Path) -> None:
    path = typed_file(form, tmp_path)
    with pytest.raises(DataError, match="has a column `type`, but the source says that all its events are `payment`"):
        augury.run("e(A) <- payment(A).", augury.read(path, type="payment"))
    assert [e.args for e in augury.run("e(A) <- payment(A). f(A) <- login(A).", augury.read(path))] == [(5,), (7,)]
    declared = "event payment(amount: int, type: string).\ne(A, T) <- payment(A, T)."
    assert len(augury.run(declared, augury.read(path, type="payment"))) == 2


def test_a_frame_of_one_type_does_not_name_types() -> None:
    with pytest.raises(DataError, match="has a column `type`"):
        augury.run("e(A) <- payment(A).", {"payment": pa.Table.from_pylist(TYPED)})


def test_an_object_is_of_the_type_that_it_names(tmp_path: Path) -> None:
    path = tmp_path / "tx.jsonl"
    path.write_text("\n".join(map(json.dumps, [*TYPED, {"amount": 9, "time": 3}])), encoding="utf-8")
    rules = "event payment(amount: int).\nevent login(amount: int).\ne(A) <- payment(A)."
    assert [e.args for e in augury.run(rules, augury.read(path, type="payment"))] == [(5,), (9,)]
    declared = "event payment(amount: int, type: string).\ne(A, T) <- payment(A, T)."
    path.write_text("\n".join(map(json.dumps, TYPED)), encoding="utf-8")
    found = augury.run(declared, augury.read(path, type="payment"))
    assert [e.args for e in found] == [(5, "payment"), (7, "login")]


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl", "json", "parquet", "arrow"])
@pytest.mark.parametrize("packed", ["", ".gz", ".bz2"])
def test_an_empty_file_is_an_empty_history(ending: str, packed: str, tmp_path: Path) -> None:
    path = tmp_path / f"none.{ending}{packed}"
    pack: Any = {"": bytes, ".gz": gzip.compress, ".bz2": bz2.compress}[packed]
    for data in {b"", pack(b"")}:
        path.write_bytes(data)
        for type in (None, "a"):
            assert len(augury.run("e(X) <- a(X).", augury.read(path, type=type))) == 0


def test_the_kind_of_a_column_is_that_of_all_its_parts() -> None:
    """A large file comes in parts: integers in one and booleans in another are text."""
    for first, second in (("1", "true"), ("1.5", "true"), ("", "true"), ("1", "1.5")):
        parts = [pa.array([cell or None], pa.string()) for cell in (first, second)]
        assert kind_of_text(parts) == kind_of([first, second]), (first, second)
