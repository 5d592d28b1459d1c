"""Converts terms to and from pyoxigraph, which parses all RDF that no kernel reads."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from augury.algebra.sparql_algebra import LANG_STRING, STRING, Blank, Literal, RdfTerm, Triple
from augury.core.errors import RunError
from augury.core.model import Iri
from augury.graphs.rdf_terms import key_of

_MADE_UP = re.compile(r"[0-9a-f]{24,32}")  # labels that the parser gives to blank nodes without one


def oxigraph() -> Any:
    """pyoxigraph, which is an extra."""
    try:
        import pyoxigraph
    except ImportError:
        raise RunError("RDF is read with pyoxigraph, which is not installed", "pip install 'augury[rdf]'") from None
    return pyoxigraph


def is_made_up(label: str) -> bool:
    """Whether the parser gave this label to a blank node that has none; it is another one in every run."""
    return _MADE_UP.fullmatch(label) is not None


def said_by_parser(error: SyntaxError) -> str:
    """The message of pyoxigraph, and its column."""
    text = re.sub(r"^Parser error (at|between) [^:]*: ", "", error.msg or "")
    column = f" at column {error.offset}" if error.offset else ""
    return f"{text[:1].lower()}{text[1:]}{column}"


def term_from(term: Any, label: Callable[[str], str] = str) -> RdfTerm:
    """A term of pyoxigraph as ours; `label` gives a blank node's label its name."""
    ox = oxigraph()
    match term:
        case ox.NamedNode():
            return Iri(term.value)
        case ox.BlankNode():
            return Blank(label(term.value))
        case ox.Literal():
            if term.language:
                direction = getattr(term, "direction", None)
                tag = f"{term.language}--{direction}" if direction else term.language
                return Literal(term.value, LANG_STRING, tag.lower())
            return Literal(term.value, term.datatype.value)
    return Triple(*(term_from(part, label) for part in (term.subject, term.predicate, term.object)))


def key_from(term: Any, label: Callable[[str], str]) -> bytes:
    """The key of a term of pyoxigraph."""
    ox = oxigraph()
    kind = type(term)
    if kind is ox.NamedNode:
        return f"<{term.value}>".encode()
    if kind is ox.Literal and term.language is None:
        datatype = term.datatype.value
        return f'"{term.value}"'.encode() if datatype == STRING else f'"{term.value}"^^<{datatype}>'.encode()
    return key_of(term_from(term, label))


@lru_cache(1 << 10)
def term_of_n_triples(text: str) -> RdfTerm:
    """The term that a text of N-Triples is."""
    ox = oxigraph()
    (triple,) = ox.parse(f"<urn:s> <urn:p> {text} .".encode(), ox.RdfFormat.N_TRIPLES)
    return term_from(triple.object)


def as_oxigraph(term: RdfTerm) -> Any:
    """A term of ours as one of pyoxigraph."""
    ox = oxigraph()
    match term:
        case Iri():
            return ox.NamedNode(term.text)
        case Blank():
            return ox.BlankNode(term.label)
        case Literal():
            if term.language:
                return ox.Literal(term.text, language=term.language)
            return ox.Literal(term.text, datatype=ox.NamedNode(term.datatype))
    raise RunError("a triple inside a triple, which a graph does not have")
