"""What a circuit may forget (E 3.8): rows that can neither change any more nor meet anything that may still change.

The *frontier* says that nothing more ends at or before it. From it follows for each table since when its rows are
*unsettled* (they may still appear or vanish), and from the bounds of each operator how far back of that its partners lie.
A row that is kept keeps what it was made of, so that its trace can be told; a derived event that outlives its derivations
keeps its input events instead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from augury.engine.events import Events
from augury.engine.kernels import Array
from augury.engine.operators.absence import Absence
from augury.engine.operators.choose import Choose
from augury.engine.operators.chronological import Chronological
from augury.engine.operators.collect import Collect
from augury.engine.operators.derive import Derive, Derived
from augury.engine.operators.join import Join
from augury.engine.table import END, LEFT, RIGHT, Table
from augury.engine.trace import inputs_of
from augury.optimiser.implied_bounds import FAR

if TYPE_CHECKING:
    from augury.engine.circuit import Circuit
    from augury.engine.operators.base import Operator


def unsettled(circuit: Circuit, frontier: int) -> dict[int, int]:
    """For each table the least end of rows that may still appear or vanish."""
    since: dict[int, int] = {}
    for operator in sorted(circuit.operators, key=lambda o: o.order):
        table = operator.out.table
        if isinstance(operator, Events | Derived) or not operator.inputs:
            since[id(table)] = frontier + 1
    for operator in sorted(circuit.operators, key=lambda o: o.order):
        table = operator.out.table
        if id(table) in since:
            continue
        least = min(since.get(id(view.table), frontier + 1) for view in operator.inputs)
        if isinstance(operator, Absence):
            rows = operator.inputs[0]
            data, n = rows.table.data, rows.table.n
            waiting = data[rows.labels[operator.window][1], :n] >= since[id(operator.inputs[1].table)]
            waiting &= rows.table.alive[:n].astype(bool)
            if waiting.any():
                least = min(least, int(data[END, :n][waiting].min()))
        since[id(table)] = least
    return since


def needed(circuit: Circuit, frontier: int | None) -> dict[int, Array]:
    """For each table a mask of the rows to keep. Without a frontier only the dead are forgotten."""
    tables = {id(o.out.table): o.out.table for o in circuit.operators}
    keep = {key: table.alive[: table.n].astype(bool) for key, table in tables.items()}
    if frontier is not None:
        since = unsettled(circuit, frontier)
        for key, table in tables.items():
            keep[key] &= _wanted(circuit, table, since)
    for operator in circuit.operators:
        if isinstance(operator, Events):  # a revoked event keeps its id and its number among equals
            table = operator.out.table
            keep[id(table)] |= True if frontier is None else table.data[END, : table.n] > frontier
        if isinstance(operator, Derive):  # a derivation that is certain is not looked at again
            table, events = operator.out.table, operator.events.out.table
            kept = table.alive[: table.n].astype(bool)
            if frontier is not None:
                kept &= events.data[END, table.data[RIGHT, : table.n]] > frontier
            keep[id(table)] = kept
            keep[id(events)][table.data[RIGHT, : table.n][kept]] = True
        if isinstance(operator, Chronological):  # what is used up stays so while it could be taken again
            table, (left, right) = operator.out.table, operator.inputs[:2]
            for field, view in ((LEFT, left), (RIGHT, right)):
                rows = table.data[field, : table.n]
                keep[id(table)] |= table.alive[: table.n].astype(bool) & (rows >= 0) & keep[id(view.table)][rows]
    for operator in sorted(circuit.operators, key=lambda o: -o.order):
        for field, parent in _parents(operator):
            rows = operator.out.table.data[field, : operator.out.table.n][keep[id(operator.out.table)]]
            keep[id(parent)][rows[rows >= 0]] = True
        if isinstance(operator, Collect):
            kept = keep[id(operator.out.table)]
            members = [m for row, found in operator.members.items() if row < len(kept) and kept[row] for m in found]
            keep[id(operator.inputs[1].table)][members] = True
    return keep


def _parents(operator: Operator) -> list[tuple[int, Table]]:
    found = [(LEFT, operator.inputs[0].table)] if operator.inputs else []
    if len(operator.inputs) > 1 and not isinstance(operator, Absence | Collect):
        found.append((RIGHT, operator.inputs[1].table))
    return found


def _wanted(circuit: Circuit, table: Table, since: dict[int, int]) -> Array:
    """The rows that may still vanish, or that an operator may still need."""
    ends = table.data[END, : table.n]
    mask = ends >= since[id(table)]
    for operator, port in table.readers:
        match operator:
            case Join() if port < 2:
                other = operator.inputs[1 - port].table
                back = int(operator.relation.reach[1 - port][1])
                mask |= True if back <= -FAR else ends >= since[id(other)] + back
            case Absence() | Collect():
                mask |= _watched(operator, port, table, since)
            case Choose():
                if operator.policy.name == "chronological":
                    for view in operator.join.inputs:
                        own = view.table
                        wanted = _wanted(circuit, own, since)
                        least = int(own.data[END, : own.n][wanted].min()) if wanted.any() else FAR
                        mask |= ends >= least
    return mask


def _watched(operator: Absence | Collect, port: int, table: Table, since: dict[int, int]) -> Array:
    """Rows whose window is still open; and what lies in such a window, or in one that may still come."""
    rows, found = operator.inputs[0], operator.inputs[1]
    low, high = rows.labels[operator.window]
    data, n = rows.table.data, rows.table.n
    open_rows = (data[high, :n] >= since[id(found.table)]) & rows.table.alive[:n].astype(bool)
    if port == 0 and table is not found.table:
        return open_rows
    ends = table.data[END, : table.n]
    if operator.back >= FAR:
        return np.ones(table.n, bool)
    least = since[id(rows.table)] - operator.back
    open_rows |= data[END, :n] >= since[id(rows.table)]
    if open_rows.any():
        least = min(least, int(data[low, :n][open_rows].min()))
    mask = ends >= least
    return mask | open_rows if table is rows.table else mask


def compact(circuit: Circuit, frontier: int | None) -> dict[int, Array]:
    """Forgets what may be forgotten; for each table where its rows went."""
    keep = needed(circuit, frontier)
    _keep_inputs(circuit, keep)
    moved: dict[int, Array] = {}
    for operator in circuit.operators:
        table = operator.out.table
        rows = np.flatnonzero(keep[id(table)])
        if isinstance(operator, Events):
            operator.keep(rows)
        moved[id(table)] = table.keep(rows)
    for operator in circuit.operators:
        table = operator.out.table
        for field, parent in _parents(operator):
            table.data[field, : table.n] = moved[id(parent)][table.data[field, : table.n]]
        if isinstance(operator, Derive):
            place = moved[id(operator.events.out.table)]
            table.data[RIGHT, : table.n] = place[table.data[RIGHT, : table.n]]
        if isinstance(operator, Derived):
            place = moved[id(table)]
            operator.kept_inputs = {
                int(place[row]): tuple((t, int(moved[id(t)][r])) for t, r in parts)
                for row, parts in operator.kept_inputs.items()
                if place[row] >= 0
            }
        if isinstance(operator, Collect):
            own, place = moved[id(table)], moved[id(operator.inputs[1].table)]
            operator.members = {
                int(own[row]): tuple(int(place[m]) for m in found)
                for row, found in operator.members.items()
                if row < len(own) - 1 and own[row] >= 0
            }
    _shrink_dictionary(circuit)
    circuit.rebuild()
    return moved


def _keep_inputs(circuit: Circuit, keep: dict[int, Array]) -> None:
    """Derived events that stay while their derivations go: their inputs stay with them."""
    for events in circuit.derived.values():
        kept = keep[id(events.out.table)]
        supported = np.zeros(len(kept), bool)
        for links in events.supports:
            child = links.child
            rows = child.data[RIGHT, : child.n][keep[id(child)]]
            supported[rows] = True
        for row in np.flatnonzero(kept & ~supported).tolist():
            if row not in events.kept_inputs:
                events.kept_inputs[row] = inputs_of(circuit, events, row)
        for row, parts in events.kept_inputs.items():
            for table, at in parts if kept[row] else ():
                keep[id(table)][at] = True


def _shrink_dictionary(circuit: Circuit) -> None:
    """Forgets the values that no row has any more."""
    words = circuit.words.dictionary
    if words.n < 2 * circuit.words_kept + 4096:
        return
    tables = [o.out.table for o in circuit.operators]
    used = [t.data[t.codes, : t.n].ravel() for t in tables if t.codes]
    smaller, moved = words.without(used)
    for table in tables:
        if table.codes:
            codes = table.data[table.codes, : table.n]
            odd = (codes & 1).astype(bool)
            codes[odd] = moved[codes[odd] >> 1]
            table.data[table.codes, : table.n] = codes
    circuit.words.dictionary = circuit.context.dictionary = smaller
    circuit.words_kept = smaller.n
