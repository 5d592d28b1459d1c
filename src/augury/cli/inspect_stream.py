"""`augury goals` and `augury stats`: what a stream holds; and how `augury why` looks into one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from augury.cli.checkpoint_options import CheckpointOptions
from augury.cli.options import Cluster, gathered, spark_options
from augury.core.errors import RunError
from augury.terminal import say, show, working

if TYPE_CHECKING:
    from augury.spark.inspection import BucketSession, StreamState


def opened(options: CheckpointOptions, cluster: Cluster) -> Iterator[BucketSession]:
    """The sessions of a stream, to be read; its settings are those of the checkpoint."""
    yield from stream_state(options, cluster).sessions()


def stream_state(options: CheckpointOptions, cluster: Cluster) -> StreamState:
    """The state of a stream, to be read again and again."""
    from augury.cli.run import spark_problem

    if options.checkpoint is None:
        raise click.UsageError("Missing option '--checkpoint'.")
    failed = spark_problem()
    if failed is not None:
        raise RunError(failed.message, failed.hint.partition(";")[0])
    stream_options = options.stream_options(cluster.master)
    stream_options.check_checkpoint(running=True)
    with working("starting Spark"):
        from augury.spark.starting import open_session

        spark = open_session(cluster.master, cluster.conf, streaming_buckets=stream_options.buckets)
        from augury.spark.inspection import StreamState

        return StreamState(spark, stream_options)


@click.command()
@gathered(CheckpointOptions, "options")
@click.option("--rule", metavar="LABEL", help="Just those of one rule.")
@spark_options
def goals(options: CheckpointOptions, rule: str | None, cluster: Cluster) -> None:
    """Show the partial matches that a stream holds: what each one awaits, and how complete it is."""
    count = 0
    for bucket in opened(options, cluster):
        session = bucket.session
        labels = {r.label for r in session.program.plan.rules}
        for goal in session.goals(rule) if rule is None or rule in labels else []:
            count += 1
            show(goal.show(session.clock, session.now))
    say("nothing is open" if not count else f"{count:,} open")


@click.command()
@gathered(CheckpointOptions, "options")
@spark_options
def stats(options: CheckpointOptions, cluster: Cluster) -> None:
    """Show what each bucket of a stream has seen and what it holds, by operator and rule, as JSON lines."""
    for bucket in opened(options, cluster):
        show(json.dumps({"stage": bucket.stage, "bucket": bucket.bucket, **bucket.session.stats()}, ensure_ascii=False))
