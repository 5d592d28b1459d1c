"""The cost model of jobs on Spark: event logs are added up by stage, and lines are fitted and read off."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("pyspark")

from bench.spark_model import JobCost, Line, fitted, job_cost, predicted, stage_costs


def task(stage: int, cpu: float, read: int, written: int, bytes_written: int) -> str:
    metrics = {
        "Executor CPU Time": cpu * 1e9,
        "Executor Deserialize CPU Time": 0,
        "Shuffle Read Metrics": {"Total Records Read": read},
        "Shuffle Write Metrics": {"Shuffle Records Written": written, "Shuffle Bytes Written": bytes_written},
    }
    return json.dumps({"Event": "SparkListenerTaskEnd", "Stage ID": stage, "Task Metrics": metrics})


def test_tasks_of_an_event_log_add_up_by_stage() -> None:
    log = [
        json.dumps({"Event": "SparkListenerJobStart"}),
        task(0, 1.5, 0, 60, 600),
        task(0, 0.5, 0, 40, 400),
        task(1, 3.0, 100, 0, 0),
        json.dumps({"Event": "SparkListenerTaskEnd", "Stage ID": 1}),  # a task that failed has no metrics
    ]
    cost = job_cost(list(stage_costs(log).values()), jvm=6.0, python=2.0, worker_bytes=7.0)
    assert cost == JobCost(2.0, 3.0, 2.0, 1.0, 100, 1000, 7.0)
    assert cost.cpu == 8.0


def at(events: int) -> JobCost:
    return JobCost(1 + 2e-6 * events, 3e-6 * events, 4e-6 * events, 5.0, events, 40 * events, 1e9)


def test_lines_through_costs_foretell_larger_jobs() -> None:
    lines = fitted({events: at(events) for events in (1_000_000, 10_000_000)})
    assert lines["read_cpu"].fixed == pytest.approx(1) and lines["read_cpu"].each == pytest.approx(2e-6)
    assert lines["overhead"].fixed == pytest.approx(5) and lines["overhead"].each == pytest.approx(0, abs=1e-12)
    told = predicted(lines, 10**9, 100, network=1e8, skew=1.5)
    assert told.cpu == pytest.approx(at(10**9).cpu)
    assert told.wall == pytest.approx(6 + 1.5 * 9000 / 100 + 40e9 / (100 * 1e8))


def test_no_cost_is_negative() -> None:
    def read(first: float, second: float) -> Line:
        costs = {10: JobCost(first, 0, 0, 0, 0, 0, 0), 20: JobCost(second, 0, 0, 0, 0, 0, 0)}
        return fitted(costs)["read_cpu"]

    steep = read(1, 3)  # the line would be below zero for no events: the one through zero has the least relative error
    assert steep.fixed == 0 and steep.each == pytest.approx((10 + 20 / 3) / (10**2 + (20 / 3) ** 2))
    assert read(3, 1) == Line(2.0, 0.0)  # less for more
