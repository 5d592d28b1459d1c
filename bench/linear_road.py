"""`augury bench linearroad`: cars on toll roads report where they are, and pay by traffic and accidents; DuckDB beside.

A part of the Linear Road benchmark, written from its public description: a car reports every 30 seconds. It is stopped when
four reports in a row have one place; two cars that are stopped at one place are an accident. Who enters a segment pays
`2 * (cars - 50) ** 2` if it had more than 50 cars in the minute before, their average speed over five minutes was below
40, and there was no accident within four segments ahead in the last minute. Figures are CPU seconds from a Parquet file to
an Arrow table with ids; answers are compared as sets.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from functools import partial
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import augury
from bench.baselines import has_duckdb
from bench.measure import Settings, best
from bench.nexmark import Peer
from bench.nexmark_queries import Query
from bench.rows import Row

pa = import_module("pyarrow")  # which has no types to check
pq = import_module("pyarrow.parquet")

FIGURE = "linearroad"
REPORTS = 20  # of each car
EVERY_US = 30_000_000
START_US = 1_767_225_600_000_000  # 2026-01-01
MILE, FEET = 5_280, 44  # feet in a mile, which is a segment; and those of 30 seconds at a mile an hour
PER_ROAD, SEGMENTS = 14_000, 100
STOPS = slice(8, 14)  # the reports of cars in an accident that have one place
PER_ACCIDENT = 500  # cars
MOST = 5.0  # times the CPU of DuckDB

EVENT = "event report(car: int, speed: int, xway: int, lane: int, dir: int, seg: int, pos: int).\n"
ACCIDENTS = """
stopped(C, X, D, S, P) SINCE END <- report(car = C, xway = X, dir = D, seg = S, pos = P),
    exactly 4: collect report(car = C, pos = Q), min(Q) = max(Q).
accident(X, D, S) <- a: stopped(A, X, D, S, P), b: stopped(B, X, D, S, P), A < B, {a, b} within 30s.
"""
MINUTES = """
pace(C, X, D, S, avg(V)) <- w: every(1min), while w: collect report(car = C, speed = V, xway = X, dir = D, seg = S).
minute(X, D, S, count(), avg(V)) <- w: every(1min), while w: collect pace(_, X, D, S, V).
"""
TOLLS = f"""{ACCIDENTS}{MINUTES}
speed(X, D, S, avg(V)) <- w: every(5min, 1min), while w: collect minute(X, D, S, _, V).
enters(C, X, D, S) SINCE END <- report(car = C, xway = X, dir = D, seg = S),
    exactly 2: collect report(car = C, seg = R), min(R) != max(R).
toll(C, X, D, S, 2 * (N - 50) * (N - 50)) SINCE END <- c: enters(C, X, D, S),
    m: minute(X, D, S, N, _), N > 50, v: speed(X, D, S, V), V < 40, end(v) = end(m),
    end(m) < start(c), start(c) - end(m) <= 60s,
    w: extend_backward(c, 60s), while w: not (accident(X, D, A) WHERE A >= S and A <= S + 4).
"""

SQL = """WITH timed AS (SELECT *, epoch_us(time) AS t FROM report),
steps AS (SELECT *, lag(seg) OVER w AS before,
    count(*) OVER last AS reports, min(pos) OVER last AS low, max(pos) OVER last AS high FROM timed
    WINDOW w AS (PARTITION BY car ORDER BY t), last AS (PARTITION BY car ORDER BY t ROWS 3 PRECEDING)),
stopped AS (SELECT car, xway, dir, seg, pos, t FROM steps WHERE reports = 4 AND low = high),
accident AS (SELECT DISTINCT a.xway, a.dir, a.seg, least(a.t, b.t) AS start, greatest(a.t, b.t) AS stop
    FROM stopped a JOIN stopped b USING (xway, dir, seg, pos) WHERE a.car < b.car AND abs(a.t - b.t) <= 30000000),
