"""The command line: check, fmt, explain, run, stream, why, demo, bench.

Exit codes: 0 fine, 1 the program or the data is wrong (diagnostics on standard error), 2 usage.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib.resources import as_file, files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import click

from augury import sinks
from augury.clock import Clock, Kind
from augury.engine.batch import Answer
from augury.errors import AuguryError, DataError, Findings, ProgramError, RunError, Source, counted, too_deep
from augury.explain import FORMATS as EXPLAIN_FORMATS
from augury.job import Follower, Job, check_registered, load_functions, report
from augury.knowledge.graphs import Graph
from augury.language.read import read
from augury.language.show import show_module
from augury.meaning import Model
from augury.model import Event
from augury.notation import read_atom, read_event, show_event
from augury.program import Program, compile_sources, read_text
from augury.run import ENGINES, Result
from augury.settings import Settings, length
from augury.sinks import FORMATS, Format, check_folder, make_folder
from augury.sources import OnError, SourceFile
from augury.terminal import coloured, is_terminal, progress, say, show_diagnostics, tell, working
from augury.why import derivation_tree, show_tree, tree_as_json, tree_as_mermaid

files_argument = click.argument("program", nargs=-1, required=True, metavar="FILE...")
_INCLUDE_FROM = "augury.include_from"


def _keep_folders(context: click.Context, option: click.Parameter, folders: tuple[str, ...]) -> None:
    context.meta[_INCLUDE_FROM] = folders


include_option = click.option(
    "--allow-include", multiple=True, metavar="DIR", expose_value=False, callback=_keep_folders,
    help="A folder that programs may include files of, beside their own.",
)  # fmt: skip


def program_files(command: Callable[..., Any]) -> Callable[..., Any]:
    """The files of a program, and where those that they include may be."""
    return files_argument(include_option(command))


events_option = click.option(
    "--events",
    multiple=True,
    required=True,
    metavar="SRC",
    help="Events: a path or type=path, a file, a folder or a pattern; CSV, JSON lines, Parquet or Arrow; - is standard input.",
)
facts_option = click.option(
    "--facts",
    multiple=True,
    metavar="NAME=SRC",
    help="Facts of a static predicate: CSV, JSON lines, Parquet, Arrow, or a database and a query (shop.duckdb:SELECT …).",
)
rdf_option = click.option(
    "--rdf", multiple=True, metavar="SRC", help="An RDF graph with what RDFS entails: Turtle, N-Triples, N-Quads, TriG, RDF/XML or JSON-LD."
)  # fmt: skip
rdf_plain_option = click.option("--rdf-plain", multiple=True, metavar="SRC", help="An RDF graph just as it is.")
functions_option = click.option(
    "--functions", multiple=True, metavar="FILE.py", help="Python file with functions and aggregates to register."
)
policy_option = click.option(
    "--policy", metavar="POLICY", help="recent, chronological or unrestricted, where the program names none."
)
clock_option = click.option(
    "--clock",
    type=click.Choice(["timestamp", "logical"]),
    help="What times mean; by default what the first time looks like.",
)
time_option = click.option(
    "--time",
    default="time",
    show_default=True,
    metavar="NAME",
    help="The column, or key, that holds the time of an event.",
)
until_option = click.option(
    "--until", metavar="T", help="Where the clock stands at the end; by default the greatest end of an event."
)
as_of_option = click.option("--as-of", metavar="T", help="Answer with what was known by then.")
retention_option = click.option(
    "--retention", metavar="D", help="A window for the rules that have no bound, such as 1h."
)
null_option = click.option(
    "--null", "nulls", multiple=True, metavar="TEXT", help="In CSV: how null is written, beside the empty cell."
)
limit_option = click.option(
    "--limit", "limits", multiple=True, metavar="NAME=N",
    help="What the run may use: rows or bytes of state, pairs, answers or time of a step, such as --limit bytes=2GB.",
)  # fmt: skip
strict_option = click.option(
    "--strict", is_flag=True, help="Refuse events of types that the program does not know; by default they are counted."
)
on_error_option = click.option(
    "--on-error", type=click.Choice(["stop", "skip"]), default="stop", help="What to do with a wrong line of input."
)


def spark_problem() -> RunError | None:
    """Why there is no Spark here, if so."""
    try:
        from augury.spark.session import problem
    except RunError as error:
        return error
    return problem()


def options(*decorators: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def apply(command: Any) -> Any:
        for decorator in reversed(decorators):
            command = decorator(command)
        return command

    return apply


spark_options = options(
    click.option("--master", default="local[*]", show_default=True, metavar="URL", help="On Spark: where it runs."),
    click.option("--conf", multiple=True, metavar="K=V", help="On Spark: a setting, such as spark.driver.memory=4g."),
)
history_options = options(
    program_files,
    events_option,
    facts_option,
    rdf_option,
    rdf_plain_option,
    functions_option,
    policy_option,
    time_option,
    clock_option,
    until_option,
    as_of_option,
    retention_option,
    null_option,
    strict_option,
    on_error_option,
    limit_option,
)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="augury", prog_name="augury")
def cli() -> None:
    """Complex event processing with knowledge: which situations hold, when, and why."""


def main() -> None:
    """Runs the command line; a user's mistake is a message and exit code 1, never a traceback."""
    if sys.stdout is None:  # closed by whoever started us
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
    elif isinstance(getattr(sys.stdout, "buffer", None), io.RawIOBase):
        # With PYTHONUNBUFFERED a full disk takes a part of what is written, and nobody is told.
        sys.stdout = io.TextIOWrapper(io.BufferedWriter(sys.stdout.buffer), sys.stdout.encoding, line_buffering=True)
    try:
        code = cli(standalone_mode=False)
        sys.stdout.flush()
        sys.exit(code)
    except click.exceptions.Abort:
        sys.exit(130)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except ProgramError as error:
        show_diagnostics(error.diagnostics)
        wrong = sum(d.severity == "error" for d in error.diagnostics)
        say(counted(wrong, "error"))
        sys.exit(1)
    except AuguryError as error:
        click.echo(coloured("error", "red") + f": {error}", err=True)
        sys.exit(1)
    except RecursionError:
        click.echo(coloured("error", "red") + f": {too_deep()}", err=True)
        sys.exit(1)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except OSError as error:
        # Standard output is full or closed; there may be no other place to say so.
        click.echo(f"error: cannot write: {error.strerror}", err=True)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        sys.exit(1)


