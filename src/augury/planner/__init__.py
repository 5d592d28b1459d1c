"""All passes from a program's algebra to the physical plan, one a file, in one visible order.

SPAseQ queries are rules before the first pass (`queries/lower.py`). `REWRITES` need the program alone and never change
its answers; `RUN_PASSES` also need the settings of a run: its clock, and which facts change. Runs are prepared, equal
sub-plans shared and unused columns dropped while operators are chosen (`prepare_runs.py`, `planning.py`).
"""

from augury.algebra.plan import Plan
from augury.planner.choose_operators import choose_operators
from augury.planner.join_order import join_order
from augury.planner.place_conditions import place_conditions
from augury.planner.push_constants import push_constants

REWRITES = (push_constants, join_order)
RUN_PASSES = (place_conditions, choose_operators)
PASSES = (*REWRITES, *RUN_PASSES)


def optimise(plan: Plan) -> Plan:
    """The plan after all rewrites."""
    for rewrite in REWRITES:
        plan = rewrite(plan)
    return plan
