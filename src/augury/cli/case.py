"""`augury case`."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from augury import sinks
from augury.cli.options import TaskOptions, task_options, until_option
from augury.cli.why import event_option
from augury.core.errors import RunError, counted
from augury.core.model import Fact
from augury.explain.why_not import read_asked
from augury.job import Job
from augury.terminal import say, show, working
from augury.tools.minimal_case import CaseSearch


@click.command()
@task_options
@until_option
@event_option
@click.option("--output", default="-", metavar="FILE", help="The file of the case; - is standard output.")
def case(options: TaskOptions, until: str | None, wanted: str, output: str) -> None:
    """Write the smallest test case in which an event is detected; or, if it was not, in which it is missing as well."""
    job = Job(options.task())
    facts = tuple(job.facts + job.graphs.facts(job.plan, job.facts))
    graphs: tuple[Fact, ...] = ()
    rdf = None
    if job.plan.graph_queries:
        facts, graphs, rdf = tuple(job.facts), facts[len(job.facts) :], _rdf_file(options, output)
    end, retention = job.time("--until", until), job.settings.retention
    search = CaseSearch(options.compiled, job.clock, facts, end, retention, graphs, rdf)
    history = job.history.items()
    asked = read_asked(wanted, job.clock, job.plan.prefixes)
    answers = [event for event in search.run(history, facts).events(search.until) if asked.is_met(event)]
    with working("leaving out events"):
        smallest_case = search.of_answer(history, wanted, answers[0]) if answers else search.of_miss(history, wanted)
    text = smallest_case.toml(_program(options.program, output))
    if output == "-":
        show(text, newline=False)
    else:
        sinks.write_text(text, output, sys.stdout)
    rows = f" and {counted(len(smallest_case.facts), 'fact')}" if facts else ""
    say(
        f"{counted(len(smallest_case.events), 'event')}{rows} of {len(history):,}{f' and {len(facts):,}' if facts else ''}"
    )


def _rdf_file(options: TaskOptions, output: str) -> str | None:
    """The RDF file of a query, as it is named beside the case: a graph is not taken apart."""
    files = (*options.rdf, *options.rdf_plain)
    if len(files) > 1 or len(options.program) > 1:
        raise RunError("a case of queries has one file of queries and one of RDF", "join them into one")
    return os.path.relpath(files[0], Path(output).parent if output != "-" else Path()) if files else None


def _program(paths: Sequence[str], output: str) -> str:
    """The line of the case that names the program: files lie beside the case, or on the way from it."""
    folder = Path(output).parent if output != "-" else Path()
    names = [os.path.relpath(path, folder) for path in paths]
    if len(names) == 1:
        return f'program = "{names[0]}"'
    return "program = '" + " ".join(f'include "{name}".' for name in names) + "'"
