"""Why a static atom holds: the reference's evaluator, over the facts that the engine holds, fetched as it asks for them."""

from __future__ import annotations

import numpy as np

from augury.algebra.program import Predicate
from augury.algebra.terms import Wild
from augury.engine.knowledge import FAR, Knowledge
from augury.meaning.static import Call, Static
from augury.model import Fact


class Proofs(Static):
    """Answers single calls, each answer with a proof."""

    def __init__(self, knowledge: Knowledge) -> None:
        scalars, report = knowledge.context.scalars, knowledge.context.report
        super().__init__([c for own in knowledge.clauses.values() for c in own], (), scalars, report)
        self.knowledge, self.version = knowledge, knowledge.version
        self.timed = any(relation.timed for relation in knowledge.relations.values())

    def facts_for(self, predicate: Predicate, call: Call) -> list[Fact]:
        relation = self.knowledge.relations.get(predicate)
        if relation is None:
            return []
        words = self.knowledge.words
        places = tuple(i for i, a in enumerate(call.args) if a is not Wild)
        asked = [np.array([words.encode(call.args[i])], np.int64) for i in places]  # type: ignore[arg-type]
        at = np.array([FAR if call.at is None else call.at], np.int64)
        _, columns = relation.find(places, asked, 1, at)
        rows = zip(*(c.tolist() for c in columns), strict=True) if columns else ((),) * len(_)
        return [Fact(call.name, tuple(words.decode(c) for c in row)) for row in rows]
