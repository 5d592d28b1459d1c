"""The words of SPAseQ and of SPARQL. Braces of a graph pattern, and parentheses of an expression, are one token each."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from lark import Token
from lark.lexer import Lexer

from augury.core.errors import NOWHERE, Source, Span

_LOCAL = r"(?:[\w:]|%[0-9A-Fa-f]{2}|\\[_~.\-!$&'()*+,;=/?\#@%])"
PIECES = re.compile(
    rf"""(?P<space>\s+)
      | (?P<comment>\#[^\n]*)
      | (?P<iri><(?![?$])[^<>"{{}}|^`\\\x00-\x20]*>)
      | (?P<string>\"\"\"(?:[^"\\]|\\.|"(?!""))*\"\"\"|'''(?:[^'\\]|\\.|'(?!''))*'''|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
      | (?P<blank>_:\w(?:[\w.-]*[\w-])?)
      | (?P<pname>(?:[^\W\d_](?:[\w.-]*[\w-])?)?:(?:{_LOCAL}(?:(?:{_LOCAL}|[.-])*(?:{_LOCAL}|-))?)?)
      | (?P<var>[?$]\w+)
      | (?P<tag>@[A-Za-z]+(?:-[A-Za-z0-9]+)*)
      | (?P<number>(?:\d+\.\d*|\.\d+|\d+)[eE][+-]?\d+|\d*\.\d+|\d+)
      | (?P<word>[^\W\d]\w*)
      | (?P<sign>\^\^|&&|\|\||[<>!]=|.)""",
    re.VERBOSE | re.DOTALL,
)
_IN_SEQUENCE = re.compile(r"(?P<space>\s+)|(?P<comment>\#[^\n]*)|(?P<word>\w+)|(?P<sign>.)", re.DOTALL)
_OPEN, _CLOSE = {"(": ")", "{": "}", "[": "]"}, {")": "(", "}": "{", "]": "["}

KEYWORDS = {
    "BASE", "PREFIX", "SELECT", "DISTINCT", "REDUCED", "CONSTRUCT", "INTO", "WITHIN", "TUMBLING", "PARTITION", "BY", "FROM",
    "STREAM", "NAMED", "WHERE", "SEQ", "LONGEST", "SHORTEST", "SKIP", "DEFINE", "GPM", "ON", "GROUP", "HAVING", "ORDER", "ASC", "DESC", "LIMIT", "OFFSET",
    "AS",
}  # fmt: skip


SPARQL_WORDS = {
    "FILTER", "OPTIONAL", "UNION", "MINUS", "GRAPH", "BIND", "VALUES", "UNDEF", "EXISTS", "NOT", "IN", "AS", "SERVICE", "SILENT", "SELECT",
    "WHERE", "DISTINCT", "SEPARATOR", "PREV",
}  # fmt: skip


@dataclass(frozen=True)
class SparqlToken:
    """A word of SPARQL; `lines` is how many lines end between it and the piece before, None where nothing is between."""

    kind: str
    text: str
    start: int
    lines: int | None = None
    source: Source = field(default=NOWHERE.source, repr=False)

    @property
    def end(self) -> int:
        return self.start + len(self.text)

    @property
    def span(self) -> Span:
        return Span(self.source, self.start, self.end)

    def is_word(self, *words: str) -> bool:
        return self.kind == "word" and self.text.upper() in words

    @property
    def written(self) -> str:
        """The text, with words of SPARQL in capitals."""
        return self.text.upper() if self.is_word(*SPARQL_WORDS) else self.text


def pieces_of(span: Span, comments: bool = False) -> list[SparqlToken]:
    """The words of a span."""
    return list(pieces(span.source.text, span.start, span.end, comments, span.source))


def pieces(
    text: str, start: int = 0, end: int | None = None, comments: bool = False, source: Source = NOWHERE.source
) -> Iterator[SparqlToken]:
    """The words of a part of a text."""
    pos, stop = start, len(text) if end is None else end
    lines: int | None = None
    while pos < stop:
        match = PIECES.match(text, pos, stop)
        assert match is not None and match.lastgroup is not None, "the last alternative matches anything"
        kind, value, pos = match.lastgroup, match.group(), match.end()
        if kind == "space" or (kind == "comment" and not comments):
            lines = (lines or 0) + value.count("\n")
            continue
        yield SparqlToken(kind, value, match.start(), lines, source)
        lines = None


@dataclass(frozen=True)
class Unclosed:
    """An opening bracket without its partner: where it is, and where reading stopped."""

    opening: int
    at: int
    found: str


@dataclass
class QueryTokens:
    """The tokens of a query, the comments beside them, and the first bracket that is not closed."""

    tokens: list[Token] = field(default_factory=list)
    comments: list[SparqlToken] = field(default_factory=list)
    unclosed: Unclosed | None = None


def words(source: Source) -> QueryTokens:
    """The tokens of a query. The lexer knows where it is, because `A:B` and `?` are something else in a sequence."""
    return _Scanner(source.text).scan()


class _Scanner:
    def __init__(self, text: str) -> None:
        self.text, self.at, self.found = text, 0, QueryTokens()

    def scan(self) -> QueryTokens:
        if self.text.startswith("\ufeff"):  # a byte order mark
            self.at = 1
        while (piece := self._next(PIECES)) is not None:
            if piece.kind == "word":
                self._word(piece)
            elif piece.text == "{" and self._before("CONSTRUCT", "NAME"):
                self._bracketed(piece, "GROUP")
            elif piece.text == "(" and not self._before("PARTITION_BY"):
                self._bracketed(piece, "PARENTHESES")
            else:
                self._add({"sign": _sign(piece.text), "pname": "PNAME"}.get(piece.kind, piece.kind.upper()), piece)
        return self.found

    def _next(self, pattern: re.Pattern[str]) -> SparqlToken | None:
        """The next word; comments are collected."""
        while result := pattern.match(self.text, self.at):
            assert result.lastgroup is not None
            start, self.at = self.at, result.end()
            if result.lastgroup == "comment":
                self.found.comments.append(SparqlToken("comment", result.group().rstrip(), start))
            elif result.lastgroup != "space":
                return SparqlToken(result.lastgroup, result.group(), start)
        return None

    def _word(self, piece: SparqlToken) -> None:
        word = piece.text.upper()
        if self._name_expected():
            self._add("NAME", piece)
        elif word == "SEQ":
            self._add("SEQ", piece)
            self._sequence()
        elif word == "FROM" and (kind := self._after(r"\s+(STREAM|NAMED)\b")):
            self._joined(piece, f"FROM_{kind}")
        elif word == "SKIP" and (kind := self._after(r"\s+(PAST\s+END|TO\s+FIRST|TO\s+LAST)\b")):
            self._joined(piece, "_".join(["SKIP", *kind.split()]), 2)
        elif word == "TUMBLING" and self._after(r"""\s+(FROM)\s*(?=[\d"'+-])"""):
            self._joined(piece, "TUMBLING_FROM")
        elif word in ("PARTITION", "GROUP", "ORDER") and self._after(r"\s+(BY)\b"):
            self._joined(piece, f"{word}_BY")
        else:
            self._add(word if word in KEYWORDS else "WORD", piece)

    def _name_expected(self) -> bool:
        """Whether any word is a name here: after GPM, STREAM, SKIP TO LAST and ON, and in the list after ON."""
        tokens = self.found.tokens
        if self._before("GPM", "FROM_STREAM", "ON", "SKIP_TO_FIRST", "SKIP_TO_LAST"):
            return True
        return self._before("COMMA") and len(tokens) > 1 and tokens[-2].type == "NAME"

    def _before(self, *types: str) -> bool:
        return bool(self.found.tokens) and self.found.tokens[-1].type in types

    def _after(self, pattern: str) -> str:
        match = re.compile(pattern, re.IGNORECASE).match(self.text, self.at)
        return match.group(1).upper() if match else ""

    def _joined(self, piece: SparqlToken, type: str, more: int = 1) -> None:
        """Several words that are one token."""
        for _ in range(more):
            self._next(PIECES)
        self._add(type, SparqlToken("word", self.text[piece.start : self.at], piece.start))

    def _sequence(self) -> None:
        """What stands in the parentheses of SEQ, where `A:B` is a sequence and no name, and `?` is no variable."""
        depth = 0
        while (piece := self._next(_IN_SEQUENCE)) is not None:
            if depth == 0 and piece.text != "(":
                self.at = piece.start
                return
            if piece.text == "{" or (depth == 1 and piece.is_word("DEFINE")):  # it is not closed
                self.at = piece.start
                return
            self._add("NAME" if piece.kind == "word" else _sign(piece.text), piece)
            depth += {"(": 1, ")": -1}.get(piece.text, 0)
            if depth == 0:
                return

    def _bracketed(self, piece: SparqlToken, type: str) -> None:
        """Everything up to the bracket that closes this one."""
        opened = [piece]
        while opened:
            inner = self._next(PIECES)
            if inner is None or (inner.text in _CLOSE and opened[-1].text != _CLOSE[inner.text]):
                end = len(self.text.rstrip()) if inner is None else inner.start
                self.found.unclosed = self.found.unclosed or Unclosed(
                    opened[-1].start, end, inner.text if inner else ""
                )
                self.at = len(self.text)
                break
            if inner.kind == "sign" and inner.text in _OPEN:
                opened.append(inner)
            elif inner.kind == "sign" and inner.text in _CLOSE:
                opened.pop()
        self._add(type, SparqlToken("sign", self.text[piece.start : self.at], piece.start))

    def _add(self, type: str, piece: SparqlToken) -> None:
        # Lark asks for lines as well; places are found by offset.
        self.found.tokens.append(Token(type, piece.text, piece.start, 1, piece.start + 1, 1, piece.end + 1, piece.end))


_SIGNS = {
    "{": "LBRACE", "}": "RBRACE", "(": "LPAR", ")": "RPAR", ",": "COMMA", ";": "SEMICOLON", ":": "COLON", "+": "PLUS", "?": "MAYBE",
    "!": "NOT", "&": "AND", "|": "OR", "*": "STAR", "-": "MINUS", "^^": "TYPED",
}  # fmt: skip


def _sign(text: str) -> str:
    return _SIGNS.get(text, "SIGN")


class GivenTokens(Lexer):
    """Hands the parser tokens that are there already."""

    __future_interface__ = 2

    def __init__(self, _: object) -> None:
        pass

    def lex(self, lexer_state: Any, parser_state: Any) -> Iterator[Token]:
        return iter(lexer_state.text)
