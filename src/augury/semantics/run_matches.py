"""Runs (SEMANTICS 10), directly from the text: tries every assignment of events to parts, one event at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from augury.algebra.kinds import positive_atoms
from augury.algebra.matching import Binding, Named, Proof, agree
from augury.algebra.nodes import (
    PAST_END,
    Condition,
    Link,
    NoneInside,
    Run,
    RunPart,
    RunResult,
    SkipTo,
    bound_vars,
    condition_labels,
    condition_vars,
    gap_before,
    mapped_condition,
)
from augury.algebra.ready import binds, is_ready
from augury.algebra.run_terms import asked_of, outer_variables, part_variables, run_variables
from augury.algebra.scalar import RowError
from augury.algebra.terms import Aggregate, Const, Expr, Prev, mapped_term, walk
from augury.core.model import Event, OrderKey, Value, has_null, order_key
from augury.semantics.occurrences import Row

if TYPE_CHECKING:
    from augury.semantics.pattern_rows import World


@dataclass(frozen=True)
class Pending:
    """A condition on an iteration that has a variable without a value so far: a later part, or a fact, may bind it."""

    condition: Condition
    part: int
    iteration: int


@dataclass(frozen=True)
class RunMatch:
    """A run as far as it has come: `iterations` are those of the part it is in, `completed` those of the parts before."""

    binding: Binding
    labels: Mapping[str, Named]
    events: tuple[Event, ...] = ()
    iterations: tuple[Row, ...] = ()
    completed: tuple[tuple[Row, ...], ...] = ()
    pending: tuple[Pending, ...] = ()
    proofs: tuple[Proof, ...] = ()

    @property
    def counts(self) -> tuple[int, ...]:
        """How often each completed part came."""
        return tuple(map(len, self.completed))

    @property
    def firsts(self) -> tuple[Event | None, ...]:
        """The first event of each completed part."""
        return tuple(rows[0].parts[0] if rows else None for rows in self.completed)

    @property
    def lasts(self) -> tuple[Event | None, ...]:
        """The last event of each completed part."""
        return tuple(rows[-1].parts[-1] if rows else None for rows in self.completed)

    @property
    def start(self) -> int:
        return self.events[0].start

    @property
    def end(self) -> int:
        return self.events[-1].end


class RunEvaluator:
    """The rows of one run in a world of events."""

    def __init__(self, world: World, run: Run) -> None:
        self.world, self.run = world, run
        self.bound_by_parts = part_variables(run)
        self.own = {v for part in run.parts for v in part.own}
        self.result_of = {result.name: result for result in run.results}

    def rows(self) -> Iterator[Row]:
        matches = [m for begun in self.extended(RunMatch({}, {})) for m in self.whole(begun)]
        if self.run.which != "ALL":
            matches = self.chosen(matches)
        if self.run.skip is not None:
            matches = self.skipped(matches)
        unbound = dict.fromkeys(run_variables(self.run))
        for match in matches:
            yield Row(match.start, match.end, {**unbound, **match.binding}, match.labels, match.events, match.proofs)

    # What a match is

    def extended(self, match: RunMatch) -> Iterator[RunMatch]:
        """All complete matches that extend this one."""
        open_ = [match]
        while open_:
            match = open_.pop()
            if len(match.completed) < len(self.run.parts):
                open_ += self.steps(match)
            elif match.events:
                yield match

    def steps(self, match: RunMatch) -> list[RunMatch]:
        """What one step makes of a match: one more iteration of the part it is in, or that part complete."""
        part, count = self.run.parts[len(match.completed)], len(match.iterations)
        more = part.most is None or count < part.most
        longer = self.following(match, part, part.between if count else part.link) if more else []
        return [*longer, *(self.completed(match, part) if count >= part.least else ())]

    def following(self, match: RunMatch, part: RunPart, link: Link) -> list[RunMatch]:
        """The matches with one more iteration of a part: those that the operator lets follow."""
        result = [
            (row, longer)
            for row in self.world.rows(part.input)
            if not match.events or match.end < row.start
            for longer in self._with(match, part, row)
        ]
        if not match.events:
            return [longer for _, longer in result]
        match link:
            case "SEQ":
                return [longer for _, longer in result]
            case "NEXT":
                return [longer for row, longer in result if self.interruption(longer, match.end, row.start) is None]
            case "THEN":
                return [longer for row, longer in result if all(other.end >= row.start for other, _ in result)]

    def interruption(self, match: RunMatch, after: int, before: int) -> Row | None:
        """An event of the run that lies between two times, if there is one."""
        rows = (row for scan in self.run.among for row in self.world.rows(scan))
        between = (row for row in rows if after < row.start and row.end < before)
        return next((row for row in between if agree(match.binding, row.binding) is not None), None)

    def _with(self, match: RunMatch, part: RunPart, row: Row) -> Iterator[RunMatch]:
        """The match with one more iteration, in each way in which it joins and meets the conditions asked of it."""
        tried = self._joined(match, part, row)
        if tried is None or any(has_null(tried.binding[v]) for v in self.run.key):
            return
        number, count = len(match.completed), len(match.iterations)
        for held, unasked in self._held(part.where, tried, match):
            waiting = tuple(Pending(c, number, count) for c in unasked) if part.repeats else ()
            longer = replace(
                match,
                binding={v: x for v, x in held.binding.items() if v not in part.own},
                labels=match.labels if part.repeats else tried.labels,
                events=match.events + row.parts,
                iterations=(*match.iterations, held),
                pending=match.pending + waiting,
                proofs=match.proofs + held.proofs,
            )
            yield from self._caught_up(longer)

    def _joined(self, match: RunMatch, part: RunPart, row: Row) -> Row | None:
        """A row of a part with the variables of the match so far, where the two agree."""
        fields = {v: x for v, x in row.binding.items() if v in bound_vars(part.input)}
        binding = agree(match.binding, {v: x for v, x in fields.items() if v not in part.own})
        if binding is None:
            return None
        local = {v: x for v, x in fields.items() if v in part.own}
        return replace(row, binding={**binding, **local}, labels={**match.labels, **row.labels})

    def failure(self, match: RunMatch, part: RunPart, row: Row) -> tuple[Condition, Condition, Row] | None:
        """The first condition that an iteration fails, with values for what was asked of the iterations; for `why_not`."""
        joined = self._joined(match, part, row)
        if joined is None:
            return None
        rows, left = [joined], list(part.where)
        while (condition := self._next_asked(left, rows[0], match)) is not None:
            left.remove(condition)
            passed = [held for tried in rows for held in self._asked(condition, tried, match, match.iterations)]
            if not passed:
                filled = {p: self._value(p, rows[0], match.iterations) for p in asked_of(condition)}
                return condition, _replaced(condition, filled), self._with_results(condition, rows[0], match)
            rows = passed
        return None

    def failed_after(self, match: RunMatch, part: RunPart) -> list[tuple[Condition, Row]]:
        """The conditions on a whole repetition that fail, with their values; for `why_not`."""
        done = replace(match, iterations=(), completed=(*match.completed, match.iterations))
        row = Row(done.start, done.end, done.binding, done.labels, done.events) if done.events else Row(0, 0)
        ready = [c for c in part.after if self._next_asked([c], row, done) is not None]
        failed = [c for c in ready if not list(self._asked(c, row, done, ()))]
        return [(c, self._with_results(c, row, done)) for c in failed]

    def completed(self, match: RunMatch, part: RunPart) -> Iterator[RunMatch]:
        """The match behind a part: aggregates over its iterations have values, and the conditions on them hold."""
        done = replace(match, iterations=(), completed=(*match.completed, match.iterations))
        end = done.end if done.events else 0
        row = Row(end, end, done.binding, done.labels, done.events)
        for held, _ in self._held(part.after, row, done):
            yield from self._caught_up(replace(done, binding=held.binding, proofs=done.proofs + held.proofs))

    def whole(self, match: RunMatch) -> Iterator[RunMatch]:
        """The ways in which a complete match is within the windows and meets the conditions asked at its end."""
        length = self.world.scalars.clock.length
        if any(match.end - match.start > length(window) for window in self.run.windows):
            return
        for held, _ in self._held(self.run.where, self.row(match), match):
            ended = replace(match, binding=held.binding, labels=held.labels, proofs=match.proofs + held.proofs)
            for caught_up in self._caught_up(ended):
                with_results = self._all_results(caught_up)
                if with_results is not None:
                    yield with_results

    def row(self, match: RunMatch) -> Row:
        """A complete match as a row, with the gaps in which something must be absent."""
        pairs = enumerate(pairwise(match.completed), start=1)
        gaps = {gap_before(i): Named(a[-1].end + 1, b[0].start - 1) for i, (a, b) in pairs if a and b}
        return Row(match.start, match.end, match.binding, {**match.labels, **gaps}, match.events)

    def _caught_up(self, match: RunMatch) -> Iterator[RunMatch]:
        """The match once it meets the pending conditions whose variables have values now."""
        for pending in match.pending:
            iterations = self._iterations(match, pending.part)
            iteration = iterations[pending.iteration]
            row = replace(iteration, binding=self._seen(iteration, pending.part, match.binding))
            if self._next_asked([pending.condition], row, match) is None:
                continue
            remaining = replace(match, pending=tuple(p for p in match.pending if p is not pending))
            for held in self._asked(pending.condition, row, match, iterations[: pending.iteration]):
                yield from self._caught_up(self._with_iteration(remaining, pending, held))
            return
        yield match

    def _iterations(self, match: RunMatch, part: int) -> tuple[Row, ...]:
        return match.completed[part] if part < len(match.completed) else match.iterations

    def _seen(self, iteration: Row, part: int, binding: Binding) -> Binding:
        """What an iteration sees: the variables of the match, and its own as far as they have values."""
        return {**binding, **{v: iteration.binding[v] for v in self.run.parts[part].own if v in iteration.binding}}

    def _with_iteration(self, match: RunMatch, pending: Pending, row: Row) -> RunMatch:
        """The match where one iteration has what a pending condition has bound in it."""
        part, local = pending.part, self.run.parts[pending.part].own
        rows = list(self._iterations(match, part))
        old = rows[pending.iteration]
        rows[pending.iteration] = replace(
            old, binding={**old.binding, **{v: x for v, x in row.binding.items() if v in local}}
        )
        if part == len(match.completed):
            return replace(match, iterations=tuple(rows))
        return replace(match, completed=(*match.completed[:part], tuple(rows), *match.completed[part + 1 :]))

    # Aggregates over whole repetitions

    def result(self, result: RunResult, row: Row, match: RunMatch) -> Value:
        """An aggregate over the iterations of a completed part, beside the variables of a row."""
        iterations = [
            replace(i, binding=self._filled(i, row.binding), labels={**row.labels, **i.labels})
            for i in match.completed[result.part]
        ]
        return self.world.aggregated(result.aggregate, iterations)

    def _filled(self, iteration: Row, binding: Binding) -> Binding:
        """The variables of the match and of an iteration, whose own are null where no condition has bound them."""
        return {**binding, **dict.fromkeys(self.own), **iteration.binding}

    def _may_compute(self, name: str, row: Row, match: RunMatch) -> bool:
        """Whether a result has a value by now: its part is complete, and so is what else it has."""
        result = self.result_of[name]
        return result.part < len(match.completed) and outer_variables(result, self.run) <= row.binding.keys()

    def _with_results(self, condition: Condition, row: Row, match: RunMatch) -> Row:
        """The row with the results that a condition has, as far as they have values."""
        wanted = (condition_vars(condition) & self.result_of.keys()) - row.binding.keys()
        values = {v: self.result(self.result_of[v], row, match) for v in wanted if self._may_compute(v, row, match)}
        return replace(row, binding={**row.binding, **values}) if values else row

    def results(self, match: RunMatch) -> dict[str, Value]:
        """All results of a complete match."""
        row = Row(match.start, match.end, {**dict.fromkeys(run_variables(self.run)), **match.binding}, match.labels)
        return {r.name: self.result(r, row, match) for r in self.run.results}

    def _all_results(self, match: RunMatch) -> RunMatch | None:
        """The match with all results; None where one of them cannot be computed."""
        try:
            return replace(match, binding={**match.binding, **self.results(match)})
        except RowError as error:
            self.world.report(self.world.scalars.rule, str(error), match.binding, match.events)
            return None

    # Conditions

    def _held(
        self, where: tuple[Condition, ...], row: Row, match: RunMatch
    ) -> Iterator[tuple[Row, tuple[Condition, ...]]]:
        """The ways in which a row meets conditions, each asked as soon as it can be; and those that cannot be asked."""
        condition = self._next_asked(where, row, match)
        if condition is None:
            yield row, where
            return
        remaining = tuple(c for c in where if c is not condition)
        for held in self._asked(condition, row, match, match.iterations):
            yield from self._held(remaining, held, match)

    def _next_asked(self, where: Sequence[Condition], row: Row, match: RunMatch) -> Condition | None:
        """The condition to ask next: one that can be tested, then one that binds by facts, then an absence."""
        bound = row.binding.keys() | {name for name in self.result_of if self._may_compute(name, row, match)}
        ready = [c for c in where if self._is_ready(c, bound, row)]
        tests = [c for c in ready if is_ready(c, set(bound)) and not isinstance(c, NoneInside)]
        facts = positive_atoms(ready)
        return next(iter([*tests, *facts, *ready]), None)

    def _is_ready(self, condition: Condition, bound: Set[str], row: Row) -> bool:
        """Whether all that a condition has, but for what it binds itself, has a value by now."""
        if isinstance(condition, NoneInside):
            return True
        needs = condition_vars(condition) - (binds(condition, set(bound)) - self.bound_by_parts)
        return needs <= bound and condition_labels(condition) <= row.labels.keys()

    def _asked(self, condition: Condition, row: Row, match: RunMatch, earlier: Sequence[Row]) -> Iterator[Row]:
        """The ways in which a row meets a condition, for which all that it has has a value."""
        if isinstance(condition, NoneInside):
            try:
                row = self._with_results(condition, row, match)
            except RowError as error:
                self.world.report(self.world.scalars.rule, str(error), row.binding, row.parts)
                return
            filled = replace(row, binding={**dict.fromkeys(run_variables(self.run)), **row.binding})
            yield from (row for _ in self.world.select((condition,), filled))
            return
        if not earlier and any(isinstance(p, Prev) and p.default is None for p in asked_of(condition)):
            return (yield row)
        try:
            row = self._with_results(condition, row, match)
            values = {p: self._value(p, row, earlier) for p in asked_of(condition)}
        except RowError as error:
            self.world.report(self.world.scalars.rule, str(error), row.binding, row.parts)
            return
        yield from self.world.select((_replaced(condition, values),), row)

    def _value(self, asked: Prev | Aggregate, row: Row, earlier: Sequence[Row]) -> Value:
        """What `prev` or a running aggregate is in an iteration, after the earlier ones."""
        if isinstance(asked, Aggregate):
            before = [replace(i, binding=self._filled(i, row.binding)) for i in earlier]
            return self.world.aggregated(asked, (*before, row))
        if not earlier:
            assert asked.default is not None
            inside = {p: self._value(p, row, ()) for p in walk(asked.default) if isinstance(p, Aggregate)}
            return self.world.scalars.evaluate(_with_values(asked.default, inside), row.binding, row.labels)
        return self.world.scalars.evaluate(asked.of, self._filled(earlier[-1], row.binding), earlier[-1].labels)

    # Which matches

    def chosen(self, matches: list[RunMatch]) -> list[RunMatch]:
        """Of the matches with the same key and first event, those with the most, or the fewest, iterations."""
        best: dict[OrderKey, tuple[int, ...]] = {}
        longest = self.run.which == "LONGEST"
        for match in matches:
            group, counts = self.group(match), self.counts(match)
            best[group] = (max if longest else min)(best.get(group, counts), counts)
        return [match for match in matches if best[self.group(match)] == self.counts(match)]

    def counts(self, match: RunMatch) -> tuple[int, ...]:
        return tuple(n for n, part in zip(match.counts, self.run.parts, strict=True) if part.quantified)

    def group(self, match: RunMatch) -> OrderKey:
        return (self._key(match), match.events[0].id)

    def _key(self, match: RunMatch) -> OrderKey:
        return tuple(order_key(match.binding[v]) for v in self.run.key)

    def skipped(self, matches: list[RunMatch]) -> list[RunMatch]:
        """For each key, in order, those that begin late enough after the one taken before."""
        taken: dict[OrderKey, RunMatch] = {}
        kept: list[RunMatch] = []
        for match in sorted(matches, key=lambda m: tuple(e.order for e in m.events)):
            before = taken.get(self._key(match))
            if before is None or match.events == before.events or self._late_enough(match, before):
                taken[self._key(match)] = match
                kept.append(match)
        return kept

    def may_begin(self, start: int, before: RunMatch) -> bool:
        """Whether a match that starts at a time, with a later first event, may be taken after another."""
        if self.run.skip == PAST_END:
            return start > before.end
        assert isinstance(self.run.skip, SkipTo)
        event = (before.firsts if self.run.skip.which == "FIRST" else before.lasts)[self.run.skip.part]
        assert event is not None, "a part that may be left out is refused here"
        return start >= event.start

    def _late_enough(self, match: RunMatch, before: RunMatch) -> bool:
        later = self.run.skip == PAST_END or match.events[0].order > before.events[0].order
        return later and self.may_begin(match.start, before)


def _with_values(expr: Expr, values: Mapping[Prev | Aggregate, Value] | Mapping[Aggregate, Value]) -> Expr:
    """An expression with values in the place of what was asked of the iterations."""
    if isinstance(expr, Prev | Aggregate):
        return Const(values[expr])  # type: ignore[index]
    return mapped_term(expr, lambda part: _with_values(part, values))


def _replaced(condition: Condition, values: Mapping[Prev | Aggregate, Value]) -> Condition:
    """A condition with values in the place of what was asked of the iterations."""
    return mapped_condition(condition, lambda term: _with_values(term, values)) if values else condition
