"""The hot loops: kernels over flat int64 arrays, see `jit.py`.

A *row* is a column of a two-dimensional array `data[field, row]`, see `table.py`. A *code* is a value as one integer, see
`dictionary.py`: equal values have equal codes once made canonical.
"""

from __future__ import annotations

from augury.jit import Array, Kernel, helper

MAKES_NO_ARRAYS = True
# Hash tables have open addressing. A bucket holds a hash and a number, `hash << 32 | number`, so that a search passes by
# what others have put there without looking at it; it is EMPTY, or was USED by what has been taken out.
NUMBER, EMPTY, USED = 0x7FFFFFFF, -1, -2
# A search waits for its first bucket, which is far away where there are many. So those of AHEAD rows are read first, none
# of which has to wait for another; below FAR_AWAY buckets they are near already.
AHEAD, FAR_AWAY = 64, 1 << 15


# Keys


@helper
def canonical(code: int, canon: Array) -> int:
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
def key_hash(data: Array, row: int, keys: Array, canon: Array, nullish: Array) -> int:
    """A hash of the key of a row; -1 where a part of it is null, which equals nothing."""
    h = 1540483477
    for k in range(len(keys)):
        code = data[keys[k], row]
        if code & 1 and nullish[code >> 1]:
            return -1
        h = mixed(h, canonical(code, canon))
    return h


@helper
def same_key(data: Array, row: int, keys: Array, others: Array, other: int, okeys: Array, canon: Array) -> bool:
    for k in range(len(keys)):
        x, y = data[keys[k], row], others[okeys[k], other]
        if x != y and canonical(x, canon) != canonical(y, canon):
            return False
    return True


@helper
def find_group(
    h: int, data: Array, row: int, keys: Array, others: Array, okeys: Array, buckets: Array, groups: Array, canon: Array
) -> int:
    """The bucket of the group of rows in `others` with the key of a row; where there is none, the empty bucket for it."""
    mask = len(buckets) - 1
    b = h & mask
    while buckets[b] >= 0:
        here = buckets[b]
        if here >> 32 == h and same_key(data, row, keys, others, groups[here & NUMBER, 1], okeys, canon):
            return b
        b = (b + 1) & mask
    return b


@helper
def group_of(
    data: Array, row: int, keys: Array, others: Array, okeys: Array, buckets: Array, groups: Array, canon: Array,
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
    rows: Array, first: int, last: int, data: Array, keys: Array, buckets: Array, canon: Array, nullish: Array
) -> bool:
    """Whether some of these rows may have a group. Their buckets are in the caches then: see `AHEAD`."""
    mask, greatest = len(buckets) - 1, EMPTY
    for i in range(first, last):
        greatest = max(greatest, buckets[key_hash(data, rows[i], keys, canon, nullish) & mask])
    return greatest >= 0


# Indexes: rows by key, in each group a chain from the latest row to the earliest


@helper
def chain_in(data: Array, row: int, order: int, alive: Array, groups: Array, g: int, prev: Array, after: Array) -> None:
    """Puts a row where it belongs in the chain of a group. Rows mostly come in order, so the walk is short."""
    at = data[order, row]
    later, here = -1, groups[g, 2]
    while here >= 0 and (data[order, here] > at or not alive[here]):
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
        groups[g, 2] = row
    else:
        prev[later] = row


@helper
def unlink(row: int, later: int, groups: Array, g: int, prev: Array, after: Array) -> None:
    """Takes a row out of a chain; `later` is the one after it, -1 where it is the tail."""
    if later < 0:
        groups[g, 2] = prev[row]
    else:
        prev[later] = prev[row]
    if prev[row] >= 0:
        after[prev[row]] = later


