"""The hot loops of runs: from an event to those before and after it, and from a partial match to longer ones.

An *edge* leads from a moment to one that may follow it in a run; its bits say by which *moves*, each from a part to a part.
A partial match is a row: its parent (left), its moment (right), its part, its first moment, then for each part its last
moment there, or -1, and how often the part was repeated.
"""

from __future__ import annotations

from augury.jit import Array, Kernel, helper

MAKES_NO_ARRAYS = True
START, END, LEFT, RIGHT, RANK, PART, FIRST, STATE = 0, 1, 2, 3, 4, 5, 6, 7
# Of an edge: its ends, its moves, the next one into and out of the same moments.
FROM, TO, BITS, INTO, OUT = 0, 1, 2, 3, 4
NEIGHBOUR = 1  # the kind of an edge between neighbours; that of an edge to a part is 2 << part
NEVER = -(1 << 62)
NO_CODE = -1  # of null, which equals nothing


# Edges


@helper
def is_some_part(data: Array, moment: int, rows: Array) -> bool:
    """Whether a moment may be part of a match; else it just stands between others."""
    found = False
    for p in range(len(rows)):
        found = found or data[rows[p], moment] >= 0
    return found


@Kernel
def before(
    targets: Array, at: int, data: Array, alive: Array, prev: Array, rows: Array, links: Array, neighbours: bool,
    longest: int, latest: Array, found: Array,
) -> tuple[int, int, int]:  # fmt: skip
    """Edges into moments, from the target `at` on: (from, to, kinds). How far it came, how many it found and looked at.

    `links` says for each part what leads to it: 0 neighbours, 1 what no other moment of that part lies behind, 2 all before.
    """
    n, room, touched, parts = 0, found.shape[1], 0, len(rows)
    for i in range(at, len(targets)):
        x = targets[i]
        if not alive[x] or not is_some_part(data, x, rows):
            continue
        began, start, least = n, data[START, x], data[END, x] - longest
        for p in range(parts + 1):
            latest[p] = NEVER
        here = prev[x]
        while here >= 0:
            touched += 1
            end = data[END, here]
            if not alive[here] or end >= start:
                here = prev[here]
                continue
            if end < least:
                break
            kinds = NEIGHBOUR if neighbours and latest[parts] <= end else 0
            for p in range(parts):
                if links[p] > 0 and data[rows[p], x] >= 0 and (links[p] == 2 or latest[p] <= end):
                    kinds |= 2 << p
            if kinds == 0:
                break
            if data[START, here] >= least and is_some_part(data, here, rows):
                if n == room:
                    return i, began, touched
                found[0, n] = here
                found[1, n] = x
                found[2, n] = kinds
                n += 1
            begins = data[START, here]
            latest[parts] = max(latest[parts], begins)
            for p in range(parts):
                if data[rows[p], here] >= 0:
                    latest[p] = max(latest[p], begins)
            here = prev[here]
    return len(targets), n, touched


@Kernel
def behind(
    changed: Array, at: int, data: Array, alive: Array, after: Array, rows: Array, links: Array, lasts: int,
    soonest: Array, found: Array,
) -> tuple[int, int, int]:  # fmt: skip
    """The moments whose edges may be others because some have come or gone: (changed, behind, whether all lead there).

    How far it came, how many it found, and how many it looked at. No moment lasts longer than `lasts`.
    """
    n, room, touched, parts = 0, found.shape[1], 0, len(rows)
    for i in range(at, len(changed)):
        x = changed[i]
        began, ends = n, data[END, x]
        waiting = 1
        for p in range(parts + 1):
            soonest[p] = -NEVER
        for p in range(parts):
            waiting += links[p] > 0
        here = after[x]
        while here >= 0 and waiting:
            touched += 1
            if not alive[here] or data[START, here] <= ends:
                here = after[here]
                continue
            start, end = data[START, here], data[END, here]
            near, follows, waiting = start <= soonest[parts], False, 0
            for p in range(parts):
                if links[p] > 0 and data[rows[p], here] >= 0:
                    if links[p] == 2:
                        follows = True
                    elif start <= soonest[p]:
                        near = True
            if near or follows:
                if n == room:
                    return i, began, touched
                found[0, n] = x
                found[1, n] = here
                found[2, n] = 1 if near else 0
                n += 1
            soonest[parts] = min(soonest[parts], end)
            waiting += end <= soonest[parts] + lasts
            for p in range(parts):
                if data[rows[p], here] >= 0:
                    soonest[p] = min(soonest[p], end)
                waiting += links[p] == 2 or (links[p] == 1 and (soonest[p] == -NEVER or end <= soonest[p] + lasts))
            here = after[here]
    return len(changed), n, touched


