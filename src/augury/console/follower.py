"""A thread that follows sources or a stream while a console shows them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from threading import Event as Signal
from threading import Thread


class Follower(ABC):
    """Runs in a thread of its own from `start` to `stop`."""

    def __init__(self) -> None:
        self.stopping = Signal()
        self._thread = Thread(target=self._run, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self.stopping.set()
        self._thread.join(5)

    @abstractmethod
    def _run(self) -> None:
        """What the thread does, until it is stopping."""
