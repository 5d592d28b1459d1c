"""`augury diff`."""

from __future__ import annotations

import json
from dataclasses import replace

import click

from augury.cli.options import Cluster, TaskOptions, program_compiler, spark_options, task_options, until_option
from augury.compiled import check_clock
from augury.core.errors import RunError
from augury.engine import batch
from augury.engine.session import Session
from augury.job import Job
from augury.program import Program
from augury.terminal import show, working
from augury.tools.program_versions import versions
from augury.tools.version_diff import (
    Kind,
    VersionDiff,
    compare_versions,
    explained_difference,
    reading_program,
    spans_around,
)


@click.command()
@task_options
@until_option
@click.option("--engine", type=click.Choice(["embedded", "spark"]), default="embedded", show_default=True)
@spark_options
@click.option(
    "--samples",
    type=click.IntRange(0),
    default=3,
    show_default=True,
    metavar="N",
    help="Answers of each type and kind that are explained.",
)
@click.option(
    "--fail-on",
    multiple=True,
    type=click.Choice(["gained", "lost", "changed", "any"]),
    help="Exit with 1 where answers are gained, lost, or have another interval.",
)
@click.option("--format", "format_", type=click.Choice(["text", "json"]), default="text")
def diff(
    options: TaskOptions,
    until: str | None,
    engine: str,
    cluster: Cluster,
    samples: int,
    fail_on: tuple[str, ...],
    format_: str,
) -> None:
    """Compare two versions of a program, OLD and NEW, over one history.

    A version is a file, a folder, or either in a git revision: HEAD~1:fire.aug.
    """
    if len(options.program) != 2:
        raise click.UsageError("give two versions: augury diff OLD NEW --events …")
    old, new = versions(*options.program, program_compiler(options.facts, options.functions, options.policy))
    outputs = tuple(dict.fromkeys((*old.plan.outputs, *new.plan.outputs)))
    if engine == "spark":
        difference = _on_spark(options, cluster, (old, new), until, outputs, samples)
    else:
        difference = _embedded(options, (old, new), until, outputs, samples)
    show(json.dumps(difference.as_json(), indent=2, ensure_ascii=False) if format_ == "json" else str(difference))
    kinds: tuple[Kind, ...] = ("gained", "lost", "changed")
    if any(difference.count(kind) for kind in kinds if kind in fail_on or "any" in fail_on):
        raise click.exceptions.Exit(1)


next(parameter for parameter in diff.params if parameter.name == "program").metavar = "OLD NEW"


def _embedded(
    options: TaskOptions, versions: tuple[Program, Program], until: str | None, outputs: tuple[str, ...], samples: int
) -> VersionDiff:
    """Runs both versions in this process over a history that is read once, where both read it alike."""
    shared = reading_program(*versions)
    jobs = [Job(options.task(program)) for program in ((shared,) if shared is not None else versions)]
    runs: list[Session] = []
    for program, job in zip(versions, jobs * 2 if len(jobs) == 1 else jobs, strict=True):
        facts = job.facts + job.graphs.facts(program.plan, job.facts)
        limits, retention = job.settings.limits, job.settings.retention
        end = job.time("--until", until)
        check_clock(program, job.clock.kind)
        with working(f"evaluating {len(job.history):,} events"):
            model = batch.evaluate(program, job.history, job.clock, facts, end, None, retention, limits)
        assert isinstance(model, batch.SessionModel)
        runs.append(model.session)
        job.report(model)
    old, new = runs
    last = jobs[0].time("--until", until)
    return compare_versions(old.events(last), new.events(last), jobs[0].clock, outputs, (old, new), samples)


def _on_spark(
    options: TaskOptions,
    cluster: Cluster,
    versions: tuple[Program, Program],
    until: str | None,
    outputs: tuple[str, ...],
    samples: int,
) -> VersionDiff:
    """Runs both versions on Spark: the counts are exact; samples are explained with the events around them."""
    with working("starting Spark"):
        from augury.spark.starting import open_session

        spark = open_session(cluster.master, cluster.conf)
        from augury.spark.job import SparkJob
    answers, jobs = [], []
    for program in versions:
        with working("evaluating on Spark"):
            job = SparkJob(spark, options.task(program), until)
            answers.append(job.evaluate().answers(program.plan, job.clock))
            jobs.append(job)
    difference = compare_versions(answers[0], answers[1], jobs[0].clock, outputs, most=samples)
    if not difference.samples:
        return difference
    try:
        spans = spans_around(difference, versions, all(job.pipeline.points for job in jobs))
        with working("fetching the events around samples"):
            events = [job.events_between(spans) for job in jobs]
    except RunError as error:
        return replace(difference, unexplained=error.message)
    end = max(last for _, last in spans)
    last = min(end, job.detections.until) if job.detections.until is not None else end
    models = (
        batch.evaluate(program, near, job.clock, job.facts, last, None, job.pipeline.retention)
        for program, job, near in zip(versions, jobs, events, strict=True)
    )
    old, new = (model.session for model in models if isinstance(model, batch.SessionModel))
    return explained_difference(difference, (old, new))
