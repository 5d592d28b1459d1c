"""What operators ask over HTTP: /healthz, /readyz, /metrics and /state. Nothing can be changed there."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import orjson

from augury.connectors import redacted
from augury.core.errors import RunError

if TYPE_CHECKING:
    from augury.service.live_service import LiveService

_TIMEOUT = 10.0  # seconds that a request may take to come
LOOPBACK = ("127.0.0.1", "localhost", "::1")


def host_and_port(text: str) -> tuple[str, int]:
    """`127.0.0.1:9464`, or just a port, which is one of this machine alone."""
    host, _, port = text.rpartition(":")
    if not port.isdigit() or int(port) > 65535:
        raise RunError(f"not an address to listen at: {text}", hint="write it as 127.0.0.1:9464, or 9464")
    return (host or "127.0.0.1").strip("[]"), int(port)


@contextmanager
def operations(service: LiveService, host: str, port: int) -> Iterator[int]:
    """Answers in a thread of its own while the block runs; the port."""

    class Handler(BaseHTTPRequestHandler):
        timeout = _TIMEOUT
        server_version, sys_version = "augury", ""

        def do_GET(self) -> None:
            if host in LOOPBACK and self.headers.get("host", "").rpartition(":")[0].strip("[]") not in LOOPBACK:
                self._answer(421, b"this is answered on this machine alone\n")
                return
            match self.path.partition("?")[0]:
                case "/healthz":
                    problem = _failure(service)
                    self._answer(503 if problem else 200, f"{problem or 'ok'}\n".encode())
                case "/readyz":
                    waits = _not_ready(service)
                    self._answer(503 if waits else 200, f"{waits or 'ready'}\n".encode())
                case "/metrics":
                    text = service.metrics.as_prometheus()
                    self._answer(200, redacted(text).encode(), "text/plain; version=0.0.4; charset=utf-8")
                case "/state":
                    state = orjson.dumps(service.metrics.as_state(), default=str, option=orjson.OPT_NON_STR_KEYS)
                    self._answer(200, redacted(state.decode()).encode(), "application/json")
                case _:
                    self._answer(404, b"there is /healthz, /readyz, /metrics and /state\n")

        do_HEAD = do_GET

        def _answer(self, status: int, body: bytes, kind: str = "text/plain; charset=utf-8") -> None:
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(body)))
            self.send_header("cache-control", "no-store")
            self.send_header("x-content-type-options", "nosniff")
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            return

    try:
        server = ThreadingHTTPServer((host, port), Handler)
    except OSError as error:
        raise RunError(
            f"cannot listen at {host}:{port}: {error.strerror}", hint="name another one with --http"
        ) from None
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)


def _failure(service: LiveService) -> str:
    """What has ended a source or a sink."""
    error = next((end.error for end in service.ends if end.error is not None), None)
    return redacted(error) if error is not None else ""


def _not_ready(service: LiveService) -> str:
    """Why the service cannot work now: it still starts, or the other side of an address cannot be reached."""
    if not service.ready:
        return "not running" if service.stepper is not None else "starting"
    return "; ".join(f"{end.name}: {end.problem}" for end in service.ends if end.problem)
