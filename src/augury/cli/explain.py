"""`augury explain`."""

from __future__ import annotations

import click

from augury.cli.options import compiled, fact_sources, policy_option, program_options
from augury.engine.batch import SessionModel
from augury.explain.plans import FORMATS
from augury.explain.sessions import explain_session
from augury.job import Job
from augury.settings import Settings, Task
from augury.sources.files import SourceFile
from augury.terminal import show


@click.command()
@program_options
@click.option("--format", "format_", type=click.Choice(FORMATS), default="text")
@click.option(
    "--events",
    multiple=True,
    metavar="SRC",
    help="Run the program over these events, and show what each operator costs.",
)
@policy_option
def explain(
    program: tuple[str, ...],
    format_: str,
    facts: tuple[str, ...],
    functions: tuple[str, ...],
    events: tuple[str, ...],
    policy: str | None,
) -> None:
    """Show how a program is read and what runs: operators, keys, horizons; with --events, what each operator costs."""
    source = compiled(program, facts, functions, policy)
    if not events:
        show(source.explain(format_))
        return
    files = tuple(SourceFile.parse(text, plan=source.plan) for text in events)
    answer = Job(Task(source, files, tuple(fact_sources(facts)), (), Settings.of(source))).evaluate(engine="embedded")
    assert isinstance(answer, SessionModel)
    show(explain_session(answer.session, format_))
