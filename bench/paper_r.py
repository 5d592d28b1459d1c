"""The experiments of "A Rule-Based Language for Complex Event Processing and Reasoning" (2010), figures 3 to 5.

The paper takes streams of 25,000 to 100,000 events of which each is part of an answer; here a stream has a tenth of the
events asked for, 100,000 by default.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from bench.bundles import ABSENT, alike, bundled
from bench.measure import Settings, measure
from bench.rows import Row, throughput
from bench.streams import BEGIN
from bench.workload import Tables, Workload, tables

NAMES = "abcdefgh"
SHARES = (10, 25, 50, 75, 100)
SIZES = (0.25, 0.5, 1.0)
LEAST = 40
CHAIN = 10  # edges of one path of the transitive closure

HEADER = "tick 1ms.\n"


def declared(names: str) -> str:
    return HEADER + "".join(f"event {name}(key: int, value: float).\n" for name in names)


def sequence(length: int, head: str = "found") -> str:
    """Rule (6) for any number of parts: `found(K, X1, X2, X3) <- (a(K, X1) SEQ b(K, X2) SEQ c(K, X3)).1000.`"""
    parts = " SEQ ".join(f"{name}(K, X{i})" for i, name in enumerate(NAMES[:length], 1))
    return f"{head}(K, {', '.join(f'X{i}' for i in range(1, length + 1))}) <- ({parts}).1000.\n"


def sequences(events: int, length: int, copies: int = 1) -> Workload:
    keys = events // length
    stream = bundled(alike(keys, range(length)))
    rules = "".join(sequence(length, f"found{i}") for i in range(copies))
    return Workload(declared(NAMES[:length]) + rules, stream.tables(NAMES), len(stream), copies * keys)


def selection(events: int, share: int) -> Workload:
    """Rule (7)."""
    stream = bundled(alike(events // 2, (0, 1)))
    below = share / 100
    expected = int(np.sum((stream.kind == 1) & (stream.value < below)))
    rule = f"found(K, X, Y) <- (a(K, X) SEQ b(K, Y)).1000 WHERE Y < {below}.\n"
    return Workload(declared("ab") + rule, stream.tables(NAMES), len(stream), expected)


def negation(events: int, share: int) -> Workload:
    """Rule (8), where a share of the keys has a c between a and b."""
    keys = events // 3
    kinds = alike(keys, (0, 2, 1))
    hit = np.random.default_rng(share).random(keys) < share / 100
    kinds[~hit, 1] = ABSENT
    stream = bundled(kinds)
    rule = "found(K, X, Y) <- (a(K, X) SEQ b(K, Y) NOT c(K, _)).1000.\n"
    return Workload(declared("abc") + rule, stream.tables(NAMES), len(stream), int(np.sum(~hit)))


def conjunction(events: int) -> Workload:
    """Rule (9)."""
    keys = events // 3
    orders = np.array([(0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)], np.int64)
    stream = bundled(orders[np.arange(keys) % len(orders)])
    rule = "found(K, X, Y) <- (a(K, X) AND b(K, Y) AND c(K, _)).1000.\n"
    return Workload(declared("abc") + rule, stream.tables(NAMES), len(stream), keys)


def disjunction(events: int) -> Workload:
    """Rule (10); each key has a, and then b or c."""
    keys = events // 2
    kinds = alike(keys, (0, 1))
    kinds[::2, 1] = 2
    stream = bundled(kinds)
    rule = "found(K, X, Y) <- (a(K, X) SEQ (b(K, Y) OR c(K, Y))).1000.\n"
    return Workload(declared("abc") + rule, stream.tables(NAMES), len(stream), keys)


def closure(events: int, policy: str) -> Workload:
    """Rule (11) over paths of ten edges, which arrive in their order, fifty paths at a time.

    Every part of a path is an answer. First in, first out, an edge goes on from the longest path alone: of n edges the
    answers are the n edges and n - 1 beginnings of the path.
    """
    paths = max(1, events // CHAIN)
    edge = np.tile(np.arange(CHAIN), paths)
    path = np.repeat(np.arange(paths), CHAIN)
    order = np.lexsort((path, edge, path // 50))
    source = (path * (CHAIN + 1) + edge)[order]
    columns = {"time": np.arange(BEGIN, BEGIN + len(source)), "source": source, "target": source + 1}
    rules = f"""event a(source: int, target: int).
