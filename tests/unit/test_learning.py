"""Facts that change while a session runs, against the reference that knows all of them from the start."""

from __future__ import annotations

import os
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import augury
from augury.core.clock import Clock
from augury.core.errors import RunError
from augury.core.model import Event, Fact, HistoryItem, OrderKey, Revocation
from augury.knowledge.facts import Facts
from augury.knowledge.timeline import Statement, statement_tables
from augury.program import Program
from augury.reference import evaluate

FUZZ = bool(os.environ.get("AUGURY_FUZZ"))
CLOCK = Clock()
HEADER = """
static link(x: int, y: int).
static shut(x: int).
chain(X, Y) :- link(X, Y).
chain(X, Z) :- link(X, Y), chain(Y, Z).
way(X, Y) :- chain(X, Y), not shut(Y).
"""
PROGRAMS = {
    "scan": "out(X, Y) <- a(X) WHERE link(X, Y).",
    "rules": "out(X, Y) <- (a(X) SEQ b(Y)).5 WHERE way(X, Y).",
    "negated": "out(X) <- a(X) SEQ b(_) WHERE not shut(X).",
    "inside": "out(X) <- (a(X) WHERE link(X, _)) SEQ b(_).",
    "or": "out(X) <- a(X) WHERE (link(X, X) or shut(X)).",
    "recent": "out(X, Y) <- a(X) SEQ[recent] b(Y) WHERE link(X, Y).",
    "chronological": "out(X, Y) <- a(X) SEQ[chronological] b(Y) WHERE chain(X, Y).",
    "recent bound": "out(X, Y, Z) <- a(X) SEQ[recent] b(Y) WHERE link(X, Z).",
    "per": "out(X, Y) <- a(X) SEQ[recent per (X)] b(Y) WHERE link(X, Y).",
    "absent": "out(X) <- NOT(c(Z) WHERE shut(Z)).[a(X), b(_)].",
    "correlated": "out(X) <- NOT(c(Z) WHERE link(X, Z)).[a(X), b(_)].",
    "while": "out(X) <- o: a(X), w: extend(o, 3s), while w: not (c(Z) WHERE shut(Z)).",
    "collect": "out(count(Z)) <- o: a(X), w: extend_backward(o, 4s), while w: collect c(Z), link(X, Z).",
    "collected": "out(X, sum(Z)) <- o: a(X), last 3: collect (c(Z) WHERE not shut(Z)).",
    "recursive": "out(X) <- a(X).\nout(Y) <- out(X) SEQ b(Y) WHERE link(X, Y).",
    "twice": "mid(X, Y) <- a(X) AND b(Y) WHERE chain(X, Y).\nout(X) <- mid(X, Y) SEQ c(_) WHERE not shut(X).",
    "made": "fact link(X, Y) <- up(X, Y).\nfact not link(X, Y) <- down(X, Y).\nout(X, Y) <- a(X) AND b(Y) WHERE chain(X, Y).",
    "made of made": "fact link(X, Y) <- up(X, Y).\nfact shut(X) <- a(X) SEQ b(Y) WHERE link(X, Y).\nout(X) <- c(X) WHERE not shut(X).",
}
small = st.integers(1, 3)
times = st.integers(0, 9)


@st.composite
def statements(draw: st.DrawFn) -> Statement:
    name, arity = draw(st.sampled_from([("link", 2), ("link", 2), ("shut", 1)]))
    args = tuple(draw(small) for _ in range(arity))
    if draw(st.booleans()):
        return Statement(Fact(name, args, draw(times)), True)
    since = draw(times)
    return Statement(Fact(name, args, since, draw(st.one_of(st.none(), st.integers(since + 1, 10)))))


@st.composite
def steps(draw: st.DrawFn) -> list[Any]:
    found: list[Any] = []
    for i in range(draw(st.integers(1, 12))):
        kind = draw(st.sampled_from(["event", "event", "event", "fact", "fact", "revoke", "snapshot"]))
        if kind == "event":
            type, arity = draw(
                st.sampled_from([("a", 1), ("b", 1), ("c", 1), ("a", 1), ("b", 1), ("up", 2), ("down", 2)])
            )
            found.append(Event(type, tuple(draw(small) for _ in range(arity)), draw(times), id=f"e{i}"))
        elif kind == "fact":
            found.append(draw(statements()))
        elif kind == "revoke":
            found.append(Revocation(f"e{draw(st.integers(0, 11))}"))
        else:
            found.append("snapshot")
    return found


