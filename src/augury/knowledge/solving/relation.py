"""The facts of one predicate: each once, with the times at which it holds, found by the columns that calls bind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from augury.core.arrays import Array, Codes, RowData, RowIds, Times
from augury.core.bounds import TIME_LIMIT
from augury.core.errors import DataError
from augury.knowledge.fact_table import ALWAYS, EVER, FactTable
from augury.knowledge.solving.as_of import AsOfIndex
from augury.knowledge.solving.timelines import Before, TimelineChange, Timelines
from augury.storage.column import Coded, Column, TextColumn
from augury.storage.dictionary import NULL, Dictionary
from augury.storage.kernels import entries as k
from augury.storage.rows import Distinct
from augury.storage.table import capacity, grown
from augury.storage.unique import difference, unique, unique_first


@dataclass(frozen=True)
class RelationMark:
    """How far a relation has come when a step first changes it."""

    n: int
    dead: int
    timed: bool
    whole_floats: bool
    nulls: bool


class FactRelation:
    """Facts. Those of which one thing was said have its times beside them; the others have a timeline."""

    def __init__(self, name: str, arity: int, words: Dictionary) -> None:
        self.name, self.arity, self.words = name, arity, words
        self.rows = Distinct(arity, words)
        self.since: Times | None = None  # where a fact has a timeline, it holds at most from here
        self.until: Times | None = None  # up to here
        self.timelines = Timelines()
        self.indexes: dict[tuple[int, ...], AsOfIndex] = {}  # where facts have times, by the columns that calls bind
        self.began_with = 0  # how many facts were there when the run began
        self.journal: list[Before] = []  # how facts were before each change of a step
        self.whole_floats = self.nulls = False
        self._bounds: Array | None = None  # those of `bounds`, once they were computed
        self._bounded = 0

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def timed(self) -> bool:
        return self.since is not None

    # Facts come and go

    def load(self, table: FactTable) -> None:
        """Facts that are there before anything is asked."""
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
        self._check(since, until)
        first = np.zeros(len(table), bool)
        new = np.flatnonzero(places >= before)
        first[new[unique_first(places[new])[1]]] = True
        self.since[places[first]], self.until[places[first]] = since[first], until[first]
        more = ~first
        if more.any():
            self.change(places[more], since[more], np.full(int(more.sum()), k.ASSERT), until[more])
        self.journal.clear()
        self._bounds = None

    def change(self, rows: RowIds, times: Times, acts: Array, untils: Array) -> TimelineChange:
        """Takes in changes of facts, in the order in which they came to be known."""
        self._with_times(self.rows.n)
        assert self.since is not None and self.until is not None
        self._check(times, untils)
        touched, alive = unique(rows), self.rows.alive
        before = int(alive[touched].sum())
        plain = touched[~self.timelines.has(touched) & alive[touched].astype(bool)]
        if len(plain):  # what was known of them was said first
            self._apply(plain, self.since[plain], np.full(len(plain), k.ASSERT), self.until[plain])
        change = self._apply(rows, times, acts, untils)
        self.rows.dead += before - int(alive[touched].sum())
        self._see(times, untils[acts == k.ASSERT])
        return change

    def _apply(self, rows: RowIds, times: Times, acts: Array, untils: Array) -> TimelineChange:
        assert self.since is not None and self.until is not None
        change = self.timelines.apply(rows, times, acts, untils, self.since, self.until, self.rows.alive, self.journal)
        for index in self.indexes.values():
            index.changed.append((change.rows, change.begin))
        return change

    def mark(self) -> RelationMark:
        return RelationMark(self.rows.n, self.rows.dead, self.timed, self.whole_floats, self.nulls)

    def undo(self, mark: RelationMark) -> None:
        """Goes back to a mark. It may be broken off and called again."""
        if self.since is not None and self.until is not None:
            for before in reversed(self.journal):
                self.timelines.undo(before, self.since, self.until, self.rows.alive)
            self.since[mark.n :], self.until[mark.n :] = ALWAYS, EVER
            self.timelines.places[:, mark.n :] = -1
        if not mark.timed:
            self.since = self.until = None
        self.whole_floats, self.nulls = mark.whole_floats, mark.nulls
        self._bounds = None
        self.indexes = {}
        self.rows.cut(mark.n, mark.dead)
        self.journal = []

    @property
    def bytes(self) -> int:
        times = 0 if self.since is None else 2 * int(self.since.nbytes)
        return self.rows.bytes + times + self.timelines.bytes + sum(index.bytes for index in self.indexes.values())

    @property
    def touched(self) -> int:
        """How many intervals questions and changes have looked at."""
        return sum(index.touched for index in self.indexes.values())

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
        self._with_times(before)
        return rows

    def _with_times(self, before: int) -> None:
        """Makes room for times; rows up to `before` that had none hold always."""
        size = len(self.rows.alive)
        self.timelines.room(size)
        if self.since is None or self.until is None:
            self.since, self.until = np.full(size, ALWAYS), np.full(size, EVER)
        elif len(self.since) < size:
            self.since, self.until = grown(self.since, size, before, ALWAYS), grown(self.until, size, before, EVER)

    def _check(self, *times: Times) -> None:
        for some in times:
            usual = some[(some != ALWAYS) & (some != EVER)]
            if len(usual) and (usual.min() <= -TIME_LIMIT or usual.max() >= TIME_LIMIT):
                raise DataError(
                    f"`{self.name}`: a fact with a time too far from the origin", hint="times are below 2**60"
                )

    # Times at which something changes

    @property
    def bounds(self) -> Array:
        """The times at which some fact may begin or end to hold, in order."""
        if self._bounds is None:
            n, lines = self.rows.n, self.timelines
            self._bounds, self._bounded = np.empty(16, np.int64), 0
            if self.since is not None and self.until is not None:
                plain = ~lines.has(np.arange(n))
                entries = lines.state(np.flatnonzero(~plain))["entries"]
                said = entries[k.SAID_UNTIL][entries[k.SAID] != k.UNSAID]
                self._see(self.since[:n][plain], self.until[:n][plain], entries[k.TIME], said)
        return self._bounds[: self._bounded]

    def _see(self, *times: Times) -> None:
        if self._bounds is None:
            return  # they were never asked for
        new = unique(np.concatenate(times))
        new = new[(new != ALWAYS) & (new != EVER)]
        bounds = self._bounds[: self._bounded]
        if len(bounds) and len(new) and new[0] <= bounds[-1]:
            new = difference(new, bounds)
        total = self._bounded + len(new)
        if len(bounds) and len(new) and new[0] < bounds[-1]:  # a new array: others keep views of this one
            merged = np.insert(bounds, np.searchsorted(bounds, new), new)
            self._bounds = grown(merged, capacity(total), total)
        else:
            if total > len(self._bounds):
                self._bounds = grown(self._bounds, capacity(total), self._bounded)
            self._bounds[self._bounded : total] = new
        self._bounded = total

    # What is over

    def drop_history(self, floor: int, unmade: bool = False) -> None:
        """Forgets how it came that facts hold at `floor`, and facts that hold no longer, where there are many.

        Those that were given stay: they are given again to a session that resumes from a snapshot.
        """
        if self.since is None or self.until is None:
            return
        # Everything new is made before anything is replaced: whatever fails, the facts are as they were, or as they will be.
        n, alive = self.rows.n, self.rows.alive.copy()
        since, until, lines = self.since.copy(), self.until.copy(), self.timelines.copy()
        lines.drop_history(n, floor, since, until, alive, unmade)
        dead = n - int(alive[:n].sum())
        self._bounds, self.indexes = None, {}
        if 2 * dead < n or n < 1000:
            self.rows.alive[:n] = alive[:n]  # a fact that is not asked for any more may go before its timeline does
            self.timelines, self.since, self.until, self.rows.dead = lines, since, until, dead
            return
        keep = np.flatnonzero(alive[:n].astype(bool) | (np.arange(n) < self.began_with))
        rows = Distinct(self.arity, self.words)
        places = rows.admit([self.rows.data[i, keep] for i in range(self.arity)], len(keep))
        rows.alive[places] = alive[keep]
        rows.dead = int((alive[keep] == 0).sum())
        lines.keep(keep, places)
        size = len(rows.alive)
        lines.room(size)
        from_, to = np.full(size, ALWAYS), np.full(size, EVER)
        from_[places], to[places] = since[keep], until[keep]
        self.rows, self.timelines, self.since, self.until = rows, lines, from_, to

    def recode(self, words: Dictionary, data: RowData) -> None:
        """Takes over codes of another dictionary."""
        self.words, self.indexes = words, {}
        self.rows.recode(words, data)

    # Questions

    def holding(self, rows: RowIds, times: Array) -> Array:
        """Which facts hold, each at a time of its own."""
        held = self.rows.alive[rows].astype(bool)
        if self.since is not None and self.until is not None:
            held &= (self.since[rows] <= times) & (times < self.until[rows])
            some = np.flatnonzero(held)
            held[some] = self.timelines.holding(rows[some], times[some], np.ones(len(some), bool))
        return held

    def find(
        self, fields: tuple[int, ...], asked: Sequence[Array], count: int, times: Array
    ) -> tuple[Array, list[Array]]:
        """Pairs of a question and a fact, as its columns, that holds then and has what the question asks for."""
        if self.since is None:
            which, rows = self.rows.find(fields, asked, count)
        else:
            index = self.indexes.pop(fields, None) or AsOfIndex(self, fields)
            which, rows = index.find(asked, times)
            self.indexes[fields] = index  # one that was broken off while it took in changes is made anew
        return which, [self.rows.data[i, rows] for i in range(self.arity)]

    def standing(self, time: int) -> list[Array]:
        """The facts that hold at a time, as columns."""
        return self.find((), [], 1, np.array([time], np.int64))[1]

    def begun(self, latest: int) -> list[tuple[int, int]]:
        """The facts that hold at a time, with since when each has held without a break; those that always did are left out."""
        rows = np.flatnonzero(self.rows.alive[: self.rows.n])
        rows = rows[self.holding(rows, np.full(len(rows), latest, np.int64))]
        result: list[tuple[int, int]] = []
        for row in rows[self.timelines.has(rows)].tolist():
            times = self.timelines.state(np.array([row]))["entries"][k.TIME]
            single = np.array([row])
            for time in times[times <= latest][::-1].tolist():
                if time == ALWAYS or not self.holding(single, np.array([time - 1]))[0]:
                    result += [] if time == ALWAYS else [(row, time)]
                    break
        return result

    # State

    def state(self) -> dict[str, Any]:
        """The facts that have changed, as codes, and their timelines."""
        rows = np.flatnonzero(self.timelines.has(np.arange(self.rows.n)))
        return {"rows": rows, **self.timelines.state(rows)}

    def fill(self, columns: Sequence[Array], count: int, state: dict[str, Any]) -> None:
        """As it was when the state was taken."""
        rows = self.places(columns, count)
        if len(unique(rows)) < count:
            raise ValueError("a fact twice")
        self.timelines.fill(rows, state)
        self.drop_history(ALWAYS)


def encoded(column: Column, words: Dictionary) -> Codes:
    """A column of facts as codes."""
    if isinstance(column, TextColumn):
        return words.encode_texts(column.array)
    if isinstance(column, Coded):
        codes = np.append(words.encode_all(column.values), NULL)
        return codes[column.index]  # an index of -1 finds the last one, which is null
    if len(column) == 0:
        return np.empty(0, np.int64)
    return words.encode_column(column)
