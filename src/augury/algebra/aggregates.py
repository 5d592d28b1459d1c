"""The table of aggregates. Each maps the collected values, in the order of events, to one value.

Sums of floats are exact and rounded once, so that the order of their values does not matter.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Literal

from augury.algebra.scalar import Function, RowError, arrow_of, column_of, from_arrow, from_python
from augury.algebra.terms import FILTERED, PAIR, Aggregate, Apply, Build, Const, Expr, is_pair, walk
from augury.core.clock import Duration
from augury.core.model import MAX_INT, MIN_INT, OrderKey, Term, Value, order_key, show_value

Kind = Literal["same", "float", "int", "bool"]


@dataclass(frozen=True)
class StateForm:
    """How an aggregate follows from a partial state: sums that add up, and the members with the extreme values.

    `adds` names what each value adds: itself ("value"), its "square", or 1 where it is "true". `picks` names the members
    that stay: "first", "last", and those with the "least" or "greatest" value, or second argument where there is one.
    `result` takes the number of values that are not null, the sums, and the values picked, in this order; it is arithmetic
    that holds for exact numbers. Without it the result is the only sum, the only pick, or the number of values. A result
    of the "same" kind is an integer where all values are, and a duration of durations.

    `avg` is `StateForm(("value",), result=lambda n, total: total / n, kind="float")`.
    """

    adds: tuple[str, ...] = ()
    picks: tuple[str, ...] = ()
    result: Callable[..., Any] | None = field(default=None, compare=False, repr=False)
    kind: Kind = "same"
    least: int = 1  # of fewer values it is null
    root: bool = False  # whether the result is the square root of that
    durations: bool = True  # whether it takes durations
    text: bool = False  # whether the result is the exact sum, written as text (`partial_sums.py`)

    @property
    def ordered(self) -> bool:
        """Whether the order of members decides which of them stay."""
        return not {"first", "last"}.isdisjoint(self.picks)


@dataclass(frozen=True)
class AggregateFunction:
    """A row of the table: what it takes, what it gives, and how. For `pure` see `Function`.

    `call` defines it. With a `form`, executors keep partial states and compute whole columns; both give the same value.
    """

    name: str
    argument: str
    result: str
    call: Callable[[Any], Any] = field(compare=False, repr=False)
    doc: str = ""
    registered: bool = False
    vectorised: bool = False  # takes an array
    arrow: bool = False  # whether that is one of Arrow, rather than of NumPy
    pure: bool = True
    more: str | None = None  # the type of a second argument
    form: StateForm | None = None
    order_free: bool = False  # whether the order of the values decides nothing
    keeps_null: bool = False
    filters: bool = False  # whether members whose second argument is null do not count at all

    def of(self, values: list[Value]) -> Any:
        """What it gives for values, as a list or as an array."""
        if not self.vectorised:
            return self.call(values)
        return from_arrow(self.call((arrow_of if self.arrow else column_of)(values)))


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


def _variance(numbers: list[Fraction]) -> float | None:
    """The sample variance; null of fewer than two values."""
    if len(numbers) < 2:
        return None
    mean = sum(numbers, Fraction(0)) / len(numbers)
    return _float(sum(((x - mean) ** 2 for x in numbers), Fraction(0)) / (len(numbers) - 1))


def _stddev(values: list[Value]) -> Value:
    numbers, made = _measures(values)
    variance = _variance(numbers)
    return None if variance is None else made(Fraction(math.sqrt(variance)))


def _percentile_of(values: list[Value], percent: Fraction) -> Value:
    """Between the two values that lie around it, in proportion."""
    if not values:
        return None
    numbers, made = _measures(values)
    ordered = sorted(numbers)
    position = percent / 100 * (len(ordered) - 1)
    low = math.floor(position)
    exact = ordered[low] + (ordered[min(low + 1, len(ordered) - 1)] - ordered[low]) * (position - low)
    return made(exact)


def _percentile(pairs: list[Value]) -> Value:
    pairs_with_value = [pair for pair in map(opened, pairs) if pair[0] is not None]
    if not pairs_with_value:
        return None
    (percent,) = _numbers([pairs_with_value[0][1]])
    if not 0 <= percent <= 100:
        raise RowError(f"{show_value(pairs_with_value[0][1])} is not a percentage, from 0 to 100")
    return _percentile_of([value for value, _ in pairs_with_value], percent)


def _nth(pairs: list[Value]) -> Value:
    number = opened(pairs[0])[1] if pairs else 1
    if type(number) is not int or number < 1:
        raise RowError(f"{show_value(number)} is not a place: they are counted from 1")
    return opened(pairs[number - 1])[0] if number <= len(pairs) else None


def _best(sign: int) -> Callable[[list[Value]], Value]:
    """Of the first with the greatest (least) second value."""

    def chosen(pairs: list[Value]) -> Value:
        ranked = [pair for pair in map(opened, pairs) if pair[1] is not None]
        if not ranked:
            return None
        choose = max if sign > 0 else min
        best = order_key(choose(ranked, key=lambda pair: order_key(pair[1]))[1])
        return next(value for value, by in ranked if order_key(by) == best)

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


def _mean(n: Any, total: Any) -> Any:
    return total / n


def _spread(n: Any, total: Any, squares: Any) -> Any:
    return (n * squares - total * total) / (n * (n - 1))


@dataclass(frozen=True)
class OfFiltered:
    """An aggregate of pairs: of the values beside those that are not null."""

    function: AggregateFunction

    def __call__(self, pairs: list[Value]) -> Value:
        kept = [pair for pair in pairs if opened(pair)[1] is not None]
        if not kept:
            return None
        values = kept if self.function.more else [opened(pair)[0] for pair in kept]
        result: Value = self.function.of(values)
        return result


def filtered_forms(aggregates: Mapping[str, AggregateFunction]) -> dict[str, AggregateFunction]:
    """Of each aggregate that nulls change the form for `agg(V where c)`; the others skip what does not count."""
    return {
        f"{name}{FILTERED}": replace(
            row,
            name=f"{name}{FILTERED}",
            call=OfFiltered(row),
            more=row.more or "int",
            form=_LEAST if name == "first" else None,
            keeps_null=False,
            vectorised=False,
            filters=True,
        )
        for name, row in aggregates.items()
        if row.registered or row.keeps_null or row.name == "nth"
    }


def where(part: Aggregate, condition: Expr, aggregates: Mapping[str, AggregateFunction]) -> Aggregate:
    """`agg(V where c)`: the aggregate over the members for which a condition holds.

    sum(V where V > 3)    →  sum(if(V > 3, V, null)), and likewise where nulls are passed over
    arg_max(V, E where c) →  arg_max(V, if(c, E, null))
    list(V where c)       →  an aggregate of pairs, (V, if(c, 1, null))
    """

    def only(value: Expr) -> Expr:
        return Apply("if", (condition, value, Const(None)), value.span)

    name, filtered, span = part.function, f"{part.function}{FILTERED}", part.span
    if not part.args:
        return replace(part, args=(only(Const(True, span)),))
    value, by = arguments(part)
    if filtered in aggregates:
        mark = by if aggregates[name].more else Const(1, span)
        return replace(part, function=filtered, args=(pair(value, only(mark)),))
    if aggregates[name].more is None:
        return replace(part, args=(only(value),))
    return replace(part, args=(pair(only(value), only(by)),))


_LEAST, _GREATEST = StateForm(picks=("least",)), StateForm(picks=("greatest",))
_VARIANCE = StateForm(("value", "square"), result=_spread, kind="float", least=2, durations=False)

AGGREGATES: dict[str, AggregateFunction] = {
    row.name: row
    for row in (
        AggregateFunction(
            "count", "any", "int", len, "how many; of an argument, those that are not null",
            form=StateForm(kind="int", least=0), order_free=True,
        ),
        AggregateFunction(
            "sum", "number", "number", _sum, "sum; exact, rounded once", form=StateForm(("value",)), order_free=True
        ),
        AggregateFunction(
            "avg", "number", "float", _avg, "mean",
            form=StateForm(("value",), result=_mean, kind="float"), order_free=True,
        ),
        AggregateFunction(
            "min", "any", "any", lambda v: min(v, key=order_key, default=None), "least", form=_LEAST, order_free=True
        ),
        AggregateFunction(
            "max", "any", "any", lambda v: max(v, key=order_key, default=None), "greatest", form=_GREATEST, order_free=True
        ),
        AggregateFunction(
            "first", "any", "any", lambda v: v[0] if v else None, "of the first in the order of events",
            form=StateForm(picks=("first",)), keeps_null=True,
        ),
        AggregateFunction(
            "last", "any", "any", lambda v: v[-1] if v else None, "of the last in the order of events",
            form=StateForm(picks=("last",)), keeps_null=True,
        ),
        AggregateFunction("nth", "any", "any", _nth, "of the n-th in the order of events, from 1", more="int"),
        AggregateFunction(
            "arg_max", "any", "any", _best(1), "of the first with the greatest second argument", more="any",
            form=_GREATEST,
        ),
        AggregateFunction(
            "arg_min", "any", "any", _best(-1), "of the first with the least second argument", more="any", form=_LEAST
        ),
        AggregateFunction(
            "median", "any", "any", lambda v: _percentile_of(v, Fraction(50)), "middle; between two, their mean",
            order_free=True,
        ),
        AggregateFunction(
            "percentile", "any", "any", _percentile, "of 0 to 100, interpolated", more="number", order_free=True
        ),
        AggregateFunction(
            "stddev", "number", "float", _stddev, "sample standard deviation; null of one value",
            form=replace(_VARIANCE, root=True, durations=True), order_free=True,
        ),
        AggregateFunction(
            "variance", "number", "float", lambda v: _variance(_numbers(v)), "sample variance; null of one value",
            form=_VARIANCE, order_free=True,
        ),
        AggregateFunction("mode", "any", "any", _mode, "most frequent; of several, the least", order_free=True),
        AggregateFunction(
            "any", "bool", "bool", _test(any), "whether it holds for one",
            form=StateForm(("true",), result=lambda n, true: true > 0, kind="bool"), order_free=True,
        ),
        AggregateFunction(
            "all", "bool", "bool", _test(all), "whether it holds for each",
            form=StateForm(("true",), result=lambda n, true: true == n, kind="bool"), order_free=True,
        ),
        AggregateFunction("list", "any", "list", tuple, "all, in the order of events", keeps_null=True),
    )
}  # fmt: skip


def of_nothing(function: str) -> Value:
    """The value of an aggregate where nothing is collected."""
    return 0 if function in ("count", "#count") else None


def aggregate_of(function: AggregateFunction, values: list[Value], distinct: bool) -> Value:
    """The value of an aggregate over values in the order of events."""
    if not function.registered and not function.keeps_null:
        values = [v for v in values if v is not None]
    if distinct:
        values = list({order_key(v): v for v in reversed(values)}.values())[::-1]
    result = function.of(values)
    return from_python(result) if function.registered else result


def arguments(part: Aggregate) -> tuple[Expr, Expr]:
    """The argument that an aggregate gives a value of, and the one that it goes by."""
    arg = part.args[0]
    if isinstance(arg, Build) and is_pair(arg):
        return arg.args[0], arg.args[1]
    return arg, arg


def accumulates(
    part: Aggregate, functions: Mapping[str, Function], aggregates: Mapping[str, AggregateFunction], ordered: bool
) -> bool:
    """Whether an aggregate follows from a partial state; one that is not `ordered` cannot distinguish equal
    members.
    """
    form = aggregates[part.function].form
    if form is None or part.distinct or _calls_registered(part, functions):
        return False
    return ordered or not part.args or (not form.ordered and len(set(arguments(part))) == 1)


def percentage(part: Aggregate) -> Fraction | None:
    """The percentage that a median or a percentile is at; None of other aggregates, and where it is not a constant."""
    if part.function == "median":
        return Fraction(50)
    value, by = arguments(part) if part.function == "percentile" else (None, None)
    match value, by:  # percentile(V, 90 where c): wherever there is a value, there is the percentage
        case Apply("if", (condition, _, _)), Apply("if", (same, percent, Const(None))) if condition == same:
            by = percent
    if isinstance(by, Const) and isinstance(by.value, int | float) and not isinstance(by.value, bool):
        return Fraction(by.value) if 0 <= by.value <= 100 else None
    return None


def is_ranked(part: Aggregate, functions: Mapping[str, Function]) -> bool:
    """Whether an aggregate follows from the ranks of values: `count(distinct X)`, medians and percentiles."""
    ranked = part.function == "count" and bool(part.args) if part.distinct else percentage(part) is not None
    return ranked and not _calls_registered(part, functions)


def _calls_registered(part: Aggregate, functions: Mapping[str, Function]) -> bool:
    calls = (inner.function for arg in part.args for inner in walk(arg) if isinstance(inner, Apply))
    return any(name in functions and functions[name].registered for name in calls)
