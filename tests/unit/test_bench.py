"""The benchmarks count right: streams, programs and baselines agree with brute force. Nothing here depends on speed."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from io import StringIO
from itertools import groupby
from pathlib import Path
from random import Random
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.console import Console

import augury
from augury.algebra.sphere import distances_km
from augury.cli.bench import bench as bench_command
from augury.core.model import Change, Event, Iri, Revocation
from augury.knowledge.rdf_files import read_rdf
from augury.knowledge.rdfs import TYPE, closure
from augury.sources import Skipped
from bench import (
    charts,
    counts,
    event_files,
    extras,
    files,
    graph_events,
    history_files,
    knowledge,
    main,
    paper_v,
    papers,
    reachability,
    spaseq,
    triples,
)
from bench.baselines import LOOPS, duckdb_query
from bench.measure import Settings, Timing, measure
from bench.patterns import PATTERNS, PRELUDE, RUN, SEQUENCE, VALLEY, Pattern
from bench.processes import Used, alone, peak, spent
from bench.report import as_json, figures, table
from bench.rows import Row, throughput
from bench.streams import SEED, WINDOW, Stream, Streams, abcd, kleene, stock, streams
from bench.workload import Workload, stream_tables

SMALL = 400
# What everyone who draws these streams finds among 2,000 events.
AGREED = {
    "P1": 281, "P2-10": 40, "P2-50": 177, "P2-100": 359, "P3": 315, "P4": 500, "P5-first": 402, "P5-each": 727,
    "P6": 258, "P7": 16 * 281, "P8": 403,
}  # fmt: skip


class Rerun:
    """A session that evaluates the whole history anew by the reference evaluator at each step."""

    def __init__(self, program: augury.Program, /, **options: Any) -> None:
        self.program, self.facts = program, options.get("facts", ())
        self.history: list[Event | Revocation] = []
        self.stands: dict[Any, Event] = {}

    def push(self, given: Any, /) -> list[Change]:
        if isinstance(given, Event):
            return self._step([given])
        return self._step([_event(name, row) for name, table in given.items() for row in table.to_pylist()])

    def revoke(self, ids: Any, /) -> list[Change]:
        return self._step([Revocation(i) for i in ids])

    def _step(self, items: list[Any]) -> list[Change]:
        self.history += items
        now = {e.content: e for e in augury.run(self.program, self.history, clock="logical", facts=self.facts)}
        before, self.stands = self.stands, now
        gone = [Change("retract", event) for key, event in before.items() if key not in now]
        return gone + [Change("insert", event) for key, event in now.items() if key not in before]


class Forgetful(Rerun):
    """Loses one answer at each step."""

    def push(self, given: Any, /) -> list[Change]:
        return super().push(given)[1:]


def _event(name: str, row: dict[str, Any]) -> Event:
    args = tuple(value for column, value in row.items() if column not in ("time", "id"))
    return Event(name, args, row["time"], id=row.get("id", ""))


def tiny() -> Streams:
    """As the streams are, but with few symbols, so that a short stream has valleys."""
    rng = Random(SEED)
    return Streams(abcd(200, rng), kleene(200, rng), stock(100, rng, symbols=4))


def by_key(stream: Stream) -> Iterator[list[tuple[str, int, float, float, int]]]:
    for _, rows in groupby(sorted(stream.rows(), key=lambda row: row[1]), key=lambda row: row[1]):
        yield list(rows)


def enumerated(stream: Stream) -> dict[str, int]:
    """The counts by trying all combinations of the events of a key, which `counts` does not."""
    found = dict.fromkeys(("P1", "P2-10", "P2-50", "P2-100", "P3", "P4", "P5-first", "P5-each"), 0)
    for rows in by_key(stream):
        parts = {kind: [row for row in rows if row[0] == kind] for kind in "abcd"}
        for a in parts["a"]:
            after = [r for r in rows if a[4] < r[4] <= a[4] + WINDOW]
            found["P5-first"] += any(r[0] in "bc" for r in after)
            found["P5-each"] += sum(r[0] in "bc" for r in after)
            for b in (r for r in after if r[0] == "b"):
                for percent in (10, 50, 100):
                    found[f"P2-{percent}"] += b[3] < percent / 100
                found["P1"] += sum(c[4] > b[4] for c in after if c[0] == "c")
                found["P3"] += not any(c[4] < b[4] for c in after if c[0] == "c")
            for b in parts["b"]:
                for c in parts["c"]:
                    times = (a[4], b[4], c[4])
                    found["P4"] += max(times) - min(times) <= WINDOW
    return found


def spelt(stream: Stream) -> int:
    """Rising runs by key, read off as words: the kinds without d, and the x of the b sorted without repeats."""
    found = 0
    for rows in by_key(stream):
        word = "".join(row[0] for row in rows if row[0] != "d")
        xs = [row[2] for row in rows if row[0] == "b"]
        found += word == "a" + "b" * len(xs) + "c" and xs == sorted(set(xs))
    return found


def hollows(stream: Stream) -> int:
    """Valleys as lows: ticks below both neighbours, of which some later tick is not above the one before it."""
    found = 0
    for rows in by_key(stream):
        price = [row[2] for row in rows]
        for i in range(1, len(price) - 1):
            closed = any(price[j] <= price[j - 1] for j in range(i + 1, len(price)))
            found += price[i - 1] > price[i] < price[i + 1] and closed
    return found


def test_streams_are_what_everyone_draws() -> None:
    given = streams(2000)
    assert {p.name: p.expected(p.stream(given)) for p in PATTERNS} == AGREED
    assert next(given.abcd.rows()) == ("b", 1, 0.556665, 0.133175, 1_000_000)
    for stream in (given.abcd, given.kleene, given.stock):
        assert len(stream) == 2000 and stream.time[0] == 1_000_000 and set(stream.time[1:] - stream.time[:-1]) == {1}


@pytest.mark.parametrize("size", [4, 100, SMALL])
def test_counts_are_those_of_all_combinations(size: int) -> None:
    rng = Random(size)
    stream = abcd(size, rng)
    expected = enumerated(stream)
    assert {p.name: p.expected(stream) for p in PATTERNS if p.name in expected} == expected
    run = kleene(size, rng)
    assert counts.rising_runs(run) == spelt(run)
    prices = stock(size, rng, symbols=3)
    assert counts.valleys(prices) == hollows(prices)


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda p: p.name)
def test_programs_count_right(pattern: Pattern) -> None:
    stream = pattern.stream(tiny())
    program = augury.compile(pattern.text)
    assert not program.warnings
    assert len(augury.run(program, stream.events())) == pattern.expected(stream) > 0


def test_a_valley_is_one_answer_from_top_to_close() -> None:
    prices = [5, 4, 3, 4, 4, 3, 5, 6, 2, 2, 1, 3]
    events = [Event("a", (1, float(p), 0.0), t) for t, p in enumerate(prices)]
    found = augury.run(augury.compile(PRELUDE + VALLEY), events)
    assert [(e.start, e.end) for e in found] == [(0, 4), (4, 8)]


def test_a_run_has_nothing_but_its_neighbours() -> None:
    word = "abbcbcaabdcb"  # the second c does not follow from the first a, and the third a begins anew
    events = [Event(kind, (1, float(t), 0.0), t) for t, kind in enumerate(word)]
    found = augury.run(augury.compile(PRELUDE + RUN), events)
    rows = [(kind, 1, float(t), 0.0, t) for t, kind in enumerate(word)]
    assert [(e.start, e.end) for e in found] == [(0, 3), (7, 10)] == [a[1:] for a in LOOPS["P6"](rows)]


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda p: p.name)
def test_loops_count_right(pattern: Pattern) -> None:
    stream = pattern.stream(streams(2000))
    assert len(LOOPS[pattern.name](stream.rows())) == AGREED[pattern.name]


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda p: p.name)
def test_sql_counts_right(pattern: Pattern) -> None:
    pytest.importorskip("duckdb")
    stream = pattern.stream(streams(2000))
    assert duckdb_query(pattern.name, stream)() == AGREED[pattern.name]


@pytest.mark.parametrize("name", [*main.GROUPS["R"], *main.GROUPS["V"]])
def test_experiments_count_right(name: str) -> None:
    rows = list(main.ALL[name](Settings(events=SMALL, repeat=1, open=Rerun)))
    assert rows and all(row.right and row.expected is not None and row.value > 0 for row in rows)
    assert {row.figure for row in rows} <= set(main.TITLES)


def opened(program: augury.Program, /, **options: Any) -> Any:
    """A session whose kernels are not compiled."""
    return program.session(clock="logical", **options)


@pytest.mark.parametrize("name", [*main.GROUPS["graphs"], *main.GROUPS["spaseq"]])
def test_graph_events_are_counted_right(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("rdflib")
    monkeypatch.setattr(graph_events, "count_work", lambda rows: None)
    monkeypatch.setattr(graph_events, "KNOWN", (1_000, 2_000))
    monkeypatch.setattr(spaseq, "MINUTES", (1, 100))
    rows = list(main.ALL[name](Settings(events=SMALL, repeat=1)))
    assert rows and all(row.right for row in rows)
    assert any(row.expected for row in rows)


@pytest.mark.parametrize("name", ["E2", "E4", "E6", *main.GROUPS["B"]])
def test_tables_of_the_papers_count_right(name: str) -> None:
    rows = list(main.ALL[name](Settings(events=5_000, repeat=1, open=opened)))
    assert rows and all(row.right for row in rows if row.answers is not None)
    assert any(row.expected for row in rows)
    assert {row.figure for row in rows} <= set(main.TITLES)


def test_a_paper_is_all_of_its_experiments() -> None:
    assert main.chosen(["paper", "E"]) == ["E2", "E3", "E4", "E6"]
    assert set(main.chosen(["paper"])) == {name for names in papers.PAPERS.values() for name in names}
    assert set(papers.SAYS) <= set(main.TITLES)
    with pytest.raises(KeyError, match="paper X"):
        main.chosen(["paper", "X"])


@pytest.mark.parametrize("name", main.GROUPS["nexmark"])
def test_nexmark_agrees_with_duckdb(name: str) -> None:
    """Answers of a run are DuckDB's; those of a session are as many."""
    rows = list(main.ALL[name](Settings(events=2_000, repeat=1, sessions=True)))
    assert {row.series for row in rows} == {"augury", "DuckDB"} and all(row.right for row in rows)
    assert any(row.answers for row in rows if row.figure == "nexmark-session")


