"""P1 from file to file, every form of file, with DuckDB beside it; and the same from Python.

A command is a process of its own and is run once before it is measured: kernels are compiled then, and kept on disk.
Figures are CPU seconds of the whole process with its children, from its start to its end.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import augury
from bench.baselines import SQL, has_duckdb
from bench.event_files import FORMS, EventFiles
from bench.measure import Settings, best, measure
from bench.patterns import PATTERNS
from bench.processes import Used, alone
from bench.rows import Row
from bench.streams import Stream
from bench.workload import Workload, stream_tables

P1 = PATTERNS[0]
FEW = 24  # events with which a run costs what it costs to start
TENFOLD = 10
MEGABYTE = 1e6
RUNS = (*((form, "out.jsonl") for form in FORMS), ("Parquet", "out.parquet"))

PARQUET_GOAL, TEXT_GOAL, MEMORY_GOAL = 2.5, 3.5, 600.0  # CPU seconds and megabytes, for a million events
TENFOLD_GOAL, TENFOLD_MEMORY = 9.0, 4_000.0
GOALS = {"Parquet": PARQUET_GOAL, "CSV": TEXT_GOAL, "JSON lines": TEXT_GOAL, "JSON lines, args": TEXT_GOAL}
GOALS_AT = 1_000_000
SPARK_GOAL, SPARK_AT = 2.0, 10_000_000  # CSV beside Parquet; with fewer events all is the start of Spark
ARROW_GOAL = 1.3  # tables in, tables out, beside the engine
EVENT_GOAL, DICT_GOAL = 5.0, 3.0  # microseconds

DUCKDB = """
import sys
import duckdb
path, read, query, output, form = sys.argv[1:]
connection = duckdb.connect()
connection.execute("SET threads = 1")
if path.endswith(".arrow"):
    import pyarrow
    arrow_file = pyarrow.ipc.open_file(pyarrow.memory_map(path)).read_all()
