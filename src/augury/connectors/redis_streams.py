"""Redis streams: entries in through a consumer group, entries out with the number of the step.

    redis://user:password@host:6379/stream?group=augury&consumer=one
    rediss://host:6379/alerts

In: an entry has an event as JSON in its field `data`, or the attributes as fields; the id of an entry is that of an event that
names none. An entry is acknowledged once it is on disk, and those that were not are read again after a restart. Out: entries with
the fields `op`, `id`, `type` and `data`, in one transaction with the number of the step: each change is there once.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import orjson
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from augury.connectors.addresses import Address, redacted
from augury.connectors.delivery import Delivery, lines_of
from augury.connectors.rendering import RenderedChanges
from augury.connectors.sink import AnswerSink
from augury.connectors.source import EventSource, Position, UnavailableError
from augury.core.errors import RunError


@dataclass(frozen=True)
class EntrySourceOptions:
    group: str = "augury"
    consumer: str = "augury"
    ca: str = ""


@dataclass(frozen=True)
class EntrySinkOptions:
    """`most` is about how many entries the stream keeps; 0 is all."""

    most: int = 0
    ca: str = ""


def _client(address: Address, ca: str) -> Any:
    host, _, port = address.host.partition(":")
    secure: dict[str, Any] = {"ssl": True, "ssl_ca_certs": ca or None} if address.scheme == "rediss" else {}
    login: dict[str, Any] = {"username": address.user or None, "password": address.password or None}
    return redis.Redis(
        host,
        int(port or 6379),
        socket_timeout=10,
        socket_connect_timeout=5,
        retry=Retry(NoBackoff(), 0),
        **login,
        **secure,
    )


def _stream_of(address: Address) -> str:
    return address.named("stream", "redis://host:6379/stream")


def _problem(address: Address, error: redis.RedisError) -> RunError | UnavailableError:
    message = redacted(f"{address}: {error}")
    if isinstance(error, redis.AuthenticationError) or any(
        word in message for word in ("NOAUTH", "NOPERM", "WRONGPASS")
    ):
        return RunError(message, hint="check user, password and permissions")
    if isinstance(error, redis.ResponseError) and "WRONGTYPE" in message:
        return RunError(message, hint="the key does not hold a stream")
    return UnavailableError(message)


class EntrySource(EventSource):
    def __init__(self, address: Address) -> None:
        self.address, self.options, self.stream = address, address.read(EntrySourceOptions), _stream_of(address)
        self._client: Any = None
        self._last = "0-0"
        self._taken: list[bytes] = []
        self._lock = threading.Lock()

    def open(self, position: Position | None) -> None:
        self._client = _client(self.address, self.options.ca)
        self._last, self._taken = (position or {}).get("last", "0-0"), []
        try:
            try:
                self._client.xgroup_create(self.stream, self.options.group, id=self._last, mkstream=True)
            except redis.ResponseError as error:
                if "BUSYGROUP" not in str(error):
                    raise
            while old := self._client.xpending_range(self.stream, self.options.group, "-", self._last, 1000):
                self._client.xack(self.stream, self.options.group, *(entry["message_id"] for entry in old))
        except redis.RedisError as error:
            raise _problem(self.address, error) from None
        self._pending = True  # what was read and not acknowledged comes first

    def fetch(self, most: int, seconds: float) -> list[Delivery]:
        start = self._last if self._pending else ">"
        block = None if self._pending else max(1, int(seconds * 1000))
        options = self.options
        try:
            result = self._client.xreadgroup(
                options.group, options.consumer, {self.stream: start}, count=most, block=block
            )
        except redis.RedisError as error:
            raise _problem(self.address, error) from None
        entries = result[0][1] if result else []
        self._pending = self._pending and bool(entries)
        if not entries:
            return []
        self._last = entries[-1][0].decode()
        with self._lock:
            self._taken += [id for id, _ in entries]
        data, poison = lines_of([_line(id, fields or {}) for id, fields in entries])
        return [Delivery(data, {"last": self._last}, self.stream, poison=tuple(poison))]

    def commit(self, position: Position) -> None:
        with self._lock:
            safe = [id for id in self._taken if _key(id.decode()) <= _key(position["last"])]
        if not safe:
            return
        try:
            self._client.xack(self.stream, self.options.group, *safe)
        except redis.RedisError as error:
            raise _problem(self.address, error) from None
        with self._lock:
            self._taken = self._taken[len(safe) :]

    def check(self) -> str:
        try:
            return f"{_client(self.address, self.options.ca).xlen(self.stream):,} entries"
        except redis.RedisError as error:
            raise _problem(self.address, error) from None

    def close(self) -> None:
        if self._client is not None:
            self._client.close()


def _key(id: str) -> tuple[int, int]:
    time, _, number = id.partition("-")
    return int(time), int(number or 0)


def _line(id: bytes, fields: dict[bytes, bytes]) -> bytes:
    data = fields.get(b"data")
    event: Any = {}
    if data is None:
        event = {name.decode("utf-8", "replace"): _value(text) for name, text in fields.items()}
    else:
        try:
            event = orjson.loads(data)
        except orjson.JSONDecodeError:
            return data.replace(b"\n", b" ")  # refused where it is read, with its text
    if isinstance(event, dict) and "id" not in event:
        event["id"] = id.decode()
    return orjson.dumps(event)


def _value(text: bytes) -> Any:
    """A field as JSON where it is a number or a truth value, else as text."""
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return text.decode("utf-8", "replace")
    return value if isinstance(value, int | float | bool) else text.decode("utf-8", "replace")


class EntrySink(AnswerSink):
    def __init__(self, address: Address) -> None:
        self.address, self.options, self.stream = address, address.read(EntrySinkOptions), _stream_of(address)
        self._client: Any = None
        self._run = ""

    @property
    def _key_of_step(self) -> str:
        return f"augury:{self.stream}:{self._run}"

    def open(self, position: Position | None) -> int | None:
        self._run = (position or {}).get("run") or uuid.uuid4().hex
        self._client = _client(self.address, self.options.ca)
        return self._held()

    def _held(self) -> int | None:
        try:
            step = self._client.get(self._key_of_step)
        except redis.RedisError as error:
            raise _problem(self.address, error) from None
        return int(step) if step is not None else None

    def position(self) -> Position | None:
        return {"run": self._run}

    def write(self, steps: Sequence[RenderedChanges]) -> list[tuple[str, bytes]]:
        last = self._held()
        remaining = [step for step in steps if last is None or step.step > last]
        if not remaining:
            return []
        limit: dict[str, Any] = {"maxlen": self.options.most, "approximate": True} if self.options.most else {}
        try:
            with self._client.pipeline(transaction=True) as pipe:
                for step in remaining:
                    for op, type, id, line in zip(step.ops, step.types, step.ids, step.lines, strict=True):
                        pipe.xadd(self.stream, {"op": op, "id": id, "type": type, "data": line}, **limit)
                pipe.set(self._key_of_step, remaining[-1].step)
                pipe.execute()
        except redis.RedisError as error:
            raise _problem(self.address, error) from None
        return []

    def close(self) -> None:
        if self._client is not None:
            self._client.close()


def source(address: Address) -> EventSource:
    return EntrySource(address)


def sink(address: Address) -> AnswerSink:
    return EntrySink(address)
