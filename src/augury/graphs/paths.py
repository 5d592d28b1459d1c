"""Property paths: pairs of nodes that a path leads from and to, in each event or in a static graph.

Sequences and alternatives are joins and unions of pairs; a repetition is followed step by step, from the nodes that are known
where one of its ends is, until nothing new is reached.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

import numpy as np

from augury.algebra import sparql_algebra as p
from augury.algebra.sparql_algebra import Path, TriplePattern, Variable
from augury.core.arrays import Array
from augury.core.model import Iri
from augury.graphs.rdf_terms import Terms
from augury.graphs.solutions import ONE, SolutionTable, distinct, joined, joint_codes, united
from augury.storage.unique import is_in

if TYPE_CHECKING:
    from augury.graphs.match import TripleIndex

FROM, TO, BETWEEN = " from", " to", " between"  # no variables of SPARQL


def relation(graph: TripleIndex, terms: Terms, triple: TriplePattern, table: SolutionTable) -> SolutionTable:
    """The rows of a table, each with the nodes that a path connects it to."""
    path = triple.predicate
    assert not isinstance(path, Variable)
    walk = _Walk(graph, terms)
    subject, object = triple.subject, triple.object
    starts, ends = walk.nodes_at(subject, table), walk.nodes_at(object, table)
    if starts is not None:
        reached = walk.pairs(path, starts)
    elif ends is not None:
        reached = _swapped(walk.pairs(p.Inverse(path), ends))
    else:
        reached = walk.pairs(path, None)
    named = _under(reached, subject, object, terms)
    return named if table is ONE else joined(table, named, graph.events)


def _under(reached: SolutionTable, subject: object, object: object, terms: Terms) -> SolutionTable:
    """Pairs under the variables at both ends; those fall that do not fit the constants."""
    keep = np.ones(reached.size, bool)
    named: dict[str, Array] = {}
    for end, column in ((subject, reached.columns[FROM]), (object, reached.columns[TO])):
        if not isinstance(end, Variable):
            keep &= column == terms.number(end)  # type: ignore[arg-type]
        elif end.name in named:
            keep &= column == named[end.name]
        else:
            named[end.name] = column
    return distinct(SolutionTable(reached.size, reached.event, named, distinct=False).take(keep))


def _swapped(reached: SolutionTable) -> SolutionTable:
    return SolutionTable(
        reached.size, reached.event, {FROM: reached.columns[TO], TO: reached.columns[FROM]}, reached.distinct
    )


class _Walk:
    """Paths through one graph. A node is a row of a table with its term under FROM, and its event."""

    def __init__(self, graph: TripleIndex, terms: Terms) -> None:
        self.graph, self.terms = graph, terms

    def nodes_at(self, end: object, table: SolutionTable) -> SolutionTable | None:
        """The nodes that an end of a path can be; None where it can be any."""
        if not isinstance(end, Variable):
            node = np.array([self.terms.number(end)])  # type: ignore[arg-type]
            return SolutionTable(1, None, {FROM: node})
        column = table.columns.get(end.name)
        if column is None or table.unbound(end.name):
            return None
        nodes = distinct(SolutionTable(table.size, table.event, {FROM: column}, distinct=False))
        return nodes.take(self.graph.has_nodes(nodes.event, nodes.columns[FROM]))

    def pairs(self, path: Path, starts: SolutionTable | None) -> SolutionTable:
        """The pairs that a path connects, from the nodes that are known, or from all."""
        match path:
            case Iri() | p.Negated():
                return self._from(self._step(path), starts)
            case p.Inverse():
                return self._inverse(path.path, starts)
            case p.PathSequence():
                result = self.pairs(path.parts[0], starts)
                for part in path.parts[1:]:
                    result = self._then(result, part)
                return result
            case p.PathAlternative():
                result = self.pairs(path.parts[0], starts)
                for part in path.parts[1:]:
                    result = distinct(united(result, self.pairs(part, starts), self.graph.events))
                return result
            case p.PathRepeat():
                return self._repeated(path, starts)
            case _:
                assert_never(path)

    def _inverse(self, path: Path, starts: SolutionTable | None) -> SolutionTable:
        match path:
            case Iri() | p.Negated():
                return self._from(_swapped(self._step(path)), starts)
            case p.Inverse():
                return self.pairs(path.path, starts)
            case p.PathSequence():
                return self.pairs(p.PathSequence(tuple(p.Inverse(part) for part in reversed(path.parts))), starts)
            case p.PathAlternative():
                return self.pairs(p.PathAlternative(tuple(p.Inverse(part) for part in path.parts)), starts)
            case p.PathRepeat():
                return self.pairs(p.PathRepeat(p.Inverse(path.path), path.zero, path.many), starts)
            case _:
                assert_never(path)

    def _step(self, path: Iri | p.Negated) -> SolutionTable:
        if isinstance(path, Iri):
            event, subject, _, object = self.graph.select(self.terms.find(path))
            return SolutionTable(len(subject), event, {FROM: subject, TO: object})
        event, subject, predicate, object = self.graph.select(None)
        kept = ~is_in(predicate, [self.terms.find(item) for item in path.excluded])
        table = SolutionTable(len(subject), event, {FROM: subject, TO: object}, distinct=False)
        return distinct(table.take(kept))

    def _from(self, step: SolutionTable, starts: SolutionTable | None) -> SolutionTable:
        return step if starts is None else _ordered(joined(step, starts, self.graph.events))

    def _then(self, reached: SolutionTable, path: Path) -> SolutionTable:
        """Pairs, and from where they lead to, one more path."""
        columns = {BETWEEN: reached.columns[FROM], FROM: reached.columns[TO]}
        first = SolutionTable(reached.size, reached.event, columns)
        nodes = distinct(SolutionTable(reached.size, reached.event, {FROM: reached.columns[TO]}, distinct=False))
        both = joined(first, self.pairs(path, nodes), self.graph.events)
        columns = {FROM: both.columns[BETWEEN], TO: both.columns[TO]}
        return distinct(SolutionTable(both.size, both.event, columns, distinct=False))

    def _repeated(self, path: p.PathRepeat, starts: SolutionTable | None) -> SolutionTable:
        result = self.pairs(path.path, starts)
        if path.many:
            result = self._closed(result, path.path)
        if path.zero:
            nodes = self.nodes() if starts is None else starts
            alone = SolutionTable(nodes.size, nodes.event, {FROM: nodes.columns[FROM], TO: nodes.columns[FROM]})
            result = distinct(united(result, alone, self.graph.events))
        return result

    def _closed(self, reached: SolutionTable, path: Path) -> SolutionTable:
        """All that is reached by one step or more, semi-naively: only what is new takes another step."""
        new = reached
        while new.size:
            new = _unknown(self._then(new, path), reached)
            reached = united(reached, new, self.graph.events)
        return SolutionTable(reached.size, reached.event, reached.columns)

    def nodes(self) -> SolutionTable:
        """All nodes of the graph: what is subject or object of a triple."""
        event, subject, _, object = self.graph.select(None)
        both = np.concatenate([subject, object])
        if event is None:
            return distinct(SolutionTable(len(both), None, {FROM: both}, distinct=False))
        events = np.concatenate([event, event])
        order = np.argsort(events, kind="stable")
        return distinct(SolutionTable(len(both), events[order], {FROM: both[order]}, distinct=False))


def _unknown(reached: SolutionTable, earlier: SolutionTable) -> SolutionTable:
    """The pairs that are not known yet."""

    def parts(table: SolutionTable) -> list[Array]:
        return [column for column in (table.event, table.columns[FROM], table.columns[TO]) if column is not None]

    codes, seen = joint_codes(parts(reached), parts(earlier))
    return reached.take(~is_in(codes, seen))


def _ordered(reached: SolutionTable) -> SolutionTable:
    return SolutionTable(
        reached.size, reached.event, {FROM: reached.columns[FROM], TO: reached.columns[TO]}, reached.distinct
    )
