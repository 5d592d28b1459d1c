"""Many facts of one static predicate, column by column."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from augury.model import MAX_INT, MIN_INT, Fact, Value

ALWAYS, EVER = MIN_INT, MAX_INT  # the bounds of a validity that has none


@dataclass(frozen=True)
class Distinct:
    """A column of few values among many rows: `values[codes[i]]` is what row `i` has."""

    codes: Any  # an array of integers
    values: Sequence[Value]

    def __len__(self) -> int:
        return len(self.codes)


# Integers, floats (NaN is null) or booleans as an array; anything else as `Distinct`.
Column = Any


@dataclass(frozen=True)
class FactTable:
    """Facts `name(…)`, one a row, valid from `since` up to, not including, `until`."""

    name: str
    columns: tuple[Column, ...]
    length: int
    since: Any = None  # int64, ALWAYS where there is no bound; None where no row has one
    until: Any = None  # int64, EVER where there is no bound

    @property
    def arity(self) -> int:
        return len(self.columns)

    @property
    def timed(self) -> bool:
        return self.since is not None or self.until is not None

    def __len__(self) -> int:
        return self.length

    def __iter__(self) -> Iterator[Fact]:
        rows: Iterable[tuple[Value, ...]] = (
            zip(*(values_of(c) for c in self.columns), strict=True) if self.columns else ((),) * self.length
        )
        if not self.timed:
            for args in rows:
                yield Fact(self.name, args)
            return
        for i, args in enumerate(rows):
            since = None if self.since is None or self.since[i] == ALWAYS else int(self.since[i])
            until = None if self.until is None or self.until[i] == EVER else int(self.until[i])
            yield Fact(self.name, args, since, until)


def values_of(column: Column) -> Iterator[Value]:
    """The values of a column, one a row."""
    if isinstance(column, Distinct):
        values = column.values
        for code in column.codes.tolist():
            yield values[code]
    elif column.dtype.kind == "f":
        for value in column.tolist():
            yield None if value != value else value
    else:
        yield from column.tolist()


def column_of(values: Sequence[Value]) -> Column:
    """A column of values: an array where all are integers, or all are floats; else the different ones and their numbers."""
    kinds = set(map(type, values))
    if kinds == {bool} or (kinds == {int} and min(values) >= MIN_INT and max(values) <= MAX_INT):  # type: ignore[type-var,operator]
        return np.array(values, np.int64 if kinds == {int} else bool)
    if kinds and kinds <= {float, type(None)} and float in kinds:
        return np.array(values, np.float64)
    places: dict[Any, int] = {}
    codes = np.empty(len(values), np.int64)
    distinct: list[Value] = []
    for i, value in enumerate(values):
        key = value if type(value) is str else (type(value), repr(value))
        found = places.get(key)
        if found is None:
            found = places[key] = len(distinct)
            distinct.append(value)
        codes[i] = found
    return Distinct(codes, distinct)


def distinct_of(column: Column) -> Distinct:
    """A column as its different values and their numbers."""
    if isinstance(column, Distinct):
        return column
    values, codes = np.unique(column, return_inverse=True)
    return Distinct(codes, list(values_of(values)))


def spread(codes: Any, values: Sequence[Value]) -> Column:
    """The column where row `i` has `values[codes[i]]`; equal values become one."""
    column = column_of(values)
    return Distinct(column.codes[codes], column.values) if isinstance(column, Distinct) else column[codes]


def tables_of(facts: Iterable[Fact]) -> list[FactTable]:
    """Single facts as tables, one a predicate."""
    groups: dict[tuple[str, int], list[Fact]] = {}
    for fact in facts:
        groups.setdefault((fact.name, len(fact.args)), []).append(fact)
    found: list[FactTable] = []
    for (name, arity), rows in groups.items():
        timed = any(f.since is not None or f.until is not None for f in rows)
        since = np.array([ALWAYS if f.since is None else f.since for f in rows], np.int64) if timed else None
        until = np.array([EVER if f.until is None else f.until for f in rows], np.int64) if timed else None
        columns = tuple(column_of([f.args[i] for f in rows]) for i in range(arity))
        found.append(FactTable(name, columns, len(rows), since, until))
    return found
