"""Steps that happen as a whole or not at all, whatever fails and wherever.

While a step is under way, the session knows how to go back (`Turn.pending`). One assignment makes the step count: from
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
from typing import TYPE_CHECKING, Any

from augury.core.errors import AuguryError, UnusableError
from augury.engine.found import AnswerRows

if TYPE_CHECKING:
    from augury.engine.arrivals import Arrived
    from augury.engine.circuit import Circuit
    from augury.engine.session import Session

_ATTEMPTS = 3
_HINT = "free some memory and try again, or go on from a snapshot: program.restore(…)"


class Turn:
    """The lock of a session: held during a step, and by whoever looks at tables meanwhile.

    Who comes first completes or undoes what was broken off before.
    """

    def __init__(self) -> None:
        self.pending: Callable[[], None] | None = None
        self.circuit: Callable[[], Circuit | None] = lambda: None
        self._claim: dict[str, int] = {}  # the thread that takes a step, or is about to
        self._stale = False  # whether a look was broken off: indexes that it has extended are made anew
        self._lock = threading.RLock()
        self._depth = 0
        self._owner = 0
        _TURNS.add(self)

    def step(self) -> bool:
        """Begins a step; False where one is under way."""
        mine = threading.get_ident()
        if self._claim.setdefault("step", mine) != mine:  # at once: nobody comes in between
            return False
        return not (self._depth and self._owner == mine)  # a callback is inside of a step

    def stepped(self) -> None:
        """The step is over."""
        self._claim.pop("step", None)

    def __enter__(self) -> None:
        self._lock.acquire()
        self._depth += 1
        if self._depth > 1:
            return
        self._owner = threading.get_ident()
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
        mine = threading.get_ident()
        if self._claim.get("step") != mine:
            self._claim = {}
        if self._depth and self._owner != mine:
            self._lock = threading.RLock()
            self._depth = 0
            self._stale = True


_TURNS: weakref.WeakSet[Turn] = weakref.WeakSet()


def _after_fork() -> None:
    for turn in list(_TURNS):
        turn.forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def release(error: BaseException) -> None:
    """Lets go of what the frames of a failed step hold: arrays that undoing it may need the memory of."""
    if error.__traceback__ is not None:
        traceback.clear_frames(error.__traceback__)


class StepTransaction:
    """What a session was when a step began, and what becomes of it once the step counts."""

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

    def __init__(self, session: Session) -> None:
        self.session, self.circuit = session, session._circuit
        self.mark = None if self.circuit is None else self.circuit.mark()
        self.counts = [getattr(session, name) for name in self._COUNTS]
        self.late, self.rejected = len(session.late), len(session.rejected)
        self.unknown = dict(session._intake.unknown)
        self.clock = hasattr(session, "_clock")
        self.arrived: Arrived | None = None
        self.applied = False  # whether tables may have changed
        self.given: list[AnswerRows] = []

    def opened(self, arrived: Arrived) -> None:
        """The session is open, and tables are about to change."""
        self.arrived = arrived
        self.applied = True

    def undo(self) -> None:
        """Restores the session. It may be broken off and called again."""
        session, circuit = self.session, self.circuit
        for name, value in zip(self._COUNTS, self.counts, strict=True):
            setattr(session, name, value)
        del session.late[self.late :]
        del session.rejected[self.rejected :]
        session._intake.unknown = dict(self.unknown)
        if circuit is None:
            session.close()
            if not self.clock:
                session.__dict__.pop("_clock", None)
        elif self.applied:
            assert self.mark is not None
            circuit.tables.guard.end()
            circuit.undo(self.mark, session.shared is not None)
            if self.arrived is not None:
                session.arrivals.undo(self.arrived)
            for one in session.answers:
                one.rebuild()
            session._index_answers()
        session._turn.pending = None

    def complete(self) -> None:
        """Does what is left once the step counts. It may be broken off and called again."""
        session = self.session
        for one in session.answers:
            one.show()
        session.circuit.settle()
        session._unseen.update(self.given)
        session._turn.pending = None


class Compaction:
    """A session whose tables are about to be replaced by smaller ones: what they were, until they are."""

    def __init__(self, session: Session) -> None:
        self.session, circuit = session, session.circuit
        tables = [operator.out.table for operator in circuit.operators]
        keep: list[Any] = [*circuit.operators, *tables, *session.answers, circuit.tables, session.arrivals]
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
        session._turn.pending = None
