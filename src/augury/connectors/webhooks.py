"""HTTP: requests in, requests out.

    listen://127.0.0.1:8080/events?secret=${HOOK_SECRET}     takes POST: JSON lines, arrays, CloudEvents
    https://host/stream                                      follows server-sent events, as a source
    https://host/hook?secret=${HOOK_SECRET}                  posts each change, as a sink

A request is answered once its events are on disk. With `secret` its body is signed: `x-augury-signature: sha256=…`, the
HMAC of the body; one without a valid signature is refused. A sink tries again with growing pauses, for as long as it takes,
unless the answer is a refusal (4xx but for 408, 425 and 429); `idempotency-key` is the id and the operation of the change.
`incidents=true` posts one incident for each detection: `{"incident": id, "state": "open" or "resolved", …}`.
"""

from __future__ import annotations

import hmac
import queue
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import orjson

from augury.connectors.addresses import Address, redacted
from augury.connectors.delivery import Delivery
from augury.connectors.payloads import cloud_event_of_headers, from_cloud_event
from augury.connectors.rendering import RenderedChanges
from augury.connectors.sink import AnswerSink
from augury.connectors.source import EventSource, Position, UnavailableError
from augury.core.errors import DataError, RunError

if TYPE_CHECKING:
    import httpx

_TIMEOUT = 10.0
_CONNECTIONS = 200  # requests that are answered at a time
SIGNATURE = "x-augury-signature"
_RETRIED = (408, 425, 429)


@dataclass(frozen=True)
class ListenOptions:
    """`secret` signs requests, `token` is that of `authorization: Bearer`; `most` is the bytes of a request."""

    secret: str = ""
    token: str = ""
    most: int = 8_000_000
    queued: int = 1000


@dataclass(frozen=True)
class EventStreamOptions:
    token: str = ""


@dataclass(frozen=True)
class HookOptions:
    secret: str = ""
    token: str = ""
    incidents: bool = False
    batch: int = 1  # changes of a request, as an array where there are more than one


def signature_of(secret: str, body: bytes) -> str:
    return "sha256=" + hmac.digest(secret.encode(), body, "sha256").hex()


class RequestProblem(Exception):
    """Why a request is refused, with its status."""

    def __init__(self, status: int, message: str) -> None:
        self.status, self.message = status, message
        super().__init__(message)


@dataclass
class ReceivedRequest:
    """The lines of a request, and whether they are on disk."""

    lines: bytes
    number: int = 0
    safe: threading.Event = field(default_factory=threading.Event)


# In: requests


class ListenSource(EventSource):
    def __init__(self, address: Address) -> None:
        self.address, self.options = address, address.read(ListenOptions)
        host, _, port = address.host.rpartition(":")
        if not host or not port.isdigit():
            raise RunError(f"{address} names no host and port", hint="write it as listen://127.0.0.1:8080/events")
        self.host, self.port, self.path = host, int(port), address.path or "/"
        self.received: queue.Queue[ReceivedRequest] = queue.Queue(self.options.queued)
        self._waiting: list[ReceivedRequest] = []
        self._server: ThreadingHTTPServer | None = None
        self._number = 0
        self._lock = threading.Lock()
        self.places = threading.BoundedSemaphore(_CONNECTIONS)

    def open(self, position: Position | None) -> None:
        self._number = (position or {}).get("requests", 0)
        handler = type("BoundHookHandler", (HookHandler,), {"hook": self})
        try:
            self._server = ThreadingHTTPServer((self.host, self.port), handler)
        except OSError as error:
            raise RunError(f"{self.address}: cannot listen: {error.strerror}") from None
        self.port = self._server.server_address[1]
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True).start()

    def fetch(self, most: int, seconds: float) -> list[Delivery]:
        try:
            requests = [self.received.get(timeout=seconds)]
        except queue.Empty:
            return []
        while sum(request.lines.count(b"\n") for request in requests) < most:
            try:
                requests.append(self.received.get_nowait())
            except queue.Empty:
                break
        with self._lock:
            for request in requests:
                self._number += 1
                request.number = self._number
            self._waiting += requests
        return [Delivery(b"".join(r.lines for r in requests), {"requests": self._number}, self.path)]

    def commit(self, position: Position) -> None:
        with self._lock:
            for request in self._waiting:
                if request.number <= position["requests"]:
                    request.safe.set()
            self._waiting = [request for request in self._waiting if not request.safe.is_set()]

    def lag(self) -> int | None:
        return self.received.qsize()

    def lines_of_request(self, kind: str, headers: dict[str, str], body: bytes) -> bytes:
        """The events of a request, one a line; raises RequestProblem where it may not send them, or sends none."""
        if self.options.secret:
            sent = headers.get(SIGNATURE, "")
            if not hmac.compare_digest(sent.encode(), signature_of(self.options.secret, body).encode()):
                raise RequestProblem(401, "the signature is missing or wrong")
        if self.options.token and not hmac.compare_digest(
            headers.get("authorization", "").encode(), f"Bearer {self.options.token}".encode()
        ):
            raise RequestProblem(401, "the token is missing or wrong")
        try:
            return _lines_of(kind, headers, body)
        except (orjson.JSONDecodeError, DataError) as error:
            raise RequestProblem(400, str(error)) from None

    def check(self) -> str:
        self.open(None)
        self.close()
        return "free to listen at"

    def close(self) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None


