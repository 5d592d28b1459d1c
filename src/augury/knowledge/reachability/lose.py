"""An edge is gone: which nodes have lost what they reach, or what reaches them."""

from __future__ import annotations

from augury.jit import Array, Kernel, helper
from augury.knowledge.reachability.edges import NEXT, SPARE, Edges
from augury.knowledge.reachability.notes import STEPS, Index, Scratch, stamped
from augury.knowledge.reachability.paths import by_edges


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
    last, stamp = scratch.count[STEPS] + limit, stamped(scratch)
    stamped(scratch)  # the first for what is lost, the second for what is not
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
        index.lost[found[i], 1 - way] = 1
    return True