@Kernel
def lies_before(first: int, n: int, after: Array, late: Array) -> None:
    """Marks the moments from `first` on behind which there is one that came before them. They come mostly in order."""
    for x in range(n - 1, first - 1, -1):
        here = after[x]
        if x < here < n:
            late[x - first] = late[here - first]
        elif here >= 0:
            late[x - first] = 1


@helper
def add_edge(e: int, source: int, target: int, edges: Array, into: Array, out: Array) -> None:
    """An edge between two moments, without moves so far."""
    edges[FROM, e] = source
    edges[TO, e] = target
    edges[BITS, e] = 0
    edges[INTO, e] = into[target]
    edges[OUT, e] = out[source]
    into[target] = e
    out[source] = e


@Kernel
def relink(
    targets: Array, given: Array, search: bool, sought: int, edges: Array, n: int, into: Array, out: Array, queue: Array,
    cut: Array,
) -> tuple[int, int, int]:  # fmt: skip
    """Puts edges (from, to, moves) among those there are; all that lead to the targets are given, other ones may be.
    Without `search` all are new. Moves in `sought` are left as they are.

    Returns how many edges there are, how many have moves that are new (`queue`: edge, moves) and how many lost some (`cut`).
    """
    added = known = 0
    for i in range(len(targets)):
        e = into[targets[i]]
        while e >= 0:
            cut[0, known] = e
            cut[1, known] = edges[BITS, e] & ~sought
            known += 1
            edges[BITS, e] &= sought
            e = edges[INTO, e]
    first = n  # edges from here on are new
    for i in range(given.shape[1]):
        a, x, bits = given[0, i], given[1, i], given[2, i]
        if bits == 0:
            continue
        e = into[x] if search else -1
        while e >= 0 and edges[FROM, e] != a:
            e = edges[INTO, e]
        if e < 0:
            e = n
            n += 1
            add_edge(e, a, x, edges, into, out)
        if e >= first:
            queue[0, added] = e
            queue[1, added] = bits & ~edges[BITS, e]
            added += queue[1, added] != 0
        edges[BITS, e] |= bits
    lost = 0
    for i in range(known):
        e, old = cut[0, i], cut[1, i]
        new = edges[BITS, e] & ~sought
        if new & ~old:
            queue[0, added] = e
            queue[1, added] = new & ~old
            added += 1
        if old & ~new:
            cut[0, lost] = e
            cut[1, lost] = old & ~new
            lost += 1
    return n, added, lost


# Searches of THEN

S_AT, S_FOUND, S_NEXT = 0, 1, 2  # of a moment: how far it has looked, the least end found, the next that waits
NOT_WAITING = -2
FOUND = 1 << 61  # marks an edge for a while


@Kernel
def chains_of(new: Array, prev: Array, after: Array, chain_of: Array, count: int) -> int:
    """Numbers the chains of new moments; how many there are then."""
    for i in range(len(new)):
        here = new[i]
        if chain_of[here] >= 0:
            continue
        while prev[here] >= 0 and chain_of[here] < 0:
            here = prev[here]
        number = chain_of[here]
        last = new[i]
        while number < 0 and last >= 0:  # none before it has one
            number = chain_of[last]
            last = after[last]
        if number < 0:
            number = count
            count += 1
        while here >= 0 and here != new[i]:
            chain_of[here] = number
            here = after[here]
        chain_of[new[i]] = number
    return count


