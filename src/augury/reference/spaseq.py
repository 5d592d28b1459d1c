"""The meaning of SPAseQ queries (SEMANTICS 8), one definition a function, naively: every time, every event, every solution.

It works on the query itself and not on the runs that other executors make of it, so that it can judge them.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from typing import Literal, TypeAlias, assert_never

from augury.algebra.graph_queries import (
    Both,
    Construct,
    EventCount,
    Expression,
    Gpm,
    GraphAlternative,
    GraphQuery,
    Item,
    Operand,
    SelectForm,
    Separator,
    SequenceStep,
    Sliding,
    StepSequence,
    Tumbling,
    Use,
    may_bind,
    readings,
    step_variables,
)
from augury.algebra.nodes import PAST_END, SkipTo
from augury.core.clock import Clock, Timestamp
from augury.core.errors import DataError
from augury.core.model import Event, content_id
from augury.entailment import Derivation
from augury.semantics.rdf_by_rdflib import (
    RdfTerm,
    ReferenceDataset,
    ReferenceGraphPatterns,
    Solution,
    TermTriple,
    aggregated,
    evaluated,
    holds,
    key_from,
    order_of,
    triple_line,
    triples_in,
    value_from,
)

# The time of an iteration, and what its operand makes by itself: its variables in order, by the text of their terms.
IterationKey: TypeAlias = tuple[int, tuple[tuple[bool, str], ...]]


@dataclass(frozen=True)
class QueryMatch:
    """A match so far: its mapping, the times of its first and last event, the events, and the mappings of each `+`.

    `known` is the time by which it can be given: its last, or later where something must be absent after it. `steps` are
    its iterations, those of items without `+` among them: the number of the item, and the key in the order of iterations.
    """

    mapping: Solution
    first: int
    last: int
    events: tuple[Event, ...]
    iterations: Mapping[int, tuple[Solution, ...]] = field(default_factory=dict)
    known: int = 0
    steps: tuple[tuple[int, IterationKey], ...] = ()

    @property
    def order(self) -> tuple[IterationKey, ...]:
        return tuple(key for _, key in self.steps)

    def times(self, item: int) -> list[int]:
        """The times of an item."""
        return [key[0] for number, key in self.steps if number == item]


def answers(
    query: GraphQuery,
    events: Iterable[Event],
    clock: Clock,
    now: int,
    graphs: Mapping[str | None, Sequence[TermTriple]] = {},
) -> list[tuple[Event, Derivation]]:
    """The events that a query derives from those of its streams that stand, with how each came about, by the clock."""
    listed = {d.iri for d in query.datasets} if any(d.named for d in query.datasets) else None
    patterns = ReferenceGraphPatterns(query.gpms, ReferenceDataset(graphs, listed))
    seen = [_checked(event) for event in events]
    result: list[tuple[Event, Derivation]] = []
    for reading in readings(query.items):
        for begin, visible in _partitions(query, seen, patterns):
            for match in _chosen(query, _Matching(query, reading, clock, patterns, seen, visible, begin).matches()):
                if match.known <= now:
                    result += [
                        (event, Derivation(query.name, match.events)) for event in _derived(query, reading, match)
                    ]
    return result


def _checked(event: Event) -> Event:
    if event.start != event.end:
        raise DataError(f"the graph event {event.id} has an interval", hint="a graph event has one time")
    return event


def _partitions(
    query: GraphQuery, events: list[Event], patterns: ReferenceGraphPatterns
) -> Iterator[tuple[Solution, list[Event]]]:
    """For each value of the partition variables, the mapping that a match begins with and the events that belong to it."""
    if not query.partition:
        yield {}, events
        return
    members_of: dict[tuple[RdfTerm, ...], dict[str, Event]] = {}
    for event in events:
        for gpm in query.gpms:
            if event.type in _types(gpm):
                for solution in patterns.solutions(gpm, event):
                    if all(v in solution for v in query.partition):
                        members_of.setdefault(tuple(solution[v] for v in query.partition), {})[event.id] = event
    for values, members in members_of.items():
        yield dict(zip(query.partition, values, strict=True)), list(members.values())


# Which matches are taken


def _chosen(query: GraphQuery, matches: Iterable[QueryMatch]) -> Iterable[QueryMatch]:
    """The matches of one value of the partition that LONGEST or SHORTEST, and SKIP, take."""
    choice = query.choice
    if choice.which == "ALL":
        return matches
    every, best = list(matches), dict[IterationKey, tuple[int, ...]]()
    for match in every:
        counts = _counts(query, match)
        best[match.order[0]] = (max if choice.which == "LONGEST" else min)(best.get(match.order[0], counts), counts)
    every = [match for match in every if best[match.order[0]] == _counts(query, match)]
    return every if choice.skip is None else _skipped(choice.skip, every)


def _counts(query: GraphQuery, match: QueryMatch) -> tuple[int, ...]:
    """How often each `+` comes."""
    return tuple(len(match.times(n)) for n, item in enumerate(query.items) if item.quantifier == "+")


def _skipped(skip: Literal["PAST END"] | SkipTo, matches: Iterable[QueryMatch]) -> Iterator[QueryMatch]:
    """In the order of their iterations, the matches that begin late enough after the one taken before."""
    before: QueryMatch | None = None
    for match in sorted(matches, key=lambda m: m.order):
        if before is None or match.order == before.order or _late_enough(skip, match, before):
            before = match
            yield match


def _late_enough(skip: Literal["PAST END"] | SkipTo, match: QueryMatch, before: QueryMatch) -> bool:
    if skip == PAST_END:
        return match.first > before.last
    assert isinstance(skip, SkipTo)
    times = before.times(skip.part)
    return match.order[0] > before.order[0] and match.first >= (times[0] if skip.which == "FIRST" else times[-1])


def _types(gpm: Gpm) -> set[str]:
    return {f"<{iri}>" for iri in gpm.streams}


@dataclass
class _Matching:
    """Finds the matches of one reading of the sequence. `visible` are the events that contiguity and EVENTS see."""

    query: GraphQuery
    reading: StepSequence
    clock: Clock
    patterns: ReferenceGraphPatterns
    events: list[Event]
    visible: list[Event]
    begin: Solution

    def matches(self) -> Iterator[QueryMatch]:
        matches = list(self._first(self.reading.steps[0]))
        for step in self.reading.steps[1:]:
            matches = [further for match in matches for further in self._next(match, step)]
        for match in matches:
            yield from self._ended(match)

    # Definitions 7 to 9: what an operand makes of a mapping at one time

    @cached_property
    def _at(self) -> dict[int, list[Event]]:
        result: dict[int, list[Event]] = {}
        for event in self.events:
            result.setdefault(event.end, []).append(event)
        return result

    @cached_property
    def _times(self) -> list[int]:
        return sorted(self._at)

    @cached_property
    def _visible_times(self) -> list[int]:
        return sorted(event.end for event in self.visible)

    def _extend(
        self, mapping: Solution, operand: Operand, time: int, previous: Solution | None = None
    ) -> Iterator[tuple[Solution, Solution, tuple[Event, ...]]]:
        """The joins of a mapping with what an operand makes, that by itself, and its events. `previous` is the mapping of
        the iteration before, where there is one."""
        match operand:
            case Use():
                gpm = self.query.gpm(operand.name)
                for event in self._at.get(time, ()):
                    if event.type in _types(gpm):
                        for solution in self.patterns.solutions(gpm, event):
                            if _compatible(mapping, solution):
                                joined = {**mapping, **solution}
                                if all(_asked(condition, joined, previous) for condition in gpm.filters):
                                    yield joined, solution, (event,)
            case Both():
                for left, made, events in self._extend(mapping, operand.left, time, previous):
                    for right, made_right, more in self._extend(left, operand.right, time, previous):
                        yield right, {**made, **made_right}, (*events, *more)
            case GraphAlternative():
                yield from self._extend(mapping, operand.left, time, previous)
                yield from self._extend(mapping, operand.right, time, previous)
            case _:
                assert_never(operand)

    def _makes(self, mapping: Solution, operand: Operand, time: int, previous: Solution | None = None) -> bool:
        return any(True for _ in self._extend(mapping, operand, time, previous))

    def _longer(
        self,
        match: QueryMatch | None,
        mapping: Solution,
        step: SequenceStep,
        time: int,
        previous: Solution | None = None,
    ) -> Iterator[QueryMatch]:
        """A match with one more iteration, which joins with a mapping; None begins a match."""
        for joined, made, events in self._extend(mapping, step.item.operand, time, previous):
            names = may_bind(step.item.operand, self.query)
            key = time, tuple((v in made, key_from(made[v]) if v in made else "") for v in names)
            begun = QueryMatch(joined, time, time, ()) if match is None else match
            steps = (*begun.steps, (step.number, key))
            yield replace(begun, mapping=joined, last=time, events=(*begun.events, *events), steps=steps)

    # Definitions 10 to 12: which times come after

    def _after(
        self, mapping: Solution, operand: Operand, last: int, separator: Separator, previous: Solution | None = None
    ) -> list[int]:
        """The times after `last` at which an operand makes something of a mapping, as a separator has it."""
        later = (t for t in self._times if t > last and self._makes(mapping, operand, t, previous))
        match separator:
            case ":":
                return list(later)
            case ";":
                return list(islice(later, 1))
            case ",":
                coming = self._visible_times[bisect_right(self._visible_times, last) :][:1]
                return [t for t in coming if self._makes(mapping, operand, t, previous)]

    # The steps of a match, `+` among them (definitions 13 and 14)

    def _first(self, step: SequenceStep) -> Iterator[QueryMatch]:
        for time in self._times:
            for match in self._longer(None, self.begin, step, time):
                yield from self._repeated(step, self.begin, match)

    def _next(self, match: QueryMatch, step: SequenceStep) -> Iterator[QueryMatch]:
        for time in self._after(match.mapping, step.item.operand, match.last, step.item.separator):
            if self._absent(match.mapping, step.absent, match.last + 1, time - 1):
                for longer in self._longer(match, match.mapping, step, time):
                    yield from self._repeated(step, match.mapping, longer)

    def _repeated(self, step: SequenceStep, before: Solution, match: QueryMatch) -> Iterator[QueryMatch]:
        """The match and, where the step repeats, all matches that extend it. Every iteration joins with what was
        before.
        """
        if not self._fits(match):
            return
        if not step.repeats:
            yield match
            return
        earlier = match.iterations.get(step.number, ())
        match = replace(match, iterations={**match.iterations, step.number: (*earlier, match.mapping)})
        yield match
        for time in self._after(before, step.item.operand, match.last, step.between, match.mapping):
            for longer in self._longer(match, before, step, time, match.mapping):
                yield from self._repeated(step, before, longer)

    def _absent(self, mapping: Solution, items: Iterable[Item], first: int, last: int) -> bool:
        """Whether no operand of these items makes anything of a mapping from one time to another."""
        times = self._times[bisect_left(self._times, first) : bisect_right(self._times, last)]
        return not any(self._makes(mapping, item.operand, time) for item in items for time in times)

    # Windows

    def _fits(self, match: QueryMatch) -> bool:
        """Whether a match is within its window. One that is not never is again when it grows."""
        window = self.query.window
        match window:
            case None:
                return True
            case Sliding():
                return match.last - match.first <= self.clock.length(window.length)
            case Tumbling():
                bounds = self._tumbling(window, match.first)
                return bounds is not None and match.last <= bounds[1]
            case EventCount():
                times = self._visible_times
                return bisect_right(times, match.last) - bisect_left(times, match.first) <= window.count
            case _:
                assert_never(window)

    def _tumbling(self, window: Tumbling, time: int) -> tuple[int, int] | None:
        """The first and the last time point of the window that a time lies in; none where it lies before the first one."""
        length = self.clock.length(window.length)
        origin = window.origin.us if isinstance(window.origin, Timestamp) else window.origin
        if origin is not None and time < origin:
            return None
        start = (origin or 0) + (time - (origin or 0)) // length * length
        return start, start + length - 1

    def _ended(self, match: QueryMatch) -> Iterator[QueryMatch]:
        """The match, if what must be absent after it does."""
        window = self.query.window
        if not self.reading.absent:
            yield replace(match, known=match.last)
            return
        if isinstance(window, Sliding):
            bound = match.first + self.clock.length(window.length)
        else:
            assert isinstance(window, Tumbling), "an absence at the end has a window of time"
            bounds = self._tumbling(window, match.first)
            assert bounds is not None
            bound = bounds[1]
        if self._absent(match.mapping, self.reading.absent, match.last + 1, bound):
            yield replace(match, known=bound)


def _asked(condition: Expression, joined: Solution, previous: Solution | None) -> bool:
    """Whether a filter holds, or is not asked: with a PREV that has no default, of the first iteration."""
    values = dict(joined)
    for value in condition.previous:
        if previous is None and value.default is None:
            return True
        if previous is not None:
            _give(values, value.name, previous.get(value.of))
        else:
            assert value.default is not None
            _give(values, value.name, evaluated(value.default, joined))
    return holds(condition, values)


def _compatible(left: Solution, right: Solution) -> bool:
    return all(left[v] == term for v, term in right.items() if v in left)


# What a match is answered with


def _derived(query: GraphQuery, reading: StepSequence, match: QueryMatch) -> Iterator[Event]:
    rows = _rows(query, reading, match)
    match query.answer:
        case SelectForm():
            for row in rows:
                args = tuple(value_from(row.get(column.name)) for column in query.answer.columns)
                yield _event(query.name, args, match.first, match.last)
        case Construct():
            lines = _constructed(query.answer, rows)
            if lines:
                yield _event(query.predicate[0], ("\n".join(lines),), match.last, match.last)
        case _:
            assert_never(query.answer)


def _event(type: str, args: tuple[object, ...], start: int, end: int) -> Event:
    return Event(type, args, start, end, content_id(type, args, start, end))  # type: ignore[arg-type]


def _rows(query: GraphQuery, reading: StepSequence, match: QueryMatch) -> list[Solution]:
    """The rows of a match: one, or one for each group; those that HAVING keeps, in their order, as many as LIMIT has."""
    result = [_computed(query, reading, match, row, group) for row, group in _groups(query, reading, match)]
    result = [row for row in result if all(holds(condition, row) for condition in query.rows.having)]
    for order in reversed(query.rows.order_by):
        result.sort(key=lambda row: order_of(evaluated(order.key, row)), reverse=order.descending)
    return result[: query.rows.limit]


def _groups(
    query: GraphQuery, reading: StepSequence, match: QueryMatch
) -> Iterator[tuple[Solution, list[Solution] | None]]:
    """Each row of a match, with the iterations that it was made of; None: all, whichever an aggregate ranges over."""
    rows = query.rows
    if not rows.group_by:
        yield match.mapping, None
        return
    same = {v: term for v, term in match.mapping.items() if v not in _own(query, reading, rows.item)}
    groups: dict[tuple[RdfTerm | None, ...], list[Solution]] = {}
    for iteration in _iterations(query, reading, match, rows.item):
        keys = tuple(
            iteration.get(key.name) if key.expression is None else evaluated(key.expression, iteration)
            for key in rows.group_by
        )
        groups.setdefault(keys, []).append(iteration)
    for keys, group in groups.items():
        named = {key.name: term for key, term in zip(rows.group_by, keys, strict=True) if term is not None}
        yield {**same, **named}, group


def _computed(
    query: GraphQuery, reading: StepSequence, match: QueryMatch, row: Solution, group: list[Solution] | None
) -> Solution:
    """A row with its aggregates and the columns that SELECT computes."""
    result = dict(row)
    for aggregate in query.aggregates:
        over = group if group is not None else _iterations(query, reading, match, aggregate.item)
        _give(result, aggregate.name, aggregated(aggregate, over))
    for column in query.answer.columns if isinstance(query.answer, SelectForm) else ():
        if column.expression is not None:
            _give(result, column.name, evaluated(column.expression, result))
    return result


def _give(row: dict[str, RdfTerm], name: str, term: RdfTerm | None) -> None:
    if term is not None:
        row[name] = term


def _iterations(query: GraphQuery, reading: StepSequence, match: QueryMatch, item: int | None) -> list[Solution]:
    """The mappings of the iterations of a `+`, with what the match has bound elsewhere; of no `+`, the match's."""
    if item is None:
        return [match.mapping]
    elsewhere = {v: term for v, term in match.mapping.items() if v not in _own(query, reading, item)}
    return [{**elsewhere, **iteration} for iteration in match.iterations[item]]


