"""Looking into a session: why an event stands, why another does not, and what it all costs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Literal

from augury.core.errors import RunError
from augury.core.model import Event, content_id
from augury.engine.horizon import remembers
from augury.engine.trace import Derivations
from augury.explain.why import derivation_tree, show_tree, tree_as_json, tree_as_mermaid
from augury.explain.why_not import misses_as_json, show_misses
from augury.explain.why_not import why_not as nearest_misses
from augury.pictures import Explanation

if TYPE_CHECKING:
    from augury.engine.session import Session


def why(session: Session, event: Event, all: bool = False, format: Literal["text", "json", "mermaid"] = "text") -> str:
    """The derivation of an event that stands, as a tree; with `all`, every derivation that is held."""
    model = Derivations(session.circuit, None)
    if not isinstance(event, Event) or (id := content_id(event.type, event.args, event.start, event.end)) not in model:
        raise RunError(
            f"{event} does not stand", hint="give an event that the session has told of; why_not says why it is missing"
        )
    tree = derivation_tree(_SessionDerivations(model), Event(event.type, event.args, event.start, event.end, id), all)  # type: ignore[arg-type]
    _one_of(format, "text", "json", "mermaid")
    if format == "json":
        return json.dumps(tree_as_json(tree, session.clock), ensure_ascii=False)
    prefixes = session.program.plan.prefixes
    if format == "mermaid":
        return tree_as_mermaid(tree, session.clock, prefixes)
    return Explanation(show_tree(tree, session.clock, prefixes))


def why_not(session: Session, atom: str, format: Literal["text", "json"] = "text") -> str:
    """Why an event such as `alarm('l1')` was not detected: for each rule the nearest partial match and what failed."""
    circuit = session.circuit
    tables = [
        *(events.out.table for type, events in circuit.inputs.items() if type not in circuit.derived),
        *(events.out.table for events in circuit.derived.values()),
    ]
    held = [circuit.event((t, row)) for t in tables for row in t.standing().tolist()]
    context = circuit.context
    misses = nearest_misses(
        session.program.plan,
        circuit.rules.values(),
        held,
        session.clock,
        circuit.proofs,
        context.scalars,
        atom,
        session.now,
    )
    _one_of(format, "text", "json")
    if format == "json":
        return json.dumps(misses_as_json(misses, session.clock), ensure_ascii=False)
    return Explanation(show_misses(misses, session.clock))


def stats(session: Session) -> dict[str, Any]:
    """What the session has seen and what it holds: rows and bytes, by operator and rule; ids revoked so far."""
    circuit = session.circuit
    operators = [
        {
            "operator": o.kind,
            "rule": o.rule,
            "rows": o.out.table.live,
            "bytes": o.bytes,
            "touched": o.touched,
            **o.about(),
        }
        for o in circuit.operators
    ]
    rules: dict[str, dict[str, int]] = {}
    for one in operators:
        if one["rule"]:
            total = rules.setdefault(str(one["rule"]), {"rows": 0, "bytes": 0, "touched": 0})
            for name in total:
                total[name] += int(one[name])
    remembering = remembers(circuit)
    return {
        "events": session.counted,
        "received": session.received,
        "accepted": session.accepted,
        "repeated": session.repeated,
        "matches": session.matched,
        "late": session.late_count,
        "rejected": len(session.rejected),
        "malformed": 0,  # what is malformed is refused with all of its push
        "errors": sum(circuit.errors.values()),
        "steps": session.steps,
        "clock": None if session.now is None else session.clock.show(session.now),
        "forgets": session.settled is not None and not remembering,
        "remembers": remembering,  # rules that nothing bounds, however old what they hold is
        "rows": sum(o.out.table.live for o in circuit.operators) + circuit.knowledge.learned,
        "bytes": circuit.bytes,
        "values": circuit.tables.dictionary.n,
        "tombstones": len(session.input_ids.tombstones),
        "knowledge": {
            "facts": sum(map(len, circuit.knowledge.relations.values())),
            "entries": sum(len(r.timelines) for r in circuit.knowledge.relations.values()),
            "tabled": circuit.knowledge.solver.size,
            "values": circuit.knowledge.words.n,
            "bytes": circuit.knowledge.bytes,
            "changes": circuit.knowledge.version,
        },
        "rules": rules,
        "operators": operators,
    }


class _SessionDerivations:
    """What of a session `derivation_tree` looks at."""

    def __init__(self, derivations: Derivations) -> None:
        self.derivations, self.makers = derivations, derivations.circuit.plan.makers

    @property
    def all_events(self) -> list[Event]:
        """Those that made facts."""
        circuit = self.derivations.circuit
        found = [(events, row) for events, row in self.derivations.parts.values() if events.type in self.makers]
        return sorted((circuit.event((events.out.table, row)) for events, row in found), key=lambda e: e.order)


def _one_of(format: str, *known: str) -> None:
    if format not in known:
        raise RunError(f"unknown format `{format}`", hint=f"there is {', '.join(known)}")
