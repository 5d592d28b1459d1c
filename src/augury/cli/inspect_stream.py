"""`augury goals` and `augury stats`: what a stream holds; and how `augury why` looks into one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from augury.cli.options import Cluster, TaskOptions, spark_options, task_options
from augury.core.errors import RunError
from augury.terminal import say, show, working

if TYPE_CHECKING:
    from augury.spark.inspection import BucketSession, StreamState

checkpoint_option = click.option(
    "--checkpoint", metavar="DIR", required=True, help="The checkpoint of a stream, which may run meanwhile."
)


def opened(options: TaskOptions, checkpoint: str, cluster: Cluster) -> Iterator[BucketSession]:
    """The sessions of a stream, to be read; its settings are those of the checkpoint."""
    yield from stream_state(options, checkpoint, cluster).sessions()


def stream_state(options: TaskOptions, checkpoint: str, cluster: Cluster) -> StreamState:
    """The state of a stream, to be read again and again."""
    from augury.cli.run import spark_problem

    failed = spark_problem()
    if failed is not None:
        raise RunError(failed.message, failed.hint.partition(";")[0])
    from augury.spark.checkpoint import StreamOptions
    from augury.spark.checkpoint_report import description
    from augury.spark.starting import open_session

    saved = description(Path(checkpoint))
    lengths = {name: saved.get(name) or None for name in ("lateness", "longest", "retention")}
    task = options.task(emit=saved["emission"], **{"lateness": "0s", **{k: v for k, v in lengths.items() if v}})
    stream_options = StreamOptions(task, Path(checkpoint), "-", saved.get("format", "jsonl"), master=cluster.master)
    stream_options.check_checkpoint(running=True)
    with working("starting Spark"):
        spark = open_session(cluster.master, cluster.conf, streaming_buckets=stream_options.buckets)
        from augury.spark.inspection import StreamState

        return StreamState(spark, stream_options)


@click.command()
@task_options
@checkpoint_option
@click.option("--rule", metavar="LABEL", help="Just those of one rule.")
@spark_options
def goals(options: TaskOptions, checkpoint: str, rule: str | None, cluster: Cluster) -> None:
    """Show the partial matches that a stream holds: what each one awaits, and how complete it is."""
    count = 0
    for bucket in opened(options, checkpoint, cluster):
        session = bucket.session
        labels = {r.label for r in session.program.plan.rules}
        for goal in session.goals(rule) if rule is None or rule in labels else []:
            count += 1
            show(goal.show(session.clock, session.now))
    say("nothing is open" if not count else f"{count:,} open")


@click.command()
@task_options
@checkpoint_option
@spark_options
def stats(options: TaskOptions, checkpoint: str, cluster: Cluster) -> None:
    """Show what each bucket of a stream has seen and what it holds, by operator and rule, as JSON lines."""
    for bucket in opened(options, checkpoint, cluster):
        show(json.dumps({"stage": bucket.stage, "bucket": bucket.bucket, **bucket.session.stats()}, ensure_ascii=False))
