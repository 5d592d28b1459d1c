"""Syntax errors of queries in words: the likely cause where it is recognised, else what the grammar expects there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lark import Token
from lark.exceptions import UnexpectedToken

from augury.core.errors import Findings, Source, Span, misspelt
from augury.language.spaseq.tokens import KEYWORDS

# How a token that is missing is named; those that follow from others are left out.
_NAMED = {
    "SELECT": "SELECT or CONSTRUCT",
    "CONSTRUCT": "SELECT or CONSTRUCT",
    "VAR": "a variable such as ?price",
    "PARENTHESES": "an expression in parentheses",
    "STAR": "*",
    "GROUP": "a graph pattern in braces",
    "IRI": "an IRI such as <http://example.org/stock>",
    "PNAME": "an IRI such as <http://example.org/stock>",
    "NAME": "a name",
    "NUMBER": "a number",
    "WORD": "a word",
    "STRING": "a time in quotes",
    "LBRACE": "`{`",
    "RBRACE": "`}`",
    "LPAR": "`(`",
    "RPAR": "`)`",
    "COMMA": "`,`",
    "SEMICOLON": "`;`",
    "COLON": "`:`",
    "AND": "`&`",
    "OR": "`|`",
    "PLUS": "`+`",
    "MAYBE": "`?`",
    "NOT": "`!`",
    "$END": "the end",
}
_WORDS = sorted(KEYWORDS)
_ALWAYS_POSSIBLE = {"BASE", "PREFIX"}


@dataclass(frozen=True)
class QueryErrorSpot:
    """Where reading stopped: the token there, those before it, and the types that could have stood there."""

    token: Token
    before: Sequence[Token]
    expected: frozenset[str]

    def after(self, *types: str) -> bool:
        return tuple(t.type for t in self.before[-len(types) :]) == types

    @property
    def word(self) -> str:
        return str(self.token).upper()

    @property
    def at_end(self) -> bool:
        return self.token.type == "$END"


def explain_query(error: UnexpectedToken, tokens: Sequence[Token], source: Source, findings: Findings) -> None:
    """Reports a syntax error: the place, what is wrong there, and a likely cause."""
    at_end = error.token.type == "$END"
    number = len(tokens) if at_end else next(n for n, token in enumerate(tokens) if token is error.token)
    spot = QueryErrorSpot(error.token, tokens[:number], frozenset(error.accepts or error.expected))
    end = len(source.text.rstrip())
    start, stop = (end, end + 1) if at_end else (error.token.start_pos or 0, error.token.end_pos or 0)
    message, hint = _cause(spot)
    findings.add("E101", message, Span(source, start, stop), hint=hint)


def _cause(spot: QueryErrorSpot) -> tuple[str, str | None]:
    for look in _CAUSES:
        result = look(spot)
        if result is not None:
            return result
    what = "the query ends too early" if spot.at_end else f"unexpected `{_shown(spot.token)}`"
    return f"{what}: {_expected(spot)} expected", None


def _expected(spot: QueryErrorSpot) -> str:
    if "WHERE" in spot.expected:
        return "WHERE { … }"
    kinds = spot.expected - (_ALWAYS_POSSIBLE if len(spot.expected) > 2 else set())
    named = list(dict.fromkeys(_NAMED.get(kind, kind.replace("_", " ")) for kind in sorted(kinds)))
    return ", ".join(named[:-1]) + (" or " if len(named) > 1 else "") + named[-1]


def _shown(token: Token) -> str:
    text = " ".join(str(token).split())
    return text if len(text) <= 30 else text[:29] + "…"


def _nothing(spot: QueryErrorSpot) -> tuple[str, str | None] | None:
    if spot.before or not spot.at_end:
        return None
    return "there is no query", "a query begins with SELECT or CONSTRUCT; docs/spaseq.md has examples"


def _slip(spot: QueryErrorSpot) -> tuple[str, str | None] | None:
    """A word that is a slip away from one that could stand here."""
    if spot.token.type not in ("WORD", "NAME"):
        return None
    allowed = {word for kind in spot.expected for word in kind.split("_")} & set(_WORDS)
    close = misspelt(str(spot.token), sorted(allowed))
    return None if close is None else (f"unexpected `{spot.token}`", f"did you mean {close}?")


def _trailing_separator(spot: QueryErrorSpot) -> tuple[str, str | None] | None:
    if spot.token.type == "RPAR" and spot.before and spot.before[-1].type in ("COMMA", "SEMICOLON", "COLON"):
        return f"`{spot.before[-1]}` with nothing after it", "leave it away, or write the name of a GPM after it"
    return None


def _joined_bare(spot: QueryErrorSpot) -> tuple[str, str | None] | None:
    before = [token for token in spot.before if token.type in ("NAME", "AND", "OR")]
    names = [str(token) for token in before if token.type == "NAME"] or ["A"]
    if spot.token.type in ("AND", "OR") and {"COMMA", "SEMICOLON"} <= spot.expected:
        hint = f"a quantifier stands behind the parentheses: ({names[-1]} {spot.token} …)+"
        return f"`{spot.token}` joins GPMs without a quantifier", hint
    if spot.token.type in ("PLUS", "MAYBE", "NOT") and len(before) > 2 and before[-2].type in ("AND", "OR"):
        whole = f"{names[-2]} {before[-2]} {names[-1]}"
        return f"`{spot.token}` after `{whole}` without parentheses", f"write it as ({whole}){spot.token}"
    return None


def _several_quantifiers(spot: QueryErrorSpot) -> tuple[str, str | None] | None:
    if spot.token.type in ("PLUS", "MAYBE", "NOT", "STAR") and spot.before and "COMMA" in spot.expected:
        if spot.before[-1].type in ("PLUS", "MAYBE", "NOT"):
            return "an item has one quantifier", "`+` is one or more, `?` is once or not at all, `!` is not at all"
        return (
            f"`{spot.token}` is not a quantifier",
            "there are `+` (one or more), `?` (once or not at all) and `!` (absent)",
        )
    return None


def _leading_not(spot: QueryErrorSpot) -> tuple[str, str | None] | None:
    if spot.token.type == "NOT" and "NAME" in spot.expected:
        return "`!` stands before what it negates", "it stands behind: `B!`"
    return None


def _word_not(spot: QueryErrorSpot) -> tuple[str, str | None] | None:
    if spot.token.type == "NAME" and spot.word in ("AND", "OR", "NOT", "THEN", "SEQ") and "COMMA" in spot.expected:
        written = {"AND": "`(A & B)`", "OR": "`(A | B)`", "NOT": "`B!`"}.get(spot.word, "`,`, `;` or `:`")
        return f"unexpected `{spot.token}`", f"write it as {written}"
    if spot.token.type == "NAME" and "COMMA" in spot.expected:
        return f"unexpected `{spot.token}`", "between two items stands `,` (contiguous), `;` (next) or `:` (any later)"
    return None


def _nameless_stream(spot: QueryErrorSpot) -> tuple[str, str | None] | None:
    if spot.after("FROM_STREAM") and spot.token.type in ("IRI", "PNAME"):
        return "a stream has a name", f"write it as FROM STREAM S1 {spot.token}; GPMs say ON S1"
    return None


def _csparql_range(spot: QueryErrorSpot) -> tuple[str, str | None] | None:
    if str(spot.token).startswith("[") and len(spot.before) > 1 and spot.before[-2].type in ("FROM_STREAM", "NAME"):
        return "a stream has no window of its own", "the window is one for the query: WITHIN 30 MINUTES"
    return None


def _missing_on(spot: QueryErrorSpot) -> tuple[str, str | None] | None:
    if spot.expected == {"ON"}:
        return "a GPM says which stream it reads", f"write it as DEFINE GPM {spot.before[-1]} ON S1 {{ … }}"
    return None


def _several_streams(spot: QueryErrorSpot) -> tuple[str, str | None] | None:
    if "GROUP" in spot.expected and "COMMA" in spot.expected and spot.token.type in ("WORD", "NAME"):
        return f"unexpected `{spot.token}`", "several streams are separated by `,`"
    return None


def _triples_outside(spot: QueryErrorSpot) -> tuple[str, str | None] | None:
    if spot.expected & {"DEFINE", "SEQ"} and "RBRACE" in spot.expected:
        if spot.token.type in ("VAR", "IRI", "PNAME"):
            return "a graph pattern stands in a GPM", "write it as DEFINE GPM A ON S1 { … }, and A in SEQ(…)"
        if spot.token.type == "WORD" and spot.word in (
            "FILTER",
            "OPTIONAL",
            "GRAPH",
            "BIND",
            "VALUES",
            "MINUS",
            "SERVICE",
        ):
            return f"{spot.word} stands in a GPM", "write it inside the braces of DEFINE GPM A ON S1 { … }"
    return None


def _other_form(spot: QueryErrorSpot) -> tuple[str, str | None] | None:
    if spot.word in ("ASK", "DESCRIBE", "INSERT", "DELETE", "REGISTER") and "SELECT" in spot.expected:
        return f"a query is a SELECT or a CONSTRUCT, not {spot.word}", None
    return None


def _choice(spot: QueryErrorSpot) -> tuple[str, str | None] | None:
    """SKIP, LONGEST and the words of rules for runs, which stand behind the parentheses of SEQ."""
    if spot.word == "SKIP":
        return "SKIP does not say where to", "write SKIP PAST END, SKIP TO FIRST B or SKIP TO LAST B, where B is in SEQ"
    if spot.word in ("LONGEST", "SHORTEST"):
        return f"{spot.word} does not stand here", f"it stands behind the sequence: SEQ(A, B+) {spot.word}"
    if spot.word == "ALL" and "LONGEST" in spot.expected:
        return "unexpected `ALL`", "all matches are answered without it; leave it away"
    return None


_CAUSES = (
    _nothing, _choice, _trailing_separator, _joined_bare, _leading_not, _several_quantifiers, _word_not, _nameless_stream, _csparql_range,
    _missing_on, _several_streams, _triples_outside, _other_form, _slip,
)  # fmt: skip