@pytest.mark.parametrize("name", main.GROUPS["linearroad"])
def test_linear_road_agrees_with_duckdb(name: str) -> None:
    pytest.importorskip("duckdb")
    theirs, mine = main.ALL[name](Settings(events=2_000, repeat=1))
    assert (theirs.series, mine.series) == ("DuckDB", "augury") and mine.right
    assert int(mine.note.split()[0]) > 5


@pytest.mark.parametrize("name", main.GROUPS["knowledge"])
def test_knowledge_counts_right(name: str) -> None:
    rows = list(main.ALL[name](Settings(events=5_000, repeat=1, open=opened)))
    assert rows and all(row.right and row.value > 0 for row in rows)
    assert any(row.answers for row in rows) and any(row.met is not None for row in rows)
    assert {row.figure for row in rows} <= set(main.TITLES)


@pytest.mark.parametrize("name", reachability.GRAPHS)
def test_graphs_are_followed_edge_by_edge(name: str) -> None:
    graph = reachability.GRAPHS[name](24, 60, np.random.default_rng(SEED))
    ends: dict[int, set[int]] = {}
    for a, b in zip(graph.source.tolist(), graph.target.tolist(), strict=True):
        ends.setdefault(a, set()).add(b)
    for start, found in enumerate(reachability.reached(graph, np.arange(graph.nodes))):
        expected, todo = set[int](), [start]
        while todo:
            new = ends.get(todo.pop(), set()) - expected
            expected |= new
            todo += new
        assert set(found.tolist()) == expected
    acyclic = name in ("random DAG", "sparse DAG", "tree")
    assert acyclic == all(
        start not in found for start, found in enumerate(reachability.reached(graph, np.arange(graph.nodes)))
    )


