"""Rewrites never change an answer, and do what they are for."""

from __future__ import annotations

import pytest

import augury
from augury.algebra.nodes import Join, Label, Node, Scan, Select
from augury.algebra.place import placed
from augury.core.clock import Clock
from augury.core.model import Event
from augury.planner import optimise
from augury.planner.implied_bounds import implied_bounds
from augury.planner.join_order import join_order
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
