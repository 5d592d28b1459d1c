"""What rdflib's parser says of SPARQL: whether it is, where it is not, and which variables a graph pattern binds."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from augury.errors import RunError, misspelt
from augury.language.spaseq.sparql_text import Normal, closing
from augury.language.spaseq.tokens import Piece

XSD = "http://www.w3.org/2001/XMLSchema#"
CASTS = {XSD + name for name in ("string", "boolean", "double", "float", "decimal", "integer", "dateTime")}
_KEYWORDS = ("FILTER", "OPTIONAL", "UNION", "MINUS", "GRAPH", "BIND", "VALUES", "EXISTS", "SERVICE")


class NotSparql(Exception):
    """SPARQL that cannot be read: the piece at which, what is wrong, and what to do."""

    def __init__(self, piece: Piece | None, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.piece, self.message, self.hint = piece, message, hint


@dataclass(frozen=True)
class Bindings:
    """The variables that a graph pattern may bind, and those that every solution of it binds."""

    may: frozenset[str]
    surely: frozenset[str]

    def __and__(self, other: Bindings) -> Bindings:
        return Bindings(self.may | other.may, self.surely | other.surely)

    def __or__(self, other: Bindings) -> Bindings:
        return Bindings(self.may | other.may, self.surely & other.surely)

    def perhaps(self) -> Bindings:
        return Bindings(self.may, frozenset())


NOTHING = Bindings(frozenset(), frozenset())


@dataclass(frozen=True)
class GroupShape:
    """What follows from a graph pattern: what it binds, the static graphs that it reads, and the functions that it calls."""

    bindings: Bindings
    graphs: tuple[str | None, ...]
    functions: frozenset[str]


@contextmanager
def as_written() -> Iterator[None]:
    """Literals stay as they are written, `01` and `1` are two terms; and what rdflib warns of itself is not passed on."""
    import rdflib

    before, rdflib.NORMALIZE_LITERALS = rdflib.NORMALIZE_LITERALS, False
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            yield
    finally:
        rdflib.NORMALIZE_LITERALS = before


def sparql() -> Any:
    """The parser of rdflib."""
    try:
        import rdflib.plugins.sparql.algebra
        import rdflib.plugins.sparql.parser
    except ImportError:
        raise RunError("SPAseQ needs rdflib", hint="pip install 'augury[rdf]'") from None
    return rdflib.plugins.sparql


def algebra_of(text: str) -> Any:
    """The algebra of a query that selects all variables of a group."""
    with as_written():
        found = sparql()
        return found.algebra.translateQuery(found.parser.parseQuery(f"SELECT * WHERE {text}")).algebra


def group_shape(group: Normal) -> GroupShape:
    """What follows from a graph pattern; raises NotSparql where it is none."""
    text = group.text
    prefix = "SELECT * WHERE "
    try:
        algebra = algebra_of(text)
    except Exception as error:
        raise _group_mistake(group, error, len(prefix)) from None
    graphs: dict[str | None, None] = {}
    functions: set[str] = set()
    for part in _parts(algebra):
        if part.name == "Graph":
            graphs[None if _is_variable(part.term) else str(part.term)] = None
        elif part.name == "Function":
            functions.add(str(part.iri))
    return GroupShape(_bound(algebra.p.p), tuple(graphs), frozenset(functions))


def expression_functions(expression: Normal) -> frozenset[str]:
    """The functions, by IRI, that an expression calls; raises NotSparql where it is none."""
    try:
        with as_written():
            tree = sparql().parser.Expression.parse_string(expression.text, parse_all=True)
    except RunError:
        raise
    except Exception as error:
        raise _expression_mistake(expression, error) from None
    return frozenset(str(part.iri) for part in _parts(tree[0]) if part.name == "Function")


def template_triples(template: Normal) -> list[tuple[str, str, str]]:
    """The triples of a template of CONSTRUCT: `?v`, `_:b`, or terms of N-Triples; raises NotSparql where it is none."""
    prefix = "CONSTRUCT "
    try:
        with as_written():
            found = sparql()
            query = found.parser.parseQuery(f"{prefix}{template.text} WHERE {{}}")
            triples = found.algebra.translateQuery(query).algebra.template
    except RunError:
        raise
    except Exception as error:
        raise _group_mistake(template, error, len(prefix)) from None
    names: dict[str, str] = {}

    def shown(term: Any) -> str:
        if type(term).__name__ == "BNode":
            return "_:" + names.setdefault(str(term), f"b{len(names)}")
        return str(term.n3())

    return [(shown(s), shown(p), shown(o)) for s, p, o in triples or ()]


def _parts(tree: Any) -> Iterator[Any]:
    """The tree of rdflib's parser or algebra and all parts of it that have a name."""
    if hasattr(tree, "name") and hasattr(tree, "items"):
        yield tree
        for key, value in tree.items():
            if key != "_vars":
                yield from _parts(value)
    elif isinstance(tree, list | tuple) or type(tree).__name__ == "ParseResults":
        for part in tree:
            yield from _parts(part)


