"""Facts and graphs on the command line: files, databases, changes, RDF, and what is wrong with them."""

from __future__ import annotations

import json
import sqlite3

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.cli.test_cli import Shell
from tests.cli.test_cli import shell as shell_fixture
from tests.support.commands import Done

shell = shell_fixture
STORES = """\
event order(store: int, time_: int).
static store(id: int, region: string).
busy(R) <- order(S, _) WHERE store(S, R).
"""
ORDERS = '{"type": "order", "args": [1, 0], "time": 5}\n{"type": "order", "args": [2, 0], "time": 6}\n'
GRAPH = """\
@prefix wt: <http://ex.org/wt#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
wt:Anemometer rdfs:subClassOf wt:Station .
wt:s1 a wt:Anemometer ; wt:height 10 .
"""
STATIONS = """\
prefix wt: <http://ex.org/wt#>.
event reading(station: iri, speed: float).
storm(H) <- reading(S, V) WHERE (rdf:type(S, wt:Station), wt:height(S, H), V > 20).
"""
READINGS = '{"type": "reading", "args": ["wt:s1", 30], "time": 1}\n'


def args_of(done: Done) -> list[list[object]]:
    assert done.code == 0, done.err
    return [json.loads(line)["args"] for line in done.out.splitlines()]


@pytest.fixture
def stores(shell: Shell) -> Shell:
    shell.file("stores.aug", STORES)
    shell.file("orders.jsonl", ORDERS)
    shell.file("graph.ttl", GRAPH)
    shell.file("stations.aug", STATIONS)
    shell.file("readings.jsonl", READINGS)
    return shell


def run(shell: Shell, source: str, *more: str) -> Done:
    return shell.augury("run", "stores.aug", "--events", "orders.jsonl", "--facts", f"store={source}", *more)


def test_facts_come_from_everywhere(stores: Shell) -> None:
    stores.file("s.csv", "id,region\n1,north\n2,south\n")
    stores.file("s.jsonl", '[1, "north"]\n{"id": 2, "region": "south"}\n')
    table = pa.table({"id": [1, 2], "region": ["north", "south"]})
    pq.write_table(table, stores.folder / "s.parquet")
    with duckdb.connect(str(stores.folder / "shop.duckdb")) as shop:
        shop.execute("CREATE TABLE places AS SELECT * FROM (VALUES (1, 'north'), (2, 'south')) AS t(id, region)")
    with sqlite3.connect(stores.folder / "shop.sqlite") as shop_lite:
        shop_lite.execute("CREATE TABLE store (id, region)")
        shop_lite.executemany("INSERT INTO store VALUES (?, ?)", [(1, "north"), (2, "south")])
    for source in ("s.csv", "s.jsonl", "s.parquet", "shop.duckdb:SELECT id, region FROM places", "shop.sqlite"):
        assert args_of(run(stores, source)) == [["north"], ["south"]], source


def test_run_reads_changing_facts(stores: Shell) -> None:
    stores.file("s.csv", "id,region,time,op\n1,north,0,\n2,south,0,assert\n2,south,6,retract\n2,east,6,assert\n")
    assert args_of(run(stores, "s.csv")) == [["north"], ["east"]]
    assert args_of(run(stores, "s.csv", "--engine", "reference")) == [["north"], ["east"]]


@pytest.mark.parametrize(
    ("source", "content", "message"),
    [
        ("s.csv", "id,regon\n1,north\n", "s.csv:1: `store` has no column `region`"),
        ("s.csv", "id,region\n1,north\nx,south\n", "s.csv:3"),
        ("s.jsonl", '[1, "north"]\n[2]\n', "s.jsonl:2: `store` is declared with 2 arguments, not 1"),
        ("s.parquet", "no parquet", "s.parquet"),
        ("s.xyz", "1,2", "s.xyz: is neither CSV"),
        ("gone.csv", None, "gone.csv: no such file"),
        ("s.csv", "id,region,op\n1,north,retract\n", "s.csv:2: a retract needs a time"),
        ("s.csv", "id,region,op,time\n1,north,drop,3\n", "s.csv:2: unknown op 'drop'"),
        ("shop.sqlite:SELECT nothing", None, "shop.sqlite"),
    ],
)
def test_malformed_facts_are_refused(stores: Shell, source: str, content: str | None, message: str) -> None:
    if content is not None:
        stores.file(source, content)
    done = run(stores, source)
    assert done.code == 1 and not done.out and message in done.err, done.err


def stations(shell: Shell, *more: str) -> Done:
    return shell.augury("run", "stations.aug", "--events", "readings.jsonl", *more)


def test_run_reads_rdf_graphs(stores: Shell) -> None:
    assert args_of(stations(stores, "--rdf", "graph.ttl")) == [[10]]
    assert args_of(stations(stores, "--rdf", "graph.ttl", "--engine", "reference")) == [[10]]
    assert args_of(stations(stores, "--rdf-plain", "graph.ttl")) == []
    done = stores.augury("why", "stations.aug", "--events", "readings.jsonl", "--rdf", "graph.ttl", "--event", "storm")
    assert "rdf:type(" in done.out and "direct rdf:type(" in done.out and "wt:height(" in done.out
    assert "transitive" not in stores.augury("explain", "stations.aug").out


def test_malformed_graphs_are_refused(stores: Shell) -> None:
    stores.file("bad.ttl", GRAPH + "wt:s2 a wt:\n")
    done = stations(stores, "--rdf", "bad.ttl")
    assert done.code == 1 and "bad.ttl:6: malformed Turtle" in done.err
    stores.file("bad.nt", "<http://a> <http://b> <http://c> .\n<http://a> oops .\n")
    assert "bad.nt:2" in stations(stores, "--rdf", "bad.nt").err
    kept = stations(stores, "--rdf", "graph.ttl", "--rdf", "bad.nt", "--on-error", "skip")
    assert kept.code == 0 and "bad.nt:2" in kept.err and args_of(kept) == [[10]]
    assert "gone.ttl: no such file" in stations(stores, "--rdf", "gone.ttl").err
    assert "graph.txt" in stations(stores, "--rdf", stores.file("graph.txt", GRAPH)).err
    remote = stores.file("r.jsonld", '{"@context": "http://example.org/c.jsonld", "@id": "http://a"}')
    assert "not fetched" in stations(stores, "--rdf", remote).err
    stores.file("stations.aug", STATIONS.replace("wt:height", "wt:heigth"))
    done = stations(stores, "--rdf", "graph.ttl")
    assert "`wt:heigth`: did you mean `wt:height`?" in done.err
    assert "`rdf:type`: give its graph with --rdf FILE" in stations(stores).err
