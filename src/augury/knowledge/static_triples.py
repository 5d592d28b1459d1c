"""The static dataset that GRAPH in queries reads: the triples of the given graphs as facts `static triples(graph, s, p, o)`.

Terms are written as they stand in the files, by their keys: queries join by term. Triples without the name of a graph (null)
belong to every graph, so that a schema beside the data speaks of all of it. What RDFS entails is added graph by graph.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from augury.algebra.nodes import Graph, walk_all
from augury.algebra.plan import Plan
from augury.graphs.graph_texts import _Blanks, _term, read
from augury.graphs.rdf_terms import Terms, key_of, term_of
from augury.jit import Array
from augury.knowledge.fact_table import FactTable
from augury.knowledge.rdf import Triples, _format, _oxigraph, form_of
from augury.knowledge.rdfs import Schema
from augury.model import Value
from augury.sources import Coded

STATIC_TRIPLES = "static triples"
Source = str | Path | Triples


def reads_static_graphs(plan: Plan) -> bool:
    """Whether a query, or a rule that stands for one, asks GRAPH."""
    patterns = (node for rule in plan.rules for pattern in rule.patterns for node in walk_all(pattern))
    return any(gpm.graphs for query in plan.graph_queries for gpm in query.gpms) or any(
        isinstance(node, Graph) and node.static for node in patterns
    )


def static_triples(graphs: Sequence[tuple[Source, bool]]) -> FactTable:
    """The triples of graphs, each with or without what it entails."""
    terms = Terms()
    read_in = [(_rows(source, terms), entails) for source, entails in graphs]
    empty = np.empty((0, 4), np.int64)
    entailing = np.concatenate([empty, *(rows for rows, entails in read_in if entails)])
    plain = np.concatenate([empty, *(rows for rows, entails in read_in if not entails)])
    found = [plain]
    everywhere = entailing[entailing[:, 0] < 0]
    for name in np.unique(entailing[:, 0]).tolist():
        mine = entailing[entailing[:, 0] == name]
        together = mine if name < 0 else np.concatenate([mine, everywhere])
        entailed = _closed(together[:, 1:], terms)
        found.append(np.column_stack([np.full(len(entailed), name), entailed]))
    rows = np.concatenate(found)
    keys: list[Value] = [key.decode("utf-8", "surrogatepass") for key in terms.keys.all(0, len(terms))]
    columns = tuple(Coded(keys, rows[:, i].astype(np.int32)) for i in range(4))  # -1 is null
    return FactTable(STATIC_TRIPLES, columns, len(rows))


def _rows(source: Source, terms: Terms) -> Array:
    """Triples as numbers of terms: graph (-1 without a name), subject, predicate, object."""
    if isinstance(source, Triples):
        numbers = np.append(terms.numbers(map(term_of, source.terms)), -1)
        columns = (source.graph, source.subject, source.predicate, source.object)
        return np.column_stack([numbers[column] for column in columns])
    path = Path(source)
    if form_of(str(path)) == "N-Triples":
        found = read([path.read_text(encoding="utf-8")], terms, names=[str(path)])
        if not found.malformed:
            t = found.triples
            return np.column_stack([np.full(len(t), -1), t.subject, t.predicate, t.object])
    ox, blank, keys = _oxigraph(), _Blanks([str(path)]), list[bytes]()
    unnamed: list[int] = []
    for quad in ox.parse(path=str(path), format=_format(form_of(str(path))), base_iri=path.resolve().as_uri()):
        named = isinstance(quad, ox.Quad) and isinstance(quad.graph_name, ox.NamedNode)
        unnamed.append(not named)
        graph = quad.graph_name if named else quad.predicate
        keys += [key_of(_term(t, blank)) for t in (graph, quad.subject, quad.predicate, quad.object)]
    rows: Array = terms.keys.add(keys).reshape(-1, 4)
    rows[np.array(unnamed, bool), 0] = -1
    return rows


def _closed(rows: Array, terms: Terms) -> Array:
    """Triples with what they entail. That goes by values, which are written as they first stood."""
    if not len(rows):
        return rows
    used = np.unique(rows)
    values = terms.values(used.tolist())
    written: dict[object, int] = {}
    distinct: list[Value] = []
    places = np.empty(len(used), np.int32)
    for i, value in enumerate(values):
        place = written.setdefault((type(value), value), len(distinct))
        if place == len(distinct):
            distinct.append(value)
        places[i] = place
    first = np.full(len(distinct), -1, np.int64)
    first[places[::-1]] = used[::-1]
    s, p, o = (places[np.searchsorted(used, rows[:, i])] for i in range(3))
    schema = Schema(Triples(distinct, s, p, o, np.full(len(rows), -1, np.int32)))
    more = schema.entailed()
    numbers = np.concatenate([first, terms.numbers(map(term_of, more.terms[len(distinct) :]))])
    new = np.column_stack([numbers[column] for column in (more.subject, more.predicate, more.object)])
    return np.concatenate([rows, new])
