"""The occurrences of a pattern, one equation of the semantics for each node."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import assert_never

from augury.algebra import nodes as n
from augury.algebra.aggregates import aggregate_of, of_nothing
from augury.algebra.clock_windows import Line, Windows, refuse_clock
from augury.algebra.graph_queries import Gpm
from augury.algebra.matching import Binding, Named, Scalars, agree, compare_or_bind, match_all
from augury.algebra.place import ready_order
from augury.algebra.plan import Predicate
from augury.algebra.relations import OPERATORS, RELATIONS, RELATIVE, holds
from augury.algebra.scalar import RowError
from augury.algebra.selection import POLICIES
from augury.algebra.terms import Aggregate
from augury.algebra.window_lengths import time_points
from augury.core.bounds import MAX_TIME, MIN_TIME
from augury.core.clock import Timestamp
from augury.core.errors import RunError
from augury.core.model import Event, OrderKey, Value, has_null, order_key
from augury.knowledge.fact_table import ALWAYS, EVER
from augury.semantics.occurrences import HeldInterval, Row, distinct
from augury.semantics.policy_choice import Pair, PairChooser, occurrences, pair_of, per_values
from augury.semantics.rdf_by_rdflib import ReferenceDataset, ReferenceGraphPatterns, TermTriple, key_from
from augury.semantics.run_matches import RunEvaluator
from augury.semantics.static_calls import Static


@dataclass
class World:
    """What a pattern is evaluated in: the occurrences, the static knowledge, the clock and the functions."""

    scalars: Scalars
    static: Static
    events: dict[Predicate, list[Event]] = field(default_factory=dict)
    errors: dict[tuple[str, str], set[OrderKey]] = field(default_factory=dict)
    graphs: Mapping[str | None, Sequence[TermTriple]] = field(default_factory=dict)
    least: int | None = None  # the least end of a standing input event
    now: int | None = None
    held: dict[Predicate, list[HeldInterval]] = field(default_factory=dict)
    _known: dict[int, tuple[n.Node, list[Row]]] = field(default_factory=dict)

    def publish(self, type: Predicate, events: Iterable[Event]) -> None:
        """Says which events of a type there are; what was found before is forgotten."""
        self.events[type] = sorted(events, key=lambda e: e.order)
        self._known = {key: entry for key, entry in self._known.items() if type not in n.event_types(entry[0])}

    def hold(self, type: Predicate, intervals: list[HeldInterval]) -> None:
        """Says in which intervals facts hold; those with a beginning and an end are occurrences."""
        self.held[type] = intervals
        closed = (x for x in intervals if x.since != ALWAYS and x.until != EVER)
        self.publish(type, (x.event(type[0], x.since, x.until) for x in closed))

    def learn(self, static: Static) -> None:
        """Says which facts there are; what was found before is forgotten."""
        self.static, self._known = static, {}

    def report(self, rule: str, message: str, binding: Binding, parts: tuple[Event, ...] = ()) -> None:
        """A row that could not be computed is counted once, never dropped in silence."""
        row = (tuple(p.id for p in parts), *((v, order_key(x)) for v, x in sorted(binding.items())))
        self.errors.setdefault((rule, message), set()).add(row)

    def rows(self, node: n.Node) -> list[Row]:
        """The occurrences of a pattern, in the order of events, each once; found once for the events there are."""
        if id(node) not in self._known:
            self._known[id(node)] = (node, distinct(self._rows(node)))  # the node is held, so that its id stays its own
        return self._known[id(node)][1]

    def _rows(self, node: n.Node) -> Iterator[Row]:
        match node:
            case n.Scan():
                for event in self.events.get(node.predicate, ()):
                    binding = match_all(node.args, event.args, {})
                    if binding is not None:
                        yield Row(event.start, event.end, binding, parts=(event,))
            case n.Instant():
                time = self._instant(node)
                yield Row(time, time)
            case n.Every():
                yield from self._every(node)
            case n.SessionWindow():
                yield from self._sessions(node)
            case n.Label():
                for row in self.rows(node.input):
                    parts = () if node.interval else row.parts
                    yield replace(row, labels={**row.labels, node.label: Named(row.start, row.end, parts)})
            case n.Select():
                for row in self.rows(node.input):
                    yield from self.select(node.where, row)
            case n.Within():
                longest = self.scalars.clock.length(node.length)
                yield from (row for row in self.rows(node.input) if row.end - row.start <= longest)
            case n.Either():
                yield from self.rows(node.left)
                yield from self.rows(node.right)
            case n.Join():
                yield from self.join(node, self.rows(node.left), self.rows(node.right))
            case n.Repeat():
                yield from self._repeat(node)
            case n.Graph():
                yield from self._solutions(node)
            case n.Unfold():
                for row in self.rows(node.input):
                    listed = self.scalars.evaluate(node.of, row.binding, row.labels)
                    for item in listed if isinstance(listed, tuple) else ():
                        assert isinstance(item, tuple), "a list of lists"
                        yield replace(row, binding={**row.binding, **dict(zip(node.binds, item, strict=True))})
            case n.Run():
                yield from RunEvaluator(self, node).rows()
            case _:
                assert_never(node)

    def clipped(self, node: n.Node, start: int, end: int) -> list[Row]:
        """Of `holding p(X)`, with conditions, what lies in the time from `start` to before `end`."""
        if isinstance(node, n.Select):
            rows = self.clipped(node.input, start, end)
            return [selected for row in rows for selected in self.select(node.where, row)]
        assert isinstance(node, n.Scan)
        parts: list[Row] = []
        for interval in self.held.get(node.predicate, ()):
            since, until = max(interval.since, start), min(interval.until, end)
            binding = match_all(node.args, interval.args, {})
            if since < until and binding is not None:
                parts.append(Row(since, until, binding, parts=(interval.event(node.type, since, until),)))
        return distinct(iter(parts))

    def _solutions(self, node: n.Graph) -> Iterator[Row]:
        gpm = Gpm("", (), node.pattern, tuple(name for name, _ in node.binds), (), graphs=(None,))
        patterns = ReferenceGraphPatterns((gpm,), ReferenceDataset(self.graphs, node.visible))
        for row in self.rows(node.input):
            (event,) = row.parts
            for solution in patterns.solutions(gpm, event):
                terms = {variable: solution.get(name) for name, variable in node.binds}
                others = {v: value for v, value in row.binding.items() if v != node.text}
                binding = others | {v: None if term is None else key_from(term) for v, term in terms.items()}
                if node.event:
                    binding[node.event] = event.id
                yield replace(row, binding=binding)

    def _instant(self, node: n.Instant) -> int:
        time = node.time.value
        if isinstance(time, Timestamp):
            if self.scalars.clock.kind == "logical":
                message = f"rule `{self.scalars.rule}` names a calendar time, but the run is on the logical clock"
                raise RunError(message, hint="use --clock timestamp")
            return time.us
        if self.scalars.clock.kind == "timestamp":
            message = f"rule `{self.scalars.rule}` names the tick {time}, but the run is on timestamps"
            raise RunError(message, hint="write the time as @'2026-01-31 10:00'")
        assert isinstance(time, int)
        return time

    def aggregated(self, aggregate: Aggregate, rows: Sequence[Row]) -> Value:
        """An aggregate over rows: of none, `count` is 0 and the others are null."""
        if not rows:
            return of_nothing(aggregate.function)
        scalars, of = self.scalars, aggregate.args
        values = [scalars.evaluate(of[0], row.binding, row.labels) if of else True for row in rows]
        try:
            return aggregate_of(scalars.aggregates[aggregate.function], values, aggregate.distinct)
        except (RowError, RunError):
            raise
        except Exception as error:
            message = f"the aggregate `{aggregate.function}` raised {type(error).__name__}: {error}"
            raise RunError(f"{message}\n  in rule `{scalars.rule}`") from error

    # Conditions

    def select(self, where: Iterable[n.Condition], row: Row) -> Iterator[Row]:
        """The ways in which a row meets all conditions; a condition may bind."""
        order = ready_order(tuple(where), set(row.binding))
        yield from self._conjunction(order, row)

    def _conjunction(self, where: list[n.Condition], row: Row) -> Iterator[Row]:
        if not where:
            yield row
            return
        for extended in self._condition(where[0], row):
            yield from self._conjunction(where[1:], extended)

    def _condition(self, condition: n.Condition, row: Row) -> Iterator[Row]:
        match condition:
            case n.Compare():
                report = partial(self.report, parts=row.parts)
                binding = compare_or_bind(condition, row.binding, self.scalars, report, row.labels)
                if binding is not None:
                    yield row.bind(binding)
            case n.Holds():
                for extended, proof in self.static.solve(condition, row.binding, row.asked_at(condition)):
                    yield row.bind(extended, proof._replace(was=condition.was))
            case n.Unless():
                if not self.static.holds(condition, row.binding, row.asked_at(condition)):
                    yield row
            case n.AnyOf():
                if any(any(True for _ in self.select(option, row)) for option in condition.options):
                    yield row
            case n.Relates():
                if holds(
                    RELATIONS[condition.relation], row.labels[condition.left][:2], row.labels[condition.right][:2]
                ):
                    yield row
            case n.Spans():
                named = [row.labels[label] for label in condition.labels]
                if max(x.end for x in named) - min(x.start for x in named) <= self.scalars.clock.length(
                    condition.length
                ):
                    yield row
            case n.Relative():
                window = self._relative(condition, row)
                if window is not None:
                    yield replace(row, labels={**row.labels, condition.label: window})
            case n.NoneInside():
                if not any(self._inside(condition, row, other) for other in self.rows(condition.pattern)):
                    yield row
            case _:
                assert_never(condition)

    def _relative(self, condition: n.Relative, row: Row) -> Named | None:
        anchor = row.labels[condition.anchor]
        if condition.windows is not None:
            return self._previous(condition.windows, anchor)
        length = self._window_length(condition, anchor.end, row)
        if length is None:
            return None
        times = {"start": anchor.start, "end": anchor.end}
        (first, back), (second, forth) = RELATIVE[condition.kind]
        start, end = times[first] + back * length, times[second] + forth * length
        if not (start >= MIN_TIME and end <= MAX_TIME):
            self.report(self.scalars.rule, "a time beyond 60 bits", {})
            return None
        return Named(start, end) if start <= end else None

    def _window_length(self, window: n.Relative, end: int, row: Row) -> int | None:
        """The length of a window, in time points; None where the row has none, which is reported."""
        clock = self.scalars.clock
        if isinstance(window.length, int):
            return clock.exact_length(window.length)
        try:
            return time_points(window, self.scalars.evaluate(window.length, row.binding, row.labels), end, clock)
        except RowError as error:
            self.report(self.scalars.rule, str(error), row.binding, row.parts)
            return None

    def _previous(self, windows: Windows, window: Named) -> Named | None:
        """The window before a window by the clock: the last one that begins before it."""
        line = Line(windows, self.scalars.clock)
        number = line.last_begun(window.start) - 1
        start, end = line.begin(number), line.end(number)
        return Named(start, end) if start <= end else None

    def _every(self, node: n.Every) -> Iterator[Row]:
        """All windows that end at or after the least end of an input, and by the clock."""
        refuse_clock(node.windows, self.scalars.clock.kind, self.scalars.rule)
        if self.least is None or self.now is None:
            return
        line = Line(node.windows, self.scalars.clock)
        for number in range(line.first_from(self.least), line.last_by(self.now) + 1):
            if line.begin(number) <= line.end(number):
                yield Row(line.begin(number), line.end(number))

    def _sessions(self, node: n.SessionWindow) -> Iterator[Row]:
        """The maximal groups of occurrences with one key: each starts no later than the gap after the ends before it."""
        gap = self.scalars.clock.exact_length(node.gap)
        groups: dict[OrderKey, list[Row]] = {}
        for row in sorted(self.rows(node.input), key=lambda r: (r.start, r.end)):
            values = tuple(row.binding[v] for v in node.key)
            key = tuple(map(order_key, values))
            if any(map(has_null, values)):
                continue
            sessions_of_key = groups.setdefault(key, [])
            if sessions_of_key and row.start <= sessions_of_key[-1].end:
                sessions_of_key[-1] = replace(sessions_of_key[-1], end=max(sessions_of_key[-1].end, row.end + gap))
            else:
                sessions_of_key.append(Row(row.start, row.end + gap, row.binding))
        most = None if node.most is None else self.scalars.clock.length(node.most)
        for sessions in groups.values():
            yield from (row for row in sessions if most is None or row.end - row.start <= most)

    def _inside(self, condition: n.NoneInside, row: Row, other: Row) -> bool:
        window = row.labels[condition.window]
        if not (window.start <= other.start and other.end <= window.end):
            return False
        if any(named.parts and named.parts == other.parts for named in row.labels.values()):
            return False
        return self._blocks(row, other, condition.where)

    def _blocks(self, row: Row, other: Row, where: tuple[n.Condition, ...]) -> bool:
        """Whether an occurrence that must be absent agrees with the row and meets the conditions on both."""
        binding = agree(row.binding, other.binding)
        if binding is None:
            return False
        both = replace(other, binding=binding, labels=row.labels)
        return any(True for _ in self.select(where, both))

    # Joins

    def join(self, node: n.Join, left: list[Row], right: list[Row]) -> Iterator[Row]:
        """Pairs in the operator's relation that agree, meet the conditions, and are chosen by the policy."""
        absent = self.rows(node.absent) if node.absent is not None else []
        if node.policy.name != "unrestricted":
            yield from self._chosen(node, left, right, absent)
            return
        for i, j in self._meetings(node, left, right):
            if self._timely(node, left[i], right[j]):
                yield from self._candidate(node, left[i], right[j], absent)

    def _chosen(self, node: n.Join, left: list[Row], right: list[Row], absent: list[Row]) -> Iterator[Row]:
        """What a policy takes. `recent per` chooses by the temporal conditions alone, before the join."""
        policy, sides = node.policy, (occurrences(left), occurrences(right))
        chooser = PairChooser(policy, *sides)
        candidates: dict[Pair, list[tuple[OrderKey, Row]]] = {}
        timely: list[tuple[Pair, OrderKey]] = []
        for x, y in itertools.product(*sides):
            meeting = [both for both in itertools.product(x.rows, y.rows) if self._timely(node, *both)]
            pair = pair_of(x, y) if meeting else None
            if pair is None:
                continue
            for item, other in meeting:
                per = per_values(policy, item if pair.later == "right" else other)
                timely.append((pair, per))
                rows = [(per, row) for row in self._candidate(node, item, other, absent)]
                if rows:
                    candidates.setdefault(pair, []).extend(rows)
        rank = POLICIES[policy.name].rank
        if rank is None:
            yield from _first_in_first_out(chooser, candidates)
            return
        meetings = timely if policy.before_join else [(pair, ()) for pair in candidates]
        for pair, chosen in chooser.best(meetings, rank):
            yield from (row for per, row in candidates.get(pair, ()) if per == chosen)

    def _meetings(self, node: n.Join, left: list[Row], right: list[Row]) -> Iterator[tuple[int, int]]:
        """Numbers of rows that agree on the variables that every row of both sides binds."""
        shared = sorted(n.bound_vars(node.left) & n.bound_vars(node.right))
        index: dict[OrderKey, list[int]] = {}
        for j, row in enumerate(right):
            index.setdefault(_key(row, shared), []).append(j)
        for i, row in enumerate(left):
            for j in index.get(_key(row, shared), ()):
                yield i, j

    def _timely(self, node: n.Join, left: Row, right: Row) -> bool:
        """The operator's relation, its windows, and the relations of labels that are decidable here."""
        if not holds(OPERATORS[node.op], (left.start, left.end), (right.start, right.end)):
            return False
        length = max(left.end, right.end) - min(left.start, right.start)
        if any(length > self.scalars.clock.length(w) for w in node.windows):
            return False
        temporal = [
            c for c in node.where if n.condition_labels(c) and not n.condition_vars(c) and not isinstance(c, n.Relative)
        ]
        both = Row(0, 0, labels={**left.labels, **right.labels})
        return all(
            any(True for _ in self._condition(c, both)) for c in temporal if n.condition_labels(c) <= both.labels.keys()
        )

    def _candidate(self, node: n.Join, left: Row, right: Row, absent: list[Row]) -> Iterator[Row]:
        row = left.joined(right)
        if row is None:
            return
        for other in absent:
            between = left.end < other.start and other.end < right.start
            if between and self._blocks(row, other, node.absent_where):
                return
        yield from self.select(node.where, row)

    def _repeat(self, node: n.Repeat) -> Iterator[Row]:
        """`P ^ n` is `P ^ (n-1) SEQ P`; consecutive: `NOT(P).[P ^ (n-1), P]`."""
        step = self.rows(node.input)
        absent = node.input if node.consecutive else None
        join = n.Join("SEQ", node.input, node.input, windows=node.windows, absent=absent, policy=node.policy)
        rows = step
        for _ in range(node.count - 1):
            rows = distinct(self.join(join, rows, step))
        yield from rows


def _first_in_first_out(chooser: PairChooser, candidates: dict[Pair, list[tuple[OrderKey, Row]]]) -> Iterator[Row]:
    """The rows that `chronological` takes; with `per`, it chooses among the pairs of each value as if there were no others."""
    pairs_of: dict[OrderKey, dict[Pair, list[Row]]] = {}
    for pair, rows in candidates.items():
        for _, row in rows:
            pairs_of.setdefault(per_values(chooser.policy, row), {}).setdefault(pair, []).append(row)
    for rows_of in pairs_of.values():
        for pair in chooser.chronological(set(rows_of)):
            yield from rows_of[pair]


def _key(row: Row, shared: list[str]) -> OrderKey:
    # Null equals nothing: a row with a null key meets itself in the index, and `joined` then refuses the pair.
    return tuple(order_key(row.binding[v]) for v in shared)
