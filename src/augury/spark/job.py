"""What `augury run` does on Spark: files in, one pass, and the answers as the other engines give them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from augury.algebra.plan import Plan
from augury.clock import Clock
from augury.compiled import check_clock
from augury.errors import AuguryError, DataError, RunError
from augury.knowledge.facts import Facts
from augury.knowledge.graphs import Graph, read_facts
from augury.model import Event
from augury.program import Program
from augury.settings import Settings
from augury.sinks import Answers, Column, Part, column_of, ordered
from augury.sources import Coded, Skipped, SourceFile
from augury.spark.batch import Detections
from augury.spark.files import Opened, first_line
from augury.spark.host import ERROR
from augury.spark.inputs import clock_of
from augury.spark.layout import Layout, read_column
from augury.spark.pipeline import Pipeline
from augury.spark.places import Places

_LISTED = 100  # wrong rows of a file elsewhere that are shown
FULL = "No space left on device"
# What a file system says, as Java passes it on: with the path ahead, or without one.
_REFUSED = re.compile(rf"{FULL}|Disk quota exceeded|Read-only file system|Permission denied|File too large|Not a directory|Input/output error|Too many open files|Stale file handle")  # fmt: skip
_NO_FOLDER = re.compile(r"(?:Mkdirs failed to create|Failed to create directory|mkdir of|Parent path is not a directory:|Unable to create directory) (?:file:)?(/\S+)")  # fmt: skip
_NO_LONGER = re.compile(r"(?:file:)?(/\S+) is not a directory")


@dataclass
class Found:
    """The answer of a run: its columns, and how often what could not be computed, by rule and message."""

    parts: list[Part] = field(default_factory=list)
    errors: dict[tuple[str, str], int] = field(default_factory=dict)
    rejected: list[tuple[Event, str]] = field(default_factory=list)

    def answers(self, plan: Plan, clock: Clock) -> Answers:
        """What was found, in the order of events."""
        return ordered(plan, clock, self.parts)

    @property
    def events(self) -> list[Event]:
        """What was found as events, in order."""
        return list(ordered(Plan(), Clock(), self.parts).events())


class SparkJob:
    """A program and its files on Spark."""

    def __init__(
        self,
        spark: SparkSession,
        program: Program,
        events: Iterable[SourceFile],
        facts: Iterable[tuple[str, str]] = (),
        rdf: Iterable[Graph] = (),
        settings: Settings | None = None,
        *,
        until: str | None = None,
        partitions: int | None = None,
        trace: bool = True,
    ) -> None:
        self.spark, self.program, self.settings = spark, program, settings or Settings()
        clock, strict = self.settings.clock, self.settings.strict
        self.skipped = Skipped(self.settings.on_error)
        given = tuple(events)
        self.places = Places(program, given, strict=strict)
        with plainly(self.places):
            sources = Opened(spark, program, clock, strict).all(given)
            chosen = clock_of(program, sources, clock)
            check_clock(program, chosen.kind)
            self.places = replace(self.places, clock=replace(chosen, guessed=clock is None))
            known, self.graphs = read_facts(facts, rdf, program.plan, chosen, self.skipped)
            self.pipeline = Pipeline(
                program, sources, replace(self.settings, clock=chosen.kind),
                facts=known + self.graphs.facts(program.plan, known), exact=True, trace=trace,
            )  # fmt: skip
            self.detections = Detections(self.pipeline, until, partitions, False)

    @property
    def clock(self) -> Clock:
        return self.pipeline.clock

    @property
    def facts(self) -> Facts:
        return self.pipeline.facts

    @cached_property
    def mixed(self) -> DataFrame:
        """All answers in the layout, and what could not be computed."""
        return self.detections.mixed(self.pipeline.plan.outputs)

    def evaluate(self) -> Found:
        """All answers, fetched."""
        with plainly(self.places):
            found = fetched(self.mixed.toArrow(), self.pipeline.layout)
            self._skip()
        return found

    def write(self, destination: str) -> dict[tuple[str, str], int]:
        """All answers as Parquet, a folder for each type where there are several; gives what could not be computed."""
        outputs = self.pipeline.plan.outputs
        with plainly(self.places):
            mixed = self.mixed.cache()
            try:
                for type in outputs:
                    folder = destination if len(outputs) == 1 else f"{destination.rstrip('/')}/{type}"
                    self.pipeline.answers(mixed, type, changes=False).write.mode("overwrite").parquet(folder)
                told = mixed.where(F.col("type") == ERROR).toArrow()
            finally:
                mixed.unpersist()
            self._skip()
        return fetched(told, self.pipeline.layout).errors

    def _skip(self) -> None:
        """What was left out: a second pass, where the user asked to go on."""
        if self.settings.on_error != "skip":
            return
        wrong = self.pipeline.wrong
        for row in sorted(wrong.groupBy("path").count().collect(), key=lambda row: _natural(row["path"] or "")):
            found = self.places.problems(row["path"]) if row["path"] else []
            if not found:
                there = F.col("path").eqNullSafe(row["path"])
                found = [
                    f"{row['path'] or 'a row'}: {r['problem']} in {r['row']}"
                    for r in wrong.where(there).limit(_LISTED).collect()
                ]
            self.skipped.problems += found

    @property
    def unknown(self) -> dict[str, int]:
        """How many events there were of types that the program does not know."""
        found: dict[str, int] = {}
        for source in self.pipeline.sources:
            for name, count in source.unknown.items():
                found[name] = found.get(name, 0) + count
        return found

    def missing(self) -> list[str]:
        """The input types that rules read and of which there was no event."""
        plan, layout = self.program.plan, self.pipeline.layout
        given: set[str] = set()
        with plainly(self.places):
            for source in self.pipeline.sources:
                if source.types is not None:
                    given |= source.types
                elif source.mixed:
                    codes = self.pipeline.raw(source).select("type").distinct().collect()
                    given |= {layout.types[row[0]][0] for row in codes if row[0] is not None}
                elif not source.frame.isEmpty():
                    given.add(source.parts[0].type[0])
        return sorted({name for name, _ in plan.event_types} - {name for name, _ in plan.derived} - given)


def _natural(text: str) -> list[tuple[int, str]]:
    """The order of file names and lines: 9 comes before 10."""
    return [(int(part) if part.isdigit() else -1, part) for part in re.split(r"(\d+)", text)]


# Answers


def fetched(table: pa.Table, layout: Layout) -> Found:
    """Answers in the layout, type by type."""
    found = Found()
    codes = table.column("type").to_numpy()
    for code in sorted(set(codes.tolist())):
        part = table.filter(pa.array(codes == code))
        if code == ERROR:
            for rule, trace, times in zip(*(part.column(c).to_pylist() for c in ("id", "trace", "start")), strict=True):
                key = (rule, "".join(trace))
                found.errors[key] = found.errors.get(key, 0) + times
        elif code >= 0:
            found.parts.append(part_of(part, layout, code))
    return found


def part_of(table: pa.Table, layout: Layout, code: int) -> Part:
    """The answers of one type."""
    type = layout.types[code]
    columns = [values(table.column(slot), kind) for slot, kind in zip(layout.slots[type], layout.kinds[type], strict=True)]  # fmt: skip
    start, end = (table.column(c).to_numpy() for c in ("start", "end"))
    given = table.column("trace").combine_chunks()
    lengths = pc.fill_null(pc.list_value_length(given), 0).to_numpy()
    offsets = pa.array(np.r_[0, np.cumsum(lengths)].astype(np.int32))
    lists = pa.ListArray.from_arrays(offsets, given.flatten().cast(pa.string()))
    ids = table.column("id").combine_chunks().cast(pa.string())
    return Part(type[0], columns, start, end, ids, lambda lo, hi: lists[lo:hi])


def values(column: pa.ChunkedArray, kind: str) -> Column:
    """A column of the layout as values of the language."""
    found = read_column(column, kind)
    if isinstance(found, Coded):
        place = np.where(found.index < 0, len(found.values), found.index)
        return Column([*found.values, None] if column.null_count else found.values, place)
    if isinstance(found, np.ndarray) and found.dtype.kind in "if":
        null = np.isnan(found) if column.null_count else None
        return Column(found, null=null)
    return column_of(found)


# Errors


@contextmanager
def plainly(places: Places | None = None) -> Iterator[None]:
    """What Spark raises, as an error that says what a user can do something about."""
    try:
        yield
    except AuguryError:
        raise
    except Exception as error:
        raise plain(error, places) from None


def plain(error: BaseException, places: Places | None) -> AuguryError:
    """The error behind one of Spark's.

    A worker that raises ends its traceback with `augury.errors.RunError: …`; a wrong row of a DataFrame is
    `[USER_RAISED_EXCEPTION] a malformed row: …`, that of a file `a malformed row of file:///…: … in …`.
    """
    if isinstance(error, AuguryError):
        return error
    text = _story(error)
    ours = re.search(r"^augury\.errors\.\w+: (.*(?:\n {2}\S.*)*)", text, re.MULTILINE)
    if ours is not None:
        return RunError(ours[1])
    of_file = re.search(r"a malformed row of (\S+): (.*?) in (.*)", text)
    if of_file is not None and places is not None:
        return places.error(of_file[1], of_file[2], re.sub(r" SQLSTATE: \w+$", "", of_file[3].strip()))
    wrong = re.search(r"(a malformed row: .*)", text)
    if wrong is not None:
        return DataError(re.sub(r" SQLSTATE: \w+$", "", wrong[1].strip()))
    if re.search(r"Connection refused|Py4JNetworkError|SparkContext was shut down|stopped SparkContext|Answer from Java side is empty", text):  # fmt: skip
        return RunError("Spark has stopped", "its Java process ended; was there enough memory? --conf spark.driver.memory=4g")  # fmt: skip
    refused = _refused(text)
    if refused is not None:
        return refused
    missing = re.search(r"Path does not exist: (\S+)", text)
    if missing is not None:
        return DataError("no such file", missing[1])
    raised = re.findall(r"^(\w+(?:\.\w+)*(?:Error|Exception)): (.*)$", text, re.MULTILINE)
    if isinstance(error, PySparkException) or "py4j" in type(error).__module__:
        said = f"{raised[-1][0].split('.')[-1]}: {raised[-1][1]}" if raised else first_line(error)
        return RunError(f"Spark could not finish: {said}")
    return RunError(f"{type(error).__name__}: {first_line(error)}")


def _story(error: BaseException) -> str:
    """What an error says, and what the Java exceptions behind it say."""
    said = [str(error)]
    cause = getattr(error, "_origin", None) or getattr(error, "java_exception", None)
    with suppress(Exception):  # the JVM may have ended meanwhile
        while cause is not None and len(said) < 20:
            said.append(str(cause.toString()))
            cause = cause.getCause()
    return "\n".join(said)


def _refused(text: str) -> AuguryError | None:
    """What a file system refused to do, and where."""
    found = _REFUSED.search(text)
    if found is None:
        if (folder := _NO_FOLDER.search(text)) is not None:
            return DataError("cannot be written: no folder can be made there", folder[1])
        file = _NO_LONGER.search(text)
        return None if file is None else DataError("is not a directory", file[1])
    where = re.search(rf"(?:file:)?(/[^\s:()]+)(?: \(|: (?:error=\d+, )?){re.escape(found[0])}", text)
    return RunError(found[0]) if where is None else DataError(found[0], where[1])
