"""`augury run` on Spark: reads files, makes one pass, and returns answers in the form of the other engines."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from augury.algebra.plan import Plan
from augury.compiled import check_clock
from augury.core.clock import Clock
from augury.core.errors import DataError, RunError
from augury.core.model import Event
from augury.core.standing import InputCounts
from augury.knowledge.facts import Facts
from augury.knowledge.graphs import read_facts
from augury.settings import Task
from augury.sinks import Answers, ColumnPart, ValueColumn, coded_column, column_of
from augury.sources import Coded, Skipped
from augury.spark.batch import Detections
from augury.spark.failures import user_errors
from augury.spark.file_frames import FileReader
from augury.spark.heartbeats import heartbeats
from augury.spark.host import ERROR
from augury.spark.layout import Layout, read_column
from augury.spark.pipeline import Execution, Pipeline
from augury.spark.places import Places

_LISTED = 100  # wrong rows of a file elsewhere that are shown
_FETCHED = 200_000  # events that are fetched to explain answers


@dataclass
class SparkAnswers:
    """The answer of a run: its columns, and how often what could not be computed, by rule and message."""

    parts: list[ColumnPart] = field(default_factory=list)
    errors: dict[tuple[str, str], int] = field(default_factory=dict)
    rejected: list[tuple[Event, str]] = field(default_factory=list)

    def answers(self, plan: Plan, clock: Clock) -> Answers[Event]:
        """What was found, in the order of events."""
        return Answers(plan, clock, self.parts)

    @property
    def events(self) -> list[Event]:
        """What was found as events, in order."""
        return list(Answers(Plan(), Clock(), self.parts))


class FileRun:
    """A task on Spark: its files as a pipeline, where wrong rows are found, and what was skipped."""

    def __init__(
        self,
        spark: SparkSession,
        task: Task,
        execution: Execution,
        streaming: bool = False,
        beats: Path | None = None,
        history: bool = False,
    ) -> None:
        """`beats` is the folder in which a stream says that nothing has come for a while; one of a `history` reads files."""
        self.task, program, settings = task, task.program, task.settings
        self.skipped = Skipped(settings.on_error, limits=settings.limits)
        self.places = Places(task)
        with user_errors(self.places):
            files = FileReader(spark, task, streaming, history)
            clock = files.clock
            check_clock(program, clock.kind)
            self.places = replace(self.places, clock=clock)
            sources = files.sources() + ([] if beats is None else [heartbeats(spark, beats)])
            facts, self.graphs = read_facts(task.facts, task.graphs, program.plan, clock, self.skipped)
            self.pipeline = Pipeline(
                program,
                sources,
                replace(settings, clock=clock.kind),
                replace(execution, exact=True),
                facts=facts + self.graphs.facts(program.plan, facts),
                clock=clock,
            )

    @property
    def clock(self) -> Clock:
        return self.pipeline.clock

    @property
    def facts(self) -> Facts:
        return self.pipeline.facts


class SparkJob(FileRun):
    """A task over a history on Spark."""

    def __init__(
        self, spark: SparkSession, task: Task, until: str | None = None, execution: Execution | None = None
    ) -> None:
        super().__init__(spark, task, execution or Execution())
        self.empty = False  # whether nothing was detected and written
        self.counts: InputCounts | None = None  # what became of all rows, where wrong ones are skipped
        with user_errors(self.places):
            self.detections = Detections(self.pipeline, until)

    @cached_property
    def all_rows(self) -> DataFrame:
        """All answers in the layout, and what could not be computed."""
        return self.detections.all_rows(self.pipeline.plan.outputs)

    @contextmanager
    def _whole_rows(self) -> Iterator[None]:
        """An error of a malformed row shows the whole row, of which just the columns in use were read: it is looked up."""
        try:
            with user_errors(self.places):
                yield
        except DataError as error:
            if not error.message.startswith("a malformed row: "):
                raise
            row = self.pipeline.wrong.first()
            raise error if row is None else DataError(f"a malformed row: {row['problem']} in {row['row']}") from None

    def evaluate(self) -> SparkAnswers:
        """All answers, fetched."""
        with self._whole_rows():
            result = fetched(self.all_rows.toArrow(), self.pipeline.layout)
            self._skip()
        return result

    def events_between(self, spans: Sequence[tuple[int, int]]) -> list[Event]:
        """The inputs that stand and lie, at least in part, in one of some spans of time, fetched."""
        with user_errors(self.places):
            rows = self.detections.inputs_between(spans).limit(_FETCHED + 1).toArrow()
        if rows.num_rows > _FETCHED:
            raise RunError(f"more than {_FETCHED:,} events lie around them")
        events = Answers(Plan(), Clock(), fetched(rows, self.pipeline.layout).parts)
        return [replace(event, id=event.id or "", trace=()) for event in events]

    def write(self, destination: str) -> dict[tuple[str, str], int]:
        """All answers as Parquet, a folder for each type where there are several; gives what could not be computed."""
        outputs = self.pipeline.plan.outputs
        with self._whole_rows():
            rows = self.all_rows.cache()
            try:
                for type in outputs:
                    folder = destination if len(outputs) == 1 else f"{destination.rstrip('/')}/{type}"
                    self.pipeline.answers(rows, type, changes=False).write.mode("overwrite").parquet(folder)
                errors = rows.where(F.col("type") == ERROR).toArrow()
                self.empty = rows.where(F.col("type") >= 0).isEmpty()
            finally:
                rows.unpersist()
            self._skip()
        return fetched(errors, self.pipeline.layout).errors

    def _skip(self) -> None:
        """Counts the rows that were left out, in a second pass, with on_error="skip"."""
        if self.task.settings.on_error != "skip":
            return
        wrong = self.pipeline.wrong
        for row in sorted(wrong.groupBy("path").count().collect(), key=lambda row: _natural(row["path"] or "")):
            problems = self.places.problems(row["path"]) if row["path"] else []
            if not problems:
                there = F.col("path").eqNullSafe(row["path"])
                problems = [
                    f"{row['path'] or 'a row'}: {r['problem']} in {r['row']}"
                    for r in wrong.where(there).limit(_LISTED).collect()
                ]
            self.skipped.problems += problems
        self.counts = self.pipeline.counts

    @property
    def unknown(self) -> dict[str, int]:
        """How many events there were of types that the program does not know."""
        result: dict[str, int] = {}
        for source in self.pipeline.sources:
            for name, count in source.unknown.items():
                result[name] = result.get(name, 0) + count
        return result

    def types(self) -> set[str]:
        """The types of which there is an event."""
        layout = self.pipeline.layout
        result: set[str] = set()
        with user_errors(self.places):
            for source in self.pipeline.sources:
                if source.types is not None:
                    result |= source.types
                elif source.mixed:
                    codes = self.pipeline.raw(source).select("type").distinct().collect()
                    result |= {layout.types[row[0]][0] for row in codes if row[0] is not None}
                elif not source.frame.isEmpty():
                    result.add(source.parts[0].type[0])
        return result


def _natural(text: str) -> list[tuple[int, str]]:
    """The order of file names and lines: 9 comes before 10."""
    return [(int(part) if part.isdigit() else -1, part) for part in re.split(r"(\d+)", text)]


# Answers


def fetched(table: pa.Table, layout: Layout) -> SparkAnswers:
    """Answers in the layout, type by type."""
    result = SparkAnswers()
    codes = table.column("type").to_numpy()
    for code in sorted(set(codes.tolist())):
        part = table.filter(pa.array(codes == code))
        if code == ERROR:
            for rule, trace, times in zip(*(part.column(c).to_pylist() for c in ("id", "trace", "start")), strict=True):
                key = (rule, "".join(trace))
                result.errors[key] = result.errors.get(key, 0) + times
        elif code >= 0:
            result.parts.append(part_of(part, layout, code))
    return result


def part_of(table: pa.Table, layout: Layout, code: int) -> ColumnPart:
    """The answers of one type."""
    type = layout.types[code]
    places = zip(layout.slots[type], layout.kinds[type], strict=True)
    columns = [values(table.column(slot), kind) for slot, kind in places]
    start, end = (table.column(c).to_numpy() for c in ("start", "end"))
    traces = table.column("trace").combine_chunks()
    lengths = pc.fill_null(pc.list_value_length(traces), 0).to_numpy()
    offsets = pa.array(np.r_[0, np.cumsum(lengths)].astype(np.int32))
    lists = pa.ListArray.from_arrays(offsets, traces.flatten().cast(pa.string()))
    ids = table.column("id").combine_chunks().cast(pa.string())
    return ColumnPart(type[0], None, columns, start, end, ids, lists)


def values(column: pa.ChunkedArray, kind: str) -> ValueColumn:
    """A column of the layout as values of the language."""
    result = read_column(column, kind)
    if isinstance(result, Coded):
        position = np.where(result.index < 0, len(result.values), result.index)
        return coded_column([*result.values, None] if column.null_count else list(result.values), position)
    if isinstance(result, np.ndarray) and result.dtype.kind in "if":
        null = np.isnan(result) if column.null_count else None
        return ValueColumn(result, null=null)
    return column_of(result)
