"""Longest and shortest matches, first event by first event."""

from __future__ import annotations

from augury.columns.fields import END, START
from augury.engine.operators.runs.kernels import BITS, EVER, FOREVER, FROM, INTO, OUT, TO
from augury.jit import Array, Kernel, helper

MAKES_NO_ARRAYS = True
ACCEPT, NO_MOVE = -2, -1
# What is known of a moment: up to where its matches were looked for, that of all up to it, where the next match may
# begin, and the first moment of the last match taken.
REACH, FAR, BOUND, LAST = 0, 1, 2, 3
# A match found: its first moment, where its moments are, how many, the next one with this first moment, its row, whether it
# stands, whether each of its moments was the first that was tried, and the match that it is with one moment more.
P_FIRST, P_AT, P_LENGTH, P_NEXT, P_ROW, P_STANDS, P_CLEAN, P_OF = 0, 1, 2, 3, 4, 5, 6, 7


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
def precedes(a: int, b: int, data: Array, rank: Array) -> bool:
    """Whether a moment comes before another in the order of events."""
    if data[END, a] != data[END, b]:
        return bool(data[END, a] < data[END, b])
    if data[START, a] != data[START, b]:
        return bool(data[START, a] < data[START, b])
    return bool(rank[a] < rank[b])


@helper
def looked_at(
    m: int, part: int, data: Array, alive: Array, after: Array, edges: Array, out: Array, moves: Array, then: int
) -> int:
    """Up to where it is known what may follow a moment: the end of its neighbour; of a THEN, that of what it found."""
    here = after[m]
    while here >= 0 and (not alive[here] or data[START, here] <= data[END, m]):
        here = after[here]
    reach = FOREVER if here < 0 else data[END, here]
    for v in range(moves.shape[1]):
        if then & (1 << v) and moves[0, v] == part:
            e, found = out[m], False
            while e >= 0:
                if edges[BITS, e] & (1 << v) and alive[edges[TO, e]]:
                    reach = max(reach, data[END, edges[TO, e]])
                    found = True
                e = edges[OUT, e]
            if not found:
                return FOREVER
    return reach


