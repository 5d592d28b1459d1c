"""What each stage of a job on Spark costs by the number of events: measured, fitted by a line, and read off for more.

Spark's event log says what each stage read, shuffled and used of the CPU in the JVM; the CPU time of the Python workers is
counted by Linux, and belongs to the stages after the shuffle, where the engine runs.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np

BYTES, ROWS = "bytes", "rows"
SECOND = 1e9  # nanoseconds


@dataclass(frozen=True)
class JobCost:
    """What one run cost: CPU seconds by what they were spent on, what went through the shuffle, and memory.

    `overhead` is CPU time of the JVM outside of tasks: planning, compilation, garbage collection.
    """

    read_cpu: float
    engine_jvm_cpu: float
    engine_python_cpu: float
    overhead: float
    shuffle_rows: float
    shuffle_bytes: float
    worker_bytes: float

    @property
    def cpu(self) -> float:
        return self.read_cpu + self.engine_jvm_cpu + self.engine_python_cpu + self.overhead


@dataclass(frozen=True)
class Line:
    """`fixed + each * events`."""

    fixed: float
    each: float

    def __call__(self, events: float) -> float:
        return self.fixed + self.each * events


def fitted(costs: Mapping[int, JobCost]) -> dict[str, Line]:
    """A line for each figure, where the largest run counts most: relative errors are made small, none is negative."""
    events = np.array(sorted(costs), float)
    return {
        field.name: line(events, np.array([getattr(costs[int(number)], field.name) for number in events]))
        for field in fields(JobCost)
    }


def line(
    events: np.ndarray[tuple[int], np.dtype[np.float64]], values: np.ndarray[tuple[int], np.dtype[np.float64]]
) -> Line:
    """The best line by relative error. A cost is not negative for no events: through zero then."""
    weights = 1 / np.maximum(values, 1e-9)
    table = np.column_stack([weights, events * weights])
    fixed, each = np.linalg.lstsq(table, values * weights, rcond=None)[0]
    if fixed >= 0 and each >= 0:
        return Line(float(fixed), float(each))
    if each < 0:
        return Line(float(np.mean(values)), 0.0)
    slope = float(np.sum(events * weights * values * weights) / np.sum((events * weights) ** 2))
    return Line(0.0, slope)


@dataclass(frozen=True)
class Prediction:
    """A job on a cluster: CPU seconds of all cores, seconds by the clock, and bytes."""

    cpu: float
    wall: float
    shuffle_bytes: float
    worker_bytes: float


def predicted(
    lines: Mapping[str, Line], events: float, cores: int, network: float = 1.25e9 / 16, skew: float = 1.25
) -> Prediction:
    """Reading off the lines for more events on more cores.

    Work in tasks is spread evenly over cores, the last of which takes `skew` times as long; the fixed parts stay on the
    driver. Each core sends and receives its share of the shuffle at `network` bytes a second (10 Gbit/s for 16 cores).
    """
    parallel = sum(lines[name](events) - lines[name].fixed for name in _CPU)
    serial = sum(lines[name].fixed for name in _CPU)
    moved = lines["shuffle_bytes"](events)
    wall = serial + skew * parallel / cores + moved / (cores * network)
    return Prediction(serial + parallel, wall, moved, lines["worker_bytes"](events))


_CPU = ("read_cpu", "engine_jvm_cpu", "engine_python_cpu", "overhead")


# The event log


@dataclass(frozen=True)
class StageCost:
    """Of all tasks of one stage."""

    cpu: float
    shuffle_read_rows: int
    shuffle_write_rows: int
    shuffle_write_bytes: int


def stage_costs(lines: Iterable[str]) -> dict[int, StageCost]:
    """What the tasks of each stage cost, by the lines of an event log."""
    stages: dict[int, StageCost] = {}
    for text in lines:
        event = json.loads(text)
        if event["Event"] == "SparkListenerTaskEnd" and event.get("Task Metrics"):
            number = event["Stage ID"]
            stages[number] = _added(stages.get(number, StageCost(0.0, 0, 0, 0)), event["Task Metrics"])
    return stages


def _added(cost: StageCost, task: Mapping[str, object]) -> StageCost:
    read, written = _figures(task, "Shuffle Read Metrics"), _figures(task, "Shuffle Write Metrics")
    cpu = float(str(task["Executor CPU Time"])) + float(str(task["Executor Deserialize CPU Time"]))
    return StageCost(
        cost.cpu + cpu / SECOND,
        cost.shuffle_read_rows + read["Total Records Read"],
        cost.shuffle_write_rows + written["Shuffle Records Written"],
        cost.shuffle_write_bytes + written["Shuffle Bytes Written"],
    )


def _figures(task: Mapping[str, object], name: str) -> dict[str, int]:
    metrics = task[name]
    assert isinstance(metrics, dict)
    return metrics


def logged(folder: Path) -> Iterator[str]:
    """All lines of the event log of the one application that writes to a folder."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.name.startswith("appstatus") and path.suffix != ".crc":
            with path.open(encoding="utf-8") as log:
                yield from (text for text in log if text.endswith("\n"))


def job_cost(stages: Sequence[StageCost], jvm: float, python: float, worker_bytes: float) -> JobCost:
    """The stages of one job: those that read no shuffle read the files, the others run the engine."""
    readers = [stage for stage in stages if not stage.shuffle_read_rows]
    engines = [stage for stage in stages if stage.shuffle_read_rows]
    in_tasks = sum(stage.cpu for stage in stages)
    return JobCost(
        sum(stage.cpu for stage in readers),
        sum(stage.cpu for stage in engines),
        python,
        max(0.0, jvm - in_tasks),
        sum(stage.shuffle_write_rows for stage in stages),
        sum(stage.shuffle_write_bytes for stage in stages),
        worker_bytes,
    )
