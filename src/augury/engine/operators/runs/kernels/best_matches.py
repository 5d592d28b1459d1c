"""The best matches that begin with a moment: a search that looks at each state of a match once.

A *state* is a moment as an iteration of a part, and how often the part was repeated so far. What can follow depends on the
state alone, so that the best way on from it is found once for all matches that come there, however many these are.
"""

from __future__ import annotations

from augury.core.arrays import Array, RowData
from augury.core.fields import END, START
from augury.core.jit import helper
from augury.core.limits import ALTERNATIVES
from augury.engine.operators.runs.kernels import BITS, EVER, FOREVER, OUT, TO
from augury.engine.operators.runs.kernels.records import MatchPool, MomentChains, MomentLinks, RunShape, SearchStates

MAKES_NO_ARRAYS = True
ACCEPT, NO_MOVE = -2, -1
NO_STATES, TOO_MANY = -2, -3  # there is no room for more states; there are more matches than the limit allows
# A match found: its first moment, where its moments are, how many, the next one with this first moment, its row, whether it
# stands, whether each of its moments was the only one to try, and the match that it is with one moment more.
P_FIRST, P_AT, P_LENGTH, P_NEXT, P_ROW, P_STANDS, P_CLEAN, P_OF = 0, 1, 2, 3, 4, 5, 6, 7
# A state: its moment, part and repetitions; whether a match can be completed from it, by which move, edge and next state;
# the latest start of an event that may change this; the first moment it was searched for, and whether its window has cut
# anything off; how many ways on were tried, whether there never was a choice, the attempt it was last written in; then how
# often each part comes from here on.
S_MOMENT, S_PART, S_TIMES, S_FOUND, S_MOVE, S_EDGE, S_NEXT, S_REACH, S_FOR, S_CUT, S_TRIED, S_CLEAN, S_WRITTEN, S_COUNTS = range(14)  # fmt: skip
# A step of the search: its state, the option it is at, and the edge there.
AT_STATE, AT_OPTION, AT_EDGE = 0, 1, 2


@helper
def precedes(a: int, b: int, chains: MomentChains) -> bool:
    """Whether a moment comes before another in the order of events."""
    data, rank = chains.data, chains.rank
    if data[END, a] != data[END, b]:
        return bool(data[END, a] < data[END, b])
    if data[START, a] != data[START, b]:
        return bool(data[START, a] < data[START, b])
    return bool(rank[a] < rank[b])


@helper
def latest_start(m: int, move: int, chains: MomentChains, links: MomentLinks, run: RunShape) -> int:
    """The latest start of an event that may still follow a moment by a move; long before all others where none may.

    By NEXT, what starts after the end of a neighbour is none; by THEN, what starts after the end of one that was found. And
    none starts later than the conditions of the move allow, counted from the start and from the end of the moment.
    """
    data, alive, after, edges, limits = chains.data, chains.alive, chains.after, links.edges, run.limits
    end, latest = data[END, m], FOREVER
    if run.then & (1 << move):
        e = links.out[m]
        while e >= 0:
            x = edges[TO, e]
            if edges[BITS, e] & (1 << move) and alive[x]:
                latest = min(latest, data[END, x])
            e = edges[OUT, e]
    else:
        here = after[m]
        while here >= 0 and (not alive[here] or data[START, here] <= end):
            here = after[here]
        if here >= 0:
            latest = data[END, here]
    if limits[0, move] < FOREVER:
        latest = min(latest, data[START, m] + limits[0, move])
    if limits[1, move] < FOREVER:
        latest = min(latest, end + limits[1, move])
    return int(latest if latest > end else -FOREVER)


@helper
def state_at(m: int, part: int, times: int, memo: SearchStates, call: int) -> tuple[int, int]:
    """The number of a state, -1 where there is none yet, and its slot in the table of those of this call."""
    states, slots = memo.states, memo.slots
    mask = slots.shape[1] - 1
    slot = (31 * m + 7 * part + times) & mask
    while slots[0, slot] == call:
        s = slots[1, slot]
        if states[S_MOMENT, s] == m and states[S_PART, s] == part and states[S_TIMES, s] == times:
            return int(s), int(slot)
        slot = (slot + 1) & mask
    return -1, int(slot)


@helper
def usable(s: int, first: int, states: Array, data: RowData) -> bool:
    """Whether what was found from a state on holds for matches with this first moment: its window cuts nothing off."""
    if states[S_FOR, s] == first:
        return True
    return bool(not states[S_CUT, s] and data[START, states[S_FOR, s]] <= data[START, first])


@helper
def enter(s: int, m: int, part: int, times: int, first: int, states: Array, parts: int) -> None:
    """A state of which nothing is known yet."""
    states[S_MOMENT, s], states[S_PART, s], states[S_TIMES, s] = m, part, times
    states[S_FOUND, s], states[S_MOVE, s], states[S_EDGE, s], states[S_NEXT, s] = 0, NO_MOVE, -1, -1
    states[S_REACH, s], states[S_FOR, s], states[S_CUT, s] = -FOREVER, first, 0
    states[S_TRIED, s], states[S_CLEAN, s], states[S_WRITTEN, s] = 0, 1, -1
    for p in range(parts):
        states[S_COUNTS + p, s] = 0


