"""How an index is built."""

from __future__ import annotations

import numpy as np

from augury.jit import Array
from augury.knowledge.reachability.condense import both_ways, condense, groups, topological
from augury.knowledge.reachability.hubs import hubs_of
from augury.knowledge.reachability.labels import labels_of, spans_of
from augury.knowledge.reachability.notes import Index
from augury.knowledge.reachability.numbering import grown


def indexed(us: Array, vs: Array, n: int) -> tuple[Index, tuple[Array, Array]]:
    """The index of edges between `n` nodes, and the nodes of each component."""
    component, count = condense(us, vs, n)
    sources, targets = component[us], component[vs]
    loop = np.bincount(component, minlength=count) > 1
    loop[sources[sources == targets]] = True
    apart = sources != targets
    sources, targets = sources[apart], targets[apart]
    order, depth, height = topological(sources, targets, count)
    rank = np.empty(count, np.int64)
    rank[order] = np.arange(count)
    component = rank[component]
    start, ends = both_ways(rank[sources], rank[targets], count)
    labels = labels_of(start, ends, loop[order], depth[order], height[order])
    spans, up = spans_of(labels)
    hubs = np.empty((count, 2, 0), np.int64) if len(spans) else hubs_of(start, ends)
    unique = not loop.any() and bool((np.diff(start, axis=1) <= 1).all(axis=1).any())
    index = Index(component.astype(np.int32), labels, spans, up, unique, start, ends, hubs)
    return index, groups(component, np.arange(n), count)


def no_index() -> Index:
    """The index of no edges and no nodes."""
    nothing = np.empty(0, np.int64)
    return indexed(nothing, nothing, 0)[0]


def with_room_for(index: Index, nodes: int) -> Index:
    """The same index for so many nodes: those that are new are in no component."""
    return index._replace(component=grown(index.component, nodes, -1))
