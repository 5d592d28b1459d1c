"""Answers that were found: rows of a circuit, which become columns or events when somebody looks.

Rows are read from the tables of the circuit. Before it forgets them, `keep` fetches what they are made of; values stay
with the dictionary of their codes. A thread that looks waits until a step is over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial, wraps
from itertools import repeat
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

import numpy as np

from augury.core.arrays import Array, Integers, RowIds, Times
from augury.core.model import Event, content_id, event_of
from augury.engine.decoding import as_lists, hex_ids, values_of
from augury.engine.trace import StepCache, Traces, trace_of, traces_of
from augury.sinks import AnswerPart, ValueColumn, in_order
from augury.storage.dictionary import Dictionary, content_hashes
from augury.storage.table import END, START

if TYPE_CHECKING:
    from augury.engine.circuit import Circuit
    from augury.engine.operators.derive import Derived

_SINGLE = 8  # ids and traces that are made one by one, before all are made at once
_EVENTS = 4096  # events that are made at a time
P = ParamSpec("P")
R = TypeVar("R")


def _locked(method: Callable[Concatenate[AnswerRows, P], R]) -> Callable[Concatenate[AnswerRows, P], R]:
    """A method that reads what a step may change."""

    @wraps(method)
    def waiting(rows: AnswerRows, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with rows.derived.runtime.lock:
            return method(rows, *args, **kwargs)

    return waiting


class AnswerRows:
    """Some answers of one type."""

    __slots__ = (
        "__weakref__",
        "_circuit",
        "_codes",
        "_dictionary",
        "_ids",
        "_looks",
        "_times",
        "_traced",
        "_traces",
        "derived",
        "numbers",
    )

    def __init__(self, circuit: Circuit, derived: Derived, numbers: Integers) -> None:
        self._circuit: Circuit | None = circuit
        self.derived, self.numbers = derived, numbers
        self._times: tuple[Array, Array] | None = None
        self._codes: list[Array] = []
        self._dictionary: Dictionary | None = None
        self._ids: Array | None = None
        self._traces: Traces | None = None
        self._traced: tuple[int, list[tuple[str, ...]]] = (0, [])  # traces of some rows, one of which was asked for
        self._looks = 0

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def type(self) -> str:
        return self.derived.type

    @property
    def calendar(self) -> bool:
        """Whether times are those of the calendar."""
        return self.derived.runtime.clock.kind == "timestamp"

    # Columns

    @_locked
    def _read(self) -> tuple[Array, Array]:
        if self._times is None:
            table, rows = self.derived.out.table, self.numbers
            self._times = (table.data[START, rows], table.data[END, rows])
            self._codes = [table.data[field, rows] for field in table.codes]
            self._dictionary = table.dictionary
        return self._times

    @property
    def start(self) -> Times:
        return self._read()[0]

    @property
    def end(self) -> Times:
        return self._read()[1]

    @property
    def codes(self) -> list[Array]:
        """The codes of the arguments, in `dictionary`."""
        self._read()
        return self._codes

    @property
    def dictionary(self) -> Dictionary:
        self._read()
        assert self._dictionary is not None
        return self._dictionary

    @property
    def arity(self) -> int:
        return self.derived.arity

    @_locked
    def values(self, position: int, rows: RowIds) -> ValueColumn:
        return values_of(self.dictionary, self.codes[position][rows])

    @_locked
    def columns(self) -> list[ValueColumn]:
        return [values_of(self.dictionary, codes) for codes in self.codes]

    @_locked
    def ids(self, cache: StepCache[Array] | None = None) -> Array:
        """Ids as numbers."""
        if self._ids is None:
            visible = self.codes[: self.derived.arity - self.derived.runtime.plan.hidden]
            make = self.dictionary.hashes
            hashes = [make(c) if cache is None else cache.of((c,), partial(make, c)) for c in visible]
            self._ids = content_hashes(self.type, hashes, self.start, self.end)
        return self._ids

    @_locked
    def traces(self, lo: int, hi: int, cache: StepCache[Traces] | None = None) -> Traces:
        """The traces of rows from one up to another."""
        if self._traces is not None:
            return self._traces if (lo, hi) == (0, len(self)) else self._traces.part(lo, hi)
        assert self._circuit is not None
        return traces_of(self._circuit, self.derived, self.numbers[lo:hi], cache or StepCache())

    @_locked
    def keep(self) -> None:
        """Fetches all that will be asked for: the circuit is about to forget the rows."""
        self._read()
        if self._traces is None:
            self._traces = self.traces(0, len(self))
        self._circuit = None

    @_locked
    def arrange(self, order: Array) -> None:
        """Puts the rows into another order."""
        self.numbers = self.numbers[order]
        if self._times is not None:
            self._times = (self._times[0][order], self._times[1][order])
            self._codes = [codes[order] for codes in self._codes]
        self._ids = None if self._ids is None else self._ids[order]
        self._traces = None if self._traces is None else self._traces.some(order)
        self._traced = (0, [])

    def part(self, op: str | None, hashes: StepCache[Array], traces: StepCache[Traces]) -> AnswerPart:
        """The rows as they are written."""

        def lists(lo: int, hi: int) -> Any:
            traces.limit()
            return as_lists(self.traces(lo, hi, traces))

        return AnswerPart(self.type, self.columns(), self.start, self.end, hex_ids(self.ids(hashes)), lists, op)

    # Events

    @_locked
    def event(self, row: int) -> Event:
        decode = self.dictionary.decode
        args = tuple(decode(int(codes[row])) for codes in self.codes)
        return event_of(self.type, args, int(self.start[row]), int(self.end[row]), self, row)

    @_locked
    def events(self, lo: int, hi: int) -> list[Event]:
        """The events of rows from one up to another."""
        start, end = (times[lo:hi].tolist() for times in self._read())
        columns = [values_of(self.dictionary, codes[lo:hi]).list() for codes in self.codes]
        args: Any = zip(*columns, strict=True) if columns else repeat((), hi - lo)
        type = self.type
        return [event_of(type, a, s, e, self, i) for i, a, s, e in zip(range(lo, hi), args, start, end, strict=True)]

    @_locked
    def id_of(self, row: int) -> str:
        if self._ids is None and self._few():
            event = self.event(row)
            visible = event.args[: self.derived.arity - self.derived.runtime.plan.hidden]
            return content_id(event.type, visible, event.start, event.end)
        return f"{int(self.ids()[row]):016x}"

    @_locked
    def trace_of(self, row: int) -> tuple[str, ...]:
        if self._traces is None and self._few():
            assert self._circuit is not None
            return trace_of(self._circuit, self.derived, int(self.numbers[row]))
        lo, traces = self._traced
        if not lo <= row < lo + len(traces):
            lo = row - row % _EVENTS
            self._traced = lo, traces = lo, self.traces(lo, min(lo + _EVENTS, len(self))).tuples()
        return traces[row - lo]

    def _few(self) -> bool:
        """Whether few rows have been looked at so far, so that it is not worth while to make all."""
        self._looks += 1
        return self._looks <= _SINGLE


class FoundAnswers:
    """Answers of several types in the order of events: (end, start, type, arguments)."""

    __slots__ = ("_at", "_which", "parts")

    def __init__(self, parts: list[AnswerRows]) -> None:
        self.parts = parts
        self._which: Array | None = None
        self._at: Array | None = None

    def __len__(self) -> int:
        return sum(len(part) for part in self.parts)

    @property
    def which(self) -> Array:
        """The part of each answer; from then on each part is in order."""
        if self._which is None and not self.parts:
            self._which = self._at = np.empty(0, np.int64)
        elif self._which is None:
            with self.parts[0].derived.runtime.lock:
                if self._which is None:
                    which, orders = in_order(self.parts)
                    for part, order in zip(self.parts, orders, strict=True):
                        if order is not None:
                            part.arrange(order)
                    self._at = _places(which, len(self.parts))
                    self._which = which
        return self._which

    def of(self, type: str) -> FoundAnswers:
        """The answers of one type."""
        which = self.which
        chosen = [n for n, part in enumerate(self.parts) if part.type == type]
        found = FoundAnswers([self.parts[n] for n in chosen])
        place = np.full(len(self.parts), -1, np.int64)
        place[chosen] = np.arange(len(chosen))
        numbers = place[which]
        assert self._at is not None
        found._which, found._at = numbers[numbers >= 0], self._at[numbers >= 0]
        return found

    def event(self, index: int) -> Event:
        which = self.which
        assert self._at is not None
        return self.parts[int(which[index])].event(int(self._at[index]))

    def events(self) -> Iterator[Event]:
        """All events in order, some of them made at a time."""
        which = self.which
        if len(self.parts) == 1:
            part = self.parts[0]
            for lo in range(0, len(part), _EVENTS):
                yield from part.events(lo, min(lo + _EVENTS, len(part)))
            return
        done = [0] * len(self.parts)
        for lo in range(0, len(which), _EVENTS):
            some = which[lo : lo + _EVENTS]
            counts = np.bincount(some, minlength=len(self.parts)).tolist()
            made = [iter(part.events(at, at + n)) for part, at, n in zip(self.parts, done, counts, strict=True)]
            yield from (next(made[i]) for i in some.tolist())
            done = [at + n for at, n in zip(done, counts, strict=True)]


def _places(which: Array, parts: int) -> Array:
    """The row of each answer in its part."""
    if parts == 1:
        return np.arange(len(which))
    found = np.empty(len(which), np.int64)
    for number in range(parts):
        mine = np.flatnonzero(which == number)
        found[mine] = np.arange(len(mine))
    return found
