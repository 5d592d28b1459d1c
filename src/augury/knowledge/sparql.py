"""`sparql("SELECT …", X, Y)`: what plain conditions cannot say of a graph, asked once, as facts."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from augury.algebra.plan import Plan
from augury.columns.column import column_of
from augury.errors import DataError, Findings, RunError, counted
from augury.graphs.oxigraph import as_oxigraph, oxigraph, term_from
from augury.graphs.rdf_terms import term_of, value_of_term
from augury.knowledge.fact_table import FactTable
from augury.knowledge.rdf import Triples
from augury.language.rules.queries import ASIDE
from augury.model import Iri, Value


class BadQuery(Exception):
    """A query that cannot be asked; the message says why."""


def columns_of(text: str) -> int:
    """How many columns a query gives; raises BadQuery where it cannot be asked."""
    found = _asked(oxigraph().Store(), text)
    return 0 if isinstance(found, bool) or type(found).__name__ == "QueryBoolean" else len(found.variables)


def _asked(store: Any, text: str) -> Any:
    if re.search(r"\bservice\b", ASIDE.sub(" ", text), re.IGNORECASE):
        raise BadQuery("SERVICE would ask another machine, and a program asks none")
    try:
        found = store.query(text, use_default_graph_as_union=True)
    except SyntaxError as error:
        place = re.search(r"at (\d+):(\d+)", str(error))
        at = f" at line {place[1]}, column {place[2]} of the query" if place else ""
        if "Prefix not found" in str(error):
            raise BadQuery(f"an unknown prefix{at}") from None
        raise BadQuery(f"malformed SPARQL{at}") from None
    except (ValueError, OSError) as error:
        raise BadQuery(f"SPARQL: {error}") from None
    if type(found).__name__ == "QueryTriples":
        raise BadQuery("a query that is a condition begins with SELECT or ASK")
    return found


def answers(name: str, text: str, triples: Callable[[], Triples]) -> FactTable:
    """The answers of a query over triples, as facts."""
    known = triples()
    store = _store(known)

    def label(given: str) -> str:
        return getattr(known.terms[int(given[1:])], "text", "")[2:] if given[0] == "n" else given

    try:
        found = _asked(store, text)
        if type(found).__name__ in ("QueryBoolean", "bool"):
            return FactTable(name, (), int(bool(found)))
        rows = [[None if term is None else value_of_term(term_from(term, label)) for term in row] for row in found]
    except BadQuery as error:
        raise DataError(str(error)) from None
    except (ValueError, OSError, RuntimeError) as error:
        raise DataError(f"SPARQL: {error}") from None
    width = len(found.variables)
    return FactTable(name, tuple(column_of([row[i] for row in rows]) for i in range(width)), len(rows))


def _store(triples: Triples) -> Any:
    ox = oxigraph()
    terms = [_term(number, value) for number, value in enumerate(triples.terms)]
    default = ox.DefaultGraph()
    quads = (
        ox.Quad(terms[s], terms[p], terms[o], default if g < 0 else terms[g])
        for s, p, o, g in zip(
            *(a.tolist() for a in (triples.subject, triples.predicate, triples.object, triples.graph)), strict=True
        )
    )
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
                    f"the query gives {counted(count, 'column')}, but {counted(query.arity, 'argument')} stand beside it",
                    query.span,
                    hint="write an argument for each variable that it selects",
                )
