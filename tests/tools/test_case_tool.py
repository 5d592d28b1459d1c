"""`augury test` as its users run it: what it prints, writes and exits with."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from augury.core.errors import DataError
from augury.testing import read_spec
from augury.tools.mutation import mutate
from augury.tools.rule_coverage import CoverageRun
from tests.support.commands import run

RULES = """\
output fire_alarm.
rule smoke: fire_alarm(L) <- (smoke(L) SEQ heat(L, T)).10s WHERE T > 40.
rule call: fire_alarm(L) <- o: reported(L), w: extend(o, 5s), while w: not localised(L).
"""
CASES = """\
# Cases of two rules.
program = "rules.aug"

[[case]]
name = "smoke, then heat"
tags = ["quick"]
events = ["smoke('l1') @ 1", "heat('l1', 60) @ 3"]
expected = ["fire_alarm('l1') @ [1, 3]"]

[[case]]
name = "too late"  # by far
events = ["smoke('l1') @ 1", "heat('l1', 60) @ 13"]
expected = []

[[case]]
name = "in steps"
steps = [
    { push = ["s: smoke('l1') @ 1", "heat('l1', 50) @ 3"], emits = ["+ fire_alarm('l1') @ [1, 3]"] },
    { revoke = "s", emits = ["- fire_alarm('l1') @ [1, 3]"] },
    { push = "reported('p') @ 5", emits = [] },
    { advance = 12, emits = ["+ fire_alarm('p') @ [5, 10]"] },
]
expected = ["fire_alarm('p') @ [5, 10]"]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "rules.aug").write_text(RULES)
    (tmp_path / "fire_cases.toml").write_text(CASES)
    return tmp_path


def test_cases_of_a_folder_pass(folder: Path) -> None:
    done = run(["test"], folder)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("3 cases: 3 passed in ")


def test_failures_are_explained(folder: Path) -> None:
    text = CASES.replace("expected = []", "expected = [\"fire_alarm('l1') @ [1, 13]\"]").replace("60) @ 3", "30) @ 3")
    (folder / "fire_cases.toml").write_text(
        text.replace(
            "events = [\"smoke('l1') @ 1\", \"heat('l1', 30)", "events = [\"smoke('l2') @ 1\", \"heat('l2', 90)"
        )
    )
    done = run(["test", "--junit", "junit.xml"], folder)
    assert done.code == 1
    for line in (
        "FAILED fire_cases.toml: smoke, then heat", "missing: fire_alarm('l1') @ [1, 3]", "too much: fire_alarm('l2') @ [1, 3]",
        "why fire_alarm('l2') @ [1, 3]:", "by rule smoke", "why not fire_alarm('l1') @ [1, 13]:", "failed: `window 10s`: from 1 to 13 is 12",
        "3 cases: 2 failed, 1 passed",
    ):  # fmt: skip
        assert line in done.out, line
    suite = ElementTree.parse(folder / "junit.xml").getroot()[0]
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("3", "2", "0")
    reported = json.loads(run(["test", "--format", "json"], folder).out)
    assert (reported["passed"], reported["failed"]) == (1, 2)
    assert reported["cases"][0]["differences"][0]["expected"] == ["fire_alarm('l1') @ [1, 3]"]


def test_cases_are_selected(folder: Path) -> None:
    for options, number in (
        (["-k", "late or steps"], 2),
        (["-k", "not late"], 2),
        (["--tag", "quick"], 1),
        (["-k", "too late"], 1),
    ):
        assert run(["test", ".", *options], folder).out.startswith(f"{number} case"), options
    done = run(["test", "-k", "nothing"], folder)
    assert (done.code, done.out, done.err) == (1, "", "no cases that meet nothing\n")
    assert run(["test", "-k", "late is not here"], folder).err == "no cases that meet late is not here\n"
    assert "not a selection: 'late and'" in run(["test", "-k", "late and"], folder).err
    (folder / "none").mkdir()
    assert run(["test", "none"], folder).err == "no cases in none: a case is a [[case]] of a .toml file\n"


