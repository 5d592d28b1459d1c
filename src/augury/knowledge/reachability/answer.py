"""Which nodes reach which: by the index, by extra edges, and edge by edge where that is in doubt."""

from __future__ import annotations

import numpy as np

from augury.core.arrays import Array
from augury.core.jit import Kernel, helper
from augury.knowledge.reachability.edges import BESIDE, EXTRA, KIND, SOURCE, TARGET, Edges
from augury.knowledge.reachability.indexing import STEPS, EdgeChanges, ReachabilityIndex, Scratch
from augury.knowledge.reachability.labels import LOOP, inside
from augury.knowledge.reachability.lookup import by_base, by_labels, by_search
from augury.knowledge.reachability.searches import by_edges


@Kernel
def classify(added: Array, edges: Edges, index: ReachabilityIndex, scratch: Scratch) -> None:
    """Which of the added edges are beside base edges, and which are extra: all where base paths are to stay unique."""
    rows = edges.rows
    for i in range(len(added)):
        e = added[i]
        redundant = not index.unique and by_base(rows[e, SOURCE], rows[e, TARGET], index, scratch)
        rows[e, KIND] = BESIDE if redundant else EXTRA


@helper
def in_doubt(x: int, y: int, removed: Array, index: ReachabilityIndex, scratch: Scratch) -> bool:
    """Whether base edges might have led from a node to another by a removed edge alone."""
    for i in range(len(removed)):
        u, v = removed[i, 0], removed[i, 1]
        if (x == u or by_base(x, u, index, scratch)) and (v == y or by_base(v, y, index, scratch)):
            return True
    return False


@helper
def leads(x: int, y: int, removed: Array, index: ReachabilityIndex, scratch: Scratch) -> bool:
    """Whether a node is another or reaches it by base edges, beyond the doubt that `removed` ones leave."""
    if x == y:
        return True
    return by_base(x, y, index, scratch) and not in_doubt(x, y, removed, index, scratch)


@Kernel
def link(extras: Array, links: Array, removed: Array, edges: Edges, index: ReachabilityIndex, scratch: Scratch) -> None:
    """Which extra edge leads to which, by base edges and extra ones."""
    n, rows = len(extras), edges.rows
    for i in range(n):
        for j in range(n):
            x, y = rows[extras[i], TARGET], rows[extras[j], SOURCE]
            links[i, j] = i == j or leads(x, y, removed, index, scratch)
    scratch.counters[STEPS] += n * n
    for middle in range(n):
        for i in range(n):
            if links[i, middle]:
                for j in range(n):
                    links[i, j] |= links[middle, j]


@helper
def by_extras(
    x: int,
    y: int,
    extras: Array,
    links: Array,
    removed: Array,
    tried: Array,
    edges: Edges,
    index: ReachabilityIndex,
    scratch: Scratch,
) -> bool:
    """Whether a node reaches another by base edges and at least one extra edge."""
    n, rows = len(extras), edges.rows
    component, labels = index.component, index.labels
    scratch.counters[STEPS] += n
    tried[:] = 0
    for i in range(n):
        u = rows[extras[i], SOURCE]
        if u != x and by_labels(x, u, component, labels) < 0:  # most, at no great cost
            continue
        if not leads(x, u, removed, index, scratch):
            continue
        for j in range(n):
            if links[i, j] and not tried[j]:
                tried[j] = 1
                scratch.counters[STEPS] += 1
                if leads(rows[extras[j], TARGET], y, removed, index, scratch):
                    return True
    return False


@Kernel
def answer_forest(xs: Array, ys: Array, out: Array, index: ReachabilityIndex) -> None:
    """Whether each node reaches the other, in a forest without changes: with no branch that is hard to foresee."""
    component, labels, spans, up = index.component, index.labels, index.spans, index.up
    for i in range(len(xs)):
        x, y = xs[i], ys[i]
        if x < 0 or y < 0:
            continue
        a, b = component[x], component[y]
        if a < 0 or b < 0:
            continue
        out[i] = inside(a, b, spans, up)
        if a == b:
            out[i] = labels[a, LOOP] > 0


@Kernel
def answer(
    xs: Array,
    ys: Array,
    first: int,
    limit: int,
    out: Array,
    changes: EdgeChanges,
    edges: Edges,
    index: ReachabilityIndex,
    scratch: Scratch,
) -> int:
    """Whether each node reaches the other; how far it came before changes had cost more than `limit` steps."""
    extras, links, removed = changes
    nothing = removed[:0]
    tried, some, lost = np.zeros(len(extras), np.int64), len(extras) > 0, len(removed) > 0
    component, labels = index.component, index.labels
    for i in range(first, len(xs)):
        x, y = xs[i], ys[i]
        if x < 0 or y < 0:
            out[i] = False
            continue
        label = by_labels(x, y, component, labels)
        reached = label > 0
        if label == 0:
            reached = by_search(component[x], component[y], index, scratch)
        if some or lost:
            unsure = reached and lost and in_doubt(x, y, removed, index, scratch)
            if some and not reached:
                reached = by_extras(x, y, extras, links[0], nothing, tried, edges, index, scratch)
                unsure = reached and lost
            if some and unsure:
                unsure = not by_extras(x, y, extras, links[1], removed, tried, edges, index, scratch)
            if unsure:
                reached = not index.unique and by_edges(x, y, True, not some, edges, index, scratch)
        out[i] = reached
        if scratch.counters[STEPS] > limit and (some or lost):
            return i + 1
    return len(xs)