tc(X, Y) <- a(X, Y).
tc(X, Y) <- (tc(X, Z) SEQ[{policy}] a(Z, Y)).1000.
"""
    steps: list[Tables] = tables(np.zeros(len(source), np.int64), "a", columns)
    answers = CHAIN * (CHAIN + 1) // 2 if policy == "unrestricted" else 2 * CHAIN - 1
    return Workload(HEADER + rules, steps, len(source), paths * answers)


def size(settings: Settings) -> int:
    return max(LEAST, settings.events // 10)


def row(figure: str, case: str, workload: Workload, settings: Settings, series: str = "augury") -> Row:
    return throughput(figure, case, series, workload, measure(workload, settings))


def by_size(figure: str, make: Callable[[int], Workload], settings: Settings) -> Iterator[Row]:
    """Throughput must not fall as the stream grows."""
    for share in SIZES:
        workload = make(max(LEAST, int(share * size(settings))))
        yield row(figure, f"{workload.events:,} events", workload, settings)


def figure_3a(settings: Settings) -> Iterator[Row]:
    """SEQ of three over streams of several sizes, then of two to eight parts."""
    yield from by_size("R3a", partial(sequences, length=3), settings)
    for length in (2, 4, 6, 8):
        yield row("R3a", f"{length} parts", sequences(size(settings), length), settings)


def figure_3b(settings: Settings) -> Iterator[Row]:
    """SEQ with a selection: the share of b that is taken."""
    for share in SHARES:
        yield row("R3b", f"{share} % selected", selection(size(settings), share), settings)


def figure_3c(settings: Settings) -> Iterator[Row]:
    """The same, all taken, over streams of several sizes."""
    yield from by_size("R3c", partial(selection, share=100), settings)


def figure_4a(settings: Settings) -> Iterator[Row]:
    """Negation: the share of keys where it strikes."""
    for share in SHARES:
        yield row("R4a", f"{share} % negated", negation(size(settings), share), settings)


def figure_4b(settings: Settings) -> Iterator[Row]:
    """Negation over streams of several sizes."""
    yield from by_size("R4b", partial(negation, share=50), settings)


def figure_4c(settings: Settings) -> Iterator[Row]:
    """Conjunction over streams of several sizes."""
    yield from by_size("R4c", conjunction, settings)


def figure_5a(settings: Settings) -> Iterator[Row]:
    """Disjunction over streams of several sizes."""
    yield from by_size("R5a", disjunction, settings)


def figure_5b(settings: Settings) -> Iterator[Row]:
    """Transitive closure over streams of several sizes, first in first out as in the paper, and with all paths."""
    for share in SIZES:
        events = max(LEAST, int(share * size(settings)))
        for policy in ("chronological", "unrestricted"):
            workload = closure(events, policy)
            yield row("R5b", f"{workload.events:,} events", workload, settings, policy)


def figure_5c(settings: Settings) -> Iterator[Row]:
    """Plan sharing: one rule, and eight and sixteen copies of it."""
    for copies in (1, 8, 16):
        yield row(
            "R5c", f"{copies} {'rule' if copies == 1 else 'rules'}", sequences(size(settings), 3, copies), settings
        )


EXPERIMENTS = {
    "R3a": figure_3a,
    "R3b": figure_3b,
    "R3c": figure_3c,
    "R4a": figure_4a,
    "R4b": figure_4b,
    "R4c": figure_4c,
    "R5a": figure_5a,
    "R5b": figure_5b,
    "R5c": figure_5c,
}
