"""`augury new`."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import click

from augury.core.errors import RunError

_COPIES = {"events.csv.in": ("events.csv", "incoming/events.csv")}  # a stream reads the events of a folder


@click.command()
@click.argument("folder")
def new(folder: str) -> None:
    """Write a small project into FOLDER: a program, events, facts, tests and a notebook, which run at once."""
    target = Path(folder)
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise RunError(f"{folder} exists already", hint="name a new folder, or an empty one")
    try:
        target.mkdir(parents=True, exist_ok=True)
        for template in sorted(files("augury").joinpath("project").iterdir(), key=lambda path: path.name):
            names = _COPIES.get(template.name, (template.name.removesuffix(".in"),))
            for name in names:
                (target / name).parent.mkdir(exist_ok=True)
                (target / name).write_text(template.read_text(encoding="utf-8"), encoding="utf-8")
                click.echo(f"  {target / name}")
    except OSError as error:
        raise RunError(f"{error.filename}: cannot be written: {error.strerror}") from None
    click.echo(f"\nTry it:\n  cd {folder}")
    click.echo("  augury run rules.aug --events events.csv --facts price=prices.csv\n  augury test")
