"""Where an answer comes from: the input events of one derivation, and the derivations themselves."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np

from augury.core.arrays import Array, RowIds
from augury.engine.events import Events
from augury.engine.operators.base import Operator, Part
from augury.engine.operators.derive import Derived
from augury.storage.column import distinct
from augury.storage.grouping import expand_ranges
from augury.storage.table import END, Table

if TYPE_CHECKING:
    from augury.engine.runtime import Runtime

T = TypeVar("T")


def trace_of(circuit: Runtime, events: Derived, row: int) -> tuple[str, ...]:
    """The ids of the input events of one derivation."""
    traces = [circuit.makers[id(table)].names(position) for table, position in inputs_of(circuit, events, row)]  # type: ignore[attr-defined]
    return tuple(dict.fromkeys(name for names in traces for name in names))


def inputs_of(circuit: Runtime, events: Derived, row: int) -> tuple[Part, ...]:
    """The input events of one derivation."""
    inputs: list[Part] = []
    open_parts: list[Part] = [(events.out.table, row)]
    seen: set[tuple[int, int]] = set()
    while open_parts:
        table, position = open_parts.pop()
        if (id(table), position) in seen:
            continue
        seen.add((id(table), position))
        maker = circuit.makers[id(table)]
        if isinstance(maker, Events):
            inputs.append((table, position))
            continue
        assert isinstance(maker, Derived)
        kept = maker.kept_inputs.get(position)
        if kept is not None:
            inputs.extend(kept)
            continue
        support = maker.support(position)
        if support is not None:
            open_parts.extend(reversed(support[0].parts(support[1])))
    return tuple(inputs)


def all_inputs_of(circuit: Runtime, events: Derived, rows: RowIds) -> list[tuple[Part, ...]]:
    """The input events of one derivation of each row, see `inputs_of`: all rows that are made alike at once."""
    result: dict[int, tuple[Part, ...]] = {}
    for some, leaves in _all_leaves(circuit, events.out.table, rows, LeavesCache()):
        tables: list[Table] = []
        columns = [np.zeros((5, 0), np.int64)]  # owners, columns, orders, tables, positions
        for column, leaf in enumerate(leaves):
            few = leaf.parts if isinstance(leaf, TraceInputs) else [(*leaf, np.arange(len(some)), np.zeros(len(some)))]
            for holder, positions, owners, orders in few:
                each = (owners, np.full(len(owners), column), orders, np.full(len(owners), len(tables)), positions)
                columns.append(np.stack(each).astype(np.int64))
                tables.append(holder.out.table)
        owners, numbers, orders, places, positions = np.concatenate(columns, axis=1)
        order = np.lexsort((orders, numbers, owners))
        parts = [
            (tables[i], position) for i, position in zip(places[order].tolist(), positions[order].tolist(), strict=True)
        ]
        ends = np.cumsum(np.bincount(owners, minlength=len(some))).tolist()
        for row, lo, hi in zip(some.tolist(), [0, *ends[:-1]], ends, strict=True):
            result[row] = tuple(dict.fromkeys(parts[lo:hi]))
    return [result[i] if i in result else inputs_of(circuit, events, row) for i, row in enumerate(rows.tolist())]


# Many traces at once


@dataclass(frozen=True)
class TraceInputs:
    """Input events of rows that have several each: row by row, and of each in the order of `place`."""

    parts: list[tuple[Events, Array, Array, Array]]  # events of one type: their rows, whose they are, and their places

    def of(self, rows: RowIds, size: int) -> TraceInputs:
        """Those of some rows, of which there were `size`."""
        number = np.full(size, -1, np.int64)
        number[rows] = np.arange(len(rows))
        parts = []
        for events, positions, owners, order in self.parts:
            mine = np.flatnonzero(number[owners] >= 0)
            parts.append((events, positions[mine], number[owners[mine]], order[mine]))
        return TraceInputs(parts)

    def below(self, items: Array, owners: RowIds, column: int) -> TraceInputs:
        """The inputs of rows that are items of other rows, as items of these."""
        numbered = zip(self.parts, self._numbers(), strict=True)
        return TraceInputs(
            [
                (events, positions, owners[items[mine]], (items[mine] * _WIDE + column) * _LONG + number)
                for (events, positions, mine, _), number in numbered
            ]
        )

    def _numbers(self) -> list[Array]:
        """The number of each event among those of its row."""
        if not self.parts:  # groups of nothing, as `collect … or none` makes them
            return []
        owners = np.concatenate([part[2] for part in self.parts])
        order = np.lexsort((np.concatenate([part[3] for part in self.parts]), owners))
        number = np.empty(len(order), np.int64)
        number[order] = np.arange(len(order)) - np.searchsorted(owners[order], owners[order])
        return np.split(number, np.cumsum([len(part[1]) for part in self.parts])[:-1])


Leaves = list[tuple[Events, Array] | TraceInputs]  # input events column by column: those of all columns make a trace
_DEEP, _WIDE, _FEW = 100, 64, 8
_LONG = 1 << 24  # more than a row of one column can have


@dataclass(frozen=True)
class Traces:
    """Traces one after the other: that of row `i` is `items[offsets[i]:offsets[i + 1]]`.

    An item is an id that is made from a content, as a number; or the place of an id in `pool`, where there is one.
    """

    offsets: Array  # int32
    items: Array  # uint64, or int64 with a pool
    pool: list[str] | None

    def tuples(self) -> list[tuple[str, ...]]:
        """As `trace_of` gives them."""
        pool, items = self.pool, self.items.tolist()
        texts = [f"{i:016x}" for i in items] if pool is None else [pool[i] for i in items]
        return [tuple(texts[lo:hi]) for lo, hi in zip(self.offsets[:-1], self.offsets[1:], strict=True)]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def part(self, lo: int, hi: int) -> Traces:
        """The traces of rows from one up to another."""
        first, last = int(self.offsets[lo]), int(self.offsets[hi])
        return Traces(self.offsets[lo : hi + 1] - self.offsets[lo], self.items[first:last], self.pool)

    def some(self, rows: RowIds) -> Traces:
        """The traces of some rows, in their order."""
        lengths = np.diff(self.offsets)[rows].astype(np.int64)
        items = self.items[expand_ranges(self.offsets[rows].astype(np.int64), lengths)]
        return Traces(np.r_[0, np.cumsum(lengths)].astype(np.int32), items, self.pool)


class StepCache(Generic[T]):
    """A cache of what was made of columns in this step: rules may differ in their heads alone."""

    def __init__(self) -> None:
        self.made: dict[Hashable, list[tuple[tuple[Array, ...], T]]] = {}
        self.leaves = LeavesCache()

    def of(self, columns: tuple[Array, ...], make: Callable[[], T], kind: Hashable = None) -> T:
        made = self.made.setdefault((kind, len(columns), *(len(c) for c in columns)), [])
        for before, result in made:
            if all((x == y).all() for x, y in zip(before, columns, strict=True)):
                return result
        result = make()
        if len(made) < 16:
            made.append((columns, result))
        return result

    def limit(self, most: int = 16) -> None:
        """Forgets what it knows once that is much: a step that comes in pieces does not come back to them."""
        if sum(map(len, self.made.values())) >= most:
            self.made.clear()
            self.leaves = LeavesCache()


class LeavesCache:
    """The input events of derived rows in this step: a rule that reads another's events need not trace these again."""

    def __init__(self) -> None:
        self.held: dict[int, list[tuple[Array, list[tuple[Array, Leaves]]]]] = {}
        self.cut_off = 0  # how often a row was deeper than the limit

    def find(self, table: Table, rows: RowIds) -> list[tuple[Array, Leaves]] | None:
        for before, leaves in self.held.get(id(table), ()):
            if len(before) == len(rows) and bool((before == rows).all()):
                return leaves
        return None

    def store(self, table: Table, rows: RowIds, leaves: list[tuple[Array, Leaves]]) -> None:
        held = self.held.setdefault(id(table), [])
        if len(held) < 4:
            held.append((rows, leaves))


