"""Sets of derived events, with the number of derivations of each (delete and rederive)."""

from __future__ import annotations

from augury.core.arrays import Array, Codes, Flags, Integers, RowData, RowIds
from augury.core.fields import END, RANK, START
from augury.core.jit import Kernel, helper
from augury.storage.kernels.hashing import AHEAD, EMPTY, FAR_AWAY, NUMBER, USED, canonical, mix_hash, same_key

MAKES_NO_ARRAYS = True
GIVEN_RANK, GIVEN_ARGS = 2, 3  # of events that are to be added: start, end, rank, arguments
TIES = 32  # rows with an equal end that are compared one by one
HASH, SUPPORTS = 0, 1  # what is counted of an event: its hash, and how many derivations it has


@helper
def event_hash(events: Array, i: int, arity: int, canon: Codes) -> int:
    """A hash of the times and arguments of an event (start, end, rank, arguments)."""
    h: int = mix_hash(mix_hash(668265263, events[START, i]), events[END, i])
    for k in range(arity):
        h = mix_hash(h, canonical(events[GIVEN_ARGS + k, i], canon))
    return h


@helper
def row_hash(data: RowData, row: int, keys: Array, canon: Codes) -> int:
    """The same of a row of a table."""
    h: int = mix_hash(mix_hash(668265263, data[START, row]), data[END, row])
    for k in range(len(keys)):
        h = mix_hash(h, canonical(data[keys[k], row], canon))
    return h


@helper
def is_event(data: RowData, row: int, keys: Array, events: Array, i: int, canon: Codes) -> bool:
    """Whether a row of a table has the times and the arguments of an event."""
    if data[START, row] != events[START, i] or data[END, row] != events[END, i]:
        return False
    for k in range(len(keys)):
        x, y = data[keys[k], row], events[GIVEN_ARGS + k, i]
        if x != y and canonical(x, canon) != canonical(y, canon):
            return False
    return True


@Kernel
def support(
    events: Array, lo: int, hi: int, data: RowData, keys: Array, counts: Integers, alive: Flags, n: int,
    buckets: Integers, canon: Codes, target: Array,
) -> int:  # fmt: skip
    """Adds the events `given[:, lo:hi]` (start, end, rank, arguments) to a set; how many rows it has then.

    `target` says which row of the set each one is. A row that stands already has one derivation more.
    """
    mask, ready = len(buckets) - 1, lo if len(buckets) >= FAR_AWAY else hi
    for i in range(lo, hi):
        if i >= ready:
            ready = min(i + AHEAD, hi)
            for later in range(i, ready):  # reads ahead
                target[later - lo] = buckets[event_hash(events, later, len(keys), canon) & mask]
        h = event_hash(events, i, len(keys), canon)
        b = h & mask
        row = -1
        while buckets[b] != EMPTY:
            r = buckets[b] & NUMBER
            if buckets[b] >> 32 == h and is_event(data, r, keys, events, i, canon):  # a mark of no row has no hash
                row = r
                break
            b = (b + 1) & mask
        if row < 0:
            row = n
            n += 1
            buckets[b] = h << 32 | row
            counts[HASH, row] = h
            counts[SUPPORTS, row] = 0
            data[START, row] = events[START, i]
            data[END, row] = events[END, i]
            data[RANK, row] = events[GIVEN_RANK, i]
            for k in range(len(keys)):
                data[keys[k], row] = events[GIVEN_ARGS + k, i]
            alive[row] = 1
        counts[SUPPORTS, row] += 1
        target[i - lo] = row
    return n


