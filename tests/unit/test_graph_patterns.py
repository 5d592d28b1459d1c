"""Graph patterns over batches of events, compared with two evaluators of SPARQL that look at one graph at a time.

Random patterns and graphs are asked of pyoxigraph's store and of rdflib; each event of a batch must have the solutions that its
graph has alone, so that nothing leaks from event to event.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("pyoxigraph")
pytest.importorskip("rdflib")

from augury.algebra.sparql_algebra import (
    Basic,
    Blank,
    Constant,
    Filter,
    Literal,
    Pattern,
    RdfTerm,
    SparqlCall,
    TripleNeeds,
    Variable,
    certainly_binds,
    may_bind,
    needs,
    split_outer,
)
from augury.algebra.sparql_parser import CASTS, REFUSED, PatternError, read_expression, read_pattern
from augury.core.model import Iri
from augury.graphs.dataset import GraphDataset
from augury.graphs.functions import FUNCTIONS
from augury.graphs.graph_texts import read
from augury.graphs.rdf_terms import UNBOUND, Terms
from augury.graphs.solver import solutions
from tests.support.w3c_sparql import term

PREFIXES = {"": "http://e/", "xsd": "http://www.w3.org/2001/XMLSchema#"}
HEAD = "".join(f"PREFIX {name}: <{iri}>\n" for name, iri in PREFIXES.items())
Rows = set[frozenset[tuple[str, RdfTerm]]]


# One way and the others


def asked(pattern: str, graphs: Sequence[str], named: Mapping[str, str] = {}) -> list[Rows]:
    """The solutions of a pattern in each of some graphs, all in one batch."""
    node, terms = read_pattern(pattern, PREFIXES), Terms()
    given = read([HEAD + graph for graph in graphs], terms, needs(node), names=["" for _ in graphs])
    assert not given.malformed
    found = solutions(node, given.triples, terms, dataset(named, terms))
    result: list[Rows] = [set() for _ in graphs]
    for i, event in enumerate(found.event.tolist()):
        row = [(n, terms.term(int(column[i]))) for n, column in found.columns.items() if column[i] != UNBOUND]
        assert frozenset(n for n, _ in row) >= certainly_binds(node)
        size = len(result[event])
        result[event].add(frozenset((n, unlabelled(t)) for n, t in row))
        assert len(result[event]) == size + 1, "each solution is there once"
    return result


def dataset(named: Mapping[str, str], terms: Terms) -> GraphDataset:
    t = read([HEAD + graph for graph in named.values()], terms, names=["" for _ in named]).triples
    names = terms.numbers(Iri(name) for name in named)
    return GraphDataset.of(t.subject, t.predicate, t.object, names[t.event], terms) if len(t) else GraphDataset()


def unlabelled(found: RdfTerm) -> RdfTerm:
    """A blank node without the name of its event."""
    return Blank(found.label.rpartition(".")[0]) if isinstance(found, Blank) else found


def by_oxigraph(pattern: str, graph: str, named: Mapping[str, str] = {}) -> Rows:
    import pyoxigraph as ox

    store = ox.Store()
    for quad in ox.parse((HEAD + graph).encode(), ox.RdfFormat.TURTLE):
        store.add(quad)
    for name, text in named.items():
        for quad in ox.parse((HEAD + text).encode(), ox.RdfFormat.TURTLE):
            store.add(ox.Quad(quad.subject, quad.predicate, quad.object, ox.NamedNode(name)))
    found: Any = store.query(HEAD + "SELECT * WHERE " + pattern)
    names = [variable.value for variable in found.variables]
    return {frozenset((n, term(row[n])) for n in names if row[n] is not None) for row in found}


def by_rdflib(pattern: str, graph: str) -> Rows:
    import rdflib

    data = rdflib.Graph()
    data.parse(data=HEAD + graph, format="turtle")
    found = data.query(HEAD + "SELECT * WHERE " + pattern)
    return {frozenset((str(n), of_rdflib(t)) for n, t in row.asdict().items()) for row in found}


def of_rdflib(found: Any) -> RdfTerm:
    import rdflib

    if isinstance(found, rdflib.URIRef):
        return Iri(str(found))
    if isinstance(found, rdflib.BNode):
        return Blank("x")  # rdflib renames them, and there is but one
    if found.language:
        return Literal(str(found), "http://www.w3.org/1999/02/22-rdf-syntax-ns#langString", found.language.lower())
    return Literal(str(found), str(found.datatype) if found.datatype else PREFIXES["xsd"] + "string")


# Random graphs and patterns

NODES = [":a", ":b", ":c", "_:x"]
VALUES = ["1", "2", "1.0", "2.5", "1e0", '"a"', '"b"', '"a"@en', "true", '"z"^^:other']
nodes = st.sampled_from(NODES)
predicates = st.sampled_from([":p", ":q", ":r"])
triples = st.builds("{} {} {} .".format, nodes, predicates, st.sampled_from(NODES + VALUES))
graphs = st.lists(triples, max_size=7).map(" ".join)
variables = st.sampled_from(["?x", "?y", "?z"])
subjects = st.one_of(variables, variables, st.sampled_from([":a", ":b"]))
objects = st.one_of(variables, variables, st.sampled_from([":a", "1", '"a"', "[]"]))
paths = st.recursive(
    predicates,
    lambda inner: st.one_of(
        st.builds("({}/{})".format, inner, inner),
        st.builds("({}|{})".format, inner, inner),
        st.builds("^{}".format, predicates),
        st.builds("{}{}".format, inner.filter(lambda p: p[-1] not in "*+?" and p[0] != "^"), st.sampled_from("*+?")),
        st.builds("!({}|{})".format, predicates, predicates),
    ),
    max_leaves=3,
)
verbs = st.one_of(predicates, predicates, predicates, variables)
basic = st.lists(st.builds("{} {} {} .".format, subjects, verbs, objects), min_size=1, max_size=3).map(" ".join)
path_triples = st.builds("{} {} {} .".format, variables, paths, variables)
terms = st.one_of(variables, variables, st.sampled_from(["1", "2.0", '"a"', ":a"]))
comparisons = st.one_of(
    st.builds("({} {} {})".format, terms, st.sampled_from(["=", "!=", "<", ">"]), terms),
    st.builds("({} {} {})".format, variables, st.sampled_from(["<=", ">="]), st.sampled_from(["1", "2.0", '"a"'])),
)
conditions = st.recursive(
    st.one_of(
        comparisons,
        st.builds("BOUND({})".format, variables),
        st.builds("({} IN (1, {}))".format, variables, terms),
        st.builds("(DATATYPE({}) = xsd:integer)".format, variables),
        st.builds("({} + 1 > {})".format, variables, terms),
        st.builds("STRSTARTS(STR({}), {})".format, variables, st.sampled_from(['"a"', '"http"'])),
        st.builds("isIRI({})".format, variables),
    ),
    lambda inner: st.one_of(
        st.builds("({} && {})".format, inner, inner),
        st.builds("({} || {})".format, inner, inner),
        st.builds("(!{})".format, inner),
    ),
    max_leaves=3,
)


def groups(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.builds("{} {}".format, basic, inner),
        st.builds("{} OPTIONAL {{ {} }}".format, inner, inner),
        st.builds("{{ {} }} UNION {{ {} }}".format, inner, inner),
        st.builds("{} MINUS {{ {} }}".format, inner, inner),
        st.builds("{} FILTER({})".format, inner, conditions),
        st.builds("{} FILTER EXISTS {{ {} }}".format, inner, basic),
        st.builds("{} FILTER NOT EXISTS {{ {} FILTER({}) }}".format, inner, basic, comparisons),
        st.builds("{{ {} }} {{ {} }}".format, inner, inner),
        st.builds("{} VALUES (?x ?y) {{ ({} UNDEF) (:a 1) }}".format, inner, st.sampled_from([":a", ":b", "1"])),
        st.builds(
            "{{ {} }} BIND({} AS ?w)".format, inner, st.sampled_from(["?x", "?y + 1", "STR(?x)", "?x * ?y", "?x < ?y"])
        ),
        st.builds("{{ SELECT ?x ?y {{ {} }} }}".format, inner),
    )


bodies = st.recursive(st.one_of(basic, path_triples), groups, max_leaves=4).filter(lambda body: body.count("?w") < 2)
patterns = bodies.map("{{ {} }}".format)


@given(patterns, st.lists(graphs, min_size=1, max_size=4))
def test_a_batch_has_the_solutions_of_its_graphs(pattern: str, batch: list[str]) -> None:
    found = asked(pattern, batch)
    assert [comparable(rows) for rows in found] == [comparable(by_oxigraph(pattern, graph)) for graph in batch]


def comparable(rows: Rows) -> set[frozenset[tuple[str, object]]]:
    from tests.unit.test_w3c_sparql import canonical

    return {frozenset((n, canonical(t)) for n, t in row) for row in rows}


simple = st.one_of(basic, st.builds("{} {} {} .".format, subjects, paths, variables))
plain = st.recursive(
    simple,
    lambda inner: st.one_of(
        st.builds("{} {}".format, simple, inner),
        st.builds("{} OPTIONAL {{ {} }}".format, inner, inner),
        st.builds("{{ {} }} UNION {{ {} }}".format, inner, inner),
        # rdflib orders literals of different types, which SPARQL does not compare: equality is what both agree on.
        st.builds("{} FILTER({} = {})".format, inner, variables, terms),
        st.builds("{} FILTER EXISTS {{ {} }}".format, inner, basic),
    ),
    max_leaves=3,
).map("{{ {} }}".format)


@given(plain, st.lists(graphs, min_size=1, max_size=3))
def test_rdflib_finds_the_same(pattern: str, batch: list[str]) -> None:
    found = asked(pattern, batch)
    assert [comparable(rows) for rows in found] == [comparable(by_rdflib(pattern, graph)) for graph in batch]


# The static dataset

NAMED = ["http://e/g1", "http://e/g2"]
inside = st.recursive(
    st.one_of(basic, path_triples),
    lambda inner: st.one_of(
        st.builds("{} OPTIONAL {{ {} }}".format, inner, inner),
        st.builds("{} FILTER({})".format, inner, conditions),
        st.builds("{{ {} }} UNION {{ {} }}".format, inner, inner),
        st.builds("{} FILTER NOT EXISTS {{ {} }}".format, inner, basic),
        st.builds("{} MINUS {{ {} }}".format, inner, inner),
    ),
    max_leaves=2,
)
static = st.builds("GRAPH {} {{ {} }}".format, st.sampled_from(["?g", ":g1", ":g1", ":g3", "?z"]), inside)
with_static = st.one_of(
    st.builds("{{ {} {} }}".format, basic, static),
    st.builds("{{ {} }}".format, static),
    st.builds("{{ {} OPTIONAL {{ {} }} }}".format, basic, static),
    st.builds("{{ {} MINUS {{ {} }} }}".format, basic, static),
    st.builds("{{ {} FILTER EXISTS {{ {} }} }}".format, basic, static),
    st.builds("{{ {} {} FILTER({}) }}".format, static, basic, conditions),
    st.builds("{{ {{ {} }} UNION {{ {} }} {} }}".format, basic, static, basic),
)


@given(with_static, st.lists(graphs, min_size=1, max_size=3), st.lists(graphs, min_size=2, max_size=2))
def test_graph_reads_the_dataset(pattern: str, batch: list[str], known: list[str]) -> None:
    named = dict(zip(NAMED, [graph.replace("_:x", ":c") for graph in known], strict=True))
    found = asked(pattern, batch, named)
    assert [comparable(rows) for rows in found] == [comparable(by_oxigraph(pattern, g, named)) for g in batch]


# What follows from the shape


def pattern_of(text: str) -> Pattern:
    return read_pattern(text, PREFIXES)


def test_what_a_pattern_binds() -> None:
    found = pattern_of(
        "{ ?a :p ?b OPTIONAL { ?a :q ?c } BIND(?b + 1 AS ?d) { ?a :r ?e } UNION { ?a :r ?f } MINUS { ?g :p ?a } }"
    )
    assert may_bind(found) == set("abcdef")
    assert certainly_binds(found) == set("ab")


def test_what_a_pattern_needs() -> None:
    def needed(text: str) -> object:
        found = needs(pattern_of(text))
        return "every" if found.every else {one.text[-1] for one in found.predicates}

    assert needed("{ ?a :p ?b ; ^:q/:r* ?c FILTER NOT EXISTS { ?a :s ?d } GRAPH ?g { ?a :t ?u } }") == set("pqrs")
    assert needed("{ ?a :p ?b . ?b :q* ?c }") == {"p", "q"}
    assert needed("{ :a :q* ?c }") == {"q"}
    assert needed("{ ?b :q* ?c }") == "every"
    assert needed("{ ?a ?p ?b }") == "every"
    assert needed("{ ?a !:p ?b }") == "every"
    assert needs(pattern_of("{ GRAPH :g { ?a ?p ?b } }")) == TripleNeeds()


def test_filters_on_earlier_variables_stand_apart() -> None:
    found, outer = split_outer(
        pattern_of("{ ?s :p ?x FILTER(?x > ?before && ?x > 3) FILTER(?y = 1) }"), frozenset({"before", "x"})
    )
    assert outer == (SparqlCall(">", (Variable("x"), Variable("before"))),)
    three = Constant(Literal("3", PREFIXES["xsd"] + "integer"))
    assert isinstance(found, Filter) and isinstance(found.pattern, Basic)
    assert SparqlCall(">", (Variable("x"), three)) in found.condition.args  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("text", "at", "message"),
    [
        ("{ ?s :p ?x FILTER(?x > ) }", "FILTER", "is not SPARQL from `FILTER` on"),
        ("{ ?s nope:p ?x }", "nope:p", "the prefix `nope:` is not declared"),
        ("{ ?s :p ?x . SERVICE :a { ?s ?p ?o } }", "SERVICE", "SERVICE is not supported: nothing is fetched"),
        ("{ ?s :p '\\u00e9' . wrong }", "wrong", "is not SPARQL from `wrong` on"),
        ("{ ?s :p ?x BIND(1 AS ?x) }", "AS", "?x is bound already, BIND cannot bind it again"),
        (
            "{ BIND(RAND() AS ?x) }",
            "RAND",
            "RAND is not supported: an answer must not depend on when it is computed",
        ),
        ("{ { SELECT (SUM(?x) AS ?y) { ?s :p ?x } } }", "SUM", "aggregates are not supported in a graph pattern"),
        ("{ { SELECT ?x { ?s :p ?x } LIMIT 3 } }", "LIMIT", "LIMIT and OFFSET are not supported in a subquery"),
        ("{ ?s !(^:p) ?x }", "!", "`^` inside `!(…)` is not supported"),
    ],
)
def test_mistakes_have_a_place(text: str, at: str, message: str) -> None:
    with pytest.raises(PatternError) as caught:
        pattern_of(text)
    assert caught.value.message == message
    assert text[caught.value.offset :].startswith(at)


def test_expressions_are_read_alone() -> None:
    found = read_expression("?p * 2 > ?q", PREFIXES)
    two = Constant(Literal("2", PREFIXES["xsd"] + "integer"))
    assert found == SparqlCall(">", (SparqlCall("*", (Variable("p"), two)), Variable("q")))


@given(st.text(alphabet="{}?xy:p. FILTER()<>=1'\"|*/!\\u", max_size=30))
def test_any_text_is_a_pattern_or_a_mistake(text: str) -> None:
    with contextlib.suppress(PatternError):
        pattern_of("{" + text + "}")


def test_every_function_of_the_grammar_is_there() -> None:
    from rdflib.plugins.sparql import parser

    names = set(re.findall(r'"Builtin_(\w+)"', Path(parser.__file__).read_text(encoding="utf-8")))
    elsewhere = {"BOUND", "IF", "COALESCE", "EXISTS", "NOTEXISTS", "URI", "isURI"}  # see `evaluate.py`, and synonyms
    assert names - elsewhere == (FUNCTIONS.keys() | REFUSED.keys()) & names
    assert FUNCTIONS.keys() >= CASTS


# Numbers


def test_numbers_compare_exactly() -> None:
    """Neighbours that are one float, and values of different types that are one value."""
    graph = ":a :p 9007199254740993 ; :q 9007199254740992 . :b :p 0.1 ; :q 0.1000000000000000055 . :c :p 1e0 ; :q 1.0 ."
    assert [len(rows) for rows in asked("{ ?s :p ?x ; :q ?y FILTER(?x > ?y) }", [graph])] == [1]
    assert [len(rows) for rows in asked("{ ?s :p ?x ; :q ?y FILTER(?x < ?y) }", [graph])] == [1]
    assert asked("{ ?s :p ?x ; :q ?y FILTER(?x = ?y) }", [graph]) != [set()]
    (rows,) = asked("{ ?s :p ?x BIND(?x + 1 AS ?y) }", [":a :p 9007199254740993 . :b :p 0.1 ."])
    assert {t.text for row in rows for n, t in row if n == "y" and isinstance(t, Literal)} == {
        "9007199254740994",
        "1.1",
    }