@helper
def compared_counts(s: int, following: int, part: int, states: Array, quantified: Array, shortest: bool) -> int:
    """Whether going on with another state is better (1), as good (0) or worse (-1) than the best way on so far."""
    for q in range(len(quantified)):
        p = quantified[q]
        new, old = states[S_COUNTS + p, following] + (p == part), states[S_COUNTS + p, s]
        if new != old:
            return 1 if (new < old) == shortest else -1
    return 0


@helper
def offer(
    s: int, move: int, e: int, following: int, states: Array, chains: MomentChains, edges: Array, run: RunShape
) -> None:
    """A state learns what becomes of it by one way on. Of equally good ones, the one whose event comes first stays."""
    states[S_REACH, s] = max(states[S_REACH, s], states[S_REACH, following])
    states[S_CUT, s] |= states[S_CUT, following]
    states[S_TRIED, s] += 1
    if states[S_TRIED, s] > 1 or not states[S_FOUND, following] or not states[S_CLEAN, following]:
        states[S_CLEAN, s] = 0
    if not states[S_FOUND, following]:
        return
    part = states[S_PART, following]
    if states[S_FOUND, s]:
        better = compared_counts(s, following, part, states, run.quantified, run.shortest)
        if better < 0:
            return
        if better == 0 and not precedes(edges[TO, e], edges[TO, states[S_EDGE, s]], chains):
            return
    states[S_FOUND, s], states[S_MOVE, s], states[S_EDGE, s], states[S_NEXT, s] = 1, move, e, following
    for p in range(len(run.least)):
        states[S_COUNTS + p, s] = states[S_COUNTS + p, following] + (p == part)


@helper
def counted(times: int, part: int, run: RunShape) -> int:
    """Repetitions as far as they matter: beyond the least number, where there is no greatest, one is as another."""
    return int(min(times, run.least[part]) if run.most[part] < 0 else times)


@helper
def search(
    first: int,
    root: int,
    chains: MomentChains,
    links: MomentLinks,
    run: RunShape,
    memo: SearchStates,
    count: int,
    call: int,
) -> tuple[int, int, int]:
    """The best way on from a first moment as an iteration of a part: its state, how many states there are, and how many
    ways were tried. The state is -1 where there is no room."""
    data, alive, edges, window = chains.data, chains.alive, links.edges, run.window
    states, stack, slots = memo.states, memo.stack, memo.slots
    parts, tried = len(run.least), 0
    s, slot = state_at(first, root, counted(1, root, run), memo, call)
    if s >= 0 and usable(s, first, states, data):
        return s, count, 0
    if s < 0:
        if count + 1 >= states.shape[1]:
            return -1, count, 0
        s, count = count, count + 1
        slots[0, slot], slots[1, slot] = call, s
    enter(s, first, root, counted(1, root, run), first, states, parts)
    begun, depth = s, 0
    stack[0, AT_STATE], stack[0, AT_OPTION], stack[0, AT_EDGE] = s, 0, -1
    while depth >= 0:
        s = stack[depth, AT_STATE]
        m, part, times = states[S_MOMENT, s], states[S_PART, s], states[S_TIMES, s]
        option = run.options[part, stack[depth, AT_OPTION]]
        if option == NO_MOVE or (states[S_FOUND, s] and stack[depth, AT_EDGE] == -1):
            depth -= 1
            if depth >= 0:
                above, e = stack[depth, AT_STATE], stack[depth, AT_EDGE]
                move = run.options[states[S_PART, above], stack[depth, AT_OPTION]]
                offer(above, move, e, s, states, chains, edges, run)
            continue
        if option == ACCEPT:
            stack[depth, AT_OPTION] += 1
            if times >= run.least[part]:
                states[S_FOUND, s], states[S_MOVE, s] = 1, ACCEPT
            continue
        target, e = run.moves[1, option], -1
        may = (run.most[part] < 0 or times < run.most[part]) if target == part else times >= run.least[part]
        if may and stack[depth, AT_EDGE] == -1:
            if data[START, first] + window <= data[END, m]:
                states[S_CUT, s] = 1  # nothing that follows is within the window
            else:
                reach = latest_start(m, option, chains, links, run)
                states[S_REACH, s] = max(states[S_REACH, s], reach)
            e = links.out[m]
        elif may:
            e = edges[OUT, stack[depth, AT_EDGE]]
        while e >= 0:
            x = edges[TO, e]
            if edges[BITS, e] & (1 << option) and alive[x]:
                if data[END, x] - data[START, first] <= window:
                    break
                states[S_CUT, s] = 1
            e = edges[OUT, e]
        stack[depth, AT_EDGE] = e
        if e < 0:
            if not states[S_FOUND, s]:
                stack[depth, AT_OPTION] += 1
            continue
        tried += 1
        x, again = edges[TO, e], counted(times + 1 if target == part else 1, target, run)
        following, slot = state_at(x, target, again, memo, call)
        if following >= 0 and usable(following, first, states, data):
            offer(s, option, e, following, states, chains, edges, run)
            continue
        if following < 0:
            if count + 1 >= states.shape[1]:
                return -1, count, tried
            following, count = count, count + 1
            slots[0, slot], slots[1, slot] = call, following
        enter(following, x, target, again, first, states, parts)
        depth += 1
        stack[depth, AT_STATE], stack[depth, AT_OPTION], stack[depth, AT_EDGE] = following, 0, -1
    return begun, count, tried


