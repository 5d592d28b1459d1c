"""Every check of a whole program."""

from __future__ import annotations

from augury.algebra.program import Plan
from augury.errors import Findings
from augury.language import syntax as s


def check(plan: Plan, modules: list[s.Module], findings: Findings) -> None:
    return
