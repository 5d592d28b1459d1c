"""Timelines of changing facts: for each fact, the statements and events about it in time order.

The *timeline* of a fact has an entry for each time of which something was said: how many events made the fact then, how many
ended it, what was said (asserted, up to when; retracted), and the *reach*: up to when the fact holds by this entry and by
those before it, back to the last retraction. It holds at `x` if the last entry up to `x` reaches beyond `x`. So a change
is entered where it belongs and looks no further than to where the reach is what it was.

Timelines lie one after the other in one array; one that outgrows its room moves to the end.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from augury.core.arrays import Array, Flags, RowIds, Times
from augury.core.errors import RunError
from augury.storage.grouping import by_group, expand_ranges
from augury.storage.kernels import entries as k
from augury.storage.table import capacity, grown

_FEW = 1024  # entries that are not worth packing


@dataclass(frozen=True)
class TimelineChange:
    """Changes of timelines in a step: the times over which facts changed."""

    rows: RowIds  # the facts, each once
    begin: Times  # from which entry on their timelines are others
    lo: Array  # since when it holds and did not before, or the reverse; `hi` where nothing changed
    hi: Array
    began: Array  # whether it holds without end now, and did not before
    ended: Array


@dataclass(frozen=True)
class Before:
    """How some facts were before a change. The entries before the first changed one are not touched by it."""

    rows: RowIds
    places: Array
    since: Times
    until: Times
    alive: Flags
    positions: Array  # where the entries below have been
    entries: Array
    used: int


class Timelines:
    """The timelines of the facts of one predicate, by row."""

    def __init__(self) -> None:
        self.places = np.full((3, 16), -1, np.int64)
        self.entries = np.empty((6, 16), np.int64)
        self.used = 0
        self._tail = np.empty((6, 16), np.int64)

    def __len__(self) -> int:
        """How many entries there are."""
        return int(self.places[k.COUNT][self.places[k.FIRST] >= 0].sum())

    def room(self, rows: int) -> None:
        """Makes room for so many facts, which have no timeline."""
        if rows > self.places.shape[1]:
            self.places = grown(self.places, capacity(rows), self.places.shape[1], -1)

    def has(self, rows: RowIds) -> Array:
        """Which facts have a timeline. There is room for those only that have been changed."""
        mask = np.zeros(len(rows), bool)
        inside = rows < self.places.shape[1]
        mask[inside] = self.places[k.FIRST, rows[inside]] >= 0
        return mask

    def apply(
        self,
        rows: RowIds,
        times: Times,
        acts: Array,
        untils: Array,
        since: Times,
        until: Times,
        alive: Flags,
        journal: list[Before],
    ) -> TimelineChange:
        """Takes in changes, in this order. `since` and `until` become bounds for the times at which facts hold.

        How the facts were goes into the journal before anything changes.
        """
        order = by_group(rows, times)
        rows, times, acts, untils = rows[order], times[order], acts[order], untils[order]
        begins = np.concatenate([[0], np.flatnonzero(rows[1:] != rows[:-1]) + 1, [len(rows)]])
        touched = rows[begins[:-1]]
        before, begin = self._before(touched, begins, times, since, until, alive)
        journal.append(before)
        groups = self._moves(touched, np.diff(begins))
        olds, spans = np.zeros((2, len(rows)), np.int64), np.empty((4, len(touched)), np.int64)
        wrong = k.apply_changes(
            groups, begins, times, acts, untils, self.places, self.entries, self._tail, since, until, alive, olds, spans
        )
        if wrong >= 0:
            raise RunError("a fact was ended that nothing had made")
        lasting = spans[2:].astype(bool)
        return TimelineChange(touched, begin, spans[0], spans[1], lasting[1] & ~lasting[0], lasting[0] & ~lasting[1])

    def _before(
        self, touched: Array, begins: Array, times: Times, since: Times, until: Times, alive: Flags
    ) -> tuple[Before, Times]:
        """How facts are now, and the time of the last entry of each that stays as it is but for its end."""
        kept = np.zeros(len(touched), np.int64)
        k.unchanged(touched, begins, times, self.places, self.entries, kept)
        places = self.places[:, touched]
        counts = np.where(places[k.FIRST] < 0, 0, places[k.COUNT] - kept)
        positions = expand_ranges(places[k.FIRST] + kept, counts)
        begin = np.where(kept > 0, self.entries[k.TIME, places[k.FIRST] + kept - 1], k.ALWAYS)
        entries = self.entries[:, positions]
        return Before(
            touched, places, since[touched], until[touched], alive[touched], positions, entries, self.used
        ), begin

    def undo(self, before: Before, since: Times, until: Times, alive: Flags) -> None:
        """Puts facts back as they were. It may be broken off and called again."""
        rows = before.rows
        self.entries[:, before.positions] = before.entries
        self.places[:, rows] = before.places
        since[rows], until[rows], alive[rows] = before.since, before.until, before.alive
        self.used = before.used

    def _moves(self, touched: Array, more: Array) -> Array:
        """The facts with the places to which those timelines move that have no room for so many entries more."""
        first, count, room = self.places[:, touched]
        new = first < 0
        count, room = np.where(new, 0, count), np.where(new, 0, room)
        self.places[:, touched[new]] = 0  # a timeline without entries
        need = count + more
        moved = need > room
        size = np.where(moved, np.where(count == 0, need, 2 * need), 0)
        ends = self.used + np.cumsum(size)
        total = int(ends[-1])
        if total > self.entries.shape[1]:
            self.entries = grown(self.entries, capacity(total), self.used)
        self.used = total
        if len(count) and int(count.max()) > self._tail.shape[1]:
            self._tail = np.empty((6, capacity(int(count.max()))), np.int64)
        return np.stack([touched, np.where(moved, ends - size, -1), size])

    def drop_history(self, n: int, floor: int, since: Times, until: Times, alive: Flags, unmade: bool = False) -> None:
        """Forgets how it came that facts hold at a time up to which nothing changes any more."""
        k.retell(self.places, n, self.entries, floor, unmade, since, until, alive)
        count = int(self.places[k.COUNT, :n][self.places[k.FIRST, :n] >= 0].sum())
        if self.used > 2 * count + _FEW:
            packed, places = np.empty((6, capacity(count)), np.int64), self.places.copy()
            used = k.repack(places, n, self.entries, packed)
            self.places, self.entries, self.used = places, packed, used

    def copy(self) -> Timelines:
        """The same, which may change apart."""
        new = Timelines()
        new.places, new.entries, new.used = self.places.copy(), self.entries[:, : max(self.used, 16)].copy(), self.used
        return new

    @property
    def bytes(self) -> int:
        return int(self.places.nbytes) + 48 * self.used

    def keep(self, rows: RowIds, places: Array) -> None:
        """Goes on with some of the facts, at other places."""
        kept = self.places[:, rows]
        self.places = np.full((3, capacity(int(places.max(initial=0)) + 1)), -1, np.int64)
        self.places[:, places] = kept

    def holding(self, rows: RowIds, times: Array, held: Array) -> Array:
        """Which facts hold at times; `held` is what is known of those without a timeline."""
        k.holding(rows, times, self.places, self.entries, held)
        return held

    # State

    def state(self, rows: RowIds) -> dict[str, Any]:
        """The timelines of some facts, one after the other."""
        first, count, _ = self.places[:, rows]
        positions = np.repeat(first - (np.cumsum(count) - count), count) + np.arange(int(count.sum()))
        return {"counts": count.copy(), "entries": self.entries[: k.REACH, positions]}

    def fill(self, rows: RowIds, state: dict[str, Any]) -> None:
        """Timelines for facts that have none, or others."""
        counts, entries = np.asarray(state["counts"], np.int64), np.asarray(state["entries"], np.int64)
        total = int(counts.sum()) if counts.ndim == 1 else -1
        sizes = counts.ndim == 1 and len(counts) == len(rows) and entries.shape == (k.REACH, total)
        if not sizes or (counts < 0).any() or (counts > total).any():  # so that their sum is what it seems to be
            raise ValueError("timelines of other sizes")
        ends = np.cumsum(counts)
        inside = np.ones(total, bool)
        inside[(ends - counts)[counts > 0]] = False
        times, said = entries[k.TIME], entries[k.SAID]
        if (times[1:] <= times[:-1])[inside[1:]].any() or (said < k.UNSAID).any() or (said > k.RETRACTED).any():
            raise ValueError("entries of a timeline in disorder")
        if (entries[k.MADE] < 0).any() or (entries[k.ENDED] < 0).any():
            raise ValueError("a fact that was made less than never")
        self.entries = grown(self.entries, max(self.entries.shape[1], capacity(self.used + total)), self.used)
        self.entries[: k.REACH, self.used : self.used + total] = entries
        self.places[:, rows] = np.stack([self.used + ends - counts, counts, counts])
        self.used += total
