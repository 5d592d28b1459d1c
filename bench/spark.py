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
from numpy.typing import NDArray
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
from bench.spark_baselines import IN_SQL, counting, in_sql
from bench.spark_model import JobCost, Line, fitted, job_cost, logged, predicted, stage_costs
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
EVENT_LOG = "event-log"  # a folder
SCHEMA = "type string, key bigint, x double, y double, time bigint"

MODEL = (1, 10, 50)  # times the events of one run
PARTITION = 2_000_000  # events that one task of the model has
BILLION, CLUSTER = 10**9, 100  # events, and cores, that the model is asked for
USERS, EXPONENT, NEAR = 10_000, 1.1, 100  # of the stream with hot keys; milliseconds

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
    "cores": "History: P1 on one core and on two",
    "zipf": f"History: pairs within {NEAR} ms, keys by Zipf's law",
    "model": "History: what each stage costs by the number of events, and what follows for a cluster",
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

    @property
    def event_log(self) -> Path:
        return self.folder / EVENT_LOG

    def frame(self, name: str, stream: Stream) -> DataFrame:
        """Another stream from Parquet."""
        folder = self.folder / name
        if not folder.exists():
            folder.mkdir()
            for i in range(FILES):
                write(stream, folder, i, slice(i * len(stream) // FILES, (i + 1) * len(stream) // FILES))
        return self.spark.read.parquet(str(folder))

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
    """Patterns over a history, each beside the baseline and beside Spark SQL where it can say the same."""
    events = lab.history()
    frames = {name: found(BATCH[name], events) for name in names}
    queries = {name: in_sql(lab.spark, name, events) for name in names if name in IN_SQL}
    base = "baseline"
    plans = {base: unchanged(events), **frames, **{f"{name} in SQL": query for name, query in queries.items()}}
    measured = side_by_side({name: partial(to_nowhere, plan) for name, plan in plans.items()}, lab.settings.repeat)
    size = len(lab.stream)
    yield row("batch", "repartition, sort, mapInArrow", base, measured[base], size)
    for name, frame in frames.items():
        pattern = BATCH[name]
        case, expected = f"{name} {pattern.title}", pattern.expected(lab.stream)
        yield row(
            "batch", case, "augury", measured[name], size, frame.count(), expected, measured[base], 1.5,
        )  # fmt: skip
        if name in queries:
            yield row("batch", case, "Spark SQL", measured[f"{name} in SQL"], size, queries[name].count(), expected)


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
    told = in_new_session(code, f"{BIG * len(lab.stream):,} events in a new session …")
    note = f"JVM {told['jvm']:.2f}, Python {told['python']:.2f} GB; {told['cpu']:.1f} CPU s"
    yield Row(
        "big", "P1", "augury", told["jvm"] + told["python"], "GB", BIG * len(lab.stream), int(told["answers"]),
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


def cores(lab: Lab) -> Iterator[Row]:
    """The same history in sessions with one core and with two: CPU seconds, and seconds by the clock."""
    path, size = lab.files(FILES), len(lab.stream)
    base: dict[str, float] = {}
    for number in (1, CORES):
        told = in_new_session(
            f"from bench.spark import cores_run; cores_run({path!r}, {str(lab.folder)!r}, {number}, {lab.settings.repeat})",
            f"a session with {number} of {CORES} cores …",
        )
        for series, unit in (("cpu", "CPU s"), ("wall", "s by the clock")):
            yield Row(
                "cores", "one core" if number == 1 else f"{number} cores", "augury", told[series], unit, size, int(told["answers"]),
                SEQUENCE.expected(lab.stream), None, "", base.get(series),
            )  # fmt: skip
            base.setdefault(series, told[series])


def cores_run(path: str, folder: str, number: int, repeat: int) -> None:
    """Writes figures as JSON."""
    spark = session("3g", Path(folder), number)
    answers = found(SEQUENCE, spark.read.parquet(path))
    best = side_by_side({"P1": partial(to_nowhere, answers)}, repeat)["P1"].best
    sys.stdout.write(json.dumps({"cpu": best.cpu, "wall": best.wall, "answers": answers.count()}) + "\n")


def in_new_session(code: str, doing: str) -> dict[str, float]:
    """What a script with a Spark session of its own reports."""
    with working(doing):
        done = subprocess.run(script(code), capture_output=True, text=True, check=False)
    if done.returncode:
        raise RunError(f"the session ended with {done.returncode}: {done.stderr[-2000:]}")
    return dict(json.loads(done.stdout.splitlines()[-1]))


def zipf(lab: Lab) -> Iterator[Row]:
    """Events of users some of whom are very busy, beside the same rule over users who are all alike."""
    text = PRELUDE + f"found(K, X, Y) <- (a(K, X, _) SEQ b(K, Y, _)).{NEAR}."
    rng = np.random.default_rng(SEED)
    size = len(lab.stream)
    weights = 1 / np.arange(1, USERS + 1) ** EXPONENT
    users = {
        "even": rng.integers(0, USERS, size),
        "Zipf": rng.choice(USERS, size, p=weights / weights.sum()),
    }
    streams = {name: replace(lab.stream, key=key) for name, key in users.items()}
    frames = {name: detect(text, lab.frame(f"{name} keys", keyed))["found"] for name, keyed in streams.items()}
    measured = side_by_side({name: partial(to_nowhere, frame) for name, frame in frames.items()}, lab.settings.repeat)
    for name, keyed in streams.items():
        base = None if name == "even" else measured["even"]
        yield row("zipf", f"{name} keys", "augury", measured[name], size, frames[name].count(), pairs(keyed), base)


def pairs(stream: Stream) -> int:
    """a before b with the same key, no further apart than the window."""
    firsts, seconds = (np.sort(keyed_times(stream, kind)) for kind in (A, B))
    return int(np.sum(np.searchsorted(firsts, seconds) - np.searchsorted(firsts, seconds - NEAR)))


def keyed_times(stream: Stream, kind: int) -> NDArray[np.int64]:
    """Key and time of the events of a type as one number; keys are further apart than any window."""
    rows = stream.kind == kind
    return np.asarray(stream.key[rows] * (2 * int(stream.time[-1])) + stream.time[rows])


def model(lab: Lab) -> Iterator[Row]:
    """P1 over one, ten and fifty times the data; the lines through these costs; and what they say of a cluster."""
    size = len(lab.stream)
    costs = {times * size: modelled(lab, times) for times in MODEL}
    for events, cost in costs.items():
        for series, value in stage_figures(cost):
            yield Row("model", f"{events:,} events", series, value, "CPU s", events)
        note = f"{cost.shuffle_bytes / events:.1f} bytes an event"
        yield Row("model", f"{events:,} events", "shuffle", cost.shuffle_bytes / GIGABYTE, "GB", events, note=note)
        yield Row("model", f"{events:,} events", "memory of workers", cost.worker_bytes / GIGABYTE, "GB", events)
    *smaller, largest = costs
    few = fitted({events: costs[events] for events in smaller})
    yield Row(
        "model", f"{largest:,} events, foretold by the others", "all", predicted(few, largest, CORES).cpu, "CPU s",
        largest, base=costs[largest].cpu,
    )  # fmt: skip
    lines = fitted(costs)
    for series, name in (("per million events", "each"), ("fixed", "fixed")):
        for stage, value in stage_figures(lines_as_cost(lines, name)):
            yield Row("model", series, stage, value * (1e6 if name == "each" else 1), "CPU s")
    told = predicted(lines, BILLION, CLUSTER)
    case = f"{BILLION:,} events on {CLUSTER} cores"
    yield Row("model", case, "all", told.cpu, "CPU s", BILLION)
    yield Row("model", case, "all", told.wall, "s by the clock", BILLION)
    yield Row("model", case, "shuffle", told.shuffle_bytes / GIGABYTE, "GB", BILLION)


def modelled(lab: Lab, times: int) -> JobCost:
    """The last of two runs: the first one compiles."""
    lab.spark.conf.set("spark.sql.shuffle.partitions", max(CORES, times * len(lab.stream) // PARTITION))
    answers = found(SEQUENCE, lab.history(times))
    expected = times * SEQUENCE.expected(lab.stream)
    with working(f"P1 over {times * len(lab.stream):,} events …"):
        if times == 1 and answers.count() != expected:
            raise RunError(f"P1 has {expected} answers")
        before = set(stage_costs(logged(lab.event_log)))
        with peak() as most:
            cost, _ = spent(partial(to_nowhere, answers))
            memory = most()
    after = stage_costs(logged(lab.event_log))
    return job_cost([after[number] for number in after.keys() - before], cost.jvm, cost.python, memory.python)


def stage_figures(cost: JobCost) -> list[tuple[str, float]]:
    return [
        ("read and shuffle", cost.read_cpu),
        ("sort and transfer", cost.engine_jvm_cpu),
        ("engine", cost.engine_python_cpu),
        ("the rest of the JVM", cost.overhead),
    ]


def lines_as_cost(lines: Mapping[str, Line], part: str) -> JobCost:
    return JobCost(**{name: getattr(line, part) for name, line in lines.items()})


# Streams


def stream(lab: Lab) -> Iterator[Row]:
    """P1 over a stream of files, in one micro-batch and in eight."""
    size = len(lab.stream)
    path = lab.files(STREAM_FILES)
    expected = ready_sequences(lab.stream)
    for case, files in (("1 micro-batch", STREAM_FILES), (f"{STREAM_FILES} micro-batches", 1)):
        given = lab.spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", files).parquet(path)
        works = {
            f"{case}, no state": partial(drained, lab, given.mapInArrow(lambda given: given, given.schema)),
            f"{case}, counting": partial(drained, lab, counting(given, BUCKETS)),
            case: partial(drained, lab, watched(SEQUENCE.text, given)),
        }
        base, smallest, mine = side_by_side(works, lab.settings.repeat).values()
        yield row("stream", case, "no state", base, size, base.result, size)
        yield row("stream", case, "one value of state", smallest, size, smallest.result, size, base)
        yield row("stream", case, "augury", mine, size, mine.result, expected, base, 2.5)


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
LONG: dict[str, Experiment] = {"scale": scale, "small": small, "big": big, "cores": cores, "zipf": zipf, "model": model}
ALL = SHORT | LONG


def session(memory: str, folder: Path, number: int = CORES) -> SparkSession:
    log = folder / EVENT_LOG
    log.mkdir(exist_ok=True)
    return open_session(
        f"local[{number}]",
        [
            "spark.eventLog.enabled=true",
            f"spark.eventLog.dir={log}",
            "spark.eventLog.compress=false",
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
