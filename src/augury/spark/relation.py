"""Facts of one predicate as a DataFrame: column `c0`, `c1`, … has an argument as the layout keeps values of its kind.

Equality is that of the language: null equals nothing, 1 is 1.0, and values of other kinds differ. A column of several kinds
is of kind `json`, where equal values are one text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from augury.algebra.plan import Attribute
from augury.clock import Duration, Timestamp
from augury.columns.column import column_of
from augury.knowledge.fact_table import FactTable
from augury.model import MAX_INT, MIN_INT, Iri, Value
from augury.spark.inputs import as_slot, kind_of, retagged
from augury.spark.layout import FAMILY, read_column, value_kind

_SQL = {"long": "bigint", "double": "double", "string": "string", "json": "string"}
_DOUBLES = {"float", "number"}
NUMBERS = {"int", "float", "number"}
_EXACT = 2**53  # integers up to here are doubles without loss


class NotJoined(Exception):
    """Why Spark's joins cannot answer something that the engine can."""


@dataclass(frozen=True)
class Relation:
    """Facts, and the kind of each argument; those that are `opaque` cannot be compared, since equal ones may differ as text."""

    frame: DataFrame
    kinds: tuple[str, ...]
    opaque: frozenset[int] = frozenset()

    @property
    def columns(self) -> list[str]:
        return columns(len(self.kinds))

    def shown(self, names: Sequence[str] = ()) -> DataFrame:
        """The facts as users see them; IRIs are their text."""
        made = [shown(F.col(c), k) for c, k in zip(self.columns, self.kinds, strict=True)]
        return self.frame.select(*(m.alias(n) for m, n in zip(made, names or self.columns, strict=True)))

    def table(self, name: str) -> FactTable:
        """The facts fetched."""
        rows = self.frame.toArrow()
        found = (read_column(rows.column(c), k) for c, k in zip(self.columns, self.kinds, strict=True))
        return FactTable(name, tuple(map(_fact_column, found)), rows.num_rows)


def columns(arity: int) -> list[str]:
    return [f"c{i}" for i in range(arity)]


def _fact_column(column: Any) -> Any:
    return column_of(column) if isinstance(column, list) else column  # integers with nulls


def shown(column: Column, kind: str) -> Column:
    """A value as users see it."""
    match kind:
        case "bool":
            return column == 1
        case "timestamp":
            return F.timestamp_micros(column)
        case "duration":
            return F.make_dt_interval(secs=column / F.lit(1_000_000))
    return column


def sql(kind: str) -> str:
    """The Spark type of a column of a kind."""
    return _SQL[FAMILY[kind]]


# Relations


def of_frame(
    name: str, frame: DataFrame, declared: Sequence[Attribute] | None = None, prefixes: Mapping[str, str] | None = None
) -> Relation:
    """A DataFrame whose columns are the arguments; a value that is not of its declared type stops the run."""
    attributes = declared or tuple(Attribute(c) for c in frame.columns)
    made, kinds, opaque = list[Column](), list[str](), set[int]()
    for i, (attribute, field) in enumerate(zip(attributes, frame.schema.fields, strict=True)):
        kind = kind_of(name, attribute, field.dataType)
        given = F.col(f"`{field.name}`")
        slot = as_slot(given, kind, field.dataType, prefixes or {})
        if kind in ("json", "nested:term", "nested:list"):
            opaque.add(i)
        kind = "json" if i in opaque else kind
        if kind in _DOUBLES:
            slot = F.when(~F.isnan(slot), slot)
        elif isinstance(field.dataType, T.FloatType | T.DoubleType | T.StringType) and kind in (
            "int",
            "timestamp",
            "duration",
        ):
            wrong = F.concat(F.lit(f"a malformed fact of `{name}`: `{attribute.name}` is declared as {kind}, but is "), given.cast("string"))  # fmt: skip
            slot = F.when(given.isNull() | slot.isNotNull(), slot).otherwise(F.raise_error(wrong).cast("bigint"))
        made.append(slot.cast(sql(kind)).alias(f"c{i}"))
        kinds.append(kind)
    return Relation(frame.select(*made), tuple(kinds), frozenset(opaque))


