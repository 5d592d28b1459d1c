"""What the steps of a stream measure, and how it adds up: no Spark."""

from __future__ import annotations

import json
from typing import Any

import pytest

pytest.importorskip("pyspark")

import augury
from augury.core.model import Event
from augury.spark.metrics import METRICS, STAGES, StepMeter, StreamMetrics

PROGRAM = augury.compile("rise(X) <- (a(X) SEQ b(X)).10.\nalarm(X) <- (rise(X) AND b(X)).10.")
COUNTS = ("matches", "retracted", "late", "ahead", "rejected", "repeated", "errors")


def step(session: Any, bucket: int, *events: Event) -> str:
    meter = StepMeter.start(session)
    matches = len(session.push(list(events)))
    return json.dumps({"stage": 1, "bucket": bucket, **meter.figures(matches=matches, late=0)})


def progress(batch: int, *steps: str) -> dict[str, Any]:
    totals = dict.fromkeys(COUNTS, 0) | {STAGES: ",".join(steps)}
    source = {"rows": 3, "count": 1, "unknown": 0}
    observed = {METRICS: totals, "augury_observed_7f_1": source, "augury_observed_7f_2": source}
    return {"runId": "r", "batchId": batch, "observedMetrics": observed}


def test_what_is_done_adds_up_and_what_is_held_is_that_of_the_last_step() -> None:
    sessions = [PROGRAM.session(clock="logical") for _ in range(2)]
    metrics = StreamMetrics()
    metrics.add(progress(0, step(sessions[0], 0, Event("a", (1,), 1), Event("b", (1,), 2)), step(sessions[1], 5, Event("a", (2,), 1))))  # fmt: skip
    second = progress(1, step(sessions[0], 0, Event("b", (1,), 4)))
    metrics.add(second)
    metrics.add(second)  # Spark says it again as `lastProgress`
    stats = metrics.stats()
    assert (stats["received"], stats["malformed"]) == (6, 2)  # two stages read one source
    (stage,) = stats["stages"].values()
    assert stage["events"] == 4
    assert stage["rows"] == stats["rows"] == sum(session.stats()["rows"] for session in sessions)
    assert stage["bytes"] == sum(session.stats()["bytes"] for session in sessions)
    assert {label: figures["matches"] for label, figures in stage["rules"].items()} == {"rise": 2, "alarm": 4}
    for label in ("rise", "alarm"):
        held = sum(session.stats()["rules"][label]["rows"] for session in sessions)
        assert stage["rules"][label]["rows"] == held


def test_a_batch_without_rows_says_nothing() -> None:
    metrics = StreamMetrics()
    metrics.add({"runId": "r", "batchId": 0, "observedMetrics": None})
    assert metrics.stats() == {"rows": 0, "bytes": 0, "stages": {}}
