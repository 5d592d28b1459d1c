"""`augury checkpoint`."""

from __future__ import annotations

from pathlib import Path

import click

from augury.terminal import say

_folder = click.argument("folder", metavar="DIR", type=click.Path(path_type=Path, file_okay=False))


@click.group()
def checkpoint() -> None:
    """Look at the checkpoint of a stream, check it, or copy it. None of this needs Spark."""


@checkpoint.command()
@_folder
def show(folder: Path) -> None:
    """Show which rules a checkpoint has and since when, how far it is, its settings, and its size."""
    from augury.spark.checkpoint_report import report

    for line in report(folder):
        click.echo(line)


@checkpoint.command()
@_folder
def verify(folder: Path) -> None:
    """Compare all files that a restart needs with their checksums."""
    from augury.spark import checkpoint_report

    checkpoint_report.verify(folder)
    say("the checkpoint is whole")


@checkpoint.command()
@_folder
@click.argument("target", metavar="NEW", type=click.Path(path_type=Path))
def copy(folder: Path, target: Path) -> None:
    """Copy a checkpoint that no run uses; the copy appears when it is whole."""
    from augury.spark import checkpoint_report
    from augury.spark.lock import held

    with held(folder):
        checkpoint_report.copy(folder, target)
    say(f"copied to {target}")
