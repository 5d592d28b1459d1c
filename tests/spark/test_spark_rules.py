"""Static rules as joins of DataFrames, against the reference: all answers, and those that events ask for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

import augury
from augury.algebra.matching import Scalars
from augury.algebra.nodes import Holds
from augury.algebra.plan import Plan, Predicate
from augury.algebra.terms import Var
from augury.core.clock import Clock
from augury.core.errors import ProgramError, RunError
from augury.core.model import Fact, OrderKey, order_key
from augury.knowledge.facts import Facts
from augury.semantics.static_calls import Static
from augury.spark import detect
from augury.spark import fact_placement as spark_facts
from augury.spark.relation_frames import FactFrame, NotJoined
from augury.spark.rules import Seeds, StaticRules
from tests.generators import datalog
from tests.support.spark_session import SPARK, session

pytestmark = SPARK

# For few rows the work of Spark is in planning and compiling, not in rows.
TINY = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
}


@pytest.fixture(name="tiny", scope="module")
def tiny_fixture() -> Iterator[SparkSession]:
    spark = session()
    before = {name: spark.conf.get(name) for name in TINY}
    for name, value in TINY.items():
        spark.conf.set(name, value)
    yield spark
    for name, old in before.items():
        spark.conf.set(name, str(old))


Rows = dict[Predicate, tuple[list[Any], str]]


def rules_of(text: str, rows: Rows, spark: SparkSession, small: list[Fact] | None = None) -> StaticRules:
    frames = {p: spark.createDataFrame(listed, types) for p, (listed, types) in rows.items()}
    return StaticRules(augury.compile(text).plan, frames, Facts.of(small or []))


def wanted(plan: Plan, predicate: Predicate, facts: list[Fact]) -> set[tuple[OrderKey, ...]]:
    """All answers by the reference."""
    static = Static(plan.clauses, facts, Scalars(plan.functions, plan.aggregates, Clock()), lambda *_: None)
    names = [f"V{i}" for i in range(predicate[1])]
    solved = static.solve(Holds(predicate[0], tuple(map(Var, names))), {}, 0)
    return {tuple(order_key(binding[n]) for n in names) for binding, _ in solved}


def found(relation: FactFrame) -> list[tuple[OrderKey, ...]]:
    return sorted(tuple(map(order_key, fact.args)) for fact in relation.table(""))


def told(rows: Rows, small: list[Fact] | None = None) -> list[Fact]:
    return [Fact(name, tuple(row)) for (name, _), (listed, _) in rows.items() for row in listed] + (small or [])


def seeds(spark: SparkSession, place: int, *values: int) -> Seeds:
    return Seeds((place,), FactFrame(spark.createDataFrame([(v,) for v in values], "c0 long"), ("int",)))


EDGES: Rows = {
    ("e", 2): ([(1, 2), (2, 3), (3, 1), (3, 4), (4, None), (None, 5), (6, 6), (1, 2)], "x long, y long"),
    ("w", 2): ([(1, 1.0), (2, 2.5), (4, 4.0), (6, None)], "x int, y double"),
    ("n", 2): ([(1, "a"), (2, "b"), (4, "a")], "x long, y string"),
}
CASES = {
    "left": "p(X, Y) :- e(X, Y).\np(X, Z) :- p(X, Y), e(Y, Z).",
    "right with other edges": "p(X, Y) :- e(X, Y).\np(X, Z) :- w(X, Y), p(Y, Z).",
    "double, with facts of its own": "p(1, 4).\np(X, Y) :- e(X, Y).\np(X, Z) :- p(X, Y), p(Y, Z).",
    "mutual": "p(X, Y) :- e(X, Y).\np(X, Z) :- q(X, Y), e(Y, Z).\nq(X, Z) :- p(X, Y), e(Y, Z).",
    "negation": "r(X, Y) :- e(X, Y).\nr(X, Z) :- r(X, Y), e(Y, Z).\np(X, Y) :- e(X, _), e(_, Y), not r(X, Y), not w(Y, _).",
    "comparison": "p(X, Z) :- e(X, Y), w(Y, Z), X < Z.\np(X, Z) :- w(X, Y), X = Y, Z = 7, X != Z.",
    "constants and one variable twice": "p(X, 'a') :- e(X, X).\np(X, Y) :- n(X, 'a'), n(2, Y).\np(X, X) :- w(X, X).",
    "or": "p(X, Y) :- e(X, Y), (w(X, Z) or n(Z, 'b'), e(Z, Y)).",
    "kinds mixed in recursion": "p(X, Y) :- n(X, Y).\np(X, Y) :- w(X, Y).\np(X, Z) :- e(X, Y), p(Y, Z).",
}


@pytest.mark.parametrize("name", CASES)
def test_answers_are_those_of_the_reference(name: str, tiny: SparkSession) -> None:
    text = "".join(f"static {p}(x: any, y: any).\n" for p, _ in EDGES) + CASES[name] + "\nout(X) <- a(X) WHERE p(X, _)."
    rules = rules_of(text, EDGES, tiny)
    everything = wanted(rules.plan, ("p", 2), told(EDGES))
    assert found(rules.answers(("p", 2))) == sorted(everything)
    place = list(CASES).index(name) % 2
    some = found(rules.answers(("p", 2), seeds(tiny, place, 1, 2)))
    assert {a for a in everything if a[place] in ((2, 1), (2, 2))} <= set(some) <= everything


@st.composite
def typed_rows(draw: st.DrawFn) -> tuple[Rows, list[Fact]]:
    """Facts of each predicate as a DataFrame, or a few of any types beside."""
    kinds = {"int": st.sampled_from([1, 2, 3, 4, None]), "double": st.sampled_from([1.0, 2.5, None]), "string": st.sampled_from(["a", "b"])}  # fmt: skip
    rows, small = dict[Predicate, tuple[list[Any], str]](), list[Fact]()
    for name, arity in datalog.FACTS.items():
        if draw(st.integers(0, 3)) == 0 and rows:
            small += [
                Fact(name, r) for r in draw(st.lists(st.tuples(*(datalog.values for _ in range(arity))), max_size=6))
            ]
        else:
            chosen = [draw(st.sampled_from(["int", "int", "double", "string"])) for _ in range(arity)]
            types = ", ".join(f"x{i} {k}" for i, k in enumerate(chosen))
            rows[name, arity] = (draw(st.lists(st.tuples(*(kinds[k] for k in chosen)), max_size=7)), types)
    return rows, small


@settings(max_examples=3, suppress_health_check=list(HealthCheck))
@given(datalog.programs(), typed_rows(), st.sampled_from([("p", 2), ("r", 2)]), st.integers(0, 1))
def test_static_rules_of_random_programs(tiny: SparkSession, text: str, facts: tuple[Rows, list[Fact]], predicate: Predicate, place: int) -> None:  # fmt: skip
    try:
        rules = rules_of(text.replace(", !", ""), facts[0], tiny, facts[1])
        rules.check(predicate)
    except (ProgramError, NotJoined):
        return
    everything = wanted(rules.plan, predicate, told(*facts))
    assert found(rules.answers(predicate)) == sorted(everything)
    some = found(rules.answers(predicate, seeds(tiny, place, 1, 3)))
    assert {a for a in everything if a[place] in ((2, 1), (2, 3))} <= set(some) <= everything


CLOSURE = (
    "static e(x: int, y: int).\np(X, Y) :- e(X, Y).\np(X, Z) :- e(X, Y), p(Y, Z).\nout(X, Y) <- a(X) WHERE p(X, Y)."
)
CHAIN: Rows = {("e", 2): ([(i, i + 1) for i in range(200)], "x int, y int")}


def test_a_long_chain_takes_few_rounds(tiny: SparkSession) -> None:
    rules = rules_of(CLOSURE, CHAIN, tiny)
    assert rules.answers(("p", 2)).frame.count() == 200 * 201 // 2
    [(_, counts)] = rules.rounds
    assert len(counts) == 10  # 2 ** 8 > 200; the first finds the edges, the last nothing


def test_what_is_asked_for_is_what_is_found(tiny: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("augury.spark.rules._STRIDE", 2)
    rules = rules_of(CLOSURE, CHAIN, tiny)
    assert rules.answers(("p", 2), seeds(tiny, 0, 170, 999)).frame.count() == 30
    [(_, counts)] = rules.rounds
    assert sum(counts) == 30 and len(counts) < 12  # steps grow


def test_calls_below_a_rule_are_asked_for_as_well(tiny: SparkSession) -> None:
    text = "static home(x: int, y: int).\n" + CLOSURE + "\nnear(Z, X) :- home(X, Y), p(Z, Y)."
    rules = rules_of(text, CHAIN | {("home", 2): ([(7, 4), (8, 30)], "x int, y int")}, tiny)
    rows = rules.answers(("near", 2), seeds(tiny, 1, 7)).shown().collect()
    assert sorted(map(tuple, rows)) == [(z, 7) for z in range(4)]
    assert all(sum(counts) <= 4 for _, counts in rules.rounds)


NOT_JOINED = {
    "ends in a cut": "p(X, Y) :- e(X, Y), !.",
    "does more than join": "p(X, Z) :- e(X, Y), Z = Y + 1.",
    "order of values of different types": "p(X, Y) :- n(X, Y), X < Y.",
    "change in time": "p(X, Y) :- t(X, Y).",
}


@pytest.mark.parametrize("why", NOT_JOINED)
def test_rules_that_do_more_are_left_to_the_engine(why: str, tiny: SparkSession) -> None:
    text = (
        "".join(f"static {p}(x: any, y: any).\n" for p in "ewnt") + NOT_JOINED[why] + "\nout(X) <- a(X) WHERE p(X, _)."
    )
    with pytest.raises(NotJoined, match=why):
        rules_of(text, EDGES, tiny, [Fact("t", (1, 2), since=3)]).check(("p", 2))


def test_answers_show_values(tiny: SparkSession) -> None:
    text = "static s(x: timestamp, y: bool).\np(Y, X) :- s(X, Y).\no(X) <- a(X) WHERE p(X, _)."
    rules = rules_of(text, {("s", 2): ([("2024-01-01T00:00:00", True)], "x string, y boolean")}, tiny)
    assert [str(row[1]) for row in rules.answers(("p", 2)).shown().collect()] == ["2024-01-01 00:00:00"]


# In a run

PROGRAM = """
event order(store: int, amount: float).
static part(of: int, in: int).
static region(id: int, name: string).
inside(X, Y) :- part(X, Y).
inside(X, Z) :- inside(X, Y), part(Y, Z).
named(X, N) :- inside(X, Y), region(Y, N).
large(S) <- order(S, A) WHERE A > 1.
"""
RULES = {
    "recursive": "busy(S, R) <- order(S, A) WHERE inside(S, R), A > 1.",
    "below a rule": "busy(S, N) <- (order(S, A) SEQ order(S, B)).1h WHERE named(S, N).",
    "two conditions on one event": "busy(S, R, N) <- order(S, _) WHERE inside(S, R), named(S, N).",
    "both bound": "busy(S) <- order(S, _) WHERE inside(S, 9).",
}


def answers(rule: str, spark: SparkSession, broadcast: int, **more: Any) -> tuple[list[str], tuple[str, ...]]:
    orders = [(s, float(a), 60 * t) for t, (s, a) in enumerate([(1, 1), (1, 2), (2, 3), (5, 4), (1, 5), (7, 2)])]
    facts = {
        "part": spark.createDataFrame([(1, 4), (4, 9), (2, 9), (3, 9), (9, 10)], "of int, in long"),
        "region": [(9, "north"), (10, "all")],
    }
    events = {"order": spark.createDataFrame(orders, "store int, amount double, time long")}
    run = detect(PROGRAM + rule, events, facts=facts | more, broadcast=broadcast)
    return sorted(map(str, run["busy"].collect())), run.pipeline.joined


@pytest.mark.parametrize("name", RULES)
def test_rules_over_many_facts_are_joined(name: str, tiny: SparkSession) -> None:
    sent, _ = answers(RULES[name], tiny, 100)
    joined, names = answers(RULES[name], tiny, 1)
    assert names == ("part",)
    assert joined == sent
    assert sent


def test_events_that_rules_make_are_not_joined(tiny: SparkSession) -> None:
    rule = "busy(S, R) <- large(S) WHERE inside(S, R)."
    sent, _ = answers(rule, tiny, 100)
    with pytest.warns(UserWarning, match="go to every worker"):
        assert answers(rule, tiny, 1) == (sent, ())


def test_facts_that_are_too_many_are_refused(tiny: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_facts, "MOST", 4)
    with pytest.raises(RunError, match="`part` are 5 rows, too many to send"):
        answers("busy(S) <- order(S, _) WHERE not inside(S, 9).", tiny, 1)


def test_facts_that_come_and_go(tiny: SparkSession) -> None:
    said = [(1, 4, "assert", 0), (1, 4, "retract", 100), (2, 9, None, None)]
    part = tiny.createDataFrame(said, "of int, in int, op string, time long")
    rule = "busy(S, R) <- order(S, _) WHERE part(S, R)."
    sent, _ = answers(rule, tiny, 100, part=part)
    assert len(sent) == 3
    with pytest.warns(UserWarning, match="change in time"):
        assert answers(rule, tiny, 1, part=part) == (sent, ())
