"""Counters add up: received = accepted + repeated + late + rejected + malformed, in every executor, for bad histories."""

from __future__ import annotations

import json
import os
import random
import re
from dataclasses import astuple
from pathlib import Path
from typing import Any

import pytest

import augury
from augury.core.clock import SECOND
from augury.core.model import Event, Revocation
from augury.core.standing import InputCounts
from augury.job import Job
from augury.settings import Settings, Task
from augury.sources import SourceFile
from tests.support.commands import run

PROGRAM = augury.compile("event a(x: int).\nevent b(x: int).\nr(X) <- (a(X) SEQ b(X)).5s.\n")
SEEDS = range(400 if os.environ.get("AUGURY_FUZZ") else 25)
NAMES = ("accepted", "repeated", "late", "rejected", "malformed")
BAD = [
    '{"type": "a", "x": "text", "time": 3}', '{"type": "a", "x": 1}', "{", "[1, 2]", "null", '{"type": "a", "x": 1, "time": 1e30}',
    '{"op": "revoke"}', '{"op": "remove", "id": "i1"}', f'{{"type": "b", "x": 1, "time": {2**60}}}', '{"type": "a", "y": 1, "time": 2}',
    '{"type": "a", "x": 1, "start": 5, "end": 4}', '{"type": 5, "x": 1, "time": 2}', '\ud800', '{"type": "a", "x": 1, "time": 2, "id": {}}',
]  # fmt: skip


def history(rng: random.Random) -> list[str]:
    """Lines: events with and without ids, ids that come again with the same and with other contents, revocations, rubbish."""
    lines: list[str] = []
    named: list[str] = []
    time = 0
    for _ in range(rng.randint(0, 60)):
        time += rng.randint(0, 3)
        event: dict[str, Any] = {
            "type": rng.choice("ab"),
            "x": rng.randint(0, 2),
            "time": max(0, time - rng.choice([0, 0, 1, 5, 20])),
        }
        match rng.randrange(10):
            case 0 | 1 | 2:
                lines.append(json.dumps(event))
            case 3 | 4 | 5:
                lines.append(json.dumps({**event, "id": f"i{rng.randint(0, 12)}"}))
                named.append(lines[-1])
            case 6 if named:
                lines.append(rng.choice(named))
            case 7:
                lines.append(json.dumps({"op": "revoke", "id": f"i{rng.randint(0, 15)}"}))
            case 8:
                lines.append(rng.choice(BAD))
            case _:
                lines.append(json.dumps({"type": "unknown_to_it", "args": [1, 2], "time": event["time"]}))
    return lines


def job(folder: Path, lines: list[str], lateness: int | None, in_order: bool) -> Job:
    path = folder / "e.jsonl"
    path.write_bytes(b"".join(line.encode("utf-8", "surrogatepass") + b"\n" for line in lines))
    settings = Settings(on_error="skip", lateness=None if lateness is None else lateness * SECOND, clock="logical")
    return Job(Task(PROGRAM, (SourceFile(str(path)),), settings=settings), in_order)


def adds_up(counts: InputCounts, received: int) -> None:
    total, *parts = astuple(counts)
    assert total == sum(parts) == received, counts
    assert min(parts) >= 0


def of_stats(stats: dict[str, Any]) -> InputCounts:
    return InputCounts(stats["received"], *(stats[name] for name in NAMES))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("lateness", [None, 0, 4])
def test_counts_of_a_run_are_those_of_the_reference(seed: int, lateness: int | None, tmp_path: Path) -> None:
    lines = history(random.Random(seed))
    found = []
    for engine in ("embedded", "reference"):
        one = job(tmp_path, lines, lateness, lateness is not None)
        found.append(one.counts(one.evaluate(engine=engine)))
        adds_up(found[-1], len(lines))
        again = job(tmp_path, lines, lateness, True)
        found.append(again.counts(again.replay(None, engine).model))
        adds_up(found[-1], len(lines))
    assert found[0] == found[2], "both engines count alike"
    assert found[1] == found[3], "also while a history is told"
    assert found[0] == found[1]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("lateness", [None, "0s", "4s"])
def test_counts_of_a_session_do_not_depend_on_how_items_are_pushed(
    seed: int, lateness: str | None, tmp_path: Path
) -> None:
    """However the items are pushed: one by one, in portions, as columns; with a snapshot, and with pushes that fail."""
    rng = random.Random(seed)
    items = job(tmp_path, history(rng), None, True).history.items()
    for size in (1, 7, 100):
        session = PROGRAM.session(lateness=lateness, clock="logical")
        before = 0
        for first in range(0, len(items), size):
            some = items[first : first + size]
            session.push(augury_history(some) if rng.random() < 0.5 else some)
            before += len(some)
            adds_up(of_stats(session.stats()), before)
            if rng.random() < 0.2:
                with pytest.raises(augury.AuguryError):
                    session.push([*some, {"type": "a", "x": "text", "time": 3}])
                adds_up(of_stats(session.stats()), before)
            if rng.random() < 0.1:
                session = PROGRAM.restore(session.snapshot())
        if lateness is not None:
            session.advance(10_000)
            session.push([Event("a", (1,), 3), Revocation("i1")])
            adds_up(of_stats(session.stats()), before + 2)


def augury_history(items: list[Any]) -> Any:
    from augury.sources import History

    return History.of(items)


def test_facts_are_counted_too() -> None:
    program = augury.compile("static k(x: int).\nr(X) <- a(X) WHERE k(X).")
    session = program.session(lateness="0s", clock="logical", changing="k")
    session.push(Event("a", (1,), 10))
    session.learn(
        {"k": [{"op": "assert", "args": [1], "valid_from": 11}, {"op": "assert", "args": [2], "valid_from": 1}]}
    )
    stats = session.stats()
    assert (stats["received"], stats["accepted"], stats["late"]) == (3, 2, 1)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_command_line_says_it(seed: int, tmp_path: Path) -> None:
    lines = [line for line in history(random.Random(seed)) if line != "\ud800"] + ["{"]
    (tmp_path / "p.aug").write_text("event a(x: int).\nevent b(x: int).\nr(X) <- (a(X) SEQ b(X)).5s.\n")
    text = "\n".join(lines) + "\n"
    (tmp_path / "e.jsonl").write_text(text)
    options = ["--on-error", "skip", "--clock", "logical", "--lateness", "2s"]
    told = []
    for more, stdin in ((["--events", "e.jsonl"], ""), (["--events", "-", "--changes"], text)):
        done = run(["run", "p.aug", "--format", "jsonl", *more, *options, "--engine", "embedded"], tmp_path, stdin)
        assert done.code == 0, done.err
        said = re.search(
            r"^(\d+) received: (\d+) accepted, (\d+) repeated, (\d+) late, (\d+) rejected, (\d+) malformed$",
            done.err,
            re.M,
        )
        assert said is not None, done.err
        numbers = [int(n) for n in said.groups()]
        assert numbers[0] == sum(numbers[1:]) == len(lines)
        told.append(numbers)
    assert told[0] == told[1]
