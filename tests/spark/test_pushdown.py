"""The filter that Catalyst runs keeps all that the reference uses or reports an error of, and drops most of the rest."""

from __future__ import annotations

import os
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from augury import compile
from augury.algebra.aggregates import AGGREGATES
from augury.algebra.matching import Scalars
from augury.algebra.nodes import AnyOf, Compare, Condition, Holds, Label, Node, Rule, Scan, Select, Within
from augury.algebra.plan import Plan
from augury.algebra.register import function
from augury.algebra.scalar import FUNCTIONS
from augury.algebra.terms import Apply, Const, Expr, Moment, Var, Wild, show
from augury.core.clock import Clock, Duration, Timestamp
from augury.core.model import MAX_INT, MIN_INT, Event, Iri, Term, Value
from augury.planner import physical_plan
from augury.planner.choose_operators import choose_operators
from augury.planner.planning import Setting
from augury.planner.specs import Spec
from augury.semantics.pattern_rows import World
from augury.semantics.static_calls import Static
from augury.spark.pushdown import keep
from tests.support.spark_session import SPARK
from tests.support.spark_session import spark_fixture as spark_fixture

pytestmark = SPARK

LOGICAL, CALENDAR = Clock("logical"), Clock("timestamp")
SEEDS = range(40 if os.environ.get("AUGURY_FUZZ") else 2)
SQL = {"int": "bigint", "bool": "bigint", "timestamp": "bigint", "duration": "bigint", "float": "double", "number": "double"}  # fmt: skip


@dataclass
class Table:
    """Events of the type `e`, for the reference and for Spark."""

    kinds: Sequence[str]
    events: Sequence[Event]
    nulls: Sequence[bool] = field(init=False)

    def __post_init__(self) -> None:
        self.events = [Event(e.type, e.args, e.start, e.end, str(i)) for i, e in enumerate(self.events)]
        self.nulls = [None in e.args for e in self.events]

    def frame(self, spark: SparkSession) -> DataFrame:
        columns = ", ".join(f"c{i} {SQL.get(k, 'string')}" for i, k in enumerate(self.kinds))
        rows = [(int(e.id), e.start, e.end, *map(stored, e.args, self.kinds)) for e in self.events]
        return spark.createDataFrame(rows, f"id int, start bigint, end bigint, {columns}")

    def kept(self, spark: SparkSession, plans: Sequence[Iterable[Spec]], clock: Clock) -> list[set[int] | None]:
        """The numbers of the events that the filter of each program keeps, all in one job; None where there is none."""
        columns = [(F.col(f"c{i}"), kind) for i, kind in enumerate(self.kinds)]
        type = ("e", len(self.kinds))
        filters = [keep(specs, type, columns, F.col("start"), F.col("end"), clock) for specs in plans]
        made: list[Column] = [f.alias(f"f{i}") for i, f in enumerate(filters) if f is not None]
        rows = self.frame(spark).select("id", *made).collect()
        return [None if f is None else {r["id"] for r in rows if r[f"f{i}"]} for i, f in enumerate(filters)]

    def used(self, pattern: Node, clock: Clock) -> tuple[set[int], set[int]]:
        """The events that the reference finds, and those that it reports an error of."""
        scalars = Scalars(FUNCTIONS, AGGREGATES, clock)
        world = World(scalars, Static((), (), scalars, lambda *_: None))
        world.publish(("e", len(self.kinds)), self.events)
        found = {int(part.id) for row in world.rows(pattern) for part in row.parts}
        return found, {int(i) for rows in world.errors.values() for row in rows for i in row[0]}


def operators(pattern: Node, clock: Clock = LOGICAL) -> tuple[Spec, ...]:
    """The operators of a pattern, with its conditions where they are written."""
    rule = Rule("r", "r", (), pattern)
    return choose_operators((rule,), Plan((rule,)), Setting(clock)).specs


def stored(value: Value, kind: str) -> Any:
    """A value as the executor keeps it in a column of its kind."""
    match value:
        case None:
            return float("nan") if kind == "float" else None
        case Timestamp() | Duration():
            return value.us
        case Iri():
            return value.text
    if kind == "json":
        return str(value)
    return int(value) if kind in ("bool", "int") else float(value) if kind in ("float", "number") else value  # type: ignore[arg-type]


# Random conditions

NAMES = {"I": "int", "J": "int", "B": "bool", "F": "float", "N": "number", "S": "string", "U": "string", "R": "iri",
         "T": "timestamp", "D": "duration", "X": "json"}  # fmt: skip
