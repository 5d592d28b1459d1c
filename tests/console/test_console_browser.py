"""The console in a real browser."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import augury
from augury.console.program_text import ProgramText
from augury.console.serving import ConsoleServer, watched_history
from augury.console.watched import WatchedSession
from augury.core.model import Event
from augury.program import compile
from augury.settings import Settings, Task
from augury.sources import SourceFile
from tests.support.consoles import FIRES, browser, many_events, served, watched

pytestmark = pytest.mark.xdist_group("console browser")


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with browser() as opened:
        yield opened


@pytest.fixture(scope="module")
def fires() -> Iterator[str]:
    program = compile(FIRES / "fire.aug")
    events = SourceFile.parse(str(FIRES / "fire.jsonl"), "time", (), "", (), program.plan)
    session = watched_history(
        Task(program, (events,), settings=Settings.of(program)), ProgramText.of(program), "2026-07-01 18:00"
    )
    with served(session) as (address, _):
        yield address


@pytest.fixture
def page(chromium: Any) -> Iterator[Any]:
    """A page that is empty; what goes wrong in it fails the test."""
    wrong: list[str] = []
    context = chromium.new_context(viewport={"width": 1200, "height": 720})
    opened = context.new_page()
    opened.set_default_timeout(60_000)
    opened.on("pageerror", lambda error: wrong.append(str(error)))
    opened.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
    opened.wrong = wrong
    yield opened
    context.close()
    assert wrong == []


def wait(page: Any, script: str) -> None:
    """Waits until a script is true. Playwright's own way evaluates text in the page, which the page does not allow."""
    deadline = time.monotonic() + 60
    while not page.evaluate(script):
        assert time.monotonic() < deadline, script
        page.wait_for_timeout(30)


def opened(page: Any, address: str) -> None:
    page.goto(address)
    wait(page, "window.auguryTimeline && window.auguryTimeline.model.lanes.length > 0")
    wait(page, "window.auguryTimeline.drawn.marks + window.auguryTimeline.drawn.bins > 0")


@contextmanager
def served_to(page: Any, session: WatchedSession) -> Iterator[str]:
    """The address of a console that the page leaves before it ends."""
    with served(session) as (address, _):
        yield address
        page.goto("about:blank")


def mark(page: Any, type: str, number: int = 0) -> tuple[float, float]:
    """Where an item is on the page."""
    script = """([type, number]) => {
        const timeline = window.auguryTimeline, box = timeline.canvas.getBoundingClientRect();
        const lane = timeline.places.lanes.find((each) => each.data.name === type), mark = lane.marks[number];
        return [box.x + (mark.left + mark.right) / 2, box.y + mark.y];
    }"""
    x, y = page.evaluate(script, [type, number])
    return x, y


def test_a_click_on_a_detection_shows_its_derivation(page: Any, fires: str) -> None:
    opened(page, fires)
    page.mouse.click(*mark(page, "fire_alarm"))
    graph = page.get_by_role("group", name="Why fire_alarm")
    graph.locator("text", has_text="near('creek', 's1')").wait_for()
    graph.get_by_role("button", name="increase('s1', 12.5)").click()
    page.get_by_role("heading", name="increase").wait_for()
    page.get_by_role("button", name="wind('s1', 10.5)").click()
    page.get_by_role("tab", name="Leads to", selected=True).wait_for()
    page.get_by_role("group", name="What wind").locator("text", has_text="fire_alarm('creek', 12.5)").wait_for()


def test_scrub_goes_back_to_a_moment(page: Any, fires: str) -> None:
    opened(page, fires)
    strip = page.get_by_role("slider")
    box = strip.bounding_box()
    page.mouse.click(box["x"] + 3, box["y"] + 20)
    wait(page, "!window.auguryTimeline.model.lanes.some((lane) => lane.name === 'fire_alarm' && lane.total)")
    page.get_by_text("as of 1 Jul 2026 12:0").wait_for()
    strip.press("End")
    wait(page, "window.auguryTimeline.model.lanes.some((lane) => lane.name === 'fire_alarm' && lane.total)")


def test_keyboard_alone_reaches_a_derivation(page: Any, fires: str) -> None:
    opened(page, fires)
    for _ in range(30):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement === window.auguryTimeline.canvas"):
            break
    for key in ("ArrowRight", *["ArrowDown"] * 4, "Enter"):
        page.keyboard.press(key)
    page.get_by_role("heading", name="fire_alarm").wait_for()
    page.keyboard.press("Tab")
    before = page.evaluate("window.auguryTimeline.range()")
    page.evaluate("window.auguryTimeline.canvas.focus()")
    page.keyboard.press("+")
    after = page.evaluate("window.auguryTimeline.range()")
    assert after[1] - after[0] < before[1] - before[0]
    page.keyboard.press("Escape")
    page.get_by_role("heading", name="fire_alarm").wait_for(state="detached")


