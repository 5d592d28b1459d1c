"""Totals over the rows of a key inside a window, in time independent of their number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from augury.core.arrays import Array, Integers, Mask, RowIds, Times
from augury.storage.kernels.ranges import (
    FIRST,
    ROOM,
    SIZE,
    TotalsPool,
    WindowSums,
    append_rows,
    groups_of,
    mark_within,
    merge_rows,
    move_segments,
    remove_rows,
    totals_within,
)
from augury.storage.range_ranks import RangeRanks
from augury.storage.table import END, START, Index, Table, grown
from augury.storage.unique import unique_counts

_LEAST = 4  # the room of a new segment


@dataclass(frozen=True)
class RangeSummary:
    """Summaries of windows: the number of rows, the first and the last row, sums, and the rows with the greatest values.

    A row is -1 where there is none. `reach` has the positions from the first to behind the last row that ends inside; `whole`
    says that all of these lie inside, so that ranks can be asked of them. `shared` says of the first and the last row whether another one in the window has the
    same times, `alike` the same of the rows with the greatest values; `cut` whether one just outside has those of the first.
    """

    counts: Integers
    begin: Integers  # where its segment begins
    reach: Array
    edges: Array
    shared: Array
    sums: Array
    best: Array
    alike: Array
    cut: Array

    @property
    def whole(self) -> Mask:
        mask: Mask = self.counts == self.reach[1] - self.reach[0]
        return mask


class RunningTotals:
    """The rows of an index in the order of time, key by key, with running totals of some columns.

    A row that comes in order costs the same however many there are. A late one, and one that is taken out, costs a pass over
    the later rows of its key; all of one call share that pass. A window costs two binary searches.
    """

    def __init__(self, index: Index, sums: int, orders: int, kinds: Sequence[int] = ()) -> None:
        """Of each row there are values to add up, values of which the greatest is wanted, and values for `RangeRanks`."""
        self.index, self.sums, self.orders, self.kinds = index, sums, orders, kinds
        self.ranks = RangeRanks(kinds)
        self.looked = 0
        self.reset()

    @property
    def touched(self) -> int:
        return self.looked + self.ranks.touched

    def reset(self) -> None:
        self.used, self.longest = 0, 0
        self.ranks.reset()
        self.spans = np.zeros((0, 4), np.int64)
        self.slots, self.ends = np.zeros(16, np.int32), np.zeros(16, np.int64)
        self.running = np.empty((self.sums, 16), np.int64)
        self.tree = np.empty((self.orders, 16), np.int32)
        self.values = np.empty((self.sums + self.orders + len(self.kinds), 16), np.int64)

    def _pool(self) -> TotalsPool:
        return TotalsPool(self.spans, self.slots, self.ends, self.values, self.running, self.tree)

    def add(self, rows: RowIds, values: Array) -> None:
        """Takes in rows of the table, with a column of values for each."""
        data = self.index.table.data
        if not len(rows):
            return
        self._keep_values(rows, values)
        start, end = data[START, rows], data[END, rows]
        self.longest = max(self.longest, int((end - start).max()))
        later = (end[1:] > end[:-1]) | ((end[1:] == end[:-1]) & (start[1:] >= start[:-1]))
        if not later.all():
            rows = rows[np.lexsort((start, end))]
        group = self.groups(rows, self.index.table, self.index.fields)
        self._make_room(group[group >= 0])
        late = np.empty(len(rows), np.int64)
        pool = self._pool()
        count = append_rows(rows, group, data, pool, late)
        self.looked += len(rows) - count
        if count:
            some = late[:count]
            some = some[np.argsort(group[some], kind="stable")]
            self.looked += merge_rows(rows[some], group[some], data, pool)

    def remove(self, rows: RowIds) -> None:
        """Takes dead rows out."""
        table = self.index.table
        group = self.groups(rows, table, self.index.fields)
        order = np.lexsort((table.data[END, rows], group))
        self.looked += remove_rows(rows[order], group[order], table.data, table.alive, self._pool())

    def within(self, group: Integers, lows: Times, highs: Times, most: int = 0) -> RangeSummary:
        """Summaries of the rows between two times, in some groups; with `most`, of the last so many up to the second."""
        n, data = len(group), self.index.table.data
        reach, edges, sums, best = (np.empty((width, n), np.int64) for width in (2, 2, self.sums, self.orders))
        counts, cut = np.empty(n, np.int64), np.empty(n, np.uint8)
        result = WindowSums(counts, reach, edges, cut, sums, best)
        self.looked += totals_within(group, lows, highs, most, data, self.longest, self._pool(), result)
        shared = np.stack([self._shared(edges[0], 1, edges[1]), self._shared(edges[1], -1, edges[0])])
        alike = np.zeros(best.shape, bool)
        for number, item in enumerate(best):
            alike[number] = self._shared(item, 1, edges[1]) | self._shared(item, -1, edges[0])
        if self.kinds:
            self.ranks.enter(group, self.spans, self.slots, self.values)
        begin = self.spans[:, FIRST][group] if len(self.spans) else group
        rows = self._rows
        return RangeSummary(counts, begin, reach, rows(edges), shared, sums, rows(best), alike, cut.astype(bool))

    def tied(self, rows: RowIds) -> tuple[Array, Array]:
        """The rows of the key of each row that have its times, one row after the other, and how many there are."""
        table = self.index.table
        start, end = table.data[START], table.data[END]
        result = []
        group = self.groups(rows, table, self.index.fields)
        for row, g in zip(rows.tolist(), group.tolist(), strict=True):
            first, last = int(self.spans[g, FIRST]), int(self.spans[g, FIRST] + self.spans[g, SIZE])
            ends = self.ends[first:last]
            lo, hi = np.searchsorted(ends, end[row], side="left"), np.searchsorted(ends, end[row], side="right")
            some = self.slots[first + lo : first + hi].astype(np.int64)
            result.append(some[start[some] == start[row]])
        return np.concatenate([np.empty(0, np.int64), *result]), np.array([len(some) for some in result], np.int64)

    def inside(self, group: Integers, lows: Times, highs: Times, most: int = 0) -> RowIds:
        """The rows that end in one of the windows, in any order."""
        steps = np.zeros(self.used + 1, np.int64)
        mark_within(group, lows, highs, most, self.spans, self.ends, steps)
        return self.slots[: self.used][np.cumsum(steps[:-1]) > 0].astype(np.int64)

    def _rows(self, positions: Array) -> Array:
        return np.where(positions < 0, -1, self.slots[np.maximum(positions, 0)])

    def _shared(self, edge: Array, step: int, limit: Array) -> Array:
        """Whether the next row inside the window has the times of one at its edge."""
        data, here = self.index.table.data, np.maximum(edge, 0)
        there = np.where(edge == limit, here, here + step)
        first, other = self.slots[here], self.slots[there]
        same = (self.ends[here] == self.ends[there]) & (data[START, first] == data[START, other])
        differ: Array = same & (here != there)
        return differ

    def groups(self, rows: RowIds, table: Table, keys: Array) -> Array:
        """The group of each row of a table with these keys; -1 where there is none."""
        index, numbers = self.index, np.empty(len(rows), np.int64)
        index.extend()
        if index.count == 0:
            numbers[:] = -1
            return numbers
        dictionary, other = table.dictionary, index.table
        groups_of(
            rows, table.data, keys, other.data, index.fields, index.buckets, index.groups, dictionary.canon,
            dictionary.nullish, numbers,
        )  # fmt: skip
        if index.count > len(self.spans):
            larger = np.zeros((2 * index.count, 4), np.int64)
            larger[: len(self.spans)] = self.spans
            self.spans = larger
        return numbers

    def _keep_values(self, rows: RowIds, values: Array) -> None:
        most = int(rows.max()) + 1
        if most > self.values.shape[1]:
            self.values = grown(self.values, max(len(self.index.table.alive), most), self.values.shape[1])
        self.values[:, rows] = values

    def _make_room(self, group: Array) -> None:
        """Makes room for one more row of each of these groups; a group may stand there several times."""
        groups, more = unique_counts(group)
        need = self.spans[groups, SIZE] + more
        full = need > self.spans[groups, ROOM]
        if not full.any():
            return
        groups, need = groups[full], need[full]
        exponent = np.ceil(np.log2(np.maximum(need, _LEAST))).astype(np.int64)
        rooms = np.int64(1) << exponent
        # The largest first: then each offset is a multiple of the room.
        order = np.argsort(-rooms, kind="stable")
        groups, rooms = groups[order], rooms[order]
        begin = -(-self.used // int(rooms[0])) * int(rooms[0])
        target = begin + np.cumsum(rooms) - rooms
        self.used = int(target[-1] + rooms[-1])
        if self.used > len(self.slots):
            self._grow(1 << (self.used - 1).bit_length())
        move_segments(groups, target, rooms, self._pool())

    def _grow(self, size: int) -> None:
        before = len(self.slots)
        self.slots, self.ends, self.running = (grown(a, size, before, 0) for a in (self.slots, self.ends, self.running))
        tree, level = np.empty((self.orders, size), np.int32), 1
        while before >> level:
            nodes, old, new = before >> level, before - (before >> (level - 1)), size - (size >> (level - 1))
            tree[:, new : new + nodes] = self.tree[:, old : old + nodes]
            level += 1
        self.tree = tree
