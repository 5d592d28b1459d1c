"""What a circuit may forget (E 3.8): rows that can neither change any more nor meet anything that may still change.

The *frontier* says that nothing more ends at or before it. From it follows for each table since when its rows are
*unsettled* (they may still appear or vanish), and from the bounds of each operator how far back of that its partners lie.
A row that is kept keeps what it was made of, so that its trace can be told; a derived event that outlives its derivations
keeps its input events instead.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from augury.algebra.properties import event_lengths
from augury.algebra.timing import Lengths
from augury.columns.table import END, LEFT, RIGHT, Table
from augury.engine.events import Events
from augury.engine.operators.absence import Absence
from augury.engine.operators.choose import Choose
from augury.engine.operators.chronological import Chronological
from augury.engine.operators.collect import Collect
from augury.engine.operators.derive import Derive, Derived
from augury.engine.operators.join import Join
from augury.engine.trace import inputs_of
from augury.jit import Array
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


def needed(circuit: Circuit, frontier: int | None, reaches: Reaches) -> dict[int, Array]:
    """For each table a mask of the rows to keep. Without a frontier only the dead are forgotten."""
    tables = {id(o.out.table): o.out.table for o in circuit.operators}
    keep = {key: table.alive[: table.n].astype(bool) for key, table in tables.items()}
    if frontier is not None:
        since = unsettled(circuit, frontier)
        for key, table in tables.items():
            keep[key] &= _wanted(circuit, table, since, reaches)
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


class Reaches:
    """How far back of a row the partners lie that an operator may need, for inputs no longer than the longest so far.

    Where nothing was said of how long inputs last, the longest one so far stands for all; `relied` is whether anything
    was bounded by it. Then no input may come that begins before what is kept.
    """

    def __init__(self, circuit: Circuit) -> None:
        self.circuit, self.relied = circuit, False

    @cached_property
    def lengths(self) -> Lengths | None:
        circuit = self.circuit
        if circuit.lengths is not None or not circuit.learns:
            return None  # it is known already, or all is kept
        return event_lengths(circuit.plan, circuit.duration(circuit.longest_seen))

    def window(self, operator: Absence | Collect) -> int:
        """How far before the end of a row its window begins."""
        if operator.back < FAR or self.lengths is None or operator.back_for is None:
            return operator.back
        found = operator.back_for(self.lengths)
        self.relied = self.relied or found < FAR
        return found

    def join(self, operator: Join, port: int) -> int:
        """How far the end of a row lies from that of a partner at least, negative where it may be earlier."""
        back = int(operator.relation.reach[1 - port][1])
        if back > -FAR or self.lengths is None or operator.bounds_for is None:
            return back
        back = int(operator.bounds_for(self.lengths)[0].reach[1 - port][1])
        self.relied = self.relied or back > -FAR
        return back


def _wanted(circuit: Circuit, table: Table, since: dict[int, int], reaches: Reaches) -> Array:
    """The rows that may still vanish, or that an operator may still need."""
    ends = table.data[END, : table.n]
    mask = ends >= since[id(table)]
    for operator, port in table.readers:
        match operator:
            case Join() if port < 2:
                other = operator.inputs[1 - port].table
                back = reaches.join(operator, port)
                mask |= True if back <= -FAR else ends >= since[id(other)] + back
            case Absence() | Collect():
                mask |= _watched(operator, port, table, since, reaches)
            case Choose():
                if operator.policy.name == "chronological":
                    for view in operator.join.inputs:
                        own = view.table
                        wanted = _wanted(circuit, own, since, reaches)
                        least = int(own.data[END, : own.n][wanted].min()) if wanted.any() else FAR
                        mask |= ends >= least
    return mask


def _watched(operator: Absence | Collect, port: int, table: Table, since: dict[int, int], reaches: Reaches) -> Array:
    """Rows whose window is still open; and what lies in such a window, or in one that may still come."""
    rows, found = operator.inputs[0], operator.inputs[1]
    low, high = rows.labels[operator.window]
    data, n = rows.table.data, rows.table.n
    open_rows = (data[high, :n] >= since[id(found.table)]) & rows.table.alive[:n].astype(bool)
    if port == 0 and table is not found.table:
        return open_rows
    ends = table.data[END, : table.n]
    back = reaches.window(operator)
    last = operator if isinstance(operator, Collect) and operator.of_last is not None else None
    if back >= FAR and last is None:
        return np.ones(table.n, bool)
    open_rows |= data[END, :n] >= since[id(rows.table)]
    if last is not None:
        least = min(since[id(rows.table)], since[id(table)])
        if open_rows.any():
            least = min(least, int(data[END, :n][open_rows].min()))
        mask = (ends >= least) | _last(last, table, ends < least)
    else:
        least = since[id(rows.table)] - back
        if open_rows.any():
            least = min(least, int(data[low, :n][open_rows].min()))
        mask = ends >= least
    return mask | open_rows if table is rows.table else mask


def _last(operator: Collect, table: Table, settled: Array) -> Array:
    """Of rows that are settled those among the last n of their group, and what ends together with the first of these."""
    rows = np.flatnonzero(settled & table.alive[: table.n].astype(bool))
    mask = np.zeros(table.n, bool)
    count = operator.collect.last
    if not len(rows) or count is None or operator.of_last is None:
        return mask
    words = operator.circuit.words.dictionary
    keys = [words.canonical(table.data[field, rows]) for field in operator.of_last]
    ends = table.data[END, rows]
    order = np.lexsort((-ends, *keys))
    firsts = np.ones(len(rows), bool)
    firsts[1:] = False
    for key in keys:
        firsts[1:] |= key[order][1:] != key[order][:-1]
    begins = np.flatnonzero(firsts)
    group = np.cumsum(firsts) - 1
    sizes = np.diff(np.append(begins, len(rows)))
    least = ends[order][begins + np.minimum(sizes, count) - 1]  # the end of the n-th from the last
    mask[rows[order[ends[order] >= least[group]]]] = True
    return mask


def remembers(circuit: Circuit) -> list[str]:
    """The rules some of whose state is kept for ever: nothing says that what is held meets nothing more."""
    reaches, found = Reaches(circuit), dict[str, None]()
    for operator in circuit.operators:
        match operator:
            case Join() if any(reaches.join(operator, port) <= -FAR for port in (0, 1)):
                found[operator.rule] = None
            case Absence() | Collect() if reaches.window(operator) >= FAR:
                if not isinstance(operator, Collect) or operator.of_last is None:
                    found[operator.rule] = None
    return list(found)


def compact(circuit: Circuit, frontier: int | None) -> dict[int, Array]:
    """Forgets what may be forgotten; for each table where its rows went."""
    reaches = Reaches(circuit)
    keep = needed(circuit, frontier, reaches)
    if reaches.relied and frontier is not None:
        circuit.relied_on_lengths(frontier)
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
