"""Events on a map: where their arguments are longitudes and latitudes, or names of places that are known."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from augury.errors import RunError
from augury.model import Event, Value
from augury.pictures.lanes import Kind
from augury.pictures.picture import Picture
from augury.pictures.plots import MARKERS, PALETTE, figure, picture_of, style

LONGITUDE, LATITUDE = ("longitude", "lon", "lng", "long"), ("latitude", "lat")
_LABELLED = 25  # places that are few enough to name
_SWARM = 3000  # points from which on they are drawn faint
Places = Mapping[Any, tuple[float, float]]


@dataclass(frozen=True)
class Located:
    """Events of one type at places: longitude, latitude, and the name of the place where it has one."""

    type: str
    kind: Kind
    points: Sequence[tuple[float, float, str]]


def located(type: str, kind: Kind, events: Iterable[Event], names: Sequence[str], places: Places) -> Located:
    """The places of events of one type. `names` are those of their arguments; events at no place are left out."""
    at = [next((i for i, name in enumerate(names) if name in known), None) for known in (LONGITUDE, LATITUDE)]
    points: list[tuple[float, float, str]] = []
    for event in events:
        if at[0] is not None and at[1] is not None:
            found = _numbers(event.args[at[0]], event.args[at[1]])
            name = ""
        else:
            name = next((arg for arg in event.args if isinstance(arg, str) and arg in places), "")
            found = _numbers(*places[name]) if name else None
        if found is not None:
            points.append((*found, name))
    return Located(type, kind, points)


def _numbers(longitude: Value, latitude: Value) -> tuple[float, float] | None:
    for value in (longitude, latitude):
        if isinstance(value, bool) or not isinstance(value, int | float):
            return None
    x, y = float(longitude), float(latitude)  # type: ignore[arg-type]
    return (x, y) if abs(x) <= 360 and abs(y) <= 90 else None


def draw_map(found: Sequence[Located], title: str = "", width: float = 720) -> Picture:
    """A map of degrees, without a background.

    Events are small points; detections are marks of a colour and a shape a type, larger where there are more.
    """
    shown = [one for one in found if one.points]
    if not shown:
        raise RunError(
            "no event has a place",
            "name attributes longitude and latitude (or lon and lat), or give places={'s1': (longitude, latitude)}",
        )
    points = [point for one in shown for point in one.points]
    (west, east), (south, north) = _bounds([p[0] for p in points]), _bounds([p[1] for p in points])
    wide = math.cos(math.radians((south + north) / 2)) * (east - west)  # in degrees of latitude
    height = min(max(width * (north - south) / max(wide, 1e-9), 0.35 * width), width)
    with style():
        drawn = figure(width, height + 70)
        axes = drawn.add_subplot()
        axes.set_xlim(west, east)
        axes.set_ylim(south, north)
        axes.set_aspect((east - west) / wide, adjustable="box")
        across = min(width, height * wide / (north - south))  # a narrow map has room for few longitudes
        axes.locator_params(axis="x", nbins=max(2, min(9, round(across / 80))))
        number = 0
        for one in sorted(shown, key=lambda one: ("event", "derived", "detected").index(one.kind)):
            counts = Counter(one.points)
            distinct = sorted(counts)
            x, y = [p[0] for p in distinct], [p[1] for p in distinct]
            label = f"{one.type} ({len(one.points):,})"
            faint = 0.25 if len(distinct) > _SWARM else 1.0
            if one.kind == "event":
                axes.scatter(x, y, s=14, marker=".", color="#8a8f98", alpha=min(faint, 0.8), label=label)
            else:
                edge, marker = PALETTE[number % len(PALETTE)], MARKERS[number % len(MARKERS)]
                fill = "none" if one.kind == "derived" else edge
                largest = min(max(2500 / len(distinct), 24), 110)
                sizes = [largest * (0.4 + 0.6 * counts[p] / max(counts.values())) for p in distinct]
                axes.scatter(
                    x, y, s=sizes, marker=marker, edgecolors=edge, alpha=min(faint, 0.85), label=label, facecolors=fill
                )
                number += 1
        names = {name: (x, y) for x, y, name in points if name}
        for name, place in names.items() if len(names) <= _LABELLED else ():
            axes.annotate(name, place, xytext=(7, 5), textcoords="offset points", fontsize=9)
        axes.xaxis.set_major_formatter(lambda x, _: _degrees(x, "E", "W"))
        axes.yaxis.set_major_formatter(lambda y, _: _degrees(y, "N", "S"))
        if title:
            axes.set_title(title)
        drawn.legend(loc="outside lower left", ncols=3, fontsize=9)
        return picture_of(drawn, title or "Map")


def _bounds(values: Sequence[float]) -> tuple[float, float]:
    """The least and the greatest, with some room around."""
    spare = max(0.08 * (max(values) - min(values)), 0.02)
    return min(values) - spare, max(values) + spare


def _degrees(value: float, positive: str, negative: str) -> str:
    text = f"{abs(value):.6g}°"
    return text if value == 0 else text + (positive if value > 0 else negative)