WILD: dict[str, list[Value]] = {
    "int": [0, 1, -1, 2, 7, 10, 2**31, 2**53, 2**53 + 1, -(2**53) - 1, 2**62, MAX_INT, MIN_INT],
    "float": [0.0, 1.0, 0.5, -2.5, 1e-300, 1e300, 2.0**53, 2.0**60, 9007199254740994.0, 3.7, -1e15],
    "bool": [True, False],
    "string": ["", "a", "A b", " a\u3000", "ß", "z\U0001f600", "\uffff", "ab", "aa", "\tB'; DROP", "{0}"],
    "iri": [Iri("a"), Iri("http://x/b"), Iri("")],
    "timestamp": [Timestamp(t) for t in (0, -1, 1_700_000_000_000_000, -62_135_596_800_000_001, MAX_INT, MIN_INT, 951_782_400_000_000)],
    "duration": [Duration(d) for d in (0, 1_000_000, 500_000, -3_000_000, 86_400_000_000, MAX_INT, MIN_INT)],
    "json": [1, 2.5, "a", True, Term("loc", (1, "a")), Timestamp(0)],
}  # fmt: skip
WILD["number"] = [*WILD["float"], 0, 1, 3, -7, 2**53, 2**60]
TAME: dict[str, list[Value]] = {
    "int": [0, 1, 2, 3, 5, 7, 11, -4],
    "float": [0.0, 1.0, 0.5, 2.25, -1.5, 3.0],
    "number": [0, 1, 2.5, 3, -2, 0.25],
    "bool": [True, False],
    "string": ["a", "b", "ab", "Ab", " ba ", "abba"],
    "iri": [Iri("a"), Iri("b")],
    "timestamp": [Timestamp(t) for t in (0, 86_399_000_000, 1_700_000_000_000_000, -86_400_000_000)],
    "duration": [Duration(d) for d in (0, 1_000_000, 3_000_000, 60_000_000)],
    "json": [1],
}


def table(rng: random.Random, tame: bool, rows: int) -> Table:
    pools = TAME if tame else WILD

    def one(kind: str) -> Value:
        return None if not tame and rng.random() < 0.1 else rng.choice(pools[kind])

    def times() -> tuple[int, int]:
        start = rng.choice((0, 1, 5, 60_000_000) if tame else (0, 3, MIN_INT, -(2**62), 1_700_000_000_000_000))
        return start, start + rng.choice((0, 1, 4, 5_000_000) if tame else (0, 2, 2**62))

    return Table(list(NAMES.values()), [Event("e", tuple(map(one, NAMES.values())), *times()) for _ in range(rows)])


