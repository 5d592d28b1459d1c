"""Joins: pairs of rows that agree on a key and meet bounds on their times."""

from __future__ import annotations

from typing import NamedTuple

from augury.core.arrays import Array, Codes, Flags, Integers, RowData, RowIds
from augury.core.bounds import FAR
from augury.core.fields import END, LEFT, RANK, RIGHT, START
from augury.core.jit import Kernel, helper
from augury.storage.kernels.hashing import AHEAD, FAR_AWAY, group_of, read_ahead
from augury.storage.kernels.index import CALL, LAST_FOUND, TAIL, seek, unlink

MAKES_NO_ARRAYS = True


class IndexArrays(NamedTuple):
    """An index with the rows of its table. Kernels that run for each pushed event take the arrays one by one: to hand
    over a record costs half a microsecond more."""

    data: RowData
    fields: Array
    alive: Flags
    order: int
    buckets: Integers
    groups: Array
    prev: Integers
    after: Integers


@helper
def meets_all(bounds: Array, data: RowData, row: int, others: Array, other: int) -> bool:
    """Whether two rows meet all bounds `x - y <= limit`; a bound is (side of x, field of x, side, field, limit)."""
    for k in range(len(bounds)):
        x = data[bounds[k, 1], row] if bounds[k, 0] == 0 else others[bounds[k, 1], other]
        y = data[bounds[k, 3], row] if bounds[k, 2] == 0 else others[bounds[k, 3], other]
        if x - y > bounds[k, 4]:
            return False
    return True


@helper
def next_group(
    i: int, ready: int, rows: RowIds, data: RowData, keys: Array, alive: Flags, others: Array, okeys: Array, buckets: Integers,
    groups: Array, canon: Codes, nullish: Array,
) -> tuple[int, int, int]:  # fmt: skip
    """The next of some rows, from `i` on, that stands and whose key an index has: its place, and its group there; -1
    where there is none. Buckets of the rows before `ready` have been read ahead."""
    while i < len(rows):
        if i >= ready:
            ready = min(i + AHEAD, len(rows))
            if not read_ahead(rows, i, ready, data, keys, buckets, canon, nullish):
                i = ready
                continue
        if alive[rows[i]]:
            g = group_of(data, rows[i], keys, others, okeys, buckets, groups, canon, nullish)
            if g >= 0:
                return i, g, ready
        i += 1
    return i, -1, ready


@helper
def leave(row: int, groups: Array, g: int, prev: Integers, after: Integers) -> int:
    """Takes a row that is dead out of a chain; the one before it."""
    unlink(row, after[row], groups, g, prev, after)
    if groups[g, LAST_FOUND] == row:  # a search must not begin at what is no longer in the chain
        groups[g, CALL] = -1
    return int(prev[row])


@Kernel
def probe(
    rows: RowIds, first: int, data: RowData, keys: Array, alive: Flags,
    others: Array, okeys: Array, oalive: Array, order: int,
    buckets: Integers, groups: Array, prev: Integers, after: Integers, call: int, canon: Codes, nullish: Array,
    span: Array, reach: Array, floor: int, limit: int, bounds: Array, most: int, pairs: Array,
) -> tuple[int, int, int]:  # fmt: skip
    """Pairs rows with the rows of an index that have their key and meet the bounds.

    Of the index only rows before `limit` count, and of each chain only those whose `order` field is within `reach` of four
    fields of the row, its `span`: at least the first two and reach[0] and reach[1], and the field `floor`, where there is
    one; at most the last two and reach[2] and reach[3]. With `most`, a row takes that many at most, the latest first. The
    dead leave the chains as they are walked. Returns how far it came, how many pairs it found, and how many rows it
    touched; it stops early where `found` has no room.
    """
    n, room, touched, ready = 0, pairs.shape[1], 0, 0 if len(buckets) >= FAR_AWAY else len(rows)
    i = first - 1
    while i + 1 < len(rows):  # as `next_group` does: written out here, where it costs a twentieth to call it
        i += 1
        if i >= ready:
            ready = min(i + AHEAD, len(rows))
            if not read_ahead(rows, i, ready, data, keys, buckets, canon, nullish):
                i = ready - 1
                continue
        row = rows[i]
        if not alive[row]:
            continue
        g = group_of(data, row, keys, others, okeys, buckets, groups, canon, nullish)
        if g < 0:
            continue
        low = max(data[span[0], row] + reach[0], data[span[1], row] + reach[1])
        if floor >= 0:
            low = max(low, data[floor, row])
        high = min(data[span[2], row] + reach[2], data[span[3], row] + reach[3])
        began, other = n, groups[g, TAIL]
        if other >= 0 and others[order, other] > high:  # mostly the last one is it
            other = seek(high, others, order, groups, g, prev, after, call)
        while other >= 0:
            touched += 1
            if others[order, other] < low:  # asked first: where a search ends, it need not know whether the row stands
                break
            if not oalive[other]:
                other = leave(other, groups, g, prev, after)
                continue
            if other < limit and meets_all(bounds, data, row, others, other):
                if n == room:
                    return i, began, touched
                pairs[0, n] = row
                pairs[1, n] = other
                n += 1
                if n - began == most:
                    break
            other = prev[other]
    return len(rows), n, touched


