"""Labels of components from depth-first searches.

A search gives each component an interval that holds what it reaches in the tree of the search (inside: yes) and one that
holds all it reaches (outside: no). There are four, two of them backwards. Where both intervals of one search are the same
for all, the graph is a forest, and that one, a *span*, decides alone.
"""

from __future__ import annotations

import numpy as np

from augury.core.arrays import Array, Times
from augury.core.jit import Kernel, helper

LOOP, DEPTH, HEIGHT, LABELS = 0, 1, 2, 3  # of a component; a label is (rank, least rank in its tree, least rank of all)
WIDTH = LABELS + 4 * 3


@Kernel
def label(start: Times, ends: Times, way: int, last_first: bool, labels: Array, column: int) -> None:
    """Ranks components as a depth-first search leaves them."""
    n, rank = start.shape[1] - 1, 0
    done, calls = np.zeros(n, np.int64), np.empty(n, np.int64)  # how many edges of a component were followed
    for r in range(n):
        root = n - 1 - r if last_first else r
        if start[1 - way, root] < start[1 - way, root + 1]:  # not where a search must begin
            continue
        calls[0], size = root, 1
        labels[root, column + 1] = labels[root, column + 2] = rank
        while size:
            c = calls[size - 1]
            first, end = start[way, c], start[way, c + 1]
            if done[c] < end - first:
                other = ends[way, end - 1 - done[c] if last_first else first + done[c]]
                done[c] += 1
                if labels[other, column + 1] < 0:
                    labels[other, column + 1] = labels[other, column + 2] = rank
                    calls[size] = other
                    size += 1
                else:
                    labels[c, column + 2] = min(labels[c, column + 2], labels[other, column + 2])
                continue
            labels[c, column] = rank
            rank += 1
            size -= 1
            if size:
                above = calls[size - 1]
                labels[above, column + 2] = min(labels[above, column + 2], labels[c, column + 2])


@helper
def verdict(x: int, y: int, labels: Array) -> int:
    """Whether labels decide two components: 1 yes, -1 no, 0 not."""
    if x >= y or labels[x, DEPTH] >= labels[y, DEPTH] or labels[x, HEIGHT] <= labels[y, HEIGHT]:
        return -1
    for column in range(LABELS, WIDTH, 3):
        a, b = (x, y) if column < LABELS + 6 else (y, x)
        rank = labels[b, column]
        if rank > labels[a, column] or labels[b, column + 2] < labels[a, column + 2]:
            return -1
        if rank >= labels[a, column + 1]:
            return 1
    return 0


@helper
def inside(x: int, y: int, spans: Array, up: bool) -> bool:
    """Whether a component of a forest reaches another; `up` where the edges lead to the roots."""
    a, b = (y, x) if up else (x, y)
    return (spans[b, 0] >= spans[a, 1]) & (spans[b, 0] < spans[a, 0])  # type: ignore[no-any-return]


def labels_of(start: Times, ends: Times, loop: Array, depth: Array, height: Array) -> Array:
    """The labels of components."""
    labels = np.full((len(loop), 16), -1, np.int32)  # a line of the cache each
    labels[:, LOOP], labels[:, DEPTH], labels[:, HEIGHT] = loop, depth, height
    for i in range(4):
        label(start, ends, i // 2, i % 2 == 1, labels, LABELS + 3 * i)
    return labels


def spans_of(labels: Array) -> tuple[Array, bool]:
    """The spans of components of a forest, and whether its edges lead up; no spans where it is none."""
    for column in range(LABELS, WIDTH, 3):
        if (labels[:, column + 1] == labels[:, column + 2]).all():
            return labels[:, column : column + 2].copy(), column >= LABELS + 6
    return labels[:0, :2].copy(), False
