"""The W3C's SPARQL 1.1 tests, read from their manifests: a query, a graph, named graphs and the expected solutions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

from augury.algebra.sparql_algebra import LANG_STRING, Blank, Literal, RdfTerm
from augury.core.model import Iri

FOLDER = Path(__file__).parents[1] / "w3c" / "sparql11"
MF = "http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#"
QT = "http://www.w3.org/2001/sw/DataAccess/tests/test-query#"
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"

Row = Mapping[str, RdfTerm]


@dataclass(frozen=True)
class Case:
    """A test of a manifest; `result` is None where it is one of syntax."""

    name: str
    kind: str
    query: Path
    data: tuple[Path, ...]
    named: tuple[Path, ...]
    result: Path | None

    @property
    def prefixes(self) -> dict[str, str]:
        return dict(re.findall(r"(?im)^\s*PREFIX\s+([\w.-]*):\s*<([^>]*)>", self._text))

    @property
    def base(self) -> str:
        found = re.search(r"(?im)^\s*BASE\s*<([^>]*)>", self._text)
        return found[1] if found else self.query.as_uri()

    @property
    def body(self) -> str:
        """The query without what stands before it."""
        bare = re.sub(r"(?im)^\s*#.*$", "", self._text)
        return re.sub(r"(?im)\b(PREFIX\s+[\w.-]*:|BASE)\s*<[^>]*>", "", bare).strip()

    @property
    def _text(self) -> str:
        return self.query.read_text(encoding="utf-8")


def cases() -> list[Case]:
    return [case for folder in sorted(FOLDER.iterdir()) if folder.is_dir() for case in _cases(folder)]


def _cases(folder: Path) -> Iterator[Case]:
    said: dict[tuple[Any, str], list[Any]] = {}
    for s, p, o in triples(folder / "manifest.ttl"):
        said.setdefault((s, p.value), []).append(o)
    at = next(objects[0] for (_, p), objects in said.items() if p == MF + "entries")
    while at.value != RDF + "nil":
        test = said[at, RDF + "first"][0]
        action = said[test, MF + "action"][0]
        whole = {name: said.get((action, QT + name), []) for name in ("query", "data", "graphData")}
        result = said.get((test, MF + "result"), [])
        yield Case(
            f"{folder.name}/{test.value.rpartition('#')[2]}",
            said[test, RDF + "type"][0].value.removeprefix(MF),
            _path(whole["query"][0] if whole["query"] else action),
            tuple(map(_path, whole["data"])),
            tuple(map(_path, whole["graphData"])),
            _path(result[0]) if result else None,
        )
        at = said[at, RDF + "rest"][0]


def triples(path: Path) -> Iterator[tuple[Any, Any, Any]]:
    import pyoxigraph as ox

    format = ox.RdfFormat.RDF_XML if path.suffix == ".rdf" else ox.RdfFormat.TURTLE
    for quad in ox.parse(path.read_bytes(), format, base_iri=path.as_uri()):
        yield quad.subject, quad.predicate, quad.object


def n_triples(path: Path) -> str:
    import pyoxigraph as ox

    return "".join(f"{s} {p} {o} .\n" for s, p, o in triples(path)) if ox else ""


def _path(address: Any) -> Path:
    return Path(unquote(urlparse(address.value).path))


def expected(path: Path) -> bool | list[Row]:
    """The solutions that a file of results has, or the answer to ASK."""
    import pyoxigraph as ox

    if path.suffix in (".ttl", ".rdf"):
        return list(_listed(path))
    form = {".srx": ox.QueryResultsFormat.XML, ".srj": ox.QueryResultsFormat.JSON, ".tsv": ox.QueryResultsFormat.TSV}
    found = ox.parse_query_results(path=str(path), format=form[path.suffix])
    if isinstance(found, ox.QueryBoolean):
        return bool(found)
    names = [variable.value for variable in found.variables]
    return [{n: term(row[n]) for n in names if row[n] is not None} for row in found]


def _listed(path: Path) -> Iterator[Row]:
    """Solutions as triples."""
    rs = "http://www.w3.org/2001/sw/DataAccess/tests/result-set#"
    said: dict[tuple[Any, str], list[Any]] = {}
    for s, p, o in triples(path):
        said.setdefault((s, p.value.removeprefix(rs)), []).append(o)
    for (_, name), solutions in said.items():
        for solution in solutions if name == "solution" else ():
            bindings = said.get((solution, "binding"), [])
            yield {said[b, "variable"][0].value: term(said[b, "value"][0]) for b in bindings}


def term(found: Any) -> RdfTerm:
    import pyoxigraph as ox

    match found:
        case ox.NamedNode():
            return Iri(found.value)
        case ox.BlankNode():
            return Blank(found.value)
    if found.language:
        return Literal(found.value, LANG_STRING, found.language)
    return Literal(found.value, found.datatype.value)