@Kernel
def seekers(
    changed: Array, data: Array, alive: Array, prev: Array, source: int, state: Array, longest: int, found: Array, marks: Array
) -> tuple[int, int]:  # fmt: skip
    """The moments before others that may find something else now; how many, and how many it looked at."""
    count = touched = 0
    for i in range(len(changed)):
        x = changed[i]
        start, least = data[START, x], data[END, x] - longest
        here = prev[x]
        while here >= 0:
            touched += 1
            if data[END, here] < least:
                break
            if (
                alive[here]
                and not marks[here]
                and data[source, here] >= 0
                and data[END, here] < start
                and state[S_FOUND, here] >= start
            ):
                marks[here] = 1
                found[count] = here
                count += 1
            here = prev[here]
    return count, touched


@Kernel
def waiting(chains: Array, state: Array, heads: Array, alive: Array, found: Array) -> int:
    """Takes the moments that wait out of their chains; how many there are."""
    count = 0
    for i in range(len(chains)):
        here = heads[chains[i]]
        heads[chains[i]] = -1
        while here >= 0:
            after = state[S_NEXT, here]
            state[S_NEXT, here] = NOT_WAITING
            if alive[here]:
                found[count] = here
                count += 1
            here = after
    return count


@Kernel
def wait(sources: Array, state: Array, chain_of: Array, heads: Array) -> None:
    """Puts moments that do not know yet among those that wait in their chains."""
    for i in range(len(sources)):
        m = sources[i]
        if state[S_AT, m] >= -1 and state[S_NEXT, m] == NOT_WAITING:
            state[S_NEXT, m] = heads[chain_of[m]]
            heads[chain_of[m]] = m


@Kernel
def candidates(
    sources: Array, portion: int, data: Array, alive: Array, after: Array, target: int, state: Array, longest: int, lasts: int,
    pairs: Array, done: Array,
) -> tuple[int, int]:  # fmt: skip
    """The next moments that may be what moments look for, up to `portion` for each: (from, to). How many, and looked at.

    `done` is 1 where there is no more for now, 2 where nothing that comes can matter; then the place is -2.
    """
    n = touched = 0
    for i in range(len(sources)):
        m = sources[i]
        here = after[state[S_AT, m] if state[S_AT, m] >= 0 else m]
        given, last = 0, state[S_AT, m]
        while here >= 0 and given < portion:
            touched += 1
            last_seen = here
            if alive[here] and data[START, here] > data[END, m]:
                if data[END, here] > state[S_FOUND, m] + lasts or data[END, here] - data[START, m] > longest:
                    last = -2
                    break
                if data[START, here] <= state[S_FOUND, m] and data[target, here] >= 0:
                    pairs[0, n] = m
                    pairs[1, n] = here
                    n += 1
                    given += 1
            last = last_seen
            here = after[here]
        state[S_AT, m] = last
        if last == -2:
            done[i] = 2
        elif here < 0:
            done[i] = 1
    return n, touched


@helper
def compared(op: int, x: float, y: float) -> bool:
    if op == 0:
        return bool(x < y)
    if op == 1:
        return bool(x <= y)
    if op == 2:
        return bool(x > y)
    if op == 3:
        return bool(x >= y)
    return bool(x == y) if op == 4 else bool(x != y)


@helper
def none_holds(tests: Array, numbers: Array, low: Array, high: Array, m: int, block: int) -> bool:
    """Whether a test fails for a moment and any one of a block: for the least, or the greatest, of its numbers."""
    for t in range(tests.shape[0]):
        op = tests[t, 0]
        if op > 3 or tests[t, 2] == tests[t, 4]:
            continue
        if tests[t, 2]:
            x, y = low[tests[t, 1], block] if op < 2 else high[tests[t, 1], block], numbers[tests[t, 3], m]
        else:
            x, y = numbers[tests[t, 1], m], high[tests[t, 3], block] if op < 2 else low[tests[t, 3], block]
        if not compared(op, x, y):
            return True
    return False


