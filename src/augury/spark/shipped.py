"""Knowledge on its way to workers: sent as columns, and made into relations and indexes once in each of them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import cached_property

from augury.algebra.matching import Scalars
from augury.algebra.plan import Plan, static_calls
from augury.core.clock import Clock
from augury.core.model import Fact
from augury.engine.saved import packed, unpacked
from augury.knowledge.facts import Facts
from augury.knowledge.graphs import entailing
from augury.knowledge.knowledge_base import Knowledge
from augury.knowledge.rdfs import ABOVE, DIRECT
from augury.knowledge.static_triples import STATIC_TRIPLES, reads_static_graphs

_KIND = "facts"
ENTAILING = (ABOVE, DIRECT)  # what clauses ask for that come with a graph
_KEPT = 4  # how many bodies of knowledge a worker keeps
_facts: dict[str, Facts] = {}
_knowledge: dict[tuple[str, str], Knowledge] = {}


class Shipped:
    """The facts of a run as bytes, which a worker reads once, however many tasks and buckets it works for."""

    def __init__(self, facts: Iterable[Fact] = ()) -> None:
        self.data = packed(_KIND, Facts.of(facts))
        self.digest = hashlib.blake2b(self.data, digest_size=16).hexdigest()

    @cached_property
    def facts(self) -> Facts:
        if self.digest not in _facts:
            _make_room(_facts)
            _facts[self.digest] = unpacked(_KIND, self.data)[1]
        return _facts[self.digest]

    def __getstate__(self) -> tuple[bytes, str]:
        return self.data, self.digest

    def __setstate__(self, state: tuple[bytes, str]) -> None:
        self.data, self.digest = state

    def asked(self, plan: Plan) -> Facts:
        """The facts that a stage asks for: what others ask for is no concern of it."""
        asked = static_calls(plan)
        wanted = {*ENTAILING, *plan.queries, *([STATIC_TRIPLES] if reads_static_graphs(plan) else ())}
        return Facts(t for t in self.facts.statement_tables if t.predicate in asked or t.facts.name in wanted)

    def knowledge(self, plan: Plan, clock: Clock) -> Knowledge | None:
        """What the sessions of a worker share; None where facts change, so that each has its own."""
        if plan.made:
            return None
        key = (self.digest, repr((plan.clauses, sorted(static_calls(plan)), clock)))
        if key not in _knowledge:
            _make_room(_knowledge)
            facts = self.asked(plan)
            clauses = (*plan.clauses, *entailing(facts.predicates))
            scalars = Scalars(plan.functions, plan.aggregates, clock)
            _knowledge[key] = Knowledge(clauses, facts, scalars, lambda *_: None)
        return _knowledge[key]


def _make_room(kept: dict) -> None:  # type: ignore[type-arg]
    while len(kept) >= _KEPT:
        del kept[next(iter(kept))]
