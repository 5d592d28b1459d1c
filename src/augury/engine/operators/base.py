"""What all operators have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

import numpy as np

from augury.columns.frame import Frame, View
from augury.columns.table import END, LEFT, NONE, RIGHT, Links, Table
from augury.jit import Array

if TYPE_CHECKING:
    from augury.engine.circuit import Circuit

Part = tuple[Table, int]  # an event that an occurrence is made of: a row of the table of its type


class Operator(ABC):
    """Reads tables, writes one. `step` takes in what has changed since it was last called.

    Its state is in its tables, so that an operator can be rebuilt from them: after a restore, a compaction, or a step
    that failed.
    """

    kind = "operator"

    def __init__(self, circuit: Circuit, inputs: tuple[View, ...], out: View, rule: str) -> None:
        self.circuit, self.inputs, self.out, self.rule = circuit, inputs, out, rule
        self.seen = [0] * len(inputs)
        self.lost: list[list[Array]] = [[] for _ in inputs]
        self.scheduled = False
        self.revised: list[tuple[Array, Array]] = []  # over which times facts that it asks for have changed
        self.touched = 0  # how many rows it has looked at, so that tests can see what a step costs
        self.order = circuit.add(self)
        for port, view in enumerate(inputs):
            view.table.readers.append((self, port))
        self.links = self.make_links()

    def make_links(self) -> list[Links | None]:
        """From each input to what was made of it."""
        fields = (LEFT, RIGHT)
        return [Links(view.table, self.out.table, fields[port]) for port, view in enumerate(self.inputs[:2])]

    def wake(self) -> None:
        if not self.scheduled:
            self.circuit.schedule(self)

    def lose(self, port: int, rows: Array) -> None:
        self.lost[port].append(rows)
        if not self.scheduled:
            self.circuit.schedule(self)

    def revise(self, lo: Array, hi: Array) -> None:
        """Facts that it asks for have changed, each from `lo` up to, not including, `hi`."""
        self.revised.append((lo, hi))
        self.wake()

    def stale(self, port: int) -> Array:
        """The rows of an input that it has taken in, that stand, and for which facts have changed."""
        spans, self.revised = self.revised, []
        if not spans or not self.seen[port]:
            return NONE
        lo, hi = (np.concatenate(ends) for ends in zip(*spans, strict=True))
        order = np.argsort(lo)
        lo, hi = lo[order], np.maximum.accumulate(hi[order])
        table = self.inputs[port].table
        rows = table.ending(int(lo[0]), int(hi[-1]))
        rows = rows[rows < self.seen[port]]
        ends = table.data[END, rows]
        return rows[ends < hi[np.searchsorted(lo, ends, side="right") - 1]]

    def losses(self, port: int) -> Array:
        """The rows of an input that have died since the last step."""
        lost = self.lost[port]
        if not lost:
            return NONE
        self.lost[port] = []
        rows = lost[0] if len(lost) == 1 else np.concatenate(lost)
        if len(rows) == 1:
            return rows if rows[0] < self.seen[port] else NONE
        return rows[rows < self.seen[port]]

    def gains(self, port: int) -> Array:
        """The rows of an input that have come since the last step and stand."""
        table, lo = self.inputs[port].table, self.seen[port]
        self.seen[port] = table.n
        if lo == table.n:
            return NONE
        rows = np.arange(lo, table.n, dtype=np.int64)
        alive = table.alive[lo : table.n]
        rows = rows if alive.all() else rows[alive.astype(bool)]
        self.touched += len(rows)
        return rows

    def drop_children(self, port: int) -> None:
        """What was made of rows that died, dies."""
        if not self.lost[port]:
            return
        lost = self.losses(port)
        links = self.links[port]
        if len(lost) and links is not None:
            self.touched += len(lost) + len(links.take(lost))

    @abstractmethod
    def step(self) -> None:
        """Takes in what has changed."""

    def name_events(self, frame: Frame, i: int) -> str:
        """The events that a row on its way through this operator is made of."""
        found: tuple[Part, ...] = ()
        for port, rows in enumerate((frame.left, frame.right)[: len(self.inputs)]):
            found += self.circuit.parts(self.inputs[port].table, int(rows[i]))
        return ", ".join(f"{event} ({event.id})" for event in map(self.circuit.event, found))

    def rebuild(self) -> None:
        """Makes anew what is not in tables."""
        self.seen = [view.table.n for view in self.inputs]
        self.lost = [[] for _ in self.inputs]
        self.revised = []
        for links in self.links:
            if links is not None:
                links.drop()

    def part_rows(self, rows: Array) -> tuple[Table, Array] | None:
        """The same for many rows, where each is made of one event: the table of these, and their rows."""
        return None

    def parts(self, row: int) -> tuple[Part, ...]:
        """The events that a row of this operator is made of."""
        data = self.out.table.data
        found = self.circuit.parts(self.inputs[0].table, int(data[LEFT, row]))
        if len(self.inputs) > 1 and data[RIGHT, row] >= 0:
            found += self.circuit.parts(self.inputs[1].table, int(data[RIGHT, row]))
        return found
