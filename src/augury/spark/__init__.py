"""Augury on Spark: DataFrames in, DataFrames of detections out, in batch and in streams."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from augury.compiled import Compiled, source_of
from augury.core.clock import Kind
from augury.core.errors import RunError
from augury.core.model import Fact
from augury.core.time_units import TimeUnit
from augury.settings import Settings, length
from augury.sources.heading import ColumnNames, with_columns

if TYPE_CHECKING:
    from augury.spark.batch import Detections
    from augury.spark.metrics import StreamMetrics
    from augury.spark.stream import DetectionStream

try:
    import pyspark  # noqa: F401
except ImportError:  # pragma: no cover
    raise RunError("Spark is not installed", hint="pip install pyspark") from None

Facts = Mapping[str, object] | Iterable[Fact]


def detect(
    program: Compiled | str | Path,
    events: object,
    *,
    clock: Kind | None = None,
    time_unit: TimeUnit | None = None,
    zone: str | None = None,
    policy: str | None = None,
    facts: Facts = (),
    rdf: object = (),
    until: object = None,
    retention: str | None = None,
    longest: str | None = None,
    time: str = "time",
    start: str = "start",
    end: str = "end",
    id: str = "id",
    op: str = "op",
    version: str = "version",
    type: str = "type",
    columns: Mapping[str, str] | None = None,
    trace: bool = True,
    on_error: Literal["stop", "skip"] = "stop",
    strict: bool = False,
    limits: Mapping[str, object] | None = None,
    partitions: int | None = None,
    skew: bool = False,
    broadcast: int = 100_000,
) -> Detections:
    """Detects over a history: DataFrames by type (or one with a type column) in, a DataFrame for each output out, lazily.

    `time`, `start`, `end`, `id`, `op`, `version` and `type` name columns, `columns` those of attributes that are called
    otherwise, `{"pay.card": "card.id"}`; a name may be a path into a nested column. `time_unit` ("s", "ms", "us" or "ns") is that of times that
    are numbers since 1970, `zone` that of times without one. A malformed row stops the run, or with on_error="skip" goes
    to `.malformed` alone. Events of types that the program does not know are ignored, unless `strict`.
    `longest` bounds how long input events last, `limits` what each bucket may use, as in `Program.session`; `skew` also
    cuts keyed stages into slices of time. A DataFrame of facts with more rows than `broadcast` is joined with the events
    that ask for them.
    """
    from augury.spark.batch import Detections
    from augury.spark.beginning import HistoryRun
    from augury.spark.pipeline import Execution, Pipeline

    compiled = _compiled(program, policy, facts)
    names = _names(ColumnNames(type, time, start, end, id, op, version=version), columns, compiled)
    execution = Execution(names, trace, broadcast=broadcast, partitions=partitions, skew=skew)
    settings = Settings.of(
        compiled,
        clock=clock,
        time_unit=time_unit,
        zone=zone,
        retention=retention,
        longest=longest,
        on_error=on_error,
        strict=strict,
        limits=limits,
    )
    made = partial(Pipeline, compiled, facts=facts, rdf=rdf)
    pipeline = made(events, settings, execution)
    if any(source.frame.isStreaming for source in pipeline.sources):
        raise RunError("these DataFrames are streams", hint="detect_stream(…) detects in streams")
    return Detections(pipeline, until, HistoryRun(events, settings, execution, made))


def detect_stream(
    program: Compiled | str | Path,
    events: object,
    *,
    lateness: str,
    emit: Literal["early", "final"] = "final",
    clock: Kind | None = None,
    time_unit: TimeUnit | None = None,
    zone: str | None = None,
    policy: str | None = None,
    facts: Facts = (),
    rdf: object = (),
    retention: str | None = None,
    longest: str | None = None,
    time: str = "time",
    start: str = "start",
    end: str = "end",
    id: str = "id",
    op: str = "op",
    version: str = "version",
    type: str = "type",
    columns: Mapping[str, str] | None = None,
    trace: bool = True,
    on_error: Literal["stop", "skip"] = "stop",
    strict: bool = False,
    limits: Mapping[str, object] | None = None,
    buckets: int | None = None,
    broadcast: int = 100_000,
    ahead: str | None = None,
) -> DetectionStream:
    """Detects in streams: streaming DataFrames in, a streaming DataFrame for each output out.

    `lateness` says how late an event or a revocation may come; what is later goes to `.late`. With emit="final" an answer
    is given once nothing can change it; with "early" at once, and rows with op "retract" take answers back. An event that is
    further in the future than `ahead` goes to `.late`, too, and moves no clock.
    """
    from augury.spark.pipeline import Execution, Pipeline
    from augury.spark.stream import DetectionStream

    compiled = _compiled(program, policy, facts)
    names = _names(ColumnNames(type, time, start, end, id, op, version=version), columns, compiled)
    execution = Execution(names, trace, broadcast=broadcast, buckets=buckets, ahead=length(ahead))
    settings = Settings.of(
        compiled,
        clock=clock,
        time_unit=time_unit,
        zone=zone,
        emit=emit,
        lateness=lateness,
        retention=retention,
        longest=longest,
        on_error=on_error,
        strict=strict,
        limits=limits,
    )
    pipeline = Pipeline(compiled, events, settings, execution, facts=facts, rdf=rdf)
    if not all(source.frame.isStreaming for source in pipeline.sources):
        raise RunError(
            "these DataFrames are not streams", hint="detect(…) detects in a history; spark.readStream makes a stream"
        )
    return DetectionStream(pipeline)


def _names(names: ColumnNames, columns: Mapping[str, str] | None, program: Compiled) -> ColumnNames:
    """Names with those of attributes."""
    renamed = [f"{attribute}={column}" for attribute, column in (columns or {}).items()]
    return with_columns(names, renamed, None, program.plan)


def _compiled(program: Compiled | str | Path, policy: str | None, facts: Any) -> Compiled:
    """A program that is given as text or as a path, or with another policy."""
    if isinstance(program, Compiled):
        return program if policy is None else program.with_policy(policy)
    names = {f if isinstance(f, str) else f.name for f in facts}
    return Compiled.of([source_of(program)], facts=names, policy=policy)


def __getattr__(name: str) -> object:
    """What takes long to import is imported when it is used."""
    if name == "StreamMetrics":
        from augury.spark.metrics import StreamMetrics

        return StreamMetrics
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = ["StreamMetrics", "detect", "detect_stream"]
