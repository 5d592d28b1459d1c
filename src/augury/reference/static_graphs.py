"""The static dataset that GRAPH reads, as terms of RDF: the given files with what RDFS entails, by the naive closure.

Triples that are given without a graph's name belong to every graph, so that a schema beside the data speaks of all of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from augury.algebra.plan import Plan
from augury.core.model import Value
from augury.graphs.rdf_terms import term_of, term_of_text
from augury.knowledge.graphs import Graphs
from augury.knowledge.rdf import Quads
from augury.knowledge.rdfs import closure
from augury.semantics.rdf_by_rdflib import TermTriple, as_rdflib, value_from


def static_graphs(graphs: Graphs, plan: Plan) -> Mapping[str | None, list[TermTriple]]:
    """The triples of each graph by its name, if a query reads any; under None those that belong to every graph."""
    if not any(gpm.graphs for query in plan.graph_queries for gpm in query.gpms):
        return {}
    entailing, plain = (_by_name(quads for quads, e in graphs.written() if e == entails) for entails in (True, False))
    result: dict[str | None, list[TermTriple]] = {}
    for name in {*entailing, *plain}:
        everywhere = entailing.get(None, []) if name is not None else []
        result[name] = [*_closed([*entailing.get(name, []), *everywhere]), *plain.get(name, [])]
    return result


def _by_name(graphs: Iterable[Quads]) -> dict[str | None, list[TermTriple]]:
    result: dict[str | None, list[TermTriple]] = {}
    for quads in graphs:
        terms = [as_rdflib(term_of_text(key)) for key in quads.keys]
        for s, p, o, g in quads.in_named_graphs().tolist():
            result.setdefault(None if g < 0 else str(terms[g]), []).append((terms[s], terms[p], terms[o]))
    return result


def _closed(triples: list[TermTriple]) -> list[TermTriple]:
    """The triples with what they entail. What follows is made of values, which are written as they first stood."""
    written: dict[Any, Any] = {}
    for triple in triples:
        for term in triple:
            written.setdefault(value_from(term), term)
    stated = {(value_from(s), value_from(p), value_from(o)) for s, p, o in triples}
    new = closure(stated) - stated
    return [*triples, *((_as_term(s, written), _as_term(p, written), _as_term(o, written)) for s, p, o in new)]


def _as_term(value: Value, written: Mapping[object, object]) -> object:
    return written[value] if value in written else as_rdflib(term_of(value))
