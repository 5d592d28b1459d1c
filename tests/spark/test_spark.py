"""The Spark executors against the reference, on Spark itself: many programs in one job, and every way to give events."""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import augury
from augury.algebra.aggregates import AggregateFunction
from augury.algebra.nodes import HOLDING, Clause, Holds, Rule, Scan, Unless, held_by, made_type
from augury.algebra.plan import Attribute, Plan, Predicate
from augury.algebra.scalar import Function
from augury.core.clock import Clock, Duration, Timestamp, read_timestamp
from augury.core.errors import AuguryError, DataError, RunError
from augury.core.model import VERSION_NEEDS_ID, Event, Fact, HistoryItem, Iri, OrderKey, Revocation, Value, content_id
from augury.engine.decoding import from_tagged
from augury.program import Program
from augury.reference import evaluate
from augury.settings import Task
from augury.sources import ColumnNames, SourceFile
from augury.spark import detect, detect_stream
from augury.spark.inputs import EventFrame, TypeColumns
from augury.spark.job import SparkJob
from augury.spark.layout import Layout
from tests.differential.test_stages import Told, arrivals, random_mixture, random_told, same, told_of, waits_long
from tests.generators.programs import STRATEGIES
from tests.support.spark_local import HEARTBEAT, as_kept, cell, kinds_in
from tests.support.spark_session import INTERPRETED, SPARK
from tests.support.spark_session import spark_fixture as spark_fixture
from tests.support.spec_cases import all_cases, clock_windows

pytestmark = [*SPARK, pytest.mark.filterwarnings("ignore:rule .* keeps every event")]
FUZZ, LONG = (bool(os.environ.get(name)) for name in ("AUGURY_FUZZ", "AUGURY_LONG"))
_SQL = {"int": "bigint", "bool": "boolean", "float": "double", "number": "double", "timestamp": "timestamp", "json": "string"}  # fmt: skip


# Many programs in one


def renamed(thing: Any, before: str) -> Any:
    """A part of a plan with `before` in front of the names of event types, static predicates and rules."""
    if isinstance(thing, tuple):
        return tuple(renamed(part, before) for part in thing)
    if not is_dataclass(thing) or isinstance(thing, type):
        return thing
    changed = {f.name: renamed(getattr(thing, f.name), before) for f in fields(thing) if f.name != "span"}
    if isinstance(thing, Scan | Rule):
        held = held_by((thing.type, 0))
        changed["type"] = before + thing.type if held is None else HOLDING + before + held[0]
    if isinstance(thing, Rule):
        changed["label"] = before + thing.label
    if isinstance(thing, Rule) and thing.makes:
        changed["makes"] = before + thing.makes
        changed["type"] = made_type(before + thing.makes, thing.type.removesuffix(f" {thing.makes}"))
    if isinstance(thing, Holds | Unless | Clause):
        changed["name"] = before + thing.name
    return replace(thing, **changed)


@dataclass
class TraceInputs:
    """Programs with their histories as one, for one job: the names of number 17 begin with `c17_`."""

    tolds: Sequence[Told]

    def __post_init__(self) -> None:
        rules: list[Rule] = []
        clauses: list[Clause] = []
        static: dict[str, tuple[Attribute, ...]] = {}
        functions: dict[str, Function] = {}
        aggregates: dict[str, AggregateFunction] = {}
        outputs: list[str] = []
        self.histories: list[list[HistoryItem]] = []
        self.facts: list[Fact] = []
        for n, told in enumerate(self.tolds):
            plan, before = told.program.plan, f"c{n}_"
            rules += renamed(plan.rules, before)
            clauses += renamed(plan.clauses, before)
            static |= {before + name: a for name, a in plan.static.items()}
            functions |= plan.functions
            aggregates |= plan.aggregates
            outputs += [before + o for o in plan.outputs]
            self.facts += [
                replace(f, name=before + f.name) for f in (told.facts if told.closed is None else told.closed)
            ]
            kinds = kinds_in(told.history, typed=n % 2 == 0)
            self.histories.append(as_kept(told.history, kinds))
        self.program = Program(
            Plan(tuple(rules), tuple(clauses), {}, static, tuple(outputs), self.tolds[0].program.plan.tick, functions, aggregates)
        )  # fmt: skip

    def parts(self) -> list[TypeColumns]:
        found = [TypeColumns((HEARTBEAT, 0), (), ())]
        for n, history in enumerate(self.histories):
            for (type, arity), kinds in kinds_in(history, typed=n % 2 == 0).items():
                kinds = tuple("json" if k in ("iri", "duration") else "float" if k == "number" else k for k in kinds)
                used = dict.fromkeys(kinds, 0)
                columns = []
                for kind in kinds:
                    columns.append(f"{kind}{used[kind]}")
                    used[kind] += 1
                found.append(TypeColumns((f"c{n}_{type}", arity), tuple(columns), kinds))
        return found

    def rows(self, number: int, items: Iterable[HistoryItem]) -> list[dict[str, Any]]:
        """Items of one history as rows of the one DataFrame."""
        parts = {part.type: part for part in self.parts()}
        found: list[dict[str, Any]] = []
        for item in items:
            if isinstance(item, Revocation):
                found.append({"op": "revoke", "id": f"{number}:{item.id}"})
                continue
            part = parts[f"c{number}_{item.type}", len(item.args)]
            cells = {c: _plain(v, k) for c, v, k in zip(part.columns, item.args, part.kinds, strict=True)}
            id = f"{number}:{item.id}" if item.id else None
            found.append({"type": part.type[0], "start": item.start, "end": item.end, "id": id, "op": "insert", **cells})  # fmt: skip
        return found

    @property
    def schema(self) -> str:
        columns = sorted({(c, k) for part in self.parts() for c, k in zip(part.columns, part.kinds, strict=True)})
        typed = [f"{c} {_SQL.get(k, 'string')}" for c, k in columns]
        return ", ".join(["type string", "start bigint", "`end` bigint", "id string", "op string", *typed])

    def source(self, frame: DataFrame) -> list[EventFrame]:
        return [EventFrame(frame, tuple(self.parts()), ColumnNames(), mixed=True)]

    def answers(self, rows: Iterable[Any], layout: Layout) -> list[dict[OrderKey, Event]]:
        """The answers of each program; of a stream, those that stand."""
        found: list[dict[OrderKey, Event]] = [{} for _ in self.tolds]
        for row in sorted(rows, key=lambda row: row.asDict().get("op", "insert") == "insert"):
            number, type = row["type"][1:].split("_", 1)
            args = read_args(row["args"], (row["type"], len(json.loads(row["args"]))), layout)
            assert row["id"] == content_id(row["type"], args, row["start"], row["end"])
            event = Event(type, args, row["start"], row["end"], row["id"], tuple(row["trace"]))
            mine = found[int(number)]
            assert event.content not in mine, f"twice: {event}"
            mine[event.content] = event
        return found

    def check(self, number: int, answer: dict[OrderKey, Event], clocked: bool = True) -> None:
        """The answers of one program are those of the reference."""
        told, history = self.tolds[number], self.histories[number]
        now = max((i.end for i in history if isinstance(i, Event)), default=0)
        until = (now if told.until is None else told.until) if clocked else 10**9
        expected = evaluate(told.program.plan, history, told.clock, told.facts, until)
        kept = {content: e for content, e in answer.items() if e.end <= until}
        same(kept, {e.content: e for e in expected.events})
        known = {f"{number}:{i.id}" for i in history if isinstance(i, Event) and i.id}
        for event in kept.values():
            assert {id for id in event.trace if ":" in id} <= known


