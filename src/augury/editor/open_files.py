"""The files of a workspace as an editor has them: open ones with what is typed, the others as they are saved.

A program is a file with all that it includes; a file that others include belongs to the first of these.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from augury.compiled import Compiled, language_of
from augury.core.errors import Diagnostic, Source, Span
from augury.editor.name_occurrences import NameOccurrence
from augury.editor.query_names import query_occurrences
from augury.editor.remarks import Remarks, read_remarks
from augury.editor.statements_read import StatementList, WrittenStatement
from augury.language.spaseq.query_program import SPASEQ, query_name

_INCLUDE = re.compile(r"""^[ \t]*include\s*["']([^"'\n]*)["']""", re.IGNORECASE | re.MULTILINE)
_HIDDEN = {"node_modules", "__pycache__", "build", "dist"}
_MOST_FILES = 2000


@dataclass(eq=False)
class Document:
    """A file of rules, or a query."""

    path: Path
    text: str = ""
    version: int = 0
    is_open: bool = False
    _statements: StatementList = field(init=False)
    program: tuple[Document, ...] = ()  # the documents of its program, when it was checked last
    checked: Compiled | None = None
    whole: tuple[Diagnostic, ...] = ()  # of a query: what checking it gave
    checked_version: int = -1

    def __post_init__(self) -> None:
        self._statements = StatementList(str(self.path))

    @property
    def language(self) -> str:
        return language_of(self.path)

    @property
    def is_query(self) -> bool:
        return self.language == SPASEQ

    def change(self, text: str, version: int = 0) -> list[WrittenStatement]:
        """Takes another text; of rules, the statements that were read for it."""
        self.text, self.version = text, version
        for name in ("source", "line_starts", "remarks", "query_names", "includes"):
            self.__dict__.pop(name, None)
        return [] if self.is_query else self._statements.change(text)

    @property
    def statements(self) -> StatementList:
        """The statements of rules; of a file that is not open they are read on demand."""
        if self._statements.text != self.text and not self.is_query:
            self._statements.change(self.text)
        return self._statements

    @cached_property
    def source(self) -> Source:
        return Source(str(self.path), self.text, self.language)

    @cached_property
    def line_starts(self) -> list[int]:
        starts = [0]
        for line in self.text.split("\n"):
            starts.append(starts[-1] + len(line) + 1)
        return starts[:-1]

    @cached_property
    def remarks(self) -> Remarks:
        return read_remarks(self.text, self.path)

    @cached_property
    def query_names(self) -> list[NameOccurrence]:
        return query_occurrences(self.source)

    @cached_property
    def includes(self) -> list[Path]:
        return [] if self.is_query else [(self.path.parent / name).resolve() for name in _INCLUDE.findall(self.text)]

    def names(self) -> Iterator[NamePlace]:
        """All names of the text with their places in it."""
        if self.is_query:
            yield from (NamePlace(self, name.span.start, name.span.end, name) for name in self.query_names)
            return
        for entry in self.statements.entries:
            yield from self._names_of(entry)

    def _names_of(self, entry: WrittenStatement) -> Iterator[NamePlace]:
        for name in entry.names:
            yield NamePlace(self, entry.start + name.span.start, entry.start + name.span.end, name, entry)

    def name_at(self, offset: int) -> NamePlace | None:
        """The name that an offset is in, or directly behind."""
        if self.is_query:
            candidates: Iterable[NamePlace] = self.names()
        else:
            entry = self.statements.at_offset(offset)
            candidates = [] if entry is None else self._names_of(entry)
        inside = [name_place for name_place in candidates if name_place.start <= offset <= name_place.end]
        return min(
            inside, key=lambda name_place: (name_place.end == offset, name_place.end - name_place.start), default=None
        )


@dataclass(frozen=True)
class NamePlace:
    """A name at its place in a document; `statement` is the one of rules that it stands in."""

    document: Document
    start: int
    end: int
    name: NameOccurrence
    statement: WrittenStatement | None = None

    @property
    def text(self) -> str:
        return self.document.text[self.start : self.end]


class ProjectFiles:
    """All files below some folders, and those that were opened from elsewhere."""

    def __init__(self, folders: Iterable[Path] = ()) -> None:
        self.folders = [folder.resolve() for folder in folders]
        self.documents: dict[Path, Document] = {}
        self._saved: dict[Path, tuple[int, Document]] = {}
        self._paths: list[Path] | None = None

    def refresh(self) -> None:
        """Looks for the files of the workspace again."""
        self._paths = None

    def opened(self, path: Path, text: str, version: int) -> Document:
        path = path.resolve()
        document = self.documents[path] = Document(path, text, version, is_open=True)
        return document

    def closed(self, path: Path) -> None:
        self.documents.pop(path.resolve(), None)

    def document(self, path: Path) -> Document | None:
        """The document of a path: as it is typed, or as it is saved; None where it cannot be read."""
        path = path.resolve()
        if path in self.documents:
            return self.documents[path]
        try:
            stamp = path.stat().st_mtime_ns
            if path not in self._saved or self._saved[path][0] != stamp:
                self._saved[path] = stamp, Document(path, path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError):
            return None
        return self._saved[path][1]

    def paths(self) -> list[Path]:
        """All programs of the workspace."""
        if self._paths is None:
            self._paths = self._saved_paths()
        return sorted({*self._paths, *self.documents})

    def _saved_paths(self) -> list[Path]:
        result: set[Path] = set()
        for folder in self.folders:
            for ending in ("*.aug", "*.spaseq"):
                for path in folder.rglob(ending):
                    parts = path.relative_to(folder).parts
                    if not any(part.startswith(".") or part in _HIDDEN for part in parts):
                        result.add(path.resolve())
                    if len(result) > _MOST_FILES:
                        return sorted(result)
        return sorted(result)

    def program(self, document: Document) -> list[Document]:
        """The documents of the program that one belongs to, the one that includes the others first."""
        return self._with_included(self.root(document))

    def root(self, document: Document) -> Document:
        """The document that includes this one, through others or not, and that none includes; else itself."""
        including = self._including()
        root, seen = document, {document.path}
        while above := [path for path in sorted(including.get(root.path, ())) if path not in seen]:
            seen.add(above[0])
            next_root = self.document(above[0])
            if next_root is None:
                break
            root = next_root
        return root

    def _including(self) -> dict[Path, set[Path]]:
        result: dict[Path, set[Path]] = {}
        for path in self.paths():
            document = self.document(path)
            for included in document.includes if document is not None else ():
                result.setdefault(included, set()).add(path)
        return result

    def _with_included(self, root: Document) -> list[Document]:
        result: dict[Path, Document] = {}

        def visit(document: Document) -> None:
            if document.path not in result:
                result[document.path] = document
                for path in [*document.includes, *(Path(name).resolve() for name in document.remarks.others)]:
                    included = self.document(path)
                    if included is not None:
                        visit(included)

        visit(root)
        return list(result.values())

    def related(self, document: Document) -> list[Document]:
        """The documents of all programs that a document is part of."""
        if document.is_query:
            return [document]
        result = {document.path: document}
        for path in self.paths():
            candidate = self.document(path)
            if candidate is not None and (candidate.includes or candidate.remarks.others):
                group = self._with_included(candidate)
                if any(member.path in result for member in group):
                    result |= {member.path: member for member in group}
        return list(result.values())

    def sources(self, root: Document) -> list[Source]:
        """What compiling the program of a root begins with."""
        others = [self.document(Path(name)) for name in root.remarks.others]
        return [root.source, *(other.source for other in others if other is not None)]

    def unsaved(self) -> dict[Path, str]:
        return {path: document.text for path, document in self.documents.items()}

    # Names

    def uses(self, name_place: NamePlace) -> list[NamePlace]:
        """Every occurrence of what a name names: in its statement, its file, or all files of its programs."""
        name, document = name_place.name, name_place.document
        match name.meaning:
            case "variable" | "label" if not document.is_query:
                return [
                    other
                    for other in document.names()
                    if other.statement is name_place.statement and _same(other.name, name)
                ]
            case "predicate" | "attribute":
                documents = self.related(document)
                names = [other for part in documents for other in part.names() if _same(other.name, name)]
                if name.meaning == "predicate" and name.kind == "function" and not any(_defines(n) for n in names):
                    return [other for other in names if other.name.kind == "function"]
                return names
        return [other for other in document.names() if _same(other.name, name)]

    def definitions(self, name_place: NamePlace) -> list[NamePlace]:
        """Where a name is declared and defined; of a variable or a label, where it stands first."""
        name = name_place.name
        if name.meaning == "file":
            target = self.document(name_place.document.path.parent / name.name)
            return [NamePlace(target, 0, 0, name)] if target is not None else []
        uses = self.uses(name_place)
        defining = [other for other in uses if _defines(other)]
        if defining:
            return sorted(defining, key=lambda other: other.name.role != "declaration")
        if name.meaning == "predicate":
            return self._query(name_place)
        return uses[:1]

    def _query(self, name_place: NamePlace) -> list[NamePlace]:
        """The query that derives an event: a file of that name beside this one."""
        for path in sorted(name_place.document.path.parent.glob("*.spaseq")):
            document = self.document(path)
            if document is not None and query_name(document.source) == name_place.name.name:
                start = Span(document.source, 0, len(document.text)).part(r"\b(?P<it>SELECT|CONSTRUCT)\b")
                return [NamePlace(document, start.start, start.end, name_place.name)]
        return []


def _same(first: NameOccurrence, second: NameOccurrence) -> bool:
    return (first.meaning, first.name, first.owner) == (second.meaning, second.name, second.owner)


def _defines(name_place: NamePlace) -> bool:
    return name_place.name.role != "reference"
