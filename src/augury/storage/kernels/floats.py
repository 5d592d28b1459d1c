"""Floats as numbers of a dictionary."""

from __future__ import annotations

from augury.core.arrays import Array, Integers
from augury.core.jit import Kernel
from augury.storage.kernels.hashing import AHEAD, FAR_AWAY, NUMBER, mixed

MAKES_NO_ARRAYS = True


@Kernel
def refill_floats(known: Array, bits: Array, buckets: Integers) -> None:
    """Fills new buckets with the floats there are."""
    mask = len(buckets) - 1
    for i in range(len(known)):
        h = mixed(1540483477, bits[i])
        b = h & mask
        while buckets[b] >= 0:
            b = (b + 1) & mask
        buckets[b] = h << 32 | known[i]


@Kernel
def intern_floats(given: Array, bits: Array, numbers: Array, n: int, buckets: Integers, ids: Array) -> int:
    """The ids of floats in a table of floats, new ones added from `n` on; how many there are then."""
    mask, ready = len(buckets) - 1, 0 if len(buckets) >= FAR_AWAY else len(given)
    for i in range(len(given)):
        if i >= ready:
            ready = min(i + AHEAD, len(given))
            for later in range(i, ready):  # reads ahead
                ids[later] = buckets[mixed(1540483477, bits[later]) & mask]
        h = mixed(1540483477, bits[i])
        b = h & mask
        while buckets[b] >= 0 and (buckets[b] >> 32 != h or numbers[buckets[b] & NUMBER] != given[i]):
            b = (b + 1) & mask
        if buckets[b] < 0:
            buckets[b] = h << 32 | n
            numbers[n] = given[i]
            n += 1
        ids[i] = buckets[b] & NUMBER
    return n
