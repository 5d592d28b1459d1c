"""Facts that rules make of events: `fact linked(A, B) <- link_up(A, B).`"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from augury.algebra.plan import Predicate
from augury.core.arrays import Array, RowIds
from augury.engine.operators.base import Operator
from augury.engine.operators.derive import Derived
from augury.engine.saved import require
from augury.knowledge.timeline import Statement
from augury.storage.frame import View
from augury.storage.table import END, Table

if TYPE_CHECKING:
    from augury.engine.circuit import Circuit


class Learn(Operator):
    """Tells knowledge of the events that make facts of a predicate (the first input) or end them (the second)."""

    kind = "facts"
    linked = ()

    def __init__(
        self, circuit: Circuit, predicate: Predicate, sets: tuple[Derived, ...], ends: tuple[bool, ...]
    ) -> None:
        self.predicate, self.ends = predicate, ends
        views = tuple(View(events.out.table) for events in sets)
        super().__init__(circuit, views, View(Table(0, circuit.tables)), "")

    def step(self) -> None:
        changed = [
            (port, rows, come)
            for port in range(len(self.ends))
            for rows, come in ((self.losses(port), False), (self.gains(port), True))
            if len(rows)
        ]
        if not changed:
            return
        count = [len(rows) for _, rows, _ in changed]
        columns = [
            np.concatenate([self._codes(port, rows, i) for port, rows, _ in changed]) for i in range(self.predicate[1])
        ]
        times = np.concatenate([self.inputs[port].table.data[END, rows] for port, rows, _ in changed])
        ends = np.repeat([self.ends[port] for port, _, _ in changed], count)
        come = np.repeat([come for _, _, come in changed], count)
        self.touched += len(times)
        self.circuit.learned(self.circuit.knowledge.changes.make(self.predicate, columns, times, ends, come))

    def said(self, statements: Iterable[Statement]) -> None:
        """Facts were asserted or retracted from outside, which concerns what events make of others of their key."""

    def _codes(self, port: int, rows: RowIds, i: int) -> Array:
        """An argument of events, in the codes of knowledge."""
        table = self.inputs[port].table
        return self.circuit.bridge.translated(table.data[table.codes[i], rows])

    def parents(self) -> list[tuple[int, Table]]:
        return []

    def check(self) -> None:
        require(self.out.table.n == 0, "rows where there are none")
