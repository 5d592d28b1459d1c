"""Rows of groups in order, see `storage/segments.py`."""

from __future__ import annotations

from augury.core.arrays import Array
from augury.core.jit import Kernel, helper
from augury.storage.kernels.entries import COUNT, FIRST, ROOM

MAKES_NO_ARRAYS = True


@helper
def comes_before(first: Array, i: int, other: Array, j: int, order: int) -> bool:
    """Whether a row comes before another by their first fields."""
    for f in range(order):
        if first[f, i] != other[f, j]:
            return bool(first[f, i] < other[f, j])
    return False


@helper
def rows_before(pool: Array, first: int, count: int, rows: Array, i: int, order: int) -> int:
    """How many rows of a segment come before a row."""
    lo, hi = 0, count
    if count > 0 and comes_before(pool, first + count - 1, rows, i, order):
        return count
    while lo < hi:
        mid = (lo + hi) >> 1
        if comes_before(pool, first + mid, rows, i, order):
            lo = mid + 1
        else:
            hi = mid
    return lo


@Kernel
def enter_rows(
    groups: Array, begins: Array, rows: Array, order: int, spans: Array, moves: Array, pool: Array, lo: Array
) -> int:  # fmt: skip
    """Puts rows, in order, into the segments of their groups; how many others it has moved.

    Those of `groups[g]` are `begins[g]` up to `begins[g + 1]`; its segment moves to `moves[0, g]`, with room for
    `moves[1, g]`, where that is not -1. `lo` is the first position of each segment that is another row now.
    """
    moved = 0
    for g in range(len(groups)):
        first, count, more = spans[FIRST, groups[g]], spans[COUNT, groups[g]], begins[g + 1] - begins[g]
        kept = rows_before(pool, first, count, rows, begins[g], order)
        if moves[0, g] >= 0:
            for f in range(pool.shape[0]):
                for p in range(count):
                    pool[f, moves[0, g] + p] = pool[f, first + p]
            first = moves[0, g]
            spans[FIRST, groups[g]], spans[ROOM, groups[g]] = first, moves[1, g]
        p, i = count - 1, begins[g + 1] - 1
        for to in range(count + more - 1, kept - 1, -1):
            if p >= kept and (i < begins[g] or comes_before(rows, i, pool, first + p, order)):
                for f in range(pool.shape[0]):
                    pool[f, first + to] = pool[f, first + p]
                p, moved = p - 1, moved + 1
            else:
                for f in range(pool.shape[0]):
                    pool[f, first + to] = rows[f, i]
                i -= 1
        spans[COUNT, groups[g]], lo[g] = count + more, kept
    return moved


@Kernel
def remove_rows(groups: Array, begins: Array, rows: Array, order: int, spans: Array, pool: Array, lo: Array) -> int:
    """Takes rows, in order, out of the segments of their groups; how many others it has moved."""
    moved = 0
    for g in range(len(groups)):
        first, count = spans[FIRST, groups[g]], spans[COUNT, groups[g]]
        p = to = rows_before(pool, first, count, rows, begins[g], order)
        i, lo[g] = begins[g], p
        while p < count:
            while i < begins[g + 1] and comes_before(rows, i, pool, first + p, order):
                i += 1  # it is not there
            if i < begins[g + 1] and not comes_before(pool, first + p, rows, i, order):
                i += 1
            else:
                for f in range(pool.shape[0]):
                    pool[f, first + to] = pool[f, first + p]
                to, moved = to + 1, moved + 1
            p += 1
        spans[COUNT, groups[g]] = to
    return moved
