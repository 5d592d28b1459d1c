"""Rewrites never change an answer, and do what they are for."""

from __future__ import annotations

import pytest

import augury
from augury.algebra.nodes import Join, Label, Node, Scan, Select, walk
from augury.algebra.place import placed
from augury.core.clock import Clock
from augury.core.model import Event
from augury.planner import optimise
from augury.planner.implied_bounds import implied_bounds
from augury.planner.join_order import join_order
from augury.planner.left_deep import left_deep
from augury.reference import evaluate
from tests.generators.programs import WRITERS, clock_of, example, flat


@pytest.mark.parametrize("kind", WRITERS)
def test_the_optimised_plan_means_the_same(kind: str) -> None:
    for seed in range(60):
        text, steps, facts = example(kind, f"optimised {seed}")
        try:
            plan = augury.compile(text).plan
        except augury.ProgramError:
            continue
        better = optimise(plan)
        one, other = (evaluate(p, flat(steps), Clock(), facts, clock_of(steps)) for p in (plan, better))
        assert [e.content for e in one.events] == [e.content for e in other.events], text


def order(node: Node) -> list[str]:
    match node:
        case Join():
            return order(node.left) + order(node.right)
        case Select() | Label():
            return order(node.input)
        case Scan():
            return [node.type]
    raise AssertionError(node)


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("m(X) <- i: a(X), j: b(Y), k: c(X, Y).", ["a", "c", "b"]),
        ("m(X) <- i: a(X), j: b(Y), k: c(X), j before k.", ["a", "c", "b"]),
        ("m(X) <- i: a(X), j: b(Y), k: c(Z), i before k, k before j.", ["a", "c", "b"]),
        ("m(X) <- i: a(X), j: b(X), k: c(X).", ["a", "b", "c"]),
        ("m(X) <- i: a(X), j: b(Y), k: c(X, Y) POLICY recent.", ["a", "b", "c"]),
        ("m(X) <- i: a(X), j: b(Y), k: c(Z).", ["a", "b", "c"]),
    ],
)
def test_parts_with_something_in_common_are_joined_first(rule: str, expected: list[str]) -> None:
    assert order(join_order(augury.compile(rule).plan).rules[0].body) == expected


@pytest.mark.parametrize(
    ("rule", "written"),
    [
        ("m(X) <- a(X) SEQ (b(X) SEQ c(X)).", False),
        ("m(X) <- (a(X) SEQ (b(X) SEQ (c(X) SEQ d(X)))).10s.", False),
        ("m(X) <- a(X) SEQ (b(X, Y) SEQ c(X, Y)).", True),  # the inner pair agrees on more
        ("m(X) <- a(X) SEQ (b(X) SEQ c(X)).10s.", True),
        ("m(X) <- a(X) SEQ[recent] (b(X) SEQ c(X)).", True),
    ],
)
def test_sequences_are_joined_from_the_left(rule: str, written: bool) -> None:
    body = left_deep(augury.compile(rule).plan).rules[0].body
    joins = [node for node in walk(body) if isinstance(node, Join)]
    assert any(isinstance(below, Join) for join in joins for below in walk(join.right)) == written


def test_nothing_is_joined_behind_an_empty_left_input() -> None:
    session = augury.compile("m(X) <- (a(X) SEQ (b(X) SEQ c(X))).1h.").session(clock="logical")
    session.push([Event(type, (1,), t) for t in range(200) for type in ("b", "c")])
    assert all(o["rows_out"] == 0 for o in session.stats()["operators"] if o["operator"] == "join")
    assert len(session.push([Event("a", (1,), -1)])) == 199  # one for each end


ITERATION = "output e. iteration(1) <- a. iteration(K + 1) <- a SEQ iteration(K). e <- iteration(3)."


def iterations(text: str, count: int) -> tuple[int, list[int]]:
    """How many answers there are, and which iterations the engine has made."""
    session = augury.compile(text).session(clock="logical")
    session.push([Event("a", (), t) for t in range(count)])
    table = session.circuit.derived["iteration", 1].out.table
    made = {int(code) >> 2 for code in table.data[table.codes[0], : table.n]}
    return len(session.events()), sorted(made)


def test_a_counter_stops_where_nobody_looks_further() -> None:
    assert iterations(ITERATION, 8) == (21, [1, 2, 3])  # an answer for every interval of three or more of the eight
    plan = augury.compile(ITERATION).plan
    history = [Event("a", (), t) for t in range(8)]
    assert iterations(ITERATION, 8)[0] == len(evaluate(plan, history, Clock()).events)


@pytest.mark.parametrize(
    "text",
    [
        ITERATION.replace("output e.", ""),
        ITERATION + " f(K) <- iteration(K).",
        ITERATION.replace("a SEQ iteration(K)", "a SEQ[recent] iteration(K)"),
        ITERATION + " g <- NOT(iteration(2)).[a, a].",
        ITERATION.replace("K + 1", "K * 2 + 1").replace("iteration(3)", "iteration(3)"),
    ],
)
def test_a_counter_that_is_seen_goes_on(text: str) -> None:
    assert max(iterations(text, 6)[1]) > 3


def test_a_rule_that_looks_further_is_heard() -> None:
    session = augury.compile(ITERATION).session(clock="logical")
    session.push([Event("a", (), t) for t in range(6)])
    found = session.add_rules("output far. far <- iteration(5).")
    assert len(found) == len({(c.event.start, c.event.end) for c in found}) == 3


def test_bounds_that_follow_from_others_are_not_tested() -> None:
    program = augury.compile("m(X) <- (a(X) SEQ b(X)).10.")
    node = placed(program.plan.rules[0], ()).body
    assert isinstance(node, Join)
    relation, rest = implied_bounds(node, Clock(), {}, {})
    assert not rest
    assert len(relation.bounds[0]) == 2
    assert relation.reach[1].tolist()[1] == -10  # a partner of b ended at most ten before b ends
    assert relation.reach[1].tolist()[2] == -1  # and before b starts
