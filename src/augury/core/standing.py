"""Input admission: ids, revocations, lateness."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import NamedTuple

from augury.core.errors import DataError
from augury.core.model import Event, HistoryItem, Revocation, give_ids
from augury.core.versions import InputVersions


@dataclass(frozen=True)
class InputCounts:
    """How many inputs were received, and what became of them: events, revocations and rows that could not be read."""

    received: int
    accepted: int
    repeated: int = 0  # identical to an earlier input
    late: int = 0
    rejected: int = 0  # their id names another event
    malformed: int = 0

    @property
    def left_out(self) -> int:
        return self.received - self.accepted

    def __str__(self) -> str:
        others = (f"{getattr(self, f.name):,} {f.name}" for f in fields(self)[1:])
        return f"{self.received:,} received: {', '.join(others)}"


def id_taken(event: Event) -> str:
    """Why an input is rejected whose id, in its version, names another event."""
    version = f" in version {event.version}" if event.version else ""
    return f"the id {event.id} names another event already{version}"


def accepted_and_repeated(history: Iterable[HistoryItem]) -> tuple[int, int]:
    """How many items of a history are new, and how many repeat an earlier one; rejected items are neither."""
    inputs: dict[str, InputVersions] = {}
    accepted = repeated = 0
    for item in give_ids(history):
        versions = inputs.get(item.id, InputVersions())
        if isinstance(item, Revocation):
            seen = versions.revokes(item.version)
            inputs[item.id] = versions.with_revoked(item.version)
        else:
            other = versions.events.get(item.version)
            seen = other is not None
            if other is not None and other.content != item.content:
                continue
            inputs[item.id] = versions if seen else versions.with_event(item)
        accepted, repeated = accepted + (not seen), repeated + seen
    return accepted, repeated


class StandingEvents(NamedTuple):
    """The events that stand, the rejected ones with the reason, and the greatest end of all accepted events."""

    events: list[Event]
    rejected: list[tuple[Event, str]]
    clock: int


def standing(history: Iterable[HistoryItem], as_of: int | None = None) -> StandingEvents:
    """The events of a history that stand: of each id the greatest version. A revocation is a tombstone wherever it comes.
    Neither turns back time.

    With `as_of`, only inputs that were known by then count (V 2.3).
    """
    inputs: dict[str, InputVersions] = {}
    rejected: list[tuple[Event, str]] = []
    for item in give_ids(history):
        known_time = item.known
        if as_of is not None:
            if known_time is None and (isinstance(item, Revocation) or item.version > 0):
                what = "the revocation" if isinstance(item, Revocation) else f"version {item.version}"
                raise DataError(f"{what} of {item.id} has no `known` time, which an answer as of a time needs")
            if (known_time if known_time is not None else item.end) > as_of:  # type: ignore[union-attr]
                continue
        versions = inputs.get(item.id, InputVersions())
        if isinstance(item, Revocation):
            inputs[item.id] = versions.with_revoked(item.version)
        elif item.version not in versions.events:
            inputs[item.id] = versions.with_event(item)
        elif versions.events[item.version].content != item.content:
            rejected.append((item, id_taken(item)))
    greatest = max((end for versions in inputs.values() if (end := versions.last_end) is not None), default=0)
    return StandingEvents([event for v in inputs.values() if (event := v.standing) is not None], rejected, greatest)


@dataclass(slots=True)
class Frontier:
    """An event that ends at or before `closed` is late; one that ends at or before `fixed` can no longer be revoked.

    Both follow the greatest end so far, at a distance of `lateness` and of `revision`, and never fall behind a promise.
    """

    lateness: int | None = None
    revision: int | None = None
    greatest: int | None = None
    promised: int | None = None

    @property
    def closed(self) -> int | None:
        return self._behind(self.lateness)

    @property
    def fixed(self) -> int | None:
        return self._behind(self.revision)

    def _behind(self, distance: int | None) -> int | None:
        if distance is None or self.greatest is None:
            return self.promised
        bound = self.greatest - distance - 1
        return bound if self.promised is None else max(bound, self.promised)

    def observe(self, end: int) -> None:
        """An event is accepted."""
        if self.greatest is None or end > self.greatest:
            self.greatest = end


class LatenessFilter:
    """Accepts inputs that end at most `lateness` before the greatest end so far, and what revokes or replaces such inputs."""

    def __init__(self, lateness: int | None) -> None:
        self._frontier = Frontier(lateness, lateness)
        self._inputs: dict[str, InputVersions] = {}

    def accepts(self, item: HistoryItem) -> bool:
        versions = self._inputs.get(item.id, InputVersions())
        concerned: list[Event | None]
        if isinstance(item, Revocation):
            concerned = [versions.taken_back_by(item.version)]
            after = versions.with_revoked(item.version)
        elif item.version in versions.events:
            return True  # a repeat is ignored or rejected; it moves nothing
        else:
            concerned = [item, versions.replaced_by(item)]
            after = versions.with_event(item)
        closed = self._frontier.closed
        if closed is not None and any(event is not None and event.end <= closed for event in concerned):
            return False
        self._inputs[item.id] = after
        if isinstance(item, Event):
            self._frontier.observe(item.end)
        return True

    @property
    def greatest(self) -> int | None:
        return self._frontier.greatest

    @property
    def frontier(self) -> int | None:
        """Nothing more ends at or before it."""
        return self._frontier.closed


def in_time_and_late(
    history: Iterable[HistoryItem], lateness: int | None
) -> tuple[list[HistoryItem], list[HistoryItem]]:
    """The items of a history that are in time, and those that are late, both in the order of arrival."""
    lateness_filter = LatenessFilter(lateness)
    in_time: list[HistoryItem] = []
    late: list[HistoryItem] = []
    for item in give_ids(history):
        (in_time if lateness_filter.accepts(item) else late).append(item)
    return in_time, late
