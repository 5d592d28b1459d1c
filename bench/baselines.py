"""What a skilled user would write instead: a Python loop for each pattern, and SQL for DuckDB.

A loop keeps, by key, what may still be part of an answer, and a queue by which it forgets what has left the window. It
serves one pattern, in order, without revision; so it says what generality costs.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from importlib import import_module
from importlib.util import find_spec
from typing import Any, TypeAlias

from bench.patterns import COPIES
from bench.streams import KINDS, WINDOW, Stream
from bench.workload import pa

EventRow: TypeAlias = tuple[str, int, float, float, int]
Answer: TypeAlias = tuple[Any, ...]
Loop: TypeAlias = Callable[[Iterable[EventRow]], list[Answer]]
KeptState: TypeAlias = dict[int, list[tuple[Any, ...]]]
Queue: TypeAlias = deque[tuple[int, KeptState, int]]


def keep(kept: KeptState, queue: Queue, key: int, item: tuple[Any, ...]) -> None:
    """Remembers a partial match, whose first element is its start, until the window has passed."""
    if key in kept:
        kept[key].append(item)
    else:
        kept[key] = [item]
    queue.append((item[0], kept, key))


def forget(queue: Queue, now: int) -> None:
    """Entries are in order of arrival, not of start; an item kept too long does no harm, as joins look at starts."""
    while queue and queue[0][0] < now - WINDOW:
        _, kept, key = queue.popleft()
        items = kept.get(key)
        if items and items[0][0] < now - WINDOW:
            items.pop(0)
            if not items:
                del kept[key]


def sequence(rows: Iterable[EventRow]) -> list[Answer]:
    """P1."""
    firsts: KeptState = {}
    pairs: KeptState = {}
    queue: Queue = deque()
    found: list[Answer] = []
    for kind, key, x, _, time in rows:
        forget(queue, time)
        if kind == "a":
            keep(firsts, queue, key, (time, x))
        elif kind == "b":
            for start, first in firsts.get(key, ()):
                keep(pairs, queue, key, (start, first, x))
        elif kind == "c":
            found += [(key, p, q, x, s, time) for s, p, q in pairs.get(key, ()) if time - s <= WINDOW]
    return found


def selection(below: float) -> Loop:
    """P2."""

    def select(rows: Iterable[EventRow]) -> list[Answer]:
        firsts: KeptState = {}
        queue: Queue = deque()
        found: list[Answer] = []
        for kind, key, x, y, time in rows:
            forget(queue, time)
            if kind == "a":
                keep(firsts, queue, key, (time, x))
            elif kind == "b" and y < below:
                found += [(key, p, y, s, time) for s, p in firsts.get(key, ())]
        return found

    return select


def negation(rows: Iterable[EventRow]) -> list[Answer]:
    """P3: a c strikes out every a before it."""
    firsts: KeptState = {}
    queue: Queue = deque()
    found: list[Answer] = []
    for kind, key, x, _, time in rows:
        forget(queue, time)
        if kind == "a":
            keep(firsts, queue, key, (time, x))
        elif kind == "c":
            firsts.pop(key, None)
        elif kind == "b":
            found += [(key, p, x, s, time) for s, p in firsts.get(key, ())]
    return found


def conjunction(rows: Iterable[EventRow]) -> list[Answer]:
    """P4: whichever comes last meets all pairs of the others."""
    parts: dict[str, KeptState] = {"a": {}, "b": {}, "c": {}}
    others = {"a": ("b", "c"), "b": ("a", "c"), "c": ("a", "b")}
    queue: Queue = deque()
    found: list[Answer] = []
    for kind, key, x, _, time in rows:
        forget(queue, time)
        if kind == "d":
            continue
        one, two = others[kind]
        if key in parts[one] and key in parts[two]:
            for s, p in parts[one][key]:
                found += [(key, kind, x, p, q, min(s, t), time) for t, q in parts[two][key]]
        keep(parts[kind], queue, key, (time, x))
    return found


def disjunction_first(rows: Iterable[EventRow]) -> list[Answer]:
    """P5, first: an a that has found its b or c waits no longer."""
    firsts: KeptState = {}
    queue: Queue = deque()
    found: list[Answer] = []
    for kind, key, x, _, time in rows:
        forget(queue, time)
        if kind == "a":
            keep(firsts, queue, key, (time, x))
        elif kind != "d" and key in firsts:
            found += [(key, p, x, s, time) for s, p in firsts.pop(key)]
    return found


def disjunction_each(rows: Iterable[EventRow]) -> list[Answer]:
    """P5, each."""
    firsts: KeptState = {}
    queue: Queue = deque()
    found: list[Answer] = []
    for kind, key, x, _, time in rows:
        forget(queue, time)
        if kind == "a":
            keep(firsts, queue, key, (time, x))
        elif kind != "d":
            found += [(key, p, x, s, time) for s, p in firsts.get(key, ())]
    return found


def rising_run(rows: Iterable[EventRow]) -> list[Answer]:
    """P6: an automaton by key: its start and the x of its last b, or none before the first b."""
    runs: dict[int, tuple[int, float | None]] = {}
    queue: deque[tuple[int, int]] = deque()
    found: list[Answer] = []
    for kind, key, x, _, time in rows:
        while queue and queue[0][0] < time - WINDOW:
            began, old = queue.popleft()
            if old in runs and runs[old][0] == began:
                del runs[old]
        if kind == "a":
            runs[key] = time, None
            queue.append((time, key))
        elif kind != "d" and key in runs:
            start, last = runs.pop(key)
            if kind == "b" and (last is None or x > last):
                runs[key] = start, x
            elif kind == "c" and last is not None:
                found.append((key, start, time))
    return found


def copies(rows: Iterable[EventRow]) -> list[Answer]:
    """P7, as one who has sixteen rules and does not see that they are one."""
    given = list(rows)
    found: list[Answer] = []
    for _ in range(COPIES):
        found += sequence(given)
    return found


def valley(rows: Iterable[EventRow]) -> list[Answer]:
    """P8: by symbol the last tick, where its fall began, and whether it rises since."""
    state: dict[int, tuple[float, int, int | None, bool]] = {}
    found: list[Answer] = []
    for _, key, price, _, time in rows:
        if key not in state:
            state[key] = price, time, None, False
            continue
        last, at, began, rises = state[key]
        if price > last:
            state[key] = price, time, began, began is not None
            continue
        if rises:
            found.append((key, began, time))
        if price == last:
            began = None
        elif rises or began is None:
            began = at
        state[key] = price, time, began, False
    return found


LOOPS: dict[str, Loop] = {
    "P1": sequence,
    "P2-10": selection(0.1),
    "P2-50": selection(0.5),
    "P2-100": selection(1.0),
    "P3": negation,
    "P4": conjunction,
    "P5-first": disjunction_first,
    "P5-each": disjunction_each,
    "P6": rising_run,
    "P7": copies,
    "P8": valley,
}


def pair_sql(below: float) -> str:
    return f"""SELECT a.key, a.x, b.y, a.t, b.t FROM s a
    JOIN s b ON a.key = b.key AND a.t < b.t AND b.t - a.t <= {WINDOW}
    WHERE a.kind = 'a' AND b.kind = 'b' AND b.y < {below}"""


SEQUENCE_SQL = f"""SELECT a.key, a.x, b.x, c.x, a.t, c.t FROM s a
    JOIN s b ON a.key = b.key AND a.t < b.t JOIN s c ON b.key = c.key AND b.t < c.t
    WHERE a.kind = 'a' AND b.kind = 'b' AND c.kind = 'c' AND c.t - a.t <= {WINDOW}"""

SQL = {
    "P1": SEQUENCE_SQL,
    "P2-10": pair_sql(0.1),
    "P2-50": pair_sql(0.5),
    "P2-100": pair_sql(1.0),
    "P3": f"""SELECT a.key, a.x, b.x, a.t, b.t FROM s a
    JOIN s b ON a.key = b.key AND a.t < b.t AND b.t - a.t <= {WINDOW}
    WHERE a.kind = 'a' AND b.kind = 'b'
    AND NOT EXISTS (SELECT 1 FROM s c WHERE c.kind = 'c' AND c.key = a.key AND a.t < c.t AND c.t < b.t)""",
    "P4": f"""SELECT a.key, a.x, b.x, c.x, least(a.t, b.t, c.t), greatest(a.t, b.t, c.t) FROM s a
    JOIN s b ON a.key = b.key JOIN s c ON a.key = c.key WHERE a.kind = 'a' AND b.kind = 'b' AND c.kind = 'c'
    AND greatest(a.t, b.t, c.t) - least(a.t, b.t, c.t) <= {WINDOW}""",
    "P5-first": f"""SELECT a.key, a.x, arg_min(n.x, n.t), a.t, min(n.t) FROM s a JOIN s n
    ON a.key = n.key AND a.t < n.t AND n.t - a.t <= {WINDOW}
    WHERE a.kind = 'a' AND n.kind IN ('b', 'c') GROUP BY a.key, a.x, a.t""",
    "P5-each": f"""SELECT a.key, a.x, n.x, a.t, n.t FROM s a JOIN s n
    ON a.key = n.key AND a.t < n.t AND n.t - a.t <= {WINDOW} WHERE a.kind = 'a' AND n.kind IN ('b', 'c')""",
    # A row is good when it goes on from the row before it; an answer is a c with good rows back to its a.
    "P6": f"""WITH part AS (SELECT *, lag(kind) OVER w pk, lag(x) OVER w px, count(*) FILTER (kind = 'a') OVER w run
        FROM s WHERE kind <> 'd' WINDOW w AS (PARTITION BY key ORDER BY t)),
    judged AS (SELECT *,
        CASE kind WHEN 'a' THEN true WHEN 'b' THEN pk = 'a' OR pk = 'b' AND x > px ELSE pk = 'b' END good
        FROM part WHERE run > 0),
    traced AS (SELECT *, bool_and(good) OVER w whole, min(t) OVER w began
        FROM judged WINDOW w AS (PARTITION BY key, run ORDER BY t))
    SELECT key, began, t FROM traced WHERE kind = 'c' AND whole AND t - began <= {WINDOW}""",
    "P7": " UNION ALL ".join([f"({SEQUENCE_SQL})"] * COPIES),
    # Runs of steps in one direction; a valley is a run up after a run down, closed by whatever run comes next.
    "P8": """WITH step AS (SELECT key, t, sign(x - lag(x) OVER w) way FROM s WINDOW w AS (PARTITION BY key ORDER BY t)),
    turn AS (SELECT key, t, way, lag(way) OVER w before FROM step WHERE way IS NOT NULL
        WINDOW w AS (PARTITION BY key ORDER BY t)),
    run AS (SELECT key, way, lag(way) OVER w before, lag(t) OVER w began, lead(t) OVER w closed
        FROM turn WHERE before IS NULL OR way <> before WINDOW w AS (PARTITION BY key ORDER BY t))
    SELECT key, began, closed FROM run WHERE way = 1 AND before = -1 AND closed IS NOT NULL""",
}


def has_duckdb() -> bool:
    return find_spec("duckdb") is not None


def duckdb_query(name: str, stream: Stream) -> Callable[[], int]:
    """A query that is ready to run: the table is loaded, and the answers come as columns."""
    connection = import_module("duckdb").connect()
    connection.execute("SET threads = 1")
    kinds = [KINDS[k] for k in stream.kind.tolist()]
    given = pa.table({"kind": kinds, "key": stream.key, "x": stream.x, "y": stream.y, "t": stream.time})
    connection.register("given", given)
    connection.execute("CREATE TABLE s AS FROM given")
    return lambda: int(connection.sql(SQL[name]).to_arrow_table().num_rows)
