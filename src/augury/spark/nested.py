"""Nested data in columns of Spark: structs as nested terms, arrays as lists, and columns that are named by a path.

card: struct<id: string, n: int>    the value card('c1', 3), in rules card(Id, N)
time="meta.ts"                      the field `ts` of the column `meta`; of a map, the value under the key `ts`
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from augury.core.errors import DataError, nearest
from augury.spark.casts import cast

_DIGITS = 15  # of a decimal that a double shows as they are
_LONG = 18  # digits that an integer of 64 bits has at least


def is_term(kind: T.StructType) -> bool:
    """Whether a struct says its functor and its arguments."""
    named = {field.name: field.dataType for field in kind.fields}
    return set(named) == {"functor", "args"} and isinstance(named["functor"], T.StringType)


def kind_of_decimal(kind: T.DecimalType) -> str | None:
    """Decimals that are 64-bit integers are those; those that doubles show as they are are floats; others are neither."""
    if kind.scale == 0 and kind.precision <= _LONG:
        return "int"
    return "float" if kind.precision <= _DIGITS else None


Text = Callable[[Column, T.DataType], Column]


def nested_text(column: Column, kind: T.DataType, name: str, text: Text) -> Column:
    """A nested value in the form in which the layout keeps it; null where it is null. `name` is the functor of a struct,
    and `text` makes that form of a value that is not nested."""
    match kind:
        case T.ArrayType():
            inside = F.transform(column, lambda item: _or_null(nested_text(item, kind.elementType, name, text)))
            result = F.concat(F.lit("["), F.concat_ws(",", inside), F.lit("]"))
            return F.when(column.isNotNull(), result)
        case T.StructType():
            functor, args = F.lit(json.dumps(name, ensure_ascii=False)), _fields(column, kind, text)
            if is_term(kind):
                functor, inner = cast(column.getField("functor"), "string", "json"), kind["args"].dataType
                args = _arguments(column.getField("args"), inner, text)
            result = F.concat(F.lit('{"@term":['), functor, F.lit(",["), args, F.lit("]]}"))
            return F.when(column.isNotNull(), result)
    return text(column, kind)


def _arguments(column: Column, kind: T.DataType, text: Text) -> Column:
    """The arguments of a term, which are a list, or a struct where they are of several kinds."""
    if isinstance(kind, T.ArrayType):
        inside = F.transform(column, lambda item: _or_null(nested_text(item, kind.elementType, "", text)))
        return F.concat_ws(",", inside)
    return _fields(column, kind, text) if isinstance(kind, T.StructType) else F.lit("")


def _fields(column: Column, kind: T.StructType, text: Text) -> Column:
    texts = (_or_null(nested_text(column.getField(f.name), f.dataType, f.name, text)) for f in kind.fields)
    return F.concat_ws(",", *texts)


def _or_null(text: Column) -> Column:
    return F.coalesce(text, F.lit("null"))


def natural_kind(kind: T.DataType) -> str | None:
    """The kind of the values of a column; None where the language has no such values."""
    match kind:
        case T.ByteType() | T.ShortType() | T.IntegerType() | T.LongType():
            return "int"
        case T.FloatType() | T.DoubleType():
            return "float"
        case T.DecimalType():
            return kind_of_decimal(kind)
        case T.BooleanType():
            return "bool"
        case T.StringType() | T.VarcharType() | T.CharType():
            return "string"
        case T.TimestampType() | T.TimestampNTZType() | T.DateType():
            return "timestamp"
        case T.DayTimeIntervalType():
            return "duration"
        case T.ArrayType():
            return "json" if natural_kind(kind.elementType) else None
        case T.StructType():
            return "json" if kind.fields and all(natural_kind(field.dataType) for field in kind.fields) else None
        case T.NullType():
            return "json"
    return None


# Paths


def functor_of(column: str) -> str:
    """What a struct in a column is called as a nested term: the last name of a path."""
    return column.rpartition(".")[2]


def with_paths(frame: DataFrame, names: Iterable[str]) -> DataFrame:
    """A DataFrame with a column more for each name that is no column but a path into one."""
    present = set(frame.columns)
    for name in dict.fromkeys(names):
        head, dot, rest = name.partition(".")
        if dot and name not in present and head in present:
            frame = frame.withColumn(name, _at(F.col(f"`{head}`"), frame.schema[head].dataType, head, rest.split(".")))
    return frame


def _at(column: Column, kind: T.DataType, path: str, rest: list[str]) -> Column:
    if not rest:
        return column
    name, *below = rest
    match kind:
        case T.StructType():
            names = {field.name.lower(): field for field in kind.fields}  # as Spark compares them
            field = next((f for f in kind.fields if f.name == name), names.get(name.lower()))
            if field is None:
                close = nearest(name, kind.names)
                hint = f"did you mean `{path}.{close}`?" if close else f"its fields are {', '.join(kind.names)}"
                raise DataError(f"the column `{path}` has no field `{name}`", hint=hint)
            return _at(column.getField(field.name), field.dataType, f"{path}.{name}", below)
        case T.MapType() if isinstance(kind.keyType, T.StringType):
            return _at(F.try_element_at(column, F.lit(name)), kind.valueType, f"{path}.{name}", below)
    raise DataError(f"the column `{path}` is {kind.simpleString()}, which has no field `{name}`")
