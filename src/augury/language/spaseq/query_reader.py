"""Text of a query to its syntax tree."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Literal, TypeAlias, cast

from lark import Lark, Token
from lark.exceptions import UnexpectedToken
from lark.tree import Meta
from lark.visitors import Transformer_NonRecursive, v_args

from augury.algebra.graph_queries import Quantifier, Separator
from augury.core.errors import Findings, Note, Source, Span
from augury.language.spaseq import query_tree as t
from augury.language.spaseq.query_errors import explain_query
from augury.language.spaseq.tokens import GivenTokens, QueryTokens, pieces_of, words


@cache
def query_parser() -> Lark:
    text = files("augury.language.spaseq").joinpath("spaseq.lark").read_text(encoding="utf-8")
    return Lark(text, parser="lalr", lexer=GivenTokens, propagate_positions=True, maybe_placeholders=True)


def read_query(source: Source, findings: Findings) -> t.QueryTree | None:
    """The tree of a query; None where it does not follow the grammar, which is reported."""
    query_tokens = words(source)
    if query_tokens.unclosed is not None:
        _report_unclosed(query_tokens, source, findings)
        return None
    try:
        tree = query_parser().parse(query_tokens.tokens)
    except UnexpectedToken as error:
        explain_query(error, query_tokens.tokens, source, findings)
        return None
    query = _QueryReader(source, query_tokens).transform(tree)
    assert isinstance(query, t.QueryTree)
    return query


def _report_unclosed(query_tokens: QueryTokens, source: Source, findings: Findings) -> None:
    unclosed = query_tokens.unclosed
    assert unclosed is not None
    bracket = source.text[unclosed.opening]
    opening = Span(source, unclosed.opening, unclosed.opening + 1)
    if not unclosed.found:
        findings.add("E101", f"`{bracket}` is never closed", opening)
        return
    closing = Span(source, unclosed.at, unclosed.at + 1)
    findings.add("E101", f"`{unclosed.found}` closes no `{bracket}`", closing, Note("this one is open", opening))


_Where: TypeAlias = "tuple[Token | t.SequencePattern | t.Define | None, ...]"
_Item: TypeAlias = tuple[t.OperandText, Quantifier, Span]


@v_args(meta=True, inline=True)
class _QueryReader(Transformer_NonRecursive[Token, t.QueryTree]):
    """Lark's tree to ours: a method for each rule of the grammar, with its position and its parts."""

    def __init__(self, source: Source, query_tokens: QueryTokens) -> None:
        super().__init__()
        self.source, self.query_tokens = source, query_tokens

    def _span(self, meta: Meta) -> Span:
        return Span(self.source, meta.start_pos, meta.end_pos)

    def _at(self, token: Token) -> Span:
        assert token.start_pos is not None and token.end_pos is not None
        return Span(self.source, token.start_pos, token.end_pos)

    def _name(self, token: Token) -> t.QueryName:
        return t.QueryName(str(token)[1:] if token.type == "VAR" else str(token), self._at(token))

    def _sparql(self, span: Span) -> t.Sparql:
        return t.Sparql(tuple(p.written for p in pieces_of(span)), span)

    def _expression(self, part: Token | t.QueryName | t.Sparql) -> t.QueryName | t.Sparql:
        if not isinstance(part, Token):
            return part
        return self._name(part) if part.type == "VAR" else self._sparql(self._at(part))

    def start(
        self,
        meta: Meta,
        prologue: tuple[t.Base | t.QueryPrefix, ...],
        answer: t.SelectClause | t.ConstructClause,
        *parts: t.Clause | t.Modifier | _Where,
    ) -> t.QueryTree:
        where = next(part for part in parts if isinstance(part, tuple))
        sequences = tuple(part for part in where if isinstance(part, t.SequencePattern))
        defines = tuple(part for part in where if isinstance(part, t.Define))
        clauses = tuple(part for part in parts if isinstance(part, t.Clause))
        modifiers = tuple(part for part in parts if isinstance(part, t.Modifier))
        comments = tuple(self.query_tokens.comments)
        return t.QueryTree(prologue, answer, clauses, sequences, defines, modifiers, comments, self._span(meta))

    def prologue(self, meta: Meta, *items: t.Base | t.QueryPrefix) -> tuple[t.Base | t.QueryPrefix, ...]:
        return items

    def base(self, meta: Meta, _: Token, iri: Token) -> t.Base:
        return t.Base(str(iri)[1:-1], self._span(meta))

    def prefix(self, meta: Meta, _: Token, name: Token, iri: Token) -> t.QueryPrefix:
        return t.QueryPrefix(str(name), str(iri)[1:-1], self._span(meta))

    def select(
        self, meta: Meta, _: Token, distinct: Token | None, *columns: Token | t.QueryName | t.Sparql
    ) -> t.SelectClause:
        named = tuple(column for column in columns if not isinstance(column, Token))  # a token is the star
        word = cast(Literal["", "DISTINCT", "REDUCED"], "" if distinct is None else str(distinct).upper())
        return t.SelectClause(named, word, self._span(meta))

    def construct(
        self, meta: Meta, _: Token, template: Token, word: Token | None, into: t.IriText | None
    ) -> t.ConstructClause:
        return t.ConstructClause(self._sparql(self._at(template)), into, self._span(meta))

    def column(self, meta: Meta, token: Token) -> t.QueryName | t.Sparql:
        return self._expression(token)

    def iri(self, meta: Meta, token: Token) -> t.IriText:
        return t.IriText(str(token), self._at(token))

    def within(
        self, meta: Meta, _: Token, count: Token, unit: Token, tumbling: tuple[t.QueryName | None] | None
    ) -> t.WithinClause:
        named = t.QueryName(str(unit).upper(), self._at(unit))
        origin = tumbling[0] if tumbling else None
        return t.WithinClause(self._name(count), named, tumbling is not None, origin, self._span(meta))

    def tumbling(self, meta: Meta, _: Token, origin: t.QueryName | None = None) -> tuple[t.QueryName | None]:
        return (origin,)

    def time(self, meta: Meta, *_: Token | t.IriText | None) -> t.QueryName:
        span = self._span(meta)
        return t.QueryName("".join(span.text.split()) if not span.text.startswith(('"', "'")) else span.text, span)

    def partition(self, meta: Meta, *tokens: Token | None) -> t.Partition:
        variables = (self._name(token) for token in tokens if token is not None and token.type == "VAR")
        return t.Partition(tuple(variables), self._span(meta))

    def stream(self, meta: Meta, _: Token, name: Token, iri: t.IriText) -> t.FromStream:
        return t.FromStream(self._name(name), iri, self._span(meta))

    def dataset(self, meta: Meta, _: Token, iri: t.IriText) -> t.FromGraph:
        return t.FromGraph(iri, False, self._span(meta))

    def named_dataset(self, meta: Meta, _: Token, iri: t.IriText) -> t.FromGraph:
        return t.FromGraph(iri, True, self._span(meta))

    def where(self, meta: Meta, *parts: Token | t.SequencePattern | t.Define | None) -> _Where:
        return parts

    def sequence(self, meta: Meta, *parts: Token | _Item | t.ChoiceText | None) -> t.SequencePattern:
        items: list[t.ItemText] = []
        separator: Separator = ","
        *written, choice = parts[2:]
        for part in written[:-1]:
            if isinstance(part, Token):
                separator = cast(Separator, str(part))
            else:
                operand, quantifier, span = cast(_Item, part)
                items.append(t.ItemText(operand, quantifier, separator, span))
        return t.SequencePattern(tuple(items), cast("t.ChoiceText | None", choice), self._span(meta))

    def choice(self, meta: Meta, *parts: Token | tuple[Token, ...] | None) -> t.ChoiceText:
        which = next((str(part).upper() for part in parts if isinstance(part, Token)), "")
        word, *name = next((part for part in parts if isinstance(part, tuple)), ("",))
        skip = " ".join(str(word).upper().split()[1:])
        to = self._name(name[0]) if name else None
        return t.ChoiceText(which, skip, to, self._span(meta))  # type: ignore[arg-type]

    def which(self, meta: Meta, token: Token) -> Token:
        return token

    def skip(self, meta: Meta, *tokens: Token) -> tuple[Token, ...]:
        return tokens

    def item(self, meta: Meta, operand: t.OperandText, quantifier: Token | None = None) -> _Item:
        return operand, cast(Quantifier, str(quantifier or "")), self._span(meta)

    def separator(self, meta: Meta, token: Token) -> Token:
        return token

    def use(self, meta: Meta, name: Token) -> t.QueryName:
        return self._name(name)

    def joiner(self, meta: Meta, token: Token) -> Token:
        return token

    def joined(self, meta: Meta, *parts: Token | t.OperandText) -> t.OperandText:
        operands = tuple(part for part in parts if not isinstance(part, Token))
        joiners = tuple(str(part) for part in parts[1:-1] if isinstance(part, Token))
        return t.Joined(operands, joiners, self._span(meta)) if joiners else operands[0]

    def bare_joined(self, meta: Meta, *parts: Token | t.OperandText) -> t.OperandText:
        """`A & B` without parentheses: it has no quantifier."""
        operands = tuple(part for part in parts if not isinstance(part, Token))
        return t.Joined(operands, tuple(str(part) for part in parts if isinstance(part, Token)), self._span(meta))

    def define(self, meta: Meta, *tokens: Token) -> t.Define:
        name, *streams = (self._name(token) for token in tokens if token.type == "NAME")
        return t.Define(name, tuple(streams), self._sparql(self._at(tokens[-1])), self._span(meta))

    def call(self, meta: Meta, *_: Token) -> t.Sparql:
        return self._sparql(self._span(meta))

    def group_by(self, meta: Meta, _: Token, *keys: t.QueryName | t.Sparql) -> t.GroupBy:
        return t.GroupBy(keys, self._span(meta))

    def having(self, meta: Meta, _: Token, *conditions: Token | t.Sparql) -> t.Having:
        calls = (c if isinstance(c, t.Sparql) else self._sparql(self._at(c)) for c in conditions)
        return t.Having(tuple(calls), self._span(meta))

    def order_by(self, meta: Meta, _: Token, *keys: t.Key) -> t.OrderBy:
        return t.OrderBy(keys, self._span(meta))

    def key(self, meta: Meta, direction: Token | None, of: Token | t.Sparql) -> t.Key:
        word = cast(Literal["", "ASC", "DESC"], str(direction or "").upper())
        return t.Key(self._expression(of), word, self._span(meta))

    def limit(self, meta: Meta, _: Token, count: Token) -> t.LimitClause:
        return t.LimitClause(self._name(count), self._span(meta))

    def offset(self, meta: Meta, _: Token, count: Token) -> t.Offset:
        return t.Offset(self._name(count), self._span(meta))
