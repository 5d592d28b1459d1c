"""Kernels for the timelines of changing facts, see `knowledge/solving/timelines.py`."""

from __future__ import annotations

from augury.core.arrays import Array, Flags, RowIds, Times
from augury.core.jit import Kernel, helper

MAKES_NO_ARRAYS = True
TIME, MADE, ENDED, SAID, SAID_UNTIL, REACH = range(6)  # of an entry of a timeline
FIRST, COUNT, ROOM = range(3)  # where the timeline of a fact is
UNSAID, ASSERTED, ASSERTED_ANEW, RETRACTED = range(4)  # what was said for a time
MAKE, UNMAKE, END_IT, UNEND, ASSERT, RETRACT, SET = range(7)  # what is done to an entry; SET + what was said
ALWAYS, EVER = -(2**63), 2**63 - 1


@helper
def reach_of(entries: Array, i: int, before: int) -> int:
    """Up to when a fact holds by an entry and by those before it, which say up to `before`; ALWAYS after a retraction."""
    said = entries[SAID, i]
    if said == RETRACTED:
        return ALWAYS
    if said == UNSAID:
        if entries[MADE, i] > 0:
            return EVER
        return ALWAYS if entries[ENDED, i] > 0 else before
    until: int = EVER if said == ASSERTED and entries[MADE, i] > 0 else entries[SAID_UNTIL, i]
    return max(until, before)


@helper
def alter(entries: Array, i: int, act: int, until: int, olds: Array, change: int) -> bool:
    """Applies a statement to an entry, and notes the earlier one; whether it could be applied."""
    olds[0, change], olds[1, change] = entries[SAID, i], entries[SAID_UNTIL, i]
    if act == MAKE:
        entries[MADE, i] += 1
    elif act == UNMAKE:
        entries[MADE, i] -= 1
    elif act == END_IT:
        entries[ENDED, i] += 1
    elif act == UNEND:
        entries[ENDED, i] -= 1
    elif act == RETRACT:
        entries[SAID, i] = RETRACTED
    elif act == ASSERT:
        said = entries[SAID, i]
        if said == UNSAID:
            entries[SAID, i], entries[SAID_UNTIL, i] = ASSERTED, until
        elif said == RETRACTED:
            entries[SAID, i], entries[SAID_UNTIL, i] = ASSERTED_ANEW, until
        elif until > entries[SAID_UNTIL, i]:
            entries[SAID_UNTIL, i] = until
    else:
        entries[SAID, i], entries[SAID_UNTIL, i] = act - SET, until
    return bool(entries[MADE, i] >= 0 and entries[ENDED, i] >= 0)


@helper
def span(lo: int, hi: int, was: int, now: int, spans: Array, group: int) -> None:
    """Widens what has changed by the times of [lo, hi) at which a fact held before and does not now, or the reverse."""
    lo, hi = max(lo, min(was, now)), min(hi, max(was, now))
    if lo < hi:
        spans[0, group], spans[1, group] = min(spans[0, group], lo), max(spans[1, group], hi)


@helper
def entries_before(entries: Array, first: int, count: int, time: int, inclusive: bool) -> int:
    """How many entries of a timeline come before a time, or at the latest then, where its own entry counts."""
    lo, hi = 0, count
    while lo < hi:
        mid = (lo + hi) >> 1
        if entries[TIME, first + mid] < time or (inclusive and entries[TIME, first + mid] == time):
            lo = mid + 1
        else:
            hi = mid
    return lo


@helper
def hull(entries: Array, first: int, count: int, row: int, since: Times, until: Times, alive: Flags) -> None:
    """Bounds for the times at which a fact holds."""
    alive[row] = 1 if count > 0 else 0
    if count > 0:
        last = first + count - 1
        since[row], until[row] = entries[TIME, first], max(entries[TIME, last], entries[REACH, last])


@Kernel
def unchanged(touched: Array, begins: Array, times: Times, places: Array, entries: Array, kept: Array) -> None:
    """How many entries of each timeline come before the first of its changes."""
    for g in range(len(touched)):
        row = touched[g]
        first, count = places[FIRST, row], places[COUNT, row]
        kept[g] = entries_before(entries, first, count, times[begins[g]], False) if first >= 0 else 0


