"""Graph events as objects: `{"stream": "http://e/stock", "time": 3, "graph": "<http://e/a> <http://e/price> 5 .", "id": "e1"}`.

A graph event is an event whose type is its stream's IRI in angle brackets, and whose one argument is the text of its graph,
N-Triples or Turtle.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from augury.algebra.graph_queries import stream_type
from augury.errors import DataError, RunError, brief
from augury.sources.heading import Names

GRAPH_FORM = '{"stream": "http://example.org/stock", "time": 3, "graph": "<http://e/a> <http://e/price> 5 ."}'
_IRI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^<>\"{}|^`\\\x00-\x20]*")


def is_graph_event(item: Mapping[str, Any], names: Names, type: str | None) -> bool:
    """Whether an object is a graph event: it has a stream, and no type."""
    return type is None and names.type not in item and "stream" in item and item.get(names.op) != "revoke"


def as_plain(item: Mapping[str, Any], names: Names, known: frozenset[str] | set[str]) -> dict[str, Any]:
    """A graph event in the form of other events. The graphs of streams that are `known` are read, to see whether they are RDF."""
    stream, graph = item["stream"], item.get("graph")
    if not isinstance(stream, str) or not _IRI.fullmatch(stream):
        hint = "write it without angle brackets" if isinstance(stream, str) and stream.startswith("<") else GRAPH_FORM
        raise DataError(f"the stream of a graph event is an IRI, not {brief(stream)}", hint=hint)
    if "graph" not in item:
        raise DataError("a graph event has a graph", hint=GRAPH_FORM)
    if not isinstance(graph, str):
        raise DataError(f"the graph of a graph event is text, not {brief(graph)}", hint="N-Triples or Turtle")
    if names.start in item or names.end in item:
        raise DataError("a graph event has one time, no start and end", hint=GRAPH_FORM)
    type = stream_type(stream)
    if type in known:
        check_graph(graph)
    rest = {key: value for key, value in item.items() if key not in ("stream", "graph")}
    return {**rest, names.type: type, "args": [graph]}


def check_graph(text: str) -> None:
    """Raises DataError where a text is neither N-Triples nor Turtle."""
    try:
        import pyoxigraph as ox
    except ImportError:
        raise RunError("graph events need pyoxigraph", hint="pip install 'augury[rdf]'") from None
    try:
        for _ in ox.parse(text.encode("utf-8", "surrogatepass"), ox.RdfFormat.TURTLE):
            pass
    except SyntaxError as error:
        said = re.sub(r"^Parser error (at|between) [^:]*: ", "", error.msg or "")
        place = f"line {error.lineno} of the graph" if error.lineno else "the graph"
        raise DataError(
            f"malformed RDF in {place}: {said[:1].lower()}{said[1:]}", hint="a graph is N-Triples or Turtle"
        ) from None
