"""Facts from DataFrames: few go to the workers, many are joined; the answers are the same."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from typing import Literal

import pytest
from pyspark.sql import DataFrame, SparkSession

from augury import Event, compile
from augury.core.errors import DataError, RunError
from augury.spark import detect, detect_stream
from tests.support.spark_session import SPARK
from tests.support.spark_session import spark_fixture as spark_fixture

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
    "in a static rule": "static in_region(id: int, region: string).\nin_region(S, R) :- store(S, R).\nbusy(S, R) <- order(S, _) WHERE in_region(S, R).",
    "in one branch": "busy(S) <- (order(S, _) WHERE store(S, 's')) OR visit(S, _).",
    "in both branches": "busy(S) <- (order(S, _) WHERE store(S, 's')) OR (visit(S, _) WHERE store(S, 'n')).",
    "in two rules": "busy(S, R) <- order(S, _) WHERE store(S, R).\nquiet(S) <- visit(S, _) WHERE store(S, 'n').",
}
SENT = {
    "between two events": "busy(S, T) <- (order(S, _) AND order(T, _)).1h WHERE store(S, R), store(T, R), S < T.",
    "negated": "busy(S) <- order(S, _) WHERE not store(S, 's').",
    "under a policy": "busy(S, R) <- (order(S, A) SEQ[recent] order(S, B)).1h WHERE store(S, R).",
}


def frames(spark: SparkSession) -> tuple[dict[str, DataFrame], DataFrame]:
    orders = [
        (s, float(a), 60 * t, f"order {t}")
        for t, (s, a) in enumerate([(1, 1), (1, 2), (2, 1), (2, 3), (3, 3), (1, 5), (9, 2)])
    ]
    visits = [(1, "x", 30), (2, "y", 130), (2, "z", 400)]
    events = {  # visits have no ids
        "order": spark.createDataFrame(orders, "store int, amount double, time long, id string"),
        "visit": spark.createDataFrame(visits, "store int, who string, time long"),
    }
    return events, spark.createDataFrame([(1, "n"), (2, "s"), (2, "t"), (5, "w")], "id long, region string")


def answers(program: str, spark: SparkSession, broadcast: int) -> tuple[list[str], tuple[str, ...]]:
    events, stores = frames(spark)
    found = detect(DECLARED + program, events, facts={"store": stores}, broadcast=broadcast)
    return sorted(map(str, found.events.collect())), found.pipeline.joined


@pytest.mark.parametrize("name", JOINED)
def test_many_facts_are_joined(name: str, spark: SparkSession) -> None:
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
    with pytest.raises(DataError, match="`store` has no column `region`"):
        detect(DECLARED + JOINED["one event"], events, facts={"store": stores.withColumnRenamed("region", "area")})


def test_an_event_that_many_facts_speak_of_is_revoked(spark: SparkSession, tmp_path: Path) -> None:
    """In a stream it comes with each of them, and alone; all of that goes."""
    program = DECLARED + "busy(S, R) <- order(S, _) WHERE store(S, R).\nany(S) <- order(S, _)."
    batches: list[list[dict[str, object]]] = [
        [{"store": 2, "amount": 1.0, "time": 1, "id": "o1"}, {"store": 1, "amount": 1.0, "time": 2, "id": "o2"}],
        [{"store": 2, "amount": 1.0, "time": 1, "id": "o1"}, {"store": 2, "amount": 1.0, "time": 3, "id": "o3"}],
        [{"op": "revoke", "id": "o1"}],
    ]
    schema = "store int, amount double, time long, id string, op string"
    orders = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).json(written(tmp_path / "in", batches))
    _, stores = frames(spark)
    found = detect_stream(
        program, {"order": orders}, facts={"store": stores}, lateness="50s", emit="early", buckets=2, broadcast=1, clock="logical"
    )  # fmt: skip
    assert found.pipeline.joined == ("store",)
    found.events.writeStream.format("memory").queryName("revoked").trigger(availableNow=True).start().awaitTermination()
    said = Counter((r["op"], r["type"], *json.loads(r["args"]), r["end"]) for r in spark.table("revoked").collect())
    of_o1 = [("busy", 2, "s", 1), ("busy", 2, "t", 1), ("any", 2, 1)]
    others = [("busy", 1, "n", 2), ("any", 1, 2), ("busy", 2, "s", 3), ("busy", 2, "t", 3), ("any", 2, 3)]
    assert said == Counter([("insert", *e) for e in of_o1 + others] + [("retract", *e) for e in of_o1])


# Streams of facts

LINKS = """
event risen(company: string).
static linked(supplier: string, customer: string).
chain(X, Y) :- linked(X, Y).
chain(X, Z) :- linked(X, Y), chain(Y, Z).
trend(A, B) <- (risen(A) SEQ risen(B)).20 WHERE chain(A, B).
alone(A) <- risen(A) WHERE not linked(A, _).
"""


def written(folder: Path, batches: list[list[dict[str, object]]]) -> str:
    folder.mkdir()
    for number, rows in enumerate(batches):
        path = folder / f"{number}.json"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))
    return str(folder)


@pytest.mark.parametrize("emit", ["early", "final"])
def test_a_stream_of_facts(emit: Literal["early", "final"], spark: SparkSession, tmp_path: Path) -> None:
    risen = [[("a", 1), ("c", 5)], [("d", 8), ("b", 9)], [("c", 14), ("a", 15)], [("z", 1000)], [("z", 2000)]]
    said: list[list[tuple[str, str, int, str | None]]] = [
        [("a", "b", 0, None)],
        [("b", "c", 4, "assert"), ("c", "d", 3, None)],  # late, but in time
        [("a", "b", 12, "retract")],
        [("far", "away", 5000, None)],  # what holds from some day on does not say that it is so late already
        [],
    ]
    events = (
        spark.readStream.schema("company string, time long")
        .option("maxFilesPerTrigger", 1)
        .json(written(tmp_path / "events", [[{"company": c, "time": t} for c, t in batch] for batch in risen]))
    )
    facts = spark.readStream.schema("supplier string, customer string, valid_from long, op string").option("maxFilesPerTrigger", 1).json(
        written(tmp_path / "facts", [[{"supplier": a, "customer": b, "valid_from": t, "op": o} for a, b, t, o in batch] for batch in said])
    )  # fmt: skip
    found = detect_stream(
        LINKS, {"risen": events}, facts={"linked": facts}, lateness="50s", emit=emit, clock="logical", buckets=3
    )
    name = f"told_{emit}"
    found.events.writeStream.format("memory").queryName(name).trigger(availableNow=True).start().awaitTermination()
    net: Counter[tuple[str, str, int, int]] = Counter()
    for row in spark.table(name).collect():
        net[row["type"], row["args"], row["start"], row["end"]] += 1 if row["op"] == "insert" else -1
    standing = {key for key, count in net.items() if count}
    program = compile(LINKS)
    session = program.session(clock="logical", facts={"linked": [
        {"args": [a, b], "valid_from": t, "op": o or "assert"} for batch in said for a, b, t, o in batch
    ]})  # fmt: skip
    session.push([Event("risen", (c,), t) for batch in risen for c, t in batch])
    wanted = {(e.type, json.dumps(list(e.args)), e.start, e.end) for e in session.events() if e.end < 1000}
    assert {(t, json.dumps(json.loads(a)), s, e) for t, a, s, e in standing if e < 1000} == wanted
    assert ("trend", '["a", "c"]', 1, 5) in wanted and len(wanted) > 4


def test_what_is_wrong_with_a_stream_of_facts(spark: SparkSession) -> None:
    events = spark.readStream.format("rate").load().selectExpr("cast(value as string) company", "value as time")
    for columns, message in (
        (("'a' supplier", "'b' customer"), "says no times"),
        (("'a' supplier", "value as time"), "has no column `customer`"),
        (("'a' supplier", "'b' customer", "value as time", "value as valid_to"), "has `valid_to`"),
    ):
        facts = spark.readStream.format("rate").load().selectExpr(*columns)
        with pytest.raises(DataError, match=message):
            detect_stream(LINKS, {"risen": events}, facts={"linked": facts}, lateness="1s", clock="logical")
    still = spark.createDataFrame([("a", 1)], "company string, time long")
    facts = spark.readStream.format("rate").load().selectExpr("'a' supplier", "'b' customer", "value as time")
    with pytest.raises(RunError, match="are streams"):
        detect(LINKS, {"risen": still}, facts={"linked": facts}, clock="logical")
