"""What "Towards Formal Foundations of Event Queries and Rules" (2007) says that temporal conditions save, sections 4.2 and 4.3.

The paper measures nothing. Here are the two savings that it derives: the right input of a join is not evaluated while the left
one is empty, and bounds that follow from others say when an event is forgotten.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

import augury
from bench.bundles import ABSENT, alike, bundled
from bench.measure import Settings, give
from bench.paper_r import NAMES, declared
from bench.rows import Row
from bench.streams import SEED
from bench.workload import tables

SHARES = (0, 10, 50, 100)
MOST = 100_000  # events
MINUTE = 60_000  # ticks of a millisecond
SEQUENCES = {
    "from the left": "found(K) <- (a(K, _) SEQ (b(K, _) SEQ c(K, _))).1000.\n",
    "as written": "found(K) <- (a(K, _) SEQ (b(K, _) SEQ c(K, _)).1000).1000.\n",  # a window of the inner pair keeps it a pair
}


def right_inputs(settings: Settings) -> Iterator[Row]:
    """How many pairs joins make for each event, by the share of keys that have a first part."""
    keys = min(settings.events, MOST) // 3
    for share in SHARES:
        kinds = alike(keys, (0, 1, 2))
        there = np.random.default_rng(SEED).random(keys) < share / 100
        kinds[~there, 0] = ABSENT
        stream = bundled(kinds)
        for series, rule in SEQUENCES.items():
            session: Any = settings.open(augury.compile(declared("abc") + rule))
            found = give(session, stream.tables(NAMES))
            pairs = sum(o["rows_out"] for o in session.stats()["operators"] if o["operator"] == "join")
            value, expected = pairs / len(stream), int(there.sum())
            yield Row("B4.3", f"{share} % have an a", series, value, "pairs an event", len(stream), found, expected)


BOUNDS = {
    "12h and 36h": "{o, s} within 12h, {s, d} within 36h",
    "and 48h, written": "{o, s} within 12h, {s, d} within 36h, {o, s, d} within 48h",
    "12h alone": "{o, s} within 12h",
}


def inferred_bounds(settings: Settings) -> Iterator[Row]:
    """How many rows a session keeps of orders that are shipped and delivered, an order a minute."""
    orders = min(settings.events, MOST) // 3
    random = np.random.default_rng(SEED)
    ordered = np.arange(orders) * MINUTE
    shipped = ordered + random.integers(1, 14 * 60, orders) * MINUTE
    delivered = shipped + random.integers(1, 40 * 60, orders) * MINUTE
    times, number = np.concatenate([ordered, shipped, delivered]), np.tile(np.arange(orders), 3)
    order = np.argsort(times, kind="stable")
    order = order[times[order] <= ordered[-1]]  # the stream ends with the last order
    kinds = np.repeat(np.arange(3), orders)[order]
    steps = tables(kinds, ("ordered", "shipped", "delivered"), {"time": times[order], "id_": number[order]})
    for case, bounds in BOUNDS.items():
        rule = f"timely(N) <- o: ordered(N), s: shipped(N), d: delivered(N), o before s, s before d, {bounds}."
        program = augury.compile(f"tick 1ms.\n{rule}")
        session: Any = settings.open(program, lateness="0s", longest="0s")
        found = give(session, steps)
        session.prune()
        fits = (delivered <= ordered[-1]) & (shipped - ordered <= 12 * 60 * MINUTE)
        fits &= (delivered - shipped <= 36 * 60 * MINUTE) | (case == "12h alone")
        rows = session.stats()["rows"]
        yield Row("B4.2", case, "augury", rows, "rows kept", len(order), found, int(fits.sum()))


EXPERIMENTS: Mapping[str, Any] = {"B4.2": inferred_bounds, "B4.3": right_inputs}
TITLES = {
    "B4.2": "B section 4.3: what is kept of orders, by the bounds that the query has",
    "B4.3": "B section 4.3: pairs that joins make while a left input is empty",
}