def test_update_writes_actual_results_and_keeps_the_rest(folder: Path) -> None:
    path = folder / "fire_cases.toml"
    wrong = CASES.replace('[1, 3]"]\n\n', '[1, 4]"]\n\n').replace(
        "+ fire_alarm('p') @ [5, 10]", "+ fire_alarm('p') @ [5, 11]"
    )
    path.write_text(wrong)
    done = run(["test", "--update"], folder, stdin="n\n")
    assert done.code == 1 and path.read_text() == wrong
    assert run(["test", "--update"], folder, stdin="y\n").code == 0
    assert path.read_text() == CASES


def test_other_inputs_and_expectations(tmp_path: Path) -> None:
    (tmp_path / "heat.csv").write_text("place,degrees,time\nl1,50,3\n")
    (tmp_path / "prices.csv").write_text("item,amount\ntea,4\n")
    (tmp_path / "cases.toml").write_text("""
program = '''
event heat(place: string, degrees: int).
static price(item: string, amount: float).
hot(L) <- heat(L, T) WHERE T > 40.
paid(I, A) <- order(I) WHERE price(I, A).
'''
[facts]
price = "prices.csv"
[[case]]
name = "files and tables"
tables.heat = "heat.csv"
tables.order = [{ args = ["tea"], time = 4 }]
expected = ["hot('l1') @ 3", "paid('tea', 4.0) @ 4"]
[[case]]
name = "calendar times without a clock"
events = ["heat('l2', 60) @ '2026-03-02 09:00'"]
expected = ["hot('l2') @ '2026-03-02 09:00'"]
[[case]]
name = "an error"
program = "hot(L) <- heat(K, T)."
facts = {}
expect_error = "E301"
[[case]]
name = "nothing of a type"
events = ["heat('l2', 20) @ 1", "order('tea') @ 2"]
expect_none = ["hot", "paid('gin', _)"]
[[case]]
name = "a query"
program = ""
facts = {}
query = '''
PREFIX e: <http://e/>
SELECT ?x
WITHIN 10 SECONDS
FROM STREAM S <http://e/s>
WHERE {
  SEQ(A)
  DEFINE GPM A ON S { ?x e:knows ?y }
}
'''
events = ["S { e:a e:knows 5 } @ 1"]
expected = ["q(e:a) @ 1"]
""")
    for case in read_spec(tmp_path / "cases.toml"):
        case.check()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("program = 'a <- b.'\n[[case]]\nexpectd = []", "unknown key `expectd` in case 1\n  hint: did you mean `expected`?"),
        ("program = 'a <- b.'\n[[case]]\nexpected = 'a @ 1'", "`expected` of case 1 is a list, not 'a @ 1'"),
        ("program = 'a <- b.'\n[[case]]\nsteps = [{ psuh = [] }]", "a step of case 1 has no key `psuh`"),
        ("[[case]]\nexpected = []", "case 1 needs `program`"),
        ("program = ''", "has no [[case]]"),
    ],
)  # fmt: skip
def test_mistakes_in_files_are_named(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "cases.toml").write_text(text)
    with pytest.raises(DataError, match=r"cases\.toml") as error:
        read_spec(tmp_path / "cases.toml")
    assert message in str(error.value)


def test_coverage_says_what_no_case_decides(folder: Path) -> None:
    done = run(["test", "--coverage", "--html", "cover.html", "--lcov", "cover.lcov", "--min", "90"], folder)
    assert done.code == 1 and "is below 90%" in done.err
    assert "condition `T > 40`: never decides alone" in done.out and "rules.aug:2:66 " in done.out
    assert "rules.aug:3:63  absence `while w: not localised(L)`: never blocks" in done.out
    assert "windows                 2 of 2     100.0%" in done.out
    assert "T &gt; 40</span>" in (folder / "cover.html").read_text()
    lcov = (folder / "cover.lcov").read_text()
    assert "SF:rules.aug\n" in lcov and "DA:2,2\n" in lcov and lcov.endswith("end_of_record\n")