# Shared


def _sources(paths: Iterable[str]) -> list[Source]:
    return [Source("<stdin>", sys.stdin.read()) if p == "-" else Source(p, read_text(Path(p))) for p in paths]


def _fact_sources(facts: Iterable[str]) -> list[tuple[str, str]]:
    pairs: list[tuple[str, str]] = []
    for text in facts:
        name, equals, path = text.partition("=")
        if not equals or not name or not path:
            raise click.UsageError(f"--facts {text}: write it as NAME=SRC")
        pairs.append((name, path))
    return pairs


def _graphs(rdf: Iterable[str], plain: Iterable[str]) -> list[Graph]:
    return [*(Graph(path) for path in rdf), *(Graph(path, entailment=False) for path in plain)]


def _compile(paths: Iterable[str], facts: Iterable[str], functions: Iterable[str], policy: str | None) -> Program:
    names = [name for name, _ in _fact_sources(facts)]
    folders = click.get_current_context().meta.get(_INCLUDE_FROM, ())
    return compile_sources(_sources(paths), functions=load_functions(functions), facts=names, policy=policy, include_from=folders)  # fmt: skip


def _say_warnings(program: Program) -> None:
    """How many warnings there are; that nothing can be detected at all is shown here, too."""
    if not program.plan.rules:
        show_diagnostics(program.warnings)
        return
    number = sum(warning.code != "W304" for warning in program.warnings)  # a finished history is bounded in any case
    if number:
        say(f"{counted(number, 'warning')}; `augury check` shows {'it' if number == 1 else 'them'}")


