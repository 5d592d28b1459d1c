"""Columns of values: how events and facts travel from a file to the engine.

A column is an array of integers, of floats (NaN is null) or of booleans; anything else is `Coded`: its different values,
and which of them each row has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from itertools import chain
from threading import RLock
from typing import Any, TypeAlias

import numpy as np

from augury.core.arrays import Array, RowIds
from augury.core.clock import Duration, Timestamp
from augury.core.model import MAX_INT, MIN_INT, Value
from augury.storage.unique import unique_inverse

Column: TypeAlias = Any  # an array of int64, float64 or bool, Coded, or a list where there are few


class TextArray(Sequence[str]):
    """The texts of an array of Arrow, each of which becomes one of Python on access.

    Equal ones may be among them. `read` are all of them as Python texts, once they were made.
    """

    def __init__(self, array: Any, read: Any = None) -> None:
        self.array, self.read = array, read

    def __len__(self) -> int:
        return len(self.array)

    def __getitem__(self, rows: Any) -> Any:
        return self.array[rows].to_pylist() if isinstance(rows, slice) else self.array[rows].as_py()

    def __iter__(self) -> Iterator[str]:
        return iter(self.array.to_pylist())

    def __reduce__(self) -> Any:
        return TextArray, (self.array,)


class Coded:
    """A column that has each of its values once: row `i` is `values[index[i]]`, and null where the index is -1."""

    __slots__ = ("index", "values")

    def __init__(self, values: Sequence[Value], index: Array) -> None:
        self.values, self.index = values, index

    def __len__(self) -> int:
        return len(self.index)

    def __getitem__(self, rows: Any) -> Any:
        """The value of a row; of several rows a column."""
        result = self.index[rows]
        if isinstance(result, np.ndarray):
            return Coded(self.values, result)
        return self.values[result] if result >= 0 else None

    def __iter__(self) -> Iterator[Value]:
        values = list(self.values) if isinstance(self.values, TextArray) else self.values
        return (values[i] if i >= 0 else None for i in self.index.tolist())

    def distinct(self) -> tuple[list[Value], Array]:
        """The values that occur, null last, and which of them each row has."""
        numbers, inverse = distinct(np.where(self.index < 0, len(self.values), self.index), len(self.values) + 1)
        return [self.values[n] if n < len(self.values) else None for n in numbers.tolist()], inverse

    def __reduce__(self) -> Any:
        return Coded, (self.values, self.index)


class LazilyCoded(Coded):
    """A column of another form, whose values and numbers of them are made when somebody asks for these."""

    __slots__ = ("_coded",)

    def __init__(self) -> None:
        self._coded: tuple[list[Value], Array] | None = None

    def _encode(self) -> tuple[list[Value], Array]:
        raise NotImplementedError

    def _encoded(self) -> tuple[list[Value], Array]:
        if self._coded is None:
            self._coded = self._encode()
        return self._coded

    @property
    def values(self) -> list[Value]:  # type: ignore[override]
        return self._encoded()[0]

    @property
    def index(self) -> Array:  # type: ignore[override]
        return self._encoded()[1]


class TextColumn(LazilyCoded):
    """A column that is an Arrow array of texts, as they are or by a dictionary of Arrow.

    It has each text once when somebody asks for that.
    """

    __slots__ = ("array",)

    def __init__(self, array: Any) -> None:
        super().__init__()
        self.array = array

    def _encode(self) -> tuple[list[Value], Array]:
        coded = self.array if hasattr(self.array, "dictionary") else self.array.dictionary_encode()
        return coded.dictionary.to_pylist(), coded.indices.fill_null(-1).to_numpy().astype(np.int64)

    def __len__(self) -> int:
        return len(self.array)

    def __getitem__(self, rows: Any) -> Any:
        if isinstance(rows, slice):
            first, beyond, _ = rows.indices(len(self.array))
            return TextColumn(self.array.slice(first, max(0, beyond - first)))
        return TextColumn(self.array.take(rows)) if isinstance(rows, np.ndarray) else self.array[rows].as_py()

    def __iter__(self) -> Iterator[Value]:
        return iter(self.array.to_pylist())

    def __reduce__(self) -> Any:
        return TextColumn, (self.array,)


class TimeColumn(LazilyCoded):
    """A column of points or lengths of time in microseconds, some of which may be null."""

    __slots__ = ("kind", "null", "us")

    def __init__(self, us: Array, kind: type[Timestamp] | type[Duration], null: Array | None = None) -> None:
        super().__init__()
        self.us, self.kind, self.null = us, kind, null

    def _encode(self) -> tuple[list[Value], Array]:
        us, index = unique_inverse(self.us)
        return list(map(self.kind, us.tolist())), index if self.null is None else np.where(self.null, -1, index)

    def __len__(self) -> int:
        return len(self.us)

    def __getitem__(self, rows: Any) -> Any:
        us, null = self.us[rows], None if self.null is None else self.null[rows]
        if isinstance(us, np.ndarray):
            return TimeColumn(us, self.kind, null)
        return None if null else self.kind(int(us))

    def __iter__(self) -> Iterator[Value]:
        times: Iterator[Value] = map(self.kind, self.us.tolist())
        if self.null is None:
            return times
        return (None if null else time for time, null in zip(times, self.null.tolist(), strict=True))

    def __reduce__(self) -> Any:
        return TimeColumn, (self.us, self.kind, self.null)


class PackedColumn:
    """A column that is unpacked on access, by the thread that comes first. `lock` is that of the file."""

    def __init__(self, unpack: Callable[[], Column], lock: AbstractContextManager[object] | None = None) -> None:
        self._unpack: Callable[[], Column] | None = unpack
        self._column: Column = None
        self._lock = lock or RLock()

    def column(self) -> Column:
        if self._unpack is not None:
            with self._lock:
                if self._unpack is not None:
                    self._column = self._unpack()
                    self._unpack = None
        return self._column


class DeferredColumn(Coded):
    """Some rows of a packed column, one after the other: most columns of a file are those that no rule reads."""

    __slots__ = ("count", "first", "packed")

    def __init__(self, packed: PackedColumn, first: int, count: int) -> None:
        self.packed, self.first, self.count = packed, first, count

    def resolved(self) -> Column:
        """The rows as any other column."""
        column = self.packed.column()
        return column if self.count == len(column) else column[self.first : self.first + self.count]

    @property
    def values(self) -> Sequence[Value]:  # type: ignore[override]
        return coded(self.resolved()).values

    @property
    def index(self) -> Array:  # type: ignore[override]
        return coded(self.resolved()).index

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, rows: Any) -> Any:
        if isinstance(rows, slice):
            first, beyond, _ = rows.indices(self.count)
            return DeferredColumn(self.packed, self.first + first, max(0, beyond - first))
        column = self.packed.column()
        if isinstance(rows, np.ndarray):
            return column[rows + self.first]
        return next(values_of(column[self.first + rows : self.first + rows + 1]))

    def __iter__(self) -> Iterator[Value]:
        return values_of(self.resolved())

    def distinct(self) -> tuple[list[Value], Array]:
        return coded(self.resolved()).distinct()

    def __reduce__(self) -> Any:
        return resolved, (self.resolved(),)


def resolved(column: Column) -> Column:
    """A column that nothing has to be unpacked of."""
    return column.resolved() if isinstance(column, DeferredColumn) else column


def distinct(rows: RowIds, n: int) -> tuple[Array, Array]:
    """The different numbers among some below `n`, in ascending order, and the place of each one among them."""
    if n > 16 * len(rows) + 64:
        return unique_inverse(rows)
    position = np.zeros(n, np.int64)
    position[rows] = 1
    result = np.flatnonzero(position)
    position[result] = np.arange(len(result))
    return result, position[rows]


def column_of(values: Sequence[Value]) -> Column:
    """A column of values: an array where all are integers, or all are floats; else the different ones and their numbers."""
    kinds = set(map(type, values))
    if kinds == {bool} or (kinds == {int} and min(values) >= MIN_INT and max(values) <= MAX_INT):  # type: ignore[type-var,operator]
        return np.array(values, np.int64 if kinds == {int} else bool)
    if kinds and kinds <= {float, type(None)} and float in kinds:
        return np.array(values, np.float64)
    places: dict[Any, int] = {}
    if kinds <= {str, type(None)}:
        different: list[Any] = [v for v in dict.fromkeys(values) if v is not None]
        places = {None: -1, **dict(zip(different, range(len(different)), strict=True))}
        return Coded(different, np.fromiter(map(places.__getitem__, values), np.int64, len(values)))
    values_list: list[Value] = []
    index = []
    for value in values:
        key = value if type(value) is str else (type(value), repr(value))
        position = places.get(key)
        if position is None:
            position = places[key] = len(values_list)
            values_list.append(value)
        index.append(position)
    return Coded(values_list, np.array(index, np.int64))


def values_of(column: Column) -> Iterator[Value]:
    """The values of a column, one a row."""
    if isinstance(column, Coded | list):
        return iter(column)
    if column.dtype.kind == "f":
        return (None if value != value else value for value in column.tolist())
    return iter(column.tolist())


def coded(column: Column) -> Coded:
    """A column as its different values and their numbers."""
    if isinstance(column, Coded):
        return column
    values, index = unique_inverse(column)
    return Coded(list(values_of(values)), index)


def column_by_index(index: Array, values: Sequence[Value]) -> Column:
    """The column where row `i` has `values[index[i]]`, null where the index is -1; equal values become one."""
    if len(index) and int(index.min()) < 0:
        index, values = np.where(index < 0, len(values), index), [*values, None]
    column = column_of(values)
    return Coded(column.values, column.index[index]) if isinstance(column, Coded) else column[index]


def joined(columns: Sequence[Column]) -> Column:
    """Columns one after the other."""
    if len(columns) == 1:
        return columns[0]
    if any(isinstance(c, DeferredColumn) for c in columns):
        return _joined_deferred(columns)
    kinds = {c.dtype.kind if isinstance(c, np.ndarray) else "coded" for c in columns}
    if len(kinds) == 1 and kinds != {"coded"}:
        return np.concatenate(columns)
    if all(isinstance(c, TextColumn) for c in columns):
        return TextColumn(_joined_arrays([c.array for c in columns]))
    if all(isinstance(c, TimeColumn) for c in columns) and len({c.kind for c in columns}) == 1:
        nulls = [np.zeros(len(c), bool) if c.null is None else c.null for c in columns]
        null = np.concatenate(nulls) if any(c.null is not None for c in columns) else None
        return TimeColumn(np.concatenate([c.us for c in columns]), columns[0].kind, null)
    arrays = [c.values for c in columns if type(c) is Coded and isinstance(c.values, TextArray)]
    if len(arrays) == len(columns):
        return _joined_texts(columns, arrays)
    values: list[Value] = []
    places: dict[Any, int] = {}
    parts: list[Array] = []
    different = [coded(column) for column in columns]
    if all(set(map(type, column.values)) <= {str} for column in different):
        places = {
            text: number for number, text in enumerate(dict.fromkeys(chain.from_iterable(c.values for c in different)))
        }
        for column in different:
            positions = [*map(places.__getitem__, column.values), -1]  # an index of -1 finds the last one
            parts.append(np.array(positions, np.int64)[column.index])
        return Coded(list(places), np.concatenate(parts))
    for column in different:
        moved = [-1] * (len(column.values) + 1)  # an index of -1 finds the last one, which stays -1
        for i, value in enumerate(column.values):
            key = value if type(value) is str else (type(value), repr(value))
            position = places.get(key)
            if position is None:
                position = places[key] = len(values)
                values.append(value)
            moved[i] = position
        parts.append(np.array(moved, np.int64)[column.index])
    return Coded(values, np.concatenate(parts))


def _joined_deferred(columns: Sequence[Column]) -> Column:
    """Columns, some of which are packed, one after the other; parts of one column become one again."""
    if not all(isinstance(c, DeferredColumn) for c in columns):
        return joined([resolved(c) for c in columns])
    parts: list[DeferredColumn] = []
    for column in columns:
        last = parts[-1] if parts else None
        if last is not None and last.packed is column.packed and last.first + last.count == column.first:
            parts[-1] = DeferredColumn(last.packed, last.first, last.count + column.count)
        else:
            parts.append(column)
    if len(parts) == 1:
        return parts[0]
    return DeferredColumn(PackedColumn(lambda: joined([part.resolved() for part in parts])), 0, sum(map(len, parts)))


def _joined_arrays(arrays: Sequence[Any]) -> Any:
    """Arrays of texts as one. They may have dictionaries of their own, or none."""
    from pyarrow import chunked_array, concat_arrays, large_string

    with_dictionary = [hasattr(array, "dictionary") for array in arrays]
    if all(with_dictionary):
        joined_array = chunked_array(arrays).unify_dictionaries().combine_chunks()
        return concat_arrays(joined_array.chunks) if hasattr(joined_array, "chunks") else joined_array
    return concat_arrays([array.cast(large_string()) for array in arrays] if any(with_dictionary) else arrays)


def _joined_texts(columns: Sequence[Coded], arrays: Sequence[TextArray]) -> Coded:
    from pyarrow import concat_arrays, large_string

    before = np.cumsum([0, *map(len, arrays)])
    index = np.concatenate([column.index + n for column, n in zip(columns, before, strict=False)])
    read = (
        arrays[0].read.joined([array.read for array in arrays])
        if all(array.read is not None for array in arrays)
        else None
    )
    return Coded(TextArray(concat_arrays([array.array.cast(large_string()) for array in arrays]), read), index)


def some(column: Column, rows: RowIds) -> Column:
    """Some rows of a column, be it an array, coded or a list."""
    return [column[i] for i in rows.tolist()] if isinstance(column, list) else column[rows]
