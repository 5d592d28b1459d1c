"""Times that contradict one another, and state that nothing bounds."""

from __future__ import annotations

from augury.algebra.program import Plan
from augury.algebra.properties import all_properties
from augury.errors import NOWHERE, Findings, Note


def check_times(plan: Plan, findings: Findings) -> None:
    by_label = all_properties(plan)
    for rule in plan.rules:
        found = by_label[rule.label]
        if found.contradiction:
            reasons = sorted(found.contradiction, key=lambda r: r.span.start)
            first, *others = [(r.text, r.span if r.span is not NOWHERE else None) for r in reasons]
            against = " and ".join(text for text, _ in others) or "itself"
            findings.add("E501", f"rule `{rule.label}` can never be detected: {first[0]} contradicts {against}",
                         first[1] or rule.span, *(Note(text, span) for text, span in others if span))  # fmt: skip
        elif found.horizon is None:
            widest = next(m for m in found.memory if m.keep is None)
            findings.add("W304", f"rule `{rule.label}` remembers events without bound", widest.span,
                         hint="give it a window, `(…).10min` or `{o, s} within 10min`, or run with --retention")  # fmt: skip
