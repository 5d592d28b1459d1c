"""Which nodes of a directed graph reach which, by a path of one or more edges.

What an index tells: components (nodes that reach each other) are one, and in the acyclic graph of components labels decide
most pairs. A depth-first search gives each component an interval that holds what it reaches in the tree of the search
(inside: yes) and one that holds all it reaches (outside: no); four such searches, two of them backwards. Some components
are hubs, and each component knows which it reaches and which reach it. What is left is searched from both ends.

What changes keep: *base* edges have the closure that the index tells, *spare* edges were added since and go beyond it.

- An added edge whose ends reach each other already is a base edge, any other is spare: paths take turns between both.
- A base edge is removed and another path of base edges leads the same way: nothing changes.
- Else all that its target reaches is cut off, or all that reaches its source: nodes of two *blocks* do not reach each
  other by base edges. Other edges across the cut become spare.
- Where those are too many, or a component falls apart, nodes are marked such that all lost pairs start or end with one.
- Where those are too many as well, the edge is in *doubt*: all that might have gone through it may be lost.

What may be lost is searched for edge by edge. Once changes have cost as much as a new index, there is a new index.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from augury.engine import kernels as k
from augury.engine.kernels import Array, Kernel, helper

SOURCE, TARGET, NEXT, PREV, SPARE = 0, 1, 2, 4, 6  # of an edge; NEXT and PREV one each way: 0 is out, 1 is in
SLOTS, FREE, EDGES = 0, 1, 2  # of the tally of edges: how many slots were used, the first free one, how many edges
STAMP, STEPS = 0, 1
COMPONENT, BLOCK, LOST = 0, 1, 2  # of a node; LOST one each way
LOOP, DEPTH, HEIGHT, LABELS = 0, 1, 2, 3  # of a component; a label is (rank, least rank in its tree, least rank of all)
BITS = 62  # of a word: no sign
HUB_WORDS = 4_000_000  # how many words at most are spent on hubs, each way
CROSSINGS = 16  # how many edges across a cut are worth it
EFFORT = 50_000  # how many steps at most are spent on finding them
LOSERS = 32  # one node in so many may be marked for an edge
PATIENCE = 1  # how many times the cost of an index changes may cost before there is a new one


class Edges(NamedTuple):
    """Edges in chains from each node, out of it and into it, and by their ends."""

    rows: Array
    heads: Array
    buckets: Array
    tally: Array


class Index(NamedTuple):
    """Of each node its component and block; of components labels, edges out (0) and in (1), and hubs reached and reaching."""

    place: Array
    labels: Array
    start: Array
    ends: Array
    hubs: Array


class Scratch(NamedTuple):
    """Where searches note what they have seen, from the one end and from the other, and where they go on."""

    seen: Array
    queue: Array
    count: Array


# Nodes and edges


@helper
def hashed(x: int, y: int) -> int:
    """A hash of two numbers of 31 bits. No product exceeds 63 bits, so that it is the same uncompiled."""
    h = (x * 668265263) & 0x3FFFFFFFFFFFFFFF
    h = (((h ^ (h >> 29)) & 0x7FFFFFFF) ^ y) * 374761393 & 0x3FFFFFFFFFFFFFFF
    return (h ^ (h >> 27)) & 0x7FFFFFFF


@Kernel
def number(codes: Array, table: Array, n: int, known: Array, ids: Array) -> int:
    """The number of each code; new ones are added from `n` on while `known` has room, else -1. How many there are then."""
    mask = len(table) - 1
    for i in range(len(codes)):
        code = codes[i]
        b = hashed(code & 0x7FFFFFFF, (code >> 31) & 0x7FFFFFFF) & mask
        while table[b, 1] >= 0 and table[b, 0] != code:
            b = (b + 1) & mask
        if table[b, 1] < 0 and n < len(known):
            table[b, 0] = code
            table[b, 1] = n
            known[n] = code
            n += 1
        ids[i] = table[b, 1]
    return n


@helper
def bucket_of(u: int, v: int, edges: Edges) -> int:
    """The bucket of an edge, or the empty one for it."""
    mask = len(edges.buckets) - 1
    b = hashed(u, v) & mask
    while edges.buckets[b] >= 0:
        e = edges.buckets[b]
        if edges.rows[e, SOURCE] == u and edges.rows[e, TARGET] == v:
            break
        b = (b + 1) & mask
    return b  # type: ignore[no-any-return]


@Kernel
def put(us: Array, vs: Array, edges: Edges, fresh: Array) -> int:
    """Adds edges; how many were not there, which `fresh` lists."""
    rows, heads, tally = edges.rows, edges.heads, edges.tally
    n = 0
    for i in range(len(us)):
        b = bucket_of(us[i], vs[i], edges)
        if edges.buckets[b] >= 0:
            continue
        e = tally[FREE]
        if e >= 0:
            tally[FREE] = rows[e, NEXT]
        else:
            e = tally[SLOTS]
            tally[SLOTS] += 1
        tally[EDGES] += 1
        edges.buckets[b] = e
        rows[e, SOURCE], rows[e, TARGET], rows[e, SPARE] = us[i], vs[i], 0
        for way in range(2):
            head = heads[rows[e, way], way]
            rows[e, NEXT + way], rows[e, PREV + way] = head, -1
            if head >= 0:
                rows[head, PREV + way] = e
            heads[rows[e, way], way] = e
        fresh[n] = e
        n += 1
    return n


@Kernel
def take(u: int, v: int, edges: Edges) -> int:
    """Removes an edge: -1 where there is none, 1 where it was spare, else 0."""
    rows, buckets, tally = edges.rows, edges.buckets, edges.tally
    mask = len(buckets) - 1
    hole = bucket_of(u, v, edges)
    e = buckets[hole]
    if e < 0:
        return -1
    b = hole
    while True:  # what was pushed past the hole moves up
        b = (b + 1) & mask
        other = buckets[b]
        if other < 0:
            break
        home = hashed(rows[other, SOURCE], rows[other, TARGET]) & mask
        if ((b - home) & mask) >= ((b - hole) & mask):
            buckets[hole] = other
            hole = b
    buckets[hole] = -1
    for way in range(2):
        before, after = rows[e, PREV + way], rows[e, NEXT + way]
        if before >= 0:
            rows[before, NEXT + way] = after
        else:
            edges.heads[rows[e, way], way] = after
        if after >= 0:
            rows[after, PREV + way] = before
    rows[e, NEXT], rows[e, SOURCE] = tally[FREE], -1
    tally[FREE] = e
    tally[EDGES] -= 1
    return rows[e, SPARE]  # type: ignore[no-any-return]


@Kernel
def rehash_edges(edges: Edges) -> None:
    """Fills new buckets."""
    mask = len(edges.buckets) - 1
    for e in range(edges.tally[SLOTS]):
        if edges.rows[e, SOURCE] >= 0:
            b = hashed(edges.rows[e, SOURCE], edges.rows[e, TARGET]) & mask
            while edges.buckets[b] >= 0:
                b = (b + 1) & mask
            edges.buckets[b] = e


# How an index is built


@Kernel
def grouped(by: Array, what: Array, n: int, start: Array, out: Array) -> None:
    """`what` grouped by a number below `n`, in the order it comes in."""
    for i in range(len(by)):
        start[by[i] + 1] += 1
    for i in range(n):
        start[i + 1] += start[i]
    at = start[:-1].copy()
    for i in range(len(by)):
        out[at[by[i]]] = what[i]
        at[by[i]] += 1


@Kernel
def components(start: Array, ends: Array, component: Array) -> int:
    """Tarjan's algorithm: the component of each node, those that are reached first; how many there are."""
    n, clock, count, size = len(start) - 1, 0, 0, 0
    order, low, at = np.zeros(n, np.int64), np.zeros(n, np.int64), start.copy()
    stack, calls = np.empty(n, np.int64), np.empty(n, np.int64)
    for root in range(n):
        if order[root]:
            continue
        calls[0], depth = root, 1
        while depth:
            v = calls[depth - 1]
            if order[v] == 0:
                clock += 1
                order[v] = low[v] = clock
                stack[size] = v
                size += 1
            if at[v] < start[v + 1]:
                w = ends[at[v]]
                at[v] += 1
                if order[w] == 0:
                    calls[depth] = w
                    depth += 1
                elif component[w] < 0:
                    low[v] = min(low[v], order[w])
                continue
            depth -= 1
            if depth:
                low[calls[depth - 1]] = min(low[calls[depth - 1]], low[v])
            if low[v] == order[v]:
                while component[v] < 0:
                    size -= 1
                    component[stack[size]] = count
                count += 1
    return count


