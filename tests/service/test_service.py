"""`augury live`: files in and out, kills, late and malformed events, programs that change, and what operators see."""

from __future__ import annotations

import asyncio
import json
import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

import augury
from augury.connectors import AnswerSink, Delivery, EventSource, Position, RenderedChanges, UnavailableError
from augury.core.errors import ProgramError, RunError
from augury.service import LiveService
from augury.service.operations import operations
from augury.service.watermarks import Watermarks
from tests.support.service_kills import PATIENCE, expected, kill_runs, run_until, standing, wait_for

PROGRAM = """
event order(number: int, item: string).
event shipped(number: int).
output overdue, both.
overdue(N) <- o: order(N, _), w: extend(o, 30s), while w: not shipped(N).
both(N, M) <- (order(N, I) SEQ order(M, I)).20s.
"""
LONG = bool(os.environ.get("AUGURY_LONG"))
START = 1_760_000_000


def events(first: int, number: int) -> list[dict[str, Any]]:
    result: list[dict[str, Any]] = []
    for n in range(first, first + number):
        result.append({"type": "order", "number": n, "item": f"i{n % 9}", "time": START + 2 * n, "id": f"o{n}"})
        if n % 3:
            result.append({"type": "shipped", "number": n - 5, "time": START + 2 * n + 1, "id": f"s{n}"})
    return result


def appended(path: Path, items: Sequence[dict[str, Any]]) -> None:
    with path.open("a") as file:
        file.write("".join(json.dumps(item) + "\n" for item in items))


def service(folder: Path, *, program: str | Path = PROGRAM, **options: Any) -> LiveService:
    sources, sinks = options.pop("sources", None), options.pop("sinks", None)
    chosen: dict[str, Any] = {"state": folder / "state", "time_unit": "s", "idle": "1h"} | options
    return augury.live(program, sources or str(folder / "in.jsonl"), sinks or str(folder / "out.jsonl"), **chosen)


def taken(running: LiveService) -> int:
    """How many events a service has taken in."""
    return running.stepper.counts.events if running.stepper is not None else 0


