"""The command line as a user meets it: what is printed, where, and the exit code."""

from __future__ import annotations

import json
import os
import resource
import runpy
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner

import augury
from augury.cli import COMMANDS, cli
from augury.cli.run import OutputOptions, TraceReport
from augury.sinks import Answers, Format
from tests.support.commands import Done, run, run_anew

PROGRAM = """\
event smoke(place: string, level: int).
event heat(place: string).
fire_alarm(P, L) <- (smoke(P, L) SEQ heat(P)).10s WHERE L > 2.
"""
EVENTS = """\
{"type": "smoke", "place": "l1", "level": 3, "time": 1, "id": "s1"}
{"type": "heat", "place": "l1", "time": 4, "id": "h1"}
{"type": "heat", "args": ["l1"], "time": 6, "id": "h2"}
"""


@dataclass
class Shell:
    """A folder to work in and a way to run `augury` in it."""

    folder: Path

    def file(self, name: str, text: str) -> str:
        (self.folder / name).write_text(text, encoding="utf-8")
        return name

    def augury(self, *args: str, stdin: str = "", engine: str = "embedded", anew: bool = False) -> Done:
        """Runs `augury`, `anew` by another Python. To start Spark takes seconds: runs on it are in `test_cli_spark`."""
        asked = ("--engine", engine) if args[0] == "run" else ()
        done = (run_anew if anew else run)([*args, *asked], self.folder, stdin)
        assert "Traceback" not in done.err, done.err
        return done


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    shell = Shell(tmp_path)
    shell.file("fire.aug", PROGRAM)
    shell.file("events.jsonl", EVENTS)
    return shell


def answers(done: Done) -> list[tuple[object, ...]]:
    assert done.code == 0, done.err
    items = [json.loads(line) for line in done.out.splitlines()]
    return [(i["type"], *i["args"], i["start"], i["end"]) for i in items]


def failed(done: Done, *texts: str) -> None:
    """A clear message on standard error, nothing on standard output, exit code 1."""
    assert (done.code, done.out) == (1, "")
    for text in texts:
        assert text in done.err, done.err


# run


def test_run_writes_json_lines(shell: Shell) -> None:
    done = shell.augury("run", "fire.aug", "--events", "events.jsonl", anew=True)
    assert done == shell.augury("run", "fire.aug", "--events", "events.jsonl")
    assert answers(done) == [("fire_alarm", "l1", 3, 1, 4), ("fire_alarm", "l1", 3, 1, 6)]
    first = json.loads(done.out.splitlines()[0])
    assert list(first) == ["type", "args", "p", "l", "start", "end", "id", "trace"]
    assert first["trace"] == ["s1", "h1"]


def test_run_reads_standard_input(shell: Shell) -> None:
    done = shell.augury("run", "fire.aug", "--events", "-", stdin=EVENTS, anew=True)
    assert done == shell.augury("run", "fire.aug", "--events", "-", stdin=EVENTS)
    assert len(answers(done)) == 2


def test_run_reads_csv_by_type(shell: Shell) -> None:
    shell.file("smoke.csv", "place,level,time,id\nl1,3,1,s1\nl2,9,1,s2\n")
    shell.file("heat.csv", "time,place\n4,l1\n")
    done = shell.augury("run", "fire.aug", "--events", "smoke=smoke.csv", "--events", "heat=heat.csv")
    assert answers(done) == [("fire_alarm", "l1", 3, 1, 4)]


def test_run_reads_a_mixed_csv_of_undeclared_events(shell: Shell) -> None:
    shell.file("p.aug", "e(X, Y) <- a(X) SEQ b(Y, X).")
    shell.file("e.csv", "type,x,y,time\na,7,,1\nb,2.5,7,2\n")
    assert answers(shell.augury("run", "p.aug", "--events", "e.csv")) == [("e", 7, 2.5, 1, 2)]


