"""Admission of inputs: which events a step accepts and which rows it revokes, by id, revocation and lateness.

An id names one event for ever: an identical repeat is ignored, another event under the id is rejected. Where inputs have
versions, that is so for each version, and the greatest one stands. A revocation counts before and after its event. An event that ends at or before the frontier is late, and each accepted event moves the frontier
for those after it. Where no id decides, whole columns are admitted at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from operator import itemgetter

import numpy as np

from augury.algebra.plan import Predicate
from augury.core.arrays import Array, Mask
from augury.core.bounds import TIME_LIMIT
from augury.core.errors import DataError
from augury.core.model import Event, HistoryItem, Revocation, on_calendar
from augury.core.standing import Frontier, id_taken
from augury.core.versions import InputVersions
from augury.engine.input_ids import CopyKey, InputIds, InputRow
from augury.engine.named_columns import by_columns
from augury.engine.version_book import VersionColumns
from augury.knowledge.timeline import Statement
from augury.sources import Batch, History
from augury.sources.cells import MISSING
from augury.storage.table import END


@dataclass
class Admission:
    """The inputs that a step accepts, and those that it leaves out. Events, revocations and statements of facts are counted."""

    events: int = 0
    received: int = 0
    accepted: int = 0
    repeats: Counter[Predicate | None] = field(default_factory=Counter)  # by type; None: revocations
    greatest: int | None = None  # the greatest end of the accepted events
    frontier: int | None = None  # nothing more ends at or before it, where the step promises that
    batches: dict[Predicate, Batch] = field(default_factory=dict)
    revoked_rows: list[InputRow] = field(default_factory=list)
    tombstones: list[str] = field(default_factory=list)
    withdrawn: list[str] = field(default_factory=list)
    versions: dict[str, InputVersions] = field(default_factory=dict)  # of the ids that have any, after the step
    version_columns: VersionColumns | None = None  # those of many new ids
    statements: list[Statement] = field(default_factory=list)
    late: list[HistoryItem] = field(default_factory=list)
    rejected: list[tuple[Event, str]] = field(default_factory=list)


@dataclass(frozen=True)
class AdmissionRules:
    """Settings of a session that decide about inputs."""

    longest: int | None = None  # a longer event is late
    calendar: bool = False  # whether times are those of the calendar
    derived_elsewhere: Collection[Predicate] = ()  # another stage derives these types: they are never late


def admit(history: History, ids: InputIds, frontier: Frontier, rules: AdmissionRules) -> Admission:
    """Decides about all inputs of a step."""
    for type, batch in history.batches.items():
        _check_times(type[0], batch)
    admitter = _Admitter(history, ids, frontier, rules)
    replaces = bool(ids.versions) or any(batch.versions is not None for batch in history.batches.values())
    moves = frontier.lateness is not None or (frontier.revision is not None and (replaces or bool(history.revoked)))
    named = bool(history.revoked) or any(batch.ids is not None for batch in history.batches.values())
    # Whether a revocation is late depends on the versions that came before it.
    follows = replaces and bool(history.revoked) and frontier.fixed is not None
    if history.ordered and (follows or (moves and named)):
        admitter.admit_one_by_one()
    else:
        admitter.admit_columns(moving=history.ordered and moves)
    return admitter.result()


def withdraw(admission: Admission, ids: InputIds, withdrawn: Mapping[Predicate, Iterable[str]]) -> None:
    """Takes back events that another stage derived. One that was withdrawn may come again."""
    for id in (id for some in withdrawn.values() for id in some):
        row = ids.by_id.get(id)
        if row is not None:
            admission.revoked_rows.append(row)
            admission.withdrawn.append(id)


class _Admitter:
    """The admission of one step while it is decided."""

    def __init__(self, history: History, ids: InputIds, frontier: Frontier, rules: AdmissionRules) -> None:
        self.history, self.ids, self.rules, self.frontier = history, ids, rules, replace(frontier)
        self.accepted: dict[Predicate, Mask] = {}  # of the types that were looked at; of others all are
        self.dead: dict[Predicate, list[int]] = {}  # accepted events that are revoked already
        self.named: dict[str, tuple[Predicate, int]] = {}  # the accepted events of the step that have an id
        self.copies: dict[str, set[CopyKey]] = {}  # and their rows, where events have several
        self.tombstones: set[str] = set()
        self._taken_back: set[str] = set()  # ids whose row of an earlier step another version has taken the place of
        self.replaced: dict[Predicate, Mask] = {}  # accepted events that never stand: another version does
        self.late: list[tuple[int, HistoryItem]] = []
        self.admission = Admission(
            events=sum(map(len, history.batches.values())),
            received=sum(map(len, history.batches.values())) + len(history.revoked),
        )

    def admit_one_by_one(self) -> None:
        """In the order of arrival, because each accepted event moves the frontier."""
        ends = {type: batch.end.tolist() for type, batch in self.history.batches.items()}
        too_long = {type: self._too_long(type, batch) for type, batch in self.history.batches.items()}
        frontier = self.frontier
        for type, row, item in _in_order(self.history.batches, self.history.revoked):
            if item is not None:
                self._revoke(row, item)
                continue
            end, closed = ends[type][row], frontier.closed
            late = bool(too_long[type][row]) or (closed is not None and end <= closed)
            if self._accept(type, row, late):
                frontier.observe(end)

    def admit_columns(self, moving: bool) -> None:
        """Late events by columns; events with an id one by one, where no frontier moves meanwhile."""
        for number, item in self.history.revoked:
            self._revoke(number, item)
        late = self._late_by_column(moving)
        named = {type: batch for type, batch in self.history.batches.items() if batch.ids is not None}
        self._admit_named(named, late)
        for type, batch in self.history.batches.items():
            if type not in named and late[type].any():
                lost = np.flatnonzero(late[type])
                places = lost if batch.rows is None else batch.rows[lost]
                self.late += zip(places.tolist(), batch.some(lost).events(type[0]), strict=True)
                self.accepted[type] = ~late[type]

    def _admit_named(self, named: Mapping[Predicate, Batch], late: Mapping[Predicate, Mask]) -> None:
        """Events with an id: by columns where none is late, and else one by one."""
        revoked = {item.id for _, item in self.history.revoked}
        columns = None
        if named and not any(late[type].any() for type in named):
            columns = by_columns(named, self.ids, revoked)
        if columns is not None:
            for type in named:
                self.accepted[type], self.replaced[type] = columns.stand[type].copy(), columns.replaced[type].copy()
            self.admission.version_columns = columns.versions
            if not any(mask.any() for mask in columns.others.values()):
                return
        for type, row, _ in _in_order(named, ()):
            if columns is None or columns.others[type][row]:
                self._accept(type, row, bool(late[type][row]))

    def _looked_at(self, type: Predicate) -> Mask:
        """Which events of a type are accepted so far."""
        mask = self.accepted.get(type)
        if mask is None:
            mask = self.accepted[type] = np.zeros(len(self.history.batches[type]), bool)
        return mask

    def _supersede(self, type: Predicate, row: int) -> None:
        """An accepted event stands no more, or never did."""
        self._looked_at(type)[row] = False
        mask = self.replaced.setdefault(type, np.zeros(len(self.history.batches[type]), bool))
        mask[row] = True

    def _late_by_column(self, moving: bool) -> dict[Predicate, Array]:
        """Which events are late or too long, if all others are accepted."""
        batches, closed = self.history.batches, self.frontier.closed
        lost = {type: self._too_long(type, batch) for type, batch in batches.items()}
        for type, batch in batches.items():
            if closed is not None and type not in self.rules.derived_elsewhere:
                lost[type] |= batch.end <= closed
        lateness, before = self.frontier.lateness, self.frontier.greatest
        if not moving or lateness is None or not batches:
            return lost
        ends, left_out = (np.concatenate(list(some)) for some in ((b.end for b in batches.values()), lost.values()))
        order = np.argsort(np.concatenate([batch.rows for batch in batches.values()]), kind="stable")
        counted = np.where(left_out, MISSING, ends)[order]
        greatest = np.maximum.accumulate(np.r_[MISSING if before is None else before, counted])[:-1]
        # Nothing is late before the first event; the subtraction must not go below what an integer holds.
        late = (greatest != MISSING) & (counted <= np.where(greatest == MISSING, 0, greatest) - lateness - 1)
        left_out[order] |= late
        cuts = np.cumsum([len(batch) for batch in batches.values()])[:-1]
        return dict(zip(batches, np.split(left_out, cuts), strict=True))

    def _too_long(self, type: Predicate, batch: Batch) -> Array:
        longest = self.rules.longest
        if longest is None or type in self.rules.derived_elsewhere:
            return np.zeros(len(batch), bool)
        return batch.end - batch.start > longest

    # Single inputs

    def _accept(self, type: Predicate, row: int, late: bool) -> bool:
        """Accepts an event unless its id is taken, or it is late."""
        batch = self.history.batches[type]
        id = None if batch.ids is None else batch.ids[row]
        if id is not None and self._has_versions(id, None if batch.versions is None else batch.versions[row]):
            return self._accept_version(type, row, id, late)
        if id is not None and self._taken(type, row, id):
            return False
        if late:
            return self._too_late(type, row)
        self._looked_at(type)[row] = True
        if id is not None:
            self.named.setdefault(id, (type, row))
            if id in self.ids.tombstones or id in self.tombstones:
                self.dead.setdefault(type, []).append(row)
            if self.ids.copied:
                self.copies.setdefault(id, set()).add(self.ids.copy_key(type, self._event(type, row).args))
        return True

    def _taken(self, type: Predicate, row: int, id: str) -> bool:
        """Whether an id names an event already: a repeat is ignored, another event is rejected."""
        earlier, here = self.ids.find(id), self.named.get(id)
        if earlier is not None:
            other = earlier[0].event(earlier[1])
        elif here is not None:
            other = self._event(*here)
        else:
            return False
        self._looked_at(type)
        event = self._event(type, row)
        if self.ids.content(other) != self.ids.content(event):
            self.admission.rejected.append((event, id_taken(event)))
            return True
        if self.ids.copied:  # another row of the same event is new
            key = self.ids.copy_key(type, event.args)
            if key not in self.copies.get(id, ()) and key not in self.ids.copies.get(id, ()):
                return False
        length = self.ids.plan.slice  # a repeat is counted in one of its slices
        if length is None or event.end // length == event.args[-1]:
            self.admission.repeats[type] += 1
        return True

    def _too_late(self, type: Predicate, row: int) -> bool:
        rows = self.history.batches[type].rows
        self.late.append((row if rows is None else int(rows[row]), self._event(type, row)))
        self._looked_at(type)
        return False

    # Versions

    def _has_versions(self, id: str, version: int | None) -> bool:
        """Whether an id has more than one version, or is about to."""
        return bool(version) or id in self.admission.versions or id in self.ids.versions

    def _versions(self, id: str) -> InputVersions:
        """The versions of an id: of one that had none so far, its event, and whether it is revoked."""
        versions = self.admission.versions.get(id) or self.ids.versions.get(id)
        if versions is not None:
            return versions
        versions, here, earlier = InputVersions(), self.named.get(id), self.ids.find(id)
        if here is not None:
            versions = versions.with_event(self._event(*here))
        elif earlier is not None:
            versions = versions.with_event(replace(earlier[0].event(earlier[1]), id=id))
        revoked = id in self.ids.tombstones or id in self.tombstones
        return versions.with_revoked(None) if revoked else versions

    def _accept_version(self, type: Predicate, row: int, id: str, late: bool) -> bool:
        """Accepts a version of an id unless it came before, or it or what it replaces is late."""
        event, versions, fixed = self._event(type, row), self._versions(id), self.frontier.fixed
        other = versions.events.get(event.version)
        self._looked_at(type)
        if other is not None:
            if other.content != event.content:
                self.admission.rejected.append((event, id_taken(event)))
            else:
                self.admission.repeats[type] += 1
            return False
        replaced = versions.replaced_by(event)
        if late or (replaced is not None and fixed is not None and replaced.end <= fixed):
            return self._too_late(type, row)
        after = self.admission.versions[id] = versions.with_event(event)
        if after.standing is not event:
            self._supersede(type, row)
            return True
        self._take_back_versions(id)
        self._looked_at(type)[row] = True
        self.named[id] = type, row
        return True

    def _take_back_versions(self, id: str) -> None:
        """The event that has stood for an id does so no longer."""
        if id in self.named:
            self._supersede(*self.named.pop(id))
        elif id not in self._taken_back and self.ids.find(id) is not None:
            self._taken_back.add(id)
            self.admission.revoked_rows += self.ids.rows(id)
            self.admission.withdrawn.append(id)

    def _revoke_versions(self, number: int, item: Revocation) -> None:
        """Revokes the versions of an id, up to one."""
        versions, fixed = self._versions(item.id), self.frontier.fixed
        concerned = versions.taken_back_by(item.version)
        if concerned is not None and fixed is not None and concerned.end <= fixed:
            self.late.append((number, item))
            return
        if versions.revokes(item.version):
            self.admission.repeats[None] += 1
            self.admission.versions.setdefault(item.id, versions)
            return
        after = self.admission.versions[item.id] = versions.with_revoked(item.version)
        self.admission.accepted += 1
        if versions.standing is not None and after.standing is None:
            self._take_back_versions(item.id)

    def _revoke(self, number: int, item: Revocation) -> None:
        if item.version is not None or self._has_versions(item.id, None):
            self._revoke_versions(number, item)
            return
        fixed, here = self.frontier.fixed, self.named.get(item.id)
        earlier = self.ids.find(item.id) if here is None else None
        end = None
        if here is not None:
            end = int(self.history.batches[here[0]].end[here[1]])
        elif earlier is not None:
            end = int(earlier[0].out.table.data[END, earlier[1]])
        if end is not None and fixed is not None and end <= fixed:
            self.late.append((number, item))
            return
        if here is not None:
            self.dead.setdefault(here[0], []).append(here[1])
        elif earlier is not None:
            self.admission.revoked_rows += self.ids.rows(item.id)
        if item.id in self.ids.tombstones or item.id in self.tombstones:
            self.admission.repeats[None] += 1
        else:
            self.tombstones.add(item.id)
            self.admission.accepted += 1

    def _event(self, type: Predicate, row: int) -> Event:
        return self.history.batches[type].event(type[0], row)

    def result(self) -> Admission:
        admission, history = self.admission, self.history
        for type, batch in history.batches.items():
            if type in self.dead:
                batch = replace(batch, dead=sorted({*batch.dead, *self.dead[type]}))
            mask, replaced = self.accepted.get(type), self.replaced.get(type)
            others = batch.end[:0] if replaced is None else batch.end[replaced]
            if mask is not None and not mask.all():
                batch = batch.some(np.flatnonzero(mask))
            if len(batch):
                admission.batches[type] = batch
            admission.accepted += len(batch) + len(others)
            for ends in (batch.end, others):
                if len(ends):
                    last = int(ends.max())
                    admission.greatest = last if admission.greatest is None else max(admission.greatest, last)
        if history.ordered and all(batch.rows is not None for batch in history.batches.values()):
            self.late.sort(key=itemgetter(0))
        admission.late = [item for _, item in self.late]
        admission.tombstones = sorted(self.tombstones)
        if self.rules.calendar:
            for item in (*admission.late, *(event for event, _ in admission.rejected)):
                if isinstance(item, Event):
                    on_calendar(item)
        return admission


def _check_times(name: str, batch: Batch) -> None:
    if not len(batch):
        return
    if batch.start is not batch.end and (batch.start > batch.end).any():
        raise DataError(f"{name}: an event starts after its end")
    if not (int(batch.start.min()) > -TIME_LIMIT and int(batch.end.max()) < TIME_LIMIT):
        raise DataError(f"{name}: a time too far from the origin", hint="times are below 2**60")


_Arrival = tuple[Predicate, int, Revocation | None]
_NO_TYPE: Predicate = ("", 0)


def _in_order(batches: Mapping[Predicate, Batch], revoked: Collection[tuple[int, Revocation]]) -> Iterator[_Arrival]:
    """Events, by type and row in their batch, and revocations, by place, in the order of arrival where that is known."""
    events = ((type, row, None) for type, batch in batches.items() for row in range(len(batch)))
    if not revoked and (len(batches) < 2 or any(batch.rows is None for batch in batches.values())):
        yield from events
        return
    arrivals: list[_Arrival] = [*events, *((_NO_TYPE, number, item) for number, item in revoked)]
    places = [batch.rows for batch in batches.values()]
    order = np.concatenate([*places, np.array([number for number, _ in revoked], np.int64)])
    yield from (arrivals[i] for i in np.argsort(order, kind="stable").tolist())


def history_of(items: Collection[HistoryItem]) -> History:
    """A few events and revocations as a history; columns are lists, which tables take in without a copy."""
    history, events = History(length=len(items)), dict[Predicate, list[tuple[int, Event]]]()
    for number, item in enumerate(items):
        if isinstance(item, Revocation):
            history.revoked.append((number, item))
        else:
            events.setdefault((item.type, len(item.args)), []).append((number, item))
    for type, pairs in events.items():
        some = [event for _, event in pairs]
        columns = [[event.args[i] for event in some] for i in range(type[1])]
        start, end = (np.array(times, np.int64) for times in ([e.start for e in some], [e.end for e in some]))
        ids = [event.id or None for event in some] if any(event.id for event in some) else None
        versions = np.array([e.version for e in some], np.int64) if any(e.version for e in some) else None
        known_times = None
        if any(event.known is not None for event in some):
            known_times = np.array([MISSING if event.known is None else event.known for event in some], np.int64)
        rows = np.array([number for number, _ in pairs], np.int64)
        history.batches[type] = Batch(start, end, columns, ids, known=known_times, versions=versions, rows=rows)
    return history
