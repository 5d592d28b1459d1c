"""The rows of one match: GROUP BY, HAVING, ORDER BY and LIMIT over the iterations of a repetition."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cmp_to_key
from typing import TypeAlias

import numpy as np

from augury.core.model import Value
from augury.graphs.rdf_terms import UNBOUND, Terms, key_text, term_of_text
from augury.graphs.solutions import SolutionTable
from augury.queries.term_aggregates import TermAggregate, compared
from augury.queries.term_functions import expression_of, expressions_over, graph_text

Row: TypeAlias = dict[str, str]  # what is bound: terms by their keys
Named: TypeAlias = tuple[str, str | None]  # a name, and the expression that it is


@dataclass(frozen=True)
class MatchRows:
    """The rows that a match answers with, each a list of terms; or, with a template, the one graph that they make.

    names       of the arguments: first the values of the match, then for each variable that is an iteration's own all it had.
    own         how many of them are own.
    group_by    keys; without any the match is one row.
    aggregates  name, function and expression; None counts rows.
    """

    names: tuple[str, ...]
    own: int
    group_by: tuple[Named, ...]
    aggregates: tuple[tuple[str, TermAggregate, str | None], ...]
    columns: tuple[Named, ...]
    having: tuple[str, ...]
    order_by: tuple[tuple[str, bool], ...]
    limit: int | None
    template: tuple[tuple[str, str, str], ...] = ()

    def __call__(self, *args: Value) -> Value:
        rows = self._rows(args)
        if self.template:
            text = graph_text(self.template, [{n: term_of_text(key) for n, key in row.items()} for row in rows])
            return ((text,),) if text else ()
        return tuple(tuple(row.get(name) for name, _ in self.columns) for row in rows)

    def _rows(self, args: Sequence[Value]) -> list[Row]:
        count = len(self.names) - self.own
        keys = {n: str(key) for n, key in zip(self.names[:count], args, strict=False) if key is not None}
        lists = dict(zip(self.names[count:], args[count:], strict=True))
        same = {n: key for n, key in keys.items() if n not in lists}
        iterations: list[Row] = [dict(keys)]
        if lists:
            times = max(len(item) for item in lists.values() if isinstance(item, tuple))
            iterations = [
                same | {n: str(item[i]) for n, item in lists.items() if isinstance(item, tuple) and item[i] is not None}
                for i in range(times)
            ]
        result = [self._computed(row, group) for row, group in self._groups(same, iterations)]
        for text in self.having:
            held = holding(text, result)
            result = [row for row, item in zip(result, held, strict=True) if item]
        for text, descending in reversed(self.order_by):
            places = dict(zip(map(id, result), evaluated(text, result), strict=True))
            result.sort(key=lambda row: cmp_to_key(_in_order)(places[id(row)]), reverse=descending)
        return result[: self.limit]

    def _groups(self, same: Row, iterations: list[Row]) -> list[tuple[Row, list[Row]]]:
        keys = [evaluated(text or f"?{name}", iterations) for name, text in self.group_by]
        groups: dict[tuple[str | None, ...], list[Row]] = {}
        for values, iteration in zip(zip(*keys, strict=True), iterations, strict=True):
            groups.setdefault(values, []).append(iteration)
        names = [name for name, _ in self.group_by]
        return [
            (same | {n: key for n, key in zip(names, values, strict=True) if key is not None}, group)
            for values, group in groups.items()
        ]

    def _computed(self, row: Row, group: list[Row]) -> Row:
        result = dict(row)
        for name, function, text in self.aggregates:
            if text is None:
                counted = [str(sorted(item.items())) for item in group]
                value: Value = TermAggregate("COUNT", function.distinct)(tuple(f'"{item}"' for item in counted))
            else:
                value = function(tuple(evaluated(text, group)))
            if value is not None:
                result[name] = str(value)
        for name, text in self.columns:
            if text is not None and (value := evaluated(text, [result])[0]) is not None:
                result[name] = value
        return result


def _table(rows: Sequence[Row], terms: Terms) -> SolutionTable:
    names = dict.fromkeys(name for row in rows for name in row)
    columns = {name: np.full(len(rows), UNBOUND, np.int64) for name in names}
    for index, row in enumerate(rows):
        for name, key in row.items():
            columns[name][index] = terms.number(term_of_text(key))
    return SolutionTable(len(rows), None, columns, distinct=False)


def evaluated(text: str, rows: Sequence[Row]) -> list[str | None]:
    """What an expression is in each row; None where it is an error."""
    terms = Terms()
    table = _table(rows, terms)
    result: Iterable[int] = expressions_over(terms).terms_of(expression_of(text), table) if rows else []
    return [None if n == UNBOUND else key_text(terms.term(int(n))) for n in result]


def holding(text: str, rows: Sequence[Row]) -> list[bool]:
    """In which rows an expression is true."""
    terms = Terms()
    return list(expressions_over(terms).holds(expression_of(text), _table(rows, terms))) if rows else []


def _in_order(a: str | None, b: str | None) -> int:
    if a is None or b is None:
        return (a is not None) - (b is not None)
    x, y = (term_of_text(key) for key in (a, b))
    return compared(x, y)
