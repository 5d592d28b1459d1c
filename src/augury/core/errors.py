"""Errors and diagnostics: message, place in the source, hint, and how they are printed.

AuguryError                 the base class of all errors of Augury
├── ProgramError            the program is wrong; carries every diagnostic found
├── DataError               an event or fact file is wrong; names the file and the line
└── RunError                a run cannot continue: a user's function raised, an option is wrong
    ├── SnapshotError       bytes are not the snapshot that they should be
    └── UnusableError       a session cannot be used: a step failed, and could not be undone

CallbackErrors              an ExceptionGroup: what callbacks raised after a step that is taken
"""

from __future__ import annotations

import re
import reprlib
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from itertools import takewhile
from typing import Any, Literal

Severity = Literal["error", "warning"]


@dataclass(frozen=True)
class Source:
    """A piece of program text with its name, so that a span can show its line. `language` is "rules" or "spaseq"."""

    name: str
    text: str
    language: str = "rules"

    @cached_property
    def _line_starts(self) -> list[int]:
        return [0, *(i + 1 for i, c in enumerate(self.text) if c == "\n")]

    def position(self, offset: int) -> tuple[int, int]:
        """The line and column of an offset, both counted from one."""
        line = bisect_right(self._line_starts, offset)
        return line, offset - self._line_starts[line - 1] + 1

    def line(self, number: int) -> str:
        start = self._line_starts[number - 1]
        end = self._line_starts[number] - 1 if number < len(self._line_starts) else len(self.text)
        return self.text[start:end].rstrip("\r")


@dataclass(frozen=True)
class Span:
    """The characters `start` up to `end` of a source."""

    source: Source
    start: int
    end: int

    def __repr__(self) -> str:
        line, column = self.source.position(self.start)
        return f"{self.source.name}:{line}:{column}"

    def to(self, other: Span) -> Span:
        return Span(self.source, min(self.start, other.start), max(self.end, other.end))

    @property
    def text(self) -> str:
        return self.source.text[self.start : self.end]

    @property
    def quoted(self) -> str:
        """The text on one line, between backticks."""
        return f"`{' '.join(self.text.split())}`"

    def part(self, pattern: str) -> Span:
        """The first part that matches, or its group `it`; all of it where nothing does."""
        match = re.search(pattern, self.text, re.IGNORECASE | re.DOTALL)
        if match is None:
            return self
        start, end = match.span("it" if "it" in match.groupdict() else 0)
        return Span(self.source, self.start + start, self.start + end)

    def __contains__(self, other: Span) -> bool:
        return self.source is other.source and self.start <= other.start and other.end <= self.end


NOWHERE = Span(Source("", ""), 0, 0)


@dataclass(frozen=True)
class Note:
    """A second place that belongs to a diagnostic, or a remark without a place."""

    text: str
    span: Span | None = None


@dataclass(frozen=True)
class Edit:
    """A span, and the text that replaces it."""

    span: Span
    text: str


@dataclass(frozen=True)
class Fix:
    """What to change about a finding. A `safe` one leaves the answers of the program as they are."""

    title: str
    edits: tuple[Edit, ...]
    safe: bool = False


@dataclass(frozen=True)
class Diagnostic:
    """A finding: a code, what is wrong, where, what else to look at, what to do, and the change that does it."""

    code: str
    message: str
    span: Span
    notes: tuple[Note, ...] = ()
    hint: str | None = None
    fix: Fix | None = None

    @property
    def severity(self) -> Severity:
        return "error" if self.code.startswith("E") else "warning"

    def render(self) -> str:
        """The finding as text: header, source line with a caret, notes, hint."""
        return visible("\n".join(self._lines()))

    def _lines(self) -> list[str]:
        lines = [f"{self.severity}[{self.code}]: {self.message}", *_excerpt(self.span)]
        shown = {self.span}
        for note in self.notes:
            lines.append(f"  note: {note.text}")
            if note.span is not None and note.span not in shown:
                lines.extend(_excerpt(note.span))
                shown.add(note.span)
        if self.hint:
            lines.append(f"  hint: {self.hint}")
        return lines

    def _repr_html_(self) -> str:
        return f'<pre style="{_LETTERS}">{_coloured(self.render(), self.severity)}</pre>'


