"""A session: events go in, changes come out. The public face of the engine, together with `Program.session`."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Literal

import numpy as np

from augury.clock import Clock, Kind
from augury.engine import kernels as k
from augury.engine import snapshot
from augury.engine.answers import Answers, Changes, make_changes
from augury.engine.arrivals import Arrivals, is_tables
from augury.engine.circuit import Circuit
from augury.engine.frame import LONGEST
from augury.engine.horizon import compact
from augury.engine.kernels import Array
from augury.engine.trace import trace_of
from augury.errors import DataError, RunError
from augury.facts import check_facts, facts_from
from augury.model import Change, Event, Fact, HistoryItem, Revocation
from augury.program import Program, check_clock
from augury.settings import choose_clock, first_time, length

Emit = Literal["early", "final"]
_MANY = 100_000  # rows of state that are worth a look at what may be forgotten


class Session:
    """A program that runs: `push` events, `revoke` them, `advance` the clock; each returns the changes of the answer.

    A session belongs to one thread at a time and raises when entered twice.
    """

    def __init__(
        self,
        program: Program,
        *,
        clock: Kind | Clock | None = None,
        emit: Emit = "early",
        lateness: str | None = None,
        retention: str | None = None,
        facts: Mapping[str, Iterable[Any]] | Iterable[Fact] = (),
        revisable: bool = True,
        late: Callable[[HistoryItem], None] | None = None,
    ) -> None:
        if emit not in ("early", "final"):
            raise RunError(f"unknown emission `{emit}`", hint="it is early or final")
        self.program, self.emit, self.revisable = program, emit, revisable
        self._clock_asked, self._given_facts = clock, facts
        self.retention = length(retention, program.plan.tick)
        self._lateness_asked = length(lateness, program.plan.tick)
        self._late = late
        self.late: list[HistoryItem] = []
        self.late_count = 0
        self.rejected: list[tuple[Event, str]] = []
        self._callbacks: dict[str, list[Callable[[Change], None]]] = {}
        self._entered = threading.Lock()
        self.greatest: int | None = None  # the greatest end seen
        self.advanced: int | None = None  # what `advance` has promised
        self.steps = self.counted = self.matched = 0
        self._unseen: weakref.WeakSet[Changes] = weakref.WeakSet()
        self._kept = 0
        self._circuit: Circuit | None = None
        if isinstance(clock, Clock) or clock is not None or program.plan.tick is not None:
            self._open(None)

    # Time

    def _open(self, first: object) -> Circuit:
        """Builds the circuit, once the clock is known."""
        if self._circuit is None:
            asked, program = self._clock_asked, self.program
            self.clock = asked if isinstance(asked, Clock) else choose_clock(program, asked, first)
            check_clock(program, self.clock.kind)
            given = self._given_facts
            listed: list[Any] = list(given.items()) if isinstance(given, Mapping) else list(given)
            self.facts = facts_from(listed, program.plan, self.clock)
            check_facts(self.facts, program.plan)
            self.lateness = None if self._lateness_asked is None else self.clock.length(self._lateness_asked)
            self._wire(Circuit(program.plan, self.clock, self.facts, self.retention))
        assert self._circuit is not None
        return self._circuit

    @property
    def circuit(self) -> Circuit:
        return self._open(None)

    def _wire(self, circuit: Circuit) -> None:
        self._circuit = circuit
        outputs = {name for name in self.program.plan.outputs}
        self.answers = [Answers(events) for (name, _), events in circuit.derived.items() if name in outputs]
        self.arrivals = Arrivals(circuit, self.program.plan)

    @property
    def frontier(self) -> int | None:
        """Nothing more ends at or before it."""
        bounds = [self.advanced] if self.advanced is not None else []
        if self._circuit is not None and self.lateness is not None and self.greatest is not None:
            bounds.append(self.greatest - self.lateness - 1)
        return max(bounds) if bounds else None

    @property
    def now(self) -> int | None:
        """The clock: the greatest end seen, or what `advance` said."""
        return max((t for t in (self.greatest, self.advanced) if t is not None), default=None)

    # What comes in

    def push(self, events: Any) -> Changes:
        """Tells of an event, a list of them, or tables by type; the changes of the answer.

        An event is an `Event`, a `Revocation` or a dict in the JSON form; a table is a pandas DataFrame or an Arrow table.
        """
        with self._alone():
            if is_tables(events):
                circuit = self._open(_first_of(events))
                return self._step(lambda: self.arrivals.tables(events, self.clock, self.frontier, self.greatest, self.lateness))
            if isinstance(events, Event | Revocation | Mapping):
                events = (events,)
            elif isinstance(events, str) or not isinstance(events, Iterable):
                raise RunError(f"events are a list of events, not {type(events).__name__}")
            given = list(events)
            circuit = self._open(first_time(given))
            items = self.arrivals.read(given, self.clock)
            assert circuit is self._circuit
            return self._step(lambda: self.arrivals.items(items, self.frontier, self.greatest, self.lateness, self.revisable))

    def revoke(self, id: str | Iterable[str]) -> Changes:
        """Takes events back, by id, whether they came already or are still to come."""
        ids = [id] if isinstance(id, str) else list(id)
        return self.push([Revocation(one) for one in ids])

    def advance(self, time: Any) -> Changes:
        """Promises that nothing more ends at or before a time; the changes of the answer."""
        with self._alone():
            self._open(time)
            at = self.clock.read(time)
            if abs(at) >= LONGEST:
                raise DataError(f"a time too far from the origin: {time}")
            before = self.advanced
            self.advanced = at if before is None else max(before, at)
            return self._finish()

    def finish(self) -> Changes:
        """Says that nothing more comes: what is there is final."""
        with self._alone():
            self._open(None)
            if self.now is None:
                return Changes(list, 0)
            self.advanced = self.now
            return self._finish()

    def feed(self, events: Iterable[Any]) -> Iterator[Change]:
        """Pushes one event at a time, and yields the changes as they come."""
        for event in events:
            yield from self.push(event)

    # Steps

    def _alone(self) -> _Alone:
        return _Alone(self._entered)

    def _step(self, told: Callable[[], Any]) -> Changes:
        """One step: all of it, or nothing where something fails."""
        circuit = self._circuit
        assert circuit is not None
        arrived = told()
        k.count_work(arrived.count)
        greatest = self.greatest
        try:
            arrived.apply(circuit)
        except BaseException:
            circuit.undo()
            self.arrivals.undo(arrived)
            self.greatest = greatest
            for one in self.answers:
                one.rebuild()
            raise
        if arrived.greatest is not None:
            self.greatest = arrived.greatest if greatest is None else max(greatest, arrived.greatest)
        self.counted += arrived.count
        self.rejected += arrived.rejected
        self.late_count += len(arrived.late)
        if self._late is not None:
            for item in arrived.late:
                self._late(item)
        else:
            self.late += arrived.late
        return self._finish()

    def _finish(self) -> Changes:
        circuit = self._circuit
        assert circuit is not None
        until = self.now if self.emit == "early" else self.frontier
        found: list[tuple[Answers, Array, Array]] = []
        for one in self.answers:
            if one.waiting or id(one.events.out.table) in circuit.words.changed:
                dead, new = one.step(until)
                if len(dead) or len(new):
                    found.append((one, dead, new))
                    self.matched += len(new)
        circuit.settle()
        self.steps += 1
        changes = make_changes(circuit, found, lambda events, row: trace_of(circuit, events, row))
        if len(changes):
            self._unseen.add(changes)
        if circuit.rows > 2 * self._kept + _MANY:
            self.prune()
        if self._callbacks and len(changes):
            for change in changes:
                for callback in self._callbacks.get(change.event.type, ()):
                    callback(change)
        return changes

    def prune(self) -> int:
        """Forgets what can no longer matter; how many rows of state are left. It happens by itself now and then."""
        circuit = self.circuit
        for changes in list(self._unseen):  # their events are made from what may be forgotten now
            changes.materialise()
        self._unseen.clear()
        moved = compact(circuit, self.frontier if self.lateness is not None or self.advanced is not None else None)
        for one in self.answers:
            one.moved(moved[id(one.events.out.table)])
        self.arrivals.moved(moved)
        self._kept = circuit.rows
        return self._kept

    def snapshot(self) -> bytes:
        """The state as bytes; `program.restore` goes on from it."""
        with self._alone():
            return snapshot.take(self)

    def on(self, type: str, callback: Callable[[Change], None]) -> None:
        """Calls a function with every change of an event type."""
        known = {name for name, _ in self.program.plan.derived}
        if type not in known:
            raise RunError(f"no rule derives `{type}`", hint=f"there is {', '.join(sorted(known))}")
        self._callbacks.setdefault(type, []).append(callback)

    # What stands

    def events(self) -> list[Event]:
        """All answers that stand, in the order of events."""
        circuit = self._open(None)
        found = []
        for one in self.answers:
            table = one.events.out.table
            for row in np.flatnonzero(one.shown[: table.n] & table.alive[: len(one.shown)][: table.n]).tolist():
                event = circuit.event((table, row))
                trace = trace_of(circuit, one.events, row)
                found.append(Event(event.type, event.args, event.start, event.end, event.id, trace))
        return sorted(found, key=lambda e: e.order)

    @property
    def errors(self) -> dict[tuple[str, str], int]:
        """Rows that could not be computed: how often, by rule and message."""
        return {} if self._circuit is None else self._circuit.errors


class _Alone:
    def __init__(self, lock: Any) -> None:
        self.lock = lock

    def __enter__(self) -> None:
        if not self.lock.acquire(blocking=False):
            raise RunError("the session is in use", hint="a session belongs to one thread; a callback must not push")

    def __exit__(self, *_: object) -> None:
        self.lock.release()


def _first_of(tables: Mapping[str, Any]) -> object:
    for table in tables.values():
        names = list(getattr(table, "column_names", None) or table.columns)
        for name in ("time", "end", "start"):
            if name in names and len(table):
                value = table[name][0].as_py() if hasattr(table, "column_names") else table[name].iloc[0]
                return value.item() if isinstance(value, np.generic) else value
    return None
