"""`augury explain`."""

from __future__ import annotations

import click

from augury.cli.options import compiled, policy_option, program_options
from augury.explain.plans import FORMATS
from augury.terminal import show


@click.command()
@program_options
@click.option("--format", "format_", type=click.Choice(FORMATS), default="text")
@policy_option
def explain(
    program: tuple[str, ...], format_: str, facts: tuple[str, ...], functions: tuple[str, ...], policy: str | None
) -> None:
    """Show how a program is read: its plan, keys, horizons and strata."""
    show(compiled(program, facts, functions, policy).explain(format_))
