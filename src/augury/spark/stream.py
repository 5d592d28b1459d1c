"""Streams on Spark: for each stage a stateful operator that hosts a session for each of a few buckets.

Rows travel in packages (`packages.py`), one for each bucket and task.
"""

from __future__ import annotations

import hashlib
import json
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial, reduce
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, assert_never

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle

from augury.algebra.plan import INPUT, Predicate
from augury.algebra.properties import all_properties
from augury.algebra.stages import Stage, Stages
from augury.compiled import Compiled
from augury.core.errors import RunError
from augury.core.model import Event
from augury.engine.changes import Changes
from augury.engine.found import AnswerRows
from augury.engine.horizon import remembers
from augury.engine.session import Session
from augury.planner.cut_rules import rule_of_part
from augury.settings import Settings
from augury.sinks import event_as_json
from augury.spark import host
from augury.spark.carrier import carried
from augury.spark.casts import slice_of
from augury.spark.checkpoint_files import check_spark_files
from augury.spark.host import Work
from augury.spark.layout import JOINT
from augury.spark.line_reader import NO_VERSIONS
from augury.spark.metrics import METRICS, STAGES, StepMeter
from augury.spark.packages import SHIFT, bucket_keys, feed, pack, unpack
from augury.spark.pipeline import Outputs, Pipeline, listed, partitions_of
from augury.spark.starting import ROCKSDB, usual_buckets
from augury.spark.state import Bucket, BucketStep, CachedSession, know

# Codes of rows that tell of events that came too late, whose id names another event, how many are known already, and of
# answers of types that an earlier version of the program had; and of events whose time is too far in the future.
LATE, REJECTED, REPEATED, RETRACTED, AHEAD = -2, -3, -4, -5, -6
STEP, MALFORMED = -7, -8  # what a step has measured; a row that is no event
_TIME = "augury_event_time"
_FEW = 100_000  # facts that are compared one by one
_PACKED = "bucket int, payload binary"


@dataclass(frozen=True)
class Version:
    """An earlier version of the program of a stream; rules that were new in it saw what started after `since`."""

    stream: DetectionStream
    since: int | None

    @cached_property
    def hosted(self) -> list[tuple[Stage, Work]]:
        """Its stages, and what their workers needed."""
        outputs, alone = self.stream.pipeline.plan.outputs, self.stream.buckets == 1
        return self.stream.hosted(self.stream.pipeline.staged(outputs, alone=alone, live=True))

    def fingerprint(self, work: Work, number: int) -> dict[str, Any]:
        """What its buckets said of a stage; `work` is that of the stage with the versions before it."""
        return self.stream.fingerprint(work, self.hosted[number - 1][0])


