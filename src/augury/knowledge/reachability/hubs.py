"""Hubs: each component stores which hubs it reaches and which hubs reach it."""

from __future__ import annotations

import numpy as np

from augury.core.arrays import Array, Times
from augury.core.jit import Kernel, helper

BITS = 62  # of a word: no sign
HUB_WORDS = 8_000_000  # how many words at most are spent on hubs, each way


@Kernel
def know_hubs(start: Times, ends: Times, hub: Array, hubs: Array) -> None:
    """Of each component the hubs it reaches and those that reach it, itself among them; `hub` numbers the hubs."""
    n = len(hub)
    row = np.empty(hubs.shape[2], np.int64)
    for way in range(2):
        for i in range(n):
            c = n - 1 - i if way == 0 else i
            row[:] = 0
            for e in range(start[way, c], start[way, c + 1]):
                z = ends[way, e]
                for w in range(len(row)):
                    row[w] |= hubs[z, way, w]
            if hub[c] >= 0:
                row[hub[c] // BITS] |= 1 << (hub[c] % BITS)
            hubs[c, way] = row


def hubs_of(start: Times, ends: Times) -> Array:
    """Reachability of hubs from components: of all of them where they are few, else of those with the most ways through."""
    n = start.shape[1] - 1
    words = min(-(-n // BITS), min(HUB_WORDS, 8 * (n + ends.shape[1])) // max(n, 1))
    hubs, hub = np.zeros((n, 2, words), np.int64), np.full(n, -1, np.int64)
    if words * BITS >= n:
        hub = np.arange(n)
    elif words:
        through = np.diff(start, axis=1).prod(axis=0)
        hub[np.argsort(-through, kind="stable")[: words * BITS]] = np.arange(words * BITS)
    if words:
        know_hubs(start, ends, hub, hubs)
    return hubs


@helper
def by_hubs(x: int, y: int, hubs: Array) -> int:
    """Whether hubs decide two components: 1 yes by one between them, -1 no by one that only the wrong one reaches, 0 not."""
    yes, no = 0, 0
    for w in range(hubs.shape[2]):  # without a way out, so that it takes several words at once
        yes |= hubs[x, 0, w] & hubs[y, 1, w]
        no |= (hubs[y, 0, w] & ~hubs[x, 0, w]) | (hubs[x, 1, w] & ~hubs[y, 1, w])
    return 1 if yes else -1 if no else 0


@helper
def astray(z: int, end: int, way: int, hubs: Array) -> bool:
    """Whether a hub that reaches a component does not reach the end of a search; backwards: the other way round.

    Nothing else is worth asking on the way, where hubs decide nothing of both ends: then none is between them.
    """
    result = 0
    for w in range(hubs.shape[2]):
        result |= hubs[z, 1 - way, w] & ~hubs[end, 1 - way, w]
    return result != 0
