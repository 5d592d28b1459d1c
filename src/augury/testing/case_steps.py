"""The steps of a case: what goes into a session, one step after another, and what each emits.

steps = [
    { push = ["a: order(1) @ 1"], emits = [] },
    { advance = 10, emits = ["+ overdue(1) @ [1, 5]"] },
    { revoke = "a", emits = ["- overdue(1) @ [1, 5]"] },
]
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from augury.core.errors import DataError
from augury.core.model import Change, HistoryItem
from augury.engine.session import Session
from augury.notation import read_atom

_ACTIONS = ("push", "revoke", "advance", "assert", "retract", "finish")
STEP_KEYS = {*_ACTIONS, "emits", "at", "until"}


def take_step(
    session: Session, step: Mapping[str, object], read: Callable[[str], HistoryItem], prefixes: Mapping[str, str]
) -> list[Change]:
    """Does all that a step says, in the order of `_ACTIONS`; the changes that it emits."""
    if not step.keys() & set(_ACTIONS):
        raise DataError(f"a step does nothing: {dict(step)!r}", hint=f"it has {', '.join(_ACTIONS)}")
    changes: list[Change] = []
    for line in _lines(step.get("push", ())):
        changes += session.push(read(line) if isinstance(line, str) else line)
    if "revoke" in step:
        changes += session.revoke(_lines(step["revoke"]))
    for line in _lines(step.get("assert", ())):
        name, args = read_atom(line, prefixes)
        changes += session.assert_fact(name, *args, at=step.get("at"), until=step.get("until"))
    for line in _lines(step.get("retract", ())):
        name, args = read_atom(line, prefixes)
        changes += session.retract_fact(name, *args, at=step.get("at"))
    if "advance" in step:
        changes += session.advance(step["advance"])
    if step.get("finish"):
        changes += session.finish()
    return changes


def _lines(value: Any) -> Iterable[Any]:
    return [value] if isinstance(value, str | dict) else list(value)
