"""The command line on Spark: the same answers as the embedded engine, streams that go on, and clear errors."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from augury.cli import main
from augury.cli.run import spark_problem
from tests.cli.test_cli import EVENTS, PROGRAM

_why_not = spark_problem()
pytestmark = [
    pytest.mark.skipif(_why_not is not None, reason=f"no Spark here: {_why_not}"),
    pytest.mark.filterwarnings("ignore"),  # what PySpark warns of is not ours
]


@dataclass
class Done:
    code: int
    out: str
    err: str


Augury = Callable[..., Done]


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    """One session for all tests of this file: to start one takes seconds. In the long run, code is generated as for users."""
    from augury.spark.starting import open_session
    from tests.support.spark_session import FORKED, INTERPRETED

    settings = FORKED if os.environ.get("AUGURY_LONG") else FORKED | INTERPRETED
    session = open_session("local[2]", [f"{name}={value}" for name, value in settings.items()], streaming_buckets=2)
    yield session
    session.stop()


@pytest.fixture
def augury(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Augury:
    """Runs the command line in this process, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "fire.aug").write_text(PROGRAM)
    (tmp_path / "events.jsonl").write_text(EVENTS)

    def run(*args: str, stdin: str = "") -> Done:
        monkeypatch.setattr(sys, "argv", ["augury", *args])
        monkeypatch.setattr(sys, "stdin", io.StringIO(stdin))
        capsys.readouterr()
        with pytest.raises(SystemExit) as done:
            main()
        told = capsys.readouterr()
        return Done(int(done.value.code or 0), told.out, told.err)

    return run


def same(augury: Augury, *args: str, formats: tuple[str, ...] = ("jsonl",), stdin: str = "") -> str:
    """Both engines give the same text; the last one is returned."""
    text = ""
    for format in formats:
        run = ("run", *args, "--format", format)
        here = augury(*run, "--engine", "embedded", stdin=stdin)
        there = augury(*run, "--engine", "spark", "--master", "local[2]", stdin=stdin)
        assert here.code == there.code == 0, there.err
        assert there.out == here.out
        text = there.out
    assert text
    return text


def failed(done: Done, *texts: str) -> None:
    assert (done.code, done.out) == (1, ""), done
    assert "Traceback" not in done.err
    for text in texts:
        assert text in done.err


# The same answers


def test_json_lines_and_all_formats(augury: Augury) -> None:
    same(augury, "fire.aug", "--events", "events.jsonl", formats=("jsonl", "csv", "table"))
    text = same(augury, "fire.aug", "--events", "-", stdin=EVENTS)
    assert [json.loads(line)["trace"] for line in text.splitlines()] == [["s1", "h1"], ["s1", "h2"]]


def test_csv_with_and_without_declared_types(augury: Augury) -> None:
    Path("smoke.csv").write_text('place,level,time,id\n"l, ""1""\n",3,1,s1\nl2,9,1,s2\n')
    Path("heat.csv").write_text('time,place\n4,"l, ""1""\n"\n5,l2\n')
    same(augury, "fire.aug", "--events", "smoke=smoke.csv", "--events", "heat=heat.csv")
    Path("p.aug").write_text("e(X, Y, Z) <- a(X, _, Z) SEQ b(Y, X).")
    Path("e.csv").write_text("type,x,y,z,time\na,7,,0012,1\nb,2.5,7,,2\na,8,,9,3\nb,1,8.0,,4\nb,,,,5\n")
    assert "0012" in same(augury, "p.aug", "--events", "e.csv")


def test_parquet_and_folders(augury: Augury) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    times = pa.array([1_000_000, 4_000_000], pa.timestamp("us"))
    pq.write_table(pa.table({"place": ["l1", "l2"], "level": [3, 9], "time": times}), "smoke.parquet")
    Path("heat").mkdir()
    for n, place in enumerate(("l1", "l2")):
        Path(f"heat/{n}.csv").write_text(f"time,place\n1970-01-01 00:00:0{n + 5},{place}\n")
    same(augury, "fire.aug", "--events", "smoke=smoke.parquet", "--events", "heat=heat")


