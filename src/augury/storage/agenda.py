"""An agenda: rows by the time in their first field, of which those up to a time are taken out."""

from __future__ import annotations

import heapq

import numpy as np

from augury.core.arrays import Array

_FEW, _RUNS = 64, 8  # rows that are put in order one by one; arrays in order that stand side by side


class Agenda:
    """Rows of int64 fields, the least first: some in a heap, and many at once as an array in order."""

    def __init__(self, width: int) -> None:
        self._heap: list[tuple[int, ...]] = []
        self._runs: list[Array] = []
        self._empty = np.empty((width, 0), np.int64)

    def add(self, rows: Array) -> None:
        if rows.shape[1] <= _FEW:
            for row in zip(*rows.tolist(), strict=True):
                heapq.heappush(self._heap, row)
            return
        if len(self._runs) == _RUNS:
            rows, self._runs = np.hstack([*self._runs, rows]), []
        self._runs.append(rows[:, np.argsort(rows[0], kind="stable")])

    @property
    def first(self) -> tuple[int, ...] | None:
        """A row with the least first field."""
        heads = [tuple(run[:, 0].tolist()) for run in self._runs]
        return min([*self._heap[:1], *heads], default=None)

    @property
    def rows(self) -> Array:
        """All rows, in any order."""
        heap = [np.array(self._heap, np.int64).T] if self._heap else []
        return np.hstack([self._empty, *self._runs, *heap])

    def drop_first(self) -> None:
        first = self.first
        if self._heap and self._heap[0] == first:
            heapq.heappop(self._heap)
            return
        run = next(i for i, run in enumerate(self._runs) if tuple(run[:, 0].tolist()) == first)
        self._replace(run, self._runs[run][:, 1:])

    def take(self, upto: int) -> Array:
        """Takes out the rows up to a time."""
        parts, heap = [self._empty], list[tuple[int, ...]]()
        while self._heap and self._heap[0][0] <= upto:
            heap.append(heapq.heappop(self._heap))
        if heap:
            parts.append(np.array(heap, np.int64).T)
        for i in range(len(self._runs) - 1, -1, -1):
            reached = int(np.searchsorted(self._runs[i][0], upto, side="right"))
            parts.append(self._runs[i][:, :reached])
            self._replace(i, self._runs[i][:, reached:])
        return np.hstack(parts)

    def _replace(self, i: int, run: Array) -> None:
        self._runs[i : i + 1] = [run] if run.shape[1] else []
