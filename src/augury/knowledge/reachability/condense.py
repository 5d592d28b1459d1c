"""Components, nodes that reach each other, and the acyclic graph of them."""

from __future__ import annotations

import numpy as np

from augury.core.arrays import Array, Times
from augury.core.jit import Kernel


@Kernel
def grouped(by: Array, what: Array, n: int, start: Times, out: Array) -> None:
    """`what` grouped by a number below `n`, in the order it comes in."""
    for i in range(len(by)):
        start[by[i] + 1] += 1
    for i in range(n):
        start[i + 1] += start[i]
    next_slot = start[:-1].copy()
    for i in range(len(by)):
        out[next_slot[by[i]]] = what[i]
        next_slot[by[i]] += 1


@Kernel
def components(start: Times, ends: Times, component: Array) -> int:
    """Tarjan's algorithm: the component of each node, those that are reached first; how many there are."""
    n, clock, count, size = len(start) - 1, 0, 0, 0
    order, low, next_edge = np.zeros(n, np.int64), np.zeros(n, np.int64), start.copy()
    stack, calls = np.empty(n, np.int64), np.empty(n, np.int64)
    for root in range(n):
        if order[root]:
            continue
        calls[0], depth = root, 1
        while depth:
            v = calls[depth - 1]
            if order[v] == 0:
                clock += 1
                order[v] = low[v] = clock
                stack[size] = v
                size += 1
            if next_edge[v] < start[v + 1]:
                w = ends[next_edge[v]]
                next_edge[v] += 1
                if order[w] == 0:
                    calls[depth] = w
                    depth += 1
                elif component[w] < 0:
                    low[v] = min(low[v], order[w])
                continue
            depth -= 1
            if depth:
                low[calls[depth - 1]] = min(low[calls[depth - 1]], low[v])
            if low[v] == order[v]:
                while component[v] < 0:
                    size -= 1
                    component[stack[size]] = count
                count += 1
    return count


@Kernel
def levels(start: Times, ends: Times, depth: Array, height: Array) -> None:
    """The longest ways from the top and to the bottom, of components that come after those they reach."""
    n = len(start) - 1
    for c in range(n):
        for i in range(start[c], start[c + 1]):
            height[c] = max(height[c], height[ends[i]] + 1)
    for c in range(n - 1, -1, -1):
        for i in range(start[c], start[c + 1]):
            depth[ends[i]] = max(depth[ends[i]], depth[c] + 1)


def groups(by: Array, what: Array, n: int) -> tuple[Array, Array]:
    """Where each group starts, and what is in them."""
    start, out = np.zeros(n + 1, np.int64), np.empty(len(by), np.int64)
    grouped(by, what, n, start, out)
    return start, out


def condense(us: Array, vs: Array, n: int) -> tuple[Array, int]:
    """The component of each node, and how many there are."""
    component = np.full(n, -1, np.int64)
    count = components(*groups(us, vs, n), component)
    return component, count


def topological(sources: Array, targets: Array, n: int) -> tuple[Array, Array, Array]:
    """Components from top to bottom, and of each how deep it is and how high."""
    depth, height = np.zeros(n, np.int64), np.zeros(n, np.int64)
    levels(*groups(sources, targets, n), depth, height)
    return np.argsort(depth - height, kind="stable"), depth, height


def both_ways(sources: Array, targets: Array, n: int) -> tuple[Array, Array]:
    """Edges out of each component, the nearest first, and into each, the nearest first."""
    pairs = np.sort(sources * n + targets)
    pairs = pairs[np.r_[True, pairs[1:] != pairs[:-1]]] if len(pairs) else pairs
    sources, targets = pairs // max(n, 1), pairs % max(n, 1)
    out, into = groups(sources, targets, n), groups(targets[::-1].copy(), sources[::-1].copy(), n)
    return np.stack([out[0], into[0]]), np.stack([out[1], into[1]])
