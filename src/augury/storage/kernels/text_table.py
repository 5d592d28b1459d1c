"""Texts as numbers: the bytes of different texts, one after the other, and buckets by which each is found.

A hash has 31 bits, of which the lowest one is the family of the text: a text and an IRI that are written alike differ.
Hashes are of 64 bits on the way and overflow, of which Python would warn, so these kernels are called once they are compiled.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from augury.core.arrays import Array, Integers
from augury.core.jit import Kernel, helper
from augury.storage.kernels.hashing import AHEAD, FAR_AWAY, NUMBER

MAKES_NO_ARRAYS = True
FACTOR = 0x9FB21C651E98DF25


@helper
def text_hash(words: Array, position: int, size: int, family: int) -> Any:
    """The hash of the bytes from a position on. `words` are the bytes eight at a time, with a word more."""
    k, shift = position >> 3, np.uint64((position & 7) << 3)
    rest = np.uint64(63) - shift
    h = np.uint64(size) * np.uint64(FACTOR)
    while size > 0:
        word = (words[k] >> shift) | ((words[k + 1] << rest) << np.uint64(1))
        if size < 8:
            word &= (np.uint64(1) << np.uint64(8 * size)) - np.uint64(1)
        h = (h ^ word) * np.uint64(FACTOR)
        h ^= h >> np.uint64(32)
        k += 1
        size -= 8
    h = (h ^ (h >> np.uint64(29))) * np.uint64(FACTOR)
    return (np.int64(h >> np.uint64(34)) << 1) | family


@helper
def same_text(letters: Array, position: int, others: Array, other: int, size: int) -> bool:
    k = 0
    while k < size and letters[position + k] == others[other + k]:
        k += 1
    return k == size


@Kernel
def refill_texts(hashes: Array, count: int, buckets: Integers) -> None:
    """Fills new buckets with the texts there are."""
    mask = len(buckets) - 1
    for i in range(count):
        h = np.int64(hashes[i])
        b = h & mask
        while buckets[b] >= 0:
            b = (b + 1) & mask
        buckets[b] = h << 32 | i


@Kernel
def intern_texts(
    words: Array, letters: Array, offsets: Array, first: int, families: Array, add: bool, ahead: Array,
    pool: Array, ends: Array, hashes: Array, count: int, buckets: Integers, places: Array,
) -> tuple[int, int]:  # fmt: skip
    """The places of texts in the pool, from the first one on; new ones are added, or have the position -1.

    `families` has that of each text, or the one of all. How many texts the pool has then, and how many have been looked
    up: fewer where the pool has no room for more letters. `ahead` has room for AHEAD hashes.
    """
    mask, ready, last = len(buckets) - 1, first, len(families) - 1
    for i in range(first, len(places)):
        if i >= ready:
            ready = min(i + AHEAD, len(places))
            for later in range(i, ready):  # reads ahead
                size = offsets[later + 1] - offsets[later]
                ahead[later % AHEAD] = text_hash(words, offsets[later], size, families[min(later, last)])
                if len(buckets) >= FAR_AWAY:
                    places[later] = buckets[ahead[later % AHEAD] & mask]
        h, lo, size = ahead[i % AHEAD], offsets[i], offsets[i + 1] - offsets[i]
        b = h & mask
        while buckets[b] >= 0:
            position = buckets[b] & NUMBER
            like = buckets[b] >> 32 == h and ends[position + 1] - ends[position] == size
            if like and same_text(letters, lo, pool, ends[position], size):
                break
            b = (b + 1) & mask
        if buckets[b] < 0:
            if not add:
                places[i] = -1
                continue
            end = ends[count]
            if end + size > len(pool):
                return count, i
            for k in range(size):
                pool[end + k] = letters[lo + k]
            ends[count + 1] = end + size
            hashes[count] = h
            buckets[b] = h << 32 | count
            count += 1
        places[i] = buckets[b] & NUMBER
    return count, len(places)
