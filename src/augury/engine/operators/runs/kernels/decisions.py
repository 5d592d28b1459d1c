"""Longest and shortest matches, first event by first event."""

from __future__ import annotations

from augury.core.arrays import Array, Flags, Integers, RowData
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
from augury.engine.operators.runs.kernels.records import (
    Decisions,
    MatchPool,
    MomentChains,
    MomentLinks,
    RunShape,
    SearchStates,
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
        for position in range(paths[P_AT, p], paths[P_AT, p] + paths[P_LENGTH, p]):
            moment, part = pool[0, position], pool[1, position]
            states[part, p] = moment
            states[parts + part, p] += 1
            states[2 * parts, p] = max(states[2 * parts, p], ranks[moment])


@helper
def open_until(m: int, part: int, data: RowData, run: RunShape) -> int:
    """The latest start of an event that may follow a last moment as an iteration of a part."""
    latest, moves, limits = -FOREVER, run.moves, run.limits
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
    c: int, chains: MomentChains, links: MomentLinks, run: RunShape, decided: Decisions, pool: MatchPool
) -> tuple[int, int]:
    """The match that a new last moment is just one more iteration of, and the latest start of what may follow; -1 where it
    takes more to say what becomes of it.

    It is the last match of its key, ends with the moment before, was found without a doubt, and prefers to go on.
    """
    data, prev, table, paths = chains.data, chains.prev, decided.table, pool.paths
    a, e, b = prev[c], links.into[c], chains.after[c]
    if a < 0 or (b >= 0 and decided.tried[b] >= 0) or not chains.alive[a] or decided.tried[a] < 0 or e < 0:
        return -1, 0
    if links.edges[INTO, e] >= 0 or links.edges[FROM, e] != a:
        return -1, 0
    s = table[a, LAST]
    if s < 0 or decided.first_paths[s] < 0 or (data[END, prev[a]] == data[END, a] and prev[a] >= 0):
        return -1, 0
    p = decided.first_paths[s]
    last = paths[P_AT, p] + paths[P_LENGTH, p] - 1
    if not paths[P_CLEAN, p] or paths[P_NEXT, p] >= 0 or pool.moments[0, last] != a:
        return -1, 0
    part = pool.moments[1, last]
    move = run.options[part, 0]
    if move < 0 or run.moves[1, move] != part or not links.edges[BITS, e] & (1 << move) or not run.may_end[part]:
        return -1, 0
    if run.most[part] >= 0 or data[END, c] - data[START, s] > run.window:
        return -1, 0
    reach = open_until(c, part, data, run)
    if run.window < EVER:
        if data[START, s] + run.window <= data[END, c]:  # nothing that follows is within the window
            return -1, 0
        reach = min(reach, data[START, s] + run.window)
    return (int(p), int(reach)) if reach >= table[a, FAR] >= data[START, c] else (-1, 0)


@helper
def add_iteration(
    c: int, p: int, reach: int, data: RowData, decided: Decisions, pool: MatchPool, used: int, n: int
) -> int:
    """A match with one moment more takes the place of a match; how much of the pool is used then."""
    moments, paths, table = pool.moments, pool.paths, decided.table
    first, length = paths[P_AT, p], paths[P_LENGTH, p]
    part = moments[1, first + length - 1]
    if first + length != used:  # behind it there are others
        for d in range(length):
            moments[0, used + d] = moments[0, first + d]
            moments[1, used + d] = moments[1, first + d]
        first, used = used, used + length
    moments[0, used], moments[1, used] = c, part
    for f in range(paths.shape[0]):
        paths[f, n] = paths[f, p]
    paths[P_AT, n], paths[P_LENGTH, n], paths[P_ROW, n], paths[P_OF, n] = first, length + 1, -1, p
    paths[P_STANDS, p] = 0
    decided.first_paths[paths[P_FIRST, p]] = n
    table[c, REACH], table[c, FAR], table[c, LINKED] = -FOREVER, reach, 1
    table[c, BOUND], table[c, LAST], table[c, UP_TO] = data[END, c], paths[P_FIRST, p], reach
    return int(used + 1)


