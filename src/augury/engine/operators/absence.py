"""Absence: the rows of an input between or inside whose times nothing of another pattern lies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np

from augury.algebra.nodes import Condition
from augury.columns.frame import Frame, View, frame_of, store
from augury.columns.kernels.pairs import probe_window
from augury.columns.table import END, LEFT, NONE, RANK, START, Latest, Table
from augury.engine.operators.base import Operator
from augury.engine.operators.windows import in_windows, least_open
from augury.jit import Array
from augury.optimiser.implied_bounds import FAR, Back

if TYPE_CHECKING:
    from augury.engine.circuit import Circuit
    from augury.engine.horizon import Horizon

_PORTION = 1 << 18


class Absence(Operator):
    """`NOT(c).[a, b]`, `while w: not q`: rows for which no q with their key starts and ends inside `window`.

    A row that is blocked watches one witness; only when that is taken back another is looked for. So a step costs what
    changes: a new q looks at the rows that stand, and each of those that it meets falls.
    """

    kind = "not"
    linked = (LEFT,)

    def __init__(
        self,
        circuit: Circuit,
        rows: View,
        absent: View,
        out: View,
        rule: str,
        *,
        window: str,
        keys: tuple[str, ...],
        shared: tuple[str, ...],
        where: tuple[Condition, ...],
        not_looked_for: tuple[str, ...],
        back: Back | None,
    ) -> None:
        # How far before a row's end its window begins, where inputs last so long.
        self.back_for, self.back = back, FAR if back is None else back(circuit.lengths)
        self.window, self.keys, self.where = window, keys, where
        self.open = tuple(v for v in shared if v not in keys)
        self.not_looked_for = not_looked_for
        super().__init__(circuit, (rows, absent), out, rule)
        self.plain = not (self.open or where or not_looked_for)
        self.witness = np.full(16, -1, np.int64)
        self.longest = 0  # of the windows so far
        self.watchers: dict[int, list[int]] | None = None  # by witness, once one has been taken back
        self.fields = tuple(np.array([view.vars[v] for v in keys], np.int64) for view in (rows, absent, out))
        low, high = rows.labels[window]
        self.absent_index = absent.table.index(tuple(absent.vars[v] for v in keys))
        # A row [lo, hi] is blocked by q where lo - q.start <= 0 and q.end - hi <= 0.
        self.blocks = np.array([(0, low, 1, START, 0), (1, END, 0, high, 0)], np.int64)
        low_out, high_out = out.labels[window]
        self.standing_index = out.table.index(tuple(out.vars[v] for v in keys), high_out)
        self.latest = Latest(out.table, high_out)
        self.blocked_by = np.array([(1, low_out, 0, START, 0), (0, END, 1, high_out, 0)], np.int64)
        self.room = np.empty((2, 64), np.int64)
        circuit.asks(self, where)

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
        """New occurrences of what must be absent: the rows that they meet fall."""
        out = self.out.table
        # In order, what has come ends after all windows that were there.
        absent = absent[self.inputs[1].table.data[END, absent] <= self.latest.before(out.n)]
        for pairs in self.pairs(absent, self.inputs[1], self.fields[1], self.out, self.fields[2], True):
            rows = out.data[LEFT, pairs[1]]
            found = self.really(rows, pairs[0])
            if not len(found):
                continue
            fallen = pairs[1][found]
            fallen, first = np.unique(fallen, return_index=True)
            stand = out.alive[fallen].astype(bool)
            fallen, first = fallen[stand], first[stand]
            self.watch(out.data[LEFT, fallen], pairs[0][found][first])
            out.kill(fallen)

    def admit(self, rows: Array) -> None:
        """New rows: those that nothing blocks stand."""
        blocked = np.zeros(len(rows), bool)
        for pairs in self.pairs(rows, self.inputs[0], self.fields[0], self.inputs[1], self.fields[1], False):
            found = self.really(pairs[0], pairs[1])
            if len(found):
                hit = pairs[0][found]
                self.watch(hit, pairs[1][found])
                blocked[np.searchsorted(rows, hit)] = True
        stand = rows[~blocked]
        if len(stand):
            frame = frame_of(self.inputs[0], stand)
            low, high = frame.labels[self.window]
            self.longest = max(self.longest, int((high - low).max()))
            store(frame, self.out)

    def watch(self, rows: Array, absent: Array) -> None:
        if len(self.witness) < self.inputs[0].table.n:
            grown = np.full(2 * self.inputs[0].table.n, -1, np.int64)
            grown[: len(self.witness)] = self.witness
            self.witness = grown
        self.witness[rows] = absent
        if self.watchers is not None:
            for row, q in zip(rows.tolist(), absent.tolist(), strict=True):
                self.watchers.setdefault(q, []).append(row)

    def pairs(
        self, rows: Array, mine: View, fields: Array, other: View, ofields: Array, standing: bool
    ) -> Iterator[Array]:
        """Pairs by key and time, in portions."""
        dictionary = self.circuit.tables.dictionary
        index = self.standing_index if standing else self.absent_index
        bounds = self.blocked_by if standing else self.blocks
        first, most = 0, 1 if self.plain and not standing else -1
        data = mine.table.data
        if len(rows):
            index.extend()
        # A row [lo, hi] that q meets has hi in [q.end, q.start + the longest window]; a q that a row meets ends in it.
        low, high, slack = (END, START, self.longest) if standing else (*mine.labels[self.window], 0)
        while first < len(rows) and index.count:
            table = other.table
            came, count, touched = probe_window(
                rows, first, data, fields, mine.table.alive, table.data, ofields, table.alive, index.order,
                index.buckets, index.groups, index.prev, index.after, index.call(), dictionary.canon, dictionary.nullish,
                low, high, slack, table.n, bounds, most, self.room,
            )  # fmt: skip
            self.touched += touched
            self.circuit.tables.guard.paired(count)
            if count:
                yield self.room[:, :count].copy()
            if came < len(rows) and (count == 0 or self.room.shape[1] < _PORTION):
                self.room = np.empty((2, 4 * self.room.shape[1]), np.int64)
            first = came

    def really(self, rows: Array, absent: Array) -> Array:
        """Which of the pairs agree on all variables and meet the conditions on both."""
        every = np.arange(len(rows))
        if self.plain:
            return every
        left, right = self.inputs
        one, other = left.table.data, right.table.data
        dictionary, mask = self.circuit.tables.dictionary, np.ones(len(rows), bool)
        both: dict[str, Array] = {v: other[f, absent] for v, f in right.vars.items()}
        for name, f in left.vars.items():
            x = one[f, rows]
            if name in self.open and name in right.vars:
                agreed, x = dictionary.agree(x, both[name])
                mask &= agreed
            both[name] = x
        for label in self.not_looked_for:
            left_over = np.flatnonzero(mask)
            mask[left_over] = ~self._own(rows[left_over], absent[left_over], label)
        frame = Frame(
            other[START, absent],
            other[END, absent],
            every,
            every,
            other[RANK, absent],
            both,
            {n: (one[s, rows], one[e, rows]) for n, (s, e) in left.labels.items()},
        ).where(mask)
        self.circuit.context.name_events = None
        return np.unique(self.circuit.context.select(self.where, frame, self.rule).left)

    def _own(self, rows: Array, absent: Array, label: str) -> Array:
        """Whether each occurrence that must be absent is the one that its row has under a label."""
        circuit, (left, right) = self.circuit, self.inputs
        mine, others = circuit.label_rows(left, rows, label), circuit.part_rows(right.table, absent)
        if mine is not None and others is not None:
            return (mine[1] == others[1]) & (mine[0] is others[0])
        pairs = zip(rows.tolist(), absent.tolist(), strict=True)
        found = [(circuit.label_parts(left, row, label), circuit.parts(right.table, other)) for row, other in pairs]
        return np.array([bool(own) and own == other for own, other in found], bool)

    def rebuild(self) -> None:
        super().rebuild()
        self.latest.reset()
        table, out = self.inputs[0].table, self.out
        low, high = (out.table.data[f, : out.table.n] for f in out.labels[self.window])
        self.longest = int((high - low).max()) if out.table.n else 0
        self.witness, self.watchers = np.full(table.n + 16, -1, np.int64), None
        alive = np.flatnonzero(table.alive[: table.n])
        standing = out.table.data[LEFT, : out.table.n][out.table.alive[: out.table.n].astype(bool)]
        for pairs in self.pairs(
            np.setdiff1d(alive, standing), self.inputs[0], self.fields[0], self.inputs[1], self.fields[1], False
        ):
            found = self.really(pairs[0], pairs[1])
            self.watch(pairs[0][found], pairs[1][found])

    def parents(self) -> list[tuple[int, Table]]:
        return [(LEFT, self.inputs[0].table)]

    def unsettled(self, since: Mapping[int, int], frontier: int) -> int:
        """A row whose window reaches beyond what is settled of what must be absent may still fall."""
        return min(super().unsettled(since, frontier), least_open(self, since))

    def wants(self, port: int, horizon: Horizon) -> Array | None:
        return in_windows(self, port, horizon)

    def remembers(self, horizon: Horizon) -> bool:
        return horizon.learned(self.back, self.back_for) >= FAR
