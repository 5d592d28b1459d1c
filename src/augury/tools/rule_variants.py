"""Variants of a rule, each with one part changed: coverage asks what a part decides, mutation whether a test notices.

`alarm(L) <- (smoke(L) SEQ heat(L, T)).10s WHERE T > 40.` without its window, without its condition; with `T >= 40`, with
`heat(L, T) SEQ smoke(L)` for AND, with a window of 20 s.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from augury.algebra.plan import Plan, static_calls
from augury.algebra.relations import RELATIONS
from augury.algebra.terms import Const
from augury.core.clock import Duration
from augury.core.errors import Span
from augury.language.rules import syntax as s
from augury.language.rules.show import show_node

DropKind: TypeAlias = Literal["condition", "absence", "window", "alternative", "limit"]
_LABEL_RELATIONS = {relation.upper() for relation in RELATIONS}
_COMPARED = {"<": ("<=", ">"), "<=": ("<", ">"), ">": (">=", "<"), ">=": (">", "<"), "=": ("!=",), "!=": ("=",)}
_OPERATORS = {
    "SEQ": ("AND",), "AND": ("SEQ", "OR"), "PAR": ("AND",), "DURING": ("PAR",), "MEETS": ("SEQ",), "STARTS": ("PAR",),
    "FINISHES": ("PAR",), "EQUALS": ("PAR",), "NEXT": ("THEN",), "THEN": ("NEXT",), "BEFORE": ("AFTER",),
    "AFTER": ("BEFORE",), "OVERLAPS": ("DURING",),
}  # fmt: skip
_ARITHMETIC = {"+": "-", "-": "+", "*": "/", "/": "*"}
_AGGREGATES = {"min": "max", "max": "min", "first": "last", "last": "first", "sum": "count", "avg": "sum"}


@dataclass(frozen=True)
class Variant:
    """A statement with one part changed: what kind of part, where it stands, and what stands there now."""

    kind: str
    span: Span
    change: str
    statement: s.RuleStatement | s.StaticRule


def weakened(rule: s.RuleStatement | s.StaticRule, plan: Plan) -> Iterator[Variant]:
    """A rule without each of its conditions, absences, windows, alternatives and limits in turn.

    A rule that needs the part, as where it binds a variable, does not compile without it.
    """
    static = {name for name, _ in static_calls(plan)} - {name for name, _ in plan.event_types}
    for position, literal in enumerate(rule.body):
        kind = _condition_kind(literal, static, isinstance(rule, s.StaticRule))
        if kind is not None and len(rule.body) > 1:
            without = (*rule.body[:position], *rule.body[position + 1 :])
            yield Variant(kind, literal.span, f"without {literal.span.quoted}", replace(rule, body=without))
    yield from _changed(rule, _dropped)
    if isinstance(rule, s.RuleStatement) and rule.top is not None:
        yield Variant("limit", rule.top.span, f"without {rule.top.span.quoted}", replace(rule, top=None))
    if isinstance(rule, s.RuleStatement) and rule.at_most is not None:
        yield Variant("limit", rule.at_most.span, f"without {rule.at_most.span.quoted}", replace(rule, at_most=None))


def broken(rule: s.RuleStatement | s.StaticRule, plan: Plan) -> Iterator[Variant]:
    """A rule with each part dropped, as `weakened` has it, and with each operator, bound and function exchanged."""
    yield from weakened(rule, plan)
    yield from _changed(rule, _exchanged)
    if isinstance(rule, s.RuleStatement) and rule.top is not None and (count := rule.top.count) is not None:
        more = replace(rule, top=replace(rule.top, count=count + 1))
        yield Variant("bound", rule.top.span, f"TOP {count} → {count + 1}", more)
    if isinstance(rule, s.RuleStatement) and (most := rule.at_most) is not None:
        more = replace(rule, at_most=replace(most, count=most.count + 1))
        yield Variant("bound", most.span, f"at most {most.count} → {most.count + 1}", more)


def _condition_kind(literal: s.Node, static: set[str], in_clause: bool) -> DropKind | None:
    """What a literal is for, if it is a condition; None for a pattern."""
    match literal:
        case s.Chain() | s.Among() | s.Between() | s.Was():
            return "condition"
        case s.WithinSet():
            return "window"
        case s.While(collect=False):
            return "absence"
        case s.Not(between=None):
            return "absence"
        case s.CallTerm(name=name) if in_clause or name in static:
            return "condition"
        case s.Binary(op=op, left=s.BareName(), right=s.BareName()) if op in _LABEL_RELATIONS:
            return "condition"
    return None


_Edit: TypeAlias = tuple[str, Span, str, s.Node]  # the kind of part, where it stands, the change, and the new node
_Change: TypeAlias = Callable[[s.Node, bool], Iterator[_Edit]]


def _changed(rule: s.RuleStatement | s.StaticRule, change: _Change) -> Iterator[Variant]:
    """All variants of a rule in which one node of the body, or of the head, is changed."""
    for position, literal in enumerate(rule.body):
        for kind, span, text, new in _variants(literal, change, isinstance(rule, s.StaticRule)):
            body = (*rule.body[:position], new, *rule.body[position + 1 :])
            yield Variant(kind, span, text, replace(rule, body=body))
    for kind, span, text, new in _variants(rule.head, change, False):
        yield Variant(kind, span, text, replace(rule, head=new))


def _variants(node: s.Node, change: _Change, condition: bool) -> Iterator[_Edit]:
    """A node with one change in it or in one of its parts; `condition` is whether it is part of a condition."""
    yield from change(node, condition)
    if isinstance(node, s.Where):
        for kind, span, text, new in _variants(node.pattern, change, condition):
            yield kind, span, text, replace(node, pattern=new)
        for kind, span, text, new in _variants(node.condition, change, True):
            yield kind, span, text, replace(node, condition=new)
        return
    marks: list[tuple[str, Span, str]] = []

    def of_part(part: s.Node) -> Iterator[s.Node]:
        for kind, span, text, new in _variants(part, change, condition):
            marks.append((kind, span, text))
            yield new

    for new in s.with_child_changed(node, of_part):
        yield (*marks[-1], new)


def _span(node: s.Node) -> Span:
    span = node.span
    assert span is not None
    return span


def _without(kind: DropKind, part: s.Node, new: s.Node) -> _Edit:
    return kind, _span(part), f"without {_span(part).quoted}", new


def _dropped(node: s.Node, condition: bool) -> Iterator[_Edit]:
    """A pattern without its condition, its window or its absence; a choice without one of its alternatives."""
    match node:
        case s.Where():
            if not isinstance(node.condition, s.Group) and not _is_junction(node.condition):
                yield _without("condition", node.condition, node.pattern)
        case s.Window():
            yield _without("window", node.length, node.pattern)
        case s.Not(between=(first, second)):
            sequence = s.Binary("SEQ", first, second, node.policy, parens=True, span=node.span)
            yield _without("absence", node, sequence)
        case s.Binary(op=op) if op == "OR" or (op == "AND" and condition):
            kind: DropKind = "alternative" if op == "OR" else "condition"
            yield _without(kind, node.right, node.left)
            if not isinstance(node.left, s.Binary) or node.left.op != op:  # of a longer chain its own step drops each
                yield _without(kind, node.left, node.right)
        case s.Group() if condition:
            for position, item in enumerate(node.items):
                rest = (*node.items[:position], *node.items[position + 1 :])
                yield _without("condition", item, rest[0] if len(rest) == 1 else replace(node, items=rest))


def _is_junction(node: s.Node) -> bool:
    return isinstance(node, s.Binary) and node.op in ("AND", "OR")


def _exchanged(node: s.Node, condition: bool) -> Iterator[_Edit]:
    """Another comparison, operator, relation, bound, function or count in place of one."""
    span = _span(node)
    match node:
        case s.Chain():
            for position, op in enumerate(node.ops):
                for other in _COMPARED[op]:
                    ops = (*node.ops[:position], other, *node.ops[position + 1 :])
                    yield "comparison", span, f"`{op}` → `{other}`", replace(node, ops=ops)
        case s.Among():
            yield "comparison", span, "`in` ↔ `not in`", replace(node, negated=not node.negated)
        case s.Binary(op="OR") if condition:
            yield "operator", span, "`or` → `and`", replace(node, op="AND")
        case s.Binary(op="AND") if condition:
            yield "operator", span, "`and` → `or`", replace(node, op="OR")
        case s.Binary():
            for other in _OPERATORS.get(node.op, ()):
                yield "operator", span, f"`{node.op}` → `{other}`", replace(node, op=other)
        case s.Not(between=None) if condition:
            yield "negation", span, f"`not` dropped from {_span(node).quoted}", node.negated
        case s.Arith(op=op, args=(_, _)) if op in _ARITHMETIC:
            yield "arithmetic", span, f"`{op}` → `{_ARITHMETIC[op]}`", replace(node, op=_ARITHMETIC[op])
        case s.CallTerm(name=name) if name in _AGGREGATES and len(node.args) == 1:
            yield "aggregate", span, f"`{name}` → `{_AGGREGATES[name]}`", replace(node, name=_AGGREGATES[name])
        case s.Quantified():
            yield "bound", span, f"at least {node.least} → {node.least + 1}", replace(node, least=node.least + 1)
        case s.Power():
            yield "bound", span, f"`^ {node.count}` → `^ {node.count + 1}`", replace(node, count=node.count + 1)
        case s.Last(count=count) if 0 < count < 1 << 30:
            yield "bound", span, f"{count} → {count + 1}", replace(node, count=count + 1)
        case s.Window() | s.WithinSet():
            for kind, part, text, length in _exchanged(node.length, condition):
                assert isinstance(length, Const)
                yield kind, part, text, replace(node, length=length)
        case Const(value=Duration(us=us)) if us > 1:
            for other_us in (us * 2, us // 2):
                new = replace(node, value=Duration(other_us))
                yield "bound", span, f"`{show_node(node)}` → `{show_node(new)}`", new
        case Const(value=bool()):
            yield "value", span, f"`{show_node(node)}` negated", replace(node, value=not node.value)
        case Const(value=int() as number):
            for other_number in (number + 1, number - 1):
                yield "bound", span, f"{number} → {other_number}", replace(node, value=other_number)
        case Const(value=float() as number):
            for factor in (1.1, 0.9):
                near = number * factor if number else factor - 1
                yield "bound", span, f"{number:g} → {near:g}", replace(node, value=near)
