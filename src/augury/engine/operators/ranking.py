"""Rankings: `TOP n BY e PER (V) AS R`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from augury.algebra.rule_terms import uses_place
from augury.algebra.terms import Const, Var
from augury.core.arrays import Array, RowIds
from augury.core.bounds import TIME_LIMIT
from augury.core.model import OrderKey, order_key
from augury.engine.operators.base import Operator
from augury.engine.operators.derive import starts
from augury.planner.specs import RankingSpec
from augury.storage.frame import frame_of, store
from augury.storage.grouping import in_groups
from augury.storage.table import LEFT

if TYPE_CHECKING:
    from augury.engine.horizon import Horizon
    from augury.engine.runtime import Runtime

_Key = tuple[int, ...]


class Ranking(Operator):
    """Of rows with one cover and one value of `per`, those with the first places, over their cover, with their place.

    Rows are held by the table of the ranking that they belong to. A table that a changed row belongs to is put in order
    anew, once a step, and just what has another place than before is given again. Where the first n are asked for by a
    number, just the rows that may be among them are looked at.
    """

    def __init__(self, runtime: Runtime, spec: RankingSpec) -> None:
        super().__init__(runtime, spec)
        rule = spec.head
        assert rule.top is not None
        self.head, self.top = rule, rule.top
        self.tables: dict[_Key, list[Array]] = {}
        self.given: dict[
            _Key, dict[int, int]
        ] = {}  # for each table, the rows that have a place, and what was given for them
        plain = all(isinstance(a, Var | Const) for a in rule.args) and rule.since in (None, "END")
        self.few = plain and isinstance(self.top.by, Var) and self.top.count is not None
        self.counted: set[int] = set()  # rows whose failures, if any, have been reported

    def step(self) -> None:
        touched: dict[_Key, None] = {}
        lost = self.losses(0)
        if len(lost):
            self.links[0].kill(lost)
            for key, rows in self.by_table(lost):
                touched[key] = None
                for row in rows.tolist():
                    self.given.get(key, {}).pop(row, None)
        gained = self.gains(0)
        for key, rows in self.by_table(gained) if len(gained) else ():
            self.tables.setdefault(key, []).append(rows)
            touched[key] = None
        for key in touched:
            self.rank(key)

    def by_table(self, rows: RowIds) -> list[tuple[_Key, Array]]:
        """Rows by the table of the ranking that they belong to: their cover, and the values of `per`."""
        frame = frame_of(self.inputs[0], rows)
        canonical = self.runtime.tables.dictionary.canonical
        keys = [*frame.cover(self.head.covers), *(canonical(frame.vars[v]) for v in self.top.per)]
        order, first = in_groups(keys)
        groups = np.split(order, first[1:])
        return [(tuple(int(key[some[0]]) for key in keys), rows[some]) for some in groups]

    # Order

    def rank(self, key: _Key) -> None:
        """Puts a table in order: what was given in another place is taken back, what is new there is given."""
        rows = np.concatenate(self.tables.get(key, [np.zeros(0, np.int64)]))
        rows = rows[self.inputs[0].table.alive[rows].astype(bool)]
        if len(rows):
            self.tables[key] = [rows]
        else:
            self.tables.pop(key, None)
        places = self.places(rows)
        before = self.given.pop(key, {})
        field = self.out.vars.get(self.top.place or "")
        gone = {
            row: out_row
            for row, out_row in before.items()
            if row not in places or (field is not None and self.place_at(out_row, field) != places[row])
        }
        if gone:
            self.out.table.kill(np.array(sorted(gone.values()), np.int64))
        kept = {row: out_row for row, out_row in before.items() if row not in gone}
        new = [row for row in places if row not in kept]
        if new:
            first = self.out.table.n
            self.give(np.array(new, np.int64), [places[row] for row in new])
            kept |= {row: first + i for i, row in enumerate(new)}
        if kept:
            self.given[key] = kept

    def places(self, rows: RowIds) -> dict[int, int]:
        """The rows that have a place, in their order, each with it; equal ones share theirs."""
        count, size = self.top.count, len(rows)
        look = size if count is None or not self.few else min(size, 4 * count + 16)
        while True:
            ordered = self.ordered(self.likely(rows, look))
            places: dict[int, int] = {}
            place, last = 0, None
            for row, order in ordered:
                place += order != last
                if count is not None and place > count and not self.is_tie(order, last):
                    return places
                places[row], last = place, order
            if look >= size:
                return places
            look = min(size, 8 * look)

    def is_tie(self, order: OrderKey, before: OrderKey | None) -> bool:
        """Whether a row behind the n-th is given: its value equals that of the row before it."""
        return self.top.ties and before is not None and not order[0] and order[:2] == before[:2]

    def likely(self, rows: RowIds, count: int) -> Array:
        """So many of the rows that come first, and all that are equal to the last of them."""
        if count >= len(rows):
            return rows
        assert isinstance(self.top.by, Var)
        view, dictionary = self.inputs[0], self.runtime.tables.dictionary
        numbers = dictionary.numeric(view.table.data[view.vars[self.top.by.name], rows])
        if numbers is None:
            return rows
        at = count - 1 if self.top.ascending else len(rows) - count
        limit = np.partition(numbers, at)[at]
        kept: Array = rows[numbers <= limit] if self.top.ascending else rows[numbers >= limit]
        return kept

    def ordered(self, rows: RowIds) -> list[tuple[int, OrderKey]]:
        """Rows in the order of the ranking, with what they are ordered by. What fails is reported when it comes, once."""
        context, fresh = self.runtime.context, [] if self.few else [r for r in rows.tolist() if r not in self.counted]
        self.counted.update(fresh)
        if self.few or len(fresh) == len(rows):
            return self.computed(rows)
        if fresh:
            self.computed(np.array(fresh, np.int64))
        report, context.report = context.report, lambda *_: None
        try:
            return self.computed(rows)
        finally:
            context.report = report

    def computed(self, rows: RowIds) -> list[tuple[int, OrderKey]]:
        """Rows in the order of the ranking; without those for which that cannot be computed."""
        context, decode = self.runtime.context, self.runtime.tables.dictionary.decode
        context.name_events = self.name_events
        frame = frame_of(self.inputs[0], rows)
        self.touched += len(rows)
        start, end = frame.cover(self.head.covers)
        by, ok = context.values(self.top.by, frame, self.rule)
        begins, timely = starts(context, self.head.since, frame, start, end, self.rule)
        ok = ok & timely & (start > -TIME_LIMIT) & (end < TIME_LIMIT)
        columns: list[Array] = []
        for arg in (a for a in self.head.args if not uses_place(self.head, a)):
            codes, computed = context.values(arg, frame, self.rule)
            columns.append(codes)
            ok &= computed
        found = list[tuple[int, OrderKey]]()
        for i in np.flatnonzero(ok).tolist():
            value = decode(int(by[i]))
            args = tuple(order_key(decode(int(c[i]))) for c in columns)
            found.append((int(rows[i]), (value is None, order_key(value), int(begins[i]), args)))
        found.sort(key=lambda one: one[1][2:])  # the start that the event will have, then its arguments
        found.sort(key=lambda one: one[1][1], reverse=not self.top.ascending)
        found.sort(key=lambda one: one[1][0])  # null last
        return found

    def place_at(self, row: int, field: int) -> object:
        return self.runtime.tables.dictionary.decode(int(self.out.table.data[field, row]))

    def give(self, rows: RowIds, places: list[int]) -> None:
        frame = frame_of(self.inputs[0], rows)
        frame.start, frame.end = frame.cover(self.head.covers)
        if self.top.place is not None:
            frame.vars[self.top.place] = np.array([self.runtime.context.encode(p) for p in places], np.int64)
        store(frame, self.out)

    # What it keeps

    def rebuild(self) -> None:
        super().rebuild()
        self.tables, self.given = {}, {}
        self.counted = set(self.inputs[0].table.standing().tolist())
        table, out = self.inputs[0].table, self.out.table
        rows = table.standing()
        for key, some in self.by_table(rows) if len(rows) else ():
            self.tables[key] = [some]
        given = out.standing()
        held = dict(zip(out.data[LEFT, given].tolist(), given.tolist(), strict=True))
        for key, some in self.by_table(out.data[LEFT, given]) if len(given) else ():
            self.given[key] = {row: held[row] for row in some.tolist()}

    def wants(self, port: int, horizon: Horizon) -> Array:
        """The rows of tables in which a place may still change."""
        view = self.inputs[0]
        frame = frame_of(view, np.arange(view.table.n))
        return frame.cover(self.head.covers)[1] >= horizon.since[id(view.table)]