def of_facts(spark: SparkSession, tables: Iterable[FactTable], arity: int) -> Relation:
    """Facts of the driver."""
    rows = [fact.args for table in tables for fact in table]
    kinds: list[str] = []
    made: list[Column] = []
    fields: list[tuple[str, str]] = []
    for i in range(arity):
        found = sorted({value_kind(row[i]) for row in rows if row[i] is not None})
        if "json" in found:
            raise NotJoined("facts have nested terms or lists, which Spark cannot compare")
        kind = reduce(wider, found, None) or "json"
        parts = [F.col(f"{k}_{i}") for k in found]
        lifts = [lifted(part, k, kind) for part, k in zip(parts, found, strict=True)]
        made.append((F.coalesce(*lifts) if lifts else F.lit(None)).cast(sql(kind)).alias(f"c{i}"))
        fields += [(f"{k}_{i}", sql(k)) for k in found]
        kinds.append(kind)
    if not fields:
        fields = [("row", "bigint")]
        listed: list[tuple[Any, ...]] = [(0,) for _ in rows]
    else:
        wanted = [(i, k) for i in range(arity) for k in sorted({value_kind(r[i]) for r in rows if r[i] is not None})]
        listed = [tuple(_raw(row[i]) if row[i] is not None and value_kind(row[i]) == k else None for i, k in wanted) for row in rows]  # fmt: skip
    frame = spark.createDataFrame(listed, ", ".join(f"`{n}` {t}" for n, t in fields))
    return Relation(frame.select(*made), tuple(kinds))


def _raw(value: Value) -> Any:
    match value:
        case bool():
            return int(value)
        case Timestamp() | Duration():
            return value.us
        case Iri():
            return value.text
    return value


def united(parts: Sequence[Relation]) -> Relation:
    """The facts of all, with kinds that hold them all."""
    kinds = tuple(reduce(wider, places, None) or "json" for places in zip(*(p.kinds for p in parts), strict=True))
    opaque = frozenset[int]().union(*(p.opaque for p in parts))
    return Relation(reduce(DataFrame.union, (widened(p, kinds) for p in parts)), kinds, opaque)


def widened(relation: Relation, kinds: Sequence[str]) -> DataFrame:
    """The facts with wider kinds."""
    made = zip(relation.columns, relation.kinds, kinds, strict=True)
    return relation.frame.select(*(lifted(F.col(c), k, target).cast(sql(target)).alias(c) for c, k, target in made))


def empty(spark: SparkSession, kinds: Sequence[str]) -> Relation:
    fields = ", ".join(f"c{i} {sql(k)}" for i, k in enumerate(kinds))
    return Relation(spark.createDataFrame([], fields), tuple(kinds))


# Values


def wider(one: str | None, other: str | None) -> str | None:
    """The kind of a column that has values of either."""
    if one is None or other is None or one == other:
        return one or other
    return "number" if one in NUMBERS and other in NUMBERS else "json"


def constant(value: Value) -> tuple[Column, str]:
    """A value and its kind; null is of any."""
    if value is None:
        return F.lit(None).cast("string"), "json"
    kind = value_kind(value)
    if kind == "json" or (kind == "int" and not MIN_INT <= int(value) <= MAX_INT):  # type: ignore[arg-type]
        raise NotJoined("a rule has a nested term, which Spark cannot compare")
    return F.lit(_raw(value)).cast(sql(kind)), kind


def same(left: Column, one: str, right: Column, other: str) -> Column:
    """Where two values are equal; null or false where they are not."""
    if one == other or {one, other} <= _DOUBLES:
        return left == right
    if {one, other} <= NUMBERS:
        return (left if one == "int" else _whole(left)) == (right if other == "int" else _whole(right))
    if "json" in (one, other):
        return lifted(left, one, "json") == lifted(right, other, "json")
    return F.lit(False)


def differ(left: Column, one: str, right: Column, other: str) -> Column:
    return left.isNotNull() & right.isNotNull() & ~F.coalesce(same(left, one, right, other), F.lit(False))


def comparable(left: Column, one: str, right: Column, other: str) -> tuple[Column, Column]:
    """Two values of kinds that have an order."""
    if one == other and one != "json":
        return left, right
    if {one, other} <= NUMBERS:
        return _double(left, one), _double(right, other)
    raise NotJoined("a rule asks for the order of values of different types")


def lifted(column: Column, kind: str, target: str) -> Column:
    """A value as a column of a wider kind has it."""
    if kind == target or target == "float":
        return column
    if target == "number":
        return _double(column, kind)
    if kind in _DOUBLES:  # 1.0 is written as 1 is
        return F.coalesce(_whole(column).cast("string"), column.cast("string"))
    return retagged(column, kind, "json")


def _whole(column: Column) -> Column:
    """A double as an integer; null where it is none."""
    return F.when(column == F.floor(column), column.try_cast("bigint"))


def _double(column: Column, kind: str) -> Column:
    """A number as a double; an integer that none holds stops the run."""
    if kind != "int":
        return column
    fits = column.isNull() | column.between(F.lit(-_EXACT), F.lit(_EXACT))
    lost = F.concat(F.lit("among floats, this integer would not be exact: "), column.cast("string"))
    return F.when(fits, column.cast("double")).otherwise(F.raise_error(lost).cast("double"))
