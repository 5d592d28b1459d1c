"""The versions of inputs by id: those of a whole step stay in columns until one of its ids is looked up."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from augury.algebra.plan import Predicate
from augury.core.arrays import Array
from augury.core.model import Event
from augury.core.versions import InputVersions
from augury.sources import Batch

Origin = tuple[Predicate, int]  # an input: the batch of its type, and its row there


@dataclass
class VersionColumns:
    """The versions of many ids that came in one step. The inputs of `ids[i]` are `batches` and `rows` from `firsts[i]` on."""

    ids: list[str]
    firsts: Array
    types: list[Predicate]
    type_of: Array
    rows: Array
    batches: Mapping[Predicate, Batch]
    last_ends: Array  # of each id

    @cached_property
    def index(self) -> dict[str, int]:
        return {id: i for i, id in enumerate(self.ids)}

    def get(self, id: str) -> InputVersions | None:
        i = self.index.get(id)
        if i is None:
            return None
        lo = int(self.firsts[i])
        hi = int(self.firsts[i + 1]) if i + 1 < len(self.firsts) else len(self.rows)
        events = [self._event(n) for n in range(lo, hi)]
        return InputVersions({event.version: event for event in events})

    def _event(self, n: int) -> Event:
        type = self.types[int(self.type_of[n])]
        return self.batches[type].event(type[0], int(self.rows[n]))


class VersionBook:
    """The versions of every id that has had one, or a revocation of one."""

    def __init__(self) -> None:
        self.single: dict[str, InputVersions] = {}
        self.columns: list[VersionColumns] = []
        self.forgotten: int | None = None  # ids whose inputs all ended by then are unknown

    def __contains__(self, id: str) -> bool:
        return id in self.single or (bool(self.columns) and self.get(id) is not None)

    def __bool__(self) -> bool:
        return bool(self.single or self.columns)

    def get(self, id: str) -> InputVersions | None:
        versions = self.single.get(id)
        if versions is None and self.columns:
            versions = next((some for columns in self.columns if (some := columns.get(id)) is not None), None)
            if versions is not None and self._is_forgotten(versions):
                return None
        return versions

    def _is_forgotten(self, versions: InputVersions) -> bool:
        last = versions.last_end
        return self.forgotten is not None and last is not None and last <= self.forgotten

    def items(self) -> Iterator[tuple[str, InputVersions]]:
        """All ids with their versions."""
        yield from self.single.items()
        for columns in self.columns:
            for id in columns.ids:
                if id not in self.single and (versions := self.get(id)) is not None:
                    yield id, versions

    def forgetting(self, settled: int) -> VersionBook:
        """The book without ids whose inputs all ended by a time."""
        book = VersionBook()
        book.forgotten = settled
        book.single = {id: versions for id, versions in self.single.items() if not book._is_forgotten(versions)}
        kept = [columns for columns in self.columns if int(columns.last_ends.max()) > settled]
        # What has been looked up is in `single`; forgotten there, it must not come back from the columns.
        book.columns = kept
        for id in self.single.keys() - book.single.keys():
            if any(id in columns.index for columns in kept):
                book.single[id] = self.single[id]
        return book


def columns_of(
    ids: list[str], codes: Array, type_of: Array, rows: Array, versions: Array, batches: Mapping[Predicate, Batch]
) -> VersionColumns:
    """The versions of inputs whose ids have codes: `ids[code]`."""
    order = np.lexsort((versions, codes))
    codes, type_of, rows = codes[order], type_of[order], rows[order]
    firsts = np.flatnonzero(np.r_[True, codes[1:] != codes[:-1]])
    types = list(batches)
    ends = np.empty(len(rows), np.int64)
    for number, type in enumerate(types):
        mine = type_of == number
        ends[mine] = batches[type].end[rows[mine]]
    last_ends = np.maximum.reduceat(ends, firsts)
    return VersionColumns([ids[c] for c in codes[firsts].tolist()], firsts, types, type_of, rows, batches, last_ends)
