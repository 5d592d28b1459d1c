"""Computes all answers of a predicate once and looks them up, where they are few compared with the calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from augury.algebra.kinds import positive_atoms
from augury.algebra.nodes import Clause
from augury.algebra.plan import Predicate
from augury.algebra.terms import Var
from augury.core.arrays import Codes
from augury.core.bounds import TIME_LIMIT
from augury.knowledge.solving.solve import TooMany, untouched
from augury.storage.rows import Distinct
from augury.storage.unique import unique_counts

if TYPE_CHECKING:
    from augury.knowledge.knowledge_base import Knowledge


FEW = 10_000  # facts below a rule whose answers are worth an attempt to have them all at once
MOST_ANSWERS = 2_000_000  # more are not worth having
_MOST_ROWS = 100_000  # rows that such an attempt may make
_WORTH = 10  # how many answers may be made for a call that has come


class Materialised:
    """The predicates whose answers are all there."""

    def __init__(self, knowledge: Knowledge) -> None:
        self.knowledge = knowledge
        self._answers: dict[Predicate, Distinct | None] = {}
        self._calls: dict[Predicate, int] = {}
        self._sizes: dict[Predicate, int | None] = {}

    def answers(self, predicate: Predicate, calls: int) -> Distinct | None:
        """All answers, where they can be had without a call and are no more than the calls so far are worth."""
        if predicate in self._answers:
            return self._answers[predicate]
        knowledge = self.knowledge
        if not knowledge.is_plain(predicate) or len(knowledge.bounds(predicate)):
            self._answers[predicate] = None
        elif knowledge.facts_below(predicate) <= FEW:
            self._answers[predicate] = self.attempt(predicate, _MOST_ROWS)
        else:
            self._calls[predicate] = self._calls.get(predicate, 0) + calls
            worth = self._calls[predicate] * _WORTH
            size = self._size(predicate) if worth >= FEW else None
            if size is not None and size <= min(MOST_ANSWERS, worth):
                self._answers[predicate] = self.attempt(predicate, None)
        return self._answers.get(predicate)

    def attempt(self, predicate: Predicate, most: int | None) -> Distinct | None:
        """All answers; None where the attempt comes to more than `most` rows."""
        solver, mode = self.knowledge.solver, (False,) * predicate[1]
        solver.most = most
        try:
            solver.solve(predicate, mode, [], np.array([-TIME_LIMIT], np.int64))
            result = solver.tables.pop((predicate, mode)).answers
            result.shrink()
            return result
        except TooMany:
            solver.forget()
            return None
        finally:
            solver.most = None

    def _size(self, predicate: Predicate) -> int | None:
        """How many answers a predicate has at most, where it is facts, or joins two of them; None where that is open."""
        if predicate not in self._sizes:
            facts = self.knowledge.relations.get(predicate)
            sizes = [0 if facts is None else len(facts), *map(self._joined_size, self.knowledge.clauses[predicate])]
            self._sizes[predicate] = None if None in sizes else sum(s for s in sizes if s is not None)
        return self._sizes[predicate]

    def _joined_size(self, clause: Clause) -> int | None:
        calls = positive_atoms(clause.body)
        if not calls or len(calls) > 2 or any((c.name, len(c.args)) in self.knowledge.clauses for c in calls):
            return None
        tables = [r for c in calls if (r := self.knowledge.relations.get((c.name, len(c.args)))) is not None]
        if len(tables) < len(calls):
            return 0
        if len(calls) == 1:
            return len(tables[0])
        shared = [a.name for a in calls[0].args if isinstance(a, Var) and a in calls[1].args]
        if not shared:
            return len(tables[0]) * len(tables[1])
        counts = []
        for call, table in zip(calls, tables, strict=True):
            position = next(i for i, a in enumerate(call.args) if isinstance(a, Var) and a.name == shared[0])
            codes: Codes = self.knowledge.words.canonical(table.rows.data[position, : table.rows.n])
            counts.append(unique_counts(codes))
        _, left, right = np.intersect1d(counts[0][0], counts[1][0], assume_unique=True, return_indices=True)
        return int((counts[0][1][left] * counts[1][1][right]).sum())

    def forget(self, touched: set[Predicate] | None) -> None:
        """Forgets what is known of some predicates, or of all."""
        self._answers, self._calls = untouched(self._answers, touched), untouched(self._calls, touched)
        self._sizes = untouched(self._sizes, touched)
