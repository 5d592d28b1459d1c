"""How an index is built."""

from __future__ import annotations

import numpy as np

from augury.jit import Array
from augury.knowledge.reachability.condense import both_ways, condense, groups, topological
from augury.knowledge.reachability.hubs import hubs_of
from augury.knowledge.reachability.labels import labels_of, spans_of
from augury.knowledge.reachability.notes import COMPONENT, Index


def indexed(us: Array, vs: Array, n: int, room: int) -> tuple[Index, tuple[Array, Array]]:
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
    place = unplaced(room)
    place[:n, COMPONENT] = component
    index = Index(place, np.zeros((room, 2), np.uint8), labels, spans, up, start, ends, hubs)
    return index, groups(component, np.arange(n), count)


def unplaced(room: int) -> Array:
    """Places of nodes that no index knows: in no component, all in one block."""
    place = np.zeros((room, 2), np.int32)
    place[:, COMPONENT] = -1
    return place


def no_index() -> Index:
    """The index of no edges and no nodes."""
    nothing = np.empty(0, np.int64)
    return indexed(nothing, nothing, 0, 0)[0]


def with_room_for(index: Index, nodes: int) -> Index:
    """The same index with places for so many nodes."""
    more = nodes - len(index.place)
    if more <= 0:
        return index
    more += nodes // 8 + 16
    return index._replace(
        place=np.concatenate([index.place, unplaced(more)]),
        lost=np.concatenate([index.lost, np.zeros((more, 2), np.uint8)]),
    )