def _plain(value: Value, kind: str) -> Any:
    """A value as a Python object of its column."""
    if kind == "json":
        return cell(value, kind)
    return value if not isinstance(value, Timestamp) else str(value)


def read_args(text: str, type: Predicate, layout: Layout) -> tuple[Value, ...]:
    """The arguments of an answer from JSON."""

    def read(value: Any, kind: str) -> Value:
        match kind:
            case _ if value is None:
                return None
            case "json":
                return from_tagged(json.dumps(value))
            case "timestamp":
                return Timestamp(read_timestamp(value))
            case "duration":
                return Duration(int(value))
            case "iri":
                return Iri(value)
        return value  # type: ignore[no-any-return]

    return tuple(read(v, kind) for v, kind in zip(json.loads(text), layout.kinds[type], strict=True))


@cache
def spec_tolds(final: bool = False) -> list[Told]:
    """The cases that can share a job: on the logical clock without a tick, told nothing but facts and a clock.

    Where answers are final, without those whose answers might have to wait for ever.
    """
    found = []
    for case in all_cases():
        settings = set(case.settings) - {"events", "changes", "emit", "lateness"}
        if case.expected is None or case.queries or not settings <= {"facts", "until", "policy"}:
            continue
        told = told_of(case)
        if clock_windows(told.program.plan):
            continue  # the clock of all of them goes far, and so would their windows
        if told.program.plan.graph_queries:
            continue  # GRAPH in a rule names its stream: `test_spaseq_spark.py` runs these
        ids = [i.id for i in told.history if isinstance(i, Event) and i.id]
        types = {(i.type, len(i.args)) for i in told.history if isinstance(i, Event)}
        if len(types) > len({name for name, _ in types}):
            continue  # the type column tells names apart, not numbers of arguments
        if not told.history or len(ids) > len(set(ids)) or told.clock != Clock() or told.program.plan.tick is not None:
            continue
        if not (final and waits_long(told.program.plan)):
            found.append(told)
    assert len(found) > 700, "the cases that can share a job"
    return found


def run_many(spark: SparkSession, many: TraceInputs, partitions: int, skew: bool = False) -> None:
    """All programs in one job of the batch executor, each compared with the reference."""
    rows = [row for n, history in enumerate(many.histories) for row in many.rows(n, history)]
    frame = spark.createDataFrame(rows, many.schema)
    found = detect(
        many.program, many.source(frame), clock="logical", facts=many.facts, until=10**9, partitions=partitions, skew=skew
    )  # fmt: skip
    answers = many.answers(found.events.collect(), found.pipeline.layout)
    for number, answer in enumerate(answers):
        many.check(number, answer)
    assert sum(map(bool, answers)) > len(answers) / 4


def stream_many(spark: SparkSession, many: TraceInputs, folder: Path, emit: str, chance: random.Random) -> None:
    """All programs in one query of the streaming executor, in a few batches, each history late by up to 5."""
    order = [(item, n) for n, h in enumerate(many.histories) for item in arrivals(h, 5, chance)]
    ends = {(n, i.id): i.end for i, n in order if isinstance(i, Event)}
    order.sort(key=lambda pair: pair[0].end if isinstance(pair[0], Event) else ends.get((pair[1], pair[0].id), 0))
    rows = [row for item, n in order for row in many.rows(n, [item])]
    cuts = sorted(chance.sample(range(len(rows)), 2))
    heartbeat = {"type": HEARTBEAT, "start": 10**8, "end": 10**8}
    batches = [rows[: cuts[0]], rows[cuts[0] : cuts[1]], rows[cuts[1] :], [heartbeat]]
    frame = told_in(spark, batches, many.schema, folder)
    found = detect_stream(
        many.program, many.source(frame), lateness="5s", clock="logical", facts=many.facts, emit=emit, buckets=2  # type: ignore[arg-type]
    )  # fmt: skip
    answers = many.answers(net(heard(found.events)), found.pipeline.layout)
    for number, answer in enumerate(answers):
        many.check(number, answer, clocked=False)
    assert sum(map(bool, answers)) > len(answers) / 4


