"""How Spark reads a value of each type of the language from a typed column of a DataFrame.

Values come in the form in which the layout keeps them, and what cannot be read is null. Times, durations and nested values
may be text, which Python reads as it does elsewhere (`sources/types.py`).

    "1h 30min"  duration  →  5400000000        "wt:Diablo"  iri  →  "http://…#Diablo"
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from augury.algebra.plan import Attribute
from augury.core.clock import Clock, Duration, Timestamp
from augury.core.errors import DataError
from augury.core.model import to_json
from augury.core.time_units import PER_SECOND, TimeUnit
from augury.engine.decoding import compact, from_tagged, tagged
from augury.sources.arrow_cells import text_times
from augury.sources.cells import MISSING, read_time
from augury.sources.types import convert, from_text
from augury.spark.casts import cast
from augury.spark.nested import natural_kind, nested_text

try:
    from pyspark.sql.pandas.functions import arrow_udf
except ImportError:  # PySpark 4.0 has none
    from augury.spark.older import arrow_udf  # type: ignore[no-redef]

Prefixes = Mapping[str, str]
DAY = 86_400_000_000
WHOLE = (T.ByteType, T.ShortType, T.IntegerType, T.LongType)
NUMBERS = (*WHOLE, T.FloatType, T.DoubleType)
_NESTED = (T.ArrayType, T.StructType)
_GREATEST = 1.7976931348623157e308


def literal_map(table: Mapping[str, object]) -> Column:
    """A table as a map of Spark's."""
    return F.create_map(*(F.lit(x) for pair in table.items() for x in pair))


def first_problem(wrong: Sequence[tuple[Column, Column | str]]) -> Column:
    """What is wrong with a row: the text of the first condition that holds; null where none does."""
    (condition, text), *others = wrong
    result = F.when(condition, text)
    for condition, text in others:
        result = result.when(condition, text)
    return result


def finite(number: Column) -> Column:
    """A double that is a value of the language: -0.0 is 0.0, and what is infinite or no number is null."""
    return F.when(F.abs(number) <= F.lit(_GREATEST), number + F.lit(0.0))


# From text, which Python reads


def time_of_text(text: Column, clock: Clock) -> Column:
    """Text as points of time; null where it is none."""
    return _read("bigint", text, partial(_times, clock=clock))


def value_of_text(text: Column, type: str, zone: str = "") -> Column:
    """Text as values of a type, in the form in which the layout keeps them; null where it is none. Nested ones are JSON."""
    if type == "timestamp":
        clock, attribute = Clock("timestamp", zone=zone), Attribute("", type, zone)
        return _read("bigint", text, partial(_times, clock=clock, attribute=attribute))
    return _read("bigint" if type == "duration" else "string", text, partial(_values, attribute=Attribute("", type)))


def shown_json(text: Column) -> Column:
    """Values as the layout keeps them, as JSON without tags: `{"@timestamp":0}` is "1970-01-01T00:00:00Z"."""
    return _read("string", text, _shown)


def _shown(texts: pa.Array) -> pa.Array:
    return _each(texts, lambda text: compact(to_json(from_tagged(text))), pa.string())


def _read(sql: str, text: Column, read: Callable[[pa.Array], pa.Array]) -> Column:
    @arrow_udf(sql)  # type: ignore[call-overload, untyped-decorator]
    def texts(batch: pa.Array) -> pa.Array:
        return read(batch)

    return texts(text)  # type: ignore[no-any-return]


def _times(texts: pa.Array, clock: Clock, attribute: Attribute | None = None) -> pa.Array:
    result = text_times(texts, clock)
    if result is not None:
        return pa.array(result, mask=result == MISSING)
    read = partial(read_time, clock=clock) if attribute is None else partial(_value, attribute=attribute)
    return _each(texts, read, pa.int64())


def _values(texts: pa.Array, attribute: Attribute) -> pa.Array:
    return _each(
        texts, partial(_value, attribute=attribute), pa.int64() if attribute.type == "duration" else pa.string()
    )


def _each(texts: pa.Array, read: Callable[[str], object], kind: pa.DataType) -> pa.Array:
    """What is read of each different text; null where it raises."""

    def value(text: str) -> object:
        try:
            return read(text)
        except (DataError, ValueError, RecursionError):
            return None

    encoded = texts.dictionary_encode()
    return pa.array(map(value, encoded.dictionary.to_pylist()), kind).take(encoded.indices)


def _value(text: str, attribute: Attribute) -> object:
    if attribute.type in ("term", "list"):
        result = convert(json.loads(text), attribute, {})
        return None if result is None else tagged(result)
    moment = from_text(text, attribute, {})
    return moment.us if isinstance(moment, Timestamp | Duration) else None


def iri_of_text(text: Column, prefixes: Prefixes) -> Column:
    """An IRI in full, where it is written with a prefix."""
    if not prefixes:
        return text
    space = F.try_element_at(literal_map(prefixes), F.substring_index(text, ":", 1))
    whole = F.concat(space, F.substr(text, F.instr(text, ":") + 1))
    return F.when(text.contains(":") & space.isNotNull(), whole).otherwise(text)


