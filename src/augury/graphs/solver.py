"""Solutions of a graph pattern in each event of a batch: columns in, columns out, one case for each node.

Nodes are evaluated bottom up, as SPARQL defines them. A node receives `bindings` that its solutions will be joined
with: a hint, by which a pattern on the static dataset looks up bound values instead of listing all triples.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import assert_never

import numpy as np

from augury.algebra import sparql_algebra as p
from augury.algebra.sparql_algebra import Expression, Pattern
from augury.core.arrays import Array
from augury.graphs.dataset import NO_DATASET, GraphDataset, seeds
from augury.graphs.evaluate import TermExpressions
from augury.graphs.graph_texts import EventTriples
from augury.graphs.match import EventGraph, PendingFilters, TripleIndex, match_basic
from augury.graphs.push import push
from augury.graphs.rdf_terms import UNBOUND, Terms
from augury.graphs.solutions import (
    Pairs,
    SolutionTable,
    distinct,
    in_each_event,
    joined,
    merged,
    nothing,
    pairs,
    stacked,
    united,
)


@dataclass(frozen=True)
class Solutions:
    """The solutions of a pattern, sorted by event: numbers of terms by variable, UNBOUND where one is open. Each is there once."""

    event: Array
    columns: dict[str, Array]

    def __len__(self) -> int:
        return len(self.event)


def solutions(pattern: Pattern, triples: EventTriples, terms: Terms, dataset: GraphDataset = NO_DATASET) -> Solutions:
    """The solutions of a pattern in each event of a batch; GRAPH is asked of the dataset."""
    solving = Solving(terms, EventGraph(triples, terms), dataset, triples.events)
    return solving.final(pattern)


class Solving:
    """A batch of events while patterns are solved in it; several patterns may share it.

    `outer` are bindings, one row an event, that stand in place of variables: those of the rows that EXISTS is asked of.
    """

    def __init__(
        self, terms: Terms, graph: TripleIndex, dataset: GraphDataset, events: int, outer: SolutionTable | None = None
    ) -> None:
        self.terms, self.graph, self.dataset, self.events, self.outer = terms, graph, dataset, events, outer
        self.expressions = TermExpressions(terms, self._exists)

    def final(self, pattern: Pattern) -> Solutions:
        names = p.may_bind(pattern)
        result = distinct(in_each_event(self.solve(pattern), self.events).only(names))
        assert result.event is not None
        unbound = np.full(result.size, UNBOUND, np.int64)
        return Solutions(result.event, {name: result.columns.get(name, unbound) for name in sorted(names)})

    def solve(self, pattern: Pattern, bindings: SolutionTable | None = None) -> SolutionTable:
        match pattern:
            case p.Basic():
                return self._basic(pattern, [], bindings)
            case p.SparqlJoin():
                left = self.solve(pattern.left, bindings)
                return joined(left, self.solve(pattern.right, _hint(left, bindings)), self.events)
            case p.LeftJoin():
                return self._left_join(pattern, bindings)
            case p.SparqlUnion():
                return united(self.solve(pattern.left, bindings), self.solve(pattern.right, bindings), self.events)
            case p.Minus():
                return self._minus(pattern, bindings)
            case p.Filter():
                return self._filter(pattern, bindings)
            case p.Extend():
                return self._extend(pattern, bindings)
            case p.InlineValues():
                return self._put_in(self._values(pattern))
            case p.InGraph():
                return self._put_in(self._in_graph(pattern, bindings))
            case p.Project():
                hint = None if bindings is None else bindings.only(pattern.variables)
                return distinct(self.solve(pattern.pattern, hint).only(pattern.variables))
            case _:
                assert_never(pattern)

    def _put_in(self, table: SolutionTable) -> SolutionTable:
        """The rows that agree with the outer bindings."""
        if self.outer is None:
            return table
        shared = self.outer.only(table.columns)
        return joined(table, shared, self.events) if shared.columns else table

    def _basic(
        self, pattern: p.Basic, conditions: Sequence[Expression], bindings: SolutionTable | None
    ) -> SolutionTable:
        return self._put_in(match_basic(self.graph, pattern, PendingFilters(conditions, self._holds), bindings))

    def _holds(self, condition: Expression, table: SolutionTable) -> Array:
        return self.expressions.holds(condition, self._seen(table))

    def _seen(self, table: SolutionTable) -> SolutionTable:
        """The scope of an expression: the columns of a table, and the outer bindings."""
        if self.outer is None:
            return table
        table = in_each_event(table, self.events)
        more = {n: column[table.event] for n, column in self.outer.columns.items() if n not in table.columns}
        return SolutionTable(table.size, table.event, {**table.columns, **more}, table.distinct)

    def _ready(self, expression: Expression | None, table: SolutionTable) -> SolutionTable:
        """A table of which an expression can be asked: one that looks at an event is asked event by event."""
        if self.outer is not None:
            return in_each_event(table, self.events)
        looks = expression is not None and any(p.exists_in(expression)) and isinstance(self.graph, EventGraph)
        return in_each_event(table, self.events) if looks else table

    def _extend(self, pattern: p.Extend, bindings: SolutionTable | None) -> SolutionTable:
        if bindings is not None and pattern.variable in bindings.columns:
            bindings = bindings.only(bindings.columns.keys() - {pattern.variable})
        inner = self._ready(pattern.expression, self.solve(pattern.pattern, bindings))
        result = self.expressions.terms_of(pattern.expression, self._seen(inner))
        return inner.with_column(pattern.variable, result)

    def _left_join(self, pattern: p.LeftJoin, bindings: SolutionTable | None) -> SolutionTable:
        left = self._ready(pattern.condition, self.solve(pattern.left, bindings))
        right = self.solve(pattern.right, _hint(left, bindings))
        if right.event is not None:
            left = in_each_event(left, self.events)
        row_pairs = pairs(left, right, self.events)
        table = merged(left, right, row_pairs)
        if pattern.condition is not None:
            holds = self._holds(pattern.condition, table)
            table, row_pairs = table.take(holds), Pairs(row_pairs.left[holds], row_pairs.right[holds])
        alone = np.ones(left.size, bool)
        alone[row_pairs.left] = False
        if not alone.any():
            return table
        order = np.argsort(np.concatenate([row_pairs.left, np.flatnonzero(alone)]), kind="stable")
        both = stacked(table, left.take(alone))
        # A row of the left alone differs from those that have a partner, unless the partner leaves all its variables open.
        return both.take(order, distinct=table.distinct and left.distinct and bool(_new_columns(left, right)))

    def _minus(self, pattern: p.Minus, bindings: SolutionTable | None) -> SolutionTable:
        left = self.solve(pattern.left, bindings)
        right = self.solve(pattern.right, _hint(left, bindings))
        shared = [name for name in left.columns if name in right.columns]
        if not shared or not left.size or not right.size:
            return left
        if right.event is not None:
            left = in_each_event(left, self.events)
        row_pairs = pairs(left, right, self.events)
        common = np.zeros(len(row_pairs.left), bool)
        for name in shared:
            common |= (left.columns[name][row_pairs.left] != UNBOUND) & (
                right.columns[name][row_pairs.right] != UNBOUND
            )
        kept = np.ones(left.size, bool)
        kept[row_pairs.left[common]] = False
        return left.take(kept)

    def _filter(self, pattern: p.Filter, bindings: SolutionTable | None) -> SolutionTable:
        """Conditions are asked as soon as what they look at is bound."""
        conditions, inner = p.conjuncts(pattern.condition), pattern.pattern
        while isinstance(inner, p.Filter):
            conditions, inner = [*p.conjuncts(inner.condition), *conditions], inner.pattern
        inner, conditions = push(inner, conditions)
        if isinstance(inner, p.Basic):
            early = [c for c in conditions if p.mentioned(c) <= p.may_bind(inner) and not any(p.exists_in(c))]
            result = self._basic(inner, early, bindings)
            conditions = [c for c in conditions if c not in early]
        else:
            result = self.solve(inner, bindings)
        for condition in conditions:
            result = self._ready(condition, result)
            result = result.take(self._holds(condition, result))
        return result

    def _values(self, pattern: p.InlineValues) -> SolutionTable:
        numbers = [[UNBOUND if term is None else self.terms.number(term) for term in row] for row in pattern.rows]
        rows = np.array(numbers, np.int64).reshape(len(pattern.rows), len(pattern.variables))
        columns = {name: rows[:, i].copy() for i, name in enumerate(pattern.variables)}
        return distinct(SolutionTable(len(pattern.rows), None, columns, distinct=False))

    def _in_graph(self, pattern: p.InGraph, bindings: SolutionTable | None) -> SolutionTable:
        """A graph by its name; by a variable, each of the graphs that have a name."""
        names = p.may_bind(pattern.pattern)
        hint = None if bindings is None else seeds(bindings, names)
        if not isinstance(pattern.graph, p.Variable):
            graph = self.dataset.graph(self.terms.find(pattern.graph))
            return nothing(names) if graph is None else self._inside(graph).solve(pattern.pattern, hint)
        name = pattern.graph.name
        chosen = self.dataset.names
        if bindings is not None and name in bindings.columns and not bindings.unbound(name):
            chosen = [number for number in chosen if (bindings.columns[name] == number).any()]
        table = nothing({*names, name})
        for number in chosen:
            graph = self.dataset.graph(number)
            assert graph is not None
            here = SolutionTable(1, None, {name: np.array([number])})
            table = united(
                table, joined(self._inside(graph).solve(pattern.pattern, hint), here, self.events), self.events
            )
        return SolutionTable(table.size, table.event, table.columns)

    def _inside(self, graph: TripleIndex) -> Solving:
        return Solving(self.terms, graph, self.dataset, self.events, self.outer)

    # EXISTS

    def _exists(self, expression: p.Exists, table: SolutionTable) -> Array:
        """For each row whether the pattern has a solution that agrees with it, the row's values put in place of variables."""
        pattern, conditions = expression.pattern, list[Expression]()
        while isinstance(pattern, p.Filter):
            conditions.insert(0, pattern.condition)
            pattern = pattern.pattern
        if independent(pattern, frozenset(table.columns)):
            right = self.solve(pattern, table)
            matched = pairs(table, right, self.events)
            both = merged(table, right, matched)
            for condition in conditions:
                holds = self._holds(condition, both)
                both, matched = both.take(holds), Pairs(matched.left[holds], matched.right[holds])
            result = np.zeros(table.size, bool)
            result[matched.left] = True
        else:
            result = self._exists_by_row(expression.pattern, table)
        return ~result if expression.negated else result

    def _exists_by_row(self, pattern: Pattern, table: SolutionTable) -> Array:
        """Each row is an event of its own."""
        outer = SolutionTable(table.size, np.arange(table.size), table.columns)
        graph = self.graph.for_rows(table.event, table.size)
        solved = in_each_event(Solving(self.terms, graph, self.dataset, table.size, outer).solve(pattern), table.size)
        result = np.zeros(table.size, bool)
        result[solved.event] = True
        return result


