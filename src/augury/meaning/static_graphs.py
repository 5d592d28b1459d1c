"""The static dataset that GRAPH reads, as terms of RDF: the given files with what RDFS entails, by the naive closure.

Triples that are given without a graph's name belong to every graph, so that a schema beside the data speaks of all of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from augury.algebra.plan import Plan
from augury.knowledge.graphs import Graph, Graphs
from augury.knowledge.rdf import Triples, _format, form_of
from augury.knowledge.rdf import _oxigraph as oxigraph
from augury.knowledge.rdfs import closure
from augury.knowledge.sparql import _term
from augury.meaning.rdf_by_rdflib import Blanks, TermTriple, term_from, value_from
from augury.model import Value

Quad = tuple[TermTriple, str | None]


def static_graphs(graphs: Graphs, plan: Plan) -> Mapping[str | None, list[TermTriple]]:
    """The triples of each graph by its name, if a query reads any; under None those that belong to every graph."""
    if not any(gpm.graphs for query in plan.graph_queries for gpm in query.gpms):
        return {}
    entailing = _by_name(quad for graph in graphs.listed if graph.entailment for quad in _quads(graph))
    plain = _by_name(quad for graph in graphs.listed if not graph.entailment for quad in _quads(graph))
    found: dict[str | None, list[TermTriple]] = {}
    for name in {*entailing, *plain}:
        everywhere = entailing.get(None, []) if name is not None else []
        found[name] = [*_closed([*entailing.get(name, []), *everywhere]), *plain.get(name, [])]
    return found


def _by_name(quads: Iterable[Quad]) -> dict[str | None, list[TermTriple]]:
    found: dict[str | None, list[TermTriple]] = {}
    for triple, name in quads:
        found.setdefault(name, []).append(triple)
    return found


def _closed(triples: list[TermTriple]) -> list[TermTriple]:
    """The triples with what they entail. What follows is made of values, which are written as they first stood."""
    written: dict[Any, Any] = {}
    for triple in triples:
        for term in triple:
            written.setdefault(value_from(term), term)
    given = {(value_from(s), value_from(p), value_from(o)) for s, p, o in triples}
    new = closure(given) - given
    return [*triples, *((_as_term(s, written), _as_term(p, written), _as_term(o, written)) for s, p, o in new)]


def _as_term(value: Value, written: Mapping[Any, Any]) -> Any:
    return written[value] if value in written else term_from(_term(oxigraph(), value), Blanks(""))


def _quads(graph: Graph) -> Iterator[Quad]:
    if isinstance(graph.source, Triples):
        triples = graph.source
        for (s, p, o), g in zip(triples, triples.graph.tolist(), strict=True):
            terms = [term_from(_term(oxigraph(), value), Blanks("")) for value in (s, p, o)]
            yield (terms[0], terms[1], terms[2]), None if g < 0 else getattr(triples.terms[g], "text", None)
        return
    path = Path(graph.source)
    blank = Blanks(str(path))
    ox = oxigraph()
    for quad in ox.parse(path=str(path), format=_format(form_of(str(path))), base_iri=path.resolve().as_uri()):
        named = isinstance(quad, ox.Quad) and isinstance(quad.graph_name, ox.NamedNode)
        terms = [term_from(term, blank) for term in (quad.subject, quad.predicate, quad.object)]
        yield (terms[0], terms[1], terms[2]), quad.graph_name.value if named else None
