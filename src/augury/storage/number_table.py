"""Floats, points or lengths of time as values of a dictionary, which are found by their bits."""

from __future__ import annotations

import numpy as np

from augury.core.arrays import Array, Integers
from augury.storage.kernels.floats import intern_floats, refill_floats
from augury.storage.kernels.hashing import EMPTY


class NumberTable:
    """The numbers in a dictionary of the values of one kind: by value, and once many have come by bits."""

    def __init__(self, kind: int) -> None:
        self.kind = kind
        self.by_value: dict[float, int] = {}
        self.in_bulk = False  # whether they have come in bulk
        self._count = 0
        self._buckets: Array | None = None

    @property
    def bytes(self) -> int:
        return 100 * len(self.by_value) + (0 if self._buckets is None else int(self._buckets.nbytes))

    def places(self, column: Array, n: int, kinds: Array, payload: Array) -> tuple[Integers, int]:
        """The numbers of values, new ones added from `n` on where there is room; how many numbers there are then."""
        numbers = np.empty(len(column), np.int64)
        buckets, self._buckets = self._buckets, None  # where this is broken off, they are made anew
        if buckets is None or 3 * (self._count + len(column)) > 2 * len(buckets):
            old = np.flatnonzero(kinds[:n] == self.kind)
            self._count = len(old)
            buckets = np.full(1 << (2 * (self._count + len(column)) + 1024).bit_length(), EMPTY, np.int64)
            refill_floats(old, payload[old], buckets)
            self.in_bulk, self.by_value = True, {}
        most = intern_floats(column, column.view(np.int64), payload.view(column.dtype), n, buckets, numbers)
        self._count += most - n
        self._buckets = buckets
        return numbers, most

    def cut(self, n: int) -> None:
        """Forgets the values from a number on."""
        self.by_value = {value: number for value, number in self.by_value.items() if number < n}
        self._buckets = None
