"""RDF and SPARQL for the reference evaluator, by rdflib: slow, and independent of our own implementation.

Terms are those of rdflib, with literals as they are written. A blank node is named `label.id` by the event that it is of.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import cache, cached_property, lru_cache
from typing import Any, TypeAlias

from augury.algebra import sparql_algebra as s
from augury.algebra.graph_queries import Expression, Gpm, GraphAggregate
from augury.algebra.sparql_parser import RdflibNode, algebra_of, as_written, sparql
from augury.core.errors import DataError
from augury.core.model import Event, Iri, Value
from augury.graphs.oxigraph import is_made_up, oxigraph, term_from
from augury.graphs.rdf_terms import literal_value
from augury.semantics.rdflib_corrected import corrected, plain_term

RdfTerm: TypeAlias = Any
Solution: TypeAlias = Mapping[str, RdfTerm]
TermTriple: TypeAlias = tuple[RdfTerm, RdfTerm, RdfTerm]


# Terms


class Blanks:
    """The names of the blank nodes of one event. Those without a label are numbered as they come."""

    def __init__(self, name: str) -> None:
        self.name, self.numbers = name, dict[str, int]()

    def __call__(self, label: str) -> str:
        if is_made_up(label):
            label = f"-{self.numbers.setdefault(label, len(self.numbers))}"
        return f"{label}.{self.name}"


def as_rdflib(term: s.RdfTerm) -> RdfTerm:
    """A term as one of rdflib."""
    import rdflib

    match term:
        case Iri():
            return rdflib.URIRef(term.text)
        case s.Blank():
            return rdflib.BNode(term.label)
        case s.Literal():
            if term.language:
                return rdflib.Literal(term.text, lang=term.language)
            datatype = None if term.datatype == s.STRING else rdflib.URIRef(term.datatype)
            return rdflib.Literal(term.text, datatype=datatype, normalize=False)
    raise DataError("a triple inside a triple, which queries do not read")


def value_from(term: RdfTerm | None) -> Value:
    """The value of a term, as for all RDF; unbound is null."""
    import rdflib

    match term:
        case None:
            return None
        case rdflib.URIRef():
            return Iri(str(term))
        case rdflib.BNode():
            return Iri(f"_:{term}")
    if term.language:
        return literal_value(str(term), s.LANG_STRING, term.language)
    return literal_value(str(term), str(term.datatype or s.STRING))


def key_from(term: RdfTerm) -> str:
    """A term as the text that identifies it."""
    import rdflib

    match term:
        case rdflib.URIRef():
            return f"<{term}>"
        case rdflib.BNode():
            return f"_:{term}"
    if term.language:
        return f'"{term}"@{term.language.lower()}'
    plain = term.datatype is None or str(term.datatype) == s.STRING
    return f'"{term}"' if plain else f'"{term}"^^<{term.datatype}>'


def triple_line(triple: TermTriple) -> str:
    """A triple as N-Triples."""
    return " ".join(_written(term) for term in triple) + " ."


def _written(term: RdfTerm) -> str:
    import rdflib

    ox = oxigraph()
    match term:
        case rdflib.URIRef():
            return str(ox.NamedNode(str(term)))
        case rdflib.BNode():
            return f"_:{term}"
    if term.language:
        return str(ox.Literal(str(term), language=term.language))
    return str(ox.Literal(str(term), datatype=ox.NamedNode(str(term.datatype)) if term.datatype else None))


def triple_lines(text: str) -> list[str]:
    """The triples of a text as sorted lines of N-Triples, each once."""
    import rdflib

    def plain(term: RdfTerm) -> RdfTerm:
        return rdflib.BNode(str(term).removesuffix(".")) if isinstance(term, rdflib.BNode) else term

    return sorted({triple_line((plain(s), p, plain(o))) for s, p, o in triples_in(text, "")})


def graph_of(event: Event) -> list[TermTriple]:
    """The triples of a graph event; raises DataError where its text is no RDF."""
    text = event.args[0]
    if not isinstance(text, str):
        raise DataError(f"the graph of event {event.id} is no text")
    return triples_in(text, event.id)


def triples_in(text: str, name: str) -> list[TermTriple]:
    ox, blank = oxigraph(), Blanks(name)
    try:
        triples = list(ox.parse(text.encode(), ox.RdfFormat.TURTLE))
    except SyntaxError as error:
        raise DataError(f"malformed RDF in event {name}, line {error.lineno}: {error.msg}") from None
    terms = [as_rdflib(term_from(part, blank)) for t in triples for part in (t.subject, t.predicate, t.object)]
    return list(zip(terms[::3], terms[1::3], terms[2::3], strict=True))


# Graph patterns


class ReferenceDataset:
    """The static graphs that GRAPH reads, by name; those under None belong to every name.

    With `visible`, only these names are there.
    """

    def __init__(self, graphs: Mapping[str | None, Sequence[TermTriple]], visible: Iterable[str] | None = None) -> None:
        self.graphs = {
            name: triples for name, triples in graphs.items() if name is None or visible is None or name in visible
        }
        self.visible = None if visible is None else set(visible)

    def for_pattern(self, gpm: Gpm) -> Any:
        """A dataset of rdflib with the graphs that a GPM may read, and an empty default graph."""
        import rdflib

        result = rdflib.Dataset(default_union=False)
        shared = self.graphs.get(None, ())
        names = {name for name in self.graphs if name is not None}
        names |= {name for name in gpm.graphs if name is not None and (self.visible is None or name in self.visible)}
        for name in names:
            graph = result.graph(rdflib.URIRef(name))
            for triple in (*shared, *self.graphs.get(name, ())):
                graph.add(triple)
        return result


class ReferenceGraphPatterns:
    """The solutions of GPMs on events, each found once."""

    def __init__(self, gpms: Iterable[Gpm], dataset: ReferenceDataset) -> None:
        sparql()
        self._asked = {gpm.name: _PatternCall(gpm, dataset) for gpm in gpms}
        self._found: dict[tuple[str, str], list[Solution]] = {}
        self._graphs: dict[str, list[TermTriple]] = {}

    def solutions(self, gpm: Gpm, event: Event) -> list[Solution]:
        """The set of solutions of a graph pattern on the graph of an event."""
        key = (gpm.name, event.id)
        if key not in self._found:
            if event.id not in self._graphs:
                self._graphs[event.id] = graph_of(event)
            self._found[key] = self._asked[gpm.name].solutions(self._graphs[event.id])
        return self._found[key]


@lru_cache(256)
def _algebra(pattern: str) -> RdflibNode:
    return corrected(algebra_of(f"SELECT * WHERE {pattern}"))


class _PatternCall:
    """A graph pattern and the dataset it is asked of; the event's graph is its default graph while it is asked."""

    def __init__(self, gpm: Gpm, dataset: ReferenceDataset) -> None:
        self.gpm, self.dataset = gpm, dataset

    @cached_property
    def _query(self) -> Any:
        import rdflib.plugins.sparql.sparql as rdflib_sparql

        return rdflib_sparql.Query(rdflib_sparql.Prologue(), _algebra(self.gpm.pattern))

    @cached_property
    def _graphs(self) -> Any:
        return self.dataset.for_pattern(self.gpm)

    def solutions(self, triples: Sequence[TermTriple]) -> list[Solution]:
        default = self._graphs.default_graph
        for triple in triples:
            default.add(triple)
        try:
            with as_written():
                result = [
                    {str(v): plain_term(term) for v, term in row.items() if str(v) in self.gpm.variables}
                    for row in self._graphs.query(self._query).bindings
                ]
        finally:
            default.remove((None, None, None))
        return [dict(row) for row in {frozenset(row.items()): None for row in result}]


