"""Graph events as objects: `{"stream": "http://e/stock", "time": 3, "graph": "<http://e/a> <http://e/price> 5 .", "id": "e1"}`.

A graph event is an event whose type is its stream's IRI in angle brackets, and whose one argument is the text of its graph,
N-Triples or Turtle.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from augury.algebra.graph_queries import stream_type
from augury.algebra.kinds import of_kind
from augury.algebra.nodes import Graph, Scan, walk, walk_all
from augury.algebra.plan import Attribute, Plan
from augury.algebra.sparql_algebra import Literal, TripleNeeds, needs
from augury.algebra.sparql_parser import read_pattern
from augury.core.errors import DataError, brief
from augury.core.model import Iri
from augury.graphs.graph_texts import HasBlanks, ReadAhead, UnnamedEvents, read
from augury.graphs.oxigraph import oxigraph, said_by_parser
from augury.graphs.rdf_terms import Terms, n_triples, term_of
from augury.sources.arrow_cells import ArrowCells, is_text
from augury.sources.cells import Cells
from augury.sources.heading import ColumnNames
from augury.sources.python_cells import ColumnCells
from augury.sources.types import value_of
from augury.storage.column import Coded, Column, TextArray, coded

_MANY = 1 << 18  # different terms that are kept from one part to the next
GRAPH_FORM = '{"stream": "http://example.org/stock", "time": 3, "graph": "<http://e/a> <http://e/price> 5 ."}'
_IRI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^<>\"{}|^`\\\x00-\x20]*")


def is_graph_event(item: Mapping[str, object], names: ColumnNames, type: str | None) -> bool:
    """Whether an object is a graph event: it has a stream, and no type."""
    return type is None and names.type not in item and "stream" in item and item.get(names.op) != "revoke"


def as_plain(item: Mapping[str, object], names: ColumnNames) -> dict[str, object]:
    """A graph event in the form of other events."""
    stream, graph = item["stream"], item.get("graph")
    if not isinstance(stream, str) or not _IRI.fullmatch(stream):
        hint = "write it without angle brackets" if isinstance(stream, str) and stream.startswith("<") else GRAPH_FORM
        raise DataError(f"the stream of a graph event is an IRI, not {brief(stream)}", hint=hint)
    if "graph" not in item:
        raise DataError("a graph event has a graph", hint=GRAPH_FORM)
    if isinstance(graph, list | tuple):
        graph = graph_text(graph)
    if not isinstance(graph, str):
        raise DataError(f"the graph of a graph event is text, not {brief(graph)}", hint="N-Triples or Turtle")
    if names.start in item or names.end in item:
        raise DataError("a graph event has one time, no start and end", hint=GRAPH_FORM)
    remaining = {key: value for key, value in item.items() if key not in ("stream", "graph")}
    return {**remaining, names.type: stream_type(stream), "args": [graph]}


def graph_columns(named: Mapping[str, Cells], names: ColumnNames) -> tuple[dict[str, Cells], list[Cells]]:
    """Columns of graph events in the form of other events: their type beside the rest, and the graph as the only argument.

    What is wrong with one of them is for `as_plain` to say.
    """
    streams = coded(named["stream"].plain())
    if "graph" not in named or names.start in named or names.end in named or (streams.index < 0).any():
        raise DataError("no graph events", hint=GRAPH_FORM)
    if not all(isinstance(stream, str) and _IRI.fullmatch(stream) for stream in streams.values):
        raise DataError("the stream of a graph event is an IRI", hint=GRAPH_FORM)
    types = ColumnCells(Coded([stream_type(str(stream)) for stream in streams.values], streams.index))
    remaining = {key: cells for key, cells in named.items() if key not in ("stream", "graph")}
    return {names.type: types, **remaining}, [named["graph"]]


def is_stream(type: str) -> bool:
    """Whether events of a type are graph events, by its name."""
    return type.startswith("<") and type.endswith(">")


class GraphColumns:
    """Reads columns of graphs for a program: once, with all that its patterns need, unless there are blank nodes."""

    def __init__(self, plan: Plan) -> None:
        self.needs, self.prefixes = graph_needs(plan), plan.prefixes
        self.terms = Terms()

    def column(self, type: str, cells: Cells, attribute: Attribute | None = None) -> Coded:
        """The graphs of a stream. DataError where one is no text, or malformed; which one it is, is seen one by one."""
        if isinstance(cells, ArrowCells) and is_text(cells.array.type) and not cells.array.null_count:
            array = cells.array.combine_chunks() if isinstance(cells.array, pa.ChunkedArray) else cells.array
            column = Coded(TextArray(array), np.arange(len(array)))
        else:
            column = _of_texts(cells.column(attribute, self.prefixes))
        assert isinstance(column.values, TextArray)
        column.values.read = self._read(column.values.array, self.needs.get(type, TripleNeeds()))
        return column

    def _read(self, texts: object, needs: TripleNeeds) -> ReadAhead | None:
        if len(self.terms) > _MANY:
            self.terms = Terms()
        try:
            result, terms = read(texts, self.terms, needs, UnnamedEvents()), self.terms
        except HasBlanks:
            result, terms = read(texts, Terms(), TripleNeeds()), None
        if result.malformed:
            raise DataError(str(result.malformed[0]))
        return None if terms is None else ReadAhead(terms, needs, result.triples)


def _of_texts(column: Column) -> Coded:
    """A column of values, all of which have to be texts."""
    if not isinstance(column, Coded) or (column.index < 0).any() or set(map(type, column.values)) - {str}:
        raise DataError("the graph of a graph event is text", hint="N-Triples or Turtle")
    return Coded(TextArray(pa.array(column.values, pa.large_string())), column.index)


def graph_needs(plan: Plan) -> dict[str, TripleNeeds]:
    """The triples that the patterns of a program need of each stream's graphs, by its type."""
    result: dict[str, TripleNeeds] = {}
    asked = [
        (stream_type(iri), gpm.pattern) for query in plan.graph_queries for gpm in query.gpms for iri in gpm.streams
    ]
    nodes = (node for rule in plan.rules for pattern in rule.patterns for node in walk_all(pattern))
    for node in nodes:
        if isinstance(node, Graph):
            asked += [(scan.type, node.pattern) for scan in of_kind(walk(node), Scan)]
    for type, pattern in asked:
        result[type] = result.get(type, TripleNeeds()) | needs(read_pattern(pattern))
    return result


