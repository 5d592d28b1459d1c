"""State kept as facts that events make and end: what a change costs, in order and out of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

import augury
from bench.measure import Settings, timed
from bench.rows import Row
from bench.streams import SEED, Ints

STATE = """event up(key: int). event dn(key: int). event ping(key: int).
fact on(K) <- up(K).
fact not on(K) <- dn(K).
seen(K) <- ping(K) WHERE on(K).
"""
CHANGES = "K changes/CPU s"
LEAST = 200  # thousands
KEYS = (1, 1000)
PORTION, LATE = 10_000, 1000
TYPES = np.array(["up", "dn", "ping"])


def stream(changes: int, keys: int, late: int) -> tuple[Any, int]:
    """Changes and, after every two, a question; a table in the order of arrival, and how many answers there are."""
    rng, count = np.random.default_rng(SEED), changes * 3 // 2
    time = np.arange(count)
    key = rng.integers(0, keys, count)
    order = np.argsort(time + rng.integers(0, late + 1, count), kind="stable")
    table = pa.table({"type": TYPES[time % 3][order], "key": key[order], "time": time[order]})
    return table, questions_met(time % 3, key, keys)


def questions_met(kind: Ints, key: Ints, keys: int) -> int:
    """How many questions come after an `up` of their key and before its next `dn`."""
    held, met = [False] * keys, 0
    for what, one in zip(kind.tolist(), key.tolist(), strict=True):
        if what == 2:
            met += held[one]
        else:
            held[one] = what == 0
    return met


def told(table: Any, portion: int, **settings: Any) -> int:
    """How many answers stand in the end: those given, without those taken back."""
    session, standing = augury.compile(STATE).session(clock="logical", **settings), 0
    for first in range(0, len(table), portion):
        changes = session.push(table.slice(first, portion))
        standing += len(changes.inserted) - len(changes.retracted)
    return standing


def state(settings: Settings) -> Iterator[Row]:
    """Changes of one key and of many, at once and in portions, in order and late."""
    changes = 2 * (settings.events // 2)
    for keys in KEYS:
        for case, late, portion, given in (
            ("at once", 0, 3 * changes, {}),
            ("in order, forgetting", 0, PORTION, {"lateness": "0s"}),
            (f"up to {LATE:,} late, forgetting", LATE, PORTION, {"lateness": f"{LATE}s"}),
        ):
            table, expected = stream(changes, keys, late)
            told(table.slice(0, PORTION), PORTION, **given)
            runs = [timed(lambda t=table, p=portion, g=given: told(t, p, **g)) for _ in range(settings.repeat)]  # type: ignore[misc]
            rate = changes / min(cpu for cpu, _ in runs) / 1000
            name = f"{keys:,} key{'' if keys == 1 else 's'}"
            yield Row("state", f"{name}, {case}", "augury", rate, CHANGES, changes, runs[0][1], expected, least=LEAST)


EXPERIMENTS = {"state": state}