class Conditions:
    """Random conditions on an event; tame ones are all said in Spark and of the right types."""

    def __init__(self, rng: random.Random, tame: bool, clock: Clock) -> None:
        self.rng, self.tame, self.clock = rng, tame, clock
        self.pools = TAME if tame else WILD

    def pattern(self) -> Node:
        where = [self.condition(2) for _ in range(self.rng.choice((1, 1, 2, 3)))]
        if self.rng.random() < 0.2:
            type = self.rng.choice(("int", "float", "string"))
            bound = (Compare("=", Var("Y"), self.expression(type, 2)), Compare(self.op(), Var("Y"), self.leaf(type)))
            where.insert(self.rng.randrange(len(where) + 1), bound[0])
            where.append(bound[1])
        node: Node = Label("o", Scan("e", tuple(map(Var, NAMES))))
        cut = self.rng.randrange(len(where) + 1) if self.rng.random() < 0.3 and Var("Y") not in _sides(where) else 0
        node = Select(node, tuple(where[:cut])) if cut else node
        node = Within(node, 2_000_000) if self.rng.random() < 0.2 else node
        return Select(node, tuple(where[cut:]))

    def condition(self, depth: int, terms: int = 2) -> Condition:
        if depth and self.rng.random() < 0.2:
            inside = 0 if self.tame else 1  # an option that fails keeps rows that another one decides
            options = [
                tuple(self.condition(depth - 1, inside) for _ in range(self.rng.choice((1, 2)))) for _ in range(2)
            ]
            return AnyOf(tuple(options))
        type = self.rng.choice(("int", "int", "float", "number", "string", "bool", "timestamp", "duration", "iri"))
        other = type if self.tame or self.rng.random() < 0.8 else self.rng.choice(list(self.pools))
        if type in ("int", "float", "number") and self.rng.random() < 0.5:
            other = self.rng.choice(("int", "float", "number"))
        return Compare(self.op(), self.expression(type, terms), self.expression(other, min(terms, 1)))

    def op(self) -> Any:
        return self.rng.choice(("=", "!=", "<", "<=", ">", ">="))

    def expression(self, type: str, depth: int) -> Expr:
        if depth == 0 or self.rng.random() < 0.3:
            return self.leaf(type)
        if type in ("timestamp", "duration"):
            return self.time(type, depth - 1)
        if type == "any" or (not self.tame and self.rng.random() < 0.05):
            type = self.rng.choice(list(WILD))
        results = {"int": ("int",), "float": ("float", "number", "any"), "number": ("number", "any"), "string": ("string",), "bool": ("bool",)}  # fmt: skip
        rows = [f for f in FUNCTIONS.values() if f.result in results.get(type, ()) and (f.spark or not self.tame)]
        if not rows:
            return self.leaf(type)
        row = self.rng.choice(rows)
        least = len(row.types) - (row.optional if not self.tame or row.name == "-" else 0)
        types = list(row.types[: self.rng.randint(least, len(row.types))])
        types += list(row.types[-1:]) * (self.rng.randint(0, 2) if row.variadic else 0)
        if self.tame:
            types = ["string" if row.name == "concat" else "int" if row.name == "mod" else t for t in types]
        args = [self.expression("number" if t == "any" and (self.tame or self.rng.random() < 0.7) else t, depth - 1) for t in types]  # fmt: skip
        if self.tame and row.name in ("mod", "substring"):
            args[1:] = [Const(self.rng.randint(1, 3)) for _ in args[1:]]
        if self.tame and row.name == "replace":
            args[1] = Const("b")
        return Apply(row.name, tuple(args))

    def time(self, type: str, depth: int) -> Expr:
        pairs = (("+", "timestamp", "duration"), ("-", "timestamp", "duration")) if type == "timestamp" else (
            ("-", "timestamp", "timestamp"), ("+", "duration", "duration"), ("*", "duration", "int"), ("max", "duration", "duration"))  # fmt: skip
        name, one, other = self.rng.choice(pairs)
        return Apply(name, (self.expression(one, depth), self.expression(other, depth)))

    def leaf(self, type: str) -> Expr:
        which: Any = self.rng.choice(("start", "end"))
        if (
            self.rng.random() < 0.15
            and type in ("int", "timestamp")
            and (self.clock == CALENDAR) == (type == "timestamp")
        ):
            return Moment(which, "o")
        if (
            self.rng.random() < 0.15
            and type in ("int", "duration")
            and (self.clock == CALENDAR) == (type == "duration")
        ):
            return Moment("duration", "o")
        names = [n for n, kind in NAMES.items() if kind == type or (type == "number" and kind in ("int", "float"))]
        if names and self.rng.random() < 0.6:
            return Var(self.rng.choice(names))
        pool = self.pools.get(type) or self.pools[self.rng.choice(list(self.pools))]
        return Const(self.rng.choice(pool))


def _sides(where: Iterable[Condition]) -> list[Expr]:
    return [c.left for c in where if isinstance(c, Compare)]


def shown(node: Node) -> str:
    def one(c: Condition) -> str:
        if isinstance(c, AnyOf):
            return "(" + " or ".join(" and ".join(map(one, option)) for option in c.options) + ")"
        return f"{show(c.left)} {c.op} {show(c.right)}" if isinstance(c, Compare) else str(c)

    match node:
        case Select():
            return f"{shown(node.input)} WHERE {', '.join(map(one, node.where))}"
        case Within():
            return f"({shown(node.input)}).{node.length}"
    return "e"


@pytest.mark.parametrize("clock", [LOGICAL, CALENDAR], ids=["logical", "calendar"])
@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_that_matters_is_dropped(spark: SparkSession, seed: int, clock: Clock) -> None:
    rng = random.Random(seed)
    given = table(rng, tame=False, rows=100)
    patterns = [Conditions(rng, False, clock).pattern() for _ in range(40)]
    for pattern, kept in zip(patterns, given.kept(spark, [operators(p, clock) for p in patterns], clock), strict=True):
        found, failed = given.used(pattern, clock)
        for lost in sorted((found | failed) - kept) if kept is not None else ():
            raise AssertionError(f"{given.events[lost]} is lost by {shown(pattern)}: {'an error' if lost in failed else 'a match'}")  # fmt: skip