def test_values_of_all_kinds_come_back_as_they_were(augury: Augury) -> None:
    Path("p.aug").write_text(
        "event m(a: number, b: any, c: timestamp, d: duration, e: bool, f: list).\n"
        "twice(A, B, C, D, E, F) <- (m(A, B, C, D, E, F) SEQ m(_, B, _, _, _, _)).1h.\n"
        "sum(A + 1, A * 2.5, D) <- m(A, _, _, D, _, _). \n"
        "loose(X) <- n(X). loose(X) <- n(_, X).\n"
    )
    rows = [
        {"type": "m", "a": 3, "b": {"functor": "at", "args": [1, 2.0]}, "c": "2026-01-01", "d": "90s", "e": True,
         "f": [1, "x", None], "time": "2026-01-01 10:00"},
        {"type": "m", "a": 3.5, "b": {"functor": "at", "args": [1, 2.0]}, "c": None, "d": None, "e": None, "f": [],
         "time": "2026-01-01 10:01"},
        {"type": "n", "args": ["ä"], "time": "2026-01-01 10:02"},
        {"type": "n", "args": [1.0, 2], "time": "2026-01-01 10:03"},
    ]  # fmt: skip
    Path("m.jsonl").write_text("\n".join(json.dumps(r) for r in rows))
    same(augury, "p.aug", "--events", "m.jsonl", formats=("jsonl", "csv", "table"))


def test_revocations_intervals_facts_and_functions(augury: Augury) -> None:
    Path("told.jsonl").write_text(EVENTS + '{"op": "revoke", "id": "h1"}\n')
    assert same(augury, "fire.aug", "--events", "told.jsonl").count("\n") == 1
    Path("p.aug").write_text("function twice(x: int): int. e(Y, twice(X)) <- (a(X) SEQ b(X)).5s WHERE region(X, Y).")
    Path("f.py").write_text("import augury\n\n@augury.function\ndef twice(x: int) -> int:\n    return 2 * x\n")
    Path("region.csv").write_text("id,name\n1,north\n2,south\n")
    Path("a.jsonl").write_text('{"type": "a", "args": [2], "start": 1, "end": 3}\n{"type": "b", "args": [2], "time": 5}\n')  # fmt: skip
    run = ("p.aug", "--events", "a.jsonl", "--facts", "region=region.csv", "--functions", "f.py")
    same(augury, *run)
    Path("f.py").write_text(
        "import augury\n\n@augury.function\ndef twice(x: int) -> int:\n    raise OSError('no luck')\n"
    )
    failed(augury("run", *run, "--engine", "spark"), "`twice` raised OSError: no luck", "in rule `e`", "twice(2)")


def test_spark_writes_parquet(augury: Augury, spark: Any) -> None:
    run = ("run", "fire.aug", "--events", "events.jsonl", "--format", "parquet", "--output")
    assert augury(*run, "out", "--engine", "spark").code == 0
    assert augury(*run, "here", "--engine", "embedded").code == 0
    there, here = (sorted(spark.read.parquet(str(Path(f).absolute())).drop("trace").collect()) for f in ("out", "here"))
    assert there == here and len(there) == 2
    assert augury(*run, "out", "--engine", "spark").code == 0  # written anew
    Path("out/mine.txt").write_text("keep me")
    failed(augury(*run, "out"), "has other files, such as mine.txt")
    failed(augury(*run, "."), "is also an input")
    assert Path("out/mine.txt").exists()


def test_diff_has_the_counts_and_explanations_of_the_embedded_engine(augury: Augury) -> None:
    rules = "hot(P) <- heat(P, T) WHERE T > {}.\nalarm(P) <- (smoke(P) SEQ hot(P)).20s WHERE near(P, _).\n"
    lines = ["type,place,t,time,id,op"]
    for n in range(0, 4000, 10):
        lines += [f"smoke,l{n % 3},,{n},s{n},", f"heat,l{n % 3},{20 + n * 7 % 41},{n + 5},h{n},"]
    lines += [f",,,,s{n},revoke" for n in range(0, 4000, 70)]
    Path("e.csv").write_text("\n".join(lines))
    Path("near.csv").write_text("place,x\nl1,y\nl2,z\n")
    declared = "event smoke(place: string). event heat(place: string, t: int). static near(place: string, x: string).\n"
    Path("old.aug").write_text(declared + rules.format(40))
    Path("new.aug").write_text(declared + rules.format(50))
    run = ("diff", "old.aug", "new.aug", "--events", "e.csv", "--facts", "near=near.csv", "--samples", "2")
    there = augury(*run, "--engine", "spark")
    assert there.code == 0, there.err
    assert "does not hold" in there.out and there.out == augury(*run).out
    Path("new.aug").write_text(declared + rules.format(50).replace(".20s", ""))
    shown = [json.loads(augury(*run, "--engine", engine, "--format", "json").out) for engine in ("embedded", "spark")]
    assert shown[0]["types"] == shown[1]["types"]
    assert shown[1]["unexplained"] == "rule `alarm` looks back without a bound"


