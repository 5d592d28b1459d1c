"""What a session holds and what it costs, as data: goals and pending detections, the plan with its figures, figures over time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from augury.algebra import nodes as n
from augury.console.derivation_graph import without_extra
from augury.console.near_misses import place_of
from augury.console.views import MomentRequest, Nothing
from augury.console.watched_lanes import HeldSession, WatchedLanes
from augury.core.errors import RunError, Span
from augury.core.model import Event, show_value
from augury.engine.goals import Goal
from augury.engine.inspect import metrics_of
from augury.engine.session import Session
from augury.explain.costs import profile
from augury.explain.operator_plan import OperatorPlan
from augury.notation import show_event
from augury.planner.cut_rules import rule_of_part

LISTED = 300  # goals of a rule that are listed


class StateViews:
    """Looks at what a watched session holds."""

    def __init__(self, watched: WatchedLanes) -> None:
        self.watched = watched

    # Goals

    def goals(self, request: MomentRequest) -> dict[str, Any]:
        """What has begun, rule by rule: partial matches, and detections that wait for time to pass."""
        watched = self.watched
        sessions = watched.sessions_at(held_step(watched, request.moment))
        rules: dict[str, list[dict[str, Any]]] = {}
        for held in sessions:
            with held.session._lock:
                for row in self._begun(held):
                    rules.setdefault(row["rule"], []).append(row)
        times = [held.session.now for held in sessions if held.session.now is not None]
        return {
            "now": max(times, default=None),
            "rules": [
                {"rule": label, "count": len(listed), "goals": listed[:LISTED]} for label, listed in rules.items()
            ],
        }

    def _begun(self, held: HeldSession) -> list[dict[str, Any]]:
        session, now = held.session, held.session.now
        goals, pending = session.goals(), list(_pending(session))
        due = {(rule, time, parts[0].id) for rule, _, time, parts in pending if parts}
        begun = [goal for goal in goals if not goal.done or (goal.rule, goal.until, goal.done[0].id) not in due]
        return [self._goal(goal, now, held.extra) for goal in begun] + [
            self._pending_row(*row, held) for row in pending
        ]

    def _goal(self, goal: Goal, now: int | None, extra: int) -> dict[str, Any]:
        return {
            "rule": rule_of_part(goal.rule), "kind": "match", "complete": goal.complete, "total": goal.total,
            "done": [self._event(event, extra) for event in goal.done], "awaits": goal.awaits, "since": goal.since,
            "until": goal.until, "left": None if goal.until is None or now is None else goal.until - now,
            "binding": [{"name": name, "value": show_value(value)} for name, value in goal.binding.items() if not name.startswith("#")],
        }  # fmt: skip

    def _pending_row(
        self, rule: str, event: Event, due: int, parts: list[Event], held: HeldSession
    ) -> dict[str, object]:
        """A detection that comes at its deadline, unless something that must be absent happens before."""
        session, now = held.session, held.session.now
        return {
            "rule": rule_of_part(rule), "kind": "pending", "complete": 1.0, "total": len(parts), "event": self._event(event, held.extra),
            "done": [self._event(part, held.extra) for part in parts], "unless": _unless(session, rule), "awaits": "",
            "since": event.start, "until": due, "left": None if now is None else due - now, "binding": [],
        }  # fmt: skip

    def _event(self, event: Event, extra: int) -> dict[str, Any]:
        event = without_extra(event, extra)
        return {
            "type": event.type, "id": event.id, "kind": self.watched.kind_of(event.type), "start": event.start, "end": event.end,
            "args": [show_value(arg) for arg in event.args], "text": show_event(event, self.watched.setup.clock),
        }  # fmt: skip

    # The plan

    def plan(self, request: Nothing) -> dict[str, Any]:
        """The operators that run, with what each has read, written, kept and touched; rules with their parts of it.

        The buckets of a stage run the same operators, whose figures add up.
        """
        watched = self.watched
        operators: dict[int, dict[str, Any]] = {}
        rules: dict[str, dict[str, Any]] = {}
        hints: dict[tuple[int, str], dict[str, Any]] = {}
        first_numbers: dict[int, int] = {}  # of a stage: how many operators there are in those before
        places = {rule.label: place_of(_written(rule.span)) for rule in watched.plan.rules}
        for held in watched.sessions_at(watched.version):
            first = first_numbers.setdefault(held.stage, max(operators, default=-1) + 1)
            with held.session._lock:
                costs, rows = profile(held.session), _operators(held.session)
            users = {operator.number: operator.rules for operator in costs.operators}
            for row in rows:
                if row["number"] not in users:
                    continue
                labels = list(dict.fromkeys(map(rule_of_part, users[row["number"]])))
                row |= {name: [first + number for number in row[name]] for name in ("inputs", "derived_from")}
                row |= {"number": first + row["number"], "rules": labels}
                before = operators.setdefault(row["number"], row)
                if before is not row:
                    before["metrics"] = _sum(before["metrics"] or {}, row["metrics"] or {})
            for rule in costs.rules:
                label = rule_of_part(rule.rule)
                figures = {"seconds": rule.seconds, "bytes": rule.bytes, "rows": rule.rows, "touched": rule.touched}
                row = rules.setdefault(label, {"rule": label, "place": places.get(label)})
                row |= _sum(figures, {name: row[name] for name in figures if name in row})
            for hint in costs.hints:
                number = first + hint.operator
                hints[number, hint.problem] = {
                    "operator": number, "rules": list(hint.rules), "problem": hint.problem, "hint": hint.hint,
                }  # fmt: skip
        return {"operators": list(operators.values()), "rules": list(rules.values()), "hints": list(hints.values())}

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


def _operators(session: Session) -> list[dict[str, Any]]:
    """The operators of a session with their figures."""
    circuit = session.circuit
    metrics = {operator.spec: metrics_of(operator) for operator in circuit.operators}
    heads = {label: head.spec for label, head in circuit.heads.items()}
    return OperatorPlan(session.plan, metrics, heads, session.clock, metrics).as_json()


def _sum(first: Mapping[str, float], second: Mapping[str, float]) -> dict[str, float]:
    return {name: first.get(name, 0) + second.get(name, 0) for name in {**first, **second}}


def held_step(watched: WatchedLanes, moment: int | None) -> int:
    """The step whose state a question is about. Of a stream there is that of its last batch alone."""
    step = watched.steps.step_at(moment)
    if watched.looks_only and step < watched.version:
        raise RunError("a stream holds the state of its last batch alone", hint="go back to now")
    return step


def _written(span: Span) -> Span | None:
    return None if span.source.name.startswith("<rules") else span


def _pending(session: Session) -> Iterator[tuple[str, Event, int, list[Event]]]:
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


def _unless(session: Session, rule: str) -> list[str]:
    """What must not happen, as the rule writes it."""
    written = next((item for item in session.program.plan.rules if item.label == rule), None)
    if written is None:
        return []
    absent = [absent for node in n.walk(written.body) for absent in n.absences(node)]
    return [" ".join(node.span.text.split()) for node in absent]
