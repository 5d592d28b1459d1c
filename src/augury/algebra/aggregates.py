"""The table of aggregates. Each maps the collected values, in the order of events, to one value.

The order matters only to `first`, `last` and `list`: sums of floats are exact before they are rounded, once.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from augury.algebra.scalar import RowError, column_of, from_python
from augury.clock import Duration
from augury.model import MAX_INT, MIN_INT, Value, order_key, show_value


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


def _numbers(values: list[Value]) -> list[Fraction]:
    for value in values:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise RowError(f"{show_value(value)} is not a number")
    return [Fraction(v) for v in values]  # type: ignore[arg-type]


def _sum(values: list[Value]) -> Value:
    if not values:
        return None
    if all(isinstance(v, Duration) for v in values):
        return Duration(sum(v.us for v in values if isinstance(v, Duration)))
    exact = sum(_numbers(values), Fraction(0))
    if any(isinstance(v, float) for v in values):
        return _float(exact)
    if not MIN_INT <= exact <= MAX_INT:
        raise RowError("integer overflow")
    return int(exact)


def _avg(values: list[Value]) -> Value:
    if not values:
        return None
    if all(isinstance(v, Duration) for v in values):
        return Duration(round(Fraction(sum(v.us for v in values if isinstance(v, Duration)), len(values))))
    return _float(sum(_numbers(values), Fraction(0)) / len(values))


def _stddev(values: list[Value]) -> Value:
    """The sample standard deviation; null of fewer than two values."""
    numbers = _numbers(values)
    if len(numbers) < 2:
        return None
    mean = sum(numbers, Fraction(0)) / len(numbers)
    return math.sqrt(_float(sum(((x - mean) ** 2 for x in numbers), Fraction(0)) / (len(numbers) - 1)))


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
        AggregateFunction("first", "any", "any", lambda v: v[0], "of the first in the order of events"),
        AggregateFunction("last", "any", "any", lambda v: v[-1], "of the last in the order of events"),
        AggregateFunction("stddev", "number", "float", _stddev, "sample standard deviation; null of one value"),
        AggregateFunction("list", "any", "list", tuple, "all, in the order of events"),
    )
}
_KEEPS_NULL = {"first", "last", "list"}


def aggregate_of(function: AggregateFunction, values: list[Value], distinct: bool) -> Value:
    """The value of an aggregate over values in the order of events."""
    if not function.registered and function.name not in _KEEPS_NULL:
        values = [v for v in values if v is not None]
    if distinct:
        values = list({order_key(v): v for v in reversed(values)}.values())[::-1]
    result = function.call(column_of(values) if function.vectorised else values)
    return from_python(result) if function.registered else result
