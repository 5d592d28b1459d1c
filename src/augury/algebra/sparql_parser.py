"""Graph patterns and expressions from the text of SPARQL: rdflib reads it, its tree becomes our own nodes.

A mistake is a `PatternError` with the offset at which it stands in the text.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache, reduce
from threading import Lock
from types import ModuleType
from typing import Any, Protocol

from augury.algebra import sparql_algebra as p
from augury.algebra.sparql_algebra import Expression, Pattern, RdfTerm, Variable
from augury.core.errors import RunError, nearest
from augury.core.model import Iri

_ESCAPE = re.compile(r"\\u([0-9a-f]{4}(?:[0-9a-f]{4})?)", re.IGNORECASE)
_SKIPPED = re.compile(r"""<[^<>"{}|^`\\\s]*>|\"(?:[^"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'|#[^\n]*""")
REFUSED = dict.fromkeys(("NOW", "RAND", "UUID", "STRUUID", "BNODE"), "an answer must not depend on when it is computed")
CASTS = {p.XSD + name for name in ("string", "boolean", "double", "float", "decimal", "integer", "dateTime")}
_LOCK = Lock()  # rdflib's parser keeps state while it reads


class PatternError(Exception):
    """An error in a pattern or an expression, and its position in the text; -1 where that is not known."""

    def __init__(self, message: str, offset: int = -1, hint: str = "") -> None:
        super().__init__(message)
        self.message, self.offset, self.hint = message, offset, hint


class SparqlSyntaxError(PatternError):
    """The text does not follow the grammar from a character on."""


class NoFunction(PatternError):
    """A function is called by an IRI that is not that of a function."""

    def __init__(self, iri: str, offset: int) -> None:
        super().__init__(f"there is no function <{iri}>", offset)
        self.iri = iri


class RdflibNode(Protocol):
    """A node of rdflib's algebra: a dictionary with a name, whose entries are attributes as well."""

    name: str

    def __getattr__(self, key: str, /) -> Any: ...
    def __getitem__(self, key: str, /) -> object: ...
    def __contains__(self, key: object, /) -> bool: ...


def sparql() -> ModuleType:
    """rdflib's package for SPARQL, with its parser and its algebra."""
    try:
        import rdflib.plugins.sparql.algebra
        import rdflib.plugins.sparql.parser
    except ImportError:
        raise RunError("SPARQL is read with rdflib, which is not installed", "pip install 'augury[rdf]'") from None
    package: ModuleType = rdflib.plugins.sparql
    return package


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


def algebra_of(query: str, prefixes: Mapping[str, str] = {}, base: str | None = None) -> RdflibNode:
    """The algebra of rdflib for a query."""
    result = sparql()
    with _LOCK, as_written():
        tree = result.parser.parseQuery(query)
        algebra: RdflibNode = result.algebra.translateQuery(tree, base=base, initNs=dict(prefixes)).algebra
        return algebra


def read_pattern(text: str, prefixes: Mapping[str, str] = {}, base: str | None = None) -> Pattern:
    """The pattern of a group, `{ … }` with its braces."""
    return _pattern_of(text, tuple(prefixes.items()), base)


@lru_cache(256)  # programs, and sessions of one program, are made anew, and to parse SPARQL takes long
def _pattern_of(text: str, prefixes: tuple[tuple[str, str], ...], base: str | None) -> Pattern:
    return _SparqlReading(text, dict(prefixes), base).pattern()


def read_expression(text: str, prefixes: Mapping[str, str] = {}, base: str | None = None) -> Expression:
    """The expression that a text is, such as `?p * 1.1 > ?q`."""
    return _SparqlReading(text, prefixes, base).expression()


class _SparqlReading:
    """One text on its way."""

    def __init__(self, text: str, prefixes: Mapping[str, str], base: str | None) -> None:
        self.text, self.prefixes, self.base = text, prefixes, base
        self.blanks: dict[str, Variable] = {}

    def pattern(self) -> Pattern:
        query = self._read("SELECT * WHERE ", "")
        return simplified(self._pattern(query.p.p if query.p.name == "Project" else query.p))

    def expression(self) -> Expression:
        query = self._read("SELECT * WHERE { BIND(", "\nAS ?it) }")
        return self._expression(query.p.p.expr)

    def _read(self, before: str, after: str) -> RdflibNode:
        """The algebra of a query that has the text inside."""
        try:
            return algebra_of(before + self.text + after, self.prefixes, self.base)
        except RunError:
            raise
        except RecursionError:
            raise PatternError("is nested too deeply", 0) from None
        except Exception as error:  # rdflib raises bare ones where it translates
            if hasattr(error, "loc"):
                raise self._malformed(error.loc - len(before)) from None
            raise self._refused(str(error)) from None

    def _malformed(self, offset: int) -> PatternError:
        offset = _offset_before_escapes(self.text, offset)
        word = re.match(r"[\w:?$]+|\S", self.text[offset:])
        result = f"`{word[0]}`" if word else "the end"
        return SparqlSyntaxError(f"is not SPARQL from {result} on", offset)

    def _refused(self, message: str) -> PatternError:
        unknown = re.match(r"Unknown namespace prefix ?: ?(.*)", message)
        if unknown is None:
            return PatternError(f"is not SPARQL: {message}", 0)
        name = unknown[1].strip()
        bare = _SKIPPED.sub(lambda skipped: " " * len(skipped[0]), self.text)
        position = re.search(rf"(?<![\w.-]){re.escape(name)}:", bare)
        close = nearest(name, list(self.prefixes))
        return PatternError(
            f"the prefix `{name}:` is not declared",
            position.start() if position else 0,
            f"there is `{close}:`" if close else f"PREFIX {name}: <…>",
        )

    # Patterns

    def _pattern(self, node: RdflibNode) -> Pattern:
        name = node.name
        match name:
            case "BGP":
                return p.Basic(tuple(self._triple(t) for t in node.triples))
            case "Join":
                return p.SparqlJoin(self._pattern(node.p1), self._pattern(node.p2))
            case "LeftJoin":
                condition = None if getattr(node.expr, "name", "") == "TrueFilter" else self._expression(node.expr)
                return p.LeftJoin(self._pattern(node.p1), self._pattern(node.p2), condition)
            case "Union":
                return p.SparqlUnion(self._pattern(node.p1), self._pattern(node.p2))
            case "Minus":
                return p.Minus(self._pattern(node.p1), self._pattern(node.p2))
            case "Filter":
                return p.Filter(self._pattern(node.p), self._expression(node.expr))
            case "Extend":
                return self._extend(node)
            case "Graph":
                return p.InGraph(self._name(node.term), self._pattern(node.p))
            case "ToMultiSet":
                return self._pattern(node.p)
            case "values":
                return self._values(node.res)
            case "Project":
                return p.Project(self._pattern(node.p), tuple(str(v) for v in node.PV))
            case "Distinct" | "Reduced":
                return self._pattern(node.p)
            case "ServiceGraphPattern":
                raise self._at("SERVICE is not supported: nothing is fetched", "SERVICE")
            case "OrderBy":  # solutions are a set
                return self._pattern(node.p)
            case "Slice":
                raise self._at("LIMIT and OFFSET are not supported in a subquery", "LIMIT|OFFSET")
            case "Group" | "AggregateJoin" | "Having":
                raise self._at("aggregates are not supported in a graph pattern", "GROUP|COUNT|SUM|MIN|MAX|AVG|SAMPLE")
        raise PatternError(f"{name} is not supported", 0)

    def _at(self, message: str, word: str) -> PatternError:
        """An error at the place where a word stands."""
        bare = _SKIPPED.sub(lambda skipped: " " * len(skipped[0]), self.text)
        position = re.search(rf"\b({word})\b", bare, re.IGNORECASE)
        return PatternError(message, position.start() if position else 0)

    def _extend(self, node: RdflibNode) -> Pattern:
        inner, name = self._pattern(node.p), str(node.var)
        if name in p.may_bind(inner):
            raise self._at(f"?{name} is bound already, BIND cannot bind it again", rf"AS\s+[?$]{name}")
        return p.Extend(inner, name, self._expression(node.expr))

    def _values(self, rows: list[dict[object, object]]) -> Pattern:
        names = list(dict.fromkeys(str(v) for row in rows for v in row))
        if not rows:  # rdflib does not say which variables there were
            return p.InlineValues((), ())
        result = [{str(v): None if term == "UNDEF" else self._term(term) for v, term in row.items()} for row in rows]
        return p.InlineValues(tuple(names), tuple(tuple(row.get(name) for name in names) for row in result))

    def _triple(self, triple: tuple[object, object, object]) -> p.TriplePattern:
        from rdflib.term import Variable as Named

        subject, predicate, object = triple
        path = Variable(str(predicate)) if isinstance(predicate, Named) else self._path(predicate)
        return p.TriplePattern(self._node(subject), path, self._node(object))

    def _node(self, node: object) -> RdfTerm | Variable:
        from rdflib.term import BNode
        from rdflib.term import Variable as Named

        if isinstance(node, Named):
            return Variable(str(node))
        if isinstance(node, BNode):
            return self.blanks.setdefault(str(node), Variable(f"{p.HIDDEN}{len(self.blanks)}"))
        return self._term(node)

    def _name(self, node: object) -> Iri | Variable:
        result = self._node(node)
        assert isinstance(result, Iri | Variable), "the grammar has IRIs and variables here"
        return result

    def _term(self, node: object) -> RdfTerm:
        from rdflib.term import Literal, URIRef

        if isinstance(node, URIRef):
            return Iri(str(node))
        if isinstance(node, Literal):
            if node.language:
                return p.Literal(str(node), p.LANG_STRING, node.language.lower())
            return p.Literal(str(node), str(node.datatype) if node.datatype else p.STRING)
        raise PatternError(f"{node!r} is no term", 0)

    def _path(self, node: object) -> p.Path:
        from rdflib import paths

        match node:
            case paths.InvPath():
                return p.Inverse(self._path(node.arg))
            case paths.SequencePath():
                return p.PathSequence(tuple(map(self._path, node.args)))
            case paths.AlternativePath():
                return p.PathAlternative(tuple(map(self._path, node.args)))
            case paths.MulPath():
                return p.PathRepeat(self._path(node.path), node.zero, node.more)
            case paths.NegatedPath():
                excluded = [self._path(arg) if isinstance(arg, str) else None for arg in node.args]
                if not all(isinstance(item, Iri) for item in excluded):
                    raise self._at_mark("`^` inside `!(…)` is not supported", "!")
                return p.Negated(tuple(item for item in excluded if isinstance(item, Iri)))
        result = self._term(node)
        if not isinstance(result, Iri):
            raise PatternError("a predicate is an IRI", 0)
        return result

    def _at_mark(self, message: str, mark: str) -> PatternError:
        bare = _SKIPPED.sub(lambda skipped: " " * len(skipped[0]), self.text)
        return PatternError(message, max(bare.find(mark), 0), "write !(^a|b) as (!b|^(!a))")

    # Expressions

    def _expression(self, node: object) -> Expression:
        from rdflib.plugins.sparql.parserutils import CompValue

        if not isinstance(node, CompValue):
            result = self._node(node)
            return result if isinstance(result, Variable) else p.Constant(result)
        read: Callable[[RdflibNode], Expression] | None = {
            "ConditionalAndExpression": self._conditional("&&"),
            "ConditionalOrExpression": self._conditional("||"),
            "RelationalExpression": self._relational,
            "AdditiveExpression": self._arithmetic,
            "MultiplicativeExpression": self._arithmetic,
            "UnaryNot": lambda node: p.SparqlCall("!", (self._expression(node.expr),)),
            "UnaryMinus": lambda node: p.SparqlCall("unary -", (self._expression(node.expr),)),
            "UnaryPlus": lambda node: p.SparqlCall("unary +", (self._expression(node.expr),)),
            "Builtin_EXISTS": lambda node: p.Exists(simplified(self._pattern(node.graph))),
            "Builtin_NOTEXISTS": lambda node: p.Exists(simplified(self._pattern(node.graph)), negated=True),
            "Function": self._cast,
        }.get(node.name)
        if read is not None:
            return read(node)
        if node.name.startswith("Aggregate_"):
            raise self._at("aggregates are not supported in a graph pattern", node.name.removeprefix("Aggregate_"))
        return self._function(node.name.removeprefix("Builtin_"), node)

    def _conditional(self, operator: str) -> Callable[[RdflibNode], Expression]:
        def read(node: RdflibNode) -> Expression:
            args = [self._expression(node.expr), *(self._expression(item) for item in node.other or ())]
            return reduce(lambda a, b: p.SparqlCall(operator, (a, b)), args)

        return read

    def _relational(self, node: RdflibNode) -> Expression:
        left = self._expression(node.expr)
        if node.op in ("IN", "NOT IN"):
            listed = () if _is_nil(node.other) else tuple(self._expression(item) for item in node.other)
            return p.SparqlCall(node.op, (left, *listed))
        return p.SparqlCall(node.op, (left, self._expression(node.other)))

    def _arithmetic(self, node: RdflibNode) -> Expression:
        result = self._expression(node.expr)
        for operator, other in zip(node.op, node.other, strict=True):
            result = p.SparqlCall(operator, (result, self._expression(other)))
        return result

    def _cast(self, node: RdflibNode) -> Expression:
        name, args = str(node.iri), list(node.expr or ())
        if name not in CASTS:
            raise NoFunction(name, self._at("", r"\w*:\w*\s*\(").offset)
        if len(args) != 1:
            raise self._at(f"{name} does not take {len(args)} arguments", re.escape(name))
        return p.SparqlCall(name, (self._expression(args[0]),))

    def _function(self, name: str, node: RdflibNode) -> Expression:
        """A function by its name; its arguments are those keys of the node that have one."""
        name = {"URI": "IRI", "isURI": "isIRI"}.get(name, name)
        if name in REFUSED:
            raise self._at(f"{name} is not supported: {REFUSED[name]}", name)
        if name in ("CONCAT", "COALESCE"):
            operands = [] if _is_nil(node.arg) else list(node.arg)
        else:
            operands = [node[key] for key in _ARGUMENTS if key in node]
        args = tuple(map(self._expression, operands))
        if name == "IRI" and self.base is not None:
            args = (*args, p.Constant(Iri(self.base)))
        return p.SparqlCall(name, args)


_ARGUMENTS = ("arg", "arg1", "arg2", "arg3", "text", "start", "length", "pattern", "replacement", "flags")


def _is_nil(node: object) -> bool:
    return node is None or isinstance(node, str)


def _offset_before_escapes(text: str, offset: int) -> int:
    """rdflib writes out `\\u00e9` before it reads: where a character of that stands in the text."""
    for escape in _ESCAPE.finditer(text):
        if escape.start() >= offset:
            break
        offset += len(escape[0]) - len(chr(int(escape[1], 16)))
    return max(0, min(offset, len(text)))


# The shape


def simplified(pattern: Pattern) -> Pattern:
    """The same pattern without empty parts of joins, and with neighbouring triples as one basic pattern."""
    result = p.mapped(pattern, simplified)
    match result:
        case p.SparqlJoin(left, p.Basic(())):
            return left
        case p.SparqlJoin(p.Basic(first), p.Basic(second)):
            return p.Basic(first + second)
        case p.SparqlJoin(p.Basic(()), right):
            return right
    return result
