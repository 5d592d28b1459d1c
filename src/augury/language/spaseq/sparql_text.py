"""SPARQL inside a query: its words, and its normal form, in which every IRI is written in full.

Every place of the normal form is known in the source, so that a reader of the normal form can locate a mistake.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from urllib.parse import urljoin

from augury.algebra.sparql_conditions import KNOWN_PREFIXES
from augury.core.errors import Findings, Span, misspelt
from augury.language.spaseq.tokens import SparqlToken

MADE = "·"  # in the names of variables that stand for aggregates, keys and earlier values: none that is written has it
_STRING = "<http://www.w3.org/2001/XMLSchema#string>"
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


@dataclass
class Prologue:
    """BASE and the prefixes."""

    findings: Findings
    base: str | None = None
    prefixes: dict[str, str] = field(default_factory=lambda: dict(KNOWN_PREFIXES))
    previous: int = 0  # how many values of iterations before its filters ask for

    def iri(self, text: str, span: Span) -> str | None:
        """The IRI that `<…>` or a prefixed name stands for; None where that is a mistake, which is reported."""
        if text.startswith("<"):
            return self._absolute(text[1:-1], span)
        prefix, _, local = text.partition(":")
        if prefix not in self.prefixes:
            close = misspelt(prefix, self.prefixes)
            hint = f"did you mean `{close}:`?" if close else f"declare it: PREFIX {prefix}: <http://…>"
            self.findings.add("E201", f"the prefix `{prefix}:` is not declared", span, hint=hint)
            return None
        return self.prefixes[prefix] + re.sub(r"\\(.)", r"\1", local)

    def _absolute(self, iri: str, span: Span) -> str | None:
        if _SCHEME.match(iri):
            return iri
        if self.base is None:
            self.findings.add(
                "E250",
                f"`<{iri}>` is not an absolute IRI, and there is no BASE",
                span,
                hint="write it in full: <http://…>",
            )
            return None
        return urljoin(self.base, iri)


@dataclass(frozen=True)
class Normal:
    """SPARQL in normal form, with the piece of the source behind each place of it."""

    text: str
    places: tuple[tuple[int, int, SparqlToken], ...]

    def at(self, offset: int) -> SparqlToken | None:
        """The piece at a place of the text, or the next one."""
        return next((piece for _, end, piece in self.places if offset < end), None)


def normal(words: Sequence[SparqlToken], prologue: Prologue) -> Normal | None:
    """The normal form; None where an IRI is wrong, which is reported."""
    written: list[tuple[SparqlToken, str]] = []
    sound = True
    for piece in words:
        text: str | None = piece.written
        if piece.kind in ("iri", "pname"):
            iri = prologue.iri(piece.text, piece.span)
            text = None if iri is None else f"<{iri}>"
        elif piece.kind == "var":
            text = "?" + piece.text[1:]
        sound = sound and text is not None
        written.append((piece, text or ""))
    return _joined(_plain_strings(written)) if sound else None


def _plain_strings(written: Iterable[tuple[SparqlToken, str]]) -> list[tuple[SparqlToken, str]]:
    """A string is a string, whether its type is written or not: they are one term of RDF."""
    kept: list[tuple[SparqlToken, str]] = []
    for piece, text in written:
        if text == _STRING and kept and kept[-1][1] == "^^":
            kept.pop()
        else:
            kept.append((piece, text))
    return kept


def _joined(written: Sequence[tuple[SparqlToken, str]]) -> Normal:
    out, places, length = [], [], 0
    for number, (piece, text) in enumerate(written):
        gap = "" if not number or _glued(written[number - 1][0], piece) else " "
        length += len(gap) + len(text)
        places.append((length - len(text), length, piece))
        out.append(gap + text)
    return Normal("".join(out), tuple(places))


def _glued(before: SparqlToken, piece: SparqlToken) -> bool:
    """Whether nothing may stand between: types and tags of literals; signs that stand so in the source."""
    if piece.kind == "tag" or "^^" in (piece.text, before.text):
        return True
    return piece.lines is None and (before.text in tuple("+-*/?^!|") or piece.text in tuple("+*/?|"))


# Taking patterns apart


@dataclass(frozen=True)
class SparqlClause:
    """A FILTER, BIND or the like: its pieces, and how deep it stands; 1 is the outermost group."""

    word: str
    pieces: tuple[SparqlToken, ...]
    depth: int

    @property
    def span(self) -> Span:
        return self.pieces[0].span.to(self.pieces[-1].span)

    @property
    def body(self) -> tuple[SparqlToken, ...]:
        """What stands after the word, without its outermost parentheses."""
        inner = self.pieces[1:]
        return inner[1:-1] if inner and inner[0].text == "(" and closing(inner, 0) == len(inner) - 1 else inner


def closing(words: Sequence[SparqlToken], opening: int) -> int:
    """The number of the piece that closes a bracket."""
    depth = 0
    for number in range(opening, len(words)):
        if words[number].kind == "sign":
            depth += {"(": 1, "{": 1, "[": 1, ")": -1, "}": -1, "]": -1}.get(words[number].text, 0)
        if depth == 0:
            return number
    return len(words) - 1


def clauses(words: Sequence[SparqlToken], *names: str) -> list[SparqlClause]:
    """The FILTERs, BINDs and the like of a group, at any depth, also inside one another."""
    sparql_clauses: list[SparqlClause] = []
    depth = 0
    for number, piece in enumerate(words):
        if piece.kind == "sign":
            depth += {"{": 1, "}": -1}.get(piece.text, 0)
        if piece.is_word(*names) and not (piece.is_word("EXISTS") and words[number - 1].is_word("NOT", "FILTER")):
            sparql_clauses.append(
                SparqlClause(piece.text.upper(), tuple(words[number : _end(words, number) + 1]), depth)
            )
    return sparql_clauses


def _end(words: Sequence[SparqlToken], start: int) -> int:
    """The number of the last piece of a clause: the bracket that closes the first one."""
    index = start + 1
    while index < len(words) and words[index].text not in ("(", "{"):
        if words[index].text in (".", "}", ")"):
            return index - 1
        index += 1
    return closing(words, index) if index < len(words) else len(words) - 1


def without(words: Sequence[SparqlToken], taken: Sequence[SparqlClause]) -> list[SparqlToken]:
    """A group without some clauses of its outermost level; full stops stay where triples need them."""
    starts = {clause.pieces[0].start: clause for clause in taken}
    kept: list[SparqlToken] = []
    index = 0
    while index < len(words):
        clause = starts.get(words[index].start)
        if clause is None:
            kept.append(words[index])
            index += 1
            continue
        index += len(clause.pieces)
        if kept[-1].text in ("{", "}", "."):
            index += words[index].text == "."
        elif words[index].text not in (".", "}"):
            kept.append(replace(clause.pieces[0], kind="sign", text=".", lines=0))
    return kept


def variables(words: Iterable[SparqlToken]) -> tuple[str, ...]:
    """The names of the variables, each once, in the order of the text."""
    return tuple(dict.fromkeys(piece.text[1:] for piece in words if piece.kind == "var"))
