"""P1 to P8: Augury beside a Python loop and DuckDB, on the same stream."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from bench.baselines import LOOPS, duckdb_query, has_duckdb
from bench.measure import Settings, Timing, best, measure
from bench.patterns import PATTERNS, Pattern
from bench.rows import Row, throughput
from bench.streams import Stream, streams
from bench.workload import BATCH, Workload, stream_tables


def workload(pattern: Pattern, stream: Stream, batch: int = BATCH) -> Workload:
    return Workload(pattern.text, stream_tables(stream, batch), len(stream), pattern.expected(stream))


def compare(pattern: Pattern, settings: Settings) -> Iterator[Row]:
    """A session that knows its stream to be in order, one that expects anything for ever, and the baselines.

    The stream comes in batches; to the second session also as one push of whole tables, one for each type.
    """
    stream = pattern.stream(streams(settings.events))
    work = workload(pattern, stream)
    case = f"{pattern.name} {pattern.title}"
    in_order = {"lateness": "0s", "longest": "0s"}  # points in the order of time: what is past may be forgotten
    yield throughput("P", case, "augury", work, measure(work, settings, **in_order))
    yield throughput("P", case, "augury, keeps all", work, measure(work, settings))
    whole = workload(pattern, stream, len(stream))
    yield throughput("P", case, "augury, one push", whole, measure(whole, settings))
    rows = list(stream.rows())
    cpu, found = best(partial(LOOPS[pattern.name], rows), settings.repeat)
    yield throughput("P", case, "Python loop", work, Timing(cpu, 0.0, len(found)))
    if has_duckdb():
        query = duckdb_query(pattern.name, stream)
        query()
        cpu, answers = best(query, settings.repeat)
        yield throughput("P", case, "DuckDB", work, Timing(cpu, 0.0, answers))


def experiment(name: str) -> Callable[[Settings], Iterator[Row]]:
    """The patterns of one number, such as P2 with its three selections."""

    def run(settings: Settings) -> Iterator[Row]:
        for pattern in PATTERNS:
            if pattern.name.split("-")[0] == name:
                yield from compare(pattern, settings)

    return run


EXPERIMENTS = {name: experiment(name) for name in dict.fromkeys(p.name.split("-")[0] for p in PATTERNS)}
