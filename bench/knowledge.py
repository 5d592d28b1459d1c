"""Rules over background knowledge: how fast conditions are answered, and how little it matters how much is known.

What is built once, such as indexes of facts, is built with the first event and told apart from the rest.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

import augury
from augury.algebra.sphere import distances_km
from augury.knowledge.near import PointIndex
from bench import reachability, state, triples
from bench.measure import Settings, Steady, best, steady
from bench.paper_r import HEADER
from bench.paper_v import REASONING
from bench.rows import THROUGHPUT, Row
from bench.streams import BEGIN, SEED, Floats, Ints
from bench.workload import Tables, Workload, pa, tables

LINKS = (100, 1_000, 10_000, 100_000)
KNOWN = (10_000, 100_000, 1_000_000)
REGIONS = 100
STATIONS = 20_000
KM = 50
FEW = 2_000  # events of the first step
SAMPLE = 50  # events whose distances to all stations are computed

COMPLEX = "K complex events/CPU s"
LOOKUPS = "K lookups/CPU s"
MANY_COMPLEX, MANY_LOOKUPS = 200, 1000  # thousands
LOSS = 0.85  # what must be left of the throughput with the least knowledge
GROWTH = 1.5  # what a detection may cost with the most knowledge, beside the least

REGION = "static located(sensor: int, region: int).\nevent seen(sensor: int).\n"
# The same question of facts, and of a rule over them.
BACKGROUND = {
    "facts": HEADER + REGION + "both(A, B, R) <- (seen(A) SEQ seen(B)).10 WHERE located(A, R), located(B, R).\n",
    "a rule": HEADER
    + REGION
    + """alike(X, Y) :- located(X, R), located(Y, R).
