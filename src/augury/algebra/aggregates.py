"""The table of aggregates. Each maps the collected values, in the order of events, to one value.

The order matters only to those outside of `ORDER_FREE`: sums of floats are exact before they are rounded, once.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from augury.algebra.scalar import RowError, column_of, from_python
from augury.algebra.terms import PAIR, Build, Expr
from augury.core.clock import Duration
from augury.core.model import MAX_INT, MIN_INT, OrderKey, Term, Value, order_key, show_value


@dataclass(frozen=True)
class AggregateFunction:
    """A row of the table: what it takes, what it gives, and how. For `pure` see `Function`."""

    name: str
    argument: str
    result: str
    call: Callable[[Any], Any] = field(compare=False, repr=False)
    doc: str = ""
    registered: bool = False
    vectorised: bool = False  # takes an array
    pure: bool = True
    more: str | None = None  # the type of a second argument


def _numbers(values: list[Value]) -> list[Fraction]:
    for value in values:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise RowError(f"{show_value(value)} is not a number")
    return [Fraction(v) for v in values]  # type: ignore[arg-type]


def _measures(values: list[Value]) -> tuple[list[Fraction], Callable[[Fraction], Value]]:
    """Numbers, or durations as numbers of microseconds, and what makes a value of such a number."""
    if all(isinstance(v, Duration) for v in values):
        return [Fraction(v.us) for v in values if isinstance(v, Duration)], lambda exact: Duration(round(exact))
    return _numbers(values), _float


def _sum(values: list[Value]) -> Value:
    if not values:
        return None
    numbers, made = _measures(values)
    exact = sum(numbers, Fraction(0))
    if not all(isinstance(v, int) for v in values):
        return made(exact)
    if not MIN_INT <= exact <= MAX_INT:
        raise RowError("integer overflow")
    return int(exact)


def _avg(values: list[Value]) -> Value:
    if not values:
        return None
    numbers, made = _measures(values)
    return made(sum(numbers, Fraction(0)) / len(values))


def _variance(values: list[Value]) -> Fraction | None:
    """The sample variance; null of fewer than two values."""
    numbers = _numbers(values)
    if len(numbers) < 2:
        return None
    mean = sum(numbers, Fraction(0)) / len(numbers)
    return sum(((x - mean) ** 2 for x in numbers), Fraction(0)) / (len(numbers) - 1)


def _sample_variance(values: list[Value]) -> Value:
    exact = _variance(values)
    return None if exact is None else _float(exact)


def _stddev(values: list[Value]) -> Value:
    exact = _variance(values)
    return None if exact is None else math.sqrt(_float(exact))


def _percentile_of(values: list[Value], percent: Fraction) -> Value:
    """Between the two values that lie around it, in proportion."""
    if not values:
        return None
    numbers, made = _measures(values)
    ordered = sorted(numbers)
    at = percent / 100 * (len(ordered) - 1)
    low = math.floor(at)
    exact = ordered[low] + (ordered[min(low + 1, len(ordered) - 1)] - ordered[low]) * (at - low)
    return made(exact)


def _percentile(pairs: list[Value]) -> Value:
    found = [pair for pair in map(opened, pairs) if pair[0] is not None]
    if not found:
        return None
    (percent,) = _numbers([found[0][1]])
    if not 0 <= percent <= 100:
        raise RowError(f"{show_value(found[0][1])} is not a percentage, from 0 to 100")
    return _percentile_of([value for value, _ in found], percent)


def _nth(pairs: list[Value]) -> Value:
    number = opened(pairs[0])[1] if pairs else 1
    if type(number) is not int or number < 1:
        raise RowError(f"{show_value(number)} is not a place: they are counted from 1")
    return opened(pairs[number - 1])[0] if number <= len(pairs) else None


def _best(sign: int) -> Callable[[list[Value]], Value]:
    """Of the first with the greatest (least) second value."""

    def chosen(pairs: list[Value]) -> Value:
        found = [pair for pair in map(opened, pairs) if pair[1] is not None]
        if not found:
            return None
        choose = max if sign > 0 else min
        best = order_key(choose(found, key=lambda pair: order_key(pair[1]))[1])
        return next(value for value, by in found if order_key(by) == best)

    return chosen


def _mode(values: list[Value]) -> Value:
    counts: dict[OrderKey, int] = {}
    first: dict[OrderKey, Value] = {}
    for value in values:
        key = order_key(value)
        counts[key] = counts.get(key, 0) + 1
        first.setdefault(key, value)
    return first[min(counts, key=lambda key: (-counts[key], key))] if counts else None


def _test(combine: Callable[[Any], bool]) -> Callable[[list[Value]], Value]:
    def tested(values: list[Value]) -> Value:
        for value in values:
            if not isinstance(value, bool):
                raise RowError(f"{show_value(value)} is not true or false")
        return combine(values) if values else None

    return tested


def pair(value: Expr, other: Expr) -> Build:
    """The two arguments of an aggregate as one: what each collected row gives is one value."""
    return Build(PAIR, (value, other), value.span)


def opened(value: Value) -> tuple[Value, Value]:
    assert isinstance(value, Term)
    return value.args[0], value.args[1]


def _float(exact: Fraction) -> float:
    try:
        return float(exact)
    except OverflowError:
        raise RowError("not a finite number") from None


AGGREGATES: dict[str, AggregateFunction] = {
    row.name: row
    for row in (
        AggregateFunction("count", "any", "int", len, "how many; of an argument, those that are not null"),
        AggregateFunction("sum", "number", "number", _sum, "sum; exact, rounded once"),
        AggregateFunction("avg", "number", "float", _avg, "mean"),
        AggregateFunction("min", "any", "any", lambda v: min(v, key=order_key, default=None), "least"),
        AggregateFunction("max", "any", "any", lambda v: max(v, key=order_key, default=None), "greatest"),
        AggregateFunction("first", "any", "any", lambda v: v[0] if v else None, "of the first in the order of events"),
        AggregateFunction("last", "any", "any", lambda v: v[-1] if v else None, "of the last in the order of events"),
        AggregateFunction("nth", "any", "any", _nth, "of the n-th in the order of events, from 1", more="int"),
        AggregateFunction(
            "arg_max", "any", "any", _best(1), "of the first with the greatest second argument", more="any"
        ),
        AggregateFunction(
            "arg_min", "any", "any", _best(-1), "of the first with the least second argument", more="any"
        ),
        AggregateFunction(
            "median", "any", "any", lambda v: _percentile_of(v, Fraction(50)), "middle; between two, their mean"
        ),
        AggregateFunction("percentile", "any", "any", _percentile, "of 0 to 100, interpolated", more="number"),
        AggregateFunction("stddev", "number", "float", _stddev, "sample standard deviation; null of one value"),
        AggregateFunction("variance", "number", "float", _sample_variance, "sample variance; null of one value"),
        AggregateFunction("mode", "any", "any", _mode, "most frequent; of several, the least"),
        AggregateFunction("any", "bool", "bool", _test(any), "whether it holds for one"),
        AggregateFunction("all", "bool", "bool", _test(all), "whether it holds for each"),
        AggregateFunction("list", "any", "list", tuple, "all, in the order of events"),
    )
}
_KEEPS_NULL = {"first", "last", "list"}
ORDER_FREE = {"count", "sum", "avg", "min", "max", "median", "percentile", "stddev", "variance", "mode", "any", "all"}


def of_nothing(function: str) -> Value:
    """What an aggregate is where nothing is collected."""
    return 0 if function == "count" else None


def aggregate_of(function: AggregateFunction, values: list[Value], distinct: bool) -> Value:
    """The value of an aggregate over values in the order of events."""
    if not function.registered and function.name not in _KEEPS_NULL:
        values = [v for v in values if v is not None]
    if distinct:
        values = list({order_key(v): v for v in reversed(values)}.values())[::-1]
    result = function.call(column_of(values) if function.vectorised else values)
    return from_python(result) if function.registered else result
