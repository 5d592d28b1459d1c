"""Events from files for Spark: which files there are, of which form, and the DataFrame of each."""

from __future__ import annotations

import glob
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.readwriter import DataStreamReader

from augury.algebra.plan import Plan
from augury.errors import DataError
from augury.settings import Task
from augury.sources.files import FORMATS, SourceFile, is_data
from augury.sources.heading import EventHeading, declares_type
from augury.sources.reader import EventTypes
from augury.spark import csv, jsonl
from augury.spark.failures import first_line
from augury.spark.inputs import Part, Source, sources
from augury.spark.layout import declared_kind, sql_type

_SAMPLE = 100  # lines that tell what a file looks like
_NO_FILE = "start once the first file is there, or use JSON lines"


@dataclass(frozen=True)
class FileReader:
    """Reads the files of a task, or in a stream, folders that grow."""

    spark: SparkSession
    task: Task
    streaming: bool = False

    @property
    def plan(self) -> Plan:
        return self.task.plan

    @property
    def strict(self) -> bool:
        return self.task.settings.strict

    def sources(self) -> list[Source]:
        found = [source for file in self.task.events for source in self.source(file)]
        return found or [nothing(self.spark, self.plan)]

    def source(self, source: SourceFile) -> list[Source]:
        """The events of a file, a folder or a pattern or, in a stream, a folder that grows; none where all files are empty."""
        if source.type is not None and (problem := EventTypes(self.plan, self.strict).unknown(source.type)) is not None:
            raise DataError(problem.message, source.place, problem.hint)
        files = self._files(source)
        form = files[0].form() if files else self._form(source)
        for file in files:
            if file.compression == "zstd" and not FORMATS[form].binary:
                raise DataError(
                    "is packed with zstd, which Spark does not read",
                    file.place,
                    "pack it with gzip, or say --engine embedded",
                )
        if FORMATS[form].binary and files and not self.streaming:
            files = [file for file in files if Path(file.path).stat().st_size]
            if not files:
                return []
        readers = {"csv": self._csv, "jsonl": self._jsonl, "parquet": self._parquet}
        return readers[form](source, files) if form in readers else self._fetched(source, files, FORMATS[form].title)

    # Which files

    def _files(self, source: SourceFile) -> list[SourceFile]:
        """The files of a source as they are now; of another machine, what its name says."""
        if source.remote:
            return []
        if not self.streaming:
            return source.files()
        path = Path(source.path)
        if not path.is_dir() and not source.pattern:
            hint = "a stream reads a directory of files that grows, or - for standard input"
            raise DataError("is not a directory" if path.exists() else "no such directory", source.place, hint)
        found = sorted(path.rglob("*") if path.is_dir() else map(Path, glob.glob(source.path, recursive=True)))
        return [
            replace(source, path=str(p))
            for p in found
            if p.is_file() and is_data(p) and not p.name.startswith(("_", "."))
        ]

    def _form(self, source: SourceFile) -> str:
        try:
            return source.form()
        except DataError:
            if self.streaming:
                hint = f"say it: --events '{source.path.rstrip('/')}/*.jsonl'"
                raise DataError("has no files yet, so that their kind is not known", source.place, hint) from None
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
        packed = [f"{ending}.{one}" for ending in endings for one in ("gz", "bz2")]
        return path, reader.option("pathGlobFilter", "*.{" + ",".join([*endings, *packed]) + "}")

    # Forms

    def _csv(self, source: SourceFile, files: list[SourceFile]) -> list[Source]:
        if files:
            found = csv.tables(source, files, self.plan)
        else:
            lines = (
                [] if self.streaming else [row[0] for row in self.spark.read.text(source.path).limit(_SAMPLE).collect()]
            )
            table = csv.table_of(source, lines, self.plan) if lines else None
            found = [] if table is None else [table]
        if not found and self.streaming:
            raise DataError("has no file yet, so that its columns are not known", source.place, _NO_FILE)
        numbers = self.task.settings.clock is not None
        paths = {table: self._paths(source, table.files if files else ()) for table in found}
        if not found:
            return []
        if self.streaming:
            if len(found) > 1:
                raise DataError(
                    "has files with different headers", source.place, "a stream reads files with one header"
                )
            table, look = found[0], csv.Look()
            path, reader = self._watched(source, "csv")
            frame = table.frame(reader, [path], look, streaming=True)
            first = csv.first_time(table, table.frame(self.spark.read, paths[table], look, streaming=False))
            made = csv.Tables([(table, frame)], self.plan, look, True, self.strict).sources(numbers)
            return [replace(one, first=first) for one in made]
        look = csv.look(self.spark, paths)
        frames = [(table, table.frame(self.spark.read, some, look, streaming=False)) for table, some in paths.items()]
        return csv.Tables(frames, self.plan, look, False, self.strict).sources(numbers)

    def _jsonl(self, source: SourceFile, files: list[SourceFile]) -> list[Source]:
        if declares_type(source.type, self.plan, source.names):
            raise DataError(
                f"`{source.names.type}` says the type of an object of JSON, and is an attribute of `{source.type}`",
                source.place,
                "call the attribute something else, use a table, or say --engine embedded",
            )
        paths = self._paths(source, files)
        texts = _first_lines(files)
        if texts is None or source.remote:  # a job of Spark takes seconds
            known = bool(files) or not self.streaming
            texts = [row[0] for row in self.spark.read.text(paths).limit(_SAMPLE).collect()] if known else []
        first = jsonl.first_time(source, texts)
        numbers = self.task.settings.clock is not None
        if self.streaming:
            path, reader = self._watched(source, "jsonl")
            stream = reader.text(path)
            lasting = self.task.settings.longest is not None
            return jsonl.Lines(
                source,
                self.plan,
                jsonl.lines_of(stream, self.plan, source.names),
                self.strict,
                None,
                lasting,
                numbers,
                first,
            ).sources
        if not texts:
            return []
        seen = jsonl.seen(self.spark, paths, source, self.plan)
        lines = jsonl.lines_of(self.spark.read.text(paths), self.plan, source.names)
        return jsonl.Lines(source, self.plan, lines, self.strict, seen, True, numbers, first).sources

    def _parquet(self, source: SourceFile, files: list[SourceFile]) -> list[Source]:
        paths = self._paths(source, files)
        try:
            if self.streaming:
                if not files:
                    raise DataError("has no file yet, so that its columns are not known", source.place, _NO_FILE)
                path, reader = self._watched(source, "parquet")
                frame = reader.schema(self.spark.read.parquet(paths[0]).schema).parquet(path)
            else:
                frame = self.spark.read.parquet(*paths)
        except DataError:
            raise
        except Exception as error:
            raise DataError(f"is not a Parquet file: {first_line(error)}", source.place) from None
        return self._frame(frame, source, files)

    def _fetched(self, source: SourceFile, files: list[SourceFile], title: str) -> list[Source]:
        """Files that Spark has no reader for: the driver reads them."""
        if self.streaming or not files:
            raise DataError(f"is {title}, which Spark reads no streams of", source.place, "use Parquet")
        tables = pa.concat_tables([file.to_arrow() for file in files], promote_options="permissive")
        return self._frame(self.spark.createDataFrame(tables), source, files)

    def _frame(self, frame: DataFrame, source: SourceFile, files: Sequence[SourceFile]) -> list[Source]:
        """A DataFrame of a file. One pass over its type column tells the types that are there."""
        names = source.names if source.time in frame.columns else replace(source.names, time="time")
        place = files[0].place if len(files) == 1 else source.place
        EventHeading(tuple(frame.columns), source.names, source.type, place).check(self.plan)
        if source.type is not None:
            return sources(self.task.program, {source.type: frame}, names)
        found = sources(self.task.program, frame, names)
        if self.streaming:
            return found
        known = EventTypes(self.plan, self.strict)
        rows = frame.groupBy(F.col(f"`{names.type}`").alias("type")).count().collect()
        counts = {str(row["type"]): row["count"] for row in rows if row["type"] is not None}
        problems = {name: problem.message for name in counts if (problem := known.unknown(name)) is not None}
        unknown = {name: n for name, n in counts.items() if name not in known.arities and name not in problems}
        return [replace(one, refused=problems, unknown=unknown, types=frozenset(counts)) for one in found]


