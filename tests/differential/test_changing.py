"""Facts that change, with all that may happen beside: late and revoked events, pruning, snapshots, new rules.

After every step the answer is that of the reference, which is told everything at once that came in time.
"""

from __future__ import annotations

import os
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import augury
from augury.core.clock import Clock
from augury.core.model import Event, Fact, OrderKey, Revocation
from augury.knowledge.facts import Facts
from augury.knowledge.timeline import Statement, statement_tables
from augury.reference import evaluate
from tests.differential.test_differential import Told

FUZZ = bool(os.environ.get("AUGURY_FUZZ"))
CLOCK = Clock()
HEADER = """
static link(x: int, y: int).
static shut(x: int).
chain(X, Y) :- link(X, Y).
chain(X, Z) :- link(X, Y), chain(Y, Z).
way(X, Y) :- link(X, Y), not shut(Y).
"""
STATE = "fact shut(X) <- c(X).\nfact not shut(X) <- d(X).\n"
LINKS = "fact link(X, Y) <- up(X, Y).\nfact not link(X, Y) <- down(X, Y).\n"
LATEST = "fact latest link(X, Y) PER (X) <- up(X, Y).\nfact not link(X, _) <- c(X).\n"
PROGRAMS = {
    "state": STATE + "out(X) <- a(X) WHERE shut(X).",
    "any": STATE + "out(X, Y) <- a(X) WHERE shut(Y).",
    "not": STATE + "out(X) <- a(X) WHERE not shut(X).",
    "one key": "fact shut(1) <- c(_).\nfact not shut(1) <- d(_).\nout(X) <- a(X) WHERE shut(1).",
    "no key": "fact open() <- c(_).\nfact not open() <- d(_).\nout(X) <- a(X) WHERE open().",
    "latest": LATEST + "out(X, Y) <- a(X) WHERE link(X, Y).",
    "latest chain": LATEST + "out(X, Y) <- a(X), b(Y) WHERE chain(X, Y).",
    "latest of all": "fact latest link(X, Y) PER () <- up(X, Y).\nout(X, Y) <- a(_) WHERE link(X, Y).",
    "latest ends": LATEST + "fact not link(X, Y) <- down(X, Y).\nout(X) <- b(X) WHERE was link(X, _).",
    "latest value": "fact latest link(X, Y) PER (Y) <- up(X, Y).\nfact not link(_, Y) <- d(Y).\nout(X, Y) <- a(Y) WHERE way(X, Y).",
    "latest back": "fact latest link(X, Y) PER (X) <- up(X, Z), was link(X, V), Y = (V + Z) mod 4.\n"
    "fact latest link(X, 1) PER (X) <- c(X).\nout(X, Y) <- a(X) WHERE link(X, Y).",
    "links": LINKS + "out(X, Y) <- a(X) WHERE link(X, Y).",
    "chain": LINKS + "out(X, Y) <- a(X), b(Y) WHERE chain(X, Y).",
    "way": LINKS + STATE + "out(X, Y) <- a(X) WHERE way(X, Y).",
    "said": "out(X, Y) <- a(X) WHERE way(X, Y).",
    "inside": STATE + "out(X, Y) <- (a(X) WHERE shut(X)) SEQ b(Y).",
    "after": STATE + "out(X, Y) <- (a(X) SEQ b(Y)).4 WHERE shut(Y).",
    "made late": "fact shut(X) <- (a(X) SEQ c(X)).4.\nfact not shut(X) <- d(X).\nout(X) <- b(X) WHERE shut(X).",
    "made by absence": "fact shut(X) <- o: c(X), w: extend(o, 2s), while w: not d(X).\nout(X) <- a(X) WHERE shut(X).",
    "made of made": LINKS + "fact shut(X) <- a(X) WHERE link(X, X).\nout(X) <- b(X) WHERE not shut(X).",
    "absent": STATE + "out(X) <- NOT(b(Z) WHERE shut(Z)).[a(X), a(_)].",
    "while": STATE + "out(X) <- o: a(X), w: extend(o, 3s), while w: not (b(Z) WHERE shut(Z)).",
    "asked late": STATE + "out(X) <- o: a(X), w: extend(o, 3s), while w: not b(X), shut(X).",
    "collect": STATE + "out(X, count(Z)) <- o: a(X), last 3: collect (b(Z) WHERE shut(Z)).",
    "recent": STATE + "out(X, Y) <- a(X) SEQ[recent] b(Y) WHERE shut(X).",
    "chronological": STATE + "out(X, Y) <- a(X) SEQ[chronological] b(Y) WHERE shut(Y).",
    "was": STATE + "out(X) <- a(X) WHERE was shut(X).",
    "was not": STATE + "out(X) <- c(X) WHERE not was shut(X).",
    "was inside": STATE + "out(X, Y) <- (a(X) WHERE was shut(X)) SEQ b(Y) WHERE shut(Y).",
    "was collected": STATE + "out(X, count(Z)) <- o: a(X), last 3: collect (b(Z) WHERE was shut(Z)).",
    "was recent": STATE + "out(X, Y) <- a(X) SEQ[recent] b(Y) WHERE not was shut(Y).",
    "was a way": LINKS + STATE + "out(X, Y) <- a(X) WHERE was way(X, Y).",
    "toggle": "fact shut(X) <- c(X), not was shut(X).\nfact not shut(X) <- c(X), was shut(X).\nout(X) <- a(X) WHERE shut(X).",
    "toggle by events": "on(X) <- c(X), not was shut(X).\noff(X) <- c(X), was shut(X).\nfact shut(X) <- on(X).\nfact not shut(X) <- off(X).\nout(X) <- a(X) WHERE shut(X).",
    "holding": STATE + "out(X, duration(x)) <- x: holding shut(X).",
    "holding said": "out(X, Y) <- x: holding link(X, Y), duration(x) < 4.",
    "holding latest": LATEST + "out(X, Y) <- x: holding link(X, Y), Y != 2.",
    "holding one of": LINKS + "out(X) <- x: holding link(X, _), o: b(X), o during x.",
    "holding after": STATE + "out(X, Y) <- x: holding shut(X), o: a(Y), x before o, {x, o} within 6s.",
    "holding union": LINKS + STATE + "any(X) :- shut(X).\nany(X) :- link(X, _).\nout(X, duration(x)) <- x: holding any(X).",
    "holding both": LINKS + STATE + "both(X, Y) :- link(X, Y), shut(Y).\nout(X, Y) <- x: holding both(X, Y).",
    "holding not": LINKS + STATE + "free(X, Y) :- link(X, Y), not shut(X).\nout(X, Y) <- x: holding free(X, Y).",
    "holding chain": LINKS + "out(X, Y) <- x: holding chain(X, Y).",
    "holding way": LINKS + STATE + "out(X) <- x: holding way(X, _).",
    "time in state": STATE + "out(X, sum(duration(x))) <- w: every(5s), while w: collect x: holding shut(X).",
    "time in link": LINKS + "out(X, list(Y), count(x)) <- w: every(4s, 3s), while w: collect x: holding link(X, Y), duration(x) > 1.",
    "time of all": LINKS + "out(sum(duration(x)), first(Y)) <- w: every(5s), while w: collect x: holding link(_, Y).",
    "time before": LATEST + "out(X, Y, sum(duration(x))) <- o: a(X), v: from_end(o, 2s), w: shift_backward(v, 4s), while w: collect x: holding link(X, Y).",
    "time after": STATE + "out(X, sum(duration(x)), last(end(x))) <- o: a(X), w: from_end(o, 4s), while w: collect x: holding shut(X) or none.",
    "time shifted": STATE + "out(X, sum(duration(x))) <- o: b(_), v: from_end(o, 3s), w: shift_backward(v, 6s), while w: collect x: holding shut(X).",
    "time until": LINKS + "out(X, count(x)) <- o: b(D), w: from_end(o, D, most = 9s), while w: collect x: holding link(X, _).",
    "time both": LINKS + STATE + "both(X, Y) :- link(X, Y), shut(Y).\nout(X, sum(duration(x))) <- w: every(6s), while w: collect x: holding both(X, _).",
    "time filtered": LINKS + STATE + "out(X, sum(duration(x))) <- w: every(6s), while w: collect x: holding link(X, Y), shut(Y).",
    "time filtered after": LINKS + STATE + "out(X, count(x)) <- o: a(X), w: from_end(o, 3s), while w: collect x: holding link(X, Y), not shut(Y).",
    "recursive": LINKS + "out(X) <- a(X).\nout(Y) <- (out(X) SEQ b(Y)).4 WHERE link(X, Y).",
}  # fmt: skip
MORE = [
    "rule r1: more(X) <- a(X) WHERE shut(X).",
    "rule r2: more(X, Y) <- b(X) WHERE link(X, Y).",
    "rule r3: fact shut(X) <- b(X) SEQ a(X).",
]
small = st.integers(1, 2)


