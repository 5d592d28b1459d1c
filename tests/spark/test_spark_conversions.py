"""What Spark makes of text in a typed column is what the row of its type in `sources/types.py` makes of it."""

from __future__ import annotations

import random

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from augury.core.clock import Clock
from augury.sources.types import from_text
from augury.spark.conversions import from_column, time_of_text
from tests.support.spark_session import SPARK
from tests.support.spark_session import spark_fixture as spark_fixture
from tests.unit.test_line_reader import MANY, PREFIXES, TEXTS, expected, mutated

pytestmark = SPARK


def tick(text: str, *_: object) -> int:
    return Clock().read(text)


@pytest.mark.parametrize("type", ["timestamp", "duration", "iri", "string", "tick"])
def test_texts_convert_as_the_engine_reads_them(spark: SparkSession, type: str) -> None:
    """Ticks are what a clock reads, and other texts what their types make of them."""
    chance, named = random.Random(f"text {type}"), "int" if type == "tick" else type
    pool = [*TEXTS[named], *(t for texts in TEXTS.values() for t in texts)]
    texts = list(dict.fromkeys([*pool, *(mutated(chance, chance.choice(TEXTS[named])) for _ in range(MANY))]))
    frame = spark.createDataFrame([(t,) for t in texts if t], "t string")
    given = F.col("t")
    value = time_of_text(given, Clock()) if type == "tick" else from_column(type, given, T.StringType(), PREFIXES)
    for row in frame.select("t", value.alias("v")).collect():
        theirs, wrong = expected(tick if type == "tick" else from_text, named, row["t"])
        assert (row["v"] is None, row["v"]) == (wrong, theirs), (row, theirs, wrong)