WIDEST = 160
_LETTERS = "font-family:ui-monospace,Menlo,Consolas,monospace;line-height:1.45;white-space:pre;overflow-x:auto;margin:0"
_COLOURS = {"error": "#d55e00", "warning": "#b8860b"}


def _coloured(text: str, severity: Severity) -> str:
    """A finding as HTML: its code and its carets in colour, its first line strong."""
    first, *rest = escape(text, quote=False).split("\n")
    code, _, message = first.partition(": ")
    colour = f'<span style="color:{_COLOURS[severity]}">{{}}</span>'
    rest = [re.sub(r"\^+$", lambda carets: colour.format(carets[0]), line) for line in rest]
    rest = [re.sub(r"^(  (?:hint|note):)", r"<b>\1</b>", line) for line in rest]
    return "\n".join([f"<b>{colour.format(code)}: {message}</b>", *rest])


# Controls but tab and line feed; what turns the direction of text; what is no character.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff\ufff9-\ufffb\ufffe\uffff]"
)


def visible(text: str) -> str:
    r"""A text that a terminal, a page and XML show as it is: controls and marks of direction are written as JSON has them.

    >>> print(visible("red \x1b[31m"))
    red \u001b[31m
    """
    if text.isprintable():
        return text
    return _UNSEEN.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def _printable(text: str) -> str:
    return text if text.isprintable() else "".join(c if c.isprintable() or c == "\t" else "�" for c in text)


