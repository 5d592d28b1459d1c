"""The edges: in chains from each node, out of it and into it, and by their ends."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from augury.jit import Array, Kernel, helper
from augury.knowledge.reachability.numbering import buckets_for, grown, hashed

SOURCE, TARGET, NEXT, PREV, KIND = 0, 1, 2, 4, 6  # of an edge; NEXT and PREV one each way: 0 is out, 1 is in
BASE, BESIDE, EXTRA = 0, 1, 2  # kinds of edges
SLOTS, FREE, EDGES = 0, 1, 2  # of the tally: how many slots were used, the first free one, how many edges there are


class Edges(NamedTuple):
    """Edges in chains from each node, out of it and into it, and by their ends."""

    rows: Array
    heads: Array
    buckets: Array
    tally: Array


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
def add(us: Array, vs: Array, edges: Edges, added: Array) -> int:
    """Adds edges; how many were not there, which `added` lists."""
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
        rows[e, SOURCE], rows[e, TARGET], rows[e, KIND] = us[i], vs[i], BASE
        for way in range(2):
            head = heads[rows[e, way], way]
            rows[e, NEXT + way], rows[e, PREV + way] = head, -1
            if head >= 0:
                rows[head, PREV + way] = e
            heads[rows[e, way], way] = e
        added[n] = e
        n += 1
    return n


@Kernel
def remove(u: int, v: int, edges: Edges) -> int:
    """Removes an edge: its kind, -1 where there is none."""
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
    return rows[e, KIND]  # type: ignore[no-any-return]


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


def no_edges() -> Edges:
    return Edges(
        np.empty((0, 7), np.int64), np.empty((0, 2), np.int64), np.full(16, -1, np.int64), np.array([0, -1, 0])
    )


def with_room(edges: Edges, more: int, nodes: int) -> Edges:
    """The same edges with room for so many more, and so many nodes."""
    rows, heads, buckets, tally = edges
    if 2 * (tally[EDGES] + more) > len(buckets):
        buckets = np.full(buckets_for(int(tally[EDGES]) + more), -1, np.int64)
        rehash_edges(Edges(rows, heads, buckets, tally))
    return Edges(grown(rows, int(tally[SLOTS]) + more, 0), grown(heads, nodes, -1), buckets, tally)


def all_as_base(edges: Edges) -> tuple[Array, Array]:
    """The sources and targets of all edges, which are base edges from now on."""
    rows = edges.rows[: edges.tally[SLOTS]]
    rows[:, KIND] = BASE
    kept = rows[:, SOURCE] >= 0
    return rows[kept, SOURCE], rows[kept, TARGET]
