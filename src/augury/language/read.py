"""Text to syntax tree: split at full stops, parse each statement, report every syntax error."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any

from lark import Lark, Token, Transformer, UnexpectedInput
from lark.exceptions import UnexpectedCharacters, UnexpectedEOF, UnexpectedToken, VisitError
from lark.tree import Meta
from lark.visitors import v_args

from augury.algebra.terms import Const, Var, Wild
from augury.clock import Duration, Timestamp, read_duration, read_timestamp
from augury.errors import Findings, Note, Source, Span
from augury.language import syntax as s
from augury.model import MAX_INT, Iri

KNOWN_PREFIXES = {
    "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "xsd": "http://www.w3.org/2001/XMLSchema#",
    "owl": "http://www.w3.org/2002/07/owl#",
}
_COLON = "\ua789"  # stands for the colon of a prefixed name: same length, so spans stay true
_PIECES = re.compile(
    r"""(?P<string>'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*")
      | (?P<comment>[%\#][^\n]*|/\*.*?\*/)
      | (?P<iri><[A-Za-z][A-Za-z0-9+.-]*:[^\s<>"{}|\\^`]*>)
      | (?P<end>\.(?!\s*\[)(?=\s|$|[%\#]|/\*))
      | (?P<pname>(?<![\w])[A-Za-z_]\w*:[A-Za-z_][\w-]*)
      | (?P<other>\w+|\s+|.)""",
    re.VERBOSE | re.DOTALL,
)

Loader = Callable[[str, Span], Source | None]


@cache
def _grammar() -> Lark:
    text = files("augury.language").joinpath("rules.lark").read_text(encoding="utf-8")
    return Lark(text, parser="lalr", propagate_positions=True, maybe_placeholders=True)


@dataclass
class _Chunk:
    """One statement's characters: comments blanked, prefixed names marked."""

    start: int
    text: str
    comments: s.Comments
    closed: bool


def read(source: Source, findings: Findings, load: Loader | None = None) -> list[s.Module]:
    """The modules of a source, included ones first. Syntax errors go to `findings`; what could be read is returned."""
    modules: list[s.Module] = []
    _read(source, findings, load, dict(KNOWN_PREFIXES), modules, (source.name,))
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
    for chunk in _chunks(source, prefixes):
        if not chunk.text.strip():
            trailing = chunk.comments.before
            continue
        statement = _parse(chunk, source, findings, prefixes)
        if statement is None:
            continue
        if isinstance(statement, s.Prefix):
            prefixes[statement.name] = statement.iri
        if isinstance(statement, s.Include) and load is not None:
            included = load(statement.path, statement.span)
            if included is not None and included.name in open_files:
                findings.add("E103", f"`{statement.path}` includes itself", statement.span,
                             Note("the way round: " + " → ".join([*open_files, included.name])))  # fmt: skip
            elif included is not None and all(m.span.source.name != included.name for m in modules):
                _read(included, findings, load, prefixes, modules, (*open_files, included.name))
        statements.append(statement)
    modules.append(s.Module(tuple(statements), trailing, Span(source, 0, len(source.text))))


def _chunks(source: Source, prefixes: dict[str, str]) -> Iterator[_Chunk]:
    """The statements of a text. `prefixes` is read anew for each, because a statement may declare one."""
    text = source.text
    start, pieces, before, blank = 0, [], [], False
    at, seen_code = 0, False
    while at < len(text):
        piece = _PIECES.match(text, at)
        assert piece is not None, "the last alternative matches anything"
        kind, value = piece.lastgroup, piece.group()
        at = piece.end()
        match kind:
            case "comment":
                before.append(value.strip())
                pieces.append(" " * len(value))
            case "pname" if value.partition(":")[0] in prefixes:
                pieces.append(value.replace(":", _COLON, 1))
                seen_code = True
            case "pname":
                # Only the label is taken, so that `o:order` and `o: order` read alike.
                at = piece.start() + value.index(":") + 1
                pieces.append(value[: value.index(":") + 1])
                seen_code = True
            case "end":
                pieces.append(".")
                rest = re.compile(r"[ \t]*([%#][^\n]*|/\*.*?\*/[ \t]*(?=\n|$))").match(text, at)
                after = rest.group(1).strip() if rest else ""
                yield _Chunk(start, "".join(pieces), s.Comments(tuple(before), after, blank), True)
                at = rest.end() if rest else at
                start, pieces, before, blank, seen_code = at, [], [], False, False
            case _:
                if not value.isspace():
                    seen_code = True
                elif not seen_code and not before and value.count("\n") > 1 and start > 0:
                    blank = True
                pieces.append(value)
    yield _Chunk(start, "".join(pieces), s.Comments(tuple(before), "", blank), False)


def _parse(chunk: _Chunk, source: Source, findings: Findings, prefixes: dict[str, str]) -> s.Statement | None:
    reader = _Reader(source, chunk.start, prefixes, findings)
    try:
        tree = _grammar().parse(chunk.text)
        statement = reader.transform(tree)
    except UnexpectedInput as error:
        _explain(error, chunk, source, findings)
        return None
    except VisitError as error:
        if isinstance(error.orig_exc, _Refused):
            return None
        raise
    if not chunk.closed:
        end = chunk.start + len(chunk.text.rstrip())
        findings.add("E102", "the statement does not end with a full stop", Span(source, max(end - 1, 0), end),
                     hint="end every statement with `.`")  # fmt: skip
        return None
    assert isinstance(statement, s.Statement)
    return replace(statement, comments=chunk.comments)


class _Refused(Exception):
    """The statement has a mistake that was reported already."""


@v_args(meta=True)
class _Reader(Transformer[Token, Any]):
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
        return s.Attribute(_label(items[0]), str(items[1]).lower(), self._span(meta))

    def attributes(self, meta: Meta, items: list[Any]) -> tuple[s.Attribute, ...]:
        return tuple(i for i in items if i is not None)

    def event_decl(self, meta: Meta, items: list[Any]) -> s.EventDecl:
        return s.EventDecl(self._name(items[0]), items[1] or (), span=self._span(meta))

    def static_decl(self, meta: Meta, items: list[Any]) -> s.StaticDecl:
        return s.StaticDecl(self._name(items[0]), items[1], span=self._span(meta))

    def function_decl(self, meta: Meta, items: list[Any]) -> s.FunctionDecl:
        result = str(items[2]).lower() if items[2] else "any"
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
        label, head, body, policy = items
        return s.EventRule(head, body, _label(label) if label else None, policy, span=self._span(meta))

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
        return s.While(_label(items[0]), False, items[2], self._span(meta))

    def while_collect(self, meta: Meta, items: list[Any]) -> s.While:
        return s.While(_label(items[0]), True, items[1], self._span(meta))

    def last(self, meta: Meta, items: list[Any]) -> s.Last:
        return s.Last(int(items[1]), items[0].type == "EXACTLY", items[2], self._span(meta))

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
            raise self._refuse("E104", "NOT between patterns follows a sequence", self._span(meta),
                               "write `a SEQ b NOT c` or `NOT(c).[a, b]`")  # fmt: skip
        return s.Not(negated, (sequence.left, sequence.right), sequence.policy, self._span(meta))

    def not_between(self, meta: Meta, items: list[Any]) -> s.Not:
        _, policy, negated, first, second = items
        if second is None:
            if not isinstance(first, s.Binary) or first.op != "SEQ":
                raise self._refuse("E104", "the brackets of NOT hold two patterns", self._span(meta),
                                   "write `NOT(c).[a, b]`")  # fmt: skip
            return s.Not(negated, (first.left, first.right), policy or first.policy, self._span(meta))
        return s.Not(negated, (first, second), policy, self._span(meta))

    def negation(self, meta: Meta, items: list[Any]) -> s.Not:
        return s.Not(items[1], span=self._span(meta))

    def chain(self, meta: Meta, items: list[Any]) -> s.Chain:
        return s.Chain(tuple(items[0::2]), tuple(_COMPARISONS[str(o).lower()] for o in items[1::2]), self._span(meta))

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
            return Const(-operand.value, self._span(meta))  # type: ignore[operator]
        return s.Arith("-", (operand,), self._span(meta))

    def repeat(self, meta: Meta, items: list[Any]) -> s.Power:
        pattern, count, consecutive = items
        return s.Power(pattern, int(count), consecutive is not None, self._span(meta))

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
        value = int(items[0])
        if value > MAX_INT:
            raise self._refuse("E105", "an integer beyond 64 bits", self._span(meta))
        return Const(value, self._span(meta))

    def float(self, meta: Meta, items: list[Any]) -> Const:
        return Const(float(items[0]), self._span(meta))

    def duration(self, meta: Meta, items: list[Any]) -> Const:
        return self._duration(items[0])

    def timestamp(self, meta: Meta, items: list[Any]) -> Const:
        text = items[0][1:].strip()
        if text.isdigit():
            return Const(int(text), self._span(meta))
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
        if _COLON not in token:
            return str(token)
        prefix, _, local = token.partition(_COLON)
        return self.prefixes[prefix] + local

    def _duration(self, token: Token) -> Const:
        try:
            return Const(Duration(read_duration(token)), self._token(token))
        except ValueError as error:
            raise self._refuse("E106", str(error), self._token(token)) from error

    def _length(self, token: Token) -> Const:
        match token.type:
            case "DURATION":
                return self._duration(token)
            case "FLOAT":
                return Const(float(token), self._token(token))
        return Const(int(token), self._token(token))


_COMPARISONS = {
    "=": "=", "==": "=", "is": "=", "!=": "!=", "\\=": "!=", "≠": "!=", "<": "<", "<=": "<=", "=<": "<=", "≤": "<=",
    ">": ">", ">=": ">=", "≥": ">=",
}  # fmt: skip
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}


def _unquote(token: str) -> str:
    return re.sub(r"\\(.)", lambda m: _ESCAPES.get(m[1], m[1]), token[1:-1], flags=re.DOTALL)


def _label(token: str) -> str:
    return token.rstrip(":").rstrip()


_CLOSERS = {"(": ")", "[": "]", "{": "}"}
_KINDS = (
    ({"NAME", "LPAR"}, "a pattern, condition or value"),
    ({"SEQ"}, "an operator"),
    ({"COMMA"}, "`,`"),
    ({"RPAR"}, "`)`"),
    ({"RSQB"}, "`]`"),
    ({"RBRACE"}, "`}`"),
    ({"_ARROW"}, "`<-`"),
    ({"_END"}, "`.`"),
    ({"LABEL"}, "a name and a colon"),
    ({"IRI"}, "an IRI such as <http://example.org/>"),
    ({"INT"}, "a number"),
    ({"DURATION"}, "a duration such as 6h"),
    ({"STRING"}, "a string"),
    ({"POLICY_NAME"}, "recent, chronological or unrestricted"),
    ({"VAR"}, "a variable"),
    ({"NAME"}, "a name"),
)


def _expected(names: set[str]) -> str:
    found: list[str] = []
    left = set(names)
    for needed, text in _KINDS:
        if needed <= left:
            found.append(text)
            left -= needed | ({"VAR", "INT", "STRING", "IRI", "DURATION", "LABEL"} if "NAME" in needed else set())
    return ", ".join(found[:-1]) + (" or " if len(found) > 1 else "") + found[-1] if found else "something else"


def _explain(error: UnexpectedInput, chunk: _Chunk, source: Source, findings: Findings) -> None:
    """A syntax error in words: the place, what was found, what could stand there, and a likely cause."""
    bracket = _unbalanced(chunk)
    if bracket is not None:
        at, message = bracket
        findings.add("E101", message, Span(source, chunk.start + at, chunk.start + at + 1))
        return
    if isinstance(error, UnexpectedToken) and error.token.type != "$END":
        token, at = error.token, error.token.start_pos or 0
        found, expected = str(token).replace(_COLON, ":"), set(error.accepts or error.expected)
        end = at + len(token)
    elif isinstance(error, UnexpectedCharacters):
        at, expected = error.pos_in_stream or 0, set(error.allowed or ())
        word = re.compile(r"\w+|->|=>|:=|&&|\|\||.").match(chunk.text, at)
        found = word.group() if word else ""
        end = at + max(len(found), 1)
    else:
        at = len(chunk.text.rstrip()) - 1
        assert isinstance(error, UnexpectedToken | UnexpectedEOF)
        found, end, expected = "the end", at + 1, set(error.expected)
    span = Span(source, chunk.start + at, chunk.start + end)
    hint = _hint(found, chunk.text, at)
    found = found if found == "the end" else f"`{found}`"
    findings.add("E101", f"unexpected {found}; expected {_expected(expected)}", span, hint=hint)


def _unbalanced(chunk: _Chunk) -> tuple[int, str] | None:
    stack: list[tuple[str, int]] = []
    for piece in _PIECES.finditer(chunk.text):
        char = piece.group()
        if char in _CLOSERS:
            stack.append((char, piece.start()))
        elif char in _CLOSERS.values():
            if not stack:
                return piece.start(), f"`{char}` closes nothing"
            opener, at = stack.pop()
            if _CLOSERS[opener] != char:
                return at, f"`{opener}` is closed by `{char}`"
    return (stack[-1][1], f"`{stack[-1][0]}` is never closed") if stack else None


def _hint(found: str, text: str, at: int) -> str | None:
    before = text[:at]
    if found in ("<-", "←", ":-") and re.search(r"<-|←|:-", before):
        return "a statement ends with `.`; is the one before missing its full stop?"
    if found in ("->", "=>", ":=") or (found == ">" and before.endswith(("-", "="))):
        return "a rule is written `head <- body.`"
    if found in ("'", '"'):
        return "a string ends on the line it begins on, with the quote it began with"
    if found in ("&&", "&", ";"):
        return "literals are separated by `,`; patterns are joined by AND"
    if found in ("||", "|"):
        return "patterns are joined by OR"
    if found == ":":
        return "a label is a lower-case name, `o: order(N)`; a prefix must be declared, `prefix wt: <http://…>.`"
    if found == ".":
        return "a window follows a pattern in parentheses, `(a SEQ b).10`, with no space after the full stop"
    if re.fullmatch(r"[A-Za-z_]\w*", found):
        return "two things stand side by side; is an operator or a comma missing?"
    return None
