"""`augury demo`."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread

import click
import orjson

from augury import sinks
from augury.algebra.plan import Plan
from augury.cli.options import compiled, fact_sources
from augury.cli.run import choose_engine
from augury.core.clock import Clock
from augury.core.errors import RunError, counted
from augury.core.model import Event
from augury.engine.session import Session
from augury.examples import EXAMPLES, Example, ExampleResult, ExampleTable, load, show_argument, show_time
from augury.job import Job
from augury.knowledge.graphs import RdfGraph
from augury.run import Result
from augury.settings import Settings, Task
from augury.sources import SourceFile
from augury.terminal import is_terminal, progress, say, working

_ROWS = 15  # of a table, or a drawing, that are shown
_STEPS = 12  # in which a stream is written
_PAUSE = 0.5  # seconds between them


@click.command()
@click.argument("name", required=False)
@click.option("--embedded", is_flag=True, help="Run in this process; by default on Spark, where there is Java.")
@click.option("--stream", is_flag=True, help="Feed the events in steps, and show answers as they arrive.")
@click.option("--output", metavar="DIR", help="Where its files go; by default augury-demo/NAME.")
def demo(name: str | None, embedded: bool, stream: bool, output: str | None) -> None:
    """Run an application that comes with Augury; without NAME, list them."""
    if name is None:
        for each in EXAMPLES:
            example = load(each)
            needs = f" (needs pip install 'augury[{example.missing}]')" if example.missing else ""
            click.echo(f"{each:<16} {example.about}{needs}")
        click.echo(
            "\naugury demo NAME runs one, on Spark where there is Java; --embedded in this process, --stream bit by bit."
        )
        return
    if name not in EXAMPLES:
        raise click.UsageError(f"there is no application `{name}`; `augury demo` lists them")
    example = load(name)
    if stream and not example.streams:
        raise click.UsageError(f"`{name}` has a history only, and cannot be shown as a stream")
    if example.missing:
        raise RunError(f"`{name}` reads RDF, which is an extra", hint=f"pip install 'augury[{example.missing}]'")
    folder = Path(output or f"augury-demo/{name}")
    with working("making events"):
        events = example.prepare(folder)
    click.echo(f"{name}: {example.about}\n")
    engine = choose_engine("embedded" if embedded else None, [])
    if stream:
        _stream(example, folder, engine, events)
    else:
        _run(example, folder, engine, events)
    _files(example, folder)


def task_of(example: Example, folder: Path) -> Task:
    """What `augury run` works on, for the files of an example in a folder."""
    facts = [f"{name}={folder / path}" for name, path in fact_sources(example.facts)]
    program = compiled([str(folder / path) for path in example.program], facts)
    sources = tuple(SourceFile.parse(word) for word in example.located(example.events, folder))
    graphs = tuple(RdfGraph(word) for word in example.located(example.rdf, folder))
    return Task(program, sources, tuple(fact_sources(facts)), graphs, Settings.of(program))


def _run(example: Example, folder: Path, engine: str, events: int) -> None:
    """All events at once."""
    task = task_of(example, folder)
    began = time.perf_counter()
    result = None
    if engine == "spark":
        detected, clock = _on_spark(task, example.until)
    else:
        job = Job(task)
        result = Result(task.program, job.evaluate(example.until, engine="embedded"), job.clock)
        detected, clock = result.events, result.clock
    where = "on Spark" if engine == "spark" else "in this process"
    took = time.perf_counter() - began
    click.echo(f"{events:,} events, {counted(len(detected), 'detection')}, {where}, in {took:.1f} s.\n")
    with (folder / "found.jsonl").open("wb") as file:
        file.writelines(orjson.dumps(sinks.event_as_json(event, clock)) + b"\n" for event in detected)
    answer = ExampleResult(detected, clock, folder)
    if example.lanes:
        click.echo(drawing([e for e in detected if e.type in example.lanes], clock))
    for table in example.tables(answer) if example.tables else tables(answer, task.plan):
        click.echo(show_table(table))
    back: list[Event] = []
    if example.revises:
        table, back = _taken_back(example, task, folder)
        click.echo(show_table(table))
    if engine == "spark" and example.streams:  # derivations and pictures come from the embedded engine
        result = Result(task.program, Job(task).evaluate(example.until, engine="embedded"), clock)
    if result is not None:
        _explain(example, result)
        _draw(example, result, back, folder)


def _on_spark(task: Task, until: str | None) -> tuple[list[Event], Clock]:
    with working("starting Spark, which takes some seconds"):
        from augury.spark.starting import open_session

        spark = open_session("local[2]")
        from augury.spark.job import SparkJob
    with working("evaluating on Spark"):
        job = SparkJob(spark, task, until)
        return job.evaluate().events, job.clock


def _explain(example: Example, result: Result) -> None:
    """The derivation of the first event of a type."""
    if example.explains:
        click.echo(f"Why the first {example.explains}?\n")
        click.echo(result.why(next(event for event in result if event.type == example.explains)) + "\n")


def _draw(example: Example, result: Result, taken_back: Sequence[Event], folder: Path) -> None:
    """The picture of an example, a map or a timeline."""
    types = example.pictured or result.program.plan.outputs
    try:
        if example.places is not None:
            picture = result.map(example.places(), types=types, title=example.sentence)
        else:
            picture = result.timeline(taken_back, types=types, title=example.sentence)
        picture.save(folder / "picture.svg")
    except RunError as error:  # without matplotlib there are no maps
        say(str(error))


def _taken_back(example: Example, task: Task, folder: Path) -> tuple[ExampleTable, list[Event]]:
    """A table of the answers that are retracted later: when, and which event caused it; and these answers."""
    session = Session(task.program, task.settings, facts=dict(task.facts), rdf=[folder / path for path in example.rdf])
    said: dict[object, str] = {}
    rows: list[tuple[str, ...]] = []
    back: list[Event] = []
    lines = (folder / "events.jsonl").read_bytes().splitlines()
    with progress("telling events as they were heard") as shown:
        for heard, several in groupby(map(orjson.loads, lines), lambda item: item["heard"]):
            items = [{name: value for name, value in item.items() if name != "heard"} for item in several]
            shown(f"telling events as they were heard, {heard}")
            for change in session.push(items):
                if change.event.type not in example.revises:
                    continue
                now = show_time(session.clock, session.clock.read(heard))
                if change.op == "insert":
                    said[change.event.content] = now
                else:
                    back.append(change.event)
                    rows.append((said.pop(change.event.content), now, _cause(items), _label(change.event)))
    title = f"Said, and taken back later: {len(rows)} of {len(said) + len(rows)}"
    return ExampleTable(title, ("said", "taken back", "since", "answer"), rows), back


def _cause(items: Sequence[Mapping[str, object]]) -> str:
    if len(items) > 1:
        return f"{len(items)} more events"
    return f"{items[0]['id']} is revoked" if items[0].get("op") == "revoke" else f"{items[0]['id']} comes late"


# Streams


def _stream(example: Example, folder: Path, engine: str, events: int) -> None:
    """The events bit by bit, through the command line as anybody would do it."""
    lines = (folder / "events.jsonl").read_bytes().splitlines(keepends=True)
    options = list(example.options(folder))
    options[options.index("--events") + 1] = "-"
    with TemporaryDirectory(prefix="augury-") as checkpoint:
        if engine == "spark":
            how = ["stream", "--checkpoint", checkpoint, "--emit", "early", "--lateness", example.lateness]
            how += ["--clock", "timestamp"]  # Spark is started before a first event could tell
        else:
            how = ["run", "--changes", "--engine", "embedded", "--format", "jsonl"]
        command = [*how, *options]
        click.echo(f"{events:,} events, piped bit by bit into\n  augury {' '.join(command)}\n")
        process = subprocess.Popen(
            [sys.executable, "-m", "augury", *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert process.stdin is not None and process.stdout is not None
        teller = Thread(target=_tell, args=(process, lines), daemon=True)
        teller.start()
        count = 0
        for line in process.stdout:
            change = orjson.loads(line)
            sign = {"insert": "+", "retract": "-"}[change.get("op", "insert")]
            args = ", ".join(show_argument(_plain(a)) for a in change["args"])
            click.echo(f"{sign} {_short(change['start'])} to {_short(change['end'])}  {change['type']}({args})")
            count += 1
        if process.wait():  # which has said why
            sys.exit(process.returncode)
        click.echo(f"\n{counted(count, 'change')} of the answer.\n")


def _tell(process: subprocess.Popen[bytes], lines: Sequence[bytes]) -> None:
    assert process.stdin is not None
    step = max(1, -(-len(lines) // _STEPS))
    with suppress(BrokenPipeError):
        for first in range(0, len(lines), step):
            process.stdin.writelines(lines[first : first + step])
            process.stdin.flush()
            time.sleep(_PAUSE)
        process.stdin.close()


def _plain(value: object) -> object:
    """A value of JSON to read."""
    if isinstance(value, dict):
        return value.get("iri", "").rpartition("#")[2].rpartition("/")[2] if "iri" in value else value
    return value


def _short(text: str) -> str:
    return str(text).replace("T", " ").removesuffix("Z").removesuffix(".000").removesuffix(":00")


# What is shown


def tables(result: ExampleResult, plan: Plan) -> Iterator[ExampleTable]:
    """A table for each output: when, and the arguments under their names."""
    for type in plan.outputs:
        events = result.of(type)
        names = sinks.column_names(plan, type)
        points = all(event.start == event.end for event in events)
        rows = [(*_times(event, result.clock, points), *map(show_argument, event.args)) for event in events]
        yield ExampleTable(f"{type}: {len(events):,}", ("at", *names) if points else ("from", "to", *names), rows)


def _times(event: Event, clock: Clock, points: bool) -> tuple[str, ...]:
    start, end = show_time(clock, event.start), show_time(clock, event.end)
    return (end,) if points else (start, end)


def show_table(table: ExampleTable) -> str:
    """A table as text: numbers to the right, and the first rows where there are many."""
    rows = [[_cell(value) for value in row] for row in table.rows[:_ROWS]]
    if not rows:
        return f"{table.title}\n  none\n"
    columns = list(zip(*rows, strict=True))
    widths = [max(map(len, (name, *cells))) for name, cells in zip(table.header, columns, strict=True)]
    right = [all(_is_number(cell) for cell in cells) for cells in columns]

    def line(cells: Iterable[str]) -> str:
        placed = (c.rjust(w) if r else c.ljust(w) for c, w, r in zip(cells, widths, right, strict=True))
        return "  " + "  ".join(placed).rstrip()

    lines = [table.title, line(table.header), *map(line, rows)]
    if len(table.rows) > _ROWS:
        lines.append(f"  … and {len(table.rows) - _ROWS:,} more")
    return "\n".join(lines) + "\n"


def _cell(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else show_argument(value)


def _is_number(text: str) -> bool:
    return text.replace(",", "").replace(".", "").replace("-", "").isdigit()


def _label(event: Event) -> str:
    return f"{event.type}({', '.join(map(show_argument, event.args))})"


def drawing(events: Sequence[Event], clock: Clock) -> str:
    """Events on a line of time: a lane for each type and first argument, `#` a point, `|==|` an interval."""
    if not events:
        return ""
    lanes: dict[tuple[str, str], list[Event]] = {}
    for event in events:
        lanes.setdefault((show_argument(event.args[0]) if event.args else "", event.type), []).append(event)
    labels = {lane: f"{lane[0]}  {lane[1]}" for lane in sorted(lanes)[: 2 * _ROWS]}
    room = max(map(len, labels.values()))
    width = max(30, min(shutil.get_terminal_size().columns if is_terminal() else 120, 140) - room - 4)
    first, last = min(e.start for e in events), max(e.end for e in events)
    scale = (width - 1) / max(1, last - first)
    lines = [" " * room + "  " + _scale(first, last, width, clock)]
    for lane, label in labels.items():
        cells = [" "] * width
        for event in sorted(lanes[lane], key=lambda e: e.start - e.end):
            start, end = (round((t - first) * scale) for t in (event.start, event.end))
            cells[start : end + 1] = ["#"] if start == end else ["|", *"=" * (end - start - 1), "|"]
        lines.append(f"{label.ljust(room)}  {''.join(cells)}".rstrip())
    return "\n".join(lines) + "\n"


def _scale(first: int, last: int, width: int, clock: Clock) -> str:
    """The times at both ends and in the middle."""
    begin, middle, end = (show_time(clock, t) for t in (first, (first + last) // 2, last))
    middle = middle[:16] if clock.kind == "timestamp" else middle
    line = begin.ljust(width // 2 - len(middle) // 2) + middle
    return line.ljust(width - len(end)) + end


def _files(example: Example, folder: Path) -> None:
    """The files that were written, and the next commands to try."""
    click.echo(f"In {folder}:")
    for path in sorted(folder.iterdir()):
        click.echo(f"  {path.name:<20} {path.stat().st_size:>11,} bytes")
    until = ["--until", f"'{example.until}'"] if example.until else []
    click.echo("\nOn your own:")
    click.echo(f"  cd {folder} && augury run {' '.join([*example.options(), *until])}")
    if example.streams:
        click.echo(f"  augury demo {example.name} --stream")
    others = [name for name in EXAMPLES if name != example.name]
    click.echo(f"  augury demo NAME, with {', '.join(others)}")
