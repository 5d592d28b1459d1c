"""Answers in the tables of a circuit, which become columns or events on access.

Before the circuit forgets the rows, `keep` fetches what they are made of; values stay with the dictionary of their codes.
A thread that looks waits until a step is over.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, wraps
from itertools import repeat
from typing import TYPE_CHECKING, Any, Concatenate, NamedTuple, ParamSpec, TypeVar

from augury.core.arrays import Array, Codes, Hashes, Integers, RowIds, Times
from augury.core.model import Event, content_id, event_of
from augury.core.parallel import in_threads
from augury.engine.decoding import as_lists, hex_ids, values_of
from augury.engine.trace import StepCache, Traces, trace_of, traces_of
from augury.sinks import AnswerPart, Op, ValueColumn
from augury.storage.dictionary import Dictionary
from augury.storage.table import END, START
from augury.storage.value_hashes import content_hashes

if TYPE_CHECKING:
    from augury.engine.circuit import Circuit
    from augury.engine.operators.derive import Derived

_SINGLE = 8  # ids and traces that are made one by one, before all are made at once
MANY_IDS = 1 << 14  # answers whose ids are worth a thread
_EVENTS = 4096  # traces that are made at a time for events
P = ParamSpec("P")
R = TypeVar("R")


def _locked(method: Callable[Concatenate[AnswerRows, P], R]) -> Callable[Concatenate[AnswerRows, P], R]:
    """A method that reads what a step may change."""

    @wraps(method)
    def waiting(rows: AnswerRows, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with rows.derived.runtime.lock:
            return method(rows, *args, **kwargs)

    return waiting


class TableRows(NamedTuple):
    """Rows as they are in their table: codes of the arguments, in `dictionary`."""

    start: Times
    end: Times
    codes: list[Codes]
    dictionary: Dictionary


class AnswerRows(AnswerPart):
    """Answers of one type: rows of the table of its events."""

    __slots__ = (
        "__weakref__", "_cache", "_circuit", "_columns", "_ids", "_looks", "_read_rows", "_traced", "_traces",
        "derived", "numbers", "op",
    )  # fmt: skip

    def __init__(self, circuit: Circuit, derived: Derived, numbers: Integers, op: Op | None = None) -> None:
        self._circuit: Circuit | None = circuit
        self.derived, self.numbers, self.op = derived, numbers, op
        self._looks = 0
        self._cache: StepCache[Any] | None = None  # what parts share that are written together
        self._forget()

    def _forget(self) -> None:
        self._read_rows: TableRows | None = None
        self._columns: list[ValueColumn] | None = None
        self._ids: Hashes | None = None
        self._traces: Traces | None = None
        self._traced: tuple[int, list[tuple[str, ...]]] = (0, [])  # traces of some rows, one of which was asked for

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def type(self) -> str:
        return self.derived.type

    @property
    def arity(self) -> int:
        return self.derived.arity

    @property
    def lock(self) -> Any:  # type: ignore[override]
        return self.derived.runtime.lock

    @property
    def calendar(self) -> bool:
        """Whether times are those of the calendar."""
        return self.derived.runtime.clock.kind == "timestamp"

    # Columns

    @_locked
    def read(self) -> TableRows:
        if self._read_rows is None:
            table, rows = self.derived.out.table, self.numbers
            data = table.data
            codes = [data[field, rows] for field in table.codes]
            self._read_rows = TableRows(data[START, rows], data[END, rows], codes, table.dictionary)
        return self._read_rows

    @property
    def start(self) -> Times:
        return self.read().start

    @property
    def end(self) -> Times:
        return self.read().end

    @_locked
    def values(self, position: int, rows: RowIds) -> ValueColumn:
        read = self.read()
        return values_of(read.dictionary, read.codes[position][rows])

    @property
    def columns(self) -> list[ValueColumn]:
        with self.lock:
            if self._columns is None:
                read = self.read()
                self._columns = [values_of(read.dictionary, codes) for codes in read.codes]
            return self._columns

    @_locked
    def ids(self) -> Hashes:
        """Ids as numbers."""
        if self._ids is None:
            start, end, codes, dictionary = self.read()
            hashes, cache = [], self._cache
            for column in codes[: self.derived.arity - self.derived.runtime.plan.hidden]:
                make = partial(dictionary.hashes, column)
                hashes.append(make() if cache is None else cache.of((column,), make, "hashes"))
            self._ids = content_hashes(self.type, hashes, start, end)
        return self._ids

    @_locked
    def traces(self, lo: int, hi: int) -> Traces:
        """The traces of rows from one up to another."""
        if self._traces is not None:
            return self._traces if (lo, hi) == (0, len(self)) else self._traces.part(lo, hi)
        assert self._circuit is not None
        cache = self._cache or StepCache()
        cache.limit()
        return traces_of(self._circuit, self.derived, self.numbers[lo:hi], cache)

    def texts_of_ids(self, lo: int, hi: int) -> Any:
        return hex_ids(self.ids()[lo:hi])

    def lists_of_traces(self, lo: int, hi: int) -> Any:
        return as_lists(self.traces(lo, hi))

    def share(self, parts: Sequence[AnswerPart]) -> None:
        if len(parts) < 2 or self._cache is not None:
            return
        circuits: dict[int, list[AnswerRows]] = {}  # each has codes of its own
        for part in parts:
            assert isinstance(part, AnswerRows)
            circuits.setdefault(id(part.derived.runtime), []).append(part)
        for rows in circuits.values():
            cache = StepCache[Any]()
            for part in rows:
                part._cache = cache
        if len(circuits) > 1 and sum(map(len, parts)) >= MANY_IDS:
            in_threads([partial(_make_ids, rows) for rows in circuits.values()], lambda: None)

    @_locked
    def keep(self) -> None:
        """Fetches all that will be asked for: the circuit is about to forget the rows."""
        self.read()
        if self._traces is None:
            self._traces = self.traces(0, len(self))
        self._circuit = None

    @_locked
    def arrange(self, order: Array) -> None:
        read, ids, traces = self._read_rows, self._ids, self._traces
        self._forget()
        self.numbers = self.numbers[order]
        if read is not None:
            codes = [column[order] for column in read.codes]
            self._read_rows = TableRows(read.start[order], read.end[order], codes, read.dictionary)
        self._ids = None if ids is None else ids[order]
        self._traces = None if traces is None else traces.some(order)

    # Events

    @_locked
    def event(self, row: int) -> Event:
        start, end, codes, dictionary = self.read()
        args = tuple([dictionary.decode(int(column[row])) for column in codes])
        return event_of(self.derived.type, args, int(start[row]), int(end[row]), self, row)

    @_locked
    def events(self, lo: int, hi: int) -> list[Event]:
        if hi - lo == 1:
            return [self.event(lo)]
        read = self.read()
        start, end = read.start[lo:hi].tolist(), read.end[lo:hi].tolist()
        columns = [values_of(read.dictionary, codes[lo:hi]).list() for codes in read.codes]
        args: Any = zip(*columns, strict=True) if columns else repeat((), hi - lo)
        type = self.type
        return [event_of(type, a, s, e, self, i) for i, a, s, e in zip(range(lo, hi), args, start, end, strict=True)]

    @_locked
    def id_of(self, row: int) -> str:
        if self._ids is None and self._few():
            event = self.event(row)
            shown = event.args[: self.derived.arity - self.derived.runtime.plan.hidden]
            return content_id(event.type, shown, event.start, event.end)
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


def _make_ids(parts: Sequence[AnswerRows]) -> None:
    for part in parts:
        part.ids()
