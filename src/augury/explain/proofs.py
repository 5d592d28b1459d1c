"""Why a static atom holds: evaluates static calls over the facts that the engine holds, fetched on demand."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, pairwise

import numpy as np

from augury.algebra.matching import Binding, Proof, match_all
from augury.algebra.nodes import Holds, Rule, Unless, held_by
from augury.algebra.plan import Predicate
from augury.algebra.terms import Const, Wild
from augury.core.bounds import TIME_LIMIT
from augury.core.model import Event, Fact, Value
from augury.entailment import Derivation
from augury.knowledge.knowledge_base import Knowledge
from augury.semantics.deriving import derive_from
from augury.semantics.static_calls import Static, StaticCall


class Proofs(Static):
    """Answers single calls, each answer with a proof."""

    def __init__(self, knowledge: Knowledge) -> None:
        scalars, report = knowledge.context.scalars, knowledge.context.report
        super().__init__([c for clause in knowledge.clauses.values() for c in clause], (), scalars, report)
        self.knowledge, self.version = knowledge, knowledge.version
        self.timed = any(relation.timed for relation in knowledge.relations.values())

    def solve(self, condition: Holds | Unless, binding: Binding, time: int) -> Iterator[tuple[Binding, Proof]]:
        """As the reference does; for a transitive predicate whose arguments are bound, a shortest way between them."""
        predicate = condition.predicate
        call = self._call(condition.name, condition.args, binding, time if self.timed else None)
        way = self._way(predicate, call) if not any(a is Wild for a in call.args) else None
        if way is None:
            yield from super().solve(condition, binding, time)
            return
        edge = self.knowledge.closures.edges[predicate][0]
        steps = tuple(Proof(edge, step) for step in pairwise(way))
        result = match_all(condition.args, call.args, binding)  # type: ignore[arg-type]
        if steps and result is not None:
            yield result, Proof(condition.name, call.args, steps)  # type: ignore[arg-type]

    def derivations(self, rule: Rule | None, event: Event, parts: tuple[Event, ...]) -> list[Derivation]:
        """How a rule makes an event of these parts, with the facts it rests on; without a rule, it is the event before it."""
        if rule is None:
            held = held_by((event.type, len(event.args)))
            atom = Holds(held[0], tuple(map(Const, event.args))) if held is not None else None
            facts = () if atom is None else (proof for _, proof in self.solve(atom, {}, event.start))
            return [Derivation("", parts, tuple(islice(facts, 1)))]
        derived = derive_from(rule, parts, event.end, self.scalars, self)
        ways = [way for item, way in derived if item.content == event.content and set(way.parts) == set(parts)]
        return [way for way in ways if way.proofs] or [Derivation(rule.label, parts)]

    def _way(self, predicate: Predicate, call: StaticCall) -> list[Value] | None:
        """The values on the way from the first argument to the second; None where there is no index for this time."""
        knowledge, words = self.knowledge, self.knowledge.words
        if not knowledge.closures.answers(predicate, -TIME_LIMIT if call.at is None else call.at):
            return None
        first, last = (int(words.canonical(np.array([words.encode(a)]))[0]) for a in call.args)  # type: ignore[arg-type]
        return [words.decode(code) for code in knowledge.closures.index(predicate).path(first, last)]

    def facts_for(self, predicate: Predicate, call: StaticCall) -> list[Fact]:
        relation = self.knowledge.relations.get(predicate)
        if relation is None:
            return []
        words = self.knowledge.words
        places = tuple(i for i, a in enumerate(call.args) if a is not Wild)
        asked = [np.array([words.encode(call.args[i])], np.int64) for i in places]  # type: ignore[arg-type]
        times = np.array([-TIME_LIMIT if call.at is None else call.at], np.int64)
        _, columns = relation.find(places, asked, 1, times)
        rows = zip(*(c.tolist() for c in columns), strict=True) if columns else ((),) * len(_)
        return [Fact(call.name, tuple(words.decode(c) for c in row)) for row in rows]
