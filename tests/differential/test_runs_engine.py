"""Runs in the engine: as the reference says after every step, whatever comes late, is taken back, saved or forgotten."""

from __future__ import annotations

import os
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import augury
from augury.core.model import Event
from augury.engine.operators.runs import moments, number_tests
from augury.engine.operators.runs.greedy import GreedyMatches
from augury.engine.operators.runs.sight import MatchBindings
from augury.engine.session import Session
from augury.reference import evaluate
from tests.differential.test_differential import CLOCK, Told, compare, compiled, once
from tests.generators.run_programs import write_run_case

FUZZ = bool(os.environ.get("AUGURY_FUZZ"))
WAYS: dict[str, dict[str, Any]] = {
    "told": {},
    "saved": {"save": 1},
    "late": {"lateness": 3},
    "pruned": {"lateness": 4, "prune": True},
    "pruned and saved": {"lateness": 2, "prune": True, "save": 2},
}
V_SHAPE = """
event tick(s: string, p: float).
dip(S, min(P), count(P)) <- tick(S, P0) NEXT tick(S, P)+ NEXT (u: tick(S, Q))+
    WHERE (P < prev(P, P0), Q > prev(Q, last(P))) LONGEST SKIP TO LAST u.
"""
SESSIONS = "visit(U, count(c)) <- (c: click(U))+ WHERE start(c) - prev(end(c)) <= 30 PER (U) LONGEST SKIP PAST END."
CLIMBS = "climb(I, count(X)) <- a(I) NEXT b(I, X)+ NEXT c(I) WHERE X > prev(X)."


@pytest.mark.parametrize("portion", range(200 if FUZZ else 4))
@pytest.mark.parametrize("way", WAYS)
def test_run_engine_equals_reference_after_every_step(way: str, portion: int, monkeypatch: pytest.MonkeyPatch) -> None:
    if portion % 2:  # as where many come at once
        monkeypatch.setattr(moments, "MANY", 1)
        monkeypatch.setattr(number_tests, "BLOCK", 2)
    for seed in range(portion * 15, portion * 15 + 15):
        number = Random(f"runs {seed}").randint
        spec, steps = write_run_case(number)
        program = compiled(spec.text)
        for _ in compare(program, steps, [], **WAYS[way]) if program is not None else ():
            pass


@pytest.mark.parametrize("portion", range(100 if FUZZ else 4))
def test_what_is_final_is_never_taken_back(portion: int) -> None:
    """In the end all answers are there; what was chosen waits until nothing can take its place."""
    for seed in range(portion * 25, portion * 25 + 25):
        number = Random(f"final {seed}").randint
        spec, told_steps = write_run_case(number)
        program, steps = compiled(spec.text), once(told_steps)
        if program is None:
            continue
        items = [item for step in steps if isinstance(step, list) for item in step]
        lasting = max((i.end - i.start for i in items if isinstance(i, Event)), default=0)
        session = program.session(clock="logical", emit="final", lateness="3s", longest=f"{lasting}s")
        told, found = Told(3), set()
        for step in steps:
            if isinstance(step, tuple):
                told.advanced = step[1] if told.advanced is None else max(told.advanced, step[1])
            for item in step if isinstance(step, list) else ():
                told.tell(item)
            changes = session.push(step) if isinstance(step, list) else session.advance(step[1])
            assert all(change.op == "insert" for change in changes), program.plan.rules[0].span.source.text
            found |= {change.event.content for change in changes}
        found |= {change.event.content for change in session.finish()}
        assert found == {e.content for e in evaluate(program.plan, told.items, CLOCK, [], told.now).events}


@pytest.mark.parametrize("which", ["", "PER (I) LONGEST", "PER (I) LONGEST SKIP PAST END"])
@pytest.mark.parametrize(
    "condition", ["Y > max(X + D)", "Y <= max(X - D)", "Y <= prev(Y, max(X - D))", "Y > sum(X) + max(X - D)"]
)
@pytest.mark.parametrize("first", ["", "a(I, D)? NEXT"])
def test_a_result_waits_for_a_variable_that_a_fact_binds(first: str, condition: str, which: str) -> None:
    """A condition on each iteration of a part, with an aggregate over another part and a variable of neither."""
    run = f"{first} a(I, X)+ NEXT a(I, Y)+ WHERE (only(D), {condition})"
    program = augury.compile(f"only(2). e(count(Y)) <- {run} {which}.")
    events = [Event("a", ("k", x), t, t, f"i{t}") for t, x in enumerate((0, 5, 1, 7, 2, 0, 3))]
    session = program.session(clock="logical")
    for event in events:
        session.push(event)
    assert {e.content for e in session.events()} == {e.content for e in evaluate(program.plan, events, CLOCK).events}


