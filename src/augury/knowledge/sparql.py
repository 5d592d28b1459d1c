"""`sparql("SELECT …", X, Y)`: what plain conditions cannot say of a graph, asked once, as facts."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from augury.algebra.plan import Plan
from augury.clock import Duration, Timestamp
from augury.columns.column import column_of
from augury.errors import DataError, Findings, RunError, counted
from augury.graphs.oxigraph import oxigraph, value_of
from augury.knowledge.fact_table import FactTable
from augury.knowledge.rdf import Triples
from augury.language.rules.queries import ASIDE
from augury.model import Iri, Term, Value

_XSD = "http://www.w3.org/2001/XMLSchema#"


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
    store = _store(triples())
    try:
        found = _asked(store, text)
        if type(found).__name__ in ("QueryBoolean", "bool"):
            return FactTable(name, (), int(bool(found)))
        rows = [[None if term is None else value_of(term) for term in row] for row in found]
    except BadQuery as error:
        raise DataError(str(error)) from None
    except (ValueError, OSError, RuntimeError) as error:
        raise DataError(f"SPARQL: {error}") from None
    width = len(found.variables)
    return FactTable(name, tuple(column_of([row[i] for row in rows]) for i in range(width)), len(rows))


def _store(triples: Triples) -> Any:
    ox = oxigraph()
    terms = [_term(ox, value) for value in triples.terms]
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


def _term(ox: Any, value: Value) -> Any:
    """A value as a term of RDF."""

    def literal(text: str, type: str) -> Any:
        return ox.Literal(text, datatype=ox.NamedNode(type if ":" in type else _XSD + type))

    match value:
        case Iri() if value.text.startswith("_:"):
            return ox.BlankNode(re.sub(r"[^\w]", "x", value.text[2:]))
        case Iri():
            return ox.NamedNode(value.text)
        case bool():
            return literal("true" if value else "false", "boolean")
        case int():
            return literal(str(value), "integer")
        case float():
            return literal(repr(value), "double")
        case Timestamp():
            return literal(str(value).replace(" ", "T") + "Z", "dateTime")
        case Duration():
            return literal(f"{'-' if value.us < 0 else ''}PT{abs(value.us) / 1_000_000:.6f}S", "dayTimeDuration")
        case Term(functor="lang", args=(str(text), str(tag))):
            return ox.Literal(text, language=tag)
        case Term(functor="literal", args=(str(text), Iri(text=type))):
            return literal(text, type)
    return ox.Literal(str(value))


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
