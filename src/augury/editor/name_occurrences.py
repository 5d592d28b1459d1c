"""Where names stand in a statement of the rule language, and what each is: a predicate, a variable, a label, an attribute."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from augury.algebra.terms import Var
from augury.core.errors import Span
from augury.editor.vocabulary import WINDOW_FUNCTIONS
from augury.language.rules import syntax as s
from augury.language.rules.symbols import MOMENTS, name_of

Meaning: TypeAlias = Literal["predicate", "variable", "label", "attribute", "rule", "prefix", "file", "gpm", "stream"]
Role: TypeAlias = Literal["declaration", "definition", "reference"]


@dataclass(frozen=True)
class NameOccurrence:
    """A name at its span. `owner` is the predicate of an attribute; `arity` is how many arguments stand behind a predicate."""

    meaning: Meaning
    name: str
    span: Span
    role: Role = "reference"
    owner: str = ""
    arity: int | None = None
    kind: Literal["event", "static", "function", ""] = ""


def occurrences(statement: s.Statement) -> list[NameOccurrence]:
    """All names of a statement, in the order of the text."""
    return sorted(_occurrences(statement), key=lambda o: (o.span.start, o.span.end))


def _occurrences(statement: s.Statement) -> Iterator[NameOccurrence]:
    match statement:
        case s.Include():
            yield NameOccurrence("file", statement.path, statement.span.part(r"(?P<it>[\"'].*[\"'])"))
        case s.PrefixDecl():
            yield NameOccurrence("prefix", statement.name, statement.span.part(r"^prefix\s+(?P<it>\w+)"), "declaration")
        case s.EventDecl() | s.StaticDecl() | s.FunctionDecl():
            yield from _declared(statement)
        case s.OutputDecl():
            for name in statement.names:
                yield NameOccurrence("predicate", name.text, name.span)
        case s.RuleStatement():
            kind: Literal["event", "static"] = "event" if statement.makes == "event" else "static"
            yield from _rule_label(statement)
            yield from _RuleNames(statement).names(kind)
        case s.StaticRule():
            yield from _rule_label(statement)
            yield from _RuleNames(statement).names("static")


def _declared(statement: s.EventDecl | s.StaticDecl | s.FunctionDecl) -> Iterator[NameOccurrence]:
    kinds: dict[type[s.Statement], Literal["event", "static", "function"]] = {
        s.EventDecl: "event",
        s.StaticDecl: "static",
        s.FunctionDecl: "function",
    }
    count = len(statement.attributes)
    yield NameOccurrence(
        "predicate", statement.name, name_of(statement), "declaration", arity=count, kind=kinds[type(statement)]
    )
    for attribute in statement.attributes:
        yield NameOccurrence("attribute", attribute.name, attribute.span.part(r"\w+"), "declaration", statement.name)


def _rule_label(statement: s.RuleStatement | s.StaticRule) -> Iterator[NameOccurrence]:
    if statement.label is not None:
        yield NameOccurrence("rule", statement.label, statement.span.part(r"^rule\s+(?P<it>\w+)"), "definition")


class _RuleNames:
    """The names of one rule, fact or static rule."""

    def __init__(self, statement: s.RuleStatement | s.StaticRule) -> None:
        self.statement = statement
        self.labels = {label for node in self._nodes() for label in _labels(node)}

    def _nodes(self) -> Iterator[s.Node]:
        for literal in self.statement.body:
            yield from s.walk(literal)

    def names(self, kind: Literal["event", "static"]) -> Iterator[NameOccurrence]:
        statement = self.statement
        yield from self._atom(statement.head, "definition", kind)
        for literal in statement.body:
            yield from self._pattern(literal)
        if isinstance(statement, s.RuleStatement):
            yield from self._clauses(statement)

    def _clauses(self, statement: s.RuleStatement) -> Iterator[NameOccurrence]:
        """What stands behind the body, and between the head and the arrow."""
        if statement.since is not None and statement.since != "END":
            yield from self._value(statement.since)
        variables: list[Var] = [*(statement.key or ())]
        if statement.choice is not None:
            variables += statement.choice.per or ()
            if statement.choice.skip is not None and statement.choice.skip.label is not None:
                label = statement.choice.skip.label
                span = statement.choice.span.part(rf"(?:first|last)\s+(?P<it>{re.escape(label)})\b")
                yield NameOccurrence("label", label, span)
        if statement.top is not None:
            yield from self._value(statement.top.by)
            variables += [*statement.top.per, *([statement.top.place] if statement.top.place is not None else [])]
        if statement.at_most is not None:
            variables += statement.at_most.per
        yield from (NameOccurrence("variable", variable.name, variable.span) for variable in variables)

    def _pattern(self, node: s.Node) -> Iterator[NameOccurrence]:
        """A node where an event, or a condition, may stand."""
        match node:
            case s.GraphCall():
                yield from self._values(node.args)
            case s.CallTerm() if self._is_window(node):
                yield from self._values(node.args)
            case s.CallTerm():
                yield from self._atom(node, "reference")
            case s.BareName():
                if node.text in self.labels:
                    yield NameOccurrence("label", node.text, node.span)
                else:
                    yield NameOccurrence("predicate", node.text, node.span, arity=0)
            case s.Chain() | s.Arith() | s.Among() | s.Between():
                yield from self._values(s.children(node))
            case s.Labelled():
                yield NameOccurrence("label", node.label, node.span.part(r"^\w+"), "definition")
                yield from self._pattern(node.body)
            case s.While():
                yield NameOccurrence("label", node.window, node.span.part(r"^while\s+(?P<it>\w+)"))
                yield from self._collected(node)
            case s.Last():
                yield from self._collected(node)
            case Var():
                yield NameOccurrence("variable", node.name, node.span)
            case _:
                for child in s.children(node):
                    yield from self._pattern(child)

    def _collected(self, node: s.While | s.Last) -> Iterator[NameOccurrence]:
        if node.label is not None:
            span = node.span.part(rf"\bcollect\s+(?P<it>{re.escape(node.label)})\s*:")
            yield NameOccurrence("label", node.label, span, "definition")
        yield from self._pattern(node.body)

    def _is_window(self, call: s.CallTerm) -> bool:
        """Whether a call makes a window of a label: `extend(o, 6h)`, `every(10min)`."""
        first = call.args[0] if call.args else None
        return call.name in WINDOW_FUNCTIONS and (
            call.name == "every" or (isinstance(first, s.BareName) and first.text in self.labels)
        )

    def _atom(
        self, node: s.Node, role: Role, kind: Literal["event", "static", "function", ""] = ""
    ) -> Iterator[NameOccurrence]:
        if isinstance(node, s.BareName):
            yield NameOccurrence("predicate", node.text, node.span, role, arity=0, kind=kind)
        elif isinstance(node, s.CallTerm):
            span = node.span.part(r"^[^\s(]+")
            yield NameOccurrence("predicate", node.name, span, role, arity=len(node.args), kind=kind)
            for arg in node.args:
                if isinstance(arg, s.Chain) and arg.ops == ("=",) and isinstance(arg.operands[0], s.BareName):
                    key = arg.operands[0]
                    yield NameOccurrence("attribute", key.text, key.span, owner=node.name)
                    yield from self._value(arg.operands[1])
                else:
                    yield from self._value(arg)
        else:
            yield from self._pattern(node)

    def _values(self, nodes: Iterable[s.Node]) -> Iterator[NameOccurrence]:
        for node in nodes:
            yield from self._value(node)

    def _value(self, node: s.Node) -> Iterator[NameOccurrence]:
        """A node where a value stands: a bare name is a text, unless it is a label."""
        match node:
            case Var():
                yield NameOccurrence("variable", node.name, node.span)
            case s.BareName() if node.text in self.labels:
                yield NameOccurrence("label", node.text, node.span)
            case s.CallTerm():
                if node.name not in MOMENTS and not self._is_window(node):
                    span = node.span.part(r"^[^\s(]+")
                    yield NameOccurrence("predicate", node.name, span, arity=len(node.args), kind="function")
                yield from self._values(node.args)
            case s.Where():
                yield from self._value(node.pattern)
                yield from self._pattern(node.condition)
            case s.Filtered():
                yield from self._pattern(node.condition)
            case _:
                yield from self._values(s.children(node))


def _labels(node: s.Node) -> Iterator[str]:
    match node:
        case s.Labelled():
            yield node.label
        case s.While() | s.Last() if node.label is not None:
            yield node.label
