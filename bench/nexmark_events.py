"""The events of Nexmark: people, auctions and bids of an auction house, in Arrow tables.

Written from the public description of the benchmark (https://github.com/nexmark/nexmark). Of 50 events one is a person, three are
auctions and 46 are bids, 10,000 a second with times in milliseconds, so that about ten share a time. Half of the bids are on the
hot auction, three quarters come from the hot bidder, and half of the channels are among four.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.workload import Tables

pa = import_module("pyarrow")  # which has no types to check
pc = import_module("pyarrow.compute")
pq = import_module("pyarrow.parquet")

Ints = NDArray[np.int64]

CYCLE, PEOPLE, AUCTIONS = 50, 1, 3
PER_SECOND = 10_000
START_US = 1_767_225_600_000_000  # 2026-01-01
FIRST_ID, FIRST_CATEGORY, CATEGORIES = 1_000, 10, 5
IN_FLIGHT, ACTIVE = 100, 1_000  # auctions that take bids, people who are about
HOT = 100  # of so many auctions or people the first is the hot one
CHANNELS = 10_000
HOT_CHANNELS = ("Google", "Facebook", "Baidu", "Apple")
FIRST_NAMES = ["Peter", "Paul", "Luke", "John", "Saul", "Vicky", "Kate", "Julie", "Sarah", "Deiter", "Walter"]
LAST_NAMES = ["Shultz", "Abrams", "Spencer", "White", "Bartels", "Walton", "Smith", "Jones", "Noris"]
CITIES = (
    "Phoenix",
    "Los Angeles",
    "San Francisco",
    "Boise",
    "Portland",
    "Bend",
    "Redmond",
    "Seattle",
    "Kent",
    "Cheyenne",
)
STATES = ("AZ", "CA", "ID", "OR", "WA", "WY")
SIDE_ROWS = 10_000
LETTERS = np.frombuffer(b"abcdefghijklmnopqrstuvwxyz_ ", np.uint8)


@dataclass(frozen=True)
class Nexmark:
    """A history: a table for each type of event in the order of time, and the table that bids are joined with."""

    events: int
    tables: Tables
    numbers: dict[str, Ints]  # the place of each event in the order of arrival
    side: Any

    @property
    def until(self) -> str:
        """A day after the first event: all windows have ended then."""
        days = 1 + self.events // (PER_SECOND * 86_400)
        return str(np.datetime64(START_US, "us") + np.timedelta64(days, "D"))

    def pushes(self, size: int) -> Iterator[Tables]:
        """The history in steps of so many events."""
        for low in range(0, self.events, size):
            places = {name: np.searchsorted(numbers, (low, low + size)) for name, numbers in self.numbers.items()}
            yield {name: self.tables[name].slice(i, j - i) for name, (i, j) in places.items() if i < j}

    def write(self, folder: Path) -> dict[str, str]:
        """Writes a Parquet file for each table; their paths by name."""
        paths = {name: str(folder / f"{name}.parquet") for name in (*self.tables, "side")}
        for name, path in paths.items():
            pq.write_table(self.side if name == "side" else self.tables[name], path)
        return paths


def history(events: int, seed: int = 7) -> Nexmark:
    """So many events, the same ones for the same seed."""
    rng = np.random.default_rng(seed)
    number = np.arange(events)
    place = number % CYCLE
    numbers = {
        "person": number[place < PEOPLE],
        "auction": number[(place >= PEOPLE) & (place < PEOPLE + AUCTIONS)],
        "bid": number[place >= PEOPLE + AUCTIONS],
    }
    tables = {"person": _people, "auction": _auctions, "bid": _bids}
    side = pa.table({"key": np.arange(SIDE_ROWS), "value": pa.array([f"value-{n}" for n in range(SIDE_ROWS)])})
    return Nexmark(events, {name: make(rng, numbers[name]) for name, make in tables.items()}, numbers, side)


def _people(rng: np.random.Generator, number: Ints) -> Any:
    count = len(number)
    first, last = _pick(rng, FIRST_NAMES, count), _pick(rng, LAST_NAMES, count)
    parts = [_texts(rng, count, 7, 7), _texts(rng, count, 5, 5)]
    return pa.table(
        {
            "person": FIRST_ID + np.arange(count),
            "name": pc.binary_join_element_wise(first, last, " "),
            "email": pc.binary_join_element_wise(pc.binary_join_element_wise(*parts, "@"), "com", "."),
            "card": pc.cast(pa.array(rng.integers(10**15, 10**16, count)), pa.string()),
            "city": _pick(rng, CITIES, count),
            "state": _pick(rng, STATES, count),
            "time": _times(number),
        }
    )


def _auctions(rng: np.random.Generator, number: Ints) -> Any:
    count, initial = len(number), _prices(rng, len(number))
    longest = IN_FLIGHT * CYCLE // AUCTIONS * 2 * 1_000 // PER_SECOND  # milliseconds
    lasts = 1_000 * (1 + rng.integers(0, longest, count))
    return pa.table(
        {
            "auction": FIRST_ID + np.arange(count),
            "item": _texts(rng, count, 3, 20),
            "description": _texts(rng, count, 3, 100),
            "initial": initial,
            "reserve": initial + _prices(rng, count),
            "expires": pc.add(_times(number), pa.array(lasts, pa.duration("us"))),
            "seller": _someone(rng, number, 0),
            "category": FIRST_CATEGORY + rng.integers(0, CATEGORIES, count),
            "time": _times(number),
        }
    )


def _bids(rng: np.random.Generator, number: Ints) -> Any:
    count = len(number)
    last = _known(number, AUCTIONS, PEOPLE)
    hot = rng.random(count) < 1 / 2
    some = np.maximum(last - rng.integers(0, IN_FLIGHT, count), 0)
    channel = np.where(rng.random(count) < 1 / 2, rng.integers(0, 4, count), 4 + rng.integers(0, CHANNELS, count))
    names = pa.array([*HOT_CHANNELS, *(f"channel-{n}" for n in range(CHANNELS))])
    return pa.table(
        {
            "auction": FIRST_ID + np.where(hot, last // HOT * HOT, some),
            "bidder": _someone(rng, number, 1),
            "price": _prices(rng, count),
            "channel": names.take(pa.array(channel)),
            "url": _urls(rng).take(pa.array(channel)),
            "extra": _texts(rng, count, 40, 70),
            "time": _times(number),
        }
    )


def _urls(rng: np.random.Generator) -> Any:
    """The address of each channel; nine in ten of those that are not hot say their id in it."""
    count = len(HOT_CHANNELS) + CHANNELS
    ids, folders = rng.integers(0, 2**31, count), [_texts(rng, count, 3, 8).to_pylist() for _ in range(3)]
    named = (rng.random(count) < 0.9) & (np.arange(count) >= len(HOT_CHANNELS))
    return pa.array(
        f"https://www.nexmark.com/{a}/{b}/{c}/item.htm?query=1" + (f"&channel_id={id}" if has_id else "")
        for a, b, c, id, has_id in zip(*folders, ids.tolist(), named.tolist(), strict=True)
    )


def _someone(rng: np.random.Generator, number: Ints, hot: int) -> Ints:
    """A person who is known when an event comes: three times in four the hot one, else one of the last."""
    last = _known(number, PEOPLE, 0)
    some = np.maximum(last - rng.integers(0, ACTIVE, len(number)), 0)
    chosen: Ints = np.where(rng.random(len(number)) < 3 / 4, np.minimum(last // HOT * HOT + hot, last), some)
    return FIRST_ID + chosen


def _known(number: Ints, share: int, before: int) -> Ints:
    """The last of the people or auctions up to an event."""
    last: Ints = number // CYCLE * share + np.clip(number % CYCLE - before, 0, share - 1)
    return last


def _times(number: Ints) -> Any:
    return pa.array(START_US + number * 1_000 // PER_SECOND * 1_000, pa.timestamp("us", "UTC"))


def _prices(rng: np.random.Generator, count: int) -> Ints:
    """Prices in cents, from 100 to 100 million, whose logarithms are uniform."""
    return np.round(100 * 10 ** (6 * rng.random(count))).astype(np.int64)


def _pick(rng: np.random.Generator, texts: Sequence[str], count: int) -> Any:
    return pa.array(texts).take(pa.array(rng.integers(0, len(texts), count)))


def _texts(rng: np.random.Generator, count: int, least: int, most: int) -> Any:
    """Random texts of letters, `_` and spaces."""
    ends = np.concatenate([[0], np.cumsum(rng.integers(least, most + 1, count))]).astype(np.int32)
    letters = LETTERS[rng.integers(0, len(LETTERS), int(ends[-1]), dtype=np.uint8)]
    return pa.StringArray.from_buffers(count, pa.py_buffer(ends), pa.py_buffer(letters))
