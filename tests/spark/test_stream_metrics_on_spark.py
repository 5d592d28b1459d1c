"""What a query says of its batches: every input once, and figures by stage and rule."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.spark.test_cli_spark import pytestmark as pytestmark
from tests.spark.test_cli_spark import spark as spark

PROGRAM = """\
event wind(station: string, speed: float).
event fire(place: string, level: int).
gust(S, W)   <- (wind(S, V) SEQ wind(S, W)).10min WHERE W > V * 1.2.
danger(S, P) <- (gust(S, _) AND fire(P, L)).1h WHERE L > 2.
"""


def test_figures_of_a_stream_with_stages(spark: Any, tmp_path: Path) -> None:
    import augury.spark

    rows = [
        {"type": "wind", "station": "s1", "speed": 50.0, "time": "2026-07-01 12:00"},
        {"type": "wind", "station": "s1", "speed": 70.0, "time": "2026-07-01 12:05"},
        {"type": "fire", "place": "creek", "level": 4, "time": "2026-07-01 12:30"},
        {"type": "fire", "place": "creek", "level": 4, "time": "soon"},
        {"type": "fire", "place": "hill", "level": 4, "time": "2026-07-01 16:00"},
    ]
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.json").write_text("".join(json.dumps(row) + "\n" for row in rows))
    schema = "type string, station string, speed double, place string, level int, time string"
    events = spark.readStream.schema(schema).json(str(tmp_path / "in"))
    stream = augury.spark.detect_stream(PROGRAM, events, lateness="10 min", buckets=2, on_error="skip")
    parts: dict[str, list[Any]] = {}

    def take(batch: Any, number: int) -> None:
        for name, frame in stream.parts(batch).items():
            parts.setdefault(name, []).extend(frame.collect())

    query = stream.everything.writeStream.foreachBatch(take).option("checkpointLocation", str(tmp_path / "cp"))
    running = query.trigger(availableNow=True).start()
    running.awaitTermination()
    assert [row["n"] if "n" in row else row["problem"] for row in parts["malformed"]] == ["the time is missing or cannot be read"]  # fmt: skip
    assert json.loads(parts["malformed"][0]["row"])["time"] == "soon"
    metrics = augury.spark.StreamMetrics()
    for progress in running.recentProgress:
        metrics.add(progress)
    stats = metrics.stats()
    assert (stats["received"], stats["malformed"], stats["matches"]) == (
        5,
        1,
        len(parts["gust"]) + len(parts["danger"]),
    )
    assert stats["stages"][1]["rules"]["gust"]["matches"] == len(parts["gust"]) == 1
    assert stats["stages"][2]["rules"]["danger"]["matches"] == len(parts["danger"]) == 1
    assert stats["rows"] > 0 and stats["stages"][2]["lag"] >= 0
