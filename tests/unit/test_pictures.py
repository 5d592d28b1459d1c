"""Pictures: what stands where on a timeline, what notebooks show, maps and charts."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from click.testing import CliRunner

import augury
from augury.cli import cli
from augury.core.clock import SECOND, Clock, read_timestamp
from augury.core.model import Event
from augury.pictures import Picture, Scene, Watch, lanes_of, stream_chart, timeline
from augury.pictures.axis import ticks
from augury.pictures.drawing import Scale, counted
from augury.pictures.maps import coastlines
from augury.pictures.packing import packed, text_width
from augury.pictures.scenes import scene_of

FIRE = Path(__file__).parents[1] / "fires"
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def fire() -> augury.Result:
    program = augury.compile(FIRE / "fire.aug")
    return augury.run(program, augury.read(FIRE / "fire.jsonl"), until="2026-07-01 16:00")


def titles(picture: Picture) -> list[str]:
    """What is said of each mark and lane of bins."""
    return [one.text or "" for one in ElementTree.fromstring(picture.svg).iter(f"{SVG}title")]


def arrows(picture: Picture) -> int:
    return len(re.findall('class="arrow"', picture.svg))


# Timelines


def test_every_event_and_every_detection_has_a_mark(fire: augury.Result) -> None:
    shown = titles(fire.timeline())
    assert len(shown) == 9 + 3 + 2  # inputs, increases on the way, answers
    assert "reported('ridge') @ '2026-07-01T12:06:00Z'" in shown
    assert "overdue('creek') @ ['2026-07-01T12:05:00Z', '2026-07-01T15:05:00Z']" in shown


def test_arrows_lead_from_the_parts_of_what_is_selected(fire: augury.Result) -> None:
    alarm, overdue = fire.events
    assert arrows(fire.timeline(select=alarm)) == 4  # a report and an increase, which two winds make
    assert arrows(fire.timeline(select=[overdue])) == 1
    assert arrows(fire.timeline(select=["overdue", alarm])) == 5
    assert arrows(fire.timeline(select=[])) == 0
    assert arrows(fire.timeline()) == 5  # few detections: of all


def test_the_reference_draws_the_same(fire: augury.Result) -> None:
    again = augury.run(
        augury.compile(FIRE / "fire.aug"),
        augury.read(FIRE / "fire.jsonl"),
        until="2026-07-01 16:00",
        engine="reference",
    )
    assert sorted(titles(again.timeline())) == sorted(titles(fire.timeline()))
    assert arrows(again.timeline()) == arrows(fire.timeline())


def test_lanes_and_times_are_chosen(fire: augury.Result) -> None:
    assert len(titles(fire.timeline(types=["wind"]))) == 6
    assert len(titles(fire.timeline(types=["wind", "overdue"], since="2026-07-01 15:00"))) == 2
    with pytest.raises(augury.RunError, match=r"no event of type `wnid`(.|\n)*did you mean `wind`"):
        fire.timeline(types=["wnid"])


def test_what_was_taken_back_is_drawn_as_such() -> None:
    program = augury.compile("alarm(X) <- a(X) SEQ b(X).")
    session = program.session(clock="logical")
    said = list(
        session.push([{"type": "a", "args": [1], "time": 1, "id": "e1"}, {"type": "b", "args": [1], "time": 2}])
    )
    changes = session.revoke("e1")
    for picture in (session.timeline([*said, *changes]), changes.timeline()):
        assert [t for t in titles(picture) if t.endswith("taken back")] == [
            "a(1) @ 1, taken back",
            "alarm(1) @ [1, 2], taken back",
        ]
        assert arrows(picture) == 2  # from the inputs of its trace
    assert "taken back" not in session.timeline(types=["b"]).svg
    assert not titles(session.push([]).timeline())


def test_a_run_shows_the_inputs_that_were_revoked() -> None:
    events: list[dict[str, Any]] = [
        {"type": "a", "time": 1, "id": "x"},
        {"type": "a", "time": 5},
        {"op": "revoke", "id": "x"},
    ]
    for engine in ("embedded", "reference"):
        found = augury.run("b <- a.", events, clock="logical", engine=engine)
        assert sorted(titles(found.timeline())) == ["a @ 1, taken back", "a @ 5", "b @ 5"]


def test_lanes_by_rule() -> None:
    found = augury.run("alarm(X) <- a(X).\nalarm(X) <- b(X).", [Event("a", (1,), 1), Event("b", (2,), 2)])
    assert re.findall(r'aria-label="([^"]*)"', found.timeline(lanes="rule").svg) == [
        "A timeline of a (1), b (1), alarm (1), alarm#2 (1)."
    ]


def test_many_events_are_binned() -> None:
    events = [Event("tick", (i,), i) for i in range(100_000)]
    scene = Scene(tuple(lanes_of("event", events)), Clock())
    picture = timeline(scene)
    assert len(picture.svg) < 10_000
    assert titles(picture) == ["tick: up to 503 in 502 ticks"]
    (found,) = titles(timeline(scene, since=500, until=519))[:1]
    assert found == "tick(500) @ 500"  # few of them one by one


def test_bins_count_what_touches_them() -> None:
    (lane,) = lanes_of("event", [Event("a", (), 0, 9), Event("a", (), 5, 5), Event("a", (), 12, 19)])
    found = counted(lane, Scale(0, 20, 0.0, 100.0), 4, np.ones(3, bool))
    assert found.tolist() == [1, 2, 1, 1]


def test_what_is_selected_has_a_mark_among_bins() -> None:
    rows = [{"type": "a", "args": [i], "time": i, "id": str(i)} for i in range(5000)]
    found = augury.run("b(X) <- a(X), X = 77.", rows, clock="logical")
    assert "a(77) @ 77" in titles(found.timeline()) and arrows(found.timeline()) == 1


def test_nothing_is_a_picture_too() -> None:
    found = augury.run("b(X) <- a(X).", [], clock="logical")
    assert "nothing was detected" in found.timeline().svg


def test_marks_and_labels_do_not_overlap() -> None:
    marks = [(float(x), float(x + w)) for x, w in ((10, 0), (14, 0), (20, 200), (300, 0), (480, 0))]
    labels = [("first", True), ("second", True), ("inside the bar", True), ("third", True), ("last one", True)]
    placed = packed(marks, labels, (0, 500))
    assert placed is not None
    taken: dict[int, list[tuple[float, float]]] = {}
    for place, (text, _) in zip(placed, labels, strict=True):
        assert place.label is not None
        left = place.label if place.anchor == "start" else place.label - text_width(text)
        spans = [(place.left, place.right), (left, left + text_width(text))]
        assert spans[1][0] >= 0 and spans[1][1] <= 500
        span = (min(s[0] for s in spans), max(s[1] for s in spans))
        assert all(span[1] <= a or b <= span[0] for a, b in taken.get(place.row, []))
        taken.setdefault(place.row, []).append(span)


def test_marks_that_need_too_many_rows_are_not_packed() -> None:
    assert packed([(0.0, 100.0)] * 50, [("", True)] * 50, (0, 100)) is None


def test_the_picture_of_the_documentation_is_this_one(fire: augury.Result) -> None:
    shown = Path(__file__).parents[2] / "docs" / "timeline.svg"
    assert fire.timeline(title="Wildfires on 1 July 2026").svg == shown.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("since", "until", "first", "below"),
    [
        ("2026-07-01 12:00", "2026-07-01 16:00", "12:00", "1 Jul 2026"),
        ("2026-07-01 12:00:03", "2026-07-01 12:00:09", "12:00:03", "1 Jul 2026"),
        ("2026-07-01 12:00:03.1", "2026-07-01 12:00:03.2", "03.100", "12:00, 1 Jul 2026"),
        ("2026-07-01 00:00", "2026-07-06 00:00", "1 Jul", "2026"),
        ("2024-02-03 00:00", "2026-07-06 00:00", "Jul", "2024"),
        ("1990-02-03 00:00", "2026-07-06 00:00", "1995", ""),
    ],
)
def test_axis_times_are_readable(since: str, until: str, first: str, below: str) -> None:
    found = ticks(read_timestamp(since), read_timestamp(until), Clock("timestamp"), 8)
    assert (found[0].text, found[0].below) == (first, below)
    assert 2 <= len(found) <= 9
    assert all(one.text for one in found)


def test_ticks_of_a_logical_clock_are_round() -> None:
    assert [one.time for one in ticks(-3, 42, Clock(), 6)] == [0, 10, 20, 30, 40]
    assert [one.text for one in ticks(0, 5_000_000 * SECOND, Clock(), 5)][1] == "1,000,000,000,000"


def test_a_picture_is_a_file_by_its_ending(fire: augury.Result, tmp_path: Path) -> None:
    picture = fire.timeline(title="Fires & wind")
    svg = picture.save(tmp_path / "a.svg").read_text(encoding="utf-8")
    ElementTree.fromstring(svg)
    assert "currentColor" not in svg and "prefers-color-scheme: dark" in svg and "Fires &amp; wind" in svg
    page = picture.save(tmp_path / "a.html").read_text(encoding="utf-8")
    assert '<script type="module">' in page and not re.search(r"""<[^>]+(src|href)=|url\(["']?http|@import""", page)
    data = json.loads(page.partition('id="augury-data">')[2].partition("</script>")[0])
    assert len(data["made"]) == 5  # what each that was derived was made of, when it is clicked
    assert data["title"] == "Fires & wind"


def test_a_page_is_the_timeline_of_its_events(fire: augury.Result) -> None:
    widget = fire.timeline().widget()
    lanes = {lane["name"]: lane for lane in widget.data["lanes"]}
    alarm = lanes["fire_alarm"]["first"]
    parts = widget.data["made"][alarm]
    reported = lanes["reported"]
    assert {"increase", "reported"} == {
        name for name, lane in lanes.items() for part in parts if 0 <= part - lane["first"] < lane["total"]
    }
    assert reported["marks"]["label"] == ["creek", "ridge"]


def test_many_events_of_a_page_are_bins() -> None:
    events = [{"type": "a", "args": [n], "time": n} for n in range(6000)]
    result = augury.run("b(X) <- a(X) WHERE X < 3.", events, clock="logical")
    lanes = {lane["name"]: lane for lane in result.timeline().widget().data["lanes"]}
    assert sum(lanes["a"]["bins"]["standing"]) == 6000 and lanes["b"]["marks"]["end"] == [0, 1, 2]


def test_endings_of_pictures(fire: augury.Result, tmp_path: Path) -> None:
    picture = fire.timeline()
    with pytest.raises(augury.RunError, match=r"ends in \.svg or \.html"):
        picture.save(tmp_path / "a.bmp")
    with pytest.raises(augury.RunError, match="cannot write"):
        picture.save(tmp_path / "none" / "a.svg")


def test_run_command_draws_a_picture(tmp_path: Path) -> None:
    def run(*options: str) -> Any:
        return CliRunner().invoke(
            cli, ["run", str(FIRE / "fire.aug"), "--events", str(FIRE / "fire.jsonl"), "--until", "2026-07-01 16:00", *options]
        )  # fmt: skip

    target = tmp_path / "fires.svg"
    assert run("--picture", str(target)).exit_code == 0
    assert "fire_alarm" in target.read_text(encoding="utf-8")
    assert run("--changes", "--picture", str(tmp_path / "fires.html")).exit_code == 0
    wrong = run("--picture", str(tmp_path / "fires.png"))
    assert wrong.exit_code == 1 and "ends in .svg or .html" in str(wrong.exception)


# Notebooks


def test_a_notebook_shows_a_result_as_a_table_and_a_timeline(fire: augury.Result) -> None:
    shown = fire._repr_html_()
    assert "<td" in shown and "<svg" in shown and "<script" not in shown and "<style" not in shown
    assert "fire_alarm(&#x27;creek&#x27;, 12.5)" in shown
    alone = fire["overdue"]._repr_html_()
    assert ">place</th>" in alone and ">2026-07-01 15:05:00</td>" in alone


def test_long_results_show_their_first_rows() -> None:
    found = augury.run("b(X) <- a(X).", [Event("a", (i,), i) for i in range(1000)])
    assert "the first 20 of 1,000" in found._repr_html_()


def test_explanations_stay_texts(fire: augury.Result) -> None:
    why = fire.why(fire.events[0])
    assert isinstance(why, str) and why == str(why) and why.startswith("fire_alarm(")
    assert "by rule <i>increase</i>" in why._repr_html_()
    program = augury.compile(FIRE / "fire.aug")
    explained = program.explain()
    assert isinstance(explained, str) and "<b>rule overdue</b>" in explained._repr_html_()  # type: ignore[attr-defined]
    assert not hasattr(program.explain("mermaid"), "_repr_html_")


def test_goals_and_changes_show_in_notebooks() -> None:
    session = augury.compile("b(X) <- (a(X) SEQ c(X)).1h.").session()
    changes = session.push({"type": "a", "args": ["<x>"], "time": "2026-07-01 12:00"})
    goals = session.goals()
    for shown in (goals._repr_html_(), goals[0]._repr_html_()):
        assert "50%" in shown and "a(&#x27;&lt;x&gt;&#x27;)" in shown and "2026-07-01 13:00:00" in shown
    assert "nothing has changed" in changes._repr_html_()
    assert ">+</td>" in session.push({"type": "c", "args": ["<x>"], "time": "2026-07-01 12:30"})._repr_html_()


def test_diagnostics_show_in_notebooks() -> None:
    with pytest.raises(augury.ProgramError) as caught:
        augury.compile("a(X) <- b(Y).")
    assert '<span style="color:#d55e00">error[E301]</span>' in caught.value._repr_html_()
    assert caught.value._render_traceback_() == str(caught.value).split("\n")


# Maps and charts

WIND = "event wind(station: string, speed: float).\nstorm(S) <- wind(S, V), V > 100."
STATIONS = {"oslo": (10.75, 59.91), "bergen": (5.32, 60.39)}


def test_a_map_of_known_places() -> None:
    found = augury.run(WIND, [Event("wind", ("oslo", 120.0), 1), Event("wind", ("bergen", 20.0), 2)])
    svg = found.map(places=STATIONS, title="Storms").svg
    ElementTree.fromstring(svg)
    for text in ("Storms", "oslo", "bergen", "storm (1)", "wind (2)", "60°N"):
        assert f">{text}</text>" in svg


def test_a_map_of_longitudes_and_latitudes() -> None:
    program = "event quake(lon: float, lat: float, size: float).\nstrong(Lon, Lat) <- quake(Lon, Lat, S), S > 6."
    found = augury.run(program, [Event("quake", (142.0, 38.0, 6.5), 1), Event("quake", (143.0, 39.0, 5.0), 2)])
    assert ">strong (1)</text>" in found.map().svg
    with pytest.raises(augury.RunError, match="no event has a place"):
        augury.run(WIND, [Event("wind", ("oslo", 120.0), 1)]).map()


def test_charts_of_a_session_and_of_a_stream() -> None:
    session = augury.compile("b(X) <- a(X).").session(clock="logical")
    watch = Watch(session)
    with pytest.raises(augury.RunError, match="two samples"):
        watch.chart()
    session.push([Event("a", (i,), i) for i in range(100)])
    assert watch.look().events == 100
    svg = watch.chart("A session").svg
    ElementTree.fromstring(svg)
    assert ">events a second</text>" in svg and "prefers-color-scheme: dark" in svg
    progress = [
        {
            "timestamp": f"2026-07-01T12:00:0{i}.000Z",
            "numInputRows": 50,
            "durationMs": {"triggerExecution": 400},
            "stateOperators": [{"numRowsTotal": 10 * i, "memoryUsedBytes": 1000}],
        }
        for i in range(3)
    ]
    assert ">rows of state</text>" in stream_chart(progress).svg


def test_maps_have_the_coastlines_of_their_part_of_the_world() -> None:
    everywhere, near = coastlines((-180, 180), (-90, 90)), coastlines((-123, -117), (33, 40))
    assert len(everywhere) > 1000 and 0 < len(near) < 40
    assert all(abs(line[:, 0]).max() <= 180 and abs(line[:, 1]).max() <= 90 for line in everywhere)
    assert sum(map(len, coastlines((-180, 180), (-90, 90), 1.0))) < sum(map(len, everywhere)) / 3


def test_a_fact_is_a_bar_for_as_long_as_it_holds() -> None:
    program = augury.compile("""
        output down.
        fact latest mode(M, S) PER (M) <- change(M, S).
        down(M) <- x: holding mode(M, 'error').
    """)
    changes = [Event("change", ("m", state), time, time) for state, time in (("ok", 1), ("error", 4), ("ok", 9))]
    session = program.session(clock="logical")
    session.push(changes)
    session.advance(20)
    assert session._circuit is not None
    scene = scene_of(session._circuit, program.plan, session.clock, session.events(), now=session.now)
    lanes = {lane.name: lane for lane in scene.lanes}
    assert list(lanes) == ["change", "mode", "down"]
    bars = [lanes["mode"].event(row) for row in range(3)]
    assert sorted((bar.args[1], bar.start, bar.end) for bar in bars) == [("error", 4, 9), ("ok", 1, 4), ("ok", 9, 20)]
    (error,) = [bar for bar in bars if bar.args[1] == "error"]
    assert [part.content for part in scene.parts(error)] == [changes[1].content]
    (down,) = session.events()
    assert [part.content for part in scene.parts(down)] == [error.content]


def test_bars_that_meet_share_a_row() -> None:
    bounds = (0.0, 1000.0)
    meeting = packed([(0.0, 100.0), (100.0, 200.0)], [("one", True), ("two", True)], bounds)
    assert meeting is not None and [bar.row for bar in meeting] == [0, 0]
    points = packed([(100.0, 100.0), (105.0, 105.0)], [("", False)] * 2, bounds)
    assert points is not None and [point.row for point in points] == [0, 1]
