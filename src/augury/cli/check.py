"""`augury check`."""

from __future__ import annotations

import click

from augury.cli.options import compiled as compile_files
from augury.cli.options import program_options
from augury.core.errors import counted
from augury.terminal import show_diagnostics


@click.command()
@program_options
def check(program: tuple[str, ...], facts: tuple[str, ...], functions: tuple[str, ...]) -> None:
    """Check a program. Several files are one program."""
    compiled = compile_files(program, facts, functions)
    show_diagnostics(compiled.warnings)
    rules, queries = len(compiled.plan.rules), len(compiled.plan.graph_queries)
    parts = ["no errors", counted(len(compiled.warnings), "warning")]
    parts += [counted(rules, "rule")] if rules or not queries else []
    parts += [f"{queries} {'query' if queries == 1 else 'queries'}"] if queries else []
    click.echo(f"{', '.join(program)}: {', '.join(parts)}")
