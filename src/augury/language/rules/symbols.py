"""The names of a program: which are events, which are static predicates, which are functions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from augury.algebra.aggregates import AGGREGATES, AggregateFunction, filtered_forms
from augury.algebra.graph_queries import GraphQuery
from augury.algebra.plan import Query
from augury.algebra.relations import RELATIVE
from augury.algebra.scalar import FUNCTIONS, TESTS, TYPES, Function
from augury.core.errors import Findings, Note, Span, counted, nearest
from augury.language.rules import syntax as s
from augury.language.rules.session_form import is_session

MOMENTS = ("start", "end", "duration")
LENGTH = "length"  # of a label; of a string it is a function
OVERLAP = "overlap"  # of two labels

# Types of other languages, and the one that this language has.
_TYPES_ELSEWHERE = {
    **dict.fromkeys(("integer", "long", "bigint", "int32", "int64", "smallint"), "int"),
    **dict.fromkeys(("double", "real", "decimal", "float32", "float64"), "float"),
    **dict.fromkeys(("str", "text", "varchar", "char"), "string"),
    **dict.fromkeys(("datetime", "date", "time"), "timestamp"),
    **dict.fromkeys(("interval", "timedelta"), "duration"),
    **dict.fromkeys(("uri", "url"), "iri"),
    "array": "list",
    "object": "any",
}


@dataclass
class Symbols:
    """What each name stands for, and where it was said."""

    findings: Findings
    functions: dict[str, Function]
    aggregates: dict[str, AggregateFunction]
    events: dict[str, s.EventDecl] = field(default_factory=dict)
    static: dict[str, s.StaticDecl] = field(default_factory=dict)
    heads: dict[str, Span] = field(default_factory=dict)
    clauses: dict[str, Span] = field(default_factory=dict)
    facts: set[str] = field(default_factory=set)
    arities: dict[str, set[int]] = field(default_factory=dict)  # of events that are declared, derived or read
    made: dict[str, Span] = field(default_factory=dict)  # facts that rules make of events
    latest: dict[str, Span] = field(default_factory=dict)  # of these, the ones with one fact a key
    queries: dict[str, Query] = field(default_factory=dict)
    functors: set[str] = field(default_factory=set)
    prefixes: dict[str, str] = field(default_factory=dict)
    tick: int | None = None

    def is_static(self, name: str) -> bool:
        return name in self.clauses or name in self.static or name in self.facts or name in self.made

    def is_property(self, name: str) -> bool:
        """Whether a name is an IRI that nothing else defines: a property, whose facts come from RDF."""
        return ":" in name and not self.is_static(name) and not self.is_event(name) and name not in self.functions

    def is_condition(self, name: str) -> bool:
        """Whether a name is asked for as a condition: a static predicate, or a property."""
        return self.is_static(name) or self.is_property(name)

    def is_event(self, name: str) -> bool:
        return name in self.heads or name in self.events

    def is_test(self, name: str) -> bool:
        """Whether a name is a function that is true or false."""
        function = self.functions.get(name)
        return function is not None and (
            function.result == "bool" or (function.registered and function.result == "any")
        )

    def unknown(self, what: str, name: str, span: Span, names: Iterable[str], hint: str) -> None:
        """Reports a name that nothing defines, with the nearest one that something does."""
        if name in self.findings.unread:
            self.findings.doubt(span)
            return
        close = nearest(name, names)
        self.findings.add("E201", f"unknown {what} `{name}`", span, hint=f"did you mean `{close}`?" if close else hint)


def collect_symbols(
    modules: list[s.Module],
    findings: Findings,
    functions: Mapping[str, Function],
    aggregates: Mapping[str, AggregateFunction],
    facts: Iterable[str],
    graph_queries: Iterable[GraphQuery] = (),
) -> Symbols:
    prefixes: dict[str, s.PrefixDecl] = {}
    aggregates = {**AGGREGATES, **aggregates}
    aggregates |= filtered_forms(aggregates)
    symbols = Symbols(findings, {**FUNCTIONS, **TESTS, **functions}, aggregates, facts=set(facts))
    for statement in statements(modules):
        match statement:
            case s.PrefixDecl():
                _declare_prefix(statement, prefixes, symbols)
            case s.EventDecl():
                _declare(statement, symbols.events, symbols)
                symbols.arities.setdefault(statement.name, set()).add(len(statement.attributes))
            case s.StaticDecl():
                _declare(statement, symbols.static, symbols)
            case s.FunctionDecl():
                _declare_function(statement, symbols)
            case s.RuleStatement(
                head=s.CallTerm(name=name) | s.BareName(text=name), makes="fact" | "latest" | "no fact" as makes
            ):
                symbols.made.setdefault(name, statement.head.span)
                if makes == "latest":
                    symbols.latest.setdefault(name, statement.head.span)
            case s.RuleStatement(head=s.CallTerm(name=name) | s.BareName(text=name) as head):
                symbols.heads.setdefault(name, statement.head.span)
                symbols.arities.setdefault(name, set()).add(len(head.args) if isinstance(head, s.CallTerm) else 0)
            case s.StaticRule(head=s.CallTerm(name=name) | s.BareName(text=name)):
                symbols.clauses.setdefault(name, statement.head.span)
    for statement in statements(modules):
        for literal in statement.body if isinstance(statement, s.RuleStatement) else ():
            calls = (part for part in s.walk(literal) if isinstance(part, s.CallTerm) and part.name == "session")
            symbols.arities.setdefault("session", set()).update(len(c.args) for c in calls if not is_session(c))
    _add_queries(graph_queries, symbols)
    _collect_functors(modules, symbols)
    events = {name: name_of(decl) for name, decl in symbols.events.items()} | symbols.heads
    for name, span in events.items():
        if symbols.is_static(name):
            _both(name, span, symbols)
    return symbols


def _add_queries(queries: Iterable[GraphQuery], symbols: Symbols) -> None:
    """A query derives events of its name, and is the only one that does."""
    for query in queries:
        name, span = query.predicate[0], query.span.part(r"\b(?P<it>SELECT|CONSTRUCT)\b")
        if name in symbols.heads:
            message = f"a rule and a query derive `{name}`"
            hint = "give one of them another name; a query is called as its file"
            symbols.findings.add("E203", message, symbols.heads[name], Note("the query", span), hint=hint)
        symbols.heads[name] = span


def _declare_prefix(prefix: s.PrefixDecl, seen: dict[str, s.PrefixDecl], symbols: Symbols) -> None:
    previous = seen.setdefault(prefix.name, prefix)
    if previous.iri != prefix.iri:
        message = f"the prefix `{prefix.name}` is declared twice, differently"
        symbols.findings.add("E203", message, prefix.span, Note("declared here first", previous.span))
    symbols.prefixes[prefix.name] = prefix.iri


def statements(modules: list[s.Module]) -> Iterator[s.Statement]:
    for module in modules:
        yield from module.statements


def name_of(decl: s.EventDecl | s.StaticDecl | s.FunctionDecl) -> Span:
    """The name in a declaration."""
    return decl.span.part(r"^\w+\s+(?P<it>[\w:-]+)")


def _both(name: str, event: Span, symbols: Symbols) -> None:
    if name in symbols.clauses:
        note = Note("static here", symbols.clauses[name])
    elif name in symbols.static:
        note = Note("declared as static here", name_of(symbols.static[name]))
    elif name in symbols.made:
        note = Note("its facts are made here", symbols.made[name])
    else:
        note = Note("its facts are given from outside")
    hint = "event rules are written with `<-`, static rules with `:-`, facts with neither; give one of the two another name"
    symbols.findings.add("E202", f"`{name}` is both an event and a static predicate", event, note, hint=hint)


def _declare(
    decl: s.EventDecl | s.StaticDecl, table: dict[str, s.EventDecl] | dict[str, s.StaticDecl], symbols: Symbols
) -> None:
    _check_attributes(decl.attributes, symbols)
    previous = table.get(decl.name)
    if previous is not None and previous.attributes != decl.attributes:
        message = f"`{decl.name}` is declared twice, differently"
        symbols.findings.add("E203", message, name_of(decl), Note("declared here first", name_of(previous)))
    table.setdefault(decl.name, decl)  # type: ignore[arg-type]


def _check_attributes(attributes: tuple[s.AttributeDecl, ...], symbols: Symbols) -> None:
    seen: dict[str, Span] = {}
    for attribute in attributes:
        if attribute.name in seen:
            message = f"two attributes are called `{attribute.name}`"
            symbols.findings.add(
                "E203", message, attribute.span.part(r"\w+"), Note("the other one", seen[attribute.name])
            )
        seen[attribute.name] = attribute.span.part(r"\w+")
        if attribute.type not in TYPES:
            _unknown_type(attribute.type, attribute.type_span, symbols)


def _unknown_type(name: str, span: Span, symbols: Symbols) -> None:
    """What other languages call a type is not a slip of letters."""
    meant = _TYPES_ELSEWHERE.get(name.lower())
    hint = "the types are " + ", ".join(TYPES)
    symbols.unknown("type", name, span, TYPES if meant is None else (), f"did you mean `{meant}`?" if meant else hint)


def _declare_function(decl: s.FunctionDecl, symbols: Symbols) -> None:
    _check_attributes(decl.attributes, symbols)
    if decl.result not in TYPES:
        _unknown_type(decl.result, decl.span.part(r"\w+$"), symbols)
    types = tuple(known_type(a.type) for a in decl.attributes)
    earlier = symbols.functions.get(decl.name)
    if earlier is not None and not earlier.registered:
        symbols.findings.add("E203", f"`{decl.name}` is a built-in function", name_of(decl), hint="choose another name")
    elif earlier is not None and earlier.call is not unregistered and not earlier.takes(len(types)):
        message = f"`{decl.name}` is declared with {counted(len(types), 'argument')}, but Python registered it with {earlier.arity}"
        symbols.findings.add("E206", message, name_of(decl))
    elif earlier is None or earlier.call is unregistered:
        symbols.functions[decl.name] = Function(
            decl.name, types, known_type(decl.result), unregistered, registered=True
        )


def known_type(type: str) -> str:
    """The type, or any where there is none of that name, which was reported."""
    return type if type in TYPES else "any"


def unregistered(*args: object) -> object:
    raise LookupError("declared in the program, but not registered from Python")


def _collect_functors(modules: list[s.Module], symbols: Symbols) -> None:
    """Nested terms that a body matches or a fact holds: a head may build those."""
    for statement in statements(modules):
        match statement:
            case s.StaticRule(head=s.CallTerm() as head):
                _functors_of(head.args, symbols)
                for literal in statement.body:
                    _functors_in(literal, symbols)
            case s.RuleStatement():
                for literal in statement.body:
                    _functors_in(literal, symbols)


def _functors_in(literal: s.Node, symbols: Symbols) -> None:
    left = [literal]
    while left:
        node = left.pop()
        if isinstance(node, s.CallTerm) and node.name not in symbols.functions and node.name not in RELATIVE:
            _functors_of(node.args, symbols)
        elif not isinstance(node, s.Chain | s.Arith):
            left.extend(s.children(node))


def _functors_of(args: tuple[s.Node, ...], symbols: Symbols) -> None:
    for arg in args:
        for node in s.walk(arg):
            if isinstance(node, s.CallTerm) and node.name not in symbols.functions and node.name not in MOMENTS:
                symbols.functors.add(node.name)