connection.execute(f"CREATE TABLE s AS {read}")
connection.execute(f"COPY ({query}) TO '{output}' (FORMAT {form})")
"""


@dataclass(frozen=True)
class Bench:
    """A folder for the program and for what is written, and how often each command is run."""

    folder: Path
    repeat: int

    @property
    def program(self) -> Path:
        path = self.folder / "p1.aug"
        if not path.exists():
            path.write_text(P1.text, encoding="utf-8")
        return path

    def augury(self, events: Path, output: str, *options: str) -> tuple[Used, int]:
        """`augury run` from a file to a file: what it used, and how many answers it wrote."""
        command = [sys.executable, "-m", "augury", "run", str(self.program), "--events", str(events), *options]
        return self.measured([*command, "--output", str(self.folder / output)], self.folder / output)

    def duckdb(self, form: str, events: Path, output: str) -> tuple[Used, int]:
        """The same answers by a query."""
        path = self.folder / f"duckdb-{output}"
        read = FORMS[form].sql.replace("PATH", str(events))
        arguments = [str(events), read, SQL[P1.name], str(path), "parquet" if output.endswith("parquet") else "json"]
        return self.measured([sys.executable, "-c", DUCKDB, *arguments], path)

    def measured(self, command: Sequence[str], output: Path) -> tuple[Used, int]:
        """The least CPU time of some runs after one that does not count, and the most memory of all."""
        runs = [alone(command) for _ in range(1 + self.repeat)]
        least = min(runs[1:] or runs, key=lambda used: used.cpu)
        return replace(least, held=max(used.held for used in runs)), answers_in(output)


def answers_in(output: Path) -> int:
    """How many answers were written: rows of Parquet, a file or a folder, or lines."""
    if output.suffix == ".parquet":
        return int(import_module("pyarrow.dataset").dataset(output, format="parquet").count_rows())
    with output.open("rb") as file:
        return sum(1 for _ in file)


def note(used: Used) -> str:
    java = f"JVM {used.jvm:.1f}, " if used.jvm else ""
    return f"{java}wall {used.wall:.1f} s, {used.held / MEGABYTE:,.0f} MB"


def row(
    figure: str, case: str, series: str, found: tuple[Used, int], files: EventFiles, target: float | None = None
) -> Row:
    used, answers = found
    return Row(
        figure, case, series, used.cpu, "CPU s", len(files), answers, files.answers, note=note(used), target=target
    )


def memory(figure: str, case: str, found: tuple[Used, int], files: EventFiles, target: float | None) -> Row:
    held = found[0].held / MEGABYTE
    return Row(figure, case, "memory", held, "MB", len(files), target=target)


# Commands


def formats(settings: Settings) -> Iterator[Row]:
    """Every form of file in, JSON lines out; Parquet to Parquet, too. Goals are for a million events."""
    with TemporaryDirectory(prefix="augury-bench-") as folder, EventFiles(settings.events) as files:
        bench = Bench(Path(folder), settings.repeat)
        few = EventFiles(FEW)
        yield row("files", "start-up", "augury", embedded(bench, few.path("Parquet"), "out.jsonl"), few)
        for form, output in RUNS:
            case = f"{form} → Parquet" if output.endswith("parquet") else form
            found = embedded(bench, files.path(form), output)
            aimed = len(files) == GOALS_AT
            yield row("files", case, "augury", found, files, GOALS.get(form) if aimed else None)
            yield memory("files", case, found, files, MEMORY_GOAL if aimed else None)
            if has_duckdb():
                yield row("files", case, "DuckDB", bench.duckdb(form, files.path(form), output), files)


def embedded(bench: Bench, events: Path, output: str) -> tuple[Used, int]:
    return bench.augury(events, output, "--engine", "embedded")


def tenfold(settings: Settings) -> Iterator[Row]:
    """Ten times the events: CPU above what it costs to start, beside that of the events once."""
    figure = "files10"
    with TemporaryDirectory(prefix="augury-bench-") as folder, EventFiles(settings.events) as once:
        bench = Bench(Path(folder), settings.repeat)
        few = EventFiles(FEW)
        with EventFiles(TENFOLD * len(once)) as many:
            for form in ("Parquet", "CSV"):
                start, least, most = (embedded(bench, files.path(form), "out.jsonl") for files in (few, once, many))
                yield row(figure, form, "start-up", start, few)
                yield row(figure, form, f"{len(once):,}", least, once)
                above = row(figure, form, f"{len(many):,}, above it", most, many, TENFOLD_GOAL)
                yield replace(above, value=above.value - start[0].cpu, base=max(0.0, least[0].cpu - start[0].cpu))
                yield memory(figure, form, most, many, TENFOLD_MEMORY if len(many) == TENFOLD * GOALS_AT else None)


def on_spark(settings: Settings) -> Iterator[Row]:
    """`augury run --engine spark`, whose answers Spark writes as Parquet: CPU of Java and of the workers."""
    figure = "files-spark"
    with TemporaryDirectory(prefix="augury-bench-") as folder, EventFiles(settings.events) as files:
        bench = Bench(Path(folder), settings.repeat)
        few = EventFiles(FEW)

        def run(path: Path) -> tuple[Used, int]:
            return bench.augury(path, "out.parquet", "--engine", "spark")

        yield row(figure, "start-up", "augury", run(few.path("Parquet")), few)
        beside = row(figure, "Parquet", "augury", run(files.path("Parquet")), files)
        yield beside
        for form, goal in (("CSV", SPARK_GOAL if len(files) >= SPARK_AT else None), ("JSON lines", None)):
            yield replace(row(figure, form, "augury", run(files.path(form)), files, goal), base=beside.value)


# Python


def from_python(settings: Settings) -> Iterator[Row]:
    """In this process, once all is warm: tables into `run`, and its answers as a table, as Events; dicts into `run`."""
    with EventFiles(settings.events) as files:
        stream, expected = files.piece, files.answers
    size, repeat = len(stream), settings.repeat
    program = augury.compile(P1.text)
    tables = stream_tables(stream, size)[0]
    portions = measure(Workload(P1.text, stream_tables(stream), size, expected), settings)
    engine, pushed = least(lambda: settings.open(program), lambda session: len(session.push(tables)), repeat)

    def run(given: Any) -> Any:
        return augury.run(program, given, clock="logical", threads=settings.threads)

    ready = partial(run, tables)
    cpu = partial(Row, "files-python", unit="CPU s", events=size, expected=expected)
    micros = partial(Row, "files-python", unit="µs", events=size, expected=expected)
    yield cpu("push, in portions", "engine", portions.cpu, answers=portions.answers)
    yield cpu("push, whole tables", "engine", engine, answers=pushed)
    whole, found = least(lambda: None, lambda _: len(ready().to_arrow()), repeat)
    yield cpu("run, to_arrow", "augury", whole, answers=found, base=engine, target=ARROW_GOAL)
    looked, seen = least(ready, lambda result: sum(1 for _ in result), repeat)
    yield micros("an Event", "augury", 1e6 * looked / max(1, expected), answers=seen, target=EVENT_GOAL)
    dicts = as_dicts(stream)
    taken, result = best(lambda: run(dicts), repeat)
    above = 1e6 * max(0.0, taken - engine) / size
    yield micros("a dict into run", "above engine", above, answers=len(result), target=DICT_GOAL)


def least(prepare: Callable[[], Any], work: Callable[[Any], int], repeat: int) -> tuple[float, int]:
    """The least CPU time of a piece of work on something new each time, whose making does not count."""
    runs = [best(partial(work, prepare()), 1) for _ in range(1 + max(1, repeat))][1:]
    return min(cpu for cpu, _ in runs), runs[-1][1]


def as_dicts(stream: Stream) -> list[dict[str, Any]]:
    """Events with their attributes by name, as they come from JSON."""
    return [dict(zip(("type", "key", "x", "y", "time"), event, strict=True)) for event in stream.rows()]


EXPERIMENTS = {"files-formats": formats, "files-python": from_python}
LONG = {"files10": tenfold, "files-spark": on_spark}
TITLES = {
    "files": "P1 from file to file, to JSON lines where nothing else is said. Each command runs once before it is measured",
    "files10": "P1 from file to file, ten times the events. Each command runs once before it is measured",
    "files-spark": "P1 from file to Parquet on Spark, CPU of all processes. Each command runs once before it is measured",
    "files-python": "P1 from Python, in one process after a warm-up",
}
