"""A console beside a stream: what its buckets hold, and the answers that it has written. Spark itself is not needed."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from augury.console.input_log import Setup
from augury.console.program_text import ProgramText
from augury.console.state_views import StateViews
from augury.console.trial_views import AtomRequest, DraftRequest, TrialViews
from augury.console.views import ItemRequest, MomentRequest, Nothing, TimelineRequest, Views
from augury.console.watched_lanes import HeldSession
from augury.console.watched_stream import StreamWatcher, WatchedStream, WrittenAnswers
from augury.core.clock import Clock
from augury.core.errors import RunError
from augury.core.model import Event
from augury.notation import read_event
from augury.program import ProgramSession, compile
from augury.settings import Settings, Task
from augury.sources import SourceFile
from tests.console.test_console_live import wait
from tests.support.consoles import ask, served

RULES = """
    output alarm.
    rise(L, T) <- (heat(L, S) SEQ heat(L, T)).9 WHERE T > S.
    alarm(L) <- (rise(L, T) SEQ smoke(L)).9.
"""
FIRST = "output rise. rise(L, T) <- (heat(L, S) SEQ heat(L, T)).9 WHERE T > S."
SECOND = "output alarm. alarm(L, N) <- (rise(L, T, N) SEQ smoke(L, N)).9."  # in slices, whose number is an argument


class TwoStages:
    """A stream of two stages in sessions of this process: heat goes to the first, smoke and what that makes to the second."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.batch: int | None = None
        program, self.clock = compile(RULES), Clock("logical")
        settings = Settings.of(program, clock="logical", lateness="2s", emit="early")
        self.first, self.second = (
            ProgramSession(compile(text), settings, clock=self.clock) for text in (FIRST, SECOND)
        )
        setup = Setup(ProgramText.of(program), self.clock, (), settings)
        written = WrittenAnswers(Task(program, settings=settings), setup, {"output": str(folder)}, "jsonl")
        self.watched = WatchedStream(setup, lambda: self.batch, self.sessions, written)

    def sessions(self) -> list[HeldSession]:
        return [HeldSession(self.first), HeldSession(self.second, stage=2, extra=1)]

    def run(self, *inputs: str) -> None:
        """A batch."""
        lines: list[dict[str, Any]] = []
        for text in inputs:
            event = read_event(text, self.clock)
            assert isinstance(event, Event)
            if event.type == "heat":
                for change in self.first.push([event]):
                    made = change.event
                    self.second.push([Event("rise", (*made.args, 0), made.start, made.end, made.id)])
            else:
                for change in self.second.push([Event(event.type, (*event.args, 0), event.start, event.end, event.id)]):
                    made = change.event
                    lines.append(
                        {"op": change.op, "type": made.type, "args": made.args[:-1], "start": made.start, "end": made.end, "id": made.id}
                    )  # fmt: skip
        self.batch = 0 if self.batch is None else self.batch + 1
        if lines:
            part = self.folder / f"batch={self.batch}"
            part.mkdir()
            (part / "part-00000.json").write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")


@pytest.fixture
def stream(tmp_path: Path) -> TwoStages:
    return TwoStages(tmp_path)


def lanes(stream: TwoStages) -> dict[str, Any]:
    shown = Views(stream.watched).timeline(TimelineRequest((-1, 100)))["lanes"]
    return {lane["name"]: lane["marks"] for lane in shown}


def test_nothing_is_shown_before_the_first_batch(stream: TwoStages) -> None:
    assert not stream.watched.look()
    assert stream.watched.title == "no batch yet" and lanes(stream) == {}
    assert StateViews(stream.watched).goals(MomentRequest())["rules"] == []


def test_it_shows_what_the_buckets_hold_and_what_was_written(stream: TwoStages) -> None:
    stream.run("h1: heat('l1', 1) @ 1", "h2: heat('l1', 5) @ 3", "s1: smoke('l1') @ 5")
    assert stream.watched.look() and not stream.watched.look()
    shown = lanes(stream)
    assert {name: marks["label"] for name, marks in shown.items()} == {
        "heat": ["l1, 1", "l1, 5"], "smoke": ["l1"], "rise": ["l1, 5"], "alarm": ["l1"],
    }  # fmt: skip
    about = Views(stream.watched).about(Nothing())
    assert (about["title"], about["events"], about["detections"], about["looksOnly"]) == ("stream, batch 0", 3, 1, True)
    stream.run("h3: heat('l1', 2) @ 4", "h4: heat('l1', 9) @ 6")
    assert stream.watched.look()
    assert lanes(stream)["heat"]["state"] == [0, 0, 1, 0]  # the third came after a later one


