"""Points on the sphere, found by distance: the index behind `distance_km(…) < km`.

Points are cut into bands by latitude, each with about as many points as there are bands; inside a band they are in the
order of longitudes. A circle meets a few bands, and in each a range of longitudes. Chords tell which of these points are
inside but for those within 0.1 mm of the circle, which the function itself decides: so the pairs are exactly those that
it gives.

Points that are added make a level of their own, and levels of like size are merged: a point is put in order a logarithmic
number of times.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from augury.algebra.sphere import EARTH_KM, distances_km
from augury.core.arrays import Array, Flags, Floats, RowIds, Times
from augury.core.jit import Kernel
from augury.storage.unique import unique

_DOUBT = 1e-11  # of a chord on the unit sphere; the distance and the chords are right to 1e-14
_SLACK = 1e-7  # of latitudes and longitudes, in degrees
_ALL_AROUND = 179.9  # a circle that is as wide takes the whole band


class PointIndex:
    """An index of points, whose rows are counted from 0 in the order in which they come.

    A point without a place, see `placed`, has a row, too, but is near nothing.
    """

    def __init__(self, lat: Floats | Sequence[float] = (), lon: Floats | Sequence[float] = ()) -> None:
        self._lat, self._lon, self._alive = np.zeros(16), np.zeros(16), np.zeros(16, np.uint8)
        self._levels: list[_Level] = []
        self._count = self._dead = 0
        self.touched = 0  # how many points were looked at
        self.add(lat, lon)

    def __len__(self) -> int:
        """How many points can be found."""
        return sum(len(level.rows) for level in self._levels) - self._dead

    def add(self, lat: Floats | Sequence[float], lon: Floats | Sequence[float]) -> Array:
        """Adds points; their rows."""
        lat, lon = _degrees(lat), _degrees(lon)
        first, self._count = self._count, self._count + len(lat)
        self._make_room()
        rows = np.arange(first, self._count)
        self._lat[rows], self._lon[rows], self._alive[rows] = lat, lon, placed(lat, lon)
        new = rows[self._alive[rows] == 1]
        while self._levels and len(self._levels[-1].rows) <= 2 * len(new):
            new = np.concatenate([self._kept(self._levels.pop()), new])
        if len(new):
            self._levels.append(_level(new, self._lat[new], self._lon[new]))
        return rows

    def remove(self, rows: RowIds) -> None:
        """Takes points out; their rows are not given to others."""
        rows = unique(np.asarray(rows, np.int64))
        rows = rows[self._alive[rows] == 1]
        self._alive[rows] = 0
        self._dead += len(rows)
        if self._dead > len(self):
            left = np.concatenate([self._kept(level) for level in self._levels])
            self._levels = [_level(left, self._lat[left], self._lon[left])] if len(left) else []

    def within(self, lat: Floats, lon: Floats, km: Array | float, strict: bool) -> tuple[Array, Array]:
        """The pairs (query, row) whose `distance_km` is at most `km`, or less where `strict`, in this order."""
        lat, lon = _degrees(lat), _degrees(lon)
        km = np.broadcast_to(_degrees(km), lat.shape)
        asked = np.flatnonzero(placed(lat, lon) & (km >= 0))
        bits = max(self._count, 1).bit_length()
        circles = _circles(lat[asked], lon[asked], km[asked])
        keys = [self._keys(level, asked, circles, bits) for level in self._levels]
        ordered = np.sort(np.concatenate([np.empty(0, np.int64), *keys]), kind="stable")  # it is nearly in order
        queries, rows, doubtful = ordered >> (bits + 1), (ordered >> 1) & ((1 << bits) - 1), np.flatnonzero(ordered & 1)
        if not len(doubtful):
            return queries, rows
        q, row = queries[doubtful], rows[doubtful]
        exact = distances_km(lat[q], lon[q], self._lat[row], self._lon[row])
        kept = np.ones(len(ordered), bool)
        kept[doubtful] = exact < km[q] if strict else exact <= km[q]
        return queries[kept], rows[kept]

    def _keys(self, level: _Level, asked: Array, circles: Array, bits: int) -> Array:
        """Pairs of a level, as the keys that `around` makes."""
        portions: list[Array] = []
        first, room = 0, np.empty(1024 + 4 * len(asked), np.int64)
        while first < len(asked):
            came, n, touched = around(asked, first, circles, level, self._alive, bits, room)
            self.touched += touched
            portions.append(room[:n].copy())
            if came < len(asked):
                room = np.empty(4 * len(room), np.int64)
            first = came
        return np.concatenate(portions) if portions else np.empty(0, np.int64)

    def _kept(self, level: _Level) -> Array:
        """The rows of a level that goes, without the dead."""
        left: Array = level.rows[self._alive[level.rows] == 1]
        self._dead -= len(level.rows) - len(left)
        return left

    def _make_room(self) -> None:
        if self._count > len(self._lat):
            more = 2 * self._count - len(self._lat)
            self._lat, self._lon, self._alive = (
                np.concatenate([c, np.zeros(more, c.dtype)]) for c in (self._lat, self._lon, self._alive)
            )


class _Level(NamedTuple):
    """Points that were put in order together.

    Band b has the points from first[b] up to first[b + 1], and the latitudes from ends[0, b] up to ends[1, b]. Of each
    point there is the longitude, from 0 to 360, the place (x, y, z) on the unit sphere, and the row.
    """

    ends: Times
    first: Array
    lon: Floats
    places: Array
    rows: RowIds


def _level(rows: RowIds, lat: Floats, lon: Floats) -> _Level:
    """Puts points in order."""
    size = max(int(np.sqrt(len(rows))), 8)
    band = np.empty(len(rows), np.int64)
    band[np.argsort(lat, kind="stable")] = np.arange(len(rows)) // size
    turned = _turned(lon)
    order = np.lexsort((turned, band))
    first = np.append(np.arange(0, len(rows), size), len(rows))
    lat = lat[order]
    ends = np.stack([np.minimum.reduceat(lat, first[:-1]), np.maximum.reduceat(lat, first[:-1])])
    turned = turned[order]
    return _Level(ends, first, turned, np.stack(_place(lat, turned)), rows[order])


def placed(lat: Floats, lon: Floats) -> Array:
    """Which rows have a place: a latitude from -90 to 90 and a longitude. Of the others there is no distance."""
    lat, lon = _degrees(lat), _degrees(lon)
    return (np.abs(lat) <= 90) & np.isfinite(lon)


def _degrees(column: Array | Sequence[float] | float) -> Array:
    """Numbers as floats; NaN in place of what is no number."""
    column = np.asarray(column)
    if column.dtype.kind == "O":
        flat = [float(v) if type(v) in (int, float) else np.nan for v in column.ravel().tolist()]
        return np.array(flat, np.float64).reshape(column.shape)
    return column.astype(np.float64) if column.dtype.kind in "iuf" else np.full(column.shape, np.nan)


def _turned(lon: Floats) -> Array:
    """Longitudes from 0 to 360."""
    turned = np.fmod(lon, 360)
    return np.where(turned < 0, turned + 360, turned)


def _place(lat: Floats, lon: Floats) -> tuple[Array, Array, Array]:
    """Points on the unit sphere."""
    phi, turn = np.radians(lat), np.radians(lon)
    return np.cos(phi) * np.cos(turn), np.cos(phi) * np.sin(turn), np.sin(phi)


def _circles(lat: Floats, lon: Floats, km: Array) -> Array:
    """The parameters of `around` for each query: x, y, z, the square of the chord below which a point is surely inside, that
    above which it is surely outside, the latitudes from and to, and the longitudes from and to."""
    turned = _turned(lon)
    angle = np.minimum(km / EARTH_KM, np.pi)
    chord = 2 * np.sin(angle / 2)
    inside = np.where(km > 1.001 * np.pi * EARTH_KM, 9.0, np.maximum(chord - _DOUBT, 0) ** 2)
    reach = np.degrees(angle) + _SLACK
    beside_pole = np.abs(lat) + reach > 89.99  # a pole is inside, or so close that the width of the circle is unsure
    with np.errstate(all="ignore"):
        width = np.degrees(np.arcsin(np.sin(np.radians(reach)) / np.cos(np.radians(lat)))) + _SLACK
    width = np.where(beside_pole | ~(width < _ALL_AROUND), 360.0, width)
    return np.stack(
        [*_place(lat, turned), inside, (chord + _DOUBT) ** 2, lat - reach, lat + reach, turned - width, turned + width]
    )


@Kernel
def around(
    asked: Array, begin: int, circles: Array, level: _Level, alive: Flags, bits: int, keys: Array
) -> tuple[int, int, int]:
    """Finds the points of a level around queries, as keys: the query, then `bits` bits for the row, then 1 for doubt.

    Returns how far it came, how many points it found, and how many it looked at; it stops early where `found` has no room.
    """
    ends, first, lon, places, rows = level
    n, room, touched, bands = 0, len(keys), 0, len(first) - 1
    for i in range(begin, len(asked)):
        x, y, z, inside, outside = circles[0, i], circles[1, i], circles[2, i], circles[3, i], circles[4, i]
        south, north, west, east = circles[5, i], circles[6, i], circles[7, i], circles[8, i]
        whole = east - west >= 360
        began = n
        low, high = 0, bands  # the first band that reaches to the south of the circle
        while low < high:
            middle = (low + high) >> 1
            if ends[1, middle] < south:
                low = middle + 1
            else:
                high = middle
        for band in range(low, bands):
            if ends[0, band] > north:
                break
            for turn in range(-360, 361, 360):  # a circle across the meridian has two ranges of longitudes
                start, stop = west + turn, east + turn
                if whole:
                    start, stop = 0.0, 360.0
                if stop < 0 or start > 360 or (whole and turn != 0):
                    continue
                low, high = first[band], first[band + 1]
                last = high
                while low < high:
                    middle = (low + high) >> 1
                    if lon[middle] < start:
                        low = middle + 1
                    else:
                        high = middle
                for k in range(low, last):
                    if lon[k] > stop:
                        break
                    touched += 1
                    dx, dy, dz = places[0, k] - x, places[1, k] - y, places[2, k] - z
                    chord = dx * dx + dy * dy + dz * dz
                    if chord <= outside and alive[rows[k]]:
                        if n == room:
                            return i, began, touched
                        keys[n] = (((asked[i] << bits) | rows[k]) << 1) | (0 if chord < inside else 1)
                        n += 1
    return len(asked), n, touched
