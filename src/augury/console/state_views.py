"""What a session holds and what it costs, as data: goals and pending detections, the plan with its figures, figures over time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from augury.algebra import nodes as n
from augury.console.near_misses import place_of
from augury.console.views import MomentRequest, Nothing
from augury.console.watched import WatchedSession
from augury.core.errors import Span
from augury.core.model import Event, show_value
from augury.engine.goals import Goal
from augury.engine.inspect import metrics_of
from augury.explain.costs import profile
from augury.explain.operator_plan import OperatorPlan
from augury.notation import show_event
from augury.program import ProgramSession

LISTED = 300  # goals of a rule that are listed


class StateViews:
    """Looks at what a watched session holds."""

    def __init__(self, watched: WatchedSession) -> None:
        self.watched = watched

    # Goals

    def goals(self, request: MomentRequest) -> dict[str, Any]:
        """What has begun, rule by rule: partial matches, and detections that wait for time to pass."""
        watched = self.watched
        session = watched.session_at(watched.steps.step_at(request.moment))
        with session._lock:
            goals, pending = session.goals(), list(_pending(session))
        now = session.now
        due = {(rule, time, parts[0].id) for rule, _, time, parts in pending if parts}
        begun = [goal for goal in goals if not goal.done or (goal.rule, goal.until, goal.done[0].id) not in due]
        rows = [self._goal(goal, now) for goal in begun] + [self._pending_row(*item, session) for item in pending]
        rules: dict[str, list[dict[str, Any]]] = {}
        for row in rows:
            rules.setdefault(row["rule"], []).append(row)
        return {
            "now": now,
            "rules": [
                {"rule": label, "count": len(listed), "goals": listed[:LISTED]} for label, listed in rules.items()
            ],
        }

    def _goal(self, goal: Goal, now: int | None) -> dict[str, Any]:
        return {
            "rule": goal.rule, "kind": "match", "complete": goal.complete, "total": goal.total,
            "done": [self._event(event) for event in goal.done], "awaits": goal.awaits, "since": goal.since,
            "until": goal.until, "left": None if goal.until is None or now is None else goal.until - now,
            "binding": [{"name": name, "value": show_value(value)} for name, value in goal.binding.items()],
        }  # fmt: skip

    def _pending_row(
        self, rule: str, event: Event, due: int, parts: list[Event], session: ProgramSession
    ) -> dict[str, Any]:
        """A detection that comes at its deadline, unless something that must be absent happens before."""
        now = session.now
        return {
            "rule": rule, "kind": "pending", "complete": 1.0, "total": len(parts), "event": self._event(event),
            "done": [self._event(part) for part in parts], "unless": _unless(session, rule), "awaits": "",
            "since": event.start, "until": due, "left": None if now is None else due - now, "binding": [],
        }  # fmt: skip

    def _event(self, event: Event) -> dict[str, Any]:
        return {
            "type": event.type, "id": event.id, "kind": self.watched.kind_of(event.type), "start": event.start, "end": event.end,
            "args": [show_value(arg) for arg in event.args], "text": show_event(event, self.watched.setup.clock),
        }  # fmt: skip

    # The plan

    def plan(self, request: Nothing) -> dict[str, Any]:
        """The operators that run, with what each has read, written, kept and touched; rules with their parts of it."""
        session = self.watched.session
        with session._lock:
            costs = profile(session)
            circuit = session.circuit
            metrics = {operator.spec: metrics_of(operator) for operator in circuit.operators}
            heads = {label: head.spec for label, head in circuit.heads.items()}
            plan = OperatorPlan(session.plan, metrics, heads, session.clock, metrics)
            operators = plan.as_json()
        rules = {operator.number: list(operator.rules) for operator in costs.operators}
        places = {rule.label: place_of(_written(rule.span)) for rule in session.program.plan.rules}
        return {
            "operators": [row | {"rules": rules[row["number"]]} for row in operators if row["number"] in rules],
            "rules": [
                {"rule": r.rule, "seconds": r.seconds, "bytes": r.bytes, "rows": r.rows, "touched": r.touched, "place": places.get(r.rule)}
                for r in costs.rules
            ],
            "hints": [
                {"operator": hint.operator, "rules": list(hint.rules), "problem": hint.problem, "hint": hint.hint}
                for hint in costs.hints
            ],
        }  # fmt: skip

    # Figures over time

    def metrics(self, request: Nothing) -> dict[str, Any]:
        """Figures over time, as columns."""
        watched = self.watched
        with watched.lock:
            samples = list(watched.samples)
        labels = list(dict.fromkeys(label for sample in samples for label in sample["rules"]))
        names = ("wall", "clock", "frontier", "events", "detections", "late", "rows", "bytes", "seconds", "steps")
        return {
            **{name: [sample[name] for sample in samples] for name in names},
            "rules": {
                label: {
                    name: [sample["rules"].get(label, {}).get(name, 0) for sample in samples]
                    for name in ("rows", "bytes", "touched", "seconds")
                }
                for label in labels
            },
        }


def _written(span: Span) -> Span | None:
    return None if span.source.name.startswith("<rules") else span


def _pending(session: ProgramSession) -> Iterator[tuple[str, Event, int, list[Event]]]:
    """The derived events that wait for the clock: their rule, when they are due, and what they are made of."""
    circuit, now = session.circuit, session.now
    for emitted in session.answers:
        rows = emitted.pending()
        due = emitted.events.given_at()[rows]
        for row, time in zip(rows.tolist(), due.tolist(), strict=True):
            if now is not None and time <= now:
                continue  # it waits for what is late, not for time
            for links in emitted.events.supports:
                children = links.of(row)
                if len(children):
                    head = circuit.maker(links.child)
                    parts = [circuit.event(part) for part in head.parts(int(children[0]))]
                    yield head.rule, emitted.events.event(row), time, parts
                    break


def _unless(session: ProgramSession, rule: str) -> list[str]:
    """What must not happen, as the rule writes it."""
    written = next((item for item in session.program.plan.rules if item.label == rule), None)
    if written is None:
        return []
    absent = [absent for node in n.walk(written.body) for absent in n.absences(node)]
    return [" ".join(node.span.text.split()) for node in absent]
