"""Clauses with `or` that reach their own recursion, as one clause for each option."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from itertools import count

from augury.algebra.nodes import AnyOf, Clause, Condition, condition_vars, mapped_condition
from augury.algebra.plan import Predicate
from augury.algebra.strata import calls
from augury.algebra.terms import Expr, Var, mapped_term, variables

_numbers = count(1)


def expanded(clause: Clause, group: Collection[Predicate]) -> list[Clause]:
    """One clause for each way through those alternatives that call a predicate of the clause's own component."""
    for i, condition in enumerate(clause.body):
        if isinstance(condition, AnyOf) and any(call in group and not negated for call, negated in calls(condition)):
            remaining = clause.body[:i] + clause.body[i + 1 :]
            outer = variables(*clause.args).union(*(condition_vars(c) for c in remaining))
            return [
                item
                for option in condition.options
                for item in expanded(replace(clause, body=(*remaining, *_own(option, outer))), group)
            ]
    return [clause]


def _own(option: tuple[Condition, ...], outer: set[str]) -> tuple[Condition, ...]:
    """An option whose own variables have names that nothing else has."""
    inner = {v for c in option for v in condition_vars(c)} - outer
    names = {v: f"{v} {next(_numbers)}" for v in sorted(inner)}

    def renamed(expr: Expr) -> Expr:
        return (
            replace(expr, name=names.get(expr.name, expr.name)) if isinstance(expr, Var) else mapped_term(expr, renamed)
        )

    return tuple(mapped_condition(c, renamed) for c in option)
