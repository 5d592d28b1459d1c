"""Facts of one predicate as a DataFrame: column `c0`, `c1`, … has an argument as the layout keeps values of its kind.

Equality is that of the language: null equals nothing, 1 is 1.0, and values of other kinds differ. A column of several kinds
is of kind `json`, where equal values are one text.
"""

from __future__ import annotations

import operator
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from augury.algebra.plan import Attribute
from augury.algebra.terms import Const, Expr, Var
from augury.core.clock import Duration, Timestamp
from augury.core.model import MAX_INT, MIN_INT, Iri, Value
from augury.knowledge.fact_table import FactTable
from augury.spark.casts import as_spark, canonical, double, whole
from augury.spark.conversions import from_column
from augury.spark.inputs import kind_of
from augury.spark.layout import NUMBERS, common_kind, read_column, sql_type, value_kind
from augury.spark.nested import functor_of
from augury.storage.column import column_of

_DOUBLES = {"float", "number"}


class NotJoined(Exception):
    """Why Spark's joins cannot answer something that the engine can."""


@dataclass(frozen=True)
class FactFrame:
    """Facts, and the kind of each argument; those that are `opaque` cannot be compared, since equal ones may differ as text."""

    frame: DataFrame
    kinds: tuple[str, ...]
    opaque: frozenset[int] = frozenset()

    @property
    def columns(self) -> list[str]:
        return columns(len(self.kinds))

    def shown(self) -> DataFrame:
        """The facts as users see them; IRIs are their text."""
        return self.frame.select(
            *(as_spark(F.col(c), k).alias(c) for c, k in zip(self.columns, self.kinds, strict=True))
        )

    def cast(self, kinds: Sequence[str]) -> DataFrame:
        """The facts with wider kinds."""
        made = zip(self.columns, self.kinds, kinds, strict=True)
        return self.frame.select(*(canonical(F.col(c), k, t).cast(sql_type(t)).alias(c) for c, k, t in made))

    def asked(
        self, args: Sequence[Expr], wanted: Collection[str], prefix: str
    ) -> tuple[DataFrame, dict[str, tuple[Column, str]]]:
        """The facts that an atom asks for; of its variables that are wanted the column, under a new name, and the kind."""
        where, places = list[Column](), dict[str, int]()
        for i, (arg, column, kind) in enumerate(zip(args, map(F.col, self.columns), self.kinds, strict=True)):
            if isinstance(arg, Const):
                where.append(same(column, kind, *constant(arg.value)) if arg.value is not None else F.lit(False))
            elif isinstance(arg, Var):
                first = places.setdefault(arg.name, i)
                where += [same(column, kind, F.col(f"c{first}"), self.kinds[first])] if first < i else []
        kept = {v: i for v, i in places.items() if v in wanted}
        picked = [F.col(f"c{i}").alias(f"{prefix}{i}") for i in kept.values()] or [F.lit(1).alias(prefix)]
        values = {v: (F.col(f"`{prefix}{i}`"), self.kinds[i]) for v, i in kept.items()}
        return self.frame.where(all_of(where)).select(*picked), values

    def table(self, name: str) -> FactTable:
        """The facts fetched."""
        rows = self.frame.toArrow()
        result = (read_column(rows.column(c), k) for c, k in zip(self.columns, self.kinds, strict=True))
        return FactTable(name, tuple(map(_fact_column, result)), rows.num_rows)


def columns(arity: int) -> list[str]:
    return [f"c{i}" for i in range(arity)]


def _fact_column(column: object) -> object:
    return column_of(column) if isinstance(column, list) else column  # integers with nulls


# Relations


def of_frame(
    name: str, frame: DataFrame, declared: Sequence[Attribute] | None = None, prefixes: Mapping[str, str] | None = None
) -> FactFrame:
    """A DataFrame whose columns are the arguments; a value that is not of its declared type stops the run."""
    attributes = declared or tuple(Attribute(c) for c in frame.columns)
    made, kinds, opaque = list[Column](), list[str](), set[int]()
    for i, (attribute, field) in enumerate(zip(attributes, frame.schema.fields, strict=True)):
        kind = kind_of(name, attribute, field.dataType)
        cell = F.col(f"`{field.name}`")
        slot = from_column(kind, cell, field.dataType, prefixes or {}, name=functor_of(field.name))
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
            wrong = F.concat(
                F.lit(f"a malformed fact of `{name}`: `{attribute.name}` is declared as {kind}, but is "),
                cell.cast("string"),
            )
            slot = F.when(cell.isNull() | slot.isNotNull(), slot).otherwise(F.raise_error(wrong).cast("bigint"))
        made.append(slot.cast(sql_type(kind)).alias(f"c{i}"))
        kinds.append(kind)
    return FactFrame(frame.select(*made), tuple(kinds), frozenset(opaque))


