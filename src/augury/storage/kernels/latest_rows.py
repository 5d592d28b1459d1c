"""Facts of which each key has one, see `engine/operators/learn_latest.py`."""

from __future__ import annotations

from augury.core.arrays import Array, Codes, RowData, Times
from augury.core.jit import Kernel, helper
from augury.storage.kernels.entries import ALWAYS, COUNT, EVER, FIRST, entries_before
from augury.storage.kernels.hashing import canonical

MAKES_NO_ARRAYS = True
# What is said of the facts of a key, in this order: at a time (`TIME` is that of `entries.py`) some end, all end, one is
# asserted from outside, or an event makes one. Of several events the one that is CHOSEN makes its fact, or else the last.
TIME, KIND, START, ROW, FACT, CHOSEN = range(6)
END_SOME, END_ALL, SAID, MADE = range(4)
OUT_FACT, OUT_TIME, OUT_ENDS = range(3)  # of a consequence
NEXT, FOUND, TOUCHED, DONE = range(4)  # how far consequences are found: changes, rows, entries; up to which time


@helper
def winner(pool: Array, first: int, p: int) -> int:
    """The entry whose fact is made at the time of the last entry `p` of that time; -1 where none is made."""
    if pool[KIND, first + p] != MADE:
        return -1
    q = p
    while q >= 0 and pool[TIME, first + q] == pool[TIME, first + p] and pool[KIND, first + q] == MADE:
        if pool[START, first + q] != pool[START, first + p]:
            break
        if pool[CHOSEN, first + q]:
            return q
        q -= 1
    return p


@helper
def matches(facts: RowData, pattern: int, fact: int, anything: int, canon: Codes) -> bool:
    for f in range(facts.shape[0]):
        code = facts[f, pattern]
        if code != anything and canonical(code, canon) != canonical(facts[f, fact], canon):
            return False
    return True


@helper
def ends_here(
    pool: Array, first: int, p: int, won: int, fact: int, facts: RowData, anything: int, canon: Codes
) -> bool:  # fmt: skip
    """Whether a fact that was asserted before ends with the entries of a time, the last of which is `p`."""
    if won >= 0:
        return bool(pool[FACT, first + won] != fact)
    q = p
    while q >= 0 and pool[TIME, first + q] == pool[TIME, first + p]:
        if pool[KIND, first + q] <= END_ALL and matches(facts, pool[FACT, first + q], fact, anything, canon):
            return True
        q -= 1
    return False


@helper
def find_ends(
    pool: Array, first: int, p: int, won: int, facts: RowData, anything: int, canon: Codes, n: int, out: Array
) -> int:  # fmt: skip
    """The facts that end at the time of the last entry `p` of that time: those asserted since all were ended before.

    How many rows there are in `out` then; one more than it has room for where there are too many.
    """
    begin, time, q = n, pool[TIME, first + p], p
    while q >= 0 and pool[TIME, first + q] == time:
        q -= 1
    ended = False
    while q >= 0 and not ended:
        before, winning = pool[TIME, first + q], winner(pool, first, q)
        ended = winning >= 0
        while q >= 0 and pool[TIME, first + q] == before:
            ended = ended or pool[KIND, first + q] == END_ALL
            fact = pool[FACT, first + q]
            if (q == winning or pool[KIND, first + q] == SAID) and ends_here(
                pool, first, p, won, fact, facts, anything, canon
            ):
                same = begin
                while same < n and out[OUT_FACT, same] != fact:
                    same += 1
                if same == n:
                    if n == out.shape[1]:
                        return n + 1
                    out[OUT_FACT, n], out[OUT_TIME, n], out[OUT_ENDS, n] = fact, time, 1
                    n += 1
            q -= 1
    return n


@Kernel
def consequences(
    groups: Array, times: Times, spans: Array, pool: Array, facts: RowData, anything: int, canon: Codes, state: Array,
    out: Array,
) -> bool:  # fmt: skip
    """The facts that are made at some times, and those that end then or later, up to where all end.

    `groups` and `times` are in order. It returns whether all is found; else it goes on from `state`.
    """
    n, done = 0, state[DONE]
    for i in range(state[NEXT], len(groups)):
        if i == 0 or groups[i] != groups[i - 1]:
            done = ALWAYS
        first, count, kept, begin = spans[FIRST, groups[i]], spans[COUNT, groups[i]], n, times[i]
        # Up to `done` all that ends is found, but not what begins then and ends later.
        covered, ends_found, upto = begin < done, begin == done, EVER
        p = entries_before(pool, first, count, begin, False)
        while p < count:
            time, ends, all_end = pool[TIME, first + p], False, False
            while p < count and pool[TIME, first + p] == time:
                ends = ends or pool[KIND, first + p] <= END_ALL
                all_end = all_end or pool[KIND, first + p] == END_ALL
                p += 1
                state[TOUCHED] += 1
            won = winner(pool, first, p - 1)
            if time == begin and won >= 0 and n < out.shape[1]:
                out[OUT_FACT, n], out[OUT_TIME, n], out[OUT_ENDS, n] = pool[FACT, first + won], time, 0
                n += 1
            if covered:
                break
            if (won >= 0 or ends) and not (ends_found and time == begin):
                n = find_ends(pool, first, p - 1, won, facts, anything, canon, n, out)
            if n >= out.shape[1]:
                state[NEXT], state[FOUND], state[DONE] = i, kept, done
                return False
            if time > begin and (won >= 0 or all_end):
                upto = time
                break
        if n >= out.shape[1]:
            state[NEXT], state[FOUND], state[DONE] = i, kept, done
            return False
        done = done if covered else upto
    state[NEXT], state[FOUND] = len(groups), n
    return True


@Kernel
def contests(groups: Array, times: Times, spans: Array, pool: Array, spans_found: Array) -> int:
    """Where several facts are made at a time by events that begin at once: their first and last positions; how many."""
    n = 0
    for i in range(len(groups)):
        first, count = spans[FIRST, groups[i]], spans[COUNT, groups[i]]
        last = entries_before(pool, first, count, times[i], True) - 1
        if last < 0 or pool[TIME, first + last] != times[i] or pool[KIND, first + last] != MADE:
            continue
        p, several = last, False
        while p > 0 and pool[TIME, first + p - 1] == times[i] and pool[KIND, first + p - 1] == MADE:
            if pool[START, first + p - 1] != pool[START, first + last]:
                break
            p -= 1
            several = several or pool[FACT, first + p] != pool[FACT, first + last]
        if several:
            spans_found[0, n], spans_found[1, n] = first + p, first + last
            n += 1
    return n


@Kernel
def last_settled(count: int, spans: Array, pool: Array, since: int, facts: Array) -> int:
    """Of each group the last entries before a time that end all others; how many there are.

    A group in which nothing is made then, and which has nothing later, needs none: it has ended.
    """
    n = 0
    for g in range(count):
        first = spans[FIRST, g]
        settled = entries_before(pool, first, spans[COUNT, g], since, False)
        p = settled - 1
        while p >= 0 and pool[KIND, first + p] != END_ALL and pool[KIND, first + p] != MADE:
            p -= 1
        if p < 0 or (pool[KIND, first + p] == END_ALL and settled == spans[COUNT, g]):
            continue
        time, winning = pool[TIME, first + p], winner(pool, first, p)
        while p >= 0 and pool[TIME, first + p] == time:
            if pool[KIND, first + p] == END_ALL or (
                winning >= 0 and pool[FACT, first + p] == pool[FACT, first + winning]
            ):
                facts[n] = pool[ROW, first + p]
                n += 1
            p -= 1
    return n
