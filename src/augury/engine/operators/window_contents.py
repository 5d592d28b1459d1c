"""The members of windows: which rows each row of a table was collected from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from augury.core.arrays import Array, Integers, RowIds
from augury.engine.saved import check_numbers, require, unragged
from augury.storage.grouping import expand_ranges
from augury.storage.table import grown


class WindowContents:
    """The members of each row, which are rows of another table, in one flat array.

    Rows whose window tells their members list none: `[[0, 2], None, []]` has listed two members of row 0, none of row 2,
    and `knows` that row 1 is not listed.
    """

    def __init__(self) -> None:
        self.rows, self.size = 0, 0
        self.starts, self.counts = np.empty(16, np.int64), np.empty(16, np.int32)
        self.flat = np.empty(64, np.int32)

    def add(self, first: int, counts: Integers, members: Array) -> None:
        """Lists the members of the rows from `first` on, one row after the other."""
        last, size = first + len(counts), self.size + len(members)
        if last > len(self.starts):
            self.starts, self.counts = (grown(a, 2 * last, self.rows) for a in (self.starts, self.counts))
        if size > len(self.flat):
            self.flat = grown(self.flat, 2 * size, self.size)
        self.starts[self.rows : first] = -1
        self.counts[self.rows : first] = 0
        self.starts[first:last] = self.size + np.cumsum(counts) - counts
        self.counts[first:last] = counts
        self.flat[self.size : size] = members
        self.rows, self.size = last, size

    def knows(self, rows: RowIds) -> Array:
        """Which rows have their members listed."""
        mask = np.zeros(len(rows), bool)
        inside = rows < self.rows
        mask[inside] = self.starts[rows[inside]] >= 0
        return mask

    def of(self, rows: RowIds) -> tuple[Array, Array]:
        """The members of some rows, one row after the other, and how many each has."""
        counts = np.zeros(len(rows), np.int64)
        inside = rows < self.rows
        counts[inside] = self.counts[rows[inside]]
        starts = np.zeros(len(rows), np.int64)
        starts[inside] = self.starts[rows[inside]]
        return self.flat[expand_ranges(starts, counts)].astype(np.int64), counts

    def members(self, row: int) -> Array:
        """The members of one row."""
        return self.of(np.array([row]))[0]

    def cut(self, n: int) -> None:
        """Keeps the first n rows."""
        if n < self.rows:
            listed = np.flatnonzero(self.starts[:n] >= 0)
            self.size = int(self.starts[listed[-1]] + self.counts[listed[-1]]) if len(listed) else 0
            self.rows = n

    def moved(self, new_rows: Array, places: Array) -> None:
        """Renumbers rows and members after a compaction; -1 drops a row."""
        rows = np.flatnonzero((new_rows[: self.rows] >= 0) & (self.starts[: self.rows] >= 0))
        members, counts = self.of(rows)
        self.fill(new_rows[rows], counts, places[members])

    def fill(self, rows: RowIds, counts: Integers, members: Array) -> None:
        """Replaces everything by some rows, in order, and their members."""
        self.__init__()  # type: ignore[misc]
        every = np.zeros(int(rows[-1]) + 1 if len(rows) else 0, np.int64)
        every[rows] = counts
        self.add(0, every, members)
        listed = np.zeros(len(every), bool)
        listed[rows] = True
        self.starts[: len(every)][~listed] = -1

    # Snapshots

    def state(self, n: int) -> dict[str, Array]:
        rows = np.flatnonzero(self.knows(np.arange(n)))
        members, counts = self.of(rows)
        return {"row": rows, "count": counts, "of": members}

    def restore(self, state: Any, n: int, collected: int) -> None:
        require(isinstance(state, Mapping) and state.keys() == {"row", "count", "of"}, "invalid members")
        unragged(state, n)
        check_numbers(state["of"], 0, collected, "something collected that is not there")
        rows = state["row"]
        require(bool((rows[1:] > rows[:-1]).all()), "rows that do not stand in order")
        self.fill(rows, state["count"], state["of"])
