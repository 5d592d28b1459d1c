"""Graph events: texts to triples, and triples to solutions, apart from the sequences that are made of them.

An event says the price and the volume of a share, in two triples of N-Triples. Static knowledge says the sector of each share,
among ten thousand or a million triples.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from time import process_time

import numpy as np
import pyarrow as pa

from augury.algebra.sparql_algebra import Pattern, needs
from augury.algebra.sparql_parser import read_pattern
from augury.core.jit import HOT, count_work
from augury.core.model import Iri
from augury.graphs.dataset import GraphDataset
from augury.graphs.graph_texts import EventTriples, read
from augury.graphs.rdf_terms import Terms
from augury.graphs.solver import solutions
from bench.measure import Settings, best
from bench.rows import THROUGHPUT, Row
from bench.streams import SEED, Ints

SPACE, XSD = "http://example.org/", "http://www.w3.org/2001/XMLSchema#"
SHARES, CENTS, VOLUMES, SECTORS = 500, 20_000, 1_000, 20
READ_GOAL, SOLVE_GOAL = 1_000.0, 1_000.0  # thousands of events a CPU second
TURTLE_SHARE = 20  # what has prefixes goes through the parser, text by text
KNOWN = (10_000, 1_000_000)  # triples of static knowledge
KNOWN_GOAL, SECONDS = 1.5, 10.0  # a million beside ten thousand; from a table of keys to the first answer
GRAPH = f"{SPACE}known"

PATTERNS: Mapping[str, str] = {
    "two triples": "{ ?s :price ?p ; :volume ?v }",
    "with a filter": "{ ?s :price ?p ; :volume ?v FILTER(?p > 150 && ?v < 500) }",
    "with OPTIONAL": "{ ?s :price ?p OPTIONAL { ?s :volume ?v FILTER(?v < 500) } }",
    "with arithmetic": "{ ?s :price ?p ; :volume ?v BIND(?p * ?v AS ?t) FILTER(?t > 50000) }",
}
STATIC = "{ ?s :price ?p GRAPH :known { ?s :sector :sector7 } }"


@dataclass(frozen=True)
class Quotes:
    """Prices in cents and volumes of shares."""

    share: Ints
    cents: Ints
    volume: Ints

    @staticmethod
    def drawn(count: int) -> Quotes:
        random = np.random.default_rng(SEED)
        return Quotes(*(random.integers(1, most, count) for most in (SHARES, CENTS, VOLUMES)))

    def __len__(self) -> int:
        return len(self.share)

    @cached_property
    def rows(self) -> list[tuple[int, float, int]]:
        return list(zip(self.share.tolist(), (self.cents / 100).tolist(), self.volume.tolist(), strict=True))

    @cached_property
    def n_triples(self) -> pa.Array:
        return pa.array(
            [
                f'<{SPACE}share{s}> <{SPACE}price> "{p}"^^<{XSD}double> .\n<{SPACE}share{s}> <{SPACE}volume> "{v}"^^<{XSD}integer> .\n'
                for s, p, v in self.rows
            ]
        )

    @cached_property
    def turtle(self) -> pa.Array:
        return pa.array([f"@prefix : <{SPACE}> . :share{s} :price {p}e0 ; :volume {v} ." for s, p, v in self.rows])

    def expected(self, name: str) -> int:
        """How many solutions a pattern has."""
        price = self.cents / 100
        return {
            "with a filter": int(((price > 150) & (self.volume < 500)).sum()),
            "with arithmetic": int((price * self.volume > 50000).sum()),
        }.get(name, len(self))


def pattern_of(text: str) -> Pattern:
    return read_pattern(text, {"": SPACE})


def reading(settings: Settings) -> Iterator[Row]:
    """Texts to triples, with new terms each time."""
    count_work(HOT)
    needed = needs(pattern_of(PATTERNS["two triples"]))
    quotes = Quotes.drawn(settings.events)
    some = Quotes.drawn(max(1, settings.events // TURTLE_SHARE))
    for form, texts, goal in (("N-Triples", quotes.n_triples, READ_GOAL), ("Turtle, by the parser", some.turtle, None)):
        began = process_time()
        read(texts[:10], Terms(), needed)
        warm = process_time() - began
        cpu, found = best(partial(_read, texts, needed), settings.repeat)
        rate = len(texts) / max(cpu, 1e-9) / 1000
        yield Row("texts", form, "Augury", rate, THROUGHPUT, len(texts), found, 2 * len(texts), warm, least=goal)


def _read(texts: pa.Array, needed: object) -> int:
    return len(read(texts, Terms(), needed).triples)  # type: ignore[arg-type]


def solving(settings: Settings) -> Iterator[Row]:
    """Triples to solutions."""
    count_work(HOT)
    quotes, terms = Quotes.drawn(settings.events), Terms()
    triples = read(quotes.n_triples, terms).triples
    for name, text in PATTERNS.items():
        pattern = pattern_of(text)
        cpu, found = best(partial(_solved, pattern, triples, terms, GraphDataset()), settings.repeat)
        rate = len(quotes) / max(cpu, 1e-9) / 1000
        goal = None if name == "with arithmetic" else SOLVE_GOAL
        yield Row("solutions", name, "Augury", rate, THROUGHPUT, len(quotes), found, quotes.expected(name), least=goal)


def _solved(pattern: Pattern, triples: EventTriples, terms: Terms, dataset: GraphDataset) -> int:
    return len(solutions(pattern, triples, terms, dataset))


def static(settings: Settings) -> Iterator[Row]:
    """The same events beside little knowledge, and beside much."""
    count_work(HOT)
    quotes, pattern = Quotes.drawn(settings.events), pattern_of(STATIC)
    expected = int((quotes.share % SECTORS == 7).sum())
    least: float | None = None
    for known in KNOWN:
        terms = Terms()
        triples = read(quotes.n_triples, terms, needs(pattern)).triples
        began = process_time()
        dataset = knowledge(known, terms)
        _solved(pattern, triples, terms, dataset)
        loading = process_time() - began
        cpu, found = best(partial(_solved, pattern, triples, terms, dataset), settings.repeat)
        micro = cpu / len(quotes) * 1e6
        yield Row(
            "dataset", f"{known:,} triples", "µs/event", micro, "µs/event", len(quotes), found, expected,
            base=least, target=None if least is None else KNOWN_GOAL,
        )  # fmt: skip
        yield Row("dataset", f"{known:,} triples", "loading", loading, "CPU s", known, target=SECONDS)
        least = least or micro


def knowledge(count: int, terms: Terms) -> GraphDataset:
    """A graph with the sector of each share, and links between things of which no event speaks."""
    random = np.random.default_rng(SEED)
    lines = [f"<{SPACE}share{s}> <{SPACE}sector> <{SPACE}sector{s % SECTORS}> .\n" for s in range(SHARES)]
    rest = max(0, count - SHARES)
    things = max(1, rest // 4)
    subject, predicate, object = (
        random.integers(0, things, rest),
        np.arange(rest) % 10,
        random.integers(0, things, rest),
    )
    lines += [
        f"<{SPACE}thing{s}> <{SPACE}link{p}> <{SPACE}thing{o}> .\n"
        for s, p, o in zip(subject.tolist(), predicate.tolist(), object.tolist(), strict=True)
    ]
    t = read(lines, terms).triples
    return GraphDataset.of(t.subject, t.predicate, t.object, np.full(len(t), terms.number(Iri(GRAPH))), terms)


EXPERIMENTS = {"texts": reading, "solutions": solving, "dataset": static}
TITLES = {
    "texts": "Graph events: texts to triples",
    "solutions": "Graph events: triples to solutions",
    "dataset": "Graph events: a pattern with GRAPH, by the size of the graph",
}
