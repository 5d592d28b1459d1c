"""Distinct values, percentiles and first occurrences in ranges of the positions of running totals."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from augury.core.arrays import Array, Integers
from augury.storage.dictionary import NULL
from augury.storage.kernels.ranges import FIRST, ROOM, SAFE, SIZE
from augury.storage.kernels.rank_blocks import (
    BASE,
    DONE,
    LEAST,
    count_less,
    enter_positions,
    most_parts,
    positions_less,
    rehash_values,
    values_at,
)
from augury.storage.table import grown
from augury.storage.unique import unique

ORDERED, DISTINCT, DISTINCT_NULLS = 0, 1, 2  # what is asked of a column; null is a value only of the last kind


class RangeRanks:
    """Columns of values in the order of positions, with sorted copies of blocks: a range costs O(log² n) steps.

    Positions are entered when a range of their segment is first asked for. Where rows have been put between others, or taken
    out, the positions from there on are entered anew.
    """

    def __init__(self, kinds: Sequence[int]) -> None:
        self.kinds = np.array(kinds, np.int64)
        self.touched = 0
        self.reset()

    def reset(self) -> None:
        columns = len(self.kinds)
        self.entered = np.zeros((0, 2), np.int64)
        self.levels = np.zeros((1, columns, 0), np.int64)
        self.numbers = np.zeros((columns, 0), np.int32)
        self.value_entries, self.count = np.zeros((16, 3), np.int64), 0
        self.buckets = np.full(32, -1, np.int32)

    def enter(self, groups: Integers, spans: Array, slots: Array, values: Array) -> None:
        """Brings some segments up to date; the columns are the last rows of `values`."""
        groups = unique(groups)
        groups = groups[groups >= 0]
        self._make_room(groups, spans, len(slots))
        self.count, touched = enter_positions(
            groups, spans, self.entered, slots, values, self.kinds, NULL, self.levels, self.numbers, self.value_entries,
            self.buckets, self.count,
        )  # fmt: skip
        self.touched += int(touched)

    def _make_room(self, groups: Integers, spans: Array, size: int) -> None:
        if len(self.entered) < len(spans):
            self.entered = np.concatenate([self.entered, np.zeros((len(spans) - len(self.entered), 2), np.int64)])
        room = int(spans[groups, ROOM].max(initial=1))
        height, _, before = self.levels.shape
        more = max(height, 1 + (room // LEAST).bit_length())
        if more > height or size > before:
            levels = np.empty((more, len(self.kinds), max(size, before)), np.int64)
            levels[:height, :, :before] = self.levels
            self.levels = levels
            self.numbers = grown(self.numbers, size, before) if size > before else self.numbers
        stay = self.entered[groups, BASE] == spans[groups, FIRST]
        fresh = spans[groups, SIZE] - np.where(stay, np.minimum(spans[groups, SAFE], self.entered[groups, DONE]), 0)
        need = self.count + int(fresh.sum()) * int(np.count_nonzero(self.kinds))
        if need > len(self.value_entries):
            self.value_entries = np.concatenate([self.value_entries, np.zeros((need, 3), np.int64)])
            self.buckets = np.full(1 << (4 * need).bit_length(), -1, np.int32)
            rehash_values(self.value_entries, self.buckets, self.count)

    # Questions about ranges, which are not empty

    def distinct(self, column: int, begin: Integers, reach: Array) -> Integers:
        """How many values each range has; `begin` is where its segment begins."""
        counts = np.empty(len(begin), np.int64)
        self.touched += int(count_less(column, reach[0], reach[1], reach[0] - begin, self.levels, counts))
        return counts

    def occurring(self, column: int, begin: Integers, reach: Array) -> tuple[Array, Array]:
        """The first position of each value in each range: the number of the range, and the position."""
        pairs, room, came = [np.empty((2, 0), np.int64)], np.empty((2, 64 + 8 * len(begin)), np.int64), 0
        while came < len(begin):
            came, count, touched = positions_less(column, came, reach[0], reach[1], reach[0] - begin, self.levels, room)
            self.touched += int(touched)
            pairs.append(room[:, :count].copy())
            if came < len(begin):
                room = np.empty((2, 4 * room.shape[1]), np.int64)
        owner, position = np.concatenate(pairs, axis=1)
        return owner, position

    def values_at(self, column: int, reach: Array, ranks: Integers) -> Integers:
        """The value of each range that so many others come before."""
        selected = np.empty(len(ranks), np.int64)
        parts, loose = np.empty((most_parts(self.levels), 5), np.int64), np.empty(2 * LEAST, np.int64)
        self.touched += int(values_at(column, reach[0], reach[1], ranks, self.levels, parts, loose, selected))
        return selected
