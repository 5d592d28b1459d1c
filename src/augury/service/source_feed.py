"""A thread for each source: it polls, hands over what came, and waits where nobody takes it. A source that cannot be
reached is opened again and again, at longer and longer intervals."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from augury.connectors import Delivery, EventSource, Position, UnavailableError, redacted
from augury.core.errors import AuguryError

_POLL = 0.2  # seconds that a source waits for something
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 15.0  # seconds between two attempts to open a source
Arrivals = queue.Queue[tuple["SourceFeed", Delivery]]


@dataclass(eq=False)
class SourceFeed:
    """A source with its thread. `problem` says why it cannot be read, `error` why it never will be."""

    name: str
    source: EventSource
    arrivals: Arrivals
    most: int
    log: Callable[[str, str], None]
    position: Position | None = None  # behind what was handed over
    problem: str = ""
    error: BaseException | None = None
    ended: bool = False
    opened: bool = False
    active: dict[str, float] = field(default_factory=dict)  # when each part last delivered
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def start(self, position: Position | None) -> None:
        self.position = position
        self._thread = threading.Thread(target=self._run, name=f"augury {self.name}", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()

    def join(self) -> None:
        if self._thread is not None:
            self._thread.join(5)

    def commit(self, position: Position) -> None:
        """What is on disk here need not be delivered again."""
        try:
            with self._lock:
                if self.opened:
                    self.source.commit(position)
        except UnavailableError as error:  # committed with the next step, or delivered again and known
            self.problem = redacted(error)

    def lag(self) -> int | None:
        return self.source.lag() if self.opened else None

    def parts(self) -> tuple[str, ...]:
        """The parts of the source, by the names that watermarks have for them."""
        return tuple(f"{self.name}\t{part}" for part in self.source.parts()) if self.opened else ()

    def _run(self) -> None:
        try:
            pause = _FIRST_PAUSE
            while not self._stop.is_set() and not self.ended:
                try:
                    self._open()
                    while not self._stop.is_set() and not self.ended:
                        self._poll()
                        pause = _FIRST_PAUSE
                except UnavailableError as error:
                    self._set_problem(redacted(error))
                    self._close()
                    self._stop.wait(pause)
                    pause = min(2 * pause, _LONGEST_PAUSE)
        except BaseException as error:  # the service ends with it
            self.error = error
        finally:
            self._close()

    def _open(self) -> None:
        with self._lock:
            self.source.open(self.position)
            self.opened = True

    def _poll(self) -> None:
        for delivery in self.source.poll(self.most, _POLL):
            self.active[delivery.part] = time.monotonic()
            while not self._stop.is_set():
                try:
                    self.arrivals.put((self, delivery), timeout=_POLL)
                    self.position = delivery.position
                    break
                except queue.Full:
                    continue
        if self.problem:
            self._set_problem("")
        self.ended = self.source.finished

    def _set_problem(self, problem: str) -> None:
        if bool(problem) != bool(self.problem):
            self.log("warning" if problem else "info", f"{self.name}: {problem or 'available again'}")
        self.problem = problem

    def _close(self) -> None:
        with self._lock:
            self.opened = False
            try:
                self.source.close()
            except (AuguryError, OSError) as error:
                self.log("warning", f"{self.name}: {redacted(error)}")
