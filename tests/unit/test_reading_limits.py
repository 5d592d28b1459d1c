"""What reading may use: lines, what a packed file unpacks to, memory and time; and the queries of databases."""

from __future__ import annotations

import bz2
import gzip
import io
import random
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import augury
from augury.core.clock import Clock
from augury.core.errors import DataError
from augury.core.limits import Limits
from augury.knowledge.databases import Database
from augury.sources import Reader, Skipped, SourceFile, bounded
from augury.sources.blocks import blocks
from augury.sources.bounded import BoundedStream, ReadLimits
from tests.support.commands import run

PROGRAM = augury.compile("event a(x: string).\nr(X) <- a(X).")
ENDLESS = "WITH RECURSIVE t(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM t) SELECT {} FROM t"


def zst(data: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as out:
        out.write(data)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


PACKED: dict[str, Callable[[bytes], bytes]] = {"": bytes, ".gz": gzip.compress, ".bz2": bz2.compress, ".zst": zst}


def line(form: str, text: str, time: int) -> bytes:
    return (f'{{"type":"a","args":["{text}"],"time":{time}}}\n' if form == "jsonl" else f"a,{text},{time}\n").encode()


def file_with(folder: Path, form: str, packed: str, texts: list[str]) -> Path:
    head = b"type,x,time\n" if form == "csv" else b""
    path = folder / f"x.{form}{packed}"
    path.write_bytes(PACKED[packed](head + b"".join(line(form, text, n) for n, text in enumerate(texts))))
    return path


def read(path: Path, on_error: Any = "stop", **limits: Any) -> tuple[list[Any], list[str]]:
    skipped = Skipped(on_error, limits=Limits.of(limits))
    history = Reader(PROGRAM.plan, Clock(), skipped).source(SourceFile(str(path)))
    return [item.args[0] for item in history.items()], skipped.problems  # type: ignore[union-attr]


@pytest.mark.parametrize("packed", PACKED)
@pytest.mark.parametrize("form", ["jsonl", "csv"])
def test_a_line_that_is_too_long_is_a_malformed_row(form: str, packed: str, tmp_path: Path) -> None:
    long = "x" * 100_000
    path = file_with(tmp_path, form, packed, ["one", long, "two", long, "three"])
    number = 2 if form == "jsonl" else 3
    said = f"{path}:{number}: a line of more than 10,000 bytes"
    with pytest.raises(DataError) as caught:
        read(path, line=10_000)
    assert str(caught.value).startswith(said) and "--limit line=" in str(caught.value)
    found, problems = read(path, "skip", line=10_000)
    assert found == ["one", "two", "three"]
    assert problems == [said, said.replace(f":{number}:", f":{number + 2}:")]
    assert read(path, line="1 MB")[0] == ["one", long, "two", long, "three"]


@pytest.mark.parametrize("seed", range(40))
def test_lines_around_the_limit(seed: int) -> None:
    """Whatever is cut where: every line is there, or is one that is too long."""
    rng = random.Random(seed)
    most = rng.choice([1, 5, 64, 1000])
    lines = [
        b"x" * rng.choice([0, 1, most - 1, most, most + 1, 3 * most, 10 * most]) for _ in range(rng.randint(0, 30))
    ]
    data = b"\n".join(lines) + (b"\n" if rng.random() < 0.5 else b"")
    bounds = ReadLimits("x", Limits(line=most))
    found: dict[int, bytes | None] = {}
    for block in blocks(BoundedStream(io.BytesIO(data), bounds), size=rng.choice([1, 7, 100, 5000])):
        given = [None] if block.too_long else block.data.removesuffix(b"\n").split(b"\n")
        for number, text in enumerate(given, block.first):
            assert number not in found
            found[number] = text
    written = data.removesuffix(b"\n").split(b"\n") if data else []
    assert found == {number: None if len(text) > most else text for number, text in enumerate(written, 1)}


@pytest.mark.parametrize("packed", [".gz", ".bz2", ".zst"])
@pytest.mark.parametrize("form", ["jsonl", "csv"])
def test_what_unpacks_to_too_much(form: str, packed: str, tmp_path: Path) -> None:
    path = file_with(tmp_path, form, packed, ["y" * 50] * 50_000)
    with pytest.raises(DataError, match=r"x\.\w+\.\w+: unpacks to more than 1,000,000 bytes\n.*--limit unpacked="):
        read(path, "skip", unpacked="1 MB")
    assert len(read(path, unpacked="5 MB")[0]) == 50_000


def test_a_bomb_is_refused_by_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded, "UNPACKED", 100_000)
    path = tmp_path / "x.jsonl.gz"
    path.write_bytes(gzip.compress(b"\n" * 50_000_000))
    with pytest.raises(DataError, match=f"unpacks to more than {200 * path.stat().st_size:,} bytes"):
        read(path, "skip")
    usual = file_with(tmp_path, "jsonl", ".gz", [f"text {n * n}" for n in range(50_000)])
    assert len(read(usual)[0]) == 50_000  # which packs well, and is no bomb