@helper
def seek(high: int, data: Array, order: int, groups: Array, g: int, prev: Array, after: Array, call: int) -> int:
    """The last row of a chain whose order field is at most `high`.

    Rows look for partners in the order of time, mostly, so it is near the one that was found last in this call.
    """
    here = groups[g, 3] if groups[g, 4] == call else groups[g, 2]
    while here >= 0 and data[order, here] > high:
        here = prev[here]
    if here < 0:
        return -1
    while after[here] >= 0 and data[order, after[here]] <= high:
        here = after[here]
    groups[g, 3] = here
    groups[g, 4] = call
    return here  # type: ignore[no-any-return]


@Kernel
def arrange(
    data: Array, lo: int, hi: int, keys: Array, order: int, alive: Array,
    buckets: Array, groups: Array, count: int, prev: Array, after: Array, canon: Array, nullish: Array,
) -> int:  # fmt: skip
    """Adds the rows from `lo` up to `hi` to an index; how many groups it has then.

    A group is (hash of its key, a row that has it, the last row of its chain, where a search was last, in which call).
    """
    ready = lo if len(buckets) >= FAR_AWAY else hi
    for row in range(lo, hi):
        if row >= ready:
            ready = min(row + AHEAD, hi)
            for later in range(row, ready):  # reads ahead
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
            groups[g, 0] = h
            groups[g, 1] = row
            groups[g, 2] = row
            groups[g, 4] = -1
            prev[row] = -1
            after[row] = -1
            continue
        tail = groups[g, 2]
        if tail >= 0 and data[order, tail] <= data[order, row] and alive[tail]:  # in order, as most are
            prev[row] = tail
            after[row] = -1
            after[tail] = row
            groups[g, 2] = row
        else:
            chain_in(data, row, order, alive, groups, g, prev, after)
    return count


@Kernel
def rehash(buckets: Array, groups: Array, count: int) -> None:
    """Fills new buckets with the groups there are."""
    mask = len(buckets) - 1
    for g in range(count):
        h = int(groups[g, 0])
        b = h & mask
        while buckets[b] >= 0:
            b = (b + 1) & mask
        buckets[b] = h << 32 | g


@helper
def meets_all(bounds: Array, data: Array, row: int, others: Array, other: int) -> bool:
    """Whether two rows meet all bounds `x - y <= limit`; a bound is (side of x, field of x, side, field, limit)."""
    for k in range(len(bounds)):
        x = data[bounds[k, 1], row] if bounds[k, 0] == 0 else others[bounds[k, 1], other]
        y = data[bounds[k, 3], row] if bounds[k, 2] == 0 else others[bounds[k, 3], other]
        if x - y > bounds[k, 4]:
            return False
    return True


@Kernel
def probe(
    rows: Array, first: int, data: Array, keys: Array, alive: Array,
    others: Array, okeys: Array, oalive: Array, order: int, limit: int,
    buckets: Array, groups: Array, prev: Array, after: Array, call: int, canon: Array, nullish: Array,
    reach: Array, floor: int, bounds: Array, most: int, found: Array,
) -> tuple[int, int, int]:  # fmt: skip
    """Pairs rows with the rows of an index that have their key and meet the bounds.

    Of the index only rows before `limit` count, and of each chain only those whose `order` field is within `reach`: at
    least start + reach[0], end + reach[1] and the field `floor` of the row, where there is one, at most start + reach[2]
    and end + reach[3]. With `most`, a row takes that many at most, the latest first. Returns how far it came, how many pairs it found, and how many rows it touched; it
    stops early where `found` has no room.
    """
    n, room, touched, ready = 0, found.shape[1], 0, 0 if len(buckets) >= FAR_AWAY else len(rows)
    i = first - 1
    while i + 1 < len(rows):
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
        start, end = data[0, row], data[1, row]
        low = max(start + reach[0], end + reach[1])
        if floor >= 0:
            low = max(low, data[floor, row])
        high = min(start + reach[2], end + reach[3])
        began, other = n, groups[g, 2]
        if other >= 0 and others[order, other] > high:  # mostly the last one is it
            other = seek(high, others, order, groups, g, prev, after, call)
        while other >= 0:
            touched += 1
            if others[order, other] < low:
                break
            if other < limit and oalive[other] and meets_all(bounds, data, row, others, other):
                if n == room:
                    return i, began, touched
                found[0, n] = row
                found[1, n] = other
                n += 1
                if n - began == most:
                    break
            other = prev[other]
    return len(rows), n, touched


