"""Where a mistake is, what it is, and how it is shown.

AuguryError                 anything that Augury raises on purpose
├── ProgramError            the program is wrong; carries every diagnostic found
├── DataError               an event or fact file is wrong; names the file and the line
└── RunError                a run cannot go on: a user's function raised, an option does not fit
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property
from typing import Literal

Severity = Literal["error", "warning"]


@dataclass(frozen=True)
class Source:
    """A piece of program text with its name, so that a span can show its line."""

    name: str
    text: str

    @cached_property
    def _line_starts(self) -> list[int]:
        return [0, *(i + 1 for i, c in enumerate(self.text) if c == "\n")]

    def place(self, offset: int) -> tuple[int, int]:
        """The line and column of an offset, both counted from one."""
        line = bisect_right(self._line_starts, offset)
        return line, offset - self._line_starts[line - 1] + 1

    def line(self, number: int) -> str:
        return self.text.splitlines()[number - 1] if self.text else ""


@dataclass(frozen=True)
class Span:
    """The characters `start` up to `end` of a source."""

    source: Source
    start: int
    end: int

    def __repr__(self) -> str:
        line, column = self.source.place(self.start)
        return f"{self.source.name}:{line}:{column}"

    def to(self, other: Span) -> Span:
        return Span(self.source, min(self.start, other.start), max(self.end, other.end))

    @property
    def text(self) -> str:
        return self.source.text[self.start : self.end]


NOWHERE = Span(Source("", ""), 0, 0)


@dataclass(frozen=True)
class Note:
    """A second place that belongs to a diagnostic, or a remark without a place."""

    text: str
    span: Span | None = None


@dataclass(frozen=True)
class Diagnostic:
    """One finding: a code, what is wrong, where, what else to look at, and what to do."""

    code: str
    message: str
    span: Span
    notes: tuple[Note, ...] = ()
    hint: str | None = None

    @property
    def severity(self) -> Severity:
        return "warning" if self.code.startswith("W") else "error"

    def render(self) -> str:
        """The finding as text: header, source line with a caret, notes, hint."""
        lines = [f"{self.severity}[{self.code}]: {self.message}", *_excerpt(self.span)]
        shown = {self.span}
        for note in self.notes:
            lines.append(f"  note: {note.text}")
            if note.span is not None and note.span not in shown:
                lines.extend(_excerpt(note.span))
                shown.add(note.span)
        if self.hint:
            lines.append(f"  hint: {self.hint}")
        return "\n".join(lines)


def _excerpt(span: Span) -> Iterator[str]:
    if not span.source.name and not span.source.text:
        return
    line, column = span.source.place(span.start)
    text = span.source.line(line) if line <= len(span.source.text.splitlines()) else ""
    width = max(1, min(span.end - span.start, len(text) - column + 1))
    gutter = " " * len(str(line))
    yield f"{gutter}--> {span.source.name}:{line}:{column}"
    yield f"{line} | {text}"
    pad = "".join("\t" if c == "\t" else " " for c in text[: column - 1])
    yield f"{gutter} | {pad}{'^' * width}"


class AuguryError(Exception):
    """The root of the exception tree."""


class ProgramError(AuguryError):
    """The program is wrong. `diagnostics` has everything that was found, warnings included."""

    def __init__(self, diagnostics: Iterable[Diagnostic]) -> None:
        self.diagnostics = tuple(diagnostics)
        super().__init__(render_all(self.diagnostics))


class DataError(AuguryError):
    """An input file, row or value is wrong. `place` says where it was read."""

    def __init__(self, message: str, place: str = "", hint: str = "") -> None:
        self.message, self.place, self.hint = message, place, hint
        super().__init__((f"{place}: " if place else "") + message + (f"\n  hint: {hint}" if hint else ""))


class RunError(AuguryError):
    """A run cannot go on."""

    def __init__(self, message: str, hint: str = "") -> None:
        self.message, self.hint = message, hint
        super().__init__(message + (f"\n  hint: {hint}" if hint else ""))


def render_all(diagnostics: Iterable[Diagnostic]) -> str:
    """Every finding, in the order of the text, a blank line between two."""
    return "\n\n".join(d.render() for d in diagnostics)


@dataclass
class Findings:
    """Collects diagnostics, so that all are reported together."""

    items: list[Diagnostic] = field(default_factory=list)

    def add(
        self,
        code: str,
        message: str,
        span: Span,
        *notes: Note,
        hint: str | None = None,
    ) -> None:
        finding = Diagnostic(code, message, span, notes, hint)
        if finding not in self.items:
            self.items.append(finding)

    @property
    def errors(self) -> list[Diagnostic]:
        return [d for d in self.items if d.severity == "error"]

    def sorted(self) -> tuple[Diagnostic, ...]:
        return tuple(sorted(self.items, key=lambda d: (d.span.source.name, d.span.start, d.code, d.message)))

    def raise_errors(self) -> None:
        if self.errors:
            raise ProgramError(self.sorted())


def nearest(name: str, known: Iterable[str], alike: float = 0.6) -> str | None:
    """A known name that was probably meant.

    >>> nearest("wnid", ["wind", "fire"])
    'wind'
    """
    names = {k.lower(): k for k in sorted(known, reverse=True)}
    match = get_close_matches(name.lower(), names, n=1, cutoff=alike) if len(name) > 1 else []
    return names[match[0]] if match else None
