"""Attributes whose column, or path into a nested one, the program names: `event pay(card: string from "card.id")`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import augury

PROGRAM = 'event pay(card: string from "card.id", amount: float from "amt").\nlarge(C, A) <- pay(C, A) WHERE A > 5.'
ROWS: list[dict[str, Any]] = [
    {"type": "pay", "card": {"id": "c1", "n": 3}, "amt": 7, "time": 1},
    {"type": "pay", "card": {"id": "c2"}, "amt": 1, "time": 2},
    {"type": "pay", "card": None, "amt": 9, "time": 3},
    {"type": "pay", "card": {}, "amt": 8, "time": 4},
]
LARGE = [("c1", 7.0), (None, 9.0), (None, 8.0)]


def args(events: Any) -> list[tuple[Any, ...]]:
    return [event.args for event in events]


def test_objects_and_files_are_read_by_path(tmp_path: Path) -> None:
    program = augury.compile(PROGRAM)
    assert args(augury.run(program, ROWS)) == LARGE
    session = program.session(clock="logical")
    pushed = [change.event for row in ROWS for change in session.push([row])]
    assert args(pushed) == LARGE
    (tmp_path / "pay.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    assert args(augury.run(program, augury.read(tmp_path / "pay.jsonl"))) == LARGE
    (tmp_path / "pay.csv").write_text("card.id,amt,time\nc1,7,1\n,9,3\n")
    assert args(augury.run(program, augury.read(tmp_path / "pay.csv", type="pay"))) == [("c1", 7.0), (None, 9.0)]


def test_the_run_may_name_another_column(tmp_path: Path) -> None:
    (tmp_path / "e.jsonl").write_text(json.dumps({"type": "pay", "card": {"id": "c1"}, "eur": 7, "time": 1}))
    events = augury.read(tmp_path / "e.jsonl", columns={"pay.amount": "eur"})
    assert args(augury.run(augury.compile(PROGRAM), events)) == [("c1", 7.0)]


def test_a_column_that_is_missing_is_named() -> None:
    with pytest.raises(augury.DataError, match=r"`pay` has no `card\.id`"):
        augury.run(augury.compile(PROGRAM), [{"type": "pay", "amt": 7, "time": 1}])


def test_it_is_written_as_it_is_read() -> None:
    (source,) = augury.compile(PROGRAM).written
    assert 'card: string from "card.id", amount: float from "amt"' in source.text
    (printed,) = augury.compile(source.text).written
    assert printed.text == source.text


def test_only_events_have_columns() -> None:
    with pytest.raises(augury.ProgramError, match="`from` is not a word"):
        augury.compile('static near(a: string from "x", b: string).\np(X) <- q(X), near(X, _).')
