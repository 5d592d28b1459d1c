"""How Spark reads a value of each type of the language from a typed column of a DataFrame.

A row of `CONVERSIONS` gives what `sources/types.py` makes of the same values, in the form in which the layout keeps them:
times and durations may be text. What cannot be read is null. Common spellings are tried first, since an expression in a
branch that is not taken costs nothing.

    "1h 30min"  duration  →  5400000000        "wt:Diablo"  iri  →  "http://…#Diablo"
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.pandas.functions import arrow_udf

from augury.algebra.plan import Attribute
from augury.clock import UNITS
from augury.engine.decoding import tagged
from augury.errors import DataError
from augury.sources.types import convert

Prefixes = Mapping[str, str]
DAY = 86_400_000_000
WHOLE = (T.ByteType, T.ShortType, T.IntegerType, T.LongType)
_GREATEST = 1.7976931348623157e308
# White space as Python has it; that of Java is less.
_SPACE = r"[\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]"
_INT = r"\A[+-]?[0-9]+\z"


def stripped(text: Column) -> Column:
    """Text without white space around it."""
    return F.regexp_replace(text, rf"\A{_SPACE}+|{_SPACE}+\z", "")


def literal_map(table: Mapping[str, Any]) -> Column:
    """A table as a map of Spark's."""
    return F.create_map(*(F.lit(x) for pair in table.items() for x in pair))


def first_problem(wrong: Sequence[tuple[Column, Column | str]]) -> Column:
    """What is wrong with a row: the text of the first condition that holds; null where none does."""
    (condition, text), *others = wrong
    found = F.when(condition, text)
    for condition, text in others:
        found = found.when(condition, text)
    return found


# From text


def int_of_text(text: Column) -> Column:
    # What begins with a sign or a digit and ends with one costs a fraction of a regular expression.
    usual = (text >= "+") & (text < ":") & F.right(text, F.lit(1)).between("0", "9") & ~F.contains(text, F.lit("."))
    other = stripped(text)
    return F.when(usual, text.try_cast("bigint")).otherwise(F.when(other.rlike(_INT), other.try_cast("bigint")))


def finite(number: Column) -> Column:
    """A double that is a value of the language: -0.0 is 0.0, and what is infinite or no number is null."""
    return F.when(F.abs(number) <= F.lit(_GREATEST), number + F.lit(0.0))


_CLOCK = r"([0-9]{2})(?::?([0-9]{2})(?::?([0-9]{2})(?:[.,]([0-9]+))?)?)?"
_ZONE = r"(?: ?([+-])" + _CLOCK + r"|Z)?"
_DATE = r"(?:(?!0000)([0-9]{4})(-?)([0-9]{2})\2([0-9]{2})|([0-9]{4})(-?)W([0-9]{2})(?:\6([1-7]))?)"
_ISO = rf"\A{_DATE}(?:(?s:.){_CLOCK}{_ZONE})?\z"
_COLONS = r":[0-9]{2}[0-9]|[0-9]{4}:"  # a time is written with colons throughout, or without
_USUAL_TIME = r"\A(?!0000)[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?Z?\z"


def timestamp_of_text(text: Column) -> Column:
    """ISO 8601, as far as Python reads it; a time without a zone is UTC. Microseconds since the epoch.

    Of what `datetime.fromisoformat` takes, a fraction of an hour or a minute (`10:00.5`) is not supported.
    """
    return F.when(text.rlike(_USUAL_TIME), _usual_time(text)).otherwise(_unusual_time(stripped(text)))


def _usual_time(text: Column) -> Column:
    whole = F.when(text.endswith("Z"), text).otherwise(F.concat(text, F.lit("Z")))
    return F.unix_micros(whole.try_cast("timestamp"))


