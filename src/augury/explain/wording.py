"""Conditions as they are shown."""

from __future__ import annotations

from typing import assert_never

from augury.algebra.nodes import AnyOf, Compare, Condition, Holds, NoneInside, Relates, Relative, Spans, Unless
from augury.algebra.terms import show
from augury.core.clock import show_duration


def show_condition(condition: Condition) -> str:
    match condition:
        case Compare():
            return f"{show(condition.left)} {condition.op} {show(condition.right)}"
        case Holds():
            return f"{'was ' if condition.was else ''}{condition.name}({', '.join(show(a) for a in condition.args)})"
        case Unless():
            return (
                f"not {'was ' if condition.was else ''}{condition.name}({', '.join(show(a) for a in condition.args)})"
            )
        case AnyOf():
            return "(" + " or ".join(" and ".join(show_condition(c) for c in o) for o in condition.options) + ")"
        case Relates():
            return f"{condition.left} {condition.relation} {condition.right}"
        case Spans():
            return f"{{{', '.join(condition.labels)}}} within {show_duration(condition.length)}"
        case Relative():
            length = condition.length
            text = show_duration(length) if isinstance(length, int) else show(length)
            most = "" if condition.most is None else f", most = {show_duration(condition.most)}"
            return f"{condition.label} = {condition.kind}({condition.anchor}, {text}{most})"
        case NoneInside():
            return f"none inside {condition.window}"
        case _:
            assert_never(condition)
