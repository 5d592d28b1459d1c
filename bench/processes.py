"""CPU time and memory of a process and all that it has started, as Linux counts them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread
from time import perf_counter
from typing import TypeVar

from augury.core.errors import RunError

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
        raise RunError("CPU time of several processes is counted from /proc, which only Linux has")


def spent(work: Callable[[], T]) -> tuple[Cost, T]:
    """What a piece of work costs in all processes, and what it gave."""
    before = _used()
    result = work()
    return _used() - before, result


@contextmanager
def peak() -> Iterator[Callable[[], Memory]]:
    """The most memory that all processes together hold meanwhile, sampled."""
    with _sampled(_resident) as seen:
        yield lambda: max(seen, key=lambda memory: memory.total)


@contextmanager
def _sampled(look: Callable[[], T]) -> Iterator[list[T]]:
    """What is seen at the beginning and, again and again, meanwhile."""
    seen = [look()]
    done = Event()

    def watch() -> None:
        while not done.wait(_SAMPLE):
            seen.append(look())

    thread = Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield seen
    finally:
        done.set()
        thread.join()


@dataclass(frozen=True)
class Used:
    """What a command used with all that it started: CPU seconds, those of Java among them, the time, and bytes.

    `held` is the most that one process held; where there are several, what they were seen to hold together.
    """

    cpu: float
    jvm: float
    wall: float
    held: int


def alone(command: Sequence[str]) -> Used:
    """Runs a command to its end; it writes nowhere, and has to end well."""
    check_system()
    with TemporaryDirectory(prefix="augury-") as folder:
        report = Path(folder) / "used.json"
        start = [sys.executable, "-I", str(Path(__file__).with_name("alone.py")), str(report), *command]
        # Installed modules are compiled; those in a folder of sources are by the first run, unless this is forbidden.
        compiled = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        with subprocess.Popen(
            start, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=compiled
        ) as process:
            with _sampled(partial(_seen, process.pid)) as seen:
                _, said = process.communicate()
            if process.returncode:
                raise RunError(f"`{' '.join(command)[:200]}` ended with {process.returncode}: {said[-2000:]}")
        told = json.loads(report.read_text(encoding="utf-8"))
    jvm, together = max(jvm for jvm, _ in seen), max(held for _, held in seen)
    return Used(told["cpu"], jvm, told["wall"], max(told["bytes"], together if jvm else 0))


def _seen(root: int) -> tuple[float, int]:
    """The CPU time of Java below a process, and the memory of all."""
    return _used(root).jvm, _resident(root).total


def _used(root: int | None = None) -> Cost:
    jvm = python = 0.0
    for process in _tree(root):
        if process.name == "java":
            jvm += process.own
            python += process.ended  # the workers that Spark has started
        else:
            python += process.own + process.ended
    return Cost(jvm, python, perf_counter())


def _resident(root: int | None = None) -> Memory:
    pages = [(process.name == "java", process.pages * os.sysconf("SC_PAGE_SIZE")) for process in _tree(root)]
    return Memory(sum(held for java, held in pages if java), sum(held for java, held in pages if not java))


def _tree(root: int | None = None) -> Iterator[_Process]:
    """A process, by default this one, and its descendants; nothing once it has ended."""
    known = {int(entry.name): found for entry in _PROC.iterdir() if entry.name.isdigit() if (found := _read(entry))}
    children: dict[int, list[int]] = {}
    for number, process in known.items():
        children.setdefault(process.parent, []).append(number)
    todo = [number for number in (root or os.getpid(),) if number in known]
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
