"""Graph events from files and objects: JSON lines, N-Quads, TriG, JSON-LD, and triples of Python."""

from __future__ import annotations

import json
from pathlib import Path
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest

pytest.importorskip("pyoxigraph")
pytest.importorskip("rdflib")

import augury
from augury.core.clock import Clock
from augury.core.errors import DataError
from augury.core.jit import Kernel
from augury.core.model import Event, Iri, Revocation
from augury.sources import Skipped, SourceFile
from augury.sources.graph_events import GraphColumns
from augury.sources.python_cells import PlainCells
from augury.sources.reader import Reader
from augury.storage.column import Coded, joined

STREAM = "<http://e/s>"
QUERY = """PREFIX e: <http://e/>
SELECT ?s ?p WITHIN 10 SECONDS FROM STREAM S <http://e/s>
WHERE { SEQ(A) DEFINE GPM A ON S { ?s e:price ?p } }
"""
PROGRAM = augury.compile(QUERY, language="spaseq", name="prices")
GRAPH = '<http://e/a> <http://e/price> "5"^^<http://www.w3.org/2001/XMLSchema#integer> .\n'


def items(source: object, skipped: Skipped | None = None) -> list[Event | Revocation]:
    """What is read of a source, in the order in which it comes."""
    reader = Reader(PROGRAM.plan, Clock("logical"), skipped)
    history = reader.source(source) if isinstance(source, SourceFile) else reader.listed(source)  # type: ignore[arg-type]
    return list(history.items())


def graph_event(time: int, id: str = "", graph: str = GRAPH) -> Event:
    return Event(STREAM, (graph,), time, id=id)


def written(path: Path, text: str) -> SourceFile:
    path.write_text(text, encoding="utf-8")
    return SourceFile(str(path))


def lines(*objects: object) -> str:
    return "".join(json.dumps(one) + "\n" for one in objects)


@pytest.mark.parametrize("compiled", [True, False])
def test_graph_events_from_json_lines(tmp_path: Path, compiled: bool) -> None:
    """The same events, be the lines read as columns or one by one."""
    given = [{"stream": "http://e/s", "time": t, "graph": GRAPH, "id": f"e{t}"} for t in (3, 4)]
    expected = [graph_event(3, "e3"), graph_event(4, "e4")]
    with mock.patch.object(Kernel, "compiled", compiled):
        assert items(written(tmp_path / "e.jsonl", lines(*given))) == expected
        mixed = [given[0], {"op": "revoke", "id": "e3"}, given[1]]
        assert items(written(tmp_path / "e.jsonl", lines(*mixed))) == [expected[0], Revocation("e3"), expected[1]]
    assert items(given) == expected


def test_what_is_malformed_is_named_and_may_be_skipped(tmp_path: Path) -> None:
    wrong = {"stream": "http://e/s", "time": 4, "graph": "<http://e/a> <b> 1 ."}
    given = [
        {"stream": "http://e/s", "time": 3, "graph": GRAPH},
        wrong,
        {"stream": "http://e/s", "time": 5, "graph": GRAPH},
    ]
    source = written(tmp_path / "e.jsonl", lines(*given))
    with pytest.raises(DataError, match=r"e.jsonl:2: malformed RDF in line 1 of the graph: no scheme found"):
        items(source)
    skipped = Skipped("skip")
    assert [event.start for event in items(source, skipped) if isinstance(event, Event)] == [3, 5]
    assert len(skipped.problems) == 1
    with pytest.raises(DataError, match="malformed RDF"):
        items([graph_event(3), graph_event(4, graph="<b> .")])
    with pytest.raises(DataError, match="malformed RDF"):
        items([{"type": STREAM, "args": ["<b> ."], "time": 3}])
    with pytest.raises(DataError, match="`graph` is declared as string, but is 5"):
        items([{"type": STREAM, "args": [5], "time": 3}])


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"stream": "e", "time": 3, "graph": ""}, "the stream of a graph event is an IRI"),
        ({"stream": "http://e/s", "time": 3}, "a graph event has a graph"),
        ({"stream": "http://e/s", "time": 3, "graph": 5}, "the graph of a graph event is text"),
        ({"stream": "http://e/s", "start": 3, "end": 4, "graph": ""}, "a graph event has one time"),
        ({"stream": "http://e/s", "time": 3, "graph": [[1, 2]]}, "a triple has a subject, a predicate and an object"),
        ({"stream": "http://e/s", "time": 3, "graph": [["a", "b", "c"]]}, "are IRIs, not"),
    ],
)
def test_malformed_graph_objects_are_refused(wrong: dict[str, object], message: str) -> None:
    with pytest.raises(DataError, match=message):
        items([wrong, wrong])