# Streams of files


def told_in(spark: SparkSession, batches: Iterable[Iterable[dict[str, Any]]], schema: str, folder: Path) -> DataFrame:
    """A streaming DataFrame of JSON lines, a file a batch."""
    folder.mkdir(exist_ok=True)
    add_files(batches, folder)
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).json(str(folder))


def add_files(batches: Iterable[Iterable[dict[str, Any]]], folder: Path) -> None:
    for number, rows in enumerate(batches, len(list(folder.iterdir()))):
        path = folder / f"{number}.json"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))  # files are taken in the order of their age


_NAMES = iter(range(10**6))


def heard(frame: DataFrame) -> list[Any]:
    """All rows of a stream, once all files are read."""
    name = f"heard{next(_NAMES)}"
    frame.writeStream.format("memory").queryName(name).trigger(availableNow=True).start().awaitTermination()
    return frame.sparkSession.table(name).collect()


def net(rows: Iterable[Any]) -> list[Any]:
    """What is left of inserted rows when those taken back are taken away."""
    standing: dict[str, Any] = {}
    for row in rows:
        if row["op"] == "insert":
            assert row["id"] not in standing, f"inserted twice: {row}"
            standing[row["id"]] = row
        else:
            del standing[row["id"]]
    return list(standing.values())


# Every spec case, and random programs


@pytest.fixture(name="plain")
def plain_fixture(spark: SparkSession) -> Iterable[SparkSession]:
    """Without code generation, which costs most of the time of many small jobs."""
    for name, value in INTERPRETED.items():
        spark.conf.set(name, value)
    yield spark
    for name in INTERPRETED:
        spark.conf.unset(name)


JOBS = 22 if FUZZ else 2  # of about 32 cases each


@pytest.mark.parametrize("job", range(JOBS))
def test_spec_cases_in_batch(plain: SparkSession, job: int) -> None:
    run_many(plain, TraceInputs(spec_tolds()[job::22]), partitions=1 + job % 4)


@pytest.mark.parametrize("emit", ["final", "early"])
def test_spec_cases_in_a_stream(plain: SparkSession, tmp_path: Path, emit: str) -> None:
    some = spec_tolds(emit == "final")[2 :: 24 if FUZZ else 60]
    stream_many(plain, TraceInputs(some), tmp_path, emit, random.Random(f"specs {emit}"))


def random_tolds(seeds: Iterable[int]) -> list[Told]:
    """A program of each kind for each seed; those with a tick or windows by the clock are left out."""
    found = [t for seed in seeds for kind in STRATEGIES for t in random_told(kind, f"spark {seed}")]
    return [t for t in found if t.program.plan.tick is None and not clock_windows(t.program.plan)]


def test_random_programs_in_batch(plain: SparkSession) -> None:
    for round in range(10 if FUZZ else 1):
        run_many(plain, TraceInputs(random_tolds(range(4 * round, 4 * round + 4))), partitions=3, skew=True)


def test_random_programs_in_a_stream(plain: SparkSession, tmp_path: Path) -> None:
    for round in range(5 if FUZZ else 1):
        chance = random.Random(f"random {round}")
        stream_many(plain, TraceInputs(random_tolds([100 + round])), tmp_path / str(round), "early", chance)  # fmt: skip


def random_mixtures(seeds: Iterable[int]) -> list[Told]:
    mixed = [random_mixture(f"spark {seed}") for seed in seeds]
    return [t for t in mixed if not clock_windows(t.program.plan)]


def test_random_mixtures_in_batch(plain: SparkSession) -> None:
    for round in range(10 if FUZZ else 1):
        run_many(plain, TraceInputs(random_mixtures(range(40 * round, 40 * round + 40))), partitions=3)


@pytest.mark.parametrize("emit", ["final", "early"])
def test_random_mixtures_in_a_stream(plain: SparkSession, tmp_path: Path, emit: str) -> None:
    for round in range(5 if FUZZ else 1):
        some = random_mixtures(range(20 * round, 20 * round + 20))
        if emit == "final":
            some = [told for told in some if not waits_long(told.program.plan)]
        stream_many(plain, TraceInputs(some), tmp_path / str(round), emit, random.Random(f"mixtures {round}"))


# The ways to give events

FIRE = """
event wind(loc: string, speed: float).
event fire(loc: string).
alarm(L, W) <- wind(L, W) SEQ fire(L) WHERE W > 5.
"""
WIND = [("l1", 10.0, 1), ("l2", 3.0, 2), ("l3", 20.0, 3), ("l1", 7.5, 4)]
BURNS = [("l1", 5), ("l2", 6), ("l3", 2)]
ALARMS = {("l1", 10.0, 1, 5), ("l1", 7.5, 4, 5)}


def fires(spark: SparkSession) -> dict[str, DataFrame]:
    return {
        "wind": spark.createDataFrame(WIND, "loc string, speed double, time bigint"),
        "fire": spark.createDataFrame(BURNS, "loc string, time bigint"),
    }


