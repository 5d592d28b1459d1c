"""Workload shapes cost what their events and answers cost: rows touched, never seconds (`augury bench shapes`)."""

from __future__ import annotations

import pandas as pd
import pytest

import augury
from bench.shapes import SHAPES, Shape, cost, touched

SMALL, LARGE = 500, 2000


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_four_times_the_events_touch_four_times_the_rows(shape: Shape) -> None:
    small, large = cost(shape, SMALL), cost(shape, LARGE)
    assert large.changes and small.changes
    more = max(LARGE / SMALL, large.changes / small.changes)  # a window has all its groups only after a while
    assert large.touched <= 1.4 * more * small.touched, (small, large)


LATE = (
    "own-type absence", "per-event window", "distinct per event", "dedupe", "last n and facts", "last million",
    "as-of latest",
)  # fmt: skip


@pytest.mark.parametrize("name", LATE)
@pytest.mark.parametrize("late", [1, 0.9])
def test_a_late_event_and_a_revocation_cost_what_they_change(name: str, late: float) -> None:
    """One pass over the later rows of the key at most, and the answers that change."""
    shape = next(shape for shape in SHAPES if shape.name == name)
    costs = []
    for count in (SMALL, LARGE):
        session = augury.compile(shape.text).session(clock="logical")
        session.push(shape.tables(count))
        before, changed = touched(session), 0
        key = 3
        event = {"type": "a", "args": [key, 5], "time": int(count * late), "id": "late"}
        changed += len(session.push([event]))
        changed += len(session.revoke("late"))
        later = len([1 for t in range(int(count * late), count) if t % 20 == key])
        costs.append(touched(session) - before)
        assert costs[-1] <= 60 + 12 * (later + changed), (count, costs, later, changed)


def test_the_tables_of_shapes_have_as_many_events() -> None:
    for shape in SHAPES:
        tables: dict[str, pd.DataFrame] = dict(shape.tables(SMALL))
        assert sum(map(len, tables.values())) == SMALL, shape.name
