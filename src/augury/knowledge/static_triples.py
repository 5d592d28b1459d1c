"""The static dataset that GRAPH in queries reads: the triples of the given graphs as facts `static triples(graph, s, p, o)`.

Terms are written as they stand in the files, by their keys: queries join by term. Triples without the name of a graph (null)
belong to every graph, as do those whose graph is a blank node, so that a schema beside the data speaks of all of it. What RDFS
entails is added graph by graph.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from augury.algebra.nodes import Graph, walk_all
from augury.algebra.plan import Plan
from augury.core.arrays import Array, RowIds
from augury.core.model import Value
from augury.graphs.rdf_terms import Terms, term_of
from augury.knowledge.fact_table import FactTable
from augury.knowledge.rdf import Quads, RdfTriples
from augury.knowledge.rdfs import Schema
from augury.sources import Coded
from augury.storage.unique import unique

STATIC_TRIPLES = "static triples"


def reads_static_graphs(plan: Plan) -> bool:
    """Whether a query, or a rule that stands for one, asks GRAPH."""
    patterns = (node for rule in plan.rules for pattern in rule.patterns for node in walk_all(pattern))
    return any(gpm.graphs for query in plan.graph_queries for gpm in query.gpms) or any(
        isinstance(node, Graph) and node.static for node in patterns
    )


def static_triples(graphs: Iterable[tuple[Quads, bool]]) -> FactTable:
    """The statements of graphs, each with or without what it entails."""
    terms, empty = Terms(), np.empty((0, 4), np.int64)
    entailing, plain = [empty], [empty]
    for quads, entails in graphs:
        numbers = np.append(terms.keys.add([key.encode("utf-8", "surrogatepass") for key in quads.keys]), -1)
        (entailing if entails else plain).append(numbers[quads.in_named_graphs()])
    stated = np.concatenate(entailing)
    everywhere = stated[stated[:, 3] < 0]
    parts = [np.concatenate(plain)]
    for name in unique(stated[:, 3]).tolist():
        of_graph = stated[stated[:, 3] == name]
        closed = _closed(of_graph if name < 0 else np.concatenate([of_graph, everywhere]), terms)
        parts.append(np.column_stack([closed, np.full(len(closed), name)]))
    rows, keys = np.concatenate(parts), _keys(terms)
    columns = tuple(Coded(keys, rows[:, i].astype(np.int32)) for i in (3, 0, 1, 2))  # -1 is null
    return FactTable(STATIC_TRIPLES, columns, len(rows))


def _keys(terms: Terms) -> list[Value]:
    return [key.decode("utf-8", "surrogatepass") for key in terms.keys.all(0, len(terms))]


def _closed(rows: RowIds, terms: Terms) -> Array:
    """Subjects, predicates and objects of triples, with what they entail. That goes by values, written as they first stood."""
    used = unique(rows[:, :3])
    local = Quads(
        [str(terms.keys.key(n), "utf-8", "surrogatepass") for n in used.tolist()], np.searchsorted(used, rows)
    )
    values, places = local.by_value()
    first = np.full(len(values), -1, np.int64)
    first[places[:-1][::-1]] = used[::-1]
    s, p, o = (places[column] for column in local.rows.T[:3])
    more = Schema(RdfTriples(values, s, p, o, np.full(len(rows), -1, np.int32))).entailed()
    numbers = np.concatenate([first, terms.numbers(map(term_of, more.terms[len(values) :]))])
    new = np.column_stack([numbers[column] for column in (more.subject, more.predicate, more.object)])
    return np.concatenate([rows[:, :3], new])
