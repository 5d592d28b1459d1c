"""Redis streams, NATS JetStream and Delta: the same story for each, with kills."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import augury
from augury.connectors import UnavailableError, open_sink, open_source, opened
from augury.core.errors import RunError
from augury.service import LiveService
from tests.support.servers import Server
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


def test_nats_streams(nats: Server, tmp_path: Path) -> None:
    client = pytest.importorskip("nats")
    base = f"nats://augury:secret@127.0.0.1:{nats.port}"

    def talk(work: Callable[[Any], Any]) -> Any:
        async def main() -> Any:
            connection = await client.connect(f"nats://127.0.0.1:{nats.port}", user="augury", password="secret")
            try:
                return await work(connection.jetstream())
            finally:
                await connection.close()

        return asyncio.run(main())

    async def make_stream(stream: Any) -> None:
        await stream.add_stream(name="SENSORS", subjects=["sensors.>"])

    def feed(items: list[dict[str, Any]]) -> None:
        async def publish(stream: Any) -> None:
            for item in items:
                await stream.publish(f"sensors.{item['station']}", json.dumps(item).encode())

        talk(publish)

    def written() -> list[bytes]:
        async def read(stream: Any) -> list[bytes]:
            try:
                number = (await stream.stream_info("ALERTS")).state.messages
            except client.js.errors.NotFoundError:
                return []
            subscription = await stream.subscribe("alerts.>", ordered_consumer=True)
            return [(await subscription.next_msg(60)).data for _ in range(number)]

        result: list[bytes] = talk(read)
        return result

    talk(make_stream)
    story(tmp_path, f"{base}/sensors.>", f"{base}/alerts", feed, written)
    with pytest.raises(RunError, match="check user"):
        open_source(f"{base.replace('secret', 'wrong')}/x").open(None)
    with pytest.raises(UnavailableError):
        open_sink("nats://127.0.0.1:1/x").open(None)


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
