"""Ranks of values inside ranges of positions: how many are less than a limit, and which one has so many before it.

A column stands in the order of positions (level 0). Of each complete block of 16, 32, 64, … positions there is a sorted
copy (levels 1, 2, 3, …), made of two blocks of the level below. A range has two blocks of each level at most, and a few
positions at its ends.

A range has as many distinct values as positions whose value does not occur in the range before: such a column says for each
position the *previous* one with its value, counted from the beginning of the segment.
"""

from __future__ import annotations

from augury.core.arrays import Array, Integers
from augury.core.jit import Kernel, helper
from augury.storage.kernels.hashing import mix_hash
from augury.storage.kernels.ranges import FIRST, ROOM, SAFE, SIZE, less_in

MAKES_NO_ARRAYS = True
LEAST = 16  # positions of a sorted block, at least
BASE, DONE = 0, 1  # of what is entered of a segment: its offset at that time, and how many positions
NOWHERE = 2**62  # instead of a previous position, of a value that does not count
VALUE, OWNER, LAST = 0, 1, 2  # of a known value: its code, whose it is, and the position where it occurs last


@helper
def sort_block(first: int, column: int, levels: Array) -> None:
    """Sorts a block of level 1, by insertion."""
    for i in range(first, first + LEAST):
        value, to = levels[0, column, i], i
        while to > first and levels[1, column, to - 1] > value:
            levels[1, column, to] = levels[1, column, to - 1]
            to -= 1
        levels[1, column, to] = value


@helper
def merge_block(first: int, size: int, level: int, column: int, levels: Array) -> None:
    """Merges two sorted blocks into one of the next level."""
    middle, last = first + size // 2, first + size
    i, j = first, middle
    for to in range(first, last):
        if j == last or (i < middle and levels[level - 1, column, i] <= levels[level - 1, column, j]):
            levels[level, column, to] = levels[level - 1, column, i]
            i += 1
        else:
            levels[level, column, to] = levels[level - 1, column, j]
            j += 1


@helper
def number_of(value: int, owner: int, entries: Array, buckets: Integers, count: int) -> int:
    """The number of a value of a segment in a hash table; of a new one, the next number."""
    mask = len(buckets) - 1
    b = mix_hash(mix_hash(1540483477, value), owner) & mask
    while buckets[b] >= 0:
        n = buckets[b]
        if entries[n, VALUE] == value and entries[n, OWNER] == owner:
            return n  # type: ignore[no-any-return]
        b = (b + 1) & mask
    buckets[b] = count
    entries[count, VALUE], entries[count, OWNER], entries[count, LAST] = value, owner, -1
    return count


@Kernel
def rehash_values(entries: Array, buckets: Integers, count: int) -> None:
    """Puts known values into an empty hash table."""
    mask = len(buckets) - 1
    for n in range(count):
        b = mix_hash(mix_hash(1540483477, entries[n, VALUE]), entries[n, OWNER]) & mask
        while buckets[b] >= 0:
            b = (b + 1) & mask
        buckets[b] = n


@Kernel
def enter_positions(
    groups: Integers, spans: Array, entered: Array, slots: Array, values: Array, distinct: Array, null: int, levels: Array,
    numbers: Array, entries: Array, buckets: Integers, count: int,
) -> tuple[int, int]:  # fmt: skip
    """Brings columns of some segments up to date; how many values are known then, and how many positions were entered.

    Columns are the last rows of `values`; `distinct` says which of them have previous positions, and whether null counts.
    What has changed since it was entered is taken back first, the last position first: then the position before is again
    the last one that its value has.
    """
    columns, touched = levels.shape[1], 0
    offset = values.shape[0] - columns
    for g in groups:
        first, size, base = spans[g, FIRST], spans[g, SIZE], entered[g, BASE]
        keep = min(spans[g, SAFE], entered[g, DONE]) if base == first else 0
        touched += max(size - keep, 0)
        for c in range(columns):
            if distinct[c]:
                for p in range(base + entered[g, DONE] - 1, base + keep - 1, -1):
                    if numbers[c, p] >= 0:
                        entries[numbers[c, p], LAST] = levels[0, c, p]
            for p in range(first + keep, first + size):
                value = values[offset + c, slots[p]]
                if distinct[c] == 1 and value == null:
                    numbers[c, p], value = -1, NOWHERE
                elif distinct[c]:
                    n = number_of(value, g * columns + c, entries, buckets, count)
                    count = max(count, n + 1)
                    numbers[c, p], value = n, entries[n, LAST]
                    entries[n, LAST] = p - first
                levels[0, c, p] = value
                level, block = 1, LEAST
                while block <= spans[g, ROOM] and (p + 1) & (block - 1) == 0:
                    if level == 1:
                        sort_block(p + 1 - block, c, levels)
                    else:
                        merge_block(p + 1 - block, block, level, c, levels)
                    level, block = level + 1, 2 * block
        entered[g, BASE], entered[g, DONE], spans[g, SAFE] = first, size, size
    return count, touched


