"""Events on a map: where their arguments are longitudes and latitudes, or names of places that are known."""

from __future__ import annotations

import math
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from augury.core.arrays import Array
from augury.core.errors import RunError, visible
from augury.core.model import Event, Value
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
    columns = [
        next((i for i, name in enumerate(names) if name in spellings), None) for spellings in (LONGITUDE, LATITUDE)
    ]
    points: list[tuple[float, float, str]] = []
    for event in events:
        if columns[0] is not None and columns[1] is not None:
            point = _numbers(event.args[columns[0]], event.args[columns[1]])
            name = ""
        else:
            name = next((arg for arg in event.args if isinstance(arg, str) and arg in places), "")
            point = _numbers(*places[name]) if name else None
        if point is not None:
            points.append((*point, name))
    return Located(type, kind, points)


def _numbers(longitude: Value, latitude: Value) -> tuple[float, float] | None:
    for value in (longitude, latitude):
        if isinstance(value, bool) or not isinstance(value, int | float):
            return None
    x, y = float(longitude), float(latitude)  # type: ignore[arg-type]
    return (x, y) if abs(x) <= 360 and abs(y) <= 90 else None


def draw_map(groups: Sequence[Located], title: str = "", width: float = 720) -> Picture:
    """A map of degrees, with coastlines behind.

    Events are small points; detections are marks of a colour and a shape a type, larger where there are more.
    """
    shown = [item for item in groups if item.points]
    if not shown:
        raise RunError(
            "no event has a place",
            "name attributes longitude and latitude (or lon and lat), or give places={'s1': (longitude, latitude)}",
        )
    points = [point for item in shown for point in item.points]
    (west, east), (south, north) = _bounds([p[0] for p in points], 180), _bounds([p[1] for p in points], 90)
    wide = math.cos(math.radians((south + north) / 2)) * (east - west)  # in degrees of latitude
    height = min(max(width * (north - south) / max(wide, 1e-9), 0.35 * width), width)
    with style():
        from matplotlib.collections import LineCollection

        drawn = figure(width, height + 70)
        axes = drawn.add_subplot()
        axes.set_xlim(west, east)
        axes.set_ylim(south, north)
        axes.set_aspect((east - west) / wide, adjustable="box")
        across = min(width, height * wide / (north - south))  # a narrow map has room for few longitudes
        lines = coastlines((west, east), (south, north), 2 * (east - west) / across)
        axes.add_collection(LineCollection(lines, colors="#b8bec8", linewidths=0.8, zorder=0))
        axes.locator_params(axis="x", nbins=max(2, min(9, round(across / 80))))
        number = 0
        for item in sorted(shown, key=lambda group: ("event", "derived", "detected").index(group.kind)):
            counts = Counter(item.points)
            distinct = sorted(counts)
            x, y = [p[0] for p in distinct], [p[1] for p in distinct]
            label = f"{visible(item.type)} ({len(item.points):,})"
            faint = 0.25 if len(distinct) > _SWARM else 1.0
            if item.kind == "event":
                axes.scatter(x, y, s=14, marker=".", color="#8a8f98", alpha=min(faint, 0.8), label=label)
            else:
                edge, marker = PALETTE[number % len(PALETTE)], MARKERS[number % len(MARKERS)]
                fill = "none" if item.kind == "derived" else edge
                largest = min(max(2500 / len(distinct), 24), 110)
                sizes = [largest * (0.4 + 0.6 * counts[p] / max(counts.values())) for p in distinct]
                axes.scatter(
                    x, y, s=sizes, marker=marker, edgecolors=edge, alpha=min(faint, 0.85), label=label, facecolors=fill
                )
                number += 1
        names = {visible(name): (x, y) for x, y, name in points if name}
        if len(names) <= _LABELLED:
            scale = (across / (east - west), height / (north - south))
            for name, anchor, (right, up) in _labels(names, scale):
                side = "left" if right > 0 else "right"
                axes.annotate(name, anchor, xytext=(right, up), textcoords="offset points", fontsize=9, ha=side)
        axes.xaxis.set_major_formatter(lambda x, _: _degrees(x, "E", "W"))
        axes.yaxis.set_major_formatter(lambda y, _: _degrees(y, "N", "S"))
        if title:
            axes.set_title(textwrap.fill(visible(title), max(30, int(across / 10))))
        drawn.legend(loc="outside lower left", ncols=3, fontsize=9)
        return picture_of(drawn, title or "Map")


@cache
def _outline() -> tuple[Array, Array]:
    """Points of coastlines, in hundredths of a degree, and where each line begins. From Natural Earth, public domain."""
    with np.load(Path(__file__).parent / "coastlines.npz") as data:
        return data["points"], data["starts"]


def coastlines(across: tuple[float, float], up: tuple[float, float], pixel: float = 0.0) -> list[Array]:
    """The coastlines that touch a part of the world, in degrees, without what is smaller than `pixel` degrees."""
    points, starts = _outline()
    least, greatest = np.minimum.reduceat(points, starts) / 100, np.maximum.reduceat(points, starts) / 100
    low, high = np.array([across[0], up[0]]), np.array([across[1], up[1]])
    touching = np.flatnonzero((least <= high).all(axis=1) & (greatest >= low).all(axis=1))
    stops = np.append(starts[1:], len(points))
    lines = [points[starts[i] : stops[i]] / 100 for i in touching.tolist()]
    if not pixel:
        return lines
    moves = [np.r_[True, (np.diff(np.round(line / pixel), axis=0) != 0).any(axis=1)] for line in lines]
    return [line[moved] for line, moved in zip(lines, moves, strict=True) if moved.sum() > 2]


def _labels(
    names: Mapping[str, tuple[float, float]], scale: tuple[float, float]
) -> Iterator[tuple[str, tuple[float, float], tuple[int, int]]]:
    """Names of places, and on which side of the place each stands: where none is yet. `scale` is points by degree."""
    taken: list[tuple[float, float, float]] = []
    for name, (x, y) in sorted(names.items(), key=lambda item: -item[1][1]):
        width = 6.0 * len(name)

        def box(right: int, up: int, x: float = x, y: float = y, width: float = width) -> tuple[float, float, float]:
            left = x * scale[0] + right - (0 if right > 0 else width)
            return left, left + width, y * scale[1] + up

        ways = [(7, 5), (-7, 5), (7, -12), (-7, -12)]
        free = [w for w in ways if not any(_touch(box(*w), other) for other in taken)]
        chosen = (free or ways)[0]
        taken.append(box(*chosen))
        yield name, (x, y), chosen


def _touch(box: tuple[float, float, float], other: tuple[float, float, float]) -> bool:
    """Whether texts overlap: left, right and height of each."""
    return box[0] < other[1] and other[0] < box[1] and abs(box[2] - other[2]) < 11


def _bounds(values: Sequence[float], most: float) -> tuple[float, float]:
    """The least and the greatest, with some room around, but not beyond the edge of the world."""
    low, high = min(values), max(values)
    spare = max(0.08 * (high - low), 0.02)
    return max(low - spare, min(low, -most)), min(high + spare, max(high, most))


def _degrees(value: float, positive: str, negative: str) -> str:
    text = f"{abs(value):.6g}°"
    return text if value == 0 else text + (positive if value > 0 else negative)
