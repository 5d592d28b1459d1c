"""SPAseQ: fraud with credit cards (S, use case 3), at a pace of ten thousand payments a second in small batches.

A card pays little, and then more than ten times as much. Nothing sleeps: a batch comes when the last of its payments does, waits
for the one before it, and takes as long as it was measured to take, in CPU time. What is counted is the time from a payment
to the end of the step that it was in; the first of a batch waits for the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from time import process_time

import numpy as np

import augury
from augury.core.jit import HOT, count_work
from bench.measure import Settings
from bench.rows import Row
from bench.streams import SEED, Floats, Ints

SPACE, STREAM = "http://example.org/", "http://creditcard.org/transactions"
CARDS, PACE, MOST, WARM = 1_000, 10_000, 30_000, 5
BATCHES = (10, 50, 100)
GOAL = 25.0  # milliseconds
QUERY = f"""
PREFIX : <{SPACE}>
SELECT ?card ?little ?much WITHIN 30 MINUTES PARTITION BY (?card)
FROM STREAM S <{STREAM}>
WHERE {{ SEQ(A, B)
  DEFINE GPM A ON S {{ ?pay :card ?card ; :amount ?little }}
  DEFINE GPM B ON S {{ ?other :card ?card ; :amount ?much FILTER(?much > ?little * 10) }}
}}"""


def paid(count: int) -> tuple[Ints, Ints]:
    """Cards, and what they pay."""
    random = np.random.default_rng(SEED)
    return random.integers(0, CARDS, count), np.round(10 ** random.uniform(0, 3, count)).astype(np.int64)


def frauds(card: Ints, amount: Ints) -> int:
    """How often a card pays more than ten times what it paid before."""
    last: dict[int, int] = {}
    found = 0
    for one, paying in zip(card.tolist(), amount.tolist(), strict=True):
        found += one in last and paying > 10 * last[one]
        last[one] = paying
    return found


def paced(settings: Settings) -> Iterator[Row]:
    count_work(HOT)
    card, amount = paid(min(settings.events, MOST))
    events = [
        {
            "stream": STREAM,
            "time": f"2026-01-01 00:00:{i // PACE:02}.{i % PACE * (1_000_000 // PACE):06}",
            "graph": f"<{SPACE}p{i}> <{SPACE}card> <{SPACE}card{c}> ; <{SPACE}amount> {a} .",
        }
        for i, (c, a) in enumerate(zip(card.tolist(), amount.tolist(), strict=True))
    ]
    program = augury.compile(QUERY, language="spaseq", name="fraud")
    expected = frauds(card, amount)
    for batch in BATCHES:
        steps = [events[lo : lo + batch] for lo in range(0, len(events), batch)]
        told(program, steps[: max(1, len(steps) // WARM)])
        took, found = told(program, steps)
        waits = latencies(np.array(took), batch) * 1000
        for series, share in (("median", 50), ("99 %", 99)):
            value = float(np.percentile(waits, share))
            yield Row("fraud", f"{batch} payments", series, value, "ms", len(events), found, expected, target=GOAL)


def told(program: augury.Program, steps: list[list[dict[str, str]]]) -> tuple[list[float], int]:
    """The CPU time of each step, and how many answers there are."""
    session, took, found = program.session(lateness="0s", longest="0s"), list[float](), 0
    for step in steps:
        began = process_time()
        found += len(session.push(step))
        took.append(process_time() - began)
    return took, found


def latencies(took: Floats, batch: int) -> Floats:
    """From the first payment of each batch to the end of its step."""
    ready = np.arange(1, len(took) + 1) * batch / PACE
    ends, free = np.empty(len(took)), 0.0
    for i, (at, long) in enumerate(zip(ready.tolist(), took.tolist(), strict=True)):
        free = max(free, at) + long
        ends[i] = free
    return ends - (ready - batch / PACE)


EXPERIMENTS: Mapping[str, Callable[[Settings], Iterator[Row]]] = {"fraud": paced}
TITLES = {"fraud": "SPAseQ: fraud with credit cards, 10,000 payments a second, by the size of batches"}
