"""Means of durations on the logical clock, where a duration is a whole number of ticks.

tick 1s.  p(avg(duration(x))) <- …   →   refused: `avg(duration(x) * 1.0)` is the mean of numbers
"""

from __future__ import annotations

from dataclasses import replace

from augury.algebra.aggregates import arguments, pair
from augury.algebra.kinds import of_kind
from augury.algebra.nodes import Rule, Run, Scan
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
        lasting = _durations(plan, rule)
        runs = (result.aggregate for run in of_kind(rule.nodes, Run) for result in run.results)
        for aggregate in (*rule.totals.values(), *runs):
            if aggregate.function in _WITH_FRACTIONS and _lasts(arguments(aggregate)[0], lasting):
                _refuse(aggregate, findings)


def _refuse(aggregate: Aggregate, findings: Findings) -> None:
    value, by = arguments(aggregate)
    message = f"`{show(aggregate)}` is a mean of durations, which are whole ticks on the logical clock"
    times: Expr = Apply("*", (value, Const(1.0)))
    times = times if value is aggregate.args[0] else pair(times, by)
    hint = f"the mean of numbers may have a fraction: `{show(replace(aggregate, args=(times,)))}`; or run on timestamps"
    if isinstance(value, Var):
        hint = "declare a number of ticks, not a duration; or run on timestamps"
    findings.add("E601", message, aggregate.span, hint=hint)


def _durations(plan: Plan, rule: Rule) -> frozenset[str]:
    """The variables of a rule that a declaration says are durations."""
    names = set[str]()
    for scan in of_kind(rule.nodes, Scan):
        declared = plan.declared.get(scan.type, ())
        if len(declared) == len(scan.args):
            pairs = zip(scan.args, declared, strict=True)
            names |= {arg.name for arg, attribute in pairs if isinstance(arg, Var) and attribute.type == "duration"}
    return frozenset(names)


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
