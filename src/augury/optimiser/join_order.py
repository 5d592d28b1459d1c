"""Joins parts that have something in common first, so that no product of unrelated events is made.

    a(X), b(Y), c(X, Y)   →   a(X), c(X, Y), b(Y)

AND is commutative and associative, so the events are the same. It is left as written where a policy chooses among
occurrences, because the order of their parts breaks ties.
"""

from __future__ import annotations

from dataclasses import replace

from augury.algebra.nodes import (
    UNRESTRICTED,
    Condition,
    Join,
    Node,
    Relates,
    Repeat,
    Rule,
    Select,
    Spans,
    bound_labels,
    bound_vars,
    walk_all,
)
from augury.algebra.plan import Plan


def join_order(plan: Plan) -> Plan:
    """The plan with the parts of AND chains in an order in which each has something in common with those before it."""
    return replace(plan, rules=tuple(_ordered(rule) for rule in plan.rules))


def _ordered(rule: Rule) -> Rule:
    if any(isinstance(n, Join | Repeat) and n.policy != UNRESTRICTED for n in walk_all(rule.body)):
        return rule
    return replace(rule, body=_chain(rule.body, ()))


def _chain(node: Node, where: tuple[Condition, ...]) -> Node:
    if isinstance(node, Select):
        return replace(node, input=_chain(node.input, (*where, *node.where)))
    parts = _parts(node)
    if len(parts) < 3:
        return node
    ordered, left = [parts[0]], parts[1:]
    while left:
        chosen = next((p for p in left if _related(p, ordered, where)), left[0])
        left.remove(chosen)
        ordered.append(chosen)
    if ordered == parts:
        return node
    result = ordered[0]
    for part in ordered[1:]:
        result = Join("AND", result, part, span=node.span)
    return result


def _parts(node: Node) -> list[Node]:
    """The parts of a chain of plain ANDs."""
    plain = isinstance(node, Join) and node.op == "AND" and not (node.where or node.windows or node.absent)
    return [*_parts(node.left), node.right] if plain and isinstance(node, Join) else [node]


def _related(part: Node, others: list[Node], where: tuple[Condition, ...]) -> bool:
    """Whether a part shares a variable with others, or a condition on times relates them."""
    if bound_vars(part) & {v for other in others for v in bound_vars(other)}:
        return True
    mine, theirs = bound_labels(part), {label for other in others for label in bound_labels(other)}
    for condition in where:
        named = (
            {condition.left, condition.right}
            if isinstance(condition, Relates)
            else set(condition.labels)
            if isinstance(condition, Spans)
            else set()
        )
        if named & mine and named & theirs:
            return True
    return False
