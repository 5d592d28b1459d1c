"""What may be typed at a place: names, keywords where the grammar takes them, types, columns of the sample."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from augury.algebra.sparql_conditions import KNOWN_PREFIXES
from augury.core.errors import AuguryError, Source
from augury.editor.expected_words import Expected, expected_in_query, expected_in_rule
from augury.editor.meanings import Names, builtin
from augury.editor.open_files import Document, ProjectFiles
from augury.editor.remarks import KEYS
from augury.editor.vocabulary import ALL_QUERY_WORDS, FUNCTION_NAMES, PATTERN_WORDS, RULE_WORDS, TYPE_NAMES
from augury.language.rules.statements import chunks
from augury.sources import SourceFile

SuggestionKind: TypeAlias = Literal[
    "keyword", "event", "static", "function", "variable", "label", "attribute", "type", "column", "file", "prefix"
]
_DECLARES = re.compile(r"^\s*(?P<what>event|static|function)\s+(?P<name>[\w:]+)\s*\((?P<inside>[^)]*)$", re.IGNORECASE)
_INCLUDES = re.compile(r"""^\s*include\s+["'](?P<path>[^"']*)$""", re.IGNORECASE)
_OUTPUTS = re.compile(r"^\s*output\s+[^.]*$", re.IGNORECASE)
_TYPED = re.compile(r"\w+$")
_NAMED = re.compile(r"(?P<name>[\w:]+)\s*$")


@dataclass(frozen=True)
class Suggestion:
    """A text that may be typed; `order` sorts the likely ones first."""

    text: str
    kind: SuggestionKind
    detail: str = ""
    about: str = ""
    order: int = 5


def suggestions(project: ProjectFiles, document: Document, offset: int) -> list[Suggestion]:
    """What may be typed at an offset, each text once."""
    source = _in_query(document, offset) if document.is_query else _in_rules(project, document, offset)
    result: dict[str, Suggestion] = {}
    for suggestion in source:
        result.setdefault(suggestion.text, suggestion)
    return sorted(result.values(), key=lambda s: (s.order, s.text.lower()))


# Rules


def _in_rules(project: ProjectFiles, document: Document, offset: int) -> Iterator[Suggestion]:
    entry = document.statements.at_offset(max(0, offset - 1))
    start = entry.start if entry is not None else 0
    written = _after_last_stop(document.text[start:offset], document)
    line = document.text[document.text.rfind("\n", 0, offset) + 1 : offset]
    if re.match(r"^[^'\"]*[%#]", line):
        yield from _remark_words(line)
        return
    if include := _INCLUDES.match(written):
        yield from _files(document.path.parent, include["path"])
        return
    head = _TYPED.sub("", written)
    if declared := _DECLARES.match(_without_comments(head)):
        yield from _in_declaration(document, declared)
        return
    names = Names(project.program(document))
    if _OUTPUTS.match(_without_comments(head)):
        yield from (Suggestion(n, "event", order=1) for n, kind in names.kinds.items() if kind == "event")
        return
    prefixes = {**KNOWN_PREFIXES, **document.statements.prefixes}
    expected = expected_in_rule(head, prefixes)
    yield from _attributes(names, head)
    yield from _variables(head, document.text[offset : entry.end if entry is not None else offset])
    if expected is None:
        expected = Expected(name=True)
    at_start = not _without_comments(head).strip()
    yield from _keywords(expected, at_start)
    if expected.name or expected.label:
        yield from _predicates(names, at_start)
        yield from (
            Suggestion(f"{prefix}:", "prefix", iri, order=6) for prefix, iri in prefixes.items() if not at_start
        )


def _after_last_stop(written: str, document: Document) -> str:
    """The part of a statement's text that belongs to the next one: an offset may be behind its full stop."""
    pieces = list(chunks(Source("", written), document.statements.prefixes))
    return written[pieces[-1].start :] if pieces else written


def _without_comments(text: str) -> str:
    return re.sub(r"[%#][^\n]*|/\*.*?\*/", " ", text, flags=re.DOTALL)


def _remark_words(line: str) -> Iterator[Suggestion]:
    if re.match(r"^\s*[%#]!?\s*\w*$", line):
        yield from (Suggestion(f"! {key}: " if "!" not in line else f"{key}: ", "keyword") for key in KEYS)


def _files(folder: Path, typed: str) -> Iterator[Suggestion]:
    for path in sorted((folder / typed).parent.glob("*")) if (folder / typed).parent.is_dir() else ():
        if path.is_dir() and not path.name.startswith("."):
            yield Suggestion(f"{path.name}/", "file")
        elif path.suffix == ".aug":
            yield Suggestion(path.name, "file")


def _in_declaration(document: Document, declared: re.Match[str]) -> Iterator[Suggestion]:
    """Types behind a colon, and before it the columns of the sample."""
    inside = declared["inside"].rpartition(",")[2]
    if ":" in inside:
        yield from (Suggestion(type, "type") for type in TYPE_NAMES)
        return
    taken = set(re.findall(r"(\w+)\s*:", declared["inside"]))
    for column, file in columns(document, declared["name"], declared["what"].lower()):
        if column not in taken:
            yield Suggestion(f"{column}: ", "column", f"a column of {file}", order=1)


def columns(document: Document, name: str, what: str = "event") -> list[tuple[str, str]]:
    """The columns of the file that the remarks name for an event type, or a static predicate, with the file's name."""
    remarks = document.remarks
    if what == "static":
        files = [path for fact, path in remarks.facts if fact == name]
        return [(column, Path(path).name) for path in files for column in heading(path)]
    files = []
    for written in remarks.events:
        type, equals, path = written.rpartition("=")
        if not equals or type == name:
            files.append(path)
    aside = {"time", "start", "end", "id", "op", "type", "known"}
    return [(column, Path(path).name) for path in files for column in heading(path) if column not in aside]


def heading(path: str) -> list[str]:
    """The columns of a table: the first line of CSV, the schema of Parquet, the keys of the first JSON object."""
    try:
        source = SourceFile.parse(path)
        if source.path.endswith(".parquet"):
            import pyarrow.parquet as pq

            return [name for name in pq.read_schema(source.path).names if name.isidentifier()]
        with open(source.path, encoding="utf-8") as file:
            first = file.readline(100_000)
    except (OSError, UnicodeDecodeError, AuguryError, ValueError):
        return []
    if first.lstrip().startswith("{"):
        return re.findall(r'"(\w+)"\s*:', first)
    separator = "\t" if "\t" in first else ";" if first.count(";") > first.count(",") else ","
    return [cell for cell in (part.strip().strip('"') for part in first.split(separator)) if cell.isidentifier()]


def _attributes(names: Names, head: str) -> Iterator[Suggestion]:
    """Inside the parentheses of a predicate: a variable for the argument that is next."""
    call = open_call(head)
    signature = names.signature(call[0]) if call is not None else None
    if call is None or signature is None or builtin(call[0]):
        return
    inside = head[call[2] :]
    if re.search(r"\w+\s*=", inside) or not inside.strip():
        for parameter in signature.parameters:
            name = parameter.partition(":")[0]
            if name[:1].islower() and not re.search(rf"\b{name}\s*=", inside):
                yield Suggestion(f"{name} = ", "attribute", parameter, order=2)
    if call[1] < len(signature.parameters):
        name = signature.parameters[call[1]].partition(":")[0]
        variable = "".join(part[:1].upper() + part[1:] for part in name.split("_"))
        if variable.isidentifier():
            yield Suggestion(variable, "variable", signature.parameters[call[1]], order=0)


def open_call(written: str) -> tuple[str, int, int] | None:
    """The call whose parentheses are open at the end of a text: its name, which argument is next, and where they begin."""
    depth = commas = 0
    blank = re.sub(r"'[^'\n]*'|\"[^\"\n]*\"|[%#][^\n]*", lambda match: re.sub(r"[^\n]", " ", match[0]), written)
    for index in range(len(blank) - 1, -1, -1):
        character = blank[index]
        if character in ")]}":
            depth += 1
        elif character in "([{":
            if depth == 0:
                name = _NAMED.search(blank[:index])
                if character != "(" or name is None or name["name"].lower() in RULE_WORDS:
                    return None
                return name["name"], commas, index + 1
            depth -= 1
        elif character == "," and depth == 0:
            commas += 1
    return None


def _variables(head: str, remaining: str) -> Iterator[Suggestion]:
    """The variables of the statement, before the place and behind it."""
    names = dict.fromkeys(re.findall(r"(?<![\w'\"])[A-Z]\w*\b(?!\s*\()", head + " " + remaining))
    yield from (Suggestion(name, "variable", order=2) for name in names if name.lower() not in RULE_WORDS)
    labels = dict.fromkeys(re.findall(r"(?<![\w:])([a-z]\w*)\s*:(?![-/])\s", head))
    yield from (Suggestion(label, "label", order=3) for label in labels if label.lower() not in RULE_WORDS)


def _keywords(expected: Expected, at_start: bool) -> Iterator[Suggestion]:
    for word in expected.keywords:
        row = RULE_WORDS.get(word.lower().split()[0].rstrip(":"))
        yield Suggestion(word, "keyword", about=row.markdown if row is not None else "", order=1 if at_start else 4)


def _predicates(names: Names, at_start: bool) -> Iterator[Suggestion]:
    listed = {name: names.kinds.get(name, "event") for name in sorted({*names.kinds, *names.read})}
    for name, kind in listed.items():
        if kind in ("event", "static", "function"):
            signature = names.signature(name)
            yield Suggestion(
                name, "static" if kind == "static" else "function" if kind == "function" else "event",
                str(signature or ""), signature.about if signature else "", order=3,
            )  # fmt: skip
    if not at_start:
        yield from builtins()


def builtins() -> Iterable[Suggestion]:
    for name in FUNCTION_NAMES:
        signature = builtin(name)
        assert signature is not None
        yield Suggestion(name, "function", str(signature), signature.about, order=6)


# Queries


def _in_query(document: Document, offset: int) -> Iterator[Suggestion]:
    head = re.sub(r"[?$]?\w*$", "", document.text[:offset])
    expected = expected_in_query(head)
    if expected is None:
        expected = Expected(pattern=True, variable=True, name=True)
    for word in expected.keywords:
        about, example = ALL_QUERY_WORDS.get(word.split()[0], ("", ""))
        yield Suggestion(word, "keyword", about=f"{about}\n```spaseq\n{example}\n```" if about else "", order=1)
    if expected.pattern:
        for word, (about, example) in PATTERN_WORDS.items():
            yield Suggestion(word, "keyword", about=f"{about}\n```spaseq\n{example}\n```", order=4)
    for name in document.query_names:
        if name.meaning == "variable" and expected.variable:
            yield Suggestion(f"?{name.name}", "variable", order=2)
        elif name.meaning == "prefix" and expected.pattern and name.role == "declaration":
            yield Suggestion(f"{name.name}:", "prefix", order=3)
        elif name.meaning in ("gpm", "stream") and expected.name and not expected.pattern:
            yield Suggestion(name.name, "event", "a graph pattern" if name.meaning == "gpm" else "a stream", order=3)
