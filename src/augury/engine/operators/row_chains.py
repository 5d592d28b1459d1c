"""Rows of a table in groups of equal values, those of each group in the order of a time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from augury.core.arrays import Array, RowIds, Times
from augury.storage.dictionary import Dictionary
from augury.storage.kernels.chains import enter_chains, touching
from augury.storage.rows import Distinct
from augury.storage.table import END, START, Table, capacity, grown


class RowChains:
    """The rows of a table by the values of columns; of each group in the order of `field`, in which also their ends stand.

    What lies at a time is found from the last row back, so that recent rows cost as little as there are of them.
    """

    def __init__(self, table: Table, width: int, dictionary: Dictionary, field: int = START) -> None:
        self.table, self.field = table, field
        self.groups = Distinct(width, dictionary)
        self.last, self.before = np.full(16, -1, np.int64), np.full(16, -1, np.int64)

    def group(self, columns: Sequence[Array], count: int) -> Array:
        """The numbers of groups; new ones have no rows."""
        groups = self.groups.admit(columns, count)
        if self.groups.n > len(self.last):
            self.last = grown(self.last, capacity(self.groups.n), len(self.last), -1)
        return groups

    def add(self, rows: RowIds, groups: Array) -> None:
        """Takes rows in."""
        if not len(rows):
            return
        if self.table.n > len(self.before):
            self.before = grown(self.before, capacity(self.table.n), len(self.before), -1)
        times = self.table.data[self.field]
        order = np.argsort(times[rows], kind="stable")
        enter_chains(rows[order], groups[order], times, self.last, self.before)

    def touching(self, groups: Array, lo: Times, hi: Times) -> tuple[Array, Array]:
        """Pairs of a question and a row of its group that starts by `hi` and ends at `lo` or later."""
        data, pairs = self.table.data, np.empty((2, 64 + 4 * len(groups)), np.int64)
        asked = groups, lo, hi, self.last, self.before, data[START], data[END], self.table.alive
        count = touching(*asked, pairs)
        if count > pairs.shape[1]:
            pairs = np.empty((2, count), np.int64)
            touching(*asked, pairs)
        return pairs[0, :count], pairs[1, :count]

    @property
    def bytes(self) -> int:
        return self.groups.bytes + int(self.last.nbytes + self.before.nbytes)
