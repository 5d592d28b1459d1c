"""Streams that go on with other programs: unchanged rules lose nothing, and new ones begin at the switch."""

from __future__ import annotations

import os
import random

import pytest

pytest.importorskip("pyspark", reason="the Spark executor is an extra")
pytest.importorskip("pandas", reason="streams on Spark come with pandas")

from augury.core.clock import Clock
from augury.core.model import Event, HistoryItem
from augury.program import Program
from augury.reference import evaluate
from augury.spark import state
from augury.spark.upgrading import StreamSetting, upgrade
from tests.support.spark_local import HEARTBEAT, Emit, Local
from tests.unit.test_becoming import some_rules

STEP = 60


@pytest.mark.parametrize("emit", ["early", "final"])
def test_programs_change_while_a_stream_runs(emit: Emit, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "LEAST", 2000)
    switched = sum(
        _check(random.Random(f"{emit} {n}"), emit) for n in range(300 if os.environ.get("AUGURY_FUZZ") else 12)
    )
    assert switched > 4


def _check(chance: random.Random, emit: Emit) -> int:
    """How often the program was another; one that cannot take over is left out."""
    buckets = chance.choice([1, 3])
    events: list[HistoryItem] = [
        Event(chance.choice("abc"), (chance.randrange(3), chance.randrange(9)), time) for time in range(3 * STEP)
    ]
    setting = StreamSetting(Clock("logical"), buckets, 0, None)
    programs: list[Program] = [some_rules(chance)]
    since = {rule.label: -1 for rule in programs[0].optimised.rules}
    places = {0: 0}
    for number in (1, 2):
        new = some_rules(chance)
        change = upgrade(programs[-1], new, setting, "", emit == "early")
        if not change.obstacles:
            now = STEP * number - 1
            since = {
                label: since[label] if fate == "kept" else now for label, fate in change.fates.items() if fate != "gone"
            }
            programs.append(new)
            places[STEP // 10 * number] = len(programs) - 1
    history = [*events, Event(HEARTBEAT, (), 10**4)]
    locals = [Local(program, history, longest=True, seed=chance.random(), typed=True) for program in programs]
    batches = [history[i : i + 10] for i in range(0, len(history), 10)]
    later = {batch: locals[n] for batch, n in places.items() if n}
    found = locals[0].stream(batches, 5, buckets, emit, chance.choice(["kept", "cold"]), later)
    standing = {(c.event.type, c.event.args, c.event.start, c.event.end) for c in found.changes if c.op > 0}
    standing -= {(c.event.type, c.event.args, c.event.start, c.event.end) for c in found.changes if c.op < 0}
    assert emit == "early" or not found.gone
    last = programs[-1]
    for rule in last.optimised.rules:
        below = [r for r in last.optimised.rules if r.type == rule.type or (rule.label, r.label) == ("triple", "pair")]
        seen = {since[r.label] for r in below}
        if len(seen) > 1:
            continue
        start = seen.pop()
        heard = [e for e in history if isinstance(e, Event) and e.start > start]
        model = evaluate(last.plan, heard, Clock("logical"), (), 400, None, None, {})
        expected = {(e.type, e.args, e.start, e.end) for e in model.events if e.type == rule.type}
        assert {e for e in standing if e[0] == rule.type and 2 * STEP < e[3] < 400} == {
            e for e in expected if e[3] > 2 * STEP
        }
    return len(later)
