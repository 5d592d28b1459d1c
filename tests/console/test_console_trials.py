"""What a user asks and tries out: why not, what if, drafts of rules, goals, figures and recordings."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from augury.console.edits import HypothesisRequest, InputEdit
from augury.console.hypothesis_run import Hypothesis
from augury.console.recording import Recording
from augury.console.rule_checks import checked
from augury.console.sandbox import LimitExceeded, Sandbox
from augury.console.serving import watched_recording
from augury.console.state_views import StateViews
from augury.console.trial_views import ArgumentRequest, AtomRequest, TrialViews
from augury.console.views import ItemRequest, MomentRequest, Nothing, TimelineRequest, Views
from augury.console.watched import WatchedSession
from augury.core.errors import RunError
from augury.core.model import Event, Revocation
from augury.testing import read_spec
from tests.support.consoles import many_events, watched

ALARM = "output alarm. alarm(L) <- (smoke(L) SEQ heat(L)).5 WHERE hot(L). hot('l1')."
SMOKE = ["s1: smoke('l1') @ 1", "h1: heat('l1') @ 3", "s2: smoke('l2') @ 4", "h2: heat('l2') @ 5"]
CALM = "output calm. calm(X) <- a: fire(X), w: extend(a, 10s), while w: not wind(X)."


def tried(session: WatchedSession, *edits: InputEdit, **request: Any) -> dict[str, Any]:
    recording = Recording.of_bytes(session.trial().to_bytes())
    return Hypothesis.of(recording, HypothesisRequest(edits, **request)).result()


def words(failed: dict[str, Any]) -> str:
    return "".join(part["text"] for part in failed["parts"])


def texts(items: list[dict[str, Any]]) -> list[str]:
    return [item["text"] for item in items]


# Why not


def test_why_not_names_the_condition_and_its_place() -> None:
    (miss,) = TrialViews(watched(ALARM, SMOKE)).why_not(AtomRequest("alarm('l2')"))["misses"]
    assert [part["id"] for part in miss["parts"]] == ["s2", "h2"]
    (failed,) = miss["failed"]
    assert "hot" in words(failed)
    assert ALARM[failed["place"]["from"] : failed["place"]["to"]] == "hot(L)"


def test_why_not_names_what_blocks() -> None:
    session = watched(CALM, ["f: fire(1) @ 1", "w: wind(1) @ 5", "fire(2) @ 30"])
    (miss,) = TrialViews(session).why_not(AtomRequest("calm(1)"))["misses"]
    assert [event["id"] for event in miss["failed"][0]["events"]] == ["w"]


def test_why_not_as_of_a_moment() -> None:
    views = TrialViews(watched(ALARM, SMOKE))
    (miss,) = views.why_not(AtomRequest("alarm('l1')", moment=2))["misses"]
    assert [part["id"] for part in miss["parts"]] == ["s1"]
    with pytest.raises(RunError, match="was detected"):
        views.why_not(AtomRequest("alarm('l1')"))


def test_places_count_as_javascript_does() -> None:
    program = "output a. a(X) <- b(X), '😀' = X, hot(X). hot(1)."
    (miss,) = TrialViews(watched(program, ["b(2) @ 1"])).why_not(AtomRequest("a(2)"))["misses"]
    place = miss["failed"][0]["place"]
    text = program.encode("utf-16-le")[2 * place["from"] : 2 * place["to"]].decode("utf-16-le")
    assert text in ("'😀' = X", "hot(X)")


def test_values_complete_an_argument() -> None:
    views = TrialViews(watched(ALARM, SMOKE))
    assert views.values(ArgumentRequest("smoke", 0))["values"] == ["'l1'", "'l2'"]
    assert views.values(ArgumentRequest("smoke", 0, "l2"))["values"] == ["'l2'"]


# Goals


def test_goals_say_what_they_wait_for() -> None:
    session = watched("output a. a(X) <- (b(X) SEQ c(X)).10.", ["b(7) @ 3", "c(8) @ 5"])
    (rule,) = StateViews(session).goals(MomentRequest())["rules"]
    (goal,) = rule["goals"]
    assert (goal["complete"], goal["awaits"], goal["until"], goal["left"]) == (0.5, "c(X)", 13, 8)
    assert goal["done"][0]["text"] == "b(7) @ 3"


def test_a_pending_absence_has_a_deadline() -> None:
    session = watched(CALM, ["fire('l1') @ 5", "wind('l2') @ 7"])
    (rule,) = StateViews(session).goals(MomentRequest())["rules"]
    (goal,) = rule["goals"]
    assert goal["kind"] == "pending" and goal["event"]["text"] == "calm('l1') @ [5, 15]"
    assert (goal["until"], goal["left"], goal["unless"]) == (15, 8, ["wind(X)"])
    session.advance(15)
    assert StateViews(session).goals(MomentRequest())["rules"] == []


# What if


def test_a_revocation_loses_what_rests_on_it() -> None:
    result = tried(watched(ALARM, SMOKE), InputEdit("revoke", id="h1"))
    assert texts(result["lost"]) == ["alarm('l1') @ [1, 3]"] and result["gained"] == []
    (miss,) = result["lost"][0]["misses"]
    assert any("heat" in words(failed) for failed in miss["failed"])
    assert {node["text"] for node in result["lost"][0]["graph"]["nodes"]} >= {"smoke('l1') @ 1", "heat('l1') @ 3"}


def test_an_event_is_added_and_moved() -> None:
    session = watched(ALARM, ["s1: smoke('l1') @ 1", "h1: heat('l1') @ 30"])
    added = tried(session, InputEdit("add", event="heat('l1') @ 4"))
    assert texts(added["gained"]) == ["alarm('l1') @ [1, 4]"]
    moved = tried(session, InputEdit("move", id="h1", start=2, end=2))
    assert texts(moved["gained"]) == ["alarm('l1') @ [1, 2]"]


def test_an_event_is_added_before_a_promise() -> None:
    session = watched(ALARM, ["s1: smoke('l1') @ 1"], until=60)
    result = tried(session, InputEdit("add", event="heat('l1') @ 4"))
    assert texts(result["gained"]) == ["alarm('l1') @ [1, 4]"] and result["refused"] == []


def test_facts_change() -> None:
    session = watched(ALARM, SMOKE)
    assert texts(tried(session, InputEdit("assert", fact="hot('l2')"))["gained"]) == ["alarm('l2') @ [4, 5]"]
    assert texts(tried(session, InputEdit("retract", fact="hot('l1')"))["lost"]) == ["alarm('l1') @ [1, 3]"]
    assert texts(tried(session, InputEdit("assert", fact="hot('l2')", time="5"))["gained"]) == ["alarm('l2') @ [4, 5]"]
    with pytest.raises(RunError, match="no fact cold"):
        tried(session, InputEdit("retract", fact="cold('l1')"))


def test_a_rule_is_edited() -> None:
    session = watched(ALARM, SMOKE)
    result = tried(session, sources={"<program>": ALARM.replace("hot(L).", "hot(L) OR L = 'l2'.", 1)})
    assert texts(result["gained"]) == ["alarm('l2') @ [4, 5]"]


def test_it_is_as_of_a_moment() -> None:
    session = watched(ALARM, SMOKE)
    recording = session.trial(session.steps.step_at(2))
    result = Hypothesis.of(recording, HypothesisRequest((InputEdit("add", event="heat('l1') @ 2"),))).result()
    assert texts(result["gained"]) == ["alarm('l1') @ [1, 2]"]


def test_the_clock_stays_where_it_is() -> None:
    session = watched(CALM, ["fire('l1') @ 5", "last: fire('l2') @ 40"])
    result = tried(session, InputEdit("revoke", id="last"))
    assert (result["lost"], result["gained"]) == ([], [])


def test_the_result_is_a_case_that_passes(tmp_path: Path) -> None:
    events = SMOKE + [f"smoke('x{i}') @ {6 + i}" for i in range(20)]
    result = tried(watched(ALARM, events), InputEdit("revoke", id="h1"), InputEdit("assert", fact="hot('l2')"))
    path = tmp_path / "case.toml"
    path.write_text(result["case"], encoding="utf-8")
    assert len(tomllib.loads(result["case"])["case"][0]["events"]) == 3  # s1 without its heat, and the other alarm
    for case in read_spec(path):
        assert case.expected == ("alarm('l2') @ [4, 5]",)
        case.check()


def test_a_trial_changes_nothing() -> None:
    session = watched(ALARM, SMOKE)
    before = [event.id for event in session.session.events()], session.version
    tried(session, InputEdit("revoke", id="h1"))
    assert ([event.id for event in session.session.events()], session.version) == before


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (InputEdit("burn"), "unknown change"), (InputEdit("revoke", id="nope"), "no event with the id"),
        (InputEdit("add", event="smoke("), "not an event"), (InputEdit("move", id="h1", start=9, end=2), "cannot start"),
    ],
)  # fmt: skip
def test_changes_that_make_no_sense(edit: InputEdit, message: str) -> None:
    with pytest.raises(Exception, match=message):
        tried(watched(ALARM, SMOKE), edit)


# Rules


def test_a_draft_has_findings_with_places() -> None:
    recording = watched(ALARM, []).draft().to_bytes()
    wrong = checked({"sources": {"<program>": ALARM.replace("heat(L)", "heat(L")}}, recording)
    assert wrong["findings"][0]["severity"] == "error" and wrong["findings"][0]["place"]
    right = checked({"sources": {"<program>": ALARM.replace(".5", ".9")}}, recording)
    assert not any(finding["severity"] == "error" for finding in right["findings"])
    assert len(right["difference"]["added"]) == len(right["difference"]["removed"]) == 1
    assert "hot" in checked({"sources": {"<program>": ALARM + " hot('l2')."}}, recording)["notNow"]


def test_changed_rules_run_on_what_is_held() -> None:
    session = watched(ALARM, SMOKE)
    changed = ALARM.replace(" WHERE hot(L)", "", 1) + " output warm. warm(L) <- heat(L)."
    assert session.change_rules(session.text.changed({"<program>": changed})) == {"added": 2, "removed": 1}
    shown = {lane["name"]: lane for lane in Views(session).timeline(TimelineRequest((0, 10)))["lanes"]}
    assert shown["warm"]["kind"] == "detected" and shown["warm"]["count"] == 2
    assert sum(state == 0 for state in shown["alarm"]["marks"]["state"]) == 2
    again = watched_recording(Recording.of_bytes(session.recording().to_bytes()))
    assert [str(e) for e in again.session.events()] == [str(e) for e in session.session.events()]
    assert texts(tried(session, InputEdit("revoke", id="h1"))["lost"]) == ["alarm('l1') @ [1, 3]", "warm('l1') @ 3"]


def test_the_plan_has_figures() -> None:
    plan = StateViews(watched(ALARM, SMOKE)).plan(Nothing())
    join = next(row for row in plan["operators"] if row["operator"] == "join")
    assert join["rules"] == ["alarm"] and join["metrics"]["rows_in"] == 2
    assert {number for row in plan["operators"] for number in row["inputs"]} <= {o["number"] for o in plan["operators"]}


# Figures and recordings


def test_figures_over_time_are_columns() -> None:
    metrics = StateViews(watched(ALARM, SMOKE)).metrics(Nothing())
    assert metrics["events"] == [1, 2, 3, 4] and metrics["rules"]["alarm"]["rows"][-1] > 0


def test_a_recording_is_the_session_again() -> None:
    session = watched(ALARM, [*SMOKE, "late: smoke('l1') @ 2", "revoke s1"], until=60)
    again = watched_recording(Recording.of_bytes(session.recording().to_bytes()))
    request = TimelineRequest((0, 10), moment=4)
    assert Views(again).timeline(request) == Views(session).timeline(request)
    assert again.steps.wall == session.steps.wall and again.version == session.version
    alarm = next(iter(session.lanes["detected", "alarm", 1].rows))
    assert Views(again).why(ItemRequest("alarm", alarm)) == Views(session).why(ItemRequest("alarm", alarm))


def test_versions_are_recorded() -> None:
    session = watched("output a. a(X) <- b(X).", ["e: b(1) @ 1", "e: b(2) @ 1", "f: b(3) @ 2", "revoke f"])
    first, second = [item for item in session.log.inputs if isinstance(item, Event) and item.id == "e"]
    other = WatchedSession(session.setup)
    other.push([replace(first, version=1)])
    other.push([replace(second, version=2), Revocation("f", version=3)])
    again = watched_recording(Recording.of_bytes(other.recording().to_bytes()))
    assert again.log.inputs == other.log.inputs
    assert [item.version for item in again.log.inputs if isinstance(item, Event | Revocation)] == [1, 2, 3]
    shown = {lane["name"]: lane for lane in Views(again).timeline(TimelineRequest((0, 10)))["lanes"]}
    assert shown["b"]["marks"]["state"] == [-1, 0]


def test_a_damaged_recording_is_refused() -> None:
    data = bytearray(watched(ALARM, SMOKE).recording().to_bytes())
    data[len(data) // 2] ^= 1
    with pytest.raises(RunError, match="digest"):
        Recording.of_bytes(bytes(data))


# The sandbox


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    box = Sandbox(seconds=1.5, megabytes=1500)
    yield box
    box.close()


def test_a_program_whose_cost_explodes_is_stopped(sandbox: Sandbox) -> None:
    program = "output e. e(A, B, C, D) <- (n(A) AND n(B) AND n(C) AND n(D)).1000."
    recording = watched("output f. f(X) <- n(X).", []).trial()
    explosive = watched("output f. f(X) <- n(X).", [f"n({i}) @ {i}" for i in range(300)]).trial()
    body: dict[str, Any] = {"edits": [], "sources": {"<program>": program}, "moment": None}
    with pytest.raises(LimitExceeded, match="more than"):
        sandbox.ask("what-if", body, explosive.to_bytes())
    sandbox.seconds = 60  # of the process that starts next, so that a slow machine changes nothing
    assert sandbox.ask("what-if", body | {"sources": {}}, recording.to_bytes())["counts"]["gained"] == 0
    with pytest.raises(RunError, match="has an error"):
        sandbox.ask("what-if", body | {"sources": {"<program>": "f("}}, recording.to_bytes())


def test_many_events_fit(sandbox: Sandbox) -> None:
    session = watched("output high. high(S) <- reading(S, V) WHERE V > 995.", many_events(3_000))
    body: dict[str, Any] = {
        "edits": [{"kind": "add", "event": "reading('s1', 999) @ 30000"}],
        "sources": {},
        "moment": None,
    }
    assert sandbox.ask("what-if", body, session.trial().to_bytes())["counts"]["gained"] == 1
