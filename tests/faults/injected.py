"""Faults inside a step: the n-th allocation fails, or the n-th line raises, also while the step is undone.

After each the session is compared with a twin that never saw the step: its answers, its state, and what it says to all
that comes later. Lines are those of the engine, the columns and the knowledge; an allocation is a call of a function of
NumPy that makes an array.

python -m tests.faults.injected [COUNT [SEED]]
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import augury
from augury.core.errors import AuguryError, UnusableError
from augury.core.model import Event, Revocation
from augury.engine import atomic
from augury.engine.changes import Changes
from augury.engine.session import Session
from tests.unit.test_memory import PROGRAMS

_ENGINE = tuple(
    str(Path(augury.__file__).parent / folder) for folder in ("engine", "storage", "knowledge", "algebra", "graphs")
)
# The files with what happens once a step counts.
_AFTER = (
    "session.py",
    "session_core.py",
    "atomic.py",
    "session_lock.py",
    "callbacks.py",
    "emission.py",
    "table.py",
    "circuit.py",
    "changing.py",
)
_ALLOCATES = (
    "empty", "zeros", "full", "ones", "arange", "array", "concatenate", "stack", "unique", "flatnonzero", "repeat",
    "ascontiguousarray", "argsort", "sort", "where", "searchsorted", "cumsum", "setdiff1d", "lexsort", "tile", "fromiter",
)  # fmt: skip
WORKLOADS = PROGRAMS | {
    "recursion": "r(X, Y) <- e(X, Y).\nr(X, Z) <- (r(X, Y) SEQ e(Y, Z)).10s.",
    "texts": "p(concat(T, '!')) <- t(T).\nq(T, S) <- (t(T) SEQ t(S)).10s WHERE T < S.",
    "longest run": "p(K, count(X)) <- a(K) NEXT b(K, X)+ PER (K) LONGEST SKIP PAST END.",
    "all runs": "p(K, X, count(Y)) <- (a(K) THEN b(K, X) THEN b(K, Y)*).10s PER (K).",
    "or": "p(K) <- (a(K) OR c(K)).\nq(K, X) <- (p(K) SEQ b(K, X)).10s.",
    "facts": "up(K) <- t(K) WHERE on(K).\nfact on(K) <- t(K).\nfact not on(K) <- u(K).",
    "shortest run": "p(K, X, count(Y)) <- b(K, X) THEN b(K, Y)* THEN c(K) PER (K) SHORTEST SKIP PAST END.",
    "then": "p(K, X, Y) <- b(K, X) THEN b(K, Y) WHERE Y > X.",
    "windows beside facts": "shop(0). shop(1).\np(K) <- w: every(4s), shop(K), while w: not a(K).",
    "rows that cannot be computed": "p(X / Y) <- b(X, Y).\nq(K, X) <- (a(K) SEQ b(K, X)).10s WHERE 4 / X > 1.",
    "extremes": "p(K, max(X), count(X)) <- o: a(K), w: extend_backward(o, 8s), while w: collect b(_, X).",
    "closure": "link(0, 1). link(1, 2).\nway(X, Y) :- link(X, Y).\nway(X, Z) :- link(X, Y), way(Y, Z).\np(X, Y) <- e(X, Y) WHERE way(X, Y).",
}


class Injected(MemoryError):
    """A fault that was made on purpose."""


# Making faults


@dataclass
class Lines:
    """Raises at the n-th line of the engine, or of some of its files, counted from where it is armed."""

    at: int | None = None
    count: int = 0
    where: str = ""
    error: type[BaseException] = Injected
    files: tuple[str, ...] = ()

    def __call__(self, frame: FrameType, event: str, arg: Any) -> Any:
        code = frame.f_code
        counts = code.co_filename.endswith(self.files) if self.files else code.co_filename.startswith(_ENGINE)
        return self._line if counts else None

    def _line(self, frame: FrameType, event: str, arg: Any) -> Any:
        if event == "line":
            self.count += 1
            if self.count == self.at:
                code = frame.f_code
                self.where = f"{Path(code.co_filename).name}:{frame.f_lineno} ({code.co_name})"
                raise self.error(self.where)
        return self._line

    @contextmanager
    def armed(self) -> Iterator[None]:
        sys.settrace(self)
        try:
            yield
        finally:
            sys.settrace(None)


@dataclass
class Allocations:
    """Makes the n-th allocation fail, or all from there on up to the `last`."""

    at: int | None = None
    last: int = 0
    count: int = 0
    where: str = ""
    usual: dict[str, Any] = field(default_factory=dict)

    @contextmanager
    def armed(self) -> Iterator[None]:
        self.usual = {name: getattr(np, name) for name in _ALLOCATES}
        for name, function in self.usual.items():
            setattr(np, name, self._failing(name, function))
        try:
            yield
        finally:
            for name, function in self.usual.items():
                setattr(np, name, function)

    def _failing(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def allocate(*args: Any, **kwargs: Any) -> Any:
            frame = sys._getframe(1)
            if frame.f_code.co_filename.startswith(_ENGINE):
                self.count += 1
                if self.at is not None and self.at <= self.count <= max(self.at, self.last):
                    self.where = self.where or f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno} ({name})"
                    raise Injected(self.where)
            return function(*args, **kwargs)

        return allocate


@contextmanager
def while_undone(fault: Lines) -> Iterator[None]:
    """Arms a second fault whenever a step begins to be undone."""
    usual = atomic.StepTransaction.undo

    def undo(step: atomic.StepTransaction) -> None:
        if fault.where:
            return usual(step)
        with fault.armed():
            return usual(step)

    atomic.StepTransaction.undo = undo  # type: ignore[method-assign, assignment]
    try:
        yield
    finally:
        atomic.StepTransaction.undo = usual  # type: ignore[method-assign]


# Sessions to compare

Action = tuple[str, Any]


def actions(chance: random.Random, count: int) -> list[Action]:
    """Pushes of events of all kinds, some of them late, revocations, facts, promises and prunings."""
    found: list[Action] = []
    names: list[str] = []
    for number in range(count):
        time = 6 * number
        events: list[Any] = []
        for i in range(chance.choice([1, 2, 5, 12])):
            type = chance.choice("aabbbctue")
            key, other = chance.randrange(3), chance.randrange(4)
            end = max(0, time + i // 2 - chance.choice([0, 0, 0, 4]))
            args: tuple[Any, ...] = {
                "b": (key, other), "e": (key, other), "t": (f"t{key}{number if i else ''}",), "u": (f"t{key}",),
            }.get(type, (key,))  # fmt: skip
            name = f"{number}.{i}" if chance.random() < 0.7 else ""
            names += [name] if name else []
            events.append(Event(type, args, max(0, end - chance.choice([0, 0, 2])), end, name))
        if names and chance.random() < 0.4:
            events.append(Revocation(chance.choice(names)))
        found.append(("push", events))
        if chance.random() < 0.25:
            found.append(
                chance.choice([("advance", time + 3), ("prune", None), ("learn", (chance.randrange(4), time))])
            )
    return found


def act(session: Session, action: Action) -> Changes:
    """Tells a session something."""
    kind, given = action
    if kind == "push":
        return session.push(given)
    if kind == "advance":
        return session.advance(given)
    if kind == "learn":
        key, time = given
        return session.assert_fact("link", key, (key + 1) % 4, at=time)
    if kind == "rules":
        if any(rule.label == "extra" for rule in session.program.plan.rules):
            return session.remove_rule("extra")
        return session.add_rules("extra(K) <- (a(K) SEQ c(K)).10s.")
    session.prune()
    return Changes()


def listed(changes: Changes) -> list[Any]:
    return [(c.op, c.event.content) for c in changes]


def look(session: Session, sizes: bool = True) -> list[Any]:
    """What can be seen of a session: all but what its work has cost."""
    stats = session.stats()
    seen = [stats[name] for name in ("events", "matches", "late", "rejected", "errors", "steps", "clock")]
    seen += [stats["rows"], stats["values"], stats["knowledge"]["facts"], stats["tombstones"]] if sizes else []
    seen.append(dict(session.unknown))
    events = [(e.content, e.id, tuple(e.trace)) for e in session.events()]
    return [seen, events, sorted(map(repr, session.goals())), session.errors, [repr(one) for one in session.late]]


@dataclass
class Trial:
    """A program, what its session is told, and the step that fails."""

    name: str
    text: str
    told: list[Action]
    at: int
    settings: dict[str, Any]

    def open(self) -> Session:
        learns: dict[str, Any] = {"changing": ["link"]} if "link" in self.text else {}
        return augury.compile(self.text).session(clock="logical", **learns, **self.settings)

    def until(self) -> Session:
        session = self.open()
        for action in self.told[: self.at]:
            act(session, action)
        return session

    def compared(self, session: Session, twin: Session, again: bool) -> str | None:
        """What differs between a session and its twin, now or after anything that comes later."""
        sizes = self.told[self.at][0] != "prune"  # what was broken off may have forgotten some
        if look(session, sizes) != look(twin, sizes):
            return "another state"
        for number, action in enumerate(self.told[self.at + (not again) :]):
            if listed(act(session, action)) != listed(act(twin, action)):
                return f"other changes {number + 1} steps later"
        if look(session, sizes) != look(twin, sizes):
            return "another state in the end"
        restored = augury.compile(self.text).restore(session.snapshot())
        return None if look(restored)[1] == look(twin)[1] else "another state when restored"


def a_trial(chance: random.Random) -> Trial:
    name = chance.choice(list(WORKLOADS))
    told = actions(chance, 8)
    if "link" not in WORKLOADS[name]:
        told = [one for one in told if one[0] != "learn"]
    settings: dict[str, Any] = {"lateness": chance.choice([None, "5s"]), "emit": chance.choice(["early", "final"])}
    return Trial(name, WORKLOADS[name], told, chance.randrange(len(told)), settings)


def injected(count: int, seed: int) -> Iterator[str | None]:
    """The n-th allocation of a step fails, or its n-th line raises, also while it is undone: the step was never taken."""
    chance = random.Random(seed)
    trial, sizes = a_trial(chance), {}
    for number in range(count):
        if number % 12 == 0:
            trial = a_trial(chance)
            sizes = {kind: _size(trial, kind) for kind in ("lines", "allocations")}
        kind = chance.choice(["lines", "lines", "undo", "interrupt", "allocations", "memory"])
        yield _with_fault(trial, kind, chance, sizes["allocations" if kind in ("allocations", "memory") else "lines"])


def _size(trial: Trial, kind: str) -> int:
    """How many lines, or allocations, the step has."""
    fault: Any = Lines() if kind == "lines" else Allocations()
    session = trial.until()
    with fault.armed(), suppress(AuguryError):
        act(session, trial.told[trial.at])
    return int(fault.count)


def _fault(kind: str, at: int) -> Any:
    if kind in ("allocations", "memory"):
        return Allocations(at, at + 10**9 if kind == "memory" else 0)
    return Lines(at, error=KeyboardInterrupt if kind == "interrupt" else Injected)


def _with_fault(trial: Trial, kind: str, chance: random.Random, size: int) -> str | None:
    at = chance.randint(1, max(1, size))
    fault = _fault(kind, at)
    second = Lines(chance.randint(1, 2500))
    session, failed = trial.until(), False
    about = f"{trial.name} {trial.settings}, step {trial.at} ({trial.told[trial.at][0]}), {kind} {at} of {size}"
    try:
        with while_undone(second) if kind == "undo" else nullcontext(), fault.armed():
            act(session, trial.told[trial.at])
    except AuguryError as error:
        failed = True
        if isinstance(error, UnusableError) and kind != "memory":
            return f"{about} at {fault.where}, {second.where}: {error}"
    except (Injected, KeyboardInterrupt):
        failed = True
    except BaseException as error:
        return f"{about} at {fault.where}, {second.where}: {type(error).__name__}: {error}"
    about = f"{about} at {fault.where}{', then ' + second.where if second.where else ''}"
    try:
        wrong = trial.compared(session, trial.until(), again=True)
        if wrong is not None and (not failed or any(name in fault.where for name in _AFTER)):
            # The fault has met a step that counts already, or was made up for.
            session, twin, again = trial.until(), trial.until(), _fault(kind, at)
            act(twin, trial.told[trial.at])
            with suppress(AuguryError, Injected, KeyboardInterrupt), again.armed():
                act(session, trial.told[trial.at])
            wrong = trial.compared(session, twin, again=False)
    except BaseException as error:
        return f"{about}: then {type(error).__name__}: {error}"
    return None if wrong is None else f"{about}: {wrong}"


if __name__ == "__main__":
    given = [int(text) for text in sys.argv[1:]]
    wrong = list(injected(given[0] if given else 200, given[1] if len(given) > 1 else 0))
    for text in filter(None, wrong):
        sys.stdout.write(f"{text}\n")
    sys.stdout.write(f"faults inside steps: {len(wrong)} tried, {len([w for w in wrong if w])} failed\n")
    sys.exit(any(wrong))
