"""What `augury stream` does: folders that grow, or standard input, through Spark into folders, with a checkpoint.

All that a run needs to go on is below the checkpoint: `augury.json` says of what it is one, `spark` is Spark's own,
`input` holds the lines of standard input, `output` the batch that is being written, `lock` says which run is at it, and
`spark.log` what the JVM had to say.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import gettempdir
from typing import IO, Any, Literal

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from augury.algebra.plan import Plan
from augury.clock import Kind, read_duration, read_timestamp, show_duration, show_timestamp
from augury.compiled import check_clock
from augury.errors import AuguryError, DataError, RunError
from augury.knowledge.graphs import Graph, read_facts
from augury.language.show import Printer
from augury.program import Program
from augury.settings import Settings
from augury.sinks import event_as_json, make_folder
from augury.sources import Skipped, SourceFile
from augury.spark.files import Opened
from augury.spark.host import ERROR
from augury.spark.inputs import OBSERVED, clock_of
from augury.spark.job import FULL, fetched, plain, plainly
from augury.spark.outbox import Outbox, Write
from augury.spark.pipeline import Pipeline
from augury.spark.places import Places
from augury.spark.state import check_program
from augury.spark.stream import LATE, REJECTED, SHIFT, Stream, late_rows

StreamFormat = Literal["jsonl", "csv", "parquet"]
_LINES = 10_000  # of standard input that are a file at most
_SECONDS = 1.0  # that a line of standard input waits at most
_FEW = 100_000  # rows that are one file
_LOG = 16 << 20  # bytes of log that are kept at most
_ROOM = "make room, and start again: the run goes on from its checkpoint"
_SCARCE = 1 << 20  # bytes that are free on a disk that is as good as full


@dataclass(frozen=True)
class Order:
    """What the user asked for."""

    program: Program
    events: list[SourceFile]
    facts: list[tuple[str, str]]
    rdf: list[Graph]
    checkpoint: Path
    output: str
    format: StreamFormat
    settings: Settings
    late: str | None = None
    trigger: str = "1s"

    def ready(self) -> Order:
        """With the folders made that it writes to."""
        output = self.output if self.output == "-" else _writable(make_folder(self.output))
        return replace(self, output=output, late=self.late and _writable(make_folder(self.late)))

    @property
    def places(self) -> dict[str, str]:
        """The folders of the parts of a batch, by name."""
        outputs = self.program.plan.outputs
        late = {} if self.late is None else {"late": self.late}
        if self.output == "-":
            return late
        if self.format == "parquet" and len(outputs) > 1:
            return {f"output.{type}": f"{self.output.rstrip('/')}/{type}" for type in outputs} | late
        return {"output": self.output} | late


@dataclass
class Tally:
    """What a stream has done so far."""

    detections: int = 0
    late: int = 0
    read: int = 0
    skipped: int = 0
    unknown: int = 0
    types: set[str] = field(default_factory=set)  # some of those that the program does not know
    examples: list[str] = field(default_factory=list)
    errors: dict[tuple[str, str], int] = field(default_factory=dict)
    watermark: str = ""
    state_rows: int = 0
    state_bytes: int = 0

    def __str__(self) -> str:
        waits = f", watermark {self.watermark}" if self.watermark else ""
        return (
            f"{self.read:,} read, {self.detections:,} detections, {self.late:,} late{waits}, "
            f"state {self.state_rows:,} rows, {self.state_bytes / 1e6:,.1f} MB"
        )


# The checkpoint


def about(order: Order, buckets: int) -> dict[str, Any]:
    """Of what a checkpoint is one: the rules as they are written, and what decides how state is kept."""
    program = order.program
    spans = {rule.span: rule.label for rule in program.plan.rules}
    printer = Printer(explicit=True, width=10_000)
    rules = {spans[s.span]: printer.statement(s) for m in program.modules for s in m.statements if s.span in spans}
    declared = {name: [f"{a.name}: {a.type}" for a in attributes] for name, attributes in sorted(program.plan.declared.items())}  # fmt: skip
    lengths = {name: getattr(order.settings, name) for name in ("lateness", "longest", "retention")}
    return {
        "rules": rules,
        "outputs": list(program.plan.outputs),
        "declared_events": declared,
        "buckets": buckets,
        "emission": order.settings.emit,
        **{name: us and show_duration(us) for name, us in lengths.items()},
        "clock": order.settings.clock,
    }


def remembered(checkpoint: Path) -> dict[str, Any]:
    """What a checkpoint says of itself; nothing where it is new."""
    path = checkpoint / "augury.json"
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        if (checkpoint / "spark").exists():
            raise RunError(f"{checkpoint} is a checkpoint, but has no augury.json", "start with a new directory") from None  # fmt: skip
        return {}
    except (OSError, ValueError) as error:
        raise RunError(f"{path} cannot be read: {error}", "start with a new checkpoint directory") from None
    return found  # type: ignore[no-any-return]


def check_checkpoint(order: Order, buckets: int) -> None:
    """Refuses the checkpoint of another program or other settings, and says what has changed."""
    old = remembered(order.checkpoint)
    if old:
        new = about(order, buckets)
        if order.settings.clock is None:
            new["clock"] = old.get("clock")
        check_program(old, new)


def _remember(order: Order, buckets: int, clock: Kind) -> None:
    path = order.checkpoint / "augury.json"
    text = json.dumps({**about(order, buckets), "clock": clock}, indent=2, ensure_ascii=False)
    part = path.with_suffix(".part")
    try:
        part.write_text(text + "\n", encoding="utf-8")
        os.replace(part, path)
    except OSError as error:
        raise DataError(f"cannot be written: {error.strerror}", str(order.checkpoint)) from None


# Standard input


class Spool(threading.Thread):
    """Writes the lines of standard input to files that the stream reads; a file is there once it is whole."""

    def __init__(self, folder: Path, lines: IO[str]) -> None:
        super().__init__(daemon=True)
        self.folder, self.lines = folder, lines
        self.number = max((int(p.stem) for p in folder.glob("*.jsonl") if p.stem.isdigit()), default=-1) + 1
        self.held: list[str] = []
        self.lock = threading.Lock()
        self.over = threading.Event()
        self.failed: AuguryError | None = None  # why it ended before its input did

    def run(self) -> None:
        ticking = threading.Thread(target=self._tick, daemon=True)
        ticking.start()
        unreadable: AuguryError | None = None
        try:
            for line in self.lines:
                with self.lock:
                    self.held.append(line)
                    if len(self.held) >= _LINES:
                        self._write()
                if self.failed is not None:
                    break
        except (OSError, ValueError) as error:
            unreadable = DataError(f"cannot be read: {error}", "standard input")
        finally:
            self.over.set()
            ticking.join()
            with self.lock:
                self._write()
            self.failed = self.failed or unreadable

    def _tick(self) -> None:
        """A line does not wait for many others."""
        while not self.over.wait(_SECONDS):
            with self.lock:
                self._write()

    def _write(self) -> None:
        """The lines that are held, as a file."""
        if not self.held or self.failed is not None:
            return
        try:
            self._spool()
        except OSError as error:
            self.failed = DataError(f"cannot be written: {error.strerror}", str(self.folder), _ROOM)
        except ValueError as error:  # half a character
            self.failed = DataError(f"cannot be read: {error}", "standard input")

    def _spool(self) -> None:
        text = "".join(self.held)
        part = self.folder / f".{self.number:010d}.part"
        part.write_text(text if text.endswith("\n") else text + "\n", encoding="utf-8")
        os.replace(part, self.folder / f"{self.number:010d}.jsonl")
        self.held, self.number = [], self.number + 1


# The run


class Live:
    """A stream that runs."""

    def __init__(self, spark: SparkSession, order: Order, buckets: int, tell: Callable[[str], None]) -> None:
        self.order, self.tell, self.tally = order, tell, Tally()
        self.spool: Spool | None = None
        self.out = sys.stdout  # a progress line puts its own in place
        old = remembered(order.checkpoint)
        asked: Kind | None = order.settings.clock or old.get("clock")
        sources = [self._source(source) for source in order.events]
        self.places = Places(order.program, tuple(sources), strict=order.settings.strict)
        with plainly(self.places):
            opened = Opened(
                spark,
                order.program,
                asked,
                order.settings.strict,
                streaming=True,
                lasting=order.settings.longest is not None,
            )
            found = opened.all(sources)
            clock = clock_of(order.program, found, asked)
            check_clock(order.program, clock.kind)
            self.places = replace(self.places, clock=replace(clock, guessed=asked is None))
            self.skipped = Skipped(order.settings.on_error)
            known, self.graphs = read_facts(order.facts, order.rdf, order.program.plan, clock, self.skipped)
            facts = known + self.graphs.facts(order.program.plan, known)
            self.pipeline = Pipeline(
                order.program, found, replace(order.settings, clock=clock.kind), facts=facts, exact=True
            )
            self.stream = Stream(self.pipeline, buckets)
        _remember(order, buckets, clock.kind)
        self.outbox = Outbox(order.checkpoint / "output", order.places)
        self.outbox.recover()
        self.failed: BaseException | None = None  # what went wrong in a batch, before Java wrapped it up
        self.seen = -1

    @property
    def plan(self) -> Plan:
        return self.pipeline.plan

    def _source(self, source: SourceFile) -> SourceFile:
        if source.path != "-":
            return source
        folder = self.order.checkpoint / "input"
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise DataError(f"cannot be written: {error.strerror}", str(folder)) from None
        self.spool = Spool(folder, sys.stdin)
        return replace(source, path=str(folder / "*.jsonl"), shown="standard input")

    def run(self, show: Callable[[str], None]) -> None:
        """Until the end of the input, or until it is stopped."""
        if self.spool is not None:
            self.spool.start()
            if self.order.trigger == "once":
                self.spool.join()
        try:
            with plainly(self.places):
                self._run(show)
        except AuguryError as error:
            stopped = None if self.spool is None else self.spool.failed
            raise stopped or self.failed or self._located(error) from None
        if self.spool is not None and self.spool.failed is not None:
            raise self.spool.failed

    def _run(self, show: Callable[[str], None]) -> None:
        order, once = self.order, self.order.trigger == "once"
        writer = (
            self.stream.mixed(self.plan.outputs)
            .writeStream.foreachBatch(self._batch)
            .option("checkpointLocation", str((order.checkpoint / "spark").absolute()))
        )
        ready = writer.trigger(availableNow=True) if once else writer.trigger(processingTime=f"{interval(order.trigger)} milliseconds")  # fmt: skip
        query = ready.start()
        try:
            while not query.awaitTermination(0.5):  # type: ignore[arg-type]
                self._count(query)
                show(str(self.tally))
                _trim(order.checkpoint / "spark.log")
                if self.spool is not None and not self.spool.is_alive():
                    query.processAllAvailable()
                    break
            self._count(query)
        finally:
            query.stop()

    def _located(self, error: AuguryError) -> AuguryError:
        """An error of a full disk says which one it is, where Spark did not."""
        if isinstance(error, RunError) and error.message == FULL:
            asked = (str(self.order.checkpoint), self.order.output, self.order.late or "-", gettempdir())
            places = [place for place in asked if os.path.isdir(place)]
            full = [place for place in places if shutil.disk_usage(place).free < _SCARCE]
            return DataError(FULL, " or ".join(full or places), _ROOM)
        return error

    def _batch(self, rows: DataFrame, number: int) -> None:
        """One batch: what it found goes where it belongs."""
        try:
            self._take(rows, number)
        except Exception as error:
            self.failed = self.failed or self._located(plain(error, self.places))
            raise

    def _take(self, rows: DataFrame, number: int) -> None:
        rows = rows.persist()
        try:
            # All rows are computed, also those of a batch that is there already: that is what moves the state on.
            counts = {row["type"]: row["count"] for row in rows.groupBy("type").count().collect()}
            told = sum(n for code, n in counts.items() if code >= 0)
            aside = counts.get(LATE, 0) + counts.get(REJECTED, 0)
            parts = self._answers(rows.where(F.col("type") >= 0), told) if told else {}
            if aside:
                parts |= self._aside(late_rows(rows))
            if parts:
                self.outbox.deliver(number, parts)
            if ERROR in counts:
                for row in self.pipeline.errors(rows).collect():
                    key = (row["rule"], row["problem"])
                    if key not in self.tally.errors:
                        self.tell(f"rule `{key[0]}`: {key[1]}")
                    self.tally.errors[key] = self.tally.errors.get(key, 0) + row["times"]
            self.tally.detections += told
            self.tally.late += aside
        finally:
            rows.unpersist()

    def _answers(self, rows: DataFrame, count: int) -> dict[str, Write]:
        """The answers of a batch: printed at once, or what writes them."""
        order, pipeline, outputs = self.order, self.pipeline, self.plan.outputs
        changes = order.settings.emit == "early"
        if order.output == "-":
            self._print(rows, changes)
            return {}
        few = rows.coalesce(1) if count <= _FEW else rows
        match order.format:
            case "jsonl":
                told = pipeline.told(few, changes).withColumn("args", F.parse_json("args"))
                return {"output": told.write.mode("overwrite").json}
            case "csv":
                told = pipeline.told(few, changes).withColumn("trace", F.array_join("trace", " "))
                return {"output": told.write.mode("overwrite").option("header", "true").option("escape", '"').csv}
            case "parquet":
                writers = {type: pipeline.answers(few, type, changes).write.mode("overwrite") for type in outputs}
                if len(outputs) == 1:
                    return {"output": writers[outputs[0]].parquet}
                return {f"output.{type}": writer.parquet for type, writer in writers.items()}

    def _print(self, rows: DataFrame, changes: bool) -> None:
        table, clock = rows.toArrow(), self.pipeline.clock
        out = sys.stdout if self.out.isatty() else self.out
        lines = []
        for sign, op in ((-1, "retract"), (1, "insert")):
            part = table.filter([o == sign for o in table.column("op").to_pylist()])
            for event in fetched(part, self.pipeline.layout).events:
                lines.append(
                    json.dumps(event_as_json(event, clock, op if changes else None), ensure_ascii=False) + "\n"
                )
        try:
            out.writelines(lines)
            out.flush()
        except OSError as error:  # full, or nobody reads any more: the command line knows what to say
            self.failed = error
            raise

    def _aside(self, rows: DataFrame) -> dict[str, Write]:
        """What came too late, or whose id names another event: what writes it, where it is wanted."""
        if self.order.late is not None:
            return {"late": rows.coalesce(1).write.mode("overwrite").json}
        if len(self.tally.examples) < 5:
            self.tally.examples += [f"{row['why']}: {row['event']}" for row in rows.limit(5).collect()]
        return {}

    def _count(self, query: StreamingQuery) -> None:
        """What Spark says of the batches since the last look."""
        for progress in query.recentProgress:
            if progress["batchId"] <= self.seen:
                continue
            self.seen = progress["batchId"]
            self.tally.read += max((s["numInputRows"] for s in progress["sources"]), default=0)
            mark = progress["eventTime"].get("watermark") if progress["eventTime"] else None
            if mark and not mark.startswith("1970-01-01T00:00:00.000"):
                self.tally.watermark = self._shown(mark)
            self._skip(progress["observedMetrics"] or {})
            operators = progress["stateOperators"]
            self.tally.state_rows = sum(o["numRowsTotal"] for o in operators)
            self.tally.state_bytes = sum(o["memoryUsedBytes"] for o in operators)

    def _skip(self, metrics: dict[str, Any]) -> None:
        """What was left out or passed over: every source is counted once, however many stages read it."""
        told = {
            (row["path"], row["problem"], row["types"]): row
            for name, row in metrics.items()
            if name.startswith(OBSERVED)
        }
        for row in told.values():
            self.tally.unknown += row["unknown"]
            self.tally.types |= {name for name in (row["types"] or "").split(", ") if name}
            if self.order.settings.on_error == "skip" and row["count"]:
                self.tally.skipped += row["count"]
                self.skipped.problems += self.places.problems(row["path"]) or [f"{row['path']}: {row['problem']}"]

    def _shown(self, mark: str) -> str:
        """Spark's watermark as a time of the clock."""
        us = read_timestamp(mark)
        return show_timestamp(us) if self.pipeline.clock.kind == "timestamp" else str(us // 1000 - SHIFT)


def _writable(folder: str) -> str:
    """A folder, if files can be made in it."""
    if "://" not in folder and not os.access(folder, os.W_OK | os.X_OK):
        frozen = os.statvfs(folder).f_flag & os.ST_RDONLY
        raise DataError(f"cannot be written: {'Read-only file system' if frozen else 'Permission denied'}", folder)
    return folder


def _trim(log: Path) -> None:
    """Keeps the log small: workers say when they start and end."""
    if log.stat().st_size > _LOG:
        os.truncate(log, 0)


def interval(trigger: str) -> int:
    """Milliseconds between two batches."""
    try:
        return max(1, read_duration(trigger) // 1000)
    except ValueError as error:
        raise DataError(str(error), "--trigger") from None


def check(order: Order, buckets: int) -> None:
    """What can be known to be wrong before Spark starts."""
    check_checkpoint(order, buckets)
    check_output(order)
    if order.trigger != "once":
        interval(order.trigger)


def check_output(order: Order) -> None:
    """Refuses a folder that holds anything but batches, or the batches of another stream."""
    known = bool(remembered(order.checkpoint))
    for destination in (order.output, order.late):
        if destination in (None, "-") or "://" in str(destination):
            continue
        path = Path(str(destination))
        if path.exists() and not path.is_dir():
            raise DataError("is a file; a stream writes to a folder", str(path))
        types = set(order.program.plan.outputs)
        entries = [e.name for e in path.iterdir()] if path.is_dir() else []
        for name in entries:
            if not name.startswith("batch=") and name not in types:
                raise DataError(f"has other files, such as {name}", str(path), "name a new folder")
        if entries and not known:
            raise DataError("has the batches of another stream", str(path), "name a new folder, or go on with its checkpoint")  # fmt: skip
