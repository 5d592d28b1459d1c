"""`augury bench nexmark`: an independent benchmark of strings, times with ties and hot keys, beside DuckDB with one thread.

Figures are CPU seconds from Parquet files to an Arrow table, or to a Parquet file; or those of a session whose pushes have 1,000
events. Answers are compared with those of DuckDB, as sets. Each query runs once before it is measured.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache, partial
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import augury
from augury import sinks
from bench.baselines import has_duckdb
from bench.measure import Settings, best
from bench.nexmark_events import Nexmark, history
from bench.nexmark_queries import QUERIES, Query
from bench.rows import THROUGHPUT, Row

PUSH = 1_000
MOST = 5.0  # times the CPU of DuckDB
pa = import_module("pyarrow")  # which has no types to check
pc = import_module("pyarrow.compute")
pq = import_module("pyarrow.parquet")

LEAST = {name: 500.0 if int(name[1:]) in {*range(9), *range(11, 15)} else 200.0 for name in QUERIES}
FIGURE, FILES, SESSION = "nexmark", "nexmark-files", "nexmark-session"
TITLES = {
    FIGURE: "Nexmark: from Parquet files to an Arrow table",
    FILES: "Nexmark: from Parquet files to a Parquet file",
    SESSION: "Nexmark: a session, 1,000 events a push",
}


class Peer:
    """DuckDB with one thread, over the files of a history."""

    def __init__(self, paths: Mapping[str, str]) -> None:
        self.connection = import_module("duckdb").connect()
        self.connection.execute("SET threads = 1; SET TimeZone = 'UTC'; SET preserve_insertion_order = false")
        for name, path in paths.items():
            self.connection.execute(f"CREATE VIEW {name} AS FROM '{path}'")

    def table(self, query: Query) -> Any:
        return self.connection.sql(query.sql).to_arrow_table()

    def file(self, query: Query, path: Path) -> None:
        self.connection.execute(f"COPY ({query.sql}) TO '{path}' (FORMAT parquet)").fetchall()

    def different(self, query: Query, answers: Any) -> int:
        """How many answers one side has and the other one has not. Floats are compared to six places."""
        for name, table in (("mine", answers), ("theirs", self.table(query))):
            self.connection.register(name, plain(table))
        sides = (f"FROM {one} EXCEPT FROM {other}" for one, other in (("mine", "theirs"), ("theirs", "mine")))
        return sum(len(self.connection.sql(side).to_arrow_table()) for side in sides)


def plain(table: Any) -> Any:
    """A table whose columns have numbers for names, times as microseconds and rounded floats."""
    columns = []
    for column in table.columns:
        kind = column.type
        if pa.types.is_timestamp(kind):
            column = column.cast(pa.int64())
        elif pa.types.is_floating(kind) or pa.types.is_decimal(kind):
            column = pc.round(column.cast(pa.float64()), 6)
        columns.append(column)
    return pa.table(columns, [f"c{place}" for place in range(len(columns))])


def compare(name: str, settings: Settings) -> Iterator[Row]:
    """A query by Augury and by DuckDB: to Arrow and to a file; where the settings say so, also as a session."""
    query, data = QUERIES[name], events(settings.events)
    case = f"{name} {query.title}"
    with TemporaryDirectory(prefix="augury-bench-") as temporary:
        folder = Path(temporary)
        paths = data.write(folder)
        program = compiled(query)
        peer = Peer(paths) if has_duckdb() else None

        def run() -> Any:
            history = {type: augury.read(paths[type]) for type in data.tables if type in query.rules}
            facts = {"side": pq.read_table(paths["side"])} if query.facts else {}
            return augury.run(program, history, facts=facts, until=data.until, threads=settings.threads)

        answers = run().to_arrow(trace=False)
        wrong = peer.different(query, answers.drop_columns(["id"])) if peer else None
        checks: dict[str, Any] = {"answers": wrong, "expected": None if wrong is None else 0}
        figure = partial(Row, unit="CPU s", events=data.events, case=case)

        def both(title: str, mine: Callable[[], Any], theirs: Callable[[Peer], Any]) -> Iterator[Row]:
            cpu, _ = best(mine, settings.repeat)
            beside = None
            if peer:
                theirs(peer)
                beside, _ = best(partial(theirs, peer), settings.repeat)
                yield figure(title, series="DuckDB", value=beside)
            note = f"{len(answers):,} answers"
            yield figure(title, series="augury", value=cpu, base=beside, target=MOST, note=note, **checks)

        yield from both(FIGURE, lambda: run().to_arrow(trace=False), lambda peer: peer.table(query))
        out = str(folder / "out.parquet")
        yield from both(
            FILES,
            lambda: sinks.write(run(), "parquet", out, sys.stdout, trace=False),
            lambda peer: peer.file(query, folder / "theirs.parquet"),
        )
        if settings.sessions:
            cpu, stand = best(partial(replay, program, query, data), settings.repeat)
            rate = data.events / max(cpu, 1e-9) / 1000
            yield Row(SESSION, case, "augury", rate, THROUGHPUT, data.events, stand, len(answers), least=LEAST[name])


def replay(program: augury.Program, query: Query, data: Nexmark) -> int:
    """Pushes all events to a session that knows them to be in order; the answers that stand."""
    facts = {"side": data.side} if query.facts else {}
    session = program.session(clock="timestamp", lateness="0s", longest="0s", facts=facts)
    stand = 0
    for step in data.pushes(PUSH):
        stand += balance(session.push({type: table for type, table in step.items() if type in query.rules}))
    return stand + balance(session.advance(data.until))


def balance(changes: Any) -> int:
    """Answers inserted less those retracted."""
    return len(changes.inserted) - len(changes.retracted)


@lru_cache(1)
def events(size: int) -> Nexmark:
    return history(size)


def compiled(query: Query) -> augury.Program:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # joins without a window remember everything, as the benchmark asks
        return augury.compile(query.text)


EXPERIMENTS = {name: partial(compare, name) for name in QUERIES}
