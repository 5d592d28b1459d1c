"""Relations of labels bind more tightly than `and` and `or`: `i starts j or i equals j` is two relations.

Patterns have one precedence and group to the left, and the words of Allen are operators of patterns, too; only a rule's
labels tell them apart, so the grouping is mended once its literals are read.
"""

from __future__ import annotations

from dataclasses import replace

from augury.algebra.relations import RELATIONS
from augury.language.rules import syntax as s


def regroup(body: tuple[s.Node, ...]) -> tuple[s.Node, ...]:
    labels = {node.label for literal in body for node in s.walk(literal) if isinstance(node, s.Labelled)}
    return tuple(_regrouped(literal, labels) for literal in body) if labels else body


def _regrouped(node: s.Node, labels: set[str]) -> s.Node:
    match node:
        case s.Group():
            return replace(node, items=tuple(_regrouped(item, labels) for item in node.items))
        case s.Where():
            return replace(node, condition=_regrouped(node.condition, labels))
        case s.Binary():
            return _relations(node, labels) or node
    return node


def _relations(node: s.Binary, labels: set[str]) -> s.Node | None:
    """The chain as relations joined by `and` and `or`; None where it is something else."""
    operands, ops = _chain(node)
    parts: list[s.Node] = []
    joints: list[str] = []
    while operands:
        if ops and ops[0] not in ("AND", "OR"):
            left, right, op = operands.pop(0), operands.pop(0), ops.pop(0)
            if not (_is_label(left, labels) and _is_label(right, labels) and op.lower() in RELATIONS):
                return None
            parts.append(s.Binary(op, left, right, parens=True, span=left.span.to(right.span)))
        elif _is_label(operands[0], labels):
            return None
        else:
            parts.append(operands.pop(0))
        if ops:
            joints.append(ops.pop(0))
    if not joints or len(joints) != len(parts) - 1 or any(j not in ("AND", "OR") for j in joints):
        return None
    whole = parts[0]
    for joint, part in zip(joints, parts[1:], strict=True):
        whole = s.Binary(joint, whole, part, span=whole.span.to(part.span))
    return whole


def _chain(node: s.Node) -> tuple[list[s.Node], list[str]]:
    """The operands and operators of a chain without parentheses or policies, from left to right."""
    operands: list[s.Node] = []
    ops: list[str] = []
    first = True
    while isinstance(node, s.Binary) and node.policy is None and (first or not node.parens):
        operands.insert(0, node.right)
        ops.insert(0, node.op)
        node, first = node.left, False
    return [node, *operands], ops


def _is_label(node: s.Node, labels: set[str]) -> bool:
    return isinstance(node, s.BareName) and node.text in labels
