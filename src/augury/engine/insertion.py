"""Puts admitted inputs into the tables of a circuit and runs it, large steps in portions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from math import inf

import numpy as np

from augury.algebra.plan import Predicate
from augury.core.arrays import Array
from augury.engine.admission import Admission
from augury.engine.circuit import Circuit
from augury.engine.input_ids import InputIds, alive_rows
from augury.sources import Batch
from augury.storage.unique import unique

PORTION = 1 << 15  # rows that are inserted at a time: few enough to stay in the caches, many enough to be worth a call
APART = 64  # one row in so many is looked at to find where portions end
_MOST_ENDS, _MOST_PATIENT = 1024, 64  # ends that a recursion takes in at once; parts after which it tries more again
_DEARER = 1.5  # how much more than at best a recursion may look at for each row when it takes in more ends
Batches = Mapping[Predicate, Batch]


def insert(admission: Admission, circuit: Circuit, ids: InputIds) -> None:
    """Revokes rows, adds events, changes facts, and lets the circuit follow."""
    ids.bury(admission.tombstones)
    for events, rows in alive_rows(admission.revoked_rows):
        events.out.table.kill(rows)
    ids.withdraw(admission.withdrawn)
    ids.keep_versions(admission.versions, admission.version_columns)
    if admission.statements:
        circuit.learned(circuit.knowledge.changes.apply(admission.statements))
        for learn in circuit.learning.values():
            learn.said(admission.statements)
    total = sum(map(len, admission.batches.values()))
    others: Batches = admission.batches
    if not circuit.in_order.isdisjoint(others):
        # A recursion takes in its events time by time; all that it does not rest on comes after it, at once.
        ordered = {type: batch for type, batch in others.items() if type in circuit.in_order}
        others = {type: batch for type, batch in others.items() if type not in circuit.in_order}
        for part in _time_by_time(ordered, circuit, total):
            _add(part, circuit, ids)
            circuit.run(circuit.last_in_order)
    for part in _portions(others, circuit, total):
        _add(part, circuit, ids)
        circuit.run()
    circuit.run()


def _add(batches: Batches, circuit: Circuit, ids: InputIds) -> None:
    for type, batch in batches.items():
        events = circuit.input(type)
        first = events.add(batch.start, batch.end, batch.columns, batch.ids, batch.traces)
        ids.add(events, first, batch.ids)
        dead = {first + i for i in batch.dead}
        dead.update(ids.revoked_rows(events, range(first, first + len(batch))))
        if dead:
            events.out.table.kill(np.array(sorted(dead), np.int64))


def _time_by_time(batches: Batches, circuit: Circuit, total: int) -> Iterator[Batches]:
    """The events of each end; or of several ends at once, while that makes no row that has to be taken back.

    Facts that a recursion makes and asks for change end by end.
    """
    _make_room(batches, circuit)
    bounds = unique(np.concatenate([b.end for b in batches.values()]))
    makes_facts = any(learn.order <= circuit.last_in_order for learn in circuit.learning.values())
    return _until(bounds, batches, circuit, 0, total, None if makes_facts else Pace(circuit))


class Pace:
    """How many ends a recursion takes in at once.

    Any number gives the same answers. Events that come together may make rows before what precludes them is there, which
    are taken back then. So the number doubles while next to no row dies and a row costs no more than it did, is halved
    otherwise, and then grows more slowly.
    """

    def __init__(self, circuit: Circuit) -> None:
        self._operators = [o for o in circuit.operators if o.order <= circuit.last_in_order and not o.is_input]
        self._size = self._patience = 1
        self._calm = 0  # how many times in a row next to nothing was taken back
        self._least = inf  # rows that were looked at for each new one, where these were fewest
        self._rows, self._dead, self._touched = self._count()

    def _count(self) -> tuple[int, int, int]:
        tables = [o.out.table for o in self._operators]
        return sum(t.n for t in tables), sum(t.dead for t in tables), sum(o.touched for o in self._operators)

    def next(self) -> int:
        before, (self._rows, self._dead, self._touched) = (self._rows, self._dead, self._touched), self._count()
        made, died = self._rows - before[0], self._dead - before[1]
        cost = (self._touched - before[2]) / max(made, 1)
        if 4 * died > made or cost > _DEARER * self._least:
            self._size, self._calm = max(1, self._size // 2), 0
            self._patience = min(2 * self._patience, _MOST_PATIENT)
            return self._size
        if made:
            self._least = min(self._least, cost)
        self._calm += 1
        if self._calm >= self._patience:
            self._size, self._calm = min(2 * self._size, _MOST_ENDS), 0
        return self._size


def _portions(batches: Batches, circuit: Circuit, total: int) -> Iterable[Batches]:
    """All events at once; those of large steps in portions that fit the caches."""
    count = sum(map(len, batches.values()))
    if count <= 2 * PORTION:
        return [batches] if count else []
    _make_room(batches, circuit)
    some = np.sort(np.concatenate([b.end[::APART] for b in batches.values()]))
    last = max(b.end.max() for b in batches.values())
    bounds = unique(np.append(some[PORTION // APART :: PORTION // APART], last))
    return _until(bounds, batches, circuit, total - count, total)


def _until(
    bounds: Array, batches: Batches, circuit: Circuit, done: int, total: int, pace: Pace | None = None
) -> Iterator[Batches]:
    """The events that end by each bound, or every so many, and after it; `done` of all events are inserted already."""
    cuts: dict[Predicate, tuple[Array | None, Array]] = {}
    for type, batch in batches.items():
        ends, order = batch.end, None
        if (ends[1:] < ends[:-1]).any():
            order = np.argsort(ends, kind="stable")
            ends = ends[order]
        cuts[type] = (order, np.searchsorted(ends, bounds, side="right"))
    last = -1
    while last < len(bounds) - 1:
        part, before = {}, last
        last = min(last + (1 if pace is None else pace.next()), len(bounds) - 1)
        for type, (order, places) in cuts.items():
            lo, hi = (int(places[before]) if before >= 0 else 0), int(places[last])
            if hi > lo:
                batch = batches[type]
                part[type] = batch.part(lo, hi) if order is None else batch.some(order[lo:hi])
                done += hi - lo
        circuit.tables.share = done / total
        yield part


def _make_room(batches: Batches, circuit: Circuit) -> None:
    for type, batch in batches.items():
        if type in circuit.inputs:
            circuit.inputs[type].out.table.room(len(batch))