def test_run_reads_timestamps(shell: Shell) -> None:
    shell.file("t.jsonl", EVENTS.replace('"time": 1,', '"time": "2026-01-01T00:00:01Z",').replace('"time": 4,', '"time": "2026-01-01 00:00:04",').replace('"time": 6,', '"time": "2026-01-01 02:00",'))  # fmt: skip
    done = shell.augury("run", "fire.aug", "--events", "t.jsonl")
    assert answers(done) == [("fire_alarm", "l1", 3, "2026-01-01T00:00:01Z", "2026-01-01T00:00:04Z")]


def test_run_writes_tables_and_csv(shell: Shell) -> None:
    table = shell.augury("run", "fire.aug", "--events", "events.jsonl", "--format", "table")
    assert "fire_alarm('l1', 3)" in table.out
    csv = shell.augury("run", "fire.aug", "--events", "events.jsonl", "--format", "csv")
    assert csv.out.splitlines()[0] == "type,p,l,start,end,id,trace"
    assert csv.out.splitlines()[1].startswith("fire_alarm,l1,3,1,4,")


@pytest.mark.parametrize("form", ["jsonl", "csv", "arrow", "table"])
def test_traces_that_dominate_an_output_are_reported_once(
    form: Format, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [{"type": "a", "args": [i], "time": i, "id": f"e{i}"} for i in range(8)]
    program = "s(T, sum(X)) <- o: a(T), w: extend_backward(o, 100s), while w: collect a(X)."
    long = augury.run(program, rows)
    short = augury.run("b(X) <- a(X).", rows)

    def reported(*answers: Answers[augury.Event], trace: bool = True) -> str:
        output = OutputOptions(str(tmp_path / "out"), form, trace, None)
        for some in answers:
            output.write(some)
        return capsys.readouterr().err

    assert reported(long) == ""  # few ids
    monkeypatch.setattr(TraceReport, "most_ids", 4)
    assert reported(long) == ""  # short traces
    monkeypatch.setattr(TraceReport, "most_on_average", 2)
    line = "the traces have 36 ids, 4 an answer on average; --no-trace leaves them out\n"
    assert reported(long, long) == ("" if form == "table" else line)
    assert reported(long, trace=False) == reported(short) == ""


def test_output_goes_to_a_file_in_the_format_of_its_name(shell: Shell) -> None:
    done = shell.augury("run", "fire.aug", "--events", "events.jsonl", "--output", "out.csv")
    assert (done.code, done.out) == (0, "")
    assert len((shell.folder / "out.csv").read_text().splitlines()) == 3
    failed(
        shell.augury("run", "fire.aug", "--events", "events.jsonl", "--output", "no/such/out.csv"), "no/such/out.csv"
    )


def test_changes_show_inserts_and_retracts(shell: Shell) -> None:
    shell.file("told.jsonl", EVENTS + '{"op": "revoke", "id": "s1"}\n')
    done = shell.augury("run", "fire.aug", "--events", "told.jsonl", "--changes")
    assert [json.loads(line)["op"] for line in done.out.splitlines()] == ["insert", "insert", "retract", "retract"]
    final = shell.augury(
        "run", "fire.aug", "--events", "told.jsonl", "--changes", "--emit", "final", "--lateness", "1s"
    )
    assert [json.loads(line)["op"] for line in final.out.splitlines()] == ["insert", "insert"]
    assert "late: 1" in final.err


def test_until_and_as_of_and_retention(shell: Shell) -> None:
    shell.file("w.aug", "quiet(X) <- o: a(X), w: extend(o, 5s), while w: not b(X).")
    shell.file("w.jsonl", '{"type": "a", "args": [1], "time": 1}\n{"type": "b", "args": [1], "time": 3, "known": 20}\n')
    assert answers(shell.augury("run", "w.aug", "--events", "w.jsonl")) == []
    assert answers(shell.augury("run", "w.aug", "--events", "w.jsonl", "--as-of", "10", "--until", "9")) == [
        ("quiet", 1, 1, 6)
    ]
    shell.file("r.aug", "e(X) <- a(X) SEQ b(X).")
    assert answers(shell.augury("run", "r.aug", "--events", "w.jsonl")) == [("e", 1, 1, 3)]
    assert answers(shell.augury("run", "r.aug", "--events", "w.jsonl", "--retention", "1s")) == []


def test_run_takes_facts_and_functions(shell: Shell) -> None:
    shell.file("p.aug", "function twice(x: int): int. e(Y, twice(X)) <- a(X) WHERE region(X, Y).")
    shell.file("f.py", "import augury\n\n@augury.function\ndef twice(x: int) -> int:\n    return 2 * x\n")
    shell.file("region.csv", "id,name\n1,north\n2,south\n")
    shell.file("a.jsonl", '{"type": "a", "args": [2], "time": 1}\n')
    run = ("run", "p.aug", "--events", "a.jsonl", "--facts", "region=region.csv")
    assert answers(shell.augury(*run, "--functions", "f.py")) == [("e", "south", 4, 1, 1)]
    failed(shell.augury(*run), "`twice` is declared, but not registered", "--functions")
    shell.file("f.py", "import augury\n\n@augury.function\ndef twice(x: int) -> int:\n    raise OSError('no luck')\n")
    failed(shell.augury(*run, "--functions", "f.py"), "`twice` raised OSError: no luck", "in rule `e`", "twice(2)")


def test_run_takes_a_policy(shell: Shell) -> None:
    shell.file("p.aug", "e(X, Y) <- a(X) SEQ b(Y).")
    shell.file("e.csv", "type,x,time\na,1,1\na,2,2\nb,3,3\n")
    assert answers(shell.augury("run", "p.aug", "--events", "e.csv", "--policy", "recent")) == [("e", 2, 3, 2, 3)]
    failed(
        shell.augury("run", "p.aug", "--events", "e.csv", "--policy", "newest"),
        "--policy",
        "recent, chronological or unrestricted",
    )


def test_run_reads_a_folder(shell: Shell) -> None:
    """All files of it are one source: a column is a number only if it is one in all of them."""
    (shell.folder / "in").mkdir()
    shell.file("in/1.csv", "type,x,time\na,7,1\n")
    shell.file("in/2.csv", "time,type,x\n2,a,0012\n")
    shell.file("in/_SUCCESS", "")
    shell.file("p.aug", "e(X) <- a(X).")
    assert answers(shell.augury("run", "p.aug", "--events", "in")) == [("e", "7", 1, 1), ("e", "0012", 2, 2)]


def test_parquet_in_and_out(shell: Shell) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    day = pa.array([0, 1], pa.date32())
    table = pa.table({"time": day, "place": ["l1", None], "level": [3.0, 4.0]})
    pq.write_table(table, shell.folder / "s.parquet")
    shell.file("p.aug", "event smoke(place: string, level: int). e(P, L) <- smoke(P, L). f(L, P) <- smoke(P, L).")
    run = ("run", "p.aug", "--events", "smoke=s.parquet")
    assert answers(shell.augury(*run))[0] == ("e", "l1", 3, "1970-01-01T00:00:00Z", "1970-01-01T00:00:00Z")
    assert shell.augury(*run, "--format", "parquet").code == 2
    assert shell.augury(*run, "--output", "out.parquet").code == 0
    assert shell.augury(*run, "--output", "out.parquet").code == 0
    found = pq.read_table(shell.folder / "out.parquet" / "e")
    assert found.column_names == ["p", "l", "start", "end", "id", "trace"]
    assert found.column("l").to_pylist() == [3, 4]
    shell.file("out.parquet/mine", "keep me")
    failed(shell.augury(*run, "--output", "out.parquet"), "has other files, such as mine")
    failed(shell.augury(*run, "--output", "p.aug", "--format", "parquet"), "is a file; Parquet is written to a folder")
    pq.write_table(pa.table({"place": ["l1"], "level": [2.5], "time": [1]}), shell.folder / "s.parquet")
    failed(shell.augury(*run), "s.parquet:1: `level` is declared as int, but is 2.5")
    shell.file("s.parquet", "no parquet")
    failed(shell.augury(*run), "s.parquet: is not a Parquet file")


# Mistakes


def test_missing_files_are_named(shell: Shell) -> None:
    failed(shell.augury("run", "no.aug", "--events", "events.jsonl"), "no.aug: no such file")
    failed(shell.augury("run", "fire.aug", "--events", "no.jsonl"), "no.jsonl: no such file")
    failed(shell.augury("check", "no.aug"), "no.aug: no such file")
    (shell.folder / "folder").mkdir()
    failed(shell.augury("run", "fire.aug", "--events", "folder"), "is a directory without data")
    shell.file("folder/a.csv", "type,time\n")
    shell.file("folder/b.jsonl", EVENTS)
    failed(shell.augury("run", "fire.aug", "--events", "folder"), "files of several kinds: csv, jsonl")


def test_an_empty_file_is_an_empty_history(shell: Shell) -> None:
    for name, text in (
        ("empty.jsonl", ""),
        ("empty.csv", ""),
        ("header.csv", "type,time\n"),
        ("blank.csv", "\n \n"),
        ("e.parquet", ""),
    ):
        done = shell.augury("run", "fire.aug", "--events", shell.file(name, text))
        assert (done.code, done.out) == (0, ""), done.err


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"type": "smoke", ', "events.jsonl:4: malformed JSON"),
        ("[1, 2]", "events.jsonl:4: not an event: [1, 2]"),
        ('{"type": "heat", "place": "l1"}', "events.jsonl:4: an event has a time"),
        ('{"type": "heat", "place": 7, "time": 9}', "events.jsonl:4: `place` is declared as string, but is 7"),
        (
            '{"type": "smoke", "place": "l1", "level": 2.5, "time": 9}',
            "events.jsonl:4: `level` is declared as int, but is 2.5",
        ),
        ('{"type": "smoke", "place": "l1", "time": 9}', "events.jsonl:4: `smoke` has no `level`"),
        ('{"type": "smok", "args": [], "time": 9}', "events.jsonl:4: unknown event type `smok`"),
        ('{"type": "heat", "place": "l1", "time": "noon"}', "events.jsonl:4: `time`: not a tick: 'noon'"),
        (
            '{"type": "heat", "place": "l1", "start": 9, "end": 8}',
            "events.jsonl:4: the event starts at 9, after its end 8",
        ),
        ('{"op": "revoke"}', "events.jsonl:4: a revocation names the id"),
        ('{"op": "remove", "id": "s1"}', "events.jsonl:4: unknown op 'remove'"),
        ('{"type": "heat", "args": [1, 2], "time": 9}', "events.jsonl:4: `heat` is declared with 1 arguments, not 2"),
        (
            '{"type": "heat", "place": 99999999999999999999, "time": 9}',
            "events.jsonl:4: `place` is declared as string: an integer beyond 64 bits",
        ),
    ],
)
def test_a_wrong_line_is_named_and_the_rest_can_be_processed(shell: Shell, line: str, message: str) -> None:
    shell.file("events.jsonl", EVENTS + line + "\n")
    failed(shell.augury("run", "fire.aug", "--events", "events.jsonl"), message)
    skipping = shell.augury("run", "fire.aug", "--events", "events.jsonl", "--on-error", "skip")
    assert len(answers(skipping)) == 2
    assert "skipped: 1" in skipping.err
    assert message in skipping.err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("place,level\nl1,3\n", "s.csv:1: has no column `time`"),
        ("place,level,time\nl1,3\n", "s.csv:2: 2 fields where the header has 3"),
        ("place,lvl,time\nl1,3,1\n", "s.csv:2: `smoke` has no column `level`"),
        ("place,level,time\nl1,high,1\n", "s.csv:2: `level` is declared as int, but is 'high'"),
        ("place,level,level,time\nl1,3,3,1\n", "s.csv:1: the column `level` occurs twice"),
    ],
)
def test_malformed_csv_is_refused(shell: Shell, text: str, message: str) -> None:
    shell.file("s.csv", text)
    failed(shell.augury("run", "fire.aug", "--events", "smoke=s.csv"), message)


