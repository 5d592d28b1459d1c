"""`augury stream`: reads growing folders or standard input, writes folders, and keeps a checkpoint."""

from __future__ import annotations

import json
import os
import shutil
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import gettempdir
from typing import Any

import numpy as np
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from augury.core.clock import show_duration, show_timestamp
from augury.core.errors import AuguryError, DataError, RunError, visible
from augury.core.standing import InputCounts
from augury.settings import Emit, Task
from augury.sinks import event_as_json
from augury.sources import SourceFile
from augury.spark.checkpoint import StreamOptions, earlier_program
from augury.spark.checkpoint_files import spark_home
from augury.spark.delivered import DeliveredAnswers
from augury.spark.failures import FULL, user_error, user_errors, writing_to
from augury.spark.heartbeats import BEATS, Heart
from augury.spark.host import ERROR
from augury.spark.job import FileRun, fetched
from augury.spark.kafka_topics import is_kafka, write_messages
from augury.spark.kept_inputs import KeptInputs, check_keeping
from augury.spark.metrics import StreamMetrics, by_source
from augury.spark.outbox import Outbox, Write
from augury.spark.packages import SHIFT
from augury.spark.pipeline import Execution
from augury.spark.relocation import relocate
from augury.spark.sink_batches import SinkBatches
from augury.spark.spool import MAKE_ROOM, Spool
from augury.spark.stream import AHEAD, LATE, REJECTED, REPEATED, RETRACTED, DetectionStream, Version, late_rows
from augury.spark.stream_addresses import connector_scheme

_FEW = 100_000  # rows that are one file
_LOG = 16 << 20  # bytes of log that are kept at most

_SETTLED = 100  # batches after which a stream with new state has given all answers that it had given before
_SCARCE = 1 << 20  # bytes that are free on a disk that is as good as full


@dataclass
class Tally:
    """What a stream has done so far."""

    detections: int = 0
    late: int = 0
    repeated: int = 0  # known already, as they are
    rejected: int = 0  # their id names another event
    received: int = 0  # rows, also those that are malformed
    read: int = 0
    skipped: int = 0
    unknown: int = 0
    types: set[str] = field(default_factory=set)  # some of those that the program does not know
    examples: list[str] = field(default_factory=list)
    errors: dict[tuple[str, str], int] = field(default_factory=dict)
    watermark: str = ""
    state_rows: int = 0
    state_bytes: int = 0

    @property
    def counts(self) -> InputCounts:
        """What became of all rows. Those that no rule can use are accepted, whatever their id."""
        accepted = self.received - self.repeated - self.late - self.rejected - self.skipped
        return InputCounts(self.received, accepted, self.repeated, self.late, self.rejected, self.skipped)

    def __str__(self) -> str:
        waits = f", watermark {self.watermark}" if self.watermark else ""
        return (
            f"{self.read:,} read, {self.detections:,} detections, {self.late:,} late{waits}, "
            f"state {self.state_rows:,} rows, {self.state_bytes / 1e6:,.1f} MB"
        )


@dataclass(frozen=True)
class Status:
    """What a stream reads, what it has done, and which answers it holds back until when."""

    sources: tuple[str, ...]
    emit: Emit
    lateness: str
    tally: Tally
    working: bool = False  # whether a batch is being computed

    def __str__(self) -> str:
        reading = f"reading {', '.join(self.sources)}"
        if not self.tally.read:
            return f"{reading}: {'working on the first events' if self.working else 'waiting for events'}; {self.held_back}"
        return f"{reading}: {self.tally}; {self.held_back}"

    @property
    def held_back(self) -> str:
        """Which answers are held back, and until when."""
        if self.emit == "early":
            return "answers come at once, and are taken back if they turn out wrong (--emit early)"
        if not self.tally.watermark:
            return f"an answer is held back until events come that are more than {self.lateness} later (--emit final)"
        return (
            f"answers up to {self.tally.watermark} are final, later ones are held back until events come that are "
            f"more than {self.lateness} later (--emit final, --lateness {self.lateness})"
        )


