"""Emits a row when the clock passes its end."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

import numpy as np

from augury.engine.operators.base import Clocked
from augury.engine.operators.map import EachRow
from augury.planner.specs import SettledSpec
from augury.storage.frame import Frame, frame_of, store
from augury.storage.table import END

if TYPE_CHECKING:
    from augury.engine.runtime import Runtime


class SettledRows(EachRow, Clocked):
    """The rows that the clock has reached: what must be absent up to their ends has stayed away.

    An event that ends before that, as the answer of a query with an absence at its end, is there no sooner.
    """

    def __init__(self, runtime: Runtime, spec: SettledSpec) -> None:
        self.ahead: list[tuple[int, int]] = []  # the end of each row that is still ahead of the clock, and the row
        super().__init__(runtime, spec)
        runtime.clocked.append(self)

    def tick(self, now: int) -> None:
        if self.ahead and self.ahead[0][0] <= now:
            self.wake()

    @property
    def due(self) -> int | None:
        """When the next row is known."""
        return self.ahead[0][0] if self.ahead else None

    def step(self) -> None:
        self.drop_children(0)
        table, now, ready = self.inputs[0].table, self.runtime.now, list[int]()
        for row in self.gains(0).tolist():
            heapq.heappush(self.ahead, (int(table.data[END, row]), row))
        while self.ahead and now is not None and self.ahead[0][0] <= now:
            row = heapq.heappop(self.ahead)[1]
            if table.alive[row]:
                ready.append(row)
        if ready:
            store(frame_of(self.inputs[0], np.array(sorted(ready), np.int64)), self.out)

    def mapped(self, frame: Frame) -> Frame:
        return frame

    def rebuild(self) -> None:
        super().rebuild()
        table, now = self.inputs[0].table, self.runtime.now
        later = table.stands()
        if now is not None:
            later &= table.data[END, : table.n] > now
        self.ahead = [(int(table.data[END, row]), row) for row in np.flatnonzero(later).tolist()]
        heapq.heapify(self.ahead)
