"""What the command line says on standard error: diagnostics, what was left out, and that it is still working."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING

import click

from augury.core.errors import Diagnostic, visible

if TYPE_CHECKING:
    from rich.status import Status


def is_terminal() -> bool:
    """Whether standard output is a terminal; it may also be closed."""
    return sys.stdout is not None and sys.stdout.isatty()


def coloured(text: str, colour: str) -> str:
    return click.style(text, fg=colour, bold=True) if sys.stderr.isatty() else text


def say(text: str, ahead: str = "") -> None:
    """A line on standard error. What data may have in it is shown as text; `ahead` may have colours."""
    click.echo(ahead + visible(text), err=True)


def show(text: str, newline: bool = True) -> None:
    """A text on standard output, whose controls a terminal would obey."""
    click.echo(visible(text), nl=newline)


def show_diagnostics(diagnostics: Iterable[Diagnostic]) -> None:
    for diagnostic in diagnostics:
        header, _, rest = diagnostic.render().partition("\n")
        severity, colon, message = header.partition(": ")
        colour = "red" if diagnostic.severity == "error" else "yellow"
        say(colon + message + ("\n" + rest if rest else "") + "\n", coloured(severity, colour))


def warn(what: str, problems: Sequence[str], most: int = 5, count: int | None = None) -> None:
    """A warning with a few examples; `count` may be larger than their number."""
    number = len(problems) if count is None else count
    if number:
        say(f": {what}: {number}", coloured("warning", "yellow"))
        for problem in problems[:most]:
            say(f"  {problem}")
        if number > min(most, len(problems)):
            say(f"  … and {number - min(most, len(problems))} more")


def working(text: str) -> AbstractContextManager[object]:
    """A spinner while something takes long; nothing where standard error is not a terminal."""
    return _status(text) if sys.stderr.isatty() else nullcontext()


@contextmanager
def progress(text: str) -> Iterator[Callable[[str], None]]:
    """A line that is updated while something runs; nothing where standard error is not a terminal."""
    if not sys.stderr.isatty():
        yield lambda text: None
        return
    from rich.text import Text

    with _status(text) as status:
        yield lambda text: status.update(Text(visible(text)))


@contextmanager
def status_line(text: str, seconds: float = 10.0) -> Iterator[Callable[[str], None]]:
    """A line that is updated on a terminal; elsewhere a line of its own on standard error, one every ten seconds."""
    if sys.stderr.isatty():
        with _status(text) as status:
            yield status.update
        return
    say(text)
    due = time.monotonic() + seconds

    def show(text: str) -> None:
        nonlocal due
        if time.monotonic() >= due:
            say(text)
            due = time.monotonic() + seconds

    yield show


def _status(text: str) -> Status:
    from rich.console import Console  # only a terminal is worth the time that loading it takes
    from rich.text import Text

    return Console(stderr=True).status(Text(visible(text)))
