"""Places every condition and window at the lowest operator that binds what it needs (`algebra/place.py` has the law).

    (a(X) SEQ b(Y)).10 WHERE X < 3    →    SEQ[10](a(X) WHERE X < 3, b(Y))

Placement is part of the meaning: a policy chooses among what conditions below leave. A retention becomes a window on
the rules that have no bound of their own.
"""

from __future__ import annotations

from dataclasses import replace

from augury.algebra.place import placed
from augury.algebra.plan import Plan
from augury.algebra.properties import all_properties
from augury.planner.planning import Setting


def place_conditions(plan: Plan, setting: Setting, whole: Plan | None = None) -> Plan:
    """The plan with its conditions placed. `whole` is the program that the rules of the plan belong to."""
    unbounded: set[str] = set()
    if setting.retention is not None:
        properties = all_properties(whole or plan)
        unbounded = {label for label, found in properties.items() if found.horizon is None}
    rules = (placed(rule, setting.varying, setting.retention, unbounded) for rule in plan.rules)
    return replace(plan, rules=tuple(rules))
