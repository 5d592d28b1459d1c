"""Which answers have been emitted, so that a step can say which answers it inserts and which it retracts."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

import numpy as np

from augury.core.arrays import Array, RowIds
from augury.storage.table import END, NONE, START, grown
from augury.storage.unique import is_in

if TYPE_CHECKING:
    from augury.engine.operators.derive import Derived


class EmittedRows:
    """The answers of one type: which have been emitted, and which wait for the clock to reach their end."""

    def __init__(self, events: Derived) -> None:
        self.events = events
        self.emitted = np.zeros(16, np.uint8)
        self.waiting: list[tuple[int, int]] = []
        self._inserts = self._deletes = NONE  # the rows that the step emits and retracts
        self.rebuild()

    def step(self, until: int | None, held: Array | None = None) -> tuple[Array, Array]:
        """The rows that the step retracts, and those that it emits: with ends up to `until`, but not those held back.

        `commit` marks them, once the step counts.
        """
        table = self.events.out.table
        if len(self.emitted) < table.n:
            self.emitted = grown(self.emitted, 2 * table.n, len(self.emitted), 0)
        if self.events.late:
            return self._late_step(until, held)
        lo, hi = table.mark, table.n
        alone = hi - lo == 1 and held is None and not (table.killed or self.waiting)
        if alone and until is not None and table.data.item(END, lo) <= until:  # sooner than with columns of one element
            self._inserts, self._deletes = np.array([lo]), NONE
            return NONE, self._inserts
        dead = NONE
        if table.killed:
            dead = np.concatenate(table.killed)
            dead = dead[self.emitted[dead].astype(bool)]
        new = np.flatnonzero(table.alive[lo:hi]) + lo if hi > lo else NONE
        if len(new):
            ends = table.data[END, new]
            ready = ends <= until if until is not None else np.zeros(len(new), bool)
            ready = ready if held is None else ready & ~held[new]
            if not ready.all():
                for end, row in zip(ends[~ready].tolist(), new[~ready].tolist(), strict=True):
                    heapq.heappush(self.waiting, (end, row))
                new = new[ready]
        due: dict[int, None] = {}  # one may wait twice, where rules were added
        not_yet: list[tuple[int, int]] = []
        while self.waiting and until is not None and self.waiting[0][0] <= until:
            end, row = heapq.heappop(self.waiting)
            if held is not None and held[row]:
                not_yet.append((end, row))
            elif table.alive[row] and not self.emitted[row]:
                due[row] = None
        for waits in not_yet:
            heapq.heappush(self.waiting, waits)
        if due:
            more = np.fromiter(due, np.int64, len(due))
            new = np.concatenate([new, more[~is_in(more, new)]]) if len(new) else more
        self._inserts, self._deletes = new, NONE
        if len(dead) and len(new):
            dead, new = self._net(dead, new)
        self._deletes = dead
        return dead, new

    def _late_step(self, until: int | None, held: Array | None) -> tuple[Array, Array]:
        """The same, where events are emitted after their ends: all rows that stand are looked at."""
        table = self.events.out.table
        ready, due = np.zeros(table.n, bool), self.events.given_at()
        if until is not None:
            ready = table.stands() & (due <= until)
            ready &= True if held is None else ~held[: table.n]
        emitted = self.emitted[: table.n].astype(bool)
        dead, new = np.flatnonzero(emitted & ~ready), np.flatnonzero(ready & ~emitted)
        self._wait(np.flatnonzero(table.stands() & ~ready), due)
        self._inserts, self._deletes = new, dead
        if len(dead) and len(new):
            dead, new = self._net(dead, new)
        return dead, new

    def commit(self) -> None:
        """The step counts. It may be broken off and called again."""
        self.emitted[self._deletes] = 0
        self.emitted[self._inserts] = 1
        self._inserts = self._deletes = NONE

    def _net(self, dead: Array, new: Array) -> tuple[Array, Array]:
        """An answer that is retracted and emitted again has not changed."""
        table = self.events.out.table

        def contents(rows: RowIds) -> list[bytes]:
            fields = [table.data[START, rows], table.data[END, rows]]
            fields += [table.dictionary.canonical(table.data[f, rows]) for f in table.codes]
            return [row.tobytes() for row in np.stack(fields, axis=1)]

        before = dict(zip(contents(dead), dead.tolist(), strict=True))
        ends = np.sort(table.data[END, dead])
        places = np.searchsorted(ends, table.data[END, new])
        alike = np.flatnonzero(ends[np.minimum(places, len(ends) - 1)] == table.data[END, new])  # few end as they did
        same = [before.pop(content, None) is not None for content in contents(new[alike])]
        kept = np.ones(len(new), bool)
        kept[alike[same]] = False
        return np.array(sorted(before.values()), np.int64), new[kept]

    def standing(self) -> RowIds:
        """The rows that have been emitted and stand."""
        table = self.events.out.table
        n = min(table.n, len(self.emitted))
        return np.flatnonzero(self.emitted[:n] & table.alive[:n])

    def pending(self) -> Array:
        """The rows that stand and have not been emitted yet."""
        table = self.events.out.table
        stands = table.stands()
        n = min(table.n, len(self.emitted))
        stands[:n] &= self.emitted[:n] == 0
        return np.flatnonzero(stands)

    def moved(self, new_rows: Array) -> None:
        """After a compaction."""
        table = self.events.out.table
        emitted = np.zeros(len(table.alive), np.uint8)
        n = min(len(self.emitted), len(new_rows) - 1)
        old = np.flatnonzero(self.emitted[:n].astype(bool) & (new_rows[:n] >= 0))
        emitted[new_rows[old]] = 1
        self.emitted = emitted
        self.rebuild()

    def rebuild(self) -> None:
        """After an undo or a restore; `emitted` is state and has been put right. It may be broken off and called again."""
        self._inserts = self._deletes = NONE
        table = self.events.out.table
        if len(self.emitted) < table.n:
            self.emitted = grown(self.emitted, 2 * table.n, len(self.emitted), 0)
        self.emitted[table.n :] = 0
        self._wait(self.pending(), table.data[END])

    def _wait(self, rows: RowIds, due: Array) -> None:
        """Just these wait, each for its time."""
        self.waiting = [(int(due[row]), row) for row in rows.tolist()]
        heapq.heapify(self.waiting)
