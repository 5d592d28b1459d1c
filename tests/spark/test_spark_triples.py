"""RDF as DataFrames: lines read by the workers, and what RDFS entails, against the reader and the rules of the embedded engine."""

from __future__ import annotations

import random
from collections.abc import Iterable
from functools import reduce
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from augury.core.errors import DataError
from augury.core.model import Iri, Value, order_key
from augury.knowledge.rdf_files import read_rdf as read_embedded
from augury.knowledge.rdfs import DOMAIN, RANGE, SUBCLASS, SUBPROPERTY, TYPE, VOCABULARY, Triple, closure
from augury.program import compile
from augury.sources import Skipped
from augury.spark import detect
from augury.spark.triples import entailed, malformed, of_pairs, rdf_facts, read_rdf, value
from tests.spark.test_spark_rules import tiny_fixture as tiny_fixture
from tests.support.spark_session import SPARK

pytest.importorskip("pyoxigraph")
pytestmark = SPARK

E = "http://example.org/"
XSD = "http://www.w3.org/2001/XMLSchema#"
LINES = rf"""# a comment
<{E}a> <{E}p> <{E}b> .
<{E}a><{E}p>"plain".

  _:x	<{E}p>	_:y.z .  # another
<{E}a> <{E}p> "say \"hi\" \\ . # \u00e9\U0001F600\n"@EN-gb .
<{E}a> <{E}p> "a < b" <{E}g> .
<{E}gr\u00fcn> <{E}n> "007"^^<{XSD}integer> .
<{E}b> <{E}n> "1.50"^^<{XSD}decimal> <{E}g> .
<{E}b> <{E}t> "2024-01-01T00:00:00Z"^^<{XSD}dateTime> .
<{E}b> <{E}t> "2024-01-02"^^<{XSD}date> .
<{E}b> <{E}t> "2024-13-02"^^<{XSD}date> .
"""


def terms(frame: DataFrame) -> set[Triple]:
    return {tuple(map(value, row)) for row in frame.collect()}  # type: ignore[misc]


def test_lines_are_read_as_the_embedded_reader_does(tmp_path: Path, tiny: SparkSession) -> None:
    path = tmp_path / "graph.nq"
    path.write_text(LINES.replace("\n", "\r\n"), encoding="utf-8")
    embedded = read_embedded(str(path), Skipped())
    assert terms(read_rdf(tiny, str(path))) == set(embedded)
    assert malformed(tiny, str(path)).count() == 0


def test_malformed_lines_are_named(tmp_path: Path, tiny: SparkSession) -> None:
    good = f"<{E}a> <{E}p> <{E}b> ."
    bad = [
        f"<{E}a> <{E}p> .",
        f'<{E}a> <{E}p> "a"b" .',
        f'<{E}a> "p" <{E}b> .',
        "<a> <b> <c> .",
        f'<{E}a> <{E}p> "\\x" .',
    ]
    lines = [good, bad[0], "", good, *bad[1:], good]
    (tmp_path / "graph.nt").write_text("\n".join(lines) + "\n")
    path = str(tmp_path / "graph.nt")
    assert read_rdf(tiny, path, on_error="drop").count() == 3
    found = malformed(tiny, path).orderBy("line").collect()
    assert [(row["line"], row["text"]) for row in found] == [(lines.index(b) + 1, b) for b in bad]
    with pytest.raises(PySparkException, match="malformed N-Triples"):
        read_rdf(tiny, path).collect()


NAMES = [Iri(E + n) for n in "abcpqr"]
WANTED = [w.text for w in (*NAMES[2:5], *VOCABULARY)]


def graph(seed: int, size: int, meta: bool) -> set[Triple]:
    """Random triples; with `meta`, the vocabulary speaks of itself."""
    choose = random.Random(seed).choice
    predicates = [*NAMES[3:] * 2, *[TYPE] * 3, *[SUBCLASS, SUBPROPERTY, DOMAIN, RANGE] * 2]
    things: list[Value] = [*NAMES, Iri("_:x"), *(VOCABULARY if meta else ())]
    return {(choose(things), choose(predicates), choose([*things, "text"])) for _ in range(size)}


