"""Functions over RDF terms for lowered queries: terms are passed as keys, one by one or in columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from augury.algebra.sparql_algebra import Blank, Exists, Expression, Literal, RdfTerm
from augury.algebra.sparql_parser import read_expression
from augury.core.arrays import Array
from augury.core.clock import Timestamp
from augury.core.errors import RunError
from augury.core.model import Iri, Value
from augury.graphs.evaluate import TermExpressions
from augury.graphs.oxigraph import as_oxigraph, term_of_n_triples
from augury.graphs.rdf_terms import UNBOUND, Terms, key_text, term_of, term_of_text, value_of_key
from augury.graphs.solutions import SolutionTable
from augury.queries.coded_terms import CodedTerms, coded_terms
from augury.storage.dictionary import Dictionary
from augury.storage.unique import unique_inverse


@cache
def expression_of(text: str) -> Expression:
    return read_expression(text)


def expressions_over(terms: Terms) -> TermExpressions:
    """Expressions that are asked of matches."""

    def no_exists(_: Exists, __: SolutionTable) -> Array:
        raise RunError("EXISTS needs a graph, and a match is not one")

    return TermExpressions(terms, no_exists)


class TermFunction:
    """A function of terms. `names` are those of its arguments, one for each; the same name twice is what is bound first."""

    names: tuple[str, ...]

    def __call__(self, *args: Value) -> Any:
        """Of one row."""
        dictionary = Dictionary()
        columns = [np.array([dictionary.encode(arg)], np.int64) for arg in args]
        result = self.coded(dictionary, columns)[0]
        return bool(result) if isinstance(result, np.bool_) else dictionary.decode(int(result))

    def coded(self, dictionary: Dictionary, columns: Sequence[Array]) -> Array:
        """Of columns of codes: codes, or booleans."""
        terms = coded_terms(dictionary)
        return self.of(terms, self.table(terms, columns))

    def of(self, coded: CodedTerms, table: SolutionTable) -> Array:
        """Of a table of its arguments."""
        raise NotImplementedError

    def table(self, coded: CodedTerms, columns: Sequence[Array]) -> SolutionTable:
        result: dict[str, Array] = {}
        for name, column in zip(self.names, columns, strict=True):
            numbers = coded.numbers(column)
            result[name] = numbers if name not in result else np.where(result[name] == UNBOUND, numbers, result[name])
        return SolutionTable(len(columns[0]) if columns else 1, None, result)


@dataclass(frozen=True)
class FirstBound(TermFunction):
    """The first of its arguments that is bound."""

    names: tuple[str, ...]

    def of(self, coded: CodedTerms, table: SolutionTable) -> Array:
        return coded.codes(table.columns[self.names[0]])


@dataclass(frozen=True)
class AsValue(TermFunction):
    """The value of a term."""

    names: tuple[str, ...] = ("term",)

    def __call__(self, *args: Value) -> Value:
        (key,) = args
        return None if key is None else value_of_key(str(key))

    def of(self, coded: CodedTerms, table: SolutionTable) -> Array:
        return coded.values(table.columns["term"])


@dataclass(frozen=True)
class AsTerm(TermFunction):
    """The term that a value is written as."""

    names: tuple[str, ...] = ("value",)

    def __call__(self, *args: Value) -> Value:
        (value,) = args
        return None if value is None else key_text(term_of(value))

    def coded(self, dictionary: Dictionary, columns: Sequence[Array]) -> Array:
        different, inverse = unique_inverse(columns[0])
        result = [dictionary.encode(self(dictionary.decode(code))) for code in different.tolist()]
        return np.array(result, np.int64)[inverse]


@dataclass(frozen=True)
class Meets(TermFunction):
    """Whether what an operand makes joins with the match so far, and meets its filters.

    names     of the arguments: variables of the match so far first, then those of the operand.
    match     how many of them are of the match. A variable on both sides that both bind has to be one term.
    branches  the filters of each way in which the operand is made; where there are several, the last argument says which.
    """

    names: tuple[str, ...]
    match: int
    branches: tuple[tuple[str, ...], ...]

    def coded(self, dictionary: Dictionary, columns: Sequence[Array]) -> Array:
        coded = coded_terms(dictionary)
        known_columns, size = columns[: len(self.names)], len(columns[0])
        mask = np.ones(size, bool)
        numbers = [coded.numbers(column) for column in known_columns]
        earlier = dict(zip(self.names[: self.match], numbers[: self.match], strict=True))
        for name, after in zip(self.names[self.match :], numbers[self.match :], strict=True):
            before = earlier.get(name)
            if before is not None:
                mask &= (before == after) | (before == UNBOUND) | (after == UNBOUND)
        table = self.table(coded, known_columns)
        expressions = expressions_over(coded.terms)
        for number, filters in enumerate(self.branches):
            of_branch = mask if len(self.branches) == 1 else mask & (columns[-1] == number << 2)
            rows = np.flatnonzero(of_branch)
            for text in filters:
                held = np.asarray(expressions.holds(expression_of(text), table.take(rows)))
                mask[rows[~held]] = False
                rows = rows[held]
        return mask


@dataclass(frozen=True)
class Computed(TermFunction):
    """The term that an expression is, null where it is an error."""

    names: tuple[str, ...]
    text: str

    def of(self, coded: CodedTerms, table: SolutionTable) -> Array:
        return coded.codes(expressions_over(coded.terms).terms_of(expression_of(self.text), table))


@dataclass(frozen=True)
class TermCondition(TermFunction):
    """Whether an expression is true."""

    names: tuple[str, ...]
    text: str

    def of(self, coded: CodedTerms, table: SolutionTable) -> Array:
        return np.array(expressions_over(coded.terms).holds(expression_of(self.text), table))


@dataclass(frozen=True)
class Constructed:
    """The graph that a template makes of terms, as lines of N-Triples in order; the empty text where there is none.

    A triple with something unbound, or that RDF does not allow, is left out; blank nodes are numbered as they come.
    """

    names: tuple[str, ...]
    template: tuple[tuple[str, str, str], ...]

    def __call__(self, *args: Value) -> str:
        keys = dict(zip(self.names, args, strict=False))
        return graph_text(self.template, [{n: term_of_text(str(key)) for n, key in keys.items() if key is not None}])


def graph_text(template: Sequence[tuple[str, str, str]], rows: Sequence[dict[str, RdfTerm]]) -> str:
    """The graph that a template makes of rows, together."""
    names: dict[object, Blank] = {}
    lines: set[str] = set()
    for number, row in enumerate(rows):
        for triple in template:
            terms: list[RdfTerm] = []
            for text in triple:
                term = row.get(text[1:]) if text.startswith("?") else term_of_n_triples(text)
                if isinstance(term, Blank):
                    key: object = (number, text) if text.startswith("_:") else term
                    term = names.setdefault(key, Blank(f"b{len(names)}"))
                terms += [] if term is None else [term]
            if len(terms) == 3 and not isinstance(terms[0], Literal) and isinstance(terms[1], Iri):
                lines.add(" ".join(str(as_oxigraph(term)) for term in terms) + " .")
    return "\n".join(sorted(lines))


@dataclass(frozen=True)
class SameWindow:
    """Whether two times lie in one tumbling window, whose length is in microseconds; a tick of a logical clock is so many."""

    length: int
    tick: int
    origin: int | None

    def __call__(self, first: Value, last: Value) -> bool:
        a, b = (t.us if isinstance(t, Timestamp) else t for t in (first, last))
        assert isinstance(a, int), isinstance(b, int)
        origin, length = self.origin or 0, self.length if isinstance(first, Timestamp) else self.length // self.tick
        if self.origin is not None and a < origin:
            return False
        return (a - origin) // length == (b - origin) // length  # type: ignore[operator]


@dataclass(frozen=True)
class WindowEnd:
    """The last time at which something may still follow a match: its first time and the length of its window, or the end of
    the tumbling window that it lies in, where there is an origin."""

    length: int
    tick: int
    origin: int | None

    def __call__(self, first: Value) -> Value:
        time = first.us if isinstance(first, Timestamp) else first
        assert isinstance(time, int)
        length = self.length if isinstance(first, Timestamp) else self.length // self.tick
        end = time + length if self.origin is None else time - (time - self.origin) % length + length - 1
        return Timestamp(end) if isinstance(first, Timestamp) else end