@helper
def attempt(
    first: int, data: Array, alive: Array, after: Array, edges: Array, out: Array, moves: Array, then: int, options: Array,
    roots: Array, starts: int, least: Array, most: Array, quantified: Array, longest: int, shortest: bool, one: bool, rank: Array,
    stack: Array, memo: Array, failed: Array, call: int, best: Array, counts: Array, pool: Array, used: int, paths: Array, n: int, known: Array,
) -> tuple[int, int]:  # fmt: skip
    """The best matches that begin with a moment; how much of the pool is used then, and how many paths there are.

    Where the pool has no room, -1. `known` says up to where it has looked.
    """
    parts, begun, before, clean = len(least), n, used, True
    reach, any_found = data[END, first], False
    for r in range(len(roots)):
        if not starts & (1 << roots[r]) or any_found:
            continue
        depth, windowed = 0, False
        stack[0, 0], stack[0, 1], stack[0, 2], stack[0, 3], stack[0, 4], stack[0, 5] = first, roots[r], 1, 0, -1, 0
        stack[0, 6] = looked_at(first, roots[r], data, alive, after, edges, out, moves, then)
        while depth >= 0:
            m, part, times = stack[depth, 0], stack[depth, 1], stack[depth, 2]
            option = options[part, stack[depth, 3]]
            if option == NO_MOVE or (stack[depth, 5] and stack[depth, 4] == -1):
                found = stack[depth, 5]
                clean = clean and found
                if not found and not windowed and memo[part] >= 0 and times >= least[part]:
                    failed[memo[part], m, 0] = call
                    failed[memo[part], m, 1] = stack[depth, 6]
                seen = stack[depth, 6]
                reach = max(reach, seen)
                depth -= 1
                if depth >= 0:
                    stack[depth, 6] = max(stack[depth, 6], seen)
                    if found:
                        stack[depth, 5] = 1
                continue
            if option == ACCEPT:
                stack[depth, 3] += 1
                if times < least[part]:
                    continue
                for p in range(parts):
                    counts[p] = 0
                for d in range(depth + 1):
                    counts[stack[d, 1]] += 1
                better = 0 if n > begun else 1
                if n > begun:
                    for q in range(len(quantified)):
                        a, b = counts[quantified[q]], best[quantified[q]]
                        if a != b:
                            better = 1 if (a < b) == shortest else -1
                            break
                    if better == 0 and one:  # with SKIP, the one whose events come first
                        old = paths[P_AT, n - 1]
                        for d in range(depth + 1):
                            if precedes(stack[d, 0], pool[0, old + d], data, rank):
                                better = 1
                                break
                            if precedes(pool[0, old + d], stack[d, 0], data, rank):
                                better = -1
                                break
                stack[depth, 5] = 1
                if better >= 0:
                    if better == 1:
                        n, used = begun, before
                        for p in range(parts):
                            best[p] = counts[p]
                    if used + depth + 1 > pool.shape[1] or n + 1 >= paths.shape[1]:
                        return -1, begun
                    for d in range(depth + 1):
                        pool[0, used + d] = stack[d, 0]
                        pool[1, used + d] = stack[d, 1]
                    paths[P_FIRST, n] = first
                    paths[P_AT, n] = used
                    paths[P_LENGTH, n] = depth + 1
                    paths[P_NEXT, n] = -1
                    paths[P_ROW, n] = -1
                    paths[P_STANDS, n] = 1
                    paths[P_CLEAN, n] = clean and not windowed and n == begun and r == 0
                    paths[P_OF, n] = -1
                    used += depth + 1
                    n += 1
                stack[depth, 4] = -1
                continue
            target = moves[1, option]
            may = (most[part] < 0 or times < most[part]) if target == part else times >= least[part]
            e = -1
            if may:
                e = out[m] if stack[depth, 4] == -1 else edges[OUT, stack[depth, 4]]
            while e >= 0:
                x = edges[TO, e]
                if edges[BITS, e] & (1 << option) and alive[x]:
                    if data[END, x] - data[START, first] > longest:
                        windowed = True
                    elif memo[target] >= 0 and failed[memo[target], x, 0] == call:
                        clean = False
                        stack[depth, 6] = max(stack[depth, 6], failed[memo[target], x, 1])
                    else:
                        break
                e = edges[OUT, e]
            if e < 0:
                stack[depth, 4] = -1
                if not stack[depth, 5]:
                    stack[depth, 3] += 1
                continue
            clean = clean and stack[depth, 4] == -1
            stack[depth, 4] = e
            depth += 1
            x = edges[TO, e]
            stack[depth, 0], stack[depth, 1], stack[depth, 3], stack[depth, 4], stack[depth, 5] = x, target, 0, -1, 0
            stack[depth, 2] = times + 1 if target == part else 1
            stack[depth, 6] = looked_at(x, target, data, alive, after, edges, out, moves, then)
        any_found = n > begun
    known[first, REACH] = reach
    return used, n


