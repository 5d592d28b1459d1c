"""Distinguishes `session(30min, click(U, _))` from an event called `session`."""

from __future__ import annotations

from augury.algebra.terms import Const
from augury.core.clock import Duration
from augury.core.errors import Span
from augury.language.rules import syntax as s


def is_turned_session(call: s.CallTerm) -> bool:
    """Whether a call is a session window as other languages write it: an atom, then a length."""
    match call.args:
        case (s.CallTerm() | s.BareName(), Const(value=Duration())):
            return call.name.lower() == "session"
    return False


def turned_session(call: s.CallTerm, label: str) -> tuple[str, Span, str]:
    """What is wrong with such a window, where, and what to write."""
    event, length = (" ".join(arg.span.text.split()) for arg in call.args[:2])
    hint = f"write `{label}: session({length}, {event})`, as a literal of its own"
    return "a session window takes its gap first, then the event", call.span, hint


def is_session(call: s.CallTerm) -> bool:
    """Whether a call is a session window: a length, then an atom."""
    if call.name.lower() != "session" or len(call.args) < 2 or not isinstance(call.args[1], s.CallTerm | s.BareName):
        return False
    return isinstance(call.args[0], Const) and isinstance(call.args[0].value, Duration | int)
