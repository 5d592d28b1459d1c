"""`augury demo`."""

from __future__ import annotations

from importlib.resources import as_file, files

import click

from augury import sinks
from augury.cli.options import compiled
from augury.cli.run import choose_engine, width
from augury.explain.why import derivation_tree, show_tree
from augury.job import Job
from augury.model import Event
from augury.settings import Task
from augury.sources import SourceFile
from augury.terminal import working


@click.command()
@click.option("--engine", type=click.Choice(["spark", "embedded"]), help="By default Spark, where there is Java.")
def demo(engine: str | None) -> None:
    """Run a small example that comes with Augury."""
    with as_file(files("augury").joinpath("demo")) as folder:
        program, events = folder / "fire.aug", folder / "fire.jsonl"
        click.echo(f"# The program ({program.name}): rules over wind, fires and stations\n")
        click.echo(program.read_text(encoding="utf-8"))
        task = Task(compiled([str(program)]), (SourceFile(str(events)),))
        job = Job(task)
        model = job.evaluate(engine="embedded")
        found, where = model.events, "in this process"
        if choose_engine(engine, []) == "spark":
            found, where = _demo_on_spark(task), "on Spark"
        click.echo(f"# {len(job.history)} events ({events.name}); Augury detects, {where}:\n")
        click.echo(sinks.show_table(sinks.answers_of(found, task.plan, job.clock), width("-")))
        alarm = next(e for e in found if e.type == "fire_alarm")
        click.echo("# Why the first alarm?\n")
        click.echo(show_tree(derivation_tree(model, alarm), job.clock))
        click.echo("\n# Try it yourself (augury --help):")
        click.echo("  augury run PROGRAM.aug --events EVENTS.jsonl")
        click.echo("  augury stream PROGRAM.aug --events FOLDER --checkpoint DIR --output DEST")


def _demo_on_spark(task: Task) -> list[Event]:
    with working("starting Spark, which takes some seconds"):
        from augury.spark.starting import open_session

        spark = open_session("local[2]")
        from augury.spark.job import SparkJob
    with working("evaluating on Spark"):
        return SparkJob(spark, task).evaluate().events
