"""What is known only once the clock has come to the end of it."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

import numpy as np

from augury.engine.operators.map import MapOperator
from augury.storage.frame import View, frame_of, store
from augury.storage.table import END

if TYPE_CHECKING:
    from augury.engine.circuit import Circuit


class Settled(MapOperator):
    """The rows that the clock has reached: what must stay away up to their ends has stayed away.

    An event that ends before that, as the answer of a query with an absence at its end, is there no sooner.
    """

    kind = "settled"

    def __init__(self, circuit: Circuit, source: View, out: View, rule: str) -> None:
        self.ahead: list[tuple[int, int]] = []  # the end of each row that is still ahead of the clock, and the row
        super().__init__(circuit, source, out, rule)
        circuit.clocked.append(self)

    def tick(self, now: int) -> None:
        if self.ahead and self.ahead[0][0] <= now:
            self.wake()

    @property
    def due(self) -> int | None:
        """When the next row is known."""
        return self.ahead[0][0] if self.ahead else None

    def step(self) -> None:
        self.drop_children(0)
        table, now, known = self.inputs[0].table, self.circuit.now, list[int]()
        for row in self.gains(0).tolist():
            heapq.heappush(self.ahead, (int(table.data[END, row]), row))
        while self.ahead and now is not None and self.ahead[0][0] <= now:
            row = heapq.heappop(self.ahead)[1]
            if table.alive[row]:
                known.append(row)
        if known:
            store(self.mapped(frame_of(self.inputs[0], np.array(sorted(known), np.int64))), self.out)

    def rebuild(self) -> None:
        super().rebuild()
        table, now = self.inputs[0].table, self.circuit.now
        later = table.stands()
        if now is not None:
            later &= table.data[END, : table.n] > now
        self.ahead = [(int(table.data[END, row]), row) for row in np.flatnonzero(later).tolist()]
        heapq.heapify(self.ahead)
