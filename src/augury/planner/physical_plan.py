"""The physical plan of a whole program, without a session: what `explain` shows."""

from __future__ import annotations

from augury.algebra.plan import Plan
from augury.algebra.strata import strata
from augury.core.clock import SECOND, Clock
from augury.core.errors import RunError
from augury.planner.choose_operators import PhysicalPlan, choose_operators
from augury.planner.place_conditions import place_conditions
from augury.planner.planning import Setting


def physical_plan(plan: Plan, setting: Setting) -> PhysicalPlan:
    """The operators of all rules of a rewritten plan."""
    placed = place_conditions(plan, setting)
    return choose_operators(plan, {rule.label: rule for rule in placed.rules}, strata(plan), setting)


def plan_on_some_clock(plan: Plan) -> tuple[PhysicalPlan, Clock]:
    """The physical plan on the timestamp clock, or on the logical one where the program names ticks."""
    changing = {name for name, _ in plan.made}
    for kind in ("timestamp", "logical"):
        clock = Clock(kind, plan.tick or SECOND)
        try:
            return physical_plan(plan, Setting(clock, changing=changing, varying=changing)), clock
        except RunError as error:
            refused = error
    raise refused
