"""The state of a session, and its steps: each happens as a whole or not at all."""

from __future__ import annotations

import warnings
import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import ClassVar

from augury.algebra.plan import Plan, Predicate
from augury.algebra.properties import finality_delays
from augury.compiled import Compiled, check_clock
from augury.core.arrays import Array
from augury.core.bounds import TIME_LIMIT
from augury.core.clock import Clock
from augury.core.errors import DataError, RunError, UnusableError
from augury.core.jit import count_work
from augury.core.model import Event, HistoryItem
from augury.core.standing import Frontier
from augury.engine.admission import Admission, AdmissionRules
from augury.engine.atomic import Compaction, StepTransaction
from augury.engine.callbacks import Callbacks
from augury.engine.changes import Changes
from augury.engine.circuit import Circuit
from augury.engine.emission import EmittedRows
from augury.engine.found import AnswerRows
from augury.engine.goals import Goal
from augury.engine.horizon import Horizon, compact, unsettled
from augury.engine.input_ids import InputIds
from augury.engine.insertion import insert
from augury.engine.intake import Intake
from augury.engine.learning import known_name
from augury.engine.session_lock import ExclusiveStep, SessionLock, release
from augury.knowledge.facts import check_facts, facts_from
from augury.knowledge.graphs import Graphs
from augury.knowledge.knowledge_base import Knowledge
from augury.settings import Settings, choose_clock
from augury.storage.guard import Exceeded, Guard

_MANY = 100_000  # rows, facts and values that are worth a look at what may be forgotten
_FEW_VALUES = 4096  # values of facts that are gone: fewer are not worth forgetting