def _unusual_time(text: Column) -> Column:
    def group(number: int) -> Column:
        return F.regexp_extract(text, _ISO, number)

    def number(at: int) -> Column:
        return F.coalesce(group(at).try_cast("bigint"), F.lit(0).cast("bigint"))

    def micros(first: int) -> Column:
        fraction = F.substring(F.rpad(group(first + 3), 6, "0"), 1, 6).try_cast("bigint")
        seconds = number(first) * F.lit(3600) + number(first + 1) * F.lit(60) + number(first + 2)
        return seconds * F.lit(1_000_000) + F.coalesce(fraction, F.lit(0).cast("bigint"))

    calendar = F.concat_ws("-", group(1), group(3), group(4)).try_cast("date")
    first_monday = F.date_trunc("week", F.concat(group(5), F.lit("-01-04")).try_cast("timestamp_ntz")).cast("date")
    week = F.coalesce(group(8).try_cast("int"), F.lit(1)) - 1 + (number(7).cast("int") - 1) * 7
    weekly = F.date_add(first_monday, week)
    in_year = (number(7) >= 1) & (F.weekofyear(weekly) == number(7))
    day = F.when(group(1) != "", calendar).when(in_year & (group(5) != "0000"), weekly)
    inside = (number(9) < 24) & (number(10) < 60) & (number(11) < 60)
    offset = micros(14) * F.when(group(13) == "-", F.lit(-1)).otherwise(F.lit(1))
    clocks = F.regexp_replace(text, rf"\A{_DATE}(?s:.)?", "")
    straight = ~F.regexp_extract(clocks, r"\A[0-9:]*", 0).rlike(_COLONS) & ~F.regexp_extract(
        clocks, r"[+-]([0-9:]*)", 1
    ).rlike(_COLONS)
    sound = text.rlike(_ISO) & inside & (F.abs(offset) < F.lit(DAY)) & straight
    return F.when(sound, F.unix_date(day).cast("bigint") * F.lit(DAY) + micros(9) - offset)


_PART = rf"([0-9]+)(?:\.([0-9]+))?{_SPACE}*([A-Za-z]+)"
_DURATION = rf"\A(?:{_SPACE}*[0-9]+(?:\.[0-9]+)?{_SPACE}*[A-Za-z]+)+{_SPACE}*\z"
_DIGITS = 13  # of a fraction: no unit has more powers of two or of five, so that more are no whole microseconds


def duration_of_text(text: Column) -> Column:
    """Numbers with units, such as `1h 30min`; microseconds."""
    units = F.create_map(*(x for name, us in UNITS.items() for x in (F.lit(name), F.lit(us).cast("decimal(12,0)"))))

    def micros(part: Column) -> Column:
        unit = F.try_element_at(units, F.lower(part["unit"]))
        fraction = F.rtrim(part["fraction"], F.lit("0"))
        power = F.rpad(F.lit("1"), F.length(fraction) + 1, F.lit("0")).try_cast(f"decimal({_DIGITS + 1},0)")
        scaled = F.when(fraction == "", F.lit(0)).otherwise(fraction.try_cast(f"decimal({_DIGITS},0)")) * unit
        more = F.when((F.length(fraction) <= _DIGITS) & (scaled % power == 0), (scaled / power).try_cast("bigint"))
        return F.try_add(F.try_multiply(part["whole"].try_cast("decimal(20,0)"), unit).try_cast("bigint"), more)

    parts = F.arrays_zip(
        *(
            F.regexp_extract_all(text, F.lit(_PART), F.lit(n)).alias(name)
            for n, name in ((1, "whole"), (2, "fraction"), (3, "unit"))
        )
    )
    total = F.aggregate(F.transform(parts, micros), F.lit(0).cast("bigint"), lambda sum, one: F.try_add(sum, one))
    return F.when(text.rlike(_DURATION), total)


def time_of_text(text: Column, calendar: bool) -> Column:
    """Text as a point of time: ISO 8601 or microseconds on the calendar clock, else a tick."""
    if not calendar:
        return int_of_text(text)
    digits = stripped(text).rlike(r"\A-*[0-9]+\z")
    return F.when(text.rlike(_USUAL_TIME), _usual_time(text)).otherwise(
        F.when(digits, int_of_text(text)).otherwise(_unusual_time(stripped(text)))
    )


def iri_of_text(text: Column, prefixes: Prefixes) -> Column:
    """An IRI in full, where it is written with a prefix."""
    if not prefixes:
        return text
    space = F.try_element_at(literal_map(prefixes), F.substring_index(text, ":", 1))
    whole = F.concat(space, F.substr(text, F.instr(text, ":") + 1))
    return F.when(text.contains(":") & space.isNotNull(), whole).otherwise(text)