def graph_text(triples: Sequence[object]) -> str:
    """A graph as N-Triples, from triples of Python.

    A text that begins as a term of N-Triples does, `<http://e/a>`, `_:x` or `"5"@en`, is that term; else a subject or a
    predicate is an IRI, and an object the literal of its value.
    """
    lines: list[str] = []
    for triple in triples:
        if not isinstance(triple, list | tuple) or len(triple) != 3:
            raise DataError(f"a triple has a subject, a predicate and an object, not {brief(triple)}", hint=GRAPH_FORM)
        subject, predicate, object = triple
        lines.append(f"{_name(subject)} {_name(predicate)} {_object(object)} .\n")
    return "".join(lines)


def _name(part: object) -> str:
    if isinstance(part, str) and (_IRI.fullmatch(part) or part.startswith(("<", "_:"))):
        return part if part.startswith(("<", "_:")) else f"<{part}>"
    if isinstance(part, Iri):
        return part.text if part.text.startswith("_:") else f"<{part.text}>"
    raise DataError(f"the subject and the predicate of a triple are IRIs, not {brief(part)}")


def _object(part: object) -> str:
    if isinstance(part, str) and part.startswith(("<", "_:", '"')):
        return part
    if isinstance(part, Iri):
        return _name(part)
    try:
        term = term_of(value_of(part))
    except DataError:
        raise DataError(f"the object of a triple is a term of RDF, not {brief(part)}") from None
    if not isinstance(term, Literal):
        raise DataError(f"the object of a triple is a term of RDF, not {brief(part)}")
    return n_triples(term)


def check_graph(text: str) -> None:
    """Raises DataError where a text is neither N-Triples nor Turtle."""
    ox = oxigraph()
    try:
        for _ in ox.parse(text.encode("utf-8", "surrogatepass"), ox.RdfFormat.TURTLE):
            pass
    except SyntaxError as error:
        position = f"line {error.lineno} of the graph" if error.lineno else "the graph"
        said = said_by_parser(error)
        raise DataError(f"malformed RDF in {position}: {said}", hint="a graph is N-Triples or Turtle") from None
