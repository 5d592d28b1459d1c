"""MQTT 5: topics in, with wildcards; a topic out. Both with quality of service 1.

    mqtt://user:password@host:1883/sensors/+/wind?levels=_,station,type
    mqtts://host:8883/alarms?retain=true

In: the broker keeps what comes while nobody reads (a session of its own for each client id), and a message is acknowledged once
it is on disk. What the broker sends again, because a crash came before its acknowledgement, is recognised. The payload is an event as JSON; `levels` names attributes for the levels of its topic, `_` none. Out: the answers
of a type go to the topic with the type behind it; a subscriber may see an answer twice, with the same id.
"""

from __future__ import annotations

import queue
import ssl
import threading
import time
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import NamedTuple

import orjson
import paho.mqtt.client as paho
from paho.mqtt.enums import CallbackAPIVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.reasoncodes import ReasonCode

from augury.connectors.addresses import Address
from augury.connectors.delivery import Delivery, Poison, lines_of
from augury.connectors.rendering import RenderedChanges
from augury.connectors.sink import AnswerSink
from augury.connectors.source import EventSource, Position, UnavailableError
from augury.core.errors import DataError, RunError

_PATIENCE = 10.0
_UNACKNOWLEDGED = 1000  # messages that the broker sends before the first is acknowledged, and may send again
_SESSION = 7 * 86400  # seconds that the broker keeps what comes while nobody reads
_WRONG = ("Not authorized", "Bad user name or password", "Banned", "Bad authentication method")


@dataclass(frozen=True)
class MqttSourceOptions:
    """`client` is the id with which the broker knows us; `levels` are attributes, by commas; `time=arrival` is now."""

    client: str = "augury"
    levels: str = ""
    time: str = ""
    ca: str = ""


@dataclass(frozen=True)
class MqttSinkOptions:
    client: str = ""
    retain: bool = False
    ca: str = ""


class MqttConnection:
    """A connection with a thread of its own, and what it says."""

    def __init__(self, address: Address, client: str, ca: str, keep: bool) -> None:
        self.address = address
        host, _, port = address.host.partition(":")
        secure = address.scheme == "mqtts"
        self.client = paho.Client(
            CallbackAPIVersion.VERSION2, client, protocol=paho.MQTTv5, manual_ack=keep, reconnect_on_failure=False
        )
        self.client.max_inflight_messages_set(1000)
        if address.user:
            self.client.username_pw_set(address.user, address.password)
        if secure:
            self.client.tls_set_context(ssl.create_default_context(cafile=ca or None))
        self._host, self._port, self._keep = host, int(port or (8883 if secure else 1883)), keep
        self._answered: queue.Queue[ReasonCode] = queue.Queue()
        self.lost = threading.Event()
        self.client.on_connect = lambda client, data, flags, reason, properties: self._answered.put(reason)
        self.client.on_disconnect = lambda client, data, flags, reason, properties: self.lost.set()
        self.client.on_subscribe = lambda client, data, number, reasons, properties: self._answered.put(reasons[0])

    def open(self) -> None:
        properties = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]
        if self._keep:
            properties.SessionExpiryInterval = _SESSION
            properties.ReceiveMaximum = _UNACKNOWLEDGED
        try:
            self.client.connect(self._host, self._port, keepalive=20, clean_start=not self._keep, properties=properties)
        except OSError as error:
            raise UnavailableError(f"{self.address}: {error.strerror or error}") from None
        self.client.loop_start()
        self.answer("connect")

    def answer(self, what: str) -> None:
        """Waits for the answer to a request; raises where it is a refusal."""
        until = time.monotonic() + _PATIENCE
        while True:
            try:
                reason = self._answered.get(timeout=0.1)
                break
            except queue.Empty:
                if self.lost.is_set() or time.monotonic() > until:
                    raise UnavailableError(f"{self.address}: no answer to {what}") from None
        if reason.is_failure:
            message = f"{self.address}: {reason}"
            if str(reason) in _WRONG:
                raise RunError(message, hint="check user, password and permissions")
            raise UnavailableError(message)

    def close(self) -> None:
        self.client.disconnect()
        self.client.loop_stop()


class SentMessage(NamedTuple):
    """A message that is not acknowledged: our number, that of the broker, and its quality of service."""

    number: int
    id: int
    quality: int


