"""DataFrames of events in any shape, as one DataFrame in the layout of the program. All of it runs in Catalyst."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from augury.algebra.graph_queries import stream_type
from augury.algebra.plan import INPUT, Attribute, Plan, Predicate
from augury.algebra.rule_terms import makes_windows
from augury.compiled import Compiled
from augury.core.bounds import MAX_TIME, MIN_TIME
from augury.core.clock import Clock, number_of
from augury.core.errors import DataError, RunError, misspelt, nearest
from augury.core.model import VERSION_NEEDS_ID
from augury.core.time_units import TIME_UNITS, UNCLEAR, likely_range, other_unit
from augury.settings import Settings, choose_clock
from augury.sources import OnError
from augury.sources.heading import ColumnNames, EventHeading
from augury.sources.packed_cells import is_index
from augury.spark.casts import cast
from augury.spark.conversions import (
    CONVERSIONS,
    NUMBERS,
    Prefixes,
    epoch_micros,
    finite,
    first_problem,
    from_column,
    literal_map,
    micros,
    time_of_text,
)
from augury.spark.layout import Layout, common_kind, declared_kind, kinds_of_all
from augury.spark.metrics import OBSERVED
from augury.spark.nested import functor_of, natural_kind, with_paths
from augury.spark.spelling import looks_misspelt

# What the DataFrame of a file has beside its columns: what is wrong with a row, its file, and how it was given.
PROBLEM, PATH, ROW = "augury problem", "augury path", "augury row"
_WRONG = "augury wrong"  # what is wrong with a row, once its times and values are read
_numbers = itertools.count()
_SQL = {
    "int": "bigint",
    "float": "double",
    "number": "double",
    "bool": "boolean",
    "string": "string",
    "timestamp": "timestamp",
}


@dataclass(frozen=True)
class TypeColumns:
    """The events of one type in a DataFrame: the column and kind of each argument.

    Of a mixed DataFrame, `key` is what its type column says.
    """

    type: Predicate
    columns: tuple[str, ...]
    kinds: tuple[str, ...]
    key: str = ""

    @property
    def says(self) -> str:
        return self.key or self.type[0]

    def owns(self, name: str) -> bool:
        """Whether a column is an attribute, so that it says nothing else of these events."""
        return name in self.columns


@dataclass(frozen=True)
class InputReading:
    """How all sources of a run are read: into which layout, on which clock, with which columns, and what of wrong rows."""

    layout: Layout
    clock: Clock
    ops: bool
    ids: bool
    points: bool
    on_error: OnError = "stop"
    strict: bool = False
    versions: bool = False


@dataclass(frozen=True)
class EventFrame:
    """A DataFrame of events: of one type, or, `mixed`, of several, whose names are in a column.

    `refused` says why rows of some types are no events. `unknown` counts the events of types that the program does not know,
    where that is known, and `types` are those there. `facts_of` is the predicate whose facts its rows assert or retract,
    where they do. `zones` are those of the arguments of types: of declared timestamps that name none. `span` has the least
    and the greatest end of an event, where they are known.
    """

    frame: DataFrame
    parts: tuple[TypeColumns, ...]
    names: ColumnNames
    mixed: bool = False
    known: frozenset[str] = frozenset()
    prefixes: Prefixes = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)
    unknown: Mapping[str, int] = field(default_factory=dict)
    types: frozenset[str] | None = None
    facts_of: str = ""
    zones: Mapping[str, str] = field(default_factory=dict)
    span: tuple[int, int] | None = None

    @property
    def tells_time(self) -> bool:
        """Whether it says how far the events are."""
        return not self.facts_of

    @property
    def counts(self) -> bool:
        """Whether its rows are events of the user, and no facts or heartbeats."""
        return self.tells_time and not (self.parts and self.parts[0].type[0].startswith("#"))

    @property
    def read(self) -> bool:
        """Whether the reader of files has looked at its rows, and says what is wrong with each."""
        return PROBLEM in self.fields

    @property
    def idle(self) -> bool:
        """Whether it is a file without events for the program, which may still have malformed rows."""
        return self.read and not self.parts

    @property
    def title(self) -> str:
        if self.facts_of:
            return f"the facts `{self.facts_of}`"
        return "the events" if self.mixed else f"`{self.parts[0].type[0]}`"

    @cached_property
    def fields(self) -> dict[str, T.DataType]:
        return {f.name: f.dataType for f in self.frame.schema.fields}

    @property
    def used(self) -> list[str]:
        """The columns that say something of its events: attributes, type, times, id, op and version."""
        n = self.names
        said = {n.type, n.time, n.start, n.end, n.id, n.op, n.version, *self.times}
        said |= {column for part in self.parts for column in part.columns}
        return [column for column in self.fields if column in said]

    @property
    def heading(self) -> EventHeading:
        return EventHeading(tuple(self.fields), self.names, None if self.mixed else self.parts[0].type[0])

    def has(self, name: str) -> bool:
        """Whether a column is there and says something of events, other than an attribute."""
        return name in self.fields and (not self.parts or any(not part.owns(name) for part in self.parts))

    def column_for(self, name: str) -> Column | None:
        """What a column says of events; nothing of those that have an attribute of this name."""
        if not self.has(name):
            return None
        owners = [part.says for part in self.parts if part.owns(name)]
        column = F.col(f"`{name}`")
        if not owners:
            return column
        return F.when(~F.coalesce(F.col(f"`{self.names.type}`").isin(owners), F.lit(False)), column)

    @property
    def points(self) -> bool:
        """Whether all its events are points in time."""
        return self.times[0] == self.times[1]

    def sample(self, of_rows: bool = False) -> object:
        """The first time of its columns, which determines the clock. Text is a calendar time.

        With `of_rows` it is the first number that a row has; of a stream, whose rows are still to come, there is none.
        """
        column = self.times[1]
        if not isinstance(self.fields[column], NUMBERS):
            return "1970-01-01"
        if not of_rows or self.read or self.frame.isStreaming:
            return None
        cell = F.col(f"`{column}`")
        row = self.frame.where(cell.isNotNull()).select(cell.alias("time")).first()
        return None if row is None else row["time"]

    def rows(self, reading: InputReading) -> DataFrame:
        """Its rows in the layout, with `problem`, what is wrong with one, `row`, how it was given, and its `path`."""
        return normalised(self, reading, None)

    def events(self, reading: InputReading) -> DataFrame:
        """Its events in the layout; a wrong row stops the run, or is left out."""
        return normalised(self, reading, reading.on_error)

    @cached_property
    def times(self) -> tuple[str, str]:
        """The columns that hold start and end."""
        n = self.names
        if not {n.time, n.start, n.end} & set(self.fields):
            times = [c for c, kind in self.fields.items() if isinstance(kind, T.TimestampType | T.TimestampNTZType)]
            close = times[0] if times else nearest(n.time, self.fields)
            raise DataError(
                f"{self.title} has no column `{n.time}` (or `{n.start}` and `{n.end}`)",
                hint=f'is it `{close}`? Say time="{close}"' if close else f"its columns are {', '.join(self.fields)}",
            )
        return self.heading.interval


def is_frame(value: object) -> bool:
    """Whether a value is a DataFrame, classic or of Spark Connect."""
    return isinstance(value, DataFrame)


def _check_session() -> None:
    """Refuses a stopped session at once, before the first column fails."""
    try:
        F.lit(1)
    except (PySparkException, AssertionError) as error:
        raise RunError(
            "there is no Spark session, or it has stopped", hint="make one, and the DataFrames with it"
        ) from error


STREAM, GRAPH = "stream", "graph"  # the columns of graph events


def sources(program: Compiled, events: Any, names: ColumnNames) -> list[EventFrame]:
    """The DataFrames of a program by type. One DataFrame of all types has a column that names the type."""
    _check_session()
    plan = program.plan
    types = sorted({name for name, _ in plan.event_types})
    if is_frame(events):
        events = with_paths(_without_index(events), names.paths(plan))
        if names.type not in events.columns and {STREAM, GRAPH} <= set(events.columns):
            events = _graph_events(events, names)
        if names.type not in events.columns:
            hint = f'give DataFrames by type, {{"{types[0]}": df}}, or name the column: type="…"'
            raise DataError(f"the events have no column `{names.type}`", hint=hint)
        parts = [part for name in types for part in _mixed(name, events, plan, names)]
        if not parts:
            raise DataError(
                "the events have no columns for any type of the program", hint=f"it reads {', '.join(types)}"
            )
        return [EventFrame(events, tuple(parts), names, True, frozenset(types), plan.prefixes)]
    if not isinstance(events, Mapping) or not events:
        raise RunError("events are DataFrames by type, or one DataFrame with a type column")
    event_frames: list[EventFrame] = []
    for name, frame in events.items():
        if not is_frame(frame):
            raise RunError(f"the events of `{name}` are not a Spark DataFrame, but {type(frame).__name__}")
        frame = with_paths(_without_index(frame), names.paths(plan))
        if stream_type(name) in types:  # a stream by its IRI alone
            name = stream_type(name)
        if name in types and GRAPH in frame.columns:
            frame = _with_text(frame)
        if name not in types and (close := misspelt(name, types)):
            raise DataError(f"unknown event type `{name}`", hint=f"did you mean `{close}`?")
        heading = EventHeading(tuple(frame.columns), names, name)
        heading.check_type(plan)
        part = _part(heading, name, frame, plan)
        event_frames.append(EventFrame(frame, (part,), names, prefixes=plan.prefixes))
    return event_frames


def _without_index(frame: DataFrame) -> DataFrame:
    """Without the index of a DataFrame of pandas, which it writes into Parquet."""
    return frame.drop(*filter(is_index, frame.columns))


def _graph_events(frame: DataFrame, names: ColumnNames) -> DataFrame:
    """Graph events of many streams: the type of each is that of its stream."""
    type = F.concat(F.lit("<"), F.col(STREAM), F.lit(">")).alias(names.type)
    return _with_text(frame).select(type, *(F.col(c) for c in frame.columns if c != STREAM))


def _with_text(frame: DataFrame) -> DataFrame:
    """Graph events whose graphs are texts. An array of triples, each three terms as N-Triples writes them, becomes one."""
    kind = frame.schema[GRAPH].dataType
    if not isinstance(kind, T.ArrayType):
        return frame
    triple = kind.elementType
    places: list[Any] = list(triple.names) if isinstance(triple, T.StructType) else [0, 1, 2]
    lines = F.transform(F.col(GRAPH), lambda t: F.concat_ws(" ", *(t[p] for p in places), F.lit(".")))
    return frame.withColumn(GRAPH, F.concat_ws("\n", lines))


def _mixed(name: str, frame: DataFrame, plan: Plan, names: ColumnNames) -> list[TypeColumns]:
    """The events of one type in a DataFrame of many; a derived type is there only if its attributes are."""
    if any(rule.type == name for rule in plan.rules):
        declared = plan.declared.get(name)
        if declared is None or any(names.column(name, a) not in frame.columns for a in declared):
            return []
    return [_part(EventHeading(tuple(frame.columns), names), name, frame, plan)]


def _part(heading: EventHeading, name: str, frame: DataFrame, plan: Plan) -> TypeColumns:
    schema = {f.name: f.dataType for f in frame.schema.fields}
    args = heading.args(name, plan)
    arities = sorted(arity for type, arity in plan.event_types if type == name)
    if arities and len(args) not in arities:
        raise DataError(
            f"`{name}` has {len(args)} columns of data; the program uses it with {arities[0]} arguments",
            hint=f"declare `event {name}(…).` to name its columns",
        )
    kinds = tuple(kind_of(name, attribute or Attribute(column), schema[column]) for column, attribute in args)
    return TypeColumns((name, len(kinds)), tuple(column for column, _ in args), kinds)


FRACTIONS = ("float", "number")
_NO_VALUES = {
    "decimal": "it has more digits than a float: declare the attribute as float or int, or cast the column",
    "map": "name the value under a key as a path, column.key",
}


def kind_of(type: str, attribute: Attribute, column_type: T.DataType) -> str:
    """The kind of a column; one that cannot be of its declared type is refused."""
    declared = attribute.type
    natural = natural_kind(column_type)
    if natural is None and isinstance(column_type, T.DecimalType) and declared in ("int", *FRACTIONS):
        natural = "float"
    if natural is None:
        hint = _NO_VALUES.get(column_type.typeName(), "select its fields, or cast it")
        wrong = f"`{type}`: the column `{attribute.name}` is {column_type.simpleString()}, which no event can hold"
        raise DataError(wrong, hint=hint)
    if declared == "any":
        return natural
    if natural not in CONVERSIONS[declared].columns:
        hint = f"give it as {declared}"
        if declared in _SQL:
            name = attribute.name
            hint = f'cast it: df.withColumn("{name}", F.col("{name}").cast("{_SQL[declared]}"))'
        wrong = f"`{type}` declares `{attribute.name}` as {declared}, but the column is {column_type.simpleString()}"
        raise DataError(wrong, hint=hint)
    if declared in ("term", "list"):
        return "json" if natural == "json" else f"nested:{declared}"
    return natural if declared == "number" else declared


class Timed(Protocol):
    def sample(self, of_rows: bool = False) -> object: ...


def clock_of(program: Compiled, inputs: Iterable[Timed], settings: Settings) -> Clock:
    """The clock: as asked, else by the time columns. Text is a calendar time unless the program has ticks.

    A number determines the unit, unless it is set: the first one of a DataFrame is looked up, which takes a small
    job.
    """
    of_rows = settings.time_unit is None and settings.clock != "logical" and program.plan.tick is None
    times = [source.sample(of_rows) for source in inputs]
    calendar = (t for t in times if t is not None and number_of(t) is None)
    numbers = (t for t in times if t is not None)
    return choose_clock(program, settings, next(calendar, next(numbers, None)))


def layout_of(plan: Plan, frames: Iterable[EventFrame], clock: Clock, exact: bool) -> Layout:
    """Where the arguments of all types are; values of one place that sources have in several kinds are of one for all."""
    inputs: dict[Predicate, list[str | None]] = {}
    for part in (part for source in frames for part in source.parts):
        kinds = [_plain(kind) for kind in part.kinds]
        pairs = zip(inputs.get(part.type, kinds), kinds, strict=True)
        inputs[part.type] = [a if a == b else "json" if exact else common_kind(a, b) for a, b in pairs]
    if any(makes_windows(rule) or rule.held for rule in plan.rules):
        inputs[INPUT] = []
    return Layout(kinds_of_all(plan, inputs, clock, exact))


def _plain(kind: str) -> str:
    return "json" if kind.startswith("nested:") else declared_kind(kind)


# Columns


def as_time(column: Column, column_type: T.DataType, clock: Clock, what: str) -> Column:
    """A column as time points of the clock; null where it is none, or too far from the origin."""
    if isinstance(column_type, T.StringType):
        return time_of_text(column, clock)
    point = _as_point(column, column_type, clock, what)
    return F.when(point.between(MIN_TIME, MAX_TIME), point)


def _as_point(column: Column, column_type: T.DataType, clock: Clock, what: str) -> Column:
    calendar = clock.kind == "timestamp"
    if isinstance(column_type, NUMBERS) and (clock.takes_no_numbers or not clock.decided):
        raise DataError(
            f"{what} is {column_type.simpleString()}, which may be in seconds, milliseconds, microseconds or nanoseconds",
            hint='choose one: --time-unit s, ms, us or ns (time_unit="s")',
            code=UNCLEAR,
        )
    match column_type:
        case T.ByteType() | T.ShortType() | T.IntegerType() | T.LongType():
            return epoch_micros(column.cast("bigint"), clock.unit) if clock.unit else column.cast("bigint")
        case T.FloatType() | T.DoubleType() if clock.unit:
            return epoch_micros(column.cast("double"), clock.unit, fraction=True)
        case T.FloatType() | T.DoubleType() if not calendar:
            return F.when(column == F.floor(column), column.try_cast("bigint"))
        case T.TimestampType() | T.TimestampNTZType() | T.DateType() if calendar:
            return micros(column, column_type, clock.zone)
    expected = "a timestamp, a date, a number of microseconds or ISO text" if calendar else "whole numbers"
    hint = 'name another column with time="…"' if calendar else 'use clock="timestamp" for calendar times'
    raise DataError(
        f"{what} is {column_type.simpleString()}; on the {clock.kind} clock a time is {expected}", hint=hint
    )


def other_units(column: Column, column_type: T.DataType, clock: Clock) -> list[tuple[Column, Column]]:
    """Rows whose numbers look like times of another unit than the one that was guessed."""
    if not isinstance(column_type, NUMBERS) or not (clock.unit_guessed or (clock.kind == "logical" and clock.guessed)):
        return []
    wrong = []
    for unit in TIME_UNITS:
        if unit != clock.unit:
            least, beyond = likely_range(unit)
            error = other_unit(least, clock.unit, unit)
            text = error.message.removeprefix(str(least)) + f"; {error.hint}"
            wrong.append((column.between(least, beyond - 1), F.concat(column.cast("string"), F.lit(text))))
    return wrong


def _may_fail(kind: str, column_type: T.DataType) -> bool:
    """Whether a value of the column may not be of the kind."""
    if isinstance(column_type, T.StringType):
        return kind in ("timestamp", "duration") or kind.startswith("nested:")
    return isinstance(column_type, T.FloatType | T.DoubleType | T.DecimalType)


def _misread(column: Column, kind: str, column_type: T.DataType, prefixes: Prefixes) -> Column:
    """Whether a value of a column is none of its kind. One that is no number is null, an infinite one is none."""
    if isinstance(column_type, T.FloatType | T.DoubleType):
        there = column.isNotNull() & ~F.isnan(column)
        return there & (from_column(kind, column, column_type, prefixes) if kind == "int" else finite(column)).isNull()
    return column.isNotNull() & from_column(kind, column, column_type, prefixes).isNull()


# Rows


@dataclass(frozen=True)
class _Row:
    """What is made of a row: when it was, whether it takes an event back, of which type it is, and what is wrong with it.

    What takes much to say, times that are text and what is wrong, are columns of the frame: Spark writes an expression out
    wherever it is used, and to plan and compile a dozen copies takes longer than to read a million rows.
    """

    frame: DataFrame
    start: Column
    end: Column
    code: Column
    revokes: Column
    version: Column
    unknown: Column
    problem: Column


def normalised(source: EventFrame, reading: InputReading, on_error: OnError | None) -> DataFrame:
    """The events of one source in the layout; without a way with wrong rows, all rows, with what is wrong with each."""
    layout, names = reading.layout, source.names
    row = _row(source, reading)
    if source.read:
        row_text, path = F.col(f"`{ROW}`"), F.col(f"`{PATH}`")
    else:
        # A run that stops reads no column for the sake of its message.
        shown = source.used if on_error == "stop" else list(source.fields)
        row_text = F.to_json(F.struct(*(F.col(f"`{c}`") for c in shown)))
        path = F.lit(None).cast("string")
    code, end, revokes = row.code, row.end, row.revokes
    if on_error == "stop":  # the row is written out only where it is wrong
        where = F.coalesce(F.concat(F.lit(" of "), path), F.lit(""))
        message = F.concat(F.lit("a malformed row"), where, F.lit(": "), row.problem, F.lit(" in "), row_text)
        end = F.when(row.problem.isNull(), end).otherwise(F.raise_error(message).cast("bigint"))
        # What is asked for is known by its type: a row that has none, or takes something back, says then what is wrong.
        if source.mixed:
            code = F.coalesce(code, F.when(row.problem.isNotNull(), F.raise_error(message).cast("int")))
        if source.has(names.op):
            revokes = F.when(revokes & row.problem.isNotNull(), F.raise_error(message).cast("boolean")).otherwise(
                revokes
            )
    columns = [code.alias("type"), *([] if reading.points else [row.start.alias("start")]), end.alias("end")]
    if reading.ids:
        id = source.column_for(names.id)
        columns.append(
            (F.lit(None) if id is None else F.nullif(id.cast("string"), F.lit(""))).cast("string").alias("id")
        )
    if reading.ops:
        columns.append(revokes.alias("revoke"))
    if reading.versions:
        columns.append(row.version.alias("version"))
    columns += [_slot(c, source, layout).alias(c) for c in layout.columns]
    if on_error is None:
        return row.frame.select(*columns, row.problem.alias("problem"), row_text.alias("row"), path.alias("path"))
    frame = row.frame
    if frame.isStreaming and source.counts:
        frame = _observed(frame, row.problem, row.unknown, path, source)
    return (frame.where(row.problem.isNull()) if on_error == "skip" else frame).select(*columns)


def _observed(frame: DataFrame, problem: Column, unknown: Column, path: Column, source: EventFrame) -> DataFrame:
    """A stream that counts the rows that it leaves out, by file, and the events of unknown types."""
    wrong = problem.isNotNull()
    types = F.collect_set(F.when(unknown, F.col(f"`{source.names.type}`") if source.mixed else F.lit("")))
    return frame.observe(
        f"{OBSERVED}{id(source.frame):x}_{next(_numbers)}",  # all stages that read a source read one frame
        F.count(F.lit(1)).alias("rows"),
        F.count_if(wrong).alias("count"),
        F.min(F.when(wrong, path)).alias("path"),
        F.min(problem).alias("problem"),
        F.count_if(unknown).alias("unknown"),
        F.array_join(F.slice(types, 1, 5), ", ").alias("types"),
    )


def _row(source: EventFrame, reading: InputReading) -> _Row:
    fields, names, title = source.fields, source.names, source.title
    code, type = F.lit(reading.layout.codes[source.parts[0].type] if source.parts else None).cast("int"), None
    if source.mixed:
        type = F.col(f"`{names.type}`")
        # A literal map: filters repeat the expression for every type, and a chain of cases would grow with its square.
        codes = {part.says: reading.layout.codes[part.type] for part in source.parts}
        code = F.element_at(literal_map(codes), type) if codes else F.lit(None).cast("int")
    said = source.times  # which is an error where there are none
    there = [said[0]]
    if said[0] != said[1]:
        there = [c for c in dict.fromkeys((names.time, names.start, names.end)) if c in fields]
    clock = replace(reading.clock.plain, unit="us") if source.read else reading.clock  # what was read is points already
    read = {c: as_time(F.col(f"`{c}`"), fields[c], clock, f"{title}: the column `{c}`") for c in there}
    texts = {c: f"augury time {c}" for c in there if isinstance(fields[c], T.StringType)}
    frame = source.frame.select("*", *(read[c].alias(name) for c, name in texts.items()))
    read |= {c: F.col(f"`{name}`") for c, name in texts.items()}
    start = F.coalesce(*(read[c] for c in dict.fromkeys((said[0], *there))))
    end = F.coalesce(*(read[c] for c in dict.fromkeys((said[1], *there))))
    revokes, op, id = F.lit(False), source.column_for(names.op), source.column_for(names.id)
    said_version = source.column_for(names.version)
    version = F.lit(None).cast("bigint") if said_version is None else said_version.try_cast("bigint")
    if op is not None:
        if id is None:
            raise DataError(
                f"{title} has a column `{names.op}`, but none that names the event: `{names.id}`",
                hint='events are revoked by id; name its column with id="…"',
            )
        revokes = F.coalesce(op.cast("string") == "revoke", F.lit(False))
    refused = _refused(source, type, code)
    if source.read:
        read_problem = F.col(f"`{PROBLEM}`")
        problem = first_problem([(read_problem.isNotNull(), read_problem), *refused])
    else:
        units = [item for c in there for item in other_units(F.col(f"`{c}`"), fields[c], clock)]
        problem = first_problem([*refused, *units, *_wrong(source, type, code, read, (start, end), reading.strict)])
        if op is not None and id is not None:
            text = op.cast("string")
            nameless = F.when(~_given(id.cast("string")), F.lit("a revocation names the id of an event"))
            odd = _given(text) & ~text.isin("insert", "replace", "revoke")
            unversioned = (text == "replace") & version.isNull()
            no_version = F.lit("a replacement names its version")
            problem = F.when(revokes, nameless).when(unversioned, no_version).otherwise(problem)
            problem = F.when(odd, F.concat(F.lit("unknown op "), text)).otherwise(problem)
        if said_version is not None:
            problem = F.coalesce(first_problem(_wrong_versions(said_version, version, id)), problem)
    frame, problem = frame.withColumn(_WRONG, problem), F.col(f"`{_WRONG}`")
    unknown = F.lit(False) if type is None else code.isNull() & type.isNotNull() & ~revokes & problem.isNull()
    return _Row(frame, start, end, code, revokes, version, unknown, problem)


def _wrong_versions(said: Column, version: Column, id: Column | None) -> list[tuple[Column, Column]]:
    """What may be wrong with a version: it is no whole number, or no id has it."""
    text = said.cast("string")
    whole = version.isNotNull() & (text.try_cast("double") == version.cast("double"))
    nameless = F.lit(True) if id is None else ~_given(id.cast("string"))
    return [
        (_given(text) & ~whole, F.concat(F.lit("a version is a whole number, not "), text)),
        (nameless & (F.coalesce(version, F.lit(0)) != 0), F.lit(VERSION_NEEDS_ID)),
    ]


def unknown_types(source: EventFrame, reading: InputReading) -> DataFrame:
    """The types of a mixed source that the program does not know, once for each of their events."""
    row = _row(source, reading)
    return row.frame.where(row.unknown).select(F.col(f"`{source.names.type}`").alias("type"))


def _given(text: Column) -> Column:
    """Whether a text says something."""
    return text.isNotNull() & (text != "")


def _says(column: Column, kind: T.DataType) -> Column:
    """Whether a cell says something: it is not null, not an empty text, not NaN."""
    if isinstance(kind, T.StringType):
        return _given(column)
    if isinstance(kind, T.FloatType | T.DoubleType):
        return column.isNotNull() & ~F.isnan(column)
    return column.isNotNull()


def _refused(source: EventFrame, type: Column | None, code: Column) -> list[tuple[Column, Column]]:
    """Rows of types that are refused."""
    if type is None or not source.refused:
        return []
    return [(code.isNull() & type.isin(list(source.refused)), F.element_at(literal_map(source.refused), type))]


def _wrong(
    source: EventFrame,
    type: Column | None,
    code: Column,
    times: Mapping[str, Column],
    interval: tuple[Column, Column],
    strict: bool,
) -> list[tuple[Column, Column]]:
    """What may be wrong with a row: its type, its times, its values."""
    wrong = [] if type is None else _wrong_types(source, type, code, strict)
    start, end = interval
    no_time = F.lit("the time is missing or cannot be read")
    for column, time in times.items():
        if len(times) > 1:  # else another column would stand in for one that cannot be read
            wrong.append((_says(F.col(f"`{column}`"), source.fields[column]) & time.isNull(), no_time))
    wrong.append((end.isNull() | start.isNull(), no_time))
    if not source.points:
        wrong.append((start > end, F.lit("it starts after its end")))
    return [*wrong, *_wrong_values(source, type)]


def _wrong_types(source: EventFrame, type: Column, code: Column, strict: bool) -> list[tuple[Column, Column]]:
    """Rows without a type, or of an unknown type that looks misspelt."""
    unknown = F.concat(F.lit("unknown event type `"), type, F.lit("`"))
    wrong = [(type.isNull() | (type == ""), F.lit("an event has a type"))]
    strange = code.isNull() & ~type.isin(sorted(source.known))
    if strict:
        wrong.append((strange, unknown))
    elif source.types is None:  # where the types are known, those that look misspelt are refused already
        wrong.append((strange & looks_misspelt(type, source.known), unknown))
    return wrong


def _wrong_values(source: EventFrame, type: Column | None) -> list[tuple[Column, Column]]:
    types_by_column: dict[tuple[str, str], list[str]] = {}
    for part in source.parts:
        for column, kind in zip(part.columns, part.kinds, strict=True):
            if _may_fail(kind, source.fields[column]):
                types_by_column.setdefault((column, kind), []).append(part.says)
    wrong = []
    for (column, kind), keys in types_by_column.items():
        cell = F.col(f"`{column}`")
        bad = _misread(cell, kind, source.fields[column], source.prefixes)
        if type is not None:
            bad = type.isin(keys) & bad
        declared = F.lit(f"`{column}` is declared as {kind.removeprefix('nested:')}, but is ")
        wrong.append((bad, F.concat(declared, cell.cast("string"))))
    return wrong


def _slot(column: str, source: EventFrame, layout: Layout) -> Column:
    """A column of the layout: the argument that each type keeps there."""
    makers: dict[tuple[str, str, str, str], list[str]] = {}
    for part in source.parts:
        zone = source.zones.get(part.type[0], "")
        kept = zip(layout.slots[part.type], part.columns, part.kinds, layout.kinds[part.type], strict=True)
        for slot, name, kind, target in kept:
            if slot == column:
                makers.setdefault((name, kind, target, zone), []).append(part.says)
    result = F.lit(None).cast(layout.sql(column))
    for (name, kind, target, zone), keys in makers.items():
        converted = from_column(kind, F.col(f"`{name}`"), source.fields[name], source.prefixes, zone, functor_of(name))
        value = cast(converted, _plain(kind), target)
        if len(makers) == 1:
            return value
        result = F.when(F.col(f"`{source.names.type}`").isin(keys), value).otherwise(result)
    return result


_COMPARABLE = {"int", "float", "number", "string", "bool", "json"}


def key_hash(column: Column, kind: str, kinds: Iterable[str]) -> Column:
    """A hash that equal values share, whichever of `kinds` they are kept as: 1 and 1.0 are one value."""
    all_kinds = set(kinds)
    if all_kinds <= {"int"} or (len(all_kinds) == 1 and kind not in ("float", "number", "json")):
        return F.xxhash64(column)
    if all_kinds <= {"int", "float", "number"}:
        return F.xxhash64(column.cast("double") + F.lit(0.0))
    if not all_kinds <= _COMPARABLE:
        return F.lit(0).cast("bigint")  # values that are kept in ways that cannot be compared here meet in one bucket
    text = column.cast("string")
    if kind == "bool":
        text = F.when(column == 1, F.lit("true")).otherwise(F.lit("false"))
    if kind == "json":
        text = F.get_json_object(F.concat(F.lit('{"v":'), text, F.lit("}")), "$.v")
    number = text.try_cast("double")
    nested = text.rlike(r"^\s*[\[{]")
    hashed = F.when(number.isNotNull(), F.xxhash64(number + F.lit(0.0))).otherwise(F.xxhash64(text))
    return F.when(nested, F.lit(0).cast("bigint")).otherwise(hashed)