@Kernel
def levels(start: Array, ends: Array, depth: Array, height: Array) -> None:
    """The longest ways from the top and to the bottom, of components that come after those they reach."""
    n = len(start) - 1
    for c in range(n):
        for i in range(start[c], start[c + 1]):
            height[c] = max(height[c], height[ends[i]] + 1)
    for c in range(n - 1, -1, -1):
        for i in range(start[c], start[c + 1]):
            depth[ends[i]] = max(depth[ends[i]], depth[c] + 1)


@Kernel
def label(start: Array, ends: Array, way: int, last_first: bool, labels: Array, column: int) -> None:
    """Ranks components as a depth-first search leaves them."""
    n, rank = start.shape[1] - 1, 0
    done, calls = np.zeros(n, np.int64), np.empty(n, np.int64)  # how many edges of a component were followed
    for r in range(n):
        root = n - 1 - r if last_first else r
        if start[1 - way, root] < start[1 - way, root + 1]:  # not where a search must begin
            continue
        calls[0], size = root, 1
        labels[root, column + 1] = labels[root, column + 2] = rank
        while size:
            c = calls[size - 1]
            first, end = start[way, c], start[way, c + 1]
            if done[c] < end - first:
                other = ends[way, end - 1 - done[c] if last_first else first + done[c]]
                done[c] += 1
                if labels[other, column + 1] < 0:
                    labels[other, column + 1] = labels[other, column + 2] = rank
                    calls[size] = other
                    size += 1
                else:
                    labels[c, column + 2] = min(labels[c, column + 2], labels[other, column + 2])
                continue
            labels[c, column] = rank
            rank += 1
            size -= 1
            if size:
                above = calls[size - 1]
                labels[above, column + 2] = min(labels[above, column + 2], labels[c, column + 2])


