"""Kafka, against a real broker: events in, answers out in transactions; kills, a broker that restarts, a network that is cut."""

from __future__ import annotations

import io
import json
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import augury
from augury.connectors import AnswerSink, RenderedChanges, UnavailableError, open_sink, open_source, opened
from augury.core.errors import RunError
from augury.service import LiveService
from tests.support.servers import Server, Wire
from tests.support.service_kills import PATIENCE, expected, kill_runs, run_until, standing, wait_for

confluent_kafka = pytest.importorskip("confluent_kafka")
LONG = bool(os.environ.get("AUGURY_LONG"))
START = 1_760_000_000
PROGRAM = """
event reading(station: string, speed: float).
output rise, calm.
rise(S, A, B) <- (reading(S, A) SEQ reading(S, B)).20s WHERE B > A.
calm(S, A)    <- r: reading(S, A), w: extend(r, 15s), while w: not reading(S, _).
"""


def readings(first: int, number: int) -> list[dict[str, Any]]:
    return [
        {"type": "reading", "station": f"s{n % 5}", "speed": float(n * 7 % 11), "time": START + 2 * n, "id": f"r{n}"}
        for n in range(first, first + number)
    ]


Topic = Callable[..., str]


@pytest.fixture
def topic(kafka: Server) -> Topic:
    """Makes a topic with a name of its own."""
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": f"127.0.0.1:{kafka.port}"})

    def make(partitions: int = 1) -> str:
        name = f"t{time.monotonic_ns()}"
        admin.create_topics([NewTopic(name, partitions, 1)])[name].result(PATIENCE)
        return name

    return make


def produce(kafka: Server, topic: str, messages: Sequence[tuple[Any, Any]], **options: Any) -> None:
    producer = confluent_kafka.Producer({"bootstrap.servers": f"127.0.0.1:{kafka.port}", "linger.ms": 1})
    for key, value in messages:
        body = value if value is None or isinstance(value, bytes) else json.dumps(value).encode()
        producer.produce(topic, body, key, **options)
    assert producer.flush(PATIENCE) == 0


def consumed(kafka: Server, topic: str) -> list[tuple[str, bytes | None]]:
    """All messages of committed transactions, key and value."""
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": f"127.0.0.1:{kafka.port}", "group.id": "reader", "isolation.level": "read_committed",
            "enable.partition.eof": True,
        }
    )  # fmt: skip
    parts = consumer.list_topics(topic, PATIENCE).topics[topic].partitions
    consumer.assign([confluent_kafka.TopicPartition(topic, number, 0) for number in parts])
    result: list[tuple[str, bytes | None]] = []
    ended = 0
    while ended < len(parts):
        for message in consumer.consume(1000, 0.05):
            if message.error() is None:
                result.append((message.key().decode(), message.value()))
            elif message.error().code() == confluent_kafka.KafkaError._PARTITION_EOF:
                ended += 1
    consumer.close()
    return result


def answers(messages: Sequence[tuple[str, bytes | None]]) -> dict[str, list[Any]]:
    """What stands after messages; fails where one was written twice."""
    lines = [json.dumps({"op": "retract", "id": key}).encode() if value is None else value for key, value in messages]
    return standing(lines)


def service(kafka: Server, folder: Path, inward: str, outward: str, **options: Any) -> LiveService:
    port = options.pop("port", kafka.port)
    chosen: dict[str, Any] = {
        "state": folder,
        "time_unit": "s",
        "emit": "early",
        "idle": "1h",
        "lateness": "10min",
    } | options
    return augury.live(PROGRAM, f"kafka://127.0.0.1:{port}/{inward}", f"kafka://127.0.0.1:{port}/{outward}", **chosen)


def test_kills_lose_and_repeat_nothing(kafka: Server, topic: Topic, tmp_path: Path) -> None:
    """Readers of committed transactions see each answer once, whenever the service was killed."""
    inward, outward = topic(2), topic(1)
    kills, size = (20, 300) if LONG else (3, 80)

    def feed(number: int) -> None:
        produce(kafka, inward, [(None, reading) for reading in readings(number * size, size)])

    def make() -> LiveService:
        return service(kafka, tmp_path, inward, outward, snapshot_every="200ms")

    kill_runs(make, kills, feed, most=1.5 if LONG else 0.8)
    wanted = expected(PROGRAM, readings(0, kills * size), time_unit="s")
    run_until(make, lambda: answers(consumed(kafka, outward)) == wanted)


def test_a_broker_that_restarts_and_a_network_that_is_cut(kafka: Server, topic: Topic, tmp_path: Path) -> None:
    inward, outward = topic(), topic()
    wire = kafka.wire
    assert wire is not None
    running = service(kafka, tmp_path, inward, outward, port=wire.port)
    with running.running():
        for number in range(4):
            produce(kafka, inward, [(None, reading) for reading in readings(number * 150, 150)])
            wait_for(lambda number=number: running.number > number)  # type: ignore[misc]
            if number % 2:
                kafka.restart()
            else:
                wire.cut()
                wait_for(lambda: any(end.problem for end in running.ends))
                wire.mend()
        wanted = expected(PROGRAM, readings(0, 600), time_unit="s")
        wait_for(lambda: answers(consumed(kafka, outward)) == wanted)


