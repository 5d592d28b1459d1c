"""Basic patterns: triples that have to be there, in the graph of each event or in a static graph.

Triples are joined one by one, those first of which there are few, and conditions are asked as soon as what they look at is bound.
A graph says which rows fit one triple (`select`) and how a table is extended by one more (`extend`); see
`EventGraph` here and `StaticGraph` in `dataset.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from augury.algebra import sparql_algebra as p
from augury.algebra.sparql_algebra import Expression, RdfTerm, TriplePattern, Variable
from augury.core.arrays import Array, Mask
from augury.core.model import Iri
from augury.graphs.graph_texts import EventTriples
from augury.graphs.paths import relation
from augury.graphs.rdf_terms import Terms
from augury.graphs.solutions import ONE, SolutionTable, distinct, joined, joint_codes
from augury.storage.unique import is_in, unique


class TripleIndex(Protocol):
    """Triples to match patterns with."""

    events: int

    def start(self, bindings: SolutionTable | None, names: frozenset[str]) -> SolutionTable:
        """The table that the first triple is joined with."""
        ...

    def select(self, predicate: int | None) -> tuple[Array | None, Array, Array, Array]:
        """The events (None: all), subjects, predicates and objects of the triples with a predicate, or of all."""
        ...

    def count(self, triple: TriplePattern, table: SolutionTable) -> float:
        """About how many rows a triple leads to from those of a table."""
        ...

    def extend(self, table: SolutionTable, triple: TriplePattern, filters: Filters) -> SolutionTable:
        """The rows of a table with each triple that fits."""
        ...

    def has_nodes(self, event: Array | None, terms: Array) -> Mask:
        """Whether terms that are bound already are nodes of the graph: subject or object of a triple."""
        ...

    def for_rows(self, event: Array | None, size: int) -> TripleIndex:
        """The graph as seen by rows that each are an event of their own."""
        ...


class Filters(Protocol):
    """Conditions that wait for what they look at."""

    def ask(self, table: SolutionTable) -> SolutionTable:
        """The rows that meet all conditions that can be asked by now."""
        ...


class PendingFilters:
    """Conditions of a basic pattern. One that was asked of all rows is not asked again."""

    def __init__(self, conditions: Sequence[Expression], holds: FilterCheck) -> None:
        self.conditions, self.holds = list(conditions), holds

    def ask(self, table: SolutionTable) -> SolutionTable:
        for condition in list(self.conditions):
            if p.mentioned(condition) <= table.columns.keys():
                self.conditions.remove(condition)
                table = table.take(self.holds(condition, table))
        return table


class FilterCheck(Protocol):
    def __call__(self, condition: Expression, table: SolutionTable) -> Array: ...


def match_basic(
    graph: TripleIndex, pattern: p.Basic, filters: Filters, bindings: SolutionTable | None = None
) -> SolutionTable:
    """The rows that fit all triples of a pattern and meet the conditions."""
    names = p.may_bind(pattern)
    table = graph.start(bindings, names)
    remaining = list(pattern.triples)
    while remaining:
        triple = min(remaining, key=lambda t: graph.count(t, table))
        remaining.remove(triple)
        table = filters.ask(graph.extend(table, triple, filters))
    return distinct(filters.ask(table).only(names))


class EventGraph:
    """The graphs of the events of a batch."""

    def __init__(self, triples: EventTriples, terms: Terms) -> None:
        self.triples, self.terms, self.events = triples, terms, triples.events
        self._selected: dict[int, tuple[Array, Array, Array, Array]] = {}

    def start(self, bindings: SolutionTable | None, names: frozenset[str]) -> SolutionTable:
        return ONE

    def has_nodes(self, event: Array | None, terms: Array) -> Mask:
        """Variables of a basic pattern are bound to nodes of the event, all but those of predicates alone."""
        t = self.triples
        result = ~is_in(terms, unique(t.predicate))
        if not result.all():
            assert event is not None
            both = [np.concatenate([t.event, t.event]), np.concatenate([t.subject, t.object])]
            codes, nodes = joint_codes([event, terms], both)
            result = is_in(codes, nodes)
        return result

    def for_rows(self, event: Array | None, size: int) -> EventGraph:
        assert event is not None, "rows of a pattern that looks at events have one"
        return EventGraph(self.triples.of_events(event), self.terms)

    def select(self, predicate: int | None) -> tuple[Array | None, Array, Array, Array]:
        t = self.triples
        if predicate is None:
            return t.event, t.subject, t.predicate, t.object
        result = self._selected.get(predicate)
        if result is None:
            chosen = t.predicate == predicate
            result = t.event[chosen], t.subject[chosen], t.predicate[chosen], t.object[chosen]
            self._selected[predicate] = result
        return result

    def count(self, triple: TriplePattern, table: SolutionTable) -> float:
        """Triples that share nothing with the table come last: each of its rows would meet all of an event."""
        shared = any(isinstance(v, Variable) and v.name in table.columns for v in _parts(triple))
        apart = 0 if shared or table is ONE else len(self.triples) + 1
        if isinstance(triple.predicate, Iri):
            constants = sum(not isinstance(part, Variable) for part in (triple.subject, triple.object))
            return apart + len(self.select(self.terms.find(triple.predicate))[1]) / [1, 4, 16][constants]
        return apart + len(self.triples) * (1 if isinstance(triple.predicate, Variable) else 2)

    def extend(self, table: SolutionTable, triple: TriplePattern, filters: Filters) -> SolutionTable:
        if not isinstance(triple.predicate, Iri | Variable):
            return relation(self, self.terms, triple, table)
        result = filters.ask(
            fitting(self, self.terms, triple)
        )  # conditions on one triple are asked before it is joined
        return result if table is ONE else joined(table, result, self.events)


def _parts(triple: TriplePattern) -> tuple[object, object, object]:
    return triple.subject, triple.predicate, triple.object


def fitting(graph: TripleIndex, terms: Terms, triple: TriplePattern) -> SolutionTable:
    """The triples that fit one of a pattern, as rows of its variables."""
    predicate = terms.find(triple.predicate) if isinstance(triple.predicate, Iri) else None
    event, *columns = graph.select(predicate)
    return as_table(event, columns, (triple.subject, triple.predicate, triple.object), terms)


def as_table(
    event: Array | None, columns: Sequence[Array], parts: Sequence[RdfTerm | Variable | object], terms: Terms
) -> SolutionTable:
    """Columns under the variables that stand at their places; rows fall that differ from a constant there, or from another place."""
    keep: Mask | None = None
    named: dict[str, Array] = {}
    for part, column in zip(parts, columns, strict=True):
        same: Array | None = None
        if isinstance(part, Variable):
            if part.name in named:
                same = named[part.name] == column
            else:
                named[part.name] = column
        elif part is not parts[1] or len(parts) == 2:
            same = np.equal(column, terms.find(part))  # type: ignore[arg-type]
        if same is not None:
            keep = same if keep is None else keep & same
    table = SolutionTable(len(columns[0]), event, named)
    return table if keep is None else table.take(keep)
