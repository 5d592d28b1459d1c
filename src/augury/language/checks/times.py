"""Times that contradict one another, and state that nothing bounds."""

from __future__ import annotations

from itertools import pairwise

from augury.algebra.kinds import of_kind
from augury.algebra.nodes import (
    Either,
    Relative,
    Rule,
    Run,
    RunPart,
    Scan,
    Select,
    SessionWindow,
    conditions,
    scans,
    walk,
)
from augury.algebra.place import place
from augury.algebra.plan import Plan
from augury.algebra.properties import all_properties
from augury.algebra.relations import Reason
from augury.algebra.run_bounds import is_bounded
from augury.algebra.terms import Var, Wild
from augury.core.clock import show_duration
from augury.core.errors import NOWHERE, Findings, Note
from augury.language.checks.arity import head_of


def check_times(plan: Plan, findings: Findings) -> None:
    by_label = all_properties(plan)
    for rule in plan.rules:
        for run in of_kind(walk(rule.body), Run):
            _check_ending(run, plan.tick or 1, findings)
            _check_passing(run, findings)
        _check_throttle(rule, findings)
        properties = by_label[rule.label]
        if properties.contradiction:
            _contradiction(rule, properties.contradiction, plan.tick, findings)
        elif properties.horizon is None and findings.sound(rule.span):
            widest = next(m.span for m in properties.memory if m.keep is None)
            message = f"rule `{rule.label}` remembers events without bound"
            hint = "give it a window, `(…).10min` or `{o, s} within 10min`, or run with --retention"
            if any(isinstance(c, Relative) and _has_no_bound(c) for node in walk(rule.body) for c in conditions(node)):
                hint = "say how long the window may last: `until(o, Due, most = 30d)`, or run with --retention"
            if any(isinstance(node, SessionWindow) and node.most is None for node in walk(rule.body)):
                hint = (
                    "say how long a session may last: `session(30min, click(U, _), most = 1d)`, or run with --retention"
                )
            findings.add("W304", message, head_of(rule.span) if widest == rule.span else widest, hint=hint)


def _check_throttle(rule: Rule, findings: Findings) -> None:
    """Without EVERY, what was given for a key is never forgotten."""
    if rule.at_most is not None and rule.at_most.every is None and findings.sound(rule.span):
        each = " for each value of " + ", ".join(f"`{v}`" for v in rule.at_most.per) if rule.at_most.per else ""
        message = f"rule `{rule.label}` keeps the events that it has derived{each} for ever"
        hint = f"say how long it counts: `{rule.at_most.span.text} EVERY 30d`"
        findings.add("W313", message, rule.at_most.span, hint=hint)


def _has_no_bound(window: Relative) -> bool:
    return not isinstance(window.length, int) and window.bound is None


def _check_ending(run: Run, tick: int, findings: Findings) -> None:
    """A repetition at the end of a run, of which the longest is asked for: an event, or the clock, must be able to end it."""
    placed = place(run)
    assert isinstance(placed, Run)
    for number, part in enumerate(run.parts):
        last = all(later.optional for later in run.parts[number + 1 :])
        ends = _can_end(part, run) or is_bounded(placed, number, number, tick)
        if run.which == "LONGEST" and last and part.most is None and not ends:
            message = f"nothing can end {part.span.quoted}, so the longest run is never final"
            hint = (
                "give the run a window, a bound on the time between iterations, such as "
                "`start(c) - prev(end(c)) <= 30min`, a condition that an event of the run can fail, or a part that follows"
            )
            findings.add("W312", message, part.span, hint=hint)


def _check_passing(run: Run, findings: Findings) -> None:
    """Under LONGEST, an iteration related by THEN may come after an event that would have ended the run."""
    for part, terminator in pairwise(run.parts):
        if run.which == "LONGEST" and part.between == "THEN" and part.most is None and not terminator.optional:
            message = f"LONGEST lets {part.span.quoted} go on past {terminator.span.quoted}: THEN leaves out what lies between"
            by = f"(…+ BY NEXT) {terminator.link} …"
            hint = f"relate the iterations by NEXT to end them there, `{by}`, or say ALL or SHORTEST"
            findings.add("W315", message, part.span, Note("what it goes past", terminator.span), hint=hint)


def _can_end(part: RunPart, run: Run) -> bool:
    """Whether an event of the run may come that is no iteration; after THEN, it would be skipped."""
    if part.between != "NEXT":
        return False
    takes = {scan.predicate for scan in scans(part.input) if _takes_all(scan, run)}
    return bool(part.where) or isinstance(part.input, Select) or any(s.predicate not in takes for s in run.among)


def _takes_all(scan: Scan, run: Run) -> bool:
    """Whether a scan matches all events of its type that have the key."""
    names = [arg.name for arg in scan.args if isinstance(arg, Var)]
    free = {v for part in run.parts for v in part.own} | set(run.key)
    return (
        all(isinstance(arg, Var | Wild) for arg in scan.args) and len(set(names)) == len(names) and set(names) <= free
    )


def _contradiction(rule: Rule, reasons: tuple[Reason, ...], tick: int | None, findings: Findings) -> None:
    reasons = _outermost(reasons)
    first, *others = sorted(reasons, key=lambda r: (r.span.start, not r.text.startswith("the window")))
    against = "contradicts " + (" and ".join(dict.fromkeys(_written(r) for r in others)) or "itself")
    notes = [Note(_written(r), r.span) for r in others if r.span not in (NOWHERE, first.span)]
    if others and first.text.startswith("the window") and all(r.span in first.span for r in others):
        against, notes = f"is too short for {first.span.quoted}", []
    what = f"{_written(first)} {against}"
    if others and all(r.text == "the time points" for r in reasons):
        what = f"the time points {' and '.join(_written(r) for r in (first, *others))} are out of order"
    short = tick is not None and any(r.text.startswith("the window") for r in reasons)
    hint = (
        f"times differ by whole ticks: what comes later comes at least {show_duration(tick or 0)} later"
        if short
        else None
    )
    where = f"a branch of OR in rule `{rule.label}`" if _in_branch(rule, reasons) else f"rule `{rule.label}`"
    message = f"{where} can never be detected: {what}"
    hint = hint
    findings.add("E501", message, head_of(rule.span) if first.span is NOWHERE else first.span, *notes, hint=hint)


def _outermost(reasons: tuple[Reason, ...]) -> tuple[Reason, ...]:
    """Without what is a part of another one; windows and time points say more than the pattern around them."""
    kept = [
        r
        for r in reasons
        if r.text.startswith("the ") or not any(r.span in o.span and r.span != o.span for o in reasons)
    ]
    points = tuple(r for r in kept if r.text == "the time points")
    return points if len(points) > 1 else tuple(kept)


def _written(reason: Reason) -> str:
    """What was written, where it says enough by itself."""
    if reason.span is NOWHERE or reason.text.startswith("the window") or len(reason.span.quoted) > 60:
        return reason.text
    return reason.span.quoted


def _in_branch(rule: Rule, reasons: tuple[Reason, ...]) -> bool:
    sides = [side for node in of_kind(walk(rule.body), Either) for side in (node.left, node.right)]
    return any(all(reason.span in side.span for reason in reasons) for side in sides)