def _lines_of(kind: str, headers: dict[str, str], body: bytes) -> bytes:
    if kind.startswith("application/cloudevents-batch"):
        events = orjson.loads(body)
        return _joined([from_cloud_event(event) for event in events] if isinstance(events, list) else events)
    if kind.startswith("application/cloudevents"):
        return _joined([from_cloud_event(orjson.loads(body))])
    if "ce-specversion" in headers:
        return _joined([cloud_event_of_headers(headers, orjson.loads(body))])
    text = body.strip()
    if text.startswith(b"["):
        return _joined(orjson.loads(text))
    if kind.startswith("application/json"):
        return _joined([orjson.loads(text)])
    return text + b"\n" if text else b""


def _joined(events: list[Any]) -> bytes:
    if not isinstance(events, list):
        raise DataError("expected a list of events")
    return b"".join(orjson.dumps(event) + b"\n" for event in events)


class HookHandler(BaseHTTPRequestHandler):
    """Answers requests of one source."""

    hook: ListenSource
    timeout = _TIMEOUT
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "augury", ""

    def do_POST(self) -> None:
        if not self.hook.places.acquire(blocking=False):
            self._answer(503, "too many requests at a time")
            return
        try:
            self._take()
        except RequestProblem as problem:
            self._answer(problem.status, problem.message)
        finally:
            self.hook.places.release()

    def _take(self) -> None:
        if self.path.partition("?")[0] != self.hook.path:
            raise RequestProblem(404, "nothing is read here")
        body = self._body()
        headers = {name.lower(): value for name, value in self.headers.items()}
        lines = self.hook.lines_of_request(headers.get("content-type", ""), headers, body)
        request = ReceivedRequest(lines)
        try:
            self.hook.received.put_nowait(request)
        except queue.Full:
            raise RequestProblem(503, "the service cannot keep up: try again later") from None
        if not request.safe.wait(30.0):
            raise RequestProblem(503, "the events may not be on disk: send them again")
        self._answer(200, f"{lines.count(10)} events")

    def _body(self) -> bytes:
        length = self.headers.get("content-length", "")
        if not length.isdigit():
            raise RequestProblem(411, "a request says its length")
        if int(length) > self.hook.options.most:
            raise RequestProblem(413, f"a request has at most {self.hook.options.most:,} bytes")
        body = self.rfile.read(int(length))
        if len(body) < int(length):
            raise RequestProblem(400, "the request is cut off")
        return body

    def _answer(self, status: int, message: str) -> None:
        body = orjson.dumps({"message": redacted(message)}) + b"\n"
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        if status >= 400:
            self.send_header("connection", "close")
            self.close_connection = True
        if status == 503:
            self.send_header("retry-after", "1")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        return


# In: server-sent events


class ServerSentEvents(EventSource):
    """Follows a stream of server-sent events, whose `id` is that of an event that names none; it resumes behind the last one."""

    def __init__(self, address: Address) -> None:
        self.address, self.options = address, address.read(EventStreamOptions, others=True)
        self._client: Any = None
        self._arrived: queue.Queue[tuple[str, bytes] | BaseException] = queue.Queue(10_000)
        self._stop = threading.Event()

    def open(self, position: Position | None) -> None:
        import httpx

        self.close()
        self._stop, self._arrived = threading.Event(), queue.Queue(10_000)
        headers = {"accept": "text/event-stream", **_authorization(self.options.token)}
        if position and position.get("last"):
            headers["last-event-id"] = position["last"]
        self._last = (position or {}).get("last", "")
        self._client = httpx.Client(timeout=httpx.Timeout(_TIMEOUT, read=60.0))
        request = self._client.build_request("GET", _url(self.address, EventStreamOptions), headers=headers)
        try:
            response = self._client.send(request, stream=True)
        except httpx.HTTPError as error:
            raise UnavailableError(f"{self.address}: {error}") from None
        if response.status_code in (401, 403, 404):
            raise RunError(f"{self.address}: the answer is {response.status_code}", hint="check address and token")
        if response.status_code != 200:
            raise UnavailableError(f"{self.address}: the answer is {response.status_code}")
        threading.Thread(target=self._read, args=(response, self._arrived, self._stop), daemon=True).start()

    @staticmethod
    def _read(response: httpx.Response, arrived: queue.Queue[Any], stop: threading.Event) -> None:
        import httpx

        try:
            for id, data in _events(response.iter_lines()):
                arrived.put((id, data))
                if stop.is_set():
                    return
            arrived.put(UnavailableError("the stream has ended"))
        except (httpx.HTTPError, httpx.StreamError) as error:
            arrived.put(UnavailableError(str(error)))
        finally:
            response.close()

    def fetch(self, most: int, seconds: float) -> list[Delivery]:
        lines: list[bytes] = []
        try:
            item = self._arrived.get(timeout=seconds)
            while True:
                if isinstance(item, BaseException):
                    if not lines:
                        raise UnavailableError(f"{self.address}: {item}")
                    self._arrived.put(item)
                    break
                id, data = item
                self._last = id or self._last
                lines.append(_with_id(data, id))
                if len(lines) >= most:
                    break
                item = self._arrived.get_nowait()
        except queue.Empty:
            pass
        return [Delivery(b"".join(lines), {"last": self._last}, self.address.path)] if lines else []

    def close(self) -> None:
        self._stop.set()
        if self._client is not None:
            self._client.close()
            self._client = None


