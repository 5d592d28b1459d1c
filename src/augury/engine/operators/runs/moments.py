"""The events of a run: each once for a key, in the order of time, with the rows of the parts that it may be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from augury.core.arrays import Array, RowData, RowIds
from augury.engine.operators.base import NOT_THERE, Operator, Part, Ways
from augury.engine.saved import check_numbers
from augury.planner.specs import MomentsSpec
from augury.storage.frame import View
from augury.storage.grouping import in_groups
from augury.storage.table import END, FIELDS, LEFT, NONE, RANK, RIGHT, START, Index, Table, grown
from augury.storage.unique import unique

if TYPE_CHECKING:
    from augury.engine.runtime import Runtime


MANY = 256  # moments that come at once and are worth being put in order


class Moments(Operator):
    """ΔM = Δevents of the run, each with what it may be: a row of every part whose atom and conditions it meets.

    A row has the number of the input that it is an event of (left), the row there (right), its key, and for each part the
    row of it, or -1. What facts make of a part later is a moment of its own at the same time, which blocks nothing.
    """

    linked = ()

    def __init__(self, runtime: Runtime, spec: MomentsSpec) -> None:
        super().__init__(runtime, spec)
        self.key, among, parts = spec.run_key, self.inputs[: spec.among], self.inputs[spec.among :]
        self.among, self.parts_of = among, parts
        self.key_fields = tuple(range(FIELDS, FIELDS + len(self.key)))
        self.row_fields = tuple(range(FIELDS + len(self.key), FIELDS + len(self.key) + len(parts)))
        self.index: Index = self.out.table.index(self.key_fields)
        # Whether an event has one key in the run: no other input has events of the same table.
        tables = [id(view.table) for view in among]
        self.single = [runtime.maker(view.table).holds_events and tables.count(id(view.table)) == 1 for view in among]
        if not all(runtime.maker(view.table).holds_events for view in among):
            self.single = [False for _ in among]
        # Parts that are all events of an input: the row of such a part is that of the event.
        self.plain = [self._plain(view) for view in parts]
        # For each part the first one that has the same rows.
        self.alike = [i if port < 0 else self.plain.index(port) for i, port in enumerate(self.plain)]
        self._clear()

    def _plain(self, part: View) -> int:
        """The input whose events a part has just as they are; -1 where it has its own rows."""
        for port, view in enumerate(self.among):
            if self.single[port] and view.table is part.table and all(view.vars[v] == part.vars[v] for v in self.key):
                return port
        return -1

    def _clear(self) -> None:
        self.moment_of = [NONE for _ in self.inputs]  # the moment of each row of an input, -1 where it has none
        self.of_event: dict[tuple[int, int], Array] = {}  # by input and table of events: the row of the input

    # Changes

    def step(self) -> None:
        ports = len(self.among)
        gone: list[Array] = []
        for port in range(len(self.inputs)):
            lost = self.losses(port)
            if len(lost) and not self._repeats(port):
                moments = self._moment_of(port, lost)
                gone.append(moments[moments >= 0])
        if gone:
            self._kill(unique(np.concatenate(gone)))
        first = self.out.table.n
        arrivals = [self._new(port, rows) for port in range(ports) if len(rows := self.gains(port))]
        arrivals = [rows for rows in arrivals if rows.shape[1]]
        if arrivals:
            whole = arrivals[0] if len(arrivals) == 1 else np.concatenate(arrivals, axis=1)
            if (whole[END, 1:] < whole[END, :-1]).any():
                whole = whole[:, np.argsort(whole[END], kind="stable")]
            self._append(whole if whole.shape[1] < MANY or not self.key else whole[:, self._by_key(whole)])
        for part in range(len(self.parts_of)):
            rows = self.gains(ports + part)
            if len(rows) and self.plain[part] < 0:
                self._be(part, rows, first)

    def _by_key(self, columns: Array) -> Array:
        """The order in which moments of one key lie side by side, as those do that follow each other in a run."""
        canonical = self.runtime.tables.dictionary.canonical
        return in_groups([canonical(columns[field]) for field in self.key_fields])[0]

    def _kill(self, moments: Array) -> None:
        """Moments of which the event, or the row of a part, is gone; what is left of them comes again."""
        table = self.out.table
        moments = moments[table.alive[moments].astype(bool)]
        table.kill(moments)
        for port in range(len(self.inputs)):
            if not self._repeats(port):
                rows = self._row_of(port, moments)
                self.moment_of[port][rows[rows >= 0]] = -1
        event_stands = self._stand(table.data[LEFT, moments], table.data[RIGHT, moments])
        left = moments[event_stands]
        if not len(left):
            return
        data = table.data[:, left].copy()
        for part, field in enumerate(self.row_fields):
            rows = data[field]
            dead = (rows >= 0) & ~self.parts_of[part].table.alive[np.maximum(rows, 0)].astype(bool)
            data[field, dead] = -1
        self._append(data)

    def _repeats(self, port: int) -> bool:
        """Whether an input is a part that has just the events of another input."""
        return port >= len(self.among) and self.plain[port - len(self.among)] >= 0

    def _row_of(self, port: int, moments: Array) -> Array:
        """The row of an input that moments are, or -1."""
        data, ports = self.out.table.data, len(self.among)
        if port >= ports:
            values: Array = data[self.row_fields[port - ports], moments]
            return values
        return np.where(data[LEFT, moments] == port, data[RIGHT, moments], -1)

    def _stand(self, ports: Array, rows: RowIds) -> Array:
        stands = np.zeros(len(rows), bool)
        for port, view in enumerate(self.among):
            mine = ports == port
            stands[mine] = view.table.alive[rows[mine]].astype(bool)
        return stands

    def _append(self, data: RowData) -> None:
        table = self.out.table
        first = table.n
        table.append(data)
        self._note(np.arange(first, table.n))

    def _note(self, moments: Array) -> None:
        """Remembers which rows these moments are."""
        for port, view in enumerate(self.inputs):
            if self._repeats(port):
                continue
            self._room(port, view.table.n)
            rows = self._row_of(port, moments)
            mine = rows >= 0
            if port < len(self.among):  # where facts made several of an event, the first one stands for it
                mine &= self.moment_of[port][np.maximum(rows, 0)] < 0
            self.moment_of[port][rows[mine]] = moments[mine]

    def _room(self, port: int, count: int) -> None:
        if len(self.moment_of[port]) <= count:
            self.moment_of[port] = grown(self.moment_of[port], 2 * count + 16, len(self.moment_of[port]), -1)

    def _moment_of(self, port: int, rows: RowIds) -> Array:
        moment_of = self.moment_of[port]
        held = rows < len(moment_of)
        return np.where(held, moment_of[np.where(held, rows, 0)], -1) if len(moment_of) else np.full(len(rows), -1)

    def _new(self, port: int, rows: RowIds) -> Array:
        """New events of the run, as moments that are to come."""
        view, data = self.among[port], self.among[port].table.data
        new = np.ones(len(rows), bool)
        keys = data[[view.vars[v] for v in self.key], :][:, rows]
        for some, table, events in events_behind(self.runtime, view.table, rows):
            for earlier in range(port):  # an event that has the same key at the places of another atom exists already
                others = self._rows_at(earlier, table, events)
                there = np.flatnonzero(others >= 0)
                new[some[there]] &= ~self._same_key(self.among[earlier], others[there], keys[:, some[there]])
            if table != id(view.table):
                moment_of, need = self.of_event.get((port, table), NONE), int(events.max()) + 1
                if len(moment_of) < need:
                    moment_of = self.of_event[port, table] = grown(moment_of, 2 * need, len(moment_of), -1)
                moment_of[events] = rows[some]
        for codes in keys:  # null belongs to no run
            new &= ~self.runtime.tables.dictionary.is_null(codes)
        rows, keys = (rows, keys) if new.all() else (rows[new], keys[:, new])
        columns = np.full((self.out.table.width, len(rows)), -1, np.int64)
        columns[START], columns[END], columns[RANK] = data[START, rows], data[END, rows], data[RANK, rows]
        columns[LEFT], columns[RIGHT] = port, rows
        columns[list(self.key_fields)] = keys
        for part, field in enumerate(self.row_fields):
            if self.plain[part] == port:
                columns[field] = rows
        return columns

    def _rows_at(self, port: int, table: int, events: Array) -> Array:
        """The rows of an input that are made of events of a table; -1 where there is none."""
        if table == id(self.among[port].table):
            return events
        moment_of = self.of_event.get((port, table), NONE)
        if not len(moment_of):
            return np.full(len(events), -1, np.int64)
        return np.where(events < len(moment_of), moment_of[np.minimum(events, len(moment_of) - 1)], -1)

    def _same_key(self, view: View, rows: RowIds, keys: Array) -> Array:
        words, same = self.runtime.tables.dictionary, np.ones(len(rows), bool)
        for v, codes in zip(self.key, keys, strict=True):
            same &= words.canonical(view.table.data[view.vars[v], rows]) == words.canonical(codes)
        return same

    def _be(self, part: int, rows: RowIds, first: int) -> None:
        """New rows of a part: what their moments may be, where these came in this step; else moments of their own."""
        view, table, field = self.parts_of[part], self.out.table, self.row_fields[part]
        keys = view.table.data[[view.vars[v] for v in self.key], :][:, rows]
        moments = np.full(len(rows), -1, np.int64)
        for some, of, events in events_behind(self.runtime, view.table, rows):
            for port, among in enumerate(self.among):
                others = self._rows_at(port, of, events)
                there = np.flatnonzero(others >= 0)
                if len(there) and not self.single[port]:
                    there = there[self._same_key(among, others[there], keys[:, some[there]])]
                moments[some[there]] = np.maximum(moments[some[there]], self._moment_of(port, others[there]))
        rows, moments = rows[moments >= 0], moments[moments >= 0]
        free = (moments >= first) & (table.data[field, moments] < 0)
        table.data[field, moments[free][::-1]] = rows[free][::-1]
        free &= table.data[field, moments] == rows  # of several rows that are made of one event the first
        port = len(self.among) + part
        self._room(port, view.table.n)
        self.moment_of[port][rows[free]] = moments[free]
        rest = ~free
        if rest.any():
            columns = table.data[:, moments[rest]].copy()
            columns[list(self.row_fields)] = -1
            columns[field] = rows[rest]
            columns[RANK] = np.maximum(columns[RANK], view.table.data[RANK, rows[rest]])
            self._append(columns)

    def rebuild(self) -> None:
        super().rebuild()
        self._clear()
        table = self.out.table
        for port, view in enumerate(self.among):
            rows = view.table.standing()
            for some, of, events in events_behind(self.runtime, view.table, rows):
                if of == id(view.table):
                    continue
                moment_of = self.of_event[port, of] = np.full(2 * (int(events.max()) + 1), -1, np.int64)
                moment_of[events] = rows[some]
        self._note(table.standing())

    # What a row is made of

    def parents(self) -> list[tuple[int, Table]]:
        return [(field, view.table) for field, view in zip(self.row_fields, self.parts_of, strict=True)]

    def parts(self, row: int) -> tuple[Part, ...]:
        data = self.out.table.data
        return self.runtime.parts(self.among[int(data[LEFT, row])].table, int(data[RIGHT, row]))

    def part_rows(self, rows: RowIds) -> tuple[Table, Array] | None:
        return None

    def sources(self, rows: RowIds) -> Ways:
        data = self.out.table.data
        events = data[RIGHT, rows]
        return [
            (np.flatnonzero(data[LEFT, rows] == port), [(view.table, events, None)])
            for port, view in enumerate(self.among)
        ]

    def keep_parents(self, keep: dict[int, Array]) -> None:
        super().keep_parents(keep)
        data, n = self.out.table.data, self.out.table.n
        kept = keep[id(self.out.table)]
        for port, view in enumerate(self.among):
            keep[id(view.table)][data[RIGHT, :n][kept & (data[LEFT, :n] == port)]] = True

    def moved(self, places: Mapping[int, Array]) -> None:
        super().moved(places)
        data, n = self.out.table.data, self.out.table.n
        for port, view in enumerate(self.among):
            mine = np.flatnonzero(data[LEFT, :n] == port)
            data[RIGHT, mine] = places[id(view.table)][data[RIGHT, mine]]

    def check(self) -> None:
        data, n = self.out.table.data, self.out.table.n
        check_numbers(data[LEFT, :n], 0, len(self.among), NOT_THERE)
        for port, view in enumerate(self.among):
            check_numbers(data[RIGHT, :n][data[LEFT, :n] == port], 0, view.table.n, NOT_THERE)
        for field, parent in self.parents():
            check_numbers(data[field, :n], -1, parent.n, NOT_THERE)


def events_behind(runtime: Runtime, table: Table, rows: RowIds) -> list[tuple[Array, int, Array]]:
    """The one event that each row is made of: some of the rows, which table of events, and the rows there."""
    maker = runtime.maker(table)
    if maker.holds_events:
        return [(np.arange(len(rows)), id(table), rows)] if len(rows) else []
    result = []
    for some, sources in maker.sources(rows):
        if len(some):
            ((source, parents, _),) = sources
            for members, of, events in events_behind(runtime, source, parents[some]):
                result.append((some[members], of, events))
    return result
