"""CSV and JSON lines on Spark: Spark reads lines, from wherever they are, and workers make events of them.

What has to be known before, which types there are and of which kinds their undeclared arguments are, is found by one pass,
with the same reader. A stream has none, and goes by what is declared.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from io import BytesIO

import pyarrow as pa
from pyspark.sql import DataFrame, DataFrameReader
from pyspark.sql import functions as F
from pyspark.sql.streaming.readwriter import DataStreamReader

from augury.algebra.plan import Attribute, Plan, Predicate
from augury.core.clock import Clock
from augury.core.errors import DataError
from augury.core.limits import LINE as LONGEST_LINE
from augury.sources import FORMATS, EventHeading, Reader, Skipped, SourceFile
from augury.sources.blocks import Block
from augury.sources.csv import read as read_csv
from augury.sources.csv import separator_of
from augury.sources.files import headerless
from augury.sources.heading import NAMES
from augury.sources.json_array import as_lines
from augury.sources.reader import first_of
from augury.spark.inputs import PATH, EventFrame, TypeColumns
from augury.spark.layout import Layout, declared_kind
from augury.spark.line_reader import LINE, START, EventColumns, Header, LineReader, Summary, summarise

NO_TIME = ""  # of files whose events say no time
_HEAD = 1 << 16  # bytes of a file that tell what it looks like
_DERIVED = "`{0}` is derived by the program, but the input has such events; declare `event {0}(…).`"


def lines(reader: DataFrameReader | DataStreamReader, paths: list[str]) -> DataFrame:
    """The lines of files, with their paths and where the parts begin that Spark has cut them into. All bytes are kept."""
    text = reader.option("lineSep", "\n").text(paths if isinstance(reader, DataFrameReader) else paths[0])  # type: ignore[arg-type]
    return text.select(
        F.col("value").cast("binary").alias(LINE),
        F.col("_metadata.file_path").alias(PATH),
        F.col("_metadata.file_block_start").alias(START),
    )


def lines_of_arrays(reader: DataFrameReader | DataStreamReader, paths: list[str]) -> DataFrame:
    """The elements of JSON arrays as lines, and the lines of files that are none: a task reads each file as a whole."""
    whole = reader.text(paths if isinstance(reader, DataFrameReader) else paths[0], wholetext=True)  # type: ignore[arg-type]
    files = whole.select(F.col("value").cast("binary").alias(LINE), F.col("_metadata.file_path").alias(PATH))
    return files.mapInArrow(_elements, f"`{LINE}` binary, `{PATH}` string, `{START}` bigint")


def _elements(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for data, path in zip(*(batch.column(name).to_pylist() for name in (LINE, PATH)), strict=True):
            elements = list(as_lines(data))
            columns = [pa.array(elements, pa.binary()), pa.array([path] * len(elements)), pa.array([0] * len(elements))]
            yield pa.RecordBatch.from_arrays(columns, [LINE, PATH, START])


def head_of(file: SourceFile) -> bytes:
    """The first lines of a file of this machine."""
    try:
        with pa.input_stream(file.path, compression=file.compression) as stream:
            head = more = bytes(stream.read(_HEAD))
            while more and b"\n" not in head:
                if len(head) > LONGEST_LINE:
                    raise Block(b"", 1, LONGEST_LINE).problem(file.location)
                head += (more := bytes(stream.read(max(_HEAD, len(head)))))
    except OSError as error:
        raise DataError(f"cannot be read: {error}", file.location) from None
    return head if len(head) < _HEAD else head[: head.rfind(b"\n") + 1] or head


def header_of(file: SourceFile, head: bytes, plan: Plan) -> Header | None:
    """What the first lines of a CSV file say of it; nothing of an empty one."""
    written = True

    def unnamed(cells: Sequence[str], location: str) -> Sequence[str] | None:
        nonlocal written
        result = headerless(tuple(cells), file, plan)
        written = result is None
        return result

    sheet = next(read_csv(BytesIO(head), file.location, (), unnamed), None)
    if sheet is None:
        return None
    Reader(plan, Clock(), Skipped("skip")).sheet(sheet, file.names, file.type)  # which says what is wrong with columns
    return Header(sheet.names, separator_of(head), written)


def first_time(heads: Iterable[tuple[SourceFile, bytes]], form: str, plan: Plan) -> object:
    """The first time of files, which determines the clock: NO_TIME where they have none, None where they have no
    events.
    """
    there = False
    for file, head in heads:
        for part in FORMATS[form].read(BytesIO(head), file, plan):
            there = there or len(part) > 0 or bool(part.problems)
            if (result := first_of(part, file.names, file.type)) is not None:
                return result
    return NO_TIME if there else None


@dataclass(frozen=True)
class TextTable:
    """Files with one header; those of JSON lines have none."""

    lines: DataFrame
    header: Header | None = None


@dataclass(frozen=True)
class TextFiles:
    """The files of a source, of one form. `first` is a time of theirs."""

    source: SourceFile
    plan: Plan
    form: str
    tables: Sequence[TextTable]
    first: object
    strict: bool = False
    lasting: bool = True  # whether events of a stream of JSON lines may last for a time
    longest_line: int = LONGEST_LINE  # bytes

    def sample(self, of_rows: bool = False) -> object:
        return None if self.first is NO_TIME else self.first

    def sources(self, clock: Clock) -> list[EventFrame]:
        """The events as columns of the kinds of the layout."""
        readers = [
            LineReader(
                self.plan, self.source, self.form, clock, self.strict, table.header, longest_line=self.longest_line
            )
            for table in self.tables
        ]
        if self.tables[0].lines.isStreaming:
            return [self._stream(self.tables[0], readers[0])]
        passed = [summarised(table.lines, reader) for table, reader in zip(self.tables, readers, strict=True)]
        all_tables = Summary()
        for _, summary in passed:
            all_tables.merge(summary)
        event_frames: list[EventFrame] = []
        for reader, (lines, summary) in zip(readers, passed, strict=True):
            reader = replace(reader, kinds={name: kinds[0] for name, kinds in all_tables.columns.items()})
            types_of_plan = [type for type in summary.types if type in self.plan.event_types]
            kinds = {type: tuple(self._kinds(type, reader, all_tables.kinds(type))) for type in types_of_plan}
            ids = summary.ids or summary.ops
            rows = EventColumns(reader, Layout(kinds), summary.points, ids, summary.ops, summary.versions)
            types = frozenset(name for name, _ in summary.types)
            span = None if summary.first is None or summary.last is None else (summary.first, summary.last)
            event_frames.append(replace(_source(rows, lines), unknown=summary.unknown, types=types, span=span))
        return event_frames

    def _kinds(self, type: Predicate, reader: LineReader, kinds_by_column: Sequence[Sequence[str]]) -> Iterator[str]:
        """The kinds of the arguments of a type: as declared, else what all cells of a column, or all values, are."""
        declared = self.plan.declared.get(type[0])
        if declared is None and reader.heading is not None:
            yield from (reader.kinds[column] for column, _ in reader.heading.args(type[0], self.plan))
            return
        for attribute, kinds in zip(declared or (Attribute(""),) * type[1], kinds_by_column, strict=True):
            if attribute.type != "any":
                yield _kind(attribute)
            else:
                yield "json" if len(kinds) > 1 else kinds[0] if kinds else "string"

    def _stream(self, table: TextTable, reader: LineReader) -> EventFrame:
        plan, names = self.plan, self.source.names
        derived = {name for name, _ in plan.derived} - plan.declared.keys()
        if reader.heading is not None:
            types = reader.known.arities.keys() - derived if self.source.type is None else {self.source.type}
            self._check_declared(types, reader.heading)
        kinds: dict[Predicate, tuple[str, ...]] = {}
        for name, arity in plan.event_types:
            if name in plan.declared:
                kinds[name, len(plan.declared[name])] = tuple(map(_kind, plan.declared[name]))
            elif name not in derived:
                kinds[name, arity] = ("json",) * arity
        said = set(names.all) if table.header is None else set(table.header.names)
        lasting = self.lasting if table.header is None else bool({names.start, names.end} & said)
        rows = EventColumns(reader, Layout(kinds), not lasting, bool({names.id, names.op} & said), names.op in said)
        refused = {reader.key(type): _DERIVED.format(type[0]) for type in plan.event_types if type[0] in derived}
        return replace(_source(rows, table.lines), refused=refused)

    def _check_declared(self, types: Iterable[str], heading: EventHeading) -> None:
        """Refuses a stream of text cells whose types are not declared."""
        name = min((type for type in types if type not in self.plan.declared), default=None)
        if name is not None:
            columns = ", ".join(f"{column}: …" for column in heading.data)
            raise DataError(
                f"the columns of `{name}` have no types, and a stream cannot infer them",
                self.source.location,
                f"declare `event {name}({columns}).`",
            )


def summarised(lines: DataFrame, reader: LineReader) -> tuple[DataFrame, Summary]:
    """The summary of lines after one pass; where Spark has cut a file inside quotes, with the lines of each file in
    one task.
    """
    result = Summary()
    for row in lines.mapInArrow(partial(summarise, reader), "summary string").collect():
        result.merge(Summary(**json.loads(row["summary"])))
    return summarised(_in_order(lines), reader) if result.broken else (lines, result)


def _source(rows: EventColumns, lines: DataFrame) -> EventFrame:
    parts = tuple(
        TypeColumns(type, rows.layout.slots[type], kinds, rows.reader.key(type))
        for type, kinds in sorted(rows.layout.kinds.items())
    )
    return EventFrame(lines.mapInArrow(rows, rows.sql), parts, NAMES, True)


def _kind(attribute: Attribute) -> str:
    """The kind of a declared argument: numbers stay what they are."""
    return "json" if attribute.type == "number" else declared_kind(attribute.type)


def _in_order(lines: DataFrame) -> DataFrame:
    """The lines of each file in one task, in their order."""
    numbered = lines.withColumn("number", F.monotonically_increasing_id()).repartition(PATH)
    return numbered.sortWithinPartitions(PATH, START, "number").select(LINE, PATH, F.lit(0).cast("bigint").alias(START))
