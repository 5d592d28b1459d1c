"""Runs (SEMANTICS 10), straight from the text: every way to give events to the parts is tried, one event at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from augury.algebra.matching import Binding, Named, Proof, agree
from augury.algebra.nodes import (
    PAST_END,
    Condition,
    Link,
    NoneInside,
    Part,
    Run,
    bound_vars,
    condition_labels,
    condition_vars,
    mapped_condition,
)
from augury.algebra.ready import binds, ready_order
from augury.algebra.run_terms import asked_of, part_variables, run_variables
from augury.algebra.scalar import RowError
from augury.algebra.terms import Aggregate, Const, Expr, Prev, mapped_term, walk
from augury.meaning.occurrences import Row
from augury.model import Event, OrderKey, Value, order_key

if TYPE_CHECKING:
    from augury.meaning.patterns import World


@dataclass(frozen=True)
class Match:
    """A run as far as it has come: `iterations` are those of the part it is in, `counts` those of the parts before."""

    binding: Binding
    labels: Mapping[str, Named]
    events: tuple[Event, ...] = ()
    iterations: tuple[Row, ...] = ()
    counts: tuple[int, ...] = ()
    lasts: tuple[Event | None, ...] = ()  # the last event of each part before
    proofs: tuple[Proof, ...] = ()

    @property
    def start(self) -> int:
        return self.events[0].start

    @property
    def end(self) -> int:
        return self.events[-1].end


class Runs:
    """The rows of one run in a world of events."""

    def __init__(self, world: World, run: Run) -> None:
        self.world, self.run = world, run
        self.bound_by_parts = part_variables(run)

    def rows(self) -> Iterator[Row]:
        matches = [m for begun in self.extended(Match({}, {})) for m in self.whole(begun)]
        if self.run.which != "ALL":
            matches = self.chosen(matches)
        if self.run.skip is not None:
            matches = self.skipped(matches)
        unbound = dict.fromkeys(run_variables(self.run))
        for match in matches:
            yield Row(match.start, match.end, {**unbound, **match.binding}, match.labels, match.events, match.proofs)

    # What a match is

    def extended(self, match: Match) -> Iterator[Match]:
        """All ways to go on from here to the end of the parts."""
        open_ = [match]
        while open_:
            match = open_.pop()
            if len(match.counts) < len(self.run.parts):
                open_ += self.steps(match)
            elif match.events:
                yield match

    def steps(self, match: Match) -> list[Match]:
        """What one step makes of a match: one more iteration of the part it is in, or that part complete."""
        part, count = self.run.parts[len(match.counts)], len(match.iterations)
        more = part.most is None or count < part.most
        longer = self.following(match, part, part.between if count else part.link) if more else []
        return [*longer, *(self.completed(match, part) if count >= part.least else ())]

    def following(self, match: Match, part: Part, link: Link) -> list[Match]:
        """The matches with one more iteration of a part: those that the operator lets follow."""
        found = [
            (row, longer)
            for row in self.world.rows(part.input)
            if not match.events or match.end < row.start
            for longer in self._with(match, part, row)
        ]
        if not match.events:
            return [longer for _, longer in found]
        match link:
            case "SEQ":
                return [longer for _, longer in found]
            case "NEXT":
                return [longer for row, longer in found if self.interruption(longer, match.end, row.start) is None]
            case "THEN":
                return [longer for row, longer in found if all(other.end >= row.start for other, _ in found)]

    def interruption(self, match: Match, after: int, before: int) -> Row | None:
        """An event of the run that lies between two times, if there is one."""
        rows = (row for scan in self.run.among for row in self.world.rows(scan))
        between = (row for row in rows if after < row.start and row.end < before)
        return next((row for row in between if agree(match.binding, row.binding) is not None), None)

    def _with(self, match: Match, part: Part, row: Row) -> Iterator[Match]:
        """The match with one more iteration, in each way in which it joins and meets the conditions asked of it."""
        fields = {v: x for v, x in row.binding.items() if v in bound_vars(part.input)}
        shared = {v: x for v, x in fields.items() if v not in part.own}
        binding = agree(match.binding, shared)
        if binding is None or any(binding[v] is None for v in self.run.key):
            return
        own = {v: x for v, x in fields.items() if v in part.own}
        labels = {**match.labels, **row.labels}
        tried = Row(row.start, row.end, {**binding, **own}, labels, row.parts, row.proofs)
        for one in self._held(part.where, tried, match.iterations):
            iteration = replace(one, binding={**dict.fromkeys(part.own), **one.binding})
            plain = {v: x for v, x in one.binding.items() if v not in part.own}
            yield replace(
                match,
                binding=plain,
                labels=match.labels if part.repeats else labels,
                events=match.events + row.parts,
                iterations=(*match.iterations, iteration),
                proofs=match.proofs + one.proofs,
            )

    def failure(self, match: Match, part: Part, row: Row) -> tuple[Condition, Condition, Row] | None:
        """The first condition that an iteration fails, with values for what was asked of the iterations; for `why_not`."""
        shared = {v: x for v, x in row.binding.items() if v in bound_vars(part.input) and v not in part.own}
        binding = agree(match.binding, shared)
        if binding is None:
            return None
        tried = [replace(row, binding={**row.binding, **binding}, labels={**match.labels, **row.labels})]
        for condition in ready_order(part.where, set(tried[0].binding)):
            passed = [held for one in tried for held in self._asked(condition, one, match.iterations)]
            if not passed:
                known = {p: self._value(p, tried[0], match.iterations) for p in asked_of(condition)}
                return condition, _replaced(condition, known), tried[0]
            tried = passed
        return None

    def completed(self, match: Match, part: Part) -> Iterator[Match]:
        """The match behind a repetition: its aggregates are known, and what is asked of them holds."""
        try:
            values = self.results(match)
        except RowError as error:
            self.world.report(self.world.scalars.rule, str(error), match.binding, match.events)
            return
        end = match.end if match.events else 0
        for one in self._held(part.after, Row(end, end, {**match.binding, **values}, match.labels, match.events)):
            yield replace(
                match,
                binding=one.binding,
                iterations=(),
                counts=(*match.counts, len(match.iterations)),
                lasts=(*match.lasts, match.iterations[-1].parts[-1] if match.iterations else None),
                proofs=match.proofs + one.proofs,
            )

    def results(self, match: Match) -> dict[str, Value]:
        """The aggregates over the iterations of the part that a match is in."""
        here = [result for result in self.run.results if result.part == len(match.counts)]
        return {result.name: self.world.aggregated(result.aggregate, match.iterations) for result in here}

    def whole(self, match: Match) -> Iterator[Match]:
        """The ways in which a complete match is within the windows and meets the conditions asked at its end."""
        length = self.world.scalars.clock.length
        if any(match.end - match.start > length(window) for window in self.run.windows):
            return
        row = Row(match.start, match.end, match.binding, match.labels, match.events)
        for one in self._held(self.run.where, row):
            yield replace(match, binding=one.binding, labels=one.labels, proofs=match.proofs + one.proofs)

    # Conditions

    def _held(self, where: tuple[Condition, ...], row: Row, earlier: Sequence[Row] = ()) -> list[Row]:
        """The ways in which a row meets all conditions, in the order in which they can be asked."""
        found = [row]
        for condition in ready_order(where, set(row.binding)):
            found = [held for one in found for held in self._asked(condition, one, earlier)]
        return found

    def _asked(self, condition: Condition, row: Row, earlier: Sequence[Row] = ()) -> Iterator[Row]:
        """The ways in which a row meets a condition; the row itself, where the condition is not asked of it."""
        if isinstance(condition, NoneInside):
            filled = replace(row, binding={**dict.fromkeys(run_variables(self.run)), **row.binding})
            yield from (row for _ in self.world.select((condition,), filled))
            return
        needs = condition_vars(condition) - (binds(condition, set(row.binding)) - self.bound_by_parts)
        if not needs <= row.binding.keys() or not condition_labels(condition) <= row.labels.keys():
            return (yield row)
        if not earlier and any(isinstance(p, Prev) and p.default is None for p in asked_of(condition)):
            return (yield row)
        try:
            known = {p: self._value(p, row, earlier) for p in asked_of(condition)}
        except RowError as error:
            self.world.report(self.world.scalars.rule, str(error), row.binding, row.parts)
            return
        yield from self.world.select((_replaced(condition, known),), row)

    def _value(self, asked: Prev | Aggregate, row: Row, earlier: Sequence[Row]) -> Value:
        """What `prev` or a running aggregate is in an iteration, after the earlier ones."""
        if isinstance(asked, Aggregate):
            return self.world.aggregated(asked, (*earlier, row))
        if not earlier:
            assert asked.default is not None
            inside = {p: self._value(p, row, ()) for p in walk(asked.default) if isinstance(p, Aggregate)}
            return self.world.scalars.evaluate(_filled(asked.default, inside), row.binding, row.labels)
        return self.world.scalars.evaluate(asked.of, earlier[-1].binding, earlier[-1].labels)

    # Which matches

    def chosen(self, matches: list[Match]) -> list[Match]:
        """Of the matches with the same key and first event, those with the most, or the fewest, iterations."""
        best: dict[OrderKey, tuple[int, ...]] = {}
        longest = self.run.which == "LONGEST"
        for match in matches:
            group, counts = self.group(match), self.counts(match)
            best[group] = (max if longest else min)(best.get(group, counts), counts)
        return [match for match in matches if best[self.group(match)] == self.counts(match)]

    def counts(self, match: Match) -> tuple[int, ...]:
        return tuple(n for n, part in zip(match.counts, self.run.parts, strict=True) if part.quantified)

    def group(self, match: Match) -> OrderKey:
        return (self._key(match), match.events[0].id)

    def _key(self, match: Match) -> OrderKey:
        return tuple(order_key(match.binding[v]) for v in self.run.key)

    def skipped(self, matches: list[Match]) -> list[Match]:
        """For each key, in order, those that begin late enough after the one taken before."""
        taken: dict[OrderKey, Match] = {}
        kept: list[Match] = []
        for match in sorted(matches, key=lambda m: tuple(e.order for e in m.events)):
            before = taken.get(self._key(match))
            if before is None or match.events == before.events or self._late_enough(match, before):
                taken[self._key(match)] = match
                kept.append(match)
        return kept

    def may_begin(self, start: int, before: Match) -> bool:
        """Whether a match that starts at a time, with a later first event, may be taken after another."""
        if self.run.skip == PAST_END:
            return start > before.end
        assert isinstance(self.run.skip, int)
        last = before.lasts[self.run.skip]
        assert last is not None, "a part that may be left out is refused here"
        return start >= last.start

    def _late_enough(self, match: Match, before: Match) -> bool:
        later = self.run.skip == PAST_END or match.events[0].order > before.events[0].order
        return later and self.may_begin(match.start, before)


def _filled(expr: Expr, known: Mapping[Prev | Aggregate, Value] | Mapping[Aggregate, Value]) -> Expr:
    """An expression with values in the place of what was asked of the iterations."""
    if isinstance(expr, Prev | Aggregate):
        return Const(known[expr])  # type: ignore[index]
    return mapped_term(expr, lambda part: _filled(part, known))


def _replaced(condition: Condition, known: Mapping[Prev | Aggregate, Value]) -> Condition:
    """A condition with values in the place of what was asked of the iterations."""
    return mapped_condition(condition, lambda term: _filled(term, known)) if known else condition
