"""A session: events go in, changes come out. The public face of the engine, together with `Program.session`."""

from __future__ import annotations

import warnings
import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, ClassVar, Literal

from augury.algebra.plan import Plan, Predicate
from augury.algebra.properties import settling_delays
from augury.compiled import Compiled, check_clock
from augury.core.arrays import Array
from augury.core.bounds import TIME_LIMIT
from augury.core.clock import Clock
from augury.core.errors import DataError, RunError, UnusableError, nearest, too_deep
from augury.core.jit import count_work
from augury.core.model import Change, Event, Fact, HistoryItem, Revocation
from augury.engine import growing, inspect, snapshot
from augury.engine.arrivals import Arrivals, Arrived, SessionFrontier
from augury.engine.atomic import Compaction, StepTransaction, Turn, release
from augury.engine.callbacks import Callbacks
from augury.engine.changes import Changes, Detected, TypeAnswers
from augury.engine.circuit import Circuit
from augury.engine.found import AnswerRows, FoundAnswers
from augury.engine.goals import Goal, Goals, goals, states
from augury.engine.horizon import Horizon, compact, unsettled
from augury.engine.intake import Intake
from augury.engine.learning import in_time, known_name, rewire, statements_from, unforeseen
from augury.knowledge.facts import check_facts, facts_from
from augury.knowledge.graphs import Graphs
from augury.knowledge.knowledge_base import Knowledge
from augury.settings import Settings, choose_clock
from augury.sources import Batch
from augury.storage.guard import Exceeded, Guard

_MANY = 100_000  # rows, facts and values that are worth a look at what may be forgotten
_FEW_VALUES = 4096  # of facts that are gone, that are not worth forgetting


