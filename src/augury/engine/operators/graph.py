"""Graph patterns on graph events: a row for each solution."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, overload

import numpy as np

from augury.algebra.nodes import Graph
from augury.columns.frame import Frame, View
from augury.engine.operators.map import Map
from augury.errors import DataError
from augury.graphs.dataset import NO_DATASET, Dataset
from augury.graphs.match import EventGraph
from augury.graphs.parse import read_pattern
from augury.graphs.patterns import needs
from augury.graphs.read import read
from augury.graphs.solve import Solving
from augury.queries.coded_terms import coded_terms

if TYPE_CHECKING:
    from augury.engine.circuit import Circuit


class Solve(Map):
    """ΔG = the solutions of a graph pattern in Δevents, for all events of a step at once."""

    kind = "graph"

    def __init__(self, circuit: Circuit, source: View, out: View, rule: str, node: Graph) -> None:
        self.node, self.pattern = node, read_pattern(node.pattern)
        self.needs = needs(self.pattern)
        super().__init__(circuit, source, out, rule)

    def mapped(self, frame: Frame) -> Frame:
        coded = coded_terms(self.circuit.tables.dictionary)
        decode, texts = self.circuit.tables.dictionary.decode, frame.vars[self.node.text]
        given = [decode(int(code)) for code in texts]
        for number, text in enumerate(given):
            if not isinstance(text, str):
                raise DataError(f"the graph of event {self._name(frame, number)} is no text")
        found = read(given, coded.terms, self.needs, _Names(self, frame))
        for wrong in found.malformed:
            line = f", line {wrong.line}" if wrong.line else ""
            raise DataError(f"malformed RDF in event {self._name(frame, wrong.event)}{line}: {wrong.message}")
        graph = EventGraph(found.triples, coded.terms)
        solutions = Solving(coded.terms, graph, self._dataset(), len(frame)).final(self.pattern)
        rows = frame.take(solutions.event)
        vars = {
            variable: coded.codes(solutions.columns[name])
            if name in solutions.columns
            else np.full(len(rows), 1, np.int64)
            for name, variable in self.node.binds
        }
        return replace(rows, vars=vars)

    def _dataset(self) -> Dataset:
        return NO_DATASET

    def _name(self, frame: Frame, number: int) -> str:
        ((table, row),) = self.circuit.parts(self.inputs[0].table, int(frame.left[number]))
        return self.circuit.event((table, row)).id


class _Names(Sequence[str]):
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
