"""Streams on Spark: for each stage a stateful operator that hosts a session for each of a few buckets.

Rows travel in packages, one for each bucket and task: an Arrow table as bytes. The operator sees few rows, whatever the
number of events, and a package is what a bucket writes to its log.
"""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from augury.algebra.plan import Predicate
from augury.algebra.properties import all_properties
from augury.algebra.stages import Stage, Stages, stages
from augury.engine.changes import Changes
from augury.engine.horizon import remembers
from augury.engine.saved import not_whole
from augury.engine.session import Session
from augury.errors import RunError
from augury.language.show import Printer
from augury.model import Event
from augury.program import Program
from augury.settings import Settings
from augury.sinks import event_as_json
from augury.sources import Batch
from augury.spark import host
from augury.spark.host import Work
from augury.spark.layout import batches
from augury.spark.pipeline import Outputs, Pipeline, listed, partitions_of
from augury.spark.state import Bucket, Told

LATE, REJECTED = -2, -3  # codes of rows that tell of events that came too late, or whose id names another event
SHIFT = 1 << 41  # milliseconds that ticks are ahead of the epoch, where Spark's watermark begins
_TIME = "augury_event_time"
_FEW = 100_000  # facts that are compared one by one
_PACKED = "bucket int, payload binary"


class Stream(Outputs):
    """The changes of the answers of a program: a streaming DataFrame for each event type.

    `wide` and `events` have all of them in one stream; `late` what came too late; `errors` what could not be computed; `malformed` the
    rows that are no events.
    """

    def __init__(self, pipeline: Pipeline, buckets: int | None) -> None:
        super().__init__(pipeline)
        self.emit, late = pipeline.settings.emit, pipeline.settings.lateness
        if late is None:
            raise RunError("how late may an event come?", hint='say lateness="10 minutes"')
        self.lateness = pipeline.clock.length(late)
        self.buckets = buckets or 2 * partitions_of(pipeline.spark)
        partitions = int(pipeline.spark.conf.get("spark.sql.shuffle.partitions", "200") or 200)
        if partitions > self.buckets:
            warnings.warn(f"the state of {self.buckets} buckets is kept in {partitions} partitions, and each costs time in every batch: "
                          f"set spark.sql.shuffle.partitions to {self.buckets} or less before the first start", stacklevel=3)  # fmt: skip
        provider = pipeline.spark.conf.get("spark.sql.streaming.stateStore.providerClass", "") or ""
        if "RocksDB" not in provider:
            raise RunError("streams keep their state in RocksDB, but the session has another state store",
                           hint='build it with .config("spark.sql.streaming.stateStore.providerClass", '
                                '"org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider")')  # fmt: skip
        for rule in self._kept_for_lengths():
            warnings.warn(
                f'rule `{rule}` keeps every event, since one may have lasted for any time: say how long they last at most, longest="1h"',
                stacklevel=3,
            )

    def _kept_for_lengths(self) -> list[str]:
        """The rules whose state nothing bounds, because nobody said how long events last."""
        pipeline = self.pipeline
        if pipeline.longest is not None:
            return []
        settings = Settings(emit=self.emit, retention=pipeline.retention)
        session = Session(Program(pipeline.plan), settings, clock=pipeline.clock)
        session.circuit.learns = False
        bounded = {label for label, found in all_properties(pipeline.plan).items() if found.horizon is not None}
        return [rule for rule in remembers(session.circuit) if rule in bounded]

    def __getitem__(self, type: str) -> DataFrame:
        return self.pipeline.answers(self.mixed((self.known(type),)), type, changes=self.emit == "early")

    @property
    def events(self) -> DataFrame:
        """All changes in one stream: op, type, arguments as JSON, start, end, id, trace."""
        return self.pipeline.told(self.mixed(self.pipeline.plan.outputs), changes=True)

    @property
    def wide(self) -> DataFrame:
        """All changes in one stream: op, type, a column for each attribute name, start, end, id, trace."""
        return self.pipeline.wide(self.mixed(self.pipeline.plan.outputs), changes=True)

    @property
    def everything(self) -> DataFrame:
        """Answers, late events and errors in one stream, for one query: `parts` takes a batch of it apart."""
        return self.mixed(self.pipeline.plan.outputs)

    def parts(self, batch: DataFrame) -> dict[str, DataFrame]:
        """A batch of `everything`, in foreachBatch: a DataFrame for each event type, and `late` and `errors`."""
        found = {type: self.pipeline.answers(batch, type, changes=self.emit == "early") for type in self}
        return found | {"late": late_rows(batch), "errors": self.pipeline.errors(batch)}

    @property
    def late(self) -> DataFrame:
        """Events and revocations that came too late, or whose id names another event already, as JSON."""
        return late_rows(self.mixed(self.pipeline.plan.outputs))

    @property
    def errors(self) -> DataFrame:
        return self.pipeline.errors(self.mixed(self.pipeline.plan.outputs))

    # Stages

    def mixed(self, outputs: tuple[str, ...]) -> DataFrame:
        """The changes of some types in the layout, and all that is told beside them."""
        pipeline = self.pipeline
        spread = stages(pipeline.plan_for(outputs), pipeline.longest, slices=False, everywhere=True)
        found: DataFrame | None = None
        told: set[Predicate] = set()
        for stage in spread.stages:
            found = self._run(spread, stage, found, frozenset(told))
            told |= set(stage.reads)
        wanted = [t for t in spread.plan.derived if t[0] in outputs]
        merged = [t for t in wanted if t in spread.spread]
        assert found is not None
        if merged:
            found = self._merge(spread, merged, found)
        codes = [pipeline.layout.codes[t] for t in wanted]
        return found.where(F.col("type").isin(codes) | (F.col("type") < 0)).drop("origin").withColumn("trace", listed())

    def _work(self, spread: Stages, stage: Stage) -> Work:
        pipeline = self.pipeline
        return Work(
            spread.plan_of(stage), pipeline.clock, pipeline.layout, pipeline.shipped, pipeline.retention,
            pipeline.longest, pipeline.trace, emit=self.emit, forward=pipeline.forwarded(spread, stage),
            limits=pipeline.settings.limits,
        )  # fmt: skip

    def _run(self, spread: Stages, stage: Stage, before: DataFrame | None, told: frozenset[Predicate]) -> DataFrame:
        """A stage: what it makes, and what earlier ones have made that is an answer or is still to be read."""
        pipeline = self.pipeline
        own = pipeline.own(spread, stage)
        frames = [self._events(spread, stage, own, alone=before is None)] if own else []
        frames += [] if before is None else [before.withColumn("revoke", F.lit(False))]
        frame = reduce(DataFrame.unionByName, frames)
        bucket = F.lit(0) if stage.how != "key" else self._bucket(pipeline.key(stage, frame.columns))
        if "revoke" in frame.columns:
            bucket = F.when(F.col("revoke"), F.lit(-1)).otherwise(bucket)
        if stage.everywhere:
            codes = [pipeline.layout.codes[t] for t in stage.everywhere if t in pipeline.layout.codes]
            bucket = F.when(F.col("type").isin(codes), F.lit(-1)).otherwise(bucket)
        return self._hosted(frame, bucket, self._work(spread, stage), stage, told)

    def _bucket(self, hashed: Column) -> Column:
        keys = bucket_keys(self.buckets)
        return F.element_at(F.array(*(F.lit(k) for k in keys)), (F.pmod(hashed, F.lit(self.buckets)) + 1).cast("int"))

    def _merge(self, spread: Stages, types: list[Predicate], before: DataFrame) -> DataFrame:
        """Events that several buckets may make: each is there while one of them has it."""
        plan = replace(spread.plan, rules=(), outputs=tuple(sorted({t[0] for t in types})), declared={},
                       given={t: spread.lengths.get(t) for t in types})  # fmt: skip
        stage = Stage(len(spread.stages) + 1, (), "key", dict.fromkeys(types), ())
        codes = self.pipeline.layout.codes
        others = {codes[t] for t in spread.plan.derived if t not in types} | {host.ERROR}
        work = replace(self._work(spread, spread.stages[-1]), plan=plan, forward=frozenset(others))
        frame = before.withColumn("revoke", F.lit(False))
        return self._hosted(frame, self._bucket(F.xxhash64("id")), work, stage, frozenset())

    def _events(self, spread: Stages, stage: Stage, types: list[Predicate], alone: bool) -> DataFrame:
        """Input events. All of them tell the time, before those that the stage cannot use are left out.

        Where they come `alone`, they have no columns but those that say something.
        """
        pipeline = self.pipeline
        codes = [pipeline.layout.codes[t] for t in types]
        found = []
        for source in pipeline.sources:
            frame = pipeline.checked(source)
            time = F.timestamp_micros(F.col("end")) if pipeline.clock.kind == "timestamp" else F.timestamp_millis(F.col("end") + F.lit(SHIFT))  # fmt: skip
            time = time if getattr(source, "tells_time", True) else F.lit(None).cast("timestamp")
            found.append(frame.withColumn(_TIME, time))
        events = reduce(DataFrame.unionByName, found)
        delay = self.lateness // 1000 if pipeline.clock.kind == "timestamp" else self.lateness
        events = events.withWatermark(_TIME, f"{delay} milliseconds")
        usable = F.lit(False)
        for type, code in zip(types, codes, strict=True):
            where = None if type in spread.plan.derived else pipeline.where(type, spread.plan, stage)
            usable = usable | ((F.col("type") == code) if where is None else (F.col("type") == code) & where)
        if pipeline.ops:
            usable = usable | F.col("revoke")
        # The condition mentions the time: one that does not would be moved below the watermark, which all events tell.
        events = events.where(F.coalesce(F.when(F.col(_TIME).isNotNull(), usable), usable))
        if alone:
            said = [*([] if pipeline.points else ["start"]), *(["id"] if pipeline.ids else []), *(["revoke"] if pipeline.ops else [])]  # fmt: skip
            return events.select("type", "end", *said, *pipeline.columns(stage))
        revoke = F.col("revoke") if pipeline.ops else F.lit(False)
        answers = pipeline.like_answers(events).columns
        start = F.col("end") if pipeline.points else F.col("start")
        id = F.col("id") if pipeline.ids else F.lit(None).cast("string")
        made = {"op": F.lit(1).cast("tinyint"), "start": start, "id": id, "trace": F.lit(None).cast("string")}
        return events.select(
            *(made.get(c, F.col(c)).alias(c) for c in answers), F.lit(0).alias("origin"), revoke.alias("revoke")
        )

    def _hosted(
        self, frame: DataFrame, bucket: Column, work: Work, stage: Stage, silent: frozenset[Predicate]
    ) -> DataFrame:
        """A stage: packed by bucket, run by the stateful operator, and unpacked."""
        keys, number = bucket_keys(self.buckets), stage.number

        def packed(given: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            return pack(given, keys, work)

        def unpacked(given: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            return unpack(given, number, work.schema)

        about = {
            "rules": {
                rule.label: Printer(explicit=True, width=10_000).statement(s)
                for rule, s in written(self.pipeline.program, stage)
            },
            "stage": number,
            "buckets": self.buckets,
            "emission": self.emit,
            "clock": self.pipeline.clock.kind,
            "retention": self.pipeline.retention,
            "longest": self.pipeline.longest,
            "facts": _facts_digest(work),
            "reading_of_the_rules": _digest(work.plan.rules),
            "kinds": {f"{t[0]}/{t[1]}": list(self.pipeline.layout.kinds[t]) for t in sorted(stage.reads)},
        }
        processor = Processor(work, stage.number, silent, about, stage.everywhere)
        rows = frame.withColumn("bucket", bucket.cast("int")).mapInArrow(packed, _PACKED + ", passed boolean")
        changes = rows.groupBy("bucket").transformWithStateInPandas(processor, _PACKED, "Append", "EventTime")
        return changes.mapInArrow(unpacked, self.pipeline.schema() + ", origin int")


def written(program: Program, stage: Stage) -> Iterator[tuple[Any, Any]]:
    """The rules of a stage with their statements in the program."""
    spans = {rule.span: rule for rule in stage.rules}
    for module in program.modules:
        for statement in module.statements:
            if statement.span in spans:
                yield spans[statement.span], statement


def _facts_digest(work: Work) -> str:
    """Equal for the same facts; where they are few, in whatever order they were given."""
    told = work.facts.facts.statement_tables
    return work.facts.digest if sum(map(len, told)) > _FEW else _digest(sorted(repr(one) for t in told for one in t))


def _digest(value: object) -> str:
    return hashlib.blake2b(repr(value).encode(), digest_size=6).hexdigest()


def late_rows(mixed: DataFrame) -> DataFrame:
    told = mixed.where(F.col("type").isin(LATE, REJECTED))
    why = F.when(F.col("type") == LATE, F.lit("late")).otherwise(F.lit("its id names another event"))
    return told.select(why.alias("why"), F.array_join("trace", "").alias("event"))


# Packages


def bucket_keys(buckets: int) -> list[int]:
    """The keys of buckets: numbers that Spark's hash spreads evenly over as many partitions, 0 among them."""
    found: dict[int, int] = {}
    key = 0
    while len(found) < buckets:
        found.setdefault(_murmur(key) % buckets, key)
        key += 1
    return [found[n] for n in range(buckets)]


def _murmur(value: int, seed: int = 42) -> int:
    """Murmur3 of a 32-bit integer, as Spark hashes the keys of a shuffle; signed."""
    mask = 0xFFFFFFFF

    def rotated(x: int, by: int) -> int:
        return ((x << by) | (x >> (32 - by))) & mask

    k = rotated((value * 0xCC9E2D51) & mask, 15) * 0x1B873593 & mask
    h = (rotated(seed ^ k, 13) * 5 + 0xE6546B64) & mask
    h ^= 4
    h = ((h ^ (h >> 16)) * 0x85EBCA6B) & mask
    h = ((h ^ (h >> 13)) * 0xC2B2AE35) & mask
    h ^= h >> 16
    return h - (1 << 32) if h >> 31 else h


def pack(given: Iterator[pa.RecordBatch], keys: list[int], work: Work) -> Iterator[pa.RecordBatch]:
    """The rows of a task, a package for each bucket. What is revoked goes to all; the bucket 0 always hears something."""
    for table in host.chunks(given, 1 << 20):
        names, packages, passed = [0], [b""], [False]
        if work.forward:
            ahead = table.filter(pc.or_(pc.is_in(table.column("type"), pa.array(sorted(work.forward), pa.int32())), pc.less(table.column("type"), 0)))  # fmt: skip
            if len(ahead):
                names.append(int(ahead.column("bucket")[0].as_py()))
                packages.append(serialised(ahead.drop_columns(["bucket", "revoke"])))
                passed.append(True)
            table = table.filter(
                pc.or_(pc.is_in(table.column("type"), pa.array(work.taken, pa.int32())), table.column("revoke"))
            )
        buckets = table.column("bucket").to_numpy()
        rows = table.drop_columns(["bucket"])
        order = np.argsort(buckets, kind="stable")
        ordered = buckets[order]
        edges = (np.flatnonzero(np.diff(ordered)) + 1).tolist()
        for lo, hi in zip([0, *edges], [*edges, len(ordered)], strict=True):
            if hi > lo:
                targets = keys if ordered[lo] < 0 else [int(ordered[lo])]
                names += targets
                packages += [serialised(rows.take(pa.array(order[lo:hi])))] * len(targets)
                passed += [False] * len(targets)
        columns = [pa.array(names, pa.int32()), pa.array(packages, pa.binary()), pa.array(passed)]
        yield pa.RecordBatch.from_arrays(columns, ["bucket", "payload", "passed"])


def serialised(table: pa.Table) -> bytes:
    """A table as bytes, without columns that say nothing."""
    sink = pa.BufferOutputStream()
    silent = {n for n in table.column_names if table.column(n).null_count == len(table)}
    if "start" in table.column_names and table.column("start").equals(table.column("end")):
        silent.add("start")
    if "op" in table.column_names and pc.all(pc.greater(table.column("op"), 0)).as_py():
        silent.add("op")
    kept = [n for n in table.column_names if n not in silent]
    with pa.ipc.new_stream(
        sink, table.select(kept).schema, options=pa.ipc.IpcWriteOptions(compression="lz4")
    ) as writer:
        writer.write_table(table.select(kept).combine_chunks())
    return bytes(sink.getvalue().to_pybytes())


def unpack(given: Iterator[pa.RecordBatch], stage: int, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The rows of packages, with where they were made."""
    for batch in given:
        for bucket, payload in zip(batch.column(0).to_pylist(), batch.column(1).to_pylist(), strict=True):
            for rows in pa.ipc.open_stream(payload):
                has = {name: rows.column(name) for name in rows.schema.names}
                has.setdefault("origin", pa.array(np.full(rows.num_rows, stage << 20 | bucket, np.int32)))
                has.setdefault("start", has["end"])
                has.setdefault("op", pa.array(np.ones(rows.num_rows, np.int8)))
                made = [has[f.name] if f.name in has else pa.nulls(rows.num_rows, f.type) for f in schema]
                yield pa.RecordBatch.from_arrays([*made, has["origin"]], [*schema.names, "origin"])


# The stateful operator


@dataclass
class Processor(StatefulProcessor):
    """Hosts the sessions of a stage. Events of the types in `silent` were told as late by an earlier stage."""

    work: Work
    stage: int
    silent: frozenset[Predicate]
    about: dict[str, Any]
    everywhere: frozenset[Predicate] = frozenset()

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.handle = handle
        self.head = handle.getValueState("head", "data binary")
        self.program = handle.getValueState("program", "data binary")
        self.log = handle.getMapState("log", "n bigint", "data binary")

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:
        payloads = []
        for frame in rows:
            for payload, passed in zip(frame["payload"], frame["passed"], strict=True):
                if passed:
                    yield pd.DataFrame({"bucket": [int(key[0])], "payload": [bytes(payload)]})
                elif payload:
                    payloads.append(bytes(payload))
        yield from self._step(key, payloads, timerValues.getCurrentWatermarkInMs())

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[pd.DataFrame]:
        return self._step(key, [], timerValues.getCurrentWatermarkInMs(), fired=expiredTimerInfo.getExpiryTimeInMs())

    def _step(
        self, key: Any, payloads: list[bytes], watermark: int, fired: int | None = None
    ) -> Iterator[pd.DataFrame]:
        bucket = Bucket(self.head, self.log, self._make, self._restore, self._tell, self.about, self.program)
        told = Told(payloads, self._frontier(watermark))
        changes = bucket.step(told)
        # What all buckets hear of, one of them tells.
        silent = self.silent if int(key[0]) == 0 else self.silent | self.everywhere
        records = [*host.answers(self.work, bucket.live.session, changes), *self._beside(bucket, silent)]
        timer = self._timer(bucket, fired, watermark)
        if payloads or records or not bucket.head.steps:
            bucket.save(told, timer)
        elif timer != bucket.head.timer:
            bucket.keep_timer(timer)
        bucket.done()
        if records:
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, self.work.schema) as writer:
                for record in records:
                    writer.write_batch(record)
            yield pd.DataFrame({"bucket": [int(key[0])], "payload": [sink.getvalue().to_pybytes()]})

    def _make(self, late: list[Any]) -> Session:
        return self.work.session(late.append)

    def _restore(self, data: bytes, late: list[Any]) -> Session:
        return self.work.restored(data, late.append)

    def _frontier(self, watermark: int) -> int | None:
        """Nothing more ends at or before it; Spark's watermark is 0 until it has seen something."""
        if watermark <= 0:
            return None
        return (watermark * 1000 if self.work.clock.kind == "timestamp" else watermark - SHIFT) - 1

    def _tell(self, session: Session, told: Told) -> Changes:
        return tell(session, told, self.work)

    def _timer(self, bucket: Bucket, fired: int | None, watermark: int) -> int | None:
        """Wakes the bucket up once the watermark reaches the next answer that waits for it."""
        ends = [one.waiting[0][0] for one in bucket.live.session.answers if one.waiting]
        held = bucket.head.timer
        if fired is not None or (held is not None and held <= watermark):
            held = None
        if not ends:
            return held
        due = -(-(min(ends) + 1) // 1000) if self.work.clock.kind == "timestamp" else min(ends) + 1 + SHIFT
        if held is None or due < held:
            self.handle.registerTimer(max(due, 1))
            return due
        return held

    def _beside(self, bucket: Bucket, silent: frozenset[Predicate]) -> Iterator[pa.RecordBatch]:
        """What came too late, what was refused and what could not be computed, as rows of their own."""
        live, clock = bucket.live, self.work.clock
        session = live.session
        rows: list[tuple[int, int | None, str | None, str]] = []
        for item in live.late:
            if isinstance(item, Event):
                if (item.type, len(item.args)) in silent:
                    continue
                name, arity = self.work.plan.aliases.get((item.type, len(item.args)), (item.type, len(item.args)))
                item = replace(item, type=name, args=item.args[:arity])
                rows.append((LATE, None, None, json.dumps(_plain(event_as_json(item, clock)), ensure_ascii=False)))
            else:
                rows.append((LATE, None, None, json.dumps({"op": "revoke", "id": item.id})))
        live.late.clear()
        for event, _ in session.rejected[live.rejected :]:
            rows.append((REJECTED, None, None, json.dumps(_plain(event_as_json(event, clock)), ensure_ascii=False)))
        for (rule, message), count in session.errors.items():
            new = count - live.errors.get((rule, message), 0)
            if new:
                rows.append((host.ERROR, new, rule, message))
        live.rejected, live.errors = len(session.rejected), dict(session.errors)
        if rows:
            made = {
                "type": pa.array([r[0] for r in rows], pa.int32()), "start": pa.array([r[1] for r in rows], pa.int64()),
                "end": pa.array([0] * len(rows), pa.int64()), "op": pa.array([1] * len(rows), pa.int8()),
                "id": pa.array([r[2] for r in rows], pa.string()), "trace": pa.array([r[3] for r in rows], pa.string()),
            }  # fmt: skip
            schema = self.work.schema
            yield pa.RecordBatch.from_arrays([made[f.name] if f.name in made else pa.nulls(len(rows), f.type) for f in schema], schema=schema)  # fmt: skip


def _plain(event: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in event.items() if k != "trace" and v != ""}


def origin_of(table: pa.Table, code: int) -> list[int]:
    return table.filter(pc.equal(table.column("type"), code)).column("origin").to_pylist()  # type: ignore[no-any-return]


def _checked(payloads: list[bytes]) -> list[pa.Table]:
    """Packages that were kept in a checkpoint: what Arrow does not look at when it reads is looked at here."""
    try:
        tables = [pa.ipc.open_stream(p).read_all() for p in payloads]
        for table in tables:
            table.validate(full=True)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise not_whole(f"a package cannot be read ({type(error).__name__})") from None
    return tables


def tell(session: Session, told: Told, work: Work) -> Changes:
    """One step of a session: what the packages say, and the frontier."""
    plan = work.plan
    tables = _checked(told.payloads) if told.stored else [pa.ipc.open_stream(p).read_all() for p in told.payloads]
    table = pa.concat_tables(tables, promote_options="default") if tables else None
    if table is None or not len(table):
        return session.take({}, told.frontier)
    if {"start", "end"} <= set(table.column_names):  # a package of points has just the end
        start = pc.coalesce(table.column("start"), table.column("end"))
        table = table.set_column(table.column_names.index("start"), "start", start)
    revoked: list[str] = []
    if "revoke" in table.column_names:
        flags = pc.fill_null(table.column("revoke"), False)
        revoked = [i for i in table.filter(flags).column("id").to_pylist() if i] if pc.any(flags).as_py() else []
        table = table.filter(pc.invert(flags)) if revoked else table
    withdrawn: dict[Predicate, list[str]] = {}
    if "op" in table.column_names:
        gone = pc.less(pc.fill_null(table.column("op"), 1), 0)
        back = table.filter(gone)
        ids = zip(back.column("id").to_pylist(), back.column("origin").to_pylist(), strict=True)
        withdrawn = {next(iter(plan.given), ("", 0)): [f"{id}@{origin}" for id, origin in ids]}
        table = table.filter(pc.invert(gone))
    found: dict[Predicate, Batch] = batches(table, work.layout) if len(table) else {}
    for type in plan.given.keys() & found.keys():  # the same content may come from several buckets
        origins = origin_of(table, work.layout.codes[type])
        found[type].ids = [f"{id}@{origin}" for id, origin in zip(found[type].ids, origins, strict=True)]
    return session.take(found, told.frontier, revoked, withdrawn, late=told.frontier)
