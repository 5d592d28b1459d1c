"""Totals that the engine computes by columns, against the table of aggregates, which takes values one by one."""

from __future__ import annotations

import os
from random import Random

import pytest

import augury
from augury.core.clock import Clock, Duration
from augury.core.model import Event, HistoryItem, Revocation, Value
from augury.reference.evaluator import evaluate

COUNT = 60 if os.environ.get("AUGURY_FUZZ") else 2
AGGREGATES = (
    "count(V)", "sum(V)", "avg(V)", "min(V)", "max(V)", "first(V)", "last(V)", "nth(V, 2)", "arg_max(V, U)", "arg_min(U, V)",
    "median(V)", "percentile(V, 25)", "percentile(V, 99.9)", "stddev(V)", "variance(V)", "mode(V)", "list(V)",
    "count(distinct V)", "sum(distinct V)", "mode(distinct V)", "avg(V * 2)", "max(V - U)", "last(end(p))", "min(start(p) - 3)",
    "nth(V, U)", "percentile(V, U)",
)  # fmt: skip
TESTS = ("any(V)", "all(V)", "any(U = 2)", "mode(V)", "max(V)", "first(V)", "arg_max(V, U)")
FORMS = (
    "m{}(K, {}) <- w: every(8s), while w: collect p: a(K, V, U).",
    "h{}(K, {}) <- w: every(9s, 3s), while w: collect p: a(K, V, U).",
    "l{}(K, {}) <- r: b(K), last 4: collect p: a(K, V, U).",
    "f{}(K, {}) <- r: b(K), last 3: collect p: a(K, V, U), U < 3.",
    "c{}(K, {}) <- r: b(_), w: extend_backward(r, 9s), while w: collect p: a(K, V, U).",
    "n{}(K, {}) <- r: b(K), w: extend_backward(r, 5s), while w: collect p: a(K, V, U) or none.",
)
KINDS: dict[str, tuple[Value, ...]] = {
    "integers": (1, 2, 2, 3, 7, -4, 2**40, 2**52 + 1, 2**60),
    "floats": (0.1, 0.2, 0.3, 0.7, 19.99, 1e-3, 1e16, 2.0, 5e-324, 1e300, -1e300, 3.5),
    "both": (1, 1.0, 2, 2.0, 2.5, 0.1, None, 3, -7),
    "anything": (1, 1.0, "a", "b", None, True, False, Duration(5_000_000), Duration(7), 2.5),
    "durations": tuple(Duration(n) for n in (5, 6, 11, 2_000_000, 5)),
    "truth": (True, False, True, None),
    "texts": ("b", "a", "a", "c", None),
}


def told(chance: Random, kind: str) -> list[HistoryItem]:
    """Events in no order, some at the same time; some of them taken back."""
    values = KINDS[kind]
    found: list[HistoryItem] = []
    for i in range(40):
        time, length = chance.randrange(24), chance.choice([0, 0, 0, 2])
        key = chance.choice([1, 1.0, 2])
        args = (key,) if i % 4 == 3 else (key, chance.choice(values), chance.choice([1, 2, 3, 3, None]))
        found.append(Event("b" if i % 4 == 3 else "a", args, time, time + length, f"e{i}"))
    return [*found, *(Revocation(f"e{chance.randrange(40)}") for _ in range(4))]


@pytest.mark.parametrize("form", FORMS)
def test_totals_are_those_of_the_table(form: str) -> None:
    """Told at once, their types and what fails are the same, too."""
    for seed in range(COUNT):
        chance, seen = Random(f"{form} {seed}"), False
        kind = chance.choice([*KINDS])
        items = told(chance, kind)
        for aggregates in (AGGREGATES, TESTS):  # a variable is a number or a truth value, in all of a program
            program = augury.compile("\n".join(form.format(i, one) for i, one in enumerate(aggregates)))
            model = evaluate(program.plan, items, Clock("logical"), until=40)
            expected = {e.content: repr(e.args[1]) for e in model.events}
            for size in (11, len(items)):
                session = program.session(clock="logical")
                for at in range(0, len(items), size):
                    session.push(items[at : at + size])
                session.advance(40)
                found = {e.content: repr(e.args[1]) for e in session.events()}
                assert found.keys() == expected.keys(), (form, seed, kind)
            assert found == expected, (form, seed, kind)
            assert session.errors.keys() == model.errors.keys(), (form, seed, kind)
            seen |= bool(expected)
        assert seen
