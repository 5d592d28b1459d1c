"""The order of events on columns: (end, start, type, arguments in the order of terms, id).

Rows of operators are compared by the events they are made of, the first of which decides, then the second, and so on.
Only ties are looked at more closely: arguments only of events at the same times, ids only of events with equal content.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from augury.core.arrays import Array, Codes, Integers, RowIds
from augury.core.model import Value
from augury.engine.events import Events
from augury.engine.operators.derive import Derived
from augury.storage.column import values_of
from augury.storage.ranks import Ordering, code_ranks, float_ranks, value_ranks
from augury.storage.table import END, START, Table
from augury.storage.unique import unique, unique_inverse

if TYPE_CHECKING:
    from augury.engine.runtime import Runtime

Holder = Events | Derived
Columns = list[tuple[Holder, Array]]  # of each row its first event, its second event, and so on


class Parts:
    """The events that rows are made of, one row after the other."""

    def __init__(self, counts: Integers, holder: Array, row: RowIds, holders: list[Holder]) -> None:
        self.counts, self.holder, self.row, self.holders = counts, holder, row, holders
        self.starts = np.cumsum(counts) - counts

    def of_position(self, position: int, numbers: Integers, rows: RowIds) -> Array:
        """The number of the event at a position of each row; -1 where the row has fewer."""
        there = self.counts[rows] > position
        return np.where(there, numbers[np.where(there, self.starts[rows] + position, 0)], -1)

    def ordered(self, numbers: Integers) -> Ordering:
        """The order of rows whose events have these numbers."""
        rows = np.arange(len(self.counts))
        most = int(self.counts.max(initial=0))
        ordering = Ordering(self.of_position(0, numbers, rows) if len(numbers) else np.zeros(len(rows), np.int64))
        return ordering.refine(_position(self, numbers, k) for k in range(1, most))


def _position(parts: Parts, numbers: Integers, position: int) -> Callable[[Array], Array]:
    return lambda rows: parts.of_position(position, numbers, rows)


def row_ranks(circuit: Runtime, table: Table, rows: RowIds) -> Array:
    """A number for each row of a table that orders as the events do that the rows are made of."""
    distinct, inverse = unique_inverse(rows)
    ranks: Array
    if circuit.maker(table).alone:  # what lies of held intervals in a window, by the values of the facts
        ranks = _value_order(table, distinct).ranks()[inverse]
        return ranks
    parts = parts_of(circuit, table, distinct)
    ranks = parts.ordered(_event_ranks(parts)).ranks()[inverse]
    return ranks


def _value_order(table: Table, rows: RowIds) -> Ordering:
    """The order of rows by their values, one column after the other."""

    def values(field: int) -> Callable[[Array], Array]:
        return lambda some: code_ranks(table.dictionary, table.data[field, rows[some]])

    return Ordering(np.zeros(len(rows), np.int64)).refine(map(values, table.codes))


def same_events(circuit: Runtime, table: Table, rows: RowIds) -> Array:
    """A number for each row of a table: rows that are made of the same events have the same number."""
    distinct, inverse = unique_inverse(rows)
    parts = parts_of(circuit, table, distinct)
    first_row = np.cumsum([0, *(holder.out.table.n for holder in parts.holders)])
    numbers: Integers = parts.ordered(first_row[parts.holder] + parts.row).ranks()[inverse]
    return numbers


# What rows are made of


def parts_of(circuit: Runtime, table: Table, rows: RowIds) -> Parts:
    """The events that rows are made of: those of all rows that are made alike at once, the others row by row."""
    holders: dict[int, Holder] = {}
    chunks: list[tuple[Array, Array, Array, int]] = []  # owners, positions, rows of events, which holder
    rest = np.ones(len(rows), bool)
    for some, columns in _made_alike(circuit, table, rows):
        rest[some] = False
        for position, (holder, their_rows) in enumerate(columns):
            holders[id(holder)] = holder
            chunks.append((some, np.full(len(some), position), their_rows, id(holder)))
    single: dict[int, list[tuple[int, int, int]]] = {}
    for owner in np.flatnonzero(rest).tolist():
        for position, (of, row) in enumerate(circuit.parts(table, int(rows[owner]))):
            maker = circuit.maker(of)
            assert isinstance(maker, Events | Derived)
            holders[id(maker)] = maker
            single.setdefault(id(maker), []).append((owner, position, row))
    for maker_id, triples in single.items():
        owners, positions, their_rows = np.array(triples, np.int64).T
        chunks.append((owners, positions, their_rows, maker_id))
    index = {maker_id: i for i, maker_id in enumerate(holders)}
    empty = np.empty(0, np.int64)
    owners, positions, their_rows = (np.concatenate([empty, *(chunk[i] for chunk in chunks)]) for i in range(3))
    sizes = [len(chunk[0]) for chunk in chunks]
    which = np.repeat([index[chunk[3]] for chunk in chunks], sizes).astype(np.int64)
    order = np.lexsort((positions, owners)) if len(chunks) > 1 else slice(None)
    return Parts(np.bincount(owners, minlength=len(rows)), which[order], their_rows[order], list(holders.values()))


def _made_alike(circuit: Runtime, table: Table, rows: RowIds) -> Iterator[tuple[Array, Columns]]:
    """Some of the rows that are made of events of the same types, and these events column by column."""
    maker = circuit.maker(table)
    if maker.holds_events:
        assert isinstance(maker, Events | Derived)
        yield np.arange(len(rows)), [(maker, rows)]
        return
    for some, sources in maker.sources(rows):
        if not len(some) or any(owner is not None for _, _, owner in sources):
            continue
        groups: list[tuple[Array, Columns]] = [(np.arange(len(some)), [])]
        for source, parents, _ in sources:
            groups = list(_side_by_side(groups, list(_made_alike(circuit, source, parents[some]))))
        for members, columns in groups:
            yield some[members], columns


def _side_by_side(
    left: list[tuple[Array, Columns]], right: list[tuple[Array, Columns]]
) -> Iterator[tuple[Array, Columns]]:
    """The columns of two sides for the rows that both have."""
    for mine, columns in left:
        for its, more in right:
            both, i, j = np.intersect1d(mine, its, assume_unique=True, return_indices=True)
            if len(both):
                yield both, [*((h, r[i]) for h, r in columns), *((h, r[j]) for h, r in more)]


# The order of events


def _event_ranks(parts: Parts) -> Array:
    """The rank of each event among all that rows are made of."""
    if not len(parts.row):
        return parts.row
    holder, row, inverse = _each_once(parts)
    tables = [h.out.table for h in parts.holders]

    def times(field: int) -> Callable[[Array], Array]:
        def key(events: Array) -> Array:
            values = np.empty(len(events), np.int64)
            for i, mine in _by_holder(holder[events]):
                values[mine] = tables[i].data[field, row[events[mine]]]
            return values

        return key

    names = sorted({h.type for h in parts.holders})
    name_of = np.array([names.index(h.type) for h in parts.holders], np.int64)
    same_name = [[i for i in range(len(name_of)) if name_of[i] == name] for name in range(len(names))]

    def argument(position: int) -> Callable[[Array], Array]:
        def key(events: Array) -> Array:
            values = np.full(len(events), -1, np.int64)
            for group in same_name:
                selected = [(parts.holders[i], np.flatnonzero(holder[events] == i)) for i in group]
                selected = [(h, mine) for h, mine in selected if len(mine)]
                wide = [(h, mine) for h, mine in selected if h.arity > position]
                if not wide:
                    continue
                # What has no such argument is marked by -1 and comes first.
                ranks = _argument_ranks([(h, row[events[mine]]) for h, mine in wide], position, len(selected) > 1)
                for (_, mine), their_ranks in zip(wide, ranks, strict=True):
                    values[mine] = their_ranks
            return values

        return key

    def ids(events: Array) -> Array:
        values = np.zeros(len(events), np.int64)
        for i, mine in _by_holder(holder[events]):
            values[mine] = _id_ranks(parts.holders[i], row[events[mine]])
        return values

    most = max(h.arity for h in parts.holders)
    ordering = Ordering(times(END)(np.arange(len(row))))
    ordering.refine([times(START), lambda events: name_of[holder[events]], *map(argument, range(most)), ids])
    ranks: Array = ordering.ranks()[inverse]
    return ranks


def _each_once(parts: Parts) -> tuple[Array, Array, Array]:
    """The distinct events of rows, by their holders and rows, and which of them each one is."""
    first_row = np.cumsum([0, *(h.out.table.n for h in parts.holders)])
    distinct, inverse = unique_inverse(first_row[parts.holder] + parts.row)
    holder = np.searchsorted(first_row, distinct, side="right") - 1
    return holder, distinct - first_row[holder], inverse


def _by_holder(holder: Array) -> Iterable[tuple[int, Array]]:
    present = unique(holder).tolist()
    if len(present) == 1:
        return [(present[0], np.arange(len(holder)))]
    return [(i, np.flatnonzero(holder == i)) for i in present]


def _argument_ranks(columns: Sequence[tuple[Holder, Array]], position: int, several: bool) -> list[Array]:
    """Ranks of one argument of events of one name; where these have several arities, from zero on and comparable."""
    if not columns:
        return []
    codes = [_codes(holder, position, rows) for holder, rows in columns]
    if not several:
        ((holder, rows),) = columns
        if codes[0] is not None:
            return [code_ranks(holder.out.table.dictionary, codes[0])]
        assert isinstance(holder, Events)
        return [_raw_ranks(holder, position, rows)]
    values: list[Value] = []
    for (holder, rows), their_codes in zip(columns, codes, strict=True):
        if their_codes is not None:
            values += map(holder.out.table.dictionary.decode, their_codes.tolist())
        else:
            assert isinstance(holder, Events)
            values += (holder.args(row)[position] for row in rows.tolist())
    cuts = np.cumsum([len(rows) for _, rows in columns])[:-1]
    return np.split(value_ranks(values), cuts)


def _codes(holder: Holder, position: int, rows: RowIds) -> Array | None:
    """The codes of an argument; None where it is kept as it came, because no rule looks at it."""
    table = holder.out.table
    if isinstance(holder, Derived):
        codes: Codes = table.data[table.codes[position], rows]
        return codes
    return table.data[holder.field(position), rows] if position in holder.used else None


def _raw_ranks(events: Events, position: int, rows: RowIds) -> Array:
    distinct, inverse = unique_inverse(rows)
    pieces = events.columns_at(position, distinct)
    if all(isinstance(p, np.ndarray) and p.dtype.kind in "iu" for p in pieces):
        return np.concatenate(pieces).astype(np.int64)[inverse]
    if all(isinstance(p, np.ndarray) and p.dtype.kind == "f" and not np.isnan(p).any() for p in pieces):
        return float_ranks(np.concatenate(pieces).astype(np.float64))[inverse]
    return value_ranks([value for piece in pieces for value in values_of(piece)])[inverse]


def _id_ranks(holder: Holder, rows: RowIds) -> Array:
    """Ranks of ids. Derived events with equal content are one event."""
    if isinstance(holder, Derived):
        return np.zeros(len(rows), np.int64)
    distinct, inverse = unique_inverse(rows)
    if holder.plain:  # 16 hexadecimal digits order as the numbers do
        return (holder.made(distinct) ^ np.uint64(2**63)).view(np.int64)[inverse]
    return value_ranks(holder.ids(distinct))[inverse]
