"""Files that grow, and what of them is no event."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

import augury
from augury.connectors import DeliveryReader, RenderedChanges, open_sink, open_source, opened, rendered

PROGRAM = "event wind(place: string, speed: float).\nstrong(P) <- wind(P, S) WHERE S > 3."


def test_lines_are_read_as_they_are_added(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text('{"a": 1}\n{"b"')
    with opened(open_source(str(path))) as source:
        (first,) = source.poll(10, 0)
        assert first.data == b'{"a": 1}\n'
        assert source.poll(10, 0) == []
        with path.open("a") as file:
            file.write(": 2}\n")
        (second,) = source.poll(10, 0)
        assert (second.data, second.first) == (b'{"b": 2}\n', 2)
    with opened(open_source(str(path)), first.position) as source:
        assert source.poll(10, 0) == [second]


def test_a_file_that_was_replaced_is_read_from_its_beginning(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text("{}\n{}\n")
    with opened(open_source(str(path))) as source:
        source.poll(10, 0)
        path.write_text("[]\n")
        assert [delivery.data for delivery in source.poll(10, 0)] == [b"[]\n"]


def test_files_of_a_folder_are_read_in_the_order_of_their_names(tmp_path: Path) -> None:
    (tmp_path / "b.csv").write_text("place,speed,time\nx,9,5\n")
    (tmp_path / "a.csv").write_text("place,speed,time\ny,9,5\n")
    with opened(open_source(f"wind={tmp_path}?follow=false")) as source:
        deliveries = source.poll(10, 0)
        assert [(d.data, d.header, d.type) for d in deliveries] == [
            (b"y,9,5\n", b"place,speed,time\n", "wind"),
            (b"x,9,5\n", b"place,speed,time\n", "wind"),
        ]
        assert source.poll(10, 0) == [] and source.finished


def test_what_cannot_be_read_is_told_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text(
        '{"type": "wind", "place": "x", "speed": 4, "time": 1}\n{"bad\n{"type": "wind", "place": "x", "speed": "no", "time": 1}\n'
    )
    session = augury.compile(PROGRAM).session(clock="logical")
    reader = DeliveryReader(session.plan, session.clock)
    with opened(open_source(str(path))) as source:
        (delivery,) = source.poll(10, 0)
    changes = rendered(7, [session.push(reader.read(delivery))])
    assert (changes.step, changes.ops, changes.types) == (7, ["insert"], ["strong"])
    assert changes.lines[0].endswith(b"}") and changes.ids[0].encode() in changes.lines[0]
    (malformed, mistyped) = reader.poison
    assert malformed.reason.startswith(f"{path}:2: malformed JSON") and malformed.payload == b'{"bad'
    assert mistyped.reason == f"{path}:3: `speed` is declared as float, but is 'no'"


def test_a_file_of_answers_is_cut_back_to_its_position(tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    sink = open_sink(str(path))
    sink.open(None)
    sink.write([RenderedChanges(1, ["insert"], ["a"], ["1"], [b'{"id": "1"}'])])
    position = sink.position()
    sink.write([RenderedChanges(2, ["insert"], ["a"], ["2"], [b'{"id": "2"}'])])
    sink.close()
    sink.open(position)
    sink.write([RenderedChanges(2, ["insert"], ["a"], ["2"], [b'{"id": "2"}'])])
    sink.close()
    assert path.read_text() == '{"id": "1"}\n{"id": "2"}\n'


def test_rotated_files_have_their_names_when_they_are_complete(tmp_path: Path) -> None:
    address = f"{tmp_path}/answers.jsonl?rotate=20"
    sink = open_sink(address)
    sink.open(None)
    steps = [RenderedChanges(n, ["insert"], ["a"], [str(n)], [b'{"id": "%d"}' % n]) for n in range(1, 6)]
    sink.write(steps[:1])
    position = sink.position()
    sink.write(steps[1:])
    sink.close()
    assert sorted(p.name for p in tmp_path.glob("answers*")) == ["answers-000000.jsonl", "answers-000001.jsonl"]
    sink = open_sink(address)
    sink.open(position)
    sink.write(steps[1:])
    sink.close()
    complete = sorted(tmp_path.glob("answers*"))
    assert [p.read_text() for p in complete] == ['{"id": "1"}\n{"id": "2"}\n', '{"id": "3"}\n{"id": "4"}\n']


def test_objects_of_a_store_are_read_in_all_formats(tmp_path: Path) -> None:
    """What is hidden is left out, and what is damaged is said; the same for files here."""
    fsspec, pa = pytest.importorskip("fsspec"), pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    rows = [{"type": "wind", "place": f"p{n}", "speed": n, "time": n} for n in range(5)]
    line = [json.dumps(row).encode() for row in rows]
    pq.write_table(pa.Table.from_pylist(rows[3:4]), tmp_path / "d.parquet")
    (tmp_path / "a.jsonl").write_bytes(line[0] + b"\n" + line[1])
    (tmp_path / "b.csv").write_text("type,place,speed,time\nwind,p2,2,2\n")
    (tmp_path / "e.jsonl.gz").write_bytes(gzip.compress(line[4] + b"\n"))
    (tmp_path / "f.parquet").write_bytes(b"PAR1 no table")
    for name in ("_SUCCESS", ".hidden.jsonl", "notes.txt"):
        (tmp_path / name).write_text("none")
    store = fsspec.filesystem("memory")
    for path in tmp_path.iterdir():
        store.pipe_file(f"/{tmp_path.name}/{path.name}", path.read_bytes())
    for address in (f"memory://{tmp_path.name}", str(tmp_path)):
        with opened(open_source(f"{address}?follow=false")) as source:
            deliveries = [delivery for _ in range(3) for delivery in source.poll(100, 0)]
        session = augury.compile(PROGRAM).session(clock="logical")
        reader = DeliveryReader(session.plan, session.clock)
        assert sum(len(reader.read(delivery)) for delivery in deliveries) == 5
        (poison,) = reader.poison
        assert poison.payload.endswith(b"f.parquet")
    store.rm(f"/{tmp_path.name}", recursive=True)


def test_answers_in_a_store_are_there_once(tmp_path: Path) -> None:
    """A step that comes again after a crash takes its own place; another service leaves it alone."""
    fsspec = pytest.importorskip("fsspec")
    address = f"memory://{tmp_path.name}/alarms"
    service = augury.live(
        PROGRAM,
        [{"type": "wind", "place": "x", "speed": n, "time": n} for n in range(6)],
        address,
        state=tmp_path / "state",
    )
    service.run()
    (sink,) = [writer.sink for writer in service.writers]
    steps = [RenderedChanges(n, ["insert"], ["a"], [f"x{n}"], [b'{"id": "x%d"}' % n]) for n in (90, 91)]
    sink.write(steps)
    again, other = open_sink(address), open_sink(address)
    again.open(sink.position())
    again.write(steps[1:])
    other.open(None)
    other.write(steps[1:])
    with opened(open_source(f"{address}?follow=false")) as source:
        lines = [json.loads(line) for delivery in source.poll(100, 0) for line in delivery.data.splitlines()]
    assert sum(line.get("args") == ["x"] for line in lines) == 2
    assert sorted(line["id"] for line in lines if "args" not in line) == ["x90", "x91", "x91"]
    fsspec.filesystem("memory").rm(f"/{tmp_path.name}", recursive=True)
    with pytest.raises(augury.RunError, match="names no folder"):
        open_sink("memory://")
