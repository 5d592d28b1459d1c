"""What of a history counts: the events that stand, and what came in time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import NamedTuple

from augury.core.errors import DataError
from augury.core.model import Event, HistoryItem, Revocation, give_ids


@dataclass(frozen=True)
class Counts:
    """What became of all that was received: events, revocations and rows that could not be read."""

    received: int
    accepted: int
    repeated: int = 0  # known already, as they are
    late: int = 0
    rejected: int = 0  # their id names another event
    malformed: int = 0

    @property
    def left_out(self) -> int:
        return self.received - self.accepted

    def __str__(self) -> str:
        others = (f"{getattr(self, f.name):,} {f.name}" for f in fields(self)[1:])
        return f"{self.received:,} received: {', '.join(others)}"


def accepted_and_repeated(history: Iterable[HistoryItem]) -> tuple[int, int]:
    """How many items of a history are new, and how many are known already; those whose id names another event are neither."""
    events: dict[str, Event] = {}
    revoked: set[str] = set()
    accepted = repeated = 0
    for item in give_ids(history):
        if isinstance(item, Revocation):
            known = item.id in revoked
            revoked.add(item.id)
        else:
            known = item.id in events
            if events.setdefault(item.id, item).content != item.content:
                continue
        accepted, repeated = accepted + (not known), repeated + known
    return accepted, repeated


class Standing(NamedTuple):
    """The events that stand, those rejected because their id names another event, and the greatest end ever said."""

    events: list[Event]
    rejected: list[tuple[Event, str]]
    clock: int


def standing(history: Iterable[HistoryItem], as_of: int | None = None) -> Standing:
    """What of a history stands. A revocation is a tombstone, wherever it comes, but time does not go back with it.

    With `as_of`, only what was known by then counts (V 2.3).
    """
    events: dict[str, Event] = {}
    rejected: list[tuple[Event, str]] = []
    revoked: set[str] = set()
    for item in give_ids(history):
        known = item.known
        if as_of is not None:
            if known is None and isinstance(item, Revocation):
                raise DataError(f"the revocation of {item.id} has no `known` time, which an answer as of a time needs")
            if (known if known is not None else item.end) > as_of:  # type: ignore[union-attr]
                continue
        if isinstance(item, Revocation):
            revoked.add(item.id)
        elif item.id not in events:
            events[item.id] = item
        elif events[item.id].content != item.content:
            rejected.append((item, f"the id {item.id} names another event already"))
    greatest = max((e.end for e in events.values()), default=0)
    return Standing([e for e in events.values() if e.id not in revoked], rejected, greatest)


class Gate:
    """Lets in what is not too late: at most `lateness` behind the greatest end so far, also for what is revoked."""

    def __init__(self, lateness: int | None) -> None:
        self.lateness = lateness
        self.greatest: int | None = None
        self._known: dict[str, Event] = {}

    def admits(self, item: HistoryItem) -> bool:
        known = self._known.get(item.id)
        if isinstance(item, Event) and known is not None:
            return True  # said before: ignored or rejected, it moves nothing
        event = item if isinstance(item, Event) else known
        if event is not None and self.frontier is not None and event.end <= self.frontier:
            return False
        if isinstance(item, Event):
            self._known[item.id] = item
            self.greatest = item.end if self.greatest is None else max(self.greatest, item.end)
        return True

    @property
    def frontier(self) -> int | None:
        """Nothing more ends at or before it."""
        if self.lateness is None or self.greatest is None:
            return None
        return self.greatest - self.lateness - 1


def admitted(history: Iterable[HistoryItem], lateness: int | None) -> tuple[list[HistoryItem], list[HistoryItem]]:
    """What of a history, in the order of arrival, is in time, and what is too late."""
    gate = Gate(lateness)
    in_time: list[HistoryItem] = []
    late: list[HistoryItem] = []
    for item in give_ids(history):
        (in_time if gate.admits(item) else late).append(item)
    return in_time, late
