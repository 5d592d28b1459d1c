"""Options that commands share: a program with its events, and the task made from them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, wraps
from pathlib import Path
from typing import Annotated, TypeAlias, TypeVar, get_type_hints

import click

from augury.compiled import Compiled, source_of
from augury.connectors import Address, connectors
from augury.core.clock import Kind
from augury.core.errors import DataError, RunError, Source, counted
from augury.core.time_units import TIME_UNITS, TimeUnit
from augury.job import load_functions
from augury.knowledge.graphs import RdfGraph
from augury.program import Program
from augury.settings import Settings, Task, length
from augury.sources import OnError, SourceFile, listed, titles
from augury.terminal import say, show_diagnostics

files_argument = click.argument("program", nargs=-1, required=True, metavar="FILE...")
INCLUDE_FROM = "augury.include_from"
AnyCommand: TypeAlias = Callable[..., object]
Command = TypeVar("Command", bound=AnyCommand)


def _keep_folders(context: click.Context, option: click.Parameter, folders: tuple[str, ...]) -> None:
    context.meta[INCLUDE_FROM] = folders


include_option = click.option(
    "--allow-include",
    multiple=True,
    metavar="DIR",
    expose_value=False,
    callback=_keep_folders,
    help="A folder from which programs may include files, besides their own.",
)


def program_files(command: Command) -> Command:
    """The files of a program, and where those that they include may be."""
    return files_argument(include_option(command))


facts_option = click.option(
    "--facts",
    multiple=True,
    metavar="NAME=SRC",
    help=f"Facts of a static predicate: {', '.join(titles())}, or a database and a query (shop.duckdb:SELECT …).",
)
functions_option = click.option(
    "--functions", multiple=True, metavar="FILE.py", help="Python file with functions and aggregates to register."
)
policy_option = click.option(
    "--policy", metavar="POLICY", help="recent, chronological or unrestricted, where the program names none."
)
until_option = click.option(
    "--until", metavar="T", help="The time of the clock at the end; by default the greatest end of an event."
)
as_of_option = click.option("--as-of", metavar="T", help="Answer with what was known by then.")


def program_options(command: Command) -> Command:
    return program_files(facts_option(functions_option(command)))


# Options that a command gets as one value


def gathered(kind: type, name: str) -> Callable[[AnyCommand], AnyCommand]:
    """The options with which all fields of a kind of values are annotated; the command gets one of them under a name."""
    annotated = get_type_hints(kind, include_extras=True)

    def apply(command: AnyCommand) -> AnyCommand:
        @wraps(command)
        def gathering(**options: object) -> object:
            values = {field: options.pop(field) for field in annotated}
            return command(**{name: kind(**values)}, **options)

        result: AnyCommand = gathering
        for field in reversed(annotated.values()):
            result = field.__metadata__[0](result)
        return result

    return apply


@dataclass(frozen=True)
class TaskOptions:
    """The program of a command, its events, and how it runs."""

    program: Annotated[tuple[str, ...], program_files]
    events: Annotated[
        tuple[str, ...],
        click.option(
            "--events",
            "--from",
            "events",
            multiple=True,
            required=True,
            metavar="SRC",
            help="Events: a path or type=path, a file, a folder or a pattern; "
            f"{listed(titles(), 'or')}; - is standard input. Of graph events, <stream>=path with {listed(titles(graphs=True), 'or')}.",
        ),
    ]
    facts: Annotated[tuple[str, ...], facts_option]
    rdf: Annotated[
        tuple[str, ...],
        click.option(
            "--rdf",
            multiple=True,
            metavar="SRC",
            help="An RDF graph with what RDFS entails: Turtle, N-Triples, N-Quads, TriG, RDF/XML or JSON-LD.",
        ),
    ]
    rdf_plain: Annotated[
        tuple[str, ...],
        click.option("--rdf-plain", multiple=True, metavar="SRC", help="An RDF graph without RDFS entailment."),
    ]
    functions: Annotated[tuple[str, ...], functions_option]
    policy: Annotated[str | None, policy_option]
    time: Annotated[
        str,
        click.option(
            "--time",
            default="time",
            show_default=True,
            metavar="NAME",
            help="The column, or key, that holds the time of an event.",
        ),
    ]
    time_predicate: Annotated[
        str,
        click.option(
            "--time-predicate",
            default="",
            metavar="IRI",
            help="The predicate that says the time of a named graph; without it, the name of the graph ends in its time.",
        ),
    ]
    clock: Annotated[
        Kind | None,
        click.option(
            "--clock",
            type=click.Choice(["timestamp", "logical"]),
            help="The clock of event times; by default the one that the first time suggests.",
        ),
    ]
    time_unit: Annotated[
        TimeUnit | None,
        click.option(
            "--time-unit",
            type=click.Choice(TIME_UNITS),
            help="The unit of numeric times: seconds, milli-, micro- or nanoseconds since 1970. "
            "By default the unit in which the first time lies between 1980 and 2100, which is reported.",
        ),
    ]
    zone: Annotated[
        str | None,
        click.option(
            "--zone",
            metavar="ZONE",
            help="The time zone of times that name none, such as Europe/Berlin; by default UTC.",
        ),
    ]
    columns: Annotated[
        tuple[str, ...],
        click.option(
            "--columns",
            multiple=True,
            metavar="EVENT.ATTR=COLUMN",
            help="The column, or key, that holds an attribute under another name: wind.speed=v_kmh.",
        ),
    ]
    retention: Annotated[
        str | None,
        click.option("--retention", metavar="D", help="A window for the rules that have no bound, such as 1h."),
    ]
    nulls: Annotated[
        tuple[str, ...],
        click.option(
            "--null",
            "nulls",
            multiple=True,
            metavar="TEXT",
            help="In CSV: a text that means null, besides the empty cell.",
        ),
    ]
    strict: Annotated[
        bool,
        click.option(
            "--strict",
            is_flag=True,
            help="Refuse events of types that the program does not know; by default they are counted.",
        ),
    ]
    on_error: Annotated[
        OnError,
        click.option(
            "--on-error",
            type=click.Choice(["stop", "skip"]),
            default="stop",
            help="What to do with a malformed line of input.",
        ),
    ]
    limits: Annotated[
        tuple[str, ...],
        click.option(
            "--limit",
            "limits",
            multiple=True,
            metavar="NAME=N",
            help="What the run may use: rows or bytes of state, pairs, matches, answers or time of a step, such as --limit bytes=2GB; "
            "and what reading may: time, the bytes of a line, and what a packed file is unpacked to.",
        ),
    ]

    @cached_property
    def compiled(self) -> Program:
        return compiled(self.program, self.facts, self.functions, self.policy)

    def sources(self, program: Program) -> tuple[SourceFile, ...]:
        remaining = (self.time, self.nulls, self.time_predicate, self.columns, program.plan)
        try:
            parsed = [SourceFile.parse(source, *remaining) for source in self.events]
            return tuple(
                replace(file, shown=Address.parse(file.path).name)
                if "://" in file.path and file.path.partition("://")[0] in connectors()
                else file
                for file in parsed
            )
        except DataError as error:
            raise error.at("--columns") from None

    def task(self, program: Program | None = None, **more: object) -> Task:
        """All of it, with settings that the command has beside these; also for another program."""
        chosen = program or self.compiled
        graphs = (*map(RdfGraph, self.rdf), *(RdfGraph(path, entailment=False) for path in self.rdf_plain))
        settings = self._settings(chosen, more)
        return Task(chosen, self.sources(chosen), tuple(fact_sources(self.facts)), graphs, settings)

    def _settings(self, program: Program, more: dict[str, object]) -> Settings:
        """How the program runs; what is wrong with a duration names its option."""
        wrong = next((limit for limit in self.limits if "=" not in limit), None)
        if wrong is not None:
            raise DataError(f"a limit is written NAME=NUMBER, not {wrong!r}", "--limit", "such as --limit rows=1000000")
        written = {
            name: getattr(self, name) for name in ("clock", "time_unit", "zone", "retention", "on_error", "strict")
        } | more
        for option in ("lateness", "longest", "retention"):
            try:
                length(written.get(option), program.plan.tick)
            except RunError as error:
                raise DataError(error.message, f"--{option}") from None
        return Settings.of(program, limits=dict(limit.split("=", 1) for limit in self.limits), **written)


task_options = gathered(TaskOptions, "options")


def task_option(*names: str) -> Callable[[AnyCommand], AnyCommand]:
    """Some options of a task, for commands that take others in place of the rest."""
    annotated = get_type_hints(TaskOptions, include_extras=True)

    def apply(command: AnyCommand) -> AnyCommand:
        result = command
        for name in reversed(names):
            result = annotated[name].__metadata__[0](result)
        return result

    return apply


@dataclass(frozen=True)
class Cluster:
    """Where Spark runs, and how it is set up."""

    master: Annotated[
        str,
        click.option("--master", default="local[*]", show_default=True, metavar="URL", help="On Spark: where it runs."),
    ]
    conf: Annotated[
        tuple[str, ...],
        click.option(
            "--conf", multiple=True, metavar="K=V", help="On Spark: a setting, such as spark.driver.memory=4g."
        ),
    ]


spark_options = gathered(Cluster, "cluster")


def program_sources(paths: Iterable[str]) -> list[Source]:
    return [Source("<stdin>", sys.stdin.read()) if p == "-" else source_of(Path(p)) for p in paths]


def fact_sources(facts: Iterable[str]) -> list[tuple[str, str]]:
    pairs: list[tuple[str, str]] = []
    for text in facts:
        name, equals, path = text.partition("=")
        if not equals or not name or not path:
            raise click.UsageError(f"--facts {text}: write it as NAME=SRC")
        pairs.append((name, path))
    return pairs


def compiled(
    paths: Iterable[str], facts: Iterable[str] = (), functions: Iterable[str] = (), policy: str | None = None
) -> Program:
    """The program of some files."""
    return program_compiler(facts, functions, policy)(program_sources(paths))


def program_compiler(
    facts: Iterable[str], functions: Iterable[str], policy: str | None = None
) -> Callable[[Sequence[Source]], Program]:
    """Makes programs of texts as the options of a command say."""
    names = [name for name, _ in fact_sources(facts)]
    folders = click.get_current_context().meta.get(INCLUDE_FROM, ())
    registered = load_functions(functions)
    return lambda sources: Program.of(sources, registered, names, policy, folders)


def compile_sources(facts: Iterable[str], functions: Iterable[str]) -> Callable[[Sequence[Source]], Compiled]:
    """Compiles texts as the options of a command say, again and again."""
    names = [name for name, _ in fact_sources(facts)]
    folders = click.get_current_context().meta.get(INCLUDE_FROM, ())
    registered = load_functions(functions)
    return lambda sources: Compiled.of(sources, registered, names, include_from=folders)


def say_warnings(program: Program) -> None:
    """How many warnings there are; that nothing can be detected at all is shown here, too."""
    if not program.plan.rules and not program.plan.graph_queries:
        show_diagnostics(program.warnings)
        return
    number = sum(warning.code != "W304" for warning in program.warnings)  # a finished history is bounded in any case
    if number:
        say(f"{counted(number, 'warning')}; `augury check` shows {'it' if number == 1 else 'them'}")
