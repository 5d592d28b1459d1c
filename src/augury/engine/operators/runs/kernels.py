"""The hot loops of runs: from an event to those before and after it, and from a partial match to longer ones.

An *edge* leads from a moment to one that may follow it in a run; its bits say by which *moves*, each from a part to a part.
A partial match is a row: its parent (left), its moment (right), its part, its first moment, then for each part its last
moment there, or -1, and how often the part was repeated.
"""

from __future__ import annotations

from augury.jit import Array, Kernel, helper

START, END, LEFT, RIGHT, RANK, PART, FIRST, STATE = 0, 1, 2, 3, 4, 5, 6, 7
FROM, TO, BITS, INTO, OUT = (
    0,
    1,
    2,
    3,
    4,
)  # of an edge: its ends, its moves, the next one into and out of the same moments
NEIGHBOUR = 1  # the kind of an edge between neighbours; that of an edge to a part is 2 << part
NEVER = -(1 << 62)


# Edges


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
        if not alive[x]:
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
            if data[START, here] >= least:
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


@Kernel
def relink(
    targets: Array, given: Array, search: bool, edges: Array, n: int, into: Array, out: Array, queue: Array, cut: Array
) -> tuple[int, int, int]:
    """Puts edges (from, to, moves) among those there are; all that lead to the targets are given, other ones may be.
    Without `search` all are new.

    Returns how many edges there are, how many have moves that are new (`queue`: edge, moves) and how many lost some (`cut`).
    """
    added = known = 0
    for i in range(len(targets)):
        e = into[targets[i]]
        while e >= 0:
            cut[0, known] = e
            cut[1, known] = edges[BITS, e]
            known += 1
            edges[BITS, e] = 0
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
            edges[FROM, e] = a
            edges[TO, e] = x
            edges[BITS, e] = 0
            edges[INTO, e] = into[x]
            edges[OUT, e] = out[a]
            into[x] = e
            out[a] = e
        if e >= first:
            queue[0, added] = e
            queue[1, added] = bits & ~edges[BITS, e]
            added += queue[1, added] != 0
        edges[BITS, e] |= bits
    lost = 0
    for i in range(known):
        e, old = cut[0, i], cut[1, i]
        new = edges[BITS, e]
        if new & ~old:
            queue[0, added] = e
            queue[1, added] = new & ~old
            added += 1
        if old & ~new:
            cut[0, lost] = e
            cut[1, lost] = old & ~new
            lost += 1
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


@Kernel
def grow(
    queue: Array, cursor: Array, data: Array, n: int, alive: Array, moments: Array, edges: Array, out: Array,
    heads: Array, chain: Array, kids: Array, moves: Array, chosen: int, least: Array, most: Array, parts: int, longest: int,
    asked: Array,
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
                for m in range(n_moves):
                    if bits & (1 << m) and may_move(data, p, m, moves, least, most, parts):
                        if chosen & (1 << m):
                            asked[0, questions] = p
                            asked[1, questions] = e
                            asked[2, questions] = m
                            questions += 1
                        else:
                            put(data, n, p, x, moves[1, m], moments, parts, heads, chain, kids)
                            alive[n] = 1
                            n += 1
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
                for m in range(n_moves):
                    if bits & (1 << m) and may_move(data, p, m, moves, least, most, parts):
                        if chosen & (1 << m):
                            asked[0, questions] = p
                            asked[1, questions] = e
                            asked[2, questions] = m
                            questions += 1
                        else:
                            put(data, n, p, x, moves[1, m], moments, parts, heads, chain, kids)
                            alive[n] = 1
                            n += 1
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