def lines(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines() if path.exists() else []


@pytest.mark.parametrize("emit", ["final", "early"])
def test_a_finished_file_gives_the_answers_of_a_run(tmp_path: Path, emit: str) -> None:
    appended(tmp_path / "in.jsonl", events(0, 100))
    service(tmp_path, sources=f"{tmp_path}/in.jsonl?follow=false", emit=emit).run()
    assert standing(lines(tmp_path / "out.jsonl")) == expected(PROGRAM, events(0, 100), time_unit="s")


def test_kills_lose_and_repeat_nothing(tmp_path: Path) -> None:
    """Whenever a service is killed, the next one goes on: each answer is written once, in the order of the steps."""
    source, sink = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    kills, size = (60, 200) if LONG else (3, 60)

    def make() -> LiveService:
        return service(tmp_path, emit="early", lateness="5s", snapshot_every="150ms")

    kill_runs(make, kills, lambda number: appended(source, events(number * size, size)), most=0.4)
    wanted = expected(PROGRAM, events(0, kills * size), time_unit="s")
    run_until(make, lambda: len(lines(sink)) >= len(wanted) and standing(lines(sink)) == wanted)
    assert service(tmp_path, emit="early", lateness="5s").state.load().counts["events"] == len(events(0, kills * size))


def test_what_cannot_be_read_and_what_is_late_goes_to_the_dead_letters(tmp_path: Path) -> None:
    appended(tmp_path / "in.jsonl", events(0, 20))
    with (tmp_path / "in.jsonl").open("a") as file:
        file.write('{"no json\n{"type": "order", "number": "x", "item": 1, "time": 5}\n')
    appended(tmp_path / "in.jsonl", [{"type": "order", "number": 0, "item": "other", "time": START + 40, "id": "o0"}])
    running = service(tmp_path, dead=str(tmp_path / "dead.jsonl"))
    with running.running():
        wait_for(lambda: running.stepper is not None and running.stepper.counts.rejected == 1)
        appended(tmp_path / "in.jsonl", [{"type": "shipped", "number": 1, "time": START, "id": "late"}])
        wait_for(lambda: running.stepper is not None and running.stepper.counts.late == 1)
    letters = [json.loads(line) for line in lines(tmp_path / "dead.jsonl")]
    reasons = [letter["reason"].removeprefix(f"{tmp_path}/") for letter in letters]
    assert reasons[0].startswith("in.jsonl:34: malformed JSON: ") and letters[0]["payload"] == '{"no json'
    assert reasons[1].startswith("in.jsonl:35: ") and "declared as int" in reasons[1]
    assert reasons[2:] == ["the id o0 names another event already", "late"]
    counts = running.stepper.counts if running.stepper else None
    assert counts is not None and (counts.late, counts.rejected, counts.malformed.total()) == (1, 1, 2)


class SlowSink(AnswerSink):
    def __init__(self) -> None:
        self.open_now = threading.Event()
        self.rows = 0

    def write(self, steps: Sequence[RenderedChanges]) -> list[tuple[str, bytes]]:
        if not self.open_now.is_set():
            raise UnavailableError("not now")
        self.rows += sum(map(len, steps))
        return []


def test_a_sink_that_cannot_be_reached_stops_the_sources_and_loses_nothing(tmp_path: Path) -> None:
    sink = SlowSink()
    total = 52_000
    items = ({"type": "a", "args": [n], "time": n} for n in range(total))
    running = augury.live("b(X) <- a(X).", iter(items), sink, state=tmp_path, clock="logical", emit="early")
    with running.running():
        wait_for(lambda: running.writers[0].waiting >= 50_000)
        assert running.writers[0].problem == "not now"
        sink.open_now.set()
        wait_for(lambda: sink.rows == total)


def test_a_changed_program_is_taken_over_and_a_broken_one_refused(tmp_path: Path) -> None:
    path, said = tmp_path / "p.aug", list[str]()
    path.write_text(PROGRAM)
    appended(tmp_path / "in.jsonl", events(0, 30))

    def make() -> LiveService:
        return service(tmp_path, program=path, emit="early", log=lambda level, message: said.append(message))

    changed = PROGRAM.replace(").20s", ").60s").replace("both.", "both, again.") + "again(N) <- both(_, N).\n"
    with make().running() as running:
        wait_for(lambda: taken(running) == len(events(0, 30)))
        path.write_text("nonsense")
        wait_for(lambda: running.metrics.reloads_refused >= 1)
        path.write_text(changed)
        running.reload()
        wait_for(lambda: running.metrics.reloads >= 1)
        appended(tmp_path / "in.jsonl", events(30, 30))
        wanted = expected(changed, events(0, 60), time_unit="s")
        wait_for(lambda: standing(lines(tmp_path / "out.jsonl")) == wanted)
    assert any("is refused, and the old one keeps running" in message for message in said)
    path.write_text(PROGRAM)  # while it is stopped
    run_until(make, lambda: standing(lines(tmp_path / "out.jsonl")) == expected(PROGRAM, events(0, 60), time_unit="s"))


def test_other_declarations_need_another_state(tmp_path: Path) -> None:
    path = tmp_path / "p.aug"
    path.write_text(PROGRAM)
    appended(tmp_path / "in.jsonl", events(0, 3))
    service(tmp_path, program=path, sources=f"{tmp_path}/in.jsonl?follow=false").run()
    path.write_text(PROGRAM.replace("item: string", "item: any"))
    with pytest.raises(RunError, match="the declaration of `order` has changed"):
        service(tmp_path, program=path).run()
    with pytest.raises(RunError, match="begun with another --emit"):
        service(tmp_path, emit="early").run()


def test_two_services_do_not_share_a_state(tmp_path: Path) -> None:
    appended(tmp_path / "in.jsonl", events(0, 3))
    with service(tmp_path).running(), pytest.raises(RunError, match="another service uses the state directory"):
        service(tmp_path).run()


def test_the_least_source_holds_back_answers_until_it_is_idle(tmp_path: Path) -> None:
    sources = [str(tmp_path / "a.jsonl"), str(tmp_path / "b.jsonl")]
    appended(tmp_path / "b.jsonl", events(0, 1))
    running = service(tmp_path, sources=sources, idle="1h")
    with running.running():
        wait_for(lambda: taken(running) == 1)
        appended(tmp_path / "a.jsonl", events(50, 1))
        wait_for(lambda: taken(running) == 3)
    assert lines(tmp_path / "out.jsonl") == []  # all answers were written when it ended
    with service(tmp_path, sources=sources, idle="0s").running():  # b has been silent for long enough
        wait_for(lambda: len(lines(tmp_path / "out.jsonl")) == 1)


class GatedSource(EventSource):
    """Some events, one in a delivery, once it can be reached."""

    def __init__(self, items: Sequence[dict[str, Any]], facts: str = "") -> None:
        self.items, self.facts = items, facts
        self.reachable = threading.Event()
        self.next = 0

    def open(self, position: Position | None) -> None:
        if not self.reachable.is_set():
            raise UnavailableError("not now")
        self.next = (position or {}).get("next", 0)

    def fetch(self, most: int, seconds: float) -> list[Delivery]:
        first, self.next = self.next, min(self.next + 5, len(self.items))
        chosen = enumerate(self.items[first : self.next], first + 1)
        return [Delivery(json.dumps(item).encode() + b"\n", {"next": number}) for number, item in chosen]

    @property
    def finished(self) -> bool:
        return self.next == len(self.items)


def test_a_source_that_cannot_be_reached_is_awaited(tmp_path: Path) -> None:
    """However long it takes, its events are not late; nor are those that wait for the session while the source is over."""
    items = events(0, 200)
    orders, shipped = ([item for item in items if item["type"] == name] for name in ("order", "shipped"))
    gated = GatedSource(shipped)
    running = service(tmp_path, sources=[iter(orders), gated], idle="0s")
    with running.running():
        wait_for(lambda: taken(running) == len(orders))
        wait_for(lambda: running.feeds[1].problem == "not now" and running.feeds[0].ended)
        wait_for(lambda: "IterableSource" in running.stepper.watermarks.idle)  # type: ignore[union-attr]
        assert lines(tmp_path / "out.jsonl") == []
        gated.reachable.set()
        wait_for(lambda: running.feeds[1].ended and not running.ready)
    assert standing(lines(tmp_path / "out.jsonl")) == expected(PROGRAM, items, time_unit="s")
    assert running.stepper is not None and running.stepper.counts.late == 0


def test_sources_that_end_at_different_times_are_one_history(tmp_path: Path) -> None:
    items = events(0, 1500)
    orders, shipped = ([item for item in items if item["type"] == name] for name in ("order", "shipped"))
    service(tmp_path, sources=[iter(orders), iter(shipped)]).run()
    assert standing(lines(tmp_path / "out.jsonl")) == expected(PROGRAM, items, time_unit="s")


def test_sources_that_are_all_idle_hold_back_nothing() -> None:
    """As where they have become idle one after the other, the one that is furthest ahead last."""
    watermarks = Watermarks(lateness=5)
    watermarks.expect(["a", "b", "c"])
    watermarks.observe("a", 100)
    watermarks.observe("b", 10)
    assert watermarks.frontier is None
    for idle, frontier in (("c", 4), ("ac", 4), ("bc", 94), ("abc", 94)):
        watermarks.idle = frozenset(idle)
        assert watermarks.frontier == frontier
    watermarks.ends.clear()
    assert watermarks.frontier is None


def test_asyncio_runs_a_service_and_cancels_it(tmp_path: Path) -> None:
    changes: list[dict[str, Any]] = []

    async def main() -> None:
        task = asyncio.create_task(service(tmp_path, sinks=changes.append, emit="early").serve())
        appended(tmp_path / "in.jsonl", events(0, 10))
        while not changes:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(asyncio.wait_for(main(), PATIENCE))
    assert changes[0]["op"] == "insert" and changes[0]["type"] == "both"


def test_operators_see_health_metrics_and_state(tmp_path: Path) -> None:
    appended(tmp_path / "in.jsonl", events(0, 30))
    sink = SlowSink()
    running = service(tmp_path, sinks=sink, emit="early")
    with operations(running, "127.0.0.1", 0) as port:

        def get(path: str) -> tuple[int, str]:
            try:
                with urlopen(f"http://127.0.0.1:{port}{path}", timeout=PATIENCE) as answer:
                    return answer.status, answer.read().decode()
            except HTTPError as error:
                return error.code, error.read().decode()

        assert get("/readyz") == (503, "starting\n")
        with running.running():
            wait_for(lambda: get("/readyz") == (503, "SlowSink: not now\n"))
            sink.open_now.set()
            wait_for(lambda: get("/readyz") == (200, "ready\n"))
            assert get("/healthz") == (200, "ok\n")
            wait_for(lambda: running.writers[0].written > 0)
            metrics = get("/metrics")[1]
            assert f"augury_events_total {len(events(0, 30))}" in metrics.splitlines()
            assert 'augury_rule_rows{rule="both"}' in metrics and 'augury_latency_seconds_bucket{le="+Inf"}' in metrics
            state = json.loads(get("/state")[1])
            assert state["sources"][0]["problem"] == "" and state["session"]["events"] == len(events(0, 30))
            assert get("/other")[0] == 404


def test_a_program_that_is_wrong_at_the_start_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ProgramError):
        service(tmp_path, program="a <- b(.")
