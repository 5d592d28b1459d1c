"""MQTT, against a real broker: nothing that was published is lost, whoever is killed."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import augury
from augury.connectors import UnavailableError, open_sink, open_source, opened
from augury.core.errors import RunError
from augury.service import LiveService
from tests.support.servers import Server, Wire
from tests.support.service_kills import PATIENCE, expected, kill_runs, run_until, standing, wait_for

paho = pytest.importorskip("paho.mqtt.client")
LONG = bool(os.environ.get("AUGURY_LONG"))
START = 1_760_000_000
PROGRAM = """
event reading(station: string, speed: float).
output rise.
rise(S, A, B) <- (reading(S, A) SEQ reading(S, B)).20s WHERE B > A.
"""


def readings(first: int, number: int) -> list[dict[str, Any]]:
    """They have no ids: a message that counts twice makes another answer."""
    return [
        {"station": f"s{n % 5}", "speed": float(n * 7 % 11), "time": START + 2 * n}
        for n in range(first, first + number)
    ]


def address(server: Server, rest: str, port: int = 0) -> str:
    return f"mqtt://augury:secret@127.0.0.1:{port or server.port}/{rest}"


@contextmanager
def client(server: Server) -> Iterator[Any]:
    result = paho.Client(paho.CallbackAPIVersion.VERSION2, protocol=paho.MQTTv5)
    result.username_pw_set("augury", "secret")
    result.connect("127.0.0.1", server.port)
    result.loop_start()
    try:
        yield result
    finally:
        result.disconnect()
        result.loop_stop()


def publish(server: Server, messages: list[tuple[str, Any]], retain: bool = False) -> None:
    with client(server) as publisher:
        sent = [
            publisher.publish(topic, m if isinstance(m, bytes) else json.dumps(m), 1, retain) for topic, m in messages
        ]
        for info in sent:
            info.wait_for_publish(PATIENCE)
            assert info.is_published()


def service(folder: Path, source: str, **options: Any) -> LiveService:
    chosen: dict[str, Any] = {"state": folder / "state", "time_unit": "s", "emit": "early", "idle": "1h"} | options
    return augury.live(PROGRAM, source, chosen.pop("sinks", str(folder / "out.jsonl")), **chosen)


def lines(folder: Path) -> list[bytes]:
    path = folder / "out.jsonl"
    return path.read_bytes().splitlines() if path.exists() else []


def test_kills_lose_nothing_that_was_published(mosquitto: Server, tmp_path: Path) -> None:
    kills, size = (20, 300) if LONG else (1, 60)
    name = f"k{time.monotonic_ns()}"
    source = address(mosquitto, f"{name}/+/wind?levels=_,station&client={name}")

    def make() -> LiveService:
        return service(tmp_path, f"reading={source}", snapshot_every="200ms")

    with make().running() as running:  # the broker keeps messages from the first subscription on
        wait_for(lambda: running.feeds[0].opened)

    def feed(number: int) -> None:
        items = readings(number * size, size)
        publish(
            mosquitto, [(f"{name}/{e['station']}/wind", {k: v for k, v in e.items() if k != "station"}) for e in items]
        )

    kill_runs(make, kills, feed, most=0.8)
    wanted = expected(PROGRAM, [{"type": "reading", **e} for e in readings(0, kills * size)], time_unit="s")
    run_until(make, lambda: standing(lines(tmp_path)) == wanted)


def test_a_broker_that_restarts_and_a_wire_that_is_cut(mosquitto: Server, tmp_path: Path) -> None:
    wire, name = Wire(mosquitto.port), f"w{time.monotonic_ns()}"
    source = f"reading={address(mosquitto, f'{name}/#?client={name}', wire.port)}"
    with service(tmp_path, source).running() as running:
        wait_for(lambda: running.feeds[0].opened)
        for number in range(4):
            publish(mosquitto, [(f"{name}/a", e) for e in readings(number * 50, 50)])
            if number == 1:
                wait_for(lambda: running.stepper is not None and running.stepper.counts.events >= 60)
                mosquitto.restart(15)
            else:
                wire.cut()
                wait_for(lambda: bool(running.feeds[0].problem))
                wire.mend()
        wanted = expected(PROGRAM, [{"type": "reading", **e} for e in readings(0, 200)], time_unit="s")
        wait_for(lambda: standing(lines(tmp_path)) == wanted)
    wire.close()


def test_retained_and_malformed_messages(mosquitto: Server) -> None:
    name = f"r{time.monotonic_ns()}"
    publish(mosquitto, [(f"{name}/s1/level", b"3.5")], retain=True)
    source = open_source(f"level={address(mosquitto, f'{name}/#?levels=_,station&time=arrival&client={name}')}")
    with opened(source) as reader:
        (first,) = reader.poll(10, PATIENCE)
        event = json.loads(first.data)
        assert (event["station"], event["value"], first.type) == ("s1", 3.5, "level") and event["time"].endswith("Z")
        publish(mosquitto, [(f"{name}/s1/level", b"\xff{"), (f"{name}/s1/level", b"")])
        deliveries = [*reader.poll(10, PATIENCE), *reader.poll(10, 0.3)]
        assert [p.payload for d in deliveries for p in d.poison] == [b"\xff{"]


def test_answers_are_published_by_type(mosquitto: Server, tmp_path: Path) -> None:
    name, heard = f"o{time.monotonic_ns()}", list[tuple[str, Any]]()
    (tmp_path / "in.jsonl").write_text(
        "".join(json.dumps({"type": "reading", **event}) + "\n" for event in readings(0, 20))
    )
    with client(mosquitto) as subscriber:
        subscriber.on_message = lambda client, data, m: heard.append((m.topic, json.loads(m.payload)["id"]))
        subscribed = threading.Event()
        subscriber.on_subscribe = lambda *_: subscribed.set()
        subscriber.subscribe(f"{name}/#", 1)
        assert subscribed.wait(PATIENCE)
        service(tmp_path, f"{tmp_path}/in.jsonl?follow=false", sinks=address(mosquitto, name)).run()
        wanted = expected(PROGRAM, [{"type": "reading", **event} for event in readings(0, 20)], time_unit="s")
        wait_for(lambda: sorted(heard) == sorted((f"{name}/rise", id) for id in wanted))


def test_what_is_wrong_with_an_address_is_said(mosquitto: Server) -> None:
    with pytest.raises(RunError) as error:
        open_source(address(mosquitto, "a").replace("secret", "wrong-word")).open(None)
    assert "Not authorized" in str(error.value) and "wrong-word" not in str(error.value)
    with pytest.raises(UnavailableError):
        open_source("mqtt://127.0.0.1:1/a").open(None)
    with pytest.raises(RunError, match="names no topic"):
        open_source("mqtt://127.0.0.1")
    with pytest.raises(RunError, match="without wildcards"):
        open_sink("mqtt://127.0.0.1/a/+")