@Kernel
def find_numbers(
    sources: Array, at: int, data: Array, alive: Array, after: Array, target: int, state: Array, longest: int, lasts: int,
    tests: Array, numbers: Array, agree: Array, codes: Array, low: Array, high: Array, whole: Array, size: int,
    pairs: Array,
) -> tuple[int, int, int]:  # fmt: skip
    """Looks on from moments until each knows what it looks for, or there is no more, where that is said by numbers.

    A test is (comparison, row of `numbers`, of the target, row, of the target); a row of `numbers` has one for each moment.
    `agree` are rows of `codes` that must be equal: of the source, of the target. A block of `size` moments that are `whole`,
    and whose `low` and `high` numbers rule all of them out, is passed over. How far it came, the pairs, and looked at.
    """
    n = touched = 0
    for i in range(at, len(sources)):
        m, began = sources[i], n
        place, least = state[S_AT, m], state[S_FOUND, m]
        here = after[place if place >= 0 else m]
        full = False
        while here >= 0:
            touched += 1
            if alive[here] and data[START, here] > data[END, m]:
                if data[END, here] > least + lasts or data[END, here] - data[START, m] > longest:
                    place = -2
                    break
                block = here // size
                known = here % size == 0 and block < len(whole) and whole[block]
                if known and none_holds(tests, numbers, low, high, m, block):
                    place = here + size - 1
                    here = after[place]
                    continue
                if data[START, here] <= least and data[target, here] >= 0:
                    held = True
                    for g in range(agree.shape[0]):
                        code = codes[agree[g, 0], m]
                        held = held and code == codes[agree[g, 1], here] and code != NO_CODE
                    for t in range(tests.shape[0]):
                        if not held:
                            break
                        x = numbers[tests[t, 1], here if tests[t, 2] else m]
                        y = numbers[tests[t, 3], here if tests[t, 4] else m]
                        held = compared(tests[t, 0], x, y)
                    if held:
                        if n == pairs.shape[1]:
                            full = True
                            break
                        pairs[0, n] = m
                        pairs[1, n] = here
                        n += 1
                        least = min(least, data[END, here])
            place = here
            here = after[here]
        if full:
            return i, began, touched
        state[S_AT, m], state[S_FOUND, m] = place, least
    return len(sources), n, touched


@Kernel
def rewire(
    sources: Array, mask: int, given: Array, edges: Array, n: int, into: Array, out: Array, queue: Array, cut: Array
) -> tuple[int, int, int]:
    """Puts edges (from, to) that go by the move of a mask among those there are; of the sources, all of them are given.

    Returns how many edges there are, how many have moves that are new (`queue`) and how many lost some (`cut`).
    """
    known = added = lost = 0
    for i in range(len(sources)):
        e = out[sources[i]]
        while e >= 0:
            if edges[BITS, e] & mask:
                cut[0, known] = e
                known += 1
            e = edges[OUT, e]
    for i in range(given.shape[1]):
        a, x = given[0, i], given[1, i]
        e = out[a]
        while e >= 0 and edges[TO, e] != x:
            e = edges[OUT, e]
        if e < 0:
            e = n
            n += 1
            add_edge(e, a, x, edges, into, out)
        if not edges[BITS, e] & mask:
            queue[0, added] = e
            queue[1, added] = mask
            added += 1
        edges[BITS, e] |= mask | FOUND
        given[2, i] = e
    for i in range(known):
        e = cut[0, i]
        if not edges[BITS, e] & FOUND:
            edges[BITS, e] &= ~mask
            cut[0, lost] = e
            cut[1, lost] = mask
            lost += 1
    for i in range(given.shape[1]):
        edges[BITS, given[2, i]] &= ~FOUND
    return n, added, lost


# Partial matches


@helper
def put(
    data: Array,
    n: int,
    parent: int,
    moment: int,
    part: int,
    moments: Array,
    parts: int,
    heads: Array,
    chain: Array,
    kids: Array,
) -> None:
    """A partial match with one more moment."""
    data[END, n] = moments[END, moment]
    data[LEFT, n] = parent
    data[RIGHT, n] = moment
    data[PART, n] = part
    if parent < 0:
        data[START, n] = moments[START, moment]
        data[RANK, n] = moments[RANK, moment]
        data[FIRST, n] = moment
        for p in range(parts):
            data[STATE + p, n] = -1
            data[STATE + parts + p, n] = 0
    else:
        data[START, n] = data[START, parent]
        data[RANK, n] = max(data[RANK, parent], moments[RANK, moment])
        for f in range(FIRST, STATE + 2 * parts):
            data[f, n] = data[f, parent]
        kids[1, n] = kids[0, parent]
        kids[0, parent] = n
    kids[0, n] = -1
    data[STATE + part, n] = moment
    data[STATE + parts + part, n] += 1
    chain[n] = heads[moment]
    heads[moment] = n


