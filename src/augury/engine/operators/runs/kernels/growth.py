"""Partial matches: how they go on along edges, and fall with these."""

from __future__ import annotations

from augury.core.arrays import Array, Flags, RowData, RowIds, Times
from augury.core.fields import END, LEFT, RANK, RIGHT, START
from augury.core.jit import Kernel, helper
from augury.engine.operators.runs.kernels import BITS, FIRST, FROM, INTO, OUT, PART, STATE, TO
from augury.engine.operators.runs.kernels.records import MomentLinks, MoveTests, PartialRows, RunMoves
from augury.engine.operators.runs.kernels.then_searches import compared

MAKES_NO_ARRAYS = True


@helper
def put(n: int, parent: int, moment: int, part: int, rows: PartialRows) -> None:
    """A partial match with one more moment."""
    data, moments, kids, parts = rows.data, rows.moments, rows.kids, rows.parts
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
    rows.chain[n] = rows.heads[moment]
    rows.heads[moment] = n
    rows.alive[n] = 1


@helper
def may_move(data: RowData, p: int, move: int, moves: RunMoves, parts: int) -> bool:
    """Whether a partial match may go on by a move: it is at its part, which was repeated often enough, and not too often."""
    part = data[PART, p]
    if moves.ends[0, move] != part:
        return False
    times = data[STATE + parts + part, p]
    if moves.ends[1, move] == part:
        return bool(moves.most[part] < 0 or times < moves.most[part])
    return bool(times >= moves.least[part])


@Kernel
def begin(starts: Times, parts_of: Array, n: int, rows: PartialRows) -> int:
    """Partial matches of one moment each; how many there are then."""
    for i in range(len(starts)):
        put(n + i, -1, starts[i], parts_of[i], rows)
    return n + len(starts)


@helper
def passes(data: RowData, p: int, x: int, move: int, tests: MoveTests) -> bool:
    """Whether numbers let a partial match go on with a moment by a move."""
    rows, numbers = tests.tests, tests.numbers
    for t in range(rows.shape[0]):
        if rows[t, 0] == move:
            a = x if rows[t, 3] < 0 else data[STATE + rows[t, 3], p]
            b = x if rows[t, 5] < 0 else data[STATE + rows[t, 5], p]
            if a < 0 or b < 0 or not compared(rows[t, 1], numbers[rows[t, 2], a], numbers[rows[t, 4], b]):
                return False
    return True


@helper
def go_on(
    p: int, e: int, bits: int, n: int, rows: PartialRows, edges: Array, moves: RunMoves, tests: MoveTests,
    asked: Array, questions: int,
) -> tuple[int, int]:  # fmt: skip
    """A partial match goes on along an edge by some moves. How many partial matches there are then, and questions."""
    x = edges[TO, e]
    for m in range(moves.ends.shape[1]):
        if bits & (1 << m) and may_move(rows.data, p, m, moves, rows.parts):
            if tests.chosen & (1 << m):
                asked[0, questions] = p
                asked[1, questions] = e
                asked[2, questions] = m
                questions += 1
            elif passes(rows.data, p, x, m, tests):
                put(n, p, x, moves.ends[1, m], rows)
                n += 1
    return n, questions


@Kernel
def grow(
    queue: Array, cursor: Array, n: int, rows: PartialRows, links: MomentLinks, moves: RunMoves, tests: MoveTests, asked: Array
) -> tuple[int, int]:  # fmt: skip
    """Partial matches go on along new edges, and new ones along all edges. How many there are, and questions asked.

    `cursor` is where it stands: the next edge of the queue and the partial match there, then the next new partial match
    and the edge there, and how many partial matches were there before. Moves that `tests` has as chosen are not made but
    `asked`: (partial match, edge, move). It stops where there is no room for more.
    """
    data, alive, moments, edges = rows.data, rows.alive, rows.moments, links.edges
    room, n_moves, questions, places = data.shape[1], moves.ends.shape[1], 0, asked.shape[1]
    while cursor[0] < queue.shape[1]:
        e, bits = queue[0, cursor[0]], queue[1, cursor[0]]
        x = edges[TO, e]
        p = cursor[1] if cursor[1] >= 0 else rows.heads[edges[FROM, e]]
        while p >= 0:
            if p < cursor[4] and alive[p] and moments[END, x] - data[START, p] <= moves.longest:
                if n + n_moves > room or questions + n_moves > places:
                    cursor[1] = p
                    return n, questions
                n, questions = go_on(p, e, bits, n, rows, edges, moves, tests, asked, questions)
            p = rows.chain[p]
        cursor[0] += 1
        cursor[1] = -1
    while cursor[2] < n:
        p = cursor[2]
        e = cursor[3] if cursor[3] >= 0 else links.out[data[RIGHT, p]]
        while e >= 0 and alive[p]:
            x, bits = edges[TO, e], edges[BITS, e]
            if bits and moments[END, x] - data[START, p] <= moves.longest:
                if n + n_moves > room or questions + n_moves > places:
                    cursor[3] = e
                    return n, questions
                n, questions = go_on(p, e, bits, n, rows, edges, moves, tests, asked, questions)
            e = edges[OUT, e]
        cursor[2] += 1
        cursor[3] = -1
    return n, questions


