"""Sends the figures of a service, and traces of its answers, to an OpenTelemetry collector, over HTTP."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, Any

import orjson

from augury.connectors import RenderedChanges
from augury.core.errors import RunError
from augury.service.service_metrics import FIGURES, Figure, kind_of

if TYPE_CHECKING:
    from augury.service.live_service import LiveService

_EVERY = 10_000  # milliseconds
_PATIENCE = 5  # seconds
_SPANS = 50  # answers of a step that are traced
_INPUTS = 100  # inputs of an answer that are named


@contextmanager
def exported(service: LiveService, url: str, every: int = _EVERY, patience: int = _PATIENCE) -> Iterator[None]:
    """Sends all figures every ten seconds while the block runs, and once at its end, which may take `patience` seconds."""
    try:
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.metrics import MeterProvider
        from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ModuleNotFoundError as error:
        raise RunError(f"--otlp needs the package {error.name}", hint="pip install 'augury[metrics]'") from None
    endpoint = f"{url.rstrip('/')}/v1/metrics"
    reader = PeriodicExportingMetricReader(OTLPMetricExporter(endpoint=endpoint, timeout=patience), every)
    resource = Resource.create({"service.name": "augury"})
    provider = MeterProvider([reader], resource)
    meter = provider.get_meter("augury")
    for name, meaning in FIGURES.items():
        make = meter.create_observable_counter if kind_of(name) == "counter" else meter.create_observable_gauge
        make(name, [_observer(service, name)], description=meaning)
    spans = TracerProvider(resource=resource)
    spans.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(f"{url.rstrip('/')}/v1/traces", timeout=patience)))
    traced = _span_writer(spans.get_tracer("augury"))
    for writer in service.writers:
        writer.traced = traced
    try:
        yield
    finally:
        spans.shutdown()
        provider.shutdown(timeout_millis=patience * 1000)


def _span_writer(tracer: Any) -> Callable[[str, RenderedChanges, float], None]:
    """A span for each of the first answers of a step: from the arrival of its last input until a sink has it."""

    def write(sink: str, changes: RenderedChanges, seconds: float) -> None:
        ended = time.time_ns()
        rows = zip(changes.ops, changes.types, changes.ids, changes.lines, strict=True)
        for op, type, id, line in islice(rows, _SPANS):
            answer = orjson.loads(line)
            attributes = {
                "augury.op": op, "augury.type": type, "augury.id": id, "augury.sink": sink, "augury.step": changes.step,
                "augury.args": orjson.dumps(answer.get("args", ())).decode(),
                "augury.inputs": [str(each) for each in answer.get("trace", ())[:_INPUTS]],
            }  # fmt: skip
            span = tracer.start_span(f"{op} {type}", attributes=attributes, start_time=ended - int(seconds * 1e9))
            span.end(ended)

    return write


def _observer(service: LiveService, name: str) -> Callable[[Any], Iterable[Any]]:
    from opentelemetry.metrics import Observation

    def observe(options: object) -> Iterable[object]:
        figures: Iterable[Figure] = service.metrics.figures()
        return [Observation(float(figure.value), dict(figure.labels)) for figure in figures if figure.name == name]

    return observe
