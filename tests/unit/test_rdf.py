"""RDF files in every form, what their literals mean, what is said about wrong ones; and RDFS by arrays against the rules."""

from __future__ import annotations

import io
import random
import socket
import sys
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import augury
from augury.core.clock import Duration, Timestamp, read_timestamp
from augury.core.errors import DataError, RunError
from augury.core.model import Iri, Term, Value
from augury.graphs.oxigraph import term_from
from augury.graphs.rdf_terms import literal_value, value_of_term
from augury.knowledge import rdf_files
from augury.knowledge.rdf import RdfTriples
from augury.knowledge.rdf_files import ENDINGS, Form, read_rdf
from augury.knowledge.rdfs import DOMAIN, RANGE, SUBCLASS, SUBPROPERTY, TYPE, VOCABULARY, Schema, Triple, closure
from augury.sources import Skipped

pytest.importorskip("pyoxigraph")

E = "http://example.org/"
XSD = "http://www.w3.org/2001/XMLSchema#"
XML_HEAD = f'<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="{E}">'
# The same three triples in every form, and a fourth in the graph <http://example.org/g> of those that have graphs.
DOCUMENTS: dict[str, str] = {
    ".ttl": f'@prefix e: <{E}> . e:a e:p e:b ; e:n 3 ; e:l "grün"@de .',
    ".nt": f'<{E}a> <{E}p> <{E}b> .\n<{E}a> <{E}n> "3"^^<{XSD}integer> .\n<{E}a> <{E}l> "grün"@de .',
    ".nq": f'<{E}a> <{E}p> <{E}b> .\n<{E}a> <{E}n> "3"^^<{XSD}integer> .\n<{E}a> <{E}l> "grün"@de .\n<{E}a> <{E}l> "a <b> c" <{E}g> .\n',
    ".trig": f'@prefix e: <{E}> . e:a e:p e:b ; e:n 3 ; e:l "grün"@de . GRAPH e:g {{ e:a e:l "a <b> c" }}',
    ".rdf": f'{XML_HEAD}<rdf:Description rdf:about="{E}a"><e:p rdf:resource="{E}b"/><e:n rdf:datatype="{XSD}integer">3</e:n>'
    '<e:l xml:lang="de">grün</e:l></rdf:Description></rdf:RDF>',
    ".jsonld": f'{{"@context": {{"@vocab": "{E}", "p": {{"@type": "@id"}}}}, "@graph": ['
    f'{{"@id": "{E}a", "p": "{E}b", "n": 3, "l": {{"@value": "grün", "@language": "de"}}}},'
    f'{{"@id": "{E}g", "@graph": [{{"@id": "{E}a", "l": "a <b> c"}}]}}]}}',
}  # fmt: skip


def iri(name: str) -> Iri:
    return Iri(E + name)


def read(folder: Path, text: str | bytes, name: str = "a.ttl", skipped: Skipped | None = None) -> RdfTriples:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return read_rdf(str(path), skipped or Skipped())


def refused(folder: Path, text: str | bytes, name: str = "a.ttl") -> DataError:
    with pytest.raises(DataError) as caught:
        read(folder, text, name)
    return caught.value


@pytest.mark.parametrize("ending", DOCUMENTS)
def test_every_form_says_the_same(tmp_path: Path, ending: str) -> None:
    found = read(tmp_path, DOCUMENTS[ending], "a" + ending)
    default = [row for row, graph in zip(found, found.graph, strict=True) if graph < 0]
    assert set(default) == {
        (iri("a"), iri("p"), iri("b")),
        (iri("a"), iri("n"), 3),
        (iri("a"), iri("l"), Term("lang", ("grün", "de"))),
    }
    named = [(*row, found.terms[graph]) for row, graph in zip(found, found.graph, strict=True) if graph >= 0]
    assert named == ([(iri("a"), iri("l"), "a <b> c", iri("g"))] if ending in (".nq", ".trig", ".jsonld") else [])
    assert len(set(map(repr, found.terms))) == len(found.terms)


