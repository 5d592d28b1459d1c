"""The edges, by number: in chains from each node, out of it and into it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from augury.core.arrays import Array, Integers, RowIds
from augury.core.jit import Kernel
from augury.knowledge.reachability.numbering import grown

SOURCE, TARGET, NEXT, PREV, KIND = 0, 1, 2, 4, 6  # of an edge; NEXT and PREV one each way: 0 is out, 1 is in
GONE, BASE, BESIDE, EXTRA = -1, 0, 1, 2  # kinds of edges; one that is not there keeps its number


class Edges(NamedTuple):
    """Edges in chains from each node, out of it and into it."""

    rows: RowIds
    heads: Integers


@Kernel
def add(numbers: Integers, us: Array, vs: Array, edges: Edges, added: Array) -> int:
    """Adds edges, by their numbers; how many were not there, which `added` lists."""
    rows, heads = edges.rows, edges.heads
    n = 0
    for i in range(len(us)):
        e = numbers[i]
        if rows[e, KIND] != GONE:
            continue
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
def remove(e: int, edges: Edges) -> int:
    """Removes an edge: what kind it was of."""
    rows = edges.rows
    kind = rows[e, KIND]
    if kind == GONE:
        return kind  # type: ignore[no-any-return]
    for way in range(2):
        before, after = rows[e, PREV + way], rows[e, NEXT + way]
        if before >= 0:
            rows[before, NEXT + way] = after
        else:
            edges.heads[rows[e, way], way] = after
        if after >= 0:
            rows[after, PREV + way] = before
    rows[e, KIND] = GONE
    return kind  # type: ignore[no-any-return]


def no_edges() -> Edges:
    return Edges(np.empty((0, 7), np.int64), np.empty((0, 2), np.int64))


def with_room(edges: Edges, count: int, nodes: int) -> Edges:
    """The same edges with room for so many, and so many nodes."""
    return Edges(grown(edges.rows, count, GONE), grown(edges.heads, nodes, -1))


def all_as_base(edges: Edges) -> tuple[Array, Array]:
    """The sources and targets of all edges, which are base edges from now on."""
    there = edges.rows[:, KIND] != GONE
    edges.rows[there, KIND] = BASE
    return edges.rows[there, SOURCE], edges.rows[there, TARGET]
