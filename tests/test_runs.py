"""Runs: the reference against every way to give events to iterations, and the laws that runs obey."""

from __future__ import annotations

import os

import pytest
from hypothesis import given

import augury
from augury.clock import Clock
from augury.meaning import evaluate
from augury.model import Event, order_key
from tests.run_programs import Spec, answers, example, examples

FUZZ = bool(os.environ.get("AUGURY_FUZZ"))


def meant(program: str, events: list[Event]) -> set[tuple[object, int, int]]:
    """What the reference says."""
    model = evaluate(augury.compile(program).plan, events, Clock())
    return {(tuple(order_key(a) for a in e.args), e.start, e.end) for e in model.events}


def check(spec: Spec, events: list[Event]) -> None:
    assert meant(spec.text, events) == answers(spec, events), (spec.text, events)


@given(examples())
def test_the_reference_says_what_all_ways_together_say(drawn: tuple[Spec, list[Event]]) -> None:
    check(*drawn)


@pytest.mark.parametrize("portion", range(40 if FUZZ else 2))
def test_many_random_runs(portion: int) -> None:
    for seed in range(portion * 200, portion * 200 + 200):
        check(*example(seed))
