"""Which partial matches of a run may go on: with an event that is still to come, or instead of one that may be revoked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from augury.core.arrays import Array, RowIds
from augury.engine.operators.runs import kernels as k
from augury.engine.operators.runs.kernels.moment_edges import neighbours, soonest
from augury.storage.table import END, LEFT, RIGHT, START

if TYPE_CHECKING:
    from augury.engine.operators.runs.partials import Partials
    from augury.planner.run_moves import Move


Matter = Callable[["Move", Array], Array]


@dataclass(frozen=True)
class GoingOn:
    """Partial matches that may go on (`open`), with those that restrict their successors (`kept`); the moments that
    open ones have come to, and the moments that say what may not follow these (`shutting`)."""

    open: Array
    kept: Array
    moments: Array
    shutting: Array


class OngoingMatches:
    """An event that is to come may go on with a partial match by a move if it may start early enough: no later than the end
    of what follows already, by NEXT any event of the run, by THEN the soonest of the part; and no later than the window
    and the conditions on times allow."""

    def __init__(self, partials: Partials) -> None:
        self.partials = partials

    def of(self, since: int | None, begins: int | None, matter: Matter | None = None) -> GoingOn:
        """The partial matches that may go on, where events to come end from `since` on and begin from `begins` on; None is no bound.

        `matter` says which partial matches are worth going on with by a move.
        """
        partials = self.partials
        data, n, moments = partials.out.table.data, partials.out.table.n, partials.moments.out.table
        alive = partials.out.table.alive[:n].astype(bool)
        closed = np.zeros(moments.n, bool)
        closed[partials.closed] = True  # what followed these is forgotten, and nothing more does
        unclosed = alive & ~closed[data[RIGHT, :n]]
        open_rows, shutting = np.zeros(n, bool), np.zeros(moments.n, bool)
        following = np.full(moments.n, -1, np.int64)
        partials.moments.index.extend()
        neighbours(moments.data, moments.alive, moments.n, partials.moments.index.after, following)
        for number, move in enumerate(partials.moves):
            rows = np.flatnonzero(unclosed & (data[k.PART, :n] == move.source))
            rows = rows[self._may_move(move, rows)]
            rows = rows if matter is None else rows[matter(move, rows)]
            ends, shuts = self._followed(number, move, rows, following)
            latest = np.minimum(ends, self._latest_start(number, rows))
            going = latest > data[END, rows]  # what follows starts after the end of the match
            if begins is not None:
                going &= latest >= begins
            elif since is not None and partials.longest < k.EVER:
                going &= data[START, rows] + partials.longest >= since
            open_rows[rows[going]] = True
            shuts = shuts[going]
            shutting[shuts[shuts >= 0]] = True
        mine, kept = np.zeros(moments.n, bool), open_rows.copy()
        mine[data[RIGHT, :n][open_rows]] = True
        if partials.choosy:  # what they have chosen
            children = np.flatnonzero(alive & (data[LEFT, :n] >= 0))
            kept[children[open_rows[data[LEFT, children]]]] = True
        return GoingOn(open_rows, kept, mine, shutting)

    def _may_move(self, move: Move, rows: RowIds) -> Array:
        """Whether partial matches were repeated often enough, and not too often, to go on by a move."""
        partials = self.partials
        part = partials.run.parts[move.source]
        times = partials.out.table.data[k.STATE + len(partials.run.parts) + move.source, rows]
        if move.source != move.target:
            enough: Array = times >= part.least
            return enough
        return np.ones(len(rows), bool) if part.most is None else times < part.most

    def _followed(self, number: int, move: Move, rows: RowIds, following: Array) -> tuple[Array, Array]:
        """The end of the current successor of partial matches by a move, beyond all times without one; and its moment."""
        partials, moments = self.partials, self.partials.moments.out.table
        data, n = partials.out.table.data, partials.out.table.n
        if partials.choosy & (1 << number):  # each has chosen for itself
            children = np.flatnonzero(partials.out.table.alive[:n].astype(bool) & (data[LEFT, :n] >= 0))
            children = children[data[k.PART, children] == move.target]
            ends = np.full(n, k.FOREVER, np.int64)
            np.minimum.at(ends, data[LEFT, children], data[END, children])
            return ends[rows], np.full(len(rows), -1, np.int64)
        if move.link == "THEN":
            following = np.full(moments.n, -1, np.int64)
            soonest(moments.data, moments.alive, moments.n, partials.edge_lists(), number, following)
        elif move.link == "SEQ":
            return np.full(len(rows), k.FOREVER, np.int64), np.full(len(rows), -1, np.int64)
        shuts = following[data[RIGHT, rows]]
        return np.where(shuts >= 0, moments.data[END, shuts], k.FOREVER), shuts

    def _latest_start(self, number: int, rows: RowIds) -> Array:
        """The latest start that the window and the conditions of a move allow for what follows partial matches."""
        partials, moments = self.partials, self.partials.moments.out.table.data
        data = partials.out.table.data
        latest = np.full(len(rows), k.FOREVER, np.int64)
        if partials.longest < k.EVER:
            latest = data[START, rows] + partials.longest
        for part, field, length in partials.start_bounds[number]:
            last = data[k.STATE + part, rows]
            latest = np.where(last >= 0, np.minimum(latest, moments[field, last] + length), latest)
        return latest
