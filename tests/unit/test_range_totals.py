"""Aggregates over a window of each event, from running totals: exact, and independent of how much lies in a window."""

from __future__ import annotations

import os
from random import Random
from typing import Any

import pytest

import augury
from augury.core.model import Event, HistoryItem, Revocation
from augury.engine.operators.range_totals import RangeTotals
from augury.engine.operators.ranged_collect import RangedCollect
from augury.engine.session import Session
from augury.planner import choose_collects
from tests.differential.test_differential import compare
from tests.generators.programs import Step

FUZZ = bool(os.environ.get("AUGURY_FUZZ"))
AGGREGATES = (
    "count()", "count(V)", "sum(V)", "avg(V)", "min(V)", "max(V)", "first(V)", "last(V)", "variance(V)", "stddev(V)",
    "arg_max(W, V)", "arg_min(W, V)", "any(V > 2)", "all(V > 2)", "sum(V * 2)", "max(end(p))", "sum(duration(p))",
    "max(duration(p))", "first(start(p))", "max(W)", "arg_max(V, W)", "sum(if(V > 2, 1, 0))", "sum(V / W)",
    "count(distinct V)", "count(distinct if(V > 2, W, null))", "count(distinct V + W)", "median(V)", "median(W)",
    "percentile(V, 90)", "percentile(W, 33.3)", "median(end(p))", "count(distinct end(p))",
)  # fmt: skip
WINDOWS = ("extend_backward", "extend_backward", "extend", "shift_backward", "from_end", "from_start", "shift_forward")
FACTS = "shop(1). size(1, 1). size(1, 2). size(1, 3). size(2, 2).\n"
INTEGERS = (0, 1, 2, 3, 5, -4)
FLOATS = (0.1, 0.2, 0.3, 1e-7, 123.456, -7.25, 2.0)
ODD = (None, "x", True, 1e300, 2**53 + 1, 1e-200, 1, 1.0, 2, 2.0, 10**18)


def program_of(chance: Random) -> str:
    """A rule with some aggregates over a window; now and then one that reads what it derives."""
    some = ", ".join(chance.sample(AGGREGATES, chance.randint(1, 4)))
    key = chance.choice(["K", "K", "_"])
    body = f"o: {chance.choice(['a', 'b'])}(K, _, _)"
    body += chance.choice(["", "", ", shop(K)", ", size(K, S), S > 1"])
    window = f"w: {chance.choice(WINDOWS)}(o, {chance.randint(0, 6)}s), while w"
    lead = chance.choice([window, window, f"last {chance.randint(1, 4)}", f"exactly {chance.randint(1, 3)}", "all"])
    none = chance.choice(["", "", " or none"])
    grouped = chance.random() < 0.4
    head, none = ("m(K, W", "") if grouped else ("m(K", none)
    if chance.random() < 0.2:
        window = f"w: every({chance.randint(2, 9)}s, {chance.randint(1, 2)}s)"
        return f"{FACTS}{head}, {some}) <- {window}, while w: collect p: b(K, V, W).\n"
    rule = f"{FACTS}{head}, {some}) <- {body}, {lead}: collect p: b({key}, V, W){none}"
    having = chance.choice(["", "", ", count() >= 2"])
    return f"{rule}{having}.\n" + ("q(K) <- m(K, _) SEQ a(K, _, _).\n" if some.count("(") == 1 and not grouped else "")


def steps_of(chance: Random) -> list[Step]:
    """Events of a few keys, in any order, many at the same time, some of which are revoked; and what time passes."""
    values: tuple[Any, ...] = chance.choice([INTEGERS, FLOATS, INTEGERS + FLOATS, INTEGERS + FLOATS + ODD])
    lengths = chance.choice([(0,), (0,), (0, 0, 1, 3)])
    items: list[HistoryItem] = []
    for number in range(chance.randint(4, 16)):
        start = chance.randint(0, 12)
        args = (chance.choice([1, 2, 1.0]), chance.choice(values), chance.choice(values))
        items.append(Event(chance.choice("abb"), args, start, start + chance.choice(lengths), id=f"i{number}"))
    if chance.random() < 0.5:
        items.sort(key=lambda e: e.end)  # type: ignore[union-attr]
    for _ in range(chance.choice([0, 0, 1, 2, 4])):
        items.insert(chance.randint(2, len(items)), Revocation(f"i{chance.randint(0, 15)}"))
    steps: list[Step] = []
    while items:
        size = chance.choice([1, 1, 2, 5, 20])
        steps.append(items[:size])
        items = items[size:]
    return steps