# Expressions


@cache
def _compiled(text: str) -> RdflibNode:
    """The expression of rdflib for a text."""
    return corrected(algebra_of(f"SELECT * WHERE {{ BIND ( ( {text} ) AS ?value·0 ) }}").p.p.expr)


def evaluated(expression: Expression, solution: Solution) -> RdfTerm | None:
    """The value of an expression; None where that is an error, or an unbound variable."""
    from rdflib.plugins.sparql.evalutils import _eval
    from rdflib.plugins.sparql.sparql import FrozenBindings, QueryContext, SPARQLError

    context = QueryContext(initBindings={})
    try:
        with as_written():
            result = _eval(_compiled(expression.text), FrozenBindings(context, _as_variables(solution)))
    except (SPARQLError, ArithmeticError, TypeError, ValueError):
        return None
    return None if isinstance(result, SPARQLError) else plain_term(result)


def holds(expression: Expression, solution: Solution) -> bool:
    """Whether an expression is true, by its effective boolean value; an error is not."""
    from rdflib.plugins.sparql.operators import EBV
    from rdflib.plugins.sparql.sparql import SPARQLError

    result = evaluated(expression, solution)
    try:
        return result is not None and bool(EBV(result))
    except SPARQLError:
        return False


def _as_variables(solution: Solution) -> dict[Any, RdfTerm]:
    import rdflib

    return {rdflib.Variable(name): term for name, term in solution.items() if term is not None}


