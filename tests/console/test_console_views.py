"""The answers of the console to the questions of its page, without a browser."""

from __future__ import annotations

import pytest

from augury.console.views import ItemRequest, Nothing, TimelineRequest, Views
from augury.core.errors import RunError
from augury.core.model import Revocation
from tests.support.consoles import many_events, watched

ALARM = "output alarm. alarm(L) <- (smoke(L) SEQ heat(L)).5 WHERE hot(L). hot('l1')."
SMOKE = ["s1: smoke('l1') @ 1", "h1: heat('l1') @ 3", "s2: smoke('l2') @ 4", "h2: heat('l2') @ 5", "revoke s1"]


def lanes(views: Views, moment: int | None = None, filter: str = "", edges: tuple[int, ...] = (0, 50, 100)) -> dict:  # type: ignore[type-arg]
    return {lane["name"]: lane for lane in views.timeline(TimelineRequest(edges, moment, filter))["lanes"]}


def test_a_revocation_that_is_too_late_takes_nothing_back() -> None:
    session = watched("output alarm. alarm(L) <- smoke(L).", ["s1: smoke('l1') @ 1"], 100, lateness="5s")
    session.push([Revocation("s1")])
    states = [lane["marks"]["state"] for lane in Views(session).timeline(TimelineRequest((-1, 200)))["lanes"]]
    assert states == [[0], [0]] and session.session.late_count == 1


def test_retracted_detections_and_revoked_events_stay() -> None:
    shown = lanes(Views(watched(ALARM, SMOKE)))
    assert shown["alarm"]["marks"]["state"] == [-1]
    assert shown["smoke"]["marks"]["state"] == [-1, 0]


def test_an_earlier_moment_shows_what_there_was_then() -> None:
    views = Views(watched(ALARM, SMOKE))
    assert "marks" in lanes(views, moment=1)["smoke"] and lanes(views, moment=1)["alarm"]["total"] == 0
    assert lanes(views, moment=4)["alarm"]["marks"]["state"] == [0]
    answer = views.timeline(TimelineRequest((0, 10), 3))
    assert (answer["clock"], answer["step"]) == (3, 2)


def test_a_late_event_is_marked_with_its_arrival() -> None:
    shown = lanes(Views(watched(ALARM, ["smoke('l1') @ 10", "smoke('l2') @ 7"])))
    assert shown["smoke"]["marks"]["start"] == [7, 10]
    assert shown["smoke"]["marks"]["state"] == [1, 0]
    assert shown["smoke"]["marks"]["arrived"] == [10, 10]


def test_an_event_behind_the_frontier_is_refused() -> None:
    session = watched(ALARM, ["smoke('l1') @ 10", "x: smoke('l2') @ 3"], lateness="2s")
    views = Views(session)
    assert lanes(views)["smoke"]["marks"]["state"] == [2, 0]
    assert views.item(ItemRequest("smoke", "x"))["refused"]
    assert views.timeline(TimelineRequest((0, 10)))["frontier"] == session.session.frontier


def test_filter_keeps_items_with_a_value() -> None:
    shown = lanes(Views(watched(ALARM, SMOKE)), filter="l2")
    assert (shown["smoke"]["total"], shown["heat"]["total"], shown["alarm"]["total"]) == (1, 1, 0)


def test_many_items_are_counted_in_bins() -> None:
    views = Views(watched("output high. high(S) <- reading(S, V) WHERE V > 990.", many_events(4000)))
    edges = tuple(range(0, 4001, 10))
    reading = lanes(views, edges=edges)["reading"]
    assert set(reading["bins"]["standing"]) == {10}
    assert sum(lanes(views, edges=edges)["high"]["marks"]["state"]) == 0


def test_why_is_a_graph_with_facts_and_times() -> None:
    views = Views(watched(ALARM, SMOKE[:-1]))
    id = lanes(views)["alarm"]["marks"]["id"][0]
    (graph,) = views.why(ItemRequest("alarm", id))["derivations"]
    assert {(node["kind"], node["text"]) for node in graph["nodes"]} == {
        ("detected", "alarm('l1') @ [1, 3]"), ("event", "smoke('l1') @ 1"), ("event", "heat('l1') @ 3"), ("fact", "hot('l1')"),
    }  # fmt: skip
    assert all(edge["to"] == f"alarm·{id}" for edge in graph["edges"])


def test_why_of_a_retracted_detection_is_as_of_before() -> None:
    views = Views(watched(ALARM, SMOKE))
    id = lanes(views)["alarm"]["marks"]["id"][0]
    answer = views.why(ItemRequest("alarm", id))
    assert answer["retracted"]
    assert len(answer["derivations"][0]["nodes"]) == 4


def test_all_derivations_on_request() -> None:
    program = "output a. a(X) <- b(X). a(X) <- c(X)."
    views = Views(watched(program, ["b(1) @ 3", "c(1) @ 3"]))
    id = lanes(views)["a"]["marks"]["id"][0]
    assert views.why(ItemRequest("a", id))["more"] == 1
    assert len(views.why(ItemRequest("a", id, all=True))["derivations"]) == 2


def test_an_event_is_traced_forward_over_several_levels() -> None:
    program = "output c. b(X) <- a(X). c(X) <- (b(X) SEQ d(X)).9. e(X) <- a(X) WHERE X > 5."
    views = Views(watched(program, ["a1: a(1) @ 1", "d(1) @ 2", "a2: a(2) @ 2"]))
    answer = views.leads_to(ItemRequest("a", "a1"))
    assert {node["type"] for node in answer["graph"]["nodes"]} == {"a", "b", "c"}
    assert answer["count"] == 2 and not answer["capped"]
    assert views.leads_to(ItemRequest("d", lanes(views)["d"]["marks"]["id"][0]))["count"] == 1


def test_idle_times_are_listed() -> None:
    views = Views(watched(ALARM, ["smoke('l1') @ 1", "smoke('l1') @ 2", "smoke('l1') @ 90", "heat('l1') @ 91"]))
    assert views.overview(TimelineRequest((0, 50, 100)))["gaps"] == [(2, 90)]


def test_about_names_types_and_attributes() -> None:
    about = Views(watched(ALARM, SMOKE)).about(Nothing())
    assert about["types"]["smoke"]["kind"] == "event" and about["types"]["alarm"]["kind"] == "detected"
    assert about["events"] == 4


def test_an_event_that_is_not_there_is_an_error() -> None:
    with pytest.raises(RunError, match="there is no `smoke`"):
        Views(watched(ALARM, SMOKE)).item(ItemRequest("smoke", "nope"))
