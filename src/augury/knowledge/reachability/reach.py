"""The face of it all."""

from __future__ import annotations

import numpy as np

from augury.jit import Array, count_work
from augury.knowledge.reachability.answer import answer, answer_forest, settle, tie
from augury.knowledge.reachability.build import indexed, no_index, with_room_for
from augury.knowledge.reachability.cut import cut
from augury.knowledge.reachability.edges import EDGES, SLOTS, SOURCE, SPARE, TARGET, no_edges, put, take, with_room
from augury.knowledge.reachability.lists import spread, walk
from augury.knowledge.reachability.lose import lose
from augury.knowledge.reachability.notes import COMPONENT, STEPS, Scratch
from augury.knowledge.reachability.numbering import Nodes, grown
from augury.knowledge.reachability.paths import shortest, still

CROSSINGS = 16  # how many edges across a cut are worth it
EFFORT = 50_000  # how many steps at most are spent on finding them
LOSERS = 32  # one node in so many may be marked for an edge
PATIENCE = 1  # how many times the cost of an index changes may cost before there is a new one


class Reach:
    """Which nodes reach which, by one or more edges; nodes are any int64, edges a set.

    `a -> b -> c`: a reaches b and c, b reaches c, and none reaches itself.
    """

    def __init__(self, source: Array, target: Array) -> None:
        self._nodes, self._edges, self._index = Nodes(), no_edges(), no_index()
        self._scratch = Scratch(np.zeros((0, 3), np.int64), np.empty((0, 2), np.int64), np.zeros(2, np.int64))
        self._spares, self._ties, self._tied = np.empty(0, np.int64), np.empty((2, 0, 0), np.uint8), True
        self._doubts, self._blocks, self._limit = np.empty((0, 2), np.int64), 1, 0
        self._stale, self._lost, self._cost, self.builds = True, False, 0, 0
        self.add(source, target)

    @property
    def visited(self) -> int:
        """How many edges searches have followed so far."""
        return int(self._scratch.count[STEPS])

    @property
    def _changed(self) -> bool:
        """Whether there are changes that the index does not tell of."""
        return len(self._spares) > 0 or self._lost or self._blocks > 1

    # Questions

    def reaches(self, x: Array, y: Array) -> Array:
        """Whether each x reaches the y beside it."""
        xs, ys = self._nodes.find(x), self._nodes.find(y)
        out, done = np.zeros(len(xs), np.bool_), 0
        while done < len(xs):
            self._refresh()
            if len(self._index.spans) and not self._changed:
                answer_forest(xs[done:], ys[done:], out[done:], self._index)
                break
            done = answer(
                xs, ys, done, self._limit, out, self._spares, self._ties, self._doubts, self._lost, self._edges, self._index,
                self._scratch,
            )  # fmt: skip
        return out

    def targets(self, x: Array) -> tuple[Array, Array]:
        """Rows of x and the nodes they reach, each once."""
        return self._spread(x, 0)

    def sources(self, y: Array) -> tuple[Array, Array]:
        """Rows of y and the nodes that reach them, each once."""
        return self._spread(y, 1)

    def everything(self) -> tuple[Array, Array]:
        """All pairs of nodes of which the one reaches the other."""
        known = self._nodes.known.copy()
        rows, nodes = self.targets(known)
        return known[rows], nodes

    def path(self, x: int, y: int) -> list[int]:
        """The nodes of a shortest path, both ends included; none where there is no path."""
        ends = self._nodes.find(np.array([x, y], np.int64))
        if ends.min() < 0:
            return []
        self._refresh()
        before, (one, other) = np.empty(self._nodes.n, np.int64), ends.tolist()
        if not shortest(one, other, len(self._spares) == 0, self._edges, self._index, self._scratch, before):
            return []
        path, here = [y], other
        while len(path) == 1 or here != one:
            here = int(before[here])
            path.append(int(self._nodes.known[here]))
        return path[::-1]

    # Changes

    def add(self, source: Array, target: Array) -> None:
        """More edges; those that are there already change nothing."""
        count_work(len(source))
        us, vs = self._nodes.add(source), self._nodes.add(target)
        self._make_room(len(us))
        fresh = np.empty(len(us), np.int64)
        fresh = fresh[: put(us, vs, self._edges, fresh)]
        if self._stale or not len(fresh):
            return
        if self._too_many(len(fresh)):
            self._stale = True
            return
        self._open()
        self._spare(fresh[: settle(fresh, self._edges, self._index, self._scratch)])

    def remove(self, source: Array, target: Array) -> None:
        """Fewer edges; those that are not there change nothing."""
        us, vs = self._nodes.find(source), self._nodes.find(target)
        many = self._too_many(len(us))
        self._open()
        for u, v in zip(us.tolist(), vs.tolist(), strict=True):
            if u < 0 or v < 0:
                continue
            kind = take(u, v, self._edges)
            if kind < 0 or self._stale:
                continue
            if many:
                self._stale = True
            elif kind:
                rows = self._edges.rows[self._spares]
                self._spares, self._tied = self._spares[(rows[:, SOURCE] >= 0) & (rows[:, SPARE] > 0)], False
            elif not still(u, v, self._edges, self._index, self._scratch):
                self._part(u, v)

    def _open(self) -> None:
        """From the first change on, what it costs is counted."""
        if not self._changed:
            self._limit = self.visited + PATIENCE * self._cost

    def _part(self, u: int, v: int) -> None:
        """A base edge is gone, and no others lead the same way."""
        self._tied = False
        if not self._lost and u != v:
            crossing = np.empty(CROSSINGS, np.int64)
            n, self._blocks = cut(
                u, v, self._cost // 8, self._edges, self._index.place, self._blocks, crossing, self._scratch
            )  # fmt: skip
            if n >= 0:
                self._spare(crossing[:n])
                return
        self._lost = True
        if not self._mark(u, v):
            self._doubts = np.append(self._doubts, [[u, v]], axis=0)

    def _mark(self, u: int, v: int) -> bool:
        """Marks nodes such that each pair that was lost starts or ends with one of them.

        A lost pair (x, y) had a path x .. u v .. y. Given any node c, x does not reach c, or c does not reach y. It is
        enough to look at x where c is v, at y where c is u, and often both are few where c is of the same component.
        """
        found, few = np.empty(1 + self._nodes.n // LOSERS, np.int64), min(self._cost // 4, EFFORT)
        graph = (self._edges, self._index, self._scratch)
        if lose(u, v, 1, few, found, *graph) or lose(v, u, 0, few, found, *graph):
            return True
        first, last = self._members[0][self._index.place[u, COMPONENT] :][:2]
        c = int(self._members[1][first + (u + v) % (last - first)])
        if c in (u, v):
            return False
        return bool(
            (still(u, c, *graph) or lose(u, c, 1, few, found, *graph))
            and (still(c, v, *graph) or lose(v, c, 0, few, found, *graph))
        )

    def _spare(self, edges: Array) -> None:
        if len(edges):
            self._spares, self._tied = np.append(self._spares, edges), False

    def _too_many(self, changes: int) -> bool:
        """Whether so many changes cost more than a new index."""
        return (len(self._spares) + len(self._doubts) + changes) ** 2 > PATIENCE * self._cost

    # The index

    def _refresh(self) -> None:
        """A new index where changes have cost as much."""
        if self._stale or (self._changed and self.visited > self._limit):
            self._build()
        if not self._tied:
            self._ties = np.zeros((2, len(self._spares), len(self._spares)), np.uint8)
            for sure in range(1 + self._lost):
                tie(
                    self._spares, self._ties[sure], sure > 0, self._doubts, self._edges, self._index, self._scratch
                )  # fmt: skip
            self._tied = True

    def _build(self) -> None:
        """The index of all edges there are."""
        rows = self._edges.rows[: self._edges.tally[SLOTS]]
        rows[:, SPARE] = 0
        kept = rows[:, SOURCE] >= 0
        us, vs = rows[kept, SOURCE], rows[kept, TARGET]
        self._index, self._members = indexed(us, vs, self._nodes.n, len(self._index.place))
        self.builds += 1
        self._spares, self._tied, self._doubts, self._blocks = self._spares[:0], False, self._doubts[:0], 1
        self._stale, self._lost = False, False
        small = len(self._index.labels) + self._index.ends.shape[1]
        self._cost = self._nodes.n + int(self._edges.tally[EDGES]) + 4 * small + 1000

    def _spread(self, x: Array, way: int) -> tuple[Array, Array]:
        xs, parts = self._nodes.find(x), list[Array]()
        self._refresh()
        found, done = np.empty((2, max(1024, 2 * self._nodes.n)), np.int64), 0
        while done < len(xs):
            if self._changed:
                done, n = walk(xs, done, way, self._edges, self._scratch, found)
            else:
                done, n = spread(xs, done, way, self._index, self._members, self._scratch, found)
            parts.append(found[:, :n].copy())
        rows, nodes = np.concatenate([np.empty((2, 0), np.int64), *parts], axis=1)
        return rows, self._nodes.known[nodes]

    def _make_room(self, more: int) -> None:
        """Room for so many more edges, and for the nodes there are."""
        seen, queue, count = self._scratch
        n = self._nodes.n
        self._edges, self._index = with_room(self._edges, more, n), with_room_for(self._index, n)
        self._scratch = Scratch(grown(seen, n, 0), grown(queue, n, 0), count)
