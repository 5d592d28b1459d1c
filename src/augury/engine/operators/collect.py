"""Aggregation: `while w: collect q` and `last n: collect q`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from augury.algebra.aggregates import of_nothing
from augury.algebra.nodes import condition_vars
from augury.core.arrays import Array, Flags, Integers, RowIds
from augury.core.bounds import FAR, TIME_LIMIT
from augury.core.model import OrderKey
from augury.engine.operators.base import Operator, Part, Ways
from augury.engine.operators.group_totals import Totals, asked_of, with_held_times
from augury.engine.operators.members import occurrences
from augury.engine.operators.row_contents import RowContents, same_contents
from augury.engine.operators.window_contents import WindowContents
from augury.engine.operators.windows import Windowed, in_last
from augury.engine.saved import require
from augury.planner.specs import CollectSpec
from augury.storage.frame import Frame, frame_of, joined_frames
from augury.storage.grouping import Slices, in_groups
from augury.storage.kernels.pairs import IndexArrays, probe_last, rows_with_last
from augury.storage.table import END, FIELDS, LEFT, NONE, RANK, START, GreatestValue, Index, Table
from augury.storage.unique import is_in, unique, unique_inverse

if TYPE_CHECKING:
    from augury.engine.horizon import Horizon
    from augury.engine.runtime import Runtime

_PORTION = 1 << 15  # rows that are computed together
_PAIRS = 1 << 18  # for which there is room at first: `last 1000000` may find far fewer


class CollectOperator(Windowed):
    """For each row and each group of its window, the row with the group's variables and totals.

    A row whose window a changed occurrence lies in is computed anew, once a step. Its table holds rows with what is
    used later; their members are its `contents`. With `or none` a row that collects nothing has a group, too.
    """

    altered = ("contents",)

    def __init__(self, runtime: Runtime, spec: CollectSpec) -> None:
        super().__init__(runtime, spec)
        (rows, collected), keys, collect = self.inputs, spec.keys, spec.collect
        self.collect, self.others = collect, [*spec.groups]
        self.one_group = rows.vars.keys() >= set(self.others)  # whether all that a row collects is one group
        self.totals = Totals(runtime, collect, spec.rule)
        # What a row says by itself: all rows of a group say it alike.
        several = spec.rows_of_one == "groups"
        self.own_vars = set() if several else set(rows.vars) - set(self.open)
        asked = {v for c in collect.where for v in condition_vars(c)}
        self.needed = asked | {*self.totals.seen, *self.open, *collect.by} | (set(self.others) - self.own_vars)
        self.contents = WindowContents()
        self.several, self.copies = several, spec.rows_of_one == "copies"
        self.several_collected, self.whole = spec.several_collected, spec.whole
        self.longest = self.least_length = 0 if collect.window is not None else TIME_LIMIT  # of the windows so far
        self.everyone = np.ones(16, np.uint8)
        self.same: dict[OrderKey, dict[int, None]] = {}  # rows made of the same events, where there may be several
        mine, its = (np.array([view.vars[v] for v in keys], np.int64) for view in (rows, collected))
        self.fields: tuple[Array, Array] = (mine, its)
        self.index = collected.table.index(tuple(collected.vars[v] for v in keys))
        self.order_field = rows.labels[self.window][1]
        self.row_index = rows.table.index(tuple(rows.vars[v] for v in keys), self.order_field)
        self.latest = GreatestValue(rows.table, self.order_field)
        nothing_else = not (self.open or collect.where or self.several_collected)
        self.of_last = (  # the fields by which `last n` counts, where nothing else decides what is collected
            [collected.vars[v] for v in dict.fromkeys((*keys, *self.others)) if v in collected.vars]
            if collect.last is not None and collect.window is None and nothing_else
            else None
        )
        runtime.asks(self, collect.where)

    def step(self) -> None:
        touched: list[Array] = []
        lost, before = self.losses(0), self.seen[0]
        if len(lost):
            self.links[0].kill(lost)
            for row in lost.tolist() if self.several or self.copies else ():
                others = self.same.get(self.made_of(row), {})
                others.pop(row, None)
                touched.append(np.array([*others], np.int64))
        fallen, stale, gained = self.losses(1), self.stale(1), self.gains(1)
        self.follow(fallen, gained)
        for q in (fallen, stale, gained):
            if len(q):
                touched.append(self.rows_around(q))
        rows = self.gains(0)
        if len(rows):
            low, high = (self.inputs[0].table.data[f, rows] for f in self.inputs[0].labels[self.window])
            self.longest = max(self.longest, int((high - low).max()))
        touched = [some for some in touched if len(some)]
        concerned = unique(np.concatenate([*touched, rows])) if touched else rows
        if self.several or self.copies:
            for row in rows.tolist():
                self.same.setdefault(self.made_of(row), {})[row] = None
            every = (self.same.get(self.made_of(row), {}) for row in concerned.tolist())
            concerned = np.array(
                sorted({row for some in every for row in (some if self.several else islice(some, 1))}), np.int64
            )
        concerned = concerned[self.inputs[0].table.alive[concerned].astype(bool)]
        # Rows that are made of the same events are computed together.
        portion = len(concerned) if self.several else _PORTION
        for first in range(0, len(concerned), max(portion, 1)):
            self.compute(concerned[first : first + portion], before)
            self.runtime.tables.guard.timely()

    @property
    def asked_fields(self) -> tuple[int, ...]:
        return asked_of(self.inputs[1])

    def follow(self, lost: Array, gained: Array) -> None:
        """Occurrences have gone and come, before any row is computed."""

    def made_of(self, row: int) -> OrderKey:
        """The identity of an occurrence: its events without collected ones, and the times of its labels."""
        view = self.inputs[0]
        times = tuple(int(view.table.data[f, row]) for ends in view.labels.values() for f in ends)
        table, values = view.table, tuple[tuple[int, ...], ...]()
        if self.copies:  # rows with other values are not copies
            codes = table.data[[*view.vars.values()], row]
            values = (tuple(self.runtime.tables.dictionary.canonical(codes).tolist()),)
        while isinstance(maker := self.runtime.maker(table), CollectOperator):
            row, table = int(table.data[LEFT, row]), maker.inputs[0].table
        return (self.runtime.parts(table, row), times, *values)

    # Pairs of a row and what it may collect

    def rows_around(self, q: Array) -> RowIds:
        """The rows whose window has an occurrence inside; an occurrence may be one that has just died."""
        rows, collected = self.inputs
        q = q[collected.table.data[END, q] <= self.latest.before(self.seen[0])]
        if self.of_last is not None and self.one_group and len(q):
            return self.rows_with_last(q)
        low, high = rows.labels[self.window]
        bounds = np.array([(0, END, 1, high, 0), (1, low, 0, START, 0)], np.int64)
        bounds = bounds if self.collect.window is not None else bounds[:1]
        if len(self.everyone) < collected.table.n:
            self.everyone = np.ones(2 * collected.table.n, np.uint8)
        limits = END, START, self.longest, self.seen[0], bounds, -1, self.everyone
        portions = self.within(q, collected, self.fields[1], self.row_index, *limits)
        return np.concatenate([NONE, *(pairs[1] for pairs in portions)])

    def rows_with_last(self, q: Array) -> RowIds:
        """The same for `last n`: rows that do not have n others after the occurrence."""
        rows, dictionary = self.row_index, self.runtime.tables.dictionary
        self.index.extend()
        rows.extend()
        mine, theirs = _arrays_of(rows, self.fields[0]), _arrays_of(self.index, self.fields[1])
        portions, room, first = [NONE], np.empty(64 + 8 * len(q), np.int64), 0
        # An occurrence that was revoked may have left its index empty, and still be among the last n of a row.
        while first < len(q) and rows.count:
            came, count, touched = rows_with_last(
                q, first, theirs, mine, dictionary.canon, dictionary.nullish, self.seen[0], self.collect.last, room
            )
            self.touched += touched
            portions.append(room[:count].copy())
            if came < len(q):
                room = np.empty(4 * len(room), np.int64)
            first = came
        return np.concatenate(portions)

    def in_window(self, rows: RowIds, most: int = -1, alive: Flags | None = None) -> Array:
        """Pairs of a row and an occurrence in its window, row by row; with `most`, that many of each row, the latest.

        `alive` says which rows to look at, if not just those that stand.
        """
        mine, collected = self.inputs
        low, high = mine.labels[self.window]
        bounds, last = np.array([(0, low, 1, START, 0)], np.int64), collected.table.n
        if self.collect.window is None:
            low, bounds = -1, bounds[:0]
        portions = self.within(rows, mine, self.fields[0], self.index, low, high, 0, last, bounds, most, alive)
        pairs = np.concatenate([np.empty((2, 0), np.int64), *portions], axis=1)
        # From the earliest to the latest of each row.
        owner = np.searchsorted(rows, pairs[0])
        each = Slices(np.bincount(owner, minlength=len(rows)))
        position = np.arange(pairs.shape[1])
        return pairs[:, 2 * each.starts[owner] + each.counts[owner] - 1 - position]

    def gathered(self, rows: RowIds) -> Frame:
        """The members of rows, row by row."""
        last = self.collect.last
        if last is None or self.several or not self.one_group:
            return self.selected(self.in_window(rows))
        if self.of_last is not None:
            enough = min(len(rows) * (last + 1), _PAIRS)
            if self.room.shape[1] < enough:
                self.room = np.empty((2, enough), np.int64)
            table, limits = self.inputs[0].table, (self.order_field, last)
            portions = self.portions(probe_last, rows, table, self.fields[0], table.alive, self.index, *limits)
            gathered_pairs = [pairs.copy() for _, pairs in portions]
            return self.selected(np.concatenate([np.empty((2, 0), np.int64), *gathered_pairs], axis=1))
        # The last n are looked for from the end, in growing portions.
        parts: list[Frame] = []
        most = 2 * last
        while len(rows):
            pairs = self.in_window(rows, most)
            owner: RowIds = np.searchsorted(rows, pairs[0])
            ends, floor = self.inputs[1].table.data[END, pairs[1]], np.full(len(rows), FAR)
            np.minimum.at(floor, owner, ends)
            floor[np.bincount(owner, minlength=len(rows)) < most] = -FAR  # it has looked at all
            frame = self.selected(pairs)
            done = (self.after(frame, rows, floor) >= last) | (floor == -FAR)
            parts.append(frame.where(done[np.searchsorted(rows, frame.left)]))
            rows, most = rows[~done], 8 * most
        return joined_frames(parts) if parts else self.selected(np.empty((2, 0), np.int64))

    def after(self, frame: Frame, rows: RowIds, floor: Array) -> Array:
        """How many occurrences each row has collected that end after a time."""
        owner: RowIds = np.searchsorted(rows, frame.left)
        late = np.flatnonzero(frame.end > floor[owner])
        if self.several_collected and len(late):
            same = occurrences(self.runtime, self.inputs[1].table, frame.right[late])
            order, first = in_groups([owner[late], same])
            late = late[order[first]]
        return np.bincount(owner[late], minlength=len(rows))

    def selected(self, pairs: Array) -> Frame:
        """Of pairs those that are collected; of each the row on the left and the occurrence on the right."""
        frame, mask = self.paired(pairs[0], pairs[1], self.needed | self.totals.labels)
        if self.whole:
            mine, its = self.inputs
            low, high = (mine.table.data[f, pairs[0]] for f in mine.labels[self.window])
            mask &= (frame.start == low) & (frame.end == high)
            with_held_times(frame, its, pairs[1], self.collect.label)
        elif self.collect.label is not None:
            frame.labels[self.collect.label] = (frame.start, frame.end)
        frame = frame.where(mask)
        self.runtime.context.name_events = None
        return self.runtime.context.select(self.collect.where, frame, self.rule)

    # Groups

    def leaders(self, rows: RowIds) -> Array:
        """The first of the rows that are made of the same events as each row is."""
        if not self.several:
            return rows
        different, number = unique_inverse(rows)
        return np.array([min(self.same[self.made_of(row)]) for row in different.tolist()], np.int64)[number]

    def keys_of(self, frame: Frame, rows: RowIds) -> list[Array]:
        """The grouping key: the events that rows are made of, and the variables that are used later."""
        canonical = self.runtime.tables.dictionary.canonical
        return [self.leaders(rows), *(canonical(frame.vars[v]) for v in self.others if v not in self.own_vars)]

    def grouped(self, rows: RowIds) -> tuple[Frame, Slices]:
        """The members of rows in groups, in the order of events where that can be seen; of `last n` the last n."""
        frame = self.gathered(rows)
        if not len(frame):
            return frame, Slices(NONE)
        keys, table = self.keys_of(frame, frame.left), self.inputs[1].table
        same = occurrences(self.runtime, table, frame.right) if self.several_collected else frame.right
        frame, groups, same = self.totals.grouped(frame, keys, same, self.several or self.several_collected)
        if self.collect.last is not None or not self.totals.in_any_order(frame, groups):
            order = self.totals.order(frame, groups, table, frame.right)
            if order is not None:
                frame, same = frame.take(order), same[order]
        if self.collect.last is not None:
            frame, groups = self.latest_of(frame, groups, same, self.collect.last)
        return frame, groups

    def latest_of(self, frame: Frame, groups: Slices, same: Array, last: int) -> tuple[Frame, Slices]:
        """The last n occurrences of each group; without groups that have fewer, where exactly n are asked for."""
        new = np.r_[True, same[1:] != same[:-1]]
        new[groups.starts] = True
        count = np.cumsum(new)
        ends = groups.starts + groups.counts - 1
        keep = count[ends][groups.owner] - count < last
        if self.collect.exactly:
            keep &= (count[ends] - count[groups.starts] + 1 >= last)[groups.owner]
        if keep.all():
            return frame, groups
        counts = groups.where(keep).counts
        return frame.where(keep), Slices(counts[counts > 0])

    # Rows of the output

    def compute(self, rows: RowIds, before: int) -> None:
        """Computes rows anew; what they gave before, those that were there `before`, and give no longer is taken back."""
        frame, groups = self.grouped(rows)
        empty = self.without_groups(rows, frame, groups) if self.collect.none and not self.collect.exactly else NONE
        totals_of: dict[str, Array] = {}
        if len(groups):
            frame, groups, totals_of = self.totals.of(frame, groups)
        columns, counts = self.rows_of(frame, groups, totals_of), groups.counts
        if len(empty):
            columns = np.concatenate([columns, self.with_nothing(empty)], axis=1)
            counts = np.r_[counts, np.zeros(len(empty), np.int64)]
        self.replace(rows[rows < before], columns, counts, frame.right)

    def rows_of(self, frame: Frame, groups: Slices, codes: dict[str, Array]) -> RowIds:
        """The rows that groups give."""
        view, first = self.inputs[0], groups.starts
        source, data = frame.left[first], view.table.data
        columns = self.with_nothing(source)
        for name, field in self.out.vars.items():
            if name in codes:
                columns[field] = codes[name]
            elif name in self.collect.by:
                columns[field] = frame.vars[name][first]
        if len(groups):
            columns[RANK] = np.maximum(data[RANK, source], np.maximum.reduceat(frame.rank, first))
            if self.collect.last is not None:
                columns[START] = np.minimum(columns[START], np.minimum.reduceat(frame.start, first))
                columns[END] = np.maximum(columns[END], np.maximum.reduceat(frame.end, first))
        return columns

    def with_nothing(self, rows: RowIds) -> Array:
        """The rows that rows give without what is collected, where all aggregates are of nothing."""
        view, data, encode = self.inputs[0], self.inputs[0].table.data, self.runtime.context.encode
        columns = np.empty((self.out.table.width, len(rows)), np.int64)
        columns[START], columns[END], columns[RANK] = data[START, rows], data[END, rows], data[RANK, rows]
        columns[LEFT], columns[LEFT + 1] = self.leaders(rows), -1
        totals = {total.name: total.aggregate.function for total in self.collect.totals}
        for name, target in self.out.vars.items():
            if name in totals:
                columns[target] = encode(of_nothing(totals[name]))
            elif name in view.vars:
                columns[target] = data[view.vars[name], rows]
        for name, ends in self.out.labels.items():
            for target, field in zip(ends, view.labels[name], strict=True):
                columns[target] = data[field, rows]
        return columns

    def without_groups(self, rows: RowIds, frame: Frame, groups: Slices) -> Array:
        """With `or none`, the rows that have a group of nothing; of those that are made of the same events, one."""
        if not self.several and not self.open:
            return rows[~is_in(rows, frame.left)]
        members = frame.take(groups.starts)
        occupied = set(zip(*(key.tolist() for key in self.keys_of(members, members.left)), strict=True))
        keys = zip(*(key.tolist() for key in self.keys_of(frame_of(self.inputs[0], rows), rows)), strict=True)
        missing: dict[OrderKey, int] = {}
        for row, key in zip(rows.tolist(), keys, strict=True):
            if key not in occupied:
                missing.setdefault(key, row)
        return np.array([*missing.values()], np.int64)

    def replace(self, old: Array, columns: Array, counts: Integers, members: Array, listed: bool = True) -> None:
        """Puts rows in the place of those that old rows have given; what is as before stays.

        Members that are not `listed` are found by the window on demand.
        """
        links, out, new = self.links[0], self.out.table, np.ones(columns.shape[1], bool)
        standing = links.standing(old) if len(old) else NONE
        if len(standing):
            fields = [START, END, LEFT, *range(FIELDS, out.width)]
            had, sizes = self.contents.of(standing)
            same = same_contents(
                RowContents(out.data[np.ix_(fields, standing)], sizes, had),
                RowContents(columns[fields], counts, members),
            )
            new = same < 0
            stays = np.zeros(len(standing), bool)
            stays[same[~new]] = True
            gone = np.sort(standing[~stays])
            if len(gone):
                out.kill(gone)
        if new.any():
            if not new.all():
                members = members[np.repeat(new, counts)]
                columns, counts = columns[:, new], counts[new]
            if listed:
                self.contents.add(out.n, counts, members)
            out.append(columns)

    def rebuild(self) -> None:
        super().rebuild()
        self.contents.cut(self.out.table.n)
        self.same, table = {}, self.inputs[0].table
        low, high = (table.data[f, : table.n] for f in self.inputs[0].labels[self.window])
        self.longest = max(self.least_length, int((high - low).max()) if table.n else 0)
        self.latest.reset()
        for row in table.standing().tolist() if self.several or self.copies else ():
            self.same.setdefault(self.made_of(row), {})[row] = None

    def part_rows(self, rows: RowIds) -> tuple[Table, Array] | None:
        return None

    def members(self, rows: RowIds) -> tuple[Array, Array]:
        """The members of output rows, one row after the other, and how many each has."""
        return self.contents.of(rows)

    def sources(self, rows: RowIds) -> Ways:
        ((some, parents),) = super().sources(rows)
        members, counts = self.members(rows)
        return [(some, [*parents, (self.inputs[1].table, members, np.repeat(np.arange(len(rows)), counts))])]

    def wants(self, port: int, horizon: Horizon) -> Array | None:
        if self.of_last is None or self.collect.last is None:
            return super().wants(port, horizon)
        return in_last(self, self.collect.last, self.of_last, port, horizon)

    def remembers(self, horizon: Horizon) -> bool:
        return self.of_last is None and super().remembers(horizon)

    def keep_parents(self, keep: dict[int, Array]) -> None:
        super().keep_parents(keep)
        keep[id(self.inputs[1].table)][self.contents.of(np.flatnonzero(keep[id(self.out.table)]))[0]] = True

    def moved(self, places: Mapping[int, Array]) -> None:
        super().moved(places)
        self.contents.moved(places[id(self.out.table)], places[id(self.inputs[1].table)])

    def state(self, number: Mapping[int, int]) -> Any:
        return self.contents.state(self.out.table.n)

    def fill(self, state: object, operators: Sequence[Operator]) -> None:
        self.contents.restore(state, self.out.table.n, self.inputs[1].table.n)

    def check(self) -> None:
        super().check()
        alive = self.out.table.standing()
        require(bool(self.contents.knows(alive).all()), "a row that has not collected anything")

    def parts(self, row: int) -> tuple[Part, ...]:
        result = dict.fromkeys(self.runtime.parts(self.inputs[0].table, int(self.out.table.data[LEFT, row])))
        for member in self.members(np.array([row]))[0].tolist():
            result.update(dict.fromkeys(self.runtime.parts(self.inputs[1].table, member)))
        return tuple(result)


def _arrays_of(index: Index, fields: Array) -> IndexArrays:
    table = index.table
    return IndexArrays(
        table.data, fields, table.alive, index.order, index.buckets, index.groups, index.prev, index.after
    )
