"""Graph events from N-Quads, TriG and JSON-LD: each named graph is an event, and its name the event's id.

    <http://e/g1> { <http://e/ibm> <http://e/price> 12.5 . <http://e/g1> <http://e/at> "2026-07-01T12:00:00Z" }

Its time is a triple with the time predicate, in the graph or, with the graph's name as subject, outside of all graphs; without such
a predicate it is what the graph's name ends in: a time, or a number.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from augury.algebra.sparql_algebra import Literal
from augury.core.errors import DataError
from augury.graphs.lexical import number_of
from augury.graphs.oxigraph import is_made_up, oxigraph, said_by_parser
from augury.sources.arrow_cells import ArrowCells
from augury.sources.blocks import ByteStream
from augury.sources.problems import Problem
from augury.sources.python_cells import PlainCells
from augury.sources.sheet import Sheet

_SIZE = 1 << 14  # events of a sheet
_DAY, _CLOCK = r"\d{4}-\d\d-\d\d", r"\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)?"
_TIME_AT_END = re.compile(rf"(?<![\w.-])({_DAY}([T ]{_CLOCK})?|-?\d+)$", re.ASCII)


@dataclass
class _NamedGraph:
    """A named graph while its file is read."""

    name: str
    lines: list[str] = field(default_factory=list)
    times: list[Any] = field(default_factory=list)  # what is said of its time


def read(stream: ByteStream, location: str, form: str, time_predicate: str = "") -> Iterator[Sheet]:
    """The named graphs of a file as rows `graph`, `time` and `id`."""
    data = _whole(stream)
    problems: list[Problem] = []
    quads = _quads(data, form, location, problems)
    graphs = _grouped(quads, time_predicate)
    if not graphs and not problems:
        hint = "each event is a graph that has a name: <http://example.org/e1> { … }"
        raise DataError("has no named graphs, and so no events", location, hint)
    timed = [
        (graph, time) for graph in graphs if (time := _time(graph, time_predicate, location, problems)) is not None
    ]
    for first in range(0, max(1, len(timed)), _SIZE):
        rows = timed[first : first + _SIZE]
        cells = [
            ArrowCells(pa.array(["".join(graph.lines) for graph, _ in rows], pa.string())),
            PlainCells([time for _, time in rows]),
            ArrowCells(pa.array([graph.name for graph, _ in rows], pa.string())),
        ]
        yield Sheet(("graph", "time", "id"), list(cells), len(rows), location, problems=problems if first == 0 else [])


def _whole(stream: ByteStream) -> bytes:
    return b"".join(iter(lambda: stream.read(1 << 24), b"")).removeprefix(b"\xef\xbb\xbf")


def _quads(data: bytes, form: str, location: str, problems: list[Problem]) -> list[Any]:
    """The statements of a file. Of N-Quads that are malformed, those of the lines that are not."""
    ox = oxigraph()
    format = {"N-Quads": ox.RdfFormat.N_QUADS, "TriG": ox.RdfFormat.TRIG, "JSON-LD": ox.RdfFormat.JSON_LD}[form]
    try:
        return list(ox.parse(data, format))
    except SyntaxError as error:
        if form != "N-Quads":
            problems.append(_problem(error, form, location, error.lineno or 0))
            return []
    result: list[Any] = []
    for number, line in enumerate(data.splitlines(), 1):
        try:
            result += ox.parse(line, format)
        except SyntaxError as error:
            problems.append(_problem(error, form, location, number))
    return result


def _problem(error: SyntaxError, form: str, location: str, line: int) -> Problem:
    line_location = f"{location}:{line}" if line else location
    return line, DataError(f"malformed {form}: {said_by_parser(error)}", line_location)


def _grouped(quads: list[Any], time_predicate: str) -> list[_NamedGraph]:
    """The named graphs in the order in which they begin."""
    ox = oxigraph()
    labels = _Labels(quads)
    graphs: dict[str, _NamedGraph] = {}
    outside: list[tuple[str, Any]] = []
    for quad in quads:
        timed = bool(time_predicate) and quad.predicate.value == time_predicate
        if isinstance(quad.graph_name, ox.DefaultGraph):
            if timed:
                outside.append((labels.shown(quad.subject), quad.object))
            continue
        key = labels.shown(quad.graph_name)
        graph = graphs.setdefault(key, _NamedGraph(key.removeprefix("<").removesuffix(">")))
        graph.lines.append(" ".join(map(labels.shown, (quad.subject, quad.predicate, quad.object))) + " .\n")
        if timed:
            graph.times.append(quad.object)
    for key, time in outside:
        if key in graphs:
            graphs[key].times.append(time)
    return list(graphs.values())


class _Labels:
    """Terms as N-Triples writes them; blank nodes without a label get one that no other has, and the same every time."""

    def __init__(self, quads: list[Any]) -> None:
        self.ox = oxigraph()
        self.names: dict[str, str] = {}
        blank = self.ox.BlankNode
        terms = [t for q in quads for t in (q.subject, q.object, q.graph_name) if isinstance(t, blank)]
        self.used = {t.value for t in terms if not is_made_up(t.value)}

    def shown(self, term: object) -> str:
        if isinstance(term, self.ox.BlankNode) and is_made_up(term.value):
            return f"_:{self._label(term.value)}"
        return str(term)

    def _label(self, label: str) -> str:
        result = self.names.get(label)
        if result is None:
            number = len(self.names)
            while f"b{number}" in self.used:
                number += 1
            result = self.names[label] = f"b{number}"
            self.used.add(result)
        return result


def _time(graph: _NamedGraph, time_predicate: str, location: str, problems: list[Problem]) -> int | str | None:
    """The time of a graph, as it is written; None where there is none, or there are several."""
    times = {str(time): time for time in graph.times}
    if len(times) > 1:
        problems.append((0, DataError(f"the graph `{graph.name}` has {len(times)} times", location)))
        return None
    if times:
        return _written(next(iter(times.values())))
    at_end = _TIME_AT_END.search(graph.name)
    if at_end is not None:
        return int(at_end[1]) if at_end[1].lstrip("-").isdigit() else at_end[1]
    what = f"no triple <{time_predicate}>" if time_predicate else "a name that ends in no time"
    hint = (
        ""
        if time_predicate
        else "say which triple has the time with --time-predicate, or end the names of graphs in it"
    )
    problems.append((0, DataError(f"the graph `{graph.name}` has {what}", location, hint)))
    return None


def _written(time: object) -> int | str:
    ox = oxigraph()
    if isinstance(time, ox.Literal):
        number = number_of(Literal(time.value, time.datatype.value))
        if isinstance(number, int):
            return number
    return str(getattr(time, "value", time))
