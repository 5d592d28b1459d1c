"""Longest and shortest matches, first event by first event."""

from __future__ import annotations

from augury.core.arrays import Array, Flags, Integers, RowData, Times
from augury.core.fields import END, START
from augury.core.jit import Kernel, helper
from augury.engine.operators.runs.kernels import BITS, EVER, FOREVER, FROM, INTO
from augury.engine.operators.runs.kernels.best_matches import (
    P_AT,
    P_CLEAN,
    P_FIRST,
    P_LENGTH,
    P_NEXT,
    P_OF,
    P_ROW,
    P_STANDS,
    attempt,
    precedes,
)

MAKES_NO_ARRAYS = True
# What is known of a moment: the latest start of an event that may change its matches, that of all moments up to it, where
# the next match may begin, the first moment of the last match taken, and whether it just went on with what came before:
# then what is known of all that an event starting with it may change has become what is known of it. FAR, BOUND
# and LAST are those of all that end together; `UP_TO` is FAR up to the moment itself in the order of events.
REACH, FAR, BOUND, LAST, LINKED, UP_TO = range(6)


@Kernel
def summed_up(chosen: Array, paths: Array, pool: Array, ranks: Array, parts: int, states: Array) -> None:
    """Of matches the last moment of each part, how often it came, and the rank, from all their moments."""
    for i in range(len(chosen)):
        p = chosen[i]
        for part in range(parts):
            states[part, p] = -1
            states[parts + part, p] = 0
        states[2 * parts, p] = 0
        for at in range(paths[P_AT, p], paths[P_AT, p] + paths[P_LENGTH, p]):
            moment, part = pool[0, at], pool[1, at]
            states[part, p] = moment
            states[parts + part, p] += 1
            states[2 * parts, p] = max(states[2 * parts, p], ranks[moment])


@helper
def open_until(m: int, part: int, data: RowData, moves: Array, limits: Array) -> int:
    """The latest start of an event that may follow a last moment as an iteration of a part."""
    latest = -FOREVER
    for v in range(moves.shape[1]):
        if moves[0, v] == part:
            bound = FOREVER
            if limits[0, v] < FOREVER:
                bound = min(bound, data[START, m] + limits[0, v])
            if limits[1, v] < FOREVER:
                bound = min(bound, data[END, m] + limits[1, v])
            if bound > data[END, m]:
                latest = max(latest, bound)
    return int(latest)


@helper
def goes_on(
    c: int, data: RowData, alive: Flags, prev: Integers, after: Integers, edges: Array, into: Array, moves: Array, limits: Array,
    options: Array, most: Array, longest: int, may_end: Array, known: Array, seen: Array, heads: Integers, pool: Array,
    paths: Array,
) -> tuple[int, int]:  # fmt: skip
    """The match that a new last moment is just one more iteration of, and the latest start of what may follow; -1 where it
    takes more to say what becomes of it.

    It is the last match of its key, ends with the moment before, was found without a doubt, and prefers to go on.
    """
    a, e = prev[c], into[c]
    if (
        a < 0
        or (after[c] >= 0 and seen[after[c]] >= 0)
        or not alive[a]
        or seen[a] < 0
        or e < 0
        or edges[INTO, e] >= 0
        or edges[FROM, e] != a
    ):
        return -1, 0
    s = known[a, LAST]
    if s < 0 or heads[s] < 0 or (data[END, prev[a]] == data[END, a] and prev[a] >= 0):
        return -1, 0
    p = heads[s]
    length = paths[P_LENGTH, p]
    last = paths[P_AT, p] + length - 1
    if not paths[P_CLEAN, p] or paths[P_NEXT, p] >= 0 or pool[0, last] != a:
        return -1, 0
    part = pool[1, last]
    move = options[part, 0]
    if move < 0 or moves[1, move] != part or not edges[BITS, e] & (1 << move) or not may_end[part]:
        return -1, 0
    if most[part] >= 0 or data[END, c] - data[START, s] > longest:
        return -1, 0
    reach = open_until(c, part, data, moves, limits)
    if longest < EVER:
        if data[START, s] + longest <= data[END, c]:  # nothing that follows is within the window
            return -1, 0
        reach = min(reach, data[START, s] + longest)
    return (int(p), int(reach)) if reach >= known[a, FAR] >= data[START, c] else (-1, 0)


