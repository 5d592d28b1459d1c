"""The facts of one predicate: each once, with the times at which it holds, found by the columns that calls bind."""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np

from augury.engine.kernels import Array
from augury.engine.knowledge.rows import Distinct, Rows
from augury.engine.table import grown
from augury.engine.values import Dictionary
from augury.errors import DataError
from augury.knowledge.table import ALWAYS, EVER, FactTable
from augury.knowledge.timeline import Statements
from augury.sources.columns import Coded, Column

_LONGEST = 2**60
Interval = tuple[int, int]
Said = tuple[int, int, bool]  # since, until, and whether it was retracted at `since`


class Relation:
    """Facts. One that holds over several intervals has the first beside it and the others in `again`."""

    def __init__(self, name: str, arity: int, words: Dictionary) -> None:
        self.name, self.arity, self.words = name, arity, words
        self.rows = Distinct(arity, words)
        self.since: Array | None = None
        self.until: Array | None = None
        self.again = Rows(arity, words)
        self.again_times: list[Interval] = []
        self.bounds: list[int] = []  # the times at which some fact begins or ends to hold
        self.said: dict[int, list[Said]] = {}  # of facts of which more than one thing was said
        self.made: dict[int, tuple[list[int], list[int]]] = {}  # when events made and ended facts
        self.whole_floats = self.nulls = False

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def timed(self) -> bool:
        return self.since is not None

    # Facts come and go

    def take(self, table: FactTable) -> None:
        """Takes in facts, those that are there already aside."""
        columns = [encoded(c, self.words) for c in table.columns]
        self._look_at(columns)
        before = self.rows.n
        places = self.rows.admit(columns, len(table))
        if not table.timed and not self.timed:
            return
        self._with_times(before)
        assert self.since is not None and self.until is not None
        since = np.full(len(table), ALWAYS) if table.since is None else table.since
        until = np.full(len(table), EVER) if table.until is None else table.until
        fresh = np.zeros(len(table), bool)
        new = np.flatnonzero(places >= before)
        fresh[new[np.unique(places[new], return_index=True)[1]]] = True
        self.since[places[fresh]], self.until[places[fresh]] = since[fresh], until[fresh]
        self._see(since[fresh], until[fresh])
        for i in np.flatnonzero(~fresh).tolist():
            self.say(int(places[i]), (int(since[i]), int(until[i]), False))

    def say(self, row: int, said: Said) -> None:
        """One more statement about a fact: over which times it holds, or from when on it no longer does."""
        if row not in self.said:
            self.said[row] = [(since, until, False) for since, until in self.intervals(row)]
        self.said[row].append(said)
        self.hold(row, self.follows(row))

    def follows(self, row: int) -> list[Interval]:
        """When a fact holds, by what events made of it and by what was said of it."""
        found = Statements()
        made, ended = self.made.get(row, ((), ()))
        for time in ended:
            found.add_retract(time)
        for time in made:
            found.add_assert(time, EVER)
        for since, until, retract in self.said.get(row, ()):
            if retract:
                found.add_retract(since)
            else:
                found.add_assert(since, until)
        return found.intervals()

    def _look_at(self, columns: Sequence[Array]) -> None:
        for column in columns:
            self.nulls = self.nulls or bool(self.words.is_null(column).any())
            self.whole_floats = self.whole_floats or bool(((column & 3) == 2).any())

    def places(self, columns: Sequence[Array], count: int) -> Array:
        """The rows of facts; those of new ones hold at no time."""
        before = self.rows.n
        self._look_at(columns)
        rows = self.rows.admit(columns, count)
        self.rows.kill(np.arange(before, self.rows.n))
        if self.timed:
            self._with_times(before)
        return rows

    def begin(self, rows: Array, since: Array, until: Array) -> None:
        """Facts that held at no time so far hold from a time on, up to another."""
        self._with_times(self.rows.n)
        assert self.since is not None and self.until is not None
        self.since[rows], self.until[rows] = since, until
        self.rows.alive[rows] = 1
        self.rows.dead -= len(rows)
        self._see(since, until)

    def intervals(self, row: int) -> list[Interval]:
        """When a fact holds, in order."""
        if not self.rows.alive[row]:
            return []
        if self.since is None or self.until is None:
            return [(ALWAYS, EVER)]
        found = [(int(self.since[row]), int(self.until[row]))]
        if self.again.n:
            own = self.rows.data[:, row : row + 1]
            _, more = self.again.find(tuple(range(self.arity)), list(own), 1, strict=False)
            found += [self.again_times[i] for i in more.tolist()]
        return sorted(found)

    def hold(self, row: int, intervals: Sequence[Interval]) -> None:
        """Says when a fact holds."""
        self._with_times(self.rows.n)
        assert self.since is not None and self.until is not None
        if self.again.n:
            own = self.rows.data[:, row : row + 1]
            self.again.kill(self.again.find(tuple(range(self.arity)), list(own), 1, strict=False)[1])
        alive = int(bool(intervals))
        self.rows.dead += int(self.rows.alive[row]) - alive
        self.rows.alive[row] = alive
        if not intervals:
            return
        self.since[row], self.until[row] = intervals[0]
        self._note(t for i in intervals for t in i)
        for interval in intervals[1:]:
            self.again.append(list(self.rows.data[:, row : row + 1]), 1)
            self.again_times.append(interval)

    def _with_times(self, before: int) -> None:
        """Makes room for times; rows up to `before` that had none hold always."""
        size = len(self.rows.alive)
        if self.since is None or self.until is None:
            self.since, self.until = np.full(size, ALWAYS), np.full(size, EVER)
        elif len(self.since) < size:
            self.since, self.until = grown(self.since, size, before, ALWAYS), grown(self.until, size, before, EVER)

    def _see(self, *times: Array) -> None:
        new = np.sort(np.concatenate(times))
        new = new[np.concatenate([[True], new[1:] != new[:-1]])] if len(new) else new
        new = new[(new != ALWAYS) & (new != EVER)]
        if len(new) and (new[0] <= -_LONGEST or new[-1] >= _LONGEST):
            raise DataError(f"`{self.name}`: a fact with a time too far from the origin", hint="times are below 2**60")
        if len(new) and self.bounds and new[0] > self.bounds[-1]:
            self.bounds += new.tolist()
            return
        if len(new) > 8:
            self.bounds = np.union1d(np.array(self.bounds, np.int64), new).tolist()
            return
        self._note(new.tolist())

    def _note(self, times: Iterable[int]) -> None:
        for time in times:
            if time in (ALWAYS, EVER):
                continue
            at = bisect.bisect_left(self.bounds, time)
            if at == len(self.bounds) or self.bounds[at] != time:
                self.bounds.insert(at, time)

    def prune(self, settled: int) -> None:
        """Forgets facts that hold no longer, where there are many, and the times before `settled`."""
        if self.since is None or self.until is None:
            return
        at = bisect.bisect_right(self.bounds, settled)
        self.bounds = self.bounds[max(0, at - 1) :]
        over = np.flatnonzero(self.rows.alive[: self.rows.n].astype(bool) & (self.until[: self.rows.n] <= settled))
        for row in over.tolist():
            self.hold(row, [i for i in self.intervals(row) if i[1] > settled])
        if 2 * self.rows.dead < self.rows.n or self.rows.n < 1000:
            return
        keep = np.array(
            [r for r in range(self.rows.n) if self.rows.alive[r] or self.said.get(r) or r in self.made], np.int64
        )
        old, since, until = self.rows, self.since[keep], self.until[keep]
        self.rows = Distinct(self.arity, self.words)
        places = self.rows.admit([old.data[i, keep] for i in range(self.arity)], len(keep))
        self.rows.alive[places] = old.alive[keep]
        self.rows.dead = int((old.alive[keep] == 0).sum())
        self.since = self.until = None
        self._with_times(0)
        self.since[places], self.until[places] = since, until  # type: ignore[index]
        moved = dict(zip(keep.tolist(), places.tolist(), strict=True))
        self.said = {moved[r]: said for r, said in self.said.items() if r in moved}
        self.made = {moved[r]: made for r, made in self.made.items() if r in moved}
        times = [self.again_times[r] for r in self.again.standing().tolist()]
        kept, self.again = self.again, Rows(self.arity, self.words)
        rows = kept.standing()
        self.again.append([kept.data[i, rows] for i in range(self.arity)], len(rows))
        self.again_times = times

    def rehash(self, words: Dictionary) -> None:
        """After its codes have changed: rows are found by their codes."""
        self.words = words
        self.rows.rehash(words)
        self.again.rehash(words)

    # Questions

    def find(self, fields: tuple[int, ...], asked: Sequence[Array], count: int, at: Array) -> tuple[Array, list[Array]]:
        """Pairs of a question and a fact, as its columns, that holds then and has what the question asks for."""
        times = None if self.since is None else (at, self.since, self.until)
        which, rows = self.rows.find(fields, asked, count, times=times)
        columns = [self.rows.data[i, rows] for i in range(self.arity)]
        if len(self.again):
            bounds = np.array(self.again_times, np.int64).reshape(-1, 2)
            later = (at, np.ascontiguousarray(bounds[:, 0]), np.ascontiguousarray(bounds[:, 1]))
            more, rows = self.again.find(fields, asked, count, times=later)
            which = np.concatenate([which, more])
            columns = [np.concatenate([c, self.again.data[i, rows]]) for i, c in enumerate(columns)]
        return which, columns

    def standing(self, at: int) -> list[Array]:
        """The facts that hold at a time, as columns."""
        return self.find((), [], 1, np.array([at], np.int64))[1]


def difference(before: Sequence[Interval], after: Sequence[Interval]) -> list[Interval]:
    """The times that are in one of two unions of intervals and not in the other."""
    if before == after:
        return []
    bounds = sorted({t for i in (*before, *after) for t in i})

    def within(time: int, intervals: Sequence[Interval]) -> bool:
        return any(since <= time < until for since, until in intervals)

    found: list[Interval] = []
    for a, b in pairwise(bounds):
        if within(a, before) != within(a, after):
            if found and found[-1][1] == a:
                found[-1] = (found[-1][0], b)
            else:
                found.append((a, b))
    return found


def encoded(column: Column, words: Dictionary) -> Array:
    """A column of facts as codes."""
    if isinstance(column, Coded):
        return words.encode_all((*column.values, None))[
            column.index
        ]  # an index of -1 finds the last one, which is null
    if len(column) == 0:
        return np.empty(0, np.int64)
    return words.encode_column(column)
