"""Events from files for Spark: text is split by Spark and read line by line in its workers, as the other engines read it.

Parquet goes in as a DataFrame. A wrong line is named with its file and number.
"""

from __future__ import annotations

import csv
import itertools
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from augury.algebra.program import Plan, Predicate
from augury.clock import Clock, Kind
from augury.errors import DataError
from augury.program import Program
from augury.settings import first_time
from augury.sources import (
    CELLS,
    ENDINGS,
    Header,
    Known,
    OnError,
    SourceFile,
    fits,
    json_item,
    read_header,
)
from augury.spark.inputs import Names, Part, Source, sources
from augury.spark.inputs import OnError as Wrong
from augury.spark.layout import Layout, declared_kind
from augury.spark.lines import PEEK, Reader, Rows, blocks


@dataclass(frozen=True)
class TextSource(Source):
    """Lines of text as events; `said` are the names of the columns or keys that the data have beside their attributes."""

    reader: Reader = field(kw_only=True)
    said: frozenset[str] = field(kw_only=True)
    first: object = field(kw_only=True)

    def has(self, name: str) -> bool:
        return name in self.said

    @property
    def points(self) -> bool:
        return not self.said & {self.names.start, self.names.end}

    def sample(self) -> object:
        return self.first

    @property
    def times(self) -> tuple[str, str]:
        return ("end", "end") if self.points else ("start", "end")

    def rows(self, layout: Layout, clock: Clock, ops: bool, ids: bool, points: bool) -> DataFrame:
        """Its rows in the layout, with what is wrong with each."""
        guessed = self.reader.clock.guessed  # whether the clock was guessed is the reader's to know
        rows = Rows(replace(self.reader, clock=replace(clock, guessed=guessed)), layout, ops, ids, points)

        def read(given: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            return rows.read(given)

        return self.frame.mapInArrow(read, rows.sql)

    def events(self, layout: Layout, clock: Clock, ops: bool, ids: bool, points: bool, on_error: Wrong) -> DataFrame:
        """Its events in the layout. A wrong line has stopped the run already, or is left out; a stream counts them."""
        found = self.rows(layout, clock, ops, ids, points)
        if found.isStreaming and on_error == "drop":
            wrong = F.col("problem").isNotNull()
            found = found.observe(f"{SKIPPED}{next(_numbers)}", F.count_if(wrong).alias("count"), F.min("problem").alias("example"))  # fmt: skip
        return (found.where(F.col("problem").isNull()) if on_error == "drop" else found).drop("problem", "row")


SKIPPED = "augury_skipped_"  # and a number: what a stream tells of the lines that it left out
_numbers = itertools.count()


@dataclass(frozen=True)
class Opened:
    """What is needed to open sources: the session, the program, and what the user said."""

    spark: SparkSession
    program: Program
    clock: Kind | None = None
    on_error: OnError = "stop"
    streaming: bool = False
    lasting: bool = False  # whether the events of a stream may last for a time

    def all(self, given: Iterable[SourceFile]) -> list[Source]:
        return [source for file in given for source in self.source(file)]

    def source(self, source: SourceFile) -> list[Source]:
        """The events of a file, a folder or, in a stream, a folder that grows."""
        if source.type is not None:
            Known(self.program.plan).check_name(source.type)
        files = self._files(source)
        form = files[0].form() if files else self._form(source)
        if form == "parquet":
            return self._parquet(source, files)
        frame = self._text(source, files, form)
        reader = Reader(source, _root(source.path), form, self.program.plan, Clock(guessed=self.clock is None), on_error=self.on_error)  # fmt: skip
        lines = self._peek(source, files)
        return [self._table(reader, frame, files, lines) if form == "csv" else self._lines(reader, frame, files, lines)]

    def _files(self, source: SourceFile) -> list[SourceFile]:
        """The files of a source as they are now; of another machine, what its name says."""
        if is_remote(source.path):
            return []
        path = Path(source.path)
        if self.streaming:
            if not path.is_dir() and not _is_glob(source.path):
                raise DataError("is not a directory" if path.exists() else "no such directory", source.place,
                                "a stream reads a directory of files that grows, or - for standard input")  # fmt: skip
            found = sorted(p for p in (path.rglob("*") if path.is_dir() else Path().glob(source.path)) if p.suffix in ENDINGS)  # fmt: skip
            return [replace(source, path=str(p)) for p in found if p.is_file() and not p.name.startswith(("_", "."))]
        files = source.files()
        for file in files:
            _check_content(file, len(files) == 1)
        return files

    def _form(self, source: SourceFile) -> Literal["csv", "jsonl", "parquet"]:
        try:
            return source.form()
        except DataError:
            if self.streaming:
                raise DataError("has no files yet, so that their kind is not known", source.place,
                                f"say it: --events '{source.path.rstrip('/')}/*.jsonl'") from None  # fmt: skip
            raise

    def _paths(self, source: SourceFile, files: list[SourceFile]) -> list[str]:
        if is_remote(source.path) or self.streaming:
            return [source.path if is_remote(source.path) else str(Path(source.path).absolute())]
        return [_escaped(str(Path(file.path).absolute())) for file in files]

    def _text(self, source: SourceFile, files: list[SourceFile], form: str) -> DataFrame:
        paths = self._paths(source, files)
        if self.streaming:
            lines = self.spark.readStream.option("lineSep", "\n").option("recursiveFileLookup", "true")
            if Path(source.path).is_dir():
                endings = [e.removeprefix(".") for e, f in ENDINGS.items() if f == form]
                lines = lines.option("pathGlobFilter", "*.{" + ",".join(endings) + "}")
            frame = lines.text(paths[0])
        else:
            frame = self.spark.read.option("lineSep", "\n").text(paths)
        return frame.select(
            F.col("value").cast("binary").alias("value"), F.col("_metadata.file_path").alias("path"),
            F.col("_metadata.file_block_start").alias("start"), F.col("_metadata.file_block_length").alias("length"),
            F.col("_metadata.file_size").alias("size"),
        )  # fmt: skip

    def _peek(self, source: SourceFile, files: list[SourceFile]) -> list[str]:
        """The first lines."""
        if files:
            with open(files[0].path, encoding="utf-8-sig", errors="replace") as file:
                return file.read(PEEK).splitlines()
        if self.streaming:
            return []
        return [row[0] for row in self.spark.read.text(source.path).limit(100).collect()]

    def _lines(self, reader: Reader, frame: DataFrame, files: list[SourceFile], lines: list[str]) -> TextSource:
        plan = self.program.plan
        derived = {name for name, _ in plan.derived}
        keys = ("op", "id", "start", "end")
        if self.streaming:
            said = {"op", "id", *(("start", "end") if self.lasting else ())}
            there = {t for t in plan.event_types if t[0] not in derived or t[0] in plan.declared}
        else:
            found = self._mentioned({*keys, *derived}, frame, files)
            said = found & set(keys)
            there = {t for t in plan.event_types if t[0] not in derived or t[0] in found or t[0] == reader.source.type}
        parts = tuple(_part(type, [f"arg{i + 1}" for i in range(type[1])], plan, {}) for type in sorted(there))
        items = []
        for line in lines[: 100 if len(lines) > 1 else 1]:
            try:
                items.append(json_item(line, reader.source.type, reader.source.time))
            except DataError:
                continue
        return TextSource(
            frame, parts, Names(), True, reader=replace(reader, types=frozenset(there)), said=frozenset(said), first=_time(items)
        )  # fmt: skip

    def _mentioned(self, names: Iterable[str], frame: DataFrame, files: list[SourceFile]) -> set[str]:
        """The names that stand somewhere in the data, as JSON writes them."""
        wanted = sorted(names)
        if not files:
            marks = [F.coalesce(F.max(F.contains(F.col("value").cast("string"), F.lit(json.dumps(name)))), F.lit(False)).alias(name) for name in wanted]  # fmt: skip
            row = frame.agg(*marks).collect()[0]
            return {name for name in wanted if row[name]}
        found: set[str] = set()
        for file in files:
            found |= _in_file(Path(file.path), [name for name in wanted if name not in found])
        return found

    def _table(self, reader: Reader, frame: DataFrame, files: list[SourceFile], lines: list[str]) -> TextSource:
        source, plan = reader.source, self.program.plan
        if not lines:
            raise DataError("has no file yet, so that its columns are not known", source.place,
                            "start once the first file is there, or use JSON lines")  # fmt: skip
        rows = list(csv.reader(lines[:100]))
        place = files[0].place if files else source.place
        header = Header(replace(source, shown=place), tuple(read_header(rows[0], place)))
        header.check()
        derived = {name for name, _ in plan.derived}
        there: dict[Predicate, list[str]] = {}
        for type in sorted({name for name, _ in plan.event_types} if source.type is None else {source.type}):
            if source.type is None and type in derived and not _derived_columns(type, header, plan):
                continue
            try:
                columns = header.args(type, plan)
            except DataError as error:
                if source.type is None:
                    continue
                raise DataError(error.message, f"{place}:2", error.hint) from None
            if (type, len(columns)) in plan.event_types:
                there[type, len(columns)] = columns
            elif source.type is not None:
                expected = " or ".join(str(n) for n in sorted(Known(plan).arities[type]))
                raise DataError(f"`{type}` has {len(columns)} arguments; the program uses it with {expected}", f"{place}:2")  # fmt: skip
        if not there:
            raise DataError("has no columns for any event type of the program", f"{place}:1",
                            f"it reads {', '.join(sorted({name for name, _ in plan.event_types}))}")  # fmt: skip
        undeclared = sorted({c for type, columns in there.items() if type[0] not in plan.declared for c in columns})
        if undeclared and self.streaming:
            type = next(t[0] for t in there if t[0] not in plan.declared)
            raise DataError(f"the columns of `{type}` have no types, which a stream cannot wait for", source.place,
                            f"declare `event {type}({', '.join(f'{c}: …' for c in undeclared)}).`")  # fmt: skip
        reader = replace(reader, types=frozenset(there))
        if undeclared:
            reader = replace(reader, reads=inferred(reader, frame, undeclared))
        parts = tuple(_part(type, columns, plan, reader.reads) for type, columns in there.items())
        own = {a.name for type in there for a in plan.declared.get(type[0], ())} if len(there) == 1 else set()
        said = frozenset({"op", "id", "start", "end"} & set(header.names) - own)
        times = {"time": source.time, "end": "end", "start": "start"}
        cells = [dict(zip(header.names, row, strict=True)) for row in rows[1:] if len(row) == len(header.names)]
        items = [{key: row.get(name) or None for key, name in times.items()} for row in cells]
        return TextSource(
            frame, parts, Names(), source.type is None or len(parts) != 1, reader=reader, said=said, first=_time(items)
        )

    def _parquet(self, source: SourceFile, files: list[SourceFile]) -> list[Source]:
        if self.streaming:
            if not files:
                raise DataError("has no file yet, so that its columns are not known", source.place,
                                "start once the first file is there, or use JSON lines")  # fmt: skip
            schema = self.spark.read.parquet(_escaped(str(Path(files[0].path).absolute()))).schema
            frame = self.spark.readStream.schema(schema).option("recursiveFileLookup", "true").parquet(self._paths(source, files)[0])  # fmt: skip
        else:
            try:
                frame = self.spark.read.parquet(*self._paths(source, files))
            except Exception as error:
                raise DataError(f"is not a Parquet file: {first_line(error)}", source.place) from None
        names = Names(time=source.time if source.time in frame.columns else "time")
        shown = replace(source, shown=files[0].place if len(files) == 1 else source.place)
        Header(shown, tuple(frame.columns)).check()
        if source.type is not None:
            return sources(self.program, {source.type: frame}, names)
        if not self.streaming:
            known = Known(self.program.plan)
            for row in frame.select("type").distinct().collect():
                known.check_name(str(row[0]))
        return sources(self.program, frame, names)


def _part(type: Predicate, columns: list[str], plan: Plan, inferred: Mapping[str, str]) -> Part:
    """The kinds of the arguments of a type: as declared or found in the data. A `number` stays whole where it is."""
    declared = plan.declared.get(type[0])
    if declared is not None:
        kinds = [declared_kind(a.type) if a.type != "number" else "json" for a in declared]
        return Part(type, tuple(a.name for a in declared), tuple(kinds))
    return Part(type, tuple(columns), tuple(inferred.get(c, "json") for c in columns))


def _derived_columns(type: str, header: Header, plan: Plan) -> bool:
    """Whether a mixed table may hold events of a type that the program derives."""
    declared = plan.declared.get(type)
    return declared is not None and all(a.name in header.names for a in declared)


def _time(items: list[dict[str, Any]]) -> object:
    """A time that tells the clock: a whole number, or text."""
    found = first_time(items)
    if isinstance(found, str) and found.lstrip("-").isdigit():
        return int(found)
    return 0 if found is None else found


def inferred(reader: Reader, frame: DataFrame, columns: list[str]) -> dict[str, str]:
    """The kinds of undeclared columns: one that all cells fit, found in one pass over the data."""

    def look(given: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        left = {name: set(CELLS) for name in columns}
        for block, lines in blocks(given):
            for _, header, row in reader.rows(block, lines):
                if not isinstance(row, DataError):
                    for name, cell in zip(header.names, row, strict=True):
                        if name in left and cell != "":
                            left[name] = {kind for kind in left[name] if fits(cell, kind)}
        for name, kinds in left.items():
            arrays = [pa.array([name] * len(kinds)), pa.array(sorted(kinds), pa.string()), pa.array([1] * len(kinds))]
            yield pa.RecordBatch.from_arrays(arrays, ["name", "kind", "n"])

    tasks = frame.mapInArrow(look, "name string, kind string, n bigint").groupBy("name", "kind").agg(F.sum("n").alias("n"))  # fmt: skip
    votes = {(row["name"], row["kind"]): row["n"] for row in tasks.collect()}
    found: dict[str, str] = {}
    for name in columns:
        all_tasks = votes.get((name, "string"), 0)
        found[name] = next(kind for kind in CELLS if votes.get((name, kind), 0) == all_tasks)
    return found


def _check_content(file: SourceFile, alone: bool) -> None:
    """A file that is there, can be read and is not empty."""
    path = Path(file.path)
    if not path.exists():
        raise DataError("no such file", file.place)
    try:
        with path.open("rb") as data:
            start = data.read(PEEK)
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror}", file.place) from None
    whole = len(start) < PEEK
    if whole and not start.removeprefix(b"\xef\xbb\xbf").strip():
        raise DataError("is empty", file.place, "it needs at least one line of data")
    if whole and alone and file.form() == "csv" and len(list(csv.reader(start.decode("utf-8-sig", "replace").splitlines()))) < 2:  # fmt: skip
        raise DataError("has a header, but no events", file.place)


def _in_file(path: Path, names: list[str]) -> set[str]:
    """The names that stand in a file, as JSON writes them."""
    import mmap

    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        return {name for name in names if data.find(json.dumps(name).encode()) >= 0}


def is_remote(path: str) -> bool:
    return "://" in path


def _is_glob(path: str) -> bool:
    return any(c in path for c in "*?[{")


def _escaped(path: str) -> str:
    """A path that Spark does not take for a pattern."""
    return re.sub(r"([\[\]{}*?\\])", r"\\\1", path)


def _root(path: str) -> str:
    """The part of a path that comes before what Spark finds below it."""
    if is_remote(path):
        return path
    whole = str(Path(path).absolute())
    return re.split(r"/[^/]*[*?\[{]", whole)[0] if not Path(path).exists() and _is_glob(path) else whole


def exact(text: str, files: Mapping[str, str]) -> str:
    """A message with the true number of its line: a worker that has a later block of a file can only count from there.

    `files` are the paths by what the files are called.
    """
    found = re.match(r"(.*):@(\d+)\+(\d+)", text)
    if found is None:
        return text
    path = Path(files.get(found[1], found[1]))
    if not path.is_file():
        return text.replace(found[0], f"{found[1]}: line {found[3]} after byte {found[2]}", 1)
    before, left = 0, int(found[2])
    with path.open("rb") as data:
        while left > 0 and (piece := data.read(min(left, 1 << 20))):
            before, left = before + piece.count(b"\n"), left - len(piece)
    return text.replace(found[0], f"{found[1]}:{before + 1 + int(found[3])}", 1)


def first_line(error: BaseException) -> str:
    """What an error says, in a line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return re.sub(r"^\[[A-Z_.0-9]+\] ", "", lines[0]) if lines else type(error).__name__


__all__ = ["Opened", "TextSource", "exact", "is_remote"]
