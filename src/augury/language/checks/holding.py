"""Where `holding` may stand beside others: no policy chooses among intervals in which facts hold."""

from __future__ import annotations

from augury.algebra.kinds import chooses, of_kind
from augury.algebra.nodes import Scan, walk
from augury.algebra.plan import Plan
from augury.core.errors import Findings


def check_holding(plan: Plan, findings: Findings) -> None:
    for rule in plan.rules:
        for node in (node for node in walk(rule.body) if chooses(node)):
            for scan in (scan for scan in of_kind(walk(node), Scan) if scan.held is not None):
                message = f"`{node.policy.name}` would choose among intervals of {scan.span.quoted}"
                hint = "give `holding` a rule of its own, and choose among its events"
                findings.add("E277", message, scan.span, hint=hint)
                return
