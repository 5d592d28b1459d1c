"""The input events of one type: what conditions need of them as codes, and all of them as they were given."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from augury.engine import kernels as k
from augury.engine.frame import View
from augury.engine.kernels import Array
from augury.engine.operators.base import Operator, Part
from augury.engine.table import END, FIELDS, START, Links, Table, grown, no_buckets
from augury.model import Event, Value, content_id

if TYPE_CHECKING:
    from augury.engine.circuit import Circuit

Columns = Sequence[Any]
_MANY = 200_000


class Chunk:
    """Arguments as they came: column by column."""

    __slots__ = ("columns", "count", "first", "ids")

    def __init__(self, first: int, count: int, columns: Columns, ids: Any = None) -> None:
        self.first, self.count, self.columns, self.ids = first, count, columns, ids

    def extend(self, count: int, columns: Columns, ids: Any) -> bool:
        """Takes in more events, where they are few and given as lists."""
        if count > 64 or self.count > 4096 or (self.ids is None) != (ids is None):
            return False
        if not all(isinstance(column, list) for column in (*self.columns, *columns)):
            return False
        for mine, more in zip(self.columns, columns, strict=True):
            mine += more
        if ids is not None:
            self.ids += ids
        self.count += count
        return True

    def name(self, row: int, id: str) -> None:
        if self.ids is None:
            self.ids = [None] * self.count
        elif not isinstance(self.ids, list):
            self.ids = list(self.ids)
        self.ids[row - self.first] = id

    def cut(self, n: int) -> None:
        """Forgets the rows from `n` on."""
        if self.first + self.count > n:
            self.count = n - self.first
            self.columns = [column[: self.count] for column in self.columns]
            self.ids = None if self.ids is None else self.ids[: self.count]

    def args(self, row: int) -> tuple[Value, ...]:
        at = row - self.first
        return tuple([column[at] if type(column) is list else _plain(column[at]) for column in self.columns])


def _plain(value: Any) -> Value:
    """An element of an array: NaN is null, and -0.0 is 0.0."""
    found = value.item()
    if type(found) is float:
        return found + 0.0 if found == found else None
    return found  # type: ignore[no-any-return]


class Events(Operator):
    """The table of an input type. `used` are the arguments that some rule looks at; they are fields of the table."""

    kind = "input"

    def __init__(self, circuit: Circuit, type: str, arity: int, used: tuple[int, ...]) -> None:
        self.type, self.arity, self.used = type, arity, used
        table = Table(len(used), circuit.words)
        self.chunks: list[Chunk] = []
        self.numbered = 0
        self.numbers = np.zeros(0, np.int64)
        self.made_ids: dict[int, str] = {}  # ids made from contents, of rows that were asked for
        self._buckets = no_buckets(0)
        self._counts = np.zeros(0, np.int64)
        super().__init__(circuit, (), View(table), "")

    def make_links(self) -> list[Links | None]:
        return []

    def field(self, position: int) -> int:
        return self.out.table.codes[self.used.index(position)]

    def use(self, positions: Iterable[int]) -> None:
        """Makes fields of arguments that no rule has looked at so far."""
        for position in sorted(set(positions) - set(self.used)):
            table, context = self.out.table, self.circuit.context
            self.used = (*self.used, position)
            at = table.add_field(code=True)
            for row in range(table.n):
                table.data[at, row] = context.encode(self.args(row)[position])

    def add(self, start: Array, end: Array, columns: Columns, ids: Any = None) -> int:
        """Adds events column by column; the first row of them."""
        table, count = self.out.table, len(start)
        first = table.n
        last = self.chunks[-1] if self.chunks else None
        if last is None or not last.extend(count, columns, ids):
            self.chunks.append(Chunk(first, count, columns, ids))
        table.room(count)
        data, hi = table.data, first + count
        data[START, first:hi], data[END, first:hi] = start, end
        data[2:FIELDS, first:hi] = 0
        for at, position in zip(table.codes, self.used, strict=True):
            column = columns[position]
            words = self.circuit.context
            data[at, first:hi] = (
                words.dictionary.encode_column(column)
                if isinstance(column, np.ndarray) and column.dtype.kind in "iufb"
                else [words.encode(v) for v in column]
            )
        table.added(count)
        return first

    def chunk(self, row: int) -> Chunk:
        return self.chunks[bisect_right(self.chunks, row, key=lambda c: c.first) - 1]

    def args(self, row: int) -> tuple[Value, ...]:
        return self.chunk(row).args(row)

    def given_id(self, row: int) -> str | None:
        """The id that an event came with."""
        chunk = self.chunk(row)
        found = None if chunk.ids is None else chunk.ids[row - chunk.first]
        return None if found is None else str(found)

    def id(self, row: int) -> str:
        given = self.given_id(row)
        if given is not None:
            return given
        found = self.made_ids.get(row)
        if found is None:
            data, args = self.out.table.data, self.args(row)
            number: int | str = self.number(row, args)
            if any(type(a) is float and a.is_integer() for a in args):
                number = f"{number} {args!r}"
            found = content_id(self.type, args, int(data[START, row]), int(data[END, row]), number)
            if len(self.made_ids) > _MANY:
                self.made_ids.clear()
            self.made_ids[row] = found
        return found

    def number(self, row: int, args: tuple[Value, ...]) -> int:
        """How many equal events without an id came before."""
        self._number_all()
        if self.numbers[row] == 0:
            return 0
        data, written = self.out.table.data, repr(args)
        alike = np.flatnonzero((data[:2, :row] == data[:2, row : row + 1]).all(axis=0))
        return sum(self.given_id(r) is None and repr(self.args(r)) == written for r in alike.tolist())

    def _number_all(self) -> None:
        """Numbers the rows among those that are equal in time and in what conditions see of them."""
        table = self.out.table
        if self.numbered == table.n:
            return
        if len(self.numbers) < table.n:
            size = len(table.alive)
            self.numbers, self._counts = (grown(a, size, self.numbered, 0) for a in (self.numbers, self._counts))
        if 2 * table.n > len(self._buckets):
            self._buckets, self.numbered = no_buckets(2 * table.n), 0
            self._counts[:] = 0
        k.number_equals(
            table.data,
            self.numbered,
            table.n,
            np.array(table.codes, np.int64),
            table.dictionary.canon,
            self._buckets,
            self._counts,
            self.numbers,
        )
        self.numbered = table.n

    def step(self) -> None:
        pass

    def rebuild(self) -> None:
        table = self.out.table
        while self.chunks and self.chunks[-1].first >= table.n:
            self.chunks.pop()
        if self.chunks:
            self.chunks[-1].cut(table.n)
        self.numbered, self._buckets = 0, no_buckets(0)
        self.made_ids.clear()
        self.numbers = self._counts = np.zeros(0, np.int64)

    def keep(self, rows: Array) -> None:
        """What was given, for the rows that a compaction keeps."""
        self._number_all()
        for row in rows[
            self.numbers[rows] > 0
        ].tolist():  # its number among equals is told once, before some of them go
            if self.given_id(row) is None:
                self.chunk(row).name(row, self.id(row))
        chunks: list[Chunk] = []
        first = 0
        for chunk in self.chunks:
            lo, hi = np.searchsorted(rows, [chunk.first, chunk.first + chunk.count])
            at = rows[lo:hi] - chunk.first
            if len(at):
                columns = [_some(column, at) for column in chunk.columns]
                chunks.append(Chunk(first, len(at), columns, None if chunk.ids is None else _some(chunk.ids, at)))
                first += len(at)
        self.chunks = chunks

    def event(self, row: int) -> Event:
        data = self.out.table.data
        return Event(self.type, self.args(row), int(data[START, row]), int(data[END, row]), self.id(row))

    def parts(self, row: int) -> tuple[Part, ...]:
        return ((self.out.table, row),)


def _some(column: Any, at: Array) -> Any:
    return column[at] if isinstance(column, np.ndarray) else [column[i] for i in at.tolist()]
