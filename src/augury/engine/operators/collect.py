"""Aggregation: `while w: collect q` and `last n: collect q`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from augury.algebra.aggregates import ORDER_FREE, aggregate_of, of_nothing
from augury.algebra.matching import Named
from augury.algebra.nodes import Rule
from augury.algebra.rule_terms import later_variables
from augury.algebra.scalar import RowError
from augury.algebra.terms import Aggregate, variables
from augury.columns.dictionary import OPEN
from augury.columns.frame import Frame, View, frame_of
from augury.columns.kernels.pairs import probe_window
from augury.columns.table import END, FIELDS, LEFT, RANK, START, Index, Links, Table
from augury.engine.operators.base import Operator, Part, Ways
from augury.engine.operators.map import UNTIL
from augury.engine.operators.numbers import is_plain, numbers_of
from augury.engine.operators.windows import in_last, in_windows
from augury.engine.saved import check_numbers, ragged, require, unragged
from augury.errors import RunError
from augury.jit import Array
from augury.model import OrderKey, Value, order_key
from augury.optimiser.implied_bounds import FAR, Back

if TYPE_CHECKING:
    from augury.engine.circuit import Circuit
    from augury.engine.horizon import Horizon


class Collect(Operator):
    """For each row, and each value of what makes groups, the row with the group's variables and totals.

    A row whose window a changed occurrence lies in is computed anew, once a step. Its table holds rows with what is
    used later; what was collected is in `members`. With `or none` a row that collects nothing has a group, too.
    """

    kind = "collect"

    def __init__(
        self,
        circuit: Circuit,
        rows: View,
        collected: View,
        out: View,
        rule: Rule,
        number: int,
        keys: tuple[str, ...],
        shared: tuple[str, ...],
        several: bool,
        several_collected: bool,
        back: Back | None,
    ) -> None:
        collect = rule.collects[number]
        self.collect, self.keys = collect, keys
        self.open = tuple(v for v in shared if v not in keys)
        self.others = sorted(v for v in later_variables(rule, number) if v in rows.vars or v in collect.by)
        # What is collected is put in the order of events only where that can be seen.
        free = {total.aggregate.function for total in collect.totals} <= ORDER_FREE
        self.ordered = collect.last is not None or not free
        self.aggregated = sorted({v for total in collect.totals for v in variables(total.aggregate)})
        super().__init__(circuit, (rows, collected), out, rule.label)
        self.members: dict[int, tuple[int, ...]] = {}
        self.several = several
        self.back_for, self.back = back, FAR if back is None else back(circuit.lengths)
        self.longest = 0  # of the windows so far
        self.everyone = np.ones(16, np.uint8)
        self.same: dict[OrderKey, dict[int, None]] = {}  # rows made of the same events, where there may be several
        self.fields = tuple(np.array([view.vars[v] for v in keys], np.int64) for view in (rows, collected))
        self.index = collected.table.index(tuple(collected.vars[v] for v in keys))
        self.plain = not (several or several_collected) and is_plain(collect, self.others, rows, collected)
        self.order_field = rows.labels[self.window][1]
        self.row_index = rows.table.index(tuple(rows.vars[v] for v in keys), self.order_field)
        self.room = np.empty((2, 64), np.int64)
        nothing_else = not (self.open or collect.where or several_collected)
        self.of_last = (  # the fields by which `last n` counts, where nothing else decides what is collected
            [collected.vars[v] for v in dict.fromkeys((*keys, *self.others)) if v in collected.vars]
            if collect.last is not None and collect.window is None and nothing_else
            else None
        )
        circuit.asks(self, collect.where)

    @property
    def window(self) -> str:
        """The label of the times that are collected from; those of `last n` reach back without end."""
        return self.collect.window or UNTIL

    def make_links(self) -> list[Links | None]:
        return [Links(self.inputs[0].table, self.out.table, LEFT), None]

    def step(self) -> None:
        touched: dict[int, None] = {}
        lost = self.losses(0)
        if len(lost):
            self.links[0].kill(lost)  # type: ignore[union-attr]
            for row in lost.tolist() if self.several else ():
                others = self.same.get(self.made_of(row), {})
                others.pop(row, None)
                touched.update(others)
        changed = [self.losses(1), self.stale(1), self.gains(1)]
        for q in changed:
            if len(q):
                touched.update(dict.fromkeys(self.rows_around(q)))
        rows = self.gains(0)
        if len(rows):
            low, high = (self.inputs[0].table.data[f, rows] for f in self.inputs[0].labels[self.window])
            self.longest = max(self.longest, int((high - low).max()))
        new = rows.tolist()
        touched.update(dict.fromkeys(new))
        if self.several:
            for row in new:
                self.same.setdefault(self.made_of(row), {})[row] = None
            touched = {other: None for row in touched for other in self.same.get(self.made_of(row), ())}
        if touched:
            self.compute([r for r in touched if self.inputs[0].table.alive[r]])

    def made_of(self, row: int) -> OrderKey:
        """What makes two rows one occurrence: their events, what they have collected aside, and the times of labels."""
        view = self.inputs[0]
        times = tuple(int(view.table.data[f, row]) for ends in view.labels.values() for f in ends)
        table = view.table
        while isinstance(maker := self.circuit.maker(table), Collect):
            row, table = int(table.data[LEFT, row]), maker.inputs[0].table
        return (self.circuit.parts(table, row), times)

    def rows_around(self, q: Array) -> list[int]:
        """The rows whose window has an occurrence inside; an occurrence may be one that has just died."""
        rows, collected = self.inputs
        low, high = rows.labels[self.window]
        bounds = np.array([(1, low, 0, START, 0), (0, END, 1, high, 0)], np.int64)
        found: list[int] = []
        if len(self.everyone) < collected.table.n:
            self.everyone = np.ones(2 * collected.table.n, np.uint8)
        for pairs in self.pairs(
            q,
            collected,
            self.everyone,
            rows,
            self.row_index,
            self.fields[1],
            self.fields[0],
            END,
            START,
            self.longest,
            self.seen[0],
            bounds,
        ):
            found += pairs[1].tolist()
        return found

    def pairs(
        self,
        given: Array,
        mine: View,
        alive: Array,
        other: View,
        index: Index,
        fields: Array,
        ofields: Array,
        low: int,
        high: int,
        slack: int,
        limit: int,
        bounds: Array,
        most: int = -1,
    ) -> Iterator[Array]:
        first, dictionary = 0, self.circuit.tables.dictionary
        if len(given):
            index.extend()
        while first < len(given) and index.count:
            came, count, touched = probe_window(
                given, first, mine.table.data, fields, alive, other.table.data, ofields, other.table.alive, index.order,
                index.buckets, index.groups, index.prev, index.after, index.call(), dictionary.canon, dictionary.nullish,
                low, high, slack, limit, bounds, most, self.room,
            )  # fmt: skip
            self.touched += touched
            self.circuit.tables.guard.paired(count)
            if count:
                yield self.room[:, :count].copy()
            if came < len(given):
                self.room = np.empty((2, 4 * self.room.shape[1]), np.int64)
            first = came

    def in_window(self, rows: Array, most: int = -1) -> Iterator[Array]:
        """Pairs of a row and an occurrence in its window; with `most`, that many of each row, the latest ones."""
        mine, collected = self.inputs
        low, high = mine.labels[self.window]
        bounds, last = np.array([(0, low, 1, START, 0)], np.int64), collected.table.n
        alive, index, (fields, ofields) = mine.table.alive, self.index, self.fields
        return self.pairs(rows, mine, alive, collected, index, fields, ofields, low, high, 0, last, bounds, most)

    def compute(self, rows: list[int]) -> None:
        """Computes rows anew; what they gave before and give no longer is taken back."""
        links, out = self.links[0], self.out.table
        assert links is not None
        results = self.at_once(np.array(sorted(rows), np.int64)) if self.plain else None
        if results is None:
            groups = self.groups(np.array(rows, np.int64))
            results = [given for group in groups if (given := self.aggregated_row(group)) is not None]
        stale = np.array([r for row in rows for r in links.of(row)], np.int64)
        before = {
            (out.data[[START, END, LEFT], r].tobytes(), out.data[FIELDS:, r].tobytes(), self.members[r]): r
            for r in stale.tolist()
        }
        new: list[tuple[Array, tuple[int, ...]]] = []
        for given, members in results:
            same = before.pop((given[[START, END, LEFT]].tobytes(), given[FIELDS:].tobytes(), members), None)
            if same is None:
                new.append((given, members))
        gone = np.array(sorted(before.values()), np.int64)
        if len(gone):
            out.kill(gone)
        if new:
            at = out.n
            for i, (_, members) in enumerate(new):
                self.members[at + i] = members
            out.append(np.stack([given for given, _ in new], axis=1))

    def at_once(self, rows: Array) -> list[tuple[Array, tuple[int, ...]]] | None:
        """What rows give, computed column by column, where all that is aggregated are numbers of one kind."""
        pairs = np.concatenate([np.empty((2, 0), np.int64), *self.in_window(rows)], axis=1)
        self.circuit.context.name_events = None
        kept = self.circuit.context.select(self.collect.where, self.frame(pairs), self.rule).left
        at, q = pairs[0][kept], pairs[1][kept]
        if not len(at) or (self.collect.none and len(np.unique(at)) < len(rows)):
            return None if self.collect.none else []
        order = np.argsort(at, kind="stable")
        at, q = at[order], q[order]
        first = np.flatnonzero(np.r_[True, at[1:] != at[:-1]])
        found = numbers_of(self.collect.totals, self.inputs[1], q, first)
        return None if found is None else self.rows_of(at[first], q, first, found)

    def rows_of(
        self, rows: Array, q: Array, first: Array, found: dict[str, Array]
    ) -> list[tuple[Array, tuple[int, ...]]]:
        """The rows of the output, with what each has collected."""
        view, dictionary = self.inputs[0], self.circuit.tables.dictionary
        data, rank = view.table.data, self.inputs[1].table.data[RANK, q]
        given = np.empty((self.out.table.width, len(rows)), np.int64)
        given[START], given[END], given[LEFT], given[LEFT + 1] = data[START, rows], data[END, rows], rows, -1
        given[RANK] = np.maximum(data[RANK, rows], np.maximum.reduceat(rank, first))
        for name, at in self.out.vars.items():
            given[at] = dictionary.encode_column(found[name]) if name in found else data[view.vars[name], rows]
        for name, ends in self.out.labels.items():
            for at, field in zip(ends, view.labels[name], strict=True):
                given[at] = data[field, rows]
        members = np.split(q, first[1:])
        return [(given[:, i], tuple(members[i].tolist())) for i in range(len(rows))]

    def groups(self, rows: Array) -> list[_Group]:
        """What each row collects, group by group."""
        every, last = rows, self.collect.last
        mine = set(self.inputs[0].vars)
        if last is None or not set(self.others) <= mine:
            return self.with_empty(every, self.look(rows, -1)[0])
        # The last n are looked for from the end, in growing portions.
        found: list[_Group] = []
        most = 2 * last
        while len(rows):
            groups, floors = self.look(rows, most)
            enough = {group.row for group in groups if group.has(last, floors.get(group.row))}
            unfinished = {
                leader for r in rows.tolist() if (leader := self.leader(r)) in floors and leader not in enough
            }
            found += [group for group in groups if group.row not in unfinished]
            rows = np.array([r for r in rows.tolist() if self.leader(r) in unfinished], np.int64)
            most *= 8
        return self.with_empty(every, found)

    def with_empty(self, rows: Array, found: list[_Group]) -> list[_Group]:
        """With `or none`, also a group of nothing for each row that has none."""
        if not self.collect.none:
            return found
        groups = {(group.row, group.values): group for group in found}
        frame = frame_of(self.inputs[0], rows)
        decode = self.circuit.tables.dictionary.decode
        for i, row in enumerate(rows.tolist()):
            values = tuple(order_key(decode(int(frame.vars[v][i]))) for v in self.others)
            key = (self.leader(row), values)
            if key not in groups:
                groups[key] = _Group(*key, row, self.circuit.context.binding(frame, i))
        return list(groups.values())

    def leader(self, row: int) -> int:
        """The first of the rows that are made of the same events."""
        return min(self.same[self.made_of(row)]) if self.several else row

    def look(self, rows: Array, most: int) -> tuple[list[_Group], dict[int, int]]:
        """The groups of rows that look at so many occurrences at most; and for those that may have more, how far back
        they have looked."""
        groups: dict[OrderKey, _Group] = {}
        floors: dict[int, int] = {}
        decode = self.circuit.tables.dictionary.decode
        r = self.inputs[1].table.data
        for pairs in self.in_window(rows, most):
            if most > 0:
                at, counts = np.unique(pairs[0], return_counts=True)
                for row in at[counts >= most].tolist():
                    leader, floor = self.leader(row), int(r[END, pairs[1][pairs[0] == row]].min())
                    floors[leader] = max(floors.get(leader, floor), floor)
            self.circuit.context.name_events = None
            frame = self.circuit.context.select(self.collect.where, self.frame(pairs), self.rule)
            at, q = pairs[0][frame.left], pairs[1][frame.left]
            columns = {v: c.tolist() for v, c in frame.vars.items() if v in self.others or v in self.aggregated}
            for i, (row, member) in enumerate(zip(at.tolist(), q.tolist(), strict=True)):
                values = tuple(order_key(decode(columns[v][i])) for v in self.others)
                key = (self.leader(row), values)
                group = groups.get(key)
                if group is None:
                    group = groups[key] = _Group(*key, row, self.circuit.context.binding(frame, i))
                    group.codes = {v: columns[v][i] for v in self.collect.by}
                seen = tuple(
                    () if v not in columns or columns[v][i] == OPEN else order_key(decode(columns[v][i]))
                    for v in self.aggregated
                )
                identity = (self.circuit.parts(self.inputs[1].table, member), seen)
                if identity not in group.members:
                    bound = {
                        v: decode(columns[v][i]) for v in self.aggregated if v in columns and columns[v][i] != OPEN
                    }
                    group.members[identity] = Member(
                        self.circuit, int(r[END, member]), int(r[START, member]), member, identity[0], bound
                    )
        return list(groups.values()), floors

    def frame(self, pairs: Array) -> Frame:
        """The collected occurrences, each with the variables and labels of its row."""
        mine, collected = self.inputs
        rows, q = pairs
        one, other = mine.table.data, collected.table.data
        dictionary, mask = self.circuit.tables.dictionary, np.ones(len(rows), bool)
        both: dict[str, Array] = {v: other[f, q] for v, f in collected.vars.items()}
        for name, f in mine.vars.items():
            x = one[f, rows]
            if name in self.open:
                agreed, x = dictionary.agree(x, both[name])
                mask &= agreed
            both[name] = x
        every = np.arange(len(rows))
        labels = {n: (one[s, rows], one[e, rows]) for n, (s, e) in mine.labels.items()}
        if self.collect.label is not None:
            labels[self.collect.label] = (other[START, q], other[END, q])
        return Frame(other[START, q], other[END, q], every, every, other[RANK, q], both, labels).where(mask)

    def aggregated_row(self, group: _Group) -> tuple[Array, tuple[int, ...]] | None:
        """The row that a group gives; none where its aggregates cannot be computed, or `exactly n` has fewer."""
        view, data = self.inputs[0], self.inputs[0].table.data
        chosen = sorted(group.members.values()) if self.ordered else list(group.members.values())
        start, end = int(data[START, group.source]), int(data[END, group.source])
        if self.collect.last is not None:
            different = list(dict.fromkeys(m.parts for m in chosen))[-self.collect.last :]
            if self.collect.exactly and len(different) < self.collect.last:
                return None
            kept = set(different)
            chosen = [m for m in chosen if m.parts in kept]
            start, end = min([start, *(m.start for m in chosen)]), max([end, *(m.end for m in chosen)])
        totals = self.totals(group, chosen)
        if totals is None:
            return None
        found = self.inputs[1].table.data[RANK]
        given = np.empty(self.out.table.width, np.int64)
        given[[START, END, LEFT, LEFT + 1]] = start, end, group.row, -1
        given[RANK] = max([int(data[RANK, group.source]), *(int(found[m.row]) for m in chosen)])
        for name, at in self.out.vars.items():
            given[at] = totals.get(name, group.codes.get(name, OPEN))
            if name not in totals and name not in group.codes:
                given[at] = data[view.vars[name], group.source]
        for name, ends in self.out.labels.items():
            for at, field in zip(ends, view.labels[name], strict=True):
                given[at] = data[field, group.source]
        return given, tuple(m.row for m in chosen)

    def totals(self, group: _Group, chosen: list[Member]) -> dict[str, int] | None:
        """The aggregates over what a group has collected, as codes."""
        context, data, view = self.circuit.context, self.inputs[0].table.data, self.inputs[0]
        labels = {n: Named(int(data[s, group.source]), int(data[e, group.source])) for n, (s, e) in view.labels.items()}
        context.scalars.rule = self.rule
        found: dict[str, int] = {}
        try:
            for total in self.collect.totals:
                part = total.aggregate
                if not chosen:
                    found[total.name] = context.encode(of_nothing(part.function))
                    continue
                given = [self.given(part, group, m, labels) if part.args else True for m in chosen]
                value = aggregate_of(context.scalars.aggregates[part.function], given, part.distinct)
                found[total.name] = context.encode(value)
        except RowError as error:
            context.report(self.rule, str(error), group.binding)
            return None
        except RunError:
            raise
        except Exception as error:
            raise RunError(
                f"the aggregate `{part.function}` raised {type(error).__name__}: {error}\n  in rule `{self.rule}`"
            ) from error
        return found

    def given(self, part: Aggregate, group: _Group, member: Member, labels: dict[str, Named]) -> Value:
        """What an aggregate is given of one collected occurrence."""
        own = {self.collect.label: Named(member.start, member.end)} if self.collect.label is not None else {}
        scalars = self.circuit.context.scalars
        return scalars.evaluate(part.args[0], {**group.binding, **member.bound}, {**labels, **own})

    def rebuild(self) -> None:
        super().rebuild()
        self.members = {row: members for row, members in self.members.items() if row < self.out.table.n}
        self.same, table = {}, self.inputs[0].table
        low, high = (table.data[f, : table.n] for f in self.inputs[0].labels[self.window])
        self.longest = int((high - low).max()) if table.n else 0
        for row in np.flatnonzero(table.alive[: table.n]).tolist() if self.several else ():
            self.same.setdefault(self.made_of(row), {})[row] = None

    def parents(self) -> list[tuple[int, Table]]:
        return [(LEFT, self.inputs[0].table)]

    def part_rows(self, rows: Array) -> tuple[Table, Array] | None:
        return None

    def sources(self, rows: Array) -> Ways:
        ((some, given),) = super().sources(rows)
        members = [self.members.get(row, ()) for row in rows.tolist()]
        owners = np.repeat(np.arange(len(rows)), [len(one) for one in members])
        collected = np.fromiter(chain.from_iterable(members), np.int64, len(owners))
        return [(some, [*given, (self.inputs[1].table, collected, owners)])]

    def wants(self, port: int, horizon: Horizon) -> Array | None:
        if self.of_last is None or self.collect.last is None:
            return in_windows(self, port, horizon)
        return in_last(self, self.collect.last, self.of_last, port, horizon)

    def remembers(self, horizon: Horizon) -> bool:
        return self.of_last is None and horizon.learned(self.back, self.back_for) >= FAR

    def keep_parents(self, keep: dict[int, Array]) -> None:
        super().keep_parents(keep)
        kept = keep[id(self.out.table)]
        members = [m for row, found in self.members.items() if row < len(kept) and kept[row] for m in found]
        keep[id(self.inputs[1].table)][members] = True

    def moved(self, places: Mapping[int, Array]) -> None:
        super().moved(places)
        own, place = places[id(self.out.table)], places[id(self.inputs[1].table)]
        self.members = {
            int(own[row]): tuple(int(place[m]) for m in found)
            for row, found in self.members.items()
            if row < len(own) - 1 and own[row] >= 0
        }

    def state(self, number: Mapping[int, int]) -> Any:
        return ragged(self.members.items())

    def fill(self, state: Any, operators: Sequence[Operator]) -> None:
        members = unragged(state, self.out.table.n)
        check_numbers(state["of"], 0, self.inputs[1].table.n, "something collected that is not there")
        collected = state["of"].tolist()
        self.members = {row: tuple(collected[lo:hi]) for row, lo, hi in members}

    def check(self) -> None:
        super().check()
        table = self.out.table
        known = np.zeros(table.n, bool)
        known[np.fromiter(self.members, np.int64, len(self.members))] = True
        require(not bool((table.alive[: table.n].astype(bool) & ~known).any()), "a row that has not collected anything")

    def parts(self, row: int) -> tuple[Part, ...]:
        found = dict.fromkeys(self.circuit.parts(self.inputs[0].table, int(self.out.table.data[LEFT, row])))
        for member in self.members.get(row, ()):
            found.update(dict.fromkeys(self.circuit.parts(self.inputs[1].table, member)))
        return tuple(found)


class _Group:
    """What a row collects under one value of what is used later.

    `row` stands for all that are made of the same events; `source` is one of them that has these values, and `codes`
    are those that only the collected have.
    """

    def __init__(self, row: int, values: OrderKey, source: int, binding: dict[str, Value]) -> None:
        self.row, self.values, self.source, self.binding = row, values, source, binding
        self.codes: dict[str, int] = {}
        self.members: dict[OrderKey, Member] = {}

    def has(self, count: int, floor: int | None) -> bool:
        """Whether the last `count` are among the members, which were looked at back to `floor`."""
        if floor is None:
            return True
        ends = sorted({m.parts: m.end for m in self.members.values()}.values(), reverse=True)
        return len(ends) >= count and ends[count - 1] > floor


class Member:
    """A collected occurrence; in the order of events, which is looked up only where times tie."""

    __slots__ = ("bound", "circuit", "end", "parts", "row", "start")

    def __init__(
        self, circuit: Circuit, end: int, start: int, row: int, parts: tuple[Part, ...], bound: dict[str, Value]
    ) -> None:
        self.circuit, self.end, self.start, self.row, self.parts, self.bound = circuit, end, start, row, parts, bound

    @property
    def order(self) -> OrderKey:
        values = tuple(sorted((v, order_key(x)) for v, x in self.bound.items()))
        return (tuple(self.circuit.event(p).order for p in self.parts), values)

    def __lt__(self, other: Member) -> bool:
        mine, its = (self.end, self.start), (other.end, other.start)
        return mine < its or (mine == its and self.order < other.order)