@helper
def on_the_way(c: int, chains: MomentChains, links: MomentLinks, run: RunShape, decided: Decisions) -> int:
    """The latest start of what may follow a new last moment that goes on with what is open, where no match can end with
    it: then nothing is decided yet. Else long before all others."""
    data, edges, table, tried = chains.data, links.edges, decided.table, decided.tried
    a, e, b = chains.prev[c], links.into[c], chains.after[c]
    if tried[c] >= 0 or a < 0 or e < 0 or (b >= 0 and tried[b] >= 0):
        return -FOREVER
    if not chains.alive[a] or tried[a] < 0 or data[END, a] >= data[START, c] or table[a, FAR] < data[START, c]:
        return -FOREVER
    starts = decided.begins[c]
    ends = starts
    while e >= 0:
        for v in range(run.moves.shape[1]):
            if edges[BITS, e] & (1 << v):
                ends |= 1 << run.moves[1, v]
        e = edges[INTO, e]
    reach = -FOREVER
    for part in range(len(run.may_end)):
        if ends & (1 << part):
            if run.may_end[part]:
                return -FOREVER
            reach = max(reach, open_until(c, part, data, run))
    return reach if ends != starts and reach >= table[a, FAR] else -FOREVER


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


@helper
def first_to_decide(c: int, chains: MomentChains, decided: Decisions) -> tuple[int, int, int]:
    """Behind the last moment that a change cannot concern: the moment to decide from, -1 for the first of the chain; that
    last moment, -1 where there is none; and how many were looked at."""
    data, alive, table, tried = chains.data, chains.alive, decided.table, decided.tried
    begins, touched = data[START, c], 0
    here = chains.prev[c]
    while here >= 0 and (not alive[here] or data[END, here] >= begins or table[here, FAR] >= begins or tried[here] < 0):
        touched += 1
        if alive[here] and tried[here] >= 0 and table[here, LINKED]:
            begins = min(begins, data[START, here])
        here = chains.prev[here]
    first = chains.after[here] if here >= 0 else head_of(c, alive, chains.prev, chains.after)
    return int(first), int(here), touched


@helper
def ending_together(here: int, chains: MomentChains, ties: Array) -> tuple[int, int]:
    """The moments that end with one and stand, in the order of events: how many; and the moment after them."""
    count, level = 0, chains.data[END, here]
    while here >= 0 and chains.data[END, here] == level:
        if chains.alive[here]:
            j = count
            while j > 0 and precedes(here, ties[j - 1], chains):
                ties[j] = ties[j - 1]
                j -= 1
            ties[j] = here
            count += 1
        here = chains.after[here]
    return count, int(here)


@helper
def found_again(m: int, begun: int, n: int, decided: Decisions, pool: MatchPool) -> bool:
    """Whether the matches from a number on are those that a first moment has."""
    moments, paths = pool.moments, pool.paths
    p, old = begun, decided.first_paths[m]
    while p < n and old >= 0:
        length = paths[P_LENGTH, p]
        if length != paths[P_LENGTH, old]:
            return False
        for d in range(length):
            a, b = paths[P_AT, p] + d, paths[P_AT, old] + d
            if moments[0, a] != moments[0, b] or moments[1, a] != moments[1, b]:
                return False
        p += 1
        old = paths[P_NEXT, old]
    return bool(p == n and old < 0)


@helper
def next_bound(p: int, bound: int, data: RowData, run: RunShape, pool: MatchPool) -> int:
    """From when on the next match may begin, after one that is taken."""
    first_event, length = pool.paths[P_AT, p], pool.paths[P_LENGTH, p]
    if run.skip == -1:
        return int(data[END, pool.moments[0, first_event + length - 1]])
    if run.skip >= 0:
        for d in range(length):
            if pool.moments[1, first_event + d] == run.skip:
                bound = data[START, pool.moments[0, first_event + d]]
                if run.skip_to_first:
                    break
    return int(bound)


