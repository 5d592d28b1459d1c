"""Blizzards in California: three years of readings every half an hour at fifteen stations, with storms that move."""

from __future__ import annotations

import re
from collections import Counter
from importlib.resources import files
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from augury.core.model import Event
from augury.examples import Example, ExampleResult, ExampleTable

FIRST = np.datetime64("2008-01-01T00:00", "m")
STEP = 30  # minutes between two readings of a station
DAY = 24 * 60 // STEP
STORMS = 12  # a year, all in winter
KM = 111.2  # that a degree of latitude has


def stations() -> dict[str, tuple[float, float]]:
    """Where the stations stand, by the names that readings bear."""
    text = files("augury.examples.blizzard").joinpath("stations.ttl").read_text(encoding="utf-8")
    result = re.findall(r'ssw:ID "(\w+)".*?geo:lat ([\d.-]+) ; geo:long ([\d.-]+)', text, re.DOTALL)
    return {name: (float(lat), float(long)) for name, lat, long in result}


def severity(days: int, chance: np.random.Generator) -> np.ndarray:
    """How bad the weather is, from 0 to 1, at each time and station: storms come from the sea and move south-east."""
    places = np.array(list(stations().values()))
    result = np.zeros((days * DAY, len(places)))
    for _ in range(max(1, round(days / 365 * STORMS))):
        winter = chance.integers(-60, 90) % 365  # the day of the year on which it begins
        start = int((winter + 365 * chance.integers(0, max(1, days // 365))) % days) * DAY + int(chance.integers(DAY))
        hours, radius = chance.uniform(14, 36), chance.uniform(110, 220)
        lat, long = chance.uniform(34, 41), chance.uniform(-123, -120)
        north, east = chance.uniform(-14, 0), chance.uniform(2, 18)  # km in an hour
        steps = np.arange(start, min(start + int(hours * 60 / STEP), len(result)))
        passed = (steps - start) * STEP / 60
        away = np.hypot(
            (places[:, 0] - (lat + north * passed / KM)[:, None]) * KM,
            (places[:, 1] - (long + east * passed / KM)[:, None]) * KM * np.cos(np.radians(36)),
        )
        result[steps] = np.maximum(result[steps], np.clip(1.6 * (1 - away / radius), 0, 1))
    return result


def readings(days: int) -> pa.Table:
    """All readings, in the order of time."""
    chance = np.random.default_rng(1)
    names = np.array(list(stations()))
    bad = severity(days, chance)
    count = bad.size
    times = np.repeat(FIRST + np.arange(days * DAY) * STEP, len(names))
    noise = chance.random((3, count))
    storm = bad.ravel()
    season = np.cos(2 * np.pi * (np.arange(days * DAY) / DAY - 15) / 365.25)
    warmth = np.repeat(14 - 9 * season, len(names))
    snow = storm > 0.2 + 0.3 * noise[2]
    wind = np.where(storm > 0, 12 + 45 * storm * (0.75 + 0.5 * noise[0]), 14 * noise[0])
    visibility = np.where(snow, np.maximum(0.05, 0.9 - 1.5 * storm * (0.8 + 0.4 * noise[1])), 3 + 7 * noise[1])
    return pa.table(
        {
            "station": pa.array(np.tile(names, days * DAY)).dictionary_encode().cast(pa.string()),
            "temperature": np.round(warmth - 12 * storm + 4 * noise[1], 1),
            "wind": np.round(wind, 1),
            "condition": np.where(snow, "snow", np.where(noise[2] < 0.2, "rain", "clear")),
            "visibility": np.round(visibility, 2),
            "time": times.astype("datetime64[us]"),
        }
    )


def write(folder: Path, size: int) -> int:
    table = readings(size)
    pq.write_table(table, folder / "readings.parquet", compression="zstd")
    return int(table.num_rows)


def tables(result: ExampleResult) -> list[ExampleTable]:
    """The tables 2 and 3 of the paper, for our data, and the places."""
    read = Counter(pq.read_table(result.folder / "readings.parquet", columns=["station"])["station"].to_pylist())
    settled, warned = (Counter(e.args[0] for e in result.of(type)) for type in ("settling", "warning"))
    kinds = Counter((e.args[1], e.args[0]) for e in result.of("affected"))
    growing: dict[tuple[object, int], list[Event]] = {}
    for event in result.of("blizzard_area"):
        growing.setdefault((event.args[0], event.start), []).append(event)
    areas = list(growing.values())
    return [
        ExampleTable(
            "By station",
            ("station", "readings", "settling", "warnings"),
            [(name, read[name], settled[name], warned[name]) for name in stations()],
        ),
        ExampleTable(
            f"Areas: {len(areas):,}, with all stations that had a warning in them",
            ("area", "from", "to", "iterations"),
            [(_stations(several), *_span(result, several), several[-1].args[2]) for several in areas],
        ),
        ExampleTable(
            "Places affected", ("kind", "place", "times"), [(*key, times) for key, times in sorted(kinds.items())]
        ),
    ]


def _stations(area: list[Event]) -> str:
    return ", ".join(dict.fromkeys(str(name) for name in (area[0].args[0], *(event.args[1] for event in area))))


def _span(result: ExampleResult, area: list[Event]) -> tuple[str, str]:
    return result.time(area[0].start), result.time(area[-1].end)


EXAMPLE = Example(
    name="blizzard",
    about="three years of weather at fifteen stations: blizzards that settle, areas that they spread over, places in them",
    program=("blizzard.aug",),
    events=("sensor=readings.parquet",),
    facts=("place=places.csv",),
    rdf=("stations.ttl",),
    write=write,
    sizes=(1096, 6),
    streams=False,
    tables=tables,
    pictured=("warning",),
    places=lambda: {name: (long, lat) for name, (lat, long) in stations().items()},
)
