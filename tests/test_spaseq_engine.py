"""Queries in the engine: as the reference says after every step, whatever comes late, is taken back, saved or forgotten."""

from __future__ import annotations

import os
from random import Random
from typing import Any

import pytest

import augury
from augury.model import Event, HistoryItem, Revocation
from tests.spaseq_programs import GraphSpec, example
from tests.test_differential import Step, compare

FUZZ = bool(os.environ.get("AUGURY_FUZZ"))
WAYS: dict[str, dict[str, Any]] = {
    "told": {},
    "saved": {"save": 1},
    "late": {"lateness": 3},
    "pruned": {"lateness": 2, "prune": True},
    "pruned and saved": {"lateness": 4, "prune": True, "save": 2},
}


def telling(events: list[GraphSpec], program: augury.Program, random: Random) -> list[Step]:
    """The events that a query reads in some order, some at once, some taken back, and the clock that goes on."""
    told: list[HistoryItem] = []
    for number, event in enumerate(spec.event for spec in events):
        if (event.type, 1) not in program.plan.event_types:
            continue
        told.append(Event(event.type, event.args, event.start, event.end, f"e{number}"))
    if random.random() < 0.5:
        random.shuffle(told)
    revoked = [item.id for item in told if random.random() < 0.2]
    steps: list[Step] = []
    while told:
        size = random.randint(1, 4)
        steps.append(told[:size])
        told = told[size:]
        if revoked and random.random() < 0.3:
            known = {item.id for step in steps if isinstance(step, list) for item in step}
            if revoked[-1] in known:
                steps.append([Revocation(revoked.pop())])
        if random.random() < 0.2:
            steps.append(("advance", random.randint(0, 25)))
    return [*steps, ("advance", 40)]


@pytest.mark.parametrize("portion", range(150 if FUZZ else 4))
@pytest.mark.parametrize("way", WAYS)
def test_after_every_step(way: str, portion: int) -> None:
    for seed in range(portion * 10, portion * 10 + 10):
        spec, events = example(seed)
        program = augury.compile(spec.text, language="spaseq", name="q")
        steps = telling(events, program, Random(f"{seed} {way}"))
        for _ in compare(program, steps, [], **WAYS[way]):
            pass
