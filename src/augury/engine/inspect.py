"""Statistics of a session: its inputs, its state, and the cost of each operator."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from augury.engine.horizon import remembers
from augury.planner.specs import RederiveSpec, Spec

if TYPE_CHECKING:
    from augury.engine.operators.base import Operator
    from augury.engine.session import Session


class OperatorMetrics(NamedTuple):
    """Metrics of an operator: rows read and written, rows and bytes that it holds, rows looked at, and the time."""

    rows_in: int
    rows_out: int
    rows: int
    bytes: int
    touched: int
    seconds: float

    def __str__(self) -> str:
        done = f"{self.rows_in:,} in, {self.rows_out:,} out, {self.rows:,} kept, {self.touched:,} touched"
        return f"{done}, {self.seconds * 1000:.1f} ms"


def metrics_of(operator: Operator) -> OperatorMetrics:
    """The metrics of an operator since the session was opened or resumed."""
    read, table = sum(view.table.written for view in operator.inputs), operator.out.table
    return OperatorMetrics(read, table.written, table.live, operator.bytes, operator.touched, operator.seconds)


def numbered(specs: Iterable[Spec]) -> dict[Spec, int]:
    """The numbers of operators in a plan: `explain`, `profile` and `stats` name an operator by its number."""
    return {spec: number for number, spec in enumerate((s for s in specs if not isinstance(s, RederiveSpec)), 1)}


def stats(session: Session) -> dict[str, Any]:
    """Statistics: inputs, rows and bytes by operator and rule, and ids revoked so far."""
    circuit = session.circuit
    number = numbered(o.spec for o in circuit.operators)
    operators: list[dict[str, Any]] = []
    rules: dict[str, dict[str, float]] = {}
    for operator in circuit.operators:
        metrics = metrics_of(operator)._asdict()
        inputs = [number[rows.source] for rows in operator.spec.inputs if rows.source in number]
        plan = {"number": number.get(operator.spec), "operator": operator.kind, "rule": operator.rule, "inputs": inputs}
        operators.append(plan | metrics | operator.about())
        if operator.rule:
            total = rules.setdefault(operator.rule, {"rows": 0, "bytes": 0, "touched": 0, "seconds": 0.0})
            for name in total:
                total[name] += metrics[name]
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
            "touched": sum(r.touched for r in circuit.knowledge.relations.values()),
            "tabled": circuit.knowledge.solver.size,
            "values": circuit.knowledge.words.n,
            "bytes": circuit.knowledge.bytes,
            "changes": circuit.knowledge.version,
        },
        "rules": rules,
        "operators": operators,
    }
