"""Alternatives with labels on random histories: a session says after every push what the reference says."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator

import pytest

import augury
from augury.core.clock import Clock
from augury.core.model import Event, HistoryItem, OrderKey, Revocation
from augury.reference import evaluate

HISTORIES = 60 if os.environ.get("AUGURY_FUZZ") else 2
RULES = (
    "m(I, count(u), count(v), max(X), sum(Y)) <- (u: a(I, X) OR v: b(I, Y))+ NEXT c(I, _) LONGEST.",
    "m(I, count(u), first(start(u)), last(end(v))) <- (u: a(I, X) OR v: b(I, Y))+ THEN c(I, _) WHERE X > 1, Y < 3 SHORTEST.",
    "m(I, count(v), last(X)) <- (c(I, Z) NEXT (u: a(I, X) OR v: b(I, Y))*).8s WHERE X > prev(X, Z).",
    "m(I, X, Y, start(v)) <- (u: a(I, X) OR v: b(I, Y)) THEN c(I, Z) WHERE X < Z.",
    "m(I, X, Y) <- (u: a(I, X) OR v: b(I, Y)) NEXT c(I, X).",
    "m(I, X, count(w)) <- a(I, X) THEN (w: (u: a(I, X) OR v: b(I, Y) OR z: c(I, X))){1,3} LONGEST SKIP TO LAST w.",
    "m(count(u), count(v), max(D)) <- ((u: a(I, X) OR v: a(J, Y)){2}).6s WHERE D = X + 1 PER ().",
    "m(I, count(u), T) <- (u: (a(I, X) WHERE X > 0) OR v: b(I, Y))+ NEXT c(I, T) WHERE max(Y) >= T LONGEST SKIP PAST END.",
)


def history(chance: random.Random) -> Iterator[HistoryItem]:
    """Events that come late, are revoked and replaced."""
    for number in range(14):
        end = max(0, number + chance.choice([0, 0, 0, -2, -5]))
        event = Event(
            chance.choice("aabbc"), (chance.choice([1, 1, 2]), chance.choice([0, 1, 2, 3])), end, end, f"i{number}"
        )
        yield event
        if chance.random() < 0.15:
            yield Revocation(f"i{chance.randrange(number + 1)}")
        if chance.random() < 0.15:
            yield Event(chance.choice("abc"), (1, 2), end, end, f"i{chance.randrange(number + 1)}", version=number + 1)


@pytest.mark.parametrize("rule", RULES)
def test_sessions_say_what_the_reference_says(rule: str) -> None:
    program, answered = augury.compile(rule), 0
    for seed in range(HISTORIES):
        session = program.session(clock="logical")
        items: list[HistoryItem] = []
        answer: set[OrderKey] = set()
        for item in history(random.Random(f"{rule} {seed}")):
            items.append(item)
            for change in session.push(item):
                (answer.add if change.op == "insert" else answer.remove)(change.event.content)
            expected = {event.content for event in evaluate(program.plan, items, Clock()).events}
            assert answer == expected, (seed, items)
        answered += len(answer)
    assert answered
