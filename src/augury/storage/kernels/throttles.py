"""Throttles over events that come in order: of each key at most so many within a length of time."""

from __future__ import annotations

from augury.core.arrays import Integers, Mask, RowIds, Times
from augury.core.jit import Kernel

MAKES_NO_ARRAYS = True
# Of a group: the latest end, how many were given (n at most), the n-th last and the last of these, the last row, whether
# it has been handed over to the operator.
LATEST, COUNT, NTH, LAST, TAIL, HANDED = 0, 1, 2, 3, 4, 5
# Of a row: the row before it in its group, the next one that was given after it, whether it was given.
BEFORE, NEXT_GIVEN, GIVEN = 0, 1, 2


@Kernel
def throttle(
    rows: RowIds, numbers: Integers, same: Mask, ends: Times, most: int, every: int, decided: bool,
    groups: Integers, links: Integers,
) -> None:  # fmt: skip
    """Takes in rows by group and in the order of events; decides which are given, unless that is known (`decided`).

    A row that is the `same` event as the one before is given with it. `every` is negative where all that was given counts.
    """
    for i in range(len(rows)):
        row, g = rows[i], numbers[i]
        links[BEFORE, row] = groups[TAIL, g]
        groups[TAIL, g] = row
        groups[LATEST, g] = ends[row]
        if same[i]:
            links[GIVEN, row] = links[GIVEN, rows[i - 1]]
            continue
        if not decided:
            full = groups[COUNT, g] == most
            links[GIVEN, row] = not full or (every >= 0 and ends[groups[NTH, g]] + every <= ends[row])
        if not links[GIVEN, row]:
            continue
        if groups[COUNT, g] > 0:
            links[NEXT_GIVEN, groups[LAST, g]] = row
        groups[LAST, g] = row
        if groups[COUNT, g] == most:
            groups[NTH, g] = links[NEXT_GIVEN, groups[NTH, g]]
        else:
            groups[COUNT, g] += 1
            if groups[COUNT, g] == 1:
                groups[NTH, g] = row
