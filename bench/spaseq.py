"""The experiments of "A Query Language for Semantic Complex Event Processing" (S 8), figures 15 to 21.

The paper's measure is the average CPU time of a window: here the CPU time from texts to answers, divided by how many windows the
stream is long. Beside it stands how many thousands of events a CPU second that is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np

import augury
from augury.algebra.sparql_algebra import ALL
from augury.core.jit import HOT, count_work
from augury.graphs.graph_texts import read
from augury.graphs.rdf_terms import Terms
from bench.graph_datasets import (
    DATASETS,
    SPACE,
    Dataset,
    GraphStream,
    Shares,
    by_next,
    contiguous,
    houses,
    query,
    query_one,
    shares,
    zigzag,
)
from bench.measure import Settings, best, clocked
from bench.rows import THROUGHPUT, Row

KNOWN = f"{SPACE}companies"
MINUTES = (10, 30, 50, 70, 100)
CLAUSES = (3, 5, 7)
KNOWLEDGE = (10_000, 100_000, 1_000_000)  # triples beside the one that a match needs
MOST = 200_000  # events
MANY_SHARES = 100
TEXT_GOAL, MATCH_GOAL = 300.0, 1_000.0  # thousands of events a CPU second
PER_WINDOW = "CPU ms a window"
SELECTIONS = {",": "contiguous `,`", ";": "the next `;`"}  # the paper's strict contiguity, and skip till next match
PATTERNS, RUNS = "graph patterns", "runs"


def size(settings: Settings) -> int:
    return min(settings.events, MOST)


def sessions(text: str, **options: Any) -> Any:
    """Opens sessions of a query, whose kernels are compiled from the first event on."""
    program = augury.compile(text, language="spaseq", name="found")
    count_work(HOT)
    return lambda: program.session(clock="timestamp", lateness="0s", longest="0s", **options)


def answered(session: Any, steps: Sequence[Mapping[str, Any]]) -> int:
    return sum(len(session.push(step)) for step in steps)


def answers(text: str, events: GraphStream, repeat: int) -> tuple[float, int]:
    """The CPU time from texts to answers, and how many there are."""
    open_session, steps = sessions(text), events.steps()
    answered(open_session(), steps)
    return best(lambda: answered(open_session(), steps), repeat)


def rate(events: int, cpu: float) -> float:
    return events / max(cpu, 1e-9) / 1000


def a_window(
    figure: str, case: str, series: str, events: GraphStream, minutes: int, cpu: float, found: int, expected: int
) -> Row:
    """A row in the paper's measure."""
    windows = (int(events.second[-1]) + 1) / (60 * minutes)
    note = f"{rate(len(events), cpu):,.0f} K/s"
    return Row(figure, case, series, 1000 * cpu / windows, PER_WINDOW, len(events), found, expected, note=note)


def texts(settings: Settings) -> Iterator[Row]:
    """From text to answers, and matching alone: less the time that reading takes by itself."""
    drawn = Shares.drawn(size(settings))
    count, graphs = len(drawn), [step[f"<{SPACE}S>"]["graph"] for step in drawn.events.steps()]
    count_work(HOT)

    def reading() -> int:
        terms = Terms()
        return sum(len(read(graph, terms, ALL).triples) for graph in graphs)

    reading()
    read_cpu, triples = best(reading, settings.repeat)
    made = partial(Row, "S V", unit=THROUGHPUT, events=count)
    yield made("a V", "reading alone", rate(count, read_cpu), answers=triples, expected=2 * count)
    for separator, expected in ((",", contiguous(drawn.prices, 3)), (";", by_next(drawn.prices, 30))):
        cpu, found = answers(zigzag(separator), drawn.events, settings.repeat)
        row = partial(made, f"a V by `{separator}`", answers=found, expected=expected)
        yield row("text to answers", rate(count, cpu), least=TEXT_GOAL)
        yield row("less reading", rate(count, cpu - read_cpu), least=MATCH_GOAL)


def windows(name: str, settings: Settings) -> Iterator[Row]:
    """Figure 15 for one of the four data sets."""
    dataset = DATASETS[name](size(settings))
    for minutes in MINUTES:
        for separator, series in SELECTIONS.items():
            cpu, found = answers(dataset.query(separator, minutes), dataset.events, settings.repeat)
            expected = dataset.expected(separator, minutes)
            yield a_window(f"S15-{name}", f"{minutes} minutes", series, dataset.events, minutes, cpu, found, expected)


