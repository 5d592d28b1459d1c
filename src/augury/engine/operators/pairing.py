"""Operators that look for partners of rows by key and time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from augury.core.arrays import Array, Flags, RowIds
from augury.core.jit import Kernel
from augury.engine.operators.base import Operator
from augury.planner.specs import Spec
from augury.storage.table import Index, Table

if TYPE_CHECKING:
    from augury.engine.runtime import Runtime

_PORTION = 1 << 18  # pairs that are held at a time, where they need not be more


class Pairing(Operator):
    """Has room for pairs of a row and a row of an index."""

    def __init__(self, runtime: Runtime, spec: Spec) -> None:
        super().__init__(runtime, spec)
        self.room = np.empty((2, 64), np.int64)

    def portions(
        self,
        probe: Kernel,
        rows: RowIds,
        mine: Table,
        fields: Array,
        alive: Flags,
        index: Index,
        *limits: object,
        turned: bool = False,
    ) -> Iterator[tuple[int, Array]]:
        """Pairs with the rows of an index that have the key of a row, in portions, each with how far it came among the rows.

        `limits` are the last arguments of the kernel that looks for them; pairs that are `turned` begin with the row of
        the index. What is yielded is written over by the next.
        """
        first, dictionary = 0, self.runtime.tables.dictionary
        if len(rows):
            index.extend()
        while first < len(rows) and index.count:
            other = index.table
            index.calls += 1
            first, count, touched = probe.call(
                rows, first, mine.data, fields, alive, other.data, index.fields, other.alive, index.order, index.buckets,
                index.groups, index.prev, index.after, index.calls, dictionary.canon, dictionary.nullish, *limits, self.room,
            )  # fmt: skip
            self.touched += touched
            self.runtime.tables.guard.paired(count)
            partners = self.room[:, :count]
            if first < len(rows) and (count == 0 or self.room.shape[1] < _PORTION):
                self.room = np.empty((2, 4 * self.room.shape[1]), np.int64)
            if count:
                yield first, partners[::-1] if turned else partners
