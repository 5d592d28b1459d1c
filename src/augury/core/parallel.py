"""Work in several threads: pieces that share nothing, one in the calling thread. Kernels, NumPy and Arrow let the others run."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from threading import Thread
from typing import Generic, TypeVar

T = TypeVar("T")


def available_cores() -> int:
    """The cores on which this process may run."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on Linux
        return os.cpu_count() or 1


def in_threads(pieces: Sequence[Callable[[], T]], stop: Callable[[], None]) -> list[T]:
    """What each piece of work gives. Where one fails or is interrupted, `stop` asks the others to end, and it raises that
    error, of several the first one, once they have."""
    first, *others = pieces
    errors: list[BaseException] = []

    def failed(error: BaseException) -> None:
        errors.append(error)
        stop()

    tasks = [_Task(piece, failed) for piece in others]
    result: list[T] = []
    try:
        for task in tasks:
            task.start()
        result.append(first())
        for task in tasks:
            task.join()
    except BaseException as error:
        failed(error)
        for task in tasks:
            with suppress(RuntimeError):  # one that has not begun
                task.join()
    if errors:
        raise errors[0]
    return result + [task.result for task in tasks]


class _Task(Thread, Generic[T]):
    """A piece of work in a thread."""

    result: T

    def __init__(self, piece: Callable[[], T], failed: Callable[[BaseException], None]) -> None:
        super().__init__(name="augury-piece", daemon=True)
        self.piece, self.failed = piece, failed

    def run(self) -> None:
        try:
            self.result = self.piece()
        except BaseException as error:
            self.failed(error)