# What goes wrong


def test_left_out_rows_are_reported(augury: Augury) -> None:
    Path("bad.jsonl").write_text(EVENTS + '{"type": "smoke", \n\n{"type": "smok", "args": [], "time": 9}\n')
    run = ("run", "fire.aug", "--events", "bad.jsonl", "--engine", "spark")
    failed(augury(*run), "error: bad.jsonl:4: malformed JSON", "hint: one JSON object a line")
    done = augury(*run, "--on-error", "skip")
    assert (done.code, done.out.count("\n")) == (0, 2)
    assert "skipped: 2" in done.err
    assert "bad.jsonl:6: unknown event type `smok`" in done.err
    Path("p.aug").write_text("e(X) <- a(X) WHERE 1 / X > 0.")
    Path("a.csv").write_text("type,x,time\na,0,1\na,1,2\n")
    assert "rule `e`: division by zero (1 time)" in augury("run", "p.aug", "--events", "a.csv", "--engine", "spark").err
    quiet = augury("run", "fire.aug", "--events", "smoke=s.jsonl", "--format", "table", "--engine", "spark")
    failed(quiet, "s.jsonl: no such file")
    Path("s.jsonl").write_text('{"args": ["l1", 3], "time": 1}\n')
    quiet = augury("run", "fire.aug", "--events", "smoke=s.jsonl", "--format", "table", "--engine", "spark")
    assert (quiet.code, quiet.out) == (0, "")
    assert "no detections; there was no event of type heat" in quiet.err


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("smoke=s.csv", "place,level\nl1,3\n", "s.csv:1: has no column `time`"),
        ("smoke=s.csv", "place,level,time\nl1,3\n", "s.csv:2: 2 fields where the header has 3"),
        ("smoke=s.csv", "place,lvl,time\nl1,3,1\n", "`smoke` has no column `level`"),
        ("smoke=s.csv", "place,level,time\nl1,high,1\n", "s.csv:2: `level` is declared as int, but is 'high'"),
        (
            "smoke=s.csv",
            "place,level,time\nl1,3,2026-01-01\nl1,3,1\n",
            "s.csv:3: `time`: the number 1 among calendar times",
        ),
        ("s.csv", "place,level,time\nl1,3,1\n", "has no column `type`"),
        ("smok=events.jsonl", EVENTS, "unknown event type `smok`"),
        ("events.parquet", "no parquet", "is not a Parquet file"),
        ("nothing", "", "is neither CSV, JSON lines, Parquet nor Arrow"),
    ],
)
def test_malformed_files_are_refused_on_spark(augury: Augury, name: str, text: str, message: str) -> None:
    Path(name.split("=")[-1]).write_text(text)
    failed(augury("run", "fire.aug", "--events", name, "--engine", "spark"), message)


@pytest.mark.parametrize(("name", "text"), [("smoke=s.csv", "place,level,time\n"), ("e.jsonl", "")])
def test_files_without_events(augury: Augury, name: str, text: str) -> None:
    Path(name.split("=")[-1]).write_text(text)
    done = augury("run", "fire.aug", "--events", name, "--engine", "spark")
    assert (done.code, done.out) == (0, "")
    assert done.err == "0 events\nno detections; there was no event of type heat, smoke\n"


def test_options_that_need_the_order_of_the_input(augury: Augury) -> None:
    run = ("run", "fire.aug", "--events", "events.jsonl", "--changes")
    assert augury(*run).code == 0
    failed(augury(*run, "--engine", "spark"), "--changes", "say --engine embedded")


