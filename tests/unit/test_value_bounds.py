"""Comparisons that contradict one another: a warning only where no values meet them."""

from collections.abc import Callable
from fractions import Fraction
from itertools import product
from operator import eq, ge, gt, le, lt, ne

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import augury
from augury.algebra.nodes import Compare
from augury.algebra.terms import Const, Var
from augury.algebra.value_bounds import conflict

TESTS: dict[str, Callable[[Fraction, Fraction], bool]] = {"=": eq, "!=": ne, "<": lt, "<=": le, ">": gt, ">=": ge}
NAMES = ("X", "Y", "Z")
# Three variables with constants 0, 1 and 2: quarters leave room for three different values between two constants.
DOMAIN = [Fraction(n, 4) for n in range(-3, 12)]

sides = st.one_of(st.sampled_from(NAMES).map(Var), st.integers(0, 2).map(Const), st.just(Const(1.0)))
comparisons = st.builds(Compare, st.sampled_from(list(TESTS)), sides, sides)


def _meets(where: list[Compare], values: dict[str, Fraction]) -> bool:
    def value(side: object) -> Fraction:
        return values[side.name] if isinstance(side, Var) else Fraction(side.value)  # type: ignore[attr-defined]

    return all(TESTS[c.op](value(c.left), value(c.right)) for c in where)


def _can_hold(where: list[Compare]) -> bool:
    return any(_meets(where, dict(zip(NAMES, row, strict=True))) for row in product(DOMAIN, repeat=len(NAMES)))


@given(st.lists(comparisons, min_size=1, max_size=6))
def test_a_conflict_is_found_just_where_no_values_meet_the_comparisons(where: list[Compare]) -> None:
    reasons = conflict(where)
    assert bool(reasons) != _can_hold(where)
    if reasons:
        assert set(reasons) <= set(where)
        assert not _can_hold(list(reasons))


def _warns(program: str) -> bool:
    return any(d.code == "W314" for d in augury.compile(program).warnings)


@given(st.lists(st.sampled_from(["X > 1", "X < 1", "X = 2", "Y < X", "X <= Y", "X > 2 or X < 0"]), max_size=4))
def test_a_rule_without_a_warning_has_an_answer_and_the_other_way_round(where: list[str]) -> None:
    text = f"e(X, Y) <- a(X, Y){' WHERE ' if where else ''}{', '.join(f'({c})' for c in where)}."
    events = [augury.Event("a", (x / 2, y / 2), 0) for x in range(-4, 9) for y in range(-6, 11)]
    assert _warns(text) == (not augury.run(text, events)["e"])


CONDITIONS = ["X > 1", "X < 1", "X = 2", "Y < X", "X <= Y", "Y >= 2", "1 > Y"]


@given(st.lists(st.lists(st.sampled_from(CONDITIONS), max_size=2), min_size=3, max_size=3))
@settings(max_examples=60)
def test_a_rule_over_derived_events_with_a_warning_has_no_answer(where: list[list[str]]) -> None:
    first, second, reader = (f" WHERE {', '.join(conditions)}" if conditions else "" for conditions in where)
    text = f"p(X, Y) <- a(X, Y){first}. p(X, 1) <- a(X, Y){second}. output e. e(X, Y) <- p(X, Y){reader}."
    events = [augury.Event("a", (x / 2, y / 2), 0) for x in range(-2, 7) for y in range(-2, 7)]
    silent = [d for d in augury.compile(text).warnings if d.code == "W314" and "rule `e`" in d.message]
    assert not (silent and augury.run(text, events)["e"])


@pytest.mark.parametrize(
    ("where", "warned"),
    [
        ("D > 20s, D < 10s", True),
        ("D > 10s, D < 20s", False),
        ("D > 20s, D < 5", False),  # a number of ticks, which may last a minute each
        ("D = 1min, D = 60s", False),
        ("T > @'2026-01-02', T < @'2026-01-01'", True),
        ("T > @'2026-01-01', D > 20s", False),
        ("D > 20s, D < X, X < 10s", True),
        ("D > 20s, D < X, X < 10", False),
    ],
)
def test_durations_and_times_have_an_order_of_their_own(where: str, warned: bool) -> None:
    assert _warns(f"e(X) <- a(X, D, T) WHERE {where}.") == warned


def test_bounds_of_two_kinds_are_not_compared() -> None:
    text = "output m. p(D) <- a(D) WHERE D < 10s. p(D) <- b(D) WHERE D < {}. m(D) <- p(D) WHERE D > 20s."
    assert [_warns(text.format(other)) for other in ("15s", "15", "25s")] == [True, False, False]


def test_bounds_go_through_rules() -> None:
    text = "p(X) <- a(X) WHERE X < 3. q(Y) <- p(Y). r(Z) <- q(Z) WHERE Z > {}."
    assert [_warns(text.format(n)) for n in (2, 3)] == [False, True]
