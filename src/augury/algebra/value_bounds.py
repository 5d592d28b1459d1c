"""Comparisons that no values meet: a cycle in their order.

X > 5, X < Y, Y < 3   →   5 < X < Y < 3, but 3 < 5
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple, TypeAlias

from augury.algebra.nodes import Compare
from augury.algebra.strata import components
from augury.algebra.terms import Const, Expr, Var
from augury.core.clock import Duration, Timestamp
from augury.core.model import OrderKey, order_key

_Key: TypeAlias = str | OrderKey
_KINDS = (int | float | str, Duration, Timestamp)


class _Step(NamedTuple):
    """`low` is at most, or where `strict` below, `high`. The order of two constants has no `reason`."""

    low: int
    high: int
    strict: bool
    reason: Compare | None = None


def is_bound(comparison: Compare) -> bool:
    """Whether both sides are variables or constants of a kind whose order is the same on every clock, without rounding."""
    return all(isinstance(side, Var) or _kind(side) is not None for side in (comparison.left, comparison.right))


def _kind(expr: Expr) -> int | None:
    """The kind of a constant. Durations may be compared with numbers of ticks, so kinds are looked at one by one."""
    value = expr.value if isinstance(expr, Const) else None
    return next((number for number, kind in enumerate(_KINDS) if isinstance(value, kind)), None)


def conflict(comparisons: Iterable[Compare]) -> tuple[Compare, ...]:
    """Comparisons that never hold together, of variables and constants of one kind; empty where none are found."""
    bounds = [c for c in comparisons if is_bound(c)]
    kinds = [{kind for side in (c.left, c.right) if (kind := _kind(side)) is not None} for c in bounds]
    for number in sorted(set().union(*kinds)) or [0]:
        alike = [c for c, its in zip(bounds, kinds, strict=True) if its <= {number}]
        if reasons := _conflict_of_kind(alike):
            return reasons
    return ()


def _conflict_of_kind(bounds: list[Compare]) -> tuple[Compare, ...]:
    """Comparisons that never hold together.

    All values have one order, so that a cycle of `<=` makes its members equal: no `<` and no `!=` is between them. The
    cost is linear but for sorting the constants. That no integer is between 5 and 6 is not used: a value may be 5.5.
    """
    numbers: dict[_Key, int] = {}
    for comparison in bounds:
        for side in (comparison.left, comparison.right):
            numbers.setdefault(_value(side), len(numbers))
    steps = [step for comparison in bounds for step in _steps(comparison, numbers)]
    constants = sorted(key for key in numbers if isinstance(key, tuple))
    steps += [_Step(numbers[low], numbers[high], strict=True) for low, high in pairwise(constants)]
    group = _groups(len(numbers), steps)
    above: dict[int, list[_Step]] = {}
    for step in steps:
        if group[step.low] == group[step.high]:
            above.setdefault(step.low, []).append(step)
    for step in steps:
        if step.strict and group[step.low] == group[step.high]:
            return _reasons([step, *_path(step.high, step.low, above)])
    for comparison in bounds:
        left, right = numbers[_value(comparison.left)], numbers[_value(comparison.right)]
        if comparison.op == "!=" and group[left] == group[right]:
            return comparison, *_reasons([*_path(left, right, above), *_path(right, left, above)])
    return ()


class ValueBound(NamedTuple):
    """A constant that a value is at most, or at least, and the comparison that says so last."""

    constant: Const
    strict: bool
    reason: Compare | None

    def compared(self, side: Expr, upper: bool) -> Compare:
        """The bound as a comparison of another side."""
        span = self.constant.span if self.reason is None else self.reason.span
        first, second = (side, self.constant) if upper else (self.constant, side)
        return Compare("<" if self.strict else "<=", first, second, span)


def tightest(side: Expr, comparisons: Iterable[Compare], upper: bool) -> ValueBound | None:
    """The least constant that is above a value where comparisons hold, or with `upper` false the greatest below it.

    X < Y, Y <= 3   →   X < 3
    """
    if isinstance(side, Const):
        return None if _kind(side) is None else ValueBound(side, False, None)
    if not isinstance(side, Var):
        return None
    beyond: dict[_Key, list[tuple[Expr, bool, Compare]]] = {}
    for comparison in filter(is_bound, comparisons):
        left, right = (comparison.left, comparison.right) if upper else (comparison.right, comparison.left)
        if comparison.op in ("<", "<=", "="):
            beyond.setdefault(_value(left), []).append((right, comparison.op == "<", comparison))
        if comparison.op in (">", ">=", "="):
            beyond.setdefault(_value(right), []).append((left, comparison.op == ">", comparison))
    best: ValueBound | None = None
    ahead: list[tuple[Expr, bool]] = [(side, False)]
    for here, strictly in ahead:
        for other, strict, reason in beyond.get(_value(here), ()):
            step = (other, strictly or strict)
            if isinstance(other, Const):
                bound = ValueBound(other, step[1], reason)
                alike = best is None or _kind(best.constant) == _kind(other)
                best = bound if best is None or (alike and _tighter(bound, best, upper)) else best
            elif step not in ahead:
                ahead.append(step)
    return best


def _tighter(bound: ValueBound, other: ValueBound, upper: bool) -> bool:
    mine, its = order_key(bound.constant.value), order_key(other.constant.value)
    if mine == its:
        return bound.strict and not other.strict
    return (mine < its) == upper


def loosest(bounds: Iterable[ValueBound | None], upper: bool) -> ValueBound | None:
    """The bound of a union of bounded sets; none where one of them is none, or of another kind."""
    result: ValueBound | None = None
    for bound in bounds:
        if bound is None or (result is not None and _kind(bound.constant) != _kind(result.constant)):
            return None
        result = bound if result is None or _tighter(result, bound, upper) else result
    return result


def _value(side: Expr) -> _Key:
    """The name of a variable, or the place of a constant in the order of values: 1 and 1.0 are one value."""
    if isinstance(side, Var):
        return side.name
    assert isinstance(side, Const)
    return order_key(side.value)


def _steps(comparison: Compare, numbers: dict[_Key, int]) -> list[_Step]:
    left, right = numbers[_value(comparison.left)], numbers[_value(comparison.right)]
    strict = comparison.op in ("<", ">")
    upwards, downwards = _Step(left, right, strict, comparison), _Step(right, left, strict, comparison)
    match comparison.op:
        case "=":
            return [upwards, downwards]
        case "<" | "<=":
            return [upwards]
        case ">" | ">=":
            return [downwards]
        case "!=":
            return []


def _groups(count: int, steps: list[_Step]) -> dict[int, int]:
    """For each value the number of its cycle."""
    higher: dict[int, set[int]] = {}
    for step in steps:
        higher.setdefault(step.low, set()).add(step.high)
    return {member: number for number, cycle in enumerate(components(range(count), higher)) for member in cycle}


def _path(start: int, goal: int, above: dict[int, list[_Step]]) -> list[_Step]:
    """The fewest steps up from one value of a cycle to another."""
    came: dict[int, _Step] = {}
    queue = deque([start])
    while queue and goal not in came and start != goal:
        for step in above.get(queue.popleft(), ()):
            if step.high not in came and step.high != start:
                came[step.high] = step
                queue.append(step.high)
    path: list[_Step] = []
    while goal != start:
        path.append(came[goal])
        goal = came[goal].low
    return path


def _reasons(steps: list[_Step]) -> tuple[Compare, ...]:
    return tuple(dict.fromkeys(step.reason for step in steps if step.reason is not None))
