"""All passes from a program's algebra to the physical plan, one a file, in one visible order.

`REWRITES` need the program alone: a plan in, a plan out. `RULE_PASSES` also need the settings of a run: its clock, and
which facts change; they change rules one by one, so that rules may come while a session runs. `choose_operators` makes
the physical plan of them; `project` and `share` are what it does at each pattern on its way down. `infer_types` says
which types its columns have.
"""

from augury.algebra.nodes import Rule
from augury.algebra.plan import Plan
from augury.planner.choose_operators import PhysicalPlan, choose_operators
from augury.planner.infer_types import infer_types
from augury.planner.join_order import join_order
from augury.planner.left_deep import left_deep
from augury.planner.lower_queries import lower_queries
from augury.planner.place_conditions import place_conditions
from augury.planner.planning import Planning, Setting
from augury.planner.prepare_runs import prepare_runs
from augury.planner.project import project
from augury.planner.push_constants import push_constants
from augury.planner.share import share

REWRITES = (lower_queries, push_constants, left_deep, join_order)
RULE_PASSES = (place_conditions, prepare_runs)
PATTERN_PASSES = (project, share)
PASSES = (*REWRITES, *RULE_PASSES, *PATTERN_PASSES, choose_operators, infer_types)


def optimise(plan: Plan) -> Plan:
    """The plan after all rewrites."""
    for rewrite in REWRITES:
        plan = rewrite(plan)
    return plan


def physical_plan(
    plan: Plan, setting: Setting, rules: tuple[Rule, ...] | None = None, planning: Planning | None = None
) -> PhysicalPlan:
    """The physical plan of a rewritten plan, or just what some of its rules add to that of the others."""
    rules = plan.rules if rules is None else rules
    for rule_pass in RULE_PASSES:
        rules = rule_pass(rules, plan, setting)
    earlier = () if planning is None else tuple(planning.specs)
    physical = choose_operators(rules, plan, setting, planning)
    infer_types(physical.specs, earlier, plan, setting.clock)
    return physical