def test_a_csv_without_types(shell: Shell) -> None:
    shell.file("s.csv", "place,level,time\nl1,3,1\n")
    failed(shell.augury("run", "fire.aug", "--events", "s.csv"), "has no column `type`", "--events TYPE=s.csv")


def test_two_events_of_one_id(shell: Shell) -> None:
    shell.file("twice.jsonl", EVENTS + '{"type": "heat", "place": "l9", "time": 9, "id": "h1"}\n')
    done = shell.augury("run", "fire.aug", "--events", "twice.jsonl")
    assert len(answers(done)) == 2
    assert "rejected: 1" in done.err


def test_rows_that_cannot_be_computed_are_counted(shell: Shell) -> None:
    shell.file("p.aug", "e(X) <- a(X) WHERE 1 / X > 0.")
    shell.file("a.csv", "type,x,time\na,0,1\na,1,2\n")
    done = shell.augury("run", "p.aug", "--events", "a.csv")
    assert answers(done) == [("e", 1, 2, 2)]
    assert "rule `e`: division by zero (1 time)" in done.err


def test_errors_of_a_program_exit_with_1(shell: Shell) -> None:
    shell.file("bad.aug", "e(X, Y) <- a(X) SEQ b(X)\nf <- c(.\n")
    failed(shell.augury("check", "bad.aug"), "bad.aug:1:6", "error[E102]", "bad.aug:2:7", "error[E101]", "3 errors")
    failed(shell.augury("run", "bad.aug", "--events", "events.jsonl"), "error[E101]")


