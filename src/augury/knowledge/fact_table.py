"""Many facts of one static predicate, column by column."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from augury.core.model import MAX_INT, MIN_INT, Fact, Value
from augury.storage.column import Column, column_of, values_of

ALWAYS, EVER = MIN_INT, MAX_INT  # the bounds of a validity that has none


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


def tables_of(facts: Iterable[Fact]) -> list[FactTable]:
    """Single facts as tables, one a predicate."""
    groups: dict[tuple[str, int], list[Fact]] = {}
    for fact in facts:
        groups.setdefault((fact.name, len(fact.args)), []).append(fact)
    fact_tables: list[FactTable] = []
    for (name, arity), rows in groups.items():
        timed = any(f.since is not None or f.until is not None for f in rows)
        since = np.array([ALWAYS if f.since is None else f.since for f in rows], np.int64) if timed else None
        until = np.array([EVER if f.until is None else f.until for f in rows], np.int64) if timed else None
        columns = tuple(column_of([f.args[i] for f in rows]) for i in range(arity))
        fact_tables.append(FactTable(name, columns, len(rows), since, until))
    return fact_tables
