"""The index of a graph: what it is made of, how it is built, and what searches in it need."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from augury.core.arrays import Array, Times
from augury.core.jit import helper
from augury.knowledge.reachability.condense import both_ways, condense, groups, topological
from augury.knowledge.reachability.hubs import hubs_of
from augury.knowledge.reachability.labels import labels_of, spans_of

STAMP, STEPS = 0, 1  # of the count of searches


class ReachabilityIndex(NamedTuple):
    """Of each node its component, -1 where it came later; of components the rest.

    `ends` are edges out (0) and in (1) from `start` on, `hubs` those reached and reaching, see `labels` for labels and spans.
    There are no two paths between two nodes where they are `unique`.
    """

    component: Array
    labels: Array
    spans: Array
    up: bool
    unique: bool
    start: Times
    ends: Times
    hubs: Array


class EdgeChanges(NamedTuple):
    """The extra edges, and the base edges that were removed.

    `links` has two tables for extra edges: what leads where, and what does so beyond doubt.
    """

    extras: Array
    links: Array
    removed: Array


class Scratch(NamedTuple):
    """Where searches note what they have seen, from the one end and from the other, and where they go on."""

    seen: Array
    queue: Array
    counters: Array


@helper
def stamped(scratch: Scratch) -> int:
    """A number that nothing was marked with so far."""
    scratch.counters[STAMP] += 1
    return scratch.counters[STAMP]  # type: ignore[no-any-return]


def indexed(us: Array, vs: Array, n: int) -> tuple[ReachabilityIndex, tuple[Array, Array]]:
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
    index = ReachabilityIndex(component.astype(np.int32), labels, spans, up, unique, start, ends, hubs)
    return index, groups(component, np.arange(n), count)


def no_index() -> ReachabilityIndex:
    """The index of no edges and no nodes."""
    nothing = np.empty(0, np.int64)
    return indexed(nothing, nothing, 0)[0]