@helper
def store_path(depth: int, first: int, clean: bool, memo: SearchStates, pool: MatchPool, used: int, n: int) -> None:
    """A match of the states on the stack."""
    paths = pool.paths
    for d in range(depth + 1):
        pool.moments[0, used + d] = memo.states[S_MOMENT, memo.stack[d, AT_STATE]]
        pool.moments[1, used + d] = memo.states[S_PART, memo.stack[d, AT_STATE]]
    paths[P_FIRST, n], paths[P_AT, n], paths[P_LENGTH, n] = first, used, depth + 1
    paths[P_NEXT, n], paths[P_ROW, n], paths[P_STANDS, n], paths[P_OF, n] = -1, -1, 1, -1
    paths[P_CLEAN, n] = clean


@helper
def write_matches(
    root: int, first: int, clean: bool, chains: MomentChains, links: MomentLinks, run: RunShape, memo: SearchStates, call: int,
    number: int, pool: MatchPool, used: int, n: int,
) -> tuple[int, int]:  # fmt: skip
    """The best matches from a state on: with SKIP the first of them; `merged`, one for each last moment; else all. `number`
    is that of the attempt: a call may try a first moment several times.

    How much of the pool is used then, and how many matches there are; -1 where there is no room.
    """
    data, edges, states, stack = chains.data, links.edges, memo.states, memo.stack
    single, depth, before, filled = run.skip > -2, 0, n, used
    stack[0, AT_STATE], stack[0, AT_EDGE] = root, -1
    while depth >= 0:
        s = stack[depth, AT_STATE]
        move = states[S_MOVE, s]
        if move == ACCEPT:
            if used + depth + 1 > pool.moments.shape[1] or n + 1 >= pool.paths.shape[1]:
                return -1, n
            store_path(depth, first, clean, memo, pool, used, n)
            used, n = used + depth + 1, n + 1
            if single:
                return used, n
            if n - before > ALTERNATIVES and used - filled > run.most_matches:
                return TOO_MANY, n
            depth -= 1
            continue
        following = -1
        if single:
            following = states[S_NEXT, s]
        else:
            target, e = run.moves[1, move], stack[depth, AT_EDGE]
            again = counted(states[S_TIMES, s] + 1 if target == states[S_PART, s] else 1, target, run)
            e = links.out[states[S_MOMENT, s]] if e == -1 else edges[OUT, e]
            while e >= 0:
                x = edges[TO, e]
                if edges[BITS, e] & (1 << move) and chains.alive[x] and data[END, x] - data[START, first] <= run.window:
                    following, _ = state_at(x, target, again, memo, call)
                    if (
                        states[S_FOUND, following]
                        and compared_counts(s, following, target, states, run.quantified, False) == 0
                        and not (run.merged and states[S_WRITTEN, following] == number)
                    ):
                        break
                    following = -1
                e = edges[OUT, e]
            stack[depth, AT_EDGE] = e
        if following < 0:
            depth -= 1
            continue
        states[S_WRITTEN, following] = number
        depth += 1
        stack[depth, AT_STATE], stack[depth, AT_EDGE] = following, -1
    return used, n


@helper
def attempt(
    first: int, starts: int, chains: MomentChains, links: MomentLinks, run: RunShape, memo: SearchStates, count: int, call: int,
    number: int, pool: MatchPool, used: int, n: int,
) -> tuple[int, int, int, int, int]:  # fmt: skip
    """The best matches that begin with a moment: how much of the pool is used then, how many paths and states there are,
    how many ways were tried, and the latest start of an event that may change them. Where there is no room for matches
    -1, for states `NO_STATES`; `TOO_MANY` beyond the limit.
    """
    tried, latest = 0, -FOREVER
    for r in range(len(run.roots)):
        if not starts & (1 << run.roots[r]):
            continue
        root, count, more = search(first, run.roots[r], chains, links, run, memo, count, call)
        tried += more
        if root < 0:
            return NO_STATES, n, count, tried, latest
        latest = max(latest, memo.states[S_REACH, root])
        if memo.states[S_FOUND, root]:
            clean = r == 0 and memo.states[S_CLEAN, root] == 1 and memo.states[S_CUT, root] == 0
            before = n
            used, n = write_matches(root, first, clean, chains, links, run, memo, call, number, pool, used, n)
            if used < 0:
                return used, before, count, tried, latest
            break
    if run.window < EVER:
        latest = min(latest, chains.data[START, first] + run.window)
    return used, n, count, tried, latest