both(A, B) <- (seen(A) SEQ seen(B)).10 WHERE alike(A, B).
""",
}

NEAR = """{header}static station(number: int, lat: float, lon: float).
event strike(number: int, lat: float, lon: float).
close(I, S) <- strike(I, A, B) WHERE station(S, C, D), {condition}.
"""
BY_INDEX = f"distance_km(A, B, C, D) < {KM}"
BY_FUNCTION = f"distance_km(A, B, C, D) - {KM} < 0"  # no index is behind a difference


def shrunk(size: int, settings: Settings, least: int = 10) -> int:
    """A size in proportion to the events asked for."""
    return max(least, int(size * min(1.0, settings.events / 1_000_000)))


def steps_of(name: str, columns: Mapping[str, NDArray[Any]]) -> list[Tables]:
    """Events of one type in batches, after a first one of a few, enough that all is built that is worth building."""
    size = len(columns["time"])
    few = 2 * max(1, min(FEW, size // 10) // 2)
    parts = ({column: values[low:high] for column, values in columns.items()} for low, high in ((0, few), (few, size)))
    return [step for part in parts for step in tables(np.zeros(len(part["time"]), np.int64), [name], part)]


def in_pairs(name: str, column: str, keys: Ints) -> list[Tables]:
    """Keys two by two: a pair has a second to itself, so that none of one pair is near one of the next."""
    pairs = len(keys) // 2
    time = BEGIN + np.repeat(np.arange(pairs), 2) * 1000 + np.tile([0, 5], pairs)
    return steps_of(name, {"time": time, column: keys})


# V figure 3a: chains


def chain(pairs: int, links: int, anywhere: bool) -> Workload:
    """Pairs of the first and the last company of a chain, or of any two: those in the order of the chain are answers."""
    ends = np.tile([0, links], pairs)
    if anywhere:
        ends = np.random.default_rng(SEED).integers(0, links + 1, 2 * pairs)
    expected = int(np.sum(ends[::2] < ends[1::2]))
    facts = {"linked": [(i, i + 1) for i in range(links)]}
    return Workload(REASONING, in_pairs("risen", "company", ends), 2 * pairs, expected, facts)


def chains(settings: Settings) -> Iterator[Row]:
    """Complex events behind each of which is a chain, by its length; the paper has 20,000 a second."""
    for series, anywhere in (("first and last", False), ("any two", True)):
        lengths = [shrunk(size, settings) for size in LINKS]
        works = [chain(shrunk(100_000, settings), links, anywhere) for links in lengths]
        took = steady(works, settings)
        rates = [work.expected / one.cpu / 1000 for work, one in zip(works, took, strict=True)]
        for links, work, one, rate in zip(lengths, works, took, rates, strict=True):
            yield Row(
                "chains", f"{links:,} links", series, rate, COMPLEX, work.events, one.answers, work.expected,
                note=before(one), least=MANY_COMPLEX,
            )  # fmt: skip
        yield Row("chains", "longest beside shortest", series, rates[-1], COMPLEX, base=rates[0], least=LOSS)


def before(took: Steady) -> str:
    """What comes before the first answer."""
    return f"facts {1000 * took.load:.0f} ms, index {1000 * took.first:.0f} ms"


# S figure 17: more background knowledge behind the same stream


def background(text: str, pairs: int, known: int, asked: int) -> Workload:
    """Pairs of sensors, of which half are in the same region. Those that events name are anywhere among the facts."""
    rng = np.random.default_rng(SEED)
    first = rng.integers(0, asked, pairs)
    second = np.where(rng.random(pairs) < 0.5, first + REGIONS * rng.integers(0, max(1, asked // REGIONS), pairs), first + 1) % asked  # fmt: skip
    keys = np.stack([first, second], axis=1).reshape(-1)
    sensor = rng.permutation(known)
    facts = {"located": pa.table({"sensor": sensor, "region": sensor % REGIONS})}
    expected = int(np.sum(first % REGIONS == second % REGIONS))
    return Workload(text, in_pairs("seen", "sensor", keys), 2 * pairs, expected, facts)


def growing(settings: Settings) -> Iterator[Row]:
    """What a detection costs, by how much is known beside what it needs."""
    asked = REGIONS * shrunk(KNOWN[0] // REGIONS, settings, 1)
    sizes = [max(asked, shrunk(size, settings)) for size in KNOWN]
    for series, text in BACKGROUND.items():
        works = [background(text, shrunk(100_000, settings), known, asked) for known in sizes]
        took = steady(works, settings)
        each = [1e6 * one.cpu / work.expected for work, one in zip(works, took, strict=True)]
        for known, work, one, cost in zip(sizes, works, took, each, strict=True):
            row = Row(
                "background", f"{known:,} facts", series, cost, "CPU µs", work.events, one.answers, work.expected,
                note=before(one),
            )  # fmt: skip
            yield row if one is took[0] else replace(row, base=each[0], target=GROWTH)


# Enrichment from a table


def enrichment(events: int, known: int, used: int, textual: bool) -> Iterator[Workload]:
    """Readings of sensors, without the region of each and with it. Of the sensors that are known some are `used`."""
    kind = "string" if textual else "int"
    declared = f"{HEADER}static region(sensor: {kind}, name: string).\nevent reading(sensor: {kind}, value: float).\n"
    rng = np.random.default_rng(SEED)
    ids = np.array([f"sensor-{i}" for i in range(known)]) if textual else np.arange(known)
    asked = rng.permutation(known)[:used][rng.integers(0, used, events)]
    columns = {"time": BEGIN + np.arange(events), "sensor": ids[asked], "value": rng.random(events)}
    names = np.array([f"region {i}" for i in range(REGIONS)])
    facts = {"region": pa.table({"sensor": ids, "name": names[np.arange(known) % REGIONS]})}
    steps = steps_of("reading", columns)
    yield Workload(declared + "told(I, V) <- reading(I, V).\n", steps, events, events)
    yield Workload(declared + "told(I, V, R) <- reading(I, V) WHERE region(I, R).\n", steps, events, events, facts)


def enriching(settings: Settings) -> Iterator[Row]:
    """Events that are joined with a large table: the whole, and the join alone as what it costs more."""
    known, events = shrunk(1_000_000, settings), shrunk(200_000, settings)
    few = shrunk(10_000, settings)
    settings = replace(settings, repeat=min(settings.repeat, 2))
    for case, used, textual in (("numbers", known, False), ("texts", known, True), (f"{few:,} texts", few, True)):
        plain, work = enrichment(events, known, used, textual)
        without, joined = steady([plain, work], settings)
        for series, took, told in (("without", without, ""), ("with lookup", joined, before(joined))):
            yield Row(
                "enrich", case, series, events / took.cpu / 1000, THROUGHPUT, events, took.answers, events, note=told
            )
        yield difference("enrich", case, events, without, joined)
        yield solving("enrich", case, work, settings)


def difference(figure: str, case: str, events: int, without: Steady, joined: Steady) -> Row:
    """Lookups by what a rule costs more with a condition than without."""
    more = max(joined.cpu - without.cpu, 1e-9)
    return Row(figure, case, "the lookup itself", events / more / 1000, LOOKUPS, events, least=MANY_LOOKUPS)


def solving(figure: str, case: str, work: Workload, settings: Settings) -> Row:
    """Lookups of knowledge alone: the columns are codes already."""
    session: Any = settings.open(augury.compile(work.text), facts=work.facts)
    knowledge = session.circuit.knowledge
    steps = [step for step in work.steps if isinstance(step, Mapping)]
    asked = [knowledge.words.encode_all(step["reading"].column("sensor").to_pylist()) for step in steps]
    times = [np.full(len(codes), BEGIN) for codes in asked]
    ask = partial(knowledge.solve, ("region", 2), (True, False))
    ask([asked[0]], times[0])
    cpu, found = best(lambda: sum(len(ask([c], at)[0]) for c, at in zip(asked, times, strict=True)), settings.repeat)
    return Row(
        figure, case, "Knowledge.solve", work.events / cpu / 1000, LOOKUPS, work.events, found, work.events,
        least=MANY_LOOKUPS,
    )  # fmt: skip


# What is near


def places(count: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Places in North America, as many in each square kilometre."""
    return np.degrees(np.arcsin(rng.uniform(np.sin(np.radians(25)), np.sin(np.radians(65)), count))), rng.uniform(-125, -65, count)  # fmt: skip


