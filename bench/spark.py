"""`augury bench --engine spark`: history and streams on Spark, each beside what Spark does without Augury.

Figures are CPU seconds of all processes: driver, JVM and workers. What is compared runs in turn, so that both find the
machine as busy and the JVM as warm.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import count
from pathlib import Path
from random import Random
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias

import numpy as np
from pyspark.sql import DataFrame, SparkSession

from augury.core.errors import RunError
from augury.spark import detect, detect_stream
from augury.spark.failures import user_errors
from augury.spark.starting import open_session
from augury.terminal import say, working
from bench import script
from bench.counts import bundles
from bench.main import report
from bench.measure import Settings
from bench.patterns import PATTERNS, PRELUDE, Pattern
from bench.processes import Cost, check_system, peak, spent
from bench.rows import Row
from bench.streams import BEGIN, KINDS, SEED, A, B, C, Stream, abcd
from bench.workload import pa

SIZE = 2_000_000
CORES = 2
FILES, STREAM_FILES = 4, 8
BUCKETS = 16
LATENESS = 1_000  # milliseconds
TENFOLD = 10
BIG = 5  # times the events of the others
STEPS, WARM_STEPS, STEP = 20, 5, 1_000
HITS = 50  # of the events of a small step find their partner in the state
GIGABYTE = 1e9
SCHEMA = "type string, key bigint, x double, y double, time bigint"

LONG_WINDOW = "found(K, X, Y) <- (a(K, X, _) SEQ b(K, Y, _)).1000000000000."
BATCH = {p.name: p for p in PATTERNS if p.name.split("-")[0] in ("P1", "P2", "P3", "P4", "P5")}
SEQUENCE, SIXTEEN = BATCH["P1"], next(p for p in PATTERNS if p.name == "P7")

TITLES = {
    "batch": "History: beside repartition, sort and identity mapInArrow",
    "copies": "History: sixteen copies of P1 beside one",
    "scale": "History: P1 over ten times the data",
    "stream": f"Stream: P1, available now, {BUCKETS} buckets, beside the same stream without state",
    "small": f"Stream: {STEP:,} events on a small and a large state, for each micro-batch",
    "big": "History: P1 with a driver of 2 GB, peak of resident memory",
}


@dataclass
class Lab:
    """A Spark session, a folder for files, and how much of everything."""

    spark: SparkSession
    folder: Path
    settings: Settings

    def __post_init__(self) -> None:
        self.numbers = count()

    @cached_property
    def stream(self) -> Stream:
        return abcd(4 * max(1, self.settings.events // 4), Random(SEED))

    def new(self, name: str) -> Path:
        return self.folder / f"{name}-{next(self.numbers)}"

    def files(self, number: int, times: int = 1) -> str:
        """The stream in Parquet, and the same again later with other keys, so often."""
        folder = self.folder / f"events-{number}-{times}"
        if not folder.exists():
            folder.mkdir()
            size = len(self.stream)
            for again in range(times):
                part = replace(self.stream, key=self.stream.key + again * size, time=self.stream.time + again * size)
                for i in range(number):
                    write(part, folder, again * number + i, slice(i * size // number, (i + 1) * size // number))
        return str(folder)

    def history(self, times: int = 1) -> DataFrame:
        return self.spark.read.parquet(self.files(FILES, times))


Experiment: TypeAlias = Callable[[Lab], Iterator[Row]]


def write(stream: Stream, folder: Path, number: int, rows: slice = slice(None)) -> None:
    """A part of a stream as a file, which is there at once; later numbers are younger, and streams read by age."""
    import pyarrow.parquet as pq

    kinds = np.array(list(KINDS))[stream.kind[rows]]
    table = pa.table({"type": kinds, "key": stream.key[rows], "x": stream.x[rows], "y": stream.y[rows], "time": stream.time[rows]})  # fmt: skip
    hidden, shown = folder / f".{number}", folder / f"{number:06}.parquet"
    pq.write_table(table, hidden)
    os.utime(hidden, (number + 1, number + 1))
    hidden.rename(shown)


# What is measured


def to_nowhere(frame: DataFrame) -> None:
    frame.write.format("noop").mode("overwrite").save()


def unchanged(events: DataFrame) -> DataFrame:
    """What any computation by key pays: a shuffle, a sort, and the way through Python."""
    return events.repartition(CORES, "key").sortWithinPartitions("time").mapInArrow(lambda given: given, events.schema)


def found(pattern: Pattern, events: DataFrame) -> DataFrame:
    """The answers as a user takes them: of one type, or of all in one pass."""
    answers = detect(pattern.text, events)
    return answers.wide if len(answers) > 1 else answers[pattern.outputs]


@dataclass(frozen=True)
class Measured:
    """The warm-up and the best run after it."""

    warm: Cost
    best: Cost
    result: Any


def side_by_side(works: Mapping[str, Callable[[], Any]], repeat: int) -> dict[str, Measured]:
    """Runs works in turn, once to warm up and then so often."""
    runs: dict[str, list[tuple[Cost, Any]]] = {name: [] for name in works}
    for turn in range(1 + max(1, repeat)):
        for name, work in works.items():
            with working(f"{name}, {f'run {turn}' if turn else 'warm-up'} …"):
                runs[name].append(spent(work))
    return {
        name: Measured(mine[0][0], min((cost for cost, _ in mine[1:]), key=lambda cost: cost.cpu), mine[-1][1])
        for name, mine in runs.items()
    }


def shares(cost: Cost) -> str:
    return f"JVM {cost.jvm:.2f}, Python {cost.python:.2f}, by the clock {cost.wall:.2f} s"


def row(
    figure: str, case: str, series: str, measured: Measured, events: int, answers: int | None = None,
    expected: int | None = None, base: Measured | None = None, target: float | None = None,
) -> Row:  # fmt: skip
    best = measured.best
    return Row(
        figure, case, series, best.cpu, "CPU s", events, answers, expected, measured.warm.cpu, shares(best),
        None if base is None else base.best.cpu, target,
    )  # fmt: skip


# History


def batch(lab: Lab, names: Sequence[str] = tuple(BATCH)) -> Iterator[Row]:
    """Patterns over a history, each beside the baseline."""
    events = lab.history()
    frames = {name: found(BATCH[name], events) for name in names}
    base = "baseline"
    works = {name: partial(to_nowhere, frame) for name, frame in {base: unchanged(events), **frames}.items()}
    measured = side_by_side(works, lab.settings.repeat)
    size = len(lab.stream)
    yield row("batch", "repartition, sort, mapInArrow", base, measured[base], size)
    for name, frame in frames.items():
        pattern = BATCH[name]
        yield row(
            "batch", f"{name} {pattern.title}", "augury", measured[name], size, frame.count(),
            pattern.expected(lab.stream), measured[base], 1.5,
        )  # fmt: skip


def copies(lab: Lab) -> Iterator[Row]:
    """Equal rules under sixteen heads: their work is done once, their answers are written."""
    events = lab.history()
    frames = {pattern.name: found(pattern, events) for pattern in (SEQUENCE, SIXTEEN)}
    measured = side_by_side({name: partial(to_nowhere, frame) for name, frame in frames.items()}, lab.settings.repeat)
    for pattern, base, target in ((SEQUENCE, None, None), (SIXTEEN, measured[SEQUENCE.name], 2.0)):
        yield row(
            "copies", f"{pattern.name} {pattern.title}", "augury", measured[pattern.name], len(lab.stream),
            frames[pattern.name].count(), pattern.expected(lab.stream), base, target,
        )  # fmt: skip


def scale(lab: Lab) -> Iterator[Row]:
    size, expected = len(lab.stream), SEQUENCE.expected(lab.stream)
    frames = {times: found(SEQUENCE, lab.history(times)) for times in (1, TENFOLD)}
    works = {f"{times * size:,} events": partial(to_nowhere, frame) for times, frame in frames.items()}
    once, tenfold = side_by_side(works, lab.settings.repeat).values()
    yield row("scale", "P1", "N events", once, size, frames[1].count(), expected)
    yield row(
        "scale", "P1", "10 N events", tenfold, TENFOLD * size, frames[TENFOLD].count(), TENFOLD * expected, once, 11.0
    )


def big(lab: Lab) -> Iterator[Row]:
    """In a session of its own, whose memory is limited."""
    path = lab.files(FILES, BIG)
    code = f"from bench.spark import big_run; big_run({path!r}, {str(lab.folder)!r})"
    with working(f"{BIG * len(lab.stream):,} events in a new session …"):
        done = subprocess.run(script(code), capture_output=True, text=True, check=False)
    if done.returncode:
        raise RunError(f"the session ended with {done.returncode}: {done.stderr[-2000:]}")
    told = json.loads(done.stdout.splitlines()[-1])
    note = f"JVM {told['jvm']:.2f}, Python {told['python']:.2f} GB; {told['cpu']:.1f} CPU s"
    yield Row(
        "big", "P1", "augury", told["jvm"] + told["python"], "GB", BIG * len(lab.stream), told["answers"],
        BIG * SEQUENCE.expected(lab.stream), None, note, target=4.0,
    )  # fmt: skip


def big_run(path: str, folder: str) -> None:
    """Writes figures as JSON."""
    spark = session("2g", Path(folder))
    answers = found(SEQUENCE, spark.read.parquet(path))
    with peak() as most:
        cost, _ = spent(partial(to_nowhere, answers))
        memory = most()
    figures = {"jvm": memory.jvm / GIGABYTE, "python": memory.python / GIGABYTE, "cpu": cost.cpu}
    sys.stdout.write(json.dumps(figures | {"answers": answers.count()}) + "\n")


# Streams


def stream(lab: Lab) -> Iterator[Row]:
    """P1 over a stream of files, in one micro-batch and in eight."""
    size = len(lab.stream)
    path = lab.files(STREAM_FILES)
    expected = ready_sequences(lab.stream)
    for case, files in (("1 micro-batch", STREAM_FILES), (f"{STREAM_FILES} micro-batches", 1)):
        given = lab.spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", files).parquet(path)
        works = {
            f"{case}, baseline": partial(drained, lab, given.mapInArrow(lambda given: given, given.schema)),
            case: partial(drained, lab, watched(SEQUENCE.text, given)),
        }
        base, mine = side_by_side(works, lab.settings.repeat).values()
        yield row("stream", case, "no state", base, size, base.result, size)
        yield row("stream", case, "augury", mine, size, mine.result, expected, base, 5.0)


def ready_sequences(stream: Stream) -> int:
    """The answers of P1 that nothing can change any more: the clock is behind the last event by the lateness."""
    keys = bundles(stream)
    clock = int(stream.time[-1]) - LATENESS
    return int(np.sum(keys.before(A, B) & keys.before(B, C) & (keys.when[:, C] < clock)))


def watched(text: str, given: DataFrame) -> DataFrame:
    return detect_stream(text, given, lateness=f"{LATENESS} ms", emit="final", buckets=BUCKETS)["found"]


def drained(lab: Lab, frame: DataFrame) -> int:
    """Runs a stream over all that is there; the number of rows that come out."""
    where = str(lab.new("checkpoint"))
    query = frame.writeStream.format("noop").option("checkpointLocation", where).trigger(availableNow=True).start()
    query.awaitTermination()
    return written(query)


def written(query: Any) -> int:
    return sum(max(0, step["sink"]["numOutputRows"]) for step in query.recentProgress)


def small(lab: Lab) -> Iterator[Row]:
    """Small micro-batches on a state of many events, and on a hundredth of it: the cost is that of the batch."""
    many = max(1, lab.settings.events // 2)
    few = max(1, many // 100)
    found_few, found_many = (small_steps(lab, held) for held in (few, many))
    for series, unit in (("cpu", "CPU ms"), ("wall", "ms by the clock")):
        base = None
        for held, (costs, answers, expected) in ((few, found_few), (many, found_many)):
            middle = 1000 * median(getattr(cost, series) for cost in costs)
            jvm = 1000 * median(cost.jvm for cost in costs)
            note = f"JVM {jvm:.0f}" if series == "cpu" else ""
            yield Row(
                "small", f"{held:,} events of state", "augury", middle, unit, STEP, answers, expected, None, note,
                base, None if base is None else 1.5,
            )  # fmt: skip
            base = middle


def small_steps(lab: Lab, held: int) -> tuple[list[Cost], int, int]:
    """The costs of some small micro-batches after many events have come; answers, and how many there must be."""
    folder = lab.new("arrivals")
    folder.mkdir()
    given = lab.spark.readStream.schema(SCHEMA).parquet(str(folder))
    sink = watched(PRELUDE + LONG_WINDOW, given).writeStream.format("noop")
    query = sink.option("checkpointLocation", str(lab.new("checkpoint"))).start()

    def told(events: Stream, number: int) -> None:
        write(events, folder, number)
        query.processAllAvailable()

    costs: list[Cost] = []
    ends: list[int] = []
    try:
        with working(f"{held:,} events of state …"):
            told(held_events(held), 0)
            for number in range(1, WARM_STEPS + STEPS + 1):
                events = step_events(held, number)
                ends += events.time[events.key < held].tolist()
                costs.append(spent(partial(told, events, number))[0])
        last = BEGIN + held + number * STEP - 1
        return costs[WARM_STEPS:], written(query), sum(end < last - LATENESS for end in ends)
    finally:
        query.stop()


def held_events(number: int) -> Stream:
    """One a for each key: all wait for their b."""
    rng = np.random.default_rng(SEED)
    values = rng.random((2, number))
    return Stream(
        np.zeros(number, np.int64), np.arange(number), values[0], values[1], BEGIN + np.arange(number, dtype=np.int64)
    )


def step_events(held: int, number: int) -> Stream:
    """Some b find the a that waits for them; the other b, and the a that join the state, have keys of their own."""
    rng = np.random.default_rng((SEED, number))
    keys = held + number * STEP + np.arange(STEP)
    keys[:HITS] = rng.integers(0, held, HITS)
    order = rng.permutation(STEP)
    values = rng.random((2, STEP))
    kinds = np.where(np.arange(STEP) < STEP // 2, KINDS.index("b"), KINDS.index("a"))
    times = BEGIN + held + (number - 1) * STEP + np.arange(STEP, dtype=np.int64)
    return Stream(kinds[order], keys[order], values[0], values[1], times)


# The command

SHORT: dict[str, Experiment] = {"batch": batch, "copies": copies, "stream": stream}
LONG: dict[str, Experiment] = {"scale": scale, "small": small, "big": big}
ALL = SHORT | LONG


def session(memory: str, folder: Path) -> SparkSession:
    return open_session(
        f"local[{CORES}]",
        [
            f"spark.driver.memory={memory}",
            f"spark.local.dir={folder}",
            "spark.sql.streaming.numRecentProgressUpdates=1000",
        ],
    )


def chosen(names: Sequence[str]) -> dict[str, Experiment]:
    """The experiments that are meant: a group, patterns of `batch`, or `all`; the short ones where nothing is named."""
    known = {name.lower(): name for name in (*ALL, *BATCH)}
    picked: list[str] = []
    for name in names or SHORT:
        if name.lower() == "all":
            picked += ALL
        elif name.lower() in known:
            picked.append(known[name.lower()])
        else:
            raise KeyError(name)
    patterns = [name for name in dict.fromkeys(picked) if name in BATCH]
    some: dict[str, Experiment] = {"batch": partial(batch, names=patterns)} if patterns else {}
    return some | {name: ALL[name] for name in picked if name in ALL}


def run(
    names: Sequence[str],
    events: int = SIZE,
    json_path: str | None = None,
    charts_dir: str | None = None,
    repeat: int = 3,
) -> int:
    """Exit code 0 when every count is right, 1 when one is wrong or cannot be had, 2 for a name that is not there."""
    try:
        picked = chosen(names)
    except KeyError as error:
        say(f"error: no benchmark on Spark is called {error}; there are {', '.join([*ALL, *BATCH, 'all'])}")
        return 2
    check_system()
    with TemporaryDirectory(prefix="augury-bench-") as folder:
        with working("starting Spark, which takes some seconds"):
            spark = session("3g", Path(folder))
        try:
            lab = Lab(spark, Path(folder), Settings(events, repeat))
            return report({n: partial(rows_of, e, lab) for n, e in picked.items()}, TITLES, json_path, charts_dir)
        finally:
            spark.stop()


def rows_of(experiment: Experiment, lab: Lab) -> list[Row]:
    with user_errors():
        return list(experiment(lab))