@pytest.mark.parametrize("clock", [LOGICAL, CALENDAR], ids=["logical", "calendar"])
@pytest.mark.parametrize("seed", SEEDS)
def test_what_can_be_said_in_spark_drops_the_rest(spark: SparkSession, seed: int, clock: Clock) -> None:
    rng = random.Random(seed)
    given = table(rng, tame=True, rows=100)
    patterns = [Conditions(rng, True, clock).pattern() for _ in range(40)]
    for pattern, kept in zip(patterns, given.kept(spark, [operators(p, clock) for p in patterns], clock), strict=True):
        found, failed = given.used(pattern, clock)
        everything = set(range(len(given.events)))
        if failed:
            assert kept is None or found <= kept, shown(pattern)
        else:
            wrong = (everything if kept is None else kept) ^ found
            assert not wrong, f"{shown(pattern)}: {given.events[min(wrong)]}"


@pytest.mark.parametrize("seed", SEEDS)
def test_constants_and_repeated_variables_are_pushed_down(spark: SparkSession, seed: int) -> None:
    """Constants and repeated variables: what is dropped is exactly what does not match, nulls aside."""
    rng = random.Random(seed)
    kinds = [k for k in NAMES.values() if k != "json"]
    pool = [
        v for kind, values in WILD.items() if kind != "json" for v in values if type(v) is not int or abs(v) < 2**53
    ]
    rows = [tuple(rng.choice([*WILD[k][:6], None]) for k in kinds) for _ in range(200)]
    given = Table(kinds, [Event("e", r, 0, 0) for r in rows])
    patterns: list[Node] = []
    for _ in range(60):
        args: list[Expr] = [Wild() for _ in kinds]
        for i in rng.sample(range(len(kinds)), 2):
            constants = (Const(rng.choice(pool)), Const(rng.choice(WILD[kinds[i]][:6])))
            args[i] = rng.choice((*constants, Var("V"), Var("V")))
        patterns.append(Scan("e", tuple(args)))
    for pattern, kept in zip(patterns, given.kept(spark, [operators(p) for p in patterns], LOGICAL), strict=True):
        found, _ = given.used(pattern, LOGICAL)
        assert kept is None or found <= kept, pattern
        assert kept is None or all(given.nulls[i] for i in kept - found), pattern


# Examples


def of(program: str) -> tuple[Spec, ...]:
    """The operators of a program."""
    return physical_plan(compile(program).optimised, Setting(LOGICAL)).specs


GIVEN = Table(["string", "int"], [Event("e", ("a", 1), 0, 0), Event("e", ("b", 2), 0, 5), Event("e", ("c", 30), 3, 9), Event("e", (None, None), 0, 0)])  # fmt: skip
NULL = 3


@pytest.mark.parametrize(
    ("program", "kept"),
    [
        ("r(X) <- e('a', X).", {0, NULL}),
        ("r(X) <- e('a', X) OR e('b', X).", {0, 1, NULL}),
        ("r(X) <- e('a', X). s(X) <- e(Y, X) WHERE X > 10.", {0, 2, NULL}),
        ("r(X) <- e('a', X). s(X) <- e(Y, X).", None),
        ("r(X) <- e(X, X).", set()),
        ("r(X) <- e(Y, X) WHERE (X > 1, Y != 'c').", {1, NULL}),
        ("r(X) <- e(Y, X) WHERE (Z = X * 2, Z >= 4).", {1, 2, NULL}),
        ("r(X) <- e(Y, X) SEQ f(Z) WHERE (X < 10, Z > X, Z > 3).", {0, 1, NULL}),
        ("r(X) <- NOT(e('b', _)).[f(X), g].", {1, NULL}),
        ("r(X) <- o: e(Y, X), duration(o) > 5.", {2}),
        ("r(X) <- o: e(Y, X), w: extend(o, 6s), while w: not f(X), X < 10.", {0, 1, NULL}),
        ("r(X) <- f(X), w: g, while w: not e('c', X).", {2, NULL}),
        ("r(count(X)) <- f, w: g, while w: collect e(Y, X), X > 1.", {1, 2, NULL}),
        ("big('a', 1). r(X) <- e(Y, X) WHERE (big(Y, M), X > M, X > 1).", {1, 2, NULL}),
        ("r(X) <- (e(Y, X)).5.", {0, 1, NULL}),
        ("r(X) <- e(Y, X) ^ 3 WHERE X = 1.0.", {0, NULL}),
        ("r(X) <- f(X).", None),
    ],
)  # fmt: skip
def test_examples_push_conditions_down(spark: SparkSession, program: str, kept: set[int] | None) -> None:
    assert GIVEN.kept(spark, [of(program)], LOGICAL) == [kept]


