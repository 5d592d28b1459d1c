"""The algebra of SPARQL: the nodes of graph patterns, and analyses of them.

    { ?s :price ?p . OPTIONAL { ?s :note ?n } FILTER(?p > 10) }
    Filter(LeftJoin(Basic(?s :price ?p), Basic(?s :note ?n), None), Call(">", (?p, 10)))

Solutions are a set, so that the bags of SPARQL need no nodes of their own. A blank node of a pattern is a variable whose name
begins with `_:`; no solution shows it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import TypeAlias, assert_never

from augury.core.model import Iri

XSD = "http://www.w3.org/2001/XMLSchema#"
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
STRING, LANG_STRING, BOOLEAN = XSD + "string", RDF + "langString", XSD + "boolean"
INTEGER, DECIMAL, FLOAT, DOUBLE = XSD + "integer", XSD + "decimal", XSD + "float", XSD + "double"
HIDDEN = "_:"  # what the name of a variable begins with that stands for a blank node


# Terms


@dataclass(frozen=True, slots=True)
class Literal:
    """A literal of RDF: its lexical form, its datatype, and its language where it has one (in lower case)."""

    text: str
    datatype: str = STRING
    language: str = ""


@dataclass(frozen=True, slots=True)
class Blank:
    """A blank node. Its label is local to the event that it stands in."""

    label: str


@dataclass(frozen=True, slots=True)
class Triple:
    """A triple that stands where a term does."""

    subject: RdfTerm
    predicate: RdfTerm
    object: RdfTerm


RdfTerm: TypeAlias = "Iri | Literal | Blank | Triple"


@dataclass(frozen=True, slots=True)
class Variable:
    """`?name`, without the mark."""

    name: str

    @property
    def hidden(self) -> bool:
        return self.name.startswith(HIDDEN)


# Paths


@dataclass(frozen=True)
class Inverse:
    """`^path`."""

    path: Path


@dataclass(frozen=True)
class PathSequence:
    """`first/second/…`."""

    parts: tuple[Path, ...]


@dataclass(frozen=True)
class PathAlternative:
    """`one|other|…`."""

    parts: tuple[Path, ...]


@dataclass(frozen=True)
class PathRepeat:
    """`path*` (zero and many), `path+` (many), `path?` (zero)."""

    path: Path
    zero: bool
    many: bool


@dataclass(frozen=True)
class Negated:
    """`!(a|b)`: one step along any other predicate."""

    excluded: tuple[Iri, ...]


Path: TypeAlias = "Iri | Inverse | PathSequence | PathAlternative | PathRepeat | Negated"


# Expressions


@dataclass(frozen=True)
class Constant:
    """A term that stands in an expression."""

    term: RdfTerm


@dataclass(frozen=True)
class SparqlCall:
    """An operator or a function by its name in SPARQL, `<`, `&&`, `STR`; a cast by the IRI of its datatype."""

    function: str
    args: tuple[Expression, ...]


@dataclass(frozen=True)
class Exists:
    """`EXISTS { … }`, or `NOT EXISTS { … }`."""

    pattern: Pattern
    negated: bool = False


Expression: TypeAlias = "Variable | Constant | SparqlCall | Exists"


# Patterns


@dataclass(frozen=True)
class TriplePattern:
    """A triple of which some parts are variables."""

    subject: RdfTerm | Variable
    predicate: Path | Variable
    object: RdfTerm | Variable


@dataclass(frozen=True)
class Basic:
    """Triples that all have to be there; the empty one has one solution, which binds nothing."""

    triples: tuple[TriplePattern, ...] = ()


@dataclass(frozen=True)
class SparqlJoin:
    """Solutions of both sides that agree."""

    left: Pattern
    right: Pattern


@dataclass(frozen=True)
class LeftJoin:
    """OPTIONAL: solutions of the left side, each with those of the right that agree and meet the condition, if any does."""

    left: Pattern
    right: Pattern
    condition: Expression | None = None


@dataclass(frozen=True)
class SparqlUnion:
    left: Pattern
    right: Pattern


@dataclass(frozen=True)
class Minus:
    """Solutions of the left side, but for those that share a variable with one of the right and agree with it."""

    left: Pattern
    right: Pattern


@dataclass(frozen=True)
class Filter:
    """Solutions for which a condition is true; where it is an error they fall, too."""

    pattern: Pattern
    condition: Expression


@dataclass(frozen=True)
class Extend:
    """BIND: solutions with one variable more, which stays unbound where the expression is an error."""

    pattern: Pattern
    variable: str
    expression: Expression


@dataclass(frozen=True)
class InlineValues:
    """Solutions that are written down; None where a variable is UNDEF."""

    variables: tuple[str, ...]
    rows: tuple[tuple[RdfTerm | None, ...], ...]


@dataclass(frozen=True)
class InGraph:
    """GRAPH: a pattern that is asked of a graph of the static dataset, or of each of them."""

    graph: Iri | Variable
    pattern: Pattern


@dataclass(frozen=True)
class Project:
    """A subquery: its solutions, cut to these variables."""

    pattern: Pattern
    variables: tuple[str, ...]


Pattern: TypeAlias = (
    "Basic | SparqlJoin | LeftJoin | SparqlUnion | Minus | Filter | Extend | InlineValues | InGraph | Project"
)
NOTHING: frozenset[str] = frozenset()


# What a pattern binds


def may_bind(pattern: Pattern) -> frozenset[str]:
    """The variables that some solution may bind; those that stand for blank nodes are not among them."""
    match pattern:
        case Basic():
            return frozenset(v.name for t in pattern.triples for v in _variables_of(t) if not v.hidden)
        case SparqlJoin() | LeftJoin() | SparqlUnion():
            return may_bind(pattern.left) | may_bind(pattern.right)
        case Minus():
            return may_bind(pattern.left)
        case Filter():
            return may_bind(pattern.pattern)
        case Extend():
            return may_bind(pattern.pattern) | {pattern.variable}
        case InlineValues():
            return frozenset(pattern.variables)
        case InGraph():
            return may_bind(pattern.pattern) | _name_of(pattern.graph)
        case Project():
            return may_bind(pattern.pattern) & frozenset(pattern.variables)
        case _:
            assert_never(pattern)


def certainly_binds(pattern: Pattern) -> frozenset[str]:
    """The variables that every solution binds. An expression may be an error, so that BIND binds nothing for certain."""
    match pattern:
        case Basic():
            return may_bind(pattern)
        case SparqlJoin():
            return certainly_binds(pattern.left) | certainly_binds(pattern.right)
        case LeftJoin() | Minus():
            return certainly_binds(pattern.left)
        case SparqlUnion():
            return certainly_binds(pattern.left) & certainly_binds(pattern.right)
        case Filter() | Extend():
            return certainly_binds(pattern.pattern)
        case InlineValues():
            columns = zip(pattern.variables, zip(*pattern.rows, strict=True), strict=False)
            return frozenset(name for name, column in columns if None not in column)
        case InGraph():
            return certainly_binds(pattern.pattern) | _name_of(pattern.graph)
        case Project():
            return certainly_binds(pattern.pattern) & frozenset(pattern.variables)
        case _:
            assert_never(pattern)


def _variables_of(triple: TriplePattern) -> Iterator[Variable]:
    for part in (triple.subject, triple.predicate, triple.object):
        if isinstance(part, Variable):
            yield part


def _name_of(graph: Iri | Variable) -> frozenset[str]:
    return frozenset({graph.name}) if isinstance(graph, Variable) else NOTHING


def mentioned(expression: Expression) -> frozenset[str]:
    """The variables of an expression; of EXISTS, those that its pattern may bind, or asks for."""
    match expression:
        case Variable():
            return frozenset({expression.name})
        case Constant():
            return NOTHING
        case SparqlCall():
            return reduce(frozenset.union, map(mentioned, expression.args), NOTHING)
        case Exists():
            return may_bind(expression.pattern) | asked_for(expression.pattern)
        case _:
            assert_never(expression)


def asked_for(pattern: Pattern) -> frozenset[str]:
    """The variables that expressions inside a pattern look at."""
    result = NOTHING
    for inner in all_patterns(pattern):
        for expression in _expressions(inner):
            result |= mentioned(expression)
    return result


def parts(pattern: Pattern) -> tuple[Pattern, ...]:
    """The patterns directly inside a pattern, without those of EXISTS."""
    match pattern:
        case Basic() | InlineValues():
            return ()
        case SparqlJoin() | LeftJoin() | SparqlUnion() | Minus():
            return pattern.left, pattern.right
        case Filter() | Extend() | InGraph() | Project():
            return (pattern.pattern,)
        case _:
            assert_never(pattern)


def mapped(pattern: Pattern, change: Callable[[Pattern], Pattern]) -> Pattern:
    """A pattern with others in place of those directly inside it, without those of EXISTS."""
    match pattern:
        case Basic() | InlineValues():
            return pattern
        case SparqlJoin() | LeftJoin() | SparqlUnion() | Minus():
            return replace(pattern, left=change(pattern.left), right=change(pattern.right))
        case Filter() | Extend() | InGraph() | Project():
            return replace(pattern, pattern=change(pattern.pattern))
        case _:
            assert_never(pattern)


def all_patterns(pattern: Pattern) -> Iterator[Pattern]:
    """A pattern and all patterns inside it, without those of EXISTS."""
    yield pattern
    for part in parts(pattern):
        yield from all_patterns(part)


def every_pattern(pattern: Pattern) -> Iterator[Pattern]:
    """A pattern and all that is inside it, those of EXISTS as well."""
    for part in all_patterns(pattern):
        yield part
        for expression in _expressions(part):
            for exists in exists_in(expression):
                yield from every_pattern(exists.pattern)


def static_graphs(pattern: Pattern) -> Iterator[Iri | Variable]:
    """The graphs that GRAPH names: graphs of the static dataset, or variables for any of them."""
    return (item.graph for item in every_pattern(pattern) if isinstance(item, InGraph))


def _expressions(pattern: Pattern) -> Iterator[Expression]:
    match pattern:
        case Filter():
            yield pattern.condition
        case LeftJoin() if pattern.condition is not None:
            yield pattern.condition
        case Extend():
            yield pattern.expression


def exists_in(expression: Expression) -> Iterator[Exists]:
    match expression:
        case Exists():
            yield expression
        case SparqlCall():
            for arg in expression.args:
                yield from exists_in(arg)


# What a pattern needs of an event


@dataclass(frozen=True)
class TripleNeeds:
    """The predicates whose triples a pattern can look at; `every` where it may look at any triple."""

    predicates: frozenset[Iri] = field(default_factory=frozenset)
    every: bool = False

    def __or__(self, other: TripleNeeds) -> TripleNeeds:
        return TripleNeeds(self.predicates | other.predicates, self.every or other.every)

    def __le__(self, other: TripleNeeds) -> bool:
        """Whether another needs all that this one does."""
        return other.every or (not self.every and self.predicates <= other.predicates)


ALL = TripleNeeds(every=True)


def needs(pattern: Pattern) -> TripleNeeds:
    """The triples that a pattern needs of an event, without those that GRAPH asks of the static dataset."""
    if isinstance(pattern, InGraph):
        return TripleNeeds()
    inner = [needs(part) for part in parts(pattern)]
    inner += [needs(e.pattern) for expression in _expressions(pattern) for e in exists_in(expression)]
    if isinstance(pattern, Basic):
        bound = {v for t in pattern.triples if isinstance(t.predicate, Iri | Variable) for v in _variables_of(t)}
        inner += [_needs_of(t, bound) for t in pattern.triples]
    return reduce(TripleNeeds.__or__, inner, TripleNeeds())


def _needs_of(triple: TriplePattern, bound: set[Variable]) -> TripleNeeds:
    if isinstance(triple.predicate, Variable):
        return TripleNeeds(every=True)
    result = _needs_of_path(triple.predicate)
    if may_be_empty(triple.predicate):
        # An empty path leads from every node to itself, unless one of its ends is known otherwise.
        ends = (triple.subject, triple.object)
        if all(isinstance(end, Variable) and end not in bound for end in ends):
            return TripleNeeds(every=True)
    return result


def _needs_of_path(path: Path) -> TripleNeeds:
    match path:
        case Iri():
            return TripleNeeds(frozenset({path}))
        case Inverse() | PathRepeat():
            return _needs_of_path(path.path)
        case PathSequence() | PathAlternative():
            return reduce(TripleNeeds.__or__, map(_needs_of_path, path.parts))
        case Negated():
            return TripleNeeds(every=True)
        case _:
            assert_never(path)


def may_be_empty(path: Path) -> bool:
    """Whether a path also leads from a node to itself, by no step at all."""
    match path:
        case Iri() | Negated():
            return False
        case Inverse():
            return may_be_empty(path.path)
        case PathSequence():
            return all(map(may_be_empty, path.parts))
        case PathAlternative():
            return any(map(may_be_empty, path.parts))
        case PathRepeat():
            return path.zero or may_be_empty(path.path)
        case _:
            assert_never(path)


# Filters


def conjuncts(expression: Expression) -> list[Expression]:
    """The conditions that have to be true together: `a && b` is two."""
    if isinstance(expression, SparqlCall) and expression.function == "&&":
        return [conjunct for arg in expression.args for conjunct in conjuncts(arg)]
    return [expression]


def conjunction(expressions: Iterable[Expression]) -> Expression | None:
    result = list(expressions)
    return reduce(lambda a, b: SparqlCall("&&", (a, b)), result) if result else None


def split_outer(pattern: Pattern, earlier: frozenset[str]) -> tuple[Pattern, tuple[Expression, ...]]:
    """The filters of a group that look at `earlier` variables, which the group does not bind, apart from the group.

    `{ ?s :price ?p FILTER(?p > ?before && ?p > 3) }` is `{ ?s :price ?p FILTER(?p > 3) }` and `?p > ?before`, which is to be
    asked where `?before` is bound.
    """
    if not isinstance(pattern, Filter):
        return pattern, ()
    inner, outer = split_outer(pattern.pattern, earlier)
    bound = may_bind(inner)
    here, there = list[Expression](), list[Expression]()
    for conjunct in conjuncts(pattern.condition):
        (there if (mentioned(conjunct) & earlier) - bound else here).append(conjunct)
    condition = conjunction(here)
    return (inner if condition is None else replace(pattern, pattern=inner, condition=condition)), (*outer, *there)
