"""A session: events go in, changes come out. The public face of the engine, together with `Program.session`."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, Unpack

from augury.algebra.plan import Plan, Predicate
from augury.algebra.properties import settling_delays
from augury.clock import Clock
from augury.columns.frame import LONGEST
from augury.columns.guard import Exceeded, Guard
from augury.compiled import Compiled, check_clock
from augury.engine import growing, inspect, snapshot
from augury.engine.arrivals import Arrivals, Bounds
from augury.engine.callbacks import Callbacks
from augury.engine.changes import Answers, Changes, Detected
from augury.engine.circuit import Circuit
from augury.engine.found import Found, Rows
from augury.engine.goals import Goal, Goals, goals, states
from augury.engine.horizon import Horizon, compact, unsettled
from augury.engine.intake import Intake
from augury.engine.learning import allow, in_time, known_name, statements_from
from augury.engine.scenes import scene_of
from augury.errors import DataError, RunError, nearest, too_deep
from augury.jit import Array, count_work
from augury.knowledge.facts import check_facts, facts_from
from augury.knowledge.graphs import Graphs
from augury.knowledge.knowledge_base import Knowledge
from augury.model import Change, Event, Fact, HistoryItem, Revocation
from augury.pictures import Picture, Scene, TimelineOptions, timeline
from augury.settings import Settings, choose_clock
from augury.sources import Batch

_MANY = 100_000  # rows of state that are worth a look at what may be forgotten


class Session:
    """A program that runs: `push` events, `revoke` them, `advance` the clock; each returns the changes of the answer.

    One thread at a time pushes and raises when entered twice; whoever just looks waits until a step is over.
    """

    def __init__(
        self,
        program: Compiled,
        settings: Settings | None = None,
        *,
        clock: Clock | None = None,
        facts: Mapping[str, Any] | Iterable[Any] = (),
        rdf: Any = (),
        knowledge: Knowledge | None = None,
        late: Callable[[HistoryItem], None] | None = None,
    ) -> None:
        """`clock` is the one that is known already; otherwise it follows from the settings and the first event."""
        self.opened = self.program = program  # the program it was opened with, and with the rules that came since
        self.settings = settings or Settings()
        self._given_facts, self._graphs = facts, Graphs.of(rdf)
        self._late = late
        self.shared = knowledge  # what other sessions have, too: nothing in it may change
        self.pruned = False  # whether some of the past is forgotten
        self.late: list[HistoryItem] = []
        self.late_count = 0
        self.rejected: list[tuple[Event, str]] = []
        self._callbacks = Callbacks()
        self.grown: list[tuple[str, str, int | None]] = []  # rules added and removed since it was opened
        self._entered = threading.Lock()
        self._turn = threading.RLock()  # whoever looks waits for the end of a step
        self.greatest: int | None = None  # the greatest end seen
        self.advanced: int | None = None  # what `advance` has promised
        self.steps = self.counted = self.matched = 0
        self._unseen: weakref.WeakSet[Rows] = weakref.WeakSet()
        self._kept = 0
        self._circuit: Circuit | None = None
        self._intake = Intake(lambda first: self._open(first).clock, self.settings.strict, self.settings.limits)
        if clock is not None:
            self._clock = clock
        if clock is not None or self.settings.clock is not None or program.plan.tick is not None:
            self._open(None)

    # Time

    def _open(self, first: object) -> Circuit:
        """Builds the circuit, once the clock is known."""
        if self._circuit is None:
            settings, program = self.settings, self.program
            if not hasattr(self, "_clock"):
                self._clock = choose_clock(program, settings.clock, first)
            check_clock(program, self.clock.kind)
            facts = facts_from(self._given_facts, program.plan, self.clock)
            check_facts(facts, program.plan)
            self.facts = facts + self._graphs.facts(program.plan, facts)
            self.lateness = None if settings.lateness is None else self.clock.length(settings.lateness)
            # How old a revoked event may be: as old as a late one, unless it was said.
            age = settings.revisable
            self.revision = self.lateness if isinstance(age, bool) else self.clock.length(age)
            for name in sorted(settings.changing):
                known_name(self, name)
            self._wire(
                Circuit(
                    self.plan,
                    self.clock,
                    self.facts,
                    settings.retention,
                    settings.longest,
                    set(settings.changing),
                    self.shared,
                )
            )
        assert self._circuit is not None
        return self._circuit

    @property
    def plan(self) -> Plan:
        """What the circuit computes."""
        return self.program.optimised

    @property
    def clock(self) -> Clock:
        """What times mean; known from the first event on, unless it was given."""
        if self._circuit is None and not hasattr(self, "_clock"):
            raise RunError("the clock is known with the first event", hint='open the session with clock="logical"')
        return self._clock

    @property
    def circuit(self) -> Circuit:
        return self._open(None)

    def _wire(self, circuit: Circuit) -> None:
        self._circuit, circuit.turn = circuit, self._turn
        circuit.tables.guard = Guard(self.settings.limits)
        outputs = set(self.program.plan.outputs)
        self.answers = [Answers(events) for (name, _), events in circuit.derived.items() if name in outputs]
        self._index_answers()
        longest = self.settings.longest
        self.arrivals = Arrivals(circuit, self.program.plan, None if longest is None else self.clock.length(longest))

    def _index_answers(self) -> None:
        """Which answers a table concerns, and which wait for time to pass."""
        self._of_table = {id(one.events.out.table): one for one in self.answers}
        self._waiting = {one: None for one in self.answers if one.waiting}

    @property
    def frontier(self) -> int | None:
        """Nothing more ends at or before it."""
        bounds = [self.advanced] if self.advanced is not None else []
        if self._circuit is not None and self.lateness is not None and self.greatest is not None:
            bounds.append(self.greatest - self.lateness - 1)
        return max(bounds) if bounds else None

    @property
    def settled(self) -> int | None:
        """What ends at or before it can no longer change: nothing more comes there, and nothing is revoked."""
        bounds = [self.advanced] if self.advanced is not None else []
        lengths = (self.lateness, self.revision) if self._circuit is not None else (None, None)
        if lengths[0] is not None and lengths[1] is not None and self.greatest is not None:
            bounds.append(self.greatest - max(lengths[0], lengths[1]) - 1)
        return max(bounds) if bounds else None

    @property
    def now(self) -> int | None:
        """The clock: the greatest end seen, or what `advance` said."""
        return max((t for t in (self.greatest, self.advanced) if t is not None), default=None)

    # What comes in

    def push(self, events: Any) -> Changes:
        """Tells of an event, a list of them, tables by type, or what `augury.read` has found; the changes of the answer.

        An event is an `Event`, a `Revocation` or a dict in the JSON form; a table is anything that is a stream of Arrow, such
        as a DataFrame of pandas or Polars. A table of several types has a column `type`.
        """
        with self._alone():
            read = self._intake.read(events, self.program.plan)
            if not len(read) and self._circuit is None:
                return Changes()  # nothing yet that tells the clock
            return self._step(lambda: self.arrivals.pushed(read, self._bounds))

    @property
    def unknown(self) -> dict[str, int]:
        """How many events came of types that the program does not know."""
        return self._intake.unknown

    @property
    def _bounds(self) -> Bounds:
        return Bounds(
            self.frontier,
            self.greatest,
            self.lateness,
            self.revision,
            self.advanced,
            self.settings.revisable is not False,
        )

    def revoke(self, id: str | Event | Iterable[str | Event]) -> Changes:
        """Takes events back, by id, whether they came already or are still to come."""
        given = [id] if isinstance(id, str | Event) or not isinstance(id, Iterable) else list(id)
        ids = [one.id if isinstance(one, Event) else one for one in given]
        if not all(isinstance(one, str) and one for one in ids):
            raise RunError("events are revoked by their ids", hint='session.revoke("e7"), or a list of ids')
        return self.push([Revocation(one) for one in ids])

    def assert_fact(self, name: str, *args: Any, at: Any = None, until: Any = None) -> Changes:
        """Says that a fact holds from a time on, from now where none is given, up to another; the changes of the answer."""
        return self.learn({name: [self._said("assert", args, at, until)]})

    def retract_fact(self, name: str, *args: Any, at: Any = None) -> Changes:
        """Says that a fact no longer holds from a time on, from now where none is given; the changes of the answer."""
        return self.learn({name: [self._said("retract", args, at, None)]})

    def _said(self, op: str, args: tuple[Any, ...], at: Any, until: Any) -> dict[str, Any]:
        time = at if at is not None or self.now is None else self.clock.moment(self.now)
        if op == "retract" and time is None:
            raise RunError(
                "a fact ends at a time, and the clock has not begun", hint="give the time: retract_fact(…, at=…)"
            )
        return {"op": op, "args": list(args), "valid_from": time, "valid_to": until}

    def learn(self, facts: Mapping[str, Any] | Iterable[Fact]) -> Changes:
        """Takes in changes of facts, in any form that facts come in; the changes of the answer.

        Rows may have `op` (assert or retract), `valid_from` and `valid_to`. What says no time holds from now on; what is
        said of a time that is settled already comes too late.
        """
        with self._alone():
            self._open(self.now)
            statements = statements_from(self, facts)
            allow(self, {one.fact.name for one in statements})
            return self._step(lambda: in_time(self, statements))

    def take(
        self,
        batches: Mapping[Predicate, Batch],
        frontier: int | None = None,
        revoked: Iterable[str] = (),
        withdrawn: Mapping[Predicate, Iterable[str]] | None = None,
        late: int | None = None,
    ) -> Changes:
        """One step of a host: events as columns, what is taken back, and up to when nothing more comes.

        What ends at or before `late` is late already. The host reads the changes before its next step, or never.
        """
        with self._alone():
            self._open(None)
            behind = max((t for t in (self.frontier, late) if t is not None), default=None)
            changes = self._step(lambda: self.arrivals.batches(batches, behind, revoked, withdrawn), frontier)
            self._unseen.difference_update((*changes.gone.parts, *changes.given.parts))
            return changes

    def advance(self, time: Any) -> Changes:
        """Promises that nothing more ends at or before a time; the changes of the answer."""
        with self._alone():
            self._open(time)
            return self._advance(self.clock.read(time))

    def _advance(self, time: int, over: bool = False) -> Changes:
        if abs(time) >= LONGEST:
            raise DataError(f"a time too far from the origin: {self.clock.show(time)}")
        self.advanced = time if self.advanced is None else max(self.advanced, time)
        self.circuit.tick(self.now)
        return self._finish(over)

    def finish(self) -> Changes:
        """Says that nothing more comes: what is there is final."""
        with self._alone():
            if self.now is None:
                return Changes()
            return self._advance(self.now, over=True)

    def feed(self, events: Iterable[Any]) -> Iterator[Change]:
        """Pushes one event at a time, and yields the changes as they come."""
        for event in events:
            yield from self.push(event)

    # Steps

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Nobody else tells the session anything meanwhile, and whoever looks waits."""
        if not self._entered.acquire(blocking=False):
            raise RunError(
                "the session is in use", hint="one thread at a time tells a session; a callback must not push"
            )
        try:
            with self._turn:
                yield
        except RecursionError:
            raise too_deep() from None
        finally:
            self._entered.release()

    def _step(self, arrive: Callable[[], Any], frontier: int | None = None) -> Changes:
        """One step: all of it, or nothing where something fails. After it nothing more ends by the frontier."""
        circuit = self._circuit
        assert circuit is not None
        if circuit.tables.rows > min(2 * self._kept + _MANY, (self._kept + circuit.tables.guard.rows) // 2):
            self._prune_if_worth()
        arrived = arrive()
        count_work(arrived.count)
        circuit.tables.guard.begin()
        before = circuit.now
        try:
            arrived.apply(circuit)
            circuit.tick(max((t for t in (self.now, arrived.greatest, frontier) if t is not None), default=None))
            circuit.tables.guard.answered(
                sum(one.events.out.table.n - one.events.out.table.mark for one in self.answers)
            )
        except BaseException as error:
            circuit.tables.guard.end()
            circuit.now = before
            circuit.undo()
            self.arrivals.undo(arrived)
            for one in self.answers:
                one.rebuild()
            self._index_answers()
            if isinstance(error, Exceeded | MemoryError):
                raise self._too_much(error) from None
            raise
        circuit.tables.guard.end()
        if arrived.greatest is not None:
            self.greatest = arrived.greatest if self.greatest is None else max(self.greatest, arrived.greatest)
        if frontier is not None:
            self.advanced = frontier if self.advanced is None else max(self.advanced, frontier)
        self.counted += arrived.count
        self.rejected += arrived.rejected
        self.late_count += len(arrived.late)
        if self._late is None:
            self.late += arrived.late
        changes = self._finish()
        for item in arrived.late if self._late is not None else ():
            self._late(item)  # type: ignore[misc]
        return changes

    def _too_much(self, error: Exceeded | MemoryError) -> RunError:
        """What a step would have needed, and for which rule; the session is as it was before."""
        operator = self.circuit.running
        rule = operator.rule if operator is not None else ""
        who = f"rule `{rule}`" if rule else "the step"
        if isinstance(error, Exceeded):
            return RunError(f"{who} {error.what}; the step is undone", hint=error.hint)
        return RunError(
            f"{who} needs more memory than there is: {error}; the step is undone",
            hint="give it a window or a key, or tell fewer events at a time",
        )

    def _final(self, one: Answers, until: int | None, over: bool) -> tuple[int | None, Array | None]:
        """Up to when answers of a type are final, and which are not yet: a longer run may still take their place."""
        delays = settling_delays(self.program.plan)
        if (
            until is None
            or over
            or until >= LONGEST - 1  # a host says that nothing more comes
            or delays.get((one.events.type, one.events.arity), 0) == 0
        ):
            return until, None
        horizon = Horizon(self.circuit, until)
        held, limit = one.events.held_back(horizon)
        if horizon.relied:
            self.circuit.relied_on_lengths(until)
        return min(until, limit), held

    def _finish(self, over: bool = False) -> Changes:
        circuit = self._circuit
        assert circuit is not None
        until = self.now if self.settings.emit == "early" else self.settled
        gone, given = list[Rows](), list[Rows]()
        concerned = [self._of_table[key] for key in circuit.tables.changed if key in self._of_table]
        for one in dict.fromkeys((*concerned, *self._waiting)):
            early = self.settings.emit == "early"
            dead, new = one.step(*((until, None) if early else self._final(one, until, over)))
            if len(dead):
                gone.append(Rows(circuit, one.events, dead))
            if len(new):
                given.append(Rows(circuit, one.events, new))
                self.matched += len(new)
            if one.waiting:
                self._waiting[one] = None
            else:
                self._waiting.pop(one, None)
        goals = self._callbacks.goals(circuit, self.now)
        circuit.settle()
        self.steps += 1
        changes = Changes(Found(gone), Found(given), self.program.plan, self.clock)
        self._unseen.update((*gone, *given))
        self._callbacks.call(changes, goals)  # from here on a callback may fail: the step is over
        return changes

    def _prune_if_worth(self) -> None:
        """Between steps, once state has doubled: where there is a frontier, or most of it is dead."""
        circuit = self.circuit
        dead = sum(operator.out.table.dead for operator in circuit.operators)
        if self.settled is not None or 2 * dead > circuit.rows:
            self._prune()
        else:
            self._kept = circuit.rows

    def prune(self) -> int:
        """Forgets what can no longer matter; how many rows of state are left. It happens by itself now and then."""
        with self._alone():
            return self._prune()

    def _prune(self) -> int:
        circuit = self.circuit
        self._keep_unseen()
        moved = compact(circuit, self.settled)
        if self.settled is not None:
            self.pruned = True
            circuit.knowledge.changes.prune(
                circuit.asked_since(self.settled, unsettled(circuit, self.settled)), self.settled
            )
        for one in self.answers:
            one.moved(moved[id(one.events.out.table)])
        self._index_answers()
        self.arrivals.moved(moved)
        self._kept = circuit.rows
        return self._kept

    def _keep_unseen(self) -> None:
        """Answers that somebody still holds are made from what may be forgotten now."""
        for rows in list(self._unseen):
            rows.keep()
        self._unseen.clear()

    def snapshot(self) -> bytes:
        """The state as bytes; `program.restore` goes on from it."""
        with self._turn:
            return snapshot.taken(self)

    def save(self, path: str | Path) -> None:
        """Writes the state to a file; `program.restore` goes on from it.

        The file appears once it is whole: one that is there already stays as it is until then, whatever happens.
        """
        with self._turn:
            snapshot.save(self, path)

    def on(self, type: str, callback: Callable[[Change], None]) -> None:
        """Calls a function with every change of an event type."""
        known = {name for name, _ in self.program.plan.derived}
        if type not in known:
            raise RunError(f"no rule derives `{type}`", hint=f"there is {', '.join(sorted(known))}")
        if type not in self.program.plan.outputs:
            raise RunError(f"`{type}` is not an output of the program", hint=f"say `output {type}.`")
        self._callbacks.of_type.setdefault(type, []).append(callback)

    def on_goal(self, rule: str, threshold: float, callback: Callable[[Goal], None]) -> None:
        """Calls a function with each partial match of a rule that is at least so complete, from 0 to 1."""
        self._known_rule(rule)
        self._callbacks.of_goal.setdefault(rule, []).append((threshold, callback))

    # Rules come and go

    def add_rules(self, rules: str | Path, since: Literal["past", "now"] = "past") -> Changes:
        """Adds event rules. They see what is held of the past, or just the events that start from now on."""
        if since not in ("past", "now"):
            raise RunError(f"rules start from the past or from now, not from {since!r}")
        with self._alone():
            program, before = growing.with_rules(self, rules), snapshot.taken(self)
            try:
                growing.add(self, program, rules, self.now if since == "now" else None)
            except BaseException:
                shared = {} if self.shared is None else {"knowledge": self.shared, "facts": self.facts}
                self._take_over(snapshot.restored(self.opened, before, limits=self.settings.limits, **shared))
                raise
            return self._finish()

    def _take_over(self, other: Session) -> None:
        """Goes on with the state of another session."""
        for name in ("program", "_circuit", "answers", "_of_table", "_waiting", "arrivals", "grown", "_kept"):
            setattr(self, name, getattr(other, name))

    def remove_rule(self, label: str) -> Changes:
        """Takes a rule out; what only it derived is retracted."""
        with self._alone():
            return growing.remove(self, label)

    # Looking inside

    def goals(self, rule: str | None = None) -> Goals:
        """What has begun and has not ended: partial matches, and facts that events made and that hold."""
        if rule is not None:
            self._known_rule(rule)
        with self._turn:
            forgotten = self.settled if self.pruned else None
            return Goals([*goals(self.circuit, rule, self.now), *states(self.circuit, rule, self.now, forgotten)])

    def why(self, event: Event, all: bool = False, format: Literal["text", "json", "mermaid"] = "text") -> str:
        """The derivation of an event that stands, as a tree; with `all`, every derivation that is held."""
        with self._turn:
            return inspect.why(self, event, all, format)

    def why_not(self, atom: str, format: Literal["text", "json"] = "text") -> str:
        """Why an event such as `alarm('l1')` was not detected: for each rule the nearest partial match and what failed."""
        with self._turn:
            return inspect.why_not(self, atom, format)

    def timeline(self, changes: Iterable[Change] = (), **options: Unpack[TimelineOptions]) -> Picture:
        """A picture of the events that are held and of what stands; see `Result.timeline`.

        Of `changes`, which a session does not keep, those answers are drawn as well that were taken back and stand no more.
        """
        if self._circuit is None:
            return timeline(Scene((), Clock()), **options)
        with self._turn:
            stands = self._standing(None)
            said = {one.event.content: one.event for one in changes if one.op == "retract"}
            gone = [said[content] for content in said.keys() - {event.content for event in (stands if said else ())}]
            return timeline(
                scene_of(self._circuit, self.program.plan, self.clock, stands.found, gone, self.now), **options
            )

    def stats(self) -> dict[str, Any]:
        """What the session has seen and what it holds: rows and bytes, by operator and rule; ids revoked so far."""
        with self._turn:
            return inspect.stats(self)

    def _known_rule(self, label: str) -> None:
        known = [rule.label for rule in self.program.plan.rules]
        if label not in known:
            close = nearest(label, known)
            raise RunError(f"there is no rule `{label}`", hint=f"did you mean `{close}`?" if close else "")

    # What stands

    def events(self, until: int | None = None) -> Detected:
        """All answers that stand, in the order of events; or just those that end by a time."""
        with self._turn:
            return self._standing(until)

    def _standing(self, until: int | None) -> Detected:
        if self._circuit is None:
            return Detected(Found([]), self.program.plan, Clock())
        found = []
        for one in self.answers:
            rows = one.standing()
            if until is not None:
                rows = rows[one.events.given_at()[rows] <= until]
            if len(rows):
                found.append(Rows(self._circuit, one.events, rows))
        self._unseen.update(found)
        return Detected(Found(found), self.program.plan, self.clock)

    @property
    def errors(self) -> dict[tuple[str, str], int]:
        """Rows that could not be computed: how often, by rule and message."""
        return {} if self._circuit is None else self._circuit.errors
