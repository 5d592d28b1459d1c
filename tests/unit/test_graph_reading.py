"""Texts of graphs as triples: the kernel reads what the parser reads, and leaves to it what it does not know."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

pytest.importorskip("pyoxigraph")

from augury.algebra.sparql_algebra import ALL, XSD, Blank, Literal, RdfTerm, Triple, TripleNeeds
from augury.core.clock import Duration, Timestamp
from augury.core.model import Iri, Term
from augury.graphs import graph_texts as read_module
from augury.graphs import keys as keys_module
from augury.graphs import rdf_terms as terms_module
from augury.graphs.classify import UNSURE
from augury.graphs.graph_texts import Read, read
from augury.graphs.rdf_terms import UNBOUND, Terms, key_of, term_of, term_of_key, worth_of


@contextmanager
def kernels(used: bool) -> Iterator[None]:
    """Kernels as they are written, or none."""
    with (
        mock.patch.object(read_module, "compiled", return_value=used),
        mock.patch.object(keys_module, "compiled", return_value=used),
        mock.patch.object(terms_module, "compiled", return_value=used),
        mock.patch.object(read_module, "expect_work"),
    ):
        yield


Rows = set[tuple[int, RdfTerm, RdfTerm, RdfTerm]]


def rows_of(found: Read, terms: Terms) -> Rows:
    t = found.triples
    assert (np.diff(t.event) >= 0).all()
    columns = zip(t.event.tolist(), t.subject.tolist(), t.predicate.tolist(), t.object.tolist(), strict=True)
    rows = [(event, terms.term(s), terms.term(p), terms.term(o)) for event, s, p, o in columns]
    assert len(set(rows)) == len(rows), "each triple is there once"
    return set(rows)


def both_ways(texts: list[str], needs: TripleNeeds = ALL) -> tuple[Rows, list[str]]:
    """What is read by the kernel, after it was found to be what the parser reads."""
    results = []
    for used in (True, False):
        with kernels(used):
            terms = Terms()
            terms.number(Iri("http://e/known"))
            found = read(pa.array(texts, pa.string()), terms, needs, names=[f"e{i}" for i in range(len(texts))])
            results.append((rows_of(found, terms), [str(one) for one in found.malformed]))
    assert results[0] == results[1]
    return results[0]


iris = st.sampled_from(
    ["<http://e/a>", "<http://e/b>", "<http://e/known>", "<urn:x:1>", "<http://h:80/p?q=1#f>", "<http://e/%41>", "<http://e/é>", "<mailto:a@b>"]
)  # fmt: skip
odd_iris = st.sampled_from(
    [
        "<a>",
        "<http://e/ a>",
        "<http://e/%4>",
        "<a_b:c>",
        "<http://h:8x/>",
        "<x:>",
        "<http://>",
        "<>",
        "<http://[::1]/>",
        "<1:a>",
    ]
)
blanks = st.sampled_from(["_:x", "_:y1", "_:xx", "_:a.b", "_:-", "_:é"])
plain = st.text(alphabet="ab é\"\\\n\t'", max_size=4)
texts = plain.map(lambda s: s.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n"))
datatypes = st.sampled_from(["integer", "string", "double", "boolean", "dateTime"]).map(lambda name: f"^^<{XSD}{name}>")
suffixes = st.one_of(
    st.just(""), datatypes, st.sampled_from(["@en", "@en-US", "@EN", "@de-x", "@e", "@abcd", "@en--ltr", "^^<a>", "^^<http://www.w3.org/1999/02/22-rdf-syntax-ns#langString>"])
)  # fmt: skip
literals = st.builds('"{}"{}'.format, texts, suffixes)
nodes = st.one_of(iris, iris, blanks, odd_iris)
objects = st.one_of(
    nodes, literals, literals, st.sampled_from(["1", "true", "'a'", '"""a"""', "[]", "<<( <a:a> <a:b> 1 )>>"])
)
spaces = st.sampled_from([" ", " ", " ", "\t", "  ", "", "\n", " # c\n"])
stops = st.sampled_from([" .\n", " .\n", ".\n", " .", " . ", " .\r\n", "", " ;\n", " . # note\n"])
lines = st.builds(
    "{}{}{}{}{}{}".format, nodes, spaces, st.one_of(iris, iris, odd_iris, st.just("a")), spaces, objects, stops
)
good_lines = st.builds("{} {} {} .\n".format, st.one_of(iris, st.just("_:x")), iris, st.one_of(iris, st.just('"a"'), st.just('"1"^^<http://www.w3.org/2001/XMLSchema#integer>')))  # fmt: skip
documents = st.one_of(st.lists(good_lines, max_size=4), st.lists(lines, max_size=3)).map("".join)


@given(st.lists(documents, max_size=4), st.booleans())
@example(['<http://e/a> <http://e/b> "".'], True)
@example(['<http://e/a> <http://e/b> """a""" .'], True)
@example(["_:x <http://e/b> _:xx .\n_:xx <http://e/b> _:x .\n"], True)
@example(["<http://e/a> <http://e/b> <http://e/a> . " * 40], True)
@example(["@prefix : <http://e/> . :a :b [ :c 1 ] ."], False)
def test_the_kernel_reads_what_the_parser_reads(batch: list[str], every: bool) -> None:
    both_ways(batch, ALL if every else TripleNeeds(frozenset({Iri("http://e/b"), Iri("http://e/known")})))


@given(st.lists(good_lines, min_size=1, max_size=3).map("".join), st.data())
def test_texts_that_are_damaged_are_read_alike(text: str, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(text) - 1))
    byte = data.draw(st.one_of(st.sampled_from(list(' <>"\\_:.@^#\n\r\t%[]{}|`é\x00\x7f')), st.characters()))
    how = data.draw(st.sampled_from(["insert", "replace", "remove"]))
    damaged = text[:at] + ("" if how == "remove" else byte) + text[at + (how != "insert") :]
    if not any("\ud800" <= c <= "\udfff" for c in damaged):
        both_ways([text, damaged, text])


def test_only_what_is_needed_is_known() -> None:
    text = '<http://e/a> <http://e/p> "x" . <http://e/b> <http://e/q> "y" .'
    for used in (True, False):
        with kernels(used):
            terms = Terms()
            found = read([text, text], terms, TripleNeeds(frozenset({Iri("http://e/p")})))
            assert len(found.triples) == 2
            assert len(terms) == 3


def test_what_is_malformed_is_named() -> None:
    for used in (True, False):
        with kernels(used):
            found = read(
                ["<http://e/a> <http://e/p> 1 .", "<http://e/a> <http://e/p> 1 .\n<a> <http://e/p> 1 ."],
                Terms(),
                TripleNeeds(),
            )
            assert [str(one) for one in found.malformed] == [
                "event 1, line 2: malformed RDF: no scheme found in an absolute IRI at column 1"
            ]


def test_blank_nodes_belong_to_their_event() -> None:
    texts = ["_:x <http://e/p> _:y .", "_:x <http://e/p> _:x ."]
    rows, _ = both_ways(texts)
    assert {row[1] for row in rows} == {Blank("x.e0"), Blank("x.e1")}
    terms = Terms()
    first, second = read(texts[:1], terms).triples, read(texts[:1], terms).triples
    assert first.subject[0] != second.subject[0]


def test_slices_and_chunks_of_arrow() -> None:
    texts = [f"<http://e/{i}> <http://e/p> <http://e/o> ." for i in range(6)]
    with kernels(True):
        for column in (
            pa.array(texts)[2:5],
            pa.chunked_array([texts[2:3], texts[3:5]]),
            pa.array(texts, pa.large_string())[2:5],
            texts[2:5],
        ):
            terms = Terms()
            rows = rows_of(read(column, terms), terms)
            assert sorted((event, str(s)) for event, s, _, _ in rows) == [(i - 2, f"<http://e/{i}>") for i in (2, 3, 4)]


# Terms


numbers = st.one_of(
    st.integers().map(str),
    st.integers(-(10**17), 10**17).map(str),
    st.floats().map(repr),
    st.decimals(allow_nan=False, allow_infinity=False, places=3).map(str),
    st.from_regex(r"[+-]?[0-9]{0,20}(\.[0-9]{0,20})?([eE][+-]?[0-9]{1,4})?", fullmatch=True),
)
times = st.one_of(
    st.datetimes().map(lambda t: t.isoformat()),
    st.from_regex(
        r"(19|20)[0-9]{2}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-6][0-9](\.[0-9]{1,7})?(Z|[+-][01][0-9]:[0-6][0-9])?",
        fullmatch=True,
    ),
)
typed = st.one_of(
    st.builds(Literal, numbers, st.sampled_from(["integer", "decimal", "double", "float", "byte", "unsignedLong", "negativeInteger", "other"]).map(XSD.__add__)),
    st.builds(Literal, times, st.just(XSD + "dateTime")),
    st.builds(Literal, st.sampled_from(["true", "false", "1", "0", "yes", ""]), st.just(XSD + "boolean")),
    st.builds(Literal, st.text()),
    st.builds(Iri, st.just("http://e/a")),
    st.builds(Blank, st.just("x")),
)  # fmt: skip


@given(st.lists(typed, min_size=1))
def test_the_kernel_knows_what_terms_stand_for(listed: list[RdfTerm]) -> None:
    terms = Terms()
    terms.numbers(listed)
    results = []
    for used in (True, False):
        with kernels(used):
            results.append(worth_of(terms.keys, 0))
    for a, b in zip(*(worth.columns for worth in results), strict=True):
        np.testing.assert_array_equal(a, b)
    assert (results[0].family != UNSURE).all()
    first, second = (np.signbit(worth.number) for worth in results)
    np.testing.assert_array_equal(first, second)


everything = st.recursive(
    st.one_of(typed, st.builds(Literal, st.text(), st.just("http://www.w3.org/1999/02/22-rdf-syntax-ns#langString"), st.just("en"))),
    lambda inner: st.builds(Triple, st.just(Iri("a:a")), st.just(Iri("a:b")), inner),
    max_leaves=2,
)  # fmt: skip


@given(st.lists(everything, unique=True), st.booleans())
def test_terms_have_numbers_and_are_found_by_them(listed: list[RdfTerm], used: bool) -> None:
    with kernels(used):
        terms = Terms()
        found = terms.numbers(listed)
        assert sorted(found.tolist()) == list(range(len(listed)))
        assert terms.terms(found) == listed
        assert [terms.find(one) for one in listed] == found.tolist()
        assert all(term_of_key(key_of(one)) == one for one in listed)
        assert terms.find(Iri("http://e/unknown")) == UNBOUND
        places = terms.retain(found[::2])
        assert terms.terms(places[found[::2]]) == listed[::2]
        assert (places[found[1::2]] == UNBOUND).all()
        assert [terms.number(one) for one in listed[::2]] == places[found[::2]].tolist()
        assert Terms.restored(terms.state()).terms(range(len(terms))) == terms.terms(range(len(terms)))


def test_values_survive_a_round_trip_through_terms() -> None:
    terms = Terms()
    for value in (
        1,
        2.5,
        "a",
        True,
        Iri("http://e/a"),
        Iri("_:x"),
        Term("lang", ("a", "en")),
        Timestamp(1_500_000),
        Duration(-1_500_000),
    ):
        assert terms.value(terms.number(term_of(value))) == value
