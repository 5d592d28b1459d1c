"""A single pushed event: the short path gives the same changes as a list of one, and makes few calls of Python."""

from __future__ import annotations

import random
import sys
from types import FrameType
from typing import Any

import pytest

import augury
from augury.core.errors import AuguryError
from augury.core.jit import HOT, count_work
from augury.core.model import Event
from augury.engine import single_event

SEQUENCE = "found(K, X, Y) <- (a(K, X) SEQ b(K, Y)).1000."
OTHERS = "".join(f"other{i}(K) <- (p{i}(K) SEQ q{i}(K)).1000.\n" for i in range(99))
DECLARED = """
event a(key: int, x: float).
event b(key: int, x: number).
event c(name: string).
found(K) <- (a(K, X) SEQ b(K, Y)).20 WHERE X < Y.
alone(N) <- o: c(N), w: extend(o, 5s), while w: not a(_, _).
"""


def calls_of_one_push(session: Any, event: Event) -> int:
    """How many functions of Python one push enters."""
    calls = 0

    def count(frame: FrameType, what: str, arg: object) -> None:
        nonlocal calls
        calls += what == "call"

    sys.setprofile(count)
    try:
        session.push(event)
    finally:
        sys.setprofile(None)
    return calls


@pytest.mark.parametrize("rules", [SEQUENCE, SEQUENCE + "\n" + OTHERS], ids=["one rule", "a hundred rules"])
def test_one_event_makes_few_calls(rules: str) -> None:
    count_work(HOT)  # a compiled kernel is one call
    session = augury.compile(rules).session(clock="logical")
    for time in range(1, 200):
        session.push(Event("a" if time % 2 else "b", (time // 4, 0.5), time))
    without_partner = calls_of_one_push(session, Event("a", (1_000, 1.5), 200))
    with_answer = calls_of_one_push(session, Event("b", (1_000, 1.5), 201))
    assert without_partner <= 32
    assert with_answer <= 64


@pytest.mark.parametrize("seed", range(12))
def test_an_event_and_a_list_of_one_give_the_same(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is wrong with an event, and however its id and its time relate to those before."""
    chance = random.Random(seed)
    taken = 0
    plain = single_event.push_event

    def counted(session: Any, event: Event) -> Any:
        nonlocal taken
        changes = plain(session, event)
        taken += changes is not None
        return changes

    monkeypatch.setattr("augury.engine.session.push_event", counted)
    options: dict[str, Any] = {"clock": "logical", "lateness": chance.choice([None, "3s"])}
    one, other = (augury.compile(DECLARED).session(**options) for _ in range(2))
    time = 0
    for step in range(60):
        time += chance.randint(0, 2)
        event = _random_event(chance, max(0, time - chance.choice([0, 0, 0, 1, 8])))
        if step and chance.random() < 0.1:
            id = f"i{chance.randint(0, 9)}"
            assert [*map(_shown, one.revoke(id))] == [*map(_shown, other.revoke(id))]
        assert _outcome(one, event) == _outcome(other, [event]), event
        assert _state(one) == _state(other)
    assert taken


def _random_event(chance: random.Random, time: int) -> Event:
    id = chance.choice(["", "", f"i{chance.randint(0, 9)}"])
    key: Any = chance.choice([0, 1, 2, 2**70, None, True, "1"] if chance.random() < 0.2 else [0, 1, 2])
    value: Any = chance.choice([0.0, -0.0, float("nan"), float("inf"), 1, 0.5, 1.5])
    match chance.randrange(5):
        case 0 | 1:
            return Event("a", (key, value), time, id=id)
        case 2 | 3:
            return Event("b", (key, value), time, time + chance.randint(0, 3), id)
    return Event(chance.choice(["c", "c", "unknown_to_it"]), (chance.choice(["x", "é", "\ud800", None]),), time, id=id)


def _shown(change: Any) -> tuple[str, str, str]:
    return change.op, str(change.event), change.event.id


def _outcome(session: Any, events: Any) -> Any:
    try:
        return [_shown(change) for change in session.push(events)]
    except AuguryError as error:
        return str(error)


def _state(session: Any) -> Any:
    stats = session.stats() if session.now is not None else {}
    names = ("events", "received", "accepted", "repeated", "matches", "late", "rejected", "steps", "rows", "values")
    return [stats.get(name) for name in names], list(map(str, session.late)), session.unknown, session.now