def test_a_derivation_goes_through_all_stages(stream: TwoStages) -> None:
    stream.run("h1: heat('l1', 1) @ 1", "h2: heat('l1', 5) @ 3", "s1: smoke('l1') @ 5")
    stream.watched.look()
    views = Views(stream.watched)
    alarm = lanes(stream)["alarm"]["id"][0]
    (graph,) = views.why(ItemRequest("alarm", alarm))["derivations"]
    assert {f"{node['type']}({', '.join(node['args'])})" for node in graph["nodes"]} == {
        "alarm('l1')", "smoke('l1')", "rise('l1', 5)", "heat('l1', 1)", "heat('l1', 5)",
    }  # fmt: skip
    assert len(graph["edges"]) == 4
    assert views.leads_to(ItemRequest("smoke", "s1"))["count"] == 1
    assert {rule["rule"] for rule in StateViews(stream.watched).plan(Nothing())["rules"]} == {"rise", "alarm"}
    assert stream.watched.samples[-1]["rules"]["alarm"]["rows"] > 0


def test_goals_and_why_not_ask_every_bucket(stream: TwoStages) -> None:
    stream.run("h1: heat('l1', 1) @ 1", "h2: heat('l1', 5) @ 3")
    stream.watched.look()
    goals = {rule["rule"]: rule["goals"][0] for rule in StateViews(stream.watched).goals(MomentRequest())["rules"]}
    assert goals["alarm"]["done"][0]["args"] == ["'l1'", "5"]
    trials = TrialViews(stream.watched)
    try:
        (miss,) = trials.why_not(AtomRequest("alarm('l1')"))["misses"]
        assert miss["parts"][0]["args"] == ["'l1'", "5"] and miss["total"] == 2
        with pytest.raises(RunError, match="no rule derives `smoke`"):
            trials.why_not(AtomRequest("smoke('l1')"))
        with pytest.raises(RunError, match="only looks at a stream"):
            trials.apply(DraftRequest({}))
        with pytest.raises(RunError, match="last batch alone"):
            StateViews(stream.watched).goals(MomentRequest(-5))
    finally:
        trials.close()


def test_a_checkpoint_names_its_sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyspark")
    from augury.spark.checkpoint import source_as_written, written_source

    monkeypatch.chdir(tmp_path)
    plan = compile("event wind(speed: float). output high. high(S) <- wind(S).").plan
    source = SourceFile.parse("wind=in/*.csv", "at", ("-",), "", ("wind.speed=v",), plan)
    saved = json.loads(json.dumps(written_source(source)))
    assert source_as_written(saved) == replace(source, path=str(tmp_path / "in/*.csv"))
    assert written_source(SourceFile.parse("-"))["path"] == "-"


def test_a_stream_is_followed(stream: TwoStages) -> None:
    watcher = StreamWatcher(stream.watched)
    watcher.start()
    try:
        with served(stream.watched) as (_, client):
            assert client.get("session.recording").status_code == 422
            assert client.post("ask/what-if", json={}).status_code == 422
            stream.run("h1: heat('l1', 1) @ 1")
            wait(lambda: ask(client, "about")["events"] == 1)
            stream.folder = Path("/nowhere")
            stream.watched.written.folders = {"output": "/nowhere"}
            stream.run("h2: heat('l1', 5) @ 3")
            wait(lambda: ask(client, "about")["events"] == 2)
    finally:
        watcher.stop()


def test_a_state_that_cannot_be_read_is_tried_again(stream: TwoStages) -> None:
    stream.run("h1: heat('l1', 1) @ 1")
    sessions, tries = stream.watched.state, []

    def broken() -> list[HeldSession]:
        tries.append(1)
        if len(tries) == 1:
            raise RunError("the state is being written")
        return list(sessions())

    stream.watched.state = broken
    watcher = StreamWatcher(stream.watched)
    watcher.start()
    try:
        wait(lambda: stream.watched.version == 1)
        wait(lambda: stream.watched.problem == "")
    finally:
        watcher.stop()
