"""RDF graphs behind conditions: entailed lazily or at once, beside the naive closure; queries; what is refused."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import augury
from augury.core.clock import Clock, Duration, Timestamp
from augury.core.errors import AuguryError, DataError, ProgramError, RunError
from augury.core.model import Event, Iri, OrderKey, Term, Value
from augury.knowledge import rdf_files
from augury.knowledge.graphs import Graphs
from augury.knowledge.rdf import RdfTriples
from augury.knowledge.rdfs import DOMAIN, RANGE, SUBCLASS, SUBPROPERTY, TYPE
from augury.knowledge.solving import materialise
from augury.knowledge.sparql import answers
from augury.reference import evaluate
from augury.sources import Skipped

FUZZ = bool(os.environ.get("AUGURY_FUZZ"))
CLOCK = Clock()
EX = "http://ex.org/"
PROGRAM = f"""
prefix ex: <{EX}>.
types(X, C) <- a(X) WHERE rdf:type(X, C).
of(X, C) <- a(C) WHERE rdf:type(X, C).
is(X, C) <- b(X, C) WHERE rdf:type(X, C).
isnt(X, C) <- b(X, C) WHERE not rdf:type(X, C).
every(X, C) <- c WHERE rdf:type(X, C).
p(X, Y) <- a(X) WHERE ex:p(X, Y).
sub(X, Y) <- a(X) WHERE rdfs:subClassOf(X, Y).
"""


def ex(name: str) -> Iri:
    return Iri(EX + name)


names = st.sampled_from("xyzCDE").map(ex)
properties = st.sampled_from([ex("p"), ex("q"), TYPE, TYPE, SUBCLASS, SUBCLASS, SUBPROPERTY, DOMAIN, RANGE])
triples = st.lists(st.tuples(names | st.sampled_from([ex("p"), ex("q")]), properties, names | st.sampled_from([ex("p"), ex("q"), 1, "t"])), max_size=14)  # fmt: skip


def contents(events: Iterable[Event]) -> set[OrderKey]:
    return {e.content for e in events}


@pytest.mark.parametrize("few", [0, 10_000], ids=["lazily", "at once"])
@settings(max_examples=1000 if FUZZ else 60)
@given(triples, st.lists(st.tuples(names, names), max_size=4))
def test_conditions_see_what_is_entailed(
    few: int, said: list[tuple[Value, Value, Value]], asked: list[tuple[Value, Value]]
) -> None:
    program, graph = (
        augury.compile(PROGRAM),
        Graphs.of(RdfTriples.of(said) if said else RdfTriples.of([(ex("x"), ex("q"), ex("y"))])),
    )
    told = [Event("c", (), 1)]
    for i, (x, c) in enumerate(asked):
        told += [Event("a", (x,), 2 + i), Event("b", (x, c), 2 + i), Event("a", (c,), 2 + i)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(materialise, "FEW", few)
        session = program.session(clock=CLOCK, rdf=graph)
        session.push(told)
    wanted = evaluate(program.plan, told, CLOCK, graph.closed(program.plan))
    assert contents(session.events()) == contents(wanted.events)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "schema.ttl").write_text(
        f"@prefix ex: <{EX}> .\n@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .\nex:C rdfs:subClassOf ex:D .\n"
    )
    (tmp_path / "data.nt").write_text(f"<{EX}x> <{TYPE.text}> <{EX}C> .\n")
    return tmp_path


ASKS = f"prefix ex: <{EX}>.\nout(X) <- a(X) WHERE rdf:type(X, ex:D)."


def found(*given: object) -> list[Event]:
    return list(augury.run(ASKS, [Event("a", (ex("x"),), 1)], clock="logical", rdf=list(given)))


def test_a_schema_in_one_file_speaks_of_data_in_another(folder: Path) -> None:
    assert [e.args for e in found(folder / "schema.ttl", str(folder / "data.nt"))] == [(ex("x"),)]
    assert not found(folder / "data.nt")


def test_without_entailment_a_graph_is_just_what_it_says(folder: Path) -> None:
    assert not found(folder / "schema.ttl", augury.rdf(folder / "data.nt", entailment=False))
    assert not found(
        augury.rdf(folder / "schema.ttl", entailment=False), augury.rdf(folder / "data.nt", entailment=False)
    )


def test_reference_agrees_on_static_graphs(folder: Path) -> None:
    given = [folder / "schema.ttl", folder / "data.nt"]
    result = augury.run(ASKS, [Event("a", (ex("x"),), 1)], clock="logical", rdf=given, engine="reference")
    assert [e.args for e in result] == [(ex("x"),)]


def test_why_shows_what_a_type_follows_from(folder: Path) -> None:
    session = augury.compile(ASKS).session(clock="logical", rdf=[folder / "schema.ttl", folder / "data.nt"])
    session.push(Event("a", (ex("x"),), 1))
    shown = session.why(session.events()[0])
    assert "direct" in shown and "entailed" in shown
    restored = augury.compile(ASKS).restore(session.snapshot())
    assert len(restored.push(Event("a", (ex("x"),), 2))) == 1


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        ('o() <- a WHERE sparql("SELECT ?x { ?x ?p", X).', "E230", "malformed SPARQL"),
        (
            'o(X) <- a WHERE sparql("SELECT ?x ?y { ?x ?y ?z }", X).',
            "E206",
            "the query gives 2 columns, but the call has 1 argument",
        ),
        ('o(X) <- a WHERE sparql("SELECT ?x { SERVICE <http://e.org/> { ?x ?y ?z } }", X).', "E230", "another machine"),
        ('o() <- a WHERE sparql("CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o }").', "E230", "begins with SELECT or ASK"),
        ("o(X) <- a WHERE sparql(X).", "E230", "begins with its query"),
        ("o(X) <- a WHERE rdf:type(X).", "E206", "a property has a subject and an object"),
        ("o(X) <- a WHERE xx:type(X, Y).", "E101", "`xx` is not a declared prefix"),
    ],
)
def test_what_cannot_be_asked_is_said(text: str, code: str, message: str) -> None:
    with pytest.raises(ProgramError) as error:
        augury.compile(text)
    assert [(d.code, message in d.message) for d in error.value.diagnostics if d.code.startswith("E")] == [(code, True)]


def test_a_query_without_a_graph_is_refused() -> None:
    with pytest.raises(DataError, match="no graph is given") as error:
        augury.run('o(X) <- a, sparql("SELECT ?x { ?x ?p ?o }", X).', [Event("a", (), 1)], clock="logical")
    assert "--rdf" in error.value.hint


def test_a_graph_is_a_path() -> None:
    with pytest.raises(RunError, match="a graph is a path"):
        augury.run(ASKS, [Event("a", (ex("x"),), 1)], rdf=[3])


def test_without_the_library_programs_compile_and_runs_say_what_is_missing(
    monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    monkeypatch.setitem(sys.modules, "pyoxigraph", None)
    program = augury.compile('o(X) <- a, sparql("SELECT ?x { ?x ?p ?o }", X).')
    with pytest.raises(RunError, match="pyoxigraph, which is not installed") as error:
        augury.run(program, [Event("a", (), 1)], clock="logical", rdf=folder / "data.nt")
    assert error.value.hint == "pip install 'augury[rdf]'"


def test_queries_give_the_values_that_they_were_asked_of() -> None:
    values: list[Value] = [Timestamp(5), Duration(1_500_000), 2.5, Iri("_:-0.a"), Term("lang", ("a", "en")), "x"]
    triples = RdfTriples.of([(ex("x"), ex("p"), value) for value in values])
    found = answers("q", "SELECT ?v { ?x ?p ?v }", lambda: triples)
    assert {fact.args[0] for fact in found} == set(values)


QUERY = """
PREFIX e: <http://ex.org/>
SELECT ?x ?y WITHIN 1 HOURS FROM STREAM S e:s WHERE {
  SEQ(A)
  DEFINE GPM A ON S { ?x e:at ?t . GRAPH e:g { ?x e:near ?y } }
}
"""


@pytest.mark.parametrize("compiled", [True, False])
def test_static_graphs_are_read_once_with_what_is_wrong_skipped(tmp_path: Path, compiled: bool) -> None:
    """GRAPH sees the terms of a file as they are written, and its lines but for the malformed ones."""
    lines = [
        f'<{EX}x> <{EX}near> "01"^^<http://www.w3.org/2001/XMLSchema#integer> <{EX}g> .',
        f"<{EX}x> <{EX}near> <b c> <{EX}g> .",
        f"<{EX}x> <{EX}near> _:y <{EX}g> .",
        f'<{EX}x> <{EX}near> "a \\"b\\"" _:other .',
    ]
    (tmp_path / "a.nq").write_text("\n".join(lines), encoding="utf-8")
    skipped = Skipped("skip")
    with mock.patch.object(rdf_files, "compiled", return_value=compiled):
        graphs = Graphs.of(tmp_path / "a.nq", skipped)
    assert len(skipped.problems) == 1 and "a.nq:2: malformed N-Quads" in skipped.problems[0]
    program = augury.compile(QUERY, language="spaseq", name="q")
    event = Event(f"<{EX}s>", (f"<{EX}x> <{EX}at> 1 .",), 1, 1, "e1")
    found = list(augury.run(program, [event], clock="logical", rdf=graphs))
    assert len(found) == 3
    assert contents(found) == contents(augury.run(program, [event], clock="logical", rdf=graphs, engine="reference"))


TRIG = f"""@prefix ex: <{EX}> .
ex:none ex:p 0 .
ex:g1 {{ ex:one ex:p 1 . ex:both ex:p 12 }}
ex:g2 {{ ex:two ex:p 2 . ex:both ex:p 12 }}
"""


@pytest.mark.parametrize(
    ("dataset", "pattern", "expected"),
    [
        ("", "{ ?x ex:p ?from }", ["both", "none", "one", "two"]),
        ("", "{ ?service ex:p ?y . BIND(?service AS ?x) }", ["both", "none", "one", "two"]),
        ("FROM <http://ex.org/g1>", "{ ?x ex:p ?y }", ["both", "one"]),
        ("FROM ex:g2", "{ ?x ex:p ?y }", ["both", "two"]),
        ("FROM ex:g1 FROM ex:g2", "{ ?x ex:p ?y }", ["both", "one", "two"]),
        ("FROM NAMED ex:g1", "{ ?x ex:p ?y }", []),
        ("FROM NAMED ex:g1", "{ GRAPH ?g { ?x ex:p ?y } }", ["both", "one"]),
        ("from # a remark\n ex:g1", "{ ?x ex:p ?y }", ["both", "one"]),
        ("FROM ex:g1 FROM ex:g2", "{ { SELECT (COUNT(*) AS ?x) { ?s ex:p ?o } } }", ["3"]),
        ("", "{ { SELECT (COUNT(*) AS ?x) { ?s ex:p ?o } } }", ["4"]),
        ("", "{ { SELECT (COUNT(*) AS ?x) { GRAPH ?g { ?s ex:p ?o } } } }", ["4"]),
        ("", "{ GRAPH ex:g1 { ?x ex:p ?y } }", ["both", "one"]),
    ],
)
def test_a_query_reads_the_graphs_that_it_names(
    dataset: str, pattern: str, expected: list[str], tmp_path: Path
) -> None:
    (tmp_path / "g.trig").write_text(TRIG)
    query = f"SELECT DISTINCT ?x {dataset} WHERE {pattern}".replace("\n", "\\n")
    program = augury.compile(f'prefix ex: <{EX}>.\nout(X) <- a, sparql("{query}", X).')
    for engine in ("embedded", "reference"):
        result = augury.run(program, [Event("a", (), 1)], clock="logical", rdf=tmp_path / "g.trig", engine=engine)
        assert sorted(str(e.args[0]).strip("<>").removeprefix(EX) for e in result) == expected


def test_a_query_of_a_graph_that_is_not_there_is_refused(tmp_path: Path) -> None:
    (tmp_path / "g.trig").write_text(TRIG)
    (tmp_path / "g.nt").write_text(f"<{EX}a> <{EX}p> <{EX}b> .\n")
    for query in ("FROM <http://ex.org/g3>", "FROM NAMED ex:g3", "FROM <g.trig>"):
        program = f'prefix ex: <{EX}>.\nout(X) <- a, sparql("SELECT ?x {query} WHERE {{ ?x ?p ?o }}", X).'
        for name, hint in (("g.trig", f"the graphs are <{EX}g1>, <{EX}g2>"), ("g.nt", "no graph has a name")):
            with pytest.raises(AuguryError) as error:
                augury.run(program, [Event("a", (), 1)], clock="logical", rdf=tmp_path / name)
            said = str(error.value)
            assert ("there is no such graph" in said and hint in said) or "<g.trig>" in query
