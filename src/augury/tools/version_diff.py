"""Two versions of a program over one history: which answers are gained, lost, or have another interval, and why.

The history is read once for both. Answers are compared by their ids, which follow from type, arguments and interval, as
columns; events are made of those that differ alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from augury.algebra.properties import all_properties
from augury.core.clock import Clock
from augury.core.errors import AuguryError, RunError
from augury.core.model import Event, OrderKey, order_key
from augury.engine.session import Session
from augury.explain import sessions
from augury.explain.derivations import INNER, CircuitDerivations, ExplainedCircuit, inner_of
from augury.explain.why import derivation_tree
from augury.notation import show_event
from augury.program import Program
from augury.sinks import Answers, event_as_json

Kind: TypeAlias = Literal["gained", "lost", "changed"]


@dataclass(frozen=True)
class AnswerDifference:
    """An answer that one version has: `gained` in the new one, `lost` from the old one; of `changed` both intervals."""

    kind: Kind
    event: Event
    before: Event | None = None
    why: str = ""
    why_not: str = ""


@dataclass(frozen=True)
class TypeDifference:
    """The answers of one type: how many each version has, and how many differ."""

    type: str
    old: int
    new: int
    gained: int = 0
    lost: int = 0
    changed: int = 0


@dataclass(frozen=True)
class VersionDiff:
    """All types of both versions, and explained samples of what differs."""

    types: tuple[TypeDifference, ...]
    samples: tuple[AnswerDifference, ...]
    clock: Clock = field(default_factory=Clock)
    unexplained: str = ""  # why samples are not explained, if they are not

    def count(self, kind: Kind) -> int:
        return sum(getattr(row, kind) for row in self.types)

    @property
    def same(self) -> bool:
        return not any(self.count(kind) for kind in ("gained", "lost", "changed"))

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        width = max([4, *(len(row.type) for row in self.types)])
        yield f"{'type':<{width}}  {'old':>9} {'new':>9} {'gained':>9} {'lost':>9} {'interval':>9}"
        for row in self.types:
            yield f"{row.type:<{width}}  {row.old:>9,} {row.new:>9,} {row.gained:>9,} {row.lost:>9,} {row.changed:>9,}"
        for sample in self.samples:
            yield ""
            shown = show_event(sample.event, self.clock)
            if sample.before is not None:
                yield f"another interval: {show_event(sample.before, self.clock)} → {shown}"
            else:
                yield f"{sample.kind}: {shown}"
            first, second = ("old", "new") if sample.kind == "lost" else ("new", "old")
            other = "why" if sample.before is not None else "why not"
            for name, word, text in ((first, "why", sample.why), (second, other, sample.why_not)):
                if text:
                    yield f"  {word}, in the {name} version"
                    yield from (f"    {line}" for line in text.splitlines())
        if self.same:
            yield ""
            yield "both versions have the same answers"
        if self.unexplained:
            yield ""
            yield f"not explained: {self.unexplained}"

    def as_json(self) -> dict[str, Any]:
        """All of it as plain data."""
        return {
            "types": [row.__dict__ for row in self.types],
            **{kind: self.count(kind) for kind in ("gained", "lost", "changed")},
            "samples": [
                {
                    "kind": sample.kind,
                    "event": event_as_json(sample.event, self.clock),
                    **({"before": event_as_json(sample.before, self.clock)} if sample.before else {}),
                    **({"why": sample.why} if sample.why else {}),
                    **({"why_not": sample.why_not} if sample.why_not else {}),
                }
                for sample in self.samples
            ],
            **({"unexplained": self.unexplained} if self.unexplained else {}),
        }


def compare_versions(
    old: Answers[Event],
    new: Answers[Event],
    clock: Clock,
    outputs: Iterable[str],
    sessions_of: tuple[Session, Session] | None = None,
    most: int = 3,
) -> VersionDiff:
    """Compares two answers; explains `most` answers of each type and kind that differ, where the sessions are there."""
    rows: list[TypeDifference] = []
    samples: list[AnswerDifference] = []
    for type in outputs:
        before, after = _columns(old, type), _columns(new, type)
        lost, gained = before.without(after), after.without(before)
        changed = _same_arguments(lost, gained)
        count = len(changed)
        rows.append(TypeDifference(type, len(before), len(after), len(gained) - count, len(lost) - count, count))
        paired = {event.content for pair in changed for event in pair}
        kinds: tuple[tuple[Kind, Sequence[Event]], ...] = (("gained", gained), ("lost", lost))
        for kind, events in kinds:
            chosen = [event for event in events if event.content not in paired][:most]
            samples += [_explained(AnswerDifference(kind, event), sessions_of, clock) for event in chosen]
        samples += [_explained(AnswerDifference("changed", b, a), sessions_of, clock) for a, b in changed[:most]]
    return VersionDiff(tuple(rows), tuple(samples), clock)


def reach_back(program: Program, points: bool) -> int:
    """How far before and after an answer lies what its explanation can depend on, in microseconds.

    A derived event is made of others, so the horizons of the rules that lead to it add up. `points`: inputs are points.
    """
    plan, reach = program.plan, 0
    if plan.graph_queries:
        raise RunError(f"query `{plan.graph_queries[0].name}` is over a graph, which has no horizon")
    for label, row in all_properties(plan).items():
        horizon = row.horizon if points else row.any_length
        if horizon is None or any(memory.count is not None for memory in row.memory):
            raise RunError(f"rule `{label}` looks back without a bound")
        reach += horizon
    return reach


def spans_around(
    difference: VersionDiff, versions: tuple[Program, Program], points: bool = False
) -> list[tuple[int, int]]:
    """The times that the explanations of the samples can depend on; an error where they may be any."""
    ticks = difference.clock.length(max(reach_back(program, points) for program in versions))
    events = [event for sample in difference.samples for event in (sample.event, sample.before) if event is not None]
    return [(event.start - ticks, event.end + ticks) for event in events]


def explained_difference(difference: VersionDiff, runs: tuple[Session, Session]) -> VersionDiff:
    """The same with its samples explained by sessions that hold the events around them, where these lead to the same."""
    standing = [CircuitDerivations(run.circuit, None).rows for run in runs]
    samples = []
    for sample in difference.samples:
        before = sample.before if sample.kind == "changed" else sample.event if sample.kind == "lost" else None
        after = None if sample.kind == "lost" else sample.event
        wanted = [(event, other) for event, other in ((before, standing[1]), (after, standing[0])) if event is not None]
        agrees = all(event.id not in other for event, other in wanted)
        agrees &= before is None or before.id in standing[0]
        agrees &= after is None or after.id in standing[1]
        samples.append(_explained(sample, runs, difference.clock) if agrees else sample)
    return replace(difference, samples=tuple(samples))


@dataclass(frozen=True)
class _TypeAnswers:
    """The answers of a type, whose ids are a column."""

    parts: Sequence[Any]

    def __len__(self) -> int:
        return sum(map(len, self.parts))

    def without(self, other: _TypeAnswers) -> list[Event]:
        """The events that another answer does not have, in the order of events."""
        theirs = pa.chunked_array([p.texts_of_ids(0, len(p)) for p in other.parts] or [[]], pa.string())
        events: list[Event] = []
        for part in self.parts:
            ids = part.texts_of_ids(0, len(part)).cast(pa.string())
            rows = pc.indices_nonzero(pc.invert(pc.is_in(ids, theirs.combine_chunks()))).to_pylist()
            events += [part.event(row) for row in rows]
        return sorted(events, key=lambda event: event.order)


def _columns(answers: Answers[Event], type: str) -> _TypeAnswers:
    return _TypeAnswers([part for part in answers.parts if part.type == type])


def _same_arguments(lost: Iterable[Event], gained: Iterable[Event]) -> list[tuple[Event, Event]]:
    """Pairs of a lost and a gained answer with the same arguments, each once, in the order of events."""
    waiting: dict[OrderKey, list[Event]] = {}
    for event in gained:
        waiting.setdefault(tuple(map(order_key, event.args)), []).append(event)
    pairs = []
    for event in lost:
        others = waiting.get(tuple(map(order_key, event.args)))
        if others:
            pairs.append((event, others.pop(0)))
    return pairs


def _explained(
    difference: AnswerDifference, versions: tuple[Session, Session] | None, clock: Clock
) -> AnswerDifference:
    """An answer with why it is in one version, and why not in the other."""
    if versions is None:
        return difference
    old, new = versions
    there, missing = (old, new) if difference.kind == "lost" else (new, old)
    why = _text(lambda: sessions.why(there, difference.event))
    before = difference.before
    if before is not None:
        return replace(difference, why=why, why_not=_text(lambda: sessions.why(old, before)))
    first = _first_missing(difference.event, there, missing)
    if any(query.name == inner_of(first.type) for query in missing.program.plan.graph_queries):
        return replace(difference, why=why, why_not=_unmatched(first, there, clock))
    asked = show_event(first, clock)
    return replace(difference, why=why, why_not=_text(lambda: sessions.why_not(missing, asked)))


def _first_missing(event: Event, there: Session, missing: Session) -> Event:
    """The event behind an answer that a version does not derive, while it derives all that this event is made of."""
    standing = CircuitDerivations(missing.circuit, None).rows
    tree = derivation_tree(ExplainedCircuit(there.circuit, None, inner=True), event)
    while True:
        parts = [part for _, below in tree.ways[:1] for part in below]
        absent = next((p for p in parts if p.event.id not in standing and any(way.rule for way, _ in p.ways)), None)
        if absent is None:
            return tree.event
        tree = absent


def _unmatched(first: Event, there: Session, clock: Clock) -> str:
    """What one version of a query matches and the other does not: a graph pattern, a join of several, or the sequence."""
    tree = derivation_tree(ExplainedCircuit(there.circuit, None), first)
    query, _, part = first.type.partition(INNER)
    what = f"query {query}: the graphs match, and their sequence, its window, or what is selected does not"
    if part:
        named = "graphs do not match together" if part.isdigit() else f"the graph pattern {part} does not match"
        what = f"query {query}: {named}"
    inputs = list(dict.fromkeys(event for derivation, _ in tree.ways[:1] for event in derivation.parts))
    lines = [f"{show_event(event, clock)}" + (f"  (input {event.id})" if event.id else "") for event in inputs]
    return "\n".join([what, *(f"{'└' if line is lines[-1] else '├'}─ {line}" for line in lines)])


def _text(explain: Any) -> str:
    try:
        return str(explain())
    except AuguryError as error:
        return str(error)


def reading_program(old: Program, new: Program) -> Program | None:
    """A program by which the input of both is read at once; None where they declare a type in two ways."""
    first, second = old.plan, new.plan
    for before, after in ((first.declared, second.declared), (first.static, second.static)):
        if any(before[name] != after[name] for name in before.keys() & after.keys()):
            return None
    declared: Mapping[str, Any] = {**first.declared, **second.declared}
    static: Mapping[str, Any] = {**first.static, **second.static}
    queries = {query.name: query for query in (*first.graph_queries, *second.graph_queries)}
    plan = replace(
        first,
        declared=declared,
        static=static,
        rules=(*first.rules, *second.rules),
        clauses=(*first.clauses, *second.clauses),
        prefixes={**first.prefixes, **second.prefixes},
        graph_queries=tuple(queries.values()),
    )
    return replace(old, plan=plan)
