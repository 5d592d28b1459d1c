"""SPAseQ's sequences on the engine, against the reference evaluator, after every step."""

from __future__ import annotations

import os
from random import Random

import pytest

from augury.algebra.nodes import Either, Follow, Kleene, Node, Rule, Scan, bound_vars, event_types
from augury.algebra.plan import Attribute, Plan
from augury.algebra.terms import Var
from augury.clock import Clock
from augury.engine.session import Session
from augury.meaning import evaluate
from augury.model import Event, HistoryItem, OrderKey, Revocation
from augury.program import Program

STREAMS = ("s1", "s2", "s3")
SKIPS = ("any", "next", "contiguous")


def pattern(random: Random, depth: int) -> Node:
    """A sequence of scans that share L; V is each part's own."""
    if depth == 0 or random.random() < 0.2:
        number = random.randrange(3)
        scan = Scan(STREAMS[number], (Var("L"), Var(f"V{number}")))
        if random.random() < 0.3:
            return Kleene(scan, random.choice(SKIPS), STREAMS, (f"V{number}",))  # type: ignore[arg-type]
        return scan
    absent = Scan(random.choice(STREAMS), (Var("L"), Var("W"))) if random.random() < 0.3 else None
    first, then = pattern(random, depth - 1), pattern(random, 0)
    streams = (
        STREAMS
        if random.random() < 0.7
        else tuple(sorted({random.choice(STREAMS), *(t for t, _ in event_types(then))}))
    )
    return Follow(first, then, random.choice(SKIPS), streams, absent)  # type: ignore[arg-type]


def program(random: Random) -> Program:
    body = pattern(random, random.choice([1, 1, 2]))
    if random.random() < 0.2:
        body = Either(body, pattern(random, 1))
    names = sorted(bound_vars(body))
    rule = Rule("m", "m", tuple(Var(v) for v in names), body)
    return Program(
        Plan(rules=(rule,), declared=dict.fromkeys(STREAMS, (Attribute("l"), Attribute("v"))), outputs=("m",))
    )


def history(random: Random) -> list[HistoryItem]:
    told: list[HistoryItem] = []
    for number in range(random.randrange(3, 12)):
        start = random.randrange(8)
        args = (random.choice(["x", "x", "y"]), random.randrange(2))
        told.append(Event(random.choice(STREAMS), args, start, start + random.choice([0, 0, 0, 1, 2]), f"e{number}"))
    told += [Revocation(f"e{random.randrange(12)}") for _ in range(random.randrange(3))]
    random.shuffle(told)
    return told


@pytest.mark.parametrize("portion", range(4))
def test_sequences_say_what_the_reference_says(portion: int) -> None:
    answered = 0
    count = 1000 if os.environ.get("AUGURY_FUZZ") else 60
    for seed in range(count):
        random = Random(f"{portion} {seed}")
        one, told = program(random), history(random)
        session, answer = Session(one, clock=Clock()), dict[OrderKey, Event]()
        way = random.choice(["", "prune", "save"])
        for number, item in enumerate(told):
            for change in session.push(item):
                if change.op == "insert":
                    answer[change.event.content] = change.event
                else:
                    del answer[change.event.content]
            if any(isinstance(i, Event) for i in told[: number + 1]):
                expected = evaluate(one.plan, told[: number + 1], Clock())
                assert {e.content for e in expected.events} == answer.keys(), (portion, seed, number)
            if way == "prune":
                session.prune()
            elif way == "save":
                session = one.restore(session.snapshot())
        answered += bool(answer)
    assert answered > 0.4 * count
