"""The aggregates of SPARQL over RDF terms; terms are passed as keys, in the order of the iterations."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cmp_to_key

from augury.algebra.graph_queries import AggregateName
from augury.algebra.sparql_algebra import Blank, Literal, RdfTerm
from augury.core.model import Iri, Value
from augury.graphs import functions as f
from augury.graphs import lexical as lex
from augury.graphs.rdf_terms import key_text, term_of_text


@dataclass(frozen=True)
class TermAggregate:
    """An aggregate of terms; null is a value that is an error, or unbound. It is given all values, or as arguments one."""

    function: AggregateName
    distinct: bool = False
    separator: str = " "

    def __call__(self, rows: Sequence[Value] | Value) -> Value:
        listed = [rows] if rows is None or isinstance(rows, str) else list(rows)  # type: ignore[arg-type]
        values = list(dict.fromkeys(listed)) if self.distinct else listed
        terms = [term_of_text(str(key)) for key in values if key is not None]
        result = self._of(terms, len(terms) == len(values))
        return None if result is None else key_text(result)

    def _of(self, terms: list[RdfTerm], complete: bool) -> RdfTerm | None:
        match self.function:
            case "COUNT":
                return lex.literal_of(len(terms))
            case "SUM":
                return _sum(terms) if complete else None
            case "AVG":
                return _mean(terms) if complete else None
            case "SAMPLE":
                return terms[0] if terms else None
            case "MIN":
                return min(terms, key=cmp_to_key(compared), default=None)
            case "MAX":
                return max(terms, key=cmp_to_key(compared), default=None)
            case "GROUP_CONCAT":
                return Literal(self.separator.join(map(_text, terms)))


def _numbers(terms: Sequence[RdfTerm]) -> list[int | Decimal | float] | None:
    result: list[int | Decimal | float] = []
    for term in terms:
        name, value = lex.family(term) if isinstance(term, Literal) else ("other", None)
        if name != "number" or not isinstance(value, int | Decimal | float):
            return None
        result.append(value)
    return result


def _sum(terms: Sequence[RdfTerm]) -> Literal | None:
    numbers = _numbers(terms)
    if numbers is None:
        return None
    if any(isinstance(n, float) for n in numbers):
        return lex.literal_of(math.fsum(map(float, numbers)))
    total = sum((Decimal(n) for n in numbers), Decimal(0))
    return lex.literal_of(total if any(isinstance(n, Decimal) for n in numbers) else int(total))


def _mean(terms: Sequence[RdfTerm]) -> Literal | None:
    total = _sum(terms)
    if total is None or not terms:
        return None if total is None else lex.literal_of(0)
    value = f.number(total)
    return lex.literal_of(value / len(terms) if isinstance(value, float) else Decimal(value) / len(terms))


def _text(term: RdfTerm) -> str:
    match term:
        case Iri() | Literal():
            return term.text
        case Blank():
            return term.label
    return key_text(term)


def compared(a: RdfTerm, b: RdfTerm) -> int:
    """The order of ORDER BY: blank nodes, IRIs, literals; literals by value where they can be compared, else as they are written."""
    places = [(0 if isinstance(t, Blank) else 1 if isinstance(t, Iri) else 2) for t in (a, b)]
    if places[0] != places[1]:
        return places[0] - places[1]
    if isinstance(a, Literal) and isinstance(b, Literal):
        try:
            return -1 if f.less(a, b) else 1 if f.less(b, a) else 0
        except f.ExpressionError:
            x, y = (a.datatype, a.language, a.text), (b.datatype, b.language, b.text)
            return (x > y) - (x < y)
    x_text, y_text = _text(a), _text(b)
    return (x_text > y_text) - (x_text < y_text)
