"""Clauses with `or` that reach their own recursion, as one clause for each option."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from itertools import count
from typing import assert_never

from augury.algebra.nodes import (
    AnyOf,
    Clause,
    Compare,
    Condition,
    Holds,
    NoneInside,
    Relates,
    Relative,
    Spans,
    Unless,
    condition_vars,
)
from augury.algebra.plan import Predicate
from augury.algebra.strata import calls
from augury.algebra.terms import Aggregate, Apply, Build, Const, Expr, Moment, Prev, Var, Wild, variables

_numbers = count(1)


def expanded(clause: Clause, group: Collection[Predicate]) -> list[Clause]:
    """One clause for each way through those alternatives that call a predicate of the clause's own component."""
    for i, condition in enumerate(clause.body):
        if isinstance(condition, AnyOf) and any(call in group and not negated for call, negated in calls(condition)):
            rest = clause.body[:i] + clause.body[i + 1 :]
            outer = variables(*clause.args).union(*(condition_vars(c) for c in rest))
            return [
                one
                for option in condition.options
                for one in expanded(replace(clause, body=(*rest, *_own(option, outer))), group)
            ]
    return [clause]


def _own(option: tuple[Condition, ...], outer: set[str]) -> tuple[Condition, ...]:
    """An option whose own variables have names that nothing else has."""
    inner = {v for c in option for v in condition_vars(c)} - outer
    names = {v: f"{v} {next(_numbers)}" for v in sorted(inner)}
    return tuple(_renamed(c, names) for c in option)


def _renamed(condition: Condition, names: dict[str, str]) -> Condition:
    match condition:
        case Compare():
            return replace(condition, left=_expr(condition.left, names), right=_expr(condition.right, names))
        case Holds() | Unless():
            return replace(condition, args=tuple(_expr(a, names) for a in condition.args))
        case AnyOf():
            return replace(condition, options=tuple(tuple(_renamed(c, names) for c in o) for o in condition.options))
        case Relates() | Spans() | Relative() | NoneInside():  # no clause has them
            return condition
        case _:
            assert_never(condition)


def _expr(expr: Expr, names: dict[str, str]) -> Expr:
    match expr:
        case Var():
            return replace(expr, name=names.get(expr.name, expr.name))
        case Build() | Apply():
            return replace(expr, args=tuple(_expr(a, names) for a in expr.args))
        case Wild() | Const() | Moment() | Aggregate() | Prev():
            return expr
        case _:
            assert_never(expr)
