"""Rankings: `TOP n BY e PER (V) AS R`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from augury.algebra.nodes import Rule
from augury.algebra.rule_terms import uses_place
from augury.columns.frame import LONGEST, Frame, View, frame_of, store
from augury.engine.operators.base import Operator
from augury.engine.operators.derive import starts
from augury.jit import Array
from augury.model import OrderKey, order_key

if TYPE_CHECKING:
    from augury.engine.circuit import Circuit
    from augury.engine.horizon import Horizon


class Ranking(Operator):
    """Of rows with one cover and one value of `per`, those with the first places, over their cover, with their place.

    The rows of each table of the ranking are held with what they are ordered by; a table that a changed row belongs to
    is put in order anew, once a step, and just what has another place than before is given again.
    """

    kind = "top"

    def __init__(self, circuit: Circuit, rows: View, out: View, rule: Rule) -> None:
        assert rule.top is not None
        self.head, self.top = rule, rule.top
        self.tables: dict[OrderKey, dict[int, OrderKey]] = {}  # row → what it is ordered by
        self.table_of: dict[int, OrderKey] = {}
        super().__init__(circuit, (rows,), out, rule.label)

    def step(self) -> None:
        touched: dict[OrderKey, None] = {}
        lost = self.losses(0)
        if len(lost):
            self.links[0].kill(lost)  # type: ignore[union-attr]
        for row in lost.tolist():
            key = self.table_of.pop(row, None)
            if key is not None:
                del self.tables[key][row]
                touched[key] = None
        gained = self.gains(0)
        if len(gained):
            touched |= dict.fromkeys(self.enter(gained))
        for key in touched:
            self.rank(key)

    def enter(self, rows: Array) -> list[OrderKey]:
        """Puts rows into the tables of their covers; those whose order cannot be computed are in none."""
        entered = list[OrderKey]()
        for row, key, order in self.ordered(rows):
            self.tables.setdefault(key, {})[row] = order
            self.table_of[row] = key
            entered.append(key)
        return entered

    def ordered(self, rows: Array) -> list[tuple[int, OrderKey, OrderKey]]:
        """For each row the table it belongs to, and what it is ordered by."""
        context, decode = self.circuit.context, self.circuit.tables.dictionary.decode
        context.name_events = self.name_events
        frame = frame_of(self.inputs[0], rows)
        start, end = self.cover(frame)
        by, ok = context.values(self.top.by, frame, self.rule)
        begins, timely = starts(context, self.head.since, frame, start, end, self.rule)
        ok &= timely & (start > -LONGEST) & (end < LONGEST)
        columns: list[Array] = []
        for arg in (a for a in self.head.args if not uses_place(self.head, a)):
            codes, computed = context.values(arg, frame, self.rule)
            columns.append(codes)
            ok &= computed
        per = [frame.vars[v] for v in self.top.per]
        found = list[tuple[int, OrderKey, OrderKey]]()
        for i in np.flatnonzero(ok).tolist():
            value = decode(int(by[i]))
            args = tuple(order_key(decode(int(c[i]))) for c in columns)
            key = (int(start[i]), int(end[i]), tuple(order_key(decode(int(c[i]))) for c in per))
            found.append((int(rows[i]), key, (value is None, order_key(value), int(begins[i]), args)))
        return found

    def cover(self, frame: Frame) -> tuple[Array, Array]:
        start, end = frame.start, frame.end
        for label in self.head.covers:
            start, end = np.minimum(start, frame.labels[label][0]), np.maximum(end, frame.labels[label][1])
        return start, end

    def rank(self, key: OrderKey) -> None:
        """Puts a table in order: what was given in another place is taken back, what is new there is given."""
        table, out, links = self.tables[key], self.out.table, self.links[0]
        assert links is not None
        if not table:
            del self.tables[key]
        rows = sorted(table, key=lambda row: table[row][2:])
        rows.sort(key=lambda row: table[row][1], reverse=not self.top.ascending)
        rows.sort(key=lambda row: table[row][0])
        self.touched += len(rows)
        places: dict[int, int] = {}
        place, last = 0, None
        for row in rows:
            place += table[row] != last
            if self.top.count is not None and place > self.top.count:
                break
            places[row], last = place, table[row]
        before = {row: out_row for row in table for out_row in links.of(row)}
        field = self.out.vars.get(self.top.place or "")
        gone = [
            out_row
            for row, out_row in before.items()
            if row not in places or (field is not None and self.place_at(out_row, field) != places[row])
        ]
        if gone:
            out.kill(np.array(sorted(gone), np.int64))
        kept = {row for row, out_row in before.items() if out_row not in set(gone)}
        new = [row for row in rows if row in places and row not in kept]
        if new:
            self.give(np.array(new, np.int64), [places[row] for row in new])

    def place_at(self, row: int, field: int) -> object:
        return self.circuit.tables.dictionary.decode(int(self.out.table.data[field, row]))

    def give(self, rows: Array, places: list[int]) -> None:
        frame = frame_of(self.inputs[0], rows)
        frame.start, frame.end = self.cover(frame)
        if self.top.place is not None:
            frame.vars[self.top.place] = np.array([self.circuit.context.encode(p) for p in places], np.int64)
        store(frame, self.out)

    def rebuild(self) -> None:
        super().rebuild()
        self.tables, self.table_of = {}, {}
        table = self.inputs[0].table
        rows = np.flatnonzero(table.alive[: table.n])
        if len(rows):
            context = self.circuit.context
            report, context.report = context.report, lambda *_: None  # what fails was counted when it came
            self.enter(rows)
            context.report = report

    def wants(self, port: int, horizon: Horizon) -> Array:
        """The rows of tables in which a place may still change."""
        view = self.inputs[0]
        frame = frame_of(view, np.arange(view.table.n))
        return self.cover(frame)[1] >= horizon.since[id(view.table)]