@pytest.mark.parametrize(("link", "kept"), [("NEXT", None), ("THEN", {0, NULL}), ("SEQ", {0, NULL})])
def test_what_may_not_lie_between_is_kept(spark: SparkSession, link: str, kept: set[int] | None) -> None:
    assert GIVEN.kept(spark, [of(f"r <- e('a', _) {link} f(Z)? PER ().")], LOGICAL) == [kept]


def test_what_comes_after_an_error_is_not_asked(spark: SparkSession) -> None:
    """The row whose first condition divides by zero fails the second, but its error is the engine's to report."""
    divides = Compare(">", Apply("/", (Const(1), Apply("-", (Var("X"), Const(1))))), Const(0))
    small = Compare("=", Var("Y"), Const("b"))
    scan = Scan("e", (Var("Y"), Var("X")))
    assert GIVEN.kept(spark, [operators(Select(scan, (divides, small)))], LOGICAL) == [{0, 1, NULL}]
    assert GIVEN.kept(spark, [operators(Select(scan, (small, divides)))], LOGICAL) == [{1, NULL}]


def test_a_registered_function_is_left_out_whatever_its_name(spark: SparkSession) -> None:
    pattern = Select(Scan("e", (Var("Y"), Var("X"))), (Compare("<", Apply("abs", (Var("X"),)), Const(2)),))
    args = (("e", 2), [(F.col("c0"), "string"), (F.col("c1"), "int")], F.col("start"), F.col("end"), LOGICAL)
    assert keep(operators(pattern), *args) is not None
    assert keep(operators(pattern), *args, {"abs": function(lambda x: x, name="abs")}) is None


def test_what_is_not_pure_is_left_to_the_engine(spark: SparkSession) -> None:
    """Even where Spark has the function, and for what stands after it, which is not asked where it fails."""
    args = (("e", 1), [(F.col("c0"), "int")], F.col("start"), F.col("end"), LOGICAL)
    called = Compare("<", Apply("abs", (Var("X"),), pure=False), Const(2))
    assert keep(operators(Select(Scan("e", (Var("X"),)), (called, Compare(">", Var("X"), Const(0))))), *args) is None
    pure = Compare("<", Apply("abs", (Var("X"),)), Const(2))
    assert keep(operators(Select(Scan("e", (Var("X"),)), (pure,))), *args) is not None
    impure = {"abs": replace(FUNCTIONS["abs"], pure=False)}
    assert keep(operators(Select(Scan("e", (Var("X"),)), (pure,))), *args, impure) is None


def test_an_overflow_on_the_way_is_seen(spark: SparkSession) -> None:
    """Catalyst makes X + 1 - 1 an X; that the first sum overflows is the engine's to report."""
    there = Apply("+", (Apply("+", (Var("X"), Const(1))), Const(-1)))
    given = Table(["int"], [Event("e", (MAX_INT,)), Event("e", (5,)), Event("e", (0,))])
    where = (Compare(">", there, Const(3)), Compare("<", Var("X"), Const(3)))
    assert given.kept(spark, [operators(Select(Scan("e", (Var("X"),)), where))], LOGICAL) == [{0}]


def test_a_condition_on_facts_is_left_out(spark: SparkSession) -> None:
    where = (Holds("p", (Var("Y"),)), Compare("<", Var("X"), Const(2)))
    assert GIVEN.kept(spark, [operators(Select(Scan("e", (Var("Y"), Var("X"))), where))], LOGICAL) == [{0, NULL}]


def test_a_plain_comparison_reaches_the_reader_of_the_file(spark: SparkSession, tmp_path: Any) -> None:
    GIVEN.frame(spark).write.parquet(str(tmp_path / "e"))
    frame = spark.read.parquet(str(tmp_path / "e"))
    kept = keep(of("r(X) <- e('a', X) WHERE X > 1.0."), ("e", 2), [(F.col("c0"), "string"), (F.col("c1"), "int")], F.col("start"), F.col("end"), LOGICAL)  # fmt: skip
    assert kept is not None
    plan = frame.filter(kept)._jdf.queryExecution().toString()
    assert "PushedFilters: [Or(EqualTo(c0,a),IsNull(c0)), Or(GreaterThan(c1,1),IsNull(c1))]" in plan
