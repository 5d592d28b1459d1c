"""Explanations of what a session holds: why an event stands, and why another does not."""

from __future__ import annotations

import json
from typing import Literal

from augury.algebra.properties import all_properties
from augury.core.errors import RunError
from augury.core.fields import END, START
from augury.core.model import Event, content_id
from augury.engine.inspect import metrics_of
from augury.engine.session import Session
from augury.explain.derivations import ExplainedCircuit
from augury.explain.operator_plan import OperatorPlan
from augury.explain.plans import explained
from augury.explain.proofs import Proofs
from augury.explain.why import derivation_tree, show_tree, tree_as_json, tree_as_mermaid
from augury.explain.why_not import Miss, misses_as_json, show_misses
from augury.explain.why_not import why_not as nearest_misses
from augury.explain.why_not.asked import read_asked
from augury.sinks.markup import Explanation


def why(session: Session, event: Event, all: bool = False, format: Literal["text", "json", "mermaid"] = "text") -> str:
    """The derivation of an event that stands, as a tree; with `all`, every derivation that is held."""
    model = ExplainedCircuit(session.circuit, None)
    if not isinstance(event, Event) or (id := _id(event)) not in model.derivations:
        raise RunError(
            f"{event} does not stand", hint="give an event that the session has emitted; why_not says why it is missing"
        )
    tree = derivation_tree(model, Event(event.type, event.args, event.start, event.end, id), all)
    _one_of(format, "text", "json", "mermaid")
    if format == "json":
        return json.dumps(tree_as_json(tree, session.clock), ensure_ascii=False)
    prefixes = session.program.plan.prefixes
    if format == "mermaid":
        return tree_as_mermaid(tree, session.clock, prefixes)
    return Explanation(show_tree(tree, session.clock, prefixes))


def why_not(session: Session, atom: str, format: Literal["text", "json"] = "text") -> str:
    """Why an event such as `alarm('l1')` was not detected: for each rule the nearest partial match and what failed."""
    misses = misses_of(session, atom)
    _one_of(format, "text", "json")
    if format == "json":
        return json.dumps(misses_as_json(misses, session.clock), ensure_ascii=False)
    return Explanation(show_misses(misses, session.clock))


def misses_of(session: Session, atom: str) -> list[Miss]:
    """For each rule that could derive an atom, the nearest partial match among what a session holds."""
    circuit = session.circuit
    context = circuit.context
    held = held_events(session, _relevant(session, atom))
    return nearest_misses(
        session.program.plan,
        circuit.rules.values(),
        held,
        session.clock,
        Proofs(circuit.knowledge),
        context.scalars,
        atom,
        session.now,
    )


def _relevant(session: Session, atom: str) -> tuple[int, int] | None:
    """Between which times lies what an event with an interval can depend on; None where that may be anything.

    A rule looks back and ahead no longer than its horizon, unless it counts occurrences or answers instead of time.
    """
    plan = session.program.plan
    asked = read_asked(atom, session.clock, plan.prefixes)
    rules = [rule for rule in plan.rules if rule.type == asked.type]
    properties = [all_properties(plan)[rule.label] for rule in rules]
    counted = any(memory.count is not None for row in properties for memory in row.memory)
    lengths = [row.any_length for row in properties]
    if asked.interval is None or not rules or counted or None in lengths or any(rule.at_most for rule in rules):
        return None
    reach = 2 * session.clock.length(max((length for length in lengths if length is not None), default=0))
    return asked.interval[0] - reach, asked.interval[1] + reach


def held_events(session: Session, between: tuple[int, int] | None = None) -> list[Event]:
    """The events that stand and that a session still holds: inputs, and all that it derives; or those between two times."""
    circuit = session.circuit
    tables = [
        *(events.out.table for type, events in circuit.inputs.items() if type not in circuit.derived),
        *(events.out.table for events in circuit.derived.values()),
    ]
    events: list[Event] = []
    for table in tables:
        rows = table.standing()
        if between is not None:
            rows = rows[(table.data[END][rows] >= between[0]) & (table.data[START][rows] <= between[1])]
        events += [circuit.event((table, row)) for row in rows.tolist()]
    return events


def _id(event: Event) -> str:
    return content_id(event.type, event.args, event.start, event.end)


def _one_of(format: str, *formats: str) -> None:
    if format not in formats:
        raise RunError(f"unknown format `{format}`", hint=f"there is {', '.join(formats)}")


def explain_session(session: Session, format: str = "text") -> str:
    """How the program of a session is read and what runs, with what each operator has done so far."""
    circuit, program = session.circuit, session.program
    metrics = {operator.spec: metrics_of(operator) for operator in circuit.operators}
    heads = {label: head.spec for label, head in circuit.heads.items()}
    return explained(
        program.plan, OperatorPlan(session.plan, metrics, heads, session.clock, metrics), program.modules, format
    )
