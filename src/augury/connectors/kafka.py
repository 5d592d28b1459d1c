"""Kafka: topics in, with an offset for each partition; a topic out, in transactions.

    kafka://[user:password@]host:9092/topic[,topic]?from=latest&format=avro&registry=http://…

In: the key of a message is the id of its event where that names none, unless `key=ignore`; with `key=replace` a message takes the
place of the earlier ones of its key, its version being the offset. A tombstone revokes the event of its key. Time passes by itself in each partition. All partitions are read, and their offsets are part of the state: a consumer
group receives them, where one is named, and is not asked.

Out: the key is the id of an answer, the value its line; a tombstone retracts it. The steps of a service are transactions, which
store the number of the last step as an offset of a group of their own: readers with `isolation.level=read_committed` see each
answer once.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence
from itertools import groupby
from typing import Any, ClassVar

import orjson
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from augury.connectors.addresses import Address, redacted
from augury.connectors.delivery import Delivery, Poison, lines_of
from augury.connectors.kafka_options import KafkaConnection, KafkaSinkOptions, KafkaSourceOptions, topic_of, topics_of
from augury.connectors.payloads import cloud_event_of_headers, decoder_of
from augury.connectors.rendering import RenderedChanges
from augury.connectors.sink import AnswerSink
from augury.connectors.source import EventSource, Position, UnavailableError
from augury.core.errors import DataError, RunError

_PATIENCE = 10.0  # seconds for an answer of the broker
_DISCOVER = 30.0  # seconds between two looks for new partitions
_TRANSACTION = 60.0
_FLUSH = 30.0
_REFUSED = (
    KafkaError._AUTHENTICATION, KafkaError.SASL_AUTHENTICATION_FAILED, KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.GROUP_AUTHORIZATION_FAILED, KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
)  # fmt: skip


def _connection(address: Address, options: KafkaConnection) -> dict[str, Any]:
    result: dict[str, Any] = {"bootstrap.servers": address.host, "client.id": "augury", "log_level": 0}
    security = options.security or ("SASL_PLAINTEXT" if address.user else "")
    if security:
        result["security.protocol"] = security
    if address.user:
        result |= {
            "sasl.mechanism": options.mechanism,
            "sasl.username": address.user,
            "sasl.password": address.password,
        }
    if options.ca:
        result["ssl.ca.location"] = options.ca
    return result


class BrokerProblems:
    """What the client says in the background."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self.last: KafkaError | None = None

    def __call__(self, error: KafkaError) -> None:
        self.last = error

    def error(self, error: KafkaError) -> RunError | UnavailableError:
        """The error to raise: that of the background where it says more."""
        told_before = self.last if self.last is not None and self.last.code() in _REFUSED else error
        message = f"{self.address}: {redacted(told_before.str())}"
        if told_before.code() in _REFUSED:
            return RunError(message, hint="check user, password and permissions")
        return UnavailableError(message)


