"""Absence: the rows of an input between or inside whose times nothing of another pattern lies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np

from augury.core.arrays import Array, RowIds
from augury.engine.operators.windows import Windowed, least_open
from augury.planner.specs import AbsenceSpec
from augury.storage.frame import frame_of, store
from augury.storage.table import END, LEFT, NONE, START, GreatestValue, grown
from augury.storage.unique import difference, unique, unique_first

if TYPE_CHECKING:
    from augury.engine.runtime import Runtime

_LOOKS = (16, 256, -1)  # how many candidates a row looks at while none has blocked it; at last all


class Absence(Windowed):
    """`NOT(c).[a, b]`, `while w: not q`: rows for which no q with their key starts and ends inside `window`.

    A row that is blocked watches one witness; only when that is taken back another is looked for. So a step costs what
    changes: a new q looks at the rows that stand, and each of those that it meets falls.
    """

    def __init__(self, runtime: Runtime, spec: AbsenceSpec) -> None:
        super().__init__(runtime, spec)
        (rows, absent), out, keys = self.inputs, self.out, spec.keys
        self.where, self.not_looked_for = spec.where, spec.ignored
        self.names = {*rows.vars, *rows.labels, *absent.vars}
        self.plain = not (self.open or spec.where or spec.ignored)
        self.witness = np.full(16, -1, np.int64)
        self.longest = 0  # of the windows so far
        self.watchers: dict[int, list[int]] | None = None  # by witness, once one has been taken back
        self.fields = tuple(np.array([view.vars[v] for v in keys], np.int64) for view in (rows, absent))
        low, high = rows.labels[spec.window]
        self.absent_index = absent.table.index(tuple(absent.vars[v] for v in keys))
        # A row [lo, hi] is blocked by q where lo - q.start <= 0 and q.end - hi <= 0.
        self.blocks = np.array([(0, low, 1, START, 0), (1, END, 0, high, 0)], np.int64)
        low_out, high_out = out.labels[spec.window]
        self.standing_index = out.table.index(tuple(out.vars[v] for v in keys), high_out)
        self.latest = GreatestValue(out.table, high_out)
        self.blocked_by = np.array([(1, low_out, 0, START, 0), (0, END, 1, high_out, 0)], np.int64)
        runtime.asks(self, spec.where)

    def step(self) -> None:
        self.drop_children(0)
        lost, stale = self.losses(1), self.stale(1)  # what facts say of has changed is as if it went and came
        if len(stale):
            lost = np.concatenate([lost, stale])
        unblocked = self.unwatched(lost) if len(lost) else NONE
        new, absent = self.gains(0), self.gains(1)
        if len(stale):
            absent = np.sort(np.concatenate([absent, stale]))
        if len(absent):
            self.block(absent)
        if len(unblocked):
            new = np.sort(np.concatenate([new, unblocked]))
        if len(new):
            self.admit(new)

    def unwatched(self, lost: Array) -> Array:
        """The rows that stand and whose witness is gone."""
        alive = self.inputs[0].table.alive
        if self.watchers is None:
            self.watchers = {}
            for row in np.flatnonzero(self.witness >= 0).tolist():
                self.watchers.setdefault(int(self.witness[row]), []).append(row)
        rows = [row for q in lost.tolist() for row in self.watchers.pop(q, ()) if alive[row] and self.witness[row] == q]
        self.witness[rows] = -1
        return np.array(rows, np.int64)

    def block(self, absent: Array) -> None:
        """Inserts absent events: the rows that they block are retracted."""
        out = self.out.table
        # In order, what has come ends after all windows that were there.
        absent = absent[self.inputs[1].table.data[END, absent] <= self.latest.before(out.n)]
        for pairs in self._blocked_by(absent):
            rows = out.data[LEFT, pairs[1]]
            hits = self.really(rows, pairs[0])
            if not len(hits):
                continue
            fallen = pairs[1][hits]
            fallen, first = unique_first(fallen)
            stand = out.alive[fallen].astype(bool)
            fallen, first = fallen[stand], first[stand]
            self.watch(out.data[LEFT, fallen], pairs[0][hits][first])
            out.kill(fallen)

    def admit(self, rows: RowIds) -> None:
        """New rows: those that nothing blocks stand."""
        stand = self.unblocked(rows)
        if len(stand):
            frame = frame_of(self.inputs[0], stand)
            low, high = frame.labels[self.window]
            self.longest = max(self.longest, int((high - low).max()))
            store(frame, self.out)

    def watch(self, rows: RowIds, absent: Array) -> None:
        if len(self.witness) < self.inputs[0].table.n:
            self.witness = grown(self.witness, 2 * self.inputs[0].table.n, len(self.witness), -1)
        self.witness[rows] = absent
        if self.watchers is not None:
            for row, q in zip(rows.tolist(), absent.tolist(), strict=True):
                self.watchers.setdefault(q, []).append(row)

    def unblocked(self, rows: RowIds) -> Array:
        """The rows that nothing blocks; all others watch a witness. Rows look at few candidates first, then at more."""
        blocked, waiting = np.zeros(len(rows), bool), rows
        for most in (1,) if self.plain else (1 + len(self.not_looked_for), *_LOOKS):
            seen = np.zeros(len(waiting), np.int64)
            for pairs in self._blocking(waiting, most):
                seen += np.bincount(np.searchsorted(waiting, pairs[0]), minlength=len(waiting))
                hits = self.really(pairs[0], pairs[1])
                if len(hits):
                    hit = pairs[0][hits]
                    self.watch(hit, pairs[1][hits])
                    blocked[np.searchsorted(rows, hit)] = True
            waiting = waiting[(seen >= most) & ~blocked[np.searchsorted(rows, waiting)]]
            if not len(waiting) or most < 0:
                break
        return rows[~blocked]

    def _blocking(self, rows: RowIds, most: int) -> Iterator[Array]:
        """Pairs of a row and what may lie in its window, of each row that many at most, the latest."""
        mine, absent = self.inputs
        limits = (*mine.labels[self.window], 0, absent.table.n, self.blocks, most)
        return self.within(rows, mine, self.fields[0], self.absent_index, *limits)

    def _blocked_by(self, absent: Array) -> Iterator[Array]:
        """Pairs of an absent event and a standing row whose window may contain it."""
        # A row [lo, hi] that q meets has hi in [q.end, q.start + the longest window].
        limits = END, START, self.longest, self.out.table.n, self.blocked_by
        return self.within(absent, self.inputs[1], self.fields[1], self.standing_index, *limits)

    def really(self, rows: RowIds, absent: Array) -> Array:
        """Which of the pairs agree on all variables and meet the conditions on both."""
        if self.plain:
            return np.arange(len(rows))
        frame, mask = self.paired(rows, absent, self.names)
        for label in self.not_looked_for:
            left_over = np.flatnonzero(mask)
            mask[left_over] = ~self._own(rows[left_over], absent[left_over], label)
        self.runtime.context.name_events = None
        return unique(self.runtime.context.select(self.where, frame.numbered().where(mask), self.rule).right)

    def _own(self, rows: RowIds, absent: Array, label: str) -> Array:
        """Whether each occurrence that must be absent is the one that its row has under a label."""
        runtime, (left, right) = self.runtime, self.inputs
        mine, others = runtime.label_rows(left, rows, label), runtime.part_rows(right.table, absent)
        if mine is not None and others is not None:
            same: Array = (mine[1] == others[1]) & (mine[0] is others[0])
            return same
        pairs = zip(rows.tolist(), absent.tolist(), strict=True)
        parts = [(runtime.label_parts(left, row, label), runtime.parts(right.table, other)) for row, other in pairs]
        return np.array([bool(part) and part == other for part, other in parts], bool)

    def rebuild(self) -> None:
        super().rebuild()
        self.latest.reset()
        table, out = self.inputs[0].table, self.out
        low, high = (out.table.data[f, : out.table.n] for f in out.labels[self.window])
        self.longest = int((high - low).max()) if out.table.n else 0
        self.witness, self.watchers = np.full(table.n + 16, -1, np.int64), None
        alive = table.standing()
        standing = out.table.data[LEFT, : out.table.n][out.table.stands()]
        self.unblocked(difference(alive, standing))

    def unsettled(self, since: Mapping[int, int], frontier: int) -> int:
        """A row may still be retracted if its window reaches beyond the settled absent events."""
        return min(super().unsettled(since, frontier), least_open(self, since))
