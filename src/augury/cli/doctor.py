"""`augury doctor`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from augury.cli.options import compiled, fact_sources, functions_option, include_option
from augury.service.diagnosis import diagnosis
from augury.terminal import coloured, show

_COLOURS = {"ok": "green", "warning": "yellow", "error": "red"}


@click.command()
@click.argument("program", nargs=-1, metavar="[FILE...]")
@include_option
@click.option(
    "--from", "sources", multiple=True, metavar="ADDRESS", help="A source of events, as `augury live` takes it."
)
@click.option("--to", "sinks", multiple=True, metavar="ADDRESS", help="A sink of answers.")
@click.option("--facts", multiple=True, metavar="NAME=ADDRESS", help="A table that is followed.")
@click.option("--state", metavar="DIR", help="The directory of the service.")
@functions_option
def doctor(
    program: tuple[str, ...],
    sources: tuple[str, ...],
    sinks: tuple[str, ...],
    facts: tuple[str, ...],
    state: str | None,
    functions: tuple[str, ...],
) -> None:
    """Check what a service needs: Python, Java, Spark, disk and clock; whether each ADDRESS can be reached and used; and
    whether a sample of its events fits the program. It says what is wrong, and how to mend it; then the exit code is 1.
    """
    named = fact_sources(facts)
    checked = compiled(program, facts, functions) if program else None
    errors = 0
    for result in diagnosis(checked, sources, sinks, dict(named), None if state is None else Path(state)):
        mark = f"{result.verdict:<8}"
        show(
            (coloured(mark, _COLOURS[result.verdict]) if sys.stdout.isatty() else mark)
            + f"{result.what}: {result.seen}"
        )
        if result.remedy:
            show(f"{'':8}  {result.remedy}")
        errors += result.verdict == "error"
    if errors:
        sys.exit(1)