@st.composite
def steps(draw: st.DrawFn) -> list[Any]:
    """Things that happen, at times that go on and sometimes back."""
    found: list[Any] = []
    time = 5
    for i in range(draw(st.integers(1, 14))):
        time += draw(st.sampled_from([0, 0, 1, 1, 2, 6]))
        kind = draw(
            st.sampled_from(["event"] * 6 + ["fact", "fact", "revoke", "prune", "prune", "save", "rule", "advance"])
        )
        back = draw(st.sampled_from([0, 0, 0, 1, 2, 4]))
        match kind:
            case "event":
                some = []
                for j in range(draw(st.sampled_from([1, 1, 2, 4]))):
                    type, arity = draw(
                        st.sampled_from([*((t, 1) for t in "aabbccdd"), ("up", 2), ("up", 2), ("down", 2)])
                    )
                    args = tuple(draw(small) for _ in range(arity))
                    end = time - draw(st.sampled_from([0, 0, 1, back]))
                    start = end - draw(st.sampled_from([0, 0, 0, 2]))
                    some.append(Event(type, args, start, end, id=f"e{i}.{j}"))
                found.append(some)
            case "fact":
                name, arity = draw(st.sampled_from([("link", 2), ("shut", 1)]))
                args, since = tuple(draw(small) for _ in range(arity)), time - back
                if draw(st.booleans()):
                    found.append(Statement(Fact(name, args, since), True))
                else:
                    found.append(
                        Statement(Fact(name, args, since, draw(st.sampled_from([None, since + 1, since + 3]))))
                    )
            case "revoke":
                found.append([Revocation(f"e{draw(st.integers(max(0, i - 4), i))}.{draw(st.sampled_from([0, 0, 1]))}")])
            case "rule":
                found.append(draw(st.sampled_from(MORE)))
            case "advance":
                found.append(time - back)
            case _:
                found.append(kind)
    return found