class SessionCore:
    """The state of a session between steps, and its steps. `Session` adds the public methods."""

    changes_type: ClassVar[type[Changes]] = Changes  # what a step returns

    def __init__(
        self,
        program: Compiled,
        settings: Settings | None = None,
        *,
        clock: Clock | None = None,
        facts: Mapping[str, object] | Iterable[object] = (),
        rdf: object = (),
        knowledge: Knowledge | None = None,
        late: Callable[[HistoryItem], None] | None = None,
    ) -> None:
        """Without `clock`, the clock follows from the settings and the first event."""
        self.opened = self.program = program  # the program it was opened with, and with the rules added since
        self.settings = settings or Settings()
        self._given_facts, self._graphs = facts, Graphs.of(rdf)
        self._late = late
        self.shared = knowledge  # knowledge that other sessions use as well: nothing in it may change
        self.pruned = False  # whether some of the past is forgotten
        self.late: list[HistoryItem] = []
        self.late_count = 0
        self.rejected: list[tuple[Event, str]] = []
        self._callbacks = Callbacks()
        self.grown: list[tuple[str, str, int | None]] = []  # rules added and removed since it was opened
        self.programs: dict[str, Compiled] = {}  # those that a host has gone on with, by their fingerprints
        self._lock = SessionLock()
        self.greatest: int | None = None  # the greatest end seen
        self.advanced: int | None = None  # what `advance` has promised
        self.steps = self.counted = self.matched = self.received = self.accepted = self.repeated = 0
        self.repeats: Counter[Predicate | None] = Counter()  # in the steps of a host: by type; None: revocations
        self._unseen: weakref.WeakSet[AnswerRows] = weakref.WeakSet()
        self._kept = 0  # how many rows there were after the last pruning
        self._heavy = _MANY  # how much in all is worth a look at what may be forgotten
        self._circuit: Circuit | None = None
        self.lateness: int | None = None
        self.revision: int | None = None
        self._intake = Intake(self.reading_clock, self.settings.strict, self.settings.limits)
        if clock is not None:
            self._clock = clock
        if clock is not None or self.settings.clock is not None or program.plan.tick is not None:
            self._open(None)

    # Opening

    def _open(self, first: object) -> Circuit:
        """Builds the circuit, once the clock is known."""
        if self._circuit is not None:
            return self._circuit
        settings, program = self.settings, self.program
        if not hasattr(self, "_clock"):
            self._clock = choose_clock(program, settings, first)
            self._report_guess(self._clock)
        check_clock(program, self.clock.kind)
        facts = facts_from(self._given_facts, program.plan, self.clock)
        check_facts(facts, program.plan)
        self.facts = facts + self._graphs.facts(program.plan, facts)
        self.lateness = None if settings.lateness is None else self.clock.length(settings.lateness)
        # A revoked event may be as old as a late one, unless `revisable` is a length.
        age = settings.revisable
        self.revision = self.lateness if isinstance(age, bool) else self.clock.length(age)
        for name in sorted(settings.changing):
            known_name(self, name)
        circuit = Circuit(
            self.plan, self.clock, self.facts, settings.retention, settings.longest, set(settings.changing), self.shared
        )
        self._wire(circuit)
        return circuit

    def reading_clock(self, first: object) -> Clock:
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
        """The plan that the circuit computes."""
        return self.program.optimised

    @property
    def clock(self) -> Clock:
        """The clock; known from the first event on, unless it was given."""
        if self._circuit is None and not self.opened_clock:
            raise RunError(
                "the clock is not known before the first event", hint='open the session with clock="logical"'
            )
        return self._clock

    @property
    def circuit(self) -> Circuit:
        return self._open(None) if self._circuit is None else self._circuit

    def _wire(self, circuit: Circuit) -> None:
        circuit.lock = self._lock
        circuit.tables.guard = Guard(self.settings.limits)
        outputs = set(self.program.plan.outputs)
        self.answers = [EmittedRows(events) for (name, _), events in circuit.derived.items() if name in outputs]
        self.input_ids = InputIds(circuit, self.program.plan)
        longest = self.settings.longest
        self._rules = AdmissionRules(
            None if longest is None else self.clock.length(longest),
            self.clock.kind == "timestamp",
            frozenset(self.program.plan.given),
        )
        self._index_answers()
        self._lock.circuit = weakref.ref(circuit)
        self._heavy = 2 * circuit.weight + _MANY
        self._circuit = circuit

    @property
    def opened_clock(self) -> bool:
        """Whether the clock has been chosen."""
        return hasattr(self, "_clock")

    def elsewhere(self, plan: Plan) -> None:
        """Other stages derive the types that a plan is given."""
        self._rules = replace(self._rules, derived_elsewhere=frozenset(plan.given))

    def close(self) -> None:
        """Forgets the circuit and the clock that the first events have opened it with."""
        self._circuit, self._intake.reader = None, None
        self._lock.circuit = lambda: None

    def _index_answers(self) -> None:
        """Which answers a table concerns, and which wait for time to pass."""
        self._of_table = {id(answer_set.events.out.table): answer_set for answer_set in self.answers}
        self._waiting = {answer_set: None for answer_set in self.answers if answer_set.waiting}

    # Time

    @property
    def frontier(self) -> int | None:
        """Nothing more ends at or before it."""
        return self._frontier.closed

    @property
    def _frontier(self) -> Frontier:
        return Frontier(self.lateness, self.revision, self.greatest, self.advanced)

    @property
    def settled(self) -> int | None:
        """The time up to which nothing changes any more: no event that ends there comes or is revoked."""
        if self.lateness is None or self.revision is None:
            return self.advanced
        return Frontier(max(self.lateness, self.revision), None, self.greatest, self.advanced).closed

    @property
    def now(self) -> int | None:
        """The clock: the greatest end seen, or what `advance` said."""
        greatest, advanced = self.greatest, self.advanced
        if greatest is None or (advanced is not None and advanced > greatest):
            return advanced
        return greatest

    # Steps

    def _exclusive(self) -> ExclusiveStep:
        """One writer at a time; readers wait."""
        return ExclusiveStep(self._lock)

    def _step(
        self, admission_of: Callable[[], Admission | None], frontier: int | None = None, over: bool = False
    ) -> Changes:
        """One step: all of it, or nothing where something fails. After it nothing more ends by the frontier.

        `over` says that nothing more comes at all.
        """
        if self._circuit is not None and self._many():
            self._prune_if_worth()
        step = StepTransaction(self)
        late: list[HistoryItem] = []
        with self._undoing(step.undo):
            admission = admission_of()
            if admission is None:
                step.undo()
                return self.changes_type()
            late += admission.late
            changes, goals = self._take_in(step, admission, frontier, over)
            self._lock.pending = step.complete  # from here on the step counts
        self._complete(step, changes, goals, late)
        return changes

    @contextmanager
    def _undoing(self, undo: Callable[[], None]) -> Iterator[None]:
        """Undoes the work inside where it fails."""
        self._lock.pending = undo
        try:
            yield
        except BaseException as error:
            self._undo_failed(error)
            raise

    def _undo_failed(self, error: BaseException) -> None:
        """Undoes a step that failed; raises another error where it exceeded a limit or the memory there is."""
        if not isinstance(error, Exceeded | MemoryError):
            self._lock.settle(error)
            return
        reason = self._too_much(error)
        release(error)
        self._lock.settle(error)
        raise reason from None

    def _take_in(
        self, step: StepTransaction, admission: Admission, frontier: int | None, over: bool
    ) -> tuple[Changes, list[Goal]]:
        """Takes in what is admitted; the changes, and the goals that callbacks want."""
        circuit = self.circuit
        step.applied = True
        count_work(admission.events)
        circuit.begin()
        insert(admission, circuit, self.input_ids)
        for promise in (frontier, admission.frontier):
            if promise is not None:
                self.advanced = promise if self.advanced is None else max(self.advanced, promise)
        self.counted += admission.events
        self.received += admission.received
        self.accepted += admission.accepted
        self.repeated += admission.repeats.total()
        self.rejected += admission.rejected
        self.late_count += len(admission.late)
        if self._late is None:
            self.late += admission.late
        return self._end_step(step, admission.greatest, over)

    def _end_step(self, step: StepTransaction, greatest: int | None, over: bool) -> tuple[Changes, list[Goal]]:
        """Moves the clock once all inputs are in; the changes of the step."""
        circuit = step.circuit or self.circuit
        if greatest is not None and (self.greatest is None or greatest > self.greatest):
            self.greatest = greatest
        circuit.tick(self.now)
        guard = circuit.tables.guard
        if guard.limits.answers is not None:
            guard.answered(
                sum(answer_set.events.out.table.n - answer_set.events.out.table.mark for answer_set in self.answers)
            )
        guard.watching = False
        return self._changes(step, over)

    def _changes(self, step: StepTransaction, over: bool = False) -> tuple[Changes, list[Goal]]:
        """The output changes of a step. From then on nothing needs memory until the step counts."""
        circuit = step.circuit or self.circuit
        of_table, concerned = self._of_table, list[EmittedRows]()
        for key, table in circuit.tables.changed.items():
            if key in of_table:
                concerned.append(of_table[key])
            if table.killed:
                table.prepare()
        if self._waiting:
            concerned = list(dict.fromkeys((*concerned, *self._waiting)))
        retracted: list[AnswerRows] = []
        inserted: list[AnswerRows] = []
        if concerned:
            early = self.settings.emit == "early"
            until = circuit.now if early else self.settled
            for emitted in concerned:
                dead, new = emitted.step(until) if early else emitted.step(*self._final(emitted, until, over))
                if len(dead):
                    retracted.append(AnswerRows(circuit, emitted.events, dead, "retract"))
                if len(new):
                    inserted.append(AnswerRows(circuit, emitted.events, new, "insert"))
                    self.matched += len(new)
                if emitted.waiting:
                    self._waiting[emitted] = None
                else:
                    self._waiting.pop(emitted, None)
        goals = self._callbacks.goals(circuit, circuit.now) if self._callbacks.of_goal else []
        self.steps += 1
        step.concerned, step.answers = concerned, [*retracted, *inserted]
        return self.changes_type(self.program.plan, self._clock, step.answers), goals

    def _final(self, answer_set: EmittedRows, until: int | None, over: bool) -> tuple[int | None, Array | None]:
        """Up to when answers of a type are final, and which are not yet: a longer run may still take their place."""
        delays = finality_delays(self.program.plan)
        if (
            until is None
            or over
            or until >= TIME_LIMIT - 1  # a host says that nothing more comes
            or delays.get((answer_set.events.type, answer_set.events.arity), 0) == 0
        ):
            return until, None
        horizon = Horizon(self.circuit, until)
        held, limit = answer_set.events.held_back(horizon)
        if horizon.relied:
            self.circuit.relied_on_lengths(until)
        return min(until, limit), held

    def _complete(self, step: StepTransaction, changes: Changes, goals: list[Goal], late: list[HistoryItem]) -> None:
        """Completes a step that counts, and calls the callbacks."""
        try:
            try:
                step.complete()
            except Exception:
                with suppress(UnusableError):  # it is completed when the session is next used
                    self._lock.settle()
            if goals or late or self._callbacks.of_type:
                self._callbacks.call(changes, goals, self._late, late)
        finally:
            if self._late is not None:
                self.late += late  # those that the callback did not get, where it was interrupted

    def _too_much(self, error: Exceeded | MemoryError) -> RunError:
        """The limit that a step exceeds, and for which rule; the session is as it was before."""
        operator = self.circuit.running
        rule = operator.rule if operator is not None else ""
        subject = f"rule `{rule}`" if rule else "the step"
        if isinstance(error, Exceeded):
            return RunError(f"{subject} {error.what}; the step is undone", hint=error.hint)
        return RunError(
            f"{subject} needs more memory than there is: {error}; the step is undone",
            hint="give it a window or a key, or push fewer events at a time",
        )

    def _promise(self, time: int) -> Admission:
        """A step without inputs: nothing more ends at or before a time."""
        if abs(time) >= TIME_LIMIT:
            raise DataError(f"a time too far from the origin: {self.clock.show(time)}")
        self._open(None)
        return Admission(frontier=time)

    def _advance(self, time: int, over: bool = False) -> Changes:
        with self._exclusive():
            return self._step(lambda: self._promise(time), over=over)

    # Forgetting

    def _many(self) -> bool:
        """Whether so much is held that it is worth a look at what may be forgotten."""
        circuit = self.circuit
        rows = circuit.tables.rows
        return circuit.weight > self._heavy or rows > (self._kept + circuit.tables.guard.rows) // 2

    def _prune_if_worth(self) -> None:
        """Between steps, once state has doubled: where there is a frontier, or most of it is dead."""
        circuit = self.circuit
        dead = sum(operator.out.table.dead for operator in circuit.operators)
        if self.settled is not None or 2 * dead > circuit.rows:
            self._prune()
        else:
            self._kept, self._heavy = circuit.rows, 2 * circuit.weight + _MANY

    def _prune(self) -> int:
        circuit = self.circuit
        self._keep_unseen()
        compaction = Compaction(self)
        with self._undoing(compaction.undo):
            waiting = {id(answer_set.events.out.table): answer_set.pending() for answer_set in self.answers}
            moved = compact(circuit, self.settled, waiting)
            for answer_set in self.answers:
                answer_set.moved(moved[id(answer_set.events.out.table)])
            self._index_answers()
            self.input_ids.moved(moved, self.settled)
            self.pruned = self.pruned or self.settled is not None
            settled = self.settled
            asked = {} if settled is None else circuit.asked_since(settled, unsettled(circuit, settled))
            self._lock.pending = None
        if settled is not None:  # predicate by predicate: what is left for want of memory goes next time
            with suppress(MemoryError):
                circuit.knowledge.changes.prune(asked, settled)
                if self.shared is None:
                    circuit.knowledge.tidy(_FEW_VALUES)
        self._kept, self._heavy = circuit.rows, 2 * circuit.weight + _MANY
        return self._kept

    def _keep_unseen(self) -> None:
        """Answers that a caller still holds are made from what may be forgotten now."""
        for rows in list(self._unseen):
            rows.keep()
        self._unseen.clear()

    @property
    def errors(self) -> dict[tuple[str, str], int]:
        """Rows that could not be computed: how often, by rule and message."""
        return {} if self._circuit is None else self._circuit.errors
