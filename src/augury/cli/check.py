"""`augury check`."""

from __future__ import annotations

import click

from augury.cli.options import compiled as compile_files
from augury.cli.options import program_options
from augury.errors import counted
from augury.terminal import show_diagnostics


@click.command()
@program_options
def check(program: tuple[str, ...], facts: tuple[str, ...], functions: tuple[str, ...]) -> None:
    """Check a program. Several files are one program."""
    compiled = compile_files(program, facts, functions)
    show_diagnostics(compiled.warnings)
    rules, warnings = len(compiled.plan.rules), len(compiled.warnings)
    click.echo(f"{', '.join(program)}: no errors, {counted(warnings, 'warning')}, {counted(rules, 'rule')}")