minute AS (SELECT xway, dir, seg, count(*) AS cars, avg(speed) AS speed, t // 60000000 AS minute
    FROM (SELECT car, xway, dir, seg, avg(speed) AS speed, min(t) AS t FROM timed GROUP BY car, xway, dir, seg, t // 60000000)
    GROUP BY xway, dir, seg, t // 60000000),
speed AS (SELECT m.xway, m.dir, m.seg, m.minute, avg(o.speed) AS speed FROM minute m JOIN minute o
    ON m.xway = o.xway AND m.dir = o.dir AND m.seg = o.seg AND o.minute BETWEEN m.minute - 4 AND m.minute GROUP BY ALL),
enters AS (SELECT car, xway, dir, seg, t FROM steps WHERE before <> seg)
"""
QUERIES: Mapping[str, Query] = {
    "accidents": Query("accidents", f"output accident. {ACCIDENTS}", f"{SQL} SELECT * FROM accident"),
    "segments": Query(
        "segment statistics",
        f"output minute. {MINUTES}",
        f"""{SQL} SELECT xway, dir, seg, cars, speed, minute * 60000000, minute * 60000000 + 59999999 FROM minute""",
    ),
    "tolls": Query(
        "tolls",
        f"output toll. {TOLLS}",
        f"""{SQL} SELECT e.car, e.xway, e.dir, e.seg, 2 * (cars - 50) * (cars - 50), e.t, e.t AS stop FROM enters e
        JOIN minute m ON m.xway = e.xway AND m.dir = e.dir AND m.seg = e.seg AND m.minute = e.t // 60000000 - 1
        JOIN speed v ON v.xway = e.xway AND v.dir = e.dir AND v.seg = e.seg AND v.minute = m.minute
        WHERE cars > 50 AND v.speed < 40 AND NOT EXISTS (SELECT 1 FROM accident a WHERE a.xway = e.xway AND a.dir = e.dir
            AND a.seg BETWEEN e.seg AND e.seg + 4 AND a.start >= e.t - 60000000 AND a.stop <= e.t)""",
    ),
}


def reports(events: int, seed: int = 7) -> Any:
    """The reports of cars in the order of time, the same ones for the same seed. The more there are, the longer and the
    wider they are spread: a segment has about seventy cars at a time.
    """
    rng = np.random.default_rng(seed)
    cars = max(2, events // REPORTS)
    road = np.arange(cars) // PER_ROAD
    number = np.minimum(cars - road * PER_ROAD, PER_ROAD)  # of the cars of its road
    seconds = np.maximum(60, 1_200 * number // PER_ROAD)
    first = rng.integers(0, 1_000_000 * seconds)
    segment = rng.integers(0, np.maximum(1, (SEGMENTS - 10) * number // PER_ROAD))
    place = segment * MILE + rng.integers(0, MILE, cars)
    speed = rng.integers(10, 50, (cars, REPORTS))
    crash = np.arange(0, cars - 1, PER_ACCIDENT)  # with the car after it
    crash = crash[road[crash] == road[crash + 1]]
    first[crash + 1], place[crash + 1] = first[crash] + 1_000_000, place[crash]
    speed[crash, STOPS] = 0
    speed[crash + 1] = speed[crash]
    position = place[:, None] + FEET * (np.cumsum(speed, axis=1) - speed[:, :1])
    time = first[:, None] + EVERY_US * np.arange(REPORTS)
    order = np.argsort(time.ravel(), kind="stable")
    each = {
        "car": np.arange(cars),
        "speed": speed,
        "xway": road // 2,
        "lane": np.arange(cars) % 3,
        "dir": road % 2,
        "seg": position // MILE,
        "pos": position,
    }
    columns = {
        name: (values.ravel() if values.ndim == 2 else np.repeat(values, REPORTS))[order]
        for name, values in each.items()
    }
    return pa.table({**columns, "time": pa.array(START_US + time.ravel()[order], pa.timestamp("us"))})


def compare(name: str, settings: Settings) -> Iterator[Row]:
    """A question to Augury and to DuckDB."""
    query, table = QUERIES[name], reports(settings.events)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # DuckDB forgets nothing either
        program = augury.compile(EVENT + query.rules)
    until = str(np.datetime64(START_US, "us") + np.timedelta64(1, "D"))
    with TemporaryDirectory(prefix="augury-bench-") as folder:
        path = str(Path(folder) / "report.parquet")
        pq.write_table(table, path)
        peer = Peer({"report": path}) if has_duckdb() else None

        def run() -> Any:
            return augury.run(program, {"report": augury.read(path)}, until=until).to_arrow(trace=False)

        answers = run()
        wrong = peer.different(query, answers.drop_columns(["id"])) if peer else None
        cpu, _ = best(run, settings.repeat)
        beside = None
        if peer:
            beside, _ = best(partial(peer.table, query), settings.repeat)
            yield Row(FIGURE, query.title, "DuckDB", beside, "CPU s", len(table))
        checks: dict[str, Any] = {"answers": wrong, "expected": None if wrong is None else 0}
        note = f"{len(answers):,} answers"
        yield Row(
            FIGURE, query.title, "augury", cpu, "CPU s", len(table), base=beside, target=MOST, note=note, **checks
        )


EXPERIMENTS = {name: partial(compare, name) for name in QUERIES}
TITLES = {FIGURE: "Linear Road: from a Parquet file to an Arrow table"}