def _settings(program: Program, **given: Any) -> Settings:
    """How a program runs, by its options; what is wrong with a duration names its option."""
    limits = given.pop("limits", ())
    wrong = next((one for one in limits if "=" not in one), None)
    if wrong is not None:
        raise DataError(f"a limit has a name and a number, not {wrong!r}", "--limit", "such as --limit rows=1000000")
    given["limits"] = dict(one.split("=", 1) for one in limits)
    for option in ("lateness", "longest", "retention"):
        try:
            length(given.get(option), program.plan.tick)
        except RunError as error:
            raise DataError(error.message, f"--{option}") from None
    return Settings.of(program, **given)


# check, fmt, explain


@cli.command()
@program_files
@facts_option
@functions_option
def check(program: tuple[str, ...], facts: tuple[str, ...], functions: tuple[str, ...]) -> None:
    """Check a program. Several files are one program."""
    compiled = _compile(program, facts, functions, None)
    show_diagnostics(compiled.warnings)
    rules, warnings = len(compiled.plan.rules), len(compiled.warnings)
    click.echo(f"{', '.join(program)}: no errors, {counted(warnings, 'warning')}, {counted(rules, 'rule')}")


@cli.command()
@files_argument
@click.option("--check", "only_check", is_flag=True, help="Change nothing; exit with 1 if a file would change.")
def fmt(program: tuple[str, ...], only_check: bool) -> None:
    """Format programs in place; - formats standard input to standard output."""
    changed = 0
    for path, source in zip(program, _sources(program), strict=True):
        findings = Findings()
        module = read(source, findings)[-1]
        findings.raise_errors()
        text = show_module(module)
        if path == "-":
            click.echo(text, nl=False)
        elif text != source.text:
            changed += 1
            if not only_check:
                sinks.write_text(text, path, sys.stdout)
            say(f"{path}: {'would be formatted' if only_check else 'formatted'}")
    if only_check and changed:
        raise click.exceptions.Exit(1)


@cli.command()
@program_files
@click.option("--format", "format_", type=click.Choice(EXPLAIN_FORMATS), default="text")
@facts_option
@functions_option
@policy_option
def explain(
    program: tuple[str, ...], format_: str, facts: tuple[str, ...], functions: tuple[str, ...], policy: str | None
) -> None:
    """Show how a program is read: its plan, keys, horizons and strata."""
    click.echo(_compile(program, facts, functions, policy).explain(format_))


# run, why


