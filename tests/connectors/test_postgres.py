"""PostgreSQL, against a real server: tables that are followed as facts and as events, answers as rows; kills and cuts."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import augury
from augury.connectors import EventSource, Position, UnavailableError, open_sink, open_source, opened
from augury.core.errors import RunError
from augury.service import LiveService
from tests.support.servers import Server, Wire
from tests.support.service_kills import PATIENCE, expected, kill_runs, run_until, wait_for

psycopg = pytest.importorskip("psycopg")
LONG = bool(os.environ.get("AUGURY_LONG"))
START = 1_760_000_000
PROGRAM = """
event reading(station: string, speed: float).
static near(station: string, place: string).
output alarm, rise.
alarm(P, S) <- reading(S, V) WHERE V > 5, near(S, P).
rise(S, A, B) <- (reading(S, A) SEQ reading(S, B)).20s WHERE B > A.
"""


class Database:
    """A database of its own for a test."""

    def __init__(self, server: Server, name: str) -> None:
        self.port, self.name = server.port, name
        self.run(f"CREATE DATABASE {name}", "postgres")

    def run(self, text: str, database: str = "") -> list[tuple[Any, ...]]:
        address = f"host=127.0.0.1 port={self.port} user=augury password=secret dbname={database or self.name}"
        with psycopg.connect(address, autocommit=True) as connection:
            cursor = connection.execute(text)
            return list(cursor.fetchall()) if cursor.description else []

    def address(self, table: str, port: int = 0) -> str:
        return f"postgres://augury:secret@127.0.0.1:{port or self.port}/{self.name}/{table}"


@pytest.fixture
def database(postgres: Server) -> Iterator[Database]:
    result = Database(postgres, f"d{time.monotonic_ns()}")
    yield result
    result.run(
        "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE active_pid IS NOT NULL", "postgres"
    )


def readings(first: int, number: int) -> list[dict[str, Any]]:
    return [
        {"type": "reading", "station": f"s{n % 5}", "speed": float(n * 7 % 11), "time": START + 2 * n, "id": f"r{n}"}
        for n in range(first, first + number)
    ]


def service(database: Database, folder: Path, program: str = PROGRAM, **options: Any) -> LiveService:
    chosen: dict[str, Any] = {"state": folder / "state", "time_unit": "s", "emit": "early", "idle": "1h"} | options
    sources = chosen.pop("sources", str(folder / "in.jsonl"))
    return augury.live(program, sources, chosen.pop("sinks", database.address("answers")), **chosen)


def append(path: Path, events: list[dict[str, Any]]) -> None:
    with path.open("a") as file:
        file.write("".join(json.dumps(event) + "\n" for event in events))


def written(database: Database) -> dict[str, list[Any]]:
    if not database.run("SELECT 1 FROM pg_tables WHERE tablename = 'answers'"):
        return {}
    return dict(database.run("SELECT id, args FROM answers"))


def test_kills_leave_each_answer_as_one_row_and_notify_once(database: Database, tmp_path: Path) -> None:
    kills, size = (20, 300) if LONG else (1, 60)
    database.run("CREATE TABLE near (station text, place text)")
    database.run("INSERT INTO near VALUES ('s1', 'creek'), ('s2', 'hill')")

    def make() -> LiveService:
        return service(
            database, tmp_path, facts={"near": database.address("near")}, snapshot_every="200ms",
            sinks=database.address("answers?notify=alarms"),
        )  # fmt: skip

    with psycopg.connect(
        f"host=127.0.0.1 port={database.port} user=augury password=secret dbname={database.name}", autocommit=True
    ) as listener:
        listener.execute("LISTEN alarms")
        kill_runs(make, kills, lambda n: append(tmp_path / "in.jsonl", readings(n * size, size)), most=1.0)
        facts = {"near": [("s1", "creek"), ("s2", "hill")]}
        wanted = expected(PROGRAM, readings(0, kills * size), time_unit="s", facts=facts)
        run_until(make, lambda: written(database) == wanted)
        notes = [*listener.notifies(timeout=PATIENCE, stop_after=len(wanted)), *listener.notifies(timeout=0.3)]
        told = [json.loads(note.payload)["id"] for note in notes]
    assert sorted(told) == sorted(wanted)


def test_facts_follow_a_table(database: Database, tmp_path: Path) -> None:
    database.run("CREATE TABLE near (station text PRIMARY KEY, place text, note jsonb)")
    database.run("INSERT INTO near VALUES ('s1', 'creek', '{}')")
    append(tmp_path / "in.jsonl", [])
    changes: list[dict[str, Any]] = []

    def sees(n: int, station: str) -> None:
        append(tmp_path / "in.jsonl", [{"type": "reading", "station": station, "speed": 9, "time": START + n}])

    address = database.address("near") + "?columns=station,place"
    with service(database, tmp_path, sinks=changes.append, facts={"near": address}).running() as running:

        def facts(number: int) -> None:
            wait_for(lambda: running.stepper is not None and running.stepper.counts.facts == number)

        facts(1)
        sees(0, "s1")
        wait_for(lambda: len(changes) == 1)
        database.run(
            "BEGIN; INSERT INTO near VALUES ('s2', 'hill', NULL); UPDATE near SET place = 'lake' WHERE station = 's1'; COMMIT"
        )
        facts(4)
        sees(10, "s1")
        sees(11, "s2")
        wait_for(lambda: len(changes) == 3)
        database.run("DELETE FROM near WHERE station = 's1'")
        facts(5)
        sees(20, "s1")
        sees(21, "s2")
        wait_for(lambda: len(changes) == 4)
    assert [change["args"][0] for change in changes] == ["creek", "lake", "hill", "hill"]


def test_rows_are_events_that_updates_replace_and_deletes_revoke(database: Database, tmp_path: Path) -> None:
    database.run("CREATE TABLE reading (n int PRIMARY KEY, station text, speed float, measured timestamptz)")
    database.run("INSERT INTO reading SELECT n, 's', n, to_timestamp(1760000000 + n) FROM generate_series(1, 4) n")
    program = "event reading(station: string, speed: float).\noutput high.\nhigh(S, V) <- reading(S, V) WHERE V > 2.\n"
    address = f"reading={database.address('reading')}?columns=station,speed&time=measured"
    standing: dict[str, float] = {}

    def note(change: dict[str, Any]) -> None:
        if change["op"] == "insert":
            standing[change["id"]] = change["args"][1]
        else:
            del standing[change["id"]]

    with service(database, tmp_path, program, sources=address, sinks=note, lateness="1h").running():
        wait_for(lambda: sorted(standing.values()) == [3, 4])
        database.run("UPDATE reading SET speed = 7 WHERE n = 1")
        wait_for(lambda: sorted(standing.values()) == [3, 4, 7])
        database.run("UPDATE reading SET n = 9, speed = 8 WHERE n = 3")
        wait_for(lambda: sorted(standing.values()) == [4, 7, 8])
        database.run("DELETE FROM reading WHERE n = 4")
        wait_for(lambda: sorted(standing.values()) == [7, 8])
        database.run("INSERT INTO reading VALUES (4, 's', 6, to_timestamp(1760000004))")
        wait_for(lambda: sorted(standing.values()) == [6, 7, 8])


@contextmanager
def reopened(source: EventSource, position: Position) -> Iterator[EventSource]:
    """A source that is open again, once the server has noticed that it was closed."""

    def opens() -> bool:
        try:
            source.open(position)
        except UnavailableError:
            return False
        return True

    wait_for(opens)
    yield source
    source.close()


def test_changes_while_nobody_reads_are_read_later(database: Database, tmp_path: Path) -> None:
    database.run("CREATE TABLE t (id int PRIMARY KEY, v float, ok bool, n numeric, d timestamptz)")
    source = open_source(database.address("t"))
    source.facts = "near"
    with opened(source) as reader:
        (begins,) = reader.poll(10, 1)
    database.run("INSERT INTO t VALUES (1, 2.5, true, 7, '2026-01-01 00:00+00'), (2, NULL, false, 1.5, NULL)")
    with reopened(source, begins.position) as reader:
        rows = [json.loads(line) for line in reader.poll(10, PATIENCE)[0].data.splitlines()]
    assert [row["args"] for row in rows] == [[1, 2.5, True, 7, "2026-01-01 00:00:00+00"], [2, None, False, 1.5, None]]
    with reopened(source, begins.position) as reader:  # what is not committed comes again
        (again,) = reader.poll(10, PATIENCE)
        assert len(again) == 2
        reader.commit(again.position)
    with reopened(source, again.position) as reader:
        assert reader.poll(10, 0.2) == []


def test_a_wire_that_is_cut_and_a_server_that_restarts(database: Database, postgres: Server, tmp_path: Path) -> None:
    if not LONG:
        pytest.skip("takes long: AUGURY_LONG=1")
    wire = Wire(postgres.port)
    database.run("CREATE TABLE near (station text, place text)")
    facts = {"near": database.address("near", wire.port)}
    with service(database, tmp_path, facts=facts, sinks=database.address("answers", wire.port)).running() as running:
        for number in range(4):
            append(tmp_path / "in.jsonl", readings(number * 100, 100))
            time.sleep(0.3)
            wire.cut()
            if number % 2:
                postgres.restart()
            time.sleep(0.2)
            wire.mend()
        wanted = expected(PROGRAM, readings(0, 400), time_unit="s", facts={"near": []})
        wait_for(lambda: written(database) == wanted)
        assert running.ready
    wire.close()


def test_rows_that_the_table_refuses_are_kept(database: Database, tmp_path: Path) -> None:
    database.run("CREATE TABLE answers (id text PRIMARY KEY, args jsonb, s text CHECK (s <> 's3'))")
    append(tmp_path / "in.jsonl", readings(0, 40))
    service(database, tmp_path, sources=f"{tmp_path}/in.jsonl?follow=false", facts={"near": []}).run()
    rows = dict(database.run("SELECT id, s FROM answers"))
    wanted = expected(PROGRAM, readings(0, 40), time_unit="s", facts={"near": []})
    assert rows == {id: args[0] for id, args in wanted.items() if args[0] != "s3"}
    refused = [json.loads(line) for line in (tmp_path / "state" / "refused.jsonl").read_text().splitlines()]
    assert len(refused) == len(wanted) - len(rows) and "check constraint" in refused[0]["reason"]
    assert "secret" not in (tmp_path / "state" / "refused.jsonl").read_text()


def test_what_is_wrong_with_an_address_is_said(database: Database) -> None:
    def problem(address: str, kind: Callable[[str], Any] = open_source) -> str:
        with pytest.raises(RunError) as error:
            kind(address).open(None)
        return str(error.value)

    good = database.address("t")
    assert "names no table" in problem("postgres://host/db")
    wrong = problem(good.replace("secret", "wrong-word"))
    assert "password authentication failed" in wrong and "wrong-word" not in wrong
    assert "there is no table public.t" in problem(good)
    assert "does not exist" in problem(good.replace(database.name, "nowhere"), open_sink)
    database.run("CREATE TABLE t (a int)")
    assert "no primary key" in problem(good)
    assert "has no column `x`" in problem(good + "?time=x")
    with pytest.raises(UnavailableError):
        open_source("postgres://augury:secret@127.0.0.1:1/db/t").open(None)
    assert open_source(good).check() == "1 columns, logical decoding"
