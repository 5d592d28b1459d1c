"""Conditions on values that contradict one another."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import assert_never

from augury.algebra.kinds import of_kind
from augury.algebra.nodes import (
    AnyOf,
    Compare,
    Condition,
    Either,
    Every,
    Graph,
    Instant,
    Join,
    Label,
    Node,
    Repeat,
    Rule,
    Run,
    RunPart,
    Scan,
    Select,
    SessionWindow,
    Unfold,
    Within,
    bound_vars,
    condition_vars,
    conditions,
    inputs,
    walk,
)
from augury.algebra.plan import Plan
from augury.algebra.value_bounds import conflict, is_bound
from augury.core.errors import Findings, Note

_MOST_OPTIONS = 20  # the options of a long list are not tried one by one
Comparisons = tuple[Compare, ...]


def check_value_conflicts(plan: Plan, findings: Findings) -> None:
    """Warns of a rule, or a branch of OR, whose comparisons never hold together: `X > 5, X < 3`."""
    for rule in plan.rules:
        if not findings.sound(rule.span):  # an error of its types says more
            continue
        what = f"rule `{rule.label}` can never be detected"
        if of_kind(walk(rule.body), Run):
            for run in of_kind(walk(rule.body), Run):
                for part in run.parts:
                    _report(conflict(_iteration(part)), what, findings)
        else:
            _check_rule(rule, what, findings)
    for clause in (c for c in plan.clauses if findings.sound(c.span)):
        _report(_conflict((), clause.body), f"a rule of `{clause.name}` never holds", findings)


def _check_rule(rule: Rule, what: str, findings: Findings) -> None:
    sure = certain(rule.body)
    if reasons := _conflict((), (*sure, *rule.having)):
        _report(reasons, what, findings)
    else:
        _check_branches(rule.body, comparisons_of(sure), f"a branch of OR in {what}", findings)


def _check_branches(node: Node, outer: Comparisons, what: str, findings: Findings) -> None:
    """The branches of OR, each with the conditions around it."""
    for either in _outermost(node):
        for side in (either.left, either.right):
            sure = certain(side)
            if reasons := _conflict(outer, sure):
                _report(reasons, what, findings)
            else:
                _check_branches(side, (*outer, *comparisons_of(sure)), what, findings)


def _outermost(node: Node) -> Iterator[Either]:
    match node:
        case Either():
            yield node
        case Scan() | Instant() | Every() | Repeat() | Graph() | Run():
            return
        case Label() | Select() | SessionWindow() | Within() | Unfold() | Join():
            for part in inputs(node):
                yield from _outermost(part)
        case _:
            assert_never(node)


def always(node: Node) -> Iterator[Node]:
    """The parts of a pattern that every row has: none of a branch of OR, of a run, or of one among several repetitions."""
    match node:
        case Either() | Repeat() | Graph() | Run():
            return
        case Scan() | Instant() | Every() | Label() | Select() | SessionWindow() | Within() | Unfold() | Join():
            yield node
            for part in inputs(node):
                yield from always(part)
        case _:
            assert_never(node)


def certain(node: Node) -> tuple[Condition, ...]:
    """The conditions that hold for every row of a pattern."""
    return tuple(condition for part in always(node) for condition in conditions(part))


def _iteration(part: RunPart) -> Comparisons:
    """What every iteration of a part meets. A condition that looks at other parts is not asked where those are left out."""
    if part.least == 0:
        return ()
    bound = bound_vars(part.input)
    asked = comparisons_of((*certain(part.input), *part.where))
    return tuple(comparison for comparison in asked if condition_vars(comparison) <= bound)


def comparisons_of(where: Iterable[Condition]) -> Comparisons:
    """The comparisons of variables and constants among conditions."""
    return tuple(c for c in where if isinstance(c, Compare) and is_bound(c))


def _conflict(outer: Comparisons, where: tuple[Condition, ...]) -> Comparisons:
    """Comparisons that never hold together; where several are joined by `or`, each option contradicts the others."""
    sure = (*outer, *comparisons_of(where))
    if reasons := conflict(sure):
        return reasons
    for choice in where:
        if isinstance(choice, AnyOf) and len(choice.options) <= _MOST_OPTIONS:
            conflicts = [conflict((*sure, *comparisons_of(option))) for option in choice.options]
            if all(conflicts):
                return tuple(dict.fromkeys(reason for reasons in conflicts for reason in reasons))
    return ()


def _report(reasons: Comparisons, what: str, findings: Findings) -> None:
    spans = sorted({reason.span for reason in reasons}, key=lambda span: span.start)
    if spans:
        first, *others = spans
        against = " and ".join(dict.fromkeys(span.quoted for span in others)) or "itself"
        notes = [Note(span.quoted, span) for span in others]
        findings.add("W314", f"{what}: {first.quoted} contradicts {against}", first, *notes)
