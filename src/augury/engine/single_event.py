"""A step of one event that is plainly accepted: a batch of one, without columns of one element."""

from __future__ import annotations

from typing import TYPE_CHECKING

from augury.core.bounds import TIME_LIMIT
from augury.core.jit import Kernel, count_work
from augury.core.model import MAX_INT, MIN_INT, Event
from augury.engine.atomic import StepTransaction
from augury.engine.changes import Changes
from augury.engine.input_ids import is_content_id

if TYPE_CHECKING:
    from augury.engine.session_core import SessionCore

_INFINITE = float("inf")


def push_event(session: SessionCore, event: Event) -> Changes | None:
    """The changes of a step that takes in one event; None where admission has more to decide, and nothing was done."""
    circuit = session._circuit
    if circuit is None or not _accepts(session, event):
        return None
    tables = circuit.tables
    held = tables.rows + tables.dictionary.n + circuit.knowledge.words.n  # facts that rules make are rows, too
    if held > session._heavy or tables.rows > (session._kept + tables.guard.rows) // 2:
        session._prune_if_worth()
    step = StepTransaction(session)
    session._lock.pending = step.undo
    try:
        step.applied = True
        if not Kernel.compiled:
            count_work(1)
        circuit.begin()
        events = circuit.inputs[event.type, len(event.args)]
        row, ids = events.add_event(event), session.input_ids
        if event.id:
            ids.add(events, row, (event.id,))
        else:
            ids.unnamed = True
        circuit.run()
        session.counted += 1
        session.received += 1
        session.accepted += 1
        changes, goals = session._end_step(step, event.end, False)
        session._lock.pending = step.complete  # from here on the step counts
    except BaseException as error:
        session._undo_failed(error)
        raise
    session._complete(step, changes, goals, [])
    return changes


def _accepts(session: SessionCore, event: Event) -> bool:
    """Whether an event is accepted as it is: of a known type and plain values, so that reading it would change nothing,
    not late, and under an id of its own that nothing else has."""
    args, start, end, id = event.args, event.start, event.end, event.id
    ids, rules, greatest, lateness = session.input_ids, session._rules, session.greatest, session.lateness
    if not -TIME_LIMIT < start <= end < TIME_LIMIT or (rules.longest is not None and end - start > rules.longest):
        return False
    if session.advanced is not None and end <= session.advanced:
        return False
    if lateness is not None and greatest is not None and end < greatest - lateness:
        return False
    if ids.copied:
        return False
    if not id:
        if ids.tombstones:
            return False
    elif id in ids.by_id or id in ids.tombstones or id in ids.versions or (ids.unnamed and is_content_id(id)):
        return False
    intake, plan = session._intake, session.program.plan
    if plan is not intake.plain_plan:
        intake.expect(plan)
    kinds = intake.plain.get((event.type, len(args)))
    if kinds is None or event.known is not None or event.version or type(args) is not tuple or len(kinds) != len(args):
        return False
    for value, allowed in zip(args, kinds):  # noqa: B905 a check of lengths that is made already
        kind = type(value)
        if kind not in allowed:
            return False
        if kind is float:
            if not 0.0 < abs(value) < _INFINITE:  # type: ignore[arg-type]
                return False
        elif kind is int:
            if not MIN_INT <= value <= MAX_INT:  # type: ignore[operator]
                return False
        elif kind is str and not value.isascii():  # type: ignore[union-attr]
            return False
    return True
