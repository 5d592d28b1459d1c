"""Events from files for Spark: which files there are, of which form, and the DataFrame of each."""

from __future__ import annotations

import glob
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.readwriter import DataStreamReader

from augury.algebra.plan import Plan
from augury.core.clock import Clock
from augury.core.errors import DataError
from augury.core.limits import LINE as LONGEST_LINE
from augury.settings import Task
from augury.sources.files import FORMATS, SourceFile, is_data
from augury.sources.heading import EventHeading
from augury.sources.json_array import is_array
from augury.sources.reader import EventTypes
from augury.spark.failures import first_line
from augury.spark.inputs import EventFrame, TypeColumns, clock_of, sources
from augury.spark.kafka_topics import is_kafka, message_lines
from augury.spark.layout import declared_kind, sql_type
from augury.spark.line_reader import Header
from augury.spark.nested import with_paths
from augury.spark.text_files import TextFiles, TextTable, first_time, head_of, header_of, lines, lines_of_arrays

_SAMPLE = 100  # lines of a file elsewhere that tell what it looks like
_NO_FILE = "start once the first file is there, or use JSON lines"


@dataclass(frozen=True)
class FileReader:
    """Reads the files of a task, or in a stream, folders that grow."""

    spark: SparkSession
    task: Task
    streaming: bool = False
    history: bool = False  # whether a stream is to read files that are there, and so single ones, too

    @property
    def plan(self) -> Plan:
        return self.task.plan

    @property
    def strict(self) -> bool:
        return self.task.settings.strict

    @cached_property
    def _opened(self) -> list[EventFrame | TextFiles]:
        result = [item for file in self.task.events for item in self._open(file)]
        return result or [nothing(self.spark, self.plan)]

    @cached_property
    def clock(self) -> Clock:
        return clock_of(self.task.program, self._opened, self.task.settings)

    def sources(self) -> list[EventFrame]:
        # Without a first time that tells the unit, numbers are refused.
        clock = self.clock if self.clock.decided else replace(self.clock, guessed=True)
        result = [item.sources(clock) if isinstance(item, TextFiles) else [item] for item in self._opened]
        return [source for some in result for source in some]

    def _open(self, source: SourceFile) -> Sequence[EventFrame | TextFiles]:
        """The events of a file, a folder or a pattern or, in a stream, a folder that grows; none where all files are empty."""
        if source.type is not None and (problem := EventTypes(self.plan, self.strict).unknown(source.type)) is not None:
            raise DataError(problem.message, source.location, problem.hint)
        if is_kafka(source.path):
            return self._messages(source)
        files = self._files(source)
        form = files[0].form() if files else self._form(source)
        for file in files:
            if file.compression == "zstd" and not FORMATS[form].binary:
                raise DataError(
                    "is packed with zstd, which Spark does not read",
                    file.location,
                    "pack it with gzip, or say --engine embedded",
                )
        if FORMATS[form].binary and files and not self.streaming:
            files = [file for file in files if Path(file.path).stat().st_size]
            if not files:
                return []
        match form:
            case "csv":
                return self._csv(source, files)
            case "jsonl":
                return self._jsonl(source, files)
            case "parquet":
                return self._parquet(source, files)
        return self._fetched(source, files, FORMATS[form].title)

    # Which files

    def _files(self, source: SourceFile) -> list[SourceFile]:
        """The files of a source as they are now; of another machine, what its name says."""
        if source.remote:
            return []
        if not self.streaming:
            return source.files()
        path = Path(source.path)
        if not path.is_dir() and not source.pattern and not (self.history and path.is_file()):
            hint = "a stream reads a directory of files that grows, or - for standard input"
            raise DataError("is not a directory" if path.exists() else "no such directory", source.location, hint)
        result = sorted(path.rglob("*") if path.is_dir() else map(Path, glob.glob(source.path, recursive=True)))
        return [
            replace(source, path=str(p))
            for p in result
            if p.is_file() and is_data(p) and not p.name.startswith(("_", "."))
        ]

    def _form(self, source: SourceFile) -> str:
        try:
            return source.form()
        except DataError:
            if self.streaming:
                hint = f"say it: --events '{source.path.rstrip('/')}/*.jsonl'"
                raise DataError("has no files yet, so their format is unknown", source.location, hint) from None
            raise

    def _paths(self, source: SourceFile, files: Sequence[SourceFile]) -> list[str]:
        """The paths of files that are there, as Spark takes them."""
        return [source.path] if source.remote else [_escaped(str(Path(file.path).absolute())) for file in files]

    def _watched(self, source: SourceFile, form: str) -> tuple[str, DataStreamReader]:
        """The path that a stream reads, and what reads the files that come there."""
        reader = self.spark.readStream.option("recursiveFileLookup", "true")
        path = source.path if source.remote else str(Path(source.path).absolute())
        if not Path(source.path).is_dir():
            return path, reader
        endings = [e.removeprefix(".") for e in FORMATS[form].endings]
        packed = [f"{ending}.{item}" for ending in endings for item in ("gz", "bz2")]
        return path, reader.option("pathGlobFilter", "*.{" + ",".join([*endings, *packed]) + "}")

    # Forms

    def _csv(self, source: SourceFile, files: list[SourceFile]) -> list[TextFiles]:
        heads = list(self._heads(source, files))
        headers: dict[Header, list[SourceFile]] = {}
        for file, head in heads:
            if (header := header_of(file, head, self.plan)) is not None:
                headers.setdefault(header, []).append(file)
        if self.streaming and len(headers) != 1:
            if headers:
                raise DataError(
                    "has files with different headers", source.location, "a stream reads files with one header"
                )
            raise DataError("has no file yet, so its columns are unknown", source.location, _NO_FILE)
        tables = [TextTable(self._lines(source, some, "csv"), header) for header, some in headers.items()]
        return self._text(source, "csv", tables, first_time(heads, "csv", self.plan)) if tables else []

    def _jsonl(self, source: SourceFile, files: list[SourceFile]) -> list[TextFiles]:
        heads = list(self._heads(source, files))
        first = first_time(heads, "jsonl", self.plan)
        if first is None and not self.streaming:
            return []
        arrays = any(is_array(head) for _, head in heads)
        return self._text(source, "jsonl", [TextTable(self._lines(source, files, "jsonl", arrays))], first)

    def _messages(self, source: SourceFile) -> list[TextFiles]:
        """The topics of an address; their first messages, of a history, say the clock."""
        past = message_lines(self.spark, source.path, streaming=False)
        rows = past.limit(_SAMPLE).collect()
        head = b"".join(bytes(row[0]) + b"\n" for row in rows)
        first = first_time([(source, head)], "jsonl", self.plan)
        if first is None and not self.streaming:
            return []
        if first is None and self.task.settings.clock is None and self.plan.tick is None:
            hint = "say --clock timestamp, or logical for numbers that are no times"
            raise DataError("has no message yet that says what its times are", source.location, hint)
        table = message_lines(self.spark, source.path, streaming=True) if self.streaming else past
        return self._text(source, "jsonl", [TextTable(table)], first)

    def _heads(self, source: SourceFile, files: list[SourceFile]) -> Iterator[tuple[SourceFile, bytes]]:
        """The first lines of each file; Spark reads those of another machine."""
        for file in files:
            yield file, head_of(file)
        if not files and not self.streaming:
            rows = self.spark.read.text(source.path).limit(_SAMPLE).collect()
            yield source, "".join(row[0] + "\n" for row in rows).encode()

    def _lines(self, source: SourceFile, files: list[SourceFile], form: str, arrays: bool = False) -> DataFrame:
        read = lines_of_arrays if arrays else lines
        if self.streaming:
            path, reader = self._watched(source, form)
            return read(reader, [path])
        return read(self.spark.read, self._paths(source, files))

    def _text(self, source: SourceFile, form: str, tables: list[TextTable], first: object) -> list[TextFiles]:
        lasting = self.task.settings.longest is not None
        longest = self.task.settings.limits.line or LONGEST_LINE
        return [TextFiles(source, self.plan, form, tables, first, self.strict, lasting, longest)]

    def _parquet(self, source: SourceFile, files: list[SourceFile]) -> list[EventFrame]:
        paths = self._paths(source, files)
        try:
            if self.streaming:
                if not files:
                    raise DataError("has no file yet, so its columns are unknown", source.location, _NO_FILE)
                path, reader = self._watched(source, "parquet")
                frame = reader.schema(self.spark.read.parquet(paths[0]).schema).parquet(path)
            else:
                frame = self.spark.read.parquet(*paths)
        except DataError:
            raise
        except Exception as error:
            raise DataError(f"is not a Parquet file: {first_line(error)}", source.location) from None
        return self._frame(frame, source, files)

    def _fetched(self, source: SourceFile, files: list[SourceFile], title: str) -> list[EventFrame]:
        """Files that Spark has no reader for: the driver reads them."""
        if self.streaming or not files:
            raise DataError(f"is {title}, which Spark reads no streams of", source.location, "use Parquet")
        tables = pa.concat_tables([file.to_arrow() for file in files], promote_options="permissive")
        return self._frame(self.spark.createDataFrame(tables), source, files)

    def _frame(self, frame: DataFrame, source: SourceFile, files: Sequence[SourceFile]) -> list[EventFrame]:
        """A DataFrame of a file. One pass over its type column finds the types of its events."""
        frame = with_paths(frame, source.names.paths(self.plan))
        names = source.names if source.time in frame.columns else replace(source.names, time="time")
        position = files[0].location if len(files) == 1 else source.location
        EventHeading(tuple(frame.columns), source.names, source.type, position).check(self.plan)
        if source.type is not None:
            return sources(self.task.program, {source.type: frame}, names)
        result = sources(self.task.program, frame, names)
        if self.streaming:
            return result
        types = EventTypes(self.plan, self.strict)
        rows = frame.groupBy(F.col(f"`{names.type}`").alias("type")).count().collect()
        counts = {str(row["type"]): row["count"] for row in rows if row["type"] is not None}
        problems = {name: problem.message for name in counts if (problem := types.unknown(name)) is not None}
        unknown = {name: n for name, n in counts.items() if name not in types.arities and name not in problems}
        return [replace(item, refused=problems, unknown=unknown, types=frozenset(counts)) for item in result]


def nothing(spark: SparkSession, plan: Plan) -> EventFrame:
    """A history without events."""
    type = min(plan.event_types)
    attributes = plan.declared.get(type[0])
    kinds = tuple(declared_kind(a.type) for a in attributes) if attributes else ("json",) * type[1]
    columns = tuple(f"augury {i}" for i in range(type[1]))
    types = ["boolean" if kind == "bool" else sql_type(kind) for kind in kinds]
    schema = ", ".join([*(f"`{c}` {t}" for c, t in zip(columns, types, strict=True)), "time bigint"])
    return EventFrame(
        spark.createDataFrame([], schema),
        (TypeColumns(type, columns, kinds),),
        EventHeading(()).names,
        prefixes=plan.prefixes,
    )


def _escaped(path: str) -> str:
    """A path that Spark does not take for a pattern."""
    return re.sub(r"([\[\]{}*?\\])", r"\\\1", path)
