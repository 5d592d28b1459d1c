"""Rows on their way between tables, column by column."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from augury.core.arrays import Array, Mask, RowIds, Times
from augury.storage.dictionary import OPEN
from augury.storage.table import END, LEFT, RANK, RIGHT, START, Table


@dataclass(frozen=True)
class View:
    """A table read as a pattern: which field holds which variable, and the start and end of which label.

    `named` says where a label's own occurrence is found: in the row itself, or in what it was made of.
    """

    table: Table
    vars: Mapping[str, int] = field(default_factory=dict)
    labels: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    named: Mapping[str, int] = field(default_factory=dict)


@dataclass
class Frame:
    """Some rows. `left` and `right` are the rows that they were made of."""

    start: Times
    end: Times
    left: Array
    right: Array
    rank: Array
    vars: dict[str, Array]
    labels: dict[str, tuple[Array, Array]]

    def __len__(self) -> int:
        return len(self.start)

    def take(self, rows: RowIds) -> Frame:
        return Frame(
            self.start[rows],
            self.end[rows],
            self.left[rows],
            self.right[rows],
            self.rank[rows],
            {v: c[rows] for v, c in self.vars.items()},
            {name: (s[rows], e[rows]) for name, (s, e) in self.labels.items()},
        )

    def where(self, mask: Mask) -> Frame:
        return self if mask.all() else self.take(np.flatnonzero(mask))

    def cover(self, labels: Iterable[str]) -> tuple[Array, Array]:
        """From when to when each row and what is behind these labels last together."""
        start, end = self.start, self.end
        for label in labels:
            start, end = np.minimum(start, self.labels[label][0]), np.maximum(end, self.labels[label][1])
        return start, end

    def numbered(self) -> Frame:
        """The same rows, with their numbers as the rows on the right that they derive from."""
        return Frame(**{**self.__dict__, "right": np.arange(len(self), dtype=np.int64)})


def frame_of(view: View, rows: RowIds) -> Frame:
    """Rows of a table as a frame in which each is made of itself."""
    data = view.table.data
    return Frame(
        data[START, rows],
        data[END, rows],
        rows,
        np.full(len(rows), -1, np.int64),
        data[RANK, rows],
        {v: data[f, rows] for v, f in view.vars.items()},
        {name: (data[s, rows], data[e, rows]) for name, (s, e) in view.labels.items()},
    )


def joined_frames(parts: Sequence[Frame]) -> Frame:
    """The rows of several frames that have the same variables and labels."""
    parts = [p for p in parts if len(p)] or parts[:1]
    first = parts[0]

    def all_of(name: str) -> Array:
        return np.concatenate([getattr(p, name) for p in parts])

    return Frame(
        all_of("start"),
        all_of("end"),
        all_of("left"),
        all_of("right"),
        all_of("rank"),
        {v: np.concatenate([p.vars[v] for p in parts]) for v in first.vars},
        {
            n: (np.concatenate([p.labels[n][0] for p in parts]), np.concatenate([p.labels[n][1] for p in parts]))
            for n in first.labels
        },
    )


def store(frame: Frame, out: View) -> None:
    """Adds a frame to a table."""
    table, count = out.table, len(frame)
    if count == 0:
        return
    table.room(count)
    data, lo, hi = table.data, table.n, table.n + count
    data[START, lo:hi], data[END, lo:hi] = frame.start, frame.end
    data[LEFT, lo:hi], data[RIGHT, lo:hi], data[RANK, lo:hi] = frame.left, frame.right, frame.rank
    for name, target in out.vars.items():
        column = frame.vars.get(name)
        data[target, lo:hi] = OPEN if column is None else column
    for name, (s, e) in out.labels.items():
        times = frame.labels.get(name)
        data[s, lo:hi], data[e, lo:hi] = (0, 0) if times is None else times
    table.added(count)