def frame_of(triples: Iterable[Triple], spark: SparkSession) -> DataFrame:
    def word(term: Value) -> str:
        return f'"{term}"' if isinstance(term, str) else term.text if term.text.startswith("_:") else str(term)  # type: ignore[union-attr]

    rows = [tuple(map(word, triple)) for triple in triples]
    return read_rdf(spark, spark.createDataFrame(rows, "subject string, predicate string, object string"))


@pytest.mark.parametrize(("seed", "size", "meta"), [(1, 14, False), (2, 9, True), (5, 12, True)])
def test_rdfs_entailment_on_spark(seed: int, size: int, meta: bool, tiny: SparkSession) -> None:
    given = graph(seed, size, meta)
    found = entailed(frame_of(given, tiny), WANTED)
    rows = reduce(DataFrame.union, (pairs.withColumn("p", F.lit(name)) for name, pairs in found.items())).collect()
    all_of_it = {t for t in closure(given) if isinstance(t[1], Iri) and t[1].text in WANTED}
    assert all_of_it - given
    assert len(rows) == len(all_of_it)
    assert {(value(r["subject"]), Iri(r["p"]), value(r["object"])) for r in rows} == all_of_it


def test_types_that_say_something_of_the_hierarchy_are_refused(tiny: SparkSession) -> None:
    with pytest.raises(DataError, match="rdf:type is a subproperty"):
        entailed(frame_of({(TYPE, SUBPROPERTY, SUBCLASS)}, tiny), [TYPE.text])


def test_terms_become_values_on_spark(tmp_path: Path, tiny: SparkSession) -> None:
    path = tmp_path / "graph.nq"
    path.write_text(LINES, encoding="utf-8")
    triples, embedded = read_rdf(tiny, str(path)), set(read_embedded(str(path), Skipped()))
    for name, kind in (("p", "json"), ("n", "number")):
        facts = of_pairs(entailed(triples, [E + name])[E + name])
        assert facts.kinds == ("iri", kind)
        same = {(order_key(s), order_key(o)) for s, p, o in embedded if p == Iri(E + name)}
        assert {tuple(map(order_key, fact.args)) for fact in facts.table("")} == same


PROGRAM = f"""
prefix e: <{E}>.
prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#>.
event seen(what: iri).
static e:n(s: iri, n: number).
windy(X, N) <- seen(X) WHERE rdf:type(X, e:Wind), e:n(X, N).
"""


@pytest.mark.parametrize("broadcast", [100, 0], ids=["sent", "joined"])
def test_a_program_asks_for_types(broadcast: int, tiny: SparkSession) -> None:
    x, wind, rain, gust = (Iri(E + name) for name in ("x", "Wind", "Rain", "Gust"))
    said = {(x, TYPE, gust), (x, TYPE, rain), (gust, SUBCLASS, wind), (Iri(E + "speed"), SUBPROPERTY, Iri(E + "n"))}
    speed = [(f"<{E}x>", f"<{E}speed>", f'"7"^^<{XSD}int>'), (f"<{E}z>", f"<{E}speed>", f'"9"^^<{XSD}int>')]
    triples = frame_of(said, tiny).union(tiny.createDataFrame(speed))
    facts = rdf_facts(triples, compile(PROGRAM).plan)
    assert facts[TYPE.text].frame.count() == 1
    events = {"seen": tiny.createDataFrame([(E + "x", 1), (E + "z", 2)], "what string, time long")}
    run = detect(PROGRAM, events, facts=facts, broadcast=broadcast)
    assert run.pipeline.joined == (() if broadcast else (f"{E}n", TYPE.text))
    assert [(r[0], r[1]) for r in run["windy"].collect()] == [(E + "x", 7.0)]
    given = detect(PROGRAM, events, rdf=triples, broadcast=broadcast)
    assert [(r[0], r[1]) for r in given["windy"].collect()] == [(E + "x", 7.0)]