def test_java_is_looked_at_first(tmp_path: Path) -> None:
    """Without Java the embedded engine goes on; where Spark was asked for, it is an error."""
    (tmp_path / "fire.aug").write_text(PROGRAM)
    (tmp_path / "events.jsonl").write_text(EVENTS)
    fake = tmp_path / "jdk" / "bin" / "java"
    fake.parent.mkdir(parents=True)
    fake.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\"' >&2\n")
    fake.chmod(0o755)

    def told(home: str, *args: str) -> subprocess.CompletedProcess[str]:
        env = {**os.environ, "JAVA_HOME": home}
        command = [sys.executable, "-m", "augury", *args]
        return subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)

    old = told(str(tmp_path / "jdk"), "demo", "wildfire")
    assert old.returncode == 0 and "in this process" in old.stdout
    assert "is Java 11; continuing with the embedded engine, which gives the same answer" in old.stderr
    none = told(str(tmp_path / "none"), "run", "fire.aug", "--events", "events.jsonl", "--engine", "spark")
    assert (none.returncode, none.stdout) == (1, "")
    assert "Spark needs Java" in none.stderr and "openjdk-17-jre-headless" in none.stderr


# Streams

RULES = """\
event wind(place: string, speed: float).
event fire(place: string).
rise(P, W2 - W1) <- (wind(P, W1) SEQ wind(P, W2)).60s WHERE W2 > W1 + 3.
alarm(P, D) <- (rise(P, D) SEQ fire(P)).60s.
calm(P) <- w: wind(P, W), s: extend(w, 20s), while s: not fire(P).
pair(P, Q) <- (alarm(P, _) AND alarm(Q, _)).30s WHERE P < Q.
output alarm, calm, pair.
"""


def story(count: int) -> list[str]:
    """Lines of wind and fire in a few places, a second apart."""
    lines = []
    for n in range(count):
        place = f"l{n * 7 % 5}"
        if n % 6 == 5:
            lines.append({"type": "fire", "place": place, "time": n})
        else:
            lines.append({"type": "wind", "place": place, "speed": n * 37 % 11 + 0.5, "time": n})
    return [json.dumps(line) for line in lines]


END = json.dumps({"type": "fire", "place": "nowhere", "time": 1_000_000})  # all that was open is settled then


def spread(lines: list[str], size: int, folder: Path, first: int = 0) -> None:
    """Lines as files of some lines each."""
    folder.mkdir(exist_ok=True)
    for n in range(0, len(lines), size):
        part = folder / f".{first + n // size:05d}.part"
        part.write_text("\n".join(lines[n : n + size]) + "\n")
        part.rename(folder / f"{first + n // size:05d}.jsonl")


def content(item: dict[str, Any]) -> tuple[Any, ...]:
    return (item["type"], item["args"], item["start"], item["end"], item["id"])


def written(folder: Path) -> list[tuple[Any, ...]]:
    lines = [line for path in folder.rglob("part-*.json") for line in path.read_text().splitlines()]
    return sorted(content(json.loads(line)) for line in lines)


def expected(augury: Augury, lines: list[str]) -> list[tuple[Any, ...]]:
    Path("rules.aug").write_text(RULES)
    Path("all.jsonl").write_text("\n".join(lines))
    done = augury("run", "rules.aug", "--events", "all.jsonl", "--engine", "embedded", "--format", "jsonl")
    assert done.code == 0, done.err
    return sorted(content(json.loads(line)) for line in done.out.splitlines())


