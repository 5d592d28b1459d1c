"""Text to syntax tree: split at full stops, parse each statement, report every syntax error."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from math import isinf
from typing import Any, Literal, TypeAlias

from lark import Token, Tree, UnexpectedInput
from lark.exceptions import VisitError
from lark.tree import Meta
from lark.visitors import Transformer_NonRecursive, v_args

from augury.algebra.terms import Const, Var, Wild
from augury.clock import Duration, Timestamp, read_duration, read_timestamp
from augury.errors import Findings, Note, Source, Span
from augury.language.rules import syntax as s
from augury.language.rules.grammar import parser
from augury.language.rules.nesting import too_large
from augury.language.rules.regroup import regroup
from augury.language.rules.statements import COLON, Chunk, chunks
from augury.language.rules.syntax_errors import explain, next_statement
from augury.model import MAX_INT, Iri

KNOWN_PREFIXES = {
    "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "xsd": "http://www.w3.org/2001/XMLSchema#",
    "owl": "http://www.w3.org/2002/07/owl#",
}
Integer: TypeAlias = int  # inside the reader, `int` is a rule of the grammar

Loader = Callable[[str, Span], Source | None]


def read(source: Source, findings: Findings, load: Loader | None = None) -> list[s.Module]:
    """The modules of a source, included ones first. Syntax errors go to `findings`; what could be read is returned."""
    modules: list[s.Module] = []
    prefixes = dict(KNOWN_PREFIXES)
    findings.prefixes.update(prefixes)
    _read(source, findings, load, prefixes, modules, (source.name,))
    return modules


def _read(
    source: Source,
    findings: Findings,
    load: Loader | None,
    prefixes: dict[str, str],
    modules: list[s.Module],
    open_files: tuple[str, ...],
) -> None:
    statements: list[s.Statement] = []
    trailing: tuple[str, ...] = ()
    for chunk in chunks(source, prefixes):
        if not chunk.text.strip():
            trailing = chunk.comments.before
            continue
        for statement in _parse(chunk, source, findings, prefixes):
            if isinstance(statement, s.Prefix):
                prefixes[statement.name] = findings.prefixes[statement.name] = statement.iri
            if isinstance(statement, s.Include) and load is not None:
                included = load(statement.path, statement.span)
                if included is not None and included.name in open_files:
                    message = f"`{statement.path}` includes itself"
                    findings.add(
                        "E103",
                        message,
                        statement.span,
                        Note("the way round: " + " → ".join([*open_files, included.name])),
                    )
                elif included is not None and all(m.span.source.name != included.name for m in modules):
                    _read(included, findings, load, prefixes, modules, (*open_files, included.name))
            statements.append(statement)
    modules.append(s.Module(tuple(statements), trailing, Span(source, 0, len(source.text))))


def _parse(chunk: Chunk, source: Source, findings: Findings, prefixes: dict[str, str]) -> Iterator[s.Statement]:
    """The statement of a chunk; several where a full stop is missing before a line that begins one."""
    tree = _tree(chunk)
    while isinstance(tree, UnexpectedInput):
        at = next_statement(tree, chunk)
        first, rest = chunk.split(at or 0)
        shorter = _tree(first) if at is not None else tree
        if isinstance(shorter, UnexpectedInput):
            explain(tree, chunk, source, findings)
            _unread(chunk, findings)
            return
        yield from _statement(shorter, first, source, findings, prefixes)
        chunk, tree = rest, _tree(rest)
    yield from _statement(tree, chunk, source, findings, prefixes)


def _tree(chunk: Chunk) -> Tree[Token] | UnexpectedInput:
    try:
        return parser().parse(chunk.text)
    except UnexpectedInput as error:
        return error


def _statement(
    tree: Tree[Token], chunk: Chunk, source: Source, findings: Findings, prefixes: dict[str, str]
) -> Iterator[s.Statement]:
    statement = _transform(tree, _Reader(source, chunk.start, prefixes, findings))
    if statement is None:
        _unread(chunk, findings)
        return
    if not chunk.closed:
        end = chunk.start + len(chunk.text.rstrip())
        findings.add("E102", "a full stop is missing", Span(source, end, end + 1), hint="end every statement with `.`")
    yield replace(statement, comments=chunk.comments)


def _transform(tree: Tree[Token], reader: _Reader) -> s.Statement | None:
    try:
        statement = reader.transform(tree)
    except VisitError as error:
        if isinstance(error.orig_exc, _Refused):
            return None
        raise
    assert isinstance(statement, s.Statement)
    if isinstance(statement, s.EventRule | s.StaticRule) and (problem := too_large(statement)) is not None:
        message, span, hint = problem
        reader.findings.add("E108", message, span, hint=hint)
        return None
    return statement


def _unread(chunk: Chunk, findings: Findings) -> None:
    """Nothing is said about names that a statement may define, if it could not be read: those before an arrow."""
    lines = [re.split(r"<-|←|:-", line) for line in chunk.text.splitlines()]
    heads = [parts[0] for parts in lines if len(parts) > 1] or [chunk.text]
    for head in heads:
        findings.unread |= set(re.findall(r"[^\W\d]\w*", head))
        for prefix, local in re.findall(rf"(?<!\w)(\w+){COLON}([\w-]+)", head):
            findings.unread.add(findings.prefixes[prefix] + local)


class _Refused(Exception):
    """The statement has a mistake that was reported already."""


@v_args(meta=True)
class _Reader(Transformer_NonRecursive[Token, Any]):
    """Lark's tree to ours."""

    def __init__(self, source: Source, offset: int, prefixes: dict[str, str], findings: Findings) -> None:
        super().__init__()
        self.source, self.offset, self.prefixes, self.findings = source, offset, prefixes, findings

    def _span(self, meta: Meta) -> Span:
        return Span(self.source, meta.start_pos + self.offset, meta.end_pos + self.offset)

    def _token(self, token: Token) -> Span:
        assert token.start_pos is not None and token.end_pos is not None
        return Span(self.source, token.start_pos + self.offset, token.end_pos + self.offset)

    def _refuse(self, code: str, message: str, span: Span, hint: str | None = None) -> _Refused:
        self.findings.add(code, message, span, hint=hint)
        return _Refused()

    # Statements

    def start(self, meta: Meta, items: list[Any]) -> s.Statement:
        return items[0]  # type: ignore[no-any-return]

    def include(self, meta: Meta, items: list[Any]) -> s.Include:
        return s.Include(_unquote(items[0]), span=self._span(meta))

    def prefix(self, meta: Meta, items: list[Any]) -> s.Prefix:
        return s.Prefix(_label(items[0]), items[1][1:-1], span=self._span(meta))

    def attribute(self, meta: Meta, items: list[Any]) -> s.Attribute:
        return s.Attribute(_label(items[0]), str(items[1]).lower(), self._span(meta), self._token(items[1]))

    def attributes(self, meta: Meta, items: list[Any]) -> tuple[s.Attribute, ...]:
        return tuple(i for i in items if i is not None)

    def event_decl(self, meta: Meta, items: list[Any]) -> s.EventDecl:
        return s.EventDecl(self._name(items[0]), items[1] or (), span=self._span(meta))

    def static_decl(self, meta: Meta, items: list[Any]) -> s.StaticDecl:
        return s.StaticDecl(self._name(items[0]), items[1], span=self._span(meta))

    def function_decl(self, meta: Meta, items: list[Any]) -> s.FunctionDecl:
        result = str(items[2]).lower() if len(items) > 2 else "any"
        return s.FunctionDecl(str(items[0]), items[1], result, span=self._span(meta))

    def policy(self, meta: Meta, items: list[Any]) -> s.Policy:
        name, ties, *per = items
        by = ties if isinstance(ties, Token) and ties.type == "VAR" else None
        return s.Policy(
            str(name).lower(),
            "by" if by else (str(ties).lower() if ties else "longest"),
            str(by) if by else None,
            tuple(str(v) for v in per if v is not None),
            self._span(meta),
        )

    def policy_decl(self, meta: Meta, items: list[Any]) -> s.PolicyDecl:
        return s.PolicyDecl(items[0], span=self._span(meta))

    def tick(self, meta: Meta, items: list[Any]) -> s.Tick:
        return s.Tick(self._duration(items[0]), span=self._span(meta))

    def output(self, meta: Meta, items: list[Any]) -> s.Output:
        return s.Output(tuple(s.Name(self._name(t), self._token(t)) for t in items), span=self._span(meta))

    def event_rule(self, meta: Meta, items: list[Any]) -> s.EventRule:
        label, fact, head, since, body, per, which, skip, policy, top = items
        makes: s.Makes = "event" if fact is None else "fact" if fact.type == "FACT" else "no fact"
        name = _label(label) if label else None
        choice = self._choice(per, which, skip, self._span(meta))
        start: s.Node | Literal["END"] | None = "END" if isinstance(since, Token) else since
        return s.EventRule(head, regroup(body), name, policy, makes, choice, start, top, span=self._span(meta))

    def top(self, meta: Meta, items: list[Any]) -> s.Top:
        count, by, order, per, place = items
        return s.Top(
            None if count.type == "ALL" else self._integer(count),
            by,
            order is not None and order.type == "ASC",
            per or (),
            None if place is None else Var(str(place), self._token(place)),
            self._span(meta),
        )

    def _choice(
        self, per: tuple[Var, ...] | None, which: Token | None, skip: Token | None, rule: Span
    ) -> s.Choice | None:
        """What is said of the run at the end of a rule; its span begins at the first word of it."""
        if per is None and which is None and skip is None:
            return None
        words = "per" if per is not None else str(which) if which is not None else "skip"
        span = rule.part(rf"(?s:.*)(?P<it>\b{words}\b(?s:.*))")
        label = None if skip is None else "" if skip.type == "SKIP_END" else str(skip)
        return s.Choice(per, None if which is None else str(which).upper(), label, span)

    def per(self, meta: Meta, items: list[Any]) -> tuple[Var, ...]:
        return tuple(Var(str(i), self._token(i)) for i in items if i is not None)

    def static_rule(self, meta: Meta, items: list[Any]) -> s.StaticRule:
        label, head, body = items
        return s.StaticRule(head, body, _label(label) if label else None, span=self._span(meta))

    def fact(self, meta: Meta, items: list[Any]) -> s.StaticRule:
        return s.StaticRule(items[0], (), span=self._span(meta))

    # Literals

    def body(self, meta: Meta, items: list[Any]) -> tuple[s.Node, ...]:
        return tuple(items)

    def labelled(self, meta: Meta, items: list[Any]) -> s.Labelled:
        return s.Labelled(_label(items[0]), items[1], self._span(meta))

    def while_not(self, meta: Meta, items: list[Any]) -> s.While:
        return s.While(_label(items[0]), False, items[2], span=self._span(meta))

    def while_collect(self, meta: Meta, items: list[Any]) -> s.While:
        window, label, body, none = items
        return s.While(_label(window), True, body, label and _label(label), none is not None, self._span(meta))

    def last(self, meta: Meta, items: list[Any]) -> s.Last:
        word, count, label, body, none = items
        named = label and _label(label)
        return s.Last(self._integer(count), word.type == "EXACTLY", body, named, none is not None, self._span(meta))

    def cut(self, meta: Meta, items: list[Any]) -> s.Cut:
        return s.Cut(self._span(meta))

    # Expressions

    def where(self, meta: Meta, items: list[Any]) -> s.Where:
        return s.Where(items[0], items[1], self._span(meta))

    def binary_op(self, meta: Meta, items: list[Any]) -> str:
        return str(items[0].type)

    def binary(self, meta: Meta, items: list[Any]) -> s.Binary:
        left, op, policy, right = items
        return s.Binary(op, left, right, policy, span=self._span(meta))

    def infix_not(self, meta: Meta, items: list[Any]) -> s.Not:
        sequence, _, negated = items
        if not isinstance(sequence, s.Binary) or sequence.op != "SEQ":
            hint = "write `a SEQ b NOT c` or `NOT(c).[a, b]`"
            raise self._refuse("E104", "NOT between patterns follows a sequence", self._token(items[1]), hint)
        return s.Not(negated, (sequence.left, sequence.right), sequence.policy, self._span(meta))

    def not_between(self, meta: Meta, items: list[Any]) -> s.Not:
        _, policy, negated, first, second = items
        if second is None:
            if not isinstance(first, s.Binary) or first.op != "SEQ":
                message = "the brackets of NOT hold two patterns"
                hint = "write `NOT(c).[a, b]`"
                raise self._refuse("E104", message, self._span(meta).part(r"\[[^\[]*\]$"), hint)
            return s.Not(negated, (first.left, first.right), policy or first.policy, self._span(meta))
        return s.Not(negated, (first, second), policy, self._span(meta))

    def negation(self, meta: Meta, items: list[Any]) -> s.Not:
        return s.Not(items[1], span=self._span(meta))

    def was(self, meta: Meta, items: list[Any]) -> s.Was:
        return s.Was(items[0], self._span(meta))

    def chain(self, meta: Meta, items: list[Any]) -> s.Chain:
        return s.Chain(tuple(items[0::2]), tuple(_COMPARISONS[str(o).lower()] for o in items[1::2]), self._span(meta))

    def among(self, meta: Meta, items: list[Any]) -> s.Among:
        value, word, options = items
        for option in options:
            if isinstance(option, tuple):
                raise self._refuse("E210", "`distinct` belongs to an aggregate", self._span(meta).part(r"\bdistinct\b"))
        return s.Among(value, tuple(options), word.type == "NOT_IN", self._span(meta))

    def between(self, meta: Meta, items: list[Any]) -> s.Between:
        value, low, _, high = items
        return s.Between(value, low, high, self._span(meta))

    def within_set(self, meta: Meta, items: list[Any]) -> s.WithinSet:
        return s.WithinSet(items[0], self._length(items[1]), self._span(meta))

    def arith(self, meta: Meta, items: list[Any]) -> s.Arith:
        left, op, right = items
        return s.Arith({"·": "*"}.get(op, str(op).lower()), (left, right), self._span(meta))

    def arith_power(self, meta: Meta, items: list[Any]) -> s.Arith:
        return s.Arith("**", tuple(items), self._span(meta))

    def negative(self, meta: Meta, items: list[Any]) -> s.Node:
        operand = items[1]
        if isinstance(operand, Const) and type(operand.value) in (int, float):
            return Const(0 - operand.value, self._span(meta))  # type: ignore[operator]
        return s.Arith("-", (operand,), self._span(meta))

    def repeat(self, meta: Meta, items: list[Any]) -> s.Power:
        pattern, count, consecutive = items
        return s.Power(pattern, self._integer(count), consecutive is not None, self._span(meta))

    def quantified(self, meta: Meta, items: list[Any]) -> s.Quantified:
        pattern, sign = items
        if sign.type != "TIMES_OVER":
            least, most = {"SOME": (1, None), "ANY": (0, None), "MAYBE": (0, 1)}[sign.type]
            return s.Quantified(pattern, least, most, self._span(meta))
        low, comma, high = sign.strip("{} \t\n").partition(",")
        least = self._integer(sign, low.strip())
        most = least if not comma else self._integer(sign, high.strip()) if high.strip() else None
        return s.Quantified(pattern, least, most, self._span(meta))

    def window(self, meta: Meta, items: list[Any]) -> s.Window:
        return s.Window(items[0], self._length(items[1]), self._span(meta))

    def group(self, meta: Meta, items: list[Any]) -> s.Node:
        inner = items[0]
        if len(inner) > 1:
            return s.Group(inner, self._span(meta))
        only: s.Node = inner[0]
        return replace(only, parens=True) if isinstance(only, s.Binary) else only

    def braces(self, meta: Meta, items: list[Any]) -> s.Group:
        return s.Group(items[0], self._span(meta))

    def args(self, meta: Meta, items: list[Any]) -> list[Any]:
        return items

    def distinct(self, meta: Meta, items: list[Any]) -> tuple[str, Any]:
        return ("distinct", items[0])

    def call(self, meta: Meta, items: list[Any]) -> s.Call:
        args = items[1] or []
        distinct = any(isinstance(a, tuple) for a in args)
        plain = tuple(a[1] if isinstance(a, tuple) else a for a in args)
        return s.Call(self._name(items[0]), plain, distinct, self._span(meta))

    def graph(self, meta: Meta, items: list[Any]) -> s.GraphCall:
        from augury.language.spaseq.graph_atoms import read_graph_atom

        found = read_graph_atom(self._token(items[0]), self.prefixes, self.findings)
        if found is None:
            raise _Refused
        return found

    def var(self, meta: Meta, items: list[Any]) -> Var:
        return Var(str(items[0]), self._span(meta))

    def wild(self, meta: Meta, items: list[Any]) -> Wild:
        return Wild(self._span(meta))

    def name(self, meta: Meta, items: list[Any]) -> s.Name:
        return s.Name(str(items[0]), self._span(meta))

    def pname(self, meta: Meta, items: list[Any]) -> Const:
        return Const(Iri(self._name(items[0])), self._span(meta))

    def iri(self, meta: Meta, items: list[Any]) -> Const:
        return Const(Iri(items[0][1:-1]), self._span(meta))

    def string(self, meta: Meta, items: list[Any]) -> Const:
        return Const(_unquote(items[0]), self._span(meta))

    def int(self, meta: Meta, items: list[Any]) -> Const:
        return Const(self._integer(items[0]), self._span(meta))

    def float(self, meta: Meta, items: list[Any]) -> Const:
        return self._float(items[0])

    def duration(self, meta: Meta, items: list[Any]) -> Const:
        return self._duration(items[0])

    def timestamp(self, meta: Meta, items: list[Any]) -> Const:
        text = items[0][1:].strip()
        if text.isdigit():
            return Const(self._integer(items[0], text), self._span(meta))
        try:
            return Const(Timestamp(read_timestamp(text[1:-1])), self._span(meta))
        except ValueError as error:
            raise self._refuse("E106", str(error), self._span(meta)) from error

    def true(self, meta: Meta, items: list[Any]) -> Const:
        return Const(True, self._span(meta))

    def false(self, meta: Meta, items: list[Any]) -> Const:
        return Const(False, self._span(meta))

    def null(self, meta: Meta, items: list[Any]) -> Const:
        return Const(None, self._span(meta))

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


_COMPARISONS = {
    "=": "=", "==": "=", "is": "=", "!=": "!=", "\\=": "!=", "≠": "!=", "<": "<", "<=": "<=", "=<": "<=", "≤": "<=",
    ">": ">", ">=": ">=", "≥": ">=",
}  # fmt: skip
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}


def _unquote(token: str) -> str:
    return re.sub(r"\\(.)", lambda m: _ESCAPES.get(m[1], m[1]), token[1:-1], flags=re.DOTALL)


def _label(token: str) -> str:
    return token.rstrip(":").rstrip()