@Kernel
def probe_window(
    rows: Array, first: int, data: Array, keys: Array, alive: Array,
    others: Array, okeys: Array, oalive: Array, order: int,
    buckets: Array, groups: Array, prev: Array, after: Array, call: int, canon: Array, nullish: Array,
    low: int, high: int, slack: int, limit: int, bounds: Array, most: int, found: Array,
) -> tuple[int, int, int]:  # fmt: skip
    """Like `probe`, for rows that carry their reach: from the field `low` up to the field `high` and `slack` more.

    Only rows before `limit` count; the dead leave the chains as they are walked.
    """
    n, room, touched, ready = 0, found.shape[1], 0, 0 if len(buckets) >= FAR_AWAY else len(rows)
    i = first - 1
    while i + 1 < len(rows):
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
        least = data[low, row]
        began, other = n, groups[g, 2]
        if other >= 0 and others[order, other] > data[high, row] + slack:
            other = seek(data[high, row] + slack, others, order, groups, g, prev, after, call)
        while other >= 0:
            touched += 1
            if not oalive[other]:
                unlink(other, after[other], groups, g, prev, after)
                if groups[g, 3] == other:  # a search must not begin at what is no longer in the chain
                    groups[g, 4] = -1
                other = prev[other]
                continue
            if others[order, other] < least:
                break
            if other < limit and meets_all(bounds, data, row, others, other):
                if n == room:
                    return i, began, touched
                found[0, n] = row
                found[1, n] = other
                n += 1
                if n - began == most:
                    break
            other = prev[other]
    return len(rows), n, touched


@Kernel
def latest_start(
    rows: Array, data: Array, keys: Array, others: Array, okeys: Array, oalive: Array,
    buckets: Array, groups: Array, prev: Array, after: Array, call: int, canon: Array, nullish: Array, found: Array,
) -> int:  # fmt: skip
    """For each row the latest start of the rows of an index that have its key and end before it starts."""
    touched, ready, some = 0, 0 if len(buckets) >= FAR_AWAY else len(rows), True
    for i in range(len(rows)):
        row = rows[i]
        latest = -(2**62)
        if i >= ready:
            ready = min(i + AHEAD, len(rows))
            some = read_ahead(rows, i, ready, data, keys, buckets, canon, nullish)
        if not some:
            found[i] = latest
            continue
        g = group_of(data, row, keys, others, okeys, buckets, groups, canon, nullish)
        if g >= 0:
            other = groups[g, 2]
            if other >= 0 and others[1, other] >= data[0, row]:
                other = seek(data[0, row] - 1, others, 1, groups, g, prev, after, call)
            while other >= 0 and others[1, other] > latest:
                touched += 1
                if oalive[other] and others[0, other] > latest:
                    latest = others[0, other]
                other = prev[other]
        found[i] = latest
    return touched


# Rows and what was made of them


@Kernel
def link(parents: Array, lo: int, hi: int, heads: Array, after: Array) -> None:
    """Chains the rows from `lo` up to `hi` to the rows they were made of."""
    for row in range(lo, hi):
        p = parents[row]
        if p >= 0:
            after[row] = heads[p]
            heads[p] = row


@Kernel
def take_children(dead: Array, heads: Array, after: Array, alive: Array, found: Array) -> int:
    """Kills what was made of dead rows; how many there were."""
    n = 0
    for i in range(len(dead)):
        child = heads[dead[i]]
        while child >= 0:
            if alive[child]:
                alive[child] = 0
                found[n] = child
                n += 1
            child = after[child]
        heads[dead[i]] = -1
    return n


