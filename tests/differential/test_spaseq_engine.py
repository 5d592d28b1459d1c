"""Queries in the engine: as the reference says after every step, whatever comes late, is taken back, saved or forgotten."""

from __future__ import annotations

import io
import json
import os
from random import Random
from typing import Any

import pytest

import augury
from augury import sinks
from augury.algebra.graph_queries import SelectForm
from augury.core.errors import DataError, Source
from augury.core.model import Event, HistoryItem, Revocation
from augury.engine.operators.runs import number_tests
from tests.differential.test_differential import compare
from tests.generators.programs import Step
from tests.generators.spaseq_programs import GraphSpec, choosing, example, static_knowledge, varied

FUZZ = bool(os.environ.get("AUGURY_FUZZ"))
WAYS: dict[str, dict[str, Any]] = {
    "told": {},
    "saved": {"save": 1},
    "late": {"lateness": 3},
    "pruned": {"lateness": 2, "prune": True},
    "pruned and saved": {"lateness": 4, "prune": True, "save": 2},
}


def telling(events: list[GraphSpec], program: augury.Program, random: Random) -> list[Step]:
    """The events that a query reads in some order, some at once, some taken back, and the clock that goes on."""
    told: list[HistoryItem] = []
    for number, event in enumerate(spec.event for spec in events):
        if (event.type, 1) not in program.plan.event_types:
            continue
        told.append(Event(event.type, event.args, event.start, event.end, f"e{number}"))
    if random.random() < 0.5:
        random.shuffle(told)
    revoked = [item.id for item in told if random.random() < 0.2]
    steps: list[Step] = []
    while told:
        size = random.randint(1, 4)
        steps.append(told[:size])
        told = told[size:]
        if revoked and random.random() < 0.3:
            known = {item.id for step in steps if isinstance(step, list) for item in step}
            if revoked[-1] in known:
                steps.append([Revocation(revoked.pop())])
        if random.random() < 0.2:
            steps.append(("advance", random.randint(0, 25)))
    return [*steps, ("advance", 40)]


@pytest.mark.parametrize("portion", range(150 if FUZZ else 2))
@pytest.mark.parametrize("way", WAYS)
def test_query_engine_equals_reference_after_every_step(
    way: str, portion: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if portion % 2:
        monkeypatch.setattr(number_tests, "BLOCK", 2)
    mistakes = [445] if portion == 0 else []  # what was pruned was taken back
    seeds = range(portion * 8, portion * 8 + 8)
    makers = [example] * len(mistakes) + [example, varied, choosing] * len(seeds)
    for seed, make in zip([*mistakes, *(s for s in seeds for _ in range(3))], makers, strict=True):
        spec, events = make(seed)
        program = augury.compile(spec.text, language="spaseq", name="q")
        steps = telling(events, program, Random(f"{seed} {way}"))
        for _ in compare(program, steps, [], rdf=static_knowledge(), **WAYS[way]):
            pass


@pytest.mark.parametrize("way", WAYS)
def test_rules_that_read_answers(way: str) -> None:
    """Also those that come after their ends: somebody reads them once they are known, or that they are not there."""
    late = 0
    for seed in range(400 if FUZZ else 10):
        spec, events = example(seed)
        answer = augury.compile(spec.text, language="spaseq", name="q").plan.graph_queries[0].answer
        assert isinstance(answer, SelectForm)
        q = f"q({', '.join(f'X{i}' for i in range(len(answer.columns)))})"
        rules = f"""
        again <- {q} SEQ {q}.
        alone <- NOT({q}).[{q}, {q}].
        first <- a: {q}, w: extend(a, 3s), while w: not {q}.
        """
        program = augury.Program.of([Source("q.spaseq", spec.text, "spaseq"), Source("rules.aug", rules)])
        late += program.plan.graph_queries[0].answers_late
        for _ in compare(program, telling(events, program, Random(f"{seed} {way}")), [], **WAYS[way]):
            pass
    assert late


def test_a_malformed_graph_is_named_and_loses_nothing() -> None:
    text = "PREFIX e: <http://e/> SELECT ?p WITHIN 9 SECONDS FROM STREAM S <http://e/s> WHERE { SEQ(A) DEFINE GPM A ON S { ?x e:p ?p } }"
    session = augury.compile(text, language="spaseq", name="q").session(clock="logical")
    session.push([Event("<http://e/s>", ("<http://e/x> <http://e/p> 1 .",), 1, 1)])
    with pytest.raises(DataError, match="malformed RDF"):
        session.push([Event("<http://e/s>", ("<http://e/x> <http://e/p> .",), 2, 2, "wrong")])
    session.push([Event("<http://e/s>", ("<http://e/x> <http://e/p> 3 .",), 3, 3)])
    assert [e.args for e in session.events()] == [(1,), (3,)]


def test_answers_as_sparql_results_json() -> None:
    """SPARQL results as JSON: what is unbound has no binding."""
    text = """PREFIX e: <http://e/> SELECT ?x ?p ?n WITHIN 9 SECONDS FROM STREAM S <http://e/s>
    WHERE { SEQ(A) DEFINE GPM A ON S { ?x e:p ?p OPTIONAL { ?x e:n ?n } } }"""
    graphs = ['<http://e/a> <http://e/p> 1 ; <http://e/n> "one"@en .', "<http://e/b> <http://e/p> 2.5 ."]
    result = augury.run(
        augury.compile(text, language="spaseq", name="q"),
        [Event("<http://e/s>", (graph,), time, time) for time, graph in enumerate(graphs)],
        clock="logical",
    )
    out = io.StringIO()
    sinks.write(result, "sparql-json", "-", out)
    found = json.loads(out.getvalue())
    assert found["head"] == {"vars": ["x", "p", "n", "start", "end"]}
    first, second = found["results"]["bindings"]
    assert first["x"] == {"type": "uri", "value": "http://e/a"}
    assert first["n"] == {"type": "literal", "value": "one", "xml:lang": "en"}
    assert "n" not in second and float(second["p"]["value"]) == 2.5
    assert second["p"]["datatype"].startswith("http://www.w3.org/2001/XMLSchema#")