def test_a_filter_and_idle_times(page: Any, fires: str) -> None:
    opened(page, fires)
    page.get_by_label("Filter by a value").fill("s2")
    wait(page, "window.auguryTimeline.model.lanes.find((lane) => lane.name === 'wind').total === 2")
    page.get_by_label("Filter by a value").fill("")
    page.get_by_label("Collapse idle times").check()
    wait(page, "window.auguryTimeline.line.gaps.length > 0")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_narrow_windows_and_themes(page: Any, fires: str, theme: str) -> None:
    page.emulate_media(color_scheme=theme)
    page.set_viewport_size({"width": 420, "height": 800})
    opened(page, fires)
    page.mouse.click(*mark(page, "overdue"))
    page.get_by_role("heading", name="overdue").wait_for()
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (ground == "rgb(20, 24, 27)") == (theme == "dark")


def test_why_not_leads_to_events_and_rules(page: Any, fires: str) -> None:
    page.goto(fires + "#why-not")
    page.get_by_label("Event", exact=True).select_option("fire_alarm")
    place = page.get_by_label("place", exact=True)
    options = "[...document.querySelectorAll('datalist option')].map((option) => option.value)"
    wait(page, f"{options}.includes(\"'ridge'\")")
    place.fill("'ridge'")
    page.get_by_role("button", name="Why not?").click()
    page.get_by_text("there is no near('ridge', 's1')").wait_for()
    page.get_by_role("button", name="show in the rules").click()
    wait(page, "window.auguryEditor && window.auguryEditor.hasFocus")
    selection = (
        "(({ state }) => state.sliceDoc(state.selection.main.from, state.selection.main.to))(window.auguryEditor)"
    )
    wait(page, f"{selection} === 'near(Place, Station)'")
    page.goto(fires + "#why-not")
    page.get_by_label("Event", exact=True).select_option("overdue")
    page.get_by_label("place", exact=True).fill("'ridge'")
    page.get_by_role("button", name="Why not?").click()
    page.get_by_role("button", name="localised('ridge')").click()
    page.get_by_role("heading", name="localised").wait_for()


def test_goals_at_a_moment(page: Any, fires: str) -> None:
    opened(page, fires)
    box = page.get_by_role("slider").bounding_box()
    page.mouse.click(box["x"] + box["width"] * 0.3, box["y"] + 20)
    page.get_by_role("link", name="Goals").click()
    page.get_by_text("overdue('creek')").wait_for()
    page.get_by_role("cell", name="1 Jul 2026 15:05:00").first.wait_for()
    page.get_by_role("button", name="back to the end").click()


def test_a_what_if_with_a_revocation(page: Any, fires: str) -> None:
    opened(page, fires)
    page.mouse.click(*mark(page, "wind", 4))
    page.get_by_role("button", name="revoke").click()
    page.get_by_label("Add an event").fill("localised('creek') @ '2026-07-01 12:50'")
    page.get_by_role("button", name="Add", exact=True).click()
    page.get_by_role("button", name="What would change?").click()
    lost = page.get_by_role("region", name="Disappear")
    lost.get_by_text("overdue('creek')", exact=True).wait_for(timeout=60_000)
    with page.expect_download() as saved:
        page.get_by_role("button", name="Save as a test case").click()
    assert "[[case]]" in Path(saved.value.path()).read_text(encoding="utf-8")
    page.get_by_role("button", name="Discard").click()
    page.get_by_text("Nothing is changed yet").wait_for()


def test_a_rule_with_an_error_is_mended_and_applied(page: Any) -> None:
    program = "output high. high(S) <- reading(S, V) WHERE V > 995."
    with served_to(page, watched(program, many_events(100))) as address:
        page.goto(address + "#rules")
        page.get_by_text("no findings").wait_for(timeout=60_000)
        text = page.get_by_label("Text of")
        text.press("Control+End")
        page.keyboard.insert_text(" low(S <- reading(S, V) WHERE V < 3.")
        page.locator(".findings .error").first.wait_for(timeout=60_000)
        assert page.get_by_role("button", name="Apply").is_disabled()
        text.press("Control+a")
        text.press("Delete")
        page.keyboard.insert_text(program + " output low. low(S) <- reading(S, V) WHERE V < 3.")
        page.get_by_text("edited; no findings").wait_for(timeout=60_000)
        page.get_by_role("button", name="Apply").click()
        page.get_by_text("It runs: 1 rule added").wait_for(timeout=60_000)
        page.get_by_role("link", name="Timeline").click()
        wait(page, "window.auguryTimeline.model.lanes.some((lane) => lane.name === 'low' && lane.total === 1)")