def traces_of(circuit: Runtime, events: Derived, rows: RowIds, cache: StepCache[Traces]) -> Traces:
    """The traces of many events: level by level, all rows that are made alike at once; the others one by one."""
    groups = _all_leaves(circuit, events.out.table, rows, cache.leaves)
    if len(groups) == 1 and len(groups[0][0]) == len(rows):
        leaves = groups[0][1]
        plain = [leaf for leaf in leaves if not isinstance(leaf, TraceInputs)]
        if len(plain) == len(leaves):
            kind = tuple(id(events_of) for events_of, _ in plain)
            columns = (groups[0][0], *(rows_of for _, rows_of in plain))
            return cache.of(columns, lambda: _traces(circuit, events, rows, groups), kind)
    return _traces(circuit, events, rows, groups)


def _traces(circuit: Runtime, events: Derived, rows: RowIds, groups: list[tuple[Array, Leaves]]) -> Traces:
    names = _IdNumbers(circuit)
    pieces: list[tuple[Array, Array, Array]] = []  # some rows, the length of each one's trace, the items
    rest = np.ones(len(rows), bool)
    for some, leaves in groups:
        rest[some] = False
        pieces.append((some, *names.items(leaves, len(some))))
    others = np.flatnonzero(rest)
    if len(others):
        pieces.append((others, *names.items([_one_by_one(circuit, events, rows[others])], len(others))))
    lengths = np.zeros(len(rows), np.int64)
    for some, sizes, _ in pieces:
        lengths[some] = sizes
    offsets = np.r_[0, np.cumsum(lengths)]
    items = np.empty(int(offsets[-1]), np.int64 if names.pool is not None else np.uint64)
    for some, sizes, more in pieces:
        items[expand_ranges(offsets[some], sizes) if len(some) < len(rows) else slice(None)] = more
    return Traces(offsets.astype(np.int32), items, names.pool)