def alarms(frame: DataFrame) -> set[tuple[Any, ...]]:
    rows = frame.collect()
    found = {(row["l"], row["w"], row["start"], row["end"]) for row in rows}
    assert len(found) == len(rows)
    return found


def test_frames_by_type_and_one_of_all(spark: SparkSession) -> None:
    found = detect(FIRE, fires(spark))
    assert list(found) == ["alarm"]
    assert found["alarm"].columns == ["l", "w", "start", "end", "id", "trace"]
    assert alarms(found["alarm"]) == ALARMS
    rows = [("wind", *row) for row in WIND] + [("fire", loc, None, time) for loc, time in BURNS] + [("ice", "l1", None, 99)]  # fmt: skip
    mixed = spark.createDataFrame(rows, "type string, loc string, speed double, time bigint")
    assert alarms(detect(FIRE, mixed)["alarm"]) == ALARMS
    told = detect(FIRE, mixed).events.collect()
    assert {(r["type"], *json.loads(r["args"]), r["start"], r["end"]) for r in told} == {("alarm", *a) for a in ALARMS}


def test_answers_have_ids_and_traces(spark: SparkSession) -> None:
    frames = {
        "wind": spark.createDataFrame([("l1", 10.0, 1, "w1")], "loc string, speed double, time bigint, id string"),
        "fire": spark.createDataFrame([("l1", 5, 7)], "loc string, time bigint, id bigint"),
    }
    row = detect(FIRE, frames)["alarm"].collect()[0]
    assert sorted(row["trace"]) == ["7", "w1"]
    assert row["id"] == content_id("alarm", ("l1", 10.0), 1, 5)


def test_events_are_taken_back(spark: SparkSession) -> None:
    """A row with op `revoke`, before or after its event, of the same DataFrame or another."""
    winds = [("l1", 10.0, 1, "w1", "insert"), ("l1", 7.5, 4, "w2", None), ("", None, None, "w1", "revoke")]
    schema = "loc string, speed double, time bigint, id string, op string"
    frames = {"wind": spark.createDataFrame(winds, schema), "fire": fires(spark)["fire"]}
    assert alarms(detect(FIRE, frames)["alarm"]) == {("l1", 7.5, 4, 5)}


def test_the_greatest_version_stands(spark: SparkSession, tmp_path: Path) -> None:
    """Whatever came when; a stream refuses versions."""
    rows = [
        ("fire", "l1", 1.0, 5, "f1", "insert", None), ("fire", "l2", 1.0, 9, "f1", "replace", 2), ("fire", "l3", 1.0, 7, "f1", None, 1),
        ("fire", "l4", 1.0, 3, "g", None, 1), ("", None, None, None, "g", "revoke", 1), ("fire", "l5", 1.0, 3, "h", None, 3),
        ("other", "l5", 1.0, 3, "h", None, 4), ("fire", "l6", 1.0, 4, None, None, None), ("", None, None, None, "i", "revoke", 1),
        ("fire", "l7", 1.0, 2, "i", None, 2), ("fire", "l7", 1.0, 2, "i", None, 2),
    ]  # fmt: skip
    schema = "type string, loc string, size double, time bigint, id string, op string, version int"
    frame, program = spark.createDataFrame(rows, schema), "event fire(loc: string, size: float). e(L) <- fire(L, _)."
    found = detect(program, frame)
    assert {(r["l"], r["end"]) for r in found["e"].collect()} == {("l2", 9), ("l6", 4), ("l7", 2)}
    assert str(found.pipeline.counts) == "11 received: 10 accepted, 1 repeated, 0 late, 0 rejected, 0 malformed"
    wrong = [("fire", "l1", 1.0, 5, None, None, 1), ("fire", "l1", 1.0, 5, "a", "replace", None)]
    problems = detect(program, spark.createDataFrame(wrong, schema), on_error="skip").malformed.collect()
    assert sorted(r["problem"] for r in problems) == ["a replacement names its version", VERSION_NEEDS_ID]
    with pytest.raises(RunError, match="versions of events are no part of a stream"):
        detect_stream(program, told_in(spark, [[]], schema, tmp_path / "stream"), lateness="5s")


@pytest.mark.parametrize(
    ("kind", "times"),
    [
        ("timestamp", ["timestamp'2026-01-01 10:00:00'", "timestamp'2026-01-01 10:00:05.000001'"]),
        ("timestamp_ntz", ["timestamp_ntz'2026-01-01 10:00:00'", "timestamp_ntz'2026-01-01 10:00:05.000001'"]),
        ("text", ["'2026-01-01T10:00:00Z'", "'2026-01-01 12:00:05.000001+02:00'"]),
        ("long", ["1767261600000000", "1767261605000001"]),
        ("date", ["date'2026-01-01'", "date'2026-01-03'"]),
    ],
)
def test_a_time_column_of_any_type(spark: SparkSession, kind: str, times: list[str]) -> None:
    wind = spark.sql(f"select 'l1' as loc, 10.0D as speed, {times[0]} as at")
    fire = spark.sql(f"select 'l1' as loc, {times[1]} as at")
    found = detect(FIRE, {"wind": wind, "fire": fire}, time="at", time_unit="us" if kind == "long" else None)
    row = found["alarm"].selectExpr("l", "unix_micros(start) as s", "unix_micros(`end`) as e").collect()[0]
    day = 1767225600000000
    expected = (day, day + 2 * 86_400_000_000) if kind == "date" else (day + 36_000_000_000, day + 36_005_000_001)
    assert (row["s"], row["e"]) == expected


