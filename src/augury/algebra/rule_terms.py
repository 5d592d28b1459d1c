"""Variables and terms of the rows between the body of a rule and its head."""

from __future__ import annotations

from augury.algebra.clock_windows import Windows
from augury.algebra.kinds import chooses, of_kind
from augury.algebra.nodes import (
    Collect,
    Every,
    Label,
    Node,
    Relative,
    Rule,
    Scan,
    bound_vars,
    condition_labels,
    condition_vars,
    conditions,
    walk,
)
from augury.algebra.scalar import RowError
from augury.algebra.terms import Expr, labels, variables
from augury.core.bounds import MAX_TIME, MIN_TIME
from augury.core.clock import Timestamp
from augury.core.model import Value, show_value


def later_variables(rule: Rule, number: int) -> set[str]:
    """The variables that are used after a collect: by the head, conditions on groups, a ranking, later collects.

    Of those that the rule's rows and this collect bind, each value makes a group.
    """
    result = {v for value in rule.values for v in variables(value)}
    result |= {v for c in rule.having for v in condition_vars(c)}
    result |= rule.per
    for collect in rule.collects[number + 1 :]:
        result |= collected_variables(collect)
    new_variables = bound_vars(rule.collects[number].pattern) - bound_vars(rule.body)
    earlier = {v for collect in rule.collects[:number] for v in collect.by}
    return (
        result
        - (new_variables - set(rule.collects[number].by) - earlier)
        - {t.name for t in rule.collects[number].totals}
    )


def collected_variables(collect: Collect) -> set[str]:
    """The variables that a collect may share with the rows that it is for."""
    result = bound_vars(collect.pattern).union(*(condition_vars(c) for c in collect.where))
    return result | {v for total in collect.totals for v in variables(total.aggregate)}


def head_labels(rule: Rule) -> set[str]:
    """The labels whose times the head, conditions on groups and collects need."""
    result = {label for value in rule.values for label in labels(value)} | set(rule.covers)
    result |= {label for c in rule.outer_conditions for label in condition_labels(c)}
    for collect in rule.collects:
        result |= {label for total in collect.totals for label in labels(total.aggregate)}
        result |= {collect.window} if collect.window else set()
    return result - {collect.label for collect in rule.collects if collect.label}


def just_windows(rule: Rule) -> Windows | None:
    """The windows by the clock of a rule that just collects in them: those in which nothing is give nothing."""
    body = rule.body
    if not rule.collects or not isinstance(body, Label) or not isinstance(body.input, Every):
        return None
    first = rule.collects[0]
    return body.input.windows if first.window == body.label and not first.none else None


def clock_labels(body: Node) -> set[str]:
    """The labels of windows by the clock, and of those before them."""
    named = [node for node in walk(body) if isinstance(node, Label) and not node.interval]
    windows = {node.label for node in named if any(isinstance(part, Every) for part in walk(node.input))}
    return windows | {c.label for node in walk(body) for c in conditions(node) if isinstance(c, Relative) and c.windows}


def makes_windows(rule: Rule) -> bool:
    """Whether a rule has windows by the clock that are there with or without anything in them."""
    windows_count = just_windows(rule) is None or rule.collects[0].clips  # a fact may hold before all events
    return windows_count and bool(of_kind(walk(rule.body), Every))


def windows_by_key(rule: Rule) -> bool:
    """Whether every row of a rule with windows by the clock has an event: where all have a key, the row is of that key."""
    nodes = list(walk(rule.body))
    events = any(isinstance(node, Scan) for node in nodes) or any(not collect.none for collect in rule.collects)
    return events and not rule.held and not any(map(chooses, nodes))


def uses_place(rule: Rule, expr: Expr) -> bool:
    """Whether a value hangs on the place in a ranking."""
    return rule.top is not None and rule.top.place is not None and rule.top.place in variables(expr)


def start_of(value: Value, end: int, kind: str) -> int:
    """The start that SINCE says; a row fails where that is no time, or after the end."""
    if kind == "timestamp" and isinstance(value, Timestamp):
        start = value.us
    elif kind == "logical" and isinstance(value, int | float) and not isinstance(value, bool) and value == int(value):
        start = int(value)
    else:
        raise RowError(f"SINCE: {show_value(value)} is not a time")
    if start > end:
        raise RowError("SINCE: a start after the end")
    if not MIN_TIME <= start <= MAX_TIME:
        raise RowError("a time beyond 60 bits")
    return start
