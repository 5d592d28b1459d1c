"""Totals of windows by the clock: `w: every(1h, 5min), while w: collect q`, where just windows with something in them count."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from augury.algebra.clock_windows import Line, Windows
from augury.algebra.nodes import Collect
from augury.core.arrays import Array, Integers, Mask, RowIds, Times
from augury.engine.operators.base import Clocked, Operator, Part, PartialMatch, Ways
from augury.engine.operators.group_totals import RowGroups, WindowTotals, asked_of
from augury.engine.operators.partial_totals import PartialTotals, Share
from augury.engine.operators.range_totals import RangeTotals
from augury.engine.operators.window_contents import WindowContents
from augury.planner.specs import PanesSpec
from augury.storage.frame import View
from augury.storage.grouping import expand_ranges
from augury.storage.table import END, FIELDS, LEFT, RANK, RIGHT, START, Table
from augury.storage.unique import unique, unique_inverse

if TYPE_CHECKING:
    from augury.engine.horizon import Horizon
    from augury.engine.runtime import Runtime

_NONE = np.zeros(0, np.int64)
_HOUR = 3_600_000_000
_PORTION = 1 << 20  # members that are listed together


class Panes(Clocked):
    """For each window with something inside, and each group in it, a row with the totals.

    What is collected is put into *panes*: slices of the greatest length that divides windows and hops. A window is made
    of panes, and computed once the clock has passed its end; before that, an event costs a place in its pane. A late
    event, or one that is taken back, makes the windows anew that it lies in, and no others. An interval that lies in no
    pane is kept beside them.
    """

    altered = ("contents",)
    linked = ()

    def __init__(self, runtime: Runtime, spec: PanesSpec) -> None:
        self.collect: Collect = spec.collect
        windows, self.label = spec.windows, spec.collect.window
        self.line = Line(windows, runtime.clock)
        slice_ = math.gcd(windows.size, windows.hop)
        self.panes_line = self._panes_line(windows, slice_)
        self.per_window, self.per_hop = windows.size // slice_, windows.hop // slice_
        self.panes: dict[int, list[Array]] = {}
        self.across: dict[int, list[Array]] = {}  # by the window that they lie in
        self.computed: dict[int, Array] = {}  # the rows that each window has given
        self.contents = WindowContents()  # of rows that were added up from panes nothing is said
        self.changed: dict[int, None] = {}  # windows that are to be computed
        super().__init__(runtime, spec)
        (collected,) = self.inputs
        self.totals = WindowTotals(runtime, collected, self.collect, spec.rule, spec.several)
        # Windows that share panes are made of what these come to, where that can be added up.
        adds = self.totals.simple and not self.collect.where and self.per_window > 1
        ranged = spec.ranged and not adds
        self.ranges = RangeTotals(runtime, self.collect, collected, (), self.totals) if ranged else None
        self.behind = True  # whether running totals are to be made from the table
        self.adding = PartialTotals(runtime, collected, self.collect, self.totals) if adds else None
        self.partials: dict[int, Share] = {}
        runtime.clocked.append(self)
        runtime.asks(self, self.collect.where)

    @property
    def asked_fields(self) -> tuple[int, ...]:
        return asked_of(self.inputs[0])

    def _panes_line(self, windows: Windows, size: int) -> Line:
        """Panes begin where windows do, also where those count from a Monday."""
        line = Line(replace(windows, size=size, hop=size), self.line.clock)
        if line.fixed:
            line.origin = self.line.origin
        else:
            line.wall = self.line.wall
        return line

    def tick(self, now: int) -> None:
        if self.changed:
            self.wake()

    @property
    def due(self) -> int | None:
        """When the next window ends that is to be computed."""
        return min(map(self.line.end, self.changed), default=None)

    def step(self) -> None:
        lost, gained = self.losses(0), self.gains(0)
        for rows in (lost, self.stale(0)):
            if len(rows):
                self.enter(rows, new=False)
        if len(gained):
            self.enter(gained, new=True)
        if self.ranges is not None and not self.behind:
            self.ranges.remove(lost)
            self.ranges.add(gained, self.inputs[0].table.standing)
        now = self.runtime.now
        if now is not None and self.changed:
            due = sorted(n for n in self.changed if self.line.end(n) <= now)
            for number in due:
                del self.changed[number]
            self.compute(due)

    # Panes

    def enter(self, rows: RowIds, new: bool) -> None:
        """Puts rows into their panes, or says that those are no longer what they were."""
        data = self.inputs[0].table.data
        start, end = data[START, rows], data[END, rows]
        pane = self.panes_of(start)
        inside = self.panes_of(end) == pane if (start != end).any() else np.ones(len(rows), bool)
        members, number = rows[inside], pane[inside]
        if not bool((number[1:] >= number[:-1]).all()):
            order = np.argsort(number, kind="stable")
            members, number = members[order], number[order]
        first = np.flatnonzero(np.r_[True, number[1:] != number[:-1]]) if len(number) else _NONE
        numbers, cuts = number[first].tolist(), [*first.tolist(), len(members)]
        for i, pane_ in enumerate(numbers):
            if new:
                self.panes.setdefault(pane_, []).append(members[cuts[i] : cuts[i + 1]])
        if self.partials:
            for pane_ in numbers:
                self.partials.pop(pane_, None)
        self.mark_with(numbers)
        for row, s, e in zip(*(x[~inside].tolist() for x in (rows, start, end)), strict=True):
            for number in self.line.holding(s, e):
                if new:
                    self.across.setdefault(number, []).append(np.array([row], np.int64))
                self.mark((number,))

    def mark_with(self, panes: list[int]) -> None:
        """The windows that some panes, in order, are part of are to be computed."""
        done: int | None = None
        for pane in panes:
            windows = self.windows_with(pane)
            self.mark(windows if done is None else range(max(windows.start, done), windows.stop))
            done = windows.stop

    def mark(self, numbers: Iterable[int]) -> None:
        self.changed.update(dict.fromkeys(numbers))

    def panes_of(self, times: Times) -> Array:
        """The number of the pane that each time lies in."""
        line = self.panes_line
        if line.fixed:
            return (times - line.origin) // line.hop
        different, number = unique_inverse(times // _HOUR)
        numbers = np.empty(len(times), np.int64)
        spans = [(line.last_begun(h * _HOUR), line.last_begun((h + 1) * _HOUR - 1)) for h in different.tolist()]
        low, high = (np.array([f[i] for f in spans], np.int64)[number] for i in (0, 1))
        numbers[:] = low
        for i in np.flatnonzero(low != high).tolist():  # the hour in which one begins
            numbers[i] = line.last_begun(int(times[i]))
        return numbers

    def windows_with(self, pane: int) -> range:
        """The numbers of the windows that a pane is part of."""
        return range(-((self.per_window - 1 - pane) // self.per_hop), pane // self.per_hop + 1)

    def lying_in(self, number: int) -> list[Array]:
        """The rows in a window, pane by pane."""
        first = number * self.per_hop
        rows = [some for p in range(first, first + self.per_window) for some in self.panes.get(p, ())]
        return [*rows, *self.across.get(number, ())]

    # Windows

    def compute(self, numbers: Sequence[int]) -> None:
        """Computes windows; of those that were computed before, just what is different is given again."""
        numbers = self.ranged(numbers) if self.ranges is not None and numbers else numbers
        groups = self.added_up(numbers) if self.adding is not None else None
        if groups is not None:
            self.give(numbers, groups)
            return
        first, size = 0, 0
        for i, number in enumerate(numbers, 1):
            size += sum(map(len, self.lying_in(number)))
            if size >= _PORTION or i == len(numbers):
                self.give(numbers[first:i], self.listed(numbers[first:i]))
                self.runtime.tables.guard.timely()
                first, size = i, 0

    def listed(self, numbers: Sequence[int]) -> RowGroups:
        """The groups of windows, from what lies in them."""
        parts = [(number, some) for number in numbers for some in self.lying_in(number)]
        rows = np.concatenate([_NONE, *(some for _, some in parts)])
        window = np.repeat(np.array([n for n, _ in parts], np.int64), [len(some) for _, some in parts])
        standing = self.inputs[0].table.alive[rows].astype(bool)
        self.touched += int(standing.sum())
        return self.totals.of_rows(rows[standing], window[standing], self.bounds)

    def ranged(self, numbers: Sequence[int]) -> Sequence[int]:
        """Gives windows whose totals follow from running totals, and returns the others."""
        ranges, view, every = self.ranges, self.inputs[0], np.array(numbers, np.int64)
        assert ranges is not None
        before = ranges.touched
        if self.behind:
            ranges.reset()
            ranges.add(view.table.standing(), view.table.standing)
            self.behind = False
        if not ranges.usable or not len(ranges.keyed.spans):
            return numbers
        totals = ranges.of(np.zeros(len(every), np.int64), *self.bounds(every))
        self.touched += ranges.touched - before
        sure = np.ones(len(every), bool)
        sure[totals.window[~totals.sure]] = False
        totals = totals.where(sure[totals.window] & (totals.counts > 0))
        columns = {v: view.table.data[view.vars[v], totals.first] for v in self.collect.by} | totals.codes
        rank = np.zeros(len(totals.window), np.int64)
        self.give(every[sure].tolist(), RowGroups(every[totals.window], columns, rank, None, _NONE))
        return every[~sure].tolist()  # type: ignore[no-any-return]

    def added_up(self, numbers: Sequence[int]) -> RowGroups | None:
        """Windows made of panes that are added up; None where that cannot be."""
        assert self.adding is not None
        if not numbers or any(number in self.across for number in numbers):
            return None
        low, high = numbers[0] * self.per_hop, numbers[-1] * self.per_hop + self.per_window
        few = high - low < len(self.panes)
        panes = (
            [p for p in range(low, high) if p in self.panes]
            if few
            else sorted(p for p in self.panes if low <= p < high)
        )
        missing = [p for p in panes if p not in self.partials]
        if missing:
            parts = [np.concatenate(self.panes[p]) for p in missing]
            rows = np.concatenate(parts)
            pane = np.repeat(np.array(missing, np.int64), [len(part) for part in parts])
            standing = self.inputs[0].table.alive[rows].astype(bool)
            self.touched += int(standing.sum())
            new_partials = self.adding.panes(rows[standing], pane[standing]) if standing.any() else {}
            self.partials |= new_partials
        panes = [p for p in panes if p in self.partials]
        if not panes:
            return RowGroups(_NONE, dict.fromkeys(self.totals.names, _NONE), _NONE, None, _NONE)
        every = np.array(numbers, np.int64)
        first = every * self.per_hop
        partials = [self.partials[p] for p in panes]
        before = self.adding.touched
        added = self.adding.windows(partials, np.array(panes, np.int64), every, first, first + self.per_window)
        self.touched += self.adding.touched - before
        if added is None:
            return None
        window, columns, rank = added
        return RowGroups(window, columns, rank, None, _NONE)

    def bounds(self, numbers: Integers) -> tuple[Array, Array]:
        """When windows begin and end."""
        if self.line.fixed:
            begin = self.line.origin + numbers * self.line.hop
            return begin, begin + self.line.size - 1
        different, number = unique_inverse(numbers)
        both = [(self.line.begin(n), self.line.end(n)) for n in different.tolist()]
        begin, end = (np.array([b[i] for b in both], np.int64)[number] for i in (0, 1))
        return begin, end

    def give(self, numbers: Sequence[int], groups: RowGroups) -> None:
        """Rows for groups, window by window; rows that are as before stay."""
        table, window = self.out.table, groups.window
        columns = np.empty((table.width, len(groups)), np.int64)
        begin, end = self.bounds(window) if len(groups) else (window, window)
        columns[START], columns[END], columns[LEFT], columns[RIGHT], columns[RANK] = begin, end, -1, -1, groups.rank
        for name, field in self.out.vars.items():
            columns[field] = groups.columns[name]
        for s, e in self.out.labels.values():
            columns[s], columns[e] = begin, end
        before = [n for n in numbers if n in self.computed]
        new = np.arange(len(groups)) if not before else self.new_ones(before, groups, columns)
        if not len(new):
            return
        first = table.n
        if groups.offsets is not None:
            counts = np.diff(groups.offsets)[new]
            every = len(new) == len(groups)
            self.contents.add(
                first, counts, groups.members if every else groups.members[expand_ranges(groups.offsets[new], counts)]
            )
        table.append(np.ascontiguousarray(columns[:, new]))
        self.note(window[new], np.arange(first, table.n))

    def note(self, window: Array, rows: RowIds) -> None:
        """Says which rows there are for each window; they stand window by window."""
        if len(rows):
            first = np.flatnonzero(np.r_[True, window[1:] != window[:-1]])
            cuts = [*first.tolist(), len(rows)]
            for i, number in enumerate(window[first].tolist()):
                noted, some = self.computed.get(number), rows[cuts[i] : cuts[i + 1]]
                self.computed[number] = some if noted is None else np.concatenate([noted, some])

    def new_ones(self, before: list[int], groups: RowGroups, columns: Array) -> Array:
        """The groups that are new; rows of before that are no longer given are taken back."""
        table, fresh = self.out.table, np.ones(len(groups), bool)
        fields = [*range(FIELDS, table.width)]
        by_number: dict[int, list[int]] = {}
        for i, number in enumerate(groups.window.tolist()):
            by_number.setdefault(number, []).append(i)
        gone = list[int]()
        for number in before:
            same = {columns[fields, i].tobytes(): i for i in by_number.get(number, ())}
            kept = list[int]()
            for row in self.computed.pop(number).tolist():
                like = same.get(table.data[fields, row].tobytes())
                listed = groups.offsets is not None
                if like is not None and (not listed or np.array_equal(self.members_of(row), groups.members_of(like))):
                    fresh[like] = False
                    kept.append(row)
                else:
                    gone.append(row)
            if kept:
                self.computed[number] = np.array(kept, np.int64)
        if gone:
            table.kill(np.array(sorted(gone), np.int64))
        return np.flatnonzero(fresh)

    # Windows that are not over

    def waiting(self, now: int | None, new: bool) -> Iterator[PartialMatch]:
        table, dictionary = self.inputs[0].table, self.runtime.tables.dictionary
        for number in sorted(n for n in self.changed if now is None or self.line.end(n) > now):
            rows = np.concatenate([_NONE, *self.lying_in(number)])
            rows = rows[table.alive[rows].astype(bool)]
            if not len(rows) or (new and int(rows.max()) < table.mark):
                continue
            frame, groups = self.totals.in_windows(rows, np.full(len(rows), number), self.bounds)
            for first, last in pairwise([*groups.starts.tolist(), len(frame)]):
                members = frame.left[first:last]
                if new and int(members.max()) < table.mark:
                    continue
                binding = {v: int(dictionary.canonical(frame.vars[v][first : first + 1])[0]) for v in self.collect.by}
                done = dict.fromkeys(part for row in members.tolist() for part in self.runtime.parts(table, row))
                yield PartialMatch(tuple(done), f"the end of {self.label}", self.line.end(number), binding)

    # What rows are made of

    def members_of(self, row: int) -> RowIds:
        """The members of a row; of one that was added up from panes, the rows in its window."""
        if self.contents.knows(np.array([row]))[0]:
            return self.contents.members(row)
        data, view, dictionary = self.out.table.data, self.inputs[0], self.runtime.tables.dictionary
        some = self.lying_in(self.line.last_begun(int(data[START, row])))
        rows: RowIds = np.concatenate([_NONE, *some])
        rows = rows[view.table.alive[rows].astype(bool)]
        for name in self.collect.by:
            if name in self.out.vars:
                code = dictionary.canonical(data[self.out.vars[name], row : row + 1])[0]
                rows = rows[dictionary.canonical(view.table.data[view.vars[name], rows]) == code]
        return rows

    def flat(self, rows: RowIds) -> tuple[Array, Array]:
        """The members of some rows, one row after the other, and how many each has."""
        if self.contents.knows(rows).all():
            return self.contents.of(rows)
        parts = [self.members_of(row) for row in rows.tolist()]
        return np.concatenate([_NONE, *parts]), np.array([len(part) for part in parts], np.int64)

    def parents(self) -> list[tuple[int, Table]]:
        return []

    def parts(self, row: int) -> tuple[Part, ...]:
        result: dict[Part, None] = {}
        for member in self.members_of(row).tolist():
            result.update(dict.fromkeys(self.runtime.parts(self.inputs[0].table, member)))
        return tuple(result)

    def sources(self, rows: RowIds) -> Ways:
        collected, counts = self.flat(rows)
        return [(np.arange(len(rows)), [(self.inputs[0].table, collected, np.repeat(np.arange(len(rows)), counts))])]

    # What it keeps

    def asks_again(self) -> tuple[View, ...]:
        return self.inputs  # a window asks for all that lies in it whenever it is computed

    def unsettled(self, since: Mapping[int, int], frontier: int) -> int:
        return since.get(id(self.inputs[0].table), frontier + 1)

    def wants(self, port: int, horizon: Horizon) -> Array:
        """The rows in windows that may still change, or have not been computed."""
        table = self.inputs[0].table
        limit = horizon.since[id(table)]
        least = self.line.begin(self.line.first_from(limit))
        open_ = [n for n in self.changed if self.line.end(n) < limit]
        least = min([least, *(self.line.begin(n) for n in open_)])
        mask: Mask = table.data[END, : table.n] >= least
        return mask

    def keep_parents(self, keep: dict[int, Array]) -> None:
        kept, mine = np.flatnonzero(keep[id(self.out.table)]), keep[id(self.inputs[0].table)]
        noted = self.contents.knows(kept)
        mine[self.contents.of(kept[noted])[0]] = True
        for begin in unique(self.out.table.data[START, kept[~noted]]).tolist():
            for some in self.lying_in(self.line.last_begun(begin)):
                mine[some] = True

    def moved(self, places: Mapping[int, Array]) -> None:
        self.contents.moved(places[id(self.out.table)], places[id(self.inputs[0].table)])

    def rebuild(self) -> None:
        """Panes are rebuilt from the standing rows; computed windows are looked up by their times."""
        super().rebuild()
        self.behind = True
        self.contents.cut(self.out.table.n)
        self.panes, self.across, self.computed, self.partials = {}, {}, {}, {}
        table, out, now = self.inputs[0].table, self.out.table, self.runtime.now
        rows = table.standing()
        self.changed = {}
        if len(rows):
            self.enter(rows, new=True)
        for number in [n for n in self.changed if now is not None and self.line.end(n) <= now]:
            del self.changed[number]  # computed already, whether it gave anything or not
        standing = out.standing()
        standing = standing[np.argsort(out.data[START, standing], kind="stable")]
        begins, number_of = unique_inverse(out.data[START, standing])
        numbers = np.array([self.line.last_begun(int(begin)) for begin in begins], np.int64)
        self.note(numbers[number_of], standing)

    def state(self, number: Mapping[int, int]) -> Any:
        return self.contents.state(self.out.table.n)

    def fill(self, state: object, operators: Sequence[Operator]) -> None:
        self.contents.restore(state, self.out.table.n, self.inputs[0].table.n)
