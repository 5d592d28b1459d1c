"""CPU time and memory of this process and all that it has started, as Linux counts them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread
from time import perf_counter
from typing import TypeVar

from augury.errors import RunError

_PROC = Path("/proc")
_SAMPLE = 0.2  # seconds between two looks at the memory

T = TypeVar("T")


@dataclass(frozen=True)
class Cost:
    """Seconds: CPU time of Java and of everything else, and the time by the clock."""

    jvm: float
    python: float
    wall: float

    @property
    def cpu(self) -> float:
        return self.jvm + self.python

    def __sub__(self, other: Cost) -> Cost:
        return Cost(self.jvm - other.jvm, self.python - other.python, self.wall - other.wall)


@dataclass(frozen=True)
class Memory:
    """Bytes that are resident, of Java and of everything else."""

    jvm: int = 0
    python: int = 0

    @property
    def total(self) -> int:
        return self.jvm + self.python


@dataclass(frozen=True)
class _Process:
    """What `/proc/PID/stat` says; times in seconds."""

    name: str
    parent: int
    own: float
    ended: float  # of children that have ended
    pages: int


def check_system() -> None:
    """Only Linux says what all processes of a tree have used."""
    if not (_PROC / "self" / "stat").exists():
        raise RunError("benchmarks on Spark count CPU time from /proc, which only Linux has")


def spent(work: Callable[[], T]) -> tuple[Cost, T]:
    """What a piece of work costs in all processes, and what it gave."""
    before = _used()
    result = work()
    return _used() - before, result


@contextmanager
def peak() -> Iterator[Callable[[], Memory]]:
    """The most memory that all processes together hold meanwhile, sampled."""
    seen: list[Memory] = [_resident()]
    done = Event()

    def watch() -> None:
        while not done.wait(_SAMPLE):
            seen.append(_resident())

    thread = Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield lambda: max(seen, key=lambda memory: memory.total)
    finally:
        done.set()
        thread.join()


def _used() -> Cost:
    jvm = python = 0.0
    for process in _tree():
        if process.name == "java":
            jvm += process.own
            python += process.ended  # the workers that Spark has started
        else:
            python += process.own + process.ended
    return Cost(jvm, python, perf_counter())


def _resident() -> Memory:
    pages = [(process.name == "java", process.pages * os.sysconf("SC_PAGE_SIZE")) for process in _tree()]
    return Memory(sum(held for java, held in pages if java), sum(held for java, held in pages if not java))


def _tree() -> Iterator[_Process]:
    """This process and its descendants."""
    known = {int(entry.name): found for entry in _PROC.iterdir() if entry.name.isdigit() if (found := _read(entry))}
    children: dict[int, list[int]] = {}
    for number, process in known.items():
        children.setdefault(process.parent, []).append(number)
    todo = [os.getpid()]
    while todo:
        number = todo.pop()
        yield known[number]
        todo += children.get(number, [])


def _read(entry: Path) -> _Process | None:
    try:
        text = (entry / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:  # it has ended meanwhile
        return None
    name, _, rest = text.partition("(")[2].rpartition(")")
    values = rest.split()
    ticks = os.sysconf("SC_CLK_TCK")
    own, ended = int(values[11]) + int(values[12]), int(values[13]) + int(values[14])
    return _Process(name, int(values[1]), own / ticks, ended / ticks, int(values[21]))
