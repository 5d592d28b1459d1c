"""Graph events like those of the four data sets of the SPAseQ paper (S 8.1), which are not public, with its queries.

Each is drawn with a fixed seed, one moment a second. Its answers are counted from the drawn numbers by plain loops, by strict
contiguity (`,`) and by the next event that fits (`;`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from importlib import import_module
from typing import Any

import numpy as np

from bench.streams import SEED, Floats, Ints
from bench.workload import BATCH

pa = import_module("pyarrow")  # which has no types to check

SPACE, XSD = "http://example.org/", "http://www.w3.org/2001/XMLSchema#"
SECOND = 1_000_000
CARDS = 50
Flags = np.ndarray[Any, np.dtype[np.bool_]]


@dataclass(frozen=True)
class GraphStream:
    """Graph events in the order of time: the second of each, the stream that it is of, and its triples."""

    second: Ints
    stream: Ints
    names: tuple[str, ...]
    texts: Sequence[str]

    def __len__(self) -> int:
        return len(self.second)

    def steps(self, batch: int = BATCH) -> list[Mapping[str, Any]]:
        """Tables by stream; events of one time are in one batch."""
        cuts = np.searchsorted(self.second, self.second[::batch])
        ranges = zip(cuts, [*cuts[1:], len(self)], strict=True)
        return [self._tables(np.arange(low, high)) for low, high in ranges if low < high]

    def _tables(self, rows: Ints) -> Mapping[str, Any]:
        tables: dict[str, Any] = {}
        for number, name in enumerate(self.names):
            mine = rows[self.stream[rows] == number]
            if len(mine):
                time = pa.array(self.second[mine] * SECOND, pa.timestamp("us"))
                tables[f"<{SPACE}{name}>"] = pa.table({"time": time, "graph": [self.texts[row] for row in mine]})
        return tables

    def on_one_stream(self, name: str) -> GraphStream:
        """The same events, all on one stream."""
        return GraphStream(self.second, np.zeros_like(self.stream), (name,), self.texts)


@dataclass(frozen=True)
class Dataset:
    """A stream with its query, and how many answers there are, both by separator and window in minutes."""

    name: str
    events: GraphStream
    query: Callable[[str, int], str]
    expected: Callable[[str, int], int]


def query(
    columns: str, minutes: int, sequence: str, streams: Sequence[str], gpms: Sequence[str], partition: str = ""
) -> str:
    sources = "".join(f"\nFROM STREAM {name} <{SPACE}{name}>" for name in streams)
    by = f" PARTITION BY ({partition})" if partition else ""
    body = "\n".join(f"DEFINE GPM {gpm}" for gpm in gpms)
    return f"PREFIX : <{SPACE}>\nSELECT {columns} WITHIN {minutes} MINUTES{by}{sources}\nWHERE {{ SEQ({sequence})\n{body}\n}}"


def integer(value: int) -> str:
    return f'"{value}"^^<{XSD}integer>'


# SMD: prices of shares


@dataclass(frozen=True)
class Shares:
    """Prices, one a second, and of which share each is. They go up and down by a step."""

    prices: Floats
    share: Ints

    @staticmethod
    @lru_cache(maxsize=2)
    def drawn(count: int, shares: int = 1) -> Shares:
        random = np.random.default_rng(SEED)
        steps, share = random.choice([-0.5, -0.25, 0.25, 0.5], count), np.zeros(count, np.int64)
        if shares > 1:
            share = random.integers(0, shares, count)
        prices = np.empty(count)
        for number in range(shares):
            prices[share == number] = np.round(100 + np.cumsum(steps[share == number]), 2)
        return Shares(prices, share)

    def __len__(self) -> int:
        return len(self.prices)

    @cached_property
    def events(self) -> GraphStream:
        volumes = np.random.default_rng(SEED + 1).integers(1, 500, len(self)).tolist()
        names = [f"<{SPACE}share{n or ''}>" for n in self.share.tolist()]
        texts = [
            f'{share} <{SPACE}price> "{price}"^^<{XSD}decimal> .\n{share} <{SPACE}volume> {integer(volume)} .\n'
            for share, price, volume in zip(names, self.prices.tolist(), volumes, strict=True)
        ]
        return GraphStream(np.arange(len(self)), np.zeros(len(self), np.int64), ("S",), texts)


def zigzag(separator: str, clauses: int = 3, minutes: int = 30, known: str = "", partition: str = "") -> str:
    """Up, down, up, …: each clause compares its price with that of the one before."""
    names = "ABCDEFG"[:clauses]
    gpms = [f"A ON S {{ ?c :price ?p1 ; :volume ?v1 {known} }}"]
    for i, name in enumerate(names[1:], 2):
        gpms.append(f"{name} ON S {{ ?c :price ?p{i} ; :volume ?v{i} FILTER(?p{i} {'<>'[i % 2 == 0]} ?p{i - 1}) }}")
    columns = " ".join(f"?p{i}" for i in range(1, clauses + 1))
    return query(f"?c {columns}{' ?name' if known else ''}", minutes, f"{separator} ".join(names), "S", gpms, partition)


def contiguous(prices: Floats, clauses: int) -> int:
    """How many zigzags of neighbours there are."""
    up = prices[1:] > prices[:-1]
    matches = np.ones(max(0, len(prices) - clauses + 1), bool)
    for i in range(clauses - 1):
        matches &= up[i : i + len(matches)] == (i % 2 == 0)
    return int(matches.sum())


def by_next(prices: Floats, minutes: int, clauses: int = 3, times: Ints | None = None) -> int:
    """How many there are where each is the next that fits."""
    later = {up: next_beyond(prices, up) for up in (True, False)}
    times, count = np.arange(len(prices)) if times is None else times, 0
    for first in range(len(prices)):
        here = first
        for clause in range(1, clauses):
            here = later[clause % 2 == 1][here] if here >= 0 else -1
        count += here >= 0 and times[here] - times[first] <= 60 * minutes
    return int(count)


def next_beyond(prices: Floats, up: bool) -> list[int]:
    """For each price the row of the next one that is greater, or less; -1 without one."""
    rows, waiting = [-1] * len(prices), list[int]()
    for here, price in enumerate(prices.tolist()):
        while waiting and (prices[waiting[-1]] < price if up else prices[waiting[-1]] > price):
            rows[waiting.pop()] = here
        waiting.append(here)
    return rows


def shares(count: int) -> Dataset:
    """SMD, query 4: a price rises and falls."""
    drawn = Shares.drawn(count)

    def expected(separator: str, minutes: int) -> int:
        return contiguous(drawn.prices, 3) if separator == "," else by_next(drawn.prices, minutes)

    return Dataset("SMD", drawn.events, lambda separator, minutes: zigzag(separator, minutes=minutes), expected)


# CCD: payments with cards


def cards(count: int) -> Dataset:
    """CCD, query 2: a payment of a card, and then one more than ten times as great."""
    random = np.random.default_rng(SEED)
    card, amount, place = (random.integers(1, most, count) for most in (CARDS, 500, 90))
    texts = [
        f"<{SPACE}card{c}> <{SPACE}amount> {integer(a)} .\n<{SPACE}card{c}> <{SPACE}place> {integer(p)} .\n"
        for c, a, p in zip(card.tolist(), amount.tolist(), place.tolist(), strict=True)
    ]

    def text(separator: str, minutes: int) -> str:
        gpms = [
            "A ON S { ?card :amount ?small ; :place ?here }",
            "B ON S { ?card :amount ?big ; :place ?there FILTER(?big > ?small * 10) }",
        ]
        return query("?card ?small ?big", minutes, f"A{separator} B", "S", gpms, "?card")

    def expected(separator: str, minutes: int) -> int:
        rows = (np.flatnonzero(card == number) for number in range(1, CARDS))
        return sum(_next_greater(amount[mine], mine, 60 * minutes, separator == ",") for mine in rows)

    return Dataset("CCD", GraphStream(np.arange(count), np.zeros(count, np.int64), ("S",), texts), text, expected)


def _next_greater(amounts: Ints, times: Ints, window: int, neighbour: bool) -> int:
    count, listed, seconds = 0, amounts.tolist(), times.tolist()
    for first, small in enumerate(listed):
        here = first + 1
        while not neighbour and here < len(listed) and listed[here] <= 10 * small:
            here += 1
        count += here < len(listed) and listed[here] > 10 * small and seconds[here] - seconds[first] <= window
    return count


# TD: traffic on three roads


def traffic(count: int) -> Dataset:
    """TD, query 5: a road is congested, and then at one time both that lead to it. A jam is looked for every other second."""
    moments = max(2, count // 3)
    jam, west, east = np.random.default_rng(SEED).integers(0, 10, (3, moments)) > 6
    first = 2 * np.arange(moments)
    second = np.column_stack([first, first + 1, first + 1]).ravel()
    stream = np.tile(np.arange(3), moments)
    busy = np.column_stack([jam, west, east]).ravel()
    texts = [
        f"<{SPACE}o> <{SPACE}road> <{SPACE}road{number}> .\n<{SPACE}o> <{SPACE}congestion> {integer(9 if full else 2)} .\n"
        for number, full in zip(stream.tolist(), busy.tolist(), strict=True)
    ]

    def text(separator: str, minutes: int) -> str:
        streams = ("Main", "West", "East")
        gpms = [
            f"{name} ON {on} {{ ?o{name} :road ?r{name} ; :congestion ?c{name} FILTER(?c{name} > 3) }}"
            for name, on in zip("ABC", streams, strict=True)
        ]
        return query("?rA ?rB ?rC ?cA", minutes, f"A{separator} (B & C)", streams, gpms)

    def expected(separator: str, minutes: int) -> int:
        return _chains([jam, west & east], [first, first + 1], 60 * minutes, separator == ",")

    return Dataset("TD", GraphStream(second, stream, ("Main", "West", "East"), texts), text, expected)


# SHD: power, weather and storage of a house


def houses(count: int) -> Dataset:
    """SHD, query 1: power is dear, then there is wind, then stored power is cheap; events of three streams at random."""
    random = np.random.default_rng(SEED)
    stream, value = random.integers(0, 3, count), random.integers(0, 30, count)
    names = ("fare", "wind", "stored")
    texts = [
        f"<{SPACE}x> <{SPACE}{names[kind]}> {integer(number)} .\n<{SPACE}x> <{SPACE}place> <{SPACE}home> .\n"
        for kind, number in zip(stream.tolist(), value.tolist(), strict=True)
    ]
    fits = [(stream == 0) & (value > 20), (stream == 1) & (value > 3), (stream == 2) & (value < 10)]

    def expected(separator: str, minutes: int) -> int:
        return _chains(fits, [np.arange(count)] * 3, 60 * minutes, separator == ",")

    events = GraphStream(np.arange(count), stream, ("Power", "Weather", "Storage"), texts)
    return Dataset("SHD", events, query_one(("Power", "Weather", "Storage")), expected)


def query_one(streams: Sequence[str]) -> Callable[[str, int], str]:
    """Query 1 with its GPMs on three streams, or all on one."""
    on = streams if len(streams) == 3 else [streams[0]] * 3
    gpms = [
        f"A ON {on[0]} {{ ?x :fare ?fare ; :place ?place FILTER(?fare > 20) }}",
        f"B ON {on[1]} {{ ?y :wind ?wind ; :place ?place FILTER(?wind > 3) }}",
        f"C ON {on[2]} {{ ?z :stored ?stored ; :place ?place FILTER(?stored < 10) }}",
    ]

    def text(separator: str, minutes: int) -> str:
        return query("?fare ?wind ?stored", minutes, f"A{separator} B{separator} C", streams, gpms)

    return text


def _chains(fits: Sequence[Flags], times: Sequence[Ints], window: int, neighbour: bool) -> int:
    """How many sequences there are whose parts fit by themselves: each directly after the other, or the next that fits."""
    last = np.flatnonzero(fits[0])
    begun = times[0][last]
    end = begun
    for part, seconds in zip(fits[1:], times[1:], strict=True):
        fitting = seconds[part]
        number = np.searchsorted(fitting, end, side="right")
        there = number < len(fitting)
        begun, end = begun[there], end[there]
        later = fitting[number[there]]
        if neighbour:
            begun, later = begun[later == end + 1], later[later == end + 1]
        end = later
    return int(np.sum(end - begun <= window))


DATASETS: Mapping[str, Callable[[int], Dataset]] = {"SMD": shares, "CCD": cards, "TD": traffic, "SHD": houses}
