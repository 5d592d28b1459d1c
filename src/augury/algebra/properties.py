"""Analyses of a rule: bounds on its times, how long each operator must remember, when an absence is
certain, and the key that correlates its events."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import assert_never

from augury.algebra import nodes as n
from augury.algebra.graph_queries import GraphQuery, Sliding, Tumbling
from augury.algebra.kinds import inner_absences, keeps_some_matches, of_kind
from augury.algebra.place import place
from augury.algebra.plan import Plan, Predicate, once_a_plan
from augury.algebra.relations import RELATIVE, Bounds, Contradiction, Reason
from augury.algebra.strata import edges, fact_edges, strata
from augury.algebra.terms import Moment, Var, show
from augury.algebra.terms import walk as walk_term
from augury.algebra.timing import Lengths, Point, Timing, linear_point
from augury.core.clock import show_duration
from augury.core.errors import Span


@dataclass(frozen=True)
class Memory:
    """How long one side of an operator is kept, in microseconds; None is without a bound, negative is not at all."""

    side: str
    keep: int | None
    span: Span = field(compare=False, repr=False)
    count: int | None = None


@dataclass(frozen=True)
class Properties:
    """The properties of a rule: `contradiction` says why it can never be detected, `longest` and `shortest` bound its events."""

    table: Bounds[Point]
    memory: tuple[Memory, ...]
    key: tuple[str, ...]
    certain_when: tuple[str, ...]
    longest: int | None = None
    shortest: int = 0
    any_length: int | None = None
    contradiction: tuple[Reason, ...] = ()

    @property
    def horizon(self) -> int | None:
        """How long the rule must remember anything at all, for inputs that are points; None is without a bound.

        `any_length` is the same for inputs that may be intervals of any length.
        """
        return _greatest(self.memory)


def _greatest(memory: Iterable[Memory]) -> int | None:
    kept = [m.keep for m in memory if m.count is None]
    return None if None in kept else max((k for k in kept if k is not None), default=0)


@once_a_plan
def all_properties(plan: Plan) -> dict[str, Properties]:
    """The properties of every rule, by label.

    How long state is kept is counted for inputs that are points; an input interval adds its own length. The length of a
    derived event is bounded by its rules; that of a recursive one by nothing but a window.
    """
    return _all(plan, {})


@once_a_plan
def finality_delays(plan: Plan) -> dict[Predicate, int | None]:
    """How long after its end an event of each derived type may still change, in microseconds; None is without a bound.

    Whether there is an answer at t is decided by what ends by t, but for runs that choose: a longer match may follow. Within
    a window w all rivals of a match have ended w after its start. What reads such events waits for them.
    """
    result: dict[Predicate, int | None] = {}
    reads: dict[Predicate, set[Predicate]] = {}
    for edge in [e for rule in plan.rules for e in edges(rule)] + fact_edges(plan):
        reads.setdefault(edge.head, set()).add(edge.reads)
    for query in plan.graph_queries:
        reads.setdefault(query.predicate, set()).update(query.reads)
    for stratum in strata(plan):
        before = [result.get(t, 0) for type in stratum.types for t in reads.get(type, ()) if t not in stratum.types]
        runs = [x for rule in stratum.rules for x in n.walk(rule.body) if keeps_some_matches(x)]
        delays = [min(run.windows) if run.windows else None for run in runs]
        delays += [rule.delay for rule in stratum.rules]
        # An occurrence that lasts may still join a session that has ended.
        delays += [None for rule in stratum.rules for x in rule.nodes if isinstance(x, n.SessionWindow)]
        delays += [d for q in plan.graph_queries if q.predicate in stratum.types for d in (query_delay(q), _choice(q))]
        late = None if None in (*before, *delays) else _most(before) + _most(delays)
        result.update(dict.fromkeys(stratum.types, late))
    return result


def query_delay(query: GraphQuery) -> int:
    """How long after its end an answer of a query may be given first: something must be absent until its window ends."""
    bounded = isinstance(query.window, Sliding | Tumbling) and query.answers_late
    return query.window.length if bounded else 0  # type: ignore[union-attr]


def _choice(query: GraphQuery) -> int | None:
    """How long after its end an answer of a query that chooses among its matches may be taken back."""
    if query.choice.which == "ALL":
        return 0
    return query.window.length if isinstance(query.window, Sliding | Tumbling) else None


def _most(delays: list[int | None]) -> int:
    return max((d for d in delays if d is not None), default=0)


@once_a_plan
def event_lengths(plan: Plan, longest: int) -> Lengths:
    """How long the events of each type can be, in microseconds, where inputs last no longer than `longest`."""
    lengths: dict[Predicate, int | None] = {type: longest for type in plan.event_types if type not in plan.derived}
    _all(plan, lengths)
    # An input of a derived type is an event of it, too.
    return {type: None if bound is None else max(bound, longest) for type, bound in lengths.items()}


@once_a_plan
def length_conflicts(plan: Plan) -> dict[str, tuple[Reason, ...]]:
    """The rules whose times contradict how long the derived events that they read last, whatever inputs do.

    av(sum(A)) <- t: tick(_), w: extend_backward(t, 1h), while w: collect tick(A).   →   `(av(X) SEQ av(Y)).1h` is too short
    """
    by_label, conflicts = all_properties(plan), dict[str, tuple[Reason, ...]]()
    lengths: dict[Predicate, int | None] = dict.fromkeys(plan.event_types - plan.derived.keys())
    shortest: dict[Predicate, int] = {}
    if any(_asks_times(condition) for rule in plan.rules for condition in rule.conditions):
        _all(plan, lengths)
    for stratum in strata(plan):
        lasting: dict[Predicate, list[int]] = {}
        for rule in stratum.rules:
            least = by_label[rule.label].shortest
            asks = any(map(_asks_times, rule.conditions))
            if asks or any(scan.predicate in shortest for scan in n.scans(rule.body)):
                table = Timing(plan.tick, lengths if asks else None, shortest)
                try:
                    whole = table.add(place(rule.body))
                    table.close()
                    least = max(least, _shortest(table, rule, whole))
                except Contradiction as contradiction:
                    if not by_label[rule.label].contradiction:  # which has been reported
                        conflicts[rule.label] = contradiction.reasons
            lasting.setdefault(rule.predicate, []).append(least)
        shortest |= {type: min(each) for type, each in lasting.items() if min(each) > 0}
    return conflicts


def _asks_times(condition: n.Condition) -> bool:
    return any(isinstance(part, Moment) for term in n.condition_terms(condition) for part in walk_term(term))


def _all(plan: Plan, lengths: dict[Predicate, int | None]) -> dict[str, Properties]:
    result: dict[str, Properties] = {}
    for stratum in strata(plan):
        lengths.update(dict.fromkeys(stratum.types))
        for rule in stratum.rules:
            result[rule.label] = properties(rule, plan.tick, lengths)
        for type in stratum.types:
            bounds = [result[rule.label].longest for rule in stratum.rules if rule.predicate == type]
            bounds += [plan.given[type]] if type in plan.given else []
            lengths[type] = None if None in bounds else max((b for b in bounds if b is not None), default=None)
    return result


def properties(rule: n.Rule, tick: int | None = None, lengths: Lengths | None = None) -> Properties:
    """The properties of a rule as written. `lengths` bounds the events of derived types; other types are inputs."""
    body = place(rule.body)
    general = Timing(tick)
    everything = general.add(body)
    try:
        general.close()
    except Contradiction as found:
        return Properties(general.table, (), correlation_key(rule), (), contradiction=found.reasons)
    for branch in general.branches:
        return Properties(general.table, (), correlation_key(rule), (), contradiction=branch)
    builder = Timing(tick, {} if lengths is None else lengths)
    whole = builder.add(body)
    try:
        builder.close()
    except Contradiction:  # the rule needs intervals, as PAR does
        builder = Timing(tick)
        whole = builder.add(body)
        builder.close()
    return Properties(
        general.table,
        tuple(_memories(builder, body, rule, whole)),
        correlation_key(rule),
        tuple(_certain_when(body)),
        _longest(builder, rule, whole),
        _shortest(general, rule, everything),
        _greatest(_memories(general, body, rule, everything)),
    )


def _longest(builder: Timing, rule: n.Rule, whole: str) -> int | None:
    """The greatest length of a derived event: the cover of the row and the windows."""
    if rule.since == "END":
        return 0
    if any(collect.last is not None for collect in rule.collects):
        return None
    parts = [whole, *rule.covers]
    if rule.since is not None:
        begins = linear_point(rule.since)
        if begins is None:
            return None
        point, later = begins
        ends = [builder.table.limit((x, "e"), point) for x in parts]
        return None if None in ends else max(0, max(limit.value for limit in ends if limit is not None) - later)
    limits = [builder.table.limit((x, "e"), (y, "s")) for x in parts for y in parts]
    return None if None in limits else max(limit.value for limit in limits if limit is not None)


def _shortest(builder: Timing, rule: n.Rule, whole: str) -> int:
    """The least length of a derived event: from any start in its cover to any end."""
    if rule.since == "END":
        return 0
    parts = [whole, *rule.covers]
    begins = [(x, "s") for x in parts] if rule.since is None else []
    later = 0
    if rule.since is not None and (point := linear_point(rule.since)) is not None:
        begins, later = [point[0]], point[1]
    limits = [builder.table.limit(begin, (x, "e")) for begin in begins for x in parts]
    return max([0, *(-limit.value - later for limit in limits if limit is not None)])


def interval_table(rule: n.Rule, tick: int | None = None) -> tuple[Bounds[Point], dict[int, str], str] | None:
    """The closed bounds of a rule, the interval of each scan by its place in the text, and that of the whole."""
    builder = Timing(tick)
    body = place(rule.body)
    whole = builder.add(body)
    try:
        builder.close()
    except Contradiction:
        return None
    scans = {scan.span.start: builder.interval(scan) for scan in n.scans(body)}
    return builder.table, scans, whole


def _memories(builder: Timing, body: n.Node, rule: n.Rule, whole: str) -> Iterator[Memory]:
    table, keep = builder.table, partial(_keep, builder)
    for node in n.walk(body):
        match node:
            case n.Join():
                left, right = builder.interval(node.left), builder.interval(node.right)
                if (left, "e") not in table.points or (right, "e") not in table.points:
                    yield from _inner_memories(node, builder)
                    continue
                yield from _of_sides(node, builder)
                if node.absent is not None:
                    yield Memory("absent", keep((right, "e"), (left, "e")), node.span)
            case n.SessionWindow():
                name = builder.interval(node)
                yield Memory("open", keep((name, "e"), (name, "s")), node.span)
            case n.Repeat():
                yield Memory("left", min(node.windows) if node.windows else None, node.span)
            case n.Run():
                name = builder.interval(node)
                length = keep((name, "e"), (name, "s")) if (name, "e") in table.points else None
                yield Memory("parts", length, node.span)
            case n.Scan() | n.Instant() | n.Every() | n.Label() | n.Select() | n.Within():
                pass  # they keep no rows
            case n.Either() | n.Graph() | n.Unfold():
                pass
            case _:
                assert_never(node)
        for absence in inner_absences(n.conditions(node)):
            row = builder.interval(node)
            yield Memory("waiting", keep((absence.window, "e"), (row, "e")), absence.span)
            yield Memory("absent", keep((row, "e"), (absence.window, "s")), absence.span)
    for collect in rule.collects:
        if collect.window is not None:
            yield Memory("waiting", keep((collect.window, "e"), (whole, "e")), collect.span)
            yield Memory("collected", keep((whole, "e"), (collect.window, "s")), collect.span)
        if collect.last is not None:
            count = None if collect.last == n.ALL_COLLECTED else collect.last
            yield Memory("collected", None, collect.span, count)
    if rule.at_most is not None:
        ever = rule.at_most.count if rule.at_most.every is None else None
        yield Memory("given", rule.at_most.every, rule.at_most.span, ever)


def _inner_memories(node: n.Join, outer: Timing) -> Iterator[Memory]:
    """An operator inside a branch or a repetition is bounded by itself."""
    builder = Timing(outer.tick, outer.lengths)
    builder.add(node)
    try:
        builder.close()
    except Contradiction:
        return
    yield from _of_sides(node, builder)


def _of_sides(node: n.Join, builder: Timing) -> Iterator[Memory]:
    """A row is kept until nothing of the other side can end late enough to meet it."""
    left, right = ((builder.interval(side), "e") for side in (node.left, node.right))
    yield Memory("left", _keep(builder, right, left), node.span)
    yield Memory("right", _keep(builder, left, right), node.span)


def _keep(builder: Timing, x: Point, y: Point) -> int | None:
    limit = builder.table.limit(x, y)
    return None if limit is None else -1 if limit.impossible else limit.value


def _certain_when(body: n.Node) -> Iterator[str]:
    """When each absence of a rule is certain."""
    for node in n.walk(body):
        if isinstance(node, n.SessionWindow):
            yield f"session: {show_duration(node.gap)} after its last event"
        elif keeps_some_matches(node):
            yield f"{node.which}: when no other match with the same first event can come"
        elif isinstance(node, n.Join) and node.absent is not None:
            yield "NOT: when the closing part starts"
        for absence in inner_absences(n.conditions(node)):
            if n.part_after(absence.window) is not None:
                yield "NOT: when the closing part starts"
                continue
            yield f"while {absence.window}: at end({absence.window}) = {_end_of(body, absence.window)}"


def _end_of(body: n.Node, window: str) -> str:
    for node in n.walk(body):
        for condition in n.conditions(node):
            if isinstance(condition, n.Relative) and condition.label == window and condition.windows is None:
                which, sign = RELATIVE[condition.kind][1]
                if sign == 0:
                    return f"{which}({condition.anchor})"
                length = condition.length
                if condition.kind == "until" and not isinstance(length, int):
                    return show(length)
                text = show_duration(length) if isinstance(length, int) else show(length)
                return f"{which}({condition.anchor}) {'+' if sign > 0 else '-'} {text}"
    return f"end({window})"


def correlation_key(rule: n.Rule) -> tuple[str, ...]:
    """The variables that every event of the rule carries as an argument of its own, equal ones taken as one."""
    same, shared = key_classes(rule), list[Iterable[str]]()
    for node in rule.nodes:
        match node:
            case n.Scan():
                shared.append(a.name for a in node.args if isinstance(a, Var))
            case n.Join() if node.policy.before_join:
                shared.append(node.policy.per)  # the policy chooses for each of its values, whatever else is shared
            case n.Run():
                shared.append(node.key)  # which event follows which is decided for each key
            case n.Join() | n.Instant() | n.Every() | n.Label() | n.Select() | n.Within() | n.Either() | n.Repeat():
                pass
            case n.Graph() | n.Unfold() | n.SessionWindow():
                pass
            case _:
                assert_never(node)
    if rule.collects:
        # What is collected is split by what the rule's row has, and by what makes groups.
        shared.append(n.bound_vars(rule.body).union(*(other.by for other in rule.collects)))
    if any(isinstance(condition, n.NoneInside) for node in n.walk(rule.body) for condition in n.conditions(node)):
        shared.append(n.bound_vars(rule.body))  # an absence is asked before anything is collected
    if rule.top is not None:
        shared.append(rule.top.per)
    if rule.at_most is not None:
        # Equal events are one, with the least of their keys: they are made where the key is an argument of the head.
        shared.append(v.name for v in rule.args if isinstance(v, Var))
        shared.append(rule.at_most.per)
    if not of_kind(rule.nodes, n.Scan):
        return ()
    return tuple(sorted(set.intersection(*({same(v) for v in names} for names in shared))))


def key_classes(rule: n.Rule) -> Callable[[str], str]:
    """Which variables of a rule are equal in all its answers: each with the representative of its class."""
    parent: dict[str, str] = {}

    def find(name: str) -> str:
        while parent.get(name, name) != name:
            name = parent[name]
        return name

    for pattern in rule.patterns:
        for node in _always(pattern):
            # The conditions of a run may concern one iteration, or a part that is left out.
            for condition in () if isinstance(node, n.Run) else n.conditions(node):
                match condition:
                    case n.Compare(op="=", left=Var(name=x), right=Var(name=y)):
                        low, high = sorted((find(x), find(y)))
                        parent[high] = low
    return find


def _always(node: n.Node) -> Iterator[n.Node]:
    """The parts of a pattern that every occurrence has."""
    yield node
    if not isinstance(node, n.Either | n.Repeat | n.Run):
        for part in n.inputs(node):
            yield from _always(part)
