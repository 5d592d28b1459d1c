"""Answers of a stream through a sink that Spark has not, and addresses that it cannot read."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from augury.cli import cli
from augury.core.errors import RunError
from tests.support.spark_session import SPARK, session

pytestmark = SPARK
deltalake = pytest.importorskip("deltalake")
LONG = bool(os.environ.get("AUGURY_LONG"))
PROGRAM = """
event reading(station: string, speed: float).
output rise.
rise(S, A, B) <- (reading(S, A) SEQ reading(S, B)).20s WHERE B > A.
"""


def rows_of(path: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = deltalake.DeltaTable(path).to_pyarrow_table().to_pylist()
    return rows


def test_a_batch_that_is_repeated_is_written_once(tmp_path: Path) -> None:
    """Also by another process: the checkpoint says under which name the sink keeps the number of its last step."""
    from augury.spark.sink_batches import SinkBatches

    columns = "op string, type string, args string, start bigint, end bigint, id string, trace array<string>"
    rows = [("insert", "a", "[2]", 1, 2, "new", ["r2"]), ("retract", "a", "[1]", 1, 2, "old", ["r1"])]
    first = session().createDataFrame([("insert", "a", "[1]", 1, 2, "old", ["r1"])], columns)
    second = session().createDataFrame(rows, columns)
    for batches in (((first, 0), (second, 1)), ((second, 1),)):
        sink = SinkBatches(f"delta://{tmp_path}/out", tmp_path, print)
        for frame, number in batches:
            sink.write(frame, number)
        sink.close()
    written = sorted((row["step"], row["op"], row["id"]) for row in rows_of(tmp_path / "out"))
    assert written == [(1, "insert", "old"), (2, "insert", "new"), (2, "retract", "old")]


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (["stream", "--from", "mqtt://:word-of-mine@host/t"], "Spark has no source for mqtt://"),
        (["stream", "--from", "delta:///t"], "spark.readStream.format('delta')"),
        (["stream", "--from", "in", "--to", "listen://host:1/x"], "to post answers"),
        (["stream", "--from", "in", "--to", "redis://host:6379/"], "names no stream"),
        (["stream", "--from", "in", "--to", "redis://host/s", "--format", "csv"], "redis:// takes JSON lines"),
        (["run", "--engine", "spark", "--events", "nats://host/s"], "Spark has no source for nats://"),
        (["run", "--engine", "embedded", "--events", "kafka://host/t"], "--engine spark"),
        (["run", "--engine", "embedded", "--events", "mqtt://host/t"], "augury live"),
    ],
)
def test_what_spark_cannot_read_is_refused_with_a_way(tmp_path: Path, command: list[str], message: str) -> None:
    (tmp_path / "p.aug").write_text(PROGRAM)
    (tmp_path / "in").mkdir()
    arguments = [str(tmp_path / text) if text == "in" else text for text in command]
    state = ["--state", str(tmp_path / "state")] if command[0] == "stream" else []
    result = CliRunner().invoke(cli, [arguments[0], str(tmp_path / "p.aug"), *arguments[1:], *state])
    said = result.output + str(result.exception)
    assert isinstance(result.exception, RunError | SystemExit) and message in said and "word-of-mine" not in said


def test_a_stream_writes_a_delta_table(tmp_path: Path) -> None:
    if not LONG:
        pytest.skip("starts a virtual machine twice: AUGURY_LONG=1")
    (tmp_path / "p.aug").write_text(PROGRAM)
    (tmp_path / "in").mkdir()
    command = [
        sys.executable, "-m", "augury", "stream", str(tmp_path / "p.aug"), "--from", str(tmp_path / "in"), "--to",
        f"delta://{tmp_path}/out?mode=merge", "--state", str(tmp_path / "state"), "--trigger", "once", "--emit", "early",
        "--lateness", "1h",
    ]  # fmt: skip
    for number in range(2):
        rows = [
            {"type": "reading", "station": "s", "speed": n * 7 % 11, "time": f"2026-07-01 12:00:{2 * n:02}"}
            for n in range(number * 10, number * 10 + 10)
        ]
        (tmp_path / "in" / f"{number}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        subprocess.run(command, check=True, timeout=600, capture_output=True)
    import augury

    history = [
        row for path in sorted((tmp_path / "in").iterdir()) for row in map(json.loads, path.read_text().splitlines())
    ]
    assert {row["id"] for row in rows_of(tmp_path / "out")} == {event.id for event in augury.run(PROGRAM, history)}
