"""Garbage collection (E 3.8): drops rows that can neither change any more nor meet anything that may still change.

The *frontier* says that nothing more ends at or before it. From it follows for each table since when its rows are
*unsettled* (they may still appear or vanish), and from the bounds of each operator how far back of that its partners lie.
A row that is kept keeps what it was made of, so that its trace can be made; a derived event that outlives its derivations
keeps its input events instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from augury.algebra.plan import Predicate
from augury.algebra.properties import event_lengths
from augury.algebra.timing import Lengths
from augury.core.arrays import Array, Mask
from augury.core.bounds import FAR
from augury.engine.trace import all_inputs_of
from augury.storage.table import END, RIGHT, Table

if TYPE_CHECKING:
    from augury.engine.circuit import Circuit
    from augury.engine.operators.base import Operator


def unsettled(circuit: Circuit, frontier: int) -> dict[int, int]:
    """For each table the least end of rows that may still appear or vanish.

    Where events that make facts may change before the frontier, so may the rows that conditions on these facts let pass.
    """
    since = {id(o.out.table): frontier + 1 for o in circuit.operators if o.holds_events}  # as a recursion sees them
    order = sorted(circuit.operators, key=lambda o: o.order)
    for operator in order:
        since[id(operator.out.table)] = operator.unsettled(since, frontier)
    if not circuit.facts_unsettled(since, frontier):
        return since
    for _ in range(2):  # facts may rest on one another, by way of events
        for operator in order:
            facts = circuit.facts_unsettled(since, frontier)
            asked = min((facts[name] for name in circuit.asked_by(operator) if name in facts), default=frontier + 1)
            for view in operator.inputs if asked <= frontier else ():
                since[id(view.table)] = min(since[id(view.table)], asked)
            since[id(operator.out.table)] = min(operator.unsettled(since, frontier), asked)
    return since


class Horizon:
    """Which rows may still vanish, or be needed: `since` is from when on the rows of a table are unsettled.

    Where nothing was said of how long inputs last, the longest one so far stands for all; `relied` is whether anything
    was bounded by it. Then no input may come that begins before what is kept.
    """

    def __init__(self, circuit: Circuit, frontier: int | None = None) -> None:
        self.circuit, self.relied = circuit, False
        self.since = {} if frontier is None else unsettled(circuit, frontier)
        self.readers: dict[int, list[tuple[Operator, int]]] = {}
        for operator in circuit.operators:
            for port, view in enumerate(operator.inputs):
                self.readers.setdefault(id(view.table), []).append((operator, port))

    @cached_property
    def lengths(self) -> Lengths | None:
        circuit = self.circuit
        if circuit.lengths is not None or not circuit.learns:
            return None  # it is known already, or all is kept
        return event_lengths(circuit.plan, circuit.duration(circuit.longest_seen))

    def learned(self, back: int, back_for: Callable[[Lengths | None], int] | None) -> int:
        """How far back an operator looks, for inputs no longer than the longest so far where no bound is given."""
        if back < FAR or back_for is None or self.lengths is None:
            return back
        reach = back_for(self.lengths)
        self.relied = self.relied or reach < FAR
        return reach

    def longest_of(self, types: Iterable[Predicate]) -> int | None:
        """How long events of some types last at most, in time points; None where nothing says so."""
        longest = self.circuit.longest_of(types)
        self.relied = self.relied or (longest is not None and self.circuit.lengths is None)
        return longest

    def wanted(self, table: Table) -> Array:
        """The rows that may still vanish, or that an operator may still need."""
        mask: Mask = table.data[END, : table.n] >= self.since[id(table)]
        for reader, port in self.readers.get(id(table), ()):
            wants = reader.wants(port, self)
            if wants is not None:
                mask |= wants
        return mask


def needed(
    circuit: Circuit, frontier: int | None, horizon: Horizon, waiting: Mapping[int, Array] = MappingProxyType({})
) -> dict[int, Array]:
    """For each table a mask of the rows to keep. Without a frontier only the dead are forgotten.

    `waiting` has rows of tables that stay whatever the operators say: answers that have not been emitted yet.
    """
    tables = {id(o.out.table): o.out.table for o in circuit.operators}
    keep = {key: table.stands() for key, table in tables.items()}
    if frontier is not None:
        for key, table in tables.items():
            keep[key] &= horizon.wanted(table)
    for key, rows in waiting.items():
        keep[key][rows] = True
    for operator in circuit.operators:
        operator.retain(keep, frontier, horizon.since)
    for operator in sorted(circuit.operators, key=lambda o: -o.order):
        operator.keep_parents(keep)
    return keep


def remembers(circuit: Circuit) -> list[str]:
    """The rules some of whose state is kept for ever: nothing says that what is held meets nothing more."""
    horizon = Horizon(circuit)
    return list(dict.fromkeys(operator.rule for operator in circuit.operators if operator.remembers(horizon)))


def compact(
    circuit: Circuit, frontier: int | None, waiting: Mapping[int, Array] = MappingProxyType({})
) -> dict[int, Array]:
    """Forgets what may be forgotten, but for rows that wait to be emitted; for each table where its rows went."""
    horizon = Horizon(circuit, frontier)
    keep = needed(circuit, frontier, horizon, waiting)
    if horizon.relied and frontier is not None:
        circuit.relied_on_lengths(frontier)
    _keep_inputs(circuit, keep)
    places: dict[int, Array] = {}
    for operator in circuit.operators:
        table = operator.out.table
        rows = np.flatnonzero(keep[id(table)])
        operator.keeping(rows)
        places[id(table)] = table.keep(rows)
    for operator in circuit.operators:
        operator.moved(places)
    _shrink_dictionary(circuit)
    circuit.rebuild()
    return places


def _keep_inputs(circuit: Circuit, keep: dict[int, Array]) -> None:
    """Derived events that stay while their derivations go: their inputs stay with them."""
    for events in circuit.derived.values():
        kept = keep[id(events.out.table)]
        supported = np.zeros(len(kept), bool)
        for links in events.supports:
            child = links.child
            rows = child.data[RIGHT, : child.n][keep[id(child)]]
            supported[rows] = True
        bare = np.flatnonzero(kept & ~supported)
        new = bare[[row not in events.kept_inputs for row in bare.tolist()]]
        events.kept_inputs.update(zip(new.tolist(), all_inputs_of(circuit, events, new), strict=True))
        for row, parts in events.kept_inputs.items():
            for table, position in parts if kept[row] else ():
                keep[id(table)][position] = True


def _shrink_dictionary(circuit: Circuit) -> None:
    """Forgets the values that no row has any more."""
    dictionary = circuit.tables.dictionary
    if dictionary.n < 2 * circuit.values_kept + 4096:
        return
    tables = [o.out.table for o in circuit.operators]
    used = [t.data[t.codes, : t.n].ravel() for t in tables if t.codes]
    smaller, moved = dictionary.without(used)
    for table in tables:
        if table.codes:
            codes = table.data[table.codes, : table.n]
            odd = (codes & 1).astype(bool)
            codes[odd] = moved[codes[odd] >> 1]
            table.data[table.codes, : table.n] = codes
    circuit.tables.dictionary = circuit.context.dictionary = smaller
    circuit.values_kept = smaller.n
