"""Versions of inputs: in every form in which they come, in sessions that save and forget, and beside what is rejected."""

import json
import os
import random
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import augury
from augury import DataError, Event, Revocation
from augury.core.clock import Clock
from augury.core.model import HistoryItem
from augury.engine import input_ids, intake, named_columns
from augury.reference import evaluate

PROGRAM = "event order(n: int, amount: int). paid(N, A) <- order(N, A)."
ROWS: list[dict[str, Any]] = [
    {"op": "insert", "n": 1, "amount": 10, "time": 1, "id": "e", "version": None},
    {"op": "replace", "n": 1, "amount": 30, "time": 3, "id": "e", "version": 2},
    {"op": "replace", "n": 1, "amount": 20, "time": 2, "id": "e", "version": 1},
    {"op": None, "n": 2, "amount": 5, "time": 4, "id": "f", "version": 1},
    {"op": "revoke", "n": None, "amount": None, "time": None, "id": "f", "version": 1},
    {"op": None, "n": 3, "amount": 7, "time": 5, "id": None, "version": None},
]
ANSWER = [(1, 30), (3, 7)]


def written(folder: Path, form: str) -> Path:
    path = folder / f"order.{form}"
    match form:
        case "csv":
            pd.DataFrame(ROWS, dtype="object").to_csv(path, index=False)
        case "jsonl":
            lines = ({"type": "order", **{k: v for k, v in row.items() if v is not None}} for row in ROWS)
            path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        case "parquet":
            pq.write_table(pa.Table.from_pylist(ROWS), path)
    return path


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_files_have_a_column_of_versions(form: str, tmp_path: Path) -> None:
    source = augury.read(written(tmp_path, form), type=None if form == "jsonl" else "order")
    for engine in ("embedded", "reference"):
        assert [e.args for e in augury.run(PROGRAM, source, engine=engine)] == ANSWER


def test_tables_and_objects_have_versions() -> None:
    objects = [{"type": "order", **{k: v for k, v in row.items() if v is not None}} for row in ROWS]
    events = [
        Event("order", (1, 10), 1, id="e"),
        Event("order", (1, 30), 3, id="e", version=2),
        Event("order", (1, 20), 2, id="e", version=1),
        Event("order", (2, 5), 4, id="f", version=1),
        Revocation("f", version=1),
        Event("order", (3, 7), 5),
    ]
    frame = pd.DataFrame(ROWS, dtype="object")
    forms: list[Any] = [{"order": frame}, {"order": pa.Table.from_pylist(ROWS)}, objects, events]
    for inputs in forms:
        assert [e.args for e in augury.run(PROGRAM, inputs)] == ANSWER


def test_an_attribute_of_that_name_stays_one_and_another_column_may_have_the_version() -> None:
    rows = [{"version": 7, "time": 1, "id": "a", "v": 1}, {"version": 9, "time": 1, "id": "a", "v": 2}]
    program = "event app(version: int). seen(V) <- app(V)."
    result = augury.run(program, {"app": pa.Table.from_pylist(rows)})
    assert [e.args for e in result] == [(7,)]
    assert [e.args for e, _ in result.rejected] == [(9,)]


def test_another_column_may_have_the_version(tmp_path: Path) -> None:
    path = tmp_path / "app.csv"
    path.write_text("name,time,id,v\nx,1,a,1\ny,1,a,2\n")
    source = augury.read(path, type="app", columns={"app.version": "v"})
    assert [e.args for e in augury.run("event app(name: string). seen(N) <- app(N).", source)] == [("y",)]


@pytest.mark.parametrize(
    ("item", "message"),
    [
        ({"op": "replace", "id": "e"}, "a replacement names its version"),
        ({"version": 3}, "a version belongs to an id"),
        ({"id": "e", "version": "new"}, "a version is a whole number, not 'new'"),
        ({"id": "e", "version": 1.5}, "a version is a whole number, not 1.5"),
        ({"op": "update", "id": "e"}, "it must be insert, replace or revoke"),
    ],
)
def test_wrong_versions_are_refused(item: dict[str, object], message: str) -> None:
    event = {"type": "order", "args": [1, 2], "time": 1, **item}
    for inputs in ([event], [event, {**event, "time": 2}]):
        with pytest.raises(DataError) as error:
            augury.run(PROGRAM, inputs)
        assert message in str(error.value)