def _excerpt(span: Span) -> Iterator[str]:
    """The line of a span with carets below; of a very long line, what is around the span."""
    if not span.source.name and not span.source.text:
        return
    line, column = span.source.position(span.start)
    text = span.source.line(line)
    width = max(1, min(span.end - span.start, len(text) - column + 1))
    start = column - 1
    if len(text) > WIDEST:
        cut = max(0, min(start - WIDEST // 4, len(text) - WIDEST))
        text = ("…" if cut else "") + text[cut : cut + WIDEST] + ("…" if cut + WIDEST < len(text) else "")
        start = start - cut + (1 if cut else 0)
        width = min(width, WIDEST - start + 1)
    text = _printable(text)
    gutter = " " * len(str(line))
    yield f"{gutter}--> {span.source.name}:{line}:{column}"
    yield f"{line} | {text}"
    pad = "".join("\t" if c == "\t" else " " for c in text[:start])
    yield f"{gutter} | {pad}{'^' * width}"


class AuguryError(Exception):
    """The root of the exception tree."""


class ProgramError(AuguryError):
    """The program is wrong. `diagnostics` has everything that was found, warnings included."""

    def __init__(self, diagnostics: Iterable[Diagnostic]) -> None:
        self.diagnostics = tuple(diagnostics)
        super().__init__(render_all(self.diagnostics))

    def _repr_html_(self) -> str:
        return "\n".join(diagnostic._repr_html_() for diagnostic in self.diagnostics)

    def _render_traceback_(self) -> list[str]:
        """The traceback in a notebook: the findings alone, since the Python frames do not help."""
        return str(self).split("\n")


class DataError(AuguryError):
    """An input file, row or value is wrong. `place` says where it was read; `code` is that of errors.md, if it has one."""

    def __init__(self, message: str, location: str = "", hint: str = "", code: str = "") -> None:
        message = cut(message)
        if code and not message.endswith(f"[{code}]"):  # the message goes on to errors that name the place
            message = f"{message} [{code}]"
        self.message, self.place, self.hint, self.code = message, location, hint, code
        super().__init__(
            visible((f"{location}: " if location else "") + message + (f"\n  hint: {hint}" if hint else ""))
        )

    def of(self, column: str) -> DataError:
        """The same mistake with the name of its column ahead, unless it begins with that."""
        named = self.message.startswith(f"`{column}`")
        return DataError(self.message if named else f"`{column}`: {self.message}", self.place, self.hint, self.code)

    def at(self, location: str) -> DataError:
        """The same mistake with the place where it was read."""
        return DataError(self.message, location, self.hint, self.code)


class RunError(AuguryError):
    """A run cannot continue."""

    def __init__(self, message: str, hint: str = "") -> None:
        message = cut(message)
        self.message, self.hint = message, hint
        super().__init__(visible(message + (f"\n  hint: {hint}" if hint else "")))


class UnusableError(RunError):
    """A step failed and could not be undone: the session cannot be used before it is. `code` is `S201`."""

    code = "S201"

    def __init__(self, message: str, hint: str = "") -> None:
        self.given = message
        super().__init__(f"{message} [{self.code}]", hint)

    def __reduce__(self) -> tuple[type[UnusableError], tuple[str, str]]:
        return type(self), (self.given, self.hint)


class CallbackErrors(ExceptionGroup[Exception]):
    """Functions of the user raised after a step. The step is taken; `changes` is what it has changed."""

    changes: Any = ()

    @classmethod
    def of(cls, errors: Sequence[Exception], changes: object) -> CallbackErrors:
        result = cls("a callback raised an exception; the step is applied, and its changes are in `changes`", errors)
        result.changes = changes
        return result

    def derive(self, excs: Sequence[Exception]) -> CallbackErrors:  # type: ignore[override]
        return self.of(excs, self.changes)


class SnapshotError(RunError):
    """A snapshot or a checkpoint cannot be resumed. `code` says of what kind the reason is."""

    def __init__(self, message: str, hint: str = "", code: str = "S101") -> None:
        self.given, self.code = message, code
        super().__init__(f"{message} [{code}]", hint)

    def __reduce__(self) -> tuple[type[SnapshotError], tuple[str, str, str]]:
        return type(self), (self.given, self.hint, self.code)


_SHALLOW = reprlib.Repr()


def brief(value: object, most: int = 60) -> str:
    """Anything as Python writes it, in a few words: cut where it is long, or nested without end.

    >>> brief(["a"] * 100)
    "['a', 'a', 'a', 'a', 'a', 'a', 'a', 'a', 'a', 'a', 'a', 'a',…"
    """
    if isinstance(value, int) and value.bit_length() > 1000:
        return f"an integer of {value.bit_length():,} bits"
    try:
        # Of a long text its beginning is enough: to write it all takes as much memory again.
        shown = repr(value[: most + 1] if isinstance(value, str) else value)
    except (RecursionError, ValueError):  # of a value in itself, or with such an integer
        shown = _SHALLOW.repr(value)
    return shown if len(shown) <= most else shown[:most] + "…"


MOST = 2000  # characters of a message


def cut(message: str, most: int = MOST) -> str:
    """A message without the middle of what is too long to read: values may have billions of characters.

    >>> cut("a" * 30, 20)
    'aaaaaaaaaa … (20 more characters) … '
    """
    if len(message) <= most:
        return message
    half = most // 2
    return f"{message[:half]} … ({len(message) - 2 * half:,} more characters) … {message[-half:]}"


def too_deep(what: str = "the rules, or the values that they handle, are") -> RunError:
    """The error of a program or a value that is nested too deeply for Python's stack."""
    return RunError(f"{what} nested too deeply", hint="derive events, or define predicates, from fewer parts each")


def render_all(diagnostics: Iterable[Diagnostic]) -> str:
    """Every finding, in the order of the text, a blank line between two."""
    return "\n\n".join(d.render() for d in diagnostics)


@dataclass
class Findings:
    """Collects diagnostics, so that all are reported together, each mistake once.

    A consequence of a mistake is not reported: names in `unread`, whose definitions could not be read, and
    statements that are not `sound`. IRIs are shown with their prefix.
    """

    items: list[Diagnostic] = field(default_factory=list)
    prefixes: dict[str, str] = field(default_factory=dict)
    unread: set[str] = field(default_factory=set)
    _seen: set[tuple[str, str, Span]] = field(default_factory=set)
    _wrong: dict[Source, list[tuple[int, int]]] = field(default_factory=dict)

    def add(
        self, code: str, message: str, span: Span, *notes: Note, hint: str | None = None, fix: Fix | None = None
    ) -> None:
        message = self._short(message)
        if (code, message, span) in self._seen:
            return
        self._seen.add((code, message, span))
        short = tuple(Note(self._short(note.text), note.span) for note in notes)
        self.items.append(Diagnostic(code, message, span, short, self._short(hint) if hint else None, fix))
        if self.items[-1].severity == "error":
            self.doubt(span)

    def _short(self, text: str) -> str:
        for prefix, iri in self.prefixes.items():
            if iri and iri in text:
                text = re.sub(rf"<?{re.escape(iri)}([A-Za-z_][\w-]*)>?", rf"{prefix}:\1", text)
        return _printable(text)

    def doubt(self, span: Span) -> None:
        """Keeps later checks silent about a place that is wrong, or whose meaning depends on something unread."""
        insort(self._wrong.setdefault(span.source, []), (span.start, span.end))

    def sound(self, span: Span) -> bool:
        """Whether nothing is wrong inside so far, so that a later check may speak about it."""
        places = self._wrong.get(span.source, [])
        first = bisect_left(places, (span.start, 0))
        inside = takewhile(lambda wrong: wrong[0] < max(span.end, span.start + 1), places[first:])
        return not any(end <= span.end for _, end in inside)

    @property
    def errors(self) -> list[Diagnostic]:
        return [d for d in self.items if d.severity == "error"]

    def sorted(self) -> tuple[Diagnostic, ...]:
        return tuple(sorted(self.items, key=lambda d: (d.span.source.name, d.span.start, d.code, d.message)))

    def raise_errors(self) -> None:
        if self.errors:
            raise ProgramError(self.sorted())


def counted(number: int, noun: str) -> str:
    """
    >>> counted(1, "argument"), counted(2, "argument")
    ('1 argument', '2 arguments')
    """
    return f"{number} {noun}{'' if number == 1 else 's'}"


def nearest(name: str, candidates: Iterable[str]) -> str | None:
    """A known name that was probably meant: a misspelling, or one of the two is a part of the other.

    >>> nearest("time", ["datetime", "speed"])
    'datetime'
    """
    names = sorted(candidates)
    small = name.lower()
    parts = (k for k in names if min(len(small), len(k)) > 3 and (small in k.lower() or k.lower() in small))
    return misspelt(name, names) or next(parts, None)


def misspelt(name: str, candidates: Iterable[str]) -> str | None:
    """A known name that is a slip or two away: fewer for short names, none for the shortest.

    >>> misspelt("wnid", ["wind", "fire"])
    'wind'
    """
    allowed = 0 if len(name) < 3 else 1 if len(name) < 6 else 2 if len(name) < 10 else 3
    close = [(_slips(name.lower(), k.lower()), k) for k in candidates if abs(len(k) - len(name)) <= allowed]
    slips, best = min(close, default=(allowed + 1, None))
    return best if slips <= allowed else None


class Spelling:
    """Finds misspellings among many names: only those that agree after a letter is left out of each are compared."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._names: dict[str, set[str]] = {}
        for name in names:
            self.add(name)

    def add(self, name: str) -> None:
        for key in _shortened(name):
            self._names.setdefault(key, set()).add(name)

    def misspelt(self, name: str, but: Iterable[str] = ()) -> str | None:
        result: set[str] = set().union(*(self._names.get(key, set()) for key in _shortened(name)))
        return misspelt(name, sorted(result.difference(but)))


def _shortened(name: str) -> set[str]:
    small = name.lower()
    return {small, *(small[:i] + small[i + 1 :] for i in range(len(small)))}


def _slips(x: str, y: str) -> int:
    """How many letters are missing, too many, wrong or swapped with the next one."""
    before: list[int] = []
    last = list(range(len(y) + 1))
    for i, a in enumerate(x, 1):
        row = [i]
        for j, b in enumerate(y, 1):
            row.append(min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (a != b)))
            if i > 1 and j > 1 and a == y[j - 2] and x[i - 2] == b:
                row[j] = min(row[j], before[j - 2] + 1)
        before, last = last, row
    return last[-1]
