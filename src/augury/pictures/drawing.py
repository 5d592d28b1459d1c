"""A timeline as SVG: a lane a type, points and bars, arrows from what an event was made of.

Lines and letters are drawn in `currentColor`, so that a page gives them its own; see `picture.py` for a file of its own.
What a script needs to zoom stands in `data-` attributes, in time points.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from html import escape
from itertools import pairwise

import numpy as np

from augury.core.arrays import Array, Integers
from augury.core.clock import Clock
from augury.core.model import Event, Iri, Value, show_value
from augury.notation import show_event
from augury.pictures.axis import about_length, ticks
from augury.pictures.lanes import Kind, Lane, Scene
from augury.pictures.packing import RADIUS, packed, text_width

INK = "currentColor"
COLOURS: dict[Kind, str] = {"event": "#0072b2", "derived": "#009e73", "detected": "#d55e00"}  # of Okabe and Ito
WORDS: dict[Kind, str] = {"event": "event", "derived": "derived on the way", "detected": "detected"}
_MARGIN, _ROW, _PAD, _HISTOGRAM, _AXIS, _BAR = 16.0, 20.0, 7.0, 40.0, 40.0, 12.0
_BIN, _LEVELS = 4.0, 4  # pixels of a bin, and how often it is divided for those who zoom
_SINGLE = 300  # events of a lane that may be drawn one by one
_LONGEST = 26  # letters of a label
_READ = 100  # letters of a text that are looked at for one


@dataclass(frozen=True)
class Scale:
    """Time points as places."""

    lo: int
    hi: int
    left: float
    width: float

    def __call__(self, time: float) -> float:
        return self.left + (time - self.lo) / (self.hi - self.lo) * self.width


@dataclass(frozen=True)
class DrawnEvent:
    """An event that is drawn: from one place to another, at a height."""

    event: Event
    kind: Kind
    gone: bool
    left: float
    right: float
    y: float


@dataclass
class Drawing:
    """What is drawn of a scene so far; the marks by lane and row."""

    scene: Scene
    scale: Scale
    y: float
    parts: list[str] = field(default_factory=list)
    marks: dict[tuple[int, int], DrawnEvent] = field(default_factory=dict)
    places: dict[int, float] = field(default_factory=dict)  # the middle of each binned lane


def draw(scene: Scene, select: Iterable[Event], width: float = 960, title: str = "") -> str:
    """A scene with the derivations of some events."""
    lanes = scene.lanes
    if not lanes:
        return _frame(width, 60, [_text(_MARGIN, 34, title or "nothing was detected, and there were no events")], "")
    gutter = min(230.0, max(text_width(f"{lane.name}  {len(lane):,}") for lane in lanes) + 18)
    lo, hi = min(int(lane.start.min()) for lane in lanes), max(int(lane.end.max()) for lane in lanes)
    spare = max(1, (hi - lo) // 50)
    scale = Scale(lo - spare, hi + spare, _MARGIN + gutter, width - gutter - 2 * _MARGIN)
    drawing = Drawing(scene, scale, _MARGIN + (22 if title else 0) + 24)
    top = drawing.y
    wanted = list(select)
    bodies = [_lane(drawing, number, lane) for number, lane in enumerate(lanes)]
    shown = _shown(drawing, wanted)
    bottom = drawing.y
    behind = [part for body in bodies for part in body[0]]
    front = [part for body in bodies for part in body[1]]
    picture = [
        *([_text(_MARGIN, _MARGIN + 12, title, size=14, weight="600")] if title else []),
        *_legend(scene, bool(shown[1]), _MARGIN + (22 if title else 0) + 10),
        *behind,
        *_axis(scene.clock, scale, top, bottom),
        *shown[1],
        *shown[0],
        *front,
    ]
    about = {"lo": scale.lo, "hi": scale.hi, "left": scale.left, "width": scale.width, "top": top, "bottom": bottom}
    data = escape(json.dumps({**about, "clock": scene.clock.kind}))
    return _frame(width, bottom + _AXIS, picture, f' data-about="{data}"', _summary(scene))


def _summary(scene: Scene) -> str:
    counts = ", ".join(f"{lane.name} ({len(lane):,})" for lane in scene.lanes)
    return f"A timeline of {counts}."


def _frame(width: float, height: float, parts: Sequence[str], data: str, about: str = "A timeline.") -> str:
    font = "font-family=\"system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', Arial, sans-serif\" font-size=\"11\""
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}"'
    return "\n".join([f'{head} role="img" aria-label="{escape(about)}" {font}{data}>', *parts, "</svg>", ""])


# Lanes


def _lane(drawing: Drawing, number: int, lane: Lane) -> tuple[list[str], list[str]]:
    """What lies behind a lane, and its marks; the drawing grows by it."""
    scale, top = drawing.scale, drawing.y
    placed = None
    if len(lane) <= _SINGLE:
        events = [lane.event(row) for row in range(len(lane))]
        spans = [(scale(e.start), max(scale(e.end), scale(e.start))) for e in events]
        labels = [(label_of(event), not gone) for event, gone in zip(events, lane.gone.tolist(), strict=True)]
        placed = packed(spans, labels, (scale.left, scale.left + scale.width))
    if placed is None:
        height = _HISTOGRAM
        drawing.places[number] = top + height - 8
        body = _histogram(drawing, lane, top + 6, height - 10)
    else:
        height = 2 * _PAD + _ROW * (1 + max(slot.row for slot in placed))
        body = []
        for row, (event, slot) in enumerate(zip(events, placed, strict=True)):
            y = top + _PAD + _ROW * (slot.row + 0.5)
            mark = DrawnEvent(event, lane.kind, bool(lane.gone[row]), slot.left, slot.right, y)
            drawing.marks[number, row] = mark
            label = "" if slot.label is None else label_of(event)
            body.append(_mark(mark, drawing.scene.clock, label, slot.label, slot.anchor, number, row))
    drawing.y = top + height
    middle = top + height / 2
    name = _cut(lane.name, int((scale.left - _MARGIN - 12) / 6.3) - len(f"{len(lane):,}") - 2)
    behind = [
        f'<rect x="{_MARGIN:g}" y="{top + 1:g}" width="{scale.left - _MARGIN + scale.width:g}" height="{height - 2:g}" '
        f'rx="3" fill="{INK}" fill-opacity="0.045"/>',
        f'<rect x="{_MARGIN:g}" y="{top + 1:g}" width="3" height="{height - 2:g}" fill="{COLOURS[lane.kind]}"/>',
        f'<text x="{_MARGIN + 10:g}" y="{middle + 4:g}" fill="{INK}" font-size="12">{escape(name)}'
        f'<tspan dx="6" font-size="10" fill-opacity="0.65">{len(lane):,}</tspan></text>',
    ]
    return behind, body


def label_of(event: Event, longest: int = _LONGEST) -> str:
    """The arguments of an event in a few letters."""
    if event.type.startswith("<"):
        return ""  # the text of a graph
    return _cut(", ".join(" ".join(_short(arg).split()) for arg in event.args), longest)


def _short(value: Value) -> str:
    """A value in a few letters: of a name of the web, the part behind its namespace."""
    match value:
        case str():
            return value[:_READ]
        case float():
            return f"{value:.5g}"
        case Iri(text):
            return re.split("[/#]", text.rstrip("/#"))[-1] or show_value(value)
        case _:
            return show_value(value)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: max(1, most - 1)] + "…"


def _mark(
    mark: DrawnEvent,
    clock: Clock,
    label: str,
    label_x: float | None,
    anchor: str,
    lane: int,
    row: int,
    small: bool = False,
) -> str:
    event, colour = mark.event, COLOURS[mark.kind]
    length = mark.right - mark.left
    times = f'data-t="{event.start} {event.end}" data-i="{lane}.{row}"'
    said = f"{show_event(event, clock)}{', taken back' if mark.gone else ''}"
    look = (
        f'fill="none" stroke="{colour}" stroke-width="1.5" stroke-dasharray="3 2"' if mark.gone else f'fill="{colour}"'
    )
    edge = f' stroke="{INK}"' if small and not mark.gone else ""  # on bars of its own colour
    if event.start == event.end or length < 3:
        r = RADIUS - (1.5 if small else 0)
        if mark.kind == "event":
            shape = f'<circle r="{r:g}" {look}{edge}/>'
        else:
            shape = f'<path d="M0 {-r - 1:g}L{r + 1:g} 0 0 {r + 1:g} {-r - 1:g} 0Z" {look}{edge}/>'
        strike = f'<path d="M{-r - 2:g} {r + 2:g}L{r + 2:g} {-r - 2:g}" stroke="{colour}" stroke-width="1.5"/>'
    else:
        h = _BAR - (4 if small else 0)
        if not mark.gone:
            look = f'fill="{colour}" fill-opacity="0.25" stroke="{colour}" stroke-width="1.5"'
        shape = f'<rect y="{-h / 2:g}" width="{length:.1f}" height="{h:g}" rx="3" {look}/>'
        strike = f'<path d="M-3 0H{length + 3:.1f}" stroke="{colour}" stroke-width="1.5" class="strike"/>'
    text = ""
    if label and label_x is not None:
        end = ' text-anchor="end"' if anchor == "end" else ""
        faded = ' fill-opacity="0.65"' if mark.gone else ""
        label_class = "" if mark.left < label_x < mark.right else ' class="label"'
        text = f'<text{label_class} x="{label_x - mark.left:.1f}" y="4" fill="{INK}"{faded}{end}>{escape(label)}</text>'
    return (
        f'<g class="mark" transform="translate({mark.left:.1f} {mark.y:.1f})" {times}><title>{escape(said)}</title>'
        f"{shape}{strike if mark.gone else ''}{text}</g>"
    )


def _histogram(drawing: Drawing, lane: Lane, top: float, height: float) -> list[str]:
    """A histogram of the events by time; retracted ones as a line."""
    scale = drawing.scale
    bins = int(scale.width / _BIN)
    stands, gone = (counted(lane, scale, bins, which) for which in (~lane.gone, lane.gone))
    most = max(1, int(stands.max()), int(gone.max()))
    shapes = [f'<path d="{_steps(stands, scale, height / most)}" fill="{COLOURS[lane.kind]}"/>']
    if gone.any():
        outline = _steps(gone, scale, height / most)
        shapes.append(f'<path d="{outline}" fill="none" stroke="{INK}" stroke-dasharray="3 2"/>')
    said = f"up to {most:,} in {about_length((scale.hi - scale.lo) / bins, drawing.scene.clock)}"
    return [
        f'<g class="bins" data-level="0" data-y="{top + height:g}">',
        f'<g transform="translate(0 {top + height:g})"><title>{escape(lane.name)}: {said}</title>{"".join(shapes)}</g>',
        f'<text class="label" x="{scale.left + scale.width - 4:g}" y="{top + 4:g}" text-anchor="end" font-size="10" fill="{INK}" '
        f'fill-opacity="0.75">{said}</text></g>',
    ]


def counted(lane: Lane, scale: Scale, bins: int, which: Array) -> Array:
    """How many events of a lane touch each bin of the time that is shown."""
    size = (scale.hi - scale.lo) / bins
    first = np.clip((lane.start[which] - scale.lo) // size, 0, bins - 1).astype(np.int64)
    last = np.clip((lane.end[which] - scale.lo) // size, 0, bins - 1).astype(np.int64)
    steps = np.bincount(first, minlength=bins + 1) - np.bincount(last + 1, minlength=bins + 1)
    return np.cumsum(steps)[:bins]


def _steps(counts: Integers, scale: Scale, unit: float) -> str:
    """The outline of bars, those side by side that are alike as one."""
    width = scale.width / len(counts)
    edges = np.flatnonzero(np.diff(counts, prepend=0, append=0)).tolist()
    path: list[str] = []
    for first, after in pairwise(edges):
        if counts[first]:
            left, right = scale.left + first * width, scale.left + after * width
            path.append(f"M{left:.2f} 0V{-max(1.0, counts[first] * unit):.1f}H{max(right, left + 1):.2f}V0Z")
    return "".join(path)


# Derivations


def _shown(drawing: Drawing, wanted: Sequence[Event]) -> tuple[list[str], list[str]]:
    """Marks of what is selected inside bins, and the arrows to it."""
    marks: dict[str, str] = {}
    arrows: dict[tuple[str, str], str] = {}
    for event in wanted:
        for part, whole in _edges(drawing.scene, event):
            ends = [_found(drawing, item) for item in (part, whole)]
            if None in ends:
                continue
            (key1, mark1), (key2, mark2) = ends  # type: ignore[misc]
            for key, mark in ((key1, mark1), (key2, mark2)):
                if key not in drawing.marks:
                    lane, row = key
                    marks[f"{key}"] = _mark(mark, drawing.scene.clock, "", None, "", lane, row, small=True)
            arrows[f"{key1}", f"{key2}"] = _arrow(mark1, mark2)
    return list(marks.values()), list(arrows.values())


def _edges(scene: Scene, event: Event) -> Iterator[tuple[Event, Event]]:
    """The parts of an event, and theirs, down to the inputs."""
    seen: set[str] = set()
    open_events = [event]
    while open_events:
        whole = open_events.pop()
        if whole.id in seen:
            continue
        seen.add(whole.id)
        for part in scene.parts(whole):
            yield part, whole
            open_events.append(part)


def _found(drawing: Drawing, event: Event) -> tuple[tuple[int, int], DrawnEvent] | None:
    """The mark of an event; in a lane of bins it gets one now."""
    for number, lane in enumerate(drawing.scene.lanes):
        if lane.name != event.type and (lane.kind == "event" or lane.name != drawing.scene.rule(event)):
            continue
        row = lane.find(event)
        if row is None:
            continue
        mark = drawing.marks.get((number, row))
        if mark is None:
            left, right = drawing.scale(event.start), drawing.scale(event.end)
            mark = DrawnEvent(event, lane.kind, bool(lane.gone[row]), left, right, drawing.places[number])
        return (number, row), mark
    return None


def _arrow(part: DrawnEvent, whole: DrawnEvent) -> str:
    """From the end of a part to the place in the whole that is nearest."""
    x1 = part.right
    x2 = min(max(x1, whole.left), whole.right)
    times = f'data-x="{part.event.end} {min(max(part.event.end, whole.event.start), whole.event.end)}"'
    down = 1 if whole.y >= part.y else -1
    if abs(whole.y - part.y) < 4:
        y1 = y2 = part.y - 7
        path = f"M{x1:.1f} {y1:.1f}C{x1:.1f} {y1 - 12:.1f} {x2:.1f} {y2 - 12:.1f} {x2:.1f} {y2 - 4:.1f}"
        down = 1
    else:
        y1, y2 = part.y + 6 * down, whole.y - 8 * down
        middle = (y1 + y2) / 2
        path = f"M{x1:.1f} {y1:.1f}C{x1:.1f} {middle:.1f} {x2:.1f} {middle:.1f} {x2:.1f} {y2 - 4 * down:.1f}"
    head = f"M{x2 - 3.2:.1f} {y2 - 5 * down:.1f}L{x2 + 3.2:.1f} {y2 - 5 * down:.1f} {x2:.1f} {y2 + 1.5 * down:.1f}Z"
    return (
        f'<g class="arrow" opacity="0.6" {times} data-y="{y1:.1f} {y2:.1f} {down}">'
        f'<path d="{path}" fill="none" stroke="{INK}"/><path d="{head}" fill="{INK}"/></g>'
    )


# Around it


def _text(x: float, y: float, words: str, size: int = 11, weight: str = "", anchor: str = "", opacity: str = "") -> str:
    more = "".join(
        f' {name}="{value}"'
        for name, value in (("font-weight", weight), ("text-anchor", anchor), ("fill-opacity", opacity))
        if value
    )
    return f'<text x="{x:g}" y="{y:g}" font-size="{size}" fill="{INK}"{more}>{escape(words)}</text>'


def _legend(scene: Scene, arrows: bool, y: float) -> list[str]:
    result: list[str] = []
    x = _MARGIN + 6
    for kind in dict.fromkeys(lane.kind for lane in scene.lanes):
        c = COLOURS[kind]
        shape = f'<circle cx="{x:g}" cy="{y - 4:g}" r="4.5" fill="{c}"/>'
        if kind != "event":
            shape = f'<path d="M{x:g} {y - 9.5:g}l5.5 5.5-5.5 5.5-5.5-5.5z" fill="{c}"/>'
        bar = f'<rect x="{x + 10:g}" y="{y - 9:g}" width="16" height="10" rx="3" fill="{c}" fill-opacity="0.25" stroke="{c}" stroke-width="1.5"/>'
        result += [shape, bar, _text(x + 32, y, WORDS[kind], opacity="0.8")]
        x += 32 + text_width(WORDS[kind]) + 20
    if any(lane.gone.any() for lane in scene.lanes):
        result.append(
            f'<g fill="none" stroke="{INK}" stroke-width="1.5"><rect x="{x - 5:g}" y="{y - 9:g}" width="22" height="10" rx="3" '
            f'stroke-dasharray="3 2"/><path d="M{x - 8:g} {y - 4:g}h28"/></g>'
        )
        result.append(_text(x + 26, y, "taken back", opacity="0.8"))
        x += 26 + text_width("taken back") + 20
    if arrows:
        result.append(
            f'<g opacity="0.6"><path d="M{x:g} {y - 11:g}v9" stroke="{INK}"/>'
            f'<path d="M{x - 3.2:g} {y - 4:g}h6.4l-3.2 6.5z" fill="{INK}"/></g>'
        )
        result.append(_text(x + 10, y, "is part of", opacity="0.8"))
    return result


def _axis(clock: Clock, scale: Scale, top: float, bottom: float) -> list[str]:
    result = [f'<g class="axis" stroke="{INK}" stroke-opacity="0.14">']
    marks = ticks(scale.lo, scale.hi, clock, max(2, int(scale.width / 90)))
    result += [f'<path d="M{scale(mark.time):.1f} {top:g}V{bottom + 4:g}"/>' for mark in marks]
    result += ["</g>", '<g class="times">']
    edge = scale.left + scale.width + 14
    for mark in marks:
        result.append(_text(round(scale(mark.time), 1), bottom + 17, mark.text, anchor="middle", opacity="0.9"))
        if mark.below:
            x = min(scale(mark.time), edge - text_width(mark.below) / 2)
            result.append(_text(round(x, 1), bottom + 31, mark.below, size=10, anchor="middle", opacity="0.7"))
    result.append("</g>")
    unit = "UTC" if clock.kind == "timestamp" else "ticks"
    first = min((scale(mark.time) - text_width(mark.text) / 2 for mark in marks[:1]), default=scale.left)
    x = round(min(scale.left - 10, first - 6), 1)
    result.append(_text(x, bottom + 17, unit, size=10, anchor="end", opacity="0.65"))
    return result
