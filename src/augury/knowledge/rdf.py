"""Triples as columns of numbers: of terms as they are written, or of their values; and as tables of facts."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from augury.core.arrays import Array, Integers, RowIds
from augury.core.model import Iri, Term, Value
from augury.graphs.rdf_terms import key_text, term_of, value_of_key
from augury.knowledge.fact_table import FactTable
from augury.sources import Coded

Pairs: TypeAlias = tuple[Array, Array]  # the subjects and the objects of one predicate


def _identity(value: Value) -> object:
    """Distinguishes values: `1`, `1.0` and `true` are three."""
    kind = type(value)
    return kind, value.text if kind is Iri else repr(value) if kind is Term else value  # type: ignore[union-attr]


class _Values:
    """Different values, each with a number."""

    def __init__(self) -> None:
        self.listed: list[Value] = []
        self._numbers: dict[Any, int] = {}

    def number(self, value: Value) -> int:
        """The number of a value, a new one where there is none."""
        number = self._numbers.setdefault(_identity(value), len(self.listed))
        if number == len(self.listed):
            self.listed.append(value)
        return number


@dataclass(frozen=True)
class Quads:
    """Statements by their terms as they are written.

    `keys` are those of the terms, see `rdf_terms.py`; rows are the numbers of subject, predicate, object and graph, which is -1
    for the default graph.
    """

    keys: Sequence[str]
    rows: RowIds

    @staticmethod
    def of(triples: RdfTriples) -> Quads:
        """Values as they are written."""
        columns = (triples.subject, triples.predicate, triples.object, triples.graph)
        return Quads([key_text(term_of(value)) for value in triples.terms], np.column_stack(columns))

    def in_named_graphs(self) -> Array:
        """The rows, with -1 for a graph that is a blank node, too."""
        named = np.array([*(key[0] != "_" for key in self.keys), False], bool)
        return np.column_stack([self.rows[:, :3], np.where(named[self.rows[:, 3]], self.rows[:, 3], -1)])

    def by_value(self) -> tuple[list[Value], Array]:
        """The different values of the terms, and for each term the number of its value; -1 stays itself."""
        values = _Values()
        numbers = np.empty(len(self.keys) + 1, np.int32)
        for i, key in enumerate(self.keys):
            if key[0] == '"' != key[-1] or key[1] == "<":  # there may be others with its value
                numbers[i] = values.number(value_of_key(key))
            else:
                numbers[i] = len(values.listed)
                values.listed.append(value_of_key(key))
        numbers[-1] = -1
        return values.listed, numbers

    def triples(self) -> RdfTriples:
        """The same with a number for each different value: `1` and `01` are one."""
        values, numbers = self.by_value()
        return RdfTriples(values, *(numbers[column] for column in self.rows.T))


@dataclass(frozen=True)
class RdfTriples:
    """Triples as numbers of terms: `terms[subject[i]]` is the subject of triple `i`; graph -1 is the default graph."""

    terms: Sequence[Value]  # all different
    subject: Array
    predicate: Array
    object: Array
    graph: Array

    @staticmethod
    def of(rows: Iterable[tuple[Value, Value, Value]]) -> RdfTriples:
        """Triples of the default graph."""
        values = _Values()
        numbers = [values.number(value) for row in rows for value in row]
        subject, predicate, object = np.array(numbers, np.int32).reshape(-1, 3).T
        return RdfTriples(values.listed, subject, predicate, object, np.full(len(subject), -1, np.int32))

    @staticmethod
    def joined(parts: Sequence[RdfTriples]) -> RdfTriples:
        """The triples of several files as one; a term that is in two of them has one number."""
        if len(parts) == 1:
            return parts[0]
        values = _Values()
        columns: list[list[Array]] = [[], [], [], []]
        for part in parts:
            places = np.array([*map(values.number, part.terms), -1], np.int32)  # the last one: the default graph
            for column, numbers in zip(columns, (part.subject, part.predicate, part.object, part.graph), strict=True):
                column.append(places[numbers])
        return RdfTriples(values.listed, *(np.concatenate([np.empty(0, np.int32), *column]) for column in columns))

    def __len__(self) -> int:
        return len(self.subject)

    def __iter__(self) -> Iterator[tuple[Value, Value, Value]]:
        for s, p, o in zip(self.subject.tolist(), self.predicate.tolist(), self.object.tolist(), strict=True):
            yield self.terms[s], self.terms[p], self.terms[o]

    @cached_property
    def pairs(self) -> dict[int, Pairs]:
        """Subjects and objects for each predicate, over all graphs: every pair once, in order."""
        n = max(1, len(self.terms))
        order = np.argsort(self.predicate, kind="stable")
        keys = (self.subject.astype(np.int64) * n + self.object)[order]
        ordered = self.predicate[order]
        result = distinct(ordered)
        parts = np.split(keys, np.searchsorted(ordered, result[1:]))
        return {p: split(distinct(part), n) for p, part in zip(result.tolist(), parts, strict=False)}

    def tables(self, only: Collection[str] | None = None) -> list[FactTable]:
        """A table of two columns for each predicate, named by its IRI; of those in `only`, where it is given."""
        return tables_of_pairs(self.terms, self.pairs, only)


def distinct(keys: Array) -> Array:
    """The different numbers, in order. (NumPy's own `unique` hashes, which is ten times slower.)"""
    keys = np.sort(keys)
    return keys[np.concatenate([[True], keys[1:] != keys[:-1]])] if len(keys) else keys


def split(keys: Array, n: int) -> Pairs:
    """Pairs from `first * n + second`."""
    first = keys // n
    return first.astype(np.int32), (keys - first * n).astype(np.int32)


def tables_of_pairs(
    terms: Sequence[Value], pairs: dict[int, Pairs], only: Collection[str] | None = None
) -> list[FactTable]:
    """Tables named by the IRIs of their predicates, in the order of these names."""
    named = {name.text: rows for p, rows in pairs.items() if type(name := terms[p]) is Iri}
    chosen = sorted(name for name in named if not name.startswith("_:") and (only is None or name in only))
    places = np.empty(len(terms), np.int32)
    return [
        FactTable(name, tuple(_column(terms, numbers, places) for numbers in named[name]), len(named[name][0]))
        for name in chosen
    ]


def _column(terms: Sequence[Value], numbers: Integers, places: Array) -> Coded:
    """A column that has no other values than those in it; `places` is room to write in."""
    if len(numbers) * 8 < len(terms):
        result = distinct(numbers)
    else:
        marked = np.zeros(len(terms), bool)
        marked[numbers] = True
        result = np.flatnonzero(marked)
    places[result] = np.arange(len(result), dtype=np.int32)
    return Coded([terms[i] for i in result.tolist()], places[numbers])
