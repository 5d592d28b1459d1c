"""A session learns: facts that are asserted and retracted while it runs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from augury.algebra.place import reading
from augury.algebra.plan import static_calls
from augury.core.arrays import RowIds
from augury.core.bounds import TIME_LIMIT
from augury.core.errors import DataError, RunError, nearest
from augury.engine.admission import Admission
from augury.engine.circuit import Circuit
from augury.engine.emission import EmittedRows
from augury.engine.events import Events
from augury.knowledge.facts import check_facts, facts_from
from augury.knowledge.timeline import Statement
from augury.storage.table import END, START

if TYPE_CHECKING:
    from augury.compiled import Compiled
    from augury.engine.session_core import SessionCore


def statements_from(session: SessionCore, facts: Any) -> list[Statement]:
    """Statements of facts, in any form that facts come in. One without a time holds from now on."""
    plan = session.program.plan
    read = facts_from(facts, plan, session.clock)
    check_facts(read, plan)
    statements: list[Statement] = []
    for table in read.statement_tables:
        for statement in table:
            fact = replace(statement.fact, since=session.now) if statement.fact.since is None else statement.fact
            for time in (fact.since, fact.until):
                if time is not None and abs(time) >= TIME_LIMIT:
                    raise DataError(f"a time too far from the origin: {session.clock.show(time)}")
            statements.append(Statement(fact, statement.retract))
    return statements


def known_name(session: SessionCore, name: str) -> None:
    asked = {n for n, _ in static_calls(session.program.plan)} | set(session.program.plan.static)
    if name not in asked:
        close = nearest(name, asked)
        hint = f"did you mean `{close}`?" if close else f"it asks for {', '.join(sorted(asked)) or 'none'}"
        raise RunError(f"nothing in the program asks for facts of `{name}`", hint=hint)


def admit_statements(session: SessionCore, statements: Iterable[Statement]) -> Admission:
    """Without statements that come too late: nothing that is settled changes any more."""
    admission, settled = Admission(), session.settled
    for statement in statements:
        since = statement.fact.since
        late = settled is not None and (since is None or since <= settled)
        (admission.late if late else admission.statements).append(statement)  # type: ignore[arg-type]
        admission.received += 1
        admission.accepted += not late
        admission.events += 1
    return admission


def unforeseen(session: SessionCore, names: set[str]) -> set[str]:
    """The facts that change unexpectedly; raises where the circuit cannot be rebuilt."""
    circuit = session.circuit
    new = names - circuit.may_change - {name for name, _ in circuit.plan.made}
    if new and (session.grown or session.pruned):
        listed = ", ".join(repr(name) for name in sorted(names | circuit.may_change))
        raise RunError(
            f"the facts of `{min(new)}` change for the first time, and some of the past is forgotten or was used by other rules",
            hint=f"say which facts may change when the session opens: changing=[{listed}]",
        )
    return new


def check_new_makers(session: SessionCore, program: Compiled) -> None:
    """Refuses new rules that make facts which running rules use, unless these are declared to change."""
    plan, circuit = session.program.plan, session.circuit
    asked = {name for name, _ in static_calls(plan)}
    for name in sorted({name for name, _ in program.plan.made} - {name for name, _ in plan.made} - circuit.may_change):
        if reading(plan, {name}) & asked:
            raise RunError(
                f"a new rule makes facts of `{name}`, for which running rules ask as if they never changed",
                hint=f"open the session with changing=['{name}']",
            )


def rewire(session: SessionCore, names: set[str]) -> None:
    """Lets more facts change: the same session on a rebuilt circuit, with all its events.

    Conditions on them are placed as they are written.
    """
    old = session.circuit
    changing = old.may_change | names
    old.knowledge.changes.unmake()
    new = Circuit(session.plan, old.clock, old.facts, old.retention, old.longest, changing, old.knowledge)
    new.errors = old.errors
    old_ids = session.input_ids
    shown = {content for answer_set in session.answers for content in _contents(answer_set, answer_set.standing())}
    for type, events in old.inputs.items():
        _copy(events, new, type)
    errors = dict(old.errors)
    new.run()
    new.errors.clear()
    new.errors.update(errors)  # what could not be computed was reported the first time
    new.settle()
    session._wire(new)
    for answer_set in session.answers:
        rows = answer_set.events.out.table.standing()
        answer_set.emitted = np.zeros(len(answer_set.events.out.table.alive), np.uint8)
        answer_set.emitted[
            [r for r, c in zip(rows.tolist(), _contents(answer_set, rows), strict=True) if c in shown]
        ] = 1
        answer_set.rebuild()
    session._index_answers()
    moved = {id(events): new.inputs[type] for type, events in old.inputs.items()}
    ids = session.input_ids
    ids.by_id = {name: (moved[id(events)], row) for name, (events, row) in old_ids.by_id.items()}
    ids.tombstones, ids.unnamed, ids.versions = old_ids.tombstones, old_ids.unnamed, old_ids.versions


def _copy(events: Events, circuit: Circuit, type: tuple[str, int]) -> None:
    target, table = circuit.input(type), events.out.table
    for chunk in events.chunks:
        rows = slice(chunk.first, chunk.first + chunk.count)
        target.add(table.data[START, rows], table.data[END, rows], list(chunk.columns), chunk.ids, chunk.traces)
    dead = np.flatnonzero(table.alive[: table.n] == 0)
    if len(dead):
        target.out.table.kill(dead)


def _contents(answers: EmittedRows, rows: RowIds) -> list[tuple[object, ...]]:
    circuit, table = answers.events.runtime, answers.events.out.table
    return [circuit.event((table, row)).content for row in rows.tolist()]
