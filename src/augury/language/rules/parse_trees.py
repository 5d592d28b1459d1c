"""The parse tree of a statement as our syntax tree."""

from __future__ import annotations

import re
from dataclasses import replace
from math import isinf
from typing import Any, Literal, TypeAlias

from lark import Token
from lark.tree import Meta
from lark.visitors import Transformer_NonRecursive, v_args

from augury.algebra.nodes import ALL_COLLECTED
from augury.algebra.terms import Const, Var, Wild
from augury.core.clock import Duration, Timestamp, read_duration, read_timestamp
from augury.core.errors import Findings, Source, Span
from augury.core.model import MAX_INT, Iri
from augury.language.rules import syntax as s
from augury.language.rules.regroup import regroup
from augury.language.rules.statements import COLON

Integer: TypeAlias = int  # inside the reader, `int` is a rule of the grammar


class Refused(Exception):
    """The statement has a mistake that was reported already."""


@v_args(meta=True, inline=True)
class TreeReader(Transformer_NonRecursive[Token, Any]):
    """Lark's tree to ours: a method for each rule of the grammar, given its place and its parts."""

    def __init__(self, source: Source, offset: int, prefixes: dict[str, str], findings: Findings) -> None:
        super().__init__()
        self.source, self.offset, self.prefixes, self.findings = source, offset, prefixes, findings

    # Statements

    def start(self, meta: Meta, statement: s.Statement) -> s.Statement:
        return statement

    def include(self, meta: Meta, path: Token) -> s.Include:
        return s.Include(_unquote(path), span=self._span(meta))

    def prefix(self, meta: Meta, name: Token, iri: Token) -> s.PrefixDecl:
        return s.PrefixDecl(_label(name), iri[1:-1], span=self._span(meta))

    def attribute(self, meta: Meta, name: Token, type: Token) -> s.AttributeDecl:
        return s.AttributeDecl(_label(name), str(type).lower(), self._span(meta), self._token(type))

    def column(self, meta: Meta, attribute: s.AttributeDecl, path: Token | None) -> s.AttributeDecl:
        return attribute if path is None else replace(attribute, column=_unquote(path))

    def columns(self, meta: Meta, *items: s.AttributeDecl | None) -> tuple[s.AttributeDecl, ...]:
        return self.attributes(meta, *items)

    def attributes(self, meta: Meta, *items: s.AttributeDecl | None) -> tuple[s.AttributeDecl, ...]:
        return tuple(i for i in items if i is not None)

    def event_decl(self, meta: Meta, name: Token, attributes: tuple[s.AttributeDecl, ...] | None) -> s.EventDecl:
        return s.EventDecl(self._name(name), attributes or (), span=self._span(meta))

    def static_decl(self, meta: Meta, name: Token, attributes: tuple[s.AttributeDecl, ...]) -> s.StaticDecl:
        return s.StaticDecl(self._name(name), attributes, span=self._span(meta))

    def function_decl(
        self, meta: Meta, name: Token, attributes: tuple[s.AttributeDecl, ...], result: Token | None = None
    ) -> s.FunctionDecl:
        returned = "any" if result is None else str(result).lower()
        return s.FunctionDecl(str(name), attributes, returned, span=self._span(meta))

    def policy(self, meta: Meta, name: Token, ties: Token | None, *per: Token | None) -> s.PolicyClause:
        by = str(ties) if ties is not None and ties.type == "VAR" else None
        chosen = "by" if by else str(ties).lower() if ties else "longest"
        return s.PolicyClause(
            str(name).lower(), chosen, by, tuple(str(v) for v in per if v is not None), self._span(meta)
        )

    def policy_decl(self, meta: Meta, policy: s.PolicyClause) -> s.PolicyDecl:
        return s.PolicyDecl(policy, span=self._span(meta))

    def tick(self, meta: Meta, length: Token) -> s.TickDecl:
        return s.TickDecl(self._duration(length), span=self._span(meta))

    def output(self, meta: Meta, *names: Token) -> s.OutputDecl:
        return s.OutputDecl(tuple(s.BareName(self._name(t), self._token(t)) for t in names), span=self._span(meta))

    def event_rule(
        self,
        meta: Meta,
        label: Token | None,
        fact: Token | None,
        head: s.Node,
        key: tuple[Var, ...] | None,
        since: s.Node | Token | None,
        body: tuple[s.Node, ...],
        per: tuple[Var, ...] | None,
        which: Token | None,
        skip: s.Skip | None,
        policy: s.PolicyClause | None,
        top: s.TopClause | None,
        at_most: s.AtMostClause | None,
    ) -> s.RuleStatement:
        makes: s.Makes = "event" if fact is None else _MAKES[fact.type]
        name = _label(label) if label else None
        choice = self._choice(per, which, skip, self._span(meta))
        start: s.Node | Literal["END"] | None = "END" if isinstance(since, Token) else since
        span = self._span(meta)
        return s.RuleStatement(head, regroup(body), name, policy, makes, choice, start, top, at_most, key, span=span)

    def top(
        self,
        meta: Meta,
        count: Token,
        by: s.Node,
        order: Token | None,
        ties: Token | None,
        per: tuple[Var, ...] | None,
        rank: Token | None,
    ) -> s.TopClause:
        first = None if count.type == "ALL" else self._integer(count)
        ascending = order is not None and order.type == "ASC"
        rank_variable = None if rank is None else Var(str(rank), self._token(rank))
        return s.TopClause(first, by, ascending, ties is not None, per or (), rank_variable, self._span(meta))

    def at_most(self, meta: Meta, count: Token, per: tuple[Var, ...] | None, every: Token | None) -> s.AtMostClause:
        most = 1 if count.type == "ONCE" else self._integer(count)
        return s.AtMostClause(most, per or (), None if every is None else self._length(every), self._span(meta))

    def _choice(
        self, per: tuple[Var, ...] | None, which: Token | None, skip: s.Skip | None, rule: Span
    ) -> s.Choice | None:
        """The clauses on the run at the end of a rule; its span begins at their first word."""
        if per is None and which is None and skip is None:
            return None
        words = "per" if per is not None else str(which) if which is not None else "skip"
        span = rule.part(rf"(?s:.*)(?P<it>\b{words}\b(?s:.*))")
        return s.Choice(per, None if which is None else str(which).upper(), skip, span)

    def skip(self, meta: Meta, words: Token, label: Token | None = None) -> s.Skip:
        if label is None:
            return s.Skip("PAST END")
        return s.Skip("TO FIRST" if words.lower().endswith("first") else "TO LAST", str(label))

    def per(self, meta: Meta, *names: Token | None) -> tuple[Var, ...]:
        return tuple(Var(str(i), self._token(i)) for i in names if i is not None)

    def static_rule(self, meta: Meta, label: Token | None, head: s.Node, body: tuple[s.Node, ...]) -> s.StaticRule:
        return s.StaticRule(head, body, _label(label) if label else None, span=self._span(meta))

    def fact(self, meta: Meta, head: s.Node) -> s.StaticRule:
        return s.StaticRule(head, (), span=self._span(meta))

    # Literals

    def body(self, meta: Meta, *literals: s.Node) -> tuple[s.Node, ...]:
        return literals

    def labelled(self, meta: Meta, label: Token, body: s.Node) -> s.Labelled:
        return s.Labelled(_label(label), body, self._span(meta))

    def while_not(self, meta: Meta, window: Token, _: Token, body: s.Node) -> s.While:
        return s.While(_label(window), False, body, span=self._span(meta))

    def while_collect(
        self, meta: Meta, window: Token, label: Token | None, body: s.Node, none: Token | None
    ) -> s.While:
        return s.While(_label(window), True, body, label and _label(label), none is not None, self._span(meta))

    def last(
        self, meta: Meta, word: Token, count: Token, label: Token | None, body: s.Node, none: Token | None
    ) -> s.Last:
        named = label and _label(label)
        return s.Last(self._integer(count), word.type == "EXACTLY", body, named, none is not None, self._span(meta))

    def all_collect(self, meta: Meta, label: Token | None, body: s.Node, none: Token | None) -> s.Last:
        return s.Last(ALL_COLLECTED, False, body, label and _label(label), none is not None, self._span(meta))

    def cut(self, meta: Meta, *_: Token) -> s.Cut:
        return s.Cut(self._span(meta))

    # Expressions

    def where(self, meta: Meta, pattern: s.Node, condition: s.Node) -> s.Where:
        return s.Where(pattern, condition, self._span(meta))

    def binary_op(self, meta: Meta, word: Token) -> str:
        return str(word.type)

    def binary(self, meta: Meta, left: s.Node, op: str, policy: s.PolicyClause | None, right: s.Node) -> s.Binary:
        return s.Binary(op, left, right, policy, span=self._span(meta))

    def labelled_or(self, meta: Meta, left: s.Node, _: Token, label: Token, right: s.Node) -> s.Binary:
        span = self._span(meta)
        return s.Binary("OR", left, s.Labelled(_label(label), right, self._token(label).to(span)), span=span)

    def infix_not(self, meta: Meta, sequence: s.Node, word: Token, negated: s.Node) -> s.Not:
        if not isinstance(sequence, s.Binary) or sequence.op != "SEQ":
            hint = "write `a SEQ b NOT c` or `NOT(c).[a, b]`"
            of = sequence.body if isinstance(sequence, s.Labelled) else sequence
            if isinstance(of, s.BareName) and of.text == "holding":
                hint = "when facts do not hold is a static rule: `off(M) :- machine(M), not on(M).`, and `x: holding off(M)`"
                raise self._refuse("E277", "`holding` takes an atom", self._token(word), hint)
            raise self._refuse("E104", "NOT between patterns follows a sequence", self._token(word), hint)
        return s.Not(negated, (sequence.left, sequence.right), sequence.policy, self._span(meta))

    def not_between(
        self, meta: Meta, _: Token, policy: s.PolicyClause | None, negated: s.Node, first: s.Node, second: s.Node | None
    ) -> s.Not:
        if second is not None:
            return s.Not(negated, (first, second), policy, self._span(meta))
        if not isinstance(first, s.Binary) or first.op != "SEQ":
            brackets = self._span(meta).part(r"\[[^\[]*\]$")
            raise self._refuse("E104", "the brackets of NOT hold two patterns", brackets, "write `NOT(c).[a, b]`")
        return s.Not(negated, (first.left, first.right), policy or first.policy, self._span(meta))

    def negation(self, meta: Meta, _: Token, negated: s.Node) -> s.Not:
        return s.Not(negated, span=self._span(meta))

    def was(self, meta: Meta, atom: s.Node) -> s.Was:
        return s.Was(atom, self._span(meta))

    def holding(self, meta: Meta, atom: s.Node) -> s.Holding:
        return s.Holding(atom, self._span(meta))

    def chain(self, meta: Meta, *items: Any) -> s.Chain:
        return s.Chain(items[0::2], tuple(_COMPARISONS[str(o).lower()] for o in items[1::2]), self._span(meta))

    def among(self, meta: Meta, value: s.Node, word: Token, options: list[Any]) -> s.Among:
        for option in options:
            if isinstance(option, tuple):
                raise self._refuse("E210", "`distinct` belongs to an aggregate", self._span(meta).part(r"\bdistinct\b"))
        return s.Among(value, tuple(options), word.type == "NOT_IN", self._span(meta))

    def between(self, meta: Meta, value: s.Node, low: s.Node, _: Token, high: s.Node) -> s.Between:
        return s.Between(value, low, high, self._span(meta))

    def within_set(self, meta: Meta, labels: s.Node, length: Token) -> s.WithinSet:
        return s.WithinSet(labels, self._length(length), self._span(meta))

    def arith(self, meta: Meta, left: s.Node, op: Token, right: s.Node) -> s.Arith:
        return s.Arith({"·": "*"}.get(op, str(op).lower()), (left, right), self._span(meta))

    def arith_power(self, meta: Meta, base: s.Node, exponent: s.Node) -> s.Arith:
        return s.Arith("**", (base, exponent), self._span(meta))

    def negative(self, meta: Meta, _: Token, operand: s.Node) -> s.Node:
        if isinstance(operand, Const) and type(operand.value) in (int, float):
            return Const(0 - operand.value, self._span(meta))  # type: ignore[operator]
        return s.Arith("-", (operand,), self._span(meta))

    def repeat(self, meta: Meta, pattern: s.Node, count: Token, consecutive: Token | None) -> s.Power:
        return s.Power(pattern, self._integer(count), consecutive is not None, self._span(meta))

    def quantified(self, meta: Meta, pattern: s.Node, sign: Token, by: Token | None = None) -> s.Quantified:
        between = None if by is None else str(by.type)
        if sign.type != "TIMES_OVER":
            least, most = {"SOME": (1, None), "ANY": (0, None), "MAYBE": (0, 1)}[sign.type]
            return s.Quantified(pattern, least, most, between, self._span(meta))
        low, comma, high = sign.strip("{} \t\n").partition(",")
        least = self._integer(sign, low.strip())
        most = least if not comma else self._integer(sign, high.strip()) if high.strip() else None
        return s.Quantified(pattern, least, most, between, self._span(meta))

    def window(self, meta: Meta, pattern: s.Node, length: Token) -> s.Window:
        return s.Window(pattern, self._length(length), self._span(meta))

    def group(self, meta: Meta, inner: tuple[s.Node, ...]) -> s.Node:
        if len(inner) > 1:
            return s.Group(inner, self._span(meta))
        return replace(inner[0], parens=True) if isinstance(inner[0], s.Binary) else inner[0]

    def implication(
        self, meta: Meta, condition: tuple[s.Node, ...], then: tuple[s.Node, ...]
    ) -> tuple[tuple[s.Node, ...], tuple[s.Node, ...]]:
        return condition, then

    def alternatives(self, meta: Meta, *options: Any) -> s.Node:
        """`(a ; b)` is `(a or b)`, and `(c -> a ; b)` is `((c, a) or (not c, b))`."""
        *others, last = options
        node = self.group(meta, last[0] + last[1] if isinstance(last[0], tuple) else last)
        for option in reversed(others):
            if isinstance(option[0], tuple):
                condition = self.group(meta, option[0])
                option = option[0] + option[1]
                node = s.Group((s.Not(condition, span=condition.span), node), self._span(meta))
            node = s.Binary("OR", self.group(meta, option), node, None, parens=True, span=self._span(meta))
        return node

    def braces(self, meta: Meta, inner: tuple[s.Node, ...]) -> s.Group:
        return s.Group(inner, self._span(meta))

    def args(self, meta: Meta, *items: object) -> list[Any]:
        return list(items)

    def distinct(self, meta: Meta, argument: s.Node) -> tuple[str, s.Node]:
        return ("distinct", argument)

    def filtered(self, meta: Meta, condition: s.Node) -> s.Filtered:
        return s.Filtered(condition, self._span(meta))

    def call(self, meta: Meta, name: Token, args: list[Any] | None) -> s.CallTerm:
        distinct = any(isinstance(a, tuple) for a in args or ())
        plain = tuple(a[1] if isinstance(a, tuple) else a for a in args or ())
        return s.CallTerm(self._name(name), plain, distinct, self._span(meta))

    def graph(self, meta: Meta, text: Token) -> s.GraphCall:
        from augury.language.spaseq.graph_atoms import read_graph_atom

        result = read_graph_atom(self._token(text), self.prefixes, self.findings)
        if result is None:
            raise Refused
        return result

    # Names and values

    def var(self, meta: Meta, name: Token) -> Var:
        return Var(str(name), self._span(meta))

    def wild(self, meta: Meta, *_: Token) -> Wild:
        return Wild(self._span(meta))

    def name(self, meta: Meta, name: Token) -> s.BareName:
        return s.BareName(str(name), self._span(meta))

    def pname(self, meta: Meta, name: Token) -> Const:
        return Const(Iri(self._name(name)), self._span(meta))

    def iri(self, meta: Meta, iri: Token) -> Const:
        return Const(Iri(iri[1:-1]), self._span(meta))

    def string(self, meta: Meta, text: Token) -> Const:
        return Const(_unquote(text), self._span(meta))

    def int(self, meta: Meta, digits: Token) -> Const:
        return Const(self._integer(digits), self._span(meta))

    def float(self, meta: Meta, digits: Token) -> Const:
        return self._float(digits)

    def duration(self, meta: Meta, text: Token) -> Const:
        return self._duration(text)

    def timestamp(self, meta: Meta, token: Token) -> Const:
        text = token[1:].strip()
        if text.isdigit():
            return Const(self._integer(token, text), self._span(meta))
        try:
            return Const(Timestamp(read_timestamp(text[1:-1])), self._span(meta))
        except ValueError as error:
            raise self._refuse("E106", str(error), self._span(meta)) from error

    def true(self, meta: Meta, *_: Token) -> Const:
        return Const(True, self._span(meta))

    def false(self, meta: Meta, *_: Token) -> Const:
        return Const(False, self._span(meta))

    def null(self, meta: Meta, *_: Token) -> Const:
        return Const(None, self._span(meta))

    # What they are made of

    def _span(self, meta: Meta) -> Span:
        return Span(self.source, meta.start_pos + self.offset, meta.end_pos + self.offset)

    def _token(self, token: Token) -> Span:
        assert token.start_pos is not None and token.end_pos is not None
        return Span(self.source, token.start_pos + self.offset, token.end_pos + self.offset)

    def _refuse(self, code: str, message: str, span: Span, hint: str | None = None) -> Refused:
        self.findings.add(code, message, span, hint=hint)
        return Refused()

    def _name(self, token: Token) -> str:
        """A prefixed name is its IRI; any other name is itself."""
        if token.startswith("<"):
            return str(token[1:-1])
        if COLON not in token:
            return str(token)
        prefix, _, local = token.partition(COLON)
        return self.prefixes[prefix] + local

    def _duration(self, token: Token) -> Const:
        try:
            length = read_duration(str(token))
        except ValueError as error:
            raise self._refuse("E106", str(error), self._token(token)) from error
        if length > MAX_INT:
            raise self._refuse("E105", "the duration is beyond 64 bits of microseconds", self._token(token))
        return Const(Duration(length), self._token(token))

    def _length(self, token: Token) -> Const:
        match token.type:
            case "DURATION":
                return self._duration(token)
            case "FLOAT":
                return self._float(token)
        return Const(self._integer(token), self._token(token))

    def _integer(self, token: Token, digits: str | None = None) -> Integer:
        digits = (digits or str(token)).lstrip("0") or "0"
        if len(digits) > len(str(MAX_INT)) or int(digits) > MAX_INT:
            raise self._refuse("E105", "the integer is beyond 64 bits", self._token(token))
        return int(digits)

    def _float(self, token: Token) -> Const:
        if isinf(float(token)):
            raise self._refuse("E105", "the number is beyond 64 bits", self._token(token))
        return Const(float(token), self._token(token))


_MAKES: dict[str, s.Makes] = {"FACT": "fact", "LATEST": "latest", "NO_FACT": "no fact"}
_COMPARISONS = {
    "=": "=", "==": "=", "is": "=", "!=": "!=", "\\=": "!=", "≠": "!=", "<": "<", "<=": "<=", "=<": "<=", "≤": "<=",
    ">": ">", ">=": ">=", "≥": ">=",
}  # fmt: skip
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}
_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|(.))", re.DOTALL)


def _unquote(token: str) -> str:
    return _ESCAPE.sub(_unescaped, token[1:-1])


def _unescaped(escape: re.Match[str]) -> str:
    """What an escape stands for: `\\u001b` is the character of that number, unless that is none."""
    if escape[1] is None:
        return _ESCAPES.get(escape[2], escape[2])
    number = int(escape[1], 16)
    return escape[0][1:] if 0xD800 <= number < 0xE000 else chr(number)


def _label(token: str) -> str:
    return token.rstrip(":").rstrip()
