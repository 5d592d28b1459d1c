"""Rows by key and in order: what comes before and after a row of its key is beside it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from augury.core.arrays import Array
from augury.storage.dictionary import Dictionary
from augury.storage.grouping import ascending, expand_ranges
from augury.storage.kernels import segment_rows as k
from augury.storage.kernels.entries import COUNT, FIRST, ROOM
from augury.storage.rows import Distinct
from augury.storage.table import capacity, grown


class Grouped(NamedTuple):
    """Rows by group and in order: the groups, where the rows of each begin and the last ones end, the rows."""

    groups: Array
    begins: Array
    rows: Array


class Segments:
    """Rows of int64 fields, those of a key one after the other in a segment, in the order of their first fields.

    A segment that outgrows its room, a power of two, moves to the end. A row that comes last is appended; one that comes
    late, or goes, costs one pass over the later rows of its key.
    """

    def __init__(self, arity: int, width: int, order: int, words: Dictionary) -> None:
        self.keys = Distinct(arity, words)
        self.order = order
        self.spans = np.zeros((3, 16), np.int64)  # the segment of each group: FIRST, COUNT, ROOM
        self.pool = np.zeros((width, 16), np.int64)
        self.used = 0

    def __len__(self) -> int:
        return int(self.spans[COUNT].sum())

    @property
    def bytes(self) -> int:
        return self.keys.bytes + int(self.spans.nbytes) + 8 * len(self.pool) * self.used

    def number(self, columns: Sequence[Array], count: int) -> Array:
        """The groups of keys, which are new ones for new keys."""
        groups = self.keys.admit(columns, count)
        if self.keys.n > self.spans.shape[1]:
            self.spans = grown(self.spans, capacity(self.keys.n), self.spans.shape[1], 0)
        return groups

    def find(self, columns: Sequence[Array], count: int) -> tuple[Array, Array]:
        """Pairs of a key and its group; without those that have none, and without null."""
        if not self.keys.width:
            groups = np.zeros(count if self.keys.n else 0, np.int64)
            return np.arange(len(groups)), groups
        return self.keys.find(tuple(range(self.keys.width)), columns, count)

    def grouped(self, groups: Array, rows: Array) -> Grouped:
        """Rows by group and in order."""
        if len(groups) == 1:
            return Grouped(groups, np.arange(2), rows)
        sorted = np.ones(max(len(groups) - 1, 0), bool)
        for field in rows[: self.order][::-1]:
            sorted &= field[1:] == field[:-1]
            sorted |= field[1:] > field[:-1]
        order = ascending(groups) if sorted.all() else np.lexsort((*rows[: self.order][::-1], groups))
        groups, rows = groups[order], rows[:, order]
        new = np.ones(len(groups), bool)
        new[1:] = groups[1:] != groups[:-1]
        begins = np.flatnonzero(new)
        return Grouped(groups[begins], np.append(begins, len(groups)), rows)

    def enter(self, grouped: Grouped) -> tuple[int, Array, Array]:
        """Puts rows in; how many others are moved, and for each group the first position that is new, and whether it moved."""
        groups, begins, rows = grouped
        need = self.spans[COUNT, groups] + np.diff(begins)
        outgrown = need > self.spans[ROOM, groups]
        moves, lo = np.full((2, len(groups)), -1, np.int64), np.zeros(len(groups), np.int64)
        if outgrown.any():
            moves[1, outgrown] = room = 1 << np.ceil(np.log2(need[outgrown])).astype(np.int64)
            ends = self.used + np.cumsum(room)
            moves[0, outgrown] = ends - room
            if ends[-1] > self.pool.shape[1]:
                self.pool = grown(self.pool, capacity(int(ends[-1])), self.used)
            self.used = int(ends[-1])
        moved = k.enter_rows(groups, begins, rows, self.order, self.spans, moves, self.pool, lo)
        return moved, lo, outgrown

    def remove(self, grouped: Grouped) -> int:
        """Takes rows out; how many others are moved."""
        lo = np.zeros(len(grouped.groups), np.int64)
        return int(k.remove_rows(*grouped, self.order, self.spans, self.pool, lo))

    def without_rows(self) -> Segments:
        """Empty segments for the same keys."""
        result = Segments(0, len(self.pool), self.order, self.keys.words)
        result.keys, result.spans = self.keys, np.zeros_like(self.spans)
        return result

    def positions(self) -> Array:
        """Where all rows are in the pool, group by group."""
        return expand_ranges(self.spans[FIRST, : self.keys.n], self.spans[COUNT, : self.keys.n])
