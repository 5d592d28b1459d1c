"""`augury stream`."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from augury.cli.options import Cluster, TaskOptions, spark_options, task_options
from augury.cli.run import check_output, spark_problem
from augury.core.errors import RunError, counted
from augury.job import LeftOut, check_registered, report_guess, warn_unknown
from augury.settings import length
from augury.terminal import say, status_line, warn, working

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from augury.spark.checkpoint import StreamFormat, StreamOptions


@click.command()
@task_options
@click.option(
    "--checkpoint",
    "--state",
    "checkpoint",
    required=True,
    metavar="DIR",
    help="The directory in which the run keeps its state, so that it can resume.",
)
@click.option(
    "--output",
    "--to",
    "output",
    default="-",
    show_default=True,
    metavar="DEST",
    help="A folder, - for standard output, or an address: of Kafka, or of another sink of `augury live`.",
)
@click.option("--format", "format_", type=click.Choice(["jsonl", "csv", "parquet"]), default="jsonl", show_default=True)
@click.option("--lateness", default="0s", show_default=True, metavar="D", help="How late an event may arrive.")
@click.option("--late", metavar="DEST", help="A folder for events that arrive later; by default they are only counted.")
@click.option(
    "--longest", metavar="D", help="How long an event lasts at most; by default, in JSON lines, all are points in time."
)
@click.option(
    "--emit",
    type=click.Choice(["early", "final"]),
    default="final",
    show_default=True,
    help="Emit an answer when nothing can change it, or at once, with rows that retract it.",
)
@click.option(
    "--trigger",
    default="1s",
    show_default=True,
    metavar="once|D",
    help="Process the input that exists and stop, or the time between two batches.",
)
@click.option(
    "--buckets",
    type=click.IntRange(1),
    metavar="N",
    help="Parts of the state; by default two for each core, on one machine just one for a program of several stages.",
)
@click.option(
    "--idle",
    metavar="D",
    help="Let the clock follow that of the machine, less the lateness, when no event has come for so long.",
)
@click.option(
    "--ahead",
    metavar="D",
    help="Set events aside, like late ones, that are further in the future than this: they do not move the clock.",
)
@click.option(
    "--keep",
    metavar="D",
    help="Keep copies of the files that are read for so long, so that `augury why --checkpoint` explains old answers.",
)
@click.option(
    "--dry-run",
    is_flag=True,
    help="Say what becomes of each rule if the stream of the checkpoint goes on with this program, and stop.",
)
@click.option(
    "--rebuild",
    is_flag=True,
    help="Compute the state anew from all files that the stream has read: with other buckets, facts or stages.",
)
@click.option(
    "--backfill",
    metavar="SRC",
    multiple=True,
    help="Read these files first, in place of --events, and go on with --events: history, then live.",
)
@spark_options
def stream(
    options: TaskOptions,
    checkpoint: str,
    output: str,
    format_: Literal["jsonl", "csv", "parquet"],
    lateness: str,
    late: str | None,
    longest: str | None,
    emit: str,
    trigger: str,
    buckets: int | None,
    idle: str | None,
    ahead: str | None,
    keep: str | None,
    dry_run: bool,
    rebuild: bool,
    backfill: tuple[str, ...],
    cluster: Cluster,
) -> None:
    """Run a program over events as they come, on Spark.

    SRC is a folder, or a pattern in quotes, to which files are added, kafka://host:9092/topic, or - for JSON lines on
    standard input. Each batch writes a folder DEST/batch=N, or to an address such as kafka://host:9092/topic or
    postgres://…/table; a run that was stopped or killed resumes from its checkpoint. --from, --to and --state are those of
    `augury live`.
    """
    check_registered(options.compiled.plan)
    failed = spark_problem()
    if failed is not None:
        raise RunError(failed.message, failed.hint.partition(";")[0])
    if output == "-" and format_ != "jsonl":
        raise click.UsageError("standard output takes JSON lines; name a folder with --output")
    cluster = _with_packages(options, output, format_, cluster)
    for destination in (output, late or "-"):
        check_output(destination, options.events, folder=True)
    from augury.spark.checkpoint import StreamOptions

    task = options.task(emit=emit, lateness=lateness, longest=longest)
    if len(backfill) not in (0, len(options.events)):
        raise click.UsageError("give --backfill as often as --events: each stands for one of these")
    stream_options = StreamOptions(
        task, Path(checkpoint), output, format_, late, trigger, buckets, cluster.master, length(ahead),
        length(idle), rebuild, archived=bool(backfill), keep=length(keep),
    )  # fmt: skip
    stream_options.check()
    if (upgrade := stream_options.upgrade()) is not None or dry_run:
        for line in (
            computed_anew(stream_options) if rebuild else ["no rule changes"] if upgrade is None else upgrade.lines()
        ):
            say(line)
    if dry_run:
        return
    parts = [stream_options]
    if backfill:
        history = replace(options, events=backfill).task(emit=emit, lateness=lateness, longest=longest)
        first = replace(stream_options, task=history, trigger="once", history=True)
        parts = [first, replace(stream_options, rebuild=False)]
    run_streams(parts, cluster)


def _with_packages(options: TaskOptions, output: str, format_: str, cluster: Cluster) -> Cluster:
    """With what Spark needs for topics, where there are some. Addresses that it cannot use are refused."""
    from augury.spark.kafka_topics import is_kafka
    from augury.spark.stream_addresses import check_addresses, connector_scheme, with_packages

    paths = [source.path for source in options.sources(options.compiled)]
    check_addresses(paths, output)
    if format_ != "jsonl" and any(map(is_kafka, (output, *paths))):
        raise click.UsageError("a topic takes JSON lines")
    if format_ != "jsonl" and (scheme := connector_scheme(output)) is not None:
        raise click.UsageError(f"{scheme}:// takes JSON lines")
    return replace(cluster, conf=with_packages(cluster.conf, (output, *paths)))


def run_history(
    options: TaskOptions, checkpoint: str, output: str, format_: StreamFormat, buckets: int | None, cluster: Cluster,
    **settings: Any,
) -> None:  # fmt: skip
    """`augury run --checkpoint`: runs over a history as the first batch of a stream, whose state is in the checkpoint then."""
    check_registered(options.compiled.plan)
    failed = spark_problem()
    if failed is not None:
        raise RunError(failed.message, failed.hint.partition(";")[0])
    cluster = _with_packages(options, output, format_, cluster)
    from augury.spark.checkpoint import StreamOptions

    part = StreamOptions(
        options.task(**settings), Path(checkpoint), output, format_, None, "once", buckets, cluster.master, history=True
    )
    part.check()
    if (upgrade := part.upgrade()) is not None:
        for line in upgrade.lines():
            say(line)
    run_streams([part], cluster)


def run_streams(parts: Sequence[StreamOptions], cluster: Cluster, partitions: int | None = None) -> None:
    """Runs streams of one checkpoint, one after the other; new state is cut into as many `partitions` as buckets, or so many."""
    from augury.spark.lock import held
    from augury.spark.starting import open_session

    parts = [part.ready() for part in parts]
    with held(parts[0].checkpoint) as log:
        if not sys.stderr.isatty():
            say("starting Spark")
        with working("starting Spark"):
            spark = open_session(
                cluster.master, cluster.conf, streaming_buckets=partitions or parts[0].buckets, log=log
            )
        for part in parts:
            _run(spark, part)


def computed_anew(options: StreamOptions) -> Iterator[str]:
    """What happens where the state is computed anew."""
    if not options.rebuilds:
        yield "there is no state yet: all is computed from the beginning"
    else:
        yield f"all rules are computed anew, from {counted(len(options.files), 'file')}; what is written is not written again"


def _run(spark: SparkSession, options: StreamOptions) -> None:
    """Runs a stream to its end, and says what became of its rows."""
    from augury.spark.stream_job import StreamJob

    job = StreamJob(spark, options, say)
    report_guess(job.clock)
    try:
        with status_line(str(job.status)) as show:
            job.run(show)
    except KeyboardInterrupt:
        raise click.exceptions.Abort from None
    finally:
        counts = job.tally
        if sys.stderr.isatty():
            say(str(counts))
        left_out = LeftOut(options.task.plan, job.skipped, job.facts, job.graphs)
        left_out.report(counts.errors, count=counts.skipped)
        warn_unknown([f"`{name}`" for name in sorted(counts.types)], counts.unknown)
        if options.late is None:
            what = "late, or their id names another event" if counts.rejected else "late"
            warn(what, counts.examples, count=counts.late + counts.rejected)
        if counts.counts.left_out:
            say(str(counts.counts))
