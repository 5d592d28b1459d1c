"""An edge is gone: what its target reaches, or what reaches its source, is cut off."""

from __future__ import annotations

import numpy as np

from augury.jit import Array, Kernel, helper
from augury.knowledge.reachability.edges import NEXT, SPARE, Edges
from augury.knowledge.reachability.notes import BLOCK, STEPS, Scratch, stamped


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
    stamp, last = stamped(scratch), scratch.count[STEPS] + limit
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
