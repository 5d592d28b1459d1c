"""Expressions over columns give, row by row, what the reference evaluator gives: values, how they are written, and errors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import numpy as np
import pytest

import augury
from augury.algebra.aggregates import AGGREGATES
from augury.algebra.matching import Named, Scalars, compare_or_bind
from augury.algebra.nodes import Compare
from augury.algebra.scalar import COMPARISONS, FUNCTIONS, TESTS, RowError
from augury.algebra.terms import Apply, Const, Expr, Moment, Var
from augury.core.clock import Clock, Duration, Timestamp
from augury.core.model import Iri, Term, Value, show_value
from augury.storage.conditions import Context
from augury.storage.dictionary import OPEN, Dictionary
from augury.storage.frame import Frame

TABLE = {**FUNCTIONS, **TESTS}
YEAR = 31_556_952_000_000
TEXTS = [
    "",
    " ",
    "a",
    "abc",
    "ABC",
    "a/b//c",
    "ß",
    "straße",
    "Ünïcode",
    "日本 語",
    "\x1cx\u3000",
    "a'\\\"b",
    "12",
    " 7 ",
    "1.5",
    "-0",
    "nan",
    "x" * 70,
    "\ud800",
]
ZONES = ["Europe/Berlin", "America/New_York", "Asia/Kathmandu", "Africa/Monrovia", "UTC", "Nowhere/City"]
FORMS = ["%Y-%m-%d", "%H:%M", "%j %a %b", "%H:%M:%S.%f %z", "100%%", "none", "%Q"]
UNITS = ["second", "minute", "hour", "day", "week", "month", "quarter", "year", "century"]
PATTERNS = ["a", "^a", "(b|c)+", "(?i)ABC", "[", "", "(x*)(a)?"]


def constant(random: Random, kind: str) -> Const:
    """A value as programs have it: -0.0 is read as 0.0."""
    value = KINDS[kind](random)
    return Const(value + 0.0 if isinstance(value, float) else value)


def a_number(random: Random) -> Value:
    return random.choice(
        [
            random.randrange(-9, 9),
            random.uniform(-9, 9),
            float(random.randrange(-3, 3)),
            -0.0,
            0,
            2**61,
            -(2**63),
            2**63 - 1,
            2**53 + 1,
            1e300,
            0.5,
        ]
    )


def a_time(random: Random) -> Value:
    span = random.choice([YEAR, 60 * YEAR, 140 * YEAR, 3000 * YEAR, 9000 * YEAR])
    us = random.randrange(-span, span)
    return Timestamp(us - us % random.choice([1, 1, 900_000_000]))


KINDS: dict[str, Callable[[Random], Value]] = {
    "int": lambda r: r.randrange(-9, 9),
    "big": lambda r: r.choice([2**61, 2**62, -(2**63), 2**63 - 1, 2**53 + 1, 3]),
    "float": lambda r: r.choice([r.uniform(-9, 9), float(r.randrange(-3, 3)), -0.0, 1e300, 0.5]),
    "number": a_number,
    "text": lambda r: r.choice(TEXTS),
    "bool": lambda r: r.random() < 0.5,
    "time": a_time,
    "duration": lambda r: Duration(r.choice([0, 1, -1, 1_500_000, 3_600_000_000, r.randrange(-(10**12), 10**12)])),
    "iri": lambda r: Iri(r.choice(["http://x/a", "http://x/b", ""])),
    "term": lambda r: Term("pos", (r.choice(["N", None, 1.0]), r.randrange(3))),
    "list": lambda r: (r.randrange(3), "x"),
    "unit": lambda r: r.choice(UNITS),
    "zone": lambda r: r.choice(ZONES),
    "form": lambda r: r.choice(FORMS),
    "pattern": lambda r: r.choice(PATTERNS),
    "mixed": lambda r: KINDS[r.choice([k for k in KINDS if k != "mixed"])](r),
}  # fmt: skip
BY_TYPE = {
    "number": ["int", "float", "number", "big"], "int": ["int", "float"], "string": ["text", "text", "pattern"],
    "timestamp": ["time"], "any": list(KINDS), "bool": ["bool"],
}  # fmt: skip
OWN = {"truncate": ["time", "unit", "zone"], "format_time": ["time", "form", "zone"], "matches": ["text", "pattern"],
       "regexp_extract": ["text", "pattern", "int"], "overlap": ["time"] * 4, "+": ["duration", "time"], "abs": ["duration"]}  # fmt: skip


class Rows:
    """Columns of random values, with a context that computes expressions over them."""

    def __init__(self, random: Random, kinds: Sequence[str], clock: Clock, count: int = 40) -> None:
        self.errors: Counter[str] = Counter()
        scalars = Scalars(TABLE, AGGREGATES, clock)
        self.context = Context(scalars, None, Dictionary(), lambda _, message, __: self.errors.update([message]))  # type: ignore[arg-type]
        few = random.random() < 0.5
        self.bindings: list[dict[str, Value]] = [{} for _ in range(count)]
        variables = {}
        for place, kind in enumerate(kinds):
            pool = [KINDS[kind](random) for _ in range(5 if few else count)]
            column = [None if random.random() < 0.1 else random.choice(pool) for _ in range(count)]
            codes = np.array([self.context.encode(v) for v in column], np.int64)
            if random.random() < 0.2:
                codes[random.randrange(count)] = OPEN
            variables[f"V{place}"] = codes
            for row, code in enumerate(codes.tolist()):
                if code != OPEN:
                    self.bindings[row][f"V{place}"] = self.context.dictionary.decode(code)
        start = np.array([random.randrange(10**15) for _ in range(count)], np.int64)
        self.labels = (start, start + np.array([random.randrange(10**9) for _ in range(count)], np.int64))
        ones = np.full(count, -1, np.int64)
        self.frame = Frame(*self.labels, ones, ones, ones, variables, {"o": self.labels})

    def named(self, row: int) -> dict[str, Named]:
        return {"o": Named(int(self.labels[0][row]), int(self.labels[1][row]))}

    def check(self, expr: Expr) -> None:
        """The values of an expression, and what is reported of rows that have none."""
        errors: Counter[str] = Counter()
        expected: list[Any] = []
        for row, binding in enumerate(self.bindings):
            try:
                expected.append(written(self.context.scalars.evaluate(expr, binding, self.named(row))))
            except RowError as error:
                errors[str(error)] += 1
                expected.append(None)
        self.errors.clear()
        codes, ok = self.context.values(expr, self.frame, "rule")
        decode = self.context.dictionary.decode
        found = [
            written(decode(code)) if fine else None for code, fine in zip(codes.tolist(), ok.tolist(), strict=True)
        ]
        assert found == expected, expr
        assert self.errors == errors, expr

    def check_condition(self, condition: Compare) -> None:
        """The rows that meet a comparison."""
        errors: Counter[str] = Counter()

        def report(_: str, message: str, __: object) -> None:
            errors[message] += 1

        expected = [
            row
            for row, binding in enumerate(self.bindings)
            if compare_or_bind(condition, binding, self.context.scalars, report, self.named(row)) is not None
        ]
        self.errors.clear()
        assert self.context.meet(condition, self.frame.numbered()).right.tolist() == expected, condition
        assert self.errors == errors, condition


def written(value: Value) -> tuple[str, str]:
    return type(value).__name__, show_value(value) if not isinstance(value, float) else repr(value)


def clock_of(random: Random) -> Clock:
    return Clock(random.choice(["logical", "timestamp"]))


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_each_function_of_columns_is_that_of_rows(name: str) -> None:
    function = FUNCTIONS[name]
    for seed in range(12):
        random = Random(f"{name}{seed}")
        count = random.randrange(
            len(function.types) - function.optional, len(function.types) + 1
        ) + 2 * function.variadic * random.randrange(2)
        types = [function.types[min(place, len(function.types) - 1)] for place in range(count)]
        kinds = [random.choice(BY_TYPE[type]) for type in types]
        if random.random() < 0.6 and name in OWN:
            kinds = (OWN[name] * 2)[:count]
        if name in ("+", "-", "*", "/", "min", "max") and random.random() < 0.6:
            kinds = [random.choice(["int", "float", "duration", "time"])] * count
        rows = Rows(random, kinds, clock_of(random))
        args: list[Expr] = [Var(f"V{place}") for place in range(count)]
        for place in range(1, count):
            if random.random() < 0.6:
                args[place] = constant(random, kinds[place])
        if count and "time" in kinds[:1] and random.random() < 0.3:
            args[0] = Moment("start", "o")
        rows.check(Apply(name, tuple(args)))


def an_expression(random: Random, depth: int) -> Expr:
    if depth == 0 or random.random() < 0.2:
        if random.random() < 0.3:
            return constant(random, random.choice(["int", "float", "text", "duration"]))
        if random.random() < 0.5:
            return Var(f"V{random.randrange(4)}")
        return Moment(random.choice(["start", "end", "duration"]), "o")
    name = random.choice(
        [
            "if",
            "if",
            "+",
            "-",
            "*",
            "/",
            "//",
            "mod",
            "coalesce",
            "is_null",
            "abs",
            "length",
            "lower",
            "concat",
            "hour",
            "&",
            "|",
            *COMPARISONS,
        ]
    )
    count = {"if": 3, "abs": 1, "is_null": 1, "length": 1, "lower": 1, "hour": 1}.get(name, 2)
    args = [an_expression(random, depth - 1) for _ in range(count)]
    if name in ("if", "&", "|"):
        tests = 1 if name == "if" else 2
        args[:tests] = [
            Apply(random.choice(COMPARISONS), (an_expression(random, depth - 1), an_expression(random, depth - 1)))
            for _ in range(tests)
        ]
    return Apply(name, tuple(args))


@pytest.mark.parametrize("seed", range(50))
def test_nested_expressions_of_columns_are_those_of_rows(seed: int) -> None:
    random = Random(seed)
    rows = Rows(random, [random.choice(list(KINDS)) for _ in range(4)], clock_of(random))
    for _ in range(4):
        rows.check(an_expression(random, 3))
        left, right = an_expression(random, 2), an_expression(random, 2)
        rows.check_condition(Compare(random.choice(COMPARISONS), left, right))  # type: ignore[arg-type]


def test_a_function_is_called_once_for_each_combination_of_arguments() -> None:
    called: list[tuple[Value, ...]] = []

    def joined(x: int, y: str) -> str:
        called.append((x, y))
        return f"{x}{y}"

    program = augury.compile("r(joined(X, Y)) <- a(X, Y).", functions=[augury.function(joined)])
    events = [{"type": "a", "args": [n % 3, "xy"[n % 2]], "time": n} for n in range(600)]
    assert len(augury.run(program, events)) == 600
    assert sorted(called) == sorted((x, y) for x in range(3) for y in "xy")


def test_a_refused_step_leaves_no_time_behind() -> None:
    """A time that comes again after a refused step is the time, and not what has got its number since."""
    dictionary = Dictionary()
    mark = dictionary.mark()
    dictionary.encode(Timestamp(5))
    dictionary.encode(Duration(5))
    dictionary.cut(mark)
    text = dictionary.encode("x")
    assert dictionary.decode(dictionary.encode(Timestamp(5))) == Timestamp(5)
    assert dictionary.decode(dictionary.encode(Duration(5))) == Duration(5)
    assert dictionary.decode(text) == "x"
