"""Sends the figures of a service to an OpenTelemetry collector, over HTTP."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from augury.core.errors import RunError
from augury.service.service_metrics import FIGURES, Figure, kind_of

if TYPE_CHECKING:
    from augury.service.live_service import LiveService

_EVERY = 10_000  # milliseconds
_PATIENCE = 5  # seconds


@contextmanager
def exported(service: LiveService, url: str, every: int = _EVERY, patience: int = _PATIENCE) -> Iterator[None]:
    """Sends all figures every ten seconds while the block runs, and once at its end, which may take `patience` seconds."""
    try:
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
        from opentelemetry.sdk.metrics import MeterProvider
        from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
        from opentelemetry.sdk.resources import Resource
    except ModuleNotFoundError as error:
        raise RunError(f"--otlp needs the package {error.name}", hint="pip install 'augury[metrics]'") from None
    endpoint = f"{url.rstrip('/')}/v1/metrics"
    reader = PeriodicExportingMetricReader(OTLPMetricExporter(endpoint=endpoint, timeout=patience), every)
    provider = MeterProvider([reader], Resource.create({"service.name": "augury"}))
    meter = provider.get_meter("augury")
    for name, meaning in FIGURES.items():
        make = meter.create_observable_counter if kind_of(name) == "counter" else meter.create_observable_gauge
        make(name, [_observer(service, name)], description=meaning)
    try:
        yield
    finally:
        provider.shutdown(timeout_millis=patience * 1000)


def _observer(service: LiveService, name: str) -> Callable[[Any], Iterable[Any]]:
    from opentelemetry.metrics import Observation

    def observe(options: object) -> Iterable[Any]:
        figures: Iterable[Figure] = service.metrics.figures()
        return [Observation(float(figure.value), dict(figure.labels)) for figure in figures if figure.name == name]

    return observe
