"""The numbers of nodes, and of edges: 0, 1, 2 in the order in which they come."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from augury.core.arrays import Array, Codes
from augury.core.jit import Kernel, count_work
from augury.storage.kernels.hashing import mix_hash


def grown(array: Array, size: int, fill: int) -> Array:
    """An array with room for `size` rows and some more."""
    if len(array) >= size:
        return array
    larger = np.full((size + size // 8 + 16, *array.shape[1:]), fill, array.dtype)
    larger[: len(array)] = array
    return larger


@Kernel
def number(codes: Codes, table: Array, n: int, numbered: Array, ids: Array) -> int:
    """The number of each code; new ones are added from `n` on while `known` has room, else -1. How many there are then."""
    mask = len(table) - 1
    for i in range(len(codes)):
        code = codes[i]
        b = mix_hash(0, code) & mask
        while table[b, 1] >= 0 and table[b, 0] != code:
            b = (b + 1) & mask
        if table[b, 1] < 0 and n < len(numbered):
            table[b, 0] = code
            table[b, 1] = n
            numbered[n] = code
            n += 1
        ids[i] = table[b, 1]
    return n


class Numbering:
    """The codes that are known, and the number of each."""

    def __init__(self) -> None:
        self._table, self._known, self.n = np.full((16, 2), -1, np.int64), np.empty(0, np.int64), 0

    @property
    def codes(self) -> Array:
        return self._known[: self.n]

    def find(self, codes: Codes | Sequence[int]) -> Array:
        """The number of each code; -1 where it has none."""
        codes = np.ascontiguousarray(codes, np.int64)
        count_work(len(codes))
        ids = np.empty(len(codes), np.int64)
        number(codes, self._table, self.n, self.codes, ids)
        return ids

    def add(self, codes: Codes | Sequence[int]) -> Array:
        """The number of each code, a new one where it has none."""
        codes = np.ascontiguousarray(codes, np.int64)
        count_work(len(codes))
        ids, done = np.empty(len(codes), np.int64), 0
        while done < len(codes):  # in portions: most codes are known
            end = min(len(codes), done + max(1024, self.n))
            self._make_room(self.n + end - done)
            self.n = number(codes[done:end], self._table, self.n, self._known, ids[done:end])
            done = end
        return ids

    def _make_room(self, size: int) -> None:
        self._known = grown(self._known, size, 0)
        if 2 * size > len(self._table):
            self._table = np.full((1 << max(4, (2 * size).bit_length()), 2), -1, np.int64)  # at most half of it is used
            number(self.codes, self._table, 0, self._known, np.empty(self.n, np.int64))