class DetectionStream(Outputs):
    """The changes of the answers of a program: a streaming DataFrame for each event type.

    `wide` and `events` have all of them in one stream; `late` what came too late; `errors` what could not be computed; `malformed` the
    rows that are no events.
    """

    def __init__(self, pipeline: Pipeline, earlier: Sequence[Version] = (), since: int | None = None) -> None:
        """`earlier` has the versions of the program that the state of the stream may be of, the oldest first; rules that
        none of them has see what starts after `since`."""
        super().__init__(pipeline)
        self.earlier, self.since = tuple(earlier), since
        self.emit, late = pipeline.settings.emit, pipeline.settings.lateness
        if late is None:
            raise RunError("the lateness of events is missing", hint='say lateness="10 minutes"')
        self.lateness = pipeline.clock.length(late)
        self.ahead = pipeline.execution.ahead
        if self.ahead is not None and pipeline.clock.kind != "timestamp":
            raise RunError("ticks are not times of the day, so no event can be ahead of them", hint="leave `ahead` out")
        if pipeline.versions:
            raise RunError(
                NO_VERSIONS, hint="`program.session(lateness=…)` takes them, and so does `augury.spark.detect`"
            )
        master, cores = pipeline.spark.conf.get("spark.master", "") or "", partitions_of(pipeline.spark)
        self.buckets = pipeline.execution.buckets or usual_buckets(pipeline.plan, master, cores)
        partitions = int(pipeline.spark.conf.get("spark.sql.shuffle.partitions", "200") or 200)
        if partitions > max(self.buckets, 0 if pipeline.execution.buckets else 2 * cores):
            warnings.warn(
                f"the state of {self.buckets} buckets is kept in {partitions} partitions, and each costs time in every "
                f"batch: set spark.sql.shuffle.partitions to {self.buckets} or less before the first start",
                stacklevel=3,
            )
        provider = pipeline.spark.conf.get("spark.sql.streaming.stateStore.providerClass", "") or ""
        if "RocksDB" not in provider:
            raise RunError(
                "streams keep their state in RocksDB, but the session has another state store",
                hint=f'build it with .config("spark.sql.streaming.stateStore.providerClass", "{ROCKSDB}")',
            )
        for rule in self._kept_for_lengths():
            warnings.warn(
                f'rule `{rule}` keeps every event, since one may have lasted for any time: say how long they last at most, longest="1h"',
                stacklevel=3,
            )

    def _kept_for_lengths(self) -> list[str]:
        """The rules whose state is unbounded because the length of events is."""
        pipeline = self.pipeline
        if pipeline.longest is not None:
            return []
        settings = Settings(emit=self.emit, retention=pipeline.retention)
        session = Session(Compiled(pipeline.plan), settings, clock=pipeline.clock)
        session.circuit.learns = False
        bounded = {
            label for label, properties in all_properties(pipeline.plan).items() if properties.horizon is not None
        }
        return [rule for rule in remembers(session.circuit) if rule in bounded]

    def __getitem__(self, type: str) -> DataFrame:
        return self.pipeline.answers(self.all_rows((self.known(type),)), type, changes=self.emit == "early")

    @property
    def events(self) -> DataFrame:
        """All changes in one stream: op, type, arguments as JSON, start, end, id, trace."""
        return self.pipeline.as_json(self.changes, changes=True)

    @property
    def wide(self) -> DataFrame:
        """All changes in one stream: op, type, a column for each attribute name, start, end, id, trace."""
        return self.pipeline.wide(self.changes, changes=True)

    @property
    def everything(self) -> DataFrame:
        """Answers, errors, and late and malformed events in one stream, for one query: `parts` takes a batch of it apart.

        Malformed rows, with on_error="skip", are in a second reading of the input by the same query.
        """
        if self.pipeline.settings.on_error == "stop":
            return self.changes
        changes, text = self.changes, F.array("problem", "row")
        wrong = self.malformed.select(F.lit(MALFORMED).alias("type"), F.col("type").alias("id"), text.alias("trace"))
        return changes.unionByName(wrong, allowMissingColumns=True)

    def parts(self, batch: DataFrame) -> dict[str, DataFrame]:
        """A batch of `everything`, in foreachBatch: a DataFrame for each event type, and `late`, `malformed` and `errors`."""
        result = {type: self.pipeline.answers(batch, type, changes=self.emit == "early") for type in self}
        wrong = batch.where(F.col("type") == MALFORMED)
        texts = (F.element_at("trace", 1).alias("problem"), F.element_at("trace", 2).alias("row"))
        malformed = wrong.select(F.col("id").alias("type"), *texts)
        return result | {"late": late_rows(batch), "malformed": malformed, "errors": self.pipeline.errors(batch)}

    @property
    def late(self) -> DataFrame:
        """Events and revocations that came too late, or whose id names another event already, as JSON."""
        return late_rows(self.all_rows(self.pipeline.plan.outputs))

    @property
    def errors(self) -> DataFrame:
        return self.pipeline.errors(self.all_rows(self.pipeline.plan.outputs))

    @staticmethod
    def check_checkpoint(folder: str | Path) -> None:
        """Raises SnapshotError where a file of a local checkpoint that a restart needs is damaged or missing.

        `start()` is Spark's own, and so is what it says of such a file: call this before it.
        """
        check_spark_files(Path(folder))

    # Stages

    def all_rows(self, outputs: tuple[str, ...]) -> DataFrame:
        """The changes of some types in the layout, and all that is reported beside them."""
        pipeline = self.pipeline
        staged = pipeline.staged(outputs, alone=self.buckets == 1, live=True)
        result: DataFrame | None = None
        read: set[Predicate] = set()
        for stage, work in self.hosted(staged):
            if stage.number <= len(staged.stages):
                result = self._run(staged, stage, work, result, frozenset(read))
            else:
                assert result is not None
                frame = result.withColumn("revoke", F.lit(False))
                result = self._hosted(frame, self._bucket(F.xxhash64("id")), work, stage, frozenset())
            read |= set(stage.reads)
        assert result is not None
        codes = [pipeline.layout.codes[t] for t in staged.plan.derived if t[0] in outputs]
        result = result.where(F.col("type").isin(codes) | (F.col("type") < 0)).drop("origin")
        return result.withColumn("trace", listed())

    @property
    def changes(self) -> DataFrame:
        """The changes of all types, and notices; the progress of a query says what each batch has brought."""
        return self.all_rows(self.pipeline.plan.outputs).observe(METRICS, *_metrics())

    def hosted(self, staged: Stages) -> list[tuple[Stage, Work]]:
        """The stages with what their workers need, and behind them the one that merges what several buckets may make.

        Each has those of earlier versions of the program that did the same.
        """
        result = [(stage, self._work(staged, stage)) for stage in staged.stages]
        merged = [t for t in staged.plan.derived if t[0] in staged.plan.outputs and t in staged.spread]
        if merged:
            result.append(self._merge(staged, merged))
        versions = [version.hosted for version in self.earlier]
        for n, (stage, work) in enumerate(result):
            before = [replace(works[n][1], since=v.since) for v, works in zip(self.earlier, versions, strict=True)]
            for m in range(1, len(before)):
                before[m] = replace(before[m], earlier=tuple(before[:m]))
            result[n] = stage, replace(work, earlier=tuple(before), since=self.since)
        return result

    def _work(self, staged: Stages, stage: Stage) -> Work:
        work = self.pipeline.work(staged, stage, self.emit)
        if stage.how == "anywhere":
            return work.in_buckets()
        return work if stage.longest is None else work.in_slices(self.pipeline.clock.length(stage.longest))

    def _run(
        self, staged: Stages, stage: Stage, work: Work, before: DataFrame | None, silent: frozenset[Predicate]
    ) -> DataFrame:
        """A stage: what it makes, and what earlier ones have made that is an answer or is still to be read."""
        pipeline = self.pipeline
        own_types = pipeline.own_types(staged, stage)
        frames = (
            [self._events(staged, stage, own_types, alone=before is None)] if own_types or INPUT in stage.reads else []
        )
        more = {"revoke": F.lit(False)} | ({} if self.ahead is None else {"ahead": F.lit(None).cast("boolean")})
        frames += [] if before is None else [before.withColumns(more)]
        frame = reduce(DataFrame.unionByName, frames)
        match stage.how:
            case "one":
                bucket = F.lit(0)
            case "anywhere":
                frame = frame.withColumn("slice", F.pmod(pipeline.any_key(frame), F.lit(self.buckets)))
                bucket = self._bucket(F.col("slice"))
            case "slices":
                assert stage.longest is not None
                frame = self._sliced(frame, pipeline.clock.length(stage.longest), work)
                bucket = self._bucket(F.col("slice"))
            case "key":
                bucket = self._bucket(pipeline.key(stage, frame.columns))
            case _:
                assert_never(stage.how)
        if "revoke" in frame.columns:
            bucket = F.when(F.col("revoke"), F.lit(-1)).otherwise(bucket)
        if stage.everywhere:
            codes = [pipeline.layout.codes[t] for t in stage.everywhere if t in pipeline.layout.codes]
            bucket = F.when(F.col("type").isin(codes), F.lit(-1)).otherwise(bucket)
        return self._hosted(frame, bucket, work, stage, silent)

    def _sliced(self, frame: DataFrame, longest: int, work: Work) -> DataFrame:
        """Every event in all slices to whose answers it may belong; what is no event stays one row."""
        length, start = F.lit(work.slice), F.col("start") if "start" in frame.columns else F.col("end")
        first, last = slice_of(F.col("end"), length), slice_of(start + F.lit(longest), length)
        event = (F.col("type") >= 0) & (~F.col("revoke") if "revoke" in frame.columns else F.lit(True))
        numbers = F.when(event, F.sequence(first, F.greatest(first, last))).otherwise(F.array(first))
        return frame.withColumn("slice", F.explode(numbers))

    def _bucket(self, hashed: Column) -> Column:
        keys = bucket_keys(self.buckets)
        return F.element_at(F.array(*(F.lit(k) for k in keys)), (F.pmod(hashed, F.lit(self.buckets)) + 1).cast("int"))

    def _merge(self, staged: Stages, types: list[Predicate]) -> tuple[Stage, Work]:
        """Events that several buckets may make: each is there while one of them has it."""
        outputs, derived_inputs = tuple(sorted({t[0] for t in types})), {t: staged.lengths.get(t) for t in types}
        plan = replace(staged.plan, rules=(), outputs=outputs, declared={}, given=derived_inputs)
        stage = Stage(len(staged.stages) + 1, (), "key", dict.fromkeys(types, ()), ())
        codes = self.pipeline.layout.codes
        others = {codes[t] for t in staged.plan.derived if t not in types} | {host.ERROR}
        work = self.pipeline.work(staged, staged.stages[-1], self.emit)
        return stage, replace(work, plan=plan, forward=frozenset(others))

    def _events(self, staged: Stages, stage: Stage, types: list[Predicate], alone: bool) -> DataFrame:
        """Input events. All of them advance the watermark, before those that the stage cannot use are left out.

        Where they come `alone`, they have no columns but those that say something.
        """
        pipeline = self.pipeline
        calendar, end = pipeline.clock.kind == "timestamp", F.col("end")
        now = F.timestamp_micros(end) if calendar else F.timestamp_millis(end + F.lit(SHIFT))
        never = F.lit(None).cast("timestamp")
        if self.ahead is not None:  # an event from the future does not move the clock
            now = F.when(~self._is_ahead(), now)
        frames = [pipeline.checked(s).withColumn(_TIME, now if s.tells_time else never) for s in pipeline.sources]
        delay = self.lateness // 1000 if calendar else self.lateness
        events = reduce(DataFrame.unionByName, frames).withWatermark(_TIME, f"{delay} milliseconds")
        usable = pipeline.usable(types, staged, stage)
        if pipeline.ops:
            usable = usable | F.col("revoke")
        # The condition mentions the time: one that does not would be moved below the watermark, which all events tell.
        used = events.where(F.coalesce(F.when(F.col(_TIME).isNotNull(), usable), usable))
        if INPUT in stage.reads:
            used = used.unionByName(self._inputs(events))
        events = used if self.ahead is None else used.withColumn("ahead", F.when(self._is_ahead(), F.lit(True)))
        more = [] if self.ahead is None else ["ahead"]
        if alone:
            present = {"start": not pipeline.points, "id": pipeline.ids, "revoke": pipeline.ops}
            names = [*(c for c, there in present.items() if there), *more]
            return events.select("type", "end", *names, *pipeline.columns(stage))
        revoke = F.col("revoke") if pipeline.ops else F.lit(False)
        return pipeline.like_answers(events, F.lit(0).alias("origin"), revoke.alias("revoke"), *map(F.col, more))

    def _is_ahead(self) -> Column:
        """Whether an event ends later than the time of its batch by more than is allowed."""
        limit = F.unix_micros(F.current_timestamp()) + F.lit(self.ahead)
        return F.coalesce(F.col("end") > limit, F.lit(False))

    def _inputs(self, events: DataFrame) -> DataFrame:
        """Events as such, whatever they say: the first one that stands opens windows by the clock."""
        layout = self.pipeline.layout
        changed = {c: F.lit(None).cast(layout.sql(c)) for c in layout.columns}
        id = F.concat(F.lit(JOINT), "id") if self.pipeline.ops else F.lit(None).cast("string")
        changed |= {"type": F.lit(layout.codes[INPUT]), "start": F.col("end"), "id": id}
        timed = F.col(_TIME).isNotNull()
        timed = timed | F.col("revoke") if self.pipeline.ops else timed
        return events.where(timed).select(*(changed.get(c, F.col(c)).alias(c) for c in events.columns))

    def _hosted(
        self, frame: DataFrame, bucket: Column, work: Work, stage: Stage, silent: frozenset[Predicate]
    ) -> DataFrame:
        """A stage: packed by bucket, run by the stateful operator, and unpacked."""
        keys = bucket_keys(self.buckets) if stage.how != "one" else [0]  # facts alone may have answers: in one bucket
        packed = partial(pack, keys=keys, work=work)
        unpacked = partial(unpack, stage=stage.number, schema=work.schema)
        processor = self._processor(stage, work, silent)
        rows = frame.withColumn("bucket", bucket.cast("int")).mapInArrow(packed, _PACKED + ", passed boolean")
        changes = rows.groupBy("bucket").transformWithStateInPandas(carried(processor), _PACKED, "Append", "EventTime")
        return changes.mapInArrow(unpacked, self.pipeline.schema() + ", origin int")

    def _processor(self, stage: Stage, work: Work, silent: frozenset[Predicate]) -> Processor:
        programs = [v.fingerprint(w, stage.number) for v, w in zip(self.earlier, work.earlier, strict=True)]
        return Processor(work, silent, self.fingerprint(work, stage), stage.everywhere, tuple(programs))

    def processors(self, staged: Stages) -> dict[int, Processor]:
        """What hosts the sessions of each stage, by its number."""
        return {stage.number: self._processor(stage, work, frozenset()) for stage, work in self.hosted(staged)}

    def fingerprint(self, work: Work, stage: Stage) -> dict[str, Any]:
        """The identity of the state of a stage: a checkpoint with the same one can be resumed."""
        pipeline = self.pipeline
        return {
            **({"version": len(work.earlier)} if work.earlier else {}),
            "rules": pipeline.program.written_rules({rule.span: rule.label for rule in stage.rules}),
            "stage": stage.number,
            "buckets": self.buckets,
            "emission": self.emit,
            "clock": pipeline.clock.kind,
            "retention": pipeline.retention,
            "longest": pipeline.longest,
            "facts": _facts_digest(work),
            "reading_of_the_rules": _digest(work.plan.rules),
            **({} if work.slice is None else {"slices": work.slice}),
            "kinds": {f"{t[0]}/{t[1]}": list(pipeline.layout.kinds[t]) for t in sorted(stage.reads)},
        }


