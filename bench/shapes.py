"""Workload shapes that are often quadratic elsewhere: the rows that operators touch for each event, by the number of events.

The figure does not depend on the machine: where it stays the same, cost is linear. CPU time stands beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

import augury
from augury.core.jit import HOT, count_work
from bench.measure import Settings, timed
from bench.rows import Row

Tables = Mapping[str, pd.DataFrame]
PUSHES = 10  # an event is taken in with some others, and after many others
TARGET = 1.5  # how much more may be touched for each event with a hundred times the events: trees have more levels
KEYS = 20


def events(count: int, keys: int = KEYS, each: int = 1, **columns: pd.Series) -> pd.DataFrame:
    """Events of some keys, `each` so many at one time."""
    number = np.arange(count)
    return pd.DataFrame({"k": (number // each) % keys, "v": (number * 7919) % 1009, **columns, "time": number // each})


def of_one_type(**options: int) -> Callable[[int], Tables]:
    return lambda count: {"a": events(count, **options)}


def of_two_types(count: int) -> Tables:
    """Events of two types in turn."""
    both = events(count, keys=2 * KEYS)
    both["k"] //= 2
    return {"a": both[::2], "b": both[1::2]}


def twice(count: int) -> Tables:
    """Every row two times, as exports have it that deliver at least once."""
    frame = events(count // 2)
    return {"a": frame.loc[frame.index.repeat(2)]}


def with_gaps(count: int) -> Tables:
    """Clicks in visits of eight, and a long pause after each."""
    number = np.arange(count)
    time = number + number // (8 * KEYS) * 100_000
    return {"a": pd.DataFrame({"k": number % KEYS, "v": number % 7, "time": time})}


@dataclass(frozen=True)
class Shape:
    """A program whose cost should follow its events and answers, and the events that it is for."""

    name: str
    rules: str
    tables: Callable[[int], Tables]

    @property
    def text(self) -> str:
        return f"event a(k: int, v: int). event b(k: int, v: int).\n{self.rules}"


LONG = "24000000s"  # longer than all events: a window has all that came before
SHAPES = (
    Shape("duplicates", "m(K, sum(V)) <- w: every(60s), while w: collect a(K, V).", twice),
    Shape("ties", "m(K, last(V), arg_max(V, V)) <- w: every(5s), while w: collect a(K, V).", of_one_type(each=20)),
    Shape(
        "own-type absence",
        f"m(K, V) <- o: a(K, V), w: extend_backward(o, {LONG}), while w: not a(K, _).",
        of_one_type(),
    ),
    Shape(
        "per-event window",
        f"m(K, sum(V), max(V)) <- o: a(K, _), w: extend_backward(o, {LONG}), while w: collect a(K, V).",
        of_one_type(),
    ),
    Shape(
        "distinct per event",
        f"m(K, count(distinct V)) <- o: a(K, _), w: extend_backward(o, {LONG}), while w: collect a(K, V).",
        of_one_type(keys=2),
    ),
    Shape(
        "percentiles per event",
        f"m(K, median(V), percentile(V, 90)) <- o: a(K, _), w: extend_backward(o, {LONG}), while w: collect a(K, V).",
        of_one_type(keys=2),
    ),
    Shape(
        "groups per event",
        f"m(K, W, sum(V)) <- o: a(K, _), w: extend_backward(o, {LONG}), while w: collect b(K, V), W = V mod 4.",
        of_two_types,
    ),
    Shape("as-of", "m(K, V, last(W)) <- o: a(K, V), last 1: collect b(K, W).", of_two_types),
    Shape(
        "as-of latest",
        "fact latest now(K, W) PER (K) <- b(K, W).\nm(K, V, W) <- a(K, V), now(K, W).",
        of_two_types,
    ),
    Shape(
        "as-of facts",
        "fact now(K, T) <- o: b(K, _), T = start(o).\nfact not now(K, T) <- o: b(K, _), T = start(o) - 40.\n"
        "m(K, V, T) <- a(K, V), now(K, T).",
        of_two_types,
    ),
    Shape(
        "dedupe",
        f"m(K, V) <- r: a(K, V), w: extend_backward(r, {LONG}), while w: collect c: a(K, _), first(start(c)) = start(r).",
        of_one_type(),
    ),
    Shape(
        "last n and facts",
        "\n".join(f"shop({k}, {k % 3})." for k in range(KEYS))
        + "\nm(K, R, sum(V)) <- o: a(K, _), shop(K, R), exactly 5: collect a(K, V).",
        of_one_type(),
    ),
    Shape("last million", "m(K, avg(V)) <- o: a(K, _), last 1000000: collect a(K, V).", of_one_type()),
    Shape(
        "session gaps",
        "m(K, count(V)) <- (c: a(K, V))+ WHERE start(c) - prev(end(c)) <= 1000 PER (K) LONGEST SKIP PAST END.",
        with_gaps,
    ),
    Shape("chronological", "m(K, V, W) <- a(K, V) SEQ[chronological] b(K, W).", of_two_types),
    Shape(
        "chained rules",
        "output d9.\nd0(K, V) <- a(K, V).\n" + "\n".join(f"d{i}(K, V) <- d{i - 1}(K, V)." for i in range(1, 10)),
        of_one_type(),
    ),
)


@dataclass(frozen=True)
class Cost:
    """What a shape took: rows touched, CPU seconds; and how many changes it gave."""

    touched: int
    cpu: float
    changes: int


def cost(shape: Shape, count: int) -> Cost:
    """Pushes events in order, some at a time."""
    session = augury.compile(shape.text).session(clock="logical")
    tables = shape.tables(count)
    parts = [{type: frame[_part(frame, n)] for type, frame in tables.items()} for n in range(PUSHES)]
    cpu, changes = timed(lambda: sum(len(session.push(part)) for part in parts))
    return Cost(touched(session), cpu, changes)


def touched(session: augury.Session) -> int:
    """The rows that operators have looked at, and the facts that they have asked for."""
    stats = session.stats()
    operators: int = sum(operator["touched"] for operator in stats["operators"])
    return operators + int(stats["knowledge"]["touched"])


def _part(frame: pd.DataFrame, number: int) -> slice:
    return slice(len(frame) * number // PUSHES, len(frame) * (number + 1) // PUSHES)


def shapes(settings: Settings) -> Iterator[Row]:
    """Each shape with a hundredth, a tenth and all of the events."""
    count_work(HOT)
    sizes = sorted({max(settings.events // share, PUSHES) for share in (100, 10, 1)})
    for shape in SHAPES:
        cost(shape, sizes[0])  # kernels are compiled or fetched
        first: float | None = None
        for size in sizes:
            found = cost(shape, size)
            rate = found.touched / size
            name = f"{size:,} events"
            target = None if first is None else TARGET
            yield Row("shapes", shape.name, name, rate, "touched", size, found.changes, found.changes, base=first, target=target)  # fmt: skip
            yield Row("shapes", shape.name, name, found.cpu, "CPU s", size)
            first = rate if first is None else first


EXPERIMENTS = {"shapes": shapes}
TITLES = {"shapes": "Rows that operators touch for each event: linear where they stay the same"}