@helper
def may_move(data: Array, p: int, move: int, moves: Array, least: Array, most: Array, parts: int) -> bool:
    """Whether a partial match may go on by a move: it is at its part, which was repeated often enough, and not too often."""
    part = data[PART, p]
    if moves[0, move] != part:
        return False
    times = data[STATE + parts + part, p]
    if moves[1, move] == part:
        return bool(most[part] < 0 or times < most[part])
    return bool(times >= least[part])


@Kernel
def begin(
    starts: Array,
    parts_of: Array,
    data: Array,
    n: int,
    alive: Array,
    moments: Array,
    parts: int,
    heads: Array,
    chain: Array,
    kids: Array,
) -> int:
    """Partial matches of one moment each; how many there are then."""
    for i in range(len(starts)):
        put(data, n, -1, starts[i], parts_of[i], moments, parts, heads, chain, kids)
        alive[n] = 1
        n += 1
    return n


@helper
def passes(data: Array, p: int, x: int, move: int, tests: Array, numbers: Array) -> bool:
    """Whether numbers let a partial match go on with a moment by a move.

    A test is (move, comparison, row of numbers, the part whose last moment has it, row, part); part -1 is the new moment.
    """
    for t in range(tests.shape[0]):
        if tests[t, 0] == move:
            a = x if tests[t, 3] < 0 else data[STATE + tests[t, 3], p]
            b = x if tests[t, 5] < 0 else data[STATE + tests[t, 5], p]
            if a < 0 or b < 0 or not compared(tests[t, 1], numbers[tests[t, 2], a], numbers[tests[t, 4], b]):
                return False
    return True


@helper
def go_on(
    p: int, e: int, bits: int, data: Array, n: int, alive: Array, moments: Array, edges: Array, heads: Array, chain: Array,
    kids: Array, moves: Array, chosen: int, tests: Array, numbers: Array, least: Array, most: Array, parts: int,
    asked: Array, questions: int,
) -> tuple[int, int]:  # fmt: skip
    """A partial match goes on along an edge by some moves. How many partial matches there are then, and questions."""
    x = edges[TO, e]
    for m in range(moves.shape[1]):
        if bits & (1 << m) and may_move(data, p, m, moves, least, most, parts):
            if chosen & (1 << m):
                asked[0, questions] = p
                asked[1, questions] = e
                asked[2, questions] = m
                questions += 1
            elif passes(data, p, x, m, tests, numbers):
                put(data, n, p, x, moves[1, m], moments, parts, heads, chain, kids)
                alive[n] = 1
                n += 1
    return n, questions


@Kernel
def grow(
    queue: Array, cursor: Array, data: Array, n: int, alive: Array, moments: Array, edges: Array, out: Array,
    heads: Array, chain: Array, kids: Array, moves: Array, chosen: int, tests: Array, numbers: Array, least: Array, most: Array,
    parts: int, longest: int, asked: Array,
) -> tuple[int, int]:  # fmt: skip
    """Partial matches go on along new edges, and new ones along all edges. How many there are, and questions asked.

    `cursor` is where it stands: the next edge of the queue and the partial match there, then the next new partial match
    and the edge there, and how many partial matches were there before. Moves in `chosen` are not made but `asked`: (partial match,
    edge, move). It stops where there is no room for more.
    """
    room, n_moves, questions, places = data.shape[1], moves.shape[1], 0, asked.shape[1]
    while cursor[0] < queue.shape[1]:
        e, bits = queue[0, cursor[0]], queue[1, cursor[0]]
        x = edges[TO, e]
        p = cursor[1] if cursor[1] >= 0 else heads[edges[FROM, e]]
        while p >= 0:
            if p < cursor[4] and alive[p] and moments[END, x] - data[START, p] <= longest:
                if n + n_moves > room or questions + n_moves > places:
                    cursor[1] = p
                    return n, questions
                n, questions = go_on(
                    p, e, bits, data, n, alive, moments, edges, heads, chain, kids, moves, chosen, tests, numbers,
                    least, most, parts, asked, questions,
                )  # fmt: skip
            p = chain[p]
        cursor[0] += 1
        cursor[1] = -1
    while cursor[2] < n:
        p = cursor[2]
        e = cursor[3] if cursor[3] >= 0 else out[data[RIGHT, p]]
        while e >= 0 and alive[p]:
            x, bits = edges[TO, e], edges[BITS, e]
            if bits and moments[END, x] - data[START, p] <= longest:
                if n + n_moves > room or questions + n_moves > places:
                    cursor[3] = e
                    return n, questions
                n, questions = go_on(
                    p, e, bits, data, n, alive, moments, edges, heads, chain, kids, moves, chosen, tests, numbers,
                    least, most, parts, asked, questions,
                )  # fmt: skip
            e = edges[OUT, e]
        cursor[2] += 1
        cursor[3] = -1
    return n, questions


