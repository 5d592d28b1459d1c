"""Errors in the SPARQL of a query: what is wrong, where in the source, and how to fix it."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from augury.algebra.sparql_algebra import Expression, Pattern
from augury.algebra.sparql_parser import (
    NoFunction,
    PatternError,
    SparqlSyntaxError,
    algebra_of,
    as_written,
    read_expression,
    read_pattern,
    sparql,
)
from augury.core.errors import RunError, misspelt
from augury.language.spaseq.sparql_text import Normal, closing
from augury.language.spaseq.tokens import SparqlToken

_KEYWORDS = ("FILTER", "OPTIONAL", "UNION", "MINUS", "GRAPH", "BIND", "VALUES", "EXISTS", "SERVICE")


class NotSparql(Exception):
    """SPARQL that cannot be read: the piece at which, what is wrong, and what to do."""

    def __init__(self, piece: SparqlToken | None, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.piece, self.message, self.hint = piece, message, hint


def pattern_of(group: Normal) -> Pattern:
    """The graph pattern that a text is; raises NotSparql where it is none."""
    try:
        return read_pattern(group.text)
    except PatternError as error:
        raise _group_mistake(group, error) from None


def expression_of(expression: Normal) -> Expression:
    """The expression that a text is; raises NotSparql where it is none."""
    try:
        return read_expression(expression.text)
    except PatternError as error:
        raise _expression_mistake(expression, error) from None


def template_triples(template: Normal) -> list[tuple[str, str, str]]:
    """The triples of a template of CONSTRUCT: `?v`, `_:b`, or terms of N-Triples; raises NotSparql where it is none."""
    prefix = "CONSTRUCT "
    try:
        triples = algebra_of(f"{prefix}{template.text} WHERE {{}}").template
    except RunError:
        raise
    except Exception as error:
        raise _mistake_at(template, getattr(error, "loc", len(prefix)) - len(prefix)) from None
    names: dict[str, str] = {}

    def shown(term: Any) -> str:
        if type(term).__name__ == "BNode":
            return "_:" + names.setdefault(str(term), f"b{len(names)}")
        return str(term.n3())

    return [(shown(s), shown(p), shown(o)) for s, p, o in triples or ()]


# Mistakes


def _group_mistake(group: Normal, error: PatternError) -> NotSparql:
    if isinstance(error, SparqlSyntaxError):
        return _mistake_at(group, error.offset)
    return _no_function(group, error) or NotSparql(None, f"this is not SPARQL: {_sentence(error)}")


def _no_function(text: Normal, error: PatternError) -> NotSparql | None:
    """A function by IRI that there is not."""
    if not isinstance(error, NoFunction):
        return None
    called = (
        p
        for (a, b, p), (_, _, after) in pairwise(text.places)
        if text.text[a:b] == f"<{error.iri}>" and after.text == "("
    )
    piece = next(called)
    hint = "there are those of SPARQL 1.1, and the casts of XSD such as xsd:integer"
    return NotSparql(piece, f"there is no function {piece.text}", hint)


def _mistake_at(group: Normal, offset: int) -> NotSparql:
    piece = group.at(offset)
    if piece is None:
        return NotSparql(None, "this graph pattern is not SPARQL: it ends early")
    close = (
        misspelt(piece.text.upper(), _KEYWORDS)
        if piece.kind == "word" and piece.text.upper() not in _KEYWORDS
        else None
    )
    if close:
        return NotSparql(piece, f"`{piece.text}` is not a keyword of SPARQL", hint=f"did you mean {close}?")
    if piece.is_word("FILTER"):
        return _filter_mistake(group, piece)
    if piece.is_word("BIND"):
        return NotSparql(piece, "this BIND is not SPARQL", hint="it is written BIND(expression AS ?variable)")
    hint = (
        "a triple is `subject predicate object .`" if piece.kind in ("var", "iri", "pname", "blank", "string") else None
    )
    return NotSparql(piece, f"not SPARQL from `{piece.text}` on", hint=hint)


def _filter_mistake(group: Normal, piece: SparqlToken) -> NotSparql:
    """Reads the expression of a FILTER alone, whose mistake has a place of its own."""
    number = next(n for n, (_, _, p) in enumerate(group.places) if p is piece)
    remaining = group.places[number + 1 :]
    if not remaining or remaining[0][2].text != "(":
        if not remaining or remaining[0][2].kind == "var":
            return NotSparql(
                piece, "this FILTER is not SPARQL", hint="its condition stands in parentheses: FILTER(?x > 3)"
            )
        return NotSparql(piece, "this FILTER is not SPARQL")
    inner = remaining[1 : closing([p for _, _, p in remaining], 0)]
    if not inner:
        return NotSparql(piece, "this FILTER has no condition", hint="it is written FILTER(?x > 3)")
    start, stop = inner[0][0], inner[-1][1]
    part = Normal(group.text[start:stop], tuple((a - start, b - start, p) for a, b, p in inner))
    try:
        expression_of(part)
    except NotSparql as mistake:
        return mistake
    return NotSparql(piece, "not SPARQL from this FILTER on")


def _expression_mistake(expression: Normal, error: PatternError) -> NotSparql:
    """Reads the expression without anything around it: the parser says no more than where the innermost whole begins."""
    result = _no_function(expression, error)
    if result is not None:
        return result
    try:
        with as_written():
            sparql().parser.Expression.parse_string(expression.text, parse_all=True)
        return NotSparql(None, f"this expression is not SPARQL: {_sentence(error)}")
    except Exception as mistake:
        position: int = mistake.loc  # type: ignore[attr-defined]
    piece = expression.at(position)
    if piece is None:
        last = expression.places[-1][2] if expression.places else None
        return NotSparql(last, "this expression is not SPARQL: it ends too early")
    number = next(n for n, (_, _, p) in enumerate(expression.places) if p is piece)
    before = expression.places[number - 1][2] if number else None
    if piece.text == "(" and before is not None and before.kind == "word":
        return NotSparql(
            before, f"SPARQL has no function `{before.text}`", hint="functions of your own are called by their IRI"
        )
    return NotSparql(piece, f"this expression is not SPARQL from `{piece.text}` on")


def _sentence(error: PatternError) -> str:
    """What is wrong, on one line, as a part of a sentence."""
    text = " ".join(error.message.removeprefix("is not SPARQL: ").split()).rstrip(".")
    return text[:1].lower() + text[1:] if text[1:2].islower() else text
