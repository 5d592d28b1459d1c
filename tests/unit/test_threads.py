"""A session is told by one thread; others may look meanwhile, and change nothing by it."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import augury
from augury.core.errors import RunError
from augury.core.model import Event

PROGRAM = """
fact on(S) <- up(S). fact not on(S) <- dn(S).
pair(X, Y) <- (a(X) SEQ b(Y)).6 WHERE on(X).
calm(X) <- o: a(X), w: extend(o, 4s), while w: not b(X).
total(X, count(Y)) <- o: a(X), last 5: collect b(Y).
"""
LOOKS: dict[str, Callable[[Any], object]] = {
    "stats": lambda s: s.stats(),
    "events": lambda s: list(s.events()),
    "arrow": lambda s: s.events().to_arrow(),
    "traces": lambda s: [(e.id, e.trace) for e in s.events()],
    "goals": lambda s: s.goals(),
    "why": lambda s: [s.why(e) for e in list(s.events())[:3]],
    "snapshot": lambda s: s.snapshot(),
    "clock": lambda s: (s.now, s.frontier, s.settled, s.errors),
}


@pytest.fixture
def hasty() -> Iterator[None]:
    """Threads take turns much more often than usual."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(usual)


def steps() -> list[list[Event]]:
    kinds = ("a", "b", "up", "a", "dn", "b", "a")
    events = [Event(kinds[(i * i + i // 3) % 7], (i * 7 % 5,), i // 2 + (i * 5) % 4) for i in range(600)]
    return [events[i : i + 30] for i in range(0, len(events), 30)]


def told(session: Any) -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = []
    for number, step in enumerate(steps()):
        found += [(c.op, c.event.content, c.event.id, c.event.trace) for c in session.push(step)]
        if number % 7 == 6:
            session.prune()
    return found


@pytest.mark.parametrize(("look", "lateness"), [*((look, "8s") for look in LOOKS), ("events", None)])
def test_reading_threads_change_nothing(look: str, lateness: str | None, hasty: None) -> None:
    program = augury.compile(PROGRAM)
    alone = program.session(clock="logical", lateness=lateness)
    expected = told(alone)
    session = program.session(clock="logical", lateness=lateness)
    done, failed = threading.Event(), list[BaseException]()

    def watch() -> None:
        seen = 0
        while not done.is_set() or not seen:
            try:
                LOOKS[look](session)
            except RunError as error:  # an event that was taken back since
                if "does not stand" not in str(error):
                    failed.append(error)
            except BaseException as error:
                failed.append(error)
            seen += 1

    watchers = [threading.Thread(target=watch) for _ in range(2)]
    for one in watchers:
        one.start()
    try:
        found = told(session)
    finally:
        done.set()
        for one in watchers:
            one.join()
    assert not failed
    assert found == expected
    assert [e.content for e in session.events()] == [e.content for e in alone.events()]


def test_what_was_looked_at_stays_while_others_push(hasty: None) -> None:
    """Answers are made when somebody looks: also of rows that are forgotten meanwhile."""
    program = augury.compile(PROGRAM)
    session = program.session(clock="logical", lateness="8s")
    failed: list[object] = []

    def look(changes: Any, wanted: int) -> None:
        try:
            found = [(c.event.id, c.event.args, c.event.trace) for c in changes]
            if len(found) != wanted:
                failed.append((len(found), wanted))
        except BaseException as error:
            failed.append(error)

    threads = []
    for step in steps():
        changes = session.push(step)
        threads.append(threading.Thread(target=look, args=(changes, len(changes))))
        threads[-1].start()
        session.prune()
    for one in threads:
        one.join()
    assert not failed


def test_a_second_thread_that_pushes_is_refused() -> None:
    session = augury.compile(PROGRAM).session(clock="logical")
    refused: list[BaseException] = []

    def push(_: object) -> None:
        def other() -> None:
            for tell in (lambda: session.push(Event("a", (1,), 9)), session.prune, session.finish):
                try:
                    tell()
                except RunError as error:
                    refused.append(error)

        thread = threading.Thread(target=other)
        thread.start()
        thread.join()

    session.on("total", push)
    session.push(Event("a", (1,), 1))
    session.push([Event("b", (1,), 1), Event("a", (1,), 2)])
    assert len(refused) >= 3 and all("in use" in str(e) for e in refused)


class LeavingReader(list[Any]):
    """Holds of a lock, the first of which leaves while another one asks for its place."""

    def index(self, *args: Any) -> int:
        place = super().index(*args)
        del self[0]
        return place


def test_a_reader_that_leaves_while_a_push_waits_is_no_second_push() -> None:
    session = augury.compile(PROGRAM).session(clock="logical")
    lock, began = session._lock, threading.Event()

    def read() -> None:
        with lock:
            began.set()
            time.sleep(0.1)

    reader = threading.Thread(target=read)
    reader.start()
    began.wait()
    lock._holds = LeavingReader(lock._holds)
    session.push(Event("a", (1,), 1))
    reader.join()
