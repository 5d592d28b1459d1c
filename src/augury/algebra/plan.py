"""A program of the algebra: rules, clauses and declarations, ready to be analysed and evaluated."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, wraps
from typing import Concatenate, ParamSpec, TypeVar

from augury.algebra.aggregates import AggregateFunction
from augury.algebra.graph_queries import GraphQuery
from augury.algebra.kinds import atoms_in
from augury.algebra.nodes import Clause, Holds, Rule, Unless, event_types, held_by, made_type
from augury.algebra.scalar import Function
from augury.core.errors import NOWHERE, Span

Predicate = tuple[str, int]
INPUT: Predicate = ("#input", 0)  # any event that came in, whatever its type: the first one opens windows by the clock


@dataclass(frozen=True)
class Attribute:
    """An attribute of an event. Timestamps that name no zone are read as local times of `zone`, or as UTC.

    `column` is the column, or the path into a nested one, that holds it where it is not called as the attribute.
    """

    name: str
    type: str = "any"
    zone: str = field(default="", compare=False, repr=False)
    column: str = field(default="", compare=False, repr=False)


@dataclass(frozen=True)
class Query:
    """A query in SPARQL, and how many arguments stand beside it."""

    text: str
    arity: int
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True)
class Plan:
    """A program as executors run it. `declared` has the attributes of declared events, `static` those of declared facts.

    `given` are derived types that are made elsewhere and given as sets, with the greatest length of their events, in
    microseconds, where it is bounded: a stage of a program has them. `hidden` is how many arguments at the end of every
    event are no part of it: its slice of time, in a stream of the length `slice`. `aliases` are types whose events are those of another type with more
    arguments: what facts say of them. `queries` are those in SPARQL, by the static predicate that stands for each.
    `graph_queries` are those of SPAseQ, each after those whose graphs it reads.
    """

    rules: tuple[Rule, ...] = ()
    clauses: tuple[Clause, ...] = ()
    declared: Mapping[str, tuple[Attribute, ...]] = field(default_factory=dict)
    static: Mapping[str, tuple[Attribute, ...]] = field(default_factory=dict)
    outputs: tuple[str, ...] = ()
    tick: int | None = None
    functions: Mapping[str, Function] = field(default_factory=dict)
    aggregates: Mapping[str, AggregateFunction] = field(default_factory=dict)
    prefixes: Mapping[str, str] = field(default_factory=dict)
    given: Mapping[Predicate, int | None] = field(default_factory=dict)
    hidden: int = 0
    slice: int | None = None
    aliases: Mapping[Predicate, Predicate] = field(default_factory=dict)
    queries: Mapping[str, Query] = field(default_factory=dict)
    graph_queries: tuple[GraphQuery, ...] = ()

    @cached_property
    def _in_zones(self) -> dict[str, Plan]:
        return {}

    def in_zone(self, zone: str) -> Plan:
        """The plan by which inputs are read whose timestamps without a zone are of `zone`."""
        if not zone:
            return self
        if zone not in self._in_zones:
            timed = {
                name: tuple(replace(a, zone=zone) if a.type == "timestamp" else a for a in attributes)
                for name, attributes in self.declared.items()
            }
            self._in_zones[zone] = replace(self, declared=timed)
        return self._in_zones[zone]

    @cached_property
    def derived(self) -> dict[Predicate, tuple[Rule, ...]]:
        """The rules of each derived type, in the order of the text; a given one, and what a query derives, may have none."""
        result: dict[Predicate, list[Rule]] = {type: [] for type in self.given}
        result.update({query.predicate: [] for query in self.graph_queries})
        for rule in self.rules:
            result.setdefault(rule.predicate, []).append(rule)
        return {type: tuple(rules) for type, rules in result.items()}

    @cached_property
    def has_columns(self) -> bool:
        """Whether the program names the column of an attribute."""
        return any(a.column for attributes in self.declared.values() for a in attributes)

    @cached_property
    def made(self) -> dict[Predicate, tuple[Predicate, Predicate]]:
        """The static predicates whose facts rules make of events: the types of the events that make and that end them."""
        result = {(rule.makes, len(rule.args)) for rule in self.rules if rule.makes}
        return {(n, k): ((made_type(n, "fact"), k), (made_type(n, "no fact"), k)) for n, k in sorted(result)}

    @cached_property
    def latest(self) -> dict[Predicate, tuple[int, ...]]:
        """The static predicates with one fact a key, which the last event makes: the places of the key."""
        return {(rule.makes, len(rule.args)): rule.latest for rule in self.rules if rule.latest is not None}

    @cached_property
    def makers(self) -> dict[str, str]:
        """The types of events that make facts, and of which predicate."""
        return {makes[0]: name for (name, _), (makes, _) in self.made.items()}

    @cached_property
    def event_types(self) -> set[Predicate]:
        """Every event type that is declared, read or derived."""
        read = {t for rule in self.rules for t in rule_reads(rule)}
        read |= {t for query in self.graph_queries for t in query.reads}
        return read | set(self.derived) | {(name, len(a)) for name, a in self.declared.items()}


_More = ParamSpec("_More")
_Found = TypeVar("_Found")


def once_a_plan(compute: Callable[Concatenate[Plan, _More], _Found]) -> Callable[Concatenate[Plan, _More], _Found]:
    """Caches a property of a plan, since plans do not change: the result for the arguments of the last call. All
    callers share it, so none may change it.
    """

    @wraps(compute)
    def cached(plan: Plan, /, *args: _More.args, **options: _More.kwargs) -> _Found:
        computed = vars(plan)
        if compute.__qualname__ not in computed or computed[compute.__qualname__][0] != (args, options):
            computed[compute.__qualname__] = (args, options), compute(plan, *args, **options)
        kept: _Found = computed[compute.__qualname__][1]
        return kept

    return cached


def static_calls(plan: Plan, was: bool | None = None) -> set[Predicate]:
    """Every static predicate that a rule or clause asks, or over whose intervals a rule ranges; with `was`, just those
    that are asked as they were before, or as they are."""
    held = {predicate for rule in plan.rules for predicate in rule.held} if was is None else set()
    return held | {atom.predicate for atom, _ in static_atoms(plan) if was in (None, atom.was)}


def static_atoms(plan: Plan) -> Iterator[tuple[Holds | Unless, Rule | None]]:
    """Every call of a static predicate, with the event rule it stands in."""
    where = [(condition, rule) for rule in plan.rules for condition in rule.conditions]
    for condition, rule in [*where, *((condition, None) for clause in plan.clauses for condition in clause.body)]:
        yield from ((part, rule) for part in atoms_in(condition))


def rule_reads(rule: Rule) -> set[Predicate]:
    """The types of events that a rule reads. Intervals in which facts hold are made of facts."""
    return {type for pattern in rule.patterns for type in event_types(pattern) if held_by(type) is None}
