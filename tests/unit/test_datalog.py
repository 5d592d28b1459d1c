"""Static rules in columns against the reference: random programs, facts and calls, told at once or in pieces."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import augury
from augury.core.clock import Clock
from augury.core.errors import ProgramError
from augury.core.model import Event, Fact, OrderKey
from augury.knowledge import knowledge_base
from augury.knowledge.solving import materialise
from augury.program import Program
from augury.reference import evaluate
from tests.generators import datalog

FUZZ = bool(os.environ.get("AUGURY_FUZZ"))
CLOCK = Clock()


def compiled(text: str) -> Program:
    try:
        return augury.compile(text)
    except ProgramError:
        assume(False)
        raise


@st.composite
def events(draw: st.DrawFn) -> list[Event]:
    found: list[Event] = []
    for i in range(draw(st.integers(1, 6))):
        type, arity = draw(st.sampled_from([("a", 1), ("b", 2), ("c", 1)]))
        args = tuple(draw(datalog.values) for _ in range(arity))
        found.append(Event(type, args, draw(st.integers(0, 6)), id=f"e{i}"))
    return found


def answers(program: Program, told: list[Event], facts: list[Fact], pieces: int) -> set[OrderKey]:
    session = program.session(clock=CLOCK, facts=facts)
    for i in range(0, len(told), pieces):
        session.push(told[i : i + pieces])
    session.finish()
    return {e.content for e in session.events()}


def wanted(program: Program, told: list[Event], facts: list[Fact]) -> set[OrderKey]:
    return {e.content for e in evaluate(program.plan, told, CLOCK, facts).events}


@pytest.mark.parametrize("few", [10_000, 0], ids=["materialised", "tabled"])
@pytest.mark.parametrize("timed", [False, True], ids=["always", "timed"])
@settings(max_examples=2000 if FUZZ else 60)
@given(datalog.programs(), events(), st.data())
def test_answers_are_those_of_the_reference(
    few: int, timed: bool, text: str, told: list[Event], data: st.DataObject
) -> None:
    program, facts = compiled(text), data.draw(datalog.facts(timed))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(materialise, "FEW", few)
        assert answers(program, told, facts, data.draw(st.integers(1, 6))) == wanted(program, told, facts)


def test_calls_that_came_before_are_looked_up() -> None:
    program = augury.compile(
        "static e(x: int, y: int).\np(X, Y, N) :- e(X, Y), N = X + Y.\np(X, Z, N) :- e(X, Y), p(Y, Z, N).\nout(X, Y) <- a(X) WHERE p(X, Y, _)."
    )
    session = program.session(clock=CLOCK, facts={"e": [(i, i + 1) for i in range(10)]})
    session.push([Event("a", (0,), 1)])
    solver = session.circuit.knowledge.solver
    calls = {key: table.calls.n for key, table in solver.tables.items()}
    session.push([Event("a", (3,), 2), Event("a", (0,), 3)])
    assert {key: table.calls.n for key, table in solver.tables.items()} == calls


def test_a_long_chain_is_not_closed() -> None:
    text = "static e(x: int, y: int).\np(X, Y) :- e(X, Y).\np(X, Z) :- e(X, Y), p(Y, Z).\nout(X, Y) <- b(X, Y) WHERE p(X, Y)."
    session = augury.compile(text).session(clock=CLOCK, facts={"e": [(i, i + 1) for i in range(400)]})
    found = session.push([Event("b", (0, 400), 1), Event("b", (400, 0), 2), Event("b", (17, 311), 3)])
    assert [c.event.args for c in found] == [(0, 400), (17, 311)]
    assert session.circuit.knowledge.solver.size == 0


def test_values_that_come_with_calls_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(knowledge_base, "_FOREIGN", 50)
    text = (
        "static e(x: string, y: int).\nshort(X) :- e(X, _).\nshort(X) :- length(X) < 4.\nout(X) <- a(X) WHERE short(X)."
    )
    session = augury.compile(text).session(clock=CLOCK, facts={"e": [("abcdef", 1), ("x", 2)]})
    told = [Event("a", (f"v{i}",), i) for i in range(300)] + [Event("a", ("abcdef",), 300)]
    found = [c.event.args[0] for event in told for c in session.push(event)]
    assert found == [f"v{i}" for i in range(100)] + ["abcdef"]
    assert session.circuit.knowledge.words.n < 200


def test_times_of_a_fact_may_be_several_intervals() -> None:
    facts = [Fact("e", (1, 2), 0, 2), Fact("e", (1, 2), 4, 6), Fact("e", (1, 2), 5, 9), Fact("e", (1, 3))]
    program = augury.compile("static e(x: int, y: int).\nout(Y) <- a(X) WHERE e(X, Y).")
    told = [Event("a", (1,), t) for t in range(11)]
    assert answers(program, told, facts, 20) == wanted(program, told, facts)
    only = [replace(f, until=f.until) for f in facts[:3]]
    assert len(answers(program, told, only, 20)) == 7


def test_all_answers_are_made_once_the_calls_are_worth_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(materialise, "FEW", 20)
    text = "static e(x: int, y: int).\nstatic f(y: int, z: int).\np(X, Z) :- e(X, Y), f(Y, Z).\nout(X, Z) <- a(X) WHERE p(X, Z)."
    facts = {"e": [(i, i % 7) for i in range(40)], "f": [(i, i + 1) for i in range(7)]}
    session = augury.compile(text).session(clock=CLOCK, facts=facts)
    known = session.circuit.knowledge
    assert [c.event.args for c in session.push(Event("a", (3,), 1))] == [(3, 4)]
    assert ("p", 2) not in known.materialised._answers and known.solver.size
    found = session.push([Event("a", (i,), 2) for i in range(10)])
    assert [c.event.args for c in found] == [(i, i % 7 + 1) for i in range(10)]
    assert known.materialised._answers["p", 2] is not None and known.materialised._answers["p", 2].n == 40


def test_why_shows_the_way_through_a_long_chain() -> None:
    text = "static e(x: int, y: int).\np(X, Y) :- e(X, Y).\np(X, Z) :- e(X, Y), p(Y, Z).\nout(X, Y) <- b(X, Y) WHERE p(X, Y)."
    session = augury.compile(text).session(clock=CLOCK, facts={"e": [(i, i + 1) for i in range(1500)]})
    session.push(Event("b", (0, 1500), 1))
    lines = session.why(session.events()[0]).splitlines()
    assert [line.strip(" │├└─") for line in lines[3:6]] == ["p(0, 1500)", "e(0, 1)", "e(1, 2)"]
    assert lines[-2].endswith("… 1,489 more") and lines[-1].endswith("e(1499, 1500)")
