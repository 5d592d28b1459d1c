"""`augury profile`."""

from __future__ import annotations

import json
import sys

import click

from augury import sinks
from augury.cli.options import TaskOptions, as_of_option, task_options, until_option
from augury.engine.batch import SessionModel
from augury.explain.costs import Profile
from augury.explain.costs import profile as profile_of
from augury.job import Job
from augury.terminal import say, show


@click.command()
@task_options
@until_option
@as_of_option
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@click.option("--flame", metavar="FILE.svg", help="Also draw a flame graph.")
def profile(options: TaskOptions, until: str | None, as_of: str | None, as_json: bool, flame: str | None) -> None:
    """Run a program, and show what each rule and operator costs, the dearest first."""
    job = Job(options.task())
    model = job.evaluate(until, as_of, engine="embedded")
    assert isinstance(model, SessionModel)
    costs = profile_of(model.session)
    show_profile(costs, as_json, flame)
    job.report(model, as_of)


def show_profile(costs: Profile, as_json: bool = False, flame: str | None = None) -> None:
    show(json.dumps(costs.as_json(), indent=2, ensure_ascii=False) if as_json else str(costs))
    if flame is not None:
        sinks.write_text(costs.flame_graph(), flame, sys.stdout)
        say(f"drew {flame}")