def _one_by_one(circuit: Runtime, events: Derived, rows: RowIds) -> TraceInputs:
    """The input events of rows that are made like no others."""
    by_table: dict[int, tuple[Events, list[tuple[int, int, int]]]] = {}
    for owner, row in enumerate(rows.tolist()):
        for order, (table, position) in enumerate(inputs_of(circuit, events, row)):
            maker = circuit.makers[id(table)]
            assert isinstance(maker, Events)
            by_table.setdefault(id(table), (maker, []))[1].append((position, owner, order))
    return TraceInputs([(maker, *np.array(some, np.int64).T) for maker, some in by_table.values()])


class _IdNumbers:
    """Ids as numbers: as they are where all are made from contents, else their places in a pool."""

    def __init__(self, circuit: Runtime) -> None:
        inputs = circuit.inputs.values()
        self.pool: list[str] | None = None if all(events.plain for events in inputs) else []
        # An id names one event, so that events have numbers of their own, unless some come with traces or under two names.
        traced = any(chunk.traces is not None for events in inputs for chunk in events.chunks)
        self.single = not (traced or circuit.plan.aliases)
        self.numbers: dict[int, Array] = {}  # the numbers of events, by row, -1 where there is none yet
        self.places: dict[str, int] = {}

    def of(self, events: Events, rows: RowIds) -> tuple[Array, Array | None]:
        """The ids of input events, in the order of rows; and how many each one adds, where that is not always one."""
        few, position = distinct(rows, events.out.table.n)
        if self.pool is None:
            return events.made(few)[position], None
        if self.single:
            numbers = self.numbers.get(id(events))
            if numbers is None:
                numbers = self.numbers[id(events)] = np.full(events.out.table.n, -1, np.int64)
            new = few[numbers[few] < 0]
            numbers[new] = np.arange(len(self.pool), len(self.pool) + len(new))
            self.pool += events.ids(new)
            return numbers[rows], None
        names = events.all_names(few)
        items = np.array([self._place(name) for trace in names for name in trace], np.int64)
        lengths = np.array([len(trace) for trace in names], np.int64)
        if (lengths == 1).all():
            return items[position], None
        return items[expand_ranges((np.cumsum(lengths) - lengths)[position], lengths[position])], lengths[position]

    def _place(self, id: str) -> int:
        assert self.pool is not None
        number = self.places.setdefault(id, len(self.pool))
        if number == len(self.pool):
            self.pool.append(id)
        return number

    def all(self, many: TraceInputs, count: int) -> tuple[Array, Array]:
        """The ids of input events of which rows have several, row by row; and how many each row has."""
        if not many.parts:
            return np.empty(0, np.int64 if self.pool is not None else np.uint64), np.zeros(count, np.int64)
        parts = []
        for events, positions, owners, offsets in many.parts:
            items, lengths = self.of(events, positions)
            if lengths is not None:
                owners, offsets = np.repeat(owners, lengths), np.repeat(offsets, lengths)
            parts.append((items, owners, offsets))
        items, owners, offsets = (np.concatenate(columns) for columns in zip(*parts, strict=True))
        later = (owners[1:] > owners[:-1]) | ((owners[1:] == owners[:-1]) & (offsets[1:] >= offsets[:-1]))
        if not later.all():
            order = np.lexsort((offsets, owners))
            items, owners = items[order], owners[order]
        return items, np.bincount(owners, minlength=count)

    def items(self, leaves: Leaves, count: int) -> tuple[Array, Array]:
        """The lengths of traces, and their items, each once: that of the first column first."""
        columns = [self.all(leaf, count) if isinstance(leaf, TraceInputs) else self.of(*leaf) for leaf in leaves]
        width = len(columns)
        if all(lengths is None for _, lengths in columns):
            if width == 0:
                return np.zeros(count, np.int64), np.empty(0, np.int64)
            matrix = np.stack([items for items, _ in columns], axis=1)
            if width <= _FEW:
                twice = [(matrix[:, i] == matrix[:, j]).any() for j in range(width) for i in range(j)]
                if not any(twice):
                    return np.full(count, width), matrix.ravel()
            return _once(np.repeat(np.arange(count), width), matrix.ravel(), count)
        sizes = np.stack([np.ones(count, np.int64) if counts is None else counts for _, counts in columns], axis=1)
        firsts = np.stack([np.cumsum(sizes[:, i]) - sizes[:, i] for i in range(width)], axis=1)
        firsts += np.r_[0, np.cumsum([len(items) for items, _ in columns])[:-1]]
        items = np.concatenate([items for items, _ in columns])[expand_ranges(firsts.ravel(), sizes.ravel())]
        return _once(np.repeat(np.arange(count), sizes.sum(axis=1)), items, count)


