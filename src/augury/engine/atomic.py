"""Steps that happen as a whole or not at all, whatever fails and wherever.

While a step is under way, the session knows how to go back (`SessionLock.pending`). One assignment makes the step count: from
then on `pending` completes it instead. Both may be broken off and called again. Whoever enters next calls them first, so
a step that could not be undone for want of memory is undone once there is some, and so is one that a fork has cut off.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from augury.engine.found import AnswerRows

if TYPE_CHECKING:
    from augury.engine.circuit import CircuitMark
    from augury.engine.emission import EmittedRows
    from augury.engine.session_core import SessionCore


class StepTransaction:
    """The state of a session when a step began, to undo it, and what is left to do once the step counts."""

    _COUNTS = (
        "greatest",
        "advanced",
        "steps",
        "counted",
        "matched",
        "late_count",
        "pruned",
        "received",
        "accepted",
        "repeated",
    )

    def __init__(self, session: SessionCore) -> None:
        self.session, self.circuit = session, session._circuit
        self.mark: CircuitMark | None = None
        if self.circuit is not None:
            self.mark = self.circuit.mark()
            session.input_ids.begin()
        self.counts = (
            session.greatest, session.advanced, session.steps, session.counted, session.matched, session.late_count,
            session.pruned, session.received, session.accepted, session.repeated,
        )  # fmt: skip
        self.late, self.rejected = len(session.late), len(session.rejected)
        self.unknown = session._intake.unknown
        self.had_clock = hasattr(session, "_clock")
        self.applied = False  # whether tables may have changed
        self.concerned: list[EmittedRows] = []  # the answers that the step may change
        self.answers: list[AnswerRows] = []  # inserted and retracted answers

    def undo(self) -> None:
        """Restores the session. It may be broken off and called again."""
        session, circuit = self.session, self.circuit
        for name, value in zip(self._COUNTS, self.counts, strict=True):
            setattr(session, name, value)
        del session.late[self.late :]
        del session.rejected[self.rejected :]
        session._intake.unknown = self.unknown
        if circuit is None:
            session.close()
            if not self.had_clock:
                session.__dict__.pop("_clock", None)
        elif self.applied:
            assert self.mark is not None
            circuit.tables.guard.watching = False
            circuit.undo(self.mark, session.shared is not None)
            session.input_ids.undo()
            for answer_set in session.answers:
                answer_set.rebuild()
            session._index_answers()
        session._lock.pending = None

    def complete(self) -> None:
        """Does what is left once the step counts. It may be broken off and called again."""
        session = self.session
        for part in self.concerned:
            part.commit()
        (self.circuit or session.circuit).settle()
        for rows in self.answers:
            session._unseen.add(rows)
        session._lock.pending = None


class Compaction:
    """A session whose tables are about to be replaced by smaller ones: what they were, until they are."""

    def __init__(self, session: SessionCore) -> None:
        self.session, circuit = session, session.circuit
        tables = [operator.out.table for operator in circuit.operators]
        keep: list[Any] = [*circuit.operators, *tables, *session.answers, circuit.tables, session.input_ids]
        self.saved = [(answer_set, dict(answer_set.__dict__)) for answer_set in keep]
        for operator, (_, attributes) in zip(circuit.operators, self.saved, strict=False):
            attributes |= {name: copy.copy(attributes[name]) for name in operator.altered}
        self.dictionary = circuit.context.dictionary
        self.values_kept, self.begins, self.pruned = circuit.values_kept, circuit.begins, session.pruned

    def undo(self) -> None:
        """Restores the tables. It may be broken off and called again."""
        session, circuit = self.session, self.session.circuit
        for answer_set, attributes in self.saved:
            answer_set.__dict__.update(attributes)
        circuit.context.dictionary = self.dictionary
        circuit.values_kept, circuit.begins, session.pruned = self.values_kept, self.begins, self.pruned
        circuit.bridge.reset()
        circuit.rebuild()
        for answer_set in session.answers:
            answer_set.rebuild()
        session._index_answers()
        session._lock.pending = None
