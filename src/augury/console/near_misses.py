"""Why an event was not detected, as data: the events that there were, what failed, and where that is written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from augury.console.derivation_graph import without_extra
from augury.core.errors import Span
from augury.core.model import Event, show_value
from augury.engine.session import Session
from augury.explain.sessions import misses_of
from augury.explain.why_not import FailedCondition
from augury.notation import show_event


def near_misses(session: Session, atom: str, extra: int = 0) -> list[dict[str, Any]]:
    """For each rule that could derive an atom, its nearest partial match; the nearest rule first.

    `extra` arguments of the events of the session are not the user's.
    """
    misses = misses_of(session, atom)
    rules = {rule.label: rule for rule in session.circuit.rules.values()}

    def event(item: Event) -> dict[str, Any]:
        kind = "derived" if (item.type, len(item.args)) in session.circuit.derived else "event"
        item = without_extra(item, extra)
        return {
            "type": item.type, "id": item.id, "kind": kind, "args": [show_value(arg) for arg in item.args],
            "start": item.start, "end": item.end, "text": show_event(item, session.clock),
        }  # fmt: skip

    def failed(text: str) -> dict[str, Any]:
        span = text.span if isinstance(text, FailedCondition) else None
        blockers = text.events if isinstance(text, FailedCondition) else ()
        return {
            "parts": words_of(text.replace(", #slice", "") if extra else text),
            "place": place_of(span),
            "events": [event(item) for item in blockers],
        }

    rows: list[dict[str, Any]] = [
        {
            "rule": miss.rule, "place": place_of(rules[miss.rule].span) if miss.rule in rules else None, "total": miss.total,
            "parts": [event(part) for part in miss.parts], "failed": [failed(text) for text in miss.failed],
        }
        for miss in misses
    ]  # fmt: skip
    return sorted(rows, key=farness)


def farness(miss: Mapping[str, Any]) -> tuple[int, float]:
    """How far a rule was from deriving an event: what failed counts first."""
    return len(miss["failed"]), -len(miss["parts"]) / max(1, miss["total"])


def words_of(text: str) -> list[dict[str, object]]:
    """A message with what is code among its words."""
    return [{"text": part, "code": number % 2 == 1} for number, part in enumerate(text.split("`")) if part]


def place_of(span: Span | None) -> dict[str, Any] | None:
    """Where something is written, as JavaScript counts: in units of UTF-16."""
    if span is None or not span.source.text or span.start == span.end:
        return None
    text = span.source.text

    def units(end: int) -> int:
        return len(text[:end].encode("utf-16-le", "surrogatepass")) // 2

    return {"source": span.source.name, "from": units(span.start), "to": units(span.end)}
