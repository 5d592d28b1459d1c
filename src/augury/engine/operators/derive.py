"""The head of a rule: a derived event for every row, and the set of the events of a type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from augury.algebra.rule_terms import start_of
from augury.algebra.scalar import RowError
from augury.algebra.terms import Const, Expr, Var
from augury.core.arrays import Array, RowIds, Times
from augury.core.bounds import FAR, TIME_LIMIT
from augury.core.clock import Timestamp
from augury.core.model import Event, content_id
from augury.engine.operators.base import Operator, Part, Ways
from augury.engine.saved import ragged, require, unragged
from augury.engine.saved.references import check_events
from augury.planner.specs import DeriveSpec, RederiveSpec, SetSpec
from augury.storage.conditions import Context
from augury.storage.dictionary import OPEN
from augury.storage.frame import Frame, frame_of
from augury.storage.kernels.links import fall
from augury.storage.kernels.sets import first_supports, follow, forget, hashes, refill, support
from augury.storage.table import (
    END,
    FIELDS,
    LEFT,
    NONE,
    RANK,
    RIGHT,
    START,
    Links,
    Table,
    grown,
    marked_buckets,
    too_full,
)
from augury.storage.unique import unique

if TYPE_CHECKING:
    from augury.engine.horizon import Horizon
    from augury.engine.runtime import Runtime

_COUNT = 1


class Derived(Operator):
    """The set of the events of one type: same arguments and interval is one event, which stands while a derivation does.

    Outside recursion the number of derivations decides. Inside, counts are wrong on cycles: an event that has lost a
    derivation stands only if one is left that rests on lower ranks; else it is taken back, with all that was made of it,
    and is derived again if a derivation is left when all is quiet (delete and rederive).
    """

    altered = ("kept_inputs",)
    holds_events = True

    spec: SetSpec

    def __init__(self, runtime: Runtime, spec: SetSpec) -> None:
        super().__init__(runtime, spec)
        self.type, self.arity = spec.type, spec.arity
        self.recursive = False  # whether a rule derives its events from each other
        self.fields = np.arange(FIELDS, FIELDS + spec.arity, dtype=np.int64)
        self.counts = np.zeros((2, 16), np.int64)  # hash and number of derivations
        self.in_order = True  # whether rows lie in the order of their ends: they are found without hashes and buckets
        self.buckets = marked_buckets(0)
        self.used = 0
        self.weakened: list[Array] = []
        self.suspects: list[int] = []
        self.supports: list[Links] = []  # from an event to its derivations, rule by rule
        self.kept_inputs: dict[int, tuple[Part, ...]] = {}  # of events whose derivations are beyond the horizon
        self.loops: list[tuple[Links, Derive]] = []  # rules from this set into itself, over one join
        self.late = False  # whether events may be given only after their ends
        self.rederive: Rederive

    def add(self, columns: Array) -> Array:
        """Adds events (start, end, rank, arguments), each with one derivation; their rows."""
        table, count = self.out.table, columns.shape[1]
        table.room(count)
        if self.counts.shape[1] < len(table.alive):
            self.counts = grown(self.counts, len(table.alive), table.n)
        target, before, done = np.empty(count, np.int64), table.n, 0
        n, canon = before, table.tables.dictionary.canon
        if self.in_order:
            done, n = follow.call(columns, table.data, self.fields, self.counts, table.alive, before, canon, target)
            if done < count:
                self._fill_buckets(n, count)
        elif too_full(self.buckets, self.used + count):
            self.buckets = marked_buckets(table.live + count)
            refill(self.counts, table.alive, before, self.buckets)
            self.used = table.live
        if done < count:
            first = n
            n = support.call(
                columns, done, count, table.data, self.fields, self.counts, table.alive, first, self.buckets, canon,
                target[done:],
            )  # fmt: skip
            self.used += n - first
        self.touched += count
        if n > before:
            table.n = n
            table.grew(before)
        return target

    def _fill_buckets(self, n: int, more: int) -> None:
        """Makes buckets by which the first n rows are found; room for more of them."""
        table = self.out.table
        self.buckets = marked_buckets(n + more)
        hashes(table.data, n, self.fields, table.dictionary.canon, self.counts)
        refill(self.counts, table.alive, n, self.buckets)
        self.in_order, self.used = False, n

    def release(self, events: Array) -> None:
        """Events that have lost a derivation each."""
        if len(events) == 1:
            self.counts[_COUNT, events[0]] -= 1
        else:
            np.subtract.at(self.counts[_COUNT], events, 1)
        self.weakened.append(events)
        self.wake()

    def step(self) -> None:
        if not self.weakened:
            return
        events = self.weakened[0]
        if len(self.weakened) > 1 or len(events) > 1:
            events = unique(np.concatenate(self.weakened))
        self.weakened = []
        table = self.out.table
        events = events[table.alive[events].astype(bool)]
        self.touched += len(events)
        unsupported = self.counts[_COUNT, events] == 0
        gone = events[unsupported]
        if self.recursive and len(gone) < len(events):
            shaken = np.array([e for e in events[~unsupported].tolist() if not self.grounded(e)], np.int64)
            if len(shaken):
                self.suspects += shaken.tolist()
                gone = np.concatenate([gone, shaken])
                self.rederive.wake()
        if len(gone):
            table.alive[gone] = 0
            for links, head in self.loops:
                gone = self.fall(gone, links, head)
            if not self.in_order:
                forget(gone, self.counts, self.buckets)
            table.gone(gone)

    def fall(self, gone: Array, links: Links, head: Derive) -> Array:
        """Through a rule that derives events of this set from events of this set, all that falls falls at once."""
        table, rows, derivations, below = self.out.table, links.child, head.out.table, head.links[0]
        links.extend()
        below.extend()
        events, weak = np.empty(table.n, np.int64), np.empty(derivations.n, np.int64)
        events[: len(gone)] = gone
        fallen, lost = np.empty(rows.n, np.int64), np.empty(derivations.n, np.int64)
        n, n_rows, n_lost, n_weak = fall(
            events, len(gone), table.alive, self.counts, links.heads, links.after, rows.alive, fallen,
            below.heads, below.after, derivations.alive, derivations.data[RIGHT], lost, weak,
        )  # fmt: skip
        self.touched += n + n_rows + n_lost
        rows.gone(fallen[:n_rows].copy())
        derivations.gone(lost[:n_lost].copy())
        if n_weak:
            self.weakened.append(weak[:n_weak].copy())
            self.wake()
        return events[:n].copy()

    def grounded(self, event: int) -> bool:
        """Whether a derivation is left that rests on lower ranks only."""
        if event in self.kept_inputs:
            return True
        rank = self.out.table.data[RANK, event]
        return any(links.child.data[RANK, row] < rank for links in self.supports for row in links.of(event))

    def rederive_fallen(self) -> None:
        """Events that were taken back too eagerly: those that have a derivation left."""
        suspects, self.suspects = self.suspects, []
        data = self.out.table.data
        for event in suspects:
            for links in self.supports:
                for row in links.of(event):
                    rank = int(links.child.data[RANK, row])
                    columns = np.concatenate([data[:2, event], [rank + 1], data[self.out.table.codes, event]]).reshape(
                        -1, 1
                    )
                    (target,) = self.add(columns)
                    data = self.out.table.data
                    self.runtime.journal.append((links.child, RIGHT, row, int(links.child.data[RIGHT, row])))
                    links.child.data[RIGHT, row] = target
                    links.move(row, int(target))

    def rebuild(self) -> None:
        table = self.out.table
        self.weakened, self.suspects = [], []
        self.counts = np.zeros((2, len(table.alive)), np.int64)
        for links in self.supports:
            links.drop()
            child = links.child
            rows = child.data[RIGHT, : child.n][child.stands()]
            np.add.at(self.counts[_COUNT], rows[rows >= 0], 1)
        self.counts[_COUNT, list(self.kept_inputs)] += 1  # a derivation that is certain, and forgotten
        ends = table.data[END, : table.n]
        self.in_order, self.buckets, self.used = bool((ends[1:] >= ends[:-1]).all()), marked_buckets(0), 0
        if not self.in_order:
            self._fill_buckets(table.n, 0)

    def part_rows(self, rows: RowIds) -> tuple[Table, Array] | None:
        return self.out.table, rows

    def parts(self, row: int) -> tuple[Part, ...]:
        return ((self.out.table, row),)

    def unsettled(self, since: Mapping[int, int], frontier: int) -> int:
        """As its rules have it; within a recursion, nothing that ends at or before the frontier changes."""
        return min([frontier + 1, *(since.get(id(links.child), frontier + 1) for links in self.supports)])

    def given_at(self) -> Array:
        """When each event is given: with its end, or once what its derivation waited for has ended."""
        table = self.out.table
        if not self.late:
            return table.data[END, : table.n]
        times = np.full(table.n, FAR, np.int64)
        for links in self.supports:
            child, body = links.child, self.runtime.maker(links.child).inputs[0].table
            rows = child.standing()
            np.minimum.at(times, child.data[RIGHT, rows], body.data[END, child.data[LEFT, rows]])
        times[times == FAR] = -FAR  # its derivation is certain, and forgotten
        times[list(self.kept_inputs)] = -FAR
        return np.maximum(times, table.data[END, : table.n])

    def may_fall(self, since: Mapping[int, int]) -> Array:
        """Which events have a derivation that may still vanish."""
        mask = np.zeros(self.out.table.n, bool)
        for links in self.supports:
            child, body = links.child, self.runtime.maker(links.child).inputs[0].table
            rows = child.standing()
            rows = rows[body.data[END, child.data[LEFT, rows]] >= since[id(body)]]
            mask[child.data[RIGHT, rows]] = True
        return mask

    def held_back(self, horizon: Horizon) -> tuple[Array, int]:
        """Which events are not final yet, though they end before the frontier; and up to which end others are."""
        table = self.out.table
        mask, limit = np.zeros(table.n, bool), FAR
        for links in self.supports:
            child, head = links.child, self.runtime.maker(links.child)
            body = head.inputs[0].table
            changeable = self.runtime.maker(body).may_change(horizon)
            if changeable is None:
                delay = head.delay if isinstance(head, Derive) else 0  # such events go by when they are given
                limit = min(limit, horizon.since[id(child)] + delay)
                continue
            rows = child.standing()
            mask[child.data[RIGHT, rows[changeable[0][child.data[LEFT, rows]]]]] = True
            limit = min(limit, changeable[1])
        return mask, limit - 1

    def event(self, row: int) -> Event:
        table, decode = self.out.table, self.runtime.tables.dictionary.decode
        args = tuple(decode(int(c)) for c in table.data[table.codes, row])
        start, end = int(table.data[START, row]), int(table.data[END, row])
        shown = args[: len(args) - self.runtime.plan.hidden]
        return Event(self.type, args, start, end, content_id(self.type, shown, start, end))

    @property
    def bytes(self) -> int:
        size = super().bytes + int(self.counts.nbytes + self.buckets.nbytes)
        return size + sum(links.bytes for links in self.supports)

    def about(self) -> dict[str, Any]:
        return {"type": self.type}

    # Derivations

    def support(self, row: int) -> tuple[Derive, int] | None:
        """One derivation of an event: one that stands and rests on lower ranks; of an event that is gone, the last one."""
        (chosen,), (link,) = self._first_supports(np.array([row]))
        if link < 0:
            return None
        head = self.runtime.maker(self.supports[link].child)
        assert isinstance(head, Derive)
        return head, int(chosen)

    def _first_supports(self, rows: RowIds) -> tuple[Array, Array]:
        """One derivation of each event, see `support`, and the number of its rule; -1 where there is none."""
        ranks = self.out.table.data[RANK, rows]
        size = len(rows)
        chosen, link, good = np.full(size, -1, np.int64), np.full(size, -1, np.int64), np.zeros(size, bool)
        best, any_one = np.empty(size, np.int64), np.empty(size, np.int64)
        for i, links in enumerate(self.supports):
            links.extend()
            child = links.child
            first_supports(rows, ranks, links.heads, links.after, child.alive, child.data[RANK], best, any_one)
            # One that stands is better than one that is gone.
            for candidate, wanted in ((any_one, chosen < 0), (best, ~good)):
                take = wanted & (candidate >= 0)
                chosen[take], link[take] = candidate[take], i
            good |= best >= 0
        return chosen, link

    def sources(self, rows: RowIds) -> Ways:
        chosen, link = self._first_supports(rows)
        if self.kept_inputs:
            link[[i for i, row in enumerate(rows.tolist()) if row in self.kept_inputs]] = -2
        ways: Ways = [
            (np.flatnonzero(link == i), [(links.child, chosen, None)]) for i, links in enumerate(self.supports)
        ]
        return [*ways, (np.flatnonzero(link == -1), [])]

    def moved(self, places: Mapping[int, Array]) -> None:
        new_rows = places[id(self.out.table)]
        tables = {id(table) for parts in self.kept_inputs.values() for table, _ in parts}
        new_place = {table: places[table].tolist() for table in tables}
        self.kept_inputs = {
            int(new_rows[row]): tuple([(table, new_place[id(table)][part]) for table, part in parts])
            for row, parts in self.kept_inputs.items()
            if new_rows[row] >= 0
        }

    def state(self, number: Mapping[int, int]) -> Any:
        parts = [part for some in self.kept_inputs.values() for part in some]
        return {
            **ragged((row, [number_of for _, number_of in some]) for row, some in self.kept_inputs.items()),
            "place": np.fromiter((number[id(self.runtime.maker(table))] for table, _ in parts), np.int64),
        }

    def fill(self, state: Any, operators: Sequence[Operator]) -> None:
        rows = unragged(state, self.out.table.n)
        check_events(state["place"], state["of"], operators)
        named = zip(state["place"].tolist(), state["of"].tolist(), strict=True)
        parts = [(operators[number_of].out.table, row) for number_of, row in named]
        self.kept_inputs = {row: tuple(parts[lo:hi]) for row, lo, hi in rows}


class Derive(Operator):
    """`head <- body`: for every row of the body one derivation of an event over the cover of the row and its windows.

    Its table says which row (left) derives which event (right).
    """

    spec: DeriveSpec

    def __init__(self, runtime: Runtime, spec: DeriveSpec) -> None:
        super().__init__(runtime, spec)
        self.events = runtime.operator(spec.events, Derived)
        self.args, self.covers, self.since = spec.args, spec.covers, spec.since
        self.until, self.delay = spec.until, spec.delay
        self.events.late = self.events.late or bool(spec.delay)
        self.events.supports.append(Links(self.events.out.table, self.out.table, RIGHT))
        body = self.inputs[0]
        self.plain = (
            not spec.covers
            and spec.since is None
            and spec.until is None
            and all(isinstance(a, Const) or (isinstance(a, Var) and a.name in body.vars) for a in spec.args)
        )

    def step(self) -> None:
        lost = self.losses(0) if self.lost[0] else NONE
        if len(lost):
            gone = self.links[0].kill(lost)
            self.touched += len(gone)
            if len(gone):
                self.events.release(self.out.table.data[RIGHT, gone])
        rows = self.gains(0)
        if len(rows):
            self.derive(rows)

    def derive(self, rows: RowIds) -> None:
        columns = None
        if self.plain:
            columns = self._copied_row(rows.item(0)) if len(rows) == 1 else self._copied(rows)
        if columns is None:
            rows, columns = self.computed(rows)
        if not len(rows):
            return
        target = self.events.add(columns)
        if len(rows) == 1:
            start, end, rank = columns[:3, 0].tolist()
            self.out.table.add_row((start, end, rows.item(0), target.item(0), rank - 1))
            return
        support = np.empty((FIELDS, len(rows)), np.int64)
        support[START], support[END], support[LEFT], support[RIGHT] = columns[0], columns[1], rows, target
        support[RANK] = columns[2] - 1
        self.out.table.append(support)

    def _copied_row(self, row: int) -> Array | None:
        """The event of one row, see `_copied`."""
        view, context = self.inputs[0], self.runtime.context
        fields = view.table.data[:, row].tolist()
        values = [fields[START], fields[END], fields[RANK] + 1]
        for arg in self.args:
            if type(arg) is Var:
                code = fields[view.vars[arg.name]]
                if code == OPEN:
                    return None
                values.append(code)
            elif type(arg) is Const:
                values.append(context.encode(arg.value))
        return np.array(values, np.int64).reshape(-1, 1)

    def _copied(self, rows: RowIds) -> Array | None:
        """The events of rows whose arguments are variables and constants; None where a variable is left open."""
        view, data = self.inputs[0], self.inputs[0].table.data
        columns = np.empty((3 + len(self.args), len(rows)), np.int64)
        columns[0], columns[1], columns[2] = data[START, rows], data[END, rows], data[RANK, rows] + 1
        for i, arg in enumerate(self.args):
            if isinstance(arg, Var):
                columns[3 + i] = data[view.vars[arg.name], rows]
                if (columns[3 + i] == OPEN).any():
                    return None
            elif isinstance(arg, Const):
                columns[3 + i] = self.runtime.context.encode(arg.value)
        return columns

    def computed(self, rows: RowIds) -> tuple[Array, Array]:
        """The rows whose heads can be computed, and their events."""
        context = self.runtime.context
        context.name_events = self.name_events
        frame = frame_of(self.inputs[0], rows)
        columns, ok = events_of(context, frame, self.rule, self.args, self.covers, self.since, self.until)
        return (rows, columns) if ok.all() else (rows[ok], columns[:, ok])

    def parents(self) -> list[tuple[int, Table]]:
        return [(LEFT, self.inputs[0].table), (RIGHT, self.events.out.table)]

    def part_rows(self, rows: RowIds) -> tuple[Table, Array] | None:
        return self.runtime.part_rows(self.inputs[0].table, self.out.table.data[LEFT, rows])

    def parts(self, row: int) -> tuple[Part, ...]:
        return self.runtime.parts(self.inputs[0].table, int(self.out.table.data[LEFT, row]))

    def sources(self, rows: RowIds) -> Ways:
        left = self.out.table.data[LEFT, rows]
        return [(np.flatnonzero(left >= 0), [(self.inputs[0].table, left, None)])]

    def keep_parents(self, keep: dict[int, Array]) -> None:
        if self.runtime.maker(self.inputs[0].table).stays:
            table = self.out.table
            derived = keep[id(self.events.out.table)][table.data[RIGHT, : table.n]]
            keep[id(table)] |= derived & table.stands()
        super().keep_parents(keep)

    def unsettled(self, since: Mapping[int, int], frontier: int) -> int:
        """What is given only after its end ended that much earlier."""
        return super().unsettled(since, frontier) - self.delay

    def retain(self, keep: dict[int, Array], frontier: int | None, since: Mapping[int, int]) -> None:
        """A derivation that is certain is not looked at again, unless another one of its event may vanish."""
        table, events = self.out.table, self.events.out.table
        kept = table.stands()
        if frontier is not None:  # what was chosen may be chosen no longer, however long ago it ended
            changes = self.events.may_fall(since) | (events.data[END, : events.n] > frontier)
            kept &= changes[table.data[RIGHT, : table.n]]
        keep[id(table)] = kept
        keep[id(events)][table.data[RIGHT, : table.n][kept]] = True


def events_of(
    context: Context,
    frame: Frame,
    rule: str,
    args: tuple[Expr, ...],
    covers: tuple[str, ...],
    since: Expr | Literal["END"] | None,
    until: Expr | None = None,
) -> tuple[Array, Array]:
    """The events that rows make (start, end, rank, arguments), and for which rows they can be computed."""
    start, end = frame.cover(covers)
    ok = (start > -TIME_LIMIT) & (end < TIME_LIMIT)
    for _ in range(int((~ok).sum())):
        context.report(rule, "a time beyond 60 bits", {})
    if until is not None:
        codes, computed = context.values(until, frame, rule)
        times = [context.dictionary.decode(code) for code in codes.tolist()]
        end = np.array([t.us if isinstance(t, Timestamp) else t for t in times], np.int64)
        ok &= computed
    if since is not None:
        start, timely = starts(context, since, frame, start, end, rule)
        ok &= timely
    columns: list[Array] = []
    for arg in args:
        codes, computed = context.values(arg, frame, rule)
        columns.append(codes)
        ok &= computed
    return np.stack([start, end, frame.rank + 1, *columns]), ok


def starts(
    context: Context, since: Expr | Literal["END"] | None, frame: Frame, start: Times, end: Times, rule: str
) -> tuple[Array, Array]:
    """The starts of the events of rows, given their covers, and for which rows they can be computed."""
    ok = np.ones(len(frame), bool)
    if since is None or since == "END":
        return (start if since is None else end), ok
    kind = context.scalars.clock.kind
    times = context.vector(since, frame)
    if times is not None and times[0] == ("t" if kind == "timestamp" else "n") and times[1].dtype.kind == "i":
        begins = times[1]
    else:
        codes, ok = context.values(since, frame, rule)
        begins = end.copy()
        for i in np.flatnonzero(ok).tolist():
            try:
                begins[i] = start_of(context.dictionary.decode(int(codes[i])), int(end[i]), kind)
            except RowError as error:
                context.report(rule, str(error), {})
                ok[i] = False
    late = ok & (begins > end)
    for _ in range(int(late.sum())):
        context.report(rule, "SINCE: a start after the end", {})
    far = ok & (np.abs(begins) >= TIME_LIMIT)
    for _ in range(int(far.sum())):
        context.report(rule, "a time beyond 60 bits", {})
    ok &= ~late & ~far
    return np.where(ok, begins, end), ok


class Rederive(Operator):
    """Runs when a recursive component is quiet: what was taken back too eagerly is derived again."""

    def __init__(self, runtime: Runtime, spec: RederiveSpec) -> None:
        super().__init__(runtime, spec)
        self.events = [runtime.operator(events, Derived) for events in spec.sets]

    def step(self) -> None:
        for events in self.events:
            if events.suspects:
                events.rederive_fallen()

    def check(self) -> None:
        require(self.out.table.n == 0, "unexpected rows")