@helper
def block_from(first: int, last: int, levels: Array) -> tuple[int, int]:
    """The greatest block that begins at a position and ends in the range: its level and its size."""
    level, size = 0, 1
    block = LEAST
    while level + 1 < levels.shape[0] and first & (block - 1) == 0 and first + block <= last:
        level, size, block = level + 1, block, 2 * block
    return level, size


@Kernel
def count_less(
    column: int, firsts: Integers, lasts: Integers, limits: Integers, levels: Array, counts: Integers
) -> int:
    """How many values of each range are less than its limit; returns how many blocks it has looked at."""
    touched = 0
    for i in range(len(firsts)):
        first, count = firsts[i], 0
        while first < lasts[i]:
            level, size = block_from(first, lasts[i], levels)
            count += less_in(levels[level, column], first, first + size, limits[i]) - first
            first += size
            touched += 1
        counts[i] = count
    return touched


@Kernel
def positions_less(
    column: int, begun: int, firsts: Integers, lasts: Integers, limits: Integers, levels: Array, pairs: Array
) -> tuple[int, int, int]:
    """Pairs of a range and a position in it whose value is less than the limit. Returns how far it came, how many pairs it
    found, and how many blocks it has looked at; it stops early where `found` has no room."""
    n, touched = 0, 0
    for i in range(begun, len(firsts)):
        here, began = firsts[i], n
        while here < lasts[i]:
            touched += 1
            level, size = block_from(here, lasts[i], levels)
            while level > 0 and levels[level, column, here] < limits[i]:  # the least of the block
                level -= 1
                size = LEAST << (level - 1) if level > 0 else 1
            if level == 0 and levels[0, column, here] < limits[i]:
                if n == pairs.shape[1]:
                    return i, began, touched
                pairs[0, n], pairs[1, n] = i, here
                n += 1
            here += size
    return len(firsts), n, touched


@helper
def gather_parts(first: int, last: int, column: int, levels: Array, parts: Array, loose: Array) -> int:
    """The sorted parts of a range, level, first and last of each; the first part has those at its ends, in `loose`."""
    count, few = 1, 0
    while first < last:
        level, size = block_from(first, last, levels)
        if level:
            parts[count, 0], parts[count, 1], parts[count, 2] = level, first, first + size
            count += 1
        else:
            to, value = few, levels[0, column, first]
            while to > 0 and loose[to - 1] > value:
                loose[to] = loose[to - 1]
                to -= 1
            loose[to] = value
            few += 1
        first += size
    parts[0, 0], parts[0, 1], parts[0, 2] = 0, 0, few
    return count


@Kernel
def values_at(
    column: int, firsts: Integers, lasts: Integers, ranks: Integers, levels: Array, parts: Array, loose: Array,
    selected: Integers,
) -> int:  # fmt: skip
    """The value of each range that so many others come before; returns how many positions and parts it has looked at.

    A value of the largest part is compared with all parts, of which only one side is left then: one at that share of the
    part, which is near where parts are alike, and each third time the middle one, which halves the part wherever it is.
    """
    touched = 0
    for i in range(len(firsts)):
        count, rank = gather_parts(firsts[i], lasts[i], column, levels, parts, loose), ranks[i]
        left, turn = lasts[i] - firsts[i], 0
        touched += parts[0, 2]
        while True:
            largest, turn = 0, turn + 1
            for k in range(1, count):
                if parts[k, 2] - parts[k, 1] > parts[largest, 2] - parts[largest, 1]:
                    largest = k
            size = parts[largest, 2] - parts[largest, 1]
            chosen = parts[largest, 1] + (size // 2 if turn % 3 == 0 else size * rank // left)
            pivot = levels[parts[largest, 0], column, chosen] if largest else loose[chosen]
            less, equal = 0, 0
            for k in range(count):
                lo, hi = parts[k, 1], parts[k, 2]
                if lo == hi:
                    parts[k, 3] = parts[k, 4] = lo
                    continue
                touched += 1
                values = levels[parts[k, 0], column] if k else loose
                parts[k, 3] = less_in(values, lo, hi, pivot)
                parts[k, 4] = less_in(values, parts[k, 3], hi, pivot + 1)
                less += parts[k, 3] - lo
                equal += parts[k, 4] - parts[k, 3]
            if less <= rank < less + equal:
                selected[i] = pivot
                break
            below = rank < less
            for k in range(count):
                if below:
                    parts[k, 2] = parts[k, 3]
                else:
                    parts[k, 1] = parts[k, 4]
            rank, left = (rank, less) if below else (rank - less - equal, left - less - equal)
    return touched


def most_parts(levels: Array) -> int:
    """How many parts a range has at most."""
    return 2 * len(levels) + 2
