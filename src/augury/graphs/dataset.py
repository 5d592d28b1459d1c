"""The static dataset that GRAPH reads: graphs by their names, each with its triples in order, so that what is bound is looked up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from augury.algebra.sparql_algebra import TriplePattern, Variable
from augury.core.arrays import Array, Mask, RowIds
from augury.core.model import Iri
from augury.graphs.match import Filters, TripleIndex, fitting
from augury.graphs.paths import relation
from augury.graphs.rdf_terms import Terms
from augury.graphs.solutions import ONE, Pairs, SolutionTable, different_rows, distinct, expanded, joined
from augury.storage.unique import is_in, unique, unique_first


@dataclass(frozen=True)
class _Sorted:
    """Triples in the order of one of their parts, each key with the rows that have it."""

    keys: Array
    rows: RowIds

    def find(self, asked: Array) -> Pairs:
        """For each key that is asked for, the rows that have it."""
        first = np.searchsorted(self.keys, asked, "left")
        counts = np.searchsorted(self.keys, asked, "right") - first
        result = expanded(first, counts)
        return Pairs(result.left, self.rows[result.right])


class StaticGraph:
    """The triples of one graph, as numbers of terms; each is there once."""

    def __init__(self, subject: Array, predicate: Array, object: Array, terms: Terms, events: int = 0) -> None:
        self.subject, self.predicate, self.object, self.terms, self.events = subject, predicate, object, terms, events
        self._by: dict[tuple[str, int | None], _Sorted] = {}
        self._selected: dict[int, Array] = {}

    def __len__(self) -> int:
        return len(self.subject)

    def start(self, bindings: SolutionTable | None, names: frozenset[str]) -> SolutionTable:
        """The bindings that are given; without any that help, all triples are looked at."""
        return ONE if bindings is None else seeds(bindings, names)

    def for_rows(self, event: Array | None, size: int) -> TripleIndex:
        return self

    @cached_property
    def _nodes(self) -> Array:
        return unique(np.concatenate([self.subject, self.object]))

    def has_nodes(self, event: Array | None, terms: Array) -> Mask:
        return is_in(terms, self._nodes)

    @cached_property
    def _by_predicate(self) -> _Sorted:
        order = np.argsort(self.predicate, kind="stable")
        return _Sorted(self.predicate[order], order)

    def _rows(self, predicate: int | None) -> Array:
        if predicate is None:
            return np.arange(len(self))
        result = self._selected.get(predicate)
        if result is None:
            result = self._selected[predicate] = self._by_predicate.find(np.array([predicate])).right
        return result

    def select(self, predicate: int | None) -> tuple[Array | None, Array, Array, Array]:
        if predicate is None:
            return None, self.subject, self.predicate, self.object
        rows = self._rows(predicate)
        return None, self.subject[rows], self.predicate[rows], self.object[rows]

    def _sorted(self, part: str, predicate: int | None) -> _Sorted:
        """The triples of a predicate in the order of their subjects, or objects; made when it is first asked for."""
        result = self._by.get((part, predicate))
        if result is None:
            rows = self._rows(predicate)
            keys = (self.subject if part == "subject" else self.object)[rows]
            order = np.argsort(keys, kind="stable")
            result = self._by[part, predicate] = _Sorted(keys[order], rows[order])
        return result

    def count(self, triple: TriplePattern, table: SolutionTable) -> float:
        bound = [self._known(end, table) is not None for end in (triple.subject, triple.object)]
        if isinstance(triple.predicate, Iri):
            whole = len(self._rows(self.terms.find(triple.predicate)))
        else:
            whole = len(self) * (1 if isinstance(triple.predicate, Variable) else 2)
        return whole if not any(bound) else table.size / 1e6 + whole / 1e3 / 1e3 ** sum(bound)

    def extend(self, table: SolutionTable, triple: TriplePattern, filters: Filters) -> SolutionTable:
        if not isinstance(triple.predicate, Iri | Variable):
            return relation(self, self.terms, triple, table)
        for part, end in (("subject", triple.subject), ("object", triple.object)):
            asked = self._known(end, table)
            if asked is not None:
                return self._looked_up(table, triple, part, asked)
        result = filters.ask(fitting(self, self.terms, triple))
        return result if table is ONE else joined(table, result, self.events)

    def _known(self, end: object, table: SolutionTable) -> Array | None:
        """The term at an end of a triple in each row of a table; None where it is open."""
        if not isinstance(end, Variable):
            return np.full(table.size, self.terms.find(end), np.int64)  # type: ignore[arg-type]
        column = table.columns.get(end.name)
        return None if column is None or table.unbound(end.name) else column

    def _looked_up(self, table: SolutionTable, triple: TriplePattern, part: str, asked: Array) -> SolutionTable:
        """The rows of a table with the triples that have what is asked for."""
        predicate = self.terms.find(triple.predicate) if isinstance(triple.predicate, Iri) else None
        matches = self._sorted(part, predicate).find(asked)
        row, columns = (
            matches.left,
            (self.subject[matches.right], self.predicate[matches.right], self.object[matches.right]),
        )
        result = table.take(row)
        keep = np.ones(len(row), bool)
        named = dict(result.columns)
        for end, column in zip((triple.subject, triple.predicate, triple.object), columns, strict=True):
            if not isinstance(end, Variable):
                keep &= True if end is triple.predicate else column == self.terms.find(end)  # type: ignore[arg-type]
            elif end.name not in named:
                named[end.name] = column
            else:
                keep &= (named[end.name] == column) | (named[end.name] < 0)
                named[end.name] = np.where(named[end.name] < 0, column, named[end.name])
        return SolutionTable(result.size, result.event, named, table.distinct).take(keep)


def seeds(bindings: SolutionTable, names: frozenset[str]) -> SolutionTable:
    """The different bindings of some variables, whatever the event; those that some row leaves open are left out."""
    chosen = {n: column for n, column in bindings.columns.items() if n in names and not bindings.unbound(n)}
    return distinct(SolutionTable(bindings.size, None, chosen, distinct=False)) if chosen else ONE


@dataclass(frozen=True)
class GraphDataset:
    """Graphs by the numbers of their names."""

    graphs: Mapping[int, StaticGraph] = field(default_factory=dict)

    @property
    def names(self) -> list[int]:
        return list(self.graphs)

    def graph(self, name: int) -> StaticGraph | None:
        return self.graphs.get(name)

    @staticmethod
    def of(subject: Array, predicate: Array, object: Array, graph: Array, terms: Terms) -> GraphDataset:
        """Graphs from columns of triples; `graph` is the number of each one's name."""
        columns = (graph, predicate, subject, object)
        rows = different_rows(columns)
        g, p, s, o = (column[rows] for column in columns)
        names, starts = unique_first(g)
        stops = [*starts, len(g)][1:]  # none where there are no triples
        return GraphDataset(
            {
                int(name): StaticGraph(s[a:b], p[a:b], o[a:b], terms)
                for name, a, b in zip(names, starts, stops, strict=True)
            }
        )


NO_DATASET = GraphDataset()