def _facts_digest(work: Work) -> str:
    """Equal for the same facts; where they are few, in whatever order they were given."""
    statements = work.facts.facts.statement_tables
    return (
        work.facts.digest
        if sum(map(len, statements)) > _FEW
        else _digest(sorted(repr(item) for table in statements for item in table))
    )


def _digest(value: object) -> str:
    return hashlib.blake2b(repr(value).encode(), digest_size=6).hexdigest()


def _metrics() -> list[Column]:
    """What a batch has brought, under the names of `stats()`: in the progress of a query, as observed metrics."""
    type, answer = F.col("type"), F.col("type") >= 0
    counted = {
        "matches": F.count_if(answer & (F.col("op") > 0)),
        "retracted": F.count_if((answer & (F.col("op") < 0)) | (type == RETRACTED)),
        "late": F.count_if(type == LATE),
        "ahead": F.count_if(type == AHEAD),
        "rejected": F.count_if(type == REJECTED),
        "repeated": F.coalesce(F.sum(F.when(type == REPEATED, F.col("start"))), F.lit(0)),
        "errors": F.coalesce(F.sum(F.when(type == host.ERROR, F.col("start"))), F.lit(0)),
        STAGES: F.array_join(F.collect_list(F.when(type == STEP, F.array_join("trace", ""))), ","),
    }
    return [column.alias(name) for name, column in counted.items()]