def test_live_updates_in_two_tabs(page: Any) -> None:
    session = watched("output alarm. alarm(L) <- smoke(L).", ["smoke('l1') @ 1"])
    session.live = True
    with served_to(page, session) as address:
        opened(page, address)
        other = page.context.new_page()
        opened(other, address)
        other.get_by_label("Filter by a value").fill("l2")
        session.push([Event("smoke", ("l2",), 5, 5)])
        for tab, count in ((page, 2), (other, 1)):
            wait(tab, f"window.auguryTimeline.model.lanes.find((lane) => lane.name === 'alarm').total === {count}")
        other.close()


def test_it_connects_again(page: Any) -> None:
    session = watched("output alarm. alarm(L) <- smoke(L).", ["smoke('l1') @ 1"])
    server = ConsoleServer(session)
    with server.running() as address:
        opened(page, address)
    page.get_by_text("no connection").wait_for()
    session.push([Event("smoke", ("l2",), 5, 5)])
    again = ConsoleServer(session, server.port, server.token)
    with again.running():
        wait(page, "window.auguryTimeline.model.lanes.find((lane) => lane.name === 'alarm').total === 2")
        page.goto("about:blank")
    page.wrong[:] = [
        text for text in page.wrong if "ERR_CONNECTION_REFUSED" not in text and "ERR_INCOMPLETE" not in text
    ]


def test_figures_and_the_plan(page: Any, fires: str) -> None:
    page.goto(fires + "#metrics")
    page.get_by_role("figure", name="State").or_(page.locator("figure").first).locator("canvas").first.wait_for()
    page.get_by_role("link", name="Rules").click()
    operators = page.get_by_role("group", name="Operators")
    operators.get_by_role("button").filter(has_text="join SEQ").first.click()
    page.get_by_text("rows touched", exact=True).last.wait_for()


def test_hostile_contents_are_text(page: Any) -> None:
    hostile = '<img src=x onerror="document.title=1"><script>document.title=2</script>'
    with served_to(page, watched("output alarm. alarm(L) <- smoke(L).", [f"s1: smoke('{hostile}') @ 1"])) as address:
        opened(page, address)
        page.mouse.click(*mark(page, "alarm"))
        page.get_by_role("group", name="Why alarm").wait_for()
        assert page.evaluate("document.querySelectorAll('img, #app script').length") == 0
        assert page.title() == "Augury console"


def test_an_exported_page_is_the_same_timeline(page: Any, tmp_path: Path) -> None:
    program = "output alarm. alarm(L) <- (smoke(L) SEQ heat(L)).5."
    events = [{"type": type, "args": ["</script><b>l1"], "time": time} for type, time in (("smoke", 1), ("heat", 3))]
    target = augury.run(program, events, clock="logical").timeline(title="<i>Fires").save(tmp_path / "fires.html")
    page.goto(target.as_uri())
    timeline = "document.getElementById('augury-timeline').auguryTimeline"
    wait(page, f"{timeline}.drawn.marks === 3")
    wait(page, f"{timeline}.model.graph.edges.length === 2")
    assert page.evaluate("document.querySelectorAll('b, i').length") == 0
    page.keyboard.press("Tab")
    for key in ("ArrowRight", "ArrowDown", "ArrowDown", "Enter"):
        page.keyboard.press(key)
    page.get_by_text("detected").first.wait_for()
    wait(page, f"{timeline}.model.selected.type === 'alarm'")


def test_a_hundred_thousand_events_are_few_shapes(page: Any, tmp_path: Path) -> None:
    """Whatever there is, a frame draws no more than some thousand shapes, so that it is quick on any machine."""
    with served_to(
        page, watched("output high. high(S) <- reading(S, V) WHERE V > 995.", many_events(100_000))
    ) as address:
        opened(page, address)
        wait(page, "window.auguryTimeline.model.lanes[0].total === 100000")
        drawn = page.evaluate("window.auguryTimeline.drawn")
        assert 0 < drawn["marks"] + drawn["bins"] < 3000
        page.evaluate("window.auguryTimeline.show(50000, 50100)")
        wait(page, "window.auguryTimeline.model.lanes[0].marks && window.auguryTimeline.model.lanes[0].count < 300")