def test_clocks_that_do_not_fit(shell: Shell) -> None:
    failed(shell.augury("run", "fire.aug", "--events", "events.jsonl", "--until", "noon"), "not a tick: 'noon'")
    shell.file("tick.aug", "tick 1ms. " + PROGRAM)
    failed(shell.augury("run", "tick.aug", "--events", "events.jsonl", "--clock", "timestamp"), "declares its tick")
    shell.file("unit.aug", "e(X) <- o: a(X), duration(o) > 5.")
    shell.file("a.jsonl", '{"type": "a", "args": [1], "time": "2026-01-01"}\n')
    failed(shell.augury("run", "unit.aug", "--events", "a.jsonl"), "E601", "needs a unit")


def test_usage_errors_exit_with_2(shell: Shell) -> None:
    assert shell.augury("run", "fire.aug").code == 2
    assert shell.augury("run", "fire.aug", "--events", "events.jsonl", "--changes", "--as-of", "3").code == 2
    assert shell.augury("fly", anew=True).code == 2
    assert shell.augury("--help").code == 0
    assert shell.augury("--version", anew=True).out.startswith("augury, version ")


# check, fmt, explain, why, demo


def test_check_reports_errors_and_warnings(shell: Shell) -> None:
    done = shell.augury("check", "fire.aug")
    assert (done.code, done.err) == (0, "")
    assert done.out == "fire.aug: no errors, 0 warnings, 1 rule\n"


