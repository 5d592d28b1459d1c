"""What edges tell: searches that follow them one by one."""

from __future__ import annotations

from augury.jit import Array, Kernel, helper
from augury.knowledge.reachability.edges import BASE, KIND, NEXT, TARGET, Edges
from augury.knowledge.reachability.lookup import by_labels
from augury.knowledge.reachability.notes import STEPS, Index, Scratch, stamped


@helper
def by_edges(x: int, y: int, every: bool, guided: bool, edges: Edges, index: Index, scratch: Scratch) -> bool:
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
            scratch.count[STEPS] += 1
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
def still(u: int, v: int, edges: Edges, index: Index, scratch: Scratch) -> bool:
    """Whether base edges lead from a node to another."""
    return by_edges(u, v, False, True, edges, index, scratch)  # type: ignore[no-any-return]


@Kernel
def shortest(x: int, y: int, guided: bool, edges: Edges, index: Index, scratch: Scratch, before: Array) -> bool:
    """Whether there is a path; `before` says which node is before each one on a shortest path."""
    seen, queue, rows = scratch.seen, scratch.queue, edges.rows
    stamp, at, n = stamped(scratch), 0, 1
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
                if not guided or by_labels(other, y, index.component, index.labels) >= 0:
                    queue[n, 0] = other
                    n += 1
            e = rows[e, NEXT]
    return False
