"""`augury lineage`."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import click

from augury.cli.options import compiled, program_options
from augury.core.errors import RunError, nearest
from augury.explain.column_lineage import Lineage, lineage_mermaid, lineage_text, open_lineage
from augury.terminal import show


@click.command()
@program_options
@click.option(
    "--output", "names", multiple=True, metavar="NAME", help="Only these derived events; by default the outputs."
)
@click.option(
    "--format", "format_", type=click.Choice(["text", "json", "mermaid"]), default="text", help="json is OpenLineage's."
)
@click.option(
    "--namespace", default="augury", show_default=True, help="In JSON: the namespace of the job and its data."
)
@click.option("--job", metavar="NAME", help="In JSON: the name of the job; by default that of the file.")
def lineage(
    program: tuple[str, ...],
    facts: tuple[str, ...],
    functions: tuple[str, ...],
    names: tuple[str, ...],
    format_: str,
    namespace: str,
    job: str | None,
) -> None:
    """Show which columns of events and facts each output is made of, and which decide whether it is there."""
    plan = compiled(program, facts, functions).plan
    derived = {name for name, _ in plan.derived}
    for name in names:
        if name not in derived:
            close = nearest(name, derived)
            raise RunError(f"no rule derives `{name}`", hint=f"did you mean `{close}`?" if close else "")
    result = Lineage(replace(plan, outputs=names or plan.outputs))
    if format_ == "json":
        show(json.dumps(open_lineage(result, namespace, job or Path(program[0]).stem), indent=2, ensure_ascii=False))
    else:
        show(lineage_text(result) if format_ == "text" else lineage_mermaid(result))
