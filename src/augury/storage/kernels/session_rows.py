"""Session windows over the occurrences of each key, see `engine/operators/session_windows.py`."""

from __future__ import annotations

from augury.core.arrays import Array, Times
from augury.core.jit import Kernel, helper
from augury.storage.kernels.entries import COUNT, FIRST, entries_before

MAKES_NO_ARRAYS = True
# Of an occurrence: its times, its row or that of a stub (`~row`), then the greatest end of its session so far, and the
# start of the session; of the first one of a session its window, a row of the output or -1.
START, END, ROW, GREATEST, BEGIN, WINDOW = range(6)
UNKNOWN = -(2**63)


@helper
def last_of(pool: Array, first: int, count: int, begin: int) -> int:
    """The last occurrence of the session that begins then."""
    lo, hi = 0, count
    if pool[BEGIN, first + count - 1] == begin:
        return count - 1
    while lo < hi:
        mid = (lo + hi) >> 1
        if pool[BEGIN, first + mid] <= begin:
            lo = mid + 1
        else:
            hi = mid
    return lo - 1


@Kernel
def disturbed_sessions(
    groups: Array, los: Times, his: Times, gap: int, spans: Array, pool: Array, windows: Array, counts: Array
) -> None:
    """The sessions that occurrences from `los` to `his` concern, by group and start: their windows no longer hold.

    Afterwards `groups`, `los` and `his` have the `counts[0]` times over which sessions change, in order and apart from each
    other; `windows` the `counts[1]` rows that no longer hold, `counts[2]` sessions were looked at.
    """
    merged = n = 0
    for i in range(len(groups)):
        first, count, lo, hi = spans[FIRST, groups[i]], spans[COUNT, groups[i]], los[i], his[i]
        q = entries_before(pool, first, count, hi + gap, True) - 1
        least = lo - gap
        while q >= 0:
            begin = pool[BEGIN, first + q]
            end = pool[GREATEST, first + last_of(pool, first, count, begin)]
            counts[2] += 1
            if end < least:
                break
            lo, hi = min(lo, begin), max(hi, end)
            q = entries_before(pool, first, count, begin, False)
            if pool[WINDOW, first + q] >= 0:
                windows[n], pool[WINDOW, first + q] = pool[WINDOW, first + q], -1
                n += 1
            q -= 1
        if merged > 0 and groups[merged - 1] == groups[i] and lo <= his[merged - 1]:
            his[merged - 1] = max(his[merged - 1], hi)
        else:
            groups[merged], los[merged], his[merged] = groups[i], lo, hi
            merged += 1
    counts[0], counts[1] = merged, n


@Kernel
def divide_sessions(
    groups: Array, los: Times, his: Times, gap: int, spans: Array, pool: Array, counts: Array
) -> None:  # fmt: skip
    """Divides the occurrences that begin over some times, and those after them that this changes, into sessions.

    `counts` gets how many sessions that are at most, and how many occurrences were looked at.
    """
    for i in range(len(groups)):
        first, count = spans[FIRST, groups[i]], spans[COUNT, groups[i]]
        p = entries_before(pool, first, count, los[i], False)
        counts[0] += 1
        while p < count:
            start, end, place_in_pool = pool[START, first + p], pool[END, first + p], first + p
            begin, greatest = start, end
            if p > 0 and start <= pool[GREATEST, place_in_pool - 1] + gap:
                begin, greatest = pool[BEGIN, place_in_pool - 1], max(end, pool[GREATEST, place_in_pool - 1])
            else:
                counts[0] += 1
            counts[1] += 1
            if start > his[i] and pool[BEGIN, place_in_pool] == begin and pool[GREATEST, place_in_pool] == greatest:
                break
            pool[BEGIN, place_in_pool], pool[GREATEST, place_in_pool] = begin, greatest
            p += 1


@Kernel
def sessions_over(groups: Array, los: Times, his: Times, spans: Array, pool: Array, sessions: Array) -> int:
    """The sessions that have occurrences which begin over some times: group, begin, end, first position; how many."""
    n = upto = 0
    for i in range(len(groups)):
        first, count = spans[FIRST, groups[i]], spans[COUNT, groups[i]]
        if i == 0 or groups[i] != groups[i - 1]:
            upto = 0
        p = max(upto, entries_before(pool, first, count, los[i], False))
        while p < count and pool[START, first + p] <= his[i]:
            last = last_of(pool, first, count, pool[BEGIN, first + p])
            sessions[0, n], sessions[1, n], sessions[2, n] = (
                groups[i],
                pool[BEGIN, first + p],
                pool[GREATEST, first + last],
            )
            sessions[3, n] = first + p
            n += 1
            p = upto = last + 1
    return n


@Kernel
def find_sessions(groups: Array, begins: Times, ends: Times, spans: Array, pool: Array, positions: Array) -> None:
    """The first positions of sessions; -1 of those that are others now."""
    for i in range(len(groups)):
        first, count = spans[FIRST, groups[i]], spans[COUNT, groups[i]]
        p = entries_before(pool, first, count, begins[i], False)
        positions[i] = -1
        if p < count and pool[START, first + p] == begins[i] and pool[BEGIN, first + p] == begins[i]:
            end = pool[GREATEST, first + last_of(pool, first, count, begins[i])]
            positions[i] = first + p if end == ends[i] else -1
