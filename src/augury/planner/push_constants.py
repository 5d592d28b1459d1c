"""Pushes constants that recursive events are asked for into their recursion.

    iteration(K + 1) <- a SEQ iteration(K).   e <- iteration(5).   →   iteration(K + 1) <- … WHERE K + 1 <= 5.

An argument that every recursive rule only increases, and that all others ask for with constants, need not grow beyond the
greatest of them. That holds where the events are not answers themselves and are only read positively and unrestricted:
then what is not made is not missed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from augury.algebra.kinds import chooses
from augury.algebra.nodes import Compare, Node, Repeat, Rule, Run, Scan, Select, walk, walk_all
from augury.algebra.plan import Plan, Predicate
from augury.algebra.terms import Apply, Const, Expr, Var


def push_constants(plan: Plan) -> Plan:
    """The plan with bounds on counters that no rule reads beyond a constant."""
    readers: dict[Predicate, list[tuple[Rule, Scan, bool]]] = {}
    for rule in plan.rules:
        for scan, plain in _scans(rule):
            readers.setdefault(scan.predicate, []).append((rule, scan, plain))
    bounds = {type: bound for type in plan.derived if (bound := _bound(plan, type, readers.get(type, []))) is not None}
    return replace(plan, rules=tuple(_bounded(rule, bounds) for rule in plan.rules)) if bounds else plan


def _bound(plan: Plan, type: Predicate, readers: list[tuple[Rule, Scan, bool]]) -> tuple[int, int] | None:
    """Which argument of a type need not exceed which number."""
    if type[0] in plan.outputs:
        return None
    recursive: list[tuple[Rule, Scan]] = []
    asked: list[tuple[Rule, Scan]] = []
    for rule, scan, plain in readers:
        if not plain:
            return None
        (recursive if rule.predicate == type else asked).append((rule, scan))
    if not recursive or not asked:
        return None
    for position in range(type[1]):
        values = [_whole(scan.args[position]) for _, scan in asked]
        constants = [v for v in values if v is not None]
        if len(constants) == len(values) and all(_grows(rule, scan, position) for rule, scan in recursive):
            return position, max(constants)
    return None


def _whole(expr: Expr) -> int | None:
    """The number that a constant is, where it is a whole one."""
    return expr.value if isinstance(expr, Const) and type(expr.value) is int else None


def _scans(rule: Rule) -> Iterator[tuple[Scan, bool]]:
    """The scans of a rule, and whether each is read positively and without a choice."""
    free = not any(chooses(n) for n in walk_all(rule.body))
    positive = {id(n) for n in walk(rule.body)}
    consecutive = any(isinstance(n, Run) or (isinstance(n, Repeat) and n.consecutive) for n in walk(rule.body))
    patterns: list[tuple[Node, bool]] = [(rule.body, free and not consecutive)]
    patterns += [(collect.pattern, False) for collect in rule.collects]
    for pattern, plain in patterns:
        for node in walk_all(pattern):
            if isinstance(node, Scan):
                yield node, plain and id(node) in positive


def _grows(rule: Rule, scan: Scan, position: int) -> bool:
    """Whether a recursive rule makes an argument greater than that of the event it comes from."""
    match rule.args[position], scan.args[position]:
        case Apply(function="+", args=(Var() as var, step) | (step, Var() as var)), Var(name=below):
            return var.name == below and (_whole(step) or 0) > 0
    return False


def _bounded(rule: Rule, bounds: dict[Predicate, tuple[int, int]]) -> Rule:
    bound = bounds.get(rule.predicate)
    if bound is None or not any(s.predicate == rule.predicate for s, _ in _scans(rule)):
        return rule
    position, most = bound
    condition = Compare("<=", rule.args[position], Const(most), rule.span)
    return replace(rule, body=Select(rule.body, (condition,), rule.span))