def test_interval_events_on_spark(spark: SparkSession) -> None:
    program = "both(X) <- a(X) PAR b(X). apart(X, Y) <- (a(X) SEQ b(Y)).9."
    frames = {
        "a": spark.createDataFrame([(1, 1, 5), (2, 10, 12)], "x int, start bigint, end bigint"),
        "b": spark.createDataFrame([(1, 3, 8), (2, 11, 20), (3, 6, 7)], "x int, start bigint, end bigint"),
    }
    history = [Event("a", (1,), 1, 5), Event("a", (2,), 10, 12), Event("b", (1,), 3, 8), Event("b", (2,), 11, 20), Event("b", (3,), 6, 7)]  # fmt: skip
    expected = {(e.type, e.args, e.start, e.end) for e in evaluate(augury.compile(program).plan, history, Clock()).events}  # fmt: skip
    assert len(expected) == 3
    for longest in (None, "20s"):
        rows = detect(program, frames, longest=longest).events.collect()
        assert {(r["type"], tuple(json.loads(r["args"])), r["start"], r["end"]) for r in rows} == expected


def test_every_column_type_round_trips(spark: SparkSession) -> None:
    """Every type of column comes in, and out again, as what it is."""
    wind = spark.sql(
        "select 1Y as a, 2L as b, 1.5F as c, true as d, 'x' as e, timestamp'2026-01-01 00:00:00' as f, date'2026-01-02' as g, "
        "interval '1 02:03:04.5' day to second as h, array(1, 2) as i, 3L as time"
    )
    program = "event e(a: any, b: any, c: any, d: any, e: any, f: any, g: any, h: any, i: any).\n"
    program += "f(A, B, C, D, E, F, G, H, I) <- e(A, B, C, D, E, F, G, H, I)."
    found = detect(program, {"e": wind}, clock="logical")
    row = found["f"].collect()[0]
    assert (row["a"], row["b"], row["c"], row["d"], row["e"]) == (1, 2, 1.5, True, "x")
    assert str(row["f"]).startswith("2026-01-01") and str(row["g"]).startswith("2026-01-02")
    assert row["h"].total_seconds() == 93784.5
    assert json.loads(row["i"]) == [1, 2]
    assert json.loads(found.events.collect()[0]["args"])[:5] == [1, 2, 1.5, True, "x"]


def test_malformed_rows_are_collected(spark: SparkSession) -> None:
    wind = spark.createDataFrame(
        [("l1", 10.0, "2026-01-01T10:00:00Z"), ("l9", 9.0, "yesterday")], "loc string, speed double, time string"
    )
    fire = spark.createDataFrame([("l1", "2026-01-01T10:01:00Z")], "loc string, time string")
    with pytest.raises(Exception, match="malformed row: the time is missing"):
        detect(FIRE, {"wind": wind, "fire": fire})["alarm"].collect()
    found = detect(FIRE, {"wind": wind, "fire": fire}, on_error="skip")
    assert found["alarm"].count() == 1
    wrong = found.malformed.collect()
    assert [(r["type"], json.loads(r["row"])["loc"]) for r in wrong] == [("wind", "l9")]
    assert "time" in wrong[0]["problem"]


def test_columns_that_nothing_uses_are_not_read(spark: SparkSession, tmp_path: Path) -> None:
    """Not even where a malformed row would be shown; `augury run` looks the whole row up."""
    for name, time in (("good", "2026-01-01T10:00:00Z"), ("bad", "yesterday")):
        rows = [("l1", 10.0, time, "unused", 7)]
        frame = spark.createDataFrame(rows, "loc string, speed double, time string, note string, more int")
        frame.write.parquet(str(tmp_path / name))
    fire = spark.createDataFrame([("l1", "2026-01-01T10:01:00Z")], "loc string, time string")
    answers = detect(FIRE, {"wind": spark.read.parquet(str(tmp_path / "good")), "fire": fire})["alarm"]
    schemas = re.findall(r"ReadSchema: (\S+)", answers._jdf.queryExecution().executedPlan().toString())
    assert schemas == ["struct<loc:string,speed:double,time:string>"]
    wind = SourceFile(str(tmp_path / "bad"), "wind")
    with pytest.raises(DataError, match=r'yesterday.*"note":"unused","more":7'):
        SparkJob(spark, Task(augury.compile(FIRE), (wind,))).evaluate()


def test_wrong_arguments_are_refused(spark: SparkSession) -> None:
    good = fires(spark)
    wind, fire = good["wind"], good["fire"]

    def refused(events: Any, **options: Any) -> DataError | RunError:
        with pytest.raises(AuguryError) as caught:
            detect(FIRE, events, **options)["alarm"]
        assert isinstance(caught.value, DataError | RunError)
        return caught.value

    assert "has no column `speed`" in refused({"wind": wind.drop("speed"), "fire": fire}).message
    assert "declares `speed` as float, but the column is string" in refused({"wind": wind.withColumn("speed", wind.loc), "fire": fire}).message  # fmt: skip
    assert "no column `time`" in refused({"wind": wind.withColumnRenamed("time", "at"), "fire": fire}).message
    error = refused({"wnd": wind, "fire": fire})
    assert "unknown event type `wnd`" in error.message and "`wind`" in error.hint
    assert "not a Spark DataFrame" in refused({"wind": [1, 2]}).message
    assert "no column `type`" in refused(wind).message
    assert "unknown on_error" in refused(good, on_error="ignore").message
    error = refused({"wind": wind, "fire": fire.withColumn("time", fire.loc == "l1")}, clock="logical")
    assert "boolean" in error.message
    assert "none that names the event" in refused({"wind": wind.withColumn("op", wind.loc), "fire": fire}).message
    with pytest.raises(RunError, match="not an output") as caught:
        detect(FIRE, good)["alrm"]
    assert "`alarm`" in caught.value.hint


