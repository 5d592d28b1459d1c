"""Session windows: `w: session(30min, click(U, _))`."""

from __future__ import annotations

import heapq
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np

from augury.core.arrays import Array, RowIds
from augury.core.bounds import FAR
from augury.engine.operators.base import NOT_THERE, Clocked, Operator
from augury.engine.saved import check_numbers, require
from augury.engine.saved.forms import is_time
from augury.planner.specs import SessionSpec
from augury.storage.table import END, NONE, START, Table

if TYPE_CHECKING:
    from augury.engine.horizon import Horizon
    from augury.engine.runtime import Runtime

Key = tuple[int, ...]


@dataclass(slots=True)
class OpenSession:
    """A group of occurrences: `rows` of the input, in pieces, and `stubs`, intervals that stand for forgotten ones."""

    key: Key
    start: int
    end: int  # the greatest, without the gap
    rows: list[Array]
    stubs: list[tuple[int, int, int]] = field(default_factory=list)  # start, end, and a row that has the key
    out: int = -1  # its row, once it is given
    stands: bool = True


class SessionWindows(Clocked):
    """The maximal groups of occurrences with one key, without a pause longer than the gap.

    A window is given once the clock has reached its end, so that an open session costs nothing while it grows. An occurrence
    that comes joins its session, or merges several; one that goes splits its own. No other session is touched. Sessions that
    nothing can change any more are forgotten; settled occurrences of others are replaced by stubs.
    """

    carries = ("stubs", "closed")
    linked = ()

    def __init__(self, runtime: Runtime, spec: SessionSpec) -> None:
        self.gap, self.most, self.type, self.key = spec.gap, spec.most, spec.type, spec.out.vars
        self.sessions: dict[Key, list[OpenSession]] = {}  # of each key, in order
        self.ahead: list[tuple[int, int, OpenSession]] = []  # by the end of the window
        self.numbers = count()
        self.stubs: list[tuple[int, int, int]] = []  # of all sessions, as the last compaction left them
        self.pending: tuple[list[tuple[int, int, int]], int | None] | None = None
        self.closed: int | None = None  # windows that end by then are settled, and forgotten here
        super().__init__(runtime, spec)
        runtime.clocked.append(self)

    def tick(self, now: int) -> None:
        if self.ahead and self.ahead[0][0] <= now:
            self.wake()

    @property
    def due(self) -> int | None:
        """When the next window ends."""
        while self.ahead and not self.ahead[0][2].stands:
            heapq.heappop(self.ahead)
        return self.ahead[0][0] if self.ahead else None

    def step(self) -> None:
        gone: list[OpenSession] = []
        lost = self.losses(0)
        if len(lost):
            gone += self._remove(lost)
        for session in self._groups(self.gains(0)):
            gone += self._insert(session)
        dead = [session.out for session in gone if session.out >= 0]
        if dead:
            self.out.table.kill(np.array(dead, np.int64))
        self._give()

    # Sessions come and go

    def _codes(self, rows: RowIds) -> list[Array]:
        view = self.inputs[0]
        canonical = self.runtime.tables.dictionary.canonical
        return [canonical(view.table.data[view.vars[name], rows]) for name in self.key]

    def _groups(self, rows: RowIds, stubs: Sequence[tuple[int, int, int]] = ()) -> Iterator[OpenSession]:
        """The sessions that some occurrences make by themselves."""
        data = self.inputs[0].table.data
        rows = np.concatenate([rows, np.array([stub[2] for stub in stubs], np.int64)]) if stubs else rows
        starts, ends = data[START, rows].copy(), data[END, rows].copy()
        number = np.full(len(rows), -1, np.int64)
        if stubs:
            first = len(rows) - len(stubs)
            starts[first:], ends[first:] = [stub[0] for stub in stubs], [stub[1] for stub in stubs]
            number[first:] = np.arange(len(stubs))
        codes = self._codes(rows)
        keyed = np.ones(len(rows), bool)
        for column in codes:
            keyed &= ~self.runtime.tables.dictionary.is_null(column)
        if not keyed.all():
            rows, starts, ends, number = rows[keyed], starts[keyed], ends[keyed], number[keyed]
            codes = [column[keyed] for column in codes]
        if not len(rows):
            return
        order = np.lexsort((starts, *codes[::-1]))
        rows, starts, ends, number = rows[order], starts[order], ends[order], number[order]
        codes = [column[order] for column in codes]
        begins, lasts, greatest = _chains(codes, starts, ends, self.gap)
        keys = zip(*(column[begins].tolist() for column in codes), strict=True) if codes else [()] * len(begins)
        bounds = zip(begins.tolist(), lasts.tolist(), strict=True)
        for key, start, end, (lo, hi) in zip(keys, starts[begins].tolist(), greatest.tolist(), bounds, strict=True):
            own, kept = rows[lo:hi], list[tuple[int, int, int]]()
            if stubs:
                some = number[lo:hi]
                own, kept = own[some < 0], [stubs[i] for i in some[some >= 0].tolist()]
            yield OpenSession(key, start, end, [own], kept)

    def _insert(self, new: OpenSession) -> list[OpenSession]:
        """Takes a session in; the ones that it is merged with are gone."""
        line = self.sessions.setdefault(new.key, [])
        lo = bisect_right(line, new.start, key=_start_of)
        if lo and line[lo - 1].end + self.gap >= new.start:
            lo -= 1
        hi = lo
        while hi < len(line) and line[hi].start <= new.end + self.gap:
            _absorb(new, line[hi])
            hi += 1
        gone = line[lo:hi]
        line[lo:hi] = [new]
        heapq.heappush(self.ahead, (new.end + self.gap, next(self.numbers), new))
        self.touched += 1 + len(gone)
        return gone

    def _remove(self, rows: RowIds) -> list[OpenSession]:
        """Occurrences go: their sessions are made anew of what is left of them."""
        table, touched = self.inputs[0].table, dict[int, OpenSession]()
        keys = zip(*(column.tolist() for column in self._codes(rows)), strict=True) if self.key else [()] * len(rows)
        for start, key in zip(table.data[START, rows].tolist(), keys, strict=True):
            line = self.sessions.get(key, [])
            at = bisect_right(line, start, key=_start_of) - 1
            if at >= 0 and start <= line[at].end:  # null is no key
                touched[id(line[at])] = line[at]
        for session in touched.values():
            line = self.sessions[session.key]
            at = bisect_right(line, session.start, key=_start_of) - 1
            members = np.concatenate([NONE, *session.rows])
            members = members[table.alive[members].astype(bool)]
            parts = list(self._groups(members, session.stubs))
            line[at : at + 1] = parts
            for part in parts:
                heapq.heappush(self.ahead, (part.end + self.gap, next(self.numbers), part))
            session.stands = False
            self.touched += len(members)
            if not line:
                del self.sessions[session.key]
        return list(touched.values())

    def _give(self) -> None:
        """Gives the windows that the clock has reached."""
        now, given = self.runtime.now, list[OpenSession]()
        while self.ahead and now is not None and self.ahead[0][0] <= now:
            session = heapq.heappop(self.ahead)[2]
            if session.stands and session.end + self.gap - session.start <= self.most:
                given.append(session)
        if not given:
            return
        table = self.out.table
        times = [(one.start, one.end + self.gap, -1, -1, 0, *one.key) for one in given]
        columns = np.array(times, np.int64).T
        fields = np.zeros((table.width, len(given)), np.int64)
        fields[:5] = columns[:5]
        for i, name in enumerate(self.key):
            fields[self.out.vars[name]] = columns[5 + i]
        first = table.n
        table.append(np.ascontiguousarray(fields))
        for i, session in enumerate(given):
            session.out = first + i

    # What it keeps

    def unsettled(self, since: Mapping[int, int], frontier: int) -> int:
        """An occurrence that may still come or go has begun before, as long as it may last."""
        first = since.get(id(self.inputs[0].table), frontier + 1)
        longest = self.runtime.longest_of([self.type])
        if longest is None:
            return -FAR
        if self.runtime.lengths is None:
            self.runtime.relied_on_lengths(frontier)
        return first - longest

    def wants(self, port: int, horizon: Horizon) -> Array | None:
        """One occurrence for each stub, which has its key; all, where nothing says how long occurrences last."""
        table, longest = self.inputs[0].table, horizon.longest_of([self.type])
        if longest is None:
            self.pending = None
            return np.ones(table.n, bool)
        since = horizon.since[id(table)]
        closed, stubs = since - longest - 1, list[tuple[int, int, int]]()
        for line in self.sessions.values():
            for session in line:
                if session.end + self.gap > closed:
                    stubs += self._settled(session, since)
        self.pending = (stubs, closed)
        mask = np.zeros(table.n, bool)
        mask[[stub[2] for stub in stubs]] = True
        return mask

    def _settled(self, session: OpenSession, since: int) -> Iterable[tuple[int, int, int]]:
        """The settled occurrences of a session, as one stub for each group that they make by themselves."""
        members = np.concatenate([NONE, *session.rows])
        members = members[self.inputs[0].table.data[END, members] < since]
        for part in self._groups(members, session.stubs):
            yield part.start, part.end, int(part.rows[0][0]) if len(part.rows[0]) else part.stubs[0][2]

    def moved(self, places: Mapping[int, Array]) -> None:
        super().moved(places)
        to = places[id(self.inputs[0].table)]
        stubs, closed = self.pending or (self.stubs, self.closed)
        self.stubs = [(start, end, int(to[row])) for start, end, row in stubs]
        self.closed, self.pending = closed if self.closed is None else max(self.closed, closed or -FAR), None

    def parents(self) -> list[tuple[int, Table]]:
        return []

    def rebuild(self) -> None:
        super().rebuild()
        self.sessions, self.ahead, now = {}, [], self.runtime.now
        table, codes = self.out.table, [self.out.vars[name] for name in self.key]
        known = {}
        for row in table.standing().tolist():
            known[tuple(table.data[[START, END, *codes], row].tolist())] = row
        for session in self._groups(self.inputs[0].table.standing(), self.stubs):
            end = session.end + self.gap
            if self.closed is not None and end <= self.closed:
                continue
            self.sessions.setdefault(session.key, []).append(session)
            session.out = known.get((session.start, end, *session.key), -1)
            if now is None or end > now:
                heapq.heappush(self.ahead, (end, next(self.numbers), session))

    # Snapshots

    def state(self, number: Mapping[int, int]) -> Any:
        return {"stubs": np.array(self.stubs, np.int64).reshape(-1, 3), "closed": self.closed}

    def fill(self, state: Any, operators: Sequence[Operator]) -> None:
        require(isinstance(state, dict) and state.keys() == {"stubs", "closed"}, "sessions that are none")
        stubs, closed = state["stubs"], state["closed"]
        sound = isinstance(stubs, np.ndarray) and stubs.dtype == np.int64 and stubs.ndim == 2 and stubs.shape[1] == 3
        require(sound and is_time(closed), "sessions that are none")
        check_numbers(stubs[:, 2], 0, self.inputs[0].table.n, NOT_THERE)
        require(bool((stubs[:, 0] <= stubs[:, 1]).all()), "a session that ends before it begins")
        self.stubs, self.closed = [tuple(stub) for stub in stubs.tolist()], closed

    def check(self) -> None:
        data = self.out.table.data[:, : self.out.table.n]
        require(bool((data[START] <= data[END]).all()), "a session that ends before it begins")


