"""Intervals of each key in the order of their beginnings, with a tree of greatest ends: those that contain a time.

Node `i` of the tree of a segment (`storage/segments.py`) stands at `first + i`: below it are nodes `2i` and `2i + 1`, and
node `room + p` is the p-th interval itself.
"""

from __future__ import annotations

from augury.core.arrays import Array, Mask, RowIds, Times
from augury.core.jit import Kernel, helper
from augury.storage.kernels.entries import ALWAYS, COUNT, FIRST, REACH, ROOM, TIME, entries_before
from augury.storage.kernels.segment_rows import rows_before

MAKES_NO_ARRAYS = True
SINCE, ROW, UNTIL = range(3)  # of an interval; one that no longer counts is until ALWAYS
QUESTION, POSITION, FOUND, STEPS = range(4)  # how far a search is, and how many nodes it has looked at


@helper
def node(pool: Array, tree: Array, first: int, room: int, i: int) -> int:
    """The greatest end below a node."""
    return pool[UNTIL, first + i - room] if i >= room else tree[first + i]  # type: ignore[no-any-return]


@helper
def retree(pool: Array, tree: Array, first: int, room: int, lo: int, hi: int) -> None:
    """Sets the nodes above the intervals from `lo` up to, not including, `hi`."""
    lo, hi = (room + lo) >> 1, (room + hi - 1) >> 1
    while hi > 0:
        for i in range(lo, hi + 1):
            tree[first + i] = max(node(pool, tree, first, room, 2 * i), node(pool, tree, first, room, 2 * i + 1))
        lo, hi = lo >> 1, hi >> 1


@helper
def previous(pool: Array, tree: Array, first: int, room: int, bound: int, time: int) -> int:
    """The last interval before the position `bound` that ends after a time; -1 without any."""
    i = room + bound
    if bound == room:
        i = 1
        if node(pool, tree, first, room, i) <= time:
            return -1
    else:
        reaches = False
        while not reaches and i & (i - 1):
            if i & 1:
                i -= 1
                reaches = node(pool, tree, first, room, i) > time
            else:
                i >>= 1
        if not reaches:
            return -1
    while i < room:
        i = 2 * i + 1 if node(pool, tree, first, room, 2 * i + 1) > time else 2 * i
    return i - room


@Kernel
def containing(groups: Array, times: Times, spans: Array, pool: Array, tree: Array, state: Array, pairs: Array) -> bool:
    """Pairs of a question, for a group at a time, and a fact; whether all are found, else it goes on from `state`."""
    q, bound, n = state[QUESTION], state[POSITION], 0
    while q < len(groups):
        first, room = spans[FIRST, groups[q]], spans[ROOM, groups[q]]
        if bound < 0:
            bound = entries_before(pool, first, spans[COUNT, groups[q]], times[q], True)
        bound = previous(pool, tree, first, room, bound, times[q]) if room else -1
        state[STEPS] += 1
        if bound >= 0:
            if n == pairs.shape[1]:
                state[QUESTION], state[POSITION], state[FOUND] = q, bound + 1, n
                return False
            pairs[0, n], pairs[1, n] = q, pool[ROW, first + bound]
            n += 1
        else:
            q += 1
    state[FOUND] = n
    return True


@Kernel
def later_entries(rows: RowIds, begin: Times, places: Array, entries: Array, lo: Array) -> None:
    """The first entry of each timeline from a time on; -1 of a fact without a timeline."""
    for i in range(len(rows)):
        first = places[FIRST, rows[i]]
        lo[i] = entries_before(entries, first, places[COUNT, rows[i]], begin[i], False) if first >= 0 else -1


@Kernel
def intervals_of(rows: RowIds, lo: Array, places: Array, entries: Array, intervals: Array) -> int:
    """The intervals of timelines from an entry on: the number of the fact among `rows`, since, until. How many there are."""
    n = 0
    for i in range(len(rows)):
        first, count = places[FIRST, rows[i]], places[COUNT, rows[i]]
        for e in range(lo[i], count):
            until = entries[REACH, first + e]
            if e + 1 < count:
                until = min(until, entries[TIME, first + e + 1])
            if entries[TIME, first + e] < until:
                intervals[0, n], intervals[1, n], intervals[2, n] = i, entries[TIME, first + e], until
                n += 1
    return n


@Kernel
def forget_intervals(begin: Array, last: Times, groups: Array, spans: Array, pool: Array, tree: Array) -> int:
    """Lets the intervals of facts from a time on (since, fact) no longer count; how many intervals it has looked at."""
    seen = 0
    for i in range(begin.shape[1]):
        row = begin[ROW, i]
        first, count, room = spans[FIRST, groups[row]], spans[COUNT, groups[row]], spans[ROOM, groups[row]]
        p = rows_before(pool, first, count, begin, i, 2)
        while p < count and pool[SINCE, first + p] <= last[row]:
            if pool[ROW, first + p] == row:
                pool[UNTIL, first + p] = ALWAYS
                retree(pool, tree, first, room, p, p + 1)
            p += 1
            seen += 1
    return seen


@Kernel
def renew_intervals(
    groups: Array, new: Array, spans: Array, pool: Array, tree: Array, last: Times, fresh: Mask
) -> None:
    """Gives intervals (since, fact, until) that are there already their ends; `fresh` are the others."""
    for i in range(len(groups)):
        first, count, room = spans[FIRST, groups[i]], spans[COUNT, groups[i]], spans[ROOM, groups[i]]
        row = new[ROW, i]
        last[row] = max(last[row], new[SINCE, i])
        p = rows_before(pool, first, count, new, i, 2)
        fresh[i] = p == count or pool[SINCE, first + p] != new[SINCE, i] or pool[ROW, first + p] != row
        if not fresh[i]:
            pool[UNTIL, first + p] = new[UNTIL, i]
            retree(pool, tree, first, room, p, p + 1)


@Kernel
def retree_segments(groups: Array, lo: Array, outgrown: Mask, spans: Array, pool: Array, tree: Array) -> None:
    """Rebuilds the trees of segments from the first new position on."""
    for g in range(len(groups)):
        first, count, room = spans[FIRST, groups[g]], spans[COUNT, groups[g]], spans[ROOM, groups[g]]
        if outgrown[g]:
            for p in range(count, room):
                pool[UNTIL, first + p] = ALWAYS
            retree(pool, tree, first, room, 0, room)
        else:
            retree(pool, tree, first, room, lo[g], count)
