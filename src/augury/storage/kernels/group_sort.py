"""Sorts the members of groups, and breaks ties."""

from __future__ import annotations

from augury.core.arrays import Array
from augury.core.jit import Kernel

_FEW = 24  # numbers that are sorted by insertion


@Kernel
def sort_groups(x: Array, starts: Array, counts: Array) -> None:
    """Sorts the numbers of each group, in place."""
    for g in range(len(starts)):
        lo, hi = starts[g], starts[g] + counts[g]
        if counts[g] > _FEW:
            x[lo:hi].sort()
            continue
        for i in range(lo + 1, hi):
            value, here = x[i], i
            while here > lo and x[here - 1] > value:
                x[here] = x[here - 1]
                here -= 1
            x[here] = value


@Kernel
def order_ties(values: Array, starts: Array, order: Array) -> None:
    """The order of rows by their values within each tie, which begins at one start and ends before the next.

    `order` is that of the rows as they are, and is changed. Ties are short: rows are inserted one by one.
    """
    for g in range(len(starts)):
        lo = starts[g]
        hi = starts[g + 1] if g + 1 < len(starts) else len(order)
        for i in range(lo + 1, hi):
            row, here = order[i], i
            while here > lo and values[order[here - 1]] > values[row]:
                order[here] = order[here - 1]
                here -= 1
            order[here] = row
