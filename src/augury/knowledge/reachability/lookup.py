"""Lookups in the index: whether a component reaches another, or a node another by base edges."""

from __future__ import annotations

from augury.core.arrays import Array
from augury.core.jit import helper
from augury.knowledge.reachability.hubs import BITS, astray, by_hubs
from augury.knowledge.reachability.indexing import STEPS, ReachabilityIndex, Scratch, stamped
from augury.knowledge.reachability.labels import LOOP, verdict


@helper
def search(x: int, y: int, index: ReachabilityIndex, scratch: Scratch) -> bool:
    """Whether a component reaches another, from both ends at once, at the one that has fewer to follow."""
    seen, queue, start, ends = scratch.seen, scratch.queue, index.start, index.ends
    labels, hubs = index.labels, index.hubs
    stamp = stamped(scratch)
    seen[x, 0] = seen[y, 1] = stamp
    queue[0, 0], queue[0, 1] = x, y
    at0, at1, n0, n1 = 0, 0, 1, 1
    while at0 < n0 and at1 < n1:
        way = 0 if n0 - at0 <= n1 - at1 else 1
        if way == 0:
            c = queue[at0, 0]
            at0 += 1
        else:
            c = queue[at1, 1]
            at1 += 1
        for e in range(start[way, c], start[way, c + 1]):
            scratch.counters[STEPS] += 1
            z = ends[way, e]
            if (z > y) if way == 0 else (z < x):  # the rest is further still
                break
            if seen[z, 1 - way] == stamp:
                return True
            if seen[z, way] == stamp:
                continue
            seen[z, way] = stamp
            decision = verdict(z if way == 0 else x, y if way == 0 else z, labels)
            if decision > 0:
                return True
            if decision < 0 or astray(z, y if way == 0 else x, way, hubs):
                continue
            if way == 0:
                queue[n0, 0] = z
                n0 += 1
            else:
                queue[n1, 1] = z
                n1 += 1
    return False


@helper
def by_labels(x: int, y: int, component: Array, labels: Array) -> int:
    """Whether labels decide two nodes over base edges, removed ones included: 1 yes, -1 no, 0 not."""
    a, b = component[x], component[y]
    if a < 0 or b < 0:
        return -1
    if a == b:
        return 1 if labels[a, LOOP] else -1
    return verdict(a, b, labels)  # type: ignore[no-any-return]


@helper
def by_search(a: int, b: int, index: ReachabilityIndex, scratch: Scratch) -> bool:
    """Whether a component reaches another, where labels tell nothing."""
    hubs = index.hubs
    if hubs.shape[2] * BITS >= len(hubs):  # all are hubs
        return ((hubs[a, 0, b // BITS] >> (b % BITS)) & 1) > 0  # type: ignore[no-any-return]
    decision = by_hubs(a, b, hubs)
    return search(a, b, index, scratch) if decision == 0 else decision > 0  # type: ignore[no-any-return]


@helper
def by_base(x: int, y: int, index: ReachabilityIndex, scratch: Scratch) -> bool:
    """Whether a node reaches another by base edges, those that were removed included."""
    decision = by_labels(x, y, index.component, index.labels)
    if decision == 0:
        return by_search(index.component[x], index.component[y], index, scratch)  # type: ignore[no-any-return]
    return decision > 0  # type: ignore[no-any-return]