@Kernel
def standing_children(rows: Array, heads: Array, after: Array, alive: Array, found: Array) -> int:
    """What was made of rows and stands; how many there are."""
    n = 0
    for i in range(len(rows)):
        child = heads[rows[i]]
        while child >= 0:
            if alive[child]:
                found[n] = child
                n += 1
            child = after[child]
    return n


@Kernel
def fall(
    events: Array, count: int, standing: Array, supports: Array,
    heads: Array, after: Array, alive: Array, rows: Array,
    heads2: Array, after2: Array, alive2: Array, event: Array, derivations: Array, weakened: Array,
) -> tuple[int, int, int, int]:  # fmt: skip
    """Events that fell, the rows made of them, the derivations that those were, and the events that stood on them alone.

    `events` holds those that fell at first; how many events, rows, derivations fell, and how many events lost one of
    several derivations.
    """
    n_rows, n_derivations, n_weak, i = 0, 0, 0, 0
    while i < count:
        row = heads[events[i]]
        while row >= 0:
            if alive[row]:
                alive[row] = 0
                rows[n_rows] = row
                n_rows += 1
                d = heads2[row]
                while d >= 0:
                    if alive2[d]:
                        alive2[d] = 0
                        derivations[n_derivations] = d
                        n_derivations += 1
                        e = event[d]
                        supports[1, e] -= 1
                        if supports[1, e] > 0:
                            weakened[n_weak] = e
                            n_weak += 1
                        elif standing[e]:
                            standing[e] = 0
                            events[count] = e
                            count += 1
                    d = after2[d]
            row = after[row]
        i += 1
    return count, n_rows, n_derivations, n_weak


# Sets of derived events, with the number of derivations


@helper
def event_hash(given: Array, i: int, arity: int, canon: Array) -> int:
    """A hash of the times and arguments of an event (start, end, rank, arguments)."""
    h: int = mixed(mixed(668265263, given[0, i]), given[1, i])
    for k in range(arity):
        h = mixed(h, canonical(given[3 + k, i], canon))
    return h


@Kernel
def support(
    given: Array, lo: int, hi: int, data: Array, keys: Array, counts: Array, alive: Array, n: int,
    buckets: Array, canon: Array, target: Array,
) -> int:  # fmt: skip
    """Adds the events `given[:, lo:hi]` (start, end, rank, arguments) to a set; how many rows it has then.

    `target` says which row of the set each one is. A row that stands already has one derivation more.
    """
    mask, ready = len(buckets) - 1, lo if len(buckets) >= FAR_AWAY else hi
    for i in range(lo, hi):
        if i >= ready:
            ready = min(i + AHEAD, hi)
            for later in range(i, ready):  # reads ahead
                target[later - lo] = buckets[event_hash(given, later, len(keys), canon) & mask]
        h = event_hash(given, i, len(keys), canon)
        b = h & mask
        row = -1
        while buckets[b] != EMPTY:
            r = buckets[b] & NUMBER
            if buckets[b] >> 32 == h and data[0, r] == given[0, i] and data[1, r] == given[1, i]:
                same = True
                for k in range(len(keys)):
                    x, y = data[keys[k], r], given[3 + k, i]
                    if x != y and canonical(x, canon) != canonical(y, canon):
                        same = False
                        break
                if same:
                    row = r
                    break
            b = (b + 1) & mask
        if row < 0:
            row = n
            n += 1
            buckets[b] = h << 32 | row
            counts[0, row] = h
            counts[1, row] = 0
            data[0, row] = given[0, i]
            data[1, row] = given[1, i]
            data[4, row] = given[2, i]
            for k in range(len(keys)):
                data[keys[k], row] = given[3 + k, i]
            alive[row] = 1
        counts[1, row] += 1
        target[i - lo] = row
    return n


