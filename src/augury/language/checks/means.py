"""Means and variances of durations on the logical clock, where a duration is a whole number of ticks.

tick 1s.  p(avg(duration(x))) <- …   →   refused: `avg(duration(x) * 1.0)` is the mean of numbers
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace

from augury.algebra.aggregates import arguments, pair
from augury.algebra.kinds import of_kind
from augury.algebra.nodes import Compare, Rule, Run, Scan
from augury.algebra.plan import Plan
from augury.algebra.terms import Aggregate, Apply, Const, Expr, Moment, Var, show
from augury.core.clock import Duration, Kind
from augury.core.errors import Findings

_WITH_FRACTIONS = frozenset({"avg", "median", "percentile", "stddev"})


def check_means(plan: Plan, findings: Findings, clock: Kind | None = None) -> None:
    """Refuses aggregates of durations that need fractions, where durations are ticks."""
    if plan.tick is None and clock != "logical":
        return
    for rule in plan.rules:
        declared = _declared(plan, rule)
        lasting = _equal(rule, declared)
        runs = (result.aggregate for run in of_kind(rule.nodes, Run) for result in run.results)
        for aggregate in (*rule.totals.values(), *runs):
            if aggregate.function in (*_WITH_FRACTIONS, "variance") and _lasts(arguments(aggregate)[0], lasting):
                _refuse(aggregate, declared, findings)


def _refuse(aggregate: Aggregate, declared: Set[str], findings: Findings) -> None:
    value, by = arguments(aggregate)
    message = f"`{show(aggregate)}` is a mean of durations, which are whole ticks on the logical clock"
    if aggregate.function == "variance":
        message = f"`{show(aggregate)}` is a variance, which durations do not have"
    times: Expr = Apply("*", (value, Const(1.0)))
    times = times if value is aggregate.args[0] else pair(times, by)
    numbers = f"`{show(replace(aggregate, args=(times,)))}`"
    hint = f"the mean of numbers may have a fraction: {numbers}; or run on timestamps"
    if aggregate.function == "variance":
        hint = f"numbers have one: {numbers}"
    elif isinstance(value, Var) and value.name in declared:
        hint = "declare a number of ticks, not a duration; or run on timestamps"
    findings.add("E601", message, aggregate.span, hint=hint)


def _declared(plan: Plan, rule: Rule) -> Set[str]:
    """The variables of a rule that a declaration says are durations."""
    names = set[str]()
    for scan in of_kind(rule.nodes, Scan):
        declared = plan.declared.get(scan.type, ())
        if len(declared) == len(scan.args):
            pairs = zip(scan.args, declared, strict=True)
            names |= {arg.name for arg, attribute in pairs if isinstance(arg, Var) and attribute.type == "duration"}
    return names


def _equal(rule: Rule, names: Set[str]) -> frozenset[str]:
    """These variables, and those that a condition says equal a duration: `D = duration(x)`."""
    equal = [c for c in rule.conditions if isinstance(c, Compare) and c.op == "="]
    sides = [side for c in equal for side in ((c.left, c.right), (c.right, c.left))]
    result, before = frozenset(names), -1
    while before < len(result):
        before = len(result)
        result |= {var.name for var, value in sides if isinstance(var, Var) and _lasts(value, result)}
    return result


def _lasts(expr: Expr, lasting: frozenset[str]) -> bool:
    """Whether a value is a duration, as far as the rule says it."""
    match expr:
        case Moment():
            return expr.which in ("duration", "length")
        case Const():
            return isinstance(expr.value, Duration)
        case Var():
            return expr.name in lasting
        case Apply(function="overlap"):
            return True
        case Apply(function="if"):
            return any(_lasts(branch, lasting) for branch in expr.args[1:])
        case Apply(function="+" | "-", args=(first, second)):
            return (_lasts(first, lasting) and _lasts(second, lasting)) or _is_difference(expr)
    return False


def _is_difference(expr: Apply) -> bool:
    """Whether it is the time between two events: `start(b) - end(a)`."""
    return expr.function == "-" and all(isinstance(a, Moment) and not _lasts(a, frozenset()) for a in expr.args)
