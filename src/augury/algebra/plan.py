"""A program of the algebra: rules, clauses and declarations, ready to be analysed and evaluated."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, wraps
from typing import Concatenate, ParamSpec, TypeVar

from augury.algebra.aggregates import AggregateFunction
from augury.algebra.graph_queries import GraphQuery
from augury.algebra.nodes import Clause, Holds, Rule, Unless, event_types, made_type, walk_condition
from augury.algebra.scalar import Function
from augury.core.errors import NOWHERE, Span

Predicate = tuple[str, int]
INPUT: Predicate = ("#input", 0)  # any event that came in, whatever its type: the first one opens windows by the clock


@dataclass(frozen=True)
class Attribute:
    name: str
    type: str = "any"


@dataclass(frozen=True)
class Query:
    """A query in SPARQL, and how many arguments stand beside it."""

    text: str
    arity: int
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True)
class Plan:
    """What executors run. `declared` has the attributes of declared events, `static` those of declared facts.

    `given` are derived types that are made elsewhere and given as sets, with the greatest length of their events, in
    microseconds, where it is bounded: a stage of a program has them. `hidden` is how many arguments at the end of every
    event are no part of it: its slice of time. `aliases` are types whose events are those of another type with more
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
    aliases: Mapping[Predicate, Predicate] = field(default_factory=dict)
    queries: Mapping[str, Query] = field(default_factory=dict)
    graph_queries: tuple[GraphQuery, ...] = ()

    @cached_property
    def derived(self) -> dict[Predicate, tuple[Rule, ...]]:
        """The rules of each derived type, in the order of the text; a given one, and what a query derives, may have none."""
        found: dict[Predicate, list[Rule]] = {type: [] for type in self.given}
        found.update({query.predicate: [] for query in self.graph_queries})
        for rule in self.rules:
            found.setdefault(rule.predicate, []).append(rule)
        return {type: tuple(rules) for type, rules in found.items()}

    @cached_property
    def made(self) -> dict[Predicate, tuple[Predicate, Predicate]]:
        """The static predicates whose facts rules make of events: the types of the events that make and that end them."""
        found = {(rule.makes, len(rule.args)) for rule in self.rules if rule.makes}
        return {(n, k): ((made_type(n, "fact"), k), (made_type(n, "no fact"), k)) for n, k in sorted(found)}

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
    """What follows from a plan is worked out once, since plans do not change: that for the arguments of the last call is
    kept beside it. It is shared by all who ask, and nobody may change it.
    """

    @wraps(compute)
    def found(plan: Plan, /, *args: _More.args, **options: _More.kwargs) -> _Found:
        known = vars(plan)
        if compute.__qualname__ not in known or known[compute.__qualname__][0] != (args, options):
            known[compute.__qualname__] = (args, options), compute(plan, *args, **options)
        kept: _Found = known[compute.__qualname__][1]
        return kept

    return found


def static_calls(plan: Plan, was: bool | None = None) -> set[Predicate]:
    """Every static predicate that a rule or clause asks; with `was`, just those as they were before, or are."""
    return {atom.predicate for atom, _ in static_atoms(plan) if was in (None, atom.was)}


def static_atoms(plan: Plan) -> Iterator[tuple[Holds | Unless, Rule | None]]:
    """Every call of a static predicate, with the event rule it stands in."""
    where = [(condition, rule) for rule in plan.rules for condition in rule.conditions]
    for condition, rule in [*where, *((condition, None) for clause in plan.clauses for condition in clause.body)]:
        yield from ((part, rule) for part in walk_condition(condition) if isinstance(part, Holds | Unless))


def rule_reads(rule: Rule) -> set[Predicate]:
    return {type for pattern in rule.patterns for type in event_types(pattern)}
