"""Which id names which input event, and which ids are revoked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, compress, repeat

import numpy as np

from augury.algebra.plan import Plan, Predicate
from augury.core.arrays import Array, Mask, RowIds
from augury.core.model import Event, OrderKey
from augury.core.versions import InputVersions
from augury.engine.circuit import Circuit
from augury.engine.events import Events
from augury.engine.version_book import VersionBook, VersionColumns

FEW = 64  # ids that are noted at once
InputRow = tuple[Events, int]  # an input event: its table, and its row there
CopyKey = tuple[object, ...]  # identifies the rows of one event: their type, and the arguments that are not its own


@dataclass(frozen=True)
class NamedRows:
    """Many rows that came in one step, with their ids."""

    events: Events
    rows: RowIds
    ids: Sequence[str | None]
    step: int

    def by_id(self) -> dict[str, InputRow]:
        """The first row of each id."""
        rows = zip(repeat(self.events), reversed(self.rows.tolist()))
        result = dict(zip(reversed(self.ids), rows, strict=False))
        result.pop(None, None)
        return result  # type: ignore[return-value]

    def moved(self, moved: Mapping[int, Array]) -> NamedRows:
        """The rows that are left after a compaction, with their new numbers."""
        rows = moved[id(self.events.out.table)][self.rows]
        kept = rows >= 0
        return replace(self, rows=rows[kept], ids=list(compress(self.ids, kept.tolist())))


class InputIds:
    """The ids of the inputs of a session. What a step changes is written down, so that `undo` can restore it."""

    def __init__(self, circuit: Circuit, plan: Plan) -> None:
        self.circuit, self.plan = circuit, plan
        self._by_id: dict[str, InputRow] = {}
        self._waiting: list[NamedRows] = []  # rows whose ids are not in it yet
        self._waiting_ids: set[str | None] = set()
        self._step = 0
        # An event has several rows where it is in several slices of time, or comes with what facts say of it.
        self.copied = bool(plan.hidden or plan.aliases)
        self.copies: dict[str, dict[CopyKey, InputRow]] = {}
        self.tombstones: set[str] = set()
        self.versions = VersionBook()
        self.unnamed = False  # whether some events have no id of their own
        self.looked_up: dict[int, int] = {}  # by table, how many rows without an id of their own are in `by_id`
        self.begin()

    # Looking up

    @property
    def by_id(self) -> dict[str, InputRow]:
        """The rows of ids. Those of many events are put in when one is first looked up."""
        for waiting in self._waiting:
            new = waiting.by_id()
            for id in new.keys() & self._by_id.keys():
                del new[id]
            if waiting.step == self._step:
                self._new += new
            self._by_id.update(new)
        if self._waiting:
            self._waiting, self._waiting_ids = [], set()
        return self._by_id

    @by_id.setter
    def by_id(self, rows: dict[str, InputRow]) -> None:
        self._by_id, self._waiting, self._waiting_ids = rows, [], set()

    def held(self, ids: Sequence[str]) -> Mask:
        """Which of some ids name an event."""
        result = np.zeros(len(ids), bool)
        for collection in filter(None, (self._by_id, self._waiting_ids)):
            result |= np.fromiter(map(collection.__contains__, ids), bool, len(ids))
        return result

    def find(self, id: str) -> InputRow | None:
        """The event that an id names. Ids that are made from contents are computed when one is first looked up."""
        row = self.by_id.get(id)
        if row is None and self.unnamed and is_content_id(id):
            self._look_up()
            row = self.by_id.get(id)
        return row

    def _look_up(self) -> None:
        for events in self.circuit.inputs.values():
            table = events.out.table
            for row in range(self.looked_up.get(id(events), 0), table.n):
                if events.given_id(row) is None:
                    self.note(events.id(row), (events, row))
            self.looked_up[id(events)] = table.n

    def rows(self, id: str) -> Iterable[InputRow]:
        """All rows of the event that an id names."""
        return self.copies[id].values() if self.copied else (self.by_id[id],)

    def own_type(self, type: Predicate) -> Predicate:
        """The type of events as they came: without what facts say of them, and without their slice."""
        return self.plan.aliases.get(type, (type[0], type[1] - self.plan.hidden))

    def copy_key(self, type: Predicate, args: Sequence[object]) -> CopyKey:
        return (type[0], *args[self.own_type(type)[1] :])

    def content(self, event: Event) -> OrderKey:
        """The content of an event, whichever of its rows it was read from."""
        if not self.copied:
            return event.content
        name, arity = self.own_type((event.type, len(event.args)))
        return replace(event, type=name, args=event.args[:arity]).content

    # Changes of a step

    def begin(self) -> None:
        """A step begins."""
        self._step += 1
        self._had_columns = len(self.versions.columns)
        self._new: list[str] = []
        self._buried: list[str] = []
        self._withdrawn: list[tuple[str, InputRow, dict[CopyKey, InputRow] | None]] = []
        self._had_versions: dict[str, InputVersions | None] = {}
        self._had_unnamed = self.unnamed

    def note(self, id: str, row: InputRow) -> None:
        """An id names an event."""
        self.by_id.setdefault(id, row)
        if self.copied:
            events, number = row
            key = self.copy_key((events.type, events.arity), events.args(number))
            self.copies.setdefault(id, {})[key] = row

    def add(self, events: Events, first: int, ids: Sequence[str | None] | None) -> None:
        """Events have come, from a row on; `ids` are their own."""
        if ids is None:
            self.unnamed = True
            return
        if len(ids) >= FEW and not self.copied:
            self.unnamed = self.unnamed or None in ids
            self._waiting.append(NamedRows(events, np.arange(first, first + len(ids)), ids, self._step))
            self._waiting_ids.update(ids)
            return
        for row, id in enumerate(ids, first):
            if id is None:
                self.unnamed = True
                continue
            if id not in self.by_id:
                self._new.append(id)
            self.note(id, (events, row))

    def bury(self, ids: Sequence[str]) -> None:
        """Ids are revoked that were not before."""
        self._buried += ids
        self.tombstones.update(ids)

    def keep_versions(self, versions: Mapping[str, InputVersions], columns: VersionColumns | None) -> None:
        """The versions of some ids as they are from now on, and those of many new ids."""
        single = self.versions.single
        for id, now in versions.items():
            self._had_versions.setdefault(id, single.get(id))
            single[id] = now
        if columns is not None:
            self.versions.columns.append(columns)

    def withdraw(self, ids: Iterable[str]) -> None:
        """Derived inputs are withdrawn: they may come again."""
        for id in ids:
            row = self.by_id.get(id)
            if row is not None:
                self._withdrawn.append((id, row, self.copies.get(id)))
                self._forget(id)

    def _forget(self, id: str) -> None:
        self.by_id.pop(id, None)
        self.copies.pop(id, None)

    def undo(self) -> None:
        """Restores the ids of the beginning of the step. It may be broken off and called again."""
        self.unnamed = self._had_unnamed
        self._waiting = [rows for rows in self._waiting if rows.step != self._step]
        self._waiting_ids = set(chain.from_iterable(rows.ids for rows in self._waiting))
        del self.versions.columns[self._had_columns :]
        for name in self._new:
            self._forget(name)
        for name, row, copies in self._withdrawn:
            self.by_id[name] = row
            if copies is not None:
                self.copies[name] = copies
        for name, versions in self._had_versions.items():
            if versions is None:
                self.versions.single.pop(name, None)
            else:
                self.versions.single[name] = versions
        self.tombstones.difference_update(self._buried)
        self.looked_up.clear()
        counts = {id(e): e.out.table.n for e in self.circuit.inputs.values()}
        self._keep(lambda row: row if row[1] < counts.get(id(row[0]), 0) else None)

    def moved(self, moved: Mapping[int, Array], settled: int | None) -> None:
        """After a compaction: the ids of events that are gone are forgotten, and versions where all ended by `settled`."""

        def moved_row(row: InputRow) -> InputRow | None:
            number = int(moved[id(row[0].out.table)][row[1]])
            return (row[0], number) if number >= 0 else None

        before = self.by_id if self.tombstones or self.copied else {}
        if self.copied:
            self._keep(moved_row)
        else:
            self._by_id = _moved_rows(self._by_id, moved)
            left = (rows.moved(moved) for rows in self._waiting)
            self._waiting = [rows for rows in left if len(rows.ids)]
            self._waiting_ids = set(chain.from_iterable(rows.ids for rows in self._waiting))
        self.tombstones = {id for id in self.tombstones if id in self._by_id or id not in before}
        self.looked_up = {id(e): e.out.table.n for e in self.circuit.inputs.values() if id(e) in self.looked_up}
        if settled is not None and self.versions:
            self.versions = self.versions.forgetting(settled)

    def _keep(self, moved_row: Callable[[InputRow], InputRow | None]) -> None:
        """Keeps the ids of rows that are left, under their new rows."""
        by_id, copies = dict[str, InputRow](), dict[str, dict[CopyKey, InputRow]]()
        for id, row in self.by_id.items():
            if self.copied:
                left = {key: new for key, old in self.copies[id].items() if (new := moved_row(old)) is not None}
                if left:
                    copies[id] = left
                kept = next(iter(left.values()), None)
            else:
                kept = moved_row(row)
            if kept is not None:
                by_id[id] = kept
        self.by_id, self.copies = by_id, copies

    def revoked_rows(self, events: Events, rows: range) -> Iterator[int]:
        """Of new rows without an id of their own, those whose id was revoked before they came."""
        if self.tombstones:
            for row in rows:
                if events.given_id(row) is None and events.id(row) in self.tombstones:
                    yield row


def _moved_rows(rows: Mapping[str, InputRow], moved: Mapping[int, Array]) -> dict[str, InputRow]:
    """The rows of ids after a compaction, without those that are gone. `moved` has the new number of each row, by table."""
    if not rows:
        return {}
    events = [row[0] for row in rows.values()]
    owners = np.fromiter(map(id, events), np.int64, len(events))
    numbers = np.fromiter((row[1] for row in rows.values()), np.int64, len(events))
    for owner, each in {id(each): each for each in events}.items():
        mine = owners == owner
        numbers[mine] = moved[id(each.out.table)][numbers[mine]]
    kept = numbers >= 0
    left = zip(compress(events, kept), numbers[kept].tolist(), strict=True)
    return dict(zip(compress(rows, kept), left, strict=True))


def is_content_id(id: str) -> bool:
    """Whether an id looks like one that is made from a content."""
    return len(id) == 16 and all(c in "0123456789abcdef" for c in id)


def alive_rows(rows: Iterable[InputRow]) -> Iterator[tuple[Events, Array]]:
    """Rows that stand, by table, each once."""
    by_table: dict[int, tuple[Events, dict[int, None]]] = {}
    for events, row in rows:
        if events.out.table.alive[row]:
            by_table.setdefault(id(events), (events, {}))[1][row] = None
    for events, numbers in by_table.values():
        yield events, np.array(list(numbers), np.int64)