class Session:
    """A program that runs: `push` events, `revoke` them, `advance` the clock; each returns the changes of the answer.

    One thread at a time pushes and raises when entered twice; whoever just looks waits until a step is over.
    """

    changes_type: ClassVar[type[Changes]] = Changes  # what a step returns

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
        self._turn = Turn()  # whoever looks waits for the end of a step
        self.greatest: int | None = None  # the greatest end seen
        self.advanced: int | None = None  # what `advance` has promised
        self.steps = self.counted = self.matched = self.received = self.accepted = self.repeated = 0
        self.repeats: Counter[Predicate | None] = (
            Counter()
        )  # in the steps of a host: `repeated` by type; None: revocations
        self._unseen: weakref.WeakSet[AnswerRows] = weakref.WeakSet()
        self._kept = self._weighed = 0  # how many rows there were, and how much in all, when it was last pruned
        self._circuit: Circuit | None = None
        self._intake = Intake(self._reading, self.settings.strict, self.settings.limits)
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
                self._clock = choose_clock(program, settings, first)
                self._report_guess(self._clock)
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

    def _reading(self, first: object) -> Clock:
        """The clock that reads inputs; a unit of times that was guessed from the first one is reported."""
        self._open(first)
        clock = self._clock.reading(first)
        if clock is not self._clock:
            self._report_guess(clock)
        self._clock = clock
        return clock

    def _report_guess(self, clock: Clock) -> None:
        if clock.guess:
            warnings.warn(clock.guess, stacklevel=2)

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
        circuit.turn = self._turn
        circuit.tables.guard = Guard(self.settings.limits)
        outputs = set(self.program.plan.outputs)
        answers = [TypeAnswers(events) for (name, _), events in circuit.derived.items() if name in outputs]
        longest = self.settings.longest
        arrivals = Arrivals(circuit, self.program.plan, None if longest is None else self.clock.length(longest))
        self.answers, self.arrivals = answers, arrivals
        self._index_answers()
        self._turn.circuit = weakref.ref(circuit)
        self._weighed = circuit.weight
        self._circuit = circuit

    def close(self) -> None:
        """Forgets the circuit and the clock that the first events have opened it with."""
        self._circuit, self._intake.reader = None, None
        self._turn.circuit = lambda: None

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
            return self._step(lambda: self._read(events))

    def _read(self, events: Any) -> Arrived | None:
        read = self._intake.read(events, self.program.plan)
        if not len(read) and self._circuit is None:
            return None  # nothing yet that tells the clock
        return self.arrivals.pushed(read, self._bounds)

    @property
    def unknown(self) -> dict[str, int]:
        """How many events came of types that the program does not know."""
        return self._intake.unknown

    @property
    def _bounds(self) -> SessionFrontier:
        return SessionFrontier(
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
            with self._undoing(StepTransaction(self).undo):
                self._open(self.now)
                statements = statements_from(self, facts)
                new = unforeseen(self, {one.fact.name for one in statements})
                self._turn.pending = None
            if new:
                with self._restoring():
                    rewire(self, new)
                    self._turn.pending = None
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

        def arrive() -> Arrived:
            self._open(None)
            behind = max((t for t in (self.frontier, late) if t is not None), default=None)
            return self.arrivals.batches(batches, behind, revoked, withdrawn)

        with self._alone():
            changes = self._step(arrive, frontier)
            self._unseen.difference_update((*changes.gone.parts, *changes.given.parts))
            return changes

    def advance(self, time: Any) -> Changes:
        """Promises that nothing more ends at or before a time; the changes of the answer."""
        with self._alone():

            def arrive() -> Arrived:
                self._open(time)
                return self._until(self.clock.read(time))

            return self._step(arrive)

    def _advance(self, time: int, over: bool = False) -> Changes:
        with self._alone():
            return self._step(lambda: self._until(time), over=over)

    def _until(self, time: int) -> Arrived:
        """Nothing arrives, and nothing more ends at or before a time."""
        if abs(time) >= TIME_LIMIT:
            raise DataError(f"a time too far from the origin: {self.clock.show(time)}")
        self._open(None)
        return Arrived(self.arrivals, unnamed=self.arrivals.unnamed, frontier=time)

    def finish(self) -> Changes:
        """Says that nothing more comes: what is there is final."""
        now = self.now
        return self.changes_type() if now is None else self._advance(now, over=True)

    def feed(self, events: Iterable[Any]) -> Iterator[Change]:
        """Pushes one event at a time, and yields the changes as they come."""
        for event in events:
            yield from self.push(event)

    # Steps

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Nobody else tells the session anything meanwhile, and whoever looks waits."""
        if not self._turn.step():
            raise RunError(
                "the session is in use", hint="one thread at a time tells a session; a callback must not push"
            )
        try:
            with self._turn:
                yield
        except RecursionError:
            raise too_deep() from None
        finally:
            self._turn.stepped()

    def _step(self, arrive: Callable[[], Arrived | None], frontier: int | None = None, over: bool = False) -> Changes:
        """One step: all of it, or nothing where something fails. After it nothing more ends by the frontier.

        `over` says that nothing more comes at all.
        """
        if self._circuit is not None and self._many():
            self._prune_if_worth()
        step = StepTransaction(self)
        late: list[HistoryItem] = []
        with self._undoing(step.undo):
            arrived = arrive()
            if arrived is None:
                step.undo()
                return self.changes_type()
            late += arrived.late
            changes, goals = self._taken(step, arrived, frontier, over)
            self._turn.pending = step.complete  # from here on the step counts
        self._complete(step, changes, goals, late)
        return changes

    @contextmanager
    def _undoing(self, undo: Callable[[], None]) -> Iterator[None]:
        """Undoes what is done inside where it fails."""
        self._turn.pending = undo
        try:
            yield
        except BaseException as error:
            if not isinstance(error, Exceeded | MemoryError):
                self._turn.settle(error)
                raise
            said = self._too_much(error)
            release(error)
            self._turn.settle(error)
            raise said from None

    def _taken(
        self, step: StepTransaction, arrived: Arrived, frontier: int | None, over: bool
    ) -> tuple[Changes, list[Goal]]:
        """Takes in what has arrived; the changes, and the goals that somebody wants to hear of."""
        circuit = self.circuit
        step.opened(arrived)
        count_work(arrived.count)
        bounds = [t for t in (frontier, arrived.frontier) if t is not None]
        circuit.begin()
        arrived.apply(circuit)
        if arrived.greatest is not None:
            self.greatest = arrived.greatest if self.greatest is None else max(self.greatest, arrived.greatest)
        if bounds:
            self.advanced = max(bounds if self.advanced is None else (*bounds, self.advanced))
        circuit.tick(self.now)
        guard = circuit.tables.guard
        guard.answered(sum(one.events.out.table.n - one.events.out.table.mark for one in self.answers))
        guard.end()
        self.counted += arrived.count
        self.received += arrived.received
        self.accepted += arrived.accepted
        self.repeated += arrived.repeated
        self.repeats.update(arrived.repeats)
        self.rejected += arrived.rejected
        self.late_count += len(arrived.late)
        if self._late is None:
            self.late += arrived.late
        return self._told(step, over)

    def _complete(self, step: StepTransaction, changes: Changes, goals: list[Goal], late: list[HistoryItem]) -> None:
        """Completes a step that counts, and calls whoever wants to hear of it."""
        try:
            try:
                step.complete()
            except Exception:
                with suppress(UnusableError):  # it is completed when the session is next used
                    self._turn.settle()
            self._callbacks.call(changes, goals, self._late, late)
        finally:
            if self._late is not None:
                self.late += late  # what nobody was told of, where somebody interrupts

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

    def _final(self, one: TypeAnswers, until: int | None, over: bool) -> tuple[int | None, Array | None]:
        """Up to when answers of a type are final, and which are not yet: a longer run may still take their place."""
        delays = settling_delays(self.program.plan)
        if (
            until is None
            or over
            or until >= TIME_LIMIT - 1  # a host says that nothing more comes
            or delays.get((one.events.type, one.events.arity), 0) == 0
        ):
            return until, None
        horizon = Horizon(self.circuit, until)
        held, limit = one.events.held_back(horizon)
        if horizon.relied:
            self.circuit.relied_on_lengths(until)
        return min(until, limit), held

    def _told(self, step: StepTransaction, over: bool = False) -> tuple[Changes, list[Goal]]:
        """What the step has changed. From then on nothing needs memory until it counts."""
        circuit = self.circuit
        until = self.now if self.settings.emit == "early" else self.settled
        gone, given = list[AnswerRows](), list[AnswerRows]()
        concerned = [self._of_table[key] for key in circuit.tables.changed if key in self._of_table]
        for one in dict.fromkeys((*concerned, *self._waiting)):
            early = self.settings.emit == "early"
            dead, new = one.step(*((until, None) if early else self._final(one, until, over)))
            if len(dead):
                gone.append(AnswerRows(circuit, one.events, dead))
            if len(new):
                given.append(AnswerRows(circuit, one.events, new))
                self.matched += len(new)
            if one.waiting:
                self._waiting[one] = None
            else:
                self._waiting.pop(one, None)
        goals = self._callbacks.goals(circuit, self.now)
        self.steps += 1
        step.given = [*gone, *given]
        changes = self.changes_type(FoundAnswers(gone), FoundAnswers(given), self.program.plan, self.clock)
        circuit.prepare()
        return changes, goals

    def _many(self) -> bool:
        """Whether so much is held that it is worth a look at what may be forgotten."""
        circuit = self.circuit
        return (
            circuit.weight > 2 * self._weighed + _MANY
            or circuit.tables.rows > (self._kept + circuit.tables.guard.rows) // 2
        )

    def _prune_if_worth(self) -> None:
        """Between steps, once state has doubled: where there is a frontier, or most of it is dead."""
        circuit = self.circuit
        dead = sum(operator.out.table.dead for operator in circuit.operators)
        if self.settled is not None or 2 * dead > circuit.rows:
            self._prune()
        else:
            self._kept, self._weighed = circuit.rows, circuit.weight

    def prune(self) -> int:
        """Forgets what can no longer matter; how many rows of state are left. It happens by itself now and then."""
        with self._alone():
            return self._prune()

    def _prune(self) -> int:
        circuit = self.circuit
        self._keep_unseen()
        compaction = Compaction(self)
        with self._undoing(compaction.undo):
            waiting = {id(one.events.out.table): one.unshown() for one in self.answers}
            moved = compact(circuit, self.settled, waiting)
            for one in self.answers:
                one.moved(moved[id(one.events.out.table)])
            self._index_answers()
            self.arrivals.moved(moved)
            self.pruned = self.pruned or self.settled is not None
            settled = self.settled
            asked = {} if settled is None else circuit.asked_since(settled, unsettled(circuit, settled))
            self._turn.pending = None
        if settled is not None:  # predicate by predicate: what is left for want of memory goes next time
            with suppress(MemoryError):
                circuit.knowledge.changes.prune(asked, settled)
                if self.shared is None:
                    circuit.knowledge.tidy(_FEW_VALUES)
        self._kept, self._weighed = circuit.rows, circuit.weight
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
            program = growing.with_rules(self, rules)
            with self._restoring() as step:
                growing.add(self, program, rules, self.now if since == "now" else None)
                changes, goals = self._told(step)
                self._turn.pending = step.complete
            self._complete(step, changes, goals, [])
            return changes

    @contextmanager
    def _restoring(self) -> Iterator[StepTransaction]:
        """What changes more than rows: where it fails, the session goes back to a snapshot of before."""
        self._keep_unseen()
        step, before = StepTransaction(self), snapshot.taken(self)

        def undo() -> None:
            shared = {} if self.shared is None else {"knowledge": self.shared, "facts": self.facts}
            self._take_over(snapshot.restored(self.opened, before, Session, limits=self.settings.limits, **shared))
            step.undo()

        with self._undoing(undo):
            yield step

    def _take_over(self, other: Session) -> None:
        """Goes on with the state of another session."""
        circuit = other.circuit
        circuit.turn = self._turn
        names = ("program", "_circuit", "answers", "_of_table", "_waiting", "arrivals", "grown", "_kept", "_weighed")
        self.__dict__.update({name: other.__dict__[name] for name in names})
        self._turn.circuit = weakref.ref(circuit)

    def remove_rule(self, label: str) -> Changes:
        """Takes a rule out; what only it derived is retracted."""
        with self._alone():
            program = self.program.without_rule(label)
            with self._restoring() as step:
                changes, goals = growing.remove(self, step, program, label)
                self._turn.pending = step.complete
            self._complete(step, changes, goals, [])
            return changes

    # Looking inside

    def goals(self, rule: str | None = None) -> Goals:
        """What has begun and has not ended: partial matches, and facts that events made and that hold."""
        if rule is not None:
            self._known_rule(rule)
        with self._turn:
            forgotten = self.settled if self.pruned else None
            return Goals([*goals(self.circuit, rule, self.now), *states(self.circuit, rule, self.now, forgotten)])

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
            return Detected(FoundAnswers([]), self.program.plan, Clock())
        found = []
        for one in self.answers:
            rows = one.standing()
            if until is not None:
                rows = rows[one.events.given_at()[rows] <= until]
            if len(rows):
                found.append(AnswerRows(self._circuit, one.events, rows))
        self._unseen.update(found)
        return Detected(FoundAnswers(found), self.program.plan, self.clock)

    @property
    def errors(self) -> dict[tuple[str, str], int]:
        """Rows that could not be computed: how often, by rule and message."""
        return {} if self._circuit is None else self._circuit.errors
