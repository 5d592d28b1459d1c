"""Facts and tabled answers: rows by key, without an order."""

from __future__ import annotations

from augury.core.arrays import Array, Codes, Flags, Integers, RowData, RowIds
from augury.core.jit import Kernel, helper
from augury.storage.kernels.hashing import canonical, key_hash, mix_hash, same_key

MAKES_NO_ARRAYS = True


@helper
def plain_hash(data: RowData, row: int, fields: Array, canon: Codes) -> int:
    """A hash of some fields of a row, null like any other value."""
    h = 1540483477
    for k in range(len(fields)):
        h = mix_hash(h, canonical(data[fields[k], row], canon))
    return h


@Kernel
def enter(
    data: RowData, lo: int, hi: int, fields: Array, strict: bool, canon: Codes, nullish: Array, buckets: Integers,
    after: Integers,
) -> None:  # fmt: skip
    """Puts rows into the chains of their buckets; where `strict`, not those with null in the key."""
    mask = len(buckets) - 1
    for row in range(lo, hi):
        h = key_hash(data, row, fields, canon, nullish) if strict else plain_hash(data, row, fields, canon)
        if h < 0:
            continue
        after[row] = buckets[h & mask]
        buckets[h & mask] = row


@Kernel
def look_up(
    asked: Array, keys: Array, count: int, data: RowData, fields: Array, strict: bool, canon: Codes, nullish: Array,
    buckets: Integers, after: Integers, alive: Flags, lo: int, state: Array, pairs: Array,
) -> bool:  # fmt: skip
    """Pairs of a question and a row with the same key that stands; rows before `lo` are left out.

    It returns whether all is found; else it goes on from `state` once there is more room.
    """
    mask = len(buckets) - 1
    q, row, n = state[0], state[1], 0
    while q < count:
        if row == -2:
            h = key_hash(asked, q, keys, canon, nullish) if strict else plain_hash(asked, q, keys, canon)
            row = buckets[h & mask] if h >= 0 else -1
        while row >= lo and row >= 0:
            if alive[row] and same_key(asked, q, keys, data, row, fields, canon):
                if n == pairs.shape[1]:
                    state[0], state[1], state[2] = q, row, n
                    return False
                pairs[0, n], pairs[1, n] = q, row
                n += 1
            row = after[row]
        q, row = q + 1, -2
    state[2] = n
    return True


@Kernel
def admit(
    new: Array, count: int, data: RowData, n: int, fields: Array, canon: Codes, buckets: Integers, after: Integers,
    rows: RowIds,
) -> int:  # fmt: skip
    """Adds rows that are not there yet, each once; `rows` is where each of the given is then. How many there are then."""
    mask = len(buckets) - 1
    for i in range(count):
        b = plain_hash(new, i, fields, canon) & mask
        row = buckets[b]
        while row >= 0 and not same_key(new, i, fields, data, row, fields, canon):
            row = after[row]
        if row < 0:
            row = n
            for k in range(new.shape[0]):
                data[k, row] = new[k, i]
            after[row], buckets[b] = buckets[b], row
            n += 1
        rows[i] = row
    return n
