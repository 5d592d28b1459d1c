"""Text of a query to its syntax tree."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

from lark import Lark, Token
from lark.exceptions import UnexpectedToken
from lark.tree import Meta
from lark.visitors import Transformer_NonRecursive, v_args

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
    found = words(source)
    if found.unclosed is not None:
        _report_unclosed(found, source, findings)
        return None
    try:
        tree = query_parser().parse(found.tokens)
    except UnexpectedToken as error:
        explain_query(error, found.tokens, source, findings)
        return None
    query = _QueryReader(source, found).transform(tree)
    assert isinstance(query, t.QueryTree)
    return query


def _report_unclosed(found: QueryTokens, source: Source, findings: Findings) -> None:
    unclosed = found.unclosed
    assert unclosed is not None
    bracket = source.text[unclosed.opening]
    opening = Span(source, unclosed.opening, unclosed.opening + 1)
    if not unclosed.found:
        findings.add("E101", f"`{bracket}` is never closed", opening)
        return
    at = Span(source, unclosed.at, unclosed.at + 1)
    findings.add("E101", f"`{unclosed.found}` closes no `{bracket}`", at, Note("this one is open", opening))


@v_args(meta=True)
class _QueryReader(Transformer_NonRecursive[Token, Any]):
    """Lark's tree to ours."""

    def __init__(self, source: Source, found: QueryTokens) -> None:
        super().__init__()
        self.source, self.found = source, found

    def _span(self, meta: Meta) -> Span:
        return Span(self.source, meta.start_pos, meta.end_pos)

    def _at(self, token: Token) -> Span:
        assert token.start_pos is not None and token.end_pos is not None
        return Span(self.source, token.start_pos, token.end_pos)

    def _name(self, token: Token) -> t.QueryName:
        return t.QueryName(str(token)[1:] if token.type == "VAR" else str(token), self._at(token))

    def _sparql(self, span: Span) -> t.Sparql:
        return t.Sparql(tuple(p.written for p in pieces_of(span)), span)

    def _expression(self, token: Token) -> t.QueryName | t.Sparql:
        return self._name(token) if token.type == "VAR" else self._sparql(self._at(token))

    def start(self, meta: Meta, items: list[Any]) -> t.QueryTree:
        prologue, answer, *rest = items
        where = next(i for i in rest if isinstance(i, tuple))
        clauses, modifiers = rest[: rest.index(where)], rest[rest.index(where) + 1 :]
        sequences = tuple(i for i in where if isinstance(i, t.SequencePattern))
        defines = tuple(i for i in where if isinstance(i, t.Define))
        comments = tuple(self.found.comments)
        span = Span(self.source, meta.start_pos, meta.end_pos)
        return t.QueryTree(prologue, answer, tuple(clauses), sequences, defines, tuple(modifiers), comments, span)

    def prologue(self, meta: Meta, items: list[Any]) -> tuple[t.Base | t.QueryPrefix, ...]:
        return tuple(items)

    def base(self, meta: Meta, items: list[Any]) -> t.Base:
        return t.Base(str(items[1])[1:-1], self._span(meta))

    def prefix(self, meta: Meta, items: list[Any]) -> t.QueryPrefix:
        return t.QueryPrefix(str(items[1]), str(items[2])[1:-1], self._span(meta))

    def select(self, meta: Meta, items: list[Any]) -> t.SelectClause:
        _, distinct, *columns = items
        star = isinstance(columns[0], Token)
        return t.SelectClause(
            () if star else tuple(columns),
            "" if distinct is None else str(distinct).upper(),  # type: ignore[arg-type]
            self._span(meta),
        )

    def construct(self, meta: Meta, items: list[Any]) -> t.ConstructClause:
        _, template, *into = items
        return t.ConstructClause(self._sparql(self._at(template)), into[-1] if into else None, self._span(meta))

    def column(self, meta: Meta, items: list[Any]) -> t.QueryName | t.Sparql:
        return self._expression(items[0])

    def iri(self, meta: Meta, items: list[Any]) -> t.IriText:
        return t.IriText(str(items[0]), self._at(items[0]))

    def within(self, meta: Meta, items: list[Any]) -> t.WithinClause:
        _, count, unit, tumbling = items
        origin = tumbling[0] if tumbling else None
        named = t.QueryName(str(unit).upper(), self._at(unit))
        return t.WithinClause(self._name(count), named, tumbling is not None, origin, self._span(meta))

    def tumbling(self, meta: Meta, items: list[Any]) -> tuple[t.QueryName | None]:
        return (items[1] if len(items) > 1 else None,)

    def time(self, meta: Meta, items: list[Any]) -> t.QueryName:
        span = self._span(meta)
        return t.QueryName("".join(span.text.split()) if not span.text.startswith(('"', "'")) else span.text, span)

    def partition(self, meta: Meta, items: list[Any]) -> t.Partition:
        result = tuple(self._name(i) for i in items if i is not None and i.type == "VAR")
        return t.Partition(result, self._span(meta))

    def stream(self, meta: Meta, items: list[Any]) -> t.FromStream:
        return t.FromStream(self._name(items[1]), items[2], self._span(meta))

    def dataset(self, meta: Meta, items: list[Any]) -> t.FromGraph:
        return t.FromGraph(items[1], False, self._span(meta))

    def named_dataset(self, meta: Meta, items: list[Any]) -> t.FromGraph:
        return t.FromGraph(items[1], True, self._span(meta))

    def where(self, meta: Meta, items: list[Any]) -> tuple[Any, ...]:
        return tuple(items)

    def sequence(self, meta: Meta, items: list[Any]) -> t.SequencePattern:
        result: list[t.ItemText] = []
        separator = ","
        for part in items[2:-1]:
            if isinstance(part, str):
                separator = part
            else:
                operand, quantifier, span = part
                result.append(t.ItemText(operand, quantifier, separator, span))  # type: ignore[arg-type]
        return t.SequencePattern(tuple(result), self._span(meta))

    def item(self, meta: Meta, items: list[Any]) -> tuple[t.OperandText, str, Span]:
        return items[0], "" if items[1] is None else str(items[1]), self._span(meta)

    def separator(self, meta: Meta, items: list[Any]) -> str:
        return str(items[0])

    def use(self, meta: Meta, items: list[Any]) -> t.QueryName:
        return self._name(items[0])

    def joiner(self, meta: Meta, items: list[Any]) -> str:
        return str(items[0])

    def joined(self, meta: Meta, items: list[Any]) -> t.OperandText:
        parts = items[1:-1]
        operands: tuple[t.OperandText, ...] = tuple(p for p in parts if not isinstance(p, str))
        if len(operands) == 1:
            return operands[0]
        return t.Joined(operands, tuple(p for p in parts if isinstance(p, str)), self._span(meta))

    def define(self, meta: Meta, items: list[Any]) -> t.Define:
        names = [self._name(i) for i in items if i.type == "NAME"]
        return t.Define(names[0], tuple(names[1:]), self._sparql(self._at(items[-1])), self._span(meta))

    def call(self, meta: Meta, items: list[Any]) -> t.Sparql:
        return self._sparql(self._span(meta))

    def _each(self, items: list[Any]) -> tuple[Any, ...]:
        return tuple(self._expression(i) if isinstance(i, Token) else i for i in items)

    def group_by(self, meta: Meta, items: list[Any]) -> t.GroupBy:
        return t.GroupBy(self._each(items[1:]), self._span(meta))

    def having(self, meta: Meta, items: list[Any]) -> t.Having:
        return t.Having(self._each(items[1:]), self._span(meta))

    def order_by(self, meta: Meta, items: list[Any]) -> t.OrderBy:
        return t.OrderBy(tuple(items[1:]), self._span(meta))

    def key(self, meta: Meta, items: list[Any]) -> t.Key:
        direction, of = items
        word = "" if direction is None else str(direction).upper()
        return t.Key(self._each([of])[0], word, self._span(meta))  # type: ignore[arg-type]

    def limit(self, meta: Meta, items: list[Any]) -> t.LimitClause:
        return t.LimitClause(self._name(items[1]), self._span(meta))

    def offset(self, meta: Meta, items: list[Any]) -> t.Offset:
        return t.Offset(self._name(items[1]), self._span(meta))
