"""A whole history at once, and a history pushed item by item, with the answers that the reference evaluator gives."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Literal

from augury.algebra.plan import Plan
from augury.algebra.stages import needed
from augury.compiled import Compiled
from augury.core.clock import Clock
from augury.core.limits import NO_LIMITS, Limits
from augury.core.model import Change, Event, Fact, HistoryItem, give_ids
from augury.core.standing import standing
from augury.engine.session import Session
from augury.engine.trace import standing_rows
from augury.entailment import Model, Replay
from augury.planner import optimise
from augury.settings import Settings
from augury.sinks import Answers
from augury.sources import History


class BatchRun(Session):
    """A session of one run, which computes just what the outputs rest on. All else is as the whole program has it."""

    @property
    def plan(self) -> Plan:
        return optimise(needed(self.program.lowered, self.program.plan.outputs))


def evaluate(
    program: Compiled,
    history: History | Iterable[HistoryItem],
    clock: Clock,
    facts: Iterable[Fact] = (),
    until: int | None = None,
    as_of: int | None = None,
    retention: int | None = None,
    limits: Limits | None = None,
) -> Model:
    """All derived events that the standing history entails, up to the clock."""
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
) -> Session:
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