def tell(session: Any, step: Any) -> None:
    if not isinstance(step, Statement):
        session.push(step)
    elif step.retract:
        session.retract_fact(step.fact.name, *step.fact.args, at=step.fact.since)
    else:
        session.assert_fact(step.fact.name, *step.fact.args, at=step.fact.since, until=step.fact.until)


def contents(events: Any) -> set[OrderKey]:
    return {e.content for e in events}


@pytest.mark.parametrize("name", PROGRAMS)
@settings(max_examples=400 if FUZZ else 25)
@given(steps(), st.lists(statements(), max_size=3), st.booleans())
def test_answers_are_as_if_all_had_been_known(
    name: str, told: list[Any], known: list[Statement], declared: bool
) -> None:
    program = augury.compile(HEADER + PROGRAMS[name])
    first = Facts(statement_tables(known))
    session = program.session(clock=CLOCK, facts=first, changing=["link", "shut"] if declared else [])
    items: list[HistoryItem] = []
    said: list[Statement] = []
    standing: set[OrderKey] = set()
    session.on(
        "out", lambda change: (standing.add if change.op == "insert" else standing.discard)(change.event.content)
    )
    for step in told:
        if step == "snapshot":
            session = program.restore(session.snapshot())
            session.on(
                "out",
                lambda change: (standing.add if change.op == "insert" else standing.discard)(change.event.content),
            )
            continue
        tell(session, step)
        if isinstance(step, Statement):
            said.append(step)
        else:
            items.append(step)
        facts = first + Facts(statement_tables(said))
        until = session.now if session.now is not None else -1
        wanted = evaluate(program.plan, items, CLOCK, facts, until)
        assert contents(session.events()) == contents(wanted.events)
        assert standing == {e.content for e in wanted.events if e.type == "out"}