@Kernel
def decide(
    changed: Array, position: int, chains: MomentChains, links: MomentLinks, run: RunShape, memo: SearchStates, call: int, ties: Array,
    decided: Decisions, pool: MatchPool, used: int, n: int, fallen: Array, fell: int,
) -> tuple[int, int, int, int, int]:  # fmt: skip
    """Decides the matches again, from added or removed moments, or those whose successors changed.

    It goes back to the earliest match whose lookahead covers the change, and on until all is as it was. Returns how far it
    came, how much of the pool is used, how many paths there are, how many moments it looked at, and how many matches fell.
    """
    data, alive, skip = chains.data, chains.alive, run.skip
    table, tried, first_paths, paths = decided.table, decided.tried, decided.first_paths, pool.paths
    touched = count_states = attempts = 0
    for i in range(position, len(changed)):
        c = changed[i]
        if alive[c] and tried[c] == call:
            continue
        if fell + 1 >= len(fallen) or n + 1 >= paths.shape[1] or used + 1 >= pool.moments.shape[1]:
            return i, -1, n, touched, fell
        if run.window >= EVER:
            reach = on_the_way(c, chains, links, run, decided)
            if reach > -FOREVER:
                a = chains.prev[c]
                table[c, REACH], table[c, FAR], table[c, LAST], table[c, LINKED] = reach, reach, table[a, LAST], 1
                table[c, BOUND] = max(table[a, BOUND], decided.lower_bounds[c])
                table[c, UP_TO] = reach
                tried[c] = call
                touched += 1
                continue
        if skip == -1 and not run.shortest:
            p, reach = goes_on(c, chains, links, run, decided, pool)
            if p >= 0:  # the last match has one moment more, and nothing else changes
                length = paths[P_LENGTH, p]
                if paths[P_AT, p] + length != used and used + length + 1 >= pool.moments.shape[1]:
                    return i, -1, n, touched, fell
                used = add_iteration(c, p, reach, data, decided, pool, used, n)
                fallen[fell] = p
                fell += 1
                n += 1
                tried[c] = call
                touched += 1
                continue
        here, before, looked = first_to_decide(c, chains, decided)
        touched += looked
        far, bound, last = -FOREVER, -FOREVER, -1
        if before >= 0:
            far, bound, last = table[before, FAR], table[before, BOUND], table[before, LAST]
        end, same = data[END, c], False
        while here >= 0 and not same:
            same = data[END, here] > end
            count, here = ending_together(here, chains, ties)
            for t in range(count):  # what is forgotten ended before all of these
                bound = max(bound, decided.lower_bounds[ties[t]])
            for t in range(count):
                m = ties[t]
                touched += 1
                begun, free = n, decided.begins[m] != 0
                if skip == -1:
                    free = free and data[START, m] > bound
                elif skip >= 0:
                    free = free and data[START, m] >= bound
                reach, filled = -FOREVER, used
                if free:
                    attempts += 1
                    used, n, count_states, looked, reach = attempt(
                        m, decided.begins[m], chains, links, run, memo, count_states, call, attempts, pool, used, n
                    )
                    touched += looked
                    if used < 0:
                        return i, used, begun, touched, fell
                    touched += used - filled
                if found_again(m, begun, n, decided, pool):
                    if n > begun:
                        used = paths[P_AT, begun]
                    n = begun
                else:
                    same = False
                    old = first_paths[m]
                    while old >= 0:
                        if fell >= len(fallen):
                            return i, -1, begun, touched, fell
                        paths[P_STANDS, old] = 0
                        fallen[fell] = old
                        fell += 1
                        old = paths[P_NEXT, old]
                    first_paths[m] = begun if n > begun else -1
                    for p in range(begun, n - 1):
                        paths[P_NEXT, p] = p + 1
                table[m, REACH], table[m, LINKED] = reach, 0
                far = max(far, reach)
                table[m, UP_TO] = far
                if first_paths[m] >= 0:
                    last, bound = m, next_bound(first_paths[m], bound, data, run, pool)
                same = same and tried[m] >= 0
                tried[m] = call
            for t in range(count):  # what ends together is known together
                m = ties[t]
                same = same and table[m, FAR] == far and table[m, BOUND] == bound and table[m, LAST] == last
                table[m, FAR], table[m, BOUND], table[m, LAST] = far, bound, last
    return len(changed), used, n, touched, fell


@Kernel
def reaches(n: int, chains: MomentChains, decided: Decisions, result: Array) -> None:
    """The latest start of an event that may change the matches of all moments that end no later than each one, of each one
    itself, and of all up to it in the order of events.

    A moment that was linked to what came before it stands for all that reached it: these get its values here.
    """
    data, table = chains.data, decided.table
    for tail in range(n):
        if chains.after[tail] >= 0:
            continue
        here, linked, latest = tail, -1, FOREVER
        while here >= 0:
            result[0, here] = result[1, here] = result[2, here] = FOREVER
            if chains.alive[here] and decided.tried[here] >= 0:
                result[0, here], result[1, here] = table[here, FAR], table[here, REACH]
                result[2, here] = table[here, UP_TO]
                for row in range(3):
                    if linked >= 0 and result[row, here] >= data[START, linked]:
                        result[row, here] = max(result[row, here], latest)
                if table[here, LINKED]:
                    linked, latest = here, result[0, here]
            here = chains.prev[here]
