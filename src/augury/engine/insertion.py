"""Puts admitted inputs into the tables of a circuit and runs it, large steps in portions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

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
Batches = Mapping[Predicate, Batch]


def insert(admission: Admission, circuit: Circuit, ids: InputIds) -> None:
    """Revokes rows, adds events, changes facts, and lets the circuit follow."""
    ids.bury(admission.tombstones)
    for events, rows in alive_rows(admission.revoked_rows):
        events.out.table.kill(rows)
    ids.withdraw(admission.withdrawn)
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
    """The events of each end."""
    _make_room(batches, circuit)
    return _until(unique(np.concatenate([b.end for b in batches.values()])), batches, circuit, 0, total)


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


def _until(bounds: Array, batches: Batches, circuit: Circuit, done: int, total: int) -> Iterator[Batches]:
    """The events that end by each bound, and after the one before it; `done` of all events are inserted already."""
    cuts: dict[Predicate, tuple[Array | None, Array]] = {}
    for type, batch in batches.items():
        ends, order = batch.end, None
        if (ends[1:] < ends[:-1]).any():
            order = np.argsort(ends, kind="stable")
            ends = ends[order]
        cuts[type] = (order, np.searchsorted(ends, bounds, side="right"))
    for i in range(len(bounds)):
        part = {}
        for type, (order, places) in cuts.items():
            lo, hi = (int(places[i - 1]) if i else 0), int(places[i])
            if hi > lo:
                batch = batches[type]
                part[type] = _slice(batch, lo, hi) if order is None else batch.some(order[lo:hi])
                done += hi - lo
        circuit.tables.share = done / total
        yield part


def _make_room(batches: Batches, circuit: Circuit) -> None:
    for type, batch in batches.items():
        if type in circuit.inputs:
            circuit.inputs[type].out.table.room(len(batch))


def _slice(batch: Batch, lo: int, hi: int) -> Batch:
    dead = [i - lo for i in batch.dead if lo <= i < hi]
    ids = None if batch.ids is None else batch.ids[lo:hi]
    traces = None if batch.traces is None else batch.traces[lo:hi]
    return Batch(batch.start[lo:hi], batch.end[lo:hi], [c[lo:hi] for c in batch.columns], ids, dead, traces)
