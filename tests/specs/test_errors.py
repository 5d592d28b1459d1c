"""Wrong programs, each with the exact message it gets; and every code has a case."""

import random
import tomllib
import tracemalloc
from pathlib import Path

import pytest

import augury
from augury.core.errors import render_all
from augury.language.codes import CODES

FOLDER = Path(__file__).parents[1] / "errors"
CASES = [
    (f"{path.stem}: {case['name']}", {"file": "q.spaseq" if path.stem == "spaseq" else "program.aug", **case})
    for path in sorted(FOLDER.glob("*.toml"))
    for case in tomllib.loads(path.read_text(encoding="utf-8"))["case"]
]
# What needs several files: the code, the files, and the message; the first file is the program.
INCLUDES = {
    "a file includes itself": (
        "E103",
        {"fire.aug": 'include "heat.aug".\n', "heat.aug": 'hot(L) <- heat(L).\ninclude "fire.aug".\n'},
        """
error[E103]: `fire.aug` includes itself
 --> heat.aug:2:1
2 | include "fire.aug".
  | ^^^^^^^^^^^^^^^^^^
  note: the way round: fire.aug → heat.aug → fire.aug
""",
    ),
    "an included file is missing": (
        "E107",
        {"fire.aug": 'include "rules/heat.aug".\nfire(L) <- (smoke(L) SEQ heat(L)).10min.\n'},
        """
error[E107]: cannot include `rules/heat.aug`: no such file
 --> fire.aug:1:1
1 | include "rules/heat.aug".
  | ^^^^^^^^^^^^^^^^^^^^^^^^
  hint: it was looked for at rules/heat.aug
""",
    ),
    "an included file lies elsewhere": (
        "E107",
        {"fire.aug": 'include "/etc/passwd".\ninclude "../other.aug".\nfire(L) <- smoke(L).\n'},
        """
error[E107]: may not include `/etc/passwd`: it lies outside the program's folder
 --> fire.aug:1:1
1 | include "/etc/passwd".
  | ^^^^^^^^^^^^^^^^^^^^^
  hint: allow its folder: --allow-include /etc, or include_from=[…] from Python

error[E107]: may not include `../other.aug`: it lies outside the program's folder
 --> fire.aug:2:1
2 | include "../other.aug".
  | ^^^^^^^^^^^^^^^^^^^^^^
  hint: allow its folder: --allow-include .., or include_from=[…] from Python
""",
    ),
    "a mistake in an included file": (
        "E301",
        {"fire.aug": 'include "heat.aug".\n', "heat.aug": "hot(L, T) <- heat(L).\n"},
        """
error[E301]: `T` is not bound in the head
 --> heat.aug:1:8
1 | hot(L, T) <- heat(L).
  |        ^
  hint: an event, a static predicate or `=` must give it a value
""",
    ),
}


@augury.function(pure=False)  # type: ignore[untyped-decorator]
def lottery(ticket: int) -> int:
    """For the cases that need a function which is not pure."""
    return random.randrange(ticket)


def message(program: str | Path, name: str = "program.aug") -> str:
    """Everything that is said about a program, warnings included."""
    try:
        return render_all(augury.compile(program, functions=[lottery], name=name).warnings)
    except augury.ProgramError as error:
        return render_all(error.diagnostics)


@pytest.mark.parametrize("case", [c for _, c in CASES], ids=[name for name, _ in CASES])
def test_message(case: dict[str, str]) -> None:
    assert message(case["program"], case["file"]) == case["message"].strip("\n")


