"""Rankings: `TOP n BY e PER (V) AS R`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from augury.algebra.rule_terms import uses_place
from augury.algebra.terms import Const, Var
from augury.core.arrays import Array, Mask, RowIds
from augury.core.bounds import TIME_LIMIT
from augury.engine.operators.base import Operator
from augury.engine.operators.derive import starts
from augury.planner.specs import RankingSpec
from augury.storage.dictionary import NULL
from augury.storage.frame import frame_of, store
from augury.storage.grouping import Slices, in_groups
from augury.storage.ranks import code_ranks
from augury.storage.table import LEFT, NONE
from augury.storage.unique import unique

if TYPE_CHECKING:
    from augury.engine.horizon import Horizon
    from augury.engine.runtime import Runtime

_Key = tuple[int, ...]
_LARGE = 256  # rows of a table that are put in order as they stand


class Ranking(Operator):
    """Of rows with one cover and one value of `per`, those with the first places, over their cover, with their place.

    Rows are held by the table of the ranking that they belong to. Tables that changed rows belong to are put in order anew,
    all at once, once a step, and just what has another place than before is given again. Of a large table just the rows are put in
    order that may be among the first n.
    """

    def __init__(self, runtime: Runtime, spec: RankingSpec) -> None:
        super().__init__(runtime, spec)
        rule = spec.head
        assert rule.top is not None
        self.head, self.top = rule, rule.top
        self.tables: dict[_Key, list[Array]] = {}
        self.shown: dict[
            _Key, dict[int, int]
        ] = {}  # for each table, the rows with a place, and what was given for them
        # Where all is plain, nothing fails. Of other rows those whose failures, if any, have been reported are known.
        plain = all(isinstance(a, Var | Const) for a in (*rule.args, self.top.by)) and rule.since in (None, "END")
        self.plain, self.counted = plain, set[int]()

    def step(self) -> None:
        touched: dict[_Key, None] = {}
        lost = self.losses(0)
        if len(lost):
            self.links[0].kill(lost)
            for key, rows in self.by_table(lost):
                touched[key] = None
                for row in rows.tolist():
                    self.shown.get(key, {}).pop(row, None)
        gained = self.gains(0)
        for key, rows in self.by_table(gained) if len(gained) else ():
            self.tables.setdefault(key, []).append(rows)
            touched[key] = None
        if touched:
            self.rank([*touched])

    def by_table(self, rows: RowIds) -> list[tuple[_Key, Array]]:
        """Rows by the table of the ranking that they belong to: their cover, and the values of `per`."""
        frame = frame_of(self.inputs[0], rows)
        canonical = self.runtime.tables.dictionary.canonical
        keys = [*frame.cover(self.head.covers), *(canonical(frame.vars[v]) for v in self.top.per)]
        order, first = in_groups(keys)
        groups, names = (
            np.split(rows[order], first[1:]),
            zip(*(key[order[first]].tolist() for key in keys), strict=True),
        )
        return [*zip(names, groups, strict=True)]

    # Order

    def rank(self, keys: list[_Key]) -> None:
        """Puts tables in order: what was given in another place is taken back, what is new there is given."""
        alive = self.inputs[0].table.alive
        parts = list[Array]()
        for key in keys:
            rows = np.concatenate(self.tables.pop(key, [NONE]))
            rows = rows[alive[rows].astype(bool)]
            if len(rows):
                self.tables[key] = [rows]
            parts.append(self.likely(rows))
        owner = np.repeat(np.arange(len(keys)), [len(rows) for rows in parts])
        owner, rows, places = self.placed(owner, np.concatenate(parts))
        cuts = np.searchsorted(owner, np.arange(len(keys) + 1)).tolist()
        ranked = [*zip(rows.tolist(), places.tolist(), strict=True)]
        field = self.out.vars.get(self.top.place or "")
        gone, new, first = list[int](), list[tuple[int, int]](), self.out.table.n
        for key, lo, hi in zip(keys, cuts[:-1], cuts[1:], strict=True):
            before, shown = self.shown.pop(key, {}), dict[int, int]()
            for row, position in ranked[lo:hi]:
                out_row = before.get(row)
                if out_row is not None and (field is None or self.place_at(out_row, field) == position):
                    shown[row] = before.pop(row)
                else:
                    shown[row] = first + len(new)
                    new.append((row, position))
            gone.extend(before.values())
            if shown:
                self.shown[key] = shown
        if gone:
            self.out.table.kill(np.array(sorted(gone), np.int64))
        if new:
            self.give(*np.array(new, np.int64).T)

    def likely(self, rows: RowIds) -> RowIds:
        """Of the rows of a large table some that surely have the first n places, if these go by a number.

        Equal rows share a place: there are as many places as values, at least.
        """
        count, by = self.top.count, self.top.by
        if count is None or len(rows) <= _LARGE or not self.plain or not isinstance(by, Var):
            return rows
        view, look = self.inputs[0], 2 * count
        numbers = self.runtime.tables.dictionary.numeric(view.table.data[view.vars[by.name], rows])
        while numbers is not None and look < len(rows):
            n = look - 1 if self.top.ascending else len(rows) - look
            limit = np.partition(numbers, n)[n]
            kept = numbers <= limit if self.top.ascending else numbers >= limit
            if len(unique(numbers[kept])) >= count:
                some: RowIds = rows[kept]
                return some
            look *= 8
        return rows

    def placed(self, owner: Array, rows: RowIds) -> tuple[Array, Array, Array]:
        """The rows of tables that have a place, in their order: the table of each, the row, and the place.

        Equal ones share theirs. A row behind the n-th with its value is given, too, `WITH TIES`.
        """
        fresh = np.array([row not in self.counted for row in rows.tolist()], bool) if not self.plain else None
        if fresh is not None and not fresh.all():  # what fails is reported when it comes, once
            self.keys_of(rows[fresh])
        context, count = self.runtime.context, self.top.count
        report = context.report
        if fresh is not None:
            self.counted.update(rows[fresh].tolist())
            context.report = report if fresh.all() else lambda *_: None
        try:
            keys, ok = self.keys_of(rows)
        finally:
            context.report = report
        keys, owner, rows = [key[ok] for key in keys], owner[ok], rows[ok]
        self.touched += len(rows)
        if not len(rows):
            return owner, rows, rows
        order = np.lexsort((*keys[::-1], owner))
        keys, owner, rows = [key[order] for key in keys], owner[order], rows[order]
        tables = Slices(np.bincount(owner, minlength=int(owner[-1]) + 1))
        new = np.r_[True, np.logical_or.reduce([key[1:] != key[:-1] for key in (owner, *keys)])]
        number = np.cumsum(new)
        places = number - number[tables.starts[owner]] + 1
        if count is None:
            return owner, rows, places
        kept = places <= count
        if self.top.ties:
            null, value = keys[:2]
            last = tables.starts + tables.where(kept).counts - 1
            kept |= (null == 0) & (null[last] == 0)[owner] & (value == value[last[owner]])
        return owner[kept], rows[kept], places[kept]

    def keys_of(self, rows: RowIds) -> tuple[list[Array], Mask]:
        """Sort keys of rows as integers, the first first; and for which rows they can be computed.

        A value that is null comes last, then the value decides, the start that the event will have, and its arguments.
        """
        context, dictionary = self.runtime.context, self.runtime.tables.dictionary
        context.name_events = self.name_events
        frame = frame_of(self.inputs[0], rows)
        start, end = frame.cover(self.head.covers)
        by, ok = context.values(self.top.by, frame, self.rule)
        begins, timely = starts(context, self.head.since, frame, start, end, self.rule)
        ok = ok & timely & (start > -TIME_LIMIT) & (end < TIME_LIMIT)
        columns = [by]
        for arg in (a for a in self.head.args if not uses_place(self.head, a)):
            codes, computed = context.values(arg, frame, self.rule)
            columns.append(codes)
            ok &= computed
        value, *args = (np.zeros(len(rows), np.int64) for _ in columns)
        for ranks, codes in zip((value, *args), columns, strict=True):
            ranks[ok] = code_ranks(dictionary, codes[ok])
        return [(by == NULL).astype(np.int64), value if self.top.ascending else -value, begins, *args], ok

    def place_at(self, row: int, field: int) -> object:
        return self.runtime.tables.dictionary.decode(int(self.out.table.data[field, row]))

    def give(self, rows: RowIds, places: Array) -> None:
        frame = frame_of(self.inputs[0], rows)
        frame.start, frame.end = frame.cover(self.head.covers)
        if self.top.place is not None:
            frame.vars[self.top.place] = self.runtime.tables.dictionary.encode_column(places)
        store(frame, self.out)

    # What it keeps

    def rebuild(self) -> None:
        super().rebuild()
        self.tables, self.shown = {}, {}
        self.counted = set(self.inputs[0].table.standing().tolist())
        table, out = self.inputs[0].table, self.out.table
        rows = table.standing()
        for key, some in self.by_table(rows) if len(rows) else ():
            self.tables[key] = [some]
        standing = out.standing()
        held = dict(zip(out.data[LEFT, standing].tolist(), standing.tolist(), strict=True))
        for key, some in self.by_table(out.data[LEFT, standing]) if len(standing) else ():
            self.shown[key] = {row: held[row] for row in some.tolist()}

    def wants(self, port: int, horizon: Horizon) -> Array:
        """The rows of tables in which a place may still change."""
        view = self.inputs[0]
        frame = frame_of(view, np.arange(view.table.n))
        return frame.cover(self.head.covers)[1] >= horizon.since[id(view.table)]