@Kernel
def hashes(data: Array, n: int, keys: Array, canon: Array, counts: Array) -> None:
    """The hash of each row of a set."""
    for row in range(n):
        h = mixed(mixed(668265263, data[0, row]), data[1, row])
        for k in range(len(keys)):
            h = mixed(h, canonical(data[keys[k], row], canon))
        counts[0, row] = h


@Kernel
def forget(rows: Array, counts: Array, buckets: Array) -> None:
    """Takes rows out of a set; others are found past the buckets that were used."""
    mask = len(buckets) - 1
    for i in range(len(rows)):
        h = counts[0, rows[i]]
        b = h & mask
        while buckets[b] != EMPTY and buckets[b] != h << 32 | rows[i]:
            b = (b + 1) & mask
        if buckets[b] != EMPTY:
            buckets[b] = USED


@Kernel
def refill(counts: Array, alive: Array, n: int, buckets: Array) -> None:
    """Fills new buckets with the rows of a set that stand."""
    mask = len(buckets) - 1
    for row in range(n):
        if alive[row]:
            b = counts[0, row] & mask
            while buckets[b] >= 0:
                b = (b + 1) & mask
            buckets[b] = counts[0, row] << 32 | row


@Kernel
def first_equals(data: Array, lo: int, hi: int, keys: Array, canon: Array, buckets: Array, firsts: Array) -> None:
    """For each row the first one that has equal times and fields; itself, mostly."""
    mask = len(buckets) - 1
    for row in range(lo, hi):
        h = mixed(mixed(668265263, data[0, row]), data[1, row])
        for f in keys:
            h = mixed(h, canonical(data[f, row], canon))
        b = h & mask
        while buckets[b] >= 0:
            r = buckets[b]
            same = data[0, r] == data[0, row] and data[1, r] == data[1, row]
            for f in keys:
                if canonical(data[f, r], canon) != canonical(data[f, row], canon):
                    same = False
            if same:
                break
            b = (b + 1) & mask
        if buckets[b] < 0:
            buckets[b] = row
        firsts[row] = buckets[b]


