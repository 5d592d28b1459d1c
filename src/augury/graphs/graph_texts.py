"""Texts of RDF graphs, one an event, as triples in columns of numbers.

A text is N-Triples or Turtle: what pyoxigraph takes for Turtle. Plain lines of N-Triples are read by a kernel for the whole
column (`ntriples.py`), once kernels are compiled; all else by pyoxigraph, text by text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

import numpy as np

from augury.algebra.sparql_algebra import ALL, TripleNeeds
from augury.core.arrays import Array, Integers, RowIds
from augury.core.jit import Kernel, expect_work
from augury.graphs.keys import compiled
from augury.graphs.ntriples import frozen, scan
from augury.graphs.oxigraph import is_made_up, key_from, oxigraph, said_by_parser
from augury.graphs.rdf_terms import Terms, key_of
from augury.graphs.solutions import different_rows

Texts: TypeAlias = Any  # a column of texts: an array of Arrow, or a sequence of str


@dataclass(frozen=True)
class EventTriples:
    """The triples of some events, sorted by event; of each event every triple once.

    `event[i]` is the number of an event in its batch, from 0 up to `events`; the others are numbers of terms.
    """

    events: int
    event: Array
    subject: Array
    predicate: Array
    object: Array

    def __len__(self) -> int:
        return len(self.event)

    @staticmethod
    def of(events: int, rows: RowIds) -> EventTriples:
        """Triples from rows `event, subject, predicate, object`, in any order and with repetitions."""
        columns = list(rows.reshape(-1, 4).T)
        different = different_rows(columns)
        return EventTriples(events, *(column[different] for column in columns))

    def of_events(self, numbers: Integers) -> EventTriples:
        """The triples of the events with these numbers, one of which may be there twice; they are renumbered in
        this order.
        """
        size, first = len(numbers), int(numbers[0]) if len(numbers) else 0
        if size and int(numbers[-1]) - first == size - 1 and bool((np.diff(numbers) == 1).all()):
            lo, hi = np.searchsorted(self.event, [first, first + size])
            columns = (column[lo:hi] for column in (self.subject, self.predicate, self.object))
            return EventTriples(size, self.event[lo:hi] - first, *columns)
        starts = np.searchsorted(self.event, np.arange(self.events + 1))
        counts = (starts[1:] - starts[:-1])[numbers]
        rows = np.arange(counts.sum()) + np.repeat(starts[:-1][numbers] - (np.cumsum(counts) - counts), counts)
        columns = (column[rows] for column in (self.subject, self.predicate, self.object))
        return EventTriples(size, np.repeat(np.arange(size), counts), *columns)

    def renumbered(self, numbers: Integers) -> EventTriples:
        """With other numbers of terms."""
        columns = (numbers[column] for column in (self.subject, self.predicate, self.object))
        return EventTriples(self.events, self.event, *columns)

    @staticmethod
    def joined(parts: Sequence[EventTriples]) -> EventTriples:
        """Those of some events, and then those of others."""
        if len(parts) == 1:
            return parts[0]
        before = np.cumsum([0, *(part.events for part in parts)])
        event = np.concatenate([part.event + n for part, n in zip(parts, before, strict=False)])
        remaining = (
            np.concatenate([getattr(part, name) for part in parts]) for name in ("subject", "predicate", "object")
        )
        return EventTriples(int(before[-1]), event, *remaining)


@dataclass(frozen=True)
class MalformedGraph:
    """An error in the text of an event: its number in the batch, the line in the text (0 where it is not known)."""

    event: int
    line: int
    message: str

    def __str__(self) -> str:
        return f"event {self.event}{f', line {self.line}' if self.line else ''}: malformed RDF: {self.message}"


@dataclass(frozen=True)
class ReadAhead:
    """Triples that were read when their texts came: those of `needs`, by numbers of these terms."""

    terms: Terms
    needs: TripleNeeds
    triples: EventTriples

    @staticmethod
    def joined(parts: Sequence[ReadAhead]) -> ReadAhead | None:
        """Those of some texts, and then those of others; None where they were read for other patterns."""
        terms, needs = parts[0].terms, parts[0].needs
        if any(part.needs != needs for part in parts):
            return None
        different = {id(part.terms): part.terms for part in parts}
        numbers = {i: terms.keys.add_all(others.keys, 0) for i, others in different.items() if others is not terms}
        triples = [p.triples if p.terms is terms else p.triples.renumbered(numbers[id(p.terms)]) for p in parts]
        return ReadAhead(terms, needs, EventTriples.joined(triples))


class HasBlanks(Exception):
    """A graph has a blank node, which is named after its event: it has to be read when that has a name."""


@dataclass(frozen=True)
class Read:
    """The result of reading: triples, and the errors of texts that have none for that reason."""

    triples: EventTriples
    malformed: list[MalformedGraph] = field(default_factory=list)


def read(texts: Texts, terms: Terms, needs: TripleNeeds = ALL, names: EventNames | None = None) -> Read:
    """The triples of events that some pattern needs. Blank nodes are named `label.name` by the `names` of events.

    Without names, blank nodes are distinguished by a running number. A text that is malformed has no triples; what
    becomes of its event is up to the caller.
    """
    events = len(texts)
    expect_work(Kernel.rows + events)
    called = _Numbered(terms.events) if names is None else names
    terms.events += events
    if not compiled():
        listed = texts.to_pylist() if hasattr(texts, "to_pylist") else texts
        rows, malformed = _parsed(listed, range(events), terms, needs, called)
        return Read(EventTriples.of(events, rows), malformed)
    data, bounds = bytes_of(texts)
    wanted = _wanted(terms, needs)
    columns, plain, repeated = scan(data, bounds, lambda: _name_column(called, events), terms, wanted)
    if plain.all():
        return Read(EventTriples.of(events, columns[:4].T) if repeated else EventTriples(events, *columns[:4]))
    odd = np.flatnonzero(~plain).tolist()
    odd_texts = [data[bounds[i] : bounds[i + 1]].tobytes().decode("utf-8", "surrogatepass") for i in odd]
    rows, malformed = _parsed(odd_texts, odd, terms, needs, called)
    return Read(EventTriples.of(events, np.concatenate([columns[:4].T, rows])), malformed)


class EventNames(Protocol):
    """The names of events by their numbers."""

    def __getitem__(self, event: int, /) -> str: ...


class UnnamedEvents:
    """Stands for the names of events before they have one."""

    def __getitem__(self, event: int) -> str:
        raise HasBlanks


class _Numbered:
    """Names for events that have none."""

    def __init__(self, first: int) -> None:
        self.first = first

    def __getitem__(self, event: int) -> str:
        return str(self.first + event)


def _wanted(terms: Terms, needs: TripleNeeds) -> Array | None:
    """For each number of a term whether triples of this predicate are needed; None where all are."""
    if needs.every:
        return None
    numbers = terms.numbers(needs.predicates)
    result = np.zeros(len(terms), np.uint8)
    result[numbers] = 1
    return result


def _name_column(names: EventNames, events: int) -> tuple[Array, Array]:
    """The names of events one behind the other."""
    listed = [names[i].encode("utf-8", "surrogatepass") for i in range(events)]
    ends = np.zeros(events + 1, np.int64)
    np.cumsum([len(name) for name in listed], out=ends[1:])
    return frozen(b"".join(listed)), ends


def bytes_of(texts: Texts) -> tuple[Array, Array]:
    """A column of texts as bytes, and where each one begins and ends."""
    import pyarrow as pa

    if isinstance(texts, pa.ChunkedArray):
        texts = texts.combine_chunks()
    if not isinstance(texts, pa.Array) or texts.null_count or texts.type not in (pa.string(), pa.large_string()):
        listed = texts.to_pylist() if hasattr(texts, "to_pylist") else list(texts)
        encoded = [(text or "").encode("utf-8", "surrogatepass") for text in listed]
        bounds = np.zeros(len(encoded) + 1, np.int64)
        np.cumsum([len(text) for text in encoded], out=bounds[1:])
        return frozen(b"".join(encoded)), bounds
    _, offsets, data = texts.buffers()
    width = np.int32 if texts.type == pa.string() else np.int64
    bounds = np.frombuffer(offsets, width)[texts.offset : texts.offset + len(texts) + 1].astype(np.int64)
    return frozen(data if data is not None else b""), bounds


def _parsed(
    texts: Sequence[str | None], events: Sequence[int], terms: Terms, needs: TripleNeeds, names: EventNames
) -> tuple[Array, list[MalformedGraph]]:
    """The triples of texts by the parser, as rows `event, subject, predicate, object`."""
    wanted = None if needs.every else {key_of(predicate) for predicate in needs.predicates}
    keys, numbers, malformed = list[bytes](), list[int](), list[MalformedGraph]()
    for event, text in zip(events, texts, strict=True):
        try:
            terms_of_text = list(_triples_of(text or "", _Blanks(names, event), wanted))
        except SyntaxError as error:
            malformed.append(MalformedGraph(event, error.lineno or 0, said_by_parser(error)))
            continue
        keys += terms_of_text
        numbers += [event] * (len(terms_of_text) // 3)
    rows = terms.keys.add(keys).reshape(-1, 3)
    return np.column_stack([np.array(numbers, np.int64).reshape(-1, 1), rows]), malformed


def _triples_of(text: str, blank: _Blanks, wanted: set[bytes] | None) -> Iterator[bytes]:
    """The keys of the terms of a graph, three a triple; those of the wanted predicates alone, where these are given."""
    ox = oxigraph()
    for quad in ox.parse(text.encode("utf-8", "surrogatepass"), ox.RdfFormat.TURTLE):
        # Those that are not wanted are read as well: the numbers of blank nodes must not depend on what is wanted.
        subject, predicate, object = (key_from(term, blank) for term in (quad.subject, quad.predicate, quad.object))
        if wanted is None or predicate in wanted:
            yield subject
            yield predicate
            yield object


class _Blanks:
    """The labels of the blank nodes of an event: as they are written, or numbered where the parser made them up."""

    def __init__(self, names: EventNames, event: int) -> None:
        self.names, self.event = names, event
        self.anonymous: dict[str, int] = {}

    def __call__(self, label: str) -> str:
        if is_made_up(label):
            label = f"-{self.anonymous.setdefault(label, len(self.anonymous))}"
        return f"{label}.{self.names[self.event]}"