def _first_lines(files: Iterable[SourceFile]) -> list[str] | None:
    """Some lines of the first files that have any; nothing where a line is too long to be looked at."""
    found: list[str] = []
    for file in files:
        head = csv.head_of(file)
        whole = head if len(head) < csv.HEAD else head[: head.rfind(b"\n") + 1]
        if head and not whole:
            return None
        found += [line.decode("utf-8", "replace") for line in whole.split(b"\n") if line.strip()]
        if len(found) >= _SAMPLE:
            break
    return found


def nothing(spark: SparkSession, plan: Plan) -> Source:
    """A history without events."""
    type = min(plan.event_types)
    attributes = plan.declared.get(type[0])
    kinds = tuple(declared_kind(a.type) for a in attributes) if attributes else ("json",) * type[1]
    columns = tuple(f"augury {i}" for i in range(type[1]))
    types = ["boolean" if kind == "bool" else sql_type(kind) for kind in kinds]
    schema = ", ".join([*(f"`{c}` {t}" for c, t in zip(columns, types, strict=True)), "time bigint"])
    return Source(
        spark.createDataFrame([], schema), (Part(type, columns, kinds),), EventHeading(()).names, prefixes=plan.prefixes
    )


def _escaped(path: str) -> str:
    """A path that Spark does not take for a pattern."""
    return re.sub(r"([\[\]{}*?\\])", r"\\\1", path)
