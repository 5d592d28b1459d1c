"""Redis streams, NATS JetStream and Delta: the same story for each, with kills."""

from __future__ import annotations

import asyncio
import json
import os
import random
import time
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

import augury
from augury.connectors import UnavailableError, open_sink, open_source, opened
from augury.core.errors import RunError
from augury.service import LiveService
from tests.support.servers import Server, Wire
from tests.support.service_kills import expected, kill_runs, run_until, standing, wait_for

LONG = bool(os.environ.get("AUGURY_LONG"))
START = 1_760_000_000
PROGRAM = """
event reading(station: string, speed: float).
output rise.
rise(S, A, B) <- (reading(S, A) SEQ reading(S, B)).20s WHERE B > A.
"""


def readings(first: int, number: int) -> list[dict[str, Any]]:
    return [
        {"type": "reading", "station": f"s{n % 5}", "speed": float(n * 7 % 11), "time": START + 2 * n}
        for n in range(first, first + number)
    ]


def service(folder: Path, source: str, sink: str, **options: Any) -> LiveService:
    chosen: dict[str, Any] = {"state": folder / "state", "time_unit": "s", "emit": "early", "snapshot_every": "200ms"}
    return augury.live(PROGRAM, source, sink, **(chosen | options))


def story(
    folder: Path,
    source: str,
    sink: str,
    feed: Callable[[list[dict[str, Any]]], object],
    written: Callable[[], list[bytes]],
) -> None:
    """Events come in pieces, the service is killed after each, and in the end each answer is there once."""
    kills, size = (20, 200) if LONG else (1, 60)

    def make() -> LiveService:
        return service(folder, source, sink)

    kill_runs(make, kills, lambda number: feed(readings(number * size, size)), most=0.6)
    wanted = expected(PROGRAM, readings(0, kills * size), time_unit="s")
    run_until(make, lambda: standing(written()) == wanted)


def cut_story(
    wire: Wire,
    folder: Path,
    source: str,
    sink: str,
    feed: Callable[[list[dict[str, Any]]], object],
    written: Callable[[], list[bytes]],
) -> None:
    """Events come while the network is cut, and all answers are there once it is mended."""
    running = service(folder, source, sink, idle="1h")
    with running.running():
        for number in range(3):
            feed(readings(number * 40, 20))
            wait_for(lambda number=number: running.stepper.counts.events >= number * 40 + 20)  # type: ignore[misc, union-attr]
            wire.cut()
            feed(readings(number * 40 + 20, 20))
            wait_for(lambda: any(end.problem for end in running.ends))
            wire.mend()
        wanted = expected(PROGRAM, readings(0, 120), time_unit="s")
        wait_for(lambda: standing(written()) == wanted)
    wire.close()


def test_redis_behind_a_network_that_is_cut(redis: Server, tmp_path: Path) -> None:
    client = pytest.importorskip("redis").Redis("127.0.0.1", redis.port, password="secret")
    wire = Wire(redis.port)
    base = f"redis://:secret@127.0.0.1:{wire.port}"

    def feed(items: list[dict[str, Any]]) -> None:
        for item in items:
            client.xadd("cut-in", {"data": json.dumps(item)})

    def written() -> list[bytes]:
        return [entry[b"data"] for _, entry in client.xrange("cut-out")]

    cut_story(wire, tmp_path, f"{base}/cut-in", f"{base}/cut-out", feed, written)
    client.close()


def test_redis_streams(redis: Server, tmp_path: Path) -> None:
    client = pytest.importorskip("redis").Redis("127.0.0.1", redis.port, password="secret")
    base = f"redis://:secret@127.0.0.1:{redis.port}"

    def feed(items: list[dict[str, Any]]) -> None:
        for number, item in enumerate(items):
            client.xadd("in", {"data": json.dumps(item)} if number % 2 else item)

    story(tmp_path, f"{base}/in", f"{base}/out", feed, lambda: [entry[b"data"] for _, entry in client.xrange("out")])
    client.xadd("in", {"data": "{"})
    with service(tmp_path, f"{base}/in", f"{base}/out").running() as running:
        wait_for(lambda: running.stepper is not None and running.stepper.counts.malformed.total() == 1)
        wait_for(lambda: client.xpending("in", "augury")["pending"] == 0)
    client.set("text", "x")
    client.close()
    with pytest.raises(RunError, match="does not hold a stream"):
        open_source(f"{base}/text").open(None)
    with pytest.raises(RunError, match="check user") as error:
        open_source(f"{base.replace('secret', 'wrong-word')}/in").open(None)
    assert "wrong-word" not in str(error.value)
    with pytest.raises(UnavailableError):
        open_sink("redis://127.0.0.1:1/x").open(None)


