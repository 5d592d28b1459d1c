"""`augury console`."""

from __future__ import annotations

import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import click

from augury.cli.options import TaskOptions, gathered, until_option
from augury.core.errors import RunError, counted
from augury.terminal import say

if TYPE_CHECKING:
    from augury.console.watched import WatchedSession


@dataclass(frozen=True)
class ConsoleOptions(TaskOptions):
    """The program and its events, or a recording."""

    events: Annotated[
        tuple[str, ...],
        click.option(
            "--events",
            multiple=True,
            metavar="SRC",
            help="Events: a path or type=path, a file, a folder or a pattern. Of standard input, -, and of an address such "
            "as kafka://… they are shown as they come; of files with --follow.",
        ),
    ]


@click.command()
@gathered(ConsoleOptions, "options")
@until_option
@click.option("--lateness", metavar="D", help="How late an event may arrive; by default any event is in time.")
@click.option("--follow", is_flag=True, help="Show what is added to files, too, as it comes.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="The port; by default a free one.")
@click.option("--browser/--no-browser", default=True, help="Whether to open the page in a browser.")
def console(
    options: ConsoleOptions, until: str | None, lateness: str | None, follow: bool, port: int, browser: bool
) -> None:
    """Open a page that shows what a program does with its events: what was detected, when, why, and why not.

    FILE is a program, or a recording that was saved on the page.
    """
    try:
        from augury.console.serving import ConsoleServer
    except ModuleNotFoundError as error:
        raise RunError(f"the console needs {error.name}", hint="pip install 'augury[console]'") from None
    with _watched(options, until, lateness, follow) as watched:
        server = ConsoleServer(watched, port)
        said = "waiting for events" if watched.live else counted(len(watched.steps), "step")
        say(f"{said}; the console is at\n{server.address}")
        if browser:
            webbrowser.open(server.address)
        server.run()


@contextmanager
def _watched(
    options: ConsoleOptions, until: str | None, lateness: str | None, follow: bool
) -> Iterator[WatchedSession]:
    """The session that is shown: of a recording, of a history, or of what comes."""
    from augury.console.live_feed import LiveFeed, is_live
    from augury.console.program_text import ProgramText
    from augury.console.recording import ENDING, Recording
    from augury.console.serving import watched_history, watched_recording

    recordings = [name for name in options.program if name.endswith(ENDING)]
    if recordings:
        if len(options.program) > 1 or options.events:
            raise RunError("a recording has its program and its events", hint=f"augury console {recordings[0]}")
        yield watched_recording(Recording.of_bytes(_read(Path(recordings[0])), options.functions))
        return
    if not options.events:
        raise RunError("there are no events", hint="name them: --events FILE, or --events - for standard input")
    text = ProgramText.of(options.compiled, options.functions, options.policy)
    live = [address for address in options.events if follow or is_live(address)]
    if not live:
        yield watched_history(options.task(lateness=lateness), text, until)
        return
    if len(live) < len(options.events):
        raise RunError("files are read once, and the other sources are live", hint="add --follow")
    if until is not None:
        raise RunError("--until is for a history", hint="leave it out")
    task = options.task(lateness=lateness)
    feed = LiveFeed(task, text, live, task.events[0].names)
    feed.start()
    try:
        yield feed.watched
    finally:
        feed.stop()


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise RunError(f"{path} cannot be read: {error.strerror}") from None
