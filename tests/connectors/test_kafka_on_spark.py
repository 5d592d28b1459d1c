"""`augury stream` from and to Kafka, with Spark's own source and sink."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from augury.cli import cli
from tests.support.servers import Server
from tests.support.service_kills import PATIENCE, expected

pytest.importorskip("pyspark")
PROGRAM = """
event reading(station: string, speed: float).
output rise.
rise(S, A, B) <- (reading(S, A) SEQ reading(S, B)).20s WHERE B > A.
"""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--from", "kafka://:word-of-mine@host:9092"], "names no topic"),
        (["--from", "kafka://host:9092/t?format=avro&schema=a.avsc"], "without the option `schema`"),
        (["--from", "kafka://host:9092/t?key=replace"], "without the option `key=replace`"),
        (["--from", "kafka://host:9092/t?strat=latest"], "did you mean `start`"),
        (["--from", "kafka://host:9092/t", "--to", "kafka://host:9092"], "names no topic"),
        (["--from", "kafka://host:9092/t", "--to", "kafka://host:9092/a", "--format", "parquet"], "takes JSON lines"),
    ],
)
def test_addresses_that_spark_cannot_use_are_refused_before_it_starts(
    tmp_path: Path, arguments: list[str], message: str
) -> None:
    (tmp_path / "p.aug").write_text(PROGRAM)
    result = CliRunner().invoke(
        cli, ["stream", str(tmp_path / "p.aug"), *arguments, "--state", str(tmp_path / "state")]
    )
    said = result.output + str(result.exception)
    assert result.exit_code != 0 and message in said and "word-of-mine" not in said


def test_jars_are_those_that_are_named_or_at_hand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from augury.spark import kafka_topics

    monkeypatch.setattr(kafka_topics, "_JARS", tmp_path)
    (package,) = kafka_topics.package_settings(())
    assert package.startswith("spark.jars.packages=org.apache.spark:spark-sql-kafka-0-10_2.13:")
    assert kafka_topics.package_settings(("spark.jars=mine.jar",)) == ("spark.jars=mine.jar",)
    (tmp_path / "a.jar").write_text("")
    assert kafka_topics.package_settings(("x=y",)) == ("x=y", f"spark.jars={tmp_path}/a.jar")


def test_a_stream_reads_and_writes_topics_and_resumes(kafka: Server, tmp_path: Path) -> None:
    from confluent_kafka.admin import AdminClient, NewTopic

    from augury.spark.kafka_topics import _JARS
    from tests.connectors.test_kafka import answers, consumed, produce, readings

    if not any(_JARS.glob("spark-sql-kafka*.jar")):
        pytest.skip(f"there are no jars of Spark's Kafka package in {_JARS}")
    admin = AdminClient({"bootstrap.servers": f"127.0.0.1:{kafka.port}"})
    for name in ("spark-in", "spark-out"):
        admin.create_topics([NewTopic(name, 2, 1)])[name].result(PATIENCE)
    (tmp_path / "p.aug").write_text(PROGRAM)
    base = f"kafka://127.0.0.1:{kafka.port}"
    command = [
        sys.executable, "-m", "augury", "stream", str(tmp_path / "p.aug"), "--from", f"{base}/spark-in", "--to",
        f"{base}/spark-out", "--state", str(tmp_path / "state"), "--trigger", "once", "--emit", "early", "--lateness", "1h",
    ]  # fmt: skip

    def messages(first: int, number: int) -> list[tuple[str, dict[str, Any]]]:
        """The key is the id; the text has line ends, as of people who write by hand."""
        items = [
            {**item, "time": datetime.fromtimestamp(item["time"], UTC).isoformat()} for item in readings(first, number)
        ]
        return [(item.pop("id"), item) for item in items]

    revoked: list[tuple[str, None]] = [("r7", None)]
    for part in ([*messages(0, 40), *revoked], messages(40, 20)):
        produce(kafka, "spark-in", part)
        done = subprocess.run(command, capture_output=True, text=True, timeout=20 * PATIENCE, check=False)
        assert done.returncode == 0, done.stderr[-3000:]
    history = [item for item in readings(0, 60) if item["id"] != "r7"]
    assert answers(consumed(kafka, "spark-out")) == expected(PROGRAM, history, time_unit="s")
