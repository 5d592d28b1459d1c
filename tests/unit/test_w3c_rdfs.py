"""The W3C's tests of RDF entailment, driven from their manifest, against the rules that Augury has.

What the six rules cannot decide is in `OUT_OF_SCOPE` with its reason; a test there that begins to pass fails here.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlparse

import pytest

from augury.core.model import Iri, Value, equal
from augury.knowledge.rdf_files import read_rdf
from augury.knowledge.rdfs import Triple, closure
from augury.sources import Skipped
from tests.unit.test_rdf import entailed

pytest.importorskip("pyoxigraph")

FOLDER = Path(__file__).parents[1] / "w3c" / "rdf-mt"
MF = "http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#"
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
INCONSISTENT = "no rule finds a graph inconsistent"
AXIOMATIC = "follows from axiomatic triples about containers, which are left out"
OUT_OF_SCOPE: dict[str, str] = {
    "datatypes-non-well-formed-literal-2": INCONSISTENT + ": an ill-typed integer is kept as text and datatype",
    "datatypes-range-clash": INCONSISTENT + ": a range says nothing about a literal",
    "datatypes-test010": INCONSISTENT + ": a range says nothing about a literal",
    "rdfs-entailment-test001": INCONSISTENT + ": an ill-typed literal is kept as text and datatype",
    "rdfs-entailment-test002": INCONSISTENT + ": a range says nothing about a literal",
    "xmlsch-02-whitespace-facet-2": INCONSISTENT
    + ": an integer with spaces is ill-typed and kept as text and datatype",
    "xmlsch-02-whitespace-facet-4": INCONSISTENT
    + ": an integer with spaces is ill-typed and kept as text and datatype",
    "rdfms-seq-representation-test002": AXIOMATIC,
    "rdfms-seq-representation-test003": AXIOMATIC,
    "rdfms-seq-representation-test004": AXIOMATIC,
    "literal-type": "that a literal is of its datatype: nothing is said about literals as subjects",
    "float-zero": "-0.0 and 0.0 are one value in Augury",
    "double-zero": "-0.0 and 0.0 are one value in Augury",
    "float-round-same": "an xsd:float is read with the precision of a double",
    "float-infinity": "an infinite number is kept as text and datatype, so two spellings of it are two",
    "double-infinity": "an infinite number is kept as text and datatype, so two spellings of it are two",
}


@dataclass(frozen=True)
class Case:
    """Whether `premise` entails `conclusion`, or, where there is none, is inconsistent."""

    name: str
    positive: bool
    regime: str
    premise: Path
    conclusion: Path | None

    def answer(self) -> bool:
        """What Augury says: by the rules under RDFS, by the triples alone under the weaker regimes."""
        if self.conclusion is None:
            return False  # no rule finds a graph inconsistent
        known = graph(self.premise)
        return entails(closure(known) if self.regime == "RDFS" else known, list(graph(self.conclusion)))


def graph(path: Path) -> set[Triple]:
    return set(read_rdf(str(path), Skipped()))


def is_blank(value: Value) -> bool:
    return isinstance(value, Iri) and value.text.startswith("_:")


def entails(known: set[Triple], wanted: list[Triple], bound: dict[Value, Value] | None = None) -> bool:
    """Simple entailment: the blank nodes of what is wanted can be chosen so that all of it is known."""
    bound = bound or {}
    if not wanted:
        return True
    first, rest = wanted[0], wanted[1:]
    for row in known:
        chosen = dict(bound)
        if all(
            equal(chosen.setdefault(want, have) if is_blank(want) else want, have)
            for want, have in zip(first, row, strict=True)
        ) and entails(known, rest, chosen):
            return True
    return False


def cases() -> list[Case]:
    """The tests that the manifest lists, in its order."""
    said: dict[tuple[Value, str], Value] = {}
    for s, p, o in read_rdf(str(FOLDER / "manifest.ttl"), Skipped()):
        assert isinstance(p, Iri)
        said.setdefault((s, p.text), o)
    at = next(o for (_, p), o in said.items() if p == MF + "entries")
    found: list[Case] = []
    while at != Iri(RDF + "nil"):
        test = said[at, RDF + "first"]
        kind, result = said[test, RDF + "type"], said[test, MF + "result"]
        premise = path_of(said[test, MF + "action"])
        found.append(
            Case(
                name=str(said[test, MF + "name"]),
                positive=kind == Iri(MF + "PositiveEntailmentTest"),
                regime=str(said[test, MF + "entailmentRegime"]),
                premise=premise,
                conclusion=path_of(result) if isinstance(result, Iri) else None,
            )
        )
        at = said[at, RDF + "rest"]
    return found


def path_of(address: Value) -> Path:
    assert isinstance(address, Iri)
    return Path(unquote(urlparse(address.text).path))


CASES = cases()


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_w3c_rdfs_entailment(case: Case) -> None:
    passed = case.answer() == case.positive
    assert passed == (case.name not in OUT_OF_SCOPE), OUT_OF_SCOPE.get(case.name, "in scope, but fails")


@pytest.mark.parametrize(
    "path", sorted({case.premise for case in CASES}), ids=lambda path: f"{path.parent.name}/{path.name}"
)
def test_arrays_find_what_the_rules_find(path: Path) -> None:
    assert entailed(graph(path)) == closure(graph(path))


def test_nothing_is_listed_that_is_no_test() -> None:
    assert set(OUT_OF_SCOPE) <= {case.name for case in CASES}
    assert len({case.name for case in CASES}) == len(CASES)
