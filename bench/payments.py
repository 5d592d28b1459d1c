"""Windows by the clock, rankings and rows beside rows: payments of ten thousand shops over a month, with DuckDB beside."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

import augury
from bench.baselines import has_duckdb
from bench.measure import Settings, timed
from bench.rows import THROUGHPUT, Row
from bench.workload import pa

SHOPS = 10_000
MONTH = 30 * 86_400 * 1_000_000
BEGIN = 1_767_225_600_000_000  # 2026-01-01
TIMES = 3.0  # of DuckDB's time, at most
_EVENT = "event pay(shop: int, amount: float).\n"


@dataclass(frozen=True)
class Case:
    """A question, as rules and as SQL that counts the answers, such that DuckDB has to compute them."""

    name: str
    rules: str
    sql: str


CASES = (
    Case(
        "daily totals",
        "daily(S, sum(A)) <- w: every(1 day), while w: collect pay(S, A).",
        "SELECT count(s) FROM (SELECT shop, date_trunc('day', time) AS d, sum(amount) AS s FROM pay GROUP BY ALL)",
    ),
    Case(
        "top ten of a day",
        "best(S, R) <- w: every(1 day), while w: collect pay(S, A) TOP 10 BY sum(A) AS R.",
        "SELECT count(*) FROM (SELECT row_number() OVER (PARTITION BY d ORDER BY s DESC, shop) AS r FROM (SELECT shop, date_trunc('day', time) AS d, sum(amount) AS s FROM pay GROUP BY ALL)) WHERE r <= 10",
    ),
    Case(
        "an hour, every minute",
        "load(count(), sum(A)) <- w: every(1h, 1min), while w: collect pay(_, A).",
        "SELECT count(s) FROM (SELECT w, count(*), sum(amount) AS s FROM (SELECT amount, unnest(range(epoch_us(time) // 60000000 - 59, epoch_us(time) // 60000000 + 1)) AS w FROM pay) GROUP BY w)",
    ),
    Case(
        "without doubles of 10 s",
        "uniq(S, A) SINCE start(r) <- r: pay(S, A), w: extend_backward(r, 10s), v: shorten(w, 1us), while v: not pay(S, _).",
        "SELECT count(*) FROM (SELECT time, lag(time) OVER (PARTITION BY shop ORDER BY time) AS before FROM pay) WHERE before IS NULL OR before < time - INTERVAL 10 SECOND",
    ),
    Case(
        "median of the last 5",
        "middle(S, median(A)) <- r: pay(S, _), last 5: collect pay(S, A).",
        "SELECT count(*) FROM (SELECT shop, time, median(amount) OVER (PARTITION BY shop ORDER BY time ROWS 4 PRECEDING) AS m FROM pay) WHERE m IS NOT NULL",
    ),
)


def payments(events: int) -> Any:
    """Payments at times of their own, in order."""
    chance = np.random.default_rng(7)
    times = BEGIN + np.arange(events, dtype=np.int64) * (MONTH // max(events, 1))
    shops, amounts = chance.integers(0, SHOPS, events), np.round(chance.gamma(2, 20, events), 2)
    return pa.table({"shop": shops, "amount": amounts, "time": pa.array(times, pa.timestamp("us"))})


def windows(settings: Settings) -> Iterator[Row]:
    """Each question to Augury and to DuckDB, in one process; DuckDB on one thread."""
    table = payments(settings.events)
    for case in CASES:
        program = augury.compile(_EVENT + case.rules)

        def detect(program: augury.Program = program, table: Any = table) -> int:
            return len(augury.run(program, {"pay": table}, until="2026-02-01 02:00", threads=settings.threads))

        cpu, found = _best(settings.repeat, detect)
        beside = _best(settings.repeat, _query(case, table)) if has_duckdb() else None
        yield Row(
            "windows", case.name, "Augury", len(table) / cpu / 1000, THROUGHPUT, len(table), found, beside and beside[1]
        )
        if beside is not None:
            base = len(table) / beside[0] / 1000
            yield Row("windows", case.name, "DuckDB", base, THROUGHPUT, len(table))
            yield Row("windows", case.name, "times DuckDB", cpu, "CPU s", len(table), base=beside[0], target=TIMES)


def _query(case: Case, table: Any) -> Callable[[], int]:
    connection = import_module("duckdb").connect()
    connection.execute("SET threads = 1")
    connection.register("pay", table)
    return lambda: int(connection.execute(case.sql).fetchone()[0])


def _best(repeat: int, work: Callable[[], int]) -> tuple[float, int]:
    work()  # kernels are compiled or fetched
    return min(timed(work) for _ in range(max(repeat, 1)))


EXPERIMENTS = {"windows": windows}
