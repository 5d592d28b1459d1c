"""The experiment of "Real-Time Complex Event Recognition and Reasoning" (2010): tables 2 to 4 and figure 6.

Its readings of fifteen weather stations are not public. The example `blizzard` makes some of its own, so that counts differ, and
has the paper's rules and stations. Each count is compared with that of a plain loop over the readings.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from functools import lru_cache, partial
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import augury
from augury.algebra.sphere import distance_km
from augury.examples import load
from augury.examples.blizzard import stations
from bench.measure import Settings, clocked
from bench.rows import THROUGHPUT, Row

pq = import_module("pyarrow.parquet")  # which has no types to check
csv = import_module("pyarrow.csv")

A_DAY = 720  # readings of all stations
DAYS = (2, 366)  # at least, at most
PARTS = 24  # in which the readings are pushed
HOUR = 3_600_000_000
PAPER = "the paper"

# Table 2: events, pattern 39, pattern 40.
TABLE_2 = {
    "KAVX": (38156, 2995, 161), "KBLU": (1998, 2327, 157), "KCQT": (1164, 0, 0), "KFUL": (29341, 28, 0),
    "KHHR": (30118, 31, 0), "KMER": (28999, 281, 16), "KMHS": (1364, 0, 0), "KMMH": (36783, 161, 2),
    "KRNM": (1307, 148, 8), "KSDB": (1464, 1167, 89), "KSFO": (1277, 241, 12), "KSNS": (31958, 794, 32),
    "KUKI": (1267, 52, 2), "KWVI": (34132, 420, 28),
}  # fmt: skip
# Table 3: the stations of each area, and its iterations.
TABLE_3 = (
    ("KSDB, KRNM", 1), ("KAUN, KBLU", 1), ("KBLU, KWVI", 5), ("KWVI, KBLU", 1), ("KBLU, KWVI", 5), ("KSDB, KAVX", 7),
    ("KAVX, KSDB", 1), ("KSDB, KAVX", 3), ("KAVX, KSDB", 1), ("KBLU, KSFO", 1), ("KWVI, KSFO", 1),
)  # fmt: skip
TABLE_4 = 51  # places near KSFO
FIGURE_6 = {"39 settling": 24_696, "40 warning": 37_437, "42 area": 3_900}
PATTERNS = {"39 settling": "settling", "40 warning": "warning", "42 area": "blizzard_area"}


class Blizzard:
    """The readings of some days, with the program and its facts."""

    def __init__(self, days: int) -> None:
        self.folder = TemporaryDirectory()
        folder = Path(self.folder.name)
        load("blizzard").prepare(folder, days)
        self.text = (folder / "blizzard.aug").read_text(encoding="utf-8")
        self.readings = pq.read_table(folder / "readings.parquet")
        self.places, self.rdf = csv.read_csv(folder / "places.csv"), folder / "stations.ttl"

    def session(self, output: str, rules: str = "") -> Any:
        text = re.sub(r"output [^.]*\.", f"output {output}.", self.text) + rules
        program = augury.compile(text, facts=["place"])
        return program.session(clock="timestamp", lateness="1h", facts={"place": self.places}, rdf=self.rdf)

    def answers(self, output: str) -> list[Any]:
        session = self.session(output)
        session.push({"sensor": self.readings})
        return [event for event in session.events() if event.type == output]

    def counted(self) -> dict[str, tuple[int, int, int]]:
        """Readings, settlings and warnings of each station, by a loop: each bad reading continues the latest settling."""
        columns = (self.readings[name].to_pylist() for name in ("station", "wind", "condition", "visibility"))
        times = self.readings["time"].cast("int64").to_pylist()
        counts: dict[str, list[int]] = {name: [0, 0, 0] for name in stations()}
        bad: dict[str, list[int]] = defaultdict(list)
        for station, wind, condition, visibility, time in zip(*columns, times, strict=True):
            counts[station][0] += 1
            if wind >= 35 and condition == "snow" and visibility < 0.25:
                bad[station].append(time)
        for station, mine in bad.items():
            for settled in settlings(mine):
                counts[station][1] += 1
                counts[station][2] += settled[0] >= 4 and settled[1] >= 3 * HOUR
        return {station: (one, two, three) for station, (one, two, three) in counts.items()}


def settlings(times: list[int]) -> Iterator[tuple[int, int]]:
    """How many readings each settling has and how long it lasts.

    A bad reading is a settling by itself. It also continues the most recent one: that which ended last, and of those which
    ended together the one that began first, as long as all of it lies within six hours.
    """
    before: list[tuple[int, int, int]] = []  # start, end, readings
    for time in times:
        new = [(time, time, 1)]
        earlier = [s for s in before if s[1] < time and time - s[0] <= 6 * HOUR]
        if earlier:
            start, _, count = max(earlier, key=lambda s: (s[1], -s[0]))
            new.append((start, time, count + 1))
        yield from ((count, end - start) for start, end, count in new)
        before = [s for s in before if time - s[0] <= 6 * HOUR] + new


@lru_cache(maxsize=1)
def blizzard(settings: Settings) -> Blizzard:
    return Blizzard(min(DAYS[1], max(DAYS[0], settings.events // A_DAY)))


def table_2(settings: Settings) -> Iterator[Row]:
    """Detections by station."""
    data = blizzard(settings)
    expected = data.counted()
    settled, warned = (Counter(e.args[0] for e in data.answers(output)) for output in ("settling", "warning"))
    for station, (readings, settling, warnings) in expected.items():
        row = partial(Row, "E2", station, events=len(data.readings))
        theirs = TABLE_2.get(station)
        counts = ("readings", readings, readings), ("pattern 39", settled[station], settling)
        for i, (series, found, counted) in enumerate((*counts, ("pattern 40", warned[station], warnings))):
            yield row(series, found, "events", answers=found, expected=counted)
            if theirs is not None:
                yield row(f"{series}, {PAPER}", theirs[i], "events")


def table_3(settings: Settings) -> Iterator[Row]:
    """Areas: how many there are of each pair of stations, and the iterations of the longest."""
    data = blizzard(settings)
    areas = data.answers("blizzard_area")
    ours: dict[str, list[int]] = defaultdict(list)
    for event in areas:
        ours[f"{event.args[0]}, {event.args[1]}"].append(event.args[2])
    theirs: dict[str, list[int]] = defaultdict(list)
    for pair, iterations in TABLE_3:
        theirs[pair].append(iterations)
    for pair in sorted(theirs, key=lambda name: -len(ours[name])):
        for series, found in (("augury", ours[pair]), (PAPER, theirs[pair])):
            note = f"{max(found, default=0)} iterations at most"
            yield Row("E3", pair, series, len(found), "areas", len(data.readings), note=note)


def table_4(settings: Settings) -> Iterator[Row]:
    """Places within 40 km of KSFO: those that the rules join, and those that are so near by formula."""
    data = blizzard(settings)
    latitudes, longitudes = (data.places[name].to_pylist() for name in ("latitude", "longitude"))
    near = sum(distance_km(*there, *stations()["KSFO"]) < 40 for there in zip(latitudes, longitudes, strict=True))
    rule = """near_to(Place) <- asked(Station)
        WHERE (position(Station, A, B), place(Place, _, C, D), distance_km(C, D, A, B) < 40)."""
    found = len(data.session("near_to", rule).push([{"type": "asked", "args": ["KSFO"], "time": "2008-01-01"}]))
    yield Row("E4", "near KSFO", "augury", found, "places", data.places.num_rows, found, near)
    yield Row("E4", "near KSFO", PAPER, TABLE_4, "places")


def figure_6(settings: Settings) -> Iterator[Row]:
    """Throughput and state of each pattern by itself, pushed in parts and pruned after each."""
    data = blizzard(settings)
    step, counted = -(-len(data.readings) // PARTS), data.counted()
    expected = {"settling": sum(c[1] for c in counted.values()), "warning": sum(c[2] for c in counted.values())}
    states: list[Row] = []
    for title, output in PATTERNS.items():
        session, held = data.session(output), 0

        def push(first: int, session: Any = session) -> int:
            found = len(session.push({"sensor": data.readings.slice(first, step)}))
            session.prune()
            return found

        cpu, answers = clocked(partial(push, 0))
        warm, cpu = cpu, 0.0  # kernels are compiled or fetched meanwhile
        for first in range(step, len(data.readings), step):
            seconds, found = clocked(partial(push, first))
            cpu, answers, held = cpu + seconds, answers + found, max(held, session.stats()["bytes"])
        rate = (len(data.readings) - step) / max(cpu, 1e-9) / 1000
        row = partial(Row, "E6", title, events=len(data.readings))
        counts: dict[str, Any] = {"answers": answers, "expected": expected.get(output, answers), "warm": warm}
        yield row("augury", rate, THROUGHPUT, **counts)
        yield row(PAPER, FIGURE_6[title] / 1000, THROUGHPUT)
        states.append(Row("E6b", title, "augury", held / 1e6, "MB", len(data.readings), note="at most, after a prune"))
    yield from states


EXPERIMENTS: Mapping[str, Any] = {"E2": table_2, "E3": table_3, "E4": table_4, "E6": figure_6}
TITLES = {
    "E2": "E table 2: complex events by weather station",
    "E3": "E table 3: blizzards that spread from one station to another",
    "E4": "E table 4: places near a station",
    "E6": "E figure 6a: throughput of patterns 39 to 42",
    "E6b": "E figure 6b: state of patterns 39 to 42",
}
