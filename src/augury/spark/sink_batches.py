"""Batches of a stream through the sinks of `augury live`, for addresses that Spark has no sink of its own for.

The answers of a batch come to the driver, and are the step of the batch's number: a sink that stores the number of its last
step, or writes by id, has each answer once, also where a batch is repeated after a crash. The name under which it stores that
is a file of the checkpoint.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from augury.connectors import Address, AnswerSink, RenderedChanges, UnavailableError, open_sink, redacted
from augury.engine.saved import write_file

_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 15.0


class SinkBatches:
    """The sink of a stream, which is opened with its first batch."""

    def __init__(self, address: str, checkpoint: Path, notify: Callable[[str], object]) -> None:
        self.address, self.checkpoint, self.notify = Address.parse(address), checkpoint, notify
        self._sink: AnswerSink | None = None
        self._last = 0

    def write(self, answers: DataFrame, batch: int) -> None:
        """Writes the answers of a batch, unless the sink has them; waits until it can be reached."""
        changes = rendered_rows(answers, batch + 1)
        pause, problem = _FIRST_PAUSE, ""
        while True:
            try:
                sink = self._opened()
                if changes.step > self._last:
                    self._keep_refused(sink.write([changes]))
                return
            except UnavailableError as error:
                if not problem:
                    problem = redacted(error)
                    self.notify(problem)
                time.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)

    def close(self) -> None:
        if self._sink is not None:
            self._sink.close()
            self._sink = None

    def _opened(self) -> AnswerSink:
        if self._sink is None:
            sink = open_sink(self.address)
            self._last = sink.open({"run": self._run()}) or 0
            self._sink = sink
        return self._sink

    def _run(self) -> str:
        """The name of this stream for its sink, kept with the checkpoint."""
        path = self.checkpoint / "sink"
        if not path.exists():
            write_file(path, [uuid.uuid4().hex.encode()])
        return path.read_text(encoding="utf-8")

    def _keep_refused(self, refused: list[tuple[str, bytes]]) -> None:
        if not refused:
            return
        path = self.checkpoint / "refused.jsonl"
        with path.open("ab") as file:
            file.write(b"".join(line + b"\n" for _, line in refused))
        self.notify(
            f"{self.address.name} refuses {len(refused):,} answers, which are in {path}: {redacted(refused[0][0])}"
        )


def rendered_rows(answers: DataFrame, step: int) -> RenderedChanges:
    """Answers in columns as lines, each with its `op`."""
    op = F.col("op") if "op" in answers.columns else F.lit("insert")
    rest = [F.col(name) for name in answers.columns if name != "op"]
    line = F.to_json(F.struct(op.alias("op"), *rest))
    rows = answers.select(op.alias("op"), "type", "id", line.alias("line")).collect()
    rows.sort(key=lambda row: str(row["op"]), reverse=True)  # what is retracted makes room for what is inserted
    ops, types, ids = ([row[name] for row in rows] for name in ("op", "type", "id"))
    return RenderedChanges(step, ops, types, ids, [row["line"].encode() for row in rows])
