"""CSV on Spark: read by Spark as text, its cells converted in Catalyst.

Files of one source may have their columns in different orders: those with one header are read together. Spark reads line
by line where no line break stands inside quotes, which one look at the lines tells.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from io import BytesIO

import pyarrow as pa
from pyspark.sql import Column, DataFrame, DataFrameReader, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.readwriter import DataStreamReader

from augury.algebra.plan import Attribute, Plan, Predicate
from augury.errors import DataError
from augury.sources import csv
from augury.sources.files import SourceFile, headerless
from augury.sources.heading import EventHeading
from augury.sources.reader import EventTypes, clock_hint
from augury.sources.types import KINDS
from augury.spark.conversions import CONVERSIONS, PLAIN, all_plain, from_text, misread_text
from augury.spark.inputs import PATH, PROBLEM, ROW, Part, Source

HEAD = 1 << 16  # bytes of a file that tell what it looks like
_CORRUPT = "augury corrupt"
_REPLACED = "\ufffd"  # what Spark reads where a file is not UTF-8
_SAMPLE = 100  # rows that are searched for a time
_MOST_TYPES = 1000  # of a file that are found at a glance


@dataclass(frozen=True)
class Look:
    """What one pass over the lines tells: whether fields go over several of them, whether all is UTF-8, and which types
    there are; None where that needs a second look."""

    multiline: bool = True
    valid: bool = True
    types: frozenset[str] | None = None


@dataclass(frozen=True)
class Table:
    """Files with one header. Their columns are `c0`, `c1`, …, since names of columns may differ in case alone."""

    source: SourceFile
    files: tuple[SourceFile, ...]
    names: tuple[str, ...]
    separator: str
    named: bool  # whether the first line is the header

    @property
    def heading(self) -> EventHeading:
        return EventHeading(self.names, self.source.names, self.source.type, f"{self.files[0].place}:1")

    def frame(
        self, reader: DataFrameReader | DataStreamReader, paths: Sequence[str], look: Look, streaming: bool
    ) -> DataFrame:
        """Its lines, a column of text for each of the file, with what is wrong with them."""
        names = self.names if streaming else [f"c{i}" for i in range(len(self.names))]
        schema = ", ".join(f"`{name.replace('`', '``')}` string" for name in (*names, _CORRUPT))
        options: dict[str, str | bool] = {
            "mode": "PERMISSIVE",
            "columnNameOfCorruptRecord": _CORRUPT,
            "sep": self.separator,
            "quote": '"',
            "escape": '"',
            "header": self.named,
            "multiLine": look.multiline,
            # In a stream files come that nobody has seen: Spark compares their headers with the first one.
            "enforceSchema": not streaming,
        }
        frame = reader.schema(schema).options(**options).csv(paths[0] if streaming else paths)  # type: ignore[arg-type]
        cells = [self._cell(F.col(f"`{name}`")).alias(f"c{i}") for i, name in enumerate(names)]
        return frame.select(*cells, F.col("_metadata.file_path").alias(PATH), F.col(f"`{_CORRUPT}`"))

    def _cell(self, column: Column) -> Column:
        nulls = ["", *self.source.nulls]
        return F.when(~column.isin(nulls), column) if self.source.nulls else column

    def cell(self, name: str) -> Column:
        return F.col(f"c{self.names.index(name)}")


def tables(source: SourceFile, files: Iterable[SourceFile], plan: Plan) -> list[Table]:
    """The files of a source by their headers; those that are empty have nothing to say."""
    found: dict[tuple[tuple[str, ...], str, bool], list[SourceFile]] = {}
    for file in files:
        table = _table(source, file, head_of(file), plan)
        if table is not None:
            found.setdefault((table.names, table.separator, table.named), []).append(file)
    return [Table(source, tuple(some), *key) for key, some in found.items()]


def table_of(source: SourceFile, lines: Sequence[str], plan: Plan) -> Table | None:
    """A source of another machine, by the first lines that Spark reads of it."""
    return _table(source, source, "\n".join(lines).encode(), plan)


def head_of(file: SourceFile) -> bytes:
    """The first bytes of a file of this machine."""
    try:
        with pa.input_stream(file.path, compression=file.compression) as stream:
            return bytes(stream.read(HEAD)).removeprefix(b"\xef\xbb\xbf")
    except OSError as error:
        raise DataError(f"cannot be read: {error}", file.place) from None


def _table(source: SourceFile, file: SourceFile, head: bytes, plan: Plan) -> Table | None:
    """What the first lines of a file say of it."""
    if len(head) == HEAD:
        head = head[: head.rfind(b"\n") + 1] or head
    named = True

    def unnamed(cells: Sequence[str], place: str) -> Sequence[str] | None:
        nonlocal named
        found = headerless(tuple(cells), file, plan)
        named = found is None
        return found

    sheet = next(csv.read(BytesIO(head), file.place, (), unnamed), None)
    if sheet is None:
        return None
    table = Table(source, (file,), sheet.names, csv.separator_of(head), named)
    table.heading.check(plan)
    return table


def look(spark: SparkSession, tables: Mapping[Table, Sequence[str]]) -> Look:
    """One pass over the lines: a quote that is not closed on its line is closed on another."""
    line = F.col("value")
    quoted, table = F.contains(line, F.lit('"')), next(iter(tables))
    quotes = F.length(line) - F.length(F.translate(line, '"', ""))
    aggregates = [F.max(quoted & (quotes % 2 == 1)), F.min(F.is_valid_utf8(line)), F.max(quoted)]
    if len(tables) == 1 and table.source.type is None:
        at = table.names.index(table.source.names.type)
        cell = (
            F.substring_index(line, table.separator, 1)
            if at == 0
            else F.split_part(line, F.lit(table.separator), F.lit(at + 1))
        )
        aggregates.append(F.slice(F.collect_set(cell), 1, _MOST_TYPES))
    lines = spark.read.text([path for paths in tables.values() for path in paths])
    odd, valid, any_quoted, *types = lines.agg(*aggregates).collect()[0]
    known = types and not any_quoted and len(types[0]) < _MOST_TYPES
    return Look(bool(odd), valid is not False, frozenset(types[0]) if known else None)


class Tables:
    """The tables of one source, as sources of events. In batch, one pass finds the types that are there and the kinds of
    undeclared columns; where all is declared and of one type, there is none.
    """

    def __init__(
        self, found: Sequence[tuple[Table, DataFrame]], plan: Plan, look: Look, streaming: bool, strict: bool
    ) -> None:
        self.found, self.plan, self.look, self.streaming = found, plan, look, streaming
        self.source = found[0][0].source
        self.known = EventTypes(plan, strict)

    def sources(self, numbers: bool) -> list[Source]:
        return [self._source(table, frame, numbers) for table, frame in self.found]

    # What one pass tells

    @cached_property
    def _passed(self) -> tuple[dict[str | None, int], dict[str, str]]:
        """How many rows of each type there are, and the kinds of undeclared columns."""
        derived = {name for name, _ in self.plan.derived}
        asked = self.known.arities if self.source.type is None else [self.source.type]
        undeclared = {name for name in asked if name not in self.plan.declared}
        if self.look.types is not None and not undeclared - derived:
            # A header and empty lines are no events; one of a type that is called like the header needs a second look.
            header = {self.source.names.type} - self.known.arities.keys() if self.found[0][0].named else set()
            there = self.look.types - header - {""}
            if there <= self.known.arities.keys() - undeclared:
                return dict.fromkeys(there, 0), {}
        return self._pass(bool(undeclared))

    def _pass(self, undeclared: bool) -> tuple[dict[str | None, int], dict[str, str]]:
        """What one pass tells: the types, and where columns are undeclared, which kinds all their cells are of."""
        names = self.source.names
        data = [c for table, _ in self.found for c in table.heading.data] if undeclared else []
        votes = {c: set(PLAIN) for c in data}
        counts: dict[str | None, int] = {}
        for table, frame in self.found:
            type = table.cell(names.type) if self.source.type is None else F.lit(self.source.type)
            own = [c for c in votes if c in table.names]
            kinds = [all_plain(kind, table.cell(c)).alias(f"{kind} {c}") for c in own for kind in PLAIN]
            whole = frame.where(F.col(f"`{_CORRUPT}`").isNull())
            for row in (
                whole.groupBy(type.alias("augury type")).agg(F.count("*").alias("augury rows"), *kinds).collect()
            ):
                counts[row["augury type"]] = counts.get(row["augury type"], 0) + row["augury rows"]
                for c in own:
                    votes[c] &= {kind for kind in PLAIN if row[f"{kind} {c}"]}
        return counts, {c: next((kind for kind in KINDS if kind in kept), "string") for c, kept in votes.items()}

    @property
    def _types(self) -> list[str]:
        """The types that may be there."""
        if self.source.type is not None:
            return [self.source.type]
        if self.streaming:
            return sorted(self.known.arities)
        return sorted(t for t in self._passed[0] if t is not None)

    # Sources

    def _source(self, table: Table, frame: DataFrame, numbers: bool) -> Source:
        refused: dict[str, str] = {}
        args: dict[Predicate, list[tuple[str, Attribute]]] = {}
        for name in self._types:
            found = self._args(table, name)
            if isinstance(found, DataError):
                if self.source.type is not None:
                    raise DataError(found.message, f"{table.files[0].place}:2", found.hint)
                refused[name] = found.message
            elif found is not None:
                args[name, len(found)] = found
        made = {(c, a.type): f"{c} as {a.type}" for pairs in args.values() for c, a in pairs}
        own = {type: frozenset(a.name for a in self.plan.declared.get(type[0], ())) for type in args}
        parts = tuple(
            Part(
                type,
                tuple(made[c, a.type] for c, a in pairs),
                tuple(CONVERSIONS[a.type].kind for _, a in pairs),
                own=own[type],
            )
            for type, pairs in args.items()
        )
        mixed = self.source.type is None
        counts = self._passed[0] if mixed and not self.streaming else {}
        unknown = {
            t: n for t, n in counts.items() if t is not None and t not in self.known.arities and t not in refused
        }
        names = table.source.names
        aside = {names.known, *(() if mixed else (names.type,))}
        roles = [n for n in dict.fromkeys(names.all) if n in table.names and n not in aside]
        return Source(
            self._converted(table, frame, made, args, roles),
            parts,
            names,
            mixed,
            frozenset(self.known.arities),
            self.plan.prefixes,
            refused,
            numbers,
            None if self.streaming else first_time(table, frame),
            unknown,
            frozenset(t for t in counts if t is not None) if counts else None,
        )

    def _args(self, table: Table, name: str) -> list[tuple[str, Attribute]] | DataError | None:
        """The columns of the arguments of a type, why its rows are no events, or None where it is not known at all."""
        problem = self.known.unknown(name)
        if problem is not None or name not in self.known.arities:
            return problem
        declared = name in self.plan.declared
        if self.streaming and not declared:
            if any(type == name for type, _ in self.plan.derived) and self.source.type is None:
                return DataError(
                    f"`{name}` is derived by the program, but the input has such events",
                    hint=f"declare `event {name}(…).`",
                )
            columns = table.heading.data
            raise DataError(
                f"the columns of `{name}` have no types, which a stream cannot wait for",
                self.source.place,
                f"declare `event {name}({', '.join(f'{c}: …' for c in columns)}).`",
            )
        try:
            args = table.heading.args(name, self.plan)
        except DataError as error:
            return error
        problem = self.known.width(name, len(args))
        if problem is not None:
            return problem
        kinds: Mapping[str, str] = {} if declared else self._passed[1]
        return [(column, attribute or Attribute(column, kinds[column])) for column, attribute in args]

    def _converted(
        self,
        table: Table,
        frame: DataFrame,
        made: Mapping[tuple[str, str], str],
        args: Mapping[Predicate, list[tuple[str, Attribute]]],
        roles: Sequence[str],
    ) -> DataFrame:
        """The cells as values, and what is wrong with each row: first all of them, then what could not be read."""
        values = [from_text(type, table.cell(c), self.plan.prefixes).alias(name) for (c, type), name in made.items()]
        read = frame.select("*", *values)
        problem = F.when(F.col(f"`{_CORRUPT}`").isNotNull(), F.lit("a line that has not as many fields as the header"))
        if not self.look.valid:
            broken = reduce(
                lambda x, y: x | y,
                (F.coalesce(F.contains(table.cell(n), F.lit(_REPLACED)), F.lit(False)) for n in table.names),
            )
            problem = problem.when(broken, F.lit("is not UTF-8 text"))
        for (c, type), name in made.items():
            wrong = misread_text(type, table.cell(c), F.col(f"`{name}`"))
            if self.source.type is None:
                users = [
                    t for (t, _), pairs in args.items() if any(column == c and a.type == type for column, a in pairs)
                ]
                wrong = table.cell(self.source.names.type).isin(users) & wrong
            problem = problem.when(wrong, F.concat(F.lit(f"`{c}` is declared as {type}, but is "), table.cell(c)))
        given = F.struct(*(table.cell(n).alias(n) for n in table.names))  # written out where a row is wrong
        return read.select(
            *(table.cell(n).alias(n) for n in roles),
            *(F.col(f"`{name}`") for name in made.values()),
            F.col(f"`{PATH}`"),
            problem.alias(PROBLEM),
            given.alias(ROW),
        )


def first_time(table: Table, frame: DataFrame) -> object:
    """A time that tells the clock."""
    names = table.source.names
    there = [n for n in (names.time, names.end, names.start) if n in table.names]
    texts = [text for row in frame.select(*(table.cell(n) for n in there)).limit(_SAMPLE).collect() for text in row]
    found = next((hint for text in texts if (hint := clock_hint(text)) is not None), None)
    return next((text for text in texts if text), 0) if found is None else found