def test_each_kind_of_part_is_covered_once_it_went_both_ways(tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text("""
program = '''
static near(a: int, b: string).
a(X) <- (b(X) OR c(X)) WHERE X > 1.
d(X, Y) <- NOT(stop(X)).[b(X), c(X)], near(X, Y).
e(X) <- c(X) ONCE PER (X).
'''
[[case]]
facts.near = [[3, "y"]]
events = ["b(1) @ 1", "b(3) @ 2", "stop(3) @ 3", "c(3) @ 4", "x: b(3) @ 5", "c(3) @ 6", "revoke x"]
expected = ["a(3) @ 2", "a(3) @ 4", "a(3) @ 6", "e(3) @ 4"]
changes = [
  "+ a(3) @ 2", "+ a(3) @ 4", "+ e(3) @ 4", "+ a(3) @ 5", "+ d(3, 'y') @ [5, 6]", "+ a(3) @ 6", "- a(3) @ 5", "- d(3, 'y') @ [5, 6]",
]
""")
    cover = CoverageRun()
    for case in read_spec(tmp_path / "c.toml"):
        case.check()
        cover.add(case)
    missed = {
        (part.rule, part.kind, part.span.text): part.missed for part in cover.coverage.parts.values() if part.missed
    }
    assert missed.pop(("e", "rule", "e(X) <- c(X) ONCE PER (X)")) == ["loses an answer"]
    assert missed.pop(("d", "absence", "NOT(stop(X)).[b(X), c(X)]")) == ["blocks what was an answer"]
    assert not missed
    assert cover.coverage.counts()["alternative"] == (4, 4)


def test_mutants_that_survive_are_listed(folder: Path) -> None:
    done = run(["test", "--mutate"], folder)
    assert done.code == 0
    assert "rules.aug:3:63  absence: without `while w: not localised(L)`" in done.out
    assert "rules.aug:2:66  comparison: `>` → `>=`" in done.out
    assert "`10s` → `20s`" not in done.out  # `too late` notices
    complete = (
        CASES
        + """
[[case]]
name = "just not hot enough, out of order, localised"
events = ["smoke('l1') @ 1", "heat('l1', 40) @ 3", "heat('l2', 41) @ 4", "smoke('l2') @ 5", "reported('p') @ 6", "localised('p') @ 11"]
until = 30
expected = []
[[case]]
name = "just hot enough, and at the last moment"
events = ["smoke('l1') @ 1", "heat('l1', 41) @ 11", "reported('p') @ 1", "localised('p') @ 7"]
until = 30
expected = ["fire_alarm('l1') @ [1, 11]", "fire_alarm('p') @ [1, 6]"]
"""
    )
    (folder / "fire_cases.toml").write_text(complete)
    assert mutate(read_spec(folder / "fire_cases.toml")).survivors == []


def test_pytest_finds_the_cases_of_a_new_project(tmp_path: Path) -> None:
    assert run(["new", "mine"], tmp_path).code == 0
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:augury",
        "-p",
        "augury.tools.pytest_plugin",
    ]
    done = subprocess.run(command, cwd=tmp_path / "mine", capture_output=True, text=True, timeout=300)
    assert "3 passed" in done.stdout, done.stdout + done.stderr
    path = tmp_path / "mine" / "cases.toml"
    path.write_text(path.read_text().replace("117", "118"))
    done = subprocess.run(
        [*command, "-k", "shipped"], cwd=tmp_path / "mine", capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 1 and "missing: large(1, 118)" in done.stdout, done.stdout
    assert "why large(1, 117.0)" in done.stdout


def test_functions_of_the_command_line_are_for_cases_that_name_none(tmp_path: Path) -> None:
    (tmp_path / "twice.py").write_text(
        "import augury\n\n\n@augury.function\ndef twice(x: int) -> int:\n    return 2 * x\n"
    )
    (tmp_path / "cases").mkdir()
    (tmp_path / "cases" / "a_cases.toml").write_text(
        '[[case]]\nname = "a"\nprogram = "b(twice(X)) <- a(X)."\nevents = ["a(2) @ 1"]\nexpected = ["b(4) @ 1"]\n'
    )
    assert run(["test", "cases"], tmp_path).code == 1
    done = run(["test", "cases", "--functions", "twice.py", "--coverage"], tmp_path)
    assert done.code == 0 and "1 passed" in done.out
