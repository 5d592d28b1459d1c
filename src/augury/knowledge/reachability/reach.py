"""The reachability index: queries, and updates when edges change."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from augury.core.arrays import Array
from augury.core.jit import count_work
from augury.knowledge.reachability.answer import answer, answer_forest, classify, link
from augury.knowledge.reachability.edges import (
    BASE,
    EXTRA,
    GONE,
    KIND,
    TARGET,
    add,
    all_as_base,
    no_edges,
    remove,
    with_room,
)
from augury.knowledge.reachability.indexing import STEPS, EdgeChanges, Scratch, indexed, no_index
from augury.knowledge.reachability.numbering import Numbering, grown
from augury.knowledge.reachability.searches import search_all, shortest, still, walk

PATIENCE = 1  # how many times the cost of an index changes may cost before there is a new one
NO_CHANGES = EdgeChanges(np.empty(0, np.int64), np.empty((2, 0, 0), np.uint8), np.empty((0, 2), np.int64))


class Reach:
    """Which nodes reach which, by one or more edges; nodes are any int64, edges a set.

    `a -> b -> c`: a reaches b and c, b reaches c, and none reaches itself.
    """

    def __init__(self, source: Array | Sequence[int], target: Array | Sequence[int]) -> None:
        self._nodes, self._numbers = Numbering(), Numbering()  # the numbers of edges, by those of their ends
        self._edges, self._index = no_edges(), no_index()
        self._scratch = Scratch(np.zeros((0, 2), np.int64), np.empty((0, 2), np.int64), np.zeros(2, np.int64))
        self._changes, self._linked = NO_CHANGES, True
        self._stale, self._limit, self._cost, self.builds = True, 0, 0, 0
        self.add(source, target)

    @property
    def visited(self) -> int:
        """How many edges searches have followed so far."""
        return int(self._scratch.counters[STEPS])

    @property
    def _changed(self) -> bool:
        """Whether there are changes that the index does not tell of."""
        return len(self._changes.extras) + len(self._changes.removed) > 0

    # Questions

    def reaches(self, x: Array | Sequence[int], y: Array | Sequence[int]) -> Array:
        """Whether each x reaches the y beside it."""
        xs, ys = self._nodes.find(x), self._nodes.find(y)
        out, done = np.zeros(len(xs), np.bool_), 0
        while done < len(xs):
            self._refresh()
            if len(self._index.spans) and not self._changed:
                answer_forest(xs[done:], ys[done:], out[done:], self._index)
                break
            done = answer(xs, ys, done, self._limit, out, self._changes, self._edges, self._index, self._scratch)
        return out

    def targets(self, x: Array | Sequence[int]) -> tuple[Array, Array]:
        """Rows of x and the nodes they reach, each once."""
        return self._spread(x, 0)

    def sources(self, y: Array | Sequence[int]) -> tuple[Array, Array]:
        """Rows of y and the nodes that reach them, each once."""
        return self._spread(y, 1)

    def everything(self) -> tuple[Array, Array]:
        """All pairs of nodes of which the one reaches the other."""
        nodes_of = self._nodes.codes.copy()
        rows, nodes = self.targets(nodes_of)
        return nodes_of[rows], nodes

    def path(self, x: int, y: int) -> list[int]:
        """The nodes of a shortest path, both ends included; none where there is no path."""
        ends = self._nodes.find(np.array([x, y], np.int64))
        if ends.min() < 0:
            return []
        self._refresh()
        before, (source, other) = np.empty(self._nodes.n, np.int64), ends.tolist()
        if not shortest(source, other, len(self._changes.extras) == 0, self._edges, self._index, self._scratch, before):
            return []
        path, here = [y], other
        while len(path) == 1 or here != source:
            here = int(before[here])
            path.append(int(self._nodes.codes[here]))
        return path[::-1]

    # Changes

    def add(self, source: Array | Sequence[int], target: Array | Sequence[int]) -> None:
        """More edges; those that are there already change nothing."""
        count_work(len(source))
        added = self._link(self._nodes.add(source), self._nodes.add(target))
        if self._stale or not len(added):
            return
        if self._too_many(len(added)):
            self._stale = True
            return
        self._open()
        rows, (extras, _, removed) = self._edges.rows, self._changes
        classify(added, self._edges, self._index, self._scratch)
        back = (removed[:, None] == rows[added, : TARGET + 1]).all(axis=2)
        rows[added[back.any(axis=0)], KIND] = BASE
        self._change(np.append(extras, added[rows[added, KIND] == EXTRA]), removed[~back.any(axis=1)])

    def remove(self, source: Array | Sequence[int], target: Array | Sequence[int]) -> None:
        """Fewer edges; those that are not there change nothing."""
        us, vs = self._nodes.find(source), self._nodes.find(target)
        many = self._too_many(len(us))
        self._open()
        for u, v, edge in zip(us.tolist(), vs.tolist(), self._numbers.find(_pair(us, vs)).tolist(), strict=True):
            kind = GONE if edge < 0 else remove(edge, self._edges)
            if kind == GONE or self._stale:
                continue
            extras, _, removed = self._changes
            if many:
                self._stale = True
            elif kind == EXTRA:
                self._change(extras[self._edges.rows[extras, KIND] != GONE], removed)
            elif kind == BASE and not still(u, v, self._edges, self._index, self._scratch):
                self._change(extras, np.append(removed, [[u, v]], axis=0))

    def _change(self, extras: Array, removed: Array) -> None:
        self._changes, self._linked = EdgeChanges(extras, self._changes.links, removed), False

    def _open(self) -> None:
        """From the first change on, what it costs is counted."""
        if not self._changed:
            self._limit = self.visited + PATIENCE * self._cost

    def _too_many(self, changes: int) -> bool:
        """Whether so many changes cost more than a new index."""
        return (len(self._changes.extras) + len(self._changes.removed) + changes) ** 2 > PATIENCE * self._cost

    # The index

    def _refresh(self) -> None:
        """A new index where changes have cost as much."""
        if self._stale or (self._changed and self.visited > self._limit):
            self._build()
        if not self._linked:
            extras, _, removed = self._changes
            links = np.zeros((2, len(extras), len(extras)), np.uint8)
            for sure in range(1 + (len(removed) > 0)):
                link(extras, links[sure], removed if sure else removed[:0], self._edges, self._index, self._scratch)
            self._changes, self._linked = EdgeChanges(extras, links, removed), True

    def _build(self) -> None:
        """The index of all edges there are."""
        us, vs = all_as_base(self._edges)
        if 2 * len(us) < self._numbers.n:  # most that have a number are gone
            self._numbers, self._edges = Numbering(), no_edges()
            self._link(us, vs)
        self._index, self._members = indexed(us, vs, self._nodes.n)
        self.builds += 1
        self._changes, self._linked, self._stale = NO_CHANGES, True, False
        small = len(self._index.labels) + self._index.ends.shape[1]
        self._cost = self._nodes.n + len(us) + 4 * small + 1000

    def _spread(self, x: Array | Sequence[int], way: int) -> tuple[Array, Array]:
        xs, parts = self._nodes.find(x), list[Array]()
        self._refresh()
        pairs, done = np.empty((2, max(1024, 2 * self._nodes.n)), np.int64), 0
        while done < len(xs):
            if self._changed:
                done, n = walk(xs, done, way, self._edges, self._scratch, pairs)
            else:
                done, n = search_all(xs, done, way, self._index, self._members, self._scratch, pairs)
            parts.append(pairs[:, :n].copy())
        rows, nodes = np.concatenate([np.empty((2, 0), np.int64), *parts], axis=1)
        return rows, self._nodes.codes[nodes]

    def _link(self, us: Array, vs: Array) -> Array:
        """Adds edges between nodes; the numbers of those that were not there."""
        numbers, n = self._numbers.add(_pair(us, vs)), self._nodes.n
        seen, queue, count = self._scratch
        self._edges = with_room(self._edges, self._numbers.n, n)
        self._index = self._index._replace(component=grown(self._index.component, n, -1))  # what is new is in none
        self._scratch = Scratch(grown(seen, n, 0), grown(queue, n, 0), count)
        added = np.empty(len(us), np.int64)
        return added[: add(numbers, us, vs, self._edges, added)]


def _pair(us: Array, vs: Array) -> Array:
    """The code of an edge; none of a node that is not there, whose number is -1, is one of an edge."""
    return us << 31 | vs