@pytest.mark.parametrize("way", ["", "prune", "save"])
def test_totals_of_windows_are_those_of_the_reference(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choose_collects, "_FEW", 0)  # otherwise a few are listed
    monkeypatch.setattr(choose_collects, "_OVERLAPS", 1)
    for seed in range(3000 if FUZZ else 60):
        chance = Random(f"{way} {seed}")
        program, steps = augury.compile(program_of(chance)), steps_of(chance)
        lateness = chance.choice([None, None, 20, 3])
        for _ in compare(
            program, steps, [], lateness=lateness, prune=way == "prune", save=seed if way == "save" else None
        ):
            pass


def opened(text: str, **settings: Any) -> Session:
    return augury.compile(text).session(clock="logical", **settings)


def ranged(session: Session) -> RangedCollect:
    (found,) = (o for o in session.circuit.operators if isinstance(o, RangedCollect))
    return found


def test_a_trace_has_what_lies_in_the_window() -> None:
    program = augury.compile("m(K, sum(V)) <- o: a(K), w: extend_backward(o, 5s), while w: collect b(K, V).")
    session = program.session(clock="logical")
    given = [("b", (1, 1), 1), ("b", (1, 2), 4), ("b", (2, 9), 4), ("b", (1, 3), 6), ("a", (1,), 8), ("b", (1, 4), 9)]
    session.push([Event(type, args, at, at, id=f"{type}{at}{args}") for type, args, at in given])
    (event,) = session.events()
    assert event.trace == ("a8(1,)", "b4(1, 2)", "b6(1, 3)")
    restored = program.restore(session.snapshot())
    assert [e.trace for e in restored.events()] == [event.trace]
    restored.revoke("b4(1, 2)")
    assert [(e.args, e.trace) for e in restored.events()] == [((1, 3), ("a8(1,)", "b6(1, 3)"))]


@pytest.mark.parametrize(
    "text",
    [
        "m(K, mode(V)) <- o: a(K), w: extend_backward(o, 5s), while w: collect b(K, V).",
        "m(K, sum(distinct V)) <- o: a(K), w: extend_backward(o, 5s), while w: collect b(K, V).",
        "m(K, percentile(V, V)) <- o: a(K), w: extend_backward(o, 5s), while w: collect b(K, V).",
        "m(K, sum(V)) <- o: a(K, X), w: extend_backward(o, 5s), while w: collect b(K, V), V > X.",
        "m(K, sum(V * X)) <- o: a(K, X), w: extend_backward(o, 5s), while w: collect b(K, V).",
        "m(K, sum(V)) <- o: a(K), last 3: collect b(K, V).",
        "m(K, sum(V)) <- o: a(K) OR c(K), w: extend_backward(o, 5s), while w: collect b(K, V).",
    ],
)
def test_other_collects_list_their_members(text: str) -> None:
    assert not any(isinstance(o, RangedCollect) for o in opened(text).circuit.operators)


def test_values_that_do_not_add_up_are_listed() -> None:
    """A window that has one is computed from its members, all others are not."""
    session = opened("m(sum(V)) <- o: b(_), w: extend_backward(o, 1s), while w: collect b(V).")
    values = [0.1, 0.2, 1e300, 0.3, 0.4, 0.5]
    session.push([Event("b", (v,), 2 * i, 2 * i) for i, v in enumerate(values)])
    operator = ranged(session)
    assert isinstance(operator.ranges, RangeTotals)
    assert operator.contents.knows(operator.out.table.standing()).sum() == 1
    assert [e.args[0] for e in session.events()] == values


def test_windows_that_hop_cost_the_same_however_long_they_are() -> None:
    """Each event lies in 50 windows, then in 500, but operators look at a window once."""
    touched = []
    for size in (100, 1000):
        text = f"m(count(distinct V), median(V), arg_max(V, V)) <- w: every({size}s, 2s), while w: collect b(V)."
        session = opened(text)
        for first in range(0, 2000, 100):
            session.push([Event("b", (at * 7919 % 101,), at, at) for at in range(first, first + 100)])
        touched.append(sum(operator["touched"] for operator in session.stats()["operators"]))
        assert len(session.events()) > 900
    assert touched[1] < 2 * touched[0], touched