@Kernel
def apply_changes(
    groups: Array, begins: Array, times: Times, acts: Array, untils: Array, places: Array, entries: Array, tail: Array,
    since: Times, until: Times, alive: Flags, olds: Array, spans: Array,
) -> int:  # fmt: skip
    """Takes changes into the timelines of facts; -1, or the number of one that does not fit.

    The changes of the fact `groups[0, g]` are those from `begins[g]` on, in the order of their times; its timeline moves to
    `groups[1, g]`, where that is not -1. `spans` has for each fact the times over which it changes, and whether it held
    without end before, and does now; `olds` what was said before each change.
    """
    for g in range(groups.shape[1]):
        row, lo, hi = groups[0, g], begins[g], begins[g + 1]
        first, count = places[FIRST, row], places[COUNT, row]
        spans[0, g], spans[1, g] = EVER, ALWAYS
        spans[2, g] = 1 if count > 0 and entries[REACH, first + count - 1] == EVER else 0
        entry = entries_before(entries, first, count, times[lo], False)
        left = count - entry
        for f in range(6):
            for i in range(left):
                tail[f, i] = entries[f, first + entry + i]
        if groups[1, g] >= 0:
            moved = groups[1, g]
            for f in range(6):
                for i in range(entry):
                    entries[f, moved + i] = entries[f, first + i]
            first = moved
            places[FIRST, row], places[ROOM, row] = moved, groups[2, g]
        was = entries[REACH, first + entry - 1] if entry > 0 else ALWAYS
        now, seen, before = was, 0, times[lo]
        while seen < left or lo < hi:
            time = tail[TIME, seen] if seen < left else EVER
            if lo < hi and times[lo] < time:
                time = times[lo]
            span(before, time, was, now, spans, g)
            new = first + entry
            if seen < left and tail[TIME, seen] == time:
                for f in range(6):
                    entries[f, new] = tail[f, seen]
                was = tail[REACH, seen]
                seen += 1
            else:
                for f in range(1, 6):
                    entries[f, new] = 0
                entries[TIME, new] = time
            while lo < hi and times[lo] == time:
                if not alter(entries, new, acts[lo], untils[lo], olds, lo):
                    return int(lo)
                lo += 1
            if entries[MADE, new] > 0 or entries[ENDED, new] > 0 or entries[SAID, new] != UNSAID:
                now = reach_of(entries, new, now)
                entries[REACH, new] = now
                entry += 1
            before = time
        span(before, EVER, was, now, spans, g)
        places[COUNT, row] = entry
        spans[3, g] = 1 if entry > 0 and now == EVER else 0
        hull(entries, first, entry, row, since, until, alive)
    return -1


@Kernel
def retell(
    places: Array, n: int, entries: Array, floor: int, unmade: bool, since: Times, until: Times, alive: Flags
) -> None:
    """Prunes all timelines: entries up to `floor` become at most one; `unmade` forgets assertions by events."""
    for row in range(n):
        first, count = places[FIRST, row], places[COUNT, row]
        if first < 0:
            continue
        old = entries_before(entries, first, count, floor, True) if floor > ALWAYS else 0
        entry, reach = 0, ALWAYS
        if old > 0:
            last = first + old - 1
            reach = entries[REACH, last]
            if reach > floor + 1:
                entries[TIME, first], entries[MADE, first], entries[ENDED, first] = entries[TIME, last], 0, 0
                entries[SAID, first], entries[SAID_UNTIL, first] = ASSERTED_ANEW, reach
                entries[REACH, first] = reach
                entry = 1
            else:
                reach = ALWAYS
        for i in range(old, count):
            for f in range(6):
                entries[f, first + entry] = entries[f, first + i]
            if unmade:
                entries[MADE, first + entry] = entries[ENDED, first + entry] = 0
            if (
                entries[MADE, first + entry] > 0
                or entries[ENDED, first + entry] > 0
                or entries[SAID, first + entry] != UNSAID
            ):
                reach = reach_of(entries, first + entry, reach)
                entries[REACH, first + entry] = reach
                entry += 1
        places[COUNT, row] = entry
        hull(entries, first, entry, row, since, until, alive)


@Kernel
def repack(places: Array, n: int, entries: Array, packed: Array) -> int:
    """Copies timelines to where nothing is between them; how many entries there are."""
    used = 0
    for row in range(n):
        first, count = places[FIRST, row], places[COUNT, row]
        if first >= 0:
            for f in range(6):
                for i in range(count):
                    packed[f, used + i] = entries[f, first + i]
            places[FIRST, row], places[ROOM, row] = used, count
            used += count
    return used


@Kernel
def holding(rows: RowIds, times: Array, places: Array, entries: Array, held: Array) -> None:
    """Which facts hold at a time, of those that have a timeline; the others are left as they are."""
    for i in range(len(rows)):
        first = places[FIRST, rows[i]]
        if first >= 0:
            before = entries_before(entries, first, places[COUNT, rows[i]], times[i], True)
            held[i] = before > 0 and entries[REACH, first + before - 1] > times[i]
