"""The statements of a text that is being edited: each is read once, and again only when it changes.

Every statement has a source of its own, so that its tree does not depend on where it stands; `start` moves with what is
typed above it. Reading begins before the edit and ends where a statement begins that began there before.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import count

from augury.algebra.sparql_conditions import KNOWN_PREFIXES
from augury.core.errors import Diagnostic, Findings, Source, Span
from augury.editor.name_occurrences import NameOccurrence, occurrences
from augury.language.rules import syntax as s
from augury.language.rules.read import parse_statement
from augury.language.rules.statements import StatementText, chunks
from augury.lint.fixes import with_fix

_NUMBERS = count()
_FAR = re.compile(r"/\*|\*/|\\\n|\bgraph\b", re.IGNORECASE)


@dataclass(eq=False)
class WrittenStatement:
    """A piece of the text up to the next statement, what it reads as, and what is wrong with it.

    `findings` came from reading it, `meant` from checking the program; the latter are placed relative to the start.
    """

    start: int
    source: Source
    statements: tuple[s.Statement, ...]
    findings: tuple[Diagnostic, ...]
    meant: list[tuple[int, int, Diagnostic]] = field(default_factory=list)

    @property
    def text(self) -> str:
        return self.source.text

    @property
    def end(self) -> int:
        return self.start + len(self.source.text)

    @cached_property
    def names(self) -> list[NameOccurrence]:
        return [name for statement in self.statements for name in occurrences(statement)]

    @cached_property
    def defines(self) -> set[str]:
        """The predicates that it declares or derives."""
        return {name.name for name in self.names if name.meaning == "predicate" and name.role != "reference"}

    @cached_property
    def uses(self) -> set[str]:
        return {name.name for name in self.names if name.meaning == "predicate"}

    @property
    def declares(self) -> bool:
        return any(not isinstance(statement, s.RuleStatement | s.StaticRule) for statement in self.statements)


@dataclass
class StatementList:
    """The statements of a text, in its order."""

    name: str
    text: str = ""
    entries: list[WrittenStatement] = field(default_factory=list)
    prefixes: dict[str, str] = field(default_factory=dict)

    def change(self, text: str) -> list[WrittenStatement]:
        """Takes another text; the statements that were read for it."""
        start, old_end, new_end = changed_part(self.text, text)
        if self.entries and start == old_end == new_end:
            return []
        first = self._first(start, text) if self.entries else 0
        prefixes = {**KNOWN_PREFIXES, **self.prefixes}
        base = self.entries[first].start if self.entries else 0
        moved = len(text) - len(self.text)
        later = {entry.start + moved: index for index, entry in enumerate(self.entries) if entry.start >= old_end}
        spare = {entry.text: entry for entry in reversed(self.entries[first:])}
        new: list[WrittenStatement] = []
        read: list[WrittenStatement] = []
        remaining: list[WrittenStatement] = []
        for begin, chunk, raw in _pieces(self.name, text, base, prefixes):
            if begin >= new_end and begin in later and begin > base:
                remaining = self.entries[later[begin] :]
                break
            unchanged = spare.pop(raw, None)
            if unchanged is None or unchanged.start >= old_end:  # a later one of the same text stays where it is
                read.append(self._read(begin, chunk, raw, prefixes))
                new.append(read[-1])
            else:
                unchanged.start = begin
                new.append(unchanged)
        for entry in remaining:
            entry.start += moved
        declared = self._declared([*self.entries[:first], *new, *remaining])
        self.entries = [*self.entries[:first], *new, *remaining]
        self.text = text
        if declared != self.prefixes:  # what begins with a prefix reads differently
            self.prefixes, self.entries, self.text = declared, [], ""
            return self._again(text)
        return read

    def _first(self, start: int, text: str) -> int:
        """The statement from which the text is cut anew: a quotation mark may change what stands before it in its line,
        and the end of a comment or of a GRAPH in any line.
        """
        if _FAR.search(self.text) or _FAR.search(text):
            return 0
        return max(0, self._index(self.text.rfind("\n", 0, start)) - 1)

    def _again(self, text: str) -> list[WrittenStatement]:
        prefixes = {**KNOWN_PREFIXES, **self.prefixes}
        self.entries = [
            self._read(begin, chunk, raw, prefixes) for begin, chunk, raw in _pieces(self.name, text, 0, prefixes)
        ]
        self.text = text
        return self.entries

    def _declared(self, entries: list[WrittenStatement]) -> dict[str, str]:
        return {x.name: x.iri for entry in entries for x in entry.statements if isinstance(x, s.PrefixDecl)}

    def _index(self, offset: int) -> int:
        """The statement that an offset lies in."""
        return max((i for i, entry in enumerate(self.entries) if entry.start <= offset), default=0)

    def at_offset(self, offset: int) -> WrittenStatement | None:
        return self.entries[self._index(offset)] if self.entries else None

    def _read(self, begin: int, chunk: StatementText, raw: str, prefixes: dict[str, str]) -> WrittenStatement:
        source = Source(f"{self.name}·{next(_NUMBERS)}", raw)
        findings = Findings(prefixes=dict(prefixes))
        statements: tuple[s.Statement, ...] = ()
        if chunk.text.strip():
            statements = tuple(parse_statement(replace(chunk, start=0), source, findings, dict(prefixes)))
        prefixes.update({x.name: x.iri for x in statements if isinstance(x, s.PrefixDecl)})
        return WrittenStatement(begin, source, statements, tuple(map(with_fix, findings.sorted())))

    def module(self) -> s.Module:
        whole = Span(Source(self.name, self.text), 0, len(self.text))
        return s.Module(tuple(x for entry in self.entries for x in entry.statements), (), whole)


def _pieces(name: str, text: str, base: int, prefixes: dict[str, str]) -> Iterator[tuple[int, StatementText, str]]:
    """Each statement's start, its characters without comments, and all of its text."""
    before: StatementText | None = None
    part = text[base:]
    for chunk in chunks(Source(name, part), prefixes):
        if before is not None:
            yield base + before.start, before, part[before.start : chunk.start]
        before = chunk
    if before is not None:
        yield base + before.start, before, part[before.start :]


def changed_part(old: str, new: str) -> tuple[int, int, int]:
    """Where two texts begin to differ, and where they begin to agree for the rest: in the old one, in the new one.

    >>> changed_part("abcdef", "abXXef")
    (2, 4, 4)
    """
    shorter = min(len(old), len(new))
    start = _agreeing(shorter, lambda size: old[:size] == new[:size])
    tail = _agreeing(shorter - start, lambda size: size == 0 or old[-size:] == new[-size:])
    return start, len(old) - tail, len(new) - tail


def _agreeing(most: int, agrees: Callable[[int], bool]) -> int:
    """The greatest size for which two parts agree, of those up to a limit."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        if agrees(middle):
            low = middle
        else:
            high = middle - 1
    return low
