"""History, then live: the state of a stream that has read a history as its first batch, in a checkpoint of Spark's.

A history is DataFrames of any kind, which no stream can read: it is written as Parquet, and a stream reads that. In the
checkpoint that it leaves, the sources have no place yet, so that the live query begins with whatever its own sources have.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame

from augury.core.errors import DataError, RunError
from augury.settings import Emit, Settings, length
from augury.spark.failures import user_errors, writing_to
from augury.spark.inputs import is_frame
from augury.spark.pipeline import Execution, Pipeline
from augury.spark.relocation import forget_sources, relocate
from augury.spark.stream import DetectionStream


@dataclass(frozen=True)
class HistoryRun:
    """What a detection was asked for: enough to ask for it again, of a stream."""

    events: Any
    settings: Settings
    execution: Execution
    pipeline: Callable[[Any, Settings, Execution], Pipeline]

    def begin(
        self,
        path: str | Path,
        clock: Mapping[str, Any],
        lateness: str,
        emit: Emit,
        type: str | None,
        buckets: int | None,
    ) -> DataFrame:
        """Runs over the history as a stream does, and leaves its state; the answers of it."""
        target = _local(path)
        part = target.with_name(f".{target.name}.part")
        shutil.rmtree(part, ignore_errors=True)
        try:
            with writing_to(part):
                part.mkdir(parents=True)
            stream = self._stream(part, clock, lateness, emit, buckets)
            rows = stream.wide if type is None else stream[type]
            write = partial(_write, folder=str(part / "answers"))
            query = rows.writeStream.foreachBatch(write).option("checkpointLocation", str(part))
            with user_errors():
                query.trigger(availableNow=True).start().awaitTermination()
            shutil.rmtree(part / "history", ignore_errors=True)
            forget_sources(part)
            relocate(part, target)
            os.rename(part, target)
        finally:
            shutil.rmtree(part, ignore_errors=True)
        spark, written = rows.sparkSession, sorted((target / "answers").glob("batch=*"))
        frames = spark.read.schema(rows.schema).parquet(*map(str, written)) if written else None
        return spark.createDataFrame([], rows.schema) if frames is None else frames

    def _stream(
        self, part: Path, clock: Mapping[str, Any], lateness: str, emit: Emit, buckets: int | None
    ) -> DetectionStream:
        given_events = self.events
        named = {"events": given_events} if is_frame(given_events) else dict(given_events)
        streams = {
            name: _as_stream(frame, part / "history" / str(number))
            for number, (name, frame) in enumerate(named.items())
        }
        events = streams["events"] if is_frame(given_events) else streams
        settings = replace(self.settings, lateness=length(lateness), emit=emit, **clock)
        execution = replace(self.execution, buckets=buckets, partitions=None, skew=False)
        return DetectionStream(self.pipeline(events, settings, execution))


def _local(path: str | Path) -> Path:
    """A folder of this machine, or one that is mounted there, that does not exist yet."""
    text = str(path).removeprefix("file://")
    if "://" in text:
        raise RunError(
            f"a history leaves its state on a disk of this machine, and not in {path}",
            hint="run the query over a stream of the history with trigger(availableNow=True)",
        )
    target = Path(text).absolute()
    if target.exists():
        raise DataError("exists already", str(path), "name a new folder")
    return target


def _as_stream(frame: DataFrame, folder: Path) -> DataFrame:
    """The rows of a DataFrame as a stream."""
    frame.write.parquet(str(folder))
    return frame.sparkSession.readStream.schema(frame.schema).parquet(str(folder))


def _write(rows: DataFrame, number: int, folder: str) -> None:
    rows.write.mode("overwrite").parquet(f"{folder}/batch={number}")
