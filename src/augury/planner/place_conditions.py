"""Places every condition and window at the lowest operator that binds what it needs (`algebra/place.py` has the law).

    (a(X) SEQ b(Y)).10 WHERE X < 3    →    SEQ[10](a(X) WHERE X < 3, b(Y))

Placement is part of the meaning: a policy chooses among what conditions below leave. A retention becomes a window on
the rules that have no bound of their own.
"""

from __future__ import annotations

from augury.algebra.nodes import Rule
from augury.algebra.place import placed
from augury.algebra.plan import Plan
from augury.algebra.properties import all_properties
from augury.planner.planning import Setting


def place_conditions(rules: tuple[Rule, ...], plan: Plan, setting: Setting) -> tuple[Rule, ...]:
    """The rules, which are some of a plan, with their conditions placed."""
    unbounded: set[str] = set()
    if setting.retention is not None:
        unbounded = {label for label, properties in all_properties(plan).items() if properties.horizon is None}
    return tuple(placed(rule, setting.varying, setting.retention, unbounded) for rule in rules)