class StreamJob(FileRun):
    """A stream that runs."""

    def __init__(self, spark: SparkSession, options: StreamOptions, notify: Callable[[str], None]) -> None:
        self.options, self.notify, self.tally, self.metrics = options, notify, Tally(), StreamMetrics()
        self.spool: Spool | None = None
        self.out = sys.stdout  # a progress line puts its own in place
        task, settings = options.task, options.task.settings
        saved: dict[str, Any] = {
            name: getattr(settings, name) or options.saved.get(name) for name in ("clock", "time_unit")
        }
        settings = replace(settings, **saved)
        task = replace(task, events=tuple(map(self._spooled, task.events)), settings=settings)
        self.heart = None if options.idle is None else Heart(make_beats(options.checkpoint), options.idle)
        self.beats = None if self.heart is None else self.heart.folder
        execution = Execution(buckets=options.buckets, ahead=options.ahead)
        super().__init__(spark, task, execution, streaming=True, beats=self.beats, history=options.history)
        with user_errors(self.places):
            versions = [self._version(spark, task, version) for version in options.versions]
            self.stream = DetectionStream(self.pipeline, versions, options.since)
        self.described = False  # whether the checkpoint says of what it is one
        if not options.saved:
            self._describe()
        self.delivered: DeliveredAnswers | None = None
        if options.first:
            self.delivered = DeliveredAnswers(spark, options.format, options.folders, options.first)
        home = spark_home(options.checkpoint, options.saved)[0]
        self._remove_states({home.name})
        relocate(home, home.absolute())  # the checkpoint may have been moved
        self.outbox = Outbox(options.checkpoint / "output", options.folders)
        self.outbox.recover()
        elsewhere = connector_scheme(options.output) is not None
        self.sink = SinkBatches(options.output, options.checkpoint, notify) if elsewhere else None
        self.kept = KeptInputs.of(options.checkpoint)
        if options.keeps is not None:
            check_keeping(task.events)
        self.failed: BaseException | None = None  # what went wrong in a batch, before Java wrapped it up
        self.seen = -1
        self.came = False  # whether events have come since somebody looked

    def _describe(self) -> None:
        """Says in the checkpoint of what it is one; of another program only once a batch of it has been computed."""
        if not self.described:
            self.options.save(self.pipeline.inputs_clock)
            self.described = True
            if self.options.rebuilds:
                self._remove_states({self.options.spark.name})

    def _remove_states(self, kept: set[str]) -> None:
        """Removes the folders of state that is of no use any more, or that a run that was killed has begun."""
        for path in self.options.checkpoint.glob("spark*"):
            if path.is_dir() and path.name not in kept:
                shutil.rmtree(path, ignore_errors=True)

    def _version(self, spark: SparkSession, task: Task, saved: dict[str, Any]) -> Version:
        """An earlier version of the program, over the same events."""
        program = earlier_program(task.program, saved["program"])
        task, execution = replace(task, program=program), self.pipeline.execution
        run = FileRun(spark, task, execution, streaming=True, beats=self.beats, history=self.options.history)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # they were said when it ran
            return Version(DetectionStream(run.pipeline), saved["since"])

    def _spooled(self, source: SourceFile) -> SourceFile:
        """Standard input as files, which Spark can read."""
        if source.path != "-":
            return source
        folder = self.options.checkpoint / "input"
        with writing_to(folder):
            folder.mkdir(parents=True, exist_ok=True)
        self.spool = Spool(folder, sys.stdin)
        return self.options.spooled(source)

    def run(self, show: Callable[[str], None]) -> None:
        """Until the end of the input, or until it is stopped."""
        if self.spool is not None:
            self.spool.start()
            if self.options.once:
                self.spool.join()
        try:
            with user_errors(self.places):
                self._run(show)
        except AuguryError as error:
            stopped = None if self.spool is None else self.spool.failed
            raise stopped or self.failed or self._located(error) from None
        if self.spool is not None and self.spool.failed is not None:
            raise self.spool.failed

    def _run(self, show: Callable[[str], None]) -> None:
        checkpoint = self.options.checkpoint
        writer = self.stream.changes.writeStream.foreachBatch(self._batch).trigger(**self.options.spark_trigger())
        query = writer.option("checkpointLocation", str(self.options.spark.absolute())).start()
        try:
            while not query.awaitTermination(0.5):  # type: ignore[arg-type]
                if self._count(query):
                    self._keep_inputs()
                show(str(replace(self.status, working=query.status["isTriggerActive"])))
                _trim(checkpoint / "spark.log")
                if self.heart is not None:
                    self.heart.listen(busy=self.came or query.status["isTriggerActive"])
                    self.came = False
                if self.spool is not None and not self.spool.is_alive():
                    query.processAllAvailable()
                    break
            self._count(query)
            self._keep_inputs()
        finally:
            query.stop()
            if self.sink is not None:
                self.sink.close()

    def _keep_inputs(self) -> None:
        """Copies what the last batches have read, where inputs are kept."""
        options, lateness = self.options, self.task.settings.lateness or 0
        if options.keeps is not None and (end := options.last_end(lateness)) is not None:
            self.kept.update(options.spark, self.task.events, end, self.pipeline.clock.length(options.keeps))

    @property
    def status(self) -> Status:
        settings = self.task.settings
        sources = tuple(source.location for source in self.options.task.events)
        return Status(sources, settings.emit, show_duration(settings.lateness or 0), self.tally)

    def _located(self, error: AuguryError) -> AuguryError:
        """An error of a full disk says which one it is, where Spark did not."""
        if isinstance(error, RunError) and error.message == FULL:
            options = self.options
            asked = (str(options.checkpoint), options.output, options.late or "-", gettempdir())
            places = [path for path in asked if os.path.isdir(path)]
            full = [folder for folder in places if shutil.disk_usage(folder).free < _SCARCE]
            return DataError(FULL, " or ".join(full or places), MAKE_ROOM)
        return error

    def _batch(self, rows: DataFrame, number: int) -> None:
        """One batch: what it found goes where it belongs."""
        try:
            self._process(rows, number)
        except Exception as error:
            self.failed = self.failed or self._located(user_error(error, self.places))
            raise

    def _process(self, rows: DataFrame, number: int) -> None:
        computed = rows.persist()
        rows = self._new(computed, number)
        if rows is not computed:
            rows.persist()
        number += self.options.first
        try:
            # All rows are computed, also those of a batch that exists already: that is what moves the state on.
            totals = rows.groupBy("type").agg(F.count(F.lit(1)).alias("count"), F.sum("start").alias("sum")).collect()
            self._describe()
            counts = {row["type"]: row["sum"] if row["type"] == REPEATED else row["count"] for row in totals}
            detections = sum(n for code, n in counts.items() if code >= 0)
            late, rejected = counts.get(LATE, 0) + counts.get(AHEAD, 0), counts.get(REJECTED, 0)
            gone = rows.where(F.col("type") == RETRACTED) if counts.get(RETRACTED) else None
            detections += counts.get(RETRACTED, 0)
            parts = self._answers(rows.where(F.col("type") >= 0), detections, number, gone) if detections else {}
            if late or rejected:
                parts |= self._late(late_rows(rows))
            if parts:
                self.outbox.deliver(number, parts)
            if ERROR in counts:
                for row in self.pipeline.errors(rows).collect():
                    key = (row["rule"], row["problem"])
                    if key not in self.tally.errors:
                        self.notify(f"rule `{key[0]}`: {key[1]}")
                    self.tally.errors[key] = self.tally.errors.get(key, 0) + row["times"]
            self.tally.detections += detections
            self.tally.late += late
            self.tally.rejected += rejected
            self.tally.repeated += counts.get(REPEATED, 0)
        finally:
            rows.unpersist()
            computed.unpersist()

    def _new(self, rows: DataFrame, number: int) -> DataFrame:
        """A batch of state that was computed anew, without what was written before.

        Final answers of before may come in any of the first batches; early ones stand in the first one, or fall.
        """
        if self.delivered is None or number >= _SETTLED:
            return rows
        if self.task.settings.emit == "final":
            return self.delivered.without(rows)
        if number:
            return rows
        fallen = self.delivered.fallen(rows, RETRACTED)
        new = self.delivered.without(rows)
        return new if fallen is None else new.unionByName(fallen)

    def _with_gone(self, rows: DataFrame, gone: DataFrame | None) -> DataFrame:
        """Answers as JSON in columns, with retracted ones of types that an earlier version of the program had."""
        result = self.pipeline.as_json(rows, self.task.settings.emit == "early", tagged=False)
        if gone is None:
            return result
        time = "timestamp" if self.pipeline.clock.kind == "timestamp" else "bigint"
        trace = ", trace array<string>" if self.pipeline.execution.trace else ""
        schema = f"op string, type string, args string, start {time}, end {time}, id string{trace}"
        return result.unionByName(gone.select(F.from_json(_text(), schema).alias("_")).select("_.*"))

    def _answers(self, rows: DataFrame, count: int, batch: int, gone: DataFrame | None = None) -> dict[str, Write]:
        """The answers of a batch, and those of types that are gone: printed at once, or what writes them."""
        pipeline, outputs = self.pipeline, self.task.plan.outputs
        changes = self.task.settings.emit == "early"
        if self.options.output == "-":
            self._print(rows, changes, gone)
            return {}
        few = rows.coalesce(1) if count <= _FEW else rows
        if is_kafka(self.options.output):
            write_messages(self._with_gone(few, gone).withColumn("args", F.parse_json("args")), self.options.output)
            return {}
        if self.sink is not None:
            self.sink.write(self._with_gone(few, gone).withColumn("args", F.parse_json("args")), batch)
            return {}
        match self.options.format:
            case "jsonl":
                lines = self._with_gone(few, gone).withColumn("args", F.parse_json("args"))
                return {"output": lines.write.mode("overwrite").json}
            case "csv":
                rows = self._with_gone(few, gone).withColumn("trace", F.array_join("trace", " "))
                return {"output": rows.write.mode("overwrite").option("header", "true").option("escape", '"').csv}
            case "parquet":
                writers = {type: pipeline.answers(few, type, changes).write.mode("overwrite") for type in outputs}
                if len(outputs) == 1:
                    return {"output": writers[outputs[0]].parquet}
                return {f"output.{type}": writer.parquet for type, writer in writers.items()}

    def _print(self, rows: DataFrame, changes: bool, gone: DataFrame | None) -> None:
        table, clock = rows.toArrow(), self.pipeline.clock
        out = sys.stdout if self.out.isatty() else self.out
        lines = [] if gone is None else [f"{row[0]}\n" for row in gone.select(_text()).collect()]
        for sign, op in ((-1, "retract"), (1, "insert")):
            part = table.filter([o == sign for o in table.column("op").to_pylist()])
            for event in fetched(part, self.pipeline.layout).events:
                line = json.dumps(event_as_json(event, clock, op if changes else None), ensure_ascii=False)
                lines.append((visible(line) if out.isatty() else line) + "\n")
        try:
            out.writelines(lines)
            out.flush()
        except OSError as error:  # full, or nobody reads any more: the command line knows what to say
            self.failed = error
            raise

    def _late(self, rows: DataFrame) -> dict[str, Write]:
        """What came too late, or whose id names another event: what writes it, where it is wanted."""
        if self.options.late is not None:
            return {"late": rows.coalesce(1).write.mode("overwrite").json}
        if len(self.tally.examples) < 5:
            self.tally.examples += [f"{row['why']}: {row['event']}" for row in rows.limit(5).collect()]
        return {}

    def _count(self, query: StreamingQuery) -> bool:
        """What Spark says of the batches since the last look; whether there were some."""
        before = self.seen
        for progress in query.recentProgress:
            if progress["batchId"] <= self.seen:
                continue
            self.seen = progress["batchId"]
            received = self.tally.received
            self._skip(progress["observedMetrics"] or {})
            self.tally.read = self.tally.received
            self.came = self.came or self.tally.received > received
            self.metrics.add(progress)
            mark = progress["eventTime"].get("watermark") if progress["eventTime"] else None
            if mark and not mark.startswith("1970-01-01T00:00:00.000"):
                self.tally.watermark = self._watermark(mark)
            held = self.metrics.stats()
            self.tally.state_rows, self.tally.state_bytes = held["rows"], held["bytes"]
        return self.seen > before

    def _skip(self, metrics: dict[str, Any]) -> None:
        """Counts malformed and ignored rows: every source once, however many stages read it."""
        for row in by_source(metrics).values():
            self.tally.received += row["rows"]
            self.tally.unknown += row["unknown"]
            self.tally.types |= {name for name in (row["types"] or "").split(", ") if name}
            if self.task.settings.on_error == "skip" and row["count"]:
                self.tally.skipped += row["count"]
                problems = self.places.problems(row["path"]) if row["path"] else []
                self.skipped.problems += problems or [f"{row['path'] or 'a row'}: {row['problem']}"]

    def _watermark(self, mark: str) -> str:
        """Spark's watermark as a time of the clock."""
        ms = int(
            np.datetime64(mark.removeprefix("+").removesuffix("Z"), "ms").astype(np.int64)
        )  # years beyond 9999, too
        return show_timestamp(ms * 1000) if self.pipeline.clock.kind == "timestamp" else str(ms - SHIFT)


def make_beats(checkpoint: Path) -> Path:
    """The folder of heartbeats."""
    folder = checkpoint / BEATS
    with writing_to(folder):
        folder.mkdir(parents=True, exist_ok=True)
    return folder


def _text() -> Column:
    """The text of a row that is a notice."""
    return F.array_join(F.col("trace"), "")


def _trim(log: Path) -> None:
    """Keeps the log small: workers say when they start and end."""
    if log.stat().st_size > _LOG:
        os.truncate(log, 0)