def test_facts_from_a_frame(spark: SparkSession) -> None:
    program = "static risky(loc: string, least: float).\ns(L) <- fire(L) WHERE (risky(L, W), W > 1)."
    risky = spark.createDataFrame([(2.0, "l1"), (0.5, "l2")], "least double, loc string")
    found = detect(program, {"fire": fires(spark)["fire"]}, facts={"risky": risky})
    assert {row["l"] for row in found["s"].collect()} == {"l1"}
    with pytest.raises(DataError, match="no column `least`"):
        detect(program, {"fire": fires(spark)["fire"]}, facts={"risky": risky.drop("least")})


def test_python_functions_on_workers(spark: SparkSession) -> None:
    @augury.function
    def doubled(x: float) -> float:
        if x > 15:
            raise ValueError(f"too windy: {x}")
        return 2 * x

    program = augury.compile("rule twice: t(L, doubled(W)) <- wind(L, W) WHERE W < 15.", functions=[doubled])
    found = detect(program, {"wind": fires(spark)["wind"]})
    assert {(r[0], r[1]) for r in found["t"].collect()} == {("l1", 20.0), ("l2", 6.0), ("l1", 15.0)}
    program = augury.compile("rule twice: t(L, doubled(W)) <- wind(L, W).", functions=[doubled])
    with pytest.raises(Exception, match="too windy") as caught:  # as in every executor, it stops the run
        detect(program, {"wind": fires(spark)["wind"]})["t"].collect()
    assert "in rule `twice`, called as doubled(20.0)" in str(caught.value)
    assert "on wind('l3', 20.0) [3, 3]" in str(caught.value)


def test_what_cannot_be_computed(spark: SparkSession) -> None:
    found = detect("rule root: t(L, sqrt(5 - W)) <- wind(L, W).", {"wind": fires(spark)["wind"]})
    assert {r["l"] for r in found["t"].collect()} == {"l2"}
    errors = found.errors.collect()
    assert [(e["rule"], e["times"]) for e in errors] == [("root", 3)]
    assert "sqrt" in errors[0]["problem"]


@pytest.mark.parametrize("partitions", [1, 2, 7])
def test_the_answer_does_not_hang_on_the_partitions(spark: SparkSession, partitions: int) -> None:
    """Three stages: by key, in slices, and one bucket; with and without traces, and with keyed stages cut, too."""
    chance = random.Random("partitions")
    text = "p(K) <- (a(K, X) SEQ b(K, Y)).6 WHERE X < Y. q(K, L) <- (p(K) AND p(L)).9 WHERE K < L. r(count()) <- o: q(K, _), last 2: collect q(K, _)."  # fmt: skip
    rows = [(chance.randrange(12), chance.randrange(9), t) for t in range(120)]
    frames = {
        "a": spark.createDataFrame(rows[::2], "k int, x int, time bigint"),
        "b": spark.createDataFrame(rows[1::2], "k int, x int, time bigint"),
    }
    history = [Event("ab"[n % 2], (k, x), t) for n, (k, x, t) in enumerate(rows)]
    expected = {(e.type, *e.args, e.start, e.end, e.id) for e in evaluate(augury.compile(text).plan, history, Clock()).events}  # fmt: skip
    assert {e[0] for e in expected} == {"p", "q", "r"}
    for options in ({}, {"trace": False, "skew": True}):
        found = detect(text, frames, partitions=partitions, **options)  # type: ignore[arg-type]
        answer = found.events.collect()
        assert {(r["type"], *json.loads(r["args"]), r["start"], r["end"], r["id"]) for r in answer} == expected
        assert len(answer) == len(expected)
        assert ("trace" in found.events.columns) == (not options)


# Streams

EVENTS = "type string, loc string, speed double, time bigint, id string, op string"


def a_wind(loc: str, speed: float, time: int, id: str | None = None) -> dict[str, Any]:
    return {"type": "wind", "loc": loc, "speed": float(speed), "time": time, "id": id}


def a_fire(loc: str, time: int, id: str | None = None) -> dict[str, Any]:
    return {"type": "fire", "loc": loc, "time": time, "id": id}


CALM = FIRE + "calm(L) <- a: fire(L), w: extend(a, 10s), while w: not wind(L, _).\n"
FAR = a_fire("far", 1000)


def told(rows: Iterable[Any]) -> list[tuple[Any, ...]]:
    """What rows say, without ids and traces."""
    return sorted((r.asDict().get("op", "insert"), r["type"], *json.loads(r["args"]), r["start"], r["end"]) for r in rows)  # fmt: skip


def test_early_answers_are_retracted_and_final_ones_wait(spark: SparkSession, tmp_path: Path) -> None:
    """Early answers come at once and are taken back; final ones come once they are certain; in the end they agree."""
    batches = [
        [a_wind("l1", 10, 1, "w1"), a_fire("l1", 5), a_fire("l2", 6)],
        [{"op": "revoke", "id": "w1"}, a_wind("l2", 9, 8), a_wind("l1", 8, 20)],
        [FAR],
    ]
    frame = told_in(spark, batches, EVENTS, tmp_path)
    early = heard(detect_stream(CALM, frame, lateness="15s", emit="early", clock="logical").events)
    final = heard(detect_stream(CALM, frame, lateness="15s", clock="logical").events)
    assert told(final) == [("insert", "calm", "l1", 5, 15)]
    assert told(net(early)) == told(final)
    assert ("retract", "alarm", "l1", 10.0, 1, 5) in told(early)


