"""RDF graphs as facts: the triples of the predicates that a program asks for, with what RDFS entails."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from augury.algebra.nodes import Clause, Holds
from augury.algebra.plan import Plan, Predicate, static_calls
from augury.algebra.terms import Var
from augury.core.clock import Clock
from augury.core.errors import DataError, RunError, nearest
from augury.knowledge.fact_table import FactTable
from augury.knowledge.facts import Facts, check_facts, read_fact_file
from augury.knowledge.rdf import Pairs, Quads, RdfTriples, tables_of_pairs
from augury.knowledge.rdf_files import read_quads
from augury.knowledge.rdfs import ABOVE, DIRECT, TYPE, VOCABULARY, Schema, closure
from augury.knowledge.sparql import answers
from augury.knowledge.static_triples import reads_static_graphs, static_triples
from augury.knowledge.timeline import StatementTable
from augury.sources import Skipped

NONE = np.empty(0, np.int32)


@dataclass(frozen=True)
class RdfGraph:
    """An RDF graph of a run: a path, or triples; with or without what RDFS entails."""

    source: str | Path | RdfTriples
    entailment: bool = True


def rdf(source: str | Path | RdfTriples, *, entailment: bool = True) -> RdfGraph:
    """An RDF graph for `rdf=`; without `entailment`, just the triples that it has."""
    return RdfGraph(source, entailment)


class Graphs:
    """The graphs of a run. Those with entailment are entailed together: a schema in one file speaks of data in another."""

    def __init__(self, graphs: Iterable[RdfGraph], skipped: Skipped | None = None) -> None:
        self.skipped = skipped or Skipped()
        self.listed = tuple(graphs)
        self.given = bool(self.listed)
        self._read = [
            g.source if isinstance(g.source, RdfTriples) else read_quads(str(g.source), self.skipped)
            for g in self.listed
        ]
        self.entailing, self.plain = self._joined(True), self._joined(False)

    def _joined(self, entailment: bool) -> RdfTriples | None:
        """The triples of all graphs with, or without, entailment; None where there is no such graph."""
        chosen = [read for graph, read in zip(self.listed, self._read, strict=True) if graph.entailment == entailment]
        return RdfTriples.joined([r.triples() if isinstance(r, Quads) else r for r in chosen]) if chosen else None

    def written(self) -> list[tuple[Quads, bool]]:
        """The statements of each graph as they are written, and whether what they entail is among them."""
        quads = [read if isinstance(read, Quads) else Quads.of(read) for read in self._read]
        return list(zip(quads, (graph.entailment for graph in self.listed), strict=True))

    @staticmethod
    def of(graphs: Any, skipped: Skipped | None = None) -> Graphs:
        """Graphs from a path, triples, a `Graph`, or a list of them."""
        if isinstance(graphs, Graphs):
            return graphs
        listed = [graphs] if isinstance(graphs, str | Path | RdfGraph | RdfTriples) else list(graphs or ())
        for item in listed:
            if not isinstance(item, str | Path | RdfGraph | RdfTriples):
                raise RunError(f"a graph is a path or augury.rdf(…), not {type(item).__name__}")
        return Graphs([item if isinstance(item, RdfGraph) else RdfGraph(item) for item in listed], skipped)

    @cached_property
    def schema(self) -> Schema | None:
        return None if self.entailing is None else Schema(self.entailing)

    def facts(self, plan: Plan, others: Facts | None = None) -> Facts:
        """The facts of the predicates and queries that a program asks for, those aside that are known."""
        if not self.given:
            self._refuse_queries(plan, others)
            return Facts()
        asked = {name for name, arity in static_calls(plan) if arity == 2}
        tables = [] if self.plain is None else self.plain.tables(asked)
        if self.schema is not None:
            tables += [
                *self.schema.tables(asked - {TYPE.text}),
                *(self._types(self.schema) if TYPE.text in asked else ()),
            ]
        tables += [answers(name, query.text, self._all_triples) for name, query in plan.queries.items()]
        if reads_static_graphs(plan):
            tables.append(static_triples(self.written()))
        return Facts(StatementTable(table) for table in tables)

    def _types(self, schema: Schema) -> Iterator[FactTable]:
        """The facts from which types of instances follow, see `entailing`."""
        yield from _tables(schema, DIRECT, schema.types)
        yield from _tables(schema, ABOVE, schema.supers)

    def closed(self, plan: Plan) -> Facts:
        """The same facts by the naive closure: what the reference works with."""
        if not self.given:
            self._refuse_queries(plan, None)
            return Facts()
        asked = {name for name, arity in static_calls(plan) if arity == 2}
        closed_triples = RdfTriples.of(closure(self.entailing)) if self.entailing is not None else None
        parts = [t for t in (self.plain, closed_triples) if t is not None]
        whole = RdfTriples.joined([*parts, *(t for t in (self.entailing,) if t is not None)])  # with the graphs of each
        tables = [table for part in parts for table in part.tables(asked)]
        tables += [answers(name, query.text, lambda: whole) for name, query in plan.queries.items()]
        return Facts(StatementTable(table) for table in tables)

    def _all_triples(self) -> RdfTriples:
        """The triples with all that they entail, for queries that look at any of them."""
        parts = [t for t in (self.plain, self.entailing) if t is not None]
        if self.schema is not None:
            parts.append(self.schema.entailed())
        return RdfTriples.joined(parts)

    def _refuse_queries(self, plan: Plan, others: Facts | None) -> None:
        answered = {name for name, _ in others.predicates} if others is not None else set()
        if plan.queries.keys() - answered:
            raise DataError(
                "the program asks `sparql`, but no graph is given", hint="give one with --rdf FILE, or rdf=…"
            )

    def misspelt(self, empty: Iterable[str]) -> dict[str, str]:
        """For static predicates without facts, the property that may have been meant."""
        result = {name: nearest(name, self.predicates) for name in empty if ":" in name}
        return {name: close for name, close in result.items() if close}

    @cached_property
    def predicates(self) -> set[str]:
        """The names of all predicates that there are, or that something follows for."""
        schema = self.schema
        result = {word.text for word in VOCABULARY} if self.given else set()
        result |= {getattr(schema.terms[p], "text", "") for p in schema.subproperties} if schema is not None else set()
        for triples in (self.plain, self.entailing):
            if triples is not None:
                result |= {getattr(triples.terms[p], "text", "") for p in triples.pairs}
        return result


def entailing(predicates: Iterable[Predicate]) -> list[Clause]:
    """The rules by which types are inherited: the hierarchy is closed, and instances are looked up in it."""
    if (DIRECT, 2) not in predicates:
        return []
    x, c, d = Var("X"), Var("C"), Var("D")
    return [
        Clause(TYPE.text, (x, c), (Holds(DIRECT, (x, c)),)),
        Clause(TYPE.text, (x, c), (Holds(DIRECT, (x, d)), Holds(ABOVE, (d, c)))),
    ]


def _tables(schema: Schema, name: str, pairs: Pairs) -> Iterator[FactTable]:
    """Pairs of a property under another name."""
    for table in tables_of_pairs(schema.terms, {schema.type: pairs}):
        yield replace(table, name=name)


def read_facts(
    facts: Iterable[tuple[str, str]], rdf: Iterable[RdfGraph], plan: Plan, clock: Clock, skipped: Skipped
) -> tuple[Facts, Graphs]:
    """The facts of files and databases, and the graphs."""
    result = sum((read_fact_file(name, path, plan, clock, skipped) for name, path in facts), Facts())
    check_facts(result, plan)
    return result, Graphs(rdf, skipped)