def test_a_visit_is_final_once_the_gap_has_passed() -> None:
    session = augury.compile(SESSIONS).session(emit="final", lateness="0s", longest="0s", clock="logical")
    told(session, "click", [("u",), ("u",), ("v",)], [0, 10, 12])
    assert not list(session.advance(39))
    (change,) = session.advance(40)
    assert change.event.args == ("u", 2)
    assert not list(session.push({"type": "click", "args": ["v"], "time": 42}))
    (change,) = session.push({"type": "click", "args": ["u"], "time": 74})
    assert change.event.args == ("v", 2)
    assert {c.event.args for c in session.finish()} == {("u", 1)}


def touched(session: Session) -> int:
    return sum(o["touched"] for o in session.stats()["operators"])


def told(session: Session, type: str, rows: list[tuple[Any, ...]], times: Any) -> None:
    session.push([{"type": type, "args": list(row), "time": int(t)} for row, t in zip(rows, times, strict=True)])


@pytest.mark.parametrize("text", [V_SHAPE, V_SHAPE.replace("LONGEST SKIP TO LAST u", "")])
def test_a_late_event_touches_the_runs_around_it(text: str) -> None:
    chance = Random(7)
    prices = [("x", float(chance.randint(0, 9))) for _ in range(5_000)]
    session = augury.compile(text).session()
    told(session, "tick", prices, range(0, 50_000, 10))
    before = touched(session)
    told(session, "tick", [("x", 5.0)], [25_005])
    assert touched(session) - before < 200


def test_what_is_taken_back_touches_the_runs_around_it() -> None:
    session = augury.compile(CLIMBS).session()
    for i in range(500):
        told(session, "a", [(1,)], [100 * i])
        told(session, "b", [(1, j) for j in range(5)], range(100 * i + 1, 100 * i + 6))
        told(session, "c", [(1,)], [100 * i + 9])
    before = touched(session)
    event = next(e for e in session.events() if e.start == 25_000)
    (first, *_) = event.trace
    changes = session.push({"op": "revoke", "id": first})
    assert [c.op for c in changes] == ["retract"]
    assert touched(session) - before < 100


@pytest.mark.parametrize("batch", [1, 100, 4_000])
@pytest.mark.parametrize(
    "text",
    [CLIMBS, CLIMBS[:-1] + " LONGEST SKIP PAST END.", CLIMBS.split(" WHERE")[0].replace("NEXT", "THEN") + " LONGEST."],
)
def test_a_long_run_costs_what_its_events_cost(text: str, batch: int) -> None:
    """One climb of many steps: each push takes in what came, and not all that was there."""

    def cost(clicks: int) -> float:
        session = augury.compile(text).session()
        told(session, "a", [(1,)], [0])
        rows = [(1, i) for i in range(clicks)]
        for at in range(0, clicks, batch):
            told(session, "b", rows[at : at + batch], range(at + 1, at + 1 + len(rows[at : at + batch])))
        told(session, "c", [(1,)], [clicks + 1])
        assert [e.args for e in session.events()] == [(1, clicks)]
        return touched(session) / clicks

    assert cost(4_000) < 1.5 * cost(1_000) + 5


@pytest.mark.parametrize("batch", [1, 8, 500])
def test_a_long_visit_costs_what_its_clicks_cost(batch: int) -> None:
    def cost(clicks: int) -> float:
        session = augury.compile(SESSIONS).session()
        for at in range(0, clicks, batch):
            told(session, "click", [("u",)] * batch, range(10 * at, 10 * (at + batch), 10))
        assert [e.args for e in session.events()] == [("u", clicks)]
        (greedy,) = (o for o in session.circuit.operators if isinstance(o, GreedyMatches))
        assert greedy.used < 6 * clicks + (1 << 17)
        return touched(session) / clicks

    assert cost(4_000) < 1.5 * cost(1_000) + 5


