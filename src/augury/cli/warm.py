"""`augury warm`."""

from __future__ import annotations

import time
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from augury.cli.demo import task_of
from augury.core import jit
from augury.core.errors import counted
from augury.examples import EXAMPLES, Example, load
from augury.job import Job
from augury.run import Result
from augury.terminal import working


@click.command()
def warm() -> None:
    """Compile the inner loops ahead of the first large run.

    They are compiled once for each installation and kept on disk; without this, the first run of many events does it, which
    takes it some seconds. All applications that come with Augury are run over a few events.
    """
    began = time.perf_counter()
    count = 0
    for name in EXAMPLES:
        example = load(name)
        if not example.missing:
            with working(f"compiling what {name} needs"):
                run_example(example)
            count += 1
    seconds = time.perf_counter() - began
    needs = counted(count, "application") + (" needs" if count == 1 else " need")
    click.echo(f"compiled what {needs}, in {seconds:.0f} s; it is kept in {jit.cache_folder()}")


def run_example(example: Example) -> None:
    """Runs an application over a few events, with kernels compiled from the first event on."""
    with TemporaryDirectory(prefix="augury-warm-") as temporary:
        folder = Path(temporary)
        example.prepare(folder, example.sizes[1])
        job = Job(task_of(example, folder))
        jit.compile_all()
        Result(job.task.program, job.evaluate(example.until, engine="embedded"), job.clock).to_arrow()
