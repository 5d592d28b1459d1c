"""`augury fmt`."""

from __future__ import annotations

import sys

import click

from augury import sinks
from augury.cli.options import files_argument, program_sources
from augury.terminal import is_terminal, say, show
from augury.tools.formatting import formatted


@click.command()
@files_argument
@click.option("--check", "only_check", is_flag=True, help="Change nothing; exit with 1 if a file would change.")
def fmt(program: tuple[str, ...], only_check: bool) -> None:
    """Format programs in place; - formats standard input to standard output."""
    changed = 0
    for path, source in zip(program, program_sources(program), strict=True):
        text = formatted(source)
        if path == "-":
            show(text, newline=False) if is_terminal() else click.echo(text, nl=False)
        elif text != source.text:
            changed += 1
            if not only_check:
                sinks.write_text(text, path, sys.stdout)
            say(f"{path}: {'would be formatted' if only_check else 'formatted'}")
    if only_check and changed:
        raise click.exceptions.Exit(1)
