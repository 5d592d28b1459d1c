"""`augury run`."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, ClassVar

import click

from augury import sinks
from augury.cli.options import (
    Cluster,
    TaskOptions,
    as_of_option,
    gathered,
    say_warnings,
    spark_options,
    task_options,
    until_option,
)
from augury.connectors.addresses import CONNECTORS
from augury.core.errors import RunError
from augury.core.parallel import available_cores
from augury.engine import batch
from augury.entailment import Model
from augury.explain.costs import profile
from augury.job import InputFollower, Job, LeftOut, check_registered, report_guess, unread
from augury.pictures import Picture, Scene, check_ending, lanes_of, timeline
from augury.run import ENGINES, Result
from augury.settings import Task
from augury.sinks import FORMATS, Format, check_folder, make_folder
from augury.sources import SourceFile
from augury.terminal import is_terminal, progress, say, working


@dataclass
class TraceReport:
    """Says once, on standard error, that the traces are much larger than the answers."""

    most_ids: ClassVar[int] = 1_000_000
    most_on_average: ClassVar[int] = 100  # ids an answer
    answers: int = 0
    ids: int = 0
    said: bool = False

    def add(self, answers: int, ids: int) -> None:
        self.answers += answers
        self.ids += ids
        if self.said or self.ids <= max(self.most_ids, self.most_on_average * self.answers):
            return
        self.said = True
        average = self.ids // self.answers
        say(f"the traces have {self.ids:,} ids, {average:,} an answer on average; --no-trace leaves them out")


@dataclass(frozen=True)
class OutputOptions:
    """Where answers are written to, and in which form."""

    output: Annotated[
        str, click.option("--output", default="-", metavar="DEST", help="The output file; - is standard output.")
    ]
    format_: Annotated[
        Format | None,
        click.option(
            "--format",
            "format_",
            type=click.Choice(FORMATS),
            help="By default a table on a terminal, else by the name of the output, else JSON lines.",
        ),
    ]
    trace: Annotated[
        bool,
        click.option(
            "--no-trace",
            "trace",
            flag_value=False,
            default=True,
            help="Leave out the ids of the events behind an answer.",
        ),
    ]

    picture: Annotated[
        str | None,
        click.option(
            "--picture",
            metavar="FILE",
            help="Also draw a timeline: as .svg, or as .html to pan and to zoom, which works offline. "
            "On Spark it has what was detected, and not the events.",
        ),
    ]

    @cached_property
    def format(self) -> Format:
        named = self.format_ or sinks.format_of(self.output)
        return named or ("table" if self.output == "-" and is_terminal() else "jsonl")

    def check(self, options: TaskOptions) -> None:
        """Refuses what cannot be written."""
        outputs = options.compiled.plan.outputs
        if self.picture is not None:
            check_ending(self.picture)
            check_output(self.picture, options.events, folder=False)
        check_output(self.output, options.events, self.format == "parquet")
        if self.format == "arrow" and self.output == "-" and is_terminal():
            raise click.UsageError("Arrow is not for a terminal: --output FILE")
        if self.format == "parquet":
            if self.output == "-":
                raise click.UsageError("Parquet is written to a folder: --output DEST")
            check_folder(self.output, outputs if len(outputs) > 1 else ())

    def write(self, answers: sinks.Answers[Any]) -> None:
        before = answers.traced
        sinks.write(answers, self.format, self.output, sys.stdout, trace=self.trace, width=width(self.output))
        if self.format != "table":  # which cuts traces
            self._traces.add(len(answers), answers.traced - before)

    @cached_property
    def _traces(self) -> TraceReport:
        return TraceReport()

    def draw(self, make: Callable[[], Picture]) -> None:
        """Draws a picture, where one is asked for."""
        if self.picture is not None:
            make().save(self.picture)
            say(f"drew {self.picture}")

    def show(
        self, answers: sinks.Answers[Any], missing: Callable[[], list[str]], no_events: Callable[[], bool]
    ) -> bool:
        """Writes the answer of a run; on standard error, that there is none, and what was missing. Whether there is one."""
        if len(answers) or self.format != "table":
            self.write(answers)
        if not len(answers):
            say_nothing("no detections", missing(), no_events())
        return len(answers) > 0


def say_nothing(what: str, missing: list[str], no_events: bool) -> None:
    """Says on standard error that a run has no answers, and which events were missing."""
    if no_events:
        say("0 events")
    say(what + (f"; there was no event of type {', '.join(missing)}" if missing else ""))


def say_open(model: Model) -> None:
    """Says which absences and windows are not over at the last event, after which no time passes by itself."""
    if not isinstance(model, batch.SessionModel):
        return
    open_goals = [goal for goal in model.session.goals() if goal.timed and goal.until is not None]
    if open_goals:
        first = min(open_goals, key=lambda goal: goal.until or 0)
        say(
            f"{len(open_goals):,} {'absence or window is' if len(open_goals) == 1 else 'absences or windows are'} not over at the "
            f"last event, the next one at {first.clock.show(first.until or 0)}: --until lets time pass, --goals lists them"
        )


@click.command()
@task_options
@until_option
@as_of_option
@click.option(
    "--engine",
    type=click.Choice(["spark", *ENGINES]),
    envvar="AUGURY_ENGINE",
    help="Where it runs, with the same answer: by default embedded in this process for small local files, else on Spark.",
)
@spark_options
@click.option("--partitions", type=click.IntRange(1), metavar="N", help="On Spark: the buckets of a stage.")
@click.option(
    "--threads",
    type=click.IntRange(1),
    metavar="N",
    help="How many threads a run in this process may use, with the same answer; by default one for each core.",
)
@click.option("--changes", "show_changes", is_flag=True, help="Show how the answer changes as the events arrive.")
@click.option(
    "--emit",
    type=click.Choice(["early", "final"]),
    help="With --changes: emit an answer at once, which is the default, or when nothing can change it. With --checkpoint: as "
    "for `augury stream`, which then goes on.",
)
@click.option(
    "--lateness",
    metavar="D",
    help="How late an event may arrive, in the order of the input; later events are set aside.",
)
@click.option(
    "--checkpoint",
    metavar="DIR",
    help="On Spark: keep the state there, with which `augury stream` goes on; answers are written to the folder --output.",
)
@click.option("--longest", metavar="D", help="With --checkpoint: how long an event lasts at most.")
@click.option("--goals", "show_goals", is_flag=True, help="At the end, list the partial matches, and when each began.")
@click.option("--profile", "show_costs", is_flag=True, help="At the end, show what each rule and operator cost.")
@gathered(OutputOptions, "output")
def run(
    options: TaskOptions,
    until: str | None,
    as_of: str | None,
    engine: str | None,
    cluster: Cluster,
    partitions: int | None,
    threads: int | None,
    show_changes: bool,
    emit: str | None,
    lateness: str | None,
    checkpoint: str | None,
    longest: str | None,
    show_goals: bool,
    show_costs: bool,
    output: OutputOptions,
) -> None:
    """Run a program over events and write what it derives."""
    if show_changes and as_of is not None:
        raise click.UsageError("--changes shows the whole history, and cannot be combined with --as-of")
    say_warnings(options.compiled)
    output.check(options)
    needs_order = {
        "--goals": show_goals,
        "--changes": show_changes,
        "--as-of": as_of is not None,
        "--lateness": lateness is not None,
        "--profile": show_costs,
    }
    if checkpoint is not None:
        asked = [*(option for option, needed in needs_order.items() if needed and option != "--lateness")]
        asked += [option for option, value in (("--until", until), ("--picture", output.picture)) if value is not None]
        if asked or engine == "embedded" or not output.trace:
            wrong = asked[0] if asked else "--no-trace" if not output.trace else "--engine embedded"
            raise click.UsageError(f"--checkpoint leaves the state of a stream on Spark, which has no {wrong}")
        _leave_state(options, checkpoint, emit or "final", lateness or "0s", longest, partitions, output, cluster)
        return
    if longest is not None:
        raise click.UsageError("--longest is for --checkpoint")
    if show_goals or show_costs or output.picture is not None:  # which ask one session that has the whole history
        threads = 1
    several = available_cores() if threads is None else threads
    task = options.task(emit=emit or "early", lateness=lateness, threads=several)
    chosen = choose_engine(engine, [option for option, needed in needs_order.items() if needed], task.events)
    if chosen == "spark":
        run_on_spark(task, cluster, partitions, until, output)
        return
    for source in task.events:
        _check_local(source)
    if not options.functions:  # whose Python may use pandas
        without_pandas()
    if show_changes and output.format == "parquet":
        raise click.UsageError("--changes are written as a table, JSON lines, CSV or Arrow")
    if show_changes and chosen == "embedded" and output.picture is None and _is_live(task, output):
        follow(task, until, output)
        return
    with progress("reading events") as shown:
        in_order = show_changes or lateness is not None
        job = Job(task, in_order, progress=lambda rows: shown(f"reading events: {rows:,}"))
    if show_changes:
        replayed = job.replay(until, chosen)
        output.write(sinks.answers_of(replayed.changes, task.plan, job.clock, changes=True))
        if not replayed.changes:
            say_nothing("no detections", job.missing(), not len(job.history))
        taken_back = [change.event for change in replayed.changes if change.op == "retract"]
        result = Result(task.program, replayed.model, job.clock, job.history.taken_back)
        output.draw(lambda: result.timeline(taken_back=taken_back))
        job.report(replayed.model)
        return
    model = job.evaluate(until, as_of, chosen)
    with working("writing answers"):
        result = Result(task.program, model, job.clock, job.history.taken_back)
    answered = output.show(result, job.missing, lambda: not len(job.history))
    if not answered and until is None and not show_goals:
        say_open(model)
    output.draw(result.timeline)
    if show_goals and isinstance(model, batch.SessionModel):
        for goal in model.session.goals():
            say(goal.show(job.clock, model.clock))
    if show_costs and isinstance(model, batch.SessionModel):
        say(str(profile(model.session)))
    job.report(model, as_of)


def _leave_state(
    options: TaskOptions,
    checkpoint: str,
    emit: str,
    lateness: str,
    longest: str | None,
    partitions: int | None,
    output: OutputOptions,
    cluster: Cluster,
) -> None:
    """A run over a history that leaves the state of a stream."""
    from augury.cli.stream import run_history

    match output.format_ or sinks.format_of(output.output) or "jsonl":
        case ("jsonl" | "csv" | "parquet") as form if form == "jsonl" or output.output != "-":
            settings = {"emit": emit, "lateness": lateness, "longest": longest}
            run_history(options, checkpoint, output.output, form, partitions, cluster, **settings)
        case form:
            raise click.UsageError(
                f"a stream does not write {form} here: --format jsonl, or csv or parquet to a folder"
            )


def without_pandas() -> None:
    """Lets Arrow do without pandas, which it would load at its first conversion, in a third of a second, to look whether it
    is given anything of pandas. Nothing here is; `to_pandas` still works."""
    import pyarrow

    class Hidden:
        @staticmethod
        def find_spec(name: str, path: object = None, target: object = None) -> None:
            if name == "pandas":
                raise ModuleNotFoundError(name, name=name)

    if "pandas" not in sys.modules:
        sys.meta_path.insert(0, Hidden)
        try:
            pyarrow.scalar(0)
        finally:
            sys.meta_path.remove(Hidden)


def _is_live(task: Task, output: OutputOptions) -> bool:
    """Whether changes can be shown while the events arrive: as lines, from one source that need not end."""
    paths = [source.path for source in task.events]
    return paths == ["-"] and output.output == "-" and output.format == "jsonl"


def follow(task: Task, until: str | None, output: OutputOptions) -> None:
    """Prints how the answer changes as events come in on standard input, without waiting for its end."""
    job = InputFollower(task)
    detected = False
    for changes in job.changes(until):
        detected = detected or len(changes) > 0
        output.write(sinks.answers_of(changes, task.plan, job.clock, changes=True))
    if not detected:
        say_nothing("no detections", [], job.events == 0)
    job.report()


def width(output: str) -> int | None:
    return shutil.get_terminal_size().columns if is_terminal() and output == "-" else None


# What the embedded engine handles in seconds: bytes of files of text, and of those that are packed.
_SMALL, _SMALL_PACKED = 256 << 20, 64 << 20


def choose_engine(asked: str | None, in_order: list[str], sources: Iterable[SourceFile] = ()) -> str:
    """The engine of a run: as asked; embedded where the order of the input matters, or it is small; else Spark, if there."""
    if in_order and asked == "spark":
        raise RunError(
            f"{in_order[0]} needs the order of the input, which Spark does not keep", "say --engine embedded"
        )
    if asked is not None or in_order:
        return asked or "embedded"
    files = list(sources)
    if files and not any(source.remote for source in files):
        packed = sum(s.size for s in files if s.packed)
        plain = sum(s.size for s in files) - packed
        if plain / _SMALL + packed / _SMALL_PACKED <= 1:
            say("running in this process, since the events are few; --engine spark runs on Spark")
            return "embedded"
    failed = spark_problem()
    if failed is not None:
        say(f"{failed.message}; continuing with the embedded engine, which gives the same answer")
        return "embedded"
    return "spark"


def _check_local(source: SourceFile) -> None:
    """Refuses what this process reads as a service only."""
    scheme, separator, _ = source.path.partition("://")
    if separator and scheme in CONNECTORS and CONNECTORS[scheme].module != CONNECTORS["file"].module:
        way = "--engine spark, or augury live" if scheme == "kafka" else "augury live"
        raise RunError(f"a run in this process reads files, and not {scheme}://", f"say {way}")


def check_output(output: str, events: Iterable[str], folder: bool) -> None:
    """Refuses an output that is an input or lies in one; a folder may not hold one either."""
    if output == "-" or "://" in output:
        return
    target = Path(output).resolve()
    for text in events:
        source = Path(SourceFile.parse(text).path).resolve()
        inside, around = source in target.parents and source.is_dir(), target in source.parents and target.is_dir()
        if target == source or inside or (folder and around):
            raise RunError(f"the output {output} is also an input", hint="write to another place")


def run_on_spark(
    task: Task, cluster: Cluster, partitions: int | None, until: str | None, output: OutputOptions
) -> None:
    """`augury run` on Spark."""
    check_registered(task.plan)
    if output.picture is not None and output.format == "parquet":
        raise RunError(
            "Spark writes Parquet without bringing the answers here, where a picture is drawn", "use --format"
        )
    with TemporaryDirectory(prefix="augury-") as folder:
        task = replace(task, events=tuple(_spooled(source, Path(folder)) for source in task.events))
        for source in task.events:
            source.check()
        from augury.spark.stream_addresses import check_addresses, with_packages

        paths = [source.path for source in task.events]
        check_addresses(paths, "-")
        with working("starting Spark"):
            from augury.spark.starting import open_session

            spark = open_session(cluster.master, with_packages(cluster.conf, paths))
            from augury.spark.job import SparkJob
            from augury.spark.pipeline import Execution
        with working("reading events"):
            job = SparkJob(spark, task, until, Execution(partitions=partitions, trace=output.trace))
        report_guess(job.clock)
        with working("evaluating on Spark"):
            if output.format == "parquet":
                errors = job.write(make_folder(output.output))
            else:
                detected = job.evaluate()
                errors = detected.errors
        if output.format != "parquet":
            answers = detected.answers(task.plan, job.clock)
            output.show(answers, lambda: unread(task.plan, job.types()), lambda: not job.types() and not job.unknown)
            output.draw(lambda: timeline(Scene(tuple(lanes_of("detected", answers)), job.clock)))
        elif job.empty:
            types = job.types()
            say_nothing("no detections", unread(task.plan, types), not types and not job.unknown)
        LeftOut(task.plan, job.skipped, job.facts, job.graphs).report(errors, unknown=job.unknown)
        if job.counts is not None and job.counts.left_out:
            say(str(job.counts))


def _spooled(source: SourceFile, folder: Path) -> SourceFile:
    """Standard input as a file, which Spark can read."""
    if source.path != "-":
        return source
    data = sys.stdin.buffer.read() if hasattr(sys.stdin, "buffer") else sys.stdin.read().encode()
    path = folder / f"input.{source.form(data[:16])}"
    path.write_bytes(data)
    return replace(source, path=str(path), shown=source.location)


def spark_problem() -> RunError | None:
    """Why there is no Spark here, if so."""
    try:
        from augury.spark.starting import problem
    except RunError as error:
        return error
    return problem()