# From typed columns


def micros(column: Column, given: T.DataType) -> Column:
    """Microseconds since the epoch; what has no zone is UTC."""
    match given:
        case T.DateType():
            return F.unix_date(column).cast("bigint") * F.lit(DAY)
        case T.TimestampNTZType():
            return F.timestamp_diff("MICROSECOND", F.to_timestamp_ntz(F.lit("1970-01-01 00:00:00")), column)
    return F.unix_micros(column)


def _int_of_column(column: Column, given: T.DataType) -> Column:
    if isinstance(given, T.FloatType | T.DoubleType):
        return F.when(column == F.floor(column), column.try_cast("bigint"))
    return column.cast("bigint")


def _timestamp_of_column(column: Column, given: T.DataType) -> Column:
    if isinstance(given, T.StringType):
        return timestamp_of_text(column)
    return column.cast("bigint") if isinstance(given, WHOLE) else micros(column, given)


def _duration_of_column(column: Column, given: T.DataType) -> Column:
    if isinstance(given, T.StringType):
        return duration_of_text(column)
    if isinstance(given, T.LongType):
        return column
    hours, minutes, seconds = (F.extract(F.lit(part), column) for part in ("HOUR", "MINUTE", "SECOND"))
    inside = (hours * F.lit(3_600_000_000) + minutes * F.lit(60_000_000)).cast("bigint") + (
        seconds * F.lit(1_000_000)
    ).cast("bigint")
    return (F.extract(F.lit("DAY"), column) * F.lit(DAY)).cast("bigint") + inside


# Nested values


def nested(text: Column, type: str) -> Column:
    """JSON text of nested values as the layout keeps them; empty where it is no value of the type. Python reads it."""

    @arrow_udf("string")  # type: ignore[call-overload, untyped-decorator]
    def read(texts: pa.Array) -> pa.Array:
        encoded = texts.dictionary_encode()
        found = [_tagged(one, type) for one in encoded.dictionary.to_pylist()]
        return pa.array(found, pa.string()).take(encoded.indices)

    return read(text)  # type: ignore[no-any-return]


def _tagged(text: str, type: str) -> str | None:
    try:
        found = convert(json.loads(text), Attribute("", type), {})
    except (ValueError, DataError, RecursionError):
        return ""
    return None if found is None else tagged(found)


# The table


@dataclass(frozen=True)
class Conversion:
    """A row: the natural kinds of columns that may hold values of a type, and how such a column is read."""

    columns: tuple[str, ...]
    column: Callable[[Column, T.DataType], Column]


def _as(type: str) -> Callable[[Column, T.DataType], Column]:
    return lambda column, given: column.cast(type)


CONVERSIONS: dict[str, Conversion] = {
    "int": Conversion(("int", "float"), _int_of_column),
    "float": Conversion(("float", "int"), _as("double")),
    "number": Conversion(("int", "float"), _as("double")),
    "string": Conversion(("string",), _as("string")),
    "bool": Conversion(("bool",), lambda column, given: column.cast("int").cast("bigint")),
    "timestamp": Conversion(("timestamp", "string", "int"), _timestamp_of_column),
    "duration": Conversion(("duration", "string"), _duration_of_column),
    "iri": Conversion(("string",), _as("string")),
    "term": Conversion(("json", "string"), _as("string")),
    "list": Conversion(("json", "string"), _as("string")),
    "any": Conversion((), _as("string")),
}


def from_column(kind: str, column: Column, given: T.DataType, prefixes: Prefixes) -> Column:
    """A typed column as the layout keeps values of a kind."""
    if kind.startswith("nested:"):
        return F.nullif(nested(column, kind.removeprefix("nested:")), F.lit(""))
    match kind:
        case "json":
            return F.to_json(column) if isinstance(given, T.ArrayType) else column.cast("string")
        case "iri":
            return iri_of_text(column.cast("string"), prefixes)
        case "float" | "number" if isinstance(given, T.FloatType | T.DoubleType):
            return column.cast("double")
    return CONVERSIONS[kind].column(column, given)
