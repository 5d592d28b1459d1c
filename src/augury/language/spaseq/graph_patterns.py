"""GPMs: graph patterns read, refused where they have what queries over streams do not, and their filters sorted.

A filter of the outermost group that looks at another GPM is asked of the join of both; all others stay where they are.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise

from augury.algebra import sparql_algebra as p
from augury.algebra.graph_queries import Expression, Gpm, PreviousValue
from augury.core.errors import Findings, Span, nearest
from augury.language.spaseq.previous_values import with_previous
from augury.language.spaseq.sparql_mistakes import NotSparql, expression_of, pattern_of
from augury.language.spaseq.sparql_text import (
    MADE,
    Prologue,
    SparqlClause,
    clauses,
    closing,
    normal,
    variables,
    without,
)
from augury.language.spaseq.tokens import SparqlToken, pieces_of

AGGREGATES = ("COUNT", "SUM", "AVG", "MIN", "MAX", "SAMPLE", "GROUP_CONCAT")
_CHANGING = {
    "NOW": "the time of an event is not part of its graph",
    **dict.fromkeys(("RAND", "UUID", "STRUUID", "BNODE"), "an answer must be the same whenever it is computed"),
}


@dataclass(frozen=True)
class Pattern:
    """A GPM whose graph pattern is SPARQL: its words, and what they say."""

    name: str
    streams: tuple[str, ...]
    words: tuple[SparqlToken, ...]
    sparql: p.Pattern
    span: Span
    previous: tuple[PreviousValue, ...] = ()

    @property
    def may_bind(self) -> frozenset[str]:
        return p.may_bind(self.sparql)


def read_pattern(name: str, span: Span, streams: tuple[str, ...], prologue: Prologue) -> Pattern | None:
    """The graph pattern of a GPM; None where it is wrong, which is reported."""
    words = tuple(pieces_of(span))
    if _refused(words, prologue.findings):
        return None
    with_values = with_previous(words, prologue)
    if with_values is None:
        return None
    words, previous = with_values
    text = normal(words, prologue)
    if text is None:
        return None
    try:
        return Pattern(name, streams, words, pattern_of(text), span, previous)
    except NotSparql as error:
        report(error, span, prologue.findings)
        return None


def report(error: NotSparql, span: Span, findings: Findings) -> None:
    findings.add("E250", error.message, span if error.piece is None else error.piece.span, hint=error.hint)


def _refused(words: Sequence[SparqlToken], findings: Findings) -> bool:
    """Reports what SPARQL has and a GPM does not."""
    sound = len(findings.errors)
    for piece, after in zip(words, [*words[1:], words[-1]], strict=True):
        position = piece.span
        if piece.is_word("SERVICE"):
            hint = "give its graph with --rdf, and read it with GRAPH"
            findings.add(
                "E250", "SERVICE queries another machine, which stream queries may not do", position, hint=hint
            )
        elif piece.is_word("SELECT"):
            hint = "derive its answers by a query of its own: CONSTRUCT … INTO a stream"
            findings.add("E250", "a GPM cannot contain a query", position, hint=hint)
        elif piece.is_word(*AGGREGATES) and after.text == "(":
            hint = "aggregates stand in SELECT, HAVING and ORDER BY, and range over the iterations of a `+`"
            findings.add("E256", f"{piece.text.upper()} stands in a GPM, which sees one event", position, hint=hint)
    refuse_changing(words, findings)
    return len(findings.errors) > sound


def refuse_changing(words: Sequence[SparqlToken], findings: Findings) -> None:
    """Reports functions that give something else each time."""
    for piece, after in pairwise(words):
        if piece.is_word(*_CHANGING) and after.text == "(":
            word = piece.text.upper()
            findings.add("E250", f"{word}() is not for queries over streams: {_CHANGING[word]}", piece.span)


# Filters


def join_filters(patterns: list[Pattern], prologue: Prologue) -> tuple[Gpm, ...] | None:
    """The GPMs, each with the filters that are asked of the join with what came before."""
    findings = prologue.findings
    before = len(findings.errors)
    result = []
    for pattern in patterns:
        others = frozenset(v for other in patterns if other is not pattern for v in other.may_bind)
        gpm = _gpm(pattern, others, prologue)
        if gpm is not None:
            result.append(gpm)
    return tuple(result) if len(findings.errors) == before else None


def _gpm(pattern: Pattern, others: frozenset[str], prologue: Prologue) -> Gpm | None:
    outermost = [c for c in clauses(pattern.words, "FILTER") if c.depth == 1]
    certain = p.certainly_binds(pattern.sparql)
    elsewhere = (others - certain) | {value.name for value in pattern.previous}
    joined = [c for c in outermost if set(_seen(c.body)) & elsewhere]
    findings = prologue.findings
    kept = without(pattern.words, joined)
    _check_scope(pattern, joined, others, findings)
    _check_minus(pattern, others, findings)
    filters = [_filter(clause, pattern, prologue) for clause in joined]
    text = normal(kept, prologue)
    if text is None:
        return None
    in_order = variables(pattern.words)
    return Gpm(
        pattern.name,
        pattern.streams,
        text.text,
        tuple(v for v in in_order if v in pattern.may_bind),
        tuple(v for v in in_order if v in certain),
        tuple(f for f in filters if f is not None),
        tuple(dict.fromkeys(None if isinstance(g, p.Variable) else g.text for g in p.static_graphs(pattern.sparql))),
        pattern.span,
    )


def _filter(clause: SparqlClause, pattern: Pattern, prologue: Prologue) -> Expression | None:
    text = normal(clause.body, prologue)
    if text is None:
        return None
    try:
        expression_of(text)
    except NotSparql as error:
        report(error, pattern.span, prologue.findings)
        return None
    names = variables(clause.body)
    previous = tuple(value for value in pattern.previous if value.name in names)
    return Expression(text.text, tuple(v for v in names if MADE not in v), clause.span, previous)


def _seen(words: Sequence[SparqlToken]) -> tuple[str, ...]:
    """The variables of an expression, without those of graph patterns inside it."""
    return variables(_outside(words))


def _outside(words: Sequence[SparqlToken]) -> list[SparqlToken]:
    sparql_tokens: list[SparqlToken] = []
    index = 0
    while index < len(words):
        if words[index].text == "{" and words[index].kind == "sign":
            index = closing(words, index)
        else:
            sparql_tokens.append(words[index])
        index += 1
    return sparql_tokens


def _check_scope(pattern: Pattern, joined: list[SparqlClause], others: frozenset[str], findings: Findings) -> None:
    """Reports expressions that look at variables which they cannot see."""
    bound = pattern.may_bind
    asked_on_join = {clause.pieces[0].start for clause in joined}
    for clause in clauses(pattern.words, "FILTER", "BIND", "EXISTS"):
        here = clause.pieces[0].start in asked_on_join
        has_exists = any(piece.is_word("EXISTS") for piece in clause.pieces)
        if here and has_exists:
            hint = "split it: one FILTER with EXISTS, another one on the other GPM"
            findings.add("E254", "a FILTER with EXISTS looks at another GPM", clause.span, hint=hint)
            continue
        inside = set(_inside_exists(clause)) if has_exists else set()
        for piece in clause.pieces:
            name = piece.text[1:]
            if piece.kind != "var" or name in bound or (here and name in others) or MADE in name:
                continue
            if name in others:
                _hidden(clause, piece, pattern, findings)
            elif name not in inside and not _bound_inside(pattern, clause, name):
                _unbound(piece, pattern, bound | others, findings)


def _check_minus(pattern: Pattern, others: frozenset[str], findings: Findings) -> None:
    """Reports variables inside MINUS that look as if they were those of another GPM."""
    for clause in clauses(pattern.words, "MINUS"):
        for piece in clause.pieces:
            name = piece.text[1:]
            if piece.kind == "var" and name in others - pattern.may_bind and findings.sound(piece.span):
                findings.add(
                    "E254",
                    f"`{piece.text}` is of another GPM, which MINUS does not see",
                    piece.span,
                    hint="if it is meant for itself, give it a name of its own",
                )


def _inside_exists(clause: SparqlClause) -> tuple[str, ...]:
    """The variables of the graph patterns inside an expression: what they bind is theirs."""
    outside = {piece.start for piece in _outside(clause.pieces)}
    return variables(piece for piece in clause.pieces if piece.start not in outside)


def _bound_inside(pattern: Pattern, clause: SparqlClause, name: str) -> bool:
    """Whether a triple somewhere in the GPM has the variable: inside MINUS or EXISTS, where it is bound for itself."""
    if clause.depth == 1 and clause.word != "EXISTS":
        return False
    expressions = clauses(pattern.words, "FILTER", "BIND")
    inside = {piece.start for c in expressions for piece in _outside(c.pieces)}
    return any(piece.kind == "var" and piece.text[1:] == name and piece.start not in inside for piece in pattern.words)


def _hidden(clause: SparqlClause, piece: SparqlToken, pattern: Pattern, findings: Findings) -> None:
    what = {"BIND": "BIND", "EXISTS": "EXISTS"}.get(clause.word, "a FILTER inside another pattern")
    if clause.word == "FILTER" and clause.depth == 1:
        what = "EXISTS"
    hint = (
        "compute it in SELECT"
        if what == "BIND"
        else "only a FILTER of the outermost group, without EXISTS, sees the GPMs before"
    )
    findings.add("E254", f"`{piece.text}` is of another GPM, which {what} does not see", piece.span, hint=hint)


def _unbound(piece: SparqlToken, pattern: Pattern, names: Collection[str], findings: Findings) -> None:
    close = nearest(piece.text[1:], names)
    hint = f"did you mean `?{close}`?" if close else "a triple of this GPM, or of one before it, must have it"
    findings.add("E301", f"nothing binds `{piece.text}`", piece.span, hint=hint)
