"""SPAseQ: the reference evaluator beside a second reading of the semantics, the printer, and what no spec file can say."""

from __future__ import annotations

import os
from random import Random

import pytest

import augury
from augury.clock import Clock
from augury.errors import Findings, Source
from augury.language.spaseq.query_printer import show_query
from augury.language.spaseq.query_reader import read_query
from augury.meaning import evaluate
from tests.spaseq_programs import Answer, GraphSpec, Spec, answers, example

SEEDS = range(3000 if os.environ.get("AUGURY_FUZZ") else 120)
LOGICAL = Clock("logical")


def reference(spec: Spec, events: list[GraphSpec], until: int | None = None) -> set[Answer]:
    program = augury.compile(spec.text, language="spaseq", name="q")
    model = evaluate(program.plan, [event.event for event in events], LOGICAL, until=until)
    return {(e.args, e.start, e.end) for e in model.events}


@pytest.mark.parametrize("seed", SEEDS)
def test_two_readings_of_the_semantics_agree(seed: int) -> None:
    spec, events = example(seed)
    until = Random(seed).choice((None, 3, 20))
    assert reference(spec, events, until) == answers(spec, events, until), spec.text


def test_enough_examples_have_answers() -> None:
    found = [answers(*example(seed)) for seed in range(120)]
    assert sum(bool(one) for one in found) > 30
    assert sum(len(one) > 3 for one in found) > 12


@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_printed_reads_the_same(seed: int) -> None:
    text = example(seed)[0].text
    findings = Findings()
    tree = read_query(Source("q.spaseq", text, "spaseq"), findings)
    assert tree is not None
    printed = show_query(tree)
    again = read_query(Source("q.spaseq", printed, "spaseq"), findings)
    assert again == tree
    assert show_query(again) == printed