@helper
def fell(p: int, alive: Flags, kids: Array, gone: Array, count: int) -> int:
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
def firsts_at(moments: Array, rows: PartialRows, firsts: Array) -> int:
    """The partial matches of one moment each at some moments; how many."""
    count = 0
    for i in range(len(moments)):
        p = rows.heads[moments[i]]
        while p >= 0:
            if rows.alive[p] and rows.data[LEFT, p] < 0:
                firsts[count] = p
                count += 1
            p = rows.chain[p]
    return count


@Kernel
def fall_from(partials: RowIds, rows: PartialRows, gone: Array) -> int:
    """Partial matches fall, with all that were made of them; how many."""
    count = 0
    for i in range(len(partials)):
        count = fell(partials[i], rows.alive, rows.kids, gone, count)
    return count


@Kernel
def fall_at(dead: Array, links: MomentLinks, rows: PartialRows, gone: Array) -> int:
    """Drops the partial matches that go through moments that are gone, and the edges to these; how many fell."""
    count = 0
    for i in range(len(dead)):
        e = links.into[dead[i]]
        while e >= 0:
            links.edges[BITS, e] = 0
            e = links.edges[INTO, e]
        p = rows.heads[dead[i]]
        while p >= 0:
            count = fell(p, rows.alive, rows.kids, gone, count)
            p = rows.chain[p]
    return count


@Kernel
def fall_along(cut: Array, edges: Array, rows: PartialRows, ends: Array, gone: Array) -> int:
    """Drops the partial matches that went along edges by moves that these no longer have; how many."""
    count, data, kids = 0, rows.data, rows.kids
    for i in range(cut.shape[1]):
        e, bits = cut[0, i], cut[1, i]
        p = rows.heads[edges[FROM, e]]
        while p >= 0:
            kid = kids[0, p]
            while kid >= 0:
                if rows.alive[kid] and data[RIGHT, kid] == edges[TO, e]:
                    for m in range(ends.shape[1]):
                        if bits & (1 << m) and ends[0, m] == data[PART, p] and ends[1, m] == data[PART, kid]:
                            count = fell(kid, rows.alive, kids, gone, count)
                            break
                kid = kids[1, kid]
            p = rows.chain[p]
    return count


@Kernel
def plant(
    columns: Array, position: int, n: int, rows: PartialRows, edges: Array, ends: Array, choosy: int, gone: Array
) -> tuple[int, int, int]:
    """Partial matches go on by moves that were asked about: (partial match, edge, move). By a move in `choosy` just the
    soonest goes on. How far it came, how many partial matches there are, and how many fell."""
    data, alive, moments, kids = rows.data, rows.alive, rows.moments, rows.kids
    fallen, room = 0, data.shape[1]
    for i in range(position, columns.shape[1]):
        if n == room:
            return i, n, fallen
        p, x, m = columns[0, i], edges[TO, columns[1, i]], columns[2, i]
        part = ends[1, m]
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
            put(n, p, x, part, rows)
            n += 1
    return columns.shape[1], n, fallen


@Kernel
def chains(rows: RowIds, data: RowData, members: Array, lengths: Array) -> int:
    """The partial matches that rows consist of, each row's from its first moment to its last; how many in all."""
    count = 0
    for i in range(len(rows)):
        first, p = count, rows[i]
        while p >= 0:
            if count < len(members):
                members[count] = p
            count += 1
            p = data[LEFT, p]
        lengths[i] = count - first
        if count <= len(members):
            lo, hi = first, count - 1
            while lo < hi:
                members[lo], members[hi] = members[hi], members[lo]
                lo += 1
                hi -= 1
    return count


@Kernel
def thread(n: int, rows: PartialRows) -> None:
    """Rebuilds the lists of partial matches by moment and by parent."""
    data, kids = rows.data, rows.kids
    for p in range(n):
        kids[0, p] = -1
        if not rows.alive[p]:
            continue
        moment, parent = data[RIGHT, p], data[LEFT, p]
        rows.chain[p] = rows.heads[moment]
        rows.heads[moment] = p
        if parent >= 0:
            kids[1, p] = kids[0, parent]
            kids[0, parent] = p
