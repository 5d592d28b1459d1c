"""Interns RDF terms: each distinct term has a number; their values are columns.

A term is kept as a *key*, the bytes that identify it: `<iri>`, `_:label`, `"text"`, `"text"@tag`,
`"text"^^<datatype>` (N-Triples without escapes; xsd:string is left out). Numbers of terms do not order. Terms are
compared by the columns beside, which are filled once for each of them, see `TermValues`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from augury.algebra.sparql_algebra import BOOLEAN, LANG_STRING, STRING, XSD, Blank, Literal, RdfTerm, Triple
from augury.core.arrays import Array, Integers, RowIds
from augury.core.clock import SECOND, Duration, Timestamp, show_timestamp
from augury.core.errors import DataError
from augury.core.model import MAX_INT, MIN_INT, Iri, Term, Value, show_value
from augury.graphs import classify as c
from augury.graphs import lexical as lex
from augury.graphs.keys import Keys, compiled

_STAMP = XSD + "dateTimeStamp"
UNBOUND = -1  # the number that stands for no term

_FAMILIES = {
    "number": c.NUMBER,
    "boolean": c.TRUTH,
    "dateTime": c.DATE_TIME,
    "date": c.DATE,
    "time": c.TIME,
    "duration": c.DURATION,
    "months": c.MONTHS,
    "string": c.TEXT,
    "lang": c.LANG,
    "other": c.OTHER,
}


@dataclass
class TermValues:
    """The values of terms, by their numbers.

    `family` says with which terms one can be compared; `number` is the value of a number, a boolean (0, 1), a time or a
    duration (seconds, months) as a float; `exact` whether that is all of the value, which an integer beyond 2^53 or a
    decimal may miss by a little; `rank` is the type of a number: integer, decimal, float, double.
    """

    family: Array
    number: Array
    exact: Array
    rank: Array

    @staticmethod
    def empty() -> TermValues:
        return TermValues(np.empty(0, np.uint8), np.empty(0), np.empty(0, np.bool_), np.empty(0, np.uint8))

    def __len__(self) -> int:
        return len(self.family)

    def and_then(self, other: TermValues) -> TermValues:
        pairs = zip(self.columns, other.columns, strict=True)
        return TermValues(*(np.concatenate(pair) for pair in pairs))

    def of(self, rows: RowIds) -> TermValues:
        return TermValues(*(column[rows] for column in self.columns))

    @property
    def columns(self) -> tuple[Array, Array, Array, Array]:
        return self.family, self.number, self.exact, self.rank


class Terms:
    """Different terms by their numbers. It only grows, until `retain` forgets unused terms."""

    def __init__(self) -> None:
        self.keys = Keys()
        self._worth = TermValues.empty()
        self._terms: dict[int, RdfTerm] = {}  # those that were asked for
        self._values: dict[int, Value] = {}
        self.answers: dict[tuple[str, tuple[int, ...]], int] = {}  # of functions, see `evaluate.py`
        self.events = 0  # how many events there were whose blank nodes had to be distinguished

    def __len__(self) -> int:
        return self.keys.n

    # From terms to numbers

    def number(self, term: RdfTerm) -> int:
        """The number of a term, a new one where it has none."""
        return int(self.keys.add([key_of(term)])[0])

    def numbers(self, terms: Iterable[RdfTerm]) -> Array:
        return self.keys.add([key_of(term) for term in terms])

    def find(self, term: RdfTerm) -> int:
        """The number of a term; UNBOUND where it has none."""
        return self.keys.find(key_of(term))

    # From numbers to terms

    def term(self, number: int) -> RdfTerm:
        result = self._terms.get(number)
        if result is None:
            result = self._terms[number] = term_of_key(self.keys.key(number))
        return result

    def terms(self, numbers: Iterable[int]) -> list[RdfTerm]:
        return [self.term(int(number)) for number in numbers]

    def value(self, number: int) -> Value:
        """The value of Augury that a term stands for; of UNBOUND, null."""
        if number == UNBOUND:
            return None
        result = self._values.get(number)
        if result is None:
            result = self._values[number] = value_of_key(self.keys.key(number).decode("utf-8", "surrogatepass"))
        return result

    def values(self, numbers: Iterable[int]) -> list[Value]:
        return [self.value(int(number)) for number in numbers]

    # What terms stand for

    @property
    def worth(self) -> TermValues:
        """The values of all terms."""
        if len(self._worth) < self.keys.n:
            self._worth = self._worth.and_then(worth_of(self.keys, len(self._worth)))
        return self._worth

    # Forgetting, and snapshots

    def retain(self, numbers: Integers) -> Array:
        """Forgets all terms but these. For each number the new one, UNBOUND where the term is gone."""
        worth = self.worth
        places = self.keys.retain(numbers)
        self._worth = worth.of(np.flatnonzero(places >= 0))
        self._terms, self._values, self.answers = {}, {}, {}
        return places

    def state(self) -> dict[str, Any]:
        """All that has to be kept, as arrays."""
        return {**self.keys.state(), "events": self.events}

    @staticmethod
    def restored(state: dict[str, Any]) -> Terms:
        result = Terms()
        result.keys, result.events = Keys.restored(state), state["events"]
        return result


# Keys


def key_of(term: RdfTerm) -> bytes:
    return key_text(term).encode("utf-8", "surrogatepass")


def key_text(term: RdfTerm) -> str:
    """The key as the text that stands for a term in rules."""
    match term:
        case Iri():
            return f"_:{term.text[2:]}" if term.text.startswith("_:") else f"<{term.text}>"
        case Blank():
            return f"_:{term.label}"
        case Literal():
            if term.language:
                return f'"{term.text}"@{term.language}'
            return f'"{term.text}"' if term.datatype == STRING else f'"{term.text}"^^<{term.datatype}>'
        case Triple():
            parts = [key_text(part) for part in (term.subject, term.predicate, term.object)]
            return f"<<{' '.join(f'{len(part)}:{part}' for part in parts)}"


def n_triples(term: Iri | Literal) -> str:
    """A term as N-Triples writes it."""
    if isinstance(term, Iri):
        return key_text(term)
    text = re.sub(r'["\\\x00-\x1f\x7f]', lambda char: f"\\u{ord(char[0]):04X}", term.text)
    return key_text(Literal(text, term.datatype, term.language))


def term_of_key(key: bytes) -> RdfTerm:
    return _term(key.decode("utf-8", "surrogatepass"))


@lru_cache(maxsize=1 << 16)
def term_of_text(key: str) -> RdfTerm:
    """The same for a key that is text."""
    return _term(key)


def _term(key: str) -> RdfTerm:
    if key.startswith("<<"):
        parts, rest = list[RdfTerm](), key[2:]
        while rest:
            length, _, rest = rest.partition(":")
            parts.append(_term(rest[: int(length)]))
            rest = rest[int(length) + 1 :]
        return Triple(*parts)
    if key[0] == "<":
        return Iri(key[1:-1])
    if key[0] == "_":
        return Blank(key[2:])
    end = key.rindex('"')
    text, kind = key[1:end], key[end + 1 :]
    if not kind:
        return Literal(text)
    return Literal(text, LANG_STRING, kind[1:]) if kind[0] == "@" else Literal(text, kind[3:-1])


# Values


def value_of_term(term: RdfTerm) -> Value:
    """The value that a term stands for, as for all RDF: a blank node is an IRI `_:label`."""
    match term:
        case Iri():
            return term
        case Blank():
            return Iri(f"_:{term.label}")
        case Literal():
            return literal_value(term.text, term.datatype, term.language)
        case Triple():
            return Term("triple", tuple(map(value_of_term, (term.subject, term.predicate, term.object))))


def literal_value(text: str, datatype: str, tag: str = "") -> Value:
    """The value of a literal. An ill-typed one, or one that no value can hold, is `literal(text, datatype)`."""
    if tag:
        return Term("lang", (text, tag.lower()))
    value = _literal_value(Literal(text, datatype))
    return Term("literal", (text, Iri(datatype))) if value is None else value


def _literal_value(literal: Literal) -> Value:
    if literal.datatype == STRING:
        return literal.text
    if literal.datatype == BOOLEAN:
        return lex.boolean_of(literal)
    if literal.datatype == _STAMP:  # a time that has a zone
        literal = Literal(literal.text if re.search(r"(Z|[+-]..:..)$", literal.text) else "", lex.DATE_TIME)
    if literal.datatype in (lex.DATE_TIME, lex.DATE):
        moment = lex.moment_of(literal)  # a day is its midnight; what is beyond microseconds is cut off
        return None if moment is None else Timestamp(int(moment.seconds * SECOND // 1))
    if literal.datatype == lex.DAY_TIME_DURATION:
        length = lex.duration_of(literal)
        us = None if length is None else length[1] * SECOND
        return Duration(int(us)) if us is not None and us.denominator == 1 and _fits(us) else None
    number = lex.number_of(literal)
    if isinstance(number, int) or number is None:
        return number if number is not None and _fits(number) else None
    return float(number) + 0.0 if math.isfinite(float(number)) else None


def _fits(number: int | Fraction) -> bool:
    return MIN_INT <= number <= MAX_INT


def value_of_key(key: str) -> Value:
    """The value that the term of a key stands for."""
    if key[0] == "<" != key[1]:
        return Iri(key[1:-1])
    if key[0] == "_":
        return Iri(key)
    return key[1:-1] if key[0] == key[-1] == '"' else value_of_term(_term(key))


def term_of(value: Value) -> RdfTerm:
    """The term that a value is written as."""
    match value:
        case bool() | int() | float() | str():
            return lex.literal_of(value)
        case Iri():
            return Blank(value.text[2:]) if value.text.startswith("_:") else value
        case Timestamp():
            return Literal(show_timestamp(value.us), lex.DATE_TIME)
        case Duration():
            return Literal(_seconds(value.us), lex.DAY_TIME_DURATION)
        case Term("lang", (str(text), str(tag))):
            return Literal(text, LANG_STRING, tag)
        case Term("literal", (str(text), Iri(datatype))):
            return Literal(text, datatype)
    raise DataError(f"is not an RDF term: {show_value(value)}")


def _seconds(us: int) -> str:
    return f"{'-' if us < 0 else ''}PT{Decimal(abs(us)) / 1_000_000:f}S"


# What terms stand for


def worth_of(keys: Keys, lo: int) -> TermValues:
    """The values of the terms from a number on."""
    size = keys.n - lo
    worth = TermValues(
        np.full(size, c.UNSURE, np.uint8), np.zeros(size), np.ones(size, np.bool_), np.zeros(size, np.uint8)
    )
    if compiled():
        c.classify(keys.data, keys.ends, lo, keys.n, *worth.columns)
    for row in np.flatnonzero(worth.family == c.UNSURE).tolist():
        for column, part in zip(worth.columns, _worth(term_of_key(keys.key(lo + row))), strict=True):
            column[row] = part
    return worth


def _worth(term: RdfTerm) -> tuple[int, float, bool, int]:
    match term:
        case Iri():
            return c.IRI, 0.0, True, 0
        case Blank():
            return c.BLANK, 0.0, True, 0
        case Triple():
            return c.TRIPLE, 0.0, True, 0
        case Literal():
            name, value = lex.family(term)
            family = _FAMILIES[name]
            if family > c.MEASURED:
                return family, 0.0, True, 0
            number, exact = _as_float(value)
            return family, number, exact, lex.RANKS.get(term.datatype, 0)


def _as_float(value: Any) -> tuple[float, bool]:
    """The float that is nearest to a value, and whether it is the value."""
    try:
        number = float(value)
    except OverflowError:
        return (np.inf if value > 0 else -np.inf), False
    return (number if isinstance(value, float) else number + 0.0), number == value or number != number
