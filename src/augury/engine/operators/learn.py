"""Facts that rules make of events: `fact linked(A, B) <- link_up(A, B).`"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from augury.core.arrays import Array, RowIds
from augury.engine.operators.base import Operator
from augury.engine.saved import require
from augury.knowledge.timeline import Statement
from augury.planner.specs import LearnSpec
from augury.storage.table import END, Table

if TYPE_CHECKING:
    from augury.engine.runtime import Runtime


class Learn(Operator):
    """Passes to knowledge the events that make facts of a predicate (the first input) or end them (the second)."""

    linked = ()

    def __init__(self, runtime: Runtime, spec: LearnSpec) -> None:
        super().__init__(runtime, spec)
        self.predicate, self.ends = spec.predicate, spec.ends

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
        self.runtime.learned(self.runtime.knowledge.changes.make(self.predicate, columns, times, ends, come))

    def said(self, statements: Iterable[Statement]) -> None:
        """Facts were asserted or retracted from outside, which concerns what events make of others of their key."""

    def _codes(self, port: int, rows: RowIds, i: int) -> Array:
        """An argument of events, in the codes of knowledge."""
        table = self.inputs[port].table
        return self.runtime.bridge.translated(table.data[table.codes[i], rows])

    def parents(self) -> list[tuple[int, Table]]:
        return []

    def check(self) -> None:
        require(self.out.table.n == 0, "unexpected rows")
