"""Session windows: `w: session(30min, click(U, _))`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from augury.core.arrays import Array, RowIds, Times
from augury.core.bounds import FAR
from augury.engine.operators.base import NOT_THERE, Clocked, Operator, PartialMatch
from augury.engine.saved import check_numbers, require
from augury.engine.saved.forms import is_time
from augury.planner.specs import SessionSpec
from augury.storage.agenda import Agenda
from augury.storage.kernels import session_rows as k
from augury.storage.kernels.entries import COUNT, FIRST
from augury.storage.segments import Segments
from augury.storage.table import END, LEFT, RIGHT, START, Table
from augury.storage.unique import unique_first

if TYPE_CHECKING:
    from augury.engine.horizon import Horizon
    from augury.engine.runtime import Runtime

_FIELDS, _ORDER = 6, 3  # of an occurrence in its segment, and how many of them order occurrences
Occurrences = tuple[Array, Array]  # groups, and fields as columns


class SessionWindows(Clocked):
    """The maximal groups of occurrences with one key, without a pause longer than the gap.

    A window is given once the clock has reached its end, so that an open session costs nothing while it grows. An occurrence
    that comes joins its session, or merges several; one that goes splits its own. No other session is touched. Settled
    occurrences are replaced by stubs: intervals that stand for what is forgotten.
    """

    carries = ("stubs", "closed")
    linked = ()

    def __init__(self, runtime: Runtime, spec: SessionSpec) -> None:
        self.gap, self.most, self.type, self.key = spec.gap, spec.most, spec.type, spec.out.vars
        self.stubs = np.empty(
            (0, 3), np.int64
        )  # start, end, and a row that has the key, as the last compaction left them
        self.pending: tuple[Array, int | None] | None = None
        self.closed: int | None = None  # windows that end by then are settled, and forgotten here
        super().__init__(runtime, spec)
        self._clear()
        runtime.clocked.append(self)

    def _clear(self) -> None:
        self.lines = Segments(len(self.key), _FIELDS, _ORDER, self.runtime.tables.dictionary)  # occurrences by key
        self.ahead = Agenda(3)  # windows that have not ended: end, group, start; some are others now

    def tick(self, now: int) -> None:
        if self.ahead.first is not None and self.ahead.first[0] <= now:
            self.wake()

    @property
    def due(self) -> int | None:
        """When the next window ends."""
        while (first := self.ahead.first) is not None and self._positions(np.array([first], np.int64).T)[0] < 0:
            self.ahead.drop_first()
        return None if first is None else first[0]

    def step(self) -> None:
        gone, come = self._occurrences(self.losses(0)), self._occurrences(self.gains(0))
        groups, los, his = self._disturb(gone, come)
        if len(gone[0]):
            self.touched += self.lines.remove(self.lines.grouped(*gone))
        if len(come[0]):
            self.touched += self.lines.enter(self.lines.grouped(*come))[0]
        self._give(self._sessions(self.lines, groups, los, his))

    # Sessions come and go

    def _occurrences(self, rows: RowIds, times: tuple[Times, Times] | None = None) -> Occurrences:
        """Occurrences as they stand in segments, without those whose key has null; `times` are those of stubs."""
        view, dictionary = self.inputs[0], self.runtime.tables.dictionary
        columns = [dictionary.canonical(view.table.data[view.vars[name], rows]) for name in self.key]
        start, end = (view.table.data[START, rows], view.table.data[END, rows]) if times is None else times
        same = np.full(len(rows), k.UNKNOWN)
        fields = np.stack([start, end, rows if times is None else ~rows, same, same, np.full(len(rows), -1)])
        keyed = np.ones(len(rows), bool)
        for column in columns:
            keyed &= ~dictionary.is_null(column)
        if not keyed.all():
            fields, columns = fields[:, keyed], [column[keyed] for column in columns]
        return self.lines.number(columns, fields.shape[1]), fields

    def _disturb(self, *changed: Occurrences) -> tuple[Array, Times, Times]:
        """Takes back the windows of sessions that occurrences concern; over which times sessions change, by group."""
        groups, fields = _joined(changed)
        grouped = self.lines.grouped(groups, fields[:2])
        groups = np.repeat(grouped.groups, np.diff(grouped.begins))
        los, his = grouped.rows.copy()
        windows, counts = np.empty(self.out.table.live, np.int64), np.zeros(3, np.int64)
        k.disturbed_sessions(groups, los, his, self.gap, self.lines.spans, self.lines.pool, windows, counts)
        if counts[1]:
            self.out.table.kill(windows[: counts[1]].copy())
        self.touched += int(counts[2])
        return groups[: counts[0]], los[: counts[0]], his[: counts[0]]

    def _sessions(self, lines: Segments, groups: Array, los: Times, his: Times) -> Array:
        """Recomputes the sessions over some times: group, begin, end, first position."""
        counts = np.zeros(2, np.int64)
        k.divide_sessions(groups, los, his, self.gap, lines.spans, lines.pool, counts)
        self.touched += int(counts[1])
        result = np.empty((4, counts[0]), np.int64)
        return result[:, : k.sessions_over(groups, los, his, lines.spans, lines.pool, result)]

    def _give(self, sessions: Array) -> None:
        """Gives the windows that the clock has reached; the others wait."""
        self.ahead.add(self._waiting(sessions))
        waiting = self.ahead.take(-FAR if self.runtime.now is None else self.runtime.now)
        positions, first = unique_first(self._positions(waiting))
        positions, waiting = positions[positions >= 0], waiting[:, first[positions >= 0]]
        if len(positions):
            table, (ends, groups, begins) = self.out.table, waiting
            fields = np.zeros((table.width, len(ends)), np.int64)
            fields[START], fields[END], fields[LEFT], fields[RIGHT] = begins, ends, -1, -1
            for name, codes in zip(self.key, self.lines.keys.data, strict=True):
                fields[self.out.vars[name]] = codes[groups]
            self.lines.pool[k.WINDOW, positions] = np.arange(table.n, table.n + len(ends))
            table.append(fields)

    def _waiting(self, sessions: Array) -> Array:
        """The windows of sessions, if they are not too long, as `ahead` has them."""
        groups, begins, ends, _ = sessions[:, sessions[2] + self.gap - sessions[1] <= self.most]
        return np.stack([ends + self.gap, groups, begins])

    def _positions(self, waiting: Array) -> Array:
        """Where the sessions of windows begin; -1 of those that are others now."""
        ends, groups, begins = waiting
        positions = np.empty(len(ends), np.int64)
        k.find_sessions(groups, begins, ends - self.gap, self.lines.spans, self.lines.pool, positions)
        return positions

    # Open sessions

    def waiting(self, now: int | None, new: bool) -> Iterator[PartialMatch]:
        rows = self.ahead.rows
        positions, first = unique_first(self._positions(rows))
        pool, table = self.lines.pool, self.inputs[0].table
        for position, (end, group, begin) in zip(positions.tolist(), rows[:, first].T.tolist(), strict=True):
            if position < 0 or (now is not None and end <= now):
                continue
            last = int(self.lines.spans[FIRST, group] + self.lines.spans[COUNT, group])
            inside = range(position, last)
            members = [int(pool[k.ROW, i]) for i in inside if pool[k.BEGIN, i] == begin]
            if new and not any(row >= table.mark for row in members):
                continue
            done = tuple(part for row in members if row >= 0 for part in self.runtime.parts(table, row))
            binding = {name: int(codes[group]) for name, codes in zip(self.key, self.lines.keys.data, strict=True)}
            yield PartialMatch(done, "the end of the session", end, binding)

    # What it keeps

    def unsettled(self, since: Mapping[int, int], frontier: int) -> int:
        """An occurrence that may still come or go has begun before, as long as it may last."""
        first = since.get(id(self.inputs[0].table), frontier + 1)
        longest = self.runtime.longest_of([self.type])
        if longest is None:
            return -FAR
        if self.runtime.lengths is None:
            self.runtime.relied_on_lengths(frontier)
        return first - longest

    def wants(self, port: int, horizon: Horizon) -> Array | None:
        """One occurrence for each stub, which has its key; all, where nothing says how long occurrences last."""
        table, longest = self.inputs[0].table, horizon.longest_of([self.type])
        if longest is None:
            self.pending = None
            return np.ones(table.n, bool)
        since = horizon.since[id(table)]
        closed = since - longest - 1
        stubs = self._settled(since, closed)
        self.pending = (stubs, closed)
        mask = np.zeros(table.n, bool)
        mask[stubs[:, 2]] = True
        return mask

    def _settled(self, since: int, closed: int) -> Array:
        """The settled occurrences of sessions that are not closed: a stub for each group that they make by themselves."""
        lines = self.lines
        groups = np.repeat(np.arange(lines.keys.n), lines.spans[COUNT, : lines.keys.n])
        fields = lines.pool[:, lines.positions()]
        last = np.ones(len(groups), bool)
        last[:-1] = (groups[1:] != groups[:-1]) | (fields[k.BEGIN, 1:] != fields[k.BEGIN, :-1])
        ends = fields[k.GREATEST, last][np.cumsum(last) - last]
        kept = (ends + self.gap > closed) & ((fields[k.ROW] < 0) | (fields[k.END] < since))
        part, fields[k.GREATEST :] = lines.without_rows(), k.UNKNOWN
        _, begins, ends, positions = self._entered(part, (groups[kept], fields[:, kept]))
        rows = part.pool[k.ROW, positions]
        return np.stack([begins, ends, np.where(rows < 0, ~rows, rows)], axis=1)

    def _entered(self, lines: Segments, occurrences: Occurrences) -> Array:
        """Puts occurrences into empty segments; their sessions."""
        grouped = lines.grouped(*occurrences)
        lines.enter(grouped)
        far = np.full(len(grouped.groups), FAR)
        return self._sessions(lines, grouped.groups, -far, far)

    def moved(self, places: Mapping[int, Array]) -> None:
        super().moved(places)
        stubs, closed = self.pending or (self.stubs, self.closed)
        self.stubs = np.stack([*stubs.T[:2], places[id(self.inputs[0].table)][stubs[:, 2]]], axis=1)
        self.closed, self.pending = closed if self.closed is None else max(self.closed, closed or -FAR), None

    def parents(self) -> list[tuple[int, Table]]:
        return []

    def rebuild(self) -> None:
        super().rebuild()
        self._clear()
        starts, ends, rows = self.stubs.T
        occurrences = self._occurrences(self.inputs[0].table.standing()), self._occurrences(rows, (starts, ends))
        waiting = self._waiting(self._entered(self.lines, _joined(occurrences)))
        table, windows = self.out.table, self.out.table.standing()
        groups = self.lines.number([table.data[self.out.vars[name], windows] for name in self.key], len(windows))
        positions = self._positions(np.stack([table.data[END, windows], groups, table.data[START, windows]]))
        self.lines.pool[k.WINDOW, positions[positions >= 0]] = windows[positions >= 0]
        now = self.runtime.now
        self.ahead.add(waiting if now is None else waiting[:, waiting[0] > now])

    # Snapshots

    def state(self, number: Mapping[int, int]) -> Any:
        return {"stubs": self.stubs, "closed": self.closed}

    def fill(self, state: Any, operators: Sequence[Operator]) -> None:
        require(isinstance(state, dict) and state.keys() == {"stubs", "closed"}, "invalid sessions")
        stubs, closed = state["stubs"], state["closed"]
        sound = isinstance(stubs, np.ndarray) and stubs.dtype == np.int64 and stubs.ndim == 2 and stubs.shape[1] == 3
        require(sound and is_time(closed), "invalid sessions")
        check_numbers(stubs[:, 2], 0, self.inputs[0].table.n, NOT_THERE)
        require(bool((stubs[:, 0] <= stubs[:, 1]).all()), "a session that ends before it begins")
        self.stubs, self.closed = stubs, closed

    def check(self) -> None:
        data = self.out.table.data[:, : self.out.table.n]
        require(bool((data[START] <= data[END]).all()), "a session that ends before it begins")


def _joined(parts: Sequence[Occurrences]) -> Occurrences:
    return np.concatenate([groups for groups, _ in parts]), np.hstack([fields for _, fields in parts])