def near_pairs(lat: Floats, lon: Floats, at: tuple[Floats, Floats]) -> int:
    """How many pairs are near each other, by comparing those of like latitude."""
    order = np.argsort(at[0])
    near, margin = at[0][order], 1.01 * KM / 111
    low, high = np.searchsorted(near, lat - margin), np.searchsorted(near, lat + margin)
    count = high - low
    event = np.repeat(np.arange(len(lat)), count)
    other = order[np.arange(int(count.sum())) + np.repeat(low - np.cumsum(count) + count, count)]
    return int(np.sum(distances_km(lat[event], lon[event], at[0][other], at[1][other]) < KM))


def strikes(condition: str, events: int, stations: int) -> Workload:
    """Strikes of lightning and the stations near them."""
    rng = np.random.default_rng(SEED)
    at, (lat, lon) = places(stations, rng), places(events, rng)
    columns = {"time": BEGIN + np.arange(events), "number": np.arange(events), "lat": lat, "lon": lon}
    facts = {"station": pa.table({"number": np.arange(stations), "lat": at[0], "lon": at[1]})}
    text = NEAR.format(header=HEADER, condition=condition)
    return Workload(text, steps_of("strike", columns), events, near_pairs(lat, lon, at), facts)


def near(settings: Settings) -> Iterator[Row]:
    """Events joined with the stations that are near: by the rule, by the index alone, and with all stations."""
    stations = shrunk(STATIONS, settings)
    case = f"{stations:,} stations"
    work = strikes(BY_INDEX, shrunk(20_000, settings), stations)
    (took,) = steady([work], settings)
    rate = work.events / took.cpu / 1000
    rng = np.random.default_rng(SEED)
    at, (lat, lon) = places(stations, rng), places(work.events, rng)
    index = PointIndex(*at)
    cpu, found = best(lambda: len(index.within(lat, lon, KM, True)[0]), settings.repeat)
    yield Row("near", case, "index alone", work.events / cpu / 1000, THROUGHPUT, work.events, found, work.expected)
    yield Row("near", case, "rule", rate, THROUGHPUT, work.events, took.answers, work.expected, note=before(took))
    sample = strikes(BY_FUNCTION, SAMPLE, stations)
    (crossed,) = steady([sample], settings)
    slow = sample.events / crossed.cpu / 1000
    yield Row("near", case, "all stations", slow, THROUGHPUT, sample.events, crossed.answers, sample.expected)
    yield Row("near", "rule beside all stations", "augury", rate, THROUGHPUT, base=slow, least=10)


EXPERIMENTS = {
    "chains": chains,
    **reachability.EXPERIMENTS,
    **triples.EXPERIMENTS,
    "background": growing,
    "enrich": enriching,
    "near": near,
    **state.EXPERIMENTS,
}