class MqttSource(EventSource):
    def __init__(self, address: Address) -> None:
        self.address, self.options = address, address.read(MqttSourceOptions)
        self.topic = address.path.removeprefix("/")
        if not self.topic or not address.host:
            raise RunError(f"{address} names no topic", hint="write it as mqtt://host:1883/topic/+")
        self._levels = self.options.levels.split(",") if self.options.levels else []
        self._connection: MqttConnection | None = None
        self._arrived: queue.Queue[paho.MQTTMessage] = queue.Queue()
        self._unacknowledged: deque[SentMessage] = deque()
        self._last: deque[int] = deque(maxlen=_UNACKNOWLEDGED)  # digests of messages that were taken
        self._again: Counter[int] = Counter()  # of those that may be sent again: an acknowledgement may be lost
        self._number = self._committed = 0
        self._lock = threading.Lock()

    def open(self, position: Position | None) -> None:
        self.close()
        self._number = max(self._number, (position or {}).get("messages", 0))
        arrived: queue.Queue[paho.MQTTMessage] = queue.Queue()
        self._arrived = arrived
        self._unacknowledged.clear()
        self._again = Counter((position or {}).get("last", ()))
        self._last = deque((position or {}).get("last", ()), _UNACKNOWLEDGED)
        connection = MqttConnection(self.address, self.options.client, self.options.ca, keep=True)
        connection.client.on_message = lambda client, data, message: arrived.put(message)
        self._connection = connection
        connection.open()
        connection.client.subscribe(self.topic, 1)
        connection.answer("subscribe")

    def fetch(self, most: int, seconds: float) -> list[Delivery]:
        connection = self._connection
        assert connection is not None
        try:
            messages = [self._arrived.get(timeout=seconds)]
        except queue.Empty:
            if connection.lost.is_set():
                raise UnavailableError(f"{self.address}: the connection is lost") from None
            return []
        while len(messages) < most:
            try:
                messages.append(self._arrived.get_nowait())
            except queue.Empty:
                break
        lines: list[bytes] = []
        poison: list[Poison] = []
        for message in messages:
            text = b"%d %s\0%s" % (message.mid, message.topic.encode(), message.payload)  # sent again with its number
            digest = int.from_bytes(blake2b(text, digest_size=6).digest())
            repeated = self._again[digest] > 0
            self._number += not repeated
            self._unacknowledged.append(SentMessage(self._number, message.mid, message.qos))
            if repeated:
                self._again[digest] -= 1
                continue
            self._last.append(digest)
            if not message.payload:
                continue  # the end of a retained message
            try:
                lines.append(self._line(message))
            except DataError as error:
                poison.append(Poison(f"{message.topic}: {error.message}", bytes(message.payload)))
        data, more = lines_of(lines)
        self.commit({"messages": self._committed})  # what was sent again, and is on disk
        if not lines and not poison:
            return []
        position = {"messages": self._number, "last": list(self._last)}
        return [Delivery(data, position, self.topic, poison=(*poison, *more))]

    def _line(self, message: paho.MQTTMessage) -> bytes:
        """The payload, with attributes from the levels of its topic and the time where it has none."""
        if not self._levels and not self.options.time:
            return bytes(message.payload)
        try:
            event = orjson.loads(message.payload)
        except orjson.JSONDecodeError as error:
            raise DataError(f"malformed JSON: {error}") from None
        if not isinstance(event, dict):
            event = {"value": event}
        levels = message.topic.split("/")
        named = {name: level for name, level in zip(self._levels, levels, strict=False) if name != "_"}
        if self.options.time == "arrival" and not {"time", "start", "end"} & event.keys():
            moment = time.time()
            named["time"] = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(moment)) + f".{int(moment % 1 * 1e6):06}Z"
        return orjson.dumps({**named, **event})

    def commit(self, position: Position) -> None:
        connection = self._connection
        self._committed = max(self._committed, position["messages"])
        with self._lock:
            while connection is not None and self._unacknowledged and self._unacknowledged[0].number <= self._committed:
                sent = self._unacknowledged.popleft()
                connection.client.ack(sent.id, sent.quality)

    def lag(self) -> int | None:
        return self._arrived.qsize()

    def check(self) -> str:
        probe = MqttConnection(self.address, "", self.options.ca, keep=False)
        try:
            probe.open()
        finally:
            probe.close()
        return "reachable"

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


class MqttSink(AnswerSink):
    def __init__(self, address: Address) -> None:
        self.address, self.options = address, address.read(MqttSinkOptions)
        self.topic = address.path.removeprefix("/").rstrip("/")
        if not self.topic or not address.host:
            raise RunError(f"{address} names no topic", hint="write it as mqtt://host:1883/topic")
        if "+" in self.topic or "#" in self.topic:
            raise RunError(f"{address}: answers go to a topic without wildcards")
        self._connection: MqttConnection | None = None

    def open(self, position: Position | None) -> int | None:
        self._connect()
        return None

    def _connect(self) -> MqttConnection:
        self.close()
        connection = MqttConnection(self.address, self.options.client, self.options.ca, keep=False)
        self._connection = connection
        try:
            connection.open()
        except (UnavailableError, RunError):
            self.close()
            raise
        return connection

    def write(self, steps: Sequence[RenderedChanges]) -> list[tuple[str, bytes]]:
        connection = self._connection or self._connect()
        sent: list[paho.MQTTMessageInfo] = []
        for step in steps:
            for type, line in zip(step.types, step.lines, strict=True):
                sent.append(connection.client.publish(f"{self.topic}/{type}", line, 1, self.options.retain))
        until = time.monotonic() + _PATIENCE
        for info in sent:
            while not info.is_published():
                if connection.lost.is_set() or time.monotonic() > until:
                    self.close()
                    raise UnavailableError(f"{self.address}: the connection is lost")
                if not connection.lost.is_set():
                    _wait(info)
        return []

    def check(self) -> str:
        self._connect()
        self.close()
        return "reachable"

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _wait(info: paho.MQTTMessageInfo) -> None:
    try:
        info.wait_for_publish(0.05)
    except (RuntimeError, ValueError) as error:
        raise UnavailableError(f"a message cannot be sent: {error}") from None


def source(address: Address) -> EventSource:
    return MqttSource(address)


def sink(address: Address) -> AnswerSink:
    return MqttSink(address)
