"""The Python face: compile, run and what a result tells."""

from __future__ import annotations

import pytest

import augury
from augury import Event, Fact, Revocation
from augury.explain.derivations import explained

PROGRAM = augury.compile("e(X, Y) <- a(X) SEQ b(Y).")
HISTORY = [Event("a", (1,), 1, 1), Event("a", (2,), 2, 2), Event("b", (3,), 3, 3)]


def args(result: augury.Result) -> list[tuple[object, ...]]:
    return [event.args for event in result]


def test_a_compiled_program_takes_a_policy() -> None:
    assert args(augury.run(PROGRAM, HISTORY)) == [(1, 3), (2, 3)]
    assert args(augury.run(PROGRAM, HISTORY, policy="recent")) == [(2, 3)]
    assert args(augury.run(PROGRAM, HISTORY, policy="chronological")) == [(1, 3)]
    assert args(
        augury.run(augury.compile("policy recent. e(X, Y) <- a(X) SEQ b(Y)."), HISTORY, policy="chronological")
    ) == [(2, 3)]


def test_a_policy_of_the_program_by_a_variable_that_a_rule_lacks() -> None:
    program = "policy recent by V. e(V, Y) <- a(V) SEQ b(Y). f(X, Y) <- a(X) SEQ b(Y)."
    history = [Event("a", (9,), 1, 2), Event("a", (2,), 0, 2), Event("b", (3,), 3, 3)]
    assert [(e.type, e.args, e.start) for e in augury.run(program, history)] == [("f", (2, 3), 0), ("e", (9, 3), 1)]


def test_dicts_facts_and_until() -> None:
    result = augury.run(
        "late(X, N) <- o: a(X), w: extend(o, 5s), while w: not b(X), name(X, N).",
        [{"type": "a", "args": [1], "time": 1}],
        facts={"name": [(1, "one")]},
        until=9,
    )
    assert [(e.args, e.start, e.end) for e in result] == [((1, "one"), 1, 6)]
    assert "name(1, 'one')" in result.why(result.events[0])


def test_facts_with_validity() -> None:
    facts = [Fact("open", (), until=2), Fact("open", (), since=3)]
    result = augury.run("e(X) <- a(X) WHERE open().", [Event("a", (t,), t, t) for t in range(5)], facts=facts)
    assert args(result) == [(0,), (1,), (3,), (4,)]


def test_every_derivation_is_there() -> None:
    history = [Event("a", (1,), 1, 1, "a1"), Event("a", (1,), 1, 1, "a2"), Event("b", (2,), 2, 2, "b1")]
    result = augury.run(PROGRAM, history)
    (event,) = result.events
    assert [tuple(p.id for p in d.parts) for d in explained(result.model).derivations[event.id]] == [
        ("a1", "b1"),
        ("a2", "b1"),
    ]
    assert event.trace in [("a1", "b1"), ("a2", "b1")]
    assert "and 1 more derivation" in result.why(event)
    assert result.why(event, all=True).count("by rule e") == 2


def test_rows_that_fail_are_reported() -> None:
    result = augury.run("e(1 / X) <- a(X).", [Event("a", (0,), 1, 1), Event("a", (0,), 2, 2), Event("a", (2,), 3, 3)])
    assert args(result) == [(0.5,)]
    assert result.errors == {("e", "division by zero"): 2}
    twice: list[Event | Revocation] = [Event("a", (1,), 1, 1, "x"), Event("a", (2,), 1, 1, "x"), Revocation("y")]
    assert [event.args for event, _ in augury.run("e(X) <- a(X).", twice).rejected] == [(2,)]


def test_a_function_that_raises_names_itself_the_rule_and_the_call() -> None:
    @augury.function
    def shaky(x: int) -> int:
        raise KeyError("gone")

    program = augury.compile("rule r1: e(shaky(X)) <- a(X).", functions=[shaky])
    with pytest.raises(augury.RunError, match=r"`shaky` raised KeyError: 'gone'\n  in rule `r1`, called as shaky\(7\)"):
        augury.run(program, [Event("a", (7,), 1, 1)])


def test_wrong_arguments_of_run_are_refused() -> None:
    with pytest.raises(augury.DataError, match="a time point is an integer"):
        Event("a", (), "2026-01-01", "2026-01-01")  # type: ignore[arg-type]
    with pytest.raises(augury.DataError, match="starts at 2, after its end 1"):
        Event("a", (), 2, 1)
    with pytest.raises(augury.RunError, match="unknown engine `esper`"):
        augury.run(PROGRAM, HISTORY, engine="esper")
    with pytest.raises(augury.ProgramError) as found:
        augury.compile("e(X) <- a(Y).\nf(Z) <- b(W).")
    assert [d.code for d in found.value.diagnostics if d.severity == "error"] == ["E301", "E301"]
    with pytest.raises(augury.DataError, match=r"no/such\.aug: no such file"):
        augury.compile("no/such.aug")


def test_included_files_are_found(tmp_path: object) -> None:
    from pathlib import Path

    folder = Path(str(tmp_path))
    (folder / "lib").mkdir()
    (folder / "lib" / "base.aug").write_text('prefix wt: <http://w#>.\nlinked(1, 2).\ninclude "more.aug".\n')
    (folder / "lib" / "more.aug").write_text("linked(2, 3).\n")
    (folder / "main.aug").write_text(
        'include "lib/base.aug".\ninclude "lib/more.aug".\ne(Y, wt:x) <- a(X) WHERE linked(X, Y).\n'
    )
    program = augury.compile(folder / "main.aug")
    assert args(augury.run(program, [Event("a", (2,), 1, 1)])) == [(3, augury.Iri("http://w#x"))]


def test_equal_events_written_apart_do_not_hang_on_their_order() -> None:
    program = augury.compile("l(concat(X)) <- a(X) SEQ[recent] c.")
    history = [Event("a", (1,), 1, 1), Event("a", (1.0,), 1, 1), Event("c", (), 2, 2)]
    assert args(augury.run(program, history)) == args(augury.run(program, [history[1], history[0], history[2]]))
