"""Tables: rows in flat growing arrays, with indexes by key and links to derived rows.

A table is append-only between compactions: a row that no longer stands is dead, and its place is not used again before
the table is compacted. All state of a circuit is in its tables; indexes and links are made anew from them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from augury.core.arrays import Array, Integers, RowIds
from augury.core.bounds import FAR
from augury.core.fields import END, FIELDS, LEFT, RANK, RIGHT, START
from augury.storage.dictionary import Dictionary
from augury.storage.guard import Guard, check_memory
from augury.storage.kernels.hashing import EMPTY
from augury.storage.kernels.index import arrange, rehash
from augury.storage.kernels.links import kill_children, link, standing_children

NONE = np.empty(0, np.int64)
_MANY = 1 << 21  # rows; of fewer, the room for their like is larger
_BLOCK = 4096
_ALL_STOOD = np.empty(0, np.uint8)
_GROUP = 8  # what an index knows of a group, see `kernels/index.py`: half a line of the cache
__all__ = [
    "END",
    "FIELDS",
    "LEFT",
    "NONE",
    "RANK",
    "RIGHT",
    "START",
    "GreatestValue",
    "Index",
    "Links",
    "Table",
    "Tables",
    "capacity",
    "grown",
    "marked_buckets",
    "no_buckets",
    "too_full",
]


class TableObserver(Protocol):
    """A follower of the changes of a table."""

    scheduled: bool

    def wake(self) -> None: ...

    def lose(self, port: int, rows: RowIds) -> None: ...


class Table:
    """Rows of int64 fields: start, end, the rows it was made of, the rank in a recursion, then variables and labels."""

    def __init__(self, codes: int, tables: Tables, times: int = 0) -> None:
        """After the fields that all rows have come `codes` fields of values and `times` fields of times."""
        self.tables = tables
        self.codes = list(range(FIELDS, FIELDS + codes))
        self.width = FIELDS + codes + times
        self.data = np.zeros((self.width, 16), np.int64)
        self.alive = np.zeros(16, np.uint8)
        self.n = 0
        self.dead = 0
        self.dropped = 0  # by compactions
        self.latest = NONE  # the greatest end of each full block of rows
        self.indexes: dict[tuple[tuple[int, ...], int], Index] = {}
        self.readers: list[tuple[TableObserver, int]] = []
        self.mark = 0  # how many rows there were when the step began
        self.killed: list[Array] = []  # what the step has killed
        self.stood = _ALL_STOOD  # which rows stood when the step began; those beyond its end all did

    @property
    def dictionary(self) -> Dictionary:
        return self.tables.dictionary

    @property
    def live(self) -> int:
        return self.n - self.dead

    @property
    def written(self) -> int:
        """How many rows have come, those that were dropped since among them."""
        return self.n + self.dropped

    @property
    def bytes(self) -> int:
        return self.n * (8 * self.width + 1) + sum(i.bytes for i in self.indexes.values())

    def room(self, more: int) -> None:
        """Makes room for more rows."""
        if self.tables.rows + more > self.tables.guard.rows:
            raise self.tables.guard.too_many_rows()
        if self.n + more > self.data.shape[1]:
            least = self.n + more
            for size in (self.tables.room(least, self.mark), least + self.n // 8):
                try:
                    self._grow(size)
                    return
                except MemoryError:  # where there is not so much: for fewer, and at last for these alone
                    continue
            self._grow(least)

    def _grow(self, size: int) -> None:
        check_memory((size - self.n) * (8 * self.width + 1))
        # Zeros that the system has at hand: a field that is never written, of a row that died early, is no garbage.
        data, alive = np.zeros((self.width, size), np.int64), grown(self.alive, size, self.n)
        data[:, : self.n] = self.data[:, : self.n]
        self.data, self.alive = data, alive

    def add_field(self, code: bool) -> int:
        """One more field, of values or of times."""
        wider = np.zeros((self.width + 1, self.data.shape[1]), np.int64)
        wider[: self.width] = self.data
        self.data, self.width = wider, self.width + 1
        if code:
            self.codes.append(self.width - 1)
        return self.width - 1

    def append(self, columns: Array) -> None:
        """Adds rows that are given field by field."""
        count = columns.shape[1]
        self.room(count)
        self.data[: len(columns), self.n : self.n + count] = columns
        self.added(count)

    def added(self, count: int) -> None:
        """Says that `count` rows have been written after the last one."""
        if count == 0:
            return
        lo, self.n = self.n, self.n + count
        self.alive[lo : self.n] = 1
        self.grew(lo)

    def add_row(self, values: Sequence[int]) -> int:
        """Adds one row, whose first fields are `values`; the others are zero."""
        row, tables = self.n, self.tables
        if row == self.data.shape[1] or tables.rows >= tables.guard.rows:
            self.room(1)
        self.data[: len(values), row] = values
        self.alive[row], self.n = 1, row + 1
        self.grew(row)
        return row

    def grew(self, lo: int) -> None:
        tables = self.tables
        tables.rows += self.n - lo
        tables.changed[id(self)] = self
        for reader, _ in self.readers:
            if not reader.scheduled:
                reader.wake()

    def kill(self, rows: RowIds) -> None:
        """Rows that stand no longer."""
        self.alive[rows] = 0
        self.gone(rows)

    def gone(self, rows: RowIds) -> None:
        """Says that rows have been marked as dead."""
        if len(rows) == 0:
            return
        self.tables.changed[id(self)] = self
        self.dead += len(rows)
        self.killed.append(rows)
        for follower, port in self.readers:
            follower.lose(port, rows)

    def stands(self) -> Array:
        """Which of its rows stand."""
        return self.alive[: self.n].astype(bool)

    def standing(self) -> RowIds:
        """The rows that stand."""
        return np.flatnonzero(self.alive[: self.n])

    def earliest(self) -> int:
        """The least end of the rows that stand, of which there are some."""
        return int(self.data[END, : self.n][self.stands()].min())

    def ending(self, lo: int, hi: int) -> RowIds:
        """The rows that stand and end from `lo` up to, not including, `hi`. Rows mostly come in order: few blocks do."""
        full = self.n // _BLOCK
        if len(self.latest) < full:
            new = self.data[END, len(self.latest) * _BLOCK : full * _BLOCK].reshape(-1, _BLOCK)
            self.latest = np.concatenate([self.latest, new.max(axis=1)])
        blocks = np.flatnonzero(self.latest[:full] >= lo)
        spans = [(int(b) * _BLOCK, int(b + 1) * _BLOCK) for b in blocks] + [(full * _BLOCK, self.n)]
        result = []
        for first, last in spans:
            ends = self.data[END, first:last]
            mask = (ends >= lo) & (ends < hi) & self.alive[first:last].astype(bool)
            result.append(np.flatnonzero(mask) + first)
        return np.concatenate(result)

    def index(self, fields: tuple[int, ...], order: int = END) -> Index:
        """The index of these fields, with chains in the order of another field."""
        if (fields, order) not in self.indexes:
            self.indexes[fields, order] = Index(self, fields, order)
        return self.indexes[fields, order]

    # Undoing and compacting

    def prepare(self) -> None:
        """Allocates what `begin` needs, so that it cannot fail once the step counts."""
        if self.killed and len(self.stood) < self.n:
            self.stood = grown(self.stood, len(self.alive), len(self.stood), 1)

    def begin(self) -> None:
        """The step is over, and the next one begins. It may be called again where it was broken off."""
        if self.killed:
            self.prepare()
            for rows in self.killed:
                self.stood[rows] = 0
        self.mark = self.n
        self.killed = []

    def undo(self) -> None:
        """Restores the rows that stood when the step began, but for indexes, which `rebuild` makes anew.

        It needs nothing but `mark` and `stood`: kernels mark rows as dead before anybody can write down which they were.
        It allocates no arrays, and may be called again where it was broken off.
        """
        for rows in self.killed:
            if int(rows.max()) < len(self.stood):  # `begin` may have been broken off
                self.stood[rows] = 1
        n = self.mark
        self.data[:, n : self.n] = 0  # room is zero: not all fields of a new row are written
        self.alive[:n] = 1
        counted = min(n, len(self.stood))
        self.alive[:counted] = self.stood[:counted]
        self.alive[n:] = 0
        self.n = n
        self.latest = self.latest[: n // _BLOCK]
        self.dead = n - int(np.count_nonzero(self.alive[:n]))
        self.killed = []

    def shrink(self) -> None:
        """Gives back most of the room that a step has taken and does not need any more."""
        size = capacity(self.n)
        if len(self.alive) > 4 * size and len(self.alive) > _BLOCK:
            data = np.zeros((self.width, size), np.int64)
            data[:, : self.n] = self.data[:, : self.n]
            alive = np.zeros(size, np.uint8)
            alive[: self.n] = self.alive[: self.n]
            self.data, self.alive = data, alive

    def keep(self, rows: RowIds) -> Array:
        """Keeps just these rows, in their order; where each one went, -1 where it was dropped."""
        moved = np.full(self.n + 1, -1, np.int64)
        moved[rows] = np.arange(len(rows))
        self.latest = NONE
        self.data = np.ascontiguousarray(self.data[:, rows])
        self.alive = self.alive[rows].copy()
        self.dropped += self.n - len(rows)
        self.n, self.dead = len(rows), int((self.alive == 0).sum())
        self.stood = self.alive.copy() if self.dead else _ALL_STOOD
        self.killed = []
        self._grow(self.n + 16)  # whatever the limit of rows
        self.begin()
        return moved

    def rebuild(self) -> None:
        for index in self.indexes.values():
            index.rebuild()


class Tables:
    """Shared state of the tables of a circuit: the dictionary, and which of them a step has touched."""

    def __init__(self, dictionary: Dictionary) -> None:
        self.dictionary = dictionary
        self.changed: dict[int, Table] = {}
        self.rows = 0  # of all tables, so that one need not add them up
        self.share = 1.0  # how much of the step has come
        self.guard = Guard()

    def room(self, count: int, before: int) -> int:
        """Room for so many rows, of which `before` were there when the step began, and for what is still to come of it."""
        new, usual = count - before, capacity(count) * (2 if count < _MANY else 1)
        return max(usual, before + int(1.1 * new / self.share)) if new >= _BLOCK else usual


class Index:
    """The rows of a table by key; in each group a chain in the order of a field, from the greatest down.

    It takes in new rows before a lookup: where events come in order, many are never asked.
    """

    def __init__(self, table: Table, fields: tuple[int, ...], order: int) -> None:
        self.table, self.order = table, order
        self.fields = np.array(fields, np.int64)
        self.rebuild()

    def rebuild(self) -> None:
        self.seen = self.count = 0
        self.buckets = marked_buckets(0)
        self.groups = np.zeros((8, _GROUP), np.int32)
        self.prev, self.after = np.full(16, -1, np.int32), np.full(16, -1, np.int32)
        self.calls = 0  # of kernels, each of which has a number: in one call searches go on where the last one was

    @property
    def bytes(self) -> int:
        return int(self.buckets.nbytes + self.groups.nbytes + 2 * self.prev.nbytes)

    def extend(self) -> None:
        """Takes in the rows that the table has more."""
        table = self.table
        more = table.n - self.seen
        if more <= 0:
            return
        if len(self.prev) < table.n:
            self.prev, self.after = (grown(a, len(table.alive), self.seen) for a in (self.prev, self.after))
        most = self.count + (more if len(self.fields) else 1)
        if most > len(self.groups):
            larger = np.empty((max(capacity(most), len(table.alive)), _GROUP), np.int32)
            larger[: self.count] = self.groups[: self.count]
            self.groups = larger
        if too_full(self.buckets, most):
            self.buckets = marked_buckets(most)
            rehash(self.buckets, self.groups, self.count)
        dictionary = table.tables.dictionary
        self.count = arrange.call(
            table.data, self._in_order(), self.fields, self.order, table.alive, self.buckets, self.groups, self.count,
            self.prev, self.after, dictionary.canon, dictionary.nullish,
        )  # fmt: skip
        self.seen = table.n

    def _in_order(self) -> Array:
        """The rows that it has not taken in, by the field that orders chains: else each would walk back over others."""
        rows = np.arange(self.seen, self.table.n)
        if len(rows) == 1:
            return rows
        times = self.table.data[self.order, self.seen : self.table.n]
        return rows if bool((times[1:] >= times[:-1]).all()) else rows[np.argsort(times, kind="stable")]


class GreatestValue:
    """The greatest value of a field among the first rows of a table."""

    def __init__(self, table: Table, field: int) -> None:
        self.table, self.field = table, field
        self.reset()

    def reset(self) -> None:
        self.seen, self.greatest = 0, -FAR

    def before(self, limit: int) -> int:
        """Of the rows before `limit`, or of more of them."""
        if self.seen < limit:
            data, lo = self.table.data, self.seen
            if limit - lo == 1:
                new = data.item(self.field, lo)
            else:  # of few values Python finds the greatest sooner than NumPy
                values = data[self.field, lo:limit]
                new = max(values.tolist()) if limit - lo < 16 else int(values.max())
            self.greatest = max(self.greatest, new)
            self.seen = limit
        return self.greatest


class Links:
    """Links from each row of a table to the rows made of it, kept once something has been retracted."""

    def __init__(self, parent: Table, child: Table, field: int) -> None:
        self.parent, self.child, self.field = parent, child, field
        self.drop()

    def drop(self) -> None:
        self.heads, self.after, self.seen = NONE, NONE, 0
        self.room = NONE

    @property
    def bytes(self) -> int:
        return int(self.heads.nbytes + self.after.nbytes + self.room.nbytes)

    def extend(self) -> None:
        parent, child = self.parent, self.child
        if len(self.heads) < parent.n:
            self.heads = grown(self.heads, 2 * parent.n, len(self.heads), -1)
        if self.seen < child.n:
            if len(self.after) < child.n:
                self.after = grown(self.after, 2 * child.n, self.seen)
            link(child.data[self.field], self.seen, child.n, self.heads, self.after)
            self.seen = child.n

    def kill(self, dead: Array) -> Array:
        """Kills what was made of dead rows; which rows that were."""
        self.extend()
        if len(self.room) < self.child.n:
            self.room = np.empty(2 * self.child.n, np.int64)
        count = kill_children(dead, self.heads, self.after, self.child.alive, self.room)
        if count == 0:
            return NONE
        taken = self.room[:count].copy()
        self.child.gone(taken)
        return taken

    def move(self, child: int, parent: int) -> None:
        """Puts a row under another parent; the chain it was in is not used again."""
        if len(self.heads) < self.parent.n:
            self.heads = grown(self.heads, 2 * self.parent.n, len(self.heads), -1)
        self.after[child] = self.heads[parent]
        self.heads[parent] = child

    def standing(self, rows: RowIds) -> RowIds:
        """The rows made of some rows that stand."""
        self.extend()
        if len(self.room) < self.child.n:
            self.room = np.empty(2 * self.child.n, np.int64)
        count = standing_children(rows, self.heads, self.after, self.child.alive, self.room)
        return self.room[:count].copy()

    def of(self, row: int) -> list[int]:
        """The rows made of one row that stand, the last one first."""
        return [child for child in reversed(self.every(row)) if self.child.alive[child]]

    def every(self, row: int) -> list[int]:
        """The rows made of one row, the first one first, also those that are gone."""
        self.extend()
        children, child = [], int(self.heads[row])
        while child >= 0:
            children.append(child)
            child = int(self.after[child])
        return children[::-1]


def capacity(count: int) -> int:
    """Room for so many rows and many more: memory that is not written to costs nothing, copying does."""
    return max(16, count * 2)


def grown(array: Array, size: int, used: int, fill: object = None) -> Array:
    """A larger array that begins alike; what comes after is `fill`, or whatever it is."""
    larger = np.empty((*array.shape[:-1], size), array.dtype)
    larger[..., :used] = array[..., :used]
    if fill is not None:
        larger[..., used:] = fill
    return larger


def marked_buckets(count: int) -> Array:
    """Empty buckets that hold hashes, too: see `kernels/hashing.py`. For so many entries: at most half of them will be full."""
    return np.full(1 << max(4, (2 * count - 1).bit_length()), EMPTY, np.int64)


def too_full(buckets: Integers, count: int) -> bool:
    """Whether searches in marked buckets would become long with so many entries."""
    return 3 * count > 2 * len(buckets)


def no_buckets(count: int) -> Array:
    """Empty buckets for so many entries: at most half of them will be full."""
    return np.full(1 << max(4, (2 * count - 1).bit_length() + 1), -1, np.int32)
