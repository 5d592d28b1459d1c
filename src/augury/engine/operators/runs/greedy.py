"""The longest or shortest matches of a run whose next event depends on the last one alone: first event by first event.

Then partial matches need not be kept: what can be reached from a moment as an iteration of a part is the same for all that
get there, so that each first event is tried once, and what failed from there is not tried again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from augury.algebra.nodes import Run, SkipTo, bound_vars
from augury.core.arrays import Array, RowIds, Times
from augury.engine.event_order import row_ranks
from augury.engine.operators.base import NOT_THERE, Operator, Part, PartialMatch, Ways
from augury.engine.operators.runs import kernels as k
from augury.engine.operators.runs.following import MomentEdges
from augury.engine.operators.runs.kernels import best_matches as b
from augury.engine.operators.runs.kernels import decisions as d
from augury.engine.operators.runs.kernels.records import (
    Decisions,
    MatchPool,
    MomentChains,
    RunShape,
    SearchStates,
)
from augury.engine.operators.runs.matches import CompletionCheck, may_end
from augury.engine.operators.runs.sight import Members
from augury.engine.saved import check_numbers, is_array, require, unragged
from augury.planner.specs import GreedyRunSpec
from augury.storage.frame import store
from augury.storage.grouping import Slices, expand_ranges
from augury.storage.table import END, LEFT, NONE, RANK, START, Table, grown
from augury.storage.unique import difference, unique

if TYPE_CHECKING:
    from augury.engine.horizon import Horizon
    from augury.engine.runtime import Runtime


def _counts_alone(run: Run) -> bool:
    """Whether matches with the same first and last event and as many iterations make the same row: then one will do."""
    counts = all(r.aggregate.function == "count" and not r.aggregate.args for r in run.results)
    singles = [part for part in run.parts[1:] if not part.repeats]
    return counts and all(part.label is None and bound_vars(part.input) <= set(run.key) for part in singles)


class GreedyMatches(MomentEdges):
    """Matches by first event: of each the longest, or shortest; then what SKIP leaves.

    A change decides anew from the first match that has looked so far, until all is as it was. A row has its first moment
    (left), and its moments and their parts in a pool.
    """

    altered = ("pool", "bounds", "after_closed", "_open")

    def __init__(self, runtime: Runtime, spec: GreedyRunSpec) -> None:
        super().__init__(runtime, spec)
        run = spec.run
        self.whole = CompletionCheck(runtime, run, self)
        self.shape = self._shape()
        # What is left of first events that are settled: after those that are closed, from which moment on, or which key, the
        # next match may begin when.
        self.after_closed: dict[int, int] = {}
        self.bounds: dict[tuple[int, ...], int] = {}
        self._kept: dict[int, Array] | None = None  # the moments of the rows, while all else is made anew
        self._stood: Array = NONE  # the moments that were there when it was last asked what is settled
        self._open: Array | None = None  # the moments that were not settled when it was last asked for
        self._begins: int | None = None  # from when on events begin that were still to come then

    def _shape(self) -> RunShape:
        """The run as the search needs it. LONGEST tries first to go on, SHORTEST to end."""
        run, ends, shortest = self.run, may_end(self.run), self.run.which == "SHORTEST"
        options = np.full((len(run.parts), len(self.moves) + 2), b.NO_MOVE, np.int64)
        for part in range(len(run.parts)):
            ways = [i for i, move in enumerate(self.moves) if move.source == part] + ([b.ACCEPT] if ends[part] else [])
            options[part, : len(ways)] = ways[::-1] if shortest else ways
        begin = [part for part, _ in self.starts]
        return RunShape(
            moves=self.ends,
            then=sum(1 << i for i, move in enumerate(self.moves) if move.link == "THEN"),
            limits=self._limits(),
            options=options,
            roots=np.array(begin[::-1] if shortest else begin, np.int64),
            least=self.least,
            most=self.most,
            quantified=np.array([i for i, part in enumerate(run.parts) if part.quantified], np.int64),
            may_end=np.array(ends, bool),
            window=self.longest,
            shortest=shortest,
            skip=run.skip.part if isinstance(run.skip, SkipTo) else -2 if run.skip is None else -1,
            skip_to_first=isinstance(run.skip, SkipTo) and run.skip.which == "FIRST",
            merged=_counts_alone(run),
            most_matches=k.FOREVER,
        )

    def _limits(self) -> Array:
        limits = np.full((2, len(self.moves)), k.FOREVER, np.int64)
        for number, (move, bounds) in enumerate(zip(self.moves, self.start_bounds, strict=True)):
            for part, field, length in bounds:
                if part == move.source:
                    row = 0 if field == START else 1
                    limits[row, number] = min(limits[row, number], length)
        return limits

    def _clear(self) -> None:
        super()._clear()
        self.pool, self.used = np.empty((2, 64), np.int64), 0
        self.paths, self.count_paths = np.empty((8, 16), np.int64), 0
        self.states = np.empty((2 * len(self.run.parts) + 1, 16), np.int64)  # of paths: last moments, times, rank
        self.fallen = np.empty(0, np.int64)  # paths that fell in this step
        self.of_row = NONE  # the path of each row
        self.decided = np.empty((16, 6), np.int64)
        self.tried, self.first_paths, self.rank, self.begins, self.lower_bounds = np.empty((5, 16), np.int64)
        # The states of a search, and where they are in a table by content; see `best_matches.py`.
        self.searched = np.empty((b.S_COUNTS + len(self.run.parts), 0), np.int64)
        self._more_states(64)
        self.filled = 0  # moments of which these say something
        self.calls = 0

    def _make_room(self) -> None:
        """Room for what is known of moments; it is written as they come, for untouched memory costs nothing."""
        n, size, used = self.moments.out.table.n, len(self.moments.out.table.alive), self.filled
        if len(self.tried) < n:
            decided = np.empty((size, 6), np.int64)
            decided[:used] = self.decided[:used]
            self.decided = decided
            self.tried, self.first_paths = grown(self.tried, size, used), grown(self.first_paths, size, used)
            self.rank, self.begins, self.lower_bounds = (
                grown(a, size, used) for a in (self.rank, self.begins, self.lower_bounds)
            )
        self.tried[used:n] = self.first_paths[used:n] = -1
        self.rank[used:n] = self.begins[used:n] = 0
        self.lower_bounds[used:n] = -k.FOREVER
        self.filled = n

    # Steps

    def step(self) -> None:
        lost, stale, new = self.losses(0), self.stale(0), self.gains(0)
        for moment in lost.tolist():
            e = int(self.into[moment])
            while e >= 0:
                self.edges[k.BITS, e] = 0
                e = int(self.edges[k.INTO, e])
        _, _, targets = self.relink(lost, stale, new)
        self._make_room()
        self._begin(np.concatenate([new, stale]) if len(stale) else new)
        if not (len(lost) or len(targets)):
            return
        before = self.count_paths
        gone = self._of_moments(lost)
        changed = np.concatenate([lost, targets]) if len(lost) else targets
        data = self.moments.out.table.data
        if len(changed) > len(new) or (data[START, new] < data[END, new]).any():  # new points are in order for each key
            changed = self._by_start(changed)
        self._tie(new)
        self._decide(changed)
        self._show(before, gone)

    def _by_start(self, moments: Array) -> Array:
        """The order in which moments are decided: what one that starts later may change was decided with those before."""
        return moments[np.argsort(self.moments.out.table.data[START, moments], kind="stable")]

    def _begin(self, moments: Array) -> None:
        """As which parts moments may be the first of a match."""
        if not len(moments):
            return
        self.begins[moments] = 0
        starts, parts = self._begun(moments)
        np.bitwise_or.at(self.begins, starts, 1 << parts)
        if self.bounds:
            heads = moments[self.moments.index.prev[moments] < 0]
            self.lower_bounds[heads] = [self.bounds.get(key, -k.FOREVER) for key in self._keys(heads)]

    def _keys(self, moments: Array) -> list[tuple[int, ...]]:
        canonical = self.runtime.tables.dictionary.canonical
        codes = [canonical(self.moments.out.table.data[field, moments]).tolist() for field in self.moments.key_fields]
        return list(zip(*codes, strict=True)) if codes else [()] * len(moments)

    def _of_moments(self, lost: Array) -> Array:
        """The rows of matches that begin with moments that are gone."""
        gone = []
        for moment in lost.tolist():
            path = int(self.first_paths[moment])
            while path >= 0:
                self.paths[b.P_STANDS, path] = 0
                gone.append(int(self.paths[b.P_ROW, path]))
                path = int(self.paths[b.P_NEXT, path])
            self.first_paths[moment] = -1
        return np.array([row for row in gone if row >= 0], np.int64)

    def _tie(self, new: Array) -> None:
        """Numbers moments with the same end by the order of their events: with SKIP, the first of them goes first."""
        if self.run.skip is None:
            return
        data, index = self.moments.out.table.data, self.moments.index
        tied = np.zeros(len(new), bool)
        for others in (index.prev[new], index.after[new]):
            there = np.flatnonzero(others >= 0)
            tied[there] |= data[END, new[there]] == data[END, others[there]]
        rows = self._at_the_same_end(new[tied])
        rows = rows[self.moments.out.table.alive[rows].astype(bool)]
        if len(rows):
            self.rank[rows] = row_ranks(self.runtime, self.moments.out.table, rows)

    def _at_the_same_end(self, moments: Array) -> Array:
        """Some moments, and those of their chains that end when they do."""
        data, index = self.moments.out.table.data, self.moments.index
        simultaneous = []
        for step in (index.prev, index.after):
            there = np.flatnonzero(step[moments] >= 0)
            others = step[moments[there]]
            others = others[data[END, others] == data[END, moments[there]]]
            simultaneous += [(step, moment) for moment in difference(others, moments).tolist()]
        reached = {moment for _, moment in simultaneous}
        for step, moment in simultaneous:
            here = int(step[moment])
            while here >= 0 and here not in reached and data[END, here] == data[END, moment]:
                reached.add(here)
                here = int(step[here])
        return unique(np.concatenate([moments, np.array([*reached], np.int64)]))

    def _decide(self, changed: Array) -> None:
        table, chains, links, decided = self.moments.out.table, self._chains(), self.edge_lists(), self._decisions()
        guard = self.runtime.tables.guard
        self.calls += 1
        position = 0
        stack, ties = np.empty((table.n + 2, 3), np.int64), np.empty(table.n + 1, np.int64)
        if self.paths.shape[1] < self.count_paths + len(changed) + 16:
            self.paths = grown(self.paths, 2 * (self.count_paths + len(changed)) + 16, self.count_paths)
        if self.pool.shape[1] < self.used + 4 * len(changed):
            self.pool = grown(self.pool, 2 * self.used + 8 * len(changed), self.used)
        if self.searched.shape[1] < 2 * len(changed):
            self._more_states(1 << (4 * len(changed)).bit_length())
        fallen, fell = np.empty(len(changed) + 64, np.int64), 0
        while position < len(changed):
            shape = self.shape._replace(most_matches=guard.most_matches)
            search, pool = SearchStates(self.searched, stack, self.slots), MatchPool(self.pool, self.paths)
            position, used, n, touched, fell = d.decide(
                changed, position, chains, links, shape, search, self.calls, ties, decided, pool, self.used, self.count_paths,
                fallen, fell,
            )  # fmt: skip
            self.touched += int(touched)  # of numpy, where the kernel is not compiled
            guard.paired(n - self.count_paths)
            self.count_paths = n
            if used < 0:
                self.used = int((self.paths[b.P_AT, :n] + self.paths[b.P_LENGTH, :n]).max(initial=0))
                if used == b.TOO_MANY:
                    raise guard.too_many_matches()
                if used == b.NO_STATES:
                    self._more_states(4 * self.searched.shape[1])
                else:
                    self.pool = grown(self.pool, 4 * self.pool.shape[1], self.used)
                    self.paths = grown(self.paths, 2 * self.paths.shape[1], n)
                    fallen = grown(fallen, 2 * len(fallen), fell)
                self.calls += 1
                continue
            self.used = used
        self.fallen = fallen[:fell]

    def _chains(self) -> MomentChains:
        table, index = self.moments.out.table, self.moments.index
        return MomentChains(table.data, table.alive, index.prev, index.after, self.rank)

    def _decisions(self) -> Decisions:
        return Decisions(self.decided, self.tried, self.first_paths, self.lower_bounds, self.begins)

    def _more_states(self, count: int) -> None:
        """Room for so many states of a search. What was found before is forgotten: a new call does not look at it."""
        self.searched = np.empty((len(self.searched), count), np.int64)
        self.slots = np.zeros((2, 2 * count), np.int64)

    def _show(self, before: int, gone: Array) -> None:
        """Matches that have come, and those that are no more."""
        fallen = self.paths[b.P_ROW, self.fallen]
        fallen = np.concatenate([fallen[fallen >= 0], gone])
        fallen = fallen[self.out.table.alive[fallen].astype(bool)] if len(fallen) else fallen
        if len(fallen):
            self.out.table.kill(unique(fallen))
        new = np.arange(before, self.count_paths)
        new = new[self.paths[b.P_STANDS, new] == 1]
        if len(new):
            self._store(new)
        if self.used > 4 * len(self.moments.out.table.alive) + (1 << 16):
            self._sweep()

    def _sweep(self) -> None:
        """Forgets the matches that fell: a long run that grows by one at a time leaves many."""
        table = self.out.table
        rows = np.concatenate([table.standing(), *table.killed])  # the trace of a retraction names its events
        rows = rows[self.of_row[rows] >= 0]
        paths = unique(self.of_row[rows])
        moments, parts, groups = self._moments_of(paths)
        new_paths = np.full(self.count_paths + 1, -1, np.int64)
        new_paths[paths] = np.arange(len(paths))
        self.used = len(moments)
        self.pool[0, : self.used], self.pool[1, : self.used] = moments, parts
        self.paths[:, : len(paths)], self.states[:, : len(paths)] = self.paths[:, paths], self.states[:, paths]
        self.aggregates.keep(paths)
        self.count_paths = len(paths)
        self.paths[b.P_AT, : len(paths)], self.paths[b.P_OF, : len(paths)] = groups.starts, -1
        self.paths[b.P_NEXT, : len(paths)] = new_paths[self.paths[b.P_NEXT, : len(paths)]]
        self.first_paths[: self.filled] = new_paths[self.first_paths[: self.filled]]
        kept = new_paths[self.of_row[rows]]
        self.of_row[:] = -1
        self.of_row[rows] = kept

    def _store(self, paths: Array) -> None:
        table, parts, moments = self.out.table, len(self.run.parts), self.moments.out.table.data
        if self.states.shape[1] < self.paths.shape[1]:
            self.states = grown(self.states, self.paths.shape[1], self.states.shape[1])
        longer = paths[(of := self.paths[b.P_OF, paths]) >= 0]
        whole = paths if not len(longer) else paths[of < 0]
        if len(whole):
            self._scan(whole)
        if len(longer):
            self._scan_on(longer)
        first = self.pool[0, self.paths[b.P_AT, paths]]
        last = self.pool[0, self.paths[b.P_AT, paths] + self.paths[b.P_LENGTH, paths] - 1]
        by_part = {part: self.states[part, paths] for part in range(parts)}
        rows = np.stack([moments[START, first], moments[END, last], self.states[2 * parts, paths]])
        frame = self.whole.frame(by_part, paths, rows)
        made = paths[frame.left]
        frame.left = self.paths[b.P_FIRST, made]
        first_row = table.n
        store(frame, self.out)
        self._note(np.arange(first_row, table.n), made)

    def _scan_on(self, paths: Array) -> None:
        """The same for matches that are longer ones of others: from these on, however long they are."""
        before = np.array([self._scanned(path) for path in paths.tolist()], np.int64)
        scanned, length = self.paths[b.P_LENGTH, before], self.paths[b.P_LENGTH, paths]
        self.states[:, paths] = self.states[:, before]
        self.aggregates.start(paths, self.paths.shape[1], before)
        more = length - scanned
        owners = np.repeat(paths, more)
        places = expand_ranges(self.paths[b.P_AT, paths] + scanned, more)
        moments, of, parts = self.pool[0, places], self.pool[1, places], len(self.run.parts)
        self.states[of, owners] = moments  # the last one stays
        np.add.at(self.states, (parts + of, owners), 1)
        np.maximum.at(self.states[2 * parts], owners, self.moments.out.table.data[RANK, moments])
        self.aggregates.add(owners, of, moments)

    def _scanned(self, path: int) -> int:
        """The match that a longer one goes back to, whose state is known."""
        before = int(self.paths[b.P_OF, path])
        while self.paths[b.P_ROW, before] < 0 and self.paths[b.P_OF, before] >= 0:
            before = int(self.paths[b.P_OF, before])
        if self.paths[b.P_ROW, before] < 0:
            self._scan(np.array([before]))
        return before

    def _scan(self, paths: Array) -> None:
        """The last moments of each part, how often it came, and the rank of matches, from all their moments."""
        ranks, parts = self.moments.out.table.data[RANK], len(self.run.parts)
        d.summed_up(paths, self.paths, self.pool, ranks, parts, self.states)
        if self.aggregates.kept:
            self.aggregates.start(paths, self.paths.shape[1])
            moments, of, groups = self._moments_of(paths)
            self.aggregates.add(paths[groups.owner], of, moments)

    def _moments_of(self, paths: Array) -> tuple[Array, Array, Slices]:
        """The moments and parts of matches, a group for each; none where a match is forgotten (-1)."""
        length = np.where(paths < 0, 0, self.paths[b.P_LENGTH, paths])
        places = expand_ranges(self.paths[b.P_AT, paths], length)
        return self.pool[0, places], self.pool[1, places], Slices(length)

    def times(self, part: int, matches: Array) -> Times:
        counts: Array = self.states[len(self.run.parts) + part, matches]
        return counts

    def members(self, matches: Array, part: int, more: Array | None = None) -> Members:
        moments, of, groups = self._moments_of(matches)
        return Members(moments[of == part], groups.where(of == part))

    def _note(self, rows: RowIds, paths: Array) -> None:
        if len(self.of_row) < self.out.table.n:
            self.of_row = grown(self.of_row, len(self.out.table.alive), len(self.of_row), -1)
        self.of_row[rows] = paths
        self.paths[b.P_ROW, paths] = rows

    # What a row is made of

    def path(self, row: int) -> Array:
        path = self.of_row[row]
        members: Array = self._members(path)[0] if path >= 0 else NONE
        return members

    def parents(self) -> list[tuple[int, Table]]:
        return [(LEFT, self.moments.out.table)]

    def parts(self, row: int) -> tuple[Part, ...]:
        return tuple(part for moment in self.path(row).tolist() for part in self.moments.parts(moment))

    def part_rows(self, rows: RowIds) -> tuple[Table, Array] | None:
        return None

    def sources(self, rows: RowIds) -> Ways:
        moments, _, groups = self._moments_of(self.of_row[rows])
        return [(np.arange(len(rows)), [(self.moments.out.table, moments, groups.owner)])]

    def waiting(self, now: int | None, new: bool) -> Iterator[PartialMatch]:
        """How far the first events have come that nothing has decided yet."""
        table = self.moments.out.table
        rows = np.flatnonzero(table.stands() & (self.begins[: table.n] != 0) & (self.tried[: table.n] >= 0))
        rows = rows[(self.decided[rows, d.REACH] >= k.FOREVER) & (self.first_paths[rows] < 0)]
        for first in rows[rows >= table.mark].tolist() if new else rows.tolist():
            path = self._furthest(first)
            done = tuple(p for moment, _ in path for p in self.moments.parts(moment))
            yield from self.awaited(done, path[-1][1], int(table.data[START, first]), first, now)

    def _furthest(self, first: int) -> list[tuple[int, int]]:
        """The moments, and parts, that follow a first one, by the first move that goes on each time."""
        part = next(int(p) for p in self.shape.roots if self.begins[first] & (1 << int(p)))
        path = [(first, part)]
        while True:
            moment, part = path[-1]
            ways = [i for i, move in enumerate(self.moves) if move.source == part]
            e, following = int(self.out_of[moment]), None
            while e >= 0 and following is None:
                bits, to = int(self.edges[k.BITS, e]), int(self.edges[k.TO, e])
                following = next(((to, self.moves[i].target) for i in ways if bits & (1 << i)), None)
                e = int(self.edges[k.OUT, e])
            if following is None:
                return path
            path.append(following)

    # Rebuilding, compacting, saving

    def rebuild(self) -> None:
        out, moments = self.out.table, self.moments.out.table
        if self._kept is None:  # otherwise a rebuild was broken off, after it had cleared the pool
            self._kept = {row: self._members(self.of_row[row]) for row in out.standing().tolist()}
        kept = self._kept
        super().rebuild()
        alive = moments.standing()
        if len(alive):
            self._begin(alive)
            for moment, bound in self.after_closed.items():
                self.lower_bounds[moment] = max(bound, int(self.lower_bounds[moment]))
            self.begins[self.closed] = 0
            self._tie(alive)
            self._decide(self._by_start(alive))
        self._match_rows(kept)
        assert len(self.of_row) >= out.n
        self._kept = None

    def _match_rows(self, kept: dict[int, Array]) -> None:
        """Gives the rows that there are the paths that were found again; the others are forgotten matches."""
        paths = {self._members(path).tobytes(): path for path in range(self.count_paths)}
        self.of_row = np.full(len(self.out.table.alive), -1, np.int64)
        for row, members in kept.items():
            path_of = paths.get(members.tobytes())
            self.of_row[row] = path = self._extra(members) if path_of is None else path_of
            self.paths[b.P_ROW, path] = row
        if self.states.shape[1] < self.paths.shape[1]:
            self.states = grown(self.states, self.paths.shape[1], self.states.shape[1])
        if self.count_paths:
            self._scan(np.arange(self.count_paths))

    def _members(self, path: int) -> Array:
        """The moments of a match, and their parts."""
        first, length = self.paths[b.P_AT, path], self.paths[b.P_LENGTH, path]
        return self.pool[:, first : first + length]

    def _extra(self, members: Array) -> int:
        """A path that is kept for its row, though its moments have been forgotten in part."""
        length, path = members.shape[1], self.count_paths
        if self.pool.shape[1] < self.used + length:
            self.pool = grown(self.pool, 2 * (self.used + length), self.used)
        if self.paths.shape[1] <= path + 1:
            self.paths = grown(self.paths, 2 * path + 16, path)
        self.pool[:, self.used : self.used + length] = members
        self.paths[:, path] = (-1, self.used, length, -1, -1, 1, 0, -1)
        self.used, self.count_paths = self.used + length, path + 1
        return path

    def keep_parents(self, keep: dict[int, Array]) -> None:
        rows = np.flatnonzero(keep[id(self.out.table)])
        if len(rows):
            moments, _, _ = self._moments_of(self.of_row[rows])
            keep[id(self.moments.out.table)][moments[moments >= 0]] = True

    def keeping(self, rows: RowIds) -> None:
        self.of_row = self.of_row[rows] if len(rows) else NONE

    def moved(self, places: Mapping[int, Array]) -> None:
        super().moved(places)
        new_rows = places[id(self.moments.out.table)]
        self.pool[0, : self.used] = new_rows[self.pool[0, : self.used]]
        n = len(new_rows) - 1
        still = np.ones(n, bool) if self._open is None else self._open
        still[self.closed] = False
        kept = new_rows[:n] >= 0
        prev = self.moments.index.prev[:n]
        self.after_closed = {int(new_rows[m]): bound for m, bound in self.after_closed.items() if new_rows[m] >= 0}
        if self._open is not None:
            self._remember_bounds(np.flatnonzero(still & kept & (prev >= 0)), still & kept, new_rows)
        self.closed = new_rows[:n][~still & kept]
        self._open = None

    def _remember_bounds(self, moments: Array, stay: Array, new_rows: Array) -> None:
        """Of moments that stay where those before them go: from when on the next match may begin."""
        before = self.moments.index.prev[moments]
        while len(skipped := np.flatnonzero((before >= 0) & ~self._stood[before])):
            before[skipped] = self.moments.index.prev[before[skipped]]
        decided = (before >= 0) & ~stay[before] & (self.tried[before] >= 0)
        moments, bounds = new_rows[moments[decided]], self.decided[before[decided], d.BOUND]
        bounded = bounds > -k.FOREVER
        moments, bounds = moments[bounded], bounds[bounded].tolist()
        self.after_closed |= zip(moments.tolist(), bounds, strict=True)
        self.bounds |= zip(self._keys(moments), bounds, strict=True)
        if self._begins is not None:  # what is to come begins later than the others
            self.bounds = {key: bound for key, bound in self.bounds.items() if bound >= self._begins}

    def state(self, number: Mapping[int, int]) -> Any:
        rows = self.out.table.standing()
        paths = self.of_row[rows] if len(rows) else NONE
        moments, parts, groups = self._moments_of(paths)
        return {
            "rows": rows,
            "length": groups.counts,
            "moments": moments,
            "parts": parts,
            "bounds": [[list(key), bound] for key, bound in self.bounds.items()],
            "closed": self.closed,
            "after": [[moment, bound] for moment, bound in self.after_closed.items()],
        }

    def fill(self, state: Any, operators: Sequence[Operator]) -> None:
        rows, length, moments, parts = (state[name] for name in ("rows", "length", "moments", "parts"))
        matches = unragged({"row": rows, "count": length, "of": moments}, self.out.table.n)
        require(is_array(parts, np.int64, len(moments)), "invalid rows")
        check_numbers(moments, 0, self.moments.out.table.n, NOT_THERE)
        check_numbers(parts, 0, len(self.run.parts), "a part that is not there")
        check_numbers(length, 1, len(moments) + 1, "an invalid count")
        alive = self.out.table.standing()
        require(np.array_equal(np.sort(rows), alive), "matches are missing")
        self._clear()
        self.of_row = np.full(len(self.out.table.alive), -1, np.int64)
        for row, lo, hi in matches:
            self.of_row[row] = self._extra(np.stack([moments[lo:hi], parts[lo:hi]]))
        closed, after, moments_there = state["closed"], state["after"], self.moments.out.table.n
        require(is_array(closed, np.int64, len(closed)), "invalid rows")
        check_numbers(closed, 0, moments_there, NOT_THERE)
        require(all(type(m) is type(b) is int and 0 <= m < moments_there for m, b in after), "invalid rows")
        self.closed, self.after_closed = closed, dict(after)
        for key, bound in state["bounds"]:
            require(all(type(number) is int for number in (*key, bound)), "invalid bounds")
            self.bounds[tuple(key)] = bound

    # How long it keeps what

    def _reaches(self) -> Array:
        """The latest start of an event that may change the matches of some moments: see the kernel."""
        n = self.moments.out.table.n
        reaches = np.full((3, n), k.FOREVER, np.int64)
        if n:
            self.moments.index.extend()
            d.reaches(n, self._chains(), self._decisions(), reaches)
        return reaches

    def _unsettled(self, begins: int | None) -> tuple[Array, Array]:
        """Of which moments the matches may change, where nothing more comes that begins before a time: all that are kept
        for it, and those whose own matches may. None says nothing of when events begin."""
        n = self.moments.out.table.n
        far, within, up_to = self._reaches() >= (1 - k.FOREVER if begins is None else begins)
        far[self.closed] = within[self.closed] = up_to[self.closed] = False
        kept: Array = far | (begins is None) | (self.moments.out.table.data[END, :n] >= (begins or 0))
        kept[self.closed] = False
        return kept, up_to if self.run.skip is not None else within

    def may_change(self, horizon: Horizon) -> tuple[Array, int] | None:
        since, n = horizon.since[id(self.moments.out.table)], self.out.table.n
        begins = self.begins_from(since, horizon)
        return self._unsettled(begins)[1][self.out.table.data[LEFT, :n]], since

    def wants(self, port: int, horizon: Horizon) -> Array | None:
        """Moments from the first one on that what comes or goes may concern."""
        table = self.moments.out.table
        self._begins = self.begins_from(horizon.since[id(table)], horizon)
        self._open, _ = self._unsettled(self._begins)
        self._stood = table.stands()
        return self._open.copy()

    def unsettled(self, since: Mapping[int, int], frontier: int) -> int:
        """A match that may still be another one is not settled, however long ago it ended."""
        table, out = self.moments.out.table, self.out.table
        rows = out.standing()
        least = super().unsettled(since, frontier)
        if not len(rows):
            return least
        far, within = self._unsettled(self.begins_from(since[id(table)], self.runtime))
        open_rows = rows[within[out.data[LEFT, rows]]]
        ends = out.data[END, open_rows]
        # Where the last event of a match may go, a shorter match takes its place.
        ends = np.where(ends >= since[id(table)], table.data[END, out.data[LEFT, open_rows]], ends)
        if self.shape.skip >= 0:  # another match of one of these may let others begin that were left out before
            ends = np.concatenate([ends, table.data[END, : table.n][far & (self.begins[: table.n] != 0)]])
        return min(least, int(ends.min())) if len(ends) else least