def test_fmt_formats_in_place(shell: Shell) -> None:
    ugly = "% keep me\n  a( X )<-b(X)seq c( X )where X>1 .\n"
    neat = "% keep me\na(X) <- b(X) SEQ c(X) WHERE X > 1.\n"
    shell.file("u.aug", ugly)
    assert shell.augury("fmt", "--check", "u.aug").code == 1
    assert (shell.folder / "u.aug").read_text() == ugly
    assert shell.augury("fmt", "u.aug").code == 0
    assert (shell.folder / "u.aug").read_text() == neat
    assert shell.augury("fmt", "--check", "u.aug").code == 0
    assert shell.augury("fmt", "-", stdin=ugly).out == neat
    shell.file("bad.aug", "a(")
    failed(shell.augury("fmt", "bad.aug"), "E101")
    assert (shell.folder / "bad.aug").read_text() == "a("


def test_explain_prints_the_plan(shell: Shell) -> None:
    text = shell.augury("explain", "fire.aug").out
    assert "key       P" in text
    assert "horizon   10s" in text
    data = json.loads(shell.augury("explain", "fire.aug", "--format", "json").out)
    assert data["rules"][0]["key"] == ["P"]
    assert shell.augury("explain", "fire.aug", "--format", "mermaid").out.startswith("flowchart LR\n")