def test_stream_resumes_where_it_stopped(augury: Augury, spark: Any) -> None:
    lines = story(60)
    answer = expected(augury, [*lines, END])
    spread(lines[:30], 10, Path("in"))
    run = ("stream", "rules.aug", "--events", "in", "--checkpoint", "cp", "--lateness", "5s", "--trigger", "once")
    assert augury(*run, "--buckets", "2", "--output", "out").code == 0
    spread([*lines[30:], END], 31, Path("in"), 100)
    late = json.dumps({"type": "fire", "place": "l1", "time": 3})
    spread([late], 1, Path("in"), 200)
    done = augury(*run, "--output", "out")
    assert done.code == 0, done.err
    assert written(Path("out")) == answer
    assert spark.read.json("file://" + str(Path("out").absolute())).count() == len(answer)

    spread([late], 1, Path("in"), 300)
    done = augury(*run, "--output", "out")
    assert "late: 1" in done.err and '"place"' not in done.out, done.err
    spread([late.replace("l1", "l2")], 1, Path("in"), 301)
    assert "late:" not in augury(*run, "--output", "out", "--late", "late").err
    assert [json.loads(p.read_text())["why"] for p in Path("late").rglob("part-*.json")] == ["late"]

    changed = RULES.replace("W1 + 3", "W1 + 4")
    Path("rules.aug").write_text(changed)
    done = augury(*run, "--output", "out", "--dry-run")
    assert "rule `rise` has changed: it starts anew" in done.err, done.err
    Path("rules.aug").write_text(RULES)
    failed(augury(*run, "--output", "out", "--buckets", "3"), "buckets was 2, is 3")
    failed(augury(*run, "--output", "in"), "is also an input")


def looks_at_the_stream(augury: Augury) -> None:
    """A console beside a stream: the program and the sources are those of the checkpoint, and so is the state of all buckets."""
    from augury.console.serving import ConsoleServer
    from augury.console.views import ItemRequest, Views

    seen: list[dict[str, Any]] = []

    def looked(server: ConsoleServer) -> None:
        watched = server.trials.watched
        (lane,) = (lane for lane in watched.ordered_lanes() if lane.name == "rise")
        graph = Views(watched).why(ItemRequest("rise", lane.events[-1].id))["derivations"][0]
        seen.append({"kinds": {item.kind for item in watched.ordered_lanes()}, "nodes": graph["nodes"]})

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ConsoleServer, "run", looked)
        done = augury("console", "--checkpoint", "cp", "--no-browser")
    assert done.code == 0, done.err
    assert "event" in seen[0]["kinds"] and len(seen[0]["nodes"]) == 3


def test_a_stream_goes_on_with_another_program(augury: Augury) -> None:
    """Rules that stay lose nothing; a new one sees what comes from then on. What is held can be looked at."""
    lines = story(60)
    answer = [item for item in expected(augury, [*lines, END]) if item[0] != "calm"]
    spread(lines[:30], 10, Path("in"))
    stream = ("rules.aug", "--events", "in", "--checkpoint", "cp")
    run = ("stream", *stream, "--lateness", "5s", "--trigger", "once", "--output", "out")
    assert augury(*run, "--buckets", "2").code == 0
    goals = augury("goals", *stream, "--rule", "rise")
    assert "awaits wind" in goals.out, goals.err
    stats = [json.loads(line) for line in augury("stats", *stream).out.splitlines()]
    assert {item["bucket"] for item in stats if item["stage"] == 1} == {0, 1} or len(stats) > 1
    assert "rise" in augury("why", *stream, "--event", "rise(_, _)").out
    looks_at_the_stream(augury)

    calm = next(line for line in RULES.splitlines() if line.startswith("calm"))
    Path("rules.aug").write_text(
        RULES.replace(calm, "blow(P) <- (wind(P, _) SEQ wind(P, _)).9s.").replace("calm,", "blow,")
    )
    spread([*lines[30:], END], 31, Path("in"), 100)
    done = augury(*run)
    assert done.code == 0, done.err
    assert "rule `rise` is unchanged" in done.err
    assert "rule `blow` is new" in done.err
    found = written(Path("out"))
    assert [item for item in found if item[0] in ("alarm", "pair")] == answer
    assert any(item[0] == "blow" for item in found)
    shown = augury("checkpoint", "show", "cp").out
    assert "version 2 of its program, 4 rules\n  rise   from the beginning\n" in shown


def test_a_stream_from_standard_input_to_standard_output(augury: Augury) -> None:
    lines = [*story(40), END]
    answer = expected(augury, lines)
    run = ("stream", "rules.aug", "--events", "-", "--checkpoint", "cp", "--lateness", "5s", "--buckets", "2")
    wrong = "{nothing}\n"
    done = augury(*run, "--on-error", "skip", "--trigger", "200ms", stdin=wrong + "\n".join(lines))
    assert done.code == 0, done.err
    assert sorted(content(json.loads(line)) for line in done.out.splitlines()) == answer
    assert "skipped: 1" in done.err and "malformed JSON" in done.err
    failed(augury(*run, stdin=wrong), "malformed JSON")