def test_graph_events_from_python_triples() -> None:
    triples = [
        ("http://e/a", "<http://e/price>", 5),
        (Iri("http://e/a"), "http://e/name", 'a "b"\n\\'),
        ("_:x", "http://e/of", Iri("http://e/a")),
        ("_:x", "http://e/of", "<http://e/b>"),
        ("_:x", "http://e/of", '"c"@en'),
        ("http://e/a", "http://e/ok", True),
    ]
    (event,) = items([{"stream": "http://e/s", "time": 3, "graph": triples}])
    assert isinstance(event, Event)
    import pyoxigraph as ox

    found = [(q.subject.value, q.object.value) for q in ox.parse(str(event.args[0]).encode(), ox.RdfFormat.N_TRIPLES)]
    assert found == [
        ("http://e/a", "5"),
        ("http://e/a", 'a "b"\n\\'),
        ("x", "http://e/a"),
        ("x", "http://e/b"),
        ("x", "c"),
        ("http://e/a", "true"),
    ]


N_QUADS = """<http://e/a> <http://e/price> "5"^^<http://www.w3.org/2001/XMLSchema#integer> <http://e/g/3> .
<http://e/b> <http://e/price> _:x <http://e/g/4> .
<http://e/a> <http://e/price> "6" <http://e/g/3> .
<http://e/ignored> <http://e/price> "6" .
"""
TRIG = """@prefix : <http://e/> .
:g1 { :a :price 5 . :g1 :at 3 }
:g2 { :b :price [ :is 1 ] }
:g2 :at 4 .
"""
JSON_LD = (
    """[{"@context": {"@vocab": "http://e/"}, "@id": "http://e/g/7", "@graph": [{"@id": "http://e/a", "price": 5}]}]"""
)


def test_named_graphs_whose_names_end_in_their_times(tmp_path: Path) -> None:
    written(tmp_path / "e.nq", N_QUADS)
    first, second = items(SourceFile.parse(f"{STREAM}={tmp_path / 'e.nq'}"))
    assert isinstance(first, Event) and isinstance(second, Event)
    assert (first.type, first.start, first.id) == (STREAM, 3, "http://e/g/3")
    assert first.args == (GRAPH + '<http://e/a> <http://e/price> "6" .\n',)
    assert (second.start, second.args) == (4, ("<http://e/b> <http://e/price> _:x .\n",))
    written(tmp_path / "e.jsonld", JSON_LD)
    (found,) = items(SourceFile.parse(f"{STREAM}={tmp_path / 'e.jsonld'}"))
    assert found == graph_event(7, "http://e/g/7")


def test_named_graphs_with_a_time_predicate(tmp_path: Path) -> None:
    written(tmp_path / "e.trig", TRIG)
    source = SourceFile.parse(f"{STREAM}={tmp_path / 'e.trig'}", time_predicate="http://e/at")
    first, second = items(source)
    assert isinstance(first, Event) and isinstance(second, Event)
    assert (first.start, first.id) == (3, "http://e/g1")
    assert "<http://e/at>" in str(first.args[0])
    assert (second.start, second.id) == (4, "http://e/g2")
    assert "<http://e/at>" not in str(second.args[0])
    assert items(source) == [first, second], "blank nodes have the same names every time"


def test_times_of_the_calendar_at_the_end_of_a_name(tmp_path: Path) -> None:
    text = '<http://e/a> <http://e/price> "5" <urn:event:2026-07-01T12:00:00Z> .\n'
    source = written(tmp_path / "e.nq", text)
    result = augury.run(PROGRAM, augury.read(source.path, type=STREAM))
    assert [event.args for event in result] == [(Iri("http://e/a"), "5")]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("e.nq", "<http://e/a> <http://e/p> 1 <http://e/g/3> .\n", "e.nq:1: malformed N-Quads: "),
        ("e.trig", "@prefix : <http://e/> .\n:g/3 { :a :p }", "e.trig:2: malformed TriG: "),
        ("e.jsonld", "[", "malformed JSON-LD: "),
        ("e.trig", "<http://e/a> <http://e/p> 1 .", "has no named graphs"),
        ("e.nq", "<http://e/a> <http://e/p> <http://e/b> <http://e/g> .\n", "the graph `http://e/g` has a name that ends in no time"),
    ],
)  # fmt: skip
def test_malformed_graph_files_are_refused(tmp_path: Path, name: str, text: str, message: str) -> None:
    written(tmp_path / name, text)
    with pytest.raises(DataError, match=message):
        items(SourceFile.parse(f"{STREAM}={tmp_path / name}"))