def _start_of(session: OpenSession) -> int:
    return session.start


def _absorb(session: OpenSession, other: OpenSession) -> None:
    """Merges another session into one; the longer list of pieces goes on."""
    other.stands = False
    session.start, session.end = min(session.start, other.start), max(session.end, other.end)
    pieces, fewer = (other.rows, session.rows) if len(other.rows) > len(session.rows) else (session.rows, other.rows)
    pieces += fewer
    session.rows = pieces
    session.stubs = [*session.stubs, *other.stubs]


def _chains(codes: Sequence[Array], starts: Array, ends: Array, gap: int) -> tuple[Array, Array, Array]:
    """Where sessions begin and end among occurrences in the order of key and start, and their greatest ends."""
    new = np.zeros(len(starts), bool)
    new[0] = True
    for column in codes:
        new[1:] |= column[1:] != column[:-1]
    group = np.cumsum(new) - 1
    # The greatest end so far of each key: ends as ranks, lifted by the key, so that one pass serves all keys.
    order = np.argsort(ends, kind="stable")
    rank = np.empty(len(ends), np.int64)
    rank[order] = np.arange(len(ends))
    latest = ends[order][np.maximum.accumulate(rank + group * len(ends)) % len(ends)]
    new[1:] |= starts[1:] > latest[:-1] + gap
    begins = np.flatnonzero(new)
    lasts = np.append(begins[1:], len(starts))
    return begins, lasts, latest[lasts - 1]
