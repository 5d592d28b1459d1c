"""Time units, zones, renamed columns and JSON arrays on Spark: as the embedded engine reads them."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

import augury
from tests.support.spark_session import SPARK, session

import augury.spark  # isort: skip
from augury.core.time_units import PER_SECOND, TIME_UNITS
from augury.settings import Settings, Task
from augury.sources import SourceFile
from augury.spark.job import SparkJob

pytestmark = SPARK
PROGRAM = "event a(x: int). b(X) <- a(X)."
NOW = 1_700_000_000
WHEN = datetime(2023, 11, 14, 22, 13, 20)


def ends(frame: Any, **settings: Any) -> list[datetime]:
    return [row["end"] for row in augury.spark.detect(PROGRAM, {"a": frame}, **settings)["b"].collect()]


def test_numbers_are_in_a_unit() -> None:
    spark = session()
    for unit in TIME_UNITS:
        frame = spark.createDataFrame([(1, NOW * PER_SECOND[unit])], "x int, time bigint")
        assert ends(frame, time_unit=unit) == [WHEN]
    with pytest.warns(UserWarning, match="nanoseconds since 1970"):
        assert ends(frame) == [WHEN]
    assert ends(spark.createDataFrame([(1, -1)], "x int, time bigint"), time_unit="ns")[0].microsecond == 999_999
    small = spark.createDataFrame([(1, 5)], "x int, time bigint")
    with pytest.raises(augury.DataError, match="D101"):
        ends(small, clock="timestamp")
    mixed = spark.createDataFrame([(1, 5), (2, NOW)], "x int, time bigint").coalesce(1)
    with pytest.raises(Exception, match="looks like seconds since 1970, among times in ticks"):
        ends(mixed)


def test_local_times() -> None:
    texts = ["2026-03-29 02:30:00", "2026-10-25 02:30:00"]
    rows = ", ".join(f"(timestamp_ntz'{text}')" for text in texts)
    frame = session().sql(f"select 1 as x, t as time from values {rows} v(t)")
    zone = ZoneInfo("Europe/Berlin")
    expected = [datetime.fromisoformat(t).replace(tzinfo=zone).astimezone(UTC).replace(tzinfo=None) for t in texts]
    assert sorted(ends(frame, zone="Europe/Berlin")) == expected


def test_an_array_with_renamed_keys(tmp_path: Path) -> None:
    rows = [{"type": "a", "number": i, "time": NOW + i} for i in range(3)]
    (tmp_path / "e.json").write_text(json.dumps(rows, indent=1))
    program = augury.compile(PROGRAM)
    source = SourceFile.parse(str(tmp_path / "e.json"), columns=["a.x=number"], plan=program.plan)
    task = Task(program, (source,), settings=Settings.of(program, time_unit="s"))
    found = SparkJob(session(), task).evaluate().events
    assert [(e.args, e.end) for e in found] == [((i,), (NOW + i) * 10**6) for i in range(3)]


def test_declared_timestamps_are_local_times() -> None:
    program = "event a(x: timestamp). b(X) <- a(X)."
    when, expected = "timestamp'2026-01-01 00:00:00' as time", datetime(2026, 7, 1, 8)
    for local in ("timestamp_ntz'2026-07-01 10:00:00'", "'2026-07-01 10:00:00'", "'2026-07-01T08:00:00Z'"):
        frame = session().sql(f"select {local} as x, {when}")
        rows = augury.spark.detect(program, {"a": frame}, zone="Europe/Berlin")["b"].collect()
        assert [row["x"] for row in rows] == [expected], local
