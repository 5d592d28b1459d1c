"""NATS JetStream: messages of a subject in through a durable consumer, messages out with their ids.

    nats://user:password@host:4222/sensors.>?durable=augury&stream=SENSORS
    nats://host:4222/alerts

In: the number of a message in its stream is part of the state, and names an event that has no id; a message is acknowledged once
it is on disk. Out: the subject is that of the address with the type behind it, `Nats-Msg-Id` is the id with the operation, by which the
stream leaves out what it has already within its `duplicate_window`. A stream that no one has made is made.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

import orjson
from nats.aio.client import Client
from nats.errors import AuthorizationError, Error, NoServersError
from nats.errors import TimeoutError as NoAnswer
from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy, StreamConfig
from nats.js.errors import APIError, NotFoundError

from augury.connectors.addresses import Address, redacted
from augury.connectors.delivery import Delivery, lines_of
from augury.connectors.rendering import RenderedChanges
from augury.connectors.sink import AnswerSink
from augury.connectors.source import EventSource, Position, UnavailableError
from augury.core.errors import RunError

_PATIENCE = 15.0
_AT_ONCE = 500  # messages that are read, or wait for the stream's answer, at a time
_WINDOW = 3600.0  # seconds in which a stream that we make knows an id again
T = TypeVar("T")


@dataclass(frozen=True)
class SubjectOptions:
    durable: str = "augury"
    stream: str = ""


class JetStream:
    """A connection with an event loop in a thread of its own."""

    def __init__(self, address: Address, options: SubjectOptions, subjects: list[str]) -> None:
        self.address, self.options, self.subjects = address, options, subjects
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self.client: Any = Client()
        self.js: Any = None
        self.stream = options.stream

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        """Waits for some work in the loop; raises what it means here that it failed."""
        running = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return running.result(_PATIENCE)
        except (Error, OSError, TimeoutError) as error:
            running.cancel()
            message = redacted(f"{self.address}: {str(error) or type(error).__name__}")
            if isinstance(error, AuthorizationError) or "authorization" in message.lower():
                raise RunError(message, hint="check user, password and permissions") from None
            raise UnavailableError(message) from None

    def open(self) -> None:
        try:
            self.do(self._open())
        except (UnavailableError, RunError):
            self.close()
            raise

    async def _open(self) -> None:
        problems: list[Exception] = []

        async def quiet(error: Exception) -> None:
            problems.append(error)

        login = {"user": self.address.user, "password": self.address.password} if self.address.user else {}
        try:
            await self.client.connect(
                f"nats://{self.address.host}",
                allow_reconnect=False,
                max_reconnect_attempts=1,
                connect_timeout=5,
                error_cb=quiet,
                **login,
            )
        except NoServersError as error:
            raise (problems or [error])[-1] from None
        self.js = self.client.jetstream(timeout=5)
        if not self.stream:
            try:
                self.stream = await self.js.find_stream_name_by_subject(self.subjects[-1])
            except NotFoundError:
                name = "".join(c if c.isalnum() else "_" for c in self.subjects[0].split(".")[0]).upper()
                await self.js.add_stream(StreamConfig(name=name, subjects=self.subjects, duplicate_window=_WINDOW))
                self.stream = name

    async def _end(self) -> None:
        await self.client.close()
        transport = getattr(self.client, "_transport", None)
        if transport is not None:  # of a connection that was lost, which the client leaves open
            transport.close()
            await asyncio.sleep(0)
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    def close(self) -> None:
        with suppress(UnavailableError, RunError):
            self.do(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)
        self._loop.close()


def _subject_of(address: Address) -> str:
    return address.named("subject", "nats://host:4222/subject")


class SubjectSource(EventSource):
    def __init__(self, address: Address) -> None:
        self.address, self.options, self.subject = address, address.read(SubjectOptions), _subject_of(address)
        self._connection: JetStream | None = None
        self._last = 0
        self._taken: list[tuple[int, Any]] = []
        self._lock = threading.Lock()

    def open(self, position: Position | None) -> None:
        self.close()
        self._last, self._taken = (position or {}).get("last", 0), []
        connection = JetStream(self.address, self.options, [self.subject])
        connection.open()
        self._connection = connection
        connection.do(self._subscribe(connection))

    async def _subscribe(self, connection: JetStream) -> None:
        """A consumer that begins behind what is in the state; the one of before may hold what it has sent."""
        name, stream = self.options.durable, connection.stream
        try:
            if not self._last:
                self._last = (await connection.js.consumer_info(stream, name)).ack_floor.stream_seq
            await connection.js.delete_consumer(stream, name)
        except NotFoundError:
            pass
        config = ConsumerConfig(
            ack_policy=AckPolicy.ALL, deliver_policy=DeliverPolicy.BY_START_SEQUENCE, opt_start_seq=self._last + 1,
            ack_wait=60, max_ack_pending=100_000,
        )  # fmt: skip
        self._subscription = await connection.js.pull_subscribe(
            self.subject, self.options.durable, connection.stream, config
        )

    def fetch(self, most: int, seconds: float) -> list[Delivery]:
        connection = self._connection
        assert connection is not None
        try:
            messages = asyncio.run_coroutine_threadsafe(
                self._subscription.fetch(min(most, _AT_ONCE), max(seconds, 0.05)), connection._loop
            ).result(_PATIENCE)
        except (NoAnswer, TimeoutError):
            if not connection.client.is_connected:
                raise UnavailableError(f"{self.address}: the connection is lost") from None
            return []
        except (Error, APIError) as error:
            raise UnavailableError(redacted(f"{self.address}: {error}")) from None
        numbered = [(message.metadata.sequence.stream, message) for message in messages]
        new = [
            (number, message) for number, message in numbered if number > self._last
        ]  # the others come a second time
        if not new:
            return []
        self._last = new[-1][0]
        with self._lock:
            self._taken += new
        data, poison = lines_of([_line(self.subject, number, message.data) for number, message in new])
        return [Delivery(data, {"last": self._last}, self.subject, poison=tuple(poison))]

    def commit(self, position: Position) -> None:
        with self._lock:
            safe = [message for number, message in self._taken if number <= position["last"]]
            self._taken = self._taken[len(safe) :]
        if safe and self._connection is not None:
            self._connection.do(safe[-1].ack())  # and all before it

    def check(self) -> str:
        self.open(None)
        assert self._connection is not None
        stream = self._connection.stream
        self.close()
        return f"stream {stream}"

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _line(subject: str, number: int, data: bytes) -> bytes:
    try:
        event = orjson.loads(data)
    except orjson.JSONDecodeError:
        return data.replace(b"\n", b" ") or b" "  # refused where it is read, with its text
    if isinstance(event, dict) and "id" not in event:
        event["id"] = f"{subject}/{number}"
    return orjson.dumps(event)


class SubjectSink(AnswerSink):
    def __init__(self, address: Address) -> None:
        self.address, self.options, self.subject = address, address.read(SubjectOptions), _subject_of(address)
        self._connection: JetStream | None = None

    def open(self, position: Position | None) -> int | None:
        self._connect()
        return None

    def _connect(self) -> JetStream:
        self.close()
        connection = JetStream(self.address, self.options, [f"{self.subject}.>"])
        connection.open()
        self._connection = connection
        return connection

    def write(self, steps: Sequence[RenderedChanges]) -> list[tuple[str, bytes]]:
        connection = self._connection or self._connect()
        try:
            connection.do(self._publish(connection, steps))
        except UnavailableError:
            self.close()
            raise
        return []

    async def _publish(self, connection: JetStream, steps: Sequence[RenderedChanges]) -> None:
        answers: list[Any] = []
        for step in steps:
            for op, type, id, line in zip(step.ops, step.types, step.ids, step.lines, strict=True):
                headers = {"Nats-Msg-Id": f"{id}-{op}-{step.step}"}
                answers.append(await connection.js.publish_async(f"{self.subject}.{type}", line, headers=headers))
                if len(answers) >= _AT_ONCE:
                    await asyncio.gather(*answers)
                    answers.clear()
        await asyncio.gather(*answers)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def source(address: Address) -> EventSource:
    return SubjectSource(address)


def sink(address: Address) -> AnswerSink:
    return SubjectSink(address)