def test_rdf_becomes_fact_tables(tmp_path: Path) -> None:
    found = read(tmp_path, f"<{E}a> <{E}p> 1 , 2 , 1 . <{E}a> <{E}q> true . <{E}b> <{E}p> 1.0 , 1 .")
    p, q = found.tables()
    assert (p.name, p.arity, q.name) == (E + "p", 2, E + "q")
    a, b = iri("a"), iri("b")
    assert {(f.args[0], repr(f.args[1])) for f in p} == {(a, "1"), (a, "2"), (b, "1"), (b, "1.0")} and len(p) == 4
    assert [f.args for f in q] == [(a, True)]
    assert set(p.columns[0].values) == {a, b}
    assert [t.name for t in found.tables({E + "q", E + "z"})] == [E + "q"]


@pytest.mark.parametrize(
    ("text", "datatype", "value"),
    [
        ("7", "integer", 7),
        ("-007", "integer", -7),
        ("+7", "byte", 7),
        ("9223372036854775807", "unsignedLong", 2**63 - 1),
        ("1.50", "decimal", 1.5),
        ("-0.0", "double", 0.0),
        ("1e3", "double", 1000.0),
        (".5", "float", 0.5),
        ("true", "boolean", True),
        ("0", "boolean", False),
        ("x", "string", "x"),
        ("1970-01-01T00:00:01.5", "dateTime", Timestamp(1_500_000)),
        ("1970-01-01T01:00:00+01:00", "dateTimeStamp", Timestamp(0)),
        ("1969-12-31T24:00:00Z", "dateTime", Timestamp(0)),
        ("2026-01-31", "date", Timestamp(read_timestamp("2026-01-31"))),
        ("2026-01-31+02:00", "date", Timestamp(read_timestamp("2026-01-30 22:00"))),
        ("P1DT2H3M4.5S", "dayTimeDuration", Duration(93_784_500_000)),
        ("-PT1S", "dayTimeDuration", Duration(-1_000_000)),
    ],
)
def test_rdf_literals_become_values(text: str, datatype: str, value: Value) -> None:
    found = literal_value(text, XSD + datatype)
    assert found == value and type(found) is type(value)
    assert repr(found) == repr(value)


@pytest.mark.parametrize(
    ("text", "datatype"),
    [
        ("9223372036854775808", "integer"),
        ("300", "byte"),
        ("-1", "nonNegativeInteger"),
        ("18446744073709551615", "unsignedLong"),
        (" 7", "integer"),
        ("1_000", "integer"),
        ("٣", "integer"),
        ("1e3", "decimal"),
        ("1e999", "double"),
        ("INF", "double"),
        ("NaN", "float"),
        ("TRUE", "boolean"),
        ("2026-02-30T00:00:00Z", "dateTime"),
        ("12026-01-01T00:00:00Z", "dateTime"),
        ("02026-01-01T00:00:00Z", "dateTime"),
        ("-0044-03-15T00:00:00Z", "dateTime"),
        ("2026-01-31T24:00:01Z", "dateTime"),
        ("2026-01-31T00:00:00+15:00", "dateTime"),
        ("2026-01-31T00:00:00", "dateTimeStamp"),
        ("2026-01-31T00:00:00", "date"),
        ("2026-01-31.5", "date"),
        ("P", "dayTimeDuration"),
        ("P1DT", "dayTimeDuration"),
        ("P1M", "dayTimeDuration"),
        ("PT0.0000001S", "dayTimeDuration"),
        ("P999999999D", "dayTimeDuration"),
        ("P1Y", "duration"),
        ("2026", "gYear"),
    ],
)
def test_literals_that_no_value_can_hold(text: str, datatype: str) -> None:
    assert literal_value(text, XSD + datatype) == Term("literal", (text, Iri(XSD + datatype)))


def test_languages_and_triples_in_triples(tmp_path: Path) -> None:
    found = read(tmp_path, f'<{E}a> <{E}p> "x"@EN-us , <<( <{E}a> <{E}p> "a \\" b" )>> .')
    inside = Term("triple", (iri("a"), iri("p"), 'a " b'))
    assert {o for _, _, o in found} == {Term("lang", ("x", "en-us")), inside}


def test_rdf_escapes_and_scripts_are_read(tmp_path: Path) -> None:
    text = 'a "quoted" \\ text,\na line, a\ttab, 日本語, 😀, \x7f'
    spelt = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    for name in ("a.nt", "a.ttl"):
        found = read(tmp_path, f'<{E}é> <{E}p> "{spelt}" .\n<{E}a> <{E}p\\u0041> "\\u00e9" .\n', name)
        assert list(found) == [(iri("é"), iri("p"), text), (iri("a"), iri("pA"), "é")]