def test_late_events_go_to_late(spark: SparkSession, tmp_path: Path) -> None:
    batches = [[a_wind("l1", 10, 10), a_fire("l2", 50)], [a_fire("l1", 41, "late"), a_fire("l1", 46, "in time")], [FAR]]
    frame = told_in(spark, batches, EVENTS, tmp_path)
    stream = detect_stream(FIRE, frame, lateness="5s", clock="logical", buckets=3)
    assert told(heard(stream.events)) == [("insert", "alarm", "l1", 10.0, 10, 46)]
    late = heard(stream.late)
    assert [(r["why"], json.loads(r["event"])["id"]) for r in late] == [("late", "late")]


def test_batches_do_not_matter(spark: SparkSession, tmp_path: Path) -> None:
    """However events are split, and whatever the number of buckets: the same rows with the same ids."""
    chance = random.Random("splits")
    rows = [a_wind(f"l{chance.randrange(5)}", chance.randrange(20), t, f"w{t}") if chance.random() < 0.6 else a_fire(f"l{chance.randrange(5)}", t, f"f{t}") for t in range(60)]  # fmt: skip
    rows += [{"op": "revoke", "id": f"w{t}"} for t in (3, 10, 20)]
    text = CALM + "both(A, B) <- (alarm(A, _) SEQ alarm(B, _)).9 WHERE A != B."
    frames = spark.createDataFrame([{**r} for r in rows], EVENTS)
    expected = {(r["type"], r["args"], r["start"], r["end"], r["id"]) for r in detect(text, frames, clock="logical", until=900).events.collect()}  # fmt: skip
    assert {e[0] for e in expected} == {"alarm", "both", "calm"}
    for number, emit in enumerate(["early", "final"]):
        shuffled = sorted(rows, key=lambda row: row.get("time", 25) + chance.uniform(0, 30))
        cut = chance.randrange(20, 50)
        batches = [shuffled[:cut], shuffled[cut:], [FAR]] if number else [shuffled, [FAR]]
        frame = told_in(spark, batches, EVENTS, tmp_path / emit)
        stream = detect_stream(text, frame, lateness="30s", emit=emit, clock="logical", buckets=2 + number)  # type: ignore[arg-type]
        found = [(r["type"], r["args"], r["start"], r["end"], r["id"]) for r in net(heard(stream.events))]
        assert len(found) == len(expected) and {f for f in found if f[3] <= 900} == expected


WINDOWS = """
event wind(loc: string, speed: float).
event fire(loc: string).
static place(loc: string).
place('l1'). place('l2').
fires(L, count())  <- w: every(10s), while w: collect fire(L).
windy(L, max(S))   <- w: every(20s, 10s), while w: collect wind(L, S) TOP 1 BY max(S).
quiet              <- w: every(10s), while w: not wind(_, _).
each(L, count())   <- w: every(10s), place(L), while w: collect fire(L) or none.
all(sum(S), avg(S), count(distinct S)) <- w: every(20s), while w: collect wind(_, S).
most(sum(S), count()) <- w: every(20s), while w: collect wind(_, S).
calm(L)            <- w: every(10s), o: fire(L), o inside w, while w: not wind(L, _).
"""


@pytest.mark.parametrize("how", ["batch", "final", "early"])
def test_windows_by_the_clock(spark: SparkSession, tmp_path: Path, how: str) -> None:
    """Windows with and without anything in them, in batch and in a stream, some of whose events come late."""
    rows = [
        a_wind("l1", 3, 4, "w1"), a_fire("l1", 12), a_fire("l1", 15), a_wind("l2", 7, 31), a_fire("l2", 44, "f"),
        {"type": "other", "time": 2, "id": "o"}, a_wind("l1", 5, 52), {"op": "revoke", "id": "f"}, a_fire("l2", 67),
    ]  # fmt: skip
    history: list[HistoryItem] = [
        Revocation(r["id"])
        if r.get("op")
        else Event(r["type"], tuple(r[n] for n in ("loc", "speed") if n in r), r["time"], id=r.get("id") or "")
        for r in rows
    ]

    def expected(until: int) -> list[tuple[Any, ...]]:
        found = evaluate(augury.compile(WINDOWS).plan, history, Clock(), (), until).events
        return sorted(("insert", e.type, *e.args, e.start, e.end) for e in found)

    if how == "batch":
        frame = spark.createDataFrame(rows, EVENTS)
        answers = detect(WINDOWS, frame, clock="logical").events.collect()
        assert told(answers) == expected(67)
        assert any(not row["trace"] for row in answers) and not any("" in row["trace"] for row in answers)
        if LONG:
            found = told(detect(WINDOWS, frame, clock="logical", until=80).events.collect())
            assert found == expected(80) != expected(67)
        return
    batches = [[rows[0], rows[3], rows[1]], [rows[2], *rows[4:]], [a_fire("far", 200)]]
    frame, said = told_in(spark, batches, EVENTS, tmp_path), 174 if how == "final" else 200
    stream = detect_stream(WINDOWS, frame, lateness="25s", emit=how, clock="logical", buckets=2)  # type: ignore[arg-type]
    found = [row for row in told(net(heard(stream.events))) if row[-1] <= said]
    assert found == [row for row in expected(200) if row[-1] <= said]


