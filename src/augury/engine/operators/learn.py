"""Facts that rules make of events: `fact linked(A, B) <- link_up(A, B).`"""

from __future__ import annotations

from typing import TYPE_CHECKING

from augury.algebra.program import Predicate
from augury.engine.frame import View
from augury.engine.kernels import Array
from augury.engine.operators.base import Operator, Part
from augury.engine.operators.derive import Derived
from augury.engine.table import END, Links, Table

if TYPE_CHECKING:
    from augury.engine.circuit import Circuit


class Learn(Operator):
    """Tells knowledge of the events that make facts of a predicate (the first input) or end them (the second)."""

    kind = "facts"

    def __init__(
        self, circuit: Circuit, predicate: Predicate, sets: tuple[Derived, ...], ends: tuple[bool, ...]
    ) -> None:
        self.predicate, self.ends = predicate, ends
        views = tuple(View(events.out.table) for events in sets)
        super().__init__(circuit, views, View(Table(0, circuit.words)), "")

    def make_links(self) -> list[Links | None]:
        return []

    def step(self) -> None:
        told: list[tuple[list[int], int, bool, int]] = []
        for port, ends in enumerate(self.ends):
            lost, new = self.losses(port), self.gains(port)
            told += [*self._events(port, lost, ends, -1), *self._events(port, new, ends, 1)]
        if told:
            self.circuit.learned(self.circuit.knowledge.changes.make(self.predicate, told))

    def _events(self, port: int, rows: Array, ends: bool, count: int) -> list[tuple[list[int], int, bool, int]]:
        table = self.inputs[port].table
        if not len(rows):
            return []
        bridge = self.circuit.context.bridge
        assert bridge is not None
        columns = [bridge.translated(table.data[f, rows], self.circuit.words.dictionary).tolist() for f in table.codes]
        times = table.data[END, rows].tolist()
        return [([c[i] for c in columns], time, ends, count) for i, time in enumerate(times)]

    def parts(self, row: int) -> tuple[Part, ...]:
        return ()
