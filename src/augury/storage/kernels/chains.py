"""Kernels for rows in chains: the rows of one group, the last one first."""

from __future__ import annotations

from augury.core.arrays import Array, Flags, Integers, RowIds
from augury.core.jit import Kernel

MAKES_NO_ARRAYS = True


@Kernel
def enter_chains(rows: RowIds, groups: RowIds, order: Array, last: Integers, before: Integers) -> None:
    """Puts rows into the chains of their groups, each behind those that do not come after it."""
    for i in range(len(rows)):
        row, group = rows[i], groups[i]
        after, here = -1, last[group]
        while here >= 0 and order[here] > order[row]:
            after, here = here, before[here]
        before[row] = here
        if after < 0:
            last[group] = row
        else:
            before[after] = row


@Kernel
def touching(
    groups: RowIds, lo: Array, hi: Array, last: Integers, before: Integers,
    start: Array, end: Array, alive: Flags, pairs: Array,
) -> int:  # fmt: skip
    """Pairs of a question and a row of its group that stands, starts by `hi` and ends at `lo` or later; how many there are.

    Rows of a group that stand end in the order of their chain. Where there is no room, pairs are just counted.
    """
    n, room = 0, pairs.shape[1]
    for i in range(len(groups)):
        row = last[groups[i]]
        while row >= 0:
            if alive[row]:
                if end[row] < lo[i]:
                    break
                if start[row] <= hi[i]:
                    if n < room:
                        pairs[0, n] = i
                        pairs[1, n] = row
                    n += 1
            row = before[row]
    return n
