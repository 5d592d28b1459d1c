"""Joins sequences from the left, so that what nothing comes before is not joined.

    a(X) SEQ (b(X) SEQ c(X))   →   (a(X) SEQ b(X)) SEQ c(X)

SEQ is associative: the left part ends before the middle one starts, and so before the end of both. Without an `a`, no pair
of `b` and `c` is looked for (B 4.3). It is left as written where the inner pair agrees on more than the new one would, and
where a policy, a window or an absence belongs to a pair.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeGuard

from augury.algebra import nodes as n
from augury.algebra.plan import Plan


def left_deep(plan: Plan) -> Plan:
    """The plan with its sequences joined from the left."""
    return replace(plan, rules=tuple(replace(rule, body=_from_left(rule.body)) for rule in plan.rules))


def _from_left(node: n.Node) -> n.Node:
    node = n.mapped(node, _from_left)
    if not _is_sequence(node):
        return node
    right = node.right
    if not _is_sequence(right) or not _agreed(right.left, right.right) <= _agreed(node.left, right.left):
        return node
    first = _from_left(replace(node, right=right.left))
    return replace(node, left=first, right=right.right)


def _is_sequence(node: n.Node) -> TypeGuard[n.Join]:
    """Whether a node is SEQ and nothing else."""
    return node == n.Join("SEQ", node.left, node.right, span=node.span) if isinstance(node, n.Join) else False


def _agreed(left: n.Node, right: n.Node) -> set[str]:
    return n.bound_vars(left) & n.bound_vars(right)
