"""The index of points gives exactly the pairs that `distance_km` gives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import augury
from augury.algebra.scalar import FUNCTIONS, RowError, apply, compare
from augury.algebra.sphere import distances_km
from augury.knowledge import near
from augury.knowledge.near import PointIndex, placed

DISTANCE = FUNCTIONS["distance_km"]
Point = tuple[Any, Any]

latitudes = st.one_of(
    st.sampled_from([90, -90, 0, 0.0, 89.9999999, -89.9999999, 45.0, 1e-9]), st.floats(-90, 90), st.floats(88, 90)
)
longitudes = st.one_of(
    st.sampled_from([0, 180, -180, 360, -360, 179.9999999, -179.9999999, -1e-20, 359.9999999, 540, 90]),
    st.floats(-180, 180),
    st.floats(-1000, 1000),
)
# Many points are alike or close together.
spots = st.tuples(st.sampled_from([0.0, 52.5, -90.0, 89.999]), st.sampled_from([0.0, 179.999, -179.999, 13.4]))
shifts = st.sampled_from([0.0, 1e-9, -1e-9, 1e-4, -1e-3, 0.01])
close = st.builds(lambda p, x, y: (max(p[0] + x, -90.0), p[1] + y), spots, shifts, shifts)
nowhere = st.sampled_from([(None, 0.0), (0.0, None), (91, 0), (-90.5, 0.0), (float("nan"), 1.0), (1.0, float("nan"))])
points = st.one_of(st.tuples(latitudes, longitudes), close, close, nowhere)
reaches = st.one_of(
    st.sampled_from(
        [0, 0.0, -1.0, 1e-9, 1e-4, 0.1, 50, 10018.754171394621, 20037.508342789242, 20037.5, 20038, 1e9, None]
    ),
    st.floats(0, 20100),
    st.floats(0, 300),
)


def columns(given: Sequence[Point]) -> tuple[Any, Any]:
    """The latitudes and the longitudes, as arrays of objects."""
    lat, lon = np.empty(len(given), object), np.empty(len(given), object)
    lat[:], lon[:] = [p[0] for p in given], [p[1] for p in given]
    return lat, lon


def one_by_one(query: Point, km: Any, point: Point, strict: bool) -> bool:
    """What the language says."""
    values = [None if isinstance(v, float) and v != v else v for v in (*query, *point)]
    try:
        return compare("<" if strict else "<=", apply(DISTANCE, tuple(values)), km)
    except RowError:
        return False


def expected(points: Sequence[Point], queries: Sequence[Point], kms: Sequence[Any], strict: bool) -> list[Point]:
    return [
        (q, p)
        for q, (query, km) in enumerate(zip(queries, kms, strict=True))
        for p, point in enumerate(points)
        if one_by_one(query, km, point, strict)
    ]


def pairs(found: tuple[Any, Any]) -> list[Point]:
    return list(zip(found[0].tolist(), found[1].tolist(), strict=True))


def objects(values: Sequence[Any]) -> Any:
    array = np.empty(len(values), object)
    array[:] = values
    return array


@given(st.lists(points, max_size=25), st.lists(st.tuples(points, reaches), max_size=8), st.booleans())
def test_the_pairs_are_those_of_the_function(
    given: list[Point], asked: list[tuple[Point, Any]], strict: bool
) -> None:  # fmt: skip
    queries, kms = [q for q, _ in asked], [km for _, km in asked]
    found = PointIndex(*columns(given)).within(*columns(queries), objects(kms), strict)
    assert pairs(found) == expected(given, queries, kms, strict)


@given(st.lists(points, min_size=1, max_size=12), st.data())
def test_a_point_on_the_circle(given: list[Point], data: st.DataObject) -> None:
    """The very distance of two points, and the floats beside it."""
    query = data.draw(points)
    lat, lon = (np.array([np.nan if v is None else v for v in c], float) for c in columns(given))
    if query[0] is None or query[1] is None:
        return
    exact = distances_km(np.full(len(lat), query[0], float), np.full(len(lat), query[1], float), lat, lon)
    index = PointIndex(lat, lon)
    for km in (k for d in exact[np.isfinite(exact)].tolist() for k in (d, np.nextafter(d, -1), np.nextafter(d, 1e9))):
        for strict in (True, False):
            found = index.within(*columns([query]), km, strict)
            assert pairs(found) == expected(given, [query], [float(km)], strict)


@given(
    st.lists(st.one_of(st.lists(points, max_size=12), st.lists(st.integers(0, 60), max_size=12)), max_size=8), st.data()
)
def test_points_come_and_go(steps: list[list[Any]], data: st.DataObject) -> None:
    index, model, gone = PointIndex(), list[Point](), set[int]()
    for step in steps:
        if step and isinstance(step[0], int):
            rows = [row for row in step if row < len(model)]
            index.remove(np.array(rows, np.int64))
            gone.update(rows)
        else:
            rows = index.add(*columns(step)).tolist()
            assert rows == list(range(len(model), len(model) + len(step)))
            model += step
        query, km = data.draw(points), data.draw(reaches)
        found = pairs(index.within(*columns([query]), objects([km]), False))
        assert found == [(q, p) for q, p in expected(model, [query], [km], False) if p not in gone]
        assert len(index) == sum(bool(ok) and i not in gone for i, ok in enumerate(placed(*columns(model))))


def spread(count: int, seed: int) -> tuple[Any, Any]:
    """Points all over the sphere, one in ten around a pole."""
    random = np.random.default_rng(seed)
    lat, lon = np.degrees(np.arcsin(random.uniform(-1, 1, count))), random.uniform(-180, 180, count)
    lat[: count // 10] = 90 - random.uniform(0, 3, count // 10)
    return lat, lon


@pytest.fixture(params=["as written", "compiled"])
def kernel(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    numba = pytest.importorskip("numba")
    python = near.around.python
    monkeypatch.setattr(near.around, "call", python if request.param == "as written" else numba.njit(python))


@pytest.mark.usefixtures("kernel")
@pytest.mark.parametrize("km", [30.0, 700.0, 19_000.0])
def test_many_points_have_the_pairs_of_brute_force(km: float) -> None:
    points, queries = spread(1500, 1), spread(40, 2)
    index = PointIndex(points[0][:700], points[1][:700])
    for first in range(700, 1500, 50):
        index.add(points[0][first : first + 50], points[1][first : first + 50])
    assert len(index._levels) <= 6
    found = index.within(*queries, km, True)
    grid = [np.repeat(c, 1500) for c in queries]
    near_ones = distances_km(*grid, *(np.tile(c, 40) for c in points)) < km
    assert pairs(found) == [divmod(i, 1500) for i in np.flatnonzero(near_ones).tolist()]
    if km < 1000:
        assert index.touched < 4 * len(found[0]) + 200


def test_few_points_are_looked_at() -> None:
    """A circle of 2 % of the sphere looks at not much more than is in it."""
    index = PointIndex(*spread(20_000, 3))
    found = index.within(*spread(10, 4), 500.0, True)
    assert len(found[0]) <= index.touched < 2 * len(found[0]) + 200


def test_columns_and_single_values_are_equal_to_the_last_bit() -> None:
    """Also for parts of arrays of any length and alignment."""
    lat1, lon1 = spread(20_000, 5)
    lat2, lon2 = spread(20_000, 6)
    lat2[5000:] = np.clip(lat1[5000:] + np.geomspace(1e-13, 10, 15_000), -90, 90)
    lon2[10_000:] = lon1[10_000:] + np.geomspace(10, 1e-13, 10_000) + 360
    given = (lat1, lon1, lat2, lon2)
    found = distances_km(*given)
    assert found.tolist() == [DISTANCE.call(*row) for row in zip(*(c.tolist() for c in given), strict=True)]
    assert found.tolist() == distances_km(lat2, lon2, lat1, lon1).tolist()
    for size in (1, 2, 3, 7, 8, 9, 33):
        for first in range(9):
            part = slice(first, first + size)
            assert distances_km(*(c[part] for c in given)).tolist() == found[part].tolist()
    assert distances_km(*(c[::3] for c in given)).tolist() == found[::3].tolist()


# Behind conditions


PLACES = """
static station(name: string, lat: float, lon: float).
event at(lat: float, lon: float, km: float).
near(N) <- at(X, Y, K) WHERE (station(N, A, B), distance_km(A, B, X, Y) < K).
nearest(N) <- at(X, Y, K) WHERE (station(N, A, B), 2 * K >= distance_km(X, Y, A, B)).
far(N) <- at(X, Y, K) WHERE (station(N, A, B), distance_km(A, B, X, Y) > K).
"""
places = st.tuples(st.sampled_from([0, 10, 10.5, -89.9, 90]), st.sampled_from([0, 0.1, 179.9, -180, 45]))


@settings(max_examples=40)
@given(st.lists(places, max_size=6), st.lists(st.tuples(places, st.sampled_from([0, 15, 900.0, 30_000])), min_size=1, max_size=4), st.integers(0, 3))  # fmt: skip
def test_conditions_find_what_is_near(stations: list[Any], asked: list[Any], wrong: int) -> None:
    facts = {"station": [(f"s{i}", *place) for i, place in enumerate(stations)] + [("odd", 91.0, 0.0)] * (wrong == 1)}
    told = [{"type": "at", "args": [*place, km], "time": i} for i, (place, km) in enumerate(asked)]
    if wrong == 2:
        told.append({"type": "at", "args": [95.0, 1.0, 10.0], "time": 9})
    found, wanted = (
        augury.run(PLACES, told, clock="logical", facts=facts, engine=e) for e in ("embedded", "reference")
    )
    assert {e.content for e in found} == {e.content for e in wanted}
    assert found.errors.keys() == wanted.errors.keys()


def test_stations_are_not_all_looked_at() -> None:
    chance = np.random.default_rng(7)
    facts = {"station": [(f"s{i}", float(a), float(b)) for i, (a, b) in enumerate(chance.uniform(-60, 60, (3000, 2)))]}
    session = augury.compile(PLACES.rsplit("\n", 3)[0]).session(clock="logical", facts=facts)
    session.push(
        [{"type": "at", "args": [float(a), float(b), 80.0], "time": 1} for a, b in chance.uniform(-60, 60, (50, 2))]
    )
    ((_, index),) = session.circuit.knowledge.near.values()
    assert index is not None and index.touched < 3000
    changed = session.assert_fact("station", "new", 10.0, 10.0, at=0)
    assert not changed
    found = session.push({"type": "at", "args": [10.0, 10.1, 20.0], "time": 2})
    assert "new" in {c.event.args[0] for c in found}
    session.retract_fact("station", "new", 10.0, 10.0, at=3)
    found = session.push({"type": "at", "args": [10.0, 10.1, 20.0], "time": 4})
    assert "new" not in {c.event.args[0] for c in found}