def test_one_value_is_one_term(tmp_path: Path) -> None:
    same = ['"é"', '"\\u00e9"', f'"é"^^<{XSD}string>']
    for name in ("a.nt", "a.ttl"):
        found = read(tmp_path, "".join(f"<{E}a> <{E}p> {spelt} .\n" for spelt in [*same, "_:x", "_:x"]), name)
        assert len(found.terms) == 4 and found.terms[2] == "é"


def test_blank_nodes_of_two_files_never_meet(tmp_path: Path) -> None:
    text = f"_:x <{E}p> _:x . [] <{E}p> [] . _:x <{E}q> [] ."
    one, two = read(tmp_path, text, "one.ttl"), read(tmp_path, text, "two.ttl")
    both = RdfTriples.joined([one, two])
    assert set(both) == set(one) | set(two) and len(set(both)) == 6
    s, _, o = next(iter(one))
    assert s == o and isinstance(s, Iri) and s.text.startswith("_:x.")
    again = read(tmp_path, text, "one.ttl")
    assert list(again) == list(one), "names do not depend on the run"


def test_joined_terms_have_one_number(tmp_path: Path) -> None:
    one = read(tmp_path, f"<{E}a> <{E}p> 1 .", "one.ttl")
    two = read(tmp_path, f"GRAPH <{E}g> {{ <{E}b> <{E}p> 1 , 1.0 , true , '1' , <{E}a> }}", "two.trig")
    both = RdfTriples.joined([one, two])
    assert list(map(repr, both)) == [*map(repr, one), *map(repr, two)]
    assert len(set(map(repr, both.terms))) == len(both.terms)
    assert [g if g < 0 else both.terms[g] for g in both.graph.tolist()] == [-1, *[iri("g")] * 5]
    assert len(RdfTriples.joined([])) == 0 and RdfTriples.joined([]).tables() == []


def test_turtle_prefix_and_base_are_read(tmp_path: Path) -> None:
    found = read(tmp_path, f"@base <{E}> . @prefix : <#> . <a> :p <b/c> .")
    assert list(found) == [(iri("a"), Iri(E + "#p"), iri("b/c"))]


def test_a_relative_iri_is_beside_the_file(tmp_path: Path) -> None:
    [(s, _, o)] = read(tmp_path, f"<#a> <{E}p> <b c.ttl> .".replace(" c", "%20c"), "a b.ttl")
    assert s == Iri((tmp_path.resolve() / "a b.ttl").as_uri() + "#a")
    assert o == Iri((tmp_path.resolve() / "b c.ttl").as_uri())
    error = refused(tmp_path, f"<{E}a> <{E}p> <b> .", "a.nt")
    assert error.place.endswith("a.nt:1") and "whole IRI" in error.hint


@pytest.mark.parametrize(
    ("name", "text", "line", "message"),
    [
        ("a.ttl", f"<{E}a> <{E}p> 1 .\n<{E}a> e:p 1 .\n", 2, "malformed Turtle: the prefix e: has not been declared"),
        ("a.nt", f"# a\n<{E}a> <{E}p> <{E}b> .\n\n<{E}a> <{E}p> .\n", 4, "malformed N-Triples: the object of a triple"),
        ("a.nt", f"<{E}a> <{E}p> <{E}b> <{E}g> .\n", 1, "malformed N-Triples: "),
        ("a.nt", f'"x" <{E}p> <{E}b> .\n', 1, "malformed N-Triples: "),
        ("a.nt", f"<{E}a> _:p <{E}b> .\n", 1, "malformed N-Triples: "),
        ("a.nq", f"<{E}a> <{E}p> <{E}b> .\n<{E}a> <{E}p> <{E}b c> .\n", 2, "malformed N-Quads: invalid IRI code point"),
        ("a.trig", "\n{", 2, "malformed TriG: "),
        ("a.rdf", f"{XML_HEAD}\n<e:a>\n</e:b></rdf:RDF>", 3, "malformed XML: mismatched tag at column 3"),
        ("a.rdf", f"{XML_HEAD}\n<e:a></e:a>\n", 3, "malformed XML: no element found"),
        ("a.owl", f'{XML_HEAD}\n<e:a/>\n<e:a rdf:ID="b c"/>\n</rdf:RDF>', 3, "malformed RDF/XML: b c is not a valid rdf:ID"),
        ("a.jsonld", '{\n"@id": "a"', 2, "malformed JSON-LD: "),
    ],
)  # fmt: skip
def test_a_mistake_is_named_by_file_and_line(tmp_path: Path, name: str, text: str, line: int, message: str) -> None:
    error = refused(tmp_path, text, name)
    assert error.place == f"{tmp_path / name}:{line}"
    assert error.message.startswith(message)


