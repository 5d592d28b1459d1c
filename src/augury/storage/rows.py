"""Rows of codes in flat growing arrays with an index on any fields; they store facts and tabled answers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from augury.core.arrays import Array, RowData, RowIds
from augury.storage.dictionary import Dictionary
from augury.storage.guard import check_memory
from augury.storage.kernels import tabling as k
from augury.storage.table import NONE, capacity, grown, no_buckets

_NO_BUCKETS = np.empty(0, np.int32)


class Rows:
    """Rows of so many fields. A row that no longer stands stays in its place."""

    def __init__(self, width: int, words: Dictionary) -> None:
        self.words = words
        self.data = np.zeros((width, 16), np.int64)
        self.alive = np.zeros(16, np.uint8)
        self.n = self.dead = 0
        self.chains: dict[tuple[tuple[int, ...], bool], Chains] = {}

    def __len__(self) -> int:
        return self.n - self.dead

    @property
    def width(self) -> int:
        return int(self.data.shape[0])

    def room(self, more: int) -> None:
        if self.n + more > self.data.shape[1]:
            size = capacity(self.n + more)
            self.data, self.alive = grown(self.data, size, self.n), grown(self.alive, size, self.n, 0)

    def append(self, columns: Sequence[Array], count: int) -> int:
        """Adds rows, given field by field; the first of them."""
        self.room(count)
        lo, self.n = self.n, self.n + count
        for i, column in enumerate(columns):
            self.data[i, lo : self.n] = column
        self.alive[lo : self.n] = 1
        return lo

    def shrink(self) -> None:
        """Lets go of room for rows that are not expected any more."""
        self.data, self.alive = np.ascontiguousarray(self.data[:, : self.n]), self.alive[: self.n].copy()
        self.chains.clear()

    def kill(self, rows: RowIds) -> None:
        self.dead += int(self.alive[rows].sum())
        self.alive[rows] = 0

    def standing(self) -> RowIds:
        return np.flatnonzero(self.alive[: self.n])

    def cut(self, n: int, dead: int) -> None:
        """Goes back to its first rows, so many of which were dead. It may be broken off and called again."""
        self.chains = {}
        self.alive[n:] = 0
        self.n, self.dead = n, dead

    @property
    def bytes(self) -> int:
        chains = sum(int(chain.buckets.nbytes + chain.after.nbytes) for chain in self.chains.values())
        return int(self.data.nbytes + self.alive.nbytes) + chains

    def recode(self, words: Dictionary, data: RowData) -> None:
        """Takes over codes of another dictionary."""
        self.chains = {}
        self.words, self.data = words, data

    def by(self, fields: tuple[int, ...], strict: bool = True) -> Chains:
        """The rows by some of their fields; where `strict`, null is found by nothing."""
        result = self.chains.get((fields, strict))
        if result is None:
            result = self.chains[fields, strict] = Chains(self, fields, strict)
        result.extend()
        return result

    def find(
        self,
        fields: tuple[int, ...],
        asked: Sequence[Array],
        count: int,
        *,
        strict: bool = True,
        lo: int = 0,
    ) -> tuple[Array, Array]:
        """Pairs of a question and a row that has the fields it asks for; in the order of the questions.

        Rows before `lo` are left out.
        """
        if count == 0 or self.n == 0:
            return NONE, NONE
        if not fields:
            return self._all(count, lo)
        chains = self.by(fields, strict)
        keys = np.stack(asked) if len(asked) > 1 else asked[0].reshape(1, -1)
        words, state = self.words, np.array([0, -2, 0], np.int64)
        held = self.data, chains.fields, strict, words.canon, words.nullish, chains.buckets, chains.after, self.alive
        parts: list[Array] = []
        size = count + 64
        while True:
            room = np.empty((2, size), np.int64)
            done = k.look_up(keys, chains.places, count, *held, lo, state, room)
            parts.append(room[:, : state[2]])
            if done:
                break
            size *= 2
        pairs = parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)
        return pairs[0], pairs[1]

    def _all(self, count: int, lo: int) -> tuple[Array, Array]:
        rows = np.flatnonzero(self.alive[lo : self.n]) + lo
        check_memory(24 * count * len(rows))
        return np.repeat(np.arange(count), len(rows)), np.tile(rows, count)


class Chains:
    """Rows by some of their fields."""

    def __init__(self, rows: Rows, fields: tuple[int, ...], strict: bool) -> None:
        self.rows, self.strict = rows, strict
        self.fields = np.array(fields, np.int64)
        self.places = np.arange(len(fields), dtype=np.int64)
        self.seen = 0
        self.buckets, self.after = no_buckets(0), np.empty(16, np.int32)

    def extend(self) -> None:
        """Takes in the rows that there are more."""
        rows = self.rows
        if self.seen == rows.n:
            return
        if len(self.after) < rows.n:
            self.after = grown(self.after, len(rows.alive), self.seen)
        buckets, words = self.buckets, rows.words
        if rows.n > len(buckets):
            buckets, self.seen = no_buckets(rows.n), 0
        self.buckets = _NO_BUCKETS  # where this is broken off, they are made anew
        k.enter(rows.data, self.seen, rows.n, self.fields, self.strict, words.canon, words.nullish, buckets, self.after)
        self.seen, self.buckets = rows.n, buckets


class Distinct(Rows):
    """Rows each of which is there once, whatever way its values are written."""

    def __init__(self, width: int, words: Dictionary) -> None:
        super().__init__(width, words)
        self.fields = np.arange(width, dtype=np.int64)
        self.buckets, self.after = no_buckets(0), np.empty(16, np.int32)

    def shrink(self) -> None:
        super().shrink()
        self.after = self.after[: self.n].copy()

    def cut(self, n: int, dead: int) -> None:
        self.buckets = _NO_BUCKETS  # the next rows make them anew
        super().cut(n, dead)

    def recode(self, words: Dictionary, data: RowData) -> None:
        self.buckets = _NO_BUCKETS
        super().recode(words, data)

    @property
    def bytes(self) -> int:
        return super().bytes + int(self.buckets.nbytes + self.after.nbytes)

    def _fill(self, count: int) -> None:
        """Makes buckets for so many rows."""
        buckets, words = no_buckets(count), self.words
        self.buckets = _NO_BUCKETS
        k.enter(self.data, 0, self.n, self.fields, False, words.canon, words.nullish, buckets, self.after)
        self.buckets = buckets

    def admit(self, columns: Sequence[Array], count: int) -> Array:
        """Adds those rows that are new; where each of them is."""
        places = np.zeros(count, np.int64)
        if count == 0:
            return places
        if self.width == 0:  # there is but one row without fields
            self.room(1)
            self.alive[0], self.n = 1, 1
            return places
        self.room(count)
        if len(self.after) < len(self.alive):
            self.after = grown(self.after, len(self.alive), self.n)
        if self.n + count > len(self.buckets):
            self._fill(self.n + count)
        new = np.empty((self.width, count), np.int64)
        for i, column in enumerate(columns):
            new[i] = column
        before, buckets = self.n, self.buckets
        self.buckets = _NO_BUCKETS  # where this is broken off, they are made anew
        n = k.admit(new, count, self.data, before, self.fields, self.words.canon, buckets, self.after, places)
        self.alive[before:n] = 1
        self.n, self.buckets = n, buckets
        return places


def firsts(columns: Sequence[Array], count: int, words: Dictionary) -> tuple[Array, Array]:
    """Of equal rows the first one, and for each row the number of its group."""
    rows = Distinct(len(columns), words)
    groups = rows.admit(columns, count)
    first = np.full(rows.n, count, np.int64)
    np.minimum.at(first, groups, np.arange(count))
    return first, groups
