"""What arrives in a step: events and revocations, checked against what is known, with what comes too late set aside."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from augury.algebra.plan import Plan, Predicate
from augury.core.arrays import Array
from augury.core.bounds import TIME_LIMIT
from augury.core.errors import DataError, RunError
from augury.core.model import Event, HistoryItem, OrderKey, Revocation
from augury.engine.circuit import Circuit
from augury.engine.events import Events
from augury.sources import Batch, History
from augury.sources.cells import MISSING
from augury.storage.table import END
from augury.storage.unique import difference, unique

InputRow = tuple[Events, int]  # an event that has come, by its row
Copy = tuple[object, ...]  # what tells the rows of one event apart: their type, and the arguments that are not its own


@dataclass(frozen=True)
class SessionFrontier:
    """How far a session is: what ends at or before `frontier` is late; see `Session` for the rest."""

    frontier: int | None = None
    greatest: int | None = None
    lateness: int | None = None
    revision: int | None = None
    advanced: int | None = None
    revisable: bool = True

    def fixed(self, greatest: int | None) -> int | None:
        """What ends at or before it can no longer be revoked, once `greatest` is the greatest end."""
        old = None if self.revision is None or greatest is None else greatest - self.revision - 1
        return max((t for t in (old, self.advanced) if t is not None), default=None)


@dataclass
class Arrived:
    """A step that is to be taken."""

    arrivals: Arrivals
    count: int = 0  # of events
    received: int = (
        0  # of events, revocations and statements of facts: as many as are accepted, repeated, late and rejected
    )
    accepted: int = 0
    repeated: int = 0  # known already, as they are
    repeats: dict[Predicate | None, int] = field(default_factory=dict)  # of a host: the same by type; None: revocations
    greatest: int | None = None
    frontier: int | None = None  # up to when nothing more ends, where that was said
    batches: dict[Predicate, Batch] = field(default_factory=dict)
    killed: list[InputRow] = field(default_factory=list)
    tombstones: list[str] = field(default_factory=list)
    withdrawn: list[str] = field(default_factory=list)
    late: list[HistoryItem] = field(default_factory=list)
    rejected: list[tuple[Event, str]] = field(default_factory=list)
    new_ids: list[str] = field(default_factory=list)
    forgotten: list[tuple[str, InputRow, dict[Copy, InputRow] | None]] = field(default_factory=list)
    unnamed: bool = False  # whether there were events without an id before

    def apply(self, circuit: Circuit) -> None:
        """Puts what has arrived into the tables and lets the circuit run."""
        self.arrivals.tombstones.update(self.tombstones)
        by_table: dict[int, tuple[Events, list[int]]] = {}
        for events, row in self.killed:
            by_table.setdefault(id(events), (events, []))[1].append(row)
        for events, rows in by_table.values():
            alive = [r for r in dict.fromkeys(rows) if events.out.table.alive[r]]
            events.out.table.kill(np.array(alive, np.int64)) if alive else None
        for name in self.withdrawn:
            known = self.arrivals.by_id.get(name)
            if known is not None:
                self.forgotten.append((name, known, self.arrivals.copies.get(name)))
            self.arrivals.forget(name)
        others = self.batches
        if not circuit.in_order.isdisjoint(others):
            # What a recursion does not rest on comes after it, all at once: it is looked at once, and not at every time.
            ordered = {type: batch for type, batch in others.items() if type in circuit.in_order}
            others = {type: batch for type, batch in others.items() if type not in circuit.in_order}
            for part in self._in_time(ordered, circuit):
                for type, batch in part.items():
                    self.arrivals.add(circuit, type, batch, self)
                circuit.run(circuit.last_in_order)
        for part in self._portions(others, circuit):
            for type, batch in part.items():
                self.arrivals.add(circuit, type, batch, self)
            circuit.run()
        circuit.run()

    def _in_time(self, batches: dict[Predicate, Batch], circuit: Circuit) -> Iterable[dict[Predicate, Batch]]:
        """What ends at each time."""
        _make_room(batches, circuit)
        return self._until(unique(np.concatenate([b.end for b in batches.values()])), batches, circuit)

    def _portions(self, batches: dict[Predicate, Batch], circuit: Circuit) -> Iterable[dict[Predicate, Batch]]:
        """All at once; large steps in portions that fit the caches."""
        total = sum(len(b.end) for b in batches.values())
        if total <= 2 * _PORTION:
            return [batches] if total else []
        _make_room(batches, circuit)
        some = np.sort(np.concatenate([b.end[::_APART] for b in batches.values()]))
        last = max(b.end.max() for b in batches.values())
        bounds = unique(np.append(some[_PORTION // _APART :: _PORTION // _APART], last))
        return self._until(bounds, batches, circuit)

    def _until(
        self, bounds: Array, batches: dict[Predicate, Batch], circuit: Circuit
    ) -> Iterable[dict[Predicate, Batch]]:
        """What ends by each bound, and after the one before it."""
        places: dict[Predicate, tuple[Array | None, Array]] = {}
        for type, batch in batches.items():
            ends, order = batch.end, None
            if (ends[1:] < ends[:-1]).any():
                order = np.argsort(ends, kind="stable")
                ends = ends[order]
            places[type] = (order, np.searchsorted(ends, bounds, side="right"))
        total = sum(len(b.end) for b in self.batches.values())
        done = 0 if batches is self.batches else total - sum(len(b.end) for b in batches.values())
        for i in range(len(bounds)):
            part = {}
            for type, (order, cuts) in places.items():
                lo, hi = (int(cuts[i - 1]) if i else 0), int(cuts[i])
                if hi > lo:
                    batch = batches[type]
                    part[type] = _slice(batch, lo, hi) if order is None else batch.some(order[lo:hi])
                    done += hi - lo
            circuit.tables.share = done / total
            yield part


_PORTION = 1 << 15  # rows that are taken in at a time: few enough to stay in the caches, many enough to be worth a call
_APART = 64  # of so many rows one is looked at to find where portions end


def _make_room(batches: dict[Predicate, Batch], circuit: Circuit) -> None:
    for type, batch in batches.items():
        if type in circuit.inputs:
            circuit.inputs[type].out.table.room(len(batch.end))


def _slice(batch: Batch, lo: int, hi: int) -> Batch:
    dead = [i - lo for i in batch.dead if lo <= i < hi]
    ids = None if batch.ids is None else batch.ids[lo:hi]
    traces = None if batch.traces is None else batch.traces[lo:hi]
    return Batch(batch.start[lo:hi], batch.end[lo:hi], [c[lo:hi] for c in batch.columns], ids, dead, traces)


class Arrivals:
    """What is known of the inputs: which id names which event, and what was revoked before it came."""

    def __init__(self, circuit: Circuit, plan: Plan, longest: int | None = None) -> None:
        """Events that last longer than `longest` are put aside."""
        self.circuit, self.plan, self.longest = circuit, plan, longest
        self.by_id: dict[str, InputRow] = {}
        # An event stands in several rows where it is in several slices of time, or comes with what facts say of it.
        self.copied = bool(plan.hidden or plan.aliases)
        self.copies: dict[str, dict[Copy, InputRow]] = {}
        self.tombstones: set[str] = set()
        self.unnamed = False  # whether some events have no id of their own
        self.looked_up: dict[int, int] = {}  # how far the ids of unnamed events are in `by_id`, by table

    def pushed(self, given: History | list[HistoryItem], bounds: SessionFrontier) -> Arrived:
        """What has been read of what was pushed."""
        return self.history(given, bounds) if isinstance(given, History) else self.items(given, bounds)

    def history(self, given: History, bounds: SessionFrontier) -> Arrived:
        """What has been said, by columns; where the order of arrival decides about single ids, item by item."""
        named = bool(given.revoked) or any(batch.ids is not None for batch in given.batches.values())
        late = bounds.lateness is not None or (bounds.revision is not None and bool(given.revoked))
        if given.ordered and named and late:
            return self.items(given.items(), bounds)
        if given.revoked and not bounds.revisable:
            raise _not_revisable()
        arrived = Arrived(self, unnamed=self.unnamed)
        behind = _behind(given, bounds, self.longest)
        arrived.received += len(given.revoked)
        for type, batch in given.batches.items():
            self._check_times(type[0], batch)
            arrived.count += len(batch)
            arrived.received += len(batch)
            late_ones = behind.get(type)
            if batch.ids is None and late_ones is not None and late_ones.any():
                rows = np.flatnonzero(late_ones)
                arrived.late += batch.some(rows).events(type[0])
                batch = batch.some(np.flatnonzero(~late_ones))
            arrived.batches[type] = batch
        if named:
            self._by_id(arrived, given, behind, bounds)
        arrived.batches = {type: batch for type, batch in arrived.batches.items() if len(batch)}
        arrived.accepted += sum(map(len, arrived.batches.values()))
        ends = [int(batch.end.max()) for batch in arrived.batches.values()]
        arrived.greatest = max(ends, default=None)
        return arrived

    def _by_id(
        self, arrived: Arrived, given: History, behind: Mapping[Predicate, Array], bounds: SessionFrontier
    ) -> None:
        """Leaves out the events whose id is known already, in the order of arrival, and takes in what is revoked."""
        here: dict[str, tuple[Predicate, int]] = {}
        drop: dict[Predicate, list[int]] = {}
        revoked = {item.id for _, item in given.revoked} | self.tombstones
        for type, at, id in _in_order(arrived.batches):
            batch = arrived.batches[type]
            known = self._find(id)
            if known is None and id not in here:
                if type in behind and behind[type][at]:
                    arrived.late.append(batch.event(type[0], at))
                    drop.setdefault(type, []).append(at)
                    continue
                here[id] = (type, at)
                if id in revoked:
                    batch.dead.append(at)
                continue
            drop.setdefault(type, []).append(at)
            event = batch.event(type[0], at)
            other = (
                known[0].event(known[1])
                if known is not None
                else arrived.batches[here[id][0]].event(here[id][0][0], here[id][1])
            )
            if other.content != event.content:
                arrived.rejected.append((event, f"the id {id} names another event already"))
            else:
                arrived.repeated += 1
        for type, late_ones in behind.items():  # those without an id, among others that have one
            batch = arrived.batches[type]
            if batch.ids is not None:
                lost = [i for i in np.flatnonzero(late_ones).tolist() if batch.ids[i] is None]
                arrived.late += [batch.event(type[0], i) for i in lost]
                drop.setdefault(type, []).extend(lost)
        tombstones: set[str] = set()
        fixed = bounds.fixed(bounds.greatest)
        for _, item in given.revoked:
            if item.id in here:
                self._bury(item.id, arrived, tombstones)
            else:
                self._revoke(item, arrived, {}, {}, {}, tombstones, fixed)
        arrived.tombstones = sorted(tombstones - self.tombstones)
        for type, rows in drop.items():
            batch = arrived.batches[type]
            arrived.batches[type] = batch.some(difference(np.arange(len(batch)), rows))

    @staticmethod
    def _check_times(name: str, batch: Batch) -> None:
        if not len(batch):
            return
        if batch.start is not batch.end and (batch.start > batch.end).any():
            raise DataError(f"{name}: an event starts after its end")
        if not (int(batch.start.min()) > -TIME_LIMIT and int(batch.end.max()) < TIME_LIMIT):
            raise DataError(f"{name}: a time too far from the origin", hint="times are below 2**60")

    def items(self, items: list[HistoryItem], bounds: SessionFrontier) -> Arrived:
        """Events and revocations one by one, in the order of arrival."""
        frontier, greatest, lateness = bounds.frontier, bounds.greatest, bounds.lateness
        arrived = Arrived(self, unnamed=self.unnamed)
        lists: dict[Predicate, list[Event]] = {}
        dead: dict[Predicate, list[int]] = {}
        here: dict[str, tuple[Predicate, int]] = {}
        tombstones: set[str] = set()
        for item in items:
            arrived.received += 1
            if isinstance(item, Revocation):
                if not bounds.revisable:
                    raise _not_revisable()
                self._revoke(item, arrived, lists, dead, here, tombstones, bounds.fixed(greatest))
                continue
            if not -TIME_LIMIT < item.start <= item.end < TIME_LIMIT:
                raise DataError(f"{item.type}: a time too far from the origin", hint="times are below 2**60")
            arrived.count += 1
            if item.id:
                known = self._event_of(item.id, lists, here)
                if known is not None:
                    if known.content != item.content:
                        arrived.rejected.append((item, f"the id {item.id} names another event already"))
                    else:
                        arrived.repeated += 1
                    continue
            late = frontier is not None and item.end <= frontier
            if late or (self.longest is not None and item.end - item.start > self.longest):
                arrived.late.append(item)
                continue
            type = (item.type, len(item.args))
            place = lists.setdefault(type, [])
            if item.id:
                here[item.id] = (type, len(place))
                if item.id in self.tombstones or item.id in tombstones:
                    dead.setdefault(type, []).append(len(place))
            place.append(item)
            arrived.accepted += 1
            greatest = item.end if greatest is None else max(greatest, item.end)
            if lateness is not None:
                bound = greatest - lateness - 1
                frontier = bound if frontier is None else max(frontier, bound)
        arrived.tombstones = sorted(tombstones)
        arrived.greatest = greatest
        for type, events in lists.items():
            columns: list[Any] = [[e.args[i] for e in events] for i in range(type[1])]
            ids = [e.id or None for e in events] if any(e.id for e in events) else None
            times = np.array([(e.start, e.end) for e in events], np.int64)
            arrived.batches[type] = Batch(times[:, 0].copy(), times[:, 1].copy(), columns, ids, dead.get(type, []))
        return arrived

    def _event_of(
        self, id: str, lists: dict[Predicate, list[Event]], here: dict[str, tuple[Predicate, int]]
    ) -> Event | None:
        if id in here:
            type, at = here[id]
            return lists[type][at]
        known = self._find(id)
        return known[0].event(known[1]) if known is not None else None

    def _find(self, id: str) -> InputRow | None:
        """The event of an id. Ids that are made from contents are computed once somebody asks for one."""
        found = self.by_id.get(id)
        if found is None and self.unnamed and _made(id):
            self._look_up()
            found = self.by_id.get(id)
        return found

    def _look_up(self) -> None:
        for events in self.circuit.inputs.values():
            table = events.out.table
            for row in range(self.looked_up.get(id(events), 0), table.n):
                if events.given_id(row) is None:
                    self.note(events.id(row), (events, row))
            self.looked_up[id(events)] = table.n

    def note(self, id: str, known: InputRow) -> None:
        """That an id names an event."""
        self.by_id.setdefault(id, known)
        if self.copied:
            events, row = known
            self.copies.setdefault(id, {})[self._copy((events.type, events.arity), events.args(row))] = known

    def forget(self, id: str) -> None:
        self.by_id.pop(id, None)
        self.copies.pop(id, None)

    def rows(self, id: str) -> Iterable[InputRow]:
        """All rows of the event that an id names."""
        return self.copies[id].values() if self.copied else (self.by_id[id],)

    def _own_type(self, type: Predicate) -> Predicate:
        """The type that events were given as: without what facts say of them, and without their slice."""
        return self.plan.aliases.get(type, (type[0], type[1] - self.plan.hidden))

    def _copy(self, type: Predicate, args: Sequence[object]) -> Copy:
        return (type[0], *args[self._own_type(type)[1] :])

    def _content(self, event: Event) -> OrderKey:
        """What an event is, whichever of its rows it was read from."""
        if not self.copied:
            return event.content
        name, arity = self._own_type((event.type, len(event.args)))
        return replace(event, type=name, args=event.args[:arity]).content

    def _revoke(
        self,
        item: Revocation,
        arrived: Arrived,
        lists: dict[Predicate, list[Event]],
        dead: dict[Predicate, list[int]],
        here: dict[str, tuple[Predicate, int]],
        tombstones: set[str],
        frontier: int | None,
    ) -> None:
        if item.id in here:
            type, at = here[item.id]
            end = lists[type][at].end
            if frontier is not None and end <= frontier:
                arrived.late.append(item)
                return
            dead.setdefault(type, []).append(at)
        else:
            known = self._find(item.id)
            if known is not None:
                events, row = known
                if frontier is not None and events.out.table.data[END, row] <= frontier:
                    arrived.late.append(item)
                    return
                arrived.killed += self.rows(item.id)
        self._bury(item.id, arrived, tombstones)

    def _bury(self, id: str, arrived: Arrived, tombstones: set[str]) -> None:
        """An id is revoked, if it has not been before."""
        if id in self.tombstones or id in tombstones:
            arrived.repeated += 1
        else:
            tombstones.add(id)
            arrived.accepted += 1

    def batches(
        self,
        batches: Mapping[Predicate, Batch],
        frontier: int | None,
        revoked: Iterable[str] = (),
        withdrawn: Mapping[Predicate, Iterable[str]] | None = None,
    ) -> Arrived:
        """What a host tells: events by type, ids that are revoked, and given events that are withdrawn.

        Given events are those that another stage derives. They are never late, and one that was withdrawn may come again.
        """
        arrived = Arrived(self, unnamed=self.unnamed)
        tombstones: set[str] = set()
        for id in revoked:
            arrived.received += 1
            self._revoke(Revocation(id), arrived, {}, {}, {}, tombstones, frontier)
        arrived.tombstones = sorted(tombstones)
        arrived.repeats[None] = arrived.repeated
        for type, batch in batches.items():
            before = arrived.repeated
            self._batch(type, batch, None if type in self.plan.given else frontier, arrived)
            arrived.repeats[type] = arrived.repeated - before
        for ids in (withdrawn or {}).values():
            for id in ids:
                known = self.by_id.get(id)
                if known is not None:
                    arrived.killed.append(known)
                    arrived.withdrawn.append(id)
        return arrived

    def _batch(self, type: Predicate, batch: Batch, frontier: int | None, arrived: Arrived) -> None:
        """New events of one type, without those that are late, too long or known already."""
        name, given = type[0], type in self.plan.given
        arrived.count += len(batch)
        arrived.received += len(batch)
        if not len(batch):
            return
        self._check_times(name, batch)
        late = np.zeros(len(batch), bool) if frontier is None else batch.end <= frontier
        if self.longest is not None and not given:
            late |= batch.end - batch.start > self.longest
        if late.any():
            arrived.late += batch.some(np.flatnonzero(late)).events(name)
            batch = batch.some(np.flatnonzero(~late))
        if batch.ids is not None:
            batch = self._new_ones(type, batch, arrived)
        arrived.accepted += len(batch.end)
        if len(batch.end):
            arrived.batches[type] = batch
            last = int(batch.end.max())
            arrived.greatest = last if arrived.greatest is None else max(arrived.greatest, last)

    def _new_ones(self, type: Predicate, batch: Batch, arrived: Arrived) -> Batch:
        """Without those whose id is known already."""
        keep: list[int] = []
        seen: dict[str, int] = {}
        copies: dict[str, set[Copy]] = {}  # the rows of events that are known that are in the batch
        revoked = set(arrived.tombstones)
        for i, id in enumerate(batch.ids):
            if id is None:
                keep.append(i)
                continue
            known = self._find(id)
            if known is not None or id in seen:
                event = batch.event(type[0], i)
                other = known[0].event(known[1]) if known is not None else batch.event(type[0], seen[id])
                if self._content(other) != self._content(event):
                    arrived.rejected.append((event, f"the id {id} names another event already"))
                    continue
                if not self.copied:
                    arrived.repeated += 1
                    continue
                copy, mine = self._copy(type, event.args), copies.setdefault(id, set())
                if copy in mine or copy in self.copies.get(id, ()):
                    arrived.repeated += 1
                    continue
                mine.add(copy)
            else:
                seen[id] = i
                if self.copied:
                    copies[id] = {self._copy(type, batch.event(type[0], i).args)}
            keep.append(i)
            if id in self.tombstones or id in revoked:
                batch.dead.append(i)
        return batch if len(keep) == len(batch.ids) else batch.some(np.array(keep, np.int64))

    # Into the circuit

    def add(self, circuit: Circuit, type: Predicate, batch: Batch, arrived: Arrived) -> None:
        events = circuit.input(type)
        first = events.add(batch.start, batch.end, batch.columns, batch.ids, batch.traces)
        if batch.ids is None:
            self.unnamed = True
        else:
            for i, id in enumerate(batch.ids):
                if id is not None:
                    if id not in self.by_id:
                        arrived.new_ids.append(id)
                    self.note(id, (events, first + i))
                else:
                    self.unnamed = True
        dead = [first + i for i in batch.dead]
        if self.tombstones:
            rows = range(first, first + len(batch.end))
            dead += [r for r in rows if events.given_id(r) is None and events.id(r) in self.tombstones]
        if dead:
            events.out.table.kill(np.array(sorted(set(dead)), np.int64))

    def moved(self, moved: Mapping[int, Array]) -> None:
        """After a compaction: the ids of events that are forgotten are forgotten, too."""

        def place(known: InputRow) -> InputRow | None:
            row = int(moved[id(known[0].out.table)][known[1]])
            return (known[0], row) if row >= 0 else None

        before = self.by_id
        self._keep(place)
        self.tombstones = self.tombstones - (before.keys() - self.by_id.keys())
        self.looked_up = {id(e): e.out.table.n for e in self.circuit.inputs.values() if id(e) in self.looked_up}

    def undo(self, arrived: Arrived) -> None:
        """Restores which ids are known. It may be broken off and called again."""
        self.unnamed = arrived.unnamed
        for name in arrived.new_ids:
            self.forget(name)
        for name, known, copies in arrived.forgotten:
            self.by_id[name] = known
            if copies is not None:
                self.copies[name] = copies
        self.tombstones.difference_update(arrived.tombstones)
        self.looked_up.clear()
        rows = {id(e): e.out.table.n for e in self.circuit.inputs.values()}
        self._keep(lambda known: known if known[1] < rows[id(known[0])] else None)

    def _keep(self, place: Callable[[InputRow], InputRow | None]) -> None:
        """Forgets the ids of rows that have no place any more."""
        by_id, copies = dict[str, InputRow](), dict[str, dict[Copy, InputRow]]()
        for name, known in self.by_id.items():
            if self.copied:
                left = {copy: at for copy, row in self.copies[name].items() if (at := place(row)) is not None}
                if left:
                    copies[name] = left
                found = next(iter(left.values()), None)
            else:
                found = place(known)
            if found is not None:
                by_id[name] = found
        self.by_id, self.copies = by_id, copies


def _made(id: str) -> bool:
    """Whether an id looks like one that is made from a content."""
    return len(id) == 16 and all(c in "0123456789abcdef" for c in id)


def _not_revisable() -> RunError:
    return RunError("the session is not revisable", hint="open it with revisable=True")


def _in_order(batches: Mapping[Predicate, Batch]) -> Iterable[tuple[Predicate, int, str]]:
    """The events that have ids, in the order of arrival: their types, their places there, and their ids."""
    named = {type: batch for type, batch in batches.items() if batch.ids is not None}
    if len(named) == 1 or any(batch.rows is None for batch in named.values()):
        for type, batch in named.items():
            yield from ((type, at, id) for at, id in enumerate(batch.ids) if id is not None)
        return
    types = list(named)
    rows = np.concatenate([batch.rows for batch in named.values()]) if named else np.empty(0, np.int64)
    sizes = [len(batch) for batch in named.values()]
    kind, place = np.repeat(np.arange(len(types)), sizes), np.concatenate([np.arange(n) for n in sizes] or [rows])
    for n in np.argsort(rows, kind="stable").tolist():
        type, at = types[kind[n]], int(place[n])
        id = named[type].ids[at]
        if id is not None:
            yield type, at, id


def _behind(given: History, bounds: SessionFrontier, longest: int | None) -> dict[Predicate, Array]:
    """Which events are too late or too long. In the order of arrival each one moves the frontier for those after it."""
    found: dict[Predicate, Array] = {}
    frontier = bounds.frontier
    for type, batch in given.batches.items():
        mask = np.zeros(len(batch), bool) if longest is None else batch.end - batch.start > longest
        found[type] = mask if frontier is None else mask | (batch.end <= frontier)
    if bounds.lateness is None or not given.ordered or not given.batches:
        return {type: mask for type, mask in found.items() if mask.any()}
    ends = np.concatenate([batch.end for batch in given.batches.values()])
    lost = np.concatenate(list(found.values()))
    order = np.argsort(np.concatenate([batch.rows for batch in given.batches.values()]), kind="stable")
    counted = np.where(lost, MISSING, ends)[order]
    before = np.maximum.accumulate(np.r_[MISSING if bounds.greatest is None else bounds.greatest, counted])[:-1]
    # What nothing came before is not late; the subtraction must not go below what an integer holds.
    late = (before != MISSING) & (counted <= np.where(before == MISSING, 0, before) - bounds.lateness - 1)
    lost[order] |= late
    cuts = np.cumsum([len(batch) for batch in given.batches.values()])[:-1]
    return {type: mask for type, mask in zip(given.batches, np.split(lost, cuts), strict=True) if mask.any()}