def _events(lines: Iterator[str]) -> Iterator[tuple[str, bytes]]:
    """Id and data of each event; an event ends with an empty line."""
    id, data = "", list[str]()
    for line in lines:
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if not line:
            if data:
                yield id, "".join(data).encode()
            data = []
        elif name == "data":
            data.append(value)
        elif name == "id":
            id = value


def _with_id(data: bytes, id: str) -> bytes:
    if id:
        try:
            event = orjson.loads(data)
        except orjson.JSONDecodeError:
            return data + b"\n"
        if isinstance(event, dict) and "id" not in event and event.get("op") is None:
            return orjson.dumps({**event, "id": id}) + b"\n"
    return data + b"\n"


# Out


class WebhookSink(AnswerSink):
    """Posts changes in their order, one at a time."""

    def __init__(self, address: Address) -> None:
        self.address, self.options = address, address.read(HookOptions, others=True)
        self._client: httpx.Client | None = None
        self._done = 0  # changes of this write that were answered: it begins behind them when it is called again
        self._refused: list[tuple[str, bytes]] = []
        self._steps: tuple[int, int] = (0, 0)

    def open(self, position: Position | None) -> int | None:
        import httpx

        self.close()
        self._client = httpx.Client(timeout=_TIMEOUT, headers=_authorization(self.options.token))
        return None

    def write(self, steps: Sequence[RenderedChanges]) -> list[tuple[str, bytes]]:
        key = (steps[0].step, steps[-1].step)
        if key != self._steps:
            self._steps, self._done, self._refused = key, 0, []
        rows = [row for step in steps for row in zip(step.ops, step.ids, step.lines, strict=True)]
        while self._done < len(rows):
            part = rows[self._done : self._done + self.options.batch]
            reason = self._post(part)
            if reason:
                self._refused += [(reason, line) for _, _, line in part]
            self._done += len(part)
        return self._refused

    def _post(self, rows: list[tuple[str, str, bytes]]) -> str:
        """Why a change is refused for good; raises where it may be taken later."""
        import httpx

        assert self._client is not None
        bodies = [_incident(op, id, line) if self.options.incidents else line for op, id, line in rows]
        body = bodies[0] if self.options.batch == 1 else b"[" + b",".join(bodies) + b"]"
        headers = {"content-type": "application/json", "idempotency-key": f"{rows[0][1]}-{rows[0][0]}"}
        if self.options.secret:
            headers[SIGNATURE] = signature_of(self.options.secret, body)
        try:
            response = self._client.post(_url(self.address, HookOptions), content=body, headers=headers)
        except httpx.HTTPError as error:
            raise UnavailableError(f"{self.address}: {error}") from None
        status = response.status_code
        if status in (401, 403):
            raise RunError(f"{self.address}: the answer is {status}", hint="check token and secret")
        if status >= 500 or status in _RETRIED:
            wait = response.headers.get("retry-after", "")
            time.sleep(min(float(wait), 5.0) if wait.isdigit() else 0.0)
            raise UnavailableError(f"{self.address}: the answer is {status}")
        return f"the answer is {status}" if status >= 300 else ""

    def check(self) -> str:
        import httpx

        try:
            status = httpx.head(_url(self.address, HookOptions), timeout=_TIMEOUT).status_code
        except httpx.HTTPError as error:
            raise UnavailableError(f"{self.address}: {error}") from None
        return f"reachable; it answers {status} to HEAD"

    def close(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None


def _incident(op: str, id: str, line: bytes) -> bytes:
    """One incident for each detection, opened by its insertion and resolved by its retraction."""
    change = orjson.loads(line)
    state = "open" if op == "insert" else "resolved"
    title = f"{change['type']}({', '.join(map(str, change.get('args', ())))})"
    return orjson.dumps({"incident": id, "state": state, "title": title, "detection": change})


def _authorization(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"} if token else {}


def _url(address: Address, kind: Any) -> str:
    """The address without our own options; others belong to the other side."""
    ours = {each.name.replace("_", "-") for each in fields(kind)}
    rest = {name: value for name, value in address.options.items() if name not in ours}
    login = f"{address.user}:{address.password}@" if address.user else ""
    return f"{address.scheme}://{login}{address.host}{address.path}" + (f"?{urlencode(rest)}" if rest else "")


def source(address: Address) -> EventSource:
    return ListenSource(address) if address.scheme == "listen" else ServerSentEvents(address)


def sink(address: Address) -> AnswerSink:
    if address.scheme == "listen":
        raise RunError(f"{address} cannot be written to", hint="to post answers, write to http://… or https://…")
    return WebhookSink(address)
