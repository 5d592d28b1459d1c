"""A thread for each sink: it writes steps in order, as many at a time as wait, and tries again where the sink cannot be
reached. Where too many wait, whoever offers more waits, too: a slow sink slows down the sources."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from augury.connectors import AnswerSink, Position, RenderedChanges, UnavailableError, redacted
from augury.core.errors import AuguryError, RunError

_MOST_ROWS = 50_000  # rows that wait, at most
_AT_ONCE = 20_000  # rows of one write
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 15.0


@dataclass(eq=False)
class SinkWriter:
    """A sink with its thread. `type` is that of the answers that it gets; None is all."""

    name: str
    sink: AnswerSink
    log: Callable[[str, str], None]
    refused: Callable[[str, list[tuple[str, bytes]]], None]  # what the other side refuses for good
    type: str | None = None
    problem: str = ""
    error: BaseException | None = None
    written: int = 0
    seconds: float = 0.0
    latency: float = 0.0  # of the last write, from the arrival of its first event
    latencies: Callable[[float, int], None] = lambda seconds, rows: None
    traced: Callable[[str, RenderedChanges, float], None] = lambda name, changes, seconds: None
    _last: int = 0
    _waiting: deque[tuple[RenderedChanges, float]] = field(default_factory=deque)
    _rows: int = 0
    _busy: bool = False
    _stopped: bool = False
    _changed: threading.Condition = field(default_factory=threading.Condition)
    _thread: threading.Thread | None = None

    def start(self, position: Position | None, step: int) -> None:
        """Opens the sink behind a position, which it had after a step; waits until it can be reached."""
        pause = _FIRST_PAUSE
        while True:
            try:
                self._last = max(step, self.sink.open(position) or 0)
                break
            except UnavailableError as error:
                self._set_problem(redacted(error))
                with self._changed:
                    if self._stopped or self._changed.wait_for(lambda: self._stopped, pause):
                        raise
                pause = min(2 * pause, _LONGEST_PAUSE)
        self._set_problem("")
        self._thread = threading.Thread(target=self._run, name=f"augury {self.name}", daemon=True)
        self._thread.start()

    def offer(self, changes: RenderedChanges, born: float) -> None:
        """Queues the changes of a step; waits while there are too many."""
        if self.type is not None:
            changes = _of_type(changes, self.type)
        if not len(changes) or changes.step <= self._last:
            return
        with self._changed:
            self._changed.wait_for(lambda: self._rows < _MOST_ROWS or self._stopped or self.error is not None)
            self._waiting.append((changes, born))
            self._rows += len(changes)
            self._changed.notify_all()

    def drain(self, seconds: float) -> bool:
        """Waits until all is written; whether it is."""

        def idle() -> bool:
            return self.error is not None or (not self._waiting and not self._busy)

        with self._changed:
            return self._changed.wait_for(idle, seconds) and self.error is None

    @property
    def waiting(self) -> int:
        """How many rows wait."""
        return self._rows

    def stop(self) -> None:
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    def close(self) -> None:
        self.stop()
        if self._thread is not None:
            self._thread.join(5)
        try:
            self.sink.close()
        except (AuguryError, OSError) as error:
            self.log("warning", f"{self.name}: {redacted(error)}")

    def _run(self) -> None:
        try:
            while batch := self._next():
                self._write(batch)
        except BaseException as error:  # the service ends with it
            self.error = error
        with self._changed:
            self._busy = False
            self._changed.notify_all()

    def _next(self) -> list[tuple[RenderedChanges, float]]:
        with self._changed:
            self._busy = False
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._waiting or self._stopped)
            if self._stopped:
                return []
            batch, rows = [self._waiting.popleft()], 0
            while self._waiting and rows < _AT_ONCE:
                rows += len(batch[-1][0])
                batch.append(self._waiting.popleft())
            self._busy = True
            return batch

    def _write(self, batch: list[tuple[RenderedChanges, float]]) -> None:
        steps = [changes for changes, _ in batch]
        pause = _FIRST_PAUSE
        while True:
            began = time.perf_counter()
            try:
                refused = self.sink.write(steps)
                break
            except UnavailableError as error:
                self._set_problem(redacted(error))
                with self._changed:
                    if self._changed.wait_for(lambda: self._stopped, pause):
                        raise
                pause = min(2 * pause, _LONGEST_PAUSE)
        if self.problem:
            self._set_problem("")
        self.seconds += time.perf_counter() - began
        if refused:
            self.refused(self.name, refused)
        now, rows = time.monotonic(), sum(map(len, steps))
        self.latency = now - batch[0][1]
        for changes, born in batch:
            self.latencies(now - born, len(changes))
            self.traced(self.name, changes, now - born)
        with self._changed:
            self.written += rows
            self._rows -= rows
            self._last = steps[-1].step
            self._changed.notify_all()

    def _set_problem(self, problem: str) -> None:
        if bool(problem) != bool(self.problem):
            self.log("warning" if problem else "info", f"{self.name}: {problem or 'available again'}")
        self.problem = problem


def _of_type(changes: RenderedChanges, type: str) -> RenderedChanges:
    rows = [row for row, name in enumerate(changes.types) if name == type]
    if len(rows) == len(changes):
        return changes
    return replace(
        changes,
        ops=[changes.ops[row] for row in rows],
        types=[type] * len(rows),
        ids=[changes.ids[row] for row in rows],
        lines=[changes.lines[row] for row in rows],
    )


def unwritten(writers: list[SinkWriter]) -> RunError:
    names = ", ".join(writer.name for writer in writers if writer.waiting)
    return RunError(f"{names}: not all answers could be written; they are written at the next start")
