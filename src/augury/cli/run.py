"""`augury run`."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

import click

from augury import sinks
from augury.cli.options import Given, as_of_option, given_options, say_warnings, spark_options, until_option
from augury.errors import RunError
from augury.job import Follower, Job, check_registered, report
from augury.run import ENGINES, Result
from augury.settings import Settings
from augury.sinks import FORMATS, Format, check_folder, make_folder
from augury.sources import SourceFile
from augury.terminal import is_terminal, progress, say, working


@click.command()
@given_options
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
    "--changes", "show_changes", is_flag=True, help="Show how the answer changes while the events are told in order."
)
@click.option(
    "--emit",
    type=click.Choice(["early", "final"]),
    default="early",
    help="With --changes: as soon as entailed, or once nothing can change it.",
)
@click.option(
    "--lateness", metavar="D", help="How late an event may come, in the order of the input; what is later is put aside."
)
@click.option("--output", default="-", metavar="DEST", help="Where to write; - is standard output.")
@click.option(
    "--format",
    "format_",
    type=click.Choice(FORMATS),
    help="By default a table on a terminal, else by the name of the output, else JSON lines.",
)
@click.option(
    "--no-trace", "trace", flag_value=False, default=True, help="Leave out the ids of the events behind an answer."
)
def run(
    given: Given, until: str | None, as_of: str | None, engine: str | None, master: str, conf: tuple[str, ...],
    partitions: int | None, show_changes: bool, emit: Literal["early", "final"], lateness: str | None, output: str,
    format_: Format | None, trace: bool,
) -> None:  # fmt: skip
    """Run a program over events and write what it derives."""
    if show_changes and as_of is not None:
        raise click.UsageError("--changes tells the whole history; --as-of does not go with it")
    compiled, sources = given.compiled, given.sources
    say_warnings(compiled)
    format_ = format_ or _format_of(output)
    check_output(output, given.events, format_ == "parquet")
    if format_ == "arrow" and output == "-" and is_terminal():
        raise click.UsageError("Arrow is not for a terminal: --output FILE")
    if format_ == "parquet":
        if output == "-":
            raise click.UsageError("Parquet is written to a folder: --output DEST")
        check_folder(output, compiled.plan.outputs if len(compiled.plan.outputs) > 1 else ())
    needs_order = {"--changes": show_changes, "--as-of": as_of is not None, "--lateness": lateness is not None}
    settings = given.settings(emit=emit, lateness=lateness)
    chosen = choose_engine(engine, [option for option, given in needs_order.items() if given], sources)
    if chosen == "spark":
        run_on_spark(given, settings, master, conf, partitions, until, output, format_, trace)
        return
    if not given.functions:  # whose Python may use pandas
        without_pandas()
    if show_changes and format_ == "parquet":
        raise click.UsageError("--changes are told as a table, JSON lines, CSV or Arrow")
    if show_changes and chosen == "embedded" and _is_live(sources, output, format_):
        follow(given, settings, until, trace)
        return
    with progress("reading events") as shown:
        job = Job(
            compiled, sources, given.fact_sources, given.graphs, settings,
            in_order=show_changes or lateness is not None, progress=lambda rows: shown(f"reading events: {rows:,}"),
        )  # fmt: skip
    if show_changes:
        replayed = job.replay(until, chosen)
        told = sinks.answers_of(replayed.changes, compiled.plan, job.clock, changes=True)
        sinks.write(told, format_, output, sys.stdout, trace=trace, width=width(output))
        job.report(replayed.model)
        return
    model = job.evaluate(until, as_of, chosen)
    with working("writing answers"):
        answers = Result(compiled, model, job.clock).as_answers()
    _show(answers, format_, output, trace, job.missing)
    job.report(model)


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


def _is_live(sources: list[SourceFile], output: str, format_: Format) -> bool:
    """Whether changes can be told while the events come: as lines, of one source that need not end."""
    return [source.path for source in sources] == ["-"] and output == "-" and format_ == "jsonl"


def follow(given: Given, settings: Settings, until: str | None, trace: bool) -> None:
    """Tells how the answer changes as events come in on standard input, without waiting for its end."""
    program = given.compiled
    job = Follower(program, given.fact_sources, given.graphs, settings)
    for changes in job.changes(given.sources[0], until):
        told = sinks.answers_of(changes, program.plan, job.clock, changes=True)
        sinks.write(told, "jsonl", "-", sys.stdout, trace=trace)
    job.report()


def _show(answers: sinks.Answers, format_: Format, output: str, trace: bool, missing: Callable[[], list[str]]) -> None:
    """Writes the answer of a run."""
    if len(answers) or format_ != "table":
        sinks.write(answers, format_, output, sys.stdout, trace=trace, width=width(output))
    else:
        types = missing()
        say("nothing was detected" + (f"; there was no event of type {', '.join(types)}" if types else ""))


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
    given = list(sources)
    if given and not any(source.remote for source in given):
        packed = sum(
            s.size for s in given if s.compression or (s.path != "-" and s.files()[0].form() in ("parquet", "arrow"))
        )
        plain = sum(s.size for s in given) - packed
        if plain / _SMALL + packed / _SMALL_PACKED <= 1:
            say("running in this process, since the events are few; --engine spark runs on Spark")
            return "embedded"
    failed = spark_problem()
    if failed is not None:
        say(f"{failed.message}; going on with the embedded engine, which gives the same answer")
        return "embedded"
    return "spark"


def check_output(output: str, events: Iterable[str], folder: bool) -> None:
    """Refuses an output that is an input or lies in one; a folder may not hold one either."""
    if output == "-":
        return
    target = Path(output).resolve()
    for text in events:
        given = Path(SourceFile.parse(text).path).resolve()
        if target == given or (given in target.parents and given.is_dir()) or (folder and target in given.parents and target.is_dir()):  # fmt: skip
            raise RunError(f"the output {output} is an input, too", hint="write to another place")


def run_on_spark(
    given: Given, settings: Settings, master: str, conf: Iterable[str], partitions: int | None, until: str | None,
    output: str, format_: Format, trace: bool,
) -> None:  # fmt: skip
    """`augury run` on Spark."""
    program, plan = given.compiled, given.compiled.plan
    check_registered(plan)
    with TemporaryDirectory(prefix="augury-") as folder:
        sources = [_spooled(source, Path(folder)) for source in given.sources]
        for source in sources:
            source.check()
        with working("starting Spark"):
            from augury.spark.starting import open_session

            spark = open_session(master, conf)
            from augury.spark.job import SparkJob
        with working("reading events"):
            job = SparkJob(
                spark, program, sources, given.fact_sources, given.graphs, settings, until=until, partitions=partitions,
                trace=trace,
            )  # fmt: skip
        with working("evaluating on Spark"):
            if format_ == "parquet":
                errors = job.write(make_folder(output))
            else:
                found = job.evaluate()
                errors = found.errors
        if format_ != "parquet":
            _show(found.answers(plan, job.clock), format_, output, trace, job.missing)
        report(plan, job.skipped, job.facts, job.graphs, [], errors, unknown=job.unknown)


def _spooled(source: SourceFile, folder: Path) -> SourceFile:
    """Standard input as a file, which Spark can read."""
    if source.path != "-":
        return source
    data = sys.stdin.buffer.read() if hasattr(sys.stdin, "buffer") else sys.stdin.read().encode()
    path = folder / f"input.{source.form(data[:16])}"
    path.write_bytes(data)
    return replace(source, path=str(path), shown=source.place)


def _format_of(output: str) -> Format:
    return sinks.format_of(output) or ("table" if output == "-" and is_terminal() else "jsonl")


def spark_problem() -> RunError | None:
    """Why there is no Spark here, if so."""
    try:
        from augury.spark.starting import problem
    except RunError as error:
        return error
    return problem()
