"""Sorts the members of groups."""

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