COUNTED = """\
event a(x: int).
event b(x: int).
r(X) <- (a(X) SEQ b(X)).5s.
s(X, Y) <- (a(X) AND b(Y)).1s WHERE X < Y.
"""
# Three repeated events, one of them of a type that two stages read, a repeated revocation, two conflicts, a broken line.
HISTORY = [
    {"type": "a", "x": 1, "time": 1, "id": "i1"}, {"type": "a", "x": 1, "time": 1, "id": "i1"},
    {"type": "b", "x": 1, "time": 2, "id": "i2"}, {"type": "b", "x": 1, "time": 2, "id": "i2"},
    {"type": "b", "x": 1, "time": 2, "id": "i2"}, {"type": "b", "x": 1, "time": 3, "id": "i2"},
    {"type": "a", "x": 1, "time": 2, "id": "i1"}, {"type": "a", "x": 2, "time": 3}, {"type": "a", "x": 2, "time": 3},
    {"op": "revoke", "id": "i9"}, {"op": "revoke", "id": "i9"},
]  # fmt: skip
RECEIVED = "12 received: 5 accepted, 4 repeated, 0 late, 2 rejected, 1 malformed"


@pytest.mark.parametrize("engine", ["embedded", "spark"])
def test_a_run_counts_what_became_of_all_rows(augury: Augury, engine: str) -> None:
    Path("rules.aug").write_text(COUNTED)
    Path("all.jsonl").write_text("".join(json.dumps(item) + "\n" for item in HISTORY) + "{\n")
    done = augury("run", "rules.aug", "--events", "all.jsonl", "--on-error", "skip", "--engine", engine)
    assert RECEIVED in done.err.splitlines(), done.err


def test_versions_of_events_in_files(augury: Augury) -> None:
    Path("rules.aug").write_text("event a(x: int). r(X) <- a(X).")
    Path("all.jsonl").write_text(
        """{"type": "a", "x": 1, "time": 1, "id": "i"}
{"op": "replace", "type": "a", "x": 2, "time": 3, "id": "i", "version": 2}
{"type": "a", "x": 3, "time": 3, "id": "i", "version": 1}
{"type": "a", "x": 4, "time": 3, "id": "j", "version": 1}
{"op": "revoke", "id": "j", "version": 1}
"""
    )
    Path("a.csv").write_text("x,time,id,op,version\n1,1,i,,\n2,3,i,replace,2\n3,3,i,insert,1\n4,3,j,,1\n,,j,revoke,1\n")
    for events in ("all.jsonl", "a=a.csv"):
        text = same(augury, "rules.aug", "--events", events)
        assert [json.loads(line)["args"] for line in text.splitlines()] == [[2]]


def test_a_stream_counts_what_became_of_all_rows(augury: Augury) -> None:
    Path("rules.aug").write_text(COUNTED)
    spread([json.dumps(item) for item in HISTORY] + ["{"], 100, Path("in"))
    run = ("stream", "rules.aug", "--events", "in", "--checkpoint", "cp", "--lateness", "5s", "--trigger", "once")
    done = augury(*run, "--on-error", "skip", "--output", "out", "--buckets", "2")
    assert RECEIVED in done.err.splitlines(), done.err


def test_changes_in_csv_and_parquet(augury: Augury, spark: Any) -> None:
    lines = story(30)
    Path("p.aug").write_text(RULES.replace("output alarm, calm, pair", "output alarm"))
    spread(lines, 30, Path("in"))
    for format in ("csv", "parquet"):
        done = augury("stream", "p.aug", "--events", "in/*.jsonl", "--checkpoint", format, "--lateness", "5s", "--emit", "early",
                      "--trigger", "once", "--format", format, "--output", f"out.{format}", "--buckets", "2")  # fmt: skip
        assert done.code == 0, done.err
    path = "file://" + str(Path("out").absolute())
    typed = spark.read.parquet(path + ".parquet")
    assert typed.columns[:3] == ["op", "p", "d"]
    assert typed.count() == spark.read.option("header", "true").csv(path + ".csv").count() > 0


