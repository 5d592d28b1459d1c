"""`SEQ[recent]`: each later part pairs with the one most recent candidate (SEMANTICS 5)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from augury.algebra.selection import POLICIES
from augury.core.arrays import Array, Mask, RowIds
from augury.core.bounds import FAR
from augury.engine.event_order import row_ranks
from augury.engine.operators.choose import Candidate, Choose, ChoosingJoin, Key, group_of
from augury.planner.implied_bounds import JoinBounds
from augury.planner.specs import RecentSpec
from augury.storage.dictionary import NULL, OPEN
from augury.storage.frame import Frame, store
from augury.storage.ranks import code_ranks
from augury.storage.table import END, LEFT, NONE, RIGHT, START
from augury.storage.unique import is_in, unique

if TYPE_CHECKING:
    from augury.engine.runtime import Runtime

_LOOKS = (2, 16, 256, -1)  # how many candidates a part looks at, while it has found none


class Recent(ChoosingJoin):
    """The pairs (earlier, later) in which the earlier part is the most recent candidate of the later one.

    Each later part looks back until it finds one. A part is decided when it comes, when its choice is taken back, and when an earlier candidate comes late.
    """

    def __init__(self, runtime: Runtime, spec: RecentSpec) -> None:
        super().__init__(runtime, spec)
        bounds, reach = self.relation.bounds, self.relation.reach
        # An earlier part ends no later than the one that decides, a later one no earlier.
        self.earlier = JoinBounds(bounds, tuple(np.array([r[0], r[1], r[2], min(r[3], 0)]) for r in reach))  # type: ignore[arg-type]
        self.after = JoinBounds(bounds, tuple(np.array([r[0], max(r[1], 0), r[2], r[3]]) for r in reach))  # type: ignore[arg-type]

    def step(self) -> None:
        undecided_of: list[list[Array]] = [[], []]
        out = self.out.table
        for port in (0, 1):
            lost = self.losses(port)
            if len(lost):
                gone = self.links[port].kill(lost)
                self.touched += len(lost) + len(gone)
                # The other part of a pair that fell decides anew, where it is the later one and still stands. An earlier
                # one does not: its own choice may be forgotten by now, and would be taken for a new one.
                pairs = out.data[LEFT : RIGHT + 1, gone]
                undecided_of[1 - port].append(pairs[1 - port][self.later(pairs[0], pairs[1]) == 1 - port])
        before = (self.seen[0], self.seen[1])
        new = self.gains(0), self.gains(1)
        for side in (0, 1):
            if len(new[side]) and before[1 - side]:
                undecided_of[1 - side].append(self.later_than(new[side], side, before[1 - side]))
        for side in (0, 1):
            rows = unique(np.concatenate([new[side], *undecided_of[side]]))
            table = self.inputs[side].table
            rows = rows[(rows < self.seen[side]) & table.alive[rows].astype(bool)] if len(rows) else rows
            if len(rows):
                self.decide(rows, side, before[side])

    def later_than(self, rows: RowIds, side: int, limit: int) -> Array:
        """The parts of the other side that were decided before, and for which a new row is an earlier candidate."""
        portions, rows = [NONE], self.within_reach(rows, side, limit, self.after)
        for _, pairs in self.pairs(rows, side, limit, relation=self.after):
            portions.append(pairs[1 - side][self.later(pairs[0], pairs[1]) == 1 - side])
        return unique(np.concatenate(portions))

    def later(self, lefts: Array, rights: Array) -> Array:
        """Which side of each pair is the later one in the order of events; -1 where a part would pair with itself."""
        left, right = self.inputs[0].table, self.inputs[1].table
        difference = right.data[END, rights] - left.data[END, lefts]
        tie = difference == 0
        if tie.any():
            difference = np.where(tie, right.data[START, rights] - left.data[START, lefts], difference)
        side = np.where(difference > 0, 1, 0)
        for i in np.flatnonzero(difference == 0).tolist():
            earlier, other = self.occurrence(0, int(lefts[i])), self.occurrence(1, int(rights[i]))
            side[i] = -1 if earlier.parts and earlier.parts == other.parts else int(earlier.before(other))
        return side

    def decide(self, rows: RowIds, side: int, before: int) -> None:
        """Finds the choice of later parts, and shows it in place of what they chose before."""
        chosen: list[Frame] = []
        waiting = rows
        for most in _LOOKS:
            if not len(waiting):
                break
            frame, waiting = self.look(waiting, side, most)
            if len(frame):
                chosen.append(frame)
        links, out = self.links[side], self.out.table
        old: dict[tuple[int, int], list[int]] = {}
        if out.live:
            for row in rows[rows < before].tolist():
                for r in links.of(row):
                    if self._later_of(r) == side:
                        old.setdefault((int(out.data[LEFT, r]), int(out.data[RIGHT, r])), []).append(r)
        for frame in chosen:
            if old:
                pairs = list(zip(frame.left.tolist(), frame.right.tolist(), strict=True))
                kept = {pair for pair in pairs if pair in old}
                for pair in kept:
                    del old[pair]
                frame = frame.where(np.array([pair not in kept for pair in pairs]))
            store(frame, self.out)
        fallen = [r for rows_of in old.values() for r in rows_of]
        if fallen:
            out.kill(np.array(fallen, np.int64))

    def _later_of(self, row: int) -> int:
        data = self.out.table.data
        return int(self.later(data[LEFT, row : row + 1], data[RIGHT, row : row + 1])[0])

    def look(self, rows: RowIds, side: int, most: int) -> tuple[Frame, Array]:
        """Looks at the latest candidates by time and key; the choices, and the parts that have to look farther back."""
        portions = self.pairs(rows, side, self.inputs[1 - side].table.n, most, self.earlier)
        lefts, rights = np.concatenate([np.empty((2, 0), np.int64), *(pairs.copy() for _, pairs in portions)], axis=1)
        mine = (lefts, rights)[side]
        other = self.inputs[1 - side].table
        ends = other.data[END, (lefts, rights)[1 - side]]
        # How far back each part has looked: all of it where it found fewer than it asked for.
        counts = np.bincount(np.searchsorted(rows, mine), minlength=len(rows))
        bound = np.full(len(rows), -FAR)
        if most > 0:
            np.minimum.at(floor := np.full(len(rows), FAR), np.searchsorted(rows, mine), ends)
            bound = np.where(counts >= most, floor, bound)
        keep = self.later(lefts, rights) == side
        self.runtime.context.name_events = self.name_events
        frame = self.runtime.context.select(self.where, self.frame(lefts[keep], rights[keep]), self.rule)
        index = np.searchsorted(rows, frame.left if side == 0 else frame.right)
        end = other.data[END, frame.right if side == 0 else frame.left]
        best = np.full(len(rows), -FAR)
        np.maximum.at(best, index, end)
        # What has the same end as the last one seen may have company farther back.
        undecided = best <= bound if most > 0 else np.zeros(len(rows), bool)
        undecided &= bound > -FAR
        take = (end == best[index]) & ~undecided[index]
        return self.untied(frame.where(take), side), rows[undecided]

    def untied(self, frame: Frame, side: int) -> Frame:
        """Of several candidates that end together the one that the policy names; then the last in the order of events."""
        if len(frame) < 2:
            return frame
        mine, others = (frame.left, frame.right) if side == 0 else (frame.right, frame.left)
        if self.policy.ties != "by":
            starts = self.inputs[1 - side].table.data[START, others] * (1 if self.policy.ties == "longest" else -1)
            order = np.lexsort((starts, mine))
            new = np.r_[True, mine[order][1:] != mine[order][:-1]]
            best = starts[order][new][np.cumsum(new) - 1]
            frame = frame.where(_unsorted(order, starts[order] == best))
            mine, others = (frame.left, frame.right) if side == 0 else (frame.right, frame.left)
        order = np.lexsort((others, mine))
        m, o = mine[order], others[order]
        twice = m[1:][(m[1:] == m[:-1]) & (o[1:] != o[:-1])]
        if not len(twice):
            return frame
        tied = np.flatnonzero(is_in(mine, twice))
        m, o = mine[tied], others[tied]
        table = self.inputs[1 - side].table
        # Of equal ones the first row: the last of them in descending order.
        order = np.lexsort(
            (-o, row_ranks(self.runtime, table, o), table.data[START, o], self._by_ranks(1 - side, o), m)
        )
        last = np.r_[m[order][1:] != m[order][:-1], True]
        chosen = o[order][last][np.searchsorted(m[order][last], m)]
        keep = np.ones(len(mine), bool)
        keep[tied] = o == chosen
        return frame.where(keep)

    def _by_ranks(self, side: int, rows: RowIds) -> Array:
        """Ranks of the attribute that the policy names."""
        view = self.inputs[side]
        field = view.vars.get(self.policy.by or "") if self.policy.ties == "by" else None
        if field is None:
            return np.zeros(len(rows), np.int64)
        codes = view.table.data[field, rows]
        return code_ranks(self.runtime.tables.dictionary, np.where(codes == OPEN, NULL, codes))


def _unsorted(order: Array, mask: Mask) -> Array:
    result = np.empty(len(mask), bool)
    result[order] = mask
    return result


class ChooseRanked(Choose):
    """Of the candidates of each later part, the one that ranks highest; with `per`, one for each of its values."""

    def clear(self) -> None:
        super().clear()
        self.groups: dict[Key, dict[Key, list[Candidate]]] = {}
        self.chosen: dict[Key, Key] = {}

    def decide(self, gone: list[Candidate], come: list[Candidate]) -> tuple[set[int], set[int]]:
        taken: set[int] = set()
        left: set[int] = set()
        before = {group: self._rows(group) for group in map(group_of, (*gone, *come))}
        for candidate in gone:
            pairs = self.groups[group_of(candidate)]
            pairs[candidate.earlier,].remove(candidate)
            if not pairs[candidate.earlier,]:
                del pairs[candidate.earlier,]
        for candidate in come:
            self.groups.setdefault(group_of(candidate), {}).setdefault((candidate.earlier,), []).append(candidate)
        for group, rows in before.items():
            if self.groups[group]:
                self.chosen[group] = self._best(self.groups[group])
            else:
                del self.groups[group], self.chosen[group]
            now = self._rows(group)
            taken |= now - rows
            left |= rows - now
        return taken, left

    def _rows(self, group: Key) -> set[int]:
        chosen = self.chosen.get(group)
        if chosen is None:
            return set()
        return {c.row for c in self.groups.get(group, {}).get(chosen, ())}

    def _best(self, pairs: dict[Key, list[Candidate]]) -> Key:
        rank = POLICIES[self.policy.name].rank
        assert rank is not None
        ranks = {key: rank(key[0].start, key[0].end) for key in pairs}
        highest = max(ranks.values())
        level = [key for key in pairs if ranks[key] == highest]
        if len(level) > 1:
            ties = {key: self.tie(pairs[key], -key[0].start) for key in level}
            best = max(ties.values())
            level = [key for key in level if ties[key] == best]
        return level[0] if len(level) == 1 else max(level, key=lambda key: (key[0].start, key[0].order))
