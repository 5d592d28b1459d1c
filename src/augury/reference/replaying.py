"""Replays a history item by item: how the answer changes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from augury.algebra.plan import Plan, Predicate
from augury.algebra.properties import finality_delays, query_delay
from augury.core.clock import Clock
from augury.core.model import Change, Event, Fact, HistoryItem, give_ids
from augury.core.standing import LatenessFilter
from augury.entailment import ExplainedModel, Replay
from augury.reference.evaluator import evaluate
from augury.reference.finality import Finality
from augury.semantics.rdf_by_rdflib import TermTriple


def _own_delays(plan: Plan) -> dict[Predicate, int | None]:
    """For what queries derive, how long it may still change once it is given: it waits for what they read."""
    result = finality_delays(plan)
    query_delays: dict[Predicate, int] = {}
    for query in plan.graph_queries:
        query_delays[query.predicate] = max(query_delays.get(query.predicate, 0), query_delay(query))
    return {type: None if (delay := result[type]) is None else delay - query_delays[type] for type in query_delays}


def replay(
    plan: Plan,
    history: Iterable[HistoryItem],
    clock: Clock,
    facts: Iterable[Fact] = (),
    until: int | None = None,
    retention: int | None = None,
    emit: Literal["early", "final"] = "early",
    lateness: int | None = None,
    graphs: Mapping[str | None, Sequence[TermTriple]] = {},
    longest: int | None = None,
) -> Replay:
    """The changes of the answer while the history is pushed item by item.

    The answer after each item is that of evaluating all items up to it: early, as soon as it is entailed; final, once
    nothing that may still come could change it. `longest` says how long inputs last at most, in time points; without it
    the longest one so far stands for all.
    """
    so_far: list[HistoryItem] = []
    late: list[HistoryItem] = []
    changes: list[Change] = []
    shown: dict[str, Event] = {}
    facts, lateness_filter = list(facts), LatenessFilter(lateness)

    delays = {**finality_delays(plan), **_own_delays(plan)}

    def final_events(model: ExplainedModel, finality: Finality | None) -> list[Event]:
        """The events that no other match, and no answer of a query, may still take the place of."""
        if finality is None:
            return model.events
        if not plan.graph_queries:
            return [event for event in model.events if finality.is_final(event, model)]
        waits = {type: None if delay is None else clock.length(delay) for type, delay in delays.items()}
        return [
            e
            for e in model.events
            if (wait := waits[e.type, len(e.args)]) is not None and e.end <= finality.frontier - wait
        ]

    def final(frontier: int) -> None:
        lasting = [e.end - e.start for e in so_far if isinstance(e, Event)]
        finality = Finality(plan, clock, frontier, max(lasting, default=0) if longest is None else longest)
        observe = None if plan.graph_queries else finality.observe
        show(evaluate(plan, so_far, clock, facts, frontier, None, retention, graphs, observe), finality)

    def show(model: ExplainedModel, finality: Finality | None = None) -> None:
        now = {e.id: e for e in final_events(model, finality)}
        changes.extend(Change("retract", e) for e in shown.values() if e.id not in now)
        changes.extend(Change("insert", e) for e in now.values() if e.id not in shown)
        shown.clear()
        shown.update(now)

    for item in give_ids(history):
        if not lateness_filter.accepts(item):
            late.append(item)
            continue
        so_far.append(item)
        if emit == "early":
            show(evaluate(plan, so_far, clock, facts, None, None, retention, graphs))
        elif lateness_filter.frontier is not None:
            final(lateness_filter.frontier)
    last = evaluate(plan, so_far, clock, facts, until, None, retention, graphs)
    show(last)
    return Replay(changes, late, last)