def test_a_stream_that_is_wrong_from_the_start(augury: Augury) -> None:
    run = ("stream", "fire.aug", "--checkpoint", "cp", "--output", "out", "--trigger", "once", "--events")
    failed(augury(*run, "nowhere"), "nowhere: no such directory")
    failed(augury(*run, "events.jsonl"), "is not a directory")
    Path("in").mkdir()
    failed(augury(*run, "in"), "has no files yet", "in/*.jsonl")
    failed(augury(*run, "in/*.jsonl", "--lateness", "soon"), "--lateness: not a duration")
    Path("p.aug").write_text("e(X) <- a(X).")
    Path("in/a.csv").write_text("x,time\n1,1\n")
    failed(
        augury("stream", "p.aug", "--events", "a=in", "--checkpoint", "cp", "--output", "out"),
        "declare `event a(x: …).`",
    )
    Path("out").mkdir(exist_ok=True)
    Path("out/mine").write_text("keep me")
    failed(augury(*run, "in/*.jsonl"), "has other files, such as mine")


def test_places_that_cannot_be_written(augury: Augury) -> None:
    """The cause and the place are in the first line, before Spark starts where that can be."""
    run = ("stream", "fire.aug", "--events", "in/*.jsonl", "--trigger", "once")
    spread([json.dumps({"type": "heat", "place": "l1", "time": 1})], 1, Path("in"))
    for place in ("events.jsonl/below", "/proc/below"):
        why = "Not a directory" if "jsonl" in place else "No such file or directory"
        failed(augury(*run, "--checkpoint", place, "--output", "out"), f"error: {place}: cannot be written: {why}")
        failed(augury(*run, "--checkpoint", "cp", "--output", place), f"error: {place}: cannot be written: {why}")
        failed(augury(*run, "--checkpoint", "cp", "--output", "out", "--late", place), f"error: {place}: cannot be written")  # fmt: skip
    from augury.spark.lock import held

    with held(Path("cp")):
        failed(augury(*run, "--checkpoint", "cp", "--output", "out"), "error: another run uses the checkpoint cp: process ")  # fmt: skip


