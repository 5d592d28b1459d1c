"""CPU time of a workload: loading and compilation apart, the best of several runs.

CPU time counts all threads of the process, so that using a second core is no advantage.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from time import process_time
from typing import Any, Protocol, TypeVar, cast

import augury
from augury.core.jit import HOT, count_work
from augury.core.model import Change
from bench.workload import Revoke, Tables, Workload

WARM_SHARE = 10  # the warm-up takes the first tenth of the steps

T = TypeVar("T")


class Changes(Protocol):
    """What a step changed: its length costs nothing, its elements are made when they are looked at."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[Change]: ...


class Session(Protocol):
    """What the benchmarks use of a session."""

    def push(self, given: Any, /) -> Changes: ...

    def revoke(self, ids: Any, /) -> Changes: ...


class Open(Protocol):
    """Makes a session of a program. Tests put the reference evaluator here."""

    def __call__(self, program: augury.Program, /, **options: Any) -> Session: ...


def open_session(program: augury.Program, /, **options: Any) -> Session:
    """A session whose kernels are compiled from the first event on, as they are in any long run."""
    count_work(HOT)
    return cast(Session, program.session(clock="logical", **options))


@dataclass(frozen=True)
class Settings:
    """How much of everything: events of a stream, runs of which the best counts, what is measured, and whether sessions are measured beside runs."""

    events: int = 1_000_000
    repeat: int = 3
    open: Open = open_session
    sessions: bool = False
    threads: int = 1  # of runs: CPU time counts all of them, so that one is the measure


@dataclass(frozen=True)
class Timing:
    """`cpu` is the best run; `warm` is the warm-up, in which kernels are compiled or fetched."""

    cpu: float
    warm: float
    answers: int


def timed(work: Callable[[], T]) -> tuple[float, T]:
    """The CPU time of one piece of work, and what it gave, after what was left over is cleared away."""
    gc.collect()
    return clocked(work)


def clocked(work: Callable[[], T]) -> tuple[float, T]:
    began = process_time()
    result = work()
    return process_time() - began, result


def best(work: Callable[[], T], repeat: int) -> tuple[float, T]:
    """The least CPU time of some runs, and what the first of them gave."""
    runs = [timed(work) for _ in range(max(1, repeat))]
    return min(cpu for cpu, _ in runs), runs[0][1]


def measure(workload: Workload, settings: Settings, **options: Any) -> Timing:
    """Runs a workload in new sessions of one program."""
    program = augury.compile(workload.text)
    open_one = partial(settings.open, program, **options, **facts_of(workload))
    warm, _ = timed(partial(give, open_one(), warm_steps(workload.steps)))
    runs = [timed(partial(give, open_one(), workload.steps)) for _ in range(max(1, settings.repeat))]
    answers = standing(open_one(), workload.steps) if workload.revises else runs[-1][1]
    return Timing(min(cpu for cpu, _ in runs), warm, answers)


def warm_steps(steps: Sequence[Tables | Revoke]) -> list[Tables | Revoke]:
    """The first tenth, and on to the first revocation where there is one: its kernels are compiled, too."""
    enough = max(1, len(steps) // WARM_SHARE)
    revokes = [number for number, step in enumerate(steps) if isinstance(step, Revoke)]
    return list(steps[: max(enough, revokes[0] + 1) if revokes else enough])


def take(session: Session, step: Tables | Revoke) -> Changes:
    return session.revoke(list(step.ids)) if isinstance(step, Revoke) else session.push(step)


def give(session: Session, steps: Iterable[Tables | Revoke]) -> int:
    """How many changes the steps made. They are let go at once: a session makes those that are kept into events.

    Without revocations nothing is taken back in these workloads, and this is the number of answers: one that is taken
    back all the same would count as one more and be found out.
    """
    return sum(len(take(session, step)) for step in steps)


def standing(session: Session, steps: Iterable[Tables | Revoke]) -> int:
    """How many answers stand in the end: those given less those taken back, each looked at as it comes."""
    return sum(1 if change.op == "insert" else -1 for step in steps for change in take(session, step))


@dataclass(frozen=True)
class Steady:
    """CPU seconds, the best of some runs each: opening a session with its facts, the first step, and all the others."""

    load: float
    first: float
    cpu: float
    answers: int

    @staticmethod
    def best(runs: Sequence[Steady]) -> Steady:
        return Steady(
            min(run.load for run in runs),
            min(run.first for run in runs),
            min(run.cpu for run in runs),
            runs[-1].answers,
        )


def steady(workloads: Sequence[Workload], settings: Settings, **options: Any) -> list[Steady]:
    """Runs workloads whose first step is small: what is built once, such as indexes of facts, is built in it.

    They take turns, so that one which stands beside another has met the same machine.
    """
    opens = [partial(settings.open, augury.compile(w.text), **options, **facts_of(w)) for w in workloads]
    runs: list[list[Steady]] = [[] for _ in workloads]
    for _ in range(1 + settings.repeat):
        for mine, open_one, workload in zip(runs, opens, workloads, strict=True):
            mine.append(phases(open_one, workload.steps))
    return [Steady.best(mine) for mine in runs]


def facts_of(workload: Workload) -> dict[str, Any]:
    return {"facts": workload.facts} if workload.facts else {}


def phases(open_one: Callable[[], Session], steps: Sequence[Tables | Revoke]) -> Steady:
    load, session = timed(open_one)
    first, found = clocked(partial(give, session, steps[:1]))
    cpu, more = clocked(partial(give, session, steps[1:]))
    return Steady(load, first, cpu, found + more)