@settings(max_examples=600 if FUZZ else 60)
@given(st.sampled_from(sorted(PROGRAMS)), st.lists(st.one_of(statements(), times), max_size=25), st.integers(0, 3))
def test_what_is_settled_is_forgotten_and_nothing_else(name: str, told: list[Any], lateness: int) -> None:
    """With a bound on lateness, a session that forgets gives what one gives that does not."""
    program = augury.compile(HEADER + PROGRAMS[name])

    def run(prune: bool) -> list[tuple[str, OrderKey]]:
        session = program.session(clock=CLOCK, lateness=f"{lateness}s", changing=["link", "shut"])
        found: list[tuple[str, OrderKey]] = []
        for i, step in enumerate(told):
            if isinstance(step, Statement):
                since = (step.fact.since or 0) + i
                until = None if step.fact.until is None else step.fact.until + i
                changes = (
                    session.retract_fact(step.fact.name, *step.fact.args, at=since)
                    if step.retract
                    else session.assert_fact(step.fact.name, *step.fact.args, at=since, until=until)
                )
            else:
                type = ("a", "b", "c")[i % 3]
                changes = session.push(Event(type, (1 + step % 3,), i + step // 4, id=f"e{i}"))
            found += [(c.op, c.event.content) for c in changes]
            if prune:
                session.prune()
        return [*found, *((c.op, c.event.content) for c in session.finish())]

    assert run(True) == run(False)


def session_of(rule: str, **given: Any) -> tuple[Program, Any]:
    program = augury.compile(HEADER + rule)
    return program, program.session(clock=CLOCK, **given)


def test_what_comes_too_late_is_set_aside() -> None:
    _, session = session_of("out(X, Y) <- a(X) WHERE link(X, Y).", lateness="2s")
    session.push(Event("a", (1,), 10))
    assert not session.assert_fact("link", 1, 2, at=7)
    assert [one.fact.args for one in session.late] == [(1, 2)] and session.late_count == 1
    assert [c.event.args for c in session.assert_fact("link", 1, 3, at=8)] == [(1, 3)]


def test_a_step_that_fails_changes_no_fact() -> None:
    @augury.function
    def picky(x: int) -> int:
        if x == 3:
            raise ValueError("three")
        return x

    program = augury.compile(HEADER + "out(Y) <- a(X) WHERE (link(X, Y), picky(Y) > 0).", functions=[picky])
    session = program.session(clock=CLOCK, changing="link")
    session.push(Event("a", (1,), 1))
    with pytest.raises(RunError, match=r"the function `picky` raised ValueError: three\n  in rule `out`"):
        session.assert_fact("link", 1, 3, at=0)
    assert [c.event.args for c in session.assert_fact("link", 1, 2, at=0)] == [(2,)]
    assert [e.args for e in session.events()] == [(2,)]


def test_names_and_values_are_checked() -> None:
    _, session = session_of("out(X, Y) <- a(X) WHERE link(X, Y).")
    with pytest.raises(augury.DataError, match="nothing in the program asks for facts of `lnk`"):
        session.assert_fact("lnk", 1, 2)
    with pytest.raises(augury.DataError, match="`link` is declared with 2 arguments, not 1"):
        session.assert_fact("link", 1)
    with pytest.raises(augury.DataError, match="`y` is declared as int"):
        session.assert_fact("link", 1, "x")
    with pytest.raises(RunError, match="a fact ends at a time"):
        session.retract_fact("link", 1, 2)
    with pytest.raises(RunError, match="nothing in the program asks for facts of `lnk`"):
        session_of("out(X, Y) <- a(X) WHERE link(X, Y).", changing=["lnk"])


def test_facts_that_were_not_to_change_cannot_once_the_past_is_forgotten() -> None:
    _, session = session_of("out(X, Y) <- a(X) WHERE link(X, Y).", lateness="1s")
    session.push(Event("a", (1,), 10))
    session.prune()
    with pytest.raises(RunError, match="change for the first time") as error:
        session.assert_fact("link", 1, 2, at=20)
    assert "changing=['link']" in error.value.hint


def test_a_change_costs_what_it_concerns() -> None:
    _, session = session_of("out(X, Y) <- a(X) WHERE link(X, Y).", changing="link")
    session.push([Event("a", (i % 5,), i) for i in range(20_000)])
    assert session.stats()["knowledge"]["facts"] == 0
    asking, *_ = session.circuit.asking[0]
    before = asking.touched
    session.assert_fact("link", 1, 2, at=19_990)
    assert asking.touched - before <= 10
    assert session.stats()["knowledge"]["facts"] == session.stats()["knowledge"]["changes"] == 1


def test_rules_that_make_facts_come_and_go() -> None:
    rule = "rule up: fact link(X, Y) <- up(X, Y)."
    _, session = session_of("out(X, Y) <- a(X) WHERE link(X, Y).")
    with pytest.raises(RunError, match="a new rule makes facts of `link`") as error:
        session.add_rules(rule)
    assert error.value.hint == "open the session with changing=['link']"
    _, session = session_of("out(X, Y) <- a(X) WHERE link(X, Y).", changing="link")
    session.push([Event("a", (1,), 5), Event("up", (1, 2), 3)])
    assert [(c.op, c.event.args) for c in session.add_rules(rule)] == [("insert", (1, 2))]
    assert [(c.op, c.event.args) for c in session.push(Event("up", (1, 3), 5))] == [("insert", (1, 3))]
    assert [(c.op, c.event.args) for c in session.remove_rule("up")] == [("retract", (1, 2)), ("retract", (1, 3))]


def test_late_values_of_one_push_hold_up_to_the_next_value() -> None:
    program = augury.compile("fact latest mode(M, S) PER (M) <- change(M, S). seen(S) <- look(M) WHERE mode(M, S).")
    session = program.session(clock="logical")

    def push(*events: tuple[str, list[object], int]) -> None:
        session.push([{"type": type, "args": args, "time": time} for type, args, time in events])

    push(("change", ["m", "c"], 7))
    push(("change", ["m", "a"], 2), ("change", ["m", "b"], 4))
    push(("change", ["m", "d"], 5), ("look", ["m"], 4), ("look", ["m"], 6), ("look", ["m"], 8))
    assert [(e.args, e.end) for e in session.events()] == [(("b",), 4), (("d",), 6), (("c",), 8)]