def test_runs_express_sessions_by_gap() -> None:
    session = augury.compile(SESSIONS).session()
    gaps = [10, 20, 31, 5, 100, 30, 30]
    times = np.cumsum([0, *gaps])
    session.push({"click": pa.table({"time": times, "arg0": ["u"] * len(times)})})
    assert [(e.args[1], e.start, e.end) for e in session.events()] == [(3, 0, 30), (2, 61, 66), (3, 166, 226)]


def test_what_lies_behind_is_forgotten() -> None:
    session = augury.compile(V_SHAPE).session(lateness="100s", clock="logical")
    chance, most = Random(3), 0
    for part in range(40):
        prices = [("xyz"[i % 3], float(chance.randint(0, 9))) for i in range(300)]
        told(session, "tick", prices, range(part * 3_000, part * 3_000 + 3_000, 10))
        session.prune()
        most = max(most, session.stats()["rows"])
    assert most < 200


AGGREGATES = "sum(X), avg(X), min(X), max(X), count(X)"
VALUES: dict[str, list[Any]] = {
    "integers": [0, 1, -7, 40_000_000_000],
    "floats": [0.1, 0.2, -0.3, 1e-9, -1e-15, 2.5, 1e15, 0.0],
    "both": [1, 1.0, 0.5, None, -3],
    "hard": [1e300, -1e300, 1e-300, 2**60, 0.1, 7],
    "odd": ["x", "y", None, "z"],
}


@pytest.mark.parametrize("values", VALUES)
@pytest.mark.parametrize(
    "rule",
    [
        f"r(I, {AGGREGATES}) <- b(I, X)+ PER (I).",
        f"r(I, {AGGREGATES}) <- b(I, X)+ PER (I) LONGEST SKIP PAST END.",
        f"r(I, {AGGREGATES}) <- a(I) NEXT b(I, X)* NEXT c(I).",
        f"r(I, {AGGREGATES}) <- a(I) NEXT b(I, X)+ WHERE (sum(X) >= 0, X >= min(X)).",
        f"r(I, Y, {AGGREGATES}) <- b(I, X)+ NEXT c(I, Y) WHERE Y > max(X) PER (I).",
    ],
)
def test_aggregates_along_a_run(rule: str, values: str) -> None:
    """Exact, rounded once, whatever the values are; the iterations of numbers are never gathered."""
    if values == "odd":
        rule = rule.replace("sum(X), avg(X), ", "").replace("sum(X) >= 0", "count(X) >= 0")
    program = augury.compile(rule)
    number = Random(f"{rule} {values}").randint
    for length in (3, 9):
        events, time = [], 0
        for _ in range(4 * length):
            time += number(0, 1)
            type = "abbbbc"[number(0, 5)]
            value = VALUES[values][number(0, len(VALUES[values]) - 1)]
            args = (number(1, 2), value) if type == "b" or ("c(I, Y)" in rule and type == "c") else (number(1, 2),)
            events.append(Event(type, args, time, time))
        steps = [events[at : at + length] for at in range(0, len(events), length)]
        *_, answer = compare(program, steps, [])  # type: ignore[arg-type]
        if values != "both":  # where 1 and 1.0 are equal, either may be shown
            expected = evaluate(program.plan, events, CLOCK, [], time).events
            assert sorted(map(str, answer.values())) == sorted(map(str, expected))


@pytest.mark.parametrize(
    "rule", ["r(I, sum(X)) <- b(I, X)+ PER (I).", "r(I, min(X)) <- b(I, X)+ PER (I) LONGEST SKIP PAST END."]
)
def test_aggregates_are_kept_along_the_run(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run of many events adds one value to what it has; nothing is gathered."""
    monkeypatch.setattr(MatchBindings, "aggregate", lambda *_: pytest.fail("gathered"))
    session = augury.compile(rule).session(clock="logical")
    for at in range(0, 600, 20):
        session.push([Event("b", (1, 0.1 * i), i, i) for i in range(at, at + 20)])
    assert len(list(session.events())) == (180_300 if "sum" in rule else 1)
