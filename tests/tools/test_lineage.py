"""`augury lineage`: what outputs are made of, and what decides."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.commands import run

RULES = """\
event wind(station: string, speed: float).
static station(name: string, lat: float).
output alarm, busy, best.
near(F, S) :- place(F, A), station(S, B), abs(A - B) < 1.
increase(S, New - Old) <- (wind(S, Old) SEQ wind(S, New)).30min WHERE New > Old * 1.1.
alarm(F, S, D) <- (NOT(done(F, _)).[fire(F), increase(S, D)]).2h WHERE near(F, S).
busy(count(), sum(V)) <- w: every(1h), while w: collect wind(_, V).
best(S, R) <- wind(S, V) TOP 3 BY V AS R.
fact open(D) <- opened(D).
back(D) <- closed(E), open(D), D != E.
"""


def test_columns_through_rules_and_static_predicates(tmp_path: Path) -> None:
    (tmp_path / "fire.aug").write_text(RULES)
    done = run(["lineage", "fire.aug", "--facts", "place=x.csv"], tmp_path)
    assert done.code == 0, done.err
    assert (
        done.out
        == """\
alarm(f, s, d)
  f           fire.arg1, facts place.arg1
  s           wind.station, facts station.name
  d           wind.speed (computed)
  decided by  done.time, done.arg1, fire.arg1, wind.station, wind.speed, facts place.arg1, facts place.arg2, facts station.name, facts station.lat
  through     alarm, increase, near/2

busy(arg1, arg2)
  arg1        wind.time (aggregated)
  arg2        wind.speed (aggregated)
  through     busy

best(s, r)
  s           wind.station
  r           wind.speed (computed)
  decided by  wind.speed
  through     best
"""
    )
    made = run(["lineage", "fire.aug", "--facts", "place=x.csv", "--output", "back"], tmp_path)
    assert "d           opened.arg1\n  decided by  closed.arg1, opened.arg1\n  through     back, open" in made.out
    wrong = run(["lineage", "fire.aug", "--facts", "place=x.csv", "--output", "alrm"], tmp_path)
    assert wrong.code == 1 and "did you mean `alarm`?" in wrong.err


def test_json_is_a_job_event_of_open_lineage(tmp_path: Path) -> None:
    (tmp_path / "fire.aug").write_text(RULES)
    done = run(["lineage", "fire.aug", "--facts", "place=x.csv", "--format", "json", "--namespace", "prod"], tmp_path)
    event = json.loads(done.out)
    assert event["job"] == {"namespace": "prod", "name": "fire", "facets": {}} and event["schemaURL"].endswith(
        "JobEvent"
    )
    assert {row["name"] for row in event["inputs"]} == {"wind", "fire", "done", "facts.place", "facts.station"}
    alarm = event["outputs"][0]
    facet = alarm["facets"]["columnLineage"]
    assert [field["name"] for field in alarm["facets"]["schema"]["fields"]] == list(facet["fields"])
    [speed] = facet["fields"]["d"]["inputFields"]
    assert (speed["namespace"], speed["name"], speed["field"]) == ("prod", "wind", "speed")
    assert speed["transformations"][0] | {"description": ""} == {
        "type": "DIRECT", "subtype": "TRANSFORMATION", "description": "", "masking": False,
    }  # fmt: skip
    indirect = {(row["name"], row["field"]): row["transformations"][0]["subtype"] for row in facet["dataset"]}
    assert indirect["done", "time"] == "FILTER" and indirect["facts.station", "name"] == "JOIN"
    assert facet["_schemaURL"].startswith("https://openlineage.io/spec/facets/")


def test_diagram_and_queries(tmp_path: Path) -> None:
    (tmp_path / "fire.aug").write_text(RULES)
    chart = run(["lineage", "fire.aug", "--facts", "place=x.csv", "--format", "mermaid"], tmp_path).out
    assert chart.startswith("flowchart LR") and '"wind.speed"' in chart and "decides" in chart
    (tmp_path / "fast.spaseq").write_text(
        "PREFIX e: <http://e/> SELECT ?c (AVG(?v) AS ?m) WITHIN 5 MINUTES FROM STREAM S <http://e/s> "
        "WHERE { SEQ(A) DEFINE GPM A ON S { ?c e:v ?v } } GROUP BY ?c"
    )
    text = run(["lineage", "fast.spaseq"], tmp_path).out
    assert text.splitlines()[0] == "fast(c, m)" and "m           <http://e/s>.graph (aggregated)" in text