# From typed columns


def micros(column: Column, type: T.DataType, zone: str = "") -> Column:
    """Microseconds since the epoch; what has no zone is of `zone`, or UTC."""
    match type:
        case T.DateType():
            return _of_zone(F.unix_date(column).cast("bigint") * F.lit(DAY), zone)
        case T.TimestampNTZType():
            local = F.timestamp_diff("MICROSECOND", F.to_timestamp_ntz(F.lit("1970-01-01 00:00:00")), column)
            return _of_zone(local, zone)
    return F.unix_micros(column)


def _of_zone(local: Column, zone: str) -> Column:
    """Microseconds of local time as those since the epoch."""
    return F.unix_micros(F.to_utc_timestamp(F.timestamp_micros(local), zone)) if zone else local


def epoch_micros(number: Column, unit: TimeUnit, fraction: bool = False) -> Column:
    """A number of a unit since the epoch in microseconds; null where it is beyond 64 bits."""
    if fraction:
        return F.rint(number * F.lit(10**6) / F.lit(PER_SECOND[unit])).try_cast("bigint")
    if unit == "ns":
        return ((number - F.pmod(number, F.lit(1000))).cast("decimal(20,0)") / F.lit(1000)).cast("bigint")
    return F.try_multiply(number, F.lit(10**6 // PER_SECOND[unit]).cast("bigint"))


def _int_of_column(column: Column, type: T.DataType) -> Column:
    if isinstance(type, T.FloatType | T.DoubleType | T.DecimalType):
        return F.when(column == F.floor(column), column.try_cast("bigint"))
    return column.cast("bigint")


def _timestamp_of_column(column: Column, type: T.DataType, zone: str = "") -> Column:
    if isinstance(type, T.StringType):
        return value_of_text(column, "timestamp", zone)
    return column.cast("bigint") if isinstance(type, (*WHOLE, T.DecimalType)) else micros(column, type, zone)


def _duration_of_column(column: Column, type: T.DataType) -> Column:
    if isinstance(type, T.StringType):
        return value_of_text(column, "duration")
    if isinstance(type, T.LongType):
        return column
    column = column.cast(T.DayTimeIntervalType())  # one of hours has no days to take
    hours, minutes, seconds = (F.extract(F.lit(part), column) for part in ("HOUR", "MINUTE", "SECOND"))
    inside = (hours * F.lit(3_600_000_000) + minutes * F.lit(60_000_000)).cast("bigint") + (
        seconds * F.lit(1_000_000)
    ).cast("bigint")
    return (F.extract(F.lit("DAY"), column) * F.lit(DAY)).cast("bigint") + inside


# The table


@dataclass(frozen=True)
class Conversion:
    """A row: the natural kinds of columns that may hold values of a type, and how such a column is read."""

    columns: tuple[str, ...]
    column: Callable[[Column, T.DataType], Column]


def _as(type: str) -> Callable[[Column, T.DataType], Column]:
    return lambda column, column_type: column.cast(type)


CONVERSIONS: dict[str, Conversion] = {
    "int": Conversion(("int", "float"), _int_of_column),
    "float": Conversion(("float", "int"), _as("double")),
    "number": Conversion(("int", "float"), _as("double")),
    "string": Conversion(("string",), _as("string")),
    "bool": Conversion(("bool",), lambda column, kind: column.cast("int").cast("bigint")),
    "timestamp": Conversion(("timestamp", "string", "int"), _timestamp_of_column),
    "duration": Conversion(("duration", "string"), _duration_of_column),
    "iri": Conversion(("string",), _as("string")),
    "term": Conversion(("json", "string"), _as("string")),
    "list": Conversion(("json", "string"), _as("string")),
    "any": Conversion((), _as("string")),
}


def from_column(
    kind: str, column: Column, type: T.DataType, prefixes: Prefixes, zone: str = "", name: str = ""
) -> Column:
    """A typed column as the layout keeps values of a kind; timestamps that name no zone are of `zone`.

    A struct is a nested term called `name`.
    """
    if kind.startswith("nested:"):
        return value_of_text(column, kind.removeprefix("nested:"))
    match kind:
        case "json":
            return nested_text(column, type, name, _as_text) if isinstance(type, _NESTED) else column.cast("string")
        case "timestamp":
            return _timestamp_of_column(column, type, zone)
        case "iri":
            return iri_of_text(column.cast("string"), prefixes)
        case "float" | "number" if isinstance(type, T.FloatType | T.DoubleType):
            return column.cast("double")
    return CONVERSIONS[kind].column(column, type)


def _as_text(column: Column, type: T.DataType) -> Column:
    """A value that stands inside a nested one, as JSON."""
    natural = natural_kind(type) or "string"
    value = from_column(natural, column, type, {})
    return cast(finite(value) if natural == "float" else value, natural, "json")
