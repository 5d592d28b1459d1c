"""Graph patterns on graph events: a row for each solution."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, overload

import numpy as np

from augury.algebra.nodes import Scan
from augury.algebra.sparql_algebra import TripleNeeds, needs, static_graphs
from augury.algebra.sparql_parser import read_pattern
from augury.algebra.terms import Var
from augury.core.arrays import Array, RowIds
from augury.core.errors import DataError
from augury.core.model import Iri
from augury.engine.events import Events
from augury.engine.operators.map import EachRow
from augury.graphs.dataset import NO_DATASET, GraphDataset
from augury.graphs.graph_texts import EventTriples, ReadAhead, read
from augury.graphs.match import EventGraph
from augury.graphs.rdf_terms import Terms
from augury.graphs.solver import Solving
from augury.knowledge.static_triples import STATIC_TRIPLES
from augury.planner.specs import GraphSpec
from augury.queries.coded_terms import CodedTerms, coded_terms
from augury.storage.column import Coded, Column, TextArray, some, values_of
from augury.storage.frame import Frame
from augury.storage.unique import is_in, unique

if TYPE_CHECKING:
    from augury.engine.runtime import Runtime


class GraphTexts:
    """The graphs of a table of events: read once for all patterns that are asked of them, with what any of these needs."""

    def __init__(self) -> None:
        self.needs = TripleNeeds()
        self._last: tuple[CodedTerms, TripleNeeds, Array, EventTriples] | None = None

    def forget(self) -> None:
        self._last = None

    def triples(self, rows: RowIds, coded: CodedTerms, read: Callable[[], EventTriples]) -> EventTriples:
        """The triples of the events of some rows: those of the last read, or read again."""
        last = self._last
        if last is None or last[0] is not coded or last[1] != self.needs or not np.array_equal(last[2], rows):
            last = self._last = (coded, self.needs, rows, read())
        return last[3]


class Solve(EachRow):
    """ΔG = the solutions of a graph pattern in Δevents, for all events of a step at once."""

    stays = True

    def __init__(self, runtime: Runtime, spec: GraphSpec) -> None:
        super().__init__(runtime, spec)
        self.node, self.pattern = spec.node, read_pattern(spec.node.pattern)
        self.texts = runtime.graph_texts.setdefault(id(self.inputs[0].table), GraphTexts())
        self.texts.needs |= needs(self.pattern)
        inside = list(static_graphs(self.pattern))
        self.named = [name for name in inside if isinstance(name, Iri)]
        self.reads_graphs = bool(inside)
        self._known: tuple[CodedTerms, GraphDataset] | None = None

    def mapped(self, frame: Frame) -> Frame:
        coded = coded_terms(self.runtime.tables.dictionary)
        triples = self.texts.triples(frame.left, coded, lambda: self._read(frame, coded))
        graph = EventGraph(triples, coded.terms)
        solutions = Solving(coded.terms, graph, self._dataset(), len(frame)).final(self.pattern)
        rows = frame.take(solutions.event)
        vars = {v: codes for v, codes in rows.vars.items() if v != self.node.text}
        vars |= {
            variable: coded.codes(solutions.columns[name])
            if name in solutions.columns
            else np.full(len(rows), 1, np.int64)
            for name, variable in self.node.binds
        }
        if self.node.event is not None:
            names = [self._name(frame, number) for number in range(len(frame))]
            ids = self.runtime.tables.dictionary.encode_all(names)
            vars[self.node.event] = ids[solutions.event]
        return replace(rows, vars=vars)

    def rebuild(self) -> None:
        super().rebuild()
        self.texts.forget()  # rows may have other numbers now

    def _read(self, frame: Frame, coded: CodedTerms) -> EventTriples:
        """The triples of events that some pattern may need: as they were read when they came, or else read now."""
        columns = self._columns(frame)
        ahead = [self._ahead(column) for column in columns]
        if all(ahead):
            return EventTriples.joined([coded.renumbered(some, read.terms) for some, read in filter(None, ahead)])
        texts = [value for column in columns for value in values_of(column)]
        for number, text in enumerate(texts):
            if not isinstance(text, str):
                raise DataError(f"the graph of event {self._name(frame, number)} is no text")
        result = read(texts, coded.terms, self.texts.needs, _EventIds(self, frame))
        for wrong in result.malformed:
            line = f", line {wrong.line}" if wrong.line else ""
            raise DataError(f"malformed RDF in event {self._name(frame, wrong.event)}{line}: {wrong.message}")
        return result.triples

    def _ahead(self, column: Column) -> tuple[EventTriples, ReadAhead] | None:
        """The triples of texts that were read when they came, if that has all that is needed."""
        values = column.values if isinstance(column, Coded) else None
        if not isinstance(values, TextArray) or values.read is None or not self.texts.needs <= values.read.needs:
            return None
        read: ReadAhead = values.read
        if len(column) and int(column.index[-1]) == len(values) - 1:  # texts are taken in order, each once
            values.read = None
        return read.triples.of_events(column.index), read

    def _columns(self, frame: Frame) -> list[Column]:
        """The texts of events, in columns one behind the other."""
        codes = frame.vars.get(self.node.text)
        if codes is not None:
            decode = self.runtime.tables.dictionary.decode
            return [[decode(code) for code in codes.tolist()]]
        events, scan = self.runtime.maker(self.inputs[0].table), self.node.input
        assert isinstance(scan, Scan) and isinstance(events, Events)
        position = next(i for i, a in enumerate(scan.args) if isinstance(a, Var) and a.name == self.node.text)
        return [some(chunk.columns[position], positions) for chunk, positions in events.pieces(frame.left)]

    def _dataset(self) -> GraphDataset:
        """The static graphs that the pattern may read, with all their triples."""
        if not self.reads_graphs:
            return NO_DATASET
        coded = coded_terms(self.runtime.tables.dictionary)
        if self._known is None or self._known[0] is not coded:
            self._known = (coded, self._graphs(coded.terms))
        return self._known[1]

    def _graphs(self, terms: Terms) -> GraphDataset:
        tables = [table for table in self.runtime.facts.tables if table.name == STATIC_TRIPLES]
        columns = [[_numbers(table.columns[i], terms) for table in tables] for i in range(4)]
        graph, *triples = (np.concatenate([np.empty(0, np.int64), *column]) for column in columns)
        visible = None if self.node.visible is None else terms.numbers(Iri(name) for name in self.node.visible)
        names = unique(np.concatenate([graph[graph >= 0], terms.numbers(self.named)]))
        names = names if visible is None else names[is_in(names, visible)]
        everywhere = np.flatnonzero(graph < 0)
        rows = np.concatenate([np.flatnonzero(is_in(graph, names)), *(everywhere for _ in names)])
        owner = np.concatenate([graph[is_in(graph, names)], np.repeat(names, len(everywhere))])
        return GraphDataset.of(triples[0][rows], triples[1][rows], triples[2][rows], owner, terms)

    def _name(self, frame: Frame, number: int) -> str:
        ((table, row),) = self.runtime.parts(self.inputs[0].table, int(frame.left[number]))
        return self.runtime.event((table, row)).id


def _numbers(column: Column, terms: Terms) -> Array:
    """The numbers of terms in a column of keys; -1 for null."""
    values, index = (column.values, column.index) if isinstance(column, Coded) else (list(values_of(column)), None)
    keys = [str(v).encode("utf-8", "surrogatepass") for v in values if v is not None]
    numbers = np.full(len(values) + 1, -1, np.int64)
    numbers[[i for i, v in enumerate(values) if v is not None]] = terms.keys.add(keys)
    return numbers[:-1] if index is None else numbers[index]


class _EventIds(Sequence[str]):
    """The ids of events, each found when it is asked for: only blank nodes need them."""

    def __init__(self, operator: Solve, frame: Frame) -> None:
        self.operator, self.frame = operator, frame

    def __len__(self) -> int:
        return len(self.frame)

    @overload
    def __getitem__(self, number: int) -> str: ...

    @overload
    def __getitem__(self, number: slice) -> Sequence[str]: ...

    def __getitem__(self, number: int | slice) -> str | Sequence[str]:
        if isinstance(number, slice):
            return [self[i] for i in range(*number.indices(len(self)))]
        return self.operator._name(self.frame, number)
