"""Searches that follow edges one by one: from a node to another, the shortest path, all that a node reaches."""

from __future__ import annotations

from augury.core.arrays import Array
from augury.core.jit import Kernel, helper
from augury.knowledge.reachability.edges import BASE, KIND, NEXT, TARGET, Edges
from augury.knowledge.reachability.indexing import STEPS, ReachabilityIndex, Scratch, stamped
from augury.knowledge.reachability.labels import LOOP
from augury.knowledge.reachability.lookup import by_labels


@helper
def by_edges(
    x: int, y: int, every: bool, guided: bool, edges: Edges, index: ReachabilityIndex, scratch: Scratch
) -> bool:
    """Whether a node reaches another, edge by edge, from both ends at once.

    By `every` edge or by base edges alone; the search is `guided` by labels where they hold.
    """
    seen, queue, rows = scratch.seen, scratch.queue, edges.rows
    component, labels = index.component, index.labels
    stamp = stamped(scratch)
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
            scratch.counters[STEPS] += 1
            z, kind = rows[e, 1 - way], rows[e, KIND]
            e = rows[e, NEXT + way]
            if kind != BASE and not every:
                continue
            if seen[z, 1 - way] == stamp:
                return True
            if seen[z, way] == stamp:
                continue
            seen[z, way] = stamp
            if guided and by_labels(z if way == 0 else x, y if way == 0 else z, component, labels) < 0:
                continue
            if way == 0:
                queue[n0, 0] = z
                n0 += 1
            else:
                queue[n1, 1] = z
                n1 += 1
    return False


@Kernel
def still(u: int, v: int, edges: Edges, index: ReachabilityIndex, scratch: Scratch) -> bool:
    """Whether base edges lead from a node to another."""
    return by_edges(u, v, False, True, edges, index, scratch)  # type: ignore[no-any-return]


@Kernel
def shortest(
    x: int, y: int, guided: bool, edges: Edges, index: ReachabilityIndex, scratch: Scratch, before: Array
) -> bool:
    """Whether there is a path; `before` says which node is before each one on a shortest path."""
    seen, queue, rows = scratch.seen, scratch.queue, edges.rows
    stamp, head, n = stamped(scratch), 0, 1
    queue[0, 0] = x
    while head < n:
        z = queue[head, 0]
        head += 1
        e = edges.heads[z, 0]
        while e >= 0:
            scratch.counters[STEPS] += 1
            other = rows[e, TARGET]
            if seen[other, 0] != stamp:
                seen[other, 0] = stamp
                before[other] = z
                if other == y:
                    return True
                if not guided or by_labels(other, y, index.component, index.labels) >= 0:
                    queue[n, 0] = other
                    n += 1
            e = rows[e, NEXT]
    return False


@Kernel
def search_all(
    xs: Array, first: int, way: int, index: ReachabilityIndex, members: Array, scratch: Scratch, pairs: Array
) -> tuple[int, int]:
    """All that each node reaches, component by component; how far it came before `found` was full, and how many it found."""
    n, room, seen, queue = 0, pairs.shape[1], scratch.seen, scratch.queue
    first_member = members[0]
    for i in range(first, len(xs)):
        began, size, head = n, 1, 0
        if xs[i] < 0 or index.component[xs[i]] < 0:
            continue
        stamp = stamped(scratch)
        root = index.component[xs[i]]
        queue[0, way] = root
        seen[root, way] = stamp
        while head < size:
            c = queue[head, way]
            head += 1
            scratch.counters[STEPS] += 1
            if c != root or index.labels[c, LOOP]:
                for m in range(first_member[c], first_member[c + 1]):
                    if n == room:
                        return i, began
                    pairs[0, n] = i
                    pairs[1, n] = members[1][m]
                    n += 1
            for e in range(index.start[way, c], index.start[way, c + 1]):
                scratch.counters[STEPS] += 1
                z = index.ends[way, e]
                if seen[z, way] != stamp:
                    seen[z, way] = stamp
                    queue[size, way] = z
                    size += 1
    return len(xs), n


@Kernel
def walk(xs: Array, first: int, way: int, edges: Edges, scratch: Scratch, pairs: Array) -> tuple[int, int]:
    """The same edge by edge."""
    n, room, seen, rows = 0, pairs.shape[1], scratch.seen, edges.rows
    for i in range(first, len(xs)):
        if xs[i] < 0:
            continue
        stamp, began, head, z = stamped(scratch), n, n, xs[i]
        while True:
            e = edges.heads[z, way]
            while e >= 0:
                scratch.counters[STEPS] += 1
                other = rows[e, 1 - way]
                if seen[other, way] != stamp:
                    if n == room:
                        return i, began
                    seen[other, way] = stamp
                    pairs[0, n] = i
                    pairs[1, n] = other
                    n += 1
                e = rows[e, NEXT + way]
            if head == n:
                break
            z = pairs[1, head]
            head += 1
    return len(xs), n