@cli.command()
@history_options
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
    program: tuple[str, ...], events: tuple[str, ...], facts: tuple[str, ...], rdf: tuple[str, ...], rdf_plain: tuple[str, ...],
    functions: tuple[str, ...], policy: str | None, time: str, clock: Kind | None, until: str | None, as_of: str | None, retention: str | None,
    nulls: tuple[str, ...], strict: bool, on_error: OnError, limits: tuple[str, ...], engine: str | None, master: str, conf: tuple[str, ...], partitions: int | None, show_changes: bool,
    emit: Literal["early", "final"], lateness: str | None, output: str, format_: Format | None, trace: bool,
) -> None:  # fmt: skip
    """Run a program over events and write what it derives."""
    if show_changes and as_of is not None:
        raise click.UsageError("--changes tells the whole history; --as-of does not go with it")
    compiled = _compile(program, facts, functions, policy)
    _say_warnings(compiled)
    format_ = format_ or _format_of(output)
    _check_output(output, events, format_ == "parquet")
    if format_ == "arrow" and output == "-" and is_terminal():
        raise click.UsageError("Arrow is not for a terminal: --output FILE")
    if format_ == "parquet":
        if output == "-":
            raise click.UsageError("Parquet is written to a folder: --output DEST")
        check_folder(output, compiled.plan.outputs if len(compiled.plan.outputs) > 1 else ())
    needs_order = {"--changes": show_changes, "--as-of": as_of is not None, "--lateness": lateness is not None}
    sources = [SourceFile.parse(source, time, nulls) for source in events]
    settings = _settings(
        compiled,
        clock=clock,
        emit=emit,
        lateness=lateness,
        retention=retention,
        on_error=on_error,
        strict=strict,
        limits=limits,
    )
    chosen = _engine(engine, [option for option, given in needs_order.items() if given], sources)
    if chosen == "spark":
        given = SparkRun(compiled, sources, _fact_sources(facts), _graphs(rdf, rdf_plain), settings)
        run_on_spark(given, master, conf, partitions, until, output, format_, trace)
        return
    if not functions:  # whose Python may use pandas
        without_pandas()
    if show_changes and format_ == "parquet":
        raise click.UsageError("--changes are told as a table, JSON lines, CSV or Arrow")
    if show_changes and chosen == "embedded" and _is_live(sources, output, format_):
        follow(compiled, sources[0], _fact_sources(facts), _graphs(rdf, rdf_plain), settings, until, trace)
        return
    with progress("reading events") as shown:
        job = Job(
            compiled, sources, _fact_sources(facts), _graphs(rdf, rdf_plain), settings,
            in_order=show_changes or lateness is not None, progress=lambda rows: shown(f"reading events: {rows:,}"),
        )  # fmt: skip
    if show_changes:
        replayed = job.replay(until, chosen)
        told = sinks.answers_of(replayed.changes, compiled.plan, job.clock, changes=True)
        sinks.write(told, format_, output, sys.stdout, trace=trace, width=_width(output))
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


def follow(
    program: Program, source: SourceFile, facts: list[tuple[str, str]], rdf: list[Graph], settings: Settings,
    until: str | None, trace: bool,
) -> None:  # fmt: skip
    """Tells how the answer changes as events come in on standard input, without waiting for its end."""
    job = Follower(program, facts, rdf, settings)
    for changes in job.changes(source, until):
        told = sinks.answers_of(changes, program.plan, job.clock, changes=True)
        sinks.write(told, "jsonl", "-", sys.stdout, trace=trace)
    job.report()


def _show(answers: sinks.Answers, format_: Format, output: str, trace: bool, missing: Callable[[], list[str]]) -> None:
    """Writes the answer of a run."""
    if len(answers) or format_ != "table":
        sinks.write(answers, format_, output, sys.stdout, trace=trace, width=_width(output))
    else:
        types = missing()
        say("nothing was detected" + (f"; there was no event of type {', '.join(types)}" if types else ""))


def _width(output: str) -> int | None:
    return shutil.get_terminal_size().columns if is_terminal() and output == "-" else None


# What the embedded engine handles in seconds: bytes of files of text, and of those that are packed.
_SMALL, _SMALL_PACKED = 256 << 20, 64 << 20


def _engine(asked: str | None, in_order: list[str], sources: Iterable[SourceFile] = ()) -> str:
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


def _check_output(output: str, events: Iterable[str], folder: bool) -> None:
    """Refuses an output that is an input or lies in one; a folder may not hold one either."""
    if output == "-":
        return
    target = Path(output).resolve()
    for text in events:
        given = Path(SourceFile.parse(text).path).resolve()
        if target == given or (given in target.parents and given.is_dir()) or (folder and target in given.parents and target.is_dir()):  # fmt: skip
            raise RunError(f"the output {output} is an input, too", hint="write to another place")


@dataclass(frozen=True)
class SparkRun:
    """What a run on Spark is about."""

    program: Program
    sources: list[SourceFile]
    facts: list[tuple[str, str]]
    rdf: list[Graph]
    settings: Settings