@pytest.mark.parametrize("name", PROGRAMS)
@settings(max_examples=2000 if FUZZ else 12)
@given(steps(), st.sampled_from([None, 0, 2, 5]), st.lists(st.sampled_from([("link", (1, 2)), ("link", (2, 2)), ("shut", (1,))]), max_size=2),
       st.booleans())  # fmt: skip
def test_the_answer_is_that_of_all_that_came_in_time(
    name: str, happened: list[Any], lateness: int | None, first: list[tuple[str, tuple[int, ...]]], retracted: bool
) -> None:
    program = augury.compile(HEADER + PROGRAMS[name])
    given_facts = [Statement(Fact(n, args, 3)) for n, args in first]
    if retracted:
        given_facts += [Statement(Fact(n, args, 3), True) for n, args in first[:1]]
    facts = Facts(statement_tables(given_facts))
    session = program.session(
        clock=CLOCK,
        facts=facts,
        changing=["link", "shut"],
        lateness=None if lateness is None else f"{lateness}s",
    )
    told, said, pruned = Told(lateness), list[Statement](), False
    answer: dict[OrderKey, Event] = {}
    for step in happened:
        match step:
            case "prune":
                session.prune()
                pruned = pruned or told.frontier is not None
                continue
            case "save":
                session = program.restore(session.snapshot())
                continue
            case str() if pruned or step.split(":")[0].removeprefix("rule ") in str(session.program.plan.rules):
                continue  # a rule that would see what is forgotten, or that exists already
            case str():
                changes = session.add_rules(step)
            case int():
                told.advanced = step if told.advanced is None else max(told.advanced, step)
                changes = session.advance(step)
            case Statement():
                about = step.fact
                if told.frontier is None or (about.since is not None and about.since > told.frontier):
                    said.append(step)
                changes = session.learn(Facts(statement_tables([step])))
            case _:
                for item in step:
                    told.tell(item)
                changes = session.push(step)
        for change in changes:
            content = change.event.content
            assert (content in answer) == (change.op == "retract"), f"{change} of {answer}"
            if change.op == "insert":
                answer[content] = change.event
            else:
                del answer[content]
        wanted = evaluate(session.program.plan, told.items, CLOCK, facts + Facts(statement_tables(said)), told.now)
        right = {e.content: e for e in wanted.events}
        assert answer.keys() == right.keys(), (
            [str(e) for c, e in right.items() if c not in answer],
            [str(e) for c, e in answer.items() if c not in right],
        )


