"""Facts from DataFrames: few go to the workers, many are joined; the answers are the same."""

from __future__ import annotations

import pytest
from pyspark.sql import DataFrame, SparkSession

from augury.errors import DataError
from augury.spark import detect
from tests.spark_session import SPARK
from tests.spark_session import spark_fixture as spark_fixture

pytestmark = SPARK

DECLARED = """
event order(store: int, amount: float).
event visit(store: int, who: string).
static store(id: int, region: string).
"""
JOINED = {
    "one event": "busy(S, R) <- order(S, A) WHERE store(S, R), A > 1.",
    "no new variable": "busy(S) <- order(S, A) WHERE store(S, _).",
    "a constant": "busy(S) <- order(S, A) WHERE store(S, 's').",
    "a pair": "busy(S, R) <- (order(S, A) SEQ order(S, B)).1h WHERE store(S, R), A < B.",
    "in an absence beside": "busy(S, R) <- (NOT(visit(S, _)).[order(S, A), order(S, B)]).1h WHERE store(S, R).",
    "twice": "busy(R, Q) <- (order(S, _) AND order(T, _)).1h WHERE store(S, R), store(T, Q), R < Q.",
    "in two rules": "busy(S, R) <- order(S, _) WHERE store(S, R).\nquiet(S) <- visit(S, _) WHERE store(S, 'n').",
}
SENT = {
    "between two events": "busy(S, T) <- (order(S, _) AND order(T, _)).1h WHERE store(S, R), store(T, R), S < T.",
    "negated": "busy(S) <- order(S, _) WHERE not store(S, 's').",
    "under a policy": "busy(S, R) <- (order(S, A) SEQ[recent] order(S, B)).1h WHERE store(S, R).",
    "in a static rule": "in_region(S, R) :- store(S, R).\nbusy(S, R) <- order(S, _) WHERE in_region(S, R).",
}


def frames(spark: SparkSession) -> tuple[dict[str, DataFrame], DataFrame]:
    orders = [
        (s, float(a), 60 * t) for t, (s, a) in enumerate([(1, 1), (1, 2), (2, 1), (2, 3), (3, 3), (1, 5), (9, 2)])
    ]
    visits = [(1, "x", 30), (2, "y", 130), (2, "z", 400)]
    events = {
        "order": spark.createDataFrame(orders, "store int, amount double, time long"),
        "visit": spark.createDataFrame(visits, "store int, who string, time long"),
    }
    return events, spark.createDataFrame([(1, "n"), (2, "s"), (2, "t"), (5, "w")], "id long, region string")


def answers(program: str, spark: SparkSession, broadcast: int) -> tuple[list[str], tuple[str, ...]]:
    events, stores = frames(spark)
    found = detect(DECLARED + program, events, facts={"store": stores}, broadcast=broadcast)
    return sorted(map(str, found.events.collect())), found.pipeline.joined


@pytest.mark.parametrize("name", JOINED)
def test_many_are_joined(name: str, spark: SparkSession) -> None:
    sent, _ = answers(JOINED[name], spark, 100)
    joined, names = answers(JOINED[name], spark, 1)
    assert names == ("store",)
    assert joined == sent
    assert sent


@pytest.mark.parametrize("name", SENT)
def test_what_decides_a_match_is_sent_all_the_same(name: str, spark: SparkSession) -> None:
    sent, _ = answers(SENT[name], spark, 100)
    with pytest.warns(UserWarning, match="go to every worker"):
        again, names = answers(SENT[name], spark, 1)
    assert names == ()
    assert again == sent


def test_a_column_that_is_missing(spark: SparkSession) -> None:
    events, stores = frames(spark)
    with pytest.raises(DataError, match="`store` have no column `region`"):
        detect(DECLARED + JOINED["one event"], events, facts={"store": stores.withColumnRenamed("region", "area")})
