"""The three streams on which engines are compared, as columns.

They are defined by their random draws: one generator with seed 7 draws `abcd`, then `kleene`, then `stock`. Whoever
draws in this order has the same events, so counts and speeds can be compared between engines. Times are ticks of one
millisecond, strictly increasing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from random import Random
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from augury.core.model import Event

WINDOW = 1000  # the events of one key of abcd and kleene lie closer together than this
BEGIN = 1_000_000
SPREAD = 400
SEED = 7
KINDS = "abcd"
A, B, C, D = range(4)

Ints: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True)
class Stream:
    """Columns in the order of time; `kind` is the place of the type's name in `KINDS`."""

    kind: Ints
    key: Ints
    x: Floats
    y: Floats
    time: Ints

    def __len__(self) -> int:
        return len(self.time)

    def rows(self) -> Iterator[tuple[str, int, float, float, int]]:
        kinds = (KINDS[k] for k in self.kind.tolist())
        return zip(kinds, self.key.tolist(), self.x.tolist(), self.y.tolist(), self.time.tolist(), strict=True)

    def events(self) -> list[Event]:
        return [Event(kind, (key, x, y), time) for kind, key, x, y, time in self.rows()]


@dataclass(frozen=True)
class Streams:
    """The streams of one size."""

    abcd: Stream
    kleene: Stream
    stock: Stream


@lru_cache(maxsize=3)
def streams(n: int) -> Streams:
    rng = Random(SEED)
    return Streams(abcd(n, rng), kleene(n, rng), stock(n, rng))


@dataclass
class _Draft:
    """Events with the moment at which they fall due; in that order each gets the next millisecond."""

    due: list[float] = field(default_factory=list)
    kind: list[int] = field(default_factory=list)
    key: list[int] = field(default_factory=list)
    x: list[float] = field(default_factory=list)
    y: list[float] = field(default_factory=list)

    def add(self, due: float, kind: int, key: int, x: float, y: float) -> None:
        self.due.append(due)
        self.kind.append(kind)
        self.key.append(key)
        self.x.append(round(x, 6))
        self.y.append(round(y, 6))

    def stream(self, n: int) -> Stream:
        order = np.argsort(np.array(self.due), kind="stable")[:n]
        return Stream(
            np.array(self.kind, np.int64)[order],
            np.array(self.key, np.int64)[order],
            np.array(self.x)[order],
            np.array(self.y)[order],
            np.arange(BEGIN, BEGIN + len(order), dtype=np.int64),
        )


def abcd(n: int, rng: Random) -> Stream:
    """Each key has one a, b, c and d: half of the keys with a before b before c, the others in any order."""
    draft = _Draft()
    for key in range(n // 4):
        offsets = sorted(SPREAD * rng.random() for _ in range(4))
        if rng.random() < 0.5:
            kinds = [A, B, C]
            kinds.insert(rng.randrange(4), D)
        else:
            kinds = [A, B, C, D]
            rng.shuffle(kinds)
        for offset, kind in zip(offsets, kinds, strict=True):
            draft.add(4 * key + offset, kind, key, rng.random(), rng.random())
    return draft.stream(n)


def kleene(n: int, rng: Random) -> Stream:
    """Each key has an a, then one to five b, then a c, and a d anywhere; seven times in ten the b's x are sorted."""
    draft = _Draft()
    drawn = key = 0
    while drawn < n:
        repeats = rng.randint(1, 5)
        offsets = sorted(SPREAD * rng.random() for _ in range(repeats + 2))
        middle = [rng.random() for _ in range(repeats)]
        if rng.random() < 0.7:
            middle.sort()
        xs = [rng.random(), *middle, rng.random()]
        for offset, kind, x in zip(offsets, [A] + [B] * repeats + [C], xs, strict=True):
            draft.add(drawn + offset, kind, key, x, rng.random())
        draft.add(drawn + SPREAD * rng.random(), D, key, rng.random(), rng.random())
        drawn += repeats + 3
        key += 1
    return draft.stream(n)


def stock(n: int, rng: Random, symbols: int = 100) -> Stream:
    """Rounds in which each symbol has one tick, in random order: x is a price that walks at random, y a volume."""
    price = [100.0] * symbols
    turn = list(range(symbols))
    draft = _Draft()
    while len(draft.due) < n:
        rng.shuffle(turn)
        for symbol in turn:
            price[symbol] = max(1.0, price[symbol] + rng.gauss(0, 0.5))
            draft.add(len(draft.due), A, symbol, price[symbol], 1000 * rng.random())
    return draft.stream(n)
