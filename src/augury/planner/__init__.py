"""Rewrites that make a plan cheaper and never change its answers: one a file, in one visible order.

Early filters and windows at every operator below are part of the meaning (`algebra/place.py`): a policy chooses among what
they leave. Projections and sharing of equal sub-plans are made while the circuit is wired (`engine/wiring.py`); the bounds that temporal conditions imply are computed join by join (`implied_bounds.py`).
"""

from augury.algebra.plan import Plan
from augury.planner.join_order import join_order
from augury.planner.push_constants import push_constants

REWRITES = (push_constants, join_order)


def optimise(plan: Plan) -> Plan:
    """The plan after all rewrites."""
    for rewrite in REWRITES:
        plan = rewrite(plan)
    return plan
