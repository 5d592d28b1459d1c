"""A clock for sources that fall silent: when nothing has come for a while, a heartbeat says what time it is.

Spark's watermark moves with events alone. A heartbeat is a row of a file below the checkpoint, which a source of the stream
reads like any other: it is in Spark's log, and a batch that is repeated has the same ones.
"""

from __future__ import annotations

import json
import os
import time
from datetime import UTC, datetime
from pathlib import Path

from pyspark.sql import SparkSession

from augury.core.errors import DataError
from augury.sources.heading import NAMES
from augury.spark.inputs import EventFrame, TypeColumns

BEAT = ("#beat", 0)  # the type of heartbeats, which no program can name
BEATS = "heartbeats"  # their folder, below the checkpoint
_KEPT = 1000  # files


def heartbeats(spark: SparkSession, folder: Path) -> EventFrame:
    """The heartbeats of a stream as events."""
    frame = spark.readStream.schema("time timestamp").json(str(folder.absolute()))
    return EventFrame(frame, (TypeColumns(BEAT, (), ()),), NAMES)


class Heart:
    """Beats when nothing has come for so many microseconds, and then as often."""

    def __init__(self, folder: Path, idle: int) -> None:
        self.folder, self.idle, self.heard = folder, idle / 1e6, time.monotonic()
        self.number = max((int(p.stem) for p in folder.glob("*.json") if p.stem.isdigit()), default=-1) + 1

    def listen(self, busy: bool) -> None:
        """Something has come, or is being worked on; or else it may be time to beat."""
        now = time.monotonic()
        if busy:
            self.heard = now
        elif now - self.heard >= self.idle:
            self.heard = now
            self.beat()

    def beat(self) -> None:
        """Writes what time it is; a file appears when it is whole."""
        hidden = self.folder / f".{self.number}.part"
        try:
            hidden.write_text(json.dumps({"time": datetime.now(UTC).isoformat()}) + "\n")
            os.replace(hidden, self.folder / f"{self.number:010d}.json")
            (self.folder / f"{self.number - _KEPT:010d}.json").unlink(missing_ok=True)
        except OSError as error:
            raise DataError(f"cannot be written: {error.strerror}", str(self.folder)) from None
        self.number += 1