class JetStreams:
    """A client of NATS."""

    def __init__(self, server: Server) -> None:
        self.nats = pytest.importorskip("nats")
        self.port = server.port

    def talk(self, work: Callable[[Any], Any]) -> Any:
        async def main() -> Any:
            connection = await self.nats.connect(f"nats://127.0.0.1:{self.port}", user="augury", password="secret")
            try:
                return await work(connection.jetstream())
            finally:
                await connection.close()
                await asyncio.sleep(0.01)  # the loop closes the socket

        return asyncio.run(main())

    def make(self, name: str, subject: str) -> None:
        async def add(stream: Any) -> None:
            await stream.add_stream(name=name, subjects=[subject])

        self.talk(add)

    def publish(self, subject: str, items: list[dict[str, Any]]) -> None:
        async def send(stream: Any) -> None:
            for item in items:
                await stream.publish(f"{subject}.{item['station']}", json.dumps(item).encode())

        self.talk(send)

    def messages(self, name: str, subject: str) -> list[bytes]:
        """All messages of a stream; none where there is no such stream."""

        async def read(stream: Any) -> list[bytes]:
            try:
                number = (await stream.stream_info(name)).state.messages
            except self.nats.js.errors.NotFoundError:
                return []
            subscription = await stream.subscribe(subject, ordered_consumer=True)
            return [(await subscription.next_msg(60)).data for _ in range(number)]

        result: list[bytes] = self.talk(read)
        return result


def test_nats_streams(nats: Server, tmp_path: Path) -> None:
    streams = JetStreams(nats)
    base = f"nats://augury:secret@127.0.0.1:{nats.port}"
    streams.make("SENSORS", "sensors.>")
    story(
        tmp_path,
        f"{base}/sensors.>",
        f"{base}/alerts",
        lambda items: streams.publish("sensors", items),
        lambda: streams.messages("ALERTS", "alerts.>"),
    )
    with pytest.raises(RunError, match="check user"):
        open_source(f"{base.replace('secret', 'wrong')}/x").open(None)
    with pytest.raises(UnavailableError):
        open_sink("nats://127.0.0.1:1/x").open(None)


@pytest.mark.skipif(not LONG, reason="waits until the client gives up: AUGURY_LONG=1")
def test_nats_behind_a_network_that_is_cut(nats: Server, tmp_path: Path) -> None:
    streams, wire = JetStreams(nats), Wire(nats.port)
    base = f"nats://augury:secret@127.0.0.1:{wire.port}"
    streams.make("WIRED", "wired.>")
    cut_story(
        wire,
        tmp_path,
        f"{base}/wired.>?durable=wired",
        f"{base}/warnings",
        lambda items: streams.publish("wired", items),
        lambda: streams.messages("WARNINGS", "warnings.>"),
    )


