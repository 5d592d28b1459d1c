"""Indexes: rows by key, in each group a chain from the latest row to the earliest."""

from __future__ import annotations

from augury.core.arrays import Array, Codes, Flags, Integers, RowData, RowIds
from augury.core.jit import Kernel, helper
from augury.storage.kernels.hashing import AHEAD, FAR_AWAY, MEMBER, NUMBER, find_group, key_hash

MAKES_NO_ARRAYS = True
# Of a group: the hash of its key, the last row of its chain, which row a search found last, and in which call of a kernel.
HASH, TAIL, LAST_FOUND, CALL = 0, 2, 3, 4


@helper
def chain_in(
    data: RowData, row: int, order: int, alive: Flags, groups: Array, g: int, prev: Integers, after: Integers
) -> None:
    """Puts a row where it belongs in the chain of a group. Rows mostly come in order, so the walk is short."""
    time = data[order, row]
    later, here = -1, groups[g, TAIL]
    while here >= 0 and (data[order, here] > time or not alive[here]):
        if alive[here]:
            later = here
        else:  # the dead leave the chain as it is walked
            unlink(here, later, groups, g, prev, after)
        here = prev[here]
    prev[row] = here
    after[row] = later
    if here >= 0:
        after[here] = row
    if later < 0:
        groups[g, TAIL] = row
    else:
        prev[later] = row


@helper
def unlink(row: int, later: int, groups: Array, g: int, prev: Integers, after: Integers) -> None:
    """Takes a row out of a chain; `later` is the one after it, -1 where it is the tail."""
    if later < 0:
        groups[g, TAIL] = prev[row]
    else:
        prev[later] = prev[row]
    if prev[row] >= 0:
        after[prev[row]] = later


@helper
def seek(
    high: int, data: RowData, order: int, groups: Array, g: int, prev: Integers, after: Integers, call: int
) -> int:
    """The last row of a chain whose order field is at most `high`.

    Rows look for partners in the order of time, mostly, so it is near the one that was found last in this call.
    """
    here = groups[g, LAST_FOUND] if groups[g, CALL] == call else groups[g, TAIL]
    while here >= 0 and data[order, here] > high:
        here = prev[here]
    if here < 0:
        return -1
    while after[here] >= 0 and data[order, after[here]] <= high:
        here = after[here]
    groups[g, LAST_FOUND] = here
    groups[g, CALL] = call
    return here  # type: ignore[no-any-return]


@Kernel
def arrange(
    data: RowData, rows: RowIds, keys: Array, order: int, alive: Flags,
    buckets: Integers, groups: Array, count: int, prev: Integers, after: Integers, canon: Codes, nullish: Array,
) -> int:  # fmt: skip
    """Adds rows to an index; how many groups it has then. Rows in ascending order of the field take one step each."""
    ready = 0 if len(buckets) >= FAR_AWAY else len(rows)
    for i in range(len(rows)):
        row = rows[i]
        if i >= ready:
            ready = min(i + AHEAD, len(rows))
            for j in range(i, ready):  # reads ahead
                later = rows[j]
                prev[later] = buckets[key_hash(data, later, keys, canon, nullish) & (len(buckets) - 1)] & NUMBER
        h = key_hash(data, row, keys, canon, nullish)
        if h < 0 or not alive[row]:
            continue
        b = find_group(h, data, row, keys, data, keys, buckets, groups, canon)
        g = buckets[b] & NUMBER
        if buckets[b] < 0:
            g = count
            count += 1
            buckets[b] = h << 32 | g
            groups[g, HASH] = h
            groups[g, MEMBER] = row
            groups[g, TAIL] = row
            groups[g, CALL] = -1
            prev[row] = -1
            after[row] = -1
            continue
        tail = groups[g, TAIL]
        if tail >= 0 and data[order, tail] <= data[order, row] and alive[tail]:  # in order, as most are
            prev[row] = tail
            after[row] = -1
            after[tail] = row
            groups[g, TAIL] = row
        else:
            chain_in(data, row, order, alive, groups, g, prev, after)
    return count


@Kernel
def rehash(buckets: Integers, groups: Array, count: int) -> None:
    """Fills new buckets with the groups there are."""
    mask = len(buckets) - 1
    for g in range(count):
        h = int(groups[g, HASH])
        b = h & mask
        while buckets[b] >= 0:
            b = (b + 1) & mask
        buckets[b] = h << 32 | g
