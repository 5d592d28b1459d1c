"""Conditions that are always or never true."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from augury.algebra.nodes import AnyOf, Compare, Condition, Rule
from augury.algebra.terms import Aggregate, Const, Expr
from augury.algebra.value_bounds import conflict, is_bound
from augury.compiled import Compiled
from augury.core.errors import Findings, Fix, Note
from augury.language.checks.value_conflicts import certain, comparisons_of
from augury.lint.fixes import without

_NEGATED: dict[str, Literal["=", "!=", "<", "<=", ">", ">="]] = {
    "=": "!=", "!=": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<",
}  # fmt: skip
_FLIPPED = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "=": "=", "!=": "!="}


def lint_truths(program: Compiled, findings: Findings) -> None:
    """L104: `X > 5, X > 3`, whose second part is always true. L105: `count(X) < 0`, which never is."""
    for rule in program.plan.rules:
        _lint_implied(rule.label, (*certain(rule.body),), findings)
        _lint_counts(rule, findings)
    for clause in program.plan.clauses:
        _lint_implied(clause.name, clause.body, findings)


def _lint_implied(name: str, where: Iterable[Condition], findings: Findings) -> None:
    """Comparisons that follow from others, or from nothing at all. One that binds a variable says more than that."""
    where = tuple(where)
    asked = comparisons_of(where)
    if conflict(asked):  # W314 says more
        return
    for choice in (condition for condition in where if isinstance(condition, AnyOf)):
        _lint_choice(name, choice, asked, findings)
    dropped: set[Compare] = set()
    for comparison in asked:
        if comparison.op == "=" and _may_bind(comparison):
            continue
        others = [c for c in asked if c is not comparison and c not in dropped]
        opposite = _opposite(comparison)
        reasons = [reason for reason in conflict([*others, opposite]) if reason is not opposite]
        if conflict([*others, opposite]) and sum(c.span == comparison.span for c in asked) == 1:
            dropped.add(comparison)
            spans = list(dict.fromkeys(reason.span for reason in reasons))
            notes = [Note(f"{span.quoted} says more", span) for span in spans]
            why = "" if spans else ", unless the value is null" if not _is_const(comparison.left) else ""
            edits = without(comparison.span)
            fix = Fix("remove the condition", edits, safe=not why) if edits else None
            findings.add(
                "L104",
                f"{comparison.span.quoted} is always true in `{name}`{why}",
                comparison.span,
                *notes,
                hint="remove it",
                fix=fix,
            )


def _lint_choice(name: str, choice: AnyOf, asked: tuple[Compare, ...], findings: Findings) -> None:
    """`X > 3 or X <= 3`: its options cannot all be false."""
    options = [option[0] for option in choice.options if len(option) == 1]
    opposites = [_opposite(c) for c in options if isinstance(c, Compare) and is_bound(c)]
    if reasons := conflict([*asked, *opposites]):
        span, others = choice.span, [reason.span for reason in reasons if reason not in opposites]
        notes = [Note(f"{other.quoted} says more", other) for other in dict.fromkeys(others)]
        why = "" if notes else ", unless a value is null"
        edits = without(span)
        fix = Fix("remove the condition", edits) if edits else None
        message = f"{span.quoted} is always true in `{name}`{why}"
        findings.add("L104", message, span, *notes, hint="remove it", fix=fix)


def _opposite(comparison: Compare) -> Compare:
    return Compare(_NEGATED[comparison.op], comparison.left, comparison.right)


def _may_bind(comparison: Compare) -> bool:
    """Whether an equation may give a variable its value: not `1 = 1`, nor `X = X`."""
    if _is_const(comparison.left) and _is_const(comparison.right):
        return False
    return comparison.left != comparison.right


def _is_const(expr: Expr) -> bool:
    return isinstance(expr, Const)


def _lint_counts(rule: Rule, findings: Findings) -> None:
    """Where something is collected it is counted from 1, with `or none` from 0."""
    totals = rule.totals
    least = 0 if any(collect.none for collect in rule.collects) else 1
    for comparison in rule.having:
        if not isinstance(comparison, Compare) or not is_bound(comparison):
            continue
        left, op, right = comparison.left, comparison.op, comparison.right
        if isinstance(left, Const):
            left, op, right = right, _FLIPPED[op], left  # type: ignore[assignment]
        total: Aggregate | None = totals.get(getattr(left, "name", ""))
        value = right.value if isinstance(right, Const) else None
        if total is None or total.function != "count" or total.distinct or not isinstance(value, int):
            continue
        span = comparison.span
        if (op == ">=" and value <= least) or (op == ">" and value < least) or (op == "!=" and value < least):
            edits = without(span)
            fix = Fix("remove the condition", edits, safe=True) if edits else None
            findings.add("L104", f"{span.quoted} is always true in `{rule.label}`", span, hint="remove it", fix=fix)
        if (op == "<" and value <= least) or (op in ("<=", "=") and value < least):
            findings.add(
                "L105",
                f"{span.quoted} is never true in `{rule.label}`: at least {least} is counted",
                span,
                hint="`or none` behind `collect` counts nothing as 0" if least else None,
            )