def test_rdf_that_is_not_utf_8_is_refused(tmp_path: Path) -> None:
    for name in ("a.nt", "a.ttl"):
        error = refused(tmp_path, f'<{E}a> <{E}p> "x" .\n<{E}a> <{E}p> "'.encode() + b'\xff" .\n', name)
        assert error.place.endswith(f"{name}:2") and "UTF-8" in error.message


@pytest.mark.parametrize("name", ["a.nt", "a.nq", "a.ttl", "a.trig"])
def test_a_malformed_statement_is_skipped_by_itself(tmp_path: Path, name: str) -> None:
    skipped = Skipped("skip")
    text = f"<{E}a> <{E}p> <{E}b> .\n<{E}a> <{E}p> <b c> .\n<{E}a> <{E}p> <{E}c> .\n"
    found = read(tmp_path, text, name, skipped)
    assert [o for _, _, o in found] == [iri("b"), iri("c")]
    assert len(skipped.problems) == 1 and skipped.problems[0].startswith(f"{tmp_path / name}:2: malformed")


@pytest.mark.parametrize("name", ["a.rdf", "a.jsonld"])
def test_a_malformed_document_is_skipped_whole(tmp_path: Path, name: str) -> None:
    skipped = Skipped("skip")
    assert len(read(tmp_path, DOCUMENTS[name[1:]][:-1], name, skipped)) == 0
    assert len(skipped.problems) == 1


def test_missing_rdf_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file"):
        read_rdf(str(tmp_path / "none.ttl"), Skipped("skip"))
    (tmp_path / "folder.ttl").mkdir()
    with pytest.raises(DataError, match="is a directory"):
        read_rdf(str(tmp_path / "folder.ttl"), Skipped("skip"))


def test_unknown_rdf_file_ending_is_refused(tmp_path: Path) -> None:
    error = refused(tmp_path, "", "a.txt")
    assert all(ending in error.hint for ending in ENDINGS)