def _own(query: GraphQuery, reading: StepSequence, item: int | None) -> frozenset[str]:
    """The variables that may be each iteration's own."""
    numbers = [n for n, step in enumerate(reading.steps) if step.number == item]
    return step_variables(reading, numbers[0], query).may if numbers else frozenset()


def _constructed(construct: Construct, rows: list[Solution]) -> list[str]:
    """The triples of a constructed graph, in order. Its blank nodes are numbered as they come."""
    import rdflib

    names: dict[object, RdfTerm] = {}
    result: set[str] = set()
    for number, row in enumerate(rows):
        for triple in construct.template:
            terms = []
            for text in triple:
                term = row.get(text[1:]) if text.startswith("?") else _constant(text)
                if isinstance(term, rdflib.BNode):
                    key = (number, text) if text.startswith("_:") else term
                    term = names.setdefault(key, rdflib.BNode(f"b{len(names)}"))
                terms.append(term)
            subject, predicate, object = terms
            if None not in terms and not isinstance(subject, rdflib.Literal) and isinstance(predicate, rdflib.URIRef):
                result.add(triple_line((subject, predicate, object)))
    return sorted(result)


def _constant(text: str) -> RdfTerm:
    """A term that the template has, as N-Triples."""
    if text.startswith("_:"):
        import rdflib

        return rdflib.BNode(text)
    return triples_in(f"<urn:s> <urn:p> {text} .", "template")[0][2]
