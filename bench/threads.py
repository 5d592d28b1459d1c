"""Whole histories in one thread and in several: the time by the clock, taking turns, and whether the answers are the same."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import augury
from augury.core.errors import counted
from augury.core.parallel import available_cores
from bench.measure import Settings, clocked
from bench.nexmark import compiled, events
from bench.nexmark_queries import QUERIES
from bench.patterns import PATTERNS
from bench.rows import Row
from bench.streams import streams
from bench.workload import stream_tables

CASES = ("P1", "P4", "q5")
FASTER = 1.7  # times, with twice the cores


def compare(settings: Settings) -> Iterator[Row]:
    """Each case with one thread and with as many as there are cores, to an Arrow table without traces."""
    several = settings.threads if settings.threads > 1 else available_cores()
    with TemporaryDirectory(prefix="augury-bench-") as folder:
        paths = events(settings.events).write(Path(folder))
        for name in CASES:
            run = _query(name, paths, settings) if name in QUERIES else _pattern(name, settings)
            tables = {threads: run(threads) for threads in (1, several)}
            seconds: dict[int, list[tuple[float, float]]] = {1: [], several: []}
            for _ in range(settings.repeat):
                for threads, timings in seconds.items():
                    gc.collect()
                    began = perf_counter()
                    cpu, _ = clocked(partial(run, threads))
                    timings.append((perf_counter() - began, cpu))
            same = int(tables[1].equals(tables[several]))
            for threads, timings in seconds.items():
                wall, cpu = min(timings)
                yield Row(
                    "threads", name, counted(threads, "thread"), wall, "s", settings.events, same, 1,
                    note=f"{cpu:.2f} CPU s", base=min(seconds[1])[0], target=1 / FASTER if threads == 2 else None,
                )  # fmt: skip


def _pattern(name: str, settings: Settings) -> Callable[[int], Any]:
    pattern = next(pattern for pattern in PATTERNS if pattern.name == name)
    stream, program = pattern.stream(streams(settings.events)), augury.compile(pattern.text)
    tables = stream_tables(stream, len(stream))[0]
    return lambda threads: augury.run(program, tables, clock="logical", threads=threads).to_arrow(trace=False)


def _query(name: str, paths: dict[str, str], settings: Settings) -> Callable[[int], Any]:
    query, data = QUERIES[name], events(settings.events)
    program = compiled(query)

    def run(threads: int) -> Any:
        history = {type: augury.read(paths[type]) for type in data.tables if type in query.rules}
        return augury.run(program, history, until=data.until, threads=threads).to_arrow(trace=False)

    return run


EXPERIMENTS = {"threads": compare}