def clauses(settings: Settings) -> Iterator[Row]:
    drawn, minutes = Shares.drawn(size(settings)), 40
    for count in CLAUSES:
        for separator, expected in (
            (",", contiguous(drawn.prices, count)),
            (";", by_next(drawn.prices, minutes, count)),
        ):
            cpu, found = answers(zigzag(separator, count, minutes), drawn.events, settings.repeat)
            series = SELECTIONS[separator]
            yield a_window("S16", f"{count} clauses", series, drawn.events, minutes, cpu, found, expected)


def knowledge(settings: Settings) -> Iterator[Row]:
    """A name that is looked up in static knowledge of growing size, once that is loaded: the first tenth is the warm-up."""
    drawn, first = Shares.drawn(size(settings)), 0.0
    steps = drawn.events.steps(max(1, len(drawn) // 10))
    text = zigzag(",", known=f"GRAPH <{KNOWN}> {{ ?c :name ?name }}").replace(
        "\nWHERE", f"\nFROM NAMED <{KNOWN}>\nWHERE"
    )
    for triples in KNOWLEDGE if settings.events >= MOST // 10 else KNOWLEDGE[:1]:
        session = sessions(text, rdf=_companies(triples))()
        loading, found = clocked(partial(answered, session, steps[:1]))
        cpu, more = clocked(partial(answered, session, steps[1:]))
        measured = rate(len(drawn) - len(steps[0][f"<{SPACE}S>"]), cpu)
        first = first or measured
        yield Row(
            "S17", f"{triples:,} triples", SELECTIONS[","], measured, THROUGHPUT, len(drawn), found + more,
            contiguous(drawn.prices, 3), loading, base=first, least=1 / 1.5,
        )  # fmt: skip


@lru_cache(maxsize=1)
def _companies(size: int) -> Any:
    from augury.core.model import Iri, Value
    from augury.knowledge.rdf import RdfTriples

    names = [Iri(f"{SPACE}company{i}") for i in range(size - 1)]
    literals = [f"name {i}" for i in range(size)]
    terms: list[Value] = [Iri(f"{SPACE}share"), Iri(f"{SPACE}name"), Iri(KNOWN), *names, *literals]
    subject = np.r_[0, np.arange(3, 3 + size - 1)].astype(np.int32)
    object = np.arange(3 + size - 1, 3 + 2 * size - 1).astype(np.int32)
    rows = (subject, np.full(size, 1, np.int32), object, np.full(size, 2, np.int32))
    return augury.rdf(RdfTriples(terms, *rows), entailment=False)


def parts_of_cost(text: str, events: GraphStream) -> tuple[dict[str, float], int]:
    """The seconds of graph patterns and of runs, as the operators of a session measure them, and how many answers there are."""
    open_session, steps = sessions(text), events.steps()
    answered(open_session(), steps)
    session = open_session()
    count, seconds = answered(session, steps), {PATTERNS: 0.0, RUNS: 0.0}
    for operator in session.stats()["operators"]:
        seconds[PATTERNS if operator["operator"] == "graph" else RUNS] += operator["seconds"]
    return seconds, count


def operations(settings: Settings) -> Iterator[Row]:
    """Figure 18: what parsing, graph patterns and the automaton cost, which here is the operators of runs."""
    dataset = shares(size(settings))
    graphs = [step[f"<{SPACE}S>"]["graph"] for step in dataset.events.steps()]

    def reading() -> int:
        terms = Terms()
        return sum(len(read(graph, terms, ALL).triples) for graph in graphs)

    reading()
    parsing, _ = best(reading, settings.repeat)
    for minutes in MINUTES:
        seconds, found = parts_of_cost(dataset.query(";", minutes), dataset.events)
        for series, cost in ({"parsing": parsing} | seconds).items():
            expected = dataset.expected(";", minutes)
            yield a_window("S18", f"{minutes} minutes", series, dataset.events, minutes, cost, found, expected)


def repetition(settings: Settings) -> Iterator[Row]:
    """Figure 19: a repetition beside a sequence of as many clauses, by what each part costs."""
    drawn = Shares.drawn(size(settings))
    repeated = [
        "A ON S { ?c :price ?p1 ; :volume ?v1 }",
        "B ON S { ?c :price ?p2 ; :volume ?v2 FILTER(?p2 > ?p1) }",
        "C ON S { ?c :price ?p3 ; :volume ?v3 FILTER(?p3 < ?p1) }",
    ]
    for minutes in MINUTES:
        kleene = query("?c ?p1 ?p3 (COUNT(?p2) AS ?n)", minutes, "A, B+, C", "S", repeated)
        above = excursions(drawn.prices.tolist(), 60 * minutes)
        sequence = zigzag(",", 3, minutes), contiguous(drawn.prices, 3)
        for name, (text, expected) in {"A, B+, C": (kleene, above), "A, B, C": sequence}.items():
            seconds, found = parts_of_cost(text, drawn.events)
            for part, cost in seconds.items():
                series = f"{name}: {part}"
                yield a_window("S19", f"{minutes} minutes", series, drawn.events, minutes, cost, found, expected)


def excursions(prices: Sequence[float], window: int) -> int:
    """How many excursions above a price end below it within a window, with at least one event above."""
    count = 0
    for first, price in enumerate(prices):
        here = first + 1
        while here < len(prices) and here - first <= window and prices[here] > price:
            here += 1
        count += here < len(prices) and here - first <= window and here > first + 1 and prices[here] < price
    return count


def indexed(settings: Settings) -> Iterator[Row]:
    """Figure 20: three streams of which each part of the query reads one, and the same events all on one stream."""
    dataset = houses(size(settings))
    together = Dataset("SHD", dataset.events.on_one_stream("All"), query_one(("All",)), dataset.expected)
    for minutes in MINUTES:
        for series, mine in (("by stream", dataset), ("one stream for all", together)):
            cpu, found = answers(mine.query(";", minutes), mine.events, settings.repeat)
            expected = mine.expected(";", minutes)
            yield a_window("S20", f"{minutes} minutes", series, mine.events, minutes, cpu, found, expected)


def partitioned(settings: Settings) -> Iterator[Row]:
    """Many shares: with a chain of events for each, and with one chain through which each looks for its own."""
    drawn = Shares.drawn(size(settings) // 4, MANY_SHARES)
    rows = [np.flatnonzero(drawn.share == number) for number in range(MANY_SHARES)]
    for minutes in MINUTES[:3]:
        expected = sum(by_next(drawn.prices[mine], minutes, times=mine) for mine in rows)
        for series, partition in (("PARTITION BY (?c)", "?c"), ("one chain", "")):
            cpu, found = answers(zigzag(";", minutes=minutes, partition=partition), drawn.events, settings.repeat)
            yield a_window("S partition", f"{minutes} minutes", series, drawn.events, minutes, cpu, found, expected)


def conjunction(settings: Settings) -> Iterator[Row]:
    """Figure 21: two patterns at one time on two streams, by how many events of the first have one of the second beside them.

    All events are read and matched as they come, which the paper calls eager; none waits until there is another at its time.
    """
    drawn = Shares.drawn(size(settings)).events
    gpms = ["A ON S { ?c :price ?p }", "B ON T { ?c :volume ?v }"]
    for minutes in MINUTES:
        for every in (1, 10, 100):
            extra = np.arange(0, len(drawn), every)
            second = np.concatenate([drawn.second, drawn.second[extra]])
            order = np.argsort(second, kind="stable")
            stream = np.repeat([0, 1], [len(drawn), len(extra)])[order]
            graphs = [drawn.texts[row] for row in np.concatenate([drawn.second, extra])[order]]
            both = GraphStream(second[order], stream, ("S", "T"), graphs)
            cpu, found = answers(query("?c ?p ?v", minutes, "(A & B)", ("S", "T"), gpms), both, settings.repeat)
            yield a_window("S21", f"{minutes} minutes", f"1 of {every}", both, minutes, cpu, found, len(extra))


EXPERIMENTS: Mapping[str, Callable[[Settings], Iterator[Row]]] = {
    "V-text": texts,
    **{f"S15-{name}": partial(windows, name) for name in DATASETS},
    "S16": clauses,
    "S17": knowledge,
    "S18": operations,
    "S19": repetition,
    "S20": indexed,
    "S21": conjunction,
    "S-partition": partitioned,
}
TITLES = {
    "S V": "SPAseQ: a V over two-triple events, from N-Triples to answers",
    "S15-SMD": "S figure 15a: prices of shares, by the length of the window",
    "S15-CCD": "S figure 15b: payments with cards, by the length of the window",
    "S15-TD": "S figure 15c: traffic, a conjunction, by the length of the window",
    "S15-SHD": "S figure 15d: a smart home, three streams, by the length of the window",
    "S16": "S figure 16: zigzags within 40 minutes, by the number of clauses",
    "S17": "S figure 17: a V whose share has a name, by the size of the knowledge",
    "S18": "S figure 18: what parsing, graph patterns and runs cost",
    "S19": "S figure 19: a repetition beside a sequence",
    "S20": "S figure 20: events of three streams, and all of them on one",
    "S21": "S figure 21: a conjunction, by how many events have a partner at their time",
    "S partition": "A V of each of a hundred shares by `;`, in partitions and in one chain",
}
