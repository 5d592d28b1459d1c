"""Throttles over events that come in order, by columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from augury.core.arrays import Integers, Mask, RowIds
from augury.core.bounds import FAR
from augury.storage.dictionary import Dictionary
from augury.storage.kernels import throttles as k
from augury.storage.ranks import Ordering, code_ranks
from augury.storage.rows import Distinct
from augury.storage.table import END, START, Table, grown


class ThrottleTails:
    """For each key the last n events that were given, which decide about all that come after them in order.

    Where an event is late, or is taken back, its key is *handed over*: the operator holds its events one by one from then
    on, until it is made anew.
    """

    def __init__(self, table: Table, args: Sequence[int], per: Sequence[int], most: int, every: int | None) -> None:
        self.table, self.args, self.per = table, list(args), list(per)
        self.most, self.every = most, -1 if every is None else every
        self.clear()

    def clear(self) -> None:
        self.keys = Distinct(len(self.per), self.dictionary)
        self.groups = np.zeros((6, 16), np.int64)
        self.links = np.zeros((3, 16), np.int64)
        self.filled = 0  # how many groups have been set up
        self.latest = -FAR

    @property
    def dictionary(self) -> Dictionary:
        return self.table.dictionary

    def numbers(self, rows: RowIds) -> Integers:
        """The numbers of the groups that rows belong to."""
        result = self.keys.admit([self.table.data[field, rows] for field in self.per], len(rows))
        if self.keys.n > self.groups.shape[1]:
            self.groups = grown(self.groups, 2 * self.keys.n, self.filled)
        if self.keys.n > self.filled:
            new = self.groups[:, self.filled : self.keys.n]
            new[:] = 0
            new[k.LATEST], new[k.TAIL] = -FAR, -1
            self.filled = self.keys.n
        return result

    def fitting(self, rows: RowIds, numbers: Integers) -> Mask:
        """Which rows come after all of their group, whose groups have not been handed over."""
        ends = self.table.data[END, rows]
        first = np.full(self.keys.n, FAR, np.int64)
        np.minimum.at(first, numbers, ends)
        usable = (self.groups[k.HANDED, : self.keys.n] == 0) & (first > self.groups[k.LATEST, : self.keys.n])
        mask: Mask = usable[numbers]
        return mask

    def in_order(self, rows: RowIds, numbers: Integers) -> tuple[RowIds, Mask]:
        """The places of rows by group and in the order of events, and which are the same event as the one before."""
        data = self.table.data
        order = np.lexsort((data[END, rows], numbers))
        pairs = np.stack([numbers[order], data[END, rows[order]]])
        dense = np.zeros(len(rows), np.int64)
        dense[order[1:]] = np.cumsum((pairs[:, 1:] != pairs[:, :-1]).any(axis=0))
        ordering = Ordering(dense).refine(self._columns(rows))
        ranks = ordering.ranks()[ordering.rows]
        return ordering.rows, np.r_[False, ranks[1:] == ranks[:-1]]

    def _columns(self, rows: RowIds) -> Iterator[Callable[[RowIds], Integers]]:
        """The fields that break ties on the end: the start, then the arguments."""
        data, dictionary = self.table.data, self.dictionary
        yield lambda places: data[START, rows[places]]
        for field in self.args:
            yield lambda places, field=field: code_ranks(dictionary, data[field, rows[places]])  # type: ignore[misc]

    def meets_several(self, rows: RowIds, numbers: Integers) -> bool:
        """Whether equal events, or one that may have come before, belong to several groups."""
        data = self.table.data
        if int(data[END, rows].min()) <= self.latest:
            return True
        ordering = Ordering(data[END, rows]).refine(self._columns(rows))
        ranks, groups = ordering.ranks()[ordering.rows], numbers[ordering.rows]
        return bool(((ranks[1:] == ranks[:-1]) & (groups[1:] != groups[:-1])).any())

    def take(self, rows: RowIds, numbers: Integers, shown: Mask | None = None) -> RowIds:
        """Takes in rows of groups that they fit; those that are given. With `shown` that has been decided before."""
        if self.links.shape[1] < self.table.n:
            self.links = grown(self.links, len(self.table.alive), self.links.shape[1])
        if shown is not None:
            self.links[k.GIVEN, rows] = shown
        places, same = self.in_order(rows, numbers)
        ends, ordered = self.table.data[END], rows[places]
        k.throttle(
            ordered, numbers[places], same, ends, self.most, self.every, shown is not None, self.groups, self.links
        )
        self.latest = max(self.latest, int(ends[rows].max()))
        return np.sort(ordered[self.links[k.GIVEN, ordered] != 0])

    def is_handed(self, number: int) -> bool:
        return bool(self.groups[k.HANDED, number])

    def hand_over(self, number: int) -> tuple[RowIds, Mask]:
        """The rows of a group, and which of them are given; the group is not looked after here from now on."""
        rows, row = list[int](), int(self.groups[k.TAIL, number])
        while row >= 0:
            rows.append(row)
            row = int(self.links[k.BEFORE, row])
        self.groups[k.HANDED, number] = 1
        handed = np.array(rows[::-1], np.int64)
        return handed, self.links[k.GIVEN, handed] != 0

    @property
    def bytes(self) -> int:
        return self.keys.bytes + int(self.groups.nbytes + self.links.nbytes)