@Kernel
def know_hubs(start: Array, ends: Array, hub: Array, hubs: Array) -> None:
    """Of each component the hubs it reaches and those that reach it, itself among them; `hub` numbers the hubs."""
    n = len(hub)
    for way in range(2):
        for i in range(n):
            c = n - 1 - i if way == 0 else i
            for e in range(start[way, c], start[way, c + 1]):
                for w in range(hubs.shape[2]):
                    hubs[c, way, w] |= hubs[ends[way, e], way, w]
            if hub[c] >= 0:
                hubs[c, way, hub[c] // BITS] |= 1 << (hub[c] % BITS)


# What the index tells


@helper
def verdict(x: int, y: int, labels: Array) -> int:
    """What labels tell of two components: 1 yes, -1 no, 0 nothing."""
    if x >= y or labels[x, DEPTH] >= labels[y, DEPTH] or labels[x, HEIGHT] <= labels[y, HEIGHT]:
        return -1
    for column in range(LABELS, LABELS + 12, 3):
        a, b = (x, y) if column < LABELS + 6 else (y, x)
        rank = labels[b, column]
        if rank > labels[a, column] or labels[b, column + 2] < labels[a, column + 2]:
            return -1
        if rank >= labels[a, column + 1]:
            return 1
    return 0


@helper
def by_hubs(x: int, y: int, hubs: Array) -> int:
    """The same by hubs: yes by one between them, no by one that only the wrong one of them knows."""
    yes, no = 0, 0
    for w in range(hubs.shape[2]):  # without a way out, so that it takes several words at once
        yes |= hubs[x, 0, w] & hubs[y, 1, w]
        no |= (hubs[y, 0, w] & ~hubs[x, 0, w]) | (hubs[x, 1, w] & ~hubs[y, 1, w])
    return 1 if yes else -1 if no else 0


@helper
def search(x: int, y: int, index: Index, scratch: Scratch) -> bool:
    """Whether a component reaches another, from both ends at once, at the one that has fewer to follow."""
    seen, queue, start, ends = scratch.seen, scratch.queue, index.start, index.ends
    scratch.count[STAMP] += 1
    stamp = scratch.count[STAMP]
    seen[x, 0] = seen[y, 1] = stamp
    queue[0, 0], queue[0, 1] = x, y
    at0, at1, n0, n1 = 0, 0, 1, 1
    while at0 < n0 and at1 < n1:
        way = 0 if n0 - at0 <= n1 - at1 else 1
        if way == 0:
            c = queue[at0, 0]
            at0 += 1
        else:
            c = queue[at1, 1]
            at1 += 1
        for e in range(start[way, c], start[way, c + 1]):
            scratch.count[STEPS] += 1
            z = ends[way, e]
            if seen[z, 1 - way] == stamp:
                return True
            if (z > y) if way == 0 else (z < x):  # the rest is further still
                break
            if seen[z, way] == stamp:
                continue
            seen[z, way] = stamp
            a, b = (z, y) if way == 0 else (x, z)
            told = verdict(a, b, index.labels)
            if told == 0:
                told = by_hubs(a, b, index.hubs)
            if told > 0:
                return True
            if told == 0 and way == 0:
                queue[n0, 0] = z
                n0 += 1
            elif told == 0:
                queue[n1, 1] = z
                n1 += 1
    return False


@helper
def by_base(x: int, y: int, index: Index, scratch: Scratch) -> bool:
    """Whether a node reaches another by base edges, and those in doubt."""
    a, b, hubs = index.place[x, COMPONENT], index.place[y, COMPONENT], index.hubs
    if a < 0 or b < 0 or index.place[x, BLOCK] != index.place[y, BLOCK]:
        return False
    if a == b:
        return index.labels[a, LOOP] > 0  # type: ignore[no-any-return]
    told = verdict(a, b, index.labels)
    if told == 0 and hubs.shape[2] * BITS >= len(hubs):  # all are hubs
        return ((hubs[a, 0, b // BITS] >> (b % BITS)) & 1) > 0  # type: ignore[no-any-return]
    if told == 0:
        told = by_hubs(a, b, hubs)
    if told == 0:
        return search(a, b, index, scratch)  # type: ignore[no-any-return]
    return told > 0  # type: ignore[no-any-return]


@helper
def may_reach(x: int, y: int, index: Index) -> bool:
    """Whether labels leave it open that a node reaches another by base edges."""
    a, b = index.place[x, COMPONENT], index.place[y, COMPONENT]
    if a < 0 or b < 0 or index.place[x, BLOCK] != index.place[y, BLOCK]:
        return False
    return a == b or verdict(a, b, index.labels) >= 0  # type: ignore[no-any-return]


# What edges tell


@helper
def by_edges(x: int, y: int, spare: bool, guided: bool, edges: Edges, index: Index, scratch: Scratch) -> bool:
    """Whether a node reaches another, edge by edge, from both ends at once.

    `spare` edges count or not; the search is `guided` by labels where they hold.
    """
    seen, queue, rows = scratch.seen, scratch.queue, edges.rows
    scratch.count[STAMP] += 1
    stamp = scratch.count[STAMP]
    seen[x, 0] = seen[y, 1] = stamp
    queue[0, 0], queue[0, 1] = x, y
    at0, at1, n0, n1 = 0, 0, 1, 1
    while at0 < n0 and at1 < n1:
        way = 0 if n0 - at0 <= n1 - at1 else 1
        if way == 0:
            e = edges.heads[queue[at0, 0], 0]
            at0 += 1
        else:
            e = edges.heads[queue[at1, 1], 1]
            at1 += 1
        while e >= 0:
            scratch.count[STEPS] += 1
            z, kind = rows[e, 1 - way], rows[e, SPARE]
            e = rows[e, NEXT + way]
            if kind and not spare:
                continue
            if seen[z, 1 - way] == stamp:
                return True
            if seen[z, way] == stamp:
                continue
            seen[z, way] = stamp
            if guided and not (may_reach(z, y, index) if way == 0 else may_reach(x, z, index)):
                continue
            if way == 0:
                queue[n0, 0] = z
                n0 += 1
            else:
                queue[n1, 1] = z
                n1 += 1
    return False


@Kernel
def settle(fresh: Array, edges: Edges, index: Index, scratch: Scratch) -> int:
    """Which of the added edges are spare: they come first in `fresh` then, and how many there are."""
    n = 0
    for i in range(len(fresh)):
        e = fresh[i]
        if not by_base(edges.rows[e, SOURCE], edges.rows[e, TARGET], index, scratch):
            edges.rows[e, SPARE] = 1
            fresh[n] = e
            n += 1
    return n


@Kernel
def still(u: int, v: int, edges: Edges, index: Index, scratch: Scratch) -> bool:
    """Whether base edges lead from a node to another."""
    return by_edges(u, v, False, True, edges, index, scratch)  # type: ignore[no-any-return]


@helper
def crossings(size: int, way: int, stamp: int, edges: Edges, scratch: Scratch, crossing: Array) -> int:
    """How many base edges lead across the border of what a search has seen; -1 where they are too many."""
    n, rows = 0, edges.rows
    for i in range(size):
        e = edges.heads[scratch.queue[i, way], 1 - way]
        while e >= 0:
            scratch.count[STEPS] += 1
            if rows[e, SPARE] == 0 and scratch.seen[rows[e, way], way] != stamp:
                if n == len(crossing):
                    return -1
                crossing[n] = e
                n += 1
            e = rows[e, NEXT + 1 - way]
    return n


@helper
def part(size: int, way: int, scratch: Scratch, place: Array, blocks: int) -> int:
    """Gives what a search has seen blocks of its own; how many blocks there are then."""
    parted = np.full(blocks, -1, np.int64)
    for i in range(size):
        z = scratch.queue[i, way]
        if parted[place[z, BLOCK]] < 0:
            parted[place[z, BLOCK]] = blocks
            blocks += 1
        place[z, BLOCK] = parted[place[z, BLOCK]]
    return blocks


@Kernel
def cut(
    u: int, v: int, limit: int, edges: Edges, place: Array, blocks: int, crossing: Array, scratch: Scratch
) -> tuple[int, int]:
    """Cuts off what `v` reaches by base edges, or what reaches `u`, whichever is found out first.

    How many edges cross the cut, and how many blocks there are then; -1 where it is not possible or not worth it.
    """
    seen, queue, rows = scratch.seen, scratch.queue, edges.rows
    scratch.count[STAMP] += 1
    stamp, last = scratch.count[STAMP], scratch.count[STEPS] + limit
    seen[v, 0] = seen[u, 1] = stamp
    queue[0, 0], queue[0, 1] = v, u
    at0, at1, n0, n1, open0, open1 = 0, 0, 1, 1, True, True
    while (open0 or open1) and scratch.count[STEPS] <= last:
        way = 0 if open0 and (n0 <= n1 or not open1) else 1
        if at0 == n0 if way == 0 else at1 == n1:
            size = n0 if way == 0 else n1
            n = crossings(size, way, stamp, edges, scratch, crossing)
            if n >= 0:
                for i in range(n):
                    rows[crossing[i], SPARE] = 1
                return n, part(size, way, scratch, place, blocks)
            open0, open1 = open0 and way == 1, open1 and way == 0
            continue
        if way == 0:
            e = edges.heads[queue[at0, 0], 0]
            at0 += 1
        else:
            e = edges.heads[queue[at1, 1], 1]
            at1 += 1
        while e >= 0:
            scratch.count[STEPS] += 1
            z, spare = rows[e, 1 - way], rows[e, SPARE]
            e = rows[e, NEXT + way]
            if spare or seen[z, way] == stamp:
                continue
            if seen[z, 1 - way] == stamp:  # a way back: a component falls apart
                return -1, blocks
            seen[z, way] = stamp
            if way == 0:
                queue[n0, 0] = z
                n0 += 1
            else:
                queue[n1, 1] = z
                n1 += 1
    return -1, blocks


@helper
def foretold(z: int, end: int, way: int, stamp: int, edges: Edges, scratch: Scratch) -> int:
    """What is known of the neighbours of a node: 1 one of them has a way to the end, -1 none has, 0 neither."""
    told, e = -1, edges.heads[z, way]
    while e >= 0:
        other = edges.rows[e, 1 - way]
        scratch.count[STEPS] += 1
        if edges.rows[e, SPARE] == 0:
            if other == end or scratch.seen[other, 2] == stamp + 1:
                return 1
            if scratch.seen[other, 2] != stamp:
                told = 0
        e = edges.rows[e, NEXT + way]
    return told


@Kernel
def lose(
    begin: int, end: int, way: int, limit: int, found: Array, edges: Edges, index: Index, scratch: Scratch
) -> bool:
    """Marks the nodes that reach `begin` and not `end`, backwards: those that `begin` reaches and `end` does not.

    Whether they were few, and found with `limit` steps.
    """
    seen, rows = scratch.seen, edges.rows
    stamp, last = scratch.count[STAMP] + 1, scratch.count[STEPS] + limit
    scratch.count[STAMP] += 2  # the first for what is lost, the second for what is not
    found[0], at, n = begin, 0, 1
    seen[found[0], 2] = stamp
    while at < n:
        e = edges.heads[found[at], way]
        at += 1
        while e >= 0:
            scratch.count[STEPS] += 1
            z, spare = rows[e, 1 - way], rows[e, SPARE]
            e = rows[e, NEXT + way]
            if spare or seen[z, 2] >= stamp:
                continue
            told = foretold(z, end, 1 - way, stamp, edges, scratch)
            x, y = (end, z) if way == 0 else (z, end)
            if told > 0 or (told == 0 and by_edges(x, y, False, True, edges, index, scratch)):
                seen[z, 2] = stamp + 1
                continue
            if n == len(found) or scratch.count[STEPS] > last:
                return False
            seen[z, 2] = stamp
            found[n] = z
            n += 1
    for i in range(n):
        index.place[found[i], LOST + 1 - way] = 1
    return True


@Kernel
def tie(spares: Array, ties: Array, edges: Edges, index: Index, scratch: Scratch) -> None:
    """Which spare edge leads to which, by base edges and spare ones."""
    n, rows = len(spares), edges.rows
    for i in range(n):
        for j in range(n):
            x, y = rows[spares[i], TARGET], rows[spares[j], SOURCE]
            ties[i, j] = i == j or x == y or by_base(x, y, index, scratch)
    scratch.count[STEPS] += n * n
    for middle in range(n):
        for i in range(n):
            if ties[i, middle]:
                for j in range(n):
                    ties[i, j] |= ties[middle, j]


@helper
def by_spares(
    x: int, y: int, spares: Array, ties: Array, tried: Array, edges: Edges, index: Index, scratch: Scratch
) -> bool:
    """Whether a node reaches another by base edges and at least one spare edge."""
    n, rows = len(spares), edges.rows
    scratch.count[STEPS] += n
    tried[:] = 0
    for i in range(n):
        u = rows[spares[i], SOURCE]
        if not (x == u or by_base(x, u, index, scratch)):
            continue
        for j in range(n):
            if ties[i, j] and not tried[j]:
                tried[j] = 1
                scratch.count[STEPS] += 1
                v = rows[spares[j], TARGET]
                if v == y or by_base(v, y, index, scratch):
                    return True
    return False


@helper
def in_doubt(x: int, y: int, doubts: Array, index: Index, scratch: Scratch) -> bool:
    """Whether base edges might have led from a node to another by a removed edge alone."""
    if index.place[x, LOST] or index.place[y, LOST + 1]:
        return True
    for i in range(len(doubts)):
        u, v = doubts[i, 0], doubts[i, 1]
        if (x == u or by_base(x, u, index, scratch)) and (v == y or by_base(v, y, index, scratch)):
            return True
    return False


@Kernel
def answer(
    xs: Array, ys: Array, first: int, limit: int, out: Array,
    spares: Array, ties: Array, doubts: Array, lost: bool, edges: Edges, index: Index, scratch: Scratch,
) -> int:  # fmt: skip
    """Whether each node reaches the other; how far it came before changes had cost more than `limit` steps."""
    tried, changed = np.zeros(len(spares), np.int64), len(spares) > 0 or lost
    for i in range(first, len(xs)):
        x, y = xs[i], ys[i]
        if x < 0 or y < 0:
            out[i] = False
            continue
        known = by_base(x, y, index, scratch)
        if changed:
            if known:
                known = not in_doubt(x, y, doubts, index, scratch)
                unsure = not known
            else:
                known = len(spares) > 0 and by_spares(x, y, spares, ties, tried, edges, index, scratch)
                unsure = known and lost
            if unsure:
                known = by_edges(x, y, True, len(spares) == 0, edges, index, scratch)
            if scratch.count[STEPS] > limit:
                out[i] = known
                return i + 1
        out[i] = known
    return len(xs)


@Kernel
def spread(
    xs: Array, first: int, way: int, index: Index, members: Array, scratch: Scratch, found: Array
) -> tuple[int, int]:
    """All that each node reaches, component by component; how far it came before `found` was full, and how many it found."""
    n, room, seen, queue = 0, found.shape[1], scratch.seen, scratch.queue
    first_member = members[0]
    for i in range(first, len(xs)):
        began, size, at = n, 1, 0
        if xs[i] < 0 or index.place[xs[i], COMPONENT] < 0:
            continue
        scratch.count[STAMP] += 1
        stamp = scratch.count[STAMP]
        root = index.place[xs[i], COMPONENT]
        queue[0, way] = root
        seen[root, way] = stamp
        while at < size:
            c = queue[at, way]
            at += 1
            scratch.count[STEPS] += 1
            if c != root or index.labels[c, LOOP]:
                for m in range(first_member[c], first_member[c + 1]):
                    if n == room:
                        return i, began
                    found[0, n] = i
                    found[1, n] = members[1][m]
                    n += 1
            for e in range(index.start[way, c], index.start[way, c + 1]):
                scratch.count[STEPS] += 1
                z = index.ends[way, e]
                if seen[z, way] != stamp:
                    seen[z, way] = stamp
                    queue[size, way] = z
                    size += 1
    return len(xs), n


@Kernel
def walk(xs: Array, first: int, way: int, edges: Edges, scratch: Scratch, found: Array) -> tuple[int, int]:
    """The same edge by edge."""
    n, room, seen, rows = 0, found.shape[1], scratch.seen, edges.rows
    for i in range(first, len(xs)):
        if xs[i] < 0:
            continue
        scratch.count[STAMP] += 1
        stamp, began, at, z = scratch.count[STAMP], n, n, xs[i]
        while True:
            e = edges.heads[z, way]
            while e >= 0:
                scratch.count[STEPS] += 1
                other = rows[e, 1 - way]
                if seen[other, way] != stamp:
                    if n == room:
                        return i, began
                    seen[other, way] = stamp
                    found[0, n] = i
                    found[1, n] = other
                    n += 1
                e = rows[e, NEXT + way]
            if at == n:
                break
            z = found[1, at]
            at += 1
    return len(xs), n


@Kernel
def shortest(x: int, y: int, guided: bool, edges: Edges, index: Index, scratch: Scratch, before: Array) -> bool:
    """Whether there is a path; `before` says which node is before each one on a shortest path."""
    seen, queue, rows = scratch.seen, scratch.queue, edges.rows
    scratch.count[STAMP] += 1
    stamp, at, n = scratch.count[STAMP], 0, 1
    queue[0, 0] = x
    while at < n:
        z = queue[at, 0]
        at += 1
        e = edges.heads[z, 0]
        while e >= 0:
            scratch.count[STEPS] += 1
            other = rows[e, TARGET]
            if seen[other, 0] != stamp:
                seen[other, 0] = stamp
                before[other] = z
                if other == y:
                    return True
                if not guided or may_reach(other, y, index):
                    queue[n, 0] = other
                    n += 1
            e = rows[e, NEXT]
    return False


# The face of it all


def grown(array: Array, size: int, fill: int) -> Array:
    """An array with room for `size` rows and some more."""
    if len(array) >= size:
        return array
    larger = np.full((size + size // 8 + 16, *array.shape[1:]), fill, array.dtype)
    larger[: len(array)] = array
    return larger


def buckets_for(n: int) -> int:
    """A power of two, at most half of which is used by `n`."""
    return 1 << max(4, (2 * n).bit_length())


def codes_of(given: Any) -> Array:
    return np.ascontiguousarray(given, np.int64)


class Reach:
    """Which nodes reach which, by one or more edges; nodes are any int64, edges a set.

    `a -> b -> c`: a reaches b and c, b reaches c, and none reaches itself.
    """

    def __init__(self, source: Array, target: Array) -> None:
        self._table, self._known, self._n = np.full((16, 2), -1, np.int64), np.empty(0, np.int64), 0
        self._edges = Edges(
            np.empty((0, 7), np.int64), np.empty((0, 2), np.int64), np.full(16, -1, np.int64), np.array([0, -1, 0])
        )
        self._scratch = Scratch(np.zeros((0, 3), np.int64), np.empty((0, 2), np.int64), np.zeros(2, np.int64))
        self._index = Index(
            np.empty((0, 4), np.int64), np.empty((0, 16), np.int32), np.zeros((2, 1), np.int64),
            np.empty((2, 0), np.int64), np.empty((0, 2, 0), np.int64),
        )  # fmt: skip
        self._spares, self._ties, self._tied = np.empty(0, np.int64), np.empty((0, 0), np.uint8), True
        self._doubts, self._blocks, self._limit = np.empty((0, 2), np.int64), 1, 0
        self._stale, self._lost, self._cost, self.builds = True, False, 0, 0
        self.add(source, target)

    @property
    def visited(self) -> int:
        """How many edges searches have followed so far."""
        return int(self._scratch.count[STEPS])

    @property
    def _changed(self) -> bool:
        """Whether there are changes that the index does not tell of."""
        return len(self._spares) > 0 or self._lost or self._blocks > 1

    @property
    def _size(self) -> int:
        return self._n + int(self._edges.tally[EDGES])

    # Questions

    def reaches(self, x: Array, y: Array) -> Array:
        """Whether each x reaches the y beside it."""
        xs, ys = self._numbers(x), self._numbers(y)
        out, done = np.zeros(len(xs), np.bool_), 0
        while done < len(xs):
            self._refresh()
            done = answer(
                xs, ys, done, self._limit, out, self._spares, self._ties, self._doubts, self._lost, self._edges, self._index,
                self._scratch,
            )  # fmt: skip
        return out

    def targets(self, x: Array) -> tuple[Array, Array]:
        """Rows of x and the nodes they reach, each once."""
        return self._spread(x, 0)

    def sources(self, y: Array) -> tuple[Array, Array]:
        """Rows of y and the nodes that reach them, each once."""
        return self._spread(y, 1)

    def everything(self) -> tuple[Array, Array]:
        """All pairs of nodes of which the one reaches the other."""
        known = self._known[: self._n].copy()
        rows, nodes = self.targets(known)
        return known[rows], nodes

    def path(self, x: int, y: int) -> list[int]:
        """The nodes of a shortest path, both ends included; none where there is no path."""
        ends = self._numbers(np.array([x, y], np.int64))
        if ends.min() < 0:
            return []
        self._refresh()
        before, (one, other) = np.empty(self._n, np.int64), ends.tolist()
        if not shortest(one, other, len(self._spares) == 0, self._edges, self._index, self._scratch, before):
            return []
        path, here = [y], other
        while len(path) == 1 or here != one:
            here = int(before[here])
            path.append(int(self._known[here]))
        return path[::-1]

    # Changes

    def add(self, source: Array, target: Array) -> None:
        """More edges; those that are there already change nothing."""
        source, target = codes_of(source), codes_of(target)
        k.count_work(len(source))
        us, vs = self._numbers(source, new=True), self._numbers(target, new=True)
        self._make_room(len(us))
        fresh = np.empty(len(us), np.int64)
        fresh = fresh[: put(us, vs, self._edges, fresh)]
        if self._stale or not len(fresh):
            return
        if self._too_many(len(fresh)):
            self._stale = True
            return
        self._open()
        self._spare(fresh[: settle(fresh, self._edges, self._index, self._scratch)])

    def remove(self, source: Array, target: Array) -> None:
        """Fewer edges; those that are not there change nothing."""
        us, vs = self._numbers(source), self._numbers(target)
        many = self._too_many(len(us))
        self._open()
        for u, v in zip(us.tolist(), vs.tolist(), strict=True):
            if u < 0 or v < 0:
                continue
            kind = take(u, v, self._edges)
            if kind < 0 or self._stale:
                continue
            if many:
                self._stale = True
            elif kind:
                rows = self._edges.rows[self._spares]
                self._spares, self._tied = self._spares[(rows[:, SOURCE] >= 0) & (rows[:, SPARE] > 0)], False
            elif not still(u, v, self._edges, self._index, self._scratch):
                self._part(u, v)

    def _open(self) -> None:
        """From the first change on, what it costs is counted."""
        if not self._changed:
            self._limit = self.visited + PATIENCE * self._cost

    def _part(self, u: int, v: int) -> None:
        """A base edge is gone, and no others lead the same way."""
        self._tied = False
        if not self._lost and u != v:
            crossing = np.empty(CROSSINGS, np.int64)
            n, self._blocks = cut(
                u, v, self._cost // 8, self._edges, self._index.place, self._blocks, crossing, self._scratch
            )  # fmt: skip
            if n >= 0:
                self._spare(crossing[:n])
                return
        self._lost = True
        if not self._mark(u, v):
            self._doubts = np.append(self._doubts, [[u, v]], axis=0)

    def _mark(self, u: int, v: int) -> bool:
        """Marks nodes such that each pair that was lost starts or ends with one of them.

        A lost pair (x, y) had a path x .. u v .. y. Given any node c, x does not reach c, or c does not reach y. It is
        enough to look at x where c is v, at y where c is u, and often both are few where c is of the same component.
        """
        found, few = np.empty(1 + self._n // LOSERS, np.int64), min(self._cost // 4, EFFORT)
        graph = (self._edges, self._index, self._scratch)
        if lose(u, v, 1, few, found, *graph) or lose(v, u, 0, few, found, *graph):
            return True
        first, last = self._members[0][self._index.place[u, COMPONENT] :][:2]
        c = int(self._members[1][first + (u + v) % (last - first)])
        if c in (u, v):
            return False
        return bool(
            (still(u, c, *graph) or lose(u, c, 1, few, found, *graph))
            and (still(c, v, *graph) or lose(v, c, 0, few, found, *graph))
        )

    def _spare(self, edges: Array) -> None:
        if len(edges):
            self._spares, self._tied = np.append(self._spares, edges), False

    def _too_many(self, changes: int) -> bool:
        """Whether so many changes cost more than a new index."""
        return (len(self._spares) + len(self._doubts) + changes) ** 2 > PATIENCE * self._cost

    # The index

    def _refresh(self) -> None:
        """A new index where changes have cost as much."""
        if self._stale or (self._changed and self.visited > self._limit):
            self._build()
        if not self._tied:
            self._ties = np.zeros((len(self._spares), len(self._spares)), np.uint8)
            tie(self._spares, self._ties, self._edges, self._index, self._scratch)
            self._tied = True

    def _build(self) -> None:
        """The index of all edges there are."""
        rows = self._edges.rows[: self._edges.tally[SLOTS]]
        rows[:, SPARE] = 0
        rows = rows[rows[:, SOURCE] >= 0]
        us, vs = rows[:, SOURCE].copy(), rows[:, TARGET].copy()
        component, count = condense(us, vs, self._n)
        size = np.bincount(component, minlength=count)
        sources, targets = component[us], component[vs]
        loop = size > 1
        loop[sources[sources == targets]] = True
        apart = sources != targets
        sources, targets = sources[apart], targets[apart]
        order, depth, height = topological(sources, targets, count)
        rank = np.empty(count, np.int64)
        rank[order] = np.arange(count)
        component = rank[component]
        start, ends = both_ways(rank[sources], rank[targets], count)
        labels = np.full((count, 16), -1, np.int32)
        labels[:, LOOP], labels[:, DEPTH], labels[:, HEIGHT] = loop[order], depth[order], height[order]
        for i in range(4):
            label(start, ends, i // 2, i % 2 == 1, labels, LABELS + 3 * i)
        place = self._index.place
        place[:] = 0
        place[:, COMPONENT] = -1
        place[: self._n, COMPONENT] = component
        self._index = Index(place, labels, start, ends, hubs_of(start, ends, labels))
        self._members = groups(component, np.arange(self._n), count)
        self._stale = False
        self.builds += 1
        self._spares, self._tied, self._doubts, self._blocks = self._spares[:0], False, self._doubts[:0], 1
        self._lost, self._cost = False, self._size + 4 * (count + ends.shape[1]) + 1000

    def _spread(self, x: Array, way: int) -> tuple[Array, Array]:
        xs, parts = self._numbers(x), list[Array]()
        self._refresh()
        found, done = np.empty((2, max(1024, 2 * self._n)), np.int64), 0
        while done < len(xs):
            if self._changed:
                done, n = walk(xs, done, way, self._edges, self._scratch, found)
            else:
                done, n = spread(xs, done, way, self._index, self._members, self._scratch, found)
            parts.append(found[:, :n].copy())
        rows, nodes = np.concatenate([np.empty((2, 0), np.int64), *parts], axis=1)
        return rows, self._known[nodes]

    # Room

    def _numbers(self, codes: Array, new: bool = False) -> Array:
        """The number of each node; -1 where there is none, unless `new` ones are welcome."""
        codes = codes_of(codes)
        k.count_work(len(codes))
        ids = np.empty(len(codes), np.int64)
        if not new:
            number(codes, self._table, self._n, self._known[: self._n], ids)
            return ids
        done = 0
        while done < len(codes):  # in portions: most codes are known nodes
            end = min(len(codes), done + max(1024, self._n))
            self._known = grown(self._known, self._n + end - done, 0)
            if 2 * (self._n + end - done) > len(self._table):
                self._table = np.full((buckets_for(self._n + end - done), 2), -1, np.int64)
                number(self._known[: self._n], self._table, 0, self._known, np.empty(self._n, np.int64))
            self._n = number(codes[done:end], self._table, self._n, self._known, ids[done:end])
            done = end
        return ids

    def _make_room(self, more: int) -> None:
        """Room for so many more edges, and for the nodes there are."""
        rows, heads, buckets, tally = self._edges
        place, *rest = self._index
        seen, queue, count = self._scratch
        if 2 * (tally[EDGES] + more) > len(buckets):
            buckets = np.full(buckets_for(int(tally[EDGES]) + more), -1, np.int64)
            rehash_edges(Edges(rows, heads, buckets, tally))
        self._edges = Edges(grown(rows, int(tally[SLOTS]) + more, 0), grown(heads, self._n, -1), buckets, tally)
        unplaced = len(place)
        place = grown(place, self._n, -1)
        place[unplaced:, BLOCK:] = 0
        self._index = Index(place, *rest)
        self._scratch = Scratch(grown(seen, self._n, 0), grown(queue, self._n, 0), count)


def groups(by: Array, what: Array, n: int) -> tuple[Array, Array]:
    """Where each group starts, and what is in them."""
    start, out = np.zeros(n + 1, np.int64), np.empty(len(by), np.int64)
    grouped(by, what, n, start, out)
    return start, out


def condense(us: Array, vs: Array, n: int) -> tuple[Array, int]:
    """The component of each node, and how many there are."""
    component = np.full(n, -1, np.int64)
    count = components(*groups(us, vs, n), component)
    return component, count


def topological(sources: Array, targets: Array, n: int) -> tuple[Array, Array, Array]:
    """Components from top to bottom, and of each how deep it is and how high."""
    depth, height = np.zeros(n, np.int64), np.zeros(n, np.int64)
    levels(*groups(sources, targets, n), depth, height)
    return np.argsort(depth - height, kind="stable"), depth, height


def both_ways(sources: Array, targets: Array, n: int) -> tuple[Array, Array]:
    """Edges out of each component, the nearest first, and into each, the nearest first."""
    pairs = np.sort(sources * n + targets)
    pairs = pairs[np.r_[True, pairs[1:] != pairs[:-1]]] if len(pairs) else pairs
    sources, targets = pairs // max(n, 1), pairs % max(n, 1)
    out, into = groups(sources, targets, n), groups(targets[::-1].copy(), sources[::-1].copy(), n)
    return np.stack([out[0], into[0]]), np.stack([out[1], into[1]])


def hubs_of(start: Array, ends: Array, labels: Array) -> Array:
    """What components know of hubs: all of them where they are few, else those with the most ways through.

    None in a forest, where labels decide alone.
    """
    n = len(labels)
    exact = [(labels[:, c + 1] == labels[:, c + 2]).all() for c in range(LABELS, LABELS + 12, 3)]
    words = 0 if any(exact) else min(-(-n // BITS), min(HUB_WORDS, 8 * (n + ends.shape[1])) // n)
    hubs, hub = np.zeros((n, 2, words), np.int64), np.full(n, -1, np.int64)
    if words * BITS >= n:
        hub = np.arange(n)
    elif words:
        through = np.diff(start, axis=1).prod(axis=0)
        hub[np.argsort(-through, kind="stable")[: words * BITS]] = np.arange(words * BITS)
    if words:
        know_hubs(start, ends, hub, hubs)
    return hubs
