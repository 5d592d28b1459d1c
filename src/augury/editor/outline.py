"""The outline of a document, the parts that fold, and names coloured by what they are."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from augury.core.errors import Findings
from augury.editor.meanings import Names, builtin
from augury.editor.open_files import Document
from augury.language.rules import syntax as s
from augury.language.spaseq.query_program import query_name
from augury.language.spaseq.query_reader import read_query

OutlineKind: TypeAlias = Literal[
    "event", "static", "function", "rule", "fact", "output", "query", "gpm", "stream", "module"
]


@dataclass(frozen=True)
class OutlineEntry:
    """A part of a document: its name, where it is as a whole, and where its name stands."""

    name: str
    kind: OutlineKind
    detail: str
    start: int
    end: int
    name_start: int
    name_end: int
    parts: tuple[OutlineEntry, ...] = ()


def outline(document: Document) -> list[OutlineEntry]:
    return list(_query_outline(document) if document.is_query else _rules_outline(document))


def _rules_outline(document: Document) -> Iterator[OutlineEntry]:
    for entry in document.statements.entries:
        for statement in entry.statements:
            row = _row(statement)
            if row is None:
                continue
            name, kind, detail = row
            start, end = entry.start + statement.span.start, entry.start + statement.span.end
            named = [n for n in entry.names if n.role != "reference" and n.meaning == "predicate" and n.name == name]
            if named:
                span = named[0].span
                yield OutlineEntry(name, kind, detail, start, end, entry.start + span.start, entry.start + span.end)
            else:
                yield OutlineEntry(name, kind, detail, start, end, start, end)


def _row(statement: s.Statement) -> tuple[str, OutlineKind, str] | None:
    match statement:
        case s.Include():
            return statement.path, "module", "include"
        case s.EventDecl():
            return statement.name, "event", f"event of {len(statement.attributes)}"
        case s.StaticDecl():
            return statement.name, "static", f"static of {len(statement.attributes)}"
        case s.FunctionDecl():
            return statement.name, "function", "function"
        case s.OutputDecl():
            return ", ".join(name.text for name in statement.names), "output", "output"
        case s.RuleStatement(head=s.CallTerm(name=name) | s.BareName(text=name)):
            made = "" if statement.makes == "event" else f"makes a {statement.makes}"
            return name, "rule", statement.label or made
        case s.StaticRule(head=s.CallTerm(name=name) | s.BareName(text=name)):
            return name, "static" if statement.body else "fact", "static rule" if statement.body else "fact"
    return None


def _query_outline(document: Document) -> Iterator[OutlineEntry]:
    tree = read_query(document.source, Findings())
    if tree is None:
        return
    parts = [
        *(OutlineEntry(n.name, "stream", "stream", n.span.start, n.span.end, n.span.start, n.span.end)
          for n in document.query_names if n.meaning == "stream" and n.role == "definition"),
        *(OutlineEntry(d.name.text, "gpm", "graph pattern", d.span.start, d.span.end, d.name.span.start, d.name.span.end)
          for d in tree.defines),
    ]  # fmt: skip
    answer = tree.answer.span
    name = query_name(document.source)
    yield OutlineEntry(
        name, "query", "query", 0, len(document.text), answer.start, min(answer.end, answer.start + 9), tuple(parts)
    )


# Folding


def folds(document: Document) -> list[tuple[int, int, str]]:
    """Lines that fold, from 0: statements of several lines, the parts of a query, and comments; with what they are."""
    result: list[tuple[int, int, str]] = []
    lines = document.text.split("\n")
    first = None
    for number, line in enumerate([*lines, ""]):
        if re.match(r"^\s*[%#]", line):
            first = number if first is None else first
        elif first is not None:
            if number - first > 1:
                result.append((first, number - 1, "comment"))
            first = None
    entries = outline(document)
    for entry in [*entries, *(part for whole in entries for part in whole.parts)]:
        top, bottom = (document.text.count("\n", 0, offset) for offset in (entry.start, entry.end))
        if bottom > top and entry.kind != "query":
            result.append((top, bottom, "region"))
    return sorted(result)


# Colours

TOKEN_TYPES = ("class", "struct", "function", "variable", "parameter", "property", "namespace", "string")
TOKEN_MODIFIERS = ("declaration", "definition", "defaultLibrary")
_OF_MEANING = {
    "variable": "variable", "label": "parameter", "attribute": "property", "prefix": "namespace", "gpm": "class",
    "stream": "namespace", "rule": "parameter",
}  # fmt: skip
_OF_KIND = {"event": "class", "static": "struct", "function": "function", "term": "struct"}


def coloured_names(document: Document, names: Names) -> Iterator[tuple[int, int, str, tuple[str, ...]]]:
    """Where names stand, what type of token each is, and what else is to be said of it."""
    last = -1
    for name_place in sorted(document.names(), key=lambda name_place: name_place.start):
        name = name_place.name
        if (
            name_place.start < last
            or name.meaning == "file"
            or name_place.start == name_place.end
            or "\n" in name_place.text
        ):
            continue
        modifiers: list[str] = [name.role] if name.role != "reference" else []
        if name.meaning == "predicate":
            kind = names.kind_of(name)
            type = _OF_KIND[kind]
            if kind == "function" and builtin(name.name) and name.name not in names.kinds:
                modifiers.append("defaultLibrary")
        else:
            type = _OF_MEANING[name.meaning]
        last = name_place.end
        yield name_place.start, name_place.end, type, tuple(modifiers)
