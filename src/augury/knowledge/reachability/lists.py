"""All that nodes reach, or that reaches them."""

from __future__ import annotations

from augury.jit import Array, Kernel
from augury.knowledge.reachability.edges import NEXT, Edges
from augury.knowledge.reachability.labels import LOOP
from augury.knowledge.reachability.notes import STEPS, Index, Scratch, stamped


@Kernel
def spread(
    xs: Array, first: int, way: int, index: Index, members: Array, scratch: Scratch, found: Array
) -> tuple[int, int]:
    """All that each node reaches, component by component; how far it came before `found` was full, and how many it found."""
    n, room, seen, queue = 0, found.shape[1], scratch.seen, scratch.queue
    first_member = members[0]
    for i in range(first, len(xs)):
        began, size, at = n, 1, 0
        if xs[i] < 0 or index.component[xs[i]] < 0:
            continue
        stamp = stamped(scratch)
        root = index.component[xs[i]]
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
        stamp, began, at, z = stamped(scratch), n, n, xs[i]
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
