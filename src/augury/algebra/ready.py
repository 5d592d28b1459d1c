"""When a condition can be evaluated, which variables it binds, and in which order conditions are evaluated."""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from augury.algebra.kinds import inner_absences, is_equation, positive_atoms, relative_labels
from augury.algebra.nodes import (
    AnyOf,
    Compare,
    Condition,
    Holds,
    NoneInside,
    Relates,
    Relative,
    Spans,
    Unless,
    condition_labels,
    condition_vars,
)
from augury.algebra.terms import Build, Var, variables


def ready_order(where: tuple[Condition, ...], bound: set[str]) -> list[Condition]:
    """The conditions in an order in which each finds its variables bound, as far as there is one."""
    left: list[Condition] = [c for c in where if not isinstance(c, NoneInside)]
    order: list[Condition] = []
    bound_so_far = set(bound)
    waits = any(isinstance(c, Relative) and not isinstance(c.length, int) for c in left)
    while left:
        # A window whose length is data may come after the fact that says it, and what asks for the window after that.
        pending = relative_labels(left) if waits else set()
        ready = (c for c in left if is_ready(c, bound_so_far) and not (waits and condition_labels(c) & pending))
        chosen = next(ready, None)
        if chosen is None:
            # A static predicate may bind what it is not given; the first one in the text goes ahead.
            chosen = next(iter(positive_atoms(left)), left[0])
        left.remove(chosen)
        order.append(chosen)
        bound_so_far |= binds(chosen, bound_so_far)
    # What must be absent may depend on all that the others bind, so it comes last.
    return order + inner_absences(where)


def evaluation_order(where: tuple[Condition, ...], bound: set[str]) -> tuple[Condition, ...]:
    """`ready_order`, in which the options of an OR have their conditions in order, too: what executors follow."""
    order: list[Condition] = []
    bound_so_far = set(bound)
    for condition in ready_order(where, bound_so_far):
        match condition:
            case AnyOf():
                options = tuple(evaluation_order(option, bound_so_far) for option in condition.options)
                condition = replace(condition, options=options)
        bound_so_far |= binds(condition, bound_so_far)
        order.append(condition)
    return tuple(order)


def is_ready(condition: Condition, bound: set[str]) -> bool:
    """Whether a condition can be tested, or can bind by itself, once `bound` is bound."""
    match condition:
        case Compare(op="="):
            left, right = variables(condition.left), variables(condition.right)
            return (
                (left | right) <= bound
                or (right <= bound and _binder(condition.left))
                or (left <= bound and _binder(condition.right))
            )
        case NoneInside():
            return True
        case AnyOf() | Compare() | Holds() | Relates() | Relative() | Spans() | Unless():
            return condition_vars(condition) <= bound
        case _:
            assert_never(condition)


def _binder(expr: object) -> bool:
    return isinstance(expr, Var) or (isinstance(expr, Build) and all(not variables(a) or _binder(a) for a in expr.args))


def binds(condition: Condition, bound: set[str]) -> set[str]:
    """The variables that a condition binds where `bound` is bound already."""
    equation = is_equation(condition) and is_ready(condition, bound)
    return condition_vars(condition) - bound if equation or isinstance(condition, Holds) else set()
