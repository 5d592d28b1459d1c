"""Static rules whose alternatives bind variables, as one clause for each alternative."""

from __future__ import annotations

from dataclasses import replace

from augury.algebra.kinds import may_bind
from augury.algebra.nodes import AnyOf, Clause, Condition, Unless, condition_vars, mapped_condition
from augury.algebra.terms import Expr, Var, Wild, mapped_term, variables


def read_alternatives(clause: Clause) -> list[Clause]:
    """The clauses that a static rule with alternatives stands for."""
    return split_alternatives(local_negations(clause))


def local_negations(clause: Clause) -> Clause:
    """A negation in one alternative asks for any value of a variable that only the other alternatives have.

    `c(X, Y) :- p(X), ((r(X, Z), Y = Z) or (not r(X, Z), Y = 0)).` → `… not r(X, _), Y = 0).` This is how `(r(X, Z) -> Y = Z
    ; Y = 0)` is read: its second alternative holds where there is no Z at all.
    """
    body = list(clause.body)
    for index, condition in enumerate(body):
        if isinstance(condition, AnyOf):
            outer = variables(*clause.args).union(*(condition_vars(c) for c in (*body[:index], *body[index + 1 :])))
            options = tuple(_local(option, condition, outer) for option in condition.options)
            body[index] = replace(condition, options=options)
    return replace(clause, body=tuple(body))


def _local(option: tuple[Condition, ...], condition: AnyOf, outer: set[str]) -> tuple[Condition, ...]:
    visible = outer.union(*(condition_vars(c) for c in option if not isinstance(c, Unless)))
    others = {v for other in condition.options if other is not option for c in other for v in condition_vars(c)}
    local = others - visible

    def widened(expr: Expr) -> Expr:
        if isinstance(expr, Var):
            return Wild(expr.span) if expr.name in local else expr
        return mapped_term(expr, widened)

    inner = (_nested(c, visible) for c in option)
    return tuple(mapped_condition(c, widened) if isinstance(c, Unless) else c for c in inner)


def _nested(condition: Condition, outer: set[str]) -> Condition:
    if not isinstance(condition, AnyOf):
        return condition
    return replace(condition, options=tuple(_local(option, condition, outer) for option in condition.options))


def split_alternatives(clause: Clause) -> list[Clause]:
    """One clause for each alternative that binds a variable which the rest of the clause uses.

    `or` by itself binds nothing: it tests. A set of answers is the union of those of the alternatives, so splitting
    changes none of them. A clause with a cut stays whole, because the cut commits to all of its answers.

    `size(X, S) :- p(X), ((X > 9, S = 'big') or S = 'small').` → `size(X, S) :- p(X), X > 9, S = 'big'.`
    and `size(X, S) :- p(X), S = 'small'.`
    """
    if clause.cut:
        return [clause]
    for index, condition in enumerate(clause.body):
        remaining = clause.body[:index] + clause.body[index + 1 :]
        if isinstance(condition, AnyOf) and _binds_for_others(condition, clause, remaining):
            clauses = [replace(clause, body=(*remaining, *option)) for option in condition.options]
            return [part for split in clauses for part in split_alternatives(split)]
    return [clause]


def _binds_for_others(condition: AnyOf, clause: Clause, rest: tuple[Condition, ...]) -> bool:
    """Whether all alternatives have a variable that others use and that nothing else of the body can bind."""
    shared = set.intersection(*({v for c in option for v in condition_vars(c)} for option in condition.options))
    elsewhere = {v for c in rest if _may_bind(c) for v in condition_vars(c)}
    used = variables(*clause.args).union(*(condition_vars(c) for c in rest))
    return bool((shared & used) - elsewhere)


def _may_bind(condition: Condition) -> bool:
    return may_bind(condition)
