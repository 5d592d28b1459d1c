"""A thread for each source: it polls, hands over what came, and waits where nobody takes it. A source that cannot be
reached is opened again and again, at longer and longer intervals.

A part of a source is idle where polls have brought nothing of it for long enough. What cannot be reached, what waits for the
session to take it, and a source that has not been opened yet are not idle: events may be there, and would be late.
"""

from __future__ import annotations

import queue
import threading
import time
from collections import Counter
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
    parts: tuple[str, ...] = ()  # from which something may come, by the names that watermarks have for them
    _listened: float = 0.0  # seconds of polls
    _polling: float | None = None  # since when
    _heard: dict[str, float] = field(
        default_factory=dict
    )  # how long had been listened when a part delivered or was new
    _handed: Counter[str] = field(
        default_factory=Counter
    )  # deliveries of each part, counted in the thread of the source
    _taken: Counter[str] = field(default_factory=Counter)  # and in that of the session
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def start(self, position: Position | None) -> None:
        self.position = position
        self.expect()
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

    def expect(self) -> None:
        """The parts of a source are known once it was opened; until then the source is awaited as a whole."""
        if self.source.facts:
            return
        named = tuple(f"{self.name}\t{part}" for part in self.source.parts()) if self.opened else ()
        for part in named:
            self._heard.setdefault(part, self._listened)
        self.parts = named or self.parts or (self.name,)

    def take(self, delivery: Delivery) -> None:
        """The session has a delivery."""
        self._taken[self.part_of(delivery)] += 1

    def part_of(self, delivery: Delivery) -> str:
        """The name of the part that a delivery is of, where time passes by itself."""
        return f"{self.name}\t{delivery.part}" if self.source.parted else self.name

    def is_idle(self, part: str, seconds: float) -> bool:
        """Whether a part has been silent for so long, or will be for ever."""
        if self._handed[part] != self._taken[part]:
            return False
        if self.ended:
            return True
        if self.problem or not self.opened:
            return False
        polling = self._polling
        waited = time.monotonic() - polling if polling is not None and self.source.blocking else 0.0
        return self._listened + waited - self._heard.get(part, 0.0) >= seconds

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
        self.expect()

    def _poll(self) -> None:
        for delivery in self._polled():
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

    def _polled(self) -> list[Delivery]:
        """What a poll brings. A process that was stopped meanwhile has not listened for so long."""
        self._polling = began = time.monotonic()
        deliveries = self.source.poll(self.most, _POLL)
        parts = [self.part_of(delivery) for delivery in deliveries]
        self._handed.update(parts)  # before the time counts
        self._polling, elapsed = None, time.monotonic() - began
        self._listened += elapsed if self.source.blocking else min(elapsed, 2 * _POLL)
        self._heard |= dict.fromkeys(parts, self._listened)
        self.expect()
        return deliveries

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
