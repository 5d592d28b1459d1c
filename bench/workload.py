"""What is given to a session, step by step, and how many answers must stand in the end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from bench.streams import KINDS, Ints, Stream

BATCH = 20_000

pa = import_module("pyarrow")  # which has no types to check

Tables: TypeAlias = Mapping[str, Any]  # Arrow tables by event type


@dataclass(frozen=True)
class Revoke:
    """Events to be taken back, by id."""

    ids: tuple[str, ...]


@dataclass(frozen=True)
class Workload:
    """A program and its input. `events` counts what is said, revocations included."""

    text: str
    steps: Sequence[Tables | Revoke]
    events: int
    expected: int
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def revises(self) -> bool:
        return any(isinstance(step, Revoke) for step in self.steps)


def tables(kind: Ints, names: Sequence[str], columns: Mapping[str, NDArray[Any]], batch: int = BATCH) -> list[Tables]:
    """Columns in the order of time as batches of tables, one for each type that occurs in the batch."""
    result: list[Tables] = []
    for low in range(0, len(kind), batch):
        part = kind[low : low + batch]
        chosen = {name: low + np.flatnonzero(part == number) for number, name in enumerate(names)}
        result.append(
            {
                name: pa.table({column: values[rows] for column, values in columns.items()})
                for name, rows in chosen.items()
                if len(rows)
            }
        )
    return result


def one(name: str, **values: int | float | str) -> Tables:
    """A single event as a table."""
    return {name: pa.table({column: [value] for column, value in values.items()})}


def stream_tables(stream: Stream, batch: int = BATCH) -> list[Tables]:
    """The batches of a stream. The column is called `key`: `id` would be the id of the event itself."""
    return tables(stream.kind, KINDS, {"time": stream.time, "key": stream.key, "x": stream.x, "y": stream.y}, batch)