class KafkaSource(EventSource):
    sampled: ClassVar[bool] = True
    parted: ClassVar[bool] = True

    def __init__(self, address: Address) -> None:
        self.address, self.options = address, address.read(KafkaSourceOptions)
        self.topics = topics_of(address, self.options)
        self._decode = decoder_of(self.options)
        self._headers = [name for name in self.options.headers.split(",") if name]
        self._plain = self._decode is None and not self._headers and not self.options.time
        self._csv = f"{self.options.columns}\n".encode() if self.options.format == "csv" else b""
        self._problems = BrokerProblems(address)
        self._consumer: Consumer | None = None
        self._next: dict[tuple[str, int], int] = {}
        self._assigned: set[tuple[str, int]] = set()
        self._begins = False
        self._looked = self._committed = self._measured = 0.0
        self._lag: int | None = None

    def open(self, position: Position | None) -> None:
        self.close()
        self._problems.last = None
        self._consumer = Consumer(
            {
                **_connection(self.address, self.options),
                "group.id": self.options.group or "augury",
                "enable.auto.commit": False,
                "enable.partition.eof": False,
                "auto.offset.reset": "error",
                "isolation.level": "read_committed",
                "fetch.wait.max.ms": 20,
                "queued.min.messages": 50_000,
                "reconnect.backoff.max.ms": 1000,
                "error_cb": self._problems,
            }
        )
        self._next = {_part(name): offset for name, offset in (position or {}).items()}
        self._assigned.clear()
        self._assign(first=not position)
        self._begins = not position and self.options.start == "latest"

    def _assign(self, first: bool) -> None:
        """Reads all partitions that there are; those that are new from their beginning."""
        consumer = self._consumer
        assert consumer is not None
        try:
            listed = consumer.list_topics(timeout=_PATIENCE).topics
            self._looked = time.monotonic()
            parts: list[tuple[str, int]] = []
            for topic in self.topics:
                metadata = listed.get(topic)
                if metadata is None or not metadata.partitions:
                    raise UnavailableError(f"{self.address}: there is no topic `{topic}`")
                parts += [(topic, number) for number in metadata.partitions]
            new = [part for part in parts if part not in self._assigned]
            if first and self.options.start == "latest":
                for part in new:
                    self._next[part] = consumer.get_watermark_offsets(TopicPartition(*part), timeout=_PATIENCE)[1]
        except KafkaException as error:
            consumer.poll(0)
            raise self._problems.error(error.args[0]) from None
        self._assigned.update(new)
        if new:
            consumer.incremental_assign([TopicPartition(*p, self._next.get(p, OFFSET_BEGINNING)) for p in new])

    def fetch(self, most: int, seconds: float) -> list[Delivery]:
        consumer = self._consumer
        assert consumer is not None
        if self._begins:  # the offsets at which reading begins are part of the state from now on
            self._begins = False
            return [Delivery(b"", self._position())]
        if time.monotonic() - self._looked > _DISCOVER:
            self._assign(first=False)
        messages = consumer.consume(1, seconds)
        if messages:
            messages += consumer.consume(most - 1, 0.001)
        elif self._problems.last is not None:
            last, self._problems.last = self._problems.last, None
            if last.code() in (KafkaError._ALL_BROKERS_DOWN, *_REFUSED):
                raise self._problems.error(last)
        failed = list(filter(Message.error, messages))
        for error in map(Message.error, failed):
            if error is not None:
                self._raise_fatal(error)
        whole = [message for message in messages if message.error() is None] if failed else messages
        deliveries = [self._delivery(part, group) for part, group in _by_part(whole).items()]
        self._measure_lag()
        return deliveries

    def _raise_fatal(self, error: KafkaError) -> None:
        """Raises an error after which reading cannot go on."""
        if error.code() in (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE):
            raise RunError(
                f"{self.address}: the topic no longer holds the messages that follow the saved position",
                hint="they were deleted before they were read: begin with another --state directory",
            )
        if error.code() in _REFUSED or error.fatal():
            raise self._problems.error(error)

    def _delivery(self, part: tuple[str, int], messages: list[Any]) -> Delivery:
        lines, poison = self._lines(messages)
        self._next[part] = messages[-1].offset() + 1
        if self._csv:
            data, more = b"".join(line.rstrip(b"\n") + b"\n" for line in lines), list[Poison]()
        else:
            data, more = lines_of(lines)
        form = "csv" if self._csv else "jsonl"
        first = messages[0].offset()
        return Delivery(data, self._position(), f"{part[0]}/{part[1]}", form, self._csv, first, poison=(*poison, *more))

    def _lines(self, messages: list[Message]) -> tuple[list[bytes], list[Poison]]:
        """Messages as lines, and those that are none. Where keys and headers say nothing, the values are the lines."""
        values, keys = list(map(Message.value, messages)), list(map(Message.key, messages))
        keyless = self.options.key == "ignore" or keys.count(None) == len(keys)
        if self._plain and keyless and all(values):
            return values, []  # type: ignore[return-value]
        lines: list[bytes] = []
        poison: list[Poison] = []
        for message, value, key in zip(messages, values, keys, strict=True):
            if value is None:
                if key is not None:
                    version = int(message.offset() or 0) + 1 if self.options.key == "replace" else None
                    lines.append(_revocation(key, version))
            elif self._plain and (key is None or self.options.key == "ignore"):
                lines.append(value)
            else:
                try:
                    lines.append(self._line(message, value, key))
                except DataError as error:
                    poison.append(Poison(error.message, value))
        return lines, poison

    def _position(self) -> Position:
        return {f"{topic}/{number}": offset for (topic, number), offset in self._next.items()}

    def _line(self, message: Any, value: bytes, key: bytes | None) -> bytes:
        """A message as a line: with its key as the id, headers and its time, where the event has none of these."""
        named = self.options.key != "ignore" and key is not None
        replaces = self.options.key == "replace"
        if self._csv:
            return value
        simple = self._plain and not replaces
        if simple and named and b'"id"' not in value:
            text = value.strip()
            if text.startswith(b"{") and len(text) > 2:
                assert key is not None
                return b'{"id":' + orjson.dumps(key.decode("utf-8", "replace")) + b"," + text[1:]
        try:
            event = self._decode(value) if self._decode is not None else orjson.loads(value)
        except orjson.JSONDecodeError as error:
            raise DataError(f"malformed JSON: {error}") from None
        if not isinstance(event, dict):
            return orjson.dumps(event, default=str)
        if self._headers:
            headers = {name: (text or b"").decode("utf-8", "replace") for name, text in message.headers() or ()}
            if "cloudevents" in self._headers and {"ce_specversion", "ce-specversion"} & headers.keys():
                event = cloud_event_of_headers(headers, event)
            event = {**{name: headers[name] for name in self._headers if name in headers}, **event}
        if named and "id" not in event and key is not None:
            event["id"] = key.decode("utf-8", "replace")
        if replaces and "version" not in event and event.get("op") is None:
            event |= {"op": "replace", "version": message.offset() + 1}
        if self.options.time == "message" and not {"time", "start", "end"} & event.keys():
            event["time"] = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime((stamp := message.timestamp()[1]) // 1000))
            event["time"] += f".{stamp % 1000:03}Z"
        return orjson.dumps(event, default=str)

    def parts(self) -> tuple[str, ...]:
        return tuple(f"{topic}/{number}" for topic, number in sorted(self._assigned))

    def commit(self, position: Position) -> None:
        if not self.options.group or self._consumer is None or time.monotonic() - self._committed < 1.0:
            return
        self._committed = time.monotonic()
        offsets = [TopicPartition(*_part(name), offset) for name, offset in position.items()]
        try:
            self._consumer.commit(offsets=offsets, asynchronous=True)
        except KafkaException as error:
            raise self._problems.error(error.args[0]) from None

    def lag(self) -> int | None:
        return self._lag

    def _measure_lag(self) -> None:
        """Once a second, in the thread of the consumer: how many messages are behind what was read."""
        now = time.monotonic()
        if self._consumer is None or now - self._measured < 1.0:
            return
        self._measured = now
        total = 0
        for part, offset in self._next.items():
            _, high = self._consumer.get_watermark_offsets(TopicPartition(*part), cached=True) or (0, 0)
            total += max(0, high - offset)
        self._lag = total

    def check(self) -> str:
        self.open(None)
        number = len(self._assigned)
        self.close()
        return f"{number} partitions of {', '.join(self.topics)}"

    def close(self) -> None:
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None


def _by_part(messages: list[Message]) -> dict[tuple[str, int], list[Message]]:
    """The messages of each partition, which come in runs."""
    groups: dict[tuple[str, int], list[Message]] = {}
    for topic, some in groupby(messages, Message.topic):
        for number, run in groupby(some, Message.partition):
            groups.setdefault((str(topic), int(number or 0)), []).extend(run)
    return groups


def _part(name: str) -> tuple[str, int]:
    topic, _, number = name.rpartition("/")
    return topic, int(number)


def _revocation(key: bytes, version: int | None) -> bytes:
    line = {"op": "revoke", "id": key.decode("utf-8", "replace")}
    return orjson.dumps(line if version is None else {**line, "version": version})


class KafkaSink(AnswerSink):
    def __init__(self, address: Address) -> None:
        self.address, self.options = address, address.read(KafkaSinkOptions)
        self.topic = topic_of(address)
        self._problems = BrokerProblems(address)
        self._producer: Producer | None = None
        self._steps: Consumer | None = None
        self._run = ""
        self._last: int | None = None
        self._failed: list[tuple[str, bytes]] = []
        self._undelivered = 0

    def open(self, position: Position | None) -> int | None:
        self._run = (position or {}).get("run") or uuid.uuid4().hex
        self._connect()
        return self._last

    def position(self) -> Position | None:
        return {"run": self._run} if self.options.transactions else None

    def _connect(self) -> None:
        self.close()
        self._problems.last = None
        settings: dict[str, Any] = {
            **_connection(self.address, self.options),
            "enable.idempotence": True,
            "linger.ms": 1,
            "compression.type": self.options.compression,
            "queue.buffering.max.messages": 200_000,
            "reconnect.backoff.max.ms": 1000,
            "message.timeout.ms": int(_FLUSH * 1000),
            "retry.backoff.ms": 5,  # a transaction waits so long for the end of the one before
            "retry.backoff.max.ms": 20,
            "error_cb": self._problems,
        }
        if self.options.transactions:
            name = self.options.id or f"augury-{self.topic}"
            settings |= {"transactional.id": name, "transaction.timeout.ms": 60_000}
        else:  # nothing else says that a message was given up
            settings |= {"on_delivery": self._note_undelivered, "delivery.report.only.error": True}
        producer = Producer(settings)
        try:
            if self.options.transactions:
                producer.init_transactions(_PATIENCE)
                self._steps = Consumer(
                    {**_connection(self.address, self.options), "group.id": f"augury.{self.topic}.{self._run}"}
                )
                held = self._steps.committed([TopicPartition(self.topic, 0)], timeout=_PATIENCE)[0]
                self._last = held.offset if held.offset >= 0 else None
            else:
                producer.list_topics(timeout=_PATIENCE)
        except KafkaException as error:
            producer.poll(0)
            raise self._raised(error) from None
        self._producer = producer

    def write(self, steps: Sequence[RenderedChanges]) -> list[tuple[str, bytes]]:
        if self._producer is None:
            self._connect()
        producer = self._producer
        assert producer is not None
        remaining = [step for step in steps if self._last is None or step.step > self._last]
        try:
            if not self.options.transactions:
                self._undelivered = 0
                self._produce(producer, remaining)
                if producer.flush(_FLUSH) or self._undelivered:
                    raise UnavailableError(f"{self.address}: not all messages could be written")
            elif remaining:
                producer.begin_transaction()
                self._produce(producer, remaining)
                assert self._steps is not None
                offset = [TopicPartition(self.topic, 0, remaining[-1].step)]
                producer.send_offsets_to_transaction(offset, self._steps.consumer_group_metadata(), _TRANSACTION)
                producer.commit_transaction(_TRANSACTION)
                self._last = remaining[-1].step
        except KafkaException as error:
            self._failed.clear()
            raise self._raised(error) from None
        refused, self._failed = self._failed, []
        return refused

    def _note_undelivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None and error.code() == KafkaError.MSG_SIZE_TOO_LARGE:
            self._failed.append((error.str(), message.value() or b""))
        else:
            self._undelivered += error is not None

    def _produce(self, producer: Producer, steps: Sequence[RenderedChanges]) -> None:
        topic, produce = self.topic, producer.produce
        for step in steps:
            for op, id, line in zip(step.ops, step.ids, step.lines, strict=True):
                value = line if op == "insert" else None
                try:
                    produce(topic, value, id)
                except BufferError:
                    producer.poll(1.0)
                    produce(topic, value, id)
                except KafkaException as error:
                    if error.args[0].code() != KafkaError.MSG_SIZE_TOO_LARGE:
                        raise
                    self._failed.append((error.args[0].str(), line))
            producer.poll(0)

    def _raised(self, error: KafkaException) -> RunError | UnavailableError:
        """The error to raise. A transaction that was broken off begins again: what it has stored says whether it was done."""
        reason: KafkaError = error.args[0]
        self.close()
        if reason.code() in (KafkaError._FENCED, KafkaError.PRODUCER_FENCED, KafkaError.INVALID_PRODUCER_EPOCH):
            return RunError(
                f"{self.address}: another service writes transactions with the same id",
                hint="give each service its own: ?id=…",
            )
        return self._problems.error(reason)

    def check(self) -> str:
        probe = Producer(_connection(self.address, self.options) | {"error_cb": self._problems})
        try:
            topics = probe.list_topics(timeout=_PATIENCE).topics
        except KafkaException as error:
            probe.poll(0)
            raise self._problems.error(error.args[0]) from None
        return "reachable" if self.topic in topics else f"reachable; the topic {self.topic} does not exist yet"

    def close(self) -> None:
        if self._steps is not None:
            self._steps.close()
            self._steps = None
        self._producer = None


def source(address: Address) -> EventSource:
    return KafkaSource(address)


def sink(address: Address) -> AnswerSink:
    return KafkaSink(address)
