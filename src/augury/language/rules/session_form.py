"""Distinguishes `session(30min, click(U, _))` from an event called `session`."""

from __future__ import annotations

from augury.algebra.terms import Const, Var
from augury.core.clock import Duration
from augury.core.errors import Span
from augury.language.rules import syntax as s

_PATTERNS = s.Where | s.Binary | s.Group | s.Window | s.Not


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
    """Whether a call is a session window: a length, then an atom. Others are read as one, to say what is wrong with them."""
    if call.name.lower() != "session" or len(call.args) < 2:
        return False
    length, events = call.args[:2]
    if isinstance(length, Const):
        return isinstance(length.value, Duration | int) and isinstance(events, s.CallTerm | s.BareName | _PATTERNS)
    return isinstance(length, Var | s.Arith) and isinstance(events, s.CallTerm)
