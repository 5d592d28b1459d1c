"""Join: pairs of rows in a temporal relation that agree on the variables they share."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from augury.algebra.nodes import GAP
from augury.core.arrays import Array, RowData, RowIds
from augury.core.bounds import FAR
from augury.engine.operators.base import PartialMatch
from augury.engine.operators.pairing import Pairing
from augury.planner.specs import JoinSpec
from augury.storage.frame import Frame, View, store
from augury.storage.guard import foresee
from augury.storage.kernels.pairs import copy_pairs, latest_start, probe
from augury.storage.table import END, NONE, RANK, START, GreatestValue

if TYPE_CHECKING:
    from augury.engine.horizon import Horizon
    from augury.engine.runtime import Runtime
    from augury.planner.implied_bounds import JoinBounds

_SPAN = np.array([START, END, START, END], np.int64)  # from where partners are within reach
_MANY = 4096  # rows that a step has made: from here on it is worth a look at how much memory all would take


class JoinOperator(Pairing):
    """Δ(L ⋈ R) = ΔL ⋈ R + L ⋈ ΔR: new left rows meet the right ones that were there, new right rows all left ones.

    `relation` has all temporal conditions as bounds, and how far back in a chain a partner can be. Keys are looked up;
    `open` are shared variables that a side may leave unbound.
    """

    def __init__(self, runtime: Runtime, spec: JoinSpec) -> None:
        super().__init__(runtime, spec)
        left, right, *absent = self.inputs
        self.nodes, self.floor = (spec.node.left, spec.node.right), -1
        self.bounds_for, self.relation = spec.bounds_for, spec.bounds
        self.keys, self.open, self.where, self.gap = spec.keys, spec.open, spec.where, spec.gap
        self.absent = absent[0] if absent else None
        self.key_fields = tuple(np.array([view.vars[v] for v in self.keys], np.int64) for view in (left, right))
        self.indexes = tuple(view.table.index(tuple(view.vars[v] for v in self.keys)) for view in (left, right))
        self.simple = not (self.where or self.gap or self.open)
        self.plan = self._plan() if self.simple else None
        self.latest = (GreatestValue(left.table, END), GreatestValue(right.table, END))
        if self.absent is not None:
            self._block(self.absent, right, spec.absent_keys)

    def _block(self, absent: View, right: View, keys: tuple[str, ...]) -> None:
        """Gives right rows a floor: the least end of left rows that nothing absent separates from them."""
        self.floor = right.table.add_field(code=False)
        self.floors: dict[int, list[int]] | None = None  # right rows by floor, once something absent was retracted
        self.absent_keys = keys
        self.absent_fields = np.array([right.vars[v] for v in keys], np.int64)
        self.absent_index = absent.table.index(tuple(absent.vars[v] for v in keys))
        allowed, bounds = np.array([(1, self.floor, 0, END, 0)], np.int64), self.relation.bounds
        self.relation = replace(self.relation, bounds=(np.concatenate([bounds[0], allowed]), bounds[1]))

    def _plan(self) -> Array:
        """Where each field of a joined row comes from: (field, side, field there)."""
        (left, right), out = self.inputs[:2], self.out
        plan = [
            (field, 0, left.vars[v]) if v in left.vars else (field, 1, right.vars[v]) for v, field in out.vars.items()
        ]
        for name, ends in out.labels.items():
            side, view = (0, left) if name in left.labels else (1, right)
            plan += [(field, side, view.labels[name][end]) for end, field in enumerate(ends)]
        return np.array(plan, np.int64).reshape(-1, 3)

    def step(self) -> None:
        for port in (0, 1):
            if self.lost[port]:
                self.drop_children(port)
        seen, inputs = self.seen, self.inputs
        before = seen[1]
        if self.absent is not None:
            self.reveal()
        left = self.gains(0) if inputs[0].table.n > seen[0] else NONE
        right = self.gains(1) if inputs[1].table.n > before else NONE
        if len(right) and self.absent is not None:
            self.set_floors(right, self.latest_absent(right))
        if len(left):
            self.emit(left, 0, before)
        if len(right):
            self.emit(right, 1, self.inputs[0].table.n)

    # NOT: a pair is blocked where something absent starts after its left part ends and ends before its right part starts.
    # So for a right part, only left parts that end no earlier than the latest such start need be looked at: its floor.

    def latest_absent(self, rights: Array) -> Array:
        latest, touched = self._latest_starts(rights, self.inputs[1].table.data, self.absent_fields)
        self.touched += touched
        return latest

    def _latest_starts(self, rows: RowIds, data: RowData, fields: Array) -> tuple[Array, int]:
        """For each row the latest start of an absent event with its key that ends before it starts; and how many it touched."""
        latest, index, dictionary = np.empty(len(rows), np.int64), self.absent_index, self.runtime.tables.dictionary
        index.extend()
        index.calls += 1
        absent = index.table
        return latest, latest_start(
            rows, data, fields, absent.data, index.fields, absent.alive, index.buckets, index.groups, index.prev,
            index.after, index.calls, dictionary.canon, dictionary.nullish, latest,
        )  # fmt: skip

    def open_to_partners(self, rows: RowIds, side: int) -> Array:
        """Which rows may still find a partner: of a NOT, not a left part after which what must be absent has come."""
        if self.absent is None or side == 1 or not all(v in self.inputs[0].vars for v in self.absent_keys):
            return np.ones(len(rows), bool)
        left = self.inputs[0]
        copied = left.table.data[:, rows].copy()
        copied[START] = FAR // 2  # whatever has ended, however late it started
        fields = np.array([left.vars[v] for v in self.absent_keys], np.int64)
        latest, _ = self._latest_starts(np.arange(len(rows)), copied, fields)
        above: Array = latest <= left.table.data[END, rows]
        return above

    def set_floors(self, rights: Array, floors: Array) -> None:
        table, data = self.inputs[1].table, self.inputs[1].table.data
        old_rows = rights[rights < table.mark]
        if len(old_rows):
            old = data[self.floor, old_rows].tolist()
            self.runtime.journal += [(table, self.floor, *pair) for pair in zip(old_rows.tolist(), old, strict=True)]
        data[self.floor, rights] = floors
        if self.floors is not None:
            for row, floor in zip(rights.tolist(), floors.tolist(), strict=True):
                self.floors.setdefault(floor, []).append(row)

    def reveal(self) -> None:
        """A blocking event is gone: looks at the pairs that it blocked."""
        lost = self.losses(2)
        self.seen[2] = self.inputs[2].table.n
        if not len(lost):
            return
        right = self.inputs[1].table
        if self.floors is None:
            self.floors = {}
            for row in np.flatnonzero(right.alive[: self.seen[1]]).tolist():
                self.floors.setdefault(int(right.data[self.floor, row]), []).append(row)
        starts = set(self.inputs[2].table.data[START, lost].tolist())
        waiting = [(row, floor) for floor in starts for row in self.floors.pop(floor, ()) if right.alive[row]]
        rows = np.array(sorted({row for row, floor in waiting if right.data[self.floor, row] == floor}), np.int64)
        if not len(rows):
            return
        old, new = right.data[self.floor, rows], self.latest_absent(rows)
        self.set_floors(rows, new)
        rows, old = rows[new < old], old[new < old]
        for _, pairs in self.pairs(rows, 1, self.seen[0]):
            hidden = self.inputs[0].table.data[END, pairs[0]] < old[np.searchsorted(rows, pairs[1])]
            if hidden.any():
                self.keep(np.ascontiguousarray(pairs[:, hidden]))

    def rebuild(self) -> None:
        super().rebuild()
        for latest in self.latest:
            latest.reset()
        if self.absent is not None:
            self.floors = None

    def emit(self, rows: RowIds, side: int, limit: int) -> None:
        """Pairs new rows of a side with the rows of the other side that came before `limit`."""
        rows, made = self.within_reach(rows, side, limit, self.relation), self.out.table
        if not len(rows):
            return
        for came, pairs in self.pairs(rows, side, limit):
            self.keep(pairs)
            if made.n - made.mark > _MANY:
                foresee((made.n - made.mark) * (8 * made.width + 1), self.runtime.tables.share * came / len(rows))

    def within_reach(self, rows: RowIds, side: int, limit: int, relation: JoinBounds) -> Array:
        """The rows for which a row of the other side that came before `limit` ends late enough.

        In order, what comes first finds nothing of what comes after it, and need not look.
        """
        data, reach = self.inputs[side].table.data, relation.reach[side]
        if len(rows) == 1:
            row = rows.item(0)
            earliest = max(data.item(START, row) + reach.item(0), data.item(END, row) + reach.item(1))
            return rows if earliest <= self.latest[1 - side].before(limit) else NONE
        least = np.maximum(data[START, rows] + reach[0], data[END, rows] + reach[1])
        near: Array = rows[least <= self.latest[1 - side].before(limit)]
        return near

    def pairs(
        self, rows: RowIds, side: int, limit: int, most: int = -1, relation: JoinBounds | None = None
    ) -> Iterator[tuple[int, Array]]:
        """Pairs (left, right) by key and time, with rows of the other side before `limit`, in portions: see `portions`."""
        relation, mine = relation or self.relation, self.inputs[side].table
        limits = _SPAN, relation.reach[side], self.floor if side else -1, limit, relation.bounds[side], most
        if limit > 0:
            index, fields = self.indexes[1 - side], self.key_fields[side]
            return self.portions(probe, rows, mine, fields, mine.alive, index, *limits, turned=side == 1)
        return iter(())

    def keep(self, pairs: Array) -> None:
        """Stores the pairs that meet the other conditions."""
        left, right, out = self.inputs[0], self.inputs[1], self.out
        if self.simple:
            count = pairs.shape[1]
            out.table.room(count)
            made, n, both = out.table.data, out.table.n, np.ascontiguousarray(pairs)
            copy_pairs.call(made, n, both, count, left.table.data, right.table.data, self.plan)
            out.table.added(count)
            return
        frame = self.frame(pairs[0], pairs[1])
        self.runtime.context.name_events = self.name_events
        store(self.runtime.context.select(self.where, frame, self.rule), out)

    def waiting(self, now: int | None, new: bool) -> Iterator[PartialMatch]:
        for side in (0, 1):
            view, table = self.inputs[side], self.inputs[side].table
            rows = np.arange(table.mark if new else 0, table.n)
            rows = rows[table.alive[rows].astype(bool)]
            rows = rows[self.open_to_partners(rows, side)] if len(rows) else rows
            reach = self.relation.reach[side]
            last = np.minimum(
                table.data[START, rows] + reach[2] if reach[2] < FAR else np.full(len(rows), FAR),
                table.data[END, rows] + reach[3] if reach[3] < FAR else np.full(len(rows), FAR),
            )
            if now is not None:  # what it awaits may end now or later
                rows, last = rows[last >= now], last[last >= now]
            for row, until in zip(rows.tolist(), last.tolist(), strict=True):
                binding = {v: int(table.data[f, row]) for v, f in view.vars.items()}
                done = self.runtime.parts(table, row)
                yield PartialMatch(done, self.nodes[1 - side], None if until >= FAR else until, binding)

    # How long a row waits for partners

    def reach(self, port: int, horizon: Horizon) -> int:
        """How far the end of a row lies from that of a partner at least, negative where it may be earlier."""
        back = int(self.relation.reach[1 - port][1])
        if back > -FAR:
            return back
        return -horizon.learned(-back, lambda lengths: -int(self.bounds_for(lengths).reach[1 - port][1]))

    def wants(self, port: int, horizon: Horizon) -> Array | None:
        if port > 1:
            return None  # what must be absent is looked at by the Absence behind
        table, other = self.inputs[port].table, self.inputs[1 - port].table
        back = self.reach(port, horizon)
        if back <= -FAR:
            return np.ones(table.n, bool)
        return table.data[END, : table.n] >= horizon.since[id(other)] + back

    def remembers(self, horizon: Horizon) -> bool:
        return any(self.reach(port, horizon) <= -FAR for port in (0, 1))

    def frame(self, lefts: Array, rights: Array) -> Frame:
        return joined(self.inputs[0], self.inputs[1], lefts, rights, self.open, self.gap)


def joined(
    left: View,
    right: View,
    lefts: Array,
    rights: Array,
    shared: tuple[str, ...],
    gap: bool,
    numbers: Array | None = None,
) -> Frame:
    """Pairs as rows, those that agree on what both may bind. `numbers` are the rows that they are made of, if not the pair."""
    left_data, other = left.table.data, right.table.data
    frame = Frame(
        np.minimum(left_data[START, lefts], other[START, rights]),
        np.maximum(left_data[END, lefts], other[END, rights]),
        lefts if numbers is None else numbers,
        rights if numbers is None else np.full(len(numbers), -1, np.int64),
        np.maximum(left_data[RANK, lefts], other[RANK, rights]),
        {v: other[f, rights] for v, f in right.vars.items()} | {v: left_data[f, lefts] for v, f in left.vars.items()},
        {n: (other[s, rights], other[e, rights]) for n, (s, e) in right.labels.items()}
        | {n: (left_data[s, lefts], left_data[e, lefts]) for n, (s, e) in left.labels.items()},
    )
    if gap:
        frame.labels[GAP] = (left_data[END, lefts] + 1, other[START, rights] - 1)
    if shared:
        dictionary = left.table.dictionary
        mask = np.ones(len(frame), bool)
        for name in shared:
            x, y = left_data[left.vars[name], lefts], other[right.vars[name], rights]
            agreed, frame.vars[name] = dictionary.agree(x, y)
            mask &= agreed
        frame = frame.where(mask)
    return frame