@helper
def fell(p: int, alive: Array, kids: Array, gone: Array, count: int) -> int:
    """A partial match falls, with all that were made of it."""
    if not alive[p]:
        return count
    alive[p] = 0
    first = count
    gone[count] = p
    count += 1
    while first < count:
        kid = kids[0, gone[first]]
        while kid >= 0:
            if alive[kid]:
                alive[kid] = 0
                gone[count] = kid
                count += 1
            kid = kids[1, kid]
        first += 1
    return count


@Kernel
def fall_at(
    dead: Array, edges: Array, into: Array, alive: Array, heads: Array, chain: Array, kids: Array, gone: Array
) -> int:
    """What goes through moments that are gone falls, and no edge leads to them; how many fell."""
    count = 0
    for i in range(len(dead)):
        e = into[dead[i]]
        while e >= 0:
            edges[BITS, e] = 0
            e = edges[INTO, e]
        p = heads[dead[i]]
        while p >= 0:
            count = fell(p, alive, kids, gone, count)
            p = chain[p]
    return count


@Kernel
def fall_along(
    cut: Array,
    edges: Array,
    data: Array,
    alive: Array,
    heads: Array,
    chain: Array,
    kids: Array,
    moves: Array,
    gone: Array,
) -> int:
    """What went along edges by moves that they no longer have falls; how many."""
    count = 0
    for i in range(cut.shape[1]):
        e, bits = cut[0, i], cut[1, i]
        p = heads[edges[FROM, e]]
        while p >= 0:
            kid = kids[0, p]
            while kid >= 0:
                if alive[kid] and data[RIGHT, kid] == edges[TO, e]:
                    for m in range(moves.shape[1]):
                        if bits & (1 << m) and moves[0, m] == data[PART, p] and moves[1, m] == data[PART, kid]:
                            count = fell(kid, alive, kids, gone, count)
                            break
                kid = kids[1, kid]
            p = chain[p]
    return count


@Kernel
def plant(
    given: Array, at: int, data: Array, n: int, alive: Array, moments: Array, edges: Array, heads: Array, chain: Array, kids: Array,
    moves: Array, choosy: int, parts: int, gone: Array,
) -> tuple[int, int, int]:  # fmt: skip
    """Partial matches go on by moves that were asked about: (partial match, edge, move). By a move in `choosy` just the
    soonest goes on. How far it came, how many partial matches there are, and how many fell."""
    fallen, room = 0, data.shape[1]
    for i in range(at, given.shape[1]):
        if n == room:
            return i, n, fallen
        p, x, m = given[0, i], edges[TO, given[1, i]], given[2, i]
        part = moves[1, m]
        if not alive[p]:
            continue
        free, kid = True, kids[0, p]
        while kid >= 0:
            y = data[RIGHT, kid]
            if alive[kid] and data[PART, kid] == part:
                if y == x:
                    free = False
                elif choosy & (1 << m):
                    if moments[END, y] < moments[START, x]:
                        free = False
                    elif moments[END, x] < moments[START, y]:
                        fallen = fell(kid, alive, kids, gone, fallen)
            kid = kids[1, kid]
        if free:
            put(data, n, p, x, part, moments, parts, heads, chain, kids)
            alive[n] = 1
            n += 1
    return given.shape[1], n, fallen


