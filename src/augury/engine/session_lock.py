"""One writer of a session at a time; readers wait. A hold of the lock ends with the call that took it, whatever ends the call.

No `with` or `finally` releases a lock for certain: Control-C may strike between the lines that take and release it. So
a hold knows the frame of the call that took it, and counts only while that frame runs. Whoever finds the hold of a call
that is over drops it.
"""

from __future__ import annotations

import gc
import os
import sys
import traceback
import weakref
from collections.abc import Callable
from queue import Empty, SimpleQueue
from threading import get_ident
from types import FrameType
from typing import TYPE_CHECKING

from augury.core.errors import AuguryError, RunError, UnusableError, too_deep

if TYPE_CHECKING:
    from augury.engine.circuit import Circuit

_ATTEMPTS = 3
_LOOK_SECONDS = 0.05  # how long to wait before looking whether the call that holds the lock still runs
_HINT = "free some memory and try again, or go on from a snapshot: program.restore(…)"


class _Hold:
    """A call that reads or writes a session, or waits to."""

    __slots__ = ("frame", "thread", "turn", "writes")

    def __init__(self, frame: FrameType, writes: bool) -> None:
        self.frame, self.thread, self.writes = frame, get_ident(), writes
        self.turn: SimpleQueue[None] | None = None  # wakes the call, where it waits

    @property
    def running(self) -> bool:
        """Whether the call is not over: a frame that runs cannot be cleared."""
        try:
            self.frame.clear()
        except RuntimeError:
            return True
        return False


class SessionLock:
    """One writer at a time; readers of tables wait until its step is over. Whoever comes first is first.

    Whoever enters first completes or undoes a step that was broken off before. A function takes the lock once, and no
    generator takes it: its frame may rest.
    """

    def __init__(self) -> None:
        self.pending: Callable[[], None] | None = None
        self.circuit: Callable[[], Circuit | None] = lambda: None
        self._stale = False  # whether a reader was broken off: indexes that it has extended are made anew
        self._holds: list[_Hold] = []  # the first has the lock, the others wait; no change of it can be broken off
        _LOCKS.add(self)

    def enter_step(self, frame: FrameType) -> None:
        """Begins a step; raises where one is under way, in another thread or around a callback."""
        holds = self._holds
        if holds and self._inside():
            raise _in_use()
        hold = _Hold(frame, True)
        holds.append(hold)
        if holds[0] is not hold or self.pending is not None or self._stale:
            self._settled(hold)

    def leave_step(self) -> None:
        """The step is over."""
        holds = self._holds
        del holds[0]
        if holds:
            self._wake()

    def __enter__(self) -> None:
        if not self._inside():
            hold = _Hold(sys._getframe(1), False)
            self._holds.append(hold)
            self._settled(hold)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        hold = self._holds[0]
        if hold.frame is not sys._getframe(1):
            return  # inside a step, or another read
        if kind is not None and not issubclass(kind, AuguryError):
            self._stale = True
        self.leave_step()

    def _inside(self) -> bool:
        """Whether this thread has the lock; raises where it waits for it, and a handler of signals asks."""
        if not self._holds:
            return False
        mine, holds = get_ident(), tuple(self._holds)
        inside = any(hold.thread == mine and hold.running for hold in holds)
        if inside and holds[0].thread != mine:
            raise _in_use()
        return inside

    def _settled(self, hold: _Hold) -> None:
        """Waits for the turn of a hold, and settles what was broken off before."""
        try:
            if self._holds[0] is not hold:
                self._wait(hold)
            if self.pending is not None or self._stale:
                self.settle()
        except BaseException:
            self._holds.remove(hold)
            self._wake()
            raise

    def _wait(self, hold: _Hold) -> None:
        """Waits for the holds that came before; a step does not wait for another step."""
        turn = hold.turn = SimpleQueue[None]()
        while (first := self._holds[0]) is not hold:
            if not first.running:
                self._drop(first)
                continue
            holds = tuple(self._holds)  # in one piece: whoever is before may leave at any moment
            if hold.writes and any(other.writes and other.running for other in holds[: holds.index(hold)]):
                raise _in_use()
            try:
                turn.get(timeout=_LOOK_SECONDS)
            except Empty:
                continue

    def _drop(self, hold: _Hold) -> None:
        """Takes out the hold of a call that is over."""
        if not hold.writes:
            self._stale = True
        try:
            self._holds.remove(hold)
        except ValueError:  # another thread has found it, too
            return

    def _wake(self) -> None:
        for first in self._holds[:1]:
            if first.turn is not None:
                first.turn.put(None)

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
        """In a child process: the other threads are not there any more."""
        mine = [hold for hold in self._holds if hold.thread == get_ident()]
        if len(mine) < len(self._holds):
            self._holds, self._stale = mine, True


class ExclusiveStep:
    """One writer at a time: what a method of a session does inside a `with`."""

    __slots__ = ("lock",)

    def __init__(self, lock: SessionLock) -> None:
        self.lock = lock

    def __enter__(self) -> None:
        self.lock.enter_step(sys._getframe(1))

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.lock.leave_step()
        if kind is not None and issubclass(kind, RecursionError):
            raise too_deep() from None


_LOCKS: weakref.WeakSet[SessionLock] = weakref.WeakSet()


def _after_fork() -> None:
    for lock in list(_LOCKS):
        lock.forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def _in_use() -> RunError:
    return RunError("the session is in use", hint="one thread at a time pushes; a callback must not push")


def release(error: BaseException) -> None:
    """Releases the arrays that frames of a failed step hold: undo may need their memory."""
    if error.__traceback__ is not None:
        traceback.clear_frames(error.__traceback__)
