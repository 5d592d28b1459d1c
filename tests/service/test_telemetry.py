"""Metrics and traces reach an OpenTelemetry collector."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import augury
from augury.service.telemetry import exported

pytest.importorskip("opentelemetry.sdk")


def test_figures_and_spans_are_sent_at_the_end(tmp_path: Path) -> None:
    from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    bodies: list[tuple[str, bytes]] = []

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            bodies.append((self.path, self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            return

    collector = ThreadingHTTPServer(("127.0.0.1", 0), Collector)
    thread = threading.Thread(target=collector.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    events = [{"type": "a", "args": [n], "time": n} for n in range(7)]
    service = augury.live("b(X) <- a(X).", events, lambda change: None, state=tmp_path, clock="logical", emit="early")
    try:
        with exported(service, f"http://127.0.0.1:{collector.server_address[1]}", patience=60):
            service.run()
    finally:
        collector.shutdown()
        collector.server_close()
        thread.join()
    body = [body for path, body in bodies if path == "/v1/metrics"][-1]
    request = ExportMetricsServiceRequest.FromString(body)
    metrics = {m.name: m for r in request.resource_metrics for s in r.scope_metrics for m in s.metrics}
    (point,) = metrics["augury_events_total"].sum.data_points
    assert (point.as_int or point.as_double) == 7
    spans = [
        span
        for path, traces in bodies
        if path == "/v1/traces"
        for resource in ExportTraceServiceRequest.FromString(traces).resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]
    assert len(spans) == 7 and {span.name for span in spans} == {"insert b"}
    named = {attribute.key: attribute.value for attribute in spans[0].attributes}
    assert named["augury.args"].string_value == "[0]" and len(named["augury.inputs"].array_value.values) == 1
    assert spans[0].start_time_unix_nano <= spans[0].end_time_unix_nano
    assert {"augury_state_rows", "augury_source_up", "augury_answers_total"} <= metrics.keys()
