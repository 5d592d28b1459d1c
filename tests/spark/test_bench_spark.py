"""The benchmarks on Spark count right, over a few thousand events. Nothing here depends on speed."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from bench import spark as spark_bench
from bench.measure import Settings
from bench.spark import Lab
from tests.support.spark_session import SPARK
from tests.support.spark_session import spark_fixture as spark_fixture

pytestmark = [
    *SPARK,
    pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="only Linux says what other processes use"),
]
SMALL = 4_000


def test_history_and_streams_count_right(spark: SparkSession, tmp_path: Path) -> None:
    lab = Lab(spark, tmp_path, Settings(events=SMALL, repeat=1))
    rows = [*spark_bench.batch(lab, ["P1"]), *spark_bench.stream(lab)]
    assert [(row.figure, row.series) for row in rows] == [
        ("batch", "baseline"), ("batch", "augury"), ("batch", "Spark SQL"),
        *[("stream", "no state"), ("stream", "one value of state"), ("stream", "augury")] * 2,
    ]  # fmt: skip
    assert all(row.right and row.value > 0 and row.figure in spark_bench.TITLES for row in rows)
    found = [row for row in rows if row.series == "augury"]
    assert all(row.ratio and row.target and row.expected for row in found)


def test_spark_benchmark_names_select_benchmarks(capsys: pytest.CaptureFixture[str]) -> None:
    assert list(spark_bench.chosen([])) == ["batch", "copies", "stream"]
    assert list(spark_bench.chosen(["ALL"])) == list(spark_bench.ALL) and list(spark_bench.chosen(["p1", "big"])) == [
        "batch",
        "big",
    ]
    assert spark_bench.run(["P99"]) == 2
    assert "there are batch, copies" in capsys.readouterr().err