@pytest.mark.parametrize("mode", ["append", "merge"])
def test_delta_tables(tmp_path: Path, mode: str) -> None:
    deltalake = pytest.importorskip("deltalake")
    pa = pytest.importorskip("pyarrow")
    inward, outward = tmp_path / "in", tmp_path / "out"

    def feed(items: list[dict[str, Any]]) -> None:
        half = len(items) // 2
        for part in filter(None, (items[:half], items[half:])):
            deltalake.write_deltalake(inward, pa.Table.from_pylist(part), mode="append")

    def written() -> list[bytes]:
        if not deltalake.DeltaTable.is_deltatable(str(outward)):
            return []
        rows = pa.table(deltalake.DeltaTable(outward).to_pyarrow_table()).to_pylist()
        return [
            json.dumps({**row, "args": json.loads(row["args"])}).encode()
            for row in sorted(rows, key=lambda r: r["step"])
        ]

    feed(readings(0, 0) or [{**readings(0, 1)[0], "station": "none"}])
    story_events = readings(0, 60)
    for number in range(2):
        feed(story_events[number * 30 : number * 30 + 30])
        run_until(
            lambda: service(tmp_path, f"delta://{inward}", f"delta://{outward}?mode={mode}"),
            lambda number=number: (
                standing(written())  # type: ignore[misc]
                == expected(PROGRAM, story_events[: number * 30 + 30], time_unit="s")
            ),
        )


def serve(folder: Path, source: str, sink: str) -> None:
    service(folder, source, sink).run()


@pytest.mark.parametrize("mode", ["append", "merge"])
def test_kills_leave_each_answer_once_in_a_delta_table(tmp_path: Path, mode: str) -> None:
    """Processes are started anew: the threads of the client library do not survive a fork."""
    if not LONG:
        pytest.skip("starts a process for each kill: AUGURY_LONG=1")
    deltalake, pa = pytest.importorskip("deltalake"), pytest.importorskip("pyarrow")
    inward, outward = tmp_path / "in", tmp_path / "out"
    chance, kills, size = random.Random(3), 20, 100
    for number in range(kills):
        deltalake.write_deltalake(inward, pa.Table.from_pylist(readings(number * size, size)), mode="append")
        arguments = (tmp_path, f"delta://{inward}", f"delta://{outward}?mode={mode}")
        process = get_context("spawn").Process(target=serve, args=arguments)
        process.start()
        wait_for(lambda process=process: (tmp_path / "state" / "lock").exists() or not process.is_alive())  # type: ignore[misc]
        time.sleep(chance.uniform(0.5, 2.5))
        assert process.is_alive(), "the service has failed"
        process.kill()
        process.join()

    def written() -> dict[str, list[Any]]:
        rows = pa.table(deltalake.DeltaTable(outward).to_pyarrow_table()).to_pylist()
        ordered = sorted(rows, key=lambda row: row["step"])
        return standing(json.dumps({**row, "args": json.loads(row["args"])}).encode() for row in ordered)

    wanted = expected(PROGRAM, readings(0, kills * size), time_unit="s")
    run_until(
        lambda: service(tmp_path, f"delta://{inward}", f"delta://{outward}?mode={mode}"), lambda: written() == wanted
    )


def test_changes_of_a_delta_table_revoke(tmp_path: Path) -> None:
    deltalake = pytest.importorskip("deltalake")
    pa = pytest.importorskip("pyarrow")
    rows = [{"id": f"r{n}", **reading} for n, reading in enumerate(readings(0, 3))]
    feed_on = {"delta.enableChangeDataFeed": "true"}
    deltalake.write_deltalake(tmp_path / "t", pa.Table.from_pylist(rows), configuration=feed_on)
    deltalake.DeltaTable(tmp_path / "t").delete("id = 'r1'")
    deltalake.DeltaTable(tmp_path / "t").update(predicate="id = 'r2'", updates={"speed": "20.0"})
    with opened(open_source(f"delta://{tmp_path}/t?follow=false")) as source:
        lines = [json.loads(line) for _ in range(5) for d in source.poll(10, 1) for line in d.data.splitlines()]
    assert [(line["op"], line["id"], line["version"]) for line in lines[2:]] == [
        ("replace", "r2", 1), ("revoke", "r1", 2), ("replace", "r2", 3),
    ]  # fmt: skip
    assert len(lines) == 5
    deltalake.write_deltalake(tmp_path / "u", pa.Table.from_pylist(rows))
    deltalake.DeltaTable(tmp_path / "u").delete("id = 'r1'")
    with (
        opened(open_source(f"delta://{tmp_path}/u?start=1")) as source,
        pytest.raises(RunError, match="feed of changes"),
    ):
        source.poll(10, 1)
