"""Windows that bound nothing, because one around them is shorter."""

from __future__ import annotations

import re
from collections.abc import Iterator

from augury.algebra.nodes import Node, Within, inputs
from augury.algebra.properties import all_properties
from augury.compiled import Compiled
from augury.core.clock import show_duration
from augury.core.errors import Edit, Findings, Fix, Note, Span


def lint_windows(program: Compiled, findings: Findings, retention: int | None) -> None:
    """L106: `((a SEQ b).3h SEQ c).1h`, and in a rule without bound a window longer than the retention."""
    properties = all_properties(program.plan)
    for rule in program.plan.rules:
        kept = retention if properties[rule.label].horizon is None else None
        for pattern in rule.patterns:
            for inner, outer in _inside(pattern, None):
                span = _length(inner.span)
                if outer is not None and inner.length >= outer.length:
                    message = f"the window {show_duration(inner.length)} has no effect: one of {show_duration(outer.length)} is around it"
                    fix = Fix("remove the window", (Edit(span, ""),), safe=True) if span != inner.span else None
                    findings.add("L106", message, span, Note("the window around", _length(outer.span)), fix=fix)
                elif kept is not None and inner.length > kept:
                    message = (
                        f"the window {show_duration(inner.length)} is longer than the retention, {show_duration(kept)}"
                    )
                    findings.add("L106", message, span, hint=f"run with --retention {show_duration(inner.length)}")


def _inside(node: Node, around: Within | None) -> Iterator[tuple[Within, Within | None]]:
    """The windows of a pattern, each with the shortest one around it."""
    if isinstance(node, Within):
        yield node, around
        around = node if around is None or node.length < around.length else around
    for part in inputs(node):
        yield from _inside(part, around)


def _length(window: Span) -> Span:
    """Where the length of `(…).10min` is written, with its full stop."""
    return window.part(r"\.\s*\d[^()\[\]]*$") if re.search(r"\.\s*\d[^()\[\]]*$", window.text) else window
