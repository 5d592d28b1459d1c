"""What follows from the shape of a rule for the rows between its body and its head."""

from __future__ import annotations

from augury.algebra.clock_windows import Windows
from augury.algebra.nodes import Collect, Every, Label, Rule, bound_vars, condition_labels, condition_vars, walk
from augury.algebra.scalar import RowError
from augury.algebra.terms import Expr, labels, variables
from augury.core.bounds import MAX_TIME, MIN_TIME
from augury.core.clock import Timestamp
from augury.core.model import Value, show_value


def later_variables(rule: Rule, number: int) -> set[str]:
    """The variables that are used after a collect: by the head, conditions on groups, a ranking, later collects.

    Of those that the rule's rows and this collect bind, each value makes a group.
    """
    found = {v for value in rule.values for v in variables(value)}
    found |= {v for c in rule.having for v in condition_vars(c)}
    found |= rule.per
    for collect in rule.collects[number + 1 :]:
        found |= collected_variables(collect)
    own = bound_vars(rule.collects[number].pattern) - bound_vars(rule.body)
    earlier = {v for collect in rule.collects[:number] for v in collect.by}
    return found - (own - set(rule.collects[number].by) - earlier) - {t.name for t in rule.collects[number].totals}


def collected_variables(collect: Collect) -> set[str]:
    """The variables that a collect may share with the rows that it is for."""
    found = bound_vars(collect.pattern).union(*(condition_vars(c) for c in collect.where))
    return found | {v for total in collect.totals for v in variables(total.aggregate)}


def head_labels(rule: Rule) -> set[str]:
    """The labels whose times the head, conditions on groups and collects need."""
    found = {label for value in rule.values for label in labels(value)} | set(rule.covers)
    found |= {label for c in rule.beside for label in condition_labels(c)}
    for collect in rule.collects:
        found |= {label for total in collect.totals for label in labels(total.aggregate)}
        found |= {collect.window} if collect.window else set()
    return found - {collect.label for collect in rule.collects if collect.label}


def just_windows(rule: Rule) -> Windows | None:
    """The windows by the clock of a rule that just collects in them: those in which nothing is give nothing."""
    body = rule.body
    if not rule.collects or not isinstance(body, Label) or not isinstance(body.input, Every):
        return None
    first = rule.collects[0]
    return body.input.windows if first.window == body.label and not first.none else None


def makes_windows(rule: Rule) -> bool:
    """Whether a rule has windows by the clock that are there with or without anything in them."""
    return just_windows(rule) is None and any(isinstance(node, Every) for node in walk(rule.body))


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
