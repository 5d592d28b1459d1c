"""Structs, arrays, maps and decimals of DataFrames, and columns that are named by a path."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

import augury.spark
from augury.algebra.plan import Attribute
from augury.core.errors import DataError
from augury.spark.inputs import kind_of
from tests.support.spark_session import SPARK
from tests.support.spark_session import spark_fixture as spark_fixture

pytestmark = SPARK
PAYMENT = """
    named_struct('id', 'c"1', 'n', 3, 'at', timestamp'2026-03-01 10:00:00', 'took', interval '1' hour) card,
    map('Shop', 'x', 'none', null) tags, array(named_struct('x', 1), null) items, array(date'2026-01-01') days,
    named_struct('functor', 'f', 'args', array(1, 2)) term, named_struct('functor', 'g', 'args', named_struct('_1', 'x', '_2', 2.5D)) pair,
    cast(null as struct<a: int>) nothing, cast(1.10 as decimal(10,2)) amount, cast(7 as decimal(10,0)) pieces,
    cast(12345678901234567.89 as decimal(20,2)) big, named_struct('ts', timestamp'2026-03-01 10:00:00') meta
"""
DECIMALS = [("any", 10, 2, "float"), ("any", 18, 0, "int"), ("float", 38, 9, "float"), ("int", 10, 2, "int"), ("number", 38, 9, "float")]  # fmt: skip


def payments(spark: SparkSession) -> DataFrame:
    return spark.sql(f"select {PAYMENT}")


def test_nested_values_are_terms_and_lists(spark: SparkSession) -> None:
    program = """
        event pay(card: any, items: list, days: list, term: term, pair: term, nothing: any, amount: any, pieces: any, big: float).
        s(Id, N, At, Took, I, D, T, P, Z, A, C, B) <- pay(card(Id, N, At, Took), I, D, T, P, Z, A, C, B).
    """
    [row] = augury.spark.detect(program, {"pay": payments(spark)}, time="meta.ts")["s"].collect()
    found = [json.loads(value) if isinstance(value, str) else value for value in row[:12]]
    assert found == [
        'c"1', 3, "2026-03-01T10:00:00Z", "1h", [{"functor": "items", "args": [1]}, None],
        ["2026-01-01T00:00:00Z"], {"functor": "f", "args": [1, 2]}, {"functor": "g", "args": ["x", 2.5]}, None, 1.1, 7,
        12345678901234567.89,
    ]  # fmt: skip


def test_paths_name_columns(spark: SparkSession) -> None:
    program, columns = (
        "event pay(shop: string, none: string, n: int). s(S, N, M) <- pay(S, N, M).",
        {"pay.shop": "tags.Shop"},
    )
    columns |= {"pay.none": "tags.none", "pay.n": "card.N"}  # fields are compared as Spark does
    rows = augury.spark.detect(program, {"pay": payments(spark)}, time="meta.ts", columns=columns)["s"]
    assert [tuple(row[:3]) for row in rows.collect()] == [("x", None, 3)]
    declared = 'event pay(shop: string from "tags.Shop", n: int from "card.N"). s(S, N) <- pay(S, N).'
    rows = augury.spark.detect(declared, {"pay": payments(spark)}, time="meta.ts")["s"]
    assert [tuple(row[:2]) for row in rows.collect()] == [("x", 3)]
    mixed = payments(spark).selectExpr("*", "named_struct('type', 'pay') head")
    rows = augury.spark.detect(program, mixed, time="meta.ts", type="head.type", columns=columns)["s"]
    assert rows.count() == 1


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"pay.n": "card.idd"}, "has no field `idd`\n  hint: did you mean `card.id`"),
        ({"pay.n": "amount.x"}, r"the column `amount` is decimal\(10,2\), which has no field `x`"),
        ({"pay.n": "tags"}, "is map<string,string>, which no event can hold\n  hint: name the value under a key"),
        ({"pay.n": "big"}, r"is decimal\(20,2\), which no event can hold\n  hint: it has more digits"),
    ],
)
def test_what_is_no_value_is_refused(spark: SparkSession, columns: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        augury.spark.detect(
            "event pay(n: any). s(N) <- pay(N).", {"pay": payments(spark)}, time="meta.ts", columns=columns
        )


@pytest.mark.parametrize(("declared", "precision", "scale", "kind"), DECIMALS)
def test_kinds_of_decimals(declared: str, precision: int, scale: int, kind: str) -> None:
    assert kind_of("pay", Attribute("n", declared), T.DecimalType(precision, scale)) == kind
