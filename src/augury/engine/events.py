"""The input events of one type: what conditions need of them as codes, and all of them as they were given."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from augury.core.arrays import Array, RowIds, Times
from augury.core.clock import Timestamp
from augury.core.model import Event, Value, content_id, spelling_of
from augury.engine.operators.base import Operator, Part
from augury.engine.saved import check_numbers, is_array, require
from augury.engine.saved.forms import are_texts, is_column
from augury.planner.specs import InputSpec
from augury.storage.column import Coded, DeferredColumn, TextColumn, TimeColumn, resolved, some
from augury.storage.dictionary import NULL
from augury.storage.kernels.sets import first_equals, number_equals
from augury.storage.table import END, NONE, START, Table, grown, no_buckets
from augury.storage.unique import unique
from augury.storage.value_hashes import content_hashes, hashes_of_columns, mix_hashes, spellings_of

if TYPE_CHECKING:
    from augury.engine.runtime import Runtime

Columns = Sequence[Any]
_MANY = 200_000
_UNUSED = np.empty(0, np.int32)


class ArgumentChunk:
    """Arguments as they came: column by column. Events that another stage derived come with their traces."""

    __slots__ = ("_weighed", "columns", "count", "first", "ids", "traces")

    def __init__(self, first: int, count: int, columns: Columns, ids: Any = None, traces: Any = None) -> None:
        self.first, self.count, self.columns, self.ids, self.traces = first, count, columns, ids, traces
        self._weighed = (0, 0)

    @property
    def bytes(self) -> int:
        """Approximate bytes of its columns. Some of its texts are those of the dictionary, and are counted there, too."""
        events, size = self._weighed
        if events != self.count:
            columns = (*self.columns, *((self.ids,) if self.ids is not None else ()))
            if events > self.count:
                events = size = 0
            size += sum(column_bytes(column, events, self.count) for column in columns)
            self._weighed = (self.count, size)
        return size

    def extend(self, count: int, columns: Columns, ids: Any) -> bool:
        """Takes in more events, where they are few and given as lists."""
        if count > 64 or self.count > 4096 or (self.ids is None) != (ids is None) or self.traces is not None:
            return False
        if not all(isinstance(column, list) for column in (*self.columns, *columns)):
            return False
        # What stands beyond `count` is not there: where some columns are longer than others, they are cut when they grow.
        for mine, more in zip(self.columns, columns, strict=True):
            mine[self.count :] = more
        if ids is not None:
            self.ids[self.count :] = ids
        self.count += count
        return True

    def append(self, args: tuple[Value, ...], id: str | None) -> bool:
        """Takes in one more event, where events are given as lists."""
        count, columns = self.count, self.columns
        if count > 4096 or (self.ids is None) != (id is None) or self.traces is not None:
            return False
        for column in columns:
            if type(column) is not list:
                return False
        for column, value in zip(columns, args):  # noqa: B905 as many as the type has arguments
            column[count:] = (value,)
        if id is not None:
            self.ids[count:] = (id,)
        self.count = count + 1
        return True

    def cut(self, n: int) -> None:
        """Forgets the rows from `n` on."""
        if self.first + self.count > n:
            self.count = n - self.first
            self.columns = [column[: self.count] for column in self.columns]
            self.ids = None if self.ids is None else self.ids[: self.count]
            self.traces = None if self.traces is None else self.traces[: self.count]
        for column in (*self.columns, self.ids):
            if isinstance(column, list):
                del column[self.count :]

    def some(self, first: int, positions: Array) -> ArgumentChunk:
        """The rows at some places, as a chunk that begins elsewhere."""
        columns = [some(column, positions) for column in self.columns]
        ids, traces = (None if values is None else some(values, positions) for values in (self.ids, self.traces))
        return ArgumentChunk(first, len(positions), columns, ids, traces)

    def args(self, row: int) -> tuple[Value, ...]:
        position = row - self.first
        return tuple(
            [
                _plain(column[position]) if isinstance(column, np.ndarray) else column[position]
                for column in self.columns
            ]
        )

    def unnamed(self, positions: Array) -> Array:
        """Which of some places have no id of their own."""
        if self.ids is None:
            return np.ones(len(positions), bool)
        ids = self.ids
        return np.array([ids[i] is None for i in positions.tolist()], bool)


def _plain(value: Any) -> Value:
    """An element of an array: NaN is null, and -0.0 is 0.0."""
    number = value.item()
    if type(number) is float:
        return number + 0.0 if number == number else None
    return number  # type: ignore[no-any-return]


class Events(Operator):
    """The table of an input type. `used` are the arguments that some rule looks at; they are fields of the table."""

    is_input = holds_events = True

    def __init__(self, runtime: Runtime, spec: InputSpec) -> None:
        super().__init__(runtime, spec)
        type, arity = self.type, self.arity = spec.type, spec.arity
        self.used: tuple[int, ...] = ()
        # The type and the number of arguments that its id is made of.
        self.id_type, self.id_arity = runtime.plan.aliases.get((type, arity), (type, arity - runtime.plan.hidden))
        self.chunks: list[ArgumentChunk] = []
        self.fixed = NONE  # the numbers among equals of the first rows, fixed before some of their equals went
        self._last = (NONE, NONE)  # the rows whose ids were made last, and these
        self.made_ids: dict[int, str] = {}  # ids made from contents, of rows that were asked for
        self._forget_equals()

    def _forget_equals(self) -> None:
        self._firsts: Array = NONE
        self._buckets: Array = _UNUSED
        self._compared = 0
        # Numbers among equals of the first `_numbered` rows; hashes of contents, see `_count`.
        self._numbers: Array = NONE
        self._numbered = 0
        self._contents: Array = NONE
        self._counts: Array = NONE
        self._content_buckets: Array = _UNUSED
        self._hashed: Array = np.zeros(0, bool)

    def field(self, position: int) -> int:
        return self.out.table.codes[self.used.index(position)]

    def use(self, positions: Iterable[int]) -> None:
        """Makes fields of arguments that no rule has looked at so far."""
        for position in sorted(set(positions) - set(self.used)):
            table, context = self.out.table, self.runtime.context
            self.used = (*self.used, position)
            field = table.add_field(code=True)
            for row in range(table.n):
                table.data[field, row] = context.encode(self.args(row)[position])

    def add(self, start: Times, end: Times, columns: Columns, ids: object = None, traces: object = None) -> int:
        """Adds events column by column, and where they were derived elsewhere their traces; the first row of them."""
        table, count = self.out.table, len(start)
        self.runtime.lasting(start, end)
        first = table.n
        last = self.chunks[-1] if self.chunks else None
        if last is None or traces is not None or not last.extend(count, columns, ids):
            self.chunks.append(ArgumentChunk(first, count, columns, ids, traces))
        table.room(count)
        data, hi = table.data, first + count
        data[START, first:hi], data[END, first:hi] = start, end  # the other fields of an input are zero, as all room is
        for field, position in zip(table.codes, self.used, strict=True):
            data[field, first:hi] = self._encoded(columns[position])
        table.added(count)
        return first

    def add_event(self, event: Event) -> int:
        """Adds one event; its row."""
        table, runtime, args, start, end = self.out.table, self.runtime, event.args, event.start, event.end
        if runtime.begins is not None or end - start > runtime.longest_seen:
            runtime.lasting(np.array([start]), np.array([end]))
        if not self.chunks or not self.chunks[-1].append(args, event.id or None):
            ids = [event.id] if event.id else None
            self.chunks.append(ArgumentChunk(table.n, 1, [[value] for value in args], ids))
        fields = [0] * table.width
        fields[START], fields[END] = start, end
        encode = runtime.context.dictionary.encode  # plain values are no durations
        for field, position in zip(table.codes, self.used):  # noqa: B905 a field for each
            fields[field] = encode(args[position])
        return table.add_row(fields)

    def _encoded(self, column: Any) -> Any:
        context, column = self.runtime.context, resolved(column)
        if isinstance(column, np.ndarray) and column.dtype.kind in "iufb":
            return context.dictionary.encode_column(column)
        if isinstance(column, TextColumn):
            return context.dictionary.encode_texts(column.array)
        if isinstance(column, TimeColumn):
            codes = context.encode_times(column.us, "t" if column.kind is Timestamp else "d")
            return codes if column.null is None else np.where(column.null, NULL, codes)
        if isinstance(column, Coded):
            values, number = column.distinct()
            return context.encode_all(values)[number]
        return [context.encode(v) for v in column]

    def chunk(self, row: int) -> ArgumentChunk:
        return self.chunks[bisect_right(self.chunks, row, key=lambda c: c.first) - 1]

    def args(self, row: int) -> tuple[Value, ...]:
        return self.chunk(row).args(row)

    def given_id(self, row: int) -> str | None:
        """The id that an event came with."""
        chunk = self.chunk(row)
        name = None if chunk.ids is None else chunk.ids[row - chunk.first]
        return None if name is None else str(name)

    def id(self, row: int) -> str:
        name = self.given_id(row)
        if name is not None:
            return name
        made = self.made_ids.get(row)
        if made is None:
            data, args = self.out.table.data, self.args(row)[: self.id_arity]
            number = int(self.numbers(np.array([row]))[0])
            made = content_id(self.id_type, args, int(data[START, row]), int(data[END, row]), number, spelling_of(args))
            if len(self.made_ids) > _MANY:
                self.made_ids.clear()
            self.made_ids[row] = made
        return made

    def names(self, row: int) -> tuple[str, ...]:
        """The ids that an event adds to the traces of answers: its own, or the trace that it came with."""
        chunk = self.chunk(row)
        trace = None if chunk.traces is None else chunk.traces[row - chunk.first]
        return (self.id(row),) if trace is None else tuple(trace)

    # Many rows at once. Rows are in ascending order, each once.

    @property
    def plain(self) -> bool:
        """Whether no event came with an id or a trace."""
        return all(chunk.ids is None and chunk.traces is None for chunk in self.chunks)

    def pieces(self, rows: RowIds) -> Iterator[tuple[ArgumentChunk, Array]]:
        """The chunks of rows, and the places of the rows in each."""
        lo = 0
        while lo < len(rows):
            chunk = self.chunk(int(rows[lo]))
            hi = int(np.searchsorted(rows, chunk.first + chunk.count))
            yield chunk, rows[lo:hi] - chunk.first
            lo = hi

    def ids(self, rows: RowIds) -> list[str]:
        """The ids of rows, see `id`."""
        result: list[str] = []
        for chunk, positions in self.pieces(rows):
            texts: list[Any] = (
                [None] * len(positions) if chunk.ids is None else [chunk.ids[i] for i in positions.tolist()]
            )
            made = [i for i, id in enumerate(texts) if id is None] if chunk.ids is None or None in texts else []
            for i, id in zip(made, self.made(positions[made] + chunk.first).tolist(), strict=True):
                texts[i] = f"{id:016x}"
            result += texts
        return result

    def all_names(self, rows: RowIds) -> list[tuple[str, ...]]:
        """The ids that each row adds to a trace, see `names`."""
        result: list[tuple[str, ...]] = []
        for chunk, positions in self.pieces(rows):
            ids = self.ids(positions + chunk.first)
            traces: list[Any] = (
                [None] * len(positions) if chunk.traces is None else [chunk.traces[i] for i in positions.tolist()]
            )
            result += [(id,) if trace is None else tuple(trace) for id, trace in zip(ids, traces, strict=True)]
        return result

    def made(self, rows: RowIds) -> Array:
        """The ids that are made from contents, as numbers."""
        if not len(rows):
            return np.empty(0, np.uint64)
        last, last_hashes = self._last  # many rules may ask for the same events
        if len(last) == len(rows) and bool((last == rows).all()):
            return last_hashes
        hashes, spelt = self._hashes(rows)
        numbers = self.numbers(rows).view(np.uint64)
        more = (numbers > 0) | (spelt > 0)
        if more.any():
            hashes[more] = mix_hashes(mix_hashes(hashes[more], numbers[more]), spelt[more])
        self._last = (rows, hashes)
        return hashes

    def _hashes(self, rows: RowIds) -> tuple[Array, Array]:
        """The hashes of contents, and how they are written."""
        data = self.out.table.data
        columns = [self._column_hashes(position, rows) for position in range(self.id_arity)]
        hashes = content_hashes(self.id_type, [h for h, _ in columns], data[START, rows], data[END, rows])
        return hashes, spellings_of([s for _, s in columns], len(rows))

    def _column_hashes(self, position: int, rows: RowIds) -> tuple[Array, Array]:
        if position in self.used:
            codes, dictionary = self.out.table.data[self.field(position), rows], self.out.table.dictionary
            return dictionary.hashes(codes), dictionary.spellings(codes)
        return hashes_of_columns(self.columns_at(position, rows))

    def columns_at(self, position: int, rows: RowIds) -> list[Any]:
        """One argument of rows as it came, chunk by chunk."""
        return [some(chunk.columns[position], positions) for chunk, positions in self.pieces(rows)]

    def numbers(self, rows: RowIds) -> Array:
        """How many equal events without an id, written alike, came before each row."""
        self._compare()
        self._count()
        return self._numbers[rows]

    def _count(self) -> None:
        """Numbers the rows that have come since: each costs the same, however many equals it has.

        Rows that equal no other in time and in what conditions see have the number 0. Only of the others the whole
        content is hashed; `_counts` holds for the first row of each content the number that the next equal row gets.
        """
        table, lo = self.out.table, self._numbered
        if lo == table.n:
            return
        if len(self._numbers) < table.n:
            self._numbers = grown(self._numbers, len(table.alive), lo)
        if len(self._contents) and 2 * table.n > len(self._content_buckets):
            self._contents, lo = NONE, 0
        rows = np.arange(lo, table.n)
        self._numbers[rows] = np.maximum(self._fixed(rows), 0)
        self._numbered = table.n
        repeated = rows[(self._firsts[rows] != rows) | (self._numbers[rows] > 0)]
        if not len(repeated):
            return
        if not len(self._contents):
            self._content_buckets = no_buckets(2 * table.n)
            self._contents, self._counts = (np.zeros(len(table.alive), np.int64) for _ in range(2))
            self._hashed = np.zeros(len(table.alive), bool)
        elif len(self._contents) < table.n:
            self._contents, self._counts, self._hashed = (
                grown(array, len(table.alive), min(lo, len(array)), 0)
                for array in (self._contents, self._counts, self._hashed)
            )
        # The first row of a group has not been hashed while it was the only one.
        firsts = unique(self._firsts[repeated])
        rows = unique(np.concatenate([repeated, firsts[~self._hashed[firsts]]]))
        self._hashed[rows] = True
        rows = rows[np.concatenate([chunk.unnamed(positions) for chunk, positions in self.pieces(rows)])]
        if len(rows):
            keys = self._content_keys(rows).view(np.int64)
            number_equals(
                rows, keys, self._fixed(rows), self._contents, self._counts, self._content_buckets, self._numbers
            )

    def _content_keys(self, rows: RowIds) -> Array:
        """Hashes of all that makes events equal and written alike."""
        keys = mix_hashes(*self._hashes(rows))
        for position in range(self.id_arity, self.arity):  # the rows of one event are not among its equals
            keys = mix_hashes(keys, self._column_hashes(position, rows)[0])
        return keys

    def _fixed(self, rows: RowIds) -> Array:
        """The numbers that are fixed already; else -1."""
        if not len(self.fixed):
            return np.full(len(rows), -1, np.int64)
        fixed = rows < len(self.fixed)
        return np.where(fixed, self.fixed[np.where(fixed, rows, 0)], -1)

    def _compare(self) -> None:
        """Finds for each row the first one that is equal in time and in what conditions see of it."""
        table = self.out.table
        if self._compared == table.n:
            return
        if len(self._firsts) < table.n:
            self._firsts = grown(self._firsts, len(table.alive), self._compared)
        if not len(self._buckets):  # while each ends after the one before, none equals another
            ends = table.data[END, max(0, self._compared - 1) : table.n]
            if bool((ends[1:] > ends[:-1]).all()):
                self._firsts[self._compared : table.n] = np.arange(self._compared, table.n)
                self._compared = table.n
                return
        if 2 * table.n > len(self._buckets):
            self._buckets, self._compared = no_buckets(2 * table.n), 0
        first_equals(
            table.data,
            self._compared,
            table.n,
            np.array(table.codes, np.int64),
            table.dictionary.canon,
            self._buckets,
            self._firsts,
        )
        self._compared = table.n

    def step(self) -> None:
        pass

    def rebuild(self) -> None:
        table = self.out.table
        while self.chunks and self.chunks[-1].first >= table.n:
            self.chunks.pop()
        if self.chunks:
            self.chunks[-1].cut(table.n)
        self.made_ids.clear()
        self._last = (NONE, NONE)
        self._forget_equals()

    def keeping(self, rows: RowIds) -> None:
        numbers = self.numbers(rows)
        self.fixed = numbers if numbers.any() else NONE
        chunks: list[ArgumentChunk] = []
        first = 0
        for chunk, positions in self.pieces(rows):
            chunks.append(chunk.some(first, positions))
            first += len(positions)
        self.chunks = chunks

    def retain(self, keep: dict[int, Array], frontier: int | None, since: Mapping[int, int]) -> None:
        """A revoked event keeps its id and its number among equals."""
        table = self.out.table
        keep[id(table)] |= True if frontier is None else table.data[END, : table.n] > frontier

    def state(self, number: Mapping[int, int]) -> Any:
        chunks = [{"count": c.count, "columns": list(c.columns), "ids": c.ids, "traces": c.traces} for c in self.chunks]
        return {"chunks": chunks, "fixed": self.fixed}

    def fill(self, state: Any, operators: Sequence[Operator]) -> None:
        n, first, fixed = self.out.table.n, 0, state["fixed"]
        self.chunks = []
        for chunk in state["chunks"]:
            count, columns, ids, traces = chunk["count"], chunk["columns"], chunk["ids"], chunk["traces"]
            require(type(count) is int and 0 <= count <= n - first, "events that are not there")
            require(len(columns) == self.arity and all(is_column(c, count) for c in columns), "events that do not fit")
            require(ids is None or (are_texts(ids, null=True) and len(ids) == count), "ids that do not fit")
            require(traces is None or (isinstance(traces, list) and len(traces) == count), "traces that do not fit")
            require(
                not traces or all(not trace or are_texts(list(trace)) for trace in traces), "traces that do not fit"
            )
            self.chunks.append(ArgumentChunk(first, count, columns, ids, traces))
            first += count
        require(first == n, "events are missing")
        require(is_array(fixed, np.int64, len(fixed)) and len(fixed) <= n, "numbers that do not fit")
        check_numbers(fixed, 0, n + 1 if n > 1 << 32 else 1 << 32, "an impossible number")
        self.fixed = fixed

    @property
    def bytes(self) -> int:
        return super().bytes + sum(chunk.bytes for chunk in self.chunks)

    def about(self) -> dict[str, Any]:
        return {"type": self.type}

    def event(self, row: int) -> Event:
        data = self.out.table.data
        return Event(self.type, self.args(row), int(data[START, row]), int(data[END, row]), self.id(row))

    def part_rows(self, rows: RowIds) -> tuple[Table, Array] | None:
        return self.out.table, rows

    def parts(self, row: int) -> tuple[Part, ...]:
        return ((self.out.table, row),)


def column_bytes(column: object, lo: int, hi: int) -> int:
    """Bytes of the values of a column from one row up to another."""
    if isinstance(column, np.ndarray):
        return int(column.itemsize) * (hi - lo)
    if isinstance(column, DeferredColumn):
        return 8 * (hi - lo)
    if isinstance(column, TextColumn):
        return int(column.array.slice(lo, hi - lo).nbytes)
    if isinstance(column, TimeColumn):
        return 8 * (hi - lo)
    if isinstance(column, Coded):
        texts = column_bytes(column.values, 0, len(column.values)) if lo == 0 else 0
        return int(column.index.itemsize) * (hi - lo) + texts
    if isinstance(column, list | tuple):
        return sum(8 + (0 if value is None else value.__sizeof__()) for value in column[lo:hi])
    return int(getattr(column, "nbytes", 16 * (hi - lo)))
