"""Rows that say the same as others do: compared by columns, not one by one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from augury.core.arrays import Array, Hashes, Integers
from augury.storage.grouping import Slices, expand_ranges

_FACTOR = np.uint64(0x9FB21C651E98DF25)


@dataclass(frozen=True)
class RowContents:
    """The contents of rows: some fields, a column for each row, and their members, one row after the other."""

    fields: Array
    counts: Integers
    members: Array

    def hashes(self) -> Hashes:
        """A number for each row; rows with equal contents have the same."""
        powers = np.multiply.accumulate(np.full((len(self.fields), 1), _FACTOR))
        result: Hashes = (self.fields.view(np.uint64) * powers).sum(axis=0, dtype=np.uint64)
        result ^= result >> np.uint64(32)
        if not len(self.members):
            return result
        slices = Slices(self.counts)
        offsets = np.arange(len(self.members)) - slices.starts[slices.owner]
        scrambled = (self.members + 1).astype(np.uint64) * _FACTOR
        scrambled ^= scrambled >> np.uint64(29)
        scrambled *= (2 * offsets + 1).view(np.uint64)
        result[slices.some] += np.add.reduceat(scrambled, slices.starts[slices.some])
        return result


def same_contents(old: RowContents, new: RowContents) -> Array:
    """For each new row an old one with equal contents, which no other new row has; -1 where there is none.

    Of old rows with equal hashes one is looked at: if contents that differ share a hash, equal ones may be overlooked.
    """
    size = new.fields.shape[1]
    if not old.fields.shape[1]:
        return np.full(size, -1, np.int64)
    hashes = old.hashes()
    order = np.argsort(hashes, kind="stable")
    nearest = np.minimum(np.searchsorted(hashes[order], new.hashes()), len(order) - 1)
    like = order[nearest]
    equal = (old.fields[:, like] == new.fields).all(axis=0) & (old.counts[like] == new.counts)
    rows = np.flatnonzero(equal)
    if len(new.members) and len(rows):
        counts = new.counts[rows]
        mine = new.members[expand_ranges(Slices(new.counts).starts[rows], counts)]
        its = old.members[expand_ranges(Slices(old.counts).starts[like[rows]], counts)]
        equal[rows[Slices(counts).owner[mine != its]]] = False
    taken = np.full(len(order), -1, np.int64)
    rows = np.flatnonzero(equal)[::-1]
    taken[like[rows]] = rows  # the first of several
    return np.where(equal & (taken[like] == np.arange(size)), like, -1)