@Kernel
def follow(
    events: Array, data: RowData, keys: Array, counts: Integers, alive: Flags, n: int, canon: Codes, target: Array
) -> tuple[int, int]:
    """The same for events that come in the order of their ends: an equal one can only be among the last rows.

    How many have been added, and how many rows the set has then. It stops before an event that ends before the last row,
    and before one for which more than `TIES` rows would have to be compared: these take the buckets.
    """
    for i in range(len(target)):
        start, end = events[START, i], events[END, i]
        if n > 0 and end < data[END, n - 1]:
            return i, n
        row, r, least = -1, n - 1, n - TIES
        while r >= 0 and data[END, r] == end:
            if r < least:
                return i, n
            if alive[r] and is_event(data, r, keys, events, i, canon):
                row = r
                break
            r -= 1
        if row < 0:
            row = n
            n += 1
            counts[SUPPORTS, row] = 0
            data[START, row] = start
            data[END, row] = end
            data[RANK, row] = events[GIVEN_RANK, i]
            for k in range(len(keys)):
                data[keys[k], row] = events[GIVEN_ARGS + k, i]
            alive[row] = 1
        counts[SUPPORTS, row] += 1
        target[i] = row
    return len(target), n


@Kernel
def hashes(data: RowData, n: int, keys: Array, canon: Codes, counts: Integers) -> None:
    """The hash of each row of a set."""
    for row in range(n):
        counts[HASH, row] = row_hash(data, row, keys, canon)


@Kernel
def forget(rows: RowIds, counts: Integers, buckets: Integers) -> None:
    """Takes rows out of a set; others are found past the buckets that were used."""
    mask = len(buckets) - 1
    for i in range(len(rows)):
        h = counts[HASH, rows[i]]
        b = h & mask
        while buckets[b] != EMPTY and buckets[b] != h << 32 | rows[i]:
            b = (b + 1) & mask
        if buckets[b] != EMPTY:
            buckets[b] = USED


@Kernel
def refill(counts: Integers, alive: Flags, n: int, buckets: Integers) -> None:
    """Fills new buckets with the rows of a set that stand."""
    mask = len(buckets) - 1
    for row in range(n):
        if alive[row]:
            b = counts[HASH, row] & mask
            while buckets[b] >= 0:
                b = (b + 1) & mask
            buckets[b] = counts[HASH, row] << 32 | row


@Kernel
def first_equals(data: RowData, lo: int, hi: int, keys: Array, canon: Codes, buckets: Integers, firsts: Array) -> None:
    """For each row the first one that has equal times and fields; itself, mostly."""
    mask = len(buckets) - 1
    for row in range(lo, hi):
        b = row_hash(data, row, keys, canon) & mask
        while buckets[b] >= 0:
            r = buckets[b]
            same = data[START, r] == data[START, row] and data[END, r] == data[END, row]
            if same and same_key(data, r, keys, data, row, keys, canon):
                break
            b = (b + 1) & mask
        if buckets[b] < 0:
            buckets[b] = row
        firsts[row] = buckets[b]


@Kernel
def number_equals(
    rows: RowIds, keys: Array, fixed: Array, contents: Array, counts: Integers, buckets: Integers, numbers: Integers
) -> None:
    """Numbers rows among those with an equal key, in their order; a number that is fixed already stays (else it is -1).

    `buckets` has the first row of each key, `contents` its key, `counts` the number that the next row of the key gets.
    """
    mask = len(buckets) - 1
    for i in range(len(rows)):
        b = keys[i] & mask
        while buckets[b] >= 0 and contents[buckets[b]] != keys[i]:
            b = (b + 1) & mask
        if buckets[b] < 0:
            buckets[b] = rows[i]
            contents[rows[i]] = keys[i]
            counts[rows[i]] = 0
        first = buckets[b]
        number = fixed[i] if fixed[i] >= 0 else counts[first]
        numbers[rows[i]] = number
        counts[first] = max(counts[first], number + 1)


@Kernel
def first_supports(
    rows: RowIds,
    ranks: Array,
    heads: Integers,
    after: Integers,
    alive: Flags,
    of_child: Array,
    good: Array,
    other: Array,
) -> None:
    """For each event its first derivation that stands and rests on lower ranks, and its first one of all; else -1."""
    for i in range(len(rows)):
        good[i] = other[i] = -1
        child = heads[rows[i]]
        while child >= 0:
            other[i] = child
            if alive[child] and of_child[child] < ranks[i]:
                good[i] = child
            child = after[child]
