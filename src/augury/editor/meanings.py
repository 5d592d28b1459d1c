"""What a predicate is in a program: an event, a static predicate, a function; and how it is called."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from augury.algebra.aggregates import AGGREGATES
from augury.algebra.scalar import FUNCTIONS
from augury.editor.name_occurrences import NameOccurrence
from augury.editor.open_files import Document
from augury.editor.statements_read import WrittenStatement
from augury.editor.vocabulary import WINDOW_FUNCTIONS
from augury.language.rules import syntax as s
from augury.language.rules.show import Printer, show_node


@dataclass(frozen=True)
class Signature:
    """A name with its parameters, `speed: float`, and what is said of it."""

    name: str
    parameters: tuple[str, ...]
    result: str = ""
    about: str = ""

    def __str__(self) -> str:
        result = f": {self.result}" if self.result and self.result != "any" else ""
        return f"{self.name}({', '.join(self.parameters)}){result}"


def builtin(name: str) -> Signature | None:
    """A function or an aggregate that the language has."""
    if name in WINDOW_FUNCTIONS:
        form, about = WINDOW_FUNCTIONS[name]
        return Signature(name, tuple(form.partition("(")[2].rstrip(")").split(", ")), "", about)
    if name in FUNCTIONS and name.isidentifier():
        row = FUNCTIONS[name]
        required = len(row.types) - row.optional
        parameters = [type if index < required else f"[{type}]" for index, type in enumerate(row.types)]
        return Signature(name, (*parameters, *(["…"] if row.variadic else [])), row.result, row.doc)
    if name in AGGREGATES:
        aggregate = AGGREGATES[name]
        more = [aggregate.more] if aggregate.more else []
        return Signature(
            name, (f"[distinct] {aggregate.argument}", *more), aggregate.result, f"aggregate: {aggregate.doc}"
        )
    return None


class Names:
    """The predicates of some documents: those of a program."""

    def __init__(self, documents: Iterable[Document]) -> None:
        self.documents = [document for document in documents if not document.is_query]

    @cached_property
    def kinds(self) -> dict[str, str]:
        """What each predicate that is declared or derived is."""
        result: dict[str, str] = {}
        for document in self.documents:
            result |= dict.fromkeys(document.remarks.fact_names, "static")
            for entry in document.statements.entries:
                for name in entry.names:
                    if name.meaning == "predicate" and name.role != "reference":
                        result[name.name] = name.kind
        return result

    @cached_property
    def read(self) -> set[str]:
        """The predicates that rules read."""
        return {
            name.name
            for document in self.documents
            for entry in document.statements.entries
            for name in entry.names
            if name.meaning == "predicate" and name.role == "reference" and name.kind != "function"
        }

    def kind_of(self, name: NameOccurrence) -> str:
        """`event`, `static`, `function`, or `term` where it only builds a value."""
        declared = self.kinds.get(name.name)
        if declared:
            return declared
        if name.kind == "function":
            return "function" if builtin(name.name) else "term"
        if builtin(name.name) and name.arity:
            return "function"
        return "static" if ":" in name.name else "event"

    def defining(self, name: str) -> Iterator[tuple[Document, WrittenStatement, s.Statement]]:
        """The statements that declare or derive a predicate: declarations first."""
        rules: list[tuple[Document, WrittenStatement, s.Statement]] = []
        for document in self.documents:
            for entry in document.statements.entries:
                if name in entry.defines:
                    for statement in entry.statements:
                        if isinstance(statement, s.EventDecl | s.StaticDecl | s.FunctionDecl):
                            yield document, entry, statement
                        else:
                            rules.append((document, entry, statement))
        yield from rules

    def signature(self, name: str) -> Signature | None:
        """How a predicate or a function is called."""
        for _, _, statement in self.defining(name):
            about = comment_of(statement)
            match statement:
                case s.FunctionDecl():
                    return Signature(name, _attributes(statement.attributes), statement.result, about)
                case s.EventDecl() | s.StaticDecl():
                    return Signature(name, _attributes(statement.attributes), "", about)
                case s.RuleStatement(head=s.CallTerm() as head) | s.StaticRule(head=s.CallTerm() as head):
                    return Signature(name, tuple(map(show_node, head.args)), "", about)
        return builtin(name)


def _attributes(attributes: Iterable[s.AttributeDecl]) -> tuple[str, ...]:
    return tuple(a.name if a.type == "any" else f"{a.name}: {a.type}" for a in attributes)


def comment_of(statement: s.Statement) -> str:
    """What the writer says of a statement: the comments directly above it and behind it."""
    lines = [*statement.comments.before, *([statement.comments.after] if statement.comments.after else [])]
    kept = [line.lstrip("%#").removeprefix("/*").removesuffix("*/").strip() for line in lines]
    return " ".join(line for line in kept if line and not line.startswith(("!", "ignore ")))


def written(statement: s.Statement) -> str:
    """A statement on few lines, without its comments."""
    return Printer().statement(replace(statement, comments=s.Comments())).strip()
