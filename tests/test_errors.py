"""Wrong programs, each with the exact message it gets; and every code has a case."""

import tomllib
from pathlib import Path

import pytest

import augury
from augury.errors import render_all
from augury.language.codes import CODES

FOLDER = Path(__file__).parent / "errors"
CASES = [
    (f"{path.stem}: {case['name']}", case)
    for path in sorted(FOLDER.glob("*.toml"))
    for case in tomllib.loads(path.read_text(encoding="utf-8"))["case"]
]


def message(program: str) -> str:
    """Everything that is said about a program, warnings included."""
    try:
        return render_all(augury.compile(program, name="program.aug").warnings)
    except augury.ProgramError as error:
        return render_all(error.diagnostics)


@pytest.mark.parametrize("case", [c for _, c in CASES], ids=[name for name, _ in CASES])
def test_message(case: dict[str, str]) -> None:
    assert message(case["program"]) == case["message"].strip("\n")


def test_there_are_a_hundred() -> None:
    assert len(CASES) >= 100


@pytest.mark.parametrize("code", CODES)
def test_every_code_has_a_case(code: str) -> None:
    assert any(f"[{code}]" in case["message"] for _, case in CASES)