def test_the_side_output_has_another_content_of_a_version() -> None:
    session = augury.compile(PROGRAM).session()
    session.push([Event("order", (1, 10), 1, id="e"), Event("order", (1, 20), 1, id="e", version=1)])
    session.push(Event("order", (1, 21), 1, id="e", version=1))
    session.push(Event("order", (1, 10), 1, id="e"))
    assert [why for _, why in session.rejected] == ["the id e names another event already in version 1"]
    assert session.stats()["repeated"] == 1


def test_a_snapshot_has_the_versions() -> None:
    program = augury.compile(PROGRAM)
    session = program.session(clock="logical")
    session.push([Event("order", (1, 10), 1, id="e"), Event("order", (1, 20), 1, id="e", version=3)])
    session = program.restore(session.snapshot())
    assert not len(session.push(Event("order", (1, 15), 1, id="e", version=2)))
    changes = session.push(Event("order", (1, 40), 1, id="e", version=4))
    assert sorted((c.op, c.event.args) for c in changes) == [("insert", (1, 40)), ("retract", (1, 20))]


def test_versions_are_remembered_until_the_frontier_has_passed_the_greatest_end() -> None:
    session = augury.compile(PROGRAM).session(clock="logical", lateness="2s")
    session.push([Event("order", (1, 10), 1, id="e"), Event("order", (1, 20), 9, id="e", version=3)])
    session.prune()
    session.push([Event("order", (1, 15), 9, id="e", version=1)])
    assert [e.args for e in session.events()] == [(1, 20)]
    session.push(Event("order", (2, 1), 20, id="f", version=1))
    session.prune()
    assert [id for id, _ in session.input_ids.versions.items()] == ["f"]
    session.push(Event("order", (1, 16), 19, id="e", version=1))  # new: what had this id is forgotten
    assert (1, 16) in [e.args for e in session.events()]


def test_a_step_that_fails_leaves_the_versions_as_they_were() -> None:
    program = augury.compile("event order(n: int, amount: int). double(N, N) <- order(N, A) SEQ order(N, B).")
    session = program.session(clock="logical", limits={"pairs": 50})
    session.push([Event("order", (1, 0), 0, id="e")])
    many = [Event("order", (1, n), n, id=f"m{n}") for n in range(1, 200)]
    with pytest.raises(augury.AuguryError):
        session.push([Event("order", (1, 7), 0, id="e", version=1), *many])
    assert not session.input_ids.versions
    session.push([Event("order", (1, 8), 0, id="e", version=1)])
    assert session.stats()["accepted"] == 2


@pytest.mark.parametrize("seed", range(3))
def test_many_at_once_are_what_they_are_one_by_one(seed: int) -> None:
    """Versions, repeats, conflicts and revocations of few ids, in steps of any size, before and after a snapshot."""
    chance = random.Random(seed)
    items: list[HistoryItem] = []
    for number in range(300):
        id, args = f"i{chance.randrange(120)}", (chance.randrange(3), chance.randrange(3))
        type, time = chance.choice("ab"), number // 4
        match chance.randrange(12):
            case 0:
                items.append(Revocation(id, None, chance.choice([None, 1, 2])))
            case 1 | 2 | 3 | 4:
                items.append(Event(type, args, time, id=chance.choice([id, id, ""])))
            case _:
                items.append(Event(type, args, time, id=id, version=chance.randrange(4)))
    rules = "e(X, N) <- a(X, N). c(X, count()) <- o: b(X, N), w: extend_backward(o, 5s), while w: collect a(X, M)."
    program, size = augury.compile(rules), chance.choice([300, 150, 90])
    session = program.session(clock="logical")
    for first in range(0, len(items), size):
        session.push(items[first : first + size])
    nothing: list[HistoryItem] = []
    later: list[HistoryItem] = [Event("a", (1, 1), 90, id="i3", version=9), Revocation("i5")]
    for part in (nothing, later):
        items += part
        session = program.restore(session.snapshot())
        session.push(part)
        assert {e.content for e in session.events()} == {
            e.content for e in evaluate(program.plan, items, Clock()).events
        }


