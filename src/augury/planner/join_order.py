"""Joins parts that share a variable first, so that no product of unrelated events is made.

    a(X), b(Y), c(X, Y)   →   a(X), c(X, Y), b(Y)

A shared variable is looked up in an index; a condition on times only bounds how far to look. So parts that times alone
relate come after those that share a variable.

AND is commutative and associative, so the events are the same. It is left as written where a policy chooses among
occurrences, because the order of their parts breaks ties.
"""

from __future__ import annotations

from dataclasses import replace

from augury.algebra import nodes as n
from augury.algebra.plan import Plan


def join_order(plan: Plan) -> Plan:
    """The plan with the parts of AND chains in an order in which each has something in common with those before it."""
    return replace(plan, rules=tuple(_ordered(rule) for rule in plan.rules))


def _ordered(rule: n.Rule) -> n.Rule:
    if any(isinstance(part, n.Join | n.Repeat) and part.policy != n.UNRESTRICTED for part in n.walk_all(rule.body)):
        return rule
    return replace(rule, body=_chain(rule.body, ()))


def _chain(node: n.Node, where: tuple[n.Condition, ...]) -> n.Node:
    if isinstance(node, n.Select):
        return replace(node, input=_chain(node.input, (*where, *node.where)))
    parts = _parts(node)
    if len(parts) < 3:
        return node
    ordered, left = [parts[0]], parts[1:]
    while left:
        sharing = (p for p in left if _shares_variable(p, ordered))
        chosen = next(sharing, None) or next((p for p in left if _related(p, ordered, where)), left[0])
        left.remove(chosen)
        ordered.append(chosen)
    if ordered == parts:
        return node
    result = ordered[0]
    for part in ordered[1:]:
        result = n.Join("AND", result, part, span=node.span)
    return result


def _parts(node: n.Node) -> list[n.Node]:
    """The parts of a chain of plain ANDs."""
    plain = isinstance(node, n.Join) and node.op == "AND" and not (node.where or node.windows or node.absent)
    return [*_parts(node.left), node.right] if plain and isinstance(node, n.Join) else [node]


def _shares_variable(part: n.Node, others: list[n.Node]) -> bool:
    mine = n.bound_vars(part)
    return any(mine & n.bound_vars(other) for other in others)


def _related(part: n.Node, others: list[n.Node], where: tuple[n.Condition, ...]) -> bool:
    """Whether a condition on times relates a part to others."""
    mine, theirs = n.bound_labels(part), {label for other in others for label in n.bound_labels(other)}
    for condition in where:
        named = n.condition_labels(condition) if isinstance(condition, n.Relates | n.Spans) else set()
        if named & mine and named & theirs:
            return True
    return False
