"""`sparql("SELECT …", X, Y)`: a SPARQL query over the graphs, evaluated once; its answers are facts."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from augury.algebra.plan import Plan
from augury.algebra.sparql_conditions import ASIDE
from augury.core.errors import DataError, Findings, RunError, counted
from augury.core.model import Iri, Value
from augury.graphs.oxigraph import as_oxigraph, oxigraph, term_from
from augury.graphs.rdf_terms import term_of, value_of_term
from augury.knowledge.fact_table import FactTable
from augury.knowledge.rdf import RdfTriples
from augury.storage.column import column_of


class BadQuery(Exception):
    """A query that cannot be asked; the message says why."""


def columns_of(text: str) -> int:
    """How many columns a query gives; raises BadQuery where it cannot be asked."""
    result = _asked(oxigraph().Store(), text)
    return 0 if isinstance(result, bool) or type(result).__name__ == "QueryBoolean" else len(result.variables)


_SERVICE = re.compile(r"(?<![\w?$:.-])service(?![\w:.-])", re.IGNORECASE)
_PREFIX = re.compile(r"\bprefix\s+([\w.-]*)\s*:\s*<([^<>\s]*)>", re.IGNORECASE)
_DATASET = re.compile(r"(?<![\w?$:.-])from\s+(named\s+)?(?:<([^<>\s]*)>|([\w.-]*):([\w.-]+))", re.IGNORECASE)


@dataclass(frozen=True)
class QueryDataset:
    """The graphs of `FROM` and of `FROM NAMED`; a query without either reads all graphs, merged."""

    merged: tuple[str, ...]
    named: tuple[str, ...]

    @staticmethod
    def of(text: str) -> QueryDataset | None:
        bare = ASIDE.sub(lambda aside: aside[0] if aside[0].startswith("<") else " ", text)
        prefixes, clauses = dict(_PREFIX.findall(bare)), _DATASET.findall(bare)
        graphs = [(named, iri or prefixes.get(prefix, f"{prefix}:") + local) for named, iri, prefix, local in clauses]
        merged, named = (tuple(g for n, g in graphs if bool(n) == is_named) for is_named in (False, True))
        return QueryDataset(merged, named) if graphs else None

    def check(self, triples: RdfTriples) -> None:
        """Refuses a graph that is not there: nothing is fetched, neither from a file nor from the web."""
        names = {getattr(triples.terms[g], "text", "") for g in set(triples.graph.tolist()) - {-1}}
        for name in (*self.merged, *self.named):
            if name not in names:
                listed = f"the graphs are {', '.join(f'<{g}>' for g in sorted(names)[:5])}"
                hint = "no graph has a name: give N-Quads, TriG or JSON-LD with --rdf, or leave FROM out"
                raise DataError(
                    f"the query reads FROM <{name}>, and there is no such graph", hint=listed if names else hint
                )


def _asked(store: Any, text: str, dataset: QueryDataset | None = None) -> Any:
    """The answer of a query; the default graph of the store has all that it merges."""
    ox = oxigraph()
    if _SERVICE.search(ASIDE.sub(" ", text)):
        raise BadQuery("SERVICE queries another machine, which programs may not do")
    try:
        if dataset is None:
            result = store.query(text)
        else:
            named = [ox.NamedNode(name) for name in dataset.named]
            result = store.query(text, default_graph=ox.DefaultGraph(), named_graphs=named)
    except SyntaxError as error:
        position = re.search(r"at (\d+):(\d+)", str(error))
        where = f" at line {position[1]}, column {position[2]} of the query" if position else ""
        if "Prefix not found" in str(error):
            raise BadQuery(f"an unknown prefix{where}") from None
        raise BadQuery(f"malformed SPARQL{where}") from None
    except (ValueError, OSError) as error:
        raise BadQuery(f"SPARQL: {error}") from None
    if type(result).__name__ == "QueryTriples":
        raise BadQuery("a query that is a condition begins with SELECT or ASK")
    return result


def answers(name: str, text: str, triples: Callable[[], RdfTriples]) -> FactTable:
    """The answers of a query over triples, as facts."""
    rdf, dataset = triples(), QueryDataset.of(text)
    if dataset is not None:
        dataset.check(rdf)
    store = _store(rdf, dataset)

    def label(id: str) -> str:
        return getattr(rdf.terms[int(id[1:])], "text", "")[2:] if id[0] == "n" else id

    try:
        result = _asked(store, text, dataset)
        if type(result).__name__ in ("QueryBoolean", "bool"):
            return FactTable(name, (), int(bool(result)))
        rows = [[None if term is None else value_of_term(term_from(term, label)) for term in row] for row in result]
    except BadQuery as error:
        raise DataError(str(error)) from None
    except (ValueError, OSError, RuntimeError) as error:
        raise DataError(f"SPARQL: {error}") from None
    width = len(result.variables)
    return FactTable(name, tuple(column_of([row[i] for row in rows]) for i in range(width)), len(rows))


def _store(triples: RdfTriples, dataset: QueryDataset | None) -> Any:
    """The triples: each in its graph, and in the default graph, once, those of all graphs that the query merges."""
    ox = oxigraph()
    terms = [_term(number, value) for number, value in enumerate(triples.terms)]
    default = ox.DefaultGraph()
    chosen = set(dataset.merged) if dataset is not None else None
    merged = [chosen is None or getattr(value, "text", "") in chosen for value in triples.terms]
    columns = (triples.subject, triples.predicate, triples.object, triples.graph)
    rows = list(zip(*(column.tolist() for column in columns), strict=True))
    quads = [ox.Quad(terms[s], terms[p], terms[o], terms[g]) for s, p, o, g in rows if g >= 0]
    whole = {(s, p, o) for s, p, o, g in rows if (merged[g] if g >= 0 else chosen is None)}
    quads += [ox.Quad(terms[s], terms[p], terms[o], default) for s, p, o in whole]
    store = ox.Store()
    store.bulk_extend(quads)
    return store


def _term(number: int, value: Value) -> Any:
    """A value as a term of RDF. A blank node is known by its number: not all of our labels are labels of pyoxigraph."""
    if isinstance(value, Iri) and value.text.startswith("_:"):
        return oxigraph().BlankNode(f"n{number}")
    try:
        return as_oxigraph(term_of(value))
    except DataError:
        return oxigraph().Literal(str(value))


def check_queries(plan: Plan, findings: Findings) -> None:
    """Reports queries that cannot be asked, where the library that asks them is there."""
    for query in plan.queries.values():
        try:
            count = columns_of(query.text)
        except BadQuery as error:
            findings.add("E230", str(error), query.span)
        except RunError:
            return
        else:
            if count != query.arity:
                findings.add(
                    "E206",
                    f"the query gives {counted(count, 'column')}, but the call has {counted(query.arity, 'argument')} for it",
                    query.span,
                    hint="write an argument for each variable that it selects",
                )