@helper
def goes_on(
    c: int, data: Array, alive: Array, prev: Array, after: Array, edges: Array, into: Array, moves: Array, options: Array,
    most: Array, longest: int, may_end: Array, known: Array, seen: Array, heads: Array, pool: Array, paths: Array,
) -> int:  # fmt: skip
    """The match that a new last moment is just one more iteration of; -1 where it takes more to say what becomes of it.

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
        return -1
    s = known[a, LAST]
    if s < 0 or heads[s] < 0 or (data[END, prev[a]] == data[END, a] and prev[a] >= 0):
        return -1
    p = heads[s]
    length = paths[P_LENGTH, p]
    last = paths[P_AT, p] + length - 1
    if not paths[P_CLEAN, p] or paths[P_NEXT, p] >= 0 or pool[0, last] != a:
        return -1
    part = pool[1, last]
    move = options[part, 0]
    if move < 0 or moves[1, move] != part or not edges[BITS, e] & (1 << move) or not may_end[part]:
        return -1
    if most[part] >= 0 or data[END, c] - data[START, s] > longest or known[a, FAR] < FOREVER:
        return -1
    return int(p)


@helper
def on_the_way(
    c: int, starts: int, data: Array, alive: Array, prev: Array, after: Array, edges: Array, into: Array, moves: Array,
    may_end: Array, known: Array, seen: Array,
) -> bool:  # fmt: skip
    """Whether a new last moment goes on with what is open, and no match can end with it: then nothing is decided yet."""
    a, e = prev[c], into[c]
    if seen[c] >= 0 or a < 0 or e < 0 or (after[c] >= 0 and seen[after[c]] >= 0):
        return False
    if not alive[a] or seen[a] < 0 or data[END, a] >= data[START, c] or known[a, FAR] < FOREVER:
        return False
    ends = starts
    while e >= 0:
        for v in range(moves.shape[1]):
            if edges[BITS, e] & (1 << v):
                ends |= 1 << moves[1, v]
        e = edges[INTO, e]
    for part in range(len(may_end)):
        if may_end[part] and ends & (1 << part):
            return False
    return bool(ends != starts)


@Kernel
def decide(
    changed: Array, at: int, data: Array, alive: Array, prev: Array, after: Array, edges: Array, out: Array, moves: Array,
    then: int, options: Array, roots: Array, starts: Array, least: Array, most: Array, quantified: Array, longest: int,
    shortest: bool, skip: int, rank: Array, stack: Array, memo: Array, failed: Array, call: int, best: Array, counts: Array, ties: Array,
    known: Array, seen: Array, heads: Array, given: Array, pool: Array, used: int, paths: Array, n: int, fallen: Array,
    fell: int, may_end: Array, into: Array,
) -> tuple[int, int, int, int, int]:  # fmt: skip
    """Decides anew which matches there are, from moments that have come or gone, or that can be followed otherwise.

    It goes back to the first match that has looked so far, and on until all is as it was. `skip` is -2 for none, -1 for
    PAST END, else the number of a part; `given` are the bounds that matches before the first moments have left, by moment.
    Returns how far it came, how much of the pool is used, how many paths there are, how many moments it looked at, and how
    many matches fell.
    """
    touched = 0
    for i in range(at, len(changed)):
        c = changed[i]
        if alive[c] and seen[c] == call:
            continue
        if fell + 1 >= len(fallen) or n + 1 >= paths.shape[1] or used + 1 >= pool.shape[1]:
            return i, -1, n, touched, fell
        if longest >= EVER and on_the_way(
            c, starts[c], data, alive, prev, after, edges, into, moves, may_end, known, seen
        ):  # fmt: skip
            a = prev[c]
            known[c, REACH], known[c, FAR], known[c, LAST] = FOREVER, FOREVER, known[a, LAST]
            known[c, BOUND] = max(known[a, BOUND], given[c])
            seen[c] = call
            touched += 1
            continue
        if skip == -1 and not shortest:
            p = goes_on(
                c, data, alive, prev, after, edges, into, moves, options, most, longest, may_end, known, seen, heads, pool, paths
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
                known[c, REACH], known[c, FAR], known[c, BOUND], known[c, LAST] = -FOREVER, FOREVER, data[END, c], s
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
            here = prev[here]
        far, bound, last = -FOREVER, -FOREVER, -1
        if here >= 0:
            far, bound, last = known[here, FAR], known[here, BOUND], known[here, LAST]
            here = after[here]
        else:
            here = c
            while prev[here] >= 0:
                here = prev[here]
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
                    used, n = attempt(
                        m, data, alive, after, edges, out, moves, then, options, roots, starts[m], least, most, quantified,
                        longest, shortest, skip > -2, rank, stack, memo, failed, call, best, counts, pool, used, paths, n, known,
                    )  # fmt: skip
                    if used < 0:
                        return i, -1, begun, touched, fell
                    reach = known[m, REACH]
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
                far = max(far, reach)
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