def late_rows(rows: DataFrame) -> DataFrame:
    result = rows.where(F.col("type").isin(LATE, REJECTED, AHEAD))
    why = F.when(F.col("type") == LATE, F.lit("late")).when(F.col("type") == AHEAD, F.lit("ahead of the clock"))
    why = why.otherwise(F.lit("its id names another event"))
    return result.select(why.alias("why"), F.array_join("trace", "").alias("event"))


# The stateful operator


@dataclass
class Processor:
    """Hosts the sessions of a stage, in a worker. An earlier stage reports late events of the types in `silent`."""

    work: Work
    silent: frozenset[Predicate]
    fingerprint: dict[str, Any]
    everywhere: frozenset[Predicate] = frozenset()
    programs: tuple[dict[str, Any], ...] = ()  # the fingerprints of earlier versions
    taken_back: list[pa.RecordBatch] = field(default_factory=list)  # answers that an upgrade has retracted

    def take(self, handle: StatefulProcessorHandle, head: Any, program: Any, log: Any) -> None:
        """Takes what Spark's state store keeps of the bucket of a key."""
        self.handle, self.head, self.program, self.log = handle, head, program, log

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
        bucket = Bucket(self.head, self.log, self.program, self, self.fingerprint)
        taken_back, self.taken_back = self.taken_back, []
        step, meter = BucketStep(payloads, self._frontier(watermark)), StepMeter.start(bucket.cached.session)
        changes = bucket.step(step)
        # What goes to all buckets is reported by one of them; events as such are reported as what they are.
        silent = self.silent | {INPUT} | (self.everywhere if int(key[0]) else set())
        first = self.fingerprint["stage"] == 1 and not int(key[0])  # revocations go to all buckets of all stages
        records = [*taken_back, *host.answers(self.work, bucket.cached.session, changes)]
        notices = self._notices(bucket.cached, silent, step.ahead, revocations=first)
        if payloads or records or notices:
            notices.append((STEP, None, None, self._measured(int(key[0]), meter, records, notices)))
        records += self.work.notices(notices)
        timer = self._timer(bucket, fired, watermark)
        if payloads or records or bucket.upgraded or not bucket.head.steps:
            bucket.save(step, timer)
        elif timer != bucket.head.timer:
            bucket.keep_timer(timer)
        bucket.done()
        if records:
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, self.work.schema) as writer:
                for record in records:
                    writer.write_batch(record)
            yield pd.DataFrame({"bucket": [int(key[0])], "payload": [sink.getvalue().to_pybytes()]})

    def _measured(
        self, bucket: int, meter: StepMeter, records: list[pa.RecordBatch], notices: list[host.Notice]
    ) -> str:
        """What a step has done, as JSON."""
        codes, changed = Counter(code for code, _, _, _ in notices), sum(record.num_rows for record in records)
        matches = sum(pc.sum(pc.greater(record.column("op"), 0)).as_py() or 0 for record in records)
        counts = {"matches": matches, "retracted": changed - matches}
        counts |= {"late": codes[LATE], "ahead": codes[AHEAD], "rejected": codes[REJECTED]}
        said = {"stage": self.fingerprint["stage"], "bucket": bucket}
        return json.dumps(said | meter.figures(**counts), ensure_ascii=False, default=int)  # some counts are NumPy's

    def version(self, program: dict[str, Any]) -> int | None:
        return self.programs.index(program) if program in self.programs else None

    def session(self, late: list[Any], snapshot: bytes | None, version: int | None = None) -> Session:
        if snapshot is not None:
            return self.work.restored(snapshot, late.append)
        return self.work.session(late.append, None if version is None else self.work.earlier[version].plan)

    def feed(self, session: Session, step: BucketStep, version: int | None = None) -> Changes:
        return feed(session, step, self.work if version is None else self.work.earlier[version])

    def upgrade(self, session: Session, version: int) -> None:
        for before, work in pairwise([*self.work.earlier[version:], self.work]):
            changes = session.become(Compiled(work.plan), work.since)
            if self.work.settings.emit == "early":
                self.taken_back += self._taken_back(session, changes, before)

    def _taken_back(self, session: Session, changes: Changes, before: Work) -> Iterator[pa.RecordBatch]:
        """What rules had derived that are gone: as answers, or where their type is gone, too, as notices."""
        layout, extra = self.work.layout, len(self.work.extra)
        parts = {part: (part.type, part.arity - extra) for part in changes.parts if isinstance(part, AnswerRows)}
        same = [p for p, t in parts.items() if layout.kinds.get(t) == before.layout.kinds.get(t, layout.kinds.get(t))]
        yield from host.answers(self.work, session, type(changes)(session.program.plan, session.clock, same))
        gone = type(changes)(session.program.plan, session.clock, [part for part in parts if part not in same])
        events = (change.event for change in gone if self.work.own_copy(change.event))
        yield from self.work.notices([(RETRACTED, None, None, self._json(event, "retract", True)) for event in events])

    def _frontier(self, watermark: int) -> int | None:
        """Nothing more ends at or before it; Spark's watermark is 0 until it has seen something."""
        if watermark <= 0:
            return None
        return (watermark * 1000 if self.work.clock.kind == "timestamp" else watermark - SHIFT) - 1

    def _timer(self, bucket: Bucket, fired: int | None, watermark: int) -> int | None:
        """Wakes the bucket up once the watermark reaches the next answer that waits for it."""
        session = bucket.cached.session
        ends = [answer.waiting[0][0] for answer in session.answers if answer.waiting]
        ends += [due for item in session.circuit.clocked if (due := item.due) is not None]
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

    def _notices(
        self, cached: CachedSession, silent: frozenset[Predicate], ahead: list[Event], revocations: bool
    ) -> list[host.Notice]:
        """What came too late, was repeated or refused, and what could not be computed."""
        session, work = cached.session, self.work
        rows: list[host.Notice] = []
        for code, item in [*((LATE, item) for item in cached.late), *((AHEAD, event) for event in ahead)]:
            if not isinstance(item, Event) and not item.id.startswith(JOINT):
                rows.append((code, None, None, json.dumps({"op": "revoke", "id": item.id})))
            elif isinstance(item, Event) and work.own_copy(item) and (type := work.own_type(item)) not in silent:
                name, arity = work.plan.aliases.get((item.type, len(item.args)), type)
                rows.append((code, None, None, self._json(replace(item, type=name, args=item.args[:arity]))))
        cached.late.clear()
        rejected = (
            replace(event, args=event.args[: len(event.args) - len(work.extra)])
            for event, _ in session.rejected[cached.rejected :]
            if work.own_copy(event) and work.own_type(event) not in silent
        )
        rows += [(REJECTED, None, None, self._json(event)) for event in rejected]
        not_heard = {(name, arity + len(work.extra)) for name, arity in silent} | work.plan.given.keys()
        heard = {t for t in session.repeats if (revocations if t is None else t not in not_heard)}
        repeated = sum(session.repeats[type] - cached.repeats[type] for type in heard)
        rows += [(REPEATED, repeated, None, "")] if repeated else []
        for (rule, message), count in session.errors.items():
            new = count - cached.errors.get((rule, message), 0)
            if new:
                rows.append((host.ERROR, new, rule_of_part(rule), message))
        know(cached)
        return rows

    def _json(self, event: Event, op: Literal["retract"] | None = None, trace: bool = False) -> str:
        event = replace(event, args=event.args[: len(event.args) - len(self.work.extra)]) if trace else event
        result = event_as_json(event, self.work.clock, op, trace=trace)
        return json.dumps({k: v for k, v in result.items() if v != ""}, ensure_ascii=False)
