"""Streams whose state is computed anew, and those that begin with a history: nothing is lost, and nothing comes twice."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.spark.test_cli_spark import END, RULES, Augury, expected, failed, spread, story, written
from tests.spark.test_cli_spark import augury as augury
from tests.spark.test_cli_spark import pytestmark as pytestmark
from tests.spark.test_cli_spark import spark as spark

RUN = ("stream", "rules.aug", "--checkpoint", "cp", "--lateness", "5s", "--trigger", "once", "--output", "out")
LIVE = (*RUN, "--events", "in")


def done(augury: Augury, *args: str) -> str:
    result = augury(*args)
    assert result.code == 0, result.err
    return result.err


def standing(folder: Path) -> list[tuple[Any, ...]]:
    """What was inserted once more than it was retracted."""
    times: Counter[str] = Counter()
    items = {}
    for path in sorted(folder.rglob("part-*.json")):
        for item in map(json.loads, path.read_text().splitlines()):
            times[item["id"]] += 1 if item["op"] == "insert" else -1
            items[item["id"]] = item["type"], tuple(item["args"]), item["start"], item["end"]
    assert set(times.values()) <= {0, 1}
    return sorted(items[id] for id, count in times.items() if count)


@pytest.mark.parametrize("killed", ["never", "before it is taken over", "before it is written", "once it is written"])
def test_state_is_computed_anew_for_other_buckets(augury: Augury, monkeypatch: pytest.MonkeyPatch, killed: str) -> None:
    """A run that dies leaves the old state or the new one, and what is written is written once."""
    from augury.spark.outbox import Outbox
    from augury.spark.stream_job import StreamJob

    lines = story(60)
    answer = expected(augury, [*lines, END])
    spread(lines[:30], 10, Path("in"))
    done(augury, *LIVE, "--buckets", "2")
    assert written(Path("out"))
    spread(lines[30:], 31, Path("in"), 100)
    failed(augury(*LIVE, "--buckets", "3"), "buckets was 2, is 3")
    assert "from 3 files; what is written is not written again" in done(augury, *LIVE, "--buckets", "3", "--rebuild", "--dry-run")  # fmt: skip

    def die(*args: Any) -> None:
        raise RuntimeError("killed")

    def deliver_and_die(box: Outbox, batch: int, parts: Any, deliver: Any = Outbox.deliver) -> None:
        deliver(box, batch, parts)
        die()

    where: dict[str, tuple[Any, str, Any]] = {
        "before it is taken over": (StreamJob, "_describe", die),
        "before it is written": (Outbox, "deliver", die),
        "once it is written": (Outbox, "deliver", deliver_and_die),
    }
    if killed in where:
        with monkeypatch.context() as patch:
            patch.setattr(*where[killed])
            failed(augury(*LIVE, "--buckets", "3", "--rebuild"), "error: RuntimeError: killed")
    again = ("--rebuild",) if killed in ("never", "before it is taken over") else ()
    done(augury, *LIVE, "--buckets", "3", *again)
    assert [path.name for path in Path("cp").glob("spark*") if path.is_dir()] == ["spark-2"]
    spread([END], 1, Path("in"), 200)
    done(augury, *LIVE)
    assert written(Path("out")) == answer
    done(augury, "checkpoint", "verify", "cp")
    assert "buckets: 3" in augury("checkpoint", "show", "cp").out
    Path("in/00000.jsonl").unlink()
    failed(augury(*LIVE, "--rebuild"), "error: 1 file that the stream has read are gone")


def test_early_answers_of_rules_that_change_fall(augury: Augury) -> None:
    """With other rules, facts and stages: what stands in the end is what the new program says of all events."""
    lines, early = story(60), ("--emit", "early")
    changed = (
        RULES.replace("W1 + 3", "W1 + 4").replace("calm(P) <-", "calm(P, P) <-")
        + "both(P) <- rise(P, D), big(D).\nbig(9).\n"
    )
    changed = changed.replace("output alarm", "output both, alarm")
    spread(lines[:40], 20, Path("in"))
    Path("rules.aug").write_text(RULES)
    done(augury, *LIVE, *early, "--buckets", "2")
    Path("rules.aug").write_text(changed)
    spread([*lines[40:], END], 50, Path("in"), 100)
    done(augury, *LIVE, *early, "--rebuild", "--buckets", "1")
    Path("all.jsonl").write_text("\n".join([*lines, END]))
    result = augury("run", "rules.aug", "--events", "all.jsonl", "--engine", "embedded", "--format", "jsonl")
    answer = [json.loads(line) for line in result.out.splitlines()]
    assert standing(Path("out")) == sorted((a["type"], tuple(a["args"]), a["start"], a["end"]) for a in answer)


def test_a_stream_begins_with_a_history(augury: Augury) -> None:
    """History, then live: no gap between them, and what is said again is read once."""
    lines = story(60)
    answer = expected(augury, [*lines, END])
    spread(lines[:35], 20, Path("history"))
    spread(lines[35:50], 50, Path("in"))
    begin = (*LIVE, "--backfill", "history", "--buckets", "2")
    done(augury, *begin)
    spread([*lines[50:], END], 50, Path("in"), 100)
    done(augury, *begin)
    assert written(Path("out")) == answer
    assert "as often as --events" in augury(*begin, "--backfill", "history").err