def _is_variable(term: Any) -> bool:
    return type(term).__name__ == "Variable"


def _bound(part: Any) -> Bindings:
    """The variables of a part of the algebra: what it may bind, and what it always binds."""
    match part.name:
        case "BGP":
            found = frozenset(str(t) for triple in part.triples for t in triple if _is_variable(t))
            return Bindings(found, found)
        case "Join":
            return _bound(part.p1) & _bound(part.p2)
        case "LeftJoin":
            return _bound(part.p1) & _bound(part.p2).perhaps()
        case "Union":
            return _bound(part.p1) | _bound(part.p2)
        case "Minus":
            return _bound(part.p1)
        case "Filter":
            return _bound(part.p)
        case "Extend":
            return _bound(part.p) & Bindings(frozenset({str(part.var)}), frozenset())
        case "Graph":
            name = frozenset({str(part.term)} if _is_variable(part.term) else ())
            return _bound(part.p) & Bindings(name, name)
        case "ToMultiSet" if part.p.name == "values":
            rows = [{str(v) for v, term in row.items() if term != "UNDEF"} for row in part.p.res]
            names = frozenset(str(v) for row in part.p.res for v in row)
            return Bindings(names, names.intersection(*rows) if rows else names)
    return NOTHING


# Mistakes


def _group_mistake(group: Normal, error: Exception, before: int) -> NotSparql:
    if isinstance(error, RunError):
        raise error
    place = getattr(error, "loc", None)
    if place is None:  # a mistake that the grammar allows, such as a variable that is bound twice
        return NotSparql(None, f"this is not SPARQL: {_sentence(error)}")
    piece = group.at(place - before)
    if piece is None:
        return NotSparql(None, "this graph pattern is not SPARQL: it ends too early")
    close = (
        misspelt(piece.text.upper(), _KEYWORDS)
        if piece.kind == "word" and piece.text.upper() not in _KEYWORDS
        else None
    )
    if close:
        return NotSparql(piece, f"`{piece.text}` is no word of SPARQL", hint=f"did you mean {close}?")
    if piece.is_word("FILTER"):
        return _filter_mistake(group, piece)
    if piece.is_word("BIND"):
        return NotSparql(piece, "this BIND is not SPARQL", hint="it is written BIND(expression AS ?variable)")
    hint = (
        "a triple is `subject predicate object .`" if piece.kind in ("var", "iri", "pname", "blank", "string") else None
    )
    return NotSparql(piece, f"not SPARQL from `{piece.text}` on", hint=hint)


def _filter_mistake(group: Normal, piece: Piece) -> NotSparql:
    """Reads the expression of a FILTER alone, whose mistake has a place of its own."""
    number = next(n for n, (_, _, p) in enumerate(group.places) if p is piece)
    rest = group.places[number + 1 :]
    if not rest or rest[0][2].text != "(":
        if not rest or rest[0][2].kind == "var":
            return NotSparql(
                piece, "this FILTER is not SPARQL", hint="its condition stands in parentheses: FILTER(?x > 3)"
            )
        return NotSparql(piece, "this FILTER is not SPARQL")
    inner = rest[1 : closing([p for _, _, p in rest], 0)]
    if not inner:
        return NotSparql(piece, "this FILTER has no condition", hint="it is written FILTER(?x > 3)")
    start, stop = inner[0][0], inner[-1][1]
    part = Normal(group.text[start:stop], tuple((a - start, b - start, p) for a, b, p in inner))
    try:
        expression_functions(part)
    except NotSparql as mistake:
        return mistake
    return NotSparql(piece, "not SPARQL from this FILTER on")


def _expression_mistake(expression: Normal, error: Exception) -> NotSparql:
    place = getattr(error, "loc", None)
    if place is None:
        return NotSparql(None, f"this expression is not SPARQL: {_sentence(error)}")
    piece = expression.at(place)
    if piece is None:
        last = expression.places[-1][2] if expression.places else None
        return NotSparql(last, "this expression is not SPARQL: it ends too early")
    number = next(n for n, (_, _, p) in enumerate(expression.places) if p is piece)
    before = expression.places[number - 1][2] if number else None
    if piece.text == "(" and before is not None and before.kind == "word":
        return NotSparql(
            before, f"SPARQL has no function `{before.text}`", hint="functions of your own are called by their IRI"
        )
    return NotSparql(piece, f"this expression is not SPARQL from `{piece.text}` on")


def _sentence(error: Exception) -> str:
    """What rdflib says, on one line, as a part of a sentence."""
    text = " ".join(str(error).split()).rstrip(".")
    return text[:1].lower() + text[1:] if text[1:2].islower() else text