def test_a_packed_parquet_file(tmp_path: Path) -> None:
    path = tmp_path / "x.arrow.gz"
    path.write_bytes(gzip.compress(b"ARROW1" + b"\0" * 5_000_000))
    with pytest.raises(DataError, match="unpacks to more than 1,000,000 bytes"):
        read(path, unpacked="1 MB")


def test_events_that_take_more_than_the_limit(tmp_path: Path) -> None:
    path = file_with(tmp_path, "jsonl", "", [f"{n} " * 100 for n in range(20_000)])
    with pytest.raises(DataError, match="its events take more than 1,000,000 bytes"):
        read(path, bytes="1 MB")
    assert len(read(path, bytes="1 GB")[0]) == 20_000


def test_reading_ends_when_the_time_is_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = file_with(tmp_path, "jsonl", ".gz", ["x"] * 100_000)
    clock = iter(range(1000))
    monkeypatch.setattr(bounded, "monotonic", lambda: next(clock))
    with pytest.raises(DataError, match="takes longer than 2 s to read"):
        read(path, time="2s")


def test_reading_ends_before_the_memory_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = file_with(tmp_path, "jsonl", "", ["x"] * 10)
    monkeypatch.setattr(bounded, "memory_left", lambda: 1 << 20)
    with pytest.raises(DataError, match="takes more memory to read than there is"):
        read(path)


def test_a_session_reads_within_its_limits(tmp_path: Path) -> None:
    path = file_with(tmp_path, "jsonl", "", ["x" * 100_000])
    session = PROGRAM.session(limits={"line": "1 kB"})
    with pytest.raises(DataError, match="a line of more than 1,000 bytes"):
        session.push(augury.read(path))
    with pytest.raises(DataError, match="a line of more than 1,000 bytes"):
        augury.run(PROGRAM, augury.read(path), limits={"line": "1 kB"})


# Databases


@pytest.fixture(params=["sqlite", "duckdb"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    path = tmp_path / f"shop.{request.param}"
    with sqlite3.connect(path) if request.param == "sqlite" else duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE k (x INTEGER)")
        connection.execute("INSERT INTO k VALUES (1), (2)")
    return str(path)


@pytest.mark.parametrize("what", ["x", "count(*)"])
def test_a_query_without_an_end_is_interrupted(what: str, database: str) -> None:
    with pytest.raises(DataError) as caught:
        Database(database, ENDLESS.format(what)).sheet("k", Limits.of({"time": "200ms"}))
    assert f"{database}: the query takes longer than 200ms" in str(caught.value)
    assert "--limit time=" in str(caught.value) and "WITH RECURSIVE" in str(caught.value)
    assert len(Database(database, "SELECT x FROM k").sheet("k")) == 2


def test_a_query_that_gives_too_much(database: str) -> None:
    many = "WITH RECURSIVE t(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM t WHERE x < 300000) SELECT x FROM t"
    with pytest.raises(DataError, match=r"the query gives more than 1,000,000 bytes|Out of Memory"):
        Database(database, many).sheet("k", Limits.of({"bytes": "1 MB"}))
    assert len(Database(database, many).sheet("k")) == 300_000


def test_reading_limits_on_the_command_line(database: str, tmp_path: Path) -> None:
    (tmp_path / "p.aug").write_text("static k(x: int).\nr(X) <- a(X) WHERE k(X).\n")
    (tmp_path / "e.jsonl").write_text('{"type": "a", "args": [1], "time": 1}\n')
    facts = f"k={database}:{ENDLESS.format('x')}"
    done = run(["run", "p.aug", "--events", "e.jsonl", "--facts", facts, "--limit", "time=300ms"], tmp_path)
    assert done.code == 1 and "the query takes longer than 300ms" in done.err


def test_a_connection_of_the_user(database: str) -> None:
    """Has a limit where one is given."""
    program = augury.compile("static k(x: int).\nr(X) <- a(X) WHERE k(X).")
    opened: Any = sqlite3.connect(database) if database.endswith("sqlite") else duckdb.connect(database)
    facts: Any = {"k": (opened, ENDLESS.format("count(*)"))}
    with pytest.raises(DataError, match="the query takes longer than 100ms"):
        augury.run(program, [augury.Event("a", (1,), 1)], facts=facts, limits={"time": "100ms"})
    opened.close()