@helper
def on_the_way(
    c: int, starts: int, data: RowData, alive: Flags, prev: Integers, after: Integers, edges: Array, into: Array, moves: Array,
    limits: Array, may_end: Array, known: Array, seen: Array,
) -> int:  # fmt: skip
    """The latest start of what may follow a new last moment that goes on with what is open, where no match can end with
    it: then nothing is decided yet. Else -1."""
    a, e = prev[c], into[c]
    if seen[c] >= 0 or a < 0 or e < 0 or (after[c] >= 0 and seen[after[c]] >= 0):
        return -FOREVER
    if not alive[a] or seen[a] < 0 or data[END, a] >= data[START, c] or known[a, FAR] < data[START, c]:
        return -FOREVER
    ends = starts
    while e >= 0:
        for v in range(moves.shape[1]):
            if edges[BITS, e] & (1 << v):
                ends |= 1 << moves[1, v]
        e = edges[INTO, e]
    reach = -FOREVER
    for part in range(len(may_end)):
        if ends & (1 << part):
            if may_end[part]:
                return -FOREVER
            reach = max(reach, open_until(c, part, data, moves, limits))
    return reach if ends != starts and reach >= known[a, FAR] else -FOREVER


@helper
def head_of(m: int, alive: Flags, prev: Integers, after: Integers) -> int:
    """The first moment of a chain. A dead one may have left it, and does not know what has come before it since."""
    here = m
    while prev[here] >= 0:
        here = prev[here]
    if alive[here]:
        return int(here)
    while here >= 0 and not alive[here]:
        here = after[here]
    while here >= 0 and prev[here] >= 0:
        here = prev[here]
    return int(here)


