"""Sessions that follow live sources, and the command."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from augury.cli import cli
from augury.console.live_feed import LiveFeed, is_live
from augury.console.program_text import ProgramText
from augury.console.recording import Recording
from augury.console.views import TimelineRequest, Views
from augury.core.model import Event
from augury.program import compile
from augury.settings import Settings, Task
from augury.sources import ColumnNames
from tests.support.consoles import served, watched

ALARM = "event smoke(place: string). output alarm. alarm(L) <- smoke(L)."


def wait(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def line(place: str, second: int) -> str:
    return json.dumps({"type": "smoke", "args": [place], "time": f"2026-07-01 12:00:{second:02}"}) + "\n"


def test_a_growing_file_is_followed(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text(line("l1", 1), encoding="utf-8")
    program = compile(ALARM)
    task = Task(program, settings=Settings.of(program, lateness="2s"))
    feed = LiveFeed(task, ProgramText.of(program), [str(path)], ColumnNames())
    feed.start()
    session = feed.watched
    try:
        wait(lambda: session.detections == 1)
        assert session.setup.clock.kind == "timestamp" and session.live
        with path.open("a", encoding="utf-8") as file:
            file.write(line("l2", 9) + "not an event\n" + line("late", 3))
        wait(lambda: session.session.late_count == 1)
        wait(lambda: "1 line could not be read" in session.problem)
    finally:
        feed.stop()
    low, high = Views(session)._range()
    shown = {lane["name"]: lane for lane in Views(session).timeline(TimelineRequest((low, high)))["lanes"]}
    assert shown["alarm"]["count"] == 2 and sorted(shown["smoke"]["marks"]["state"]) == [0, 0, 2]
    again = Recording.of_bytes(session.recording().to_bytes())
    assert len(again.inputs) == 3 and again.setup.settings.lateness == 2_000_000


def test_which_addresses_are_live() -> None:
    assert is_live("-") and is_live("smoke=-") and not is_live("events.jsonl")


def test_an_unknown_file_is_waited_for(tmp_path: Path) -> None:
    program = compile(ALARM)
    path = tmp_path / "later.jsonl"
    feed = LiveFeed(Task(program, settings=Settings.of(program)), ProgramText.of(program), [str(path)], ColumnNames())
    feed.start()
    try:
        path.write_text(line("l1", 1), encoding="utf-8")
        wait(lambda: feed.watched.detections == 1)
    finally:
        feed.stop()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["p.aug"], "there are no events"),
        (["s.recording", "--events", "e.jsonl"], "a recording has its program"),
        (["s.recording"], "not a whole snapshot"),
        (["nothing.recording"], "cannot be read"),
        (["p.aug", "--events", "e.jsonl", "--events", "-"], "add --follow"),
    ],
)
def test_mistakes_are_named(words: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("p.aug").write_text(ALARM, encoding="utf-8")
    Path("e.jsonl").write_text(line("l1", 1), encoding="utf-8")
    Path("s.recording").write_bytes(watched(ALARM, ["smoke('l1') @ 1"]).recording().to_bytes()[:-1])
    result = CliRunner().invoke(cli, ["console", "--no-browser", *words])
    assert result.exit_code != 0
    assert message in f"{result.output}{result.exception}{getattr(result.exception, 'hint', '')}"


def test_a_page_gets_the_latest_state_and_not_each() -> None:
    """A burst, or a browser that is slow, makes the server send less: nothing waits in a queue."""
    session = watched(ALARM.removeprefix("event smoke(place: string). "), ["smoke('l0') @ 0"])
    with served(session) as (_, client), client.stream("GET", "changes") as response:
        states = (json.loads(line.removeprefix("data: ")) for line in response.iter_lines() if line)
        assert next(states)["version"] == 1
        with session.lock:
            for second in range(1, 300):
                session.push([Event("smoke", (f"l{second}",), second, second)])
        assert next(states)["version"] == 300
