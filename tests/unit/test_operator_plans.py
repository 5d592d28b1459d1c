"""The physical plan of every example is golden: operators, keys, conditions in order, columns, kept state.

`python -m tests.unit.test_operator_plans` writes the files again.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import augury
from augury.examples import EXAMPLES, load

GOLDEN = Path(__file__).parents[1] / "golden" / "explain"
SOURCE = Path(augury.__file__).parent / "examples"


def operators(name: str) -> str:
    """The physical plan of an example."""
    example = load(name)
    sources = [SOURCE / name / path for path in example.program]
    facts = [source.partition("=")[0] for source in example.facts]
    return augury.compile(sources, facts=facts).explain("operators") + "\n"


@pytest.mark.parametrize("name", EXAMPLES)
def test_example_runs_as_its_golden_plan(name: str) -> None:
    if load(name).missing:
        pytest.skip("an extra is not installed")
    assert operators(name) == (GOLDEN / f"{name}.txt").read_text(encoding="utf-8")


def test_metrics_of_a_session_stand_beside_its_operators() -> None:
    from augury.explain.sessions import explain_session

    session = augury.compile("m(X) <- (a(X) SEQ b(X)).10s.").session(clock="logical")
    session.push([augury.Event("a", (1,), 1, 1), augury.Event("b", (1,), 2, 2)])
    lines = explain_session(session).splitlines()
    join = next(i for i, line in enumerate(lines) if "SEQ within 10s" in line)
    assert "on X" in lines[join] and "keeps left 10s, right 0s" in lines[join]
    assert lines[join + 1].split(", ")[1:3] == ["1 out", "1 kept"]


def test_shared_variables_come_before_windows_in_join_order() -> None:
    """A window relates all three events, but a and b share no variable: c is joined before b."""
    text = "x(N) <- o: a(N), p: b(M), s: c(N, M), {o, p, s} within 100s."
    joins = [line for line in augury.compile(text).explain("operators").splitlines() if " join " in line]
    assert [line.split(" on ")[1].split(",")[0] for line in joins] == ["N", "M"]


if __name__ == "__main__":
    for each in EXAMPLES:
        (GOLDEN / f"{each}.txt").write_text(operators(each), encoding="utf-8")
