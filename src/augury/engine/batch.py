"""A whole history at once, and a history pushed item by item, with the answers that the reference evaluator gives."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property, partial
from typing import Literal

import numpy as np

from augury.algebra.plan import Plan
from augury.algebra.stages import needed
from augury.compiled import Compiled
from augury.core.arrays import Array
from augury.core.clock import Clock
from augury.core.limits import NO_LIMITS, Limits
from augury.core.model import Change, Event, Fact, HistoryItem, give_ids
from augury.core.parallel import in_threads
from augury.core.standing import standing
from augury.engine.admission import Admission
from augury.engine.found import AnswerRows
from augury.engine.session import Session
from augury.engine.time_slices import TimeSlice, allow_slices, answer_length, time_slices
from augury.engine.trace import standing_rows
from augury.entailment import Model, Replay
from augury.knowledge.facts import Facts
from augury.planner import optimise
from augury.settings import Settings
from augury.sinks import Answers
from augury.sinks.answers import AnswerPart
from augury.sources import History

FACTS_APART = 8  # a run with more facts than one for so many events has one circuit


class BatchRun(Session):
    """A session of one run, which computes just what the outputs rest on. All else is as the whole program has it."""

    @property
    def plan(self) -> Plan:
        return optimise(needed(self.program.lowered, self.program.plan.outputs))

    def admitted(self, history: History) -> Admission:
        """The events of a history that count."""
        admission = self._admit(history)
        assert admission is not None
        return admission

    def answers_in(self, part: TimeSlice, admission: Admission, until: int | None) -> Answers[Event]:
        """The answers of a slice of the history, in order."""
        events = part.of(admission.batches)
        with self._exclusive():
            self._step(lambda: Admission(sum(map(len, events.values())), greatest=admission.greatest, batches=events))
        if until is not None:
            self._advance(until)
        answers = self.events(until if until is not None else self.now or 0)
        rows = [rows for rows in answers.parts if isinstance(rows, AnswerRows)]
        parts = [AnswerRows(self.circuit, some.derived, some.numbers[part.has(some.end)]) for some in rows]
        answers = Answers(self.program.plan, self.clock, parts)
        len(answers.which)  # puts them in order
        return answers


def evaluate(
    program: Compiled,
    history: History | Iterable[HistoryItem],
    clock: Clock,
    facts: Iterable[Fact] = (),
    until: int | None = None,
    as_of: int | None = None,
    retention: int | None = None,
    limits: Limits | None = None,
    threads: int = 1,
) -> Model:
    """All derived events that the standing history entails, up to the clock. Several threads give the same ones."""
    if threads > 1 and as_of is None and retention is None and isinstance(history, History):
        model = _in_threads(program, history, clock, facts, until, limits or NO_LIMITS, threads)
        if model is not None:
            return model
    session = _session(program, clock, facts, retention, limits=limits)
    if as_of is not None:
        stands = standing(_items(history), as_of)
        session.push(stands.events)
        until = stands.clock if until is None else until
    else:
        session.push(history)
    if until is not None:
        session._advance(until)
    return answer_of(session, until)


def _in_threads(
    program: Compiled,
    history: History,
    clock: Clock,
    facts: Iterable[Fact],
    until: int | None,
    limits: Limits,
    threads: int,
) -> Model | None:
    """The same by slices of time, one a thread; None where that cannot be, or is not worth it."""
    plan = needed(program.lowered, program.plan.outputs)
    length = answer_length(plan, clock, history.batches) if allow_slices(limits) else None
    slices = [] if length is None else time_slices(history.batches, length, threads)
    if len(slices) < 2:
        return None
    listed = Facts.of(facts)
    if len(listed) * FACTS_APART > len(history):  # each slice has all facts
        return None
    runs = [_session(program, clock, listed, None, limits=limits) for _ in slices]
    admission = runs[0].admitted(history)

    def stop() -> None:
        for run in runs:
            run.circuit.tables.guard.stop()

    pieces = [partial(run.answers_in, part, admission, until) for run, part in zip(runs, slices, strict=True)]
    answers = in_threads(pieces, stop)
    if any(run.errors for run in runs):  # slices overlap, and would count some rows twice
        return None
    serial = partial(evaluate, program, history, clock, listed, until, limits=limits)
    return SlicedModel(runs[0].now or 0 if until is None else until, answers, admission, serial)


def replay(
    program: Compiled,
    history: History | Iterable[HistoryItem],
    clock: Clock,
    facts: Iterable[Fact] = (),
    until: int | None = None,
    retention: int | None = None,
    emit: Literal["early", "final"] = "early",
    lateness: int | None = None,
    limits: Limits | None = None,
) -> Replay:
    """The changes of the answer while the history is pushed item by item."""
    session = _session(program, clock, facts, retention, emit, lateness, limits)
    changes: list[Change] = []
    for item in give_ids(_items(history)):
        changes += session.push(item)
    if until is not None:
        changes += session._advance(until)
    if emit == "final":
        changes += session.finish()
    return Replay(changes, list(session.late), answer_of(session, until))


def _items(history: History | Iterable[HistoryItem]) -> Iterable[HistoryItem]:
    return history.items() if isinstance(history, History) else history


def _session(
    program: Compiled,
    clock: Clock,
    facts: Iterable[Fact],
    retention: int | None,
    emit: Literal["early", "final"] = "early",
    lateness: int | None = None,
    limits: Limits | None = None,
) -> BatchRun:
    late = lateness if lateness is None or clock.kind == "timestamp" else lateness * clock.tick
    settings = Settings(emit=emit, lateness=late, retention=retention, limits=limits or NO_LIMITS)
    return BatchRun(program, settings, clock=clock, facts=facts)


def answer_of(session: Session, until: int | None) -> Model:
    """The answers of a session, up to the clock."""
    return SessionModel(session, until if until is not None else session.now or 0)


class SessionModel(Model):
    """The model of a session; its events are made on access."""

    def __init__(self, session: Session, now: int) -> None:
        self.session, self.clock = session, now
        self.inputs, self.rejected, self.errors = {}, session.rejected, session.errors
        self.makers = session.circuit.plan.makers
        self.accepted, self.repeated = session.accepted, session.repeated

    @cached_property
    def detected(self) -> Answers[Event]:
        return self.session.events(self.clock)

    @cached_property
    def events(self) -> list[Event]:  # type: ignore[override]
        return list(self.detected)

    @cached_property
    def all_events(self) -> list[Event]:  # type: ignore[override]
        circuit = self.session.circuit
        rows = standing_rows(circuit, self.clock).values()
        return sorted((circuit.event((events.out.table, row)) for events, row in rows), key=lambda e: e.order)


class SlicedModel(SessionModel):
    """The model of a run in slices of time. What is asked beside its answers, such as why, is asked of one session, which
    is made then."""

    def __init__(
        self, now: int, answers: Sequence[Answers[Event]], admission: Admission, serial: Callable[[], Model]
    ) -> None:
        self.clock, self._answers, self._serial = now, answers, serial
        self.inputs, self.rejected, self.errors = {}, admission.rejected, {}
        self.makers = {}
        self.accepted, self.repeated = admission.accepted, admission.repeats.total()

    @cached_property
    def session(self) -> Session:  # type: ignore[override]
        model = self._serial()
        assert isinstance(model, SessionModel)
        return model.session

    @cached_property
    def detected(self) -> Answers[Event]:
        first, parts, which = self._answers[0], list[AnswerPart](), list[Array]()
        for answers in self._answers:
            which.append(answers.which + len(parts))
            parts += answers.parts
        return Answers(first.plan, first.clock, parts, np.concatenate(which))
