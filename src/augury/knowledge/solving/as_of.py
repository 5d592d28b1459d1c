"""The facts of a relation by some of their columns and by time: which of a key hold at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from augury.core.arrays import Array, RowIds, Times
from augury.knowledge.fact_table import ALWAYS
from augury.storage.grouping import by_group
from augury.storage.kernels import intervals as k
from augury.storage.kernels.entries import COUNT
from augury.storage.segments import Segments
from augury.storage.table import NONE, grown
from augury.storage.unique import unique_first

if TYPE_CHECKING:
    from augury.knowledge.solving.relation import FactRelation


class AsOfIndex:
    """A question at a time looks at O(log n) intervals for each answer, however often the facts of its key have changed.

    Each entry of a timeline by which its fact holds is an interval. It takes in changes when it is next asked: of a fact
    that has changed, the intervals from the first change on. Intervals that come in order are appended.
    """

    def __init__(self, relation: FactRelation, fields: tuple[int, ...]) -> None:
        self.relation, self.fields = relation, fields
        self.intervals = Segments(len(fields), 3, 2, relation.words)
        self.tree = np.zeros(16, np.int64)  # greatest ends, beside the intervals
        self.group = np.empty(16, np.int64)  # of each fact
        self.last = np.empty(16, np.int64)  # the last beginning of an interval of each fact
        self.seen = self.touched = 0
        self.changed: list[tuple[RowIds, Times]] = []  # facts that have changed, and from when on

    @property
    def bytes(self) -> int:
        return self.intervals.bytes + int(self.group.nbytes + self.last.nbytes + self.tree.nbytes)

    def find(self, asked: Sequence[Array], times: Times) -> tuple[Array, Array]:
        """Pairs of a question and a fact that has what it asks for, and holds then; in the order of the questions."""
        self._extend()
        which, groups = self.intervals.find(asked, len(times))
        times = times[which]
        state, parts, size = np.array([0, -1, 0, 0], np.int64), list[Array](), len(groups) + 64
        done = not len(groups)
        while not done:
            pairs = np.empty((2, size), np.int64)
            done = k.containing(groups, times, self.intervals.spans, self.intervals.pool, self.tree, state, pairs)
            parts.append(pairs[:, : state[k.FOUND]])
            size *= 2
        self.touched += int(state[k.STEPS])
        if not parts:
            return NONE, NONE
        questions, rows = parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)
        return which[questions], rows

    def _extend(self) -> None:
        """Takes in the facts that there are more, and those that have changed."""
        n = self.relation.rows.n
        if self.seen == n and not self.changed:
            return
        new = np.arange(self.seen, n)
        rows, begin = new, np.full(len(new), ALWAYS)
        if self.changed:
            changed, times = (np.concatenate(part) for part in zip(*self.changed, strict=True))
            order = by_group(changed, times)
            changed, times = changed[order], times[order]
            first = unique_first(changed)[1]
            first = first[changed[first] < self.seen]
            changed, times = changed[first], times[first]
            begun = np.stack([times, changed])
            self.touched += k.forget_intervals(
                begun, self.last, self.group, self.intervals.spans, self.intervals.pool, self.tree
            )
            rows, begin = np.concatenate([changed, new]), np.concatenate([times, begin])
        if len(new):
            self._number(new)
        self.changed, self.seen = [], n
        self._enter(*self._intervals(rows, begin))

    def _number(self, new: RowIds) -> None:
        """Gives new facts the groups of their keys."""
        rows = self.relation.rows
        if len(self.group) < rows.n:
            self.group, self.last = (grown(a, len(rows.alive), self.seen) for a in (self.group, self.last))
        self.group[new] = self.intervals.number([rows.data[i, new] for i in self.fields], len(new))
        self.last[new] = ALWAYS

    def _intervals(self, rows: RowIds, begin: Times) -> tuple[RowIds, Times, Times]:
        """When facts hold, from a time on."""
        relation, lines = self.relation, self.relation.timelines
        assert relation.since is not None and relation.until is not None
        lo = np.empty(len(rows), np.int64)
        k.later_entries(rows, begin, lines.places, lines.entries, lo)
        timed = rows[lo >= 0]
        plain = rows[(lo < 0) & relation.rows.alive[rows].astype(bool)]
        lo = lo[lo >= 0]
        spans = np.empty((3, int((lines.places[COUNT, timed] - lo).sum())), np.int64)
        spans = spans[:, : k.intervals_of(timed, lo, lines.places, lines.entries, spans)]
        return (
            np.concatenate([timed[spans[0]], plain]),
            np.concatenate([spans[1], relation.since[plain]]),
            np.concatenate([spans[2], relation.until[plain]]),
        )

    def _enter(self, rows: RowIds, since: Times, until: Times) -> None:
        if not len(rows):
            return
        groups, lines, fresh = self.group[rows], self.intervals, np.ones(len(rows), bool)
        new = np.stack([since, rows, until])
        k.renew_intervals(groups, new, lines.spans, lines.pool, self.tree, self.last, fresh)
        entering = lines.grouped(groups[fresh], new[:, fresh])
        moved, lo, outgrown = lines.enter(entering)
        if len(self.tree) < lines.pool.shape[1]:
            self.tree = grown(self.tree, lines.pool.shape[1], len(self.tree))
        k.retree_segments(entering.groups, lo, outgrown, lines.spans, lines.pool, self.tree)
        self.touched += len(rows) + moved
