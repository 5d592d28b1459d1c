"""The syntax tree of a query as written, with a span on every part."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from augury.algebra.graph_queries import Quantifier, Separator
from augury.core.errors import NOWHERE, Span
from augury.language.spaseq.tokens import SparqlToken

_SPAN = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True)
class QueryName:
    """A name, of a GPM, a stream or a variable (without its question mark), or a word such as MINUTES."""

    text: str
    span: Span = _SPAN


@dataclass(frozen=True)
class IriText:
    """An IRI as it is written: `<…>` or a prefixed name."""

    text: str
    span: Span = _SPAN


@dataclass(frozen=True)
class Sparql:
    """SPARQL as it is written, by its words: a graph pattern with its braces, or an expression with its parentheses."""

    words: tuple[str, ...]
    span: Span = _SPAN


@dataclass(frozen=True)
class Base:
    iri: str
    span: Span = _SPAN


@dataclass(frozen=True)
class QueryPrefix:
    name: str
    iri: str
    span: Span = _SPAN


@dataclass(frozen=True)
class SelectClause:
    """`columns` are empty for `*`."""

    columns: tuple[QueryName | Sparql, ...]
    distinct: Literal["", "DISTINCT", "REDUCED"] = ""
    span: Span = _SPAN


@dataclass(frozen=True)
class ConstructClause:
    template: Sparql
    into: IriText | None = None
    span: Span = _SPAN


@dataclass(frozen=True)
class WithinClause:
    """`WITHIN 30 MINUTES TUMBLING FROM "2026-01-01"`; `origin` is the text of a time, with its quotes where it has some."""

    count: QueryName
    unit: QueryName
    tumbling: bool = False
    origin: QueryName | None = None
    span: Span = _SPAN


@dataclass(frozen=True)
class Partition:
    variables: tuple[QueryName, ...]
    span: Span = _SPAN


@dataclass(frozen=True)
class FromStream:
    name: QueryName
    iri: IriText
    span: Span = _SPAN


@dataclass(frozen=True)
class FromGraph:
    iri: IriText
    named: bool
    span: Span = _SPAN


Clause: TypeAlias = WithinClause | Partition | FromStream | FromGraph


@dataclass(frozen=True)
class Joined:
    """`(A & B | C)`: operands and what stands between them; it associates to the left."""

    operands: tuple[OperandText, ...]
    joiners: tuple[str, ...]
    span: Span = _SPAN


OperandText: TypeAlias = QueryName | Joined


@dataclass(frozen=True)
class ItemText:
    operand: OperandText
    quantifier: Quantifier = ""
    separator: Separator = ","
    span: Span = _SPAN


@dataclass(frozen=True)
class ChoiceText:
    """`LONGEST SKIP TO LAST B`; `which` is empty where SKIP stands alone."""

    which: Literal["", "LONGEST", "SHORTEST"]
    skip: Literal["", "PAST END", "TO FIRST", "TO LAST"] = ""
    to: QueryName | None = None
    span: Span = _SPAN


@dataclass(frozen=True)
class SequencePattern:
    items: tuple[ItemText, ...]
    choice: ChoiceText | None = None
    span: Span = _SPAN


@dataclass(frozen=True)
class Define:
    name: QueryName
    streams: tuple[QueryName, ...]
    pattern: Sparql
    span: Span = _SPAN


@dataclass(frozen=True)
class Key:
    """A key of ORDER BY; `direction` is as it is written."""

    expression: QueryName | Sparql
    direction: Literal["", "ASC", "DESC"] = ""
    span: Span = _SPAN


@dataclass(frozen=True)
class GroupBy:
    keys: tuple[QueryName | Sparql, ...]
    span: Span = _SPAN


@dataclass(frozen=True)
class Having:
    conditions: tuple[Sparql, ...]
    span: Span = _SPAN


@dataclass(frozen=True)
class OrderBy:
    keys: tuple[Key, ...]
    span: Span = _SPAN


@dataclass(frozen=True)
class LimitClause:
    count: QueryName
    span: Span = _SPAN


@dataclass(frozen=True)
class Offset:
    count: QueryName
    span: Span = _SPAN


Modifier: TypeAlias = GroupBy | Having | OrderBy | LimitClause | Offset


@dataclass(frozen=True)
class QueryTree:
    """A query as it is written, with its comments in a list of their own. `sequences` should be one."""

    prologue: tuple[Base | QueryPrefix, ...]
    answer: SelectClause | ConstructClause
    clauses: tuple[Clause, ...]
    sequences: tuple[SequencePattern, ...]
    defines: tuple[Define, ...]
    modifiers: tuple[Modifier, ...] = ()
    comments: tuple[SparqlToken, ...] = field(default=(), compare=False, repr=False)
    span: Span = _SPAN


def first_word(query: Span) -> Span:
    """The word that says what a query is: SELECT or CONSTRUCT."""
    return query.part(r"\b(?P<it>SELECT|CONSTRUCT)\b")