def _once(owners: RowIds, items: Array, count: int) -> tuple[Array, Array]:
    """How many different items each owner has, and those in the order in which they first come."""
    order = np.lexsort((items, owners))
    o, i = owners[order], items[order]
    keep = np.zeros(len(items), bool)
    keep[order[np.r_[True, (o[1:] != o[:-1]) | (i[1:] != i[:-1])][: len(o)]]] = True
    return np.bincount(owners[keep], minlength=count), items[keep]


def _all_leaves(circuit: Runtime, table: Table, rows: RowIds, cache: LeavesCache) -> list[tuple[Array, Leaves]]:
    """As `_leaves`, however long a chain of rules is: of one beyond the limit the lower parts are traced first."""
    cut_off = cache.cut_off
    groups = _leaves(circuit, table, rows, 0, cache)
    if cache.cut_off == cut_off:
        return groups
    chain = [(table, rows)]
    while (below := _only_source(circuit, *chain[-1])) is not None:
        chain.append(below)
    for lower in reversed(chain[:: _DEEP // 2]):
        groups = _leaves(circuit, *lower, 0, cache)
    return groups


def _only_source(circuit: Runtime, table: Table, rows: RowIds) -> tuple[Table, Array] | None:
    """The inputs of some rows, where each is made of one row of one table."""
    maker = circuit.makers[id(table)]
    if isinstance(maker, Events):
        return None
    ways = [(some, sources) for some, sources in maker.sources(rows) if len(some)]
    if len(ways) != 1 or len(ways[0][0]) != len(rows) or len(ways[0][1]) != 1:
        return None
    ((source, parents, owners),) = ways[0][1]
    return (source, parents) if owners is None else None


def _leaves(circuit: Runtime, table: Table, rows: RowIds, depth: int, cache: LeavesCache) -> list[tuple[Array, Leaves]]:
    """The input events of rows, in groups that are made alike; rows in none of them are left to be traced one by one."""
    maker = circuit.makers[id(table)]
    if isinstance(maker, Events):
        return [(np.arange(len(rows)), [(maker, rows)])]
    if isinstance(maker, Derived) and (held := cache.find(table, rows)) is not None:
        return held
    if depth >= _DEEP:
        cache.cut_off += 1
        return []
    cut_off = cache.cut_off
    leaves = _made_of(circuit, maker, rows, depth, cache)
    if isinstance(maker, Derived) and cache.cut_off == cut_off:
        cache.store(table, rows, leaves)
    return leaves


def _made_of(
    circuit: Runtime, maker: Operator, rows: RowIds, depth: int, cache: LeavesCache
) -> list[tuple[Array, Leaves]]:
    result: list[tuple[Array, Leaves]] = []
    for some, sources in maker.sources(rows):
        groups: list[tuple[Array, Leaves]] = [(some, [])] if len(some) else []
        for source, parents, owners in sources:
            groups = [
                (_at(group, members), [*(_leaf(leaf, members, len(group)) for leaf in leaves), *more])
                for group, leaves in groups
                for members, more in (
                    _leaves(circuit, source, _at(parents, group), depth + 1, cache)
                    if owners is None
                    else _several(circuit, source, parents, owners, group, len(rows), depth + 1, cache)
                )
                if len(leaves) + len(more) <= _WIDE
            ]
        result += groups
    return result


def _several(
    circuit: Runtime,
    source: Table,
    parents: RowIds,
    owners: RowIds,
    group: Array,
    size: int,
    depth: int,
    cache: LeavesCache,
) -> list[tuple[Array, Leaves]]:
    """The input events of rows that are made of several rows of a table each, as one column."""
    number = np.full(size, -1, np.int64)
    number[group] = np.arange(len(group))
    mine = np.flatnonzero(number[owners] >= 0)
    parents, owners = parents[mine], number[owners[mine]]
    traced, whole = np.zeros(len(parents), bool), TraceInputs([])
    for some, leaves in _leaves(circuit, source, parents, depth, cache):
        traced[some] = True
        for column, leaf in enumerate(leaves):
            single = (
                leaf
                if isinstance(leaf, TraceInputs)
                else TraceInputs([(*leaf, np.arange(len(some)), np.zeros(len(some), np.int64))])
            )
            whole.parts.extend(single.below(some, owners, column).parts)
    covered = np.ones(len(group), bool)
    covered[owners[~traced]] = False
    members = np.flatnonzero(covered)
    return [(members, [whole if len(members) == len(group) else whole.of(members, len(group))])] if len(members) else []


def _leaf(leaf: tuple[Events, Array] | TraceInputs, rows: RowIds, size: int) -> tuple[Events, Array] | TraceInputs:
    """Some rows of a column of `size`."""
    if isinstance(leaf, TraceInputs):
        return leaf if len(rows) == size else leaf.of(rows, size)
    return leaf[0], _at(leaf[1], rows)


def _at(column: Array, rows: RowIds) -> Array:
    """Some rows of a column; they are in ascending order, so that as many as there are are all of them."""
    return column if len(rows) == len(column) else column[rows]


def standing_rows(circuit: Runtime, until: int | None) -> dict[str, tuple[Derived, int]]:
    """The rows of all derived events that stand, by id; with `until`, of those that end by it."""
    by_id: dict[str, tuple[Derived, int]] = {}
    for events in circuit.derived.values():
        table = events.out.table
        for row in table.standing().tolist():
            if until is None or table.data[END, row] <= until:
                by_id[circuit.event((table, row)).id] = (events, row)
    return by_id
