"""How a case ended: what differs between the answers that it expects and those that there are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from augury.core.clock import Clock
from augury.core.model import Change, Event, OrderKey
from augury.engine.session import Session
from augury.notation import read_event, show_event
from augury.program import Program
from augury.reference import triple_lines


@dataclass(frozen=True)
class Mismatch:
    """One difference: `expected` and `actual` are lines in the notation of a case; the others are answers that differ."""

    about: str
    expected: tuple[str, ...]
    actual: tuple[str, ...]
    missing: tuple[Event, ...] = ()
    unexpected: tuple[Event, ...] = ()

    def __str__(self) -> str:
        if self.about == "answer":
            missing, unexpected = Counter(self.expected), Counter(self.actual)
            lines = [f"  missing: {line}" for line in (missing - unexpected).elements()]
            lines += [f"  too much: {line}" for line in (unexpected - missing).elements()]
            return "the answer differs\n" + "\n".join(lines)
        return (
            f"the {self.about} differ\n  expected:\n"
            + "".join(f"    {line}\n" for line in self.expected)
            + "  found:\n"
            + "".join(f"    {line}\n" for line in self.actual)
        )


@dataclass(frozen=True)
class Outcome:
    """How a case ended. `session` is the one that ran it, which explains answers; None where another engine did.

    `answer` are the lines of the whole answer, `changes` those of the changes, `emitted` those of each step: what
    `augury test --update` writes into the file.
    """

    mismatches: tuple[Mismatch, ...] = ()
    program: Program | None = None
    session: Session | None = None
    clock: Clock = field(default_factory=Clock)
    answer: tuple[str, ...] = ()
    changes: tuple[str, ...] = ()
    emitted: tuple[tuple[str, ...], ...] = ()
    steps: tuple[tuple[Change, ...], ...] = ()

    @property
    def passed(self) -> bool:
        return not self.mismatches


def compare_answers(
    expected: Iterable[str], answers: Iterable[Event], clock: Clock, prefixes: Mapping[str, str] | None = None
) -> None:
    """Raises AssertionError where two answers differ, with what is missing and what is too much."""
    mismatch = difference_of_answers(expected, answers, clock, prefixes)
    if mismatch is not None:
        raise AssertionError(str(mismatch))


def difference_of_answers(
    expected: Iterable[str], answers: Iterable[Event], clock: Clock, prefixes: Mapping[str, str] | None = None
) -> Mismatch | None:
    """How an answer differs from the expected lines; None where it does not."""
    wanted: dict[OrderKey, Event] = {(e := plain(read_answer(line, clock, prefixes))).content: e for line in expected}
    there: dict[OrderKey, Event] = {(e := plain(event)).content: e for event in answers}
    if wanted.keys() == there.keys():
        return None
    return Mismatch(
        "answer",
        tuple(show_event(event, clock) for event in wanted.values()),
        tuple(show_event(event, clock) for event in there.values()),
        tuple(event for content, event in wanted.items() if content not in there),
        tuple(event for content, event in there.items() if content not in wanted),
    )


def read_answer(line: str, clock: Clock, prefixes: Mapping[str, str] | None) -> Event:
    event = read_event(line, clock, prefixes)
    assert isinstance(event, Event), f"not an answer: {line}"
    return event


def plain(event: Event) -> Event:
    """A graph event with its triples in one form, so that it is compared by them; any other event as it is."""
    if not event.type.startswith("<") or not isinstance(event.args[0], str):
        return event
    return replace(event, args=("\n".join(triple_lines(event.args[0])),))


def change_line(change: Change, clock: Clock) -> str:
    return f"{'+' if change.op == 'insert' else '-'} {show_event(change.event, clock)}"
