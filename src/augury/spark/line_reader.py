"""Reads text in a Spark worker: the lines of a file go through the same reader as local files.

A task has the lines of some parts of files, in order. Those of one part are a stream of bytes for the reader of the
format (`sources/csv.py`, `sources/jsonl.py`), whose events leave as columns, and whose problems as rows that say them.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from augury.algebra.plan import Plan, Predicate
from augury.core.clock import Clock, Duration, Timestamp
from augury.core.errors import DataError
from augury.core.limits import LINE as LONGEST_LINE
from augury.core.model import Iri, Value
from augury.engine.decoding import tagged
from augury.sources import FORMATS, Batch, EventHeading, EventTypes, History, Reader, Skipped, SourceFile
from augury.sources.heading import NAMES
from augury.sources.problems import Problem
from augury.sources.sheet import Items, Sheet
from augury.sources.text_cells import TextCells, kinds_of_text
from augury.sources.types import KINDS
from augury.spark.inputs import PATH, PROBLEM, ROW
from augury.spark.layout import FAMILY, Layout, value_kind
from augury.storage.column import Column, coded

LINE, START = "augury line", "augury start"  # beside PATH: a line, and where in its file the part begins that it is in
NO_VERSIONS = "versions of events are no part of a stream on Spark: use a session, or a batch run"
_LASTS = "the event lasts for a time; say how long events last at most: --longest 1h"
_BROKEN = "a line break inside quotes, in a file that is too large to be read at once"
_NUMPY = {"long": np.int64, "double": np.float64}
_ARROW = {"long": pa.int64(), "double": pa.float64(), "string": pa.string(), "json": pa.string()}


@dataclass(frozen=True)
class Header:
    """The columns of a table of text, what stands between cells, and whether the first line of a file names them."""

    names: tuple[str, ...]
    separator: str
    written: bool = True

    @property
    def line(self) -> bytes:
        text = io.StringIO()
        csv.writer(text, delimiter=self.separator, lineterminator="\n").writerow(self.names)
        return text.getvalue().encode()


class Split:
    """The lines that a task has of a file, as a stream of bytes: a read gives those of one batch."""

    live = True  # what is read at once is a block

    def __init__(
        self, path: str, start: int, lines: Iterator[pa.Array], header: Header | None, longest_line: int = LONGEST_LINE
    ) -> None:
        self.path, self.start, self.given, self.longest_line = path, start, lines, longest_line
        self.ahead = header.line if header is not None and (start or not header.written) else b""
        self.quotes = 0
        self.recent: list[tuple[int, pa.Array]] = [(2 if self.ahead else 1, pa.array([], pa.binary()))]

    def read(self, size: int, /) -> bytes:
        lines = next(self.given, None)
        if lines is None:
            return b""
        first, before = self.recent[-1]
        self.recent = [self.recent[-1], (first + len(before), lines)]
        whole = pc.binary_join(pa.LargeListArray.from_arrays(pa.array([0, len(lines)], pa.int64()), lines), b"\n")
        data, self.ahead = self.ahead + whole[0].as_py() + b"\n", b""
        self.quotes += data.count(b'"')
        return data  # type: ignore[no-any-return]

    @property
    def broken(self) -> bool:
        """Whether it begins inside of quotes, or ends there, so that its lines are no rows."""
        return self.start > 0 and self.quotes % 2 == 1

    def line(self, number: int) -> str:
        """A line of those that were read last."""
        for first, lines in self.recent:
            if first <= number < first + len(lines):
                return str(lines[number - first].as_py(), "utf-8", "replace")
        return ""


class _Problems(Skipped):
    """What is wrong with lines, with their numbers."""

    def __init__(self) -> None:
        super().__init__("skip")
        self.found: list[Problem] = []

    def handle_all(self, problems: Any) -> None:
        self.found += problems


class _Reader(Reader):
    """Leaves graphs as the texts that they are: the engine reads them behind the shuffle."""

    def _has_graphs(self, type: str) -> bool:
        return False


@dataclass(frozen=True)
class LineChunk:
    """The events of some lines, and what is wrong with others."""

    sheet: Sheet | Items
    history: History
    problems: list[Problem]
    first: int  # the place of its first row

    def line(self, row: int) -> int:
        return self.sheet.line(row - self.first)


@dataclass(frozen=True)
class LineReader:
    """How the lines of a source are read. `kinds` are those of undeclared columns of text."""

    plan: Plan
    source: SourceFile
    form: str
    clock: Clock
    strict: bool = False
    header: Header | None = None
    kinds: Mapping[str, str] = field(default_factory=dict)
    longest_line: int = LONGEST_LINE  # bytes

    @cached_property
    def known(self) -> EventTypes:
        return EventTypes(self.plan, self.strict)

    @property
    def heading(self) -> EventHeading | None:
        """The columns of a table."""
        if self.header is None:
            return None
        return EventHeading(self.header.names, self.source.names, self.source.type)

    @property
    def undeclared(self) -> bool:
        """Whether events may be of types that are not declared."""
        types = self.known.arities if self.source.type is None else [self.source.type]
        return any(type not in self.plan.declared for type in types)

    def splits(self, batches: Iterator[pa.RecordBatch]) -> Iterator[Split]:
        for (path, start), runs in groupby(_runs(batches), itemgetter(0)):
            yield Split(path, start, (lines for _, lines in runs), self.header, self.longest_line)

    def chunks(self, split: Split) -> Iterator[LineChunk]:
        problems = _Problems()
        reader = _Reader(self.plan, self.clock, problems, self.strict)
        names, type = self.source.names, self.source.type
        for sheet in FORMATS[self.form].read(split, replace(self.source, shown=split.path), None):
            first, problems.found = reader.row, []
            if isinstance(sheet, Items):
                history = reader.objects(sheet, names, type)
            else:
                history = reader.sheet(self._typed(sheet), names, type)
            yield LineChunk(sheet, history, problems.found, first)

    def _typed(self, sheet: Sheet) -> Sheet:
        assert self.header is not None
        if sheet.names != self.header.names:
            columns, others = ", ".join(self.header.names), ", ".join(sheet.names)
            raise DataError(f"has the columns {others}, and others have {columns}", sheet.top)
        cells = [
            TextCells(c.array, self.kinds.get(n)) if isinstance(c, TextCells) else c
            for n, c in zip(sheet.names, sheet.cells, strict=True)
        ]
        return replace(sheet, cells=cells)

    def key(self, type: Predicate) -> str:
        """What the column of types says of events of a type."""
        return _named(type) if type[0] in self.known.arities else type[0]


def _runs(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[tuple[str, int], pa.Array]]:
    """Lines that follow one another in a file, with its path and the place where their part of it begins."""
    for batch in batches:
        lines, path, start = (batch.column(name) for name in (LINE, PATH, START))
        ends = sorted({end for column in (path, start) for end in pc.run_end_encode(column).run_ends.to_pylist()})
        for lo, hi in zip([0, *ends], ends, strict=False):
            yield (path[lo].as_py(), start[lo].as_py()), lines[lo:hi]


# The first pass


@dataclass
class Summary:
    """The summary of a source after one pass: how many events there are of each type, and their columns.

    Types are named as `wind/2`. `arguments` are the kinds of the values in each place, `columns` the kinds that all cells of
    a column of text are of. `broken` is whether line breaks stand inside quotes where Spark has cut a file.
    """

    counts: dict[str, int] = field(default_factory=dict)
    unknown: dict[str, int] = field(default_factory=dict)
    arguments: dict[str, list[list[str]]] = field(default_factory=dict)
    columns: dict[str, list[str]] = field(default_factory=dict)
    points: bool = True
    ids: bool = False
    ops: bool = False
    versions: bool = False
    broken: bool = False
    first: int | None = None  # the least end of an event
    last: int | None = None

    @property
    def types(self) -> list[Predicate]:
        return [(name, int(arity)) for name, _, arity in (key.rpartition("/") for key in self.counts)]

    def kinds(self, type: Predicate) -> list[list[str]]:
        return self.arguments[_named(type)]

    def merge(self, other: Summary) -> None:
        for mine, theirs in ((self.counts, other.counts), (self.unknown, other.unknown)):
            for name, count in theirs.items():
                mine[name] = mine.get(name, 0) + count
        for name, places in other.arguments.items():
            kinds_so_far = self.arguments.get(name, [[] for _ in places])
            self.arguments[name] = [sorted({*item, *more}) for item, more in zip(kinds_so_far, places, strict=True)]
        for name, kinds in other.columns.items():
            self.columns[name] = [kind for kind in self.columns.get(name, kinds) if kind in kinds]
        self.points &= other.points
        self.ids |= other.ids
        self.ops |= other.ops
        self.versions |= other.versions
        self.broken |= other.broken
        self.first = min((end for end in (self.first, other.first) if end is not None), default=None)
        self.last = max((end for end in (self.last, other.last) if end is not None), default=None)


def summary_of(reader: LineReader, chunk: LineChunk, before: Summary) -> Summary:
    """The summary of some lines; for columns, the kinds that they share with those before."""
    history, sheet = chunk.history, chunk.sheet
    batches = {_named(type): batch for type, batch in history.batches.items()}
    return Summary(
        {name: len(batch) for name, batch in batches.items()},
        history.unknown,
        {name: [_kinds_in(column) for column in batch.columns] for name, batch in batches.items()},
        dict(_kinds_of_columns(sheet, before.columns)) if isinstance(sheet, Sheet) and reader.undeclared else {},
        all(batch.start is batch.end or (batch.start == batch.end).all() for batch in batches.values()),
        any(batch.ids is not None for batch in batches.values()),
        bool(history.revoked),
        history.has_versions or any(item.version is not None for _, item in history.revoked),
        first=min((int(batch.end.min()) for batch in batches.values() if len(batch)), default=None),
        last=max((int(batch.end.max()) for batch in batches.values() if len(batch)), default=None),
    )


def _named(type: Predicate) -> str:
    return f"{type[0]}/{type[1]}"


def _kinds_in(column: Column) -> list[str]:
    """The kinds of the values of a column."""
    if isinstance(column, np.ndarray):
        if column.dtype.kind == "f":
            return [] if np.isnan(column).all() else ["float"]
        return ["bool" if column.dtype.kind == "b" else "int"]
    examples = {type(value): value for value in column.values}
    return [value_kind(value) for value in examples.values() if value is not None]


def _kinds_of_columns(sheet: Sheet, before: Mapping[str, list[str]]) -> Iterator[tuple[str, list[str]]]:
    for name, cells in zip(sheet.names, sheet.cells, strict=True):
        if isinstance(cells, TextCells):
            yield name, kinds_of_text([cells.array], before.get(name, KINDS))


def summarise(reader: LineReader, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The first pass: a summary as JSON for each task."""
    summary = Summary()
    for split in reader.splits(batches):
        for chunk in reader.chunks(split):
            summary.merge(summary_of(reader, chunk, summary))
        summary.broken |= reader.form == "csv" and split.broken
    yield pa.record_batch({"summary": pa.array([json.dumps(vars(summary))])})