def test_a_silent_partition_holds_back_answers_until_it_is_idle(kafka: Server, topic: Topic, tmp_path: Path) -> None:
    inward, outward = topic(2), topic()
    produce(kafka, inward, [(None, reading) for reading in readings(0, 40)], partition=1)
    options: dict[str, Any] = {"emit": "final", "lateness": "0s"}
    running = service(kafka, tmp_path, inward, outward, **options)
    with running.running():
        wait_for(lambda: running.stepper is not None and running.stepper.counts.events == 40)
    assert consumed(kafka, outward) == []
    with service(kafka, tmp_path, inward, outward, idle="500ms", **options).running():
        wait_for(lambda: len(consumed(kafka, outward)) > 30)


def test_who_may_not_log_in_is_told(kafka: Server, topic: Topic, tmp_path: Path) -> None:
    name = topic()
    produce(kafka, name, [(None, {"n": 1})])
    address = f"kafka://augury:secret@127.0.0.1:{kafka.secure_port}/{name}"
    with opened(open_source(address)) as source:
        assert [delivery.data for delivery in source.poll(10, PATIENCE)] == [b'{"n": 1}\n']
    for opening in (open_source, open_sink):
        end = opening(address.replace("secret", "wrong-word"))
        with pytest.raises(RunError, match="check user, password and permissions") as error:
            end.open(None)
        assert "wrong-word" not in str(error.value)
        end.close()


def test_keys_are_ids_and_tombstones_revoke(kafka: Server, topic: Topic, tmp_path: Path) -> None:
    inward, outward = topic(), topic()
    plain = [{k: v for k, v in reading.items() if k != "id"} for reading in readings(0, 12)]
    produce(kafka, inward, [(f"k{n}", reading) for n, reading in enumerate(plain)])
    with service(kafka, tmp_path, inward, outward).running():
        wait_for(lambda: len(answers(consumed(kafka, outward))) > 3)
        produce(kafka, inward, [("k7", None)])
        wanted = expected(PROGRAM, [e for n, e in enumerate(plain) if n != 7], time_unit="s")
        wait_for(lambda: answers(consumed(kafka, outward)) == wanted)
    assert None in [value for _, value in consumed(kafka, outward)]


def test_a_message_takes_the_place_of_the_earlier_ones_of_its_key(kafka: Server, topic: Topic) -> None:
    name = topic()
    produce(kafka, name, [("k", {"speed": 1}), ("k", {"speed": 2}), ("k", None)])
    with opened(open_source(f"kafka://127.0.0.1:{kafka.port}/{name}?key=replace")) as source:
        lines = [json.loads(line) for delivery in source.poll(10, PATIENCE) for line in delivery.data.splitlines()]
    assert [(line["op"], line["id"], line["version"]) for line in lines] == [
        ("replace", "k", 1), ("replace", "k", 2), ("revoke", "k", 3),
    ]  # fmt: skip


def test_messages_that_are_no_events_are_dead_letters(kafka: Server, topic: Topic, tmp_path: Path) -> None:
    inward, outward = topic(), topic()
    hostile = [
        b"",
        b"\xff\xfe",
        b"{",
        b"null",
        b"[1, 2]",
        b'{"type": "reading"}',
        b"[" * 5000,
        b'{"type": "reading", "id": 7}',
    ]
    produce(kafka, inward, [(None, message) for message in hostile])
    produce(kafka, inward, [("key", message) for message in hostile])
    produce(kafka, inward, [(None, reading) for reading in readings(0, 10)])
    with service(kafka, tmp_path, inward, outward).running() as running:
        wanted = expected(PROGRAM, readings(0, 10), time_unit="s")
        wait_for(lambda: answers(consumed(kafka, outward)) == wanted)
        assert running.stepper is not None and running.stepper.counts.malformed.total() >= 2 * (len(hostile) - 1)


def test_csv_headers_and_times_of_messages(kafka: Server, topic: Topic) -> None:
    name = topic()
    produce(kafka, name, [("k", {"speed": 2})], headers={"station": "s1"}, timestamp=1_760_000_000_123)
    with opened(open_source(f"reading=kafka://127.0.0.1:{kafka.port}/{name}?headers=station&time=message")) as source:
        (delivery,) = source.poll(10, PATIENCE)
    assert json.loads(delivery.data) == {"station": "s1", "speed": 2, "id": "k", "time": "2025-10-09T08:53:20.123Z"}
    assert delivery.type == "reading"
    other = topic()
    produce(kafka, other, [(None, b"s1,2.5,7"), (None, b"s2,3,8\n")])
    with opened(open_source(f"kafka://127.0.0.1:{kafka.port}/{other}?format=csv&columns=station,speed,time")) as source:
        (delivery,) = source.poll(10, PATIENCE)
    assert (delivery.header, delivery.data) == (b"station,speed,time\n", b"s1,2.5,7\ns2,3,8\n")