@pytest.mark.parametrize("domains", [False, True])
def test_types_are_those_of_the_closure(domains: bool, tmp_path: Path) -> None:
    given = triples.ontology(200, 10, domains)
    given.write(tmp_path / "graph.nt")
    read = read_rdf(str(tmp_path / "graph.nt"), Skipped())
    types = {(s, o) for s, p, o in closure(read) if p == TYPE}
    asked = triples.questions(given, 50)
    pairs = [
        (Iri(f"{triples.SPACE}x{x}"), Iri(f"{triples.SPACE}c{c}")) for x, c in zip(asked.thing, asked.kind, strict=True)
    ]
    assert sum(pair in types for pair in pairs) == asked.held > 25
    assert sum(s == x for x, _ in pairs[: asked.few] for s, _ in types) == asked.classes > 0


def test_near_pairs_are_those_of_all() -> None:
    rng = np.random.default_rng(SEED)
    at, (lat, lon) = knowledge.places(200, rng), knowledge.places(300, rng)
    every = distances_km(lat[:, None], lon[:, None], at[0][None, :], at[1][None, :])
    assert knowledge.near_pairs(lat, lon, at) == int(np.sum(every < knowledge.KM)) > 0


def test_one_rule_of_a_hundred_is_concerned() -> None:
    alone = augury.compile(PRELUDE + SEQUENCE)
    among = augury.compile(PRELUDE + SEQUENCE + "\n" + extras.other_rules(extras.OTHER_RULES))
    events = streams(SMALL).abcd.events()
    assert len(among.plan.rules) == 100
    assert augury.run(among, events).events == augury.run(alone, events).events


