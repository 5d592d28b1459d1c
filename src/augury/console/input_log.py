"""The inputs of a session in the order of arrival, so that the session can be opened again as of any moment."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import groupby
from typing import TypeAlias

from augury.console.program_text import ProgramText
from augury.core.clock import Clock
from augury.core.model import Event, Fact, HistoryItem, OrderKey, Revocation, content_id, spelling_of
from augury.engine.changes import Changes
from augury.program import Program, ProgramSession
from augury.settings import Settings


@dataclass(frozen=True, slots=True)
class ClockAdvance:
    """A promise that nothing more ends at or before a time."""

    time: int


@dataclass(frozen=True, slots=True)
class RuleChange:
    """Rules that were added, as text, or one that was removed, by its label."""

    text: str = ""
    removed: str = ""

    def apply(self, session: ProgramSession) -> Changes:
        return session.remove_rule(self.removed) if self.removed else session.add_rules(self.text)


Input: TypeAlias = HistoryItem | ClockAdvance | RuleChange


@dataclass(frozen=True)
class Setup:
    """What a session is opened with."""

    text: ProgramText
    clock: Clock
    facts: tuple[Fact, ...]
    settings: Settings

    @cached_property
    def program(self) -> Program:
        """The program as its user wrote it."""
        return self.text.compile()

    @cached_property
    def everything(self) -> Program:
        """The program with all that it derives as outputs, so that every derived event has its changes."""
        return self.text.watched(self.program)

    def open(self) -> ProgramSession:
        return ProgramSession(self.everything, self.settings, clock=self.clock, facts=self.facts)


def play(session: ProgramSession, inputs: Iterable[Input]) -> None:
    """Tells a session its inputs, as many at a time as there are between two promises, or changes of rules."""
    for pushed, group in groupby(inputs, key=lambda item: isinstance(item, Event | Revocation)):
        if pushed:
            session.push(list(group))
            continue
        for item in group:
            if isinstance(item, ClockAdvance):
                session.advance(session.clock.moment(item.time))
            elif isinstance(item, RuleChange):
                item.apply(session)


def opened_at(setup: Setup, base: bytes, inputs: Iterable[Input]) -> ProgramSession:
    """The session of a snapshot, or a new one, that was told some inputs."""
    session = setup.everything.restore(base, limits=None) if base else setup.open()
    play(session, inputs)
    return session


@dataclass
class InputLog:
    """All inputs since the session began, or since a snapshot: of a long stream the oldest inputs are forgotten.

    `most` is how many inputs there are between two snapshots; those since the last snapshot but one are held.
    """

    most: int = 200_000
    base: bytes = b""
    base_step: int = 0  # the step after which `base` was taken
    inputs: list[Input] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)  # how many inputs there were after each step since `base`
    _next: tuple[bytes, int, int] | None = None  # a later snapshot, its step, and the number of inputs before it
    _numbers: dict[tuple[OrderKey, int], int] = field(default_factory=dict)

    def named(self, items: Sequence[HistoryItem]) -> list[HistoryItem]:
        """The items with the ids that the engine gives to those without."""
        return [self._with_id(item) if isinstance(item, Event) and not item.id else item for item in items]

    def _with_id(self, event: Event) -> Event:
        written = spelling_of(event.args)
        number = self._numbers.get((event.content, written), 0)
        self._numbers[event.content, written] = number + 1
        return replace(event, id=content_id(event.type, event.args, event.start, event.end, number, written))

    def add(self, inputs: Sequence[Input], session: ProgramSession) -> None:
        """Adds the inputs of a step that the session has taken."""
        self.inputs += inputs
        self.counts.append(len(self.inputs))
        last = self._next[2] if self._next else 0
        if len(self.inputs) - last >= self.most:
            step = self.base_step + len(self.counts)
            if self._next is not None:
                self._forget(*self._next)
            self._next = (session.snapshot(), step, len(self.inputs))

    def _forget(self, base: bytes, step: int, count: int) -> None:
        del self.inputs[:count]
        self.counts = [n - count for n in self.counts[step - self.base_step :]]
        self.base, self.base_step = base, step

    def until(self, step: int) -> list[Input]:
        """The inputs of the first steps, as far as they are held; `step` counts from one."""
        if step <= self.base_step:
            return []
        return self.inputs[: self.counts[min(step - self.base_step, len(self.counts)) - 1]]
