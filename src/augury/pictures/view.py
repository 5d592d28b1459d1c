"""Draws the timeline of a scene with the options that users give."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, TypedDict, Unpack

from augury.core.errors import RunError
from augury.pictures.drawing import draw
from augury.pictures.lanes import Scene, Selection
from augury.pictures.page import timeline_page
from augury.pictures.page_data import page_data
from augury.pictures.picture import Picture

_NARROWEST = 400


class TimelineOptions(TypedDict, total=False):
    """The options of a timeline."""

    select: Selection
    types: Iterable[str] | None
    since: object
    until: object
    lanes: Literal["type", "rule"]
    width: float
    title: str


def timeline(scene: Scene, **options: Unpack[TimelineOptions]) -> Picture:
    """A scene as a picture.

    `select` are the events whose derivations are drawn as arrows: an event, the name of a type, or several of them; by
    default all detections, where they are few. `types` are the lanes to draw, by name; `since` and `until` are the time
    that is shown; `lanes` is "type", or "rule" for a lane of each rule. A lane with more events than fit is drawn as bins.
    """
    clock, lanes, width = scene.clock, options.get("lanes", "type"), options.get("width", 960)
    if lanes not in ("type", "rule"):
        raise RunError(f"lanes are by type or by rule, not by {lanes!r}")
    if width < _NARROWEST:
        raise RunError(f"a timeline is at least {_NARROWEST} wide")
    since, until = (None if t is None else clock.read(t) for t in (options.get("since"), options.get("until")))
    shown = scene.only(options.get("types"), since, until)
    shown = shown.by_rule() if lanes == "rule" else shown
    selected, title = shown.selected(options.get("select")), options.get("title", "")
    return Picture(
        draw(shown, selected, width, title),
        lambda: timeline_page(page_data(shown, selected, title), title),
        lambda: page_data(shown, selected, title),
    )
