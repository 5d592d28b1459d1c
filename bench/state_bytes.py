"""Bytes of state for each event, where a session forgets nothing: P1 to P8 and queries of Nexmark with strings and times."""

from __future__ import annotations

from collections.abc import Iterator

import augury
from bench.measure import Settings, open_session
from bench.nexmark import PUSH, compiled, events
from bench.nexmark_queries import QUERIES
from bench.patterns import PATTERNS
from bench.rows import Row
from bench.streams import streams
from bench.workload import stream_tables

NAMES = ("q3", "q5", "q9", "q20")
MOST = 100_000  # events; the share of each does not depend on how many there are
BYTES = "bytes an event"


def state_bytes(settings: Settings) -> Iterator[Row]:
    """What the tables, indexes, inputs and values of a session come to, by its own account."""
    count = min(settings.events, MOST)
    drawn = streams(count)
    for pattern in PATTERNS:
        session, answers = open_session(augury.compile(pattern.text)), 0
        for step in stream_tables(pattern.stream(drawn), PUSH):
            answers += len(session.push(step))
        yield _row(pattern.name, session, count, answers)
    for name in NAMES:
        query, data, answers = QUERIES[name], events(count), 0
        session = compiled(query).session(clock="timestamp")
        for step in data.pushes(PUSH):
            answers += len(session.push({type: table for type, table in step.items() if type in query.rules}))
        yield _row(name, session, count, answers)


def _row(case: str, session: object, count: int, answers: int) -> Row:
    stats = session.stats()  # type: ignore[attr-defined]
    note = f"{answers:,} changes; {stats['rows']:,} rows"
    return Row("bytes", case, "augury", stats["bytes"] / count, BYTES, count, note=note)


EXPERIMENTS = {"bytes": state_bytes}
