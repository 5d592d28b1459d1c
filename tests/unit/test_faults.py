"""A few of each fault; `make faults` makes many."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from itertools import count
from threading import Thread
from typing import Any

import pytest

import augury
from augury.core.model import Event
from augury.engine.session import Session
from tests.faults.injected import WORKLOADS, Allocations, Injected, Lines, Trial
from tests.faults.kinds import FAULTS


@pytest.mark.parametrize("name", [name for name, fault in FAULTS.items() if fault.few])
def test_what_is_promised_holds(name: str) -> None:
    fault = FAULTS[name]
    found = list(fault.make(fault.few, 7))
    assert len(found) == fault.few
    assert not [wrong for wrong in found if wrong is not None]


CALLS: dict[str, Callable[[Session], Any]] = {
    "push": lambda s: s.push([Event("a", (1,), 3), Event("b", (1,), 4)]),
    "push one": lambda s: s.push(Event("b", (1,), 4)),
    "revoke": lambda s: s.revoke("first"),
    "advance": lambda s: s.advance(5),
    "learn": lambda s: s.assert_fact("on", 1, at=2),
    "finish": lambda s: s.finish(),
    "prune": lambda s: s.prune(),
    "remove": lambda s: s.remove_rule("p"),
    "snapshot": lambda s: s.snapshot(),
    "events": lambda s: s.events(),
    "stats": lambda s: s.stats(),
}


@pytest.mark.parametrize(
    ("name", "elsewhere"), [*((name, False) for name in CALLS), ("push one", True), ("events", True)]
)
def test_a_session_is_never_left_locked(name: str, elsewhere: bool) -> None:
    """Control-C at any line of a call, also at those that take and release the lock: the call counts, or it does not."""
    program = augury.compile("on(0). p(X) <- a(X) SEQ b(X).\nq(X) <- b(X) WHERE on(X).")

    def opened() -> Session:
        session = program.session(clock="logical", changing=["on"])
        session.push([Event("a", (1,), 1, id="first"), Event("b", (1,), 2)])
        return session

    def later(session: Session) -> list[object]:
        session.push(Event("b", (1,), 6))
        return [e.content for e in session.events()]

    before, after = opened(), opened()
    CALLS[name](after)
    answers = later(before), later(after)
    for number in count(1):
        session = opened()
        lines = Lines(number, error=KeyboardInterrupt, files=("session.py", "session_core.py", "session_lock.py"))

        def call(session: Session = session, lines: Lines = lines) -> None:
            with suppress(KeyboardInterrupt), lines.armed():
                CALLS[name](session)

        if elsewhere:
            thread = Thread(target=call)
            thread.start()
            thread.join()
        else:
            call()
        if not lines.where:
            break
        assert later(session) in answers, lines.where
    assert number > 10


def test_an_index_that_was_broken_off_is_made_anew() -> None:
    """What a failed step has taken in of facts that changed before."""
    events = [Event("a", (1,), 1), Event("b", (1, 0), 12), Event("c", (1,), 17), Event("a", (1,), 30)]
    told: list[tuple[str, Any]] = [("push", [e]) for e in events] + [("push", [Event("b", (1, 3), 34, 36)])]
    trial = Trial("facts", WORKLOADS["state behind a window"], told, 4, {"lateness": "5s", "emit": "final"})
    looked = 0
    for number in count(1):
        session, fault = trial.until(), Allocations(number)
        with suppress(augury.AuguryError, Injected), fault.armed():
            session.push(told[4][1])
        if not fault.where:
            break
        if fault.where.startswith(("as_of", "segments")):
            looked += 1
            assert trial.compared(session, trial.until(), again=True) is None, fault.where
    assert looked > 10
