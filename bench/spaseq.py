"""SPAseQ over a stream of share prices: from N-Triples text to answers, by window, clauses, knowledge and repetition (S 8).

The price of one share, or of each of many, goes up and down by a step a second. A V is a rise and the fall that follows it,
contiguous or by the next event that fits; counts come from plain loops over the prices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from importlib import import_module
from typing import Any

import numpy as np

import augury
from augury.algebra.sparql_algebra import ALL
from augury.core.jit import HOT, count_work
from augury.graphs.graph_texts import read
from augury.graphs.rdf_terms import Terms
from bench.measure import Settings, best, clocked
from bench.rows import THROUGHPUT, Row
from bench.streams import SEED, Floats, Ints
from bench.workload import BATCH

pa = import_module("pyarrow")  # which has no types to check

SPACE, XSD = "http://example.org/", "http://www.w3.org/2001/XMLSchema#"
STREAM, KNOWN = f"{SPACE}shares", f"{SPACE}companies"
MINUTES = (10, 30, 50, 70, 100)
CLAUSES = (3, 5, 7)
KNOWLEDGE = (10_000, 100_000, 1_000_000)  # triples beside the one that a match needs
MOST = 200_000  # events
SECOND = 1_000_000
MANY_SHARES = 100
TEXT_GOAL, MATCH_GOAL = 300.0, 1_000.0  # thousands of events a CPU second


@dataclass(frozen=True)
class Shares:
    """Prices, one a second, and of which share each is."""

    prices: Floats
    share: Ints

    @staticmethod
    @lru_cache(maxsize=2)
    def drawn(count: int, shares: int = 1) -> Shares:
        random = np.random.default_rng(SEED)
        steps, share = random.choice([-0.5, -0.25, 0.25, 0.5], count), np.zeros(count, np.int64)
        if shares > 1:
            share = random.integers(0, shares, count)
        prices = np.empty(count)
        for one in range(shares):
            prices[share == one] = np.round(100 + np.cumsum(steps[share == one]), 2)
        return Shares(prices, share)

    def __len__(self) -> int:
        return len(self.prices)

    @cached_property
    def texts(self) -> list[str]:
        volumes = np.random.default_rng(SEED + 1).integers(1, 500, len(self)).tolist()
        names = [f"<{SPACE}share{n or ''}>" for n in self.share.tolist()]
        return [
            f'{share} <{SPACE}price> "{p}"^^<{XSD}decimal> .\n{share} <{SPACE}volume> "{v}"^^<{XSD}integer> .\n'
            for share, p, v in zip(names, self.prices.tolist(), volumes, strict=True)
        ]

    @cached_property
    def steps(self) -> list[Mapping[str, Any]]:
        times = np.arange(len(self)) * SECOND
        return [
            {f"<{STREAM}>": pa.table({"time": pa.array(times[lo : lo + BATCH], pa.timestamp("us")), "graph": self.texts[lo : lo + BATCH]})}
            for lo in range(0, len(self), BATCH)
        ]  # fmt: skip


def zigzag(separator: str, clauses: int = 3, minutes: int = 30, knowledge: bool = False, partition: str = "") -> str:
    """Up, down, up, …: each clause compares its price with that of the one before."""
    names = "ABCDEFG"[:clauses]
    gpms = [f"DEFINE GPM A ON S {{ ?c :price ?p1 ; :volume ?v1 {_known() if knowledge else ''} }}"]
    for i, name in enumerate(names[1:], 2):
        gpms.append(
            f"DEFINE GPM {name} ON S {{ ?c :price ?p{i} ; :volume ?v{i} FILTER(?p{i} {'<>'[i % 2 == 0]} ?p{i - 1}) }}"
        )
    columns = " ".join(f"?p{i}" for i in range(1, clauses + 1))
    return _query(f"?c {columns}{' ?name' if knowledge else ''}", minutes, f"{separator} ".join(names), gpms, partition)


def _known() -> str:
    return f"GRAPH <{KNOWN}> {{ ?c :name ?name }}"


def _query(columns: str, minutes: int, sequence: str, gpms: Sequence[str], partition: str = "") -> str:
    body, by = "\n".join(gpms), f" PARTITION BY ({partition})" if partition else ""
    return f"PREFIX : <{SPACE}>\nSELECT {columns} WITHIN {minutes} MINUTES{by}\nFROM STREAM S <{STREAM}>\nWHERE {{ SEQ({sequence})\n{body}\n}}"


def contiguous(prices: Floats, clauses: int) -> int:
    """How many zigzags of neighbours there are."""
    up = prices[1:] > prices[:-1]
    found = np.ones(max(0, len(prices) - clauses + 1), bool)
    for i in range(clauses - 1):
        found &= up[i : i + len(found)] == (i % 2 == 0)
    return int(found.sum())


def by_next(prices: Floats, minutes: int, clauses: int = 3) -> int:
    """How many there are where each is the next that fits."""
    later = {up: _next(prices, up) for up in (True, False)}
    found = 0
    for first in range(len(prices)):
        here = first
        for clause in range(1, clauses):
            here = int(later[clause % 2 == 1][here]) if here >= 0 else -1
        found += here >= 0 and here - first <= 60 * minutes
    return found


def _next(prices: Floats, up: bool) -> list[int]:
    """For each price the place of the next one that is greater, or less; -1 without one."""
    found, waiting = [-1] * len(prices), list[int]()
    for here, price in enumerate(prices.tolist()):
        while waiting and (prices[waiting[-1]] < price if up else prices[waiting[-1]] > price):
            found[waiting.pop()] = here
        waiting.append(here)
    return found


def answers(query: str, shares: Shares, repeat: int, **options: Any) -> tuple[float, int]:
    """The CPU time from texts to answers, and how many there are."""
    program = augury.compile(query, language="spaseq", name="found")

    def run() -> int:
        count_work(HOT)
        session = program.session(clock="timestamp", lateness="0s", longest="0s", **options)
        return sum(len(session.push(step)) for step in shares.steps)

    run()
    return best(run, repeat)


def row(figure: str, case: str, series: str, shares: Shares, cpu: float, found: int, expected: int, **more: Any) -> Row:
    rate = len(shares) / max(cpu, 1e-9) / 1000
    return Row(figure, case, series, rate, THROUGHPUT, len(shares), found, expected, **more)


def texts(settings: Settings) -> Iterator[Row]:
    """From text to answers, and matching alone: less the time that reading takes by itself."""
    shares = Shares.drawn(min(settings.events, MOST))
    count_work(HOT)

    def reading() -> int:
        terms = Terms()
        return sum(len(read(step[f"<{STREAM}>"]["graph"], terms, ALL).triples) for step in shares.steps)

    reading()
    read_cpu, triples = best(reading, settings.repeat)
    yield row("S V", "a V", "reading alone", shares, read_cpu, triples, 2 * len(shares))
    for separator, expected in ((",", contiguous(shares.prices, 3)), (";", by_next(shares.prices, 30))):
        cpu, found = answers(zigzag(separator), shares, settings.repeat)
        case = f"a V by `{separator}`"
        yield row("S V", case, "text to answers", shares, cpu, found, expected, least=TEXT_GOAL)
        yield row("S V", case, "less reading", shares, max(cpu - read_cpu, 1e-9), found, expected, least=MATCH_GOAL)


def windows(settings: Settings) -> Iterator[Row]:
    shares = Shares.drawn(min(settings.events, MOST))
    for minutes in MINUTES:
        for separator, expected in ((",", contiguous(shares.prices, 3)), (";", by_next(shares.prices, minutes))):
            cpu, found = answers(zigzag(separator, minutes=minutes), shares, settings.repeat)
            yield row("S15", f"{minutes} minutes", f"by `{separator}`", shares, cpu, found, expected)


def clauses(settings: Settings) -> Iterator[Row]:
    shares = Shares.drawn(min(settings.events, MOST))
    for count in CLAUSES:
        for separator, expected in ((",", contiguous(shares.prices, count)), (";", by_next(shares.prices, 30, count))):
            cpu, found = answers(zigzag(separator, count), shares, settings.repeat)
            yield row("S16", f"{count} clauses", f"by `{separator}`", shares, cpu, found, expected)


def knowledge(settings: Settings) -> Iterator[Row]:
    """A name that is looked up in static knowledge of growing size, once that is loaded."""
    shares, first = Shares.drawn(min(settings.events, MOST)), 0.0
    expected = contiguous(shares.prices, 3)
    program = augury.compile(zigzag(",", knowledge=True), language="spaseq", name="found")
    count_work(HOT)
    for size in KNOWLEDGE if settings.events > BATCH else KNOWLEDGE[:1]:
        session = program.session(clock="timestamp", lateness="0s", longest="0s", rdf=_companies(size))
        loading, found = clocked(partial(_answered, session, shares.steps[:1]))
        cpu, more = clocked(partial(_answered, session, shares.steps[1:]))
        rate = (len(shares) - len(shares.steps[0][f"<{STREAM}>"])) / max(cpu, 1e-9) / 1000
        first = first or rate
        case, answers = f"{size:,} triples", found + more
        yield Row(
            "S17", case, "by `,`", rate, THROUGHPUT, len(shares), answers, expected, loading, base=first, least=1 / 1.5
        )


def _answered(session: Any, steps: Sequence[Mapping[str, Any]]) -> int:
    return sum(len(session.push(step)) for step in steps)


@lru_cache(maxsize=1)
def _companies(size: int) -> Any:
    from augury.core.model import Iri, Value
    from augury.knowledge.rdf import RdfTriples

    names = [Iri(f"{SPACE}company{i}") for i in range(size - 1)]
    terms: list[Value] = [
        Iri(f"{SPACE}share"),
        Iri(f"{SPACE}name"),
        Iri(KNOWN),
        *names,
        *(f"name {i}" for i in range(size)),
    ]
    subject = np.r_[0, np.arange(3, 3 + size - 1)].astype(np.int32)
    object = np.arange(3 + size - 1, 3 + 2 * size - 1).astype(np.int32)
    rows = (subject, np.full(size, 1, np.int32), object, np.full(size, 2, np.int32))
    return augury.rdf(RdfTriples(terms, *rows), entailment=False)


def repetition(settings: Settings) -> Iterator[Row]:
    """A repetition beside a sequence of as many clauses."""
    shares = Shares.drawn(min(settings.events, MOST))
    rises = "DEFINE GPM B ON S { ?c :price ?p2 ; :volume ?v2 FILTER(?p2 > ?p1) }"
    start = "DEFINE GPM A ON S { ?c :price ?p1 ; :volume ?v1 }"
    end = "DEFINE GPM C ON S { ?c :price ?p3 ; :volume ?v3 FILTER(?p3 < ?p1) }"
    window = max(1, min(10, len(shares) // 60))
    repeated = _query("?c ?p1 ?p3 (COUNT(?p2) AS ?n)", window, "A, B+, C", [start, rises, end])
    cpu, found = answers(repeated, shares, settings.repeat)
    yield row("S19", "A, B+, C", "Kleene", shares, cpu, found, _above(shares.prices, 60 * window))
    cpu, found = answers(zigzag(",", 3, window), shares, settings.repeat)
    yield row("S19", "A, B, C", "sequence", shares, cpu, found, contiguous(shares.prices, 3))


def _above(prices: Floats, window: int) -> int:
    """How many excursions above a price end below it within a window, with at least one event above."""
    found, listed = 0, prices.tolist()
    for first, price in enumerate(listed):
        here = first + 1
        while here < len(listed) and here - first <= window and listed[here] > price:
            here += 1
        found += here < len(listed) and here - first <= window and here > first + 1 and listed[here] < price
    return found


def indexed(settings: Settings) -> Iterator[Row]:
    """Many shares: with a chain of events for each, and with one chain through which each looks for its own."""
    shares = Shares.drawn(min(settings.events, MOST // 4), MANY_SHARES)
    for minutes in MINUTES[:3]:
        expected = sum(
            by_next_at(np.flatnonzero(shares.share == one), shares.prices[shares.share == one], minutes)
            for one in range(MANY_SHARES)
        )
        for series, partition in (("indexed: PARTITION BY (?c)", "?c"), ("not indexed", "")):
            cpu, found = answers(zigzag(";", minutes=minutes, partition=partition), shares, settings.repeat)
            yield row("S20", f"{minutes} minutes", series, shares, cpu, found, expected)


def by_next_at(times: Ints, prices: Floats, minutes: int) -> int:
    """How many V there are by `;`, of prices at times."""
    rise, fall = _next(prices, True), _next(prices, False)
    ends = (fall[up] if (up := rise[first]) >= 0 else -1 for first in range(len(prices)))
    return sum(last >= 0 and int(times[last] - times[first]) <= 60 * minutes for first, last in enumerate(ends))


def conjunction(settings: Settings) -> Iterator[Row]:
    """Two patterns at one time on two streams, by how many events of the first have one of the second beside them.

    All events are read and matched as they come; none waits until there is another at its time.
    """
    shares = Shares.drawn(min(settings.events, MOST))
    gpms = ["DEFINE GPM A ON S { ?c :price ?p }", "DEFINE GPM B ON T { ?c :volume ?v }"]
    query = _query("?c ?p ?v", 30, "(A & B)", gpms).replace("\nWHERE", f"\nFROM STREAM T <{STREAM}2>\nWHERE")
    for every in (1, 10, 100):
        both = _with_partners(shares, every)
        program = augury.compile(query, language="spaseq", name="found")

        def run(program: augury.Program = program, both: list[Mapping[str, Any]] = both) -> int:
            session = program.session(clock="timestamp", lateness="0s", longest="0s")
            return sum(len(session.push(step)) for step in both)

        count_work(HOT)
        run()
        cpu, found = best(run, settings.repeat)
        expected = len(range(0, len(shares), every))
        rate = (len(shares) + expected) / max(cpu, 1e-9) / 1000
        yield Row("S21", f"1 of {every}", "A & B", rate, THROUGHPUT, len(shares) + expected, found, expected)


def _with_partners(shares: Shares, every: int) -> list[Mapping[str, Any]]:
    found: list[Mapping[str, Any]] = []
    for number, step in enumerate(shares.steps):
        table = step[f"<{STREAM}>"]
        first = number * BATCH
        places = [i for i in range(len(table)) if (first + i) % every == 0]
        found.append({**step, f"<{STREAM}2>": table.take(pa.array(places, pa.int64()))})
    return found


EXPERIMENTS: Mapping[str, Callable[[Settings], Iterator[Row]]] = {
    "V-text": texts,
    "S15": windows,
    "S16": clauses,
    "S17": knowledge,
    "S19": repetition,
    "S20": indexed,
    "S21": conjunction,
}
TITLES = {
    "S V": "SPAseQ: a V over two-triple events, from N-Triples to answers",
    "S15": "S figure 15: a V, by the length of the window",
    "S16": "S figure 16: zigzags, by the number of clauses",
    "S17": "S figure 17: a V whose share has a name, by the size of the knowledge",
    "S19": "S figure 19: a repetition beside a sequence",
    "S20": "S figure 20: a V of each of a hundred shares by `;`, indexed by share and not",
    "S21": "S figure 21: a conjunction, by how many events have a partner at their time",
}