def test_stream_resumes_from_its_checkpoint(spark: SparkSession, tmp_path: Path) -> None:
    """A stream goes on from its checkpoint; one of another program, or of other buckets, is refused in words."""
    events, checkpoint, answers = (tmp_path / name for name in ("events", "checkpoint", "answers"))
    frame = told_in(spark, [[a_wind("l1", 10, 1), a_wind("l2", 20, 2)]], EVENTS, events)

    def run(program: str, buckets: int = 2) -> None:
        stream = detect_stream(program, frame, lateness="5s", emit="early", clock="logical", buckets=buckets)
        writer = stream["alarm"].writeStream.format("parquet").option("checkpointLocation", str(checkpoint))
        query = writer.trigger(availableNow=True).start(str(answers))
        query.awaitTermination()

    run(FIRE)
    add_files([[a_fire("l1", 3)]], events)
    run(FIRE)
    assert alarms(spark.read.parquet(str(answers))) == {("l1", 10.0, 1, 3)}
    add_files([[a_fire("l2", 4), a_wind("l1", 30, 4)]], events)
    with pytest.raises(Exception, match=r"checkpoint is of another program.*rule `alarm` was .*W > 5.*, is .*W > 6"):
        run(FIRE.replace("W > 5", "W > 6"))
    with pytest.raises(Exception, match="buckets was 2, is 3"):
        run(FIRE, buckets=3)
    run(FIRE)
    assert alarms(spark.read.parquet(str(answers))) == {("l1", 10.0, 1, 3), ("l2", 20.0, 2, 4)}


def test_wrong_arguments_of_a_stream_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    frame = told_in(spark, [[FAR]], EVENTS, tmp_path)
    with pytest.raises(RunError, match="unknown emission"):
        detect_stream(FIRE, frame, lateness="5s", emit="soon")  # type: ignore[arg-type]
    with pytest.raises(RunError, match="duration"):
        detect_stream(FIRE, frame, lateness="soon")
    with pytest.raises(RunError, match="not an output"):
        detect_stream(FIRE, frame, lateness="5s", clock="logical")["alrm"]


def test_rules_that_keep_all_events_are_reported(spark: SparkSession, tmp_path: Path) -> None:
    lasting = told_in(spark, [[FAR]], EVENTS.replace("time", "start bigint, end"), tmp_path)
    with pytest.warns(UserWarning, match="rule `calm` keeps every event") as told:
        detect_stream(CALM, lasting, lateness="5s", clock="logical")
    assert len(told) == 1  # `alarm` has no bound in any case, which compiling says
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        detect_stream(CALM, lasting, lateness="5s", clock="logical", longest="1h")
        detect_stream(CALM, told_in(spark, [[FAR]], EVENTS, tmp_path / "points"), lateness="5s", clock="logical")


# Other ways to run Spark

SCRIPT = """
import json, os, sys
from pathlib import Path
os.environ["PYSPARK_PYTHON"] = sys.executable
from tests.support.spark_session import SETTINGS
from pyspark.sql import SparkSession
from tests.spark.test_spark import CALM, EVENTS, FAR, a_fire, a_wind, add_files, told
from augury.spark import detect, detect_stream

def main(how, folder):
    start = SparkSession.builder.remote("local[2]") if how == "connect" else SparkSession.builder.master(how)
    for name, value in SETTINGS.items():
        start = start.config(name, value)
    spark = start.getOrCreate()
    rows = [a_wind("l1", 10, 1, "w1"), a_fire("l1", 5), a_fire("l2", 6), a_wind("l3", 7, 7), a_fire("l3", 8), {"op": "revoke", "id": "w1"}]
    batch = detect(CALM, spark.createDataFrame(rows, EVENTS), clock="logical", until=500).events.collect()
    add_files([rows[:3], rows[3:], [FAR]], folder)
    frame = spark.readStream.schema(EVENTS).option("maxFilesPerTrigger", 1).json(str(folder))
    stream = detect_stream(CALM, frame, lateness="20s", clock="logical", buckets=2)
    query = stream.events.writeStream.format("memory").queryName("heard").trigger(availableNow=True).start()
    query.awaitTermination()
    assert query.exception() is None, query.exception()
    print("FOUND", json.dumps([told(batch), told(spark.table("heard").collect())]))
    spark.stop()

if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
"""


@pytest.mark.parametrize("how", ["connect", "local-cluster[2,1,1024]"])
def test_spark_connect_gives_the_same_rows(tmp_path: Path, how: str) -> None:
    """Over Spark Connect, and over two JVMs of workers: the same rows, in batch and in a stream."""
    script, events = tmp_path / "run.py", tmp_path / "events"
    script.write_text(SCRIPT, encoding="utf-8")
    events.mkdir()
    root = Path(__file__).parents[2]
    environment = {
        **os.environ,
        "PYTHONPATH": f"{root}{os.pathsep}{root / 'src'}",
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_WORKER_DIR": str(tmp_path),
    }
    environment = {k: v for k, v in environment.items() if not k.startswith(("PYSPARK_", "SPARK_CONNECT", "PYTEST"))}
    ran = subprocess.run(
        [sys.executable, str(script), how, str(events)], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=400, check=False,
    )  # fmt: skip
    lines = [line for line in ran.stdout.splitlines() if line.startswith("FOUND ")]
    assert lines, ran.stderr[-3000:]
    batch, stream = json.loads(lines[0].removeprefix("FOUND "))
    assert batch == stream == [
        ["insert", "alarm", "l3", 7.0, 7, 8], ["insert", "calm", "l1", 5, 15], ["insert", "calm", "l2", 6, 16], ["insert", "calm", "l3", 8, 18],
    ]  # fmt: skip


def test_stopped_spark_session_is_refused(spark: SparkSession) -> None:
    frames = fires(spark)
    spark.stop()
    with pytest.raises(AuguryError, match="stopped"):
        detect(FIRE, frames)["alarm"].collect()
