"""`augury console`."""

from __future__ import annotations

import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import click

from augury.cli.checkpoint_options import CheckpointOptions
from augury.cli.options import Cluster, gathered, spark_options, until_option
from augury.core.errors import RunError, counted
from augury.terminal import say, working

if TYPE_CHECKING:
    from augury.console.watched import WatchedSession
    from augury.console.watched_lanes import WatchedLanes


@dataclass(frozen=True)
class ConsoleOptions(CheckpointOptions):
    """The program and its events, a recording, or the checkpoint of a stream."""

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
@spark_options
def console(
    options: ConsoleOptions,
    until: str | None,
    lateness: str | None,
    follow: bool,
    port: int,
    browser: bool,
    cluster: Cluster,
) -> None:
    """Open a page that shows what a program does with its events: what was detected, when, why, and why not.

    FILE is a program, or a recording that was saved on the page; with --checkpoint, none is needed.
    """
    try:
        from augury.console.serving import ConsoleServer
    except ModuleNotFoundError as error:
        raise RunError(f"the console needs {error.name}", hint="pip install 'augury[console]'") from None
    if options.checkpoint is not None:
        watching = _watched_stream(options, cluster)
    else:
        watching = _watched(options, until, lateness, follow)
    with watching as watched:
        server = ConsoleServer(watched, port)
        said = watched.title or ("waiting for events" if watched.live else counted(len(watched.steps), "step"))
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

    if not options.program:
        raise RunError(
            "there is no program", hint="name its file, a recording, or the checkpoint of a stream: --checkpoint DIR"
        )
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


@contextmanager
def _watched_stream(options: ConsoleOptions, cluster: Cluster) -> Iterator[WatchedLanes]:
    """A stream on Spark, beside which the console stands."""
    if options.checkpoint is not None and any(name.endswith(".recording") for name in options.program):
        raise RunError("a recording is no stream", hint="leave --checkpoint out")
    from augury.cli.inspect_stream import stream_state
    from augury.console.input_log import Setup
    from augury.console.program_text import ProgramText
    from augury.console.watched_lanes import HeldSession
    from augury.console.watched_stream import StreamWatcher, WatchedStream, WrittenAnswers
    from augury.spark.checkpoint_files import last_batches, spark_home

    assert options.checkpoint is not None
    checkpoint, saved = Path(options.checkpoint), options.saved
    state = stream_state(options, cluster)
    task = state.task
    text = ProgramText.of(options.compiled, options.functions)
    setup = Setup(text, state.clock, (), task.settings)
    folders = {
        name: folder for name, folder in saved.get("folders", {}).items() if name != "late" and _is_local(folder)
    }
    written = WrittenAnswers(task, setup, folders, saved.get("format", "jsonl"))

    def buckets() -> list[HeldSession]:
        return [HeldSession(bucket.session, bucket.stage, bucket.extra) for bucket in state.sessions()]

    watched = WatchedStream(setup, lambda: last_batches(spark_home(checkpoint, saved)[0])[1], buckets, written)
    with working("reading the state"):
        watched.look()
    watcher = StreamWatcher(watched)
    watcher.start()
    try:
        yield watched
    finally:
        watcher.stop()


def _is_local(folder: str) -> bool:
    return "://" not in folder.removeprefix("file://")


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise RunError(f"{path} cannot be read: {error.strerror}") from None
