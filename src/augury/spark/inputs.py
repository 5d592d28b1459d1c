"""DataFrames of events in any shape, as one DataFrame in the layout of the program. All of it runs in Catalyst."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from augury.algebra.program import Attribute, Plan, Predicate
from augury.clock import Clock, Kind
from augury.errors import DataError, RunError, misspelt, nearest
from augury.program import Program
from augury.settings import choose_clock
from augury.spark.layout import Layout, declared_kind, kinds_of_all

OnError = Literal["fail", "drop"]
_WHOLE = (T.ByteType, T.ShortType, T.IntegerType, T.LongType)
_DAY = 86_400_000_000


@dataclass(frozen=True)
class Names:
    """The columns that say what is no attribute: when, which one, of which type, and whether it is taken back."""

    time: str = "time"
    start: str = "start"
    end: str = "end"
    id: str = "id"
    op: str = "op"
    type: str = "type"


@dataclass(frozen=True)
class Part:
    """The events of one type in a DataFrame: the column and kind of each argument."""

    type: Predicate
    columns: tuple[str, ...]
    kinds: tuple[str, ...]


@dataclass(frozen=True)
class Source:
    """A DataFrame of events: of one type, or, `mixed`, of several that a column tells apart."""

    frame: DataFrame
    parts: tuple[Part, ...]
    names: Names
    mixed: bool = False

    @property
    def title(self) -> str:
        return "the events" if self.mixed else f"`{self.parts[0].type[0]}`"

    @property
    def columns(self) -> set[str]:
        """The columns that are attributes."""
        return {c for part in self.parts for c in part.columns}

    @property
    def fields(self) -> dict[str, T.DataType]:
        return {f.name: f.dataType for f in self.frame.schema.fields}

    def has(self, name: str) -> bool:
        """Whether a column is there and is no attribute."""
        return name in self.fields and name not in self.columns

    @property
    def points(self) -> bool:
        """Whether all its events are points in time."""
        return self.times[0] == self.times[1]

    def sample(self) -> object:
        """A time as its columns would have it, which tells the clock. Text is a calendar time."""
        return 0 if isinstance(self.fields[self.times[1]], _WHOLE) else "1970-01-01"

    def rows(self, layout: Layout, clock: Clock, ops: bool, ids: bool, points: bool) -> DataFrame:
        """Its rows in the layout, with `problem`, what is wrong with one, and `row`, how it was given."""
        return normalised(self, layout, clock, ops, ids, points, None)

    def events(self, layout: Layout, clock: Clock, ops: bool, ids: bool, points: bool, on_error: OnError) -> DataFrame:
        """Its events in the layout; a wrong row stops the run, or is left out."""
        return normalised(self, layout, clock, ops, ids, points, on_error)

    @property
    def times(self) -> tuple[str, str]:
        """The columns that hold start and end."""
        n = self.names
        present = [c for c in (n.time, n.start, n.end) if self.has(c)]
        if not present:
            known = [c for c in self.fields if c not in self.columns] or list(self.fields)
            times = [c for c, kind in self.fields.items() if isinstance(kind, T.TimestampType | T.TimestampNTZType)]
            close = times[0] if times else nearest(n.time, known)
            raise DataError(
                f"{self.title} has no column `{n.time}` (or `{n.start}` and `{n.end}`)",
                hint=f'is it `{close}`? Say time="{close}"' if close else f"its columns are {', '.join(self.fields)}",
            )
        start = n.start if n.start in present else n.time if n.time in present else n.end
        end = n.end if n.end in present else n.time if n.time in present else n.start
        return start, end


def is_frame(value: object) -> bool:
    """Whether a value is a DataFrame, classic or of Spark Connect."""
    return isinstance(value, DataFrame)


def _check_session() -> None:
    """A session that has stopped is told at once, not by the first column that is made."""
    try:
        F.lit(1)
    except (PySparkException, AssertionError) as error:
        raise RunError(
            "there is no Spark session, or it has stopped", hint="make one, and the DataFrames with it"
        ) from error


def sources(program: Program, events: Any, names: Names) -> list[Source]:
    """The DataFrames of a program by type. One DataFrame of all types has a column that names the type."""
    _check_session()
    plan = program.plan
    known = sorted({name for name, _ in plan.event_types})
    if is_frame(events):
        if names.type not in events.columns:
            raise DataError(f"the events have no column `{names.type}`",
                            hint=f'give DataFrames by type, {{"{known[0]}": df}}, or name the column: type="…"')  # fmt: skip
        parts = [part for name in known for part in _mixed(name, events, plan, names)]
        if not parts:
            raise DataError(
                "the events have no columns for any type of the program", hint=f"it reads {', '.join(known)}"
            )
        return [Source(events, tuple(parts), names, mixed=True)]
    if not isinstance(events, Mapping) or not events:
        raise RunError("events are DataFrames by type, or one DataFrame with a type column")
    found: list[Source] = []
    for name, frame in events.items():
        if not is_frame(frame):
            raise RunError(f"the events of `{name}` are not a Spark DataFrame, but {type(frame).__name__}")
        if name not in known and (close := misspelt(name, known)):
            raise DataError(f"unknown event type `{name}`", hint=f"did you mean `{close}`?")
        found.append(Source(frame, (_part(name, frame, plan, names),), names))
    return found


def _mixed(name: str, frame: DataFrame, plan: Plan, names: Names) -> list[Part]:
    """The events of one type in a DataFrame of many; a derived type is there only if its attributes are."""
    if any(rule.type == name for rule in plan.rules):
        declared = plan.declared.get(name)
        if declared is None or any(a.name not in frame.columns for a in declared):
            return []
    return [_part(name, frame, plan, names, mixed=True)]


def _part(name: str, frame: DataFrame, plan: Plan, names: Names, mixed: bool = False) -> Part:
    schema = {f.name: f.dataType for f in frame.schema.fields}
    declared = plan.declared.get(name)
    attributes: Sequence[Attribute]
    if declared is not None:
        missing = [a.name for a in declared if a.name not in schema]
        if missing:
            close = nearest(missing[0], schema)
            raise DataError(f"`{name}` has no column `{missing[0]}`",
                            hint=f"there is `{close}`" if close else f"its columns are {', '.join(schema)}")  # fmt: skip
        attributes = declared
    else:
        aside = {names.time, names.start, names.end, names.id, names.op, "known", *((names.type,) if mixed else ())}
        given = [Attribute(c) for c in schema if c not in aside]
        arities = sorted(arity for type, arity in plan.event_types if type == name)
        attributes = given[: arities[0]] if len(arities) == 1 else given
        if arities and len(attributes) not in arities:
            raise DataError(f"`{name}` has {len(attributes)} columns of data; the program uses it with {arities[0]} arguments",
                            hint=f"declare `event {name}(…).` to name its columns")  # fmt: skip
    kinds = tuple(kind_of(name, a, schema[a.name]) for a in attributes)
    return Part((name, len(kinds)), tuple(a.name for a in attributes), kinds)


def kind_of(type: str, attribute: Attribute, given: T.DataType) -> str:
    """The kind of a column; one that cannot be of its declared type is refused."""
    declared = attribute.type
    natural = _natural(given)
    if natural is None:
        hint = "cast it to double" if isinstance(given, T.DecimalType) else "select its fields, or cast it"
        raise DataError(f"`{type}`: the column `{attribute.name}` is {given.simpleString()}, which no event can hold", hint=hint)  # fmt: skip
    if declared in ("any", natural) or (declared == "number" and natural in ("int", "float")):
        return natural
    if (declared, natural) in (
        ("float", "int"),
        ("int", "float"),
        ("iri", "string"),
        ("timestamp", "string"),
        ("timestamp", "int"),
    ):
        return declared
    if declared in ("term", "list") and natural == "json":
        return "json"
    if (declared, natural) in (("duration", "string"), ("term", "string"), ("list", "string"), ("any", "string")):
        return f"text:{declared}"
    raise DataError(f"`{type}` declares `{attribute.name}` as {declared}, but the column is {given.simpleString()}",
                    hint=f'cast it: df.withColumn("{attribute.name}", …)')  # fmt: skip


def _natural(given: T.DataType) -> str | None:
    match given:
        case T.ByteType() | T.ShortType() | T.IntegerType() | T.LongType():
            return "int"
        case T.FloatType() | T.DoubleType():
            return "float"
        case T.BooleanType():
            return "bool"
        case T.StringType() | T.VarcharType() | T.CharType():
            return "string"
        case T.TimestampType() | T.TimestampNTZType() | T.DateType():
            return "timestamp"
        case T.DayTimeIntervalType():
            return "duration"
        case T.ArrayType():
            return "json" if _natural(given.elementType) in ("int", "float", "bool", "string", "json") else None
        case T.NullType():
            return "json"
    return None


def clock_of(program: Program, found: Iterable[Source], asked: Kind | None) -> Clock:
    """The clock: as asked, else by the type of the time columns. Text is a calendar time unless the program has ticks."""
    times = [source.sample() for source in found]
    clock = choose_clock(program, asked, next((t for t in times if not isinstance(t, int)), times[0]))
    return Clock(clock.kind, clock.tick)


def layout_of(plan: Plan, found: Iterable[Source], clock: Clock, exact: bool) -> Layout:
    inputs: dict[Predicate, list[str | None]] = {}
    for part in (part for source in found for part in source.parts):
        inputs[part.type] = [_plain(kind) for kind in part.kinds]
    return Layout(kinds_of_all(plan, inputs, clock, exact))


def _plain(kind: str) -> str:
    return declared_kind(kind.removeprefix("text:")) if kind.startswith("text:") else kind


# Columns


def as_time(column: Column, given: T.DataType, clock: Clock, what: str) -> Column:
    """A column as time points of the clock; null where it is none."""
    calendar = clock.kind == "timestamp"
    match given:
        case T.ByteType() | T.ShortType() | T.IntegerType() | T.LongType():
            return column.cast("bigint")
        case T.FloatType() | T.DoubleType() if not calendar:
            return F.when(column == F.floor(column), column.try_cast("bigint"))
        case T.TimestampType() | T.TimestampNTZType() | T.DateType() if calendar:
            return micros(column, given)
        case T.StringType() if calendar:
            return read_time(column)
        case T.StringType():
            return column.try_cast("bigint")
    expected = "a timestamp, a date, a number of microseconds or ISO text" if calendar else "whole numbers"
    raise DataError(f"{what} is {given.simpleString()}; on the {clock.kind} clock a time is {expected}",
                    hint='name another column with time="…"' if calendar else 'say clock="timestamp" for calendar times')  # fmt: skip


def micros(column: Column, given: T.DataType) -> Column:
    """Microseconds since the epoch; what has no zone is UTC."""
    match given:
        case T.DateType():
            return F.unix_date(column).cast("bigint") * F.lit(_DAY)
        case T.TimestampNTZType():
            return F.timestamp_diff("MICROSECOND", F.to_timestamp_ntz(F.lit("1970-01-01 00:00:00")), column)
    return F.unix_micros(column)


def read_time(text: Column) -> Column:
    """ISO text as microseconds since the epoch; null where it is none. A number is taken as microseconds."""
    stripped = F.regexp_replace(F.trim(text), r"^(\d{4}-\d\d-\d\d[T ]\d\d:\d\d)(?![:\d])", "$1:00")
    stripped = F.regexp_replace(stripped, r"^(.*:.*[+-]\d\d)(\d\d)$", "$1:$2")
    zoned = stripped.rlike(r"([zZ]|[+-]\d\d(:?\d\d)?)$") & stripped.contains(":")
    whole = F.when(stripped.rlike(r"^\d{4}-\d\d-\d\d$"), F.concat(stripped, F.lit("T00:00:00Z")))
    whole = whole.otherwise(F.when(zoned, stripped).otherwise(F.concat(stripped, F.lit("Z"))))
    return F.coalesce(stripped.try_cast("bigint"), F.unix_micros(whole.try_cast("timestamp")))


def as_slot(column: Column, kind: str, given: T.DataType) -> Column:
    """A column as the layout keeps it."""
    if kind.startswith("text:"):
        return _from_text(column, kind.removeprefix("text:"))
    match kind:
        case "int" if isinstance(given, T.FloatType | T.DoubleType):
            return F.when(column == F.floor(column), column.try_cast("bigint"))
        case "int":
            return column.cast("bigint")
        case "float" | "number":
            return column.cast("double")
        case "bool":
            return column.cast("int").cast("bigint")
        case "timestamp" if isinstance(given, T.StringType):
            return read_time(column)
        case "timestamp" if isinstance(given, _WHOLE):
            return column.cast("bigint")
        case "timestamp":
            return micros(column, given)
        case "duration":
            return (F.extract(F.lit("DAY"), column) * F.lit(_DAY)).cast("bigint") + _inside_day(column)
        case "json" if isinstance(given, T.ArrayType):
            return F.to_json(column)
    return column.cast("string")


def _inside_day(column: Column) -> Column:
    hours, minutes, seconds = (F.extract(F.lit(part), column) for part in ("HOUR", "MINUTE", "SECOND"))
    return (hours * F.lit(3_600_000_000) + minutes * F.lit(60_000_000)).cast("bigint") + (seconds * F.lit(1_000_000)).cast("bigint")  # fmt: skip


def _from_text(column: Column, declared: str) -> Column:
    if declared == "duration":
        number = F.regexp_extract(column, r"^\s*(\d+)\s*(us|ms|s|m|min|h|d|w)?\s*$", 1).try_cast("bigint")
        unit = F.regexp_extract(column, r"^\s*(\d+)\s*(us|ms|s|m|min|h|d|w)?\s*$", 2)
        scale = F.lit(1_000_000)
        for name, us in (("us", 1), ("ms", 1000), ("m", 60_000_000), ("min", 60_000_000), ("h", 3_600_000_000), ("d", _DAY), ("w", 7 * _DAY)):  # fmt: skip
            scale = F.when(unit == name, F.lit(us)).otherwise(scale)
        return number * scale
    return F.when(F.try_parse_json(column).isNotNull(), column)  # a term or a list


def normalised(
    source: Source, layout: Layout, clock: Clock, ops: bool, ids: bool, points: bool, on_error: OnError | None
) -> DataFrame:
    """The events of one source in the layout; without a way with wrong rows, all rows, with what is wrong with each."""
    fields, names = source.fields, source.names
    frame, code = source.frame, F.lit(layout.codes[source.parts[0].type])
    if source.mixed:
        given_type = F.col(f"`{names.type}`")
        # A literal map: filters repeat the expression for every type, and a chain of cases would grow with its square.
        known = {part.type[0]: layout.codes[part.type] for part in source.parts}
        code = F.element_at(F.create_map(*(F.lit(x) for pair in known.items() for x in pair)), given_type)
    (first, last), title = source.times, source.title
    start = as_time(F.col(f"`{first}`"), fields[first], clock, f"{title}: the column `{first}`")
    end = as_time(F.col(f"`{last}`"), fields[last], clock, f"{title}: the column `{last}`")
    problem = F.when(end.isNull() | start.isNull(), F.lit("no time, or one that cannot be read"))
    if first != last:
        problem = problem.when(start > end, F.lit("it starts after its end"))
    for part in source.parts:
        for column, kind in zip(part.columns, part.kinds, strict=True):
            if _may_fail(kind, fields[column]):
                given = F.col(f"`{column}`")
                wrong = given.isNotNull() & as_slot(given, kind, fields[column]).isNull()
                if source.mixed:
                    wrong &= F.col(f"`{names.type}`") == part.type[0]
                problem = problem.when(wrong, F.concat(F.lit(f"`{column}` is declared as {_plain(kind)}, but is "), given.cast("string")))  # fmt: skip
    revokes = F.lit(False)
    if source.has(names.op):
        if not source.has(names.id):
            raise DataError(f"{title} has a column `{names.op}`, but none that names the event: `{names.id}`",
                            hint='events are revoked by id; name its column with id="…"')  # fmt: skip
        given_op = F.lower(F.col(f"`{names.op}`").cast("string"))
        revokes = F.coalesce(given_op == "revoke", F.lit(False))
        unknown = given_op.isNotNull() & ~given_op.isin("insert", "revoke")
        problem = F.when(unknown, F.concat(F.lit("unknown op "), given_op)).when(~revokes, problem)
    if source.mixed:  # events of other types tell the time, and are no concern of the program otherwise
        problem = F.when(code.isNotNull() | revokes, problem)
    row = F.to_json(F.struct(*(F.col(f"`{c}`") for c in fields)))
    if on_error == "fail":  # the row is written out only where it is wrong
        message = F.concat(F.lit("a malformed row: "), problem, F.lit(" in "), row)
        end = F.when(problem.isNull(), end).otherwise(F.raise_error(message).cast("bigint"))
    columns = [code.alias("type"), *([] if points else [start.alias("start")]), end.alias("end")]
    if ids:
        named = F.col(f"`{names.id}`").cast("string") if source.has(names.id) else F.lit(None).cast("string")
        columns.append(named.alias("id"))
    if ops:
        columns.append(revokes.alias("revoke"))
    columns += [_slot(c, source, layout).alias(c) for c in layout.columns]
    if on_error is None:
        columns += [problem.alias("problem"), row.alias("row")]
    return (frame.where(problem.isNull()) if on_error == "drop" else frame).select(*columns)


def _slot(column: str, source: Source, layout: Layout) -> Column:
    """A column of the layout: the argument that each type keeps there."""
    makers: dict[tuple[str, str, str], list[int]] = {}
    for part in source.parts:
        kept = zip(layout.slots[part.type], part.columns, part.kinds, layout.kinds[part.type], strict=True)
        for slot, name, kind, target in kept:
            if slot == column:
                makers.setdefault((name, kind, target), []).append(layout.codes[part.type])
    if not makers:
        return F.lit(None).cast(layout.sql(column))
    made = [
        (retagged(as_slot(F.col(f"`{name}`"), kind, source.fields[name]), _plain(kind), target), codes)
        for (name, kind, target), codes in makers.items()
    ]
    if len(made) == 1:
        return made[0][0]
    found = F.lit(None).cast(layout.sql(column))
    for value, codes in made:
        types = [layout.types[c][0] for c in codes]
        found = F.when(F.col(f"`{source.names.type}`").isin(types), value).otherwise(found)
    return found


def retagged(column: Column, kind: str, target: str) -> Column:
    """A column of one kind as one of a wider kind: derived events of the type may have other values there."""
    if kind == target or target != "json":
        return column.cast("double") if target == "number" else column
    match kind:
        case "string":
            wrapped = F.to_json(F.struct(column.alias("v")))
            return F.when(column.isNotNull(), F.substring(wrapped, F.lit(6), F.length(wrapped) - 6))
        case "bool":
            return F.when(column == 1, F.lit("true")).when(column == 0, F.lit("false"))
        case "int" | "float" | "number":
            return column.cast("string")
        case "iri":
            return F.concat(F.lit('{"@iri":'), retagged(column, "string", "json"), F.lit("}"))
    return F.concat(F.lit(f'{{"@{kind}":'), column.cast("string"), F.lit("}"))


def _may_fail(kind: str, given: T.DataType) -> bool:
    """Whether a value of the column may not be of the kind."""
    return (kind == "int" and isinstance(given, T.FloatType | T.DoubleType)) or kind.startswith("text:") or (
        kind == "timestamp" and isinstance(given, T.StringType)
    )  # fmt: skip


_COMPARABLE = {"int", "float", "number", "string", "bool", "json"}


def key_hash(column: Column, kind: str, kinds: Iterable[str]) -> Column:
    """A hash that equal values share, whichever of `kinds` they are kept as: 1 and 1.0 are one value."""
    found = set(kinds)
    if found <= {"int"} or (len(found) == 1 and kind not in ("float", "number", "json")):
        return F.xxhash64(column)
    if found <= {"int", "float", "number"}:
        return F.xxhash64(column.cast("double") + F.lit(0.0))
    if not found <= _COMPARABLE:
        return F.lit(0).cast("bigint")  # values that are kept in ways that cannot be compared here meet in one bucket
    text = column.cast("string")
    if kind == "bool":
        text = F.when(column == 1, F.lit("true")).otherwise(F.lit("false"))
    if kind == "json":
        text = F.get_json_object(F.concat(F.lit('{"v":'), text, F.lit("}")), "$.v")
    number = text.try_cast("double")
    nested = text.rlike(r"^\s*[\[{]")
    return F.when(nested, F.lit(0).cast("bigint")).when(number.isNotNull(), F.xxhash64(number + F.lit(0.0))).otherwise(F.xxhash64(text))  # fmt: skip
