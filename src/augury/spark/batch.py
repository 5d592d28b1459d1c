"""Batch on Spark: for each stage one shuffle by its key, then one circuit per partition."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property, partial, reduce
from operator import or_
from pathlib import Path
from typing import assert_never

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from augury.algebra.nodes import Every, Instant, Rule, SessionWindow, walk
from augury.algebra.plan import INPUT, Plan
from augury.algebra.stages import SLICES, Stage, Stages, asks_the_clock, can_slice, slice_length, sliced
from augury.core.errors import RunError
from augury.core.standing import InputCounts
from augury.core.versions import ALL
from augury.settings import Emit
from augury.spark import host
from augury.spark.beginning import HistoryRun
from augury.spark.casts import slice_of
from augury.spark.packages import bucket_keys
from augury.spark.pipeline import Outputs, Pipeline, listed, partitions_of


class Detections(Outputs):
    """The answers of a program: a DataFrame for each event type, computed when it is asked for.

    `wide` and `events` have all of them in one pass; `malformed` the rows that are no events, `unknown` how many events are of
    types that the program does not know; `errors` what could not be computed.
    """

    def __init__(self, pipeline: Pipeline, until: object = None, asked: HistoryRun | None = None) -> None:
        """`asked` is what the user asked for, where its state may be left for a stream."""
        super().__init__(pipeline)
        self.asked = asked
        self.until = None if until is None else pipeline.inputs_clock.read(until)

    def __getitem__(self, type: str) -> DataFrame:
        return self.pipeline.answers(self.all_rows((self.known(type),)), type, changes=False)

    @cached_property
    def events(self) -> DataFrame:
        """All answers in one DataFrame: type, arguments as JSON, start, end, id, trace."""
        return self.pipeline.as_json(self.all_rows(self.pipeline.plan.outputs), changes=False)

    @cached_property
    def wide(self) -> DataFrame:
        """All answers in one DataFrame, in one pass: type, a column for each attribute name, start, end, id, trace."""
        return self.pipeline.wide(self.all_rows(self.pipeline.plan.outputs), changes=False)

    def checkpoint(
        self,
        path: str | Path,
        *,
        lateness: str,
        emit: Emit = "final",
        type: str | None = None,
        buckets: int | None = None,
    ) -> DataFrame:
        """Leaves the state of this history in a new folder, with which a stream goes on; gives the answers of the history.

        The query is then `detect_stream(…)[type]`, or without a type `.wide`, `.events` or `.everything`, of as many streaming
        DataFrames, with this `checkpointLocation` and the same settings. What is not final yet, the stream emits.
        """
        if self.asked is None or self.until is not None:
            raise RunError("a stream goes on from the last event", hint="leave `until` out")
        clock = self.pipeline.inputs_clock
        read = {"clock": clock.kind, "time_unit": clock.unit}
        return self.asked.begin(path, read, lateness, emit, type and self.known(type), buckets)

    @property
    def counts(self) -> InputCounts:
        """What became of all rows: accepted, repeated, rejected, malformed. It reads the events once more."""
        return self.pipeline.counts

    def inputs_between(self, spans: Iterable[tuple[int, int]]) -> DataFrame:
        """The inputs that stand and lie, at least in part, in one of some spans of time, in the layout of answers."""
        events = self._standing(reduce(DataFrame.unionByName, self._told))
        first = F.col("end" if self.pipeline.points else "start")
        near = reduce(or_, ((F.col("end") >= start) & (first <= end) for start, end in spans))
        return self.pipeline.like_answers(events.where(near)).withColumn("trace", listed())

    @property
    def errors(self) -> DataFrame:
        return self.pipeline.errors(self.all_rows(self.pipeline.plan.outputs))

    @cached_property
    def partitions(self) -> int:
        return self.pipeline.execution.partitions or partitions_of(self.pipeline.spark)

    # Stages

    def all_rows(self, outputs: tuple[str, ...]) -> DataFrame:
        """The answers of some types, in the layout."""
        pipeline = self.pipeline
        staged = pipeline.staged(outputs, alone=self.partitions == 1)
        result: DataFrame | None = None
        for stage in staged.stages:
            result = self._run(staged, stage, result)
        wanted = [pipeline.layout.codes[t] for t in staged.plan.derived if t[0] in outputs]
        assert result is not None
        return self._clocked(
            self._once(result.where(F.col("type").isin([*wanted, host.ERROR])).withColumn("trace", listed()), staged),
            staged.plan,
        )

    def _once(self, answers: DataFrame, staged: Stages) -> DataFrame:
        """Events that several buckets may have made are there once."""
        codes = [self.pipeline.layout.codes[t] for t in staged.spread if t[0] in staged.plan.outputs]
        if not codes:
            return answers
        alone = F.when(~F.col("type").isin(codes), F.monotonically_increasing_id()).otherwise(F.lit(-1))
        return answers.withColumn("alone", alone).dropDuplicates(["type", "id", "alone"]).drop("alone")

    def _clocked(self, answers: DataFrame, plan: Plan) -> DataFrame:
        """Without answers ahead of the clock, which is the greatest end of an event unless `until` is given."""
        if self.until is not None:
            return answers.where((F.col("end") <= F.lit(self.until)) | (F.col("type") < 0))
        if not any(_ends_ahead(rule) for rule in plan.rules):
            return answers
        return self._with_now(answers).where((F.col("end") <= F.col("now")) | (F.col("type") < 0)).drop("now")

    @cached_property
    def _all(self) -> DataFrame:
        """All events, of whatever type."""
        events = reduce(DataFrame.unionByName, self._told)
        return events.where(~F.col("revoke")) if self.pipeline.ops else events

    @property
    def _told(self) -> list[DataFrame]:
        """All events and revocations, by source."""
        return [self.pipeline.checked(source) for source in self.pipeline.sources if source.tells_time]

    @cached_property
    def _span(self) -> tuple[int, int] | None:
        """The least and the greatest end of an event, where all sources say so: else Spark reads them once more."""
        spans = [source.span for source in self.pipeline.sources if source.tells_time]
        filled = [span for span in spans if span is not None]
        if not filled or len(filled) < len(spans):
            return None
        return min(first for first, _ in filled), max(last for _, last in filled)

    def _with_now(self, frame: DataFrame) -> DataFrame:
        """With the clock at the end: `until`, or the greatest end of an event."""
        now = self.until if self.until is not None else self._span[1] if self._span is not None else None
        if now is not None:
            return frame.withColumn("now", F.lit(now).cast("bigint"))
        return frame.crossJoin(F.broadcast(self._all.agg(F.max("end").alias("now"))))

    def _first(self) -> DataFrame:
        """Of all events that stand the first end, which opens windows by the clock."""
        pipeline = self.pipeline
        if self._span is not None and not (pipeline.ops or pipeline.versions):
            first = pipeline.spark.range(1, numPartitions=1).select(F.lit(self._span[0]).cast("bigint").alias("end"))
        else:
            standing = self._standing(reduce(DataFrame.unionByName, self._told))
            first = standing.agg(F.min("end").alias("end")).where(F.col("end").isNotNull())
        code = F.lit(self.pipeline.layout.codes[INPUT]).alias("type")
        return first.select(code, F.lit(1).cast("tinyint").alias("op"), F.col("end").alias("start"), "end")

    def _run(self, staged: Stages, stage: Stage, before: DataFrame | None) -> DataFrame:
        """A stage: what it makes, and what earlier ones have made that is an answer or is still to be read."""
        pipeline = self.pipeline
        frame = self._inputs(staged, stage, before)
        length = stage.longest if stage.how == "slices" else None
        if stage.how == "key" and pipeline.execution.skew:
            length = can_slice(staged, stage, pipeline.longest)
        work = pipeline.work(staged, stage, "final")
        if asks_the_clock(stage):
            frame = self._with_now(frame)
        if length is not None:
            frame = self._sliced(frame, pipeline.clock.length(length))
            work = replace(work, plan=sliced(work.plan), slice=1)
        if stage.how == "anywhere":
            work = work.in_buckets()
        match stage.how:
            case "one":
                frame = frame.repartition(1)
            case "anywhere":
                frame = frame.withColumn("slice", F.pmod(pipeline.any_key(frame), F.lit(self.partitions)))
                frame = frame.repartition(self.partitions, self._own_partition(F.col("slice")))
            case "slices":  # each partition has as many slices as the others, one or two of them next to each other
                number = F.pmod("slice", F.lit(self.partitions))
                frame = frame.repartition(self.partitions, self._own_partition(number))
            case "key":
                slices = [] if length is None else [F.col("slice")]
                key = pipeline.key(stage, frame.columns)
                if INPUT in stage.reads:
                    frame = self._with_input_everywhere(frame, key)
                else:
                    frame = frame.repartition(self.partitions, key, *slices)
            case _:
                assert_never(stage.how)
        return frame.sortWithinPartitions("end").mapInArrow(partial(host.run, work), pipeline.schema())

    def _with_input_everywhere(self, frame: DataFrame, key: Column) -> DataFrame:
        """Partitioned by a key; what opens windows by the clock is in every partition."""
        everywhere = F.col("type") == self.pipeline.layout.codes[INPUT]
        all_numbers = F.sequence(F.lit(0), F.lit(self.partitions - 1))
        numbers = F.when(everywhere, all_numbers).otherwise(F.array(F.pmod(key, F.lit(self.partitions)).cast("int")))
        placed = frame.withColumn("partition", F.explode(numbers))
        return placed.repartition(self.partitions, self._own_partition(F.col("partition"))).drop("partition")

    def _own_partition(self, number: Column) -> Column:
        """What rows are partitioned by, so that each number has a partition of its own."""
        keys = F.array(*(F.lit(key) for key in bucket_keys(self.partitions)))
        return F.element_at(keys, number.cast("int") + F.lit(1))

    def _inputs(self, staged: Stages, stage: Stage, before: DataFrame | None) -> DataFrame:
        """What a stage is given: inputs, and what earlier stages have made."""
        pipeline = self.pipeline
        events = [self._standing(e) for e in pipeline.events(staged, stage, pipeline.own_types(staged, stage))]
        if before is None:
            points = [] if pipeline.points else ["start"]
            chosen = [
                e.select("type", *points, "end", *(["id"] if pipeline.ids else []), *pipeline.columns(stage))
                for e in events
            ]
        else:
            chosen = [before, *(pipeline.like_answers(e) for e in events)]
        result = reduce(DataFrame.unionByName, chosen) if chosen else None
        if INPUT not in stage.reads:
            assert result is not None
            return result
        ends = self._first()
        if result is None:
            return ends.drop("op")
        return result.unionByName(
            ends.select(*(c for c in ends.columns if c in result.columns)), allowMissingColumns=True
        )

    def _standing(self, events: DataFrame) -> DataFrame:
        """Without the events that are revoked, or whose place another version has taken, whichever came first."""
        pipeline = self.pipeline
        if pipeline.versions:
            mine, events = F.coalesce("version", F.lit(0)), events.join(self._greatest, "id", "left")
            stands = (mine == F.col("greatest")) & (F.col("revoked").isNull() | (mine > F.col("revoked")))
            events = events.where(F.col("id").isNull() | stands).drop("version", "greatest", "revoked")
            return events.where(~F.col("revoke")).drop("revoke") if pipeline.ops else events
        if not pipeline.ops:
            return events
        return events.where(~F.col("revoke")).join(self._revoked, "id", "left_anti").drop("revoke")

    @cached_property
    def _greatest(self) -> DataFrame:
        """The greatest version of each id, and up to which one it is revoked."""
        revoke = F.col("revoke") if self.pipeline.ops else F.lit(False)
        version = F.coalesce("version", F.when(revoke, F.lit(ALL)).otherwise(F.lit(0)))
        rows = reduce(DataFrame.unionByName, self._told).where(F.col("id").isNotNull())
        inserted, revoked = F.when(~revoke, version), F.when(revoke, version)
        return rows.groupBy("id").agg(F.max(inserted).alias("greatest"), F.max(revoked).alias("revoked"))

    @cached_property
    def _revoked(self) -> DataFrame:
        pipeline = self.pipeline
        result = [pipeline.checked(s) for s in pipeline.sources if s.has(pipeline.names.op)]
        return reduce(DataFrame.unionByName, result).where(F.col("revoke")).select("id").distinct()

    def _sliced(self, frame: DataFrame, longest: int) -> DataFrame:
        """Every event in all slices to whose answers it may belong; `slice_length` says how long they are."""
        start = F.col("start") if "start" in frame.columns else F.col("end")
        if self._span is None:
            sources = [source for source in self.pipeline.sources if source.tells_time]
            ends = reduce(DataFrame.unionByName, [self.pipeline.raw(source).select("end") for source in sources])
            span = F.coalesce(F.max("end") - F.min("end"), F.lit(0))
            parts = F.lit(2 * self.partitions)
            length = F.least(F.lit(SLICES * longest), (span - F.pmod(span, parts)) / parts + F.lit(1))
            length = F.greatest(F.lit(1), F.lit(longest), length.cast("bigint"))
            frame = frame.crossJoin(F.broadcast(ends.agg(length.alias("slice_length"))))
        else:
            whole = self._span[1] - self._span[0]
            frame = frame.withColumn(
                "slice_length", F.lit(slice_length(longest, whole, self.partitions)).cast("bigint")
            )
        first, last = (slice_of(time, F.col("slice_length")) for time in (F.col("end"), start + F.lit(longest)))
        return frame.withColumn("slice", F.explode(F.sequence(first, F.greatest(first, last))))


def _ends_ahead(rule: Rule) -> bool:
    """Whether an answer may end after its last event: with a window, or at a time point."""
    return bool(rule.covers) or any(isinstance(node, Instant | Every | SessionWindow) for node in walk(rule.body))