@Kernel
def decide(
    changed: Array, at: int, data: RowData, alive: Flags, prev: Integers, after: Integers, edges: Array, out: Array, moves: Array,
    then: int, limits: Array, options: Array, roots: Array, starts: Times, least: Array, most: Array, quantified: Array,
    longest: int, shortest: bool, skip: int, merged: bool, rank: Array, stack: Array, states: Array, slots: Array, call: int,
    ties: Array, known: Array, seen: Array, heads: Integers, given: Array, pool: Array, used: int, paths: Array, n: int,
    fallen: Array, fell: int, may_end: Array, into: Array, reached: Array,
) -> tuple[int, int, int, int, int]:  # fmt: skip
    """Decides anew which matches there are, from moments that have come or gone, or that can be followed otherwise.

    It goes back to the first match that has looked so far, and on until all is as it was. `skip` is -2 for none, -1 for
    PAST END, else the number of a part; `given` are the bounds that matches before the first moments have left, by moment.
    Returns how far it came, how much of the pool is used, how many paths there are, how many moments it looked at, and how
    many matches fell.
    """
    touched = count_states = 0
    for i in range(at, len(changed)):
        c = changed[i]
        if alive[c] and seen[c] == call:
            continue
        if fell + 1 >= len(fallen) or n + 1 >= paths.shape[1] or used + 1 >= pool.shape[1]:
            return i, -1, n, touched, fell
        if longest >= EVER:
            reach = on_the_way(
                c, starts[c], data, alive, prev, after, edges, into, moves, limits, may_end, known, seen
            )  # fmt: skip
            if reach > -FOREVER:
                a = prev[c]
                known[c, REACH], known[c, FAR], known[c, LAST], known[c, LINKED] = reach, reach, known[a, LAST], 1
                known[c, BOUND] = max(known[a, BOUND], given[c])
                known[c, UP_TO] = reach
                seen[c] = call
                touched += 1
                continue
        if skip == -1 and not shortest:
            p, reach = goes_on(
                c, data, alive, prev, after, edges, into, moves, limits, options, most, longest, may_end, known, seen, heads,
                pool, paths,
            )  # fmt: skip
            if p >= 0:  # the last match has one moment more, and nothing else changes
                s, first, length = paths[P_FIRST, p], paths[P_AT, p], paths[P_LENGTH, p]
                part = pool[1, first + length - 1]
                if first + length != used:  # behind it there are others
                    if used + length + 1 >= pool.shape[1]:
                        return i, -1, n, touched, fell
                    for d in range(length):
                        pool[0, used + d] = pool[0, first + d]
                        pool[1, used + d] = pool[1, first + d]
                    first, used = used, used + length
                pool[0, used] = c
                pool[1, used] = part
                used += 1
                for f in range(paths.shape[0]):
                    paths[f, n] = paths[f, p]
                paths[P_AT, n] = first
                paths[P_LENGTH, n] += 1
                paths[P_ROW, n] = -1
                paths[P_OF, n] = p
                paths[P_STANDS, p] = 0
                fallen[fell] = p
                fell += 1
                heads[s] = n
                n += 1
                known[c, REACH], known[c, FAR], known[c, LINKED] = -FOREVER, reach, 1
                known[c, BOUND], known[c, LAST], known[c, UP_TO] = data[END, c], s, reach
                seen[c] = call
                touched += 1
                continue
        # Back to what none that came before it has looked at.
        begins, end = data[START, c], data[END, c]
        here = prev[c]
        while here >= 0 and (
            not alive[here] or data[END, here] >= begins or known[here, FAR] >= begins or seen[here] < 0
        ):
            touched += 1
            if alive[here] and seen[here] >= 0 and known[here, LINKED]:
                begins = min(begins, data[START, here])
            here = prev[here]
        far, bound, last = -FOREVER, -FOREVER, -1
        if here >= 0:
            far, bound, last = known[here, FAR], known[here, BOUND], known[here, LAST]
            here = after[here]
        else:
            here = head_of(c, alive, prev, after)
        same = False
        while here >= 0 and not same:
            count = 0
            level = data[END, here]
            while here >= 0 and data[END, here] == level:
                if alive[here]:
                    j = count  # in the order of events
                    while j > 0 and precedes(here, ties[j - 1], data, rank):
                        ties[j] = ties[j - 1]
                        j -= 1
                    ties[j] = here
                    count += 1
                here = after[here]
            same = level > end
            for t in range(count):
                m = ties[t]
                touched += 1
                if given[m] > bound:
                    bound = given[m]
                begun, free = n, starts[m] != 0
                if skip == -1:
                    free = free and data[START, m] > bound
                elif skip >= 0:
                    free = free and data[START, m] >= bound
                reach, filled = -FOREVER, used
                if free:
                    used, n, count_states, tried = attempt(
                        m, data, alive, after, edges, out, moves, then, limits, options, roots, starts[m], least, most,
                        quantified, longest, shortest, skip > -2, merged, rank, stack, states, count_states, slots, call, pool,
                        used, paths, n, reached,
                    )  # fmt: skip
                    touched += tried
                    if used < 0:
                        return i, used, begun, touched, fell
                    reach = reached[0]
                    touched += used - filled
                # What was found before and is found again stays.
                old, alike = heads[m], True
                p = begun
                while p < n and old >= 0 and alike:
                    length = paths[P_LENGTH, p]
                    alike = length == paths[P_LENGTH, old]
                    d = 0
                    while alike and d < length:
                        a, b = paths[P_AT, p] + d, paths[P_AT, old] + d
                        alike = pool[0, a] == pool[0, b] and pool[1, a] == pool[1, b]
                        d += 1
                    p += 1
                    old = paths[P_NEXT, old]
                if alike and p == n and old < 0:
                    if n > begun:
                        used = paths[P_AT, begun]
                    n = begun
                else:
                    same = False
                    old = heads[m]
                    while old >= 0:
                        if fell >= len(fallen):
                            return i, -1, begun, touched, fell
                        paths[P_STANDS, old] = 0
                        fallen[fell] = old
                        fell += 1
                        old = paths[P_NEXT, old]
                    heads[m] = begun if n > begun else -1
                    for p in range(begun, n - 1):
                        paths[P_NEXT, p] = p + 1
                known[m, REACH], known[m, LINKED] = reach, 0
                far = max(far, reach)
                known[m, UP_TO] = far
                if heads[m] >= 0:
                    last = m
                    p = heads[m]
                    if skip == -1:
                        bound = data[END, pool[0, paths[P_AT, p] + paths[P_LENGTH, p] - 1]]
                    elif skip >= 0:
                        for d in range(paths[P_LENGTH, p]):
                            if pool[1, paths[P_AT, p] + d] == skip:
                                bound = data[START, pool[0, paths[P_AT, p] + d]]
                same = same and seen[m] >= 0
                seen[m] = call
            for t in range(count):  # what ends together is known together
                m = ties[t]
                same = same and known[m, FAR] == far and known[m, BOUND] == bound and known[m, LAST] == last
                known[m, FAR], known[m, BOUND], known[m, LAST] = far, bound, last
    return len(changed), used, n, touched, fell


@Kernel
def reaches(
    n: int, data: RowData, alive: Flags, prev: Integers, after: Integers, known: Array, seen: Array, found: Array
) -> None:
    """The latest start of an event that may change the matches of all moments that end no later than each one, of each one
    itself, and of all up to it in the order of events.

    A moment that was linked to what came before it stands for all that reached it: it is told to these here.
    """
    for tail in range(n):
        if after[tail] >= 0:
            continue
        here, linked, latest = tail, -1, FOREVER
        while here >= 0:
            found[0, here] = found[1, here] = found[2, here] = FOREVER
            if alive[here] and seen[here] >= 0:
                found[0, here], found[1, here] = known[here, FAR], known[here, REACH]
                found[2, here] = known[here, UP_TO]
                for row in range(3):
                    if linked >= 0 and found[row, here] >= data[START, linked]:
                        found[row, here] = max(found[row, here], latest)
                if known[here, LINKED]:
                    linked, latest = here, found[0, here]
            here = prev[here]
