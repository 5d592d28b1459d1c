"""Shapes of rules whose work grows faster than what comes in."""

from __future__ import annotations

from collections.abc import Iterable

from augury.algebra.aggregates import accumulates, is_ranked
from augury.algebra.kinds import chooses, inner_absences, of_kind
from augury.algebra.nodes import (
    Condition,
    Join,
    Node,
    Rule,
    Scan,
    bound_vars,
    condition_vars,
    conditions,
    walk,
)
from augury.algebra.plan import Plan
from augury.compiled import Compiled
from augury.core.errors import Findings


def lint_join_shapes(program: Compiled, findings: Findings) -> None:
    """L107: a join whose sides share nothing. L108: other shapes that `augury profile` would call slow."""
    for rule in program.plan.rules:
        for pattern in rule.patterns:
            for join in of_kind(walk(pattern), Join):
                _lint_join(join, rule, findings)
        _lint_absences(rule, findings)
        _lint_collects(rule, program.plan, findings)


def _lint_join(join: Join, rule: Rule, findings: Findings) -> None:
    left, right = bound_vars(join.left), bound_vars(join.right)
    if left and right and not left & right and not _linked(left, right, rule.conditions):
        message = f"the two sides of {join.op} in rule `{rule.label}` share no variable: each event meets all others"
        hint = "let them share a variable, as `a(K) SEQ b(K)` does, or relate them by a fact or an equation"
        findings.add("L107", message, join.span, hint=hint)
    if chooses(join) and join.absent is not None and not join.policy.per:
        message = f"{join.policy.name} with an absence lists all candidates in rule `{rule.label}`"
        findings.add(
            "L108", message, join.span, hint="derive the pairs in a rule of their own, and ask for the absence there"
        )


def _linked(left: set[str], right: set[str], where: Iterable[Condition]) -> bool:
    """Whether some condition, or a chain of them, relates the two sets of variables."""
    reached, remaining = set(left), [condition_vars(condition) for condition in where]
    while touching := [names for names in remaining if names & reached]:
        remaining = [names for names in remaining if not names & reached]
        reached.update(*touching)
    return bool(reached & right)


def _lint_absences(rule: Rule, findings: Findings) -> None:
    for node in walk(rule.body):
        around = bound_vars(node)
        for absent in _absent(node):
            names = bound_vars(absent)
            if isinstance(absent, Scan) and names and around and not _linked(names, around, rule.conditions):
                message = f"an absence in rule `{rule.label}` shares no variable with what it is between"
                hint = "let it share a variable, `NOT(c(K)).[a(K), b(K)]`, or write `_` if any event blocks"
                findings.add("L108", message, absent.span, hint=hint)


def _absent(node: Node) -> list[Node]:
    inside = [absence.pattern for absence in inner_absences(conditions(node))]
    return [*inside, *([node.absent] if isinstance(node, Join) and node.absent is not None else [])]


def _lint_collects(rule: Rule, plan: Plan, findings: Findings) -> None:
    """An aggregate of a window for each event that has no running total lists its members again and again."""
    for collect in rule.collects:
        for total in collect.totals if collect.window is not None else ():
            part = total.aggregate
            built_in = part.function in plan.aggregates and not collect.by
            if built_in and not (
                accumulates(part, plan.functions, plan.aggregates, True) or is_ranked(part, plan.functions)
            ):
                call = f"{part.function}(distinct …)" if part.distinct else f"{part.function}(…)"
                message = f"{call} in rule `{rule.label}` lists what each window holds"
                hint = (
                    "count, sum, avg, min, max, first, last, median and count(distinct …) keep running totals; "
                    "a window by the clock, `every`, lists once"
                )
                findings.add("L108", message, part.span, hint=hint)