def opened(program: str, lateness: str | None = None, **given: Any) -> Any:
    return augury.compile(program).session(clock=CLOCK, lateness=lateness, **given)


@pytest.mark.parametrize("between", ["prune", "advance", "both"])
def test_what_made_a_fact_may_be_revoked_after_pruning(between: str) -> None:
    session = opened("fact here(X) <- b(X). p(X) <- a(X) WHERE here(X).", "2s")
    session.push(Event("b", (1,), 14, id="e1"))
    if between != "prune":
        session.advance(13)
    if between != "advance":
        session.prune()
    session.revoke("e1")
    assert not session.push(Event("a", (1,), 15))


def test_a_fact_made_at_the_time_of_its_end_holds_also_after_pruning() -> None:
    session = opened("fact here(S) <- a(S). fact not here(S) <- c(S). p(V) <- b(_) WHERE here(V).", "5s")
    session.push(Event("c", ("x",), 6))
    session.prune()
    session.push(Event("a", ("x",), 6))
    assert [c.event.args for c in session.push(Event("b", (2,), 6))] == [("x",)]


@pytest.mark.parametrize("given_first", [False, True])
def test_a_fact_that_is_over_does_not_come_back_with_a_snapshot(given_first: bool) -> None:
    said = [{"args": [1], "valid_from": 3}, {"op": "retract", "args": [1], "valid_from": 3}]
    text = "static ok(a: number). p(V) <- c(_) WHERE ok(V)."
    session = opened(text, "2s", changing="ok", facts={"ok": said if given_first else []})
    if not given_first:
        session.learn({"ok": said})
    session.push(Event("c", (0,), 10))
    session.prune()
    session = augury.compile(text).restore(session.snapshot())
    assert not session.push(Event("c", (0,), 11))


ON = "fact on(S) <- up(S). fact not on(S) <- dn(S). seen(S) <- ping(S) WHERE on(S)."


@pytest.mark.parametrize("keys", [1, 50])
def test_state_costs_what_its_changes_cost(keys: int) -> None:
    """Rows that are looked at, and what is held, with twice the changes, and behind a lateness."""
    looked, held = [], []
    for count in (3000, 6000):
        session = opened(ON, "20s")
        for i in range(0, count, 100):
            session.push([Event(("up", "ping", "dn")[t % 3], (t % keys,), t) for t in range(i, i + 100)])
            session.prune()
        looked.append(sum(operator.touched for operator in session.circuit.operators))
        (relation,) = session.circuit.knowledge.relations.values()
        held.append(len(relation.timelines) + session.circuit.rows)
    assert looked[1] < 2.2 * looked[0]
    assert held[1] <= 1.1 * held[0] < 1500


HELD = " spent(S, sum(duration(x))) <- w: every(50s), while w: collect x: holding on(S).\ndown(S) <- x: holding on(S)."


def test_intervals_cost_what_the_changes_cost() -> None:
    """Rows that are looked at for intervals of facts, with twice the changes, and for one change that comes late."""
    touched = []
    for count in (3000, 6000):
        session = opened(ON + HELD)
        for i in range(0, count, 100):
            session.push([Event(("up", "dn")[t // 20 % 2], (t % 20,), t) for t in range(i, i + 100)])
        operators = [o for o in session.circuit.operators if o.kind in ("holding", "held", "clip", "distinct windows")]
        touched.append(sum(operator.touched for operator in operators))
        session.push(Event("dn", (7,), count - 70))
        assert sum(operator.touched for operator in operators) < touched[-1] + 100
    assert touched[1] < 2.2 * touched[0]


def test_a_late_change_looks_at_its_own_time_only() -> None:
    session = opened(ON)
    session.push([Event("ping", (0,), t) for t in range(5000)])
    session.push([Event(("up", "dn")[t % 2], (0,), t) for t in range(0, 5000, 7)])
    asking, *_ = session.circuit.asking[0]
    before = asking.touched
    assert len(session.push(Event("dn", (0,), 703))) == 4  # up to the next change, at 707
    assert asking.touched - before <= 10


def test_a_late_change_asks_again_for_its_own_key_only() -> None:
    session = opened(ON)
    session.push([Event("ping", (t % 500,), t) for t in range(2000)])
    session.push([Event("up", (key,), key) for key in range(500)])
    asking, *_ = session.circuit.asking[0]
    before = asking.touched
    assert len(session.push(Event("dn", (250,), 251))) == 3  # those of its key, up to the end
    assert asking.touched - before <= 10
