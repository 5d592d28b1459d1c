"""Every check of a whole program; each looks at the algebra and reports what it finds."""

from __future__ import annotations

from augury.algebra.program import Plan
from augury.errors import Findings
from augury.language.checks.arity import check_arity
from augury.language.checks.cycles import check_cycles
from augury.language.checks.scope import check_scope
from augury.language.checks.static import check_static
from augury.language.checks.times import check_times
from augury.language.checks.types import check_types

CHECKS = (check_arity, check_scope, check_static, check_cycles, check_times, check_types)


def check(plan: Plan, findings: Findings) -> None:
    for one in CHECKS:
        one(plan, findings)