def test_latency_counts_right() -> None:
    rows = list(extras.latency(Settings(events=16, repeat=1, open=Rerun)))
    assert rows and all(row.right and row.value > 0 for row in rows)


def test_a_long_run_counts_right(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(extras, "open_session", Rerun)
    monkeypatch.setattr(extras, "MEMORY_PIECE", 40)
    extras.long_run(200)
    report = json.loads(capsys.readouterr().out)
    assert report["answers"] == report["expected"] > 0
    assert len(report["megabytes"]) == 5 and min(report["megabytes"]) > 1


def test_tables_hold_the_stream() -> None:
    stream = streams(SMALL).kleene
    rows = [_event(n, r) for step in stream_tables(stream, 64) for n, t in step.items() for r in t.to_pylist()]
    assert sorted(rows, key=lambda e: e.start) == stream.events()


def test_a_wrong_count_is_said(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    settings = Settings(events=SMALL, repeat=1, open=Forgetful)
    assert main.run(["R5a"], json_path=str(path), charts_dir=str(tmp_path), settings=settings) == 1
    said = capsys.readouterr()
    assert "WRONG" in said.out and "WRONG: R5a" in said.err
    assert "WRONG" in (tmp_path / "R5a.svg").read_text(encoding="utf-8")
    report = json.loads(path.read_text(encoding="utf-8"))
    assert {row["right"] for row in report["rows"]} == {False} and report["machine"]["python"]


def test_a_benchmark_that_fails_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    def refuse(program: augury.Program, /, **options: Any) -> Rerun:
        raise augury.RunError("no session today")

    assert main.run(["R5a", "R3b"], settings=Settings(events=SMALL, repeat=1, open=refuse)) == 1
    said = capsys.readouterr().err
    assert "FAILED: R5a: RunError: no session today" in said and "FAILED: R3b" in said


def test_benchmark_names_select_benchmarks() -> None:
    assert main.chosen(["p2", "V"]) == ["P2", *main.GROUPS["V"]]
    assert main.chosen([]) == [name for name in main.ALL if name not in main.LONG]
    assert main.run(["P99"]) == 2


def test_recorded_figures_are_compared_by_the_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that is half as fast is no slower program."""
    for day, kernel, cpu, rate in ((1, 0.1, 2.0, 300.0), (2, 0.2, 4.0, 300.0), (3, 0.2, 4.0, 600.0)):
        about = {"time": f"2026-11-0{day}T10:00:00+00:00"}
        monkeypatch.setattr(history_files, "machine", lambda about=about: about)
        rows = [Row("P", "P1", "augury", rate, "K events/CPU s", 1000), Row("P", "q0", "augury", cpu, "CPU s", 1000)]
        written = history_files.record([*rows, Row("P", "P1", "DuckDB", 1.0, "CPU s", 1000)], kernel, tmp_path)
    lines = dict(history_files._lines(history_files.recorded(tmp_path), "P"))
    assert lines == {
        "P1 (1,000)": [(0, 1.0), (1, 2.0), (2, 4.0)],
        "q0 (1,000)": [(0, 1.0), (1, 1.0), (2, 1.0)],
    }
    assert [path.suffix for path in written] == [".json", ".svg"]
    assert ElementTree.parse(written[1]).getroot().tag.endswith("svg")
    assert history_files.recorded(history_files.FOLDER)  # those that are kept in the repository can be read


def test_charts_are_well_formed(tmp_path: Path) -> None:
    rows = [Row("P", "a < b & c", s, v, "K") for s, v in (("one", 1500.0), ("two", 3.25), ("three", 0.0))]
    (path,) = charts.draw({}, rows, tmp_path)
    shown = [e.text for e in ElementTree.parse(path).iter() if e.tag.endswith("text")]
    assert {"a < b & c", "1,500", "3.25", "one", "two"} <= set(shown)


def test_tables_show_brackets_as_they_are() -> None:
    console = Console(width=120, record=True, file=StringIO())
    console.print(table("P", [Row("P", "P3 NOT(c).[a, b]", "augury", 1.0, "K", note="[x]")]))
    shown = console.export_text()
    assert "P3 NOT(c).[a, b]" in shown and "[x]" in shown


def test_rates_show_their_unit() -> None:
    row = throughput("P", "P1", "augury", Workload("", [], 2000, 7), Timing(0.5, 0.1, 7))
    assert (row.value, row.right) == (4.0, True)
    assert [figures(v) for v in (12345.6, 123.4, 12.34, 1.234)] == ["12,346", "123", "12.3", "1.23"]


def test_answers_taken_back_are_subtracted() -> None:
    workload = paper_v.negation(600, 20, revised=True)
    assert workload.revises
    assert measure(workload, Settings(repeat=1, open=Rerun)).answers == workload.expected


def test_targets_are_shown_beside_ratios() -> None:
    rows = [Row("P", "one", s, v, "CPU s", base=2.0, target=1.5) for s, v in (("near", 2.5), ("far", 4.0))]
    assert [(row.ratio, row.met) for row in rows] == [(1.25, True), (2.0, False)]
    assert Row("P", "one", "alone", 3.0, "GB", target=4.0).met and Row("P", "one", "free", 3.0, "GB").met is None
    console = Console(width=160, record=True, file=StringIO())
    console.print(table("P", rows))
    shown = console.export_text()
    assert "1.25 │ 1.5 met" in " ".join(shown.split()) and "1.5 missed" in shown
    assert [row["met"] for row in json.loads(as_json(rows))["rows"]] == [True, False]
    least = [Row("P", "two", "augury", v, "K", least=1000.0) for v in (1500.0, 500.0)]
    assert [row.met for row in least] == [True, False]
    console.print(table("P", least))
    text = console.export_text()
    shown = " ".join(text.split())
    assert "≥ 1000 met" in shown and "≥ 1000 │" in shown and "missed" in shown
    assert max(map(len, text.splitlines())) == 80


def only_linux() -> None:
    if not Path("/proc/self/stat").exists():
        pytest.skip("only Linux says what other processes use")


def test_work_of_other_processes_counts() -> None:
    only_linux()
    code = "import time\nwhile time.process_time() < 0.3: pass"
    cost, done = spent(lambda: subprocess.run([sys.executable, "-c", code], check=True))
    assert done.returncode == 0 and cost.python >= 0.2  # a virtual machine that other tests started may work meanwhile
    with peak() as most:
        held = bytearray(20_000_000)
    assert most().total > len(held)


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where event files are kept meanwhile."""
    monkeypatch.setattr(event_files, "home", lambda: tmp_path)
    return tmp_path


@pytest.mark.parametrize("form", event_files.FORMS)
def test_files_of_every_form_hold_the_stream(form: str, kept: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    given = event_files.EventFiles(2_000)
    path = given.path(form)
    arrow_file = pa.ipc.open_file(path).read_all() if path.suffix == ".arrow" else None
    read = duckdb.sql(event_files.FORMS[form].sql.replace("PATH", str(path))).fetchall()
    del arrow_file  # DuckDB finds it by its name
    assert read == list(streams(2_000).abcd.rows()) and given.answers == AGREED["P1"]


@pytest.mark.parametrize(
    ("form", "begins"),
    [
        ("CSV", "type,key,x,y,time\nb,1,0.556665,0.133175,1000000\n"),
        ("JSON lines", '{"type": "b", "key": 1, "x": 0.556665, "y": 0.133175, "time": 1000000}\n'),
        ("JSON lines, args", '{"type": "b", "args": [1, 0.556665, 0.133175], "time": 1000000}\n'),
    ],
)
def test_text_is_as_people_write_it(form: str, begins: str, kept: Path) -> None:
    path = event_files.EventFiles(40).path(form)
    assert path.read_text(encoding="utf-8").startswith(begins)


def test_long_files_repeat_the_stream_and_are_not_kept(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_files, "PIECE", 400)
    monkeypatch.setattr(event_files, "KEPT", 400)
    with event_files.EventFiles(1_200) as many, event_files.EventFiles(400) as once:
        lines = many.path("CSV").read_text(encoding="utf-8").splitlines()[1:]
        assert (len(many), many.answers) == (1_200, 3 * once.answers) and once.path("CSV").exists()
        events = [Event(t, (int(k), float(x), float(y)), int(at)) for t, k, x, y, at in (e.split(",") for e in lines)]
        assert len(augury.run(files.P1.text, events, clock="logical")) == many.answers > 0
    assert not many.folder.exists() and once.path("CSV").exists()


def test_commands_from_file_to_file_count_right(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    only_linux()
    monkeypatch.setattr(files, "RUNS", (("JSON lines, args", "out.jsonl"), ("Parquet", "out.parquet")))
    rows = list(files.formats(Settings(events=2_000, repeat=0)))
    assert {row.case for row in rows} == {"start-up", "JSON lines, args", "Parquet → Parquet"}
    assert {row.series for row in rows} >= {"augury", "memory"}
    assert all(row.right and row.value > 0 for row in rows) and any(row.answers == AGREED["P1"] for row in rows)
    assert {row.figure for row in rows} <= set(main.TITLES)


def test_a_run_from_python_counts_right(kept: Path) -> None:
    rows = list(files.from_python(Settings(events=2_000, repeat=1, open=opened)))
    assert len(rows) == 5 and all(row.answers == row.expected == AGREED["P1"] for row in rows)
    assert [row.target for row in rows if row.target] == [files.ARROW_GOAL, files.EVENT_GOAL, files.DICT_GOAL]


def test_ten_times_the_events_stand_beside_once(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    used = {24: 1.0, 400: 3.0, 4_000: 19.0}

    def pretended(bench: files.Bench, events: Path, output: str) -> tuple[Used, int]:
        is_text = events.suffix == ".csv"
        size = len(events.read_bytes().splitlines()) - 1 if is_text else pq.read_metadata(events).num_rows
        return Used(used[size], 0.0, 1.0, 10**8), event_files.EventFiles(size).answers

    monkeypatch.setattr(files, "embedded", pretended)
    rows = list(files.tenfold(Settings(events=400, repeat=1)))
    ratios = [row for row in rows if row.ratio is not None]
    assert [(row.case, row.ratio, row.met) for row in ratios] == [("Parquet", 9.0, True), ("CSV", 9.0, True)]
    assert all(row.right for row in rows)


def test_what_a_command_leaves_behind_counts() -> None:
    only_linux()
    busy = "import time\nwhile time.process_time() < 0.3: pass"
    left = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {busy!r}]); held = bytearray(50_000_000)"
    used = alone([sys.executable, "-c", left])
    assert used.cpu >= 0.3 and used.jvm == 0 and 50_000_000 < used.held < 10**9
    with pytest.raises(augury.RunError, match="ended with 3: so it is"):
        alone([sys.executable, "-c", "import sys; sys.stderr.write('so it is'); sys.exit(3)"])


def test_help_names_every_group() -> None:
    text = str(bench_command.callback.__doc__)
    assert all(re.search(rf"\b{name}\b", text) for name in main.GROUPS)
