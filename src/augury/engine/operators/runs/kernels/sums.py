"""Aggregates along a run: a match has what it goes on from, and one value more."""

from __future__ import annotations

from augury.core.arrays import Array, Codes, RowIds
from augury.core.jit import Kernel

MAKES_NO_ARRAYS = True
# What is kept of an aggregate: how many values it has; their sum, of ones, of 2^-62 and of 2^-124, or the code of the best
# one and a number that orders as it does; flags.
A_COUNT, A_ONES, A_MIDDLE, A_LEAST, A_FLAGS = 0, 1, 2, 3, 4
A_CODE, A_NUMBER = A_ONES, A_MIDDLE
ITSELF = -2  # as a source: a match goes on from what it has itself
NULL, INTEGER, FLOAT, HARD = 0, 1, 2, 4  # kinds of values, and flags
LIMB = 1 << 62


@Kernel
def carry(
    rows: RowIds, sources: Array, slots: Array, sign: int, kinds: Array, codes: Codes, limbs: Array, state: Array
) -> None:  # fmt: skip
    """Matches have what those have that they go on from, -1 for nothing, and one more value, where they have a slot.

    With a `sign` the greatest value stays (1), or the least (-1); of equal ones the first.
    """
    for i in range(len(rows)):
        row, source, at = rows[i], sources[i], slots[i]
        if source == -1:
            for f in range(5):
                state[f, row] = 0
        elif source >= 0:
            for f in range(5):
                state[f, row] = state[f, source]
        if at < 0 or kinds[at] == NULL:
            continue
        state[A_FLAGS, row] |= kinds[at]
        if kinds[at] == HARD:
            continue
        if sign == 0:
            ones, middle = state[A_ONES, row] + limbs[0, at], state[A_MIDDLE, row] + limbs[1, at]
            least = state[A_LEAST, row] + limbs[2, at]
            if least >= LIMB:
                least, middle = least - LIMB, middle + 1
            elif least <= -LIMB:
                least, middle = least + LIMB, middle - 1
            if middle >= LIMB:
                middle, ones = middle - LIMB, ones + 1
            elif middle <= -LIMB:
                middle, ones = middle + LIMB, ones - 1
            if abs(ones) >= 1 << 60:
                state[A_FLAGS, row] |= HARD
            state[A_ONES, row], state[A_MIDDLE, row], state[A_LEAST, row] = ones, middle, least
        else:
            number, known = limbs[1, at], state[A_NUMBER, row]
            if state[A_COUNT, row] == 0 or (number > known if sign > 0 else number < known):
                state[A_CODE, row], state[A_NUMBER, row] = codes[at], number
        state[A_COUNT, row] += 1
