"""`augury bench`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from augury.core.errors import RunError


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME]…")
@click.option(
    "--engine",
    type=click.Choice(["embedded", "spark"]),
    default="embedded",
    show_default=True,
    help="What is measured.",
)
@click.option("--size", type=click.IntRange(1), help="Events of a stream: 1,000,000 by default, on Spark 2,000,000.")
@click.option(
    "--repeat", type=click.IntRange(1), default=3, show_default=True, help="The number of runs; the best one counts."
)
@click.option("--session", "sessions", is_flag=True, help="Nexmark: also as a session, 1,000 events a push.")
@click.option("--threads", type=click.IntRange(1), default=1, show_default=True, help="How many threads a run may use.")
@click.option("--json", "json_path", metavar="FILE", help="Write the figures as JSON.")
@click.option(
    "--record", is_flag=True, help="Keep the figures in bench/history, with a machine baseline, and plot all runs."
)
@click.option("--charts", "charts", metavar="FOLDER", help="Draw charts (SVG).")
def bench(
    names: tuple[str, ...],
    engine: str,
    size: int | None,
    repeat: int,
    sessions: bool,
    threads: int,
    json_path: str | None,
    charts: str | None,
    record: bool,
) -> None:
    """Measure the embedded engine beside hand-written code: P1 to P8, the papers' experiments, and more.

    NAME is a group, P, E, R, V, B, knowledge, clock, graphs, spaseq, nexmark, linearroad, files, shapes or extras, or one of them such as P1, R3a, V4 or
    latency; all of them where none is named. files10 (ten times the events) and files-spark (on Spark, minutes) are run where they are named.

    `paper E`, `paper R`, `paper V`, `paper B` and `paper S` run the experiments of one paper on its axes, beside its own figures; `paper` runs all.

    With --engine spark, CPU of all processes beside what Spark needs without Augury: NAME is batch (or patterns of it,
    such as P1), copies, stream, scale, small, big, cores, zipf or model (what each stage costs, fitted over 65 times the
    events); the first three where none is named, and `all` for all.
    """
    benchmarks = _checkout()
    if engine == "spark":
        on_spark = benchmarks("bench.spark")
        sys.exit(on_spark.run(list(names), size or on_spark.SIZE, json_path, charts, repeat))
    run = benchmarks("bench.main").run
    sys.exit(
        run(
            list(names), size or 1_000_000, json_path, charts, repeat, sessions=sessions, record=record, threads=threads
        )
    )


def _checkout() -> Callable[[str], Any]:
    """Imports from the folder `bench` beside the sources, which is no part of the package."""
    root = Path(__file__).parents[3]
    if not (root / "bench" / "main.py").exists():
        raise RunError("benchmarks are run from a checkout of the project", hint="git clone it, then make bench")
    sys.path.insert(0, str(root))
    return import_module
