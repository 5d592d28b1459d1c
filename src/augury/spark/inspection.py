"""The state of a stream, opened to be read: a session for each stage and bucket, as of the last complete batch.

The stream may run meanwhile: Spark reads the files of a batch that is committed, and nothing is written.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from augury.engine.session import Session
from augury.spark.checkpoint import StreamOptions, earlier_program
from augury.spark.checkpoint_files import last_batches
from augury.spark.failures import user_errors
from augury.spark.heartbeats import BEATS
from augury.spark.job import FileRun
from augury.spark.pipeline import Execution
from augury.spark.state import Bucket
from augury.spark.stream import DetectionStream, Processor, Version


@dataclass(frozen=True)
class BucketSession:
    """What a bucket of a stage holds; `extra` arguments of its events are not those of the program."""

    stage: int
    bucket: int
    session: Session
    extra: int = 0


class StreamState(FileRun):
    """The state of the checkpoint of `augury stream`."""

    def __init__(self, spark: SparkSession, options: StreamOptions) -> None:
        self.spark, self.options = spark, options
        settings = options.task.settings
        saved: dict[str, Any] = {
            name: getattr(settings, name) or options.saved.get(name) for name in ("clock", "time_unit")
        }
        events = tuple(map(options.spooled, options.task.events))
        task = replace(options.task, events=events, settings=replace(settings, **saved))
        self.beats = options.checkpoint / BEATS if options.saved.get("idle") else None
        super().__init__(spark, task, Execution(buckets=options.buckets), streaming=True, beats=self.beats)
        with user_errors(self.places), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # they were said when the stream started
            versions = [self._version(version) for version in options.versions]
            self.stream = DetectionStream(self.pipeline, versions, options.since)

    def _version(self, saved: dict[str, Any]) -> Version:
        task = replace(self.task, program=earlier_program(self.task.program, saved["program"]))
        run = FileRun(self.spark, task, self.pipeline.execution, streaming=True, beats=self.beats)
        return Version(DetectionStream(run.pipeline), saved["since"])

    def sessions(self) -> Iterator[BucketSession]:
        """The session of each bucket that has one, stage by stage; none before the first batch is complete."""
        if last_batches(self.options.spark)[1] is None:
            return
        stream, outputs = self.stream, self.pipeline.plan.outputs
        processors = stream.processors(self.pipeline.staged(outputs, alone=stream.buckets == 1, live=True))
        with user_errors(self.places):
            operators = sorted((self.options.spark / "state").glob("[0-9]*"), key=lambda path: int(path.name))
            kept = [bucket for path in operators for bucket in self._buckets(path)]
        for number, processor in sorted(processors.items()):
            for bucket in sorted(kept, key=lambda bucket: bucket.number):
                if bucket.stage == number:
                    yield BucketSession(number, bucket.number, bucket.opened(processor), len(processor.work.extra))

    def _buckets(self, operator: Path) -> list[KeptBucket]:
        """What the state store of an operator holds, by bucket."""
        states: dict[int, KeptBucket] = {}
        for name in ("head", "program", "log"):
            for row in self._read(operator, name).collect():
                state = states.setdefault(row["key"][0], KeptBucket(row["key"][0]))
                if name == "log":
                    state.entries[row["user_map_key"][0]] = (row["user_map_value"][0],)
                else:
                    state.values[name] = (row["value"][0],)
        return list(states.values())

    def _read(self, operator: Path, name: str) -> Any:
        reader = self.spark.read.format("statestore").option("operatorId", operator.name).option("stateVarName", name)
        return reader.load(str(self.options.spark.absolute()))


class KeptBucket:
    """The state of a bucket as it was read."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.values: dict[str, Any] = {}
        self.entries: dict[int, Any] = {}

    @property
    def stage(self) -> int:
        """The stage that it is of; 0 where it never took a step."""
        program = self.values.get("program")
        return int(json.loads(bytes(program[0]))["stage"]) if program and "head" in self.values else 0

    def opened(self, processor: Processor) -> Session:
        head, program = _ReadValue(self.values.get("head")), _ReadValue(self.values.get("program"))
        return Bucket(head, self, program, processor, processor.fingerprint).cached.session

    def getValue(self, key: Any) -> Any:
        return self.entries.get(key[0])

    def updateValue(self, key: object, value: object) -> None:
        raise AssertionError("state is opened to be read")

    def removeKey(self, key: object) -> None:
        raise AssertionError("state is opened to be read")


@dataclass(frozen=True)
class _ReadValue:
    value: Any

    def exists(self) -> bool:
        return self.value is not None

    def get(self) -> Any:
        return self.value

    def update(self, value: object) -> None:
        raise AssertionError("state is opened to be read")