def run_on_spark(
    run: SparkRun, master: str, conf: Iterable[str], partitions: int | None, until: str | None, output: str,
    format_: Format, trace: bool,
) -> None:  # fmt: skip
    """`augury run` on Spark."""
    plan = run.program.plan
    check_registered(plan)
    with TemporaryDirectory(prefix="augury-") as folder:
        sources = [_spooled(source, Path(folder)) for source in run.sources]
        for source in sources:
            source.check()
        with working("starting Spark"):
            from augury.spark.session import open_session

            spark = open_session(master, conf)
            from augury.spark.job import SparkJob
        with working("reading events"):
            job = SparkJob(
                spark, run.program, sources, run.facts, run.rdf, run.settings, until=until, partitions=partitions,
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


@cli.command()
@program_files
@events_option
@facts_option
@rdf_option
@rdf_plain_option
@functions_option
@policy_option
@time_option
@clock_option
@retention_option
@on_error_option
@null_option
@strict_option
@limit_option
@click.option("--checkpoint", required=True, metavar="DIR", help="Where the run keeps what it needs to go on.")
@click.option("--output", default="-", show_default=True, metavar="DEST", help="A folder, or - for standard output.")
@click.option("--format", "format_", type=click.Choice(["jsonl", "csv", "parquet"]), default="jsonl", show_default=True)
@click.option("--lateness", default="0s", show_default=True, metavar="D", help="How late an event may come.")
@click.option("--late", metavar="DEST", help="A folder for what comes later; otherwise it is counted.")
@click.option(
    "--longest", metavar="D", help="How long an event lasts at most; by default, in JSON lines, all are points in time."
)
@click.option(
    "--emit",
    type=click.Choice(["early", "final"]),
    default="final",
    show_default=True,
    help="Once nothing can change an answer, or at once, with rows that take answers back.",
)
@click.option(
    "--trigger", default="1s", show_default=True, metavar="once|D", help="All that is there and no more, or how often."
)
@click.option(
    "--buckets", type=click.IntRange(1), metavar="N", help="Parts of the state; by default two for each core."
)
@spark_options
def stream(
    program: tuple[str, ...], events: tuple[str, ...], facts: tuple[str, ...], rdf: tuple[str, ...], rdf_plain: tuple[str, ...],
    functions: tuple[str, ...], policy: str | None, time: str, clock: Kind | None, retention: str | None, on_error: OnError, strict: bool, limits: tuple[str, ...], nulls: tuple[str, ...], checkpoint: str, output: str,
    format_: Literal["jsonl", "csv", "parquet"], lateness: str, late: str | None, longest: str | None,
    emit: Literal["early", "final"], trigger: str, buckets: int | None, master: str, conf: tuple[str, ...],
) -> None:  # fmt: skip
    """Run a program over events as they come, on Spark.

    SRC is a folder, or a pattern in quotes, to which files are added, or - for JSON lines on standard input. Each batch
    writes a folder DEST/batch=N; a run that was stopped or killed goes on from its checkpoint.
    """
    compiled = _compile(program, facts, functions, policy)
    check_registered(compiled.plan)
    failed = spark_problem()
    if failed is not None:
        raise RunError(failed.message, failed.hint.partition(";")[0])
    if output == "-" and format_ != "jsonl":
        raise click.UsageError("standard output takes JSON lines; name a folder with --output")
    for destination in (output, late or "-"):
        _check_output(destination, events, folder=True)
    from augury.spark import live
    from augury.spark.lock import held
    from augury.spark.session import open_session

    settings = _settings(
        compiled,
        clock=clock,
        emit=emit,
        lateness=lateness,
        longest=longest,
        retention=retention,
        on_error=on_error,
        strict=strict,
        limits=limits,
    )
    order = live.Order(
        compiled, [SourceFile.parse(e, time, nulls) for e in events], _fact_sources(facts), _graphs(rdf, rdf_plain),
        Path(checkpoint), output, format_, settings, late, trigger,
    )  # fmt: skip
    parts = buckets or live.remembered(order.checkpoint).get("buckets") or 2 * (os.cpu_count() or 1)
    live.check(order, parts)
    order = order.ready()
    with held(order.checkpoint) as log:
        with working("starting Spark"):
            spark = open_session(master, conf, streaming_buckets=parts, log=log)
        running = live.Live(spark, order, parts, say)
        try:
            with progress("waiting for events") as show:
                running.run(show)
        except KeyboardInterrupt:
            raise click.exceptions.Abort from None
        finally:
            counts = running.tally
            if sys.stderr.isatty():
                say(str(counts))
            report(
                compiled.plan,
                running.skipped,
                running.pipeline.facts,
                running.graphs,
                [],
                counts.errors,
                counts.skipped,
            )
            passed = [f"`{name}`" for name in sorted(counts.types)]
            tell("events of types that the program does not know, passed over", passed, count=counts.unknown)
            if late is None:
                tell("late", counts.examples, count=counts.late)


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


@cli.command()
@history_options
@click.option(
    "--event",
    "wanted",
    required=True,
    metavar="ATOM",
    help="The event, such as 'fire_alarm(\"l1\")' or 'fire_alarm(\"l1\") @ [1, 3]'.",
)
@click.option("--all", "every", is_flag=True, help="Every derivation, not just one.")
@click.option("--format", "format_", type=click.Choice(["text", "json", "mermaid"]), default="text")
def why(
    program: tuple[str, ...], events: tuple[str, ...], facts: tuple[str, ...], rdf: tuple[str, ...], rdf_plain: tuple[str, ...],
    functions: tuple[str, ...], policy: str | None, time: str, clock: Kind | None, until: str | None, as_of: str | None, retention: str | None,
    nulls: tuple[str, ...], strict: bool, on_error: OnError, limits: tuple[str, ...], wanted: str, every: bool,
    format_: str,
) -> None:  # fmt: skip
    """Show why an event was detected: the rules, events and facts behind it; or what came nearest, if it was not."""
    compiled = _compile(program, facts, functions, policy)
    everything = replace(compiled.plan, outputs=tuple(dict.fromkeys(rule.type for rule in compiled.plan.rules)))
    compiled = replace(compiled, plan=everything)  # one may ask for any derived event
    settings = _settings(compiled, clock=clock, retention=retention, on_error=on_error, strict=strict, limits=limits)
    sources = [SourceFile.parse(source, time, nulls) for source in events]
    job = Job(compiled, sources, _fact_sources(facts), _graphs(rdf, rdf_plain), settings)
    model = job.evaluate(until, as_of, engine="embedded")
    found = [e for e in model.all_events if _matches(e, wanted, job.clock, job.program.plan.prefixes)]
    if not found:
        missing = _not_detected(wanted, model, job)
        if isinstance(model, Answer):
            with suppress(AuguryError):  # the error below says what is wrong with the question
                click.echo(f"What came nearest:\n\n{model.session.why_not(wanted)}\n", err=True)
        raise missing
    trees = [derivation_tree(model, event, every) for event in found]
    if format_ == "json":
        click.echo(json.dumps([tree_as_json(t, job.clock) for t in trees], indent=2, ensure_ascii=False))
    elif format_ == "mermaid":
        click.echo("\n".join(tree_as_mermaid(t, job.clock, compiled.plan.prefixes) for t in trees), nl=False)
    else:
        click.echo("\n\n".join(show_tree(t, job.clock, compiled.plan.prefixes) for t in trees))
    job.report(model)


def _matches(event: Event, wanted: str, clock: Clock, prefixes: Mapping[str, str]) -> bool:
    """By type alone, by type and arguments, or with the interval too."""
    if "@" in wanted:
        asked = read_event(wanted, clock, prefixes)
        if not isinstance(asked, Event):
            return False
        if "(" not in wanted:
            return (asked.type, asked.start, asked.end) == (event.type, event.start, event.end)
        return asked.content == event.content
    type, args = read_atom(wanted, prefixes)
    same = Event(type, args, event.start, event.end)
    return type == event.type and ("(" not in wanted or same.content == event.content)


def _not_detected(wanted: str, model: Model, job: Job) -> RunError:
    type = read_atom(wanted.partition("@")[0].strip(), job.program.plan.prefixes)[0]
    others = [show_event(e, job.clock) for e in model.all_events if e.type == type]
    if not any(rule.type == type for rule in job.program.plan.rules):
        known = ", ".join(sorted({rule.type for rule in job.program.plan.rules}))
        return RunError(f"no rule derives `{type}`", f"the program derives {known}")
    if not others:
        return RunError(f"no `{type}` was detected")
    return RunError(
        f"{wanted} was not detected", f"these were: {'; '.join(others[:5])}{' …' if len(others) > 5 else ''}"
    )


# demo


@cli.command()
@click.argument("names", nargs=-1, metavar="[NAME]…")
@click.option("--engine", type=click.Choice(["embedded", "spark"]), default="embedded", show_default=True, help="What is measured.")  # fmt: skip
@click.option("--size", type=click.IntRange(1), help="Events of a stream: 1,000,000 by default, on Spark 2,000,000.")
@click.option("--repeat", type=click.IntRange(1), default=3, show_default=True, help="Runs, of which the best counts.")
@click.option("--json", "json_path", metavar="FILE", help="Write the figures as JSON.")
@click.option("--charts", "charts", metavar="FOLDER", help="Draw charts (SVG).")
def bench(
    names: tuple[str, ...], engine: str, size: int | None, repeat: int, json_path: str | None, charts: str | None
) -> None:
    """Measure the embedded engine beside hand-written code: P1 to P8, the papers' experiments, and more.

    NAME is P, R, V, knowledge, files or extras, or one of them such as P1, R3a, V4 or latency; all of them where none is
    named. files10 (ten times the events) and files-spark (on Spark, minutes) are run where they are named.

    With --engine spark, CPU of all processes beside what Spark needs without Augury: NAME is batch (or patterns of it,
    such as P1), copies, stream, scale, small or big; the first three where none is named, and `all` for all.
    """
    # Their numbers and tables are not needed otherwise.
    if engine == "spark":
        from augury.bench.spark import SIZE
        from augury.bench.spark import run as run_spark_benchmarks

        sys.exit(run_spark_benchmarks(list(names), size or SIZE, json_path, charts, repeat))
    from augury.bench.main import run as run_benchmarks

    sys.exit(run_benchmarks(list(names), size or 1_000_000, json_path, charts, repeat))


@cli.command()
@click.option("--engine", type=click.Choice(["spark", "embedded"]), help="By default Spark, where there is Java.")
def demo(engine: str | None) -> None:
    """Run a small example that comes with Augury."""
    with as_file(files("augury").joinpath("demo")) as folder:
        program, events = folder / "fire.aug", folder / "fire.jsonl"
        click.echo(f"# The program ({program.name}): rules over wind, fires and stations\n")
        click.echo(program.read_text(encoding="utf-8"))
        job = Job(_compile([str(program)], (), (), None), [SourceFile(str(events))])
        model = job.evaluate(engine="embedded")
        found, where = model.events, "in this process"
        if _engine(engine, []) == "spark":
            found, where = _demo_on_spark(job.program, str(events)), "on Spark"
        click.echo(f"# {len(job.history)} events ({events.name}); Augury detects, {where}:\n")
        click.echo(sinks.show_table(sinks.answers_of(found, job.program.plan, job.clock), _width("-")))
        alarm = next(e for e in found if e.type == "fire_alarm")
        click.echo("# Why the first alarm?\n")
        click.echo(show_tree(derivation_tree(model, alarm), job.clock))
        click.echo("\n# Try it yourself (augury --help):")
        click.echo("  augury run PROGRAM.aug --events EVENTS.jsonl")
        click.echo("  augury stream PROGRAM.aug --events FOLDER --checkpoint DIR --output DEST")


def _demo_on_spark(program: Program, events: str) -> list[Event]:
    with working("starting Spark, which takes some seconds"):
        from augury.spark.session import open_session

        spark = open_session("local[2]")
        from augury.spark.job import SparkJob
    with working("evaluating on Spark"):
        return SparkJob(spark, program, [SourceFile(events)]).evaluate().events


if __name__ == "__main__":
    main()
