"""Evaluates a program over a history, stratum by stratum; recursion in time order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from augury.algebra.kinds import chooses
from augury.algebra.matching import Scalars
from augury.algebra.nodes import HOLDING, held_by, walk_all
from augury.algebra.place import placed, varying
from augury.algebra.plan import Plan, Predicate
from augury.algebra.properties import all_properties
from augury.algebra.strata import Stratum, edges, fact_edges, strata
from augury.core.clock import Clock
from augury.core.errors import RunError
from augury.core.model import Event, Fact, HistoryItem, OrderKey, type_name
from augury.core.standing import standing
from augury.entailment import Derivation, ExplainedModel
from augury.knowledge.timeline import Statement, as_statements, timeline
from augury.reference.held_intervals import held_intervals
from augury.reference.latest_facts import latest_statements
from augury.reference.spaseq import answers
from augury.semantics.deriving import derived_by, derived_event
from augury.semantics.occurrences import by_type
from augury.semantics.pattern_rows import World
from augury.semantics.rdf_by_rdflib import TermTriple
from augury.semantics.static_calls import Static


def evaluate(
    plan: Plan,
    history: Iterable[HistoryItem],
    clock: Clock,
    facts: Iterable[Fact] = (),
    until: int | None = None,
    as_of: int | None = None,
    retention: int | None = None,
    graphs: Mapping[str | None, Sequence[TermTriple]] = {},
    observe: Callable[[World, Stratum], None] | None = None,
) -> ExplainedModel:
    """All derived events that the standing history entails, with every derivation, up to the clock.

    `graphs` is the static dataset that queries read, by name; `observe` is called with the world after each stratum.
    """
    events, rejected, greatest = standing(history, as_of)
    now = until if until is not None else greatest
    statements = as_statements(facts)
    fact_timeline = list(timeline(statements))
    facts_varying = varying(plan, fact_timeline)
    scalars = Scalars(plan.functions, plan.aggregates, clock)
    world = World(scalars, Static(plan.clauses, fact_timeline, scalars, lambda *_: None), graphs=graphs)
    world.static.report = world.report
    world.least = min((e.end for e in events), default=None)
    world.now = now
    derived = plan.derived
    inputs = by_type(events)
    derivations: dict[OrderKey, dict[OrderKey, Derivation]] = {}
    for type, type_events in inputs.items():
        if type not in derived:
            world.publish(type, type_events)
    unbounded = (
        {label for label, properties in all_properties(plan).items() if properties.horizon is None}
        if retention is not None
        else set()
    )
    _answer_queries(plan, world, inputs, derivations, clock, now, graphs)
    asked = {query.predicate for query in plan.graph_queries}
    for stratum in strata(plan):
        if asked.issuperset(stratum.types):
            continue
        rules = tuple(placed(rule, facts_varying, retention, unbounded) for rule in stratum.rules)
        stratum = replace(stratum, rules=rules)
        seeds = [event for type in stratum.types for event in inputs.get(type, ())]

        def static() -> tuple[Static, list[Fact]]:
            facts = list(timeline([*made(plan, world.events, statements), *statements]))
            return Static(plan.clauses, facts, scalars, world.report), facts

        def learn() -> None:
            world.learn(static()[0])

        for held in sorted(set().union(*(rule.held for rule in rules))):
            world.hold((HOLDING + held[0], held[1]), held_intervals(*static(), held))

        looks_back = [e for e in fact_edges(plan) if e.head in stratum.types and e.reads in stratum.types]
        _Answer(world, stratum, seeds, derivations, learn=learn if looks_back else None).run()
        if any(rule.makes for rule in rules):
            learn()
        if observe is not None:
            observe(world, stratum)
    result = [e for type in derived for e in world.events.get(type, ()) if e.end <= now]
    result.sort(key=lambda e: e.order)
    outputs = [e for e in result if e.type in plan.outputs]
    return ExplainedModel(
        outputs,
        now,
        {e.id: e for e in events},
        rejected,
        {error: len(rows) for error, rows in world.errors.items()},
        result,
        plan.makers,
        {e.id: list(derivations[e.content].values()) for e in result},
    )


def _answer_queries(
    plan: Plan,
    world: World,
    inputs: Mapping[Predicate, list[Event]],
    derivations: dict[OrderKey, dict[OrderKey, Derivation]],
    clock: Clock,
    now: int,
    graphs: Mapping[str | None, Sequence[TermTriple]],
) -> None:
    """The answers of queries, before all rules: they read inputs, and graphs that queries before them construct."""
    answers_by_type: dict[Predicate, list[tuple[Event, Derivation]]] = {}
    for query in plan.graph_queries:
        read = [event for type in query.reads for event in world.events.get(type, ())]
        answered = answers_by_type.setdefault(query.predicate, [])
        answered += answers(query, read, clock, now, graphs)
        alone = Stratum(0, (query.predicate,), (), False)
        _Answer(world, alone, inputs.get(query.predicate, []), derivations, answered).run()


def made(
    plan: Plan, events: Mapping[Predicate, Sequence[Event]], statements: Iterable[Statement]
) -> Iterator[Statement]:
    """What events say of facts: each holds, or ends, from the end of the event on. At one time, that it holds."""
    for (name, arity), (makes, ends) in plan.made.items():
        if (name, arity) in plan.latest:
            said = [s.fact.args for s in statements if (s.fact.name, len(s.fact.args)) == (name, arity)]
            ending, making = events.get(ends, ()), events.get(makes, ())
            yield from latest_statements(name, plan.latest[name, arity], making, ending, said)
            continue
        for type, retract in ((ends, True), (makes, False)):
            for event in events.get(type, ()):
                yield Statement(Fact(name, event.args, event.end), retract)


class _Answer:
    """Answers one stratum, into the world's events."""

    def __init__(
        self,
        world: World,
        stratum: Stratum,
        seeds: list[Event],
        derivations: dict[OrderKey, dict[OrderKey, Derivation]],
        answered: Iterable[tuple[Event, Derivation]] = (),
        learn: Callable[[], None] | None = None,
    ) -> None:
        """`learn` takes in the facts that events of the stratum make, where its own rules ask how they were."""
        self.world, self.stratum, self.derivations, self.learn = world, stratum, derivations, learn
        self.events: dict[OrderKey, Event] = {}
        self.seeds, self.answered = seeds, answered

    def run(self) -> None:
        seeded = [
            (derived_event(event.type, event.args, event.start, event.end), Derivation("", (event,)))
            for event in self.seeds
        ]
        seeded += self.answered
        if not self.stratum.recursive:
            self._add([*seeded, *self._apply()])
        elif self._monotone():
            self._add(seeded)
            while self._add(self._apply()):
                pass
        else:
            self._in_order_of_time(seeded)

    def _monotone(self) -> bool:
        """Whether more events can only give more: no absence, no policy and no facts that were on the cycle."""
        if self.learn is not None:
            return False
        for rule in self.stratum.rules:
            if any(e.reads in self.stratum.types and e.kind != "positive" for e in edges(rule)):
                return False
            for node in walk_all(rule.body):
                if chooses(node):
                    return False
        return True

    def _in_order_of_time(self, seeded: list[tuple[Event, Derivation]]) -> None:
        """End by end: absences and policies look only at what ended before, which is complete."""
        now: int | None = None
        derived = [*seeded, *self._apply()]
        while pending := [(e, d) for e, d in derived if now is None or e.end > now]:
            now = min(e.end for e, _ in pending)
            base = dict(self.events)
            seen: list[set[OrderKey]] = []
            ending = [(e, d) for e, d in pending if e.end == now]
            current = _traced(ending)
            while set(current) not in seen:
                seen.append(set(current))
                self.events = {**base, **current}
                self._publish()
                derived = [*seeded, *self._apply()]
                ending = [(e, d) for e, d in derived if e.end == now]
                current = _traced(ending)
            if seen[-1] != set(current):
                raise RunError(f"the policy of rule `{self.stratum.rules[0].label}` has no stable choice at time {now}")
            self.events = base
            self._add(ending)  # what was derived last, was derived from just these events

    def _add(self, derived: Iterable[tuple[Event, Derivation]]) -> bool:
        """Adds derived events and their derivations; whether anything was new."""
        new = False
        for event, derivation in list(derived):
            earlier = self.events.get(event.content)
            if earlier is None or _plainer(event, earlier):
                new = new or earlier is None
                self.events[event.content] = (
                    replace(event, trace=_trace(derivation)) if earlier is None else replace(event, trace=earlier.trace)
                )
            table = self.derivations.setdefault(event.content, {})
            table.setdefault(derivation.key, derivation)
        self._publish()
        return new

    def _publish(self) -> None:
        for type in self.stratum.types:
            self.world.publish(type, [e for e in self.events.values() if (e.type, len(e.args)) == type])
        if self.learn is not None:
            self.learn()

    def _apply(self) -> list[tuple[Event, Derivation]]:
        """Every rule once: the events it derives from what stands now."""
        return [pair for rule in self.stratum.rules for pair in derived_by(self.world, rule)]


def _traced(derived: list[tuple[Event, Derivation]]) -> dict[OrderKey, Event]:
    return {e.content: replace(e, trace=_trace(d)) for e, d in reversed(derived)}


def _trace(derivation: Derivation) -> tuple[str, ...]:
    """The input events of a derivation: a derived part stands for its own trace."""
    ids: dict[str, None] = {}
    for part in (p for p in derivation.parts if held_by((p.type, len(p.args))) is None):
        for id in part.trace or (part.id,):
            ids[id] = None
    return tuple(ids)


def _plainer(event: Event, earlier: Event) -> bool:
    """Of two equal events the one with integers is shown, so that 1 and 1.0 give one answer, whatever came first."""
    return [type_name(a) for a in event.args] != [type_name(a) for a in earlier.args] and [
        type_name(a) != "int" for a in event.args
    ] < [type_name(a) != "int" for a in earlier.args]
