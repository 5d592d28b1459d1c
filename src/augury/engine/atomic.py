"""Steps that happen as a whole or not at all, whatever fails and wherever.

While a step is under way, the session knows how to go back (`SessionLock.pending`). One assignment makes the step count: from
then on `pending` completes it instead. Both may be broken off and called again. Whoever enters next calls them first, so
a step that could not be undone for want of memory is undone once there is some, and so is one that a fork has cut off.
"""

from __future__ import annotations

import copy
import gc
import os
import threading
import traceback
import weakref
from collections.abc import Callable
from threading import get_ident
from typing import TYPE_CHECKING, Any

from augury.core.errors import AuguryError, RunError, UnusableError
from augury.engine.found import AnswerRows

if TYPE_CHECKING:
    from augury.engine.circuit import Circuit, CircuitMark
    from augury.engine.emission import EmittedRows
    from augury.engine.session_core import SessionCore

_ATTEMPTS = 3
_HINT = "free some memory and try again, or go on from a snapshot: program.restore(…)"


class SessionLock:
    """One writer at a time; readers of tables wait until its step is over.

    Whoever enters first completes or undoes a step that was broken off before.
    """

    def __init__(self) -> None:
        self.pending: Callable[[], None] | None = None
        self.circuit: Callable[[], Circuit | None] = lambda: None
        self._claim: dict[str, int] = {}  # the thread that takes a step, or is about to
        self._stale = False  # whether a reader was broken off: indexes that it has extended are made anew
        self._lock = threading.RLock()
        self._depth = 0
        self._owner = 0
        _LOCKS.add(self)

    def enter_step(self) -> None:
        """Begins a step; raises where one is under way, in another thread or around a callback."""
        mine = get_ident()
        inside = self._depth and self._owner == mine
        if inside or self._claim.setdefault("step", mine) != mine:  # at once: no thread comes in between
            raise RunError("the session is in use", hint="one thread at a time pushes; a callback must not push")
        try:
            self.__enter__()
        except BaseException:
            self._claim.pop("step", None)
            raise

    def leave_step(self) -> None:
        """The step is over."""
        self._depth -= 1
        self._lock.release()
        self._claim.pop("step", None)

    def __enter__(self) -> None:
        self._lock.acquire()
        self._depth += 1
        if self._depth > 1:
            return
        self._owner = get_ident()
        if self.pending is not None or self._stale:
            try:
                self.settle()
            except BaseException:
                self._leave()
                raise

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None and "step" not in self._claim and not issubclass(kind, AuguryError):
            self._stale = True
        self._leave()

    def _leave(self) -> None:
        self._depth -= 1
        self._lock.release()

    def settle(self, cause: BaseException | None = None) -> None:
        """Completes or undoes what is pending; raises where that cannot be done now."""
        interrupt: BaseException | None = None
        for attempt in range(_ATTEMPTS):
            try:
                if self.pending is not None:
                    self.pending()
                elif self._stale and (circuit := self.circuit()) is not None:
                    circuit.rebuild()
                self._stale = False
                break
            except (KeyboardInterrupt, SystemExit) as error:
                interrupt = error
            except BaseException as error:
                cause = cause or error
                release(error)
                if attempt:
                    gc.collect()
        else:
            said = f": {type(cause).__name__}: {cause}" if cause is not None else ""
            raise UnusableError(f"a step failed and cannot be undone{said}", hint=_HINT) from cause
        if interrupt is not None:
            raise interrupt

    def forked(self) -> None:
        """In a child process: a thread that held the lock is not there any more."""
        mine = get_ident()
        if self._claim.get("step") != mine:
            self._claim = {}
        if self._depth and self._owner != mine:
            self._lock = threading.RLock()
            self._depth = 0
            self._stale = True


_LOCKS: weakref.WeakSet[SessionLock] = weakref.WeakSet()


def _after_fork() -> None:
    for lock in list(_LOCKS):
        lock.forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def release(error: BaseException) -> None:
    """Lets go of what the frames of a failed step hold: arrays that undoing it may need the memory of."""
    if error.__traceback__ is not None:
        traceback.clear_frames(error.__traceback__)


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
            circuit.tables.guard.end()
            circuit.undo(self.mark, session.shared is not None)
            session.input_ids.undo()
            for one in session.answers:
                one.rebuild()
            session._index_answers()
        session._lock.pending = None

    def complete(self) -> None:
        """Does what is left once the step counts. It may be broken off and called again."""
        session = self.session
        for one in self.concerned:
            one.commit()
        session.circuit.settle()
        if self.answers:
            session._unseen.update(self.answers)
        session._lock.pending = None


class Compaction:
    """A session whose tables are about to be replaced by smaller ones: what they were, until they are."""

    def __init__(self, session: SessionCore) -> None:
        self.session, circuit = session, session.circuit
        tables = [operator.out.table for operator in circuit.operators]
        keep: list[Any] = [*circuit.operators, *tables, *session.answers, circuit.tables, session.input_ids]
        self.saved = [(one, dict(one.__dict__)) for one in keep]
        for operator, (_, attributes) in zip(circuit.operators, self.saved, strict=False):
            attributes |= {name: copy.copy(attributes[name]) for name in operator.altered}
        self.dictionary = circuit.context.dictionary
        self.values_kept, self.begins, self.pruned = circuit.values_kept, circuit.begins, session.pruned

    def undo(self) -> None:
        """Restores the tables. It may be broken off and called again."""
        session, circuit = self.session, self.session.circuit
        for one, attributes in self.saved:
            one.__dict__.update(attributes)
        circuit.context.dictionary = self.dictionary
        circuit.values_kept, circuit.begins, session.pruned = self.values_kept, self.begins, self.pruned
        circuit.bridge.reset()
        circuit.rebuild()
        for one in session.answers:
            one.rebuild()
        session._index_answers()
        session._lock.pending = None
