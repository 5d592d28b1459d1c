"""Transitive closures: predicates of the form "one step or more", answered by a reachability index."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from augury.algebra.plan import Predicate
from augury.algebra.transitive import transitive
from augury.core.arrays import Array, Codes
from augury.core.jit import count_work
from augury.knowledge.reachability import Reach
from augury.knowledge.solving.materialise import MOST_ANSWERS
from augury.knowledge.solving.solve import Mode, untouched
from augury.storage.table import NONE

if TYPE_CHECKING:
    from augury.knowledge.knowledge_base import Knowledge


class Closures:
    """The transitive predicates, and for each an index over the edges that hold last."""

    def __init__(self, knowledge: Knowledge) -> None:
        self.knowledge = knowledge
        self.edges = transitive(knowledge.clauses)  # the predicate of one step
        self._indexes: dict[Predicate, Reach] = {}
        self._derived: dict[Predicate, tuple[Array, Array] | None] = {}  # edges that are answers of rules

    def answers(self, predicate: Predicate, time: int) -> bool:
        """Whether there is an index that says what holds from a time on."""
        if predicate not in self.edges or time < self.knowledge.last_bound(predicate):
            return False
        return self._is_exact(predicate)

    def _is_exact(self, predicate: Predicate) -> bool:
        """Whether an index would say exactly what the rules say: null joins with nothing, and 1.0 is written so."""
        knowledge, edge = self.knowledge, self.edges[predicate]
        if predicate in knowledge.relations:
            return False
        if edge in knowledge.clauses:
            return (
                knowledge.is_plain(edge) and not len(knowledge.bounds(edge)) and self._derived_edges(edge) is not None
            )
        facts = knowledge.relations.get(edge)
        return facts is None or not (facts.nulls or facts.whole_floats)

    def solve(self, predicate: Predicate, mode: Mode, asked: Sequence[Array], count: int) -> tuple[Array, list[Array]]:
        """As `Knowledge.solve`."""
        index = self.index(predicate)
        canonical = [self.knowledge.words.canonical(c) for c in asked]
        match mode:
            case (True, True):
                which = np.flatnonzero(index.reaches(canonical[0], canonical[1]))
                return which, [asked[0][which], asked[1][which]]
            case (True, False):
                which, nodes = index.targets(canonical[0])
                return which, [asked[0][which], nodes]
            case (False, True):
                which, nodes = index.sources(canonical[0])
                return which, [nodes, asked[0][which]]
        source, target = index.everything()
        which = np.repeat(np.arange(count), len(source))
        return which, [np.tile(source, count), np.tile(target, count)]

    def index(self, predicate: Predicate) -> Reach:
        """The index of a predicate over the edges that hold last."""
        result = self._indexes.get(predicate)
        if result is None:
            edge = self.edges[predicate]
            facts = self.knowledge.relations.get(edge)
            if edge in self.knowledge.clauses:
                source, target = self._derived_edges(edge) or (NONE, NONE)
            else:
                last = self.knowledge.last_bound(predicate)
                source, target = facts.standing(last) if facts is not None else (NONE, NONE)
            count_work(len(source))
            result = self._indexes[predicate] = Reach(source, target)
        return result

    def _derived_edges(self, edge: Predicate) -> tuple[Array, Array] | None:
        """All answers of rules that are the edges of a closure; None where they are too many, or an index is not exact."""
        if edge not in self._derived:
            knowledge = self.knowledge
            few = knowledge.facts_below(edge) <= MOST_ANSWERS
            edges = knowledge.materialised.attempt(edge, MOST_ANSWERS) if few else None
            self._derived[edge] = None
            if edges is not None:
                codes = edges.data[1:3, : edges.n]
                if not (knowledge.words.is_null(codes.ravel()).any() or ((codes & 3) == 2).any()):
                    self._derived[edge] = (codes[0], codes[1])
        return self._derived[edge]

    def follow(self, edge: Predicate, codes: Codes, holds: bool) -> None:
        """Edges have come to hold, or hold no longer, from some time on without end."""
        for predicate, index in self._indexes.items():
            if self.edges[predicate] == edge and codes.shape[1]:
                (index.add if holds else index.remove)(codes[0].copy(), codes[1].copy())

    def forget(self, touched: set[Predicate] | None) -> None:
        """Forgets indexes over the answers of some predicates, or all; those over facts follow their changes."""
        self._derived = untouched(self._derived, touched)
        kept = {p for p in self._indexes if touched is not None and self.edges[p] not in touched}
        self._indexes = {p: index for p, index in self._indexes.items() if p in kept}
