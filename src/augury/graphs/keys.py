"""Interns byte strings: each distinct string has a number; the strings lie in one array with a hash table.

Until kernels are compiled the table is a dict of Python's. Afterwards it is an array of buckets, which kernels write to as
well, see `ntriples.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from augury.core.arrays import Array, Bytes, Integers, RowIds
from augury.core.jit import Kernel, helper
from augury.storage.kernels.hashing import EMPTY, NUMBER
from augury.storage.table import capacity, grown

MAKES_NO_ARRAYS = True
SEED, _PRIME, _OTHER, _BITS = 0x1505, 0x01000193, 668265263, 0x7FFFFFFF


@helper
def hash_of(data: Bytes, begin: int, end: int) -> int:
    """A hash of 31 bits. Four are made of every fourth byte each, so that none waits for the product of another."""
    a, b, c, d, pos = SEED, SEED + 1, SEED + 2, SEED + 3, begin
    while pos + 4 <= end:
        a = ((a ^ int(data[pos])) * _PRIME) & _BITS
        b = ((b ^ int(data[pos + 1])) * _PRIME) & _BITS
        c = ((c ^ int(data[pos + 2])) * _PRIME) & _BITS
        d = ((d ^ int(data[pos + 3])) * _PRIME) & _BITS
        pos += 4
    while pos < end:
        a = ((a ^ int(data[pos])) * _PRIME) & _BITS
        pos += 1
    a = ((a ^ b) * _OTHER + c) & _BITS
    a = ((a ^ (a >> 13)) * _OTHER + d) & _BITS
    return a ^ (a >> 16)


@helper
def same_bytes(data: Bytes, begin: int, other_data: Array, other_begin: int, length: int) -> bool:
    """Whether the same bytes stand at two places. All are looked at, many at a time."""
    different = 0
    for i in range(length):
        different |= data[begin + i] ^ other_data[other_begin + i]
    return different == 0


@helper
def find_key(source: Array, begin: int, end: int, h: int, keys: Array, ends: Integers, buckets: Integers) -> int:
    """The bucket of a key; where it is not there, the empty one for it. `h` is its hash."""
    mask = len(buckets) - 1
    b = h & mask
    while buckets[b] >= 0:
        here = buckets[b]
        if here >> 32 == h:
            number = here & NUMBER
            first = ends[number]
            if ends[number + 1] - first == end - begin and same_bytes(keys, first, source, begin, end - begin):
                return b
        b = (b + 1) & mask
    return b


@helper
def put_key(
    source: Array, begin: int, end: int, h: int, keys: Array, ends: Integers, n: int, buckets: Integers, b: int
) -> None:
    """Adds a key that is new, as number `n`, to the bucket that is empty for it."""
    first = ends[n]
    for i in range(end - begin):
        keys[first + i] = source[begin + i]
    ends[n + 1] = first + end - begin
    buckets[b] = (h << 32) | n


@helper
def add_key(source: Array, begin: int, end: int, h: int, keys: Array, ends: Integers, n: int, buckets: Integers) -> int:
    """The number of a key, which is `n` where it is new; there is room for it."""
    b = find_key(source, begin, end, h, keys, ends, buckets)
    if buckets[b] >= 0:
        return buckets[b] & NUMBER  # type: ignore[no-any-return]
    put_key(source, begin, end, h, keys, ends, n, buckets, b)
    return n


@Kernel
def enter_keys(keys: Array, ends: Integers, lo: int, hi: int, buckets: Integers) -> None:
    """Puts keys that are there into the buckets."""
    for number in range(lo, hi):
        h = hash_of(keys, ends[number], ends[number + 1])
        buckets[find_key(keys, ends[number], ends[number + 1], h, keys, ends, buckets)] = (h << 32) | number


@Kernel
def add_keys(
    data: Bytes, bounds: Array, keys: Array, ends: Integers, n: int, buckets: Integers, numbers: Integers
) -> int:
    """The numbers of keys that stand one behind the other in `data`; how many there are then."""
    for i in range(len(bounds) - 1):
        h = hash_of(data, bounds[i], bounds[i + 1])
        numbers[i] = add_key(data, bounds[i], bounds[i + 1], h, keys, ends, n, buckets)
        if numbers[i] == n:
            n += 1
    return n


def compiled() -> bool:
    """Whether the kernels of this file run fast."""
    return add_keys.call is not add_keys.python


class Keys:
    """Different keys by their numbers, which begin at 0."""

    def __init__(self) -> None:
        self.data = np.empty(1 << 12, np.uint8)
        self.ends = np.zeros(1 << 6, np.int64)  # where each key ends; it begins where the one before ends
        self.n = 0
        self.buckets = np.full(16, EMPTY, np.int64)
        self._entered = 0  # how many keys the buckets have
        self._numbers: dict[bytes, int] = {}

    def __len__(self) -> int:
        return self.n

    @property
    def size(self) -> int:
        """How many bytes all keys have together."""
        return int(self.ends[self.n])

    def key(self, number: int) -> bytes:
        return self.data[self.ends[number] : self.ends[number + 1]].tobytes()

    def all(self, lo: int, hi: int) -> list[bytes]:
        text = self.data[self.ends[lo] : self.ends[hi]].tobytes()
        bounds = (self.ends[lo : hi + 1] - self.ends[lo]).tolist()
        return [text[a:b] for a, b in pairwise(bounds)]

    def find(self, key: bytes) -> int:
        """The number of a key; -1 where it is not there."""
        if not compiled():
            self._list()
            return self._numbers.get(key, -1)
        self.room(0, 0)
        data = np.frombuffer(key, np.uint8)
        h = hash_of(data, 0, len(key))
        result = self.buckets[find_key(data, 0, len(key), h, self.data, self.ends, self.buckets)]
        return int(result & NUMBER) if result >= 0 else -1

    def add(self, keys: Sequence[bytes]) -> Array:
        """The numbers of keys; those that are new get one."""
        if not compiled():
            return self._add_plainly(keys)
        bounds = np.zeros(len(keys) + 1, np.int64)
        np.cumsum([len(key) for key in keys], out=bounds[1:])
        return self._add(np.frombuffer(b"".join(keys), np.uint8), bounds)

    def add_all(self, others: Keys, first: int) -> Array:
        """The numbers of all keys that others have from a number on."""
        if not compiled():
            return self._add_plainly(others.all(first, others.n))
        return self._add(others.data, others.ends[first : others.n + 1])

    def _add(self, data: Bytes, bounds: Array) -> Array:
        count = len(bounds) - 1
        self.room(int(bounds[-1] - bounds[0]), count)
        numbers = np.empty(count, np.int64)
        self.n = add_keys(data, bounds, self.data, self.ends, self.n, self.buckets, numbers)
        self._entered = self.n
        return numbers

    def _add_plainly(self, keys: Sequence[bytes]) -> Array:
        self._list()
        number_of, new = self._numbers, list[bytes]()
        numbers = np.empty(len(keys), np.int64)
        for i, key in enumerate(keys):
            number = number_of.setdefault(key, self.n + len(new))
            if number == self.n + len(new):
                new.append(key)
            numbers[i] = number
        self._append(new)
        return numbers

    def _append(self, new: Sequence[bytes]) -> None:
        joined = b"".join(new)
        self._grow(len(joined), len(new))
        first = self.size
        self.data[first : first + len(joined)] = np.frombuffer(joined, np.uint8)
        self.ends[self.n + 1 : self.n + 1 + len(new)] = first + np.cumsum([len(key) for key in new], dtype=np.int64)
        self.n += len(new)

    def _list(self) -> None:
        """The dict has all keys."""
        if len(self._numbers) < self.n:
            lo = len(self._numbers)
            self._numbers.update(zip(self.all(lo, self.n), range(lo, self.n), strict=True))

    def _grow(self, size: int, count: int) -> None:
        if self.size + size > len(self.data):
            self.data = grown(self.data, capacity(self.size + size), self.size)
        if self.n + count + 1 > len(self.ends):
            self.ends = grown(self.ends, capacity(self.n + count + 1), self.n + 1)

    def room(self, size: int, count: int) -> None:
        """Makes room for so many more bytes and keys, for kernels that add them; the buckets have all keys then."""
        self._numbers.clear()
        self._grow(size, count)
        if 2 * (self.n + count) > len(self.buckets):
            self.buckets = np.full(1 << (4 * (self.n + count) - 1).bit_length(), EMPTY, np.int64)
            self._entered = 0
        if self._entered < self.n:
            enter_keys(self.data, self.ends, self._entered, self.n, self.buckets)
            self._entered = self.n

    def grew(self, n: int) -> None:
        """A kernel has added keys."""
        self.n = self._entered = n

    def retain(self, numbers: Integers) -> Array:
        """Forgets all other keys. For each number the new one, -1 where the key is gone."""
        kept = np.zeros(self.n, bool)
        kept[numbers] = True
        rows = np.flatnonzero(kept)
        places = np.full(self.n, -1, np.int64)
        places[rows] = np.arange(len(rows))
        self.data, self.ends = taken(self.data, self.ends, rows)
        self.n, self._entered = len(rows), 0
        self.buckets = np.full(16, EMPTY, np.int64)
        self._numbers.clear()
        return places

    def state(self) -> dict[str, Any]:
        return {"keys": self.data[: self.size].copy(), "ends": self.ends[: self.n + 1].copy()}

    @staticmethod
    def restored(state: dict[str, Any]) -> Keys:
        result = Keys()
        result.data, result.ends = state["keys"].copy(), state["ends"].copy()
        result.n = len(result.ends) - 1
        return result


def taken(data: Bytes, ends: Integers, rows: RowIds) -> tuple[Array, Array]:
    """Some of the strings that stand one behind the other."""
    begins, lengths = ends[rows], ends[rows + 1] - ends[rows]
    bounds = np.zeros(len(rows) + 1, np.int64)
    np.cumsum(lengths, out=bounds[1:])
    places = np.arange(bounds[-1]) + np.repeat(begins - bounds[:-1], lengths)
    return data[places], bounds
