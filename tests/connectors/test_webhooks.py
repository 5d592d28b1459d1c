"""HTTP: requests that are taken once they are on disk, streams of events, and posts that are tried again."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import augury
from augury.connectors import open_source, opened
from augury.connectors.webhooks import SIGNATURE, ListenSource, signature_of
from augury.core.errors import RunError
from augury.service import LiveService
from tests.support.service_kills import PATIENCE, standing, wait_for

httpx = pytest.importorskip("httpx")
PROGRAM = "event reading(station: string, speed: float).\noutput strong.\nstrong(S) <- reading(S, V) WHERE V > 5.\n"
START = 1_760_000_000


def reading(n: int, speed: float = 9) -> dict[str, Any]:
    return {"type": "reading", "station": f"s{n}", "speed": speed, "time": START + n, "id": f"r{n}"}


def service(folder: Path, source: Any, sink: Any, **options: Any) -> LiveService:
    chosen: dict[str, Any] = {
        "state": folder / "state",
        "clock": "timestamp",
        "time_unit": "s",
        "emit": "early",
    } | options
    return augury.live(PROGRAM, source, sink, **chosen)


class Receiver:
    """A server that keeps what is posted, and answers as it is told."""

    def __init__(self) -> None:
        self.posted: list[tuple[dict[str, str], bytes]] = []
        self.statuses: list[int] = []
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                status = receiver.statuses.pop(0) if receiver.statuses else 200
                if status < 300:
                    receiver.posted.append(({k.lower(): v for k, v in self.headers.items()}, body))
                self.send_response(status)
                self.send_header("content-length", "0")
                self.end_headers()

            def do_GET(self) -> None:
                self.send_response(200)
                self.send_header("content-type", "text/event-stream")
                self.end_headers()
                first = int(self.headers.get("last-event-id", "0"))
                for n in range(first + 1, min(first + 4, 11)):
                    self.wfile.write(f": note\nid: {n}\ndata: {json.dumps({**reading(n), 'id': None})}\n\n".encode())

            def log_message(self, format: str, *args: object) -> None:
                return

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]


@contextmanager
def receiver() -> Iterator[Receiver]:
    result = Receiver()
    thread = threading.Thread(target=result.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield result
    finally:
        result.server.shutdown()
        result.server.server_close()
        thread.join()


def test_requests_are_answered_once_their_events_are_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOOK", "very-secret")
    out = tmp_path / "out.jsonl"
    with service(tmp_path, "listen://127.0.0.1:0/events?secret=${HOOK}&most=100000", str(out)).running() as running:
        wait_for(lambda: running.feeds[0].opened)
        listening = running.feeds[0].source
        assert isinstance(listening, ListenSource)
        port = listening.port
        url = f"http://127.0.0.1:{port}/events"

        def post(body: Any, kind: str = "application/json", signed: bool = True, **more: Any) -> int:
            headers: dict[str, str] = dict(more)
            content = body if isinstance(body, bytes) else json.dumps(body).encode()
            if signed:
                headers[SIGNATURE] = signature_of("very-secret", content)
            headers["content-type"] = kind
            return int(httpx.post(url, content=content, headers=headers, timeout=PATIENCE).status_code)

        assert post(reading(1)) == 200
        assert running.state.journal.bytes > 0
        assert post([reading(2), reading(3)]) == 200
        assert post("\n".join(json.dumps(reading(n)) for n in (4, 5)).encode(), "application/x-ndjson") == 200
        data = {"station": "s6", "speed": 9}
        cloud = {
            "specversion": "1.0",
            "id": "6",
            "source": "/farm",
            "type": "org.farm.reading",
            "time": "2025-10-09T09:00:00Z",
        }
        assert post({**cloud, "data": data}, "application/cloudevents+json") == 200
        assert post([{**cloud, "id": "7", "data": data}], "application/cloudevents-batch+json") == 200
        binary = {f"ce-{name}": value for name, value in cloud.items() if name != "id"}
        extra: dict[str, Any] = {**binary, "ce-id": "8"}
        assert post(data, **extra) == 200
        assert post({**cloud, "data": data}, "application/cloudevents+json") == 200  # sent again: the same id
        # Hostile ones
        assert post(reading(9), signed=False) == 401
        assert post(reading(9), signed=False, **{SIGNATURE: "sha256=00"}) == 401
        assert post(b"{", "application/json") == 400
        assert post({"specversion": "1.0"}, "application/cloudevents+json") == 400
        assert post([1], "application/cloudevents+json") == 400
        assert post([1], "application/cloudevents-batch+json") == 400
        assert post({"a": 1}, "application/cloudevents-batch+json") == 400
        assert post(b"x" * 100_001) == 413
        assert httpx.post(f"http://127.0.0.1:{port}/other", content=b"", timeout=PATIENCE).status_code == 404
        with socket.create_connection(("127.0.0.1", port)) as line:
            line.sendall(b"POST /events HTTP/1.1\r\nhost: x\r\ncontent-length: -1\r\n\r\n")
            assert b" 411 " in line.recv(1000)
        wait_for(lambda: len(out.read_bytes().splitlines()) == 6)  # those of CloudEvents are one answer
    assert "very-secret" not in str(running.metrics.as_state()) + running.metrics.as_prometheus()


def test_a_webhook_that_fails_is_called_again_and_one_that_refuses_is_not(tmp_path: Path) -> None:
    with receiver() as hook:
        hook.statuses = [500, 429, 200, 422, 503]
        address = f"http://127.0.0.1:{hook.port}/hook?secret=word&team=blue"
        service(tmp_path, [reading(n) for n in range(5)], address).run()
        changes = [json.loads(body) for _, body in hook.posted]
        assert [change["args"] for change in changes] == [["s0"], ["s2"], ["s3"], ["s4"]]
        for headers, body in hook.posted:
            assert headers[SIGNATURE] == signature_of("word", body)
        assert hook.posted[0][0]["idempotency-key"] == f"{changes[0]['id']}-insert"
    refused = json.loads((tmp_path / "state" / "refused.jsonl").read_text())
    assert "422" in refused["reason"]


def test_an_incident_is_opened_and_resolved(tmp_path: Path) -> None:
    events = [reading(1), {"op": "revoke", "id": "r1"}]
    with receiver() as hook:
        running = service(
            tmp_path, str(tmp_path / "in.jsonl"), f"http://127.0.0.1:{hook.port}/?incidents=true", lateness="1h"
        )
        with running.running():
            for number, event in enumerate(events, 1):
                with (tmp_path / "in.jsonl").open("a") as file:
                    file.write(json.dumps(event) + "\n")
                wait_for(lambda number=number: len(hook.posted) == number)  # type: ignore[misc]
        opened_one, resolved = (json.loads(body) for _, body in hook.posted)
    assert opened_one["incident"] == resolved["incident"] and opened_one["title"] == "strong(s1)"
    assert (opened_one["state"], resolved["state"]) == ("open", "resolved")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of what Apprise imports
def test_people_are_notified_through_apprise(tmp_path: Path) -> None:
    pytest.importorskip("apprise")
    with receiver() as hook:
        address = f"notify://?url=json://user:word-of-mine@127.0.0.1:{hook.port}/"
        hook.statuses = [500]
        service(tmp_path, [reading(1)], address).run()
        (message,) = (json.loads(body) for _, body in hook.posted)
    assert message["title"] == "strong(s1)" and "detected" in message["message"]
    with pytest.raises(RunError, match="no address that Apprise knows") as error:
        augury.live(PROGRAM, "x.jsonl", "notify://?url=word-of-mine://x", state="unused")
    assert "word-of-mine" not in str(error.value)


def test_server_sent_events_go_on_behind_the_last_one(tmp_path: Path) -> None:
    changes: list[dict[str, Any]] = []
    with receiver() as stream, service(tmp_path, f"http://127.0.0.1:{stream.port}/", changes.append).running():
        wait_for(lambda: len(changes) == 10)  # the stream ends after three each time
    assert [change["args"] for change in changes] == [[f"s{n}"] for n in range(1, 11)]
    assert len(standing(json.dumps(change).encode() for change in changes)) == 10


def test_wrong_addresses_are_named() -> None:
    with pytest.raises(RunError, match="names no host and port"):
        open_source("listen://nowhere")
    with pytest.raises(RunError, match="cannot be written to"):
        augury.live(PROGRAM, "x.jsonl", "listen://127.0.0.1:1/x", state="unused")
    with receiver() as hook, opened(open_source(f"http://127.0.0.1:{hook.port}/")) as source:
        events = 0
        while events < 3:
            events += sum(map(len, source.poll(10, 5)))
