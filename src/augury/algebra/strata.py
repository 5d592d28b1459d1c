"""Which rules depend on which, in what order they can be answered, and whether there is an order at all (B 2.4)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar, assert_never

from augury.algebra import nodes as n
from augury.algebra.kinds import atoms_in
from augury.algebra.plan import Plan, Predicate, once_a_plan, static_calls
from augury.core.errors import Span

Kind = Literal["positive", "between", "negation", "grouping", "temporal", "facts", "was", "holding"]
_Vertex = TypeVar("_Vertex", Predicate, int)


@dataclass(frozen=True)
class Edge:
    """A head depends on a type that its rule reads. `between` is NOT, which looks strictly inside.

    `facts` are those that other rules make of events and that a condition of this one asks for; `was`, as they were just
    before, so that they rest on what has ended before; `holding` those over whose intervals it ranges.
    """

    head: Predicate
    reads: Predicate
    kind: Kind
    rule: n.Rule
    span: Span
    window: str | None = None


def edges(rule: n.Rule) -> list[Edge]:
    """The dependencies of a rule."""
    result: list[Edge] = []

    def add(node: n.Node, kind: Kind, span: Span, window: str | None = None) -> None:
        for type in sorted(n.event_types(node)):
            result.append(Edge(rule.predicate, type, kind, rule, span, window))

    for node in n.walk(rule.body):
        if not n.inputs(node):
            add(node, "positive", node.span)
        match node:
            case n.Join():
                if node.absent is not None:
                    add(node.absent, "between", node.span)
            case n.Repeat():
                if node.consecutive:
                    add(node.input, "between", node.span)
            case n.SessionWindow():
                add(node.input, "grouping", node.span)
            case n.Run():
                for pattern, kind in _looked_at(node):
                    add(pattern, kind, node.span)
            case n.Scan() | n.Instant() | n.Every() | n.Label() | n.Select() | n.Within():
                pass
            case n.Either() | n.Graph() | n.Unfold():
                pass
            case _:
                assert_never(node)
        for condition in n.conditions(node):
            match condition:
                case n.NoneInside() if n.part_after(condition.window) is not None:
                    add(condition.pattern, "between", condition.span)
                case n.NoneInside():
                    add(condition.pattern, "negation", condition.span, condition.window)
                case n.Relative():
                    add(_labelled(rule.body, condition.anchor), "temporal", condition.span)
                case n.Compare() | n.Holds() | n.Unless() | n.AnyOf() | n.Relates() | n.Spans():
                    pass
                case _:
                    assert_never(condition)
    for collect in rule.collects:
        add(collect.pattern, "grouping", collect.span, collect.window)
    return result


def _looked_at(run: n.Run) -> Iterator[tuple[n.Node, Kind]]:
    """The nodes that a run asks to be absent: strictly between its events, or, where it chooses among matches, at any time."""
    if run.which != "ALL":
        yield from ((part.input, "negation") for part in run.parts)
    for part, link in n.links(run):
        if link == "NEXT":
            yield from ((scan, "between") for scan in run.among)
        elif link == "THEN":
            yield part.input, "between"


@once_a_plan
def fact_edges(plan: Plan) -> list[Edge]:
    """Which rules ask for facts that other rules make, by themselves or through static rules."""
    if not plan.made:
        return []
    reads, result = static_reads(plan.clauses), list[Edge]()
    for rule in plan.rules:
        asked = static_calls(Plan((rule,)), was=False)
        before = static_calls(Plan((rule,)), was=True)
        calls: list[tuple[Predicate, Kind]] = [(c, "facts") for c in sorted(asked)]
        for call, kind in [*calls, *((c, "was") for c in sorted(before)), *((c, "holding") for c in sorted(rule.held))]:
            for predicate in sorted(below(call, reads) & plan.made.keys()):
                types = [t for t in plan.made[predicate] if t in plan.derived]
                result += [Edge(rule.predicate, type, kind, rule, rule.span) for type in types]
    return result


def _labelled(body: n.Node, label: str) -> n.Node:
    """The pattern behind a label; a relative event's own anchor, where the label is one."""
    for node in n.walk(body):
        if isinstance(node, n.Label) and node.label == label:
            return node
        for condition in n.conditions(node):
            if isinstance(condition, n.Relative) and condition.label == label:
                return _labelled(body, condition.anchor)
    raise KeyError(label)


