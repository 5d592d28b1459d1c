"""The smallest case in which an answer is, or is not, there: events and facts are left out as long as nothing changes.

Delta debugging: of n items, halves, then quarters and so on are left out, and what can be left out is gone for good. An
answer starts from the events of its trace, which mostly are enough.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from augury.algebra.graph_queries import stream_of
from augury.algebra.plan import Plan
from augury.core.clock import Clock
from augury.core.errors import RunError
from augury.core.model import Event, Fact, HistoryItem, Revocation, Value, show_value
from augury.engine import batch
from augury.engine.session import Session
from augury.explain.sessions import why_not
from augury.explain.why_not import read_asked
from augury.notation import show_event
from augury.program import Program

T = TypeVar("T")
_TRIES = 2000  # runs of the program


def smallest(items: Sequence[T], holds: Callable[[list[T]], bool]) -> list[T]:
    """A part of the items for which something still holds, and of which no single item can be left out.

    >>> smallest([1, 2, 3, 4, 5, 6, 7, 8], lambda part: 3 in part and 7 in part)
    [3, 7]
    """
    kept, pieces, tries = list(items), 2, 0
    while kept and tries < _TRIES:
        size = max(1, -(-len(kept) // pieces))
        for start in range(0, len(kept), size):
            fewer = kept[:start] + kept[start + size :]
            tries += 1
            if holds(fewer):
                kept, pieces = fewer, max(2, pieces - 1)
                break
        else:
            if size == 1:
                return kept
            pieces = min(len(kept), 2 * pieces)
    return kept


@dataclass(frozen=True)
class MinimalCase:
    """A case of few events and facts, and the whole answer to it."""

    name: str
    events: tuple[HistoryItem, ...]
    facts: tuple[Fact, ...]
    answers: tuple[Event, ...]
    clock: Clock
    until: int | None
    retention: str | None = None
    rdf: str | None = None  # the file of the graph, all of which the case has

    def toml(self, program: str) -> str:
        """The case as a spec file; `program` is the line that names the program, or has its text."""
        lines = [program, f'clock = "{self.clock.kind}"']
        lines += [f"retention = {_quoted(self.retention)}"] if self.retention else []
        lines += [f"rdf = {_quoted(self.rdf)}"] if self.rdf else []
        tables: dict[str, list[str]] = {}
        for fact in self.facts:
            tables.setdefault(fact.name, []).append(f"[{', '.join(_toml_value(arg) for arg in fact.args)}]")
        lines += ["", "[[case]]", f"name = {_quoted(self.name)}"]
        lines += [f"facts.{_key(name)} = [{', '.join(rows)}]" for name, rows in tables.items()]
        lines += ["events = [", *(f"    {_quoted(_line(item, self.clock))}," for item in self.events), "]"]
        if self.until is not None:
            shown = self.clock.show(self.until)
            lines.append(f"until = {_quoted(shown) if isinstance(shown, str) else shown}")
        lines += ["expected = [", *(f"    {_quoted(show_event(event, self.clock))}," for event in self.answers), "]"]
        return "\n".join(lines).replace("[\n]", "[]") + "\n"


def _reason(failed: str) -> str:
    """What failed without its values: the condition, or the event that is missing.

    >>> _reason("`window 10s`: from 1 to 13 is 12"), _reason("no event heat('l1') from 1 to 3; the latest is …")
    ('`window 10s`', "no event heat('l1')")
    """
    return re.split(r": | from | after | before |; ", failed)[0]


def _line(item: HistoryItem, clock: Clock) -> str:
    if isinstance(item, Revocation):
        return f"revoke {item.id}" + ("" if item.version is None else f" version {item.version}")
    version = f" version {item.version}" if item.version else ""
    shown = show_event(item, clock)
    if stream_of(item.type) is not None:
        time = shown.rpartition(" @ ")[2]
        shown = f"{item.type} {{ {item.args[0]} }} @ {time}"
    return f"{item.id}: {shown}{version}" if item.id and item.id.replace("-", "").isalnum() else shown


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in escaped) + '"'


def _toml_value(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return show_value(value) if type(value) in (int, float) else _quoted(str(value))


def _key(name: str) -> str:
    return name if name.replace("_", "").isalnum() and name.isascii() else _quoted(name)


@dataclass(frozen=True)
class CaseSearch:
    """Looks for the smallest case of a program, its history and its facts."""

    program: Program
    clock: Clock
    facts: tuple[Fact, ...]
    until: int | None
    retention: int | None
    graphs: tuple[Fact, ...] = ()  # what an RDF file says to queries: all of it stays
    rdf: str | None = None

    @property
    def plan(self) -> Plan:
        return self.program.plan

    def run(self, events: Iterable[HistoryItem], facts: Iterable[Fact]) -> Session:
        """A session that holds some events, with the clock where the case has it."""
        all_facts = [*facts, *self.graphs]
        model = batch.evaluate(self._everything, list(events), self.clock, all_facts, self.until, None, self.retention)
        assert isinstance(model, batch.SessionModel)
        return model.session

    @property
    def _everything(self) -> Program:
        """The program with all that it derives: any of it may be asked about."""
        types = dict.fromkeys((*self.plan.outputs, *(rule.type for rule in self.plan.rules)))
        return replace(self.program, plan=replace(self.plan, outputs=tuple(types)))

    def of_answer(self, history: Sequence[HistoryItem], atom: str, answer: Event) -> MinimalCase:
        """The smallest case that gives an answer; it may have another interval where the question has none."""
        asked = read_asked(atom, self.clock, self.plan.prefixes)

        def gives(events: Sequence[HistoryItem], facts: Sequence[Fact]) -> bool:
            return any(asked.is_met(event) for event in self.run(events, facts).events(self.until))

        trace = set(answer.trace)
        behind = [item for item in history if isinstance(item, Event) and item.id in trace]
        start = behind if gives(behind, self.facts) else list(history)
        return self._smallest(f"{answer.type} is detected", start, gives)

    def of_miss(self, history: Sequence[HistoryItem], atom: str) -> MinimalCase:
        """The smallest case in which an answer is missing for the same reasons: each rule comes as near, and fails alike."""
        asked = read_asked(atom, self.clock, self.plan.prefixes)

        def reasons(events: Sequence[HistoryItem], facts: Sequence[Fact]) -> str:
            session = self.run(events, facts)
            if any(asked.is_met(event) for event in session.events(self.until)):
                return ""
            try:
                misses = json.loads(why_not(session, atom, "json"))
            except RunError:
                return ""
            return str(
                [(miss["rule"], len(miss["parts"]), [_reason(text) for text in miss["failed"]]) for miss in misses]
            )

        wanted = reasons(history, self.facts)
        return self._smallest(
            f"{asked.type} is not detected", history, lambda events, facts: reasons(events, facts) == wanted
        )

    def _smallest(
        self, name: str, history: Sequence[HistoryItem], holds: Callable[[Sequence[HistoryItem], Sequence[Fact]], bool]
    ) -> MinimalCase:
        events = smallest(history, lambda part: holds(part, self.facts))
        facts = smallest(self.facts, lambda part: holds(events, part))
        session = self.run(events, facts)
        answers = [event for event in session.events(self.until) if event.type in self.plan.outputs]
        retention = None if self.retention is None else f"{self.retention}us"
        return MinimalCase(
            name, tuple(events), tuple(facts), tuple(answers), self.clock, self.until, retention, self.rdf
        )