def test_why_prints_a_derivation(shell: Shell) -> None:
    ask = ("why", "fire.aug", "--events", "events.jsonl", "--event")
    one = shell.augury(*ask, 'fire_alarm("l1", 3) @ [1, 4]')
    assert one.out.splitlines() == [
        "fire_alarm('l1', 3) @ [1, 4]",
        "└─ by rule fire_alarm",
        "   ├─ smoke('l1', 3) @ 1  (input s1)",
        "   └─ heat('l1') @ 4  (input h1)",
    ]
    assert shell.augury(*ask, "fire_alarm").out.count("by rule fire_alarm") == 2
    data = json.loads(shell.augury(*ask, 'fire_alarm("l1", 3) @ [1, 4]', "--format", "json").out)
    assert [p["id"] for p in data[0]["derivations"][0]["parts"]] == ["s1", "h1"]
    failed(shell.augury(*ask, 'fire_alarm("l9", 3)'), "was not detected", "these were: fire_alarm('l1', 3) @ [1, 4]")
    assert "failed: no event smoke('l9', 3)" in shell.augury(*ask, 'fire_alarm("l9", 3)').err
    assert shell.augury(*ask, 'fire_alarm("l1", 3) @ [1, 4]', "--format", "mermaid").out.startswith("flowchart BT")
    failed(shell.augury(*ask, "flood"), "no rule derives `flood`")
    failed(shell.augury(*ask, "fire alarm"), "not an event: 'fire alarm'")


def test_demo_lists_and_runs_examples(shell: Shell) -> None:
    listed = shell.augury("demo")
    assert listed.code == 0 and "wildfire" in listed.out and "seattle_weather" in listed.out
    done = shell.augury("demo", "wildfire", "--embedded")
    assert done.code == 0
    assert "enhanced_fire: 2" in done.out and "by rule wind_increase" in done.out
    assert (
        "found.jsonl" in done.out and (shell.folder / "augury-demo/wildfire/found.jsonl").read_text().count("\n") == 37
    )
    assert "there is no application `nothing`" in shell.augury("demo", "nothing").err
    streamed = shell.augury("demo", "brokerage", "--embedded", "--stream", "--output", "here")
    assert streamed.code == 0 and "- 2026-03-02 " in streamed.out  # something is taken back


