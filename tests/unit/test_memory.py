"""What a session holds does not grow with what has passed: counted in rows, over programs that have windows."""

from __future__ import annotations

from typing import Any

import pytest

import augury
from augury.core.errors import RunError
from augury.core.model import Event

PROGRAMS = {
    "sequence": "p(K) <- (a(K) SEQ b(K, _)).10s.",
    "conjunction": "p(K) <- (a(K) AND b(K, _)).10s.",
    "labels": "p(K) <- x: a(K), y: b(K, _), {x, y} within 10s.",
    "overdue": "p(K) <- o: a(K), w: extend(o, 20s), while w: not b(K, _).",
    "silence before": "p(K) <- o: a(K), w: extend_backward(o, 20s), while w: not b(K, _).",
    "between": "p(K) <- (NOT(c(K)).[a(K), b(K, _)]).10s.",
    "collected": "p(K, count(X)) <- o: a(K), w: extend_backward(o, 10s), while w: collect b(K, X).",
    "collected after": "p(K, sum(X)) <- o: a(K), w: extend(o, 10s), while w: collect b(K, X).",
    "last": "p(K, avg(X)) <- o: a(K), last 5: collect b(K, X).",
    "last of all": "p(count(X)) <- o: a(_), last 3: collect b(_, X).",
    "last by group": "p(X, count(K)) <- o: a(_), last 2: collect b(K, X).",
    "median of the last": "p(K, median(X)) <- o: b(K, _), last 5: collect b(K, X).",
    "windows by the clock": "p(K, count(), median(X)) <- w: every(10s), while w: collect b(K, X).",
    "windows that hop": "p(count(), sum(X)) <- w: every(20s, 5s), while w: collect b(_, X).",
    "ranking": "p(K, R) <- w: every(10s), while w: collect b(K, X) TOP 2 BY sum(X) AS R.",
    "throttle": "p(K, X) <- b(K, X) AT MOST 2 PER (K) EVERY 30s.",
    "throttle of equal events": "p(X) <- b(K, X) ONCE PER (K) EVERY 30s.",
    "recent": "p(K) <- (a(K) SEQ[recent] b(K, _)).10s.",
    "chronological": "p(K) <- (a(K) SEQ[chronological] b(K, _)).10s.",
    "repeated": "p(K) <- (a(K) ^ 3).10s.",
    "of derived": "q(K) <- (a(K) SEQ b(K, _)).10s.\np(K) <- o: q(K), w: extend(o, 5s), while w: not c(K).",
    "state": "fact on(K) <- a(K).\nfact not on(K) <- c(K).\np(K) <- b(K, _) WHERE on(K).",
    "state behind a window": "fact on(K) <- a(K).\nfact not on(K) <- c(K).\np(K) <- o: b(K, _), w: extend(o, 5s), while w: not a(K), on(K).",
    "made by a window": "fact on(K) <- o: a(K), w: extend(o, 5s), while w: not c(K).\np(K) <- b(K, _) WHERE on(K).",
}  # fmt: skip
UNBOUNDED = {
    "sequence": "p(K) <- a(K) SEQ b(K, _).",
    "filtered last": "p(Z, count(X)) <- o: a(Z), last 5: collect b(K, X), K > Z.",
}


def step(number: int, length: int = 0) -> list[Event]:
    events = []
    for i in range(60):
        time = number * 20 + i // 3
        type = ("a", "b", "c")[(i + number) % 3]
        key = (i * i + number) % (9 if type in "ab" else 4)
        args = (key, i % 3) if type == "b" else (key,)
        events.append(Event(type, args, time - (length if i % 5 == 0 else 0), time))
    return events


def held(session: Any) -> int:
    session.prune()
    return int(session.stats()["rows"] + session.stats()["knowledge"]["entries"])


@pytest.mark.parametrize("length", [0, 3])
@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_held_does_not_grow(name: str, length: int) -> None:
    session = augury.compile(PROGRAMS[name]).session(clock="logical", lateness="5s")
    counts = []
    for number in range(40):
        session.push(step(number, length))
        counts.append(held(session))
    assert session.matched > 0, "nothing was found"
    assert max(counts[20:]) <= max(counts[5:20]), counts
    assert session.stats()["forgets"] is True and session.stats()["remembers"] == []


@pytest.mark.parametrize("name", UNBOUNDED)
def test_what_grows_is_told(name: str) -> None:
    program = augury.compile(UNBOUNDED[name])
    session = program.session(clock="logical", lateness="5s")
    counts = []
    for number in range(12):
        session.push(step(number))
        counts.append(held(session))
    assert counts[11] > 1.5 * counts[5]
    assert session.stats()["forgets"] is False and session.stats()["remembers"] == ["p"]


def test_an_event_that_is_longer_than_all_before_is_refused_where_it_would_matter() -> None:
    session = augury.compile(PROGRAMS["overdue"]).session(clock="logical", lateness="5s")
    for number in range(10):
        session.push(step(number))
    session.prune()
    before = session.snapshot()
    session.push(Event("a", (1,), 196, 200))  # it begins after what is forgotten
    with pytest.raises(RunError, match=r"lasts longer \(40s\) than all had") as error:
        session.push([Event("c", (1,), 200), Event("a", (1,), 160, 200)])
    assert "longest" in error.value.hint
    again = augury.compile(PROGRAMS["overdue"]).restore(before)
    with pytest.raises(RunError, match="lasts longer"):
        again.push(Event("a", (1,), 160, 200))
    with pytest.raises(RunError, match=r"lasts longer \(4s\) than all had"):  # one as long has come, but begins later
        session.push(Event("a", (3,), 191, 195))
    session.prune()  # what was forgotten before stays so
    with pytest.raises(RunError, match=r"lasts longer \(4s\) than all had"):
        session.push(Event("a", (3,), 192, 196))
    session.push(Event("a", (3,), 194, 198))
    longer = augury.compile(PROGRAMS["overdue"]).session(clock="logical", lateness="5s", longest="50s")
    for number in range(10):
        longer.push(step(number))
    longer.prune()
    longer.push(Event("a", (1,), 160, 200))