def of_facts(spark: SparkSession, tables: Iterable[FactTable], arity: int) -> FactFrame:
    """Facts of the driver. A place with values of several kinds has a column for each, of which one is not null."""
    rows = [fact.args for table in tables for fact in table]
    kinds_of_column = [sorted({value_kind(row[i]) for row in rows if row[i] is not None}) for i in range(arity)]
    if any("json" in kinds for kinds in kinds_of_column):
        raise NotJoined("facts have nested terms or lists, which Spark cannot compare")
    places = [(i, kind) for i, kinds in enumerate(kinds_of_column) for kind in kinds]
    schema = ", ".join(["row bigint", *(f"{kind}_{i} {sql_type(kind)}" for i, kind in places)])
    listed = [
        (n, *(raw_value(row[i]) if _is_a(row[i], kind) else None for i, kind in places)) for n, row in enumerate(rows)
    ]
    made, kinds = list[Column](), list[str]()
    for i, column_kinds in enumerate(kinds_of_column):
        kind = reduce(common_kind, column_kinds, None) or "json"
        parts = [canonical(F.col(f"{k}_{i}"), k, kind) for k in column_kinds]
        made.append((F.coalesce(*parts) if parts else F.lit(None)).cast(sql_type(kind)).alias(f"c{i}"))
        kinds.append(kind)
    return FactFrame(spark.createDataFrame(listed, schema).select(*made), tuple(kinds))


def _is_a(value: Value, kind: str) -> bool:
    return value is not None and value_kind(value) == kind


def raw_value(value: Value) -> Any:
    """A value as a column of its kind keeps it."""
    match value:
        case bool():
            return int(value)
        case Timestamp() | Duration():
            return value.us
        case Iri():
            return value.text
    return value


def united(parts: Sequence[FactFrame]) -> FactFrame:
    """The facts of all, with kinds that hold them all."""
    kinds = tuple(reduce(common_kind, places, None) or "json" for places in zip(*(p.kinds for p in parts), strict=True))
    opaque = frozenset[int]().union(*(p.opaque for p in parts))
    return FactFrame(reduce(DataFrame.union, (p.cast(kinds) for p in parts)), kinds, opaque)


def empty(spark: SparkSession, kinds: Sequence[str]) -> FactFrame:
    fields = ", ".join(f"c{i} {sql_type(k)}" for i, k in enumerate(kinds))
    return FactFrame(spark.createDataFrame([], fields), tuple(kinds))


# Values


def constant(value: Value) -> tuple[Column, str]:
    """A value and its kind; null is of any."""
    if value is None:
        return F.lit(None).cast("string"), "json"
    kind = value_kind(value)
    if kind == "json" or (kind == "int" and not MIN_INT <= int(value) <= MAX_INT):  # type: ignore[arg-type]
        raise NotJoined("a rule has a nested term, which Spark cannot compare")
    return F.lit(raw_value(value)).cast(sql_type(kind)), kind


def all_of(conditions: Iterable[Column]) -> Column:
    result = list(conditions)
    return reduce(operator.and_, result) if result else F.lit(True)


def same(left: Column, left_kind: str, right: Column, right_kind: str) -> Column:
    """Where two values are equal; null or false where they are not."""
    if left_kind == right_kind or {left_kind, right_kind} <= _DOUBLES:
        return left == right
    if {left_kind, right_kind} <= NUMBERS:
        return (left if left_kind == "int" else whole(left)) == (right if right_kind == "int" else whole(right))
    if "json" in (left_kind, right_kind):
        return canonical(left, left_kind, "json") == canonical(right, right_kind, "json")
    return F.lit(False)


def differ(left: Column, left_kind: str, right: Column, right_kind: str) -> Column:
    return left.isNotNull() & right.isNotNull() & ~F.coalesce(same(left, left_kind, right, right_kind), F.lit(False))


def comparable(left: Column, left_kind: str, right: Column, right_kind: str) -> tuple[Column, Column]:
    """Two values of kinds that have an order."""
    if left_kind == right_kind and left_kind != "json":
        return left, right
    if {left_kind, right_kind} <= NUMBERS:
        return double(left, left_kind), double(right, right_kind)
    raise NotJoined("a rule asks for the order of values of different types")