def test_a_malformed_line_may_be_skipped(tmp_path: Path) -> None:
    text = "<http://e/a> <http://e/p> 1 <http://e/g/3> .\n" + N_QUADS
    written(tmp_path / "e.nq", text)
    skipped = Skipped("skip")
    assert len(items(SourceFile.parse(f"{STREAM}={tmp_path / 'e.nq'}"), skipped)) == 2
    assert len(skipped.problems) == 1 and "e.nq:1: malformed N-Quads" in skipped.problems[0]


def test_the_stream_of_named_graphs_has_to_be_said(tmp_path: Path) -> None:
    written(tmp_path / "e.nq", N_QUADS)
    with pytest.raises(DataError, match="is N-Quads, whose graphs are events, but no stream is named"):
        items(SourceFile(str(tmp_path / "e.nq")))


def test_rdf_beside_tables_is_knowledge(tmp_path: Path) -> None:
    written(tmp_path / "e.jsonl", lines({"stream": "http://e/s", "time": 3, "graph": GRAPH}))
    written(tmp_path / "known.nq", N_QUADS)
    assert len(items(SourceFile(str(tmp_path)))) == 1


def test_rdf_is_no_table_of_facts(tmp_path: Path) -> None:
    path = written(tmp_path / "f.nq", N_QUADS).path
    program = augury.compile("static f(x: int). a(X) <- b(X) WHERE f(X).")
    with pytest.raises(DataError, match="is an RDF file, not a table of facts"):
        augury.run(program, [{"type": "b", "args": [1], "time": 1}], facts={"f": augury.read(path)})  # type: ignore[arg-type]


PAIRS = """
PREFIX e: <http://e/>
SELECT ?x ?p ?q WITHIN 3 SECONDS FROM STREAM S <http://e/s>
WHERE { SEQ(A; B) DEFINE GPM A ON S { ?x e:p ?p } DEFINE GPM B ON S { ?x e:p ?q FILTER(?q > ?p) } }
"""


@pytest.mark.parametrize("blank", [False, True])
def test_a_table_of_graphs_says_what_its_rows_say(blank: bool) -> None:
    """Tables are read ahead, with numbers of terms of their own; single events when they are looked at."""
    program = augury.compile(PAIRS, language="spaseq", name="q")
    subject = "_:b" if blank else "<http://e/x>"
    rows = [
        (t, f'{subject} <http://e/p> "{t * 7 % 5}"^^<http://www.w3.org/2001/XMLSchema#integer> .') for t in range(9)
    ]
    rows += [(4, rows[2][1]), (7, "<http://e/x> <http://e/p> 2.5 ; <http://e/q> [] .")]
    single = program.session(clock="logical", lateness="1s")
    for time, graph in rows:
        single.push({"stream": "http://e/s", "time": time, "graph": graph})
    tables = program.session(clock="logical", lateness="1s")
    for lo, hi in ((0, 4), (4, 9), (9, 11)):
        times, graphs = zip(*rows[lo:hi], strict=True)
        tables.push({"<http://e/s>": pa.table({"time": times, "graph": graphs})})
        tables = program.restore(tables.snapshot())
    assert [e.content for e in tables.events()] == [e.content for e in single.events()]
    assert tables.late_count == single.late_count == 1
    assert blank or len(tables.events()) > 3


def test_graphs_of_a_history_in_parts() -> None:
    """Parts that were read with different terms are one column."""
    parts = [read_ahead([f"<http://e/{n}> <http://e/p> <http://e/{n + 1}> ."] * 2) for n in range(3)]
    column = joined(parts)
    triples, terms = column.values.read.triples.of_events(column.index), column.values.read.terms
    found = [
        (e, *map(str, terms.terms((s, o))))
        for e, s, o in zip(triples.event.tolist(), triples.subject, triples.object, strict=True)
    ]
    assert found == [(e, f"<http://e/{e // 2}>", f"<http://e/{e // 2 + 1}>") for e in range(6)]
    assert list(column[np.array([5, 0])]) == [column[5], column[0]]


def read_ahead(texts: list[str]) -> Coded:
    plan = augury.compile(PAIRS, language="spaseq", name="q").plan
    return GraphColumns(plan).column("<http://e/s>", PlainCells(texts))