# Events


@dataclass(frozen=True)
class EventColumns:
    """The columns of events, for all types that may come. Where they are all points, one column has their times."""

    reader: LineReader
    layout: Layout
    points: bool
    ids: bool
    ops: bool
    versions: bool = False

    @cached_property
    def schema(self) -> pa.Schema:
        times = [NAMES.time] if self.points else [NAMES.start, NAMES.end]
        return pa.schema(
            [
                (NAMES.type, pa.string()),
                *((name, pa.int64()) for name in times),
                *([(NAMES.id, pa.string())] if self.ids else []),
                *([(NAMES.op, pa.string())] if self.ops else []),
                *([(NAMES.version, pa.int64())] if self.versions else []),
                *((column, self.layout.arrow(column)) for column in self.layout.columns),
                *((name, pa.string()) for name in (PATH, PROBLEM, ROW)),
            ]
        )

    @property
    def sql(self) -> str:
        """The columns as Spark writes a schema."""
        return ", ".join(f"`{f.name}` {_SQL[f.type]}" for f in self.schema)

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        reader = self.reader
        for split in reader.splits(batches):
            for chunk in reader.chunks(split):
                yield from self._events(chunk)
                if chunk.problems:
                    yield self._problems(split, chunk.problems)
            if reader.form == "csv" and split.broken:
                raise DataError(_BROKEN, split.path, "split it into smaller files")

    def _events(self, chunk: LineChunk) -> Iterator[pa.RecordBatch]:
        for type, whole in chunk.history.batches.items():
            batch = whole if self.versions else self._without_versions(chunk, whole)
            kept = self._without_lasting(chunk, batch) if self.points else batch
            if len(kept):
                yield self._batch(type, kept)
        if chunk.history.revoked:
            revoked = chunk.history.revoked
            if not self.versions:
                numbered = [row for row, item in revoked if item.version is not None]
                chunk.problems.extend((chunk.line(row), DataError(NO_VERSIONS)) for row in numbered)
                revoked = [(row, item) for row, item in revoked if item.version is None]
            ids = [item.id for _, item in revoked]
            versions = pa.array([item.version for _, item in revoked], pa.int64())
            made = {NAMES.id: pa.array(ids), NAMES.op: _repeated("revoke", len(ids)), NAMES.version: versions}
            yield self._record(len(ids), made)

    def _without_versions(self, chunk: LineChunk, batch: Batch) -> Batch:
        """The events without a version; those that have one are wrong where they were not expected, in a stream."""
        if batch.versions is None:
            return batch
        numbered = batch.versions != 0
        chunk.problems.extend((chunk.line(row), DataError(NO_VERSIONS)) for row in batch.rows[numbered].tolist())
        return batch.some(np.flatnonzero(~numbered))

    def _without_lasting(self, chunk: LineChunk, batch: Batch) -> Batch:
        """The events that are points; those that are none are wrong."""
        if batch.start is batch.end or not (lasts := batch.start != batch.end).any():
            return batch
        chunk.problems.extend((chunk.line(row), DataError(_LASTS)) for row in batch.rows[lasts].tolist())
        return batch.some(np.flatnonzero(~lasts))

    def _batch(self, type: Predicate, batch: Batch) -> pa.RecordBatch:
        made = {
            NAMES.type: _repeated(self.reader.key(type), len(batch)),
            NAMES.time: pa.array(batch.end),
            NAMES.start: pa.array(batch.start),
            NAMES.end: pa.array(batch.end),
        }
        if batch.ids is not None:
            made[NAMES.id] = pa.array(batch.ids, pa.string())
        if batch.versions is not None:
            made[NAMES.version] = pa.array(batch.versions)
        if type in self.layout.kinds:
            for slot, kind, column in zip(self.layout.slots[type], self.layout.kinds[type], batch.columns, strict=True):
                made[slot] = _kept(column, FAMILY[kind])
        return self._record(len(batch), made)

    def _problems(self, split: Split, problems: list[Problem]) -> pa.RecordBatch:
        made = {
            PATH: _repeated(split.path, len(problems)),
            PROBLEM: pa.array([error.message for _, error in problems], pa.string()),
            ROW: pa.array([split.line(number) for number, _ in problems], pa.string()),
        }
        return self._record(len(problems), made)

    def _record(self, rows: int, columns: Mapping[str, pa.Array]) -> pa.RecordBatch:
        """Rows; a column that is not given is null."""
        arrays = [columns[f.name] if f.name in columns else pa.nulls(rows, f.type) for f in self.schema]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


_SQL = {pa.string(): "string", pa.int64(): "bigint", pa.float64(): "double"}


def _repeated(text: str, times: int) -> pa.Array:
    return pa.repeat(pa.scalar(text, pa.string()), times)


def _kept(column: Column, family: str) -> pa.Array:
    """A column as the layout keeps it."""
    if isinstance(column, np.ndarray) and family in _NUMPY:
        return pa.array(column.astype(_NUMPY[family]), from_pandas=True)  # NaN is null
    result = coded(column)
    read = tagged if family == "json" else _bare
    values = [None if value is None else read(value) for value in result.values]
    return pa.array(values, _ARROW[family]).take(pa.array(result.index, mask=result.index < 0))


def _bare(value: Value) -> object:
    match value:
        case Timestamp() | Duration():
            return value.us
        case Iri():
            return value.text
        case bool():
            return int(value)
    return value