def test_standard_input_and_a_given_form(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = DOCUMENTS[".ttl"]
    (tmp_path / "a.txt").write_text(text, encoding="utf-8")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    form: Form = "Turtle"
    assert list(read_rdf("-", Skipped(), form)) == list(read_rdf(str(tmp_path / "a.txt"), Skipped(), form))


@pytest.mark.parametrize(
    "context",
    ['"http://schema.org/"', '[{"n": "http://n/"}, "http://schema.org/"]', '{"@import": "http://schema.org/"}'],
)
def test_a_remote_context_is_not_fetched(tmp_path: Path, context: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def connect(*_: Any) -> None:
        raise AssertionError("went to the network")

    monkeypatch.setattr(socket.socket, "connect", connect)
    error = refused(tmp_path, f'{{\n"@context": {context},\n"@id": "http://a/", "n": 1}}', "a.jsonld")
    assert error.message == "its @context is in another document, which is not fetched: http://schema.org/"
    assert error.place.endswith("a.jsonld:2")
    error = refused(tmp_path, f'{{"@context": {context}, "n": 1}} and more', "a.jsonld")
    assert "not fetched" in error.message or "malformed" in error.message


def test_empty_rdf_files_have_no_triples(tmp_path: Path) -> None:
    for name in ("a.nt", "a.nq", "a.ttl", "a.trig"):
        for text in ("", "\n", "# nothing\n"):
            assert len(read(tmp_path, text, name)) == 0
    for name in ("a.rdf", "a.jsonld"):
        assert refused(tmp_path, "", name).message == "is empty"


def test_a_byte_order_mark(tmp_path: Path) -> None:
    for ending, text in DOCUMENTS.items():
        assert set(read(tmp_path, "\ufeff" + text, "a" + ending)) == set(read(tmp_path, text, "a" + ending))


def test_rdf_without_pyoxigraph_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyoxigraph", None)
    with pytest.raises(RunError, match=r"pip install 'augury\[rdf\]'"):
        read(tmp_path, "")


WORDS = st.text(alphabet='ab<>"\\ .@^_:é\n\t#', max_size=6)


@given(
    st.lists(st.tuples(WORDS, st.sampled_from(["", "@en", "@en-GB-x-a", f"^^<{XSD}token>"]), st.booleans()), max_size=6)
)
@example(
    [(text, kind, named) for text in ("a <b", "a _:b", "a <b>") for kind in ("", "@en") for named in (True, False)]
)
@settings(max_examples=60, deadline=None)
def test_lines_are_read_as_pyoxigraph_reads_them(tmp_path_factory: pytest.TempPathFactory, rows: list[Any]) -> None:
    import pyoxigraph as ox

    lines = []
    for text, kind, named in rows:
        spelt = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        lines.append(f'<{E}a> <{E}p> "{spelt}"{kind}{f" <{E}g>" if named else ""} .\n')
    folder = tmp_path_factory.mktemp("rdf")
    expected = [
        (value_of_term(term_from(q.object)), isinstance(q.graph_name, ox.NamedNode))
        for q in ox.parse("".join(lines), ox.RdfFormat.N_QUADS)
    ]
    for compiled in (True, False):
        with mock.patch.object(rdf_files, "compiled", return_value=compiled):
            found = read(folder, "".join(lines), "a.nq")
        assert [(o, g >= 0) for (_, _, o), g in zip(found, found.graph, strict=True)] == expected


@pytest.mark.parametrize("on_error", ["stop", "skip"])
def test_rdf_is_read_in_chunks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, on_error: Any) -> None:
    monkeypatch.setattr(rdf_files, "CHUNK", 100)
    monkeypatch.setattr(rdf_files, "BATCH", 3)
    lines = [f'<{E}a{i % 3}> <{E}p> "{i}\\t{"x" * (7 * i % 90)}" .\n' for i in range(50)]
    whole = read(tmp_path, "".join(lines), "a.nt", Skipped(on_error))
    assert list(whole) == list(read(tmp_path, "".join(lines), "a.ttl", Skipped(on_error)))
    assert len(whole) == 50
    lines[40] = "wrong\n"
    skipped = Skipped(on_error)
    if on_error == "stop":
        assert refused(tmp_path, "".join(lines), "a.nt").place.endswith("a.nt:41")
    else:
        assert len(read(tmp_path, "".join(lines), "a.nt", skipped)) == 49 and "a.nt:41: " in skipped.problems[0]


# RDFS


def entailed(rows: set[Triple]) -> set[Triple]:
    """What follows by arrays, with all types."""
    schema = Schema(RdfTriples.of(rows))
    pairs = schema.pairs()
    if len(schema.types[0]):
        number = next(p for p in pairs if schema.terms[p] == TYPE)
        pairs[number] = schema.types_expanded()
    found: list[Triple] = []
    for p, (subjects, objects) in pairs.items():
        for s, o in zip(subjects.tolist(), objects.tolist(), strict=True):
            found.append((schema.terms[s], schema.terms[p], schema.terms[o]))
    assert len(found) == len(set(found)), "every triple once"
    return set(found)


def test_the_six_rdfs_rules() -> None:
    a, b, p, q, c, d = (iri(x) for x in "abpqCD")
    assert entailed({(p, DOMAIN, c), (a, p, "x")}) >= {(a, TYPE, c)}
    assert entailed({(p, RANGE, c), (a, p, b), (a, p, "x")}) == {(p, RANGE, c), (a, p, b), (a, p, "x"), (b, TYPE, c)}
    assert (a, q, b) in entailed({(p, SUBPROPERTY, q), (a, p, b)})
    assert (a, TYPE, d) in entailed({(c, SUBCLASS, d), (a, TYPE, c)})
    assert (a, SUBCLASS, d) in entailed({(a, SUBCLASS, c), (c, SUBCLASS, d)})
    assert (a, TYPE, d) in entailed({(p, SUBPROPERTY, TYPE), (a, p, c), (q, SUBPROPERTY, SUBCLASS), (c, q, d)})


def test_columns_are_shared_where_nothing_is_below() -> None:
    triples = RdfTriples.of(
        [(iri("a"), iri("p"), iri("b")), (iri("q"), SUBPROPERTY, iri("r")), (iri("a"), iri("q"), 1)]
    )
    found = Schema(triples).pairs()
    p = next(i for i, t in enumerate(triples.terms) if t == iri("p"))
    assert found[p] is triples.pairs[p]
    assert {t.name for t in Schema(triples).tables()} == {E + "p", E + "q", E + "r", SUBPROPERTY.text}


NODES: list[Value] = [*(iri(x) for x in "abcd"), Iri("_:b"), *VOCABULARY]
TRIPLES = st.tuples(st.sampled_from(NODES), st.sampled_from([*NODES[:4], *VOCABULARY]), st.sampled_from([*NODES, "x"]))
SCHEMATIC = st.tuples(st.sampled_from(NODES), st.sampled_from(VOCABULARY), st.sampled_from(NODES))


@given(st.sets(TRIPLES | SCHEMATIC, max_size=7))
@settings(max_examples=400, deadline=None)
def test_arrays_find_what_the_rules_find(rows: set[Triple]) -> None:
    assert entailed(rows) == closure(rows)


def test_arrays_find_what_the_rules_find_in_a_larger_graph() -> None:
    chance = random.Random(3)
    classes, properties, things = ([iri(f"{k}{i}") for i in range(8)] for k in "Cpx")
    for _ in range(3):
        rows: set[Triple] = {(chance.choice(classes), SUBCLASS, chance.choice(classes)) for _ in range(7)}
        rows |= {(chance.choice(properties), SUBPROPERTY, chance.choice(properties)) for _ in range(5)}
        rows |= {(chance.choice(properties), k, chance.choice(classes)) for k in (DOMAIN, RANGE) for _ in range(3)}
        rows |= {(chance.choice(things), chance.choice(properties), chance.choice(things)) for _ in range(15)}
        assert entailed(rows) == closure(rows)


NESTED = {
    "deep.jsonld": lambda n: '{"@id": "http://e/a", "http://e/p": ' * n + '"{"' + "}" * n,
    "deep.rdf": lambda n: (
        '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://e/">'
        + "<e:C><e:p>" * n
        + "</e:p></e:C>" * n
        + "</rdf:RDF>"
    ),
    "deep.ttl": lambda n: "@prefix e: <http://e/>.\ne:a e:p " + "<<( e:a e:p " * n + "1" + ")>>" * n + " .",
    "deep.nt": lambda n: "<http://e/a> <http://e/p> " + "<<( <http://e/a> <http://e/p> " * n + '"x"' + ")>>" * n + " .",
}


@pytest.mark.parametrize("name", NESTED)
def test_deep_nesting_is_said_so(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(NESTED[name](30_000), encoding="utf-8")
    with pytest.raises(augury.DataError, match="nested more than 500 deep"):
        augury.run("e(X) <- a(X).", [{"type": "a", "args": [1], "time": 1}], rdf=str(path))


@pytest.mark.parametrize("name", ["deep.jsonld", "deep.rdf"])
def test_some_nesting_is_fine(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(NESTED[name](200), encoding="utf-8")
    rule = "prefix e: <http://e/>.\nfound(X) <- a(X) WHERE e:p(_, _)."
    assert len(augury.run(rule, [{"type": "a", "args": [1], "time": 1}], rdf=str(path))) == 1


def test_angle_brackets_in_text_are_no_nesting(tmp_path: Path) -> None:
    path = tmp_path / "text.ttl"
    path.write_text(
        "@prefix e: <http://e/>.\n" + 'e:a e:p \'<<<<<<<\', """<< \' <<""" . # <<\n' * 300, encoding="utf-8"
    )
    rule = "prefix e: <http://e/>.\nfound(X) <- a(_) WHERE e:p(_, X)."
    assert len(augury.run(rule, [{"type": "a", "args": [1], "time": 1}], rdf=str(path))) == 2
