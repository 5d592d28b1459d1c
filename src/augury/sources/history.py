"""A history: events by type, in columns, and revocations."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from sys import getsizeof
from typing import Any

import numpy as np

from augury.algebra.plan import Predicate
from augury.core.arrays import RowIds, Times
from augury.core.model import Event, HistoryItem, Revocation
from augury.core.standing import standing
from augury.sources.cells import MISSING
from augury.sources.python_cells import python_column
from augury.storage.column import Column, DeferredColumn, TextColumn, joined, some, values_of


@dataclass
class Batch:
    """Events of one type, column by column. `rows` are their places in the order of arrival, where that is known."""

    start: Times
    end: Times
    columns: list[Column]
    ids: Any = None  # a list of texts, None where an event has no id of its own
    dead: list[int] = field(default_factory=list)
    traces: Any = None  # of given events: the ids of the inputs behind each
    known: Any = None  # when they were learnt of, MISSING where that was not said
    versions: Any = None  # of their ids, where some are not 0
    rows: Any = None

    def __len__(self) -> int:
        return len(self.end)

    @property
    def nbytes(self) -> int:
        """About how much memory the events take, with their texts."""
        size = 8 * len(self) * (2 + sum(c is not None for c in (self.known, self.versions, self.rows)))
        size += sum(getsizeof(id) for id in self.ids if id is not None) if self.ids is not None else 0
        for column in self.columns:
            if isinstance(column, np.ndarray):
                size += column.nbytes
            elif isinstance(column, DeferredColumn):
                size += 16 * len(column)
            elif isinstance(column, TextColumn):
                size += column.array.nbytes
            else:
                size += column.index.nbytes + sum(map(getsizeof, column.values))
        return size

    def some(self, rows: RowIds) -> Batch:
        """Some of the events."""
        dead = set(self.dead)
        ids, traces = (None if c is None else [c[i] for i in rows.tolist()] for c in (self.ids, self.traces))
        known_times, versions, places = (None if c is None else c[rows] for c in (self.known, self.versions, self.rows))
        kept = [position for position, i in enumerate(rows.tolist()) if i in dead] if dead else []
        columns = [some(c, rows) for c in self.columns]
        return Batch(self.start[rows], self.end[rows], columns, ids, kept, traces, known_times, versions, places)

    def part(self, lo: int, hi: int) -> Batch:
        """The events from one up to another, as far as their admission is decided."""
        dead = [i - lo for i in self.dead if lo <= i < hi]
        ids, traces = (None if values is None else values[lo:hi] for values in (self.ids, self.traces))
        return Batch(self.start[lo:hi], self.end[lo:hi], [c[lo:hi] for c in self.columns], ids, dead, traces)

    def event(self, type: str, row: int) -> Event:
        """One event."""
        args = tuple(_element(column, row) for column in self.columns)
        id = "" if self.ids is None else self.ids[row] or ""
        known_times = None if self.known is None or self.known[row] == MISSING else int(self.known[row])
        version = 0 if self.versions is None else int(self.versions[row])
        return Event(type, args, int(self.start[row]), int(self.end[row]), id, known=known_times, version=version)

    def events(self, type: str) -> Iterable[Event]:
        """All of them."""
        columns: Iterable[Any] = (
            zip(*(values_of(c) for c in self.columns), strict=True) if self.columns else [()] * len(self)
        )
        ids = [""] * len(self) if self.ids is None else [i or "" for i in self.ids]
        known_times = (
            [None] * len(self) if self.known is None else [None if k == MISSING else k for k in self.known.tolist()]
        )
        versions = [0] * len(self) if self.versions is None else self.versions.tolist()
        for args, start, end, id, since, version in zip(
            columns, self.start.tolist(), self.end.tolist(), ids, known_times, versions, strict=True
        ):
            yield Event(type, args, start, end, id, known=since, version=version)


def _element(column: Column, row: int) -> Any:
    value = column[row]
    if isinstance(value, np.generic):
        plain = value.item()
        return None if plain != plain else plain + 0.0 if isinstance(plain, float) else plain
    return value


@dataclass
class History:
    """Events by type, revocations with their places in the order of arrival, and events of unknown types.

    Where `ordered`, the order of arrival is known; tables by type are pushed in the order of time.
    """

    batches: dict[Predicate, Batch] = field(default_factory=dict)
    revoked: list[tuple[int, Revocation]] = field(default_factory=list)
    length: int = 0
    ordered: bool = True
    unknown: dict[str, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return self.length

    @property
    def nbytes(self) -> int:
        """About how much memory the events take."""
        return sum(batch.nbytes for batch in self.batches.values())

    @property
    def types(self) -> set[str]:
        return {name for name, _ in self.batches}

    def taken_back(self) -> list[Event]:
        """The events that are revoked, or whose place another version has taken."""
        items = self.items()
        stand = {id(event) for event in standing(items).events}
        named = {item.id for item in items if isinstance(item, Revocation) or item.version}
        return [item for item in items if isinstance(item, Event) and item.id in named and id(item) not in stand]

    @property
    def has_versions(self) -> bool:
        return any(batch.versions is not None for batch in self.batches.values())

    def items(self) -> list[HistoryItem]:
        """Events and revocations one by one, in the order of arrival."""
        result: list[tuple[int, HistoryItem]] = list(self.revoked)
        for (name, _), batch in self.batches.items():
            rows = range(len(batch)) if batch.rows is None else batch.rows.tolist()
            result += zip(rows, batch.events(name), strict=True)
        if self.ordered:
            result.sort(key=lambda pair: pair[0])
        return [item for _, item in result]

    @staticmethod
    def of(items: Iterable[HistoryItem], rows: Iterable[int] | None = None) -> History:
        """Single events and revocations by columns. `rows` are their places, where they do not follow one another."""
        groups: dict[Predicate, list[tuple[int, Event]]] = {}
        history = History()
        places = iter(rows) if rows is not None else None
        row = -1
        for item in items:
            row = next(places) if places is not None else row + 1
            if isinstance(item, Revocation):
                history.revoked.append((row, item))
            else:
                groups.setdefault((item.type, len(item.args)), []).append((row, item))
            history.length += 1
        for type, pairs in groups.items():
            history.batches[type] = _batch([e for _, e in pairs], np.array([n for n, _ in pairs], np.int64))
        return history

    @staticmethod
    def joined(parts: Iterable[History]) -> History:
        """Histories one after the other: the places of their rows are distinct already."""
        histories = list(parts)
        if len(histories) == 1:
            return histories[0]
        result = History(ordered=all(part.ordered for part in histories))
        batches: dict[Predicate, list[Batch]] = {}
        for part in histories:
            result.length += part.length
            result.revoked += part.revoked
            for name, count in part.unknown.items():
                result.unknown[name] = result.unknown.get(name, 0) + count
            for type, batch in part.batches.items():
                batches.setdefault(type, []).append(batch)
        result.batches = {type: concat_batches(some) for type, some in batches.items()}
        return result


def _batch(events: list[Event], rows: RowIds) -> Batch:
    columns = [python_column(values) for values in zip(*(e.args for e in events), strict=True)]
    times = np.array([(e.start, e.end) for e in events], np.int64)
    ids = [e.id or None for e in events] if any(e.id for e in events) else None
    known_times = None
    if any(e.known is not None for e in events):
        known_times = np.array([MISSING if e.known is None else e.known for e in events], np.int64)
    versions = np.array([e.version for e in events], np.int64) if any(e.version for e in events) else None
    return Batch(times[:, 0].copy(), times[:, 1].copy(), columns, ids, known=known_times, versions=versions, rows=rows)


def concat_batches(batches: list[Batch]) -> Batch:
    """Batches of one type, one after the other."""
    if len(batches) == 1:
        return batches[0]
    start, end = (np.concatenate([getattr(b, name) for b in batches]) for name in ("start", "end"))
    if all(b.start is b.end for b in batches):
        start = end
    ids = [i for b in batches for i in (b.ids or [None] * len(b))] if any(b.ids is not None for b in batches) else None
    known_times = None
    if any(b.known is not None for b in batches):
        known_times = np.concatenate([np.full(len(b), MISSING) if b.known is None else b.known for b in batches])
    versions = None
    if any(b.versions is not None for b in batches):
        versions = np.concatenate([np.zeros(len(b), np.int64) if b.versions is None else b.versions for b in batches])
    rows = None if any(b.rows is None for b in batches) else np.concatenate([b.rows for b in batches])
    columns = [joined([b.columns[i] for b in batches]) for i in range(len(batches[0].columns))]
    return Batch(start, end, columns, ids, known=known_times, versions=versions, rows=rows)
