"""Which words may stand at a place of a text: the parser is asked what it would take there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lark import UnexpectedInput

from augury.algebra.selection import POLICIES
from augury.core.errors import Source
from augury.language.rules.grammar import parser
from augury.language.rules.statements import chunks
from augury.language.spaseq.query_reader import query_parser
from augury.language.spaseq.tokens import words

# The keywords that a terminal of the grammar of rules stands for.
TERMINALS: dict[str, tuple[str, ...]] = {
    "_INCLUDE": ("include",), "_PREFIX": ("prefix",), "_EVENT": ("event",), "_STATIC": ("static",), "_FUNCTION": ("function",),
    "_POLICY_DECL": ("policy",), "_TICK": ("tick",), "_OUTPUT": ("output",), "NO_FACT": ("fact not",), "LATEST": ("fact latest",),
    "FACT": ("fact",), "_RULE": ("rule",), "_WHILE": ("while",), "_COLLECT": ("collect",), "_ALL_COLLECT": ("all: collect",),
    "LAST": ("last",), "EXACTLY": ("exactly",), "_DISTINCT": ("distinct",), "_WHERE": ("WHERE",), "GRAPH": ("GRAPH",),
    "_POLICY": ("POLICY",), "_WITHIN": ("within",), "_FROM": ("from",), "CONSECUTIVE": ("CONSECUTIVE",),
    "POLICY_NAME": tuple(POLICIES), "TIES": ("LONGEST", "SHORTEST"), "_BY": ("BY",), "_PER": ("PER",),
    "NOT": ("NOT",), "_WAS": ("was",), "_HOLDING": ("holding",), "OR_NONE": ("or none",), "SINCE_END": ("SINCE END",),
    "_SINCE": ("SINCE",), "_TOP": ("TOP",), "_AT_MOST": ("AT MOST",), "ONCE": ("ONCE",), "_EVERY": ("EVERY",), "ASC": ("ASC",),
    "DESC": ("DESC",), "WITH_TIES": ("WITH TIES",), "_AS": ("AS",), "NOT_IN": ("not in",), "IN": ("in",),
    "_BETWEEN": ("between",), "NEXT": ("NEXT",), "THEN": ("THEN",), "ALL": ("ALL",), "SKIP_END": ("SKIP PAST END",),
    "SKIP_TO": ("SKIP TO FIRST", "SKIP TO LAST"), "SEQ": ("SEQ",), "AND": ("AND",), "PAR": ("PAR",), "OR": ("OR",),
    "EQUALS": ("EQUALS",), "MEETS": ("MEETS",), "DURING": ("DURING",), "STARTS": ("STARTS",), "FINISHES": ("FINISHES",),
    "BEFORE": ("before",), "AFTER": ("after",), "MET_BY": ("met_by",), "OVERLAPS": ("overlaps",),
    "OVERLAPPED_BY": ("overlapped_by",), "STARTED_BY": ("started_by",), "CONTAINS": ("contains",), "INSIDE": ("inside",),
    "FINISHED_BY": ("finished_by",), "MOD": ("mod",), "TRUE": ("true",), "FALSE": ("false",), "NULL": ("null",), "COMPARE": ("is",),
}  # fmt: skip
_QUERY_TERMINALS = {
    "PARTITION_BY": "PARTITION BY (", "FROM_STREAM": "FROM STREAM", "FROM_NAMED": "FROM NAMED", "GROUP_BY": "GROUP BY",
    "ORDER_BY": "ORDER BY", "TUMBLING_FROM": "TUMBLING FROM", "SKIP_PAST_END": "SKIP PAST END", "SKIP_TO_FIRST": "SKIP TO FIRST",
    "SKIP_TO_LAST": "SKIP TO LAST",
}  # fmt: skip
_QUERY_WORDS = ["BASE", "PREFIX", "SELECT", "DISTINCT", "REDUCED", "CONSTRUCT", "INTO", "WITHIN", "TUMBLING", "FROM", "WHERE", "SEQ", "LONGEST", "SHORTEST", "DEFINE", "GPM", "ON", "HAVING", "ASC", "DESC", "LIMIT", "OFFSET"]  # fmt: skip
UNITS = ("SECONDS", "MINUTES", "HOURS", "DAYS", "EVENTS")


@dataclass(frozen=True)
class Expected:
    """What may come next: keywords, and whether a name (of an event, a function), a variable or a label may."""

    keywords: tuple[str, ...] = ()
    name: bool = False
    variable: bool = False
    label: bool = False
    pattern: bool = False  # inside a graph pattern, whose words are SPARQL's


def expected_in_rule(written: str, prefixes: dict[str, str]) -> Expected | None:
    """What may follow the beginning of a statement; None where that cannot be read."""
    pieces = list(chunks(Source("", written), prefixes))
    text = pieces[-1].text if pieces else ""
    if not text.strip():
        accepted = _accepted(parser().parse_interactive(""))
    else:
        try:
            state = parser().parse_interactive(text)
            state.exhaust_lexer()
            accepted = _accepted(state)
        except UnexpectedInput:
            return None
    keywords = tuple(word for terminal in sorted(accepted) for word in TERMINALS.get(terminal, ()))
    return Expected(keywords, "NAME" in accepted, "VAR" in accepted, "LABEL" in accepted)


def _accepted(state: Any) -> set[str]:
    """The terminals that a parser takes next."""
    return set(state.accepts())


def expected_in_query(written: str) -> Expected | None:
    """What may follow the beginning of a query; None where that cannot be read."""
    tokens = words(Source("", written, "spaseq"))
    if tokens.unclosed is not None:
        inside_group = written[tokens.unclosed.opening] in "{("
        return Expected(pattern=True, variable=True, name=True) if inside_group else None
    try:
        state = query_parser().parse_interactive()
        for token in tokens.tokens:
            state.feed_token(token)
        accepted = _accepted(state)
    except UnexpectedInput:
        return None
    keywords = [word for word in _QUERY_WORDS if word in accepted]
    keywords += [text for terminal, text in _QUERY_TERMINALS.items() if terminal in accepted]
    if "WORD" in accepted and tokens.tokens and tokens.tokens[-1].type == "NUMBER":
        keywords += UNITS
    return Expected(tuple(keywords), "NAME" in accepted, "VAR" in accepted)
