"""Matches patterns, evaluates expressions and compares values under a binding of variables. All executors share it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, assert_never

from augury.algebra.aggregates import AggregateFunction
from augury.algebra.nodes import Compare
from augury.algebra.scalar import COMPARISONS, Function, RowError, apply, compare
from augury.algebra.terms import Aggregate, Apply, Build, Const, Expr, Moment, Prev, Var, Wild, variables
from augury.core.clock import Clock, Duration
from augury.core.errors import RunError
from augury.core.model import Event, Term, Value, equal, show_value

Binding = Mapping[str, Value]
TIMELY = ("+", "-", "min", "max", *COMPARISONS)  # functions in which a time point may meet a duration


class Proof(NamedTuple):
    """How a static atom was shown: the atom and what it rests on; with `was`, as the facts were one time point before."""

    name: str
    args: tuple[Value, ...]
    children: tuple[Proof, ...] = ()
    was: bool = False


class Named(NamedTuple):
    """The interval of a label, and the occurrences behind it; a relative temporal event has none."""

    start: int
    end: int
    parts: tuple[Event, ...] = ()


def agree(left: Binding, right: Binding) -> Binding | None:
    """Both bindings, unless they differ on a shared variable; null agrees with nothing."""
    if any(not equal(left[name], right[name]) for name in left.keys() & right.keys()):
        return None
    return {**right, **left}


def match(expr: Expr, value: Value, binding: Binding) -> Binding | None:
    """The binding under which a pattern argument equals a value."""
    match expr:
        case Wild():
            return binding
        case Var():
            if expr.name in binding:
                return binding if equal(binding[expr.name], value) else None
            return {**binding, expr.name: value}
        case Const():
            return binding if equal(expr.value, value) else None
        case Build():
            if not isinstance(value, Term) or value.functor != expr.functor:
                return None
            return match_all(expr.args, value.args, binding)
        case Apply() | Moment() | Aggregate() | Prev():
            raise AssertionError("a pattern does not compute")
        case _:
            assert_never(expr)


def match_all(exprs: tuple[Expr, ...], values: tuple[Value, ...], binding: Binding) -> Binding | None:
    if len(exprs) != len(values):
        return None
    for expr, value in zip(exprs, values, strict=True):
        extended = match(expr, value, binding)
        if extended is None:
            return None
        binding = extended
    return binding


@dataclass
class Scalars:
    """Computes expressions: the tables of functions and the clock that gives times and durations their values."""

    functions: Mapping[str, Function]
    aggregates: Mapping[str, AggregateFunction]
    clock: Clock
    rule: str = ""

    def evaluate(
        self,
        expr: Expr,
        binding: Binding,
        labels: Mapping[str, Named],
        aggregates: Mapping[Aggregate, Value] | None = None,
    ) -> Value:
        match expr:
            case Const():
                return expr.value
            case Var():
                if expr.name not in binding:
                    raise RowError(f"{expr.name} is not bound")
                return binding[expr.name]
            case Moment():
                named = labels[expr.label]
                match expr.which:
                    case "start":
                        return self.clock.moment(named.start)
                    case "end":
                        return self.clock.moment(named.end)
                    case "duration":
                        return self.clock.span(named.end - named.start)
                    case "length":
                        return self.clock.span(named.end - named.start + 1)
            case Build():
                return Term(expr.functor, tuple(self.evaluate(a, binding, labels, aggregates) for a in expr.args))
            case Apply(function="if"):
                condition, then, otherwise = expr.args
                chosen = then if self._holds(condition, binding, labels, aggregates) else otherwise
                return self.evaluate(chosen, binding, labels, aggregates)
            case Apply(function="&" | "|"):
                tests = (self._holds(a, binding, labels, aggregates) for a in expr.args)
                return all(tests) if expr.function == "&" else any(tests)
            case Apply():
                args = tuple(self.evaluate(a, binding, labels, aggregates) for a in expr.args)
                return self.call(expr.function, args)
            case Aggregate():
                assert aggregates is not None
                return aggregates[expr]
            case Wild():
                raise RowError("`_` has no value")
            case Prev():
                raise AssertionError("prev outside the conditions of a run")
            case _:
                assert_never(expr)

    def _holds(
        self,
        condition: Expr,
        binding: Binding,
        labels: Mapping[str, Named],
        aggregates: Mapping[Aggregate, Value] | None,
    ) -> bool:
        """Whether the condition of an `if` holds; one that cannot be computed does not."""
        try:
            return self.evaluate(condition, binding, labels, aggregates) is True
        except RowError:
            return False

    def on_clock(self, values: tuple[Value, ...]) -> tuple[Value, ...]:
        """On the logical clock a duration beside a number is a number of ticks."""
        if self.clock.kind == "timestamp" or not any(type(v) in (int, float) for v in values):
            return values
        return tuple(self._ticks(v) if isinstance(v, Duration) else v for v in values)

    def _ticks(self, duration: Duration) -> int | float:
        whole, rest = divmod(duration.us, self.clock.tick)
        return whole if rest == 0 else duration.us / self.clock.tick

    def call(self, name: str, args: tuple[Value, ...]) -> Value:
        """The value of a function."""
        try:
            return apply(self.functions[name], self.on_clock(args) if name in TIMELY else args)
        except (RowError, RunError):
            raise
        except Exception as error:
            shown = ", ".join(show_value(a) for a in args)
            what = f"the function `{name}` raised {type(error).__name__}: {error}"
            raise RunError(f"{what}\n  in rule `{self.rule}`, called as {name}({shown})") from error

    def ground(self, expr: Expr, binding: Binding) -> bool:
        return variables(expr) <= binding.keys() and not _has_wild(expr)


def _has_wild(expr: Expr) -> bool:
    return isinstance(expr, Wild) or (isinstance(expr, Build) and any(_has_wild(a) for a in expr.args))


Report = Callable[[str, str, Binding], None]


def compare_or_bind(
    condition: Compare, binding: Binding, scalars: Scalars, report: Report, labels: Mapping[str, Named] | None = None
) -> Binding | None:
    """The binding under which a comparison holds; `=` binds a side that is not bound yet."""
    named: Mapping[str, Named] = labels or {}
    left, right = condition.left, condition.right
    try:
        if condition.op == "=":
            for pattern, value in ((left, right), (right, left)):
                if isinstance(pattern, Var | Build) and not variables(pattern) <= binding.keys():
                    return match(pattern, scalars.evaluate(value, binding, named), binding)
        sides = (scalars.evaluate(left, binding, named), scalars.evaluate(right, binding, named))
        return binding if compare(condition.op, *scalars.on_clock(sides)) else None
    except RowError as error:
        report(scalars.rule, str(error), binding)
        return None
