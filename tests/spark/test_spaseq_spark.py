"""Queries over graph streams on Spark: batch and stream say what the engine says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("pyoxigraph")

from pyspark.sql import DataFrame, SparkSession

import augury
from augury.core.errors import DataError, Source
from augury.core.model import Event
from augury.settings import Settings, Task
from augury.sources import SourceFile
from augury.spark import detect, detect_stream
from augury.spark.job import SparkJob
from tests.support.spark_session import SPARK
from tests.support.spark_session import spark_fixture as spark_fixture

pytestmark = SPARK

QUERY = """
PREFIX e: <http://e/>
SELECT ?c ?p1 ?p2
WITHIN 10 SECONDS
{partition}
FROM STREAM S <http://e/s>
FROM STREAM T <http://e/t>
WHERE {{
  SEQ(A; B)
  DEFINE GPM A ON S {{ ?c e:price ?p1 }}
  DEFINE GPM B ON S, T {{ ?c e:price ?p2 FILTER(?p2 > ?p1) }}
}}
"""
RISES = (
    QUERY.replace("SEQ(A; B)", "SEQ(A, B+) LONGEST SKIP PAST END")
    .replace("A ON S", "A ON S, T")
    .replace("?p2 > ?p1", "?p2 > PREV(?p2, ?p1)")
)
PRICES = [("s", 1, "x", 5), ("t", 2, "y", 9), ("s", 3, "x", 4), ("t", 4, "x", 6), ("s", 5, "y", 7), ("t", 6, "y", 8)]
EXPECTED = {("x", 5, 6, 1, 4), ("x", 4, 6, 3, 4), ("y", 7, 8, 5, 6)}
RISING = {("x", 4, 6, 3, 4), ("y", 7, 8, 5, 6)}


def rows() -> list[tuple[str, int, str]]:
    return [(f"http://e/{stream}", time, f"<http://e/{c}> <http://e/price> {p} .") for stream, time, c, p in PRICES]


def compiled(partition: str = "") -> augury.Program:
    return augury.compile(QUERY.format(partition=partition), language="spaseq", name="up")


def short(*said: Any) -> tuple[object, ...]:
    c, p1, p2, start, end = said
    return (str(c).strip("<>").rsplit("/", 1)[-1], p1, p2, start, end)


def answers(frame: DataFrame) -> set[tuple[object, ...]]:
    """What a DataFrame of answers has: arguments of any type are JSON."""
    found = frame.collect()
    return {short(*(json.loads(r[p]) for p in ("c", "p1", "p2")), r["start"], r["end"]) for r in found}


def test_query_answers_of_the_engine() -> None:
    session = compiled().session(clock="logical")
    session.push([Event(f"<{stream}>", (text,), time, time) for stream, time, text in rows()])
    assert {short(*e.args, e.start, e.end) for e in session.events()} == EXPECTED


@pytest.mark.parametrize("partition", ["", "PARTITION BY (?c)"])
def test_queries_in_batch(spark: SparkSession, partition: str) -> None:
    frame = spark.createDataFrame(rows(), "stream string, time bigint, graph string")
    texts = {"up": QUERY, "rises": RISES}
    sources = [Source(f"{name}.spaseq", text.format(partition=partition), "spaseq") for name, text in texts.items()]
    result = detect(augury.Program.of(sources), frame, clock="logical")
    assert answers(result["up"]) == EXPECTED
    assert answers(result["rises"]) == RISING


def test_triples_as_arrays(spark: SparkSession) -> None:
    triples = [(stream, time, [tuple(text.removesuffix(" .").split(" "))]) for stream, time, text in rows()]
    frame = spark.createDataFrame(
        [
            (s, t, [(a, b, f'"{c}"^^<http://www.w3.org/2001/XMLSchema#integer>') for a, b, c in g])
            for s, t, g in triples
        ],
        "stream string, time bigint, graph array<struct<s: string, p: string, o: string>>",
    )
    assert answers(detect(compiled(), frame, clock="logical")["up"]) == EXPECTED


def test_graph_absent_in_a_rule(spark: SparkSession) -> None:
    """GRAPH in a rule joins graph events with others: here a price above 8 between two starts blocks."""
    program = augury.compile("""
        prefix e: <http://e/>.
        calm(X, Y) <- (NOT(GRAPH e:s { [] e:price 9 }).[start(X), start(Y)]).10.
        loud(X, Y) <- (NOT(GRAPH e:s { [] e:price 4 }).[start(X), start(Y)]).10.
    """)
    graphs = spark.createDataFrame(rows(), "stream string, time bigint, graph string")
    starts = spark.createDataFrame([(7, 2), (9, 5)], "x bigint, time bigint")
    result = detect(program, {"<http://e/s>": graphs.where("stream = 'http://e/s'"), "start": starts}, clock="logical")
    assert [(r["start"], r["end"]) for r in result["calm"].collect()] == [(2, 5)]
    assert result["loud"].collect() == []


def streamed(spark: SparkSession, folder: Path, given: list[tuple[str, int, str]]) -> DataFrame:
    """A stream of graph events, two in a file."""
    folder.mkdir()
    for number in range(0, len(given), 2):
        lines = [json.dumps({"stream": s, "time": t, "graph": g}) for s, t, g in given[number : number + 2]]
        (folder / f"{number}.json").write_text("\n".join(lines), encoding="utf-8")
    return spark.readStream.schema("stream string, time bigint, graph string").json(str(folder))


def heard(frame: DataFrame, name: str) -> DataFrame:
    frame.writeStream.format("memory").queryName(name).trigger(availableNow=True).start().awaitTermination()
    return frame.sparkSession.table(name)


def test_queries_in_a_stream(spark: SparkSession, tmp_path: Path) -> None:
    frame = streamed(spark, tmp_path / "events", rows())
    found = detect_stream(compiled(), frame, clock="logical", lateness="20s", emit="early")["up"]
    assert answers(heard(found, "ups")) == EXPECTED


def test_absent_at_the_end(spark: SparkSession, tmp_path: Path) -> None:
    """An answer ends before it is known: in batch the clock has to be there, and in a stream nothing can come any more."""
    text = QUERY.format(partition="").replace("SEQ(A; B)", "SEQ(A; B!)").replace("?c ?p1 ?p2", "?c ?p1")
    program = augury.compile(text, language="spaseq", name="stays")
    more = [("s", 7, "z", 3), ("s", 8, "x", 9), ("t", 14, "z", 2), ("t", 17, "y", 1)]
    given = [
        *rows(),
        *((f"http://e/{stream}", t, f"<http://e/{c}> <http://e/price> {p} .") for stream, t, c, p in more),
    ]

    def stays(frame: DataFrame) -> set[tuple[object, ...]]:
        return {(json.loads(r["c"]), json.loads(r["p1"]), r["start"], r["end"]) for r in frame.collect()}

    batch = detect(program, spark.createDataFrame(given, "stream string, time bigint, graph string"), clock="logical")
    assert stays(batch["stays"]) == {("http://e/z", 3, 7, 7)}
    given.append(("http://e/t", 50, "<http://e/y> <http://e/price> 1 ."))
    stream = detect_stream(program, streamed(spark, tmp_path / "events", given), clock="logical", lateness="5s")
    assert stays(heard(stream["stays"], "stays")) == {("http://e/z", 3, 7, 7), ("http://e/x", 9, 8, 8)}


def test_queries_over_files(spark: SparkSession, tmp_path: Path) -> None:
    """Graph events are lines of JSON, and what is wrong with one is named."""
    path = tmp_path / "events.jsonl"
    given = [{"stream": stream, "time": time, "graph": graph} for stream, time, graph in rows()]
    for wrong in (None, {"stream": "http://e/s", "time": 4, "graph": 5}):
        path.write_text("".join(json.dumps(one) + "\n" for one in [*given, *([wrong] if wrong else [])]))
        program = compiled()
        task = Task(program, (SourceFile(str(path)),), settings=Settings(on_error="stop"))
        if wrong is None:
            events = SparkJob(spark, task).evaluate().events
            assert {short(*e.args, e.start, e.end) for e in events} == EXPECTED
        else:
            with pytest.raises(DataError, match=r"events.jsonl:7: the graph of a graph event is text, not 5"):
                SparkJob(spark, task).evaluate()
