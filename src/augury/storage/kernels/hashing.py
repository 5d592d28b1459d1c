"""Hashes of keys and of ids, and the buckets of hash tables."""

from __future__ import annotations

from augury.core.arrays import Array, Codes, Integers, RowData, RowIds
from augury.core.jit import Kernel, helper

MAKES_NO_ARRAYS = True
# Hash tables have open addressing. A bucket holds a hash and a number, `hash << 32 | number`, so that a search passes by
# what others have put there without looking at it; it is EMPTY, or was USED by what has been taken out.
NUMBER, EMPTY, USED = 0x7FFFFFFF, -1, -2
# A search waits for its first bucket, which is far away where there are many. So those of AHEAD rows are read first, none
# of which has to wait for another; below FAR_AWAY buckets they are near already.
AHEAD, FAR_AWAY = 64, 1 << 15
MEMBER = 1  # of a group of rows with one key: one of them, see `index.py`


@helper
def canonical(code: int, canon: Codes) -> int:
    """The one code of all values that are equal to this one: 1.0 is 1."""
    if code & 1:
        return canon[code >> 1]  # type: ignore[no-any-return]
    return code & -3


@helper
def mixed(h: int, code: int) -> int:
    """A hash of 31 bits and one more code. No product exceeds 63 bits, so that it is the same uncompiled."""
    h = ((h ^ (code & 0x7FFFFFFF)) * 668265263) & 0x3FFFFFFFFFFFFFFF
    h = (h ^ (h >> 29)) & 0x7FFFFFFF
    h = ((h ^ ((code >> 31) & 0x7FFFFFFF)) * 374761393) & 0x3FFFFFFFFFFFFFFF
    return (h ^ (h >> 27)) & 0x7FFFFFFF


@helper
def key_hash(data: RowData, row: int, keys: Array, canon: Codes, nullish: Array) -> int:
    """A hash of the key of a row; -1 where a part of it is null, which equals nothing."""
    h = 1540483477
    for k in range(len(keys)):
        code = data[keys[k], row]
        if code & 1 and nullish[code >> 1]:
            return -1
        h = mixed(h, canonical(code, canon))
    return h


@helper
def same_key(data: RowData, row: int, keys: Array, others: Array, other: int, okeys: Array, canon: Codes) -> bool:
    for k in range(len(keys)):
        x, y = data[keys[k], row], others[okeys[k], other]
        if x != y and canonical(x, canon) != canonical(y, canon):
            return False
    return True


@helper
def find_group(
    h: int,
    data: RowData,
    row: int,
    keys: Array,
    others: Array,
    okeys: Array,
    buckets: Integers,
    groups: Array,
    canon: Codes,
) -> int:
    """The bucket of the group of rows in `others` with the key of a row; where there is none, the empty bucket for it."""
    mask = len(buckets) - 1
    b = h & mask
    while buckets[b] >= 0:
        here = buckets[b]
        if here >> 32 == h and same_key(data, row, keys, others, groups[here & NUMBER, MEMBER], okeys, canon):
            return b
        b = (b + 1) & mask
    return b


@helper
def group_of(
    data: RowData, row: int, keys: Array, others: Array, okeys: Array, buckets: Integers, groups: Array, canon: Codes,
    nullish: Array,
) -> int:  # fmt: skip
    """The group of rows in `others` with the key of a row; -1 where there is none."""
    h = key_hash(data, row, keys, canon, nullish)
    if h < 0:
        return -1
    here = buckets[find_group(h, data, row, keys, others, okeys, buckets, groups, canon)]
    return here & NUMBER if here >= 0 else -1


@helper
def read_ahead(
    rows: RowIds, first: int, last: int, data: RowData, keys: Array, buckets: Integers, canon: Codes, nullish: Array
) -> bool:
    """Whether some of these rows may have a group. Their buckets are in the caches then: see `AHEAD`."""
    mask, greatest = len(buckets) - 1, EMPTY
    for i in range(first, last):
        greatest = max(greatest, buckets[key_hash(data, rows[i], keys, canon, nullish) & mask])
    return greatest >= 0


@Kernel
def mix(h: Array, more: Array, constants: Array) -> None:
    """`values.mixed` in place. All are of uint64; `constants` are what is added, the two factors, and the three shifts.

    Python would warn where numbers of 64 bits overflow, so this is called once it is compiled.
    """
    for i in range(len(h)):
        x = (h[i] ^ more[i]) + constants[0]
        x = (x ^ (x >> constants[3])) * constants[1]
        x = (x ^ (x >> constants[4])) * constants[2]
        h[i] = x ^ (x >> constants[5])
