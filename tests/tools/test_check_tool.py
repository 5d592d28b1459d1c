"""`augury check` with its lints, as authors run it; and each lint on a program that has it, and on one that has not."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from augury.compiled import Compiled
from augury.core.errors import Source
from augury.language.codes import CODES
from augury.lint import lint
from augury.tools.checking import check_program, fixed
from tests.support.commands import run

# A program, the lints that it draws, and what the safe fixes make of it (None: they change nothing).
LINTS = [
    ("risk(X, 1) :- !.\nrisk(X, 2) :- old(X).\nold(3).\nb(X) <- a(X), risk(X, 2).", "L101", "risk(X, 1) :- !.\nold(3).\n…"),
    ("b(X) <- a(X, Y), Y > 1.\nb(Z) <- a(Z, Q), Q > 1.", "L102", "b(X) <- a(X, Y), Y > 1.\n"),
    ("p(1). p(1).\nb(X) <- a(X), p(X).", "L102", "p(1). \n…"),
    ("b(X) <- a(X, Y), Y > 1.\nb(Z) <- a(Z, Q).", "L103", "W303"),
    ("b(X) <- (a(X) SEQ c(X)).5s.\nb(X) <- (a(X) SEQ c(X)).9s.", "L103", None),
    ("b(X) <- a(X, Y), Y > 5, Y > 3.", "L104", "b(X) <- a(X, Y), Y > 5."),
    ("b(X) <- a(X, Y) WHERE Y > 3 and Y > 5.", "L104", "b(X) <- a(X, Y) WHERE Y > 5."),
    ("b(X) <- a(X, Y), not (Y > 5), Y < 3.", "L104", "b(X) <- a(X, Y), Y < 3."),
    ("b(X) <- a(X, Y), Y > 3 or Y <= 3.", "L104", None),
    ("b(X) <- a(X, Y), Y = Y.", "L104", None),
    ("b(X) <- a(X, Y), Y > 5.\nb(X) <- a(X, Y), 9 < Y.", "L103", None),
    ("b(X) <- a(X, Y), near(X, Y), near(X, Y).\nnear(1, 2).", "L102", "b(X) <- a(X, Y), near(X, Y).\nnear(1, 2)."),
    ("b(X) <- (a(X) OR c(X) OR a(X)).", "L102", None),
    ("b(X) <- a(X), 1 < 2.", "L104", "b(X) <- a(X)."),
    ("b(X, count(Y)) <- o: a(X), w: extend(o, 3s), while w: collect c(X, Y), count(Y) >= 1.", "L104", "b(X, count(Y)) <- o: a(X), w: extend(o, 3s), while w: collect c(X, Y)."),
    ("b(X, count(Y)) <- o: a(X), w: extend(o, 3s), while w: collect c(X, Y), count(Y) < 1.", "L105", None),
    ("b(X) <- ((a(X) SEQ c(X)).3h SEQ d(X)).1h.", "L106", "b(X) <- ((a(X) SEQ c(X)) SEQ d(X)).1h."),
    ("b(X, Y) <- (a(X) SEQ c(Y)).5s.", "L107", None),
    ("b(X) <- o: a(X), w: extend(o, 3s), while w: not c(_Y).", "L108", None),
    ("b(X, mode(Y)) <- o: a(X), w: extend(o, 3s), while w: collect c(X, Y).", "L108", None),
    ("output b.\nb(X) <- a(X).\nc(X) <- a(X).", "L109", None),
    ("event a(x: int).\nevent z(x: int).\nb(X) <- a(X).", "L110", None),
    ("event day(x: string).\nb(X) <- day(X).", "L111", None),
    ("b(X) <- o: a(X), a: c(X), o before a, {o, a} within 3s.\nd(X) <- b(X).\na(X) <- q(X).", "L111", None),
    ("b(X) <- a(X) POLICY recent.", "L112", "b(X) <- a(X)."),
    ("policy recent.\nb(X) <- a(X).", "L112", "b(X) <- a(X)."),
    ("b(X) <- a(X, Y), Y \\= 3, Y =< 7.", "L113 L113", "b(X) <- a(X, Y), Y != 3, Y <= 7."),
    ("b(X) <- a(X), \\+p(X).\np(1).", "L113", "b(X) <- a(X), not p(X).\np(1)."),
    ("b(X) <- a(X).  % ignore L107: there is none", "L100", "b(X) <- a(X).  "),
    ("b(X, Y) <- (a(X) SEQ c(Y)).5s.  % ignore L107", "L100", None),
]  # fmt: skip
CLEAN = [
    "b(X) <- a(X, Y), Y > 3, Y < 5.",
    "b(X, Y) <- (a(X) SEQ c(Y)).5s WHERE near(X, Y).\nnear(1, 2).",
    "b(X, Y) <- (a(X, K) SEQ c(Y, L)).5s WHERE K = L.",
    "b(X) <- o: a(X), w: extend(o, 3s), while w: not c(_).",
    "b(X, median(Y)) <- o: a(X), w: extend(o, 3s), while w: collect c(X, Y).",
    "b(X) <- a(X, Y), Y >= 5.\nb(X) <- a(X, Y), Y = 4, X > 3.\nb(X) <- a(X, Y), Y > 3, X > 4.",
    "b(X) <- a(X, Y), Y > 3 or Y < 3.",
    "b(X) <- (a(X) SEQ c(X)).5s POLICY recent.\nb(X) <- (a(X) SEQ c(X)).5s.",
    "b(X) <- a(X, 'Y \\= 3').  % =< in a comment",
    "event day(x: string, y: int, z: int).\nb(X) <- day(X, _, _).",
    "% ignore L107, W304: two streams of a few events\nb(X, Y) <- a(X) SEQ c(Y).",
    "b(X, Y) <- (a(X) SEQ c(Y)).5s.  % ignore L107: few",
]


def _lints(text: str) -> list[str]:
    return [d.code for d in lint(Compiled.of([Source("p.aug", text)])) if d.code.startswith("L")]


@pytest.mark.parametrize(("text", "codes", "after"), LINTS)
def test_lints(text: str, codes: str, after: str | None) -> None:
    assert _lints(text) == codes.split()
    sources, _ = fixed([Source("p.aug", text)], lambda s: check_program(s, Compiled.of))
    if after is None:
        assert sources[0].text == text
    elif after == "W303":  # the name of a variable that occurs once, and no more
        assert sources[0].text == text.replace("a(Z, Q)", "a(Z, _Q)")
    elif after.endswith("…"):
        assert sources[0].text.startswith(after.removesuffix("…"))
    else:
        assert sources[0].text == after


@pytest.mark.parametrize("text", CLEAN)
def test_no_lints(text: str) -> None:
    assert _lints(text) == []


def test_every_lint_has_a_case() -> None:
    assert {code for _, codes, _ in LINTS for code in codes.split()} == {code for code in CODES if code[0] == "L"}


def test_retention_is_compared_with_windows() -> None:
    program = Compiled.of([Source("p.aug", "b(X) <- (a(X) SEQ c(X)).2h SEQ d(X).")])
    assert [d.code for d in lint(program, 3_600_000_000)] == ["W304", "L106"]
    assert [d.code for d in lint(program, 7_200_000_000)] == ["W304"]


PROGRAM = "event a(x: int, y: int).\nb(X) <- a(X, Y), Y > 5, Y \\= 2.\nc(X, Z) <- (a(X, _) SEQ a(Z, _)).1h.\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "p.aug").write_text(PROGRAM)
    (tmp_path / "wrong.aug").write_text("b(X) <- a(X), Y > 3.\n")
    return tmp_path


def test_formats(folder: Path) -> None:
    plain = json.loads(run(["check", "p.aug", "--format", "json"], folder).out)
    assert [(d["code"], d["line"], d["column"], d["end_column"]) for d in plain] == [
        ("L104", 2, 25, 31),
        ("L113", 2, 27, 29),
        ("L107", 3, 13, 32),
    ]
    assert plain[0]["fix"]["edits"][0] == {
        "file": "p.aug", "line": 2, "column": 23, "end_line": 2, "end_column": 31, "text": "",
    }  # fmt: skip
    sarif = json.loads(run(["check", "p.aug", "--format", "sarif"], folder).out)
    (results,) = [r["results"] for r in sarif["runs"]]
    assert [r["ruleId"] for r in results] == ["L104", "L113", "L107"]
    assert results[2]["locations"][0]["physicalLocation"]["region"] == {
        "startLine": 3, "startColumn": 13, "endLine": 3, "endColumn": 32,
    }  # fmt: skip
    github = run(["check", "wrong.aug", "--format", "github"], folder)
    assert github.code == 1
    assert github.out.startswith("::error file=wrong.aug,line=1,endLine=1,col=15,endColumn=16,title=E301::`Y` is not")


def test_select_ignore_and_strict(folder: Path) -> None:
    assert run(["check", "p.aug"], folder).code == 0
    assert run(["check", "p.aug", "--strict"], folder).code == 1
    chosen = run(["check", "p.aug", "--select", "L1", "--ignore", "L104,L107", "--format", "json"], folder)
    assert [d["code"] for d in json.loads(chosen.out)] == ["L113"]
    assert run(["check", "p.aug", "--ignore", "L", "--strict"], folder).code == 0
    assert run(["check", "wrong.aug", "--ignore", "E301"], folder).code == 1  # an error is never ignored


def test_each_file_may_be_a_program(folder: Path) -> None:
    (folder / "other.aug").write_text(PROGRAM)
    assert "L102" in run(["check", "p.aug", "other.aug"], folder).err
    both = run(["check", "p.aug", "other.aug", "--each"], folder)
    assert both.code == 0 and "L102" not in both.err and both.out.count("2 rules") == 2


def test_fix_changes_what_is_safe(folder: Path) -> None:
    done = run(["check", "p.aug", "--fix"], folder)
    assert (folder / "p.aug").read_text() == PROGRAM.replace(", Y \\= 2", "")
    assert "p.aug:2:23: remove the condition" in done.err and "1 finding fixed" in done.err and "L107" in done.err
    assert "nothing to fix safely" in run(["check", "p.aug", "--fix"], folder).err


def test_watch_checks_again(folder: Path) -> None:
    command = [sys.executable, "-m", "augury", "check", "p.aug", "--watch"]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        try:
            assert "2 rules" in process.stdout.readline()
            time.sleep(0.01)  # so that the time of the file is another one
            (folder / "p.aug").write_text(PROGRAM + "d(X) <- a(X, 1).\n")
            assert "3 rules" in process.stdout.readline()
        finally:
            process.kill()
