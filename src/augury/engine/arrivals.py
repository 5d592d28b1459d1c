"""What a step is told: events and revocations, checked against what is known, with what comes too late set aside."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from augury.algebra.program import Plan, Predicate
from augury.clock import Clock
from augury.engine.circuit import Circuit
from augury.engine.events import Coded, Events
from augury.engine.frame import LONGEST
from augury.engine.kernels import Array
from augury.engine.table import END
from augury.errors import DataError, RunError, misspelt, nearest
from augury.model import MAX_INT, Event, HistoryItem, Revocation, from_json
from augury.sources import convert, item_from

Known = tuple[Events, int]
_ASIDE = ("time", "start", "end", "id", "op", "known")


@dataclass
class Batch:
    """New events of one type, column by column, in the order of arrival."""

    start: Array
    end: Array
    columns: list[Any]
    ids: Any = None
    dead: list[int] = field(default_factory=list)
    traces: Any = None  # of given events: the ids of the inputs behind each

    def some(self, rows: Array) -> Batch:
        dead = set(self.dead)
        return Batch(
            self.start[rows],
            self.end[rows],
            [c[rows] if isinstance(c, np.ndarray | Coded) else [c[i] for i in rows.tolist()] for c in self.columns],
            None if self.ids is None else [self.ids[i] for i in rows.tolist()],
            [at for at, i in enumerate(rows.tolist()) if i in dead] if dead else [],
            None if self.traces is None else [self.traces[i] for i in rows.tolist()],
        )


@dataclass
class Arrived:
    """A step that is to be taken."""

    arrivals: Arrivals
    count: int = 0
    greatest: int | None = None
    batches: dict[Predicate, Batch] = field(default_factory=dict)
    killed: list[Known] = field(default_factory=list)
    tombstones: list[str] = field(default_factory=list)
    withdrawn: list[str] = field(default_factory=list)
    late: list[HistoryItem] = field(default_factory=list)
    rejected: list[tuple[Event, str]] = field(default_factory=list)
    new_ids: list[str] = field(default_factory=list)
    unnamed: bool = False  # whether there were events without an id before

    def apply(self, circuit: Circuit) -> None:
        """Puts what has arrived into the tables and lets the circuit run."""
        self.arrivals.tombstones.update(self.tombstones)
        by_table: dict[int, tuple[Events, list[int]]] = {}
        for events, row in self.killed:
            by_table.setdefault(id(events), (events, []))[1].append(row)
        for events, rows in by_table.values():
            alive = [r for r in dict.fromkeys(rows) if events.out.table.alive[r]]
            events.out.table.kill(np.array(alive, np.int64)) if alive else None
        for name in self.withdrawn:
            self.arrivals.by_id.pop(name, None)
        for part in self._portions(circuit):
            for type, batch in part.items():
                self.arrivals.add(circuit, type, batch, self)
            circuit.run()
        circuit.run()

    def _portions(self, circuit: Circuit) -> Iterable[dict[Predicate, Batch]]:
        """All at once; large steps in portions that fit the caches; time by time where a recursion needs it."""
        total = sum(len(b.end) for b in self.batches.values())
        if total == 0 or (total <= 2 * _PORTION and not circuit.in_order):
            return [self.batches] if total else []
        for type, batch in self.batches.items():
            if type in circuit.inputs:
                circuit.inputs[type].out.table.room(len(batch.end))
        if circuit.in_order:
            bounds = np.unique(np.concatenate([b.end for b in self.batches.values()]))
        else:
            some = np.sort(np.concatenate([b.end[::_APART] for b in self.batches.values()]))
            last = max(b.end.max() for b in self.batches.values())
            bounds = np.unique(np.append(some[_PORTION // _APART :: _PORTION // _APART], last))
        return self._until(bounds, circuit, total)

    def _until(self, bounds: Array, circuit: Circuit, total: int) -> Iterable[dict[Predicate, Batch]]:
        """What ends by each bound, and after the one before it."""
        places: dict[Predicate, tuple[Array | None, Array]] = {}
        for type, batch in self.batches.items():
            ends, order = batch.end, None
            if (ends[1:] < ends[:-1]).any():
                order = np.argsort(ends, kind="stable")
                ends = ends[order]
            places[type] = (order, np.searchsorted(ends, bounds, side="right"))
        done = 0
        for i in range(len(bounds)):
            part = {}
            for type, (order, cuts) in places.items():
                lo, hi = (int(cuts[i - 1]) if i else 0), int(cuts[i])
                if hi > lo:
                    batch = self.batches[type]
                    part[type] = _slice(batch, lo, hi) if order is None else batch.some(order[lo:hi])
                    done += hi - lo
            circuit.words.share = done / total
            yield part


_PORTION = 1 << 15  # rows that are taken in at a time: few enough to stay in the caches, many enough to be worth a call
_APART = 64  # of so many rows one is looked at to find where portions end


def _slice(batch: Batch, lo: int, hi: int) -> Batch:
    dead = [i - lo for i in batch.dead if lo <= i < hi]
    ids = None if batch.ids is None else batch.ids[lo:hi]
    traces = None if batch.traces is None else batch.traces[lo:hi]
    return Batch(batch.start[lo:hi], batch.end[lo:hi], [c[lo:hi] for c in batch.columns], ids, dead, traces)


class Arrivals:
    """What is known of the inputs: which id names which event, and what was revoked before it came."""

    def __init__(self, circuit: Circuit, plan: Plan, longest: int | None = None) -> None:
        """Events that last longer than `longest` are put aside."""
        self.circuit, self.plan, self.longest = circuit, plan, longest
        self.by_id: dict[str, Known] = {}
        self.tombstones: set[str] = set()
        self.unnamed = False  # whether some events have no id of their own
        self.looked_up: dict[int, int] = {}  # how far the ids of unnamed events are in `by_id`, by table
        self.content_ids = False

    def read(self, given: Iterable[Any], clock: Clock) -> list[HistoryItem]:
        items = [item_from(item, self.plan, clock) for item in given]
        for item in items:
            if isinstance(item, Event) and not -LONGEST < item.start <= item.end < LONGEST:
                raise DataError(f"{item.type}: a time too far from the origin", hint="times are below 2**60")
        return items

    def items(
        self,
        items: list[HistoryItem],
        frontier: int | None,
        greatest: int | None,
        lateness: int | None,
        revision: int | None,
        advanced: int | None,
        revisable: bool,
    ) -> Arrived:
        """Events and revocations one by one, in the order of arrival."""
        arrived = Arrived(self, unnamed=self.unnamed)
        lists: dict[Predicate, list[Event]] = {}
        dead: dict[Predicate, list[int]] = {}
        here: dict[str, tuple[Predicate, int]] = {}
        tombstones: set[str] = set()
        for item in items:
            if isinstance(item, Revocation):
                if not revisable:
                    raise RunError("the session is not revisable", hint="open it with revisable=True")
                old = None if revision is None or greatest is None else greatest - revision - 1
                fixed = max((t for t in (old, advanced) if t is not None), default=None)
                self._revoke(item, arrived, lists, dead, here, tombstones, fixed)
                continue
            arrived.count += 1
            if item.id:
                known = self._event_of(item.id, lists, here)
                if known is not None:
                    if known.content != item.content:
                        arrived.rejected.append((item, f"the id {item.id} names another event already"))
                    continue
            late = frontier is not None and item.end <= frontier
            if late or (self.longest is not None and item.end - item.start > self.longest):
                arrived.late.append(item)
                continue
            type = (item.type, len(item.args))
            place = lists.setdefault(type, [])
            if item.id:
                here[item.id] = (type, len(place))
                if item.id in self.tombstones or item.id in tombstones:
                    dead.setdefault(type, []).append(len(place))
            place.append(item)
            greatest = item.end if greatest is None else max(greatest, item.end)
            if lateness is not None:
                bound = greatest - lateness - 1
                frontier = bound if frontier is None else max(frontier, bound)
        arrived.tombstones = sorted(tombstones)
        arrived.greatest = greatest
        for type, events in lists.items():
            columns: list[Any] = [[e.args[i] for e in events] for i in range(type[1])]
            ids = [e.id or None for e in events] if any(e.id for e in events) else None
            times = np.array([(e.start, e.end) for e in events], np.int64)
            arrived.batches[type] = Batch(times[:, 0].copy(), times[:, 1].copy(), columns, ids, dead.get(type, []))
        return arrived

    def _event_of(
        self, id: str, lists: dict[Predicate, list[Event]], here: dict[str, tuple[Predicate, int]]
    ) -> Event | None:
        if id in here:
            type, at = here[id]
            return lists[type][at]
        known = self._find(id)
        return known[0].event(known[1]) if known is not None else None

    def _find(self, id: str) -> Known | None:
        """The event of an id. Ids that are made from contents are computed once somebody asks for one."""
        found = self.by_id.get(id)
        if found is None and self.unnamed and _made(id):
            self._look_up()
            found = self.by_id.get(id)
        return found

    def _look_up(self) -> None:
        for events in self.circuit.inputs.values():
            table = events.out.table
            for row in range(self.looked_up.get(id(events), 0), table.n):
                if events.given_id(row) is None:
                    self.by_id.setdefault(events.id(row), (events, row))
            self.looked_up[id(events)] = table.n

    def _revoke(
        self, item: Revocation, arrived: Arrived, lists: dict[Predicate, list[Event]], dead: dict[Predicate, list[int]],
        here: dict[str, tuple[Predicate, int]], tombstones: set[str], frontier: int | None,
    ) -> None:  # fmt: skip
        if item.id in here:
            type, at = here[item.id]
            end = lists[type][at].end
            if frontier is not None and end <= frontier:
                arrived.late.append(item)
                return
            dead.setdefault(type, []).append(at)
        else:
            known = self._find(item.id)
            if known is not None:
                events, row = known
                if frontier is not None and events.out.table.data[END, row] <= frontier:
                    arrived.late.append(item)
                    return
                arrived.killed.append(known)
        if item.id not in self.tombstones:
            tombstones.add(item.id)

    def tables(self, tables: Mapping[str, Any], clock: Clock, frontier: int | None) -> Arrived:
        """Whole tables, one a type; they are told in the order of time."""
        arrived = Arrived(self, unnamed=self.unnamed)
        for name, table in tables.items():
            columns = _columns(table)
            if "op" in columns:
                raise DataError(
                    f"the table of `{name}` has a column `op`", hint="revoke events with session.revoke(ids)"
                )
            batch, arity = self._table(name, columns, clock)
            self._batch((name, arity), batch, frontier, arrived)
        return arrived

    def batches(
        self,
        batches: Mapping[Predicate, Batch],
        frontier: int | None,
        revoked: Iterable[str] = (),
        withdrawn: Mapping[Predicate, Iterable[str]] | None = None,
    ) -> Arrived:
        """What a host tells: events by type, ids that are revoked, and given events that are withdrawn.

        Given events are those that another stage derives. They are never late, and one that was withdrawn may come again.
        """
        arrived = Arrived(self, unnamed=self.unnamed)
        tombstones: set[str] = set()
        for id in revoked:
            self._revoke(Revocation(id), arrived, {}, {}, {}, tombstones, frontier)
        arrived.tombstones = sorted(tombstones)
        for type, batch in batches.items():
            self._batch(type, batch, None if type in self.plan.given else frontier, arrived)
        for ids in (withdrawn or {}).values():
            for id in ids:
                known = self.by_id.get(id)
                if known is not None:
                    arrived.killed.append(known)
                    arrived.withdrawn.append(id)
        return arrived

    def _batch(self, type: Predicate, batch: Batch, frontier: int | None, arrived: Arrived) -> None:
        """New events of one type, without those that are late, too long or known already."""
        name, given = type[0], type in self.plan.given
        arrived.count += len(batch.end)
        if not len(batch.end):
            return
        if (batch.start > batch.end).any():
            raise DataError(f"{name}: an event starts after its end")
        if not (int(batch.start.min()) > -LONGEST and int(batch.end.max()) < LONGEST):
            raise DataError(f"{name}: a time too far from the origin", hint="times are below 2**60")
        late = np.zeros(len(batch.end), bool) if frontier is None else batch.end <= frontier
        if self.longest is not None and not given:
            late |= batch.end - batch.start > self.longest
        if late.any():
            for i in np.flatnonzero(late).tolist():
                args = tuple(c[i].item() if isinstance(c, np.ndarray) else c[i] for c in batch.columns)
                id = "" if batch.ids is None else batch.ids[i] or ""
                arrived.late.append(Event(name, args, int(batch.start[i]), int(batch.end[i]), id))
            batch = batch.some(np.flatnonzero(~late))
        if batch.ids is not None:
            batch = self._new_ones(name, batch, arrived)
        if len(batch.end):
            arrived.batches[type] = batch
            last = int(batch.end.max())
            arrived.greatest = last if arrived.greatest is None else max(arrived.greatest, last)

    def _new_ones(self, name: str, batch: Batch, arrived: Arrived) -> Batch:
        """Without those whose id is known already."""
        keep: list[int] = []
        seen: dict[str, int] = {}
        revoked = set(arrived.tombstones)
        for i, id in enumerate(batch.ids):
            if id is None:
                keep.append(i)
                continue
            known = self._find(id)
            if known is None and id not in seen:
                seen[id] = i
                keep.append(i)
                if id in self.tombstones or id in revoked:
                    batch.dead.append(i)
                continue
            args = tuple(c[i].item() if isinstance(c, np.ndarray) else c[i] for c in batch.columns)
            event = Event(name, args, int(batch.start[i]), int(batch.end[i]), id)
            if known is not None:
                other = known[0].event(known[1]).content
            else:
                j = seen[id]
                given = tuple(c[j].item() if isinstance(c, np.ndarray) else c[j] for c in batch.columns)
                other = Event(name, given, int(batch.start[j]), int(batch.end[j]), id).content
            if other != event.content:
                arrived.rejected.append((event, f"the id {id} names another event already"))
        return batch if len(keep) == len(batch.ids) else batch.some(np.array(keep, np.int64))

    def _table(self, name: str, columns: dict[str, Any], clock: Clock) -> tuple[Batch, int]:
        known = sorted({type for type, _ in self.plan.event_types})
        if name not in known and (close := misspelt(name, known)):
            raise DataError(f"unknown event type `{name}`", hint=f"did you mean `{close}`?")
        if "time" not in columns and not {"start", "end"} & columns.keys():
            raise DataError(f"the table of `{name}` has no column `time` (or `start` and `end`)")
        first = columns.get("start", columns.get("time", columns.get("end")))
        last = columns.get("end", columns.get("time", columns.get("start")))
        start, end = _times(first, clock), _times(last, clock)
        ids = _ids(columns["id"]) if "id" in columns else None
        declared = self.plan.declared.get(name)
        if declared is not None:
            missing = [a.name for a in declared if a.name not in columns]
            if missing:
                close = nearest(missing[0], columns)
                raise DataError(f"`{name}` has no column `{missing[0]}`", hint=f"there is `{close}`" if close else "")
            data: list[Any] = [_declared(_values(name, a.name, columns[a.name]), a, self.plan) for a in declared]
        else:
            given = [_values(name, column, c) for column, c in columns.items() if column not in _ASIDE]
            arities = sorted(arity for type, arity in self.plan.event_types if type == name)
            data = given[: arities[0]] if len(arities) == 1 else given
        arity = len(data)
        if name in known and (name, arity) not in self.plan.event_types:
            raise DataError(f"`{name}` has {arity} columns of data; the program uses it with {arities[0]} arguments")
        return Batch(start, end, data, ids), arity

    # Into the circuit

    def add(self, circuit: Circuit, type: Predicate, batch: Batch, arrived: Arrived) -> None:
        events = circuit.inputs.get(type)
        if events is None:  # a type that no rule reads counts for the clock, and its ids count
            events = circuit.inputs[type] = Events(circuit, *type, ())
        first = events.add(batch.start, batch.end, batch.columns, batch.ids, batch.traces)
        if batch.ids is None:
            self.unnamed = True
        else:
            for i, id in enumerate(batch.ids):
                if id is not None:
                    self.by_id[id] = (events, first + i)
                    arrived.new_ids.append(id)
                else:
                    self.unnamed = True
        dead = [first + i for i in batch.dead]
        if self.tombstones:
            rows = range(first, first + len(batch.end))
            dead += [r for r in rows if events.given_id(r) is None and events.id(r) in self.tombstones]
        if dead:
            events.out.table.kill(np.array(sorted(set(dead)), np.int64))

    def moved(self, moved: Mapping[int, Array]) -> None:
        """After a compaction: the ids of events that are forgotten are forgotten, too."""
        known = {}
        for name, (events, row) in self.by_id.items():
            place = int(moved[id(events.out.table)][row])
            if place >= 0:
                known[name] = (events, place)
            else:
                self.tombstones.discard(name)
        self.by_id = known
        self.looked_up = {id(e): e.out.table.n for e in self.circuit.inputs.values() if id(e) in self.looked_up}

    def undo(self, arrived: Arrived) -> None:
        self.unnamed = arrived.unnamed
        for name in arrived.new_ids:
            self.by_id.pop(name, None)
        self.tombstones.difference_update(arrived.tombstones)
        self.looked_up.clear()
        table_rows = {id(e): e.out.table.n for e in self.circuit.inputs.values()}
        self.by_id = {i: (e, r) for i, (e, r) in self.by_id.items() if r < table_rows[id(e)]}


def _made(id: str) -> bool:
    """Whether an id looks like one that is made from a content."""
    return len(id) == 16 and all(c in "0123456789abcdef" for c in id)


def is_tables(events: Any) -> bool:
    return (
        isinstance(events, Mapping)
        and bool(events)
        and all(hasattr(t, "column_names") or (hasattr(t, "columns") and hasattr(t, "iloc")) for t in events.values())
    )


def _columns(table: Any) -> dict[str, Any]:
    """The columns of a table: arrays of numbers where they are, else lists with None for null."""
    if hasattr(table, "column_names"):
        return {str(name): _arrow(table.column(i)) for i, name in enumerate(table.column_names)}
    return {str(name): _pandas(table[name]) for name in table.columns}


def _arrow(column: Any) -> Any:
    if column.null_count == 0 and str(column.type) in _NUMBERS:
        return column.to_numpy()
    return column.to_pylist()


_NUMBERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "float", "double", "halffloat")


def _pandas(column: Any) -> Any:
    array = column.to_numpy()
    if array.dtype.kind in "iuf":
        return array
    return [None if v is None or v != v else v for v in column.tolist()]


def _times(column: Any, clock: Clock) -> Array:
    if (
        isinstance(column, np.ndarray)
        and column.dtype.kind in "iu"
        and not (clock.kind == "timestamp" and clock.guessed)
    ):
        return column.astype(np.int64)
    return np.array([clock.read(t.item() if isinstance(t, np.generic) else t) for t in column], np.int64)


def _ids(column: Any) -> list[str | None]:
    """Ids as text; None where an event has none."""
    return [
        None if i is None or i != i else str(i) for i in (c.item() if isinstance(c, np.generic) else c for c in column)
    ]


def _values(type: str, name: str, column: Any) -> Any:
    """A column whose values the language has; what it cannot hold is refused before anything is taken in."""
    try:
        if not isinstance(column, np.ndarray):
            return [from_json(v) for v in column]
        if column.dtype.kind == "f" and np.isinf(column).any():
            raise DataError("an infinite number")
        if column.dtype.kind == "u" and len(column) and int(column.max()) > MAX_INT:
            raise DataError(f"an integer beyond 64 bits: {int(column.max())}")
    except DataError as error:
        raise DataError(f"`{type}`, column `{name}`: {error.message}", hint=error.hint) from None
    return column


def _declared(column: Any, attribute: Any, plan: Plan) -> Any:
    if isinstance(column, np.ndarray) and column.dtype.kind in "iu" and attribute.type in ("int", "number", "any"):
        return column
    if isinstance(column, np.ndarray) and column.dtype.kind == "f" and attribute.type in ("float", "number", "any"):
        return column
    return [convert(v.item() if isinstance(v, np.generic) else v, attribute, plan) for v in column]
