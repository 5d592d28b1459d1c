"""Batch on Spark: for each stage one shuffle by its key, then one circuit per partition."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property, partial, reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from augury.algebra.nodes import Every, Instant, Rule, SessionWindow, walk
from augury.algebra.plan import INPUT, Plan
from augury.algebra.stages import Stage, Stages, asks_the_clock, can_slice, one_stage, sliced, stages
from augury.core.standing import Counts
from augury.spark import host
from augury.spark.pipeline import Outputs, Pipeline, listed, partitions_of

SLICES = 16  # a slice is so many times as long as its answers can be


class Detections(Outputs):
    """The answers of a program: a DataFrame for each event type, computed when it is asked for.

    `wide` and `events` have all of them in one pass; `malformed` the rows that are no events, `unknown` how many events are of
    types that the program does not know; `errors` what could not be computed.
    """

    def __init__(self, pipeline: Pipeline, until: object = None) -> None:
        super().__init__(pipeline)
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

    @property
    def counts(self) -> Counts:
        """What became of all rows: accepted, repeated, rejected, malformed. It reads the events once more."""
        return self.pipeline.counts

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
        plan, longest = pipeline.plan_for(outputs), pipeline.longest
        staged = one_stage(plan, longest) if self.partitions == 1 else stages(plan, longest)
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
        """Without what lies ahead of the clock: it stands at the greatest end of an event, unless it was said."""
        if self.until is not None:
            return answers.where((F.col("end") <= F.lit(self.until)) | (F.col("type") < 0))
        if not any(_ends_ahead(rule) for rule in plan.rules):
            return answers
        ahead = answers.crossJoin(F.broadcast(self._now)).where((F.col("end") <= F.col("now")) | (F.col("type") < 0))
        return ahead.drop("now")

    @cached_property
    def _all(self) -> DataFrame:
        """All events, of whatever type."""
        events = reduce(
            DataFrame.unionByName, [self.pipeline.checked(s) for s in self.pipeline.sources if s.tells_time]
        )
        return events.where(~F.col("revoke")) if self.pipeline.ops else events

    @property
    def _now(self) -> DataFrame:
        """Where the clock stands at the end: at the greatest end of an event, unless it was said."""
        return self._all.agg((F.max("end") if self.until is None else F.lit(self.until)).alias("now"))

    def _first(self) -> DataFrame:
        """Of all events that stand the first end, which opens windows by the clock."""
        standing = self._all.join(self._revoked, "id", "left_anti") if self.pipeline.ops else self._all
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
        size = None if length is None else SLICES * max(1, pipeline.clock.length(length))
        work = pipeline.work(staged, stage, "final")
        if asks_the_clock(stage):
            frame = frame.crossJoin(F.broadcast(self._now))
        if size is not None:
            assert length is not None
            frame = self._sliced(frame, size, pipeline.clock.length(length))
            work = replace(work, plan=sliced(work.plan), slice=size)
        if stage.how == "one":
            frame = frame.repartition(1)
        else:
            keys = ([pipeline.key(stage, frame.columns)] if stage.how == "key" else []) + (
                [F.col("slice")] if size is not None else []
            )
            frame = frame.repartition(self.partitions, *keys)
        return frame.sortWithinPartitions("end").mapInArrow(partial(host.run, work), pipeline.schema())

    def _inputs(self, staged: Stages, stage: Stage, before: DataFrame | None) -> DataFrame:
        """What a stage is given: inputs, and what earlier stages have made."""
        pipeline = self.pipeline
        events = [self._standing(e) for e in pipeline.events(staged.plan, stage, pipeline.own_types(staged, stage))]
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
        """Without the events that are revoked, whichever came first."""
        if not self.pipeline.ops:
            return events
        return events.where(~F.col("revoke")).join(self._revoked, "id", "left_anti").drop("revoke")

    @cached_property
    def _revoked(self) -> DataFrame:
        pipeline = self.pipeline
        result = [pipeline.checked(s) for s in pipeline.sources if s.has(pipeline.names.op)]
        return reduce(DataFrame.unionByName, result).where(F.col("revoke")).select("id").distinct()

    def _sliced(self, frame: DataFrame, size: int, length: int) -> DataFrame:
        """Every event in all slices to whose answers it may belong."""
        start = F.col("start") if "start" in frame.columns else F.col("end")
        first, last = (_slice_of(time, size) for time in (F.col("end"), start + F.lit(length)))
        return frame.withColumn("slice", F.explode(F.sequence(first, F.greatest(first, last))))


def _ends_ahead(rule: Rule) -> bool:
    """Whether an answer may end after its last event: with a window, or at a time point."""
    return bool(rule.covers) or any(isinstance(node, Instant | Every | SessionWindow) for node in walk(rule.body))


def _slice_of(time: Column, size: int) -> Column:
    """The number of the slice that holds a time, exactly."""
    return ((time - F.pmod(time, F.lit(size))) / F.lit(size)).cast("bigint")