def test_avro_with_a_frame_and_protobuf(
    kafka: Server, topic: Topic, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import fastavro
    from google.protobuf import descriptor_pb2

    from augury.connectors import payloads

    fields = [{"name": "station", "type": "string"}, {"name": "speed", "type": "double"}]
    schema = {"type": "record", "name": "Reading", "fields": fields}
    monkeypatch.setattr(payloads, "fetched_schema", lambda registry, number: json.dumps(schema))
    body = io.BytesIO()
    fastavro.schemaless_writer(body, schema, {"station": "s", "speed": 2.5})
    name = topic()
    produce(kafka, name, [(None, b"\0\0\0\0\x07" + body.getvalue()), (None, b"\0\0"), (None, b"\0\0\0\0\x07\xff")])
    with opened(open_source(f"kafka://127.0.0.1:{kafka.port}/{name}?format=avro&registry=http://registry")) as source:
        (delivery,) = source.poll(10, PATIENCE)
    assert json.loads(delivery.data) == {"station": "s", "speed": 2.5} and len(delivery.poison) == 2

    file = descriptor_pb2.FileDescriptorProto(name="r.proto", package="farm", syntax="proto3")
    message = file.message_type.add(name="Reading")
    message.field.add(name="speed", number=1, type=1, label=1)
    (tmp_path / "r.desc").write_bytes(descriptor_pb2.FileDescriptorSet(file=[file]).SerializeToString())
    name = topic()
    produce(kafka, name, [(None, b"\x09\0\0\0\0\0\0\x04\x40"), (None, b"\x09\0")])
    address = f"kafka://127.0.0.1:{kafka.port}/{name}?format=protobuf&schema={tmp_path}/r.desc&message=farm.Reading"
    with opened(open_source(address)) as source:
        (delivery,) = source.poll(10, PATIENCE)
    assert json.loads(delivery.data) == {"speed": 2.5} and [p.reason for p in delivery.poison] == ["malformed Protobuf"]


def test_latest_begins_at_the_end_and_stays_there(kafka: Server, topic: Topic) -> None:
    name = topic(2)
    produce(kafka, name, [(None, {"n": 1})])
    address = f"kafka://127.0.0.1:{kafka.port}/{name}?start=latest"
    with opened(open_source(address)) as source:
        (begins,) = source.poll(10, 1)
        assert len(begins) == 0
    produce(kafka, name, [(None, {"n": 2})])
    with opened(open_source(address), begins.position) as source:
        (delivery,) = source.poll(10, PATIENCE)
    assert delivery.data == b'{"n": 2}\n'


def test_a_broker_that_is_not_there_is_tried_again(kafka: Server, topic: Topic, tmp_path: Path) -> None:
    wire = Wire(kafka.port)
    wire.cut()
    source = open_source(f"kafka://127.0.0.1:{wire.port}/{topic()}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("augury.connectors.kafka._PATIENCE", 0.5)
        with pytest.raises(UnavailableError):
            source.open(None)
        with pytest.raises(UnavailableError):
            open_sink(f"kafka://127.0.0.1:{wire.port}/x").open(None)
    source.close()
    wire.close()


def test_messages_that_were_given_up_are_written_again(
    kafka: Server, topic: Topic, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without transactions nothing but the report of a message says that it was not delivered."""
    monkeypatch.setattr("augury.connectors.kafka._FLUSH", 1.0)
    name, wire = topic(), kafka.wire
    assert wire is not None
    sink = open_sink(f"kafka://127.0.0.1:{wire.port}/{name}?transactions=false")
    sink.open(None)
    steps = [RenderedChanges(1, ["insert"], ["a"], ["x"], [b"{}"])]
    wire.cut()
    with pytest.raises(UnavailableError, match="not all messages could be written"):
        sink.write(steps)
    wire.mend()
    wait_for(lambda: sink_takes(sink, steps))
    sink.close()
    assert ("x", b"{}") in consumed(kafka, name)


def sink_takes(sink: AnswerSink, steps: Sequence[RenderedChanges]) -> bool:
    try:
        return sink.write(steps) == []
    except UnavailableError:
        return False


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("kafka://host:9092", "names no topic"),
        ("kafka://host:9092/t?key=value", "is its `id`, `replace` or `ignore`"),
        ("kafka://host:9092/t?format=xml", "unknown format"),
        ("kafka://host:9092/t?format=csv", "have no header"),
        ("kafka://host:9092/t?format=avro", "needs a schema"),
        ("kafka://host:9092/t?strat=latest", "did you mean `start`"),
    ],
)
def test_wrong_addresses_are_named(address: str, message: str) -> None:
    with pytest.raises(RunError) as error:
        open_source(address)
    assert message in str(error.value)
