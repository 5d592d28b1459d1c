"""The versions of an input: of the events with one id the one with the greatest version stands, whatever came when."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from augury.core.model import Event

ALL = 2**63 - 1  # revoked without a version: every version, for ever


@dataclass(frozen=True)
class InputVersions:
    """The events that came under one id, by version, and the greatest version that is revoked.

    `order(1, 'new')` version 0, `order(1, 'paid')` version 2, revoked up to 1   →   `order(1, 'paid')` stands
    """

    events: Mapping[int, Event] = field(default_factory=dict)
    revoked: int | None = None

    @property
    def greatest(self) -> int | None:
        """The greatest version that came."""
        return max(self.events, default=None)

    @property
    def latest(self) -> Event | None:
        """The event with the greatest version, revoked or not."""
        return self.events[max(self.events)] if self.events else None

    @property
    def standing(self) -> Event | None:
        """The event that stands."""
        latest = self.latest
        return None if latest is None or (self.revoked is not None and latest.version <= self.revoked) else latest

    @property
    def last_end(self) -> int | None:
        """The greatest end of its events."""
        return max((event.end for event in self.events.values()), default=None)

    def replaced_by(self, event: Event) -> Event | None:
        """The event that stands and whose place a new one takes."""
        standing = self.standing
        return standing if standing is not None and event.version > standing.version else None

    def taken_back_by(self, version: int | None) -> Event | None:
        """The event that a revocation is about: the latest one, unless its version is greater."""
        latest = self.latest
        return latest if latest is not None and (version is None or latest.version <= version) else None

    def with_event(self, event: Event) -> InputVersions:
        return replace(self, events={**self.events, event.version: event})

    def with_revoked(self, version: int | None) -> InputVersions:
        up_to = ALL if version is None else version
        return replace(self, revoked=up_to if self.revoked is None else max(up_to, self.revoked))

    def revokes(self, version: int | None) -> bool:
        """Whether a revocation says nothing new."""
        return self.revoked is not None and self.revoked >= (ALL if version is None else version)