def test_whoever_follows_sees_each_answer_once(augury: Augury, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that dies between a batch and its commit leaves it as it is when it goes on; a second stream reads each once."""
    from augury.spark.outbox import BatchNote, Outbox

    Path("hot.aug").write_text("event wind(place: string, speed: float). hot(P) <- wind(P, S) WHERE S > 5.")
    Path("again.aug").write_text("again(P) <- hot(P).")
    run = ("stream", "hot.aug", "--events", "in", "--checkpoint", "cp", "--output", "out", "--trigger", "once", "--emit", "early", "--buckets", "2")  # fmt: skip
    spread([json.dumps({"type": "wind", "place": f"l{n}", "speed": n, "time": n}) for n in range(12)], 12, Path("in"))
    move = Outbox._move

    def die(box: Outbox, note: BatchNote) -> None:
        move(box, note)
        raise RuntimeError("killed")

    with monkeypatch.context() as patch:
        patch.setattr(Outbox, "_move", die)
        failed(augury(*run), "error: RuntimeError: killed")
    seen = {path: (path.stat().st_ino, path.read_text()) for path in Path("out").rglob("*") if path.is_file()}
    assert [str(path) for path in seen] == ["out/batch=0/part-00000.json"]
    second = ("stream", "again.aug", "--events", "out", "--checkpoint", "cp2", "--trigger", "once", "--emit", "early", "--buckets", "2")  # fmt: skip
    first_look = augury(*second).out
    done = augury(*run)
    assert done.code == 0, done.err
    assert {path: (path.stat().st_ino, path.read_text()) for path in Path("out").rglob("*") if path.is_file()} == seen
    told = [json.loads(line)["args"] for line in (first_look + augury(*second).out).splitlines()]
    assert sorted(told) == sorted([f"l{n}"] for n in range(6, 12))


def on_disks(script: str, home: Path) -> subprocess.CompletedProcess[str]:
    """Runs a script that may mount what it likes, and that nobody else sees."""
    if subprocess.run(["unshare", "-rm", "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("no disk can be mounted here")
    return subprocess.run(["unshare", "-rm", "sh", "-ec", script], cwd=home, capture_output=True, text=True, check=False)  # fmt: skip


@pytest.mark.parametrize("small", ["cp", "out"])
def test_stream_resumes_after_a_full_disk(augury: Augury, tmp_path: Path, small: str) -> None:
    """A disk of 256 KB; once there is room, the run goes on from where it stood."""
    run = [sys.executable, "-m", "augury", "stream", "wide.aug", "--events", "in", "--checkpoint", "cp", "--output", "out",
           "--emit", "early", "--buckets", "2", "--master", "local[2]", "--trigger", "once"]  # fmt: skip
    Path("wide.aug").write_text("event wind(place: string). seen(P) <- wind(P).")
    spread([json.dumps({"type": "wind", "place": f"{n:x<3000}", "time": n}) for n in range(300)], 300, Path("in"))
    Path(small).mkdir()
    full = on_disks(f"mount -t tmpfs -o size=256k none {small}; {' '.join(run)}", tmp_path)
    assert (full.returncode, full.stdout) == (1, ""), full
    said = [line for line in full.stderr.splitlines() if line.startswith("error: ")]
    assert len(said) == 1 and "No space left on device" in said[0], full.stderr
    assert "Java" not in full.stderr and "Traceback" not in full.stderr, full.stderr
    if small == "out":
        again = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert again.returncode == 0 and "error" not in again.stderr, again.stderr
        assert sum(len(p.read_text().splitlines()) for p in Path("out").rglob("part-*")) == 300


def test_a_disk_that_may_not_be_written_to(augury: Augury, tmp_path: Path) -> None:
    """Of both, we are the first to know: an empty disk in the place of what Spark keeps is a checkpoint that is damaged."""
    run = ("stream", "fire.aug", "--events", "in", "--checkpoint", "cp", "--output", "out", "--trigger", "once", "--buckets", "2")  # fmt: skip
    spread(EVENTS.splitlines(), 3, Path("in"))
    assert augury(*run).code == 0
    command = " ".join([sys.executable, "-m", "augury", *run, "--master", "'local[2]'"])
    told = on_disks(f"mount -t tmpfs -o ro none out; {command}", tmp_path)
    assert (told.returncode, told.stderr) == (1, f"error: {tmp_path}/out: cannot be written: Read-only file system\n")
    told = on_disks(f"mount -t tmpfs -o ro none cp/spark; {command}", tmp_path)
    assert told.returncode == 1
    assert told.stderr.startswith("error: the checkpoint is damaged: cp/spark/metadata is missing [S101]"), told.stderr
    assert told.stderr.count("\n") <= 2 and "Java" not in told.stderr, told.stderr


def test_a_run_that_was_killed_loses_and_doubles_nothing(augury: Augury, tmp_path: Path) -> None:
    """Killed while it works, then started again: what is in the folder is the answer, each detection once."""
    lines = story(300)
    answer = expected(augury, [*lines, END])
    run = [sys.executable, "-m", "augury", "stream", "rules.aug", "--events", "in/*.jsonl", "--checkpoint", "cp",
           "--output", "out", "--lateness", "5s", "--buckets", "2", "--master", "local[2]"]  # fmt: skip
    spread(lines[:100], 10, Path("in"))
    with Path("log").open("w") as log:
        first = subprocess.Popen([*run, "--trigger", "200ms"], cwd=tmp_path, stdout=log, stderr=log)
        try:
            given, seen, until = 100, 0, time.monotonic() + 300
            while len(list(Path("out").glob("batch=*"))) < 4 and first.poll() is None and time.monotonic() < until:
                done = len(list(Path("cp/spark/commits").glob("[0-9]*")))
                if done > seen and given < 250:  # the next lines come once the last ones are done
                    spread(lines[given : given + 5], 5, Path("in"), given)
                    given, seen = given + 5, done
                time.sleep(0.1)
        finally:
            first.send_signal(signal.SIGKILL)
            first.wait()
    assert written(Path("out")), Path("log").read_text()
    spread(lines[given:], 20, Path("in"), 1000)
    spread([END], 1, Path("in"), 9000)
    again = subprocess.run([*run, "--trigger", "once"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (again.returncode, again.stdout) == (0, ""), again.stderr
    assert written(Path("out")) == answer
