"""Floats as numbers of a dictionary."""

from __future__ import annotations

from augury.core.arrays import Array, Integers
from augury.core.jit import Kernel
from augury.storage.kernels.hashing import AHEAD, FAR_AWAY, NUMBER, mix_hash

MAKES_NO_ARRAYS = True


@Kernel
def refill_floats(floats: Array, bits: Array, buckets: Integers) -> None:
    """Fills new buckets with the floats there are."""
    mask = len(buckets) - 1
    for i in range(len(floats)):
        h = mix_hash(1540483477, bits[i])
        b = h & mask
        while buckets[b] >= 0:
            b = (b + 1) & mask
        buckets[b] = h << 32 | floats[i]


@Kernel
def intern_floats(values: Array, bits: Array, numbers: Array, n: int, buckets: Integers, ids: Array) -> int:
    """The ids of floats in a table of floats, new ones added from `n` on; how many there are then."""
    mask, ready = len(buckets) - 1, 0 if len(buckets) >= FAR_AWAY else len(values)
    for i in range(len(values)):
        if i >= ready:
            ready = min(i + AHEAD, len(values))
            for later in range(i, ready):  # reads ahead
                ids[later] = buckets[mix_hash(1540483477, bits[later]) & mask]
        h = mix_hash(1540483477, bits[i])
        b = h & mask
        while buckets[b] >= 0 and (buckets[b] >> 32 != h or numbers[buckets[b] & NUMBER] != values[i]):
            b = (b + 1) & mask
        if buckets[b] < 0:
            buckets[b] = h << 32 | n
            numbers[n] = values[i]
            n += 1
        ids[i] = buckets[b] & NUMBER
    return n
