"""Rows side by side in groups, column by column."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from augury.core.arrays import Array, Integers, Mask

_MANY = 1 << 12
_RUNS = 16  # that are merged


class Slices:
    """Groups of members that stand one after the other: where each starts, and how many it has."""

    def __init__(self, counts: Integers) -> None:
        self.counts = counts
        self.starts = np.cumsum(counts) - counts

    @staticmethod
    def beginning(first: Array, size: int) -> Slices:
        """Groups that begin at these places, the last of which ends with all."""
        return Slices(np.diff(np.r_[first, size]))

    def __len__(self) -> int:
        return len(self.counts)

    @cached_property
    def owner(self) -> Array:
        """The group of each member."""
        return np.repeat(np.arange(len(self.counts)), self.counts)

    @cached_property
    def some(self) -> Array:
        """The groups that have members."""
        return np.flatnonzero(self.counts)

    def where(self, keep: Mask) -> Slices:
        """The same groups with some of their members."""
        if keep.all():
            return self
        ends = np.r_[0, np.cumsum(keep)]
        return Slices(ends[self.starts + self.counts] - ends[self.starts])

    def members(self, groups: Array) -> Array:
        """The places of the members of some groups, one group after the other."""
        return expand_ranges(self.starts[groups], self.counts[groups])


def expand_ranges(starts: Integers, counts: Integers) -> Array:
    """The numbers from each start on, so many as are counted there."""
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    return np.repeat(starts - (ends - counts), counts) + np.arange(total)


def by_group(groups: Array, times: Array) -> Array:
    """The order of rows by their groups, which are numbers from zero, and by time in each; equal ones stay as they stand.

    Times mostly come in order, or in a few runs, which are merged before rows go to their groups; or groups stand in order.
    """
    falls = int(np.count_nonzero(times[1:] < times[:-1]))
    if not falls:
        return ascending(groups)
    if falls > _RUNS:
        low = int(times.min())
        width = int(times.max()) - low + 1
        if (int(groups.max()) + 1) * width < 2**62:
            return np.argsort(groups * width + (times - low), kind="stable")
    order = np.argsort(times, kind="stable")
    return order[ascending(groups[order])]


def ascending(numbers: Integers) -> Array:
    """The order of numbers, none of them below zero; equal ones stay as they stand. Of two bytes at a time it is soonest found."""
    if len(numbers) < _MANY or int(numbers.max()) >= 2**32:
        return np.argsort(numbers, kind="stable")
    order = np.argsort(numbers.astype(np.uint16), kind="stable")
    upper = (numbers >> 16).astype(np.uint16)
    return order[np.argsort(upper[order], kind="stable")] if upper.any() else order


def in_groups(keys: list[Array]) -> tuple[Array, Array]:
    """An order in which equal keys stand together, the first one in order, and where each group begins in it."""
    whole = keys[0] - keys[0].min()
    for key in keys[1:]:
        low = int(key.min())
        width = int(key.max()) - low + 1
        if int(whole.max() + 1) * width >= 2**62:
            order = np.lexsort(keys[::-1])
            break
        whole = whole * width + (key - low)
    else:
        order = ascending(whole)
    begins = np.zeros(len(order), bool)
    begins[0] = True
    for key in keys:
        inside = key[order]
        begins[1:] |= inside[1:] != inside[:-1]
    return order, np.flatnonzero(begins)
