"""Pushes filters down to the part of a join that binds all their variables.

Filter(Join(A, B), c)      is  Join(Filter(A, c), B)      where A certainly binds the variables of c
Filter(LeftJoin(A, B), c)  is  LeftJoin(Filter(A, c), B)  likewise; so for Minus, Extend and Union
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from augury.algebra import sparql_algebra as p
from augury.algebra.sparql_algebra import Expression, Pattern


def push(pattern: Pattern, conditions: Sequence[Expression]) -> tuple[Pattern, list[Expression]]:
    """A pattern with those conditions inside that can be asked there, and the rest of them."""
    remaining = list[Expression]()
    for condition in conditions:
        pushed = None if any(p.exists_in(condition)) else _pushed(pattern, condition)
        if pushed is None:
            remaining.append(condition)
        else:
            pattern = pushed
    return pattern, remaining


def _pushed(pattern: Pattern, condition: Expression) -> Pattern | None:
    """None where the condition stays outside."""
    names = p.mentioned(condition)

    def asked(inner: Pattern) -> Pattern:
        return p.Filter(inner, condition)

    match pattern:
        case p.SparqlJoin() | p.LeftJoin() | p.Minus() if names <= p.certainly_binds(pattern.left):
            return replace(pattern, left=asked(pattern.left))
        case p.SparqlJoin() if names <= p.certainly_binds(pattern.right):
            return replace(pattern, right=asked(pattern.right))
        case p.Extend() if names <= p.certainly_binds(pattern.pattern):
            return replace(pattern, pattern=asked(pattern.pattern))
        case p.SparqlUnion():
            return p.mapped(pattern, asked)
    return None
