"""What a session has seen, what it holds, and what that costs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from augury.engine.horizon import remembers

if TYPE_CHECKING:
    from augury.engine.session import Session


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
