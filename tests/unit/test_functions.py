"""Functions and aggregates: their types, and what is said about wrong ones."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Optional, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import augury
from augury.algebra.aggregates import AGGREGATES, AggregateFunction, aggregate_of
from augury.algebra.nodes import Join
from augury.algebra.place import place
from augury.algebra.plan import Plan
from augury.algebra.register import aggregate, function, type_of
from augury.algebra.scalar import FUNCTIONS, TYPES, Function, RowError, apply
from augury.core.clock import Duration, Timestamp
from augury.core.errors import ProgramError, RunError
from augury.core.model import Event, Value
from augury.planner.share import canonical

NOON = Timestamp(1_700_000_000_000_000)
AS_PYTHON = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=NOON.us)


def answers(
    program: str, events: list[Event], *functions: Function | AggregateFunction, engine: Any = "embedded"
) -> Any:
    compiled = augury.compile(program, functions=functions)
    return [e.args for e in augury.run(compiled, events, clock="logical", engine=engine)]


# Types


def plain(a: int, b: float, c: str, d: bool, e: Any) -> float: ...  # type: ignore[empty-body]
def unmarked(a, b): ...  # type: ignore[no-untyped-def]
def times(a: datetime, b: timedelta, c: Timestamp, d: Duration) -> datetime: ...  # type: ignore[empty-body]
def of_the_language(a: timestamp, b: "iri", c: term, d: "number") -> duration: ...  # type: ignore # noqa: F821, UP037
def unions(a: float | None, b: Optional[str], c: int | float, d: int | str) -> bool | None: ...  # noqa: UP045
def lists(a: list[float], b: tuple[int, ...], c: list, d: np.ndarray) -> list: ...  # type: ignore


@pytest.mark.parametrize(
    ("call", "types", "result"),
    [
        (plain, ("int", "number", "string", "bool", "any"), "number"),
        (unmarked, ("any", "any"), "any"),
        (times, ("timestamp", "duration", "timestamp", "duration"), "timestamp"),
        (of_the_language, ("timestamp", "iri", "term", "number"), "duration"),
        (unions, ("number", "string", "number", "any"), "bool"),
        (lists, ("list", "list", "list", "any"), "list"),
    ],
)
def test_annotations_give_types(call: Callable[..., Any], types: tuple[str, ...], result: str) -> None:
    made = function(call)
    assert (made.types, made.result) == (types, result)


@pytest.mark.parametrize("type", TYPES)
def test_every_type_can_be_declared(type: str) -> None:
    made = function(lambda x: x, name="same", types=(type,), result=type)
    assert (made.types, made.result) == ((type,), type)
    assert aggregate(lambda v: v, name="all", argument=type, result=type).argument == type


def test_declared_types_stand_before_annotations() -> None:
    declared = function(plain, types=("float", "int", str, "any", "list"), result="int")
    assert declared.types == ("float", "int", "string", "any", "list")
    assert declared.result == "int"
    assert function(plain, types=("int",) * 5).result == "number"
    assert function(plain, result="int").types == function(plain).types


def test_functions_of_c_need_types() -> None:
    assert function(math.hypot, types=("float", "float"), result="float").arity == "2"
    assert function(lambda *x: x, name="all", types=("float",)).arity == "0 or more"
    assert function(lambda *x: x, name="all", types=("float", "int")).arity == "2"
    assert apply(function(math.hypot, types=("float", "float")), (3, 4)) == 5.0
    told(
        lambda: function(dict.fromkeys, name="keys") and function(max),
        "has no signature",
        "`max`",
        "types=",
    )
    assert function(max, types=("int", "int")).arity == "2"


def test_parameters_that_may_be_left_out() -> None:
    def scaled(x: float, by: float = 2, *more: float, silent: bool = True, **rest: Any) -> float:
        return x * by + sum(more)

    made = function(scaled)
    assert (made.types, made.arity) == (("number",) * 3, "1 or more")
    assert answers("e(scaled(X), scaled(X, 3), scaled(X, 3, 1, 1)) <- a(X).", [Event("a", (2,), 1, 1)], made) == [
        (4, 6, 8)
    ]
    two = function(lambda x, y=1: x + y, name="two")
    assert (two.arity, two.takes(1), two.takes(2), two.takes(3)) == ("1 to 2", True, True, False)


def test_the_types_are_checked() -> None:
    twice = function(lambda x: x * 2, name="twice", types=("number",), result="number")
    with pytest.raises(ProgramError, match="E601"):
        augury.compile("e(twice('x')) <- a.", functions=[twice])
    with pytest.raises(ProgramError, match="E601"):
        augury.compile("e(upper(twice(2))) <- a.", functions=[twice])


# Times of Python


def test_times_are_those_of_python_where_it_asks_for_them() -> None:
    seen: list[Any] = []

    @function
    def later(at: datetime, by: timedelta | None, raw: Timestamp) -> datetime:
        seen.append((at, by, raw))
        return at + (by or timedelta(0))

    assert apply(later, (NOON, Duration(5), NOON)) == Timestamp(NOON.us + 5)
    assert apply(later, (NOON, None, NOON)) == NOON
    assert seen == [(AS_PYTHON, timedelta(microseconds=5), NOON), (AS_PYTHON, None, NOON)]
    assert later(AS_PYTHON, None, NOON) == AS_PYTHON
    with pytest.raises(RowError, match="beyond the times of Python"):
        apply(later, (Timestamp(2**62), None, NOON))


def test_times_in_columns_and_lists() -> None:
    days = function(lambda at: np.array([t.day for t in at]), name="days", types=(datetime,), vectorised=True)
    assert apply(days, (NOON,)) == AS_PYTHON.day
    latest = aggregate(max, name="latest", argument=datetime, result=datetime)
    assert aggregate_of(latest, [NOON, Timestamp(0)], False) == NOON
    columnwise = aggregate(lambda v: v.max(), name="latest", argument=datetime, vectorised=True)
    assert aggregate_of(columnwise, [NOON, Timestamp(0)], False) == NOON


# What is wrong is said, with the name


def told(make: Callable[[], Any], *words: str) -> None:
    with pytest.raises(RunError) as failure:
        make()
    for word in words:
        assert word in str(failure.value)


def misspelt(x: "flaot") -> float: ...  # type: ignore # noqa: F821, UP037
def by_name(x: float, *, unit: str) -> float: ...  # type: ignore[empty-body]
def _hidden(x: float) -> float: ...  # type: ignore[empty-body]
def two_lists(a: list[float], b: list[float]) -> float: ...  # type: ignore[empty-body]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: function(misspelt), ("`flaot` is not a type", "`misspelt`", "did you mean `float`?", "timestamp")),
        (lambda: function(plain, types=("float",)), ("`plain` has 5 parameters, but 1 type", "hint: give one type")),
        (lambda: function(unmarked, types=("float", "flaot")), ("`flaot`", "`unmarked`", "did you mean `float`?")),
        (lambda: function(unmarked, types=("float", dict)), ("dict", "`unmarked`", "the types are int, float")),
        (lambda: function(unmarked, types=("float", None)), ("None", "`unmarked`")),
        (lambda: function(unmarked, result="numbr"), ("`numbr`", "`unmarked`", "`number`")),
        (lambda: function(unmarked, types="float"), ("`unmarked` has 2 parameters, but 1 type",)),
        (lambda: function(by_name), ("`by_name`", "`unit`", "by position", "hint: give `unit` a default")),
        (lambda: function(_hidden), ("`_hidden`", "begins with a letter", 'name="…"')),
        (lambda: function(lambda x: x), ("`<lambda>`", 'name="…"')),
        (lambda: function(partial(plain, 1), name="Part"), ("`Part`",)),
        (lambda: function(cast(Any, 3)), ("3 is not a Python function", "@augury.function")),
        (lambda: aggregate(cast(Any, 3)), ("3 is not a Python function", "@augury.aggregate")),
        (lambda: aggregate(lambda v: v), ("an aggregate `<lambda>`",)),
        (lambda: aggregate(cast(Any, two_lists)), ("`two_lists` must take one argument",)),
        (lambda: aggregate(len, name="size", argument="flaot"), ("the aggregate `size`", "`flaot`")),
        (lambda: aggregate(len, name="size", result=dict), ("the aggregate `size`", "dict")),
    ],
)
def test_wrong_registrations_are_refused(make: Callable[[], Any], words: tuple[str, ...]) -> None:
    told(make, *words)


def test_a_call_without_a_name_of_its_own() -> None:
    made = function(partial(pow, 2), name="power_of_two", types=("int",), result="int")
    assert apply(made, (5,)) == 32


def test_an_annotation_that_cannot_be_read_is_any_or_told() -> None:
    assert type_of({"not": "a type"}, "the function `f`") == "any"
    with pytest.raises(RunError, match=re.escape("the function `f`")):
        type_of({"not": "a type"}, "the function `f`", declared=True)


@pytest.mark.parametrize("engine", ["embedded", "reference"])
def test_a_function_that_raises_inside_an_aggregate_is_named(engine: str) -> None:
    def bad(x: int) -> int:
        raise ValueError("no")

    program = augury.compile("total(sum(bad(X))) <- i: b, last 3: collect a(X).", functions=[function(bad)])
    with pytest.raises(RunError) as failure:
        augury.run(program, [Event("a", (1,), 1), Event("b", (), 2)], clock="logical", engine=engine)
    assert str(failure.value) == "the function `bad` raised ValueError: no\n  in rule `total`, called as bad(1)"


# Aggregates


def test_annotations_give_types_of_aggregates() -> None:
    def total(values: list[float]) -> float:
        return sum(values)

    def spoken(values: list[str]) -> str:
        return " ".join(values)

    assert (aggregate(total).argument, aggregate(total).result) == ("number", "number")
    assert (aggregate(spoken).argument, aggregate(spoken).result) == ("string", "string")
    assert (aggregate(len, name="size").argument, aggregate(statistics.median).argument) == ("any", "any")
    with pytest.raises(ProgramError, match="E601"):
        augury.compile("e(total(upper(S))) <- i: b, last 3: collect a(S).", functions=[aggregate(total)])


@pytest.mark.parametrize("engine", ["embedded", "reference"])
def test_a_vectorised_aggregate_is_given_an_array(engine: str) -> None:
    seen: list[Any] = []

    def middle(values: Any) -> Any:
        seen.append(values.dtype.kind)
        return np.median(values)

    made = aggregate(middle, argument="number", result="float", vectorised=True)
    events = [Event("a", (x,), t, t) for t, x in enumerate((1, 5, 9))] + [Event("b", (), 9, 9)]
    assert answers("e(middle(X)) <- i: b, last 3: collect a(X).", events, made, engine=engine) == [(5.0,)]
    assert seen == ["i"]


@pytest.mark.parametrize(
    ("values", "kind"), [([1, 2], "i"), ([1, 2.5], "f"), ([True, False], "b"), ([True, 1], "O"), ([1, None], "O"), ([(1, 2), (3, 4)], "O"), ([], "f")]
)  # fmt: skip
def test_the_array_of_an_aggregate(values: list[Value], kind: str) -> None:
    made = aggregate(lambda v: v.dtype.kind + str(v.ndim), name="kind", vectorised=True)
    assert aggregate_of(made, values, False) == kind + "1"


def test_numpy_scalars_are_values() -> None:
    for scalar, value in ((np.int64(3), 3), (np.float32(0.5), 0.5), (np.bool_(True), True), (np.str_("x"), "x")):
        made = apply(function(lambda x, g=scalar: g, name="same"), (1,))
        assert (made, type(made)) == (value, type(value))


# Pure


def test_what_is_not_pure_is_never_computed_ahead() -> None:
    calls: list[int] = []

    def stamped(x: Any) -> Any:
        calls.append(len(x))
        return x * 2

    pure, impure = function(stamped, vectorised=True), function(stamped, vectorised=True, pure=False)
    assert (pure.pure, impure.pure) == (True, False)
    assert apply(impure, (4,)) == 8
    assert calls == [1]
    assert not aggregate(len, name="size", pure=False).pure


@dataclass
class Counted:
    """A function `big` that counts what it is called with."""

    pure: bool
    calls: list[Any] = field(default_factory=list)

    def plan(self, text: str) -> Plan:
        return augury.compile(text, functions=[self.function]).plan

    def session(self, text: str, **settings: Any) -> augury.Session:
        return augury.compile(text, functions=[self.function]).session(clock="logical", **settings)

    @property
    def function(self) -> Function:
        return cast(Function, function(self.big, types=("int",), result="bool", pure=self.pure))

    def big(self, x: int) -> bool:
        self.calls.append(x)
        return x > 1


TWO_RULES = "e(X) <- a(X) WHERE big(X).\nf(Y) <- a(Y) WHERE big(Y)."


def test_two_rules_do_not_share_what_is_not_pure() -> None:
    for pure, calls in ((True, [2]), (False, [2, 2])):
        counted = Counted(pure)
        plan = counted.plan(TWO_RULES)
        assert (len({canonical(rule.body) for rule in plan.rules}) == 1) is pure
        assert len({canonical(plan.rules[0].body) for _ in range(2)}) == 1
        session = counted.session(TWO_RULES)
        assert sorted(c.event.type for c in session.push(Event("a", (2,), 1))) == ["e", "f"]
        assert counted.calls == calls


def test_a_rule_that_comes_later_asks_anew() -> None:
    counted = Counted(False)
    session = counted.session("e(X) <- a(X) WHERE big(X).")
    session.push(Event("a", (2,), 1))
    for _ in range(2):  # what a rule that is gone has asked is not kept either
        session.add_rules("f(X) <- a(X) WHERE big(X).")
        session.remove_rule("f")
    assert counted.calls == [2, 2, 2]


@pytest.mark.parametrize(
    ("body", "pure", "impure"),
    [
        ("a(X) SEQ b(Y) WHERE big(X)", 0, 1),
        ("a(X) SEQ b(Y) WHERE (big(X) or X > 3)", 0, 1),
        ("a(X) SEQ b(Y) WHERE (Z = big(X), Z, Y > 3)", 0, 2),
        ("o: a(X), p: b(Y), o before p, big(X)", 1, 2),
        ("o: a(X), b(Y), w: extend(o, 5s), while w: not (c(Z) WHERE big(Z))", 0, 1),
        ("o: a(X), b(Y), w: extend(o, 5s), while w: not (c(Z) WHERE big(X))", 0, 1),
    ],
)
def test_what_is_not_pure_stays_where_it_is_written(body: str, pure: int, impure: int) -> None:
    """How many conditions are tested at the join: the others could be, and are, on one of its parts alone."""
    for is_pure, count in ((True, pure), (False, impure)):
        [rule] = Counted(is_pure).plan(f"e(X, Y) <- {body}.").rules
        top = place(rule.body)
        assert isinstance(top, Join)
        assert len(top.where) == count


@pytest.mark.parametrize("policy", ["", "[recent]", "[chronological]"])
def test_only_rows_that_ask_are_asked_for(policy: str) -> None:
    """Events that find no partner are never tested; a pure function is called for them ahead."""
    events = [Event("a", (x,), x) for x in (1, 2, 3)]
    for pure, ahead, later in ((True, [1, 2, 3], [1, 2, 3, 2]), (False, [], [2])):
        counted = Counted(pure)
        session = counted.session(f"e(X) <- a(X) SEQ{policy} b(X) WHERE big(X).")
        session.push(events)
        assert counted.calls == ahead
        session.push(Event("b", (2,), 9))
        assert counted.calls == later
        assert [e.args for e in session.events()] == [(2,)]


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        ("e(big(X)) <- a(X).", [1, 2, 3]),
        ("e(big(X), big(X)) <- a(X).", [1, 1, 2, 2, 3, 3]),
        ("e(X) <- (a(X) OR c(X)) WHERE big(X).", [1, 2, 3, 5]),
        ("e <- (a(_) WHERE big(2)) ^ 2.", [2, 2, 2]),
        ("e(X, Y) <- a(X) SEQ (b(Y) WHERE big(Y)).", [7]),
        ("e(X) <- NOT(c(Y) WHERE big(Y)).[a(X), b(_)].", [5]),
        ("e(X) <- a(X) WHERE (p(X), big(X)). p(2).", [2]),
        ("e(count(X)) <- b(_), last 3: collect a(X), big(X).", [1, 2, 3]),
    ],
)
def test_once_for_each_row(text: str, calls: list[int]) -> None:
    counted = Counted(False)
    session = counted.session(text)
    for x in (1, 2, 3):
        session.push(Event("a", (x,), x, id=f"a{x}"))
    session.push([Event("c", (5,), 5), Event("b", (7,), 8)])
    assert sorted(counted.calls) == calls
    session.push(augury.Revocation("a1"))
    assert sorted(counted.calls) == calls


def test_the_functions_of_the_language_are_pure() -> None:
    assert all(f.pure for f in FUNCTIONS.values())
    assert all(a.pure for a in AGGREGATES.values())


# The forms for columns give the same doubles, and NaN where there is none

numbers = st.one_of(
    st.floats(-100, 100), st.integers(-100, 100), st.floats(allow_nan=False, allow_infinity=False), st.integers(-(2**63), 2**63 - 1)
)  # fmt: skip


@pytest.mark.parametrize("name", sorted(f.name for f in FUNCTIONS.values() if f.vector is not None))
@given(data=st.data())
def test_vectorised_function_gets_columns(name: str, data: st.DataObject) -> None:
    row = FUNCTIONS[name]
    assert row.vector is not None
    rows = data.draw(st.lists(st.tuples(*(numbers for _ in row.types)), min_size=1, max_size=20))
    columns = [np.array(c) for c in zip(*rows, strict=True)]
    found = row.vector(*columns)
    assert found.dtype == np.float64
    for i, args in enumerate(zip(*(c.tolist() for c in columns), strict=True)):
        try:
            value = apply(row, args)
        except RowError:
            assert math.isnan(found[i])
        else:
            assert found[i] == value


def test_a_column_of_other_things_is_refused() -> None:
    words = np.array(["1"], object)
    with pytest.raises(TypeError):
        FUNCTIONS["distance_km"].vector(words, words, words, words)  # type: ignore[misc]


def test_distances_that_cannot_be_computed() -> None:
    row = FUNCTIONS["distance_km"]
    for args in ((90.1, 0, 0, 0), (0, 0, -91, 0)):
        with pytest.raises(RowError, match="is not a latitude, from -90 to 90"):
            apply(row, args)
    for wrong in ("1", True):
        with pytest.raises(RowError, match="is not a number"):
            apply(row, (0, wrong, 0, 0))
    assert apply(row, (0, None, 0, 0)) is None


@pytest.mark.parametrize("engine", ["embedded", "reference"])
def test_distances_in_a_rule(engine: str) -> None:
    program = "close(A, B) <- a(A, X, Y) SEQ b(B, U, V) WHERE distance_km(X, Y, U, V) < 152."
    events = [Event("a", ("ksdb", 34.744, -118.727), 1, 1), Event("b", ("kavx", 33.405, -118.416), 2, 2), Event("b", ("ksfo", 37.619, -122.375), 3, 3)]  # fmt: skip
    assert answers(program, events, engine=engine) == [("ksdb", "kavx")]
