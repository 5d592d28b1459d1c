"""Which nodes reach which: by the index, by spare edges, and edge by edge where that is in doubt."""

from __future__ import annotations

import numpy as np

from augury.jit import Array, Kernel, helper
from augury.knowledge.reachability.edges import SOURCE, SPARE, TARGET, Edges
from augury.knowledge.reachability.labels import LOOP, inside
from augury.knowledge.reachability.lookup import by_base, by_labels, by_search
from augury.knowledge.reachability.notes import COMPONENT, STEPS, Index, Scratch
from augury.knowledge.reachability.paths import by_edges


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


@helper
def in_doubt(x: int, y: int, doubts: Array, index: Index, scratch: Scratch) -> bool:
    """Whether base edges might have led from a node to another by a removed edge alone."""
    if index.lost[x, 0] or index.lost[y, 1]:
        return True
    for i in range(len(doubts)):
        u, v = doubts[i, 0], doubts[i, 1]
        if (x == u or by_base(x, u, index, scratch)) and (v == y or by_base(v, y, index, scratch)):
            return True
    return False


@helper
def leads(x: int, y: int, sure: bool, doubts: Array, index: Index, scratch: Scratch) -> bool:
    """Whether a node is another or reaches it by base edges; `sure`: beyond doubt."""
    if x == y:
        return True
    return by_base(x, y, index, scratch) and not (sure and in_doubt(x, y, doubts, index, scratch))


@Kernel
def tie(spares: Array, ties: Array, sure: bool, doubts: Array, edges: Edges, index: Index, scratch: Scratch) -> None:
    """Which spare edge leads to which, by base edges and spare ones."""
    n, rows = len(spares), edges.rows
    for i in range(n):
        for j in range(n):
            x, y = rows[spares[i], TARGET], rows[spares[j], SOURCE]
            ties[i, j] = i == j or leads(x, y, sure, doubts, index, scratch)
    scratch.count[STEPS] += n * n
    for middle in range(n):
        for i in range(n):
            if ties[i, middle]:
                for j in range(n):
                    ties[i, j] |= ties[middle, j]


@helper
def by_spares(
    x: int, y: int, spares: Array, ties: Array, sure: bool, tried: Array, doubts: Array,
    edges: Edges, index: Index, scratch: Scratch,
) -> bool:  # fmt: skip
    """Whether a node reaches another by base edges and at least one spare edge."""
    n, rows = len(spares), edges.rows
    place, labels, spans, up = index.place, index.labels, index.spans, index.up
    scratch.count[STEPS] += n
    tried[:] = 0
    for i in range(n):
        u = rows[spares[i], SOURCE]
        if u != x and by_labels(x, u, place, labels, spans, up) < 0:  # most, at no great cost
            continue
        if not leads(x, u, sure, doubts, index, scratch):
            continue
        for j in range(n):
            if ties[i, j] and not tried[j]:
                tried[j] = 1
                scratch.count[STEPS] += 1
                if leads(rows[spares[j], TARGET], y, sure, doubts, index, scratch):
                    return True
    return False


@Kernel
def answer_forest(xs: Array, ys: Array, out: Array, index: Index) -> None:
    """Whether each node reaches the other, in a forest without changes: with no branch that is hard to foresee."""
    place, labels, spans, up = index.place, index.labels, index.spans, index.up
    for i in range(len(xs)):
        x, y = xs[i], ys[i]
        if x < 0 or y < 0:
            continue
        a, b = place[x, COMPONENT], place[y, COMPONENT]
        if a < 0 or b < 0:
            continue
        out[i] = inside(a, b, spans, up)
        if a == b:
            out[i] = labels[a, LOOP] > 0


@Kernel
def answer(
    xs: Array, ys: Array, first: int, limit: int, out: Array,
    spares: Array, ties: Array, doubts: Array, lost: bool, edges: Edges, index: Index, scratch: Scratch,
) -> int:  # fmt: skip
    """Whether each node reaches the other; how far it came before changes had cost more than `limit` steps.

    `ties` has two rows for spare edges: what leads where, and what does so beyond doubt.
    """
    tried, some = np.zeros(len(spares), np.int64), len(spares) > 0
    place, labels, spans, up = index.place, index.labels, index.spans, index.up
    for i in range(first, len(xs)):
        x, y = xs[i], ys[i]
        if x < 0 or y < 0:
            out[i] = False
            continue
        told = by_labels(x, y, place, labels, spans, up)
        known = told > 0
        if told == 0:
            known = by_search(place[x, COMPONENT], place[y, COMPONENT], index, scratch)
        if some or lost:
            unsure = known and lost and in_doubt(x, y, doubts, index, scratch)
            if some and not known:
                known = by_spares(x, y, spares, ties[0], False, tried, doubts, edges, index, scratch)
                unsure = known and lost
            if some and unsure:
                unsure = not by_spares(x, y, spares, ties[1], True, tried, doubts, edges, index, scratch)
            if unsure:
                known = by_edges(x, y, True, not some, edges, index, scratch)
        out[i] = known
        if scratch.count[STEPS] > limit and (some or lost):
            return i + 1
    return len(xs)
