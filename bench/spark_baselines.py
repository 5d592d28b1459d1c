"""What Spark does without Augury: the same question as SQL, and the smallest operator that keeps state."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from bench.baselines import SQL

# Windows over all rows of a key, and arg_min, are DuckDB's dialect.
IN_SQL = ("P1", "P2-10", "P2-50", "P2-100", "P3", "P4", "P5-each")


def in_sql(spark: SparkSession, name: str, events: DataFrame) -> DataFrame:
    """A pattern as joins of the whole table with itself."""
    events.withColumnsRenamed({"type": "kind", "time": "t"}).createOrReplaceTempView("s")
    answers = spark.sql(SQL[name])
    return answers.toDF(*(f"column{number}" for number in range(len(answers.columns))))


def counting(events: DataFrame, buckets: int) -> DataFrame:
    """Passes a stream on through `transformWithStateInPandas`, with one value of state for each bucket: the rows so far."""
    keyed = events.withColumn("bucket", F.pmod(F.hash("key"), F.lit(buckets)))
    return keyed.groupBy("bucket").transformWithStateInPandas(_counter(), keyed.schema, "Append", "None")


def _counter() -> Any:
    from pyspark.sql.streaming.stateful_processor import StatefulProcessor

    class Counter(StatefulProcessor):
        """A class inside a function is pickled with its code, so that workers need not import this module."""

        def init(self, handle: Any) -> None:
            self.rows = handle.getValueState("rows", "n bigint")

        def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Any]:
            (number,) = self.rows.get() if self.rows.exists() else (0,)
            for frame in rows:
                number += len(frame)
                yield frame
            self.rows.update((number,))

        def close(self) -> None:
            """There is nothing to close."""

    return Counter()
