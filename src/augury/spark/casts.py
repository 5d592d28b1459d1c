"""Columns of one kind of the layout as another: of a wider kind, as JSON, and as Spark's own types."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

_ISO = "yyyy-MM-dd'T'HH:mm:ss[.SSSSSS]X"
_DOUBLES = {"float", "number"}
_EXACT = 2**53  # integers up to here are doubles without loss


def as_spark(column: Column, kind: str) -> Column:
    """A value as Spark has it: timestamps, intervals and booleans of its own; an IRI is its text."""
    match kind:
        case "bool":
            return column == 1
        case "timestamp":
            return F.timestamp_micros(column)
        case "duration":
            return F.make_dt_interval(secs=column / F.lit(1_000_000))
    return column


def json_text(column: Column, kind: str) -> Column:
    """A value of the layout as JSON text."""
    if kind == "json":
        return F.coalesce(column, F.lit("null"))
    if kind in ("int", "float", "number", "duration"):
        return F.coalesce(column.cast("string"), F.lit("null"))
    return _json(as_spark(column, kind))


def _json(column: Column) -> Column:
    """A column of Spark as JSON text, for a field of an object."""
    wrapped = F.to_json(
        F.struct(column.alias("v")), {"ignoreNullFields": "false", "timestampFormat": _ISO, "timeZone": "UTC"}
    )
    return F.substring(wrapped, F.lit(6), F.length(wrapped) - 6)


def cast(column: Column, kind: str, target: str) -> Column:
    """A column of one kind as one of a wider kind: derived events of the type may have other values there."""
    if kind == target or target != "json":
        return column.cast("double") if target == "number" else column
    match kind:
        case "string":
            return F.when(column.isNotNull(), _json(column))
        case "bool":
            return F.when(column == 1, F.lit("true")).when(column == 0, F.lit("false"))
        case "int" | "float" | "number":
            return column.cast("string")
        case "iri":
            return F.concat(F.lit('{"@iri":'), cast(column, "string", "json"), F.lit("}"))
    return F.concat(F.lit(f'{{"@{kind}":'), column.cast("string"), F.lit("}"))


def canonical(column: Column, kind: str, target: str) -> Column:
    """A value as a column of a wider kind has it, where equal values are one: 1.0 among others is 1."""
    if kind == target or target == "float":
        return column
    if target == "number":
        return double(column, kind)
    if kind in _DOUBLES:  # 1.0 is written as 1 is
        return F.coalesce(whole(column).cast("string"), column.cast("string"))
    return cast(column, kind, "json")


def whole(column: Column) -> Column:
    """A double as an integer; null where it is none."""
    return F.when(column == F.floor(column), column.try_cast("bigint"))


def double(column: Column, kind: str) -> Column:
    """A number as a double; an integer that none holds stops the run."""
    if kind != "int":
        return column
    fits = column.isNull() | column.between(F.lit(-_EXACT), F.lit(_EXACT))
    lost = F.concat(F.lit("among floats, this integer would not be exact: "), column.cast("string"))
    return F.when(fits, column.cast("double")).otherwise(F.raise_error(lost).cast("double"))


def slice_of(time: Column, length: Column) -> Column:
    """The number of the slice that holds a time, exactly."""
    return ((time - F.pmod(time, length)) / length).cast("bigint")