@Kernel
def probe_last(
    rows: RowIds, first: int, data: RowData, keys: Array, alive: Flags,
    others: Array, okeys: Array, oalive: Array, order: int,
    buckets: Integers, groups: Array, prev: Integers, after: Integers, call: int, canon: Codes, nullish: Array,
    high: int, most: int, pairs: Array,
) -> tuple[int, int, int]:  # fmt: skip
    """Like `probe`, for the last ones up to the field `high`: so many, and what ends together with the first of
    them. Those of a row stand from the earliest to the latest."""
    n, room, touched, ready = 0, pairs.shape[1], 0, 0 if len(buckets) >= FAR_AWAY else len(rows)
    i = first
    while True:
        i, g, ready = next_group(i, ready, rows, data, keys, alive, others, okeys, buckets, groups, canon, nullish)
        if g < 0:
            return len(rows), n, touched
        row = rows[i]
        began, other, least = n, groups[g, TAIL], 0
        if other >= 0 and others[order, other] > data[high, row]:
            other = seek(data[high, row], others, order, groups, g, prev, after, call)
        while other >= 0:
            touched += 1
            if not oalive[other]:
                other = leave(other, groups, g, prev, after)
                continue
            if n - began >= most and others[order, other] < least:
                break
            if n == room:
                return i, began, touched
            pairs[0, n] = row
            pairs[1, n] = other
            n += 1
            least = others[order, other]
            other = prev[other]
        lo, hi = began, n - 1
        while lo < hi:
            pairs[1, lo], pairs[1, hi] = pairs[1, hi], pairs[1, lo]
            lo, hi = lo + 1, hi - 1
        i += 1


@Kernel
def rows_with_last(
    events: Array, first: int, mine: IndexArrays, theirs: IndexArrays, canon: Codes, nullish: Array, limit: int, most: int, partners: Array
) -> tuple[int, int, int]:  # fmt: skip
    """The rows of an index among whose last ones given rows may be: as many others, `most`, do not end between the two.

    Given rows have an index of their own. Returns how far it came, how many it found, and how many rows it touched.
    """
    data, others, n, touched = mine.data, theirs.data, 0, 0
    for i in range(first, len(events)):
        q = events[i]
        until = FAR
        g = group_of(data, q, mine.fields, data, mine.fields, mine.buckets, mine.groups, canon, nullish)
        if g >= 0:
            later, here = -1, mine.groups[g, TAIL]
            while here >= 0 and data[END, here] > data[END, q]:
                later, here = here, mine.prev[here]
            count = 0
            while later >= 0 and count < most:
                touched += 1
                count += mine.alive[later]
                until = data[END, later]
                later = mine.after[later]
            if count < most:
                until = FAR
        g = group_of(data, q, mine.fields, others, theirs.fields, theirs.buckets, theirs.groups, canon, nullish)
        if g < 0:
            continue
        began, here = n, theirs.groups[g, TAIL]
        while here >= 0 and others[theirs.order, here] >= until:
            here = theirs.prev[here]
        while here >= 0 and others[theirs.order, here] >= data[END, q]:
            touched += 1
            if here < limit and theirs.alive[here]:
                if n == len(partners):
                    return i, began, touched
                partners[n] = here
                n += 1
            here = theirs.prev[here]
    return len(events), n, touched


@Kernel
def latest_start(
    rows: RowIds, data: RowData, keys: Array, others: Array, okeys: Array, oalive: Array,
    buckets: Integers, groups: Array, prev: Integers, after: Integers, call: int, canon: Codes, nullish: Array, starts: Array,
) -> int:  # fmt: skip
    """For each row the latest start of the rows of an index that have its key and end before it starts."""
    touched, ready, some = 0, 0 if len(buckets) >= FAR_AWAY else len(rows), True
    for i in range(len(rows)):
        row = rows[i]
        latest = -FAR
        if i >= ready:
            ready = min(i + AHEAD, len(rows))
            some = read_ahead(rows, i, ready, data, keys, buckets, canon, nullish)
        if not some:
            starts[i] = latest
            continue
        g = group_of(data, row, keys, others, okeys, buckets, groups, canon, nullish)
        if g >= 0:
            other = groups[g, TAIL]
            if other >= 0 and others[END, other] >= data[START, row]:
                other = seek(data[START, row] - 1, others, END, groups, g, prev, after, call)
            while other >= 0 and others[END, other] > latest:
                touched += 1
                if oalive[other] and others[START, other] > latest:
                    latest = others[START, other]
                other = prev[other]
        starts[i] = latest
    return touched


@Kernel
def copy_pairs(out: Array, to_first: int, pairs: Array, n: int, left: Array, right: Array, plan: Array) -> None:
    """Writes joined rows: their cover, what they were made of, their rank, and the fields that `plan` names."""
    for i in range(n):
        left_row, other, to = pairs[0, i], pairs[1, i], to_first + i
        out[START, to] = min(left[START, left_row], right[START, other])
        out[END, to] = max(left[END, left_row], right[END, other])
        out[LEFT, to] = left_row
        out[RIGHT, to] = other
        out[RANK, to] = max(left[RANK, left_row], right[RANK, other])
        for k in range(plan.shape[0]):
            out[plan[k, 0], to] = left[plan[k, 2], left_row] if plan[k, 1] == 0 else right[plan[k, 2], other]