@pytest.mark.parametrize("name", INCLUDES)
def test_message_of_several_files(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, files, expected = INCLUDES[name]
    monkeypatch.chdir(tmp_path)
    for path, text in files.items():
        Path(path).write_text(text, encoding="utf-8")
    first = next(iter(files))
    assert message(Path(first), first) == expected.strip("\n")


def test_there_are_a_hundred() -> None:
    assert len(CASES) >= 100


@pytest.mark.parametrize(
    "code", [code for code in CODES if not code.startswith("L")]
)  # those are lints, see test_check_tool.py
def test_every_code_has_a_case(code: str) -> None:
    assert any(f"[{code}]" in case["message"] for _, case in CASES) or any(code == c for c, _, _ in INCLUDES.values())


@pytest.mark.parametrize(
    "text",
    [
        "",
        "% only a comment\n/* and another */",
        "\x00\x01\x02",
        "\ufefffire(L) <- smoke(L).",
        "e(X) <- " + "(" * 200 + "a(X)" + ")" * 200 + ".",
        "e(X) <- " + "(" * 200 + "a(X).",
        "e(X" + " + 1" * 1000 + ") <- a(X).",
        "e(X) <- " + " SEQ ".join(["a(X)"] * 1000) + ".",
        "e(X) <- a(" + "9" * 5000 + ").",
        "e(X) <- a('" + "x" * 100_000 + ").",
        "e(X) <- a(X)\x0c b(X).\u2028",
    ],
    ids=lambda text: repr(text[:20]),
)
def test_nothing_but_diagnostics_comes_out(text: str) -> None:
    message(text)


LARGE = {
    "a chain of patterns": "e(X) <- (" + " SEQ ".join(["a(X)"] * 3000) + ").10.",
    "a list of patterns": "e(X) <- " + ", ".join(["a(X)"] * 3000) + ".",
    "alternatives": "e(X) <- " + " OR ".join(["a(X)"] * 3000) + ".",
    "a sum": "e(X" + " + 1" * 3000 + ") <- a(X).",
    "a nested term": "e(X) <- a(X, " + "f(" * 3000 + "1" + ")" * 3000 + ").",
    "negations": "e(X) <- a(X) WHERE " + "not " * 3000 + "X = 1.",
    "windows": "e(X) <- (a(X))" + ".10" * 3000 + ".",
    "a repetition": "e(X) <- (a(X) ^ 201).10.",
    "a static rule": "f(X) :- " + ", ".join(["g(X)"] * 3000) + ".\ng(1).\ne(X) <- a(X) WHERE f(X).",
}


@pytest.mark.parametrize("name", LARGE)
def test_what_is_too_large_is_said_so(name: str) -> None:
    with pytest.raises(augury.ProgramError) as error:
        augury.compile(LARGE[name])
    assert {d.code for d in error.value.diagnostics if d.severity == "error"} == {"E108"}


GENERATED = {
    "alternatives": "e(X) <- a(X) WHERE " + " or ".join(f"X = {i}" for i in range(1, 3000)) + ".",
    "conditions": "e(X) <- a(X) WHERE " + " and ".join(f"X != {i}" for i in range(2, 3000)) + ".",
    "literals": "e(X) <- a(X), " + ", ".join(f"X != {i}" for i in range(2, 3000)) + ".",
    "facts": "\n".join(f"f({i})." for i in range(3000)) + "\ne(X) <- a(X) WHERE f(X).",
    "rules": "\n".join(f"e(X) <- a(X) WHERE X = {i}." for i in range(1000)),
    "parentheses": "e(X) <- " + "(" * 3000 + "a(X)" + ")" * 3000 + ".",
    "a repetition": "e(X) <- (a(X) ^ 1).10.",
}


@pytest.mark.parametrize("name", GENERATED)
def test_long_programs_run(name: str) -> None:
    program = augury.compile(GENERATED[name])
    program.explain()
    assert [e.args for e in augury.run(program, [{"type": "a", "args": [1], "time": 1}])] == [(1,)]


def test_a_long_literal_costs_what_it_is_long() -> None:
    text = "x" * 1_000_000
    tracemalloc.start()
    program = augury.compile(f"e('{text}') <- a(X).")
    assert tracemalloc.get_traced_memory()[1] < 50_000_000
    tracemalloc.stop()
    assert [e.args for e in augury.run(program, [{"type": "a", "args": [1], "time": 1}])] == [(text,)]


def test_no_recursion_error_comes_out() -> None:
    chain = "g0(1).\n" + "\n".join(f"g{i + 1}(X) :- g{i}(X)." for i in range(1000))
    program = augury.compile(chain + "\np(X) <- a(X) WHERE g1000(X).")
    with pytest.raises(augury.RunError, match="nested too deeply"):
        augury.run(program, [{"type": "a", "args": [1], "time": 1}])
    with pytest.raises(augury.RunError, match="nested too deeply"):
        program.session(clock="logical").push({"type": "a", "args": [1], "time": 1})


def test_a_link_lies_where_it_leads_to(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "rules.aug").write_text("hunter2 hunter2", encoding="utf-8")
    (tmp_path / "inside").mkdir()
    (tmp_path / "inside" / "link.aug").symlink_to(tmp_path / "outside" / "rules.aug")
    program = tmp_path / "inside" / "fire.aug"
    program.write_text('include "link.aug".\nfire(L) <- smoke(L).\n', encoding="utf-8")
    said = message(program)
    assert "E107" in said and "hunter2" not in said


def test_folders_that_are_allowed(tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "rules.aug").write_text("hot(L) <- heat(L).", encoding="utf-8")
    (tmp_path / "mine").mkdir()
    program = tmp_path / "mine" / "fire.aug"
    program.write_text('include "../shared/rules.aug".\nfire(L) <- hot(L).\n', encoding="utf-8")
    with pytest.raises(augury.ProgramError, match="E107"):
        augury.compile(program)
    for folders in ([tmp_path / "shared"], str(tmp_path / "shared")):
        assert augury.compile(program, include_from=folders).outputs == ("hot", "fire")
