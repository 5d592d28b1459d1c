"""SPAseQ: the reference evaluator beside a second reading of the semantics, the printer, and what no spec file can say."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from click.testing import CliRunner

import augury
from augury import sinks
from augury.cli import cli
from augury.core.clock import Clock
from augury.core.errors import Findings, Source
from augury.core.model import Iri
from augury.knowledge.graphs import Graphs
from augury.language.spaseq.query_printer import show_query
from augury.language.spaseq.query_reader import read_query
from augury.reference import evaluate, static_graphs
from augury.sinks.jsonl import event_as_json
from tests.generators.spaseq_programs import (
    Answer,
    GraphSpec,
    Spec,
    answers,
    choosing,
    example,
    static_knowledge,
    varied,
)

SEEDS = range(3000 if os.environ.get("AUGURY_FUZZ") else 70)
LOGICAL = Clock("logical")


def reference(spec: Spec, events: list[GraphSpec], until: int | None = None) -> set[Answer]:
    program = augury.compile(spec.text, language="spaseq", name="q")
    graphs = static_graphs(Graphs.of(static_knowledge()), program.plan)
    model = evaluate(program.plan, [event.event for event in events], LOGICAL, until=until, graphs=graphs)
    return {(e.args, e.start, e.end) for e in model.events}


@pytest.mark.parametrize("make", [example, varied, choosing])
@pytest.mark.parametrize("seed", SEEDS)
def test_two_readings_of_the_semantics_agree(seed: int, make: Callable[[int], tuple[Spec, list[GraphSpec]]]) -> None:
    spec, events = make(seed)
    until = Random(seed).choice((None, 3, 20))
    assert reference(spec, events, until) == answers(spec, events, until), spec.text


def test_enough_examples_have_answers() -> None:
    found = [answers(*example(seed)) for seed in range(120)]
    assert sum(bool(one) for one in found) > 30
    assert sum(len(one) > 3 for one in found) > 12
    made = [varied(seed) for seed in range(120)]
    found = [answers(*one) for one in made]
    for kind in ("GROUP BY", "HAVING", "CONSTRUCT", "GRAPH"):
        assert sum(bool(rows) for (spec, _), rows in zip(made, found, strict=True) if kind in spec.text) > 3, kind


@pytest.mark.parametrize("make", [example, varied, choosing])
@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_printed_reads_the_same(seed: int, make: Callable[[int], tuple[Spec, list[GraphSpec]]]) -> None:
    text = make(seed)[0].text
    findings = Findings()
    tree = read_query(Source("q.spaseq", text, "spaseq"), findings)
    assert tree is not None
    printed = show_query(tree)
    again = read_query(Source("q.spaseq", printed, "spaseq"), findings)
    assert again == tree
    assert show_query(again) == printed


# What no spec file can say

ONE = """
PREFIX e: <http://e/>
SELECT ?x ?p
WITHIN 1 HOURS
FROM STREAM S <http://e/s>
WHERE {
  SEQ(A)
  DEFINE GPM A ON S { ?x e:p ?p }
}
"""


def compiled(text: str = ONE, name: str = "q") -> augury.Program:
    return augury.compile(text, language="spaseq", name=name)


def graph_event(graph: str = "<http://e/x> <http://e/p> 1 .", time: int = 1, **more: Any) -> dict[str, Any]:
    return {"stream": "http://e/s", "time": time, "graph": graph, **more}


def test_blank_nodes_in_answers_bear_the_id_of_their_event() -> None:
    text = "_:n <http://e/p> 1 . [] <http://e/p> 2 ."
    found = augury.run(compiled(), [graph_event(text, id="e1"), graph_event(text, id="e2")], engine="reference")
    assert {(str(e.args[0]), e.args[1], e.trace) for e in found} == {
        ("<_:n.e1>", 1, ("e1",)),
        ("<_:-0.e1>", 2, ("e1",)),
        ("<_:n.e2>", 1, ("e2",)),
        ("<_:-0.e2>", 2, ("e2",)),
    }


@pytest.mark.parametrize(
    ("event", "said"),
    [
        ({"stream": "http://e/s", "time": 1}, "a graph event has a graph"),
        ({"stream": 5, "time": 1, "graph": ""}, "the stream of a graph event is an IRI, not 5"),
        ({"stream": "<http://e/s>", "time": 1, "graph": ""}, "write it without angle brackets"),
        (graph_event("<http://e/x> 5"), "malformed RDF in line 1 of the graph"),
        ({"stream": "http://e/s", "start": 1, "end": 2, "graph": ""}, "a graph event has one time"),
        ({"stream": "http://e/s", "graph": ""}, "an event has a time"),
        (graph_event(5), "the graph of a graph event is text"),  # type: ignore[arg-type]
    ],
)
def test_malformed_graph_events_are_named(event: dict[str, Any], said: str, tmp_path: Path) -> None:
    with pytest.raises(augury.DataError, match=r"the events:2: .*") as error:
        augury.run(compiled(), [graph_event(), event], engine="reference")
    assert said in str(error.value)
    path = tmp_path / "events.jsonl"
    path.write_text("\n".join(json.dumps(e) for e in (graph_event(), event)), encoding="utf-8")
    with pytest.raises(augury.DataError, match=r"events.jsonl:2: .*"):
        augury.run(compiled(), augury.read(path), engine="reference")


def test_graph_events_are_revoked() -> None:
    events = [graph_event(id="e1"), graph_event(time=2, id="e2"), {"op": "revoke", "id": "e1"}]
    assert [e.end for e in augury.run(compiled(), events, engine="reference")] == [2]


def test_rules_and_queries_from_several_files(tmp_path: Path) -> None:
    (tmp_path / "found.spaseq").write_text(ONE, encoding="utf-8")
    (tmp_path / "high.aug").write_text("output high.\nhigh(X) <- found(X, P), P > 1.\n", encoding="utf-8")
    program = augury.compile([tmp_path / "found.spaseq", tmp_path / "high.aug"])
    events = [graph_event(), graph_event("<http://e/y> <http://e/p> 5 .", 2)]
    found = augury.run(program, events, engine="reference")
    assert [(e.type, e.args) for e in found] == [("high", (Iri("http://e/y"),))]


def codes(*sources: Source) -> list[str]:
    with pytest.raises(augury.ProgramError) as error:
        augury.Program.of(sources)
    return [d.code for d in error.value.diagnostics]


def constructing(reads: str, makes: str) -> str:
    return (
        f"CONSTRUCT {{ ?x <http://e/p> 1 }} INTO <http://e/{makes}> WITHIN 1 HOURS FROM STREAM S <http://e/{reads}> "
        "WHERE { SEQ(A) DEFINE GPM A ON S { ?x <http://e/p> ?p } }"
    )


def test_names_are_derived_once() -> None:
    query = Source("q.spaseq", ONE, "spaseq")
    assert codes(query, Source("more/q.spaseq", ONE, "spaseq")) == ["E203"]
    assert codes(query, Source("p.aug", "q(X) <- a(X).")) == ["E203"]
    assert codes(query, Source("p.aug", "q('x', 1).\nr(X) <- a(X).")) == ["E202"]
    assert codes(query, Source("p.aug", "r(X) <- q(X).")) == ["E206"]


def test_queries_do_not_go_round() -> None:
    there, back = constructing("a", "b"), constructing("b", "a")
    assert codes(Source("x.spaseq", there, "spaseq"), Source("y.spaseq", back, "spaseq")) == ["E257"]
    on = augury.Program.of([Source("y.spaseq", constructing("b", "c"), "spaseq"), Source("x.spaseq", there, "spaseq")])
    assert [query.name for query in on.plan.graph_queries] == ["x", "y"]


def test_windows_begin_at_a_time_of_the_clock() -> None:
    ticks = compiled(ONE.replace("1 HOURS", "1 HOURS TUMBLING FROM 5"))
    times = compiled(ONE.replace("1 HOURS", "1 HOURS TUMBLING FROM '2026-01-01'"))
    calendar = {**graph_event(), "time": "2026-01-01 10:00"}
    for program, event in ((ticks, calendar), (times, graph_event())):
        with pytest.raises(augury.ProgramError, match="E601"):
            augury.run(program, [event], engine="reference")
    assert len(augury.run(times, [calendar], engine="reference")) == 1


def test_the_name_of_a_query() -> None:
    assert compiled(name="fraud").outputs == ("fraud",)
    assert augury.compile(ONE, language="spaseq").outputs == ("program",)
    assert augury.compile(ONE, name="folder/big-after-small.spaseq").outputs == ("big_after_small",)
    with pytest.raises(augury.RunError, match="unknown language"):
        augury.compile(ONE, language="sparql")


def test_columns_have_the_names_of_variables() -> None:
    assert augury.run(compiled(), [graph_event()], engine="reference").to_arrow().column_names[:2] == ["x", "p"]


def test_why_explains_query_answers() -> None:
    found = augury.run(compiled(), [graph_event(id="e1")], engine="reference")
    assert "(input e1)" in found.why(found.events[0])


@pytest.mark.parametrize("seed", range(60))
def test_no_text_crashes_the_compiler(seed: int) -> None:
    random = Random(seed)
    signs = [
        *"{}()[]?!+,;:.<>\"'#&|$\\@^*_\x00é \n",
        "FILTER",
        "SEQ",
        "SELECT",
        "OPTIONAL {",
        "EXISTS",
        "COUNT(",
        "GRAPH ?g {",
    ]
    text = example(seed)[0].text
    for _ in range(random.randrange(1, 4)):
        at = random.randrange(len(text))
        text = text[:at] + random.choice(("", random.choice(signs))) + text[at + random.choice((0, 1, 3)) :]
    with contextlib.suppress(augury.AuguryError):
        compiled(text)


def test_graphs_are_written_as_they_come_in(tmp_path: Path) -> None:
    program = compiled(constructing("s", "t").replace("?x <http://e/p> 1", "?x <http://e/p> ?p"))
    found = augury.run(program, [graph_event(id="e1"), graph_event(time=2, id="e2")], engine="reference")
    path = tmp_path / "found.jsonl"
    sinks.write(found, "jsonl", str(path), sys.stdout)
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    one = '<http://e/x> <http://e/p> "1"^^<http://www.w3.org/2001/XMLSchema#integer> .'
    assert [(x["stream"], x["time"], x["graph"], x["trace"]) for x in lines] == [
        ("http://e/t", 1, one, ["e1"]),
        ("http://e/t", 2, one, ["e2"]),
    ]
    assert lines == [event_as_json(e, LOGICAL) for e in found]
    again = compiled(ONE.replace("http://e/s", "http://e/t"))
    assert len(augury.run(again, augury.read(path), engine="reference")) == 2


# The command line


def test_commands_take_queries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("fraud.spaseq").write_text(ONE.replace("\n", " # why\n", 1).replace("  SEQ", " SEQ"), encoding="utf-8")
    Path("e.jsonl").write_text(json.dumps(graph_event(id="e1")), encoding="utf-8")

    def augury_(*args: str) -> str:
        done = CliRunner().invoke(cli, args, standalone_mode=False, catch_exceptions=False)
        return done.output

    assert "1 query" in augury_("check", "fraud.spaseq")
    assert "query fraud" in augury_("explain", "fraud.spaseq")
    assert json.loads(augury_("explain", "fraud.spaseq", "--format", "json"))["queries"][0]["name"] == "fraud"
    assert '(["fraud"])' in augury_("explain", "fraud.spaseq", "--format", "mermaid")
    augury_("fmt", "fraud.spaseq")
    formatted = Path("fraud.spaseq").read_text(encoding="utf-8")
    assert formatted.startswith("# why\n") and "\n  SEQ(A)\n" in formatted
    augury_("fmt", "--check", "fraud.spaseq")
    run = augury_("run", "fraud.spaseq", "--events", "e.jsonl", "--engine", "reference", "--format", "jsonl")
    assert json.loads(run)["args"] == ["http://e/x", 1]
    assert "(input e1)" in augury_("why", "fraud.spaseq", "--events", "e.jsonl", "--event", "fraud")