def components(nodes: Iterable[_Vertex], reads: dict[_Vertex, set[_Vertex]]) -> list[list[_Vertex]]:
    """Strongly connected components, each after those it reads (Tarjan, without recursion)."""
    index: dict[_Vertex, int] = {}
    low: dict[_Vertex, int] = {}
    stack: list[_Vertex] = []
    open_nodes: set[_Vertex] = set()
    result: list[list[_Vertex]] = []
    for root in sorted(nodes):
        if root in index:
            continue
        work = [(root, iter(sorted(reads.get(root, ()))))]
        index[root] = low[root] = len(index)
        stack.append(root)
        open_nodes.add(root)
        while work:
            node, targets = work[-1]
            for target in targets:
                if target not in index:
                    index[target] = low[target] = len(index)
                    stack.append(target)
                    open_nodes.add(target)
                    work.append((target, iter(sorted(reads.get(target, ())))))
                    break
                if target in open_nodes:
                    low[node] = min(low[node], index[target])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    group = [stack.pop()]
                    while group[-1] != node:
                        group.append(stack.pop())
                    open_nodes.difference_update(group)
                    result.append(sorted(group))
    return result


def below(predicate: Predicate, reads: Mapping[Predicate, Iterable[Predicate]]) -> set[Predicate]:
    """The predicates that a predicate rests on, itself included."""
    reached, open_ = {predicate}, [predicate]
    while open_:
        new = set(reads.get(open_.pop(), ())) - reached
        reached |= new
        open_ += new
    return reached


def recurs(group: Sequence[Predicate], reads: Mapping[Predicate, Iterable[Predicate]]) -> bool:
    """Whether a component depends on itself."""
    return len(group) > 1 or group[0] in reads.get(group[0], ())


@dataclass(frozen=True)
class Stratum:
    """Rules that are answered together: one type, or several that depend on one another."""

    number: int
    types: tuple[Predicate, ...]
    rules: tuple[n.Rule, ...]
    recursive: bool


@once_a_plan
def strata(plan: Plan) -> list[Stratum]:
    """The strata in an order in which each reads only earlier ones and itself."""
    derived = plan.derived
    by_head: dict[Predicate, list[Edge]] = {type: [] for type in derived}
    for rule in plan.rules:
        by_head.setdefault(rule.predicate, []).extend(e for e in edges(rule) if e.reads in derived)
    for edge in fact_edges(plan):
        by_head[edge.head].append(edge)
    reads = {head: {e.reads for e in outgoing} for head, outgoing in by_head.items()}
    for query in plan.graph_queries:
        reads[query.predicate].update(type for type in query.reads if type in derived)
    result: list[Stratum] = []
    levels: dict[Predicate, int] = {}
    for types in components(derived, reads):
        recursive = recurs(types, reads)
        # A stratum is one higher than what it negates, groups or counts from; as high as what it reads positively.
        level = 1
        for edge in (e for type in types for e in by_head[type]):
            if edge.reads not in types:
                level = max(level, levels[edge.reads] + (edge.kind not in ("positive", "between")))
        levels.update(dict.fromkeys(types, level))
        rules = tuple(rule for type in types for rule in derived[type])
        result.append(Stratum(level, tuple(types), rules, recursive))
    return result


def cycle(
    start: Predicate, end: Predicate, reads: dict[Predicate, set[Predicate]], inside: Iterable[Predicate]
) -> list[Predicate]:
    """A shortest way from `start` to `end` within a component."""
    allowed, ways, frontier = set(inside), {start: [start]}, [start]
    while frontier:
        node = frontier.pop(0)
        if node == end:
            return ways[node]
        for target in sorted(reads.get(node, ())):
            if target in allowed and target not in ways:
                ways[target] = [*ways[node], target]
                frontier.append(target)
    return [start, end]


def static_reads(clauses: Iterable[n.Clause]) -> dict[Predicate, dict[Predicate, tuple[bool, Span]]]:
    """For each static predicate what it reads, whether under negation (or before a cut that guards a later clause)."""
    result: dict[Predicate, dict[Predicate, tuple[bool, Span]]] = {}
    by_head: dict[Predicate, list[n.Clause]] = {}
    for clause in clauses:
        by_head.setdefault(clause.predicate, []).append(clause)
    for head, group in by_head.items():
        table = result.setdefault(head, {})
        for number, clause in enumerate(group):
            guards = clause.cut and number < len(group) - 1
            for condition in clause.body:
                for name, negated in calls(condition):
                    entry = table.get(name)
                    if entry is None or ((negated or guards) and not entry[0]):
                        table[name] = (negated or guards, condition.span)
    return result


def calls(condition: n.Condition) -> list[tuple[Predicate, bool]]:
    """The static predicates that a condition asks for, and whether under negation."""
    return [(part.predicate, isinstance(part, n.Unless)) for part in atoms_in(condition)]


def static_calls_of(condition: n.Condition) -> set[Predicate]:
    """The static predicates that a condition asks for."""
    return {predicate for predicate, _ in calls(condition)}


def recursive_parts(node: n.Node, inside: Iterable[Predicate]) -> bool:
    """Whether a pattern reads a type of the component it belongs to."""
    return bool(n.event_types(node) & set(inside))
