"""Every check of a whole program; each looks at the algebra and reports what it finds."""

from __future__ import annotations

from dataclasses import replace

from augury.algebra.plan import Plan
from augury.core.errors import Findings
from augury.language.checks.arity import check_arity
from augury.language.checks.cycles import check_cycles
from augury.language.checks.head_bounds import check_head_bounds
from augury.language.checks.holding import check_holding
from augury.language.checks.inference import check_types
from augury.language.checks.latest import check_latest
from augury.language.checks.means import check_means
from augury.language.checks.scope import check_scope
from augury.language.checks.slips import check_slips
from augury.language.checks.static import check_static
from augury.language.checks.times import check_times
from augury.language.checks.value_conflicts import check_value_conflicts

CHECKS = (
    check_arity,
    check_scope,
    check_static,
    check_latest,
    check_holding,
    check_cycles,
    check_times,
    check_types,
    check_means,
    check_value_conflicts,
    check_head_bounds,
    check_slips,
)


def check(plan: Plan, findings: Findings) -> None:
    """Runs every check on what was read without a mistake; the rest would only give errors that follow from those."""
    sound = replace(
        plan,
        rules=tuple(rule for rule in plan.rules if findings.sound(rule.span)),
        clauses=tuple(clause for clause in plan.clauses if findings.sound(clause.span)),
    )
    findings.unread |= {rule.type for rule in plan.rules} | {clause.name for clause in plan.clauses}
    for check_plan in CHECKS:
        check_plan(sound, findings)
