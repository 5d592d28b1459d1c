"""Events from files for Spark: which files there are, of which form, and the DataFrame of each."""

from __future__ import annotations

import glob
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from augury.algebra.plan import Plan
from augury.errors import DataError
from augury.settings import Task
from augury.sources.cells import ArrowCells
from augury.sources.files import ENDINGS, Form, SourceFile, is_data
from augury.sources.heading import EventHeading, declares_type
from augury.sources.reader import Known
from augury.sources.sheet import Sheet
from augury.spark import csv, jsonl
from augury.spark.failures import first_line
from augury.spark.inputs import Part, Source, sources
from augury.spark.layout import declared_kind

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
        if source.type is not None and (problem := Known(self.plan, self.strict).unknown(source.type)) is not None:
            raise DataError(problem.message, source.place, problem.hint)
        files = self._files(source)
        form = files[0].form() if files else self._form(source)
        for file in files:
            if file.compression == "zstd" and form in ("csv", "jsonl"):
                raise DataError(
                    "is packed with zstd, which Spark does not read",
                    file.place,
                    "pack it with gzip, or say --engine embedded",
                )
        if form in ("parquet", "arrow") and files and not self.streaming:
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
        return self._arrow(source, files)

    # Which files

    def _files(self, source: SourceFile) -> list[SourceFile]:
        """The files of a source as they are now; of another machine, what its name says."""
        if source.remote:
            return []
        if not self.streaming:
            return source.files()
        path = Path(source.path)
        if not path.is_dir() and not source.pattern:
            raise DataError("is not a directory" if path.exists() else "no such directory", source.place,
                            "a stream reads a directory of files that grows, or - for standard input")  # fmt: skip
        found = sorted(path.rglob("*") if path.is_dir() else map(Path, glob.glob(source.path, recursive=True)))
        return [
            replace(source, path=str(p))
            for p in found
            if p.is_file() and is_data(p) and not p.name.startswith(("_", "."))
        ]

    def _form(self, source: SourceFile) -> Form:
        try:
            return source.form()
        except DataError:
            if self.streaming:
                raise DataError("has no files yet, so that their kind is not known", source.place,
                                f"say it: --events '{source.path.rstrip('/')}/*.jsonl'") from None  # fmt: skip
            raise

    def _paths(self, source: SourceFile, files: Sequence[SourceFile]) -> list[str]:
        """The paths of files that are there, as Spark takes them."""
        return [source.path] if source.remote else [_escaped(str(Path(file.path).absolute())) for file in files]

    def _watched(self, source: SourceFile, form: Form) -> tuple[str, dict[str, str]]:
        """The path that a stream reads, and how it finds files there."""
        path = source.path if source.remote else str(Path(source.path).absolute())
        if not Path(source.path).is_dir():
            return path, {}
        endings = [e.removeprefix(".") for e, f in ENDINGS.items() if f == form]
        return path, {
            "pathGlobFilter": "*.{" + ",".join([*endings, *(f"{e}.{c}" for e in endings for c in ("gz", "bz2"))]) + "}"
        }

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
            path, filters = self._watched(source, "csv")
            frame = table.frame(
                self.spark.readStream.options(recursiveFileLookup="true", **filters), [path], look, streaming=True
            )
            first = csv.first_time(table, table.frame(self.spark.read, paths[table], look, streaming=False))
            made = csv.Tables([(table, frame)], self.plan, look, True, self.strict).sources(numbers)
            return [replace(one, first=first) for one in made]
        look = csv.look(self.spark, paths)
        frames = [(table, table.frame(self.spark.read, some, look, streaming=False)) for table, some in paths.items()]
        return csv.Tables(frames, self.plan, look, False, self.strict).sources(numbers)

    def _jsonl(self, source: SourceFile, files: list[SourceFile]) -> list[Source]:
        if declares_type(source.type, self.plan, source.names):
            raise DataError(f"`{source.names.type}` says the type of an object of JSON, and is an attribute of `{source.type}`", source.place,
                            "call the attribute something else, use a table, or say --engine embedded")  # fmt: skip
        paths = self._paths(source, files)
        there = self.spark.read.text(paths) if files or not self.streaming else None
        texts = [] if there is None else [row[0] for row in there.limit(_SAMPLE).collect()]
        first = jsonl.first_time(source, texts)
        numbers = self.task.settings.clock is not None
        if self.streaming:
            path, filters = self._watched(source, "jsonl")
            stream = self.spark.readStream.options(recursiveFileLookup="true", **filters).text(path)
            lasting = self.task.settings.longest is not None
            return jsonl.Lines(
                source, self.plan, jsonl.lines_of(stream), self.strict, None, lasting, numbers, first
            ).sources
        assert there is not None
        if not texts:
            return []
        seen = jsonl.seen(self.spark, paths, source, self.plan)
        return jsonl.Lines(source, self.plan, jsonl.lines_of(there), self.strict, seen, True, numbers, first).sources

    def _parquet(self, source: SourceFile, files: list[SourceFile]) -> list[Source]:
        paths = self._paths(source, files)
        try:
            if self.streaming:
                if not files:
                    raise DataError("has no file yet, so that its columns are not known", source.place, _NO_FILE)
                path, filters = self._watched(source, "parquet")
                schema = self.spark.read.parquet(paths[0]).schema
                frame = (
                    self.spark.readStream.schema(schema).options(recursiveFileLookup="true", **filters).parquet(path)
                )
            else:
                frame = self.spark.read.parquet(*paths)
        except DataError:
            raise
        except Exception as error:
            raise DataError(f"is not a Parquet file: {first_line(error)}", source.place) from None
        return self._frame(frame, source, files)

    def _arrow(self, source: SourceFile, files: list[SourceFile]) -> list[Source]:
        """Arrow files, which Spark has no reader for: the driver reads them."""
        if self.streaming or not files:
            raise DataError("is Arrow, which Spark reads no streams of", source.place, "use Parquet")
        sheets = [sheet for file in files for sheet in file.parts() if isinstance(sheet, Sheet)]
        tables = [
            pa.table({n: c.array for n, c in zip(s.names, s.cells, strict=True) if isinstance(c, ArrowCells)})
            for s in sheets
        ]
        return self._frame(self.spark.createDataFrame(pa.concat_tables(tables)), source, files)

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
        known = Known(self.plan, self.strict)
        rows = frame.groupBy(F.col(f"`{names.type}`").alias("type")).count().collect()
        counts = {str(row["type"]): row["count"] for row in rows if row["type"] is not None}
        problems = {name: problem.message for name in counts if (problem := known.unknown(name)) is not None}
        unknown = {name: n for name, n in counts.items() if name not in known.arities and name not in problems}
        return [replace(one, refused=problems, unknown=unknown, types=frozenset(counts)) for one in found]


def nothing(spark: SparkSession, plan: Plan) -> Source:
    """A history without events."""
    type = min(plan.event_types)
    attributes = plan.declared.get(type[0])
    kinds = tuple(declared_kind(a.type) for a in attributes) if attributes else ("json",) * type[1]
    sql = {
        "int": "bigint",
        "float": "double",
        "number": "double",
        "bool": "boolean",
        "timestamp": "bigint",
        "duration": "bigint",
    }
    columns = tuple(f"augury {i}" for i in range(type[1]))
    schema = ", ".join([*(f"`{c}` {sql.get(k, 'string')}" for c, k in zip(columns, kinds, strict=True)), "time bigint"])
    return Source(
        spark.createDataFrame([], schema), (Part(type, columns, kinds),), EventHeading(()).names, prefixes=plan.prefixes
    )


def _escaped(path: str) -> str:
    """A path that Spark does not take for a pattern."""
    return re.sub(r"([\[\]{}*?\\])", r"\\\1", path)