def test_new_project_runs(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new project runs: the command that is named, its tests, and its notebook."""
    done = shell.augury("new", "mine")
    assert done.code == 0
    failed(shell.augury("new", "mine"), "mine exists already")
    monkeypatch.chdir(shell.folder / "mine")
    command = next(line for line in done.out.splitlines() if "augury run" in line)
    found = Shell(shell.folder / "mine").augury(*command.split()[1:], "--format", "jsonl")
    assert [json.loads(line)["type"] for line in found.out.splitlines()] == [
        "large",
        "overdue",
        "daily",
        "overdue",
        "daily",
    ]
    tests = runpy.run_path("test_rules.py")
    assert shell.augury("test", "mine").code == 0
    tests["test_the_data"]()
    names: dict[str, object] = {}
    for cell in json.loads(Path("explore.ipynb").read_text())["cells"]:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), names)
    assert "retract" in str(names["change"])


# Files as they come


def test_the_time_column_may_have_another_name(shell: Shell) -> None:
    shell.file("d.csv", "date,place,level\n2026-01-01,l1,3\n2026-01-02,l2,1\n")
    shell.file("p.aug", "event smoke(place: string, level: int). e(P) <- smoke(P, L) WHERE L > 2.")
    failed(shell.augury("run", "p.aug", "--events", "smoke=d.csv"), "has no column `time`", "Say --time date")
    done = shell.augury("run", "p.aug", "--events", "smoke=d.csv", "--time", "date")
    assert answers(done) == [("e", "l1", "2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z")]
    shell.file("d.jsonl", '{"type": "smoke", "place": "l1", "level": 3, "ts": 5}\n')
    assert answers(shell.augury("run", "p.aug", "--events", "d.jsonl", "--time", "ts")) == [("e", "l1", 5, 5)]


def test_a_byte_order_mark_windows_lines_and_quoted_fields(shell: Shell) -> None:
    text = '\ufefftype,place,time\r\nheat,"a, ""b""\nc",1\r\nheat,d,2'
    (shell.folder / "h.csv").write_bytes(text.encode())
    shell.file("p.aug", "e(P) <- heat(P).")
    assert answers(shell.augury("run", "p.aug", "--events", "h.csv")) == [("e", 'a, "b"\nc', 1, 1), ("e", "d", 2, 2)]


def test_a_declared_attribute_called_id_is_no_event_id(shell: Shell) -> None:
    shell.file("p.aug", "event order(id: int, item: string). e(N, I) <- order(N, I).")
    shell.file("o.csv", "id,item,time\n7,gin,1\n7,rum,2\n")
    assert answers(shell.augury("run", "p.aug", "--events", "order=o.csv")) == [
        ("e", 7, "gin", 1, 1),
        ("e", 7, "rum", 2, 2),
    ]
    shell.file(
        "o.jsonl",
        '{"type": "order", "id": 7, "item": "gin", "time": 1}\n{"type": "order", "id": 7, "item": "rum", "time": 2}\n',
    )
    assert len(answers(shell.augury("run", "p.aug", "--events", "o.jsonl"))) == 2


def test_several_sources_are_one_stream(shell: Shell) -> None:
    shell.file("a.csv", "x,time\n1,1\n1,9\n")
    shell.file("b.csv", "x,time\n1,3\n")
    shell.file("p.aug", "e <- a(X) SEQ b(X).")
    done = shell.augury("run", "p.aug", "--events", "a=a.csv", "--events", "b=b.csv", "--lateness", "0")
    assert answers(done) == [("e", 1, 3)]
    assert done.err == ""  # a rule without a bound, over a history that has an end
    late = shell.augury(
        "run", "p.aug", "--events", "-", "--lateness", "1", stdin="type,x,time\na,1,1\nb,1,9\na,1,2\nb,1,8\n"
    )
    assert answers(late) == [("e", 1, 8), ("e", 1, 9)]
    assert "late: 1" in late.err


def test_numbers_among_calendar_times(shell: Shell) -> None:
    shell.file("p.aug", "e(X) <- a(X).")
    shell.file(
        "m.jsonl", '{"type": "a", "args": [1], "time": "2026-01-01"}\n{"type": "a", "args": [2], "time": 1772323200}\n'
    )
    failed(
        shell.augury("run", "p.aug", "--events", "m.jsonl"),
        "m.jsonl:2: `time`: the number 1772323200 among calendar times",
    )
    shell.file("n.csv", "type,x,time\na,1,1772323200000000\n")
    done = shell.augury("run", "p.aug", "--events", "n.csv", "--clock", "timestamp")
    assert answers(done) == [("e", 1, "2026-03-01T00:00:00Z", "2026-03-01T00:00:00Z")]


def test_why_by_type_and_time(shell: Shell) -> None:
    done = shell.augury("why", "fire.aug", "--events", "events.jsonl", "--event", "fire_alarm @ [1, 6]")
    assert done.out.splitlines()[0] == "fire_alarm('l1', 3) @ [1, 6]"


def test_facts_that_nothing_asks_for(shell: Shell) -> None:
    shell.file("p.aug", "static region(id: int, name: string). e(N) <- a(X) WHERE region(X, N).")
    shell.file("a.jsonl", '{"type": "a", "args": [2], "time": 1}\n')
    shell.file("r.csv", "id,name\n2,south\n")
    run = ("run", "p.aug", "--events", "a.jsonl")
    failed(
        shell.augury(*run, "--facts", "regions=r.csv"),
        "nothing in the program asks for facts of `regions`",
        "did you mean `region`?",
    )
    assert "static predicates without facts: 1" in shell.augury(*run).err
    assert answers(shell.augury(*run, "--facts", "region=r.csv")) == [("e", "south", 1, 1)]


def test_outputs_that_are_not_plain_files(shell: Shell) -> None:
    run = ("run", "fire.aug", "--events", "events.jsonl", "--format", "jsonl", "--output")
    (shell.folder / "link.jsonl").symlink_to("target.jsonl")
    assert shell.augury(*run, "link.jsonl").code == 0
    assert (shell.folder / "link.jsonl").is_symlink()
    assert len((shell.folder / "target.jsonl").read_text().splitlines()) == 2
    pipe = shell.folder / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    assert shell.augury(*run, "pipe").code == 0
    assert len(os.read(reader, 10_000).splitlines()) == 2
    os.close(reader)
    assert pipe.is_fifo()
    failed(shell.augury(*run, "."), "is a directory")
    failed(shell.augury(*run, "events.jsonl"), "is also an input")
    assert (shell.folder / "events.jsonl").read_text() == EVENTS
    assert not list(shell.folder.glob("*.part"))


def test_codes_with_leading_zeros_stay_text(shell: Shell) -> None:
    shell.file("p.aug", "e(X) <- a(X).")
    shell.file("a.csv", "type,card,time\na,0012,1\n")
    assert answers(shell.augury("run", "p.aug", "--events", "a.csv")) == [("e", "0012", 1, 1)]


@pytest.mark.parametrize(
    ("unbuffered", "options"),
    [
        ("", ("--format", "jsonl")),
        ("1", ("--format", "csv")),
        ("", ("--format", "table")),
        ("1", ("--format", "arrow")),
        ("1", ("--changes",)),
        ("", ("--changes",)),
    ],
)
def test_full_disk_is_reported(shell: Shell, unbuffered: str, options: tuple[str, ...]) -> None:
    """A disk that takes a part of the answers: the limit on the size of a file stands for it."""
    shell.file("wide.csv", "place,time\n" + "".join(f"{i},{i}\n" for i in range(3000)))
    shell.file("copy.aug", "found(P) <- seen(P).")
    with (shell.folder / "out").open("wb") as out:
        done = subprocess.run(
            [sys.executable, "-m", "augury", "run", "copy.aug", "--events", "seen=wide.csv", "--engine", "embedded", *options],
            cwd=shell.folder, stdout=out, stderr=subprocess.PIPE, text=True, check=False,
            env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192)),
        )  # fmt: skip
    assert (done.returncode, done.stderr) == (1, "error: cannot write: File too large\n")


def test_folders_to_include_from(shell: Shell) -> None:
    (shell.folder / "shared").mkdir()
    (shell.folder / "mine").mkdir()
    shell.file("shared/hot.aug", "hot(P) <- heat(P).")
    shell.file("mine/fire.aug", 'include "../shared/hot.aug".')
    failed(shell.augury("check", "mine/fire.aug"), "E107", "--allow-include mine/../shared")
    assert shell.augury("check", "mine/fire.aug", "--allow-include", "shared").code == 0


def test_program_without_rules_is_reported(shell: Shell) -> None:
    shell.file("none.aug", "")
    done = shell.augury("run", "none.aug", "--events", "events.jsonl")
    assert "the program has no rules, so nothing is detected" in done.err


def test_overview_imports_no_command() -> None:
    code = "import sys; from augury.cli import cli; cli(['--help'], standalone_mode=False); print(sorted(sys.modules))"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    overview, modules = shown.rsplit("\n", 2)[:2]
    assert not [name for name, _ in COMMANDS.values() if f"'augury.cli.{name}'" in modules]
    assert all(f"\n  {name} " in overview for name in COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_command_shows_its_help(name: str) -> None:
    shown = CliRunner().invoke(cli, [name, "--help"])
    assert shown.exit_code == 0 and f"Usage: cli {name} " in shown.output


def test_mistyped_command_is_corrected() -> None:
    assert "Did you mean 'check'?" in CliRunner().invoke(cli, ["chek"]).output


def test_warm_runs_applications_with_compiled_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    monkeypatch.setattr("augury.cli.warm.EXAMPLES", ("wildfire",))
    monkeypatch.setattr("augury.core.jit.compile_all", lambda: made.append("compiled"))
    result = CliRunner().invoke(cli, ["warm"])
    assert result.exit_code == 0, result.output
    assert made == ["compiled"] and "compiled what 1 application needs" in result.output