def _hint(left: SolutionTable, bindings: SolutionTable | None) -> SolutionTable | None:
    """The input of the right side of a join: the rows of the left one."""
    return left if left.columns else bindings


def _new_columns(left: SolutionTable, right: SolutionTable) -> list[str]:
    """The variables that every row of the right side binds, and the left side does not have."""
    return [name for name in right.columns if name not in left.columns and not right.unbound(name)]


def independent(pattern: Pattern, outer: frozenset[str]) -> bool:
    """Whether solutions that agree with a row are those of the pattern with the row's values put in place of variables.

    That is so unless an expression looks at an outer variable that is not bound where it stands, or a side that is
    optional, or taken away, decides by one.
    """
    match pattern:
        case p.Basic() | p.InlineValues():
            return True
        case p.SparqlJoin() | p.SparqlUnion():
            return independent(pattern.left, outer) and independent(pattern.right, outer)
        case p.LeftJoin() | p.Minus():
            bound = p.certainly_binds(pattern.left)
            inner = independent(pattern.left, outer) and independent(pattern.right, outer)
            condition = pattern.condition if isinstance(pattern, p.LeftJoin) else None
            looked = p.mentioned(condition) if condition is not None else frozenset[str]()
            return inner and not ((p.may_bind(pattern.right) | looked) & outer) - bound
        case p.Filter():
            looked = p.mentioned(pattern.condition) & outer
            return independent(pattern.pattern, outer) and looked <= p.certainly_binds(pattern.pattern)
        case p.Extend():
            looked = (p.mentioned(pattern.expression) | {pattern.variable}) & outer
            return independent(pattern.pattern, outer) and looked <= p.certainly_binds(pattern.pattern)
        case p.InGraph():
            return independent(pattern.pattern, outer)
        case p.Project():
            return independent(pattern.pattern, outer & frozenset(pattern.variables))
        case _:
            assert_never(pattern)
