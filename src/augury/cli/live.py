"""`augury live`."""

from __future__ import annotations

import signal
import sys
import threading
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import click
import orjson

from augury.cli.options import (
    INCLUDE_FROM,
    fact_sources,
    functions_option,
    policy_option,
    program_files,
    program_sources,
    task_option,
)
from augury.connectors import redacted
from augury.core.collector import rarely_collected
from augury.core.errors import AuguryError, Source
from augury.job import check_registered, load_functions
from augury.knowledge.graphs import RdfGraph
from augury.program import Program
from augury.service import LiveService
from augury.service.opening_service import ServiceSettings, open_service
from augury.service.operations import host_and_port, operations
from augury.terminal import coloured, say, status_line

_LOG_EVERY = 10.0  # seconds between two lines with figures, where no terminal shows them


class ServiceLog:
    """What happens, on standard error: as text on a terminal, else as JSON lines."""

    def __init__(self) -> None:
        self.structured = not sys.stderr.isatty()

    def __call__(self, level: str, message: str, **figures: Any) -> None:
        if not self.structured:
            colour = {"error": "red", "warning": "yellow"}.get(level)
            say(f": {redacted(message)}", coloured(level, colour)) if colour else say(redacted(message))
            return
        stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        line = {"time": stamp, "level": level, "message": redacted(message), **figures}
        click.echo(orjson.dumps(line).decode(), err=True)


@click.command()
@program_files
@click.option(
    "--from",
    "sources",
    multiple=True,
    required=True,
    metavar="ADDRESS",
    help="Where events come from; may be repeated.",
)
@click.option(
    "--to", "sinks", multiple=True, default=["-"], show_default=True, metavar="ADDRESS", help="Where answers go to."
)
@click.option(
    "--facts",
    multiple=True,
    metavar="NAME=SRC",
    help="Facts of a static predicate: a file, or postgres://… to follow a table.",
)
@click.option("--rdf", multiple=True, metavar="SRC", help="An RDF graph with what RDFS entails.")
@functions_option
@policy_option
@click.option("--state", required=True, metavar="DIR", help="The directory of the service, from which it resumes.")
@click.option("--lateness", default="0s", show_default=True, metavar="D", help="How late an event may arrive.")
@click.option(
    "--emit",
    type=click.Choice(["early", "final"]),
    default="final",
    show_default=True,
    help="Emit an answer when nothing can change it, or at once, with changes that retract it.",
)
@click.option(
    "--dead-letters", "dead", default="", metavar="ADDRESS", help="What cannot be taken in; by default DIR/dead.jsonl."
)
@click.option(
    "--idle",
    default="10s",
    show_default=True,
    metavar="D",
    help="A source without events for so long holds back no answers.",
)
@click.option("--wall-clock", is_flag=True, help="Let time pass with the clock of this machine while no events come.")
@click.option("--snapshot-every", default="30s", show_default=True, metavar="D", help="How often the state is saved.")
@click.option(
    "--sync",
    type=click.Choice(["step", "never"]),
    default="step",
    show_default=True,
    help="Wait for the disk at each step, before input is acknowledged; never survives a kill, but no loss of power.",
)
@click.option(
    "--no-trace", "trace", flag_value=False, default=True, help="Leave out the ids of the events behind an answer."
)
@click.option(
    "--http", "listen", metavar="[HOST:]PORT", help="Serve /healthz, /readyz, /metrics and /state; by default nothing."
)
@click.option("--otlp", metavar="URL", help="Send metrics and traces to an OpenTelemetry collector.")
@click.option(
    "--no-watch", "watch", flag_value=False, default=True, help="Take over a changed program on SIGHUP alone."
)
@task_option("clock", "time_unit", "zone", "retention", "strict", "limits")
def live(
    program: tuple[str, ...],
    sources: tuple[str, ...],
    sinks: tuple[str, ...],
    facts: tuple[str, ...],
    rdf: tuple[str, ...],
    functions: tuple[str, ...],
    policy: str | None,
    listen: str | None,
    otlp: str | None,
    limits: tuple[str, ...],
    **options: Any,
) -> None:
    """Run a program as a service, over events as they come.

    An ADDRESS is a file, a folder or - for standard input and output; kafka://, postgres://, mqtt://, http:// and others are
    in the documentation. TYPE=ADDRESS names the type of events that name none; of a sink it is the type that it gets.
    SIGHUP, and a change of FILE, take over the changed program; SIGTERM ends the service, which resumes at the next start.
    """
    log = ServiceLog()
    warnings.showwarning = lambda message, *rest, **more: log("warning", str(message))
    named = fact_sources(facts)
    registered = load_functions(functions)
    folders = click.get_current_context().meta.get(INCLUDE_FROM, ())

    def compiled(saved: Sequence[Source] | None) -> Program:
        texts = program_sources(program) if saved is None else saved
        return Program.of(texts, registered, [name for name, _ in named], policy, folders)

    first = compiled(None)
    check_registered(first.plan)
    settings = ServiceSettings(**options, limits=dict(limit.split("=", 1) for limit in limits if "=" in limit))
    service = open_service(compiled, sources, sinks, dict(named), [RdfGraph(path) for path in rdf], settings, log)
    with ExitStack() as stack:
        stack.enter_context(_signals(service))
        if listen is not None:
            host, port = host_and_port(listen)
            port = stack.enter_context(operations(service, host, port))
            log("info", f"metrics at http://{host}:{port}/metrics")
        if otlp is not None:
            from augury.service.telemetry import exported

            stack.enter_context(exported(service, otlp))
        stack.enter_context(_reports(service, log))
        stack.enter_context(rarely_collected())
        service.run()
    log("info", f"stopped after {service.metrics}")


@contextmanager
def _signals(service: LiveService) -> Iterator[None]:
    """SIGTERM and an interrupt end the service, SIGHUP reloads its program."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    actions = {signal.SIGTERM: service.stop, signal.SIGINT: service.stop, signal.SIGHUP: service.reload}
    before = {number: signal.signal(number, lambda *_, act=act: act()) for number, act in actions.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _reports(service: LiveService, log: ServiceLog) -> Iterator[None]:
    """A line that is updated each second on a terminal; elsewhere a structured line now and then."""
    ended = threading.Event()

    def report() -> None:
        if not log.structured:
            with status_line("starting") as show:
                while not ended.wait(1.0):
                    show(str(service.metrics))
            return
        while not ended.wait(_LOG_EVERY):
            try:
                log("info", str(service.metrics), step=service.number)
            except AuguryError as error:
                log("warning", str(error))

    thread = threading.Thread(target=report, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(5)