@Kernel
def first_supports(
    rows: Array, ranks: Array, heads: Array, after: Array, alive: Array, of_child: Array, good: Array, other: Array
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


@Kernel
def copy_pairs(out: Array, at: int, pairs: Array, n: int, left: Array, right: Array, plan: Array) -> None:
    """Writes joined rows: their cover, what they were made of, their rank, and the fields that `plan` names."""
    for i in range(n):
        one, other, to = pairs[0, i], pairs[1, i], at + i
        out[0, to] = min(left[0, one], right[0, other])
        out[1, to] = max(left[1, one], right[1, other])
        out[2, to] = one
        out[3, to] = other
        out[4, to] = max(left[4, one], right[4, other])
        for k in range(plan.shape[0]):
            out[plan[k, 0], to] = left[plan[k, 2], one] if plan[k, 1] == 0 else right[plan[k, 2], other]


# Floats


@Kernel
def refill_floats(known: Array, bits: Array, buckets: Array) -> None:
    """Fills new buckets with the floats there are."""
    mask = len(buckets) - 1
    for i in range(len(known)):
        h = mixed(1540483477, bits[i])
        b = h & mask
        while buckets[b] >= 0:
            b = (b + 1) & mask
        buckets[b] = h << 32 | known[i]


@Kernel
def intern_floats(given: Array, bits: Array, numbers: Array, n: int, buckets: Array, ids: Array) -> int:
    """The ids of floats in a table of floats, new ones added from `n` on; how many there are then."""
    mask, ready = len(buckets) - 1, 0 if len(buckets) >= FAR_AWAY else len(given)
    for i in range(len(given)):
        if i >= ready:
            ready = min(i + AHEAD, len(given))
            for later in range(i, ready):  # reads ahead
                ids[later] = buckets[mixed(1540483477, bits[later]) & mask]
        h = mixed(1540483477, bits[i])
        b = h & mask
        while buckets[b] >= 0 and (buckets[b] >> 32 != h or numbers[buckets[b] & NUMBER] != given[i]):
            b = (b + 1) & mask
        if buckets[b] < 0:
            buckets[b] = h << 32 | n
            numbers[n] = given[i]
            n += 1
        ids[i] = buckets[b] & NUMBER
    return n


# Facts and tabled answers: rows by key, without an order


@helper
def plain_hash(data: Array, row: int, fields: Array, canon: Array) -> int:
    """A hash of some fields of a row, null like any other value."""
    h = 1540483477
    for k in range(len(fields)):
        h = mixed(h, canonical(data[fields[k], row], canon))
    return h


@Kernel
def enter(
    data: Array, lo: int, hi: int, fields: Array, strict: bool, canon: Array, nullish: Array, buckets: Array,
    after: Array,
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
    asked: Array, keys: Array, count: int, data: Array, fields: Array, strict: bool, canon: Array, nullish: Array,
    buckets: Array, after: Array, alive: Array, since: Array, until: Array, at: Array, lo: int, state: Array,
    found: Array,
) -> bool:  # fmt: skip
    """Pairs of a question and a row with the same key that stands, at the time of the question where rows have times.

    Rows before `lo` are left out. It returns whether all is found; else it goes on from `state` once there is more room.
    """
    mask, timed = len(buckets) - 1, len(since) > 0
    q, row, n = state[0], state[1], 0
    while q < count:
        if row == -2:
            h = key_hash(asked, q, keys, canon, nullish) if strict else plain_hash(asked, q, keys, canon)
            row = buckets[h & mask] if h >= 0 else -1
        while row >= lo and row >= 0:
            fits = alive[row] and same_key(asked, q, keys, data, row, fields, canon)
            if fits and timed and (at[q] < since[row] or at[q] >= until[row]):
                fits = False
            if fits:
                if n == found.shape[1]:
                    state[0], state[1], state[2] = q, row, n
                    return False
                found[0, n], found[1, n] = q, row
                n += 1
            row = after[row]
        q, row = q + 1, -2
    state[2] = n
    return True


@Kernel
def admit(
    given: Array, count: int, data: Array, n: int, fields: Array, canon: Array, buckets: Array, after: Array,
    rows: Array,
) -> int:  # fmt: skip
    """Adds rows that are not there yet, each once; `rows` is where each of the given is then. How many there are then."""
    mask = len(buckets) - 1
    for i in range(count):
        b = plain_hash(given, i, fields, canon) & mask
        row = buckets[b]
        while row >= 0 and not same_key(given, i, fields, data, row, fields, canon):
            row = after[row]
        if row < 0:
            row = n
            for k in range(given.shape[0]):
                data[k, row] = given[k, i]
            after[row], buckets[b] = buckets[b], row
            n += 1
        rows[i] = row
    return n


# Ids


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


# Facts that change: what is said of each, see `knowledge/timelines.py`

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
    """Does something to an entry, and notes what was said before; whether it could be done."""
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
def entries_before(entries: Array, first: int, count: int, time: int, own: bool) -> int:
    """How many entries of a timeline come before a time, or at the latest then, where its own entry counts."""
    lo, hi = 0, count
    while lo < hi:
        mid = (lo + hi) >> 1
        if entries[TIME, first + mid] < time or (own and entries[TIME, first + mid] == time):
            lo = mid + 1
        else:
            hi = mid
    return lo


@helper
def hull(entries: Array, first: int, count: int, row: int, since: Array, until: Array, alive: Array) -> None:
    """Bounds for the times at which a fact holds."""
    alive[row] = 1 if count > 0 else 0
    if count > 0:
        last = first + count - 1
        since[row], until[row] = entries[TIME, first], max(entries[TIME, last], entries[REACH, last])


@Kernel
def tell(
    groups: Array, begins: Array, times: Array, acts: Array, untils: Array, places: Array, entries: Array, tail: Array,
    since: Array, until: Array, alive: Array, olds: Array, spans: Array,
) -> int:  # fmt: skip
    """Takes changes into the timelines of facts; -1, or the number of one that does not fit.

    The changes of the fact `groups[0, g]` are those from `begins[g]` on, in the order of their times; its timeline moves to
    `groups[1, g]`, where that is not -1. `spans` tells of each fact over which times it changes, and whether it held
    without end before, and does now; `olds` what was said before each change.
    """
    for g in range(groups.shape[1]):
        row, lo, hi = groups[0, g], begins[g], begins[g + 1]
        first, count = places[FIRST, row], places[COUNT, row]
        spans[0, g], spans[1, g] = EVER, ALWAYS
        spans[2, g] = 1 if count > 0 and entries[REACH, first + count - 1] == EVER else 0
        at = entries_before(entries, first, count, times[lo], False)
        left = count - at
        for f in range(6):
            for i in range(left):
                tail[f, i] = entries[f, first + at + i]
        if groups[1, g] >= 0:
            moved = groups[1, g]
            for f in range(6):
                for i in range(at):
                    entries[f, moved + i] = entries[f, first + i]
            first = moved
            places[FIRST, row], places[ROOM, row] = moved, groups[2, g]
        was = entries[REACH, first + at - 1] if at > 0 else ALWAYS
        now, seen, before = was, 0, times[lo]
        while seen < left or lo < hi:
            time = tail[TIME, seen] if seen < left else EVER
            if lo < hi and times[lo] < time:
                time = times[lo]
            span(before, time, was, now, spans, g)
            new = first + at
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
                at += 1
            before = time
        span(before, EVER, was, now, spans, g)
        places[COUNT, row] = at
        spans[3, g] = 1 if at > 0 and now == EVER else 0
        hull(entries, first, at, row, since, until, alive)
    return -1


@Kernel
def retell(
    places: Array, n: int, entries: Array, floor: int, unmade: bool, since: Array, until: Array, alive: Array
) -> None:
    """Goes through all timelines: what is up to `floor` is told by one entry, if at all; `unmade` forgets what was made."""
    for row in range(n):
        first, count = places[FIRST, row], places[COUNT, row]
        if first < 0:
            continue
        old = entries_before(entries, first, count, floor, True) if floor > ALWAYS else 0
        at, reach = 0, ALWAYS
        if old > 0:
            last = first + old - 1
            reach = entries[REACH, last]
            if reach > floor + 1:
                entries[TIME, first], entries[MADE, first], entries[ENDED, first] = entries[TIME, last], 0, 0
                entries[SAID, first], entries[SAID_UNTIL, first] = ASSERTED_ANEW, reach
                entries[REACH, first] = reach
                at = 1
            else:
                reach = ALWAYS
        for i in range(old, count):
            for f in range(6):
                entries[f, first + at] = entries[f, first + i]
            if unmade:
                entries[MADE, first + at] = entries[ENDED, first + at] = 0
            if entries[MADE, first + at] > 0 or entries[ENDED, first + at] > 0 or entries[SAID, first + at] != UNSAID:
                reach = reach_of(entries, first + at, reach)
                entries[REACH, first + at] = reach
                at += 1
        places[COUNT, row] = at
        hull(entries, first, at, row, since, until, alive)


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
def holding(rows: Array, at: Array, places: Array, entries: Array, held: Array) -> None:
    """Which facts hold at a time, of those that have a timeline; the others are left as they are."""
    for i in range(len(rows)):
        first = places[FIRST, rows[i]]
        if first >= 0:
            before = entries_before(entries, first, places[COUNT, rows[i]], at[i], True)
            held[i] = before > 0 and entries[REACH, first + before - 1] > at[i]
