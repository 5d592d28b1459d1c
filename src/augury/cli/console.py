"""`augury console`."""

from __future__ import annotations

import webbrowser

import click

from augury.cli.options import TaskOptions, task_options, until_option
from augury.core.errors import RunError
from augury.terminal import say


@click.command()
@task_options
@until_option
@click.option("--lateness", metavar="D", help="How late an event may arrive; by default any event is in time.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="The port; by default a free one.")
@click.option("--browser/--no-browser", default=True, help="Whether to open the page in a browser.")
def console(options: TaskOptions, until: str | None, lateness: str | None, port: int, browser: bool) -> None:
    """Open a page that shows what a program does with its events: what was detected, when, why, and why not."""
    try:
        from augury.console.serving import ConsoleServer, watched_history
        from augury.console.views import Views
    except ModuleNotFoundError as error:
        raise RunError(f"the console needs {error.name}", hint="pip install 'augury[console]'") from None
    watched = watched_history(options.task(lateness=lateness), until)
    server = ConsoleServer(Views(watched), port)
    say(f"{len(watched.steps):,} steps; the console is at\n{server.address}")
    if browser:
        webbrowser.open(server.address)
    server.run()
