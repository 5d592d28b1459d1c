"""Filters go as far down as they can: to the part of a join that binds all they look at.

Filter(Join(A, B), c)      is  Join(Filter(A, c), B)      where A certainly binds the variables of c
Filter(LeftJoin(A, B), c)  is  LeftJoin(Filter(A, c), B)  likewise; so for Minus, Extend and Union
"""

from __future__ import annotations

from collections.abc import Sequence

from augury.algebra import sparql_algebra as p
from augury.algebra.sparql_algebra import Expression, Pattern


def push(pattern: Pattern, conditions: Sequence[Expression]) -> tuple[Pattern, list[Expression]]:
    """A pattern with those conditions inside that can be asked there, and the rest of them."""
    rest = list[Expression]()
    for condition in conditions:
        pushed = None if any(p.exists_in(condition)) else _pushed(pattern, condition)
        if pushed is None:
            rest.append(condition)
        else:
            pattern = pushed
    return pattern, rest


def _pushed(pattern: Pattern, condition: Expression) -> Pattern | None:
    """None where the condition stays outside."""
    names = p.mentioned(condition)
    match pattern:
        case p.Join():
            for part in ("left", "right"):
                inner = getattr(pattern, part)
                if names <= p.certainly_binds(inner):
                    left, right = (
                        _filtered(one, condition) if one is inner else one for one in (pattern.left, pattern.right)
                    )
                    return p.Join(left, right)
        case p.LeftJoin() if names <= p.certainly_binds(pattern.left):
            return p.LeftJoin(_filtered(pattern.left, condition), pattern.right, pattern.condition)
        case p.Minus() if names <= p.certainly_binds(pattern.left):
            return p.Minus(_filtered(pattern.left, condition), pattern.right)
        case p.Extend() if names <= p.certainly_binds(pattern.pattern):
            return p.Extend(_filtered(pattern.pattern, condition), pattern.variable, pattern.expression)
        case p.Union():
            return p.Union(_filtered(pattern.left, condition), _filtered(pattern.right, condition))
    return None


def _filtered(pattern: Pattern, condition: Expression) -> Pattern:
    return p.Filter(pattern, condition)