@Kernel
def chains(rows: Array, data: Array, found: Array, lengths: Array) -> int:
    """The partial matches that rows consist of, each row's from its first moment to its last; how many in all."""
    count = 0
    for i in range(len(rows)):
        first, p = count, rows[i]
        while p >= 0:
            if count < len(found):
                found[count] = p
            count += 1
            p = data[LEFT, p]
        lengths[i] = count - first
        if count <= len(found):
            lo, hi = first, count - 1
            while lo < hi:
                found[lo], found[hi] = found[hi], found[lo]
                lo += 1
                hi -= 1
    return count


@Kernel
def thread(data: Array, lo: int, hi: int, alive: Array, heads: Array, chain: Array, kids: Array) -> None:
    """Makes the lists of partial matches by moment and by parent anew."""
    for p in range(lo, hi):
        kids[0, p] = -1
        if not alive[p]:
            continue
        moment, parent = data[RIGHT, p], data[LEFT, p]
        chain[p] = heads[moment]
        heads[moment] = p
        if parent >= 0:
            kids[1, p] = kids[0, parent]
            kids[0, parent] = p


@Kernel
def shut_behind(data: Array, alive: Array, n: int, after: Array, settled: int, shut: Array) -> None:
    """Marks the moments behind which there is one that ends before `settled`: nothing that comes is their neighbour."""
    for x in range(n):
        here = after[x]
        while here >= 0 and (not alive[here] or data[START, here] <= data[END, x]):
            here = after[here]
        if here >= 0 and data[END, here] < settled:
            shut[x] = 1


# Aggregates along the run

# What is kept of an aggregate: how many values it has; their sum, of ones, of 2^-62 and of 2^-124, or the code of the best
# one and a number that orders as it does; flags.
A_COUNT, A_ONES, A_MIDDLE, A_LEAST, A_FLAGS = 0, 1, 2, 3, 4
A_CODE, A_NUMBER = A_ONES, A_MIDDLE
ITSELF = -2  # as a source: a match goes on from what it has itself
NULL, INTEGER, FLOAT, HARD = 0, 1, 2, 4  # kinds of values, and flags
LIMB = 1 << 62


@Kernel
def carry(
    rows: Array, sources: Array, slots: Array, sign: int, kinds: Array, codes: Array, limbs: Array, state: Array
) -> None:  # fmt: skip
    """Matches have what those have that they go on from, -1 for nothing, and one more value, where they have a slot.

    With a `sign` the greatest value stays (1), or the least (-1); of equal ones the first.
    """
    for i in range(len(rows)):
        row, source, at = rows[i], sources[i], slots[i]
        if source == -1:
            for f in range(5):
                state[f, row] = 0
        elif source >= 0:
            for f in range(5):
                state[f, row] = state[f, source]
        if at < 0 or kinds[at] == NULL:
            continue
        state[A_FLAGS, row] |= kinds[at]
        if kinds[at] == HARD:
            continue
        if sign == 0:
            ones, middle = state[A_ONES, row] + limbs[0, at], state[A_MIDDLE, row] + limbs[1, at]
            least = state[A_LEAST, row] + limbs[2, at]
            if least >= LIMB:
                least, middle = least - LIMB, middle + 1
            elif least <= -LIMB:
                least, middle = least + LIMB, middle - 1
            if middle >= LIMB:
                middle, ones = middle - LIMB, ones + 1
            elif middle <= -LIMB:
                middle, ones = middle + LIMB, ones - 1
            if abs(ones) >= 1 << 60:
                state[A_FLAGS, row] |= HARD
            state[A_ONES, row], state[A_MIDDLE, row], state[A_LEAST, row] = ones, middle, least
        else:
            number, known = limbs[1, at], state[A_NUMBER, row]
            if state[A_COUNT, row] == 0 or (number > known if sign > 0 else number < known):
                state[A_CODE, row], state[A_NUMBER, row] = codes[at], number
        state[A_COUNT, row] += 1


# Longest and shortest matches, first event by first event

ACCEPT, NO_MOVE = -2, -1
FOREVER = 1 << 62
EVER = 1 << 61  # longer than all times are apart: there is no window
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
