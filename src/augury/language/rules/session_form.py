"""Distinguishes `session(30min, click(U, _))` from an event called `session`."""

from __future__ import annotations

from augury.algebra.terms import Const
from augury.core.clock import Duration
from augury.language.rules import syntax as s


def is_session(call: s.CallTerm) -> bool:
    """Whether a call is a session window: a length, then an atom."""
    if call.name.lower() != "session" or len(call.args) < 2 or not isinstance(call.args[1], s.CallTerm | s.BareName):
        return False
    return isinstance(call.args[0], Const) and isinstance(call.args[0].value, Duration | int)
