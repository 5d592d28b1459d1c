"""Streams for the papers' experiments: keys with a few events each, close together, many keys at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bench.streams import BEGIN, SEED, SPREAD, Floats, Ints
from bench.workload import BATCH, Tables, tables

ABSENT = -1


@dataclass(frozen=True)
class Bundled:
    """Columns in the order of time: each event has its type's number, its key and a value between 0 and 1."""

    kind: Ints
    key: Ints
    value: Floats
    time: Ints

    def __len__(self) -> int:
        return len(self.time)

    def tables(self, names: Sequence[str], batch: int = BATCH) -> list[Tables]:
        return tables(self.kind, names, {"time": self.time, "key": self.key, "value": self.value}, batch)


def bundled(kinds: Ints) -> Bundled:
    """A row of `kinds` is a key: its events, in this order, fall within 400 ms; what is ABSENT does not happen."""
    rng = np.random.default_rng(SEED)
    keys, width = kinds.shape
    due = np.arange(keys)[:, None] * width + np.sort(rng.random(kinds.shape) * SPREAD, axis=1)
    there = kinds != ABSENT
    order = np.argsort(due[there], kind="stable")
    key = np.broadcast_to(np.arange(keys)[:, None], kinds.shape)[there]
    return Bundled(
        kinds[there][order],
        key[order],
        rng.random(kinds.shape)[there][order],
        np.arange(BEGIN, BEGIN + len(order), dtype=np.int64),
    )


def alike(keys: int, kinds: Sequence[int]) -> Ints:
    """Every key has the same events."""
    return np.tile(np.array(kinds, np.int64), (keys, 1))
