"""`augury fmt`."""

from __future__ import annotations

import sys

import click

from augury import sinks
from augury.cli.options import files_argument, program_sources
from augury.errors import Findings
from augury.language.read import read
from augury.language.show import show_module
from augury.terminal import say


@click.command()
@files_argument
@click.option("--check", "only_check", is_flag=True, help="Change nothing; exit with 1 if a file would change.")
def fmt(program: tuple[str, ...], only_check: bool) -> None:
    """Format programs in place; - formats standard input to standard output."""
    changed = 0
    for path, source in zip(program, program_sources(program), strict=True):
        findings = Findings()
        module = read(source, findings)[-1]
        findings.raise_errors()
        text = show_module(module)
        if path == "-":
            click.echo(text, nl=False)
        elif text != source.text:
            changed += 1
            if not only_check:
                sinks.write_text(text, path, sys.stdout)
            say(f"{path}: {'would be formatted' if only_check else 'formatted'}")
    if only_check and changed:
        raise click.exceptions.Exit(1)
