"""Solutions of graph patterns as columns, and how two sets of them are joined.

A row is a solution in an event: numbers of terms, UNBOUND where it leaves a variable open. Rows are sorted by event. A table
without an event, such as one of VALUES or of the static dataset, has rows that hold in every event.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import numpy as np

from augury.core.arrays import Array, Codes, Integers, Mask, RowIds
from augury.graphs.rdf_terms import UNBOUND
from augury.storage.guard import check_memory
from augury.storage.unique import unique_inverse

_FEW = 4  # pairs a row, up to which all pairs of an event are looked at


@dataclass(frozen=True)
class SolutionTable:
    """Rows of solutions; `distinct` where it is known that no two are alike."""

    size: int
    event: Array | None
    columns: dict[str, Array] = field(default_factory=dict)
    distinct: bool = True

    def __len__(self) -> int:
        return self.size

    def take(self, rows: RowIds | Mask, distinct: bool | None = None) -> SolutionTable:
        """Some rows, in an order that keeps events sorted; by a mask, or by numbers."""
        event = None if self.event is None else self.event[rows]
        columns = {name: column[rows] for name, column in self.columns.items()}
        size = int(np.count_nonzero(rows)) if rows.dtype == np.bool_ else len(rows)
        return SolutionTable(size, event, columns, self.distinct if distinct is None else distinct)

    def with_column(self, name: str, column: Array) -> SolutionTable:
        return SolutionTable(self.size, self.event, {**self.columns, name: column}, self.distinct)

    def only(self, names: Collection[str]) -> SolutionTable:
        """The rows cut to some variables; rows that are alike then are not made one."""
        kept = {name: column for name, column in self.columns.items() if name in names}
        return SolutionTable(self.size, self.event, kept, self.distinct and len(kept) == len(self.columns))

    def unbound(self, name: str) -> bool:
        """Whether some row leaves a variable open."""
        return bool((self.columns[name] == UNBOUND).any())


ONE = SolutionTable(1, None)  # the solution that binds nothing


def nothing(names: Collection[str] = ()) -> SolutionTable:
    return SolutionTable(0, None, {name: np.empty(0, np.int64) for name in names})


def in_each_event(table: SolutionTable, events: int) -> SolutionTable:
    """A table whose rows hold in every event, with a row for each."""
    if table.event is not None:
        return table
    check_memory(8 * events * table.size * (len(table.columns) + 1))
    columns = {name: np.tile(column, events) for name, column in table.columns.items()}
    event = np.repeat(np.arange(events), table.size)
    return SolutionTable(events * table.size, event, columns, table.distinct)


def distinct(table: SolutionTable) -> SolutionTable:
    """Rows that are alike become one."""
    if table.distinct or table.size < 2:
        return SolutionTable(table.size, table.event, table.columns)
    parts = [column for column in (table.event, *table.columns.values()) if column is not None]
    if not parts:
        return table.take(np.zeros(1, np.int64), distinct=True)
    return table.take(different_rows(parts), distinct=True)


def different_rows(columns: Sequence[Array]) -> Array:
    """The rows of some columns in order, one of those that are alike."""
    order = np.lexsort(columns[::-1])
    first = np.zeros(len(order), bool)
    first[:1] = True
    for column in columns:
        ordered = column[order]
        first[1:] |= ordered[1:] != ordered[:-1]
    return order[first]


# Joining


@dataclass(frozen=True)
class Pairs:
    """Pairs of rows of two tables that agree, in the order of the left rows."""

    left: Array
    right: Array


def pairs(left: SolutionTable, right: SolutionTable, events: int) -> Pairs:
    """All pairs of rows that agree: of one event, and with no variable that both bind differently."""
    shared = [name for name in left.columns if name in right.columns]
    strict = [name for name in shared if not (left.unbound(name) or right.unbound(name))]
    result = _candidates(left, right, strict, events)
    a, b = result.left, result.right
    keep: Mask | None = None
    for name in shared:
        x, y = left.columns[name][a], right.columns[name][b]
        same = x == y
        if name not in strict:
            same |= (x == UNBOUND) | (y == UNBOUND)
        keep = same if keep is None else keep & same
    return result if keep is None or keep.all() else Pairs(a[keep], b[keep])


def _candidates(left: SolutionTable, right: SolutionTable, strict: Sequence[str], events: int) -> Pairs:
    """Pairs among which all are that agree."""
    if left.event is None or right.event is None:
        if strict:
            return _by_keys([left.columns[n] for n in strict], [right.columns[n] for n in strict])
        return _all(left.size, right.size)
    if left.size == right.size and np.array_equal(left.event, right.event) and _rising(left.event):
        rows = np.arange(left.size)
        return Pairs(rows, rows)
    starts = np.zeros(events + 1, np.int64)
    np.cumsum(np.bincount(right.event, minlength=events), out=starts[1:])
    first = starts[left.event]
    counts = starts[left.event + 1] - first
    total = int(counts.sum())
    if strict and total > _FEW * (left.size + right.size) + 64:
        keys = [left.event, *(left.columns[n] for n in strict)], [right.event, *(right.columns[n] for n in strict)]
        return _by_keys(*keys)
    return expanded(first, counts)


def _rising(event: Array) -> bool:
    return bool((event[1:] > event[:-1]).all())


def expanded(first: Array, counts: Integers) -> Pairs:
    """Pairs of each left row with a range of right rows."""
    total = int(counts.sum())
    check_memory(24 * total)
    a = np.repeat(np.arange(len(first)), counts)
    offset = np.cumsum(counts) - counts
    return Pairs(a, np.arange(total) + (first - offset)[a])


def _all(left: int, right: int) -> Pairs:
    check_memory(24 * left * right)
    return Pairs(np.repeat(np.arange(left), right), np.tile(np.arange(right), left))


def _by_keys(left: Sequence[Array], right: Sequence[Array]) -> Pairs:
    """Pairs of rows with equal keys, by sorting the right ones."""
    x, y = joint_codes(left, right)
    order = np.argsort(y, kind="stable")
    ordered = y[order]
    first = np.searchsorted(ordered, x, "left")
    counts = np.searchsorted(ordered, x, "right") - first
    result = expanded(first, counts)
    return Pairs(result.left, order[result.right])


def joint_codes(left: Sequence[Array], right: Sequence[Array]) -> tuple[Array, Array]:
    """One number for each row of two sides, equal just where all columns are."""
    n = len(left[0])
    code: Array | None = None
    for a, b in zip(left, right, strict=True):
        both = np.concatenate([a, b])
        if code is None:
            code = both
            continue
        code = (
            _dense(code) * (int(both.max(initial=0)) + 2) + both + 1 if _fits(both, len(both)) else _paired(code, both)
        )
    assert code is not None
    return code[:n], code[n:]


def _fits(column: Array, size: int) -> bool:
    return (int(column.max(initial=0)) + 2) * (size + 1) < 1 << 62


def _dense(codes: Codes) -> Array:
    return unique_inverse(codes)[1].reshape(-1).astype(np.int64)


def _paired(code: Array, column: Array) -> Array:
    dense = _dense(column)
    return _dense(code) * (int(dense.max(initial=0)) + 1) + dense


def merged(left: SolutionTable, right: SolutionTable, row_pairs: Pairs) -> SolutionTable:
    """The rows that pairs make together."""
    loose = False
    columns = {name: column[row_pairs.left] for name, column in left.columns.items()}
    for name, column in right.columns.items():
        mine = columns.get(name)
        if mine is None:
            columns[name] = column[row_pairs.right]
        elif left.unbound(name) or right.unbound(name):
            columns[name] = np.where(mine == UNBOUND, column[row_pairs.right], mine)
            loose = True
    event = left.event[row_pairs.left] if left.event is not None else None
    if event is None and right.event is not None:
        event = right.event[row_pairs.right]
    table = SolutionTable(len(row_pairs.left), event, columns, left.distinct and right.distinct and not loose)
    if left.event is None and event is not None:
        return table.take(np.argsort(event, kind="stable"))
    return table


def joined(left: SolutionTable, right: SolutionTable, events: int) -> SolutionTable:
    if left.event is None and right.event is not None:
        left, right = right, left
    return merged(left, right, pairs(left, right, events))


def united(left: SolutionTable, right: SolutionTable, events: int) -> SolutionTable:
    """The rows of both, under all their columns, sorted by event."""
    if (left.event is None) != (right.event is None):
        left, right = in_each_event(left, events), in_each_event(right, events)
    table = stacked(left, right)
    return table if table.event is None else table.take(np.argsort(table.event, kind="stable"))


def stacked(first: SolutionTable, second: SolutionTable) -> SolutionTable:
    """The rows of one table and then those of another; a variable that one does not have is open there."""
    names = dict.fromkeys((*first.columns, *second.columns))
    columns = {name: np.concatenate([_column(first, name), _column(second, name)]) for name in names}
    event = None if first.event is None or second.event is None else np.concatenate([first.event, second.event])
    size = first.size + second.size
    only = first if not second.size else second if not first.size else None
    return SolutionTable(size, event, columns, only is not None and only.distinct)


def _column(table: SolutionTable, name: str) -> Array:
    result = table.columns.get(name)
    return np.full(table.size, UNBOUND, np.int64) if result is None else result