def order_of(term: RdfTerm | None) -> Any:
    """The place of a term in the order of ORDER BY: unbound, blank nodes, IRIs, literals, these by value where they have one."""
    from rdflib.plugins.sparql.evalutils import _val

    return _val(term if term is not None else _no_term())


def _no_term() -> Any:
    import rdflib

    return rdflib.Variable("none")


# Aggregates


def aggregated(aggregate: GraphAggregate, rows: Sequence[Solution]) -> RdfTerm | None:
    """An aggregate of SPARQL over rows, in their order; None where it has no value."""
    import rdflib

    if aggregate.of is None:
        keys = [frozenset(row.items()) for row in rows]
        return rdflib.Literal(len(set(keys)) if aggregate.distinct else len(keys))
    of = aggregate.of
    values = [evaluated(of, row) for row in rows]
    if aggregate.distinct:
        values = list(dict.fromkeys(values))
    there = [value for value in values if value is not None]
    match aggregate.function:
        case "COUNT":
            return rdflib.Literal(len(there))
        case "SUM":
            return None if len(there) < len(values) else _sum(there)
        case "AVG":
            return None if len(there) < len(values) else _mean(there)
        case "SAMPLE":
            return there[0] if there else None
        case "MIN":
            return min(there, key=order_of, default=None)
        case "MAX":
            return max(there, key=order_of, default=None)
        case "GROUP_CONCAT":
            return rdflib.Literal(aggregate.separator.join(str(value) for value in there))


def _numbers(terms: Iterable[RdfTerm]) -> Iterator[int | Decimal | float | None]:
    import rdflib

    for term in terms:
        value = term.toPython() if isinstance(term, rdflib.Literal) else None
        yield value if isinstance(value, int | Decimal | float) and not isinstance(value, bool) else None


def _sum(terms: Sequence[RdfTerm]) -> RdfTerm | None:
    import rdflib

    numbers = list(_numbers(terms))
    if None in numbers:
        return None
    if any(isinstance(n, float) for n in numbers):
        return rdflib.Literal(math.fsum(float(n) for n in numbers if n is not None), datatype=rdflib.XSD.double)
    total = sum((Decimal(n) for n in numbers if n is not None), Decimal(0))
    if any(isinstance(n, Decimal) for n in numbers):
        return rdflib.Literal(total, datatype=rdflib.XSD.decimal)
    return rdflib.Literal(int(total))


def _mean(terms: Sequence[RdfTerm]) -> RdfTerm | None:
    import rdflib

    total = _sum(terms)
    if total is None or not terms:
        return None if total is None else rdflib.Literal(0)
    value = total.toPython()
    if isinstance(value, float):
        return rdflib.Literal(value / len(terms), datatype=rdflib.XSD.double)
    return rdflib.Literal(Decimal(value) / len(terms), datatype=rdflib.XSD.decimal)
