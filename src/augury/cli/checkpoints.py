"""`augury checkpoint`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import click

from augury.cli.checkpoint_options import CheckpointOptions
from augury.cli.options import Cluster, gathered, spark_options
from augury.core.errors import counted
from augury.terminal import say

_folder = click.argument("folder", metavar="DIR", type=click.Path(path_type=Path, file_okay=False))


@click.group()
def checkpoint() -> None:
    """Look at the checkpoint of a stream, check it or copy it, which needs no Spark; or rescale or upgrade it."""


@checkpoint.command()
@_folder
def show(folder: Path) -> None:
    """Show which rules a checkpoint has and since when, how far it is, its settings, and its size."""
    from augury.spark.checkpoint_report import report

    for line in report(folder):
        click.echo(line)


@checkpoint.command()
@_folder
def verify(folder: Path) -> None:
    """Compare all files that a restart needs with their checksums."""
    from augury.spark import checkpoint_report

    checkpoint_report.verify(folder)
    say("the checkpoint is whole")


@checkpoint.command()
@_folder
@click.argument("target", metavar="NEW", type=click.Path(path_type=Path))
def copy(folder: Path, target: Path) -> None:
    """Copy a checkpoint that no run uses; the copy appears when it is whole."""
    from augury.spark import checkpoint_report
    from augury.spark.lock import held

    with held(folder):
        checkpoint_report.copy(folder, target)
    say(f"copied to {target}")


# State that is computed anew, from the files that the stream has read


@dataclass(frozen=True)
class RebuildOptions(CheckpointOptions):
    """A checkpoint that no run uses; what it says of its stream need not be said again."""

    checkpoint: Annotated[
        str | None, click.argument("checkpoint", metavar="DIR", type=click.Path(exists=True, file_okay=False))
    ]


_backfill = click.option(
    "--backfill",
    metavar="SRC",
    multiple=True,
    help="Where the files are now that the stream has read, in place of --events.",
)


@checkpoint.command()
@gathered(RebuildOptions, "options")
@click.option("--buckets", type=click.IntRange(1), metavar="N", help="Parts of the state; by default as many as now.")
@click.option(
    "--partitions", type=click.IntRange(1), metavar="N", help="Spark's partitions; by default one for each bucket."
)
@_backfill
@spark_options
def rescale(
    options: RebuildOptions, buckets: int | None, partitions: int | None, backfill: tuple[str, ...], cluster: Cluster
) -> None:
    """Spread the state of a stream over other buckets or partitions, and stop.

    The state is computed anew, from the files that the stream has read. Answers that are written are not written again. A
    run that is killed leaves the old state or the new one.
    """
    from augury.spark.checkpoint_files import shuffle_partitions, spark_home

    if buckets is None and partitions is None:
        raise click.UsageError("say how many: --buckets N or --partitions N")
    saved = options.saved
    buckets = buckets or int(saved["buckets"])
    cut = shuffle_partitions(spark_home(Path(str(options.checkpoint)), saved)[0])
    wanted = partitions or buckets
    shape = f"{counted(buckets, 'bucket')} and {counted(wanted, 'partition')}"
    if (buckets, wanted) == (saved["buckets"], cut):
        say(f"the state is in {shape} already")
        return
    _rebuild(options, buckets, wanted, backfill, cluster)
    say(f"the state is in {shape}")


@checkpoint.command()
@gathered(RebuildOptions, "options")
@_backfill
@spark_options
def upgrade(options: RebuildOptions, backfill: tuple[str, ...], cluster: Cluster) -> None:
    """Turn the checkpoint of an earlier version into one of this version, and stop.

    State in another format is computed anew, from the files that the stream has read. Answers that are written are not
    written again. A run that is killed leaves the old state or the new one.
    """
    from augury.engine.saved.envelope import FORMAT
    from augury.spark.checkpoint_files import shuffle_partitions, spark_home

    saved = options.saved
    if saved.get("state_format") == FORMAT:
        say("the checkpoint is of this version already")
        return
    buckets = int(saved["buckets"])
    cut = shuffle_partitions(spark_home(Path(str(options.checkpoint)), saved)[0])
    _rebuild(options, buckets, cut or buckets, backfill, cluster)
    say("the checkpoint is of this version")


def _rebuild(
    options: RebuildOptions, buckets: int, partitions: int, backfill: tuple[str, ...], cluster: Cluster
) -> None:
    """Computes the state anew; the checkpoint is of it at once, when it is whole."""
    from augury.cli.stream import computed_anew, run_streams

    if len(backfill) not in (0, len(options.sources(options.compiled))):
        raise click.UsageError("give --backfill as often as the stream has sources: each stands for one of these")
    stream = replace(
        options.stream_options(cluster.master), asked_buckets=buckets, rebuild=True, archived=bool(backfill)
    )
    stream.check()
    for line in computed_anew(stream):
        say(line)
    parts = [stream]
    if backfill:
        history = replace(options, events=backfill).stream_task()
        parts = [replace(stream, task=history, history=True), replace(stream, rebuild=False)]
    run_streams(parts, cluster, partitions)