@pytest.mark.parametrize("together", [True, False])
def test_a_version_that_takes_the_place_of_one_that_is_fixed_is_late_in_a_push_as_one_by_one(together: bool) -> None:
    items = [
        Event("order", (1, 10), 1, id="e"),
        Event("order", (2, 5), 9, id="f"),
        Event("order", (1, 20), 9, id="e", version=1),
    ]
    session = augury.compile(PROGRAM).session(clock="logical", revisable="3s")
    for some in [items] if together else [[item] for item in items]:
        session.push(some)
    assert sorted(event.args for event in session.events()) == [(1, 10), (2, 5)]
    assert session.late_count == 1


@pytest.mark.parametrize("together", [True, False])
def test_a_version_and_its_revocation_are_taken_in_their_order(together: bool) -> None:
    session = augury.compile(PROGRAM).session(clock="logical")
    session.push([Event("order", (1, 10), 5, id="e", version=2), Revocation("e", None, 2)])
    session.advance(9)
    items = [Event("order", (1, 20), 14, id="e", version=3), Revocation("e", None, 3)]
    for some in [items] if together else [[item] for item in items]:
        session.push(some)
    assert not session.events()
    assert session.late_count == 0


def random_push(chance: random.Random, clock: int) -> list[HistoryItem]:
    """Events and revocations under few ids, some of them versions and some late."""
    items: list[HistoryItem] = []
    for _ in range(chance.choice([1, 2, 4, 6])):
        id, version = chance.choice(["i", "j", "k", ""]), chance.choice([0, 0, 0, 1, 2, 3, -1])
        if id and chance.random() < 0.2:
            items.append(Revocation(id, None, chance.choice([None, None, 1, 2])))
        else:
            end = clock - chance.choice([0, 0, 1, 2, 6])
            args, start = (chance.choice([1, 2]), chance.choice([1, 2])), end - chance.choice([0, 0, 1, 2])
            items.append(Event("order", args, start, end, id, version=version if id else 0))
    return items


@pytest.mark.parametrize("few", [None, 0])
def test_what_is_admitted_does_not_depend_on_how_inputs_are_grouped(
    few: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One push, also by columns, is as good as one for each input: answers, what is late, and the counters."""
    program = augury.compile(PROGRAM)
    if few is not None:
        for module in (input_ids, intake, named_columns):
            monkeypatch.setattr(module, "_FEW" if module is intake else "FEW", few)
    for seed in range(1000 if os.environ.get("AUGURY_FUZZ") else 16):
        chance = random.Random(seed)
        lengths: dict[str, list[Any]] = {
            "lateness": [None, None, "0s", "3s"],
            "revisable": [True, True, "0s", "3s"],
            "longest": [None, "1s"],
        }
        settings: dict[str, Any] = {name: chance.choice(values) for name, values in lengths.items()}
        whole, single = (program.session(clock="logical", **settings) for _ in range(2))
        clock = 0
        for _ in range(chance.choice([2, 4, 8])):
            clock += chance.choice([0, 1, 2, 5])
            if chance.random() < 0.15:
                whole.advance(clock - 2)
                single.advance(clock - 2)
                continue
            push = random_push(chance, clock)
            whole.push(push)
            for item in push:
                single.push([item])
            assert sorted(map(str, whole.events())) == sorted(map(str, single.events())), (seed, push)
            stats, others = whole.stats(), single.stats()
            names = ("received", "accepted", "repeated", "late", "rejected")
            assert [stats[name] for name in names] == [others[name] for name in names], (seed, push)
            assert stats["received"] == sum(stats[name] for name in names[1:])
            if chance.random() < 0.3:
                whole = program.restore(whole.snapshot())
